//! WAL files in a directory of their own (`hbase.wal.dir`): two volumes under the one tree of names that the rest of the system knows.
//!
//! ```text
//! WALs, oldWALs, corrupt                                        in the WAL directory
//! MasterData/WALs, MasterData/oldWALs                           there, too
//! data/<ns>/<table>/<region>/recovered.edits                    there, too: what a log was split into, and the files of sequence ids
//! MasterData/data/master/store/<region>/recovered.{edits,wals}  there, too
//! everything else                                               in the root directory
//! ```
//!
//! Always true:
//!  1. A path belongs to one side, whatever is on the other: what one side holds under the other's names is not seen and not changed. Before the
//!     tree is used, [`carry`] brings it over.
//!  2. A directory that is made, synced or removed is so on each side that can have a part of it.
//!
//! Must not know: what kind of volume either is. Follows: `CommonFSUtils#getWALRootDir`, `#getWALRegionDir`, `MasterRegion#create`,
//! `DeleteTableProcedure`, `GCRegionProcedure`.

use crate::paths::{ARCHIVE, CORRUPT, DATA, MASTER_DATA, OLD_WALS, TEMP, WALS, list_if_exists};
use fs::{
    Appender, BlockHosts, Capabilities, DirEntry, Error, FilePart, FilePath, Placement, ReadAt, Result, Settled,
    Volume, VolumeHints, sync_dirs,
};
use model::name::RECOVERED_EDITS;
use std::io;
use std::sync::Arc;

/// What HBase's master replays when it opens its own region.
const RECOVERED_WALS: &str = "recovered.wals";

/// In a root directory that is one process's own: on each line the mark of a WAL directory, a space and its place, the one in use first. In a WAL
/// directory: its mark.
pub const RECORD: &str = ".basalt.wal.dir";

/// Where the record of a root directory says that its logs are, as people write it; none where it has no record.
///
/// # Errors
/// What the volume says.
pub fn recorded(root: &dyn Volume) -> Result<Option<String>> {
    let record = FilePath::new(RECORD);
    if !root.exists(&record)? {
        return Ok(None);
    }
    let text = String::from_utf8_lossy(&root.read(&record)?).into_owned();
    Ok(text.lines().next().and_then(|line| Some(line.split_once(' ')?.1.to_owned())))
}

/// A root directory whose logs are elsewhere. See the module.
pub struct WalDirVolume {
    root: Arc<dyn Volume>,
    logs: Arc<dyn Volume>,
}

/// Whether a path is the WAL directory's.
fn is_logs(path: &FilePath) -> bool {
    let mut parts = path.as_str().split('/');
    let is_kind = |part: Option<&str>| matches!(part, Some(WALS | OLD_WALS));
    match parts.next() {
        Some(WALS | OLD_WALS | CORRUPT) => true,
        Some(MASTER_DATA) if is_kind(parts.clone().next()) => true,
        _ => parts.any(|part| matches!(part, RECOVERED_EDITS | RECOVERED_WALS)),
    }
}

/// Whether a directory of the root's can have some below it that are the WAL directory's: down to a region's own.
fn may_have_logs_below(path: &FilePath) -> bool {
    let path = path.as_str();
    let depth = path.split('/').count();
    match path.split('/').next() {
        Some("") | None => true,
        Some(DATA) => depth <= 4,
        Some(ARCHIVE | TEMP | MASTER_DATA) => depth <= 5,
        Some(_) => false,
    }
}

/// The first file below `WALs` of a volume, by its path: a log of which nobody has said that it is not needed any more.
///
/// # Errors
/// What the volume says.
pub fn logs_in(volume: &dyn Volume) -> Result<Option<FilePath>> {
    let dir = FilePath::new(WALS);
    for server in list_if_exists(volume, &dir)? {
        let path = dir.join(&server.name);
        if !server.is_dir {
            return Ok(Some(path));
        }
        if let Some(log) = list_if_exists(volume, &path)?.into_iter().find(|entry| !entry.is_dir) {
            return Ok(Some(path.join(log.name)));
        }
    }
    Ok(None)
}

