//! Synthetic census microdata: any number of rows, the same for a seed on every machine.
//!
//! The attributes have the domains of the census tables that the papers use (m-invariance, Section 5): age 79 values, gender
//! 2, education 17, birthplace 57, occupation 50, income 50. They are skewed and depend on each other: education on age,
//! occupation on education and gender, income on occupation and age. No occupation and no income makes up a tenth of the
//! rows, so tables of some thousand rows or more are 10-eligible.

use std::sync::Arc;

use datafusion::arrow::array::{ArrayRef, Int32Array, Int64Array, RecordBatch};
use datafusion::arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;

use crate::error::Result;

/// Rows of a block. Each block has a generator of its own, so blocks can be made in any order.
pub const BLOCK: usize = 8192;

/// A synthetic census.
#[derive(Debug, Clone, Copy)]
pub struct Census {
    rows: u64,
    seed: u64,
}

/// Returns the schema: `person_id`, `age` (15 to 93), `gender` (1, 2), `education` (1 to 17), `birthplace` (1 to
/// 57), `occupation` (1 to 50) and `income` (class 1 to 50).
pub fn schema() -> SchemaRef {
    let names = ["age", "gender", "education", "birthplace", "occupation", "income"];
    let attributes = names.into_iter().map(|name| Field::new(name, DataType::Int32, false));
    let id = Field::new("person_id", DataType::Int64, false);
    Arc::new(Schema::new(std::iter::once(id).chain(attributes).collect::<Vec<_>>()))
}

impl Census {
    /// Returns a census of this many rows.
    pub fn new(rows: u64, seed: u64) -> Self {
        Self { rows, seed }
    }

    /// Returns the rows `block * BLOCK..` of the census.
    ///
    /// # Errors
    /// When Arrow refuses the batch, which is a bug.
    pub fn block(&self, block: u64) -> Result<RecordBatch> {
        let first = block * BLOCK as u64;
        let rows = (self.rows - first).min(BLOCK as u64);
        let mut rng = ChaCha8Rng::seed_from_u64(self.seed);
        rng.set_stream(block);
        let mut columns: [Vec<i32>; 6] = std::array::from_fn(|_| Vec::with_capacity(rows as usize));
        for _ in 0..rows {
            for (column, value) in columns.iter_mut().zip(person(&mut rng)) {
                column.push(value);
            }
        }
        let ids = Int64Array::from_iter_values((first..first + rows).map(|row| row as i64 + 1));
        let mut arrays: Vec<ArrayRef> = vec![Arc::new(ids)];
        arrays.extend(columns.map(|column| Arc::new(Int32Array::from(column)) as ArrayRef));
        Ok(RecordBatch::try_new(schema(), arrays)?)
    }
}

/// Draws a person: age, gender, education, birthplace, occupation, income.
fn person(rng: &mut impl Rng) -> [i32; 6] {
    let mut unit = || rng.random::<f64>();
    // Sums of three uniform numbers: bell-shaped around 0, within -1..1.
    let age = (unit() * 0.65 + unit() * 0.35).powf(1.25);
    let gender = unit() < 0.517;
    let talent = (unit() + unit() + unit()) / 1.5 - 1.0;
    // The old had less schooling, the youngest have not finished theirs.
    let schooling = 0.55 + 0.45 * talent - 0.25 * age - if age < 0.06 { 0.2 } else { 0.0 };
    let birthplace = unit().powf(1.9);
    let bend = (unit() + unit() + unit()) / 1.5 - 1.0;
    let side = if gender { 0.09 } else { -0.09 };
    let occupation = schooling * 0.7 + side + bend * 0.45 + 0.15;
    let luck = (unit() + unit() + unit()) / 1.5 - 1.0;
    let career = 1.0 - (age - 0.5).powi(2) * 2.0;
    let income = 0.45 * reflect(occupation) + 0.25 * career + 0.4 * luck + 0.1;
    [
        15 + class(age, 79),
        1 + i32::from(gender),
        1 + class(reflect(schooling), 17),
        1 + class(birthplace, 57),
        1 + class(reflect(occupation), 50),
        1 + class(reflect(income), 50),
    ]
}

/// Reflects a number outside of 0..1 into it. So the ends do not pile up.
fn reflect(x: f64) -> f64 {
    let x = x.abs() % 2.0;
    if x > 1.0 { 2.0 - x } else { x }
}

fn class(x: f64, classes: i32) -> i32 {
    ((x * f64::from(classes)) as i32).clamp(0, classes - 1)
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use datafusion::arrow::array::AsArray;
    use datafusion::arrow::datatypes::Int32Type;

    use super::*;

    #[test]
    fn domains_are_as_promised_and_skewed_but_eligible() {
        let census = Census::new(100_000, 1);
        let blocks: Vec<_> = (0..13).map(|block| census.block(block).unwrap()).collect();
        assert_eq!(blocks.iter().map(RecordBatch::num_rows).sum::<usize>(), 100_000);
        for (column, distinct, greatest) in [
            ("age", 79, 0.05),
            ("gender", 2, 0.6),
            ("education", 17, 0.2),
            ("birthplace", 57, 0.3),
            ("occupation", 50, 0.06),
            ("income", 50, 0.06),
        ] {
            let mut counts: HashMap<i32, usize> = HashMap::new();
            for block in &blocks {
                for value in block.column_by_name(column).unwrap().as_primitive::<Int32Type>().values() {
                    *counts.entry(*value).or_default() += 1;
                }
            }
            assert_eq!(counts.len(), distinct, "{column}");
            let (most, least) = (*counts.values().max().unwrap(), *counts.values().min().unwrap());
            assert!((most as f64) < greatest * 100_000.0, "{column}: {most}");
            assert!(column == "gender" || most > 3 * least, "{column} is not skewed");
        }
    }

    #[test]
    fn a_prefix_of_a_larger_census_is_the_same() {
        let small = Census::new(100, 7).block(0).unwrap();
        let large = Census::new(1_000_000, 7).block(0).unwrap();
        assert_eq!(small, large.slice(0, 100));
    }
}
