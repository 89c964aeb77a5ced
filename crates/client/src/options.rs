//! How a cluster is found and how patient its client is.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use base::Config;
use rpc::CellCodec;

use crate::{Error, Result, settings};

/// Where a region server listens unless told otherwise.
const REGION_SERVER_PORT: u16 = 16_020;
/// Where a master does.
const MASTER_PORT: u16 = 16_000;

/// Who knows where hbase:meta and the master are.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Registry {
    /// HBase's nodes in ZooKeeper.
    ZooKeeper {
        /// `host:port` of each member.
        quorum: Vec<String>,
        /// HBase's base node.
        znode_parent: String,
    },
    /// Servers of the cluster, asked over RPC.
    Rpc {
        /// `host:port` of each.
        bootstrap: Vec<String>,
    },
}

/// As a connection URI, as [`Options::parse`] reads it.
impl std::fmt::Display for Registry {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Registry::ZooKeeper { quorum, znode_parent } => write!(f, "hbase+zk://{}{znode_parent}", quorum.join(",")),
            Registry::Rpc { bootstrap } => write!(f, "hbase+rpc://{}", bootstrap.join(",")),
        }
    }
}

/// What a [`crate::Connection`] is opened with.
#[derive(Debug, Clone)]
pub struct Options {
    /// Who knows where things are.
    pub registry: Registry,
    /// Who calls.
    pub user: String,
    /// What a snapshot is called that restoring takes of the table as it is, with `{snapshot.name}`, `{table.name}` and
    /// `{restore.timestamp}` in it.
    pub fail_safe_snapshot_name: String,
    /// Whether restoring takes one where nobody says.
    pub takes_fail_safe_snapshot: bool,
    /// Sockets to one server; calls are spread over them.
    pub connections_per_server: usize,
    /// How long a connection may take to be made.
    pub connect_timeout: Duration,
    /// Unit of the pauses between tries.
    pub pause: Duration,
    /// The same after a server said that it has too much to do; at least `pause`.
    pub pause_overloaded: Duration,
    /// Tries after the first.
    pub retries: u32,
    /// Failed tries of one operation before they are logged as warnings.
    pub quiet_failures: u32,
    /// How long one call may take.
    pub rpc_timeout: Duration,
    /// The same for gets and scans; `rpc_timeout` where there is none.
    pub read_rpc_timeout: Option<Duration>,
    /// The same for writes; `rpc_timeout` where there is none.
    pub write_rpc_timeout: Option<Duration>,
    /// How long an operation may take with all its tries.
    pub operation_timeout: Duration,
    /// The same for operations on hbase:meta.
    pub meta_operation_timeout: Duration,
    /// The same for each call of a scan.
    pub scan_timeout: Duration,
    /// Results in one reply to a scan at most.
    pub scanner_caching: u32,
    /// Bytes in one reply to a scan at most, about.
    pub scanner_max_result_size: u64,
    /// Bytes that a buffered mutator gathers.
    pub write_buffer_bytes: u64,
    /// How long a buffered mutator keeps what it has; for as long as it takes where there is none.
    pub write_buffer_flush: Option<Duration>,
    /// Puts with larger cells are refused before they are sent; none are at 0.
    pub max_cell_bytes: usize,
    /// How long a get with TIMELINE consistency waits for the primary alone.
    pub primary_get_timeout: Duration,
    /// The same for the first call of a scan.
    pub primary_scan_timeout: Duration,
    /// Servers in this process by `host:port`: they are called without sockets.
    pub in_process: Arc<HashMap<String, rpc::Local>>,
    /// How cells travel; tags only survive [`CellCodec::KeyValueWithTags`].
    pub codec: CellCodec,
}

