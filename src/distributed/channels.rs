//! Connections to workers, whose errors say which worker they come from.

use std::collections::HashSet;
use std::sync::Arc;

use async_trait::async_trait;
use datafusion::arrow::record_batch::RecordBatch;
use datafusion::common::Result;
use datafusion::error::DataFusionError;
use datafusion::execution::TaskContext;
use datafusion::physical_plan::metrics::ExecutionPlanMetricsSet;
use datafusion_distributed::grpc::DefaultChannelResolver;
use datafusion_distributed::{
    ChannelResolver, CoordinatorToWorkerMsg, ExecuteTaskRequest, GetWorkerInfoRequest, GetWorkerInfoResponse,
    SetPlanRequest, WorkerChannel, WorkerToCoordinatorMsg,
};
use futures::StreamExt;
use futures::stream::BoxStream;
use parking_lot::Mutex;
use tonic::codegen::http::HeaderMap;
use url::Url;

use super::VERSION;
use super::guard::after_the_journey;
use crate::error::{AnonymizeError, ErrorKind, spilled};

/// Opens connections by another resolver (the engine's own by default). It asks a worker once for its version, and
/// names the worker in errors that it or the way to it is the cause of.
#[derive(Clone)]
pub struct NamedChannels {
    inner: Arc<dyn ChannelResolver + Send + Sync>,
    known: Arc<Mutex<HashSet<Url>>>,
}

impl NamedChannels {
    /// Wraps a host's own resolver, which encrypts and authenticates, say. Registered with
    /// [`with_distributed_channel_resolver`](datafusion_distributed::DistributedExt::with_distributed_channel_resolver)
    /// after [`coordinator`](super::coordinator), and on workers after [`register`](super::register).
    pub fn around(inner: impl ChannelResolver + Send + Sync + 'static) -> Self {
        Self { inner: Arc::new(inner), known: Arc::default() }
    }
}

impl Default for NamedChannels {
    fn default() -> Self {
        Self::around(DefaultChannelResolver::default())
    }
}

#[async_trait]
impl ChannelResolver for NamedChannels {
    async fn get_worker_client_for_url(&self, url: &Url) -> Result<Box<dyn WorkerChannel>> {
        let named = |error| told(url, error);
        let mut channel = self.inner.get_worker_client_for_url(url).await.map_err(named)?;
        let known = self.known.lock().contains(url);
        if !known {
            let info = channel.get_worker_info(GetWorkerInfoRequest {}).await.map_err(named)?;
            // A host may call its workers what it likes; then the codec refuses.
            if info.version.starts_with(env!("CARGO_PKG_NAME")) && info.version != VERSION {
                let text =
                    format!("worker {url} is {}, and this is {VERSION}; run the same version on both", info.version);
                return Err(AnonymizeError::new(CLUSTER, ErrorKind::Refused, text).into());
            }
            self.known.lock().insert(url.clone());
        }
        Ok(Box::new(NamedChannel { url: url.clone(), inner: channel }))
    }
}

struct NamedChannel {
    url: Url,
    inner: Box<dyn WorkerChannel>,
}

#[async_trait]
impl WorkerChannel for NamedChannel {
    async fn coordinator_channel(
        &mut self,
        headers: HeaderMap,
        set_plan_request: SetPlanRequest,
        c2w_stream: BoxStream<'static, CoordinatorToWorkerMsg>,
        metrics: ExecutionPlanMetricsSet,
        task_ctx: &Arc<TaskContext>,
    ) -> Result<BoxStream<'static, Result<WorkerToCoordinatorMsg>>> {
        let messages = self.inner.coordinator_channel(headers, set_plan_request, c2w_stream, metrics, task_ctx).await;
        let url = self.url.clone();
        let messages = messages.map_err(|error| told(&self.url, error))?;
        Ok(messages.map(move |message| message.map_err(|error| told(&url, error))).boxed())
    }

    async fn execute_task(
        &mut self,
        headers: HeaderMap,
        request: ExecuteTaskRequest,
        metrics: ExecutionPlanMetricsSet,
        task_ctx: &Arc<TaskContext>,
    ) -> Result<Vec<BoxStream<'static, Result<RecordBatch>>>> {
        let streams = self.inner.execute_task(headers, request, metrics, task_ctx).await;
        let streams = streams.map_err(|error| told(&self.url, error))?;
        let named = streams.into_iter().map(|rows| {
            let url = self.url.clone();
            rows.map(move |batch| batch.map_err(|error| told(&url, error))).boxed()
        });
        Ok(named.collect())
    }

    async fn get_worker_info(&mut self, request: GetWorkerInfoRequest) -> Result<GetWorkerInfoResponse> {
        self.inner.get_worker_info(request).await.map_err(|error| told(&self.url, error))
    }
}

/// Name in errors of the cluster, in place of a function's.
const CLUSTER: &str = "cluster";

/// Messages of the engine and the crates below about a lost or missing connection.
const LOST: [&str; 10] = [
    "Error connecting to Distributed DataFusion worker",
    "Error waiting for Distributed DataFusion channel",
    "tcp connect error",
    "transport error",
    "h2 protocol error",
    "broken pipe",
    "connection reset",
    "connection closed",
    "channel closed",
    "operation was canceled",
];

/// Message of the engine when a worker has no codec where the coordinator has ours.
const NO_CODEC: &str = "required codec";

/// Message of the engine when a worker waits for a plan that never comes.
const NO_PLAN: &str = "while waiting for the plan";

/// Returns the error that came from a worker, or from the way to it.
fn told(url: &Url, error: DataFusionError) -> DataFusionError {
    if let Some(own) = after_the_journey(&error).or_else(|| AnonymizeError::of(&error).cloned()) {
        return own.into();
    }
    let url = url.as_str().trim_end_matches('/');
    if let DataFusionError::ResourcesExhausted(text) = error.find_root() {
        return DataFusionError::ResourcesExhausted(format!("worker {url}: {text}"));
    }
    if let Some(text) = spilled(&error) {
        return DataFusionError::ResourcesExhausted(format!("worker {url}: {text}"));
    }
    let text = error.to_string();
    let refused = |text: String| AnonymizeError::new(CLUSTER, ErrorKind::Refused, text).into();
    // What a worker could not read is told as it is.
    let read = matches!(
        error.find_root(),
        DataFusionError::ObjectStore(_) | DataFusionError::ArrowError(..) | DataFusionError::ParquetError(_)
    );
    if !read && LOST.iter().any(|known| text.contains(known)) {
        let text = format!(
            "worker {url} is not there, or no longer; nothing was published, and the statement can be run again once all workers of the \
             cluster are there"
        );
        return AnonymizeError::new(CLUSTER, ErrorKind::Input, text).into();
    }
    if text.contains(NO_CODEC) {
        return refused(format!(
            "worker {url} does not know the operators of datafusion-anonymize; make its session with datafusion_anonymize::distributed::worker, \
             and register codecs in the same order on all sides"
        ));
    }
    if text.contains(NO_PLAN) {
        return refused(format!(
            "worker {url} has waited in vain for what to do; another part of the statement has failed"
        ));
    }
    error.context(format!("on worker {url}"))
}
