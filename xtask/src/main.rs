//! Development commands: `cargo xtask <command>`.
#![allow(clippy::disallowed_methods, reason = "a development tool works on the files of the tree")]

mod proto;

fn main() -> anyhow::Result<()> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    match args.iter().map(String::as_str).collect::<Vec<_>>().as_slice() {
        ["proto"] => proto::generate(false),
        ["proto", "--check"] => proto::generate(true),
        _ => anyhow::bail!("usage: cargo xtask proto [--check]"),
    }
}
