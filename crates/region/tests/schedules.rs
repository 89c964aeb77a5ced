//! Sequence ids and the read point under many schedules; see `base::sync`. Run by `cargo xtask schedules`.

use basalt_region::mvcc::Mvcc;
use base::sync::{Mutex, atomic::AtomicU64, atomic::Ordering::SeqCst, explore, thread};
use base::{ReadPoint, SeqId};
use std::sync::Arc;

/// What a region keeps beside its ids: which are in the memstores, and how far the log has synced.
struct Around {
    mvcc: Mvcc,
    /// Ids in the order of the log.
    appended: Mutex<Vec<SeqId>>,
    /// A bit for each id whose cells are in.
    inserted: AtomicU64,
    /// A bit for each id that is as safe as asked.
    safe: AtomicU64,
}

#[test]
fn the_read_point_passes_only_what_is_inserted_and_safe() {
    explore(|| {
        let around = Arc::new(Around {
            mvcc: Mvcc::new(SeqId(0)),
            appended: Mutex::new(Vec::new()),
            inserted: AtomicU64::new(0),
            safe: AtomicU64::new(0),
        });
        let writers: Vec<_> = (0..3_u64)
            .map(|writer| {
                let around = around.clone();
                thread::spawn(move || {
                    for round in 0..2 {
                        write(&around, (writer + round) % 3);
                    }
                })
            })
            .collect();
        let mut last = ReadPoint(0);
        for _ in 0..4 {
            let now = around.mvcc.read_point();
            assert!(now >= last, "it went back");
            let visible = (1_u64 << now.0) - 1;
            let (inserted, safe) = (around.inserted.load(SeqCst), around.safe.load(SeqCst));
            assert_eq!(visible & !inserted, 0, "visible before it was inserted");
            assert_eq!(visible & !safe, 0, "visible before it was safe");
            last = now;
        }
        writers.into_iter().for_each(|writer| writer.join().expect("a writer"));
        assert_eq!(around.mvcc.read_point(), ReadPoint(6));
        assert_eq!(around.mvcc.last_seq_id(), SeqId(6));
    });
}

/// One write: synced and waited for, as safe as it is at once, or only a marker.
fn write(around: &Around, kind: u64) {
    let bit = |id: SeqId| 1_u64 << (id.0 - 1);
    let id = {
        let mut appended = around.appended.lock();
        let id = around.mvcc.begin();
        appended.push(id);
        id
    };
    if kind == 2 {
        around.inserted.fetch_or(bit(id), SeqCst);
        around.safe.fetch_or(bit(id), SeqCst);
        around.mvcc.skip(id);
        return;
    }
    around.inserted.fetch_or(bit(id), SeqCst);
    around.mvcc.inserted(id);
    if kind == 0 {
        // A sync takes everything before along.
        let synced: u64 = around.appended.lock().iter().filter(|other| **other <= id).map(|other| bit(*other)).sum();
        around.safe.fetch_or(synced, SeqCst);
        around.mvcc.complete(id, true);
        assert!(around.mvcc.read_point().0 >= id.0, "answered before it is visible");
    } else {
        around.safe.fetch_or(bit(id), SeqCst);
        around.mvcc.complete(id, false);
    }
}
