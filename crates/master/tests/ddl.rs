//! Every DDL, and what refuses it.

use crate::common::{Life, bytes, caller, fresh, table, table_name};
use basalt_master::cluster::{RegionState, TableState};
use basalt_master::{ErrorKind, MasterError};
use base::Config;
use bytes::Bytes;
use model::{FamilyDescriptor, Nonce, RegionInfo, TableDescriptor};
use std::collections::BTreeMap;

fn state(life: &Life, name: &str) -> Option<TableState> {
    life.master.cluster().state(&table_name(name))
}

async fn done(life: &Life, submitted: Result<u64, MasterError>) {
    life.master.wait_for(submitted.expect("accepted")).await.expect("done");
    life.check();
}

#[tokio::test]
async fn a_first_start_makes_the_catalog() {
    let life = fresh().await;
    life.check();
    let names: Vec<String> = life.master.cluster().namespaces().map(|(name, _)| name.to_owned()).collect();
    assert_eq!(names, ["default", "hbase"]);
    assert_eq!(state(&life, "hbase:namespace"), Some(TableState::Enabled));
    assert_eq!(fs::Volume::read(&life.memory, &fs_path("hbase.version")).expect("published"), b"PBUF\x0a\x018");
    assert_eq!(life.notes.tables.lock()["hbase:meta"], Some(TableState::Enabled));
    assert!(life.notes.namespaces.lock()["default"]);
    life.restart().await.check();
}

fn fs_path(path: &str) -> fs::FilePath {
    fs::FilePath::new(path)
}

#[tokio::test]
async fn a_table_lives() {
    let life = fresh().await;
    life.create("t", &["f", "g"], &["m", "c"]).await;
    life.check();
    let starts: Vec<Bytes> = life.regions("t").into_iter().map(|info| info.start_key).collect();
    assert_eq!(starts, ["", "c", "m"]);
    assert_eq!(life.notes.tables.lock()["t"], Some(TableState::Enabled));
    life.fill("t");

    // Survives a restart.
    let life = life.restart().await;
    life.check();
    assert_eq!(life.regions("t").len(), 3);

    // Disabled, a table's regions are closed, over a restart too.
    life.disable("t").await;
    life.check();
    let life = life.restart().await;
    life.check();
    assert_eq!(state(&life, "t"), Some(TableState::Disabled));
    done(&life, life.master.enable_table(&table_name("t"), &caller()).await).await;
    assert_eq!(state(&life, "t"), Some(TableState::Enabled));

    // Truncated with its splits: new regions, the files in the archive.
    let old = life.regions("t");
    life.disable("t").await;
    done(&life, life.master.truncate_table(&table_name("t"), true, &caller()).await).await;
    let new = life.regions("t");
    assert_eq!(new.iter().map(|info| &info.start_key).collect::<Vec<_>>(), ["", "c", "m"]);
    assert!(new.iter().zip(&old).all(|(new, old)| new.region_id > old.region_id));
    assert_eq!(life.files_below("archive/data/default/t").len(), 6);
    life.disable("t").await;
    done(&life, life.master.truncate_table(&table_name("t"), false, &caller()).await).await;
    assert_eq!(life.regions("t").len(), 1);

    // Deleted: only the archive knows it.
    life.fill("t");
    life.disable("t").await;
    done(&life, life.master.delete_table(&table_name("t"), &caller()).await).await;
    assert_eq!(state(&life, "t"), None);
    assert_eq!(life.notes.tables.lock()["t"], None);
    assert_eq!(life.files_below("archive/data/default/t").len(), 8);
    assert_eq!(life.files_below("data/default"), Vec::<String>::new());
    // And made again at once.
    life.create("t", &["f"], &[]).await;
    life.restart().await.check();
}

#[tokio::test]
async fn a_region_is_truncated_and_the_others_keep_their_files() {
    let life = fresh().await;
    life.create("t", &["f", "g"], &["m"]).await;
    life.fill("t");
    let regions = life.regions("t");
    done(&life, life.master.truncate_region(regions[0].clone(), &caller()).await).await;
    assert_eq!(life.regions("t"), regions, "its name and its boundaries stay");
    let archived = life.files_below("archive/data/default/t");
    assert_eq!(archived.len(), 2);
    assert!(archived.iter().all(|file| file.contains(&**regions[0].encoded_name())), "{archived:?}");
    let store_files = |info: &RegionInfo| {
        let families = ["f", "g"].map(|family| rootdir::region_dir(info).join(family));
        families.iter().map(|family| life.files_below(family.as_str()).len()).sum::<usize>()
    };
    assert_eq!((store_files(&regions[0]), store_files(&regions[1])), (0, 2));
    life.restart().await.check();
}

