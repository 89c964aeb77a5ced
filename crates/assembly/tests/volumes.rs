//! A node one of whose volumes fails and comes back.

use crate::common::Place;
use basalt_assembly::Node;
use client::{Put, ScanOptions};
use fs::tiered::{Attached, Rules, TieredVolume};
use fs::{MemVolume, SlowVolume, Trouble, Volume};
use model::{FamilyDescriptor, Get, Scan, TableDescriptor, TableName};
use proto::methods::Method;
use proto::pb;
use region::Region;
use std::sync::Arc;
use std::time::Duration;

/// A node with a tier that may be put in trouble, and kinds of files there. Its log syncs.
async fn place(kinds: &[(&'static str, &str)]) -> (Place, Trouble) {
    let trouble = Trouble::default();
    let cold = SlowVolume::new(Arc::new(MemVolume::new()), trouble.clone());
    let place = Place::start_with(|parts| {
        let volume: Option<Arc<dyn Volume>> = Some(Arc::new(cold));
        let spec = Attached { spec: "cold:hdd:/data/1".parse().expect("legal"), volume, claim: None };
        let home = parts.volume.clone();
        let tell = Arc::new(|_| {});
        parts.config.set("hbase.wal.hsync", "true");
        let kinds = kinds.iter().map(|(kind, tier)| (*kind, (*tier).to_owned())).collect();
        let rules = Rules { kinds, ..Rules::default() };
        let attached = TieredVolume::attach(home, vec![spec], rules, &parts.rng, tell);
        parts.volume = Arc::new(attached.expect("attached").0.measured(&parts.clock));
        parts.outside = parts.volume.clone();
    })
    .await;
    (place, trouble)
}

async fn until(what: &str, mut holds: impl FnMut() -> bool) {
    let waiting = async {
        while !holds() {
            tokio::task::yield_now().await;
        }
    };
    assert!(tokio::time::timeout(Duration::from_secs(60), waiting).await.is_ok(), "in vain: {what}");
}

fn region_of<S: basalt_assembly::Syncer>(node: &Node<S>, table: &TableName) -> Option<Arc<Region>> {
    node.server().regions().into_iter().find(|region| region.info().table == *table)
}

async fn rows_of(place: &Place, table: &TableName) -> usize {
    let table = place.connection.table(table);
    let mut scanner = table.scan(Scan::default(), ScanOptions::default());
    let mut count = 0;
    while let Some(rows) = scanner.next_batch().await.expect("a scan") {
        count += rows.len();
    }
    count
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_volume_that_fails_closes_its_regions_and_no_others_and_opens_them_when_it_is_back() {
    let (place, trouble) = place(&[]).await;
    let [on_cold, at_home] = ["cold", "home"].map(|name| TableName::parse(name).expect("legal"));
    let admin = place.connection.admin();
    for (name, policy) in [(&on_cold, "cold"), (&at_home, "NONE")] {
        let mut family = FamilyDescriptor::new("f");
        family.attributes.insert("STORAGE_POLICY".into(), policy.into());
        admin.create_table(&TableDescriptor::new(name.clone(), [family]), &[]).await.expect("made");
        let table = place.connection.table(name);
        table.put(&Put::new("a").add("f", "q", "1").build()).await.expect("put");
        admin.flush(name).await.expect("flushed");
        table.put(&Put::new("b").add("f", "q", "2").build()).await.expect("put");
    }
    let encoded = region_of(&place.node, &on_cold).expect("online").info().encoded_name().clone();

    trouble.fail(true);
    until("it is closed", || region_of(&place.node, &on_cold).is_none()).await;
    let region = pb::RegionSpecifier {
        r#type: pb::region_specifier::RegionSpecifierType::EncodedRegionName.into(),
        value: encoded.as_bytes().to_vec().into(),
    };
    let get = pb::GetRequest { region, get: pb::Get { row: b"a"[..].into(), ..pb::Get::default() } };
    // While it is on its way it is said to be opening, which clients try again as well.
    let refused = loop {
        let refused = place.call::<pb::GetResponse>(Method::ClientGet, &get).await.expect_err("it is not open");
        if refused.class().ends_with("NotServingRegionException") {
            break refused;
        }
        tokio::task::yield_now().await;
    };
    assert!(refused.message().contains("a volume with files of it has failed"), "{}", refused.message());
    assert_eq!(rows_of(&place, &at_home).await, 2, "others go on");
    place.connection.table(&at_home).put(&Put::new("c").add("f", "q", "3").build()).await.expect("put");
    admin.flush(&at_home).await.expect("flushed");

    trouble.fail(false);
    until("it is open again", || region_of(&place.node, &on_cold).is_some()).await;
    assert_eq!(rows_of(&place, &on_cold).await, 2, "what was in memory, too");
    let cell = place.connection.table(&on_cold).get(&Get::new("b")).await.expect("read");
    assert_eq!(cell.value(b"f", b"q"), Some(&b"2"[..]));

    // What is closed by an order while it waits does not come back by itself.
    trouble.fail(true);
    until("it is closed", || region_of(&place.node, &on_cold).is_none()).await;
    admin.disable_table(&on_cold).await.expect("disabled");
    trouble.fail(false);
    until("the volume is back", || place.node.server().volumes().iter().all(|volume| volume.is_there)).await;
    let server = place.node.server().clone();
    tokio::task::spawn_blocking(move || server.look_after_volumes()).await.expect("no panic");
    assert!(region_of(&place.node, &on_cold).is_none(), "its table is disabled");
    admin.enable_table(&on_cold).await.expect("enabled");
    assert_eq!(rows_of(&place, &on_cold).await, 2);
    place.stop().await;
}

/// The disk of cold stands still while its region is opened again; warm comes back meanwhile, and a table is made.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_disk_that_stands_still_while_its_region_opens_holds_up_no_other() {
    let [cold, warm] = [Trouble::default(), Trouble::default()];
    let disk = MemVolume::new();
    let (of_cold, of_warm, of_disk) = (cold.clone(), warm.clone(), disk.clone());
    let place = Place::start_with(|parts| {
        let attached = |spec: &str, disk: MemVolume, trouble: Trouble| {
            let volume: Arc<dyn Volume> = Arc::new(SlowVolume::new(Arc::new(disk), trouble));
            Attached { spec: spec.parse().expect("legal"), volume: Some(volume), claim: None }
        };
        let volumes = vec![
            attached("cold:hdd:/data/1", of_disk, of_cold),
            attached("tepid:hdd:/data/2", MemVolume::new(), of_warm),
        ];
        let attached =
            TieredVolume::attach(parts.volume.clone(), volumes, Rules::default(), &parts.rng, Arc::new(|_| {}));
        parts.volume = Arc::new(attached.expect("attached").0.measured(&parts.clock));
        parts.outside = parts.volume.clone();
    })
    .await;
    let [on_cold, on_warm] = ["cold", "tepid"].map(|name| TableName::parse(name).expect("legal"));
    let admin = place.connection.admin();
    let make = async |name: &TableName, policy: &'static str| {
        let mut family = FamilyDescriptor::new("f");
        family.attributes.insert("STORAGE_POLICY".into(), policy.into());
        admin.create_table(&TableDescriptor::new(name.clone(), [family]), &[]).await.expect("made");
    };
    for (name, policy) in [(&on_cold, "cold"), (&on_warm, "tepid")] {
        make(name, policy).await;
        let table = place.connection.table(name);
        table.put(&Put::new("a").add("f", "q", "1").build()).await.expect("put");
        admin.flush(name).await.expect("flushed");
    }
    [&cold, &warm].iter().for_each(|trouble| trouble.fail(true));
    for name in [&on_cold, &on_warm] {
        until("it is closed", || region_of(&place.node, name).is_none()).await;
    }
    let (stops, (sender, stopped)) = (cold.clone(), std::sync::mpsc::channel());
    disk.watch(Some(Arc::new(move |op, path: &fs::FilePath| {
        if op == fs::mem::Op::Open && path.as_str().starts_with("files/") {
            stops.stand_still(true);
            let _told = sender.send(());
        }
    })));
    cold.fail(false);
    until("its file is opened", || stopped.try_recv().is_ok()).await;
    warm.fail(false);
    until("the other is open again", || region_of(&place.node, &on_warm).is_some()).await;
    assert_eq!(rows_of(&place, &on_warm).await, 1);
    let made = TableName::parse("made").expect("legal");
    let making = tokio::time::timeout(Duration::from_secs(60), make(&made, "NONE"));
    assert!(making.await.is_ok(), "a table is made meanwhile");
    assert!(region_of(&place.node, &on_cold).is_none());
    disk.watch(None);
    cold.stand_still(false);
    until("it is open again", || region_of(&place.node, &on_cold).is_some()).await;
    assert_eq!(rows_of(&place, &on_cold).await, 1);
    place.stop().await;
}

/// A family on each of two volumes, which fail together and come back one after the other.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_region_with_files_on_two_volumes_waits_for_both_and_is_counted_under_each() {
    let troubles: [Trouble; 2] = Default::default();
    let disks = [MemVolume::new(), MemVolume::new()];
    let specs = ["slow:hdd:/data/1", "tepid:hdd:/data/2"];
    let of_node: Vec<_> = troubles.iter().cloned().zip(disks.iter().cloned()).zip(specs).collect();
    let place = Place::start_with(|parts| {
        let attached = |((trouble, disk), spec): ((Trouble, MemVolume), &str)| {
            let volume: Arc<dyn Volume> = Arc::new(SlowVolume::new(Arc::new(disk), trouble));
            Attached { spec: spec.parse().expect("legal"), volume: Some(volume), claim: None }
        };
        let volumes = of_node.into_iter().map(attached).collect();
        let attached =
            TieredVolume::attach(parts.volume.clone(), volumes, Rules::default(), &parts.rng, Arc::new(|_| {}));
        parts.volume = Arc::new(attached.expect("attached").0.measured(&parts.clock));
        parts.outside = parts.volume.clone();
    })
    .await;
    let name = TableName::parse("both").expect("legal");
    let families = [("f", "slow"), ("g", "tepid")].map(|(family, tier)| {
        let mut family = FamilyDescriptor::new(family);
        family.attributes.insert("STORAGE_POLICY".into(), tier.into());
        family
    });
    let admin = place.connection.admin();
    admin.create_table(&TableDescriptor::new(name.clone(), families), &[]).await.expect("made");
    let table = place.connection.table(&name);
    table.put(&Put::new("a").add("f", "q", "1").add("g", "q", "2").build()).await.expect("put");
    admin.flush(&name).await.expect("flushed");
    let region = region_of(&place.node, &name).expect("online");
    assert_eq!(region.volumes().len(), 2, "{:?}", region.volumes());
    drop(region);
    let waiting = || {
        let server = place.node.server();
        server.volumes().iter().map(|volume| (volume.is_there, server.waiting_on(volume))).collect::<Vec<_>>()
    };

    troubles.iter().for_each(|trouble| trouble.fail(true));
    until("it is closed", || region_of(&place.node, &name).is_none()).await;
    until("it waits for both", || waiting() == [(false, 1), (false, 1)]).await;
    let (sender, opened) = std::sync::mpsc::channel();
    disks[0].watch(Some(Arc::new(move |op, path: &fs::FilePath| {
        if op == fs::mem::Op::Open && path.as_str().starts_with("files/") {
            let _told = sender.send(());
        }
    })));
    troubles[0].fail(false);
    until("one is back", || waiting() == [(true, 0), (false, 1)]).await;
    // A look at each volume after it was back: what was to be opened would have been.
    let server = place.node.server().clone();
    tokio::task::spawn_blocking(move || server.look_after_volumes()).await.expect("no panic");
    assert!(region_of(&place.node, &name).is_none(), "it waits for the other");
    assert!(opened.try_recv().is_err(), "nothing of it is opened before all of it can be");
    troubles[1].fail(false);
    until("it is open again", || region_of(&place.node, &name).is_some()).await;
    assert_eq!(waiting(), [(true, 0), (true, 0)]);
    let row = table.get(&Get::new("a")).await.expect("read");
    assert_eq!((row.value(b"f", b"q"), row.value(b"g", b"q")), (Some(&b"1"[..]), Some(&b"2"[..])));
    disks[0].watch(None);
    place.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_log_whose_volume_fails_goes_on_on_another_and_what_it_held_goes_to_files() {
    let (place, trouble) = place(&[("wal", "cold")]).await;
    let name = TableName::parse("t").expect("legal");
    let descriptor = TableDescriptor::new(name.clone(), [FamilyDescriptor::new("f")]);
    place.connection.admin().create_table(&descriptor, &[]).await.expect("made");
    let table = place.connection.table(&name);
    table.put(&Put::new("a").add("f", "q", "1").build()).await.expect("put");
    assert!(place.node.server().volumes()[0].used_bytes > 0, "the log is there");
    trouble.fail(true);
    table.put(&Put::new("b").add("f", "q", "2").build()).await.expect("acknowledged by another file");
    let region = region_of(&place.node, &name).expect("it stays open");
    until("its memory is in a file", || region.memstore_bytes() == 0).await;
    assert_eq!(place.node.logs()[0].stats().rescues, 1);
    assert_eq!(rows_of(&place, &name).await, 2);
    trouble.fail(false);
    until("the volume is back", || place.node.server().volumes().iter().all(|volume| volume.is_there)).await;
    assert_eq!(rows_of(&place, &name).await, 2);
    drop(region);
    place.stop().await;
}
