//! The native load generators beside HBase's own: each reads, and where it can verifies, what the other wrote.

use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

use crate::report::Outcome;
use crate::suites::{Context, script};
use crate::{run, server};

const LIMIT: Duration = Duration::from_secs(600);

/// Whose tool.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Whose {
    /// `basalt pe`, `basalt ltt`.
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
];

/// Runs every step; each needs those before it.
pub fn suite(c: &Context) -> anyhow::Result<Outcome> {
    let mut outcome = Outcome::default();
    for (number, (name, whose, tool, arguments, wanted)) in STEPS.iter().enumerate() {
        let log = c.log.with_extension(format!("{number}.log"));
        let mut command = match whose {
            Native => native(c, tool),
            Java => script(c, &format!("{tool}.sh")),
        };
        // Scripts add the address themselves; the native tool takes it with -D, before its own arguments.
        let ended = run::logged(command.args(arguments.split(' ')), &log, LIMIT)?;
        let clean = *whose == Native || !ended.output.lines().any(|line| line.contains("Exception"));
        if ended.well && clean && ended.output.contains(wanted) {
            outcome.passed += 1;
        } else {
            let tail: Vec<&str> = ended.output.lines().rev().take(3).collect();
            outcome.failures.push(format!("{name}: wanted {wanted:?}; {}; see {}", tail.join(" / "), log.display()));
        }
    }
    Ok(outcome)
}

fn native(c: &Context, tool: &str) -> Command {
    let binary: PathBuf = server::binary();
    let mut command = Command::new(binary);
    command.env_remove("HBASE_CONF_DIR").arg("-D").arg(format!("hbase.zookeeper.quorum={}", c.zookeeper)).arg(tool);
    command
}
