//! `basalt wal`: what is in a log. Follows: `WALPrettyPrinter`.

mod print;

use std::collections::BTreeSet;
use std::io::{BufWriter, Write};
use std::process::ExitCode;

use anyhow::{Context, bail};
use base::Config;
use cell::print::to_string_binary;
use fs::{FilePath, LocalVolume, Volume};
use wal::{Entry, Reader};

use self::print::Printer;
use crate::arguments::{self, Known, flag, valued};
use crate::files;

const USAGE: &str = "\
What is in a write-ahead log, or in a file of recovered edits.

Usage: basalt wal [OPTIONS] FILE...

 -p,--printvals          values as well
 -j,--json               HBase's JSON: one list of entries for each file
 -t,--tables TABLES      only these tables, parted by commas
 -r,--region REGION      only this region, by its encoded name
 -s,--sequence ID        only this sequence id
 -w,--row ROW            only this row (bytes as \\xNN)
 -f,--rowPrefix PREFIX   only rows with this prefix
 -k,--outputOnlyRowKey   rows alone
 -g,--goto POSITION      begins at the first entry at or after this place in the file
    --verify             reads everything and prints only what came of it
    --help               this text

A file may be a directory: then all logs in it are read. Ends with 1 where a log is damaged, with 2 where it cannot be read at all. The torn
end of a log that nobody closed is no damage; it is told on standard error.

Examples:
  basalt wal /data/hbase/WALs/host,16020,1700000000000/host%2C16020%2C1700000000000.1700000000001
  basalt wal -p -t t1,ns:t2 -w row-1 FILE
  basalt wal -j FILE | jq '.[].table'
  basalt wal --verify /data/hbase/oldWALs
";

const KNOWN: &[Known] = &[
    flag("p", "printvals"),
    flag("j", "json"),
    flag("k", "outputOnlyRowKey"),
    flag("", "verify"),
    valued("t", "tables"),
    valued("r", "region"),
    valued("s", "sequence"),
    valued("w", "row"),
    valued("f", "rowPrefix"),
    valued("g", "goto"),
];

/// Which entries and cells are wanted.
#[derive(Debug, Default)]
pub(super) struct Wanted {
    tables: BTreeSet<String>,
    region: Option<String>,
    sequence: Option<u64>,
    row: Option<String>,
    row_prefix: Option<String>,
    from: u64,
}

impl Wanted {
    fn has(&self, entry: &Entry) -> bool {
        let key = &entry.key;
        entry.offset >= self.from
            && (self.tables.is_empty() || self.tables.contains(&*key.table))
            && self.region.as_deref().is_none_or(|region| *region == *key.region)
            && self.sequence.is_none_or(|sequence| sequence == key.seq_id.0)
    }

    fn has_row(&self, row: &[u8]) -> bool {
        if self.row.is_none() && self.row_prefix.is_none() {
            return true;
        }
        let row = to_string_binary(row);
        self.row.as_ref().is_none_or(|wanted| *wanted == row)
            && self.row_prefix.as_ref().is_none_or(|prefix| row.starts_with(prefix))
    }
}

/// Runs the tool; the code that the process ends with.
///
/// # Errors
/// The arguments make no sense.
pub fn run(_: &Config, given: &[String]) -> anyhow::Result<ExitCode> {
    if given.is_empty() || arguments::wants_help(given) {
        print!("{USAGE}");
        return Ok(if given.is_empty() { ExitCode::FAILURE } else { ExitCode::SUCCESS });
    }
    let parsed = arguments::parse("wal", KNOWN, given)?;
    if parsed.rest.is_empty() {
        bail!("wal: no file is named");
    }
    if parsed.has("row") && parsed.has("rowPrefix") {
        bail!("wal: --row and --rowPrefix cannot be asked for together");
    }
    let tables = parsed.value("tables").unwrap_or_default();
    let wanted = Wanted {
        tables: tables.split(',').filter(|table| !table.is_empty()).map(str::to_owned).collect(),
        region: parsed.value("region").map(str::to_owned),
        sequence: parsed.number("sequence")?,
        row: parsed.value("row").map(str::to_owned),
        row_prefix: parsed.value("rowPrefix").map(str::to_owned),
        from: parsed.number("goto")?.unwrap_or(0),
    };
    let mut printer = Printer::new(
        wanted,
        parsed.has("printvals"),
        parsed.has("json"),
        parsed.has("outputOnlyRowKey"),
        parsed.has("verify"),
    );
    let volume = files::everything()?;
    let mut out = BufWriter::new(std::io::stdout().lock());
    let mut code = 0;
    for text in &parsed.rest {
        for path in logs(&volume, text)? {
            match shown(&volume, &path, &mut printer, &mut out) {
                Ok(()) => {}
                Err(error) if is_gone(&error) => return Ok(ExitCode::SUCCESS),
                Err(error) => {
                    printer.end(&mut out)?;
                    out.flush()?;
                    eprintln!("basalt: wal: {error:#}");
                    let unreadable = error.downcast_ref::<wal::Error>().is_none_or(|e| matches!(e, wal::Error::Io(_)));
                    code = code.max(if unreadable { 2 } else { 1 });
                }
            }
        }
    }
    out.flush()?;
    Ok(ExitCode::from(code))
}

fn is_gone(error: &anyhow::Error) -> bool {
    error.downcast_ref::<std::io::Error>().is_some_and(|error| error.kind() == std::io::ErrorKind::BrokenPipe)
}

/// The files that a word of the command line names: one, or those in a directory.
fn logs(volume: &LocalVolume, text: &str) -> anyhow::Result<Vec<FilePath>> {
    let place = files::place(text)?;
    let path = files::path_of(&place)?;
    match volume.stat(&path).with_context(|| format!("cannot read {}", place.display()))? {
        None => bail!("there is no file {}", place.display()),
        Some(entry) if entry.is_dir => {
            let entries = volume.list(&path).with_context(|| format!("cannot read {}", place.display()))?;
            Ok(entries.iter().filter(|entry| !entry.is_dir).map(|entry| path.join(&entry.name)).collect())
        }
        Some(_) => Ok(vec![path]),
    }
}

fn shown(volume: &LocalVolume, path: &FilePath, printer: &mut Printer, out: &mut impl Write) -> anyhow::Result<()> {
    let mut reader = Reader::open(volume, path)?;
    printer.begin(path, out)?;
    while let Some(entry) = reader.next()? {
        printer.entry(&entry, reader.position(), out)?;
    }
    let len = volume.stat(path)?.map_or(0, |entry| entry.len);
    printer.end(out)?;
    if !reader.has_header() {
        eprintln!("basalt: wal: /{path} has no whole header: its writer died before it wrote an entry");
    } else if !reader.has_trailer() && reader.position() < len {
        let lost = len - reader.position();
        eprintln!("basalt: wal: /{path} was not closed and ends with {lost} bytes that are no whole entry");
    }
    printer.summary(path, &reader, out)?;
    Ok(())
}
