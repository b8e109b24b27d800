//! Errors of the engine, without the values that they name.
//!
//! What failed is told by the *type* of an error. Its text is passed on only where the type has none of the data in it: names of columns,
//! what stores and the operating system say, the memory pool. Of a malformed CSV file, lines and columns are read out of texts whose
//! form is known.

use datafusion::arrow::error::ArrowError;
use datafusion::common::plan_datafusion_err;
use datafusion::error::DataFusionError;
use datafusion::object_store;
use datafusion::parquet::errors::ParquetError;

use super::ranges::about_range;
use super::{AnonymizeError, ErrorKind};

/// Text that messages have in the place of a value.
const HIDDEN: &str = "what it failed on is data, and not shown";
const CAST: &str = "a cast";
const PARSING: &str = "parsing";
/// Beginning of what the engine says of spilled rows.
const SPILLED: &str = "The used disk space during the spilling process has exceeded the allowable limit";

/// Returns an error that came up while `function` read `what`, such as "the input". A file is named if it is known.
pub fn without_values(error: DataFusionError, function: &str, what: &str, file: Option<&str>) -> DataFusionError {
    if let Some(own) = AnonymizeError::of(&error) {
        return own.clone().into();
    }
    let message = match Cause::of(&error) {
        Cause::Resources => return resources(error, function),
        Cause::Failed(kind) => format!("{kind} failed in {what} ({HIDDEN})"),
        Cause::Told(text) => {
            format!("{what} cannot be read: {}{text}", file.map(|file| format!("{file}: ")).unwrap_or_default())
        }
        Cause::Malformed(text) => format!("{what} cannot be read: {} {text} ({HIDDEN})", file.unwrap_or("it")),
    };
    AnonymizeError::new(function, ErrorKind::Input, message).into()
}

/// Returns true if an error is of a value that could not be converted.
pub fn is_conversion(error: &DataFusionError) -> bool {
    AnonymizeError::of(error).is_none() && matches!(Cause::of(error), Cause::Failed(CAST | PARSING))
}

/// Returns what the hidden error of a conversion in a query says after what failed. `None` of other errors.
pub(super) fn hidden_conversion(error: &AnonymizeError) -> Option<&str> {
    let failed = |what: &str| error.message().strip_prefix(what)?.strip_prefix(" failed");
    [CAST, PARSING].into_iter().find_map(failed).filter(|rest| rest.starts_with(" in ") && error.function() == "query")
}

/// Returns the error of a cast of some columns that failed while `function` read `what`.
pub fn failed_cast(function: &str, what: &str, columns: &str, cure: Option<&str>) -> DataFusionError {
    let cure = cure.map(|cure| format!("; {cure}")).unwrap_or_default();
    let message = format!("{CAST} {columns} failed in {what} ({HIDDEN}){cure}");
    AnonymizeError::new(function, ErrorKind::Input, message).into()
}

/// Describes in a few words why something failed.
pub fn told(error: &DataFusionError) -> String {
    match Cause::of(error) {
        Cause::Resources => "resources are exhausted".to_owned(),
        Cause::Failed(kind) => format!("{kind} failed ({HIDDEN})"),
        Cause::Told(text) => text,
        Cause::Malformed(text) => format!("a file {text} ({HIDDEN})"),
    }
}

/// Returns the reason why a table of this name cannot be opened. `None` if only the name is wrong.
pub fn unreadable(error: DataFusionError, name: &str) -> DataFusionError {
    if AnonymizeError::of(&error).is_some() {
        return error;
    }
    match Cause::of(&error) {
        Cause::Told(text) => plan_datafusion_err!("'{name}' cannot be read: {text}"),
        Cause::Malformed(text) => plan_datafusion_err!("'{name}' cannot be read: it {text}"),
        Cause::Resources | Cause::Failed(_) => error,
    }
}

/// Returns the same for errors of planning, most of which speak of the query only.
pub fn planning_without_values(error: DataFusionError, function: &str, what: &str) -> DataFusionError {
    if let Some(own) = about_range(&error) {
        return own.into();
    }
    match error.find_root() {
        DataFusionError::Plan(_)
        | DataFusionError::SchemaError(..)
        | DataFusionError::NotImplemented(_)
        | DataFusionError::Configuration(_)
        | DataFusionError::SQL(..)
        | DataFusionError::ResourcesExhausted(_) => error,
        _ => without_values(error, function, what, None),
    }
}

