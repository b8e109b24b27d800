//! The operator that infers what a reader of releases can.

use std::sync::Arc;

use async_trait::async_trait;
use datafusion::arrow::array::{
    Array, ArrayRef, BooleanArray, Float64Array, Int64Array, ListArray, RecordBatch, RecordBatchOptions, StringArray,
    UInt32Array,
};
use datafusion::arrow::buffer::OffsetBuffer;
use datafusion::arrow::compute::{cast, take};
use datafusion::arrow::datatypes::{DataType, Field, FieldRef, Schema, SchemaRef};
use datafusion::common::Result;
use datafusion::execution::SendableRecordBatchStream;
use datafusion::execution::memory_pool::MemoryReservation;
use rayon::prelude::*;
use tokio::sync::mpsc::Sender;

use super::computation::{Computation, Resources};
use crate::error::Error;
use crate::methods::Monitor;
use crate::microdata::Role;
use crate::risk::{
    AdversaryModel, BackgroundColumns, Disclosure, EvidenceBuilder, Findings, ReleaseColumns, Sets, Wanted,
};

const FUNCTION: &str = "disclosure";

/// Column of the result: the number of the release.
const RELEASE: &str = "release";
/// Column of the result: what the person can have by the release alone.
const CANDIDATES: &str = "candidates";
/// Column of the result: what is left in view of all releases.
const REMAINING: &str = "remaining";
/// Column of the result: how many are left.
const REMAINING_COUNT: &str = "remaining_count";
/// Column of the result, of a joint reader: what may be left; the budget did not suffice to find out.
const UNDECIDED: &str = "undecided";
/// Column of the result: probability of the true value.
const RISK: &str = "risk";
/// Column of the result: whether one is left, and it is not known to be false.
const VULNERABLE: &str = "vulnerable";
/// Column of the result: who infers this.
const READER: &str = "reader";

/// Infers from releases what everybody's sensitive value can be.
///
/// Inputs: what is known (identifier, quasi-identifiers, true sensitive value, number of the release; as far as there are any); the
/// releases, each with lo and hi of each quasi-identifier, sensitive value or list of values and counts, group, identifier;
/// the update relation (from, to, probability), facts (identifier, sensitive value, number of the release) and hierarchies (attribute,
/// leaf, levels), if any.
///
/// Reads all inputs, then sends its rows in pieces of some thousand people as they are asked for.
#[derive(Debug, Clone)]
pub(crate) struct DisclosureComputation {
    /// Sight of the reader.
    pub strength: AdversaryModel,
    /// Identifier.
    pub id: FieldRef,
    /// Quasi-identifiers, with the types that they have in all inputs.
    pub quasi: Vec<FieldRef>,
    /// Sensitive attribute.
    pub sensitive: FieldRef,
    /// Columns of what is known.
    pub known: BackgroundColumns,
    /// Columns of each release.
    pub releases: Vec<ReleaseColumns>,
    /// Places of the quasi-identifiers that each release lacks.
    pub absent: Vec<Vec<usize>>,
    /// True if there is an update relation.
    pub updates: bool,
    /// True if something is known of sensitive values.
    pub facts: bool,
    /// Decisions of the solver for each part of a joint inference.
    pub budget: u64,
    /// True if every value can become every other.
    pub any_update: bool,
    /// True if what follows from several updates can happen at once.
    pub closed: bool,
    /// Time of each release, in steps of the update relation; empty if each is a step of its own.
    pub times: Vec<u64>,
    /// Says how many people were in each release, where who was there is not said; empty if nobody knows.
    pub people: Vec<u64>,
    /// Wanted columns of the result, by their places among all.
    pub wanted: Option<Vec<usize>>,
}

impl DisclosureComputation {
    /// Returns the reader whose inferences are measured, as `docs/threats.md` calls them: what can be so, counted without regard to what this
    /// program was likely to publish.
    fn reader(&self) -> String {
        let knows = match self.strength {
            AdversaryModel::Cover => "has public tables",
            AdversaryModel::Group => "knows the groups",
            AdversaryModel::JointCover => "has public tables, combines people",
            AdversaryModel::Joint => "knows the groups, combines people",
        };
        format!("{knows}{}", if self.facts { ", knows values" } else { "" })
    }

