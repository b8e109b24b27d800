//! Releases with exactly `1/m` for everybody, to a reader with this program and the law.
//!
//! Rows share a bucket if what can follow the values of their last groups has, place by place, the same law; a counterfeit's value is drawn by it. So
//! whoever is in which place, the next values are as likely, and the places of all people of a signature can be exchanged. New people
//! make buckets of their own, of as many of each component. The proof is in `docs/theory.md`, and `enumeration` is its test: that is why everything
//! is drawn by [`Lots`].

use rustc_hash::{FxHashMap, FxHashSet};

use super::law::Laws;
use super::newcomers::Places;
use super::relation::Relation;
use super::{MDistinct, unlabelled};
use crate::balance::OnIneligible;
use crate::deal::deal;
use crate::error::{Error, Result, thousands};
use crate::lots::Lots;
use crate::microdata::{Microdata, parts_of};
use crate::release::{COUNTERFEIT, Groups, Intervals, Release};
use crate::split;
use crate::state::Signatures;
use crate::{Monitor, assignment};

/// A bucket: rows by place. Groups of it have one row of each, or a counterfeit.
#[derive(Debug)]
struct Bucket {
    /// Laws of what is in each place; of new people none, as every place of theirs has a row.
    laws: Box<[u32]>,
    /// Rows in each place.
    loads: Vec<usize>,
}

impl Bucket {
    fn height(&self) -> usize {
        self.loads.iter().copied().max().unwrap_or(0)
    }

    fn gaps(&self) -> usize {
        self.loads.len() * self.height() - self.loads.iter().sum::<usize>()
    }
}

pub(super) struct Drawn {
    pub groups: Groups,
    pub intervals: Intervals,
    /// Of everybody who returns, how many releases ago that was; and the laws of all of them.
    pub laws: Laws,
    /// Values that can become alike: the component of each.
    pub component_of: Vec<u32>,
}

impl MDistinct {
    /// Fails when parameters contradict each other, which planning refuses.
    pub(super) fn check_exact(&self) -> Result<()> {
        let right = self.disjoint
            && self.balance == super::Balance::Blind
            && self.on_ineligible == OnIneligible::Refuse
            && self.updates == super::Possible::Listed;
        match right {
            true => Ok(()),
            false => Err(Error::refused(
                "exact releases have disjoint first groups, balance blindly, refuse new rows that are not eligible, and need `updates` with \
                 probabilities",
            )),
        }
    }

    /// Draws groups of all rows, beside what is known of some of them.
    pub(super) fn draw_exact(
        &self,
        microdata: &Microdata,
        known: &Signatures,
        monitor: &Monitor,
        lots: &mut impl Lots,
    ) -> Result<Drawn> {
        self.check_exact()?;
        self.policy().check_signatures(known)?;
        let values = microdata.sensitive()?.domain.len();
        let (mut laws, component_of, components) = monitor.phase("relation", || {
            let updates = microdata.updates.as_deref();
            let mut relation = Relation::with_law(updates, values)?;
            let (component_of, sets) = relation.components();
            Ok((Laws::new(updates, values)?, component_of, sets.len()))
        })?;
        let mut places = Places::none(microdata.rows);
        let mut buckets = Vec::new();
        check_law_is_of_rows(microdata, known)?;
        let new = monitor.phase("division", || {
            let new = place_returning(microdata, known, &mut laws, &mut buckets, &mut places)?;
            monitor.charge(laws.bytes())?;
            Ok(new)
        })?;
        monitor.phase("assignment", || {
            let old = old_signatures(&places, known, &component_of);
            let people = NewPeople { rows: new, component_of: &component_of, components };
            people.settle(self, microdata, &old, &mut buckets, &mut places, lots)
        })?;
        let gaps = buckets.iter().map(Bucket::gaps).sum();
        // Rows are put in the order in which they leave where they were split; counterfeits were not.
        monitor.charge(self.member_bytes(gaps, microdata.quasi.len()).saturating_add(4 * gaps))?;
        let (groups, intervals) = monitor.phase("split", || {
            let heights: Vec<usize> = buckets.iter().map(Bucket::height).collect();
            let lists = places.lists(buckets.iter().map(|bucket| bucket.loads.len()))?;
            let members = split::split(microdata, &lists, &heights, lots.secret(), &split::Sorted, monitor)?;
            drop(lists);
            let groups = complete(microdata, &buckets, members, &laws, lots)?;
            let intervals = Release::cover(microdata, &groups)?;
            Ok((groups, intervals))
        })?;
        Ok(Drawn { groups, intervals, laws, component_of })
    }
}

