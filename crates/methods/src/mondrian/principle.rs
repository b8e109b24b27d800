//! Principle that every group must keep, with fast answers to whether it does.

use super::{Diversity, Mondrian};
use crate::error::{Cures, Error, Result, thousands};
use crate::microdata::{Codes, Microdata};

/// Comparisons of logarithms and distances allow for this much rounding.
pub(super) const TOLERANCE: f64 = 1e-9;

/// Greatest domain of sensitive values that is counted in an array; larger ones are sorted.
const COUNTED: usize = 1 << 16;

/// The parameters, with facts about the whole table. They are of one part of it, where it is anonymized part by part.
#[derive(Debug)]
pub(super) struct Principle {
    pub params: Mondrian,
    /// Sensitive value of each row, numbered among those that occur. Empty where values do not matter.
    ranks: Codes,
    values: usize,
    whole: Option<Whole>,
}

impl Principle {
    /// # Errors
    /// When the table as a whole does not keep it, so that no group could be made.
    pub(super) fn try_new(params: &Mondrian, microdata: &Microdata) -> Result<Self> {
        let mut principle = Self { params: params.clone(), ranks: Codes::default(), values: 0, whole: None };
        if principle.looks_at_values() {
            let sensitive = microdata.sensitive()?;
            (principle.ranks, principle.values) = among_occurring(&microdata.sensitive_codes, sensitive.domain.len());
            if params.t.is_some() {
                let ordered = sensitive.domain.is_measured();
                principle.whole = Some(Whole::new(&principle.ranks, principle.values, ordered));
            }
        }
        if microdata.rows == 0 {
            return Ok(principle);
        }
        if microdata.rows < params.k {
            let text = format!("k = {} but there are only {} rows", thousands(params.k), thousands(microdata.rows));
            let lower = Some(("k", microdata.rows)).filter(|(_, k)| *k > 1);
            return Err(Error::unfit(text, Cures { lower, rows: "rows", ..Cures::default() }));
        }
        let mut counts = principle.counts();
        match principle.ranks.is_empty() {
            true => counts.rows = microdata.rows,
            false => principle.ranks.iter().for_each(|rank| counts.add(rank)),
        }
        match principle.holds(&mut counts) {
            true => Ok(principle),
            false => Err(principle.refusal(microdata)),
        }
    }

    /// Returns the least number of rows of a group.
    pub(super) fn least(&self) -> usize {
        self.params.k.max(self.params.l.unwrap_or(1)).max(1)
    }

    /// Returns the number of a row's sensitive value among those that occur.
    pub(super) fn value_of(&self, row: u32) -> u32 {
        if (row as usize) < self.ranks.len() { self.ranks.at(row) } else { 0 }
    }

    /// Returns the same of all rows; empty where values do not matter.
    pub(super) fn ranks(&self) -> &Codes {
        &self.ranks
    }

    /// Returns the number of sensitive values that occur.
    pub(super) fn values(&self) -> usize {
        self.values
    }

    /// Returns true if sensitive values matter at all.
    pub(super) fn looks_at_values(&self) -> bool {
        self.params.l.is_some() || self.params.t.is_some()
    }

    /// Returns `l`, if values matter by their frequency only.
    pub(super) fn frequency_alone(&self) -> Option<usize> {
        let by_frequency = self.params.diversity.unwrap_or_default() == Diversity::Frequency;
        self.params.l.filter(|_| by_frequency && self.params.t.is_none())
    }

    /// Returns an empty count of sensitive values.
    pub(super) fn counts(&self) -> Counts {
        let counted = if self.values <= COUNTED { self.values } else { 0 };
        let ignored = !self.looks_at_values();
        Counts { rows: 0, of: vec![0; counted], codes: Vec::new(), sorts: counted < self.values, ignored }
    }

    /// Returns true if rows with these counts may be a group. Empties the counts.
    pub(super) fn holds(&self, counts: &mut Counts) -> bool {
        let rows = std::mem::take(&mut counts.rows);
        let large_enough = rows >= self.least();
        if !self.looks_at_values() {
            return large_enough;
        }
        counts.finish();
        let holds = large_enough && self.is_diverse(counts, rows) && self.is_close(counts, rows);
        counts.clear();
        holds
    }

