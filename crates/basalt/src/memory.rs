//! How much memory there is: the machine's, or the limit of the cgroup (or of one above it) where that is less; and how memory that is
//! free goes back to the system.

use std::cell::Cell;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use base::ledger::Ledger;
use tokio::sync::watch;

/// Share of the memory that is taken when nothing is set.
const DEFAULT_SHARE: f64 = 0.4;
/// What the process needs for itself: requests and replies under way, blocks being written, threads.
const OWN_NEEDS_BYTES: u64 = 64 << 20;
/// With less to spend, huge pages would waste a good part of it.
const FEW_BYTES: u64 = 512 << 20;

/// What the process may take: the machine's memory, or the limit of the cgroup (or of one above it) where that is less.
pub fn available_bytes() -> u64 {
    let info = rustix::system::sysinfo();
    let machine = (info.totalram as u64).saturating_mul(u64::from(info.mem_unit.max(1)));
    let cgroup = limit_files(&read_text(Path::new("/proc/self/cgroup")).unwrap_or_default())
        .iter()
        .filter_map(|path| read_text(path)?.trim().parse::<u64>().ok())
        .min();
    cgroup.map_or(machine, |limit| limit.min(machine))
}

/// The budget when none is set, in bytes.
pub fn default_budget_bytes() -> u64 {
    let available = available_bytes();
    let left = available.saturating_sub(OWN_NEEDS_BYTES).max(available / 4);
    (left as f64 * DEFAULT_SHARE) as u64
}

/// When the budget is small: asks the kernel for small pages, as of a huge page a single byte in use keeps 2 MiB, and has the
/// allocator give back at once what is free. Under values of 200 KB it kept more than 100 MB for a second use otherwise, and a
/// cgroup of 192 MiB was full (`f49_memory_cap`). Before there are other threads.
pub fn spare(budget_bytes: u64) {
    if budget_bytes < FEW_BYTES {
        // A kernel without it gives what it gives.
        let _ = rustix::thread::disable_transparent_huge_pages(true);
        allocator::give_back_at_once();
    }
}

/// Resident bytes beyond what the ledger knows from which free memory is given back.
const FREE_BYTES: u64 = 48 << 20;
/// How long it takes until that is looked at again, at least and at most: longer while collecting brings little back, as it walks over all
/// pages of a thread, and what is left then is overhead and not free.
const COLLECT_AFTER: (Duration, Duration) = (Duration::from_secs(5), Duration::from_secs(40));
/// What is little.
const LITTLE_BYTES: u64 = 8 << 20;

/// Counts the collections of [`give_back_what_is_free`]: a thread with a lower number has one to do.
static COLLECTIONS: AtomicU64 = AtomicU64::new(0);

/// Gives free memory back to the system until `stopping` says so, whenever the process has much more than the ledger knows of. The
/// allocator does so only as it is called: after a load it keeps what the load needed for as long as nothing else happens. Pages belong to
/// threads, so each worker gives its own back when it has nothing to do ([`on_idle`]); those of the region server's pools follow with
/// their next job.
pub async fn give_back_what_is_free(ledger: Arc<Ledger>, workers: usize, mut stopping: watch::Receiver<bool>) {
    let mut pause = COLLECT_AFTER.0;
    loop {
        tokio::select! {
            () = tokio::time::sleep(pause) => {}
            _ = stopping.wait_for(|stop| *stop) => return,
        }
        let before = resident_bytes();
        if before < ledger.total_bytes() + FREE_BYTES {
            pause = COLLECT_AFTER.0;
            continue;
        }
        COLLECTIONS.fetch_add(1, Ordering::Relaxed);
        // Wakes those that sleep: they collect before they sleep again.
        let woken: Vec<_> = (0..workers).map(|_| tokio::spawn(tokio::task::yield_now())).collect();
        for task in woken {
            let _ = task.await;
        }
        let _ = tokio::task::spawn_blocking(allocator::collect).await;
        pause = next_pause(pause, before.saturating_sub(resident_bytes()));
    }
}

/// How long to wait after a collection that brought `back_bytes`.
fn next_pause(pause: Duration, back_bytes: u64) -> Duration {
    if back_bytes < LITTLE_BYTES { (pause * 2).min(COLLECT_AFTER.1) } else { COLLECT_AFTER.0 }
}

/// To be called by a worker that has nothing to do. Cost: a load, and rarely a walk over the thread's pages.
pub fn on_idle() {
    thread_local!(static DONE: Cell<u64> = const { Cell::new(0) });
    let asked = COLLECTIONS.load(Ordering::Relaxed);
    if DONE.replace(asked) != asked {
        allocator::collect();
    }
}

