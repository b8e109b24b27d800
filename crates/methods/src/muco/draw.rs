//! Drawing the published values of rows from the output tables of their groups.
//!
//! Tables say how often a row changes in one attribute, not in which of them at the same time. Drawn one by one, all of them may stay by
//! chance. So the attributes in which a row changes are drawn together, by systematic sampling (Madow 1949): the probabilities to
//! change stand end to end on a line, in random order, and every point at a distance of one from the next, the first by chance,
//! chooses the attribute that it falls on. Each attribute is then chosen as often as its table says, and at least one if they sum to one
//! or more.

use std::ops::Range;

use rand::seq::SliceRandom;
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha20Rng;
use rayon::prelude::*;

use super::tables::{GroupTable, GroupTables, Source};
use super::{Muco, check};
use crate::Monitor;
use crate::error::Result;
use crate::microdata::RowCodes;
use crate::release::{Groups, Perturbed};

/// Groups drawn at a time.
const CHUNK: usize = 32;

impl Source<'_> {
    /// Draws for all groups, and checks what is drawn of each. Each has a stream of random numbers of its own, so threads do not matter.
    ///
    /// # Errors
    /// Faults that the check finds, and cancelling.
    pub(super) fn draw(
        &self,
        groups: &Groups,
        secret: [u8; 32],
        params: &Muco,
        monitor: &Monitor,
    ) -> Result<Perturbed> {
        let chunks: Vec<Range<usize>> =
            (0..groups.len()).step_by(CHUNK).map(|start| start..groups.len().min(start + CHUNK)).collect();
        let draw_chunk = |chunk: Range<usize>| {
            let (mut drawn, mut codes) = (Perturbed::default(), Vec::new());
            for group in chunk {
                monitor.check()?;
                let mut rng = ChaCha20Rng::from_seed(secret);
                rng.set_stream(group as u64);
                let (members, first) = (&groups.members[groups.range(group)], codes.len());
                let tables = self.draw_group(members, &mut drawn, &mut codes, &mut rng)?;
                check::check_drawn(self, members, &tables, &codes[first..], params)?;
            }
            let d = self.distances.len();
            drawn.codes = RowCodes::from_codes(d, codes.iter().copied().collect());
            let kept = |(row, codes): (u32, &[u32])| drawn.codes.of(row).eq(codes.iter().copied());
            let all = (0..).zip(codes.chunks_exact(d.max(1))).all(kept);
            check::passed((!all).then_some("another value than was drawn"))?;
            Ok(drawn)
        };
        let drawn: Vec<Result<Perturbed>> = chunks.into_par_iter().map(draw_chunk).collect();
        let mut all = Perturbed::default();
        for drawn in drawn {
            all.append(drawn?);
        }
        Ok(all)
    }

    /// Appends what the rows of a group publish to `codes`; the tables that it was drawn from.
    fn draw_group(
        &self,
        rows: &[u32],
        drawn: &mut Perturbed,
        codes: &mut Vec<u32>,
        rng: &mut impl Rng,
    ) -> Result<GroupTables> {
        let d = self.distances.len();
        let tables = self.tables(rows)?;
        drawn.mixed += usize::from(tables.mixed);
        drawn.unchangeable += usize::from(tables.tables.is_empty());
        let mut order: Vec<usize> = (0..tables.tables.len()).collect();
        for (place, &row) in rows.iter().enumerate() {
            let first = codes.len();
            let original = self.microdata.quasi_of(row);
            codes.extend(original.clone());
            tables.draw_row(place, &mut codes[first..], &mut order, rng);
            drawn.unchanged += usize::from(codes[first..first + d].iter().copied().eq(original));
        }
        Ok(tables)
    }
}

impl GroupTables {
    /// Draws what a row publishes; `codes` are its own. `order` is any order of the tables.
    fn draw_row(&self, row: usize, codes: &mut [u32], order: &mut [usize], rng: &mut impl Rng) {
        order.shuffle(rng);
        // The first point, and where the next attribute begins after the last point before it.
        let point = rng.random_range(0..self.whole);
        let mut start = 0;
        for table in order.iter().map(|&at| &self.tables[at]) {
            let own = table.own[row];
            let change = table.change(self.whole, own);
            let end = start + change;
            if (start..end).contains(&point) || end > self.whole + point {
                codes[table.attribute] = table.draw_other(own, change, rng);
            }
            start = end % self.whole;
        }
    }
}

impl GroupTable {
    /// Draws what a row that changes publishes.
    fn draw_other(&self, own: usize, change: u64, rng: &mut impl Rng) -> u32 {
        let mut at = rng.random_range(0..change);
        let home = self.column(own);
        let mut others = self.row(own).iter().zip(&self.columns).enumerate().filter(|(column, _)| *column != home);
        let drawn = others.find_map(|(_, (&parts, &code))| match at.checked_sub(parts) {
            Some(rest) => {
                at = rest;
                None
            }
            None => Some(code),
        });
        drawn.unwrap_or(self.values.codes[own])
    }
}
