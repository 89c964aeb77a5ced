//! Calls to a server process as a collector of OpenTelemetry sees them.
#![allow(clippy::disallowed_methods, reason = "tests of a process work on real sockets")]

use crate::common::{Scratch, Server};
use crate::gateways::Gateway;
use crate::metrics::connect;
use client::Put;
use model::{FamilyDescriptor, Get, TableDescriptor, TableName};
use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest;
use opentelemetry_proto::tonic::trace::v1::Span;
use prost::Message;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
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
    let port = TcpListener::bind("127.0.0.1:0").and_then(|listener| listener.local_addr()).expect("a free port").port();
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
