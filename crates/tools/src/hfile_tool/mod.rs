//! `basalt hfile`: what is in an HFile, and whether it is whole. Follows: `HFilePrettyPrinter`.

mod blocks;
mod cells;
mod meta;
mod stats;

use std::io::{BufWriter, Write};
use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;

use anyhow::{Context, bail};
use base::Config;
use fs::{FilePath, LocalVolume, Volume};
use hfile::{Reader, ReaderContext};
use serde_json::json;

use self::cells::Cells;
use self::stats::Stats;
use crate::arguments::{self, Known, Parsed, flag, valued};
use crate::{dictionaries, files};

const USAGE: &str = "\
What is in an HFile, and whether it is whole.

Usage: basalt hfile [OPTIONS] FILE...

 -v,--verbose             names files, and counts cells
 -p,--printkv             prints keys and values
 -e,--printkey            prints keys
 -m,--printmeta           prints trailer, file info and Bloom filters
 -b,--printblocks         prints the root of the block index
 -h,--printblockheaders   prints the header of each block
 -k,--checkrow            warns of rows that are not in order
 -a,--checkfamily         warns of cells of another family than the file's directory says
 -w,--seekToRow ROW       only cells of this row (bytes as \\xNN)
 -s,--stats               statistics of keys, values and rows
 -d,--details             the same, with counts by range
 -i,--checkMobIntegrity   names cells whose MOB files are missing
 -f,--file FILE           the file
 -r,--region REGION       all files of a region, by its whole name, below hbase.rootdir
    --verify              reads all of it: checksums, order, index, Bloom filters, number of cells
    --json                one JSON object a line
    --help                this text

Ends with 0, with 1 where something is wrong with the file or a check warned, with 2 where a file cannot be read at all.

Files that are packed with a Zstandard dictionary are read with that of their table, if they lie in a root directory with its descriptor, else with
-D hbase.io.compress.zstd.dictionary=FILE.

Examples:
  basalt hfile -m -s /data/hbase/data/default/t/5f2b.../f/0a1b...
  basalt hfile -p -w 'row-1\\x00' FILE
  basalt hfile --verify --json FILE1 FILE2
  basalt hfile -D hbase.rootdir=/data/hbase -v -r 't,,1700000000000.5f2b8a...c1.'
";

const KNOWN: &[Known] = &[
    flag("v", "verbose"),
    flag("p", "printkv"),
    flag("e", "printkey"),
    flag("m", "printmeta"),
    flag("b", "printblocks"),
    flag("h", "printblockheaders"),
    flag("k", "checkrow"),
    flag("a", "checkfamily"),
    flag("s", "stats"),
    flag("d", "details"),
    flag("i", "checkMobIntegrity"),
    valued("w", "seekToRow"),
    valued("f", "file"),
    valued("r", "region"),
    flag("", "verify"),
    flag("", "json"),
];

/// What is to be done to each file.
struct Asked {
    verbose: bool,
    values: bool,
    keys: bool,
    meta: bool,
    index: bool,
    block_headers: bool,
    check_rows: bool,
    check_family: bool,
    stats: bool,
    ranges: bool,
    check_mob: bool,
    verify: bool,
    json: bool,
    row: Option<Vec<u8>>,
}

impl Asked {
    fn of(parsed: &Parsed) -> anyhow::Result<Asked> {
        let row = parsed.value("seekToRow");
        if row.is_some_and(str::is_empty) {
            bail!("hfile: --seekToRow needs a row");
        }
        let (values, ranges) = (parsed.has("printkv"), parsed.has("details"));
        Ok(Asked {
            verbose: parsed.has("verbose"),
            values,
            keys: values || parsed.has("printkey"),
            meta: parsed.has("printmeta"),
            index: parsed.has("printblocks"),
            block_headers: parsed.has("printblockheaders"),
            check_rows: parsed.has("checkrow"),
            check_family: parsed.has("checkfamily"),
            stats: ranges || parsed.has("stats"),
            ranges,
            check_mob: parsed.has("checkMobIntegrity"),
            verify: parsed.has("verify"),
            json: parsed.has("json"),
            row: row.map(cell::print::to_bytes_binary),
        })
    }

