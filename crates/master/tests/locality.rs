//! Where files are, and the balancer that goes by it. Follows: `TestRegionHDFSBlockLocationFinder`, `TestStochasticLoadBalancer`.

use crate::common::{APART, Catalog, Life, start_with, table_name};
use crate::service::{Connected, connect};
use base::Config;
use convert::to_proto;
use fs::MemVolume;
use fs::mem::{Fault, FaultKind, Op};
use model::status::Locality;
use model::{RegionInfo, ServerName};
use proto::methods::Method;
use proto::pb;
use std::collections::BTreeMap;
use std::time::Duration;

const SIX: [&str; 5] = ["d", "h", "m", "q", "u"];
/// What is looked at again when nothing tells that it has changed.
const TWO_HOURS_MS: u64 = 2 * 60 * 60 * 1000;

fn config(more: &[(&str, &str)]) -> Config {
    let mut config = Config::default();
    config.set(APART, "true");
    config.set("hbase.master.balancer.stochastic.localityCost", "2000");
    more.iter().for_each(|(key, value)| config.set(*key, *value));
    config
}

/// A table of six regions with a file each, over three servers.
async fn cluster(more: &[(&str, &str)]) -> Connected {
    let life = start_with(&MemVolume::new(), &Catalog::default(), config(more), 3).await.expect("starts");
    life.create("t", &["f"], &SIX).await;
    for info in life.regions("t") {
        let file = rootdir::family_dir(&info, b"f").join(info.encoded_name());
        life.memory.put_file(&file, &[7; 1000]);
    }
    connect(life, "MasterService").await
}

fn number_of(server: &ServerName) -> usize {
    server.host.strip_prefix("host").expect("a host of the test").parse().expect("a number")
}

fn at(life: &Life, info: &RegionInfo) -> usize {
    let cluster = life.master.cluster();
    number_of(cluster.region(info.encoded_name()).and_then(|node| node.location.as_ref()).expect("it is open"))
}

/// The files of each region go to the machine of the next server.
fn place_files(life: &Life) -> BTreeMap<String, usize> {
    let place = |info: RegionInfo| {
        let host = (at(life, &info) + 1) % 3;
        life.memory.place_blocks(info.encoded_name(), &[(&format!("host{host}"), false)]);
        (info.encoded_name().to_string(), host)
    };
    life.regions("t").into_iter().map(place).collect()
}

fn places(life: &Life) -> BTreeMap<String, usize> {
    life.regions("t").iter().map(|info| (info.encoded_name().to_string(), at(life, info))).collect()
}

/// A run of the balancer, and the moves that it found.
async fn balance(c: &Connected) -> i32 {
    let request = pb::BalanceRequest::default();
    let ran: pb::BalanceResponse = c.call(Method::MasterBalance, &request).await.expect("answered");
    assert!(ran.balancer_ran, "{ran:?}");
    until(|| c.life.master.unfinished_procedures() == 0).await;
    ran.moves_calculated() as i32
}

