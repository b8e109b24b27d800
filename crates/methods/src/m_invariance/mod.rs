//! m-Invariance: re-publication when rows come and go.
//!
//! # Guarantee
//! Every group holds each sensitive value at most once and at least `m` of them (*m-unique*), and all groups that ever
//! hosted an identifier have the same set of sensitive values, its *signature* (*m-invariant*). Nobody's value can then be
//! inferred with probability above `1/m` (Lemma 3), even by a reader who knows everyone's quasi-identifiers and the days
//! on which each record was present. That reader knows the principle, not our code.
//!
//! Of releases that are all balanced blindly ([`Balance::Blind`], the default) and without padding or withheld rows, the same holds,
//! and exactly, of a reader who knows this code, who is in which group, and how often each value occurs among those who came with each release,
//! if all ways to give out the values were equally likely to that reader before: the people who first appear under a signature are equally many of
//! each of its values, and everything that is done commutes with renaming the values among all people of the signature. The proof is in
//! `docs/theory.md`; `enumeration` and `relabelling` are its tests, which also find what the other modes give away.
//!
//! With [`Assignment::Drawn`] the same holds, exactly, of a reader to whom the values of all who come after the first release are drawn
//! independently by its shares. Such a reader need not be told that a batch was eligible, for none has to be.
//!
//! # Method
//! X. Xiao and Y. Tao, *m-Invariance: Towards Privacy Preserving Re-publication of Dynamic Datasets*, SIGMOD 2007. The four
//! phases of its Section 4 are the files `division`, `methods::balance`, `choose` (with the counts of
//! `methods::assignment`), `methods::split`. Ours
//! differ in that the number of counterfeits is minimal for the given signatures, that counterfeits have no extent, that new rows go under
//! signatures that are there already as far as they fit (the paper gives them signatures of their own, and buckets become smaller with
//! every release), and that the ledger remembers everybody ever published, so that people who come back are safe.
//!
//! # Cost
//! O(n log n) in rows and quadratic in the number of quasi-identifiers; parallel over buckets and inside large ones.

mod check;
mod choose;
mod division;
mod reference;
mod regions;

#[cfg(test)]
mod attack;
#[cfg(test)]
mod close_enumeration;
#[cfg(test)]
mod drawn;
#[cfg(test)]
mod enumeration;
#[cfg(test)]
mod joint;
#[cfg(test)]
mod region_enumeration;
#[cfg(test)]
mod relabelling;
#[cfg(test)]
mod secrets_enumeration;
#[cfg(test)]
mod tests;

use datafusion::common::Result as EngineResult;
use rand::Rng;
use rand_chacha::ChaCha20Rng;
use rustc_hash::FxHashSet;
use serde::{Deserialize, Serialize};

use self::check::Promise;
use self::division::Division;
pub use self::reference::Assignment;
use self::reference::Reference;
use self::regions::Regions;
pub use super::balance::{Balance, OnIneligible};
use super::balance::{Moves, Policy};
use super::capabilities::CellColumns;
use super::close::{CloseGroups, CloseMethod};
pub use super::close::{Grouping, Reader};
use super::given::{Declared, Given, Trial};
use super::lots::Lots;
use super::mondrian::{self, Source, Streams};
use super::parameters::{FunctionSignature, KEPT_LINKS_ROWS, Kind, Parameter};
use super::secrets::{self, Secrets};
use super::split::{self, Secret};
use super::state::{Signatures, State, StateKind};
use super::{Against, CellsBy, Foreseen, LeftOut, Method, Monitor, Needs, OfParticipants, Promises, assignment};
use crate::error::{Error, Result};
use crate::microdata::Microdata;
use crate::release::{Body, Form, Groups, Intervals, Lineage, Release};

/// Says why cells do not draw signatures.
const DRAWN_IN_CELLS: &str = "a release with assignment => 'drawn' cannot be made in cells: each would take the shares of its own people of the \
                              first release for those of all, and lack values that others have; leave cells out, or take assignment => 'eligible'";

