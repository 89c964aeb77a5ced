//! `basalt-sql` beside PostgreSQL: its own workspace is built and tested, then the files of `sql/tests/compare` are run by `psql` against
//! both, over a server of ours, and what they answer must be the same.
//!
//! A file's records are separated by empty lines. The first line of each says what it is:
//! `statement` (both run it), `statement basalt` or `statement postgres` (one does), `query` (answers must be equal), `query sorted` (in any
//! order), `error` (both must fail with the same SQLSTATE), `error SQLSTATE` (ours must fail so; PostgreSQL is not asked), `explain WORDS`
//! (our plan must contain them), `analyze WORDS` (the same of `EXPLAIN ANALYZE`). Lines that begin with `#` are comments.

use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use anyhow::{Context, bail};

use crate::report::{Outcome, Report};
use crate::{
    jvm, run, server, sql_bench, sql_bench_client, sql_bench_phoenix, sql_filter, sql_phoenix, sql_tpch, toolchain,
};

/// The whole of one file, and of the tests.
const LIMIT: Duration = Duration::from_secs(300);

/// Builds, tests, compares. `only` chooses files by a part of their name; `tpch=SCALE` is TPC-H instead, `bench=ROWS` and
/// `filter=ROWS` are measurements. `BASALT_SQL_BINARY` is another build of it, which is not built and tested then. `phoenix-bench=ROWS` is the
/// part of `bench=ROWS` that measures Apache Phoenix, and wants nothing of ours.
pub fn run(report: &mut Report, only: Option<&str>) {
    let (word, value) = only.map(|only| only.split_once('=').unwrap_or((only, ""))).unwrap_or_default();
    if word == "phoenix-bench" {
        report.part("the cost of Apache Phoenix", || phoenix_bench(value.parse().unwrap_or(1_000_000), &[]));
        return;
    }
    if std::env::var_os("BASALT_SQL_BINARY").is_none() {
        // Where a build goes on beside, cargo waits for it.
        let built = report.step("basalt-sql is built", || run::must("cargo", cargo().args(BUILD)));
        if !built {
            return;
        }
        report.step("its tests", || run::must("cargo", cargo().args(["test", "--quiet", "--workspace"])));
    }
    match word {
        "tpch" => {
            let scale = if value.is_empty() { "0.01" } else { value };
            report.part("TPC-H beside PostgreSQL", || tpch(scale));
        }
        "bench" => {
            let rows = value.parse().unwrap_or(1_000_000);
            let mut in_files = Vec::new();
            report.part("its cost beside PostgreSQL's", || bench(rows, &mut in_files));
            report.part("its cost beside Apache Phoenix's", || phoenix_bench(rows, &in_files));
        }
        "filter" => {
            let rows = value.parse().unwrap_or(1_000_000);
            report.part("a filter at the servers, beside HBase's", || filter(rows));
        }
        _ => report.part("its answers beside PostgreSQL's", || compare(only)),
    }
}

/// The program and its tests, which take minutes of one core each: both at once.
const BUILD: [&str; 3] = ["build", "--workspace", "--all-targets"];

/// Begins to build it beside suites that leave a core idle for most of the time, and gives way to them. Its output goes to a log, as [`run`]
/// builds it again, which is nothing to do or says what is wrong.
pub fn build_beside() -> anyhow::Result<()> {
    let log = std::fs::File::create(run::scratch()?.join("sql-build.log"))?;
    let plain = cargo();
    let mut beside = Command::new("nice");
    beside.args(["-n", "10"]).arg(plain.get_program()).args(BUILD).current_dir(root());
    beside.env_remove("CARGO_TARGET_DIR").env_remove("CARGO_MANIFEST_DIR");
    beside.stdin(Stdio::null()).stdout(log.try_clone()?).stderr(log);
    let mut child = beside.spawn().context("cannot start nice")?;
    std::thread::spawn(move || child.wait());
    Ok(())
}

/// The workspace in `/sql`.
pub fn root() -> PathBuf {
    run::root().join("sql")
}

