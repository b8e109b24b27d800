//! The table of a publication: rows go in, releases come out.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use async_trait::async_trait;
use datafusion::arrow::datatypes::{FieldRef, Schema, SchemaRef};
use datafusion::catalog::{Session, TableProvider};
use datafusion::common::config::ConfigOptions;
use datafusion::common::{DFSchemaRef, Result, ScalarValue};
use datafusion::datasource::physical_plan::FileScanConfig;
use datafusion::datasource::source::DataSourceExec;
use datafusion::datasource::source_as_provider;
use datafusion::execution::object_store::ObjectStoreUrl;
use datafusion::execution::runtime_env::RuntimeEnv;
use datafusion::logical_expr::dml::InsertOp;
use datafusion::logical_expr::logical_plan::MergeIntoClause;
use datafusion::logical_expr::{Expr, LogicalPlan, TableSource, TableType};
use datafusion::object_store::path::Path as StorePath;
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_expr::expressions;
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::projection::ProjectionExec;
use futures::FutureExt;
use futures::future::ready;
use url::Url;

use super::left_out::marked_columns;
use super::newest::{NewestRelease, PublicReleases};
use super::options::refused;
use super::release_table::ReleaseTable;
use super::survey::{count_people, survey};
use crate::error::{Error, refusal};
use crate::estimate::{ESTIMATE, Released};
use crate::exec::{HiddenExec, Inputs, Origin, PlanFuture, PublishExec, boxed_method, hide};
use crate::methods::{LeftOut, StateKind};
use crate::microdata::{Layout, Several};
use crate::publication::{OpenPublication, PERIOD, Publication, parse_period, periods_of_releases, with_view};
use crate::release::SIGNATURE;
use crate::sql::cells::WantedCells;
use crate::sql::composite::composed_columns;
use crate::sql::input_plans::planned_if_given;
use crate::sql::lake::refuse_loose_files;
use crate::sql::opaque::Relation;
use crate::sql::options::AnonymizeOptions;

#[derive(Debug, Clone)]
pub(super) struct Publisher {
    pub publication: Publication,
    /// The table that is inserted into.
    pub schema: SchemaRef,
    /// Columns of it that are one sensitive value; none if it is one column.
    pub parts: Vec<FieldRef>,
    /// Subject of the bound, if they are several.
    pub several: Several,
    pub hierarchies: Option<LogicalPlan>,
    pub updates: Option<LogicalPlan>,
}

/// A publication. Its tables are opened anew by every use.
pub(in crate::sql) struct PublicationTable {
    pub public: Url,
    pub runtime: Arc<RuntimeEnv>,
    publisher: Option<Publisher>,
    /// True if there were releases when it was declared.
    begun: bool,
    /// True if its ledger was there since then.
    seen: AtomicBool,
    schema: SchemaRef,
    releases: Arc<PublicReleases>,
}

impl PublicationTable {
    /// Makes a table that can be inserted into. Its releases have columns of `released`, and it has `begun` if there are any.
    pub(super) fn for_publishing(
        publisher: Publisher,
        begun: bool,
        released: SchemaRef,
        runtime: Arc<RuntimeEnv>,
    ) -> Self {
        let (schema, public) = (Arc::clone(&publisher.schema), publisher.publication.public.clone());
        let releases = Arc::new(PublicReleases::new(public.clone(), Arc::clone(&runtime), released));
        let seen = AtomicBool::new(begun);
        Self { public, runtime, publisher: Some(publisher), begun, seen, schema, releases }
    }

    pub(super) fn releases(&self) -> &Arc<PublicReleases> {
        &self.releases
    }

    /// Opens a table whose releases can be read; only the public table is needed.
    /// Fails when nothing was published yet, and when the store fails.
    pub(in crate::sql) async fn for_reading(public: Url, runtime: Arc<RuntimeEnv>) -> Result<Self> {
        // Where somebody else has written to the table, what they wrote cannot be read, but earlier releases and audits can.
        let newest = ReleaseTable::open_readable(&public, &runtime).await?.schema();
        let schema = Arc::new(Released::try_new(ESTIMATE, &newest)?.schema());
        let releases = Arc::new(PublicReleases::new(public.clone(), Arc::clone(&runtime), newest));
        let seen = AtomicBool::new(true);
        Ok(Self { public, runtime, publisher: None, begun: true, seen, schema, releases })
    }