/// Parameters of the method.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct MInvariance {
    /// Least number of sensitive values in a group, at least 2.
    pub m: usize,
    /// Balance of returning rows' buckets.
    pub balance: Balance,
    /// Sets the treatment of new rows that are not m-eligible.
    pub on_ineligible: OnIneligible,
    /// Choice of the signatures of new rows. All releases of the same people must have the same mode.
    #[serde(default, skip_serializing_if = "Assignment::is_eligible")]
    pub assignment: Assignment,
    /// Choice of the people who share a group. All releases of the same people must have the same mode. Releases without the
    /// parameter are of [`Grouping::Cohort`], the only mode when they were made.
    #[serde(default = "Grouping::unsaid", skip_serializing_if = "Grouping::is_unsaid")]
    pub groups: Grouping,
    /// The best informed reader for whom close groups keep the bound.
    #[serde(default, skip_serializing_if = "Reader::is_stranger")]
    pub reader: Reader,
    /// Least number of people of a region; `None` for groups of neighbours that stay. People of a region who have one signature are grouped
    /// anew for every release. All releases of the same people must have the same mode.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub region: Option<usize>,
}

impl MInvariance {
    setters! {
        /// Sets the balance of returning rows' buckets.
        with_balance(balance: Balance);
        /// Sets the treatment of new rows that are not m-eligible.
        with_on_ineligible(on_ineligible: OnIneligible);
        /// Sets the choice of the signatures of new rows.
        with_assignment(assignment: Assignment);
        /// Sets the choice of the people who share a group.
        with_groups(groups: Grouping);
        /// Sets the best informed reader for whom close groups keep the bound.
        with_reader(reader: Reader);
        /// Sets the least number of people of a region.
        with_region(region: Option<usize>);
    }

    const TRIAL: Trial =
        Trial { parameter: "m", arguments: "{}", form: Form::Intervals, bounded: true, reader: None, by_values: true };

    /// Returns the method with its defaults.
    pub fn new(m: usize) -> Self {
        Self {
            m,
            balance: Balance::default(),
            on_ineligible: OnIneligible::default(),
            assignment: Assignment::default(),
            groups: Grouping::default(),
            reader: Reader::default(),
            region: None,
        }
    }

    /// Returns the paper's method, which groups people of one signature anew for every release.
    pub fn of_cohort(m: usize) -> Self {
        Self::new(m).with_groups(Grouping::Cohort)
    }

    fn member_bytes(&self, members: usize, quasi: usize) -> usize {
        members.saturating_mul(16 + 8 * quasi / self.m.max(1))
    }

    /// Returns the bytes of counterfeits in order: they were not ordered with the rows. Rows are put in the order in which they leave where they were split.
    fn counterfeit_bytes(&self, counterfeits: usize, quasi: usize) -> usize {
        self.member_bytes(counterfeits, quasi).saturating_add(counterfeits.saturating_mul(8))
    }

    /// Counts the new rows of each value that balance buckets, are padded or withheld.
    fn moves(&self, microdata: &Microdata, division: &Division, lots: &mut impl Lots) -> Result<Moves> {
        let new = division.new_values();
        let need = division.needs();
        let (policy, sensitive) = (self.policy(), microdata.sensitive()?);
        policy.moves(&new, &need, lots).ok_or_else(|| {
            let (name, values) = (sensitive.field.name(), sensitive.domain.len());
            let most = format!("value of {name}");
            policy.refusal(
                &new,
                &need,
                &most,
                &format!("the sensitive column {name} has only {values} distinct values"),
            )
        })
    }

    /// Returns the groups, without their intervals.
    fn groups(&self, microdata: &Microdata, division: &Division, secret: Secret, monitor: &Monitor) -> Result<Groups> {
        let heights: Vec<usize> = division.buckets.iter().map(|bucket| bucket.height).collect();
        let lists = division.lists(microdata)?;
        let members = split::split(microdata, &lists, &heights, secret, &split::Sorted, monitor)?;
        let mut groups = Groups { starts: vec![0], members, ..Groups::default() };
        for bucket in &division.buckets {
            for _ in 0..bucket.height {
                groups.sensitive.extend(&bucket.signature);
                groups.starts.push(groups.sensitive.len() as u32);
            }
        }
        Ok(groups)
    }

