//! OPTIONS of a publication: those of the method's function, and a few of its own.

use std::any::Any;
use std::collections::HashMap;

use datafusion::catalog::Session;
use datafusion::common::config::{ConfigEntry, ConfigExtension, ExtensionOptions};
use datafusion::common::{Result, ScalarValue, TableReference};
use datafusion::datasource::provider_as_source;
use datafusion::execution::session_state::SessionState;
use datafusion::logical_expr::{LogicalPlan, LogicalPlanBuilder};

use crate::error::refusal;
use crate::exec::REPOSITION;
use crate::methods::{METHODS, Offered, Registered, Share};
use crate::publication::{BEGIN, MAX_MISSING, PERIOD, Period, parse_period};
use crate::sql::arguments::{Arguments, Scope};
use crate::sql::options::{AnonymizeOptions, names_together, split_names};
use crate::sql::reposition::{INNER, PUBLISHED};
use crate::sql::session_tables;
use crate::sql::signature::{FunctionSignature, Parameter, Style, suggestion};

/// Parameters that a publication decides by itself, or knows from its ledger.
const NOT_OFFERED: [Parameter; 4] = [Parameter::INPUT, Parameter::SEED, Parameter::PRIVATE, Parameter::PREVIOUS];

/// Options that are the publication's own: name, kind as bindings call it, purpose, and what holds without it.
pub(in crate::sql) const OWN: [(&str, &str, &str, &str); 8] = [
    ("method", "word", "how releases are made", "none: opened for reading"),
    (
        BEGIN,
        "boolean",
        "true once, to begin the publication. Without it, a place where nothing is counts as storage that is away, and is refused",
        "false",
    ),
    (
        "private",
        "place",
        "where the ledger is, also in another store; never below the public place",
        "beside the public place",
    ),
    ("moved_from", "place", "the public place that the first release was decided for, if that was another one", "none"),
    (
        "allow_independent_releases",
        "boolean",
        "true if no person is ever in two releases, for methods that know nothing of earlier ones",
        "false",
    ),
    (
        "allow_repeated_snapshots",
        "boolean",
        "true publishes a table that has come back to what it was at an earlier release",
        "false",
    ),
    (
        MAX_MISSING,
        "number",
        "greatest share of the people of the newest release who may be missing in the next one, 0 to 1",
        "all but everybody",
    ),
    (PERIOD, "period", "day, week, month or quarter that snapshots are of, where values change by a law", "none"),
];

/// Prefixes of options that are for the object stores.
const STORES: [&str; 5] = ["aws", "gcp", "oss", "cos", "azure"];

#[derive(Debug)]
pub(super) struct Options {
    /// Options that the method takes.
    values: Vec<(String, String)>,
    method: Option<String>,
    /// Location of the ledger.
    pub private: Option<String>,
    /// Location where the publication was to be when its first release was decided.
    pub moved_from: Option<String>,
    /// True if a method without a ledger may make further releases.
    pub independent: bool,
    /// True if the snapshot of an earlier release may be published again.
    pub repeated: bool,
    /// Period of the snapshots.
    pub period: Option<Period>,
    /// True if the publication may begin here.
    pub begin: bool,
    /// Share of the newest release's people that may be missing in the next one.
    pub max_missing: Option<Share>,
}

impl Options {
    /// Sorts the options of a statement; plain ones arrive as `format.key`.
    pub(super) fn try_new(options: &HashMap<String, String>) -> Result<Self> {
        let mut sorted = Self {
            values: Vec::new(),
            method: None,
            private: None,
            moved_from: None,
            independent: false,
            repeated: false,
            period: None,
            begin: false,
            max_missing: None,
        };
        let mut given: Vec<(&str, &String)> = Vec::new();
        for (key, value) in options {
            let name = match key.split_once('.') {
                Some(("format" | "anonymize", name)) => name,
                Some((store, _)) if STORES.contains(&store) => continue,
                _ => key,
            };
            if given.iter().any(|(other, _)| *other == name) {
                return Err(
                    refusal!("publication", argument name, "option {name} is given twice, with and without prefix"),
                );
            }
            given.push((name, value));
        }
        // One order, so that of several mistakes always the same is reported.
        given.sort_unstable();
        for (name, value) in given {
            match name {
                "method" => sorted.method = Some(value.trim().to_ascii_lowercase()),
                "private" => sorted.private = Some(value.clone()),
                "moved_from" => sorted.moved_from = Some(value.clone()),
                "allow_independent_releases" => sorted.independent = boolean(name, value)?,
                "allow_repeated_snapshots" => sorted.repeated = boolean(name, value)?,
                PERIOD => sorted.period = Some(parse_period(value)?),
                BEGIN => sorted.begin = boolean(name, value)?,
                MAX_MISSING => sorted.max_missing = Some(share(name, value)?),
                _ => sorted.values.push((name.to_owned(), value.clone())),
            }
        }
        Ok(sorted)
    }

