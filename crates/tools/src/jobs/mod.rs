//! What HBase runs as jobs of MapReduce, native: several regions at the same time, no job runner. Each tool has a file of its own; here is what
//! they share: the connection, `-D` settings among the arguments, and scans region by region.
//!
//! Always true: a table is read region by region, [`Work::parallel`] of them at a time, each by one scanner that goes on where it was when a region
//! moves; what a tool writes is flushed before it says that it is done.

mod cell_counter;
mod copy_table;
mod export;
mod import;
mod import_tsv;
mod row_counter;
mod scan;
mod sequence_file;
mod wal_player;

use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use anyhow::Context;
use base::Config;
use bytes::Bytes;
use client::{Connection, Options, Row, Table};
use model::{Scan, TableName};
use tokio::task::JoinSet;

pub use cell_counter::run as cell_counter;
pub use copy_table::run as copy_table;
pub use export::run as export;
pub use import::run as import;
pub use import_tsv::run as import_tsv;
pub use row_counter::run as row_counter;
pub use wal_player::run as wal_player;

/// Regions that are read at the same time unless `basalt.tools.parallel` says otherwise.
const PARALLEL: usize = 8;
const PARALLEL_KEY: &str = "basalt.tools.parallel";
/// Rows between two words about how far a tool has come.
const PROGRESS_ROWS: u64 = 1_000_000;

/// Takes `-D key=value`, and `-Dkey=value`, out of the arguments of a tool, as Hadoop's `GenericOptionsParser` does.
///
/// # Errors
/// One has no value.
pub fn defines(config: &Config, given: &[String]) -> anyhow::Result<(Config, Vec<String>)> {
    let mut config = config.clone();
    let mut rest = Vec::new();
    let mut words = given.iter();
    while let Some(word) = words.next() {
        let define = match word.strip_prefix("-D") {
            None => {
                rest.push(word.clone());
                continue;
            }
            Some("") => words.next().context("-D needs key=value after it")?,
            Some(define) => define,
        };
        let (key, value) =
            define.split_once('=').with_context(|| format!("-D {define} is not of the form key=value"))?;
        config.set(key.trim().to_owned(), value.to_owned());
    }
    Ok((config, rest))
}

/// Prints a tool's help where it is asked for, or nothing was given.
pub(crate) fn helped(usage: &str, given: &[String]) -> Option<std::process::ExitCode> {
    if given.is_empty() || crate::arguments::wants_help(given) {
        print!("{usage}");
        let code = if given.is_empty() { std::process::ExitCode::FAILURE } else { std::process::ExitCode::SUCCESS };
        return Some(code);
    }
    None
}

/// Runs a tool's work on a runtime of its own, connected to the cluster that the configuration names.
///
/// # Errors
/// What the work ends with.
pub(crate) fn on_cluster<T, F>(config: &Config, work: impl FnOnce(Connection) -> F) -> anyhow::Result<T>
where
    F: Future<Output = anyhow::Result<T>>,
{
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    let mut options = Options::from_config(config);
    if !config.is_set(client::settings::CODEC_KEY) {
        // The default codec would drop tags, which copies are to keep.
        options.codec = rpc::CellCodec::KeyValueWithTags;
    }
    runtime.block_on(async move { work(Connection::open(options)).await })
}

/// A table's name.
pub(crate) fn table_name(text: &str) -> anyhow::Result<TableName> {
    TableName::parse(text).map_err(|error| anyhow::anyhow!("{text} is not the name of a table: {error}"))
}

/// A part of a table that one scanner reads.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Part {
    /// Its place in the order of keys.
    pub index: usize,
    /// First row.
    pub start: Bytes,
    /// The first row behind it; empty for the table's end.
    pub stop: Bytes,
}

/// How a scan is spread over a table's regions.
#[derive(Clone)]
pub(crate) struct Work {
    pub table: Table,
    pub scan: Scan,
    pub parallel: usize,
    /// Rows so far, of all parts.
    pub rows: Arc<AtomicU64>,
    /// What it is called in words about progress.
    pub what: &'static str,
}

impl Work {
    pub fn new(config: &Config, table: Table, scan: Scan, what: &'static str) -> Work {
        let parallel = config.text(PARALLEL_KEY).and_then(|text| text.trim().parse().ok()).unwrap_or(PARALLEL);
        Work { table, scan, parallel: usize::max(parallel, 1), rows: Arc::default(), what }
    }

    /// The regions that the scan touches, cut at its bounds.
    async fn parts(&self) -> anyhow::Result<Vec<Part>> {
        let keys = self.table.start_end_keys().await?;
        Ok(parts(&keys, &self.scan.start_row, &self.scan.stop_row))
    }

