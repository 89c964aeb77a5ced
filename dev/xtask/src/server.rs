//! A server to test against, on ports of its own: the release binary, or the real HBase to check the tests with.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::OnceLock;
use std::time::{Duration, Instant};

use anyhow::{Context, bail};
use testkit::ReadyFile;

use crate::{run, toolchain};

/// Which server.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// [`binary`].
    Basalt,
    /// Apache HBase from its jars.
    HBase,
}

/// Where a server lives; survives its restarts.
pub struct Site {
    kind: Kind,
    lab: PathBuf,
    /// Data, logs and configuration.
    pub dir: PathBuf,
    /// Of the real HBase, as the JVM wants it said.
    pub heap: &'static str,
    /// Further settings of the real HBase.
    pub extra: &'static [(&'static str, &'static str)],
    /// Classes that the real HBase is to find besides its own.
    pub classes: Option<PathBuf>,
    /// A directory of jars that the real HBase is to find behind its own.
    pub jars: Option<PathBuf>,
    zookeeper_port: u16,
    master_port: u16,
    regionserver_port: u16,
    starts: u32,
}

/// A running server; killed when dropped.
pub struct Server {
    child: Option<Child>,
    /// What it said.
    log: PathBuf,
    /// Where it says that it serves; the real HBase's script waits for that itself.
    ready: Option<ReadyFile>,
    hbase: Option<(PathBuf, u32)>,
    /// From start until it said it serves.
    pub start_took: Duration,
}

/// That of [`build_like_tests`], once there is one.
static LIKE_TESTS: OnceLock<PathBuf> = OnceLock::new();

/// The server under test: `BASALT_BINARY`; or that of [`build_like_tests`]; or that of the release build.
pub fn binary() -> PathBuf {
    given().unwrap_or_else(|| run::target_dir().join("release/basalt"))
}

/// The server that is there already, so that none has to be built.
pub fn given() -> Option<PathBuf> {
    std::env::var_os("BASALT_BINARY").map(PathBuf::from).or_else(|| LIKE_TESTS.get().cloned())
}

/// Makes the server under test the one that the tests of the workspace have built, with every feature and with its assertions and checks of
/// overflow on. A release build is minutes of two cores, and no suite measures how fast the server is.
pub fn build_like_tests() -> anyhow::Result<()> {
    let built = run::built_like_tests("basalt")?;
    LIKE_TESTS.get_or_init(|| built);
    Ok(())
}

impl Site {
    /// An empty place for a server, under a name of the caller's.
    pub fn new(kind: Kind, lab: &Path, name: &str) -> anyhow::Result<Site> {
        let dir = run::scratch()?.join("site").join(name);
        if dir.exists() {
            std::fs::remove_dir_all(&dir)?;
        }
        std::fs::create_dir_all(&dir)?;
        let [zookeeper_port, master_port, regionserver_port] = testkit::free_ports()?;
        let lab = lab.to_owned();
        Ok(Site {
            kind,
            lab,
            dir,
            heap: "2g",
            extra: &[],
            classes: None,
            jars: None,
            zookeeper_port,
            master_port,
            regionserver_port,
            starts: 0,
        })
    }

    /// `host:port` of ZooKeeper's protocol.
    pub fn zookeeper(&self) -> String {
        format!("127.0.0.1:{}", self.zookeeper_port)
    }

    /// `host:port` of the region server, for clients that find the cluster over RPC.
    pub fn bootstrap(&self) -> String {
        format!("127.0.0.1:{}", self.regionserver_port)
    }

    /// Its root directory.
    pub fn root(&self) -> PathBuf {
        self.dir.join(if self.kind == Kind::HBase { "data/root" } else { "root" })
    }

    /// Starts it and waits until it says that it serves.
    pub fn start(&mut self) -> anyhow::Result<Server> {
        let mut server = self.spawn()?;
        server.wait_ready(Duration::from_secs(90))?;
        Ok(server)
    }

    /// Starts it without waiting.
    pub fn spawn(&mut self) -> anyhow::Result<Server> {
        self.starts += 1;
        match self.kind {
            Kind::Basalt => self.spawn_basalt(),
            Kind::HBase => self.start_hbase(),
        }
    }

    fn settings(&self) -> Vec<(&'static str, String)> {
        vec![
            ("hbase.zookeeper.property.clientPort", self.zookeeper_port.to_string()),
            ("hbase.master.port", self.master_port.to_string()),
            ("hbase.regionserver.port", self.regionserver_port.to_string()),
        ]
    }

    fn spawn_basalt(&mut self) -> anyhow::Result<Server> {
        let binary = binary();
        let mut command = Command::new(&binary);
        command.arg("-D").arg(format!("hbase.rootdir=file://{}", self.dir.join("root").display()));
        for (key, value) in self.settings() {
            command.arg("-D").arg(format!("{key}={value}"));
        }
        for (key, value) in self.extra {
            command.arg("-D").arg(format!("{key}={value}"));
        }
        for key in ["hbase.master.info.port", "hbase.regionserver.info.port"] {
            command.arg("-D").arg(format!("{key}=-1"));
        }
        let ready = ReadyFile::new(self.dir.join("ready.json"));
        ready.pass_to(&mut command);
        // Both streams are kept in one file.
        let log = std::fs::File::create(self.log())?;
        let started = Instant::now();
        let child = command
            .stdin(Stdio::null())
            .stdout(log.try_clone()?)
            .stderr(log)
            .spawn()
            .with_context(|| format!("cannot start {}", binary.display()))?;
        Ok(Server {
            child: Some(child),
            log: self.log(),
            ready: Some(ready),
            hbase: None,
            start_took: started.elapsed(),
        })
    }