impl Options {
    fn new(registry: Registry) -> Options {
        let ms = Duration::from_millis;
        Options {
            registry,
            user: std::env::var("HADOOP_USER_NAME")
                .or_else(|_| std::env::var("USER"))
                .unwrap_or_else(|_| "basalt".into()),
            fail_safe_snapshot_name: settings::FAIL_SAFE_NAME.default.to_owned(),
            takes_fail_safe_snapshot: settings::TAKE_FAIL_SAFE.default,
            connections_per_server: settings::CONNECTIONS_PER_SERVER.default as usize,
            connect_timeout: ms(settings::CONNECT_TIMEOUT_MS.default),
            pause: ms(settings::PAUSE_MS.default),
            pause_overloaded: ms(settings::PAUSE_OVERLOADED_MS.default),
            retries: settings::RETRIES.default,
            quiet_failures: settings::START_LOG_ERRORS.default,
            rpc_timeout: ms(settings::RPC_TIMEOUT_MS.default),
            read_rpc_timeout: None,
            write_rpc_timeout: None,
            operation_timeout: ms(settings::OPERATION_TIMEOUT_MS.default),
            meta_operation_timeout: ms(settings::META_OPERATION_TIMEOUT_MS.default),
            scan_timeout: ms(settings::SCAN_TIMEOUT_MS.default),
            scanner_caching: settings::SCANNER_CACHING.default,
            scanner_max_result_size: settings::SCANNER_MAX_RESULT_SIZE.default,
            write_buffer_bytes: settings::WRITE_BUFFER_BYTES.default,
            write_buffer_flush: None,
            max_cell_bytes: settings::MAX_CELL_BYTES.default as usize,
            primary_get_timeout: Duration::from_micros(settings::PRIMARY_GET_TIMEOUT_US.default),
            primary_scan_timeout: Duration::from_micros(settings::PRIMARY_SCAN_TIMEOUT_US.default),
            in_process: Arc::default(),
            codec: CellCodec::KeyValue,
        }
    }

    /// A cluster by ZooKeeper's connection string, `host[:port],host[:port]...[/base-node]`.
    pub fn zookeeper(connection_string: &str) -> Options {
        let (hosts, parent) = match connection_string.find('/') {
            Some(at) => connection_string.split_at(at),
            None => (connection_string, "/hbase"),
        };
        let parent = if parent == "/" { "" } else { parent };
        Options::new(Registry::ZooKeeper { quorum: with_port(hosts, 2181), znode_parent: parent.to_owned() })
    }

    /// A cluster by some of its servers, `host:port,host:port...`.
    pub fn rpc(servers: &str) -> Options {
        Options::new(Registry::Rpc { bootstrap: with_port(servers, REGION_SERVER_PORT) })
    }

    /// A cluster whose servers are in this process: each by the address (`host:port`) under which the cluster knows it. What is not among
    /// them is called over TCP.
    pub fn in_process(servers: impl IntoIterator<Item = (String, rpc::Local)>) -> Options {
        let in_process: HashMap<String, rpc::Local> = servers.into_iter().collect();
        let mut bootstrap: Vec<String> = in_process.keys().cloned().collect();
        bootstrap.sort_unstable();
        Options {
            in_process: Arc::new(in_process),
            // Cells are passed on as they are.
            codec: CellCodec::KeyValueWithTags,
            ..Options::new(Registry::Rpc { bootstrap })
        }
    }

    /// A cluster by a connection URI, as HBase 2.6 has them: `hbase+zk://host[:port],host[:port].../base-node` or
    /// `hbase+rpc://host[:port],...`; what has no scheme is ZooKeeper's connection string.
    ///
    /// # Errors
    /// A scheme that nobody knows, or no host.
    pub fn parse(uri: &str) -> Result<Options> {
        let options = match uri.split_once("://") {
            None => Options::zookeeper(uri),
            Some(("hbase+zk", rest)) => Options::zookeeper(rest),
            Some(("hbase+rpc", rest)) => Options::rpc(rest.trim_end_matches('/')),
            Some((scheme, _)) => {
                return Err(Error::Request(format!(
                    "{uri}: no registry has the scheme {scheme}; hbase+zk and hbase+rpc are known"
                )));
            }
        };
        let (Registry::ZooKeeper { quorum: hosts, .. } | Registry::Rpc { bootstrap: hosts }) = &options.registry;
        if hosts.is_empty() {
            return Err(Error::Request(format!("{uri:?} names no host")));
        }
        Ok(options)
    }

