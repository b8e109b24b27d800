//! A function of one column, as an expression that is evaluated on values of it.

use std::sync::Arc;

use datafusion::arrow::array::{Array, ArrayRef, AsArray, BooleanArray, Float64Array, RecordBatch};
use datafusion::arrow::compute::{cast, filter};
use datafusion::arrow::datatypes::{DataType, Field, Float64Type, Schema, SchemaRef};
use datafusion::common::{DFSchema, Result};
use datafusion::execution::context::ExecutionProps;
use datafusion::logical_expr::Expr;
use datafusion::logical_expr::physical_planning_context::PhysicalPlanningContext;
use datafusion::physical_expr::{PhysicalExpr, create_physical_expr};

/// Product of values that is 0 unless all conditions are true. NULL counts as 0. All of them are expressions over
/// one column, whose name has no qualifier in them.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub(crate) struct Factor {
    pub conditions: Vec<Expr>,
    pub values: Vec<Expr>,
}

impl Factor {
    /// Returns the factor that is 1 where `condition` is true, else 0.
    pub(crate) fn condition(condition: Expr) -> Self {
        Self { conditions: vec![condition], values: Vec::new() }
    }

    /// Returns a numeric expression.
    pub(crate) fn value(value: Expr) -> Self {
        Self { conditions: Vec::new(), values: vec![value] }
    }

    /// Returns the product of two functions of the column.
    pub(crate) fn times(mut self, other: &Self) -> Self {
        for condition in &other.conditions {
            if !self.conditions.contains(condition) {
                self.conditions.push(condition.clone());
            }
        }
        self.values.extend(other.values.iter().cloned());
        self
    }

    /// Returns the expressions in it.
    pub(crate) fn expressions(&self) -> impl Iterator<Item = &Expr> {
        self.conditions.iter().chain(&self.values)
    }

    /// Returns the same with other expressions.
    pub(crate) fn map(&self, mut f: impl FnMut(Expr) -> Result<Expr>) -> Result<Self> {
        let mut all = |expressions: &[Expr]| expressions.iter().cloned().map(&mut f).collect::<Result<Vec<_>>>();
        Ok(Self { conditions: all(&self.conditions)?, values: all(&self.values)? })
    }
}

/// A function that is ready to be evaluated.
#[derive(Debug)]
pub(crate) struct Compiled {
    conditions: Vec<Arc<dyn PhysicalExpr>>,
    values: Vec<Arc<dyn PhysicalExpr>>,
    schema: SchemaRef,
}

impl Compiled {
    /// Fails when the engine cannot evaluate an expression.
    pub(crate) fn new(factor: &Factor, column: &str, data_type: &DataType) -> Result<Self> {
        let schema = Arc::new(Schema::new(vec![Field::new(column, data_type.clone(), true)]));
        let columns = DFSchema::try_from(Arc::clone(&schema))?;
        let physical = |expr: &Expr| {
            create_physical_expr(expr, &columns, &ExecutionProps::new(), &PhysicalPlanningContext::default())
        };
        Ok(Self {
            conditions: factor.conditions.iter().map(physical).collect::<Result<_>>()?,
            values: factor.values.iter().map(physical).collect::<Result<_>>()?,
            schema,
        })
    }

    /// Returns for each of these values of the column whether all conditions are true.
    /// Fails when an expression fails.
    pub(crate) fn holds(&self, column: &ArrayRef) -> Result<Vec<bool>> {
        let mut all = vec![true; column.len()];
        let batch = RecordBatch::try_new(SchemaRef::clone(&self.schema), vec![ArrayRef::clone(column)])?;
        for condition in &self.conditions {
            let result = condition.evaluate(&batch)?.into_array(column.len())?;
            let result = result.as_boolean();
            for (i, all) in all.iter_mut().enumerate() {
                *all &= result.is_valid(i) && result.value(i);
            }
        }
        Ok(all)
    }

    /// Returns the function of each of these values of the column. What the conditions exclude is not evaluated further.
    /// Fails when an expression fails.
    pub(crate) fn evaluate(&self, column: &ArrayRef) -> Result<Vec<f64>> {
        let holds = self.holds(column)?;
        if self.values.is_empty() {
            return Ok(holds.into_iter().map(|holds| f64::from(u8::from(holds))).collect());
        }
        let places: Vec<usize> = (0..holds.len()).filter(|&i| holds[i]).collect();
        let held = filter(column, &BooleanArray::from(holds))?;
        let batch = RecordBatch::try_new(SchemaRef::clone(&self.schema), vec![held])?;
        let mut products = vec![1.0; places.len()];
        for value in &self.values {
            let result = numbers(&value.evaluate(&batch)?.into_array(places.len())?)?;
            products.iter_mut().zip(result.iter()).for_each(|(product, value)| *product *= value.unwrap_or(0.0));
        }
        let mut results = vec![0.0; column.len()];
        places.into_iter().zip(products).for_each(|(place, product)| results[place] = product);
        Ok(results)
    }
}

fn numbers(array: &ArrayRef) -> Result<Float64Array> {
    Ok(cast(array, &DataType::Float64)?.as_primitive::<Float64Type>().clone())
}
