//! `cargo xtask compare --on-hdfs`: a region server of HBase's and one of ours in turn below HBase's own master, each on a new HDFS of three DataNodes
//! and a new ZooKeeper, under the load of `cargo xtask compare`. What is measured is the region server's process alone; the DataNodes, which
//! share the processors, are told of beside it. Then a DataNode is killed, and one is stopped, while clients write.

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, bail};

use crate::cluster::pieces::{Pieces, bean};
use crate::{compare, jvm, run, server, toolchain};

/// What is played unless the words say `--only`.
const WORKLOADS: &str = "batch-put,get-32,put-32,ycsb";
/// A master and a region server of HBase's are there in a fifth of this.
const START_LIMIT: Duration = Duration::from_secs(120);
/// What `cargo xtask compare` gives HBase's JVM, too: without these its network code takes a slower way.
const JVM: &str = "-XX:+UseG1GC --add-exports=java.base/jdk.internal.misc=ALL-UNNAMED --add-opens=java.base/java.security=ALL-UNNAMED \
                   --add-exports=java.security.jgss/sun.security.krb5=ALL-UNNAMED -Dorg.apache.hbase.thirdparty.io.netty.tryReflectionSetAccessible=true";
/// How long clients write while a DataNode is harmed.
const HARMED_SECONDS: u64 = 40;
/// They have begun so long ago when it is harmed: three seconds of it are not measured.
const HARM_AFTER: Duration = Duration::from_secs(10);
/// Instead of all else, the harms alone.
const HARMED: &str = "--harmed";
/// Ours alone, to look at something again.
const WITHOUT_HBASE: &str = "--without-hbase";
/// A DataNode stands still so long.
const STOPPED: Duration = Duration::from_secs(12);
/// Memory of each region server: HBase's heap, our budget.
const MEMORY_MIB: u64 = 2048;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    HBase,
    Basalt,
}

impl Kind {
    fn name(self) -> &'static str {
        match self {
            Kind::HBase => "hbase",
            Kind::Basalt => "basalt",
        }
    }

    /// CPU seconds before anything is measured: a JVM compiles as it runs, a native server fills its caches.
    fn warm_up_seconds(self) -> &'static str {
        match self {
            Kind::HBase => "70",
            Kind::Basalt => "10",
        }
    }
}

/// A process; killed when dropped.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        self.0.kill().ok();
        self.0.wait().ok();
    }
}

/// A cluster of one region server.
struct Cluster {
    pieces: Pieces,
    region_server: Running,
    /// Where it shows its metrics.
    info_port: u16,
    _master: Running,
}

/// Plays it; `words` are those of `cargo xtask compare`.
pub fn run(words: &[String]) -> anyhow::Result<()> {
    let program = compare::program()?;
    let binary = binary()?;
    let lab = toolchain::jars()?;
    let out = run::target_dir().join("compare-on-hdfs");
    std::fs::create_dir_all(&out)?;
    let has = |option: &str| words.iter().any(|word| word == option);
    let (only_harms, is_alone) = (has(HARMED), has(WITHOUT_HBASE));
    let words: Vec<&String> = words.iter().filter(|word| *word != HARMED && *word != WITHOUT_HBASE).collect();
    let mut reports = Vec::new();
    let kinds = if is_alone { &[Kind::Basalt][..] } else { &[Kind::HBase, Kind::Basalt] };
    for &kind in kinds {
        println!("==> {} on HDFS", kind.name());
        let cluster = Cluster::start(&lab, kind, &binary)?;
        if !only_harms {
            let report = out.join(kind.name());
            let (before, calls) = (cluster.pieces.data_nodes_cpu(), cluster.pieces.name_node_calls()?);
            let began = Instant::now();
            let mut play = cluster.comparison(&program, kind, &report);
            play.args(["--runs", "1", "--first-warm-up", kind.warm_up_seconds(), "--only", WORKLOADS]).args(&words);
            run::must("compare", &mut play)?;
            let (cpu, took) = (cluster.pieces.data_nodes_cpu().saturating_sub(before), began.elapsed());
            println!("    the DataNodes used {:.1} s of CPU in {:.0} s", cpu.as_secs_f64(), took.as_secs_f64());
            let calls = cluster.pieces.name_node_calls()? - calls;
            println!("    the NameNode answered {:.1} calls a second", calls as f64 / took.as_secs_f64());
            cluster.tell_of_syncs()?;
            reports.push(report.join("report.json"));
        }
        // It is warm from what was played before.
        let warm_up = if only_harms { kind.warm_up_seconds() } else { "0" };
        for harm in ["a DataNode stands still for 12 s", "a DataNode is killed"] {
            println!("==> {}: {harm}", kind.name());
            cluster.harm(
                &program,
                kind,
                &out.join(format!("{}-harmed", kind.name())),
                (harm.contains("killed"), warm_up),
            )?;
        }
    }
    if only_harms {
        return Ok(());
    }
    let mut joined = Command::new(&program);
    joined.arg("compare").arg("--out").arg(&out);
    for report in reports {
        joined.arg("--from-json").arg(report);
    }
    run::must("compare", &mut joined)
}

