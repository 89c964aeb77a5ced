//! `basalt doctor`: whether this machine suits, and what to change where it does not.
//!
//! Always true: it changes nothing, but for a file that it writes into the data's directory to time the disk, and removes.

use crate::ports::listen_address;
use crate::{memory, settings, unheeded};
use anyhow::Result;
use base::Config;
use std::io::Write;
use std::net::{TcpListener, ToSocketAddrs};
use std::path::{Path, PathBuf};
use std::time::Instant;

/// How good it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Grade {
    Good,
    /// It works; something better can be had.
    Poor,
    /// It does not start, or not for long.
    Bad,
}

/// One look at one thing.
struct Finding {
    grade: Grade,
    what: &'static str,
    said: String,
}

fn good(what: &'static str, said: impl Into<String>) -> Finding {
    Finding { grade: Grade::Good, what, said: said.into() }
}

fn poor(what: &'static str, said: impl Into<String>) -> Finding {
    Finding { grade: Grade::Poor, what, said: said.into() }
}

fn bad(what: &'static str, said: impl Into<String>) -> Finding {
    Finding { grade: Grade::Bad, what, said: said.into() }
}

/// Looks at everything and says what it finds; whether a server can be started.
///
/// # Errors
/// A setting has no legal value.
pub fn run(config: &Config) -> Result<bool> {
    let unread = unheeded::of(config, &settings::rows())?;
    let mut findings = vec![descriptors(), address_space(), budget(config)];
    findings.extend(disk(config));
    findings.extend(ports(config));
    findings.push(clock());
    findings.push(names());
    findings.push(huge_pages());
    if unread.unknown.is_empty() {
        findings.push(good("settings", "every key is known"));
    } else {
        let unknown = unread.unknown.join(", ");
        findings.push(poor("settings", format!("nothing reads {unknown}; check the spelling")));
    }
    findings.extend(balancer(config));
    for (key, reason) in &unread.unheeded {
        findings.push(poor("settings", format!("{key} has no effect: {reason}")));
    }
    for finding in &findings {
        let mark = match finding.grade {
            Grade::Good => "ok  ",
            Grade::Poor => "warn",
            Grade::Bad => "BAD ",
        };
        println!("{mark}  {:<12} {}", finding.what, finding.said);
    }
    Ok(findings.iter().all(|finding| finding.grade != Grade::Bad))
}

/// Of a cluster: whether a tool has left its balancer off.
fn balancer(config: &Config) -> Option<Finding> {
    if !config.is_set("hbase.zookeeper.quorum") {
        return None;
    }
    let who = tools::cluster::balancer_left_off(config)?;
    Some(poor(
        "balancer",
        format!(
            "a rolling restart has switched it off and not on again ({who}); unless that is still at work: balance_switch true in basalt shell, or \
             run basalt admin rolling-restart --graceful again, which switches it on when it is through"
        ),
    ))
}

/// Files and connections that may be open at once.
fn descriptors() -> Finding {
    use rustix::process::{Resource, getrlimit};
    let hard = getrlimit(Resource::Nofile).maximum;
    grade_descriptors(hard.unwrap_or(u64::MAX))
}

fn grade_descriptors(hard: u64) -> Finding {
    let advice = "raise it: LimitNOFILE=262144 in the systemd unit, or nofile in /etc/security/limits.conf";
    match hard {
        0..1024 => bad("files", format!("{hard} may be open, which some hundred regions exceed; {advice}")),
        1024..32_768 => poor("files", format!("{hard} may be open; {advice}")),
        _ if hard == u64::MAX => good("files", "any number may be open"),
        _ => good("files", format!("{hard} may be open")),
    }
}

/// A limit of address space, which maps of files and thread stacks use up.
fn address_space() -> Finding {
    use rustix::process::{Resource, getrlimit};
    match getrlimit(Resource::As).current {
        None => good("memory", "address space is not limited"),
        Some(bytes) => poor("memory", format!("address space is limited to {bytes} bytes: ulimit -v unlimited")),
    }
}

