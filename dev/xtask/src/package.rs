//! `cargo xtask package`: what people install. A tarball, a Debian package, their checksums, and a list of what is in the binary.
//!
//! Always true: the same tree and binary give the same bytes; completions and man pages come from the command line's own definition, which the
//! binary writes itself.

mod deb;
mod sbom;

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, bail};

use crate::report::Report;
use crate::{interop, run, server};

/// Makes all of it below `target/package`, then unpacks the package and runs what is in it.
pub fn run(report: &mut Report) -> anyhow::Result<()> {
    if !interop::build(report) {
        return Ok(());
    }
    let mut made = None;
    report.step("tarball, Debian package, checksums", || {
        made = Some(make(&server::binary())?);
        Ok(())
    });
    if let Some(made) = made {
        report.step("the package, unpacked and run", || try_package(&made.deb));
    }
    Ok(())
}

/// Where the packages are.
struct Made {
    deb: PathBuf,
}

fn output_dir() -> anyhow::Result<PathBuf> {
    let target = std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| run::root().join("target"), PathBuf::from);
    Ok(target.join("package"))
}

fn make(binary: &Path) -> anyhow::Result<Made> {
    let out = output_dir()?;
    if out.exists() {
        std::fs::remove_dir_all(&out)?;
    }
    let root = out.join("root");
    let version = version(binary)?;
    stage(binary, &root)?;
    let tarball = out.join(format!("basalt-{version}-linux-{}.tar.gz", std::env::consts::ARCH));
    tar(&root, &tarball)?;
    let deb = out.join(format!("basalt_{version}_{}.deb", deb::architecture()?));
    deb::write(&root, &version, &out, &deb)?;
    let list = out.join("basalt.cdx.json");
    std::fs::write(&list, sbom::cyclone_dx(&version)?)?;
    checksums(&out, &[&tarball, &deb, &list])?;
    println!("    {}", out.display());
    Ok(Made { deb })
}

fn version(binary: &Path) -> anyhow::Result<String> {
    let said = run::stdout("basalt --version", Command::new(binary).arg("--version"))?;
    Ok(said.split_whitespace().nth(1).context("basalt --version names no version")?.to_owned())
}

/// The files as they lie on an installed machine.
fn stage(binary: &Path, root: &Path) -> anyhow::Result<()> {
    let dir = |path: &str| -> anyhow::Result<PathBuf> {
        let dir = root.join(path);
        std::fs::create_dir_all(&dir).with_context(|| format!("cannot make {}", dir.display()))?;
        Ok(dir)
    };
    let installed = dir("usr/bin")?.join("basalt");
    std::fs::copy(binary, &installed)?;
    // Debug information is for those who build.
    run::must("strip", Command::new("strip").arg("--strip-debug").arg(&installed))?;
    for (shell, path, name) in [
        ("bash", "usr/share/bash-completion/completions", "basalt"),
        ("zsh", "usr/share/zsh/vendor-completions", "_basalt"),
        ("fish", "usr/share/fish/vendor_completions.d", "basalt.fish"),
    ] {
        let text = run::stdout("completions", Command::new(binary).args(["generate", "completions", shell]))?;
        std::fs::write(dir(path)?.join(name), text)?;
    }
    run::must("man pages", Command::new(binary).args(["generate", "man"]).arg(dir("usr/share/man/man1")?))?;
    let etc = dir("etc/basalt")?;
    let init = ["init", "--data", "/var/lib/basalt"];
    run::stdout("basalt init", Command::new(binary).args(init).arg(&etc))?;
    let package = run::root().join("packaging");
    std::fs::copy(package.join("basalt.service"), dir("lib/systemd/system")?.join("basalt.service"))?;
    let doc = dir("usr/share/doc/basalt")?;
    for file in ["prometheus/basalt-alerts.yml", "grafana/basalt.json"] {
        let from = package.join(file);
        std::fs::copy(&from, dir("usr/share/basalt")?.join(from.file_name().context("a file")?))?;
    }
    std::fs::copy(run::root().join("LICENSE"), doc.join("copyright"))?;
    std::fs::copy(run::root().join("CHANGELOG.md"), doc.join("CHANGELOG.md"))?;
    Ok(())
}

/// A tarball whose bytes depend on the files alone.
fn tar(root: &Path, archive: &Path) -> anyhow::Result<()> {
    let mut tar = Command::new("tar");
    tar.args([
        "--sort=name",
        "--mtime=@0",
        "--owner=0",
        "--group=0",
        "--numeric-owner",
        "--use-compress-program=gzip -9n",
    ]);
    run::must("tar", tar.arg("-cf").arg(archive).arg("-C").arg(root).arg("."))
}

/// `SHA256SUMS`, as `sha256sum -c` reads it.
fn checksums(out: &Path, files: &[&Path]) -> anyhow::Result<()> {
    let names = files.iter().filter_map(|file| file.file_name());
    let sums = run::stdout("sha256sum", Command::new("sha256sum").args(names).current_dir(out))?;
    std::fs::write(out.join("SHA256SUMS"), sums)?;
    Ok(())
}

/// Unpacks the package as `dpkg` would and runs the binary that is in it.
fn try_package(package: &Path) -> anyhow::Result<()> {
    let place = output_dir()?.join("unpacked");
    deb::unpack(package, &place)?;
    run::must("checksums", Command::new("sha256sum").args(["--quiet", "-c", "SHA256SUMS"]).current_dir(output_dir()?))?;
    let binary = place.join("usr/bin/basalt");
    for path in ["etc/basalt/hbase-site.xml", "lib/systemd/system/basalt.service", "usr/share/man/man1/basalt.1"] {
        if !place.join(path).is_file() {
            bail!("{path} is not in the package");
        }
    }
    let config = Command::new(&binary)
        .arg("--config")
        .arg(place.join("etc/basalt"))
        .args(["config", "explain", "hbase.rootdir"])
        .output()?;
    let said = String::from_utf8_lossy(&config.stdout);
    if !said.contains("now      /var/lib/basalt") {
        bail!("the packaged configuration is not read: {said}");
    }
    serves(&binary)
}

/// Starts an instance of the binary, reads the line that says where it serves, and ends it.
fn serves(binary: &Path) -> anyhow::Result<()> {
    use std::io::BufRead;
    use std::process::Stdio;
    let mut dev = Command::new(binary);
    dev.args(["dev", "--until-stdin-closes"]).env_remove("HBASE_CONF_DIR");
    let mut child =
        dev.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().context("the packaged binary does not run")?;
    let mut line = String::new();
    std::io::BufReader::new(child.stdout.take().context("piped")?).read_line(&mut line)?;
    drop(child.stdin.take());
    let status = child.wait()?;
    if !status.success() || !line.contains("\"quorum\"") {
        bail!("the packaged binary said {line:?} and ended with {status}");
    }
    Ok(())
}
