//! `SHOW FUNCTIONS` with what there is to say of ours: DataFusion knows only the names of functions whose value is a table.

use std::sync::Arc;

use datafusion::arrow::array::{Array, ArrayRef, AsArray, RecordBatch, StringArray};
use datafusion::arrow::compute::{cast, concat_batches};
use datafusion::arrow::datatypes::{DataType, Field, Schema};
use datafusion::common::Result;
use datafusion::common::instant::Instant;
use datafusion::prelude::{DataFrame, SessionContext};
use datafusion::sql::parser::Statement;
use datafusion::sql::sqlparser::ast;
use datafusion_anonymize::{function_example, function_overview, function_parameters};
use datafusion_cli::print_options::PrintOptions;

/// Columns of the list that are filled in.
const DESCRIPTION: &str = "description";
const EXAMPLE: &str = "syntax_example";
const PARAMETERS: &str = "parameters";

/// Prints the functions, if that is what is asked for.
/// Fails with the errors of the query and of the output.
pub(super) async fn show(context: &SessionContext, statement: &Statement, print: &PrintOptions) -> Result<bool> {
    let Statement::Statement(sql) = statement else { return Ok(false) };
    if !matches!(sql.as_ref(), ast::Statement::ShowFunctions { .. }) {
        return Ok(false);
    }
    let begin = Instant::now();
    let plan = context.state().statement_to_plan(statement.clone()).await?;
    let frame = DataFrame::new(context.state(), plan);
    let schema = Arc::clone(frame.schema().inner());
    let listed = described(&concat_batches(&schema, &frame.collect().await?)?)?;
    let rows = listed.num_rows();
    let state = context.state();
    print.print_batches(listed.schema(), &[listed], begin, rows, &state.config_options().format)?;
    Ok(true)
}

/// Returns the list with parameters, descriptions and examples of our functions. Lists of parameters become texts, which every format can have.
fn described(listed: &RecordBatch) -> Result<RecordBatch> {
    let schema = listed.schema();
    let (Ok(names), Ok(kinds)) = (schema.index_of("function_name"), schema.index_of("function_type")) else {
        return Ok(listed.clone());
    };
    let texts = |column: usize| cast(listed.column(column), &DataType::Utf8);
    let (names, kinds) = (texts(names)?, texts(kinds)?);
    let (names, kinds) = (names.as_string::<i32>(), kinds.as_string::<i32>());
    let overview = function_overview();
    let ours = |row: usize| overview.iter().find(|(ours, _)| *ours == names.value(row) && kinds.value(row) == "TABLE");
    let (mut fields, mut columns) = (Vec::new(), Vec::new());
    for (field, column) in schema.fields().iter().zip(listed.columns()) {
        let known = joined(column)?;
        let text = |row: usize| -> Option<String> {
            let said = known.is_valid(row).then(|| known.value(row).to_owned()).filter(|text| !text.is_empty());
            said.or_else(|| {
                let (name, about) = ours(row)?;
                match field.name().as_str() {
                    DESCRIPTION => Some((*about).to_owned()),
                    EXAMPLE => function_example(name),
                    PARAMETERS => function_parameters(name).map(|names| names.join(", ")),
                    _ => None,
                }
            })
        };
        columns.push(Arc::new((0..listed.num_rows()).map(text).collect::<StringArray>()) as ArrayRef);
        fields.push(Field::new(field.name(), DataType::Utf8, true));
    }
    Ok(RecordBatch::try_new(Arc::new(Schema::new(fields)), columns)?)
}

/// Joins lists of texts with commas between their items; texts stay.
fn joined(column: &ArrayRef) -> Result<StringArray> {
    let DataType::List(_) = column.data_type() else {
        return Ok(cast(column, &DataType::Utf8)?.as_string::<i32>().clone());
    };
    let lists = column.as_list::<i32>();
    let text = |row: usize| -> Result<Option<String>> {
        if lists.is_null(row) {
            return Ok(None);
        }
        let items = cast(&lists.value(row), &DataType::Utf8)?;
        let items: Vec<&str> = items.as_string::<i32>().iter().flatten().collect();
        Ok(Some(items.join(", ")))
    };
    (0..column.len()).map(text).collect()
}
