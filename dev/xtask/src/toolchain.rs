//! What the tests need on this machine: a C++ compiler for libFuzzer; a JDK, Maven, Go, Python, Node and their packages for the real clients. Installed where that is possible,
//! named exactly where it is not.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, bail};

use crate::run;

/// `(program, the Debian package that brings it)`.
const PROGRAMS: &[(&str, &str)] = &[
    ("c++", "g++"),
    ("java", "default-jre-headless"),
    ("javac", "default-jdk-headless"),
    ("mvn", "maven"),
    ("go", "golang-go"),
    ("curl", "curl"),
    ("python3", "python3-venv"),
    ("node", "nodejs"),
    ("npm", "npm"),
    ("psql", "postgresql"),
    ("debootstrap", "debootstrap"),
    ("strip", "binutils"),
    ("aarch64-linux-gnu-strip", "binutils-aarch64-linux-gnu"),
    ("x86_64-linux-gnu-strip", "binutils-x86-64-linux-gnu"),
    ("qemu-aarch64-static", "qemu-user-static"),
    ("qemu-x86_64-static", "qemu-user-static"),
];

/// Is the program on the path and does it run?
fn present(program: &str) -> bool {
    let argument = match program {
        "go" => "version",
        "java" | "javac" | "mvn" => "-version",
        _ => "--version",
    };
    Command::new(program)
        .arg(argument)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status()
        .is_ok_and(|s| s.success())
}

/// Makes sure of `programs`; tries `apt-get` once when it may.
pub fn programs(programs: &[&str]) -> anyhow::Result<()> {
    let missing = |programs: &[&str]| -> Vec<&'static (&'static str, &'static str)> {
        PROGRAMS.iter().filter(|(p, _)| programs.contains(p) && !present(p)).collect()
    };
    let before = missing(programs);
    if before.is_empty() {
        return Ok(());
    }
    let packages: Vec<&str> = before.iter().map(|(_, package)| *package).collect();
    if may_install() {
        println!("    installing {}", packages.join(", "));
        let mut apt = Command::new("apt-get");
        apt.env("DEBIAN_FRONTEND", "noninteractive").args(["install", "-y", "--no-install-recommends"]).args(&packages);
        let first = apt.stdout(Stdio::null()).status();
        if !first.is_ok_and(|s| s.success()) {
            Command::new("apt-get").arg("update").stdout(Stdio::null()).status().ok();
            apt.status().ok();
        }
    }
    let after = missing(programs);
    if after.is_empty() {
        return Ok(());
    }
    let names: Vec<&str> = after.iter().map(|(program, _)| *program).collect();
    let packages: Vec<&str> = after.iter().map(|(_, package)| *package).collect();
    bail!(
        "missing on this machine: {}; install them (Debian: apt-get install {})",
        names.join(", "),
        packages.join(" ")
    )
}

fn may_install() -> bool {
    let root = Command::new("id").arg("-u").output().is_ok_and(|o| o.stdout.trim_ascii() == b"0");
    root && Command::new("apt-get").arg("--version").stdout(Stdio::null()).status().is_ok_and(|s| s.success())
}

/// The directory with every jar; fetched on first use (about a minute).
pub fn jars() -> anyhow::Result<PathBuf> {
    jars_and(&[])
}

/// The same with class paths that only few tests want: folders of tests/interop/classpath.
pub fn jars_and(more: &[&str]) -> anyhow::Result<PathBuf> {
    let lab = match std::env::var_os("BASALT_INTEROP_CACHE") {
        Some(dir) => PathBuf::from(dir),
        None => cache_dir()?.join("basalt-interop"),
    };
    programs(&["java", "javac", "mvn"])?;
    let mut setup = Command::new("bash");
    setup.arg(scripts().join("setup.sh")).args(more).env("LAB", &lab).stdout(Stdio::null());
    run::must("fetching jars with Maven (network needed on first use)", &mut setup)?;
    Ok(lab)
}

