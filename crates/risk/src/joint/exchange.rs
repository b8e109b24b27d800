//! More assignments from one: people who exchange rows.
//!
//! If somebody takes a row, whoever had it must take another; if it is the one that was left, and if everybody's values before and after
//! follow the change where they must, and so on in all releases, then either all can, and that is another assignment, or this
//! way leads nowhere and the solver is asked. (Chains of A. Kempe, 1879, as for colours of graphs.) For groups whose signatures
//! stay, and for groups whose members keep their labels, one assignment proves everything.

use rustc_hash::FxHashMap;

use super::model::{Model, Verdict};
use super::parts::Part;
use super::reach::Reach;

/// The versions of a part and the rows that they compete for.
#[derive(Debug)]
pub(super) struct Exchange {
    /// Of each version: what it can choose from.
    choices: Vec<Vec<Choice>>,
    /// Releases since the version before, if this one depends on it.
    steps: Vec<Option<u64>>,
    /// Rows left of each contested slot.
    left: Vec<u32>,
}

#[derive(Debug, Clone, Copy)]
struct Choice {
    slot: u32,
    /// Place among the contested slots, or [`FREE`].
    contested: u32,
    value: u32,
    claim: u32,
}

/// Place that stands for a slot with room for all.
const FREE: u32 = u32::MAX;

impl Exchange {
    /// Prepares exchanges in a part; `values` are the values of each version and their claims.
    pub(super) fn new(model: &Model, part: &Part, values: &[Vec<(u32, u32)>]) -> Self {
        let contested: FxHashMap<u32, u32> = part.contested.iter().map(|(slot, ..)| *slot).zip(0..).collect();
        let choices = part.versions.iter().zip(values).map(|(&version, values)| {
            let choice = |&slot: &u32| {
                let value = model.slots[slot as usize].value;
                let place = values.binary_search_by_key(&value, |(value, _)| *value).ok()?;
                let contested = contested.get(&slot).copied().unwrap_or(FREE);
                Some(Choice { slot, contested, value, claim: values[place].1 })
            };
            model.versions[version as usize].slots.iter().filter_map(choice).collect()
        });
        let steps = part.versions.iter().zip(&part.linked).map(|(&version, linked)| {
            let time = |version: u32| model.versions[version as usize].time;
            linked.then(|| time(version) - time(version - 1))
        });
        Self {
            choices: choices.collect(),
            steps: steps.collect(),
            left: part.contested.iter().map(|(_, left, _)| *left).collect(),
        }
    }

    /// Marks as possible all that exchanges reach from an assignment, given as each version's slot.
    pub(super) fn spread(&self, reach: &Reach<'_>, slots: &[u32], verdicts: &mut [Verdict]) {
        let own = self.choices.iter().zip(slots).map(|(choices, &slot)| choices.iter().position(|c| c.slot == slot));
        let Some(own) = own.collect::<Option<Vec<usize>>>() else { return };
        let mut holders: Vec<Vec<u32>> = vec![Vec::new(); self.left.len()];
        for (version, (choices, &own)) in (0..).zip(self.choices.iter().zip(&own)) {
            if let Some(holders) = holders.get_mut(choices[own].contested as usize) {
                holders.push(version);
            }
        }
        let mut failed = vec![false; verdicts.len()];
        let versions = self.choices.len();
        let mut search = Search {
            exchange: self,
            reach,
            now: own.clone(),
            own,
            holders: &holders,
            moved: vec![false; versions],
            movers: Vec::new(),
            more: FxHashMap::default(),
            crowded: Vec::new(),
        };
        for version in 0..versions {
            for (to, choice) in self.choices[version].iter().enumerate() {
                let claim = choice.claim as usize;
                if verdicts[claim] == Verdict::Undecided && !failed[claim] {
                    let works = search.run(version, to);
                    for claim in search.claims() {
                        match works {
                            true => verdicts[claim] = Verdict::Possible,
                            false => failed[claim] = true,
                        }
                    }
                    search.undo();
                }
            }
        }
    }
}

