//! Files that are read: what they are called, and statistics that would change what is in them.

use std::fmt;
use std::sync::Arc;

use datafusion::arrow::datatypes::DataType;
use datafusion::common::stats::Precision;
use datafusion::common::tree_node::{Transformed, TreeNode};
use datafusion::common::{Result, ScalarValue, Statistics};
use datafusion::config::ConfigOptions;
use datafusion::datasource::physical_plan::{FileGroup, FileScanConfig, FileScanConfigBuilder};
use datafusion::datasource::source::DataSourceExec;
use datafusion::physical_optimizer::PhysicalOptimizerRule;
use datafusion::physical_plan::ExecutionPlan;

/// At most so many files are named.
const NAMED: usize = 3;

/// The files of a scan, by names for errors.
#[derive(Debug, Clone)]
pub(super) struct Files {
    names: Arc<[String]>,
    more: usize,
    /// True if files are read in pieces: lines count from the beginning of a piece.
    pieces: bool,
}

impl Files {
    /// Returns the files that a node reads, if it reads any. `names` are what the query calls its tables.
    pub(super) fn of(plan: &Arc<dyn ExecutionPlan>, names: &[String]) -> Option<Self> {
        let config = scan_of(plan)?;
        let files = || config.file_groups.iter().flat_map(FileGroup::iter);
        let mut paths: Vec<String> = Vec::new();
        for file in files() {
            let path = file.object_meta.location.to_string();
            if !paths.contains(&path) {
                paths.push(path);
            }
            if paths.len() > NAMED {
                break;
            }
        }
        let more = if paths.len() > NAMED { files().count().saturating_sub(NAMED) } else { 0 };
        paths.truncate(NAMED);
        let local = config.object_store_url.as_str().starts_with("file:");
        let names = paths.iter().map(|path| match as_written(path, names) {
            Some(name) => name,
            None if local => format!("/{path}"),
            None => format!("{}{path}", config.object_store_url.as_str()),
        });
        let pieces = files().any(|file| file.range.as_ref().is_some_and(|range| range.start > 0));
        Some(Self { names: names.collect(), more, pieces })
    }
}

impl fmt::Display for Files {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.names.len() {
            1 => write!(f, "'{}'", self.names[0])?,
            _ => write!(f, "one of '{}'", self.names.join("', '"))?,
        }
        if self.more > 0 {
            write!(f, " and {} more", self.more)?;
        }
        if self.pieces {
            f.write_str(
                " (read in pieces, and lines are counted from the beginning of one; to have them counted from the first: SET \
                 datafusion.optimizer.repartition_file_scans = false)",
            )?;
        }
        Ok(())
    }
}

/// Returns the name that a query has for a file: of the file itself, or of a folder that it is in.
fn as_written(path: &str, names: &[String]) -> Option<String> {
    let mut best: Option<(usize, String)> = None;
    for name in names {
        let bare = name.strip_prefix("file://").unwrap_or(name);
        let bare = bare.trim_start_matches("./").trim_start_matches("../").trim_matches('/');
        if bare.is_empty() || !name.contains(['/', '.']) {
            continue;
        }
        let found = path.match_indices(bare).filter(|&(at, _)| at == 0 || path[..at].ends_with('/'));
        let Some((at, _)) = found.last() else { continue };
        let written = match &path[at + bare.len()..] {
            "" => name.clone(),
            rest if rest.starts_with('/') => format!("{}{rest}", name.trim_end_matches('/')),
            _ => continue,
        };
        if best.as_ref().is_none_or(|(length, _)| *length < bare.len()) {
            best = Some((bare.len(), written));
        }
    }
    best.map(|(_, written)| written)
}

/// Returns the configuration by which a node reads files, if it does.
pub(super) fn scan_of(plan: &Arc<dyn ExecutionPlan>) -> Option<&FileScanConfig> {
    plan.downcast_ref::<DataSourceExec>()?.data_source().downcast_ref::<FileScanConfig>()
}

