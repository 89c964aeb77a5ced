//! `basalt classpath`. Follows: `hbase classpath`, `hbase mapredcp`.

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Context, bail};
use base::Config;

const USAGE: &str = "\
What a Java client needs on its class path to reach the cluster: the directory with hbase-site.xml, and HBase's client jars where they are.

Usage: basalt classpath [JARS]

    JARS     a directory with the jars of HBase's client; HBASE_HOME/lib unless given
    --help   this text

Basalt has no jars of its own: Apache HBase's client 2.6 reaches it, org.apache.hbase:hbase-shaded-client:2.6.4.

Examples:
  java -cp \"$(basalt --config conf classpath lib):my.jar\" MyClient
";

const MAPREDUCE_USAGE: &str = "\
What a job of MapReduce that reads or writes tables needs on its class path: HBase's jars and those that they need.

Usage: basalt mapredcp [-Dtmpjars=JAR,...] [JARS]

    -Dtmpjars=JAR,...   these, too
    JARS                a directory with HBase's jars; HBASE_HOME/lib unless given
    --help              this text

Basalt has no jars of its own.

Examples:
  HADOOP_CLASSPATH=$(basalt mapredcp /opt/hbase/lib) hadoop jar my.jar MyJob
";

/// The modules whose jars jobs need. Follows: `TableMapReduceUtil#addHBaseDependencyJars`, which looks where their classes are.
const MAPREDUCE_JARS: [&str; 27] = [
    "hbase-common",
    "hbase-protocol",
    "hbase-protocol-shaded",
    "hbase-client",
    "hbase-server",
    "hbase-hadoop-compat",
    "hbase-hadoop2-compat",
    "hbase-mapreduce",
    "hbase-metrics",
    "hbase-metrics-api",
    "hbase-replication",
    "hbase-http",
    "hbase-procedure",
    "hbase-zookeeper",
    "hbase-shaded-miscellaneous",
    "hbase-shaded-gson",
    "hbase-shaded-protobuf",
    "hbase-shaded-netty",
    "hbase-unsafe",
    "zookeeper",
    "protobuf-java",
    "metrics-core",
    "commons-lang3",
    "opentelemetry-api",
    "opentelemetry-semconv",
    "opentelemetry-context",
    "hbase-logging",
];

/// Runs `basalt mapredcp`; the code that the process ends with.
///
/// # Errors
/// The directory is not there, or cannot be read.
pub fn for_mapreduce(config: &Config, given: &[String]) -> anyhow::Result<ExitCode> {
    if crate::arguments::wants_help(given) {
        print!("{MAPREDUCE_USAGE}");
        return Ok(ExitCode::SUCCESS);
    }
    let (config, rest) = crate::jobs::defines(config, given)?;
    let mut jars: Vec<String> = Vec::new();
    for jar in config.text("tmpjars").unwrap_or_default().split(',').filter(|jar| !jar.is_empty()) {
        jars.push(jar.trim().trim_start_matches("file:").to_owned());
    }
    let home = std::env::var_os("HBASE_HOME").map(|home| PathBuf::from(home).join("lib"));
    if let Some(dir) = rest.first().map(PathBuf::from).or(home) {
        let entries = std::fs::read_dir(&dir).with_context(|| format!("mapredcp: cannot read {}", dir.display()))?;
        for entry in entries {
            let path = entry?.path();
            let name = path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
            if module_of(&name).is_some_and(|module| MAPREDUCE_JARS.contains(&module)) {
                jars.push(path.display().to_string());
            }
        }
    }
    jars.sort();
    jars.dedup();
    if jars.is_empty() {
        bail!("mapredcp: there are no jars: name their directory, or set HBASE_HOME");
    }
    println!("{}", jars.join(":"));
    Ok(ExitCode::SUCCESS)
}

/// `hbase-client` of `hbase-client-2.6.4.jar`.
fn module_of(jar: &str) -> Option<&str> {
    let name = jar.strip_suffix(".jar").filter(|name| !name.ends_with("-tests") && !name.ends_with("-sources"))?;
    let version = name.match_indices('-').find(|(at, _)| name[at + 1..].starts_with(|c: char| c.is_ascii_digit()));
    Some(version.map_or(name, |(at, _)| &name[..at]))
}

/// Runs the tool; the code that the process ends with.
///
/// # Errors
/// The directory is not there.
pub fn run(_: &Config, given: &[String]) -> anyhow::Result<ExitCode> {
    if crate::arguments::wants_help(given) {
        print!("{USAGE}");
        return Ok(ExitCode::SUCCESS);
    }
    let mut parts = Vec::new();
    if let Some(conf) = std::env::var_os("HBASE_CONF_DIR") {
        parts.push(PathBuf::from(conf).display().to_string());
    }
    let jars = given.first().map(PathBuf::from);
    if let Some(jars) = jars.as_ref().filter(|jars| !jars.is_dir()) {
        bail!("classpath: there is no directory {}", jars.display());
    }
    let home = std::env::var_os("HBASE_HOME").map(|home| PathBuf::from(home).join("lib"));
    if let Some(jars) = jars.or(home).filter(|jars| jars.is_dir()) {
        parts.push(format!("{}/*", jars.display()));
    }
    println!("{}", parts.join(":"));
    Ok(ExitCode::SUCCESS)
}

#[cfg(test)]
mod tests {
    use super::module_of;

    #[test]
    fn a_jar_is_called_after_its_module() {
        assert_eq!(module_of("hbase-client-2.6.4.jar"), Some("hbase-client"));
        assert_eq!(module_of("hbase-hadoop2-compat-2.6.4.jar"), Some("hbase-hadoop2-compat"));
        assert_eq!(module_of("protobuf-java.jar"), Some("protobuf-java"));
        assert_eq!((module_of("hbase-client-2.6.4-tests.jar"), module_of("notes.txt")), (None, None));
    }
}
