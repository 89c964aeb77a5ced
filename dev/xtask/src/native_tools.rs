//! The native load generators and jobs beside HBase's own: each reads, and where it can verifies, what the other wrote. HBase's
//! ExportSnapshot brings snapshots to a server of Apache HBase and back.

use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

use anyhow::Context as _;

use crate::report::Outcome;
use crate::server::{Kind, Site};
use crate::suites::{Context, judge, script};
use crate::{jvm, run, server};

const LIMIT: Duration = Duration::from_secs(600);

/// Whose tool.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Whose {
    /// `basalt pe`, `basalt hashtable`, ...
    Native,
    /// HBase's.
    Java,
}

use Whose::{Java, Native};

/// Steps in order: name, whose tool, which tool, its arguments, what its output must hold.
const STEPS: &[(&str, Whose, &str, &str, &str)] = &[
    (
        "native ltt writes",
        Native,
        "ltt",
        "-tn native -families a,b -write 3:200:4 -num_keys 3000",
        "Failed to write keys: 0",
    ),
    (
        "java ltt verifies it",
        Java,
        "ltt",
        "-tn native -families a,b -read 100:4 -num_keys 3000 -skip_init",
        "Reader threads: 4",
    ),
    (
        "native ltt updates it",
        Native,
        "ltt",
        "-tn native -families a,b -update 40:4 -batchupdate -num_keys 3000 -skip_init",
        "Failed to update keys: 0",
    ),
    (
        "java ltt verifies the updates",
        Java,
        "ltt",
        "-tn native -families a,b -read 100:4 -num_keys 3000 -skip_init",
        "Reader threads: 4",
    ),
    (
        "java ltt writes",
        Java,
        "ltt",
        "-tn java -families a,b -write 3:200:4 -multiput -num_keys 3000",
        "Failed to write keys: 0",
    ),
    (
        "native ltt verifies it",
        Native,
        "ltt",
        "-tn java -families a,b -read 100:4 -num_keys 3000 -skip_init",
        "verified: 3000, read errors: 0, read failures: 0",
    ),
    (
        "java ltt updates it",
        Java,
        "ltt",
        "-tn java -families a,b -update 40:4:1 -num_keys 3000 -skip_init",
        "Failed to update keys: 0",
    ),
    (
        "native ltt verifies the updates",
        Native,
        "ltt",
        "-tn java -families a,b -read 100:4 -num_keys 3000 -skip_init -multiget_batchsize 10",
        "read errors: 0, read failures: 0",
    ),
    (
        "native pe writes",
        Native,
        "pe",
        "--table=penative --rows=3000 --presplit=3 --nomapred sequentialWrite 2",
        "[SequentialWriteTest] Summary of timings (ms):",
    ),
    (
        "java pe reads it",
        Java,
        "pe",
        "--table=penative --rows=3000 --presplit=3 scan 2",
        "[ScanTest] Summary of timings (ms):",
    ),
    (
        "java pe makes no new table for it",
        Java,
        "pe",
        "--table=penative --rows=3000 --presplit=3 scanRange100 1",
        " returned 100 rows",
    ),
    (
        "java pe writes",
        Java,
        "pe",
        "--table=pejava --rows=3000 --presplit=3 sequentialWrite 2",
        "[SequentialWriteTest] Summary of timings (ms):",
    ),
    (
        "native pe reads it",
        Native,
        "pe",
        "--table=pejava --rows=3000 --presplit=3 --nomapred scanRange100 1",
        " returned 100 rows",
    ),
    (
        "native pe gets it",
        Native,
        "pe",
        "--table=pejava --rows=3000 --presplit=3 --nomapred --multiGet=10 randomRead 2",
        "[RandomReadTest] Summary of timings (ms):",
    ),
    (
        "java hashes",
        Java,
        "job",
        "org.apache.hadoop.hbase.mapreduce.HashTable --batchsize=20000 --numhashfiles=2 penative DIR/java-hashes",
        "",
    ),
    (
        "native finds its own hashes the same",
        Native,
        "synctable",
        "--dryrun=true --check --json DIR/java-hashes penative penative",
        "\"HASHES_NOT_MATCHED\":0",
    ),
    (
        "native hashes",
        Native,
        "hashtable",
        "--batchsize=20000 --numhashfiles=2 penative DIR/native-hashes",
        "Hashed 6000 rows of penative",
    ),
    (
        "java finds its own hashes the same",
        Java,
        "job",
        "org.apache.hadoop.hbase.mapreduce.SyncTable --dryrun=true DIR/native-hashes penative penative",
        "HASHES_MATCHED=",
    ),
    (
        "java exports in packed blocks",
        Java,
        "job",
        "org.apache.hadoop.hbase.mapreduce.Export -Dmapreduce.output.fileoutputformat.compress=true \
         -Dmapreduce.output.fileoutputformat.compress.type=BLOCK penative DIR/java-export",
        "",
    ),
    ("a table is made for it", Native, "regionsplitter", "-c 4 -f info0 pejobs UniformSplit", ""),
    ("native imports it", Native, "import", "pejobs DIR/java-export", "Imported 6000 rows"),
    (
        "native exports in packed blocks",
        Native,
        "export",
        "-D mapreduce.output.fileoutputformat.compress=true -D mapreduce.output.fileoutputformat.compress.type=BLOCK \
         penative DIR/native-export",
        "Exported 6000 rows",
    ),
    (
        "java makes HFiles of it",
        Java,
        "job",
        "org.apache.hadoop.hbase.mapreduce.Import -Dimport.bulk.output=DIR/java-files pejobs DIR/native-export",
        "",
    ),
    ("native loads them", Native, "bulkload", "DIR/java-files pejobs", "Loaded "),
    (
        "native makes HFiles",
        Native,
        "import",
        "-D import.bulk.output=DIR/native-files pejobs DIR/java-export",
        "Imported 6000 rows",
    ),
    ("java loads them", Java, "job", "org.apache.hadoop.hbase.tool.BulkLoadHFilesTool DIR/native-files pejobs", ""),
    (
        "what went these ways is what it was",
        Native,
        "synctable",
        "--dryrun=true --check --json DIR/java-hashes penative pejobs",
        "\"HASHES_NOT_MATCHED\":0",
    ),
];

