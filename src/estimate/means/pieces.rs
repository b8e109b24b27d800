//! Means over measured intervals when nothing but comparisons with constants matters: between two constants that stand next
//! to each other a condition holds everywhere or nowhere.

use datafusion::arrow::datatypes::DataType;
use datafusion::common::{Result, ScalarValue};
use datafusion::logical_expr::{BinaryExpr, Expr, Operator};

use crate::estimate::factor::{Compiled, Factor};
use crate::estimate::scale::{Scale, coordinates, from_coordinates};

/// Where a function is zero, and where it is a power of the column.
#[derive(Debug)]
pub(crate) struct Pieces {
    /// Ends of the pieces, ascending. The first piece has no beginning and the last no end.
    cuts: Vec<f64>,
    /// Whether the conditions hold in each piece.
    holds: Vec<bool>,
    /// Integral from the first cut to each.
    integrals: Vec<f64>,
    /// How often the column itself is a factor: 0, 1 or 2.
    power: u8,
}

impl Pieces {
    /// `None` if the function has other things in it than comparisons of the column with constants, and the column itself.
    pub(super) fn new(
        factor: &Factor,
        column: &str,
        data_type: &DataType,
        compiled: &Compiled,
    ) -> Result<Option<Self>> {
        let mut constants = Vec::new();
        let comparisons = factor.conditions.iter().all(|condition| {
            let mut reader = Reader { column, data_type, constants: &mut constants };
            reader.condition(condition)
        });
        if !comparisons
            || factor.values.len() > 2
            || !factor.values.iter().all(|value| is_column(value, column, data_type))
        {
            return Ok(None);
        }
        // Between whole numbers nothing changes but at the halves.
        let mut cuts: Vec<f64> = match Scale::of(data_type) {
            Scale::Steps => constants.iter().flat_map(|c| [-0.5, 0.5, 1.5].map(|d| c.floor() + d)).collect(),
            _ => constants,
        };
        cuts.retain(|cut| cut.is_finite());
        cuts.sort_by(f64::total_cmp);
        cuts.dedup();
        if cuts.is_empty() {
            cuts.push(0.0);
        }
        let outside = |cut: f64| 1.0_f64.max(cut.abs() * 1e-3);
        let (first, last) = (cuts[0], cuts[cuts.len() - 1]);
        let between = cuts.windows(2).map(|pair| pair[0] + (pair[1] - pair[0]) / 2.0);
        let inside = std::iter::once(first - outside(first)).chain(between).chain([last + outside(last)]);
        let holds = compiled.holds(&from_coordinates(inside.collect(), data_type)?)?;
        let mut pieces = Self { cuts, holds, integrals: vec![0.0], power: factor.values.len() as u8 };
        for i in 1..pieces.cuts.len() {
            let piece = if pieces.holds[i] { pieces.moment(pieces.cuts[i - 1], pieces.cuts[i]) } else { 0.0 };
            pieces.integrals.push(pieces.integrals[i - 1] + piece);
        }
        Ok(Some(pieces))
    }

    pub(super) fn means(&self, ends: &[(f64, f64)]) -> Vec<f64> {
        ends.iter().map(|&(lo, hi)| (self.integral(hi) - self.integral(lo)) / (hi - lo)).collect()
    }

    /// From the first cut to `x`.
    fn integral(&self, x: f64) -> f64 {
        let piece = self.cuts.partition_point(|&cut| cut <= x);
        let from = piece.saturating_sub(1);
        match self.holds[piece] {
            true => self.integrals[from] + self.moment(self.cuts[from], x),
            false => self.integrals[from],
        }
    }

    /// Integral of the power of the column.
    fn moment(&self, a: f64, b: f64) -> f64 {
        let length = b - a;
        match self.power {
            0 => length,
            1 => length * (a / 2.0 + b / 2.0),
            _ => length * (a * a + a * b + b * b) / 3.0,
        }
    }
}

/// Finds the constants that the column is compared with.
struct Reader<'a> {
    column: &'a str,
    data_type: &'a DataType,
    constants: &'a mut Vec<f64>,
}

impl Reader<'_> {
    /// Whether nothing else than comparisons is in it.
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

/// The column, or the column in a type that has all of its values in the same order.
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

/// Where a constant lies among the values of the column.
fn place(constant: &ScalarValue, data_type: &DataType) -> Option<f64> {
    let constant = if data_type.is_temporal() { constant.cast_to(data_type).ok()? } else { constant.clone() };
    let places = coordinates(&constant.to_array().ok()?).ok()?;
    places.iter().next().flatten()
}