    /// Draws close groups or those of regions, beside what is known of some rows; `first` is the random part of the numbers of new rings and regions.
    fn draw_close(
        &self,
        microdata: &Microdata,
        known: &Signatures,
        monitor: &Monitor,
        (source, first): (&impl Source, i64),
    ) -> Result<Drawn> {
        self.policy().check_signatures(known)?;
        let secrets = Secrets::of(microdata.sensitive()?)?;
        if let Some(secrets) = &secrets {
            // Of the people of this part only: a ledger has the people of all parts.
            let rings: FxHashSet<u32> = (0..microdata.rows).filter_map(|row| known.number_of(row)).collect();
            secrets.check_earlier(rings.iter().map(|&ring| &*known.all()[ring as usize]))?;
        }
        let of_columns = secrets.as_ref();
        let (groups, new, withheld) = monitor.phase("grouping", || match self.region {
            None => {
                CloseGroups { method: self, microdata, known, secrets: of_columns, source, first, monitor }.groups()
            }
            Some(least) => Regions { method: self, least, microdata, known, source, first, monitor }.groups(),
        })?;
        let intervals = Release::cover(microdata, &groups)?;
        let regions = self.region.is_some();
        let balanced = regions && self.is_balanced();
        let promise = Promise { microdata, known, m: self.m, secrets, drawn: None, new, regions, balanced };
        monitor.phase("check", || promise.check(&groups, &intervals, withheld))?;
        Ok(Drawn { groups, intervals, withheld })
    }

    /// Draws groups of all rows, beside what is known of some of them.
    fn draw(
        &self,
        microdata: &Microdata,
        known: &Signatures,
        monitor: &Monitor,
        lots: &mut impl Lots,
    ) -> Result<Drawn> {
        self.policy().check_signatures(known)?;
        let reference = self.reference(microdata, known)?;
        let mut division = monitor.phase("division", || Division::new(microdata, known))?;
        let withheld = match &reference {
            Some(reference) => {
                monitor.phase("assignment", || reference.assign(&mut division, microdata, lots))?;
                monitor.charge(self.counterfeit_bytes(division.need(), microdata.quasi.len()))?;
                0
            }
            None => self.assign_all(microdata, &mut division, monitor, lots)?,
        };
        let (groups, intervals) = monitor.phase("split", || {
            let groups = self.groups(microdata, &division, lots.secret(), monitor)?;
            let intervals = Release::cover(microdata, &groups)?;
            Ok((groups, intervals))
        })?;
        let drawn = reference.as_ref().map(Reference::signatures);
        let (new, regions, balanced) = (0..0, false, self.is_balanced());
        let promise = Promise { microdata, known, m: self.m, secrets: None, drawn, new, regions, balanced };
        monitor.phase("check", || promise.check(&groups, &intervals, withheld))?;
        Ok(Drawn { groups, intervals, withheld })
    }

    /// Returns the counts by which new rows draw signatures; `None` if they are assigned together. They are in any first release.
    fn reference(&self, microdata: &Microdata, known: &Signatures) -> Result<Option<Reference>> {
        if self.assignment == Assignment::Eligible {
            return Ok(None);
        }
        if self.balance != Balance::Blind || self.on_ineligible != OnIneligible::Refuse {
            return Err(Error::internal("signatures that are drawn, and new rows that look at others"));
        }
        match known.all().is_empty() {
            true => Ok(None),
            false => Reference::of(microdata, known, self.m).map(Some),
        }
    }

    /// Balances old buckets and assigns the new rows, all of them together. Returns how many are withheld.
    fn assign_all(
        &self,
        microdata: &Microdata,
        division: &mut Division,
        monitor: &Monitor,
        lots: &mut impl Lots,
    ) -> Result<usize> {
        let moves = monitor.phase("balancing", || {
            let moves = self.moves(microdata, division, lots)?;
            division.balance(&moves, lots);
            Ok(moves)
        })?;
        let counterfeits = division.needs_left(&moves) + moves.padding.iter().sum::<usize>();
        monitor.charge(self.counterfeit_bytes(counterfeits, microdata.quasi.len()))?;
        monitor.phase("assignment", || {
            let mut counts = division.new_counts(&moves);
            // Padding must not meet old rows; see `choose::assign`.
            let padded = moves.padding.iter().any(|&count| count > 0);
            let old = if padded { Vec::new() } else { division.signatures(lots) };
            let mut steps = assignment::reuse(&mut counts, self.m, old);
            steps.extend(assignment::steps(&counts, self.m, lots)?);
            choose::assign(division, &steps, &moves.padding, lots);
            Ok(())
        })?;
        Ok(moves.withheld.iter().sum())
    }