/// What was brought to another directory.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Carried {
    /// Files.
    pub files: usize,
    /// Their bytes.
    pub bytes: u64,
}

/// Brings all that is the WAL directory's from one volume to another, where a file of the same name is replaced. Nothing leaves `from` before all of it is
/// durable in `to`; broken off, it may be done again, as long as no server has used either. Nobody may be writing to them.
///
/// # Errors
/// What either volume says.
pub fn carry(from: &dyn Volume, to: &dyn Volume) -> Result<Carried> {
    let dirs = log_dirs(from)?;
    let mut files = Vec::new();
    dirs.iter().try_for_each(|dir| files_below(from, dir, &mut files))?;
    let mut carried = Carried::default();
    for path in &files {
        carried.bytes += copy(from, to, path)?;
        carried.files += 1;
    }
    for dir in &dirs {
        from.remove_dir_all(dir)?;
    }
    sync_dirs(from, dirs.iter().map(FilePath::parent))?;
    Ok(carried)
}

/// The directories of a root or WAL directory that are the WAL directory's, as far as they are there.
fn log_dirs(volume: &dyn Volume) -> Result<Vec<FilePath>> {
    let master = FilePath::new(MASTER_DATA);
    let mut dirs: Vec<FilePath> = [WALS, OLD_WALS, CORRUPT].map(FilePath::new).into();
    dirs.extend([WALS, OLD_WALS].map(|name| master.join(name)));
    for namespace in subdirs(volume, &FilePath::new(DATA))?.into_iter().chain(subdirs(volume, &master.join(DATA))?) {
        for table in subdirs(volume, &namespace)? {
            for region in subdirs(volume, &table)? {
                dirs.extend([RECOVERED_EDITS, RECOVERED_WALS].map(|name| region.join(name)));
            }
        }
    }
    let mut there = Vec::new();
    for dir in dirs {
        if volume.exists(&dir)? {
            there.push(dir);
        }
    }
    Ok(there)
}

fn subdirs(volume: &dyn Volume, dir: &FilePath) -> Result<Vec<FilePath>> {
    let entries = list_if_exists(volume, dir)?;
    Ok(entries.into_iter().filter(|entry| entry.is_dir).map(|entry| dir.join(entry.name)).collect())
}

fn files_below(volume: &dyn Volume, dir: &FilePath, found: &mut Vec<FilePath>) -> Result<()> {
    for entry in list_if_exists(volume, dir)? {
        let path = dir.join(&entry.name);
        if entry.is_dir {
            files_below(volume, &path, found)?;
        } else {
            found.push(path);
        }
    }
    Ok(())
}

/// Copies a file to the same place on another volume, durably; its bytes.
fn copy(from: &dyn Volume, to: &dyn Volume, path: &FilePath) -> Result<u64> {
    let (file, dir) = (from.open(path)?, path.parent());
    let len = file.len()?;
    to.create_dir_all_durable(&dir)?;
    let (temporary, mut out) = loop {
        let temporary = dir.join(to.temporary_name(path.name()));
        match to.create(&temporary) {
            // Left by a process that died.
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            created => break (temporary, created?),
        }
    };
    let mut buffer = vec![0; usize::try_from(len).unwrap_or(usize::MAX).min(COPIED_AT_ONCE_BYTES)];
    let mut at = 0;
    while at < len {
        let part = usize::try_from(len - at).unwrap_or(usize::MAX).min(buffer.len());
        file.read_exact_at(&mut buffer[..part], at)?;
        out.append(&buffer[..part])?;
        at += part as u64;
    }
    out.finish()?;
    to.rename(&temporary, path)?;
    to.sync_dir(&dir)?;
    Ok(len)
}

const COPIED_AT_ONCE_BYTES: usize = 1 << 20;