/// Checks that a law of several sensitive columns is of their values together. A law that is written in another
/// order would be of nobody: then nothing could change, for ever.
/// Fails when at the first release nobody has a value that the law says can change.
fn check_law_is_of_rows(microdata: &Microdata, known: &Signatures) -> Result<()> {
    let field = &microdata.sensitive()?.field;
    let (Some(updates), false) = (&microdata.updates, parts_of(field)?.is_empty()) else { return Ok(()) };
    let changing: FxHashSet<u32> =
        updates.pairs.iter().filter(|(from, to)| from != to).map(|(from, _)| *from).collect();
    let nobody = !microdata.sensitive_codes.iter().any(|code| changing.contains(&code));
    match known.all().is_empty() && !changing.is_empty() && nobody {
        true => Err(Error::refused(
            "nobody has a value that `updates` lets change: of several sensitive columns its values are composite(..) of all of them, in the order \
             in which they are named as sensitive",
        )),
        false => Ok(()),
    }
}

/// Puts returning rows into buckets of their kind; returns the new ones.
fn place_returning(
    microdata: &Microdata,
    known: &Signatures,
    laws: &mut Laws,
    buckets: &mut Vec<Bucket>,
    places: &mut Places,
) -> Result<Vec<u32>> {
    let group_of =
        |row: usize| known.number_of(row).map(|signature| Ok::<_, Error>((steps_of(known, row)?, signature)));
    let mut found = FxHashSet::default();
    for row in 0..microdata.rows {
        if let Some(group) = group_of(row) {
            found.insert(group?);
        }
    }
    // In the order of releases ago, in which laws are cheapest; which rows there are first has no part in it.
    let mut found: Vec<(u32, u32)> = found.into_iter().collect();
    found.sort_unstable();
    let mut numbers: FxHashMap<Box<[u32]>, u32> = FxHashMap::default();
    let mut bucket_of: FxHashMap<(u32, u32), u32> = FxHashMap::default();
    for (steps, signature) in found {
        let values = known.all()[signature as usize].iter();
        let kind = values.map(|&value| laws.after(value, steps)).collect::<Result<Box<[u32]>>>()?;
        let number = *numbers.entry(kind).or_insert_with_key(|kind| {
            buckets.push(Bucket { laws: kind.clone(), loads: vec![0; kind.len()] });
            buckets.len() as u32 - 1
        });
        bucket_of.insert((steps, signature), number);
    }
    let (mut new, mut illegal) = (Vec::new(), 0);
    for (row, value) in microdata.sensitive_codes.iter().enumerate() {
        let Some(group) = group_of(row) else {
            new.push(row as u32);
            continue;
        };
        let Some(label) = known.label_of(row) else { return Err(unlabelled()) };
        let number = bucket_of.get(&group?).copied().ok_or_else(|| Error::internal("a row of no kind"))?;
        let bucket = &mut buckets[number as usize];
        illegal += usize::from(!laws.law(bucket.laws[label as usize]).has(value));
        bucket.loads[label as usize] += 1;
        places.put(row as u32, number as usize, label as usize);
    }
    match illegal {
        0 => Ok(new),
        _ => Err(Error::refused(format!(
            "the sensitive value of {} returning rows cannot have followed from the one that they were published with last; \
             correct these rows. `updates` cannot be changed any more: the law that was said at the first release is what earlier ones are \
             safe by",
            thousands(illegal)
        ))),
    }
}

/// Returns the number of releases since a row was published.
pub(super) fn steps_of(known: &Signatures, row: usize) -> Result<u32> {
    known.steps_of(row).ok_or_else(|| Error::internal("a row that was published nobody knows when"))
}

