//! m-Distinct: re-publication when rows come and go and values change.
//!
//! # Guarantee
//! The publisher declares which sensitive values can become which; `CUS(a)`, the *candidate update set* of a value, is what it
//! can become. Every group holds each sensitive value at most once and at least `m` of them (*m-unique*). Everybody has a
//! *label* for ever: the number of their place in their first group. Whoever returns is in the place of their label, in a
//! group that has at *every* place a value that the one at that place of their most recent group can have become.
//!
//! So let all people of groups that hang together (by people whom they have in common, over all releases) have the value
//! that is `k` places further on in their group, at every release: that is a legal history too, each value of a group had by one of its
//! members. For everybody there are as many such *joint worlds* as their groups have values, at least `m`, and each has another
//! value for them at every release. This holds for a reader who knows everyone's quasi-identifiers, the days on which each
//! record was present, all groups and the update relation, and who combines what the members of groups can have.
//!
//! *Possible* is not *equally likely*: with classes {x1, x2}, {y1, y2} and groups of two values of the first and one of the
//! second, there are ever more ways through the first. **m-Distinct\*** ([`disjoint`](MDistinct::disjoint)) in addition begins with
//! groups whose candidate update sets have nothing in common. Then everybody keeps one place in every history that is possible, moving on
//! by `k` takes possible histories to possible ones, and nobody's value is likelier than `1/m` to a reader who knows only what is
//! *possible*. To one who knows how *probable* updates are it can be: who meets the very value that one of the last group had,
//! where values mostly stay, has probably had it.
//!
//! **Exact** releases ([`exact`](MDistinct::exact)) are for that reader, and for one who knows this program besides: with the
//! probabilities, who returns only meets people whose last groups go on by the same laws, counterfeits go on by them, too, and new
//! people are by themselves. Then everybody has each value of their group with the same probability, `1/m` at most. The proof is
//! in `docs/theory.md`; `enumeration` is its test.
//!
//! # Method
//! F. Li and S. Zhou, *Challenging More Updates: Towards Anonymous Re-publication of Fully Dynamic Datasets*, 2008. Their
//! Definition 14 (cover in both directions) and also its strict form (a one-to-one map, whichever) keep `m` values possible in
//! everybody's own update graph, but not to a reader who combines people: where lineages mix, what one member of a group
//! cannot have been another one must have been. The labels are ours. Phases of their Section V and files of this module:
//!
//! | phase | file | against the paper |
//! |---|---|---|
//! | relation | `relation` | closed or checked for transitivity |
//! | buckets | `bucket`, `intersect` | ordered; intersections label by label, with distinct representatives; pairs are bounded |
//! | assignment of returning rows | `relocate` | their entry is their label; counts only |
//! | of new rows | `newcomers`, `units` | into gaps only, the rest by m-invariance's assignment, into groups that can go on |
//! | split | `decompose` | polynomial |
//! | counterfeits | `complete`, `representatives` | random, never a value twice |
//! | | `check` | |
//! | exact releases | `exact`, `law`, `check_exact` | instead of all of these |
//!
//! The paper's score for putting a row into a bucket also looks at how much the bucket's box grows. Ours does not: a choice
//! that depends on where the rows of a value lie tells who has it (see `methods::deal`). Boxes are kept small by
//! the split alone, as in m-invariance.
//!
//! # Limits
//! Where values can come to an end (`a` can become `b`, and `b` nothing else), a group with `a` and `b` has no place for
//! somebody who changes from one to the other: no value of the other place would be different. First groups therefore hold one
//! value of all that can come to the same few. Only where the relation leaves fewer than `m` such sets of values are groups made
//! without that, and whoever changes so is refused. What [`Balance`] and [`OnIneligible`] say about readers who know this code
//! holds here as well; [`Balance::Blind`] also leaves returning rows in their own buckets.
//!
//! # Cost
//! O(n log n) in rows for the split; the phases before work on counts.

mod bucket;
mod check;
mod check_exact;
mod complete;
mod decompose;
mod exact;
mod halves;
mod intersect;
mod law;
mod newcomers;
mod relation;
mod relocate;
mod representatives;
mod units;

#[cfg(test)]
mod attack;
#[cfg(test)]
mod chains;
#[cfg(test)]
mod enumeration;
#[cfg(test)]
mod greedy;
#[cfg(test)]
mod joint;
#[cfg(test)]
mod tests;