impl WalDirVolume {
    /// The root directory `root` with the logs of `logs`.
    pub fn new(root: Arc<dyn Volume>, logs: Arc<dyn Volume>) -> WalDirVolume {
        WalDirVolume { root, logs }
    }

    fn side(&self, path: &FilePath) -> &dyn Volume {
        if is_logs(path) { &*self.logs } else { &*self.root }
    }

    /// The side of a rename. Nothing moves from one to the other.
    fn side_of_both(&self, from: &FilePath, to: &FilePath) -> Result<&dyn Volume> {
        if is_logs(from) == is_logs(to) {
            return Ok(self.side(from));
        }
        let what = format!("{to} is in another directory: one is below hbase.rootdir, the other below hbase.wal.dir");
        Err(Error::new("rename", from, io::Error::new(io::ErrorKind::CrossesDevices, what)))
    }

    /// What goes with a directory of the root's that was renamed.
    fn rename_logs_below(&self, from: &FilePath, to: &FilePath) -> Result<()> {
        if is_logs(from) || !may_have_logs_below(from) || !self.logs.exists(from)? {
            return Ok(());
        }
        self.logs.create_dir_all_durable(&to.parent())?;
        self.logs.rename(from, to)
    }
}

impl Volume for WalDirVolume {
    fn open(&self, path: &FilePath) -> Result<Arc<dyn ReadAt>> {
        self.side(path).open(path)
    }

    fn create(&self, path: &FilePath) -> Result<Box<dyn Appender>> {
        self.side(path).create(path)
    }

    fn rename(&self, from: &FilePath, to: &FilePath) -> Result<()> {
        self.side_of_both(from, to)?.rename(from, to)?;
        self.rename_logs_below(from, to)
    }

    fn rename_new(&self, from: &FilePath, to: &FilePath) -> Result<()> {
        self.side_of_both(from, to)?.rename_new(from, to)?;
        self.rename_logs_below(from, to)
    }

    fn remove_file(&self, path: &FilePath) -> Result<()> {
        self.side(path).remove_file(path)
    }

    fn remove_dir_all(&self, path: &FilePath) -> Result<()> {
        if !is_logs(path) && may_have_logs_below(path) {
            // First: while the root has the directory, whoever is interrupted here comes back.
            self.logs.remove_dir_all(path)?;
        }
        self.side(path).remove_dir_all(path)
    }

    fn create_dir_all(&self, path: &FilePath) -> Result<()> {
        self.side(path).create_dir_all(path)
    }

    fn list(&self, path: &FilePath) -> Result<Vec<DirEntry>> {
        let side = self.side(path);
        if is_logs(path) || !may_have_logs_below(path) {
            return side.list(path);
        }
        let mut entries = side.list(path)?;
        entries.retain(|entry| !is_logs(&path.join(&entry.name)));
        let logs = list_if_exists(&*self.logs, path)?;
        entries.extend(logs.into_iter().filter(|entry| is_logs(&path.join(&entry.name))));
        entries.sort_by(|a, b| a.name.cmp(&b.name));
        Ok(entries)
    }

    fn stat(&self, path: &FilePath) -> Result<Option<DirEntry>> {
        self.side(path).stat(path)
    }

    fn sync_dir(&self, path: &FilePath) -> Result<()> {
        if !is_logs(path) && may_have_logs_below(path) && self.logs.exists(path)? {
            self.logs.sync_dir(path)?;
        }
        self.side(path).sync_dir(path)
    }

    fn capabilities(&self) -> Capabilities {
        let (root, logs) = (self.root.capabilities(), self.logs.capabilities());
        Capabilities {
            names_durable_at_once: root.names_durable_at_once && logs.names_durable_at_once,
            remote: root.remote || logs.remote,
            shared: root.shared || logs.shared,
            // Only of logs does anybody ask.
            flushed_survives_appender: logs.flushed_survives_appender,
            handle_outlives_removal: root.handle_outlives_removal && logs.handle_outlives_removal,
            // Only of store files does anybody ask.
            names_hosts: root.names_hosts,
        }
    }

