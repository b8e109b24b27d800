//! Describes what a publication says of itself: taken where a call does not say it.

use datafusion::common::{Column, Result};
use datafusion::logical_expr::{Expr, JoinType, LogicalPlan, LogicalPlanBuilder};

use super::input::{Input, InputColumn, OWN_VALUE, common_type};
use crate::microdata::Several;

/// Column of who was in a release: the identifier. No column of a table has such a name by chance.
pub(super) const WHO: &str = "(who)";
/// Column of who was in a release: its number.
pub(super) const RELEASE: &str = "release";

/// Holds what is declared, and what is known of releases.
#[derive(Debug, Default)]
pub(super) struct Declared {
    /// The identifier, which releases do not show.
    pub id: Option<String>,
    /// Quasi-identifiers, of which some releases may lack some.
    pub quasi: Vec<String>,
    /// The sensitive column, or several.
    pub sensitive: Vec<String>,
    /// Subject of the bound, if there are several.
    pub several: Several,
    /// Update relation of the sensitive values.
    pub updates: Option<LogicalPlan>,
    /// True if every value can become every other.
    pub any_update: bool,
    /// True if what follows from several updates can happen at once.
    pub closed: bool,
    pub hierarchies: Option<LogicalPlan>,
    /// The period of each release; empty if each is one.
    pub times: Vec<u64>,
    /// Says how many people were in each release; empty if nobody knows.
    pub people: Vec<u64>,
    /// Says who was in which release.
    pub presence: Presence,
}

/// Says who was in which release of those that are looked at.
#[derive(Debug, Default)]
pub(super) enum Presence {
    /// Everybody, unless what is known says otherwise.
    #[default]
    Everybody,
    /// Everybody from the release on in which they came, as these rows say: identifier ([`WHO`]) and number of the release.
    Since(LogicalPlan),
    /// The same, with the sensitive value that somebody had then ([`OWN_VALUE`]).
    Valued(LogicalPlan),
}

impl Input {
    /// Returns what is known of people, release by release: as it says itself, or else as the ledger knows who was in which.
    /// Fails when identifiers have another type.
    pub(super) fn in_releases(self, presence: &Presence, id: &str, sensitive: &str) -> Result<Self> {
        let (there, valued) = match presence {
            Presence::Everybody => return Ok(self),
            _ if self.has(RELEASE) => return Ok(self),
            Presence::Since(there) => (there, false),
            Presence::Valued(there) => (there, self.has(sensitive)),
        };
        let mut own = self.column(id)?;
        let theirs = Self { function: self.function, argument: "the ledger", plan: there.clone() }.column(WHO)?;
        let before = InputColumn { column: theirs.column.clone(), field: theirs.field };
        common_type(self.function, &mut own, &before, "the ledger")?;
        let kept = self.plan.schema().iter().filter(|(_, field)| !valued || field.name() != sensitive);
        let mut columns: Vec<Expr> = kept.map(|field| Expr::Column(Column::from(field))).collect();
        if valued {
            columns.push(Expr::Column(Column::from_name(OWN_VALUE)).alias(sensitive));
        }
        columns.push(Expr::Column(Column::from_name(RELEASE)));
        let same = Expr::Column(own.column).eq(Expr::Column(theirs.column));
        let plan = LogicalPlanBuilder::from(self.plan).join_on(there.clone(), JoinType::Inner, [same])?;
        Ok(Self { plan: plan.project(columns)?.build()?, ..self })
    }
}
