//! The list of a family's store files that HBase's FILE tracker keeps beside them: `<family>/.filelist/f1.<number>` or `f2.<number>`.
//!
//! ```text
//! length of the message: 4 bytes, big endian | StoreFileList | CRC-32 of the message: 4 bytes, big endian
//! ```
//!
//! Each opening of the family takes a number higher than all before and writes `f1` and `f2` of it in turn; the other goes when one is
//! written. Of the files with the highest number of which one is whole the later by its timestamp counts; lower numbers are of earlier
//! openings and go.
//!
//! Always true: whatever fails, the directory says the former list or the whole new one. Follows: `StoreFileListFile`.

use fs::{FilePath, Volume};
use proto::{Message, pb};
use std::collections::BTreeMap;

/// The directory in a family's.
pub const DIR: &str = ".filelist";
/// The version of the message that is written, and the highest that is understood.
const VERSION: u64 = 1;
/// Longest message, as in HBase.
const LEN_MAX_BYTES: usize = 16 << 20;
const NAMES: [&str; 2] = ["f1", "f2"];

/// Names of store files, with what HBase gives as their sizes: the file's bytes; 0 for a link or a reference.
pub type Entries = BTreeMap<String, u64>;

/// Why a list cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum ListError {
    /// The volume failed.
    #[error(transparent)]
    Io(#[from] fs::Error),
    /// Nobody knows which store files the family has.
    #[error(
        "{path} is damaged ({what}): without it nobody knows which store files the family has; restore it from a copy, or restore the table from a snapshot"
    )]
    Damaged {
        /// The file.
        path: FilePath,
        /// What is wrong.
        what: String,
    },
}

/// A list that was not written.
#[derive(Debug)]
pub struct NotWritten {
    /// Why.
    pub error: fs::Error,
    /// Whether the former list holds for certain. If not, the next opening may find either.
    pub is_undone: bool,
}

/// The bytes of a file.
pub fn encode(list: &pb::StoreFileList) -> Vec<u8> {
    let message = list.encode_to_vec();
    let mut bytes = Vec::with_capacity(message.len() + 8);
    bytes.extend_from_slice(&(message.len() as u32).to_be_bytes());
    bytes.extend_from_slice(&message);
    bytes.extend_from_slice(&crc32fast::hash(&message).to_be_bytes());
    bytes
}

/// Reads the bytes of a file; `None` when it ends early: its writer was stopped.
///
/// # Errors
/// What is wrong with it.
pub fn decode(bytes: &[u8]) -> Result<Option<pb::StoreFileList>, String> {
    let Some((len, rest)) = bytes.split_first_chunk::<4>() else { return Ok(None) };
    let len = i32::from_be_bytes(*len);
    let Some(len) = usize::try_from(len).ok().filter(|len| (1..=LEN_MAX_BYTES).contains(len)) else {
        return Err(format!(
            "Invalid file length {len}, either less than 0 or greater then max allowed size {LEN_MAX_BYTES}"
        ));
    };
    let Some((message, rest)) = rest.split_at_checked(len) else { return Ok(None) };
    let Some(expected) = rest.first_chunk::<4>() else { return Ok(None) };
    let (expected, actual) = (i32::from_be_bytes(*expected), crc32fast::hash(message) as i32);
    if expected != actual {
        return Err(format!("Checksum mismatch, expected {expected}, actual {actual}"));
    }
    let list = pb::StoreFileList::decode(message).map_err(|error| error.to_string())?;
    match list.version() {
        version if version > VERSION => {
            Err(format!("Higher store file list version detected, expected {VERSION}, got {version}"))
        }
        _ => Ok(Some(list)),
    }
}

/// The number in a file's name, and whether it is `f1` or `f2`.
fn parse_name(name: &str) -> Option<(u64, usize)> {
    let which = NAMES.iter().position(|known| name.starts_with(known))?;
    match &name[2..] {
        "" => Some((0, which)),
        rest => {
            let digits = rest.strip_prefix('.')?;
            let legal = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
            legal.then(|| digits.parse().ok()).flatten().map(|number| (number, which))
        }
    }
}

