//! Calls to a server process as a collector of OpenTelemetry sees them.
#![allow(clippy::disallowed_methods, reason = "tests of a process work on real sockets")]

use crate::common::{Scratch, Server};
use crate::gateways::Gateway;
use crate::metrics::connect;
use bytes::Bytes;
use client::{Action, Append, CheckAndMutate, Connection, Delete, Increment, Put, ScanOptions};
use model::{FamilyDescriptor, Get, Scan, TableDescriptor, TableName};
use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest;
use opentelemetry_proto::tonic::trace::v1::Span;
use prost::Message;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::Duration;
use testkit::collector::Collector;

/// The spans that were sent, and what the process is called.
fn spans(collector: &Collector) -> (Vec<Span>, Vec<String>) {
    let posts = collector.posts(Duration::from_secs(10));
    let posted = posts.iter().map(|post| ExportTraceServiceRequest::decode(&*post.body).expect("spans"));
    let resources: Vec<_> = posted.flat_map(|posted| posted.resource_spans).collect();
    let names = resources.iter().flat_map(|of| &of.resource.as_ref().expect("a resource").attributes);
    let names = names.filter(|at| at.key == "service.name").map(|at| format!("{:?}", at.value)).collect();
    (resources.iter().flat_map(|of| &of.scope_spans).flat_map(|of| of.spans.clone()).collect(), names)
}

#[tokio::test]
async fn a_put_and_a_get_of_a_file_are_traced_through_region_log_and_file() {
    let (scratch, collector) = (Scratch::new("traces"), Collector::start().expect("a free port"));
    let define = format!("basalt.trace.otlp.endpoint={}", collector.endpoint());
    let server = Server::start(&scratch.0, &[&define, "basalt.trace.service.name=my-hbase"]);
    let connection = connect(&server);
    let (admin, name) = (connection.admin(), TableName::parse("traced").expect("a name"));
    let table = TableDescriptor::new(name.clone(), [FamilyDescriptor::new("f")]);
    admin.create_table(&table, &[]).await.expect("created");
    let table = connection.table(&name);
    table.put(&Put::new("r").add("f", "q", "v").build()).await.expect("put");
    admin.flush(&name).await.expect("flushed");
    assert!(!table.get(&Get::new("r")).await.expect("got").is_empty());
    assert!(table.get(&Get::new("s")).await.is_ok());
    assert!(server.terminate().success());

    let (spans, services) = spans(&collector);
    assert!(!services.is_empty() && services.iter().all(|name| name.contains("my-hbase")), "{services:?}");
    let parent = |span: &Span| {
        let of = spans.iter().find(|other| other.span_id == span.parent_span_id && other.trace_id == span.trace_id);
        of.unwrap_or_else(|| panic!("{} is a part of nothing", span.name))
    };
    // A read of the file, within the work on the region, within the call.
    let reads = spans.iter().filter(|span| span.name == "Region.get");
    let read = reads.clone().find(|span| span.events.iter().any(|event| event.name == "BlockIOUtils.preadWithExtra"));
    let read = read.unwrap_or_else(|| panic!("no get has read its file: {:?}", reads.collect::<Vec<_>>()));
    let region = format!("{:?}", read.attributes);
    assert!(region.contains("db.hbase.regions") && region.contains("traced,,"), "{region}");
    let call = parent(read);
    assert_eq!(call.name, "hbase.pb.ClientService/Get");
    let process = parent(call);
    assert_eq!((&*process.name, process.parent_span_id.len()), ("RpcServer.process", 0));
    assert!(
        process.start_time_unix_nano <= read.start_time_unix_nano
            && read.end_time_unix_nano <= process.end_time_unix_nano
    );
    // A write, and its wait for the log.
    let put =
        spans.iter().find(|span| span.name == "Region.put" && format!("{:?}", span.attributes).contains("traced,,"));
    let call = parent(put.expect("the put"));
    let waits = spans.iter().filter(|span| span.name == "WAL.sync" && span.parent_span_id == call.span_id);
    assert_eq!(waits.count(), 1, "under {}", call.name);
}

