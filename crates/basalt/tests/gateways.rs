//! Gateways that are processes of their own: their status pages and metrics.
#![allow(clippy::disallowed_methods, reason = "tests of a process work on real directories and sockets")]

use crate::common::{Scratch, Server};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::{Child, Command, Stdio};

/// A gateway; killed when dropped.
pub struct Gateway {
    child: Child,
    pub address: String,
    pages: String,
}

impl Gateway {
    pub fn start(server: &Server, words: &[&str]) -> Gateway {
        let quorum = format!("hbase.zookeeper.quorum=localhost:{}", server.zk_port);
        let mut child = Command::new(env!("CARGO_BIN_EXE_basalt"))
            .env_remove("HBASE_CONF_DIR")
            .args(["-D", &quorum, "-D", "basalt.bind=127.0.0.1"])
            .args(words)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("the binary runs");
        let mut log = BufReader::new(child.stderr.take().expect("piped")).lines().map_while(Result::ok);
        let behind = |line: &str, before: &str| {
            let at = line.find(before)? + before.len();
            Some(line[at..].trim_end_matches(['.', '/']).to_owned())
        };
        let pages = log.find_map(|line| behind(&line, "the status pages are at http://")).expect("it has pages");
        // What it logs later must not fill the pipe.
        std::thread::spawn(move || log.for_each(|line| eprintln!("gateway: {line}")));
        let mut line = String::new();
        BufReader::new(child.stdout.take().expect("piped")).read_line(&mut line).expect("a line");
        let address = behind(line.trim(), " is ready on ").unwrap_or_else(|| panic!("{line}"));
        Gateway { child, address, pages }
    }

    /// SIGTERM, and waits for its end.
    pub fn terminate(mut self) {
        let pid = rustix::process::Pid::from_child(&self.child);
        rustix::process::kill_process(pid, rustix::process::Signal::TERM).expect("the process is there");
        assert!(self.child.wait().expect("it ends").success());
    }

    fn page(&self, path: &str) -> String {
        get(&self.pages, path)
    }
}

impl Drop for Gateway {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The body of a page that is there.
fn get(address: &str, path: &str) -> String {
    let mut stream = TcpStream::connect(address).expect("it listens");
    write!(stream, "GET {path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n").expect("written");
    let mut answer = String::new();
    stream.read_to_string(&mut answer).expect("an answer");
    let (head, body) = answer.split_once("\r\n\r\n").expect("a head");
    assert!(head.starts_with("HTTP/1.1 200"), "{path}: {head}");
    body.to_owned()
}

/// A number of a bean.
fn number(gateway: &Gateway, bean: &str, name: &str) -> u64 {
    let json: serde_json::Value =
        serde_json::from_str(&gateway.page(&format!("/jmx?qry=Hadoop:service=HBase,name={bean}"))).expect("JSON");
    json["beans"][0][name].as_u64().unwrap_or_else(|| panic!("{name}: {json}"))
}

#[test]
fn a_rest_gateway_has_pages_and_hbases_metrics() {
    let scratch = Scratch::new("rest-pages");
    let server = Server::start(&scratch.join("data"), &[]);
    let rest = Gateway::start(&server, &["rest", "start", "-ro", "-p", "0", "-i", "0"]);
    assert!(get(&rest.address, "/version").contains("rest"));
    for (path, shown) in [
        ("/rest.jsp", "Only reads</dt><dd><code>true"),
        ("/processRest.jsp", "rest-worker"),
        ("/dump", "Status of the REST gateway"),
        ("/configuration?q=hbase.rest.readonly", "hbase.rest.readonly"),
        ("/prometheus", "process_resident_memory_bytes"),
        ("/conf", "hbase.zookeeper.quorum"),
    ] {
        let page = rest.page(path);
        assert!(page.contains(shown), "{path} does not show {shown}: {page}");
    }
    assert_eq!((number(&rest, "REST", "requests"), number(&rest, "REST", "successfulGet")), (1, 1));
    assert!(rest.page("/prometheus").contains("rest_requests"), "{}", rest.page("/prometheus"));
}

#[test]
fn a_thrift_gateway_has_pages_and_hbases_metrics() {
    let scratch = Scratch::new("thrift-pages");
    let server = Server::start(&scratch.join("data"), &[]);
    let thrift = Gateway::start(&server, &["thrift", "-hsha", "-p", "0", "--infoport", "0", "start"]);
    // getTableNames(), binary, in a frame, as -hsha has it.
    let name = b"getTableNames";
    let mut message = vec![0x80, 1, 0, 1, 0, 0, 0, name.len() as u8];
    message.extend_from_slice(name);
    message.extend_from_slice(&[0, 0, 0, 7, 0]);
    let mut client = TcpStream::connect(&thrift.address).expect("it listens");
    client.write_all(&(message.len() as u32).to_be_bytes()).and_then(|()| client.write_all(&message)).expect("sent");
    let mut length = [0; 4];
    client.read_exact(&mut length).expect("a frame");
    let mut reply = vec![0; u32::from_be_bytes(length) as usize];
    client.read_exact(&mut reply).expect("a frame");
    assert!(reply.windows(name.len()).any(|word| word == name), "{reply:?}");
    for (path, shown) in [
        ("/thrift.jsp", "Transport</dt><dd><code>frames"),
        ("/processThrift.jsp", "thrift-worker"),
        ("/dump", "Interface: Thrift 1"),
    ] {
        let page = thrift.page(path);
        assert!(page.contains(shown), "{path} does not show {shown}: {page}");
    }
    for (name, expected) in [("ThriftCall_num_ops", 1), ("GetTableNames_num_ops", 1), ("numActiveWorkers", 1)] {
        assert_eq!(number(&thrift, "Thrift,sub=ThriftOne", name), expected, "{name}");
    }
}

#[test]
fn a_gateway_is_not_stopped_by_its_command() {
    for (name, words) in [("rest", ["rest", "stop"]), ("thrift", ["thrift", "stop"]), ("thrift2", ["thrift2", "stop"])]
    {
        let made = Command::new(env!("CARGO_BIN_EXE_basalt")).args(words).output().expect("the binary runs");
        let said = String::from_utf8_lossy(&made.stderr).into_owned();
        assert!(!made.status.success() && said.contains(&format!("bin/hbase-daemon.sh stop {name}")), "{said}");
    }
}

#[test]
fn gateways_explain_their_options() {
    for (name, options) in [
        ("rest", &["--infoport", "--readonly", "--port"][..]),
        ("thrift", &["--bind", "--compact", "--framed", "--readTimeout", "--threadedselector", "--minWorkers"]),
        ("thrift2", &["--readonly", "--hsha"]),
    ] {
        let made = Command::new(env!("CARGO_BIN_EXE_basalt")).args([name, "--help"]).output().expect("the binary runs");
        let said = String::from_utf8_lossy(&made.stdout).into_owned();
        assert!(made.status.success() && options.iter().all(|option| said.contains(option)), "{said}");
    }
}
