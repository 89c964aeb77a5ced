//! The command line of PerformanceEvaluation. Follows: `PerformanceEvaluation.TestOptions, #parseOpts,
//! #calculateRowsAndSize`.

use std::fmt::Write;
use std::str::FromStr;

use super::command::Command;

/// Rows of 1,000 bytes in a GiB.
pub const DEFAULT_ROWS_PER_GB: u64 = ONE_GB / 1000;
const ONE_GB: u64 = 1024 * 1024 * 1000;

/// Everything that can be said on the command line, under the tool's names.
#[derive(Debug, Clone, PartialEq)]
#[allow(missing_docs, reason = "each is an option, and the usage text explains it")]
pub struct TestOptions {
    pub command: Command,
    pub nomapred: bool,
    pub filter_all: bool,
    pub start_row: u64,
    pub size: f32,
    pub per_client_run_rows: u64,
    pub num_client_threads: u32,
    pub total_rows: u64,
    pub measure_after: u64,
    pub sample_rate: f32,
    pub trace_rate: f64,
    pub table_name: String,
    pub flush_commits: bool,
    pub write_to_wal: bool,
    pub auto_flush: bool,
    pub one_con: bool,
    pub conn_count: i32,
    pub use_tags: bool,
    pub no_of_tags: u32,
    pub report_latency: bool,
    pub multi_get: u32,
    pub multi_put: u32,
    pub random_sleep: u64,
    pub in_memory_cf: bool,
    pub presplit_regions: u32,
    pub replicas: u32,
    pub split_policy: Option<String>,
    pub compression: String,
    pub encryption: Option<String>,
    pub bloom_type: String,
    pub block_size: u32,
    pub block_encoding: String,
    pub value_random: bool,
    pub value_zipf: bool,
    pub value_size: u32,
    pub period: u64,
    pub cycles: u32,
    pub columns: u32,
    pub families: u32,
    pub caching: u32,
    pub latency_threshold_ms: u64,
    pub add_columns: bool,
    pub in_memory_compaction: String,
    pub async_prefetch: bool,
    pub cache_blocks: bool,
    pub scan_read_type: String,
    pub buffer_size: u64,
    pub command_properties: Option<String>,
}

impl Default for TestOptions {
    fn default() -> Self {
        TestOptions {
            command: Command::RandomRead,
            nomapred: false,
            filter_all: false,
            start_row: 0,
            size: 1.0,
            per_client_run_rows: DEFAULT_ROWS_PER_GB,
            num_client_threads: 1,
            total_rows: DEFAULT_ROWS_PER_GB,
            measure_after: 0,
            sample_rate: 1.0,
            trace_rate: 0.0,
            table_name: "TestTable".to_owned(),
            flush_commits: true,
            write_to_wal: true,
            auto_flush: false,
            one_con: false,
            conn_count: -1,
            use_tags: false,
            no_of_tags: 1,
            report_latency: false,
            multi_get: 0,
            multi_put: 0,
            random_sleep: 0,
            in_memory_cf: false,
            presplit_regions: 0,
            replicas: 1,
            split_policy: None,
            compression: "NONE".to_owned(),
            encryption: None,
            bloom_type: "ROW".to_owned(),
            block_size: 65536,
            block_encoding: "NONE".to_owned(),
            value_random: false,
            value_zipf: false,
            value_size: 1000,
            period: DEFAULT_ROWS_PER_GB / 10,
            cycles: 1,
            columns: 1,
            families: 1,
            caching: 30,
            latency_threshold_ms: 0,
            add_columns: true,
            in_memory_compaction: "NONE".to_owned(),
            async_prefetch: false,
            cache_blocks: true,
            scan_read_type: "DEFAULT".to_owned(),
            buffer_size: 2 * 1024 * 1024,
            command_properties: None,
        }
    }
}

/// What a command line asks for.
#[derive(Debug, PartialEq)]
pub enum Parsed {
    /// A run, with the settings given by `-D`.
    Run(Box<TestOptions>, Vec<(String, String)>),
    /// The usage, perhaps after a complaint; the tool fails unless it was asked for.
    Usage {
        /// What is wrong.
        complaint: Option<String>,
        /// Whether the usage was asked for.
        asked: bool,
    },
    /// An option that makes no sense.
    Invalid(String),
}

fn usage(complaint: Option<String>, asked: bool) -> Parsed {
    Parsed::Usage { complaint, asked }
}