    /// What `hbase-site.xml` and `-D` say.
    pub fn from_config(config: &Config) -> Options {
        let ms = |setting| Duration::from_millis(config.get(setting));
        let micros = |setting| Duration::from_micros(config.get(setting));
        let unless_zero = |setting| Some(ms(setting)).filter(|timeout| !timeout.is_zero());
        let pause = ms(&settings::PAUSE_MS);
        let older_pause = config.text(settings::PAUSE_CQTBE_KEY).and_then(|text| text.trim().parse().ok());
        let pause_overloaded = match older_pause {
            Some(older) if !config.is_set(settings::PAUSE_OVERLOADED_MS.key) => Duration::from_millis(older),
            _ => ms(&settings::PAUSE_OVERLOADED_MS),
        };
        let fail_safe_name = config.text(settings::FAIL_SAFE_NAME.key).unwrap_or(settings::FAIL_SAFE_NAME.default);
        Options {
            fail_safe_snapshot_name: fail_safe_name.to_owned(),
            takes_fail_safe_snapshot: config.get(&settings::TAKE_FAIL_SAFE),
            connections_per_server: config.get(&settings::CONNECTIONS_PER_SERVER) as usize,
            connect_timeout: ms(&settings::CONNECT_TIMEOUT_MS),
            pause,
            pause_overloaded,
            retries: config.get(&settings::RETRIES),
            quiet_failures: config.get(&settings::START_LOG_ERRORS),
            rpc_timeout: ms(&settings::RPC_TIMEOUT_MS),
            read_rpc_timeout: unless_zero(&settings::READ_RPC_TIMEOUT_MS),
            write_rpc_timeout: unless_zero(&settings::WRITE_RPC_TIMEOUT_MS),
            operation_timeout: ms(&settings::OPERATION_TIMEOUT_MS),
            meta_operation_timeout: ms(&settings::META_OPERATION_TIMEOUT_MS),
            scan_timeout: ms(&settings::SCAN_TIMEOUT_MS),
            scanner_caching: config.get(&settings::SCANNER_CACHING),
            scanner_max_result_size: config.get(&settings::SCANNER_MAX_RESULT_SIZE),
            write_buffer_bytes: config.get(&settings::WRITE_BUFFER_BYTES),
            write_buffer_flush: unless_zero(&settings::WRITE_BUFFER_FLUSH_MS),
            max_cell_bytes: config.get(&settings::MAX_CELL_BYTES) as usize,
            primary_get_timeout: micros(&settings::PRIMARY_GET_TIMEOUT_US),
            primary_scan_timeout: micros(&settings::PRIMARY_SCAN_TIMEOUT_US),
            codec: config.text(settings::CODEC_KEY).and_then(CellCodec::from_class).unwrap_or(CellCodec::KeyValue),
            ..Options::new(registry(config))
        }
    }
}

/// Who is asked where things are. Follows: `ConnectionRegistryFactory`, `RpcConnectionRegistry#getBootstrapNodes`,
/// `MasterRegistry#parseMasterAddrs`.
fn registry(config: &Config) -> Registry {
    let class = config.text(settings::REGISTRY_KEY).unwrap_or_default();
    let masters = || {
        let masters = config.text(settings::MASTERS_KEY).map(|masters| with_port(masters, MASTER_PORT));
        masters.filter(|masters| !masters.is_empty()).unwrap_or_else(|| {
            let host = config.text(settings::MASTER_HOST_KEY).unwrap_or("localhost");
            let port = config.text(settings::MASTER_PORT_KEY).and_then(|port| port.trim().parse().ok());
            with_port(host, port.unwrap_or(MASTER_PORT))
        })
    };
    if class.ends_with("MasterRegistry") {
        return Registry::Rpc { bootstrap: masters() };
    }
    let bootstrap = config.text(settings::BOOTSTRAP_KEY).map(|servers| with_port(servers, REGION_SERVER_PORT));
    let bootstrap = bootstrap.filter(|servers| !servers.is_empty());
    let by_rpc = class.ends_with("RpcConnectionRegistry");
    match bootstrap {
        Some(bootstrap) if by_rpc || (class.is_empty() && !config.is_set(settings::QUORUM_KEY)) => {
            Registry::Rpc { bootstrap }
        }
        _ if by_rpc => Registry::Rpc { bootstrap: masters() },
        _ => {
            let port = config.get(&coordination::settings::CLIENT_PORT);
            let hosts = config.text(settings::QUORUM_KEY).unwrap_or("localhost");
            let znode_parent = coordination::settings::znode_parent(config).to_owned();
            Registry::ZooKeeper { quorum: with_port(hosts, port), znode_parent }
        }
    }
}