#[tokio::test]
async fn a_truncation_of_a_region_that_cannot_be_is_refused() {
    let life = fresh().await;
    life.create("t", &["f"], &["m"]).await;
    life.fill("t");
    let regions = life.regions("t");
    let ended = async |info: &RegionInfo| {
        let id = life.master.truncate_region(info.clone(), &caller()).await.expect("accepted");
        let error = life.master.wait_for(id).await.expect_err("refused");
        (error.kind, error.message)
    };
    let unknown = RegionInfo::new(table_name("t"), bytes("x"), bytes("y"), 7);
    let (kind, message) = ended(&unknown).await;
    assert_eq!(kind, ErrorKind::UnknownRegion);
    assert_eq!(message, format!("No RegionState found for {}", unknown.encoded_name()));
    let meta = life.master.cluster().region("1588230740").expect("known").info.clone();
    let (_, message) = ended(&meta).await;
    assert_eq!(message, "Can't truncate region in catalog tables");
    // A parent is not open.
    let parent = &regions[0];
    let split = life.master.split_region(parent.encoded_name(), Some(bytes("c")), &caller()).await;
    done(&life, split).await;
    let (kind, message) = ended(parent).await;
    assert_eq!(kind, ErrorKind::DoNotRetryRegion);
    assert_eq!(message, format!("{} is not OPEN; state=SPLIT", parent.encoded_name()));
    life.check();

    let refused =
        async |info: &RegionInfo| life.master.truncate_region(info.clone(), &caller()).await.expect_err("refused").kind;
    life.disable("t").await;
    assert_eq!(refused(&regions[1]).await, ErrorKind::TableNotEnabled);
    let of_no_table = RegionInfo::new(table_name("nobody"), bytes(""), bytes(""), 7);
    assert_eq!(refused(&of_no_table).await, ErrorKind::TableNotFound);
    assert_eq!(life.files_below("archive/data/default/t"), Vec::<String>::new());
}

#[tokio::test]
async fn families_come_change_and_go() {
    let life = fresh().await;
    life.create("t", &["f"], &["m"]).await;
    let name = table_name("t");
    done(&life, life.master.add_family(&name, FamilyDescriptor::new("g"), &caller()).await).await;
    life.fill("t");
    let changed = FamilyDescriptor::new("g").with("VERSIONS", "5");
    done(&life, life.master.modify_family(&name, changed.clone(), &caller()).await).await;
    assert_eq!(life.master.cluster().descriptor(&name).expect("is there").families[&b"g"[..]], changed);
    let life = life.restart().await;
    assert_eq!(life.master.cluster().descriptor(&name).expect("is there").families[&b"g"[..]], changed);
    done(&life, life.master.delete_family(&name, &bytes("g"), &caller()).await).await;
    assert_eq!(life.files_below("archive/data/default/t").len(), 2);
    let left: Vec<String> =
        life.files_below("data/default/t").into_iter().filter(|file| file.contains("/g/")).collect();
    assert_eq!(left, Vec::<String>::new());

    // A whole descriptor, with and without reopening.
    let mut whole = table("t", &["f", "h"]);
    whole.attributes.insert(bytes("OWNER"), bytes("me"));
    done(&life, life.master.modify_table(&name, whole.clone(), true, &caller()).await).await;
    whole.attributes.insert(bytes("OWNER"), bytes("you"));
    let submitted = life.master.modify_table(&name, whole.clone(), false, &caller()).await;
    life.master.wait_for(submitted.expect("accepted")).await.expect("done");
    let open = life
        .host
        .open
        .lock()
        .values()
        .filter(|(info, _)| info.table == name)
        .map(|(_, t)| t.clone())
        .collect::<Vec<_>>();
    assert!(open.iter().all(|table| table.attributes[&b"OWNER"[..]] == "me"), "not reopened");
    assert_eq!(life.master.cluster().descriptor(&name).expect("is there").attributes[&b"OWNER"[..]], "you");
}

