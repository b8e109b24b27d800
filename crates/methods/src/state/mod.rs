//! State: what a release leaves to the next one, and how it is read, given to a method and written.
//!
//! Publications (in their ledger), the argument `previous` and `sequential_worlds` use these types and nothing else.
//!
//! | kind | of whom | what |
//! |---|---|---|
//! | [`Signatures`](StateKind::Signatures) | everybody ever published | the sensitive values of their group, and a seal of their own, for ever |
//! | [`NumberedSignatures`](StateKind::NumberedSignatures) | the same | the same, and who of them was in the first release |
//! | [`LabelledSignatures`](StateKind::LabelledSignatures) | the same | those of the most recent group, and everybody's place among them |
//! | [`DatedSignatures`](StateKind::DatedSignatures) | the same | the same at every release, so that it is known when that was |
//! | [`Rings`](StateKind::Rings) | everybody ever published | the same as signatures, and the number of the ring that stays together |
//! | [`Regions`](StateKind::Regions) | everybody ever published | the same as signatures, and the number of the region |
//! | [`People`](StateKind::People) | everybody ever published | that they were, of methods that remember nothing else |
//! | [`Worlds`](StateKind::Worlds) | everybody | whose values they carry in which world; commitments to the values that travel |
//! | [`ValuedWorlds`](StateKind::ValuedWorlds) | everybody | the same, and these values |

mod calendar;
mod entries;
mod ghosts;
mod own;
mod remembered;
mod seals;
mod signatures;
mod worlds;

use std::sync::Arc;

use datafusion::arrow::array::{ArrayRef, Int64Array, RecordBatch};
use datafusion::arrow::datatypes::{DataType, Field, FieldRef, Schema, SchemaRef};
use serde::{Deserialize, Serialize};

pub use self::calendar::MOST_STEPS;
pub use self::own::SEAL;
pub use self::signatures::Signatures;
use self::signatures::{Says, SignaturesReader};
pub(crate) use self::worlds::Partners;
use self::worlds::WorldsReader;
#[cfg(test)]
pub(crate) use self::worlds::resealed;
use crate::error::{Error, Result};
use crate::microdata::{EncodedColumns, HashKey, Layout, Microdata, MicrodataBuilder};
pub use crate::release::RING;
use crate::release::{Form, Published, Shape, View};

/// Column of a ledger: whom an entry is about.
pub const IDENTIFIER: &str = "identifier";
/// Column of a ledger, and optional in labelled signatures that are passed by hand: the release that an entry is from.
pub const RELEASE: &str = "release";

/// Returns the columns of the ledger of a method with state of this kind; of one without, it has the releases' numbers only.
///
/// # Errors
/// When the layout lacks what is to be remembered, which planning should have refused.
pub fn ledger_schema(kind: Option<StateKind>, layout: &Layout) -> Result<SchemaRef> {
    match kind {
        Some(kind) => kind.schema(layout),
        None => Ok(Arc::new(Schema::new(vec![Field::new(RELEASE, DataType::Int64, false)]))),
    }
}

/// Kind of state that a method's releases leave.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum StateKind {
    /// Identifier, signature and own value, the same for ever.
    Signatures,
    /// The same, and the number of the release: how many people the first one had under each signature.
    NumberedSignatures,
    /// Identifier, signature, own label, and the number of the release. The label is that of everybody's own value; the latest one counts.
    LabelledSignatures,
    /// The same of everybody at every release: the number of the latest one says how many releases ago it was.
    DatedSignatures,
    /// Identifier, signature, own value, and the number of the ring, all of them for ever.
    Rings,
    /// Identifier, signature, own value, and the number of the region, all of them for ever. People of a region who have one signature are grouped anew.
    Regions,
    /// Identifier, and the number of the release. Of publications whose method knows of no earlier release, where rows have identifiers: nobody may
    /// be in two of them. An INSERT counts those who are by a plan of its own, so that no method is given this.
    People,
    /// Identifier, partners and commitments.
    Worlds,
    /// The same, and the values that the commitments are to: for people who leave.
    ValuedWorlds,
}

