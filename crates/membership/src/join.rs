//! How a region server is let into a cluster. Follows: `HRegionServer#initializeZooKeeper`, `#reportForDuty`, `#handleReportForDutyResponse`.

use crate::link::{LinkError, MasterLink};
use base::{Clock, Rng};
use coordination::hbase_znodes::region_server_node;
use coordination::{Claim, SessionOver};
use model::ServerName;
use proto::methods::Method;
use proto::pb;
use std::time::Duration;

/// Key of the master's answer: the host name under which it knows the server.
const SEEN_HOSTNAME_KEY: &str = "hbase.regionserver.hostname.seen.by.master";

/// The version that a member says it has where no other says one.
const VERSION: &str = "2.6.4";

/// Between two attempts to be let in.
const PAUSE: Duration = Duration::from_millis(500);

/// What the server says of itself.
#[derive(Clone, Debug)]
pub struct Candidate {
    /// `hbase.unsafe.regionserver.hostname`: the name to have, whatever the master sees.
    pub host: Option<String>,
    /// Port of its RPC.
    pub port: u16,
    /// Milliseconds of its start.
    pub start_code: u64,
    /// The version to say it has; `None`: that of the others. System tables go only to servers of the highest version in a cluster, and come
    /// from the others when one of a higher version joins.
    pub version: Option<String>,
}

/// What a server that was let in knows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Admitted {
    /// Its name from now on.
    pub server_name: ServerName,
    /// Settings that are the master's to give: `hbase.rootdir`, `fs.defaultFS` among them.
    pub settings: Vec<(String, String)>,
    /// The cluster's id.
    pub cluster_id: String,
}

/// Why a server cannot be a member.
#[derive(Debug, thiserror::Error)]
pub enum JoinError {
    /// The session is over.
    #[error(transparent)]
    Over(#[from] SessionOver),
    /// The nodes are somebody else's.
    #[error("the node {0} is not HBase's: look at zookeeper.znode.parent and hbase.zookeeper.quorum")]
    NotHBase(String),
    /// The cluster replicates.
    #[error(
        "replication peer {0} is enabled, and edits of regions served here would not be shipped: disable the peer (disable_peer '{0}') or \
         leave the cluster to servers of HBase"
    )]
    Replicates(String),
    /// The master will not have it.
    #[error("the master refuses this server: {0}")]
    Refused(LinkError),
    /// The master has another name for it than was set.
    #[error(
        "the master knows this server as {seen}, and hbase.unsafe.regionserver.hostname is {wanted}: a master that does not take the name \
         that it is told is older than 2.0"
    )]
    OtherName {
        /// The master's.
        seen: String,
        /// The one that was set.
        wanted: String,
    },
    /// The master's answer has no name.
    #[error("the master's answer has no {SEEN_HOSTNAME_KEY}")]
    NoName,
    /// Another process has the node.
    #[error("the node {0} is another process's: two servers with one name?")]
    Taken(String),
}

/// Exceptions after which it makes no sense to ask again.
const FATAL: [&str; 3] = ["ClockOutOfSyncException", "DecommissionedHostRejectedException", "YouAreDeadException"];

/// Waits for a cluster that is up, has its master let the server in, and makes the server's node. `info_port` is that of its pages, if it has
/// any.
///
/// # Errors
/// [`JoinError`].
pub async fn join(
    link: &MasterLink,
    candidate: &Candidate,
    info_port: Option<u16>,
    (clock, rng): (&dyn Clock, &Rng),
) -> Result<Admitted, JoinError> {
    let nodes = link.nodes();
    nodes.active_master().await?;
    nodes.awaited("running").await?;
    let cluster_id = nodes.cluster_id().await?.ok_or_else(|| JoinError::NotHBase(nodes.path("hbaseid")))?;
    if let Some(peer) = nodes.enabled_peer().await? {
        return Err(JoinError::Replicates(peer));
    }
    let version = match &candidate.version {
        Some(version) => version.clone(),
        None => nodes.version_of_another().await?.unwrap_or_else(|| VERSION.to_owned()),
    };
    link.set_version(&version);
    let answer = ask(link, candidate, clock).await?;
    let (server_name, settings) = read_answer(answer, candidate)?;
    let salt = rng.next_u64().to_be_bytes();
    let (path, value) = region_server_node(nodes.parent(), &server_name, info_port, Some(version_info(&version)), salt);
    match nodes.coordinator().claim(&path, &value).await? {
        Claim::Ours => Ok(Admitted { server_name, settings, cluster_id }),
        Claim::Taken(_) => Err(JoinError::Taken(path)),
    }
}

