//! A table before anything is done to it: which columns, alone and together, single people out.
//!
//! Prosecutor risk as in the literature on disclosure control: somebody who knows the values of a set of columns finds a person
//! with a probability of one over the number of rows that share them.

use std::ops::Range;

use rayon::prelude::*;
use rustc_hash::FxHashMap;

use crate::error::Result;

/// Rows in groups smaller than this are counted as at risk; the smallest cell that many statistics offices publish.
pub const SMALL: u32 = 5;
const LARGEST_SET: usize = 3;
/// Sets that go on to the next size, and sets reported of each size.
const KEPT: usize = 5;
/// Rows on which sets are compared with each other; those that are kept are measured on all rows.
const COMPARED: usize = 200_000;
/// Rows that are divided between two looks at whether somebody still waits.
const AT_A_TIME: usize = 1 << 17;

/// Fails once nobody waits for the answer any more.
pub(crate) type GoingOn<'a> = &'a (dyn Fn() -> Result<()> + Sync);

/// A column in codes: equal values have equal codes, and NULL is a value.
#[derive(Debug, Clone, Default)]
pub struct Coded {
    /// Code of each row.
    pub codes: Vec<u32>,
    /// Codes are below this.
    pub distinct: usize,
}

/// Division of the rows by a set of columns.
#[derive(Debug, Clone, PartialEq)]
pub struct Division {
    /// Places of the columns, ascending.
    pub columns: Vec<usize>,
    /// Different combinations of values.
    pub distinct: usize,
    /// Rows whose combination nobody else has.
    pub unique: usize,
    /// Rows in groups smaller than [`SMALL`].
    pub small: usize,
    /// Rows of the largest group.
    pub largest: usize,
}

/// Tells how these columns together divide the rows.
///
/// # Errors
/// Those of `going_on`.
pub fn division(columns: &[Coded], set: &[usize], going_on: GoingOn<'_>) -> Result<Division> {
    let rows = set.first().map_or(0, |&column| columns[column].codes.len());
    divide(columns, set, 0..rows, 1, going_on)
}

/// Returns the sets of two and three columns that single out most rows, best first. There are at most five of each
/// size. Sets grow from the best of the size below, so not every set is tried.
///
/// `among` are the places of the columns that may be in a set.
///
/// # Errors
/// Those of `going_on`.
pub fn singling_out(columns: &[Coded], among: &[usize], going_on: GoingOn<'_>) -> Result<Vec<Division>> {
    let rows = among.first().map_or(0, |&column| columns[column].codes.len());
    let step = rows.div_ceil(COMPARED).max(1);
    let mut found = Vec::new();
    let mut kept: Vec<Vec<usize>> = vec![Vec::new()];
    for size in 1..=LARGEST_SET {
        let mut sets: Vec<Vec<usize>> = kept
            .iter()
            .flat_map(|set| {
                among.iter().filter(move |column| !set.contains(column)).map(move |&column| with(set, column))
            })
            .collect();
        sets.sort_unstable();
        sets.dedup();
        let compared = sets.par_iter().map(|set| divide(columns, set, 0..rows, step, going_on));
        let mut compared = compared.collect::<Result<Vec<Division>>>()?;
        let order = |a: &Division, b: &Division| {
            (b.unique, b.distinct).cmp(&(a.unique, a.distinct)).then_with(|| a.columns.cmp(&b.columns))
        };
        // Of one column all go on: two that say little can say much together.
        compared.sort_unstable_by(order);
        if size > 1 {
            compared.truncate(KEPT);
            let mut exact: Vec<Division> = match step {
                1 => compared.clone(),
                _ => {
                    let exact = compared.par_iter().map(|set| division(columns, &set.columns, going_on));
                    exact.collect::<Result<_>>()?
                }
            };
            exact.sort_unstable_by(order);
            found.extend(exact);
        }
        kept = compared.into_iter().map(|division| division.columns).collect();
    }
    Ok(found)
}

fn with(set: &[usize], column: usize) -> Vec<usize> {
    let mut set: Vec<usize> = set.iter().copied().chain([column]).collect();
    set.sort_unstable();
    set
}

