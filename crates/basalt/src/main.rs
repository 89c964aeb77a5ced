//! The binary: arguments, wiring, signals. Owns nothing that lasts.

mod cli;
mod config;
mod coordinated;
mod details;
mod dev;
mod doctor;
mod explain;
mod gateway_pages;
mod gateways;
mod generate;
mod host;
mod init;
#[cfg(feature = "zookeeper")]
mod leader_pages;
#[cfg(feature = "zookeeper")]
mod leading;
mod logging;
#[cfg(feature = "zookeeper")]
mod member;
#[cfg(feature = "zookeeper")]
mod member_pages;
mod memory;
mod pages_port;
mod ports;
mod process;
mod profiles;
#[cfg(feature = "zookeeper")]
mod quorum;
#[cfg(feature = "zookeeper")]
mod region_port;
mod second_level;
mod settings;
mod sql;
mod standalone;
mod status;
mod storage;
mod threads;
mod traces;
mod unheeded;

use clap::Parser;
use cli::{Arguments, Command, ConfigCommand};
use std::ffi::OsString;
use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    let mut words: Vec<OsString> = std::env::args_os().skip(1).collect();
    cli::lengthen_options(&mut words);
    // Of settings in both places, before a command and behind it, clap gives those behind it alone.
    let before = cli::defines_before_command(&words);
    let mut arguments = Arguments::parse_from(std::iter::once(OsString::from("basalt")).chain(words));
    if arguments.define != before {
        arguments.define.splice(0..0, before);
    }
    match run(&arguments) {
        Ok(code) => code,
        Err(error) => {
            eprintln!("basalt: {}", sentence(&error));
            ExitCode::FAILURE
        }
    }
}

/// The error and its causes in one sentence, each said once: many errors name their source themselves.
fn sentence(error: &anyhow::Error) -> String {
    let mut said = String::new();
    for cause in error.chain() {
        let cause = cause.to_string();
        if said.is_empty() {
            said = cause;
        } else if !said.contains(&cause) {
            said = format!("{said}: {cause}");
        }
    }
    said
}

