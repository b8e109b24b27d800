//! Two workers and a coordinator that trust nobody else: connections are encrypted, and both ends show a certificate of one authority.
//!
//! ```sh
//! cargo run --release --features distributed --example cluster -- tests/cluster
//! ```
//!
//! The directory has `authority.crt`, `member.crt` and `member.key`. In production every machine has its own certificate and key.

use std::collections::HashMap;
use std::error::Error;
use std::path::Path;
use std::sync::Mutex;

use async_trait::async_trait;
use datafusion::error::{DataFusionError, Result};
use datafusion::execution::SessionStateBuilder;
use datafusion::prelude::{SessionConfig, SessionContext};
use datafusion_anonymize::distributed::{self, NamedChannels, VERSION, Workers};
use datafusion_distributed::grpc::{BoxCloneSyncChannel, create_worker_client};
use datafusion_distributed::{ChannelResolver, DistributedExt, Worker, WorkerChannel, WorkerQueryContext};
use tokio::net::TcpListener;
use tokio::task::JoinSet;
use tokio_stream::wrappers::TcpListenerStream;
use tonic::transport::{Certificate, Channel, ClientTlsConfig, Identity, Server, ServerTlsConfig};
use url::Url;

/// Identity of a machine of the cluster, and the certificates it trusts.
#[derive(Clone)]
pub(crate) struct Member {
    authority: Certificate,
    identity: Identity,
}

impl Member {
    /// Reads the files in a directory.
    pub(crate) fn read(directory: &Path) -> std::io::Result<Self> {
        let file = |name: &str| std::fs::read(directory.join(name));
        Ok(Self {
            authority: Certificate::from_pem(file("authority.crt")?),
            identity: Identity::from_pem(file("member.crt")?, file("member.key")?),
        })
    }

    /// Works on a port, for those who show a certificate of the authority.
    pub(crate) async fn work(self, listener: TcpListener) -> Result<(), Box<dyn Error + Send + Sync>> {
        encrypt();
        let tls = ServerTlsConfig::new().identity(self.identity.clone()).client_ca_root(self.authority.clone());
        let channels = NamedChannels::around(Encrypted::of(&self));
        // Workers read from each other, so they open connections, too.
        let session = move |context: WorkerQueryContext| {
            let channels = channels.clone();
            async move {
                let builder = distributed::register(context.builder).with_distributed_channel_resolver(channels);
                Ok(builder.build())
            }
        };
        let service = Worker::from_session_builder(session).with_version(VERSION).into_worker_server();
        let server = Server::builder().tls_config(tls)?.add_service(service);
        Ok(server.serve_with_incoming(TcpListenerStream::new(listener)).await?)
    }

    /// Returns a session whose statements run on these workers.
    pub(crate) fn coordinator(&self, workers: &[String]) -> Result<SessionContext> {
        encrypt();
        // The table of this example is small, and is to be read by two tasks all the same.
        let config = SessionConfig::new().with_target_partitions(2);
        let config = config.set_usize("datafusion.optimizer.repartition_file_min_size", 1);
        let builder = SessionStateBuilder::new().with_config(config).with_default_features();
        let builder = builder.with_distributed_worker_resolver(Workers::parse(workers)?);
        let builder = distributed::coordinator(builder)
            .with_distributed_channel_resolver(NamedChannels::around(Encrypted::of(self)))
            .with_distributed_file_scan_config_bytes_per_partition(1)?;
        let context = SessionContext::new_with_state(builder.build()).enable_url_table();
        datafusion_anonymize::register_all(&context)?;
        Ok(context)
    }
}

/// Says which of the crates that rustls knows does the encrypting; once for a process.
fn encrypt() {
    // Another part of the process may have said so before.
    let _ = tokio_rustls::rustls::crypto::ring::default_provider().install_default();
}

/// Opens connections to workers that show a certificate of the authority, and keeps them.
struct Encrypted {
    tls: ClientTlsConfig,
    open: Mutex<HashMap<Url, Channel>>,
}

impl Encrypted {
    fn of(member: &Member) -> Self {
        let tls = ClientTlsConfig::new().ca_certificate(member.authority.clone()).identity(member.identity.clone());
        Self { tls, open: Mutex::default() }
    }

    async fn connect(&self, url: &Url) -> Result<Channel, tonic::transport::Error> {
        Channel::from_shared(url.to_string().into_bytes())
            .unwrap_or_else(|_| Channel::from_static("https://localhost"))
            .tls_config(self.tls.clone())?
            .connect()
            .await
    }
}

#[async_trait]
impl ChannelResolver for Encrypted {
    async fn get_worker_client_for_url(&self, url: &Url) -> Result<Box<dyn WorkerChannel>> {
        let known = self.open.lock().ok().and_then(|open| open.get(url).cloned());
        let channel = match known {
            Some(channel) => channel,
            None => {
                let channel = self.connect(url).await.map_err(|error| DataFusionError::External(Box::new(error)))?;
                if let Ok(mut open) = self.open.lock() {
                    open.insert(url.clone(), channel.clone());
                }
                channel
            }
        };
        Ok(create_worker_client(BoxCloneSyncChannel::new(channel)))
    }
}

/// Makes a table of people in a folder.
pub(crate) fn table(folder: &Path) -> String {
    format!("COPY (SELECT * FROM census(20000, seed => 1)) TO '{}/people.parquet' STORED AS PARQUET", folder.display())
}

/// Returns a release of it, by two workers that make four cells.
pub(crate) fn release(folder: &Path) -> String {
    format!(
        "SELECT group_size, count(*) AS rows, sum(counterfeits) AS counterfeits
         FROM m_invariant('{}/people.parquet', 5, id => person_id, quasi => (age, education), sensitive => occupation, cells => 4, seed => 1)
         GROUP BY group_size ORDER BY group_size",
        folder.display()
    )
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error + Send + Sync>> {
    let directory = std::env::args().nth(1).unwrap_or_else(|| "tests/cluster".to_owned());
    let member = Member::read(Path::new(&directory))?;
    let (mut servers, mut workers) = (JoinSet::new(), Vec::new());
    for _ in 0..2 {
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        workers.push(format!("https://localhost:{}", listener.local_addr()?.port()));
        servers.spawn(member.clone().work(listener));
    }
    let context = member.coordinator(&workers)?;
    let folder = tempfile::tempdir()?;
    context.sql(&table(folder.path())).await?.collect().await?;
    Ok(context.sql(&release(folder.path())).await?.show().await?)
}
