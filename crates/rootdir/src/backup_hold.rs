//! What a backup that is kept elsewhere still needs of a root directory: the logs that its next increment reads, and files that were
//! loaded in bulk since. One small file for each place with backups, `MasterData/basalt/backups/<id>`, which `basalt backup` writes and the
//! cleaners heed. Follows: `BackupLogCleaner`, `BackupHFileCleaner`, which ask the table `backup:system` instead.
//!
//! Always true: what a mark does not name is needed; a mark that cannot be read needs everything.

use crate::paths::own_master_dir;
use fs::{FilePath, Volume};
use model::{ServerName, TableName};
use std::collections::{BTreeMap, BTreeSet};

const HEADER: &str = "basalt-backup-hold 1";
const CHECKSUM: &str = "crc32 ";

/// The directory of all marks.
pub fn holds_dir() -> FilePath {
    own_master_dir().join("backups")
}

/// The name of a log, taken apart.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct LogName {
    /// The server that wrote it, as `host,port,start`.
    pub server: String,
    /// When it was begun: later logs of a server have greater ones.
    pub number: u64,
    /// Whether it is of hbase:meta.
    pub is_meta: bool,
}

impl LogName {
    /// `None` when no log of a region server is called so. Follows: `AbstractFSWALProvider#getTimestamp`, `WALFactory`.
    pub fn parse(name: &str) -> Option<LogName> {
        let (name, is_meta) = match name.strip_suffix(".meta") {
            Some(name) => (name, true),
            None => (name, false),
        };
        let (prefix, number) = name.rsplit_once('.')?;
        let number = number.parse().ok()?;
        let prefix = prefix.strip_suffix(".meta").unwrap_or(prefix);
        let prefix = match prefix.rsplit_once(".regiongroup-") {
            Some((server, group)) if group.bytes().all(|byte| byte.is_ascii_digit()) => server,
            _ => prefix,
        };
        let server = prefix.replace("%2C", ",").replace("%3A", ":");
        server.parse::<ServerName>().is_ok().then_some(LogName { server, number, is_meta })
    }
}

/// A place's mark.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Hold {
    /// Where the backups are, for people.
    pub place: String,
    /// The tables that it has backups of.
    pub tables: BTreeSet<String>,
    /// For each server the first log whose edits are not in a backup. All logs of a server that is not named are needed.
    pub logs: BTreeMap<String, u64>,
    /// Files of those tables that were loaded in bulk and are in a backup. All others are needed.
    pub covered: BTreeSet<String>,
}

/// Why a mark cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum HoldError {
    /// The volume failed.
    #[error(transparent)]
    Io(#[from] fs::Error),
    /// It is no mark.
    #[error(
        "{path} is no mark of a backup ({what}): nothing is deleted from the archive while it is there; basalt backup writes it anew"
    )]
    Damaged {
        /// The file.
        path: FilePath,
        /// What is wrong.
        what: String,
    },
}

impl Hold {
    /// Whether the next increment reads a log of this name.
    pub fn needs_log(&self, name: &LogName) -> bool {
        !name.is_meta && self.logs.get(&name.server).is_none_or(|first| name.number >= *first)
    }

    /// Whether the next increment may copy a store file of this name.
    pub fn needs_file(&self, table: &TableName, name: &str) -> bool {
        let is_loaded = crate::FileName::parse(name).is_some_and(|parsed| {
            parsed.link.is_none() && parsed.parent.is_none() && parsed.bulk_load_seq_id().is_some()
        });
        is_loaded && self.tables.contains(&table.to_string()) && !self.covered.contains(name)
    }

