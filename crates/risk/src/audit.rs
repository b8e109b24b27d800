//! Checks of what releases promise, from their tables alone.

use std::collections::BTreeMap;

use super::randomness::{ERROR_RATE, Order, ascents, neighbours, position, together};
use super::released::ReleasedTable;
use crate::error::thousands;
use crate::release::Promise;

/// A check and how it came out. Figures are counts and scores, never values.
#[derive(Debug, Clone, PartialEq)]
pub struct Check {
    /// Number of the release, `None` if it is about all of them.
    pub release: Option<u64>,
    /// Name of the check.
    pub name: String,
    /// True if it is as it should be.
    pub passed: bool,
    /// Figures that were found.
    pub figures: String,
}

impl Check {
    /// Returns a check that passes if `wrong` of the `all` things looked at is none.
    pub fn none(release: Option<u64>, name: &str, wrong: usize, all: usize, what: &str) -> Self {
        let figures = format!("{} of {} {what}", thousands(wrong), thousands(all));
        Self { release, name: name.to_owned(), passed: wrong == 0, figures }
    }

    /// Returns a check with figures of its own.
    pub fn new(release: Option<u64>, name: impl Into<String>, passed: bool, figures: impl Into<String>) -> Self {
        Self { release, name: name.into(), passed, figures: figures.into() }
    }
}

/// Begins the names of checks of the order of rows.
pub const RANDOM_ORDER: &str = "random order";

/// Tolerance of sums of logarithms and shares.
const TOLERANCE: f64 = 1e-9;

/// Result of one check on a part of a release: parts add up to the whole.
#[derive(Debug, Clone)]
struct Finding {
    name: String,
    found: Found,
}

