//! Servers that take part: started here from an empty directory, or running somewhere already.

use std::collections::BTreeMap;
use std::fs::{File, Metadata};
use std::io::{Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, bail};
use client::{Connection, Options};
use testkit::ReadyFile;

/// Longest time that a start may take.
const START_LIMIT: Duration = Duration::from_secs(180);

/// What HBase 2.x must be allowed on JDK 17, as its own scripts do.
const OPENS: &[&str] = &[
    "java.base/java.lang",
    "java.base/java.lang.reflect",
    "java.base/java.io",
    "java.base/java.net",
    "java.base/java.nio",
    "java.base/java.util",
    "java.base/java.util.concurrent",
    "java.base/java.security",
    "java.base/sun.nio.ch",
    "java.base/sun.nio.fs",
    "java.base/jdk.internal.ref",
    "java.base/jdk.internal.misc",
];

/// Basalt's program where none is named: `BASALT_BINARY`, or that beside this one in the target directory.
///
/// # Errors
/// This program does not know where it is.
pub fn default_binary() -> anyhow::Result<PathBuf> {
    if let Some(binary) = std::env::var_os("BASALT_BINARY") {
        return Ok(PathBuf::from(binary));
    }
    Ok(std::env::current_exe().context("where is this program?")?.with_file_name("basalt"))
}

/// How a server comes to be.
#[derive(Clone, Debug)]
pub enum Origin {
    /// `binary` with these settings.
    Basalt {
        /// The program.
        binary: PathBuf,
    },
    /// Apache HBase from jars.
    HBase {
        /// Where they are.
        jars: PathBuf,
        /// Further options of the JVM.
        options: Vec<String>,
    },
    /// Runs already, under this process id.
    Running {
        /// ZooKeeper's `host:port`.
        zookeeper: String,
        /// On this machine.
        pid: u32,
    },
}

/// A server that takes part.
#[derive(Clone, Debug)]
pub struct Contender {
    /// Its name in the report.
    pub name: String,
    /// How it comes to be.
    pub origin: Origin,
    /// Settings over its defaults, under HBase's names.
    pub settings: BTreeMap<String, String>,
    /// Memory that it may plan with: HBase's heap, Basalt's budget.
    pub memory_bytes: u64,
    /// Whether only workloads that write are played.
    pub only_writes: bool,
}

impl Contender {
    /// Whether it gets faster for a while after its start.
    pub fn compiles_as_it_runs(&self) -> bool {
        !matches!(self.origin, Origin::Basalt { .. })
    }

    /// What it is and how it was set up, in a sentence.
    pub fn about(&self) -> String {
        let what = match &self.origin {
            Origin::Basalt { binary } => {
                let version = Command::new(binary).arg("--version").output().map(|o| o.stdout).unwrap_or_default();
                format!("{} ({})", String::from_utf8_lossy(&version).trim(), binary.display())
            }
            Origin::HBase { options, .. } => {
                format!(
                    "Apache HBase 2.6.4, standalone, G1, heap {} MiB {}",
                    self.memory_bytes >> 20,
                    options.join(" ")
                )
            }
            Origin::Running { zookeeper, pid } => format!("running at {zookeeper}, process {pid}"),
        };
        let settings: Vec<String> = self.settings.iter().map(|(k, v)| format!("{k}={v}")).collect();
        format!("{what}; memory {} MiB; {}", self.memory_bytes >> 20, settings.join(", "))
    }
}

/// A contender in its place: directory and ports stay over restarts.
pub struct Site {
    /// Who.
    pub contender: Contender,
    dir: PathBuf,
    ports: [u16; 3],
    connections: usize,
    child: Option<Child>,
    /// Where Basalt says that it serves.
    ready: Option<ReadyFile>,
    starts: u32,
}

impl Site {
    /// An empty place in `dir`; clients share `connections` to the server.
    pub fn new(contender: Contender, dir: PathBuf, connections: usize) -> anyhow::Result<Site> {
        if dir.exists() {
            std::fs::remove_dir_all(&dir).with_context(|| format!("cannot clear {}", dir.display()))?;
        }
        std::fs::create_dir_all(&dir).with_context(|| format!("cannot make {}", dir.display()))?;
        let dir = dir.canonicalize()?;
        Ok(Site {
            contender,
            dir,
            ports: testkit::free_ports()?,
            connections: connections.max(1),
            child: None,
            ready: None,
            starts: 0,
        })
    }

    /// Its process.
    pub fn pid(&self) -> u32 {
        match (&self.contender.origin, &self.child) {
            (Origin::Running { pid, .. }, _) => *pid,
            (_, Some(child)) => child.id(),
            _ => 0,
        }
    }

