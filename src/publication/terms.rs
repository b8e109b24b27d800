//! What a publication has promised.

use serde::{Deserialize, Serialize};
use url::Url;

use crate::methods::Method;
use crate::microdata::Roles;

/// What the first release fixes for all later ones.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Terms {
    /// The method and its parameters.
    pub method: Method,
    /// Which columns are what.
    pub roles: Roles,
    /// Delta Lake's names of the types of the columns with roles, in the order of [`Roles::columns`].
    pub types: Vec<String>,
    /// Whether values generalize along hierarchies.
    pub hierarchies: bool,
    /// Whether there is an update relation; which one, its fingerprint in the records says.
    #[serde(default)]
    pub updates: bool,
}

impl Terms {
    /// How these differ from the ones that the publication was begun with, in words; empty if they do not.
    pub fn differences(&self, begun: &Self) -> Vec<String> {
        let mut found = Vec::new();
        let mut compare = |what: &str, here: String, there: String| {
            if here != there {
                found.push(format!("{what} is {there} in the publication but {here} here"));
            }
        };
        compare("method", self.method.name().to_owned(), begun.method.name().to_owned());
        if self.method.name() == begun.method.name() {
            let parameters = |terms: &Self| terms.method.parameters().unwrap_or_default();
            let (here, there) = (parameters(self), parameters(begun));
            for name in here.keys().chain(there.keys().filter(|name| !here.contains_key(*name))) {
                let text = |map: &serde_json::Map<String, serde_json::Value>| match map.get(name) {
                    Some(serde_json::Value::String(text)) => text.clone(),
                    Some(value) => value.to_string(),
                    None => "not set".to_owned(),
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
        compare("hierarchies", given(self.hierarchies), given(begun.hierarchies));
        compare("updates", given(self.updates), given(begun.updates));
        if self.roles == begun.roles {
            for (column, (here, there)) in self.roles.columns().zip(self.types.iter().zip(&begun.types)) {
                compare(&format!("the type of column {column}"), here.clone(), there.clone());
            }
        }
        found
    }
}

fn given(is: bool) -> String {
    if is { "given" } else { "not given" }.to_owned()
}

/// A publication as it was declared: plain data, for plans.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Publication {
    /// Directory of the public table.
    pub public: Url,
    /// Directory of the ledger.
    pub private: Url,
    /// What every release must keep to.
    pub terms: Terms,
    /// Whether a method that does not know of earlier releases may make a second one.
    pub independent: bool,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::methods::anatomy::Anatomy;
    use crate::methods::m_invariance::MInvariance;

    #[test]
    fn differences_are_named() {
        let terms = |method: Method, quasi: &str, kind: &str| Terms {
            method,
            roles: Roles { quasi: vec![quasi.to_owned()], sensitive: Some("disease".to_owned()), ..Roles::default() },
            types: vec![kind.to_owned(), "Utf8".to_owned()],
            hierarchies: false,
            updates: false,
        };
        let begun = terms(Method::MInvariance(MInvariance::new(10)), "age", "Int32");
        assert!(begun.differences(&begun).is_empty());
        let other = terms(Method::MInvariance(MInvariance::new(5)), "zip", "Int32");
        assert_eq!(
            other.differences(&begun),
            ["m is 10 in the publication but 5 here", "quasi is age in the publication but zip here"]
        );
        let other = terms(Method::Anatomy(Anatomy { l: 5 }), "age", "Int64");
        assert_eq!(
            other.differences(&begun),
            [
                "method is m_invariant in the publication but anatomy here",
                "the type of column age is Int32 in the publication but Int64 here"
            ]
        );
    }
}
