//! Checks of a ledger of signatures and its releases, once all of them are collected.

use rustc_hash::{FxHashMap, FxHashSet};

use super::Histories;
use crate::audit::Check;
use crate::error::Result;
use crate::legal::is_legal;
use crate::release::Lineage;
use crate::updates::{Update, Updates};

/// The check of labels, where there are any.
pub(super) const LABELLED: &str = "ledger: one label for everybody";

impl Histories {
    /// Returns the checks: of the ledger itself, that the groups of releases are those of the ledger's people, and that people's
    /// signatures of at least `m` values go on as promised.
    ///
    /// # Errors
    /// When the update relation has no meaning.
    pub fn checks(mut self, m: usize, lineage: Lineage) -> Result<Vec<Check>> {
        self.close_people()?;
        let tally = &self.tally;
        let short = tally.marks.iter().filter(|(mark, _)| self.signatures[**mark as usize].len() < m);
        let short = short.map(|(_, (entries, _))| entries).sum();
        let (ledger, releases, repeated) = match lineage {
            Lineage::Invariant | Lineage::Drawn => {
                ("ledger: one signature for everybody", "m-invariant: groups are of the ledger's people", tally.again)
            }
            Lineage::Distinct { .. } => (
                "ledger: one signature for everybody in a release",
                "m-distinct: groups are of the ledger's people",
                tally.twice,
            ),
        };
        let mut checks = vec![
            Check::none(None, ledger, repeated + self.nulls, tally.entries, "entries are too many"),
            Check::none(None, "ledger: signatures of m values", short, tally.entries, "are shorter"),
        ];
        if lineage == Lineage::Drawn {
            checks.extend(self.drawn());
        }
        if let Lineage::Distinct { close, disjoint } = lineage {
            let updates = self.relation(close)?;
            if !close {
                let (broken, all) = (updates.intransitive().len(), self.updates.len());
                checks.push(Check::none(None, "update relation: transitive", broken, all, "pairs break it"));
            }
            let labels = self.labels();
            checks.extend([labels, self.apart()]);
            if disjoint {
                checks.push(self.disjoint(&updates));
            }
            checks.extend(self.legal(&updates));
        }
        checks.extend(self.hidden_checks());
        checks.extend(std::mem::take(&mut self.tally.agreement).checks(releases, &self.releases));
        Ok(checks)
    }

    /// Checks that first people can be equally many of each value of their signatures. All others must have signatures
    /// that they could draw.
    fn drawn(&self) -> [Check; 2] {
        let fresh = &self.tally.fresh;
        let first = fresh.keys().map(|&(release, ..)| release).min();
        let (mut people, mut seen) = (FxHashMap::<u32, u64>::default(), FxHashSet::<u32>::default());
        for (&(_, mark, _), &entries) in fresh.iter().filter(|((release, ..), _)| Some(*release) == first) {
            *people.entry(mark).or_default() += entries;
            seen.extend(&self.signatures[mark as usize]);
        }
        let length = |mark: u32| self.signatures[mark as usize].len().max(1) as u64;
        let uneven = people.iter().filter(|&(&mark, entries)| entries % length(mark) > 0).count();
        let foreign = |mark: u32| {
            !people.contains_key(&mark) && self.signatures[mark as usize].iter().all(|value| seen.contains(value))
        };
        let later = || fresh.iter().filter(|((release, ..), _)| Some(*release) != first);
        let all = later().map(|(_, entries)| *entries as usize).sum();
        let wrong = later().filter(|((_, mark, _), _)| foreign(*mark)).map(|(_, entries)| *entries as usize).sum();
        [
            Check::none(None, "drawn: the first release is balanced", uneven, people.len(), "signatures are not"),
            Check::none(None, "drawn: signatures are those of the first release", wrong, all, "entries have others"),
        ]
    }

