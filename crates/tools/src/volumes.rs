//! `basalt volumes`: the disks of a root directory, as its server sees them or without one.

use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, anyhow, bail};
use base::{Config, Rng};
use fs::LocalVolume;
use fs::tiered::{self, Survey, TieredVolume, VolumeSpec};
use proto::volumes::{StatusResponse, Volume};

use crate::arguments::{self, Known, flag};
use crate::files;
use crate::jobs::{defines, helped, on_cluster};

const USAGE: &str = "\
The disks of a root directory (basalt.volumes).

Usage: basalt volumes COMMAND

  status    each volume: where it is, what it holds, what is wrong with it; the server is asked if one runs
  check     files whose bytes are not there, files that no name has
  gather    brings all files back: one directory again, as HBase can open it

    --remove-nameless   with check: removes files that no name has, as crashes leave them
    --help              this text

The root directory is what hbase.rootdir says. check and gather want it for themselves: no server may run. gather may be broken off
and begun again; basalt.volumes is to be taken out of the configuration after it.

Examples:
  basalt volumes status
  basalt -D hbase.rootdir=/data/hbase volumes gather
";

const KNOWN: &[Known] = &[flag("", "remove-nameless")];

/// Runs the tool; the code that the process ends with.
///
/// # Errors
/// The root directory cannot be used, or a file's bytes are lost.
pub fn run(config: &Config, given: &[String]) -> anyhow::Result<ExitCode> {
    if given.is_empty() {
        print!("{USAGE}");
        return Ok(ExitCode::FAILURE);
    }
    if let Some(code) = helped(USAGE, given) {
        return Ok(code);
    }
    let (config, rest) = defines(config, given)?;
    let parsed = arguments::parse("volumes", KNOWN, &rest)?;
    let place = files::root_place(&config)?;
    if !place.is_dir() {
        bail!("there is no directory {}: hbase.rootdir must name the root directory", place.display());
    }
    let home = LocalVolume::open(&place).with_context(|| format!("cannot read {}", place.display()))?;
    let home = Arc::new(home);
    match parsed.rest.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["status"] => status(&config, &home),
        ["check"] => check(home, parsed.has("remove-nameless")),
        ["gather"] => gather(home),
        _ => bail!("volumes: one of status, check and gather is needed; basalt volumes --help"),
    }
}

/// The root and its volumes, for this process alone.
fn claimed(home: &Arc<LocalVolume>) -> anyhow::Result<Option<(TieredVolume, Survey)>> {
    std::mem::forget(home.lock().map_err(|error| anyhow!("{}", error.source))?);
    let tell = Arc::new(|sentence: String| eprintln!("{sentence}"));
    let opened = tiered::open_gathering(home.clone(), &Rng::from_system(), tell)
        .map_err(|error| anyhow!("{}: {}", home.root().display(), error.source))?;
    Ok(opened.map(|(volume, survey, locks)| {
        std::mem::forget(locks);
        (volume, survey)
    }))
}

fn none(home: &LocalVolume) -> ExitCode {
    println!("{} has no files on other volumes", home.root().display());
    ExitCode::SUCCESS
}

/// What the server says, where one has the root directory and answers; else what the disk does.
fn status(config: &Config, home: &Arc<LocalVolume>) -> anyhow::Result<ExitCode> {
    let root = home.root().display();
    if let Some(pid) = home.claimed_by()? {
        match ask(config, pid) {
            Ok(StatusResponse { volumes, .. }) if volumes.is_empty() => return Ok(none(home)),
            Ok(StatusResponse { volumes, waiting_regions, .. }) => {
                let files: u64 = volumes.iter().map(|volume| volume.files).sum();
                println!(
                    "{files} files of {root} are on other volumes; this is what the server (pid {pid}) says of them"
                );
                volumes.iter().for_each(|volume| println!("{}", said_by_server(volume)));
                if waiting_regions > 0 {
                    println!("{waiting_regions} regions are closed until a volume is back");
                }
                return Ok(ExitCode::SUCCESS);
            }
            Err(why) => println!(
                "the process with pid {pid} has {root} and does not say how its volumes are ({why:#}): which of them are slow, or have failed in its eyes, \
                 is not known here"
            ),
        }
    }
    let Some(volume) = tiered::look(home.clone())? else { return Ok(none(home)) };
    let survey = volume.survey()?;
    println!("{} files of {root} are on other volumes", survey.placed);
    for status in volume.status() {
        let VolumeSpec { tier, place, .. } = &status.spec;
        let free = bytes_or_unknown(status.free_bytes);
        let there = status.trouble.map_or_else(String::new, |why| format!(", MISSING: {why}"));
        let (files, used) = (status.files, status.used_bytes);
        println!(
            "tier {} ({}): {place}, {files} files of {used} bytes, {free} bytes free{there}",
            tier.name, tier.class
        );
    }
    Ok(ExitCode::SUCCESS)
}

