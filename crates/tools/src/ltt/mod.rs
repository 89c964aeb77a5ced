//! HBase's LoadTestTool: writes, updates and reads rows whose values say of themselves what they must be.
//!
//! Keys, columns, values and the bookkeeping of updates are the Java tool's, so that either tool verifies what the
//! other wrote. Writers, updaters and readers may run at once: then each stays behind the one before it.
//! Where it differs: no encryption, replicas, access control or visibility labels; generators, writers, readers and
//! updaters of one's own cannot be loaded. With `-batchupdate` all notes of a family travel as one value; the Java tool
//! sends them as several appends to one column, of which HBase keeps the last, and cannot verify such rows afterwards.
//! Follows: `org.apache.hadoop.hbase.util.LoadTestTool`.

mod data;
mod options;
mod progress;
mod table;
mod verify;
mod work;

use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use base::{Config, Rng};
use client::{Connection, Options};
use model::TableName;
use tokio::task::JoinSet;

pub use data::{Generator, Sizes, key, value};
pub use options::{LoadOptions, Parsed, parse};
pub use verify::verify;

use crate::log::Log;
use progress::Progress;
use work::{Reader, Shared};

/// Runs the command with the arguments behind its name.
///
/// # Errors
/// A sentence that says what is wrong and what to do.
pub fn run(config: &Config, arguments: &[String]) -> anyhow::Result<ExitCode> {
    let options = match parse(arguments) {
        Parsed::Run(options) => *options,
        Parsed::Usage(complaint) => {
            if let Some(complaint) = &complaint {
                eprintln!("ERROR: {complaint}");
            }
            eprint!("{}", options::usage());
            return Ok(if complaint.is_some() { ExitCode::FAILURE } else { ExitCode::SUCCESS });
        }
    };
    let mut config = config.clone();
    options.defines.iter().for_each(|(key, value)| config.set(key, value));
    announce(&options);
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    let success = runtime.block_on(load_tables(Options::from_config(&config), options))?;
    Ok(if success { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Says on standard output what will be done, in the tool's words.
fn announce(options: &LoadOptions) {
    if !options.init_only {
        println!("Key range: [{}..{}]", options.start_key, options.end_key - 1);
    }
    if let Some(write) = &options.write {
        println!("Multi-puts: {}", write.multi_put);
        println!("Columns per key: 1..{}", write.max_columns);
        println!("Data size per column: {}..{}", write.sizes.min, write.sizes.max);
    }
    if let Some(update) = &options.update {
        println!("Batch updates: {}", update.batch);
        println!("Percent of keys to update: {}", update.percent);
        println!("Updater threads: {}", update.threads);
        println!("Ignore nonce conflicts: {}", update.ignore_conflicts);
    }
    if let Some(read) = &options.read {
        println!("Multi-gets (value of 1 means no multigets): {}", read.batch_size);
        println!("Percent of keys to verify: {}", read.verify_percent);
        println!("Reader threads: {}", read.threads);
    }
}

async fn load_tables(client: Options, options: LoadOptions) -> anyhow::Result<bool> {
    if options.num_tables == 1 {
        return load_table(client, options).await;
    }
    let mut tables = JoinSet::new();
    for number in 1..=options.num_tables {
        let own = LoadOptions { table: format!("{}_{number}", options.table), ..options.clone() };
        tables.spawn(load_table(client.clone(), own));
    }
    let mut success = true;
    while let Some(table) = tables.join_next().await {
        success &= table??;
    }
    Ok(success)
}

async fn load_table(client: Options, options: LoadOptions) -> anyhow::Result<bool> {
    let log = Arc::new(Log::new("util.LoadTestTool"));
    let name = TableName::parse(&options.table)?;
    let connection = Connection::open(client.clone());
    if options.init_only {
        log.info("main", "Initializing only; no reads or writes");
    }
    if options.init_only || !options.skip_init {
        table::init(&connection.admin(), &name, &options, &log).await?;
    }
    if options.init_only {
        return Ok(true);
    }
    let generator = Arc::new(Generator {
        families: options.families.clone(),
        min_columns: 1,
        max_columns: options.write.as_ref().map_or(1, |write| write.max_columns),
        sizes: options.write.as_ref().map_or_else(options::default_sizes, |write| write.sizes),
        mob: options.mob_generator.clone(),
        rng: Rng::from_system(),
    });
    let action_log = Arc::new(Log::new("util.MultiThreadedAction"));
    // Writers, updaters and readers have a connection each, shared by their tasks.
    let shared = |letter: char, threads: u32| {
        Arc::new(Shared {
            table: Connection::open(client.clone()).table(&name),
            generator: generator.clone(),
            progress: Progress::new(letter, options.start_key, options.end_key, threads),
            log: action_log.clone(),
            end_key: options.end_key,
            start_key: options.start_key,
        })
    };
    let writers = options.write.as_ref().map(|write| shared('W', write.threads));
    let updaters = options.update.as_ref().map(|update| shared('U', update.threads));
    let readers = options.read.as_ref().map(|read| shared('R', read.threads));
    if writers.is_some() && updaters.is_some() {
        log.info("main", "Concurrent write/update workload: making updaters aware of the write point");
    }
    if readers.is_some() && (writers.is_some() || updaters.is_some()) {
        log.info("main", "Concurrent write/read workload: making readers aware of the write point");
    }

    let mut reporters = JoinSet::new();
    for kind in [&writers, &updaters, &readers].into_iter().flatten() {
        let kind = kind.clone();
        reporters.spawn(async move { kind.progress.report(&kind.log).await });
    }
    let mut tasks = JoinSet::new();
    if let (Some(writers), Some(write)) = (&writers, &options.write) {
        println!("Starting to write data...");
        for id in 0..write.threads {
            let (writers, write) = (writers.clone(), write.clone());
            tasks.spawn(async move { writers.write(&write, &format!("HBaseWriterThread_{id}")).await });
        }
    }
    if let (Some(updaters), Some(update)) = (&updaters, &options.update) {
        println!("Starting to mutate data...");
        for id in 0..update.threads {
            let (updaters, update, writers) = (updaters.clone(), update.clone(), writers.clone());
            let thread = format!("HBaseUpdaterThread_{id}");
            tasks.spawn(async move { updaters.update(&update, writers.as_deref(), &thread).await });
        }
    }
    if let (Some(readers), Some(read)) = (&readers, &options.read) {
        println!("Starting to read data...");
        let aborted = Arc::new(AtomicBool::new(false));
        let before = updaters.clone().or_else(|| writers.clone());
        for id in 0..read.threads {
            let (shared, read, before, aborted) = (readers.clone(), read.clone(), before.clone(), aborted.clone());
            tasks.spawn(async move {
                let reader =
                    Reader { shared: &shared, writer: before.as_deref(), options: &read, aborted: &aborted, id };
                reader.run().await;
            });
        }
    }
    while let Some(task) = tasks.join_next().await {
        task?;
    }
    reporters.abort_all();
    let mut success = true;
    for (kind, word) in [(&writers, "write"), (&updaters, "update")] {
        let Some(kind) = kind else { continue };
        let failed = kind.progress.failures();
        println!("Failed to {word} keys: {}", failed.len());
        failed.iter().for_each(|key| println!("Failed to {word} key: {key}"));
        success &= failed.is_empty();
    }
    if let Some(readers) = &readers {
        let (errors, failures) =
            (readers.progress.read_errors.load(Relaxed), readers.progress.read_failures.load(Relaxed));
        log.info(
            "main",
            format!(
                "Keys read: {}, verified: {}, read errors: {errors}, read failures: {failures}",
                readers.progress.keys.load(Relaxed),
                readers.progress.verified.load(Relaxed)
            ),
        );
        success &= errors == 0 && failures == 0;
    }
    Ok(success)
}