/// `ModifyTableProcedure#preflightChecks` throws a plain HBaseIOException for each of them.
#[tokio::test]
async fn what_a_change_without_reopening_may_not_do_is_refused_by_hbases_class() {
    let life = fresh().await;
    life.create("t", &["f"], &[]).await;
    let name = table_name("t");
    let is = table("t", &["f"]);
    let with = |key: &'static str, value: &'static str| {
        let mut new = is.clone();
        new.attributes.insert(bytes(key), bytes(value));
        new
    };
    let rest = "of a table when modification won't reopen regions";
    for (new, why) in [
        (
            table("t", &["f", "g"]),
            "Cannot add or remove column families when this modification won't reopen regions.".to_owned(),
        ),
        (
            with("coprocessor$1", "|org.apache.hadoop.hbase.coprocessor.AggregateImplementation|1|"),
            "Can not modify Coprocessor when table modification won't reopen regions".to_owned(),
        ),
        (with("REGION_REPLICATION", "1"), format!("Can not modify REGION_REPLICATION {rest}")),
        (with("REGION_MEMSTORE_REPLICATION", "false"), format!("Can not modify REGION_MEMSTORE_REPLICATION {rest}")),
    ] {
        let refused = life.master.modify_table(&name, new, false, &caller()).await.expect_err("refused");
        assert_eq!((refused.kind, refused.message), (ErrorKind::HBaseIo, why));
    }
}

fn one(key: &str, value: &str) -> BTreeMap<String, String> {
    BTreeMap::from([(key.to_owned(), value.to_owned())])
}

#[tokio::test]
async fn namespaces() {
    let life = fresh().await;
    let created = life.master.create_namespace("ns".into(), one("k", "v"), &caller()).await;
    done(&life, created).await;
    let life = life.restart().await;
    assert_eq!(life.master.cluster().namespace("ns"), Some(&one("k", "v")));
    let again = life.master.create_namespace("ns".into(), BTreeMap::new(), &caller()).await.expect_err("is there");
    assert_eq!((again.kind, again.message.as_str()), (ErrorKind::NamespaceExists, "Namespace ns already exists"));
    life.create("ns:t", &["f"], &[]).await;
    let full = life.master.delete_namespace("ns", &caller()).await.expect_err("not empty");
    let sentence = "Only empty namespaces can be removed. Namespace ns has 1 tables";
    assert_eq!((full.kind, full.message.as_str()), (ErrorKind::Constraint, sentence));
    life.disable("ns:t").await;
    done(&life, life.master.delete_table(&table_name("ns:t"), &caller()).await).await;
    // Without hbase.quota.enabled that is not looked at.
    let limited = one("hbase.namespace.quota.maxtables", "1");
    done(&life, life.master.modify_namespace("ns".into(), limited, &caller()).await).await;
    life.create("ns:a", &["f"], &[]).await;
    life.create("ns:b", &["f"], &[]).await;
    life.disable("ns:b").await;
    done(&life, life.master.delete_table(&table_name("ns:b"), &caller()).await).await;
    life.disable("ns:a").await;
    done(&life, life.master.delete_table(&table_name("ns:a"), &caller()).await).await;
    done(&life, life.master.delete_namespace("ns", &caller()).await).await;
    assert_eq!(life.master.cluster().namespace("ns"), None);
    assert!(!fs::Volume::exists(&life.memory, &rootdir::namespace_dir("ns")).expect("memory"));
    for (name, kind) in [("default", ErrorKind::Constraint), ("no", ErrorKind::NamespaceNotFound)] {
        assert_eq!(life.master.delete_namespace(name, &caller()).await.expect_err("refused").kind, kind);
    }
}

