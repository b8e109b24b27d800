//! Proof by a SAT solver that slots of a part are in some assignment.

use std::cell::Cell;
use std::rc::Rc;

use rustc_hash::{FxHashMap, FxHashSet};
use rustsat::encodings::am1::{Encode, Ladder, Pairwise};
use rustsat::encodings::card::{BoundUpper, Totalizer};
use rustsat::instances::{BasicVarManager, ManageVars};
use rustsat::solvers::{Solve, SolveIncremental, SolverResult};
use rustsat::types::{Clause, Lit, TernaryVal};
use rustsat_batsat::BasicSolver;

use super::assignment::NOWHERE;
use super::exchange::Exchange;
use super::model::{Model, Verdict};
use super::parts::Part;
use super::reach::Reach;
use crate::error::{Error, Result};

/// Decisions of the solver between two looks at whether the query was cancelled.
const SLICE: u64 = 20_000;
/// Pairs are excluded one by one up to here; beyond, with variables of their own.
const PAIRWISE: usize = 12;

/// Limits of a proof: its work, its memory, and cancellation of the query.
#[derive(Clone, Copy)]
pub(super) struct Limits<'a> {
    /// Decisions of the solver for a part.
    pub budget: u64,
    /// Fails if the query was cancelled, or if so many more bytes are not available.
    pub check: &'a (dyn Fn(usize) -> Result<()> + Sync),
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Effort {
    /// Questions to the solver.
    pub questions: u64,
    /// Its decisions.
    pub decisions: u64,
}

/// Returns the verdicts on the values of a part: of each version, values ascending.
pub(super) fn prove(
    model: &Model,
    part: &Part,
    reach: &Reach<'_>,
    limits: Limits<'_>,
) -> Result<(Vec<Vec<(u32, Verdict)>>, Effort)> {
    let mut proof = Proof::new(model, part, reach)?;
    let hints = proof.hints();
    let feasible = match proof.ask(&hints, limits)? {
        Some(false) if !hints.is_empty() => proof.ask(&[], limits)?,
        answer => answer,
    };
    if feasible == Some(true) {
        proof.harvest()?;
        for place in 0..proof.claims.len() {
            if proof.verdict[place] != Verdict::Undecided {
                continue;
            }
            let claim = proof.claims[place];
            match proof.ask(&[claim], limits)? {
                Some(true) => proof.harvest()?,
                Some(false) => {
                    proof.verdict[place] = Verdict::Impossible;
                    proof.clause([!claim])?;
                }
                None => break,
            }
        }
    }
    // No assignment of all at all: whoever says so is wrong, and nothing is possible.
    let of = |place: u32| if feasible == Some(false) { Verdict::Impossible } else { proof.verdict[place as usize] };
    let verdicts = proof.values.iter().map(|values| values.iter().map(|&(value, claim)| (value, of(claim))).collect());
    Ok((verdicts.collect(), Effort { decisions: proof.decisions.get(), questions: proof.questions }))
}

/// A part as clauses.
struct Proof<'a> {
    model: &'a Model,
    part: &'a Part,
    solver: BasicSolver,
    variables: BasicVarManager,
    /// Claims that a version has a value. Where nothing changes, versions of a person share claims.
    claims: Vec<Lit>,
    verdict: Vec<Verdict>,
    /// Values of each version, and their claims by place.
    values: Vec<Vec<(u32, u32)>>,
    /// Slots of each version that have a literal of their own.
    slots: Vec<Vec<(u32, Lit)>>,
    exchange: Exchange,
    reach: &'a Reach<'a>,
    decisions: Rc<Cell<u64>>,
    pause: Rc<Cell<u64>>,
    questions: u64,
}

impl<'a> Proof<'a> {
    fn new(model: &'a Model, part: &'a Part, reach: &'a Reach<'a>) -> Result<Self> {
        let mut solver = BasicSolver::default();
        let (decisions, pause) = (Rc::new(Cell::new(0_u64)), Rc::new(Cell::new(SLICE)));
        let (counted, until) = (Rc::clone(&decisions), Rc::clone(&pause));
        solver.batsat_mut().cb_mut().set_stop(move || {
            counted.set(counted.get() + 1);
            counted.get() > until.get()
        });
        let mut proof = Self {
            model,
            part,
            solver,
            variables: BasicVarManager::default(),
            claims: Vec::new(),
            verdict: Vec::new(),
            values: Vec::new(),
            slots: Vec::new(),
            exchange: Exchange::new(model, part, &[]),
            reach,
            decisions,
            pause,
            questions: 0,
        };
        for (place, &version) in part.versions.iter().enumerate() {
            proof.version(version, part.linked[place], reach)?;
        }
        proof.pools()?;
        proof.exchange = Exchange::new(model, part, &proof.values);
        Ok(proof)
    }