fn cargo() -> Command {
    let mut cargo = run::cargo();
    // Its target directory is its own, wherever the server's is.
    cargo.current_dir(root()).env_remove("CARGO_TARGET_DIR");
    cargo
}

fn binary() -> PathBuf {
    std::env::var_os("BASALT_SQL_BINARY").map_or_else(|| root().join("target/debug/basalt-sql"), PathBuf::from)
}

/// A process that is killed when it is dropped.
struct Killed(Child);

impl Drop for Killed {
    fn drop(&mut self) {
        self.0.kill().ok();
        self.0.wait().ok();
    }
}

/// One line of `psql`'s: where it connects.
pub struct Target {
    /// Its name in files and reports.
    pub name: &'static str,
    port: u16,
    user: &'static str,
    database: &'static str,
}

impl Target {
    /// Where it is, for PostgreSQL's programs.
    pub fn connection(&self) -> Vec<String> {
        let port = self.port.to_string();
        ["-h", "127.0.0.1", "-p", &port, "-U", self.user, self.database].map(str::to_owned).to_vec()
    }

    /// A `psql` that prints values alone, connected there.
    pub fn psql(&self) -> Command {
        let mut psql = Command::new("psql");
        psql.args(["-X", "-A", "-t", "-q", "-P", "null=NULL", "-h", "127.0.0.1", "-p", &self.port.to_string()]);
        psql.args(["-U", self.user, "-d", self.database]);
        psql.env("PGOPTIONS", "").env("PGTZ", "UTC").env("PGCONNECT_TIMEOUT", "10");
        psql
    }
}

fn start_ours(zookeeper: &str, dir: &Path, name: &str, more: &[&str]) -> anyhow::Result<(Killed, u16)> {
    let mut command = Command::new(binary());
    command.args(["--cluster", zookeeper, "--listen", "127.0.0.1:0"]).args(more);
    command.stdout(Stdio::piped()).stderr(std::fs::File::create(dir.join(format!("{name}.log")))?);
    let mut child = command.spawn().context("cannot start basalt-sql")?;
    let said = child.stdout.take().context("its output is piped")?;
    let child = Killed(child);
    let mut line = String::new();
    BufReader::new(said).read_line(&mut line)?;
    let port = line.trim().rsplit_once(':').and_then(|(_, port)| port.parse().ok());
    Ok((child, port.with_context(|| format!("basalt-sql said {line:?}; see {}", dir.display()))?))
}

/// The newest PostgreSQL of Debian's.
fn postgres_programs() -> anyhow::Result<PathBuf> {
    let mut found: Vec<PathBuf> = std::fs::read_dir("/usr/lib/postgresql")
        .context("PostgreSQL is not installed: apt-get install postgresql")?
        .filter_map(|entry| Some(entry.ok()?.path().join("bin")))
        .filter(|bin| bin.join("initdb").exists())
        .collect();
    found.sort();
    found.pop().context("there is no initdb under /usr/lib/postgresql")
}

/// Where a PostgreSQL keeps its files: another user than ours has to get there.
fn postgres_data(port: u16) -> PathBuf {
    std::env::temp_dir().join(format!("basalt-sql-postgres-{port}"))
}

/// A PostgreSQL with nothing in it. It does not run as root, so there it is the user `postgres`.
fn start_postgres(dir: &Path) -> anyhow::Result<(Killed, u16)> {
    let [port] = testkit::free_ports()?;
    let (bin, data) = (postgres_programs()?, postgres_data(port));
    let is_root = run::stdout("id", Command::new("id").arg("-u"))?.trim() == "0";
    let program = |name: &str| {
        if !is_root {
            return Command::new(bin.join(name));
        }
        let mut command = Command::new("setpriv");
        command.args(["--reuid=postgres", "--regid=postgres", "--clear-groups"]).arg(bin.join(name)).current_dir("/");
        command
    };
    let mut initdb = program("initdb");
    initdb.args(["-U", "postgres", "-A", "trust", "-E", "UTF8", "--locale=C", "-N", "-D"]).arg(&data);
    run::must("initdb", initdb.stdout(Stdio::null()))?;
    let mut postgres = program("postgres");
    postgres.arg("-D").arg(&data).args(["-p", &port.to_string(), "-h", "127.0.0.1", "-F", "-k"]).arg(&data);
    postgres.stdout(Stdio::null()).stderr(std::fs::File::create(dir.join("postgres.log"))?);
    let child = Killed(postgres.spawn().context("cannot start postgres")?);
    let start = std::time::Instant::now();
    let mut asked = Command::new(bin.join("pg_isready"));
    asked.args(["-q", "-h", "127.0.0.1", "-p", &port.to_string()]);
    while !asked.status()?.success() {
        if start.elapsed() > Duration::from_secs(60) {
            bail!("PostgreSQL does not start; see {}", dir.display());
        }
        std::thread::sleep(Duration::from_millis(50));
    }
    Ok((child, port))
}

