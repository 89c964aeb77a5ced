//! AddPeerProcedure, RemovePeerProcedure, UpdatePeerConfigProcedure, EnablePeerProcedure, DisablePeerProcedure: they
//! differ in one step.

use super::check::{check_config, check_id, check_update};
use crate::host::BoxFuture;
use crate::locks::{Mode, Resource};
use crate::master::Master;
use crate::peers::{Peer, READ_REPLICAS};
use crate::procedure::engine::{Procedure, Step, any, malformed, unpack, unpack_one};
use crate::procedure::{BoxedProcedure, Caller, Context, Next, ProcedureKind};
use crate::{ErrorKind, MasterError, Result};
use proto::pb::PeerModificationState as State;
use proto::{Any, pb};
use std::sync::Arc;

macro_rules! class {
    ($name:literal) => {
        concat!("org.apache.hadoop.hbase.master.replication.", $name)
    };
}

const ADD: &str = class!("AddPeerProcedure");
const REMOVE: &str = class!("RemovePeerProcedure");
const UPDATE: &str = class!("UpdatePeerConfigProcedure");
const ENABLE: &str = class!("EnablePeerProcedure");
const DISABLE: &str = class!("DisablePeerProcedure");

/// The classes of procedures on peers.
pub(crate) const CLASSES: [&str; 5] = [ADD, REMOVE, UPDATE, ENABLE, DISABLE];

pub(crate) const ADD_KIND: ProcedureKind =
    ProcedureKind { class_name: ADD, read: |data| ModifyPeer::read(data, read_add) };
pub(crate) const REMOVE_KIND: ProcedureKind =
    ProcedureKind { class_name: REMOVE, read: |data| ModifyPeer::read(data, |_| Ok(Change::Remove)) };
pub(crate) const UPDATE_KIND: ProcedureKind =
    ProcedureKind { class_name: UPDATE, read: |data| ModifyPeer::read(data, read_update) };
pub(crate) const ENABLE_KIND: ProcedureKind =
    ProcedureKind { class_name: ENABLE, read: |data| ModifyPeer::read(data, |_| Ok(Change::Enable)) };
pub(crate) const DISABLE_KIND: ProcedureKind =
    ProcedureKind { class_name: DISABLE, read: |data| ModifyPeer::read(data, |_| Ok(Change::Disable)) };

/// What becomes of a peer.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Change {
    /// It is made.
    Add(Box<Peer>),
    /// It goes.
    Remove,
    /// It has another configuration.
    Update(Box<pb::ReplicationPeer>),
    /// Edits are to be shipped to it.
    Enable,
    /// None are.
    Disable,
}

/// A peer is changed.
#[derive(Debug)]
struct ModifyPeer {
    id: String,
    change: Change,
}

fn read_add(data: &[Any]) -> Result<Change> {
    let state: pb::AddPeerStateData = unpack(data)?;
    Ok(Change::Add(Box::new(Peer { config: state.peer_config, enabled: state.enabled })))
}

fn read_update(data: &[Any]) -> Result<Change> {
    Ok(Change::Update(Box::new(unpack::<pb::UpdatePeerConfigStateData>(data)?.peer_config)))
}

/// What HBase's builder of a configuration fills in.
fn with_defaults(mut config: pb::ReplicationPeer) -> pb::ReplicationPeer {
    config.bandwidth.get_or_insert(0);
    config.replicate_all.get_or_insert(true);
    config.serial.get_or_insert(false);
    config
}

/// Changes a peer; answers the procedure's id.
///
/// # Errors
/// There is no such peer, or is one; a configuration that cannot be used; peers may not be changed now.
pub(crate) async fn submit(master: &Arc<Master>, id: &str, change: Change, caller: &Caller) -> Result<u64> {
    if !master.switches.peer_modification() {
        return Err(MasterError::new(ErrorKind::Io, "Replication peer modification disabled"));
    }
    let change = match change {
        Change::Add(peer) => Change::Add(Box::new(Peer { config: with_defaults(peer.config), enabled: peer.enabled })),
        Change::Update(config) => Change::Update(Box::new(with_defaults(*config))),
        other => other,
    };
    let procedure = ModifyPeer { id: id.to_owned(), change };
    let submission = caller.submission(procedure.locks());
    let prepare = async {
        procedure.check(master)?;
        Ok(Box::new(procedure) as BoxedProcedure)
    };
    master.procedures.submit(master, submission, prepare).await
}

/// Makes the peer by which region servers of HBase's tell read replicas, if they are to be told and it is not there; does not wait for it.
/// Follows: `ServerRegionReplicaUtil#setupRegionReplicaReplication`.
///
/// # Errors
/// The procedure cannot be recorded.
pub(crate) async fn set_up_read_replicas(master: &Arc<Master>) -> Result<()> {
    let Some(peer) = master.settings().read_replica_peer.clone().filter(|_| master.servers.are_remote()) else {
        return Ok(());
    };
    let is_there = || master.peers.existing(READ_REPLICAS).is_ok();
    if is_there() {
        return Ok(());
    }
    let peer = Peer { config: with_defaults(peer.config), enabled: peer.enabled };
    let procedure = ModifyPeer { id: READ_REPLICAS.to_owned(), change: Change::Add(Box::new(peer)) };
    let caller = Caller { user: master.server_name.to_string(), nonce: None };
    let submission = caller.submission(procedure.locks());
    let prepare = async {
        match is_there() {
            true => Err(MasterError::do_not_retry(format!("Replication peer {READ_REPLICAS} already exists"))),
            false => Ok(Box::new(procedure) as BoxedProcedure),
        }
    };
    match master.procedures.submit(master, submission, prepare).await {
        Err(_) if is_there() => Ok(()),
        submitted => submitted.map(drop),
    }
}

