//! Worlds: who carries whose values (Algorithm 1).

use std::collections::HashSet;

use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha20Rng;
use rayon::prelude::*;
use serde::{Deserialize, Serialize};

use super::ordering::Cycles;
use super::{Loss, Order, permutations};
use crate::error::{Error, Result};
use crate::methods::mondrian::{self, Cuts};
use crate::methods::{Monitor, assignment};
use crate::microdata::{Ledger, Microdata};
use crate::release::{self, Groups, Release};

/// Worlds for people who have none, as a table for the publisher.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Worlds {
    /// Number of worlds, the true one included: of different sensitive values for everybody.
    pub l: usize,
    /// The loss to minimize.
    #[serde(default)]
    pub loss: Loss,
    /// How rows are put into cycles.
    #[serde(default)]
    pub order: Order,
    /// How the table is cut into buckets.
    #[serde(default)]
    pub cuts: Cuts,
}

impl Worlds {
    /// Bytes needed beside the microdata: for each row its positions, twice while a bucket is cut, its place, partners and salt, and a copy
    /// of its codes where some rows have worlds already.
    pub fn working_bytes(&self, rows: usize, quasi: usize) -> usize {
        rows * (mondrian::leaves_bytes(quasi) + 32 + 12 * self.l + 4 * quasi)
    }

    /// Makes worlds for everybody of whom the ledger has none. The release is of these people only.
    ///
    /// # Errors
    /// [`Error::Refused`] when the most frequent sensitive value makes up more than `1/l` of their rows, and when the ledger's worlds
    /// are of another `l`.
    pub fn anonymize(
        &self,
        microdata: Microdata,
        ledger: &Ledger,
        monitor: &Monitor,
        rng: &mut impl Rng,
    ) -> Result<Release> {
        let worlds = self.extend(&microdata, ledger, monitor, rng)?;
        let new = |row: &u32| ledger.partners().of(*row).is_none();
        let members: Vec<u32> = (0..microdata.rows as u32).filter(new).collect();
        let sensitive = members.iter().map(|&row| microdata.sensitive_codes[row as usize]).collect();
        let starts = (0..=members.len() as u32).collect();
        let groups = Groups { starts, members, sensitive, worlds, ..Groups::default() };
        Ok(Release { microdata, groups, withheld: 0 })
    }

    /// Partners of all rows: those of the ledger, and new ones for people without. A salt for everybody, for new seals.
    pub(super) fn extend(
        &self,
        microdata: &Microdata,
        ledger: &Ledger,
        monitor: &Monitor,
        rng: &mut impl Rng,
    ) -> Result<release::Worlds> {
        let width = self.l - 1;
        let known = ledger.partners();
        if known.width() != 0 && known.width() != width {
            return Err(Error::refused(format!(
                "the worlds that there are were made for l = {}, so l must be {} for all other people, too",
                known.width() + 1,
                known.width() + 1
            )));
        }
        let mut worlds = release::Worlds { width, ..release::Worlds::default() };
        worlds.salts.extend((0..microdata.rows).map(|_| rng.random::<i64>()));
        worlds.is_new.extend((0..microdata.rows as u32).map(|row| known.of(row).is_none()));
        let fresh: Vec<u32> = (0..microdata.rows as u32).filter(|&row| known.of(row).is_none()).collect();
        let seeds: [[u8; 32]; 2] = [rng.random(), rng.random()];
        if fresh.len() == microdata.rows {
            worlds.partners = self.draw(microdata, "rows", seeds, monitor)?;
            return Ok(worlds);
        }
        let drawn = match fresh.is_empty() {
            true => Vec::new(),
            false => self.draw(&microdata.part(&fresh, ledger).0, "rows of new people", seeds, monitor)?,
        };
        let mut drawn = drawn.chunks_exact(width);
        for row in 0..microdata.rows as u32 {
            match known.of(row) {
                Some(partners) => worlds.partners.extend_from_slice(partners),
                None => worlds.partners.extend(drawn.next().into_iter().flatten().map(|&row| fresh[row as usize])),
            }
        }
        Ok(worlds)
    }

    /// Partners of all rows, row after row.
    fn draw(
        &self,
        microdata: &Microdata,
        what: &str,
        [ordering, drawing]: [[u8; 32]; 2],
        monitor: &Monitor,
    ) -> Result<Vec<u32>> {
        let sensitive = microdata.sensitive.as_ref().ok_or_else(|| {
            Error::refused(format!(
                "there are {what}, and new people get their worlds by the sensitive value: it must be in the table"
            ))
        })?;
        if microdata.rows == 0 {
            return Ok(Vec::new());
        }
        let mut rows: Vec<u32> = (0..microdata.rows as u32).collect();
        let most = assignment::by_value(&mut rows, &microdata.sensitive_codes).iter().map(|rows| rows.len()).max();
        assignment::check_eligible(what, microdata.rows, most.unwrap_or(0), self.l, sensitive.field.name())?;
        drop(rows);
        let cycles = Cycles::make(microdata, self, ordering, monitor)?;
        let partners = monitor.phase("worlds", || self.deal(&cycles, microdata.rows, drawing, monitor))?;
        monitor.phase("check", || check(microdata, &partners, self.l))?;
        Ok(partners)
    }

    fn deal(&self, cycles: &Cycles, rows: usize, secret: [u8; 32], monitor: &Monitor) -> Result<Vec<u32>> {
        let k = self.l - 1;
        let buckets: Vec<&[u32]> = cycles.iter().collect();
        let drawn: Vec<Vec<u32>> = buckets
            .par_iter()
            .enumerate()
            .map(|(number, bucket)| {
                monitor.check()?;
                let mut rng = ChaCha20Rng::from_seed(secret);
                rng.set_stream(number as u64);
                let offsets = permutations::draw(bucket.len(), self.l, &mut rng);
                match permutations::is_valid(&offsets, bucket.len(), self.l) {
                    true => Ok(offsets),
                    false => Err(Error::internal("worlds that are no permutations; nothing was published")),
                }
            })
            .collect::<Result<_>>()?;
        let mut partners = vec![0; rows * k];
        for (bucket, offsets) in buckets.iter().zip(drawn) {
            for (h, (&row, offsets)) in bucket.iter().zip(offsets.chunks_exact(k)).enumerate() {
                for (partner, &offset) in partners[row as usize * k..][..k].iter_mut().zip(offsets) {
                    *partner = bucket[(h + offset as usize) % bucket.len()];
                }
            }
        }
        Ok(partners)
    }
}

/// Everybody has `l` different sensitive values over the worlds, and every world is the table with people's values dealt anew.
fn check(microdata: &Microdata, partners: &[u32], l: usize) -> Result<()> {
    let k = l - 1;
    let mut taken = vec![false; partners.len()];
    let mut values = HashSet::with_capacity(l);
    for (row, partners) in partners.chunks_exact(k).enumerate() {
        values.clear();
        values.insert(microdata.sensitive_codes[row]);
        for (world, &partner) in partners.iter().enumerate() {
            values.insert(microdata.sensitive_codes[partner as usize]);
            if std::mem::replace(&mut taken[partner as usize * k + world], true) {
                return Err(Error::internal("a world that is no permutation; nothing was published"));
            }
        }
        if values.len() < l {
            return Err(Error::internal("a person with a sensitive value in two worlds; nothing was published"));
        }
    }
    match partners.len() == microdata.rows * k {
        true => Ok(()),
        false => Err(Error::internal("people without worlds; nothing was published")),
    }
}
