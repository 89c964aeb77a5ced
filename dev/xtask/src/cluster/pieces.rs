//! ZooKeeper, a NameNode and DataNodes from HBase's own jars: each a small JVM, on loopback and on free ports. Each has a script `NAME.sh` beside
//! its log that starts it, which tests may call again, and the number of the process that it is now in `NAME.pid`.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, bail};

use crate::jvm::Jit;
use crate::{jvm, run};

const DATA_NODES: usize = 3;
/// A NameNode and three DataNodes start in a quarter of this on two busy cores.
const LIMIT: Duration = Duration::from_secs(90);

/// A JVM; killed when dropped.
struct Piece {
    child: Child,
    log: PathBuf,
}

impl Drop for Piece {
    fn drop(&mut self) {
        self.child.kill().ok();
        self.child.wait().ok();
    }
}

/// The pieces on an empty directory.
pub struct Pieces {
    jars: String,
    jit: Jit,
    dir: PathBuf,
    name_node_port: u16,
    status_port: u16,
    zookeeper_port: u16,
    data_node_ports: Vec<[u16; 3]>,
    zookeeper: Option<Piece>,
    name_node: Option<Piece>,
    data_nodes: Vec<Option<Piece>>,
}

impl Pieces {
    /// Starts them all and waits until ZooKeeper serves, all DataNodes are there and the NameNode takes writes.
    pub fn start(lab: &Path, jit: Jit) -> anyhow::Result<Pieces> {
        let dir = run::scratch()?.join("cluster");
        if dir.exists() {
            std::fs::remove_dir_all(&dir)?;
        }
        let ports: [u16; 3 + 3 * DATA_NODES] = testkit::free_ports()?;
        let (first, others) = ports.split_at(3);
        let mut pieces = Pieces {
            jars: format!("{}/*", lab.join("hbase/jars").display()),
            jit,
            dir,
            name_node_port: first[0],
            status_port: first[1],
            zookeeper_port: first[2],
            data_node_ports: others.chunks_exact(3).map(|three| [three[0], three[1], three[2]]).collect(),
            zookeeper: None,
            name_node: None,
            data_nodes: (0..DATA_NODES).map(|_| None).collect(),
        };
        std::fs::create_dir_all(&pieces.dir)?;
        std::fs::write(pieces.launcher_path(), jvm::launcher(&pieces.jars, jit))?;
        pieces.start_zookeeper()?;
        pieces.start_name_node()?;
        for n in 0..DATA_NODES {
            pieces.start_data_node(n)?;
        }
        let (port, status_port) = (pieces.zookeeper_port, pieces.status_port);
        wait("ZooKeeper", pieces.zookeeper.as_mut(), || ask(port, "srvr").is_ok_and(|said| said.contains("Mode:")))?;
        wait("the NameNode", pieces.name_node.as_mut(), || takes_writes(status_port, DATA_NODES).unwrap_or(false))?;
        Ok(pieces)
    }

    /// `hdfs://host:port`.
    pub fn hdfs(&self) -> String {
        format!("hdfs://127.0.0.1:{}", self.name_node_port)
    }

    /// `host:port`.
    pub fn zookeeper(&self) -> String {
        format!("127.0.0.1:{}", self.zookeeper_port)
    }

    /// A script that starts a program of HBase's, and a directory for what such programs write.
    pub fn launcher(&self) -> (PathBuf, &Path) {
        (self.launcher_path(), &self.dir)
    }

    /// The same with other jars.
    pub fn launcher_of(&self, name: &str, jars: &str) -> anyhow::Result<PathBuf> {
        let path = self.dir.join(format!("{name}.sh"));
        std::fs::write(&path, jvm::launcher(jars, self.jit))?;
        Ok(path)
    }

    fn launcher_path(&self) -> PathBuf {
        self.dir.join("hbase.sh")
    }

    /// The process of a DataNode.
    pub fn data_node(&self, n: usize) -> anyhow::Result<u32> {
        let piece = self.data_nodes.get(n).and_then(Option::as_ref).context("there is no such DataNode")?;
        Ok(piece.child.id())
    }

