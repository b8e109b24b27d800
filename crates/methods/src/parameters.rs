//! Declarations of functions and their parameters: what SQL, its help, publications and bindings are made from.

use std::fmt;

/// Kind of values that a parameter takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// A table, view or CTE by name, or a query in parentheses.
    Relation,
    /// The same, but it must be a release; the session is asked for the files it is in.
    Release,
    /// A relation, or several in parentheses.
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
    /// A word of these.
    Word(&'static [&'static str]),
}

impl Kind {
    /// Returns the name of the kind in bindings.
    pub fn name(self) -> &'static str {
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

/// Says why methods whose people are in several releases keep no columns as they are.
pub(crate) const KEPT_LINKS_ROWS: &str =
    "kept values link one person's rows of several releases, and tell counterfeits; mondrian, anatomy and muco take it";

/// Says where roles come from that a call does not give.
const DECLARED: &str = "the session's, or the columns' metadata";

/// A parameter of a relation function.
#[derive(Debug, Clone, Copy)]
pub struct Parameter {
    /// Name, as in `name => value`.
    pub name: &'static str,
    /// Kind of values that it takes.
    pub kind: Kind,
    /// True if a call must have it.
    pub required: bool,
    /// A value for error messages, as one would write it.
    pub example: &'static str,
    /// Default that holds if it is left out.
    pub default: Preset,
    /// The same in words, where it is no value.
    pub otherwise: &'static str,
    /// Purpose of the parameter.
    pub text: &'static str,
    /// The least and the greatest whole number.
    pub range: (i64, i64),
}

/// Default of a parameter, as far as it is a value.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Preset {
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
    /// Returns a parameter that every call must have.
    pub const fn required(name: &'static str, kind: Kind, example: &'static str) -> Self {
        Self { required: true, otherwise: "required", ..Self::optional(name, kind, example) }
    }

    /// Returns a parameter that may be left out.
    pub const fn optional(name: &'static str, kind: Kind, example: &'static str) -> Self {
        let (default, range) = (Preset::Described, (i64::MIN, i64::MAX));
        Self { name, kind, required: false, example, default, otherwise: "", text: "", range }
    }

    /// Returns a flag, false if it is left out.
    pub const fn flag(name: &'static str) -> Self {
        Self { otherwise: "false", ..Self::optional(name, Kind::Boolean, "true") }
    }

