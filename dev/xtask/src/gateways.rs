//! Clients of other languages through the gateways: happybase's own tests on each transport and protocol of Thrift 1, the commands of
//! docs/guide/rest.md as they stand there, and REST from Python and Node.

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use anyhow::{Context as _, bail};

use crate::report::Outcome;
use crate::suites::{Context, judge};
use crate::{run, server, toolchain};

const LIMIT: Duration = Duration::from_secs(300);

/// What each of its tests are: `(transport, protocol, flags of the gateway)`.
const THRIFT: &[(&str, &str, &[&str])] = &[
    ("buffered", "binary", &[]),
    ("framed", "binary", &["--framed"]),
    ("buffered", "compact", &["--compact"]),
    ("framed", "compact", &["--framed", "--compact"]),
];

/// happybase's release, whose archive of sources holds its tests.
const HAPPYBASE: &str = "happybase-1.3.0";

/// A gateway process; killed when dropped.
struct Gateway {
    child: Child,
    port: u16,
}

impl Gateway {
    /// Starts `basalt COMMAND` in front of the suite's server and waits until it says that it is ready.
    fn start(c: &Context, command: &str, flags: &[&str]) -> anyhow::Result<Gateway> {
        let [port] = testkit::free_ports()?;
        let log = c.log.with_extension(format!("{command}{}.log", flags.concat()));
        let mut child = Command::new(server::binary())
            .env_remove("HBASE_CONF_DIR")
            .arg("-D")
            .arg(format!("hbase.zookeeper.quorum={}", c.zookeeper))
            .args(["-D", "basalt.bind=127.0.0.1", command, "-p", &port.to_string()])
            .args(flags)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(std::fs::File::create(&log)?)
            .spawn()
            .with_context(|| format!("cannot start basalt {command}"))?;
        let mut line = String::new();
        let stdout = child.stdout.take().context("a pipe")?;
        let gateway = Gateway { child, port };
        BufReader::new(stdout).read_line(&mut line)?;
        if !line.contains(" is ready on ") {
            bail!("basalt {command} does not serve; it said {line:?}, and see {}", log.display());
        }
        Ok(gateway)
    }
}

impl Drop for Gateway {
    fn drop(&mut self) {
        self.child.kill().ok();
        self.child.wait().ok();
    }
}

/// All of them; one client's failure does not hide another's answers.
pub fn suite(c: &Context) -> anyhow::Result<Outcome> {
    let mut outcome = Outcome::default();
    for (name, part) in [("happybase", happybase as fn(&Context) -> anyhow::Result<Outcome>), ("rest", rest)] {
        match part(c) {
            Ok(part) => {
                outcome.passed += part.passed;
                outcome.failures.extend(part.failures);
            }
            Err(error) => outcome.failures.push(format!("{name}: {error:#}")),
        }
    }
    Ok(outcome)
}

fn folder() -> PathBuf {
    run::root().join("tests/interop/gateways")
}

/// Adds what one program printed; names its log where something failed.
fn add(outcome: &mut Outcome, log: &Path, ended: &run::Ended) {
    let mut part = judge(ended);
    if let Some(last) = part.failures.last_mut() {
        last.push_str(&format!("; see {}", log.display()));
    }
    outcome.passed += part.passed;
    outcome.failures.extend(part.failures);
}

fn happybase(c: &Context) -> anyhow::Result<Outcome> {
    let (python, tests) = toolchain::happybase(&folder().join("requirements.txt"), HAPPYBASE)?;
    let mut outcome = Outcome::default();
    for (transport, protocol, flags) in THRIFT {
        let gateway = Gateway::start(c, "thrift", flags)?;
        let log = c.log.with_extension(format!("happybase-{transport}-{protocol}.log"));
        let mut command = Command::new(&python);
        command.arg(folder().join("happybase_suite.py")).arg(&tests);
        command.args(["127.0.0.1", &gateway.port.to_string(), transport, protocol]);
        add(&mut outcome, &log, &run::logged(&mut command, &log, LIMIT)?);
    }
    Ok(outcome)
}

fn rest(c: &Context) -> anyhow::Result<Outcome> {
    let gateway = Gateway::start(c, "rest", &[])?;
    let mut outcome = guide(gateway.port)?;
    let log = c.log.with_extension("python.log");
    let mut python = Command::new("python3");
    python.arg(folder().join("rest_example.py")).arg(format!("http://127.0.0.1:{}", gateway.port));
    add(&mut outcome, &log, &run::logged(&mut python, &log, LIMIT)?);
    let log = c.log.with_extension("node.log");
    let mut node = Command::new("node");
    node.arg(toolchain::node_program(&folder().join("node"))?).args(["127.0.0.1", &gateway.port.to_string()]);
    add(&mut outcome, &log, &run::logged(&mut node, &log, LIMIT)?);
    Ok(outcome)
}

/// The commands of the guide, in order, with what each must answer: its HTTP status, and for those that read, a piece of the body.
const GUIDE: &[(&str, &str)] = &[
    ("201", ""),
    ("200", ""),
    ("200", "\"$\":\"dmFsdWU=\""),
    ("200", "value"),
    ("200", ""),
    ("200", "\"key\":\"cjI=\""),
    ("200", ""),
];

fn guide(port: u16) -> anyhow::Result<Outcome> {
    toolchain::programs(&["curl"])?;
    let text = std::fs::read_to_string(run::root().join("docs/guide/rest.md")).context("docs/guide/rest.md")?;
    let commands = curl_commands(&text);
    let mut outcome = Outcome::default();
    if commands.len() != GUIDE.len() {
        bail!("docs/guide/rest.md has {} commands of curl; GUIDE in dev/xtask says of {}", commands.len(), GUIDE.len());
    }
    for (command, (status, piece)) in commands.iter().zip(GUIDE) {
        let here = command.replace("localhost:8080", &format!("127.0.0.1:{port}"));
        let here = here.replacen("curl ", "curl --silent --show-error --max-time 30 --write-out '\\n%{http_code}' ", 1);
        let answer = run::stdout(command, Command::new("sh").args(["-c", &here]))?;
        let (body, code) = answer.rsplit_once('\n').unwrap_or(("", &answer));
        if code == *status && body.contains(piece) {
            outcome.passed += 1;
        } else {
            outcome.failures.push(format!("{command}: answered {code} {body:?}, wanted {status} with {piece:?}"));
        }
    }
    Ok(outcome)
}

/// What the fenced blocks of a page say of `curl`, continued lines joined, remarks behind `#` dropped.
fn curl_commands(page: &str) -> Vec<String> {
    let joined = page.replace("\\\n", " ");
    let lines = joined.lines().filter(|line| line.starts_with("curl "));
    lines.map(|line| line.split("    #").next().unwrap_or(line).trim_end().to_owned()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_are_found_in_a_page() {
        let page = "text with curl in it\n```\ncurl -X PUT \\\n     -d 'a' localhost:8080/t    # makes it\ncurl 'localhost:8080/t#x'\n```\n";
        assert_eq!(curl_commands(page), ["curl -X PUT       -d 'a' localhost:8080/t", "curl 'localhost:8080/t#x'"]);
    }
}
