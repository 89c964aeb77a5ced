//! The command line: which commands there are, what they take, and what `--help` says about them.

use clap::{Args, Parser, Subcommand, ValueEnum};

use crate::cluster;
use crate::server::Kind;

/// Development commands of Basalt
#[derive(Parser, Debug)]
#[command(
    name = "xtask",
    bin_name = "cargo xtask",
    arg_required_else_help = true,
    infer_long_args = false,
    after_help = "`cargo xtask COMMAND --help` explains a command and shows examples."
)]
pub struct Cli {
    #[command(subcommand)]
    pub command: Command,
}

#[derive(Subcommand, Debug)]
pub enum Command {
    /// Format, crate edges, generated code, tidiness, licences; unless quick, lints and every test of the workspace
    #[command(after_help = "Examples:\n  cargo xtask check --quick    before each commit, seconds\n  \
                            cargo xtask check            ends a task, minutes")]
    Check {
        /// Only what takes seconds: no lints, no tests
        #[arg(long)]
        quick: bool,
    },
    /// What CI runs: check, real clients, HDFS and ZooKeeper, the kill test, three noisy neighbours, SQL; on the server that the tests have built
    #[command(after_help = "Examples:\n  cargo xtask test\n  cargo xtask test --long    before a release: on the \
                            release build, also the fuzzers, the simulator and every crash state")]
    Test {
        /// On the release build, and also what takes hours: the fuzzers, 1000 runs of the simulator, every crash state, the injected bugs, all
        /// noisy neighbours
        #[arg(long)]
        long: bool,
    },
    /// What people install: a tarball, a Debian package, an OCI image, checksums, the list of crates; each tried in a bare Debian
    #[command(
        after_help = "Examples:\n  cargo xtask package\n  cargo xtask package --machine aarch64    tried in an emulator"
    )]
    Package {
        /// The machine that it is for, if it is not this one
        #[arg(long, value_enum)]
        machine: Option<crate::package::Machine>,
    },
    /// Real clients against the server
    #[command(
        after_help = "Suites: java java3 asynchbase shell go pe ltt tools client differential administration bad-input testing stop moving; by name only: \
                            exchange\n\nExamples:\n  cargo xtask interop\n  cargo xtask interop java --only Scan\n  \
                            cargo xtask interop --against hbase shell"
    )]
    Interop {
        /// The server under test; hbase checks the tests themselves
        #[arg(long, value_enum, default_value_t)]
        against: Against,
        /// Only tests whose names match this regular expression
        #[arg(long, value_name = "REGEX")]
        only: Option<String>,
        /// Which suites [default: all that are not by name only]
        suites: Vec<String>,
    },
    /// The server, the volume and the nodes on a real HDFS and a real ZooKeeper, which are started from HBase's jars
    #[command(
        after_help = "Tests: nodes secured volume server join own masters replicas; by name only: recovered spread integration tls\n\nLogs of the pieces are in target/interop/cluster, the tests' output in \
                            target/interop/logs.\n\nExamples:\n  cargo xtask cluster\n  cargo xtask cluster volume\n  \
                            cargo xtask cluster --minutes 20    a linked list written while servers, masters and HDFS are killed"
    )]
    Cluster {
        /// Which tests [default: all]
        tests: Vec<String>,
        /// Instead of the tests a cluster that is harmed for so long, while clients write a linked list
        #[arg(long, value_name = "N", conflicts_with = "tests")]
        minutes: Option<u64>,
        /// The seed of a run that is repeated
        #[arg(long, value_name = "S", requires = "minutes")]
        seed: Option<u64>,
        /// Whose masters lead the cluster that is harmed
        #[arg(long, value_enum, default_value_t, requires = "minutes")]
        masters: cluster::Masters,
        /// Write HBase's own linked list, IntegrationTestBigLinkedList, beside ours
        #[arg(long, requires = "minutes")]
        hbases_list: bool,
    },
    /// kill -9 under concurrent writes, restart, compare with the journal
    #[command(
        after_help = "Examples:\n  cargo xtask kill --rounds 20\n  cargo xtask kill --rounds 2 sabotage    the test of the \
                            test: a cut log must be noticed"
    )]
    Kill {
        /// Rounds of kill and restart
        #[arg(long, value_name = "N", default_value_t = 20)]
        rounds: u32,
        /// The seed of a run that is repeated
        #[arg(long, value_name = "S")]
        seed: Option<u64>,
        /// The server under test
        #[arg(long, value_enum, default_value_t)]
        against: Against,
        /// `sabotage` cuts the log before each restart and wants the loss to be found
        #[arg(value_parser = ["sabotage"])]
        sabotage: Option<String>,
    },
    /// Random programs against Apache HBase and Basalt, every reply compared
    #[command(after_help = "Examples:\n  cargo xtask differential --programs 500\n  \
                            cargo xtask differential --administration --programs 1000\n  \
                            cargo xtask differential --seed 77 --programs 1 --steps 1,2,9    a shrunk failure again")]
    Differential {
        /// Calls of administration instead of requests of data
        #[arg(long)]
        administration: bool,
        /// Programs
        #[arg(long, value_name = "N", default_value_t = 2000)]
        programs: u32,
        /// The seed of a run that is repeated [default: a new one]
        #[arg(long, value_name = "S")]
        seed: Option<u64>,
        /// Only these steps of the program
        #[arg(long, value_name = "1,2,..")]
        steps: Option<String>,
    },
    /// The release binary under kill -9, SIGSTOP, a full disk, little memory, failing system calls, a bad network, hostile clients
    #[command(after_help = "Examples:\n  cargo xtask faults --list\n  cargo xtask faults --only memory\n  \
                            BASALT_BINARY=FILE cargo xtask faults --minutes 10")]
    Faults(Passed),
    /// Play the same load against several servers in turn and report throughput, latency and what they used
    #[command(
        after_help = "`cargo xtask compare --help` is answered by the program itself. With --on-hdfs a region server of HBase's and one of ours, in \
                            turn, below HBase's master on a real HDFS and ZooKeeper:\n  cargo xtask compare --on-hdfs --quick\nwith --harmed only what clients wait for while a DataNode stands still, and is killed; with --without-hbase ours alone"
    )]
    Compare(Passed),
    /// What one polite client waits for beside noisy neighbours; without arguments three of them for 10 s each, with wide bounds
    #[command(after_help = "Examples:\n  cargo xtask neighbours\n  cargo xtask neighbours --seconds 60 --with-hbase")]
    Neighbours(Passed),
    /// What a get costs the server through Thrift and REST, beside the native protocol and a fixed body
    #[command(after_help = "Examples:\n  cargo xtask gateways\n  cargo xtask gateways --with-hbase --only thrift,rest")]
    Gateways(Passed),
    /// How soon a server answers as before when an overload is over
    Overload(Passed),
    /// What administration of a table of a thousand regions takes, and the state of a cluster of ten thousand
    Scale(Passed),
    /// The longest wait of a mixed load beside that of a probe which sleeps and syncs
    Stall(Passed),
    /// What is left of writes while one of three volumes takes longer for each call
    SlowVolume(Passed),
    /// How soon a second level of the block cache is as good as before after a restart
    WarmCache(Passed),
    /// What it buys to have logs, flushed and compacted files on memory, flash or a slow disk
    Tiers(Passed),
    /// The micro-benchmarks
    #[command(after_help = "Example: cargo xtask bench memstore")]
    Bench(Passed),
    /// Flame graph of the server under a workload of `cargo xtask compare`, in target/profile
    #[command(
        after_help = "Examples:\n  cargo xtask profile put-32 --seconds 10\n  cargo xtask profile get-32 -- --rows 100000"
    )]
    Profile {
        /// As `cargo xtask compare --list` names it
        workload: String,
        /// How long it is recorded
        #[arg(long, value_name = "N", default_value = "10")]
        seconds: String,
        /// Further arguments for the comparison
        #[arg(last = true)]
        more: Vec<String>,
    },
    /// Seeded runs of the whole server in the simulator; with --enumerate every crash state of every step list
    #[command(
        after_help = "Examples:\n  cargo xtask sim --runs 1000\n  cargo xtask sim --seed 7 --runs 1 --speak    a failing run again\n  \
                            cargo xtask sim --servers 3 --runs 50    three region servers and two masters\n  \
                            cargo xtask sim --enumerate"
    )]
    Sim(Passed),
    /// Every decoder of foreign bytes under libFuzzer
    #[command(
        after_help = "What was found is in target/fuzz.\n\nExamples:\n  cargo xtask fuzz --seconds 600 --only hfile\n  \
                            cargo xtask fuzz --replay TARGET FILE\n  cargo xtask fuzz --keep hfile"
    )]
    Fuzz(Fuzz),
    /// `basalt-sql`: its workspace is built and tested, its answers are compared with PostgreSQL's
    Sql {
        /// Only the files with this in their name; `tpch=SCALE`: TPC-H instead; `bench=ROWS`: what it costs beside PostgreSQL and Phoenix
        only: Option<String>,
    },
    /// The hand-made concurrent parts, each test under many orders of its threads' operations
    Schedules {
        /// Schedules for each test
        #[arg(value_name = "N", default_value_t = 1000)]
        number: u64,
    },
    /// The tests of crates with unsafe code under the nightly compiler's sanitizers
    Sanitize {
        /// Only this one
        #[arg(value_parser = ["address", "thread"])]
        only: Option<String>,
    },
    /// Builds the simulator with known bugs and wants it to notice each
    #[command(after_help = "Example: cargo xtask injected wal")]
    Injected {
        /// Only bugs whose name or description contains this
        name: Option<String>,
    },
    /// The pages for people as a web site, from the same files, below the target directory (python3; network needed on first use)
    Site,
    /// Generated protobuf code from crates/proto/proto
    Proto {
        /// Write nothing; an error when what is there is stale
        #[arg(long)]
        check: bool,
    },
    /// docs/coverage.md: what is there, counted against the inventory
    Coverage {
        /// Write nothing; an error when what is there is stale
        #[arg(long)]
        check: bool,
    },
}