    fn reads_cells(&self) -> bool {
        self.verbose || self.keys || self.check_rows || self.check_family || self.stats || self.check_mob
    }
}

/// Runs the tool; the code that the process ends with.
///
/// # Errors
/// The arguments make no sense, or a file cannot be read.
pub fn run(config: &Config, given: &[String]) -> anyhow::Result<ExitCode> {
    if given.is_empty() || given.iter().any(|word| word == "--help" || word == "-help") {
        print!("{USAGE}");
        return Ok(if given.is_empty() { ExitCode::FAILURE } else { ExitCode::SUCCESS });
    }
    let parsed = arguments::parse("hfile", KNOWN, given)?;
    let asked = Asked::of(&parsed)?;
    let volume = files::everything()?;
    let mut out = BufWriter::new(std::io::stdout().lock());
    let paths = named(config, &parsed, &volume, &mut out)?;
    if paths.is_empty() {
        bail!("hfile: no file is named: FILE, --file FILE or --region REGION");
    }
    let (mut count, mut warnings) = (0, 0);
    for path in &paths {
        match shown(config, &asked, &volume, path, &mut out) {
            Ok(done) => {
                count += done.cells;
                warnings += done.warnings;
            }
            Err(error) if is_gone(&error) => return Ok(ExitCode::SUCCESS),
            Err(error) => {
                out.flush()?;
                if asked.json {
                    writeln!(out, "{}", json!({"file": absolute(path), "error": format!("{error:#}")}))?;
                    out.flush()?;
                }
                eprintln!("basalt: hfile: {error:#}");
                return Ok(ExitCode::from(if path_is_there(&volume, path) { 1 } else { 2 }));
            }
        }
    }
    if (asked.verbose || asked.keys) && !asked.json {
        writeln!(out, "Scanned kv count -> {count}")?;
    }
    out.flush()?;
    Ok(ExitCode::from(u8::from(warnings > 0)))
}

/// Whether an error is that nobody reads the output any more.
fn is_gone(error: &anyhow::Error) -> bool {
    error.downcast_ref::<std::io::Error>().is_some_and(|error| error.kind() == std::io::ErrorKind::BrokenPipe)
}

fn path_is_there(volume: &LocalVolume, path: &FilePath) -> bool {
    matches!(volume.stat(path), Ok(Some(_)))
}

/// A path of the volume of everything as people write it.
fn absolute(path: &FilePath) -> String {
    format!("/{}", path.as_str())
}

/// The files that the arguments name.
fn named(
    config: &Config,
    parsed: &Parsed,
    volume: &LocalVolume,
    out: &mut impl Write,
) -> anyhow::Result<Vec<FilePath>> {
    let mut paths = Vec::new();
    for text in parsed.values("file").chain(parsed.rest.iter().map(String::as_str)) {
        paths.push(files::path_of(&files::place(text)?)?);
    }
    if let Some(region) = parsed.value("region") {
        let dir = region_dir(&files::root_place(config)?, region)?;
        let found = region_files(volume, &dir)?;
        if parsed.has("verbose") {
            writeln!(out, "region dir -> {}", absolute(&dir))?;
            writeln!(out, "Number of region files found -> {}", found.len())?;
            for (i, path) in found.iter().enumerate() {
                writeln!(out, "Found file[{}] -> {}", i + 1, absolute(path))?;
            }
        }
        paths.extend(found);
    }
    Ok(paths)
}

