//! The step lists whose every stop is visited: what comes before each, and the steps. See [`crate::enumerate`].
//!
//! What comes later (snapshots) finds its place here: a name in [`List`], what must be there before, the steps, and what they
//! promise.

use crate::calls;
use crate::check;
use crate::disks::Named;
use crate::loads::Load;
use crate::promises::{Outcome, Write};
use crate::work::{self, Desk};
use bytes::Bytes;
use cell::CellType;
use master::Caller;
use model::{Durability, FamilyDescriptor, Mutation, MutationKind, TableDescriptor};
use std::collections::BTreeSet;
use std::fmt;

/// A list of steps with a beginning and an end.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[allow(missing_docs, reason = "they are named after what is done")]
pub enum List {
    Append,
    Roll,
    Flush,
    FlushOneFamily,
    MinorCompaction,
    MajorCompaction,
    /// A flush that writes long values to a MOB file.
    MobFlush,
    /// A compaction of such stores, and the archiving of what nothing refers to any more.
    MobCompaction,
    /// Two families' files in one call.
    BulkLoad,
    Split,
    Merge,
    Janitor,
    Create,
    /// The main table is opened anew under another descriptor, with cells in its memstores.
    Alter,
    AddFamily,
    DeleteFamily,
    Disable,
    Enable,
    Truncate,
    Delete,
    /// A start after a kill: logs are read, regions take their edits from memory; then they flush, and the logs go to the archive.
    Recovery,
    /// The same with logs that are split into files, which regions replay and flush while they open.
    RecoveryByFiles,
    /// A start on nothing.
    FirstStart,
    CleanStop,
    /// A volume is added to one that has files, that one is emptied and taken out, while files are written.
    Volumes,
}

impl List {
    /// Every list.
    pub const ALL: [List; 25] = [
        List::Append,
        List::Roll,
        List::Flush,
        List::FlushOneFamily,
        List::MinorCompaction,
        List::MajorCompaction,
        List::MobFlush,
        List::MobCompaction,
        List::BulkLoad,
        List::Split,
        List::Merge,
        List::Janitor,
        List::Create,
        List::Alter,
        List::AddFamily,
        List::DeleteFamily,
        List::Disable,
        List::Enable,
        List::Truncate,
        List::Delete,
        List::Recovery,
        List::RecoveryByFiles,
        List::FirstStart,
        List::CleanStop,
        List::Volumes,
    ];

    /// How the disks beside the root directory's are named when the steps begin, for steps that are about them.
    pub fn disks(self) -> Option<[Named; 3]> {
        (self == List::Volumes).then_some([Named::In, Named::Out, Named::Out])
    }

    /// Whether the steps are the start itself.
    pub fn is_start(self) -> bool {
        matches!(self, List::Recovery | List::RecoveryByFiles | List::FirstStart)
    }
}

impl fmt::Display for List {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self, f)
    }
}

/// Writes `count` journal rows, alternating clients, each synced before the next; notes the promises. Stops at the first that
/// is not acknowledged.
pub async fn write(desk: &Desk, count: u64) {
    for at in 0..count {
        let row = format!("{:02}-journal9{}", (at * 37 + 11) % 100, at % 7);
        let number = {
            let mut promises = desk.promises.lock();
            let track = promises.sent(Durability::UseDefault);
            let writes = promises.journal.entry(row.clone()).or_default();
            let number = writes.iter().map(|w| w.number).max().unwrap_or(0) + 1;
            writes.push(Write { number, deletes: at % 5 == 4, outcome: Outcome::Open, track });
            number
        };
        let mutation = journal_write(&row, number, at % 5 == 4);
        let life = desk.life.clone();
        let sent = tokio::spawn(async move { calls::mutate(&life, &work::table(), &mutation).await });
        desk.life.settle().await;
        let _told_to_who_waits = desk.life.logs[0].sync_once();
        let acked = matches!(sent.await, Ok(Ok(_)));
        let mut promises = desk.promises.lock();
        let tick = promises.tick();
        let write = promises.journal.get_mut(&row).and_then(|writes| writes.last_mut());
        if let Some(write) = write {
            write.outcome = if acked { Outcome::Acked } else { Outcome::Maybe };
            if acked {
                write.track.ack(tick);
            }
        }
        if !acked {
            return;
        }
    }
}

