//! What methods look at when they check a release: groups, with what the table has of their rows.
//!
//! Rows of a group are all over the memory, and a processor that has to know what one of them has before it goes on does not ask for the next
//! one's. So what the rows of a few groups have is copied first, and then looked at.

use rayon::prelude::*;

use crate::microdata::{Microdata, append_rows};
use crate::release::{COUNTERFEIT, Groups};

/// Groups that are copied together.
const GROUPS: usize = 64;

/// A group, and what the table has of its rows. That of counterfeits does not matter.
pub(super) struct OfGroup<'a> {
    pub group: usize,
    /// Rows, with counterfeits.
    pub members: &'a [u32],
    /// Sensitive values that are published; none without the attribute.
    pub published: &'a [u32],
    d: usize,
    codes: &'a [u32],
    sensitive: &'a [u32],
}

impl OfGroup<'_> {
    /// Codes of the quasi-identifiers of the member at a place.
    #[inline]
    pub(super) fn codes(&self, place: usize) -> &[u32] {
        &self.codes[place * self.d..][..self.d]
    }

    /// The sensitive value of the member at a place; there must be the attribute.
    #[inline]
    pub(super) fn sensitive(&self, place: usize) -> u32 {
        self.sensitive[place]
    }
}

/// Copies, row after row.
#[derive(Default)]
struct Near {
    codes: Vec<u32>,
    sensitive: Vec<u32>,
}

impl Near {
    fn read(&mut self, microdata: &Microdata, members: &[u32]) {
        self.codes.clear();
        self.sensitive.clear();
        let d = microdata.quasi.len();
        if microdata.rows == 0 {
            self.codes.resize(members.len() * d, 0);
            self.sensitive.resize(members.len(), 0);
            return;
        }
        // A counterfeit gets somebody's.
        let rows = || members.iter().map(|&row| if row == COUNTERFEIT { 0 } else { row });
        append_rows(&microdata.quasi_codes, d, rows(), &mut self.codes);
        if !microdata.sensitive_codes.is_empty() {
            self.sensitive.extend(rows().map(|row| microdata.sensitive_codes[row as usize]));
        }
    }
}

/// Looks at all groups in parallel, and returns what is wrong with one of them, if anything is. Every thread has what `init` makes.
pub(super) fn any_broken<S>(
    microdata: &Microdata,
    groups: &Groups,
    init: impl Fn() -> S + Send + Sync,
    broken_by: impl Fn(&mut S, &OfGroup<'_>) -> Option<&'static str> + Sync,
) -> Option<&'static str> {
    let d = microdata.quasi.len();
    let look = |(near, own): &mut (Near, S), chunk: usize| {
        let numbers = chunk * GROUPS..groups.len().min((chunk + 1) * GROUPS);
        let places = groups.starts[numbers.start] as usize..groups.starts[numbers.end] as usize;
        near.read(microdata, &groups.members[places.clone()]);
        numbers.into_iter().find_map(|group| {
            let range = groups.range(group);
            let (start, end) = (range.start - places.start, range.end - places.start);
            let of_group = OfGroup {
                group,
                members: &groups.members[range.clone()],
                published: groups.sensitive.get(range).unwrap_or_default(),
                d,
                codes: &near.codes[start * d..end * d],
                sensitive: near.sensitive.get(start..end).unwrap_or_default(),
            };
            broken_by(own, &of_group)
        })
    };
    let chunks = (0..groups.len().div_ceil(GROUPS)).into_par_iter().with_min_len(16);
    chunks.map_init(|| (Near::default(), init()), look).find_map_any(|broken| broken)
}
