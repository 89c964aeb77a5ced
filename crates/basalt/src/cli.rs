//! The command line.

use clap::builder::{OsStringValueParser, TypedValueParser};
use clap::{Parser, Subcommand};
use std::ffi::OsString;
use std::path::{Path, PathBuf};

/// Apache HBase as one native binary. Without a command: a standalone server.
#[derive(Parser, Debug)]
#[command(name = "basalt", version, about, disable_help_subcommand = true)]
pub struct Arguments {
    /// Directory with hbase-site.xml
    #[arg(long, value_name = "DIR", env = "HBASE_CONF_DIR", global = true, value_parser = directory())]
    pub config: Option<PathBuf>,
    /// One setting, over what hbase-site.xml says
    #[arg(short = 'D', value_name = "KEY=VALUE", global = true)]
    pub define: Vec<String>,
    /// A file for the server to write when it serves: its process id and ports, as JSON
    #[arg(long, value_name = "FILE")]
    pub ready_file: Option<PathBuf>,
    /// What to do
    #[command(subcommand)]
    pub command: Option<Command>,
}

/// Of a directory; the empty text is one, as `HBASE_CONF_DIR=` is no mistake ([`Arguments::config_directory`]).
fn directory() -> impl TypedValueParser<Value = PathBuf> {
    OsStringValueParser::new().map(PathBuf::from)
}

impl Arguments {
    /// The directory with hbase-site.xml, if one is named.
    pub fn config_directory(&self) -> Option<&Path> {
        self.config.as_deref().filter(|directory| !directory.as_os_str().is_empty())
    }
}

/// Options before the command whose value is the next word.
const WITH_VALUE: [&str; 3] = ["-D", "--config", "--ready-file"];

/// Where the command is among the words behind the program's name.
fn command_at(words: &[OsString]) -> Option<usize> {
    let mut at = 0;
    while let Some(word) = words.get(at).map(|word| word.to_string_lossy()) {
        if !word.starts_with('-') {
            return Some(at);
        }
        at += if WITH_VALUE.contains(&&*word) { 2 } else { 1 };
    }
    None
}

/// The settings (`-D KEY=VALUE`, `-DKEY=VALUE`) among the words before the command.
pub fn defines_before_command(words: &[OsString]) -> Vec<String> {
    let before = &words[..command_at(words).unwrap_or(words.len())];
    let mut before = before.iter().map(|word| word.to_string_lossy().into_owned());
    let mut defines = Vec::new();
    while let Some(word) = before.next() {
        match word.as_str() {
            "-D" => defines.extend(before.next()),
            word if WITH_VALUE.contains(&word) => drop(before.next()),
            word if word.starts_with("-D") => defines.push(word[2..].trim_start_matches('=').to_owned()),
            _ => {}
        }
    }
    defines
}

