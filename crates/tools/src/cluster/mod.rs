//! Small tools over a running cluster: `basalt canary`, `zkcli`, `clean`, `classpath`, `regionsplitter`, `majorcompactor`,
//! `top`, `regionmover`, `admin`.

mod admin;
mod balancer_note;
mod canary;
mod classpath;
mod clean;
mod drain_volume;
mod major_compactor;
mod move_to_tier;
mod region_mover;
mod region_splitter;
mod top;
mod zkcli;

pub use admin::run as admin;
pub use balancer_note::balancer_left_off;
pub use canary::run as canary;
pub use classpath::{for_mapreduce, run as classpath};
pub use clean::run as clean;
pub use major_compactor::run as major_compactor;
pub use region_mover::run as region_mover;
pub use region_splitter::run as region_splitter;
pub use top::run as top;
pub use zkcli::run as zkcli;

use client::zookeeper::Session;
use client::{Options, Registry};

/// A session with the first member of the quorum that answers, and HBase's base node.
async fn session(config: &base::Config) -> anyhow::Result<(Session, String)> {
    session_of(&Options::from_config(config)).await
}

async fn session_of(options: &Options) -> anyhow::Result<(Session, String)> {
    let Registry::ZooKeeper { quorum, znode_parent } = options.registry.clone() else {
        anyhow::bail!("the configuration names servers to ask and no ZooKeeper: hbase.zookeeper.quorum is needed");
    };
    let mut why = String::new();
    for member in &quorum {
        match Session::open(member).await {
            Ok(session) => return Ok((session, znode_parent)),
            Err(error) => why = error.to_string(),
        }
    }
    anyhow::bail!("no ZooKeeper answers at {}: {why}", quorum.join(","))
}