/// The memory budget against what there is.
fn budget(config: &Config) -> Finding {
    let most = memory::default_budget_bytes();
    match config.get(&settings::MEMORY_SIZE) {
        0 => good("budget", format!("{} MiB, from what the machine or its cgroup has", most >> 20)),
        set if set > most.saturating_mul(2) => {
            let advice = "the kernel may kill the process; lower it, or leave it out";
            bad("budget", format!("{} = {} MiB is nearly all there is: {advice}", settings::MEMORY_SIZE.key, set >> 20))
        }
        set => good("budget", format!("{} MiB", set >> 20)),
    }
}

/// The directory of the data, or what of it is there already; `None`: it is on no local disk.
fn data_directory(config: &Config) -> Option<PathBuf> {
    let Some(text) = config.text(settings::ROOT_DIRECTORY.key).map(str::trim).filter(|text| !text.is_empty()) else {
        return crate::storage::default_root(config).ok();
    };
    let path = text.strip_prefix("file://").or_else(|| text.strip_prefix("file:")).unwrap_or(text);
    (!path.contains("://")).then(|| PathBuf::from(path))
}

fn disk(config: &Config) -> Vec<Finding> {
    let Some(wanted) = data_directory(config) else {
        return vec![good("disk", "the data is on no disk of this machine")];
    };
    let Some(there) = std::path::absolute(&wanted)
        .ok()
        .and_then(|path| path.ancestors().find(|path| path.is_dir()).map(Path::to_owned))
    else {
        return vec![bad("disk", format!("{} cannot be looked at", wanted.display()))];
    };
    vec![room(&there), sync_time(&there)]
}

fn room(directory: &Path) -> Finding {
    match rustix::fs::statvfs(directory) {
        Err(error) => bad("disk", format!("{}: {error}", directory.display())),
        Ok(system) => grade_room(directory, system.f_bavail.saturating_mul(system.f_frsize)),
    }
}

fn grade_room(directory: &Path, free_bytes: u64) -> Finding {
    let said = format!("{} MiB free at {}", free_bytes >> 20, directory.display());
    match free_bytes >> 20 {
        0..256 => bad("disk", format!("{said}: without room the server is read-only; free some, or set hbase.rootdir")),
        256..4096 => poor("disk", format!("{said}: compactions need as much again as the largest store")),
        _ => good("disk", said),
    }
}

/// How long the disk takes to keep a few bytes: what every write waits for where it must survive a power failure.
#[allow(clippy::disallowed_methods, reason = "a file of its own, before there is a volume")]
fn sync_time(directory: &Path) -> Finding {
    let path = directory.join(format!(".basalt-doctor-{}", std::process::id()));
    let timed = || -> std::io::Result<u64> {
        let mut file = std::fs::File::create_new(&path)?;
        let mut times = Vec::new();
        for _ in 0..9 {
            let begun = Instant::now();
            file.write_all(&[0; 512])?;
            file.sync_data()?;
            times.push(u64::try_from(begun.elapsed().as_micros()).unwrap_or(u64::MAX));
        }
        times.sort_unstable();
        Ok(times[times.len() / 2])
    };
    let outcome = timed();
    let _ = std::fs::remove_file(&path);
    match outcome {
        Err(error) => bad("disk", format!("cannot write to {}: {error}", directory.display())),
        Ok(us) => grade_sync(us),
    }
}

fn grade_sync(us: u64) -> Finding {
    let said = format!("a sync takes {}.{:03} ms", us / 1000, us % 1000);
    match us {
        0..5_000 => good("disk sync", said),
        _ => poor("disk sync", format!("{said}: each write waits for one; a local SSD takes less than a millisecond")),
    }
}