use datafusion::common::Result as EngineResult;
use rand_chacha::ChaCha20Rng;
use rustc_hash::FxHashMap;
use serde::{Deserialize, Serialize};

use self::bucket::{Buckets, Cell};
use self::check::Promise;
use self::check_exact::ExactPromise;
use self::exact::Drawn;
use self::newcomers::Places;
use self::relation::Relation;
use super::assignment;
use super::balance::Policy;
pub use super::balance::{Balance, OnIneligible};
use super::capabilities::CellColumns;
use super::given::{Declared, Given, Trial};
use super::lots::Lots;
use super::parameters::{FunctionSignature, KEPT_LINKS_ROWS, Kind, Parameter};
use super::split;
use super::state::Signatures;
use super::{Against, CellsBy, Foreseen, LeftOut, Method, Monitor, Needs, Promises, State, StateKind, ValueChanges};
use crate::error::{Error, Result, thousands};
use crate::microdata::{Codes, Microdata, of_width};
use crate::release::{Body, Form, Lineage, Release};

/// Update relation of the sensitive values.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Possible {
    /// Updates that come with the microdata; without a relation, none.
    #[default]
    Listed,
    /// Every value can become every other.
    Any,
}

impl Possible {
    fn is_listed(&self) -> bool {
        *self == Self::Listed
    }
}

/// Parameters of the method.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct MDistinct {
    /// Least number of sensitive values in a group, at least 2.
    pub m: usize,
    /// True if first groups have candidate update sets with nothing in common (m-Distinct\*).
    pub disjoint: bool,
    /// True if pairs that the update relation lacks to be transitive are added; else they are refused.
    pub close_updates: bool,
    /// Updates that are possible.
    #[serde(default, skip_serializing_if = "Possible::is_listed")]
    pub updates: Possible,
    /// Balance of returning rows' buckets.
    pub balance: Balance,
    /// Treatment of new rows that are not m-eligible.
    pub on_ineligible: OnIneligible,
    /// True if everybody has each value of their group with the same probability. This holds for a reader who knows this program
    /// and the law of changes, too. Needs probabilities, disjoint first groups, blind balancing, and new rows that are eligible.
    #[serde(default, skip_serializing_if = "is_unset")]
    pub exact: bool,
}

/// Returns true if a flag is false, so that it is not serialized.
fn is_unset(parameter: &bool) -> bool {
    !parameter
}

/// Says why calls make no exact releases in cells.
const UNNUMBERED_IN_CELLS: &str = "such a release cannot be made in cells by a call: a cell sees the earlier releases of its own people, and not \
                                   how many there were, which says how often values could change; leave cells out, or make a publication, which \
                                   numbers its releases";

impl MDistinct {
    setters! {
        /// Requires that the values of a first group never become alike (m-Distinct\*).
        with_disjoint(disjoint: bool);
        /// Closes the update relation under composition.
        with_close_updates(close_updates: bool);
        /// Sets the updates that are possible.
        with_updates(updates: Possible);
        /// Sets the balance of returning rows' buckets.
        with_balance(balance: Balance);
        /// Sets the treatment of new rows that are not m-eligible.
        with_on_ineligible(on_ineligible: OnIneligible);
    }

    /// Returns the method with its defaults.
    pub fn new(m: usize) -> Self {
        Self {
            m,
            disjoint: false,
            close_updates: false,
            updates: Possible::Listed,
            balance: Balance::Minimal,
            on_ineligible: OnIneligible::default(),
            exact: false,
        }
    }

    /// Makes releases exact, with what that needs: disjoint first groups, blind balancing, and a refusal of new rows that are not eligible.
    #[must_use]
    pub fn with_exact(self, exact: bool) -> Self {
        match exact {
            true => {
                let (balance, on_ineligible) = (Balance::Blind, OnIneligible::Refuse);
                Self { disjoint: true, balance, on_ineligible, exact, ..self }
            }
            false => Self { exact, ..self },
        }
    }

    fn member_bytes(&self, members: usize, quasi: usize) -> usize {
        members.saturating_mul(20 + 8 * quasi / self.m.max(1))
    }

    fn policy(&self) -> Policy {
        Policy { m: self.m, balance: self.balance, on_ineligible: self.on_ineligible }
    }

