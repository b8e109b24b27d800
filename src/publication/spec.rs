//! Terms of a publication: its promise, and what its first release fixes for all later ones.

use serde::{Deserialize, Serialize};
use url::Url;

use super::period::Period;
use crate::error::Result;
use crate::methods::reposition::{Clock, Late, Reposition};
use crate::methods::{AnyMethod, Remembered, Share, StateKind, ValueChanges};
use crate::microdata::Roles;

/// Of a repositioned stream: what its parameters say beside those of the method.
pub(super) const WINDOW: &str = "window";

/// Terms that the first release fixes for all later ones.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct PublicationSpec {
    /// The method and its parameters.
    pub method: AnyMethod,
    /// Roles of the columns.
    pub roles: Roles,
    /// Delta Lake's types of the columns with roles, in the order of [`Roles::columns`].
    pub types: Vec<String>,
    /// True if values generalize along hierarchies.
    pub hierarchies: bool,
    /// True if there is an update relation, or a domain; which one, its fingerprint in the records says.
    pub updates: bool,
    /// Repositioning of rows before the method sees them, if any. Then the method works within the published time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub repositioned: Option<Repositioned>,
    /// Number of cells of every release; 0 if the first release is to decide.
    pub cells: u32,
}

/// A stream that is made eligible before it is published.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct Repositioned {
    /// Parameters of the method.
    pub params: Reposition,
    /// Clock that cuts times into snapshots.
    pub clock: Clock,
}

impl PublicationSpec {
    /// Returns the parameters of the method as a JSON object; of a repositioned stream also how many snapshots are held back, for a reader
    /// must know how late rows can be.
    /// Fails when the parameters cannot be serialized, which is a bug.
    pub(crate) fn parameters(&self) -> Result<serde_json::Map<String, serde_json::Value>> {
        let mut parameters = self.method.parameters()?;
        if let Some(Repositioned { params, .. }) = &self.repositioned {
            parameters.insert(WINDOW.to_owned(), params.window.into());
        }
        if self.cells > 1 {
            parameters.insert("cells".to_owned(), self.cells.into());
        }
        Ok(parameters)
    }

    /// Returns the same as a text.
    /// Fails when the parameters cannot be serialized, which is a bug.
    pub(crate) fn parameters_text(&self) -> Result<String> {
        Ok(serde_json::Value::Object(self.parameters()?).to_string())
    }

    /// Returns what the ledger remembers of people: what the method's releases leave to later ones; of methods that know of none, who was published, where
    /// rows have identifiers.
    pub(crate) fn remembers(&self) -> Option<StateKind> {
        self.method.state().or_else(|| self.roles.id.is_some().then_some(StateKind::People))
    }

    /// Returns the same as what an audit checks it by.
    pub(crate) fn promises_of_memory(&self) -> Remembered {
        match self.method.as_method().promises() {
            _ if self.keeps_apart() => Remembered::People,
            Some(promises) => promises.memory,
            None => Remembered::Nothing,
        }
    }

    /// Returns true if the publisher keeps people of a method without memory apart.
    pub(crate) fn keeps_apart(&self) -> bool {
        self.remembers() == Some(StateKind::People)
    }

    /// Returns true if values change by a law from period to period. Releases have to say their period then.
    pub(crate) fn counts_periods(&self) -> bool {
        self.updates && self.method.as_method().changes().are_lawful()
    }

    /// Returns true if releases can say which period they are of: where values change.
    pub(crate) fn may_count_periods(&self) -> bool {
        self.counts_periods() || self.method.as_method().changes().are_lawless()
    }

    /// Returns true if the relation beside the snapshots is of all values that can come. This is so where none ever changes.
    pub(crate) fn has_domain(&self) -> bool {
        self.updates && self.never_changes()
    }

    fn never_changes(&self) -> bool {
        self.method.as_method().changes() == ValueChanges::Never
    }

