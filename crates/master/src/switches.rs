//! Switches that clients set and ask for. Those that HBase keeps over a restart are kept where it keeps them, in
//! `master:store` (`master_state`), so that either kind of master finds the other's; that of quotas, which is a
//! coordination node of HBase's, in a small file of lines `name=true`. The janitor's and the cleaners' are on after each
//! start, as HBase's are.
//!
//! Always true: a client is answered when what it set is on the disk. When it cannot be, nothing is set.

use crate::files::Files;
use crate::master_state::{self, States};
use crate::master_store::StoreError;
use crate::master_store::contents::Contents;
use crate::{ErrorKind, MasterError, Result};
use base::TimestampMs;
use fs::{FilePath, Volume};
use rootdir::paths::own_master_dir;
use std::sync::atomic::{AtomicBool, Ordering};

fn file() -> FilePath {
    own_master_dir().join("switches")
}

/// The file cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum SwitchesError {
    /// The volume failed.
    #[error(transparent)]
    Io(#[from] fs::Error),
    /// What HBase's master would read.
    #[error(
        "the switches in MasterData/data/master/store cannot be read: {0}; move its directory `state` away to start with all as in a new cluster"
    )]
    Store(#[from] StoreError),
    /// It says something else.
    #[error(
        "{path} has the line {line:?}, which sets no switch; move the file away to start with all switches as in a new cluster"
    )]
    Damaged {
        /// The file.
        path: FilePath,
        /// The line.
        line: String,
    },
}

/// In place of a row: it is on after each start.
const FLEETING: &str = "";
/// In place of a row: it is kept in the file.
const IN_FILE: &str = "file";

