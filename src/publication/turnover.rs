//! Counts people who returned, came and left. By them the publisher notices that identifiers are no longer written as they were.
//!
//! All of it is for the publisher alone.

use datafusion::common::Result;

use super::spec::Publication;
use crate::error::{refusal, thousands};

pub(crate) const MAX_MISSING: &str = "max_missing";

/// Fewest people of a release after which a snapshot without any of them is refused. It is refused unless something else was said.
const MANY: u64 = 20;

/// Returns the notice on a release of only new people, by a method without memory.
pub(super) fn of_new_people(publication: &Publication, release: u64, new: u64) -> String {
    let column = publication.spec.roles.id.as_deref().unwrap_or("id");
    format!(
        "publication: release {release}: all {} people are new; people are known by the spelling of {column} alone, so whose {column} is not written as \
         it was (a blank, a zero in front) is in two releases, and given away by both",
        thousands(new as usize)
    )
}

/// The people of a snapshot beside those of earlier releases.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Turnover {
    pub(super) newest: u64,
    /// People of that one.
    pub(super) before: u64,
    /// People of the snapshot who were in an earlier release, whichever it was.
    pub(super) returned: u64,
    /// People of the snapshot who were in the newest one, where that is known.
    pub(super) stayed: Option<u64>,
    /// People of all releases, at most.
    pub(super) known: u64,
    /// People of the snapshot who were in none.
    pub(super) came: u64,
}

impl Turnover {
    /// Returns the people of the newest release who are missing, at least: of who returns, some can be of older ones.
    fn least(self) -> u64 {
        self.before.saturating_sub(self.stayed.unwrap_or(self.returned))
    }

    /// Returns the same at most: of who does not return, some can be of older ones.
    fn most(self) -> u64 {
        match self.stayed {
            Some(_) => self.least(),
            None => self.known.saturating_sub(self.returned).min(self.before).max(self.least()),
        }
    }

    /// Returns the highest share of the newest release that can be missing: nobody else must make up for people who count as returned.
    fn share(self) -> f64 {
        if self.before == 0 { 0.0 } else { self.most() as f64 / self.before as f64 }
    }

    fn missing(self) -> String {
        let [least, most] = [self.least(), self.most()].map(|count| thousands(count as usize));
        if least == most { least } else { format!("between {least} and {most}") }
    }

    /// Fails when more people are missing than the publication allows; where it says nothing, when all of many are.
    pub(super) fn check(self, publication: &Publication) -> Result<()> {
        let column = publication.spec.roles.id.as_deref().unwrap_or("id");
        let (missing, before) = (self.missing(), thousands(self.before as usize));
        let what = match publication.max_missing {
            Some(allowed) if self.share() > allowed.get() => format!(
                "{missing} of the {before} people of release {} are missing, more than option '{MAX_MISSING}' '{}' allows",
                self.newest,
                allowed.get()
            ),
            None if self.returned == 0 && self.came > 0 && self.before >= MANY => {
                format!(
                    "nobody in this snapshot was in an earlier release, and release {} has {before} people",
                    self.newest
                )
            }
            _ => return Ok(()),
        };
        // Rounded up, so that it lifts the refusal.
        let enough = (self.share() * 100.0).ceil() / 100.0;
        Err(refusal!(
            "publication",
            argument MAX_MISSING,
            "{what}. Whose identifier is not written as it was (a blank, a zero in front, a number in place of a text) would be taken for somebody \
             new, and given away by both releases: mend column {column}. If they have really left, declare the publication with '{MAX_MISSING}' \
             '{enough}'. Nothing was published"
        ))
    }

    /// Returns true if new people can be missing ones whose identifiers have changed. The publication does not say how many may be missing.
    pub(super) fn is_suspicious(self, publication: &Publication) -> bool {
        // Who leaves is made up for by who comes: so it looks where identifiers of some have changed.
        let swapped = |missing: u64| missing * 10 >= self.before && self.came * 2 >= missing && missing > 0;
        (swapped(self.least()) || swapped(self.most())) && publication.max_missing.is_none()
    }

