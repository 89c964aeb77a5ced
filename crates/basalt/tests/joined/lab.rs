//! Masters and region servers of HBase and of ours as processes of one cluster, on an HDFS and a ZooKeeper that run already.

use client::{Connection, Options, RegionLocation, Registry};
use model::{ServerName, TableName};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

/// A region server that was killed is noticed after so long.
pub const SESSION_TIMEOUT_MS: u32 = 6_000;
/// Nothing takes longer: a session's end, leases, splitting, opening, on two busy cores.
pub const LIMIT: Duration = Duration::from_secs(60);

/// Where the cluster is, and how its servers are started.
pub struct Lab {
    dir: PathBuf,
    hdfs: String,
    zookeeper: String,
    launcher: String,
    id: String,
    /// The directory beside or as the root directory where the logs are.
    wal_dir: &'static str,
    /// What every process is told beside.
    told: &'static [(&'static str, &'static str)],
    began: Instant,
}

/// A process of the cluster; killed when dropped.
pub struct Piece {
    child: Child,
    log: PathBuf,
    /// The node below which backup masters of its cluster are.
    backups: String,
}

impl Piece {
    /// Whether it is the server of that name: what it said when it was ready, or, of HBase's, when it began.
    pub fn is(&self, name: &ServerName) -> bool {
        let said = self.said();
        ["  serving    ", " as "].iter().any(|before| said.contains(&format!("{before}{name}\n")))
            || said.contains(&format!("Adding backup master ZNode {}/{name}", self.backups))
    }

    /// Whether it has ended.
    pub fn has_ended(&mut self) -> bool {
        self.has_ended_with().is_some()
    }

    /// How it has ended, if it has.
    pub fn has_ended_with(&mut self) -> Option<ExitStatus> {
        self.child.try_wait().expect("its state")
    }

    /// Ends it as a power cut would.
    pub fn kill(mut self) {
        self.child.kill().expect("killed");
        self.child.wait().expect("gone");
    }

    pub fn signal(&self, signal: rustix::process::Signal) {
        let pid = rustix::process::Pid::from_child(&self.child);
        rustix::process::kill_process(pid, signal).expect("the process is there");
    }

    /// Asks it to stop; whether it ended well, and in time.
    pub fn terminate(self) -> bool {
        self.signal(rustix::process::Signal::TERM);
        self.ended_well()
    }

    /// Waits for its end; whether that was a good one, and came in time.
    pub fn ended_well(mut self) -> bool {
        self.end().is_some_and(|status| status.success())
    }

    /// Waits for its end, however it comes; whether it came in time.
    pub fn ends(mut self) -> bool {
        self.end().is_some()
    }

    fn end(&mut self) -> Option<ExitStatus> {
        let asked = Instant::now();
        loop {
            match self.child.try_wait().expect("its state") {
                None if asked.elapsed() <= LIMIT => std::thread::sleep(Duration::from_millis(20)),
                ended => return ended,
            }
        }
    }

    /// Time of cores that it has used.
    pub fn cpu_time(&self) -> Duration {
        let stat = std::fs::read_to_string(format!("/proc/{}/stat", self.child.id())).expect("the process is there");
        let (_, after_name) = stat.rsplit_once(')').expect("a name");
        let ticks = |at: usize| after_name.split_whitespace().nth(at).and_then(|text| text.parse::<u64>().ok());
        // A tick is a hundredth of a second wherever Linux runs.
        Duration::from_millis(10 * (ticks(11).expect("user time") + ticks(12).expect("system time")))
    }

    /// What it said.
    pub fn said(&self) -> String {
        String::from_utf8_lossy(&std::fs::read(&self.log).unwrap_or_default()).into_owned()
    }

    /// The last so many bytes of it.
    pub fn said_last(&self, bytes: usize) -> String {
        let said = std::fs::read(&self.log).unwrap_or_default();
        String::from_utf8_lossy(&said[said.len().saturating_sub(bytes)..]).into_owned()
    }
}

impl Drop for Piece {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Lab {
    /// A cluster under that name; `None`, with a line, where the pieces are not there.
    pub fn open(name: &str) -> Option<Lab> {
        Lab::open_with(name, "hbase", &[])
    }