    /// The bytes of its file: lines of words, the last with the checksum of those before.
    pub fn encode(&self) -> Vec<u8> {
        let mut text = format!("{HEADER}\nplace {}\n", self.place.escape_default());
        self.tables.iter().for_each(|table| text += &format!("table {table}\n"));
        self.logs.iter().for_each(|(server, first)| text += &format!("log {server} {first}\n"));
        self.covered.iter().for_each(|name| text += &format!("covered {name}\n"));
        let sum = crc32fast::hash(text.as_bytes());
        text += &format!("{CHECKSUM}{sum:08x}\n");
        text.into_bytes()
    }

    /// What [`Hold::encode`] wrote.
    ///
    /// # Errors
    /// What is wrong with the bytes.
    pub fn decode(bytes: &[u8]) -> Result<Hold, String> {
        let text = std::str::from_utf8(bytes).map_err(|_| "it is no text")?;
        let (body, sum) = text
            .strip_suffix('\n')
            .and_then(|text| text.rsplit_once('\n'))
            .and_then(|(body, last)| Some((body, last.strip_prefix(CHECKSUM)?)))
            .ok_or("its last line is no checksum")?;
        let whole = text.get(..=body.len()).unwrap_or_default();
        if u32::from_str_radix(sum, 16).ok() != Some(crc32fast::hash(whole.as_bytes())) {
            return Err("its checksum is of other bytes".to_owned());
        }
        let mut lines = body.lines();
        if lines.next() != Some(HEADER) {
            return Err("it is of another version".to_owned());
        }
        let mut hold = Hold::default();
        for line in lines {
            let strange = || format!("its line {line:?} is not understood");
            match line.split_once(' ').ok_or_else(strange)? {
                ("place", place) => hold.place = unescaped(place).ok_or_else(strange)?,
                ("table", table) => drop(hold.tables.insert(table.to_owned())),
                ("log", log) => {
                    let (server, first) = log.split_once(' ').ok_or_else(strange)?;
                    hold.logs.insert(server.to_owned(), first.parse().map_err(|_| strange())?);
                }
                ("covered", name) => drop(hold.covered.insert(name.to_owned())),
                _ => return Err(strange()),
            }
        }
        Ok(hold)
    }

    /// Writes the mark of the backups called `id`.
    ///
    /// # Errors
    /// What the volume says.
    pub fn publish(&self, volume: &dyn Volume, id: &str) -> fs::Result<()> {
        volume.create_dir_all_durable(&holds_dir())?;
        volume.publish(&holds_dir().join(id), &self.encode())
    }
}

/// What `str::escape_default` was given.
fn unescaped(text: &str) -> Option<String> {
    let (mut out, mut rest) = (String::new(), text);
    while let Some((plain, escaped)) = rest.split_once('\\') {
        out.push_str(plain);
        let (c, behind) = match escaped.strip_prefix("u{") {
            Some(code) => {
                let (code, behind) = code.split_once('}')?;
                (char::from_u32(u32::from_str_radix(code, 16).ok()?)?, behind)
            }
            None => {
                let c = match escaped.chars().next()? {
                    't' => '\t',
                    'r' => '\r',
                    'n' => '\n',
                    same @ ('\\' | '\'' | '"') => same,
                    _ => return None,
                };
                (c, &escaped[1..])
            }
        };
        out.push(c);
        rest = behind;
    }
    out.push_str(rest);
    Some(out)
}

/// All marks, by their ids.
///
/// # Errors
/// One cannot be read.
pub fn load(volume: &dyn Volume) -> Result<BTreeMap<String, Hold>, HoldError> {
    let mut holds = BTreeMap::new();
    for entry in crate::list_if_exists(volume, &holds_dir())? {
        let path = holds_dir().join(&entry.name);
        if entry.name.starts_with(fs::TEMPORARY_PREFIX) {
            continue;
        }
        let hold = Hold::decode(&volume.read(&path)?).map_err(|what| HoldError::Damaged { path, what })?;
        holds.insert(entry.name, hold);
    }
    Ok(holds)
}

