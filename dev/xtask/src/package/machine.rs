//! Machines that packages are made for, each with the names that Rust, Debian and OCI have for it, and the build whose C library is old enough.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, bail};

use crate::{run, toolchain};

/// The oldest C library that the packaged binary runs with: that of Debian 10, RHEL 8 and Ubuntu 18.10.
pub const GLIBC: (u32, u32) = (2, 28);

/// A processor architecture.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
#[value(rename_all = "snake_case")]
pub enum Machine {
    /// amd64
    #[value(name = "x86_64")]
    X8664,
    /// arm64
    Aarch64,
}

impl Machine {
    /// The machine that this program runs on.
    pub fn here() -> anyhow::Result<Machine> {
        match std::env::consts::ARCH {
            "x86_64" => Ok(Machine::X8664),
            "aarch64" => Ok(Machine::Aarch64),
            other => bail!("packages are made for x86_64 and aarch64, not for {other}"),
        }
    }

    /// Rust's name for it.
    pub fn name(self) -> &'static str {
        match self {
            Machine::X8664 => "x86_64",
            Machine::Aarch64 => "aarch64",
        }
    }

    /// Debian's name for it, which is also Go's and therefore OCI's.
    pub fn debian(self) -> &'static str {
        match self {
            Machine::X8664 => "amd64",
            Machine::Aarch64 => "arm64",
        }
    }

    /// Where Debian has libraries, below `/usr` and by a link beside it.
    pub fn library_dirs(self) -> &'static [&'static str] {
        match self {
            Machine::X8664 => &["lib", "lib64"],
            Machine::Aarch64 => &["lib"],
        }
    }

    /// Its number in the header of an ELF file.
    pub fn elf(self) -> u8 {
        match self {
            Machine::X8664 => 0x3E,
            Machine::Aarch64 => 0xB7,
        }
    }

    /// The target triple.
    pub fn triple(self) -> String {
        format!("{}-unknown-linux-gnu", self.name())
    }
}

/// Builds the server with all its doors for `machine`, linked by Zig's linker against a C library of [`GLIBC`].
pub fn build(machine: Machine) -> anyhow::Result<PathBuf> {
    let tools = toolchain::zig()?;
    let triple = machine.triple();
    if machine != Machine::here()? {
        run::must("rustup target add", Command::new("rustup").args(["--quiet", "target", "add", &triple]))?;
    }
    let mut path = vec![tools];
    path.extend(std::env::split_paths(&std::env::var_os("PATH").unwrap_or_default()));
    let mut build = run::cargo();
    build.args(["zigbuild", "--quiet", "--release", "--package", "basalt", "--features", "hdfs,zookeeper"]);
    build.arg("--target").arg(format!("{triple}.{}.{}", GLIBC.0, GLIBC.1));
    run::must("cargo zigbuild", build.env("PATH", std::env::join_paths(path)?))?;
    Ok(run::target_dir().join(triple).join("release/basalt"))
}

/// Refuses a binary that wants a newer C library, or any other library that a bare system lacks.
pub fn check_libraries(binary: &Path) -> anyhow::Result<()> {
    let dynamic = run::stdout("readelf", Command::new("readelf").args(["--wide", "--dynamic"]).arg(binary))?;
    let needed = needed(&dynamic);
    if needed.is_empty() {
        bail!("{}: readelf names no library that it needs", binary.display());
    }
    let known = ["libc.so.", "libm.so.", "libpthread.so.", "libdl.so.", "librt.so.", "libutil.so.", "ld-linux-"];
    if let Some(other) = needed.iter().find(|name| !known.iter().any(|known| name.starts_with(known))) {
        bail!("{} needs {other}, which is not part of the C library", binary.display());
    }
    let versions = run::stdout("readelf", Command::new("readelf").args(["--wide", "--version-info"]).arg(binary))?;
    let newest = newest_glibc(&versions).context("the binary names no version of the C library")?;
    if newest > GLIBC {
        bail!(
            "{} needs glibc {}.{}; at most {}.{} is promised",
            binary.display(),
            newest.0,
            newest.1,
            GLIBC.0,
            GLIBC.1
        );
    }
    println!("    needs {} of glibc {}.{}", needed.join(", "), newest.0, newest.1);
    Ok(())
}

/// `(NEEDED) Shared library: [libc.so.6]`
fn needed(dynamic: &str) -> Vec<&str> {
    let lines = dynamic.lines().filter(|line| line.contains("(NEEDED)"));
    lines.filter_map(|line| Some(line.rsplit_once('[')?.1.trim_end().trim_end_matches(']'))).collect()
}

/// The highest of all `GLIBC_2.17` in the text.
fn newest_glibc(versions: &str) -> Option<(u32, u32)> {
    let found = versions.split("GLIBC_").skip(1).filter_map(|text| {
        let end = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
        let (major, rest) = text[..end].split_once('.')?;
        let minor = rest.split('.').next()?;
        Some((major.parse().ok()?, minor.parse().ok()?))
    });
    found.max()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn libraries_and_versions_are_read_from_what_readelf_prints() {
        let dynamic = " 0x0000000000000001 (NEEDED)             Shared library: [libm.so.6]\n 0x000000000000000e (SONAME) Library soname: [x.so]\n";
        assert_eq!(needed(dynamic), ["libm.so.6"]);
        let versions =
            "  0x0010:   Name: GLIBC_2.2.5  Flags: none  Version: 9\n  0x0020:   Name: GLIBC_2.28  Flags: none\n";
        assert_eq!(newest_glibc(versions), Some((2, 28)));
        assert_eq!(newest_glibc("Name: GCC_3.0"), None);
    }
}
