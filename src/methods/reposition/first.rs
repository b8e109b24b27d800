//! The first window, exactly: the paper's integer program (Section IV), as a flow.
//!
//! Nothing of the window has left, so every record may be published at any time of it. Records flow from their homes to times: of each value
//! at most `L_j` to time `j`, and at least `l * L_j` of all values together. For fixed levels `L_j` that is one flow in a network, whose
//! corners are whole numbers; so only the levels are integer variables, one for each snapshot, and branching on them is all there
//! is to do. What comes out is rounded, checked as whole numbers and put in order of time (Theorem 1) before anything is
//! made of it.

use std::collections::VecDeque;

use microlp::{ComparisonOp, OptimizationDirection, Problem, SolveOptions, Variable};

use super::cost::Costs;

/// Most variables of a program. Larger ones are not tried: they would take more than a few seconds.
const MOST_VARIABLES: usize = 20_000;
/// Most nodes of the search times variables, about a second's work. A count, not a time, so that the result is the same on any machine.
const MOST_WORK: u64 = 1_000_000;

/// The records of one value.
#[derive(Debug, Clone)]
pub(super) struct Supply {
    /// Cost of suppressing one.
    pub suppress: f64,
    /// How many are at home at each time from the first of the window.
    pub homes: Vec<u32>,
}

/// Where the records of a value are best: at each time how many are published, and how many of those at home there are suppressed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Settled {
    pub published: Vec<u32>,
    pub suppressed: Vec<u32>,
}

/// The best that was found.
#[derive(Debug)]
pub(super) struct Solution {
    /// By value.
    pub values: Vec<Settled>,
    /// Whether nothing is better.
    pub proven: bool,
}

/// Variables of a value: what flows to a time, and what is suppressed of those at home there.
struct Flow {
    to: Vec<Vec<Variable>>,
    suppressed: Vec<Option<Variable>>,
}

/// How many variables a program has; `None` if that is more than will be tried.
pub(super) fn variables(supplies: &[Supply], times: usize, costs: &Costs) -> Option<usize> {
    let of = |supply: &Supply| -> usize {
        let busy = supply.homes.iter().enumerate().filter(|(_, count)| **count > 0);
        match costs.are_linear() {
            true => busy.clone().next().map_or(0, |(first, _)| 2 * (times - first)) + busy.count(),
            false => busy.map(|(home, _)| times - home + 1).sum(),
        }
    };
    let mut all = times;
    for supply in supplies {
        all = all.saturating_add(of(supply));
        if all > MOST_VARIABLES {
            return None;
        }
    }
    Some(all)
}

/// Bytes of a program of so many variables, about: the rows and columns that each is in, and the search's open nodes.
pub(super) fn size(variables: usize) -> usize {
    512 * variables.min(MOST_VARIABLES)
}

/// Solves the program for records of values (in an order that nothing but chance decides, for among solutions that cost the same it
/// does) and so many times. `hint` is a level for each time that can be kept. `None` if it is too large, or nothing was found.
pub(super) fn solve(l: usize, costs: &Costs, times: usize, supplies: &[Supply], hint: &[usize]) -> Option<Solution> {
    let size = variables(supplies, times, costs)? as u64;
    let mut problem = Problem::new(OptimizationDirection::Minimize);
    // Records that can be at a time.
    let mut present = vec![0_u64; times];
    let mut most = vec![0_u64; times];
    for supply in supplies {
        let mut sum = 0;
        for (time, &count) in supply.homes.iter().enumerate() {
            sum += u64::from(count);
            present[time] += sum;
            most[time] = most[time].max(sum);
        }
    }
    let levels: Vec<Variable> = present
        .iter()
        .zip(&most)
        .map(|(&present, &most)| {
            let highest = most.min(present / l as u64);
            problem.add_integer_var(0.0, (0, i32::try_from(highest).unwrap_or(i32::MAX)))
        })
        .collect();
    let flows: Vec<Flow> = supplies.iter().map(|supply| flow(&mut problem, supply, times, costs)).collect();
    for (time, &level) in levels.iter().enumerate() {
        let mut all: Vec<(Variable, f64)> = Vec::new();
        for flow in &flows {
            let mut of_value: Vec<(Variable, f64)> = flow.to[time].iter().map(|&arc| (arc, 1.0)).collect();
            all.extend_from_slice(&of_value);
            if !of_value.is_empty() {
                of_value.push((level, -1.0));
                problem.add_constraint(of_value, ComparisonOp::Le, 0.0);
            }
        }
        all.push((level, -(l as f64)));
        problem.add_constraint(all, ComparisonOp::Ge, 0.0);
    }
    let mut options = SolveOptions::default();
    options.node_limit = Some((MOST_WORK / size.max(1)).max(1));
    options.warm_start = Some(levels.iter().zip(hint).map(|(&level, &hint)| (level, hint as f64)).collect());
    let outcome = problem.solve_with(options).ok()?;
    let solution = outcome.solution()?;
    let values = flows.iter().map(|flow| {
        let count =
            |variables: &[Variable]| variables.iter().map(|&v| solution.var_value(v)).sum::<f64>().round() as u32;
        Settled {
            published: flow.to.iter().map(|arcs| count(arcs)).collect(),
            suppressed: flow.suppressed.iter().map(|variable| count(variable.as_slice())).collect(),
        }
    });
    let values: Vec<Settled> = values.collect();
    is_valid(l, times, supplies, &values).then(|| Solution { values, proven: outcome.is_optimal() })
}

