//! A cluster each of whose servers is on a host of its own, for programs of HBase's that kill and start servers by their hosts' names: by
//! `HBaseClusterManager`, over what stands for ssh here. Hosts are addresses of the loopback device, and folders.

use crate::joined::lab::{Lab, Piece};
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::Command;

pub struct Hosts<'a> {
    lab: &'a Lab,
    dir: PathBuf,
    /// Servers have the same ports on each host, as usual: who starts again is found where it was.
    ports: [u16; 2],
    told: Vec<(&'static str, String)>,
}

/// What a server does there.
#[derive(Clone, Copy)]
pub enum Does {
    Master,
    RegionServer,
}

impl Does {
    /// HBase's word for it.
    fn word(self) -> &'static str {
        match self {
            Does::Master => "master",
            Does::RegionServer => "regionserver",
        }
    }
}

impl<'a> Hosts<'a> {
    /// None yet. Servers of the cluster are told this.
    pub fn new(lab: &'a Lab, told: &[(&'static str, &str)]) -> Hosts<'a> {
        let dir = PathBuf::from(lab.file("hosts"));
        std::fs::create_dir_all(dir.join("bin")).expect("a directory");
        script(&dir.join("on-host"), include_str!("on-host"));
        script(&dir.join("bin/ps"), include_str!("ps"));
        script(&dir.join("bin/hbase"), include_str!("hbase"));
        symlink(concat!(env!("CARGO_MANIFEST_DIR"), "/../../bin/hbase-daemon.sh"), dir.join("bin/hbase-daemon.sh"))
            .expect("a link");
        // It must have the product's name, which `ps` looks for.
        symlink(env!("CARGO_BIN_EXE_basalt"), dir.join("bin/basalt")).expect("a link");
        let told = told.iter().map(|(key, value)| (*key, (*value).to_owned())).collect();
        Hosts { lab, dir, ports: testkit::free_ports().expect("ports"), told }
    }

    /// Starts a server on the host of that name and address.
    pub fn start(&self, name: &str, address: &str, does: Does) {
        let [master, server] = self.ports.map(|port| port.to_string());
        let own = [
            ("hbase.master.hostname", name),
            ("hbase.master.ipc.address", address),
            ("hbase.master.port", &master),
            ("hbase.unsafe.regionserver.hostname", name),
            ("hbase.regionserver.ipc.address", address),
            ("hbase.regionserver.port", &server),
        ];
        let own = own.map(|(key, value)| (key, value.to_owned()));
        self.lab.conf_with(&format!("hosts/{name}/conf"), &[&own[..], &self.told].concat());
        let started = self.on(name, &format!("hbase-daemon.sh start {}", does.word())).output().expect("bash runs");
        let said = String::from_utf8_lossy(&started.stderr);
        assert!(started.status.success(), "the {} of {name} did not start: {said}", does.word());
    }

    /// A command as it is given on a host.
    fn on(&self, name: &str, command: &str) -> Command {
        let mut on_host = Command::new(self.dir.join("on-host"));
        on_host.args([name, command]);
        on_host
    }

    /// Starts a program on a host; what it says is in the log of that name.
    pub fn launch(&self, name: &str, log: &str, words: &[String]) -> Piece {
        self.lab.launch(log, self.on(name, &format!("exec '{}'", words.join("' '"))).current_dir(&self.dir))
    }

    /// What HBase's managers of clusters are told.
    pub fn managed(&self) -> [(&'static str, String); 3] {
        let home = self.dir.display().to_string();
        [
            ("hbase.test.cluster.distributed", "true".into()),
            ("hbase.it.clustermanager.ssh.cmd", format!("{} %4$s \"%5$s\"", self.dir.join("on-host").display())),
            ("hbase.it.clustermanager.hbase.home", home),
        ]
    }
}

impl Drop for Hosts<'_> {
    /// Nothing is left of it, whoever started it.
    fn drop(&mut self) {
        // By its path: where it is gone nothing is killed, and not all that the machine's own `ps` shows.
        let ps = self.dir.join("bin/ps");
        let kill = format!("'{}' ux | while read -r _ process _; do kill -KILL \"$process\"; done", ps.display());
        for host in std::fs::read_dir(&self.dir).into_iter().flatten().flatten() {
            if host.path().join("conf").is_dir() {
                let _at_most_it_lives = self.on(&host.file_name().to_string_lossy(), &kill).status();
            }
        }
    }
}

fn script(path: &Path, text: &str) {
    std::fs::write(path, text).expect("written");
    std::fs::set_permissions(path, PermissionsExt::from_mode(0o755)).expect("executable");
}
