//! The operator that looks at a table before it is anonymized.

use std::sync::Arc;

use async_trait::async_trait;
use datafusion::arrow::array::{Array, ArrayRef, Float64Array, Int64Array, RecordBatch, StringArray};
use datafusion::arrow::datatypes::{DataType, Field, FieldRef, Schema, SchemaRef};
use datafusion::common::{Result, internal_err};
use datafusion::execution::SendableRecordBatchStream;
use futures::StreamExt;

use super::computation::{Computation, Resources};
use super::notices::Notices;
use crate::error::Error;
use crate::microdata::{ColumnEncoder, ORDER_KEY, Role, TextOrder};
use crate::risk::{Coded, Division, SMALL, division, singling_out};

const FUNCTION: &str = "profile";

/// A column that is looked at.
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
    /// One row per column (`kind` `column`), for the sets of two and three quasi-identifiers that single out most people (`set`), and for
    /// all quasi-identifiers together (`table`). Shares are of rows, 0 to 1.
    fn schema() -> SchemaRef {
        let text = |name: &str, null: bool| Field::new(name, DataType::Utf8, null);
        Arc::new(Schema::new(vec![
            text("kind", false),
            text("columns", false),
            text("type", true),
            Field::new("distinct", DataType::Int64, false),
            Field::new("nulls", DataType::Int64, true),
            // Share of the rows that are alone with their values.
            Field::new("unique_share", DataType::Float64, true),
            // Share of the rows that share their values with fewer than four others.
            Field::new("at_risk", DataType::Float64, true),
            // The largest m (or l) that a release with this sensitive column can have.
            Field::new("largest_m", DataType::Int64, true),
            text("role", true),
            text("why", true),
        ]))
    }
}

#[async_trait]
impl Computation for Profile {
    fn name(&self) -> &'static str {
        "ProfileExec"
    }

    fn function(&self) -> &'static str {
        FUNCTION
    }

    fn parameters(&self) -> String {
        let names: Vec<&str> = self.columns.iter().map(|column| column.field.name().as_str()).collect();
        format!("columns=[{}]", names.join(", "))
    }

    fn schema(&self) -> SchemaRef {
        Self::schema()
    }

    async fn compute(&self, inputs: Vec<SendableRecordBatchStream>, resources: &Resources) -> Result<()> {
        let named = |error: Error| error.in_function(FUNCTION);
        let Some(mut input) = inputs.into_iter().next() else { return internal_err!("{FUNCTION}: no input") };
        let encoders = self.columns.iter().map(|column| ColumnEncoder::try_new(Arc::clone(&column.field)));
        let mut encoders = encoders.collect::<crate::error::Result<Vec<_>>>().map_err(named)?;
        let mut coded = vec![Coded::default(); encoders.len()];
        let mut nulls = vec![0_usize; encoders.len()];
        let mut groups = Vec::new();
        while let Some(batch) = input.next().await {
            let batch = batch?;
            let _timer = resources.metrics.elapsed_compute().timer();
            for (i, array) in batch.columns().iter().enumerate() {
                encoders[i].intern(array, &mut groups).map_err(named)?;
                coded[i].codes.extend(groups.iter().map(|&group| group as u32));
                coded[i].distinct = groups.iter().map(|group| group + 1).max().unwrap_or(0).max(coded[i].distinct);
                nulls[i] += array.logical_null_count();
            }
            let codes: usize = coded.iter().map(|column| column.codes.capacity() * size_of::<u32>()).sum();
            // Dividing takes a row number and a group for each row, on every thread.
            let work = coded.first().map_or(0, |column| column.codes.len()) * 16 * rayon::current_num_threads();
            resources.hold(encoders.iter().map(ColumnEncoder::size).sum::<usize>() + codes + work)?;
        }
        self.tell_of_texts(encoders, &Notices::of(&resources.context))?;
        let columns = self.columns.clone();
        let rows = resources.off_thread(move |_| Ok(described(&columns, &coded, &nulls))).await?;
        resources.send(rows?).await;
        Ok(())
    }
}