    /// Calls that the NameNode has answered, those of the DataNodes among them.
    pub fn name_node_calls(&self) -> anyhow::Result<u64> {
        let name = format!("Hadoop:service=NameNode,name=RpcActivityForPort{}", self.name_node_port);
        let calls = &bean(self.status_port, &name)?["RpcProcessingTimeNumOps"];
        calls.as_u64().with_context(|| format!("{name} has no number of calls: {calls}"))
    }

    /// CPU time that all DataNodes have used.
    pub fn data_nodes_cpu(&self) -> Duration {
        self.data_nodes.iter().flatten().filter_map(|piece| run::cpu_time(piece.child.id())).sum()
    }

    /// Starts a DataNode on the data it has; one that was killed is waited for first.
    pub fn start_data_node(&mut self, n: usize) -> anyhow::Result<()> {
        let [data, http, ipc] = *self.data_node_ports.get(n).context("there is no such DataNode")?;
        let name = format!("dn{n}");
        let storage = self.dir.join(&name).join("data");
        std::fs::create_dir_all(&storage)?;
        let conf = self.hadoop_conf(
            &name,
            &[
                ("dfs.datanode.data.dir", format!("file://{}", storage.display())),
                ("dfs.datanode.address", format!("127.0.0.1:{data}")),
                ("dfs.datanode.http.address", format!("127.0.0.1:{http}")),
                ("dfs.datanode.ipc.address", format!("127.0.0.1:{ipc}")),
                ("dfs.datanode.hostname", "127.0.0.1".to_owned()),
            ],
        )?;
        let slot = self.data_nodes.get_mut(n).context("there is no such DataNode")?;
        // Its ports and its directory's lock are free once it is gone.
        drop(slot.take());
        let class = "org.apache.hadoop.hdfs.server.datanode.DataNode";
        *slot = Some(launch(&self.dir, &name, &conf, "128m", class, &[])?);
        Ok(())
    }

    /// Starts a ZooKeeper beside the other that knows a name with a password (`hbase`, `secret`), and serves TLS at a second port.
    pub fn start_secured_zookeeper(&self) -> anyhow::Result<Secured> {
        let dir = self.dir.join("zks");
        let conf = dir.join("conf");
        std::fs::create_dir_all(&conf)?;
        write_log4j(&conf)?;
        let [port, tls_port] = testkit::free_ports()?;
        let (keys, authority, names) = (dir.join("keys.p12"), dir.join("authority.pem"), dir.join("names.jaas"));
        let keytool = |words: &str| {
            let mut keytool = Command::new("keytool");
            keytool.args(words.split(' ')).args(["-alias", "zk", "-storepass", "changeit", "-keystore"]).arg(&keys);
            keytool
        };
        let made = "-genkeypair -keyalg RSA -dname CN=localhost -ext san=dns:localhost,ip:127.0.0.1 -storetype PKCS12";
        run::must("keytool", keytool(made).stderr(Stdio::null()))?;
        run::must("keytool", keytool("-exportcert -rfc").arg("-file").arg(&authority).stderr(Stdio::null()))?;
        let module = "org.apache.zookeeper.server.auth.DigestLoginModule required user_hbase=\"secret\"";
        std::fs::write(&names, format!("Server {{ {module}; }};\n"))?;
        let file = conf.join("zoo.cfg");
        std::fs::write(
            &file,
            format!(
                "{}authProvider.1=org.apache.zookeeper.server.auth.SASLAuthenticationProvider\n\
                 serverCnxnFactory=org.apache.zookeeper.server.NettyServerCnxnFactory\n\
                 secureClientPortAddress=127.0.0.1\nsecureClientPort={tls_port}\nssl.keyStore.location={}\n\
                 ssl.keyStore.password=changeit\nssl.keyStore.type=PKCS12\nssl.clientAuth=none\n",
                zookeeper_settings(&dir.join("data"), port),
                keys.display(),
            ),
        )?;
        let options = format!("-Djava.security.auth.login.config={}", names.display());
        let arguments = [file.display().to_string()];
        let mut piece = launch_with(&self.dir, "zks", &conf, "96m", ZOOKEEPER, &arguments, &options)?;
        wait("the secured ZooKeeper", Some(&mut piece), || ask(port, "srvr").is_ok_and(|said| said.contains("Mode:")))?;
        Ok(Secured { _piece: piece, port, tls_port, authority })
    }

