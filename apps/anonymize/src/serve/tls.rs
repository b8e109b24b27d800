//! Encrypted connections: a certificate chain and its key, in PEM.

use std::path::Path;
use std::sync::Arc;

use datafusion::common::{exec_datafusion_err, exec_err};
use datafusion::error::Result;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::ServerConfig;
use tokio_rustls::rustls::crypto::ring::default_provider;
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};

/// Protocol that clients ask for that begin with TLS at once.
const PROTOCOL: &[u8] = b"postgresql";

/// Makes the acceptor for clients that want TLS.
/// Fails when a file cannot be read, has nothing in it, or the two do not fit together.
pub(super) fn acceptor(certificates: &Path, key: &Path) -> Result<TlsAcceptor> {
    let unreadable =
        |path: &Path, what: &str| exec_datafusion_err!("TLS: {} is no PEM file with {what}", path.display());
    let chain = CertificateDer::pem_file_iter(certificates)
        .and_then(Iterator::collect::<Result<Vec<_>, _>>)
        .map_err(|_| unreadable(certificates, "certificates"))?;
    if chain.is_empty() {
        return Err(unreadable(certificates, "certificates"));
    }
    let key = PrivateKeyDer::from_pem_file(key).map_err(|_| unreadable(key, "a private key"))?;
    // The build may have several providers; this one is ours.
    let config = ServerConfig::builder_with_provider(Arc::new(default_provider()))
        .with_safe_default_protocol_versions()
        .and_then(|builder| builder.with_no_client_auth().with_single_cert(chain, key));
    let mut config = match config {
        Ok(config) => config,
        Err(error) => return exec_err!("TLS: certificate and key cannot be used: {error}"),
    };
    config.alpn_protocols = vec![PROTOCOL.to_vec()];
    Ok(TlsAcceptor::from(Arc::new(config)))
}
