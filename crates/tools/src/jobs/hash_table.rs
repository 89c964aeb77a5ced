//! `basalt hashtable`. Follows: `HashTable`.

use std::fs::File;
use std::io::{BufReader, BufWriter, Read, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context, bail};
use base::Config;
use bytes::Bytes;
use serde_json::json;

use super::map_file::MapWriter;
use super::table_hash::{HASHES, Hasher, PARTITIONS, TableHash, from_hex, publish_manifest};
use super::{Part, Work, defines, helped, on_cluster, table_name};
use crate::arguments::{self, Known, valued};
use crate::files;

const USAGE: &str = "\
Writes hashes of a table's rows, batch by batch, which synctable compares another table with.

Usage: basalt hashtable [-D KEY=VALUE]... [OPTIONS] TABLE DIRECTORY

    DIRECTORY                must not be there; HBase's SyncTable reads it, too
    --batchsize=N            bytes of cells under one hash; 8000
    --numhashfiles=N         files of hashes; one for a hundred regions
    --startrow=HEX           first row, as hexadecimal digits
    --stoprow=HEX            the first row that is not hashed any more
    --starttime=MS, --endtime=MS, --versions=N, --families=F,...
    --scanbatch=N            cells of a row at a time
    --rawScan=true           markers of deletes and deleted cells, too
    --ignoreTimestamps=true  times are no part of the hashes: give synctable the same
    --json                   one JSON object
    --help                   this text

Examples:
  basalt hashtable t /hashes/t
  basalt hashtable --batchsize=32000 --numhashfiles=50 --starttime=1265875194289 --endtime=1265878794289 --families=cf2,cf3 t /hashes/t
";

const KNOWN: &[Known] = &[
    valued("", "batchsize"),
    valued("", "numhashfiles"),
    valued("", "startrow"),
    valued("", "stoprow"),
    valued("", "starttime"),
    valued("", "endtime"),
    valued("", "scanbatch"),
    valued("", "versions"),
    valued("", "rawScan"),
    valued("", "families"),
    valued("", "ignoreTimestamps"),
    arguments::flag("", "json"),
];
/// Where the hashes of regions are until they are put together.
const SPILL_DIR: &str = "_temporary";
const HASH_BYTES: usize = 16;

/// The batches of one region.
struct Batches {
    place: PathBuf,
    out: BufWriter<File>,
    hasher: Hasher,
    batch_bytes: u64,
    /// The first row of the batch that is under way.
    start: Bytes,
    row: Option<Vec<u8>>,
    count: u64,
}

impl Batches {
    fn begin(dir: &Path, part: &Part, batch_bytes: u64, ignore_timestamps: bool) -> anyhow::Result<Batches> {
        let place = dir.join(SPILL_DIR).join(format!("{:08}", part.index));
        let file = File::create(&place).with_context(|| format!("cannot write {}", place.display()))?;
        let hasher = Hasher::new(ignore_timestamps);
        let start = part.start.clone();
        Ok(Batches { place, out: BufWriter::new(file), hasher, batch_bytes, start, row: None, count: 0 })
    }

    fn end_batch(&mut self) -> anyhow::Result<()> {
        self.out.write_all(&(self.start.len() as u32).to_be_bytes())?;
        self.out.write_all(&self.start)?;
        self.out.write_all(&self.hasher.finish())?;
        self.count += 1;
        Ok(())
    }

    fn add(&mut self, row: &client::Row) -> anyhow::Result<()> {
        // A result may be only a part of a row; batches begin with rows.
        if self.row.as_deref() != Some(row.row()) {
            self.row = Some(row.row().to_vec());
            if self.hasher.bytes >= self.batch_bytes {
                self.end_batch()?;
                self.start = Bytes::copy_from_slice(row.row());
            }
        }
        row.iter().for_each(|cell| self.hasher.add(cell));
        Ok(())
    }

    fn end(mut self) -> anyhow::Result<(PathBuf, u64)> {
        self.end_batch()?;
        self.out.flush().with_context(|| format!("cannot write {}", self.place.display()))?;
        Ok((self.place, self.count))
    }
}

/// Puts the hashes of regions, which are in order, into files.
fn put_together(hash: &TableHash, dir: &Path, parts: &[PathBuf], sync: [u8; 16]) -> anyhow::Result<()> {
    let begin = |index: usize| MapWriter::create(&TableHash::data_dir(dir, index), sync);
    let (mut index, mut out) = (0, begin(0)?);
    for place in parts {
        let mut input = BufReader::new(File::open(place)?);
        let mut len = [0; 4];
        loop {
            match input.read(&mut len[..1])? {
                0 => break,
                _ => input.read_exact(&mut len[1..])?,
            }
            let mut key = vec![0; u32::from_be_bytes(len) as usize];
            input.read_exact(&mut key)?;
            let mut of_batch = [0; HASH_BYTES];
            input.read_exact(&mut of_batch)?;
            while index < hash.file_of(&key) {
                index += 1;
                std::mem::replace(&mut out, begin(index)?).finish()?;
            }
            out.append(&key, &of_batch)?;
        }
    }
    out.finish()?;
    for index in index + 1..hash.files {
        begin(index)?.finish()?;
    }
    Ok(())
}

