//! How relation functions declare their parameters.

use std::fmt;

use datafusion::common::utils::quote_identifier;

/// What a parameter takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// A table, view or CTE by name, or a query in parentheses.
    Relation,
    /// The same, but it must be a release; the session is asked for the files it is in.
    Release,
    /// One of those, or several in parentheses.
    Relations,
    /// A whole number.
    Integer,
    /// A number.
    Number,
    /// A number, or a relation.
    NumberOrRelation,
    /// A whole number, or an interval of time.
    Length,
    /// A whole number or a text.
    Seed,
    /// `true` or `false`.
    Boolean,
    /// The name of a column.
    Column,
    /// Names of columns.
    Columns,
    /// This word, or a relation.
    WordOrRelation(&'static str),
    /// A whole number, or this word.
    IntegerOrWord(&'static str),
    /// A number, or this word.
    NumberOrWord(&'static str),
    /// One of these words.
    Word(&'static [&'static str]),
}

impl Kind {
    /// What bindings call it.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Relation => "relation",
            Self::Release => "release",
            Self::Relations => "relations",
            Self::Integer => "integer",
            Self::Number => "number",
            Self::NumberOrRelation => "number or relation",
            Self::Length => "length",
            Self::Seed => "seed",
            Self::Boolean => "boolean",
            Self::Column => "column",
            Self::Columns => "columns",
            Self::WordOrRelation(_) => "word or relation",
            Self::IntegerOrWord(_) => "integer or word",
            Self::NumberOrWord(_) => "number or word",
            Self::Word(_) => "word",
        }
    }
}

/// A parameter of a relation function.
#[derive(Debug, Clone, Copy)]
pub(super) struct Parameter {
    /// Name, as in `name => value`.
    pub name: &'static str,
    /// What it takes.
    pub kind: Kind,
    /// Whether a call must have it.
    pub required: bool,
    /// A value for error messages, as one would write it.
    pub example: &'static str,
    /// What holds if it is left out.
    pub default: Preset,
}

/// What holds if a parameter is left out, as far as it is a value.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Preset {
    /// Nothing, or what the texts of the reference say.
    Described,
    /// A word.
    Word(&'static str),
    /// A whole number.
    Integer(i64),
    /// A number.
    Number(f64),
}

impl fmt::Display for Preset {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Described => Ok(()),
            Self::Word(word) => write!(f, "'{word}'"),
            Self::Integer(number) => number.fmt(f),
            Self::Number(number) => number.fmt(f),
        }
    }
}

impl Parameter {
    /// A parameter that every call must have.
    pub(super) const fn required(name: &'static str, kind: Kind, example: &'static str) -> Self {
        Self { name, kind, required: true, example, default: Preset::Described }
    }

    /// A parameter that may be left out.
    pub(super) const fn optional(name: &'static str, kind: Kind, example: &'static str) -> Self {
        Self { name, kind, required: false, example, default: Preset::Described }
    }

    // Parameters that mean the same everywhere.

    /// The table that is anonymized.
    pub(super) const INPUT: Self = Self::required("input", Kind::Relation, "patients");
    /// The identifier.
    pub(super) const ID: Self = Self::optional("id", Kind::Column, "patient_id");
    /// The quasi-identifiers.
    pub(super) const QUASI: Self = Self::optional("quasi", Kind::Columns, "(age, zip)");
    /// The sensitive attribute.
    pub(super) const SENSITIVE: Self = Self::optional("sensitive", Kind::Columns, "disease");
    /// How values generalize.
    pub(super) const HIERARCHIES: Self = Self::optional("hierarchies", Kind::Relation, "'hierarchies.csv'");
    /// What is known of the distributions of attributes.
    pub(super) const PRIOR: Self = Self::optional("prior", Kind::Relation, "'margins.csv'");
    /// Which sensitive values can become which.
    pub(super) const UPDATES: Self = Self::optional("updates", Kind::WordOrRelation("any"), "updates");
    /// All values that the sensitive column can ever have.
    pub(super) const DOMAIN: Self = Self::optional("domain", Kind::Relation, "all_diseases");
    /// The column whose values are tables of their own.
    pub(super) const WITHIN: Self = Self::optional("within", Kind::Column, "month");
    /// The earlier private releases.
    pub(super) const PREVIOUS: Self =
        Self::optional("previous", Kind::Relations, "('q1_private.parquet', 'q2_private.parquet')");
    /// Columns that travel with the sensitive value.
    pub(super) const OTHER: Self = Self::optional("other", Kind::Columns, "(symptom, ward)");
    /// Columns that are kept as they are.
    pub(super) const INSENSITIVE: Self = Self::optional("insensitive", Kind::Columns, "(ward, hours)");
    /// Where randomness comes from.
    pub(super) const SEED: Self = Self::optional("seed", Kind::Seed, "'a long random text'");
    /// Whether the rows are for the publisher.
    pub(super) const PRIVATE: Self = Self::optional("private", Kind::Boolean, "true");

    /// In how many parts, one after the other, a release is made.
    pub(super) const CELLS: Self =
        Self { default: Preset::Word("auto"), ..Self::optional("cells", Kind::IntegerOrWord("auto"), "16") };

