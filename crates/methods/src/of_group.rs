//! Groups with the codes of their rows, for the checks of releases.

use rayon::prelude::*;

use crate::microdata::{Code, Microdata, of_width};
use crate::release::{COUNTERFEIT, Groups, Intervals};

/// A group with the codes of its rows. The codes of counterfeits have no meaning.
pub(super) struct OfGroup<'a> {
    pub group: usize,
    /// Rows, with counterfeits.
    pub members: &'a [u32],
    /// Sensitive values that are published; none without the attribute.
    pub published: &'a [u32],
    /// The group's intervals, one for each quasi-identifier.
    pub intervals: &'a [[u32; 2]],
    d: usize,
    codes: &'a [u32],
    sensitive: &'a [u32],
}

impl OfGroup<'_> {
    /// Returns the codes of the quasi-identifiers of the member at a place.
    #[inline]
    pub(super) fn codes(&self, place: usize) -> &[u32] {
        &self.codes[place * self.d..][..self.d]
    }

    /// Returns true if the group's intervals cover the member at a place.
    pub(super) fn covers(&self, place: usize) -> bool {
        self.codes(place).iter().zip(self.intervals).all(|(code, [lo, hi])| (lo..=hi).contains(&code))
    }

    /// Returns the sensitive value of the member at a place. The table must have a sensitive column.
    #[inline]
    pub(super) fn sensitive(&self, place: usize) -> u32 {
        self.sensitive[place]
    }
}

/// Checks all groups in parallel, and returns a fault of one of them, if any.
///
/// A fault is a group without intervals, or a text that `broken_by` returns. `init` makes a buffer for each thread. The function calls `first` with the
/// members of a group before it calls `broken_by`.
pub(super) fn any_broken<S>(
    microdata: &Microdata,
    groups: &Groups,
    intervals: &Intervals,
    init: impl Fn() -> S + Send + Sync,
    first: impl Fn(&mut S, &[u32]) + Sync,
    broken_by: impl Fn(&mut S, &OfGroup<'_>) -> Option<&'static str> + Sync,
) -> Option<&'static str> {
    let d = microdata.quasi.len();
    if !intervals.are_of(groups.len(), d) {
        return Some("a group without intervals");
    }
    let look = |(own, near): &mut (S, Near), group: usize| {
        let range = groups.range(group);
        let members = &groups.members[range.clone()];
        first(own, members);
        near.read(microdata, members);
        near.ends.clear();
        intervals.append_to(&mut near.ends, std::iter::once(group as u32));
        let of_group = OfGroup {
            group,
            members,
            published: groups.sensitive.get(range).unwrap_or_default(),
            intervals: near.ends.as_chunks().0,
            d,
            codes: &near.codes,
            sensitive: &near.sensitive,
        };
        broken_by(own, &of_group)
    };
    let all = (0..groups.len()).into_par_iter().with_min_len(1024);
    all.map_init(|| (init(), Near::default()), look).find_map_any(|broken| broken)
}

/// Codes of the members of one group, and its intervals.
#[derive(Default)]
struct Near {
    codes: Vec<u32>,
    sensitive: Vec<u32>,
    /// Ends of the group's intervals.
    ends: Vec<u32>,
}

