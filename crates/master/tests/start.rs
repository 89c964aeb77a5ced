//! Starting: on nothing, on what HBase wrote, on what must be refused, on very many regions.

use crate::common::{
    Catalog, FakeHost, Machine, MachineVolume, bytes, caller, captured_catalog, fresh, start, start_with, table,
    table_name, untar,
};
use basalt_master::ErrorKind;
use basalt_master::cluster::{RegionState, TableState};
use base::{Clock, Config, Rng, SystemClock};
use bytes::Bytes;
use fs::{CrashPolicy, FilePath, MemVolume, Volume};
use model::TableDescriptor;
use proto::{magic, pb};
use rootdir::root::{Found, RootError};
use std::collections::BTreeSet;
use std::sync::atomic::Ordering;

#[test]
fn descriptors_that_hbase_wrote_are_read_and_written() {
    let volume = untar("rootdir/after-recovery-clean-stop.tar.gz");
    let tables = rootdir::descriptor::list_tables(&volume).expect("memory");
    assert!(tables.len() >= 14, "{tables:?}");
    for name in &tables {
        let dir = FilePath::new(format!("data/{}/{}/.tabledesc", name.namespace(), name.qualifier()));
        let file = volume.list(&dir).expect("a descriptor").remove(0);
        let captured = volume.read(&dir.join(&file.name)).expect("memory");
        let read = rootdir::descriptor::read(&volume, name).expect("whole").expect("there");
        // The same fields; HBase's order of attributes is a hash map's, ours is the names'.
        assert_eq!(rootdir::descriptor::to_bytes(&read).len(), captured.len(), "{name}");
        // Writing what is there changes nothing; a change gets the next number and its own length.
        rootdir::descriptor::write(&volume, &read).expect("memory");
        assert_eq!(volume.list(&dir).expect("memory").len(), 1);
        assert_eq!(volume.list(&dir).expect("memory")[0], file);
        let mut changed = read;
        changed.attributes.insert(bytes("OWNER"), bytes("me"));
        rootdir::descriptor::write(&volume, &changed).expect("memory");
        let len = rootdir::descriptor::to_bytes(&changed).len();
        assert_eq!(volume.list(&dir).expect("memory")[0].name, format!(".tableinfo.0000000002.{len}"));
        assert_eq!(rootdir::descriptor::read(&volume, name).expect("whole"), Some(changed));
    }
    // Our own catalog tables are HBase's.
    for (ours, dir) in [(TableDescriptor::meta(), "meta"), (TableDescriptor::namespace_table(), "namespace")] {
        let volume = untar("rootdir/after-recovery-clean-stop.tar.gz");
        let theirs =
            rootdir::descriptor::read(&volume, &table_name(&format!("hbase:{dir}"))).expect("whole").expect("there");
        let ours = rootdir::root::with_file_tracker(ours);
        assert_eq!(ours, theirs, "hbase:{dir}");
    }
}

#[tokio::test]
async fn maintenance_mode_opens_hbase_meta_and_nothing_else() {
    let memory = untar("rootdir/after-recovery-clean-stop.tar.gz");
    let mut config = Config::default();
    config.set(crate::common::LENIENT, "true");
    config.set(basalt_master::settings::MAINTENANCE_MODE.key, "true");
    let life = start(&memory, &captured_catalog(), config).await.expect("starts");
    let open: Vec<String> = life.host.open.lock().keys().cloned().collect();
    assert_eq!(open, ["1588230740"], "hbase:meta alone");
    assert!(!life.master.is_initialized());
    assert!(life.master.cluster().state(&table_name("cloned")).is_some(), "what hbase:meta says is known");
}

