//! `basalt regionmover`: takes the regions off a server before it stops, and brings them back. Follows: `RegionMover`, `MoveWithAck`.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context, bail};
use base::{Config, Setting};
use bytes::Bytes;
use cell::vint;
use client::{Connection, ScanOptions};
use convert::{from_proto, to_proto};
use model::{RegionInfo, Scan, ServerName};
use parking_lot::Mutex;
use proto::{magic, pb};
use tokio::task::JoinSet;

use crate::arguments::{self, Known, flag, valued};
use crate::jobs::{defines, helped, on_cluster};

const USAGE: &str = "\
Takes the regions off a region server, and brings them back.

Usage: basalt regionmover -r HOST[:PORT] -o OPERATION [OPTIONS]

    -r, --regionserverhost HOST[:PORT]  the server; hbase.regionserver.port where no port is given
    -o, --operation OPERATION           unload: moves its regions to the other servers, and writes down which
                                        load: brings those back that were written down, when the server is there
                                        isolate_regions: leaves it only those that -i names, and decommissions it
    -m, --maxthreads N                  regions that move at the same time; 1
    -f, --filename FILE                 where the regions are written down; USERHOST:PORT in the directory for temporary files
    -x, --excludefile FILE              servers that get no regions, HOST:PORT in a line each
    -d, --designatedfile FILE           the only servers that get regions, likewise
    -i, --isolateRegionIds ID,...       encoded names of regions that stay alone
    -n, --noack                         does not look whether a region can be read before and after its move
    -t, --timeout SECONDS               how long all of it may take
    -h, --help                          this text

The file is as HBase's RegionMover writes and reads it. Ends with 0 when every region has moved, else with 1: what has moved is in the file.

Examples:
  basalt regionmover -r host1:16020 -o unload -m 4
  basalt regionmover -r host1:16020 -o load -m 4
  basalt regionmover -r host1 -o isolate_regions -i 1588230740
";

const KNOWN: &[Known] = &[
    valued("r", "regionserverhost"),
    valued("o", "operation"),
    valued("m", "maxthreads"),
    valued("f", "filename"),
    valued("x", "excludefile"),
    valued("d", "designatedfile"),
    valued("i", "isolateRegionIds"),
    valued("t", "timeout"),
    flag("n", "noack"),
];

const MOVE_RETRIES: Setting<u32> =
    Setting { key: "hbase.move.retries.max", default: 5, min: 1, max: 1_000_000, unit: "count", doc: "" };
const MOVE_WAIT_SECONDS: Setting<u64> =
    Setting { key: "hbase.move.wait.max", default: 60, min: 1, max: 1_000_000, unit: "s", doc: "" };
const SERVER_START_WAIT_SECONDS: Setting<u64> =
    Setting { key: "hbase.serverstart.wait.max", default: 180, min: 1, max: 1_000_000, unit: "s", doc: "" };
const REGION_SERVER_PORT: &str = "hbase.regionserver.port";
const DEFAULT_PORT: u16 = 16020;

/// Between two looks at where a region is, or whether a server is there: nobody tells a client.
const LOOK_EVERY: Duration = Duration::from_millis(200);

/// Moves regions, so many at the same time.
#[derive(Clone)]
pub(super) struct Mover {
    pub connection: Connection,
    pub threads: usize,
    /// Whether regions are read before and after.
    pub ack: bool,
    retries: u32,
    wait: Duration,
    start_wait: Duration,
}

/// Regions that have moved, told as they do.
pub(super) type Moved = Arc<Mutex<Vec<RegionInfo>>>;

/// An address as it is given on a command line: host and port.
pub(super) fn address(config: &Config, text: &str) -> anyhow::Result<(String, u16)> {
    let (host, port) = match text.split_once(':') {
        Some((host, port)) => (host, Some(port)),
        None => (text, config.text(REGION_SERVER_PORT)),
    };
    let port = port.map_or(Ok(DEFAULT_PORT), |port| port.trim().parse());
    let port = port.with_context(|| format!("{text}: this is no HOST[:PORT]"))?;
    Ok((host.trim().to_ascii_lowercase(), port))
}