/// The mutation of a journal row.
pub fn journal_write(row: &str, number: i64, deletes: bool) -> Mutation {
    let value = crate::promises::value_of(row, number);
    if deletes {
        let cells =
            [("f", "", number, CellType::DeleteFamily, &b""[..]), ("g", "", number, CellType::DeleteFamily, b"")];
        return calls::mutation(MutationKind::Delete, row, &cells);
    }
    let cells = [("f", "v", number, CellType::Put, &value[..]), ("g", "v", number, CellType::Put, &value[..])];
    calls::mutation(MutationKind::Put, row, &cells)
}

/// Flushes every region of the main table; errors are the machine's end.
pub fn flush(desk: &Desk, families: &[&'static str]) {
    for region in regions(desk) {
        let families = families.iter().map(|name| Bytes::from(*name)).collect();
        let _ended = desk.life.server.flush_region(&region, families);
    }
}

/// Encoded names of the main table's regions, in order.
pub fn regions(desk: &Desk) -> Vec<String> {
    let cluster = desk.life.master.cluster();
    let live = cluster.regions_of(&work::table()).filter(|node| node.is_live());
    live.map(|node| node.info.encoded_name().to_string()).collect()
}

/// Compacts every region of the main table.
pub fn compact(desk: &Desk, major: bool) {
    for region in regions(desk) {
        let _ended = desk.life.server.request_compaction(&region, None, major);
    }
    while desk.life.server.step_compaction() {}
}

async fn done(desk: &Desk, submitted: master::Result<u64>) -> bool {
    match submitted {
        Ok(id) => desk.life.master.wait_for(id).await.is_ok(),
        Err(_) => false,
    }
}

async fn split(desk: &Desk) -> bool {
    let Some(region) = regions(desk).into_iter().next_back() else { return false };
    done(desk, desk.life.master.split_region(&region, Some(Bytes::from("71")), &Caller::default()).await).await
}

type Shape = Option<(bool, BTreeSet<String>)>;

fn shape(enabled: bool, families: &[&str]) -> Shape {
    Some((enabled, families.iter().map(|family| (*family).to_owned()).collect()))
}

/// A change of the changing table from its one known shape to `after`.
async fn change(desk: &Desk, after: Shape, empties: bool, submitted: impl Future<Output = master::Result<u64>>) {
    {
        let changing = &mut desk.promises.lock().changing;
        let before = changing.shapes.first().cloned().flatten();
        changing.shapes = vec![before, after.clone()];
        if empties {
            let rows = std::mem::take(&mut changing.rows);
            changing.perhaps.extend(rows);
        }
    }
    if done(desk, submitted.await).await {
        let changing = &mut desk.promises.lock().changing;
        changing.shapes = vec![after];
        if empties {
            changing.rows.clear();
            changing.perhaps.clear();
        }
    }
}

async fn create(desk: &Desk) {
    let table = TableDescriptor::new(work::changing(), ["a", "b"].map(FamilyDescriptor::new));
    let keys = [Bytes::from("k")];
    change(desk, shape(true, &["a", "b"]), false, desk.life.master.create_table(table, &keys, &Caller::default()))
        .await;
}

/// Adds the family that tells in its cells which one of its name they were written to.
async fn add_c(desk: &Desk) {
    desk.promises.lock().changing.added += 1;
    let (name, family, caller) = (work::changing(), FamilyDescriptor::new("c"), Caller::default());
    change(desk, shape(true, &["a", "b", "c"]), false, desk.life.master.add_family(&name, family, &caller)).await;
}

async fn delete_c(desk: &Desk) {
    let (name, family, caller) = (work::changing(), Bytes::from("c"), Caller::default());
    change(desk, shape(true, &["a", "b"]), false, desk.life.master.delete_family(&name, &family, &caller)).await;
}

/// Puts rows into the changing table.
async fn put_rows(desk: &Desk, rows: [&str; 3]) {
    let (has_c, added) = {
        let changing = &mut desk.promises.lock().changing;
        changing.perhaps.extend(rows.map(str::to_owned));
        let has_c = changing.shapes.iter().flatten().any(|(_, families)| families.contains("c"));
        (has_c, changing.added.to_string())
    };
    let put = |row: &str| {
        let cells = [("a", "q", 1, CellType::Put, row.as_bytes()), ("c", "q", 1, CellType::Put, added.as_bytes())];
        calls::mutation(MutationKind::Put, row, &cells[..if has_c { 2 } else { 1 }])
    };
    let (life, puts) = (desk.life.clone(), rows.map(put));
    let sent = tokio::spawn(async move { calls::batch(&life, &work::changing(), &puts).await });
    desk.life.settle().await;
    desk.life.quiet().await;
    let results = sent.await.unwrap_or_default();
    assert!(!results.is_empty() && results.iter().all(Result::is_ok), "no fault is set yet: {results:?}");
    desk.promises.lock().changing.rows.extend(rows.map(str::to_owned));
}

async fn fill(desk: &Desk) {
    put_rows(desk, ["d", "m", "x"]).await;
    let regions: Vec<String> = {
        let cluster = desk.life.master.cluster();
        cluster.regions_of(&work::changing()).map(|node| node.info.encoded_name().to_string()).collect()
    };
    for region in regions {
        desk.life.server.flush_region(&region, Vec::new()).expect("no fault is set yet");
    }
}

async fn disable(desk: &Desk) {
    let after = shape(false, &["a", "b"]);
    change(desk, after, false, desk.life.master.disable_table(&work::changing(), &Caller::default())).await;
}

/// Gives the main table's first family another encoding, or has it keep long values in MOB files.
async fn alter(desk: &Desk, mob: bool) {
    let family = FamilyDescriptor::new("f").with("VERSIONS", "1");
    let family = match mob {
        true => work::of_mob(family),
        false => {
            let family = family.with("DATA_BLOCK_ENCODING", "FAST_DIFF").with("BLOCKSIZE", "300");
            work::keeping_mob(&desk.life, family)
        }
    };
    done(desk, desk.life.master.modify_family(&work::table(), family, &Caller::default()).await).await;
}

/// Archives the MOB files of the main table that nothing refers to.
pub fn clean_mob_files(desk: &Desk) {
    let server = &desk.life.server;
    let mut open: Vec<_> = regions(desk).iter().filter_map(|name| server.region(name)).collect();
    open.sort_by(|a, b| a.info().name().cmp(b.info().name()));
    if let Some(first) = open.first() {
        let _ended = region::clean_mob_files(server.env(), first.table(), &open, 0);
    }
}

/// What must be there before `list` begins. Without faults.
pub async fn before(list: List, desk: &Desk) {
    write(desk, 12).await;
    match list {
        List::Append | List::Create | List::Alter | List::BulkLoad => {}
        List::MobFlush => alter(desk, true).await,
        List::MobCompaction => {
            alter(desk, true).await;
            for _ in 0..3 {
                flush(desk, &[]);
                write(desk, 5).await;
            }
        }
        List::Flush | List::FlushOneFamily | List::Roll => {
            flush(desk, &["f"]);
            write(desk, 3).await;
        }
        List::MinorCompaction | List::MajorCompaction | List::Volumes => {
            for _ in 0..3 {
                flush(desk, &[]);
                write(desk, 4).await;
            }
        }
        List::Split => flush(desk, &[]),
        List::Merge | List::Janitor => {
            flush(desk, &[]);
            assert!(split(desk).await, "a region that is large enough is split");
            write(desk, 4).await;
            if list == List::Janitor {
                compact(desk, true);
            }
        }
        List::AddFamily | List::DeleteFamily | List::Disable => {
            create(desk).await;
            fill(desk).await;
        }
        List::Enable | List::Truncate | List::Delete => {
            create(desk).await;
            fill(desk).await;
            disable(desk).await;
        }
        List::Recovery | List::RecoveryByFiles | List::CleanStop | List::FirstStart => {
            create(desk).await;
            fill(desk).await;
            flush(desk, &["g"]);
            write(desk, 3).await;
            let _rolled = desk.life.logs[0].roll();
            write(desk, 3).await;
        }
    }
}

/// What the steps find in memory: a start flushes what it replayed, so it is written in the life of the steps. Without faults.
pub async fn ready(list: List, desk: &Desk) {
    match list {
        List::Roll
        | List::Flush
        | List::FlushOneFamily
        | List::MobFlush
        | List::MobCompaction
        | List::Split
        | List::Merge
        | List::Alter
        | List::CleanStop => write(desk, 5).await,
        List::BulkLoad => {
            write(desk, 2).await;
            Load::lay_out(desk, 0).expect("no fault is set yet");
        }
        List::DeleteFamily | List::Disable => put_rows(desk, ["b", "k", "z"]).await,
        List::AddFamily => {
            put_rows(desk, ["b", "k", "z"]).await;
            // There was one of its name, and the log still has what was in it.
            add_c(desk).await;
            put_rows(desk, ["c", "n", "y"]).await;
            delete_c(desk).await;
        }
        _ => {}
    }
    assert!(check::quiet(desk).await, "{list}: no faults yet");
}

/// The steps. They end early when the machine does.
pub async fn take(list: List, desk: &Desk) {
    let (master, caller, name) = (&desk.life.master, Caller::default(), work::changing());
    match list {
        List::Append => write(desk, 5).await,
        List::Roll => {
            for log in &desk.life.logs {
                let _ended = log.roll();
            }
            flush(desk, &[]);
            let _ended = desk.life.logs[0].archive_flushed();
            write(desk, 2).await;
        }
        List::Flush | List::MobFlush => {
            flush(desk, &[]);
            write(desk, 1).await;
        }
        List::MobCompaction => {
            compact(desk, true);
            clean_mob_files(desk);
            write(desk, 1).await;
        }
        List::BulkLoad => {
            let loading = desk.clone();
            let sent = tokio::spawn(async move { Load::laid_out(&loading, 0).send(&loading).await });
            for _ in 0..6 {
                desk.life.settle().await;
                let _told_to_who_waits = desk.life.logs[0].sync_once();
            }
            let _ended = sent.await;
            write(desk, 1).await;
        }
        List::Alter => {
            alter(desk, false).await;
            write(desk, 1).await;
        }
        List::FlushOneFamily => {
            flush(desk, &["g"]);
            write(desk, 1).await;
        }
        List::MinorCompaction | List::MajorCompaction => {
            compact(desk, list == List::MajorCompaction);
            write(desk, 1).await;
        }
        List::Split => {
            split(desk).await;
            write(desk, 1).await;
        }
        List::Merge => {
            let names: Vec<String> = regions(desk).into_iter().rev().take(2).collect();
            let names: Vec<String> = names.into_iter().rev().collect();
            done(desk, master.merge_regions(&names, false, &caller).await).await;
            write(desk, 1).await;
        }
        List::Janitor => {
            let _ended = master.run_catalog_janitor().await;
            let _ended = master.run_cleaners().await;
            write(desk, 1).await;
        }
        List::Create => create(desk).await,
        List::AddFamily => add_c(desk).await,
        List::DeleteFamily => {
            let family = Bytes::from("b");
            change(desk, shape(true, &["a"]), false, master.delete_family(&name, &family, &caller)).await;
        }
        List::Disable => disable(desk).await,
        List::Enable => change(desk, shape(true, &["a", "b"]), false, master.enable_table(&name, &caller)).await,
        List::Truncate => {
            change(desk, shape(true, &["a", "b"]), true, master.truncate_table(&name, true, &caller)).await;
        }
        List::Delete => change(desk, None, true, master.delete_table(&name, &caller)).await,
        List::CleanStop => drop(desk.life.stop().await),
        List::Volumes => {
            let life = &desk.life;
            life.read_volumes([Named::In, Named::In, Named::Out]);
            write(desk, 3).await;
            flush(desk, &[]);
            compact(desk, true);
            write(desk, 2).await;
            life.read_volumes([Named::Drains, Named::In, Named::Out]);
            // The log is there, too: it begins a new file.
            life.drain();
            write(desk, 2).await;
            life.drain();
            life.read_volumes([Named::Out, Named::In, Named::Out]);
            flush(desk, &[]);
            write(desk, 1).await;
        }
        List::Recovery | List::RecoveryByFiles | List::FirstStart => {}
    }
}