    /// Declares a choice of these words, the first if it is left out.
    pub const fn word(name: &'static str, words: &'static [&'static str], example: &'static str) -> Self {
        Self { default: Preset::Word(words[0]), ..Self::optional(name, Kind::Word(words), example) }
    }

    /// Adds the purpose in words.
    pub const fn says(self, text: &'static str) -> Self {
        Self { text, ..self }
    }

    /// Adds the default in words.
    pub const fn otherwise(self, otherwise: &'static str) -> Self {
        Self { otherwise, ..self }
    }

    /// Adds a whole number as the default.
    pub const fn or(self, number: i64) -> Self {
        Self { default: Preset::Integer(number), ..self }
    }

    /// Sets the least number.
    pub const fn at_least(self, least: i64) -> Self {
        Self { range: (least, self.range.1), ..self }
    }

    /// Sets the greatest number.
    pub const fn at_most(self, most: i64) -> Self {
        Self { range: (self.range.0, most), ..self }
    }

    /// Says why a whole number is out of range; `None` if it is not.
    pub fn out_of_range(&self, style: Style, given: i64) -> Option<String> {
        let (noun, name, (least, most)) = (style.noun(), self.name, self.range);
        match given {
            _ if given < least => Some(format!("{noun} {name} must be at least {least}, got {given}")),
            _ if given > most => Some(format!("{noun} {name} must be at most {most}, got {given}")),
            _ => None,
        }
    }

    /// Returns true if it is about the call and not about the method.
    pub(crate) fn is_of_call(&self) -> bool {
        [Self::PRIVATE.name, Self::CELLS.name].contains(&self.name)
    }

    // Parameters that mean the same everywhere.

    /// The table that is anonymized.
    pub const INPUT: Self = Self::required("input", Kind::Relation, "patients")
        .says("a table, view, CTE or file, or a query in parentheses");
    /// The identifier.
    pub const ID: Self = Self::optional("id", Kind::Column, "patient_id")
        .says("the identifier: one row per person. Never published")
        .otherwise(DECLARED);
    /// The quasi-identifiers.
    pub const QUASI: Self = Self::optional("quasi", Kind::Columns, "(age, zip)")
        .says("quasi-identifiers: known to others, published as ranges")
        .otherwise(DECLARED);
    /// The sensitive attribute.
    pub const SENSITIVE: Self = Self::optional("sensitive", Kind::Columns, "disease")
        .says("published as it is, but nobody can tell whose it is; several are hidden each by itself, or as composite(a, b)")
        .otherwise(DECLARED);
    /// Hierarchies by which values generalize.
    pub const HIERARCHIES: Self = Self::optional("hierarchies", Kind::Relation, "'hierarchies.csv'")
        .says("attribute, leaf, level1, level2, ..: what values generalize to")
        .otherwise("none");
    /// Known distributions of attributes.
    pub const PRIOR: Self = Self::optional("prior", Kind::Relation, "'margins.csv'")
        .says("attribute, value, share: how values are distributed, if that is known from elsewhere")
        .otherwise("none");
    /// Update relation of the sensitive values.
    pub const UPDATES: Self = Self::optional("updates", Kind::WordOrRelation("any"), "updates")
        .says("from_value, to_value and perhaps probability: what values can become")
        .otherwise("no value can change");
    /// All values that the sensitive column can ever have.
    pub const DOMAIN: Self = Self::optional("domain", Kind::Relation, "all_diseases");
    /// The column whose values are tables of their own.
    pub const WITHIN: Self = Self::optional("within", Kind::Column, "month")
        .says("each value of this column is anonymized as a table of its own")
        .otherwise("none");
    /// The earlier private releases.
    pub const PREVIOUS: Self =
        Self::optional("previous", Kind::Relations, "('q1_private.parquet', 'q2_private.parquet')")
            .says("all earlier private releases, in their order: one, or several in parentheses")
            .otherwise("none: the first release");
    /// Columns that travel with the sensitive value.
    pub const OTHER: Self = Self::optional("other", Kind::Columns, "(symptom, ward)")
        .says("columns that no reader knows; they travel with the sensitive value")
        .otherwise("none");
    /// Columns that are kept as they are.
    pub const INSENSITIVE: Self = Self::optional("insensitive", Kind::Columns, "(ward, hours)")
        .says("columns to keep as they are; whoever knows them of somebody finds the row by them")
        .otherwise("none");
    /// Source of randomness.
    pub const SEED: Self = Self::optional("seed", Kind::Seed, "'a long random text'")
        .says("a long secret text, for reproducible runs")
        .otherwise("entropy");
    /// True for rows of the publisher.
    pub const PRIVATE: Self = Self::flag("private").says("true for the publisher's own view, with identifiers");
    /// Number of parts, one after the other, in which a release is made.
    pub const CELLS: Self = Self {
        default: Preset::Word("auto"),
        text: "in how many parts a release is made, one after the other, so that none is larger than memory (or 'auto')",
        ..Self::optional("cells", Kind::IntegerOrWord("auto"), "16")
    };

    // Parameters that mean the same in several methods.

    /// Treatment of new rows that are not m-eligible.
    pub const ON_INELIGIBLE: Self =
        Self::word("on_ineligible", &["refuse", "counterfeit", "withhold"], "'counterfeit'")
            .says("when one value makes up more than 1/m of the new rows; the last two give people away");
    /// Way to cut a table into groups.
    pub const CUTS: Self = Self::word("cuts", &["tight", "median"], "'median'")
        .says("where groups are: where least is lost, or at the median of the widest column");
    /// The same, and whether all worlds decide.
    pub const FAIR_CUTS: Self = Self::word("cuts", &["tight", "median", "fair"], "'fair'").says(
        "where groups are: where least is lost, at the median of the widest column, or so that cuts tell nothing of values",
    );

    /// Describes the expected value in words.
    pub fn expected(&self) -> String {
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
pub struct FunctionSignature<'a> {
    /// Name of the function, in lower case.
    pub name: &'static str,
    /// Purpose of the function.
    pub about: &'static str,
    /// Its parameters.
    pub parameters: &'a [Parameter],
    /// Arguments that others take, or that it took once, and why it does not.
    pub refused: &'static [(&'static str, &'static str)],
}

/// Style in which arguments are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Style {
    /// `m => 10`, arguments of a call.
    Call,
    /// `'m' '10'`, options of a table.
    Options,
}

impl Style {
    /// Writes an argument with a value given as in a call.
    pub fn write(self, name: &str, example: &str) -> String {
        match self {
            Self::Call => format!("{name} => {example}"),
            Self::Options => {
                let value = example.trim_start_matches("INTERVAL ").trim_matches(['(', ')', '\'']);
                format!("'{name}' '{value}'")
            }
        }
    }

    /// Describes the expected value in words.
    pub fn expected(self, parameter: &Parameter) -> String {
        match (self, parameter.kind) {
            (Self::Options, Kind::Columns) => "column names with commas between them".to_owned(),
            (Self::Options, Kind::NumberOrRelation) => "a number or a table name".to_owned(),
            _ => parameter.expected(),
        }
    }

    /// Returns the noun for a value.
    pub fn noun(self) -> &'static str {
        match self {
            Self::Call => "argument",
            Self::Options => "option",
        }
    }
}

impl FunctionSignature<'_> {
    /// Says why the function does not take an argument that others take; `None` if it has nothing to say.
    pub fn why_not(&self, argument: &str) -> Option<&'static str> {
        self.refused.iter().find(|(name, _)| *name == argument).map(|(_, why)| *why)
    }

    /// Returns a call with the arguments that every call must have.
    pub fn example(&self) -> String {
        let required = self.parameters.iter().filter(|parameter| parameter.required);
        let arguments = required.map(|parameter| match parameter.kind {
            Kind::Relation | Kind::Release | Kind::Relations => parameter.example.to_owned(),
            _ => format!("{} => {}", parameter.name, parameter.example),
        });
        format!("{}({})", self.name, arguments.collect::<Vec<_>>().join(", "))
    }

    /// Returns the call with all its parameters, for error messages.
    pub fn usage(&self) -> String {
        let parameters = self.parameters.iter().map(|parameter| match (parameter.kind, parameter.required) {
            (Kind::Relation | Kind::Release | Kind::Relations, true) => "<table or (query)>".to_owned(),
            (_, true) => format!("{} => {}", parameter.name, parameter.example),
            (_, false) => format!("[{} => {}]", parameter.name, parameter.example),
        });
        format!("{}({})", self.name, parameters.collect::<Vec<_>>().join(", "))
    }
}