/// Whether a server is at that address.
pub(super) fn is_at(server: &ServerName, (host, port): &(String, u16)) -> bool {
    server.port == *port && server.host.eq_ignore_ascii_case(host)
}

/// Runs the tool; the code that the process ends with.
///
/// # Errors
/// The arguments make no sense, or a region cannot be moved.
pub fn run(config: &Config, given: &[String]) -> anyhow::Result<ExitCode> {
    if let Some(code) = helped(USAGE, given) {
        return Ok(code);
    }
    let (config, rest) = defines(config, given)?;
    let config = &config;
    let parsed = arguments::parse("regionmover", KNOWN, &rest)?;
    let at = address(config, parsed.value("regionserverhost").context("regionmover: -r HOST[:PORT] is needed")?)?;
    let operation = parsed.value("operation").context("regionmover: -o OPERATION is needed")?.to_ascii_lowercase();
    let user = std::env::var("HADOOP_USER_NAME").or_else(|_| std::env::var("USER")).unwrap_or_default();
    let own_file = || std::env::temp_dir().join(format!("{user}{}:{}", at.0, at.1));
    let file = parsed.value("filename").map_or_else(own_file, PathBuf::from);
    let only = parsed.value("designatedfile").map(addresses).transpose()?;
    let without = parsed.value("excludefile").map(addresses).transpose()?;
    let stays: Vec<String> =
        parsed.value("isolateRegionIds").into_iter().flat_map(|ids| ids.split(',')).map(str::to_owned).collect();
    let timeout: Option<u64> = parsed.number("timeout")?;
    let threads = parsed.number("maxthreads")?.unwrap_or(1).max(1);
    let ack = !parsed.has("noack");
    on_cluster(config, |connection| async move {
        let mover = Mover::new(connection, config, threads, ack);
        let moved = Moved::default();
        let work = async {
            match &*operation {
                "load" => mover.load(&at, read_file(&file)?, &moved).await,
                "unload" => mover.unload(&at, &mover.targets(&at, only, without).await?, &[], &moved).await,
                "isolate_regions" if stays.is_empty() => bail!("regionmover: isolate_regions needs -i ID,..."),
                "isolate_regions" => {
                    let stays = mover.isolate(&at, &stays).await?;
                    mover.unload(&at, &mover.targets(&at, only, without).await?, &stays, &moved).await
                }
                "unload_from_rack" => {
                    bail!(
                        "regionmover: unload_from_rack is not supported, for racks are not known; name servers with -x or -d"
                    )
                }
                other => bail!("regionmover: unknown operation {other}: -o takes load, unload or isolate_regions"),
            }
        };
        let ended = match timeout {
            None => work.await,
            Some(seconds) => tokio::time::timeout(Duration::from_secs(seconds), work)
                .await
                .unwrap_or_else(|_| bail!("not done within {seconds} s")),
        };
        let moved = moved.lock().clone();
        println!("Moved {} regions", moved.len());
        if operation != "load" {
            write_file(&file, &moved)?;
        }
        ended
    })?;
    Ok(ExitCode::SUCCESS)
}

impl Mover {
    pub fn new(connection: Connection, config: &Config, threads: usize, ack: bool) -> Mover {
        let seconds = |setting: &Setting<u64>| Duration::from_secs(config.get(setting));
        Mover {
            connection,
            threads,
            ack,
            retries: config.get(&MOVE_RETRIES),
            wait: seconds(&MOVE_WAIT_SECONDS),
            start_wait: seconds(&SERVER_START_WAIT_SECONDS),
        }
    }

    /// The server at that address.
    ///
    /// # Errors
    /// There is none.
    pub async fn server(&self, at: &(String, u16)) -> anyhow::Result<ServerName> {
        let servers = self.connection.admin().servers().await?;
        let found = servers.iter().find(|server| is_at(server, at)).cloned();
        found.with_context(|| {
            let names: Vec<String> = servers.iter().map(ServerName::address).collect();
            format!("no region server is at {}:{}; there are: {}", at.0, at.1, names.join(" "))
        })
    }

