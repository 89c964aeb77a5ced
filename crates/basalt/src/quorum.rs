//! A real ZooKeeper ensemble in place of the embedded endpoint: where the configuration names one for a cluster.
//!
//! Always true: nothing of the root directory is touched before the node `master` is this process's. When the ensemble ends the session the process
//! ends at once, as HBase's do: others may be doing its work.

use crate::settings;
use anyhow::{Context, Result, bail};
use base::{Config, TextSetting};
use coordination::settings::{CLIENT_SECURE, KEY_STORE, SASL_PASSWORD_FILE, SASL_USERNAME, TRUST_STORE};
use coordination::{HBaseZnodes, ZnodeStore};
use model::ServerName;
use std::sync::Arc;
use std::time::Duration;
use zookeeper::{Claim, Ensemble, Options, Sasl, Security, Tls};

/// Members of the ensemble as the client takes them, `host:port,host:port`; `None` where the embedded endpoint is to serve.
pub fn connect_string(config: &Config) -> Option<String> {
    let is_cluster =
        config.text(settings::DISTRIBUTED.key).is_some_and(|text| text.trim().eq_ignore_ascii_case("true"));
    let quorum = config.text(settings::QUORUM.key).map(str::trim).filter(|text| !text.is_empty());
    let (true, Some(quorum)) = (is_cluster, quorum) else { return None };
    let port = config.get(&coordination::settings::CLIENT_PORT);
    let members = quorum.split(',').map(str::trim).filter(|member| !member.is_empty());
    let with_port = |member: &str| if member.contains(':') { member.to_owned() } else { format!("{member}:{port}") };
    Some(members.map(with_port).collect::<Vec<_>>().join(","))
}

/// Opens a session.
pub async fn connect(config: &Config, connect: String) -> Result<Arc<Ensemble>> {
    let asked_ms = config.get(&coordination::settings::SESSION_TIMEOUT_MS);
    let session_timeout = Duration::from_millis(u64::from(asked_ms));
    let security = security(config)?;
    let ensemble = Ensemble::connect(Options { connect, session_timeout, security }).await?;
    let granted_ms = ensemble.session_timeout().as_millis();
    if granted_ms < u128::from(asked_ms) {
        tracing::info!("the ZooKeeper ensemble grants a session of {granted_ms} ms where {asked_ms} ms were asked for");
    }
    Ok(Arc::new(ensemble))
}

/// How sessions are secured, with what is in the files that the configuration names.
#[allow(clippy::disallowed_methods, reason = "files of the operator's, on no volume")]
fn security(config: &Config) -> Result<Security> {
    let text = |setting: &TextSetting| config.text(setting.key).map(str::trim).filter(|text| !text.is_empty());
    let read = |setting: &TextSetting| {
        let Some(file) = text(setting) else { return Ok(None) };
        let read = std::fs::read_to_string(file);
        read.map(Some).with_context(|| format!("cannot read {file}, which {} names", setting.key))
    };
    let sasl = match text(&SASL_USERNAME) {
        Some(username) => {
            let password = read(&SASL_PASSWORD_FILE)?.with_context(|| {
                format!(
                    "{} has a name, and {} names no file with its password",
                    SASL_USERNAME.key, SASL_PASSWORD_FILE.key
                )
            })?;
            let password = password.lines().next().unwrap_or_default().to_owned();
            Some(Sasl { username: username.to_owned(), password })
        }
        None => None,
    };
    let tls = if config.get(&CLIENT_SECURE) {
        let trusted = read(&TRUST_STORE)?.with_context(|| {
            format!("{} is true, and {} names no file of trusted certificates", CLIENT_SECURE.key, TRUST_STORE.key)
        })?;
        Some(Tls { trusted, identity: read(&KEY_STORE)? })
    } else {
        None
    };
    Ok(Security { sasl, tls })
}

/// Waits until this process is the active master. A node that an earlier process at the same address left is removed, as HBase does.
pub async fn become_active_master(
    ensemble: &Ensemble,
    znodes: &HBaseZnodes,
    master: &ServerName,
    info_port: Option<u16>,
) -> Result<()> {
    // What is below it can only be made when it is there.
    ensemble.written().await?;
    let (path, value) = znodes.master_node(master, info_port);
    loop {
        let Claim::Taken(found) = ensemble.claim(&path, &value).await? else { return Ok(()) };
        let Some(active) = coordination::hbase_znodes::read_master(&found) else {
            bail!("the node {path} is not HBase's: look at zookeeper.znode.parent");
        };
        if active.address() == master.address() {
            tracing::info!("the node of the master that was at {} before is removed", active.address());
            ensemble.remove(&path).await?;
            continue;
        }
        tracing::info!("{active} is the active master; waiting for its end");
        ensemble.changed(&path).await?;
    }
}

/// Where the nodes go.
pub fn store(ensemble: &Arc<Ensemble>) -> Arc<dyn ZnodeStore> {
    ensemble.clone()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_ensemble_is_used_by_a_cluster_that_names_one() {
        let of = |pairs: &[(&str, &str)]| {
            let mut config = Config::default();
            pairs.iter().for_each(|(key, value)| config.set(*key, *value));
            connect_string(&config)
        };
        let (distributed, quorum) = (("hbase.cluster.distributed", "true"), ("hbase.zookeeper.quorum", "a, b:2182,c"));
        assert_eq!(of(&[distributed, quorum]).as_deref(), Some("a:2181,b:2182,c:2181"));
        assert_eq!(of(&[quorum]), None);
        assert_eq!(of(&[distributed]), None);
    }
}