#[tokio::test]
async fn a_region_splits_and_its_parent_is_cleaned_away() {
    let life = fresh().await;
    life.create("t", &["f"], &[]).await;
    life.fill("t");
    let parent = life.regions("t").remove(0);
    let none = life.master.split_region(parent.encoded_name(), None, &caller()).await.expect_err("too small");
    assert!(none.message.starts_with("Region not splittable because bestSplitPoint = null"), "{none}");
    life.host.split_points.lock().insert(parent.encoded_name().to_string(), bytes("k"));
    done(&life, life.master.split_region(parent.encoded_name(), None, &caller()).await).await;
    let daughters = life.regions("t");
    assert_eq!(daughters.iter().map(|info| &info.start_key).collect::<Vec<_>>(), ["", "k"]);
    assert!(daughters.iter().all(|info| info.region_id > parent.region_id));
    let counts = life.master.cluster().region_counts(&table_name("t"));
    assert_eq!((counts.open, counts.split), (2, 1));

    // References hold the parent, and forbid another split; over a restart too.
    let life = life.restart().await;
    life.check();
    assert_eq!(life.master.run_catalog_janitor().await, Ok(0));
    let row = Some(bytes("d"));
    let refused = life.master.split_region(daughters[0].encoded_name(), row, &caller()).await.expect_err("refers");
    assert!(refused.message.contains("NOT splittable"), "{refused}");
    // One daughter compacts: the parent stays. Both: it goes, but while a daughter's directory is missing, which proves
    // nothing of what was in it.
    let volume = &life.memory;
    let aside = fs::FilePath::new("aside");
    for (daughter, cleaned) in daughters.iter().zip([0, 1]) {
        let dir = rootdir::region_dir(daughter).join("f");
        for file in fs::Volume::list(volume, &dir).expect("memory") {
            fs::Volume::remove_file(volume, &dir.join(&file.name)).expect("memory");
        }
        fs::Volume::rename(volume, &dir.parent(), &aside).expect("memory");
        assert_eq!(life.master.run_catalog_janitor().await, Ok(0));
        fs::Volume::rename(volume, &aside, &dir.parent()).expect("memory");
        assert_eq!(life.master.run_catalog_janitor().await, Ok(cleaned));
    }
    life.check();
    assert!(life.master.cluster().region(parent.encoded_name()).is_none());
    assert_eq!(life.files_below("archive/data/default/t").len(), 1);
    let life = life.restart().await;
    life.check();

    // Deleting a table with a split parent takes the parent along.
    let row = Some(bytes("p"));
    done(&life, life.master.split_region(daughters[1].encoded_name(), row, &caller()).await).await;
    life.disable("t").await;
    done(&life, life.master.delete_table(&table_name("t"), &caller()).await).await;
}

#[tokio::test]
async fn a_split_that_cannot_be_is_refused_or_taken_back() {
    let life = fresh().await;
    life.create("t", &["f"], &["m"]).await;
    let region = life.regions("t").remove(1);
    let name = region.encoded_name().to_string();
    for (row, sentence) in
        [("m", "Split row is equal to startkey: m"), ("a", "Split row is not inside region key range")]
    {
        let error = life.master.split_region(&name, Some(bytes(row)), &caller()).await.expect_err("refused");
        assert!(error.kind == ErrorKind::DoNotRetry && error.message.starts_with(sentence), "{error}");
    }
    let unknown = life.master.split_region("0123", None, &caller()).await.expect_err("unknown");
    assert_eq!(unknown.kind, ErrorKind::UnknownRegion);
    // The disk fails while the daughters are written: the parent serves again.
    life.fill("t");
    let fault = fs::mem::Fault {
        op: Some(fs::mem::Op::Create),
        path_contains: Some(name.clone()),
        nth: 1,
        kind: fs::mem::FaultKind::Full,
        forever: false,
    };
    life.memory.inject(fault);
    let id = life.master.split_region(&name, Some(bytes("p")), &caller()).await.expect("accepted");
    let failed = life.master.wait_for(id).await.expect_err("taken back");
    assert_eq!(failed.kind, ErrorKind::DoNotRetry);
    life.check();
    assert_eq!(life.regions("t").len(), 2);
    done(&life, life.master.split_region(&name, Some(bytes("p")), &caller()).await).await;
}

/// A region's name is its row in hbase:meta, and longer than its first row.
#[tokio::test]
async fn a_region_whose_name_is_too_long_for_a_row_is_refused() {
    let life = fresh().await;
    let long = Bytes::from("x".repeat(32_760));
    let refused = life.master.create_table(table("long", &["f"]), std::slice::from_ref(&long), &caller()).await;
    assert_eq!(refused.expect_err("too long").kind, ErrorKind::IllegalArgument);
    life.create("t", &["f"], &[]).await;
    life.fill("t");
    let region = life.regions("t").remove(0);
    let refused = life.master.split_region(region.encoded_name(), Some(long.clone()), &caller()).await;
    assert_eq!(refused.expect_err("too long").kind, ErrorKind::DoNotRetry);
    life.check();
    let life = life.restart().await;
    life.check();
    assert_eq!(state(&life, "long"), None);
    assert_eq!(life.regions("t"), [region]);
}

/// Removes what a region refers to, as its compaction does.
fn compacted(life: &Life, info: &RegionInfo) {
    for file in life.files_below(rootdir::region_dir(info).join("f").as_str()) {
        fs::Volume::remove_file(&life.memory, &fs_path(&file)).expect("memory");
    }
}

