//! Releases: what a method makes of microdata, and the two views of it.
//!
//! A [`Release`] holds groups of rows over flat arrays. The *public* view is what the world sees; the *private* view adds
//! what the publisher needs for the next release. Both give the rows in an order drawn at random, or by the random numbers of groups.

mod body;
mod description;
mod intervals;
mod origin;
mod perturbed;
mod promised;
mod schema;
mod view;
mod worlds;

pub use body::Body;
pub use description::Description;
pub use intervals::Intervals;
pub use origin::{FOLLOWS, OWN, PART, PEOPLE};
pub use perturbed::Perturbed;
pub use promised::{Lineage, Promise};
pub use schema::{
    COMMITMENTS, COUNTERFEIT_MARK, COUNTERFEITS, Form, GROUP_ID, GROUP_ROLES, GROUP_SIZE, PARTNERS, SIGNATURE, Shape,
    reserved_names, schema, signature_type,
};
pub use schema::{HI, LO, NODE, NULLS, commitments_type};
pub use schema::{LABEL, RING, View};
pub use view::Published;
pub use view::RowOrder;
pub use worlds::{Salts, Worlds};

use crate::error::{Error, Result};
use crate::microdata::Microdata;

/// Row number of a counterfeit, which stands for nobody.
pub const COUNTERFEIT: u32 = u32::MAX;

/// Groups of a release. Group `g` has the members `starts[g]..starts[g + 1]`.
#[derive(Debug, Default)]
pub struct Groups {
    /// First member of each group, and one more entry: the number of all members.
    pub starts: Vec<u32>,
    /// Row numbers of the microdata, or [`COUNTERFEIT`].
    pub members: Vec<u32>,
    /// Code of the sensitive value that each member publishes; empty without a sensitive attribute, where nothing is published, and
    /// where rows are handed out, for which they are held in fewer bytes.
    pub sensitive: Vec<u32>,
    /// Code of each group in the column that the release was made within; empty without one.
    pub within: Vec<u32>,
    /// Number of each group's ring, the same in all releases; empty where groups are made anew for every release.
    pub rings: Vec<i64>,
}

impl Groups {
    /// Returns the number of groups.
    pub fn len(&self) -> usize {
        self.starts.len().saturating_sub(1)
    }

    /// Returns true if there are no groups.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the places of the members of a group.
    #[inline]
    pub fn range(&self, group: usize) -> std::ops::Range<usize> {
        self.starts[group] as usize..self.starts[group + 1] as usize
    }

    /// Returns the group of a member.
    pub fn group_of(&self, member: u32) -> u32 {
        self.starts.partition_point(|&start| start <= member) as u32 - 1
    }

    /// Returns true if every member is in a group.
    pub fn are_whole(&self) -> bool {
        let ends = self.starts.first().zip(self.starts.last()).map_or((0, 0), |(&first, &last)| (first, last as usize));
        ends == (0, self.members.len())
    }

    /// Returns the sensitive values of a group, ascending, each with its number of members.
    pub fn histogram(&self, group: usize) -> Vec<(u32, u32)> {
        let mut histogram = Vec::new();
        self.for_each_value(group, |code, count| histogram.push((code, count)));
        histogram
    }

    /// Calls `f` with each sensitive value of a group, ascending, and its number of members.
    pub fn for_each_value(&self, group: usize, mut f: impl FnMut(u32, u32)) {
        let codes = &self.sensitive[self.range(group)];
        // As methods that put no value twice in a group leave them.
        if codes.windows(2).all(|pair| pair[0] < pair[1]) {
            return codes.iter().for_each(|&code| f(code, 1));
        }
        for_each_of(&mut codes.to_vec(), &mut f);
    }

    /// Appends the groups of a part of the microdata: its row `i` is row `rows[i]`.
    pub fn append(&mut self, part: Self, rows: &[u32], within: Option<u32>) {
        let members = self.members.len() as u32;
        if self.starts.is_empty() {
            self.starts.push(0);
        }
        self.starts.extend(part.starts.iter().skip(1).map(|start| members + start));
        if let Some(within) = within {
            self.within.resize(self.within.len() + part.len(), within);
        }
        let row_of = |row: u32| if row == COUNTERFEIT { row } else { rows[row as usize] };
        self.members.extend(part.members.into_iter().map(row_of));
        self.sensitive.extend(part.sensitive);
        self.rings.extend(part.rings);
    }
}

