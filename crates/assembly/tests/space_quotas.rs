//! Quotas of space from the request that sets them to the write that they refuse: what each policy forbids, and when it ends.

use crate::quotas::{ON, Place, of_namespace, of_table, put, space, specifier};
use bytes::Bytes;
use fs::{FilePath, MemVolume, Volume};
use model::{RegionInfo, TableName};
use proto::methods::Method;
use proto::pb;
use proto::pb::SpaceViolationPolicy as Policy;
use proto::pb::mutation_proto::{ColumnValue, DeleteType, MutationType, column_value::QualifierValue};
use rpc::CallResult;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

const LIMITING: &str = "org.apache.hadoop.hbase.quotas.SpaceLimitingException";

/// Bytes that no codec makes fewer.
fn noise(len: usize) -> Bytes {
    let rng = base::Rng::seeded(7);
    (0..len).map(|_| rng.below(256) as u8).collect::<Vec<u8>>().into()
}

fn mutation(region: &RegionInfo, kind: MutationType, value: Bytes) -> pb::MutateRequest {
    let mut request = put(region);
    let delete_type = (kind == MutationType::Delete).then_some(DeleteType::DeleteMultipleVersions as i32);
    let cell = QualifierValue {
        qualifier: Some(Bytes::from("q")),
        value: Some(value),
        delete_type,
        ..QualifierValue::default()
    };
    request.mutation.mutate_type = Some(kind as i32);
    request.mutation.column_value = vec![ColumnValue { family: Bytes::from("f"), qualifier_value: vec![cell] }];
    request
}

impl Place {
    async fn mutate(&self, request: &pb::MutateRequest) -> CallResult {
        self.call("bob", Method::ClientMutate, request).await
    }

    /// A batch of one, whose failure is the action's.
    async fn batch(&self, requests: &[&pb::MutateRequest], atomic: bool) -> Vec<Option<String>> {
        let actions = requests.iter().zip(0..).map(|(request, index)| pb::Action {
            index: Some(index),
            mutation: Some(request.mutation.clone()),
            ..pb::Action::default()
        });
        let action = pb::RegionAction {
            region: requests[0].region.clone(),
            atomic: Some(atomic),
            action: actions.collect(),
            ..pb::RegionAction::default()
        };
        let multi = pb::MultiRequest { region_action: vec![action], ..pb::MultiRequest::default() };
        let response: pb::MultiResponse = self.admin(Method::ClientMulti, &multi).await.expect("an answer");
        let result = &response.region_action_result[0];
        let said = |exception: &pb::NameBytesPair| {
            let text = String::from_utf8_lossy(exception.value.as_deref().unwrap_or_default()).into_owned();
            text.lines().next().unwrap_or_default().to_owned()
        };
        match &result.exception {
            Some(exception) => requests.iter().map(|_| Some(said(exception))).collect(),
            None => result.result_or_exception.iter().map(|one| one.exception.as_ref().map(said)).collect(),
        }
    }

    /// Writes 20,000 bytes, and into a file.
    async fn fill(&self, region: &RegionInfo) {
        self.mutate(&mutation(region, MutationType::Put, noise(20_000))).await.expect("written");
        self.flush(region).await;
    }

    async fn flush(&self, region: &RegionInfo) {
        let request = pb::FlushRegionRequest { region: specifier(region), ..pb::FlushRegionRequest::default() };
        let _: pb::FlushRegionResponse = self.admin(Method::AdminFlushRegion, &request).await.expect("flushed");
    }

    async fn compact(&self, user: &str, region: &RegionInfo) -> CallResult {
        let request = pb::CompactRegionRequest {
            region: specifier(region),
            major: Some(true),
            ..pb::CompactRegionRequest::default()
        };
        self.call(user, Method::AdminCompactRegion, &request).await
    }

    fn bytes_of(&self, region: &RegionInfo) -> u64 {
        let sizes = self.node.server().region_sizes();
        sizes.iter().find(|(info, _)| info == region).map_or(0, |(_, bytes)| *bytes)
    }

    async fn observe(&self) {
        self.node.master().run_space_quotas().await.expect("a round");
    }

