//! AddPeerProcedure, RemovePeerProcedure, UpdatePeerConfigProcedure, EnablePeerProcedure, DisablePeerProcedure: they
//! differ in one step.

use super::check::{check_config, check_id, check_update};
use crate::host::BoxFuture;
use crate::locks::{Mode, Resource};
use crate::master::Master;
use crate::peers::{Peer, READ_REPLICAS};
use crate::procedure::engine::{Procedure, Step, any, malformed, steps, unpack, unpack_one};
use crate::procedure::for_hbase::Form;
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
    ProcedureKind { class_name: REMOVE, read: |data| ModifyPeer::read(data, read_remove) };
pub(crate) const UPDATE_KIND: ProcedureKind =
    ProcedureKind { class_name: UPDATE, read: |data| ModifyPeer::read(data, read_update) };
pub(crate) const ENABLE_KIND: ProcedureKind =
    ProcedureKind { class_name: ENABLE, read: |data| ModifyPeer::read(data, |_| Ok((Change::Enable, None))) };
pub(crate) const DISABLE_KIND: ProcedureKind =
    ProcedureKind { class_name: DISABLE, read: |data| ModifyPeer::read(data, |_| Ok((Change::Disable, None))) };

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
    /// What it is before, of one that is removed or has another configuration: HBase's last step goes by it.
    before: Option<Box<Peer>>,
}

type Read = (Change, Option<Box<Peer>>);

fn read_add(data: &[Any]) -> Result<Read> {
    let state: pb::AddPeerStateData = unpack(data)?;
    Ok((Change::Add(Box::new(Peer { config: state.peer_config, enabled: state.enabled })), None))
}

fn read_remove(data: &[Any]) -> Result<Read> {
    let state: pb::RemovePeerStateData = unpack(data)?;
    // Whether it ships is nothing to who removes it, and is not kept.
    let before = state.peer_config.map(|config| Box::new(Peer { config, enabled: false }));
    Ok((Change::Remove, before))
}

fn read_update(data: &[Any]) -> Result<Read> {
    let state: pb::UpdatePeerConfigStateData = unpack(data)?;
    let before = state.old_peer_config.map(|config| Box::new(Peer { config, enabled: state.enabled }));
    Ok((Change::Update(Box::new(state.peer_config)), before))
}

/// What HBase's builder of a configuration fills in.
fn with_defaults(mut config: pb::ReplicationPeer) -> pb::ReplicationPeer {
    config.bandwidth.get_or_insert(0);
    config.replicate_all.get_or_insert(true);
    config.serial.get_or_insert(false);
    config
}

/// Settings that are not named stay. Follows: `ReplicationPeerManager#updatePeerConfig`.
fn updated(old: &pb::ReplicationPeer, new: &pb::ReplicationPeer) -> pb::ReplicationPeer {
    let mut new = new.clone();
    let is_named = |pair: &&pb::NameStringPair| new.configuration.iter().any(|other| other.name == pair.name);
    let kept: Vec<_> = old.configuration.iter().filter(|pair| !is_named(pair)).cloned().collect();
    new.configuration.extend(kept);
    new
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
    let mut procedure = ModifyPeer { id: id.to_owned(), change, before: None };
    let submission = caller.submission(procedure.locks());
    let prepare = async {
        procedure.check(master)?;
        procedure.before = master.peers.existing(id).ok().map(Box::new);
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
    let procedure = ModifyPeer { id: READ_REPLICAS.to_owned(), change: Change::Add(Box::new(peer)), before: None };
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
    fn read(data: &[Any], own: fn(&[Any]) -> Result<Read>) -> Result<BoxedProcedure> {
        let state: pb::PeerProcedureStateData = unpack_one(data.first())?;
        check_id(&state.peer_id).map_err(malformed)?;
        let (change, before) = own(data)?;
        Ok(Box::new(ModifyPeer { id: state.peer_id, change, before }))
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
                let peer = peers.existing(id)?;
                peers.put(id, Peer { config: updated(&peer.config, config), enabled: peer.enabled }).await
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
        let old_peer_config = self.before.as_ref().map(|peer| peer.config.clone());
        let own = match &self.change {
            Change::Add(peer) => any(
                "AddPeerStateData",
                &pb::AddPeerStateData { peer_config: peer.config.clone(), enabled: peer.enabled },
            ),
            Change::Remove => any("RemovePeerStateData", &pb::RemovePeerStateData { peer_config: old_peer_config }),
            Change::Update(config) => any(
                "UpdatePeerConfigStateData",
                &pb::UpdatePeerConfigStateData {
                    peer_config: (**config).clone(),
                    old_peer_config,
                    enabled: self.before.as_ref().is_some_and(|peer| peer.enabled),
                },
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

    // HBase's has every region server take note, and repeats that until it has. Ours refuse a peer that is to be shipped to, and HBase's the
    // change of one that they have not heard of, as they have of none under this master: it would be repeated for ever.
    fn for_hbase(&self) -> Form {
        let is_heard = self.id == READ_REPLICAS || self.change == Change::Remove;
        let steps = steps(&[State::PrePeerModification, State::UpdatePeerStorage]);
        if is_heard { Form::Steps(steps) } else { Form::Failed }
    }

    // Region servers are told of no other peer, for nobody ships to it; but of what HBase's master was to tell them, whose servers do.
    fn execute<'a>(&'a mut self, step: Step, context: &'a Context) -> BoxFuture<'a, Result<Next>> {
        Box::pin(async move {
            self.update_storage(&context.env).await?;
            if self.id == READ_REPLICAS || step == State::RefreshPeerOnRs as Step {
                self.tell_servers(&context.env).await;
            }
            Ok(Next::Done(None))
        })
    }
}
