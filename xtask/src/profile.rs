//! Where the server's time goes under a workload of `basalt bench compare`: `perf record`, folded stacks, a flame graph.

use std::fs::File;
use std::io::{BufReader, BufWriter};
use std::path::Path;
use std::process::{Command, Stdio};

use anyhow::{Context, bail};
use inferno::collapse::Collapse;
use inferno::collapse::perf::Folder;
use inferno::flamegraph;

use crate::run;

/// Plays `workload` for `seconds` against a server built with frame pointers; leaves `target/profile/NAME.svg` and
/// `NAME.folded`. Further words go to `bench compare` (`--rows`, `--clients`, `--basalt-define`).
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
    let mut bench = Command::new(&binary);
    bench.args(["bench", "compare", "--no-safe", "--quick", "--first-warm-up", "0", "--only", workload]);
    bench.args(["--seconds", seconds, "--mixed-seconds", seconds]).args(more);
    bench.arg("--out").arg(dir.join("compare")).arg("--profile").arg(&recorded);
    run::must("bench compare", &mut bench)?;
    let mut found = false;
    for entry in std::fs::read_dir(&recorded)?.flatten() {
        let path = entry.path();
        if path.extension().is_some_and(|e| e == "data") {
            found = true;
            draw(&path, &dir)?;
        }
    }
    if !found {
        bail!("{workload} recorded nothing: `basalt bench compare --list` names the workloads");
    }
    Ok(())
}

fn draw(data: &Path, dir: &Path) -> anyhow::Result<()> {
    let name = data.file_stem().unwrap_or_default().to_string_lossy().into_owned();
    let folded = dir.join(format!("{name}.folded"));
    let mut script = Command::new("perf");
    script.args(["script", "--no-inline", "-i"]).arg(data).stdout(Stdio::piped()).stderr(Stdio::null());
    let mut child = script.spawn().context("perf script")?;
    let stacks = child.stdout.take().context("its output")?;
    Folder::default().collapse(BufReader::new(stacks), BufWriter::new(File::create(&folded)?))?;
    child.wait()?;
    let svg = dir.join(format!("{name}.svg"));
    let mut options = flamegraph::Options::default();
    options.title = format!("basalt: {name}");
    flamegraph::from_files(&mut options, std::slice::from_ref(&folded), BufWriter::new(File::create(&svg)?))?;
    println!("{}\n{}", svg.display(), folded.display());
    Ok(())
}