    fn columns(&self) -> Schema {
        let item = Arc::new(Field::new_list_field(self.sensitive.data_type().clone(), true));
        let list = |name: &str| Field::new(name, DataType::List(Arc::clone(&item)), false);
        let joint = self.strength.is_joint();
        let mut fields = vec![
            identifier(&self.id),
            Field::new(RELEASE, DataType::Int64, false),
            list(CANDIDATES),
            list(REMAINING),
            Field::new(REMAINING_COUNT, DataType::Int64, false),
            Field::new(RISK, DataType::Float64, true),
            Field::new(VULNERABLE, DataType::Boolean, joint),
        ];
        fields.extend(joint.then(|| list(UNDECIDED)));
        fields.push(Field::new(READER, DataType::Utf8, false));
        Schema::new(fields)
    }
}

/// Returns the identifier as a column of the result. It says that it is one, so that a copy of the result is a private file.
pub(super) fn identifier(id: &FieldRef) -> Field {
    let role = [(Role::KEY.to_owned(), Role::Id.name().to_owned())];
    Field::new(id.name(), id.data_type().clone(), false).with_metadata(role.into_iter().collect())
}

#[async_trait]
impl Computation for DisclosureComputation {
    fn names(&self) -> [&'static str; 2] {
        ["DisclosureExec", FUNCTION]
    }

    fn argument(&self, place: usize) -> &'static str {
        match place.checked_sub(1 + self.releases.len()) {
            None if place == 0 => "what is known",
            None => "a release",
            Some(0) if self.updates => "updates",
            Some(_) => "hierarchies",
        }
    }

    fn parameters(&self) -> String {
        let quasi = self.quasi.iter().map(|field| field.name().as_str()).collect::<Vec<_>>().join(", ");
        let strength = match self.strength {
            AdversaryModel::Group => "group",
            AdversaryModel::Cover => "cover",
            AdversaryModel::Joint => "joint",
            AdversaryModel::JointCover => "joint_cover",
        };
        let (releases, sensitive) = (self.releases.len(), self.sensitive.name());
        format!("releases={releases}, strength={strength}, quasi=[{quasi}], sensitive={sensitive}")
    }

    fn schema(&self) -> SchemaRef {
        let all = self.columns();
        let fields = all.fields();
        match &self.wanted {
            Some(wanted) => {
                Arc::new(Schema::new(wanted.iter().map(|&i| FieldRef::clone(&fields[i])).collect::<Vec<_>>()))
            }
            None => Arc::new(all),
        }
    }

    fn project(&self, columns: &[usize]) -> Option<Arc<dyn Computation>> {
        Some(Arc::new(Self { wanted: Some(columns.to_vec()), ..self.clone() }))
    }

    async fn compute(&self, inputs: Vec<SendableRecordBatchStream>, resources: &Resources) -> Result<()> {
        let named = |error: Error| error.in_function(FUNCTION);
        let Self { id, quasi, sensitive, known, releases, updates, facts, .. } = self;
        let builder = EvidenceBuilder::try_new(Arc::clone(id), quasi.clone(), Arc::clone(sensitive));
        let mut builder = builder.map_err(named)?;
        for (place, stream) in inputs.into_iter().enumerate() {
            // What is known, releases, updates, facts, hierarchies.
            let release = place.checked_sub(1).and_then(|number| releases.get(number));
            if let (Some(columns), Some(absent)) = (release, self.absent.get(place.saturating_sub(1))) {
                builder.begin_release_without(*columns, absent);
            }
            let appended = |batch: &RecordBatch| {
                match (place, release) {
                    (0, _) => builder.append_known(batch, *known)?,
                    (_, Some(_)) => builder.append_release(batch)?,
                    (place, None) if *updates && place == releases.len() + 1 => builder.append_updates(batch)?,
                    (place, None) if *facts && place == releases.len() + 1 + usize::from(*updates) => {
                        builder.append_facts(batch)?;
                    }
                    _ => builder.append_hierarchies(batch)?,
                }
                Ok(builder.size())
            };
            resources.read(stream, appended).await?;
        }
        if self.any_update {
            builder.allow_any_update();
        }
        if self.closed {
            builder.close_updates();
        }
        builder.set_times(&self.times);
        builder.check_people(&self.people).map_err(named)?;
        // Put in order, in other vectors.
        resources.hold(2 * builder.size())?;
        let (schema, strength) = (self.schema(), self.strength);
        let (memory, output, budget) = (resources.account(), resources.output(), self.budget);
        let question = Inference { schema, strength, reader: self.reader(), budget, memory, output };
        resources.off_thread(move |monitor| question.infer(builder, monitor)).await
    }
}

