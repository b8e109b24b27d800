//! Worlds: who carries whose values (Algorithm 1).

use rand::Rng;
use rand_chacha::ChaCha20Rng;
use rayon::prelude::*;
use serde::{Deserialize, Serialize};

use super::{L, WORLDS_ARE_WHOLE};
use crate::error::{Error, Result};
use crate::given::{Declared, Offered};
use crate::microdata::{Code, Microdata, RowCodes, of_width};
use crate::mondrian::{self, Cuts};
use crate::parameters::{FunctionSignature, Kind, Parameter};
use crate::release::{self, Body, Form, Groups, Release, Salts};
use crate::rings::Rings;
use crate::seen::Seen;
use crate::state::Partners;
use crate::{Against, Method, Monitor, Needs, State, StateKind, assignment};

/// Worlds for people who have none, as a table for the publisher.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct Worlds {
    /// Number of worlds, the true one included: of different sensitive values for everybody.
    pub l: usize,
    /// Way to cut the table into buckets.
    pub cuts: Cuts,
}

impl Worlds {
    /// Makes `l` worlds for everybody.
    pub fn new(l: usize) -> Self {
        Self { l, cuts: Cuts::default() }
    }

    setters! {
        /// Sets the way to cut the table into buckets.
        with_cuts(cuts: Cuts);
    }

    /// Returns the partners of all rows: those that are known, and new ones for people without. Salts, for new seals.
    pub(super) fn extend(
        &self,
        microdata: &Microdata,
        known: &Partners,
        monitor: &Monitor,
        rng: &mut impl Rng,
    ) -> Result<release::Worlds> {
        let width = self.l - 1;
        if known.width() != 0 && known.width() != width {
            return Err(Error::refused(format!(
                "the worlds that there are were made for l = {}, so l must be {} for all other people, too",
                known.width() + 1,
                known.width() + 1
            )));
        }
        let is_new = |row: &u32| known.of(*row).is_none();
        let rows = 0..microdata.rows as u32;
        let seed: [u8; 32] = rng.random();
        let partners = if rows.clone().all(|row| is_new(&row)) {
            self.draw(microdata, "rows", seed, monitor)?
        } else {
            let fresh: Vec<u32> = rows.clone().filter(is_new).collect();
            self.beside(microdata, known, &fresh, seed, monitor)?
        };
        let salts = Some(Salts::new(rng.random()));
        Ok(release::Worlds { partners, width, salts, is_new: rows.map(|row| is_new(&row)).collect() })
    }

    /// Returns the partners of all rows: new ones for the `fresh` rows alone.
    fn beside(
        &self,
        microdata: &Microdata,
        known: &Partners,
        fresh: &[u32],
        seed: [u8; 32],
        monitor: &Monitor,
    ) -> Result<Vec<u32>> {
        let drawn = match fresh.is_empty() {
            true => Vec::new(),
            false => self.draw(&microdata.part(fresh), "rows of new people", seed, monitor)?,
        };
        let width = self.l - 1;
        let mut partners = vec![0; microdata.rows * width];
        for (row, partners) in (0..).zip(partners.chunks_exact_mut(width)) {
            if let Some(known) = known.of(row) {
                partners.copy_from_slice(known);
            }
        }
        for (&row, drawn) in fresh.iter().zip(drawn.chunks_exact(width)) {
            let of_row = partners[row as usize * width..][..width].iter_mut();
            of_row.zip(drawn).for_each(|(partner, &drawn)| *partner = fresh[drawn as usize]);
        }
        Ok(partners)
    }

    /// Returns the partners of all rows, row after row.
    fn draw(&self, microdata: &Microdata, what: &str, seed: [u8; 32], monitor: &Monitor) -> Result<Vec<u32>> {
        if microdata.sensitive.is_none() {
            return Err(Error::refused(format!(
                "there are {what}, and new people get their worlds by the sensitive value: it must be in the table"
            )));
        }
        if microdata.rows == 0 {
            return Ok(Vec::new());
        }
        let rings = rings(microdata, self.l, self.cuts, what, seed, monitor)?;
        let partners = monitor.phase("worlds", || Ok(rings.partners(microdata.rows)))?;
        drop(rings);
        monitor.phase("check", || of_width!(&microdata.sensitive_codes, codes => check(codes, &partners, self.l)))?;
        Ok(partners)
    }
}

impl Declared for Worlds {
    const SIGNATURE: FunctionSignature<'static> = FunctionSignature {
        name: "sequential_worlds",
        about: "what sequential_release needs: other worlds, equally possible to a reader; made once and kept",
        parameters: &[
            Parameter::INPUT,
            L.says("how many worlds there are, the true one included: the bound is 1/l"),
            Parameter::ID,
            Parameter::QUASI,
            Parameter::SENSITIVE,
            Parameter::OTHER,
            Parameter::optional("worlds", Kind::Relation, "worlds")
                .says("what it returned before: only new people get worlds")
                .otherwise("none"),
            Parameter::CUTS,
            Parameter::HIERARCHIES,
            Parameter::SEED,
        ],
        refused: &[("cells", WORLDS_ARE_WHOLE)],
    };

    const OFFERED: Offered = Offered::Function;
}

impl Method for Worlds {
    fn form(&self) -> Form {
        Form::Worlds
    }

    fn state(&self) -> Option<StateKind> {
        Some(StateKind::Worlds)
    }

    fn needs(&self) -> Needs {
        Needs { id: true, sensitive: true, other: true }
    }

    fn guarantee(&self) -> String {
        format!("{} equally likely worlds in which everybody has different sensitive values", self.l)
    }

