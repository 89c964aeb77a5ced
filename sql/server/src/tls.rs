//! TLS: a certificate and its key, read when the server starts.

use std::path::Path;
use std::sync::Arc;

use anyhow::Context;
use pgwire::tokio::TlsAcceptor;
use pgwire::tokio::tokio_rustls::rustls::crypto::ring::default_provider;
use pgwire::tokio::tokio_rustls::rustls::pki_types::pem::PemObject;
use pgwire::tokio::tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};
use pgwire::tokio::tokio_rustls::rustls::{DEFAULT_VERSIONS, ServerConfig};

/// What PostgreSQL's clients that begin with TLS call their protocol.
const PROTOCOL: &[u8] = b"postgresql";

/// What takes connections with TLS.
///
/// # Errors
/// A file that cannot be read, has no certificate or key, or a key of another certificate.
pub fn acceptor(certificate: &Path, key: &Path) -> anyhow::Result<TlsAcceptor> {
    let read = || -> Result<Vec<CertificateDer<'static>>, _> { CertificateDer::pem_file_iter(certificate)?.collect() };
    let chain = read().with_context(|| format!("cannot read certificates from {}", certificate.display()))?;
    anyhow::ensure!(!chain.is_empty(), "there is no certificate in {}", certificate.display());
    let private = PrivateKeyDer::from_pem_file(key);
    let private = private.with_context(|| format!("cannot read a private key from {}", key.display()))?;
    let mut config = ServerConfig::builder_with_provider(Arc::new(default_provider()))
        .with_protocol_versions(DEFAULT_VERSIONS)?
        .with_no_client_auth()
        .with_single_cert(chain, private)
        .with_context(|| format!("{} and {} do not fit together", certificate.display(), key.display()))?;
    config.alpn_protocols = vec![PROTOCOL.to_vec()];
    Ok(TlsAcceptor::from(Arc::new(config)))
}