/// What a record asks for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Want {
    Statement { basalt: bool, postgres: bool },
    Query { sorted: bool },
    Error(Option<String>),
    Explain(String),
    Analyze(String),
}

/// A record of a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Record {
    pub line: usize,
    pub want: Want,
    pub sql: String,
}

impl Record {
    /// Whether a server is asked it.
    pub fn is_for(&self, target: &Target) -> bool {
        let ours = target.name == "basalt";
        match &self.want {
            Want::Statement { basalt, postgres } => {
                if ours {
                    *basalt
                } else {
                    *postgres
                }
            }
            Want::Query { .. } | Want::Error(None) => true,
            Want::Error(Some(_)) | Want::Explain(_) | Want::Analyze(_) => ours,
        }
    }
}

pub fn records(text: &str) -> anyhow::Result<Vec<Record>> {
    let mut records = Vec::new();
    let lines: Vec<&str> = text.lines().collect();
    let mut at = 0;
    while at < lines.len() {
        let head = lines[at].trim();
        let line = at + 1;
        at += 1;
        if head.is_empty() || head.starts_with('#') {
            continue;
        }
        let (word, rest) = head.split_once(' ').unwrap_or((head, ""));
        let want = match (word, rest) {
            ("statement", "") => Want::Statement { basalt: true, postgres: true },
            ("statement", "basalt") => Want::Statement { basalt: true, postgres: false },
            ("statement", "postgres") => Want::Statement { basalt: false, postgres: true },
            ("query", "") => Want::Query { sorted: false },
            ("query", "sorted") => Want::Query { sorted: true },
            ("error", state) => Want::Error(Some(state.to_owned()).filter(|state| !state.is_empty())),
            ("explain", words) => Want::Explain(words.to_owned()),
            ("analyze", words) => Want::Analyze(words.to_owned()),
            _ => bail!("line {line}: {head:?} is no kind of record"),
        };
        let mut sql = String::new();
        while at < lines.len() && !lines[at].trim().is_empty() {
            sql.push_str(lines[at]);
            sql.push('\n');
            at += 1;
        }
        records.push(Record { line, want, sql });
    }
    Ok(records)
}

/// The lines that each record was answered with. `ERROR` with its SQLSTATE is one of them.
pub fn answers(target: &Target, records: &[Record], log: &Path) -> anyhow::Result<Vec<Vec<String>>> {
    let mut script = String::new();
    for (at, record) in records.iter().enumerate() {
        script.push_str(&format!("\\echo @@{at}\n"));
        if record.is_for(target) {
            script.push_str(match record.want {
                Want::Explain(_) => "explain\n",
                Want::Analyze(_) => "explain analyze\n",
                _ => "",
            });
            script.push_str(record.sql.trim_end());
            script.push_str("\n;\n\\if :ERROR\n\\echo ERROR :SQLSTATE\n\\endif\n");
        }
    }
    let file = log.with_extension("psql");
    std::fs::write(&file, script)?;
    let mut psql = target.psql();
    psql.arg("-f").arg(&file);
    let said = psql.stderr(std::fs::File::create(log.with_extension("err"))?).output().context("cannot run psql")?;
    let text = String::from_utf8_lossy(&said.stdout).into_owned();
    std::fs::write(log, &text)?;
    let mut answers = vec![Vec::new(); records.len()];
    let mut current = None;
    for line in text.lines() {
        match line.strip_prefix("@@").and_then(|number| number.parse::<usize>().ok()) {
            Some(number) => current = Some(number),
            None => {
                let answer = current.and_then(|at| answers.get_mut(at)).context("an answer before the first record")?;
                answer.push(line.to_owned());
            }
        }
    }
    if !text.contains(&format!("@@{}", records.len().saturating_sub(1))) {
        bail!("{} did not come to the end; see {}", target.name, log.display());
    }
    Ok(answers)
}