    /// Returns the source of estimates: the newest release, which is opened when it is scanned, and what is known of it before.
    /// Fails when estimates cannot be made from the releases of this publication.
    pub(in crate::sql) fn newest_release(&self) -> Result<(NewestRelease, Released)> {
        NewestRelease::of(&self.releases)
    }

    /// Returns the columns of its releases, as they describe themselves.
    pub(super) fn released_schema(&self) -> &SchemaRef {
        self.releases.schema()
    }

    /// Returns the hierarchies of its releases, if any and if this is the publisher's.
    pub(in crate::sql) fn hierarchies(&self) -> Option<&LogicalPlan> {
        self.publisher.as_ref()?.hierarchies.as_ref()
    }

    pub(super) fn publisher(&self) -> Option<&Publisher> {
        self.publisher.as_ref()
    }

    /// Returns the location of the ledger, if this is the publisher's.
    pub(super) fn private(&self) -> Option<&Url> {
        self.publisher.as_ref().map(|publisher| &publisher.publication.private)
    }

    /// Returns the update relation, if this is the publisher's and has one.
    pub(super) fn updates(&self) -> Option<&LogicalPlan> {
        self.publisher.as_ref()?.updates.as_ref()
    }

    /// Returns the column of identifiers of a publication that can be published to.
    pub(super) fn identifier(target: &Arc<dyn TableSource>) -> Vec<String> {
        let table = source_as_provider(target).ok();
        let publisher = table.as_ref().and_then(|table| table.downcast_ref::<Self>()?.publisher.as_ref());
        publisher.and_then(|publisher| publisher.publication.spec.roles.id.clone()).into_iter().collect()
    }

    pub(super) fn is(plan: &LogicalPlan) -> bool {
        Self::with(plan, "", |_| Ok(())).is_ok()
    }

    pub(super) fn with<T>(plan: &LogicalPlan, function: &str, f: impl FnOnce(&Self) -> Result<T>) -> Result<T> {
        let mut plan = plan;
        while let LogicalPlan::SubqueryAlias(alias) = plan {
            plan = &alias.input;
        }
        if let LogicalPlan::TableScan(scan) = plan
            && let Ok(table) = source_as_provider(&scan.source)
            && let Some(publication) = table.downcast_ref::<Self>()
        {
            return f(publication);
        }
        Err(
            refusal!(function, argument "publication", "argument publication must be the name of a publication; to read one that somebody else publishes: \
                 CREATE EXTERNAL TABLE hospital STORED AS PUBLICATION LOCATION '..'"
            ),
        )
    }
}

impl fmt::Debug for PublicationTable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PublicationTable").field("public", &self.public.as_str()).finish_non_exhaustive()
    }
}

#[async_trait]
impl TableProvider for PublicationTable {
    fn schema(&self) -> SchemaRef {
        Arc::clone(&self.schema)
    }

    fn table_type(&self) -> TableType {
        TableType::Base
    }

    boxed_method! {<'s, 'p, 'f> fn scan(
        &self,
        _session: &'s dyn Session,
        _projection: Option<&'p Vec<usize>>,
        _filters: &'f [Expr],
        _limit: Option<usize>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        ready(Err(refused(
            "the rows that were inserted are not kept, so they cannot be read, updated or deleted",
            "ask for COUNT, SUM or AVG, which are estimated, or read what was published with release(..)",
        )))
        .boxed()
    }}

    boxed_method! {<'s> fn insert_into(
        &self,
        session: &'s dyn Session,
        input: Arc<dyn ExecutionPlan>,
        op: InsertOp,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        self.publishing(session, input, op)
    }}

    boxed_method! {<'s> fn delete_from(
        &self,
        _session: &'s dyn Session,
        _filters: Vec<Expr>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        ready(Err(refused(PUBLISHED, "INSERT the next snapshot without those rows"))).boxed()
    }}

    boxed_method! {<'s> fn update(
        &self,
        _session: &'s dyn Session,
        _assignments: Vec<(String, Expr)>,
        _filters: Vec<Expr>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        ready(Err(refused(PUBLISHED, "INSERT the next snapshot with the new values"))).boxed()
    }}

    boxed_method! {<'s> fn truncate(&self, _session: &'s dyn Session) -> Result<Arc<dyn ExecutionPlan>> {
        ready(Err(refused(PUBLISHED, "begin another publication at another LOCATION"))).boxed()
    }}

    boxed_method! {<'s> fn merge_into(
        &self,
        _session: &'s dyn Session,
        _source: Arc<dyn ExecutionPlan>,
        _merge_schema: DFSchemaRef,
        _on: Expr,
        _clauses: Vec<MergeIntoClause>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        ready(Err(refused(PUBLISHED, "INSERT the next snapshot, whole"))).boxed()
    }}
}