/// Arguments that the program behind a command reads itself.
#[derive(Args, Debug)]
#[command(disable_help_flag = true)]
pub struct Passed {
    /// The program's own arguments; --help explains them
    #[arg(trailing_var_arg = true, allow_hyphen_values = true, value_name = "ARGUMENTS")]
    pub arguments: Vec<String>,
}

#[derive(Args, Debug)]
pub struct Fuzz {
    /// Seconds for each target
    #[arg(long, value_name = "N", default_value_t = 60)]
    pub seconds: u64,
    /// Only targets whose names contain this
    #[arg(long, value_name = "PART-OF-A-NAME")]
    pub only: Option<String>,
    /// Targets at the same time
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u16).range(1..))]
    pub jobs: u16,
    /// Add the time to dev/fuzz/time.csv
    #[arg(long)]
    pub record: bool,
    /// Run one input again
    #[arg(long, num_args = 2, value_names = ["TARGET", "FILE"], conflicts_with_all = ["keep", "record", "only"])]
    pub replay: Option<Vec<String>>,
    /// Put the inputs that reached something new into the tree, and record the time
    #[arg(long, value_name = "PART-OF-A-NAME", num_args = 0..=1, default_missing_value = "", conflicts_with_all = ["only"])]
    pub keep: Option<String>,
}

