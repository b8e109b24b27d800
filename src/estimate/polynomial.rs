//! Conditions and values as sums of products of functions of one column each. Columns of a row are independent, so the
//! expectation of such a product is the product of the expectations.

use std::collections::{BTreeMap, BTreeSet};

use datafusion::arrow::datatypes::DataType;
use datafusion::common::tree_node::{TreeNode, TreeNodeRecursion};
use datafusion::common::{DFSchema, Result, ScalarValue};
use datafusion::logical_expr::expr::Case;
use datafusion::logical_expr::{BinaryExpr, Expr, ExprSchemable, Operator, lit};

use super::ESTIMATE;
use super::columns::{Form, Released};
use super::factor::Factor;
use super::number::number_of;
use crate::error::refusal;

/// Most terms of a sum.
const MOST_TERMS: usize = 128;

/// A product.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Term {
    pub coefficient: f64,
    /// Of columns that are released as they are: DOUBLE, never NULL.
    pub exact: Vec<Expr>,
    /// Of the others, by the name of the column.
    pub shares: BTreeMap<String, Factor>,
}

/// A sum of products.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Polynomial(pub Vec<Term>);

impl Polynomial {
    fn constant(coefficient: f64) -> Self {
        match coefficient {
            0.0 => Self(Vec::new()),
            _ => Self(vec![Term { coefficient, exact: Vec::new(), shares: BTreeMap::new() }]),
        }
    }

    /// Returns the polynomial that is always 1.
    pub(crate) fn one() -> Self {
        Self::constant(1.0)
    }

    /// Returns true if it is 1 whatever the row.
    pub(crate) fn is_one(&self) -> bool {
        *self == Self::one()
    }

    fn exact(expr: Expr) -> Self {
        Self(vec![Term { coefficient: 1.0, exact: vec![expr], shares: BTreeMap::new() }])
    }

    fn share(column: String, factor: Factor) -> Self {
        Self(vec![Term { coefficient: 1.0, exact: Vec::new(), shares: BTreeMap::from([(column, factor)]) }])
    }

    fn plus(mut self, other: Self) -> Result<Self> {
        self.0.extend(other.0);
        self.bounded()
    }

    fn minus(mut self, other: Self) -> Result<Self> {
        self.0.extend(other.0.into_iter().map(|term| Term { coefficient: -term.coefficient, ..term }));
        self.bounded()
    }

    /// Returns the product of both.
    /// Fails when it has too many terms.
    pub(crate) fn times(&self, other: &Self) -> Result<Self> {
        if self.0.len().saturating_mul(other.0.len()) > MOST_TERMS {
            return too_many();
        }
        let terms = self.0.iter().flat_map(|a| other.0.iter().map(|b| a.times(b)));
        Ok(Self(terms.collect()))
    }

    fn bounded(self) -> Result<Self> {
        if self.0.len() > MOST_TERMS { too_many() } else { Ok(self) }
    }
}

impl Term {
    fn times(&self, other: &Self) -> Self {
        let mut product = self.clone();
        product.coefficient *= other.coefficient;
        product.exact.extend(other.exact.iter().cloned());
        for (column, factor) in &other.shares {
            let before = product.shares.remove(column).unwrap_or_default();
            product.shares.insert(column.clone(), before.times(factor));
        }
        product
    }
}

fn too_many<T>() -> Result<T> {
    Err(refusal!(
        ESTIMATE,
        "the conditions combine generalized columns in too many ways; ask for the parts one by one, or write OR over \
         conditions on the same column"
    ))
}

/// Columns that an expression is about.
#[derive(Debug, Default)]
struct Touched {
    exact: bool,
    uncertain: BTreeSet<String>,
}

impl Touched {
    /// Returns true for a single function of one column, or of exact columns. Exact columns are released as they are.
    fn is_simple(&self) -> bool {
        self.uncertain.is_empty() || self.uncertain.len() == 1 && !self.exact
    }
}

/// Turns expressions over the original columns into polynomials.
#[derive(Debug)]
pub(crate) struct Translator<'a> {
    /// The release.
    pub released: &'a Released,
    /// The original table, columns without qualifiers.
    pub schema: &'a DFSchema,
    /// Columns that are taken as if they were released as they are.
    pub spread: &'a BTreeSet<String>,
}