fn run(arguments: &Arguments) -> anyhow::Result<ExitCode> {
    let config = config::load(arguments.config_directory(), &arguments.define)?;
    let places = storage::Places { config_directory: arguments.config_directory().map(Path::to_owned) };
    match &arguments.command {
        Some(Command::Config { what: ConfigCommand::List }) => explain::list(),
        Some(Command::Config { what: ConfigCommand::Get { key } }) => println!("{}", explain::value(key, &config)),
        Some(Command::Config { what: ConfigCommand::Explain { key } }) => explain::explain(key, &config)?,
        Some(Command::Shell(passed)) => return shell::run(&config, &passed.arguments),
        Some(Command::Sql(passed)) => return Err(sql::run(&config, &passed.arguments)),
        Some(Command::Hfile(passed)) => return tools::hfile_tool::run(&config, &passed.arguments),
        Some(Command::Compressiontest(passed)) => return tools::compression_test::run(&config, &passed.arguments),
        Some(Command::Wal(passed)) => return tools::wal_tool::run(&config, &passed.arguments),
        Some(Command::Snapshot(passed)) => return tools::snapshot_tool::run(&config, &passed.arguments),
        Some(Command::Backup(passed)) => return tools::backup::run(&places, &config, &passed.arguments),
        Some(Command::Restore(passed)) => return tools::backup::restore(&places, &config, &passed.arguments),
        Some(Command::Volumes(passed)) => return tools::volumes::run(&config, &passed.arguments),
        Some(Command::Hbck(passed)) => return tools::hbck::run(&config, &passed.arguments),
        Some(Command::Canary(passed)) => return tools::cluster::canary(&config, &passed.arguments),
        Some(Command::Top(passed)) => return tools::cluster::top(&config, &passed.arguments),
        Some(Command::Zkcli(passed)) => return tools::cluster::zkcli(&config, &passed.arguments),
        Some(Command::Rowcounter(passed)) => return tools::jobs::row_counter(&config, &passed.arguments),
        Some(Command::Cellcounter(passed)) => return tools::jobs::cell_counter(&config, &passed.arguments),
        Some(Command::Export(passed)) => return tools::jobs::export(&config, &passed.arguments),
        Some(Command::Import(passed)) => return tools::jobs::import(&config, &passed.arguments),
        Some(Command::Copytable(passed)) => return tools::jobs::copy_table(&config, &passed.arguments),
        Some(Command::Importtsv(passed)) => return tools::jobs::import_tsv(&config, &passed.arguments),
        Some(Command::Bulkload(passed)) => return tools::jobs::bulk_load(&places, &config, &passed.arguments),
        Some(Command::Hashtable(passed)) => return tools::jobs::hash_table(&config, &passed.arguments),
        Some(Command::Synctable(passed)) => return tools::jobs::sync_table(&config, &passed.arguments),
        Some(Command::Walplayer(passed)) => return tools::jobs::wal_player(&config, &passed.arguments),
        Some(Command::Regionsplitter(passed)) => return tools::cluster::region_splitter(&config, &passed.arguments),
        Some(Command::Regionmover(passed)) => return tools::cluster::region_mover(&config, &passed.arguments),
        Some(Command::Admin(passed)) => return tools::cluster::admin(&config, &passed.arguments),
        Some(Command::Majorcompactor(passed)) => return tools::cluster::major_compactor(&config, &passed.arguments),
        Some(Command::Classpath(passed)) => return tools::cluster::classpath(&config, &passed.arguments),
        Some(Command::Mapredcp(passed)) => return tools::cluster::for_mapreduce(&config, &passed.arguments),
        Some(Command::Clean(passed)) => return tools::cluster::clean(&config, &passed.arguments),
        Some(Command::Pe(passed)) => return tools::pe::run(&config, &passed.arguments),
        Some(Command::Ltt(passed)) => return tools::ltt::run(&config, &passed.arguments),
        Some(Command::Ycsb(passed)) => return tools::ycsb::run(&config, &passed.arguments),
        Some(Command::Thrift(thrift)) => gateways::run_thrift(&thrift.over(config, "thrift")?, thrift::Version::One)?,
        Some(Command::Thrift2(thrift)) => gateways::run_thrift(&thrift.over(config, "thrift2")?, thrift::Version::Two)?,
        Some(Command::Rest(rest)) => gateways::run_rest(&rest.over(config)?)?,
        Some(Command::Regionserver { what }) => region_server(*what, config, arguments)?,
        Some(Command::Master { what, backup }) => master_server(*what, *backup, config, arguments)?,
        Some(Command::Init { directory, data }) => init::run(directory, data.as_deref())?,
        Some(Command::Generate { what }) => generate::run(what)?,
        Some(Command::Doctor) => return Ok(if doctor::run(&config)? { ExitCode::SUCCESS } else { ExitCode::FAILURE }),
        Some(Command::Dev(dev)) => dev::run(dev, config, arguments.ready_file.as_deref())?,
        Some(Command::Standalone) | None => {
            let read = read_again(arguments);
            let (directory, ready_file) = (arguments.config_directory(), arguments.ready_file.as_deref());
            standalone::run(config, directory, read, ready_file, standalone::Keeps::Everything)?;
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// Reads the configuration anew while a server runs.
fn read_again(arguments: &Arguments) -> regionserver::ReadConfig {
    let (directory, overrides) = (arguments.config_directory().map(Path::to_owned), arguments.define.clone());
    let read = move || -> anyhow::Result<base::Config> {
        let config = config::load(directory.as_deref(), &overrides)?;
        config.check(&settings::rows())?;
        Ok(config)
    };
    Arc::new(move || read().map_err(|error| sentence(&error)))
}

#[cfg(feature = "zookeeper")]
fn region_server(what: cli::RegionServerCommand, config: base::Config, arguments: &Arguments) -> anyhow::Result<()> {
    if what == cli::RegionServerCommand::Stop {
        return member::stop(&config);
    }
    let (directory, ready_file) = (arguments.config_directory(), arguments.ready_file.as_deref());
    member::run(config, directory, read_again(arguments), ready_file)
}

#[cfg(not(feature = "zookeeper"))]
fn region_server(_: cli::RegionServerCommand, _: base::Config, _: &Arguments) -> anyhow::Result<()> {
    anyhow::bail!("this build cannot join a cluster: build with cargo build --features hdfs,zookeeper")
}

#[cfg(feature = "zookeeper")]
fn master_server(
    what: cli::MasterCommand,
    backup: bool,
    mut config: base::Config,
    arguments: &Arguments,
) -> anyhow::Result<()> {
    if backup {
        config.set(leader::settings::BACKUP.key, "true");
    }
    match what {
        cli::MasterCommand::Stop => leading::stop(&config),
        cli::MasterCommand::Clear => leading::clear(&config),
        cli::MasterCommand::Start | cli::MasterCommand::Foreground => {
            leading::run(&config, arguments.config_directory(), arguments.ready_file.as_deref())
        }
    }
}

#[cfg(not(feature = "zookeeper"))]
fn master_server(_: cli::MasterCommand, _: bool, _: base::Config, _: &Arguments) -> anyhow::Result<()> {
    anyhow::bail!("this build cannot lead a cluster: build with cargo build --features hdfs,zookeeper")
}

#[cfg(test)]
mod tests {
    use anyhow::anyhow;

    #[test]
    fn a_cause_is_said_once() {
        let error = anyhow!("no room").context("cannot write x: no room").context("cannot start");
        assert_eq!(super::sentence(&error), "cannot start: cannot write x: no room");
    }
}