    /// The same whose processes are told this, too.
    pub fn open_told(name: &str, told: &'static [(&'static str, &'static str)]) -> Option<Lab> {
        Lab::open_with(name, "hbase", told)
    }

    /// The same with its logs in a WAL directory of their own.
    pub fn open_with_wal_dir(name: &str) -> Option<Lab> {
        Lab::open_with(name, "logs", &[])
    }

    fn open_with(name: &str, wal_dir: &'static str, told: &'static [(&'static str, &'static str)]) -> Option<Lab> {
        let of = |name: &str| {
            let value = std::env::var(name).ok();
            if value.is_none() {
                println!("skipped: {name} is not set");
            }
            value
        };
        let (hdfs, zookeeper) = (of("BASALT_TEST_HDFS")?, of("BASALT_TEST_ZOOKEEPER")?);
        let (launcher, dir) = (of("BASALT_TEST_HBASE_LAUNCHER")?, of("BASALT_TEST_HBASE_DIR")?);
        let id = format!("{name}-{}", std::process::id());
        let dir = PathBuf::from(dir).join(&id);
        std::fs::create_dir_all(&dir).expect("a directory");
        println!("logs: {}", dir.display());
        Some(Lab { dir, hdfs, zookeeper, launcher, id, wal_dir, told, began: Instant::now() })
    }

    /// The path of a file among the logs.
    pub fn file(&self, name: &str) -> String {
        self.dir.join(name).display().to_string()
    }

    /// Says what has been seen, and when.
    pub fn note(&self, what: &str) {
        println!("{:7.2} s  {what}", self.began.elapsed().as_secs_f64());
    }

    /// A directory with `hbase-site.xml`: all that a server of the cluster is told.
    fn conf(&self, name: &str) -> PathBuf {
        self.conf_with(name, &[])
    }

    /// The same that says this, too, whatever else would be said of it.
    pub fn conf_with(&self, name: &str, more: &[(&str, String)]) -> PathBuf {
        let conf = self.dir.join(name);
        std::fs::create_dir_all(&conf).expect("a directory");
        let (host, port) = self.zookeeper.split_once(':').expect("host:port");
        let properties = [
            ("hbase.rootdir", format!("{}/{}/hbase", self.hdfs, self.id)),
            ("hbase.wal.dir", format!("{}/{}/{}", self.hdfs, self.id, self.wal_dir)),
            ("fs.defaultFS", self.hdfs.clone()),
            ("hbase.cluster.distributed", "true".into()),
            ("hbase.zookeeper.quorum", host.into()),
            ("hbase.zookeeper.property.clientPort", port.into()),
            ("zookeeper.znode.parent", format!("/{}", self.id)),
            ("zookeeper.session.timeout", SESSION_TIMEOUT_MS.to_string()),
            ("hbase.tmp.dir", self.dir.join("tmp").display().to_string()),
            ("hbase.master.port", "0".into()),
            ("hbase.regionserver.port", "0".into()),
            ("hbase.master.info.port", "-1".into()),
            ("hbase.regionserver.info.port", "-1".into()),
            ("hbase.master.ipc.address", "127.0.0.1".into()),
            ("hbase.regionserver.ipc.address", "127.0.0.1".into()),
            ("hbase.master.hostname", "localhost".into()),
            ("hbase.unsafe.regionserver.hostname", "localhost".into()),
            ("hbase.lease.recovery.first.pause", "1000".into()),
            // Whole regions are moved by the test alone.
            ("hbase.balancer.period", "86400000".into()),
        ];
        let property =
            |(key, value): (&str, String)| format!("<property><name>{key}</name><value>{value}</value></property>\n");
        let told = self.told.iter().map(|(key, value)| (*key, (*value).to_owned()));
        let said_by_more = |key: &str| more.iter().any(|(other, _)| *other == key);
        let said_to_all = |key: &str| self.told.iter().any(|(other, _)| *other == key);
        let common = properties.into_iter().filter(|(key, _)| !said_to_all(key)).chain(told);
        let common = common.filter(|(key, _)| !said_by_more(key));
        let text: String = common.chain(more.iter().cloned()).map(property).collect();
        write(&conf.join("hbase-site.xml"), &format!("<configuration>\n{text}</configuration>\n"));
        write(
            &conf.join("log4j2.properties"),
            "status = error\nappender.console.type = Console\nappender.console.name = console\n\
             appender.console.target = SYSTEM_ERR\nappender.console.layout.type = PatternLayout\n\
             appender.console.layout.pattern = %d{ISO8601} %-5p [%t] %c{2}: %m%n\nrootLogger.level = INFO\n\
             rootLogger.appenderRef.console.ref = console\n",
        );
        // HBase's programs before 2.5.
        write(
            &conf.join("log4j.properties"),
            "log4j.rootLogger=INFO,console\nlog4j.appender.console=org.apache.log4j.ConsoleAppender\n\
             log4j.appender.console.target=System.err\nlog4j.appender.console.layout=org.apache.log4j.PatternLayout\n\
             log4j.appender.console.layout.ConversionPattern=%d{ISO8601} %-5p [%t] %c{2}: %m%n\n",
        );
        conf
    }

