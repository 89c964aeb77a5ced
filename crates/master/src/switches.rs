//! Switches that clients set and ask for. Those that HBase keeps over a restart are kept here, too, in a small file of
//! lines `name=true`; the janitor's and the cleaners' are on after each start, as HBase's are. Where nothing listens to
//! a switch yet (balancer), its state is kept all the same.
//!
//! Always true: a client is answered when what it set is on the disk. When it cannot be, nothing is set.

use crate::files::Files;
use crate::{ErrorKind, MasterError, Result};
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

macro_rules! switches {
    ($($(#[$meta:meta])* $name:ident / $set:ident = $default:literal, $kept:ident;)*) => {
        /// The switches.
        #[derive(Debug)]
        pub struct Switches {
            /// Held while they are changed.
            changing: tokio::sync::Mutex<()>,
            $($name: AtomicBool,)*
        }

        impl Default for Switches {
            fn default() -> Switches {
                Switches { changing: tokio::sync::Mutex::default(), $($name: AtomicBool::new($default),)* }
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

            /// Those that outlive a restart.
            fn kept(&self) -> impl Iterator<Item = (&'static str, &AtomicBool)> {
                let all = [$((stringify!($name), &self.$name, stringify!($kept) == "kept"),)*];
                all.into_iter().filter_map(|(name, switch, kept)| kept.then_some((name, switch)))
            }
        }
    };
}

switches! {
    /// Whether regions may be split.
    split / set_split = true, kept;
    /// Whether regions may be merged.
    merge / set_merge = true, kept;
    /// Whether regions may be moved for balance.
    balancer / set_balancer = true, kept;
    /// Whether regions may be split and merged for even sizes.
    normalizer / set_normalizer = true, kept;
    /// Whether split parents are cleaned away.
    janitor / set_janitor = true, fleeting;
    /// Whether archived files are cleaned away.
    cleaner / set_cleaner = true, fleeting;
    /// Whether snapshots past their time are cleaned away.
    snapshot_cleanup / set_snapshot_cleanup = true, kept;
    /// Whether replication peers may be added, changed and removed.
    peer_modification / set_peer_modification = true, kept;
    /// Whether quotas of requests count.
    rpc_throttle / set_rpc_throttle = true, kept;
}

impl Switches {
    /// As they were kept; as in a new cluster where nothing was.
    ///
    /// # Errors
    /// A file that cannot be read or is something else.
    pub(crate) fn load(volume: &dyn Volume) -> std::result::Result<Switches, SwitchesError> {
        let (switches, path) = (Switches::default(), file());
        if !volume.exists(&path)? {
            return Ok(switches);
        }
        let bytes = volume.read(&path)?;
        for line in String::from_utf8_lossy(&bytes).lines() {
            let damaged = || SwitchesError::Damaged { path: path.clone(), line: line.to_owned() };
            let (name, value) = line.split_once('=').ok_or_else(damaged)?;
            let value: bool = value.parse().map_err(|_| damaged())?;
            // One that is not known is of a later version.
            if let Some((_, switch)) = switches.kept().find(|(known, _)| *known == name) {
                switch.store(value, Ordering::SeqCst);
            }
        }
        Ok(switches)
    }

    fn encode(&self) -> String {
        self.kept().map(|(name, switch)| format!("{name}={}\n", switch.load(Ordering::SeqCst))).collect()
    }

    /// Sets switches, durably if they are of the kept ones; answers what `set` does.
    ///
    /// # Errors
    /// They cannot be kept; they are as they were then.
    pub(crate) async fn change<T>(&self, files: &Files, set: impl FnOnce(&Switches) -> T) -> Result<T> {
        let _one_at_a_time = self.changing.lock().await;
        let before: Vec<bool> = self.kept().map(|(_, switch)| switch.load(Ordering::SeqCst)).collect();
        let old = self.encode();
        let answer = set(self);
        let new = self.encode();
        if new == old {
            return Ok(answer);
        }
        let kept = files.run(move |volume| Ok(volume.publish(&file(), new.as_bytes())?)).await;
        if let Err(error) = kept {
            self.kept().zip(before).for_each(|((_, switch), was)| switch.store(was, Ordering::SeqCst));
            return Err(MasterError::new(
                ErrorKind::Io,
                format!("nothing is switched, for it could not be kept: {error}"),
            ));
        }
        Ok(answer)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use fs::MemVolume;

    #[test]
    fn what_is_no_switch_is_named() {
        let volume = MemVolume::new();
        assert!(Switches::load(&volume).expect("a new cluster").split());
        volume.put_file(&file(), b"split=false\nof_a_later_version=true\n");
        let switches = Switches::load(&volume).expect("a file");
        assert!(!switches.split() && switches.merge());
        for line in ["split", "split=maybe", "\u{0}"] {
            volume.put_file(&file(), line.as_bytes());
            let error = Switches::load(&volume).expect_err("damaged").to_string();
            assert!(error.contains(file().as_str()) && error.contains(&format!("{line:?}")), "{error}");
        }
    }
}
