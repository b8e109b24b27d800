//! Roles of columns: from the arguments, else from the columns' metadata, else from the session's settings.

use std::collections::HashSet;

use datafusion::common::{DFSchema, Result, internal_datafusion_err};

use super::arguments::Arguments;
use super::composite::way_out;
use super::options::{AnonymizeOptions, sensitive_names, split_names};
use super::signature::Style;
use crate::error::refusal;
use crate::methods::Needs;
use crate::microdata::{Role, Roles, Several};
use crate::release::{View, reserved_names};

/// More quasi-identifiers than this would be suppressed rather than generalized anyway.
const MOST_QUASI: usize = 64;

/// Returns the roles of a call on a table with these columns.
pub(super) fn roles(
    arguments: &Arguments,
    options: &AnonymizeOptions,
    schema: &DFSchema,
    view: View,
    needs: Needs,
) -> Result<Roles> {
    let finder = Finder { arguments, options, schema };
    let private = view == View::Private;
    let mut roles = Roles::default();
    roles.id = finder.single(Role::Id, "the identifier", "identifier column", "patient_id", needs.id || private)?;
    roles.quasi = finder.find(Role::Quasi, "quasi-identifier columns", "(age, zip)", true)?;
    let sensitive = "the sensitive attribute";
    roles.sensitive = finder.single(Role::Sensitive, sensitive, "sensitive column", "disease", needs.sensitive)?;
    // Worlds are of the whole table.
    if !needs.other {
        roles.within = finder.single(Role::Within, "the column to anonymize within", "column", "month", false)?;
    }
    if needs.other {
        roles.other = finder.find(Role::Other, "column", "(symptom, ward)", false)?;
    }
    // Where people are in several releases, nothing is kept, whatever the metadata of columns say.
    if !needs.other && !arguments.is_refused(Role::Insensitive.name()) {
        roles.insensitive = finder.find(Role::Insensitive, "columns to keep", "(ward, hours)", false)?;
    }
    check(arguments, &roles, view)?;
    Ok(roles)
}

/// Returns the columns of the sensitive attribute of a call: none that are known, one, or several; and the subject of the bound.
pub(super) fn sensitive_columns(
    arguments: &Arguments,
    options: &AnonymizeOptions,
    schema: &DFSchema,
) -> Result<(Vec<String>, Several)> {
    let role = Role::Sensitive;
    let finder = Finder { arguments, options, schema };
    let columns = finder.find(role, "sensitive column", "disease", false)?;
    let is_set = arguments.columns(role.name()).is_none() && finder.declared(role).next().is_none();
    let several = match options.sensitive.as_deref().filter(|_| is_set) {
        Some(setting) => sensitive_names(setting).1,
        None => arguments.several(role.name()),
    };
    Ok((columns, several))
}

/// Returns the sensitive attribute of a call that has no other roles.
pub(super) fn sensitive(arguments: &Arguments, options: &AnonymizeOptions, schema: &DFSchema) -> Result<String> {
    let finder = Finder { arguments, options, schema };
    let found = finder.single(Role::Sensitive, "the sensitive attribute", "sensitive column", "disease", true)?;
    found.ok_or_else(|| internal_datafusion_err!("no sensitive attribute"))
}

struct Finder<'a> {
    arguments: &'a Arguments,
    options: &'a AnonymizeOptions,
    schema: &'a DFSchema,
}

impl Finder<'_> {
    /// Returns the columns whose metadata have this role.
    fn declared(&self, role: Role) -> impl Iterator<Item = String> {
        let fields = self.schema.fields().iter();
        fields
            .filter(move |field| field.metadata().get(Role::KEY).and_then(|text| Role::parse(text)) == Some(role))
            .map(|field| field.name().clone())
    }

    fn find(&self, role: Role, what: &str, example: &str, needed: bool) -> Result<Vec<String>> {
        if let Some(columns) = self.arguments.columns(role.name()) {
            return Ok(columns.to_vec());
        }
        let columns: Vec<String> = self.declared(role).collect();
        if !columns.is_empty() {
            return Ok(columns);
        }
        let setting = match role {
            Role::Id => &self.options.id,
            Role::Quasi => &self.options.quasi,
            Role::Sensitive => &self.options.sensitive,
            Role::Within | Role::Other | Role::Insensitive => &None,
        };
        let names: fn(&str) -> Vec<String> =
            if role == Role::Sensitive { |text: &str| sensitive_names(text).0 } else { split_names };
        let mut columns = setting.as_deref().map(names).unwrap_or_default();
        if !needed {
            // Settings are for all tables; one that has no such column just does without.
            columns.retain(|name| self.schema.fields().iter().any(|field| field.name() == name));
            return Ok(columns);
        }
        if !columns.is_empty() {
            return Ok(columns);
        }
        let name = role.name();
        Err(refusal!(
            self.arguments.function(),
            "no {what}; name it with {}, or SET anonymize.{name} = '{}', or give the column the metadata {} = '{name}'",
            self.arguments.style().write(name, example),
            example.trim_matches(['(', ')']),
            Role::KEY
        ))
    }

    fn single(&self, role: Role, what: &str, column: &str, example: &str, needed: bool) -> Result<Option<String>> {
        let columns = self.find(role, column, example, needed)?;
        if columns.len() > 1 && role == Role::Sensitive {
            return Err(refusal!(
                self.arguments.function(),
                "{} columns are declared as {what}, but here there must be one; {}",
                columns.len(),
                way_out(&columns)
            ));
        }
        if columns.len() > 1 {
            return Err(refusal!(
                self.arguments.function(),
                "{} columns are declared as {what}, but there must be one; choose with {}",
                columns.len(),
                self.arguments.style().write(role.name(), "..")
            ));
        }
        Ok(columns.into_iter().next())
    }
}

fn check(arguments: &Arguments, roles: &Roles, view: View) -> Result<()> {
    let function = arguments.function();
    if roles.quasi.len() > MOST_QUASI {
        return Err(refusal!(
            function,
            "{} quasi-identifiers are too many: at most {MOST_QUASI} are supported",
            roles.quasi.len()
        ));
    }
    for (role, named) in
        [(Role::Quasi, &roles.quasi), (Role::Other, &roles.other), (Role::Insensitive, &roles.insensitive)]
    {
        let repeated = named.iter().enumerate().find(|(place, column)| named[..*place].contains(column));
        if let Some((_, column)) = repeated {
            let mut once: Vec<&str> = Vec::new();
            for name in named {
                if !once.contains(&name.as_str()) {
                    once.push(name);
                }
            }
            let once = match arguments.style() {
                Style::Call => format!("({})", once.join(", ")),
                Style::Options => format!("'{}'", once.join(", ")),
            };
            return Err(refusal!(
                function,
                argument role.name(),
                "column {column} is in {} twice; name it once: {}",
                role.name(),
                arguments.style().write(role.name(), &once)
            ));
        }
    }
    let mut seen = HashSet::new();
    for column in roles.columns() {
        if !seen.insert(column) {
            if roles.within.as_ref() == Some(column) {
                return Err(refusal!(
                    function,
                    "column {column} has two roles; leave it out of the others: the rows of a group share its value \
                     anyway, which is published as it is"
                ));
            }
            return Err(refusal!(
                function,
                "column {column} has two roles; each of id, quasi and sensitive needs columns of its own"
            ));
        }
        if reserved_names(view).contains(&column.as_str()) {
            let place = match arguments.style() {
                Style::Call => " in a query in parentheses",
                Style::Options => "",
            };
            return Err(refusal!(function, "a release has a column {column} of its own; rename yours{place}"));
        }
    }
    Ok(())
}