    /// Describes the differences from the terms that the publication was begun with; empty if there are none.
    pub(crate) fn differences(&self, begun: &Self) -> Vec<String> {
        let mut found = Vec::new();
        let mut compare = |what: &str, here: String, there: String| {
            if here != there {
                found.push(format!("{what} is {there} in the publication but {here} here"));
            }
        };
        compare("method", self.method.name().to_owned(), begun.method.name().to_owned());
        if self.method.name() == begun.method.name() {
            let parameters = |spec: &Self| spec.method.parameters().unwrap_or_default();
            let (here, there) = (parameters(self), parameters(begun));
            let names = here.keys().chain(there.keys().filter(|name| !here.contains_key(*name)));
            for name in names {
                let unsaid = self.method.as_method().unsaid(name).unwrap_or("not set");
                let text = |map: &serde_json::Map<String, serde_json::Value>| match map.get(name) {
                    Some(serde_json::Value::String(text)) => text.clone(),
                    Some(value) => value.to_string(),
                    None => unsaid.to_owned(),
                };
                compare(name, text(&here), text(&there));
            }
        }
        let one = |column: &Option<String>| column.clone().unwrap_or_else(|| "no column".to_owned());
        compare("id", one(&self.roles.id), one(&begun.roles.id));
        compare("quasi", self.roles.quasi.join(", "), begun.roles.quasi.join(", "));
        compare("sensitive", one(&self.roles.sensitive), one(&begun.roles.sensitive));
        compare("within", one(&self.roles.within), one(&begun.roles.within));
        compare("other", self.roles.other.join(", "), begun.roles.other.join(", "));
        compare("insensitive", self.roles.insensitive.join(", "), begun.roles.insensitive.join(", "));
        compare("hierarchies", given(self.hierarchies), given(begun.hierarchies));
        // Where values never change, the same place is for the domain.
        let relation = if self.never_changes() { "domain" } else { "updates" };
        compare(relation, given(self.updates), given(begun.updates));
        if self.cells > 0 {
            compare("cells", self.cells.to_string(), begun.cells.to_string());
        }
        let stream = |spec: &Self| spec.repositioned.as_ref().map_or_else(|| "not repositioned".to_owned(), describe);
        compare("the stream", stream(self), stream(begun));
        if self.roles == begun.roles {
            for (column, (here, there)) in self.roles.columns().zip(self.types.iter().zip(&begun.types)) {
                compare(&format!("the type of column {column}"), here.clone(), there.clone());
            }
        }
        found
    }
}

fn describe(Repositioned { params, clock }: &Repositioned) -> String {
    let suppress = params.suppress_cost.map_or_else(|| "not set".to_owned(), |cost| cost.get().to_string());
    let every = match clock {
        Clock::Units(units) => format!("{units} units of time"),
        Clock::Months { months, .. } => format!("{months} months"),
    };
    format!(
        "repositioned (l {}, window {}, every {every}, move_cost {:?}, move_factor {}, suppress_cost {suppress})",
        params.l,
        params.window,
        params.move_cost,
        params.move_factor.get()
    )
    .to_lowercase()
}

fn given(is: bool) -> String {
    if is { "given" } else { "not given" }.to_owned()
}

/// A publication as it was declared: plain data, for plans.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct Publication {
    /// Directory of the public table.
    pub public: Url,
    /// Directory of the ledger.
    pub private: Url,
    /// Planned place of the public table, if the first release is announced here instead.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub moved_from: Option<Url>,
    /// Terms that every release must keep to.
    #[serde(rename = "terms")]
    pub spec: PublicationSpec,
    /// True if a method without memory may make a second release.
    pub independent: bool,
    /// True if an earlier release's snapshot may be published again, unless it is the newest.
    pub repeated: bool,
    /// Treatment of rows whose snapshot an earlier INSERT has closed.
    pub late: Late,
    /// True if an INSERT publishes all that is held back.
    pub finish: bool,
    /// Period of the snapshot, where values change from period to period; else every release is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub period: Option<Period>,
    /// Share of the newest release's people that may be missing in the next one; `None` if nobody said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_missing: Option<Share>,
    /// True if the publication may begin here, where neither of its tables is.
    pub begin: bool,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::methods::anatomy::Anatomy;
    use crate::methods::m_invariance::{Balance, MInvariance};

    #[test]
    fn differences_are_named() {
        let spec = |method: AnyMethod, quasi: &str, kind: &str| {
            let mut roles = Roles::default();
            roles.quasi.push(quasi.to_owned());
            roles.sensitive = Some("disease".to_owned());
            let types = vec![kind.to_owned(), "Utf8".to_owned()];
            PublicationSpec { method, roles, types, hierarchies: false, updates: false, repositioned: None, cells: 1 }
        };
        let begun = spec(AnyMethod::MInvariance(MInvariance::new(10)), "age", "Int32");
        assert!(begun.differences(&begun).is_empty());
        let other = spec(AnyMethod::MInvariance(MInvariance::new(5)), "zip", "Int32");
        assert_eq!(
            other.differences(&begun),
            ["m is 10 in the publication but 5 here", "quasi is age in the publication but zip here"]
        );
        let other = spec(AnyMethod::Anatomy(Anatomy::new(5)), "age", "Int64");
        assert_eq!(
            other.differences(&begun),
            [
                "method is m_invariant in the publication but anatomy here",
                "the type of column age is Int32 in the publication but Int64 here"
            ]
        );
        let cells = |cells| PublicationSpec { cells, ..begun.clone() };
        assert!(cells(0).differences(&cells(16)).is_empty());
        assert_eq!(cells(1).differences(&cells(16)), ["cells is 16 in the publication but 1 here"]);
        assert_eq!(serde_json::from_str::<PublicationSpec>(&serde_json::to_string(&begun).unwrap()).unwrap(), begun);
        let before =
            spec(AnyMethod::MInvariance(MInvariance::of_cohort(10).with_balance(Balance::Minimal)), "age", "Int32");
        assert_eq!(
            begun.differences(&before),
            [
                "balance is minimal in the publication but blind here",
                "groups is cohort in the publication but close here"
            ]
        );
    }
}