    /// Adds the clauses of a version: one value, one slot of it, and what follows from the version before.
    fn version(&mut self, version: u32, linked: bool, reach: &Reach<'_>) -> Result<()> {
        let model = self.model;
        let values = model.values(version);
        let own = match self.values.last().filter(|_| linked && reach.is_identity()) {
            // Filtered, so that the values are the same.
            Some(before) => before.clone(),
            None => {
                let first = self.claims.len() as u32;
                let claims: Vec<Lit> = values.iter().map(|_| self.variables.new_lit()).collect();
                self.clause(claims.iter().copied())?;
                self.at_most(&claims, 1)?;
                self.claims.extend(claims);
                self.verdict.resize(self.claims.len(), Verdict::Undecided);
                values.iter().copied().zip(first..).collect()
            }
        };
        if let Some(before) = self.values.last().filter(|_| linked && !reach.is_identity()).cloned() {
            let steps = model.versions[version as usize].time - model.versions[version as usize - 1].time;
            self.update(&before, &own, |value, to| reach.of(value, steps).binary_search(to).is_ok())?;
        }
        let mut slots = Vec::new();
        for &(value, claim) in &own {
            let claim = self.claims[claim as usize];
            let with = model.versions[version as usize].slots.iter().copied();
            let with: Vec<u32> = with.filter(|&slot| model.slots[slot as usize].value == value).collect();
            if let [slot] = with[..] {
                slots.push((slot, claim));
                continue;
            }
            let rows: Vec<Lit> = with.iter().map(|_| self.variables.new_lit()).collect();
            self.clause(std::iter::once(!claim).chain(rows.iter().copied()))?;
            for &row in &rows {
                self.clause([!row, claim])?;
            }
            self.at_most(&rows, 1)?;
            slots.extend(with.into_iter().zip(rows));
        }
        slots.sort_unstable_by_key(|(slot, _)| *slot);
        self.values.push(own);
        self.slots.push(slots);
        Ok(())
    }

    /// Adds the clauses of changes between the values of two versions.
    fn update(
        &mut self,
        before: &[(u32, u32)],
        after: &[(u32, u32)],
        follows: impl Fn(&u32, &u32) -> bool,
    ) -> Result<()> {
        for (from, claim) in before {
            let next = after.iter().filter(|(to, _)| follows(from, to)).map(|(_, claim)| *claim);
            let next: Vec<Lit> = next.map(|claim| self.claims[claim as usize]).collect();
            self.clause(std::iter::once(!self.claims[*claim as usize]).chain(next))?;
        }
        for (to, claim) in after {
            let last = before.iter().filter(|(from, _)| follows(from, to)).map(|(_, claim)| *claim);
            let last: Vec<Lit> = last.map(|claim| self.claims[claim as usize]).collect();
            self.clause(std::iter::once(!self.claims[*claim as usize]).chain(last))?;
        }
        Ok(())
    }

    /// Adds the clauses of pools: rows are at most one version's, exactly one's if there are no more of them.
    fn pools(&mut self) -> Result<()> {
        let part = self.part;
        let full = self.full();
        let place: FxHashMap<u32, usize> = part.versions.iter().copied().zip(0..).collect();
        for (slot, left, versions) in &part.contested {
            let literal = |version: &u32| {
                let slots = &self.slots[place[version]];
                slots.binary_search_by_key(slot, |(slot, _)| *slot).ok().map(|found| slots[found].1)
            };
            let literals: Vec<Lit> = versions.iter().filter_map(literal).collect();
            self.at_most(&literals, *left as usize)?;
            // Follows from the others, but the solver sees it only so.
            if *left == 1 && full.contains(&self.model.versions[versions[0] as usize].pool) {
                self.clause(literals)?;
            }
        }
        Ok(())
    }