/// A Python with `requirements` in an environment of its own, and the file with happybase's tests; fetched on first use.
pub fn happybase(requirements: &Path, release: &str) -> anyhow::Result<(PathBuf, PathBuf)> {
    programs(&["python3"])?;
    let dir = run::scratch()?.join("python");
    let (python, tests) = (dir.join("bin/python"), dir.join(release).join("tests/test_api.py"));
    // Written last: an environment that was left half made is made again.
    let (made, wanted) = (dir.join("made-of"), std::fs::read_to_string(requirements)?);
    if std::fs::read_to_string(&made).is_ok_and(|text| text == wanted) {
        return Ok((python, tests));
    }
    run::must("python3 -m venv", Command::new("python3").args(["-m", "venv", "--clear"]).arg(&dir))?;
    let pip = |arguments: &[&str]| {
        let mut pip = Command::new(&python);
        pip.args(["-m", "pip", "--quiet", "--disable-pip-version-check"]).args(arguments).current_dir(&dir);
        pip
    };
    let install = "pip install (network needed on first use)";
    run::must(install, pip(&["install", "--requirement"]).arg(requirements))?;
    // Its tests are in its sources only.
    let pinned = release.replacen('-', "==", 1);
    run::must(install, &mut pip(&["download", "--no-deps", "--no-binary", ":all:", &pinned]))?;
    run::must("tar", Command::new("tar").arg("xzf").arg(format!("{release}.tar.gz")).current_dir(&dir))?;
    std::fs::write(made, wanted)?;
    Ok((python, tests))
}

/// The directory with `cargo-zigbuild` and the Zig whose linker it calls.
pub fn zig() -> anyhow::Result<PathBuf> {
    python_programs("zig", "ziglang==0.17.1 cargo-zigbuild==0.24.1")
}

/// The directory with the programs of Python's `packages`, in an environment of their own by that name; fetched on first use.
pub fn python_programs(name: &str, packages: &str) -> anyhow::Result<PathBuf> {
    programs(&["python3"])?;
    let dir = run::scratch()?.join(name);
    let (made, programs) = (dir.join("made-of"), dir.join("bin"));
    if std::fs::read_to_string(&made).is_ok_and(|text| text == packages) {
        return Ok(programs);
    }
    run::must("python3 -m venv", Command::new("python3").args(["-m", "venv", "--clear"]).arg(&dir))?;
    let mut install = Command::new(programs.join("python"));
    install.args(["-m", "pip", "--quiet", "--disable-pip-version-check", "install"]).args(packages.split(' '));
    run::must("pip install (network needed on first use)", &mut install)?;
    std::fs::write(made, packages)?;
    Ok(programs)
}

/// The program `index.mjs` of a folder with a `package.json`, beside what that asks for; fetched on first use.
pub fn node_program(folder: &Path) -> anyhow::Result<PathBuf> {
    programs(&["node", "npm"])?;
    // Beside that of other folders.
    let name = folder.file_name().context("a folder with a name")?;
    let dir = run::scratch()?.join("node").join(name);
    std::fs::create_dir_all(&dir)?;
    for file in ["package.json", "index.mjs"] {
        std::fs::copy(folder.join(file), dir.join(file)).with_context(|| format!("{}: {file}", folder.display()))?;
    }
    let mut install = Command::new("npm");
    install.args(["install", "--silent", "--no-package-lock", "--no-audit", "--no-fund", "--prefer-offline"]);
    run::must("npm install (network needed on first use)", install.current_dir(&dir))?;
    Ok(dir.join("index.mjs"))
}

/// The jar of `group:artifact` where Maven keeps it; fetched on first use.
pub fn jar(name: &str, version: &str) -> anyhow::Result<PathBuf> {
    let (group, artifact) = name.split_once(':').context("a group and an artifact")?;
    let home = std::env::var_os("HOME").context("HOME is not set")?;
    let dir = PathBuf::from(home).join(".m2/repository").join(group.replace('.', "/")).join(artifact).join(version);
    let jar = dir.join(format!("{artifact}-{version}.jar"));
    if !jar.is_file() {
        programs(&["mvn"])?;
        let mut fetch = Command::new("mvn");
        fetch.args(["-q", "-B", "dependency:get", &format!("-Dartifact={name}:{version}")]);
        run::must("mvn dependency:get (network needed on first use)", &mut fetch)?;
    }
    Ok(jar)
}

fn cache_dir() -> anyhow::Result<PathBuf> {
    if let Some(dir) = std::env::var_os("XDG_CACHE_HOME") {
        return Ok(dir.into());
    }
    let home = std::env::var_os("HOME").context("neither XDG_CACHE_HOME nor HOME is set")?;
    Ok(Path::new(&home).join(".cache"))
}

/// The scripts that run the real HBase and its tools.
pub fn scripts() -> PathBuf {
    run::root().join("tests/interop/real-hbase")
}