/// Ours with all that a cluster needs, as a release; unless one is given in BASALT_BINARY.
fn binary() -> anyhow::Result<PathBuf> {
    if let Some(given) = server::given() {
        return Ok(given);
    }
    let mut build = run::cargo();
    run::must(
        "release build",
        build.args(["build", "--release", "--package", "basalt", "--features", "hdfs,zookeeper"]),
    )?;
    Ok(server::binary())
}

impl Cluster {
    fn start(lab: &Path, kind: Kind, binary: &Path) -> anyhow::Result<Cluster> {
        let pieces = Pieces::start(lab, jvm::Jit::Full)?;
        let (launcher, dir) = pieces.launcher();
        let [info_port] = testkit::free_ports()?;
        let conf = configuration(&pieces, info_port)?;
        let java = |name: &str, heap: &str, class: &str| {
            let mut command = Command::new("sh");
            command.arg(&launcher).arg(&conf).args([heap, class, "start"]).env("JAVA_TOOL_OPTIONS", JVM);
            launch(command, dir.join(format!("{name}.log")))
        };
        let (master, log) = java("master", "512m", "org.apache.hadoop.hbase.master.HMaster")?;
        let heap = format!("{MEMORY_MIB}m");
        let (mut region_server, own) = match kind {
            Kind::HBase => java("region-server", &heap, "org.apache.hadoop.hbase.regionserver.HRegionServer")?,
            Kind::Basalt => {
                let mut command = Command::new(binary);
                command.env_remove("HADOOP_CONF_DIR").arg("--config").arg(&conf);
                command.args(["-D", &format!("basalt.memory.size={}", MEMORY_MIB << 20)]);
                // What HBase does with its defaults: acknowledged when all DataNodes have it, files as the family says.
                command.args(["-D", "hbase.wal.hsync=false", "-D", "basalt.hfile.compression.default=NONE"]);
                command.args(["regionserver", "start"]);
                launch(command, dir.join("region-server.log"))?
            }
        };
        let said = |log: &Path, what: &str| std::fs::read_to_string(log).is_ok_and(|said| said.contains(what));
        let began = Instant::now();
        while !said(&log, "Master has completed initialization") {
            if let Some(status) = region_server.0.try_wait()? {
                bail!("the region server ended with {status}; see {}", own.display());
            }
            if began.elapsed() > START_LIMIT {
                bail!("HBase's master is not ready after {} s; see {}", START_LIMIT.as_secs(), log.display());
            }
            std::thread::sleep(Duration::from_millis(200));
        }
        Ok(Cluster { pieces, region_server, info_port, _master: master })
    }

    /// How long the log's syncs took that were counted since the last look, in milliseconds as HBase counts them.
    fn tell_of_syncs(&self) -> anyhow::Result<()> {
        let wal = bean(self.info_port, "Hadoop:service=HBase,name=RegionServer,sub=WAL")?;
        let figure = |name: &str| {
            wal[format!("SyncTime_{name}")].as_f64().with_context(|| format!("no SyncTime_{name} in {wal}"))
        };
        let [count, median, p99, most] = ["num_ops", "median", "99th_percentile", "max"].map(figure);
        println!("    its log was synced {} times: p50 {} ms, p99 {} ms, at most {} ms", count?, median?, p99?, most?);
        Ok(())
    }

