//! Read replicas: a region that shows the store files of another, its primary, as they were when it last looked. Follows:
//! `HRegion#refreshStoreFiles`, `ServerRegionReplicaUtil`.
//!
//! A replica holds the very files that its primary has open, so the primary's compactions leave what it still shows where it is, and nothing is
//! opened or listed twice. It has no log and its memstore stays empty. Sequence ids are the primary's: what is visible moves to the primary's read
//! point before the files change, and readers of an older point are told that these files may lack versions of it (`StoreView::whole_from`).

use crate::core::RegionCore;
use std::sync::Arc;

/// Has `replica` show the files that `primary` has now; whether they are others than before.
pub(crate) fn refresh(replica: &RegionCore, primary: &RegionCore) -> bool {
    let _one_at_a_time = replica.flushing.lock();
    let files_of = |name| primary.store(name).map(|store| store.view().files.clone());
    let shown: Vec<_> =
        replica.stores.iter().filter_map(|store| files_of(&store.name).map(|files| (store, files))).collect();
    // In this order: all that the files hold is visible at the point.
    let point = primary.read_point();
    replica.sequencer.follow(point);
    let mut changed = false;
    for (store, files) in shown {
        if !Arc::ptr_eq(&files, &store.peek().files) {
            store.change(|view| {
                view.files = files;
                view.whole_from = view.whole_from.max(point);
            });
            changed = true;
        }
    }
    changed
}