const PUBLISHED: &str = "what was published cannot be changed, because it may have been read";

impl PublicationTable {
    fn publishing<'a>(
        &'a self,
        session: &'a dyn Session,
        input: Arc<dyn ExecutionPlan>,
        op: InsertOp,
    ) -> PlanFuture<'a> {
        Box::pin(async move {
            if op != InsertOp::Append {
                return Err(refused(
                    "earlier releases cannot be replaced, because they may have been read",
                    "INSERT INTO publishes the next one",
                ));
            }
            let Some(Publisher { publication, parts, several, hierarchies, updates, .. }) = &self.publisher else {
                return Err(refused(
                    "this one is declared for reading",
                    "to publish, declare its columns and OPTIONS such as 'method' 'm_invariant'",
                ));
            };
            let Some(hidden) = input.downcast_ref::<HiddenExec>() else {
                return Err(refused(
                    "this session does not check what is inserted",
                    "make it with datafusion_anonymize::register_all, and keep its analyzer rules",
                ));
            };
            refuse_loose_files("publication", &read_files(&hidden.revealed()?), session.runtime_env()).await?;
            let open = self.open(publication.clone(), session.runtime_env()).await?;
            let mut publication = open.publication().clone();
            let left_out = marked_columns(&input.schema());
            let remembered = match publication.spec.method.as_method().leaves_out() {
                LeftOut::Remembered => left_out.as_slice(),
                _ => &[],
            };
            let microdata =
                self.microdata(&publication, (parts, *several), remembered, input, session.config_options())?;
            let name = publication.spec.method.name();
            let remembered = ledger(&open, &publication, &microdata.schema())?;
            let trees = planned_if_given(session, hierarchies.as_ref(), name, "hierarchies").await?;
            let updates =
                planned_if_given(session, updates.as_ref(), name, publication.spec.method.values_argument()).await?;
            // Of others, every release is one of its own whatever is set.
            if publication.spec.may_count_periods() {
                let settings = session.config_options().extensions.get::<AnonymizeOptions>();
                let set = settings.and_then(|settings| settings.period.as_deref()).map(parse_period).transpose()?;
                if let (Some(declared), Some(set)) = (publication.period, set)
                    && declared != set
                {
                    return Err(refused(
                        &format!(
                            "the declaration says that the snapshot is of period {declared}, and anonymize.{PERIOD} that it is of {set}"
                        ),
                        &format!("take the option out of the declaration, or SET anonymize.{PERIOD} = ''"),
                    ));
                }
                publication.period = publication.period.or(set);
            }
            periods_of_releases(&open, &publication)?;
            let spec = &publication.spec;
            let layout = Layout::try_new(&microdata.schema(), &spec.roles).map_err(|error| error.in_function(name))?;
            let cells = match (open.cells(), spec.cells) {
                (Some(begun), _) => begun,
                (None, 0) => WantedCells::Auto.choose(&spec.method, &layout, true, &microdata, session).cells,
                (None, cells) => cells,
            };
            let (previous, people) = match remembered {
                Some((StateKind::People, people)) => (None, Some(people)),
                remembered => (remembered, None),
            };
            let mut inputs = Inputs { previous, hierarchies: trees, updates, left_out, ..Inputs::new(microdata) };
            if people.is_some() {
                count_people(session, &mut inputs, name, people).await?;
            }
            if cells > 1 {
                survey(session, &mut inputs, &spec.method, &layout, hierarchies.as_ref()).await?;
            }
            publication.spec.cells = cells;
            let publishing = PublishExec::try_new(inputs, publication, open.decided().unwrap_or(0))?;
            Ok(Arc::new(publishing) as Arc<dyn ExecutionPlan>)
        })
    }

    /// Opens it as this statement finds it. It begins where it was declared to, once: what was there and is not any more is away.
    async fn open(&self, declared: Publication, runtime: &Arc<RuntimeEnv>) -> Result<OpenPublication> {
        let begin = declared.begin && !self.seen.load(Ordering::Relaxed);
        // Of a publication that has begun before, the declaration is refused when something else than its first release is published.
        let late = declared.begin && self.begun;
        let mut open = OpenPublication::open(Publication { begin, ..declared }, runtime).await?;
        if open.decided().is_some() {
            self.seen.store(true, Ordering::Relaxed);
            open.set_begin(late);
        }
        Ok(open)
    }

    /// Returns the columns with roles, in the order of the layout. Those sensitive ones that are remembered have any value, which is not looked at.
    fn microdata(
        &self,
        publication: &Publication,
        (parts, several): (&[FieldRef], Several),
        remembered: &[String],
        input: Arc<dyn ExecutionPlan>,
        config: &ConfigOptions,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let schema = input.schema();
        let roles = &publication.spec.roles;
        let declared = |name: &String| -> Result<Arc<dyn PhysicalExpr>> {
            let column = self.schema.index_of(name)?;
            let is_sensitive =
                |name: &String| roles.sensitive.as_ref() == Some(name) || parts.iter().any(|part| part.name() == name);
            if remembered.contains(name) && is_sensitive(name) {
                return Ok(expressions::lit(ScalarValue::new_default(self.schema.field(column).data_type())?));
            }
            let found: Arc<dyn PhysicalExpr> = Arc::new(expressions::Column::new(schema.field(column).name(), column));
            expressions::cast(found, &schema, self.schema.field(column).data_type().clone())
        };
        let columns = roles.columns().map(|name| {
            let expr = if !parts.is_empty() && roles.sensitive.as_ref() == Some(name) {
                let columns = parts.iter().map(|part| declared(part.name())).collect::<Result<Vec<_>>>()?;
                composed_columns((parts, several), columns, config)
            } else {
                declared(name)?
            };
            Ok((expr, name.clone()))
        });
        let columns = columns.collect::<Result<Vec<_>>>()?;
        Ok(Arc::new(ProjectionExec::try_new(columns, input)?))
    }
}

