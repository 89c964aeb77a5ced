//! The program behind `cargo xtask compare`, `neighbours`, `overload`, `scale`, `stall` and `tiers`.

use std::process::ExitCode;

fn main() -> ExitCode {
    basalt_compare::run(std::env::args_os()).unwrap_or_else(|error| {
        eprintln!("{error:#}");
        ExitCode::FAILURE
    })
}
