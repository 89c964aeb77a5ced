//! MOB families: large values lie in files of their own, readers do not notice, and a power failure at any call to the
//! volume loses neither them nor what refers to them.

use crate::common::*;
use basalt_region::{
    CloseMode, CompactionKind, FlushRequest, Region, RegionError, Unthrottled, clean_mob_files, split,
};
use base::{Config, Rng};
use bytes::Bytes;
use cell::{CellBuffer, CellType, tag};
use filter::{Comparator, CompareOp, Filter};
use fs::{CrashPolicy, FaultKind, FilePath, MemVolume, Volume};
use hfile::Residency;
use model::{FamilyDescriptor, Get, MobRead, RegionInfo, Scan, TableDescriptor};
use std::collections::BTreeMap;
use std::sync::Arc;

const START: i64 = 1_700_000_000_000;
const BIG: &str = "a value that is larger than the threshold";
const BIG2: &str = "another value that is larger than it, too";

fn mob_family(name: &'static str) -> FamilyDescriptor {
    family(name).with("IS_MOB", "true").with("MOB_THRESHOLD", "10")
}

fn table() -> Arc<TableDescriptor> {
    Arc::new(TableDescriptor::new(table_name(), [mob_family("f"), family("g")]))
}

fn mob_files(volume: &MemVolume) -> Vec<FilePath> {
    let dir = rootdir::mob_family_dir(&table_name(), b"f");
    match volume.list(&dir) {
        Ok(entries) => entries.into_iter().map(|entry| dir.join(entry.name)).collect(),
        Err(_) => Vec::new(),
    }
}

fn rows(region: &Arc<Region>) -> Vec<String> {
    scan(region, &Scan { max_versions: 10, ..Scan::default() }, START).concat()
}

fn raw(region: &Arc<Region>, how: MobRead) -> Vec<String> {
    scan(region, &Scan { mob: how, ..Scan::default() }, START).concat()
}

fn minor_compact(region: &Arc<Region>) {
    if let Some(job) = region.select_compaction(Some(b"f"), CompactionKind::Minor).expect("open") {
        assert!(region.compact(job, &Unthrottled).expect("compacted").completed);
    }
}

#[test]
fn large_values_lie_in_files_of_their_own() {
    let server = Server::new(START);
    let region = server.open(&whole_table(), &table()).expect("opened");
    write(
        &region,
        &[put("a", "f", "q", START, BIG), put("b", "f", "q", START, "small"), put("c", "g", "q", START, BIG)],
    );
    write(&region, &[delete("d", "f", "q", START, CellType::DeleteColumn)]);
    let expected = [format!("a/f:q/0/Put={BIG}"), "b/f:q/0/Put=small".into(), format!("c/g:q/0/Put={BIG}")];
    assert_eq!(rows(&region), expected);
    flush(&region);
    assert_eq!(rows(&region), expected);
    let files = mob_files(&server.volume);
    let [file] = &files[..] else { panic!("{files:?}") };
    // md5 of the empty start key, the day, a random part, the region.
    assert!(file.name().starts_with("d41d8cd98f00b204e9800998ecf8427e20231114"), "{file}");
    assert!(file.name().ends_with(&format!("_{}", region.name())) && file.name().len() == 32 + 8 + 32 + 1 + 32);
    // What refers to it: its length and name under two tags, before the cell's own.
    let mut scanner =
        region.scanner(&Scan { mob: MobRead { raw: true, ..MobRead::default() }, ..Scan::default() }).expect("opened");
    let mut out = CellBuffer::new();
    scanner.next(&mut basalt_region::Limits::default(), &mut out).expect("read");
    let cell = out.get(0);
    assert_eq!(cell.value(), [&(BIG.len() as u32).to_be_bytes()[..], file.name().as_bytes()].concat());
    let tags: Vec<(u8, &[u8])> = tag::iter(cell.tags()).collect();
    assert_eq!(tags, [(tag::MOB_REFERENCE, &b""[..]), (tag::MOB_TABLE_NAME, &b"t"[..])]);
    // Of the families only this one has references.
    let references = raw(&region, MobRead { raw: true, references_only: true, ..MobRead::default() });
    assert_eq!(references.iter().filter(|row| row.contains("/f:")).count(), 1, "{references:?}");
    let resolved = raw(&region, MobRead { references_only: true, ..MobRead::default() });
    assert_eq!(resolved[0], expected[0]);
    // A region opened again reads the same.
    region.close(CloseMode::Flush).expect("closed");
    let region = server.open(&whole_table(), &table()).expect("opened");
    assert_eq!(rows(&region), expected);
    let mut out = CellBuffer::new();
    let get = Get::new(Bytes::from("a"));
    let cold = region.get(&get, &mut out, Residency::CachedOnly).expect_err("nothing is in memory");
    assert!(matches!(cold, RegionError::WouldBlock), "{cold}");
    region.get(&get, &mut out, Residency::MayRead).expect("read");
    assert_eq!(show_all(&out, START), expected[..1]);
}

