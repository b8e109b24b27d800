//! Describes what the values of a column may hide: different spellings of one value, and values that stand for no answer.
//!
//! Remarks have counts and the name of the column, and none of its values.

use datafusion::arrow::array::{Array, ArrayRef, AsArray};
use datafusion::arrow::compute::cast;
use datafusion::arrow::datatypes::{DataType, Float64Type};
use datafusion::common::Result;
use datafusion::common::utils::quote_identifier;
use rustc_hash::{FxBuildHasher, FxHashMap};
use std::hash::BuildHasher;

use crate::error::thousands;

/// Bytes that a different text takes while spellings are compared.
pub(super) const BYTES_PER_TEXT: usize = 48;

/// Texts that stand for no answer, in lower case, with commas between them; the first is empty.
const NO_ANSWER: &str = "\
    ,na,n/a,n.a.,nan,null,nil,?,??,-,--,.,unknown,unk,not known,missing,no answer,not available,not applicable,\
    not stated,not specified,unspecified,undefined,refused,don't know,dont know,dk,unbekannt,keine angabe,k.a.";
/// Numbers that stand for no answer where they lie apart from all others.
const CODES: [f64; 5] = [99.0, 999.0, 9999.0, 99_999.0, 999_999.0];

/// The different values of a column, and in how many rows each is.
#[derive(Debug)]
pub(super) struct Counted<'a> {
    pub values: &'a ArrayRef,
    pub rows: &'a [usize],
}

impl Counted<'_> {
    /// Returns what there is to remark of a column of this name.
    /// Fails when Arrow cannot read texts or numbers.
    pub(super) fn remarks(&self, name: &str) -> Result<Vec<String>> {
        let name = quote_identifier(name);
        let mut remarks = Vec::new();
        let (mut spelled, mut unanswered) = (None, 0);
        match self.values.data_type() {
            DataType::Utf8View => {
                spelled = self.spelled();
                unanswered = self.texts().filter(|(text, _)| is_no_answer(text)).map(|(_, rows)| rows).sum();
                unanswered += self.text_codes();
            }
            other if other.is_numeric() => unanswered = codes(&self.numbers()?),
            _ => {}
        }
        if let Some(Spelled { values, rows, inner }) = spelled {
            let one = match inner {
                true => format!("lower(regexp_replace(trim({name}), '\\s+', ' ', 'g'))"),
                false => format!("lower(trim({name}))"),
            };
            remarks.push(format!(
                "{} values, in {} rows, differ from another one only in case or blanks: make them one, as {one} AS {name}",
                thousands(values),
                thousands(rows)
            ));
        }
        if unanswered > 0 {
            let condition = match self.values.data_type().is_numeric() {
                true => format!("{name} IN (-1, -9, -99, -999, 99, 999, 9999)"),
                false => format!("lower(trim({name})) IN ('', 'na', 'n/a', 'unknown', '?', '-', '99')"),
            };
            remarks.push(format!(
                "{} rows may have no answer (values like NA, unknown, ?, -, n/a, 99): give them one spelling, or NULL, as CASE WHEN {condition} \
                 THEN NULL ELSE {name} END AS {name}",
                thousands(unanswered)
            ));
        }
        Ok(remarks)
    }

    fn texts(&self) -> impl Iterator<Item = (&str, usize)> {
        let texts = self.values.as_string_view().iter().zip(self.rows);
        texts.filter_map(|(text, &rows)| text.map(|text| (text, rows)))
    }

    fn spelled(&self) -> Option<Spelled> {
        let (values, rows) = self.alike(&folded);
        if values == 0 {
            return None;
        }
        let (at_ends, _) = self.alike(&|text| text.trim().to_lowercase());
        Some(Spelled { values, rows, inner: at_ends < values })
    }

    /// Returns the number of values that share a form with others, and their rows.
    fn alike(&self, form: &dyn Fn(&str) -> String) -> (usize, usize) {
        let mut forms: FxHashMap<u64, (usize, usize)> = FxHashMap::default();
        for (text, rows) in self.texts() {
            let of = forms.entry(FxBuildHasher.hash_one(form(text))).or_default();
            *of = (of.0 + 1, of.1 + rows);
        }
        let several = forms.values().filter(|(values, _)| *values > 1);
        several.fold((0, 0), |sum, of| (sum.0 + of.0, sum.1 + of.1))
    }

    /// Returns the rows of codes for no answer among texts of numbers.
    fn text_codes(&self) -> usize {
        let numbers = self.texts().filter_map(|(text, rows)| Some((text.trim().parse().ok()?, rows)));
        let numbers: Vec<(f64, usize)> = numbers.filter(|(number, _): &(f64, usize)| number.is_finite()).collect();
        match numbers.len() * 2 < self.values.len() {
            true => numbers.iter().filter(|(number, _)| CODES.contains(number)).map(|(_, rows)| rows).sum(),
            false => codes(&numbers),
        }
    }

    fn numbers(&self) -> Result<Vec<(f64, usize)>> {
        let numbers = cast(self.values, &DataType::Float64)?;
        let numbers = numbers.as_primitive::<Float64Type>().iter().zip(self.rows);
        Ok(numbers.filter_map(|(number, &rows)| Some((number.filter(|number| number.is_finite())?, rows))).collect())
    }
}