/// Takes a mark away; nothing happens where there is none.
///
/// # Errors
/// What the volume says.
pub fn release(volume: &dyn Volume, id: &str) -> fs::Result<()> {
    match volume.remove_file(&holds_dir().join(id)) {
        Err(error) if error.is_not_found() => Ok(()),
        removed => removed.and_then(|()| volume.sync_dir(&holds_dir())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use fs::MemVolume;

    fn log(name: &str) -> LogName {
        LogName::parse(name).expect("a log's name")
    }

    #[test]
    fn names_of_logs_say_who_wrote_them_and_when() {
        let server = "a.b-c,16020,17".to_owned();
        let of = |number, is_meta| LogName { server: server.clone(), number, is_meta };
        assert_eq!(log("a.b-c%2C16020%2C17.18"), of(18, false));
        assert_eq!(log("a.b-c%2C16020%2C17.meta.18.meta"), of(18, true));
        assert_eq!(log("a.b-c%2C16020%2C17.regiongroup-3.18"), of(18, false));
        for strange in ["", "a.1", "a%2C16020%2C17", "a%2C1%2C7.x", "a%2C1%2C7.18$masterlocalwal$", "notes.txt"] {
            assert_eq!(LogName::parse(strange), None, "{strange}");
        }
    }

    #[test]
    fn what_is_not_named_is_needed() {
        let hex = "0123456789abcdef0123456789abcdef";
        let table = TableName::parse("t").expect("legal");
        let hold = Hold {
            place: "/b".to_owned(),
            tables: ["t".to_owned()].into(),
            logs: [("a,1,7".to_owned(), 20)].into(),
            covered: [format!("{hex}_SeqId_4_")].into(),
        };
        let needs = |name: &str| hold.needs_log(&log(name));
        assert!(!needs("a%2C1%2C7.19") && needs("a%2C1%2C7.20") && needs("b%2C1%2C7.1"));
        assert!(!needs("b%2C1%2C7.meta.30.meta"), "no backup has hbase:meta");
        let file = |name: &str| hold.needs_file(&table, name);
        assert!(file(&format!("{hex}_SeqId_5_")) && !file(&format!("{hex}_SeqId_4_")) && !file(hex));
        assert!(!hold.needs_file(&TableName::parse("u").expect("legal"), &format!("{hex}_SeqId_5_")));
    }

    #[test]
    fn a_place_is_read_as_it_was_whatever_its_name() {
        for place in ["/b", "/é\n 'x' \"y\" \\u{41}\\", "hdfs://h:1/b", ""] {
            let hold = Hold { place: place.to_owned(), ..Hold::default() };
            assert_eq!(Hold::decode(&hold.encode()).as_ref(), Ok(&hold));
        }
        for broken in ["a\\", "\\x", "\\u{", "\\u{d800}", "\\u{}"] {
            assert_eq!(unescaped(broken), None, "{broken}");
        }
    }

    #[test]
    fn a_mark_with_any_damage_is_refused() {
        let volume = MemVolume::new();
        let hold = Hold {
            place: "/b".to_owned(),
            tables: ["ns:t".to_owned()].into(),
            logs: [("a,1,7".to_owned(), 20)].into(),
            covered: BTreeSet::new(),
        };
        hold.publish(&volume, "x").expect("written");
        assert_eq!(load(&volume).expect("read"), BTreeMap::from([("x".to_owned(), hold.clone())]));
        let bytes = hold.encode();
        for at in 0..bytes.len() {
            let mut damaged = bytes.clone();
            damaged[at] ^= 1;
            assert!(Hold::decode(&damaged).is_err(), "byte {at}");
            assert!(Hold::decode(&bytes[..at]).is_err(), "{at} bytes");
        }
        volume.publish(&holds_dir().join("y"), b"").expect("written");
        assert!(load(&volume).expect_err("damaged").to_string().contains("backups/y"));
        release(&volume, "y").expect("gone");
        release(&volume, "y").expect("gone already");
        assert_eq!(load(&volume).expect("read").len(), 1);
    }
}