/// Directories of regions that a table has.
fn region_dirs(life: &Life, name: &str) -> Vec<String> {
    let entries = fs::Volume::list(&life.memory, &rootdir::table_dir(&table_name(name))).expect("memory");
    let mut dirs: Vec<String> =
        entries.into_iter().map(|entry| entry.name).filter(|name| !name.starts_with('.')).collect();
    dirs.sort();
    dirs
}

fn encoded(regions: &[RegionInfo]) -> Vec<String> {
    let mut names: Vec<String> = regions.iter().map(|info| info.encoded_name().to_string()).collect();
    names.sort();
    names
}

#[tokio::test]
async fn the_parents_of_a_merged_region_are_archived_though_it_was_split_since() {
    let life = fresh().await;
    life.create("t", &["f"], &["m"]).await;
    life.fill("t");
    let parents = encoded(&life.regions("t"));
    done(&life, life.master.merge_regions(&parents, false, &caller()).await).await;
    let merged = life.regions("t").remove(0);
    compacted(&life, &merged);
    let split = life.master.split_region(merged.encoded_name(), Some(bytes("k")), &caller()).await;
    done(&life, split).await;
    let life = life.restart().await;
    life.check();
    for _ in 0..2 {
        life.master.run_catalog_janitor().await.expect("cleaned");
    }
    assert_eq!(region_dirs(&life, "t"), encoded(&life.regions("t")));
    assert_eq!(life.files_below("archive/data/default/t").len(), 2);
}

#[tokio::test]
async fn a_truncated_table_keeps_nothing_of_regions_that_were_merged() {
    let life = fresh().await;
    life.create("t", &["f"], &["m"]).await;
    life.fill("t");
    let parents = encoded(&life.regions("t"));
    done(&life, life.master.merge_regions(&parents, false, &caller()).await).await;
    life.disable("t").await;
    done(&life, life.master.truncate_table(&table_name("t"), true, &caller()).await).await;
    assert_eq!(region_dirs(&life, "t"), encoded(&life.regions("t")));
    assert_eq!(life.files_below("archive/data/default/t").len(), 2);
}

#[tokio::test]
async fn regions_merge() {
    let life = fresh().await;
    life.create("t", &["f"], &["c", "m"]).await;
    life.fill("t");
    let old = life.regions("t");
    let names = |wanted: &[usize]| wanted.iter().map(|i| old[*i].encoded_name().to_string()).collect::<Vec<_>>();
    for bad in [&[0usize][..], &[0, 2], &[1, 1]] {
        let error = life.master.merge_regions(&names(bad), false, &caller()).await.expect_err("refused");
        assert_eq!(error.kind, ErrorKind::MergeRegion, "{error}");
    }
    done(&life, life.master.merge_regions(&names(&[1, 0]), false, &caller()).await).await;
    let new = life.regions("t");
    assert_eq!((new.len(), new[0].start_key.len(), &new[0].end_key[..]), (2, 0, &b"m"[..]));
    let references: Vec<String> = life.files_below(rootdir::region_dir(&new[0]).join("f").as_str());
    assert_eq!(references.len(), 2, "{references:?}");
    let life = life.restart().await;
    life.check();
    assert_eq!(life.master.run_catalog_janitor().await, Ok(0));
    for file in &references {
        fs::Volume::remove_file(&life.memory, &fs_path(file)).expect("memory");
    }
    // The parents' directories are not in hbase:meta any more, and not yet in the archive.
    assert_eq!(life.master.run_catalog_janitor().await, Ok(2));
    life.check();
    assert_eq!(life.files_below("archive/data/default/t").len(), 2);
    life.restart().await.check();
}

/// Who reports it asks again for as long as there is an error.
#[tokio::test]
async fn the_report_of_a_close_may_come_after_its_region_was_deleted() {
    let life = fresh().await;
    life.create("t", &["f"], &["m"]).await;
    let closed = life.regions("t").remove(0).encoded_name().to_string();
    let server = life.master.cluster().region(&closed).and_then(|node| node.location.clone()).expect("it is open");
    life.disable("t").await;
    done(&life, life.master.delete_table(&table_name("t"), &caller()).await).await;
    life.master.region_closed_unasked(&closed, &server).await.expect("there is nothing to do");
}

