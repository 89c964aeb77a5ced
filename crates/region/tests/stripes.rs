//! Stores that keep their files by ranges of rows: `hbase.hstore.engine.class` = `StripeStoreEngine`.

use crate::common::*;
use basalt_region::{CloseMode, CompactionKind, FlushRequest, Region, Unthrottled};
use base::{Config, Rng};
use cell::CellType;
use fs::{CrashPolicy, FilePath, MemVolume, Volume};
use hfile::{Reader, ReaderContext};
use model::{FamilyDescriptor, Get, Scan, TableDescriptor};
use std::sync::Arc;

const NOW: i64 = 1_700_000_000_000;

fn server() -> Server {
    let mut config = Config::default();
    config.set("hbase.hregion.majorcompaction", "0");
    Server::try_on(MemVolume::new(), NOW, &config, 1).expect("an empty volume")
}

/// A family in stripes, three from the first flush on.
fn striped(more: &[(&'static str, &str)]) -> FamilyDescriptor {
    let class = "org.apache.hadoop.hbase.regionserver.StripeStoreEngine";
    let mut striped = family("f").with("hbase.hstore.engine.class", class).with("VERSIONS", "9");
    for (key, value) in [("initialStripeCount", "3")].iter().chain(more) {
        striped.configuration.insert(format!("hbase.store.stripe.{key}"), (*value).to_owned());
    }
    striped
}

fn write_rows(region: &Region, rows: impl IntoIterator<Item = usize>, timestamp: i64) {
    for row in rows {
        write(region, &[put(&format!("r{row:02}"), "f", "q", timestamp, &format!("v{row}"))]);
    }
}

/// What each file says that it is for, as `start-end:cells`, sorted; `?` for a file that does not say.
fn layout(volume: &dyn Volume, region: &Region) -> Vec<String> {
    let shown = |path: &String| {
        let file = Reader::open(volume, &FilePath::new(path), ReaderContext::default()).expect("a store file");
        let text = |row: &[u8]| String::from_utf8_lossy(row).into_owned();
        let rows = file.stripe().map_or("?".into(), |(start, end)| format!("{}-{}", text(start), text(end)));
        format!("{rows}:{}", file.entry_count())
    };
    let mut files: Vec<String> = region.store_file_paths(b"f").expect("a family").iter().map(shown).collect();
    files.sort();
    files
}

fn all(region: &Arc<Region>) -> Vec<Vec<String>> {
    scan(region, &Scan { max_versions: 9, ..Scan::default() }, 0)
}

fn compact(region: &Arc<Region>) -> usize {
    let mut done = 0;
    while region.needs_compaction() {
        let job = region.select_compaction(Some(b"f"), CompactionKind::Minor).expect("open");
        let job = job.expect("what is asked for is chosen");
        assert!(!job.is_major(), "a store in stripes has none");
        assert!(region.compact(job, &Unthrottled).expect("compacted").completed);
        done += 1;
    }
    assert!(region.select_compaction(Some(b"f"), CompactionKind::Minor).expect("open").is_none());
    done
}

fn reopen(server: &Server, region: &Arc<Region>, families: impl IntoIterator<Item = FamilyDescriptor>) -> Arc<Region> {
    let info = region.info().clone();
    region.close(CloseMode::Flush).expect("closed");
    server.open(&info, &Arc::new(TableDescriptor::new(table_name(), families))).expect("opened")
}

#[test]
fn flushes_make_a_file_for_each_stripe_that_has_something() {
    let server = server();
    let region = server.table([striped(&[])]);
    write_rows(&region, 0..30, 1);
    flush(&region);
    assert_eq!(layout(&server.volume, &region), ["-r10:10", "r10-r20:10", "r20-:10"]);
    write_rows(&region, [3, 25], 2);
    flush(&region);
    assert_eq!(layout(&server.volume, &region), ["-r10:1", "-r10:10", "r10-r20:10", "r20-:1", "r20-:10"]);
    let before = all(&region);
    assert_eq!(before.concat().len(), 32);
    let region = reopen(&server, &region, [striped(&[])]);
    assert_eq!(all(&region), before);
    write_rows(&region, [12], 3);
    flush(&region);
    assert_eq!(layout(&server.volume, &region).len(), 6, "the stripes are as they were");
    assert_eq!(get(&region, &Get::new("r12"), 0), ["r12/f:q/3/Put=v12"]);
}

#[test]
fn a_stripe_is_compacted_without_the_others_and_its_delete_markers_go() {
    let server = server();
    let region = server.table([striped(&[("compaction.minFiles", "2")])]);
    write_rows(&region, 0..30, 1);
    flush(&region);
    write(&region, &[delete("r12", "f", "q", 1, CellType::DeleteColumn), put("r13", "f", "q", 2, "w")]);
    flush(&region);
    let others: Vec<String> = region.store_file_paths(b"f").expect("a family");
    let before = scan(&region, &Scan::default(), 0);
    assert_eq!(compact(&region), 1);
    assert_eq!(
        layout(&server.volume, &region),
        ["-r10:10", "r10-r20:10", "r20-:10"],
        "11 cells, of them 2 hidden and a marker"
    );
    let after = region.store_file_paths(b"f").expect("a family");
    assert_eq!(after.iter().filter(|path| others.contains(path)).count(), 2, "two were not touched");
    assert_eq!(scan(&region, &Scan::default(), 0), before);
    // Asked for or not, there is no compaction of everything.
    region.request_major_compaction(None).expect("a family");
    assert!(region.select_compaction(None, CompactionKind::Major).expect("open").is_none());
    assert!(!region.needs_compaction());
}

#[test]
fn a_large_stripe_is_divided_and_one_past_its_time_goes() {
    let server = server();
    let of = [("initialStripeCount", "1"), ("compaction.minFiles", "2"), ("sizeToSplit", "10000")];
    let region = server.table([striped(&of).with("TTL", "100").with("BLOOMFILTER", "NONE")]);
    for round in 0..2 {
        write_rows(&region, 0..40, NOW + round);
        flush(&region);
    }
    assert_eq!(layout(&server.volume, &region), ["-:40", "-:40"]);
    assert_eq!(compact(&region), 1);
    let divided = layout(&server.volume, &region);
    assert_eq!(divided, ["-r20:40", "r20-:40"], "80 cells in two parts");
    let before = all(&region);
    let region = reopen(&server, &region, [striped(&of).with("TTL", "100").with("BLOOMFILTER", "NONE")]);
    assert_eq!(all(&region), before);
    // Of the lower half only new cells are left to live.
    server.clock.advance_ms(200_000);
    write_rows(&region, 20..22, NOW + 200_000);
    flush(&region);
    compact(&region);
    assert_eq!(all(&region).concat().len(), 2);
    assert_eq!(layout(&server.volume, &region), ["-:2"], "it became one with its neighbour");
}

/// HBase's rule: what says nothing of stripes is at level 0, and what says it is read by any store.
#[test]
fn a_change_of_the_engine_and_back_loses_nothing() {
    let server = server();
    let plain = || family("f").with("VERSIONS", "9");
    let region = server.table([plain()]);
    for round in 1..4 {
        write_rows(&region, (0..30).step_by(round), round as i64);
        flush(&region);
    }
    let before = all(&region);
    assert_eq!(before.concat().len(), 30 + 15 + 10);
    let region = reopen(&server, &region, [striped(&[])]);
    assert_eq!(
        (all(&region), layout(&server.volume, &region)),
        (before.clone(), ["?:10", "?:15", "?:30"].map(String::from).to_vec())
    );
    write_rows(&region, 0..1, 9);
    flush(&region);
    assert_eq!(layout(&server.volume, &region), ["-:1", "?:10", "?:15", "?:30"], "a first stripe of what was flushed");
    write_rows(&region, 0..1, 10);
    let region = reopen(&server, &region, [striped(&[("compaction.minFilesL0", "3")])]);
    let before = all(&region);
    compact(&region);
    assert_eq!(layout(&server.volume, &region), ["-:1", "-:1", "-:55"], "of level 0 alone");
    assert_eq!(all(&region), before);
    let region = reopen(&server, &region, [plain()]);
    assert_eq!(all(&region), before);
    major_compact(&region);
    assert_eq!((all(&region), layout(&server.volume, &region)), (before, vec!["?:57".into()]));
}

#[test]
fn flushes_to_level_0_are_divided_by_a_compaction() {
    let server = server();
    let region = server.table([striped(&[("compaction.flushToL0", "true"), ("compaction.minFilesL0", "2")])]);
    for round in 1..3 {
        write_rows(&region, 0..30, round);
        flush(&region);
        if round == 1 {
            assert_eq!(layout(&server.volume, &region), ["?:30"]);
        }
    }
    assert_eq!(compact(&region), 1);
    assert_eq!(layout(&server.volume, &region), ["-r10:20", "r10-r20:20", "r20-:20"]);
}

/// Between the files of one flush the power fails: the first of them say that they are flushed up to where the others would have been.
#[test]
fn a_flush_cut_off_between_its_files_loses_nothing() {
    let flushing = |volume: &MemVolume, stop: Option<u64>| {
        let server = Server::try_on(volume.clone(), NOW, &Config::default(), 1).expect("a volume");
        let region = server.table([striped(&[])]);
        write_rows(&region, 0..30, 1);
        let before = volume.op_count();
        if let Some(stop) = stop {
            volume.stop_after(stop);
        }
        let _ = region.flush(&FlushRequest { all: true, ..FlushRequest::default() });
        volume.op_count() - before
    };
    let calls = flushing(&MemVolume::new(), None);
    let mut parts_found = 0;
    for stop in 0..calls {
        let volume = MemVolume::new();
        flushing(&volume, Some(stop));
        let after = volume.crash(&Rng::seeded(stop), CrashPolicy::KeepAll);
        let dir = rootdir::family_dir(&whole_table(), b"f");
        let in_place = after.list(&dir).map_or(0, |files| files.len());
        parts_found += usize::from(in_place == 1 || in_place == 2);
        let server = Server::try_on(after, NOW + 1000, &Config::default(), 2).expect("the log is split");
        let region = server.table([striped(&[])]);
        assert_eq!(all(&region).concat().len(), 30, "stopped after call {stop} of {calls}");
        let left = region.store_file_paths(b"f").expect("a family");
        assert!([0, 3].contains(&left.len()), "stopped after call {stop}: {left:?}");
    }
    assert!(parts_found > 2, "{parts_found} of {calls} stops were between the files");
}

#[test]
fn a_region_is_split_between_two_stripes() {
    let server = server();
    let region = server.table([striped(&[("initialStripeCount", "2")])]);
    write_rows(&region, 0..30, 1);
    flush(&region);
    let row = region.splitter().split_point().expect("readable").expect("it can be split");
    assert_eq!(&row[..], b"r15");
    let table = region.table().clone();
    let parent = region.info().clone();
    region.close(CloseMode::Flush).expect("closed");
    let daughters = [(bytes::Bytes::new(), row.clone()), (row, bytes::Bytes::new())]
        .map(|(start, end)| model::RegionInfo::new(table_name(), start, end, parent.region_id + 1));
    basalt_region::split::write_daughters(&server.env, &parent, &table, [&daughters[0], &daughters[1]]).expect("split");
    for daughter in &daughters {
        let region = server.open(daughter, &table).expect("opened");
        assert_eq!((region.stats().files, all(&region).len()), (1, 15), "no file is of both");
        compact(&region);
        assert!(!region.splitter().has_references());
        assert_eq!(all(&region).len(), 15);
    }
}

/// `tests/golden/rootdir/stripes.tar.gz`: a table in three stripes, flushed into them twice, then once with
/// `hbase.store.stripe.compaction.flushToL0`; with what HBase 2.6.4 wrote, and read of it.
#[test]
fn stripes_that_hbase_wrote_are_read_and_kept() {
    let volume = tar::unpack(include_bytes!("../../../tests/golden/rootdir/stripes.tar.gz"));
    let server = Server::try_on(volume.clone(), NOW, &Config::default(), 1).expect("no logs");
    let name = model::TableName::parse("stripes").expect("legal");
    let table = Arc::new(rootdir::descriptor::read(&volume, &name).expect("readable").expect("a descriptor"));
    let encoded = rootdir::region_names(&volume, &rootdir::table_dir(&name)).expect("memory");
    let dir = rootdir::table_dir(&name).join(&encoded[0]);
    let info = rootdir::read_region_info(&volume, &dir).expect("memory").expect("a region");
    let region = server.open(&info, &table).expect("opened");
    let theirs = ["-r09:4", "-r09:9", "?:5", "r09-r19:10", "r09-r19:2", "r19-:11", "r19-:3"];
    assert_eq!(layout(&volume, &region), theirs);
    let mut expected = Vec::new();
    for at in (0..30usize).filter(|at| *at != 5) {
        for (word, thousands, step) in [("third", 3000, 7), ("second", 2000, 4), ("first", 1000, 1)] {
            if at % step == 0 {
                expected.push(format!("r{at:02}/f:q/{}/Put={word} {at:02}", thousands + at));
            }
        }
    }
    assert_eq!(all(&region).concat(), expected, "as HBase's own scan showed it");

    // What is flushed and compacted from now on keeps to their stripes. The table says that flushes go to level 0.
    for (timestamp, files) in [(4000, 8), (5000, 9), (6000, 10)] {
        write_rows(&region, 0..30, timestamp);
        flush(&region);
        assert_eq!(layout(&volume, &region).len(), files);
    }
    let before = all(&region);
    assert_eq!(compact(&region), 4, "of level 0, which has four files, then of each stripe, which has three");
    assert_eq!(layout(&volume, &region), ["-r09:27", "r09-r19:30", "r19-:33"]);
    assert_eq!(all(&region), before);
}
