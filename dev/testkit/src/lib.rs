//! What every harness needs that runs the server's binary: to start it and to learn where it listens.
//!
//! Always true: whether a server serves, and where, is read from the file that `--ready-file` has it write, never from what it says
//! to people.
//!
//! Must not know: what the server is asked then.
#![allow(clippy::disallowed_methods, reason = "harnesses work on real files, clocks and processes")]

pub mod collector;
pub mod shell;

use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::path::{Path, PathBuf};
use std::process::{Child, Command};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant, SystemTime};

use anyhow::{Context, bail};

/// Where a server listens, and its process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Serving {
    /// Its process; behind `strace` another than the child.
    pub pid: u32,
    /// The coordination endpoint's port.
    pub zookeeper_port: u16,
    /// The master's port.
    pub master_port: u16,
    /// The region server's port.
    pub region_port: u16,
    /// The status pages' port, if there are any.
    pub info_port: Option<u16>,
    /// The REST gateway's port, if there is one in the process.
    pub rest_port: Option<u16>,
    /// The Thrift 1 gateway's.
    pub thrift_port: Option<u16>,
}

/// A port on this machine.
pub fn local(port: u16) -> SocketAddr {
    SocketAddr::from(([127, 0, 0, 1], port))
}

/// Ports nobody listens on now, below those that the system hands to whoever asks for any: a server of another test that
/// listens on port 0 would sooner or later be given one of these before it is used, and a client that knocks at the port
/// of a dead server would be given that very port, and meet itself. No two calls in a process return the same one.
///
/// # Errors
/// None is free.
pub fn free_ports<const N: usize>() -> anyhow::Result<[u16; N]> {
    const FIRST: u16 = 17_000;
    const COUNT: u32 = 13_000;
    static TAKEN: AtomicU32 = AtomicU32::new(0);
    let start =
        SystemTime::now().duration_since(SystemTime::UNIX_EPOCH)?.subsec_micros().wrapping_add(std::process::id());
    // Whoever is first says where this process begins; from there each port is handed out once.
    let _ = TAKEN.compare_exchange(0, 1 + start % COUNT, Ordering::Relaxed, Ordering::Relaxed);
    let mut ports = [0; N];
    for port in &mut ports {
        *port = (0..COUNT)
            .map(|_| FIRST + (TAKEN.fetch_add(1, Ordering::Relaxed) % COUNT) as u16)
            .find(|port| TcpListener::bind((Ipv4Addr::UNSPECIFIED, *port)).is_ok())
            .with_context(|| format!("no free port between {FIRST} and {}", u32::from(FIRST) + COUNT))?;
    }
    Ok(ports)
}

impl Serving {
    /// From what the server writes.
    ///
    /// # Errors
    /// A number is missing.
    pub fn parse(json: &str) -> anyhow::Result<Serving> {
        let port = |name: &str| number(json, name).and_then(|number| u16::try_from(number).ok());
        let needed = |name: &str| port(name).with_context(|| format!("no {name} in {json:?}"));
        Ok(Serving {
            pid: number(json, "pid").and_then(|pid| u32::try_from(pid).ok()).context("no pid")?,
            zookeeper_port: needed("zookeeper_port")?,
            master_port: needed("master_port")?,
            region_port: needed("region_port")?,
            info_port: port("info_port"),
            rest_port: port("rest_port"),
            thrift_port: port("thrift_port"),
        })
    }
}

/// The number of this name in one flat object.
fn number(json: &str, name: &str) -> Option<u64> {
    let (_, rest) = json.split_once(&format!("\"{name}\":"))?;
    let rest = rest.trim_start();
    rest.split(|c: char| !c.is_ascii_digit()).next()?.parse().ok()
}

/// A file for a server to say in that it serves. One start, one file.
#[derive(Clone, Debug)]
pub struct ReadyFile(PathBuf);

impl ReadyFile {
    /// At `path`, where nothing of an earlier start stays.
    pub fn new(path: PathBuf) -> ReadyFile {
        std::fs::remove_file(&path).ok();
        ReadyFile(path)
    }

    /// Tells the server of it.
    pub fn pass_to(&self, command: &mut Command) {
        command.arg("--ready-file").arg(&self.0);
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.0
    }

    /// Waits until the server serves.
    ///
    /// # Errors
    /// It ended before, or does not serve in time.
    pub fn wait(&self, child: &mut Child, limit: Duration) -> anyhow::Result<Serving> {
        let start = Instant::now();
        loop {
            // Asked first: a server that said so and has ended since was ready.
            let ended = child.try_wait()?;
            // It gets its name when it is whole.
            if let Ok(json) = std::fs::read_to_string(&self.0) {
                return Serving::parse(&json);
            }
            if let Some(status) = ended {
                bail!("it ended before it was ready: {status}");
            }
            if start.elapsed() > limit {
                bail!("not ready after {} s", limit.as_secs());
            }
            std::thread::sleep(Duration::from_millis(5));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ports_are_read_from_what_the_server_writes() {
        let json =
            r#"{"pid": 77, "zookeeper_port": 2181, "master_port": 16000, "region_port": 16020, "info_port": null}"#;
        let serving = Serving::parse(json).unwrap();
        assert_eq!((serving.pid, serving.zookeeper_port, serving.info_port), (77, 2181, None));
        assert_eq!(Serving::parse(&json.replace("null", "16010")).unwrap().info_port, Some(16010));
        assert_eq!((serving.rest_port, serving.thrift_port), (None, None));
        let with_gateways = json.replace('}', ", \"rest_port\": 8080, \"thrift_port\": 9090}");
        let serving = Serving::parse(&with_gateways).unwrap();
        assert_eq!((serving.rest_port, serving.thrift_port), (Some(8080), Some(9090)));
        assert!(Serving::parse("{}").is_err());
    }

    #[test]
    fn no_two_calls_are_given_the_same_port_and_none_that_the_system_hands_out() {
        let asked: Vec<[u16; 3]> = (0..100).map(|_| free_ports().unwrap()).collect();
        let mut ports = asked.concat();
        assert!(ports.iter().all(|port| (17_000..30_000).contains(port)), "{ports:?}");
        ports.sort_unstable();
        ports.dedup();
        assert_eq!(ports.len(), 300);
    }
}
