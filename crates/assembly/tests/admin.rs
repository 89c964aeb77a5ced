//! AdminService of a region server: what the shell and HBase's tools ask of one server.

use crate::common::Place;
use base::Config;
use client::Put;
use convert::to_proto;
use fs::{MemVolume, Volume};
use model::{FamilyDescriptor, Get, RegionInfo, ServerName, TableDescriptor, TableName};
use proto::methods::Method;
use proto::pb;
use proto::pb::region_specifier::RegionSpecifierType;
use std::sync::Arc;

pub fn specifier(encoded_name: &str) -> pb::RegionSpecifier {
    let value = encoded_name.as_bytes().to_vec().into();
    pb::RegionSpecifier { r#type: RegionSpecifierType::EncodedRegionName as i32, value }
}

/// A table of one region whose row is in a file and in the cache.
pub async fn table(place: &Place) -> RegionInfo {
    let name = TableName::parse("t").expect("legal");
    let admin = place.connection.admin();
    admin.create_table(&TableDescriptor::new(name.clone(), [FamilyDescriptor::new("f")]), &[]).await.expect("made");
    let t = place.connection.table(&name);
    t.put(&Put::new("a").add("f", "q", "value").build()).await.expect("written");
    admin.flush(&name).await.expect("flushed");
    assert!(!t.get(&Get::new("a")).await.expect("read").is_empty());
    let regions = place.node.server().regions();
    regions.iter().find(|region| region.info().table == name).expect("online").info().clone()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn cleared_blocks_are_counted_beside_regions_that_are_not_here() {
    let place = Place::start().await;
    let info = table(&place).await;
    let request =
        pb::ClearRegionBlockCacheRequest { region: vec![specifier("nowhere"), specifier(info.encoded_name())] };
    let method = Method::AdminClearRegionBlockCache;
    let cleared: pb::ClearRegionBlockCacheResponse = place.call(method, &request).await.expect("cleared");
    assert!(cleared.stats.evicted_blocks() >= 1 && cleared.stats.max_cache_size() > 0, "{cleared:?}");
    let failed: Vec<_> = cleared.stats.exception.iter().map(|one| one.exception.name.as_str()).collect();
    assert_eq!(failed, ["org.apache.hadoop.hbase.NotServingRegionException"]);
    let again: pb::ClearRegionBlockCacheResponse = place.call(method, &request).await.expect("cleared");
    assert_eq!(again.stats.evicted_blocks(), 0);
    place.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_region_is_closed_by_the_server_that_is_meant_and_no_other() {
    let place = Place::start().await;
    let info = table(&place).await;
    let close = |start_code| pb::CloseRegionRequest {
        region: specifier(info.encoded_name()),
        server_start_code: Some(start_code),
        ..pb::CloseRegionRequest::default()
    };
    let start_code = place.node.server().name().start_code;
    let open = |start_code| pb::OpenRegionRequest {
        open_info: vec![pb::open_region_request::RegionOpenInfo {
            region: to_proto::region_info(&info),
            ..pb::open_region_request::RegionOpenInfo::default()
        }],
        server_start_code: Some(start_code),
        ..pb::OpenRegionRequest::default()
    };
    let opened: pb::OpenRegionResponse = place.call(Method::AdminOpenRegion, &open(start_code)).await.expect("it is");
    assert_eq!(opened.opening_state, [pb::open_region_response::RegionOpeningState::AlreadyOpened as i32]);
    let refused = place.call::<pb::OpenRegionResponse>(Method::AdminOpenRegion, &open(start_code + 1)).await;
    assert!(refused.expect_err("another server").message().contains("different server with startCode"));
    let method = Method::AdminCloseRegion;
    let refused = place.call::<pb::CloseRegionResponse>(method, &close(start_code + 1)).await;
    assert!(refused.expect_err("another server").message().contains("different server with startCode"));
    let closed: pb::CloseRegionResponse = place.call(method, &close(start_code)).await.expect("closed");
    assert!(closed.closed && place.node.server().region(info.encoded_name()).is_none());
    let again = place.call::<pb::CloseRegionResponse>(method, &close(start_code)).await;
    assert_eq!(again.expect_err("closed").kind(), rpc::Kind::NotServingRegion);
    let refused = place.call::<pb::OpenRegionResponse>(Method::AdminOpenRegion, &open(start_code)).await;
    assert!(refused.expect_err("the master opens it").message().contains("ask the master to assign it"));
    place.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn favoured_nodes_are_counted_and_replication_is_refused() {
    let place = Place::start().await;
    let node = to_proto::server_name(&ServerName::new("somewhere", 16020, 7));
    let update = pb::update_favored_nodes_request::RegionUpdateInfo {
        region: to_proto::region_info(&RegionInfo::meta()),
        favored_nodes: vec![node],
    };
    let request = pb::UpdateFavoredNodesRequest { update_info: vec![update] };
    let updated = place.call::<pb::UpdateFavoredNodesResponse>(Method::AdminUpdateFavoredNodes, &request).await;
    assert_eq!(updated.expect("taken").response, Some(1));
    let request = pb::ReplicateWalEntryRequest::default();
    let refused = place.call::<pb::ReplicateWalEntryResponse>(Method::AdminReplicateWALEntry, &request).await;
    assert!(refused.expect_err("no sink").message().contains("Replication services are not initialized yet"));
    place.stop().await;
}

/// Three files are no reason for a compaction while ten are asked for, and one as soon as three are.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn stores_of_open_regions_follow_the_configuration() {
    let place = Place::start_with(|parts| {
        parts.config.set("hbase.hstore.compaction.min", "10");
        parts.read_config = Arc::new(|| Ok(Config::default()));
    })
    .await;
    let info = table(&place).await;
    let (admin, t) = (place.connection.admin(), place.connection.table(&info.table));
    for value in ["more", "and more"] {
        t.put(&Put::new("a").add("f", "q", value).build()).await.expect("written");
        admin.flush(&info.table).await.expect("flushed");
    }
    let region = place.node.server().region(info.encoded_name()).expect("online");
    assert_eq!((region.stats().files, region.needs_compaction()), (3, false));
    let request = pb::UpdateConfigurationRequest::default();
    place.call::<pb::UpdateConfigurationResponse>(Method::AdminUpdateConfiguration, &request).await.expect("read");
    // The survey may have come first.
    assert!(region.needs_compaction() || region.stats().compactions > 0 || region.stats().total_compacting_cells > 0);
    place.stop().await;
}

/// What `compaction_switch` answers of how it was is how the configuration has it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn compactions_are_off_where_the_configuration_says_so() {
    for on in [false, true] {
        let place = Place::start_with(|parts| {
            parts.config.set("hbase.regionserver.compaction.enabled", on.to_string());
        })
        .await;
        let info = table(&place).await;
        let (admin, t) = (place.connection.admin(), place.connection.table(&info.table));
        for value in ["one", "two", "three", "four"] {
            t.put(&Put::new("a").add("f", "q", value).build()).await.expect("written");
            admin.flush(&info.table).await.expect("flushed");
        }
        let region = place.node.server().region(info.encoded_name()).expect("online");
        if !on {
            place.node.server().step_chores();
            assert!(region.needs_compaction() && region.stats().compactions == 0, "four files are left as they are");
        }
        let request = pb::CompactionSwitchRequest { enabled: true };
        let was = place.call::<pb::CompactionSwitchResponse>(Method::AdminCompactionSwitch, &request).await;
        assert_eq!(was.expect("switched").prev_state, on);
        place.stop().await;
    }
}

/// `hbase.snapshot.region.timeout`.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_region_that_takes_too_long_fails_its_snapshot() {
    for (limit_ms, is_taken) in [("300000", true), ("0", false)] {
        let place = Place::start_with(|parts| parts.config.set("hbase.snapshot.region.timeout", limit_ms)).await;
        let info = table(&place).await;
        let admin = place.connection.admin();
        let taken = admin.snapshot("s", &info.table).await;
        match taken {
            Ok(()) => assert!(is_taken),
            Err(error) => {
                let error = error.to_string();
                assert!(!is_taken && error.contains("longer than hbase.snapshot.region.timeout = 0 ms"), "{error}");
            }
        }
        assert_eq!(admin.list_snapshots().await.expect("listed").len(), usize::from(is_taken));
        place.stop().await;
    }
}

/// `hbase.regionserver.checksum.verify`: a wrong bit of a block that no checksum is compared for is what clients read.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn checksums_of_blocks_count_unless_they_are_switched_off() {
    let volume = Arc::new(MemVolume::new());
    let start = async |start_code, verify: &str| {
        Place::start_with(|parts| {
            parts.volume = volume.clone();
            parts.outside = volume.clone();
            parts.server_name = ServerName::new("localhost", 16020, start_code);
            parts.config.set("basalt.hfile.compression.default", "NONE");
            parts.config.set("hbase.regionserver.checksum.verify", verify);
        })
        .await
    };
    let place = start(1, "true").await;
    let info = table(&place).await;
    let dir = rootdir::family_dir(&info, b"f");
    place.stop().await;
    let name = volume.list(&dir).expect("listed").into_iter().find(|entry| !entry.name.starts_with('.'));
    let path = dir.join(&name.expect("the flushed file").name);
    let mut bytes = volume.read(&path).expect("read");
    let at = bytes.windows(5).position(|bytes| bytes == b"value").expect("a cell that is not compressed");
    bytes[at] = b'V';
    volume.put_file(&path, &bytes);

    for (start_code, verify) in [(2, "true"), (3, "false")] {
        let place = start(start_code, verify).await;
        let region = place.node.server().region(info.encoded_name()).expect("online");
        let mut cells = cell::CellBuffer::new();
        let read = region.get_within(&Get::new("a"), &mut cells, base::ReadMode::UNPACED);
        match (verify, read) {
            ("true", Err(error)) => assert!(error.to_string().contains("checksum"), "{error}"),
            ("false", Ok(())) => assert_eq!(cells.get(0).value(), b"Value"),
            (_, other) => panic!("verify = {verify}: {other:?}"),
        }
        place.stop().await;
    }
}