    /// Computes the distance between rows with these sensitive values and the whole table. Values are numbered as by
    /// [`value_of`](Self::value_of). Leaves the counts as empty as they must be.
    pub(super) fn distance(&self, codes: &[u32], counts: &mut Counts) -> Option<f64> {
        let whole = self.whole.as_ref()?;
        codes.iter().for_each(|&code| counts.add(code));
        counts.finish();
        let distance = whole.distance(counts, codes.len());
        counts.clear();
        counts.rows = 0;
        Some(distance)
    }

    fn is_diverse(&self, counts: &Counts, rows: usize) -> bool {
        let Some(l) = self.params.l else { return true };
        match self.params.diversity.unwrap_or_default() {
            Diversity::Distinct => counts.codes.len() >= l,
            Diversity::Frequency => counts.each().all(|(_, count)| (count as usize).saturating_mul(l) <= rows),
            Diversity::Entropy => {
                let weighted: f64 = counts.each().map(|(_, count)| f64::from(count) * f64::from(count).ln()).sum();
                (rows as f64).ln() - weighted / rows as f64 >= (l as f64).ln() - TOLERANCE
            }
        }
    }

    fn is_close(&self, counts: &mut Counts, rows: usize) -> bool {
        let (Some(t), Some(whole)) = (self.params.t, &self.whole) else { return true };
        whole.distance(counts, rows) <= t.get() + TOLERANCE
    }

    fn refusal(&self, microdata: &Microdata) -> Error {
        let name = microdata.sensitive.as_ref().map_or("", |sensitive| sensitive.field.name());
        let mut counts = vec![0_usize; self.values];
        self.ranks.iter().for_each(|value| counts[value as usize] += 1);
        let distinct = self.values;
        let most = counts.iter().max().copied().unwrap_or(0);
        let rows = microdata.rows;
        let l = self.params.l.unwrap_or(1);
        let allowed = match self.params.diversity.unwrap_or_default() {
            Diversity::Distinct => distinct,
            Diversity::Frequency => rows / most.max(1),
            Diversity::Entropy => {
                let shares = counts.iter().filter(|&&count| count > 0).map(|&count| count as f64 / rows as f64);
                let entropy: f64 = shares.map(|share| -share * share.ln()).sum();
                (entropy + TOLERANCE / 2.0).exp().floor() as usize
            }
        };
        let lower = Some(("l", allowed.min(l.saturating_sub(1)))).filter(|(_, l)| *l > 1);
        if distinct < l {
            let text = format!(
                "l = {l} but the sensitive column {name} has only {distinct} distinct values, so l can be at most {distinct}"
            );
            return Error::unfit(text, Cures { lower, rows: "rows of more values", ..Cures::default() });
        }
        // Different values in every group are all that is asked for then, and these rows have as many.
        let or = Some(("diversity", "'distinct'")).filter(|_| !self.params.fair);
        match self.params.diversity.unwrap_or_default() {
            Diversity::Frequency => {
                let text = format!(
                    "the {} rows are not {l}-diverse: the most frequent value of {name} makes up {:.2}% of them and at most \
                     1/l = {:.2}% is allowed",
                    thousands(rows),
                    100.0 * most as f64 / rows as f64,
                    100.0 / l as f64
                );
                Error::unfit(text, Cures { lower, or, rows: "rows of other values", ..Cures::default() })
            }
            _ => {
                let text = format!(
                    "the {} rows are not entropy {l}-diverse: the values of {name} are too unevenly distributed for l = {l}",
                    thousands(rows)
                );
                Error::unfit(text, Cures { lower, or, rows: "rows of other values", ..Cures::default() })
            }
        }
    }
}

/// Numbers the codes among those that occur, in their order; and how many those are.
fn among_occurring(codes: &Codes, domain: usize) -> (Codes, usize) {
    // A part may be much smaller than the domain of the whole table.
    if codes.len() < domain / 8 {
        let mut occurring: Vec<u32> = codes.iter().collect();
        occurring.sort_unstable();
        occurring.dedup();
        let rank = |code: u32| occurring.partition_point(|&other| other < code) as u32;
        return (codes.iter().map(rank).collect(), occurring.len());
    }
    let mut rank_of = vec![0_u32; domain];
    codes.iter().for_each(|code| rank_of[code as usize] = 1);
    let mut values = 0;
    for rank in &mut rank_of {
        let occurs = *rank;
        *rank = values;
        values += occurs;
    }
    let mut ranks = codes.clone();
    ranks.rank(&rank_of);
    (ranks, values as usize)
}

