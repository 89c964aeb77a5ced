//! What a request says, in a line. Follows: `ProtobufUtil#getSlowLogParams`, `ProtobufUtil#getShortTextFormat`, `TextFormat`.

use bytes::Bytes;
use cell::print::to_string_binary;
use proto::methods::{Method, MethodInfo, Service};
use proto::{Message, pb};
use rpc::AnsweredCall;

/// A request, described.
#[derive(Debug, Default)]
pub(super) struct Described {
    pub param: String,
    pub region: String,
    pub gets: i32,
    pub mutations: i32,
    pub service_calls: i32,
    pub scan: Option<pb::Scan>,
}

/// `Get(org.apache...ClientProtos$GetRequest)`.
pub(super) fn call_details(method: &MethodInfo) -> String {
    format!("{}({})", method.name, class_name(method))
}

/// The Java class of a method's requests.
fn class_name(method: &MethodInfo) -> String {
    let file = if method.service == Service::Client { "ClientProtos" } else { "AdminProtos" };
    format!("org.apache.hadoop.hbase.shaded.protobuf.generated.{file}${}", method.request)
}

/// What the slow log keeps of a request. One that cannot be read is described by its class.
pub(super) fn describe(call: &AnsweredCall<'_>) -> Described {
    let described = match call.method.method {
        Method::ClientScan => decoded(call).map(scan),
        Method::ClientGet => decoded(call).map(|request: pb::GetRequest| on_row(&request.region, &request.get.row)),
        Method::ClientMutate => decoded(call).map(|request: pb::MutateRequest| {
            let row = request.mutation.row.unwrap_or_default();
            on_row(&request.region, &row)
        }),
        Method::ClientMulti => decoded(call).map(multi),
        Method::ClientExecService => decoded(call).map(service),
        _ => None,
    };
    described.unwrap_or_else(|| Described { param: format!("class {}", class_name(call.method)), ..Default::default() })
}

/// The same as the server's log has it.
pub(super) fn short_text(call: &AnsweredCall<'_>) -> String {
    match call.method.method {
        Method::ClientMulti => {
            let Some(request) = decoded::<pb::MultiRequest>(call) else { return class_name(call.method) };
            let first = request.region_action.first().and_then(|action| action.action.first());
            let row = first.and_then(|action| match (&action.get, &action.mutation) {
                (Some(get), _) => Some(get.row.clone()),
                (None, Some(mutation)) => mutation.row.clone(),
                (None, None) => None,
            });
            format!("{} and 1st row key={}", multi(request).param, to_string_binary(&row.unwrap_or_default()))
        }
        // One blank less.
        Method::ClientGet | Method::ClientMutate => describe(call).param.replacen(", row= ", ", row=", 1),
        Method::ClientScan | Method::ClientExecService => describe(call).param,
        // HBase's own words for a message that it has no short text for.
        _ => format!("TODO: class {}", class_name(call.method)),
    }
}

fn decoded<M: Message + Default>(call: &AnsweredCall<'_>) -> Option<M> {
    M::decode(call.param.clone()).ok()
}

fn on_row(region: &pb::RegionSpecifier, row: &[u8]) -> Described {
    let region = to_string_binary(&region.value);
    Described { param: format!("region= {region}, row= {}", to_string_binary(row)), region, ..Described::default() }
}

fn multi(request: pb::MultiRequest) -> Described {
    let actions: Vec<&pb::Action> = request.region_action.iter().flat_map(|action| &action.action).collect();
    let count = |of: fn(&pb::Action) -> bool| actions.iter().filter(|action| of(action)).count() as i32;
    let region = request.region_action.first().map(|action| to_string_binary(&action.region.value)).unwrap_or_default();
    Described {
        param: format!("region= {region}, for {} action(s)", actions.len()),
        region,
        gets: count(|action| action.get.is_some()),
        mutations: count(|action| action.mutation.is_some()),
        service_calls: count(|action| action.service_call.is_some()),
        scan: None,
    }
}

fn service(request: pb::CoprocessorServiceRequest) -> Described {
    let call = &request.call;
    Described { param: format!("coprocessorService= {}:{}", call.service_name, call.method_name), ..Default::default() }
}

fn scan(request: pb::ScanRequest) -> Described {
    let region = request.region.as_ref().map(|region| to_string_binary(&region.value)).unwrap_or_default();
    Described { param: scan_text(&request), region, scan: request.scan, ..Described::default() }
}

/// The fields of a message that are set, in the order of their numbers.
#[derive(Default)]
struct Text(Vec<String>);

impl Text {
    fn add(&mut self, name: &str, value: Option<impl std::fmt::Display>) {
        self.0.extend(value.map(|value| format!("{name}: {value}")));
    }

    fn bytes(&mut self, name: &str, value: Option<&Bytes>) {
        self.0.extend(value.map(|value| format!("{name}: \"{}\"", escaped(value))));
    }

    fn message(&mut self, name: &str, inner: Text) {
        self.0.push(format!("{name} {{ {} }}", inner.0.join(" ")));
    }
}