    /// Returns true if nothing is said about how to publish: a publication that is only read.
    pub(super) fn is_for_reading(&self) -> bool {
        let own = self.method.is_some() || self.private.is_some() || self.moved_from.is_some() || self.period.is_some();
        let missing = self.max_missing.is_some();
        self.values.is_empty() && !own && !missing && !self.begin && !self.independent && !self.repeated
    }

    /// Returns the arguments of a stream that is repositioned. What is left is for the method that makes groups, within
    /// the published time.
    pub(super) fn reposition(&mut self, session: &dyn Session) -> Result<Option<Arguments>> {
        if self.method.as_deref() != Some(REPOSITION) {
            return Ok(None);
        }
        if self.values.iter().any(|(name, _)| name == Parameter::WITHIN.name) {
            return Err(refusal!(
                "publication",
                argument Parameter::WITHIN.name,
                "option within is not for {REPOSITION}, whose inner method works within the published time anyway"
            ));
        }
        let takes = |name: &str| PUBLISHED.parameters.iter().any(|parameter| parameter.name == name);
        let (own, rest): (Vec<_>, Vec<_>) =
            std::mem::take(&mut self.values).into_iter().partition(|(name, _)| takes(name));
        self.values = rest;
        let values = own.iter().map(|(name, value)| (Some(name.clone()), value.clone())).collect();
        let arguments = Arguments::bind(&PUBLISHED, values, &mut OptionScope { session })?;
        let inner = arguments.word(INNER).unwrap_or_default().to_owned();
        let has_l = |Registered { signature, .. }: &Registered| {
            signature.name == inner && signature.parameters.iter().any(|parameter| parameter.name == "l")
        };
        let l = own.iter().filter(|(name, _)| name == "l" && METHODS.iter().any(has_l));
        self.values.extend(l.cloned());
        let time = arguments.columns("time").unwrap_or_default().concat();
        self.values.push((Parameter::WITHIN.name.to_owned(), time));
        self.method = Some(inner);
        Ok(Some(arguments))
    }

    /// Returns the method and its arguments. The column of a primary key is the identifier.
    pub(super) fn bind(
        mut self,
        session: &dyn Session,
        primary_key: Option<String>,
    ) -> Result<(&'static Registered, Arguments)> {
        let names: Vec<&str> = takers().map(|(name, _)| name).collect();
        let Some(name) = &self.method else {
            let is_meant = |option: &&str| !suggestion(option, ["method"]).is_empty();
            let offered = |option: &&str| {
                publishing().flat_map(|method| method.signature.parameters).any(|parameter| parameter.name == *option)
            };
            let given = self.values.iter().map(|(option, _)| option.as_str());
            if let Some(option) = given.into_iter().find(|option| is_meant(option) && !offered(option)) {
                return Err(refusal!(
                    "publication",
                    argument option,
                    "unknown option {option}{}, which is one of {}",
                    suggestion(option, ["method"]),
                    names.join(", ")
                ));
            }
            return Err(
                refusal!("publication", argument "method", "option method is missing; it is one of {}", names.join(", ")),
            );
        };
        let Some(method) = publishing().find(|method| method.signature.name == name) else {
            return Err(refusal!(
                "publication",
                argument "method",
                "unknown method {name}{}; it is one of {}",
                suggestion(name, names.iter().copied()),
                names.join(", ")
            ));
        };
        let whole = method.signature;
        let offered: Vec<Parameter> = offered_by(whole).copied().collect();
        for (option, _) in &self.values {
            let candidates = || offered.iter().map(|parameter| parameter.name).chain(OWN.map(|(own, ..)| own));
            if let Some(why) = whole.why_not(option) {
                return Err(match option == Parameter::CELLS.name {
                    true => refusal!(
                        "publication",
                        argument option,
                        "releases of {name} cannot be made in cells: {why}; leave option {option} out"
                    ),
                    false => refusal!(
                        "publication",
                        argument option,
                        "{name} takes no option {option}: {why}; leave it out"
                    ),
                });
            }
            if !candidates().any(|candidate| candidate == option.as_str()) {
                return Err(refusal!(
                    "publication",
                    argument option,
                    "unknown option {option}{}; with {name} it takes {}",
                    suggestion(option, candidates()),
                    candidates().collect::<Vec<_>>().join(", ")
                ));
            }
        }
        match (primary_key, self.values.iter().find(|(name, _)| name == "id")) {
            (Some(key), Some((_, other))) if key != other.trim() => {
                return Err(refusal!(
                    "publication",
                    argument "id",
                    "the identifier is {other} in the options, but the primary key is {key}"
                ));
            }
            (Some(key), None) => self.values.push(("id".to_owned(), key)),
            _ => {}
        }
        let signature = FunctionSignature { parameters: &offered, ..*whole };
        let values = self.values.into_iter().map(|(name, value)| (Some(name), value)).collect();
        let arguments = Arguments::bind(&signature, values, &mut OptionScope { session })?;
        Ok((method, arguments))
    }
}