/// What is wrong with a record's answers.
pub fn judge(record: &Record, ours: &[String], theirs: &[String]) -> Option<String> {
    let failed = |answer: &[String]| answer.iter().find_map(|line| line.strip_prefix("ERROR ").map(str::to_owned));
    let (our_error, their_error) = (failed(ours), failed(theirs));
    let sql = record.sql.split_whitespace().collect::<Vec<_>>().join(" ");
    let complain = |what: String| Some(format!("line {}: {sql}: {what}", record.line));
    match &record.want {
        Want::Error(Some(state)) if our_error.as_ref() == Some(state) => None,
        Want::Error(Some(state)) => complain(format!("expected error {state}, got {ours:?}")),
        Want::Error(None) if our_error.is_some() && our_error == their_error => None,
        Want::Error(None) => complain(format!("ours {ours:?}, PostgreSQL's {theirs:?}")),
        _ if our_error.is_some() => complain(format!("ours failed: {our_error:?}")),
        _ if their_error.is_some() => complain(format!("PostgreSQL's failed: {their_error:?}")),
        Want::Statement { .. } => None,
        Want::Explain(words) | Want::Analyze(words) if ours.iter().any(|line| line.contains(words.as_str())) => None,
        Want::Explain(words) | Want::Analyze(words) => complain(format!("no {words:?} in {ours:#?}")),
        Want::Query { sorted } => {
            let (mut ours, mut theirs) = (ours.to_vec(), theirs.to_vec());
            if *sorted {
                ours.sort();
                theirs.sort();
            }
            if ours == theirs { None } else { complain(format!("ours {ours:?}, PostgreSQL's {theirs:?}")) }
        }
    }
}

/// A suite's lines `ok NAME` and `FAILED NAME: why`.
fn suite(of: &str, command: &mut Command, log: &Path) -> anyhow::Result<Outcome> {
    let ended = run::logged(command, log, LIMIT)?;
    let mut outcome = Outcome::default();
    for line in ended.output.lines() {
        match line.strip_prefix("FAILED ") {
            Some(failure) => outcome.failures.push(failure.to_owned()),
            None => outcome.passed += usize::from(line.starts_with("ok ")),
        }
    }
    if !ended.well || outcome.passed + outcome.failures.len() == 0 {
        outcome.failures.push(format!("{of} did not come to the end; see {}", log.display()));
    }
    Ok(outcome)
}

/// What Python's clients do; fetched on first use.
fn python_clients(port: u16, process: u32, dir: &Path) -> anyhow::Result<Outcome> {
    let tests = root().join("tests/clients");
    let environment = dir.join("python");
    let python = environment.join("bin/python");
    // Written last: an environment that was left half made is made again.
    let (made, wanted) = (environment.join("made-of"), std::fs::read_to_string(tests.join("requirements.txt"))?);
    if !std::fs::read_to_string(&made).is_ok_and(|text| text == wanted) {
        let mut venv = Command::new("python3");
        run::must("python3 -m venv", venv.args(["-m", "venv", "--clear"]).arg(&environment))?;
        let mut pip = Command::new(&python);
        pip.args(["-m", "pip", "--quiet", "--disable-pip-version-check", "install", "--requirement"]);
        run::must("pip install (network needed on first use)", pip.arg(tests.join("requirements.txt")))?;
        std::fs::write(made, wanted)?;
    }
    let mut command = Command::new(&python);
    command.arg(tests.join("suite.py")).args([port.to_string(), process.to_string()]);
    suite("Python's clients", &mut command, &dir.join("python.log"))
}