/// Which server is tested.
#[derive(Clone, Copy, Default, Debug, ValueEnum)]
pub enum Against {
    /// The release binary, or that of BASALT_BINARY
    #[default]
    Basalt,
    /// Apache HBase from its jars
    Hbase,
}

impl From<Against> for Kind {
    fn from(against: Against) -> Kind {
        match against {
            Against::Basalt => Kind::Basalt,
            Against::Hbase => Kind::HBase,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    #[test]
    fn the_definitions_are_sound() {
        Cli::command().debug_assert();
    }

    #[test]
    fn an_unknown_command_is_answered_with_the_nearest() {
        let error = Cli::try_parse_from(["xtask", "nieghbours"]).expect_err("no such command").to_string();
        assert!(error.contains("neighbours"), "{error}");
    }

    #[test]
    fn arguments_of_the_program_behind_pass_unread() {
        let cli = Cli::try_parse_from(["xtask", "sim", "--runs", "3", "--help"]).expect("passed on");
        let Command::Sim(passed) = cli.command else { panic!("{cli:?}") };
        assert_eq!(passed.arguments, ["--runs", "3", "--help"]);
    }

    #[test]
    fn every_command_says_what_it_is_for() {
        for command in Cli::command().get_subcommands() {
            assert!(command.get_about().is_some(), "{}", command.get_name());
        }
    }
}