    fn start_zookeeper(&mut self) -> anyhow::Result<()> {
        let conf = self.dir.join("zk").join("conf");
        std::fs::create_dir_all(&conf)?;
        write_log4j(&conf)?;
        let file = conf.join("zoo.cfg");
        std::fs::write(&file, zookeeper_settings(&self.dir.join("zk/data"), self.zookeeper_port))?;
        let arguments = [file.display().to_string()];
        self.zookeeper = Some(launch(&self.dir, "zk", &conf, "96m", ZOOKEEPER, &arguments)?);
        Ok(())
    }

    fn start_name_node(&mut self) -> anyhow::Result<()> {
        let name = self.dir.join("nn").join("name");
        let conf = self.hadoop_conf(
            "nn",
            &[
                ("dfs.namenode.name.dir", format!("file://{}", name.display())),
                ("dfs.namenode.rpc-address", format!("127.0.0.1:{}", self.name_node_port)),
                ("dfs.namenode.http-address", format!("127.0.0.1:{}", self.status_port)),
            ],
        )?;
        let class = "org.apache.hadoop.hdfs.server.namenode.NameNode";
        let mut format = command(&self.jars, &conf, "128m", class);
        let formatted = run::logged(format.args(["-format", "-nonInteractive"]), &self.dir.join("format.log"), LIMIT)?;
        if !formatted.well {
            bail!("the NameNode could not format its directory: {}", formatted.output);
        }
        self.name_node = Some(launch(&self.dir, "nn", &conf, "192m", class, &[])?);
        Ok(())
    }

    /// Makes the configuration directory of a piece of HDFS.
    fn hadoop_conf(&self, piece: &str, more: &[(&str, String)]) -> anyhow::Result<PathBuf> {
        let conf = self.dir.join(piece).join("conf");
        // The status pages are in no jar; what asks for them wants their directories.
        for pages in ["webapps/hdfs", "webapps/datanode", "webapps/static"] {
            std::fs::create_dir_all(conf.join(pages))?;
        }
        write_log4j(&conf)?;
        let common = [
            ("fs.defaultFS", self.hdfs()),
            ("hadoop.tmp.dir", self.dir.join("tmp").display().to_string()),
            ("dfs.replication", DATA_NODES.to_string()),
            ("dfs.permissions.enabled", "false".to_owned()),
            ("dfs.namenode.datanode.registration.ip-hostname-check", "false".to_owned()),
            ("dfs.namenode.safemode.extension", "0".to_owned()),
            // Of so few, one that has twice the others' connections for a second would get no new blocks.
            ("dfs.namenode.redundancy.considerLoad", "false".to_owned()),
        ];
        let properties: String = common
            .iter()
            .chain(more)
            .map(|(key, value)| format!("<property><name>{key}</name><value>{value}</value></property>\n"))
            .collect();
        for file in ["core-site.xml", "hdfs-site.xml"] {
            std::fs::write(conf.join(file), format!("<configuration>\n{properties}</configuration>\n"))?;
        }
        Ok(conf)
    }
}

const ZOOKEEPER: &str = "org.apache.zookeeper.server.quorum.QuorumPeerMain";

fn zookeeper_settings(data: &Path, port: u16) -> String {
    format!(
        "tickTime=2000\ndataDir={}\nclientPortAddress=127.0.0.1\nclientPort={port}\nmaxSessionTimeout=90000\n\
         maxClientCnxns=0\nadmin.enableServer=false\n4lw.commands.whitelist=*\n",
        data.display()
    )
}

/// A ZooKeeper that asks who is there.
pub struct Secured {
    _piece: Piece,
    port: u16,
    tls_port: u16,
    authority: PathBuf,
}

