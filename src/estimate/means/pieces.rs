//! Means over measured intervals when nothing but comparisons with constants matters: between two constants that stand next
//! to each other a condition holds everywhere or nowhere.

use datafusion::arrow::datatypes::DataType;
use datafusion::common::{Result, ScalarValue};
use datafusion::logical_expr::{BinaryExpr, Expr, Operator};

use crate::estimate::factor::{Compiled, Factor};
use crate::estimate::scale::{Scale, coordinates, from_coordinates};

/// Pieces between the places where a function can change.
#[derive(Debug)]
pub(crate) struct Pieces {
    /// Ascending.
    cuts: Vec<f64>,
    /// Power of the column as a factor: 0, 1 or 2.
    power: u8,
}

impl Pieces {
    /// Splits a function into pieces; `None` if it has other things in it than comparisons of the column with constants, and the column itself.
    pub(super) fn new(factor: &Factor, column: &str, data_type: &DataType) -> Option<Self> {
        let mut constants = Vec::new();
        let comparisons = factor.conditions.iter().all(|condition| {
            let mut reader = Constants { column, data_type, constants: &mut constants };
            reader.condition(condition)
        });
        let bare = |value: &Expr| is_column(value, column, data_type);
        if !comparisons || factor.values.len() > 2 || !factor.values.iter().all(bare) {
            return None;
        }
        // Between whole numbers nothing changes but at the halves.
        let mut cuts: Vec<f64> = match Scale::of(data_type) {
            Scale::Steps => constants.iter().flat_map(|c| [-0.5, 0.5, 1.5].map(|d| c.floor() + d)).collect(),
            _ => constants,
        };
        cuts.retain(|cut| cut.is_finite());
        cuts.sort_by(f64::total_cmp);
        cuts.dedup();
        Some(Self { cuts, power: factor.values.len() as u8 })
    }

    /// Returns the means over the intervals from the first to the second of each pair.
    pub(super) fn means(&self, function: &Compiled, data_type: &DataType, ends: &[(f64, f64)]) -> Result<Vec<f64>> {
        let lowest = ends.iter().map(|ends| ends.0).filter(|x| x.is_finite()).fold(f64::INFINITY, f64::min);
        let highest = ends.iter().map(|ends| ends.1).filter(|x| x.is_finite()).fold(f64::NEG_INFINITY, f64::max);
        // Only what lies among the values matters, and can be looked at: the type may have no others.
        let inside = self.cuts.iter().copied().filter(|cut| lowest < *cut && *cut < highest);
        let cuts: Vec<f64> = std::iter::once(lowest).chain(inside).chain([highest]).collect();
        let middles = cuts.windows(2).map(|pair| pair[0] + (pair[1] - pair[0]) / 2.0).collect();
        let holds = function.holds(&from_coordinates(middles, data_type)?)?;
        let mean = |&(lo, hi): &(f64, f64)| {
            let first = cuts.partition_point(|&cut| cut <= lo).saturating_sub(1);
            let mut sum = 0.0;
            for piece in (first..holds.len()).take_while(|&piece| cuts[piece] < hi).filter(|&piece| holds[piece]) {
                let (a, b) = (lo.max(cuts[piece]), hi.min(cuts[piece + 1]));
                let share = if (a, b) == (lo, hi) { 1.0 } else { (b - a) / (hi - lo) };
                sum += share * self.moment(a, b);
            }
            sum
        };
        Ok(ends.iter().map(mean).collect())
    }

    /// Returns the mean of the power of the column.
    fn moment(&self, a: f64, b: f64) -> f64 {
        match self.power {
            0 => 1.0,
            1 => a / 2.0 + b / 2.0,
            _ => (a * a + a * b + b * b) / 3.0,
        }
    }
}

/// Finds the constants that the column is compared with.
struct Constants<'a> {
    column: &'a str,
    data_type: &'a DataType,
    constants: &'a mut Vec<f64>,
}

impl Constants<'_> {
    /// Returns true if nothing else than comparisons is in it.
    fn condition(&mut self, expr: &Expr) -> bool {
        match expr {
            Expr::BinaryExpr(BinaryExpr { left, op: Operator::And | Operator::Or, right }) => {
                self.condition(left) && self.condition(right)
            }
            Expr::BinaryExpr(BinaryExpr { left, op, right }) if is_comparison(*op) => {
                self.compared(left, right) || self.compared(right, left)
            }
            Expr::Between(between) => {
                self.compared(&between.expr, &between.low) && self.compared(&between.expr, &between.high)
            }
            Expr::InList(list) => list.list.iter().all(|constant| self.compared(&list.expr, constant)),
            Expr::Not(inner)
            | Expr::IsTrue(inner)
            | Expr::IsFalse(inner)
            | Expr::IsUnknown(inner)
            | Expr::IsNotTrue(inner)
            | Expr::IsNotFalse(inner)
            | Expr::IsNotUnknown(inner) => self.condition(inner),
            Expr::IsNull(inner) | Expr::IsNotNull(inner) => {
                is_column(inner, self.column, self.data_type) || self.condition(inner)
            }
            Expr::Literal(..) => true,
            _ => false,
        }
    }

    fn compared(&mut self, column: &Expr, constant: &Expr) -> bool {
        let Expr::Literal(constant, _) = constant else { return false };
        if !is_column(column, self.column, self.data_type) {
            return false;
        }
        if constant.is_null() {
            return true;
        }
        let place = place(constant, self.data_type);
        self.constants.extend(place);
        place.is_some()
    }
}

fn is_comparison(op: Operator) -> bool {
    matches!(
        op,
        Operator::Eq
            | Operator::NotEq
            | Operator::Lt
            | Operator::LtEq
            | Operator::Gt
            | Operator::GtEq
            | Operator::IsDistinctFrom
            | Operator::IsNotDistinctFrom
    )
}

/// Returns true for the column, also in a type that keeps its values and order.
fn is_column(expr: &Expr, column: &str, data_type: &DataType) -> bool {
    match expr {
        Expr::Column(found) => found.name == column,
        Expr::Cast(cast) => keeps(data_type, cast.field.data_type()) && is_column(&cast.expr, column, data_type),
        _ => false,
    }
}

fn keeps(from: &DataType, to: &DataType) -> bool {
    let scale = |data_type: &DataType| match data_type {
        DataType::Decimal32(_, scale)
        | DataType::Decimal64(_, scale)
        | DataType::Decimal128(_, scale)
        | DataType::Decimal256(_, scale) => Some(*scale),
        _ => None,
    };
    match (scale(from), scale(to)) {
        (Some(from), Some(to)) => to >= from,
        (Some(_), None) => *to == DataType::Float64,
        (None, Some(_)) => from.is_integer(),
        (None, None) if from.is_integer() => matches!(to, DataType::Int64 | DataType::Float64),
        (None, None) if from.is_floating() => *to == DataType::Float64,
        (None, None) => from == to || matches!(to, DataType::Timestamp(..)),
    }
}

/// Returns the place of a constant among the values of the column.
fn place(constant: &ScalarValue, data_type: &DataType) -> Option<f64> {
    let constant = if data_type.is_temporal() { constant.cast_to(data_type).ok()? } else { constant.clone() };
    let places = coordinates(&constant.to_array().ok()?).ok()?;
    places.iter().next().flatten()
}