/// `hfile.block.cache.policy`: rows that were read often are in the cache still after many others were read twice, with the policy that counts.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_policy_of_the_block_cache_says_what_stays_in_it() {
    let found = async |policy: &str| {
        let place = Place::start_with(|parts| {
            parts.config.set("hfile.block.cache.policy", policy);
            // Of 64 MiB: some 150 rows.
            parts.config.set("hfile.block.cache.size", "0.01");
            parts.ledger = regionserver::ledger(&parts.config, 64 << 20, u64::MAX);
        })
        .await;
        let name = TableName::parse("t").expect("legal");
        let admin = place.connection.admin();
        let family = FamilyDescriptor::new("f").with("BLOCKSIZE", "4096");
        admin.create_table(&TableDescriptor::new(name.clone(), [family]), &[]).await.expect("made");
        let (t, rng) = (place.connection.table(&name), base::Rng::seeded(5));
        let key = |row: usize| format!("{row:04}");
        for row in 0..2000 {
            let value: Vec<u8> = (0..4096).map(|_| rng.below(256) as u8).collect();
            t.put(&Put::new(key(row)).add("f", "q", value).build()).await.expect("written");
        }
        admin.flush(&name).await.expect("flushed");
        let often = 0..20;
        for row in often.clone().cycle().take(20 * 12).chain((100..2000).flat_map(|row| [row, row])) {
            t.get(&Get::new(key(row))).await.expect("read");
        }
        let cache = &place.node.server().env().cache;
        let before = cache.stats();
        assert!(before.evicted > 1000, "{before:?}");
        for row in often {
            t.get(&Get::new(key(row))).await.expect("read");
        }
        let after = cache.stats();
        place.stop().await;
        (after.hits - before.hits) * 100 / (after.hits + after.misses - before.hits - before.misses)
    };
    let (lru, counting) = (found("LRU").await, found("TinyLFU").await);
    println!("{lru} % of lookups found with LRU, {counting} % with TinyLFU");
    assert!(counting >= 90 && lru <= counting - 20, "{lru} % with LRU, {counting} % with TinyLFU");
}