    /// Puts returning rows into buckets; returns the new ones by value, which stand in random order.
    fn place_returning(
        &self,
        microdata: &Microdata,
        known: &Signatures,
        relation: &mut Relation,
        buckets: &mut Buckets,
        places: &mut Places,
        monitor: &Monitor,
    ) -> Result<Vec<Vec<u32>>> {
        const NONE: u32 = u32::MAX;
        let codes = &microdata.sensitive_codes;
        let is_new = |row: usize| known.number_of(row).is_none();
        let new = of_width!(codes, codes => assignment::wanted_by_value(codes, relation.values(), is_new));
        let mut kind_of_signature = vec![NONE; known.all().len()];
        for signature in (0..microdata.rows).filter_map(|row| known.number_of(row)) {
            let kind = &mut kind_of_signature[signature as usize];
            if *kind == NONE {
                let entries = relation.kind(&known.all()[signature as usize]);
                *kind = buckets.number(entries, relation) as u32;
            }
        }
        let mut rows_of = returning_rows(codes, known, &kind_of_signature)?;
        let mut counts: Vec<(Cell, usize)> = rows_of.iter().map(|(&cell, rows)| (cell, rows.len())).collect();
        counts.sort_unstable();
        let (mut illegal, mut stuck) = (0, 0);
        for (cell, rows) in counts {
            let bucket = &mut buckets.list[cell.kind as usize];
            if !relation.has(bucket.entries[cell.entry], cell.value) {
                illegal += rows;
            } else if !bucket.fits(relation, cell.entry, cell.value) {
                stuck += rows;
            } else {
                bucket.put(cell, rows);
            }
        }
        if illegal > 0 {
            return Err(Error::refused(format!(
                "the sensitive value of {} returning rows cannot have followed from the one that they were published with last; \
                 correct these rows. `updates` cannot be added to any more: what was thought possible at the first release is what \
                 earlier ones are safe by (before a first release, check_snapshots(..) shows what `updates` lacks)",
                thousands(illegal)
            )));
        }
        if stuck > 0 {
            return Err(Error::refused(format!(
                "{} returning rows have changed to a value that leaves none for the others of their groups: these had two values \
                 that can end as the same one, because `updates` has fewer than m = {} families of values that cannot; the rows \
                 can be published only with a value they had before, and a smaller m, or more ways back in `updates`, from the \
                 first release on, would have kept such values apart",
                thousands(stuck),
                self.m
            )));
        }
        if self.balance == Balance::Minimal {
            let (shared, skipped) = intersect::intersections(buckets, relation);
            monitor.count("skipped_intersections", skipped);
            relocate::relocate(buckets, &shared, relation);
        }
        // Rows of a kind, label and value are alike so far, and in random order.
        for (number, bucket) in buckets.list.iter().enumerate() {
            for (cell, &rows) in &bucket.cells {
                let Some(stock) = rows_of.get_mut(cell).filter(|stock| stock.len() >= rows) else {
                    return Err(Error::internal("more rows in buckets than there are"));
                };
                let moved = stock.split_off(stock.len() - rows);
                moved.into_iter().for_each(|row| places.put(row, number, cell.entry));
            }
        }
        Ok(new)
    }
}

/// Fails when arguments deny what exact releases need; they need not be given.
fn check_exact_arguments(given: &Given<'_>) -> EngineResult<()> {
    let contradicts = |argument: &str, why: &str| {
        let (ours, noun) = (given.write("exact", "true"), given.noun());
        Err(given.refused(argument, format!("{noun} {argument} contradicts {ours}: {why}")))
    };
    if given.word("updates").is_some() {
        return contradicts(
            "updates",
            "with 'any' nothing is known of how probable changes are, and all values can become alike; give the relation with the columns \
             from_value, to_value and probability",
        );
    }
    if !given.is_given("updates") {
        let why = format!(
            "{} updates is missing, with {}: give the relation with the columns from_value, to_value and probability; where no value ever \
             changes, m_invariant promises the same with fewer counterfeits",
            given.noun(),
            given.write("exact", "true")
        );
        return Err(given.refused("updates", why));
    }
    if given.flag("disjoint") == Some(false) {
        return contradicts(
            "disjoint",
            "where values of a group can become alike, who is kept apart tells of values; leave it out",
        );
    }
    if given.word("balance") == Some("minimal") {
        return contradicts(
            "balance",
            "new rows in the places of people who have left tell of values; leave it out, or write 'blind'",
        );
    }
    if given.word("on_ineligible").is_some_and(|word| word != "refuse") {
        return contradicts(
            "on_ineligible",
            "who is padded or left out has the value that is too frequent; leave it out, and publish larger snapshots or take a smaller m",
        );
    }
    Ok(())
}

