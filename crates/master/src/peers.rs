//! Replication peers: other clusters that edits are to be shipped to. Kept one small file each,
//! `MasterData/basalt/peers/<id>`: the message `ReplicationPeerDescription` behind `PBUF`, and the CRC-32C of both
//! behind that. Coordination nodes are a copy; HBase's master keeps peers in these alone, so where that has led they count.
//!
//! Always true: a peer that is in memory is on the disk. While there is one, the cleaners delete nothing: nobody ships
//! yet, and whoever does will need the logs. [`READ_REPLICAS`] alone holds nothing up: what its logs would tell is in files by then. Follows: `ReplicationPeerManager`, `ZKReplicationPeerStorage`.

use crate::files::Files;
use crate::host::{Observer, PeerNodes};
use crate::procedure::peer::check::check_id;
use crate::{ErrorKind, MasterError, Result};
use bytes::Bytes;
use fs::{FilePath, Volume};
use parking_lot::RwLock;
use proto::pb::replication_state::State;
use proto::{magic, pb};
use rootdir::paths::own_master_dir;
use std::collections::BTreeMap;
use std::sync::Arc;

const CHECKSUM_BYTES: usize = 4;

/// The peer by which region servers of HBase's tell read replicas what is written; ours tell them without. Follows:
/// `ServerRegionReplicaUtil#setupRegionReplicaReplication`.
pub(crate) const READ_REPLICAS: &str = "region_replica_replication";
const READ_REPLICAS_ENDPOINT: &str =
    "org.apache.hadoop.hbase.replication.regionserver.RegionReplicaReplicationEndpoint";

/// Where peers are kept.
pub(crate) fn peers_dir() -> FilePath {
    own_master_dir().join("peers")
}

/// A peer's file cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum PeersError {
    /// The volume failed.
    #[error(transparent)]
    Io(#[from] fs::Error),
    /// A file that is no peer.
    #[error("{path} is no replication peer ({what}); move it away to start without that peer, and add it again")]
    Damaged {
        /// The file.
        path: FilePath,
        /// What is wrong.
        what: String,
    },
}

/// A peer.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Peer {
    pub config: pb::ReplicationPeer,
    pub enabled: bool,
}

impl Peer {
    fn state(&self) -> pb::ReplicationState {
        pb::ReplicationState { state: if self.enabled { State::Enabled } else { State::Disabled } as i32 }
    }

    /// HBase's message.
    pub fn to_message(&self, id: &str) -> pb::ReplicationPeerDescription {
        pb::ReplicationPeerDescription { id: id.to_owned(), state: self.state(), config: self.config.clone() }
    }

    fn nodes(&self) -> PeerNodes {
        PeerNodes { config: magic::encode(&self.config), state: magic::encode(&self.state()) }
    }
}

fn encode(id: &str, peer: &Peer) -> Vec<u8> {
    let mut bytes = magic::encode(&peer.to_message(id)).to_vec();
    bytes.extend_from_slice(&crc32c::crc32c(&bytes).to_be_bytes());
    bytes
}

fn decode(bytes: &Bytes) -> std::result::Result<(String, Peer), String> {
    let len = bytes.len().checked_sub(CHECKSUM_BYTES).ok_or("it is too short")?;
    if crc32c::crc32c(&bytes[..len]).to_be_bytes() != bytes[len..] {
        return Err("its checksum is wrong".into());
    }
    let message = magic::decode::<pb::ReplicationPeerDescription>(&bytes.slice(..len));
    let message = message.ok_or("it does not begin with PBUF")?.map_err(|error| error.to_string())?;
    let enabled = message.state.state == State::Enabled as i32;
    Ok((message.id, Peer { config: message.config, enabled }))
}

/// A peer as its nodes have it. Without a state that can be read it ships, as in HBase. Follows: `ZKReplicationPeerStorage`.
fn of_nodes(id: &str, nodes: &PeerNodes) -> std::result::Result<Peer, String> {
    check_id(id).map_err(|error| error.message)?;
    let config = magic::decode::<pb::ReplicationPeer>(&nodes.config);
    let config = config.ok_or("it does not begin with PBUF")?.map_err(|error| error.to_string())?;
    let state = magic::decode::<pb::ReplicationState>(&nodes.state).and_then(std::result::Result::ok);
    Ok(Peer { config, enabled: state.is_none_or(|state| state.state == State::Enabled as i32) })
}

/// What [`READ_REPLICAS`] is, in the ensemble `quorum` below `parent`.
pub(crate) fn of_read_replicas(quorum: &str, port: &str, parent: &str) -> Peer {
    let config = pb::ReplicationPeer {
        clusterkey: Some(format!("{quorum}:{port}:{parent}")),
        replication_endpoint_impl: Some(READ_REPLICAS_ENDPOINT.to_owned()),
        ..Default::default()
    };
    Peer { config, enabled: true }
}

/// The peers.
pub(crate) struct Peers {
    by_id: RwLock<BTreeMap<String, Peer>>,
    files: Files,
    observer: Arc<dyn Observer>,
}

impl Peers {
    /// Reads every peer.
    ///
    /// # Errors
    /// The volume, or a file that is no peer.
    pub fn load(volume: &dyn Volume) -> std::result::Result<BTreeMap<String, Peer>, PeersError> {
        let mut peers = BTreeMap::new();
        for entry in rootdir::list_if_exists(volume, &peers_dir())? {
            let path = peers_dir().join(&entry.name);
            if entry.name.starts_with(fs::TEMPORARY_PREFIX) {
                volume.remove_file(&path)?;
                continue;
            }
            let damaged = |what| PeersError::Damaged { path: path.clone(), what };
            let (id, peer) = decode(&Bytes::from(volume.read(&path)?)).map_err(damaged)?;
            peers.insert(id, peer);
        }
        Ok(peers)
    }

