//! The methods and settings that `advise` tries.

use super::bench::TableRoles;

/// A method that can be recommended, or be compared with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Tried {
    MInvariant,
    MDistinct,
    Anatomy,
    MondrianDiverse,
    MondrianSize,
    Muco,
}

impl Tried {
    const ALL: [Self; 6] =
        [Self::MInvariant, Self::MDistinct, Self::Anatomy, Self::MondrianDiverse, Self::MondrianSize, Self::Muco];

    /// Name of the function.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::MInvariant => "m_invariant",
            Self::MDistinct => "m_distinct",
            Self::Anatomy => "anatomy",
            Self::MondrianDiverse | Self::MondrianSize => "mondrian",
            Self::Muco => "muco",
        }
    }

    /// What is varied.
    pub(super) fn parameter(self) -> &'static str {
        match self {
            Self::MInvariant | Self::MDistinct => "m",
            Self::Anatomy | Self::MondrianDiverse => "l",
            Self::MondrianSize => "k",
            Self::Muco => "1/delta",
        }
    }

    /// Whether its next release knows of this one.
    pub(super) fn has_memory(self) -> bool {
        matches!(self, Self::MInvariant | Self::MDistinct)
    }

    /// Whether a bound on the probability of each sensitive value comes with it.
    pub(super) fn is_bounded(self) -> bool {
        matches!(self, Self::MInvariant | Self::Anatomy | Self::MondrianDiverse)
    }
}

/// What parameters are tried.
const VALUES: [usize; 8] = [2, 3, 4, 5, 7, 10, 15, 20];

/// A method with its parameter.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Setting {
    pub method: Tried,
    pub value: usize,
}

/// Everything that is tried on so many rows. What the most frequent sensitive value rules out is left out, but for the least setting,
/// which is there to say so.
pub(super) fn settings(people: &TableRoles, rows: usize) -> Vec<Setting> {
    let possible = |method: Tried, value: usize| match method {
        Tried::MondrianSize => value == VALUES[0] || value <= rows,
        _ => value == VALUES[0] || value <= people.largest,
    };
    let of = |method| {
        VALUES.into_iter().filter(move |&value| possible(method, value)).map(move |value| Setting { method, value })
    };
    Tried::ALL.into_iter().flat_map(of).collect()
}

impl Setting {
    /// The call on a table with these roles and further arguments.
    pub(super) fn call(&self, table: &str, roles: &str, more: &str) -> String {
        let value = self.value;
        let own = match self.method {
            Tried::MInvariant | Tried::Anatomy => value.to_string(),
            Tried::MDistinct => format!("{value}, updates => 'any'"),
            Tried::MondrianDiverse => format!("l => {value}"),
            Tried::MondrianSize => format!("k => {value}"),
            Tried::Muco => format!("1.0 / {value}"),
        };
        format!("{}({table}, {own}, {}{more})", self.method.name(), roles)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn people(largest: usize) -> TableRoles {
        let (quasi, sensitive) = (vec!["age".to_owned(), "Zip code".to_owned()], vec!["disease".to_owned()]);
        TableRoles { id: "person".to_owned(), has_id: true, quasi, sensitive, exact: Vec::new(), largest }
    }

    #[test]
    fn only_what_is_possible_is_tried() {
        let tried = settings(&people(6), 1000);
        let of = |method| {
            tried.iter().filter(|setting| setting.method == method).map(|setting| setting.value).collect::<Vec<_>>()
        };
        assert_eq!(of(Tried::MInvariant), [2, 3, 4, 5]);
        assert_eq!(of(Tried::MondrianSize), VALUES);
        assert_eq!(settings(&people(1), 1000).iter().filter(|setting| setting.method == Tried::Anatomy).count(), 1);
    }

    #[test]
    fn calls_can_be_pasted() {
        let call = |method| Setting { method, value: 3 }.call("patients", &people(9).roles(), "");
        let roles = "id => person, quasi => (age, \"Zip code\"), sensitive => disease";
        assert_eq!(call(Tried::MInvariant), format!("m_invariant(patients, 3, {roles})"));
        assert_eq!(call(Tried::MondrianDiverse), format!("mondrian(patients, l => 3, {roles})"));
    }
}