    /// The servers that regions of the one at `at` may go to.
    ///
    /// # Errors
    /// There is none.
    pub async fn targets(
        &self,
        at: &(String, u16),
        only: Option<BTreeSet<String>>,
        without: Option<BTreeSet<String>>,
    ) -> anyhow::Result<Vec<ServerName>> {
        let admin = self.connection.admin();
        let decommissioned = admin.decommissioned_servers().await?;
        let mut servers = admin.servers().await?;
        let named = |server: &ServerName, names: &Option<BTreeSet<String>>| {
            names.as_ref().map(|names| names.contains(&server.address().to_ascii_lowercase()))
        };
        servers.retain(|server| {
            !is_at(server, at)
                && !decommissioned.contains(server)
                && named(server, &only) != Some(false)
                && named(server, &without) != Some(true)
        });
        if servers.is_empty() {
            bail!("no other region server may take the regions of {}:{}", at.0, at.1);
        }
        Ok(servers)
    }

    /// Moves all regions but `stays` off the server at `at`, in turn to `targets`, hbase:meta first, until none is left there.
    ///
    /// # Errors
    /// A region cannot be moved.
    pub async fn unload(
        &self,
        at: &(String, u16),
        targets: &[ServerName],
        stays: &[RegionInfo],
        moved: &Moved,
    ) -> anyhow::Result<()> {
        let server = self.server(at).await?;
        loop {
            let mut regions = self.connection.admin().online_regions(&server).await?;
            let stays: BTreeSet<&[u8]> = stays.iter().map(|info| &info.name()[..]).collect();
            regions.retain(|info| !stays.contains(&info.name()[..]) && !info.is_replica());
            if regions.is_empty() {
                return Ok(());
            }
            println!("Moving {} regions off {server}", regions.len());
            regions.sort_by_key(|info| !info.table.is_meta());
            let steps = regions.into_iter().zip(targets.iter().cycle().cloned());
            self.move_all(steps.map(|(info, to)| (info, server.clone(), to)).collect(), moved).await?;
        }
    }

    /// Brings regions to the server at `at`, when it is there; hbase:meta first. What is there already, or has gone, is left alone.
    ///
    /// # Errors
    /// The server does not come, or a region cannot be moved.
    pub async fn load(&self, at: &(String, u16), regions: Vec<RegionInfo>, moved: &Moved) -> anyhow::Result<()> {
        if regions.is_empty() {
            println!("No regions to load");
            return Ok(());
        }
        let server = self.wait_for_server(at, None).await?;
        println!("Moving {} regions to {server}", regions.len());
        let mut steps = Vec::new();
        for info in regions {
            match self.place(&info).await? {
                Some(from) if from != server => steps.push((info, from, server.clone())),
                Some(_) => println!("{} is there already", info.encoded_name()),
                None => println!("{} is nowhere any more", info.encoded_name()),
            }
        }
        steps.sort_by_key(|(info, ..)| !info.table.is_meta());
        self.move_all(steps, moved).await
    }

    /// Waits for a server at that address that is not `before`.
    ///
    /// # Errors
    /// It does not come in time.
    pub async fn wait_for_server(&self, at: &(String, u16), before: Option<&ServerName>) -> anyhow::Result<ServerName> {
        let began = Instant::now();
        loop {
            // While the master changes hands nobody can say.
            match self.server(at).await {
                Ok(server) if Some(&server) != before => return Ok(server),
                Err(error) if began.elapsed() >= self.start_wait => return Err(error),
                _ if began.elapsed() >= self.start_wait => {
                    bail!("the region server at {}:{} was not started anew within {:?}", at.0, at.1, self.start_wait)
                }
                _ => tokio::time::sleep(LOOK_EVERY).await,
            }
        }
    }