fn ports(config: &Config) -> Vec<Finding> {
    let info_port = u16::try_from(config.get(&web::settings::INFO_PORT)).ok();
    let wanted = [
        (
            coordination::settings::CLIENT_PORT.key,
            settings::ZOOKEEPER_ADDRESS.key,
            Some(config.get(&coordination::settings::CLIENT_PORT)),
        ),
        (settings::MASTER_PORT.key, settings::MASTER_ADDRESS.key, Some(config.get(&settings::MASTER_PORT))),
        (
            settings::REGION_SERVER_PORT.key,
            settings::REGION_SERVER_ADDRESS.key,
            Some(config.get(&settings::REGION_SERVER_PORT)),
        ),
        (web::settings::INFO_PORT.key, web::settings::INFO_BIND_ADDRESS.key, info_port),
    ];
    let look = |(key, at, port): (&str, &str, Option<u16>)| {
        let Some(port) = port.filter(|port| *port != 0) else { return good("port", format!("{key}: any, or none")) };
        let bound = listen_address(config, at, port).and_then(|address| Ok(TcpListener::bind(address)?));
        match bound {
            Ok(_) => good("port", format!("{port} is free")),
            Err(error) => {
                bad("port", format!("{port}: {error}; stop what uses it, or choose another with -D {key}=PORT"))
            }
        }
    };
    wanted.into_iter().map(look).collect()
}

/// The clock that the kernel reads: the slow ones cost a system call at each look.
#[allow(clippy::disallowed_methods, reason = "the kernel's file, not the volume's")]
fn clock() -> Finding {
    let source = std::fs::read_to_string("/sys/devices/system/clocksource/clocksource0/current_clocksource");
    match source.as_deref().map(str::trim) {
        Err(_) => poor("clock", "its source cannot be read; see to it that something like chrony keeps the time"),
        Ok(slow @ ("hpet" | "acpi_pm" | "jiffies")) => {
            poor("clock", format!("the source is {slow}, which is slow: prefer tsc, or the hypervisor's own"))
        }
        Ok(source) => {
            good("clock", format!("the source is {source}; clients of a cluster want it right to some seconds"))
        }
    }
}

/// Whether others can look this machine up by the name that they are told.
fn names() -> Finding {
    let own = rustix::system::uname().nodename().to_string_lossy().into_owned();
    let known = (own.as_str(), 0).to_socket_addrs().is_ok_and(|mut all| all.next().is_some());
    match known {
        true => good("name", format!("{own} has an address")),
        false => poor(
            "name",
            format!(
                "{own} has no address: put it into /etc/hosts or DNS, or set hbase.master.hostname and \
                     hbase.unsafe.regionserver.hostname before you set basalt.bind"
            ),
        ),
    }
}

/// Memory in pages of 2 MiB wherever the kernel finds some makes the process larger than its budget.
#[allow(clippy::disallowed_methods, reason = "the kernel's file, not the volume's")]
fn huge_pages() -> Finding {
    let text = std::fs::read_to_string("/sys/kernel/mm/transparent_hugepage/enabled").unwrap_or_default();
    grade_huge_pages(&text)
}

fn grade_huge_pages(text: &str) -> Finding {
    let chosen = text.split_once('[').and_then(|(_, rest)| rest.split_once(']')).map(|(chosen, _)| chosen);
    match chosen {
        Some("always") => poor(
            "huge pages",
            "always: memory grows beyond the budget; echo madvise > /sys/kernel/mm/transparent_hugepage/enabled",
        ),
        Some(chosen) => good("huge pages", chosen),
        None => good("huge pages", "the kernel has none"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_thing_is_graded_by_what_it_comes_to() {
        assert_eq!([256, 4096, 1 << 20].map(|n| grade_descriptors(n).grade), [Grade::Bad, Grade::Poor, Grade::Good]);
        let path = Path::new("/");
        assert_eq!(
            [100 << 20, 1 << 30, 1 << 40].map(|n| grade_room(path, n).grade),
            [Grade::Bad, Grade::Poor, Grade::Good]
        );
        assert_eq!([300, 20_000].map(|us| grade_sync(us).grade), [Grade::Good, Grade::Poor]);
        let pages = ["[always] madvise never", "always [madvise] never", ""];
        assert_eq!(pages.map(|text| grade_huge_pages(text).grade), [Grade::Poor, Grade::Good, Grade::Good]);
    }

    #[test]
    fn a_port_in_use_is_found() {
        let taken = TcpListener::bind("127.0.0.1:0").expect("a port");
        let mut config = Config::default();
        config.set(settings::MASTER_PORT.key, taken.local_addr().expect("bound").port().to_string());
        let findings = ports(&config);
        assert!(
            findings.iter().any(|finding| finding.grade == Grade::Bad && finding.said.contains("hbase.master.port"))
        );
    }
}