/// PostgreSQL's driver for Java.
const PGJDBC: (&str, &str) = ("org.postgresql:postgresql", "42.7.4");

fn java_clients(port: u16, dir: &Path) -> anyhow::Result<Outcome> {
    toolchain::programs(&["java", "javac"])?;
    let jar = toolchain::jar(PGJDBC.0, PGJDBC.1)?;
    let mut command = Command::new("java");
    command
        .args(jvm::Jit::Quick.options())
        .arg("-cp")
        .arg(jar)
        .arg(root().join("tests/clients/Suite.java"))
        .arg(port.to_string());
    suite("pgJDBC", &mut command, &dir.join("java.log"))
}

fn node_clients(port: u16, dir: &Path) -> anyhow::Result<Outcome> {
    let program = toolchain::node_program(&root().join("tests/clients/node-pg"))?;
    let mut command = Command::new("node");
    suite("node's pg", command.arg(program).arg(port.to_string()), &dir.join("node.log"))
}

/// The clients of a language, or a sentence where they cannot be had.
fn clients(of: &str, outcome: anyhow::Result<Outcome>) -> Outcome {
    outcome.unwrap_or_else(|e| {
        println!("    passed over: {of}: {e:#}");
        Outcome::default()
    })
}

fn make_certificate(key: &Path, certificate: &Path) -> anyhow::Result<()> {
    let mut openssl = Command::new("openssl");
    openssl.args(["req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=localhost", "-keyout"]);
    run::must("openssl", openssl.arg(key).arg("-out").arg(certificate).stderr(Stdio::null()))
}

/// A server with TLS and a user: who may connect, and how.
fn doors(zookeeper: &str, dir: &Path) -> anyhow::Result<Outcome> {
    let [key, certificate, users] = ["tls.key", "tls.crt", "users"].map(|name| dir.join(name));
    if let Err(e) = make_certificate(&key, &certificate) {
        println!("    passed over: TLS: {e:#}");
        return Ok(Outcome::default());
    }
    std::fs::remove_file(&users).ok();
    let mut add = Command::new(binary());
    add.args(["user", "add", "somebody", "--users"]).arg(&users).stdin(Stdio::piped()).stderr(Stdio::null());
    let mut adding = add.spawn().context("cannot start basalt-sql")?;
    adding.stdin.take().context("its input is piped")?.write_all(b"a secret\n")?;
    if !adding.wait()?.success() {
        bail!("basalt-sql user add failed");
    }
    let paths = [&users, &certificate, &key].map(|path| path.display().to_string());
    let more = ["--users", &paths[0], "--tls-cert", &paths[1], "--tls-key", &paths[2], "--tls-required"];
    let (_server, port) = start_ours(zookeeper, dir, "doors", &more)?;
    let mut outcome = Outcome::default();
    let before = dir.join("before.crt");
    std::fs::copy(&certificate, &before)?;
    let is_let_in = |mode: &str, user: &str, password: &str, trusted: &Path| {
        let to = format!(
            "host=localhost hostaddr=127.0.0.1 port={port} dbname=basalt user={user} sslmode={mode} sslrootcert={}",
            trusted.display()
        );
        let mut psql = Command::new("psql");
        psql.args(["-X", "-A", "-t", "-c", "select 1 + 1", &to]).env("PGPASSWORD", password);
        let said = psql.stderr(Stdio::null()).output().context("cannot run psql")?;
        Ok::<_, anyhow::Error>(said.stdout.trim_ascii() == b"2")
    };
    let mut judge = |case: &str, is_in: bool, may: bool| {
        if is_in == may {
            outcome.passed += 1;
        } else {
            outcome.failures.push(format!("{case}: {}", if is_in { "was let in" } else { "was not let in" }));
        }
    };
    let cases = [
        ("TLS and the right password", "require", "somebody", "a secret", true),
        ("TLS and a wrong password", "require", "somebody", "another", false),
        ("TLS and nobody", "require", "nobody", "a secret", false),
        ("no TLS", "disable", "somebody", "a secret", false),
        ("a certificate that is checked", "verify-ca", "somebody", "a secret", true),
    ];
    for (case, mode, user, password, may) in cases {
        judge(case, is_let_in(mode, user, password, &certificate)?, may);
    }
    // One file after the other: as long as they do not fit together, the ones before are in use.
    let [new_key, new_certificate] = ["new.key", "new.crt"].map(|name| dir.join(name));
    make_certificate(&new_key, &new_certificate)?;
    std::fs::rename(&new_certificate, &certificate)?;
    let is_in = |trusted: &Path| is_let_in("verify-ca", "somebody", "a secret", trusted);
    judge("the certificate from before its key was replaced", is_in(&before)?, true);
    std::fs::rename(&new_key, &key)?;
    judge("a certificate that was replaced", is_in(&before)?, false);
    judge("the certificate in its place", is_in(&certificate)?, true);
    Ok(outcome)
}

