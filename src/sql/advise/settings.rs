//! The methods and settings that `advise` tries.

use super::bench::TableRoles;
use crate::methods::{METHODS, Registered, Trial};
use crate::release::Form;
use crate::sql::signature::Parameter;

/// A method that can be recommended, or be compared with.
#[derive(Debug, Clone, Copy)]
pub(super) struct Tried {
    method: &'static Registered,
    trial: &'static Trial,
    /// Its place among all.
    pub number: u64,
}

impl Tried {
    /// Lists all: first those with memory of this release, then those with exact quasi-identifiers.
    fn all() -> Vec<Self> {
        let of = |method: &'static Registered| method.trials.iter().map(move |trial| Self { method, trial, number: 0 });
        let mut all: Vec<Self> = METHODS.iter().flat_map(of).collect();
        all.sort_by_key(|tried| (!tried.has_memory(), !tried.is_exact()));
        (0..).zip(&mut all).for_each(|(number, tried)| tried.number = number);
        all
    }

    #[cfg(test)]
    pub(super) fn of(method: &str, parameter: &str) -> Self {
        let mut all = Self::all().into_iter();
        all.find(|tried| tried.name() == method && tried.column() == parameter).unwrap()
    }

    pub(super) fn name(self) -> &'static str {
        self.method.signature.name
    }

    /// Returns the parameter that is varied.
    pub(super) fn parameter(self) -> &'static str {
        self.trial.parameter
    }

    /// Returns the parameter as users see it. A reader other than the default stands in parentheses.
    pub(super) fn column(self) -> String {
        match self.trial.reader {
            Some(reader) => format!("{} ({reader})", self.trial.parameter),
            None => self.trial.parameter.to_owned(),
        }
    }

    /// Returns the reader for whom the bound holds, if that is not the default.
    pub(super) fn reader(self) -> Option<&'static str> {
        self.trial.reader
    }

    /// Returns true if its next release knows of this one. Those with exact quasi-identifiers are tried with groups of the whole table, which do not.
    pub(super) fn has_memory(self) -> bool {
        let takes_previous = |parameter: &Parameter| parameter.name == Parameter::PREVIOUS.name;
        !self.is_exact() && self.method.signature.parameters.iter().any(takes_previous)
    }

    /// Returns true if a bound on the probability of each sensitive value comes with it.
    pub(super) fn is_bounded(self) -> bool {
        self.trial.bounded
    }

    /// Returns true if it publishes everybody's quasi-identifiers as they are.
    pub(super) fn is_exact(self) -> bool {
        self.trial.form == Form::Anatomy
    }

    /// Returns true if its rows look like rows.
    pub(super) fn is_perturbed(self) -> bool {
        self.trial.form == Form::Perturbed
    }
}

impl PartialEq for Tried {
    fn eq(&self, other: &Self) -> bool {
        self.number == other.number
    }
}

/// Values of parameters that are tried.
const VALUES: [usize; 8] = [2, 3, 4, 5, 7, 10, 15, 20];

#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Setting {
    pub method: Tried,
    pub value: usize,
}

/// Lists the settings that are tried on so many rows. What the most frequent sensitive value rules out is left out,
/// but for the least setting, which is there to say so.
pub(super) fn settings(people: &TableRoles, rows: usize) -> Vec<Setting> {
    let possible = |method: Tried, value: usize| {
        value == VALUES[0] || value <= if method.trial.by_values { people.largest } else { rows }
    };
    let of = |method| {
        VALUES.into_iter().filter(move |&value| possible(method, value)).map(move |value| Setting { method, value })
    };
    Tried::all().into_iter().flat_map(of).collect()
}

impl Setting {
    /// Returns the call on a table with these roles and further arguments.
    pub(super) fn call(&self, table: &str, roles: &str, more: &str) -> String {
        let own = self.method.trial.arguments.replace("{}", &self.value.to_string());
        let reader = self.method.reader().map(|reader| format!(", reader => '{reader}'")).unwrap_or_default();
        format!("{}({table}, {own}, {roles}{reader}{more})", self.method.name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::microdata::Several;

    fn people(largest: usize) -> TableRoles {
        let (quasi, sensitive) = (vec!["age".to_owned(), "Zip code".to_owned()], vec!["disease".to_owned()]);
        TableRoles {
            id: "person".to_owned(),
            has_id: true,
            quasi,
            sensitive,
            several: Several::Each,
            exact: Vec::new(),
            largest,
        }
    }

    #[test]
    fn only_what_is_possible_is_tried() {
        let tried = settings(&people(6), 1000);
        let of = |method| {
            tried.iter().filter(|setting| setting.method == method).map(|setting| setting.value).collect::<Vec<_>>()
        };
        assert_eq!(of(Tried::of("m_invariant", "m")), [2, 3, 4, 5]);
        assert_eq!(of(Tried::of("mondrian", "k")), VALUES);
        assert_eq!(
            settings(&people(1), 1000).iter().filter(|setting| setting.method == Tried::of("anatomy", "l")).count(),
            1
        );
    }

    #[test]
    fn calls_can_be_pasted() {
        let call = |method| Setting { method, value: 3 }.call("patients", &people(9).roles(), "");
        let roles = "id => person, quasi => (age, \"Zip code\"), sensitive => disease";
        assert_eq!(call(Tried::of("m_invariant", "m")), format!("m_invariant(patients, 3, {roles})"));
        let participant = call(Tried::of("m_invariant", "m (participant)"));
        assert_eq!(participant, format!("m_invariant(patients, 3, {roles}, reader => 'participant')"));
        assert_eq!(call(Tried::of("mondrian", "l")), format!("mondrian(patients, l => 3, {roles})"));
    }
}
