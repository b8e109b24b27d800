//! The same SQL on a cluster, by the engine [`datafusion_distributed`] (cargo feature `distributed`).
//!
//! The engine cuts a physical plan into stages and sends them to workers. Rows are read, filtered, joined and exchanged by as many tasks as
//! the engine likes; a release is made by one task that has the whole of its inputs, or, if it is made in cells, by several of which each
//! has whole cells. What publishes stays on the coordinator, and so does what computes a table about releases.
//!
//! ```no_run
//! use datafusion::execution::SessionStateBuilder;
//! use datafusion::prelude::SessionContext;
//! use datafusion_anonymize::distributed::{self, Workers};
//! use datafusion_distributed::{DistributedExt, Worker};
//!
//! # fn main() -> datafusion::error::Result<()> {
//! // On the coordinator:
//! let builder = SessionStateBuilder::new().with_default_features();
//! let builder = builder.with_distributed_worker_resolver(Workers::parse(["http://localhost:9001", "http://localhost:9002"])?);
//! let context = SessionContext::new_with_state(distributed::coordinator(builder).build());
//! datafusion_anonymize::register_all(&context)?;
//!
//! // On each worker, to be added to a server of tonic:
//! let service = Worker::from_session_builder(distributed::worker).with_version(distributed::VERSION).into_worker_server();
//! # let _ = service;
//! # Ok(())
//! # }
//! ```
//!
//! # What workers are trusted with
//! Everything: plans carry the seed of a release, and rows are microdata. Connections of the engine are neither encrypted nor
//! authenticated unless the host's own [`ChannelResolver`](datafusion_distributed::ChannelResolver) and server make them so;
//! `docs/cluster.md` has an example with TLS.
//!
//! # What a host's own planner must respect
//! An operator of ours has one partition and needs each of its inputs whole. A plan that runs it in several tasks, each with a part of the
//! table and of the ledger, would be a breach; so every one refuses to run where the engine says that it is one task of several, unless it
//! makes cells and the planner of this module has put the exchange below it.

mod channels;
mod codec;
mod finish_after_write;
mod guard;
mod planner;
mod stages;
mod tasks;
#[cfg(test)]
mod tests;

use std::sync::Arc;

use datafusion::common::{Result, plan_datafusion_err};
use datafusion::execution::{SessionState, SessionStateBuilder};
use datafusion_distributed::{DistributedExt, SessionStateBuilderExt, WorkerQueryContext, WorkerResolver};
use url::Url;

pub use channels::NamedChannels;
pub use codec::AnonymizeCodec;

use crate::exec::{InputPlanner, cell_function, place_function};
use crate::sql::shipped_functions;
use planner::{ClusterPlanner, Local, Opened};

/// Version that workers tell a coordinator; one of another version is refused.
pub const VERSION: &str = concat!("datafusion-anonymize ", env!("CARGO_PKG_VERSION"));

/// Registers what both sides need: the codec of our operators, what says that they run in one task, the functions that plans have, and errors
/// that name the worker they come from. One function on purpose: with the codec alone, operators could be sent to where they see a part
/// of a table.
///
/// A host's own codecs are registered in the same order on the coordinator and on all workers, as the engine demands.
#[must_use]
pub fn register(mut builder: SessionStateBuilder) -> SessionStateBuilder {
    let functions = [cell_function(), place_function()].into_iter().chain(shipped_functions());
    builder.scalar_functions().get_or_insert_default().extend(functions);
    let builder = builder
        .with_distributed_user_codec(AnonymizeCodec)
        .with_distributed_desired_task_count_handler(tasks::desired_task_count);
    builder.with_distributed_channel_resolver(NamedChannels::default())
}

/// Returns a session that plans for a cluster: [`register`], the engine's planner, and ours around it. The host says which workers there are
/// ([`with_distributed_worker_resolver`](DistributedExt::with_distributed_worker_resolver)), and then adds our functions
/// ([`register_all`](crate::register_all)). A query planner that the builder has plans as before, for one process, and what it plans is
/// distributed.
#[must_use]
pub fn coordinator(builder: SessionStateBuilder) -> SessionStateBuilder {
    let mut builder = register(builder);
    let local = Local::of(builder.query_planner().take());
    let config = builder.config().get_or_insert_default();
    config.set_extension(Arc::new(InputPlanner(Arc::clone(&local))));
    let mut builder = builder.with_query_planner(Arc::new(Opened(Arc::clone(&local)))).with_distributed_planner();
    let distributed = builder.query_planner().take().unwrap_or_else(|| Arc::clone(&local));
    builder.with_query_planner(Arc::new(ClusterPlanner { local, distributed }))
}

/// Returns the session of a worker, for [`Worker::from_session_builder`](datafusion_distributed::Worker::from_session_builder).
///
/// # Errors
/// None; the engine wants a result.
pub async fn worker(context: WorkerQueryContext) -> Result<SessionState> {
    std::future::ready(Ok(register(context.builder).build())).await
}

/// Workers that are known from the start.
#[derive(Debug, Clone)]
pub struct Workers(Vec<Url>);

impl Workers {
    /// Reads workers by their URLs, such as `http://localhost:9001`.
    ///
    /// # Errors
    /// When there is none, or one is no URL of a worker.
    pub fn parse<U: AsRef<str>>(urls: impl IntoIterator<Item = U>) -> Result<Self> {
        let wrong = |url: &str| plan_datafusion_err!("'{url}' is not the URL of a worker; write http://host:port");
        let urls = urls.into_iter().map(|url| {
            let text = url.as_ref().trim();
            let parsed = Url::parse(text).map_err(|_| wrong(text))?;
            match matches!(parsed.scheme(), "http" | "https") && parsed.port_or_known_default().is_some() {
                true => Ok(parsed),
                false => Err(wrong(text)),
            }
        });
        let urls = urls.collect::<Result<Vec<_>>>()?;
        match urls.is_empty() {
            true => Err(plan_datafusion_err!("a cluster without workers; write http://host:port")),
            false => Ok(Self(urls)),
        }
    }
}

impl WorkerResolver for Workers {
    fn get_urls(&self) -> Result<Vec<Url>> {
        Ok(self.0.clone())
    }
}