    /// Bounds the table to so many bytes, and lets that count.
    async fn bound(&self, table: &str, limit: u64, policy: Policy) {
        self.set(of_table(table, space(limit, policy))).await.expect("set");
        self.observe().await;
    }

    async fn states(&self) -> pb::GetQuotaStatesResponse {
        self.admin(Method::MasterGetQuotaStates, &pb::GetQuotaStatesRequest {}).await.expect("asked")
    }

    async fn set_enabled(&self, table: &str, enabled: bool) -> Result<(), String> {
        let table_name = convert::to_proto::table_name(&TableName::parse(table).expect("legal"));
        let id = if enabled {
            let request = pb::EnableTableRequest { table_name, ..pb::EnableTableRequest::default() };
            let response: pb::EnableTableResponse = self.admin(Method::MasterEnableTable, &request).await?;
            response.proc_id()
        } else {
            let request = pb::DisableTableRequest { table_name, ..pb::DisableTableRequest::default() };
            let response: pb::DisableTableResponse = self.admin(Method::MasterDisableTable, &request).await?;
            response.proc_id()
        };
        self.finish(id).await;
        Ok(())
    }

    fn is_enabled(&self, table: &str) -> bool {
        let state = self.node.master().cluster().state(&TableName::parse(table).expect("legal"));
        state == Some(master::cluster::TableState::Enabled)
    }

    async fn take_snapshot(&self, table: &str, name: &str) {
        let snapshot = pb::SnapshotDescription { name: name.into(), table: Some(table.into()), ..Default::default() };
        // Without a nonce the answer has no procedure to wait for.
        static NONCES: AtomicU64 = AtomicU64::new(1);
        let nonce = NONCES.fetch_add(1, Ordering::Relaxed);
        let request = pb::SnapshotRequest { snapshot, nonce_group: Some(1), nonce: Some(nonce) };
        let response: pb::SnapshotResponse = self.admin(Method::MasterSnapshot, &request).await.expect("taken");
        self.finish(response.proc_id().try_into().expect("a procedure")).await;
    }
}

#[track_caller]
fn limited(result: CallResult, message: &str) {
    let exception = result.expect_err("the policy forbids it");
    assert_eq!((exception.class(), exception.message()), (LIMITING, message));
}