    /// Brings the regions of those names to the server at `at`, and decommissions that.
    async fn isolate(&self, at: &(String, u16), names: &[String]) -> anyhow::Result<Vec<RegionInfo>> {
        let (admin, server) = (self.connection.admin(), self.server(at).await?);
        let (mut stays, mut steps) = (Vec::new(), Vec::new());
        for name in names {
            let found = admin.region(name.as_bytes()).await.with_context(|| format!("region {name}"))?;
            if found.server != server {
                steps.push((found.region.clone(), found.server, server.clone()));
            }
            stays.push(found.region);
        }
        self.move_all(steps, &Moved::default()).await?;
        admin.decommission_servers(std::slice::from_ref(&server), false).await?;
        println!("{server} is decommissioned");
        Ok(stays)
    }

    async fn move_all(&self, steps: Vec<(RegionInfo, ServerName, ServerName)>, moved: &Moved) -> anyhow::Result<()> {
        let mut under_way = JoinSet::new();
        let mut ended = Ok(());
        for (info, from, to) in steps {
            if under_way.len() >= self.threads {
                ended = join_one(&mut under_way).await;
            }
            if ended.is_err() {
                break;
            }
            let (mover, moved) = (self.clone(), moved.clone());
            let is_meta = info.table.is_meta();
            under_way.spawn(async move { mover.move_one(info, &from, &to, &moved).await });
            // Nothing else can be recorded while that is on its way.
            if is_meta {
                ended = join_one(&mut under_way).await;
            }
        }
        while !under_way.is_empty() {
            ended = ended.and(join_one(&mut under_way).await);
        }
        ended
    }

    async fn move_one(
        &self,
        info: RegionInfo,
        from: &ServerName,
        to: &ServerName,
        moved: &Moved,
    ) -> anyhow::Result<()> {
        let name = info.encoded_name().clone();
        let ack = self.ack || info.table.is_meta();
        if ack {
            self.read(&info).await.with_context(|| format!("region {name} cannot be read on {from}"))?;
        }
        let (mut tries, mut why) = (0, String::new());
        while tries < self.retries {
            tries += 1;
            match self.connection.admin().move_region(name.as_bytes(), Some(to)).await {
                Ok(()) => {}
                // It was split, merged or deleted meanwhile: what it has become is seen when the server is looked at again.
                Err(error) if is_gone(&error.to_string()) => return Ok(()),
                Err(error) => why = format!(": {error}"),
            }
            if !ack {
                break;
            }
            let began = Instant::now();
            while self.place(&info).await?.as_ref() == Some(from) && began.elapsed() < self.wait && why.is_empty() {
                tokio::time::sleep(LOOK_EVERY).await;
            }
            match self.place(&info).await? {
                Some(place) if place == *from => {}
                Some(_) => {
                    self.read(&info).await.with_context(|| format!("region {name} cannot be read after its move"))?;
                    why.clear();
                    break;
                }
                None => return Ok(()),
            }
            if tries >= self.retries {
                bail!("region {name} is still on {from} after {tries} tries to move it to {to}{why}");
            }
            why.clear();
        }
        if !why.is_empty() {
            bail!("region {name} cannot be moved to {to}{why}");
        }
        moved.lock().push(info);
        Ok(())
    }

    /// Where a region is; `None` when there is none of that name.
    async fn place(&self, info: &RegionInfo) -> anyhow::Result<Option<ServerName>> {
        self.connection.forget_locations();
        match self.connection.admin().region(info.encoded_name().as_bytes()).await {
            Ok(location) => Ok(Some(location.server)),
            Err(error) if is_gone(&error.to_string()) || format!("{error:?}").contains("UnknownRegionException") => {
                Ok(None)
            }
            Err(error) => Err(error.into()),
        }
    }

    /// Reads a row of a region.
    async fn read(&self, info: &RegionInfo) -> anyhow::Result<()> {
        let scan = Scan {
            start_row: info.start_key.clone(),
            stop_row: info.end_key.clone(),
            cache_blocks: false,
            ..Scan::default()
        };
        let options = ScanOptions { caching: 1, ..ScanOptions::default() };
        self.connection.table(&info.table).scan(scan, options).next().await?;
        Ok(())
    }
}

fn is_gone(why: &str) -> bool {
    why.contains("UnknownRegionException") || why.contains("Unexpected state for state=SPLIT,")
}