/// Names and texts of the files, and of what is made.
fn texts(only: Option<&str>) -> anyhow::Result<Vec<(String, String)>> {
    let mut texts = vec![("made".to_owned(), crate::sql_queries::records())];
    for entry in std::fs::read_dir(root().join("tests/compare"))? {
        let path = entry?.path();
        let name = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        texts.push((name, std::fs::read_to_string(&path).with_context(|| path.display().to_string())?));
    }
    texts.retain(|(name, _)| only.is_none_or(|only| name.contains(only)));
    texts.sort();
    Ok(texts)
}

/// Where scripts, rows and logs are kept.
fn scratch() -> anyhow::Result<PathBuf> {
    let dir = run::scratch()?.join("sql");
    std::fs::create_dir_all(&dir)?;
    Ok(dir)
}

/// A server of ours with `basalt-sql`, and a PostgreSQL.
struct Servers {
    dir: PathBuf,
    site: server::Site,
    basalt: server::Server,
    ours: Killed,
    port: u16,
    postgres: Killed,
    postgres_port: u16,
}

impl Servers {
    fn start() -> anyhow::Result<Servers> {
        let dir = scratch()?;
        let mut site = server::Site::new(server::Kind::Basalt, Path::new(""), "sql")?;
        let basalt = site.start()?;
        let nobody = dir.join("no-users").display().to_string();
        let (ours, port) = start_ours(&site.zookeeper(), &dir, "basalt-sql", &["--users", &nobody])?;
        toolchain::programs(&["psql", "python3"])?;
        let (postgres, postgres_port) = start_postgres(&dir)?;
        Ok(Servers { dir, site, basalt, ours, port, postgres, postgres_port })
    }

    fn targets(&self) -> [Target; 2] {
        [
            Target { name: "basalt", port: self.port, user: "basalt", database: "basalt" },
            Target { name: "postgres", port: self.postgres_port, user: "postgres", database: "postgres" },
        ]
    }

    /// Ends all; gives back what the server complained about.
    fn stop(self) -> anyhow::Result<Vec<String>> {
        drop((self.ours, self.postgres));
        std::fs::remove_dir_all(postgres_data(self.postgres_port)).ok();
        let complaints = self.site.complaints()?;
        self.basalt.stop()?;
        Ok(complaints)
    }
}

fn tpch(scale: &str) -> anyhow::Result<Outcome> {
    let servers = Servers::start()?;
    let mut outcome = sql_tpch::compare(&servers.targets(), &servers.dir, scale)?;
    outcome.failures.extend(servers.stop()?);
    Ok(outcome)
}

fn filter(rows: u64) -> anyhow::Result<Outcome> {
    let servers = Servers::start()?;
    let basalt = servers.basalt.process().context("a server that runs")?;
    let processes = [basalt, servers.ours.0.id()];
    let passed = sql_filter::compare(&servers.targets()[0], &servers.site.zookeeper(), &processes, &servers.dir, rows)?;
    Ok(Outcome { passed, failures: servers.stop()? })
}