/// Reads a command line.
pub fn parse(arguments: &[String]) -> Parsed {
    let mut options = TestOptions::default();
    let mut defines = Vec::new();
    let mut rest = arguments.iter();
    if arguments.is_empty() {
        return usage(None, false);
    }
    while let Some(argument) = rest.next() {
        if argument == "-h" || argument.starts_with("--h") {
            return usage(None, true);
        }
        if let Some(define) = argument.strip_prefix("-D") {
            let define = if define.is_empty() { rest.next().map(String::as_str).unwrap_or_default() } else { define };
            match define.split_once('=') {
                Some((key, value)) => defines.push((key.to_owned(), value.to_owned())),
                None => return Parsed::Invalid(format!("-D {define} is not of the form key=value")),
            }
            continue;
        }
        if let Some(option) = argument.strip_prefix("--") {
            let (key, value) = match option.split_once('=') {
                Some((key, value)) => (key.trim(), Some(value.trim())),
                None => (option.trim(), None),
            };
            match set(&mut options, key, value) {
                Ok(true) => continue,
                Ok(false) => {}
                Err(why) => return Parsed::Invalid(format!("Invalid option: {argument}: {why}")),
            }
        }
        let Some(command) = Command::from_name(argument) else {
            return usage(Some(format!("ERROR: Unrecognized option/command: {argument}")), false);
        };
        options.command = command;
        match rest.next().and_then(|n| n.parse().ok()) {
            Some(threads) => options.num_client_threads = threads,
            None => return Parsed::Invalid(format!("Command {argument} does not have threads number")),
        }
        if let Some(more) = rest.next() {
            return usage(Some(format!("ERROR: {more} comes after the number of clients")), true);
        }
        if options.num_client_threads == 0 {
            return Parsed::Invalid("Number of clients must be > 0".to_owned());
        }
        if let Err(why) = check(&options) {
            return Parsed::Invalid(why);
        }
        calculate_rows_and_size(&mut options);
        return Parsed::Run(Box::new(options), defines);
    }
    usage(None, false)
}

/// Sets an option; false when there is none of that name.
fn set(options: &mut TestOptions, key: &str, value: Option<&str>) -> Result<bool, String> {
    if let Some(flag) = flag(options, key) {
        *flag = match value {
            None => true,
            Some(text) if text.eq_ignore_ascii_case("true") => true,
            Some(text) if text.eq_ignore_ascii_case("false") => false,
            Some(text) => return Err(format!("Invalid boolean value: {text}")),
        };
        return Ok(true);
    }
    const KEYS: &[&str] = &[
        "rows",
        "cycles",
        "sampleRate",
        "table",
        "startRow",
        "compress",
        "encryption",
        "traceRate",
        "blockEncoding",
        "presplit",
        "connCount",
        "latencyThreshold",
        "multiGet",
        "multiPut",
        "numoftags",
        "replicas",
        "size",
        "splitPolicy",
        "randomSleep",
        "measureAfter",
        "bloomFilter",
        "blockSize",
        "valueSize",
        "period",
        "inmemoryCompaction",
        "columns",
        "families",
        "caching",
        "scanReadType",
        "bufferSize",
        "commandPropertiesFile",
    ];
    if !KEYS.contains(&key) {
        return Ok(false);
    }
    let value = value.ok_or_else(|| format!("--{key} requires a value"))?;
    let text = || value.to_owned();
    match key {
        "rows" => options.per_client_run_rows = number(value)?,
        "cycles" => options.cycles = number(value)?,
        "sampleRate" => {
            options.sample_rate = number(value)?;
            if !(options.sample_rate > 0.0 && options.sample_rate <= 1.0) {
                return Err("a rate is above 0 and at most 1".to_owned());
            }
        }
        "table" => options.table_name = text(),
        "startRow" => options.start_row = number(value)?,
        "compress" => {
            options.compression =
                one_of(value, &["LZO", "GZ", "NONE", "SNAPPY", "LZ4", "BZIP2", "ZSTD", "LZMA", "BROTLI"])?
        }
        "encryption" => options.encryption = Some(text()),
        "traceRate" => options.trace_rate = number(value)?,
        "blockEncoding" => {
            options.block_encoding = one_of(value, &["NONE", "PREFIX", "DIFF", "FAST_DIFF", "ROW_INDEX_V1"])?;
        }
        "presplit" => options.presplit_regions = number(value)?,
        "connCount" => options.conn_count = number(value)?,
        "latencyThreshold" => options.latency_threshold_ms = number(value)?,
        "multiGet" => options.multi_get = number(value)?,
        "multiPut" => options.multi_put = number(value)?,
        "numoftags" => options.no_of_tags = number(value)?,
        "replicas" => {
            options.replicas = number(value)?;
            if options.replicas == 0 {
                return Err("a region has one replica at least".to_owned());
            }
        }
        "size" => {
            options.size = number(value)?;
            if options.size <= 1.0 {
                return Err("Size must be > 1; i.e. 1GB".to_owned());
            }
        }
        "splitPolicy" => options.split_policy = Some(text()),
        "randomSleep" => options.random_sleep = number(value)?,
        "measureAfter" => options.measure_after = number(value)?,
        "bloomFilter" => options.bloom_type = one_of(value, &["NONE", "ROW", "ROWCOL", "ROWPREFIX_FIXED_LENGTH"])?,
        "blockSize" => options.block_size = number(value)?,
        "valueSize" => options.value_size = number(value)?,
        "period" => options.period = number(value)?,
        "inmemoryCompaction" => {
            options.in_memory_compaction = one_of(value, &["NONE", "BASIC", "EAGER", "ADAPTIVE"])?;
        }
        "columns" => options.columns = number(value)?,
        "families" => options.families = number(value)?,
        "caching" => options.caching = number(value)?,
        "scanReadType" => options.scan_read_type = one_of(&value.to_uppercase(), &["DEFAULT", "STREAM", "PREAD"])?,
        "bufferSize" => options.buffer_size = number(value)?,
        "commandPropertiesFile" => {
            // For tests in classes of their own, which no command of PerformanceEvaluation's own is: it must be there, and nobody asks for more.
            if !std::path::Path::new(value).is_file() {
                return Err(format!("Resource file not found: {value}"));
            }
            options.command_properties = Some(text());
        }
        _ => return Ok(false),
    }
    Ok(true)
}

