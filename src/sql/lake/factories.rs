//! Table factories that know Delta tables: of paths in FROM, of `STORED AS DELTATABLE`, and of `STORED AS PARQUET`.

use std::sync::Arc;

use async_trait::async_trait;
use datafusion::catalog::{Session, TableProvider, TableProviderFactory, UrlTableFactory};
#[cfg(feature = "publication")]
use datafusion::common::DataFusionError;
use datafusion::common::{Result, plan_datafusion_err, plan_err};
use datafusion::config::ConfigOptions;
use datafusion::datasource::dynamic_file::DynamicListTableFactory;
use datafusion::datasource::listing::ListingTableUrl;
use datafusion::execution::runtime_env::RuntimeEnv;
use datafusion::logical_expr::CreateExternalTable;
use datafusion::object_store::ObjectStoreExt;

#[cfg(feature = "publication")]
use super::DELTA_TABLE;
use super::folder::{Found, find, loose_text};
use super::formats::{several, several_text};
#[cfg(feature = "publication")]
use crate::error::{AnonymizeError, refusal};
use crate::exec::{TableFuture, boxed_method};
use crate::sql::csv_separators::separated_line;
#[cfg(feature = "publication")]
use crate::sql::opaque::OpaqueTable;

/// `FROM 'lake/people/'`: Delta tables where there are some, files elsewhere.
#[derive(Debug, Default)]
pub(crate) struct DeltaFolders {
    files: DynamicListTableFactory,
}

impl DeltaFolders {
    /// Makes tables of what is no Delta table; it must be told its session.
    pub(crate) fn files(&self) -> &DynamicListTableFactory {
        &self.files
    }

    fn session(&self) -> Result<(Arc<RuntimeEnv>, ConfigOptions)> {
        let session = self.files.session_store().get_session().upgrade();
        let session = session.ok_or_else(|| plan_datafusion_err!("the session has ended"))?;
        let session = session.read();
        Ok((Arc::clone(session.runtime_env()), session.config_options().clone()))
    }
}

#[async_trait]
impl UrlTableFactory for DeltaFolders {
    async fn try_new(&self, url: &str) -> Result<Option<Arc<dyn TableProvider>>> {
        if let Ok(location) = ListingTableUrl::parse(url) {
            let (runtime, config) = self.session()?;
            match find(&location, &runtime, &config).await {
                Some(Found::Table) => return newest(&location, runtime).await.map(Some),
                Some(found) => return plan_err!("{}", loose_text(url, &location, &found)),
                None => {}
            }
            if location.is_collection()
                && let Some(formats) = several(&location, &runtime, &config).await
            {
                return plan_err!("{}", several_text(url, &formats));
            }
        }
        match self.files.try_new(url).await {
            Err(error) => Err(match self.first_line(url).await.and_then(|line| separated_line(&line, url)) {
                Some(separated) => plan_datafusion_err!("'{url}' cannot be read: {separated}"),
                None => error,
            }),
            made => made,
        }
    }
}

impl DeltaFolders {
    /// Returns the first line of a CSV file, if it can be read.
    async fn first_line(&self, url: &str) -> Option<String> {
        let location = ListingTableUrl::parse(url).ok().filter(|_| url.to_ascii_lowercase().ends_with(".csv"))?;
        let (runtime, _) = self.session().ok()?;
        let store = runtime.object_store(location.object_store()).ok()?;
        let begin = store.get_range(location.prefix(), 0..4096).await.ok()?;
        String::from_utf8_lossy(&begin).lines().next().map(str::to_owned)
    }
}

#[cfg(feature = "publication")]
async fn newest(location: &ListingTableUrl, runtime: Arc<RuntimeEnv>) -> Result<Arc<dyn TableProvider>> {
    let location = crate::publication::locate(location.get_url().as_str())?;
    Ok(Arc::new(OpaqueTable(super::table::NewestVersion::open(location, runtime).await?)))
}

#[cfg(not(feature = "publication"))]
#[expect(clippy::unused_async, reason = "that of the feature is")]
async fn newest(location: &ListingTableUrl, _runtime: Arc<RuntimeEnv>) -> Result<Arc<dyn TableProvider>> {
    plan_err!(
        "{} is a Delta table, and this build has no feature publication, with which such tables are read",
        location.as_str()
    )
}

/// `STORED AS DELTATABLE`: a table that somebody else writes, for reading.
#[cfg(feature = "publication")]
#[derive(Debug)]
pub(in crate::sql) struct DeltaFactory;

#[cfg(feature = "publication")]
#[async_trait]
impl TableProviderFactory for DeltaFactory {
    boxed_method! {<'s, 'c> fn create(
        &self,
        session: &'s dyn Session,
        command: &'c CreateExternalTable,
    ) -> Result<Arc<dyn TableProvider>> {
        self.table(session, command)
    }}
}

#[cfg(feature = "publication")]
impl DeltaFactory {
    fn table<'a>(&'a self, session: &'a dyn Session, command: &'a CreateExternalTable) -> TableFuture<'a> {
        Box::pin(async move {
            let [location] = command.locations.as_slice() else {
                return Err(refusal!(DELTA_TABLE, "there must be one LOCATION, the folder of the table"));
            };
            let clauses = [
                (!command.schema.fields().is_empty(), "columns"),
                (!command.table_partition_cols.is_empty(), "PARTITIONED BY"),
                (!command.order_exprs.is_empty(), "WITH ORDER"),
                (!command.constraints.is_empty(), "constraints"),
                (command.unbounded, "UNBOUNDED"),
            ];
            if let Some((_, clause)) = clauses.into_iter().find(|(given, _)| *given) {
                return Err(refusal!(DELTA_TABLE, "leave out {clause}: the table says by itself what it has"));
            }
            let location = crate::publication::locate(location).map_err(of_table)?;
            let runtime = Arc::clone(session.runtime_env());
            let table = super::table::NewestVersion::open(location, runtime).await;
            Ok(Arc::new(OpaqueTable(table.map_err(of_table)?)) as Arc<dyn TableProvider>)
        })
    }
}

/// Turns an error about a location into one about the table.
#[cfg(feature = "publication")]
fn of_table(error: DataFusionError) -> DataFusionError {
    match AnonymizeError::of(&error) {
        Some(own) => AnonymizeError::new(DELTA_TABLE, own.kind(), own.message()).into(),
        None => error.context(DELTA_TABLE),
    }
}

/// `STORED AS PARQUET`, but not of files of a Delta table.
#[derive(Debug)]
pub(in crate::sql) struct NotLoose(pub Arc<dyn TableProviderFactory>);

#[async_trait]
impl TableProviderFactory for NotLoose {
    boxed_method! {<'s, 'c> fn create(
        &self,
        session: &'s dyn Session,
        command: &'c CreateExternalTable,
    ) -> Result<Arc<dyn TableProvider>> {
        self.table(session, command)
    }}
}

impl NotLoose {
    fn table<'a>(&'a self, session: &'a dyn Session, command: &'a CreateExternalTable) -> TableFuture<'a> {
        Box::pin(async move {
            for text in &command.locations {
                let Ok(location) = ListingTableUrl::parse(text) else { continue };
                if let Some(found) = find(&location, session.runtime_env(), session.config_options()).await {
                    return plan_err!("{}: {}", command.name, loose_text(text, &location, &found));
                }
            }
            self.0.create(session, command).await
        })
    }
}