fn bytes_or_unknown(bytes: Option<u64>) -> String {
    bytes.map_or_else(|| "unknown".to_owned(), |bytes| bytes.to_string())
}

fn said_by_server(volume: &Volume) -> String {
    let ms = |us: u64| us as f64 / 1000.0;
    let mut said = format!(
        "tier {} ({}): {}, {} files of {} bytes, {} bytes free",
        volume.tier,
        volume.class,
        volume.directory,
        volume.files,
        volume.used_bytes,
        bytes_or_unknown(volume.free_bytes)
    );
    if let Some(us) = volume.sync_p99_us {
        said += &format!(", syncs {:.1} ms (99th percentile)", ms(us));
    }
    match &volume.trouble {
        Some(why) if volume.is_there => said += &format!(", {why}"),
        Some(why) => said += &format!(", FAILED: {why}; {} regions wait for it", volume.waiting_regions),
        None => {}
    }
    if volume.is_slow {
        said += ", SLOW";
        if volume.waits_us >= STALLED_US {
            said += &format!(": a call waits for {:.1} s", volume.waits_us as f64 / 1e6);
        }
    }
    if volume.drains {
        said += ", to be emptied";
        let moved = format!("{} files of {} bytes were moved", volume.moved_files, volume.moved_bytes);
        match &volume.moving_ended {
            _ if volume.is_moving => said += &format!(": {moved}, {} are left", volume.files),
            Some(why) => said += &format!(": {moved}, and no more: {why}"),
            None if volume.files == 0 => said += ": nothing is left, it may be taken out of basalt.volumes",
            None => said += &format!(": basalt admin drain-volume --wait {} moves what is there", volume.directory),
        }
    }
    said
}

/// A call that waits for so long is told of.
const STALLED_US: u64 = 1_000_000;
/// So long a server is waited for that has the root directory.
const ANSWERS_WITHIN: Duration = Duration::from_secs(10);

/// What the server that is this process says of its volumes.
fn ask(config: &Config, pid: u32) -> anyhow::Result<StatusResponse> {
    let mut config = config.clone();
    // It is there or it is not.
    config.set("hbase.client.retries.number", "1");
    on_cluster(&config, |connection| async move {
        let asked = async {
            let admin = connection.admin();
            for server in admin.servers().await? {
                let status = admin.volumes(&server).await?;
                if status.pid == pid {
                    return Ok(status);
                }
            }
            bail!("no server that answers has process id {pid}")
        };
        tokio::time::timeout(ANSWERS_WITHIN, asked).await.context("no answer within 10 s")?
    })
}

fn check(home: Arc<LocalVolume>, remove: bool) -> anyhow::Result<ExitCode> {
    let Some((volume, survey)) = claimed(&home)? else { return Ok(none(&home)) };
    for path in &survey.missing {
        println!("MISSING {path}: its bytes are not on their volume");
    }
    for (place, object, bytes) in &survey.nameless {
        println!("nameless {place}/{object}: {bytes} bytes");
    }
    if remove {
        volume.remove_nameless(&survey)?;
    }
    println!(
        "{} files on other volumes, {} of them missing; {} files without a name{}",
        survey.placed,
        survey.missing.len(),
        survey.nameless.len(),
        if remove { ", removed" } else { "" }
    );
    Ok(if survey.missing.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn gather(home: Arc<LocalVolume>) -> anyhow::Result<ExitCode> {
    let Some((volume, survey)) = claimed(&home)? else { return Ok(none(&home)) };
    let total = survey.placed;
    let gathered = volume.gather(&mut |path, so_far| println!("{} of {total}: {path}", so_far.files))?;
    println!("{} files of {} bytes are in {} now", gathered.files, gathered.bytes, home.root().display());
    println!("Take basalt.volumes out of the configuration before the next start");
    Ok(ExitCode::SUCCESS)
}