impl Secured {
    /// Where it is, as tests are told.
    pub fn told(&self) -> [(&'static str, String); 3] {
        [
            ("BASALT_TEST_ZOOKEEPER_SECURED", format!("127.0.0.1:{}", self.port)),
            ("BASALT_TEST_ZOOKEEPER_TLS", format!("localhost:{}", self.tls_port)),
            ("BASALT_TEST_ZOOKEEPER_CA", self.authority.display().to_string()),
        ]
    }
}

fn write_log4j(conf: &Path) -> anyhow::Result<()> {
    std::fs::write(conf.join("log4j2.properties"), jvm::LOG_TO_CONSOLE)?;
    Ok(())
}

fn command(jars: &str, conf: &Path, heap: &str, class: &str) -> Command {
    jvm::java_with_heap(heap, Jit::Quick, &format!("{}:{jars}", conf.display()), class)
}

fn launch(dir: &Path, name: &str, conf: &Path, heap: &str, class: &str, arguments: &[String]) -> anyhow::Result<Piece> {
    launch_with(dir, name, conf, heap, class, arguments, "")
}

/// The same with options of the JVM.
fn launch_with(
    dir: &Path,
    name: &str,
    conf: &Path,
    heap: &str,
    class: &str,
    arguments: &[String],
    options: &str,
) -> anyhow::Result<Piece> {
    let [script, log, pid] = ["sh", "log", "pid"].map(|kind| dir.join(format!("{name}.{kind}")));
    let launcher = dir.join("hbase.sh");
    let (launcher, conf, arguments) = (launcher.display(), conf.display(), arguments.join("' '"));
    let arguments = if arguments.is_empty() { arguments } else { format!(" '{arguments}'") };
    let (log_name, pid) = (log.display(), pid.display());
    std::fs::write(
        &script,
        format!(
            "export JAVA_TOOL_OPTIONS='{options}'\necho $$ > '{pid}'\nexec sh '{launcher}' '{conf}' {heap} {class}{arguments} >> '{log_name}' 2>&1\n"
        ),
    )?;
    let child = Command::new("sh").arg(&script).stdin(Stdio::null()).spawn().context("cannot run sh")?;
    Ok(Piece { child, log })
}

/// Asks until the answer is yes, the piece has ended, or the time is up.
fn wait(what: &str, piece: Option<&mut Piece>, mut ready: impl FnMut() -> bool) -> anyhow::Result<()> {
    let piece = piece.context("it was not started")?;
    let start = Instant::now();
    while !ready() {
        if let Some(status) = piece.child.try_wait()? {
            bail!("{what} ended with {status}; see {}", piece.log.display());
        }
        if start.elapsed() > LIMIT {
            bail!("{what} is not ready after {} s; see {}", LIMIT.as_secs(), piece.log.display());
        }
        std::thread::sleep(Duration::from_millis(100));
    }
    Ok(())
}

/// What a server on this machine answers before it closes the connection.
fn ask(port: u16, request: &str) -> anyhow::Result<String> {
    let mut stream = TcpStream::connect(testkit::local(port))?;
    stream.set_read_timeout(Some(Duration::from_secs(5)))?;
    stream.write_all(request.as_bytes())?;
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer)?;
    Ok(String::from_utf8_lossy(&answer).into_owned())
}

/// What a server of Hadoop's, HBase's or ours on this machine shows of itself under this name.
pub fn bean(status_port: u16, name: &str) -> anyhow::Result<serde_json::Value> {
    let answer = ask(status_port, &format!("GET /jmx?qry={name} HTTP/1.0\r\n\r\n"))?;
    let (_, body) = answer.split_once("\r\n\r\n").context("no body")?;
    let mut body: serde_json::Value = serde_json::from_str(body)?;
    Ok(body.pointer_mut("/beans/0").with_context(|| format!("no bean {name} yet"))?.take())
}

/// Are this many DataNodes there, and is the NameNode out of safe mode?
fn takes_writes(status_port: u16, data_nodes: usize) -> anyhow::Result<bool> {
    let bean = |name: &str| bean(status_port, &format!("Hadoop:service=NameNode,name={name}"));
    let there = bean("FSNamesystemState")?.get("NumLiveDataNodes").and_then(serde_json::Value::as_u64);
    let safe_mode = bean("NameNodeInfo")?.get("Safemode").and_then(|text| text.as_str().map(str::to_owned));
    Ok(there == Some(data_nodes as u64) && safe_mode.as_deref() == Some(""))
}
