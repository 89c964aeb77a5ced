//! The server under test: the release binary, started again and again on one directory, perhaps under limits.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, bail};
use rustix::process::{Pid, Signal};
use testkit::ReadyFile;

use crate::remote::Address;

/// Where a server lives; survives its restarts.
pub struct Site {
    binary: PathBuf,
    /// Everything of this site.
    pub dir: PathBuf,
    /// `hbase.rootdir`.
    pub root: PathBuf,
    /// Settings besides.
    pub defines: Vec<String>,
    /// Most descriptors the process may have.
    pub descriptors: Option<u64>,
    /// A cgroup (a directory with `cgroup.procs`) to start in.
    pub cgroup: Option<PathBuf>,
    /// `strace` options that the whole life of the process is to be under.
    pub injections: Vec<String>,
    /// Where its region server is now.
    pub region: Address,
    /// Where its master is now.
    pub master: Address,
    /// Where its coordination endpoint is now.
    pub coordination: Address,
    /// Where its status pages are now, if it has any.
    pub page: Address,
    /// Where its REST gateway is now, if it has one.
    pub rest: Address,
    /// Where its Thrift 1 gateway is now.
    pub thrift: Address,
    starts: u32,
}

/// A running process; killed when dropped.
pub struct Server {
    child: Child,
    pid: Option<Pid>,
    /// What it said on standard error so far.
    pub log: PathBuf,
    ready: ReadyFile,
    /// From the start until it said that it serves.
    pub start_took: Duration,
}

impl Site {
    pub fn new(binary: &Path, scratch: &Path, name: &str) -> anyhow::Result<Site> {
        let dir = scratch.join(name);
        if dir.exists() {
            std::fs::remove_dir_all(&dir).with_context(|| format!("cannot clear {}", dir.display()))?;
        }
        std::fs::create_dir_all(&dir)?;
        Ok(Site {
            binary: binary.to_owned(),
            root: dir.join("root"),
            dir,
            defines: Vec::new(),
            descriptors: None,
            cgroup: None,
            injections: Vec::new(),
            region: Address::default(),
            master: Address::default(),
            coordination: Address::default(),
            page: Address::default(),
            rest: Address::default(),
            thrift: Address::default(),
            starts: 0,
        })
    }

    pub fn define(&mut self, key: &str, value: impl std::fmt::Display) {
        self.defines.push(format!("{key}={value}"));
    }

    fn command(&mut self) -> anyhow::Result<(Command, PathBuf, ReadyFile)> {
        self.starts += 1;
        let mut before = String::new();
        if let Some(limit) = self.descriptors {
            before.push_str(&format!("ulimit -n {limit}; "));
        }
        if let Some(cgroup) = &self.cgroup {
            before.push_str(&format!("echo $$ > {}/cgroup.procs; ", cgroup.display()));
        }
        let mut command = Command::new("sh");
        command.arg("-c").arg(format!("{before}exec \"$@\"")).arg("sh");
        if !self.injections.is_empty() {
            let trace = self.dir.join(format!("strace-{}.txt", self.starts));
            command.args(["strace", "-f", "-qq", "-o"]).arg(trace).args(&self.injections);
        }
        command.arg(&self.binary).arg("-D").arg(format!("hbase.rootdir={}", self.root.display()));
        for define in [
            "hbase.zookeeper.property.clientPort=0",
            "hbase.master.port=0",
            "hbase.regionserver.port=0",
            "hbase.master.info.port=-1",
        ] {
            command.args(["-D", define]);
        }
        for define in &self.defines {
            command.arg("-D").arg(define);
        }
        let ready = ReadyFile::new(self.dir.join("ready.json"));
        ready.pass_to(&mut command);
        let log = self.dir.join(format!("stderr-{}.log", self.starts));
        command
            .env_remove("HBASE_CONF_DIR")
            .env("BASALT_LOG", "warn,basalt=info,basalt_regionserver=info")
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(std::fs::File::create(&log)?);
        Ok((command, log, ready))
    }

    /// Starts it and waits until it says that it serves.
    pub fn start(&mut self) -> anyhow::Result<Server> {
        self.start_within(Duration::from_secs(90))
    }

    pub fn start_within(&mut self, limit: Duration) -> anyhow::Result<Server> {
        let started = Instant::now();
        let mut server = self.spawn()?;
        let serving = match server.ready.wait(&mut server.child, limit) {
            Ok(serving) => serving,
            Err(why) => bail!("{why:#}; {}", server.last_words()),
        };
        server.pid = i32::try_from(serving.pid).ok().and_then(Pid::from_raw);
        self.master.set(testkit::local(serving.master_port));
        self.region.set(testkit::local(serving.region_port));
        self.coordination.set(testkit::local(serving.zookeeper_port));
        let doors =
            [(&self.page, serving.info_port), (&self.rest, serving.rest_port), (&self.thrift, serving.thrift_port)];
        for (address, port) in doors {
            if let Some(port) = port {
                address.set(testkit::local(port));
            }
        }
        server.start_took = started.elapsed();
        Ok(server)
    }

