//! `advise(rel, ..)`: what each method and setting costs on this table, and which to take.
//!
//! ```text
//! bench.rs      a session of its own, in which everything is measured by the functions that users call
//! settings.rs   the methods and what they are tried with; how each is called
//! measure.rs    a setting measured
//! choice.rs     what is recommended
//! script.rs     the SQL that does it
//! ```

mod bench;
mod choice;
mod measure;
mod script;
mod settings;

use std::sync::Arc;

use async_trait::async_trait;
use datafusion::arrow::array::{ArrayRef, Float64Array, Int64Array, RecordBatch, StringArray, UInt32Array};
use datafusion::arrow::compute::{concat_batches, take_record_batch};
use datafusion::arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use datafusion::catalog::TableProvider;
use datafusion::common::{Result, internal_err};
use datafusion::execution::SendableRecordBatchStream;
use datafusion::logical_expr::{Expr, LogicalPlan, LogicalPlanBuilder};
use futures::StreamExt;
use futures::future::BoxFuture;
use rand::seq::SliceRandom;

use super::arguments::Arguments;
use super::computed::computed;
use super::input::Input;
use super::numbers::Number;
use super::options::{AnonymizeOptions, sensitive_names, split_names};
use super::signature::{FunctionSignature, Kind, Parameter};
use crate::error::refusal;
use crate::exec::{Computation, Progress, Reporting, Resources, Seed, Step, boxed_method};
use crate::methods::Monitor;
use crate::microdata::{Role, Several, published_type};
use bench::{Bench, TableRoles};
use choice::recommend;
use measure::Measured;
use script::script;
use settings::settings;

const NAME: &str = "advise";
const SUGGESTED: &str = "suggested by profile";
const ROWS: Parameter = Parameter::optional("rows", Kind::Integer, "200000")
    .at_least(100)
    .or(200_000)
    .says("how many rows are measured, drawn at random");
const QUERIES: Parameter =
    Parameter::optional("queries", Kind::Integer, "1000").at_least(1).or(1000).says("random queries of each setting");
/// The median relative error of counts that is acceptable.
static ERROR: Number = Number::optional("error", 0.0, "0.1").or(0.1);

pub(super) static SIGNATURE: FunctionSignature = FunctionSignature {
    name: NAME,
    about: "what each method and setting costs on a table, measured; which to take, and the SQL",
    refused: &[],
    parameters: &[
        Parameter::INPUT,
        Parameter::ID.otherwise(SUGGESTED).says("the identifier: one row per person"),
        Parameter::QUASI.otherwise(SUGGESTED).says("quasi-identifiers: known to others"),
        Parameter::SENSITIVE.otherwise(SUGGESTED).says("what nobody should learn"),
        ERROR.parameter().says("the median relative error of counts that is acceptable"),
        ROWS,
        QUERIES,
        Parameter::SEED,
    ],
};

pub(super) fn table(mut arguments: Arguments, options: &AnonymizeOptions) -> Result<Arc<dyn TableProvider>> {
    let plan = arguments.relation("input")?;
    let table = table_name(&plan);
    let input = Input { function: NAME, argument: "the input", plan };
    let error = ERROR.of(&arguments)?;
    let several = match (arguments.columns(Role::Sensitive.name()), options.sensitive.as_deref()) {
        (None, Some(setting)) => sensitive_names(setting).1,
        _ => arguments.several(Role::Sensitive.name()),
    };
    let mut given = Given { id: Vec::new(), quasi: Vec::new(), sensitive: Vec::new(), several };
    for (role, setting, names) in [
        (Role::Id, &options.id, &mut given.id),
        (Role::Quasi, &options.quasi, &mut given.quasi),
        (Role::Sensitive, &options.sensitive, &mut given.sensitive),
    ] {
        *names = match arguments.columns(role.name()) {
            Some(columns) => columns.to_vec(),
            None => declared(&input, role, setting.as_deref()),
        };
        for name in names.iter() {
            input.column(name)?.publish(NAME)?;
        }
    }
    let names = [&given.id, &given.quasi, &given.sensitive].into_iter().flatten();
    let mut seen = std::collections::HashSet::new();
    for name in names {
        if !seen.insert(name) {
            return Err(refusal!(NAME, "column {name} has two roles; leave one out"));
        }
    }
    let mut chosen = Vec::new();
    for (qualifier, field) in input.plan.schema().iter() {
        if published_type(field.data_type()).is_some() {
            chosen.push(Expr::Column((qualifier, field).into()));
        }
    }
    let plan = LogicalPlanBuilder::from(input.plan).project(chosen)?.build()?;
    let advice = Advice {
        table,
        given,
        error,
        rows: arguments.integer_or_default(&ROWS)?,
        queries: arguments.integer_or_default(&QUERIES)?,
        seed: arguments.seed("seed").map_or_else(Seed::from_entropy, Ok)?,
    };
    Ok(computed(Arc::new(advice), vec![plan]))
}