/// Calls `f` with each of some values, ascending, and how often it is there; they are sorted.
fn for_each_of(codes: &mut [u32], f: &mut impl FnMut(u32, u32)) {
    codes.sort_unstable();
    codes.chunk_by(|a, b| a == b).for_each(|run| f(run[0], run.len() as u32));
}

/// Microdata in groups: the result of a method, checked against its guarantee.
#[derive(Debug)]
pub struct Release {
    /// The rows that were anonymized.
    pub microdata: Microdata,
    /// Their groups.
    pub groups: Groups,
    /// Data that the members publish.
    pub body: Body,
    /// Rows that were left out and stay new for the next release.
    pub withheld: usize,
}

impl Release {
    /// Returns the number of counterfeits.
    pub fn counterfeits(&self) -> usize {
        self.body.ghosts() + self.groups.members.iter().filter(|&&row| row == COUNTERFEIT).count()
    }

    /// Returns the intervals of the groups: for each quasi-identifier the smallest one that covers the group's real rows,
    /// or the smallest node of the hierarchy that does.
    ///
    /// # Errors
    /// When a group has no real row, or one a value that is not in its domain, which no method may produce.
    pub fn cover(microdata: &Microdata, groups: &Groups) -> Result<Intervals> {
        let d = microdata.quasi.len();
        let fill = |near: &mut Vec<u32>, first: usize, intervals: &mut [[u32; 2]]| {
            for (group, intervals) in (first..).zip(intervals.chunks_exact_mut(d)) {
                near.clear();
                let members = groups.members[groups.range(group)].iter().copied();
                microdata.quasi_codes.append_to(near, members.filter(|&row| row != COUNTERFEIT));
                for codes in near.chunks_exact(d) {
                    for ([lo, hi], &code) in intervals.iter_mut().zip(codes) {
                        *lo = code.min(*lo);
                        *hi = code.max(*hi);
                    }
                }
                for (interval, attribute) in intervals.iter_mut().zip(&microdata.quasi) {
                    if interval[0] < interval[1] {
                        *interval = attribute.closure(*interval);
                    }
                }
            }
        };
        let intervals = Intervals::made(d, groups.len(), microdata.greatest_code(), Vec::new, fill);
        intervals.ok_or_else(|| Error::internal("a group without real rows, or with a value that is not in the domain"))
    }

    /// Returns the mean length of the published intervals (the normalized certainty penalty). It is a share of their domains,
    /// over groups' real and counterfeit rows alike: 0 when nothing was generalized, 1 when everything was suppressed. Of
    /// perturbed rows, the mean distance between original and published values as a share of that between the domain's ends.
    pub fn mean_extent(&self) -> f64 {
        let d = self.microdata.quasi.len();
        let mut sum = 0.0;
        if let Body::Perturbed(perturbed) = &self.body {
            let members = (0..perturbed.codes.rows() as u32).zip(&self.groups.members);
            for (member, &row) in members.filter(|(_, row)| **row != COUNTERFEIT) {
                for ((attribute, published), code) in
                    self.microdata.quasi.iter().zip(perturbed.codes.of(member)).zip(self.microdata.quasi_of(row))
                {
                    sum += f64::from(attribute.domain.extent(code.min(published), code.max(published)));
                }
            }
        }
        let Some(intervals) = self.body.intervals().filter(|intervals| !intervals.is_empty()) else {
            return sum / (self.groups.members.len() * d).max(1) as f64;
        };
        for group in 0..self.groups.len() {
            let size = self.groups.range(group).len() as f64;
            for (attribute, [lo, hi]) in self.microdata.quasi.iter().zip(intervals.of(group as u32)) {
                sum += size * f64::from(attribute.domain.extent(lo, hi));
            }
        }
        sum / (self.groups.members.len() * d).max(1) as f64
    }
}