fn flag<'a>(options: &'a mut TestOptions, key: &str) -> Option<&'a mut bool> {
    Some(match key {
        "nomapred" => &mut options.nomapred,
        "flushCommits" => &mut options.flush_commits,
        "writeToWAL" => &mut options.write_to_wal,
        "inmemory" => &mut options.in_memory_cf,
        "autoFlush" => &mut options.auto_flush,
        "oneCon" => &mut options.one_con,
        "latency" => &mut options.report_latency,
        "usetags" => &mut options.use_tags,
        "filterAll" => &mut options.filter_all,
        "valueRandom" => &mut options.value_random,
        "valueZipf" => &mut options.value_zipf,
        "addColumns" => &mut options.add_columns,
        "asyncPrefetch" => &mut options.async_prefetch,
        "cacheBlocks" => &mut options.cache_blocks,
        _ => return None,
    })
}

fn number<T: FromStr>(text: &str) -> Result<T, String> {
    text.parse().map_err(|_| format!("{text:?} is not a number that fits"))
}

fn one_of(text: &str, legal: &[&str]) -> Result<String, String> {
    if legal.contains(&text) { Ok(text.to_owned()) } else { Err(format!("{text} is none of {}", legal.join(", "))) }
}

fn check(options: &TestOptions) -> Result<(), String> {
    if !options.auto_flush && options.multi_put > 0 {
        return Err("autoFlush must be true when multiPut is more than 0".to_owned());
    }
    if options.one_con && options.conn_count > 1 {
        return Err("oneCon is set to true, connCount should not bigger than 1".to_owned());
    }
    if options.value_zipf && options.value_random {
        return Err("Either valueZipf or valueRandom but not both".to_owned());
    }
    if options.families == 0 || options.columns == 0 || options.value_size == 0 || options.conn_count == 0 {
        return Err("families, columns, valueSize and connCount must be > 0".to_owned());
    }
    Ok(())
}

/// Rows, size and clients depend on each other.
fn calculate_rows_and_size(options: &mut TestOptions) {
    let value = if options.value_random { options.value_size / 2 } else { options.value_size };
    let row = u64::from(value.max(1)) * u64::from(options.families) * u64::from(options.columns);
    let rows_per_gb = (ONE_GB / row).max(1);
    let sized = (f64::from(options.size) * rows_per_gb as f64) as u64;
    let size_given = options.size != 1.0;
    let rows_given = options.per_client_run_rows != DEFAULT_ROWS_PER_GB;
    if matches!(options.command, Command::RandomRead | Command::RandomSeekScan) && size_given && rows_given {
        options.total_rows = sized;
    } else if size_given {
        options.total_rows = sized;
        options.per_client_run_rows = sized / u64::from(options.num_client_threads);
    } else {
        options.total_rows = options.per_client_run_rows.saturating_mul(u64::from(options.num_client_threads));
        options.size = (options.total_rows / rows_per_gb) as f32;
    }
}

impl TestOptions {
    /// Connections of all clients together.
    pub fn connections(&self) -> usize {
        match (self.one_con, self.conn_count) {
            (true, _) => 1,
            (false, n) => usize::try_from(n).unwrap_or(self.num_client_threads as usize),
        }
    }

