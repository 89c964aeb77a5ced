//! HBase's client, tracing, against a server that traces: a program of `tests/interop/java/traced` with OpenTelemetry's SDK for Java, which is
//! the collector, too.

use std::time::Duration;

use anyhow::bail;

use crate::report::Outcome;
use crate::suites::{Context, judge};
use crate::{jvm, run, toolchain};

const LIMIT: Duration = Duration::from_secs(300);
/// Of the version whose API comes with HBase 2.6.4.
const SDK: [&str; 2] = ["io.opentelemetry:opentelemetry-sdk-trace", "io.opentelemetry:opentelemetry-sdk-common"];
const SDK_VERSION: &str = "1.49.0";
/// Where the collector listens.
const PORT: &str = "43180";
/// What the server is told.
pub const SETTINGS: &[(&str, &str)] = &[("basalt.trace.otlp.endpoint", "http://127.0.0.1:43180")];

/// Compiles and runs it.
pub fn suite(context: &Context) -> anyhow::Result<Outcome> {
    let mut class_path = format!("{}/*", context.lab.join("hbase/jars").display());
    for name in SDK {
        class_path = format!("{class_path}:{}", toolchain::jar(name, SDK_VERSION)?.display());
    }
    let classes = run::scratch()?.join("classes/traced");
    std::fs::create_dir_all(&classes)?;
    let mut files = Vec::new();
    jvm::java_files(&run::root().join("tests/interop/java/traced"), &mut files)?;
    let mut javac = jvm::javac();
    javac.args(["-nowarn", "-encoding", "UTF-8", "-d"]).arg(&classes).args(["-cp", &class_path]).args(&files);
    let ended = run::logged(&mut javac, &context.log.with_extension("javac.log"), LIMIT)?;
    if !ended.well {
        bail!("javac failed:\n{}", ended.output);
    }
    let mut java = jvm::java(&format!("{}:{class_path}", classes.display()), "basalt.traced.Traced");
    java.args([&context.zookeeper, "it_traced", PORT]);
    Ok(judge(&run::logged(&mut java, &context.log, LIMIT)?))
}
