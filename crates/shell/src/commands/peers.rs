//! Peers of the group `replication`: made, changed, shown. Follows: `Hbase::RepAdmin`, `ReplicationPeerConfigUtil`.

use bytes::Bytes;
use model::TableName;
use proto::pb;

use super::arguments::{Options, int, table_name, texts};
use super::{Arguments, Command, command};
use crate::evaluator::Shell;
use crate::failure::{Flow, Result};
use crate::value::{Pairs, Value};

/// These commands.
pub(super) const COMMANDS: &[Command] = &[
    command("replication", "add_peer", 1..=3, add_peer),
    command("replication", "append_peer_exclude_namespaces", 2..=2, |s, a| namespaces(s, a, Side::Excluded, Edit::Add)),
    command("replication", "append_peer_exclude_tableCFs", 2..=2, |s, a| tables(s, a, Side::Excluded, Edit::Add)),
    command("replication", "append_peer_namespaces", 2..=2, |s, a| namespaces(s, a, Side::Included, Edit::Add)),
    command("replication", "append_peer_tableCFs", 2..=2, append_peer_tables),
    command("replication", "get_peer_config", 1..=1, get_peer_config),
    command("replication", "list_peer_configs", 0..=0, list_peer_configs),
    command("replication", "peer_modification_enabled", 0..=0, peer_modification_enabled),
    command("replication", "peer_modification_switch", 1..=2, peer_modification_switch),
    command("replication", "remove_peer_exclude_namespaces", 2..=2, |s, a| {
        namespaces(s, a, Side::Excluded, Edit::Remove)
    }),
    command("replication", "remove_peer_exclude_tableCFs", 2..=2, |s, a| tables(s, a, Side::Excluded, Edit::Remove)),
    command("replication", "remove_peer_namespaces", 2..=2, |s, a| namespaces(s, a, Side::Included, Edit::Remove)),
    command("replication", "remove_peer_tableCFs", 2..=2, remove_peer_tables),
    command("replication", "set_peer_bandwidth", 1..=2, set_peer_bandwidth),
    command("replication", "set_peer_exclude_namespaces", 2..=2, |s, a| namespaces(s, a, Side::Excluded, Edit::Set)),
    command("replication", "set_peer_exclude_tableCFs", 2..=2, |s, a| tables(s, a, Side::Excluded, Edit::Set)),
    command("replication", "set_peer_namespaces", 2..=2, |s, a| namespaces(s, a, Side::Included, Edit::Set)),
    command("replication", "set_peer_replicate_all", 2..=2, set_peer_replicate_all),
    command("replication", "set_peer_serial", 2..=2, set_peer_serial),
    command("replication", "set_peer_tableCFs", 2..=2, |s, a| tables(s, a, Side::Included, Edit::Set)),
    command("replication", "show_peer_tableCFs", 1..=1, show_peer_tables),
    command("replication", "update_peer_config", 1..=2, update_peer_config),
];

/// Which of a peer's lists: what it gets, or what it does not get where it gets everything else.
#[derive(Clone, Copy)]
enum Side {
    Included,
    Excluded,
}

/// What is done to a list.
#[derive(Clone, Copy)]
enum Edit {
    Set,
    Add,
    Remove,
}

/// Tables with their families as a hash gives them: `{"ns1:t" => ["f1"], "t2" => []}`.
fn table_families(value: Option<&Value>) -> Result<Vec<(TableName, Vec<Bytes>)>> {
    let Some(Value::Hash(pairs)) = value else {
        let what = value.map_or("nothing".to_owned(), Value::inspect);
        return Err(Flow::argument(format!(
            "{what} is no hash of tables and families, such as {{'t' => ['f1', 'f2'], 'ns:u' => []}}"
        )));
    };
    let families = |value: &Value| match value {
        Value::Nil => Vec::new(),
        value => texts(value).into_iter().map(Bytes::from).collect(),
    };
    pairs.borrow().0.iter().map(|(table, value)| Ok((table_name(&table.to_text())?, families(value)))).collect()
}

fn messages(tables: &[(TableName, Vec<Bytes>)]) -> Vec<pb::TableCf> {
    let message = |(table, families): &(TableName, Vec<Bytes>)| pb::TableCf {
        table_name: Some(convert::to_proto::table_name(table)),
        families: families.clone(),
    };
    tables.iter().map(message).collect()
}

/// A peer as it stands.
fn peer(shell: &Shell, id: &str) -> Result<pb::ReplicationPeer> {
    shell.session.wait(async { shell.session.admin().replication_peer(id).await })
}

