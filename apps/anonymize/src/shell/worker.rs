//! `anonymize worker`, and the session of a shell that has workers.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::Arc;

use datafusion::common::{Result, exec_datafusion_err};
use datafusion::execution::SessionStateBuilder;
use datafusion::execution::object_store::{DefaultObjectStoreRegistry, ObjectStoreRegistry};
use datafusion_anonymize::distributed::{self, VERSION, Workers};
use datafusion_distributed::{DistributedExt, Worker};
use futures::FutureExt;
use object_store::ObjectStore;
use tokio::net::TcpListener;
use tokio_stream::wrappers::TcpListenerStream;
use tonic::transport::Server;
use url::Url;

use super::limits::Limits;
use super::signals::{GRACE, remove_at_end, told_to_end};

/// Run parts of the statements of shells that name this worker in --workers
///
/// A worker is sent plans and microdata, over connections that are neither encrypted nor authenticated: let nobody else reach it. It needs the
/// files and object stores that the statements read, by the same paths and with its own environment's credentials. It writes nothing but
/// what it spills.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Port to listen on; 0 takes a free one
    #[arg(long, default_value_t = 9001)]
    port: u16,

    /// Address to listen on
    #[arg(long, default_value_t = IpAddr::V4(Ipv4Addr::LOCALHOST), value_name = "ADDRESS")]
    bind: IpAddr,

    #[command(flatten)]
    limits: Limits,
}

/// Works until it is told to stop.
/// Fails when it cannot listen.
pub(crate) async fn run(args: Args) -> Result<()> {
    let runtime = args.limits.runtime()?.with_object_store_registry(Arc::new(OnDemand::default()));
    let runtime = runtime.build_arc()?;
    remove_at_end(&runtime.disk_manager);
    let worker = Worker::from_session_builder(distributed::worker).with_runtime_env(runtime).with_version(VERSION);
    let address = SocketAddr::new(args.bind, args.port);
    let listener = TcpListener::bind(address)
        .await
        .map_err(|error| exec_datafusion_err!("cannot listen on {address}: {error}; write another --port or --bind"))?;
    println!("{VERSION}, worker at http://{}", listener.local_addr()?);
    let service = worker.into_worker_server();
    let server = Server::builder().add_service(service);
    let told = told_to_end(GRACE).map(|_| ());
    let served = server.serve_with_incoming_shutdown(TcpListenerStream::new(listener), told).await;
    served.map_err(|error| exec_datafusion_err!("the worker has ended: {error}"))
}

/// Returns the session of a coordinator with these workers.
/// Fails when a URL is none.
pub(super) fn coordinator(builder: SessionStateBuilder, workers: &[String]) -> Result<SessionStateBuilder> {
    let builder = builder.with_distributed_worker_resolver(Workers::parse(workers)?);
    Ok(distributed::coordinator(builder))
}

/// Object stores as the environment describes them, set up when a plan reads from one.
#[derive(Debug, Default)]
struct OnDemand {
    known: DefaultObjectStoreRegistry,
}

impl ObjectStoreRegistry for OnDemand {
    fn register_store(&self, url: &Url, store: Arc<dyn ObjectStore>) -> Option<Arc<dyn ObjectStore>> {
        self.known.register_store(url, store)
    }

    fn get_store(&self, url: &Url) -> Result<Arc<dyn ObjectStore>> {
        if let Ok(store) = self.known.get_store(url) {
            return Ok(store);
        }
        // Plans are read where nothing can be waited for; and it happens once for a bucket.
        let set_up = std::thread::scope(|scope| {
            let set_up = scope.spawn(|| {
                let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
                runtime.block_on(anonymize_stores::of_the_environment(url))
            });
            set_up.join().map_err(|_| exec_datafusion_err!("the object store of {} cannot be set up", Shown(url)))
        });
        let store = set_up??;
        self.known.register_store(url, Arc::clone(&store));
        Ok(store)
    }
}

/// A URL without what may be a password in it.
struct Shown<'a>(&'a Url);

impl fmt::Display for Shown<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}://{}", self.0.scheme(), self.0.host_str().unwrap_or_default())
    }
}
