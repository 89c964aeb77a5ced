//! How a process proves to an ensemble who it is, and who may then do what with its nodes. Follows: `ZKUtil#createACL`, `ZKAuthentication`.

use std::fmt;
use zookeeper_client::{Acl, Acls, Connector, CreateMode, CreateOptions, Permission};

/// All that anyone may do with what this process makes, where it has no name.
const OPEN: Acls<'static> = Acls::anyone_all();
/// Clients of HBase read where the servers are without a name of their own.
static OWN: [Acl; 2] =
    [Acl::new_const(Permission::ALL, "auth", ""), Acl::new_const(Permission::READ, "world", "anyone")];

/// What a session is opened with.
#[derive(Clone, Debug, Default)]
pub struct Security {
    /// The name that the ensemble knows this process by.
    pub sasl: Option<Sasl>,
    /// Over TLS; builds with the feature `tls` alone.
    pub tls: Option<Tls>,
}

/// A name and its password, for SASL's DIGEST-MD5.
#[derive(Clone)]
pub struct Sasl {
    /// The name. All servers of a cluster have the same: a node is its maker's.
    pub username: String,
    /// The password.
    pub password: String,
}

impl fmt::Debug for Sasl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Sasl").field("username", &self.username).finish_non_exhaustive()
    }
}

/// Whom to trust and whom to be, in PEM.
#[derive(Clone)]
pub struct Tls {
    /// Certificates of authorities.
    pub trusted: String,
    /// This process's certificate and its key, where the ensemble asks for one.
    pub identity: Option<String>,
}

impl fmt::Debug for Tls {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Tls").field("has_identity", &self.identity.is_some()).finish_non_exhaustive()
    }
}

impl Security {
    /// How nodes are made.
    pub(crate) fn making(&self, mode: CreateMode) -> CreateOptions<'static> {
        mode.with_acls(if self.sasl.is_some() { Acls::new(&OWN) } else { OPEN })
    }

    /// What is wrong with it is a sentence.
    pub(crate) fn apply(&self, connector: Connector) -> Result<Connector, String> {
        let connector = match &self.sasl {
            Some(Sasl { username, password }) => {
                connector.with_sasl(zookeeper_client::SaslOptions::digest_md5(username.clone(), password.clone()))
            }
            None => connector,
        };
        match &self.tls {
            Some(tls) => over_tls(connector, tls),
            None => Ok(connector),
        }
    }
}

#[cfg(feature = "tls")]
fn over_tls(connector: Connector, tls: &Tls) -> Result<Connector, String> {
    use zookeeper_client::{TlsCa, TlsCerts, TlsIdentity, TlsOptions};
    let wrong =
        |what: &str, error: zookeeper_client::Error| format!("the PEM file that {what} names cannot be read: {error}");
    let ca = TlsCa::from_pem(&tls.trusted).map_err(|error| wrong("zookeeper.ssl.trustStore.location", error))?;
    let mut certs = TlsCerts::builder().with_ca(ca);
    if let Some(identity) = &tls.identity {
        let identity = TlsIdentity::from_pem(identity, identity);
        certs = certs.with_identity(identity.map_err(|error| wrong("zookeeper.ssl.keyStore.location", error))?);
    }
    let certs = certs.build().map_err(|error| error.to_string())?;
    Ok(connector.with_tls(TlsOptions::default().with_certs(certs)))
}

#[cfg(not(feature = "tls"))]
fn over_tls(_: Connector, _: &Tls) -> Result<Connector, String> {
    Err("this build has no TLS for ZooKeeper: build with the feature zookeeper-tls".to_owned())
}