/// What the command line asks for.
fn wanted(parsed: &arguments::Parsed) -> anyhow::Result<TableHash> {
    let otherwise = TableHash::default();
    let row = |name: &str| parsed.value(name).map_or(Ok(Vec::new()), from_hex);
    let wanted = TableHash {
        families: parsed.value("families").map(str::to_owned),
        batch_bytes: parsed.number("batchsize")?.unwrap_or(otherwise.batch_bytes),
        files: parsed.number("numhashfiles")?.unwrap_or(otherwise.files),
        start_row: row("startrow")?,
        stop_row: row("stoprow")?,
        scan_batch: parsed.number("scanbatch")?.unwrap_or(otherwise.scan_batch),
        versions: parsed.number("versions")?.unwrap_or(otherwise.versions),
        start_time: parsed.number("starttime")?.unwrap_or(otherwise.start_time),
        end_time: parsed.number("endtime")?.unwrap_or(otherwise.end_time),
        raw: parsed.value("rawScan").is_some_and(|text| text.eq_ignore_ascii_case("true")),
        ..otherwise
    };
    if (wanted.start_time != 0 || wanted.end_time != 0) && wanted.start_time >= wanted.end_time {
        bail!(
            "hashtable: the time range [{}, {}) is empty: --starttime and --endtime go together",
            wanted.start_time,
            wanted.end_time
        );
    }
    Ok(wanted)
}

/// Runs the tool; the code that the process ends with.
///
/// # Errors
/// The arguments make no sense, the table cannot be read, or the directory cannot be written.
pub fn run(config: &Config, given: &[String]) -> anyhow::Result<ExitCode> {
    if let Some(code) = helped(USAGE, given) {
        return Ok(code);
    }
    let (config, rest) = defines(config, given)?;
    let parsed = arguments::parse("hashtable", KNOWN, &rest)?;
    let [table, dir] = parsed.rest.as_slice() else {
        bail!("hashtable: a table and a directory are needed; see basalt hashtable --help")
    };
    let (name, place) = (table_name(table)?, files::place(dir)?);
    let mut hash = TableHash { table: table.clone(), ..wanted(&parsed)? };
    let ignore_timestamps = parsed.value("ignoreTimestamps").is_some_and(|text| text.eq_ignore_ascii_case("true"));
    if place.exists() {
        bail!("hashtable: {} is there already: the directory for the hashes must be a new one", place.display());
    }
    let settings = config.clone();
    let at = place.clone();
    let hashed = on_cluster(&config, |connection| async move {
        if !connection.admin().table_exists(&name).await? {
            bail!("there is no table {name}");
        }
        let work = Work::new(&settings, connection.table(&name), hash.scan()?, "hashtable");
        let starts: Vec<Bytes> = work.parts().await?.into_iter().map(|part| part.start).collect();
        hash.select_partitions(&starts);
        let (dir, sync) = (at.clone(), super::export::sync_of(&at));
        for made in [HASHES, SPILL_DIR] {
            std::fs::create_dir_all(dir.join(made)).with_context(|| format!("cannot make {}", dir.display()))?;
        }
        let batch_bytes = hash.batch_bytes;
        let begin = move |part: &Part| Batches::begin(&dir, part, batch_bytes, ignore_timestamps);
        let add = |batches: &mut Batches, row: client::Row| batches.add(&row);
        let parts = work.each(begin, add, Batches::end).await?;
        let batches = parts.iter().map(|(_, count)| count).sum::<u64>();
        let rows = work.rows.load(std::sync::atomic::Ordering::Relaxed);
        let ending = tokio::task::spawn_blocking(move || {
            let spilled: Vec<PathBuf> = parts.into_iter().map(|(place, _)| place).collect();
            hash.write_partitions(&at.join(PARTITIONS), sync)?;
            put_together(&hash, &at, &spilled, sync)?;
            std::fs::remove_dir_all(at.join(SPILL_DIR))?;
            File::create(at.join(HASHES).join("_SUCCESS"))?;
            let now_ms = crate::log::Log::new("hashtable").now_ms();
            publish_manifest(&at, &hash.manifest(&crate::print::java_date(now_ms)))?;
            anyhow::Ok(hash.files)
        });
        let files = ending.await.context("writing the hashes ended by itself")??;
        Ok((rows, batches, files))
    });
    let (rows, batches, files) = match hashed {
        Ok(hashed) => hashed,
        Err(error) => {
            // Without its manifest it is of no use, and it would be in the way of the next try.
            let _ = std::fs::remove_dir_all(&place);
            return Err(error);
        }
    };
    match parsed.has("json") {
        true => println!(
            "{}",
            json!({"table": table, "directory": place, "rows": rows, "batches": batches, "files": files})
        ),
        false => {
            println!("Hashed {rows} rows of {table} in {batches} batches into {files} files in {}", place.display())
        }
    }
    Ok(ExitCode::SUCCESS)
}