    /// Returns true if each signature's new people are equally many of its values. This holds at every release that is
    /// made so: no new row fills a gap, none is padded and none left out.
    fn is_balanced(&self) -> bool {
        self.looks_at_no_gap() && self.assignment == Assignment::Eligible
    }

    /// Returns true if new people draw their signatures. Each for themselves, so that they are not equally many; but the mode is agreed before the
    /// first release, and holds from then on.
    fn is_drawn(&self) -> bool {
        self.looks_at_no_gap() && self.assignment == Assignment::Drawn
    }

    fn looks_at_no_gap(&self) -> bool {
        self.balance == Balance::Blind && self.on_ineligible == OnIneligible::Refuse
    }

    fn policy(&self) -> Policy {
        Policy { m: self.m, balance: self.balance, on_ineligible: self.on_ineligible }
    }
}

impl CloseMethod for MInvariance {
    fn least(&self) -> usize {
        self.m
    }

    fn parameter(&self) -> &'static str {
        "m"
    }

    fn reader(&self) -> Reader {
        self.reader
    }

    fn counterfeit_bytes(&self, counterfeits: usize, quasi: usize) -> usize {
        Self::counterfeit_bytes(self, counterfeits, quasi)
    }

    /// Refuses these people, pads or withholds them, as the paper's method does. It looks at no quasi-identifier.
    fn ineligible(
        &self,
        microdata: &Microdata,
        monitor: &Monitor,
        source: &impl Source,
    ) -> Result<Option<(Groups, usize)>> {
        let mut lots = source.at(microdata.rows, microdata.rows);
        let Drawn { groups, withheld, .. } = self.draw(microdata, &Signatures::default(), monitor, &mut lots)?;
        Ok(Some((groups, withheld)))
    }
}

/// Groups that are drawn of a snapshot.
struct Drawn {
    groups: Groups,
    intervals: Intervals,
    withheld: usize,
}