#[tokio::test]
async fn a_root_directory_of_hbase_is_served() {
    for tarball in ["rootdir/live-unclosed-wal.tar.gz", "rootdir/after-recovery-clean-stop.tar.gz"] {
        let memory = untar(tarball);
        let files = memory.all_files();
        let cluster_id = "f2abdd6b-1e55-4f42-be84-8e8e614de13c";
        assert_eq!(rootdir::root::inspect(&memory).expect("HBase's"), Found::HBase { cluster_id: cluster_id.into() });
        let catalog = captured_catalog();
        // The dump of hbase:meta and the directories are of different moments.
        let mut config = Config::default();
        config.set(crate::common::LENIENT, "true");
        let life = start(&memory, &catalog, config.clone()).await.expect("starts");
        assert_eq!(life.master.cluster_id(), cluster_id);
        {
            let cluster = life.master.cluster();
            for name in ["cloned", "flt", "mobt", "s1", "sp", "ns1:lay_none", "ns1:lay_diff", "hbase:namespace"] {
                assert_eq!(cluster.state(&table_name(name)), Some(TableState::Enabled), "{tarball} {name}");
                let counts = cluster.region_counts(&table_name(name));
                assert!(counts.open > 0 && counts.in_transition == 0, "{tarball} {name} {counts:?}");
            }
            // The split parent stays closed, its daughters serve.
            let parents: Vec<_> = cluster.regions().filter(|node| node.state == RegionState::Split).collect();
            assert!(!parents.is_empty(), "{tarball}");
            for parent in parents {
                assert_eq!(parent.daughters.len(), 2);
                assert!(!life.host.open.lock().contains_key(&**parent.info.encoded_name()));
            }
            assert_eq!(
                cluster.namespace("ns1"),
                Some(&std::collections::BTreeMap::from([("k".to_owned(), "v".to_owned())]))
            );
        }
        // Nothing that was there is gone, but for the store of HBase's master, which is made anew at each start, and what it had in work.
        let now = life.memory.all_files();
        let kept = |file: &&FilePath| !["MasterData", ".tmp"].iter().any(|dir| file.starts_with(&FilePath::new(*dir)));
        let gone: Vec<_> = files.iter().filter(kept).filter(|file| !now.contains(file)).collect();
        assert_eq!(gone, Vec::<&FilePath>::new(), "{tarball}");
        // Our writes come after HBase's, whatever the clock says (it stands before them here).
        assert!(life.clock.now_ms().0 < 1_795_220_886_408);
        life.create("t", &["f"], &[]).await;
        life.master.stop();
        let life = start(&memory, &catalog, config).await.expect("starts");
        assert_eq!(life.master.cluster().state(&table_name("t")), Some(TableState::Enabled));
    }
}

#[test]
fn what_is_not_ours_is_refused_and_not_touched() {
    let version = |text: &str| magic::encode(&pb::HBaseVersionFileContent { version: text.into() });
    let id = magic::encode(&pb::ClusterId { cluster_id: "some-id".into() });
    /// A name, files, and what the refusal says.
    type Case = (&'static str, Vec<(&'static str, Bytes)>, &'static str);
    let cases: [Case; 9] = [
        ("newer", vec![("hbase.version", version("9")), ("hbase.id", id.clone())], "layout version 9"),
        ("older", vec![("hbase.version", version("7")), ("hbase.id", id.clone())], "layout version 7"),
        ("no magic", vec![("hbase.version", bytes("8")), ("hbase.id", id.clone())], "hbase.version is damaged"),
        ("empty", vec![("hbase.version", Bytes::new()), ("hbase.id", id.clone())], "hbase.version is damaged"),
        ("cut", vec![("hbase.version", version("8").slice(..6)), ("hbase.id", id.clone())], "hbase.version is damaged"),
        ("no id", vec![("hbase.version", version("8"))], "hbase.id is damaged (it is missing)"),
        ("bad id", vec![("hbase.version", version("8")), ("hbase.id", bytes("PBUF\u{1}"))], "hbase.id is damaged"),
        ("photos", vec![("photos/cat.jpg", bytes("meow"))], "it holds photos but no hbase.version"),
        ("lost version", vec![("hbase.id", id), ("data/default/t/x", bytes(""))], "it holds data/default/t but"),
    ];
    for (name, files, sentence) in cases {
        let volume = MemVolume::new();
        for (path, content) in files {
            volume.put_file(&FilePath::new(path), &content);
        }
        let before = volume.all_files();
        let error = rootdir::root::prepare(&volume, &Rng::seeded(1)).expect_err(name);
        assert!(error.to_string().contains(sentence), "{name}: {error}");
        assert_eq!(error.to_string().lines().count(), 1);
        assert_eq!(volume.all_files(), before, "{name}");
        assert!(matches!(
            rootdir::root::inspect(&volume),
            Err(RootError::OtherVersion { .. } | RootError::Damaged { .. } | RootError::NotOurs { .. })
        ));
    }
    // What a lock and a file system leave in an empty directory is no stranger.
    let volume = MemVolume::new();
    volume.put_file(&FilePath::new(".basalt.lock"), b"77");
    volume.create_dir_all(&FilePath::new("lost+found")).expect("memory");
    assert!(matches!(rootdir::root::inspect(&volume), Ok(Found::Empty)));
}

