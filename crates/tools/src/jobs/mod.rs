//! What HBase runs as jobs of MapReduce, native: several regions at the same time, no job runner. Each tool has a file of its own; here is what
//! they share: the connection, `-D` settings among the arguments, and scans region by region.
//!
//! Always true: a table is read region by region, [`Work::parallel`] of them at a time, each by one scanner that goes on where it was when a region
//! moves; what a tool writes is flushed before it says that it is done.

pub(crate) mod bulk_load;
mod cell_counter;
mod copy_table;
mod export;
mod hash_table;
pub(crate) mod hfile_output;
mod import;
mod import_tsv;
mod map_file;
mod packing;
mod row_counter;
mod row_file;
mod scan;
mod sequence_file;
mod sync_table;
pub(crate) mod table_hash;
mod threads;
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

pub use bulk_load::run as bulk_load;
pub use cell_counter::run as cell_counter;
pub use copy_table::run as copy_table;
pub use export::run as export;
pub use hash_table::run as hash_table;
pub use import::run as import;
pub use import_tsv::run as import_tsv;
pub use row_counter::run as row_counter;
pub use sync_table::run as sync_table;
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

/// How much of a tool's work is done at the same time.
pub(crate) fn parallel(config: &Config) -> usize {
    let parallel = config.text(PARALLEL_KEY).and_then(|text| text.trim().parse().ok());
    usize::max(parallel.unwrap_or(PARALLEL), 1)
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
        Work { table, scan, parallel: parallel(config), rows: Arc::default(), what }
    }

    /// The regions that the scan touches, cut at its bounds.
    pub async fn parts(&self) -> anyhow::Result<Vec<Part>> {
        let keys = self.table.start_end_keys().await?;
        Ok(parts(&keys, &self.scan.start_row, &self.scan.stop_row))
    }

    /// Reads every part, each with a state of its own that `begin` makes and `end` takes, and gives what `end` made of them back in the order of
    /// keys. All three run on a thread that may block, and see to it that the scanner waits where they are behind.
    pub async fn each<S, T, B, F, E>(&self, begin: B, row: F, end: E) -> anyhow::Result<Vec<T>>
    where
        S: Send + 'static,
        T: Send + 'static,
        B: Fn(&Part) -> anyhow::Result<S> + Send + Sync + Clone + 'static,
        F: Fn(&mut S, Row) -> anyhow::Result<()> + Send + Sync + Clone + 'static,
        E: Fn(S) -> anyhow::Result<T> + Send + Sync + Clone + 'static,
    {
        let mut waiting = self.parts().await?.into_iter();
        let mut under_way = JoinSet::new();
        let mut done: Vec<(usize, T)> = Vec::new();
        loop {
            while under_way.len() < self.parallel
                && let Some(part) = waiting.next()
            {
                let (work, begin, row, end) = (self.clone(), begin.clone(), row.clone(), end.clone());
                under_way.spawn(async move {
                    let (index, of_taker) = (part.index, part.clone());
                    let (mut rows, take) = threads::taking(move |rows: &mut threads::Taken<Row>| {
                        let mut state = begin(&of_taker)?;
                        while let Some(found) = rows.next() {
                            row(&mut state, found)?;
                        }
                        // A scan that failed is no end.
                        if rows.is_whole() { end(state).map(Some) } else { Ok(None) }
                    });
                    let read = work.read(&part, &mut rows).await;
                    if read.is_ok() {
                        rows.finish().await;
                    } else {
                        drop(rows);
                    }
                    // What the taker met is why nothing more was read.
                    let taken = take.await.context("a part of the work ended by itself")??;
                    read?;
                    anyhow::Ok(taken.map(|taken| (index, taken)))
                });
            }
            match under_way.join_next().await {
                None => break,
                Some(ended) => done.extend(ended.context("a part of the work ended by itself")??),
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

    /// Reads a part until its end, or until nobody takes its rows any more.
    async fn read(&self, part: &Part, rows: &mut threads::Giver<Row>) -> anyhow::Result<()> {
        let scan = Scan { start_row: part.start.clone(), stop_row: part.stop.clone(), ..self.scan.clone() };
        let mut scanner = self.table.scan(scan, self.table.scan_options());
        while let Some(found) = scanner.next().await? {
            if found.is_empty() {
                continue;
            }
            let bytes = found.byte_len();
            if !rows.give(found, bytes).await {
                break;
            }
            let rows = self.rows.fetch_add(1, Ordering::Relaxed) + 1;
            if rows.is_multiple_of(PROGRESS_ROWS) {
                eprintln!("{}: {rows} rows", self.what);
            }
        }
        Ok(())
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
