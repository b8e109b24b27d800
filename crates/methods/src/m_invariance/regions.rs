//! Regions: parts of the table, whose people of one signature are grouped anew for every release.
//!
//! The new people of a release are cut by quasi-identifiers, by cuts that all worlds decide ([`fair`](super::super::mondrian)). A leaf has at least `region`
//! people and is a *region*. Its people of one signature are a *bucket*. A release groups the present people of each bucket anew, as the paper does with a
//! whole table. So a bucket needs counterfeits only where its values have unequally many people present, and not for each group that somebody has left.
//!
//! A leaf of new people who are few beside those present joins an old region, if its cut was not tried: the region whose people lie nearest. Its people
//! go under the region's signatures, equally many of each value. All other leaves are regions of their own. The choice looks at quasi-identifiers, presence,
//! leaves and regions.
//!
//! # Bound
//! Theorem A holds. Take a bucket, and rename the values of its signature for all people who were ever in it. Each cohort has equally many people of each
//! value there, so its counts stay. Groups of a release treat the values of a signature alike. A cut above is passed as likely, because the renaming
//! exchanges people of one leaf. So each renaming explains all releases as well as the true values do, if the leaves of the bucket's cohorts were not tried.
//! A leaf that was tried and failed tells that one of its `m` worlds fails. These worlds rename the values of each signature by shifts
//! ([`Worlds::Renamings`](crate::rings::Worlds)), so each of them fails as likely. New people who join such a region are renamed with its buckets. A second
//! failed leaf has other worlds, so it never joins.

use std::ops::Range;

use super::MInvariance;
use super::division::{Division, NOWHERE};
use crate::close::{most_frequent, new_numbers};
use crate::deal::deal;
use crate::error::{Error, Result};
use crate::lots::Lots;
use crate::microdata::{Microdata, of_width};
use crate::mondrian::{self, Leaves, Source};
use crate::release::Groups;
use crate::state::Signatures;
use crate::{Monitor, assignment};

/// Maker of the groups of a release.
pub(super) struct Regions<'a, S> {
    pub method: &'a MInvariance,
    /// Least number of people of a region.
    pub least: usize,
    pub microdata: &'a Microdata,
    pub known: &'a Signatures,
    pub source: &'a S,
    /// Random part of the numbers of new regions; the same for releases of one seed.
    pub first: i64,
    pub monitor: &'a Monitor,
}

/// Least chance, by counts, of a cut of few new people that is tried.
const SURE: f32 = 0.9;

/// New rows that have got a place.
struct Placed {
    withheld: usize,
    /// Number of new regions.
    regions: usize,
}

