//! Metrics of a server process, as monitors see them: their names are HBase's and stand in HBase's beans, and they follow what is done.
#![allow(clippy::disallowed_methods, reason = "tests of a process read the tree and real sockets")]

use crate::common::{Scratch, Server};
use client::{Append, Connection, Delete, Increment, Options, Put, ScanOptions};
use model::{FamilyDescriptor, Get, Scan, TableDescriptor, TableName};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::Path;

fn tree(path: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests").join(path);
    std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// The body of a page.
pub fn page(server: &Server, path: &str) -> String {
    let port = server.info_port.expect("it has pages");
    let mut stream = TcpStream::connect(testkit::local(port)).expect("the pages take connections");
    write!(stream, "GET {path} HTTP/1.1\r\nHost: x\r\n\r\n").expect("written");
    let mut answer = String::new();
    stream.read_to_string(&mut answer).expect("an answer");
    let (head, body) = answer.split_once("\r\n\r\n").expect("a head");
    assert!(head.starts_with("HTTP/1.1 200"), "{path}: {head}");
    body.to_owned()
}

/// What a server shows under `/jmx`.
struct Beans(Vec<Value>);

impl Beans {
    fn of(server: &Server) -> Beans {
        let json: Value = serde_json::from_str(&page(server, "/jmx")).expect("JSON");
        Beans(json["beans"].as_array().expect("beans").clone())
    }

    /// A bean's attributes, by what follows `Hadoop:service=HBase,name=`.
    fn bean(&self, tail: &str) -> Option<&serde_json::Map<String, Value>> {
        let name = format!("Hadoop:service=HBase,name={tail}");
        self.0.iter().find(|bean| bean["name"] == name.as_str()).and_then(Value::as_object)
    }

    fn number(&self, tail: &str, name: &str) -> f64 {
        let bean = self.bean(tail).unwrap_or_else(|| panic!("no bean {tail}"));
        bean.get(name).and_then(Value::as_f64).unwrap_or_else(|| panic!("no number {name} in {tail}"))
    }

    /// By bean, every attribute; names of tables and regions are taken out.
    fn names(&self) -> BTreeMap<String, BTreeSet<String>> {
        let mut all: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
        for bean in &self.0 {
            let Some(tail) = bean["name"].as_str().and_then(|name| name.strip_prefix("Hadoop:service=HBase,name="))
            else {
                continue;
            };
            let names = bean.as_object().into_iter().flatten().map(|(name, _)| plain(name));
            all.entry(tail.to_owned()).or_default().extend(names);
        }
        all
    }
}

/// `Namespace_default_table_t_region_0123_metric_x` as `<region>_metric_x`.
fn plain(name: &str) -> String {
    match name.strip_prefix("Namespace_").and_then(|name| name.rsplit_once("_metric_")) {
        Some((of, metric)) if of.contains("_region_") => format!("<region>_metric_{metric}"),
        Some((_, metric)) => format!("<table>_metric_{metric}"),
        None => name.to_owned(),
    }
}

pub fn start(scratch: &Scratch) -> Server {
    Server::start(&scratch.0, &["hbase.master.info.port=0"])
}

pub fn connect(server: &Server) -> Connection {
    Connection::open(Options::zookeeper(&format!("127.0.0.1:{}", server.zk_port)))
}

/// A table with something in its files, read and written in every way.
pub async fn work(server: &Server) {
    let connection = connect(server);
    let name = TableName::parse("watched").expect("legal");
    let descriptor = TableDescriptor::new(name.clone(), [FamilyDescriptor::new("f")]);
    let admin = connection.admin();
    admin.create_table(&descriptor, &["m".into()]).await.expect("made");
    let t = connection.table(&name);
    for row in ["a", "b", "n", "o"] {
        t.put(&Put::new(row).add("f", "q", "value").build()).await.expect("written");
    }
    admin.flush(&name).await.expect("flushed");
    t.get(&Get::new("a")).await.expect("read");
    t.get(&Get::new("nobody")).await.expect("read");
    t.increment(&Increment::new("a").add("f", "n", 1).build()).await.expect("counted");
    t.append(&Append::new("a").add("f", "s", "x").build()).await.expect("appended");
    t.delete(&Delete::new("b").build()).await.expect("deleted");
    let mut scanner = t.scan(Scan::default(), ScanOptions::default());
    while scanner.next().await.expect("a scan").is_some() {}
    admin.flush(&name).await.expect("flushed");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_numbers_follow_what_is_done() {
    let scratch = Scratch::new("metrics-work");
    let server = start(&scratch);
    let before = Beans::of(&server);
    work(&server).await;
    let after = Beans::of(&server);
    let grown = |tail: &str, name: &str| after.number(tail, name) - before.number(tail, name);
    let (rs, wal, master) = ("RegionServer,sub=Server", "RegionServer,sub=WAL", "Master,sub=AssignmentManager");
    for (tail, name, least) in [
        (rs, "writeRequestCount", 7.0),
        (rs, "readRequestCount", 3.0),
        (rs, "regionCount", 2.0),
        (rs, "Put_num_ops", 4.0),
        (rs, "Get_num_ops", 2.0),
        (rs, "Increment_num_ops", 1.0),
        (rs, "Append_num_ops", 1.0),
        (rs, "Delete_num_ops", 1.0),
        (rs, "ScanTime_num_ops", 1.0),
        (rs, "IncrementBlockBytesScanned_num_ops", 1.0),
        (rs, "FlushTime_num_ops", 2.0),
        (rs, "flushedCellsCount", 7.0),
        (rs, "flushedCellsSize", 7.0),
        (rs, "blockCacheHitCount", 1.0),
        (rs, "blockCacheDataHitCount", 1.0),
        (rs, "blockCacheDataBlockCount", 1.0),
        (rs, "bloomFilterRequestsCount", 1.0),
        (wal, "appendCount", 7.0),
        (wal, "AppendSize_num_ops", 7.0),
        (wal, "AppendTime_num_ops", 7.0),
        (wal, "writtenBytes", 100.0),
        ("RegionServer,sub=IPC", "authorizationSuccesses", 1.0),
        (master, "AssignSubmittedCount", 2.0),
        (master, "AssignTime_num_ops", 2.0),
        (master, "OpenTime_num_ops", 2.0),
        (master, "RitDuration_num_ops", 2.0),
    ] {
        assert!(
            grown(tail, name) >= least,
            "{name}: {} before, {} after",
            before.number(tail, name),
            after.number(tail, name)
        );
    }
    assert_eq!(
        grown(rs, "blockCacheDataHitCount"),
        grown(rs, "blockCacheHitCount") - grown(rs, "blockCacheBloomChunkHitCount")
    );
    // And a monitor of the other kind sees the same.
    let text = page(&server, "/prometheus");
    let line = text.lines().find(|line| line.starts_with("server_flushed_cells_count{")).expect("it is there");
    let value: f64 = line.rsplit(' ').next().and_then(|value| value.parse().ok()).expect("a number");
    assert!(value >= after.number(rs, "flushedCellsCount"), "{line}");
}

/// `bean<TAB>name` for every attribute that HBase 2.6.4 showed after the same kind of work.
fn hbases() -> BTreeMap<String, BTreeSet<String>> {
    let mut all: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for line in tree("golden/metrics/beans.tsv").lines().filter(|line| !line.starts_with('#')) {
        let (bean, name) = line.split_once('\t').expect("a bean and a name");
        all.entry(bean.to_owned()).or_default().insert(name.to_owned());
    }
    all
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_hbase_shows_stands_in_the_same_bean_here() {
    let scratch = Scratch::new("metrics-golden");
    let server = start(&scratch);
    work(&server).await;
    let (ours, hbases) = (Beans::of(&server).names(), hbases());
    let mut wrong = Vec::new();
    for (bean, names) in &hbases {
        for name in names {
            let elsewhere: Vec<&String> = ours
                .iter()
                .filter(|(ours, names)| *ours != bean && names.contains(name))
                .map(|(bean, _)| bean)
                .collect();
            let is_here = ours.get(bean).is_some_and(|names| names.contains(name));
            // Some names stand in several beans of HBase, too; and tags in every bean, also in those that HBase does not have.
            let is_hbases = |other: &&String| hbases.get(*other).is_none_or(|names| names.contains(name));
            // Of which server a bean tells is said in each of them here.
            let is_tag = matches!(name.as_str(), "tag.Context" | "tag.Hostname");
            // A range is there once a value was in it, as calls happen to take.
            let is_range = name.contains("RangeCount_");
            if !is_tag && !is_range && !is_here && !elsewhere.iter().all(is_hbases) {
                wrong.push(format!("{name} stands in {elsewhere:?}, with HBase in {bean}"));
            }
        }
    }
    assert_eq!(wrong, Vec::<String>::new());
    // Without doing any of this the comparison would hold, too.
    let shared: usize =
        hbases.iter().map(|(bean, names)| ours.get(bean).map_or(0, |own| own.intersection(names).count())).sum();
    assert!(shared > 400, "{shared} names are in both");
}

/// Whether a bean has the metric of the inventory: as a number, a tag, a histogram, an operation, or of a table or region.
fn has(names: &BTreeSet<String>, metric: &str) -> bool {
    let mut letters = metric.chars();
    let capital: String = letters.next().into_iter().flat_map(char::to_uppercase).chain(letters).collect();
    let forms = [
        metric.to_owned(),
        format!("tag.{metric}"),
        format!("{capital}_num_ops"),
        format!("{capital}SubmittedCount"),
        format!("<region>_metric_{metric}"),
        format!("<table>_metric_{metric}"),
    ];
    forms.iter().any(|form| names.contains(form))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_core_and_common_metric_of_the_inventory_is_there_or_has_no_source() {
    let scratch = Scratch::new("metrics-inventory");
    let server = start(&scratch);
    work(&server).await;
    // Some numbers are those of the last run of a check.
    let admin = connect(&server).admin();
    admin.run_catalog_janitor().await.expect("run");
    assert!(admin.hbck().run_hbck_chore().await.expect("run"));
    let by_bean = Beans::of(&server).names();
    let all: BTreeSet<String> = by_bean.values().flatten().cloned().collect();
    let later = tree("inventory/later.txt");
    let later: BTreeSet<&str> =
        later.lines().filter_map(|line| line.strip_prefix("metrics.csv\t")?.split('\t').next()).collect();
    let without = tree("inventory/covered/metrics_without_source.txt");
    let without: BTreeMap<&str, &str> =
        without.lines().filter(|line| !line.starts_with('#')).filter_map(|line| line.split_once(" | ")).collect();
    let (mut missing, mut needless) = (Vec::new(), Vec::new());
    let table = tree("inventory/metrics.csv");
    for line in table.lines().skip(1) {
        let fields: Vec<&str> = line.split(',').collect();
        let (source, metric, tier) = (fields[0], fields[fields.len() - 2], fields[fields.len() - 1]);
        let row = format!("{source}: {metric}");
        if !matches!(tier, "core" | "common") || later.contains(&*row) || later.contains(&*format!("{source}: *")) {
            continue;
        }
        // The bean, where the table names one, is the only field in quotes.
        let names = line.split('"').nth(1).map_or(Some(&all), |bean| by_bean.get(bean));
        match (names.is_some_and(|names| has(names, metric)), without.contains_key(&*row)) {
            (false, false) => missing.push(row),
            (true, true) => needless.push(row),
            _ => {}
        }
    }
    assert_eq!(missing, Vec::<String>::new(), "neither shown nor in metrics_without_source.txt");
    assert_eq!(needless, Vec::<String>::new(), "shown, and said to have no source");
}

/// Whether a JVM's attribute of this type would be written so.
fn is_of_type(value: &Value, java: &str) -> bool {
    match java {
        "int" | "long" => value.is_i64(),
        "double" => value.is_f64(),
        "String" | "ObjectName" => value.as_str().is_some_and(|text| !text.is_empty()),
        "String[]" => value.as_array().is_some_and(|list| list.iter().all(Value::is_string)),
        "CompositeData" => ["committed", "init", "max", "used"].iter().all(|key| value[key].is_i64()),
        other => panic!("{other}: nothing is shown of this type"),
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_jvms_beans_are_there_as_a_jvm_writes_them_or_have_no_source() {
    let scratch = Scratch::new("metrics-java");
    let memory = format!("basalt.memory.size={}", 256 << 20);
    let server = Server::start(&scratch.0, &["hbase.master.info.port=0", "some.password=hidden", &memory]);
    work(&server).await;
    let beans = Beans::of(&server);
    let without = tree("inventory/covered/java_beans_without_source.txt");
    let mut without: BTreeSet<&str> = without
        .lines()
        .filter(|line| !line.starts_with('#'))
        .filter_map(|line| Some(line.split_once(" | ")?.0))
        .collect();
    let mut shown = BTreeSet::new();
    let mut wrong = Vec::new();
    let golden = tree("golden/metrics/java.tsv");
    let (mut left_out, mut used) = (BTreeSet::new(), BTreeSet::new());
    for line in golden.lines().filter(|line| !line.starts_with('#')) {
        let [bean, attribute, java] = line.split('\t').collect::<Vec<_>>()[..] else { panic!("{line}") };
        let value = beans.0.iter().find(|ours| ours["name"] == bean).map(|ours| &ours[attribute]);
        let value = value.filter(|value| !value.is_null());
        let (own, all) = (format!("{bean}: {attribute}"), format!("{bean}: *"));
        let is_left_out = without.contains(&*own) || without.contains(&*all);
        used.extend([own.clone(), all]);
        match value {
            Some(_) if is_left_out => wrong.push(format!("{own} is shown, and said to have no source")),
            Some(value) if !is_of_type(value, java) => wrong.push(format!("{own} is no {java}: {value}")),
            Some(_) => drop(shown.insert(own)),
            None if is_left_out => drop(left_out.insert(own)),
            None => wrong.push(format!("{own} is neither shown nor in java_beans_without_source.txt")),
        }
    }
    without.retain(|row| !used.contains(*row));
    assert_eq!((wrong, without), (Vec::new(), BTreeSet::new()));
    assert!(shown.len() > 20 && !left_out.is_empty(), "{shown:?}");
    // And nothing that a JVM does not have.
    for bean in beans.0.iter().filter(|bean| bean["name"].as_str().is_some_and(|name| name.starts_with("java."))) {
        let name = bean["name"].as_str().expect("seen");
        for attribute in
            bean.as_object().expect("a bean").keys().filter(|key| !["name", "modelerType"].contains(&&***key))
        {
            assert!(shown.contains(&format!("{name}: {attribute}")), "{name} has no {attribute} with a JVM");
        }
    }
    // They say what is so.
    let of = |bean: &str, attribute: &str| -> Value {
        let name = format!("java.lang:type={bean}");
        beans.0.iter().find(|bean| bean["name"] == name.as_str()).expect("it is there")[attribute].clone()
    };
    let pid = server.child.id();
    assert_eq!(of("Runtime", "Pid"), pid);
    assert!(of("Runtime", "Name").as_str().is_some_and(|name| name.starts_with(&format!("{pid}@"))));
    let arguments = of("Runtime", "InputArguments").to_string();
    assert!(arguments.contains("some.password=<redacted>") && !arguments.contains("hidden"), "{arguments}");
    let heap = of("Memory", "HeapMemoryUsage");
    let [used, max] = ["used", "max"].map(|key| heap[key].as_i64().expect("a number"));
    assert!(0 < used && used < max && max == 256 << 20, "the heap's size is the memory budget: {heap}");
    assert!(of("OperatingSystem", "ProcessCpuTime").as_i64() > Some(0));
}

/// Words of a text that begin as names of metrics do.
fn metric_words(text: &str) -> BTreeSet<&str> {
    const RECORDS: [&str; 6] = ["server_", "wal_", "assignment_manager_", "region_server_", "memory_", "master_"];
    let words = text.split(|c: char| !(c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_'));
    let is_one = |word: &&str| RECORDS.iter().any(|record| word.starts_with(record)) && !word.ends_with('_');
    words.filter(is_one).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_operators_are_told_to_watch_is_there() {
    let scratch = Scratch::new("metrics-alerts");
    let server = start(&scratch);
    work(&server).await;
    connect(&server).admin().run_catalog_janitor().await.expect("run");
    connect(&server).admin().hbck().run_hbck_chore().await.expect("run");
    let text = page(&server, "/prometheus");
    let shown: BTreeSet<&str> = text.lines().filter_map(|line| line.split_once('{')).map(|(name, _)| name).collect();
    for file in [
        "../packaging/prometheus/basalt-alerts.yml",
        "../packaging/grafana/basalt.json",
        "../docs/operations/monitoring.md",
    ] {
        let told = tree(file);
        let words = metric_words(&told);
        assert!(words.len() > 5, "{file}");
        let missing: Vec<&str> = words.into_iter().filter(|word| !shown.contains(word)).collect();
        assert_eq!(missing, Vec::<&str>::new(), "{file}");
    }
}
