//! What the kernel says of a server: CPU time, memory, bytes read and written; with those of its children.

use std::ops::{Add, Sub};

use anyhow::Context;
use rustix::time::{ClockId, clock_gettime};
use serde::{Deserialize, Serialize};

/// Nanoseconds of one tick of `/proc`: `USER_HZ`, which Linux fixes at 100 for programs whatever the kernel's timer does.
const TICK_NS: u64 = 1_000_000_000 / 100;

/// What a process and its children used so far; or between two looks, as the difference.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Usage {
    /// CPU time, user and system, of all threads, in steps of 10 ms.
    pub cpu_ns: u64,
    /// Resident memory now.
    pub resident_bytes: u64,
    /// Most resident memory since the start, or since [`Usage::forget_peak`].
    pub peak_bytes: u64,
    /// Bytes fetched from storage.
    pub disk_read_bytes: u64,
    /// Bytes sent (or to be sent, from the page cache) to storage.
    pub disk_written_bytes: u64,
    /// Bytes that read calls brought, from wherever: files, page cache, sockets.
    pub call_read_bytes: u64,
    /// Bytes that write calls took.
    pub call_written_bytes: u64,
}

impl Usage {
    /// Of process `pid` and its living children. Children that ended count for CPU time.
    ///
    /// # Errors
    /// There is no such process, or we may not look.
    pub fn of(pid: u32) -> anyhow::Result<Usage> {
        let mut sum = one(pid)?;
        let mut todo = children(pid);
        while let Some(child) = todo.pop() {
            // it may have ended meanwhile
            if let Ok(usage) = one(child) {
                sum = sum + usage;
                todo.extend(children(child));
            }
        }
        Ok(sum)
    }

    /// Lets `peak_bytes` of `pid` begin anew. Without the right to do so, peaks stay those since the start.
    pub fn forget_peak(pid: u32) {
        std::fs::write(format!("/proc/{pid}/clear_refs"), "5").ok();
    }
}

impl Add for Usage {
    type Output = Usage;

    /// What two processes used together.
    fn add(self, other: Usage) -> Usage {
        Usage {
            cpu_ns: self.cpu_ns + other.cpu_ns,
            resident_bytes: self.resident_bytes + other.resident_bytes,
            peak_bytes: self.peak_bytes + other.peak_bytes,
            disk_read_bytes: self.disk_read_bytes + other.disk_read_bytes,
            disk_written_bytes: self.disk_written_bytes + other.disk_written_bytes,
            call_read_bytes: self.call_read_bytes + other.call_read_bytes,
            call_written_bytes: self.call_written_bytes + other.call_written_bytes,
        }
    }
}

impl Sub for Usage {
    type Output = Usage;

    /// What was used between two looks; memory is that of the later one.
    fn sub(self, earlier: Usage) -> Usage {
        Usage {
            cpu_ns: self.cpu_ns.saturating_sub(earlier.cpu_ns),
            resident_bytes: self.resident_bytes,
            peak_bytes: self.peak_bytes,
            disk_read_bytes: self.disk_read_bytes.saturating_sub(earlier.disk_read_bytes),
            disk_written_bytes: self.disk_written_bytes.saturating_sub(earlier.disk_written_bytes),
            call_read_bytes: self.call_read_bytes.saturating_sub(earlier.call_read_bytes),
            call_written_bytes: self.call_written_bytes.saturating_sub(earlier.call_written_bytes),
        }
    }
}

fn one(pid: u32) -> anyhow::Result<Usage> {
    let read = |what: &str| {
        let path = format!("/proc/{pid}/{what}");
        std::fs::read_to_string(&path).with_context(|| format!("cannot read {path}"))
    };
    let stat = read("stat")?;
    // The name stands in parentheses and may hold anything; after it, fields 12 to 15 are utime, stime, and those of
    // children that were waited for.
    let after_name = stat.rsplit_once(')').map_or("", |(_, rest)| rest);
    let ticks: u64 = after_name.split_whitespace().skip(11).take(4).filter_map(|n| n.parse::<u64>().ok()).sum();
    let status = read("status")?;
    // Threads of the kernel and processes of others have no io.
    let io = read("io").unwrap_or_default();
    Ok(Usage {
        cpu_ns: ticks * TICK_NS,
        resident_bytes: field(&status, "VmRSS:") * 1024,
        peak_bytes: field(&status, "VmHWM:") * 1024,
        disk_read_bytes: field(&io, "read_bytes:"),
        disk_written_bytes: field(&io, "write_bytes:"),
        call_read_bytes: field(&io, "rchar:"),
        call_written_bytes: field(&io, "wchar:"),
    })
}

fn field(text: &str, name: &str) -> u64 {
    let rest = text.lines().find_map(|line| line.strip_prefix(name)).unwrap_or_default();
    rest.split_whitespace().next().and_then(|n| n.parse().ok()).unwrap_or_default()
}

fn children(pid: u32) -> Vec<u32> {
    let Ok(tasks) = std::fs::read_dir(format!("/proc/{pid}/task")) else { return Vec::new() };
    let lists = tasks.flatten().filter_map(|task| std::fs::read_to_string(task.path().join("children")).ok());
    lists.flat_map(|list| list.split_whitespace().filter_map(|n| n.parse().ok()).collect::<Vec<u32>>()).collect()
}

/// CPU time of this process so far, all threads.
pub fn own_cpu_ns() -> u64 {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

/// CPU time that all processors together were busy (or taken away) so far; 0 when nobody says.
pub fn busy_ns() -> u64 {
    let text = std::fs::read_to_string("/proc/stat").unwrap_or_default();
    let first = text.lines().next().unwrap_or_default();
    let fields: Vec<u64> = first.split_whitespace().skip(1).map_while(|n| n.parse().ok()).collect();
    // user nice system idle iowait irq softirq steal; guest time is in user already
    let busy: u64 = fields.iter().take(8).enumerate().filter(|(i, _)| !matches!(i, 3 | 4)).map(|(_, t)| t).sum();
    busy * TICK_NS
}

/// What a run was made on.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Machine {
    /// Model of the processor.
    pub processor: String,
    /// Processors that the scheduler has.
    pub cores: usize,
    /// Memory in bytes.
    pub memory_bytes: u64,
    /// Kernel release.
    pub kernel: String,
}

impl Machine {
    /// This one. What cannot be read is empty or 0.
    pub fn this() -> Machine {
        let text = |path: &str| std::fs::read_to_string(path).unwrap_or_default();
        let cpu = text("/proc/cpuinfo");
        let model = cpu.lines().find(|line| line.starts_with("model name")).and_then(|line| line.split_once(':'));
        Machine {
            processor: model.map(|(_, name)| name.trim().to_owned()).unwrap_or_default(),
            cores: std::thread::available_parallelism().map_or(0, usize::from),
            memory_bytes: field(&text("/proc/meminfo"), "MemTotal:") * 1024,
            kernel: text("/proc/sys/kernel/osrelease").trim().to_owned(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn own_usage_grows() {
        let before = Usage::of(std::process::id()).expect("of ourselves");
        assert!(before.resident_bytes > 0 && before.peak_bytes >= before.resident_bytes);
        let started = own_cpu_ns();
        let mut x = 0_u64;
        while own_cpu_ns() - started < 40_000_000 {
            x = std::hint::black_box(x.wrapping_add(1));
        }
        let used = Usage::of(std::process::id()).expect("of ourselves") - before;
        assert!(used.cpu_ns >= 20_000_000, "{} ns", used.cpu_ns);
        assert!(Usage::of(u32::MAX).is_err());
    }
}