impl Declared for MDistinct {
    const SIGNATURE: FunctionSignature<'static> = FunctionSignature {
        name: "m_distinct",
        about: "a release of people who come and go and whose sensitive values change (m-Distinct)",
        parameters: &[
            Parameter::INPUT,
            Parameter::required("m", Kind::Integer, "10")
                .at_least(2)
                .says("least number of values that stay possible for everybody"),
            Parameter::ID,
            Parameter::QUASI,
            Parameter::SENSITIVE,
            Parameter::UPDATES,
            Parameter::PREVIOUS.says(
                "all earlier private releases, in their order: one, or several in parentheses; the latest counts, so \
                 one table of several needs a column release",
            ),
            Parameter::flag("disjoint").says("true: values of a first group can never become alike (m-Distinct*)"),
            Parameter::flag("close_updates").says("true adds the pairs that are missing for transitivity"),
            Parameter::flag("exact").says(
                "true: nobody's value is likelier than 1/m, also to who knows this program and the probabilities in \
                 updates",
            ),
            // Where releases are not exact, no mode is safe from who knows this program, so that it is the one with fewer counterfeits.
            Parameter::word("balance", &["minimal", "blind"], "'blind'")
                .says("who fills gaps: as few counterfeits as possible, or without regard to who is new"),
            Parameter::ON_INELIGIBLE,
            Parameter::SEED,
            Parameter::PRIVATE,
            Parameter::HIERARCHIES,
            Parameter::WITHIN,
            Parameter::CELLS,
        ],
        refused: &[("insensitive", KEPT_LINKS_ROWS)],
    };

    const TRIALS: &'static [Trial] = &[Trial {
        parameter: "m",
        arguments: "{}, updates => 'any'",
        form: Form::Intervals,
        bounded: false,
        reader: None,
        by_values: true,
    }];

    fn of(given: &Given<'_>) -> EngineResult<Self> {
        if given.flag("exact") == Some(true) {
            check_exact_arguments(given)?;
            let (m, close) = (given.integer("m").unwrap_or_default(), given.flag("close_updates") == Some(true));
            return Ok(Self::new(m).with_exact(true).with_close_updates(close));
        }
        given.parameters()
    }
}

impl Method for MDistinct {
    fn form(&self) -> Form {
        Form::Intervals
    }

    fn state(&self) -> Option<StateKind> {
        Some(if self.exact { StateKind::DatedSignatures } else { StateKind::LabelledSignatures })
    }

    fn needs(&self) -> Needs {
        Needs { id: true, sensitive: true, ..Needs::default() }
    }

    /// Lets exact releases lack quasi-identifiers: neither the members of groups nor the values of counterfeits depend on them.
    fn leaves_out(&self) -> LeftOut {
        if self.exact { LeftOut::Quasi } else { LeftOut::Nothing }
    }

    fn guarantee(&self) -> String {
        let how = match (self.exact, self.disjoint) {
            (true, _) => ", exactly",
            (false, true) => " with disjoint first groups",
            (false, false) => "",
        };
        format!("{}-distinctness{how}", self.m)
    }

    /// Returns the reader of releases that are not exact. Everybody keeps m joint worlds; how probable these are depends on what is known of updates.
    fn against(&self) -> Against {
        if self.exact { Against::Program } else { Against::People }
    }

    fn changes(&self) -> ValueChanges {
        let closed = self.close_updates;
        match self.updates {
            _ if self.exact => ValueChanges::Lawful { closed },
            Possible::Listed => ValueChanges::Listed { closed },
            Possible::Any => ValueChanges::Any,
        }
    }

    fn foresees(&self) -> Foreseen {
        Foreseen::ByValues { least: (self.on_ineligible == OnIneligible::Refuse).then_some(self.m) }
    }

    /// Returns the promises: by a law, changes over several releases follow from it.
    fn promises(&self) -> Option<Promises> {
        let lineage = Lineage::Distinct { close: self.close_updates || self.exact, disjoint: self.disjoint };
        Some(Promises::of_signatures(self.m, lineage))
    }