/// What the binary can do.
#[derive(Subcommand, Debug)]
pub enum Command {
    /// Start a standalone server (what happens without a command, too)
    Standalone,
    /// Join the cluster of another master as a region server
    Regionserver {
        /// What to do
        #[arg(value_enum, default_value_t = RegionServerCommand::Foreground)]
        what: RegionServerCommand,
    },
    /// Lead a cluster of region servers as its master, or wait as a backup
    Master {
        /// What to do
        #[arg(value_enum, default_value_t = MasterCommand::Foreground)]
        what: MasterCommand,
        /// Start as a backup: wait until another master is active, and only then stand by to be the next
        #[arg(long)]
        backup: bool,
    },
    /// Start an instance for tests: free ports, a directory that goes with it, one line of JSON when it serves
    Dev(DevArguments),
    /// Write a commented hbase-site.xml to begin with
    Init {
        /// Where to write it
        #[arg(value_name = "DIR", default_value = "conf")]
        directory: PathBuf,
        /// Where the data is to be
        #[arg(long, value_name = "DIR")]
        data: Option<PathBuf>,
    },
    /// Completions and man pages, for packages
    #[command(hide = true)]
    Generate {
        /// Which
        #[command(subcommand)]
        what: GenerateCommand,
    },
    /// Look whether this machine suits, and say what to change
    Doctor,
    /// Explain settings
    Config {
        /// Which
        #[command(subcommand)]
        what: ConfigCommand,
    },
    /// Start a REST gateway to the cluster that the configuration names
    Rest(RestArguments),
    /// HBase's shell: commands, scripts, a prompt
    Shell(Passed),
    /// SQL for PostgreSQL's clients: starts basalt-sql, a program of its own, for the cluster that the configuration names
    Sql(Passed),
    /// Start a Thrift 1 gateway to the cluster that the configuration names
    Thrift(ThriftArguments),
    /// Start a Thrift 2 gateway to the cluster that the configuration names
    Thrift2(ThriftArguments),
    /// What is in an HFile, and whether it is whole
    Hfile(Passed),
    /// Whether a codec works: writes a file and reads it
    Compressiontest(Passed),
    /// What is in a write-ahead log
    Wal(Passed),
    /// Snapshots without a server: info, verify, export, import
    Snapshot(Passed),
    /// Backups of tables in a directory elsewhere: full and incremental
    Backup(Passed),
    /// Makes tables as they were in a backup
    Restore(Passed),
    /// The disks of a root directory: what is on which, and one directory again of all
    Volumes(Passed),
    /// What is wrong with a cluster or a root directory, and repairs
    Hbck(Passed),
    /// Reads from every region and tells how long it took
    Canary(Passed),
    /// What a cluster is busy with
    Top(Passed),
    /// Nodes of ZooKeeper
    Zkcli(Passed),
    /// Counts a table's rows
    Rowcounter(Passed),
    /// Counts a table's families, qualifiers, versions and bytes
    Cellcounter(Passed),
    /// Writes a table's cells into files that HBase's Import reads
    Export(Passed),
    /// Writes cells out of an export into a table
    Import(Passed),
    /// Copies a table into another, of this cluster or of another
    Copytable(Passed),
    /// Writes lines of text into a table
    Importtsv(Passed),
    /// Loads HFiles into a table
    #[command(alias = "completebulkload")]
    Bulkload(Passed),
    /// Writes hashes of a table's rows, for synctable
    Hashtable(Passed),
    /// Makes a table as another one is, reading only what differs
    Synctable(Passed),
    /// Writes the edits of logs into tables
    Walplayer(Passed),
    /// Makes a table with regions of equal shares, or splits all of one's
    Regionsplitter(Passed),
    /// Takes the regions off a server, and brings them back
    #[command(alias = "region_mover")]
    Regionmover(Passed),
    /// Restarts region servers one after the other, or empties some
    Admin(Passed),
    /// Compacts a table, so many servers at a time
    Majorcompactor(Passed),
    /// What a Java client needs on its class path
    Classpath(Passed),
    /// What a job of MapReduce over tables needs on its class path
    Mapredcp(Passed),
    /// Deletes a cluster's data
    Clean(Passed),
    /// PerformanceEvaluation: HBase's load generator with named tests
    Pe(Passed),
    /// LoadTestTool: writes, updates, reads and verifies self-describing rows
    Ltt(Passed),
    /// YCSB's core workloads A to F
    Ycsb(Passed),
}

/// In HBase's words.
#[derive(clap::ValueEnum, Clone, Copy, Debug, PartialEq, Eq)]
pub enum RegionServerCommand {
    /// Serve until told to stop
    Start,
    /// The same
    Foreground,
    /// Ask the region server of this machine to stop
    Stop,
}

/// In HBase's words.
#[derive(clap::ValueEnum, Clone, Copy, Debug, PartialEq, Eq)]
pub enum MasterCommand {
    /// Lead until told to stop
    Start,
    /// The same
    Foreground,
    /// Shut the whole cluster down: the active master has the region servers stop
    Stop,
    /// Remove the node of a master of this machine that has crashed, so that a backup need not wait for its session to end
    Clear,
}

/// Where an instance for tests lives, and for how long.
#[derive(clap::Args, Debug)]
pub struct DevArguments {
    /// End when standard input is closed, and so with the process that holds its other end
    #[arg(long)]
    pub until_stdin_closes: bool,
    /// Keep files in a temporary directory on disk, even where there is one in memory
    #[arg(long)]
    pub on_disk: bool,
    /// Directory to make the temporary one in
    #[arg(long, value_name = "DIR")]
    pub directory: Option<PathBuf>,
}

