//! Replication peers, over real connections.

use crate::common::{Catalog, Life, fresh, start};
use crate::service::{Connected, connect};
use base::{Config, Rng};
use fs::{CrashPolicy, Volume};
use pb::replication_state::State;
use proto::methods::Method;
use proto::pb;

fn config() -> pb::ReplicationPeer {
    pb::ReplicationPeer { clusterkey: Some("zk1,zk2:2181:/hbase".into()), ..Default::default() }
}

fn add(id: &str, config: pb::ReplicationPeer, state: State) -> pb::AddReplicationPeerRequest {
    let peer_state = pb::ReplicationState { state: state as i32 };
    pb::AddReplicationPeerRequest { peer_id: id.into(), peer_config: config, peer_state }
}

async fn peers(c: &Connected) -> Vec<(String, bool)> {
    let list: pb::ListReplicationPeersResponse =
        c.call(Method::MasterListReplicationPeers, &pb::ListReplicationPeersRequest::default()).await.expect("listed");
    let enabled = |peer: &pb::ReplicationPeerDescription| peer.state.state == State::Enabled as i32;
    list.peer_desc.iter().map(|peer| (peer.id.clone(), enabled(peer))).collect()
}

async fn made(c: &Connected, id: &str) {
    let added: pb::AddReplicationPeerResponse =
        c.call(Method::MasterAddReplicationPeer, &add(id, config(), State::Enabled)).await.expect("accepted");
    c.life.master.wait_for(added.proc_id.expect("an id")).await.expect("added");
}

#[tokio::test]
async fn a_peer_is_made_changed_and_removed_and_outlives_a_restart() {
    let c = connect(fresh().await, "MasterService").await;
    made(&c, "1").await;
    made(&c, "second").await;
    let disable = pb::DisableReplicationPeerRequest { peer_id: "1".into() };
    let disabled: pb::DisableReplicationPeerResponse =
        c.call(Method::MasterDisableReplicationPeer, &disable).await.expect("accepted");
    c.life.master.wait_for(disabled.proc_id.expect("an id")).await.expect("disabled");
    let new = pb::ReplicationPeer { bandwidth: Some(1000), ..config() };
    let update = pb::UpdateReplicationPeerConfigRequest { peer_id: "1".into(), peer_config: new };
    let updated: pb::UpdateReplicationPeerConfigResponse =
        c.call(Method::MasterUpdateReplicationPeerConfig, &update).await.expect("accepted");
    c.life.master.wait_for(updated.proc_id.expect("an id")).await.expect("updated");
    assert_eq!(peers(&c).await, [("1".to_owned(), false), ("second".to_owned(), true)]);

    let c = connect(c.life.restart().await, "MasterService").await;
    assert_eq!(peers(&c).await, [("1".to_owned(), false), ("second".to_owned(), true)]);
    assert_eq!(c.life.notes.peers.lock().keys().cloned().collect::<Vec<_>>(), ["1", "second"], "nodes are made anew");
    let get = pb::GetReplicationPeerConfigRequest { peer_id: "1".into() };
    let got: pb::GetReplicationPeerConfigResponse =
        c.call(Method::MasterGetReplicationPeerConfig, &get).await.expect("there");
    assert_eq!((got.peer_config.bandwidth, got.peer_config.replicate_all), (Some(1000), Some(true)));
    let state = pb::GetReplicationPeerStateRequest { peer_id: "second".into() };
    let state: pb::GetReplicationPeerStateResponse =
        c.call(Method::MasterIsReplicationPeerEnabled, &state).await.expect("there");
    assert!(state.is_enabled);
    let some = pb::ListReplicationPeersRequest { regex: Some("sec.*".into()) };
    let some: pb::ListReplicationPeersResponse =
        c.call(Method::MasterListReplicationPeers, &some).await.expect("listed");
    assert_eq!(some.peer_desc.len(), 1);

    for id in ["1", "second"] {
        let remove = pb::RemoveReplicationPeerRequest { peer_id: id.into() };
        let removed: pb::RemoveReplicationPeerResponse =
            c.call(Method::MasterRemoveReplicationPeer, &remove).await.expect("accepted");
        c.life.master.wait_for(removed.proc_id.expect("an id")).await.expect("removed");
    }
    assert_eq!(peers(&c).await, []);
    assert_eq!(c.life.notes.peers.lock().len(), 0);
    let get = pb::GetReplicationPeerConfigRequest { peer_id: "1".into() };
    let (class, _) = c.refused(Method::MasterGetReplicationPeerConfig, &get).await;
    assert_eq!(class, "org.apache.hadoop.hbase.ReplicationPeerNotFoundException");
}

