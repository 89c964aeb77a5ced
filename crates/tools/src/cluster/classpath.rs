//! `basalt classpath`. Follows: `hbase classpath`, `hbase mapredcp`.

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::bail;
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