/// Names by their numbers, by `f1` and `f2`.
fn generations(volume: &dyn Volume, dir: &FilePath) -> fs::Result<BTreeMap<u64, [Option<String>; 2]>> {
    let mut found = BTreeMap::<u64, [Option<String>; 2]>::new();
    for entry in crate::list_if_exists(volume, dir)? {
        match parse_name(&entry.name).filter(|_| !entry.is_dir) {
            Some((number, which)) => found.entry(number).or_default()[which] = Some(entry.name),
            None => tracing::warn!("{} is no list of store files, and is passed over", dir.join(&entry.name)),
        }
    }
    Ok(found)
}

/// What the newest whole list says.
struct Newest {
    which: usize,
    list: pb::StoreFileList,
}

fn newest(
    volume: &dyn Volume,
    dir: &FilePath,
    found: &BTreeMap<u64, [Option<String>; 2]>,
) -> Result<Option<Newest>, ListError> {
    for names in found.values().rev() {
        let mut newest: Option<Newest> = None;
        for (which, name) in names.iter().enumerate() {
            let Some(name) = name else { continue };
            let path = dir.join(name);
            let read = decode(&volume.read(&path)?).map_err(|what| ListError::Damaged { path, what })?;
            let Some(list) = read else { continue };
            // Of two of one time HBase takes the first.
            if newest.as_ref().is_none_or(|newest| newest.list.timestamp < list.timestamp) {
                newest = Some(Newest { which, list });
            }
        }
        if newest.is_some() {
            return Ok(newest);
        }
    }
    Ok(None)
}

fn entries_of(list: pb::StoreFileList) -> Entries {
    list.store_file.into_iter().map(|file| (file.name, file.size)).collect()
}

/// What a family's list says; `None` when there is none. Changes nothing.
///
/// # Errors
/// The volume fails, or the list is damaged.
pub fn read(volume: &dyn Volume, family_dir: &FilePath) -> Result<Option<Entries>, ListError> {
    let dir = family_dir.join(DIR);
    let found = generations(volume, &dir)?;
    Ok(newest(volume, &dir, &found)?.map(|newest| entries_of(newest.list)))
}

/// The list of one family, for the one who may change it.
#[derive(Debug)]
pub struct FileList {
    dir: FilePath,
    entries: Entries,
    /// Of this opening's files.
    number: u64,
    next: usize,
    last_timestamp: u64,
    /// Whether the directory's name is on the disk.
    has_dir: bool,
    /// Files of earlier openings that go with the first list of this one.
    outdated: Vec<String>,
}

impl FileList {
    /// Opens the list of a family, `now_ms` being the time, and says whether there was one.
    ///
    /// # Errors
    /// The volume fails, or the list is damaged.
    pub fn open(volume: &dyn Volume, family_dir: &FilePath, now_ms: i64) -> Result<(FileList, bool), ListError> {
        let dir = family_dir.join(DIR);
        let found = generations(volume, &dir)?;
        let newest = newest(volume, &dir, &found)?;
        let mut list = FileList::after(dir, &found, now_ms);
        let Some(newest) = newest else { return Ok((list, false)) };
        // A process that was killed may have left a name that is not durable yet: what follows from it must not be taken back.
        volume.sync_dir(&list.dir)?;
        list.outdated = found.into_values().flatten().flatten().collect();
        list.next = 1 - newest.which;
        list.last_timestamp = newest.list.timestamp;
        list.entries = entries_of(newest.list);
        Ok((list, true))
    }

    /// An empty list over whatever was there, be that damaged. Nothing is written yet.
    ///
    /// # Errors
    /// The volume fails.
    pub fn anew(volume: &dyn Volume, family_dir: &FilePath, now_ms: i64) -> fs::Result<FileList> {
        let dir = family_dir.join(DIR);
        let found = generations(volume, &dir)?;
        let mut list = FileList::after(dir, &found, now_ms);
        list.outdated = found.into_values().flatten().flatten().collect();
        Ok(list)
    }

    fn after(dir: FilePath, found: &BTreeMap<u64, [Option<String>; 2]>, now_ms: i64) -> FileList {
        let after = found.last_key_value().map_or(0, |(number, _)| number.saturating_add(1));
        let number = after.max(u64::try_from(now_ms).unwrap_or(0));
        FileList {
            dir,
            entries: Entries::new(),
            number,
            next: 0,
            last_timestamp: 0,
            has_dir: false,
            outdated: Vec::new(),
        }
    }

