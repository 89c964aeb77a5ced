//! The micro-benchmarks' command line; see the crate and docs/internals/benchmarks.md.
#![allow(clippy::disallowed_methods, reason = "a tool: it works on the machine's own files and clocks")]

use anyhow::{Context, bail};
use basalt_bench::{Machine, Scale, Session, groups, json, table_header, table_row};
use std::path::PathBuf;

// What the server uses, or the figures would be another program's.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

const USAGE: &str = "\
usage: cargo xtask bench [OPTION...]

  --quick          short rounds on small tables: well under a minute in all
  --only NAME      just this name, or all names that begin with NAME and a dot; may not be repeated
  --json FILE      writes all figures to FILE too
  --dir DIR        where tables on disk are made and removed; beside this program unless given
  --server FILE    the server's binary; BASALT_BINARY, or `basalt` beside this program, unless given
  --list           just the names";

#[derive(Default)]
struct Options {
    quick: bool,
    list: bool,
    only: Option<String>,
    json: Option<PathBuf>,
    dir: Option<PathBuf>,
    server: Option<PathBuf>,
}

fn main() -> std::process::ExitCode {
    match run() {
        Ok(()) => std::process::ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error:#}");
            std::process::ExitCode::FAILURE
        }
    }
}

fn options() -> anyhow::Result<Options> {
    let mut options = Options::default();
    let mut args = std::env::args().skip(1);
    while let Some(arg) = args.next() {
        let mut value = || args.next().with_context(|| format!("{arg} wants a value\n{USAGE}"));
        match arg.as_str() {
            "--quick" => options.quick = true,
            "--list" => options.list = true,
            "--only" => options.only = Some(value()?),
            "--json" => options.json = Some(value()?.into()),
            "--dir" => options.dir = Some(value()?.into()),
            "--server" => options.server = Some(value()?.into()),
            _ => bail!("unknown option {arg}\n{USAGE}"),
        }
    }
    Ok(options)
}

fn run() -> anyhow::Result<()> {
    let options = options()?;
    if options.list {
        groups::ALL.iter().flat_map(|group| group.names).for_each(|name| println!("{name}"));
        return Ok(());
    }
    let scale = if options.quick { Scale::QUICK } else { Scale::FULL };
    let here = std::env::current_exe()?.parent().map(PathBuf::from).unwrap_or_default();
    let dir = options.dir.unwrap_or_else(|| here.clone());
    let mut session = Session::new(scale.clone(), dir, |figures| println!("{}", table_row(figures)));
    if let Some(only) = options.only {
        session.only(only);
    }
    let given = options.server.or_else(|| std::env::var_os("BASALT_BINARY").map(PathBuf::from));
    let server = given.unwrap_or_else(|| here.join("basalt"));

    let mut wanted = Vec::new();
    for group in groups::ALL.iter().filter(|group| group.names.iter().any(|name| session.wants(name))) {
        if group.needs_server && !server.exists() {
            eprintln!(
                "no server at {}: `cargo build --release` makes it; without it no {}..",
                server.display(),
                group.names[0]
            );
            continue;
        }
        wanted.push(*group);
    }
    if wanted.is_empty() {
        bail!("nothing to measure; --list shows the names");
    }
    let machine = Machine::this();
    println!(
        "{}, {} cores, {:.1} GB, Linux {}; {} rounds",
        machine.processor,
        machine.cores,
        machine.memory_bytes as f64 / 1e9,
        machine.kernel,
        scale.rounds
    );
    if cfg!(debug_assertions) {
        println!("NOT OPTIMISED: figures of a debug build say nothing");
    }
    println!("CPU ns/op is this process's; with an s, the server's. !: others kept the machine busy meanwhile\n");
    println!("{}", table_header());
    session.set_server(server);
    let outcome = session.run(&wanted);
    if let Some(path) = options.json {
        let text = serde_json::to_string_pretty(&json(&machine, &scale, session.figures()))?;
        std::fs::write(&path, text).with_context(|| format!("cannot write {}", path.display()))?;
    }
    outcome
}