/// Changes a peer: read, changed, written.
fn change(shell: &mut Shell, id: &str, edit: impl FnOnce(&mut pb::ReplicationPeer) -> Result<()>) -> Result {
    let mut config = peer(shell, id)?;
    edit(&mut config)?;
    shell.session.wait(async { shell.session.admin().update_replication_peer(id, config).await }).map(|()| Value::Nil)
}

/// Puts CONFIG and DATA into a peer.
fn take_settings(options: &mut Options, config: &mut pb::ReplicationPeer) -> Result<()> {
    for (key, value) in options.take_hash("CONFIG")?.unwrap_or_default() {
        let (name, value) = (key.to_text(), value.to_text());
        match config.configuration.iter_mut().find(|pair| pair.name == name) {
            Some(pair) => pair.value = value,
            None => config.configuration.push(pb::NameStringPair { name, value }),
        }
    }
    for (key, value) in options.take_hash("DATA")?.unwrap_or_default() {
        let (first, second) = (Bytes::from(key.to_bytes()), Bytes::from(value.to_bytes()));
        match config.data.iter_mut().find(|pair| pair.first == first) {
            Some(pair) => pair.second = second,
            None => config.data.push(pb::BytesBytesPair { first, second }),
        }
    }
    Ok(())
}

fn add_peer(shell: &mut Shell, arguments: &Arguments) -> Result {
    if arguments.get(2).is_some() {
        return Err(Flow::argument("peer_tableCFs should be specified as TABLE_CFS in args"));
    }
    let mut options = match arguments.get(1) {
        None | Some(Value::Hash(_)) => arguments.hash(1)?,
        Some(_) => return Err(Flow::argument("args must be a Hash")),
    };
    let (endpoint, cluster) = (options.take_text("ENDPOINT_CLASSNAME"), options.take_text("CLUSTER_KEY"));
    if endpoint.is_none() && cluster.is_none() {
        return Err(Flow::argument("Either ENDPOINT_CLASSNAME or CLUSTER_KEY must be specified."));
    }
    let mut config = pb::ReplicationPeer {
        clusterkey: Some(cluster.unwrap_or_else(|| own_cluster_key(shell))),
        replication_endpoint_impl: endpoint,
        replicate_all: Some(true),
        serial: Some(options.take_truth("SERIAL").unwrap_or(false)),
        ..pb::ReplicationPeer::default()
    };
    take_settings(&mut options, &mut config)?;
    if let Some(namespaces) = options.take_texts("NAMESPACES") {
        config.replicate_all = Some(false);
        config.namespaces = namespaces.into_iter().map(Bytes::from).collect();
    }
    if let Some(tables) = options.take("TABLE_CFS") {
        config.replicate_all = Some(false);
        config.table_cfs = messages(&table_families(Some(&tables))?);
    }
    let enabled = options.take_text("STATE").as_deref() != Some("DISABLED");
    let id = arguments.text(0);
    shell
        .session
        .wait(async { shell.session.admin().add_replication_peer(&id, config, enabled).await })
        .map(|()| Value::Nil)
}

/// `quorum:port:/base-node` of the cluster at hand, for endpoints that need none of another.
fn own_cluster_key(shell: &Shell) -> String {
    match &shell.session.connection().options().registry {
        client::Registry::ZooKeeper { quorum, znode_parent } => {
            let port = quorum.first().and_then(|member| member.rsplit(':').next()).unwrap_or("2181");
            let hosts: Vec<&str> = quorum.iter().map(|member| member.split(':').next().unwrap_or(member)).collect();
            format!("{}:{port}:{znode_parent}", hosts.join(","))
        }
        client::Registry::Rpc { bootstrap } => format!("hbase+rpc://{}", bootstrap.join(",")),
    }
}

fn namespaces(shell: &mut Shell, arguments: &Arguments, side: Side, edit: Edit) -> Result {
    let Some(given) = arguments.get(1) else { return Ok(Value::Nil) };
    let given: Vec<Bytes> = texts(given).into_iter().map(Bytes::from).collect();
    change(shell, &arguments.text(0), |config| {
        let list = match side {
            Side::Included => &mut config.namespaces,
            Side::Excluded => &mut config.exclude_namespaces,
        };
        match edit {
            Edit::Set => *list = given,
            Edit::Add => list.extend(given),
            Edit::Remove => list.retain(|name| !given.contains(name)),
        }
        list.sort_unstable();
        list.dedup();
        Ok(())
    })
}

