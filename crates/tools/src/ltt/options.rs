//! The command line of LoadTestTool. Follows: `LoadTestTool#addOptions, #processOptions`, `AbstractHBaseTool`.

use bytes::Bytes;

use super::data::Sizes;

const DEFAULT_TABLE: &str = "cluster_test";
const DEFAULT_FAMILY: &str = "test_cf";
const DEFAULT_THREADS: u32 = 20;
const DEFAULT_DATA_SIZE: u64 = 64;

/// Name, whether it takes a value, words.
pub const OPTIONS: &[(&str, bool, &str)] = &[
    ("batchupdate", false, "Whether to use batch as opposed to separate updates for every column in a row"),
    ("bloom", true, "Bloom filter type, one of [NONE, ROW, ROWCOL, ROWPREFIX_FIXED_LENGTH]"),
    ("bloom_param", true, "the parameter of bloom filter type"),
    ("compression", true, "Compression type, one of [LZO, GZ, NONE, SNAPPY, LZ4, BZIP2, ZSTD, LZMA, BROTLI]"),
    (
        "data_block_encoding",
        true,
        "Encoding algorithm (e.g. prefix compression) to use for data blocks in the test column family, one of [NONE, PREFIX, DIFF, FAST_DIFF, ROW_INDEX_V1].",
    ),
    ("deferredlogflush", false, "Enable deferred log flush."),
    ("encryption", true, "Enables transparent encryption on the test table (not served)"),
    ("families", true, "The name of the column families to use separated by comma"),
    (
        "generator",
        true,
        "The class which generates load for the tool. Any args for this class can be passed as colon separated after class name",
    ),
    (
        "in_memory",
        false,
        "Tries to keep the HFiles of the CF inmemory as far as possible.  Not guaranteed that reads are always served from inmemory",
    ),
    ("init_only", false, "Initialize the test table only, don't do any loading"),
    (
        "key_window",
        true,
        "The 'key window' to maintain between reads and writes for concurrent write/read workload. The default is 0.",
    ),
    (
        "max_read_errors",
        true,
        "The maximum number of read errors to tolerate before terminating all reader threads. The default is 10.",
    ),
    ("mob_threshold", true, "Desired cell size to exceed in bytes that will use the MOB write path"),
    ("multiget_batchsize", true, "Whether to use multi-gets as opposed to separate gets for every column in a row"),
    ("multiput", false, "Whether to use multi-puts as opposed to separate puts for every column in a row"),
    ("num_keys", true, "The number of keys to read/write"),
    ("num_regions_per_server", true, "Desired number of regions per region server. Defaults to 5."),
    (
        "num_tables",
        true,
        "A positive integer number. When a number n is specified, load test tool  will load n table parallely. -tn parameter value becomes table name prefix. Each table name is in format <tn>_1...<tn>_n",
    ),
    ("read", true, "<verify_percent>[:<#threads=20>]"),
    ("reader", true, "The class for executing the read requests (only MultiThreadedReader)"),
    ("region_replica_id", true, "Region replica id to do the reads from (not served)"),
    ("region_replication", true, "Desired number of replicas per region (not served)"),
    ("skip_init", false, "Skip the initialization; assume test table already exists"),
    ("start_key", true, "The first key to read/write (a 0-based index). The default value is 0."),
    ("tn", true, "The name of the table to read or write"),
    ("update", true, "<update_percent>[:<#threads=20>][:<#whether to ignore nonce collisions=0>]"),
    ("updater", true, "The class for executing the update requests (only MultiThreadedUpdater)"),
    ("v,verbose", false, "Will display a full readout of logs, including ZooKeeper"),
    ("write", true, "<avg_cols_per_key>:<avg_data_size>[:<#threads=20>]"),
    ("writer", true, "The class for executing the write requests (only MultiThreadedWriter)"),
    ("zk", true, "ZK quorum as comma-separated host names, with or without port numbers"),
    ("zk_root", true, "name of parent znode in zookeeper"),
];

/// What writes.
#[derive(Debug, Clone, PartialEq)]
pub struct Write {
    /// Most columns of a row in a family; the fewest is 1.
    pub max_columns: u64,
    /// Sizes of values.
    pub sizes: Sizes,
    /// Tasks.
    pub threads: u32,
    /// One put for a row, or one for each column.
    pub multi_put: bool,
}

/// What updates.
#[derive(Debug, Clone, PartialEq)]
pub struct Update {
    /// Of a hundred rows.
    pub percent: u64,
    /// Tasks.
    pub threads: u32,
    /// Whether a refused nonce is no failure.
    pub ignore_conflicts: bool,
    /// One increment and append for a row, or one for each column.
    pub batch: bool,
}