/// Hides values of the data in an error of any statement. This includes statements without our functions: the type of the error tells
/// what failed. What the engine says of the statement, and of names of tables and schemas, of settings and of memory, stays as it is.
///
/// For hosts that log errors: DataFusion prints what a cast failed on, and the row of a CSV file.
pub fn hide_values(error: DataFusionError) -> DataFusionError {
    match error.find_root() {
        DataFusionError::Execution(text) if is_of_names(text) => error,
        // What stores say has no data in it.
        DataFusionError::ObjectStore(_) => error,
        root => {
            if AnonymizeError::of(&error).is_none()
                && let Some(Cause::Told(text)) = Cause::of_storage(root)
            {
                let message = format!("a file or store could not be read or written: {text}");
                return AnonymizeError::new("query", ErrorKind::Input, message).into();
            }
            let what = if let Cause::Malformed(_) = Cause::of(&error) { "a file of the query" } else { "the query" };
            planning_without_values(error, "query", what)
        }
    }
}

/// Returns true if the engine's text is about names in a statement, not rows. Each text has a beginning and an end.
fn is_of_names(text: &str) -> bool {
    const TEXTS: [[&str; 2]; 13] = [
        ["Table '", "' already exists"],
        ["External table '", "' already exists"],
        ["Schema '", "' already exists"],
        ["Catalog '", "' already exists"],
        ["Table '", "' doesn't exist."],
        ["View '", "' doesn't exist."],
        ["Schema '", "' doesn't exist."],
        ["Missing catalog '", "'"],
        ["Unable to find factory for ", ""],
        ["'IF NOT EXISTS' cannot coexist with ", ""],
        ["Prepared statement '", "' does not exist"],
        ["Prepared statement '", " provided"],
        ["File path '", "'"],
    ];
    !text.contains('\n') && TEXTS.iter().any(|[begin, end]| text.starts_with(begin) && text.ends_with(end))
}

/// Returns true if the engine may not spill more rows. Its text has a number.
fn is_spilled(error: &std::io::Error) -> bool {
    error.to_string().starts_with(SPILLED)
}

/// Returns what the engine says of that, wherever in an error it is.
pub fn spilled(error: &DataFusionError) -> Option<String> {
    match Cause::of_storage(error.find_root()) {
        Some(Cause::Told(text)) if text.starts_with(SPILLED) => Some(text),
        _ => None,
    }
}

enum Cause {
    /// Memory or disk: the pool says which consumers have it.
    Resources,
    /// A text without values.
    Told(String),
    /// Malformed file, with the reason.
    Malformed(String),
    /// An expression.
    Failed(&'static str),
}

impl Cause {
    fn of(error: &DataFusionError) -> Self {
        match error.find_root() {
            DataFusionError::ResourcesExhausted(_) => Self::Resources,
            DataFusionError::ObjectStore(error) => Self::Told(error.to_string()),
            DataFusionError::IoError(error) => Self::of_io(error),
            DataFusionError::SchemaError(error, _) => Self::Told(error.to_string()),
            DataFusionError::NotImplemented(_) => Self::Failed("something that DataFusion does not have"),
            DataFusionError::ParquetError(error) => Self::of_parquet(error),
            DataFusionError::ArrowError(error, _) => Self::of_arrow(error),
            root => Self::of_storage(root).unwrap_or(Self::Failed("an expression")),
        }
    }

    /// Keeps the message of an error of the operating system, which has no data; other messages may have.
    fn of_io(error: &std::io::Error) -> Self {
        Self::of_storage(error).unwrap_or_else(|| Self::Told(error.kind().to_string()))
    }