    fn hints(&self) -> Option<&dyn VolumeHints> {
        Some(self)
    }

    fn settle(&self, path: &FilePath) -> Result<Settled> {
        self.side(path).settle(path)
    }

    fn temporary_name(&self, name: &str) -> String {
        self.root.temporary_name(name)
    }

    fn sync_file(&self, path: &FilePath) -> Result<()> {
        self.side(path).sync_file(path)
    }

    fn create_dir_all_durable(&self, path: &FilePath) -> Result<()> {
        self.side(path).create_dir_all_durable(path)
    }

    fn exists(&self, path: &FilePath) -> Result<bool> {
        self.side(path).exists(path)
    }

    fn read(&self, path: &FilePath) -> Result<Vec<u8>> {
        self.side(path).read(path)
    }

    fn publish(&self, path: &FilePath, bytes: &[u8]) -> Result<()> {
        self.side(path).publish(path, bytes)
    }
}

impl VolumeHints for WalDirVolume {
    fn places(&self) -> Vec<String> {
        let mut places = self.root.places();
        places.extend(self.logs.places());
        places
    }

    fn look_after_place(&self, place: &str) {
        self.root.look_after_place(place);
        self.logs.look_after_place(place);
    }

    fn volumes(&self) -> Vec<fs::tiered::VolumeStatus> {
        let mut volumes = self.root.volumes();
        volumes.extend(self.logs.volumes());
        volumes
    }

    fn failures_and_returns(&self) -> u64 {
        self.root.failures_and_returns() + self.logs.failures_and_returns()
    }

    fn change_volumes(
        &self,
        volumes: &[fs::tiered::VolumeSpec],
        kinds: &std::collections::BTreeMap<&'static str, String>,
    ) -> std::result::Result<bool, String> {
        if kinds.contains_key(fs::FileKind::Log.name()) {
            return Err(
                "hbase.wal.dir and basalt.volumes.place.wal both say where logs are: remove one of them".to_owned()
            );
        }
        self.root.change_volumes(volumes, kinds)
    }

    fn drain(
        &self,
        directory: &str,
        goes_on: &dyn Fn(u64) -> bool,
    ) -> std::result::Result<fs::tiered::Drained, String> {
        self.root.drain(directory, goes_on)
    }

    fn has_several_places(&self) -> bool {
        self.root.has_several_places() || self.logs.has_several_places()
    }

    fn create_past_cache(&self, path: &FilePath) -> Result<Box<dyn Appender>> {
        self.side(path).create_past_cache(path)
    }

    fn create_placed(&self, path: &FilePath, placement: &Placement, past_cache: bool) -> Result<Box<dyn Appender>> {
        self.side(path).create_placed(path, placement, past_cache)
    }

    fn release_reserved(&self, path: &FilePath) -> Result<()> {
        self.side(path).release_reserved(path)
    }

    /// Of the side that has less.
    fn free_bytes(&self) -> Result<Option<u64>> {
        let both = [self.root.free_bytes()?, self.logs.free_bytes()?];
        Ok(both.into_iter().flatten().min())
    }