    pub(super) fn notice(self, publication: &Publication) -> String {
        let [returned, came, before] = [self.returned, self.came, self.before].map(|count| thousands(count as usize));
        let missing = self.missing();
        let mut text = format!(
            "publication: release {}: {returned} people were in an earlier release, {came} are new; {missing} of the {before} of release {} \
             are missing",
            self.newest + 1,
            self.newest
        );
        if self.is_suspicious(publication) {
            let column = publication.spec.roles.id.as_deref().unwrap_or("id");
            text += &format!(
                ". If some of the new ones are missing ones whose {column} is not written as it was, what the releases promise does not hold of them; \
                 option '{MAX_MISSING}' '0.1' refuses snapshots in which more than a tenth are missing"
            );
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::methods::AnyMethod;
    use crate::methods::Share;
    use crate::methods::m_invariance::MInvariance;
    use crate::microdata::Roles;
    use crate::publication::PublicationSpec;
    use url::Url;

    fn publication(max_missing: Option<f64>) -> Publication {
        let mut roles = Roles::default();
        roles.id = Some("patient".to_owned());
        let spec = PublicationSpec {
            method: AnyMethod::MInvariance(MInvariance::new(3)),
            roles,
            types: Vec::new(),
            hierarchies: false,
            updates: false,
            repositioned: None,
            cells: 1,
        };
        Publication {
            public: Url::parse("s3://lake/a/").unwrap(),
            private: Url::parse("s3://lake/b/").unwrap(),
            moved_from: None,
            spec,
            independent: false,
            repeated: false,
            late: crate::methods::reposition::Late::default(),
            finish: false,
            period: None,
            begin: false,
            max_missing: max_missing.map(|share| Share::try_new(MAX_MISSING, share).unwrap()),
        }
    }

    #[test]
    fn what_is_allowed_is_published_and_what_the_refusal_says_lifts_it() {
        let turnover = Turnover { newest: 4, before: 1000, returned: 899, stayed: None, known: 1000, came: 101 };
        assert!(turnover.check(&publication(None)).is_ok());
        assert!(turnover.check(&publication(Some(0.2))).is_ok());
        let refused = turnover.check(&publication(Some(0.1))).unwrap_err().to_string();
        assert!(refused.contains("101 of the 1,000 people of release 4 are missing"), "{refused}");
        assert!(refused.contains("'max_missing' '0.11'"), "{refused}");
        assert!(turnover.check(&publication(Some(0.11))).is_ok());
    }

    #[test]
    fn where_nobody_returns_it_is_asked_for() {
        for (before, came, refuses) in [(20, 20, true), (19, 19, false), (20, 0, false)] {
            let turnover = Turnover { newest: 1, before, returned: 0, stayed: None, known: before, came };
            assert_eq!(turnover.check(&publication(None)).is_err(), refuses, "{before} {came}");
            assert!(turnover.check(&publication(Some(1.0))).is_ok());
        }
        let one = Turnover { newest: 1, before: 1000, returned: 1, stayed: None, known: 1000, came: 999 };
        assert!(one.check(&publication(None)).is_ok());
    }

    /// Of 40 people, the newest release had 20, and the other 20 come: who is back does not make up for who is missing.
    #[test]
    fn who_is_back_does_not_make_up_for_who_is_missing() {
        for (stayed, known, said, enough) in [
            (None, 40, "between 0 and 20 of the 20", 1.0),
            (None, 25, "between 0 and 5 of the 20", 0.25),
            (None, 20, "; 0 of the 20", 0.0),
            // Entries of one person can be several.
            (Some(0), 400, "; 20 of the 20", 1.0),
            (Some(16), 400, "; 4 of the 20", 0.2),
        ] {
            let turnover = Turnover { newest: 2, before: 20, returned: 20, stayed, known, came: 20 };
            let notice = turnover.notice(&publication(None));
            assert!(notice.contains(said), "{said}: {notice}");
            assert_eq!(notice.contains("max_missing"), enough > 0.0, "{notice}");
            assert!(turnover.check(&publication(Some(enough))).is_ok());
            if enough > 0.0 {
                let refused = turnover.check(&publication(Some(0.0))).unwrap_err().to_string();
                assert!(refused.contains(&format!("'max_missing' '{enough}'")), "{refused}");
            }
        }
    }

    #[test]
    fn that_identifiers_may_have_changed_is_said_where_as_many_come_as_leave() {
        for (returned, came, said) in
            [(899, 101, true), (901, 99, false), (500, 100, false), (500, 250, true), (1000, 0, false)]
        {
            let turnover = Turnover { newest: 2, before: 1000, returned, stayed: None, known: 1000, came };
            let text = turnover.notice(&publication(None));
            assert_eq!(text.contains("max_missing"), said, "{text}");
            assert!(!turnover.notice(&publication(Some(0.9))).contains("max_missing"));
        }
    }
}