/// HBase fetches a large value only after the filter.
#[test]
fn a_filter_sees_references_and_counters_see_values() {
    let server = Server::new(START);
    let region = server.open(&whole_table(), &table()).expect("opened");
    write(&region, &[put("a", "f", "q", START, BIG), put("b", "f", "q", START, BIG2)]);
    let found = |op| {
        let filter = Filter::Value { op, comparator: Some(Comparator::Binary { value: Bytes::from(BIG2) }) };
        scan(&region, &Scan { filter: Some(Arc::new(filter)), ..Scan::default() }, START).concat()
    };
    assert_eq!(found(CompareOp::Equal), [format!("b/f:q/0/Put={BIG2}")], "not flushed yet");
    flush(&region);
    assert_eq!(found(CompareOp::Equal), [""; 0]);
    assert_eq!(found(CompareOp::NotEqual), [format!("a/f:q/0/Put={BIG}"), format!("b/f:q/0/Put={BIG2}")]);
    let keys = |len_as_val| {
        let filter = Filter::any_of(vec![Filter::KeyOnly { len_as_val }]);
        scan(&region, &Scan { filter: Some(Arc::new(filter)), ..Scan::default() }, START).concat()
    };
    assert_eq!(keys(false), ["a/f:q/0/Put=", "b/f:q/0/Put="]);
    let reference_len = 4 + mob_files(&server.volume)[0].name().len() as u8;
    let length = cell::print::to_string_binary(&[0, 0, 0, reference_len]);
    assert_eq!(keys(true), [format!("a/f:q/0/Put={length}"), format!("b/f:q/0/Put={length}")]);
    let append = mutation(model::MutationKind::Append, "a", &[("f", "q", LATEST, CellType::Put, " and more")]);
    region.increment_or_append(&append).expect("appended").commit.wait().expect("durable");
    let get = Get::new(Bytes::from("a"));
    let now = crate::common::get(&region, &get, START);
    assert_eq!(now.len(), 1);
    assert!(now[0].ends_with(&format!("={BIG} and more")), "{now:?}");
}

