//! Where the server's time goes under a workload of `cargo xtask compare`: `perf record`, folded stacks, a flame graph.

use std::path::Path;
use std::process::{Command, Stdio};

use crate::run;
use anyhow::{Context, bail};

/// Plays `workload` for `seconds` against a server built with frame pointers; leaves `target/profile/NAME.svg` and
/// `NAME.folded`. Further words go to `compare` (`--rows`, `--clients`, `--basalt-define`).
pub fn run(workload: &str, seconds: &str, more: &[String]) -> anyhow::Result<()> {
    if !Command::new("perf").arg("--version").stdout(Stdio::null()).status().is_ok_and(|s| s.success()) {
        bail!("perf is missing (Debian: apt-get install linux-perf)");
    }
    let dir = run::root().join("target/profile");
    let mut build = run::cargo();
    build.args(["build", "--release", "--package", "basalt", "--target-dir"]).arg(&dir);
    // without them a stack is cut at the first frame
    build.env("RUSTFLAGS", "-C force-frame-pointers=yes");
    run::must("release build with frame pointers", &mut build)?;
    let binary = dir.join("release/basalt");
    let recorded = dir.join("recorded");
    if recorded.exists() {
        std::fs::remove_dir_all(&recorded)?;
    }
    std::fs::create_dir_all(&recorded)?;
    let mut bench = Command::new(crate::compare::built()?);
    bench.arg("compare").arg("--basalt").arg(format!("basalt={}", binary.display()));
    bench.args(["--no-safe", "--quick", "--first-warm-up", "0", "--only", workload]);
    bench.args(["--seconds", seconds, "--mixed-seconds", seconds]).args(more);
    bench.arg("--out").arg(dir.join("compare")).arg("--profile").arg(&recorded);
    run::must("compare", &mut bench)?;
    let mut found = false;
    for entry in std::fs::read_dir(&recorded)?.flatten() {
        let path = entry.path();
        if path.extension().is_some_and(|e| e == "data") {
            found = true;
            draw(&path, &dir)?;
        }
    }
    if !found {
        bail!("{workload} recorded nothing: `cargo xtask compare --list` names the workloads");
    }
    Ok(())
}

fn draw(data: &Path, dir: &Path) -> anyhow::Result<()> {
    let name = data.file_stem().unwrap_or_default().to_string_lossy().into_owned();
    let mut script = Command::new("perf");
    script.args(["script", "--no-inline", "-i"]).arg(data).stderr(Stdio::null());
    let stacks = script.output().context("perf script")?;
    let stacks = flame::fold(&String::from_utf8_lossy(&stacks.stdout));
    let folded = dir.join(format!("{name}.folded"));
    let lines: String = stacks.iter().map(|(path, samples)| format!("{path} {samples}\n")).collect();
    std::fs::write(&folded, lines)?;
    let svg = dir.join(format!("{name}.svg"));
    std::fs::write(&svg, flame::draw(&format!("basalt: {name}"), &stacks))?;
    println!("{}\n{}", svg.display(), folded.display());
    Ok(())
}