/// Returns the columns that their metadata, else the session's settings, give a role.
fn declared(input: &Input, role: Role, setting: Option<&str>) -> Vec<String> {
    let fields = input.plan.schema().fields();
    let has_role = |text: Option<&String>| text.and_then(|text| Role::parse(text)) == Some(role);
    let declared = fields.iter().filter(|field| has_role(field.metadata().get(Role::KEY)));
    let names: Vec<String> = declared.map(|field| field.name().clone()).collect();
    if !names.is_empty() {
        return names;
    }
    let of_setting: fn(&str) -> Vec<String> =
        if role == Role::Sensitive { |text: &str| sensitive_names(text).0 } else { split_names };
    let mut names = setting.map(of_setting).unwrap_or_default();
    names.retain(|name| fields.iter().any(|field| field.name() == name));
    names
}

fn table_name(plan: &LogicalPlan) -> String {
    match plan {
        LogicalPlan::SubqueryAlias(alias) => match table_name(&alias.input) {
            // A view is what it selects, under its name.
            name if name == UNNAMED => bench::quoted(alias.alias.table()),
            name => name,
        },
        LogicalPlan::TableScan(scan) => {
            let name = scan.table_name.table();
            let file = name.contains(['/', '.']);
            if file { format!("'{}'", name.replace('\'', "''")) } else { bench::quoted(name) }
        }
        _ => UNNAMED.to_owned(),
    }
}

/// Stands for a query in the statements to be pasted.
const UNNAMED: &str = "input";

/// Roles that are known beforehand; the others are those that a profile of the table suggests.
#[derive(Debug, Clone)]
struct Given {
    id: Vec<String>,
    quasi: Vec<String>,
    sensitive: Vec<String>,
    /// Subject of the bound, if there are several sensitive columns.
    several: Several,
}

#[derive(Debug)]
struct Advice {
    table: String,
    given: Given,
    error: f64,
    rows: usize,
    queries: usize,
    seed: Seed,
}

#[async_trait]
impl Computation for Advice {
    fn names(&self) -> [&'static str; 2] {
        ["AdviseExec", NAME]
    }

    fn argument(&self, _place: usize) -> &'static str {
        "the input"
    }

    fn parameters(&self) -> String {
        format!("rows={}, queries={}, error={}", self.rows, self.queries, self.error)
    }

    /// Returns the schema of a row per method and setting. Shares and errors are 0 to 1; what was not measured is NULL, and `note` says why.
    fn schema(&self) -> SchemaRef {
        let field = |name: &str, data_type: DataType| Field::new(name, data_type, true);
        Arc::new(Schema::new(vec![
            Field::new("method", DataType::Utf8, false),
            Field::new("parameter", DataType::Utf8, false),
            Field::new("value", DataType::Int64, false),
            field("loss", DataType::Float64),
            field("median_error", DataType::Float64),
            field("counterfeits", DataType::Int64),
            field("at_risk", DataType::Float64),
            Field::new("rows", DataType::Int64, false),
            Field::new("of_rows", DataType::Int64, false),
            field("recommended", DataType::Utf8),
            field("note", DataType::Utf8),
            Field::new("call", DataType::Utf8, false),
            field("sql", DataType::Utf8),
        ]))
    }

    boxed_method! {<'r> fn compute(
        &self,
        inputs: Vec<SendableRecordBatchStream>,
        resources: &'r Resources,
    ) -> Result<()> {
        self.advise(inputs, resources)
    }}
}

