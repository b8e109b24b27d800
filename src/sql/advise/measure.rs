//! A setting measured, by the functions that users call.

use datafusion::common::Result;

use super::bench::{Bench, DIVISIONS, TableRoles, quoted};
use super::settings::Setting;
use crate::error::AnonymizeError;

/// Reason why nothing is recommended of a table without an identifier.
const WITHOUT_ID: &str = "no column is known to identify people, so every row was taken for a person, and nothing is recommended: name the \
     identifier with id => patient_id (what is published again needs an identifier that stays from release to release)";

/// Price of a setting.
#[derive(Debug)]
pub(super) struct Measured {
    pub setting: Setting,
    /// The loss metric, 0 to 1; of rows that look like rows, the mean distance to the original ones.
    pub loss: Option<f64>,
    /// Median relative error of random counts; of methods that remember, the greater one of a first and of a second release.
    pub error: Option<f64>,
    /// The most counterfeits of three second releases. Half of the people of each are those of the first.
    pub counterfeits: Option<usize>,
    /// Of those who are in two releases that know nothing of each other: for what share only one sensitive value is left.
    pub at_risk: Option<f64>,
    /// Reason why something was not measured.
    pub note: Option<String>,
}

impl Measured {
    /// Fails when the session fails; what a method refuses is noted.
    pub(super) async fn of(bench: &Bench, people: &TableRoles, setting: Setting, queries: usize) -> Result<Self> {
        let mut measured = Self { setting, loss: None, error: None, counterfeits: None, at_risk: None, note: None };
        if let Err(error) = measured.measure(bench, people, queries).await {
            match AnonymizeError::of(&error).filter(|own| own.is_refusal()) {
                Some(refusal) => measured.note(refusal.to_string()),
                None => return Err(error),
            }
        }
        if !people.has_id {
            measured.note(WITHOUT_ID.to_owned());
        }
        if setting.method.is_exact()
            && let Some(name) = people.exact.first()
        {
            measured.note(format!(
                "it publishes {name} as it is, which alone singles out most rows, and is not recommended: name the quasi-identifiers with quasi => \
                 (..), or make this one coarser"
            ));
        }
        Ok(measured)
    }

    fn note(&mut self, note: String) {
        self.note = Some(match self.note.take() {
            Some(before) => format!("{before}; {note}"),
            None => note,
        });
    }

    async fn measure(&mut self, bench: &Bench, people: &TableRoles, queries: usize) -> Result<()> {
        let Setting { method, value } = self.setting;
        let occasion = 1 + 16 * (value as u64 + 64 * method.number);
        let seed = |number: u64| bench.seed(occasion + number);
        let (setting, roles) = (self.setting, people.all_roles());
        let call = |table: &str, number: u64, more: &str| {
            // The private view, in which people can be found again.
            setting.call(table, &roles, &format!(", private => true{}{more}", seed(number)))
        };
        bench.keep("release", &call("people", 0, "")).await?;
        let perturbed = method.is_perturbed();
        let loss = match perturbed {
            true => format!("SELECT distance FROM information_loss(people, release, id => {})", quoted(&people.id)),
            false => "SELECT lm FROM information_loss(people, release)".to_owned(),
        };
        self.loss = bench.number(&format!("{loss} WHERE attribute = '*'")).await?;
        let errors = |table: &str, release: &str| {
            format!(
                "SELECT median(relative_error) FROM query_accuracy({table}, {release}, queries => {queries}, selectivity => 0.1{})",
                seed(1)
            )
        };
        self.error = bench.number(&errors("people", "release")).await?;
        if perturbed {
            self.note("its rows look like rows: disclosure(.., p_match => 0.7) says who is found in them".to_owned());
            return Ok(());
        }
        let (first, second) = (call("before0", 2, ""), call("after0", 3, ""));
        bench.keep("first", &first).await?;
        bench.keep("second", &second).await?;
        let risk = format!(
            "SELECT avg(CAST(vulnerable AS DOUBLE)) FROM (SELECT bool_or(vulnerable) AS vulnerable FROM disclosure((first, second), original \
             => stayed0, {roles}, strength => 'group') GROUP BY {})",
            quoted(&people.id)
        );
        self.at_risk = bench.number(&risk).await?;
        // How many counterfeits there are is a matter of who comes and goes: the most of several tries counts.
        for division in (0..DIVISIONS).filter(|_| method.has_memory()) {
            let number = 4 + 2 * division as u64;
            bench.keep("first", &call(&format!("before{division}"), number, "")).await?;
            // What pads new rows has no bound for other readers than the default.
            let takes = method.reader().is_none() && !people.hides_each();
            let padded = if takes { ", on_ineligible => 'counterfeit'" } else { "" };
            let next = format!(", previous => first{padded}");
            let after = format!("after{division}");
            bench.keep("second", &call(&after, number + 1, &next)).await?;
            if division == 0 {
                let second = bench.number(&errors(&after, "second")).await?;
                self.error = self.error.zip(second).map(|(first, second)| first.max(second));
            }
            let counterfeits = bench.number("SELECT count(*) FILTER (WHERE counterfeit) FROM second").await?;
            self.counterfeits = self.counterfeits.max(counterfeits.map(|count| count as usize));
        }
        Ok(())
    }
}
