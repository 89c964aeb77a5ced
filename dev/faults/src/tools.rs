//! What the system lends for faults: a small disk, a memory cap, `strace`. Each says plainly when it cannot be had.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, bail};

/// A file system of a fixed size in memory; gone when dropped.
pub struct SmallDisk {
    pub dir: PathBuf,
}

impl SmallDisk {
    pub fn mount(dir: &Path, mib: u64) -> anyhow::Result<SmallDisk> {
        std::fs::create_dir_all(dir)?;
        let mut mount = Command::new("mount");
        mount.args(["-t", "tmpfs", "-o", &format!("size={mib}m"), "tmpfs"]).arg(dir).stderr(Stdio::null());
        if !mount.status().is_ok_and(|status| status.success()) {
            bail!("skipped: mounting a tmpfs is not allowed here");
        }
        Ok(SmallDisk { dir: dir.to_owned() })
    }

    fn ballast(&self) -> PathBuf {
        self.dir.join("ballast")
    }

    /// Leaves no room but `leave_kib`. A file system that gives room back while it is filled is filled again.
    pub fn fill(&self, leave_kib: u64) -> anyhow::Result<()> {
        use std::io::Write;
        let mut file = std::fs::OpenOptions::new().create(true).append(true).open(self.ballast())?;
        let block = vec![0x5a; 4096];
        loop {
            let stat = rustix::fs::statvfs(&self.dir)?;
            if stat.f_bavail * stat.f_frsize <= leave_kib * 1024 || file.write_all(&block).is_err() {
                return Ok(());
            }
        }
    }

    pub fn free(&self) -> anyhow::Result<()> {
        std::fs::remove_file(self.ballast()).context("the ballast")
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        // Lazily: a server that is just being killed may still be in it.
        Command::new("umount").arg("-l").arg(&self.dir).status().ok();
    }
}

/// A cgroup with a memory limit; gone when dropped.
pub struct MemoryCap {
    pub dir: PathBuf,
}

impl MemoryCap {
    pub fn new(mib: u64) -> anyhow::Result<MemoryCap> {
        let bytes = (mib << 20).to_string();
        // Version 2 with the memory controller, or version 1.
        let candidates = [
            ("/sys/fs/cgroup", "memory.max", "/sys/fs/cgroup/cgroup.controllers"),
            ("/sys/fs/cgroup/unified", "memory.max", "/sys/fs/cgroup/unified/cgroup.controllers"),
            ("/sys/fs/cgroup/memory", "memory.limit_in_bytes", ""),
        ];
        for (parent, limit, controllers) in candidates {
            if !controllers.is_empty() {
                let has = std::fs::read_to_string(controllers).unwrap_or_default();
                if !has.split_whitespace().any(|name| name == "memory") {
                    continue;
                }
                std::fs::write(Path::new(parent).join("cgroup.subtree_control"), "+memory").ok();
            }
            let dir = Path::new(parent).join(format!("basalt-faults-{}", std::process::id()));
            if std::fs::create_dir(&dir).is_ok() {
                if std::fs::write(dir.join(limit), &bytes).is_ok() {
                    return Ok(MemoryCap { dir });
                }
                std::fs::remove_dir(&dir).ok();
            }
        }
        bail!("skipped: no cgroup with a memory limit can be made here")
    }

    /// How often the limit was hit, where the kernel says so.
    pub fn hits(&self) -> String {
        let read = |name: &str| std::fs::read_to_string(self.dir.join(name)).ok();
        read("memory.failcnt").or_else(|| read("memory.events")).unwrap_or_default().trim().replace('\n', " ")
    }
}

impl Drop for MemoryCap {
    fn drop(&mut self) {
        let start = Instant::now();
        while std::fs::remove_dir(&self.dir).is_err() && start.elapsed() < Duration::from_secs(2) {
            std::thread::sleep(Duration::from_millis(20));
        }
    }
}

/// `strace` on a running process; the process goes on unharmed when this is dropped.
pub struct Strace {
    child: Child,
}

impl Strace {
    pub fn is_there() -> anyhow::Result<()> {
        let found = Command::new("strace").arg("--version").stdout(Stdio::null()).stderr(Stdio::null()).status();
        if found.is_ok_and(|status| status.success()) { Ok(()) } else { bail!("skipped: there is no strace") }
    }

    /// Attaches with these options and waits until it holds every thread.
    pub fn attach(pid: u32, trace: &Path, options: &[String]) -> anyhow::Result<Strace> {
        let mut child = Command::new("strace")
            .args(["-f", "-qq", "-o"])
            .arg(trace)
            .args(options)
            .args(["-p", &pid.to_string()])
            .stderr(Stdio::null())
            .spawn()
            .context("skipped: there is no strace")?;
        let start = Instant::now();
        loop {
            let threads: Vec<PathBuf> = std::fs::read_dir(format!("/proc/{pid}/task"))
                .context("the server is gone")?
                .filter_map(|entry| Some(entry.ok()?.path().join("status")))
                .collect();
            let held = |path: &PathBuf| {
                std::fs::read_to_string(path)
                    .is_ok_and(|text| text.lines().any(|l| l.starts_with("TracerPid:") && !l.ends_with("\t0")))
            };
            if threads.iter().all(held) {
                return Ok(Strace { child });
            }
            if child.try_wait()?.is_some() || start.elapsed() > Duration::from_secs(10) {
                bail!("skipped: strace cannot attach here");
            }
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    /// Lines of a trace with an injected outcome.
    pub fn injected(trace: &Path) -> u64 {
        let text = std::fs::read(trace).unwrap_or_default();
        String::from_utf8_lossy(&text)
            .lines()
            .filter(|line| line.contains("(INJECTED)") || line.contains("(DELAYED)"))
            .count() as u64
    }
}

impl Drop for Strace {
    fn drop(&mut self) {
        // Interrupted, it lets go of the process.
        rustix::process::kill_process(rustix::process::Pid::from_child(&self.child), rustix::process::Signal::INT).ok();
        self.child.wait().ok();
    }
}