#[derive(Debug, Clone, Copy)]
enum Found {
    /// So many of all things looked at are wrong, in words.
    Wrong { wrong: usize, all: usize, what: &'static str },
    /// An order of rows; and the unit of its score.
    Order(Order, &'static str),
}

/// Findings on a release, whose rows are looked at whole or part by part. No group may be in two parts.
#[derive(Debug, Default)]
pub struct ReleaseFindings {
    found: Vec<Finding>,
    rows: u64,
    groups: u64,
    counterfeits: u64,
    largest: u64,
}

impl ReleaseFindings {
    /// Adds those of a part.
    pub fn add(&mut self, part: &ReleasedTable, promises: &[Promise]) {
        let found = part.findings(promises);
        self.rows += part.sizes().iter().sum::<u64>();
        self.groups += part.groups() as u64;
        self.counterfeits += part.counterfeits();
        self.largest = self.largest.max(part.largest());
        self.merge(found);
    }

    /// Adds what a part keeps of promises about values in one of several sensitive columns. The sensitive column of `part` is that one.
    pub fn add_column(&mut self, part: &ReleasedTable, column: &str, promises: &[Promise]) {
        let of_values = promises.iter().filter(|promise| !matches!(promise, Promise::Anonymous { .. }));
        let of_column = |&promise: &Promise| {
            let finding = part.promise(promise);
            Finding { name: format!("{} (column {column})", finding.name), ..finding }
        };
        self.merge(of_values.map(of_column).collect());
    }

    fn merge(&mut self, found: Vec<Finding>) {
        for next in found {
            match self.found.iter_mut().find(|known| known.name == next.name) {
                Some(known) => known.found = known.found.and(next.found),
                // What a part without rows has no opinion of.
                None => self.found.push(next),
            }
        }
    }

    /// Returns the numbers of rows, groups and counterfeits so far. Rows include counterfeits without rows.
    pub fn figures(&self) -> [u64; 3] {
        [self.rows, self.groups, self.counterfeits]
    }

    /// Returns the rows of the largest group so far.
    pub fn largest(&self) -> u64 {
        self.largest
    }

    /// Converts the findings into checks.
    pub fn checks(self, release: Option<u64>) -> Vec<Check> {
        let check = |Finding { name, found }| match found {
            Found::Wrong { wrong, all, what } => Check::none(release, &name, wrong, all, what),
            Found::Order(order, unit) => {
                let tested = order.tested();
                let figures = format!("{:.2} {unit} (false alarms: below {ERROR_RATE:e})", tested.score);
                Check::new(release, name, tested.passed, figures)
            }
        };
        self.found.into_iter().map(check).collect()
    }
}

impl Found {
    fn and(self, other: Self) -> Self {
        match (self, other) {
            (Self::Wrong { wrong, all, what }, Self::Wrong { wrong: more_wrong, all: more, .. }) => {
                Self::Wrong { wrong: wrong + more_wrong, all: all + more, what }
            }
            (Self::Order(order, unit), Self::Order(more, _)) => Self::Order(order.and(more), unit),
            // Two things of one name, which there are none of.
            (known, _) => known,
        }
    }
}

impl Finding {
    fn none(name: impl Into<String>, wrong: usize, all: usize, what: &'static str) -> Self {
        Self { name: name.into(), found: Found::Wrong { wrong, all, what } }
    }
}

impl ReleasedTable {
    /// Returns all checks of the table alone.
    #[cfg(test)]
    pub(crate) fn checks(&self, release: Option<u64>, promises: &[Promise]) -> Vec<Check> {
        let mut findings = ReleaseFindings::default();
        findings.add(self, promises);
        findings.checks(release)
    }

    fn findings(&self, promises: &[Promise]) -> Vec<Finding> {
        let mut found = Vec::new();
        if !self.hidden {
            found.extend([self.group_sizes(), self.counterfeit_counts()]);
        }
        if let Some(&[_, counterfeits]) = self.said.first() {
            let lies = |said: &&[i64; 2]| **said != [self.rows() as i64, counterfeits];
            let lies = self.said.iter().filter(lies).count();
            found.push(Finding::none("rows say how many there are", lies, self.rows(), "rows say something else"));
        }
        if self.quasi.iter().any(|quasi| quasi.intervals) {
            found.push(self.intervals());
            found.extend((!self.hidden).then(|| self.one_interval()));
        }
        if self.listed && self.rows() > 0 {
            let name = "one list of values in a group";
            found.push(Finding::none(name, self.torn_lists, self.groups(), "groups have several"));
            found.push(self.list_lengths());
        }
        found.extend(promises.iter().map(|&promise| self.promise(promise)));
        found.extend(self.order());
        found
    }

    /// Checks that no sensitive value makes up more than `1/l` of all rows; `None` without rows.
    pub fn no_value_beyond(&self, release: Option<u64>, l: usize) -> Option<Check> {
        let mut counts = vec![0_usize; self.values.as_ref()?.len()];
        self.sensitive.iter().for_each(|&value| counts[value as usize] += 1);
        let most = counts.into_iter().max().unwrap_or(0);
        let figures = format!("{} of {} rows have the most frequent one", thousands(most), thousands(self.rows()));
        Some(Check::new(release, format!("no sensitive value beyond 1/{l}"), most * l <= self.rows(), figures))
    }

    /// Returns the number of counterfeits by what the groups say.
    fn counterfeits(&self) -> u64 {
        if let Some(&[_, counterfeits]) = self.said.first() {
            return u64::try_from(counterfeits).unwrap_or(0);
        }
        self.of_groups(&self.counterfeits).iter().map(|&count| count.max(0) as u64).sum()
    }

    fn group_sizes(&self) -> Finding {
        let sizes = self.sizes();
        let lies = |(&group, &size): (&u32, &i64)| u64::try_from(size) != Ok(sizes[group as usize]);
        let wrong = self.group.iter().zip(&self.size).filter(|row| lies(*row)).count();
        let name = match self.listed {
            true => "group_size is the number of rows and counterfeits",
            false => "group_size is the number of rows",
        };
        Finding::none(name, wrong, self.rows(), "rows say otherwise")
    }

    /// Checks that lists have a value for each row and each counterfeit of the group.
    fn list_lengths(&self) -> Finding {
        let total = |histogram: &Vec<(u32, u64)>| histogram.iter().map(|entry| entry.1).sum::<u64>();
        let wrong = self.histograms.iter().zip(self.sizes()).filter(|(list, size)| total(list) != *size).count();
        Finding::none("lists have group_size values", wrong, self.groups(), "groups have more or fewer")
    }

    /// Checks that each group has a real row, and that its rows agree. Without a real row it should not be published.
    fn counterfeit_counts(&self) -> Finding {
        let (said, sizes) = (self.of_groups(&self.counterfeits), self.sizes());
        let lies = |(&group, &count): (&u32, &i64)| {
            count != said[group as usize] || count < 0 || count as u64 >= sizes[group as usize]
        };
        let wrong = self.group.iter().zip(&self.counterfeits).filter(|row| lies(*row)).count();
        Finding::none("counterfeits leave real rows", wrong, self.rows(), "rows say otherwise")
    }

    fn intervals(&self) -> Finding {
        let ordered = || self.quasi.iter().filter(|quasi| quasi.ordered);
        let torn = |row: usize| ordered().any(|quasi| quasi.ends[row][0] > quasi.ends[row][1]);
        let wrong = (0..self.rows()).filter(|&row| torn(row)).count();
        Finding::none("lo is not above hi", wrong, self.rows(), "rows have it above")
    }

    fn one_interval(&self) -> Finding {
        let mut wrong = vec![false; self.groups()];
        for quasi in self.quasi.iter().filter(|quasi| quasi.intervals) {
            let ends = self.of_groups(&quasi.ends);
            for (&group, own) in self.group.iter().zip(&quasi.ends) {
                wrong[group as usize] |= ends[group as usize] != *own;
            }
        }
        let wrong = wrong.into_iter().filter(|&wrong| wrong).count();
        Finding::none("one interval in a group", wrong, self.groups(), "groups have several")
    }

    fn promise(&self, promise: Promise) -> Finding {
        let groups = self.histograms.iter();
        let total = |group: &[(u32, u64)]| group.iter().map(|entry| entry.1).sum::<u64>();
        let shares = |group: &[(u32, u64)]| -> Vec<f64> {
            let total = total(group) as f64;
            group.iter().map(|entry| entry.1 as f64 / total).collect()
        };
        let (name, wrong) = match promise {
            Promise::Unique { m } => {
                let broken = |group: &[(u32, u64)]| group.len() < m || group.iter().any(|entry| entry.1 > 1);
                (format!("m-unique, m = {m}"), groups.filter(|group| broken(group)).count())
            }
            Promise::Anonymous { k } => {
                (format!("k-anonymous, k = {k}"), self.sizes().iter().filter(|&&size| size < k as u64).count())
            }
            Promise::Distinct { l } => {
                (format!("{l} different values in a group"), groups.filter(|group| group.len() < l).count())
            }
            Promise::Frequency { l } => {
                let most = |group: &[(u32, u64)]| group.iter().map(|entry| entry.1).max().unwrap_or(0);
                let broken = |group: &&Vec<(u32, u64)>| most(group) * l as u64 > total(group);
                (format!("no value beyond 1/{l} of a group"), groups.filter(broken).count())
            }
            Promise::Entropy { l } => {
                let entropy = |group: &[(u32, u64)]| -shares(group).iter().map(|share| share * share.ln()).sum::<f64>();
                let broken = |group: &&Vec<(u32, u64)>| entropy(group) < (l as f64).ln() - TOLERANCE;
                (format!("entropy of {l} values in a group"), groups.filter(broken).count())
            }
            Promise::Close { t } => (format!("t-close, t = {t}"), self.far(t)),
        };
        Finding::none(name, wrong, self.groups(), "groups break it")
    }

    /// Returns the groups whose sensitive values are farther than `t` from those of their part.
    fn far(&self, t: f64) -> usize {
        let values = self.values.as_ref().map_or(0, |values| values.len());
        let measured = self
            .values
            .as_ref()
            .is_some_and(|values| values.data_type().is_numeric() || values.data_type().is_temporal());
        let within = self.of_groups(&self.within);
        let parts = within.iter().max().map_or(0, |most| *most as usize + 1);
        let mut wholes = vec![vec![0.0; values]; parts];
        for (histogram, &part) in self.histograms.iter().zip(&within) {
            histogram.iter().for_each(|&(value, count)| wholes[part as usize][value as usize] += count as f64);
        }
        for whole in &mut wholes {
            let total: f64 = whole.iter().sum();
            whole.iter_mut().for_each(|count| *count /= total);
        }
        let far = |(histogram, &part): (&Vec<(u32, u64)>, &u32)| {
            let whole = &wholes[part as usize];
            let total: f64 = histogram.iter().map(|entry| entry.1 as f64).sum();
            let mut entries = histogram.iter().peekable();
            let (mut carried, mut work, mut occurring) = (0.0, 0.0, 0_usize);
            for (value, &share) in whole.iter().enumerate().filter(|(_, share)| **share > 0.0) {
                let own =
                    entries.next_if(|entry| entry.0 as usize == value).map_or(0.0, |entry| entry.1 as f64 / total);
                carried = if measured { carried + own - share } else { own - share };
                work += f64::abs(carried);
                occurring += 1;
            }
            let distance = if measured { work / (occurring.max(2) - 1) as f64 } else { work / 2.0 };
            distance > t + TOLERANCE
        };
        self.histograms.iter().zip(&within).filter(|group| far(*group)).count()
    }

    fn order(&self) -> Vec<Finding> {
        let finding = |what: &str, order: Order, unit: &'static str| Finding {
            name: format!("{RANDOM_ORDER}: {what}"),
            found: Found::Order(order, unit),
        };
        let deviations = "standard deviations from 0";
        let parts = self.parts();
        let of = |column: &dyn Fn(usize) -> f64| {
            together(parts.iter().map(|rows| position(rows.iter().map(|&row| column(row as usize)))))
        };
        let groups: Vec<Vec<u32>> =
            parts.iter().map(|rows| rows.iter().map(|&row| self.group[row as usize]).collect()).collect();
        let mut found = Vec::new();
        if !self.hidden {
            found = vec![
                finding("group_id and position", of(&|row| self.number[row] as f64), deviations),
                finding("counterfeits and position", of(&|row| self.counterfeits[row] as f64), deviations),
                finding(
                    "neighbours of one group",
                    neighbours(groups.iter().map(Vec::as_slice)),
                    "times the expected number",
                ),
            ];
        }
        for quasi in &self.quasi {
            let column = of(&|row| {
                let [lo, hi] = quasi.ends[row];
                f64::from(lo) + f64::from(hi)
            });
            found.push(finding(&format!("{} and position", quasi.name), column, deviations));
        }
        if !self.sensitive.is_empty() {
            let values = of(&|row| f64::from(self.sensitive[row]));
            found.push(finding("sensitive value and position", values, deviations));
        }
        if self.hidden {
            return found;
        }
        if !self.sensitive.is_empty() {
            // Of groups, each of which is in one part.
            let ascents = ascents(&self.group, &self.sensitive);
            found.push(finding("sensitive values within groups", ascents, deviations));
        }
        let numbers = self.of_groups(&self.number);
        let sizes = self.of_groups(&self.size);
        let mut by_number: Vec<(i64, i64)> = numbers.into_iter().zip(sizes).collect();
        by_number.sort_unstable();
        let of_parts = by_number.chunk_by(|a, b| part_of(a.0) == part_of(b.0));
        let sizes = together(of_parts.map(|part| position(part.iter().map(|&(_, size)| size as f64))));
        found.push(finding("group_id and group_size", sizes, deviations));
        found
    }

    /// Returns the rows of the parts in which a release was made, in their order. The order of parts is no secret; that
    /// of rows in them is random.
    fn parts(&self) -> Vec<Vec<u32>> {
        let mut parts: BTreeMap<i64, Vec<u32>> = BTreeMap::new();
        for (row, &number) in self.number.iter().enumerate() {
            parts.entry(part_of(number)).or_default().push(row as u32);
        }
        // Numbers of another kind, which would leave nothing to be looked at.
        if parts.len() > 1 && parts.len() * 2 > self.groups() {
            return vec![(0..self.number.len() as u32).collect()];
        }
        parts.into_values().collect()
    }
}

/// Returns the part in the upper half of a group's number. It is 0 unless the release was made in parts (cells).
pub fn part_of(number: i64) -> i64 {
    number >> 32
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use datafusion::arrow::array::{ArrayRef, Int32Array, Int64Array, RecordBatch, StringArray, StructArray};
    use datafusion::arrow::datatypes::{DataType, Field};

    use super::super::TableColumns;
    use super::*;

    /// Group, lo, hi, value, size, counterfeits.
    type Row = (i64, i32, i32, &'static str, i32, i32);

    fn table(rows: &[Row]) -> ReleasedTable {
        let integers =
            |of: fn(&Row) -> i32| -> ArrayRef { Arc::new(Int32Array::from_iter_values(rows.iter().map(of))) };
        let end = |name: &str| Arc::new(Field::new(name, DataType::Int32, true));
        let age = StructArray::from(vec![(end("lo"), integers(|row| row.1)), (end("hi"), integers(|row| row.2))]);
        let batch = RecordBatch::try_from_iter([
            ("age", Arc::new(age) as ArrayRef),
            ("disease", Arc::new(StringArray::from_iter_values(rows.iter().map(|row| row.3)))),
            ("group_id", Arc::new(Int64Array::from_iter_values(rows.iter().map(|row| row.0)))),
            ("group_size", integers(|row| row.4)),
            ("counterfeits", integers(|row| row.5)),
        ]);
        let columns =
            TableColumns { quasi: vec!["age".to_owned()], sensitive: Some("disease".to_owned()), within: None };
        ReleasedTable::try_new(&batch.unwrap(), &columns).unwrap()
    }

    fn failing(table: &ReleasedTable, promises: &[Promise]) -> Vec<String> {
        table.checks(None, promises).into_iter().filter(|check| !check.passed).map(|check| check.name).collect()
    }

    const GOOD: [Row; 4] = [(2, 1, 5, "a", 2, 0), (1, 4, 9, "b", 2, 1), (2, 1, 5, "b", 2, 0), (1, 4, 9, "c", 2, 1)];

    #[test]
    fn a_release_that_keeps_its_promises() {
        let all = [
            Promise::Unique { m: 2 },
            Promise::Anonymous { k: 2 },
            Promise::Distinct { l: 2 },
            Promise::Frequency { l: 2 },
            Promise::Entropy { l: 2 },
            Promise::Close { t: 0.5 },
        ];
        assert!(failing(&table(&GOOD), &all).is_empty());
        let mut findings = ReleaseFindings::default();
        findings.add(&table(&GOOD), &all);
        assert_eq!(findings.figures(), [4, 2, 1]);
    }

    /// Each broken promise alone fails one check.
    #[test]
    fn each_broken_promise_is_found() {
        let with = |row: usize, change: fn(&mut Row)| {
            let mut rows = GOOD;
            change(&mut rows[row]);
            table(&rows)
        };
        let unique = [Promise::Unique { m: 2 }];
        assert_eq!(failing(&with(2, |row| row.3 = "a"), &unique), ["m-unique, m = 2"]);
        assert_eq!(failing(&table(&GOOD), &[Promise::Unique { m: 3 }]), ["m-unique, m = 3"]);
        assert_eq!(
            failing(&with(2, |row| row.3 = "a"), &[Promise::Frequency { l: 2 }]),
            ["no value beyond 1/2 of a group"]
        );
        assert_eq!(
            failing(&with(2, |row| row.3 = "a"), &[Promise::Entropy { l: 2 }]),
            ["entropy of 2 values in a group"]
        );
        assert_eq!(
            failing(&with(2, |row| row.3 = "a"), &[Promise::Distinct { l: 2 }]),
            ["2 different values in a group"]
        );
        assert_eq!(failing(&table(&GOOD), &[Promise::Anonymous { k: 3 }]), ["k-anonymous, k = 3"]);
        assert_eq!(failing(&table(&GOOD), &[Promise::Close { t: 0.2 }]), ["t-close, t = 0.2"]);
        assert_eq!(failing(&with(0, |row| row.4 = 3), &unique), ["group_size is the number of rows"]);
        assert_eq!(failing(&with(1, |row| row.5 = 0), &unique), ["counterfeits leave real rows"]);
        assert_eq!(failing(&with(0, |row| row.2 = 4), &unique), ["one interval in a group"]);
        let mut torn = GOOD;
        torn[0].1 = 7;
        torn[2].1 = 7;
        assert_eq!(failing(&table(&torn), &unique), ["lo is not above hi"]);
    }

    /// A release that is looked at part by part has the findings of all parts.
    #[test]
    fn parts_add_up() {
        let promises = [Promise::Unique { m: 2 }];
        let mut broken = GOOD;
        broken[2].3 = "a";
        let mut findings = ReleaseFindings::default();
        for part in [&GOOD, &broken, &GOOD] {
            findings.add(&table(part), &promises);
        }
        assert_eq!(findings.figures(), [12, 6, 3]);
        let checks = findings.checks(Some(1));
        let failed: Vec<_> = checks.iter().filter(|check| !check.passed).collect();
        assert_eq!(failed.len(), 1);
        assert_eq!(
            (failed[0].name.as_str(), failed[0].figures.as_str()),
            ("m-unique, m = 2", "1 of 6 groups break it")
        );
    }

    /// Rows sorted by group, as an implementation without a shuffle would leave them.
    #[test]
    fn rows_in_order_are_found() {
        let rows: Vec<_> =
            (0..400).map(|row| (i64::from(row / 2), row / 2, row / 2, ["a", "b"][row as usize % 2], 2, 0)).collect();
        let found = failing(&table(&rows), &[Promise::Unique { m: 2 }]);
        let expected =
            ["group_id and position", "neighbours of one group", "age and position", "sensitive values within groups"];
        assert_eq!(found, expected.map(|what| format!("random order: {what}")));
    }
}