/// Values of which there are several spellings.
struct Spelled {
    values: usize,
    rows: usize,
    /// True if some differ in blanks between words.
    inner: bool,
}

/// Returns a text in lower case with one blank between words.
fn folded(text: &str) -> String {
    text.split_whitespace().map(str::to_lowercase).collect::<Vec<_>>().join(" ")
}

fn is_no_answer(text: &str) -> bool {
    let folded = if text.len() < 20 { folded(text) } else { return false };
    NO_ANSWER.split(',').any(|none| none == folded)
}

/// Returns the rows of numbers that stand for no answer: 99 and the like beyond all others, and the only negative ones.
fn codes(numbers: &[(f64, usize)]) -> usize {
    let mut sorted = numbers.to_vec();
    sorted.sort_unstable_by(|a, b| a.0.total_cmp(&b.0));
    let apart = match sorted.as_slice() {
        [.., (below, fewer), (most, rows)] if CODES.contains(most) => {
            let far = if *most > 99.0 { below * 2.0 < *most } else { *below < 98.0 && rows > fewer };
            if far { *rows } else { 0 }
        }
        _ => 0,
    };
    let negative: Vec<_> = sorted.iter().take_while(|(number, _)| *number < 0.0).collect();
    let few = negative.len() <= 3 && negative.len() * 3 <= sorted.len();
    let coded = few && negative.iter().all(|(number, _)| [1.0, 7.0, 8.0, 9.0, 99.0, 999.0, 9999.0].contains(&-number));
    apart + if coded { negative.iter().map(|(_, rows)| rows).sum() } else { 0 }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use datafusion::arrow::array::{Int64Array, StringViewArray};

    use super::*;

    fn remarks(values: &ArrayRef, rows: &[usize]) -> String {
        Counted { values, rows }.remarks("Sex").unwrap().join("\n")
    }

    #[test]
    fn spellings_and_no_answers_are_counted_and_not_told() {
        let texts: ArrayRef =
            Arc::new(StringViewArray::from(vec![Some("male"), Some("Male "), Some("f"), None, Some("N/A"), Some("?")]));
        let text = remarks(&texts, &[5, 2, 7, 1, 3, 4]);
        assert!(text.contains("2 values, in 7 rows") && text.contains("lower(trim(\"Sex\"))"), "{text}");
        assert!(text.contains("7 rows may have no answer") && !text.to_lowercase().contains("male"), "{text}");
        let inner: ArrayRef = Arc::new(StringViewArray::from(vec!["a b", "a  B", "c"]));
        assert!(remarks(&inner, &[1, 1, 1]).contains("regexp_replace"));
        let plain: ArrayRef = Arc::new(StringViewArray::from(vec!["a", "b", "none of these 99"]));
        assert_eq!(remarks(&plain, &[1, 1, 1]), "");
    }

    #[test]
    fn codes_lie_apart_from_numbers() {
        let of = |numbers: &[(i64, usize)]| {
            let values: ArrayRef = Arc::new(numbers.iter().map(|number| number.0).collect::<Int64Array>());
            let rows: Vec<usize> = numbers.iter().map(|number| number.1).collect();
            remarks(&values, &rows)
        };
        assert!(of(&[(20, 3), (80, 2), (999, 1)]).contains("1 rows may"));
        assert!(of(&[(20, 3), (80, 2), (99, 4), (-1, 2)]).contains("6 rows may"));
        // Ages that people have, and amounts below zero.
        assert_eq!(of(&[(20, 3), (97, 2), (98, 2), (99, 1)]), "");
        assert_eq!(of(&[(-20, 3), (-1, 2), (5, 1), (7, 1), (800, 1), (999, 1)]), "");
    }
}
