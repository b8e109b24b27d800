//! The operator that looks at a table before it is anonymized.
//!
//! ```text
//! roles.rs    which role a column could have, and why
//! names.rs    what its name says
//! shapes.rs   types that cannot be published, and what to put in their place
//! remarks.rs  spellings of one value, and values of no answer
//! ```

mod names;
mod remarks;
mod roles;
mod shapes;

use std::sync::Arc;

use async_trait::async_trait;
use datafusion::arrow::array::{Array, ArrayRef, Float64Array, Int64Array, RecordBatch, StringArray};
use datafusion::arrow::datatypes::{DataType, Field, FieldRef, Schema, SchemaRef};
use datafusion::common::{Result, internal_err};
use datafusion::execution::SendableRecordBatchStream;

use super::computation::{Computation, Resources};
use super::notices::Notices;
use crate::methods::Monitor;
use crate::microdata::{ColumnEncoder, ORDER_KEY, Role, TextOrder, published_type};
use crate::risk::{Coded, Division, SMALL, division, singling_out};
use remarks::{BYTES_PER_TEXT, Counted};
pub(crate) use roles::SEVERAL_ROWS;
use roles::Table;
pub(crate) use shapes::unpublishable;

const FUNCTION: &str = "profile";

#[derive(Debug, Clone)]
pub(crate) struct ProfiledColumn {
    pub field: FieldRef,
    /// The role that the call gives it; else one is suggested.
    pub role: Option<Role>,
}

/// Looks at each column, at sets of columns, and at the table as it is. The input has the columns in this order.
#[derive(Debug, Clone)]
pub(crate) struct Profile {
    pub columns: Vec<ProfiledColumn>,
}

impl Profile {
    /// Returns the schema. It has a row per column (`kind` `column`), rows for the sets of two and three quasi-identifiers that
    /// single out most people (`set`), and a row for all quasi-identifiers together (`table`). Shares are of rows, 0 to 1.
    fn schema() -> SchemaRef {
        let text = |name: &str, null: bool| Field::new(name, DataType::Utf8, null);
        Arc::new(Schema::new(vec![
            text("kind", false),
            text("columns", false),
            text("type", true),
            // NULL of what cannot be published.
            Field::new("distinct", DataType::Int64, true),
            Field::new("nulls", DataType::Int64, true),
            // Share of the rows that are alone with their values.
            Field::new("unique_share", DataType::Float64, true),
            // Share of the rows that share their values with fewer than four others.
            Field::new("at_risk", DataType::Float64, true),
            // The largest m (or l) that a release with this sensitive column can have.
            Field::new("largest_m", DataType::Int64, true),
            text("role", true),
            text("why", true),
            // What the values of a column may hide, without the values.
            text("remarks", true),
        ]))
    }
}

#[async_trait]
impl Computation for Profile {
    fn names(&self) -> [&'static str; 2] {
        ["ProfileExec", FUNCTION]
    }

    fn parameters(&self) -> String {
        let names: Vec<&str> = self.columns.iter().map(|column| column.field.name().as_str()).collect();
        format!("columns=[{}]", names.join(", "))
    }

    fn schema(&self) -> SchemaRef {
        Self::schema()
    }

    async fn compute(&self, inputs: Vec<SendableRecordBatchStream>, resources: &Resources) -> Result<()> {
        let Some(input) = inputs.into_iter().next() else { return internal_err!("{FUNCTION}: no input") };
        let of = |column: &ProfiledColumn| {
            let publishable = published_type(column.field.data_type()).is_some();
            publishable.then(|| ColumnEncoder::try_new(Arc::clone(&column.field))).transpose()
        };
        let encoders = self.columns.iter().map(of).collect::<crate::error::Result<Vec<_>>>();
        let mut encoders = encoders.map_err(|error| error.in_function(FUNCTION))?;
        let mut coded = vec![Coded::default(); encoders.len()];
        let (mut nulls, mut total) = (vec![0_usize; encoders.len()], 0);
        let mut groups = Vec::new();
        let appended = |batch: &RecordBatch| {
            total += batch.num_rows();
            for (i, array) in batch.columns().iter().enumerate() {
                nulls[i] += array.logical_null_count();
                let Some(encoder) = &mut encoders[i] else { continue };
                encoder.intern(array, &mut groups)?;
                coded[i].codes.extend(groups.iter().map(|&group| group as u32));
                coded[i].distinct = groups.iter().map(|group| group + 1).max().unwrap_or(0).max(coded[i].distinct);
            }
            let codes: usize = coded.iter().map(|column| column.codes.capacity() * size_of::<u32>()).sum();
            let most = coded.iter().map(|column| column.distinct).max().unwrap_or(0);
            // Dividing takes a row number and a group for each row, on every thread.
            let work = total * 16 * rayon::current_num_threads() + most * BYTES_PER_TEXT;
            Ok(encoders.iter().flatten().map(ColumnEncoder::size).sum::<usize>() * 2 + codes + work)
        };
        resources.read(input, appended).await?;
        let notices = Notices::of(&resources.context);
        let columns = self.columns.clone();
        let rows = resources
            .off_thread(move |monitor| {
                let remarks = encoders.into_iter().zip(&columns).zip(&coded).map(|((encoder, column), coded)| {
                    encoder.map_or(Ok(None), |encoder| remarks(encoder, column, coded, &notices))
                });
                let remarks = remarks.collect::<crate::error::Result<Vec<_>>>()?;
                described(&columns, &coded, &nulls, remarks, total, monitor)
            })
            .await?;
        resources.send(rows).await;
        Ok(())
    }
}