    /// Cuts cells by the identifier: earlier releases say nothing of the column `within`, and people may change theirs.
    fn cells(&self, columns: CellColumns) -> Result<CellsBy, &'static str> {
        match self.exact && !columns.remembered {
            true => Err(UNNUMBERED_IN_CELLS),
            false => columns.by_identifier(),
        }
    }

    /// Adds up for each row its places in lists and, in a bucket, its positions; for each member of the release its row, its value, its group and
    /// its share of the intervals. Counterfeits, and the room in which lists are put in order, are charged to the monitor once they are known.
    fn working_bytes(&self, rows: usize, quasi: usize) -> usize {
        rows * (28 + split::item_bytes(quasi, &decompose::Decompose)) + self.member_bytes(rows, quasi)
    }

    /// Anonymizes a snapshot so that it is safe beside all earlier releases. The state must have everybody's *most recent*
    /// group; the microdata have the update relation (without one, no value can change).
    /// Fails when the relation is not transitive, when it has no labels, when a returning row's sensitive
    /// value cannot have followed from its last one or leaves none for the others of its group, when a signature
    /// has fewer than `m` values, when there are fewer than `m` sensitive values (or components of them), when the new rows
    /// are not m-eligible after balancing and `on_ineligible` is to refuse, and for exact releases when changes have no probabilities.
    fn anonymize(
        &self,
        microdata: Microdata,
        state: &State,
        monitor: &Monitor,
        rng: &mut ChaCha20Rng,
    ) -> Result<Release> {
        let known = state.signatures()?;
        if self.exact {
            if microdata.quasi.is_empty() {
                return Err(Error::refused("there is no quasi-identifier in the table; a release needs one"));
            }
            let drawn = self.draw_exact(&microdata, known, monitor, rng)?;
            let promise = ExactPromise { microdata: &microdata, known, m: self.m };
            monitor.phase("check", || promise.check(&drawn))?;
            let Drawn { groups, intervals, .. } = drawn;
            return Ok(Release { withheld: 0, groups, body: Body::Grouped { intervals }, microdata });
        }
        self.policy().check_signatures(known)?;
        let values = microdata.sensitive()?.domain.len();
        let mut relation = monitor.phase("relation", || match self.updates {
            Possible::Any => Ok(Relation::any(values)),
            Possible::Listed => Relation::new(microdata.updates.as_deref(), values, self.close_updates),
        })?;
        let (mut buckets, mut places) = (Buckets::default(), Places::none(microdata.rows));
        let new = monitor.phase("division", || {
            self.place_returning(&microdata, known, &mut relation, &mut buckets, &mut places, monitor)
        })?;
        let withheld = monitor.phase("assignment", || {
            let how = (self.policy(), self.disjoint);
            newcomers::settle(&microdata, &mut buckets, &mut relation, &mut places, new, how, rng)
        })?;
        let gaps = buckets.list.iter().map(bucket::Bucket::gaps).sum();
        // Rows are put in the order in which they leave where they were split; counterfeits were not.
        monitor.charge(self.member_bytes(gaps, microdata.quasi.len()).saturating_add(4 * gaps))?;
        let (groups, intervals) = monitor.phase("split", || {
            let heights: Vec<usize> = buckets.list.iter().map(bucket::Bucket::height).collect();
            let lists = places.lists(buckets.list.iter().map(|bucket| bucket.entries.len()))?;
            let members = split::split(&microdata, &lists, &heights, rng.secret(), &decompose::Decompose, monitor)?;
            drop(lists);
            let groups = complete::complete(&microdata, &relation, &buckets.list, &members, monitor, rng)?;
            let intervals = Release::cover(&microdata, &groups)?;
            Ok((groups, intervals))
        })?;
        let promise = Promise { microdata: &microdata, known, relation: &relation, m: self.m, disjoint: self.disjoint };
        monitor.phase("check", || promise.check(&groups, &intervals, withheld))?;
        Ok(Release { withheld, groups, body: Body::Grouped { intervals }, microdata })
    }
}

fn unlabelled() -> Error {
    Error::internal("a row with a signature and without a label")
}

/// Returns the rows that were published before, by their cell. Rows of a cell ascend.
fn returning_rows(codes: &Codes, known: &Signatures, kind_of_signature: &[u32]) -> Result<FxHashMap<Cell, Vec<u32>>> {
    let mut rows_of: FxHashMap<Cell, Vec<u32>> = FxHashMap::default();
    for (row, value) in codes.iter().enumerate() {
        let Some(signature) = known.number_of(row) else { continue };
        let entry = known.label_of(row).ok_or_else(unlabelled)? as usize;
        let cell = Cell { kind: kind_of_signature[signature as usize], value, entry };
        rows_of.entry(cell).or_default().push(row as u32);
    }
    Ok(rows_of)
}