fn removal() -> pb::SetQuotaRequest {
    let quota = pb::SpaceQuota { remove: Some(true), ..pb::SpaceQuota::default() };
    pb::SetQuotaRequest { space_limit: Some(pb::SpaceLimitRequest { quota: Some(quota) }), ..Default::default() }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_inserts_refuses_what_adds_and_lets_deletes_make_room() {
    let place = Place::start(&Arc::new(MemVolume::new()), 1, &[ON]).await;
    let region = place.create_table("t").await;
    let other = place.create_table("other").await;
    place.fill(&region).await;
    place.fill(&other).await;
    place.bound("t", 1 << 20, Policy::NoInserts).await;
    let one = mutation(&region, MutationType::Put, Bytes::from("v"));
    place.mutate(&one).await.expect("there is room");
    place.bound("t", 10_000, Policy::NoInserts).await;
    let puts = "NO_INSERTS Puts are disallowed due to a space quota.";
    limited(place.mutate(&one).await, puts);
    let long = Bytes::from_static(&[0, 0, 0, 0, 0, 0, 0, 1]);
    let increment = mutation(&region, MutationType::Increment, long);
    limited(place.mutate(&increment).await, "NO_INSERTS Increments are disallowed due to a space quota.");
    let append = mutation(&region, MutationType::Append, Bytes::from("v"));
    limited(place.mutate(&append).await, "NO_INSERTS Appends are disallowed due to a space quota.");
    let delete = mutation(&region, MutationType::Delete, Bytes::new());
    let said = Some(format!("{LIMITING}: {puts}"));
    assert_eq!(place.batch(&[&one, &delete], false).await, [said.clone(), said.clone()], "they would be done together");
    assert_eq!(place.batch(&[&delete, &one], true).await, [said.clone(), said], "all or nothing");
    assert_eq!(place.batch(&[&delete], false).await, [None]);
    place.get("bob", &region).await.expect("reads go on");
    place.put("bob", &other).await.expect("another table");
    // Room is made by a compaction, which nothing forbids.
    place.mutate(&delete).await.expect("it is a delete");
    place.flush(&region).await;
    place.compact("bob", &region).await.expect("it may be compacted");
    while place.bytes_of(&region) > 10_000 {
        tokio::task::yield_now().await;
    }
    place.observe().await;
    place.mutate(&one).await.expect("there is room again");
    place.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_writes_refuses_deletes_too_and_ends_with_the_quota() {
    let place = Place::start(&Arc::new(MemVolume::new()), 1, &[ON]).await;
    let region = place.create_table("t").await;
    place.fill(&region).await;
    place.bound("t", 10_000, Policy::NoWrites).await;
    let delete = mutation(&region, MutationType::Delete, Bytes::new());
    limited(place.mutate(&delete).await, "NO_WRITES Deletes are disallowed due to a space quota.");
    limited(place.put("bob", &region).await, "NO_WRITES Puts are disallowed due to a space quota.");
    // What is written of it is what HBase writes.
    let bytes = place.bytes_of(&region);
    let snapshot = quota::SpaceSnapshot { violated: Some(Policy::NoWrites), usage_bytes: bytes, limit_bytes: 10_000 };
    let hex: String = quota::space::encode(&snapshot).iter().map(|byte| format!("{byte:02x}")).collect();
    let table = place.quota_table();
    assert_eq!(table, format!("t.t q:s 504255461a0508904e1003\nt.t u:p {hex}\n"));
    place.set(of_table("t", removal())).await.expect("removed");
    assert_eq!(place.quota_table(), "");
    place.put("bob", &region).await.expect("nothing forbids it");
    place.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_writes_compactions_leaves_compactions_to_superusers() {
    let settings = [ON, ("hbase.superuser", "admin")];
    let place = Place::start(&Arc::new(MemVolume::new()), 1, &settings).await;
    let region = place.create_table("t").await;
    place.fill(&region).await;
    place.bound("t", 10_000, Policy::NoWritesCompactions).await;
    let snapshots: pb::GetSpaceQuotaSnapshotsResponse =
        place.admin(Method::AdminGetSpaceQuotaSnapshots, &pb::GetSpaceQuotaSnapshotsRequest {}).await.expect("asked");
    let snapshot = snapshots.snapshots[0].snapshot.expect("of the table");
    let status = snapshot.quota_status.map(|status| (status.in_violation(), status.violation_policy()));
    assert_eq!(status, Some((true, Policy::NoWritesCompactions)));
    assert_eq!((snapshot.quota_limit(), snapshot.quota_usage()), (10_000, place.bytes_of(&region)));
    let puts = "NO_WRITES_COMPACTIONS Puts are disallowed due to a space quota.";
    limited(place.put("bob", &region).await, puts);
    let refused = place.compact("bob", &region).await.expect_err("not he");
    assert_eq!(refused.class(), "org.apache.hadoop.hbase.DoNotRetryIOException");
    assert_eq!(refused.message(), "Compactions on this region are disabled due to a space quota violation.");
    place.compact("admin", &region).await.expect("a superuser may");
    place.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn disable_closes_the_table_until_it_may_use_more() {
    let volume = Arc::new(MemVolume::new());
    let place = Place::start(&volume, 1, &[ON]).await;
    let region = place.create_table("t").await;
    place.fill(&region).await;
    place.bound("t", 10_000, Policy::Disable).await;
    assert!(!place.is_enabled("t"));
    let refused = place.set_enabled("t", true).await.expect_err("it is too large");
    assert!(refused.contains("Enabling the table 't' is disallowed due to a violated space quota."), "{refused}");
    place.observe().await;
    assert!(!place.is_enabled("t"), "no region is open that could be reported, and what was reported counts on");
    place.bound("t", 1 << 20, Policy::Disable).await;
    assert!(place.is_enabled("t"));
    place.put("bob", &region).await.expect("it is open");
    place.bound("t", 10_000, Policy::Disable).await;
    place.stop().await;

    let place = Place::start(&volume, 2, &[ON]).await;
    assert!(!place.is_enabled("t"));
    let refused = place.set_enabled("t", true).await.expect_err("it was too large when it was closed");
    assert!(refused.contains("disallowed due to a violated space quota"), "{refused}");
    place.set(of_table("t", removal())).await.expect("removed");
    assert!(place.is_enabled("t"), "without a quota it is opened");
    place.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_namespaces_quota_is_for_its_tables_together_and_goes_with_it() {
    let place = Place::start(&Arc::new(MemVolume::new()), 1, &[ON]).await;
    let first = place.create_table("ns:a").await;
    place.fill(&first).await;
    let outside = place.create_table("a").await;
    place.set(of_namespace("ns", space(10_000, Policy::NoWrites))).await.expect("set");
    place.observe().await;
    limited(place.put("bob", &first).await, "NO_WRITES Puts are disallowed due to a space quota.");
    place.put("bob", &outside).await.expect("another namespace");
    let states = place.states().await;
    assert!(states.table_snapshots.is_empty(), "no table has a quota of its own");
    let state = states.ns_snapshots[0].clone();
    assert_eq!(state.namespace(), "ns");
    assert_eq!(state.snapshot.map(|snapshot| snapshot.quota_usage()), Some(place.bytes_of(&first)));
    let sizes: pb::GetSpaceQuotaRegionSizesResponse = place
        .admin(Method::MasterGetSpaceQuotaRegionSizes, &pb::GetSpaceQuotaRegionSizesRequest {})
        .await
        .expect("asked");
    let of_first = convert::to_proto::table_name(&first.table);
    let size = sizes.sizes.iter().find(|size| size.table_name.as_ref() == Some(&of_first)).expect("it was reported");
    assert_eq!(size.size(), place.bytes_of(&first));
    place.set(of_namespace("ns", removal())).await.expect("removed");
    place.put("bob", &first).await.expect("nothing forbids it");
    assert_eq!(place.quota_table(), "");
    place.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_only_snapshots_keep_is_the_tables_use_too() {
    let volume = Arc::new(MemVolume::new());
    let place = Place::start(&volume, 1, &[ON]).await;
    let region = place.create_table("t").await;
    place.fill(&region).await;
    let bytes = place.bytes_of(&region);
    place.take_snapshot("t", "s1").await;
    place.take_snapshot("t", "s2").await;
    place.bound("t", 30_000, Policy::NoInserts).await;
    place.put("bob", &region).await.expect("the file is the table's: it counts once");
    let usage = async |place: &Place| place.states().await.table_snapshots[0].snapshot.map(|now| now.quota_usage());
    assert_eq!(usage(&place).await, Some(bytes));
    // Another file takes its place; the first is kept by both snapshots, and counts as the first one's.
    place.fill(&region).await;
    place.compact("bob", &region).await.expect("compacted");
    while place.bytes_of(&region) >= 2 * bytes {
        tokio::task::yield_now().await;
    }
    let archived = FilePath::new("archive/data/default/t").join(&**region.encoded_name()).join("f");
    while volume.list(&archived).map_or(0, |entries| entries.len()) < 2 {
        tokio::task::yield_now().await;
    }
    let size =
        |bytes: u64| quota::space::encode_size(bytes).iter().map(|byte| format!("{byte:02x}")).collect::<String>();
    // The server that archived it tells the master; of a table without a quota that changes nothing.
    let archived_of = |table: &str| pb::FileArchiveNotificationRequest {
        archived_files: vec![pb::file_archive_notification_request::FileWithSize {
            table_name: Some(convert::to_proto::table_name(&TableName::parse(table).expect("legal"))),
            name: Some("0123".into()),
            size: Some(20_000),
        }],
    };
    for (table, is_measured) in [("other", false), ("t", true), ("t", true)] {
        let method = Method::RegionServerStatusReportFileArchival;
        let _: pb::FileArchiveNotificationResponse = place.admin(method, &archived_of(table)).await.expect("taken");
        assert_eq!(place.quota_table().contains(&format!("t.t u:sss1 {}\n", size(bytes))), is_measured, "{table}");
    }
    let in_row = place.quota_table();
    assert!(in_row.contains(&format!("t.t u:sss1 {}\n", size(bytes))), "{in_row}");
    assert!(in_row.contains(&format!("t.t u:sss2 {}\n", size(0))), "{in_row}");
    assert!(in_row.contains(&format!("n.default u:ss {}\n", size(bytes))), "{in_row}");
    // A round of the chores finds the same.
    place.observe().await;
    let of_snapshots =
        |rows: &str| rows.lines().filter(|row| row.contains("u:s")).map(str::to_owned).collect::<Vec<_>>();
    assert_eq!(of_snapshots(&place.quota_table()), of_snapshots(&in_row));
    assert_eq!(usage(&place).await, Some(bytes + place.bytes_of(&region)));
    limited(place.put("bob", &region).await, "NO_INSERTS Puts are disallowed due to a space quota.");
    // Without the first, it is the second that keeps the file.
    let master = place.node.master();
    master.delete_snapshot("s1").await.expect("deleted");
    place.observe().await;
    let in_row = place.quota_table();
    assert!(!in_row.contains("u:sss1"), "{in_row}");
    assert!(in_row.contains(&format!("t.t u:sss2 {}\n", size(bytes))), "{in_row}");
    master.delete_snapshot("s2").await.expect("deleted");
    place.observe().await;
    assert!(!place.quota_table().contains("u:ss"), "{}", place.quota_table());
    place.put("bob", &region).await.expect("there is room again");
    place.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_bulk_load_that_does_not_fit_moves_no_file() {
    let volume = Arc::new(MemVolume::new());
    let place = Place::start(&volume, 1, &[ON]).await;
    let region = place.create_table("t").await;
    let path = FilePath::new("bulk/f/1");
    volume.create_dir_all_durable(&FilePath::new("bulk/f")).expect("made");
    volume.publish(&path, &noise(20_000)).expect("written");
    let load = async |file: &str| {
        let family_path = pb::bulk_load_h_file_request::FamilyPath { family: Bytes::from("f"), path: file.into() };
        let request = pb::BulkLoadHFileRequest {
            region: specifier(&region),
            family_path: vec![family_path],
            bulk_token: Some("no token".into()),
            ..Default::default()
        };
        place.call("bob", Method::ClientBulkLoadHFile, &request).await
    };
    let file = "/srv/basalt/bulk/f/1";
    place.bound("t", 10_000, Policy::NoInserts).await;
    limited(
        load(file).await,
        "BulkLoadVerifying Bulk load of [/srv/basalt/bulk/f/1] is disallowed because the file(s) exceed the limits of a space \
         quota.",
    );
    assert!(volume.exists(&path).expect("asked"));
    limited(
        load("/srv/basalt/gone").await,
        "BulkLoadVerifying Colud not verify length of file to bulk load: /srv/basalt/gone",
    );
    place.bound("t", 1 << 20, Policy::NoInserts).await;
    let reply = load(file).await.expect("it would fit: that it is no store file is for the load itself to find");
    let response = <pb::BulkLoadHFileResponse as proto::Message>::decode(reply.message).expect("a response");
    assert!(!response.loaded);
    place.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_chores_hold_tables_to_their_quotas_by_themselves() {
    let mut settings = vec![ON];
    for prefix in [
        "hbase.master.quotas.observer.chore",
        "hbase.master.quotas.snapshot.chore",
        "hbase.regionserver.quotas.policy.refresher.chore",
        "hbase.regionserver.quotas.region.size.reporting.chore",
    ] {
        for name in ["delay", "period"] {
            let key: &'static str = format!("{prefix}.{name}").leak();
            settings.push((key, "5"));
        }
    }
    let place = Place::start(&Arc::new(MemVolume::new()), 1, &settings).await;
    let region = place.create_table("t").await;
    place.fill(&region).await;
    place.set(of_table("t", space(10_000, Policy::NoWrites))).await.expect("set");
    while place.put("bob", &region).await.is_ok() {
        tokio::task::yield_now().await;
    }
    place.set(of_table("t", space(1 << 20, Policy::NoWrites))).await.expect("set");
    while place.put("bob", &region).await.is_err() {
        tokio::task::yield_now().await;
    }
    place.stop().await;
}