/// Returns what there is to remark of the values of a column. A notice tells of texts in another order than what they stand for.
fn remarks(
    encoder: ColumnEncoder,
    column: &ProfiledColumn,
    coded: &Coded,
    notices: &Notices,
) -> crate::error::Result<Option<String>> {
    let mut rows = vec![0; coded.distinct];
    for &code in &coded.codes {
        rows[code as usize] += 1;
    }
    let values = encoder.into_values()?;
    let field = &column.field;
    let ordered = field.metadata().contains_key(ORDER_KEY) || column.role.is_some_and(|role| role != Role::Quasi);
    let mut strays = None;
    if let Some(order) = TextOrder::of(&values).filter(|_| !ordered && field.data_type().is_string()) {
        notices.tell(&order.notice(FUNCTION, field.name()));
        strays = order.remark(field.name());
    }
    let mut remarks = Counted { values: &values, rows: &rows }.remarks(field.name())?;
    remarks.extend(strays);
    Ok((!remarks.is_empty()).then(|| remarks.join("; ")))
}

#[derive(Default)]
struct Row {
    kind: &'static str,
    columns: String,
    data_type: Option<String>,
    division: Option<Division>,
    nulls: Option<usize>,
    sensitive: bool,
    role: Option<&'static str>,
    why: Option<String>,
    remarks: Option<String>,
}

fn described(
    columns: &[ProfiledColumn],
    coded: &[Coded],
    nulls: &[usize],
    remarks: Vec<Option<String>>,
    total: usize,
    monitor: &Monitor,
) -> crate::error::Result<RecordBatch> {
    let going_on = || monitor.check();
    let divided =
        |i: usize| published_type(columns[i].field.data_type()).map(|_| division(coded, &[i], &going_on)).transpose();
    let divisions = (0..columns.len()).map(divided).collect::<crate::error::Result<Vec<_>>>()?;
    let mut rows = Vec::new();
    let mut quasi = Vec::new();
    let suggested = Table { columns, divisions: &divisions, nulls, rows: total }.suggested();
    for (i, ((division, (role, why)), remarks)) in divisions.into_iter().zip(suggested).zip(remarks).enumerate() {
        if role == Some(Role::Quasi) && division.is_some() {
            quasi.push(i);
        }
        let values = division.as_ref().map_or(0, |division| division.distinct);
        rows.push(Row {
            kind: "column",
            columns: columns[i].field.name().clone(),
            data_type: Some(columns[i].field.data_type().to_string()),
            division,
            nulls: Some(nulls[i]),
            sensitive: matches!(role, Some(Role::Quasi | Role::Sensitive)) && values > 1,
            role: role.map(Role::name),
            why: Some(why),
            remarks,
        });
    }
    let names = |set: &[usize]| set.iter().map(|&i| columns[i].field.name().as_str()).collect::<Vec<_>>().join(", ");
    let row = |kind, division: Division, why: Option<String>| Row {
        kind,
        columns: names(&division.columns),
        division: Some(division),
        why,
        ..Row::default()
    };
    rows.extend(singling_out(coded, &quasi, &going_on)?.into_iter().map(|division| row("set", division, None)));
    if !quasi.is_empty() {
        let why = format!(
            "the table as it is, to somebody who knows these columns; at risk are groups of fewer than {SMALL}"
        );
        rows.push(row("table", division(coded, &quasi, &going_on)?, Some(why)));
    }
    Ok(table(&rows, total)?)
}

fn table(rows: &[Row], total: usize) -> Result<RecordBatch> {
    let text = |of: fn(&Row) -> Option<&str>| -> ArrayRef { Arc::new(rows.iter().map(of).collect::<StringArray>()) };
    let share = |of: fn(&Division) -> usize| -> ArrayRef {
        let division =
            |row: &Row| row.division.as_ref().filter(|_| total > 0).map(|division| of(division) as f64 / total as f64);
        let shares = rows.iter().map(division);
        Arc::new(shares.collect::<Float64Array>())
    };
    let number = |of: &dyn Fn(&Row) -> Option<usize>| -> ArrayRef {
        Arc::new(rows.iter().map(|row| of(row).map(|number| number as i64)).collect::<Int64Array>())
    };
    let columns: Vec<ArrayRef> = vec![
        text(|row| Some(row.kind)),
        text(|row| Some(&row.columns)),
        text(|row| row.data_type.as_deref()),
        number(&|row| row.division.as_ref().map(|division| division.distinct)),
        number(&|row| row.nulls),
        share(|division| division.unique),
        share(|division| division.small),
        // No value may make up more than 1/m of the rows.
        number(&|row| {
            row.division.as_ref().and_then(|division| total.checked_div(division.largest)).filter(|_| row.sensitive)
        }),
        text(|row| row.role),
        text(|row| row.why.as_deref()),
        text(|row| row.remarks.as_deref()),
    ];
    Ok(RecordBatch::try_new(Profile::schema(), columns)?)
}