/// What reads.
#[derive(Debug, Clone, PartialEq)]
pub struct Read {
    /// Of a hundred rows.
    pub verify_percent: u64,
    /// Tasks.
    pub threads: u32,
    /// Errors at which it stops.
    pub max_errors: u64,
    /// How far it stays behind the writer.
    pub key_window: u64,
    /// Gets at once.
    pub batch_size: usize,
}

/// Everything said on the command line.
#[derive(Debug, Clone, PartialEq)]
#[allow(missing_docs, reason = "each is an option, and the usage text explains it")]
pub struct LoadOptions {
    pub table: String,
    pub families: Vec<Bytes>,
    pub start_key: u64,
    pub end_key: u64,
    pub write: Option<Write>,
    pub update: Option<Update>,
    pub read: Option<Read>,
    pub init_only: bool,
    pub skip_init: bool,
    pub bloom: String,
    pub bloom_param: Option<String>,
    pub compression: String,
    pub encoding: Option<String>,
    pub in_memory: bool,
    pub deferred_log_flush: bool,
    pub mob_threshold: Option<u64>,
    pub mob_generator: Option<(Bytes, Sizes)>,
    pub num_tables: u32,
    pub regions_per_server: usize,
    pub verbose: bool,
    /// Settings given by `-D`, `-zk` and `-zk_root`.
    pub defines: Vec<(String, String)>,
}

/// What a command line asks for.
#[derive(Debug, PartialEq)]
pub enum Parsed {
    /// A run.
    Run(Box<LoadOptions>),
    /// The usage, perhaps after a complaint.
    Usage(Option<String>),
}

/// Reads a command line.
pub fn parse(arguments: &[String]) -> Parsed {
    match read(arguments) {
        Ok(Some(options)) => Parsed::Run(Box::new(options)),
        Ok(None) => Parsed::Usage(None),
        Err(why) => Parsed::Usage(Some(why)),
    }
}

/// The options of a command line: values of those that take one.
struct Given<'a>(Vec<(&'a str, Option<&'a str>)>);

impl<'a> Given<'a> {
    fn has(&self, name: &str) -> bool {
        self.0.iter().any(|(given, _)| *given == name)
    }

    fn value(&self, name: &str) -> Option<&'a str> {
        self.0.iter().find(|(given, _)| *given == name).and_then(|(_, value)| *value)
    }

    fn number(&self, name: &str, min: u64, max: u64) -> Result<Option<u64>, String> {
        self.value(name).map(|text| number(text, name, min, max)).transpose()
    }
}

fn number(text: &str, what: &str, min: u64, max: u64) -> Result<u64, String> {
    match text.parse() {
        Ok(n) if (min..=max).contains(&n) => Ok(n),
        _ => Err(format!("{what}: {text:?} is not a number from {min} to {max}")),
    }
}

fn read(arguments: &[String]) -> Result<Option<LoadOptions>, String> {
    let mut given = Given(Vec::new());
    let mut defines = Vec::new();
    let mut rest = arguments.iter();
    while let Some(argument) = rest.next() {
        if let Some(define) = argument.strip_prefix("-D") {
            let define = if define.is_empty() { rest.next().map(String::as_str).unwrap_or_default() } else { define };
            let (key, value) =
                define.split_once('=').ok_or_else(|| format!("-D {define} is not of the form key=value"))?;
            defines.push((key.to_owned(), value.to_owned()));
            continue;
        }
        let stripped = argument.strip_prefix("--").or_else(|| argument.strip_prefix('-'));
        let stripped = stripped.ok_or_else(|| format!("Unrecognized argument: {argument}"))?;
        if matches!(stripped, "h" | "help") {
            return Ok(None);
        }
        let (name, value) = match stripped.split_once('=') {
            Some((name, value)) => (name, Some(value)),
            None => (stripped, None),
        };
        let name = if name == "v" { "verbose" } else { name };
        let known = OPTIONS.iter().find(|(option, ..)| option.split(',').any(|o| o == name));
        let (_, takes_value, _) = known.ok_or_else(|| format!("Unrecognized option: {argument}"))?;
        let value = match (takes_value, value) {
            (true, None) => {
                Some(rest.next().map(String::as_str).ok_or_else(|| format!("Missing argument for option: {name}"))?)
            }
            (_, value) => value,
        };
        given.0.push((name, value));
    }
    interpret(&given, defines).map(Some)
}