impl<S: Source> Regions<'_, S> {
    /// Makes the groups, numbers new regions, and counts the rows that are withheld.
    ///
    /// # Errors
    /// When a person has another value than before. When one value makes up more than `1/m` of the new people, and the method refuses such people.
    pub(super) fn groups(&self) -> Result<(Groups, Range<i64>, usize)> {
        let Self { method, microdata, known, monitor, .. } = *self;
        let mut lots = self.source.at(microdata.rows, microdata.rows);
        let mut division = Division::new(microdata, known)?;
        monitor.charge(method.counterfeit_bytes(division.need(), microdata.quasi.len()))?;
        let fresh: Vec<u32> =
            (0..microdata.rows as u32).filter(|&row| known.number_of(row as usize).is_none()).collect();
        let placed = match fresh.is_empty() {
            true => Placed { withheld: 0, regions: 0 },
            false => self.place(&mut division, &fresh, &mut lots)?,
        };
        let somebody = fresh.into_iter().find(|&row| division.bucket_of[row as usize] != NOWHERE);
        let new = new_numbers(microdata, self.first, somebody, placed.regions)?;
        let numbers: Vec<i64> = division.regions.iter().copied().chain(new.clone()).collect();
        let mut groups = method.groups(microdata, &division, lots.secret(), monitor)?;
        for bucket in &division.buckets {
            groups.rings.extend(std::iter::repeat_n(numbers[bucket.region as usize], bucket.height));
        }
        Ok((groups, new, placed.withheld))
    }

    /// Puts new rows into buckets.
    fn place(&self, division: &mut Division, fresh: &[u32], lots: &mut impl Lots) -> Result<Placed> {
        let Self { method: method @ &MInvariance { m, .. }, microdata, source, monitor, .. } = *self;
        let all = fresh.len() == microdata.rows;
        let part = if all { None } else { Some(microdata.part(fresh)) };
        let part = part.as_ref().unwrap_or(microdata);
        let mut next = division.regions.len() as u32;
        if !assignment::is_eligible(most_frequent(part)?, part.rows, m) {
            // The paper's method refuses these people, pads or withholds them, without a look at quasi-identifiers.
            division.enter(next);
            let withheld = method.assign_all(microdata, division, monitor, lots)?;
            return Ok(Placed { withheld, regions: 1 });
        }
        let old = microdata.rows - fresh.len();
        // A leaf that failed cannot join, and has few people for a region of its own.
        let limits = match fresh.len() < old {
            true => (self.least.saturating_mul(fresh.len()) / old, SURE),
            false => (self.least, 0.0),
        };
        let Leaves { ends, rings, failed } = mondrian::regions(part, m, limits, source, monitor)?;
        if !of_width!(&part.sensitive_codes, codes => rings.are_rings(part.rows, m, codes)) {
            return Err(Error::internal("rings that are none; nothing was published"));
        }
        let near = Near::new(microdata, division);
        let people: Vec<u32> = rings.people.iter().map(|&row| fresh[row as usize]).collect();
        let (mut start, mut of_leaves, mut regions) = (0, rings.ends.as_slice(), 0);
        for (end, failed) in ends.into_iter().zip(failed) {
            let (of_leaf, after) = of_leaves.split_at(of_leaves.partition_point(|&of_ring| of_ring <= end));
            let rows = &people[start..end as usize];
            let may_join = rows.len() < self.least && !failed;
            match near.region_of(rows).filter(|_| may_join) {
                Some(region) => self.join(division, region, rows, lots)?,
                None => {
                    division.enter(next);
                    (next, regions) = (next + 1, regions + 1);
                    for &of_ring in of_leaf {
                        let (ring, _) = people[start..].split_at(of_ring as usize - start);
                        start = of_ring as usize;
                        self.add(division, ring);
                    }
                }
            }
            (start, of_leaves) = (end as usize, after);
        }
        Ok(Placed { withheld: 0, regions })
    }

    /// Adds a ring to the bucket of its values, in a new region.
    fn add(&self, division: &mut Division, ring: &[u32]) {
        let mut signature: Vec<u32> = ring.iter().map(|&row| self.microdata.sensitive_codes.at(row)).collect();
        signature.sort_unstable();
        let bucket = division.bucket(&signature);
        division.buckets[bucket as usize].height += 1;
        ring.iter().for_each(|&row| division.bucket_of[row as usize] = bucket);
    }

    /// Puts the rows of a leaf into buckets of an old region: under its signatures as far as they fit, and under new ones.
    fn join(&self, division: &mut Division, region: u32, rows: &[u32], lots: &mut impl Lots) -> Result<()> {
        let Self { microdata, method: &MInvariance { m, .. }, .. } = *self;
        let mut lines = vec![Vec::new(); microdata.sensitive()?.domain.len()];
        rows.iter().for_each(|&row| lines[microdata.sensitive_codes.at(row) as usize].push(row));
        let mut counts: Vec<usize> = lines.iter().map(Vec::len).collect();
        division.enter(region);
        let mut steps = assignment::reuse(&mut counts, m, division.signatures(lots));
        steps.extend(assignment::steps(&counts, m, lots)?);
        let none = vec![0; lines.len()];
        let dealt = deal(lines, &none, &steps, lots);
        for hand in dealt.hands() {
            let step = &steps[hand.step];
            let bucket = division.bucket(&step.signature);
            // Every place of the signature has a hand.
            division.buckets[bucket as usize].height += if hand.place == 0 { step.rows } else { 0 };
            hand.rows().for_each(|row| division.bucket_of[row as usize] = bucket);
        }
        Ok(())
    }
}

