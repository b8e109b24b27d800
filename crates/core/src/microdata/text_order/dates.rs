//! Dates that do not begin with the year, or are not padded with zeros.

/// The order of day, month and year, and what is between them.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Pattern {
    parts: [Part; 3],
    between: char,
    long_year: bool,
    named_month: bool,
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum Part {
    Day,
    Month,
    Year,
}
use Part::{Day, Month, Year};

const MONTHS: [&str; 12] = ["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"];

impl Pattern {
    /// Returns the pattern as `to_date` takes it.
    pub(super) fn format(&self) -> String {
        let part = |part: &Part| match part {
            Day => "%d",
            Month if self.named_month => "%b",
            Month => "%m",
            Year if self.long_year => "%Y",
            Year => "%y",
        };
        self.parts.iter().map(part).collect::<Vec<_>>().join(&self.between.to_string())
    }

    /// Returns a number that grows with the date.
    fn key(&self, text: &str) -> Option<f64> {
        let mut found = [0_u32; 3];
        let mut words = text.trim().split(self.between);
        for part in self.parts {
            let word = words.next()?;
            let is_number = !word.is_empty() && word.bytes().all(|byte| byte.is_ascii_digit());
            let (place, value, fits) = match part {
                Day => (2, word.parse().ok()?, is_number && word.len() <= 2),
                Year => (0, word.parse().ok()?, is_number && word.len() == if self.long_year { 4 } else { 2 }),
                Month if self.named_month => {
                    (1, MONTHS.iter().position(|month| word.eq_ignore_ascii_case(month))? as u32 + 1, true)
                }
                Month => (1, word.parse().ok()?, is_number && word.len() <= 2),
            };
            if !fits {
                return None;
            }
            found[place] = value;
        }
        let [mut year, month, day] = found;
        if !self.long_year {
            year += if year < 69 { 2000 } else { 1900 };
        }
        let is_date = words.next().is_none() && (1..=12).contains(&month) && (1..=31).contains(&day);
        is_date.then(|| f64::from((year * 100 + month) * 100 + day))
    }
}

/// Returns the pattern in which all of these texts are dates, with ordered numbers. The numbers are in the order of the dates.
pub(super) fn read(texts: &[&str]) -> Option<(Pattern, Vec<f64>)> {
    // Of dates that can be read in both ways, those with points begin with the day everywhere.
    let orders = [([Day, Month, Year], '.'), ([Month, Day, Year], '/'), ([Day, Month, Year], '/')];
    let orders = orders.into_iter().chain([([Day, Month, Year], '-'), ([Month, Day, Year], '-')]);
    let orders = orders.chain(['-', '/', '.'].map(|between| ([Year, Month, Day], between)));
    let numbered = orders.flat_map(|(parts, between)| {
        [true, false].map(|long_year| Pattern { parts, between, long_year, named_month: false })
    });
    let named = [' ', '-', '/'].map(|between| Pattern {
        parts: [Day, Month, Year],
        between,
        long_year: true,
        named_month: true,
    });
    numbered.chain(named).find_map(|pattern| {
        let keys = texts.iter().map(|text| pattern.key(text)).collect::<Option<Vec<f64>>>()?;
        Some((pattern, keys))
    })
}
