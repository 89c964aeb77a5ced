//! Apache HBase 2.6.4 from Maven: its jars, brought here once and kept.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, bail};

/// The pom that names them.
const POM: &str = include_str!("../../../tests/interop/classpath/hbase/pom.xml");

/// The pom that names those of its gateways.
const GATEWAYS_POM: &str = include_str!("../../../tests/interop/classpath/hbase-gateways/pom.xml");

/// The jars without which a directory is not complete.
const SERVER: &str = "hbase-server-2.6.4";
const GATEWAY: &str = "hbase-rest-2.6.1";

/// Jars that the server's class path must not hold: second back ends of slf4j, the shell, tools for tests.
const UNWANTED: &[&str] = &[
    "slf4j-reload4j-",
    "reload4j-",
    "slf4j-log4j12-",
    "jruby-complete-",
    "hbase-shell-",
    "junit-",
    "mockito-",
    "hamcrest-",
];

/// The directory with the server's jars: `given`, else the cache that the interop tests share, filled on first use.
///
/// # Errors
/// They are not there and cannot be brought: says with which command to bring them by hand.
pub fn hbase(given: Option<&Path>, say: &dyn Fn(&str)) -> anyhow::Result<PathBuf> {
    if let Some(dir) = given {
        return if complete(dir) {
            Ok(dir.to_owned())
        } else {
            bail!("{} holds no hbase-server-2.6.4 jar", dir.display())
        };
    }
    let cache = cache()?;
    let of_tests = cache.join("basalt-interop/hbase/jars");
    if complete(&of_tests) {
        return Ok(of_tests);
    }
    let own = cache.join("basalt-bench/hbase-2.6.4");
    if !complete(&own) {
        say("bringing the jars of Apache HBase 2.6.4 with Maven (about a minute, once)");
        fetch(&own, POM, SERVER)?;
    }
    Ok(own)
}

/// The directory with the jars of the Thrift and REST servers, which want those of [`hbase`] beside them.
///
/// # Errors
/// As for [`hbase`].
pub fn hbase_gateways(say: &dyn Fn(&str)) -> anyhow::Result<PathBuf> {
    let own = cache()?.join("basalt-bench/hbase-gateways-2.6.1");
    if !holds(&own, GATEWAY) {
        say("bringing the jars of Apache HBase's gateways with Maven (once)");
        fetch(&own, GATEWAYS_POM, GATEWAY)?;
    }
    Ok(own)
}

fn cache() -> anyhow::Result<PathBuf> {
    match std::env::var_os("XDG_CACHE_HOME") {
        Some(dir) => Ok(PathBuf::from(dir)),
        None => {
            let home = std::env::var_os("HOME").context("neither XDG_CACHE_HOME nor HOME is set")?;
            Ok(PathBuf::from(home).join(".cache"))
        }
    }
}

fn complete(dir: &Path) -> bool {
    holds(dir, SERVER)
}

/// Whether the jar is there whose name begins so.
fn holds(dir: &Path, jar: &str) -> bool {
    let Ok(entries) = std::fs::read_dir(dir) else { return false };
    entries.flatten().any(|e| {
        let name = e.file_name().to_string_lossy().into_owned();
        name.starts_with(jar) && name.ends_with(".jar") && !name.ends_with("-tests.jar")
    })
}

fn fetch(dir: &Path, pom_text: &str, wanted: &str) -> anyhow::Result<()> {
    std::fs::create_dir_all(dir).with_context(|| format!("cannot make {}", dir.display()))?;
    let pom = dir.join("pom.xml");
    std::fs::write(&pom, pom_text).with_context(|| format!("cannot write {}", pom.display()))?;
    let goal = "org.apache.maven.plugins:maven-dependency-plugin:3.6.1:copy-dependencies";
    let mut maven = Command::new("mvn");
    maven.args(["-q", "-B", "-f"]).arg(&pom).arg(goal);
    maven.arg(format!("-DoutputDirectory={}", dir.display())).arg("-Dmdep.useBaseVersion=true");
    // some published poms name a repository relative to the working directory
    let status = maven.current_dir(dir).stdin(Stdio::null()).stdout(Stdio::null()).status();
    match status {
        Ok(status) if status.success() => {}
        Ok(status) => bail!("mvn ended with {status}; try by hand: mvn -f {} {goal}", pom.display()),
        Err(error) => bail!("cannot run mvn ({error}): install Maven, or say --hbase-jars DIR"),
    }
    for entry in std::fs::read_dir(dir)?.flatten() {
        let name = entry.file_name().to_string_lossy().into_owned();
        if name.ends_with("-tests.jar") || UNWANTED.iter().any(|unwanted| name.starts_with(unwanted)) {
            std::fs::remove_file(entry.path())?;
        }
    }
    if !holds(dir, wanted) {
        bail!("Maven brought no {wanted} jar into {}", dir.display());
    }
    Ok(())
}