/// Facts about a kind of state that others than the method need.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[doc(hidden)]
pub struct Facts {
    /// Private releases show signatures.
    pub signatures: bool,
    /// They show beside them the label of everybody's own value, for signatures change.
    pub labels: bool,
    /// They show beside them which people stay together for ever.
    pub rings: bool,
    /// Presence of numbers in private releases that are passed by hand.
    pub numbers: Numbers,
    /// Values are sealed: of each column that travels, every value has a hash while that is done.
    pub sealed: bool,
    /// People who leave stay in releases without groups, as counterfeits. Releases say how many these are.
    pub counted: bool,
}

/// Presence of numbers in earlier releases.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[doc(hidden)]
pub enum Numbers {
    /// Their order does not matter.
    Ignored,
    /// The latest one of each person counts; without numbers, there is one of each.
    Optional,
    /// They must have some.
    Required,
}

impl StateKind {
    /// Says what others have to know of it.
    #[doc(hidden)]
    pub fn facts(self) -> Facts {
        let none = Facts {
            signatures: false,
            labels: false,
            rings: false,
            numbers: Numbers::Ignored,
            sealed: false,
            counted: false,
        };
        let signatures = Facts { signatures: true, ..none };
        match self {
            Self::Signatures => Facts { sealed: true, ..signatures },
            Self::NumberedSignatures => Facts { sealed: true, numbers: Numbers::Required, ..signatures },
            Self::LabelledSignatures => Facts { labels: true, numbers: Numbers::Optional, ..signatures },
            Self::DatedSignatures => Facts { labels: true, numbers: Numbers::Required, ..signatures },
            Self::Rings => Facts { sealed: true, rings: true, counted: true, ..signatures },
            Self::Regions => Facts { sealed: true, rings: true, ..signatures },
            Self::People => none,
            Self::Worlds => Facts { sealed: true, ..none },
            Self::ValuedWorlds => Facts { sealed: true, counted: true, ..none },
        }
    }

    /// Returns the shape of a single release whose method leaves state of this kind.
    pub fn shape(kind: Option<Self>, view: View, form: Form, nodes: bool) -> Shape {
        let (signatures, labels, rings) =
            kind.map(Self::facts).map_or((false, false, false), |facts| (facts.signatures, facts.labels, facts.rings));
        // Beside a list of values, the label says which is a person's own.
        let labels = labels || signatures && form == Form::Anatomy;
        Shape { view, form, signatures, labels, rings, nodes, counted: false }
    }

    fn schema(self, layout: &Layout) -> Result<SchemaRef> {
        let nothing = || Error::internal("nothing to remember people by");
        let id = layout.identifier.as_ref().ok_or_else(nothing)?;
        let mut fields = vec![Field::new(IDENTIFIER, id.data_type().clone(), false)];
        match self {
            Self::Signatures
            | Self::NumberedSignatures
            | Self::LabelledSignatures
            | Self::DatedSignatures
            | Self::Rings
            | Self::Regions => {
                let sensitive = layout.sensitive.as_ref().ok_or_else(nothing)?;
                fields.extend(signatures::fields(sensitive, self.facts()));
            }
            Self::Worlds | Self::ValuedWorlds => {
                fields.extend(worlds::fields(id, layout, self == Self::ValuedWorlds));
            }
            Self::People => {}
        }
        fields.push(Field::new(RELEASE, DataType::Int64, false));
        Ok(Arc::new(Schema::new(fields)))
    }

    /// Returns the columns that the next release needs, as [`SnapshotBuilder::append_previous`] takes them.
    ///
    /// # Errors
    /// As for [`ledger_schema`].
    #[doc(hidden)]
    pub fn columns_read(self, layout: &Layout) -> Result<Vec<FieldRef>> {
        let schema = self.schema(layout)?;
        let needed = |field: &&FieldRef| {
            !matches!(self, Self::Signatures | Self::Rings | Self::Regions) || field.name() != RELEASE
        };
        Ok(schema.fields().iter().filter(needed).cloned().collect())
    }

