//! Calls to a server process as a collector of OpenTelemetry sees them.
#![allow(clippy::disallowed_methods, reason = "tests of a process work on real sockets")]

use crate::common::{Scratch, Server};
use crate::metrics::connect;
use client::Put;
use model::{FamilyDescriptor, Get, TableDescriptor, TableName};
use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest;
use opentelemetry_proto::tonic::trace::v1::Span;
use prost::Message;
use std::net::TcpListener;
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