    /// What is expected, in words.
    pub(super) fn expected(&self) -> String {
        match self.kind {
            Kind::Relation | Kind::Release => "a table name or a query in parentheses".to_owned(),
            Kind::Relations => "a table name, a query in parentheses, or several of them in parentheses".to_owned(),
            Kind::Integer => "a whole number".to_owned(),
            Kind::Number => "a number".to_owned(),
            Kind::NumberOrRelation => "a number, a table name or a query in parentheses".to_owned(),
            Kind::WordOrRelation(word) => format!("'{word}', a table name or a query in parentheses"),
            Kind::IntegerOrWord(word) => format!("a whole number or '{word}'"),
            Kind::NumberOrWord(word) => format!("a number or '{word}'"),
            Kind::Length => "an interval or a whole number".to_owned(),
            Kind::Seed => "a whole number from 0 or a text".to_owned(),
            Kind::Boolean => "true or false".to_owned(),
            Kind::Column => "a column name".to_owned(),
            Kind::Columns => "column names in parentheses".to_owned(),
            Kind::Word(words) => {
                let words: Vec<_> = words.iter().map(|word| format!("'{word}'")).collect();
                format!("one of {}", words.join(", "))
            }
        }
    }
}

/// Name and parameters of a relation function; positional arguments fill the parameters in this order.
#[derive(Debug, Clone, Copy)]
pub(super) struct FunctionSignature<'a> {
    /// Name of the function, in lower case.
    pub name: &'static str,
    /// Its parameters.
    pub parameters: &'a [Parameter],
}

/// Parameters that were: of which function, and why not any more.
const RETIRED: [(&str, &str, &str); 3] = [
    ("m_invariant", "insensitive", KEPT_IS_GONE),
    ("m_distinct", "insensitive", KEPT_IS_GONE),
    ("dynamic", "insensitive", KEPT_IS_GONE),
];
const KEPT_IS_GONE: &str = "values that are kept show which rows of several releases are one person's, and which rows may be counterfeits; mondrian, anatomy and muco \
                            take it, whose people are in one release each";

/// Functions whose releases cannot be made in cells, and why.
const WHOLE: [(&str, &str); 5] = [
    ("sequential_worlds", WORLDS_ARE_WHOLE),
    ("sequential_release", WORLDS_ARE_WHOLE),
    ("sequential", WORLDS_ARE_WHOLE),
    ("non_sequential", WORLDS_ARE_WHOLE),
    (
        "reposition",
        "a record is published late because of all others that arrive with it, so no part of a stream can be looked at alone",
    ),
];
const WORLDS_ARE_WHOLE: &str =
    "the people whose values somebody may carry are drawn from the whole table, and a part of it has fewer";

/// Why releases of a function cannot be made in cells.
pub(super) fn whole(function: &str, parameter: &str) -> Option<&'static str> {
    if parameter != Parameter::CELLS.name {
        return None;
    }
    WHOLE.iter().find(|(of, _)| *of == function).map(|(_, why)| *why)
}

/// Why a function does not take a parameter any more.
pub(super) fn retired(function: &str, parameter: &str) -> Option<&'static str> {
    RETIRED.iter().find(|(of, name, _)| (*of, *name) == (function, parameter)).map(|(.., why)| *why)
}

/// How arguments are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Style {
    /// `m => 10`, arguments of a call.
    Call,
    /// `'m' '10'`, options of a table.
    Options,
}

impl Style {
    /// What to write for a value given as in a call.
    pub(super) fn write(self, name: &str, example: &str) -> String {
        match self {
            Self::Call => format!("{name} => {example}"),
            Self::Options => {
                let value = example.trim_start_matches("INTERVAL ").trim_matches(['(', ')', '\'']);
                format!("'{name}' '{value}'")
            }
        }
    }

    /// What is expected, in words.
    pub(super) fn expected(self, parameter: &Parameter) -> String {
        match (self, parameter.kind) {
            (Self::Options, Kind::Columns) => "column names with commas between them".to_owned(),
            (Self::Options, Kind::NumberOrRelation) => "a number or a table name".to_owned(),
            _ => parameter.expected(),
        }
    }

    /// What a value is called.
    pub(super) fn noun(self) -> &'static str {
        match self {
            Self::Call => "argument",
            Self::Options => "option",
        }
    }
}

impl FunctionSignature<'_> {
    /// A call with the arguments that every call must have.
    pub(super) fn example(&self) -> String {
        let required = self.parameters.iter().filter(|parameter| parameter.required);
        let arguments = required.map(|parameter| match parameter.kind {
            Kind::Relation | Kind::Release | Kind::Relations => parameter.example.to_owned(),
            _ => format!("{} => {}", parameter.name, parameter.example),
        });
        format!("{}({})", self.name, arguments.collect::<Vec<_>>().join(", "))
    }

    /// The call with all its parameters, for error messages.
    pub(super) fn usage(&self) -> String {
        let parameters = self.parameters.iter().map(|parameter| match (parameter.kind, parameter.required) {
            (Kind::Relation | Kind::Release | Kind::Relations, true) => "<table or (query)>".to_owned(),
            (_, true) => format!("{} => {}", parameter.name, parameter.example),
            (_, false) => format!("[{} => {}]", parameter.name, parameter.example),
        });
        format!("{}({})", self.name, parameters.collect::<Vec<_>>().join(", "))
    }
}

/// The candidate that a misspelled name was probably meant to be, as `; did you mean ..?`, or nothing.
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

/// The column that was probably meant. Names without quotes are read in lower case, so others are shown in theirs.
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