/// Adds the variables of a value, and that each of its records goes somewhere.
fn flow(problem: &mut Problem, supply: &Supply, times: usize, costs: &Costs) -> Flow {
    let mut flow = Flow { to: vec![Vec::new(); times], suppressed: vec![None; times] };
    let linear = costs.are_linear();
    // What waits from the time before, where moving by two costs twice as much as by one.
    let mut waiting: Option<Variable> = None;
    for home in 0..times {
        let count = supply.homes.get(home).copied().unwrap_or(0);
        if count == 0 && waiting.is_none() {
            continue;
        }
        let mut balance: Vec<(Variable, f64)> = Vec::new();
        if count > 0 {
            let suppressed = problem.add_var(supply.suppress, (0.0, f64::from(count)));
            flow.suppressed[home] = Some(suppressed);
            balance.push((suppressed, 1.0));
        }
        if linear {
            balance.extend(waiting.take().map(|arc| (arc, -1.0)));
            let here = problem.add_var(0.0, (0.0, f64::INFINITY));
            flow.to[home].push(here);
            balance.push((here, 1.0));
            if home + 1 < times {
                let later = problem.add_var(costs.of(1), (0.0, f64::INFINITY));
                waiting = Some(later);
                balance.push((later, 1.0));
            }
        } else {
            for time in home..times {
                let arc = problem.add_var(costs.of((time - home) as i64), (0.0, f64::INFINITY));
                flow.to[time].push(arc);
                balance.push((arc, 1.0));
            }
        }
        problem.add_constraint(balance, ComparisonOp::Eq, f64::from(count));
    }
    flow
}

/// Whether every record is somewhere, none before its time, and every snapshot is l-eligible.
fn is_valid(l: usize, times: usize, supplies: &[Supply], values: &[Settled]) -> bool {
    let of_value = supplies.iter().zip(values).all(|(supply, settled)| {
        let mut there = 0_i64;
        (0..times).all(|time| {
            let home = supply.homes.get(time).copied().unwrap_or(0);
            there += i64::from(home) - i64::from(settled.suppressed[time]) - i64::from(settled.published[time]);
            settled.suppressed[time] <= home && there >= 0
        }) && there == 0
    });
    of_value
        && (0..times).all(|time| {
            let counts = values.iter().map(|settled| settled.published[time] as usize);
            counts.clone().max().unwrap_or(0) * l <= counts.sum()
        })
}

impl Settled {
    /// Who is published when, in the order of original times: for each time numbers of records by home.
    pub(super) fn in_order(&self, homes: &[u32]) -> Vec<Vec<(usize, u32)>> {
        let mut waiting: VecDeque<(usize, u32)> = VecDeque::new();
        let mut places = Vec::with_capacity(self.published.len());
        for (time, &published) in self.published.iter().enumerate() {
            let kept = homes.get(time).copied().unwrap_or(0) - self.suppressed[time];
            if kept > 0 {
                waiting.push_back((time, kept));
            }
            let (mut needed, mut here) = (published, Vec::new());
            while needed > 0
                && let Some((home, count)) = waiting.front_mut()
            {
                let taken = needed.min(*count);
                here.push((*home, taken));
                needed -= taken;
                *count -= taken;
                if *count == 0 {
                    waiting.pop_front();
                }
            }
            places.push(here);
        }
        places
    }
}