/// HBase's word for what a gateway is to do.
#[derive(clap::ValueEnum, Clone, Copy, Debug, PartialEq, Eq)]
pub enum GatewayWord {
    /// Serve
    Start,
    /// Say how it is stopped
    Stop,
}

impl GatewayWord {
    /// What to do where `name` is not to be started: HBase's commands cannot stop a process, either, and end with an error.
    ///
    /// # Errors
    /// How it is stopped.
    pub fn check(word: Option<GatewayWord>, name: &str) -> anyhow::Result<()> {
        if word != Some(GatewayWord::Stop) {
            return Ok(());
        }
        anyhow::bail!(
            "to stop the {name} gateway, run bin/hbase-daemon.sh stop {name}, or send its process a TERM signal"
        )
    }
}

/// How a REST gateway is started, in HBase's words.
#[derive(clap::Args, Debug)]
pub struct RestArguments {
    /// HBase's word for it; may be left out
    #[arg(value_enum, hide = true)]
    pub what: Option<GatewayWord>,
    /// Port to listen on (hbase.rest.port)
    #[arg(short, long, value_name = "PORT")]
    pub port: Option<u16>,
    /// Refuse everything but reads (hbase.rest.readonly); -ro for short
    #[arg(long)]
    pub readonly: bool,
    /// Port of the status pages (hbase.rest.info.port)
    #[arg(short, long, value_name = "PORT", allow_hyphen_values = true)]
    pub infoport: Option<i32>,
}

impl RestArguments {
    /// What they say, over what the configuration says.
    ///
    /// # Errors
    /// It is not to be started.
    pub fn over(&self, mut config: base::Config) -> anyhow::Result<base::Config> {
        use rest::settings::{INFO_PORT, PORT, READ_ONLY};
        GatewayWord::check(self.what, "rest")?;
        if let Some(port) = self.port {
            config.set(PORT.key, port.to_string());
        }
        if let Some(port) = self.infoport {
            config.set(INFO_PORT.key, port.to_string());
        }
        if self.readonly {
            config.set(READ_ONLY.key, "true");
        }
        Ok(config)
    }
}

/// How a Thrift gateway is started, in HBase's words.
#[derive(clap::Args, Debug)]
#[allow(clippy::struct_excessive_bools, reason = "HBase's options")]
pub struct ThriftArguments {
    /// HBase's word for it; may be left out
    #[arg(value_enum, hide = true)]
    pub what: Option<GatewayWord>,
    /// Port to listen on (hbase.regionserver.thrift.port)
    #[arg(short, long, value_name = "PORT")]
    pub port: Option<u16>,
    /// Address to listen on (hbase.regionserver.thrift.ipaddress)
    #[arg(short, long, value_name = "ADDRESS")]
    pub bind: Option<String>,
    /// The compact protocol (hbase.regionserver.thrift.compact)
    #[arg(short, long)]
    pub compact: bool,
    /// Messages in frames (hbase.regionserver.thrift.framed)
    #[arg(short, long)]
    pub framed: bool,
    /// Refuse writes (hbase.thrift.readonly; Thrift 2); -ro for short
    #[arg(long)]
    pub readonly: bool,
    /// Port of the status pages (hbase.thrift.info.port)
    #[arg(long, value_name = "PORT", allow_hyphen_values = true)]
    pub infoport: Option<i32>,
    /// Milliseconds for which a client may be silent (hbase.thrift.server.socket.read.timeout)
    #[arg(short = 't', long = "readTimeout", value_name = "MS")]
    pub read_timeout: Option<u64>,
    /// HBase's servers whose clients send messages in frames (hbase.regionserver.thrift.server.type); -hsha for short
    #[arg(long, conflicts_with_all = ["nonblocking", "threadedselector", "threadpool"])]
    pub hsha: bool,
    /// The same; -nonblocking for short
    #[arg(long, conflicts_with_all = ["threadedselector", "threadpool"])]
    pub nonblocking: bool,
    /// The same; -threadedselector for short
    #[arg(long, conflicts_with = "threadpool")]
    pub threadedselector: bool,
    /// HBase's default, with or without frames; -threadpool for short
    #[arg(long)]
    pub threadpool: bool,
    /// No effect: connections have no threads of their own (hbase.thrift.minWorkerThreads)
    #[arg(short, long = "minWorkers", value_name = "N")]
    pub min_workers: Option<u32>,
    /// No effect, likewise (hbase.thrift.maxWorkerThreads)
    #[arg(short, long, value_name = "N")]
    pub workers: Option<u32>,
    /// No effect, likewise (hbase.thrift.maxQueuedRequests)
    #[arg(short, long, value_name = "N")]
    pub queue: Option<u32>,
    /// No effect, likewise (hbase.thrift.selector.num)
    #[arg(short, long, value_name = "N")]
    pub selectors: Option<u32>,
    /// No effect, likewise (hbase.thrift.threadKeepAliveTimeSec)
    #[arg(short, long = "keepAliveSec", value_name = "N")]
    pub keep_alive_sec: Option<u32>,
}

