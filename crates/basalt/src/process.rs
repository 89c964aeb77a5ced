//! What any process of Basalt's can say of itself: what the kernel says, under the names that Prometheus' own clients use, and what the pages show.

use crate::logging;
use base::Rng;
use base::metrics::{PROCESS, Registry, Sink};
use web::details::{ProcessDetails, Thread};

/// The source of the pages about the process.
pub struct OwnProcess {
    /// In every form of this process.
    token: String,
}

impl OwnProcess {
    /// Of this process.
    pub fn new() -> OwnProcess {
        OwnProcess { token: Rng::from_system().uuid_hex() }
    }
}

impl ProcessDetails for OwnProcess {
    fn threads(&self) -> Vec<Thread> {
        crate::threads::all()
    }

    fn log_lines(&self) -> Vec<String> {
        logging::log().map(logging::Log::lines).unwrap_or_default()
    }

    fn log_filter(&self) -> String {
        logging::log().map(logging::Log::filter).unwrap_or_default()
    }

    fn set_log_level(&self, part: &str, level: &str) -> Result<String, String> {
        logging::log().ok_or("this process keeps no log")?.set_level(part, level)
    }

    fn token(&self) -> &str {
        &self.token
    }
}

/// The kernel's ticks in a second, on every Linux that this runs on.
const TICKS_PER_SECOND: f64 = 100.0;

/// Puts the process's numbers into `registry`; `started_ms` is when it was started.
pub fn register(registry: &Registry, started_ms: i64) {
    registry.collect(move |sink, _| collect(sink.bean(PROCESS), started_ms));
}

#[allow(clippy::disallowed_methods, reason = "the kernel's files, not the volume's")]
fn collect(sink: &mut Sink, started_ms: i64) {
    sink.gauge("residentMemoryBytes", crate::memory::resident_bytes())
        .real("startTimeSeconds", started_ms as f64 / 1000.0)
        .gauge("maxFds", rustix::process::getrlimit(rustix::process::Resource::Nofile).current.unwrap_or(u64::MAX));
    // Each is there wherever the kernel has it.
    if let Ok(open) = std::fs::read_dir("/proc/self/fd") {
        sink.gauge("openFds", open.count() as u64);
    }
    if let Some(times) = std::fs::read_to_string("/proc/self/stat").ok().as_deref().and_then(parse) {
        sink.real("cpuSecondsTotal", times.cpu_ticks as f64 / TICKS_PER_SECOND).gauge("threads", times.threads);
    }
}

/// Of the process's line in `stat`.
#[derive(Debug, PartialEq, Eq)]
struct Times {
    cpu_ticks: u64,
    threads: u64,
}

fn parse(stat: &str) -> Option<Times> {
    // The name, in parentheses, may have spaces.
    let fields: Vec<&str> = stat.rsplit_once(") ")?.1.split_whitespace().collect();
    let number = |at: usize| fields.get(at)?.parse::<u64>().ok();
    Some(Times { cpu_ticks: number(11)? + number(12)?, threads: number(17)? })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kernels_line_is_read() {
        let line = "77 (a ) b) S 1 77 77 0 -1 4194368 9 0 0 0 25 7 0 0 20 0 9 0 100 1 2 3";
        assert_eq!(parse(line), Some(Times { cpu_ticks: 32, threads: 9 }));
        assert_eq!(parse(""), None);
        let registry = Registry::new();
        register(&registry, 1000);
        let samples = registry.read(0);
        assert!(samples.iter().any(|sample| sample.name == "openFds"), "{samples:?}");
    }
}
