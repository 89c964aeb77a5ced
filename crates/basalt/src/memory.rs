//! How much memory there is: the machine's, or the limit of the cgroup (or of one above it) where that is less.

use std::path::{Path, PathBuf};

/// Share of the memory that is taken when nothing is set.
const DEFAULT_SHARE: f64 = 0.4;
/// What the process needs for itself: requests and replies under way, blocks being written, threads.
const OWN_NEEDS_BYTES: u64 = 64 << 20;
/// With less to spend, huge pages would waste a good part of it.
const FEW_BYTES: u64 = 512 << 20;

/// The budget when none is set, in bytes.
pub fn default_budget_bytes() -> u64 {
    let info = rustix::system::sysinfo();
    let machine = (info.totalram as u64).saturating_mul(u64::from(info.mem_unit.max(1)));
    let cgroup = limit_files(&read_text(Path::new("/proc/self/cgroup")).unwrap_or_default())
        .iter()
        .filter_map(|path| read_text(path)?.trim().parse::<u64>().ok())
        .min();
    let available = cgroup.map_or(machine, |limit| limit.min(machine));
    let left = available.saturating_sub(OWN_NEEDS_BYTES).max(available / 4);
    (left as f64 * DEFAULT_SHARE) as u64
}

/// Asks the kernel for small pages when the budget is small: of a huge page a single byte in use keeps 2 MiB.
pub fn spare(budget_bytes: u64) {
    if budget_bytes < FEW_BYTES {
        // A kernel without it gives what it gives.
        let _ = rustix::thread::disable_transparent_huge_pages(true);
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