    /// Starts that command; what it says is in the log of that name.
    pub fn launch(&self, name: &str, command: &mut Command) -> Piece {
        let log = self.dir.join(format!("{name}.log"));
        let file = std::fs::OpenOptions::new().create(true).append(true).open(&log).expect("a log");
        let (out, err) = (file.try_clone().expect("the log"), file);
        let child = command.stdin(Stdio::null()).stdout(out).stderr(err).spawn().expect("started");
        Piece { child, log, backups: format!("/{}/backup-masters", self.id) }
    }

    fn java(&self, name: &str, heap: &str, class: &str) -> Piece {
        let conf = self.conf(name);
        let mut command = Command::new("sh");
        command.arg(&self.launcher).arg(conf).args([heap, class, "start"]);
        self.launch(name, &mut command)
    }

    /// A program of HBase's that needs more than its servers do: with those jars before theirs.
    pub fn java_tool(&self, name: &str, heap: &str, (jars, class): (&str, &str), arguments: &[&str]) -> Piece {
        let conf = format!("{}:{jars}", self.conf(name).display());
        let mut command = Command::new("sh");
        command.arg(&self.launcher).arg(conf).args([heap, class]).args(arguments);
        // Test programs of HBase's write to `target` where they are.
        self.launch(name, command.current_dir(&self.dir))
    }

    /// The launcher of HBase's servers.
    pub fn launcher(&self) -> &str {
        &self.launcher
    }

    /// HBase's master.
    pub fn master(&self) -> Piece {
        self.java_master("master")
    }

    /// The same whose log has that name.
    pub fn java_master(&self, name: &str) -> Piece {
        self.java(name, "256m", "org.apache.hadoop.hbase.master.HMaster")
    }

    /// HBase's region server.
    pub fn java_server(&self) -> Piece {
        self.java_server_with("java", "256m")
    }

    /// The same whose log has that name, with so much heap.
    pub fn java_server_with(&self, name: &str, heap: &str) -> Piece {
        self.java(name, heap, "org.apache.hadoop.hbase.regionserver.HRegionServer")
    }

    /// The process that HDFS or ZooKeeper has now: `nn`, `dn0`, `zk`.
    fn below(&self, name: &str) -> rustix::process::Pid {
        let file = self.beside(&format!("{name}.pid"));
        let text = std::fs::read_to_string(&file).unwrap_or_else(|error| panic!("{}: {error}", file.display()));
        rustix::process::Pid::from_raw(text.trim().parse().expect("a number")).expect("a process")
    }

    /// A file of what the cluster stands on.
    fn beside(&self, name: &str) -> PathBuf {
        self.dir.parent().expect("the pieces' directory").join(name)
    }

    pub fn signal_below(&self, name: &str, signal: rustix::process::Signal) {
        rustix::process::kill_process(self.below(name), signal).expect("the process is there");
    }