/// Places of old regions: mean and variance of the people who are present, in each quasi-identifier.
struct Near<'a> {
    positions: Vec<&'a [f32]>,
    microdata: &'a Microdata,
    of_region: Vec<Vec<[f64; 2]>>,
}

impl<'a> Near<'a> {
    fn new(microdata: &'a Microdata, division: &Division) -> Self {
        let positions: Vec<&[f32]> = microdata.quasi.iter().map(|attribute| &**attribute.domain.positions()).collect();
        let mut people = vec![0.0; division.regions.len()];
        let mut of_region = vec![vec![[0.0; 2]; positions.len()]; division.regions.len()];
        for (row, &bucket) in (0..).zip(&division.bucket_of).filter(|(_, bucket)| **bucket != NOWHERE) {
            let region = division.buckets[bucket as usize].region as usize;
            people[region] += 1.0;
            for (attribute, sums) in of_region[region].iter_mut().enumerate() {
                let at = f64::from(positions[attribute][microdata.quasi_at(row, attribute) as usize]);
                *sums = [sums[0] + at, sums[1] + at * at];
            }
        }
        for (sums, people) in of_region.iter_mut().zip(people) {
            for sums in sums {
                let mean = sums[0] / people;
                *sums = [mean, (sums[1] / people - mean * mean).max(0.0)];
            }
        }
        Self { positions, microdata, of_region }
    }

    /// Returns the region whose people lie nearest to the middle of these rows.
    fn region_of(&self, rows: &[u32]) -> Option<u32> {
        let mean = |attribute: usize| {
            let at = |&row: &u32| self.positions[attribute][self.microdata.quasi_at(row, attribute) as usize];
            rows.iter().map(|row| f64::from(at(row))).sum::<f64>() / rows.len() as f64
        };
        let middle: Vec<f64> = (0..self.positions.len()).map(mean).collect();
        // The root of the mean square of distances.
        let distance = |of_region: &Vec<[f64; 2]>| -> f64 {
            middle.iter().zip(of_region).map(|(at, [mean, variance])| ((at - mean).powi(2) + variance).sqrt()).sum()
        };
        let distances = (0..).zip(self.of_region.iter().map(distance));
        distances.min_by(|a, b| a.1.total_cmp(&b.1)).map(|(region, _)| region)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::{BTreeMap, BTreeSet};

    use datafusion::arrow::array::AsArray;
    use proptest::prelude::*;
    use rand::SeedableRng;
    use rand_chacha::ChaCha20Rng;

    use super::super::tests::{Earlier, Known, Row, chains, encode_beside, private, verify};
    use super::*;
    use crate::Method;
    use crate::release::{COUNTERFEIT, Release};

    /// Region of each person.
    type Of = BTreeMap<i64, i64>;

    fn publish(rows: &[Row], known: &Known, of: &Of, values: &BTreeMap<i64, String>, seed: u64) -> Result<Release> {
        let ring = |id: i64| (of[&id], values[&id].clone());
        let earlier = Earlier { known, release: None, ring: Some(&ring), regions: true, each: false, domain: &[] };
        let (microdata, state) = encode_beside(rows, None, &earlier, seed)?;
        let method = MInvariance::new(2).with_region(Some(6));
        method.anonymize(microdata, &state, &Monitor::default(), &mut ChaCha20Rng::seed_from_u64(seed))
    }

    /// Returns the region of each group, and its people with their values.
    fn people(release: &Release, rows: &[Row]) -> Vec<(i64, Vec<(i64, String)>)> {
        let arrival = &release.microdata.people.as_ref().unwrap().arrival;
        let values = release.microdata.sensitive.as_ref().unwrap().domain.values();
        let of_group = |group: usize| {
            let range = release.groups.range(group);
            let members = release.groups.members[range.clone()].iter().zip(&release.groups.sensitive[range]);
            let people = members.filter(|(row, _)| **row != COUNTERFEIT).map(|(&row, &code)| {
                let value = values.as_string_view().value(code as usize).to_owned();
                (rows[arrival[row as usize] as usize].0, value)
            });
            (release.groups.rings[group], people.collect())
        };
        (0..release.groups.len()).map(of_group).collect()
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(200))]

