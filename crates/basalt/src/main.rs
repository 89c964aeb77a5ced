//! The binary: arguments, wiring, signals. Owns nothing that lasts.

mod cli;
mod config;
mod explain;
mod host;
mod memory;
mod services;
mod settings;
mod standalone;
mod status;

use clap::Parser;
use cli::{Arguments, Command, ConfigCommand};
use std::process::ExitCode;

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    match run(&arguments) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            // One sentence, with its causes behind it.
            eprintln!("basalt: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn run(arguments: &Arguments) -> anyhow::Result<()> {
    let config = config::load(arguments.config.as_deref(), &arguments.define)?;
    match &arguments.command {
        Some(Command::Config { what: ConfigCommand::List }) => explain::list(),
        Some(Command::Config { what: ConfigCommand::Explain { key } }) => explain::explain(key, &config)?,
        Some(Command::Standalone) | None => standalone::run(config)?,
    }
    Ok(())
}