    /// Keeps the peers that HBase's master has left in nodes, and no others. May be repeated.
    ///
    /// # Errors
    /// The volume's.
    pub fn take_over(volume: &dyn Volume, nodes: &BTreeMap<String, PeerNodes>) -> fs::Result<BTreeMap<String, Peer>> {
        let dir = peers_dir();
        volume.create_dir_all_durable(&dir)?;
        for entry in rootdir::list_if_exists(volume, &dir)? {
            if !nodes.contains_key(&entry.name) {
                volume.remove_file(&dir.join(&entry.name))?;
            }
        }
        volume.sync_dir(&dir)?;
        let mut peers = BTreeMap::new();
        for (id, nodes) in nodes {
            match of_nodes(id, nodes) {
                Ok(peer) => {
                    volume.publish(&dir.join(id), &encode(id, &peer))?;
                    peers.insert(id.clone(), peer);
                }
                Err(what) => tracing::error!(
                    "the node replication/peers/{id} is no replication peer ({what}), and is left out; remove the node, and add the peer again"
                ),
            }
        }
        Ok(peers)
    }

    /// These, and where they are kept.
    pub fn new(peers: BTreeMap<String, Peer>, files: Files, observer: Arc<dyn Observer>) -> Peers {
        Peers { by_id: RwLock::new(peers), files, observer }
    }

    /// Tells the observer of all.
    pub fn tell_observer(&self) {
        for (id, peer) in self.all() {
            self.observer.peer(&id, Some(&peer.nodes()));
        }
    }

    /// Every peer, in the order of the ids.
    pub fn all(&self) -> Vec<(String, Peer)> {
        self.by_id.read().iter().map(|(id, peer)| (id.clone(), peer.clone())).collect()
    }

    /// # Errors
    /// There is no such peer.
    pub fn existing(&self, id: &str) -> Result<Peer> {
        let peer = self.by_id.read().get(id).cloned();
        peer.ok_or_else(|| MasterError::new(ErrorKind::ReplicationPeerNotFound, id))
    }

    /// Adds or changes a peer, durably. The caller holds its lock.
    ///
    /// # Errors
    /// The volume's.
    pub async fn put(&self, id: &str, peer: Peer) -> Result<()> {
        let (path, bytes) = (peers_dir().join(id), encode(id, &peer));
        let write = move |volume: &dyn Volume| {
            volume.create_dir_all_durable(&peers_dir())?;
            Ok(volume.publish(&path, &bytes)?)
        };
        self.files.run(write).await?;
        if peer.enabled && id != READ_REPLICAS {
            tracing::warn!(
                id,
                "nothing ships to replication peers yet: no log and no archived file is deleted meanwhile"
            );
        }
        let nodes = peer.nodes();
        self.by_id.write().insert(id.to_owned(), peer);
        self.observer.peer(id, Some(&nodes));
        Ok(())
    }

    /// Takes a peer away, durably. The caller holds its lock.
    ///
    /// # Errors
    /// The volume's.
    pub async fn remove(&self, id: &str) -> Result<()> {
        let path = peers_dir().join(id);
        let remove = move |volume: &dyn Volume| match volume.remove_file(&path) {
            Err(error) if error.is_not_found() => Ok(()),
            removed => Ok(removed.and_then(|()| volume.sync_dir(&peers_dir()))?),
        };
        self.files.run(remove).await?;
        self.by_id.write().remove(id);
        self.observer.peer(id, None);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use fs::MemVolume;

    #[test]
    fn what_hbases_master_has_in_nodes_takes_the_place_of_what_was_kept() {
        let volume = MemVolume::new();
        let peer = |enabled| Peer { config: pb::ReplicationPeer::default(), enabled };
        volume.put_file(&peers_dir().join("gone"), &encode("gone", &peer(true)));
        volume.put_file(&peers_dir().join("kept"), &encode("kept", &peer(true)));
        let nodes = BTreeMap::from([
            ("kept".to_owned(), peer(false).nodes()),
            ("new".to_owned(), PeerNodes { state: Bytes::new(), ..peer(true).nodes() }),
            ("strange".to_owned(), PeerNodes { config: Bytes::from_static(b"x"), ..peer(true).nodes() }),
            ("il-legal".to_owned(), peer(true).nodes()),
        ]);
        let wanted = BTreeMap::from([("kept".to_owned(), peer(false)), ("new".to_owned(), peer(true))]);
        for _ in 0..2 {
            assert_eq!(Peers::take_over(&volume, &nodes).expect("memory"), wanted);
            assert_eq!(Peers::load(&volume).expect("memory"), wanted);
        }
    }

    #[test]
    fn a_damaged_peer_is_named() {
        let volume = MemVolume::new();
        let peer = Peer { config: pb::ReplicationPeer::default(), enabled: true };
        let path = peers_dir().join("1");
        let bytes = encode("1", &peer);
        volume.put_file(&path, &bytes);
        assert_eq!(Peers::load(&volume).expect("a peer"), BTreeMap::from([("1".to_owned(), peer)]));
        for at in 0..bytes.len() {
            let mut bytes = bytes.clone();
            bytes[at] ^= 1;
            volume.put_file(&path, &bytes);
            let error = Peers::load(&volume).expect_err("damaged").to_string();
            assert!(error.contains(path.as_str()), "{error}");
        }
        volume.put_file(&path, b"PB");
        assert!(Peers::load(&volume).is_err());
    }
}