        /// People keep region and signature. Buckets have as many groups as people of their most frequent value, and new people equally many of each value.
        #[test]
        fn regions_keep_their_people((snapshots, _) in chains(), seed in any::<u64>()) {
            let (mut known, mut of, mut values) = (Known::new(), Of::new(), BTreeMap::new());
            for snapshot in snapshots {
                let release = match publish(&snapshot, &known, &of, &values, seed) {
                    Ok(release) => release,
                    Err(Error::Refused(_)) => continue,
                    Err(error) => panic!("{error}"),
                };
                let groups = people(&release, &snapshot);
                let before: BTreeSet<i64> = known.keys().copied().collect();
                verify(&private(release, seed), &snapshot, &mut known, 2, 0);
                let mut heights: BTreeMap<(i64, &BTreeSet<String>), usize> = BTreeMap::new();
                let mut present: BTreeMap<(i64, &BTreeSet<String>, &str), usize> = BTreeMap::new();
                let mut fresh: BTreeMap<(i64, &BTreeSet<String>), BTreeMap<&str, usize>> = BTreeMap::new();
                for (region, people) in &groups {
                    *heights.entry((*region, &known[&people[0].0])).or_default() += 1;
                    for (id, value) in people {
                        prop_assert_eq!(of.insert(*id, *region).unwrap_or(*region), *region);
                        values.insert(*id, value.clone());
                        let signature = &known[id];
                        *present.entry((*region, signature, value)).or_default() += 1;
                        if !before.contains(id) {
                            *fresh.entry((*region, signature)).or_default().entry(value).or_default() += 1;
                        }
                    }
                }
                for ((region, signature), height) in heights {
                    let most = signature.iter().filter_map(|value| present.get(&(region, signature, value.as_str()))).max();
                    prop_assert_eq!(most, Some(&height));
                }
                for ((_, signature), counts) in fresh {
                    prop_assert_eq!(counts.len(), signature.len());
                    prop_assert_eq!(counts.values().collect::<BTreeSet<_>>().len(), 1);
                }
            }
        }
    }

    fn person(id: i64, at: i32, value: &str) -> Row {
        (id, vec![Some(at)], value.to_owned())
    }

    /// New people who are few join the region where they lie. As many as there are make regions of their own.
    #[test]
    fn new_people_join_the_nearest_region() {
        let rows: Vec<Row> =
            (0..20).map(|id| person(id, id as i32 / 10 * 1000 + id as i32, &format!("v{}", id % 10))).collect();
        let first = publish(&rows, &Known::new(), &Of::new(), &BTreeMap::new(), 1).unwrap();
        let (mut known, mut of) = (Known::new(), Of::new());
        let values: BTreeMap<i64, String> = rows.iter().map(|row| (row.0, row.2.clone())).collect();
        people(&first, &rows)
            .iter()
            .for_each(|(region, people)| of.extend(people.iter().map(|(id, _)| (*id, *region))));
        verify(&private(first, 1), &rows, &mut known, 2, 0);
        assert_eq!(of.values().collect::<BTreeSet<_>>().len(), 2);
        let region_of = |new: &[Row]| {
            let rows = [rows.as_slice(), new].concat();
            let release = publish(&rows, &known, &of, &values, 2).unwrap();
            let all = people(&release, &rows);
            let is_new = |people: &[(i64, String)]| people.iter().any(|(id, _)| *id >= 100);
            all.iter().filter(|(_, people)| is_new(people)).map(|(region, _)| *region).collect::<BTreeSet<_>>()
        };
        let two = |at: i32| region_of(&[person(100, at, "v1"), person(101, at, "v2")]);
        assert_eq!(two(3), BTreeSet::from([of[&0]]));
        assert_eq!(two(1015), BTreeSet::from([of[&19]]));
        let many: Vec<Row> = (0..20).map(|id| person(100 + id, 3, &format!("v{}", id % 10))).collect();
        assert!(region_of(&many).is_disjoint(&of.values().copied().collect()));
    }
}
