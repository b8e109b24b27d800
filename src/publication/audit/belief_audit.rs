//! The check of how far a reader gets who knows how probable changes are: a figure that the ledger has of releases of m-distinct.

use crate::methods::Remembered;
use crate::publication::record::{Beliefs, Record};
use crate::risk::Check;

const NAME: &str = "m-distinct: what a reader reaches who knows the law of changes";
/// Tolerance of sums of probabilities.
const TOLERANCE: f64 = 1e-9;

/// Audit of the figures that one release after the other says.
#[derive(Debug, Default)]
pub(super) struct BeliefAudit {
    /// True if the release before has the figure.
    known: bool,
}

impl BeliefAudit {
    /// Returns the check of the next release, whose largest group has `largest` rows. That a reader gets far is no failure, for
    /// nothing else was promised; but where it was known once, it is known of all releases after, and it is a probability.
    pub(super) fn check(&mut self, record: &Record, promised: Remembered, largest: u64) -> Option<Check> {
        let was_known = std::mem::replace(&mut self.known, record.beliefs.is_some());
        let (passed, figures) = match &record.beliefs {
            None if was_known => (false, "not known, as it was at the release before".to_owned()),
            None => return None,
            Some(Beliefs { achieved: None, .. }) if largest == 0 => (true, "nobody is in the release".to_owned()),
            Some(Beliefs { achieved: None, .. }) => (false, "the ledger does not say it".to_owned()),
            // The probabilities of a group's values sum to 1 for each of its people.
            Some(Beliefs { achieved: Some(highest), .. }) => {
                let possible = 1.0 / largest.max(1) as f64 - TOLERANCE..=1.0 + TOLERANCE;
                let bound = match promised {
                    Remembered::Signatures(m, _) => format!(", where 1/m is {}", rounded(1.0 / m as f64)),
                    _ => String::new(),
                };
                match possible.contains(highest) {
                    true => (true, format!("at most {}{bound}", rounded(*highest))),
                    false => (false, "the ledger says a number that it cannot be".to_owned()),
                }
            }
        };
        Some(Check::new(Some(record.number), NAME, passed, figures))
    }
}

fn rounded(share: f64) -> f64 {
    (share * 1e4).round() / 1e4
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::publication::record::{Figures, ReleaseFile};
    use crate::release::Lineage;

    fn record(achieved: Option<Option<f64>>) -> Record {
        let file = ReleaseFile { name: String::new(), size: 0, rows: 0, checksum: String::new() };
        Record {
            number: 1,
            attempt: String::new(),
            release_id: String::new(),
            fingerprint: String::new(),
            whole: None,
            earlier: String::new(),
            updates: None,
            snapshot_rows: 4,
            files: Vec::new(),
            entries: Vec::new(),
            figures: Figures { rows: 4, groups: 2, counterfeits: 0 },
            withheld: 0,
            information_loss: 0.0,
            periods: Vec::new(),
            unit: None,
            balanced: None,
            held_back: None,
            beliefs: achieved.map(|achieved| Beliefs { achieved, file }),
        }
    }

    #[test]
    fn only_probabilities_pass() {
        let promised = Remembered::Signatures(2, Lineage::Distinct { close: false, disjoint: false });
        let check = |achieved, largest| {
            let check = BeliefAudit::default().check(&record(Some(achieved)), promised, largest).unwrap();
            (check.passed, check.figures)
        };
        assert_eq!(check(Some(0.997_23), 2), (true, "at most 0.9972, where 1/m is 0.5".to_owned()));
        for (achieved, largest) in [(Some(1.0), 2), (Some(0.5), 2), (Some(1.0 / 3.0), 3), (None, 0)] {
            assert!(check(achieved, largest).0, "{achieved:?}");
        }
        for achieved in [Some(f64::NAN), Some(0.49), Some(1.01), Some(-0.5), Some(f64::INFINITY), None] {
            assert!(!check(achieved, 2).0, "{achieved:?}");
        }
    }

    #[test]
    fn what_was_known_stays_known() {
        let mut reached = BeliefAudit::default();
        let said = [None, Some(Some(0.5)), Some(Some(0.75)), None, None];
        let checks =
            said.map(|achieved| reached.check(&record(achieved), Remembered::Nothing, 2).map(|check| check.passed));
        assert_eq!(checks, [None, Some(true), Some(true), Some(false), None]);
    }
}