    /// Ends one as a power cut would: its ports and locks are free then.
    pub fn kill_below(&self, name: &str) {
        let pid = self.below(name);
        rustix::process::kill_process(pid, rustix::process::Signal::KILL).expect("the process is there");
        let stat = format!("/proc/{}/stat", pid.as_raw_nonzero());
        // Who started it may not have asked for its end yet.
        while std::fs::read_to_string(&stat).is_ok_and(|stat| !stat.contains(") Z ")) {
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    /// Starts one again that was killed.
    pub fn start_below(&self, name: &str) -> Piece {
        self.launch(&format!("{name}-again"), Command::new("sh").arg(self.beside(&format!("{name}.sh"))))
    }

    /// How often one has said that, in all its lives.
    pub fn times_said_below(&self, name: &str, what: &str) -> usize {
        let said = std::fs::read(self.beside(&format!("{name}.log"))).unwrap_or_default();
        String::from_utf8_lossy(&said).matches(what).count()
    }

    /// Ours.
    pub fn basalt_server(&self) -> Piece {
        self.basalt("basalt", "regionserver")
    }

    /// One of ours, `regionserver` or `master`, whose log has that name.
    pub fn basalt(&self, name: &str, what: &str) -> Piece {
        self.basalt_with(name, what, &[])
    }

    /// The same with options behind `start`.
    pub fn basalt_with(&self, name: &str, what: &str, options: &[&str]) -> Piece {
        let mut command = self.command(name);
        // Several are on one machine.
        command.args(["-D", &format!("hbase.{what}.info.port=0")]);
        self.launch(name, command.args([what, "start"]).args(options))
    }

    /// As [`Lab::basalt`], a region server at a port that it is to have again.
    pub fn basalt_server_at(&self, name: &str, port: u16) -> Piece {
        let port = format!("hbase.regionserver.port={port}");
        self.launch(
            name,
            self.command(name).args(["-D", &port, "-D", "hbase.regionserver.info.port=0", "regionserver", "start"]),
        )
    }

    /// A command of the binary's, as it is given beside the cluster.
    pub fn command(&self, name: &str) -> Command {
        let binary = std::env::var_os("BASALT_BINARY").unwrap_or_else(|| env!("CARGO_BIN_EXE_basalt").into());
        let mut command = Command::new(binary);
        let log = std::env::var("BASALT_LOG").unwrap_or_else(|_| "info".to_owned());
        command.env_remove("HADOOP_CONF_DIR").env("BASALT_LOG", log).arg("--config").arg(self.conf(name));
        command
    }

    /// A client of the cluster, as any other.
    pub fn connect(&self) -> Connection {
        self.connect_with(|options| options)
    }

    /// The same with other options.
    pub fn connect_with(&self, change: impl FnOnce(Options) -> Options) -> Connection {
        let options = Options::zookeeper(&self.zookeeper);
        let Registry::ZooKeeper { quorum, .. } = options.registry.clone() else { unreachable!("it was asked for") };
        let registry = Registry::ZooKeeper { quorum, znode_parent: format!("/{}", self.id) };
        let pause = Duration::from_millis(50);
        Connection::open(change(Options { registry, pause, retries: 60, operation_timeout: LIMIT, ..options }))
    }
}

#[allow(clippy::disallowed_methods, reason = "configuration of a process")]
fn write(path: &Path, text: &str) {
    std::fs::write(path, text).expect("written");
}

/// Asks until it is so: the cluster's servers tell nobody when they are done.
pub async fn until(what: &str, is_so: impl AsyncFnMut() -> bool) {
    until_within(LIMIT, what, is_so).await;
}

/// As [`until`], for so long.
pub async fn until_within(limit: Duration, what: &str, mut is_so: impl AsyncFnMut() -> bool) {
    let began = Instant::now();
    while !is_so().await {
        assert!(began.elapsed() < limit, "not within {} s: {what}", limit.as_secs());
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
}

/// Where the table's regions are, or nothing where that cannot be said now.
pub async fn regions(connection: &Connection, table: &TableName) -> Vec<RegionLocation> {
    connection.forget_locations();
    connection.admin().regions(table).await.unwrap_or_default()
}

/// The servers that the master has let in and that have reported: before that it places nothing on them.
pub async fn servers(connection: &Connection) -> Vec<ServerName> {
    let Ok(status) = connection.admin().cluster_status().await else { return Vec::new() };
    let has_reported = |load: &proto::pb::ServerLoad| load.report_end_time.is_some_and(|ms| ms > 0);
    let reported = status.live_servers.iter().filter(|server| has_reported(&server.server_load));
    reported.filter_map(|server| convert::from_proto::server_name(&server.server).ok()).collect()
}

/// The one of them that it is.
pub async fn server(connection: &Connection, is_it: impl Fn(&ServerName) -> bool) -> Option<ServerName> {
    servers(connection).await.into_iter().find(|server| is_it(server))
}
