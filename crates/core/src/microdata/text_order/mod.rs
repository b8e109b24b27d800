//! Texts that stand for numbers, dates or bands of numbers, and are ordered otherwise. `10-14` comes before `5-9`, `1,200` before `900`,
//! and `31.01.2024` after `01.02.2024`. A range over such a column begins with the higher value and holds others than it seems to.

mod bands;
mod cure;
mod dates;
mod numbers;

use datafusion::arrow::array::{Array, ArrayRef, AsArray};
use datafusion::arrow::compute::cast;
use datafusion::arrow::datatypes::DataType;

/// Texts that are no answer, in small letters, with commas between them; the first is empty.
const NO_ANSWER: &str =
    ",-,--,.,..,?,*,x,na,n/a,n.a.,#n/a,nan,null,nil,none,missing,unknown,not known,not stated,no answer";

fn is_no_answer(text: &str) -> bool {
    let folded = text.trim().to_lowercase();
    NO_ANSWER.split(',').any(|none| none == folded)
}

/// Meaning of a column's texts, if they are in another order than their meaning.
#[derive(Debug, Clone, PartialEq)]
pub struct TextOrder {
    kind: Kind,
    /// True if some texts are no answer.
    unanswered: bool,
    /// True if a few texts are no numbers, though all others are: one such text makes a column of a CSV file one of texts.
    strays: bool,
}

/// The most texts that are taken for strays among numbers.
const MOST_STRAYS: usize = 50;
/// Characters of bands: 5-9, 85+, <5, under 5.
const MARKS: [char; 10] = ['-', '–', '+', '<', '>', '≤', '≥', '[', '(', ' '];
/// So many numbers there must be for each of them.
const NUMBERS_PER_STRAY: usize = 20;

#[derive(Debug, Clone, PartialEq)]
enum Kind {
    Numbers(numbers::Style),
    Dates(dates::Pattern),
    /// Bands of numbers, as they are padded with zeros; `None` if that does not put them in order.
    Bands(Option<bands::Padding>),
}

impl TextOrder {
    /// Looks at the different values of a column. `None` if they are no texts, stand for nothing of that kind, or are in order.
    pub fn of(values: &ArrayRef) -> Option<Self> {
        if !values.data_type().is_string() {
            return None;
        }
        let values = cast(values, &DataType::Utf8View).ok()?;
        Self::of_texts(values.as_string_view().iter().flatten())
    }