#[test]
fn compactions_keep_references_and_major_ones_that_were_asked_for_rewrite() {
    let mut config = Config::default();
    config.set("hbase.hstore.compaction.min", "2");
    let server = Server::try_on(MemVolume::new(), START, &config, 1).expect("empty");
    let region = server.open(&whole_table(), &table()).expect("opened");
    for (row, value) in [("a", BIG), ("b", BIG2), ("c", "small")] {
        write(&region, &[put(row, "f", "q", START, value)]);
        flush(&region);
    }
    let expected = rows(&region);
    let before = mob_files(&server.volume);
    assert_eq!(before.len(), 2);
    minor_compact(&region);
    assert_eq!(region.store_file_paths(b"f").expect("a family").len(), 1);
    assert_eq!(rows(&region), expected);
    assert_eq!(mob_files(&server.volume), before, "references are kept");
    assert_eq!(clean_mob_files(&server.env, region.table(), std::slice::from_ref(&region), 0).expect("cleaned"), 0);
    write(&region, &[delete("a", "f", "q", START, CellType::DeleteColumn)]);
    flush(&region);
    major_compact(&region);
    assert_eq!(rows(&region), expected[1..]);
    let after = mob_files(&server.volume);
    assert_eq!(after.len(), 3, "one new file beside the old");
    // Too young to go; later they go, and the reader that still stands on the old picture finds them in the archive.
    let clean =
        |age| clean_mob_files(&server.env, region.table(), std::slice::from_ref(&region), age).expect("cleaned");
    assert_eq!(clean(1000), 0);
    let old = region.scanner(&Scan::default()).expect("opened");
    drop(old);
    server.clock.advance_ms(2000);
    assert_eq!(clean(1000), 2);
    assert_eq!(mob_files(&server.volume).len(), 1);
    assert_eq!(rows(&region), expected[1..]);
    region.close(CloseMode::Flush).expect("closed");
    let region = server.open(&whole_table(), &table()).expect("opened");
    assert_eq!(rows(&region), expected[1..]);
}

#[test]
fn a_threshold_that_changes_moves_values_at_the_next_rewrite() {
    let server = Server::new(START);
    let region = server.open(&whole_table(), &table()).expect("opened");
    write(&region, &[put("a", "f", "q", START, BIG), put("b", "f", "q", START, "small")]);
    flush(&region);
    let expected = rows(&region);
    region.close(CloseMode::Flush).expect("closed");
    let all_large = mob_family("f").with("MOB_THRESHOLD", "0");
    let none = family("f").with("IS_MOB", "true").with("MOB_THRESHOLD", "100000");
    for (family, references) in [(all_large, 2), (none, 0)] {
        let changed = Arc::new(TableDescriptor::new(table_name(), [family, crate::common::family("g")]));
        let region = server.open(&whole_table(), &changed).expect("opened");
        assert_eq!(rows(&region), expected);
        major_compact(&region);
        assert_eq!(rows(&region), expected);
        let found = raw(&region, MobRead { raw: true, references_only: true, ..MobRead::default() });
        assert_eq!(found.len(), references, "{found:?}");
        region.close(CloseMode::Flush).expect("closed");
    }
}

#[test]
fn archived_files_are_found_and_lost_ones_said() {
    let server = Server::new(START);
    let region = server.open(&whole_table(), &table()).expect("opened");
    write(&region, &[put("a", "f", "q", START, BIG)]);
    flush(&region);
    let expected = rows(&region);
    region.close(CloseMode::Flush).expect("closed");
    let file = mob_files(&server.volume).remove(0);
    let archive = FilePath::new(format!("archive/{}", file.as_str().strip_prefix("mobdir/").expect("below mobdir")));
    server.volume.create_dir_all(&archive.parent()).expect("memory");
    server.volume.rename(&file, &archive).expect("memory");
    let region = server.open(&whole_table(), &table()).expect("opened");
    assert_eq!(rows(&region), expected);
    region.close(CloseMode::Flush).expect("closed");
    server.volume.remove_file(&archive).expect("memory");
    let region = server.open(&whole_table(), &table()).expect("opened");
    let mut out = CellBuffer::new();
    let error = region.get(&Get::new(Bytes::from("a")), &mut out, Residency::MayRead).expect_err("it is lost");
    assert!(matches!(&error, RegionError::DoNotRetry(text) if text.contains(file.name())), "{error}");
    let how = MobRead { empty_on_miss: true, ..MobRead::default() };
    let get = Get { mob: how, ..Get::new(Bytes::from("a")) };
    region.get(&get, &mut out, Residency::MayRead).expect("read");
    assert_eq!(show_all(&out, START), ["a/f:q/0/Put="]);
    // What is lost is not made to look whole by a rewrite.
    let job = region.select_compaction(Some(b"f"), CompactionKind::Major).expect("open").expect("a job");
    assert!(region.compact(job, &Unthrottled).is_err());
}

