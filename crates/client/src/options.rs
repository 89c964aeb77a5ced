//! How a cluster is found and how patient its client is.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use base::Config;
use rpc::CellCodec;

use crate::settings;

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

/// What a [`crate::Connection`] is opened with.
#[derive(Debug, Clone)]
pub struct Options {
    /// Who knows where things are.
    pub registry: Registry,
    /// Who calls.
    pub user: String,
    /// Sockets to one server; calls are spread over them.
    pub connections_per_server: usize,
    /// Unit of the pauses between tries.
    pub pause: Duration,
    /// Tries after the first.
    pub retries: u32,
    /// How long one call may take.
    pub rpc_timeout: Duration,
    /// How long an operation may take with all its tries.
    pub operation_timeout: Duration,
    /// Servers in this process by `host:port`: they are called without sockets.
    pub in_process: Arc<HashMap<String, rpc::Local>>,
    /// How cells travel; tags only survive [`CellCodec::KeyValueWithTags`].
    pub codec: CellCodec,
}

impl Options {
    fn new(registry: Registry) -> Options {
        Options {
            registry,
            user: std::env::var("HADOOP_USER_NAME")
                .or_else(|_| std::env::var("USER"))
                .unwrap_or_else(|_| "basalt".into()),
            connections_per_server: settings::CONNECTIONS_PER_SERVER.default as usize,
            pause: Duration::from_millis(settings::PAUSE_MS.default),
            retries: settings::RETRIES.default,
            rpc_timeout: Duration::from_millis(settings::RPC_TIMEOUT_MS.default),
            operation_timeout: Duration::from_millis(settings::OPERATION_TIMEOUT_MS.default),
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
        Options::new(Registry::Rpc { bootstrap: with_port(servers, 16_020) })
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

    /// What `hbase-site.xml` and `-D` say.
    pub fn from_config(config: &Config) -> Options {
        let by_rpc = config.text(settings::REGISTRY_KEY).is_some_and(|class| class.ends_with("RpcConnectionRegistry"));
        let registry = match config.text(settings::BOOTSTRAP_KEY) {
            Some(servers) if by_rpc || !config.is_set(settings::QUORUM_KEY) => {
                Registry::Rpc { bootstrap: with_port(servers, 16_020) }
            }
            _ => {
                let port = config.get(&coordination::settings::CLIENT_PORT);
                let hosts = config.text(settings::QUORUM_KEY).unwrap_or("localhost");
                let znode_parent = coordination::settings::znode_parent(config).to_owned();
                Registry::ZooKeeper { quorum: with_port(hosts, port), znode_parent }
            }
        };
        let ms = |setting| Duration::from_millis(config.get(setting));
        Options {
            connections_per_server: config.get(&settings::CONNECTIONS_PER_SERVER) as usize,
            pause: ms(&settings::PAUSE_MS),
            retries: config.get(&settings::RETRIES),
            rpc_timeout: ms(&settings::RPC_TIMEOUT_MS),
            operation_timeout: ms(&settings::OPERATION_TIMEOUT_MS),
            codec: config.text(settings::CODEC_KEY).and_then(CellCodec::from_class).unwrap_or(CellCodec::KeyValue),
            ..Options::new(registry)
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
}
