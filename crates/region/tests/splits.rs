//! What the daughters of a split have of their parent's files.

use crate::common::*;
use basalt_region::{CloseMode, split};
use bytes::Bytes;
use cell::CellType;
use model::{RegionInfo, Scan};

const NOW: i64 = 1_700_000_000_000;

/// A region of the parent's rows from `start` to `end`, made so many milliseconds after it.
fn daughter(parent: &RegionInfo, start: &'static str, end: &'static str, after_ms: u64) -> RegionInfo {
    RegionInfo::new(table_name(), Bytes::from(start), Bytes::from(end), parent.region_id + after_ms)
}

/// The halves of a split parent count by half, links as what they lead to. Follows: `HRegion#getHDFSBlocksDistribution`,
/// `StoreFileInfo#computeHDFSBlocksDistribution`.
#[test]
fn a_region_knows_on_which_machines_its_files_are() {
    let server = Server::new(NOW);
    let region = server.table([family("f")]);
    assert_eq!(region.stats().block_hosts.total_bytes(), 0);
    server.volume.place_blocks("data/", &[("near", true), ("far", false)]);
    write(&region, &[put("r1", "f", "q", 5, "low"), put("r9", "f", "q", 5, "high")]);
    flush(&region);
    let (hosts, bytes) = (region.stats().block_hosts, region.stats().files_bytes);
    assert!(bytes > 0);
    assert_eq!(hosts.total_bytes(), bytes, "once, however many copies there are");
    assert_eq!((hosts.on("near").bytes, hosts.on("near").ssd_bytes), (bytes, bytes));
    assert_eq!((hosts.on("far").bytes, hosts.on("far").ssd_bytes), (bytes, 0));
    assert_eq!(server.volume.block_questions(), 0, "it is known when a file is open");

    region.close(CloseMode::Flush).expect("closed");
    let (parent, table) = (region.info().clone(), region.table().clone());
    let half = |start, end, id| daughter(&parent, start, end, id);
    let (low, high) = (half("", "r5", 1), half("r5", "", 1));
    split::write_daughters(&server.env, &parent, &table, [&low, &high]).expect("split");
    let of = |info: &RegionInfo| {
        let region = server.open(info, &table).expect("opened");
        let hosts = region.stats().block_hosts;
        region.close(CloseMode::Flush).expect("closed");
        hosts
    };
    assert_eq!((of(&low).on("near").bytes, of(&high).on("near").bytes), (bytes / 2, bytes - bytes / 2));
    // The names say the same to who has nothing open.
    for info in [&low, &high] {
        assert_eq!(rootdir::store_file::block_hosts(&*server.env.volume, info, b"f").expect("looked"), of(info));
    }
    server.volume.place_blocks("archive/", &[("old", false)]);
    rootdir::archive_region_dir(&*server.env.volume, &rootdir::region_dir(&parent)).expect("archived");
    assert_eq!((of(&low).on("old").bytes, of(&low).on("near").bytes), (bytes / 2, 0));
}

/// `HRegionFileSystem#splitStoreFile` links a file that is of one half alone: no compaction follows, and what a delete in it hides stays hidden.
#[test]
fn a_file_on_one_side_of_a_split_is_linked_and_its_deletes_go_on_hiding() {
    let server = Server::new(NOW);
    let region = server.table([family("f")]);
    write(&region, &[delete("r4", "f", "", 9, CellType::DeleteFamily)]);
    flush(&region);
    write(&region, &[put("r8", "f", "q", 5, "high")]);
    region.close(CloseMode::Flush).expect("closed");
    let (parent, table) = (region.info().clone(), region.table().clone());
    let half = |start, end, id| daughter(&parent, start, end, id);
    let (low, high) = (half("", "r5", 1), half("r5", "", 1));
    split::write_daughters(&server.env, &parent, &table, [&low, &high]).expect("split");
    let volume = &*server.env.volume;
    let files = |info: &RegionInfo| -> Vec<String> {
        let listed = volume.list(&rootdir::family_dir(info, b"f")).expect("listed");
        listed.into_iter().map(|entry| entry.name).collect()
    };
    for info in [&low, &high] {
        let names = files(info);
        assert!(names.len() == 1 && names[0].contains(&format!("={}-", parent.encoded_name())), "{names:?}");
        assert!(!split::has_references(volume, info, &table).expect("listed"), "the parent may go");
    }
    rootdir::archive_region_dir(volume, &rootdir::region_dir(&parent)).expect("archived");

    let region = server.open(&low, &table).expect("opened from the archive");
    assert!(!region.needs_compaction() && region.splitter().can_split());
    write(&region, &[put("r4", "f", "q", 5, "low")]);
    assert_eq!(scan(&region, &Scan::default(), 0), [[""; 0]; 0], "the delete hides what is written behind it");
    region.close(CloseMode::Flush).expect("closed");
    let back = |info: &RegionInfo| {
        let home = rootdir::archive_dir(&rootdir::family_dir(&parent, b"f"));
        let links = volume.list(&home).expect("listed").into_iter().filter(|entry| entry.name.starts_with(".links-"));
        let names = links.flat_map(|entry| volume.list(&home.join(&entry.name)).expect("listed"));
        names.filter(|entry| entry.name.starts_with(&**info.encoded_name())).count()
    };
    assert_eq!((back(&low), back(&high)), (1, 1), "the cleaner leaves the files alone");

    // A link's daughter links to the same file.
    let (lower, upper) = (half("", "r3", 2), half("r3", "r5", 2));
    split::write_daughters(&server.env, &low, &table, [&lower, &upper]).expect("split again");
    assert_eq!(files(&lower), [""; 0]);
    assert!(files(&upper).iter().any(|name| name.contains(&format!("={}-", parent.encoded_name()))));
    assert_eq!(back(&upper), 1);
    let region = server.open(&upper, &table).expect("opened");
    assert_eq!(scan(&region, &Scan::default(), 0), [[""; 0]; 0]);
    major_compact(&region);
    write(&region, &[put("r4", "f", "q", 5, "low")]);
    assert_eq!(scan(&region, &Scan::default(), 0), [["r4/f:q/5/Put=low"]]);
    let region = server.open(&high, &table).expect("opened");
    assert_eq!(scan(&region, &Scan::default(), 0), [["r8/f:q/5/Put=high"]]);
}