impl Declared for MInvariance {
    const SIGNATURE: FunctionSignature<'static> = FunctionSignature {
        name: "m_invariant",
        about: "a release of people who come and go, safe beside all earlier releases (m-invariance)",
        parameters: &[
            Parameter::INPUT,
            Parameter::required("m", Kind::Integer, "10")
                .at_least(2)
                .says("least number of different sensitive values in a group: the bound is 1/m"),
            Parameter::ID,
            Parameter::QUASI,
            Parameter::SENSITIVE,
            Parameter::PREVIOUS,
            Parameter::word("groups", &["close", "cohort"], "'cohort'").says(
                "who shares a group: neighbours who come together, for ever; or people of the whole table, grouped anew for every \
                 release (the paper's)",
            ),
            Parameter::word("reader", &["stranger", "participant"], "'participant'").says(
                "for whom the bound holds: a reader who knows nobody's value, or also one who knows their own and others' values",
            ),
            Parameter::optional("region", Kind::Integer, "1000")
                .at_least(2)
                .says(
                    "with groups 'close', least number of people of a region, whose people are grouped anew for every release: fewer \
                     counterfeits, wider ranges",
                )
                .otherwise("none: groups stay"),
            Parameter::word("balance", &["blind", "minimal"], "'minimal'").says(
                "with groups 'cohort', who fills gaps: counterfeits only, which tells nothing, or new rows where they can, with fewer \
                 counterfeits",
            ),
            Parameter::ON_INELIGIBLE,
            Parameter::SEED,
            Parameter::PRIVATE,
            Parameter::HIERARCHIES,
            Parameter::WITHIN,
            Parameter::CELLS,
            Parameter::word("assignment", &["eligible", "drawn"], "'drawn'").says(
                "new rows get signatures all together, and must be eligible; or each draws one by the shares of the \
                 first release",
            ),
            Parameter::DOMAIN
                .otherwise("none")
                .says("with 'drawn': all values that can ever come, also those that the first release has not"),
        ],
        refused: &[("insensitive", KEPT_LINKS_ROWS)],
    };

    const TRIALS: &'static [Trial] = &[Self::TRIAL, Trial { reader: Some("participant"), ..Self::TRIAL }];

    /// # Errors
    /// When signatures are to be drawn in a way that looks at other rows, or not drawn from a domain.
    fn of(given: &Given<'_>) -> EngineResult<Self> {
        let mut method: Self = given.parameters()?;
        let of_cohort = method.balance != Balance::Blind || method.assignment != Assignment::Eligible;
        if of_cohort && !given.is_given("groups") {
            method.groups = Grouping::Cohort;
        }
        if of_cohort && method.groups == Grouping::Close {
            return Err(given.refused(
                "groups",
                format!(
                    "groups that are close are made of all new people at once, with counterfeits for who has left; balance and assignment are of {}: \
                     write that, or leave them out",
                    given.write("groups", "'cohort'")
                ),
            ));
        }
        if method.region.is_some() && method.groups == Grouping::Cohort {
            return Err(given.refused(
                "region",
                format!(
                    "groups => 'cohort', balance and assignment group people of the whole table, without regions: leave region out, or write {} and \
                     leave the others out",
                    given.write("groups", "'close'")
                ),
            ));
        }
        if method.region.is_some() && method.reader == Reader::Participant {
            return Err(given.refused(
                "region",
                "people of a region are grouped anew by their values, so that one known value tells of others, and no bound holds for a participant: \
                 leave region or reader out",
            ));
        }
        if method.reader == Reader::Participant && method.on_ineligible != OnIneligible::Refuse {
            return Err(given.refused(
                "on_ineligible",
                "counterfeits beside new rows, and rows that are left out, tell of values, so that no bound holds for a participant: leave on_ineligible \
                 or reader out",
            ));
        }
        if method.groups == Grouping::Cohort && method.reader == Reader::Participant {
            return Err(given.refused(
                "reader",
                format!(
                    "in groups of the whole cohort one known value tells of others, so that no bound holds for a participant: leave reader out, or write {}",
                    given.write("groups", "'close'")
                ),
            ));
        }
        match method.assignment {
            Assignment::Eligible if given.is_given("domain") => Err(given.refused(
                "domain",
                format!(
                    "domain is for assignment => 'drawn', where values that the first release has not seen need signatures; here each release \
                     makes them for the values that come: leave domain out, or write {}",
                    given.write("assignment", "'drawn'")
                ),
            )),
            Assignment::Drawn if method.balance != Balance::Blind => Err(given.refused(
                "balance",
                "with assignment => 'drawn' every new row draws a signature for itself, so none is spent on a gap, and balance is 'blind': \
                 leave balance out",
            )),
            Assignment::Drawn if method.on_ineligible != OnIneligible::Refuse => Err(given.refused(
                "on_ineligible",
                "with assignment => 'drawn' no batch of new rows is ineligible but the first release, whose rows are shares to draw by and \
                 must not be padded or withheld: leave on_ineligible out, and begin with rows of which no value makes up more than 1/m",
            )),
            _ => Ok(method),
        }
    }
}

impl Method for MInvariance {
    fn form(&self) -> Form {
        Form::Intervals
    }

    fn state(&self) -> Option<StateKind> {
        Some(match (self.groups, self.assignment) {
            (Grouping::Close, _) if self.region.is_some() => StateKind::Regions,
            (Grouping::Close, _) => StateKind::Rings,
            (Grouping::Cohort, Assignment::Eligible) => StateKind::Signatures,
            (Grouping::Cohort, Assignment::Drawn) => StateKind::NumberedSignatures,
        })
    }

    fn needs(&self) -> Needs {
        Needs { id: true, sensitive: true, ..Needs::default() }
    }

    /// Lets releases lack quasi-identifiers: nothing drawn for later releases depends on them. Groups only hold people
    /// of one signature whatever is published of them.
    fn leaves_out(&self) -> LeftOut {
        LeftOut::Quasi
    }

    fn guarantee(&self) -> String {
        format!("{}-invariance", self.m)
    }

