//! Where hbase:meta and the master are.

pub mod zookeeper;

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use model::ServerName;
use proto::methods::Method;
use proto::{Message, magic, pb};

use crate::channel::{Channel, Request};
use crate::options::{Options, Registry};
use crate::{Error, Result};

/// How long one member may take to answer.
const PATIENCE: Duration = Duration::from_secs(10);

async fn in_time<T>(work: impl Future<Output = std::result::Result<T, String>>) -> std::result::Result<T, String> {
    match tokio::time::timeout(PATIENCE, work).await {
        Ok(done) => done,
        Err(_) => Err(format!("no answer within {} s", PATIENCE.as_secs())),
    }
}

/// What the registry knows under a name.
#[derive(Clone, Copy)]
enum Question {
    Meta,
    MetaReplicas,
    Master,
    ClusterId,
}

enum Answer {
    Server(ServerName),
    Text(String),
    Replicas(Vec<(u32, ServerName)>),
}

/// Server of hbase:meta.
pub(crate) async fn meta_location(options: &Options) -> Result<ServerName> {
    match ask(options, Question::Meta).await? {
        Answer::Server(server) => Ok(server),
        _ => unreachable!("the question was for a server"),
    }
}

/// The servers of the read replicas of hbase:meta, by their numbers. Follows: `ZKConnectionRegistry#getMetaRegionLocations`.
pub(crate) async fn meta_replicas(options: &Options) -> Result<Vec<(u32, ServerName)>> {
    match ask(options, Question::MetaReplicas).await? {
        Answer::Replicas(replicas) => Ok(replicas),
        _ => unreachable!("the question was for replicas"),
    }
}

/// The active master.
pub(crate) async fn active_master(options: &Options) -> Result<ServerName> {
    match ask(options, Question::Master).await? {
        Answer::Server(server) => Ok(server),
        _ => unreachable!("the question was for a server"),
    }
}

/// The cluster's id.
pub(crate) async fn cluster_id(options: &Options) -> Result<String> {
    match ask(options, Question::ClusterId).await? {
        Answer::Text(id) => Ok(id),
        _ => unreachable!("the question was for a text"),
    }
}

/// Asks one member after the other until one answers.
async fn ask(options: &Options, question: Question) -> Result<Answer> {
    let (members, parent) = match &options.registry {
        Registry::ZooKeeper { quorum, znode_parent } => (quorum, Some(znode_parent.as_str())),
        Registry::Rpc { bootstrap } => (bootstrap, None),
    };
    let mut why = "no member is known".to_owned();
    for member in members {
        let answer = match parent {
            Some(parent) if matches!(question, Question::MetaReplicas) => {
                in_time(meta_replicas_in_zookeeper(member, parent)).await
            }
            Some(parent) => in_time(ask_zookeeper(member, parent, question)).await,
            None => in_time(ask_server(options, member, question)).await,
        };
        match answer {
            Ok(answer) => return Ok(answer),
            Err(e) => why = e,
        }
    }
    Err(Error::Registry { registry: members.join(","), why })
}

async fn ask_zookeeper(member: &str, parent: &str, question: Question) -> std::result::Result<Answer, String> {
    let node = match question {
        Question::Meta | Question::MetaReplicas => "meta-region-server",
        Question::Master => "master",
        Question::ClusterId => "hbaseid",
    };
    let path = format!("{parent}/{node}");
    let mut session = zookeeper::Session::open(member).await.map_err(|e| e.to_string())?;
    let data = session.data(&path).await.map_err(|e| e.to_string());
    session.close().await;
    let data = data?.ok_or_else(|| format!("there is no node {path}: is the master running?"))?;
    from_node(question, &data).ok_or_else(|| format!("the node {path} holds no message of HBase"))
}

async fn meta_replicas_in_zookeeper(member: &str, parent: &str) -> std::result::Result<Answer, String> {
    let mut session = zookeeper::Session::open(member).await.map_err(|e| e.to_string())?;
    let found = async {
        let mut replicas = Vec::new();
        for name in session.children(parent).await?.unwrap_or_default() {
            let Some(id) = coordination::hbase_znodes::meta_replica_of(&name) else { continue };
            let node = session.node(&format!("{parent}/{name}")).await?;
            let at = node.and_then(|(value, _)| coordination::hbase_znodes::read_meta_location(&value));
            replicas.extend(at.map(|server| (id, server)));
        }
        Ok(replicas)
    };
    let found = found.await.map_err(|e: std::io::Error| e.to_string());
    session.close().await;
    found.map(Answer::Replicas)
}

fn from_node(question: Question, data: &Bytes) -> Option<Answer> {
    let payload = magic::strip(data)?;
    let server = |name: &pb::ServerName| convert::from_proto::server_name(name).ok().map(Answer::Server);
    match question {
        Question::Meta | Question::MetaReplicas => server(&pb::MetaRegionServer::decode(payload).ok()?.server),
        Question::Master => server(&pb::Master::decode(payload).ok()?.master),
        Question::ClusterId => Some(Answer::Text(pb::ClusterId::decode(payload).ok()?.cluster_id)),
    }
}

async fn ask_server(options: &Options, member: &str, question: Question) -> std::result::Result<Answer, String> {
    let address: Arc<str> = Arc::from(member);
    let channel = Channel::connect(address, "ClientMetaService", options).await.map_err(|e| e.to_string())?;
    let server = |name: Option<pb::ServerName>| {
        let name = name.ok_or("the server does not know")?;
        convert::from_proto::server_name(&name).map(Answer::Server).map_err(|e| e.to_string())
    };
    let text = |e: Error| e.to_string();
    match question {
        Question::Meta | Question::MetaReplicas => {
            let request = pb::GetMetaRegionLocationsRequest::default();
            let reply =
                channel.call(Request::new(Method::ClientMetaGetMetaRegionLocations, &request)).await.map_err(text)?;
            let reply: pb::GetMetaRegionLocationsResponse = reply.decode().map_err(text)?;
            if matches!(question, Question::MetaReplicas) {
                let replica = |location: pb::RegionLocation| {
                    let id = u32::try_from(location.region_info.replica_id()).ok().filter(|id| *id > 0)?;
                    Some((id, convert::from_proto::server_name(&location.server_name?).ok()?))
                };
                return Ok(Answer::Replicas(reply.meta_locations.into_iter().filter_map(replica).collect()));
            }
            let primary = reply.meta_locations.into_iter().find(|l| l.region_info.replica_id() == 0);
            server(primary.and_then(|location| location.server_name))
        }
        Question::Master => {
            let request = pb::GetActiveMasterRequest::default();
            let reply = channel.call(Request::new(Method::ClientMetaGetActiveMaster, &request)).await.map_err(text)?;
            server(reply.decode::<pb::GetActiveMasterResponse>().map_err(text)?.server_name)
        }
        Question::ClusterId => {
            let request = pb::GetClusterIdRequest::default();
            let reply = channel.call(Request::new(Method::ClientMetaGetClusterId, &request)).await.map_err(text)?;
            let id = reply.decode::<pb::GetClusterIdResponse>().map_err(text)?.cluster_id;
            id.map(Answer::Text).ok_or_else(|| "the server does not know".to_owned())
        }
    }
}