    fn block_hosts(&self, path: &FilePath, part: FilePart) -> Result<Option<BlockHosts>> {
        self.side(path).block_hosts(path, part)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use fs::{MemVolume, publish_all};

    struct World {
        root: MemVolume,
        logs: MemVolume,
        whole: WalDirVolume,
    }

    fn world() -> World {
        let (root, logs) = (MemVolume::new(), MemVolume::new());
        let whole = WalDirVolume::new(Arc::new(root.clone()), Arc::new(logs.clone()));
        World { root, logs, whole }
    }

    fn names(volume: &dyn Volume, dir: &str) -> Vec<String> {
        let list = volume.list(&FilePath::new(dir)).expect("listed");
        list.into_iter().map(|entry| entry.name).collect()
    }

    const REGION: &str = "data/default/t/0123";

    #[test]
    fn logs_and_what_they_are_split_into_are_in_the_wal_directory() {
        let World { root, logs, whole } = world();
        for (path, is_log) in [
            ("WALs/host,1,2/host%2C1%2C2.3", true),
            ("WALs/host,1,2-splitting/x.meta", true),
            ("oldWALs/x", true),
            ("corrupt/x", true),
            ("MasterData/WALs/host,1,2/x", true),
            ("MasterData/oldWALs/x", true),
            ("MasterData/data/master/store/1595/recovered.wals/x", true),
            ("MasterData/data/master/store/1595/recovered.edits/7.seqid", true),
            ("MasterData/data/master/store/1595/proc/x", false),
            ("MasterData/basalt/keys/x", false),
            ("data/default/t/0123/recovered.edits/0000000000000000017", true),
            ("data/default/t/0123/recovered.hfiles/f/x", false),
            ("data/default/t/0123/f/x", false),
            ("data/default/t/.tabledesc/x", false),
            ("data/default/WALs/0123/f/x", false),
            ("hbase.version", false),
            (".hbase-snapshot/WALs/data.manifest", false),
            ("archive/data/default/t/0123/f/x", false),
        ] {
            let path = FilePath::new(path);
            whole.create_dir_all_durable(&path.parent()).expect("made");
            whole.publish(&path, b"bytes").expect("written");
            assert_eq!((root.exists(&path).expect("asked"), logs.exists(&path).expect("asked")), (!is_log, is_log));
            assert_eq!(whole.read(&path).expect("read"), b"bytes");
            assert!(names(&whole, path.parent().as_str()).contains(&path.name().to_owned()), "{path}");
            assert_eq!(whole.settle(&path).expect("asked"), Settled::Final { len_bytes: 5 });
        }
        assert!(names(&whole, "").contains(&"WALs".to_owned()) && names(&whole, "").contains(&"data".to_owned()));
    }

    #[test]
    fn a_region_shows_its_recovered_edits_and_takes_them_along() {
        let World { root, logs, whole } = world();
        let (region, edits) = (FilePath::new(REGION), FilePath::new(REGION).join(RECOVERED_EDITS));
        whole.create_dir_all_durable(&region.join("f")).expect("made");
        whole.create_dir_all_durable(&edits).expect("made");
        whole.publish(&edits.join("17"), b"edit").expect("written");
        assert_eq!(names(&whole, REGION), ["f", RECOVERED_EDITS]);
        // A directory that only the WAL directory has is no region.
        logs.create_dir_all(&FilePath::new("data/default/t/4567/recovered.edits")).expect("made");
        assert_eq!(names(&whole, "data/default/t"), ["0123"]);
        assert!(whole.stat(&FilePath::new("data/default/t/4567")).expect("asked").is_none());

        let elsewhere = FilePath::new(".tmp/data/default/t/0123");
        whole.create_dir_all_durable(&elsewhere.parent()).expect("made");
        whole.rename_new(&region, &elsewhere).expect("renamed");
        assert_eq!(whole.read(&elsewhere.join(RECOVERED_EDITS).join("17")).expect("read"), b"edit");
        whole.remove_dir_all(&elsewhere).expect("removed");
        assert!(root.all_files().is_empty() && logs.all_files().is_empty());
    }

    #[test]
    fn what_lies_on_the_wrong_side_is_not_seen_and_found_before() {
        let World { root, whole, .. } = world();
        let log = FilePath::new("WALs/host,1,2/log");
        root.create_dir_all(&log.parent()).expect("made");
        assert_eq!(logs_in(&root).expect("asked"), None, "a server without logs");
        root.put_file(&log, b"edits of before the setting");
        assert_eq!(logs_in(&root).expect("asked"), Some(log.clone()));
        assert!(!whole.exists(&log).expect("asked") && !names(&whole, "").contains(&"WALs".to_owned()));
    }

    #[test]
    fn logs_are_carried_over_whole_and_again_after_a_break() {
        let (from, to) = (MemVolume::new(), MemVolume::new());
        let logs =
            ["WALs/host,1,2/log", "oldWALs/a", "data/default/t/0123/recovered.edits/7.seqid", "MasterData/WALs/m/x"];
        let others = ["data/default/t/0123/f/file", "hbase.version"];
        let fill = || {
            for path in logs.iter().chain(&others) {
                let path = FilePath::new(path);
                from.create_dir_all_durable(&path.parent()).expect("made");
                from.publish(&path, path.as_str().repeat(100_000).as_bytes()).expect("written");
            }
        };
        fill();
        let calls = {
            let (from, to) = (from.snapshot(), MemVolume::new());
            carry(&from, &to).expect("carried");
            (from.op_count(), to.op_count())
        };
        // Broken off at any call of either side, then done again.
        for (stops_from, most) in [(true, calls.0), (false, calls.1)] {
            for call in 0..most {
                let (from, to) = (from.snapshot(), to.snapshot());
                if stops_from {
                    from.stop_after(call)
                } else {
                    to.stop_after(call)
                };
                let _ = carry(&from, &to);
                let rng = base::Rng::seeded(call);
                let (from, to) = (from.crash(&rng, fs::CrashPolicy::Torn), to.crash(&rng, fs::CrashPolicy::Torn));
                carry(&from, &to).expect("carried");
                let mut there: Vec<String> = to.all_files().into_iter().map(|path| path.to_string()).collect();
                there.retain(|path| !path.contains(fs::TEMPORARY_PREFIX));
                there.sort();
                let mut wanted = logs.map(str::to_owned);
                wanted.sort();
                assert_eq!(there, wanted, "after {call} calls");
                for path in wanted.iter().map(FilePath::new) {
                    assert_eq!(to.read(&path).expect("read"), path.as_str().repeat(100_000).as_bytes());
                }
                let mut stay: Vec<String> = from.all_files().into_iter().map(|path| path.to_string()).collect();
                stay.sort();
                assert_eq!(stay, others);
            }
        }
        let carried = carry(&from, &to).expect("carried");
        assert_eq!((carried.files, carried.bytes), (4, logs.iter().map(|path| path.len() as u64 * 100_000).sum()));
        assert_eq!(carry(&from, &to).expect("carried"), Carried::default());
    }

    #[test]
    fn nothing_moves_from_one_side_to_the_other() {
        let World { whole, .. } = world();
        whole.create_dir_all_durable(&FilePath::new(WALS)).expect("made");
        whole.publish(&FilePath::new("WALs/x"), b"").expect("written");
        let error = whole.rename(&FilePath::new("WALs/x"), &FilePath::new("archive/x")).expect_err("refused");
        assert_eq!(error.kind(), io::ErrorKind::CrossesDevices);
        assert!(error.to_string().contains("hbase.wal.dir"), "{error}");
    }

    #[test]
    fn what_is_made_durable_is_so_on_its_side() {
        let World { root, logs, whole } = world();
        let edits = FilePath::new(REGION).join(RECOVERED_EDITS);
        whole.create_dir_all_durable(&FilePath::new(REGION)).expect("made");
        whole.create_dir_all_durable(&edits).expect("made");
        let files = [(edits.join("17"), b"edit".to_vec()), (FilePath::new(REGION).join(".regioninfo"), b"i".to_vec())];
        publish_all(&whole, &files).expect("published");
        whole.remove_file(&edits.join("17")).expect("removed");
        whole.sync_dir(&edits).expect("synced");
        whole.sync_dir(&FilePath::new(REGION)).expect("synced");
        let rng = base::Rng::seeded(1);
        let (root, logs) =
            (root.crash(&rng, fs::CrashPolicy::LoseUnsynced), logs.crash(&rng, fs::CrashPolicy::LoseUnsynced));
        assert_eq!(root.all_files(), [FilePath::new(REGION).join(".regioninfo")]);
        assert!(logs.exists(&edits).expect("asked") && logs.all_files().is_empty());
    }
}