    /// Returns the message of a store or the operating system that caused an error. Examples are a full disk, and a folder of another account.
    fn of_storage(error: &(dyn std::error::Error + 'static)) -> Option<Self> {
        let mut next = Some(error);
        while let Some(error) = next {
            if let Some(store) = error.downcast_ref::<object_store::Error>() {
                return Some(Self::Told(store.to_string()));
            }
            next = match error.downcast_ref::<std::io::Error>() {
                Some(io) if io.raw_os_error().is_some() || is_spilled(io) => return Some(Self::Told(io.to_string())),
                Some(io) => io.get_ref().map(|inner| inner as &(dyn std::error::Error + 'static)),
                None => error.source(),
            };
        }
        None
    }

    fn of_parquet(error: &ParquetError) -> Self {
        match error {
            ParquetError::External(inner) => Self::of_storage(inner.as_ref()),
            _ => None,
        }
        .unwrap_or_else(|| Self::Malformed("is no Parquet file, or a damaged one".to_owned()))
    }

    fn of_arrow(error: &ArrowError) -> Self {
        match error {
            ArrowError::CastError(_) => Self::Failed(CAST),
            ArrowError::ParseError(text) => match csv_value_place(text) {
                Some(place) => Self::Malformed(format!(
                    "has a value that is not of its column's type at {place}; types that nobody declares are read from the first \
                     rows, so declare them: CREATE EXTERNAL TABLE .. (..) STORED AS CSV LOCATION '..'"
                )),
                None => Self::Failed(PARSING),
            },
            ArrowError::CsvError(text) => match csv_place(text) {
                Some(place) => Self::Malformed(format!("is malformed at {place}")),
                None => Self::Malformed("is no CSV file, or a malformed one".to_owned()),
            },
            ArrowError::JsonError(_) => {
                Self::Malformed("is no JSON, or of another shape than its first rows".to_owned())
            }
            ArrowError::AvroError(_) => Self::Malformed("is no Avro file, or a damaged one".to_owned()),
            ArrowError::IpcError(_) => Self::Malformed("is no Arrow file, or a damaged one".to_owned()),
            ArrowError::ParquetError(_) => Self::Malformed("is no Parquet file, or a damaged one".to_owned()),
            ArrowError::ArithmeticOverflow(_) => Self::Failed("arithmetic, by overflow,"),
            ArrowError::DivideByZero => Self::Failed("a division by zero"),
            ArrowError::IoError(_, error) => Self::of_io(error),
            _ => Self::Failed("an expression"),
        }
    }
}

fn resources(error: DataFusionError, function: &str) -> DataFusionError {
    match error.find_root() {
        DataFusionError::ResourcesExhausted(text) => {
            DataFusionError::ResourcesExhausted(text.clone()).context(function.to_owned())
        }
        _ => error,
    }
}

/// Finds the place of malformed rows in messages of `arrow-csv`; `None` for all other messages.
fn csv_place(text: &str) -> Option<String> {
    const FIELDS: &str = "incorrect number of fields for line ";
    if let Some([line, expected, got]) = numbers(text, &[FIELDS, ", expected ", " got "]) {
        return Some(format!("line {line}: {expected} fields were expected, and there are {got}"));
    }
    if let Some([line, expected, got]) = numbers(text, &[FIELDS, ", expected ", " got more than "]) {
        return Some(format!("line {line}: {expected} fields were expected, and there are more than {got}"));
    }
    const UNEQUAL: &str = "Encountered unequal lengths between records on CSV file. Expected ";
    if let Some([expected, found, line]) = numbers(text, &[UNEQUAL, " records, found ", " records at line "]) {
        return Some(format!("line {line}: {expected} fields were expected, and there are {found}"));
    }
    const ANEW: &str = "the text is not UTF-8; write the file anew as UTF-8, for example iconv -f WINDOWS-1252 -t UTF-8 old.csv > new.csv";
    const NOT_TEXT: &str = "Encountered UTF-8 error while reading CSV file: invalid utf-8: invalid UTF-8 in field ";
    if let Some([_, _, line]) = numbers(text, &[NOT_TEXT, " near byte index ", " at line "]) {
        return Some(format!("line {line}: {ANEW}"));
    }
    let [line, field] = numbers(text, &["Encountered invalid UTF-8 data for line ", " and field "])?;
    Some(format!("line {line}, column {field}: {ANEW}"))
}

/// Finds the place of a value of a wrong type in messages about CSV files. The message has the value and the whole row,
/// and these can look like a place themselves; so a place is taken from it only if nothing else in it looks like one.
fn csv_value_place(text: &str) -> Option<String> {
    if text.starts_with("Error while parsing value '") {
        // ".. for column {} at line {}. Row data: '..'"
        return only_place(text, " for column ", ". Row data: '");
    }
    // "Error parsing column {} at line {}: .."
    let rest = text.strip_prefix("Error parsing column ")?;
    let (column, rest) = digits(rest)?;
    let (line, _) = digits(rest.strip_prefix(" at line ")?)?;
    Some(place(line, column))
}

fn numbers<const N: usize>(text: &str, parts: &[&str; N]) -> Option<[u64; N]> {
    let mut rest = text;
    let mut found = [0; N];
    for (number, part) in found.iter_mut().zip(parts) {
        (*number, rest) = digits(rest.strip_prefix(part)?)?;
    }
    rest.is_empty().then_some(found)
}

/// Returns the place between two words, if there is exactly one.
fn only_place(text: &str, before: &str, after: &str) -> Option<String> {
    let mut places = text.match_indices(before).filter_map(|(at, _)| {
        let (column, rest) = digits(&text[at + before.len()..])?;
        let (line, rest) = digits(rest.strip_prefix(" at line ")?)?;
        rest.starts_with(after).then_some((line, column))
    });
    let (line, column) = places.next()?;
    places.next().is_none().then(|| place(line, column))
}

/// Describes a place; Arrow counts lines and columns of values from 0.
fn place(line: u64, column: u64) -> String {
    format!("line {}, column {}", line.saturating_add(1), column.saturating_add(1))
}

fn digits(text: &str) -> Option<(u64, &str)> {
    let end = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    Some((text[..end].parse().ok()?, &text[end..]))
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use datafusion::common::exec_datafusion_err;

    use super::*;

    const SECRET: &str = "4711-secret";

    fn text_of(error: DataFusionError) -> String {
        without_values(error, "mondrian", "the input", Some("data/x.csv")).strip_backtrace()
    }

    #[test]
    fn errors_of_any_statement_have_no_values_but_names() {
        for text in [
            format!("Table 'x' {SECRET}"),
            format!("cannot parse {SECRET}"),
            format!("View '{SECRET}\n' doesn't exist."),
        ] {
            let hidden = hide_values(DataFusionError::Execution(text)).strip_backtrace();
            assert!(!hidden.contains(SECRET) && hidden.contains("not shown"), "{hidden}");
        }
        let cast = ArrowError::CastError(format!("Cannot cast string '{SECRET}' to value of Int32 type"));
        let hidden = hide_values(DataFusionError::from(cast)).strip_backtrace();
        assert!(!hidden.contains(SECRET) && hidden.contains("a cast failed"), "{hidden}");
        let full = std::io::Error::other(std::io::Error::from_raw_os_error(28));
        for failed in [
            DataFusionError::External(Box::new(std::io::Error::from_raw_os_error(28))),
            DataFusionError::from(ParquetError::External(Box::new(full))),
        ] {
            let told = hide_values(failed).strip_backtrace();
            assert!(told.contains("could not be read or written: No space left on device"), "{told}");
        }
        let named = exec_datafusion_err!("Table 'people' already exists");
        assert!(hide_values(named).strip_backtrace().ends_with("Table 'people' already exists"));
    }

    #[test]
    fn no_type_of_error_lets_a_value_through() {
        let secret = || SECRET.to_owned();
        let arrow = [
            ArrowError::CastError(secret()),
            ArrowError::ParseError(secret()),
            ArrowError::SchemaError(secret()),
            ArrowError::ComputeError(secret()),
            ArrowError::ArithmeticOverflow(secret()),
            ArrowError::CsvError(secret()),
            ArrowError::JsonError(secret()),
            ArrowError::AvroError(secret()),
            ArrowError::IpcError(secret()),
            ArrowError::InvalidArgumentError(secret()),
            ArrowError::ParquetError(secret()),
            ArrowError::CDataInterface(secret()),
            ArrowError::NotYetImplemented(secret()),
            ArrowError::MemoryError(secret()),
            ArrowError::ExternalError(secret().into()),
            ArrowError::ExternalError(Box::new(exec_datafusion_err!("{SECRET}"))),
            ArrowError::IoError(secret(), std::io::Error::other(secret())),
        ];
        let parquet = [
            ParquetError::General(secret()),
            ParquetError::NYI(secret()),
            ParquetError::EOF(secret()),
            ParquetError::ArrowError(secret()),
            ParquetError::External(secret().into()),
        ];
        let errors = [
            DataFusionError::Execution(secret()),
            DataFusionError::Internal(secret()),
            DataFusionError::Plan(secret()),
            DataFusionError::Configuration(secret()),
            DataFusionError::NotImplemented(secret()),
            DataFusionError::Substrait(secret()),
            DataFusionError::Ffi(secret()),
            DataFusionError::External(secret().into()),
            DataFusionError::IoError(std::io::Error::other(secret())),
        ];
        let all = arrow
            .into_iter()
            .map(DataFusionError::from)
            .chain(parquet.into_iter().map(DataFusionError::from))
            .chain(errors)
            .flat_map(|error| {
                let error = Arc::new(error);
                let shared = || DataFusionError::Shared(Arc::clone(&error));
                [
                    shared(),
                    shared().context(SECRET),
                    DataFusionError::Collection(vec![shared(), exec_datafusion_err!("{SECRET}")]),
                    ArrowError::ExternalError(Box::new(shared())).into(),
                ]
            });
        for error in all {
            let before = error.to_string();
            let why = told(&error);
            let text = text_of(error);
            assert!(text.contains("mondrian: "), "{text}");
            for text in [why, text] {
                assert!(!text.contains("4711") && !text.contains("secret"), "{before}\n{text}");
            }
        }
    }

    #[test]
    fn our_own_words_pass_whatever_they_are_wrapped_in() {
        let own: DataFusionError = AnonymizeError::new("mondrian", ErrorKind::Refused, "k = 9 is too much").into();
        let wrapped = DataFusionError::from(ArrowError::ExternalError(Box::new(own.context(SECRET))));
        let text = without_values(wrapped.context(SECRET), "disclosure", "releases", None);
        assert_eq!(
            AnonymizeError::of(&text).map(AnonymizeError::to_string).as_deref(),
            Some("mondrian: k = 9 is too much")
        );
        assert!(!text.to_string().contains(SECRET));
        // Words that look like ours are not ours.
        let fake = exec_datafusion_err!("mondrian: {SECRET}");
        assert!(!text_of(fake).contains(SECRET));
    }

    #[test]
    fn what_helps_is_said() {
        let missing = std::io::Error::from_raw_os_error(2);
        assert!(text_of(DataFusionError::IoError(missing)).contains("No such file"));
        let memory = DataFusionError::ResourcesExhausted("Failed to allocate 5 bytes for SortExec[0]".to_owned());
        let text = text_of(memory);
        assert!(text.contains("Resources exhausted") && text.contains("SortExec[0]"), "{text}");
    }

    #[test]
    fn places_in_csv_files_are_said_unless_a_value_could_be_one() {
        let place = |text: &str| csv_place(text).or_else(|| csv_value_place(text));
        assert_eq!(
            place("incorrect number of fields for line 3, expected 2 got 1").as_deref(),
            Some("line 3: 2 fields were expected, and there are 1")
        );
        assert_eq!(
            place("incorrect number of fields for line 3, expected 2 got more than 2").as_deref(),
            Some("line 3: 2 fields were expected, and there are more than 2")
        );
        assert_eq!(
            place("Error while parsing value 'x' as type 'Int64' for column 0 at line 7. Row data: '[x,y]'").as_deref(),
            Some("line 8, column 1")
        );
        assert_eq!(
            place("Error parsing column 2 at line 9: Parser error: Error parsing timestamp from 'x'").as_deref(),
            Some("line 10, column 3")
        );
        assert_eq!(
            place("Encountered invalid UTF-8 data for line 1 and field 4").as_deref(),
            Some(
                "line 1, column 4: the text is not UTF-8; write the file anew as UTF-8, for example iconv -f WINDOWS-1252 -t UTF-8 old.csv > new.csv"
            )
        );
        // A value that looks like a place.
        let value = " for column 4711 at line 42. Row data: '";
        let text = format!(
            "Error while parsing value '{value}' as type 'Int64' for column 0 at line 7. Row data: '[{value}]'"
        );
        assert_eq!(place(&text), None);
        assert_eq!(place("incorrect number of fields for line 3, expected 2 got 1 4711"), None);
        assert_eq!(place("4711"), None);
    }
}