async fn until(is_so: impl Fn() -> bool) {
    let waited = async {
        while !is_so() {
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(30), waited).await.expect("in time");
}

async fn move_by_hand(c: &Connected, region: &str, to: usize) {
    let request = pb::MoveRegionRequest {
        region: pb::RegionSpecifier {
            r#type: pb::region_specifier::RegionSpecifierType::EncodedRegionName as i32,
            value: bytes::Bytes::copy_from_slice(region.as_bytes()),
        },
        dest_server_name: Some(to_proto::server_name(&c.life.hosts[to].server)),
    };
    let _: pb::MoveRegionResponse = c.call(Method::MasterMoveRegion, &request).await.expect("moved");
    until(|| c.life.master.unfinished_procedures() == 0).await;
}

#[tokio::test]
async fn the_balancer_brings_regions_to_their_files() {
    let c = cluster(&[]).await;
    balance(&c).await;
    let spread = places(&c.life);
    assert_eq!(c.life.memory.block_questions(), 0, "the volume names no machines");
    let wanted = place_files(&c.life);
    assert_ne!(spread, wanted);
    assert!(balance(&c).await >= 6);
    assert_eq!(places(&c.life), wanted);
    assert_eq!(c.life.memory.block_questions(), 6, "each file once");
}

#[tokio::test]
async fn without_weight_or_wish_nobody_asks_where_files_are() {
    let weightless = [
        ("hbase.master.balancer.stochastic.localityCost", "0"),
        ("hbase.master.balancer.stochastic.rackLocalityCost", "0"),
    ];
    for more in [&weightless[..], &[("hbase.master.balancer.uselocality", "false")]] {
        let c = cluster(more).await;
        balance(&c).await;
        let spread = places(&c.life);
        let wanted = place_files(&c.life);
        balance(&c).await;
        assert_eq!((places(&c.life), c.life.memory.block_questions()), (spread, 0), "{more:?}");
        c.life.master.update_configuration(&config(&[]));
        balance(&c).await;
        assert_eq!((places(&c.life), c.life.memory.block_questions()), (wanted, 6), "{more:?}");
    }
}

#[tokio::test]
async fn what_is_known_is_looked_at_again_when_a_server_reports_otherwise_and_when_it_is_old() {
    let c = cluster(&[]).await;
    place_files(&c.life);
    balance(&c).await;
    // All have moved: their servers are others.
    balance(&c).await;
    let asked = || c.life.memory.block_questions();
    let before = asked();
    assert_eq!(balance(&c).await, 0);
    assert_eq!(asked(), before, "nothing has changed");
    *c.life.hosts[1].locality.lock() = Locality { total_bytes: 1000, local_bytes: 500, local_ssd_bytes: 0 };
    let of_one = places(&c.life).values().filter(|server| **server == 1).count() as u64;
    assert!(of_one > 0);
    balance(&c).await;
    assert_eq!(asked(), before + of_one, "a compaction, say");
    c.life.clock.advance_ms(TWO_HOURS_MS);
    balance(&c).await;
    assert_eq!(asked(), before + of_one + 6);
    // What is no more is forgotten, and not asked for.
    c.life.disable("t").await;
    let id = c.life.master.delete_table(&table_name("t"), &crate::common::caller()).await.expect("accepted");
    c.life.master.wait_for(id).await.expect("deleted");
    c.life.clock.advance_ms(TWO_HOURS_MS);
    balance(&c).await;
    assert_eq!(asked(), before + of_one + 6);
}

#[tokio::test]
async fn what_was_known_counts_while_the_file_system_says_nothing() {
    let c = cluster(&[]).await;
    let wanted = place_files(&c.life);
    balance(&c).await;
    assert_eq!(places(&c.life), wanted);
    balance(&c).await;
    let (region, home) = wanted.iter().next().expect("there are six");
    move_by_hand(&c, region, (home + 1) % 3).await;
    c.life.clock.advance_ms(TWO_HOURS_MS);
    let path_contains = Some("data/default/t/".to_owned());
    let fault = Fault { op: Some(Op::List), path_contains, nth: 1, kind: FaultKind::TimedOut, forever: true };
    c.life.memory.inject(fault);
    let asked = c.life.memory.block_questions();
    assert!(balance(&c).await >= 1);
    assert_eq!(places(&c.life), wanted);
    assert_eq!(c.life.memory.block_questions(), asked, "nothing could be listed");
    c.life.memory.clear_faults();
    balance(&c).await;
    assert_eq!(c.life.memory.block_questions(), asked + 6, "it is tried again");
}

#[tokio::test]
async fn regions_that_cannot_be_looked_at_keep_no_others_from_it() {
    let c = cluster(&[]).await;
    let wanted = place_files(&c.life);
    let bad: Vec<&String> = wanted.keys().take(4).collect();
    for region in &bad {
        let path_contains = Some(format!("data/default/t/{region}"));
        let kind = FaultKind::Io;
        c.life.memory.inject(Fault { op: Some(Op::List), path_contains, nth: 1, kind, forever: true });
    }
    // Three that fail in a row may end a look; those come last the next time.
    for _ in 0..3 {
        balance(&c).await;
    }
    let places = places(&c.life);
    for (region, home) in wanted.iter().filter(|(region, _)| !bad.contains(region)) {
        assert_eq!(places[region], *home, "{region}");
    }
}