/// Question about a condition: whether it `is` true (or false), or is not.
#[derive(Debug, Clone, Copy)]
struct TruthTest {
    is: bool,
    answer: bool,
}

impl TruthTest {
    const TRUE: Self = Self { is: true, answer: true };
    const NOT_TRUE: Self = Self { is: true, answer: false };

    /// Returns the test as a condition that is true or not; NULL is as good as false.
    fn about(self, expr: Expr) -> Expr {
        match (self.is, self.answer) {
            (true, true) => expr,
            (false, true) => Expr::Not(Box::new(expr)),
            (true, false) => expr.is_not_true(),
            (false, false) => expr.is_not_false(),
        }
    }
}

impl Translator<'_> {
    /// Returns true if the expression needs nothing but columns that are released as they are.
    /// Fails when it has columns that are not in the release.
    pub(crate) fn is_exact(&self, expr: &Expr) -> Result<bool> {
        Ok(self.touched(expr)?.uncertain.is_empty())
    }

    /// Returns true if the expression has a column of values replaced at random.
    pub(crate) fn is_replaced(&self, expr: &Expr) -> bool {
        expr.column_refs().iter().any(|column| self.released.is_replaced(&column.name))
    }

    /// Finds the generalized columns in the expression.
    /// Fails when it has columns that are not in the release.
    pub(crate) fn uncertain(&self, expr: &Expr) -> Result<BTreeSet<String>> {
        Ok(self.touched(expr)?.uncertain)
    }

    /// Returns the polynomial that is 1 where the condition is true, else 0.
    /// Fails when it cannot be split into conditions on one generalized column each.
    pub(crate) fn truth(&self, condition: &Expr) -> Result<Polynomial> {
        self.event(condition, TruthTest::TRUE)
    }

    /// Returns the value, where NULL counts as 0.
    /// Fails when it cannot be split into functions of one generalized column each.
    pub(crate) fn value(&self, expr: &Expr) -> Result<Polynomial> {
        if let Expr::Literal(value, _) = expr {
            return match value.cast_to(&DataType::Float64)? {
                ScalarValue::Float64(Some(value)) if value.is_finite() => Ok(Polynomial::constant(value)),
                _ => Ok(Polynomial::constant(0.0)),
            };
        }
        let touched = self.touched(expr)?;
        if touched.is_simple() {
            return Ok(match self.alone(expr, touched)? {
                Some(column) => Polynomial::share(column, Factor::value(expr.clone())),
                None => Polynomial::exact(number_of(expr.clone())),
            });
        }
        match expr {
            Expr::Alias(alias) => self.value(&alias.expr),
            Expr::Negative(inner) => Polynomial::constant(-1.0).times(&self.value(inner)?),
            Expr::Cast(to) if self.is_harmless(&to.expr, to.field.data_type())? => self.value(&to.expr),
            Expr::Case(case) => self.case(case, |then| self.value(then)),
            Expr::BinaryExpr(BinaryExpr { left, op, right }) if self.are_numbers(&[left, right])? => match op {
                Operator::Plus | Operator::Minus => {
                    let a = self.value(left)?.times(&self.known(right)?)?;
                    let b = self.value(right)?.times(&self.known(left)?)?;
                    if *op == Operator::Plus { a.plus(b) } else { a.minus(b) }
                }
                Operator::Multiply => self.value(left)?.times(&self.value(right)?),
                Operator::Divide if expr.get_type(self.schema)? == DataType::Float64 => {
                    let inverse = lit(1.0) / right.as_ref().clone();
                    self.value(left)?.times(&self.value(&inverse)?)
                }
                _ => refuse_mixture(&touched),
            },
            _ => refuse_mixture(&touched),
        }
    }

    /// Returns the polynomial that is 1 where the value is not NULL, else 0.
    /// Fails when it cannot be split into functions of one generalized column each.
    pub(crate) fn known(&self, expr: &Expr) -> Result<Polynomial> {
        if let Expr::Literal(value, _) = expr {
            return Ok(Polynomial::constant(if value.is_null() { 0.0 } else { 1.0 }));
        }
        let touched = self.touched(expr)?;
        if touched.is_simple() {
            return self.leaf(expr.clone().is_not_null(), touched);
        }
        match expr {
            Expr::Alias(alias) => self.known(&alias.expr),
            Expr::Negative(inner) => self.known(inner),
            Expr::Cast(to) => self.known(&to.expr),
            Expr::Case(case) => self.case(case, |then| self.known(then)),
            Expr::BinaryExpr(BinaryExpr {
                left,
                op: Operator::Plus | Operator::Minus | Operator::Multiply | Operator::Divide,
                right,
            }) => self.known(left)?.times(&self.known(right)?),
            _ => refuse_mixture(&touched),
        }
    }

    fn event(&self, expr: &Expr, test: TruthTest) -> Result<Polynomial> {
        let touched = self.touched(expr)?;
        if touched.is_simple() {
            return self.leaf(test.about(expr.clone()), touched);
        }
        let TruthTest { is, answer } = test;
        match expr {
            Expr::Alias(alias) => self.event(&alias.expr, test),
            Expr::Not(inner) => self.event(inner, TruthTest { is: !is, answer }),
            Expr::IsTrue(inner) => self.event(inner, TruthTest { is: true, answer: answer == is }),
            Expr::IsNotTrue(inner) => self.event(inner, TruthTest { is: true, answer: answer != is }),
            Expr::IsFalse(inner) => self.event(inner, TruthTest { is: false, answer: answer == is }),
            Expr::IsNotFalse(inner) => self.event(inner, TruthTest { is: false, answer: answer != is }),
            Expr::Case(case) => self.case(case, |then| self.event(then, test)),
            Expr::BinaryExpr(BinaryExpr { op: op @ (Operator::And | Operator::Or), .. }) => {
                let mut parts = Vec::new();
                operands(expr, *op, &mut parts);
                // Not (a and b) is not a or not b, in the logic of three values, too.
                let all = (*op == Operator::And) == (is == answer);
                if all { self.all_of(&parts, test) } else { self.any_of(&parts, test) }
            }
            _ => refuse_mixture(&touched),
        }
    }

    fn all_of(&self, parts: &[&Expr], test: TruthTest) -> Result<Polynomial> {
        let mut all = Polynomial::one();
        for part in parts {
            all = all.times(&self.event(part, test)?)?;
        }
        Ok(all)
    }

    fn any_of(&self, parts: &[&Expr], test: TruthTest) -> Result<Polynomial> {
        // Conditions on the same column are one condition.
        let mut leaves: BTreeMap<Option<String>, Expr> = BTreeMap::new();
        let mut events = Vec::new();
        for part in parts {
            let touched = self.touched(part)?;
            if !touched.is_simple() {
                events.push(self.event(part, test)?);
                continue;
            }
            let condition = test.about((*part).clone());
            let column = touched.uncertain.into_iter().next();
            let any = match leaves.remove(&column) {
                Some(before) => before.or(condition),
                None => condition,
            };
            leaves.insert(column, any);
        }
        for condition in leaves.into_values() {
            let touched = self.touched(&condition)?;
            events.push(self.leaf(condition, touched)?);
        }
        let mut any = Polynomial::constant(0.0);
        for event in events {
            let both = any.times(&event)?;
            any = any.plus(event)?.minus(both)?;
        }
        Ok(any)
    }

    /// Returns a condition on one column.
    fn leaf(&self, condition: Expr, touched: Touched) -> Result<Polynomial> {
        if let Expr::Literal(ScalarValue::Boolean(value), _) = &condition {
            return Ok(Polynomial::constant(if *value == Some(true) { 1.0 } else { 0.0 }));
        }
        Ok(match self.alone(&condition, touched)? {
            Some(column) => Polynomial::share(column, Factor::condition(condition)),
            None => {
                refuse_membership(&condition)?;
                Polynomial::exact(number_of(condition))
            }
        })
    }

    /// Translates a CASE branch by branch.
    fn case(&self, case: &Case, branch: impl Fn(&Expr) -> Result<Polynomial>) -> Result<Polynomial> {
        let mut before = Polynomial::one();
        let mut sum = Polynomial::constant(0.0);
        for (condition, then) in &case.when_then_expr {
            let condition = match &case.expr {
                Some(value) => value.as_ref().clone().eq(condition.as_ref().clone()),
                None => condition.as_ref().clone(),
            };
            let chosen = before.times(&self.event(&condition, TruthTest::TRUE)?)?;
            sum = sum.plus(chosen.times(&branch(then)?)?)?;
            before = before.times(&self.event(&condition, TruthTest::NOT_TRUE)?)?;
        }
        let otherwise = match &case.else_expr {
            Some(expr) => branch(expr)?,
            None => branch(&lit(ScalarValue::Null))?,
        };
        sum.plus(before.times(&otherwise)?)
    }

    /// Returns true if all are numbers: dates, for one, can be subtracted, but are none.
    fn are_numbers(&self, exprs: &[&Expr]) -> Result<bool> {
        for expr in exprs {
            if !expr.get_type(self.schema)?.is_numeric() {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Returns true if a cast changes no value.
    fn is_harmless(&self, expr: &Expr, to: &DataType) -> Result<bool> {
        let from = expr.get_type(self.schema)?;
        Ok(match to {
            DataType::Float64 => from.is_numeric(),
            DataType::Int64 => from.is_integer(),
            to if to.is_decimal() => from.is_integer(),
            _ => false,
        })
    }

    fn touched(&self, expr: &Expr) -> Result<Touched> {
        let mut touched = Touched::default();
        for column in expr.column_refs() {
            let name = &column.name;
            match self.released.column(name) {
                None => {
                    return Err(refusal!(
                        ESTIMATE,
                        "column {name} was not published; there are {}",
                        self.released.columns.iter().map(|column| column.name()).collect::<Vec<_>>().join(", ")
                    ));
                }
                Some(column) if column.form == Form::Exact || self.spread.contains(name) => touched.exact = true,
                Some(_) => {
                    touched.uncertain.insert(name.clone());
                }
            }
        }
        if expr.is_volatile() {
            return Err(refusal!(
                ESTIMATE,
                "volatile functions such as random() would be drawn once for a row that stands for many values; leave \
                 them out"
            ));
        }
        Ok(touched)
    }

    /// Returns the only generalized column of a simple expression. The expression is evaluated on the column's values alone.
    fn alone(&self, expr: &Expr, touched: Touched) -> Result<Option<String>> {
        let Some(column) = touched.uncertain.into_iter().next() else { return Ok(None) };
        let (mut subquery, mut outer) = (false, false);
        expr.apply(|expr| {
            subquery |= matches!(
                expr,
                Expr::ScalarSubquery(_) | Expr::InSubquery(_) | Expr::Exists(_) | Expr::SetComparison(_)
            );
            outer |= matches!(expr, Expr::OuterReferenceColumn(..));
            Ok(TreeNodeRecursion::Continue)
        })?;
        if !subquery && !outer {
            return Ok(Some(column));
        }
        let what = if subquery { "a subquery" } else { "a column of the outer query" };
        Err(refusal!(
            ESTIMATE,
            "a condition on the generalized column {column} can only compare it with constants, not with {what}; find \
             out the value first"
        ))
    }
}

/// Refuses IN (SELECT ..) and EXISTS, which are joins to the engine: only filters can be joins.
fn refuse_membership(condition: &Expr) -> Result<()> {
    if condition.exists(|expr| Ok(matches!(expr, Expr::InSubquery(_) | Expr::Exists(_) | Expr::SetComparison(_))))? {
        return Err(refusal!(
            ESTIMATE,
            "IN (SELECT ..) and EXISTS must be conditions of their own, combined with others by AND; find out the values \
             first"
        ));
    }
    Ok(())
}

fn operands<'a>(expr: &'a Expr, op: Operator, parts: &mut Vec<&'a Expr>) {
    match expr {
        Expr::BinaryExpr(BinaryExpr { left, op: found, right }) if *found == op => {
            operands(left, op, parts);
            operands(right, op, parts);
        }
        expr => parts.push(expr),
    }
}

fn refuse_mixture<T>(touched: &Touched) -> Result<T> {
    let names: Vec<&str> = touched.uncertain.iter().map(String::as_str).collect();
    if let [column] = names[..] {
        return Err(refusal!(
            ESTIMATE,
            "an expression mixes the generalized column {column} with another column in a way that cannot be taken \
             apart; compare {column} with constants, and combine conditions with AND, OR, NOT and CASE"
        ));
    }
    Err(refusal!(
        ESTIMATE,
        "an expression mixes the generalized columns {} in a way that cannot be taken apart, because a release does \
         not tell how they go together within a group; use each of them in conditions or terms of its own, combined with AND, \
         OR, NOT, CASE, + or *",
        names.join(" and ")
    ))
}