fn publishing() -> impl Iterator<Item = &'static Registered> {
    METHODS.iter().filter(|method| method.offered != Offered::Function)
}

/// Returns the parameters of a function that are options of publications.
fn offered_by(signature: &'static FunctionSignature<'static>) -> impl Iterator<Item = &'static Parameter> {
    let is_offered = |parameter: &&Parameter| NOT_OFFERED.iter().all(|other| other.name != parameter.name);
    signature.parameters.iter().filter(is_offered)
}

/// Lists the values of option `method`, each with the options that it takes.
pub(in crate::sql) fn takers() -> impl Iterator<Item = (&'static str, Vec<&'static Parameter>)> {
    publishing()
        .map(|method| method.signature)
        .chain([&PUBLISHED])
        .map(|taker| (taker.name, offered_by(taker).collect()))
}

fn boolean(name: &str, value: &str) -> Result<bool> {
    match value.trim().to_ascii_lowercase().as_str() {
        "true" => Ok(true),
        "false" => Ok(false),
        _ => Err(refusal!("publication", argument name, "option {name} must be 'true' or 'false'")),
    }
}

fn share(name: &str, value: &str) -> Result<Share> {
    let share = value.trim().parse().ok().and_then(|value| Share::try_new(name, value).ok());
    share.ok_or_else(|| {
        refusal!(
            "publication",
            argument name,
            "option {name} must be a share from 0 to 1, for example '{name}' '0.2' if up to a fifth of the people of the newest release may be missing in \
             the next one"
        )
    })
}

/// Reads values that are all texts.
struct OptionScope<'a> {
    session: &'a dyn Session,
}

impl Scope for OptionScope<'_> {
    type Raw = String;

    fn relation(&mut self, raw: &String) -> Result<LogicalPlan> {
        let quoted = TableReference::bare(raw.as_str());
        let (reference, table) = match session_tables::table(self.session, &quoted) {
            Ok(table) => (quoted, table),
            Err(error) => {
                let parsed = TableReference::parse_str(raw);
                let table = session_tables::table(self.session, &parsed).map_err(|_| error)?;
                (parsed, table)
            }
        };
        LogicalPlanBuilder::scan(reference, provider_as_source(table), None)?.build()
    }

    fn columns(&self, raw: &String) -> Option<Vec<String>> {
        Some(split_names(raw))
    }

    fn together(&self, raw: &String) -> Option<Vec<String>> {
        names_together(raw)
    }

    fn constant(&mut self, raw: &String) -> Result<ScalarValue> {
        let text = raw.trim();
        if let Ok(number) = text.parse::<i64>() {
            return Ok(ScalarValue::from(number));
        }
        if let Ok(number) = text.parse::<f64>() {
            return Ok(ScalarValue::from(number));
        }
        Ok(match text.to_ascii_lowercase().as_str() {
            "true" => ScalarValue::from(true),
            "false" => ScalarValue::from(false),
            _ => ScalarValue::from(text),
        })
    }

    fn session(&self) -> Result<SessionState> {
        session_tables::session_state(self.session).cloned()
    }

    fn options(&self) -> AnonymizeOptions {
        self.session.config_options().extensions.get::<AnonymizeOptions>().cloned().unwrap_or_default()
    }

    fn style(&self) -> Style {
        Style::Options
    }
}

/// Lets `anonymize.*` options of a table pass earlier checks than the table's factory.
#[derive(Debug, Clone)]
pub(in crate::sql) struct AnyOption;

impl ConfigExtension for AnyOption {
    const PREFIX: &'static str = "anonymize";
}

impl ExtensionOptions for AnyOption {
    fn as_any(&self) -> &dyn Any {
        self
    }

    fn as_any_mut(&mut self) -> &mut dyn Any {
        self
    }

    fn cloned(&self) -> Box<dyn ExtensionOptions> {
        Box::new(self.clone())
    }

    fn set(&mut self, _key: &str, _value: &str) -> Result<()> {
        Ok(())
    }

    fn entries(&self) -> Vec<ConfigEntry> {
        Vec::new()
    }
}

/// Returns the error of a statement that a publication does not do.
pub(super) fn refused(what: &str, instead: &str) -> datafusion::common::DataFusionError {
    refusal!("publication", "{what}; {instead}")
}
