//! The baseline: one release of all columns, of which every later one is a projection.

use rand::Rng;
use rand_chacha::ChaCha20Rng;
use serde::{Deserialize, Serialize};

use super::worlds;
use super::{L, WORLDS_ARE_WHOLE};
use crate::error::{Error, Result};
use crate::given::{Declared, Offered};
use crate::microdata::{Microdata, of_width};
use crate::mondrian::{self, Cuts};
use crate::parameters::{FunctionSignature, Parameter};
use crate::release::{Body, Form, Groups, Intervals, Release};
use crate::rings::Rings;
use crate::{Against, Method, Monitor, Needs, State};

/// Release in which every row covers the people who carry its values in `l` worlds.
///
/// The paper has every row cover the `l - 1` before it in a cycle, so that the row of its own person is always an end of those that cover
/// somebody; a reader who sees which people every row covers is then right for one of two, whatever `l` is. Here they are those of the same
/// worlds that [`Worlds`](super::Worlds) makes: rings and shifts.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct NonSequential {
    /// People that every row covers, all with different sensitive values.
    pub l: usize,
    /// Way to cut the table into buckets.
    pub cuts: Cuts,
}

impl NonSequential {
    /// Returns every row covers `l` people.
    pub fn new(l: usize) -> Self {
        Self { l, cuts: Cuts::default() }
    }

    setters! {
        /// Sets the way to cut the table into buckets.
        with_cuts(cuts: Cuts);
    }
}

impl Declared for NonSequential {
    const SIGNATURE: FunctionSignature<'static> = FunctionSignature {
        name: "non_sequential",
        about: "the baseline of sequential_release: one release whose projections are published",
        parameters: &[
            Parameter::INPUT,
            L.says("people that every row covers, with different sensitive values"),
            Parameter::QUASI,
            Parameter::SENSITIVE,
            Parameter::OTHER,
            Parameter::CUTS,
            Parameter::HIERARCHIES,
            Parameter::ID,
            Parameter::SEED,
            Parameter::PRIVATE,
        ],
        refused: &[("cells", WORLDS_ARE_WHOLE)],
    };

    const OFFERED: Offered = Offered::Function;
}

impl Method for NonSequential {
    fn form(&self) -> Form {
        Form::Rows
    }

    fn needs(&self) -> Needs {
        Needs { sensitive: true, other: true, ..Needs::default() }
    }

    fn guarantee(&self) -> String {
        format!("{}-diversity of the people that every row covers", self.l)
    }

    fn against(&self) -> Against {
        Against::Program
    }

    /// Adds up the bytes of worlds, and of the published values.
    fn working_bytes(&self, rows: usize, quasi: usize) -> usize {
        rows * (mondrian::leaves_with_worlds_bytes(quasi) + 32 + 8 * quasi) + mondrian::axes_bytes(rows, quasi)
    }

    /// Anonymizes a table.
    /// Fails when the most frequent sensitive value makes up more than `1/l` of the rows.
    fn anonymize(
        &self,
        microdata: Microdata,
        _state: &State,
        monitor: &Monitor,
        rng: &mut ChaCha20Rng,
    ) -> Result<Release> {
        microdata.sensitive()?;
        if microdata.rows == 0 {
            let groups = Groups { starts: vec![0], ..Groups::default() };
            return Ok(Release { groups, body: Body::empty(Form::Rows), microdata, withheld: 0 });
        }
        let rings = worlds::rings(&microdata, self.l, self.cuts, "rows", rng.random(), monitor)?;
        let intervals = monitor.phase("covering", || Ok(cover(&microdata, &rings)))?;
        monitor.phase("check", || check(&microdata, &rings, &intervals))?;
        let intervals = Intervals::of_members(&microdata, &intervals)?;
        let members = rings.people;
        let sensitive = microdata.sensitive_of(&members);
        let starts = (0..=members.len() as u32).collect();
        let groups = Groups { starts, members, sensitive, ..Groups::default() };
        Ok(Release { microdata, groups, body: Body::Rows { intervals, worlds: None, ghosts: 0 }, withheld: 0 })
    }
}

/// Returns the published values of the rows of the rings, one after the other: around everybody who carries the row's values in some world.
pub(super) fn cover(microdata: &Microdata, rings: &Rings) -> Vec<[u32; 2]> {
    let mut boxes = Vec::with_capacity(microdata.rows * microdata.quasi.len());
    for (ring, shifts) in rings.iter() {
        let n = ring.len();
        for place in 0..n {
            let carriers =
                || std::iter::once(0).chain(shifts.iter().copied()).map(|back| ring[(place + n - back as usize) % n]);
            for (j, attribute) in microdata.quasi.iter().enumerate() {
                let codes = carriers().map(|row| microdata.quasi_at(row, j));
                let (lo, hi) = codes.fold((u32::MAX, 0), |(lo, hi), code| (lo.min(code), hi.max(code)));
                boxes.push(attribute.closure([lo, hi]));
            }
        }
    }
    boxes
}

/// Checks that `l` rows with different sensitive values cover everybody. Their own is among them, and one is in each of `l` worlds.
fn check(microdata: &Microdata, rings: &Rings, boxes: &[[u32; 2]]) -> Result<()> {
    let d = microdata.quasi.len();
    let mut place_of = vec![0; microdata.rows];
    (0..).zip(&rings.people).for_each(|(place, &row)| place_of[row as usize] = place);
    let mut right = boxes.len() == microdata.rows * d
        && of_width!(&microdata.sensitive_codes, codes => rings.are_rings(microdata.rows, rings.width + 1, codes));
    for world in 0..=rings.width {
        if right {
            rings.each(world, |person, whose| {
                let boxes = &boxes[place_of[whose as usize] * d..][..d];
                right &= boxes.iter().zip(microdata.quasi_of(person)).all(|(&[lo, hi], code)| lo <= code && code <= hi);
            });
        }
    }
    match right {
        true => Ok(()),
        false => Err(Error::internal("the release failed its own check; nothing was published")),
    }
}
