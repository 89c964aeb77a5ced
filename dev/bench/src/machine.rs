//! What the kernel says of this machine and of processes on it.

use anyhow::Context;
use rustix::time::{ClockId, clock_gettime};

/// Ticks of `/proc` in a second: `USER_HZ`, which Linux fixes at 100 for programs whatever the kernel's own timer does.
const TICKS_PER_SECOND: u64 = 100;
const TICK_NS: u64 = 1_000_000_000 / TICKS_PER_SECOND;

/// What a run was made on.
#[derive(Clone, Debug)]
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
        let after = |text: &str, name: &str| {
            let line = text.lines().find(|line| line.starts_with(name));
            line.and_then(|line| line.split_once(':')).map(|(_, value)| value.trim().to_owned()).unwrap_or_default()
        };
        let memory = after(&text("/proc/meminfo"), "MemTotal");
        let kilobytes: u64 = memory.split(' ').next().and_then(|n| n.parse().ok()).unwrap_or_default();
        Machine {
            processor: after(&text("/proc/cpuinfo"), "model name"),
            cores: std::thread::available_parallelism().map_or(0, usize::from),
            memory_bytes: kilobytes * 1024,
            kernel: text("/proc/sys/kernel/osrelease").trim().to_owned(),
        }
    }
}

/// CPU time of this process so far, user and system, all threads: what `getrusage` says, to the nanosecond.
pub fn own_cpu_ns() -> u64 {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

/// CPU time of another process so far, user and system, in steps of 10 ms.
pub fn process_cpu_ns(pid: u32) -> anyhow::Result<u64> {
    let path = format!("/proc/{pid}/stat");
    let text = std::fs::read_to_string(&path).with_context(|| format!("cannot read {path}"))?;
    // The name stands in parentheses and may hold anything; utime and stime are the 12th and 13th field after it.
    let after_name = text.rsplit_once(')').map_or("", |(_, rest)| rest);
    let ticks = after_name.split_whitespace().skip(11).take(2).map(str::parse::<u64>).sum::<Result<u64, _>>();
    Ok(ticks.with_context(|| format!("{path} is not as expected"))? * TICK_NS)
}

/// CPU time that all processors together were busy or taken away so far, in steps of 10 ms; 0 when nobody says.
pub fn busy_ns() -> u64 {
    let text = std::fs::read_to_string("/proc/stat").unwrap_or_default();
    let fields: Vec<u64> =
        text.lines().next().unwrap_or_default().split_whitespace().skip(1).map_while(|n| n.parse().ok()).collect();
    // user nice system idle iowait irq softirq steal; guest time is in user already.
    let busy: u64 =
        fields.iter().take(8).enumerate().filter(|(i, _)| !matches!(i, 3 | 4)).map(|(_, ticks)| ticks).sum();
    busy * TICK_NS
}
