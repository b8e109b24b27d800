//! Roles of columns in a publication.

use serde::{Deserialize, Serialize};

/// Role of a column.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Role {
    /// Says who the row is about. Never published.
    Id,
    /// Known to others, together nearly identifying. Published generalized.
    Quasi,
    /// Nobody should learn it about a person. Published as it is.
    Sensitive,
    /// Each of its values is a table of its own. Published as it is.
    Within,
    /// Says something about a person that others do not know. Published as it is; it travels with the sensitive value.
    Other,
    /// Nobody is thought to know it of a person or to mind it. Published as it is, row by row; whoever does know it finds the row by it.
    Insensitive,
}

impl Role {
    /// Metadata key of a column that declares its role.
    pub const KEY: &str = "anonymize.role";

    /// Reads a role from metadata; both the short names and the field's full terms are understood.
    pub fn parse(text: &str) -> Option<Self> {
        match text.trim().to_ascii_lowercase().replace('_', "-").as_str() {
            "id" | "identifier" => Some(Self::Id),
            "quasi" | "quasi-identifier" => Some(Self::Quasi),
            "sensitive" | "sensitive-attribute" => Some(Self::Sensitive),
            "within" => Some(Self::Within),
            "other" => Some(Self::Other),
            "insensitive" => Some(Self::Insensitive),
            _ => None,
        }
    }

    /// Returns the name used in arguments, settings and metadata.
    pub fn name(self) -> &'static str {
        match self {
            Self::Id => "id",
            Self::Quasi => "quasi",
            Self::Sensitive => "sensitive",
            Self::Within => "within",
            Self::Other => "other",
            Self::Insensitive => "insensitive",
        }
    }
}

/// The columns of a table by role. Columns without a role are not published.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
#[non_exhaustive]
pub struct Roles {
    /// The identifier.
    pub id: Option<String>,
    /// The quasi-identifiers, in the order they are published in.
    pub quasi: Vec<String>,
    /// The sensitive attribute.
    pub sensitive: Option<String>,
    /// The column whose values are anonymized independently of each other.
    pub within: Option<String>,
    /// Columns that no reader knows of a person, beside the sensitive attribute.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub other: Vec<String>,
    /// Columns that are kept as they are.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub insensitive: Vec<String>,
}

impl Roles {
    /// Returns all columns with a role, in the order methods expect them in: identifier, quasi-identifiers, sensitive attribute,
    /// `within`, others, those that are kept as they are.
    pub fn columns(&self) -> impl Iterator<Item = &String> {
        let published = self.quasi.iter().chain(&self.sensitive).chain(&self.within).chain(&self.other);
        self.id.iter().chain(published).chain(&self.insensitive)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn roles_by_any_of_their_names() {
        for role in [Role::Id, Role::Quasi, Role::Sensitive, Role::Within, Role::Other, Role::Insensitive] {
            assert_eq!(Role::parse(role.name()), Some(role));
        }
        assert_eq!(Role::parse("Quasi_Identifier"), Some(Role::Quasi));
        assert_eq!(Role::parse("secret"), None);
    }
}