/// Returns the files that a plan reads, except those that a Delta table chose.
fn read_files(plan: &Arc<dyn ExecutionPlan>) -> Vec<(ObjectStoreUrl, StorePath)> {
    if plan.name().starts_with("DeltaScan") {
        return Vec::new();
    }
    let mut files: Vec<_> = plan.children().into_iter().flat_map(read_files).collect();
    if let Some(scan) = plan.downcast_ref::<DataSourceExec>()
        && let Some(config) = scan.data_source().downcast_ref::<FileScanConfig>()
    {
        let read = config.file_groups.iter().flat_map(|group| group.iter());
        files.extend(read.map(|file| (config.object_store_url.clone(), file.object_meta.location.clone())));
    }
    files
}

/// Returns a plan that reads the ledger, if it remembers people and has entries.
fn ledger(
    open: &OpenPublication,
    publication: &Publication,
    microdata: &Schema,
) -> Result<Option<(StateKind, Arc<dyn ExecutionPlan>)>> {
    let Some(kind) = publication.spec.remembers() else { return Ok(None) };
    let Some(entries) = open.entries().filter(|_| open.decided() != Some(0)) else { return Ok(None) };
    let named = |error: Error| error.in_function(publication.spec.method.name());
    let layout = Layout::try_new(microdata, &publication.spec.roles).map_err(named)?;
    let columns = kind.columns_read(&layout).map_err(named)?;
    // The same long texts come again and again in these.
    let columns = columns.into_iter().map(|field| match field.name().as_str() {
        SIGNATURE => Arc::new(with_view(&field)),
        _ => field,
    });
    let columns: Vec<FieldRef> = columns.collect();
    let plan = entries.plan(Arc::new(Schema::new(columns)))?;
    let function = publication.spec.method.name().to_owned();
    let origin = Origin { function, argument: "the ledger".to_owned(), names: Vec::new() };
    Ok(Some((kind, hide(&plan, &Arc::new(origin))?)))
}
