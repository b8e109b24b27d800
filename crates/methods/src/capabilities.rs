//! Answers that a method gives about itself: plain data that SQL, publications and audits are driven by.

use crate::microdata::Layout;
use crate::release::{Lineage, Promise};

/// Names the source of a row's cell.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CellsBy {
    /// The value of a column, by its place in the layout.
    Column(usize),
    /// The place of the row among the quasi-identifiers.
    Place,
}

/// Columns of a table by which the cell of a row can be decided.
#[derive(Debug, Clone, Copy)]
pub struct CellColumns {
    /// The identifier. A person has one cell for ever by it.
    pub identifier: Option<CellsBy>,
    /// The column `within`.
    pub within: Option<CellsBy>,
    /// True in publications, where earlier releases are known to later ones.
    pub remembered: bool,
}

impl CellColumns {
    /// Returns the columns of a layout.
    pub(crate) fn of(layout: &Layout, remembered: bool) -> Self {
        let identifier = layout.identifier.as_ref().map(|_| CellsBy::Column(0));
        let within = layout.within.as_ref();
        let within = within.and_then(|within| layout.fields().position(|field| field.name() == within.name()));
        Self { identifier, within: within.map(CellsBy::Column), remembered }
    }

    /// Returns the identifier.
    /// Fails when the table has none.
    pub(crate) fn by_identifier(self) -> Result<CellsBy, &'static str> {
        self.identifier.ok_or(
            "cells need an identifier (id => ..), which decides on the cell of a row: a cell that followed from other columns would tell \
             something of the sensitive value",
        )
    }
}

/// Says why a release with fair cuts is not made in cells that are places.
pub(crate) const FAIR_IN_CELLS: &str = "a release with fair cuts cannot be made in cells: the first cuts would be made by a sample, and a cut \
                                        that was not made would tell something; leave cells out, or choose other cuts";

/// Columns that releases of one publication may have or not.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum LeftOut {
    /// None: all releases have the same.
    #[default]
    Nothing,
    /// Quasi-identifiers.
    Quasi,
    /// Quasi-identifiers, and sensitive columns of people who were published before: what they had in them is remembered.
    Remembered,
    /// Quasi-identifiers, the sensitive attribute and what travels with it.
    Anything,
}

/// Columns that a method cannot do without, beside quasi-identifiers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Needs {
    /// An identifier.
    pub id: bool,
    /// A sensitive attribute.
    pub sensitive: bool,
    /// Columns that travel with it, if there are any; other methods publish none.
    pub other: bool,
}

/// Lists how a person's sensitive value may change between releases.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum ValueChanges {
    /// No change that the method knows of.
    #[default]
    Never,
    /// Values change as an update relation lists.
    Listed {
        /// True if pairs that the relation lacks to be transitive are added.
        closed: bool,
    },
    /// To any value.
    Any,
    /// Values change as an update relation lists, with probabilities.
    Lawful {
        /// True if pairs that the relation lacks to be transitive are added.
        closed: bool,
    },
}

impl ValueChanges {
    /// Returns true if the update relation must have probabilities.
    pub fn are_lawful(self) -> bool {
        matches!(self, Self::Lawful { .. })
    }

    /// Returns true if values change without a law. Silence about the period of a release tells something of them then.
    pub fn are_lawless(self) -> bool {
        matches!(self, Self::Listed { .. } | Self::Any)
    }

    /// Returns true if pairs that the update relation lacks to be transitive are added.
    pub fn are_closed(self) -> bool {
        matches!(self, Self::Listed { closed: true } | Self::Lawful { closed: true })
    }
}

/// Findings on a snapshot before it is published.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Foreseen {
    /// Each snapshot is accepted or refused by itself: releases do not know of each other.
    #[default]
    ByItself,
    /// Nothing: acceptance depends on what was drawn for earlier releases.
    Nothing,
    /// Values decide: those that people had before, and how often each occurs among new people.
    ByValues {
        /// Inverse of the greatest share of a value among new people, if it is limited.
        least: Option<usize>,
    },
}

/// Promises of a publication, for an audit to check.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Promises {
    /// Of every group of a release.
    pub groups: Vec<Promise>,
    /// Of every group of a release that lacks sensitive columns.
    pub sizes: Vec<Promise>,
    /// Of all rows together: the inverse of the greatest share that a sensitive value has.
    pub whole: Option<usize>,
    /// Of what the ledger remembers.
    pub memory: Remembered,
}

impl Promises {
    /// Returns promises of groups alone.
    pub(crate) fn of_groups(groups: Vec<Promise>) -> Self {
        Self { groups, ..Self::default() }
    }

    /// Returns promises of groups of `m` different values, which a ledger remembers.
    pub(crate) fn of_signatures(m: usize, lineage: Lineage) -> Self {
        let (groups, sizes) = (vec![Promise::Unique { m }], vec![Promise::Anonymous { k: m }]);
        Self { groups, sizes, whole: None, memory: Remembered::Signatures(m, lineage) }
    }
}

/// Contents of a ledger from release to release.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Remembered {
    /// Nothing.
    #[default]
    Nothing,
    /// People who were published.
    People,
    /// Signatures of at least so many values.
    Signatures(usize, Lineage),
    /// Partners in so many worlds.
    Worlds(usize),
}