fn tables(shell: &mut Shell, arguments: &Arguments, side: Side, edit: Edit) -> Result {
    if arguments.get(1).is_none() {
        return Ok(Value::Nil);
    }
    let given = table_families(arguments.get(1))?;
    let id = arguments.text(0);
    change(shell, &id, |config| {
        let list = match side {
            Side::Included => &mut config.table_cfs,
            Side::Excluded => &mut config.exclude_table_cfs,
        };
        match edit {
            Edit::Set => *list = messages(&given),
            Edit::Add => messages(&given).into_iter().for_each(|table| add_table(list, table)),
            Edit::Remove => {
                for table in messages(&given) {
                    remove_table(list, &table, &id)?;
                }
            }
        }
        Ok(())
    })
}

fn add_table(list: &mut Vec<pb::TableCf>, table: pb::TableCf) {
    match list.iter_mut().find(|known| known.table_name == table.table_name) {
        // Wholly is more than any family.
        Some(known) if known.families.is_empty() || table.families.is_empty() => known.families.clear(),
        Some(known) => {
            known.families.extend(table.families);
            known.families.sort_unstable();
            known.families.dedup();
        }
        None => list.push(table),
    }
}

/// Takes a table, or families of one, out of a list. Refused is what HBase refuses: a table that is not in it, families of one that is in it
/// wholly, the whole of one that is in it by families.
fn remove_table(list: &mut Vec<pb::TableCf>, table: &pb::TableCf, id: &str) -> Result<()> {
    let refused = |why: String| Flow::raise("Java::OrgApacheHadoopHbaseReplication::ReplicationException", why);
    let shown = convert_to_string(std::slice::from_ref(table));
    let Some(at) = list.iter().position(|known| known.table_name == table.table_name) else {
        return Err(refused(format!("No table: {shown} in exclude-table-cfs config of peer: {id}")));
    };
    match (list[at].families.is_empty(), table.families.is_empty()) {
        (true, true) => {}
        (false, false) => list[at].families.retain(|family| !table.families.contains(family)),
        (true, false) => {
            let why = format!("Cannot remove cf of table: {shown} which doesn't specify cfs from exclude-table-cfs");
            return Err(refused(format!("{why} config in peer: {id}")));
        }
        (false, true) => {
            let why = format!("Cannot remove table: {shown} which has specified cfs from exclude-table-cfs config");
            return Err(refused(format!("{why} in peer: {id}")));
        }
    }
    if list[at].families.is_empty() {
        list.remove(at);
    }
    Ok(())
}

fn append_peer_tables(shell: &mut Shell, arguments: &Arguments) -> Result {
    let (id, given) = (arguments.text(0), table_families(arguments.get(1))?);
    let admin = shell.session.admin();
    shell.session.wait(async { admin.append_replication_peer_tables(&id, &given).await }).map(|()| Value::Nil)
}

fn remove_peer_tables(shell: &mut Shell, arguments: &Arguments) -> Result {
    let (id, given) = (arguments.text(0), table_families(arguments.get(1))?);
    let admin = shell.session.admin();
    shell.session.wait(async { admin.remove_replication_peer_tables(&id, &given).await }).map(|()| Value::Nil)
}

fn set_peer_bandwidth(shell: &mut Shell, arguments: &Arguments) -> Result {
    let bandwidth = arguments.get(1).map_or(Ok(0), |value| int(value, "bandwidth"))?;
    change(shell, &arguments.text(0), |config| {
        config.bandwidth = Some(bandwidth);
        Ok(())
    })
}

fn set_peer_replicate_all(shell: &mut Shell, arguments: &Arguments) -> Result {
    let all = arguments.truth(1);
    change(shell, &arguments.text(0), |config| {
        config.replicate_all = Some(all);
        Ok(())
    })
}

fn set_peer_serial(shell: &mut Shell, arguments: &Arguments) -> Result {
    let serial = arguments.truth(1);
    change(shell, &arguments.text(0), |config| {
        config.serial = Some(serial);
        Ok(())
    })
}

fn update_peer_config(shell: &mut Shell, arguments: &Arguments) -> Result {
    let mut options = arguments.hash(1)?;
    change(shell, &arguments.text(0), |config| take_settings(&mut options, config))
}