#[tokio::test]
async fn a_first_start_may_be_cut_off_anywhere() {
    let mut finished = false;
    for calls in 0.. {
        let memory = MemVolume::new();
        let volume = MachineVolume { memory: memory.clone(), machine: Machine::new(calls) };
        finished = rootdir::root::prepare(&volume, &Rng::seeded(2)).is_ok();
        for policy in [CrashPolicy::LoseUnsynced, CrashPolicy::KeepAll, CrashPolicy::Torn] {
            let crashed = memory.crash(&Rng::seeded(calls as u64), policy);
            let life = start(&crashed, &Catalog::default(), Config::default()).await;
            life.unwrap_or_else(|error| panic!("cut off after {calls} calls, {policy:?}: {error}")).check();
        }
        if finished {
            break;
        }
    }
    assert!(finished);
}

#[tokio::test]
async fn a_damaged_record_of_a_procedure_stops_the_start_with_its_name() {
    let life = crate::common::fresh().await;
    life.create("t", &["f"], &[]).await;
    life.master.stop();
    let record =
        life.memory.all_files().into_iter().rfind(|path| path.as_str().starts_with("MasterData/basalt/")).expect("one");
    life.memory.put_file(&record, b"PBUF\x01");
    let error = start(&life.memory, &life.catalog, Config::default()).await.err().expect("refused").to_string();
    assert!(error.contains(record.as_str()), "{error}");
    // A damaged descriptor costs its own table only.
    life.memory.remove_file(&record).expect("memory");
    let info = life.memory.all_files().into_iter().find(|path| path.as_str().starts_with("data/default/t/.tabledesc"));
    life.memory.put_file(&info.expect("one"), b"junk");
    let life = start(&life.memory, &life.catalog, Config::default()).await.expect("starts");
    assert!(!life.master.cluster().exists(&table_name("t")));
    life.create("u", &["f"], &[]).await;
}

