//! Refusals of data by methods: what is wrong, and what would do where the method was asked.

use std::fmt;

/// Refusal of data or parameters that allow no safe release. It says why, and what to write instead.
#[derive(Debug, Clone)]
pub struct Refusal {
    text: String,
    cures: Option<Box<Cures>>,
}

/// Holds what would do, which depends on where the method was asked: what a publication began with cannot change.
#[derive(Debug, Clone, Default)]
pub struct Cures {
    /// A parameter and the largest value of it that these rows allow.
    pub lower: Option<(&'static str, usize)>,
    /// Another parameter with a value by which the rows are taken.
    pub or: Option<(&'static str, &'static str)>,
    /// Says what rows can be added.
    pub rows: &'static str,
    /// Says what else there is to say.
    pub remark: &'static str,
}

/// Says where a method is asked for a release.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Asked {
    /// Call of the method's function.
    #[default]
    Call,
    /// By the first INSERT into a publication.
    First,
    /// By a later one.
    Later,
}

impl Refusal {
    pub(super) fn new(text: String) -> Self {
        Self { text, cures: None }
    }

    pub(super) fn with(text: String, cures: Cures) -> Self {
        Self { text, cures: Some(Box::new(cures)) }
    }

    /// Returns the refusal with a text around what is wrong.
    #[doc(hidden)]
    pub fn within(self, text: impl FnOnce(&str) -> String) -> Self {
        Self { text: text(&self.text), cures: self.cures }
    }

    /// Returns the refusal with a parameter low enough for it and for `other`.
    #[must_use]
    #[doc(hidden)]
    pub fn and(mut self, other: &Self) -> Self {
        let theirs = other.cures.as_ref().and_then(|cures| cures.lower);
        if let Some(cures) = &mut self.cures {
            cures.lower = cures.lower.zip(theirs).filter(|(a, b)| a.0 == b.0).map(|(a, b)| a.min(b));
        }
        self
    }

    /// Returns the refusal in the words of the place where the method was called.
    #[doc(hidden)]
    pub fn said(self, asked: Asked) -> Self {
        match self.cures {
            Some(cures) => Self::new(format!("{}{}", self.text, cures.said(asked))),
            None => self,
        }
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)?;
        match &self.cures {
            Some(cures) => f.write_str(&cures.said(Asked::Call)),
            None => Ok(()),
        }
    }
}

impl Cures {
    fn said(&self, asked: Asked) -> String {
        let lower = self.lower.map(|(name, value)| match asked {
            Asked::Call => format!("lower {name} ({name} => {value} would do)"),
            Asked::First => format!("declare the publication anew with '{name}' '{value}' (nothing was published yet)"),
            Asked::Later => format!(
                "begin another publication at another LOCATION with '{name}' '{value}', for people who are not in this one, whose {name} stays"
            ),
        });
        let or = self.or.filter(|_| asked != Asked::Later).map(|(name, value)| match asked {
            Asked::Call => format!("write {name} => {value}"),
            _ => format!("declare it with '{name}' {value}"),
        });
        let rows = (!self.rows.is_empty()).then(|| match asked {
            Asked::Later => format!("INSERT a later snapshot with {}", self.rows),
            _ => format!("add {}", self.rows),
        });
        let mut cures: Vec<String> = match asked {
            Asked::Later => [rows, lower, or].into_iter().flatten().collect(),
            _ => [lower, rows, or].into_iter().flatten().collect(),
        };
        let mut text = match (cures.pop(), cures.is_empty()) {
            (None, _) => String::new(),
            (Some(last), true) => format!("; {last}"),
            (Some(last), false) => format!("; {}, or {last}", cures.join(", ")),
        };
        if !self.remark.is_empty() {
            text += "; ";
            text += self.remark;
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_publication_began_with_is_not_lowered() {
        let cures = Cures {
            lower: Some(("m", 2)),
            or: Some(("on_ineligible", "'counterfeit'")),
            rows: "more rows of other values",
            remark: "",
        };
        let said = |asked| Refusal::with("no".to_owned(), cures.clone()).said(asked).to_string();
        assert_eq!(
            said(Asked::Call),
            "no; lower m (m => 2 would do), add more rows of other values, or write on_ineligible => 'counterfeit'"
        );
        assert!(said(Asked::First).contains("declare it with 'on_ineligible' 'counterfeit'"));
        let later = said(Asked::Later);
        assert!(
            later.starts_with("no; INSERT a later snapshot with more rows of other values, or begin another"),
            "{later}"
        );
        assert!(!later.contains("on_ineligible"), "{later}");
    }
}