fn bench(rows: u64, in_files: &mut Vec<sql_bench::Pushed>) -> anyhow::Result<Outcome> {
    let servers = Servers::start()?;
    let [ours, theirs] = &servers.targets();
    let basalt = servers.basalt.process().context("a server that runs")?;
    let both = [
        sql_bench::Measured { target: ours, processes: vec![basalt, servers.ours.0.id()] },
        sql_bench::Measured { target: theirs, processes: vec![servers.postgres.0.id()] },
    ];
    let flush = |table: &str| {
        let file = servers.dir.join("flush.shell");
        std::fs::write(&file, format!("flush '{table}'\n"))?;
        let mut shell = Command::new(server::binary());
        run::stdout("basalt shell", shell.args(["shell", "-n", "-q", &servers.site.zookeeper()]).arg(&file)).map(drop)
    };
    let (passed, measured) =
        sql_bench::compare(&both, &postgres_programs()?.join("pgbench"), &servers.dir, rows, flush)?;
    let by_client = sql_bench_client::compare(&servers.site.zookeeper(), basalt, &servers.dir, &measured)?;
    *in_files = measured;
    Ok(Outcome { passed: passed + by_client, failures: servers.stop()? })
}

/// Beside what was measured of ours, if anything was.
fn phoenix_bench(rows: u64, ours: &[sql_bench::Pushed]) -> anyhow::Result<Outcome> {
    let passed = sql_bench_phoenix::compare(&scratch()?, rows, ours)?;
    Ok(Outcome { passed, failures: Vec::new() })
}

fn compare(only: Option<&str>) -> anyhow::Result<Outcome> {
    let servers = Servers::start()?;
    let (targets, dir) = (servers.targets(), &servers.dir);
    let mut outcome = Outcome::default();
    let start = std::time::Instant::now();
    for (name, text) in texts(only)? {
        let records = records(&text).with_context(|| name.clone())?;
        let of = |target: &Target| answers(target, &records, &dir.join(format!("{name}-{}.out", target.name)));
        let (ours, theirs) = (of(&targets[0])?, of(&targets[1])?);
        for (at, record) in records.iter().enumerate() {
            match judge(record, &ours[at], &theirs[at]) {
                None => outcome.passed += 1,
                Some(complaint) => outcome.failures.push(format!("{name}, {complaint}")),
            }
        }
        if start.elapsed() > LIMIT {
            bail!("not done after {} s", LIMIT.as_secs());
        }
    }
    let port = servers.port;
    let parts = [
        sql_phoenix::compare(&targets[0], &servers.site.zookeeper(), dir)?,
        python_clients(port, servers.ours.0.id(), dir)?,
        clients("pgJDBC", java_clients(port, dir)),
        clients("node's pg", node_clients(port, dir)),
        doors(&servers.site.zookeeper(), dir)?,
    ];
    for part in parts {
        outcome.passed += part.passed;
        outcome.failures.extend(part.failures);
    }
    outcome.failures.extend(servers.stop()?);
    Ok(outcome)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records_are_read_and_judged() {
        let read =
            records("# note\n\nquery sorted\nselect 1\nunion select 2\n\nerror 42P01\nselect * from t\n").unwrap();
        assert_eq!((read.len(), read[0].line, read[1].line), (2, 3, 7));
        assert_eq!(read[0].want, Want::Query { sorted: true });
        let lines = |lines: &[&str]| lines.iter().map(|line| (*line).to_owned()).collect::<Vec<_>>();
        assert_eq!(judge(&read[0], &lines(&["1", "2"]), &lines(&["2", "1"])), None);
        assert!(judge(&read[0], &lines(&["1"]), &lines(&["1", "2"])).is_some());
        assert!(judge(&read[0], &lines(&["ERROR 42P01"]), &lines(&["ERROR 42P01"])).is_some());
        assert_eq!(judge(&read[1], &lines(&["ERROR 42P01"]), &[]), None);
        assert!(judge(&read[1], &lines(&["1"]), &[]).is_some());
        assert!(records("nothing\n").is_err());
    }
}
