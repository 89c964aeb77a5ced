//! `basalt dev`: an instance for tests, on free ports and in a directory that goes with it.
//!
//! Always true: when the process has ended, by itself or by SIGTERM, its directory is gone. After a SIGKILL it goes with the next
//! `basalt dev` of the same place.

use crate::cli::DevArguments;
use crate::{logging, settings, standalone};
use anyhow::{Context, Result};
use base::Config;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Names of directories: this, and the process id.
const PREFIX: &str = "basalt-dev-";

/// Where Linux has a file system in memory.
const IN_MEMORY: &str = "/dev/shm";

/// Memory of an instance that was given no size.
const MEMORY_BYTES: u64 = 256 << 20;

/// What holds unless somebody says otherwise.
const DEFAULTS: [(&str, &str); 5] = [
    (coordination::settings::CLIENT_PORT.key, "0"),
    (settings::MASTER_PORT.key, "0"),
    (settings::REGION_SERVER_PORT.key, "0"),
    (web::settings::INFO_PORT.key, "0"),
    (settings::BIND.key, "127.0.0.1"),
];

/// Runs the instance until it is told to end.
///
/// # Errors
/// A sentence saying why it could not start, or that it had to stop.
pub fn run(arguments: &DevArguments, mut config: Config, ready_file: Option<&Path>) -> Result<()> {
    // Those who test want to see their own output.
    logging::to_stderr_from("warn");
    for (key, value) in DEFAULTS {
        if !config.is_set(key) {
            config.set(key, value);
        }
    }
    if !config.is_set(settings::MEMORY_SIZE.key) {
        config.set(settings::MEMORY_SIZE.key, MEMORY_BYTES.to_string());
    }
    let directory = Throwaway::new(&parent_of(arguments))?;
    config.set(settings::ROOT_DIRECTORY.key, directory.0.display().to_string());
    if arguments.until_stdin_closes {
        end_with_stdin()?;
    }
    let again = config.clone();
    let read = std::sync::Arc::new(move || Ok(again.clone()));
    standalone::run(config, None, read, ready_file, standalone::Keeps::Nothing)
}

fn parent_of(arguments: &DevArguments) -> PathBuf {
    let memory = Path::new(IN_MEMORY);
    match &arguments.directory {
        Some(directory) => directory.clone(),
        None if !arguments.on_disk && memory.is_dir() => memory.to_owned(),
        None => std::env::temp_dir(),
    }
}

/// A directory that is removed when this is dropped.
struct Throwaway(PathBuf);

#[allow(clippy::disallowed_methods, reason = "a directory of the process, before there is a volume and after")]
impl Throwaway {
    fn new(parent: &Path) -> Result<Throwaway> {
        sweep(parent);
        let path = parent.join(format!("{PREFIX}{}", std::process::id()));
        std::fs::create_dir_all(&path).with_context(|| format!("cannot make {}", path.display()))?;
        Ok(Throwaway(path))
    }
}

#[allow(clippy::disallowed_methods, reason = "a directory of the process, after there is a volume")]
impl Drop for Throwaway {
    fn drop(&mut self) {
        // Threads of the server may still put a file there while the others are removed.
        for _ in 0..50 {
            match std::fs::remove_dir_all(&self.0) {
                Ok(()) => return,
                Err(error) if error.kind() == std::io::ErrorKind::NotFound => return,
                Err(_) => std::thread::sleep(Duration::from_millis(2)),
            }
        }
        eprintln!("basalt: cannot remove {}", self.0.display());
    }
}

/// Removes what instances left that were killed.
#[allow(clippy::disallowed_methods, reason = "directories of processes, before there is a volume")]
fn sweep(parent: &Path) {
    let Ok(entries) = std::fs::read_dir(parent) else { return };
    for entry in entries.flatten() {
        let name = entry.file_name();
        let pid = name.to_str().and_then(|name| name.strip_prefix(PREFIX)).and_then(|pid| pid.parse::<u32>().ok());
        if pid.is_some_and(|pid| !Path::new("/proc").join(pid.to_string()).exists()) {
            let _ = std::fs::remove_dir_all(entry.path());
        }
    }
}

/// Ends the process as SIGTERM does when nobody holds the other end of its standard input any more.
#[allow(clippy::disallowed_methods, reason = "a thread that waits for as long as the process lives")]
fn end_with_stdin() -> Result<()> {
    let wait = || {
        let mut ignored = [0; 512];
        let mut input = std::io::stdin().lock();
        while matches!(input.read(&mut ignored), Ok(1..)) {}
        // A process can always signal itself.
        let _ = rustix::process::kill_process(rustix::process::getpid(), rustix::process::Signal::TERM);
    };
    std::thread::Builder::new().name("stdin".into()).spawn(wait).context("cannot start a thread")?;
    Ok(())
}

#[cfg(test)]
#[allow(clippy::disallowed_methods, reason = "tests work on real directories")]
mod tests {
    use super::*;

    #[test]
    fn what_a_killed_instance_left_goes_and_what_lives_stays() {
        let parent = std::env::temp_dir().join(format!("basalt-dev-test-{}", std::process::id()));
        let (dead, other) = (parent.join(format!("{PREFIX}4294967295")), parent.join("somebody"));
        for directory in [&dead, &other] {
            std::fs::create_dir_all(directory).expect("made");
        }
        std::fs::write(dead.join("file"), b"x").expect("written");
        let own = Throwaway::new(&parent).expect("made");
        assert!(!dead.exists() && other.exists() && own.0.exists());
        sweep(&parent);
        assert!(own.0.exists(), "its process lives");
        let path = own.0.clone();
        drop(own);
        assert!(!path.exists());
        std::fs::remove_dir_all(parent).expect("removed");
    }
}