/// Divides every `step`-th row, column by column. Rows that are alone already stay alone.
fn divide(
    columns: &[Coded],
    set: &[usize],
    rows: Range<usize>,
    step: usize,
    going_on: GoingOn<'_>,
) -> Result<Division> {
    let mut open: Vec<(u32, u32)> = rows.step_by(step).map(|row| (row as u32, 0)).collect();
    let mut alone = 0;
    let mut sizes: Vec<u32> = vec![open.len() as u32];
    for &column in set {
        let column = &columns[column];
        let mut numbers: FxHashMap<u64, u32> = FxHashMap::default();
        sizes.clear();
        for rows in open.chunks_mut(AT_A_TIME) {
            going_on()?;
            for (row, group) in rows {
                let key = u64::from(*group) << 32 | u64::from(column.codes[*row as usize]);
                let next = numbers.len() as u32;
                *group = *numbers.entry(key).or_insert(next);
                if *group as usize == sizes.len() {
                    sizes.push(0);
                }
                sizes[*group as usize] += 1;
            }
        }
        let before = open.len();
        open.retain(|&(_, group)| sizes[group as usize] > 1);
        alone += before - open.len();
    }
    let groups = sizes.iter().filter(|&&size| size > 1);
    let small: u32 = groups.clone().filter(|&&size| size < SMALL).sum();
    let if_all_alone = u32::from(alone > 0);
    let largest = groups.clone().max().copied().unwrap_or(if_all_alone);
    Ok(Division {
        columns: set.to_vec(),
        distinct: alone + groups.count(),
        unique: alone,
        small: alone + small as usize,
        largest: largest as usize,
    })
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use proptest::prelude::*;

    use super::*;
    use crate::error::Error;

    fn always() -> Result<()> {
        Ok(())
    }

    /// Nobody waits any more: of sixty columns, none is looked at.
    #[test]
    fn who_is_told_to_end_ends() {
        let columns: Vec<Coded> = (0..60).map(|_| Coded { codes: vec![0; 1000], distinct: 1 }).collect();
        let cancelled = || -> Result<()> { Err(Error::Cancelled) };
        let among: Vec<usize> = (0..60).collect();
        assert!(matches!(singling_out(&columns, &among, &cancelled), Err(Error::Cancelled)));
        assert!(matches!(division(&columns, &[0], &cancelled), Err(Error::Cancelled)));
    }

    /// Returns the same by the definition.
    fn naive(columns: &[Coded], set: &[usize]) -> Division {
        let rows = columns[0].codes.len();
        let mut groups: HashMap<Vec<u32>, usize> = HashMap::new();
        for row in 0..rows {
            *groups.entry(set.iter().map(|&column| columns[column].codes[row]).collect()).or_default() += 1;
        }
        Division {
            columns: set.to_vec(),
            distinct: groups.len(),
            unique: groups.values().filter(|&&size| size == 1).count(),
            small: groups.values().filter(|&&size| size < SMALL as usize).sum(),
            largest: groups.values().max().copied().unwrap_or(0),
        }
    }

    proptest! {
        #[test]
        fn divisions_are_those_of_the_definition(
            rows in proptest::collection::vec((0..4_u32, 0..6_u32, 0..3_u32, 0..40_u32), 0..120)
        ) {
            let column = |of: fn(&(u32, u32, u32, u32)) -> u32| Coded { codes: rows.iter().map(of).collect(), distinct: 40 };
            let columns = [column(|row| row.0), column(|row| row.1), column(|row| row.2), column(|row| row.3)];
            for set in [vec![0], vec![3], vec![0, 1], vec![1, 3], vec![0, 1, 2], vec![0, 1, 2, 3]] {
                prop_assert_eq!(division(&columns, &set, &always).unwrap(), naive(&columns, &set));
            }
            // With four columns and few sets, the best ones are found.
            let sets = singling_out(&columns, &[0, 1, 2, 3], &always).unwrap();
            for size in [2, 3] {
                let best = sets.iter().filter(|set| set.columns.len() == size).map(|set| set.unique).max();
                let all = (0..16_usize).filter(|bits| bits.count_ones() as usize == size);
                let all = all.map(|bits| (0..4).filter(|column| bits >> column & 1 == 1).collect::<Vec<_>>());
                let most = all.map(|set| naive(&columns, &set).unique).max();
                prop_assert!(size == 3 || best == most, "{:?} {:?}", best, most);
            }
        }
    }

    #[test]
    fn nobody_is_in_nothing() {
        let nothing = division(&[Coded::default()], &[0], &always).unwrap();
        assert_eq!((nothing.distinct, nothing.unique, nothing.small, nothing.largest), (0, 0, 0, 0));
    }
}
