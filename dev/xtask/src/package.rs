//! `cargo xtask package`: what people install. A tarball, a Debian package, an OCI image, their checksums, and a list of what is in the binary; each
//! of them tried in a bare Debian, by an emulator where the machine is another.
//!
//! Always true: the same tree and binary give the same bytes; completions and man pages come from the command line's own definition, which the
//! binary writes itself. What could not be tried is called untested in the output.

mod clean_root;
mod deb;
mod image;
mod machine;
mod runner;
mod sbom;

pub use machine::Machine;

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, bail};

use crate::report::{Outcome, Report};
use crate::{run, toolchain};
use runner::Runner;

/// Makes all of it below `target/package/MACHINE`, then installs and runs what it made: of a release build, or of the binary that
/// `BASALT_BINARY` names.
pub fn run(report: &mut Report, machine: Option<Machine>) -> anyhow::Result<()> {
    let here = Machine::here()?;
    let machine = machine.unwrap_or(here);
    let mut built = std::env::var_os("BASALT_BINARY").map(PathBuf::from);
    if built.is_none() {
        report.step("release build for every Linux of the last years", || {
            built = Some(machine::build(machine)?);
            Ok(())
        });
    }
    let Some(binary) = built else { return Ok(()) };
    report.step("libraries that the binary needs", || machine::check_libraries(&binary));
    let out = output_dir().join(machine.name());
    if out.exists() {
        std::fs::remove_dir_all(&out)?;
    }
    std::fs::create_dir_all(&out)?;
    let runner = match Runner::of(machine, &out) {
        Ok(runner) => Some(runner),
        Err(why) => {
            let what = format!("UNTESTED: no binary of {} runs here ({why:#})", machine.name());
            report.part(&what, || Ok(Outcome::default()));
            None
        }
    };
    // The command line is the same in both: where its own does not run, a binary of this machine writes what it says of itself.
    let own = run::target_dir().join(here.triple()).join("release/basalt");
    let native = Runner::Native;
    let writer = match &runner {
        Some(runner) => Writer { runner, binary: &binary },
        None if own.is_file() => Writer { runner: &native, binary: &own },
        None => bail!(
            "nothing here writes completions and man pages: an emulator is to run {}, or {} is to be there (cargo xtask package makes it)",
            binary.display(),
            own.display()
        ),
    };
    let version = version(&writer)?;
    let mut made = None;
    report.step("tarball, Debian package, image", || {
        let mut files = make(machine, &binary, &writer, &version, &out)?;
        files.files.push(image::write(&files.root, &version, machine, &out.join("image"))?);
        made = Some(files);
        Ok(())
    });
    let Some(made) = made else { return Ok(()) };
    report.step("checksums", || checksums(&out, &made.files));
    if let Some(runner) = &runner {
        try_all(report, machine, runner, &version, &made, &out);
    }
    println!("    {}", out.display());
    Ok(())
}

/// Installs and runs what was made.
fn try_all(report: &mut Report, machine: Machine, runner: &Runner, version: &str, made: &Made, out: &Path) {
    report.step("the package's files", || try_files(runner, out, &made.deb));
    report.step("the image serves a table", || {
        let place = out.join("image-root");
        clean_root::try_image(&out.join("image"), &place)?;
        Ok(std::fs::remove_dir_all(place)?)
    });
    report.step("installed, started, upgraded, downgraded, removed and purged in a bare Debian", || {
        let place = out.join("debian");
        clean_root::debian(machine, &place)?;
        let newer = out.join("newer.deb");
        deb::write(&made.root, &format!("{version}+1"), machine, out, &newer)?;
        clean_root::try_package(&place, &made.deb, &newer)?;
        std::fs::remove_file(newer)?;
        Ok(std::fs::remove_dir_all(place)?)
    });
}

/// A binary that runs here and writes what it knows of its command line: its version, completions, pages and settings.
struct Writer<'a> {
    runner: &'a Runner,
    binary: &'a Path,
}

impl Writer<'_> {
    fn command(&self) -> Command {
        self.runner.command(self.binary)
    }
}

/// What was made of a binary.
struct Made {
    root: PathBuf,
    deb: PathBuf,
    /// What is handed out.
    files: Vec<PathBuf>,
}

fn output_dir() -> PathBuf {
    run::target_dir().join("package")
}

