//! Directories that HBase 2.6.4 wrote: a copy of a running cluster's root with edits in unclosed logs, and the root after
//! HBase itself recovered from a hard kill at that time and stopped. Every region of both opens, and what Basalt makes
//! of the first is what HBase made of it.

use crate::common::*;
use basalt_region::CloseMode;
use base::Config;
use fs::MemVolume;
use model::Scan;
use rootdir::descriptor;
use std::collections::BTreeMap;
use std::sync::Arc;

type Cells = BTreeMap<String, Vec<String>>;

/// Opens every region and reads everything; by table and region.
fn read_all(archive: &[u8]) -> (MemVolume, Cells) {
    let volume = tar::unpack(archive);
    // Archived regions live on in daughters and clones; their logs are split by the server below.
    let server = Server::try_on(volume.clone(), 1_900_000_000_000, &Config::default(), 1).expect("the logs are split");
    let mut all = Cells::new();
    for table in descriptor::list_tables(&volume).expect("memory") {
        let Some(descriptor) = descriptor::read(&volume, &table).expect("a descriptor").map(Arc::new) else { continue };
        for region in rootdir::region_names(&volume, &rootdir::table_dir(&table)).expect("memory") {
            let dir = rootdir::table_dir(&table).join(&region);
            let info = rootdir::read_region_info(&volume, &dir).expect("memory").expect("a region");
            let region = server.open(&info, &descriptor).unwrap_or_else(|error| panic!("{dir}: {error}"));
            let scan = Scan { max_versions: i32::MAX as u32, ..Scan::default() };
            let cells = crate::common::scan(&region, &scan, 0).concat();
            let reversed = crate::common::scan(&region, &Scan { reversed: true, ..scan.clone() }, 0);
            let mut reversed: Vec<_> = reversed.into_iter().rev().collect::<Vec<_>>().concat();
            reversed.sort();
            let mut sorted = cells.clone();
            sorted.sort();
            assert_eq!(sorted, reversed, "{dir}: forwards and reversed scans differ");
            // What is rewritten by Basalt reads the same.
            if !region.splitter().has_references() {
                major_compact(&region);
                assert_eq!(crate::common::scan(&region, &scan, 0).concat(), cells, "{dir}: after a major compaction");
            }
            region.close(CloseMode::Flush).expect("closed");
            let before = all.insert(format!("{table} {}", info.encoded_name()), cells);
            assert!(before.is_none());
        }
    }

    (volume, all)
}

#[test]
fn what_hbase_left_is_read_as_hbase_reads_it() {
    let live = include_bytes!("../../../tests/golden/rootdir/live-unclosed-wal.tar.gz");
    let recovered = include_bytes!("../../../tests/golden/rootdir/after-recovery-clean-stop.tar.gz");
    let ((_, live), (_, recovered)) = (read_all(live), read_all(recovered));
    let user = |name: &&String| !name.starts_with("hbase:");
    let (mut regions, mut cells) = (0, 0);
    for name in live.keys().filter(user) {
        let Some(theirs) = recovered.get(name) else {
            eprintln!("{name} is gone in the recovered root");
            continue;
        };
        assert_eq!(&live[name], theirs, "{name}");
        regions += 1;
        cells += theirs.len();
    }
    // Large values are the values, not what stands for them in the store file.
    let large: Vec<&String> =
        recovered.iter().filter(|(name, _)| name.starts_with("mobt ")).flat_map(|(_, c)| c).collect();
    assert!(large.iter().any(|cell| cell.len() > 200), "{large:?}");
    assert!(!large.iter().any(|cell| cell.contains("d41d8cd98f00b204e9800998ecf8427e")), "{large:?}");
    assert!(regions > 10 && cells > 1000, "{regions} regions with {cells} cells are too few to tell");
}