#[test]
fn daughters_read_their_parents_files() {
    let server = Server::new(START);
    let region = server.open(&whole_table(), &table()).expect("opened");
    write(&region, &[put("a", "f", "q", START, BIG), put("z", "f", "q", START, BIG2)]);
    region.close(CloseMode::Flush).expect("closed");
    let id = region.info().region_id + 1;
    let low = RegionInfo::new(table_name(), Bytes::new(), Bytes::from("m"), id);
    let high = RegionInfo::new(table_name(), Bytes::from("m"), Bytes::new(), id);
    split::write_daughters(&server.env, region.info(), region.table(), [&low, &high]).expect("written");
    let daughters = [low, high].map(|info| server.open(&info, region.table()).expect("opened"));
    let all = |daughters: &[Arc<Region>; 2]| daughters.iter().flat_map(rows).collect::<Vec<_>>();
    let expected = [format!("a/f:q/0/Put={BIG}"), format!("z/f:q/0/Put={BIG2}")];
    assert_eq!(all(&daughters), expected);
    server.clock.advance_ms(10);
    assert_eq!(clean_mob_files(&server.env, region.table(), &daughters, 0).expect("cleaned"), 0, "still referred to");
    for daughter in &daughters {
        minor_compact(daughter);
        daughter.archive_compacted_files().expect("archived");
    }
    assert_eq!(all(&daughters), expected);
    rootdir::archive_region_dir(&server.volume, &rootdir::region_dir(region.info())).expect("archived");
    assert_eq!(clean_mob_files(&server.env, region.table(), &daughters, 0).expect("cleaned"), 0, "still referred to");
    daughters.iter().for_each(major_compact);
    daughters.iter().for_each(|daughter| {
        daughter.archive_compacted_files().expect("archived");
    });
    server.clock.advance_ms(10);
    assert_eq!(clean_mob_files(&server.env, region.table(), &daughters, 1).expect("cleaned"), 1);
    assert_eq!(all(&daughters), expected);
}

type State = BTreeMap<String, String>;

fn state_of(region: &Arc<Region>) -> State {
    let split = |row: String| {
        let (place, value) = row.split_once("/Put=").expect("only puts are shown");
        (place.rsplit_once('/').expect("a timestamp").0.to_owned(), value.to_owned())
    };
    scan(region, &Scan::default(), START).concat().into_iter().map(split).collect()
}

#[derive(Default, Clone)]
struct Promises {
    acked: State,
    under_way: Option<State>,
}

/// One life: puts large and small, deletes, flushes, compactions of both kinds, cleaning. The same for the same seed.
fn live(server: &Server, region: &Arc<Region>, seed: u64, promises: &mut Promises) -> Result<(), RegionError> {
    let rng = Rng::seeded(seed);
    for step in 0..24 {
        server.clock.advance_ms(1);
        let row = format!("row{}", rng.below(6));
        let mut after = promises.acked.clone();
        let mutation = if rng.one_in(5) {
            after.remove(&format!("{row}/f:q"));
            delete(&row, "f", "q", LATEST, CellType::DeleteColumn)
        } else {
            let value = format!("v{step}").repeat(1 + rng.below(12) as usize);
            after.insert(format!("{row}/f:q"), value.clone());
            put(&row, "f", "q", LATEST, &value)
        };
        promises.under_way = Some(after.clone());
        let applied = region.apply(&[mutation])?;
        applied.results.into_iter().try_for_each(|result| result.map(drop))?;
        applied.commit.wait()?;
        *promises = Promises { acked: after, under_way: None };
        match step % 6 {
            2 | 4 => {
                region.flush(&FlushRequest { all: true, ..FlushRequest::default() })?;
            }
            5 => {
                let kind = if step % 12 == 5 { CompactionKind::Minor } else { CompactionKind::Major };
                if let Some(job) = region.select_compaction(Some(b"f"), kind)? {
                    region.compact(job, &Unthrottled)?;
                }
                region.archive_compacted_files()?;
                server.clock.advance_ms(1);
                clean_mob_files(&server.env, region.table(), std::slice::from_ref(region), 1)?;
            }
            _ => {}
        }
    }
    Ok(())
}