/// The spans above `span`, up to the one that is a part of nothing that was sent.
fn above<'a>(spans: &'a [Span], span: &'a Span) -> Vec<&'a Span> {
    let parent =
        |of: &Span| spans.iter().find(|other| other.span_id == of.parent_span_id && other.trace_id == of.trace_id);
    std::iter::successors(parent(span), |span| parent(span)).collect()
}

fn names<'a>(spans: &[&'a Span]) -> Vec<&'a str> {
    spans.iter().map(|span| &*span.name).collect()
}

/// The attribute of that name, in the notation of tests.
fn attribute(span: &Span, name: &str) -> Option<String> {
    span.attributes.iter().find(|attribute| attribute.key == name).map(|attribute| format!("{:?}", attribute.value))
}

/// Whether the span is of work on a region of the table `traced`.
fn is_of_table(span: &&Span) -> bool {
    attribute(span, "db.hbase.regions").is_some_and(|regions| regions.contains("traced,,"))
}

async fn table_of(connection: &Connection) -> client::Table {
    let name = TableName::parse("traced").expect("a name");
    let table = TableDescriptor::new(name.clone(), [FamilyDescriptor::new("f")]);
    connection.admin().create_table(&table, &[]).await.expect("created");
    connection.table(&name)
}

#[tokio::test]
async fn every_work_on_a_region_has_the_name_that_hbase_gives_it() {
    let (scratch, collector) = (Scratch::new("traces-regions"), Collector::start().expect("a free port"));
    let define = format!("basalt.trace.otlp.endpoint={}", collector.endpoint());
    let server = Server::start(&scratch.0, &[&define]);
    let connection = connect(&server);
    let table = table_of(&connection).await;
    let put = |row: &str| Put::new(row).add("f", "q", "v").build();
    table.put(&put("r")).await.expect("put");
    table.increment(&Increment::new("r").add("f", "n", 1).build()).await.expect("counted");
    table.append(&Append::new("r").add("f", "a", "x").build()).await.expect("appended");
    let check = CheckAndMutate::if_equals("r", "f", "q", "v").then([put("r")]);
    assert!(table.check(&check).await.expect("checked").processed);
    let puts = ["s", "t"].map(|row| Action::Mutate(put(row)));
    assert!(table.batch(&puts).await.expect("written").iter().all(Result::is_ok));
    let mut scanner = table.scan(Scan::default(), ScanOptions::default());
    while scanner.next().await.expect("scanned").is_some() {}
    assert!(!table.get(&Get::new("r")).await.expect("got").is_empty());
    table.delete(&Delete::new("r").build()).await.expect("deleted");
    assert!(server.terminate().success());
    let (spans, _) = spans(&collector);
    for (name, method) in [
        ("Region.put", "Mutate"),
        ("Region.increment", "Mutate"),
        ("Region.append", "Mutate"),
        ("Region.checkAndMutate", "Mutate"),
        ("Region.batchMutate", "Multi"),
        ("Region.getScanner", "Scan"),
        ("RegionScanner.next", "Scan"),
        ("Region.get", "Get"),
        ("Region.delete", "Mutate"),
    ] {
        let work = spans.iter().filter(is_of_table).find(|span| span.name == name);
        let above = above(&spans, work.unwrap_or_else(|| panic!("no span {name}")));
        let call = format!("hbase.pb.ClientService/{method}");
        assert_eq!(names(&above), [&*call, "RpcServer.process"], "{name}");
        let said =
            ["rpc.system", "rpc.service", "rpc.method"].map(|name| attribute(above[0], name).unwrap_or_default());
        let [system, service, called] = &said;
        assert!(system.contains("HBASE_RPC") && service.contains("hbase.pb.ClientService"), "{name}: {said:?}");
        assert!(called.contains(method), "{name}: {said:?}");
    }
}