/// Runs every step; each needs those before it.
pub fn suite(c: &Context) -> anyhow::Result<Outcome> {
    let mut outcome = Outcome::default();
    // Where steps leave files for each other; gone with the next run.
    let dir = c.log.with_extension("files");
    let _ = std::fs::remove_dir_all(&dir);
    std::fs::create_dir_all(&dir)?;
    let dir = std::path::absolute(&dir)?.display().to_string();
    for (number, (name, whose, tool, arguments, wanted)) in STEPS.iter().enumerate() {
        let log = c.log.with_extension(format!("{number}.log"));
        let mut command = match whose {
            Native => native(c, tool),
            Java => script(c, &format!("{tool}.sh")),
        };
        // Scripts add the address themselves; the native tool takes it with -D, before its own arguments.
        let arguments = arguments.replace("DIR", &dir);
        let ended = run::logged(command.args(arguments.split_whitespace()), &log, LIMIT)?;
        let clean = *whose == Native || !ended.output.lines().any(|line| line.contains("Exception"));
        if ended.well && clean && ended.output.contains(wanted) {
            outcome.passed += 1;
        } else {
            let tail: Vec<&str> = ended.output.lines().rev().take(3).collect();
            outcome.failures.push(format!("{name}: wanted {wanted:?}; {}; see {}", tail.join(" / "), log.display()));
        }
    }
    let exported = export_snapshots(c, &dir)?;
    outcome.passed += exported.passed;
    outcome.failures.extend(exported.failures);
    Ok(outcome)
}

/// HBase's ExportSnapshot to a server of Apache HBase and back.
fn export_snapshots(c: &Context, dir: &str) -> anyhow::Result<Outcome> {
    let class_path = jvm::HBASE_2.compile(&c.lab)?;
    let mut site = Site::new(Kind::HBase, &c.lab, "tools-hbase")?;
    site.heap = "1g";
    let hbase = site.start().context("starting Apache HBase to export snapshots to")?;
    let mut java = jvm::java(&class_path, "basalt.interop.ExportSnapshots");
    java.arg(&c.zookeeper).arg(&c.root).arg(site.zookeeper()).arg(site.root()).arg(dir);
    let outcome = judge(&run::logged(&mut java, &c.log.with_extension("export-snapshot.log"), LIMIT)?);
    hbase.kill()?;
    if outcome.failures.is_empty() {
        std::fs::remove_dir_all(&site.dir).ok();
    }
    Ok(outcome)
}

fn native(c: &Context, tool: &str) -> Command {
    let binary: PathBuf = server::binary();
    let mut command = Command::new(binary);
    command.env_remove("HBASE_CONF_DIR").arg("-D").arg(format!("hbase.zookeeper.quorum={}", c.zookeeper)).arg(tool);
    command
}