    fn unsaid(&self, parameter: &str) -> Option<&'static str> {
        Some(match parameter {
            "groups" => "cohort",
            "reader" => "stranger",
            "assignment" => "eligible",
            _ => return None,
        })
    }

    fn against(&self) -> Against {
        match self.reader {
            _ if self.is_drawn() => Against::Law,
            Reader::Participant if self.is_balanced() => Against::Participant,
            _ => Against::program_if(self.is_balanced()),
        }
    }

    fn hides_each(&self, columns: usize) -> Result<(), &'static str> {
        if self.groups == Grouping::Cohort {
            return Err(
                "with groups => 'cohort' it bounds the combination of several sensitive columns, not each by itself",
            );
        }
        if self.region.is_some() {
            return Err("with region it bounds the combination of several sensitive columns, not each by itself");
        }
        if self.on_ineligible != OnIneligible::Refuse {
            return Err(
                "with on_ineligible it bounds the combination of several sensitive columns, not each by itself",
            );
        }
        secrets::check_columns(columns)
    }

    fn of_participants(&self) -> OfParticipants {
        match self.reader {
            Reader::Participant => OfParticipants::always_among(self.m - 1),
            Reader::Stranger => OfParticipants::NONE,
        }
    }

    /// Foresees no refusal for counts, except of the first batch, if people draw signatures.
    fn foresees(&self) -> Foreseen {
        let refused = self.on_ineligible == OnIneligible::Refuse && !self.is_drawn();
        Foreseen::ByValues { least: refused.then_some(self.m) }
    }

    fn promises(&self) -> Option<Promises> {
        let lineage = match self.assignment {
            Assignment::Eligible => Lineage::Invariant,
            Assignment::Drawn => Lineage::Drawn,
        };
        Some(Promises::of_signatures(self.m, lineage))
    }

    /// Cuts cells by the identifier, because people may change their column `within`. Earlier releases say nothing of it.
    fn cells(&self, columns: CellColumns) -> Result<CellsBy, &'static str> {
        match self.assignment {
            Assignment::Eligible => columns.by_identifier(),
            Assignment::Drawn => Err(DRAWN_IN_CELLS),
        }
    }

    fn not_repositioned(&self) -> Option<(&'static str, &'static str)> {
        self.is_drawn().then_some((
            "assignment",
            "with assignment 'drawn' no snapshot is ineligible, so none need be repositioned, and which records are moved would tell of \
             their values: leave option assignment out, or publish each snapshot as it comes with 'method' 'm_invariant'",
        ))
    }

    /// Returns whether buckets are balanced; `None` where signatures are drawn. That is agreed before the first release, and has never changed.
    fn balanced(&self) -> Option<bool> {
        (!self.is_drawn()).then(|| self.is_balanced())
    }

    /// Adds up the bytes of rows, of buckets, and of members of the release. Each row has its places in lists and, in a bucket, its positions; each member of
    /// the release has its row, its value, its group and its share of the intervals. Counterfeits are charged to the monitor once their number is known.
    fn working_bytes(&self, rows: usize, quasi: usize) -> usize {
        let of_buckets = 16 + split::item_bytes(quasi, &split::Sorted);
        let of_row = match (self.groups, self.region) {
            (Grouping::Close, None) => mondrian::leaves_with_worlds_bytes(quasi),
            (Grouping::Close, Some(_)) => mondrian::leaves_with_worlds_bytes(quasi) + of_buckets,
            (Grouping::Cohort, _) => of_buckets,
        };
        rows * of_row + mondrian::axes_bytes(rows, quasi) + self.member_bytes(rows, quasi)
    }

    /// Anonymizes a snapshot so that it is safe beside all earlier releases.
    ///
    /// # Errors
    /// [`Error::Refused`] when a returning row's sensitive value is not in its signature (an internal update), when a
    /// signature has fewer than `m` values, when there are fewer than `m` sensitive values, and when the
    /// new rows are not m-eligible after balancing and `on_ineligible` is to refuse; where signatures are drawn, when a new row has a
    /// value that neither the first release nor the domain has, or the first release is not all there.
    fn anonymize(
        &self,
        microdata: Microdata,
        state: &State,
        monitor: &Monitor,
        rng: &mut ChaCha20Rng,
    ) -> Result<Release> {
        if microdata.quasi.is_empty() {
            return Err(Error::refused("there is no quasi-identifier in the table; a release needs one"));
        }
        let known = state.signatures()?;
        let Drawn { groups, intervals, withheld } = match self.groups {
            Grouping::Close => {
                let (source, first) = (Streams(rng.random()), rng.random());
                self.draw_close(&microdata, known, monitor, (&source, first))?
            }
            Grouping::Cohort => self.draw(&microdata, known, monitor, rng)?,
        };
        Ok(Release { withheld, groups, body: Body::Grouped { intervals }, microdata })
    }
}