    /// Whether it can be killed and started again.
    pub fn is_ours(&self) -> bool {
        !matches!(self.contender.origin, Origin::Running { .. })
    }

    /// `host:port` of ZooKeeper's protocol.
    pub fn zookeeper(&self) -> String {
        match &self.contender.origin {
            Origin::Running { zookeeper, .. } => zookeeper.clone(),
            _ => format!("127.0.0.1:{}", self.ports[0]),
        }
    }

    /// A client of it. No operation is given up before the server had time to come back.
    pub fn connect(&self) -> Connection {
        Connection::open(Options { connections_per_server: self.connections, ..Options::zookeeper(&self.zookeeper()) })
    }

    /// Where the files of a table of the default namespace are, if that is known.
    pub fn table_dir(&self, table: &str) -> Option<PathBuf> {
        self.is_ours().then(|| self.dir.join("root/data/default").join(table))
    }

    /// Bytes of the store files of a table.
    pub fn table_bytes(&self, table: &str) -> Option<u64> {
        self.table_dir(table).map(|dir| store_bytes(&dir))
    }

    /// Bytes of the newest store file of each family of each region: all there is after everything was compacted. HBase
    /// leaves the files of before where they are for some minutes.
    pub fn compacted_bytes(&self, table: &str) -> Option<u64> {
        let newest = |files: Vec<Metadata>| files.into_iter().max_by_key(|m| m.modified().ok()).map_or(0, |m| m.len());
        self.table_dir(table).map(|dir| store_files(&dir).into_iter().map(newest).sum())
    }