    /// What it says.
    pub fn entries(&self) -> &Entries {
        &self.entries
    }

    /// Makes it say this, durably.
    ///
    /// # Errors
    /// The volume fails. Nothing has changed then, if the error says so.
    pub fn set(&mut self, volume: &dyn Volume, entries: Entries, now_ms: i64) -> Result<(), NotWritten> {
        let timestamp = (self.last_timestamp + 1).max(u64::try_from(now_ms).unwrap_or(0));
        let store_file = entries.iter().map(|(name, size)| pb::StoreFileEntry { name: name.clone(), size: *size });
        let list = pb::StoreFileList { timestamp, store_file: store_file.collect(), version: Some(VERSION) };
        let path = self.path(self.next);
        if let Err(error) = self.publish(volume, &path, &encode(&list)) {
            return Err(NotWritten { error, is_undone: self.withdraw(volume, &path).is_ok() });
        }
        (self.entries, self.last_timestamp, self.next) = (entries, timestamp, 1 - self.next);
        // What stays is older than this list, and is passed over.
        let _ = volume.remove_file(&self.path(self.next));
        for name in self.outdated.drain(..) {
            let _ = volume.remove_file(&self.dir.join(&name));
        }
        Ok(())
    }

    fn path(&self, which: usize) -> FilePath {
        self.dir.join(format!("{}.{}", NAMES[which], self.number))
    }

    fn publish(&mut self, volume: &dyn Volume, path: &FilePath, bytes: &[u8]) -> fs::Result<()> {
        if !self.has_dir {
            volume.create_dir_all_durable(&self.dir)?;
            self.has_dir = true;
        }
        volume.publish(path, bytes)
    }