/// Bytes as protobuf's text format escapes them.
fn escaped(bytes: &[u8]) -> String {
    let mut out = String::with_capacity(bytes.len());
    for byte in bytes {
        match byte {
            b'\n' => out += "\\n",
            b'\r' => out += "\\r",
            b'\t' => out += "\\t",
            b'"' | b'\'' | b'\\' => out.extend(['\\', char::from(*byte)]),
            0x20..=0x7E => out.push(char::from(*byte)),
            _ => out += &format!("\\{byte:03o}"),
        }
    }
    out
}

fn scan_text(request: &pb::ScanRequest) -> String {
    let mut text = Text::default();
    if let Some(region) = &request.region {
        let mut inner = Text::default();
        inner.add("type", Some(region.r#type().as_str_name()));
        inner.bytes("value", Some(&region.value));
        text.message("region", inner);
    }
    if let Some(scan) = &request.scan {
        text.message("scan", scan_fields(scan));
    }
    text.add("scanner_id", request.scanner_id);
    text.add("number_of_rows", request.number_of_rows);
    text.add("close_scanner", request.close_scanner);
    text.add("next_call_seq", request.next_call_seq);
    text.add("client_handles_partials", request.client_handles_partials);
    text.add("client_handles_heartbeats", request.client_handles_heartbeats);
    text.add("track_scan_metrics", request.track_scan_metrics);
    text.add("renew", request.renew);
    text.add("limit_of_rows", request.limit_of_rows);
    text.0.join(" ")
}

fn scan_fields(scan: &pb::Scan) -> Text {
    let mut text = Text::default();
    for column in &scan.column {
        let mut inner = Text::default();
        inner.bytes("family", Some(&column.family));
        column.qualifier.iter().for_each(|qualifier| inner.bytes("qualifier", Some(qualifier)));
        text.message("column", inner);
    }
    for attribute in &scan.attribute {
        let mut inner = Text::default();
        inner.add("name", Some(format!("\"{}\"", attribute.name)));
        inner.bytes("value", attribute.value.as_ref());
        text.message("attribute", inner);
    }
    text.bytes("start_row", scan.start_row.as_ref());
    text.bytes("stop_row", scan.stop_row.as_ref());
    if let Some(filter) = &scan.filter {
        let mut inner = Text::default();
        inner.add("name", Some(format!("\"{}\"", filter.name)));
        inner.bytes("serialized_filter", filter.serialized_filter.as_ref());
        text.message("filter", inner);
    }
    if let Some(range) = &scan.time_range {
        let mut inner = Text::default();
        inner.add("from", range.from);
        inner.add("to", range.to);
        text.message("time_range", inner);
    }
    text.add("max_versions", scan.max_versions);
    text.add("cache_blocks", scan.cache_blocks);
    text.add("batch_size", scan.batch_size);
    text.add("max_result_size", scan.max_result_size);
    text.add("store_limit", scan.store_limit);
    text.add("store_offset", scan.store_offset);
    text.add("load_column_families_on_demand", scan.load_column_families_on_demand);
    text.add("reversed", scan.reversed);
    text.add("caching", scan.caching);
    text.add("allow_partial_results", scan.allow_partial_results);
    text.add("mvcc_read_point", scan.mvcc_read_point);
    text.add("include_start_row", scan.include_start_row);
    text.add("include_stop_row", scan.include_stop_row);
    text.add("readType", scan.read_type.map(|_| scan.read_type().as_str_name()));
    text.add("need_cursor_result", scan.need_cursor_result);
    text.add("query_metrics_enabled", scan.query_metrics_enabled);
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What HBase 2.6.4 wrote to hbase:slowlog for a scan of its own client.
    #[test]
    fn a_scan_reads_as_hbase_writes_it() {
        let scan = pb::Scan {
            attribute: vec![pb::NameBytesPair {
                name: "_isolationlevel_".into(),
                value: Some(Bytes::from_static(b"\0")),
            }],
            start_row: Some(Bytes::from("a")),
            time_range: Some(pb::TimeRange { from: Some(0), to: Some(i64::MAX as u64) }),
            max_versions: Some(1),
            cache_blocks: Some(true),
            max_result_size: Some(2_097_152),
            caching: Some(2_147_483_647),
            include_stop_row: Some(false),
            query_metrics_enabled: Some(false),
            ..pb::Scan::default()
        };
        let request = pb::ScanRequest {
            region: Some(pb::RegionSpecifier {
                r#type: pb::region_specifier::RegionSpecifierType::RegionName as i32,
                value: Bytes::from("slow,,1795575954366.f38ab31acecaba654084f311c77108d0."),
            }),
            scan: Some(scan),
            number_of_rows: Some(2_147_483_647),
            close_scanner: Some(false),
            client_handles_partials: Some(true),
            client_handles_heartbeats: Some(true),
            track_scan_metrics: Some(false),
            ..pb::ScanRequest::default()
        };
        assert_eq!(
            scan_text(&request),
            "region { type: REGION_NAME value: \"slow,,1795575954366.f38ab31acecaba654084f311c77108d0.\" } scan { attribute { \
             name: \"_isolationlevel_\" value: \"\\000\" } start_row: \"a\" time_range { from: 0 to: 9223372036854775807 } \
             max_versions: 1 cache_blocks: true max_result_size: 2097152 caching: 2147483647 include_stop_row: false \
             query_metrics_enabled: false } number_of_rows: 2147483647 close_scanner: false client_handles_partials: true \
             client_handles_heartbeats: true track_scan_metrics: false"
        );
    }
}