impl Profile {
    /// Says of which columns the texts are in another order than what they stand for.
    fn tell_of_texts(&self, encoders: Vec<ColumnEncoder>, notices: &Notices) -> Result<()> {
        for (encoder, column) in encoders.into_iter().zip(&self.columns) {
            let field = &column.field;
            let ordered =
                field.metadata().contains_key(ORDER_KEY) || column.role.is_some_and(|role| role != Role::Quasi);
            if ordered || !field.data_type().is_string() {
                continue;
            }
            let values = encoder.into_values().map_err(|error| error.in_function(FUNCTION))?;
            if let Some(order) = values.as_ref().and_then(TextOrder::of) {
                notices.tell(&order.notice(FUNCTION, field.name()));
            }
        }
        Ok(())
    }
}

/// A row of the result.
struct Row {
    kind: &'static str,
    columns: String,
    data_type: Option<String>,
    division: Division,
    nulls: Option<usize>,
    sensitive: bool,
    role: Option<&'static str>,
    why: Option<String>,
}

fn described(columns: &[ProfiledColumn], coded: &[Coded], nulls: &[usize]) -> Result<RecordBatch> {
    let total = coded.first().map_or(0, |column| column.codes.len());
    let alone: Vec<Division> = (0..columns.len()).map(|i| division(coded, &[i])).collect();
    let mut rows = Vec::new();
    let mut quasi = Vec::new();
    let roles = suggested(columns, &alone, nulls, total);
    for (i, ((column, division), (role, why))) in columns.iter().zip(alone).zip(roles).enumerate() {
        if role == Some(Role::Quasi) {
            quasi.push(i);
        }
        let sensitive = matches!(role, Some(Role::Quasi | Role::Sensitive)) && division.distinct > 1;
        rows.push(Row {
            kind: "column",
            columns: column.field.name().clone(),
            data_type: Some(column.field.data_type().to_string()),
            division,
            nulls: Some(nulls[i]),
            sensitive,
            role: role.map(Role::name),
            why: Some(why),
        });
    }
    let names = |set: &[usize]| set.iter().map(|&i| columns[i].field.name().as_str()).collect::<Vec<_>>().join(", ");
    let row = |kind, division: Division, why: Option<String>| Row {
        kind,
        columns: names(&division.columns),
        data_type: None,
        division,
        nulls: None,
        sensitive: false,
        role: None,
        why,
    };
    rows.extend(singling_out(coded, &quasi).into_iter().map(|division| row("set", division, None)));
    if !quasi.is_empty() {
        let why = format!(
            "the table as it is, to somebody who knows these columns; at risk are groups of fewer than {SMALL}"
        );
        rows.push(row("table", division(coded, &quasi), Some(why)));
    }
    table(&rows, total)
}

/// Words in names of columns that are usually sensitive.
const SENSITIVE: [&str; 16] = [
    "disease",
    "diagnos",
    "icd",
    "symptom",
    "condition",
    "treatment",
    "drug",
    "medic",
    "income",
    "salary",
    "wage",
    "earning",
    "debt",
    "religion",
    "crime",
    "offen",
];
/// Words in names of identifiers.
const IDENTIFIERS: [&str; 6] = ["id", "key", "uuid", "ssn", "number", "nr"];

/// Words in names of columns that people write into.
const FREE_TEXT: [&str; 7] = ["note", "notes", "comment", "comments", "remark", "remarks", "text"];

fn free_text(name: &str) -> bool {
    name.split(|c: char| !c.is_alphanumeric()).any(|word| FREE_TEXT.contains(&word))
}

fn words_of_sensitive(name: &str) -> bool {
    SENSITIVE.iter().any(|word| name.contains(word))
}