    fn log(&self) -> PathBuf {
        self.dir.join(format!("stderr-{}.log", self.starts))
    }

    fn start_hbase(&mut self) -> anyhow::Result<Server> {
        let extra = self.extra.iter().map(|(k, v)| (*k, (*v).to_owned()));
        let properties: String = self
            .settings()
            .into_iter()
            .chain(extra)
            .map(|(k, v)| format!("<property><name>{k}</name><value>{v}</value></property>"))
            .collect();
        let pid_file = self.dir.join("hbase.pid");
        std::fs::remove_file(&pid_file).ok();
        let started = Instant::now();
        let mut start = Command::new("bash");
        start
            .arg(toolchain::scripts().join("start-hbase.sh"))
            .env("LAB", &self.lab)
            .env("HEAP", self.heap)
            .env("START_WAIT", "180")
            .env("ZKPORT", self.zookeeper_port.to_string())
            .env("DATA", self.dir.join("data"))
            .env("CONF", self.dir.join("conf"))
            .env("LOGS", self.dir.join("logs"))
            .env("PIDFILE", &pid_file)
            .env("SERVER_CP", self.classes.as_deref().unwrap_or(Path::new("")))
            .env("SERVER_JARS", self.jars.as_deref().unwrap_or(Path::new("")))
            .env("SERVER_XML", properties)
            .stdout(Stdio::null());
        run::must("start-hbase.sh", &mut start)?;
        let pid = std::fs::read_to_string(&pid_file)?.trim().parse().context("no process id in hbase.pid")?;
        let start_took = started.elapsed();
        Ok(Server { child: None, log: self.log(), ready: None, hbase: Some((pid_file, pid)), start_took })
    }

    /// Lines in the server's logs that no run should contain.
    pub fn complaints(&self) -> anyhow::Result<Vec<String>> {
        let mut found = Vec::new();
        if self.kind == Kind::HBase {
            return Ok(found);
        }
        for n in 1..=self.starts {
            let text = std::fs::read(self.dir.join(format!("stderr-{n}.log"))).unwrap_or_default();
            for line in String::from_utf8_lossy(&text).lines() {
                if line.contains("panicked at") || line.contains("RUST_BACKTRACE") {
                    found.push(format!("server log {n}: {}", line.trim()));
                }
            }
        }
        found.truncate(5);
        Ok(found)
    }
}

impl Server {
    /// Waits for the line with "ready".
    pub fn wait_ready(&mut self, limit: Duration) -> anyhow::Result<()> {
        let start = Instant::now();
        if let (Some(ready), Some(child)) = (&self.ready, &mut self.child) {
            ready.wait(child, limit).with_context(|| {
                let said = std::fs::read_to_string(&self.log).unwrap_or_default();
                format!("the server said: {}", said.lines().collect::<Vec<_>>().join(" / "))
            })?;
        }
        self.start_took += start.elapsed();
        Ok(())
    }

    /// Its process, whichever kind it is.
    pub fn pid(&self) -> u32 {
        self.child.as_ref().map(Child::id).or(self.hbase.as_ref().map(|h| h.1)).unwrap_or_default()
    }

    /// Its process.
    pub fn process(&self) -> Option<u32> {
        self.child.as_ref().map(Child::id)
    }

    /// Still there?
    pub fn is_alive(&mut self) -> bool {
        match &mut self.child {
            Some(child) => matches!(child.try_wait(), Ok(None)),
            None => Path::new("/proc").join(self.pid().to_string()).exists(),
        }
    }

    /// Writes what its threads do to a file. Of a server in a JVM.
    pub fn thread_dump(&self, file: &Path) -> anyhow::Result<()> {
        let said = Command::new("jstack").arg(self.pid().to_string()).output().context("cannot run jstack")?;
        std::fs::write(file, said.stdout).with_context(|| format!("cannot write {}", file.display()))
    }

    /// Asks it to stop (SIGTERM) and waits; an error if it does not end well.
    pub fn stop(mut self) -> anyhow::Result<()> {
        signal(self.pid(), "-TERM")?;
        self.wait_end("SIGTERM")
    }

    /// Waits until it ends, as somebody has asked it to; an error if it does not end well.
    pub fn ended(mut self) -> anyhow::Result<()> {
        self.wait_end("it was asked to stop")
    }

    fn wait_end(&mut self, asked: &str) -> anyhow::Result<()> {
        let start = Instant::now();
        while self.is_alive() {
            if start.elapsed() > Duration::from_secs(60) {
                bail!("still running 60 s after {asked}");
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        let status = self.child.take().map(|mut c| c.wait()).transpose()?;
        self.hbase = None;
        match status {
            Some(status) if !status.success() => bail!("after {asked} it ended with {status}"),
            _ => Ok(()),
        }
    }

    /// Kills it (SIGKILL) and waits until it is gone.
    pub fn kill(mut self) -> anyhow::Result<()> {
        self.kill_now()
    }

    fn kill_now(&mut self) -> anyhow::Result<()> {
        if let Some(mut child) = self.child.take() {
            child.kill()?;
            child.wait()?;
        }
        if let Some((pid_file, pid)) = self.hbase.take() {
            signal(pid, "-KILL")?;
            while Path::new("/proc").join(pid.to_string()).exists() {
                std::thread::sleep(Duration::from_millis(5));
            }
            std::fs::remove_file(pid_file).ok();
        }
        Ok(())
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.kill_now().ok();
    }
}

fn signal(pid: u32, signal: &str) -> anyhow::Result<()> {
    run::must("kill", Command::new("kill").args([signal, &pid.to_string()]))
}