/// Returns the components of returning people's groups, those of most people first.
fn old_signatures(places: &Places, known: &Signatures, component_of: &[u32]) -> Vec<Box<[u32]>> {
    let mut people = vec![0_usize; known.all().len()];
    let signatures = places.iter().filter_map(|(row, _)| known.number_of(row as usize));
    signatures.for_each(|signature| people[signature as usize] += 1);
    let mut of_components: FxHashMap<Box<[u32]>, usize> = FxHashMap::default();
    for (signature, people) in known.all().iter().zip(people).filter(|(_, people)| *people > 0) {
        let components: Box<[u32]> = signature.iter().map(|&value| component_of[value as usize]).collect();
        *of_components.entry(components).or_default() += people;
    }
    let mut found: Vec<(Box<[u32]>, usize)> = of_components.into_iter().collect();
    // Of components that are in another order than in new groups, there are none unless the table has other values.
    found.retain(|(components, _)| components.windows(2).all(|pair| pair[0] < pair[1]));
    found.sort_unstable_by(|a, b| b.1.cmp(&a.1).then_with(|| a.0.cmp(&b.0)));
    found.into_iter().map(|(components, _)| components).collect()
}

/// People who were never published, and the parts that their values fall into.
struct NewPeople<'a> {
    rows: Vec<u32>,
    component_of: &'a [u32],
    components: usize,
}

impl NewPeople<'_> {
    /// Puts them into buckets of their own: as many of each component, so that which component somebody has cannot be told.
    fn settle(
        self,
        method: &MDistinct,
        microdata: &Microdata,
        old: &[Box<[u32]>],
        buckets: &mut Vec<Bucket>,
        places: &mut Places,
        lots: &mut impl Lots,
    ) -> Result<()> {
        let mut lines: Vec<Vec<u32>> = vec![Vec::new(); self.components];
        for row in self.rows {
            let value = microdata.sensitive_codes.at(row);
            lines[self.component_of[value as usize] as usize].push(row);
        }
        let mut counts: Vec<usize> = lines.iter().map(Vec::len).collect();
        let (policy, none) = (method.policy(), vec![0; counts.len()]);
        if policy.moves(&counts, &none, lots).is_none() {
            let name = microdata.sensitive()?.field.name();
            let (parts, why) = match counts.len() == self.component_of.len() {
                // No value can become another one.
                true => (format!("value of {name}"), format!("the values of {name} are {}", counts.len())),
                false => (
                    format!(
                        "component of {name} (values that can become alike, of which exact releases allow one in a group)"
                    ),
                    format!(
                        "the values of {name} fall into {} components (values that can become alike)",
                        counts.len()
                    ),
                ),
            };
            return Err(policy.refusal_of_all(&counts, &none, &parts, &why));
        }
        // Of components that are there already, so that later on there are fewer kinds, and fewer counterfeits.
        let mut steps = assignment::reuse(&mut counts, method.m, old.iter().map(|components| &**components));
        steps.extend(assignment::steps(&counts, method.m, lots)?);
        let mut numbers: FxHashMap<&[u32], usize> = FxHashMap::default();
        let mut bucket_of = Vec::with_capacity(steps.len());
        for step in &steps {
            let number = *numbers.entry(&*step.signature).or_insert_with(|| {
                buckets.push(Bucket { laws: Box::default(), loads: vec![0; step.signature.len()] });
                buckets.len() - 1
            });
            buckets[number].loads.iter_mut().for_each(|load| *load += step.rows);
            bucket_of.push(number);
        }
        let dealt = deal(lines, &none, &steps, lots);
        for hand in dealt.hands() {
            hand.rows().for_each(|row| places.put(row, bucket_of[hand.step], hand.place));
        }
        Ok(())
    }
}

/// Returns the groups of what the buckets were split into, in the order of labels. Counterfeits go on as anybody in their place would.
fn complete(
    microdata: &Microdata,
    buckets: &[Bucket],
    members: Vec<u32>,
    laws: &Laws,
    lots: &mut impl Lots,
) -> Result<Groups> {
    let mut groups = Groups { starts: vec![0], ..Groups::default() };
    groups.sensitive.reserve_exact(members.len());
    let mut rest = members.as_slice();
    for bucket in buckets {
        for _ in 0..bucket.height() {
            let (group, others) = rest.split_at(bucket.loads.len());
            rest = others;
            for (place, &row) in group.iter().enumerate() {
                groups.sensitive.push(match (row, bucket.laws.get(place)) {
                    (COUNTERFEIT, Some(&law)) => laws.law(law).draw(lots),
                    (COUNTERFEIT, None) => return Err(Error::internal("a counterfeit beside new people")),
                    (row, _) => microdata.sensitive_codes.at(row),
                });
            }
            groups.starts.push(groups.sensitive.len() as u32);
        }
    }
    groups.members = members;
    Ok(groups)
}
