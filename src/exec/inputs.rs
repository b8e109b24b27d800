//! Inputs of operators that run a method, and their display of the method.

use std::fmt;
use std::sync::Arc;

use datafusion::arrow::array::RecordBatch;
use datafusion::common::{Result, internal_err};
use datafusion::execution::SendableRecordBatchStream;
use datafusion::execution::memory_pool::MemoryReservation;
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::spill::get_record_batch_memory_size;
use futures::StreamExt;
use serde::{Deserialize, Serialize};

use crate::methods::{AnyMethod, StateKind};
use crate::microdata::Layout;

/// Plans of the inputs.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Inputs {
    /// The columns with roles, in the order of [`Roles::columns`](crate::microdata::Roles::columns).
    pub microdata: Arc<dyn ExecutionPlan>,
    /// State that earlier releases have left, of the method's kind.
    pub previous: Option<(StateKind, Arc<dyn ExecutionPlan>)>,
    /// Attribute, leaf and levels, as texts.
    pub hierarchies: Option<Arc<dyn ExecutionPlan>>,
    /// Update relation of the sensitive values: the value, a value that it can become, and the probability if that is known.
    pub updates: Option<Arc<dyn ExecutionPlan>>,
    /// For a release in cells by place: what is looked at first, planned twice, once to say of rows in which cell they are and once to say of
    /// cells what there is in the whole table. It is read once. The microdata must be the same whenever it is read.
    pub survey: Option<[Survey; 2]>,
    /// For a release in cells that do not follow from the identifier: one row, of how many rows there are, how many of them have no
    /// identifier, and how many repeat that of another. For one of a publication whose method knows of no earlier release, also how many people
    /// were in one.
    pub identifiers: Option<Arc<dyn ExecutionPlan>>,
    /// Of an INSERT into a publication: columns of the microdata that it does not name.
    pub left_out: Vec<String>,
    /// Survey of the whole table, once it is an input.
    pub(crate) places: Option<Arc<dyn ExecutionPlan>>,
}

/// The relations from which cells by place are found, planned for themselves.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Survey {
    /// Microdata as in [`Inputs::microdata`].
    pub microdata: Arc<dyn ExecutionPlan>,
    /// Hierarchies as in [`Inputs::hierarchies`].
    pub hierarchies: Option<Arc<dyn ExecutionPlan>>,
}

impl Survey {
    /// Makes a survey of these relations.
    pub fn new(microdata: Arc<dyn ExecutionPlan>, hierarchies: Option<Arc<dyn ExecutionPlan>>) -> Self {
        Self { microdata, hierarchies }
    }
}

/// Kinds of inputs that there are beside the microdata.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub(crate) struct InputKinds {
    previous: Option<StateKind>,
    hierarchies: bool,
    updates: bool,
    identifiers: bool,
    places: bool,
}

pub(super) struct Streams {
    pub layout: Layout,
    pub microdata: SendableRecordBatchStream,
    pub previous: Option<(StateKind, SendableRecordBatchStream)>,
    pub hierarchies: Option<SendableRecordBatchStream>,
    pub updates: Option<SendableRecordBatchStream>,
    pub identifiers: Option<SendableRecordBatchStream>,
    pub places: Option<SendableRecordBatchStream>,
}

impl Inputs {
    /// Takes microdata alone.
    pub fn new(microdata: Arc<dyn ExecutionPlan>) -> Self {
        Self {
            microdata,
            previous: None,
            hierarchies: None,
            updates: None,
            survey: None,
            identifiers: None,
            left_out: Vec::new(),
            places: None,
        }
    }

    /// Returns the plans in the order in which operators have them.
    pub(super) fn into_plans(self) -> (InputKinds, Vec<Arc<dyn ExecutionPlan>>) {
        let kinds = InputKinds {
            previous: self.previous.as_ref().map(|(kind, _)| *kind),
            hierarchies: self.hierarchies.is_some(),
            updates: self.updates.is_some(),
            identifiers: self.identifiers.is_some(),
            places: self.places.is_some(),
        };
        let previous = self.previous.map(|(_, plan)| plan);
        let plans = [self.microdata].into_iter().chain(previous).chain(self.hierarchies).chain(self.updates);
        let plans = plans.chain(self.identifiers).chain(self.places);
        (kinds, plans.collect())
    }
}

impl InputKinds {
    /// Returns the name of an input in errors, by its place.
    pub(super) fn argument(self, place: usize, method: &AnyMethod) -> &'static str {
        let there = [
            Some("the input"),
            self.previous.map(|_| "previous"),
            self.hierarchies.then_some("hierarchies"),
            self.updates.then(|| method.values_argument()),
            self.identifiers.then_some("the input"),
            self.places.then_some("the input"),
        ];
        there.into_iter().flatten().nth(place).unwrap_or("an input")
    }

    /// Returns true if the input at a place has cells in a release in cells. These are the microdata, and what earlier releases have left.
    pub(super) fn has_cells(self, place: usize) -> bool {
        place == 0 || place == 1 && self.previous.is_some()
    }

    /// Returns the streams of all plans, in their order.
    /// Fails when there are others, which is a bug.
    pub(super) fn streams(self, inputs: Vec<SendableRecordBatchStream>, layout: Layout) -> Result<Streams> {
        let mut inputs = inputs.into_iter();
        let mut next = |there: bool| if there { inputs.next() } else { None };
        let Some(microdata) = next(true) else { return internal_err!("an operator without an input") };
        let previous = match self.previous {
            Some(kind) => next(true).map(|stream| (kind, stream)),
            None => None,
        };
        let (hierarchies, updates) = (next(self.hierarchies), next(self.updates));
        let (identifiers, places) = (next(self.identifiers), next(self.places));
        let expected = [self.previous.is_some(), self.hierarchies, self.updates, self.identifiers, self.places];
        let all =
            [previous.is_some(), hierarchies.is_some(), updates.is_some(), identifiers.is_some(), places.is_some()];
        match inputs.len() == 0 && all == expected {
            true => Ok(Streams { layout, microdata, previous, hierarchies, updates, identifiers, places }),
            false => internal_err!("an operator with other inputs than it was made for"),
        }
    }
}

/// Reads all rows of a small input, and charges them to the memory pool.
/// Fails with the errors of the input, and when there is not enough memory.
pub(super) async fn read_all(
    rows: &mut SendableRecordBatchStream,
    held: &MemoryReservation,
) -> Result<Vec<RecordBatch>> {
    let mut all = Vec::new();
    while let Some(batch) = rows.next().await {
        let batch = batch?;
        held.try_grow(get_record_batch_memory_size(&batch))?;
        all.push(batch);
    }
    Ok(all)
}

/// Describes a method and the columns it is applied to.
/// Fails when parameters cannot be shown, which is a bug.
pub(super) fn facts(method: &AnyMethod, layout: &Layout) -> Result<Vec<String>, fmt::Error> {
    let mut facts = vec![format!("method={}", method.name())];
    for (name, value) in &method.parameters().map_err(|_| fmt::Error)? {
        facts.push(match value.as_str() {
            Some(word) => format!("{name}={word}"),
            None => format!("{name}={value}"),
        });
    }
    let quasi: Vec<&str> = layout.quasi.iter().map(|field| field.name().as_str()).collect();
    facts.push(format!("quasi=[{}]", quasi.join(", ")));
    facts.extend(layout.sensitive.iter().map(|field| format!("sensitive={}", field.name())));
    facts.extend(layout.within.iter().map(|field| format!("within={}", field.name())));
    Ok(facts)
}