    fn against(&self) -> Against {
        Against::Program
    }

    /// Adds up the bytes of each row's positions, ring and partners. Positions count twice while a bucket is cut, and
    /// codes are copied where some rows have worlds already.
    fn working_bytes(&self, rows: usize, quasi: usize) -> usize {
        rows * (mondrian::leaves_with_worlds_bytes(quasi) + 32 + 8 * self.l + 4 * quasi)
            + mondrian::axes_bytes(rows, quasi)
    }

    /// Makes worlds for everybody of whom none are known. The release is of these people only.
    /// Fails when the most frequent sensitive value makes up more than `1/l` of their rows, and when the known worlds
    /// are of another `l`.
    fn anonymize(
        &self,
        mut microdata: Microdata,
        state: &State,
        monitor: &Monitor,
        rng: &mut ChaCha20Rng,
    ) -> Result<Release> {
        let known = state.worlds()?;
        let worlds = self.extend(&microdata, known, monitor, rng)?;
        let new = |row: &u32| known.of(*row).is_none();
        let members: Vec<u32> = (0..microdata.rows as u32).filter(new).collect();
        // They have told who lies close together, and nothing is published of them.
        microdata.quasi_codes = RowCodes::default();
        // One of all: nothing is published of groups.
        let groups = Groups { starts: vec![0, members.len() as u32], members, ..Groups::default() };
        Ok(Release { microdata, groups, body: Body::Worlds(worlds), withheld: 0 })
    }
}

/// Returns the rings of all rows, in buckets of rows that lie close together; `what` is what the rows are called.
/// Fails when the most frequent sensitive value makes up more than `1/l`.
pub(super) fn rings(
    microdata: &Microdata,
    l: usize,
    cuts: Cuts,
    what: &str,
    seed: [u8; 32],
    monitor: &Monitor,
) -> Result<Rings> {
    let sensitive = microdata.sensitive()?;
    let most = of_width!(&microdata.sensitive_codes, codes => assignment::occurrences(codes)).into_iter().max();
    assignment::check_eligible(what, microdata.rows, most.unwrap_or(0), l, sensitive.field.name())?;
    let leaves = monitor.phase("buckets", || mondrian::leaves_with_worlds(microdata, l, cuts, seed, monitor))?;
    match of_width!(&microdata.sensitive_codes, codes => leaves.rings.are_rings(microdata.rows, l, codes)) {
        true => Ok(leaves.rings),
        false => Err(Error::internal("rings that are none; nothing was published")),
    }
}

/// Checks that everybody has `l` different sensitive values over the worlds. Every world is the table with people's
/// values dealt anew. `codes` are these values.
fn check<C: Code>(codes: &[C], partners: &[u32], l: usize) -> Result<()> {
    let k = l - 1;
    if partners.len() != codes.len() * k {
        return Err(Error::internal("people without worlds; nothing was published"));
    }
    let is_permutation = |world| {
        let partners = partners.iter().skip(world).step_by(k).copied();
        Seen::once(codes.len(), partners).is_some_and(|seen| seen.is_all())
    };
    if !(0..k).into_par_iter().all(is_permutation) {
        return Err(Error::internal("a world that is no permutation; nothing was published"));
    }
    let differ = |carried: &mut Vec<C>, (own, partners): (&C, &[u32])| {
        carried.clear();
        carried.push(*own);
        carried.extend(partners.iter().map(|&partner| codes[partner as usize]));
        carried.sort_unstable();
        carried.windows(2).all(|pair| pair[0] < pair[1])
    };
    match codes.par_iter().zip(partners.par_chunks(k)).map_init(Vec::new, differ).all(|differ| differ) {
        true => Ok(()),
        false => Err(Error::internal("a person with a sensitive value in two worlds; nothing was published")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wrong_worlds_are_found() {
        let codes = [0_u8, 1, 2, 0, 1, 2];
        let right = [1, 2, 2, 0, 0, 1, 4, 5, 5, 3, 3, 4];
        check(&codes, &right, 3).unwrap();
        let wrong = |place: usize, partner: u32, what: &str| {
            let mut partners = right;
            partners[place] = partner;
            let error = check(&codes, &partners, 3).unwrap_err().to_string();
            assert!(error.contains(what), "{error}");
        };
        wrong(0, 4, "no permutation");
        wrong(5, 9, "no permutation");
        // Two people exchange their partners of one world: one gets their own value, or one that they have.
        for exchanged in [(0, 2), (1, 5)] {
            let mut partners = right;
            partners.swap(exchanged.0, exchanged.1);
            let error = check(&codes, &partners, 3).unwrap_err().to_string();
            assert!(error.contains("in two worlds"), "{exchanged:?}: {error}");
        }
        assert!(check(&codes, &right[..10], 3).is_err());
        // The same of many people, of whom each core has some: whoever is wrong is not among the first ones.
        const TIMES: usize = 1024;
        let codes: Vec<u8> = codes.repeat(TIMES);
        let right: Vec<u32> = (0..TIMES as u32).flat_map(|times| right.map(|partner| times * 6 + partner)).collect();
        check(&codes, &right, 3).unwrap();
        for person in [TIMES, 3 * TIMES + 6, 6 * (TIMES - 1)] {
            let mut partners = right.clone();
            let first = person / 6 * 12;
            partners.swap(first, first + 2);
            let error = check(&codes, &partners, 3).unwrap_err().to_string();
            assert!(error.contains("in two worlds"), "{person}: {error}");
            partners[first] = partners[first + 4];
            let error = check(&codes, &partners, 3).unwrap_err().to_string();
            assert!(error.contains("no permutation"), "{person}: {error}");
        }
    }
}