/// A role for each column, and why. Looks at names and counts; it is a suggestion.
fn suggested(
    columns: &[ProfiledColumn],
    alone: &[Division],
    nulls: &[usize],
    total: usize,
) -> Vec<(Option<Role>, String)> {
    let words = |i: usize| columns[i].field.name().to_lowercase();
    let every_row = |i: usize| total > 1 && alone[i].unique == total && nulls[i] == 0;
    let named_id = |i: usize| words(i).split(|c: char| !c.is_alphanumeric()).any(|word| IDENTIFIERS.contains(&word));
    let exact = |i: usize| !columns[i].field.data_type().is_floating();
    let given = |role: Role| columns.iter().any(|column| column.role == Some(role));
    let candidates = || (0..columns.len()).filter(|&i| columns[i].role.is_none() && every_row(i) && exact(i));
    // A row that is there twice does not make it something else.
    let nearly = |i: &usize| {
        let others = columns[*i].role.is_none() && exact(*i) && named_id(*i);
        others && total >= 10 && alone[*i].distinct * 10 >= total * 9
    };
    let id = match given(Role::Id) {
        true => None,
        false => candidates()
            .find(|&i| named_id(i))
            .or_else(|| (0..columns.len()).find(nearly))
            .or_else(|| candidates().next()),
    };
    let mut sensitive_there = given(Role::Sensitive);
    let mut roles = Vec::new();
    for (i, column) in columns.iter().enumerate() {
        let reason = |role: Role, why: &str| (Some(role), why.to_owned());
        roles.push(if let Some(role) = column.role {
            reason(role, "as given")
        } else if id == Some(i) {
            match every_row(i) {
                true => reason(Role::Id, "every row has a value of its own"),
                false => reason(
                    Role::Id,
                    "by its name, and nearly every row has a value of its own; there must be one row per person: look for rows that are there \
                     twice, or have none",
                ),
            }
        } else if given(Role::Quasi) && (sensitive_there || !words_of_sensitive(&words(i))) {
            (None, "not among the quasi-identifiers that are given".to_owned())
        } else if alone[i].distinct <= 1 {
            (None, "all rows have the same value: leave it out".to_owned())
        } else if !sensitive_there && words_of_sensitive(&words(i)) {
            sensitive_there = true;
            reason(Role::Sensitive, "by its name; check that it is what nobody should learn")
        } else if free_text(&words(i)) {
            (None, "free text can say anything about somebody: leave it out".to_owned())
        } else if every_row(i) || alone[i].unique * 2 > total {
            (None, "it alone singles out most rows: leave it out, or make it coarser first".to_owned())
        } else {
            reason(Role::Quasi, "others may know it of a person; if nobody can, leave it out")
        });
    }
    roles
}

fn table(rows: &[Row], total: usize) -> Result<RecordBatch> {
    let text = |of: fn(&Row) -> Option<&str>| -> ArrayRef { Arc::new(rows.iter().map(of).collect::<StringArray>()) };
    let share = |of: fn(&Division) -> usize| -> ArrayRef {
        let shares = rows.iter().map(|row| (total > 0).then(|| of(&row.division) as f64 / total as f64));
        Arc::new(shares.collect::<Float64Array>())
    };
    let number = |of: &dyn Fn(&Row) -> Option<usize>| -> ArrayRef {
        Arc::new(rows.iter().map(|row| of(row).map(|number| number as i64)).collect::<Int64Array>())
    };
    let columns: Vec<ArrayRef> = vec![
        text(|row| Some(row.kind)),
        text(|row| Some(&row.columns)),
        text(|row| row.data_type.as_deref()),
        number(&|row| Some(row.division.distinct)),
        number(&|row| row.nulls),
        share(|division| division.unique),
        share(|division| division.small),
        // No value may make up more than 1/m of the rows.
        number(&|row| total.checked_div(row.division.largest).filter(|_| row.sensitive)),
        text(|row| row.role),
        text(|row| row.why.as_deref()),
    ];
    Ok(RecordBatch::try_new(Profile::schema(), columns)?)
}
