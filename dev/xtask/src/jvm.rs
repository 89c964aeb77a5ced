//! Java programs of the tests: compiled with the JDK's own compiler, started with what HBase needs on JDK 17.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::bail;

use crate::run;

/// A generation of client: its name, the directory of its jars below the cache, the source trees compiled against them.
pub struct Client {
    name: &'static str,
    jars: &'static str,
    sources: &'static [&'static str],
}

/// hbase-client 2.6.4.
pub const HBASE_2: Client = Client { name: "hbase-2", jars: "hbase/jars", sources: &["src", "src-2"] };
/// hbase-client 3.0.0-beta-1: only what both generations have.
pub const HBASE_3: Client = Client { name: "hbase-3", jars: "hbase-3", sources: &["src"] };
/// asynchbase 1.8.2.
pub const ASYNCHBASE: Client = Client { name: "asynchbase", jars: "asynchbase", sources: &["asynchbase"] };

/// How a JVM compiles what it runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Jit {
    /// Once and soon: programs that live for a minute give two cores back a third of what they take of them.
    Quick,
    /// As it does by default: for what is measured, and runs for long enough.
    Full,
}

impl Jit {
    /// For its command line.
    pub fn options(self) -> &'static [&'static str] {
        match self {
            Jit::Quick => &["-XX:TieredStopAtLevel=1"],
            Jit::Full => &[],
        }
    }
}

/// What must be opened for HBase 2.x before it runs on JDK 17.
const OPENS: &[&str] = &[
    "java.base/java.lang",
    "java.base/java.lang.reflect",
    "java.base/java.io",
    "java.base/java.net",
    "java.base/java.nio",
    "java.base/java.util",
    "java.base/java.util.concurrent",
    "java.base/sun.nio.ch",
    "java.base/jdk.internal.ref",
    "java.base/jdk.internal.misc",
];

/// `log4j2.properties` of a server of HBase's whose output is its log.
pub const LOG_TO_CONSOLE: &str = "status = error\nappender.console.type = Console\nappender.console.name = console\n\
     appender.console.target = SYSTEM_ERR\nappender.console.layout.type = PatternLayout\n\
     appender.console.layout.pattern = %d{ISO8601} %-5p [%t] %c{2}: %m%n\nrootLogger.level = INFO\n\
     rootLogger.appenderRef.console.ref = console\n";

impl Client {
    /// Compiles the client's programs; returns the class path to run them with.
    pub fn compile(&self, lab: &Path) -> anyhow::Result<String> {
        let classes = run::scratch()?.join("classes").join(self.name);
        if classes.exists() {
            std::fs::remove_dir_all(&classes)?;
        }
        std::fs::create_dir_all(&classes)?;
        std::fs::write(
            classes.join("log4j2.properties"),
            "status = error\nappender.console.type = Console\nappender.console.name = console\n\
             appender.console.target = SYSTEM_ERR\nappender.console.layout.type = PatternLayout\n\
             appender.console.layout.pattern = %d{ISO8601} %-5p [%t] %c{2}: %m%n\nrootLogger.level = ERROR\n\
             rootLogger.appenderRef.console.ref = console\n",
        )?;
        let jars = format!("{}/*", lab.join(self.jars).display());
        let mut files = Vec::new();
        for tree in self.sources {
            java_files(&run::root().join("tests/interop/java").join(tree), &mut files)?;
        }
        let mut javac = javac();
        javac.args(["-nowarn", "-Xlint:none", "-encoding", "UTF-8", "-d"]).arg(&classes).args(["-cp", &jars]);
        let log = run::scratch()?.join(format!("javac-{}.log", self.name));
        let ended =
            run::logged(javac.args(&files).current_dir(run::scratch()?), &log, std::time::Duration::from_secs(300))?;
        if !ended.well {
            bail!("javac for {} failed:\n{}", self.name, ended.output);
        }
        Ok(format!("{}:{jars}", classes.display()))
    }
}

/// Every Java source below a directory.
pub fn java_files(dir: &Path, into: &mut Vec<PathBuf>) -> anyhow::Result<()> {
    for entry in std::fs::read_dir(dir)? {
        let path = entry?.path();
        if path.is_dir() {
            java_files(&path, into)?;
        } else if path.extension().is_some_and(|e| e == "java") {
            into.push(path);
        }
    }
    Ok(())
}

/// The compiler.
pub fn javac() -> Command {
    let mut javac = Command::new("javac");
    javac.args(Jit::Quick.options().iter().map(|option| format!("-J{option}")));
    javac
}

/// `java` with the class path and a main class; arguments are the caller's.
pub fn java(class_path: &str, main: &str) -> Command {
    java_with_heap("1g", Jit::Quick, class_path, main)
}

/// The same for a program whose work is measured.
pub fn java_measured(class_path: &str, main: &str) -> Command {
    java_with_heap("1g", Jit::Full, class_path, main)
}

/// A shell script that starts one of HBase's programs: `CONFIGURATION HEAP CLASS ARGUMENTS...`. For tests that start some themselves.
pub fn launcher(jars: &str, jit: Jit) -> String {
    let opens = OPENS.iter().map(|open| format!("--add-opens {open}=ALL-UNNAMED"));
    let options: Vec<String> = opens.chain(jit.options().iter().map(|option| (*option).to_owned())).collect();
    format!(
        "conf=$1 heap=$2 class=$3; shift 3\nexec java -Xmx\"$heap\" -Djava.net.preferIPv4Stack=true {} -cp \"$conf:{jars}\" \"$class\" \"$@\"\n",
        options.join(" ")
    )
}

/// The same with another bound of its heap, as the JVM wants it said.
pub fn java_with_heap(heap: &str, jit: Jit, class_path: &str, main: &str) -> Command {
    let mut java = Command::new("java");
    java.arg(format!("-Xmx{heap}")).args(jit.options());
    java.args(["-Djava.net.preferIPv4Stack=true", "-Dorg.slf4j.simpleLogger.defaultLogLevel=error"]);
    for open in OPENS {
        java.arg("--add-opens").arg(format!("{open}=ALL-UNNAMED"));
    }
    java.args(["-cp", class_path, main]);
    java
}