macro_rules! switches {
    ($($(#[$meta:meta])* $name:ident / $set:ident = $default:literal, $kept:expr;)*) => {
        /// The switches.
        #[derive(Debug)]
        pub struct Switches {
            /// Held while they are changed.
            changing: tokio::sync::Mutex<()>,
            /// What family `state` of the master's store has, switches that are not known here included.
            stored: parking_lot::Mutex<States>,
            $($name: AtomicBool,)*
        }

        impl Default for Switches {
            fn default() -> Switches {
                Switches { changing: tokio::sync::Mutex::default(), stored: Default::default(), $($name: AtomicBool::new($default),)* }
            }
        }

        impl Switches {
            $(
                $(#[$meta])*
                pub fn $name(&self) -> bool {
                    self.$name.load(Ordering::SeqCst)
                }

                /// Sets it, in memory; answers how it was.
                pub fn $set(&self, on: bool) -> bool {
                    self.$name.swap(on, Ordering::SeqCst)
                }
            )*

            /// Those that outlive a restart: their names in the file, and their rows in the master's store.
            fn kept(&self) -> impl Iterator<Item = (&'static str, &'static str, &AtomicBool)> {
                let all = [$((stringify!($name), $kept, &self.$name),)*];
                all.into_iter().filter(|(_, row, _)| *row != FLEETING)
            }
        }
    };
}

switches! {
    /// Whether regions may be split.
    split / set_split = true, "split_enabled";
    /// Whether regions may be merged.
    merge / set_merge = true, "merge_enabled";
    /// Whether regions may be moved for balance.
    balancer / set_balancer = true, "load_balancer_on";
    /// Whether regions may be split and merged for even sizes.
    normalizer / set_normalizer = true, "region_normalizer_on";
    /// Whether split parents are cleaned away.
    janitor / set_janitor = true, FLEETING;
    /// Whether archived files are cleaned away.
    cleaner / set_cleaner = true, FLEETING;
    /// Whether snapshots past their time are cleaned away.
    snapshot_cleanup / set_snapshot_cleanup = true, "snapshot_cleanup_enabled";
    /// Whether replication peers may be added, changed and removed.
    peer_modification / set_peer_modification = true, "replication_peer_modification_on";
    /// Whether quotas of requests count.
    rpc_throttle / set_rpc_throttle = true, IN_FILE;
}

impl Switches {
    /// As they were kept; as in a new cluster where nothing was. What only logs of HBase's master have, and what an earlier version kept in the
    /// file, is in the store when it returns.
    ///
    /// # Errors
    /// A file that cannot be read or is something else.
    pub(crate) fn load(volume: &dyn Volume, contents: &Contents) -> std::result::Result<Switches, SwitchesError> {
        let (switches, path) = (Switches::default(), file());
        let (stored, mut is_to_be_saved) = (contents.states.clone(), contents.logs_have_states);
        for (_, row, switch) in switches.kept() {
            if let Some((_, value)) = stored.get(row.as_bytes()) {
                match master_state::decode(value) {
                    Some(on) => switch.store(on, Ordering::SeqCst),
                    None => tracing::warn!(
                        row,
                        "this row of master:store, family state, holds no value that this version knows; the switch is on, as in a new cluster, until it is set again"
                    ),
                }
            }
        }
        *switches.stored.lock() = stored;
        if volume.exists(&path)? {
            let bytes = volume.read(&path)?;
            for line in String::from_utf8_lossy(&bytes).lines() {
                let damaged = || SwitchesError::Damaged { path: path.clone(), line: line.to_owned() };
                let (name, value) = line.split_once('=').ok_or_else(damaged)?;
                let value: bool = value.parse().map_err(|_| damaged())?;
                // One that is not known is of a later version.
                if let Some((_, row, switch)) = switches.kept().find(|(known, ..)| *known == name) {
                    switch.store(value, Ordering::SeqCst);
                    // An earlier version left the store alone: what it set is newer.
                    is_to_be_saved |= row != IN_FILE;
                }
            }
        }
        if is_to_be_saved {
            let (states, text) = (switches.states(), switches.encode());
            master_state::write(volume, &states)?;
            if volume.exists(&path)? {
                volume.publish(&path, text.as_bytes())?;
            }
            *switches.stored.lock() = states;
        }
        Ok(switches)
    }

    fn encode(&self) -> String {
        let in_file = self.kept().filter(|(_, row, _)| *row == IN_FILE);
        in_file.map(|(name, _, switch)| format!("{name}={}\n", switch.load(Ordering::SeqCst))).collect()
    }

    /// What the store is to have: what it had, and the switches that are not as it says. Each of those is newer than all that was there.
    fn states(&self) -> States {
        let mut states = self.stored.lock().clone();
        let newest = states.values().map(|(stamp, _)| stamp.0).max().unwrap_or(0);
        for (_, row, switch) in self.kept().filter(|(_, row, _)| *row != IN_FILE) {
            let on = switch.load(Ordering::SeqCst);
            let said = states.get(row.as_bytes()).and_then(|(_, value)| master_state::decode(value));
            if said.unwrap_or(true) != on || (said.is_none() && states.contains_key(row.as_bytes())) {
                states.insert(row.as_bytes().to_vec(), (TimestampMs(newest + 1), master_state::encode(on)));
            }
        }
        states
    }

    /// Sets switches, durably if they are of the kept ones; answers what `set` does.
    ///
    /// # Errors
    /// They cannot be kept; they are as they were then.
    pub(crate) async fn change<T>(&self, files: &Files, set: impl FnOnce(&Switches) -> T) -> Result<T> {
        let _one_at_a_time = self.changing.lock().await;
        let before: Vec<bool> = self.kept().map(|(_, _, switch)| switch.load(Ordering::SeqCst)).collect();
        let old = self.encode();
        let answer = set(self);
        let (new, states) = (self.encode(), self.states());
        let text = (new != old).then_some(new);
        let of_store = (states != *self.stored.lock()).then(|| states.clone());
        if text.is_none() && of_store.is_none() {
            return Ok(answer);
        }
        let write = move |volume: &dyn Volume| {
            if let Some(states) = of_store {
                let written = master_state::write(volume, &states);
                written.map_err(|error| MasterError::new(ErrorKind::Io, error))?;
            }
            if let Some(text) = text {
                volume.publish(&file(), text.as_bytes())?;
            }
            Ok(())
        };
        if let Err(error) = files.run(write).await {
            self.kept().zip(before).for_each(|((_, _, switch), was)| switch.store(was, Ordering::SeqCst));
            return Err(MasterError::new(
                ErrorKind::Io,
                format!("nothing is switched, for it could not be kept: {error}"),
            ));
        }
        *self.stored.lock() = states;
        Ok(answer)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::master_store::contents;
    use fs::MemVolume;

    fn load(volume: &dyn Volume) -> std::result::Result<Switches, SwitchesError> {
        Switches::load(volume, &contents::read(volume)?)
    }

    #[test]
    fn what_is_no_switch_is_named() {
        let volume = MemVolume::new();
        assert!(load(&volume).expect("a new cluster").split());
        volume.put_file(&file(), b"split=false\nof_a_later_version=true\n");
        let switches = load(&volume).expect("a file");
        assert!(!switches.split() && switches.merge());
        for line in ["split", "split=maybe", "\u{0}"] {
            volume.put_file(&file(), line.as_bytes());
            let error = load(&volume).expect_err("damaged").to_string();
            assert!(error.contains(file().as_str()) && error.contains(&format!("{line:?}")), "{error}");
        }
    }

    #[test]
    fn what_an_earlier_version_kept_moves_to_the_store_and_the_store_counts_from_then_on() {
        let volume = MemVolume::new();
        let row = |name: &str| name.as_bytes().to_vec();
        let of_hbase = States::from([
            (row("load_balancer_on"), (TimestampMs(70), master_state::encode(true))),
            (row("of_a_later_version"), (TimestampMs(80), b"?".to_vec())),
        ]);
        master_state::write(&volume, &of_hbase).expect("written");
        volume.put_file(&file(), b"balancer=false\nrpc_throttle=false\n");
        for _ in 0..2 {
            let switches = load(&volume).expect("read");
            assert!(!switches.balancer() && !switches.rpc_throttle() && switches.merge());
            assert_eq!(volume.read(&file()).expect("read"), b"rpc_throttle=false\n"[..]);
            let Contents { states, logs_have_states, .. } = contents::read(&volume).expect("read");
            assert_eq!(
                states[&row("load_balancer_on")],
                (TimestampMs(81), b"PBUF\x08\x00".to_vec()),
                "as HBase has it"
            );
            assert_eq!(states[&row("of_a_later_version")], of_hbase[&row("of_a_later_version")]);
            assert_eq!((states.len(), logs_have_states), (2, false));
        }
        // HBase's master has led since and switched it on.
        let newer = States::from([(row("load_balancer_on"), (TimestampMs(90), master_state::encode(true)))]);
        master_state::write(&volume, &newer).expect("written");
        assert!(load(&volume).expect("read").balancer());
    }

    #[test]
    fn what_only_a_log_of_hbases_master_has_is_found_and_kept() {
        use cell::{CellBuffer, CellSpec, CellType};
        let volume = MemVolume::new();
        let dir = rootdir::paths::master_wals_dir().join("m,1,1");
        volume.create_dir_all(&dir).expect("made");
        let mut cells = CellBuffer::new();
        let (type_code, value) = (CellType::Put.code(), master_state::encode(false));
        let (row, family, qualifier) = (b"split_enabled", b"state", b"d");
        cells.push_spec(
            &CellSpec { row, family, qualifier, timestamp: 7, type_code, value: &value, tags: &[] },
            base::SeqId(3),
        );
        let log = dir.join("m%2C1%2C1.5");
        let mut writer = wal::FileWriter::create(&volume, &log, false).expect("made");
        let region: std::sync::Arc<str> = "1595e783b53d99cd5eef43b6debb2682".into();
        let families: &[&[u8]] = &[b"state"];
        let key = wal::EntryKey::new(&region, "master:store", base::SeqId(3), TimestampMs(7), families);
        writer.append(&key, cells.bytes(), cells.len()).expect("written");
        writer.finish().expect("written");
        assert!(!load(&volume).expect("read").split());
        volume.remove_file(&log).expect("removed");
        assert!(!load(&volume).expect("read").split(), "it is in a file by now");
    }
}
