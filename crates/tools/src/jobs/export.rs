//! `basalt export`. Follows: `Export`, `ExportUtils`.

use std::fs::File;
use std::io::BufWriter;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context, bail};
use base::Config;
use model::{Scan, TimeRange};
use serde_json::json;

use super::row_file::RowWriter;
use super::sequence_file::{Form, Packing};
use super::{Work, defines, helped, on_cluster, scan, table_name};
use crate::arguments::{self, Known, flag};
use crate::files;

const USAGE: &str = "\
Writes a table's cells into files that HBase's Import, and basalt import, read.

Usage: basalt export [-D KEY=VALUE]... TABLE DIRECTORY [VERSIONS [START [END]] [^REGEX or PREFIX]] [OPTIONS]

    DIRECTORY    must not be there, or be what an export that was broken off left behind
    VERSIONS     newest versions of each column; 1
    START, END   only cells of times from START on and before END, in ms since 1970
    ^REGEX       only rows that a regular expression finds something in; else rows with a prefix
    --json       one JSON object
    --help       this text

One file for each region, part-m-00000 and on; a file appears under its name when it is whole, and an export that is begun again keeps those. The
file _SUCCESS says that all are there.

Settings: hbase.mapreduce.include.deleted.rows=true (markers of deletes, too), hbase.mapreduce.scan.row.start, .row.stop,
.column.family, hbase.export.scanner.batch, basalt.tools.parallel; mapreduce.output.fileoutputformat.compress=true with .compress.codec=CLASS
(DefaultCodec, GzipCodec, BZip2Codec, SnappyCodec, Lz4Codec, ZStandardCodec of Hadoop) and .compress.type=RECORD or BLOCK.

Examples:
  basalt export t /backup/t
  basalt export -D hbase.mapreduce.include.deleted.rows=true t /backup/t 1000000 1700000000000
  basalt export t /backup/t 1 0 9223372036854775807 ^row-[0-9]+
  basalt export -D mapreduce.output.fileoutputformat.compress=true -D mapreduce.output.fileoutputformat.compress.type=BLOCK t /backup/t
";

const KNOWN: &[Known] = &[flag("", "json")];

/// What is exported, out of the words of the command line and the settings.
pub(super) fn wanted(config: &Config, words: &[String]) -> anyhow::Result<Scan> {
    let mut wanted = scan::of_settings(config)?;
    wanted.raw = config.text("hbase.mapreduce.include.deleted.rows") == Some("true");
    if let Some(batch) = config.text("hbase.export.scanner.batch") {
        wanted.batch = Some(scan::word("hbase.export.scanner.batch", batch)?);
    }
    wanted.max_versions = words.first().map_or(Ok(1), |versions| scan::word("VERSIONS", versions))?;
    let start = words.get(1).map_or(Ok(0), |start| scan::word("START", start))?;
    let end = words.get(2).map_or(Ok(i64::MAX), |end| scan::word("END", end))?;
    wanted.time_range = match (start, end) {
        (0, i64::MAX) => TimeRange::ALL,
        (start, end) => scan::time_range(start, end)?,
    };
    if let Some(rows) = words.get(3) {
        scan::also(&mut wanted, scan::row_filter(rows)?);
    }
    Ok(wanted)
}

/// A file that is being written.
struct Part {
    /// None where it is there already, from an earlier attempt.
    out: Option<RowWriter<BufWriter<File>>>,
    temporary: PathBuf,
    place: PathBuf,
    rows: u64,
}

impl Part {
    fn begin(dir: &Path, index: usize, form: &Form) -> anyhow::Result<Part> {
        let place = dir.join(format!("part-m-{index:05}"));
        let temporary = dir.join(format!("_temporary-{index:05}"));
        if place.exists() {
            return Ok(Part { out: None, temporary, place, rows: 0 });
        }
        let file = File::create(&temporary).with_context(|| format!("cannot write {}", temporary.display()))?;
        let out = RowWriter::new(BufWriter::with_capacity(1 << 20, file), form)?;
        Ok(Part { out: Some(out), temporary, place, rows: 0 })
    }

    fn finish(self) -> anyhow::Result<u64> {
        if let Some(out) = self.out {
            let file = out.finish()?.into_inner().map_err(|error| anyhow::anyhow!("{error}"))?;
            file.sync_all().with_context(|| format!("cannot write {}", self.temporary.display()))?;
            std::fs::rename(&self.temporary, &self.place)?;
        }
        Ok(self.rows)
    }
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
    let parsed = arguments::parse("export", KNOWN, &rest)?;
    let [table, dir, words @ ..] = parsed.rest.as_slice() else { bail!("export: a table and a directory are needed") };
    let (name, place) = (table_name(table)?, files::place(dir)?);
    let (wanted, packing) = (wanted(&config, words)?, Packing::of(&config)?);
    let success = place.join("_SUCCESS");
    if success.exists() {
        bail!("export: {} holds a whole export already", place.display());
    }
    let is_ours = |entry: std::io::Result<std::fs::DirEntry>| {
        entry.is_ok_and(|entry| {
            let name = entry.file_name().to_string_lossy().into_owned();
            name.starts_with("part-m-") || name.starts_with("_temporary-")
        })
    };
    if place.is_dir() && !std::fs::read_dir(&place)?.all(is_ours) {
        bail!("export: {} is there, and holds other files than an export's", place.display());
    }
    let dir = place.clone();
    let settings = config.clone();
    let (rows, files_written) = on_cluster(&config, |connection| async move {
        if !connection.admin().table_exists(&name).await? {
            bail!("there is no table {name}");
        }
        std::fs::create_dir_all(&dir).with_context(|| format!("cannot make {}", dir.display()))?;
        let work = Work::new(&settings, connection.table(&name), wanted, "export");
        let form = Form { sync: sync_of(&dir), packing };
        let begin = move |part: &super::Part| Part::begin(&dir, part.index, &form);
        let row = |part: &mut Part, row: client::Row| match &mut part.out {
            None => Ok(()),
            Some(out) => {
                part.rows += 1;
                out.row(&row)
            }
        };
        let parts = work.each(begin, row, Part::finish).await?;
        let (count, rows) = (parts.len(), parts.iter().sum::<u64>());
        Ok((rows, count))
    })?;
    File::create(&success)
        .and_then(|file| file.sync_all())
        .with_context(|| format!("cannot write {}", success.display()))?;
    match parsed.has("json") {
        true => println!("{}", json!({"table": table, "directory": place, "rows": rows, "files": files_written})),
        false => println!("Exported {rows} rows of {table} into {files_written} files in {}", place.display()),
    }
    Ok(ExitCode::SUCCESS)
}

/// Bytes that mark places in the files of one export: made of its directory, the process and the time.
pub(super) fn sync_of(dir: &Path) -> [u8; 16] {
    use md5::{Digest, Md5};
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default().as_nanos();
    Md5::digest(format!("{}@{}@{now}", dir.display(), std::process::id())).into()
}