fn interpret(given: &Given<'_>, mut defines: Vec<(String, String)>) -> Result<LoadOptions, String> {
    let works = ["read", "write", "update"].iter().any(|name| given.has(name));
    let init_only = given.has("init_only");
    if !init_only && !works {
        return Err("Must specify either -init_only or at least one of -read, -write, -update".to_owned());
    }
    if init_only && works {
        return Err("init_only cannot be specified with any of -read, -write, -update".to_owned());
    }
    if works && !given.has("num_keys") {
        return Err("num_keys must be specified in read/write mode.".to_owned());
    }
    for refused in ["encryption", "region_replica_id"] {
        if given.has(refused) {
            return Err(format!("-{refused} is not served"));
        }
    }
    if given.number("region_replication", 1, 1).is_err() {
        return Err("-region_replication above 1 is not served".to_owned());
    }
    for (option, class) in
        [("writer", "MultiThreadedWriter"), ("updater", "MultiThreadedUpdater"), ("reader", "MultiThreadedReader")]
    {
        if given.value(option).is_some_and(|name| name.rsplit('.').next() != Some(class)) {
            return Err(format!("-{option}: only {class} is known here"));
        }
    }
    if let Some(quorum) = given.value("zk") {
        defines.push(("hbase.zookeeper.quorum".to_owned(), quorum.to_owned()));
    }
    if let Some(root) = given.value("zk_root") {
        defines.push(("zookeeper.znode.parent".to_owned(), root.to_owned()));
    }
    let start_key = given.number("start_key", 0, i64::MAX as u64)?.unwrap_or(0);
    let num_keys = given.number("num_keys", 1, i64::MAX as u64 - start_key)?.unwrap_or(0);
    let families = given.value("families").unwrap_or(DEFAULT_FAMILY);
    let write = given.value("write").map(|text| parse_write(text, given.has("multiput"))).transpose()?;
    let mob_threshold =
        if write.is_some() || init_only { given.number("mob_threshold", 0, i64::MAX as u64)? } else { None };
    Ok(LoadOptions {
        table: given.value("tn").unwrap_or(DEFAULT_TABLE).to_owned(),
        families: families.split(',').map(|family| Bytes::copy_from_slice(family.as_bytes())).collect(),
        start_key,
        end_key: start_key + num_keys,
        update: given.value("update").map(|text| parse_update(text, given.has("batchupdate"))).transpose()?,
        read: given.value("read").map(|text| parse_read(text, given)).transpose()?,
        write,
        init_only,
        skip_init: given.has("skip_init"),
        bloom: given.value("bloom").unwrap_or("ROW").to_owned(),
        bloom_param: given.value("bloom_param").map(str::to_owned),
        compression: given.value("compression").unwrap_or("NONE").to_owned(),
        encoding: given.value("data_block_encoding").map(str::to_owned),
        in_memory: given.has("in_memory"),
        deferred_log_flush: given.has("deferredlogflush"),
        mob_threshold,
        mob_generator: given.value("generator").map(parse_generator).transpose()?.flatten(),
        num_tables: given.number("num_tables", 1, 32767)?.unwrap_or(1) as u32,
        regions_per_server: given.number("num_regions_per_server", 1, 100_000)?.unwrap_or(5) as usize,
        verbose: given.has("verbose"),
        defines,
    })
}

fn columns<'a>(text: &'a str, option: &str, min: usize, max: usize) -> Result<Vec<&'a str>, String> {
    let columns: Vec<&str> = text.split(':').collect();
    if (min..=max).contains(&columns.len()) {
        return Ok(columns);
    }
    Err(format!(
        "Expected at least {min} columns but no more than {max} in the colon-separated value '{text}' of the -{option} option"
    ))
}

fn threads(text: Option<&&str>) -> Result<u32, String> {
    text.map_or(Ok(DEFAULT_THREADS), |text| number(text, "threads", 1, 32767).map(|n| n as u32))
}

fn parse_write(text: &str, multi_put: bool) -> Result<Write, String> {
    let columns = columns(text, "write", 2, 3)?;
    let average = number(columns[1], "data size", 1, 1 << 30)?;
    Ok(Write {
        max_columns: 2 * number(columns[0], "columns per key", 1, 1 << 20)?,
        // A size of 1 would begin at 0, which the tool refuses.
        sizes: Sizes { min: (average / 2).max(1), max: (average * 3 / 2).max(1) },
        threads: threads(columns.get(2))?,
        multi_put,
    })
}

fn parse_update(text: &str, batch: bool) -> Result<Update, String> {
    let columns = columns(text, "update", 1, 3)?;
    Ok(Update {
        percent: number(columns[0], "update percent", 0, 100)?,
        threads: threads(columns.get(1))?,
        ignore_conflicts: columns.get(2).map_or(Ok(0), |text| number(text, "ignore nonce conflicts", 0, 1))? == 1,
        batch,
    })
}

