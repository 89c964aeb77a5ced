//! What any process of Basalt's can say of itself: what the kernel says, under the names that Prometheus' own clients use, and what the pages show.

use crate::logging;
use crate::profiles::Recorder;
use base::metrics::{JVM, PROCESS, Registry, Sink};
use base::{Ledger, Rng};
use std::sync::{Arc, OnceLock};
use web::details::{Heap, Machine, ProcessDetails, ProfileRequest, Profiles, Runtime, Thread};

/// The source of the pages about the process.
pub struct OwnProcess {
    /// In every form of this process.
    token: String,
    started_ms: i64,
    recorder: Recorder,
    ledger: Accounts,
}

/// The process's memory ledger, once it has one.
type Accounts = Arc<OnceLock<Arc<Ledger>>>;

impl OwnProcess {
    /// Of this process, which was started then.
    pub fn new(started_ms: i64) -> OwnProcess {
        let ledger = Accounts::default();
        OwnProcess { token: Rng::from_system().uuid_hex(), started_ms, recorder: Recorder::new("perf"), ledger }
    }

    /// Its memory is accounted for in `ledger` from now on.
    pub fn set_ledger(&self, ledger: &Arc<Ledger>) {
        let _first = self.ledger.set(ledger.clone());
    }

    /// Puts the process's numbers into `registry`.
    pub fn register(&self, registry: &Registry) {
        let (started_ms, ledger) = (self.started_ms, self.ledger.clone());
        registry.collect(move |sink, _| {
            collect(sink.bean(PROCESS), started_ms);
            collect_jvm(sink.bean(JVM), &ledger);
        });
    }
}

/// What stands for a JVM's heap.
fn heap(ledger: &Accounts) -> Heap {
    let accounts = ledger.get().map(|ledger| (ledger.total_bytes(), ledger.budget_bytes()));
    Heap::of(crate::memory::resident_bytes(), accounts, crate::memory::available_bytes())
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
            virtual_bytes: times.virtual_bytes,
            heap: heap(&self.ledger),
            pid: std::process::id(),
            arguments: std::env::args_os().skip(1).map(|argument| argument.to_string_lossy().into_owned()).collect(),
            threads: times.threads,
            cpu_ns: times.cpu_ticks.saturating_mul(NANOS_OF_A_TICK),
            open_files: open_files(),
            max_files: max_files(),
            load_average: one_minute,
            processors: std::thread::available_parallelism().map_or(0, |count| count.get() as u64),
            machine_bytes: machine.totalram.saturating_mul(unit),
            free_bytes: machine.freeram.saturating_mul(unit),
            swap_bytes: machine.totalswap.saturating_mul(unit),
            free_swap_bytes: machine.freeswap.saturating_mul(unit),
            machine: own_machine(),
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

fn collect(sink: &mut Sink, started_ms: i64) {
    let times = Times::of_process();
    sink.gauge("residentMemoryBytes", crate::memory::resident_bytes())
        .real("startTimeSeconds", started_ms as f64 / 1000.0)
        .gauge("maxFds", max_files())
        .gauge("openFds", open_files())
        .real("cpuSecondsTotal", times.cpu_ticks as f64 / TICKS_PER_SECOND)
        .gauge("threads", times.threads);
}

fn own_machine() -> Machine {
    let names = rustix::system::uname();
    let text = |name: &std::ffi::CStr| name.to_string_lossy().into_owned();
    let processor = match std::env::consts::ARCH {
        "x86_64" => "amd64",
        other => other,
    };
    Machine {
        host: text(names.nodename()),
        system: text(names.sysname()),
        release: text(names.release()),
        processor: processor.to_owned(),
    }
}

/// What of a JVM's metrics a process without one has: memory in MiB (as `/jmx` has it: [`Heap`]), threads by what they do. Nothing is ever collected, and no time spent on it.
fn collect_jvm(sink: &mut Sink, ledger: &Accounts) {
    let threads = crate::threads::all();
    let count = |states: &str| threads.iter().filter(|thread| states.contains(&thread.state)).count() as u64;
    let heap = heap(ledger);
    let (used, outside) = (heap.used_bytes as f64 / MIB, heap.outside_bytes as f64 / MIB);
    sink.real("MemHeapUsedM", used)
        .real("MemHeapCommittedM", used)
        .real("MemHeapMaxM", heap.max_bytes as f64 / MIB)
        .real("MemNonHeapUsedM", outside)
        .real("MemNonHeapCommittedM", outside)
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
    virtual_bytes: u64,
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
    Some(Times { cpu_ticks: number(11)? + number(12)?, threads: number(17)?, virtual_bytes: number(20)? })
}

#[cfg(test)]
mod tests {
    use super::*;
    use base::metrics::Number;

    #[test]
    fn the_kernels_line_is_read() {
        let line = "77 (a ) b) S 1 77 77 0 -1 4194368 9 0 0 0 25 7 0 0 20 0 9 0 100 1 2 3";
        assert_eq!(parse(line), Some(Times { cpu_ticks: 32, threads: 9, virtual_bytes: 1 }));
        assert_eq!(parse(""), None);
        let registry = Registry::new();
        let process = OwnProcess::new(1000);
        process.register(&registry);
        let samples = registry.read(0);
        let number = |name: &str| samples.iter().find(|sample| sample.name == name).expect(name).number;
        assert!(number("openFds") != Number::Long(0) && number("ThreadsRunnable") != Number::Long(0), "{samples:?}");
        let runtime = process.runtime();
        assert!(runtime.threads > 0 && runtime.processors > 0 && runtime.resident_bytes > 1 << 20, "{runtime:?}");
        assert!(
            runtime.resident_bytes < runtime.virtual_bytes && runtime.free_bytes < runtime.machine_bytes,
            "{runtime:?}"
        );
        assert!(runtime.pid == std::process::id() && !runtime.machine.release.is_empty(), "{runtime:?}");
        // Without a ledger all of it stands for the heap; with one, what it has accounts of.
        let heap = runtime.heap;
        assert!(heap.used_bytes > 1 << 20 && heap.used_bytes < heap.max_bytes && heap.outside_bytes == 0, "{heap:?}");
        let ledger = Ledger::new(64 << 20);
        let _held = ledger.charge(base::Holder::Requests, 1000);
        process.set_ledger(&ledger);
        let heap = process.runtime().heap;
        assert_eq!((heap.used_bytes, heap.max_bytes), (1000, 64 << 20));
        assert!(heap.outside_bytes > 1 << 20, "{heap:?}");
        let samples = registry.read(0);
        let max = samples.iter().find(|sample| sample.name == "MemHeapMaxM").expect("it is there").number;
        assert_eq!(max, Number::Double(64.0));
    }
}
