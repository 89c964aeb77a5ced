//! `fuzz list`, `fuzz seeds DIRECTORY [TARGET]`, `fuzz replay TARGET FILE...`: everything about the targets but the fuzzing.
#![allow(clippy::disallowed_methods, reason = "a tool on a developer's files")]

use anyhow::{Context, bail};
use basalt_fuzz::{target, write_seeds};
use std::path::Path;

const USAGE: &str = "usage: fuzz list | seeds DIRECTORY | replay TARGET FILE...";

fn main() -> anyhow::Result<()> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    match args.iter().map(String::as_str).collect::<Vec<_>>().as_slice() {
        ["list"] => print!("{}", basalt_fuzz::list()),
        ["seeds", directory] => write_seeds(Path::new(directory))?,
        ["replay", name, files @ ..] => {
            let target = target(name).with_context(|| format!("no target {name}; `fuzz list` lists them"))?;
            for file in files {
                println!("{file}");
                (target.run)(&std::fs::read(file).with_context(|| format!("cannot read {file}"))?);
            }
        }
        _ => bail!("{USAGE}"),
    }
    Ok(())
}
