//! Parquet encodings of a release's columns in `COPY`, if nothing else says any.
//!
//! Parquet's writer begins a column with a dictionary of its values and looks every value up in it. Two kinds of columns gain nothing by that, and
//! are what writing takes longest for: numbers of groups, which are random and nearly as many as there are groups, so that the dictionary is given
//! up when it is full; and how often each value occurs in a group, in lists, of which there are many times as many as rows.

use datafusion::arrow::datatypes::{DataType, Field};
use datafusion::common::config::{ConfigOptions, ParquetOptions};
use datafusion::common::tree_node::{Transformed, TreeNode};
use datafusion::common::{DFSchema, Result};
use datafusion::datasource::file_format::file_type_to_format;
use datafusion::datasource::file_format::parquet::ParquetFormatFactory;
use datafusion::logical_expr::LogicalPlan;
use datafusion::logical_expr::dml::CopyTo;
use datafusion::optimizer::AnalyzerRule;

use super::release_files::ReleaseFiles;
use crate::microdata::Role;
use crate::release::{GROUP_ID, GROUP_ROLES};

/// Writes releases as suits them.
#[derive(Debug)]
pub(super) struct EncodeReleases;

/// Option for all columns, or for one behind `::`.
const ENCODING: &str = "format.encoding";
const DICTIONARY: &str = "format.dictionary_enabled";
const STATISTICS: &str = "format.statistics_enabled";

impl AnalyzerRule for EncodeReleases {
    fn name(&self) -> &'static str {
        "anonymize_encode_releases"
    }

    fn analyze(&self, plan: LogicalPlan, config: &ConfigOptions) -> Result<LogicalPlan> {
        let parquet = &config.execution.parquet;
        if parquet.encoding.is_some() || parquet.dictionary_enabled != Some(true) {
            return Ok(plan);
        }
        let has_statistics = parquet.statistics_enabled != ParquetOptions::default().statistics_enabled;
        let encoded = plan.transform_down(|node| {
            let LogicalPlan::Copy(mut copy) = node else { return Ok(Transformed::no(node)) };
            if !is_open(&copy) {
                return Ok(Transformed::no(LogicalPlan::Copy(copy)));
            }
            let statistics_are_said =
                has_statistics || copy.options.keys().any(|option| option.starts_with(STATISTICS));
            for (option, value) in wanted(copy.input.schema()) {
                if !(statistics_are_said && option.starts_with(STATISTICS)) {
                    copy.options.entry(option).or_insert_with(|| value.to_owned());
                }
            }
            Ok(Transformed::yes(LogicalPlan::Copy(copy)))
        });
        Ok(encoded?.data)
    }
}

/// Returns true if a statement writes Parquet without saying how columns are encoded.
fn is_open(copy: &CopyTo) -> bool {
    let is_said = |option: &String| [ENCODING, DICTIONARY].iter().any(|name| option.starts_with(name));
    let plain = file_type_to_format(&copy.file_type).is_ok_and(|format| {
        // One with options of its own reads others by other names.
        format.downcast_ref::<ParquetFormatFactory>().is_some_and(|parquet| parquet.options.is_none())
            || format.downcast_ref::<ReleaseFiles>().is_some()
    });
    plain && !copy.options.keys().any(is_said)
}

fn wanted(schema: &DFSchema) -> Vec<(String, &'static str)> {
    let mut wanted = Vec::new();
    // Parts of a path stand between points.
    for field in schema.fields().iter().filter(|field| !field.name().contains(['.', ':'])) {
        let name = field.name();
        let role = field.metadata().get(Role::KEY).map(String::as_str);
        if role == Some(GROUP_ROLES[0]) && name == GROUP_ID && field.data_type() == &DataType::Int64 {
            wanted.push((format!("{ENCODING}::{name}"), "delta_binary_packed"));
            wanted.push((format!("{DICTIONARY}::{name}"), "false"));
        }
        if role == Some(Role::Sensitive.name())
            && let DataType::List(item) = field.data_type()
        {
            for leaf in leaves(item) {
                let path = format!("{name}.list.{}.{}", item.name(), leaf.name());
                // Of a list, a least and a greatest value tell nobody which rows to skip.
                wanted.push((format!("{STATISTICS}::{path}"), "none"));
                if leaf.name() == COUNT {
                    wanted.push((format!("{DICTIONARY}::{path}"), "false"));
                }
            }
        }
    }
    wanted
}

/// Field that counts a value.
const COUNT: &str = "count";

/// Returns the columns of a histogram; none of another list.
fn leaves(item: &Field) -> impl Iterator<Item = &Field> {
    let fields = match item.data_type() {
        DataType::Struct(fields) if fields.iter().any(|field| field.name() == COUNT) => Some(fields),
        _ => None,
    };
    fields.into_iter().flatten().map(AsRef::as_ref)
}