fn make(machine: Machine, binary: &Path, writer: &Writer<'_>, version: &str, out: &Path) -> anyhow::Result<Made> {
    let root = out.join("root");
    stage(binary, writer, machine, &root)?;
    let tarball = out.join(format!("basalt-{version}-linux-{}.tar.gz", machine.name()));
    tar(&root, &tarball)?;
    let deb = out.join(format!("basalt_{version}_{}.deb", machine.debian()));
    deb::write(&root, version, machine, out, &deb)?;
    let list = out.join("basalt.cdx.json");
    std::fs::write(&list, sbom::cyclone_dx(version, machine)?)?;
    Ok(Made { root, deb: deb.clone(), files: vec![tarball, deb, list] })
}

fn version(writer: &Writer<'_>) -> anyhow::Result<String> {
    let said = run::stdout("basalt --version", writer.command().arg("--version"))?;
    Ok(said.split_whitespace().nth(1).context("basalt --version names no version")?.to_owned())
}

/// The files as they lie on an installed machine.
fn stage(binary: &Path, writer: &Writer<'_>, machine: Machine, root: &Path) -> anyhow::Result<()> {
    let dir = |path: &str| -> anyhow::Result<PathBuf> {
        let dir = root.join(path);
        std::fs::create_dir_all(&dir).with_context(|| format!("cannot make {}", dir.display()))?;
        Ok(dir)
    };
    let installed = dir("usr/bin")?.join("basalt");
    std::fs::copy(binary, &installed)?;
    // Debug information is for those who build.
    let strip =
        if machine == Machine::here()? { "strip".to_owned() } else { format!("{}-linux-gnu-strip", machine.name()) };
    toolchain::programs(&[&strip])?;
    run::must("strip", Command::new(strip).arg("--strip-debug").arg(&installed))?;
    for (shell, path, name) in [
        ("bash", "usr/share/bash-completion/completions", "basalt"),
        ("zsh", "usr/share/zsh/vendor-completions", "_basalt"),
        ("fish", "usr/share/fish/vendor_completions.d", "basalt.fish"),
    ] {
        let text = run::stdout("completions", writer.command().args(["generate", "completions", shell]))?;
        std::fs::write(dir(path)?.join(name), text)?;
    }
    run::must("man pages", writer.command().args(["generate", "man"]).arg(dir("usr/share/man/man1")?))?;
    let etc = dir("etc/basalt")?;
    let init = ["init", "--data", "/var/lib/basalt"];
    run::stdout("basalt init", writer.command().args(init).arg(&etc))?;
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
    let mut tar = reproducible_tar();
    tar.args(["--owner=0", "--group=0", "--use-compress-program=gzip -9n"]);
    run::must("tar", tar.arg("-cf").arg(archive).arg("-C").arg(root).arg("."))
}

/// `tar` without times and in order of names; the caller says whose the entries are.
fn reproducible_tar() -> Command {
    let mut tar = Command::new("tar");
    tar.args(["--sort=name", "--mtime=@0", "--numeric-owner"]);
    tar
}

/// `SHA256SUMS`, as `sha256sum -c` reads it.
fn checksums(out: &Path, files: &[PathBuf]) -> anyhow::Result<()> {
    let names = files.iter().filter_map(|file| file.file_name());
    let sums = run::stdout("sha256sum", Command::new("sha256sum").args(names).current_dir(out))?;
    std::fs::write(out.join("SHA256SUMS"), sums)?;
    Ok(())
}

/// Unpacks the package without installing it, and looks at what is in it.
fn try_files(runner: &Runner, out: &Path, package: &Path) -> anyhow::Result<()> {
    let place = out.join("unpacked");
    deb::unpack(package, &place)?;
    run::must("checksums", Command::new("sha256sum").args(["--quiet", "-c", "SHA256SUMS"]).current_dir(out))?;
    let binary = place.join("usr/bin/basalt");
    for path in ["etc/basalt/hbase-site.xml", "lib/systemd/system/basalt.service", "usr/share/man/man1/basalt.1"] {
        if !place.join(path).is_file() {
            bail!("{path} is not in the package");
        }
    }
    let config = runner
        .command(&binary)
        .arg("--config")
        .arg(place.join("etc/basalt"))
        .args(["config", "explain", "hbase.rootdir"])
        .output()?;
    let said = String::from_utf8_lossy(&config.stdout);
    if !said.contains("now      /var/lib/basalt") {
        bail!("the packaged configuration is not read: {said}");
    }
    serves(&mut runner.command(&binary))?;
    Ok(std::fs::remove_dir_all(place)?)
}

/// Starts an instance of a binary, reads the line that says where it serves, and ends it.
fn serves(dev: &mut Command) -> anyhow::Result<()> {
    use std::io::BufRead;
    use std::process::Stdio;
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