    /// Returns the entries that a release adds, as the members that get one; `known` is the state that it was made with.
    ///
    /// # Errors
    /// When that is of another kind, which is a bug.
    #[doc(hidden)]
    pub fn members(self, published: &Published, known: &State) -> Result<Vec<u32>> {
        Ok(match self {
            Self::Signatures | Self::NumberedSignatures | Self::Rings | Self::Regions => {
                signatures::members(published, known.signatures()?, false)
            }
            Self::LabelledSignatures => signatures::members(published, known.signatures()?, true),
            Self::DatedSignatures | Self::People => published.members(|_| true),
            Self::Worlds | Self::ValuedWorlds => worlds::members(published, known.worlds()?),
        })
    }

    /// Returns the entries of some members, with the columns of `schema`. `number` is that of the release.
    ///
    /// # Errors
    /// When Arrow fails to gather values.
    #[doc(hidden)]
    pub fn entries(
        self,
        published: &Published,
        members: &[u32],
        number: u64,
        schema: &SchemaRef,
    ) -> Result<RecordBatch> {
        let mut columns: Vec<ArrayRef> = vec![published.identifiers(members)?];
        let release: ArrayRef = Arc::new(Int64Array::from(vec![number as i64; members.len()]));
        match self {
            Self::Signatures
            | Self::NumberedSignatures
            | Self::LabelledSignatures
            | Self::DatedSignatures
            | Self::Rings
            | Self::Regions => columns.extend(signatures::entries(published, members, self.facts())?),
            Self::Worlds | Self::ValuedWorlds => columns.extend(worlds::entries(published, members, schema)?),
            Self::People => {}
        }
        columns.push(release);
        Ok(RecordBatch::try_new(SchemaRef::clone(schema), columns)?)
    }
}

/// State of earlier releases about the rows of microdata, for a method.
#[derive(Debug, Default)]
#[non_exhaustive]
pub enum State {
    /// Nothing: the method leaves nothing to later releases.
    #[default]
    Nothing,
    /// Everybody's signatures.
    Signatures(Signatures),
    /// Everybody's worlds.
    Worlds(Partners),
}

impl State {
    /// Returns the state before the first release.
    pub fn before_the_first(kind: Option<StateKind>) -> Self {
        match kind {
            None | Some(StateKind::People) => Self::Nothing,
            Some(
                StateKind::Signatures
                | StateKind::NumberedSignatures
                | StateKind::LabelledSignatures
                | StateKind::DatedSignatures
                | StateKind::Rings
                | StateKind::Regions,
            ) => Self::Signatures(Signatures::default()),
            Some(StateKind::Worlds | StateKind::ValuedWorlds) => Self::Worlds(Partners::default()),
        }
    }

    /// # Errors
    /// When it is of another kind. What a method does not know of earlier releases would break them, so this is a bug.
    pub fn signatures(&self) -> Result<&Signatures> {
        match self {
            Self::Signatures(signatures) => Ok(signatures),
            _ => Err(Self::of_another_kind()),
        }
    }

    /// # Errors
    /// As for [`signatures`](Self::signatures).
    pub fn worlds(&self) -> Result<&Partners> {
        match self {
            Self::Worlds(partners) => Ok(partners),
            _ => Err(Self::of_another_kind()),
        }
    }

    /// Returns the number of people published with an earlier value of this period again.
    pub fn held(&self) -> usize {
        match self {
            Self::Signatures(signatures) => signatures.held,
            _ => 0,
        }
    }

    /// Returns how many people of so many rows were in an earlier release. Rows of people who have left do not count.
    pub fn returning(&self, rows: usize) -> usize {
        let rows = 0..rows as u32;
        match self {
            Self::Nothing => 0,
            Self::Signatures(signatures) => rows.filter(|&row| signatures.number_of(row as usize).is_some()).count(),
            Self::Worlds(partners) => {
                rows.filter(|&row| partners.of(row).is_some()).count().saturating_sub(partners.ghosts)
            }
        }
    }