    /// Makes clients of it, also when it is gone from here.
    pub fn connector(&self) -> impl Fn() -> Connection + Send + 'static {
        let (zookeeper, connections_per_server) = (self.zookeeper(), self.connections);
        move || Connection::open(Options { connections_per_server, ..Options::zookeeper(&zookeeper) })
    }

    /// Asks it to end (SIGTERM) and waits until it has.
    ///
    /// # Errors
    /// It is not ours.
    pub fn terminate(&mut self) -> anyhow::Result<()> {
        let Some(mut child) = self.child.take() else { bail!("{} was not started here", self.contender.name) };
        let pid = rustix::process::Pid::from_child(&child);
        rustix::process::kill_process(pid, rustix::process::Signal::TERM)?;
        child.wait()?;
        Ok(())
    }

    /// Starts it; returns as soon as the process is there. A server that runs already is left alone.
    pub fn spawn(&mut self) -> anyhow::Result<()> {
        self.starts += 1;
        let mut command = match self.contender.origin.clone() {
            Origin::Running { .. } => return Ok(()),
            Origin::Basalt { binary } => self.basalt(&binary),
            Origin::HBase { jars, options } => self.hbase(&jars, &options)?,
        };
        let log = File::create(self.log())?;
        command.stdin(Stdio::null()).stdout(log.try_clone()?).stderr(log).env_remove("HBASE_CONF_DIR");
        let child = command.spawn().with_context(|| format!("cannot run {:?}", command.get_program()))?;
        self.child = Some(child);
        Ok(())
    }

    /// Waits until it says that it serves.
    ///
    /// # Errors
    /// It ended, or does not serve in time.
    pub async fn ready(&mut self) -> anyhow::Result<()> {
        let ready = match self.contender.origin {
            Origin::Running { .. } => Ok(()),
            Origin::Basalt { .. } => self.basalt_ready().await,
            Origin::HBase { .. } => self.hbase_ready().await,
        };
        ready.with_context(|| format!("{} does not serve; its last words: {}", self.contender.name, self.last_words()))
    }

    async fn basalt_ready(&mut self) -> anyhow::Result<()> {
        let (Some(mut child), Some(ready)) = (self.child.take(), self.ready.take()) else {
            bail!("it was not started")
        };
        // Clients of the comparison go on meanwhile, on this thread.
        let waited = tokio::task::spawn_blocking(move || (ready.wait(&mut child, START_LIMIT), child));
        let (ready, child) = waited.await?;
        self.child = Some(child);
        ready.map(|_| ())
    }

    /// HBase has no other way to say it than its log.
    async fn hbase_ready(&mut self) -> anyhow::Result<()> {
        let start = Instant::now();
        while !std::fs::read_to_string(self.log())
            .is_ok_and(|said| said.contains("Master has completed initialization"))
        {
            if self.child.as_mut().is_some_and(|child| !matches!(child.try_wait(), Ok(None))) {
                bail!("it ended before it was ready");
            }
            if start.elapsed() > START_LIMIT {
                bail!("not ready after {} s", START_LIMIT.as_secs());
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        Ok(())
    }

    /// Kills it (SIGKILL) and waits until it is gone.
    pub fn kill(&mut self) {
        if let Some(mut child) = self.child.take() {
            child.kill().ok();
            child.wait().ok();
        }
    }

    /// Kills it and removes what it wrote.
    pub fn clear(&mut self) {
        self.kill();
        std::fs::remove_dir_all(&self.dir).ok();
    }

    /// Starts a Java program beside Apache HBase that reads the same hbase-site.xml, with `more` jars behind HBase's own.
    ///
    /// # Errors
    /// The server is not HBase from jars, or Java cannot be run.
    pub fn companion(&self, class: &str, more: &Path, words: &[String]) -> anyhow::Result<Companion> {
        let Origin::HBase { jars, .. } = &self.contender.origin else { bail!("{class} needs a server from jars") };
        let mut command = java(self.contender.memory_bytes);
        command.arg("-cp").arg(format!("{}:{}/*:{}/*", self.conf().display(), jars.display(), more.display()));
        command.arg(class).args(words);
        let log_path = self.dir.join(format!("log-{class}"));
        let log = File::create(&log_path)?;
        command.stdin(Stdio::null()).stdout(log.try_clone()?).stderr(log);
        let child = command.spawn().with_context(|| format!("cannot run {:?}", command.get_program()))?;
        Ok(Companion { child, log: log_path })
    }

    fn conf(&self) -> PathBuf {
        self.dir.join("conf")
    }

    fn log(&self) -> PathBuf {
        self.dir.join(format!("log-{}", self.starts))
    }

    fn last_words(&self) -> String {
        last_words(&self.log())
    }

    fn common_settings(&self) -> BTreeMap<String, String> {
        let mut settings = BTreeMap::from(
            [
                ("hbase.rootdir", format!("file://{}", self.dir.join("root").display())),
                ("hbase.zookeeper.property.clientPort", self.ports[0].to_string()),
                ("hbase.master.port", self.ports[1].to_string()),
                ("hbase.regionserver.port", self.ports[2].to_string()),
                ("hbase.master.info.port", "-1".to_owned()),
                ("hbase.regionserver.info.port", "-1".to_owned()),
            ]
            .map(|(k, v)| (k.to_owned(), v)),
        );
        settings.extend(self.contender.settings.clone());
        settings
    }

    fn basalt(&mut self, binary: &Path) -> Command {
        let mut command = Command::new(binary);
        for (key, value) in self.common_settings() {
            command.arg("-D").arg(format!("{key}={value}"));
        }
        command.arg("-D").arg(format!("basalt.memory.size={}", self.contender.memory_bytes));
        let ready = ReadyFile::new(self.dir.join(format!("ready-{}.json", self.starts)));
        ready.pass_to(&mut command);
        self.ready = Some(ready);
        command
    }

    fn hbase(&self, jars: &Path, options: &[String]) -> anyhow::Result<Command> {
        let conf = self.conf();
        std::fs::create_dir_all(&conf)?;
        // Its status server wants these folders, which come with HBase's archive and not with its jars.
        for folder in ["master", "regionserver", "static"] {
            std::fs::create_dir_all(conf.join("hbase-webapps").join(folder))?;
        }
        let mut settings = self.common_settings();
        let of_dir = |name: &str| self.dir.join(name).display().to_string();
        for (key, value) in [
            ("hbase.tmp.dir", of_dir("tmp")),
            ("hbase.zookeeper.property.dataDir", of_dir("zookeeper")),
            ("hbase.zookeeper.quorum", "127.0.0.1".to_owned()),
            ("hbase.cluster.distributed", "false".to_owned()),
            // a local file system promises neither hflush nor hsync; standalone HBase is told not to care
            ("hbase.unsafe.stream.capability.enforce", "false".to_owned()),
            ("hbase.master.ipc.address", "127.0.0.1".to_owned()),
            ("hbase.regionserver.ipc.address", "127.0.0.1".to_owned()),
            ("hbase.master.hostname", "localhost".to_owned()),
            ("hbase.unsafe.regionserver.hostname", "localhost".to_owned()),
        ] {
            settings.entry(key.to_owned()).or_insert(value);
        }
        let rows: String = settings
            .iter()
            .map(|(k, v)| format!("  <property><name>{k}</name><value>{}</value></property>\n", escape(v)))
            .collect();
        std::fs::write(conf.join("hbase-site.xml"), format!("<configuration>\n{rows}</configuration>\n"))?;
        std::fs::write(
            conf.join("log4j2.properties"),
            "status = error\nappender.console.type = Console\nappender.console.name = console\n\
             appender.console.target = SYSTEM_ERR\nappender.console.layout.type = PatternLayout\n\
             appender.console.layout.pattern = %d{ISO8601} %-5p [%t] %c{2}: %m%n\nrootLogger.level = INFO\n\
             rootLogger.appenderRef.console.ref = console\n",
        )?;
        std::fs::create_dir_all(self.dir.join("tmp"))?;
        let mut command = java(self.contender.memory_bytes);
        command.arg("-Dproc_master");
        command.arg(format!("-Dhbase.log.dir={}", self.dir.display())).args(options);
        command.arg("-cp").arg(format!("{}:{}/*", conf.display(), jars.display()));
        command.args(["org.apache.hadoop.hbase.master.HMaster", "start"]);
        Ok(command)
    }
}

impl Drop for Site {
    fn drop(&mut self) {
        self.kill();
    }
}

/// A process beside a server, killed when it is dropped.
pub struct Companion {
    child: Child,
    log: PathBuf,
}

impl Companion {
    /// Its process.
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// That it still runs.
    ///
    /// # Errors
    /// It ended: with its last words.
    pub fn check(&mut self) -> anyhow::Result<()> {
        match self.child.try_wait()? {
            None => Ok(()),
            Some(status) => bail!("it ended with {status}; its last words: {}", last_words(&self.log)),
        }
    }
}

impl Drop for Companion {
    fn drop(&mut self) {
        self.child.kill().ok();
        self.child.wait().ok();
    }
}

/// A JVM of this heap with what HBase 2.x needs of it.
fn java(heap_bytes: u64) -> Command {
    let mut command = Command::new("java");
    command.arg("-XX:+UseG1GC").arg(format!("-Xmx{}m", heap_bytes >> 20));
    for open in OPENS {
        command.arg("--add-opens").arg(format!("{open}=ALL-UNNAMED"));
    }
    command.args([
        "--add-exports",
        "java.base/jdk.internal.misc=ALL-UNNAMED",
        "--add-exports",
        "java.security.jgss/sun.security.krb5=ALL-UNNAMED",
        "-Dorg.apache.hbase.thirdparty.io.netty.tryReflectionSetAccessible=true",
        "-Djava.net.preferIPv4Stack=true",
    ]);
    command
}

/// The end of a log.
fn last_words(log: &Path) -> String {
    let mut text = Vec::new();
    if let Ok(mut file) = File::open(log) {
        let length = file.metadata().map_or(0, |m| m.len());
        file.seek(SeekFrom::Start(length.saturating_sub(1500))).ok();
        file.read_to_end(&mut text).ok();
    }
    String::from_utf8_lossy(&text).trim().to_owned()
}

fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

/// Bytes of the store files of a table.
fn store_bytes(dir: &Path) -> u64 {
    store_files(dir).iter().flatten().map(Metadata::len).sum()
}

/// The files below a table's directory that are store files, by family and region: not descriptors, not what is being
/// written.
fn store_files(dir: &Path) -> Vec<Vec<Metadata>> {
    let metadata = |path: &PathBuf| std::fs::metadata(path).ok();
    store_families(dir).iter().map(|files| files.iter().filter_map(metadata).collect()).collect()
}

/// The paths of all store files below a table's directory.
pub fn store_paths(dir: &Path) -> Vec<PathBuf> {
    store_families(dir).into_iter().flatten().collect()
}

fn store_families(dir: &Path) -> Vec<Vec<PathBuf>> {
    let mut families = Vec::new();
    let mut todo = vec![dir.to_owned()];
    while let Some(dir) = todo.pop() {
        let mut files = Vec::new();
        for entry in std::fs::read_dir(dir).into_iter().flatten().flatten() {
            let name = entry.file_name().to_string_lossy().into_owned();
            match entry.metadata() {
                Ok(m) if m.is_dir() && !name.starts_with('.') && name != "recovered.edits" => todo.push(entry.path()),
                Ok(m) if m.is_file() && name.len() >= 32 && !name.starts_with('.') => files.push(entry.path()),
                _ => {}
            }
        }
        families.push(files);
    }
    families
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_store_files_count() {
        let dir = std::env::temp_dir().join(format!("basalt-tools-{}", std::process::id()));
        let family = dir.join("0123456789abcdef0123456789abcdef/f");
        std::fs::create_dir_all(&family).expect("a directory");
        std::fs::create_dir_all(dir.join(".tmp")).expect("a directory");
        std::fs::write(family.join("0123456789abcdef0123456789abcdef"), [0; 100]).expect("a file");
        std::fs::write(family.join("short"), [0; 100]).expect("a file");
        std::fs::write(dir.join(".tmp/0123456789abcdef0123456789abcdef"), [0; 100]).expect("a file");
        assert_eq!(store_bytes(&dir), 100);
        std::fs::remove_dir_all(&dir).expect("cleared");
    }
}