/// The allocator's own settings.
mod allocator {
    #![allow(
        unsafe_code,
        reason = "mimalloc takes options through its C interface only, or from the environment it was started in"
    )]

    use std::ffi::{c_int, c_long};

    /// `mi_option_purge_delay` in mimalloc.h, versions 2 and 3: milliseconds until a free page goes back to the system.
    const PURGE_DELAY: c_int = 15;

    unsafe extern "C" {
        fn mi_option_set(option: c_int, value: c_long);
        fn mi_collect(force: bool);
        #[cfg(test)]
        fn mi_option_get(option: c_int) -> c_long;
    }

    pub fn give_back_at_once() {
        // SAFETY: mimalloc is linked in as the global allocator; the option is an index into its table of options, which it
        // checks. It is not to be called while other threads do: none runs yet.
        unsafe { mi_option_set(PURGE_DELAY, 0) }
    }

    /// Gives back what is free of this thread's pages, and what all threads have given back to the allocator.
    pub fn collect() {
        // SAFETY: may be called at any time; it frees nothing that is in use, and takes its own locks.
        unsafe { mi_collect(true) }
    }

    #[test]
    fn the_option_is_the_one_meant() {
        // SAFETY: as above; this test alone touches options.
        let before = unsafe { mi_option_get(PURGE_DELAY) };
        assert!(before > 0, "by default free pages are kept for a while: {before} ms");
        give_back_at_once();
        // SAFETY: as above.
        assert_eq!(unsafe { mi_option_get(PURGE_DELAY) }, 0);
    }
}

/// Where limits of this process may stand: in its own cgroup and in each above, of version 2 and version 1. `cgroups` is
/// the text of `/proc/self/cgroup`.
fn limit_files(cgroups: &str) -> Vec<PathBuf> {
    let mut files = Vec::new();
    for line in cgroups.lines() {
        // number:controllers:path, without number and controllers for version 2
        let mut parts = line.splitn(3, ':').skip(1);
        let (Some(controllers), Some(path)) = (parts.next(), parts.next()) else { continue };
        let (mount, name) = match controllers {
            "" => ("/sys/fs/cgroup", "memory.max"),
            named if named.split(',').any(|one| one == "memory") => ("/sys/fs/cgroup/memory", "memory.limit_in_bytes"),
            _ => continue,
        };
        // In a container the path may be the host's while the mount shows the container's own: its root is always asked.
        let below = Path::new(path.trim_start_matches('/'));
        files.extend(below.ancestors().map(|part| Path::new(mount).join(part).join(name)));
    }
    files
}

#[allow(clippy::disallowed_methods, reason = "the kernel's files are no part of a volume")]
fn read_text(path: &Path) -> Option<String> {
    String::from_utf8(std::fs::read(path).ok()?).ok()
}

/// Bytes of this process in memory; 0 when the system does not say.
#[allow(clippy::disallowed_methods, reason = "the kernel's files are no part of a volume")]
pub fn resident_bytes() -> u64 {
    let text = std::fs::read("/proc/self/statm").ok().and_then(|bytes| String::from_utf8(bytes).ok());
    let pages = text.and_then(|text| text.split_whitespace().nth(1)?.parse::<u64>().ok());
    pages.unwrap_or(0) * rustix::param::page_size() as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn collections_that_bring_nothing_become_rare() {
        let seconds: Vec<u64> = std::iter::successors(Some(COLLECT_AFTER.0), |pause| Some(next_pause(*pause, 0)))
            .take(5)
            .map(|pause| pause.as_secs())
            .collect();
        assert_eq!(seconds, [5, 10, 20, 40, 40]);
        assert_eq!(next_pause(COLLECT_AFTER.1, 64 << 20), COLLECT_AFTER.0);
    }

    #[test]
    fn limits_are_sought_in_the_own_cgroup_and_above() {
        let files =
            |text: &str| -> Vec<String> { limit_files(text).iter().map(|path| path.display().to_string()).collect() };
        assert_eq!(
            files("0::/system.slice/basalt.service\n"),
            [
                "/sys/fs/cgroup/system.slice/basalt.service/memory.max",
                "/sys/fs/cgroup/system.slice/memory.max",
                "/sys/fs/cgroup/memory.max"
            ]
        );
        assert_eq!(
            files("5:cpu,cpuacct:/x\n4:memory:/a\n"),
            ["/sys/fs/cgroup/memory/a/memory.limit_in_bytes", "/sys/fs/cgroup/memory/memory.limit_in_bytes"]
        );
        assert!(files("nonsense\n\n1:2").is_empty());
    }
}