impl Advice {
    fn advise<'a>(
        &'a self,
        inputs: Vec<SendableRecordBatchStream>,
        resources: &'a Resources,
    ) -> BoxFuture<'a, Result<()>> {
        Box::pin(async move {
            let Some(mut input) = inputs.into_iter().next() else { return internal_err!("{NAME}: no input") };
            let schema = input.schema();
            let (mut batches, mut bytes) = (Vec::new(), 0);
            while let Some(batch) = input.next().await {
                let batch = batch?;
                bytes += batch.get_array_memory_size();
                // The batches, all of them as one, and those that are measured in parts.
                resources.hold(4 * bytes)?;
                batches.push(batch);
            }
            let (all, rows, mut rng) = (Arc::clone(&schema), self.rows, self.seed.rng());
            let sample = move |_: &Monitor| {
                let table = concat_batches(&all, &batches)?;
                let mut order: Vec<u32> = (0..table.num_rows() as u32).collect();
                order.shuffle(&mut rng);
                order.truncate(rows);
                Ok((take_record_batch(&table, &UInt32Array::from(order))?, table.num_rows()))
            };
            let (people, of_rows) = resources.off_thread(sample).await?;
            let bench = Bench::new(&people, &self.seed, resources.context.runtime_env())?;
            let people = TableRoles::find(&bench, &self.given).await?;
            let settings = settings(&people, bench.rows());
            let progress = Reporting(Progress::of(&resources.context));
            let mut measured = Vec::new();
            let of = settings.len();
            for (done, setting) in settings.into_iter().enumerate() {
                progress.0.tell(Step::Measured { done, of });
                measured.push(Measured::of(&bench, &people, setting, self.queries).await?);
            }
            let recommended = recommend(&measured, &people, self.error);
            let scripts = recommended.iter().zip(&measured).map(|(recommended, row)| {
                recommended.as_ref().map(|_| script(&row.setting, &self.table, &people, &schema))
            });
            let scripts: StringArray = scripts.collect();
            resources.send(self.batch(&measured, &people, recommended, scripts, [bench.rows(), of_rows])?).await;
            Ok(())
        })
    }

    fn batch(
        &self,
        measured: &[Measured],
        people: &TableRoles,
        recommended: Vec<Option<String>>,
        scripts: StringArray,
        [rows, of_rows]: [usize; 2],
    ) -> Result<RecordBatch> {
        let texts = |of: &dyn Fn(&Measured) -> String| -> ArrayRef {
            Arc::new(measured.iter().map(|row| Some(of(row))).collect::<StringArray>())
        };
        let numbers = |of: &dyn Fn(&Measured) -> Option<f64>| -> ArrayRef {
            Arc::new(measured.iter().map(of).collect::<Float64Array>())
        };
        let counts = |of: &dyn Fn(&Measured) -> Option<i64>| -> ArrayRef {
            Arc::new(measured.iter().map(of).collect::<Int64Array>())
        };
        let columns = vec![
            texts(&|row| row.setting.method.name().to_owned()),
            texts(&|row| row.setting.method.column()),
            counts(&|row| Some(row.setting.value as i64)),
            numbers(&|row| row.loss),
            numbers(&|row| row.error),
            counts(&|row| row.counterfeits.map(|count| count as i64)),
            numbers(&|row| row.at_risk),
            counts(&|_| Some(rows as i64)),
            counts(&|_| Some(of_rows as i64)),
            Arc::new(recommended.into_iter().collect::<StringArray>()),
            Arc::new(measured.iter().map(|row| row.note.clone()).collect::<StringArray>()),
            texts(&|row| row.setting.call(&self.table, &people.roles(), "")),
            Arc::new(scripts),
        ];
        Ok(RecordBatch::try_new(self.schema(), columns)?)
    }
}