fn crash_config() -> Config {
    let mut config = Config::default();
    config.set("hbase.hstore.compaction.min", "2");
    config.set("hbase.hregion.majorcompaction", "0");
    config
}

fn open(volume: MemVolume, now: i64, seed: u64) -> Result<(Server, Arc<Region>), String> {
    let server = Server::try_on(volume, now, &crash_config(), seed)?;
    let region = server.open(&whole_table(), &table()).map_err(|e| e.to_string())?;
    Ok((server, region))
}

fn recover(after: MemVolume, promises: &Promises, what: &str) {
    let (server, region) = open(after.clone(), START + 1_000_000, 9).unwrap_or_else(|e| panic!("{what}: {e}"));
    let seen = state_of(&region);
    if seen != promises.acked {
        assert_eq!(Some(&seen), promises.under_way.as_ref(), "{what}: acknowledged: {:#?}", promises.acked);
    }
    // What was left half done goes; what is used stays.
    flush(&region);
    major_compact(&region);
    region.archive_compacted_files().unwrap_or_else(|e| panic!("{what}: {e}"));
    server.clock.advance_ms(10);
    clean_mob_files(&server.env, region.table(), std::slice::from_ref(&region), 1)
        .unwrap_or_else(|e| panic!("{what}: {e}"));
    assert!(mob_files(&after).len() <= 1, "{what}: {:?}", mob_files(&after));
    region.close(CloseMode::Flush).unwrap_or_else(|e| panic!("{what}: {e}"));
    let region = server.open(&whole_table(), &table()).unwrap_or_else(|e| panic!("{what}: {e}"));
    assert_eq!(state_of(&region), seen, "{what}: after the second opening");
}

#[test]
fn a_power_failure_at_any_call_loses_no_large_value() {
    let policies = [CrashPolicy::LoseUnsynced, CrashPolicy::KeepAll, CrashPolicy::Torn, CrashPolicy::TornWithHoles];
    let (first, count) = programs(1);
    for seed in first..first + count {
        for stop in 0.. {
            let volume = MemVolume::new();
            volume.stop_after(stop);
            let mut promises = Promises::default();
            let mut done = false;
            if let Ok((server, region)) = open(volume.clone(), START, seed) {
                done = live(&server, &region, seed, &mut promises).is_ok();
            }
            let policy = policies[(stop % 4) as usize];
            let what = format!("BASALT_TEST_SEED={seed}, stopped after call {stop}, {policy:?}");
            recover(volume.crash(&Rng::seeded(stop), policy), &promises, &what);
            if done {
                assert!(stop > 200, "a life of {stop} calls is not worth stopping");
                break;
            }
        }
    }
}

#[test]
fn a_call_that_fails_once_loses_no_large_value() {
    let seed = 3;
    for nth in (1..600).step_by(2) {
        let volume = MemVolume::new();
        let kind = if nth % 4 == 1 { FaultKind::Io } else { FaultKind::Full };
        let mut promises = Promises::default();
        let Ok((server, region)) = open(volume.clone(), START, seed) else { panic!("no fault yet") };
        volume.fail_op(nth, kind);
        let done = live(&server, &region, seed, &mut promises).is_ok();
        drop((server, region));
        let what = format!("call {nth} fails with {kind:?}");
        recover(volume.crash(&Rng::seeded(nth), CrashPolicy::LoseUnsynced), &promises, &what);
        if done && nth > 400 {
            return;
        }
    }
}