/// Returns a scan that reads every value of its files.
///
/// DataFusion 55 takes a column for constant if its smallest and greatest values are equal, and puts the constant in its place. In
/// the statistics of Parquet files NaN is neither, so `[1.1, NaN, 1.1]` would be read as three 1.1. Without these
/// statistics of floating-point columns the file is read.
pub(super) fn with_every_value(plan: &Arc<dyn ExecutionPlan>) -> Arc<dyn ExecutionPlan> {
    let (Some(exec), Some(config)) = (plan.downcast_ref::<DataSourceExec>(), scan_of(plan)) else {
        return Arc::clone(plan);
    };
    let mut changed = false;
    let groups: Vec<FileGroup> = config
        .file_groups
        .iter()
        .map(|group| {
            let mut files = group.clone().into_inner();
            for file in &mut files {
                if let Some(less) = file.statistics.as_deref().and_then(without_ends_of_floats) {
                    file.statistics = Some(Arc::new(less));
                    changed = true;
                }
            }
            FileGroup::new(files)
        })
        .collect();
    if !changed {
        return Arc::clone(plan);
    }
    let scan = FileScanConfigBuilder::from(config.clone()).with_file_groups(groups).build();
    Arc::new(exec.clone().with_data_source(Arc::new(scan)))
}

/// Returns the statistics without ends of floating-point columns, if there are any.
fn without_ends_of_floats(statistics: &Statistics) -> Option<Statistics> {
    let floats = |value: &Precision<ScalarValue>| match value {
        Precision::Exact(value) | Precision::Inexact(value) => is_float(&value.data_type()),
        Precision::Absent => false,
    };
    let mut less = None;
    for (place, column) in statistics.column_statistics.iter().enumerate() {
        if floats(&column.min_value) || floats(&column.max_value) {
            let less: &mut Statistics = less.get_or_insert_with(|| statistics.clone());
            less.column_statistics[place].min_value = Precision::Absent;
            less.column_statistics[place].max_value = Precision::Absent;
        }
    }
    less
}

fn is_float(data_type: &DataType) -> bool {
    match data_type {
        DataType::Dictionary(_, values) => is_float(values),
        DataType::RunEndEncoded(_, values) => is_float(values.data_type()),
        other => other.is_floating(),
    }
}

/// Lets queries see NaN in Parquet files.
///
/// DataFusion 55 takes a column of floating-point numbers for constant if it has one value beside NaN, because NaN is in no
/// statistics. What our functions read is guarded without this rule; with it, so is every query of a session, such as the
/// `CREATE TABLE .. AS` that fills a table which is anonymized later.
#[derive(Debug, Clone, Copy, Default)]
pub struct KeepNan;

impl PhysicalOptimizerRule for KeepNan {
    fn optimize(&self, plan: Arc<dyn ExecutionPlan>, _config: &ConfigOptions) -> Result<Arc<dyn ExecutionPlan>> {
        let kept = plan.transform_up(|node| {
            let kept = with_every_value(&node);
            Ok(if Arc::ptr_eq(&kept, &node) { Transformed::no(node) } else { Transformed::yes(kept) })
        })?;
        Ok(kept.data)
    }

    fn name(&self) -> &str {
        "anonymize_keep_nan"
    }

    fn schema_check(&self) -> bool {
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_are_named_as_they_were_written() {
        let names = |names: &[&str]| names.iter().map(|&name| name.to_owned()).collect::<Vec<_>>();
        let written = |path: &str, list: &[&str]| as_written(path, &names(list));
        assert_eq!(written("home/me/data/x.csv", &["data/x.csv"]).as_deref(), Some("data/x.csv"));
        assert_eq!(written("home/me/data/x.csv", &["./data/x.csv"]).as_deref(), Some("./data/x.csv"));
        assert_eq!(written("home/me/data/x.csv", &["/home/me/data/x.csv"]).as_deref(), Some("/home/me/data/x.csv"));
        assert_eq!(written("home/me/lake/a/x.csv", &["lake/"]).as_deref(), Some("lake/a/x.csv"));
        assert_eq!(written("home/me/lake/x.csv", &["lake/", "lake/x.csv"]).as_deref(), Some("lake/x.csv"));
        assert_eq!(written("home/me/data/x.csv", &["a/x.csv", "x"]), None);
    }
}