struct Search<'a> {
    exchange: &'a Exchange,
    reach: &'a Reach<'a>,
    /// Place of each version's choice in the assignment, and now.
    own: Vec<usize>,
    now: Vec<usize>,
    /// Versions of each contested slot in the assignment.
    holders: &'a [Vec<u32>],
    moved: Vec<bool>,
    movers: Vec<usize>,
    /// Difference in the number of versions that each contested slot has now.
    more: FxHashMap<u32, i64>,
    /// Contested slots that got a version, and the slot that it left.
    crowded: Vec<(u32, u32)>,
}

impl Search<'_> {
    /// Returns true if a version can have another slot by exchanges.
    fn run(&mut self, version: usize, to: usize) -> bool {
        self.shift(version, to);
        let mut next = 0;
        loop {
            if let Some(&version) = self.movers.get(next) {
                next += 1;
                if !(self.follow(version, version.checked_sub(1)) && self.follow(version, Some(version + 1))) {
                    return false;
                }
            } else if let Some((slot, vacated)) = self.crowded.pop() {
                while self.room(slot) < 0 {
                    let holders = self.holders[slot as usize].iter().map(|&holder| holder as usize);
                    let stays = holders.filter(|&holder| !self.moved[holder]);
                    let Some((holder, to)) =
                        stays.filter_map(|holder| Some((holder, self.other(holder, vacated)?))).next()
                    else {
                        return false;
                    };
                    self.shift(holder, to);
                }
            } else {
                return true;
            }
        }
    }

    /// Counts the rows of a contested slot that nobody has now.
    fn room(&self, contested: u32) -> i64 {
        let held = self.holders[contested as usize].len() as i64 + self.more.get(&contested).copied().unwrap_or(0);
        i64::from(self.exchange.left[contested as usize]) - held
    }

    /// Returns the slot for a version that must leave its own: the vacated one, else one with room.
    fn other(&self, version: usize, vacated: u32) -> Option<usize> {
        let choices = &self.exchange.choices[version];
        let with_room = |choice: &Choice| choice.contested == FREE || self.room(choice.contested) > 0;
        choices.iter().position(|choice| choice.slot == vacated).or_else(|| {
            choices.iter().position(|choice| choice.slot != choices[self.own[version]].slot && with_room(choice))
        })
    }

    /// Lets the version before or after one that moved move as well, if it must.
    fn follow(&mut self, version: usize, neighbour: Option<usize>) -> bool {
        let later = neighbour.map(|neighbour| neighbour.max(version));
        let steps = later.and_then(|later| *self.exchange.steps.get(later)?);
        let (Some(neighbour), Some(steps)) = (neighbour, steps) else { return true };
        let value = self.exchange.choices[version][self.now[version]].value;
        let agrees = |choice: &Choice| match neighbour > version {
            true => self.reach.of(&value, steps).binary_search(&choice.value).is_ok(),
            false => self.reach.of(&choice.value, steps).binary_search(&value).is_ok(),
        };
        let choices = &self.exchange.choices[neighbour];
        if agrees(&choices[self.now[neighbour]]) {
            return true;
        }
        if self.moved[neighbour] {
            return false;
        }
        match choices.iter().position(agrees) {
            Some(to) => {
                self.shift(neighbour, to);
                true
            }
            None => false,
        }
    }

    fn shift(&mut self, version: usize, to: usize) {
        let choices = &self.exchange.choices[version];
        let (from, into) = (choices[self.now[version]], choices[to]);
        self.moved[version] = true;
        self.movers.push(version);
        self.now[version] = to;
        if from.contested != FREE {
            *self.more.entry(from.contested).or_insert(0) -= 1;
        }
        if into.contested != FREE {
            *self.more.entry(into.contested).or_insert(0) += 1;
            self.crowded.push((into.contested, from.slot));
        }
    }

    /// Returns the claims that hold now of the versions that moved.
    fn claims(&self) -> impl Iterator<Item = usize> + '_ {
        self.movers.iter().map(|&version| self.exchange.choices[version][self.now[version]].claim as usize)
    }

    fn undo(&mut self) {
        for version in self.movers.drain(..) {
            self.moved[version] = false;
            self.now[version] = self.own[version];
        }
        self.more.clear();
        self.crowded.clear();
    }
}