impl Near {
    fn read(&mut self, microdata: &Microdata, members: &[u32]) {
        self.codes.clear();
        self.sensitive.clear();
        if microdata.rows == 0 {
            self.codes.resize(members.len() * microdata.quasi.len(), 0);
            self.sensitive.resize(members.len(), 0);
            return;
        }
        // A counterfeit gets the codes of somebody.
        let rows = || members.iter().map(|&row| if row == COUNTERFEIT { 0 } else { row });
        microdata.quasi_codes.append_to(&mut self.codes, rows());
        if !microdata.sensitive_codes.is_empty() {
            of_width!(&microdata.sensitive_codes, codes => {
                self.sensitive.extend(rows().map(|row| codes[row as usize].wide()));
            });
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use datafusion::arrow::array::{ArrayRef, Int32Array};
    use datafusion::arrow::datatypes::{DataType, Field};

    use super::*;
    use crate::microdata::{ColumnEncoder, Order, RowCodes};

    /// Groups, some of them of counterfeits alone: what is looked at is what the table has.
    #[test]
    fn copies_are_those_of_the_members() {
        let values: ArrayRef = Arc::new((0..500).map(|row| row * 7 % 100).collect::<Int32Array>());
        let mut encoder = ColumnEncoder::try_new(Arc::new(Field::new("x", DataType::Int32, true))).unwrap();
        encoder.append(&values).unwrap();
        let encoded = encoder.finish(Order::ByValue).unwrap();
        let mut other = ColumnEncoder::try_new(Arc::new(Field::new("y", DataType::Int32, true))).unwrap();
        other.append(&values).unwrap();
        let other = other.finish(Order::ByValue).unwrap().attribute;
        let mut codes: Vec<u32> = encoded.codes.iter().collect();
        let mut sensitive: Vec<u32> = codes.iter().map(|code| code / 2).collect();
        // Another code in the second column.
        let of_both = |codes: &[u32]| RowCodes::of_rows(2, codes.iter().flat_map(|&code| [code, code / 3]));
        let mut microdata = Microdata {
            rows: 500,
            people: None,
            quasi: vec![encoded.attribute, other],
            sensitive_codes: sensitive.iter().copied().collect(),
            quasi_codes: of_both(&codes),
            sensitive: None,
            within: None,
            other: Vec::new(),
            other_codes: Vec::new(),
            updates: None,
        };
        let mut groups = Groups { starts: vec![0], ..Groups::default() };
        let mut row = 0;
        for group in 0..197 {
            for _ in 0..1 + group % 3 {
                groups.members.push(if group % 10 == 0 { COUNTERFEIT } else { row * 11 % 500 });
                row += 1;
            }
            groups.starts.push(groups.members.len() as u32);
        }
        let intervals_of = |group: u32| [[group, 999], [7, 300 + group]];
        let of_groups: Vec<[u32; 2]> = (0..groups.len() as u32).flat_map(intervals_of).collect();
        let intervals = Intervals::of_groups(2, &of_groups);
        let of_table = |microdata: &Microdata, row: u32| {
            (microdata.quasi_of(row).collect::<Vec<_>>(), microdata.sensitive_codes.at(row))
        };
        let before: Vec<_> = (0..500).map(|row| of_table(&microdata, row)).collect();
        let judged = |microdata: &Microdata, intervals: &Intervals| {
            any_broken(
                microdata,
                &groups,
                intervals,
                Vec::new,
                |together: &mut Vec<u32>, members| {
                    together.clear();
                    together.extend_from_slice(members);
                },
                |together, of_group| {
                    assert_eq!(of_group.members, &groups.members[groups.range(of_group.group)]);
                    assert_eq!(of_group.members, together);
                    assert_eq!(of_group.intervals, intervals_of(of_group.group as u32));
                    let wrong = |(place, &row): (usize, &u32)| {
                        let found = (of_group.codes(place).to_vec(), of_group.sensitive(place));
                        row != COUNTERFEIT && found != before[row as usize]
                    };
                    of_group.members.iter().enumerate().any(wrong).then_some("wrong")
                },
            )
        };
        assert_eq!(judged(&microdata, &intervals), None);
        for missing in [Intervals::default(), Intervals::of_groups(1, &of_groups)] {
            assert_eq!(judged(&microdata, &missing), Some("a group without intervals"));
        }
        // The first person, some in the middle, and the last one.
        let all: Vec<u32> = groups.members.iter().copied().filter(|&row| row != COUNTERFEIT).collect();
        assert!(all.len() < 500);
        for row in [all[0], all[128], all[all.len() / 2], all[all.len() - 1]] {
            codes[row as usize] ^= 1;
            microdata.quasi_codes = of_both(&codes);
            assert_eq!(judged(&microdata, &intervals), Some("wrong"));
            codes[row as usize] ^= 1;
            microdata.quasi_codes = of_both(&codes);
            sensitive[row as usize] ^= 1;
            microdata.sensitive_codes = sensitive.iter().copied().collect();
            assert_eq!(judged(&microdata, &intervals), Some("wrong"));
            sensitive[row as usize] ^= 1;
            microdata.sensitive_codes = sensitive.iter().copied().collect();
        }
    }
}