/// Prints a peer's settings, and gives them back as a hash.
fn print_config(shell: &mut Shell, config: &pb::ReplicationPeer) -> Result {
    let mut rows: Vec<(String, String)> = Vec::new();
    if let Some(key) = &config.clusterkey {
        rows.push(("Cluster Key".to_owned(), key.clone()));
    }
    if let Some(endpoint) = &config.replication_endpoint_impl {
        rows.push(("Replication Endpoint".to_owned(), endpoint.clone()));
    }
    rows.extend(config.configuration.iter().map(|pair| (pair.name.clone(), pair.value.clone())));
    let mut hash = Pairs::default();
    for (name, value) in &rows {
        shell.session.output.row(&[name, value])?;
        hash.set(Value::text(name), Value::text(value));
    }
    Ok(Value::hash(hash))
}

fn get_peer_config(shell: &mut Shell, arguments: &Arguments) -> Result {
    let config = peer(shell, &arguments.text(0))?;
    print_config(shell, &config)
}

fn list_peer_configs(shell: &mut Shell, _: &Arguments) -> Result {
    let peers = shell.session.wait(async { shell.session.admin().replication_peers(None).await })?;
    let mut all = Pairs::default();
    for peer in &peers {
        shell.session.output.row(&["PeerId", &peer.id])?;
        let config = print_config(shell, &peer.config)?;
        shell.session.output.row(&[" "])?;
        all.set(Value::text(&peer.id), config);
    }
    Ok(Value::hash(all))
}

fn show_peer_tables(shell: &mut Shell, arguments: &Arguments) -> Result {
    let config = peer(shell, &arguments.text(0))?;
    let text = convert_to_string(&config.table_cfs);
    shell.session.output.line(&text)?;
    Ok(if config.table_cfs.is_empty() { Value::Nil } else { Value::text(text) })
}

fn peer_modification_enabled(shell: &mut Shell, _: &Arguments) -> Result {
    let enabled =
        shell.session.wait(async { shell.session.admin().is_replication_peer_modification_enabled().await })?;
    shell.session.output.row(&[&enabled.to_string()])?;
    Ok(Value::Bool(enabled))
}

fn peer_modification_switch(shell: &mut Shell, arguments: &Arguments) -> Result {
    let (on, drain) = (arguments.truth(0), arguments.truth(1));
    let admin = shell.session.admin();
    let was = shell.session.wait(async { admin.set_replication_peer_modification(on, drain).await })?;
    shell.session.output.row(&[&format!("Previous peer modification state : {was}")])?;
    Ok(Value::Bool(was))
}

/// Tables and families as HBase writes them into one text: `default.t:f1,f2;ns.u`.
pub(super) fn convert_to_string(tables: &[pb::TableCf]) -> String {
    let text = |bytes: &Bytes| String::from_utf8_lossy(bytes).into_owned();
    let one = |table: &pb::TableCf| {
        let name = table.table_name.as_ref();
        let name = name.map_or_else(String::new, |name| format!("{}.{}", text(&name.namespace), text(&name.qualifier)));
        let families: Vec<String> = table.families.iter().map(text).collect();
        if families.is_empty() { name } else { format!("{name}:{}", families.join(",")) }
    };
    tables.iter().map(one).collect::<Vec<String>>().join(";")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table(name: &str, families: &[&'static str]) -> pb::TableCf {
        let name = TableName::parse(name).expect("legal");
        let families = families.iter().map(|family| Bytes::from_static(family.as_bytes())).collect();
        pb::TableCf { table_name: Some(convert::to_proto::table_name(&name)), families }
    }

    #[test]
    fn tables_and_families_are_written_as_hbase_writes_them() {
        let tables = [table("t", &["a", "b"]), table("ns:u", &[])];
        assert_eq!(convert_to_string(&tables), "default.t:a,b;ns.u");
        assert_eq!(convert_to_string(&[]), "");
    }

    #[test]
    fn lists_of_tables_grow_and_shrink_by_families_or_wholly() {
        let mut list = vec![table("t", &["a"])];
        add_table(&mut list, table("t", &["b", "a"]));
        add_table(&mut list, table("u", &["x"]));
        assert_eq!(convert_to_string(&list), "default.t:a,b;default.u:x");
        add_table(&mut list, table("u", &[]));
        assert_eq!(convert_to_string(&list), "default.t:a,b;default.u");
        assert!(remove_table(&mut list, &table("u", &["x"]), "1").is_err());
        assert!(remove_table(&mut list, &table("t", &[]), "1").is_err());
        assert!(remove_table(&mut list, &table("none", &[]), "1").is_err());
        assert!(remove_table(&mut list, &table("t", &["a", "b"]), "1").is_ok());
        assert!(remove_table(&mut list, &table("u", &[]), "1").is_ok());
        assert!(list.is_empty());
    }
}