fn version_info(version: &str) -> pb::VersionInfo {
    pb::VersionInfo {
        version: version.to_owned(),
        url: "basalt".to_owned(),
        revision: "basalt".to_owned(),
        user: "basalt".to_owned(),
        version_major: Some(2),
        version_minor: Some(6),
        ..pb::VersionInfo::default()
    }
}

async fn ask(
    link: &MasterLink,
    candidate: &Candidate,
    clock: &dyn Clock,
) -> Result<pb::RegionServerStartupResponse, JoinError> {
    for attempt in 0_u32.. {
        let request = pb::RegionServerStartupRequest {
            port: u32::from(candidate.port),
            server_start_code: candidate.start_code,
            server_current_time: u64::try_from(clock.now_ms().0).unwrap_or_default(),
            use_this_hostname_instead: candidate.host.clone(),
        };
        match link.call(Method::RegionServerStatusRegionServerStartup, &request).await {
            Ok(answer) => return Ok(answer),
            Err(LinkError::Over(over)) => return Err(over.into()),
            Err(error) if FATAL.iter().any(|class| error.is(class)) => return Err(JoinError::Refused(error)),
            Err(error) if attempt % 20 == 0 => tracing::info!("not let in yet: {error}"),
            Err(error) => tracing::debug!("not let in yet: {error}"),
        }
        tokio::time::sleep(PAUSE).await;
    }
    Err(JoinError::Over(SessionOver("no master let this server in".into())))
}

/// The server's name, and the other settings of the answer.
fn read_answer(
    answer: pb::RegionServerStartupResponse,
    candidate: &Candidate,
) -> Result<(ServerName, Vec<(String, String)>), JoinError> {
    let mut seen = None;
    let mut settings = Vec::new();
    for pair in answer.map_entries {
        let (key, value) = (pair.name, pair.value);
        if key == SEEN_HOSTNAME_KEY { seen = Some(value) } else { settings.push((key, value)) }
    }
    let seen = seen.ok_or(JoinError::NoName)?;
    if let Some(wanted) = candidate.host.as_ref().filter(|wanted| !wanted.eq_ignore_ascii_case(&seen)) {
        return Err(JoinError::OtherName { seen, wanted: wanted.clone() });
    }
    Ok((ServerName::new(&seen, candidate.port, candidate.start_code), settings))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answer(pairs: &[(&str, &str)]) -> pb::RegionServerStartupResponse {
        let pair = |(name, value): &(&str, &str)| pb::NameStringPair { name: (*name).into(), value: (*value).into() };
        pb::RegionServerStartupResponse { map_entries: pairs.iter().map(pair).collect() }
    }

    #[test]
    fn the_name_is_the_one_that_the_master_sees_unless_another_was_set() {
        let seen = [(SEEN_HOSTNAME_KEY, "a.example"), ("hbase.rootdir", "hdfs://n/hbase")];
        let mut candidate = Candidate { host: None, port: 16020, start_code: 7, version: None };
        let (name, settings) = read_answer(answer(&seen), &candidate).expect("read");
        assert_eq!(name, ServerName::new("a.example", 16020, 7));
        assert_eq!(settings, [("hbase.rootdir".to_owned(), "hdfs://n/hbase".to_owned())]);
        candidate.host = Some("A.example".into());
        assert!(read_answer(answer(&seen), &candidate).is_ok(), "names have no case");
        candidate.host = Some("b.example".into());
        let error = read_answer(answer(&seen), &candidate).expect_err("another");
        assert!(error.to_string().contains("a.example") && error.to_string().contains("b.example"), "{error}");
        assert!(matches!(read_answer(answer(&[]), &candidate), Err(JoinError::NoName)));
    }
}
