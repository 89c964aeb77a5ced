//! What a start finds in the logs of several servers that were killed.

use basalt_assembly::{Recovery, recover_logs};
use base::{ManualClock, SeqId, TimestampMs};
use cell::{CellBuffer, CellSpec, CellType};
use fs::{FilePath, MemVolume, Volume};
use std::sync::Arc;
use wal::{EntryKey, Log, LogOptions};

fn region_dir(region: &str) -> FilePath {
    FilePath::new("data/default/t").join(region)
}

/// Leaves a log with edits of the region, each of a hundred bytes and more.
fn killed(volume: &MemVolume, server: &str, region: &str, ids: std::ops::Range<u64>) {
    volume.create_dir_all(&region_dir(region)).expect("a directory");
    let clock = Arc::new(ManualClock::new(1_700_000_000_000));
    let dir = rootdir::wals_dir().join(server);
    let log = Log::create(Arc::new(volume.clone()), dir, server, LogOptions::default(), clock).expect("a log");
    for id in ids {
        let mut cells = CellBuffer::new();
        let spec = CellSpec {
            row: b"row",
            family: b"f",
            qualifier: b"q",
            timestamp: 1,
            type_code: CellType::Put.code(),
            value: &[7; 100],
            tags: b"",
        };
        cells.push_spec(&spec, SeqId(0));
        let region = Arc::from(region);
        let key = EntryKey::new(&region, "t", SeqId(id), TimestampMs(5), &[b"f"]);
        log.append(&key, cells.bytes(), 1).expect("append").wait().expect("synced");
    }
}

/// One server's logs do not fit into memory and go to files; the memory that they took in vain is there for the next one's.
#[test]
fn logs_that_do_not_fit_leave_their_room_to_the_next() {
    let volume = MemVolume::new();
    killed(&volume, "first,1,1", "large", 1..100);
    killed(&volume, "second,1,2", "small", 1..20);
    let one_by_one = |count, work: &(dyn Fn(usize) + Sync)| (0..count).for_each(work);
    let recovery =
        Recovery { worker: "new,1,3", hold_bytes: 10_000, nonces_since: base::TimestampMs(0), for_each: &one_by_one };
    let recovered = recover_logs(&volume, &recovery).expect("recovers");
    assert_eq!((recovered.others.files(), recovered.others.edits()), (1, 19));
    let in_files =
        |region| wal::recovered_edits(&volume, &region_dir(region).join("recovered.edits")).expect("listed").len();
    assert_eq!((in_files("large"), in_files("small")), (1, 0));
    assert!(!volume.exists(&FilePath::new("WALs/first,1,1")).expect("memory"), "its logs are in the archive");
}