#[tokio::test]
async fn a_broken_region_does_not_hold_up_the_others() {
    let life = fresh().await;
    life.create("t", &["f"], &["m"]).await;
    let broken = life.regions("t").remove(0).encoded_name().to_string();
    life.master.stop();
    let mut config = Config::default();
    config.set("basalt.master.failed.open.retry", "10");
    let next = crate::common::start(&life.memory, &life.catalog, config.clone()).await.expect("starts");
    next.host.broken.lock().insert(broken.clone());
    let reopened = next.master.modify_table(&table_name("t"), table("t", &["f"]), true, &caller()).await;
    next.master.wait_for(reopened.expect("accepted")).await.expect("done");
    let state_of = |life: &Life| life.master.cluster().region(&broken).expect("is known").state;
    assert_eq!(state_of(&next), RegionState::FailedOpen);
    // Mended, it comes up by itself.
    next.host.broken.lock().clear();
    let healed = async {
        while state_of(&next) != RegionState::Open {
            tokio::time::sleep(std::time::Duration::from_millis(5)).await;
        }
    };
    tokio::time::timeout(std::time::Duration::from_secs(20), healed).await.expect("opened again");
    next.check();
}

/// A stop lets go of the locks of a procedure whose end could not be recorded; the next start runs it once more. What waited for them must
/// not come between: two merges of the same regions made two regions of them.
#[tokio::test]
async fn a_procedure_that_waited_for_its_locks_is_refused_once_the_master_stops() {
    let life = fresh().await;
    life.create("t", &["f"], &[]).await;
    // The first one's record is written, its end is not.
    life.memory.inject(fs::mem::Fault {
        op: Some(fs::mem::Op::Rename),
        path_contains: Some("procedures/".into()),
        nth: 2,
        kind: fs::mem::FaultKind::Full,
        forever: true,
    });
    life.master.disable_table(&table_name("t"), &caller()).await.expect("accepted");
    let disabled = async {
        while state(&life, "t") != Some(TableState::Disabled) {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(std::time::Duration::from_secs(20), disabled).await.expect("done, and not recorded");
    let master = std::sync::Arc::clone(&life.master);
    let second = tokio::spawn(async move { master.enable_table(&table_name("t"), &caller()).await });
    tokio::task::yield_now().await;
    assert!(!second.is_finished(), "it waits for the table's lock");
    life.master.stop();
    let refused = second.await.expect("no panic").expect_err("the master stops");
    assert_eq!(refused.kind, ErrorKind::Stopped, "{refused}");
    life.memory.clear_faults();
    let life = life.restart().await;
    life.check();
    assert_eq!(state(&life, "t"), Some(TableState::Disabled));
}

#[tokio::test]
async fn a_repeated_nonce_is_the_same_request() {
    let life = fresh().await;
    let mut asked = caller();
    asked.nonce = Some(Nonce { group: 7, number: 9 });
    let first = life.master.create_table(table("t", &["f"]), &[], &asked).await.expect("accepted");
    let second = life.master.create_table(table("t", &["f"]), &[], &asked).await.expect("the same");
    assert_eq!(first, second);
    life.master.wait_for(first).await.expect("done");
    // After a restart too; and ids go on growing.
    let life = life.restart().await;
    assert_eq!(life.master.create_table(table("t", &["f"]), &[], &asked).await, Ok(first));
    assert_eq!(life.master.wait_for(first).await, Ok(None));
    let next = life.master.disable_table(&table_name("t"), &caller()).await.expect("accepted");
    assert!(next > first);
    // A refused one is refused again, not taken for done.
    asked.nonce = Some(Nonce { group: 7, number: 10 });
    let refused = life.master.create_table(table("t", &["f"]), &[], &asked).await.expect_err("exists");
    assert_eq!(refused.kind, ErrorKind::TableExists);
    let id = life.master.create_table(table("t", &["f"]), &[], &asked).await.expect("an id to ask for");
    assert_eq!(life.master.wait_for(id).await.expect_err("exists").kind, ErrorKind::TableExists);
}

#[tokio::test]
async fn one_ddl_per_table_and_tables_side_by_side() {
    let life = fresh().await;
    let names: Vec<String> = (0..8).map(|i| format!("t{i}")).collect();
    let creations = names.iter().flat_map(|name| {
        // Twice the same table: one of the two must lose.
        [0, 1].map(|_| {
            let (master, table) = (life.master.clone(), table(name, &["f"]));
            tokio::spawn(async move { master.create_table(table, &[], &caller()).await })
        })
    });
    let mut won = 0;
    for creation in creations.collect::<Vec<_>>() {
        match creation.await.expect("no panic") {
            Ok(id) => {
                life.master.wait_for(id).await.expect("created");
                won += 1;
            }
            Err(error) => assert_eq!(error.kind, ErrorKind::TableExists),
        }
    }
    assert_eq!(won, 8);
    life.check();
}

/// What HBase refuses, with its kind and the beginning (or a part) of its sentence.
#[tokio::test]
async fn bad_input() {
    let life = fresh().await;
    life.create("t", &["f"], &[]).await;
    let family = |key: &'static str, value: &str| {
        TableDescriptor::new(table_name("x"), [FamilyDescriptor::new("f").with(key, value)])
    };
    let attribute = |key: &'static str, value: &str| {
        let mut table = table("x", &["f"]);
        table.attributes.insert(bytes(key), bytes(value));
        table
    };
    let k = ErrorKind::DoNotRetry;
    let cases: Vec<(TableDescriptor, &[&str], ErrorKind, &str)> = vec![
        (table("t", &["f"]), &[], ErrorKind::TableExists, "t"),
        (table("no:x", &["f"]), &[], ErrorKind::NamespaceNotFound, "no"),
        (table("x", &[]), &[], k, "Table should have at least one column family."),
        (family("VERSIONS", "0"), &[], k, "Maximum versions for column family f must be positive."),
        (family("VERSIONS", "x"), &[], k, "VERSIONS of column family f must be a number"),
        (family("TTL", "0"), &[], k, "TTL for column family f must be positive."),
        (family("TTL", "-5"), &[], k, "TTL for column family f must be positive."),
        (family("BLOCKSIZE", "1023"), &[], k, "Block size for column family f  must be between 1K and 16MB."),
        (family("BLOCKSIZE", "16777217"), &[], k, "Block size for column family f  must be between 1K and 16MB."),
        (family("MIN_VERSIONS", "-1"), &[], k, "Min versions for column family f  must be positive."),
        (family("MIN_VERSIONS", "2"), &[], k, "Min versions for column family f must be less than the Max versions."),
        (family("COMPRESSION", "PAPER"), &[], k, "COMPRESSION of column family f is \"PAPER\""),
        (
            family("COMPRESSION_COMPACT", "PAPER"),
            &[],
            k,
            "Compression algorithm 'PAPER' of column family f is not known",
        ),
        (family("BLOOMFILTER", "NOPE"), &[], k, "BLOOMFILTER of column family f"),
        (family("BLOOMFILTER", "ROWPREFIX_FIXED_LENGTH"), &[], k, "Failed to get bloom filter param"),
        (family("DATA_BLOCK_ENCODING", "NOPE"), &[], k, "DATA_BLOCK_ENCODING of column family f"),
        (family("KEEP_DELETED_CELLS", "MAYBE"), &[], k, "KEEP_DELETED_CELLS of column family f"),
        (family("REPLICATION_SCOPE", "5"), &[], k, "Replication scope for column family f is 5 which is invalid."),
        (family("DFS_REPLICATION", "-1"), &[], k, "HFile Replication for column family f  must be greater than zero."),
        (family("ENCRYPTION", "AES"), &[], k, "KeyStoreKeyProvider failed test"),
        (attribute("MAX_FILESIZE", "1"), &[], k, "MAX_FILESIZE for table descriptor"),
        (attribute("MEMSTORE_FLUSHSIZE", "1"), &[], k, "MEMSTORE_FLUSHSIZE for table descriptor"),
        (attribute("REGION_REPLICATION", "0"), &[], k, "Table region replication should be at least one."),
        (attribute("REGION_REPLICATION", "65537"), &[], k, "REGION_REPLICATION 65537 of table x"),
        (
            attribute("hbase.store.file-tracker.impl", "x.Y"),
            &[],
            ErrorKind::Io,
            "ClassNotFoundException: Class x.Y not found",
        ),
        (
            table("x", &["f"]),
            &["a", "b", "a"],
            ErrorKind::IllegalArgument,
            "All split keys must be unique, found duplicate: a",
        ),
        (table("x", &["f"]), &["a", ""], ErrorKind::IllegalArgument, "Empty split key must not be passed"),
    ];
    for (table, split_keys, kind, sentence) in cases {
        let keys: Vec<Bytes> = split_keys.iter().map(|key| bytes(key)).collect();
        let error = life.master.create_table(table.clone(), &keys, &caller()).await.expect_err(sentence);
        assert_eq!(error.kind, kind, "{error}");
        assert!(error.message.contains(sentence), "{error} instead of {sentence}");
        if table.name != table_name("t") && kind != ErrorKind::NamespaceNotFound && split_keys.is_empty() {
            // Changing a table to it is refused alike.
            let mut changed = table;
            changed.name = table_name("t");
            let error = life.master.modify_table(&table_name("t"), changed, true, &caller()).await.expect_err(sentence);
            assert_eq!(error.kind, kind, "{error}");
        }
    }
    // Checks may be bypassed, but for what the server cannot do without.
    let mut odd = attribute("MAX_FILESIZE", "1");
    odd.attributes.insert(bytes("hbase.table.sanity.checks"), bytes("false"));
    let id = life.master.create_table(odd, &[], &caller()).await.expect("bypassed");
    life.master.wait_for(id).await.expect("created");
    let mut empty = table("y", &[]);
    empty.attributes.insert(bytes("hbase.table.sanity.checks"), bytes("false"));
    life.master.create_table(empty, &[], &caller()).await.expect_err("no family at all");

    let (t, no) = (table_name("t"), table_name("no"));
    let master = &life.master;
    let who = caller();
    let refusals: Vec<(Result<u64, MasterError>, ErrorKind, &str)> = vec![
        (master.delete_table(&t, &who).await, ErrorKind::TableNotDisabled, "t"),
        (master.delete_table(&no, &who).await, ErrorKind::TableNotFound, "no"),
        (master.truncate_table(&t, true, &who).await, ErrorKind::TableNotDisabled, "t"),
        (master.truncate_table(&no, true, &who).await, ErrorKind::TableNotFound, "no"),
        (master.enable_table(&t, &who).await, ErrorKind::TableNotDisabled, "tableName=t, state=ENABLED"),
        (master.enable_table(&no, &who).await, ErrorKind::TableNotFound, "no"),
        (master.disable_table(&no, &who).await, ErrorKind::TableNotFound, "no"),
        (
            master.disable_table(&table_name("hbase:meta"), &who).await,
            ErrorKind::Constraint,
            "Cannot disable hbase:meta",
        ),
        (master.delete_table(&table_name("hbase:meta"), &who).await, ErrorKind::Io, "Can't modify catalog tables"),
        (master.modify_table(&no, table("no", &["f"]), true, &who).await, ErrorKind::TableNotFound, "no"),
        (master.modify_table(&t, table("u", &["f"]), true, &who).await, k, "the descriptor is of table u"),
        (
            master.add_family(&t, FamilyDescriptor::new("f"), &who).await,
            ErrorKind::InvalidFamilyOperation,
            "Column family 'f' in table 't' already exists so cannot be added",
        ),
        (
            master.modify_family(&t, FamilyDescriptor::new("z"), &who).await,
            ErrorKind::InvalidFamilyOperation,
            "Family 'z' does not exist, so it cannot be modified",
        ),
        (
            master.delete_family(&t, &bytes("z"), &who).await,
            ErrorKind::InvalidFamilyOperation,
            "Family 'z' does not exist, so it cannot be deleted",
        ),
        (
            master.delete_family(&t, &bytes("f"), &who).await,
            ErrorKind::InvalidFamilyOperation,
            "Family 'f' is the only column family in the table, so it cannot be deleted",
        ),
        (master.flush_table(&no, vec![], &who).await, ErrorKind::TableNotFound, "no"),
        (
            master.flush_table(&t, vec![bytes("z")], &who).await,
            ErrorKind::NoSuchColumnFamily,
            "Column families [z] don't exist in table t",
        ),
        (
            master.create_namespace("a b".into(), BTreeMap::new(), &who).await,
            ErrorKind::IllegalArgument,
            "Illegal character",
        ),
        (
            master.create_namespace(String::new(), BTreeMap::new(), &who).await,
            ErrorKind::IllegalArgument,
            "must not be empty",
        ),
        (
            master.create_namespace("q".into(), one("hbase.namespace.quota.maxtables", "0"), &who).await,
            ErrorKind::Constraint,
            "The max tables quota for q is less than or equal to zero.",
        ),
    ];
    for (refused, kind, sentence) in refusals {
        let error = refused.expect_err(sentence);
        assert_eq!(error.kind, kind, "{error}");
        assert!(error.message.contains(sentence), "{error} instead of {sentence}");
    }
    life.disable("t").await;
    let again = master.disable_table(&t, &who).await.expect_err("is disabled");
    assert_eq!((again.kind, again.message.as_str()), (ErrorKind::TableNotEnabled, "t"));
    // Nothing was begun by any of these.
    life.check();
    life.restart().await.check();
}