    /// What failed on its way to the disk may be there all the same.
    fn withdraw(&self, volume: &dyn Volume, path: &FilePath) -> fs::Result<()> {
        match volume.remove_file(path) {
            Err(error) if !error.is_not_found() => return Err(error),
            _ => {}
        }
        match volume.sync_dir(&self.dir) {
            // It could not even be made.
            Err(error) if error.is_not_found() => Ok(()),
            other => other,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use base::Rng;
    use fs::{CrashPolicy, FaultKind, MemVolume};

    fn family() -> FilePath {
        FilePath::new("data/default/t/r/f")
    }

    fn entries(names: &[&str]) -> Entries {
        names.iter().map(|name| ((*name).to_owned(), 7)).collect()
    }

    fn set(volume: &MemVolume, list: &mut FileList, names: &[&str]) {
        list.set(volume, entries(names), 5).expect("memory");
    }

    fn names(volume: &MemVolume) -> Vec<String> {
        volume.list(&family().join(DIR)).expect("memory").into_iter().map(|entry| entry.name).collect()
    }

    /// See the head of the file for where it comes from.
    const GOLDEN: &str = include_str!("../../../../tests/golden/rootdir/filelists.txt");

    #[test]
    fn lists_are_the_bytes_that_hbase_writes() {
        let mut counts = Vec::new();
        for line in GOLDEN.lines().filter(|line| !line.starts_with('#')) {
            let [call, name, hex] = line.split(' ').collect::<Vec<_>>()[..] else { panic!("{line}") };
            let byte = |at| u8::from_str_radix(&hex[at..at + 2], 16).expect("hexadecimal");
            let bytes: Vec<u8> = (0..hex.len()).step_by(2).map(byte).collect();
            let list = decode(&bytes).expect("whole").expect("a list");
            assert_eq!(encode(&list), bytes, "{call}");
            assert_eq!(list.version, Some(VERSION), "{call}");
            counts.push((parse_name(name).expect("a name").1, list.store_file.len()));
        }
        assert_eq!(counts, [(0, 0), (1, 2), (0, 3), (1, 1)]);
    }

    #[test]
    fn two_files_take_turns_and_the_next_opening_takes_a_higher_number() {
        let volume = MemVolume::new();
        let (mut list, was_there) = FileList::open(&volume, &family(), 100).expect("memory");
        assert!(!was_there);
        set(&volume, &mut list, &["a"]);
        assert_eq!(names(&volume), ["f1.100"]);
        set(&volume, &mut list, &["a", "b"]);
        assert_eq!(names(&volume), ["f2.100"]);
        let (mut list, was_there) = FileList::open(&volume, &family(), 50).expect("memory");
        assert!(was_there && *list.entries() == entries(&["a", "b"]));
        set(&volume, &mut list, &["b"]);
        assert_eq!(names(&volume), ["f1.101"]);
        assert_eq!(read(&volume, &family()).expect("memory"), Some(entries(&["b"])));
        // The time goes back, and the later list stays the later.
        let before = decode(&volume.read(&family().join(DIR).join("f1.101")).expect("memory")).expect("whole");
        list.set(&volume, entries(&[]), 1).expect("memory");
        let after = decode(&volume.read(&family().join(DIR).join("f2.101")).expect("memory")).expect("whole");
        assert!(after.expect("a list").timestamp > before.expect("a list").timestamp);
    }

    #[test]
    fn a_list_that_ends_early_is_passed_over_and_a_damaged_one_refused() {
        let volume = MemVolume::new();
        let (mut list, _) = FileList::open(&volume, &family(), 100).expect("memory");
        set(&volume, &mut list, &["a"]);
        let path = |name: &str| family().join(DIR).join(name);
        let whole = volume.read(&path("f1.100")).expect("memory");
        for len in 0..whole.len() {
            volume.publish(&path("f2.100"), &whole[..len]).expect("memory");
            assert_eq!(read(&volume, &family()).expect("passed over"), Some(entries(&["a"])), "{len} bytes");
        }
        let mut damaged = whole.clone();
        damaged[6] ^= 1;
        volume.publish(&path("f2.100"), &damaged).expect("memory");
        let error = read(&volume, &family()).expect_err("damaged").to_string();
        assert!(error.contains("f2.100") && error.contains("Checksum mismatch"), "{error}");
        let later = pb::StoreFileList { version: Some(2), ..Default::default() };
        let error = decode(&encode(&later)).expect_err("of a later version");
        assert_eq!(error, "Higher store file list version detected, expected 1, got 2");
        assert!(decode(&[0xFF; 12]).expect_err("nonsense").starts_with("Invalid file length -1"));
        // A restored snapshot does not need what was there.
        let mut list = FileList::anew(&volume, &family(), 0).expect("memory");
        set(&volume, &mut list, &["c"]);
        assert_eq!(
            (names(&volume), read(&volume, &family()).expect("memory")),
            (vec!["f1.101".into()], Some(entries(&["c"])))
        );
    }

    /// Every call to the volume fails in turn, and then the power goes: the former list is there or the whole new one, and the former
    /// if the error said so.
    #[test]
    fn a_list_changes_as_a_whole_whatever_fails() {
        for nth in 1.. {
            let volume = MemVolume::new();
            let (mut list, _) = FileList::open(&volume, &family(), 100).expect("memory");
            set(&volume, &mut list, &["a"]);
            let (mut list, _) = FileList::open(&volume, &family(), 200).expect("memory");
            let before = volume.op_count();
            volume.fail_op(nth, FaultKind::Io);
            let outcome = list.set(&volume, entries(&["b"]), 201);
            for policy in
                [CrashPolicy::LoseUnsynced, CrashPolicy::KeepAll, CrashPolicy::Torn, CrashPolicy::TornWithHoles]
            {
                for seed in 0..8 {
                    let left = volume.crash(&Rng::seeded(seed), policy);
                    let found = read(&left, &family()).expect("never damaged").expect("never gone");
                    let (old, new) = (found == entries(&["a"]), found == entries(&["b"]));
                    let expected = match &outcome {
                        Ok(()) => new,
                        Err(NotWritten { is_undone: true, .. }) => old,
                        Err(_) => old || new,
                    };
                    assert!(expected, "call {nth} failed, {policy:?}, seed {seed}: {outcome:?}, {found:?}");
                }
            }
            if volume.op_count() < before + nth {
                assert!(nth > 8, "only {nth} calls");
                return;
            }
        }
    }
}
