//! The command line.

use clap::{Parser, Subcommand};
use std::path::PathBuf;

/// Apache HBase as one native binary. Without a command: a standalone server.
#[derive(Parser, Debug)]
#[command(name = "basalt", version, about, disable_help_subcommand = true)]
pub struct Arguments {
    /// Directory with hbase-site.xml
    #[arg(long, value_name = "DIR", env = "HBASE_CONF_DIR", global = true)]
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

/// The settings (`-D KEY=VALUE`, `-DKEY=VALUE`) among the words before the command.
pub fn defines_before_command(words: impl Iterator<Item = String>) -> Vec<String> {
    let mut words = words;
    let mut defines = Vec::new();
    while let Some(word) = words.next() {
        match word.as_str() {
            "-D" => defines.extend(words.next()),
            "--config" | "--ready-file" => drop(words.next()),
            word if word.starts_with("-D") => defines.push(word[2..].trim_start_matches('=').to_owned()),
            word if word.starts_with('-') => {}
            _ => break,
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
    /// Compacts a table, so many servers at a time
    Majorcompactor(Passed),
    /// What a Java client needs on its class path
    Classpath(Passed),
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

/// How a REST gateway is started, in HBase's words.
#[derive(clap::Args, Debug)]
pub struct RestArguments {
    /// HBase's word for it; may be left out
    #[arg(value_parser = ["start"], hide = true)]
    pub what: Option<String>,
    /// Port to listen on (hbase.rest.port)
    #[arg(short, long, value_name = "PORT")]
    pub port: Option<u16>,
    /// Refuse everything but reads (hbase.rest.readonly)
    #[arg(long)]
    pub readonly: bool,
}

impl RestArguments {
    /// What they say, over what the configuration says.
    pub fn over(&self, mut config: base::Config) -> base::Config {
        if let Some(port) = self.port {
            config.set(rest::settings::PORT.key, port.to_string());
        }
        if self.readonly {
            config.set(rest::settings::READ_ONLY.key, "true");
        }
        config
    }
}

/// How a Thrift gateway is started, in HBase's words.
#[derive(clap::Args, Debug)]
pub struct ThriftArguments {
    /// HBase's word for it; may be left out
    #[arg(value_parser = ["start"], hide = true)]
    pub what: Option<String>,
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
    /// Refuse writes (hbase.thrift.readonly; Thrift 2)
    #[arg(long)]
    pub readonly: bool,
}

impl ThriftArguments {
    /// What they say, over what the configuration says.
    pub fn over(&self, mut config: base::Config) -> base::Config {
        use thrift::settings::{BIND_ADDRESS, COMPACT, FRAMED, PORT, READ_ONLY};
        if let Some(port) = self.port {
            config.set(PORT.key, port.to_string());
        }
        if let Some(address) = &self.bind {
            config.set(BIND_ADDRESS.key, address.clone());
        }
        for (is_set, key) in [(self.compact, COMPACT.key), (self.framed, FRAMED.key), (self.readonly, READ_ONLY.key)] {
            if is_set {
                config.set(key, "true");
            }
        }
        config
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
    fn settings_before_a_command_are_found() {
        let words = ["--config", "-D", "-Da=1", "-D", "b=2", "export", "-D", "c=3"].map(str::to_owned);
        assert_eq!(defines_before_command(words.into_iter()), ["a=1", "b=2"]);
    }
}