    /// Starts it without waiting for anything.
    pub fn spawn(&mut self) -> anyhow::Result<Server> {
        let (mut command, log, ready) = self.command()?;
        let child = command.spawn().with_context(|| format!("cannot start {}", self.binary.display()))?;
        Ok(Server { child, pid: None, log, ready, start_took: Duration::ZERO })
    }

    /// Everything that servers here have said, start after start.
    pub fn all_said(&self) -> String {
        let logs = (1..=self.starts).map(|n| self.dir.join(format!("stderr-{n}.log")));
        logs.map(|log| std::fs::read_to_string(log).unwrap_or_default()).collect()
    }
}

impl Server {
    /// The server's own process, also behind `strace`.
    pub fn pid(&self) -> u32 {
        self.pid.map_or_else(|| self.child.id(), |pid| pid.as_raw_nonzero().get().unsigned_abs())
    }

    pub fn is_alive(&mut self) -> bool {
        matches!(self.child.try_wait(), Ok(None))
    }

    pub fn signal(&self, signal: Signal) -> anyhow::Result<()> {
        let pid = self.pid.unwrap_or_else(|| Pid::from_child(&self.child));
        rustix::process::kill_process(pid, signal).context("the process is gone")
    }

    /// Its status, if it ends in time.
    pub fn wait(&mut self, limit: Duration) -> Option<ExitStatus> {
        let start = Instant::now();
        loop {
            match self.child.try_wait() {
                Ok(Some(status)) => return Some(status),
                Ok(None) if start.elapsed() < limit => std::thread::sleep(Duration::from_millis(10)),
                _ => return None,
            }
        }
    }

    /// SIGKILL.
    pub fn kill(mut self) {
        self.kill_now();
    }

    /// SIGTERM; an error if it does not end well.
    pub fn stop(self) -> anyhow::Result<()> {
        self.stop_within(Duration::from_secs(60)).map(|_| ())
    }

    /// SIGTERM; an error if it does not end well in this time. Returns how long it took.
    pub fn stop_within(mut self, limit: Duration) -> anyhow::Result<Duration> {
        let asked = Instant::now();
        self.signal(Signal::TERM)?;
        match self.wait(limit) {
            Some(status) if status.success() => Ok(asked.elapsed()),
            Some(status) => bail!("after SIGTERM it ended with {status}: {}", self.last_words()),
            None => bail!("still running {} s after SIGTERM", limit.as_secs()),
        }
    }

    fn kill_now(&mut self) {
        if self.is_alive() {
            // Behind strace: the server first, then strace ends with it.
            if let Some(pid) = self.pid {
                rustix::process::kill_process(pid, Signal::KILL).ok();
                if self.wait(Duration::from_secs(5)).is_some() {
                    return;
                }
            }
            self.child.kill().ok();
        }
        self.child.wait().ok();
    }

    /// What it said.
    pub fn said(&self) -> String {
        std::fs::read_to_string(&self.log).unwrap_or_default()
    }

    pub fn last_words(&self) -> String {
        let said = self.said();
        let lines: Vec<&str> = said.lines().rev().take(4).collect();
        lines.into_iter().rev().collect::<Vec<_>>().join(" | ")
    }

    /// MiB in memory.
    pub fn resident_mib(&self) -> u64 {
        self.status_mib("VmRSS:")
    }

    /// The most MiB that were ever in memory.
    pub fn peak_mib(&self) -> u64 {
        self.status_mib("VmHWM:")
    }

    fn status_mib(&self, name: &str) -> u64 {
        let text = std::fs::read_to_string(format!("/proc/{}/status", self.pid())).unwrap_or_default();
        let line = text.lines().find(|line| line.starts_with(name));
        line.and_then(|line| line.split_whitespace().nth(1)?.parse::<u64>().ok()).unwrap_or(0) / 1024
    }

    /// CPU time of the process so far.
    pub fn cpu(&self) -> Duration {
        let text = std::fs::read_to_string(format!("/proc/{}/stat", self.pid())).unwrap_or_default();
        // Behind the program's name, which may hold blanks, the 12th and 13th numbers are user's and system's ticks.
        let fields = text.rsplit(')').next().unwrap_or_default().split_whitespace();
        let ticks: u64 = fields.skip(11).take(2).filter_map(|field| field.parse::<u64>().ok()).sum();
        Duration::from_millis(ticks * 1000 / rustix::param::clock_ticks_per_second().max(1))
    }

    /// Open descriptors.
    pub fn descriptors(&self) -> usize {
        std::fs::read_dir(format!("/proc/{}/fd", self.pid())).map_or(0, Iterator::count)
    }

    /// Those of them that are sockets: store files come and go with the load.
    pub fn sockets(&self) -> usize {
        let is_socket = |path: std::path::PathBuf| {
            std::fs::read_link(path).is_ok_and(|target| target.to_string_lossy().starts_with("socket:"))
        };
        let entries = std::fs::read_dir(format!("/proc/{}/fd", self.pid()));
        entries.map_or(0, |entries| entries.flatten().filter(|entry| is_socket(entry.path())).count())
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.kill_now();
    }
}