impl ModifyPeer {
    fn read(data: &[Any], change: fn(&[Any]) -> Result<Change>) -> Result<BoxedProcedure> {
        let state: pb::PeerProcedureStateData = unpack_one(data.first())?;
        check_id(&state.peer_id).map_err(malformed)?;
        Ok(Box::new(ModifyPeer { id: state.peer_id, change: change(data)? }))
    }

    fn check(&self, master: &Master) -> Result<()> {
        let id = &self.id;
        let already = |what| Err(MasterError::do_not_retry(format!("Replication peer {id} has already been {what}")));
        match &self.change {
            Change::Add(peer) => {
                check_id(id)?;
                check_config(&peer.config)?;
                if master.peers.existing(id).is_ok() {
                    return Err(MasterError::do_not_retry(format!("Replication peer {id} already exists")));
                }
            }
            Change::Update(config) => {
                check_config(config)?;
                check_update(id, &master.peers.existing(id)?.config, config)?;
            }
            Change::Remove => drop(master.peers.existing(id)?),
            Change::Enable if master.peers.existing(id)?.enabled => return already("enabled"),
            Change::Disable if !master.peers.existing(id)?.enabled => return already("disabled"),
            Change::Enable | Change::Disable => {}
        }
        Ok(())
    }

    /// Has region servers of other processes take note. One that does not is told of in the log: it reads the nodes when it starts.
    async fn tell_servers(&self, master: &Master) {
        use pb::PeerModificationType::{AddPeer, DisablePeer, EnablePeer, RemovePeer, UpdatePeerConfig};
        let change = match self.change {
            Change::Add(_) => AddPeer,
            Change::Remove => RemovePeer,
            Change::Update(_) => UpdatePeerConfig,
            Change::Enable => EnablePeer,
            Change::Disable => DisablePeer,
        };
        for host in master.servers.all() {
            if let Err(error) = host.order_peer(&self.id, change).await {
                tracing::warn!(
                    peer = self.id, server = %host.server_name(), %error,
                    "a region server did not take note of a changed replication peer; it does when it is restarted"
                );
            }
        }
    }

    async fn update_storage(&self, master: &Master) -> Result<()> {
        let (id, peers) = (&self.id, &master.peers);
        match &self.change {
            Change::Add(peer) => peers.put(id, Peer::clone(peer)).await,
            Change::Remove => peers.remove(id).await,
            Change::Update(config) => {
                let enabled = peers.existing(id)?.enabled;
                peers.put(id, Peer { config: (**config).clone(), enabled }).await
            }
            Change::Enable => peers.put(id, Peer { enabled: true, ..peers.existing(id)? }).await,
            Change::Disable => peers.put(id, Peer { enabled: false, ..peers.existing(id)? }).await,
        }
    }
}

impl Procedure<Master> for ModifyPeer {
    fn class_name(&self) -> &'static str {
        match self.change {
            Change::Add(_) => ADD,
            Change::Remove => REMOVE,
            Change::Update(_) => UPDATE,
            Change::Enable => ENABLE,
            Change::Disable => DISABLE,
        }
    }

    fn state_data(&self) -> Vec<Any> {
        let own = match &self.change {
            Change::Add(peer) => any(
                "AddPeerStateData",
                &pb::AddPeerStateData { peer_config: peer.config.clone(), enabled: peer.enabled },
            ),
            Change::Remove => any("RemovePeerStateData", &pb::RemovePeerStateData::default()),
            Change::Update(config) => any(
                "UpdatePeerConfigStateData",
                &pb::UpdatePeerConfigStateData { peer_config: (**config).clone(), ..Default::default() },
            ),
            Change::Enable => any("EnablePeerStateData", &pb::EnablePeerStateData {}),
            Change::Disable => any("DisablePeerStateData", &pb::DisablePeerStateData {}),
        };
        vec![any("PeerProcedureStateData", &pb::PeerProcedureStateData { peer_id: self.id.clone() }), own]
    }

    fn locks(&self) -> Vec<(Resource, Mode)> {
        vec![(Resource::Peer(self.id.clone()), Mode::Exclusive)]
    }

    fn first_step(&self) -> Step {
        State::UpdatePeerStorage as Step
    }

    // Region servers are told of no other peer, for nobody ships to it.
    fn execute<'a>(&'a mut self, _step: Step, context: &'a Context) -> BoxFuture<'a, Result<Next>> {
        Box::pin(async move {
            self.update_storage(&context.env).await?;
            if self.id == READ_REPLICAS {
                self.tell_servers(&context.env).await;
            }
            Ok(Next::Done(None))
        })
    }
}
