//! Suggestions for names that were misspelled, and what functions declare of their arguments.

use datafusion::common::utils::quote_identifier;

pub(super) use crate::methods::parameters::{FunctionSignature, Kind, Parameter, Preset, Style};

/// Suggests a candidate for a misspelled name: `; did you mean ..?`, or nothing.
pub(super) fn suggestion<'a>(name: &str, candidates: impl IntoIterator<Item = &'a str>) -> String {
    let lower = name.to_lowercase();
    let score = |candidate: &str| {
        let (name, candidate) = (lower.as_str(), candidate.to_lowercase());
        let candidate = candidate.as_str();
        let starts =
            name.len() >= 3 && candidate.starts_with(name) || candidate.len() >= 3 && name.starts_with(candidate);
        strsim::jaro_winkler(name, candidate) + f64::from(u8::from(starts))
    };
    let best = candidates.into_iter().map(|candidate| (score(candidate), candidate)).max_by(|a, b| a.0.total_cmp(&b.0));
    match best {
        Some((score, candidate)) if score > 0.75 => format!("; did you mean {candidate}?"),
        _ => String::new(),
    }
}

/// Returns the column that was probably meant. Names without quotes are read in lower case, so others are shown in theirs.
pub(super) fn suggested_column(name: &str, candidates: &[&str]) -> String {
    match candidates.iter().find(|candidate| candidate.eq_ignore_ascii_case(name)) {
        Some(candidate) => {
            format!("; did you mean {}? Without quotes a name is read in lower case", quote_identifier(candidate))
        }
        None => suggestion(name, candidates.iter().copied()),
    }
}

#[cfg(test)]
mod tests {
    use super::{suggested_column, suggestion};

    #[test]
    fn suggests_what_was_probably_meant() {
        let names = ["previous", "balance", "quasi", "sensitive", "seed"];
        assert_eq!(suggestion("quasy", names), "; did you mean quasi?");
        assert_eq!(suggestion("prev", names), "; did you mean previous?");
        assert_eq!(suggestion("quasi_identifiers", names), "; did you mean quasi?");
        assert_eq!(suggestion("QUASI", names), "; did you mean quasi?");
        assert_eq!(suggestion("xyz", names), "");
        assert!(suggested_column("mrn", &["Age", "MRN"]).starts_with("; did you mean \"MRN\"? "));
        assert_eq!(suggested_column("agee", &["age", "MRN"]), "; did you mean age?");
    }
}