    /// Returns the pools in which somebody must have every row that the part can have.
    fn full(&self) -> FxHashSet<u32> {
        let mut rows: FxHashMap<u32, (i64, FxHashSet<u32>)> = FxHashMap::default();
        for &version in &self.part.versions {
            let version = &self.model.versions[version as usize];
            let (left, slots) = rows.entry(version.pool).or_default();
            *left -= 1;
            slots.extend(&version.slots);
        }
        for (slot, left, versions) in &self.part.contested {
            if let Some((sum, slots)) = rows.get_mut(&self.model.versions[versions[0] as usize].pool) {
                *sum += i64::from(*left);
                slots.remove(slot);
            }
        }
        // Without a slot that is not contested, and with as many rows as versions.
        rows.into_iter().filter(|(_, (left, slots))| *left == 0 && slots.is_empty()).map(|(pool, _)| pool).collect()
    }

    fn clause(&mut self, literals: impl IntoIterator<Item = Lit>) -> Result<()> {
        let clause: Clause = literals.into_iter().collect();
        self.solver.add_clause(clause).map_err(|_| Error::internal("the solver refused a clause"))
    }

    fn at_most(&mut self, literals: &[Lit], bound: usize) -> Result<()> {
        let failed = |_| Error::internal("the solver ran out of memory");
        let all = literals.iter().copied();
        let (solver, variables) = (&mut self.solver, &mut self.variables);
        match bound {
            _ if literals.len() <= bound => Ok(()),
            0 => literals.iter().try_for_each(|&literal| self.clause([!literal])),
            1 if literals.len() <= PAIRWISE => all.collect::<Pairwise>().encode(solver, variables).map_err(failed),
            1 => all.collect::<Ladder>().encode(solver, variables).map_err(failed),
            _ => {
                let mut sum: Totalizer = all.collect();
                sum.encode_ub(bound..=bound, solver, variables).map_err(failed)?;
                let units = sum.enforce_ub(bound).map_err(|_| Error::internal("a sum without an encoding"))?;
                units.into_iter().try_for_each(|unit| self.clause([unit]))
            }
        }
    }

    /// Returns the claims that versions have the values to try first. The solver comes back to what it tried last.
    fn hints(&self) -> Vec<Lit> {
        let hint = |(&version, values): (&u32, &Vec<(u32, u32)>)| {
            let hint = self.model.versions[version as usize].hint;
            let claim = values.iter().find(|(value, _)| *value == hint)?.1;
            Some(self.claims[claim as usize])
        };
        self.part.versions.iter().zip(&self.values).filter_map(hint).collect()
    }

    /// Searches for an assignment in which some claims hold; `None` if the budget is used up.
    fn ask(&mut self, claims: &[Lit], limits: Limits<'_>) -> Result<Option<bool>> {
        self.questions += 1;
        loop {
            if self.decisions.get() >= limits.budget {
                return Ok(None);
            }
            (limits.check)(0)?;
            self.pause.set(limits.budget.min(self.decisions.get() + SLICE));
            let answer = self.solver.solve_assumps(claims);
            match answer.map_err(|_| Error::internal("the solver failed"))? {
                SolverResult::Sat => return Ok(Some(true)),
                SolverResult::Unsat => return Ok(Some(false)),
                SolverResult::Interrupted => {}
            }
        }
    }

    /// Marks as possible all that the assignment holds, and all that exchanges reach from it.
    fn harvest(&mut self) -> Result<()> {
        let failed = |_| Error::internal("an assignment without values");
        let holds = |literal: Lit| Ok(self.solver.lit_val(literal).map_err(failed)? == TernaryVal::True);
        let claims = self.claims.iter().map(|&claim| holds(claim)).collect::<Result<Vec<bool>>>()?;
        let mut slots = Vec::with_capacity(self.slots.len());
        for of_version in &self.slots {
            let mut taken = NOWHERE;
            for &(slot, literal) in of_version {
                if holds(literal)? {
                    taken = slot;
                }
            }
            slots.push(taken);
        }
        for (verdict, _) in self.verdict.iter_mut().zip(claims).filter(|(_, holds)| *holds) {
            *verdict = Verdict::Possible;
        }
        self.exchange.spread(self.reach, &slots, &mut self.verdict);
        Ok(())
    }
}