    /// Returns the number of people of the newest release among so many rows, if known.
    pub fn staying(&self, rows: usize) -> Option<usize> {
        match self {
            _ if self.returning(rows) == 0 => Some(0),
            Self::Signatures(signatures) => signatures.staying,
            _ => None,
        }
    }

    /// Returns how many people were ever published, where that is known.
    pub fn known(&self) -> Option<usize> {
        match self {
            Self::Signatures(signatures) => signatures.people,
            _ => None,
        }
    }

    fn of_another_kind() -> Error {
        Error::internal("state of another kind than the method's")
    }

    /// Returns the state of some of the rows. Worlds are of the whole: of a part there are none.
    pub(super) fn part(&self, rows: &[u32]) -> Self {
        match self {
            Self::Nothing => Self::Nothing,
            Self::Signatures(signatures) => Self::Signatures(signatures.part(rows)),
            Self::Worlds(_) => Self::Worlds(Partners::default()),
        }
    }
}

/// Reads the entries of one kind.
#[derive(Debug)]
enum StateReader {
    Signatures(SignaturesReader),
    Worlds(Option<WorldsReader>),
}

impl StateReader {
    fn try_new(kind: StateKind, layout: &Layout) -> Result<Self> {
        let id = layout.identifier.as_ref().map(|field| field.data_type().clone());
        let id = id.ok_or_else(|| Error::internal("earlier releases of nobody"))?;
        Ok(match kind {
            StateKind::Signatures => Self::Signatures(SignaturesReader::new(id, Says::Signatures)),
            StateKind::NumberedSignatures => Self::Signatures(SignaturesReader::new(id, Says::First)),
            StateKind::LabelledSignatures => Self::Signatures(SignaturesReader::new(id, Says::Labels)),
            StateKind::DatedSignatures => Self::Signatures(SignaturesReader::new(id, Says::Dates)),
            StateKind::Rings => Self::Signatures(SignaturesReader::new(id, Says::Rings)),
            StateKind::Regions => Self::Signatures(SignaturesReader::new(id, Says::Regions)),
            StateKind::People => return Err(Error::internal("people who are not read")),
            StateKind::Worlds | StateKind::ValuedWorlds => Self::Worlds(None),
        })
    }

    fn size(&self) -> usize {
        match self {
            Self::Signatures(reader) => reader.size(),
            Self::Worlds(reader) => reader.as_ref().map_or(0, WorldsReader::size),
        }
    }

    /// Finishes the state. `number` is that of the release that is made, where it is known; `periods` are those of earlier releases and of this one.
    fn finish(
        self,
        columns: &EncodedColumns<'_>,
        number: Option<u64>,
        periods: Option<&(Vec<u64>, u64)>,
    ) -> Result<State> {
        Ok(match self {
            Self::Signatures(reader) => State::Signatures(reader.finish(columns, number, periods)?),
            Self::Worlds(None) => State::Worlds(Partners::default()),
            Self::Worlds(Some(reader)) => State::Worlds(reader.finish(columns.key)?.of_rows(columns, 0)?),
        })
    }
}

/// A snapshot as it is read: its rows, and what earlier releases say about them.
pub struct SnapshotBuilder {
    /// The rows.
    pub microdata: MicrodataBuilder,
    layout: Layout,
    kind: Option<StateKind>,
    state: Option<StateReader>,
    /// Number of the release that is made, where it is known.
    number: Option<u64>,
    /// Periods of earlier releases, and that of this one, where these are counted.
    periods: Option<(Vec<u64>, u64)>,
    /// Columns in which people have what they had before, as far as they are sensitive.
    remembered: Vec<String>,
}