impl ThriftArguments {
    /// What they say, over what the configuration says; `name` is the command's.
    ///
    /// # Errors
    /// It is not to be started.
    pub fn over(&self, mut config: base::Config, name: &str) -> anyhow::Result<base::Config> {
        use thrift::settings::{
            BIND_ADDRESS, COMPACT, FRAMED, INFO_PORT, PORT, READ_ONLY, SERVER_TYPE, SOCKET_TIMEOUT_MS,
        };
        GatewayWord::check(self.what, name)?;
        let number = |number: Option<u32>| number.map(|number| number.to_string());
        for (key, value) in [
            (PORT.key, self.port.map(|port| port.to_string())),
            (BIND_ADDRESS.key, self.bind.clone()),
            (INFO_PORT.key, self.infoport.map(|port| port.to_string())),
            (SOCKET_TIMEOUT_MS.key, self.read_timeout.map(|ms| ms.to_string())),
            ("hbase.thrift.minWorkerThreads", number(self.min_workers)),
            ("hbase.thrift.maxWorkerThreads", number(self.workers)),
            ("hbase.thrift.maxQueuedRequests", number(self.queue)),
            ("hbase.thrift.selector.num", number(self.selectors)),
            ("hbase.thrift.threadKeepAliveTimeSec", number(self.keep_alive_sec)),
        ] {
            if let Some(value) = value {
                config.set(key, value);
            }
        }
        for (is_set, key, value) in [
            (self.compact, COMPACT.key, "true"),
            (self.framed, FRAMED.key, "true"),
            (self.readonly, READ_ONLY.key, "true"),
            (self.hsha, SERVER_TYPE.key, "hsha"),
            (self.nonblocking, SERVER_TYPE.key, "nonblocking"),
            (self.threadedselector, SERVER_TYPE.key, "threadedselector"),
            (self.threadpool, SERVER_TYPE.key, "threadpool"),
        ] {
            if is_set {
                config.set(key, value);
            }
        }
        Ok(config)
    }
}

/// Rewrites the options of HBase's gateways that are longer than a letter behind one dash (`-ro`, `-hsha`) as options of two dashes.
pub fn lengthen_options(words: &mut [OsString]) {
    const LONG: [(&str, &str); 5] = [
        ("-ro", "--readonly"),
        ("-hsha", "--hsha"),
        ("-nonblocking", "--nonblocking"),
        ("-threadedselector", "--threadedselector"),
        ("-threadpool", "--threadpool"),
    ];
    let Some(at) = command_at(words).filter(|at| ["rest", "thrift", "thrift2"].iter().any(|name| words[*at] == *name))
    else {
        return;
    };
    for word in &mut words[at..] {
        if let Some((_, long)) = LONG.iter().find(|(short, _)| word == *short) {
            *word = OsString::from(long);
        }
    }
}

/// Arguments that a tool reads itself, in the manner of its model.
#[derive(clap::Args, Debug)]
#[command(disable_help_flag = true)]
pub struct Passed {
    /// The tool's own arguments; none, or --help, explains them
    #[arg(trailing_var_arg = true, allow_hyphen_values = true, value_name = "ARGUMENTS")]
    pub arguments: Vec<String>,
}

