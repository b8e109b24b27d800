//! Results as they are printed. A table on a terminal is for somebody who looks at it, and has as many rows as `--maxrows` says; everything
//! else is for programs, and complete: rows and nothing but rows, written as they arrive.

use std::io::{self, BufWriter, ErrorKind, IsTerminal, Write};

use datafusion::arrow::array::RecordBatch;
use datafusion::arrow::csv::WriterBuilder;
use datafusion::arrow::json::{ArrayWriter, LineDelimitedWriter};
use datafusion::common::{DataFusionError, Result};
use datafusion::execution::SendableRecordBatchStream;
use datafusion::prelude::SessionContext;
use datafusion::sql::parser::Statement;
use datafusion::sql::sqlparser::ast;
use datafusion_anonymize::internals;
use datafusion_cli::print_format::PrintFormat;
use datafusion_cli::print_options::{MaxRows, PrintOptions};
use futures::StreamExt;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Format {
    /// Values separated by this character, with names of columns above them.
    Separated(u8),
    /// An array of objects.
    Json,
    /// An object per line.
    JsonLines,
}

impl Format {
    fn of(format: PrintFormat) -> Option<Self> {
        match format {
            PrintFormat::Csv => Some(Self::Separated(b',')),
            PrintFormat::Tsv => Some(Self::Separated(b'\t')),
            PrintFormat::Json => Some(Self::Json),
            PrintFormat::NdJson => Some(Self::JsonLines),
            PrintFormat::Table | PrintFormat::Automatic => None,
        }
    }
}

/// Returns the options by which datafusion-cli prints results: cut on a terminal only.
pub(super) fn options(print: &PrintOptions) -> PrintOptions {
    let (terminal, for_programs) = (io::stdout().is_terminal(), Format::of(print.format).is_some());
    PrintOptions {
        maxrows: if terminal && !for_programs { print.maxrows } else { MaxRows::Unlimited },
        // How many rows there were, and how long it took, are no rows.
        quiet: print.quiet || for_programs && !terminal,
        ..print.clone()
    }
}

/// Runs a query whose result is for programs, and writes its rows. Returns `false` for all other statements.
/// Fails with the errors of the query, and of standard output. That nobody reads any further is none.
pub(super) async fn print_rows(context: &SessionContext, statement: Statement, print: &PrintOptions) -> Result<bool> {
    let Some(format) = Format::of(print.format) else { return Ok(false) };
    if !matches!(&statement, Statement::Statement(sql) if matches!(sql.as_ref(), ast::Statement::Query(_))) {
        return Ok(false);
    }
    let mut plan = context.state().statement_to_plan(statement).await?;
    if let Format::Separated(separator) = format {
        plan = internals::flat_rows(if separator == b'\t' { "tsv" } else { "csv" }, plan)?;
    }
    let stream = context.execute_logical_plan(plan).await?.execute_stream().await?;
    let mut output = BufWriter::new(io::stdout());
    match write(stream, format, &mut output).await {
        Err(error) if is_closed(&error) => {}
        result => result?,
    }
    Ok(true)
}

/// Returns true if whoever was to read the output has gone, as `head` does.
fn is_closed(error: &DataFusionError) -> bool {
    let mut next: Option<&(dyn std::error::Error + 'static)> = Some(error);
    while let Some(error) = next {
        if error.downcast_ref::<io::Error>().is_some_and(|error| error.kind() == ErrorKind::BrokenPipe) {
            return true;
        }
        next = error.source();
    }
    // arrow's CSV writer keeps the text only.
    error.to_string().contains("Broken pipe")
}

async fn write(mut stream: SendableRecordBatchStream, format: Format, output: &mut impl Write) -> Result<()> {
    match format {
        Format::Separated(delimiter) => {
            // The names of the columns stand above no rows, too.
            let empty = RecordBatch::new_empty(stream.schema());
            let mut writer = WriterBuilder::new().with_header(true).with_delimiter(delimiter).build(&mut *output);
            writer.write(&empty)?;
            while let Some(batch) = stream.next().await {
                writer.write(&batch?)?;
            }
        }
        Format::Json => {
            let mut writer = ArrayWriter::new(&mut *output);
            while let Some(batch) = stream.next().await {
                writer.write(&batch?)?;
            }
            writer.finish()?;
            writeln!(output)?;
        }
        Format::JsonLines => {
            let mut writer = LineDelimitedWriter::new(&mut *output);
            while let Some(batch) = stream.next().await {
                writer.write(&batch?)?;
            }
            writer.finish()?;
        }
    }
    output.flush()?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use datafusion::arrow::array::Int64Array;
    use datafusion::arrow::datatypes::{DataType, Field, Schema};
    use datafusion::physical_plan::stream::RecordBatchStreamAdapter;

    use super::*;

    async fn written(format: Format, batches: &[&[i64]]) -> String {
        let schema = Arc::new(Schema::new(vec![Field::new("n", DataType::Int64, false)]));
        let batch = |rows: &&[i64]| -> Result<RecordBatch> {
            Ok(RecordBatch::try_new(Arc::clone(&schema), vec![Arc::new(Int64Array::from(rows.to_vec()))])?)
        };
        let batches: Vec<Result<RecordBatch>> = batches.iter().map(batch).collect();
        let rows = futures::stream::iter(batches);
        let stream = Box::pin(RecordBatchStreamAdapter::new(Arc::clone(&schema), rows));
        let mut output = Vec::new();
        write(stream, format, &mut output).await.unwrap();
        String::from_utf8(output).unwrap()
    }

    #[tokio::test]
    async fn batches_are_one_document() {
        let batches: [&[i64]; 4] = [&[], &[1, 2], &[], &[3]];
        assert_eq!(written(Format::Separated(b','), &batches).await, "n\n1\n2\n3\n");
        assert_eq!(written(Format::Json, &batches).await, "[{\"n\":1},{\"n\":2},{\"n\":3}]\n");
        assert_eq!(written(Format::JsonLines, &batches).await, "{\"n\":1}\n{\"n\":2}\n{\"n\":3}\n");
    }

    #[tokio::test]
    async fn no_rows_are_a_document_too() {
        assert_eq!(written(Format::Separated(b'\t'), &[]).await, "n\n");
        assert_eq!(written(Format::Json, &[]).await, "[]\n");
        assert_eq!(written(Format::JsonLines, &[]).await, "");
    }
}