    /// Reads every part, each with a state of its own that `begin` makes, and gives the states back in the order of keys.
    pub async fn each<S, B, F>(&self, begin: B, row: F) -> anyhow::Result<Vec<S>>
    where
        S: Send + 'static,
        B: Fn(&Part) -> anyhow::Result<S>,
        F: Fn(&mut S, Row) -> anyhow::Result<()> + Send + Sync + Clone + 'static,
    {
        let mut waiting = self.parts().await?.into_iter();
        let mut under_way = JoinSet::new();
        let mut done: Vec<(usize, S)> = Vec::new();
        loop {
            while under_way.len() < self.parallel
                && let Some(part) = waiting.next()
            {
                let (work, state, row) = (self.clone(), begin(&part)?, row.clone());
                under_way.spawn(async move { work.read(part, state, row).await });
            }
            match under_way.join_next().await {
                None => break,
                Some(ended) => done.push(ended.context("a part of the work ended by itself")??),
            }
        }
        done.sort_by_key(|(index, _)| *index);
        Ok(done.into_iter().map(|(_, state)| state).collect())
    }

    /// Reads every part and hands each row on; waits where whoever takes them is behind.
    pub async fn feed(&self, rows: tokio::sync::mpsc::Sender<Row>) -> anyhow::Result<()> {
        let mut waiting = self.parts().await?.into_iter();
        let mut under_way = JoinSet::new();
        loop {
            while under_way.len() < self.parallel
                && let Some(part) = waiting.next()
            {
                let (work, rows) = (self.clone(), rows.clone());
                under_way.spawn(async move {
                    let scan = Scan { start_row: part.start, stop_row: part.stop, ..work.scan.clone() };
                    let mut scanner = work.table.scan(scan, work.table.scan_options());
                    while let Some(row) = scanner.next().await? {
                        if !row.is_empty() && rows.send(row).await.is_err() {
                            // Whoever takes them has ended, and says why.
                            break;
                        }
                    }
                    anyhow::Ok(())
                });
            }
            match under_way.join_next().await {
                None => return Ok(()),
                Some(ended) => ended.context("a part of the work ended by itself")??,
            }
        }
    }

    async fn read<S, F>(self, part: Part, mut state: S, row: F) -> anyhow::Result<(usize, S)>
    where
        F: Fn(&mut S, Row) -> anyhow::Result<()>,
    {
        let scan = Scan { start_row: part.start.clone(), stop_row: part.stop.clone(), ..self.scan.clone() };
        let mut scanner = self.table.scan(scan, self.table.scan_options());
        while let Some(found) = scanner.next().await? {
            if found.is_empty() {
                continue;
            }
            row(&mut state, found)?;
            let rows = self.rows.fetch_add(1, Ordering::Relaxed) + 1;
            if rows.is_multiple_of(PROGRESS_ROWS) {
                eprintln!("{}: {rows} rows", self.what);
            }
        }
        Ok((part.index, state))
    }
}

/// The regions between `start` and `stop`, cut there.
fn parts(regions: &[(Bytes, Bytes)], start: &Bytes, stop: &Bytes) -> Vec<Part> {
    let mut parts = Vec::new();
    for (first, behind) in regions {
        let is_before = !behind.is_empty() && behind <= start;
        let is_behind = !stop.is_empty() && first >= stop;
        if is_before || is_behind {
            continue;
        }
        let from = first.max(start).clone();
        let to = match (behind.is_empty(), stop.is_empty()) {
            (true, _) => stop.clone(),
            (false, true) => behind.clone(),
            (false, false) => behind.min(stop).clone(),
        };
        parts.push(Part { index: parts.len(), start: from, stop: to });
    }
    parts
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_scan_is_cut_at_the_bounds_of_regions_and_at_its_own() {
        let key = |text: &'static str| Bytes::from_static(text.as_bytes());
        let regions = [(key(""), key("g")), (key("g"), key("p")), (key("p"), key(""))];
        let cut = |start, stop| {
            let parts = parts(&regions, &key(start), &key(stop));
            let text = |key: &Bytes| String::from_utf8_lossy(key).into_owned();
            parts.iter().map(|part| format!("{}-{}", text(&part.start), text(&part.stop))).collect::<Vec<_>>().join(" ")
        };
        assert_eq!(cut("", ""), "-g g-p p-");
        assert_eq!(cut("b", "h"), "b-g g-h");
        assert_eq!(cut("g", "p"), "g-p");
        assert_eq!(cut("z", ""), "z-");
        assert_eq!(cut("h", "h1"), "h-h1");
    }

    #[test]
    fn settings_are_taken_out_of_the_arguments() {
        let words: Vec<String> = ["-Da=1", "t", "-D", "b=2=3", "-x"].iter().map(|word| (*word).to_owned()).collect();
        let (config, rest) = defines(&Config::default(), &words).expect("legal");
        assert_eq!((config.text("a"), config.text("b")), (Some("1"), Some("2=3")));
        assert_eq!(rest, ["t", "-x"]);
        assert!(defines(&Config::default(), &["-D".to_owned()]).is_err());
        assert!(defines(&Config::default(), &["-Dx".to_owned()]).is_err());
    }
}