/// Counts of rows with each sensitive value.
#[derive(Debug)]
pub(super) struct Counts {
    pub rows: usize,
    /// Count of each code; where codes are sorted instead, of each of `codes`.
    of: Vec<u32>,
    /// Codes that occur; where codes are sorted, all of them until [`finish`](Self::finish).
    codes: Vec<u32>,
    sorts: bool,
    /// Only the number of rows matters.
    ignored: bool,
}

impl Counts {
    #[inline]
    pub(super) fn add(&mut self, code: u32) {
        self.rows += 1;
        if self.ignored {
            return;
        }
        if self.sorts {
            self.codes.push(code);
            return;
        }
        let count = &mut self.of[code as usize];
        if *count == 0 {
            self.codes.push(code);
        }
        *count += 1;
    }

    fn finish(&mut self) {
        if self.sorts {
            self.codes.sort_unstable();
            self.of.clear();
            self.of.extend(self.codes.chunk_by(|a, b| a == b).map(|run| run.len() as u32));
            self.codes.dedup();
        }
    }

    /// Returns the codes that occur, each with its count.
    fn each(&self) -> impl Iterator<Item = (u32, u32)> + '_ {
        (0..).zip(&self.codes).map(|(place, &code): (usize, &u32)| {
            let count = if self.sorts { self.of[place] } else { self.of[code as usize] };
            (code, count)
        })
    }

    fn sort(&mut self) {
        if !self.sorts {
            self.codes.sort_unstable();
        }
    }

    fn clear(&mut self) {
        if self.sorts {
            self.of.clear();
        } else {
            self.codes.iter().for_each(|&code| self.of[code as usize] = 0);
        }
        self.codes.clear();
    }
}

/// The distribution of sensitive values in the whole table, for t-closeness.
#[derive(Debug)]
struct Whole {
    /// Share of the values below each code, and of all at the end.
    below: Vec<f64>,
    /// Sums of `below` up to each code, so that sums over ranges take no time.
    sums: Vec<f64>,
    ordered: bool,
}

impl Whole {
    fn new(codes: &Codes, values: usize, ordered: bool) -> Self {
        let mut counts = vec![0_u32; values];
        codes.iter().for_each(|code| counts[code as usize] += 1);
        let mut below = vec![0.0];
        let mut seen = 0.0;
        for count in counts {
            seen += f64::from(count);
            below.push(seen / codes.len().max(1) as f64);
        }
        let mut sums = vec![0.0];
        for share in &below {
            sums.push(sums[sums.len() - 1] + share);
        }
        Self { below, sums, ordered }
    }

    /// Computes the earth mover's distance between some rows and the whole. It is by Li, Li and Venkatasubramanian
    /// (ICDE 2007, Section 4): for categories all values are equally far apart, numbers and times as many steps as lie
    /// between them in their order, as a share of the longest way.
    fn distance(&self, counts: &mut Counts, rows: usize) -> f64 {
        let share = |count: u32| f64::from(count) / rows as f64;
        if !self.ordered {
            let of = |code: u32| self.below[code as usize + 1] - self.below[code as usize];
            return counts.each().map(|(code, count)| (share(count) - of(code)).max(0.0)).sum();
        }
        counts.sort();
        let values = self.below.len() - 1;
        let (mut distance, mut cumulated, mut from) = (0.0, 0.0, 1);
        // Between two values that occur, the share of the rows up to there stays the same.
        for (code, count) in counts.each().map(|(code, count)| (code as usize, share(count))).chain([(values, 0.0)]) {
            distance += self.difference(from, code + 1, cumulated);
            cumulated += count;
            from = code + 1;
        }
        distance / (values.max(2) - 1) as f64
    }

    /// Returns the sum of `|below[i] - share|` over `i` in `from..to`.
    fn difference(&self, from: usize, to: usize, share: f64) -> f64 {
        let to = to.min(self.below.len());
        if from >= to {
            return 0.0;
        }
        let middle = from + self.below[from..to].partition_point(|&below| below < share);
        let sum = |from: usize, to: usize| self.sums[to] - self.sums[from];
        (share * (middle - from) as f64 - sum(from, middle)) + (sum(middle, to) - share * (to - middle) as f64)
    }
}