impl SnapshotBuilder {
    /// Returns a builder for batches of this layout and this kind of state.
    ///
    /// # Errors
    /// When a column's type cannot be grouped by.
    pub fn try_new(layout: Layout, kind: Option<StateKind>) -> Result<Self> {
        let microdata = MicrodataBuilder::try_new(layout.clone())?;
        let remembered = Vec::new();
        Ok(Self { microdata, layout, kind, state: None, number: None, periods: None, remembered })
    }

    /// Says which number the release gets; else it is the one after the greatest of earlier releases.
    pub fn set_number(&mut self, number: u64) {
        self.number = Some(number);
    }

    /// Sets the periods of earlier releases and of this one, if values change by periods. The first release's is first;
    /// without periods, every release is one of its own.
    pub fn set_periods(&mut self, periods: Option<(Vec<u64>, u64)>) {
        self.periods = periods;
    }

    /// Lets people keep their last published values in these columns, if they are sensitive. Of methods that know
    /// everybody's own value.
    pub fn remember(&mut self, columns: &[String]) {
        self.remembered = columns.to_vec();
    }

    /// Appends entries of earlier releases, with the columns of their kind.
    ///
    /// # Errors
    /// When they are malformed, or the method leaves no state.
    pub fn append_previous(&mut self, batch: &RecordBatch) -> Result<()> {
        let Some(kind) = self.kind else {
            return Err(Error::internal("earlier releases of a method that knows of none"));
        };
        let reader = match &mut self.state {
            Some(reader) => reader,
            none => none.insert(StateReader::try_new(kind, &self.layout)?),
        };
        let sensitive = self.microdata.encoders().1;
        match reader {
            StateReader::Signatures(reader) => match sensitive {
                Some(sensitive) => reader.append(batch, sensitive),
                None => Err(Error::internal("signatures without a sensitive attribute")),
            },
            StateReader::Worlds(reader) => match &self.layout.identifier {
                Some(id) => reader.get_or_insert_with(|| WorldsReader::new(id.data_type())).append(batch),
                None => Err(Error::internal("worlds of nobody")),
            },
        }
    }

    /// Returns the bytes held, and bytes that [`finish`](Self::finish) will need to order the rows.
    pub fn size(&self) -> usize {
        // Who is missing is found out before the rows are put in order, which takes as much.
        let missing = if self.kind == Some(StateKind::ValuedWorlds) { self.microdata.people_size() } else { 0 };
        let sealing = if self.kind.is_some_and(|kind| kind.facts().sealed) { self.microdata.sealing_size() } else { 0 };
        self.microdata.size() + missing + sealing + self.state.as_ref().map_or(0, StateReader::size)
    }

    /// Returns the rows, and the state as it concerns them. `key` orders identifiers.
    ///
    /// # Errors
    /// Those of [`MicrodataBuilder::finish_with`], and contradictory or incomplete entries.
    pub fn finish(self, key: HashKey) -> Result<(Microdata, State)> {
        let Self { mut microdata, kind, state, number, periods, remembered, .. } = self;
        let state = match state {
            Some(StateReader::Worlds(Some(reader))) => {
                let memory = reader.finish(key)?;
                let ghosts = memory.append_ghosts(&mut microdata, key)?;
                return microdata.finish_with(key, |columns| Ok(State::Worlds(memory.of_rows(columns, ghosts)?)));
            }
            state => state,
        };
        if periods.is_some() {
            microdata.take_values_later();
        }
        let (mut microdata, mut state) = microdata.finish_with(key, |columns| match state {
            Some(reader) => reader.finish(columns, number, periods.as_ref()),
            None => Ok(State::before_the_first(kind)),
        })?;
        if !remembered.is_empty() {
            remembered::fill(&mut microdata, state.signatures()?, &remembered)?;
        }
        if periods.is_some()
            && let State::Signatures(signatures) = &mut state
        {
            remembered::hold(&mut microdata, signatures);
        }
        if microdata.drop_null_value()?
            && let State::Signatures(signatures) = &mut state
        {
            signatures.drop_null_value();
        }
        Ok((microdata, state))
    }
}

#[cfg(test)]
mod tests;
