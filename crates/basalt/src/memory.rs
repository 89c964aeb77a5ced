//! How much memory there is: the machine's, or the cgroup's limit where that is less.

use std::path::Path;

/// Share of the memory that is taken when nothing is set.
const DEFAULT_SHARE: f64 = 0.4;

/// The budget when none is set, in bytes.
pub fn default_budget_bytes() -> u64 {
    let info = rustix::system::sysinfo();
    let machine = (info.totalram as u64).saturating_mul(u64::from(info.mem_unit.max(1)));
    let limits = ["/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes"];
    let cgroup = limits.iter().find_map(|path| read_number(Path::new(path)));
    let available = cgroup.map_or(machine, |limit| limit.min(machine));
    (available as f64 * DEFAULT_SHARE) as u64
}

#[allow(clippy::disallowed_methods, reason = "the kernel's files are no part of a volume")]
fn read_number(path: &Path) -> Option<u64> {
    String::from_utf8(std::fs::read(path).ok()?).ok()?.trim().parse().ok()
}

/// Bytes of this process in memory; 0 when the system does not say.
#[allow(clippy::disallowed_methods, reason = "the kernel's files are no part of a volume")]
pub fn resident_bytes() -> u64 {
    let text = std::fs::read("/proc/self/statm").ok().and_then(|bytes| String::from_utf8(bytes).ok());
    let pages = text.and_then(|text| text.split_whitespace().nth(1)?.parse::<u64>().ok());
    pages.unwrap_or(0) * rustix::param::page_size() as u64
}