/// The directory of a region below a root directory, by the region's whole name: `table,start,id.encoded.`.
fn region_dir(root: &Path, region: &str) -> anyhow::Result<FilePath> {
    let wrong = || format!("--region {region}: a whole name is table,start-key,id.encoded-name.");
    let table = region.split(',').next().filter(|table| region.len() > table.len()).with_context(wrong)?;
    let encoded = match region.strip_suffix('.').and_then(|name| name.rsplit_once('.')) {
        Some((_, encoded)) => encoded.to_owned(),
        // The region of hbase:meta has a name of the old form.
        None if table == "hbase:meta" => model::RegionInfo::meta().encoded_name().to_string(),
        None => bail!("{}", wrong()),
    };
    let dir = rootdir::paths::region_dir_of_names(table, &encoded).with_context(wrong)?;
    Ok(files::path_of(root)?.join(dir.as_str()))
}

/// The store files of a region, in the order of families and names.
fn region_files(volume: &LocalVolume, dir: &FilePath) -> anyhow::Result<Vec<FilePath>> {
    let families = rootdir::family_names(volume, dir).with_context(|| format!("cannot read {}", absolute(dir)))?;
    let mut paths = Vec::new();
    for family in families {
        let dir = dir.join(&family);
        let entries = volume.list(&dir)?;
        paths.extend(entries.iter().filter(|entry| !entry.is_dir).map(|entry| dir.join(&entry.name)));
    }
    Ok(paths)
}

/// What came of one file.
struct Done {
    cells: u64,
    warnings: u64,
}

fn shown(
    config: &Config,
    asked: &Asked,
    volume: &LocalVolume,
    path: &FilePath,
    out: &mut impl Write,
) -> anyhow::Result<Done> {
    if asked.verbose && !asked.json {
        writeln!(out, "Scanning -> {}", absolute(path))?;
    }
    if !path_is_there(volume, path) {
        bail!("there is no file {}", absolute(path));
    }
    let dictionary = dictionaries::of_file(config, path);
    let reader = dictionaries::open(volume, path, dictionary.as_deref(), ReaderContext::default())?;
    let mut done = Done { cells: 0, warnings: 0 };
    let mut stats = Stats::new(asked.ranges);
    if asked.reads_cells() {
        let mut cells = Cells::new(config, asked, volume, path);
        cells.read(&reader, &mut stats, out)?;
        (done.cells, done.warnings) = (cells.count, cells.warnings);
    }
    if asked.meta {
        meta::print(&reader, asked.json, out)?;
    }
    if asked.index {
        blocks::print_index(&reader, asked.json, out)?;
    }
    if asked.block_headers {
        blocks::print_headers(&reader, asked.json, out)?;
    }
    if asked.stats {
        stats.print(&absolute(path), asked.json, out)?;
    }
    if asked.verify {
        verify(&reader, asked.json, out)?;
    }
    Ok(done)
}

/// Reads all of a file, in its blocks and in its cells.
fn verify(reader: &Arc<Reader>, json: bool, out: &mut impl Write) -> anyhow::Result<()> {
    // Cell by cell, a part on each processor, and beside it block by block: also those that no cell leads to.
    let threads = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    let (cells, blocks) = std::thread::scope(|scope| {
        let blocks = scope.spawn(|| reader.count_blocks());
        let parts: Vec<_> =
            reader.parts(threads).into_iter().map(|part| scope.spawn(move || reader.read_part(&part))).collect();
        let cells: Vec<_> = parts.into_iter().map(std::thread::ScopedJoinHandle::join).collect();
        (cells, blocks.join())
    });
    let ended = |_| anyhow::anyhow!("reading ended by itself");
    let cells = cells.into_iter().try_fold(0, |sum, part| anyhow::Ok(sum + part.map_err(ended)??))?;
    reader.check_count(cells)?;
    let blocks = blocks.map_err(ended)??;
    let file = absolute(reader.path());
    match json {
        true => writeln!(
            out,
            "{}",
            json!({"file": file, "verified": true, "cells": cells, "blocks": blocks, "bytes": reader.len_bytes()})
        )?,
        false => writeln!(out, "{file}: whole, {cells} cells in {blocks} blocks, {} bytes", reader.len_bytes())?,
    }
    Ok(())
}
