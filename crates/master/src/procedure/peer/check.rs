//! What a peer may be. Follows: `ReplicationPeerManager#checkPeerConfig`, `ZKConfig#validateClusterKey`.

use crate::{MasterError, Result};
use convert::from_proto;
use proto::pb;

fn refused<T>(message: impl std::fmt::Display) -> Result<T> {
    Err(MasterError::do_not_retry(message))
}

/// A peer's id is the name of its node and of its file.
///
/// # Errors
/// It cannot be.
pub(crate) fn check_id(id: &str) -> Result<()> {
    let legal = !id.is_empty() && !id.starts_with('.') && !id.contains(['-', '/', '\0']) && id.len() <= 200;
    if legal { Ok(()) } else { refused(format!("Found invalid peer name: {id}")) }
}

/// `hosts:port:/parent`, or with a port for each host.
fn is_cluster_key(key: &str) -> bool {
    let parts: Vec<&str> = key.split(':').collect();
    let parent_is_legal = |parent: &str| parent.starts_with('/') && parent.len() > 1 && !parent.ends_with('/');
    match parts[..] {
        [hosts, port, parent] => !hosts.is_empty() && port.parse::<u16>().is_ok() && parent_is_legal(parent),
        [.., port, parent] if parts.len() > 3 => port.parse::<u16>().is_ok() && parent_is_legal(parent),
        _ => false,
    }
}

/// A configuration that the other cluster can be reached by, and that picks tables in one way.
///
/// # Errors
/// What is wrong with it.
pub(crate) fn check_config(config: &pb::ReplicationPeer) -> Result<()> {
    let endpoint = config.replication_endpoint_impl.as_deref().unwrap_or_default().trim();
    if !endpoint.is_empty()
        && endpoint != "org.apache.hadoop.hbase.replication.regionserver.HBaseInterClusterReplicationEndpoint"
    {
        return refused(format!("Can not instantiate configured replication endpoint class={endpoint}"));
    }
    let key = config.clusterkey.as_deref().unwrap_or_default();
    if !is_cluster_key(key) {
        return refused(format!("Invalid cluster key: {key}"));
    }
    if let Some(filters) =
        config.configuration.iter().find(|pair| pair.name == "hbase.replication.source.custom.walentryfilters")
        && let Some(filter) = filters.value.split(',').find(|filter| !filter.is_empty())
    {
        return refused(format!(
            "Configured WALEntryFilter {filter} could not be created. Failing add/update peer operation."
        ));
    }
    if config.replicate_all.unwrap_or(true) {
        if !config.namespaces.is_empty() || !config.table_cfs.is_empty() {
            return refused("Need clean namespaces or table-cfs config firstly when you want replicate all cluster");
        }
        return check_conflicts(&config.exclude_namespaces, &config.exclude_table_cfs);
    }
    if !config.exclude_namespaces.is_empty() || !config.exclude_table_cfs.is_empty() {
        return refused(
            "Need clean exclude-namespaces or exclude-table-cfs config firstly when replicate_all flag is false",
        );
    }
    check_conflicts(&config.namespaces, &config.table_cfs)
}

fn check_conflicts(namespaces: &[bytes::Bytes], tables: &[pb::TableCf]) -> Result<()> {
    for table in tables.iter().filter_map(|table| table.table_name.as_ref()) {
        let table = from_proto::table_name(table)?;
        let namespace = table.namespace();
        if namespaces.iter().any(|name| name == namespace.as_bytes()) {
            return refused(format!("Table-cfs {table} is conflict with namespaces {namespace} in peer config"));
        }
    }
    Ok(())
}

/// A change that a peer bears.
///
/// # Errors
/// What may not be changed.
pub(crate) fn check_update(id: &str, old: &pb::ReplicationPeer, new: &pb::ReplicationPeer) -> Result<()> {
    let shown = |text: &Option<String>| text.clone().unwrap_or_else(|| "null".to_owned());
    let differ = |a: &Option<String>, b: &Option<String>| a.as_deref().unwrap_or("") != b.as_deref().unwrap_or("");
    if differ(&old.clusterkey, &new.clusterkey) {
        return refused(format!(
            "Changing the cluster key on an existing peer is not allowed. Existing key '{}' for peer {id} does not match new key '{}'",
            shown(&old.clusterkey),
            shown(&new.clusterkey)
        ));
    }
    if differ(&old.replication_endpoint_impl, &new.replication_endpoint_impl) {
        return refused(format!(
            "Changing the replication endpoint implementation class on an existing peer is not allowed. Existing class '{}' for peer \
             {id} does not match new class '{}'",
            shown(&old.replication_endpoint_impl),
            shown(&new.replication_endpoint_impl)
        ));
    }
    Ok(())
}
