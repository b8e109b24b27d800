//! Roles that columns could have, guessed from names, types and counts.

use datafusion::arrow::datatypes::DataType;
use datafusion::common::utils::quote_identifier;

use super::ProfiledColumn;
use super::names::Named;
use super::shapes::unpublishable;
use crate::error::thousands;
use crate::microdata::Role;
use crate::risk::Division;

/// Says of a column that it has one person in several rows.
pub(crate) const SEVERAL_ROWS: &str = "people have several rows";

/// A role, and why.
pub(super) type Suggested = (Option<Role>, String);

/// Holds what is known of the columns. Of a column that cannot be published there is no division.
pub(super) struct Table<'a> {
    pub columns: &'a [ProfiledColumn],
    pub divisions: &'a [Option<Division>],
    pub nulls: &'a [usize],
    pub rows: usize,
}

impl Table<'_> {
    /// Returns a role for each column, and why. It is a suggestion.
    pub(super) fn suggested(&self) -> Vec<Suggested> {
        let names: Vec<Named> = self.columns.iter().map(|column| Named::of(column.field.name())).collect();
        let id = if self.given(Role::Id) || self.repeated(&names).is_some() { None } else { self.identifier(&names) };
        let mut sensitive_there = self.given(Role::Sensitive);
        let mut roles = Vec::new();
        for (place, column) in self.columns.iter().enumerate() {
            let suggested = match (column.role, &self.divisions[place]) {
                (Some(role), _) => (Some(role), "as given".to_owned()),
                (None, None) => (None, unpublishable(&column.field)),
                (None, Some(division)) if id == Some(place) => self.as_identifier(place, division),
                (None, Some(division)) => self.other(place, division, names[place], sensitive_there),
            };
            sensitive_there |= suggested.0 == Some(Role::Sensitive);
            roles.push(suggested);
        }
        roles
    }

    fn given(&self, role: Role) -> bool {
        self.columns.iter().any(|column| column.role == Some(role))
    }

    /// Returns true if every row has a value of its own.
    fn every_row(&self, place: usize) -> bool {
        let alone = self.divisions[place].as_ref().is_some_and(|division| division.unique == self.rows);
        self.rows > 1 && alone && self.nulls[place] == 0
    }

    fn may_identify(&self, place: usize) -> bool {
        let column = &self.columns[place];
        column.role.is_none() && self.divisions[place].is_some() && !column.field.data_type().is_floating()
    }

    /// Returns true if nearly every row has a value of its own: a row that is there twice does not make it something else.
    fn nearly(&self, place: usize) -> bool {
        self.rows >= 10
            && self.divisions[place].as_ref().is_some_and(|division| division.distinct * 10 >= self.rows * 9)
    }

    /// Returns the column that shows that people have several rows: their identifier, or, where rows have only a number of their own, what names people.
    fn repeated(&self, names: &[Named]) -> Option<usize> {
        (0..self.columns.len()).find(|&place| {
            let Some(division) = self.divisions[place].as_ref().filter(|_| self.may_identify(place)) else {
                return false;
            };
            match names[place] {
                Named::Person => division.distinct > 1 && !self.every_row(place) && !self.nearly(place),
                Named::Called => self.names_again(place, division),
                _ => false,
            }
        })
    }

    /// Returns true if a column repeats most names of people, and none identifies people. Whole names are rarely those
    /// of several people.
    fn names_again(&self, place: usize, division: &Division) -> bool {
        let identifies = |(place, column): (usize, &ProfiledColumn)| {
            Named::of(column.field.name()) == Named::Person && self.every_row(place)
        };
        division.distinct > 1
            && division.distinct * 2 <= self.rows - self.nulls[place]
            && !self.columns.iter().enumerate().any(identifies)
    }

    fn identifier(&self, names: &[Named]) -> Option<usize> {
        let all = || (0..self.columns.len()).filter(|&place| self.may_identify(place));
        let every_row = || all().filter(|&place| self.every_row(place));
        every_row()
            .find(|&place| names[place] == Named::Person)
            .or_else(|| every_row().find(|&place| names[place].is_identifier()))
            .or_else(|| all().find(|&place| names[place].is_identifier() && self.nearly(place)))
            .or_else(|| {
                let time = |place: usize| is_time(self.columns[place].field.data_type());
                every_row().find(|&place| names[place] == Named::Anything && !time(place))
            })
    }

    fn as_identifier(&self, place: usize, _division: &Division) -> Suggested {
        let why = match self.every_row(place) {
            true => "every row has a value of its own",
            false => {
                "by its name, and nearly every row has a value of its own; there must be one row per person: look for rows that are there twice, \
                 or have none"
            }
        };
        (Some(Role::Id), why.to_owned())
    }

    /// Returns the role of a column that is no identifier of rows.
    fn other(&self, place: usize, division: &Division, named: Named, sensitive_there: bool) -> Suggested {
        let column = &self.columns[place];
        let sensitive = named == Named::Sensitive;
        let singles_out = self.every_row(place) || division.unique * 2 > self.rows;
        if division.distinct <= 1 {
            let none = self.nulls[place] == self.rows && self.rows > 0;
            let what = if none { "no row has a value" } else { "all rows have the same value" };
            return (None, format!("{what}: leave it out"));
        }
        if matches!(named, Named::Person | Named::Called | Named::Number) && !self.is_code(named, division) {
            return (None, self.why_no_role(place, division, named));
        }
        if self.given(Role::Quasi) && (sensitive_there || !sensitive) {
            return (None, "not among the quasi-identifiers that are given".to_owned());
        }
        if !sensitive_there && sensitive {
            return (Some(Role::Sensitive), "by its name; check that it is what nobody should learn".to_owned());
        }
        if named == Named::FreeText {
            return (None, "free text can say anything about somebody: leave it out".to_owned());
        }
        let known = named == Named::Known || is_time(column.field.data_type());
        match (singles_out, known) {
            (true, true) => (
                Some(Role::Quasi),
                format!(
                    "others may know it, and it alone singles out most rows: make it coarser, as {}",
                    coarser(column)
                ),
            ),
            (true, false) => {
                (None, "it alone singles out most rows: leave it out, or make it coarser first".to_owned())
            }
            (false, _) => (Some(Role::Quasi), "others may know it of a person; if nobody can, leave it out".to_owned()),
        }
    }

    /// Returns true if a so-called number has few values, as codes of regions have.
    fn is_code(&self, named: Named, division: &Division) -> bool {
        named == Named::Number && division.distinct <= 50 && division.distinct * 10 <= self.rows
    }

    fn why_no_role(&self, place: usize, division: &Division, named: Named) -> String {
        let name = quote_identifier(self.columns[place].field.name());
        let repeats = self.rows - self.nulls[place] > division.distinct && named == Named::Person;
        match named {
            Named::Person if repeats && !self.given(Role::Id) => format!(
                "by its name it identifies people, and {} rows have {} of its values: {SEVERAL_ROWS}, and a release \
                 needs one: GROUP BY {name}",
                thousands(self.rows),
                thousands(division.distinct)
            ),
            Named::Called if !self.given(Role::Id) && self.names_again(place, division) => format!(
                "it names people, and {} rows have {} of its values: {SEVERAL_ROWS}, or it is a part of their names. A release needs one row each: \
                 GROUP BY {name}; if rows are people's, name their identifier: id => ..",
                thousands(self.rows),
                thousands(division.distinct)
            ),
            Named::Called => "it names people: leave it out".to_owned(),
            _ => "by its name it is an identifier: leave it out, or name its role".to_owned(),
        }
    }
}

fn is_time(data_type: &DataType) -> bool {
    matches!(data_type, DataType::Date32 | DataType::Date64 | DataType::Timestamp(..))
}

/// Returns an expression that has fewer values than the column.
fn coarser(column: &ProfiledColumn) -> String {
    let name = quote_identifier(column.field.name());
    let data_type = column.field.data_type();
    if is_time(data_type) {
        format!("date_part('year', {name}) AS {name}")
    } else if data_type.is_numeric() {
        format!("floor({name} / 10) * 10 AS {name}")
    } else {
        format!("left(CAST({name} AS VARCHAR), 3) AS {name}")
    }
}