    fn comparison(&self, program: &Path, kind: Kind, out: &Path) -> Command {
        let mut command = Command::new(program);
        let pid = self.region_server.0.id();
        let server = format!("{}={},pid={pid}", kind.name(), self.pieces.zookeeper());
        command.args(["compare", "--no-basalt", "--server", &server, "--out"]).arg(out);
        command
    }

    /// Harms a DataNode while clients write; the program says how long the longest of them waited.
    fn harm(&self, program: &Path, kind: Kind, out: &Path, (kill, warm_up): (bool, &str)) -> anyhow::Result<()> {
        let mut play = self.comparison(program, kind, out);
        let seconds = HARMED_SECONDS.to_string();
        play.args(["--runs", "1", "--first-warm-up", warm_up, "--rows", "20000", "--only", "put-32"]);
        play.args(["--seconds", &seconds]).stderr(Stdio::piped());
        let mut playing = Running(play.spawn().context("cannot run the comparison")?);
        let mut said = BufReader::new(playing.0.stderr.take().context("its words")?).lines();
        for line in said.by_ref() {
            let line = line?;
            println!("{line}");
            if line.contains("put-32: ") {
                break;
            }
        }
        std::thread::sleep(HARM_AFTER);
        // One that the log has a copy on: all three have.
        let node = self.pieces.data_node(if kill { 2 } else { 1 })?.to_string();
        let signal = |signal: &str| run::must("kill", Command::new("kill").args([signal, &node]));
        if kill {
            signal("-KILL")?;
        } else {
            signal("-STOP")?;
            std::thread::sleep(STOPPED);
            signal("-CONT")?;
        }
        said.try_for_each(|line| line.map(|line| println!("{line}")))?;
        if !playing.0.wait()?.success() {
            println!("    some writes failed");
        }
        Ok(())
    }
}

/// A directory with the `hbase-site.xml` of all.
fn configuration(pieces: &Pieces, info_port: u16) -> anyhow::Result<PathBuf> {
    let (_, dir) = pieces.launcher();
    let conf = dir.join("conf");
    // The pages are in no jar; what shows the metrics wants their directories.
    for pages in ["regionserver", "static"] {
        std::fs::create_dir_all(conf.join("hbase-webapps").join(pages))?;
    }
    let (hdfs, zookeeper) = (pieces.hdfs(), pieces.zookeeper());
    let (host, port) = zookeeper.split_once(':').context("host:port")?;
    let tmp = dir.join("tmp").display().to_string();
    let root = format!("{hdfs}/hbase");
    let info_port = info_port.to_string();
    let properties = [
        ("hbase.rootdir", root.as_str()),
        ("fs.defaultFS", &hdfs),
        ("hbase.cluster.distributed", "true"),
        ("hbase.zookeeper.quorum", host),
        ("hbase.zookeeper.property.clientPort", port),
        ("hbase.tmp.dir", &tmp),
        ("hbase.master.port", "0"),
        ("hbase.regionserver.port", "0"),
        ("hbase.master.info.port", "-1"),
        ("hbase.regionserver.info.port", &info_port),
        ("hbase.master.ipc.address", "127.0.0.1"),
        ("hbase.regionserver.ipc.address", "127.0.0.1"),
        ("hbase.master.hostname", "localhost"),
        ("hbase.unsafe.regionserver.hostname", "localhost"),
    ];
    let property =
        |(key, value): (&str, &str)| format!("<property><name>{key}</name><value>{value}</value></property>\n");
    let text: String = properties.into_iter().map(property).collect();
    std::fs::write(conf.join("hbase-site.xml"), format!("<configuration>\n{text}</configuration>\n"))?;
    std::fs::write(conf.join("log4j2.properties"), jvm::LOG_TO_CONSOLE)?;
    Ok(conf)
}

fn launch(mut command: Command, log: PathBuf) -> anyhow::Result<(Running, PathBuf)> {
    let file = std::fs::File::create(&log).with_context(|| format!("cannot write {}", log.display()))?;
    let command = command.stdin(Stdio::null()).stdout(file.try_clone()?).stderr(file);
    let child = command.spawn().with_context(|| format!("cannot run {:?}", command.get_program()))?;
    Ok((Running(child), log))
}