fn with_port(hosts: &str, port: u16) -> Vec<String> {
    let hosts = hosts.split(',').map(str::trim).filter(|host| !host.is_empty());
    hosts.map(|host| if host.contains(':') { host.to_owned() } else { format!("{host}:{port}") }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn connection_strings_are_read_as_zookeeper_reads_them() {
        let of = |text| Options::zookeeper(text).registry;
        let zk = |quorum: &[&str], parent: &str| Registry::ZooKeeper {
            quorum: quorum.iter().map(|q| (*q).to_owned()).collect(),
            znode_parent: parent.to_owned(),
        };
        assert_eq!(of("a"), zk(&["a:2181"], "/hbase"));
        assert_eq!(of("a:1,b/x/y"), zk(&["a:1", "b:2181"], "/x/y"));
        let mut config = Config::default();
        config.set("hbase.zookeeper.quorum", "h1, h2:7");
        config.set("hbase.zookeeper.property.clientPort", "5");
        assert_eq!(Options::from_config(&config).registry, zk(&["h1:5", "h2:7"], "/hbase"));
    }

    #[test]
    fn registries_are_chosen_as_hbase_chooses_them() {
        let rpc = |servers: &[&str]| Registry::Rpc { bootstrap: servers.iter().map(|s| (*s).to_owned()).collect() };
        let of = |pairs: &[(&str, &str)]| {
            let mut config = Config::default();
            pairs.iter().for_each(|(key, value)| config.set(*key, *value));
            Options::from_config(&config).registry
        };
        let class = |class| (settings::REGISTRY_KEY, class);
        let by_rpc = class("org.apache.hadoop.hbase.client.RpcConnectionRegistry");
        let by_master = class("org.apache.hadoop.hbase.client.MasterRegistry");
        assert_eq!(of(&[by_rpc]), rpc(&["localhost:16000"]));
        assert_eq!(of(&[by_rpc, ("hbase.masters", "a,b:7")]), rpc(&["a:16000", "b:7"]));
        assert_eq!(of(&[by_rpc, ("hbase.masters", "a"), (settings::BOOTSTRAP_KEY, "c")]), rpc(&["c:16020"]));
        assert_eq!(of(&[by_master, (settings::BOOTSTRAP_KEY, "c"), ("hbase.master.hostname", "m")]), rpc(&["m:16000"]));
        assert_eq!(of(&[by_master, ("hbase.master.port", "5")]), rpc(&["localhost:5"]));
        let zk = class("org.apache.hadoop.hbase.client.ZKConnectionRegistry");
        assert!(matches!(of(&[zk, (settings::BOOTSTRAP_KEY, "c")]), Registry::ZooKeeper { .. }));
    }

    #[test]
    fn connection_uris_name_their_registry() {
        let of = |uri| Options::parse(uri).map(|options| options.registry);
        assert_eq!(of("hbase+zk://a,b:1/x").ok(), Some(Options::zookeeper("a,b:1/x").registry));
        assert_eq!(of("a,b:1/x").ok(), Some(Options::zookeeper("a,b:1/x").registry));
        assert_eq!(of("hbase+rpc://a:5,b").ok(), Some(Options::rpc("a:5,b").registry));
        for uri in ["hbase+zk://a:2181,b:1/x", "hbase+rpc://a:5,b:16020"] {
            assert_eq!(of(uri).map(|registry| registry.to_string()).ok().as_deref(), Some(uri));
        }
        assert!(of("hbase+ftp://a").is_err() && of("hbase+zk://").is_err() && of("").is_err());
    }

    #[test]
    fn patience_is_read_under_hbases_keys() {
        let mut config = Config::default();
        for (key, value) in [
            ("hbase.client.pause", "7"),
            ("hbase.client.pause.cqtbe", "70"),
            ("hbase.client.retries.number", "3"),
            ("hbase.rpc.timeout", "400"),
            ("hbase.rpc.write.timeout", "300"),
            ("hbase.client.scanner.timeout.period", "900"),
        ] {
            config.set(key, value);
        }
        let options = Options::from_config(&config);
        let ms = Duration::from_millis;
        assert_eq!((options.pause, options.pause_overloaded, options.retries), (ms(7), ms(70), 3));
        assert_eq!((options.read_rpc_timeout, options.write_rpc_timeout), (None, Some(ms(300))));
        assert_eq!((options.rpc_timeout, options.scan_timeout), (ms(400), ms(900)));
        config.set("hbase.client.pause.server.overloaded", "50");
        assert_eq!(Options::from_config(&config).pause_overloaded, ms(50));
    }
}