async fn join_one(under_way: &mut JoinSet<anyhow::Result<()>>) -> anyhow::Result<()> {
    match under_way.join_next().await {
        Some(done) => done.context("the move of a region ended by itself")?,
        None => Ok(()),
    }
}

/// `HOST:PORT` in a line each.
fn addresses(path: &str) -> anyhow::Result<BTreeSet<String>> {
    let text = std::fs::read_to_string(path).with_context(|| format!("cannot read {path}"))?;
    Ok(text.lines().map(|line| line.trim().to_ascii_lowercase()).filter(|line| !line.is_empty()).collect())
}

/// Regions as HBase's RegionMover writes them: their number, and each as a length and its message behind the magic.
fn write_file(path: &Path, regions: &[RegionInfo]) -> anyhow::Result<()> {
    let count = u32::try_from(regions.len()).context("too many regions for a file")?;
    let mut bytes = count.to_be_bytes().to_vec();
    for info in regions {
        let message = magic::encode(&to_proto::region_info(info));
        vint::write(&mut bytes, i64::try_from(message.len())?);
        bytes.extend_from_slice(&message);
    }
    std::fs::write(path, bytes).with_context(|| format!("cannot write {}", path.display()))
}

/// Nothing where there is no file.
fn read_file(path: &Path) -> anyhow::Result<Vec<RegionInfo>> {
    match std::fs::read(path) {
        Ok(bytes) => read_regions(&bytes).with_context(|| format!("{} is no list of regions", path.display())),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(Vec::new()),
        Err(error) => Err(error).with_context(|| format!("cannot read {}", path.display())),
    }
}

fn read_regions(bytes: &[u8]) -> anyhow::Result<Vec<RegionInfo>> {
    let (count, mut left) = bytes.split_first_chunk::<4>().context("it ends before the number of regions")?;
    let mut regions = Vec::new();
    for number in 0..u32::from_be_bytes(*count) {
        let cut = || format!("it ends within region {number}");
        let (length, taken) = vint::read(left).with_context(cut)?;
        let end = usize::try_from(length).ok().and_then(|length| length.checked_add(taken)).with_context(cut)?;
        let message = Bytes::copy_from_slice(left.get(taken..end).with_context(cut)?);
        left = &left[end..];
        let info: pb::RegionInfo =
            magic::decode(&message).with_context(|| format!("region {number} has no magic"))??;
        regions.push(from_proto::region_info(&info)?);
    }
    Ok(regions)
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::TableName;

    #[test]
    fn the_file_is_hbases_and_damage_is_told() {
        let directory = std::env::temp_dir().join(format!("basalt-regionmover-{}", std::process::id()));
        let meta = RegionInfo::meta();
        let user = RegionInfo::new(TableName::parse("t").expect("a name"), Bytes::from_static(b"a"), Bytes::new(), 7);
        write_file(&directory, &[meta.clone(), user.clone()]).expect("written");
        assert_eq!(read_file(&directory).expect("read"), [meta, user]);
        let bytes = std::fs::read(&directory).expect("the file");
        std::fs::remove_file(&directory).expect("removed");
        assert_eq!(bytes[..4], [0, 0, 0, 2]);
        assert_eq!(&bytes[5..9], b"PBUF", "a length of one byte, the magic");
        for end in 0..bytes.len() {
            assert!(read_regions(&bytes[..end]).is_err(), "cut at {end}");
        }
        assert!(read_regions(&[0xFF; 64]).is_err());
        assert_eq!(read_file(&directory).expect("there is none"), []);
    }

    #[test]
    fn an_address_has_the_configured_port_where_it_names_none() {
        let mut config = Config::default();
        assert_eq!(address(&config, "Host1").expect("legal"), ("host1".to_owned(), 16020));
        config.set(REGION_SERVER_PORT, "7");
        assert_eq!(address(&config, "host1").expect("legal").1, 7);
        assert_eq!(address(&config, "host1:9").expect("legal").1, 9);
        assert!(address(&config, "host1:x").is_err());
    }
}