/// Inference with the channel for its answers.
struct Inference {
    schema: SchemaRef,
    strength: AdversaryModel,
    reader: String,
    budget: u64,
    memory: MemoryReservation,
    output: Sender<Result<RecordBatch>>,
}

impl Inference {
    /// Computes everything, on a thread that may block.
    fn infer(&self, builder: EvidenceBuilder, monitor: &Monitor) -> crate::error::Result<()> {
        let check = |bytes: usize| {
            monitor.check()?;
            Ok(self.memory.try_grow(bytes)?)
        };
        let lists = self.schema.fields().iter().any(|field| matches!(field.data_type(), DataType::List(_)));
        let wanted = if lists { Wanted::Values } else { Wanted::Sizes };
        let disclosure = Disclosure::within(builder.finish()?, self.strength, wanted, self.budget, &check)?;
        let pieces: Vec<usize> = (0..disclosure.pieces()).collect();
        self.memory.try_grow(rayon::current_num_threads().min(pieces.len()) * disclosure.piece_bytes())?;
        // What is kept of a piece is small without lists, so that threads need not wait for each other so often.
        let round = rayon::current_num_threads() * if lists { 1 } else { 4 };
        for round in pieces.chunks(round) {
            monitor.check()?;
            let batches = round.par_iter().map(|&piece| self.batch(&disclosure, &disclosure.piece(piece)));
            for batch in batches.collect::<crate::error::Result<Vec<_>>>()? {
                if self.output.blocking_send(Ok(batch)).is_err() {
                    return Ok(()); // Nobody wants the rest.
                }
            }
        }
        Ok(())
    }

    fn batch(&self, disclosure: &Disclosure, findings: &Findings) -> crate::error::Result<RecordBatch> {
        let evidence = disclosure.evidence();
        let left = || (0..findings.remaining.len()).map(|row| findings.remaining.size(row));
        // With one value or none that is possible, and others of which nobody knows, one cannot say.
        let vulnerable = |(row, left): (usize, usize)| {
            let open = left <= 1 && findings.undecided.size(row) > 0;
            // Whoever is sure of something false has learned nothing.
            (!open).then_some(left == 1 && findings.risk[row] != Some(0.0))
        };
        let columns = self.schema.fields().iter().map(|field| -> crate::error::Result<ArrayRef> {
            Ok(match field.name().as_str() {
                RELEASE => Arc::new(Int64Array::from_iter_values(findings.releases.iter().map(|&n| n as i64))),
                CANDIDATES => lists(&findings.candidates, evidence.values(), field.data_type())?,
                REMAINING => lists(&findings.remaining, evidence.values(), field.data_type())?,
                REMAINING_COUNT => Arc::new(Int64Array::from_iter_values(left().map(|count| count as i64))),
                RISK => Arc::new(findings.risk.iter().copied().collect::<Float64Array>()),
                VULNERABLE => Arc::new(left().enumerate().map(vulnerable).collect::<BooleanArray>()),
                UNDECIDED => lists(&findings.undecided, evidence.values(), field.data_type())?,
                READER => {
                    let readers = std::iter::repeat_n(self.reader.as_str(), findings.people.len());
                    Arc::new(StringArray::from_iter_values(readers))
                }
                _ => cast(&evidence.ids(&UInt32Array::from(findings.people.clone()))?, field.data_type())?,
            })
        });
        let columns = columns.collect::<crate::error::Result<Vec<_>>>()?;
        let options = RecordBatchOptions::new().with_row_count(Some(findings.people.len()));
        Ok(RecordBatch::try_new_with_options(Arc::clone(&self.schema), columns, &options)?)
    }
}

fn lists(sets: &Sets, values: &ArrayRef, data_type: &DataType) -> crate::error::Result<ArrayRef> {
    let DataType::List(item) = data_type else { return Err(Error::internal("a set that is not a list")) };
    let values = take(values, &UInt32Array::from(sets.values.clone()), None)?;
    let values = if values.data_type() == item.data_type() { values } else { cast(&values, item.data_type())? };
    let lengths = (0..sets.len()).map(|place| sets.size(place));
    let offsets = OffsetBuffer::from_lengths(lengths);
    Ok(Arc::new(ListArray::try_new(Arc::clone(item), offsets, values, None)?))
}