#[tokio::test]
async fn what_no_peer_can_be_is_refused_in_hbase_s_words() {
    let c = connect(fresh().await, "MasterService").await;
    made(&c, "1").await;
    let key = |key: &str| pb::ReplicationPeer { clusterkey: Some(key.into()), ..Default::default() };
    let namespaces = || vec![bytes::Bytes::from("ns")];
    for (request, words) in [
        (add("1", config(), State::Enabled), "Replication peer 1 already exists"),
        (add("a-b", config(), State::Enabled), "Found invalid peer name: a-b"),
        (add("../1", config(), State::Enabled), "Found invalid peer name: ../1"),
        (add("2", key("nonsense"), State::Enabled), "Invalid cluster key: nonsense"),
        (add("2", key("h:2181:/"), State::Enabled), "Invalid cluster key: h:2181:/"),
        (
            add("2", pb::ReplicationPeer { namespaces: namespaces(), ..config() }, State::Enabled),
            "Need clean namespaces or table-cfs config firstly when you want replicate all cluster",
        ),
        (
            add(
                "2",
                pb::ReplicationPeer { replicate_all: Some(false), exclude_namespaces: namespaces(), ..config() },
                State::Enabled,
            ),
            "Need clean exclude-namespaces or exclude-table-cfs config firstly when replicate_all flag is false",
        ),
    ] {
        let (class, text) = c.failed(Method::MasterAddReplicationPeer, &request).await;
        assert_eq!(class, "org.apache.hadoop.hbase.DoNotRetryIOException", "{text}");
        assert!(text.contains(words), "{text}");
    }
    let enable = pb::EnableReplicationPeerRequest { peer_id: "1".into() };
    let (_, text) = c.failed(Method::MasterEnableReplicationPeer, &enable).await;
    assert!(text.contains("Replication peer 1 has already been enabled"), "{text}");
    let update = pb::UpdateReplicationPeerConfigRequest { peer_id: "1".into(), peer_config: key("other:2181:/hbase") };
    let (_, text) = c.failed(Method::MasterUpdateReplicationPeerConfig, &update).await;
    assert!(
        text.contains(
            "Changing the cluster key on an existing peer is not allowed. Existing key 'zk1,zk2:2181:/hbase'"
        ),
        "{text}"
    );
    let off: pb::ReplicationPeerModificationSwitchResponse = c
        .call(
            Method::MasterReplicationPeerModificationSwitch,
            &pb::ReplicationPeerModificationSwitchRequest { on: false },
        )
        .await
        .expect("switched");
    assert!(off.previous_value);
    let (class, text) = c.refused(Method::MasterAddReplicationPeer, &add("3", config(), State::Enabled)).await;
    assert_eq!(class, "java.io.IOException");
    assert!(text.contains("Replication peer modification disabled"), "{text}");
    assert_eq!(peers(&c).await, [("1".to_owned(), true)]);
}

/// The power fails after each call of adding a peer: it is there with all of its configuration, or not at all.
#[tokio::test]
async fn a_kill_while_a_peer_is_made_leaves_it_whole_or_not_there() {
    async fn added(life: &Life) -> Option<bool> {
        let peer = life.files_below("MasterData/basalt/peers");
        peer.first().map(|path| !life.memory.read(&fs::FilePath::new(path.as_str())).expect("memory").is_empty())
    }
    for stop_after in 0i64.. {
        let c = connect(fresh().await, "MasterService").await;
        c.life.machine.switch_off_after(stop_after);
        let machine = std::sync::Arc::clone(&c.life.machine);
        tokio::select! {
            () = machine.is_off() => {}
            () = made(&c, "1") => {}
        }
        let whole = !machine.went_off();
        c.life.machine.switch_off_after(0);
        c.life.master.stop();
        for policy in [CrashPolicy::LoseUnsynced, CrashPolicy::KeepAll] {
            let crashed = c.life.memory.crash(&Rng::seeded(stop_after as u64), policy);
            let catalog = Catalog::clone(&c.life.catalog);
            let next = start(&crashed, &catalog, Config::default()).await.expect("starts");
            let peer = added(&next).await;
            assert_ne!(peer, Some(false));
            assert_eq!(next.notes.peers.lock().len(), usize::from(peer.is_some()), "after {stop_after} calls");
            assert!(!whole || peer.is_some());
            next.master.stop();
        }
        if whole {
            assert!(stop_after > 5, "{stop_after}");
            break;
        }
    }
}
