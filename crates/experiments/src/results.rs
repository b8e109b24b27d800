//! Points, and what is read off them.

use serde::{Deserialize, Serialize};

use super::experiment::Finding;

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct Point {
    pub(super) figure: String,
    pub(super) series: String,
    pub(super) x: f64,
    pub(super) y: f64,
}

impl Point {
    pub(super) fn new(figure: &str, series: impl Into<String>, x: f64, y: f64) -> Self {
        Self { figure: figure.to_owned(), series: series.into(), x, y }
    }
}

/// All points of an experiment. Several ones at one place of a series (of several runs) stand for their mean.
#[derive(Debug, Default)]
pub(super) struct Results {
    points: Vec<Point>,
}

impl Results {
    pub(super) fn extend(&mut self, points: Vec<Point>) {
        self.points.extend(points);
    }

    pub(super) fn points(&self) -> &[Point] {
        &self.points
    }

    /// Names of a figure's series, in order of appearance.
    pub(super) fn names(&self, figure: &str) -> Vec<&str> {
        let mut names: Vec<&str> = Vec::new();
        for point in self.points.iter().filter(|point| point.figure == figure) {
            if !names.contains(&point.series.as_str()) {
                names.push(&point.series);
            }
        }
        names
    }

    /// Returns a series, by ascending `x`.
    pub(super) fn series(&self, figure: &str, name: &str) -> Vec<(f64, f64)> {
        let mut all: Vec<(f64, f64)> = (self.points.iter())
            .filter(|point| point.figure == figure && point.series == name)
            .map(|point| (point.x, point.y))
            .collect();
        all.sort_by(|a, b| a.0.total_cmp(&b.0));
        all.chunk_by(|a, b| a.0 == b.0).map(|run| (run[0].0, mean(run))).collect()
    }

    pub(super) fn all(&self, figure: &str) -> Vec<(&str, Vec<(f64, f64)>)> {
        self.names(figure).into_iter().map(|name| (name, self.series(figure, name))).collect()
    }

    /// Returns a finding for each series of a figure: its first and last value, before `what`.
    pub(super) fn each(
        &self,
        figure: &str,
        claim: &str,
        what: &str,
        holds: impl Fn(&[(f64, f64)]) -> bool,
    ) -> Vec<Finding> {
        let one = |(name, series): (&str, Vec<_>)| {
            Finding::new(claim, format!("{name}: {}{what}", ends(&series)), holds(&series))
        };
        self.all(figure).into_iter().map(one).collect()
    }

    /// Returns the same of figures that need not agree.
    pub(super) fn each_beside(&self, figure: &str, claim: &str, what: &str) -> Vec<Finding> {
        let beside = |finding| Finding { holds: None, ..finding };
        self.each(figure, claim, what, |_| true).into_iter().map(beside).collect()
    }

    /// Returns the greatest `y` of a figure, or of one series.
    pub(super) fn greatest(&self, figure: &str, name: Option<&str>) -> f64 {
        let of = self.points.iter().filter(|p| p.figure == figure && name.is_none_or(|name| p.series == name));
        of.map(|point| point.y).fold(f64::NEG_INFINITY, f64::max)
    }
}

pub(super) fn mean(series: &[(f64, f64)]) -> f64 {
    series.iter().map(|point| point.1).sum::<f64>() / series.len().max(1) as f64
}

/// Returns true if a series falls by this share of the first, or stays zero. It is measured from the first to the last point.
pub(super) fn falls(series: &[(f64, f64)], by: f64) -> bool {
    match (series.first(), series.last()) {
        (Some(first), Some(last)) => last.1 <= first.1 * (1.0 - by),
        _ => false,
    }
}

/// Returns true if a series rises by at least this share of the first. It is measured from the first to the last point.
pub(super) fn rises(series: &[(f64, f64)], by: f64) -> bool {
    match (series.first(), series.last()) {
        (Some(first), Some(last)) => last.1 >= first.1 * (1.0 + by) && last.1 > first.1,
        _ => false,
    }
}

/// Returns true if one series is nowhere above another.
pub(super) fn below(lower: &[(f64, f64)], upper: &[(f64, f64)]) -> bool {
    let at = |x: f64| upper.iter().find(|point| point.0 == x).map(|point| point.1);
    !lower.is_empty() && lower.iter().all(|&(x, y)| at(x).is_some_and(|upper| y <= upper))
}

/// Describes the first and last value of a series: `1.2 to 3.4`.
pub(super) fn ends(series: &[(f64, f64)]) -> String {
    match (series.first(), series.last()) {
        (Some(first), Some(last)) => format!("{} to {}", number(first.1), number(last.1)),
        _ => "nothing".to_owned(),
    }
}

/// Returns a number as people write it: three digits that count, thousands apart.
pub fn number(value: f64) -> String {
    let size = value.abs();
    if size >= 1000.0 {
        let digits = format!("{size:.0}");
        let groups: Vec<&str> =
            digits.as_bytes().rchunks(3).rev().map(|group| std::str::from_utf8(group).unwrap_or("")).collect();
        return format!("{}{}", if value < 0.0 { "-" } else { "" }, groups.join(","));
    }
    let digits = match size {
        size if size >= 100.0 || size == size.trunc() => 0,
        size if size >= 10.0 => 1,
        size if size >= 1.0 => 2,
        size if size >= 0.01 => 3,
        _ => 4,
    };
    format!("{value:.digits$}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn series_are_sorted_and_averaged() {
        let mut results = Results::default();
        let points = [("a", 2.0, 1.0), ("a", 1.0, 5.0), ("b", 1.0, 7.0), ("a", 2.0, 3.0)];
        results.extend(points.map(|(series, x, y)| Point::new("1", series, x, y)).to_vec());
        results.extend(vec![Point::new("2", "a", 0.0, 100.0)]);
        assert_eq!(results.names("1"), ["a", "b"]);
        assert_eq!(results.series("1", "a"), [(1.0, 5.0), (2.0, 2.0)]);
        assert_eq!(results.greatest("1", None), 7.0);
        assert_eq!(results.greatest("1", Some("a")), 5.0);
    }

    #[test]
    fn shapes() {
        let series = [(1.0, 4.0), (2.0, 5.0), (3.0, 2.0)];
        assert!(falls(&series, 0.5) && !falls(&series, 0.51) && !rises(&series, 0.0));
        assert!(falls(&[(1.0, 0.0), (2.0, 0.0)], 0.1) && !rises(&[(1.0, 0.0), (2.0, 0.0)], 0.1));
        assert!(below(&series, &[(1.0, 4.0), (2.0, 6.0), (3.0, 2.0)]) && !below(&series, &[(1.0, 9.0)]));
        assert!(!falls(&[], 0.0) && !below(&[], &[]));
    }

    #[test]
    fn numbers() {
        let written = [0.0, 0.00012, 0.1234, 1.234, 45.67, 100.4, 1234567.8, -4321.0].map(number);
        assert_eq!(written, ["0", "0.0001", "0.123", "1.23", "45.7", "100", "1,234,568", "-4,321"]);
    }
}
