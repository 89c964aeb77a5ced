//! `basalt volumes`: the disks of a root directory, without a server.

use std::process::ExitCode;
use std::sync::Arc;

use anyhow::{Context, anyhow, bail};
use base::{Config, Rng};
use fs::LocalVolume;
use fs::tiered::{self, Survey, TieredVolume, VolumeSpec};

use crate::arguments::{self, Known, flag};
use crate::files;
use crate::jobs::{defines, helped};

const USAGE: &str = "\
The disks of a root directory (basalt.volumes), without a server.

Usage: basalt volumes COMMAND

  status    each volume: where it is, what it holds
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
        ["status"] => status(home),
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

fn status(home: Arc<LocalVolume>) -> anyhow::Result<ExitCode> {
    let Some(volume) = tiered::look(home.clone())? else { return Ok(none(&home)) };
    let survey = volume.survey()?;
    println!("{} files of {} are on other volumes", survey.placed, home.root().display());
    for status in volume.status() {
        let VolumeSpec { tier, place, .. } = &status.spec;
        let free = status.free_bytes.map_or_else(|| "unknown".to_owned(), |bytes| bytes.to_string());
        let there = status.trouble.map_or_else(String::new, |why| format!(", MISSING: {why}"));
        let used = status.used_bytes;
        println!("tier {} ({}): {place}, {used} bytes of files, {free} bytes free{there}", tier.name, tier.class);
    }
    Ok(ExitCode::SUCCESS)
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