/// Its regions are in hbase:meta, and their files in its directory: another table of its name would be in both.
#[tokio::test]
async fn a_table_whose_descriptor_is_damaged_or_gone_is_not_made_again() {
    for damaged in [true, false] {
        let life = crate::common::fresh().await;
        life.create("t", &["f"], &["m"]).await;
        life.master.stop();
        let files = life.memory.all_files();
        let info = files.into_iter().find(|path| path.as_str().starts_with("data/default/t/.tabledesc")).expect("one");
        let bytes = life.memory.read(&info).expect("memory");
        match damaged {
            true => life.memory.put_file(&info, b"junk"),
            false => life.memory.remove_file(&info).expect("memory"),
        }
        let life = start(&life.memory, &life.catalog, Config::default()).await.expect("starts");
        let refused = life.master.create_table(table("t", &["f"]), &[], &caller()).await;
        assert_eq!(refused.expect_err("it is there").kind, ErrorKind::TableExists, "damaged: {damaged}");
        // Restored, it is served again.
        life.master.stop();
        life.memory.put_file(&info, &bytes);
        let life = start(&life.memory, &life.catalog, Config::default()).await.expect("starts");
        life.check();
        assert_eq!(life.regions("t").len(), 2);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn ten_thousand_regions_open_with_few_log_entries() {
    let life = crate::common::fresh().await;
    let clock = SystemClock::new();
    let keys: Vec<Bytes> = (1..10_000).map(|i| Bytes::from(format!("{i:05}"))).collect();
    let id = life.master.create_table(table("big", &["f"]), &keys, &caller()).await.expect("accepted");
    life.master.wait_for(id).await.expect("created");
    let created_us = clock.monotonic_us();
    life.master.stop();
    let mut config = Config::default();
    config.set(crate::common::SYNC_MS, "2");
    let life = start(&life.memory, &life.catalog, config).await.expect("starts");
    let started_us = clock.monotonic_us() - created_us;
    assert_eq!(life.host.open.lock().len(), 10_002);
    let entries = life.host.log_entries.load(Ordering::SeqCst);
    println!(
        "10,000 regions: created in {} ms, opened in {} ms with {entries} log entries",
        created_us / 1000,
        started_us / 1000
    );
    assert!(entries < 500, "{entries} log entries");
    assert_eq!(life.master.cluster().region_counts(&table_name("big")).open, 10_000);
}

/// A flush size that no client's table may have ended the very first start, at hbase:namespace.
#[tokio::test]
async fn a_small_flush_size_does_not_stop_the_first_start() {
    let mut config = Config::default();
    config.set("hbase.hregion.memstore.flush.size", "40000");
    let life = start(&MemVolume::new(), &Catalog::default(), config).await.expect("a first start");
    life.check();
    let told = life.master.create_table(table("t", &["f"]), &[], &caller()).await.expect_err("too small for clients");
    assert!(told.message.contains("is too small"), "{told}");
}

/// Each region is open where the master says, and is asked there.
#[tokio::test]
async fn regions_are_spread_over_the_servers_and_asked_where_they_are() {
    let life = start_with(&MemVolume::new(), &Catalog::default(), Config::default(), 2).await.expect("a first start");
    life.create("t", &["f"], &["b", "c", "d"]).await;
    let on = |host: &FakeHost| {
        let cluster = life.master.cluster();
        let here = cluster.regions_of(&table_name("t")).filter(|node| node.location.as_ref() == Some(&host.server));
        here.map(|node| node.info.encoded_name().to_string()).collect::<BTreeSet<_>>()
    };
    let open = |host: &FakeHost| {
        let open = host.open.lock();
        let here = open.iter().filter(|(_, (info, _))| info.table == table_name("t"));
        here.map(|(name, _)| name.clone()).collect::<BTreeSet<_>>()
    };
    for host in &life.hosts {
        assert_eq!(open(host), on(host), "{}", host.server);
        // hbase:meta and hbase:namespace count, too.
        assert_eq!(on(host).len(), 2, "{}", host.server);
    }
    let id = life.master.flush_table(&table_name("t"), Vec::new(), &caller()).await.expect("accepted");
    life.master.wait_for(id).await.expect("flushed");
    for host in &life.hosts {
        let flushed: BTreeSet<String> = host.flushed.lock().iter().cloned().collect();
        assert_eq!(flushed, on(host), "{}", host.server);
    }
    life.disable("t").await;
    for host in &life.hosts {
        assert_eq!((open(host), on(host)), (BTreeSet::new(), BTreeSet::new()), "{}", host.server);
    }
}

/// What HBase leaves of tables that it was making and deleting when it died.
#[tokio::test]
async fn store_files_in_the_directory_for_work_go_to_the_archive_at_a_start() {
    let life = fresh().await;
    life.create("t", &["f"], &[]).await;
    let region = life.regions("t").remove(0).encoded_name().to_string();
    let (file, left) = ("0123456789abcdef0123456789abcdef", format!("data/default/gone/{region}/f"));
    let put = |path: String| {
        let path = FilePath::new(path);
        life.memory.create_dir_all(&path.parent()).expect("memory");
        life.memory.put_file(&path, b"cells");
    };
    put(format!(".tmp/{left}/{file}"));
    put(format!(".tmp/{left}/.filelist/f1.1"));
    put(format!(".tmp/data/default/gone/{region}/.regioninfo"));
    put(".tmp/hbase.version".to_owned());
    let life = life.restart().await;
    assert_eq!(life.files_below(".tmp"), Vec::<String>::new());
    assert!(life.memory.exists(&FilePath::new(format!("archive/{left}/{file}"))).expect("memory"));
    life.check();
}

/// A region server says that a region is open a moment before it serves it. The master ended over that.
#[tokio::test(start_paused = true)]
async fn the_quotas_are_read_again_while_their_region_is_opening() {
    let mut config = Config::default();
    config.set(quota::settings::ENABLED.key, "true");
    config.set(crate::common::LATE, "hbase:quota");
    let life = start(&MemVolume::new(), &Catalog::default(), config).await.expect("starts");
    assert!(life.master.is_initialized());
    assert_eq!(*life.host.late.lock(), Some(("hbase:quota".to_owned(), 0)), "all three were refused");
}
