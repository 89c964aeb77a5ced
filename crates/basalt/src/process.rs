//! What any process of Basalt's can say of itself: what the kernel says, under the names that Prometheus' own clients use, and what the pages show.

use crate::logging;
use crate::profiles::Recorder;
use base::Rng;
use base::metrics::{JVM, PROCESS, Registry, Sink};
use web::details::{ProcessDetails, ProfileRequest, Profiles, Runtime, Thread};

/// The source of the pages about the process.
pub struct OwnProcess {
    /// In every form of this process.
    token: String,
    started_ms: i64,
    recorder: Recorder,
}

impl OwnProcess {
    /// Of this process, which was started then.
    pub fn new(started_ms: i64) -> OwnProcess {
        OwnProcess { token: Rng::from_system().uuid_hex(), started_ms, recorder: Recorder::new("perf") }
    }
}

impl ProcessDetails for OwnProcess {
    fn threads(&self) -> Vec<Thread> {
        crate::threads::all()
    }

    fn profiles(&self) -> Profiles {
        self.recorder.list()
    }

    fn start_profile(&self, request: ProfileRequest) -> Result<(), String> {
        self.recorder.start(request)
    }

    fn profile(&self, id: u64) -> Option<String> {
        self.recorder.svg(id)
    }

    fn runtime(&self) -> Runtime {
        let (times, machine) = (Times::of_process(), rustix::system::sysinfo());
        let unit = u64::from(machine.mem_unit.max(1));
        let one_minute = machine.loads[0] as f64 / 65_536.0;
        Runtime {
            started_ms: self.started_ms,
            resident_bytes: crate::memory::resident_bytes(),
            limit_bytes: crate::memory::available_bytes(),
            threads: times.threads,
            cpu_ns: times.cpu_ticks.saturating_mul(NANOS_OF_A_TICK),
            open_files: open_files(),
            max_files: max_files(),
            load_average: one_minute,
            processors: std::thread::available_parallelism().map_or(0, |count| count.get() as u64),
            machine_bytes: machine.totalram.saturating_mul(unit),
            free_bytes: machine.freeram.saturating_mul(unit),
        }
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
const NANOS_OF_A_TICK: u64 = 10_000_000;
const MIB: f64 = 1_048_576.0;

/// Puts the process's numbers into `registry`; `started_ms` is when it was started.
pub fn register(registry: &Registry, started_ms: i64) {
    registry.collect(move |sink, _| {
        collect(sink.bean(PROCESS), started_ms);
        collect_jvm(sink.bean(JVM));
    });
}

fn collect(sink: &mut Sink, started_ms: i64) {
    let times = Times::of_process();
    sink.gauge("residentMemoryBytes", crate::memory::resident_bytes())
        .real("startTimeSeconds", started_ms as f64 / 1000.0)
        .gauge("maxFds", max_files())
        .gauge("openFds", open_files())
        .real("cpuSecondsTotal", times.cpu_ticks as f64 / TICKS_PER_SECOND)
        .gauge("threads", times.threads);
}

/// What of a JVM's metrics a process without one has: memory in MiB, threads by what they do. Nothing is ever collected, and no time spent on it.
fn collect_jvm(sink: &mut Sink) {
    let threads = crate::threads::all();
    let count = |states: &str| threads.iter().filter(|thread| states.contains(&thread.state)).count() as u64;
    let used = crate::memory::resident_bytes() as f64 / MIB;
    sink.real("MemHeapUsedM", used)
        .real("MemHeapCommittedM", used)
        .real("MemHeapMaxM", crate::memory::available_bytes() as f64 / MIB)
        .real("MemMaxM", crate::memory::available_bytes() as f64 / MIB)
        .counter("GcCount", 0)
        .counter("GcTimeMillis", 0)
        .gauge("ThreadsNew", 0)
        .gauge("ThreadsRunnable", count("R"))
        .gauge("ThreadsBlocked", count("D"))
        .gauge("ThreadsWaiting", count("S"))
        .gauge("ThreadsTimedWaiting", 0)
        .gauge("ThreadsTerminated", count("ZX"));
}

/// 0 where the kernel does not say.
#[allow(clippy::disallowed_methods, reason = "the kernel's files, not the volume's")]
fn open_files() -> u64 {
    std::fs::read_dir("/proc/self/fd").map_or(0, |open| open.count() as u64)
}

fn max_files() -> u64 {
    rustix::process::getrlimit(rustix::process::Resource::Nofile).current.unwrap_or(u64::MAX)
}

/// Of the process's line in `stat`; zeros where the kernel does not say.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Times {
    cpu_ticks: u64,
    threads: u64,
}

impl Times {
    #[allow(clippy::disallowed_methods, reason = "the kernel's files, not the volume's")]
    fn of_process() -> Times {
        std::fs::read_to_string("/proc/self/stat").ok().as_deref().and_then(parse).unwrap_or_default()
    }
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
    use base::metrics::Number;

    #[test]
    fn the_kernels_line_is_read() {
        let line = "77 (a ) b) S 1 77 77 0 -1 4194368 9 0 0 0 25 7 0 0 20 0 9 0 100 1 2 3";
        assert_eq!(parse(line), Some(Times { cpu_ticks: 32, threads: 9 }));
        assert_eq!(parse(""), None);
        let registry = Registry::new();
        register(&registry, 1000);
        let samples = registry.read(0);
        let number = |name: &str| samples.iter().find(|sample| sample.name == name).expect(name).number;
        assert!(number("openFds") != Number::Long(0) && number("ThreadsRunnable") != Number::Long(0), "{samples:?}");
        let runtime = OwnProcess::new(1000).runtime();
        assert!(runtime.threads > 0 && runtime.processors > 0 && runtime.resident_bytes > 1 << 20, "{runtime:?}");
        assert!(
            runtime.resident_bytes < runtime.limit_bytes && runtime.free_bytes < runtime.machine_bytes,
            "{runtime:?}"
        );
    }
}
