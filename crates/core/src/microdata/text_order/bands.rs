//! Bands of numbers: `5-9`, `10 to 14`, `[20, 30)`, `under 5`, `85+`.

use super::numbers::plain;

const BELOW: [&str; 7] = ["<=", "<", "≤", "under", "below", "less than", "up to"];
const ABOVE: [&str; 7] = [">=", ">", "≥", "over", "above", "more than", "at least"];
const OPEN: [&str; 8] = ["+", "and over", "and above", "and older", "and more", "or more", "or over", "or older"];
const BETWEEN: [&str; 6] = ["–", "—", "..", " to ", ";", "-"];

/// Padding of numbers in bands by zeros: it orders texts like the numbers.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Padding {
    /// Digits of each number.
    pub digits: usize,
    /// True if bands beginning with "less than" or the like get a leading blank.
    pub below: bool,
}

/// Returns the least number of each band; `None` if one is no band, or all are single numbers.
pub(super) fn read(texts: &[&str]) -> Option<Vec<f64>> {
    texts.iter().map(|text| least(&text.trim().to_lowercase())).collect()
}

fn least(text: &str) -> Option<f64> {
    let without_unit = |text: &str| plain(text.trim().trim_end_matches(|c: char| c.is_alphabetic() || c == ' '));
    let number = |text: &str| without_unit(&text.replace(',', ""));
    let after = |words: &[&str]| words.iter().find_map(|word| text.strip_prefix(word)).map(number);
    if let Some(found) = after(&BELOW) {
        return found.map(|_| f64::NEG_INFINITY);
    }
    if let Some(found) = after(&ABOVE).or_else(|| OPEN.iter().find_map(|word| text.strip_suffix(word)).map(number)) {
        return found;
    }
    if let Some(inner) = text.strip_prefix(['[', '(', ']']).and_then(|text| text.strip_suffix([']', ')', '['])) {
        let (low, high) = inner.split_once([',', ';']).or_else(|| inner.split_once('-'))?;
        return number(low)
            .or_else(|| (low.trim() == "-inf").then_some(f64::NEG_INFINITY))
            .filter(|_| !high.is_empty());
    }
    if let Some(alone) = number(text) {
        return Some(alone);
    }
    let (low, high) = BETWEEN.iter().find_map(|word| text.split_once(word))?;
    let (low, high) = (number(low)?, number(high)?);
    (low <= high).then_some(low)
}

impl Padding {
    /// Returns the padding that orders these bands by their least numbers, if one does.
    pub(super) fn of(texts: &[&str], keys: &[f64]) -> Option<Self> {
        let longest = texts.iter().flat_map(|text| runs(text)).map(|(_, digits)| digits.len()).max()?;
        let digits = longest.div_ceil(3) * 3;
        [false, true].into_iter().map(|below| Self { digits, below }).find(|padding| {
            let mut padded: Vec<(String, f64)> =
                texts.iter().zip(keys).map(|(text, key)| (padding.padded(text), *key)).collect();
            padded.sort_by(|(a, _), (b, _)| a.cmp(b));
            padding.digits <= 18 && padded.iter().map(|(_, key)| *key).is_sorted()
        })
    }

    /// Returns what the expression in SQL makes of a text.
    fn padded(&self, text: &str) -> String {
        let mut padded = String::new();
        for (before, digits) in runs(text) {
            padded += before;
            if !digits.is_empty() {
                padded += &format!("{:0>1$}", digits.trim_start_matches('0'), self.digits);
            }
        }
        let small = padded.trim_start_matches(' ').to_lowercase();
        match self.below && BELOW.iter().any(|word| small.starts_with(word)) {
            true => format!(" {}", padded.trim_start_matches(' ')),
            false => padded,
        }
    }
}

/// Returns a text as pieces without digits, each with the digits that follow.
fn runs(text: &str) -> impl Iterator<Item = (&str, &str)> {
    let mut rest = text;
    std::iter::from_fn(move || {
        if rest.is_empty() {
            return None;
        }
        let first = rest.find(|c: char| c.is_ascii_digit()).unwrap_or(rest.len());
        let (before, digits) = rest.split_at(first);
        let end = digits.find(|c: char| !c.is_ascii_digit()).unwrap_or(digits.len());
        let (digits, after) = digits.split_at(end);
        rest = after;
        Some((before, digits))
    })
}