    /// The options as the tool logs them: an object in JSON.
    pub fn to_json(&self) -> String {
        let mut out = format!("{{\"cmdName\":\"{}\"", self.command.name());
        let mut field = |name: &str, value: &dyn std::fmt::Display| {
            write!(out, ",\"{name}\":{value}").expect("writing to a string");
        };
        let quoted = |text: &str| format!("{text:?}");
        field("nomapred", &self.nomapred);
        field("filterAll", &self.filter_all);
        field("startRow", &self.start_row);
        field("size", &format!("{:?}", self.size));
        field("perClientRunRows", &self.per_client_run_rows);
        field("numClientThreads", &self.num_client_threads);
        field("totalRows", &self.total_rows);
        field("measureAfter", &self.measure_after);
        field("sampleRate", &format!("{:?}", self.sample_rate));
        field("traceRate", &format!("{:?}", self.trace_rate));
        field("tableName", &quoted(&self.table_name));
        field("flushCommits", &self.flush_commits);
        field("writeToWAL", &self.write_to_wal);
        field("autoFlush", &self.auto_flush);
        field("oneCon", &self.one_con);
        field("connCount", &self.conn_count);
        field("useTags", &self.use_tags);
        field("noOfTags", &self.no_of_tags);
        field("reportLatency", &self.report_latency);
        field("multiGet", &self.multi_get);
        field("multiPut", &self.multi_put);
        field("randomSleep", &self.random_sleep);
        field("inMemoryCF", &self.in_memory_cf);
        field("presplitRegions", &self.presplit_regions);
        field("replicas", &self.replicas);
        if let Some(policy) = &self.split_policy {
            field("splitPolicy", &quoted(policy));
        }
        field("compression", &quoted(&self.compression));
        if let Some(encryption) = &self.encryption {
            field("encryption", &quoted(encryption));
        }
        field("bloomType", &quoted(&self.bloom_type));
        field("blockSize", &self.block_size);
        field("blockEncoding", &quoted(&self.block_encoding));
        field("valueRandom", &self.value_random);
        field("valueZipf", &self.value_zipf);
        field("valueSize", &self.value_size);
        field("period", &self.period);
        field("cycles", &self.cycles);
        field("columns", &self.columns);
        field("families", &self.families);
        field("caching", &self.caching);
        field("latencyThreshold", &self.latency_threshold_ms);
        field("addColumns", &self.add_columns);
        field("inMemoryCompaction", &quoted(&self.in_memory_compaction));
        field("asyncPrefetch", &self.async_prefetch);
        field("cacheBlocks", &self.cache_blocks);
        field("scanReadType", &quoted(&self.scan_read_type));
        field("bufferSize", &self.buffer_size);
        out.push('}');
        out
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(line: &str) -> Parsed {
        parse(&line.split_whitespace().map(str::to_owned).collect::<Vec<_>>())
    }

    fn run(line: &str) -> TestOptions {
        match parsed(line) {
            Parsed::Run(options, _) => *options,
            other => panic!("{line}: {other:?}"),
        }
    }

    #[test]
    fn rows_size_and_clients_depend_on_each_other() {
        let o = run("--nomapred --rows=100 sequentialWrite 4");
        assert_eq!((o.total_rows, o.per_client_run_rows, o.connections()), (400, 100, 4));
        let o = run("--size=2 randomWrite 4");
        assert_eq!((o.total_rows, o.per_client_run_rows), (2_097_152, 524_288));
        let o = run("--size=2 --rows=10 randomRead 4");
        assert_eq!((o.total_rows, o.per_client_run_rows), (2_097_152, 10));
        let o = run("--rows=10 --valueSize=100 --families=2 --columns=5 --oneCon=true scan 3");
        assert_eq!((o.total_rows, o.connections(), o.families), (30, 1, 2));
        assert_eq!(run("--writeToWAL=false --autoFlush=true --multiPut=7 randomWrite 1").multi_put, 7);
        assert!(run("scan 1").to_json().starts_with("{\"cmdName\":\"scan\",\"nomapred\":false"));
    }

    #[test]
    fn what_makes_no_sense_is_said() {
        for bad in [
            "--multiPut=3 randomWrite 1",
            "--rows=x scan 1",
            "--rows scan 1",
            "--size=0.5 scan 1",
            "--bloomFilter=row scan 1",
            "--oneCon --connCount=2 scan 1",
            "--valueZipf --valueRandom randomWrite 1",
            "--autoFlush=yes randomWrite 1",
            "scan",
            "scan x",
            "scan 0",
            "-D novalue scan 1",
        ] {
            assert!(matches!(parsed(bad), Parsed::Invalid(_)), "{bad}: {:?}", parsed(bad));
        }
        assert!(matches!(parsed("--nonsense scan 1"), Parsed::Usage { complaint: Some(_), asked: false }));
        assert!(matches!(parsed("--help"), Parsed::Usage { complaint: None, asked: true }));
        assert!(matches!(parsed(""), Parsed::Usage { complaint: None, asked: false }));
        let Parsed::Run(_, defines) = parsed("-Da.b=c=d -D e=f scan 1") else { panic!("a run") };
        assert_eq!(defines, [("a.b".to_owned(), "c=d".to_owned()), ("e".to_owned(), "f".to_owned())]);
    }
}