    fn of_texts<'a>(values: impl Iterator<Item = &'a str>) -> Option<Self> {
        let mut texts = Vec::new();
        let (mut unanswered, mut words) = (false, 0);
        for text in values {
            if is_no_answer(text) {
                unanswered = true;
            } else if text.bytes().any(|byte| byte.is_ascii_digit()) {
                texts.push(text);
            } else {
                words += 1;
                if words > MOST_STRAYS {
                    // The column is one of categories.
                    return None;
                }
            }
        }
        if texts.len() < 2 {
            return None;
        }
        texts.sort_unstable();
        let numbers: Vec<&str> = texts.iter().copied().filter(|text| numbers::plain(text).is_some()).collect();
        let strays = words + texts.len() - numbers.len();
        let is_few = strays > 0 && strays <= MOST_STRAYS && strays * NUMBERS_PER_STRAY <= numbers.len();
        // A single year of age beside 85+ is a band.
        let is_band = |text: &&str| numbers::plain(text).is_some() || text.contains(MARKS);
        if is_few && (words > 0 || !texts.iter().all(is_band)) {
            let (style, _) = numbers::read(&numbers)?;
            return Some(Self { kind: Kind::Numbers(style), unanswered, strays: true });
        }
        if words > 0 { None } else { Self::of_all(&texts, unanswered) }
    }

    /// Returns the same where all texts but those of no answer stand for something.
    fn of_all(texts: &[&str], unanswered: bool) -> Option<Self> {
        let strays = false;
        let is_ordered = |keys: &[f64]| keys.is_sorted();
        if let Some((style, keys)) = numbers::read(texts) {
            let kind = Kind::Numbers(style);
            return (unanswered || !is_ordered(&keys)).then_some(Self { kind, unanswered, strays });
        }
        if let Some((pattern, keys)) = dates::read(texts) {
            return (!is_ordered(&keys)).then_some(Self { kind: Kind::Dates(pattern), unanswered, strays });
        }
        let keys = bands::read(texts)?;
        let kind = || Kind::Bands(bands::Padding::of(texts, &keys));
        (!is_ordered(&keys)).then(|| Self { kind: kind(), unanswered, strays })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cure(texts: &[&str]) -> Option<String> {
        TextOrder::of_texts(texts.iter().copied()).map(|order| order.expression("c"))
    }

    #[test]
    fn only_what_is_out_of_order_is_found() {
        for texts in [
            &["north", "south", "5-9"] as &[&str],
            &["05-09", "10-14", "85+"],
            &["2024-01-31", "2024-02-01", "2023-12-31"],
            &["01067", "10115", "80331"],
            &["5", "7", "9"],
            &["A00", "B20", "C9"],
            &["555-1234", "666-1234"],
            &["NA", "5"],
            &["Miller", "10 Downing Street"],
            &[],
        ] {
            assert_eq!(cure(texts), None, "{texts:?}");
        }
    }

    #[test]
    fn strays_among_numbers_are_found() {
        let numbers: Vec<String> = (18..98).map(|age| age.to_string()).collect();
        let with = |strays: &[&'static str]| {
            let texts: Vec<&str> = numbers.iter().map(String::as_str).chain(strays.iter().copied()).collect();
            cure(&texts)
        };
        for strays in [&["forty"] as &[&str], &["4O"], &["12a", "13 years", "old", "85+"], &["forty", "NA"]] {
            assert_eq!(with(strays).as_deref(), Some("TRY_CAST(c AS BIGINT)"), "{strays:?}");
        }
        assert_eq!(with(&[]), None);
        assert!(with(&["98+", "5-9"]).unwrap().starts_with("regexp_replace"), "bands");
        assert_eq!(with(&["A00", "B10", "C20", "D30", "E40"]), None, "codes");
    }

    #[test]
    fn what_it_stands_for_is_found() {
        let found = |texts: &[&str]| cure(texts).unwrap();
        assert_eq!(found(&["5", "10"]), "TRY_CAST(c AS BIGINT)");
        assert_eq!(found(&["5", "7.5", "NA"]), "TRY_CAST(c AS DOUBLE)");
        assert_eq!(found(&["1,200", "900"]), "TRY_CAST(regexp_replace(c, '[^0-9.-]', '', 'g') AS BIGINT)");
        assert_eq!(
            found(&["1.200,50", "900"]),
            "TRY_CAST(replace(regexp_replace(c, '[^0-9,-]', '', 'g'), ',', '.') AS DOUBLE)"
        );
        assert_eq!(found(&["31.01.2024", "01.02.2024"]), "to_date(c, '%d.%m.%Y')");
        assert_eq!(found(&["1/31/2024", "12/1/2023"]), "to_date(c, '%m/%d/%Y')");
        assert_eq!(
            found(&["3-Mar-2023", "20-Apr-2024", "?"]),
            "CASE WHEN regexp_like(c, '[0-9]') THEN to_date(c, '%d-%b-%Y') END"
        );
        let padded = r"regexp_replace(regexp_replace(c, '([0-9]+)', '00\1', 'g'), '0*([0-9]{3})', '\1', 'g')";
        assert_eq!(found(&["5-9", "10-14", "85+"]), padded);
        assert!(found(&["under 5 years", "5-9 years", "10-14 years"]).contains(r"' \1', 'i')"));
        assert!(
            found(&["1.25-1.5", "1.5-2.5", "2.5-10.5", "10.5-20"]).starts_with("with_metadata(c, 'anonymize.order'")
        );
        assert!(found(&["5-9", "10-14", "unknown"]).starts_with("CASE WHEN"));
        assert!(found(&["[5,10)", "[10,100)", "[100,1000)", "[5000,10000)"]).contains("00000"));
    }
}