/// What is made of the command line's definition.
#[derive(Subcommand, Debug)]
pub enum GenerateCommand {
    /// Completions of a shell, to standard output
    Completions {
        /// bash, zsh, fish
        shell: clap_complete::Shell,
    },
    /// A man page for each command
    Man {
        /// Where to write them
        directory: PathBuf,
    },
}

/// About settings.
#[derive(Subcommand, Debug)]
pub enum ConfigCommand {
    /// Every setting that is read: default, bounds, meaning
    List,
    /// The value of one setting, alone
    Get {
        /// Its key
        key: String,
    },
    /// One setting
    Explain {
        /// Its key
        key: String,
    },
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gateways_understand_hbases_options() {
        let parsed = |words: &[&str]| {
            let mut words: Vec<OsString> = words.iter().map(OsString::from).collect();
            lengthen_options(&mut words);
            Arguments::try_parse_from(std::iter::once(OsString::from("basalt")).chain(words)).expect("legal")
        };
        let thrift = |words: &[&str]| match parsed(words).command {
            Some(Command::Thrift(arguments)) => arguments.over(base::Config::default(), "thrift"),
            other => panic!("{other:?}"),
        };
        let config =
            thrift(&["thrift", "start", "-hsha", "-p", "1", "--infoport", "-1", "-t", "5", "-m", "3", "-w", "4"]);
        let config = config.expect("to be started");
        for (key, value) in [
            ("hbase.regionserver.thrift.server.type", "hsha"),
            ("hbase.regionserver.thrift.port", "1"),
            ("hbase.thrift.info.port", "-1"),
            ("hbase.thrift.server.socket.read.timeout", "5"),
            ("hbase.thrift.minWorkerThreads", "3"),
            ("hbase.thrift.maxWorkerThreads", "4"),
        ] {
            assert_eq!(config.text(key), Some(value), "{key}");
        }
        for word in ["-nonblocking", "-threadedselector"] {
            let config = thrift(&["thrift", word]).expect("to be started");
            assert_eq!(config.text("hbase.regionserver.thrift.server.type"), Some(&word[1..]));
        }
        let Some(Command::Thrift2(two)) = parsed(&["thrift2", "-ro", "-f"]).command else { panic!("not thrift2") };
        let config = two.over(base::Config::default(), "thrift2").expect("to be started");
        for key in ["hbase.thrift.readonly", "hbase.regionserver.thrift.framed"] {
            assert_eq!(config.text(key), Some("true"), "{key}");
        }
        let words = ["thrift", "-threadpool", "-b", "::1", "-c", "-f", "-q", "1", "-s", "2", "-k", "3", "start"];
        assert_eq!(thrift(&words).expect("to be started").text("hbase.thrift.threadKeepAliveTimeSec"), Some("3"));
        assert!(
            thrift(&["thrift", "stop"]).expect_err("not started").to_string().contains("hbase-daemon.sh stop thrift")
        );
        let Some(Command::Rest(rest)) = parsed(&["rest", "-ro", "-i", "7", "start"]).command else {
            panic!("not rest")
        };
        let config = rest.over(base::Config::default()).expect("to be started");
        assert_eq!(
            (config.text("hbase.rest.readonly"), config.text("hbase.rest.info.port")),
            (Some("true"), Some("7"))
        );
        // Elsewhere a word is what it is.
        let mut words = ["-D", "rest", "shell", "rest", "-ro"].map(OsString::from);
        lengthen_options(&mut words);
        assert_eq!(words[4], "-ro");
    }

    #[test]
    fn settings_before_a_command_are_found() {
        let words = ["--config", "-D", "-Da=1", "-D", "b=2", "export", "-D", "c=3"].map(OsString::from);
        assert_eq!(defines_before_command(&words), ["a=1", "b=2"]);
    }

    #[test]
    fn an_empty_configuration_directory_is_none() {
        let parsed = |directory: &str| Arguments::try_parse_from(["basalt", "--config", directory]).expect("legal");
        assert_eq!(parsed("").config_directory(), None);
        assert_eq!(parsed("conf").config_directory(), Some(Path::new("conf")));
    }
}
