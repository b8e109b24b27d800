//! Numbers as people write them.

/// Says how numbers are written.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Style {
    pub commas: Commas,
    /// True if all are whole.
    pub whole: bool,
}

/// Holds what is to be taken out before a number can be read.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Commas {
    /// Nothing.
    None,
    /// Commas between thousands, and signs of currencies.
    Thousands,
    /// Points between thousands; the comma is before decimals.
    Decimal,
}

/// Returns the style in which all of these texts are numbers, and the numbers.
pub(super) fn read(texts: &[&str]) -> Option<(Style, Vec<f64>)> {
    [Commas::None, Commas::Thousands, Commas::Decimal].into_iter().find_map(|commas| {
        let numbers = texts.iter().map(|text| number(text, commas)).collect::<Option<Vec<f64>>>()?;
        let whole = numbers.iter().all(|number| number.abs() < 1e15)
            && texts.iter().all(|text| !text.contains(['.', 'e', 'E']))
            && commas != Commas::Decimal;
        Some((Style { commas, whole }, numbers))
    })
}

fn number(text: &str, commas: Commas) -> Option<f64> {
    if commas == Commas::None {
        return plain(text);
    }
    let text = text.trim_matches(|c: char| c.is_whitespace() || ['$', '€', '£', '¥', '%'].contains(&c));
    let (thousands, decimal) = if commas == Commas::Thousands { (',', '.') } else { ('.', ',') };
    let (whole, fraction) = text.split_once(decimal).map_or((text, None), |(whole, rest)| (whole, Some(rest)));
    let digits = whole.strip_prefix('-').unwrap_or(whole);
    let mut groups = digits.split([thousands, ' ', '\u{a0}']);
    let first = groups.next().filter(|first| !first.is_empty() && is_digits(first))?;
    let rest: Vec<&str> = groups.collect();
    let grouped =
        rest.iter().all(|group| group.len() == 3 && is_digits(group)) && (rest.is_empty() || first.len() <= 3);
    if !grouped || fraction.is_some_and(|fraction| !is_digits(fraction)) {
        return None;
    }
    let sign = if whole.starts_with('-') { "-" } else { "" };
    plain(&format!("{sign}{first}{}.{}", rest.concat(), fraction.unwrap_or("0")))
}

/// Returns a number that a cast can read. Words such as `inf` are none.
pub(super) fn plain(text: &str) -> Option<f64> {
    let only = text.bytes().all(|byte| byte.is_ascii_digit() || b"+-.eE".contains(&byte));
    text.parse::<f64>().ok().filter(|number| only && number.is_finite())
}

fn is_digits(text: &str) -> bool {
    text.bytes().all(|byte| byte.is_ascii_digit())
}