fn parse_read(text: &str, given: &Given<'_>) -> Result<Read, String> {
    let columns = columns(text, "read", 1, 2)?;
    Ok(Read {
        verify_percent: number(columns[0], "verify percent", 0, 100)?,
        threads: threads(columns.get(1))?,
        max_errors: given.number("max_read_errors", 0, i32::MAX as u64)?.unwrap_or(10),
        key_window: given.number("key_window", 0, i32::MAX as u64)?.unwrap_or(0),
        batch_size: given.number("multiget_batchsize", 0, i32::MAX as u64)?.unwrap_or(1).max(1) as usize,
    })
}

/// `class[:argument...]`.
fn parse_generator(text: &str) -> Result<Option<(Bytes, Sizes)>, String> {
    let parts: Vec<&str> = text.split(':').collect();
    match parts[0].rsplit(['.', '$']).next() {
        Some("DefaultDataGenerator") => Ok(None),
        Some("LoadTestDataGeneratorWithMOB") => match parts[1..] {
            [family, min, max] => {
                let sizes = Sizes {
                    min: number(min, "minimum mob data size", 1, 1 << 30)?,
                    max: number(max, "maximum mob data size", 1, 1 << 30)?,
                };
                Ok(Some((Bytes::copy_from_slice(family.as_bytes()), sizes)))
            }
            _ => Err("LoadTestDataGeneratorWithMOB can have 3 arguments.1st argument is a column family, the 2nd \
                      argument is the minimum mob data size and the 3rd argument is the maximum mob data size."
                .to_owned()),
        },
        _ => Err(format!(
            "-generator {}: only DefaultDataGenerator and LoadTestDataGeneratorWithMOB are known here",
            parts[0]
        )),
    }
}

/// The usage text.
pub fn usage() -> String {
    let mut out = "usage: basalt ltt <options>\nOptions:\n".to_owned();
    for (name, takes_value, words) in OPTIONS {
        let name = name.split(',').map(|n| format!("-{n}"));
        let name = name.collect::<Vec<_>>().join(",") + if *takes_value { " <arg>" } else { "" };
        out.push_str(&format!(" {name:<32} {words}\n"));
    }
    out
}

/// Sizes where no writer says which.
pub fn default_sizes() -> Sizes {
    Sizes { min: DEFAULT_DATA_SIZE, max: DEFAULT_DATA_SIZE }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(line: &str) -> Parsed {
        parse(&line.split_whitespace().map(str::to_owned).collect::<Vec<_>>())
    }

    #[test]
    fn a_command_line_is_read_as_the_tool_reads_it() {
        let Parsed::Run(o) =
            parsed("-tn t -write 3:200:8 -num_keys 100 -start_key 5 --multiput -zk h:1 -Da=b -families a,b")
        else {
            panic!("a run")
        };
        assert_eq!((o.start_key, o.end_key, o.families.len(), o.table.as_str()), (5, 105, 2, "t"));
        let sizes = Sizes { min: 100, max: 300 };
        assert_eq!(o.write, Some(Write { max_columns: 6, sizes, threads: 8, multi_put: true }));
        assert_eq!(o.defines[1], ("hbase.zookeeper.quorum".to_owned(), "h:1".to_owned()));
        let Parsed::Run(o) = parsed("-read 100 -update 20:4:1 -num_keys=7 -multiget_batchsize 0 -batchupdate") else {
            panic!("a run")
        };
        assert_eq!(o.read.map(|r| (r.verify_percent, r.threads, r.batch_size)), Some((100, 20, 1)));
        assert_eq!(o.update.map(|u| (u.percent, u.threads, u.ignore_conflicts, u.batch)), Some((20, 4, true, true)));
    }

    #[test]
    fn what_makes_no_sense_is_said() {
        for bad in [
            "",
            "-write 3:200",
            "-write 3 -num_keys 1",
            "-write 3:200:0 -num_keys 1",
            "-read 101 -num_keys 1",
            "-init_only -read 1 -num_keys 1",
            "-nonsense",
            "-num_keys",
            "word",
            "-encryption AES -read 1 -num_keys 1",
            "-generator a.b.Other -write 1:1 -num_keys 1",
            "-generator a.LoadTestDataGeneratorWithMOB:f:1 -write 1:1 -num_keys 1",
        ] {
            assert!(matches!(parsed(bad), Parsed::Usage(Some(_))), "{bad}");
        }
        assert_eq!(parsed("-h"), Parsed::Usage(None));
        assert!(usage().contains("-num_keys <arg>"));
    }
}
