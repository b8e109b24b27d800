//! Last check of methods with signatures: each row leaves once, but for those withheld on purpose.

use rayon::prelude::*;

use super::of_group::{OfGroup, any_broken};
use super::seen::Seen;
use super::state::Signatures;
use crate::error::{Error, Result};
use crate::microdata::Microdata;
use crate::release::{COUNTERFEIT, Groups, Intervals};

/// Knowledge of earlier releases about a group's members, by their places: numbers of signatures, and labels. For
/// somebody who was never published, and for counterfeits, none.
pub(super) struct Known<'a> {
    pub signatures: &'a [Option<u32>],
    pub labels: &'a [Option<u32>],
}

/// The lists that [`Known`] shows.
#[derive(Default)]
struct Beside {
    signatures: Vec<Option<u32>>,
    labels: Vec<Option<u32>>,
}

impl Beside {
    fn read(&mut self, known: &Signatures, members: &[u32]) {
        let of = |row: u32| (row != COUNTERFEIT).then_some(row as usize);
        self.signatures.clear();
        self.signatures.extend(members.iter().map(|&row| known.number_of(of(row)?)));
        self.labels.clear();
        self.labels.extend(members.iter().map(|&row| known.label_of(of(row)?)));
    }
}

/// Looks at the groups of a release in parallel. `broken_by` says what is wrong with a group, if anything.
/// Afterwards every row must have been seen once, but for `withheld` of those that are new.
/// Fails when anything is wrong: the release must not leave.
pub(super) fn check_every_row(
    microdata: &Microdata,
    groups: &Groups,
    intervals: &Intervals,
    known: &Signatures,
    withheld: usize,
    broken_by: impl Fn(&OfGroup<'_>, &Known<'_>) -> Option<&'static str> + Sync,
) -> Result<()> {
    if !groups.are_whole() || groups.sensitive.len() != groups.members.len() {
        return Err(Error::internal(
            "the release failed its own check (members without a group); nothing was published",
        ));
    }
    let rows = microdata.rows;
    let first = |beside: &mut Beside, members: &[u32]| beside.read(known, members);
    let broken_by = |beside: &mut Beside, of_group: &OfGroup<'_>| {
        broken_by(of_group, &Known { signatures: &beside.signatures, labels: &beside.labels })
    };
    let once = || {
        let people = groups.members.iter().copied().filter(|&row| row != COUNTERFEIT);
        let Some(seen) = Seen::once(rows, people) else { return Some("a row in two places") };
        let returning = || seen.unseen().any(|row| known.number_of(row).is_some());
        (rows - seen.number != withheld || returning()).then_some("a row missing")
    };
    let broken = || any_broken(microdata, groups, intervals, Beside::default, first, broken_by);
    let (misplaced, broken) = rayon::join(once, broken);
    // Those of people are their own; of counterfeits, any that there are.
    let values = microdata.sensitive.as_ref().map_or(usize::MAX, |sensitive| sensitive.domain.len());
    let is_value = |&code: &u32| (code as usize) < values;
    let unknown = || (!groups.sensitive.par_iter().all(is_value)).then_some("a value that is not in the domain");
    match broken.or(misplaced).or_else(unknown) {
        None => Ok(()),
        Some(what) => Err(Error::internal(format!("the release failed its own check ({what}); nothing was published"))),
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use datafusion::arrow::array::{ArrayRef, Int32Array};
    use datafusion::arrow::datatypes::{DataType, Field};

    use super::*;
    use crate::microdata::{Codes, ColumnEncoder, Order, RowCodes};

    /// Faults of single rows are found. One is there twice in the place of another, which could pass for one that is withheld.
    #[test]
    fn every_row_leaves_once() {
        let microdata = Microdata {
            rows: 4,
            people: None,
            quasi: Vec::new(),
            quasi_codes: RowCodes::default(),
            sensitive: None,
            sensitive_codes: Codes::Bytes(vec![0; 4]),
            within: None,
            other: Vec::new(),
            other_codes: Vec::new(),
            updates: None,
        };
        let none = Intervals::default();
        let judged = |members: [u32; 4], withheld: usize| {
            let sensitive = vec![0; 4];
            let groups = Groups { starts: vec![0, 2, 4], members: members.to_vec(), sensitive, ..Groups::default() };
            match check_every_row(&microdata, &groups, &none, &Signatures::default(), withheld, |_, _| None) {
                Ok(()) => "fine".to_owned(),
                Err(error) => error.to_string(),
            }
        };
        assert_eq!(judged([2, 0, 3, 1], 0), "fine");
        // Counterfeits behind the last group.
        let sensitive = vec![0; 6];
        let members = vec![2, 0, 3, 1, COUNTERFEIT, COUNTERFEIT];
        let groups = Groups { starts: vec![0, 2, 4], members, sensitive, ..Groups::default() };
        let error = check_every_row(&microdata, &groups, &none, &Signatures::default(), 0, |_, _| None).unwrap_err();
        assert!(error.to_string().contains("members without a group"));
        assert_eq!(judged([2, 0, COUNTERFEIT, 1], 1), "fine");
        for withheld in 0..3 {
            assert!(judged([2, 0, 2, 1], withheld).contains("a row in two places"));
            assert!(judged([2, 2, COUNTERFEIT, 1], withheld).contains("a row in two places"));
        }
        assert!(judged([2, 0, COUNTERFEIT, 1], 0).contains("a row missing"));
        assert!(judged([2, 0, 3, 1], 1).contains("a row missing"));
    }

    /// Of a counterfeit, for those of people are compared with their own.
    #[test]
    fn values_are_of_the_domain() {
        let mut encoder = ColumnEncoder::try_new(Arc::new(Field::new("value", DataType::Int32, true))).unwrap();
        encoder.append(&(Arc::new(Int32Array::from(vec![5, 7])) as ArrayRef)).unwrap();
        let encoded = encoder.finish(Order::ByValue).unwrap();
        let microdata = Microdata {
            rows: 2,
            people: None,
            quasi: Vec::new(),
            quasi_codes: RowCodes::default(),
            sensitive: Some(encoded.attribute),
            sensitive_codes: encoded.codes,
            within: None,
            other: Vec::new(),
            other_codes: Vec::new(),
            updates: None,
        };
        let judged = |value: u32| {
            let members = vec![0, 1, COUNTERFEIT];
            let groups = Groups { starts: vec![0, 3], members, sensitive: vec![0, 1, value], ..Groups::default() };
            check_every_row(&microdata, &groups, &Intervals::default(), &Signatures::default(), 0, |_, _| None)
        };
        judged(1).unwrap();
        for value in [2, 256, u32::MAX] {
            assert!(judged(value).unwrap_err().to_string().contains("not in the domain"));
        }
    }
}