#[tokio::test]
async fn flushes_compactions_and_log_rolls_are_parts_of_what_asks_for_them_or_traces_of_their_own() {
    let (scratch, collector) = (Scratch::new("traces-own-work"), Collector::start().expect("a free port"));
    let define = format!("basalt.trace.otlp.endpoint={}", collector.endpoint());
    let server = Server::start(&scratch.0, &[&define]);
    let connection = connect(&server);
    let (admin, table) = (connection.admin(), table_of(&connection).await);
    let region = admin.regions(table.name()).await.expect("listed").remove(0).region;
    for value in ["1", "2"] {
        table.put(&Put::new("r").add("f", "q", value).build()).await.expect("put");
        admin.flush_region(region.name(), None).await.expect("flushed");
    }
    admin.major_compact(table.name()).await.expect("asked");
    while admin.store_files(region.name(), &[Bytes::from("f")]).await.expect("asked").len() > 1 {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    let of = admin.servers().await.expect("asked").remove(0);
    admin.roll_wal(&of).await.expect("rolled");
    assert!(server.terminate().success());
    let (spans, _) = spans(&collector);
    let find = |name: &str| spans.iter().filter(is_of_table).find(|span| span.name == name);
    let flush = find("Region.flush").expect("a flush");
    assert_eq!(names(&above(&spans, flush)), ["hbase.pb.AdminService/FlushRegion", "RpcServer.process"]);
    // A thread of the server's own compacts: whoever asked has his answer already.
    let compaction = find("Region.compact").expect("a compaction");
    assert_eq!((above(&spans, compaction).len(), compaction.parent_span_id.len()), (0, 0), "{compaction:?}");
    // Of OpenTelemetry: 1 internal.
    assert!(compaction.kind == 1 && compaction.start_time_unix_nano < compaction.end_time_unix_nano, "{compaction:?}");
    let rolls = spans.iter().filter(|span| span.name == "WAL.rollWriter");
    let asked: Vec<_> = rolls.filter(|span| !span.parent_span_id.is_empty()).collect();
    let roll = asked.first().expect("a roll that was asked for");
    assert_eq!(names(&above(&spans, roll)), ["hbase.pb.AdminService/RollWALWriter", "RpcServer.process"]);
    assert!(attribute(roll, "db.hbase.wal.impl").is_some_and(|class| class.contains("basalt")), "{roll:?}");
    assert!(asked.iter().chain([&flush, &compaction]).all(|span| span.status.as_ref().is_none_or(|of| of.code != 2)));
}

/// A message of Thrift's binary protocol in a frame: a call of `method` with these arguments.
fn framed(method: &str, arguments: &[u8]) -> Vec<u8> {
    let mut message = vec![0x80, 1, 0, 1];
    message.extend((method.len() as u32).to_be_bytes());
    message.extend(method.as_bytes());
    message.extend([0, 0, 0, 7]);
    message.extend(arguments);
    message.push(0);
    [&(message.len() as u32).to_be_bytes()[..], &message].concat()
}

/// A field with a string.
fn string(id: u8, text: &str) -> Vec<u8> {
    [&[11, 0, id][..], &(text.len() as u32).to_be_bytes(), text.as_bytes()].concat()
}

#[tokio::test]
async fn a_call_of_a_thrift_gateway_is_one_trace_through_both_processes() {
    let (scratch, collector) = (Scratch::new("traces-thrift"), Collector::start().expect("a free port"));
    let define = format!("basalt.trace.otlp.endpoint={}", collector.endpoint());
    // The server traces only what its clients trace.
    let server = Server::start(&scratch.0, &[&define, "basalt.trace.sampler.ratio=0"]);
    let connection = connect(&server);
    let table = table_of(&connection).await;
    table.put(&Put::new("r").add("f", "q", "kept").build()).await.expect("put");
    let of_row = [&[12, 0, 2][..], &string(1, "r"), &[0]].concat();
    let interfaces = [
        ("thrift", "getRow", [string(1, "traced"), string(2, "r")].concat(), "Hbase"),
        ("thrift2", "get", [string(1, "traced"), of_row].concat(), "THBaseService"),
    ];
    for (interface, method, arguments, _) in &interfaces {
        let name = format!("basalt.trace.service.name={interface}");
        let words = ["-D", &define, "-D", &name, interface, "-hsha", "-p", "0", "--infoport", "0", "start"];
        let gateway = Gateway::start(&server, &words);
        let mut client = TcpStream::connect(&gateway.address).expect("it listens");
        let mut ask = |message: Vec<u8>| {
            client.write_all(&message).expect("sent");
            let mut len = [0; 4];
            client.read_exact(&mut len).expect("a frame");
            let mut reply = vec![0; u32::from_be_bytes(len) as usize];
            client.read_exact(&mut reply).expect("a frame");
            String::from_utf8_lossy(&reply).into_owned()
        };
        assert!(ask(framed(method, arguments)).contains("kept"), "{interface}");
        assert!(ask(framed("noSuchMethod", &[])).contains("Invalid method name"), "{interface}");
        drop(client);
        gateway.terminate();
    }
    assert!(server.terminate().success());
    let (spans, services) = spans(&collector);
    assert!(
        !spans.iter().any(|span| span.name.contains("noSuchMethod")),
        "a name that means nothing is none for a span"
    );
    for (interface, method, _, service) in interfaces {
        assert!(services.iter().any(|name| name.contains(&format!("\"{interface}\""))), "{services:?}");
        let name = format!("{service}/{method}");
        let call = spans.iter().find(|span| span.name == name).unwrap_or_else(|| panic!("no span {name}"));
        // Of OpenTelemetry: 2 server.
        assert_eq!((call.kind, call.parent_span_id.len()), (2, 0), "{call:?}");
        for (key, value) in [("rpc.system", "apache_thrift"), ("rpc.service", service), ("rpc.method", method)] {
            assert!(attribute(call, key).is_some_and(|said| said.contains(value)), "{key}: {call:?}");
        }
        let of_trace = |span: &&Span| span.trace_id == call.trace_id && span.name == "Region.get";
        let read = spans.iter().filter(is_of_table).find(of_trace).expect("the row was read within it");
        let expected = [
            "hbase.pb.ClientService/Get",
            "RpcServer.process",
            "hbase.pb.ClientService/Get",
            "GET default:traced",
            &*name,
        ];
        assert_eq!(names(&above(&spans, read)), expected);
    }
}

#[tokio::test]
async fn procedures_are_parts_of_the_calls_that_ask_for_them_and_so_is_what_they_do_with_regions() {
    let (scratch, collector) = (Scratch::new("traces-procedures"), Collector::start().expect("a free port"));
    let define = format!("basalt.trace.otlp.endpoint={}", collector.endpoint());
    let server = Server::start(&scratch.0, &[&define]);
    let connection = connect(&server);
    let (admin, name) = (connection.admin(), TableName::parse("traced").expect("a name"));
    admin.create_table(&TableDescriptor::new(name.clone(), [FamilyDescriptor::new("f")]), &[]).await.expect("created");
    let put = Put::new("r").add("f", "q", "v").build();
    connection.table(&name).put(&put).await.expect("put");
    admin.disable_table(&name).await.expect("disabled");
    assert!(server.terminate().success());
    let (spans, _) = spans(&collector);
    let of_table = |span: &&Span| format!("{:?}", span.attributes).contains("traced,,");
    let find = |name: &str| spans.iter().filter(of_table).find(|span| span.name == name);
    let opened = find("AssignRegionHandler").expect("a region was opened");
    let chain = names(&above(&spans, opened));
    assert_eq!(chain, ["CreateTableProcedure", "hbase.pb.MasterService/CreateTable", "RpcServer.process"]);
    let closed = find("UnassignRegionHandler").expect("a region was closed");
    let chain = names(&above(&spans, closed));
    assert!(chain.contains(&"DisableTableProcedure"), "{chain:?}");
    let create = spans.iter().find(|span| span.name == "CreateTableProcedure").expect("it was run");
    let attributes = format!("{:?}", create.attributes);
    assert!(attributes.contains("procId") && attributes.contains("parentProcId"), "{attributes}");
}

#[tokio::test]
async fn a_request_to_a_gateway_is_one_trace_through_both_processes() {
    let (scratch, collector) = (Scratch::new("traces-gateway"), Collector::start().expect("a free port"));
    let define = format!("basalt.trace.otlp.endpoint={}", collector.endpoint());
    let server = Server::start(&scratch.0, &[&define, "basalt.trace.sampler.ratio=0"]);
    let connection = connect(&server);
    let name = TableName::parse("traced").expect("a name");
    let table = TableDescriptor::new(name.clone(), [FamilyDescriptor::new("f")]);
    connection.admin().create_table(&table, &[]).await.expect("created");
    connection.table(&name).put(&Put::new("r").add("f", "q", "v").build()).await.expect("put");
    let words = ["-D", &define, "-D", "basalt.trace.service.name=gateway", "rest", "start", "-p", "0", "-i", "0"];
    let rest = Gateway::start(&server, &words);
    let parent = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
    let mut client = TcpStream::connect(&rest.address).expect("it listens");
    let head = "Host: x\r\nAccept: application/json\r\nConnection: close\r\n";
    write!(client, "GET /traced/r HTTP/1.1\r\n{head}traceparent: {parent}\r\n\r\n").expect("written");
    let mut answer = String::new();
    client.read_to_string(&mut answer).expect("an answer");
    assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    rest.terminate();
    assert!(server.terminate().success());
    let (spans, services) = spans(&collector);
    assert!(services.iter().any(|name| name.contains("gateway")) && services.iter().any(|name| name.contains("hbase")));
    // The server traces nothing by itself: all of it is what the client of the gateway asked for.
    let trace = 0x4bf9_2f35_77b3_4da6_a3ce_929d_0e0e_4736_u128.to_be_bytes();
    assert!(spans.iter().all(|span| span.trace_id == trace), "{spans:?}");
    let read =
        spans.iter().find(|span| span.name == "Region.get" && format!("{:?}", span.attributes).contains("traced,,"));
    let above = above(&spans, read.expect("the row was read"));
    let expected = [
        "hbase.pb.ClientService/Get",
        "RpcServer.process",
        "hbase.pb.ClientService/Get",
        "GET default:traced",
        "GET /*",
    ];
    assert_eq!(names(&above), expected);
    assert_eq!(above[4].parent_span_id, 0x00f0_67aa_0ba9_02b7_u64.to_be_bytes());
    let kinds: Vec<i32> = above.iter().map(|span| span.kind).collect();
    // Of OpenTelemetry: 2 server, 3 client.
    assert_eq!(kinds, [2, 2, 3, 3, 2]);
    let told = format!("{:?}", above[3].attributes);
    assert!(told.contains("db.operation") && told.contains("db.hbase.table"), "{told}");
}

#[tokio::test]
async fn a_collector_that_is_away_costs_nobody_anything() {
    let scratch = Scratch::new("traces-away");
    // A port that nobody listens on.
    let [port] = testkit::free_ports().expect("a port");
    let server = Server::start(&scratch.0, &[&format!("basalt.trace.otlp.endpoint=http://127.0.0.1:{port}")]);
    let connection = connect(&server);
    let name = TableName::parse("t").expect("a name");
    let table = TableDescriptor::new(name.clone(), [FamilyDescriptor::new("f")]);
    connection.admin().create_table(&table, &[]).await.expect("created");
    for row in 0..700 {
        let put = Put::new(format!("{row:05}")).add("f", "q", "v").build();
        connection.table(&name).put(&put).await.expect("put");
    }
    assert!(server.terminate().success(), "it stops as ever");
}