    /// Checks that each label stays and is the place of a value. No value has two.
    fn labels(&self) -> Check {
        let repeats = |mark: u32| {
            let mut seen = FxHashSet::default();
            !self.signatures[mark as usize].iter().all(|value| seen.insert(value))
        };
        let wrong = self.tally.marks.iter();
        let wrong = wrong.map(|(&mark, &(all, wrong))| if repeats(mark) { all } else { wrong }).sum();
        Check::none(None, LABELLED, wrong, self.tally.entries, "entries have another or none")
    }

    /// Checks that there are enough groups to keep people of one label apart. People of a group agree in the order of
    /// its values, so that groups of different orders are different, too. Of those who have been in a group with these
    /// values before, nobody knows here whether they are in a release.
    fn apart(&mut self) -> Check {
        // By release, order of values and label: how many people are new there.
        let fresh = std::mem::take(&mut self.tally.fresh);
        let mut groups: FxHashMap<(u64, u32), u64> = FxHashMap::default();
        for ((release, mark, _), people) in fresh {
            let most = groups.entry((release, mark)).or_default();
            *most = people.max(*most);
        }
        let mut needed: FxHashMap<(u64, u32), u64> = FxHashMap::default();
        for ((release, mark), most) in groups {
            *needed.entry((release, self.shown(mark))).or_default() += most;
        }
        let (mut wrong, mut all) = (0, 0);
        for (release, shown) in &self.releases {
            let there = needed.iter().filter(|((number, _), _)| number == release);
            for (&(_, values), &needed) in there {
                // That there are none at all is another check's finding.
                let groups = shown.get(&values).map_or(needed, |host| host.0 as u64);
                all += needed as usize;
                wrong += needed.saturating_sub(groups) as usize;
            }
        }
        let name = "m-distinct: people of one label are in different groups";
        Check::none(None, name, wrong, all, "groups are missing for that")
    }

    fn relation(&self, close: bool) -> Result<Updates> {
        let most = self.signatures.iter().flatten().chain(self.updates.iter().flat_map(|(a, b)| [a, b])).max();
        let values = most.map_or(0, |&most| most as usize + 1);
        if self.any_update {
            return Ok(Updates::any(values));
        }
        let rows: Vec<Update> = self.updates.iter().map(|&(from, to)| Update::possible(from, to)).collect();
        let updates = Updates::try_new(values, &rows)?;
        match close {
            true => updates.closed(),
            false => Ok(updates),
        }
    }

    /// Checks that the values of nobody's first group can become the same.
    fn disjoint(&self, updates: &Updates) -> Check {
        let overlaps = |mark: &u32| {
            let mut seen = FxHashSet::default();
            let mut next = self.signatures[*mark as usize].iter().flat_map(|&value| updates.cus(value));
            next.any(|(value, _)| !seen.insert(value))
        };
        let wrong = self.tally.firsts.iter().filter(|(mark, _)| overlaps(mark)).map(|(_, people)| people).sum();
        let name = "m-distinct: first groups of values with nothing in common";
        Check::none(None, name, wrong, self.tally.people, "people were in others")
    }

    /// Checks at every label that the values of groups can follow from those before. So everybody can have had, at
    /// every release, the value that is any fixed number of places further on.
    fn legal(&self, updates: &Updates) -> Vec<Check> {
        let mut known: FxHashMap<(u32, u32), bool> = FxHashMap::default();
        // Steps into each release, and those that are not legal.
        let mut steps: FxHashMap<u64, (usize, usize)> = FxHashMap::default();
        for (&(release, before, after), &people) in &self.tally.steps {
            let legal = *known.entry((before, after)).or_insert_with(|| {
                let [before, after] = [before, after].map(|mark| &self.signatures[mark as usize]);
                is_legal(updates, before, after)
            });
            let step = steps.entry(release).or_default();
            step.0 += people;
            step.1 += if legal { 0 } else { people };
        }
        let check = |number: u64| {
            let (all, wrong) = steps.get(&number).copied().unwrap_or_default();
            let name = "m-distinct: groups are legal updates of the last ones";
            Check::none(Some(number), name, wrong, all, "people whose group changed are in another")
        };
        self.releases.iter().map(|(number, _)| check(*number)).collect()
    }
}
