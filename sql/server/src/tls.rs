//! TLS: a certificate and its key, read again when their files change.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::SystemTime;

use anyhow::Context;
use parking_lot::Mutex;
use pgwire::tokio::TlsAcceptor;
use pgwire::tokio::tokio_rustls::rustls::crypto::ring::default_provider;
use pgwire::tokio::tokio_rustls::rustls::pki_types::pem::PemObject;
use pgwire::tokio::tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};
use pgwire::tokio::tokio_rustls::rustls::{DEFAULT_VERSIONS, ServerConfig};

/// What PostgreSQL's clients that begin with TLS call their protocol.
const PROTOCOL: &[u8] = b"postgresql";

/// By what a file is known to be another: when it was written, its length, its inode. None where it is not there.
type Stamp = Option<(SystemTime, u64, u64)>;

/// A certificate and its key, in two files that may be replaced while the server runs.
pub struct Certificates {
    certificate: PathBuf,
    key: PathBuf,
    current: Mutex<Current>,
}

struct Current {
    /// Of the files that were read last, whether they could be used or not.
    stamps: [Stamp; 2],
    acceptor: TlsAcceptor,
}

impl Certificates {
    /// Reads both files.
    ///
    /// # Errors
    /// A file that cannot be read, has no certificate or key, or a key of another certificate.
    pub fn read(certificate: &Path, key: &Path) -> anyhow::Result<Certificates> {
        let stamps = [stamp(certificate), stamp(key)];
        let current = Mutex::new(Current { stamps, acceptor: acceptor(certificate, key)? });
        Ok(Certificates { certificate: certificate.to_owned(), key: key.to_owned(), current })
    }

    /// What takes the next connection. Looks at the files on a thread that may block.
    pub async fn acceptor(self: &Arc<Self>) -> TlsAcceptor {
        let of = Arc::clone(self);
        let looked = tokio::task::spawn_blocking(move || of.look());
        looked.await.unwrap_or_else(|_| self.current.lock().acceptor.clone())
    }

    /// Reads the files again if they changed. Until they fit together, the last ones that did stay in use.
    fn look(&self) -> TlsAcceptor {
        let stamps = [stamp(&self.certificate), stamp(&self.key)];
        // Those who come meanwhile wait for what is read here, and read nothing themselves.
        let mut current = self.current.lock();
        if stamps != current.stamps {
            current.stamps = stamps;
            match acceptor(&self.certificate, &self.key) {
                Ok(acceptor) => {
                    current.acceptor = acceptor;
                    tracing::info!("reloaded the TLS certificate from {}", self.certificate.display());
                }
                Err(e) => {
                    tracing::warn!("cannot reload the TLS certificate, the one loaded before stays in use: {e:#}")
                }
            }
        }
        current.acceptor.clone()
    }
}

#[allow(clippy::disallowed_methods, reason = "the certificate's files are this program's own")]
fn stamp(path: &Path) -> Stamp {
    let of = std::fs::metadata(path).ok()?;
    #[cfg(unix)]
    let inode = std::os::unix::fs::MetadataExt::ino(&of);
    #[cfg(not(unix))]
    let inode = 0;
    Some((of.modified().ok()?, of.len(), inode))
}

fn acceptor(certificate: &Path, key: &Path) -> anyhow::Result<TlsAcceptor> {
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
