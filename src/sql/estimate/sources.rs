//! Sources of a statement's estimates: the release that a table of estimates was made of, or the newest one of a publication.

use std::sync::Arc;

use datafusion::catalog::TableProvider;
use datafusion::common::Result;
#[cfg(feature = "publication")]
use datafusion::common::tree_node::{TreeNode, TreeNodeRecursion};
#[cfg(feature = "publication")]
use datafusion::datasource::{provider_as_source, source_as_provider};
use datafusion::logical_expr::LogicalPlan;
#[cfg(feature = "publication")]
use datafusion::logical_expr::LogicalPlanBuilder;

use super::{EstimatedTable, Source};
#[cfg(feature = "publication")]
use crate::error::refusal;
#[cfg(feature = "publication")]
use crate::estimate::Distribution;
use crate::sql::opaque::OpaqueTable;
#[cfg(feature = "publication")]
use crate::sql::publication::PublicationTable;

/// The sources of one statement. Each publication is one release in all of it, whichever that is: nothing is opened here, but when the
/// source is scanned.
#[derive(Default)]
pub(super) struct Sources {
    #[cfg(feature = "publication")]
    publications: Vec<(Arc<dyn TableProvider>, Arc<Source>)>,
}

impl Sources {
    /// Returns the source of a table; `None` if its rows can be read.
    /// Fails when no estimates can be made from the releases of a publication.
    #[cfg_attr(not(feature = "publication"), expect(clippy::unnecessary_wraps, reason = "publications fail"))]
    pub(super) fn of(&mut self, table: &Arc<dyn TableProvider>) -> Result<Option<Arc<Source>>> {
        #[cfg(feature = "publication")]
        if let Some(publication) = table.downcast_ref::<PublicationTable>() {
            if let Some((_, source)) = self.publications.iter().find(|(known, _)| Arc::ptr_eq(known, table)) {
                return Ok(Some(Arc::clone(source)));
            }
            let source = Arc::new(newest(publication)?);
            self.publications.push((Arc::clone(table), Arc::clone(&source)));
            return Ok(Some(source));
        }
        Ok(OpaqueTable::<EstimatedTable>::relation(table.as_ref()).map(|table| Arc::clone(table.source())))
    }
}

/// Returns the newest release of a publication.
#[cfg(feature = "publication")]
fn newest(publication: &PublicationTable) -> Result<Source> {
    let (release, released) = publication.newest_release()?;
    let release =
        LogicalPlanBuilder::scan("release", provider_as_source(Arc::new(OpaqueTable(release))), None)?.build()?;
    let hierarchies = publication.hierarchies().cloned();
    let (without_null, distribution) = (Default::default(), Distribution::default());
    Ok(Source { release, released, hierarchies, prior: None, without_null, distribution, intact: None })
}

/// Returns true if only estimates are known of a table.
pub(super) fn is_estimate(table: &dyn TableProvider) -> bool {
    #[cfg(feature = "publication")]
    if table.is::<PublicationTable>() {
        return true;
    }
    table.is::<OpaqueTable<EstimatedTable>>()
}

/// # Errors
/// When a relation that is to be a release is a publication, which has several.
#[cfg(feature = "publication")]
pub(super) fn refuse_publication(function: &str, release: &LogicalPlan) -> Result<()> {
    let mut found = None;
    release.apply(|node| {
        if let LogicalPlan::TableScan(scan) = node
            && source_as_provider(&scan.source).is_ok_and(|table| table.is::<PublicationTable>())
        {
            found = Some(scan.table_name.clone());
        }
        Ok(TreeNodeRecursion::Continue)
    })?;
    match found {
        Some(name) => Err(refusal!(
            function,
            argument "release",
            "{name} is a publication, whose name alone is an estimate from its newest release; for another one write \
             {function}(release({name}, 1))"
        )),
        None => Ok(()),
    }
}

/// Refuses nothing: without the feature there are no publications.
#[cfg(not(feature = "publication"))]
#[expect(clippy::unnecessary_wraps, reason = "that of the feature fails")]
pub(super) fn refuse_publication(_function: &str, _release: &LogicalPlan) -> Result<()> {
    Ok(())
}
