//! Coprocessor endpoints of a running server, spoken to as their Java clients do: ExecService, and calls in a batch.

use crate::common::{Scratch, Server, Tester, specifier};
use bytes::Bytes;
use cell::{CellBlock, CellSpec, CellType};
use model::{Endpoint, FamilyDescriptor, TableDescriptor, TableName};
use proto::methods::Method;
use proto::pb;
use proto::pb::bulk_delete_request::DeleteType;
use proto::pb::mutation_proto::{ColumnValue, MutationType, column_value::QualifierValue};
use rpc::client::ClientError;

const UNKNOWN: &str = "org.apache.hadoop.hbase.exceptions.UnknownProtocolException";
const DO_NOT_RETRY: &str = "org.apache.hadoop.hbase.DoNotRetryIOException";
const WRONG_REGION: &str = "org.apache.hadoop.hbase.regionserver.WrongRegionException";

fn class(error: &ClientError) -> &str {
    error.class().unwrap_or_else(|| panic!("not the server's: {error}"))
}

fn bytes(text: &str) -> Bytes {
    Bytes::copy_from_slice(text.as_bytes())
}

async fn create(tester: &Tester, name: &str, splits: &[&str], coprocessors: &[&str]) -> Result<Vec<Bytes>, String> {
    let family = |name: &'static str| FamilyDescriptor::new(name).with("VERSIONS", "5");
    let mut table = TableDescriptor::new(TableName::parse(name).expect("legal"), [family("f"), family("g")]);
    for (at, class) in coprocessors.iter().enumerate() {
        let key = format!("coprocessor${}", at + 1);
        table.attributes.insert(Bytes::from(key), Bytes::from(format!("|{class}|1073741823|")));
    }
    if name.starts_with("unchecked") {
        table.attributes.insert(Bytes::from("hbase.table.sanity.checks"), Bytes::from("false"));
    }
    let request = pb::CreateTableRequest {
        table_schema: convert::to_proto::table(&table),
        split_keys: splits.iter().map(|key| bytes(key)).collect(),
        ..pb::CreateTableRequest::default()
    };
    let created: Result<pb::CreateTableResponse, _> = tester.master_call(Method::MasterCreateTable, &request).await;
    let created = created.map_err(|error| error.to_string())?;
    tester.finish(created.proc_id.expect("a procedure")).await?;
    Ok(tester.regions(name).await)
}

fn all_classes() -> Vec<&'static str> {
    Endpoint::ALL.into_iter().map(Endpoint::class).collect()
}

async fn exec<M: prost::Message + Default>(
    tester: &Tester,
    region: &[u8],
    service: &str,
    method: &str,
    request: &impl prost::Message,
) -> Result<(String, M), ClientError> {
    let call = service_call(service, method, request);
    let request = pb::CoprocessorServiceRequest { region: specifier(region), call };
    let reply = tester.region_call(Method::ClientExecService, &request, None).await?;
    let response: pb::CoprocessorServiceResponse = reply.decode()?;
    assert_eq!(&response.region.value[..], region);
    let value = response.value.value.expect("a value");
    Ok((response.value.name, M::decode(value).expect("the method's response")))
}

fn service_call(service: &str, method: &str, request: &impl prost::Message) -> pb::CoprocessorServiceCall {
    pb::CoprocessorServiceCall {
        row: Bytes::new(),
        service_name: service.to_owned(),
        method_name: method.to_owned(),
        request: Bytes::from(request.encode_to_vec()),
    }
}

async fn put(tester: &Tester, region: &[u8], row: &str, cells: &[(&str, &str, i64, &[u8])]) {
    let specs = cells.iter().map(|(family, qualifier, timestamp, value)| CellSpec {
        row: row.as_bytes(),
        family: family.as_bytes(),
        qualifier: qualifier.as_bytes(),
        timestamp: *timestamp,
        type_code: CellType::Put.code(),
        value,
        tags: b"",
    });
    let mutation = pb::MutationProto {
        row: Some(bytes(row)),
        mutate_type: Some(MutationType::Put as i32),
        associated_cell_count: Some(cells.len() as i32),
        ..pb::MutationProto::default()
    };
    let request = pb::MutateRequest { region: specifier(region), mutation, ..pb::MutateRequest::default() };
    let block = CellBlock::from_specs(specs);
    tester.region_call(Method::ClientMutate, &request, Some(&block)).await.expect("put");
}

/// What a region holds, as `row/family:qualifier/timestamp`.
async fn listing(tester: &Tester, region: &[u8]) -> Vec<String> {
    let scan = pb::Scan { max_versions: Some(5), ..pb::Scan::default() };
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let cells = tester.scan(region, scan).await.expect("scan");
    let shown = cells.iter().map(|cell| {
        format!("{}/{}:{}/{}", text(cell.row()), text(cell.family()), text(cell.qualifier()), cell.timestamp())
    });
    shown.collect()
}

fn write(kind: MutationType, row: &str, value: &str) -> pb::MutationProto {
    let value = QualifierValue {
        qualifier: Some(bytes("q")),
        value: Some(bytes(value)),
        delete_type: (kind == MutationType::Delete)
            .then_some(pb::mutation_proto::DeleteType::DeleteMultipleVersions as i32),
        ..QualifierValue::default()
    };
    pb::MutationProto {
        row: Some(bytes(row)),
        mutate_type: Some(kind as i32),
        column_value: vec![ColumnValue { family: bytes("f"), qualifier_value: vec![value] }],
        ..pb::MutationProto::default()
    }
}

fn condition(row: &str, op: pb::CompareType, value: &str) -> pb::Condition {
    let comparator = pb::BinaryComparator { comparable: pb::ByteArrayComparable { value: Some(bytes(value)) } };
    pb::Condition {
        row: bytes(row),
        family: Some(bytes("f")),
        qualifier: Some(bytes("q")),
        compare_type: Some(op as i32),
        comparator: Some(pb::Comparator {
            name: "org.apache.hadoop.hbase.filter.BinaryComparator".to_owned(),
            serialized_comparator: Some(Bytes::from(prost::Message::encode_to_vec(&comparator))),
        }),
        ..pb::Condition::default()
    }
}

async fn mutate_rows(
    tester: &Tester,
    region: &[u8],
    mutations: &[pb::MutationProto],
    conditions: &[pb::Condition],
) -> Result<bool, ClientError> {
    let request = pb::MutateRowsRequest {
        mutation_request: mutations.to_vec(),
        condition: conditions.to_vec(),
        ..pb::MutateRowsRequest::default()
    };
    let (name, response): (_, pb::MutateRowsResponse) =
        exec(tester, region, "MultiRowMutationService", "MutateRows", &request).await?;
    assert_eq!(name, "org.apache.hadoop.hbase.protobuf.generated.MultiRowMutationProtos$MutateRowsResponse");
    Ok(response.processed())
}

#[tokio::test]
async fn rows_are_mutated_together_under_conditions() {
    use MutationType::{Append, Delete, Put};
    let scratch = Scratch::new("multi-row");
    let server = Server::start(&scratch.join("data"), &[]);
    let tester = Tester::connect(&server).await;
    let regions = create(&tester, "t", &["m"], &[Endpoint::MultiRowMutation.class()]).await.expect("the table");
    let (low, high) = (&regions[0][..], &regions[1][..]);
    let value = |row: &'static str| {
        let tester = &tester;
        async move { tester.get(low, row).await.expect("get").map(|v| String::from_utf8(v).expect("text")) }
    };

    assert!(mutate_rows(&tester, low, &[write(Put, "a", "1"), write(Put, "b", "2")], &[]).await.expect("both"));
    assert_eq!((value("a").await.as_deref(), value("b").await.as_deref()), (Some("1"), Some("2")));
    let mixed = [write(Delete, "a", ""), write(Append, "b", "+"), write(Put, "c", "3")];
    assert!(mutate_rows(&tester, low, &mixed, &[]).await.expect("delete, append and put"));
    assert_eq!((value("a").await, value("b").await.as_deref()), (None, Some("2+")));

    // Conditions may look at any row of the region; all must hold. Read as `value OP cell`.
    use pb::CompareType::{Equal, Greater, Less, NotEqual};
    for (conditions, held) in [
        (vec![condition("c", Equal, "3")], true),
        (vec![condition("c", Equal, "3"), condition("b", Equal, "no")], false),
        (vec![condition("c", Less, "2")], true),
        (vec![condition("c", Greater, "2")], false),
        (vec![condition("ghost", Equal, "")], true),
        (vec![condition("ghost", NotEqual, "")], true),
        (vec![condition("c", NotEqual, "")], false),
        (vec![condition("ghost", NotEqual, "x")], false),
    ] {
        let before = value("d").await;
        let new = format!("{}!", before.clone().unwrap_or_default());
        let processed = mutate_rows(&tester, low, &[write(Put, "d", &new)], &conditions).await.expect("a verdict");
        assert_eq!(processed, held, "{conditions:?}");
        assert_eq!(value("d").await, if held { Some(new) } else { before }, "{conditions:?}");
    }

    // All or nothing; and whose rows they are.
    let mut stranger = write(Put, "f", "1");
    stranger.column_value[0].family = bytes("x");
    let error = mutate_rows(&tester, low, &[write(Put, "e", "1"), stranger], &[]).await.expect_err("an unknown family");
    assert_eq!(class(&error), "org.apache.hadoop.hbase.regionserver.NoSuchColumnFamilyException");
    let error = mutate_rows(&tester, low, &[write(Put, "z", "1"), write(Put, "e", "1")], &[]).await.expect_err("z");
    assert_eq!(class(&error), WRONG_REGION);
    let error = mutate_rows(&tester, low, &[write(Put, "e", "1"), write(Put, "z", "1")], &[]).await.expect_err("z");
    assert_eq!(class(&error), DO_NOT_RETRY);
    let error = mutate_rows(&tester, low, &[write(Put, "e", "1")], &[condition("z", Equal, "")]).await.expect_err("z");
    assert_eq!(class(&error), WRONG_REGION);
    assert_eq!(value("e").await, None);
    assert!(listing(&tester, high).await.is_empty());

    // hbase:meta has the endpoint by itself.
    assert!(mutate_rows(&tester, b"hbase:meta,,1", &[], &[]).await.expect("nothing to do"));
}

#[tokio::test]
async fn rows_mutated_together_survive_a_kill_together() {
    let scratch = Scratch::new("multi-row-kill");
    let root = scratch.join("data");
    let server = Server::start(&root, &[]);
    let tester = Tester::connect(&server).await;
    let regions = create(&tester, "t", &[], &[Endpoint::MultiRowMutation.class()]).await.expect("the table");
    for i in 0..20 {
        let value = i.to_string();
        let writes = [write(MutationType::Put, "a", &value), write(MutationType::Put, "b", &value)];
        assert!(mutate_rows(&tester, &regions[0], &writes, &[]).await.expect("both"));
    }
    server.kill();
    let server = Server::start(&root, &[]);
    let tester = Tester::connect(&server).await;
    for row in ["a", "b"] {
        assert_eq!(tester.get(&regions[0], row).await.expect("get").as_deref(), Some(&b"19"[..]));
    }
}

fn aggregate_request(interpreter: &str, column: pb::Column) -> pb::AggregateRequest {
    pb::AggregateRequest {
        interpreter_class_name: format!("org.apache.hadoop.hbase.client.coprocessor.{interpreter}"),
        scan: pb::Scan { column: vec![column], ..pb::Scan::default() },
        interpreter_specific_bytes: Some(Bytes::new()),
        ..pb::AggregateRequest::default()
    }
}

fn column(qualifiers: &[&str]) -> pb::Column {
    pb::Column { family: bytes("f"), qualifier: qualifiers.iter().map(|q| bytes(q)).collect() }
}

async fn aggregate(
    tester: &Tester,
    region: &[u8],
    method: &str,
    request: &pb::AggregateRequest,
) -> Result<pb::AggregateResponse, ClientError> {
    let (name, response) = exec(tester, region, "AggregateService", method, request).await?;
    assert_eq!(name, "org.apache.hadoop.hbase.protobuf.generated.AggregateProtos$AggregateResponse");
    Ok(response)
}

fn long(value: i64) -> Bytes {
    Bytes::from(prost::Message::encode_to_vec(&pb::LongMsg { long_msg: value }))
}

fn double(value: f64) -> Bytes {
    Bytes::from(prost::Message::encode_to_vec(&pb::DoubleMsg { double_msg: value }))
}

fn decimal(unscaled: &[u8], scale: i32) -> Bytes {
    let number = Bytes::from([&scale.to_be_bytes()[..], unscaled].concat());
    Bytes::from(prost::Message::encode_to_vec(&pb::BigDecimalMsg { bigdecimal_msg: number }))
}

fn count(value: u64) -> Bytes {
    Bytes::copy_from_slice(&value.to_be_bytes())
}

#[tokio::test]
async fn columns_are_aggregated() {
    let scratch = Scratch::new("aggregate");
    let server = Server::start(&scratch.join("data"), &[]);
    let tester = Tester::connect(&server).await;
    let regions = create(&tester, "t", &["m"], &all_classes()).await.expect("the table");
    let (full, empty) = (&regions[0][..], &regions[1][..]);
    for (row, number) in [("a", 5i64), ("b", -7), ("c", 20), ("d", 2)] {
        let float = number as f64 / 4.0;
        let decimal = [&3i32.to_be_bytes()[..], &(number * 1000 + 5).to_be_bytes()].concat();
        let cells: [(&str, &str, i64, &[u8]); 4] = [
            ("f", "long", 1, &number.to_be_bytes()),
            ("f", "double", 1, &float.to_be_bytes()),
            ("f", "decimal", 1, &decimal),
            ("g", "q", 1, b"other"),
        ];
        put(&tester, full, row, &cells).await;
    }
    // Values of another length are passed over, but the row is one.
    put(&tester, full, "e", &[("f", "long", 1, b"short"), ("f", "double", 1, b"short")]).await;

    let request = aggregate_request("LongColumnInterpreter", column(&["long"]));
    for (method, first_part, second_part) in [
        ("GetMax", vec![long(20)], None),
        ("GetMin", vec![long(-7)], None),
        ("GetSum", vec![long(20)], None),
        ("GetRowNum", vec![count(5)], None),
        ("GetAvg", vec![long(20)], Some(count(5))),
        ("GetStd", vec![long(20), long(25 + 49 + 400 + 4)], Some(count(5))),
        ("GetMedian", vec![long(20), long(i64::MIN)], None),
    ] {
        let response = aggregate(&tester, full, method, &request).await.expect(method);
        assert_eq!((response.first_part, response.second_part), (first_part, second_part), "{method}");
        assert_eq!(response.next_chunk_start_row, None);
        if method != "GetRowNum" {
            let response = aggregate(&tester, empty, method, &request).await.expect(method);
            assert_eq!(response, pb::AggregateResponse::default(), "{method} of nothing");
        }
    }
    let request = aggregate_request("DoubleColumnInterpreter", column(&["double"]));
    for (method, first_part) in [
        ("GetMax", vec![double(5.0)]),
        ("GetMin", vec![double(-1.75)]),
        ("GetSum", vec![double(5.0)]),
        ("GetMedian", vec![double(5.0), double(f64::from_bits(1))]),
    ] {
        assert_eq!(aggregate(&tester, full, method, &request).await.expect(method).first_part, first_part, "{method}");
    }
    // Each value is rounded half to even as it is read: 5.005 is 5.00, -6.995 is -7.00, 20.005 is 20.00, 2.005 is 2.00.
    let request = aggregate_request("BigDecimalColumnInterpreter", column(&["decimal"]));
    for (method, first_part) in [
        ("GetMax", vec![decimal(&[0x07, 0xD0], 2)]),
        ("GetMin", vec![decimal(&[0xFD, 0x44], 2)]),
        ("GetSum", vec![decimal(&[0x07, 0xD0], 2)]),
        ("GetStd", vec![decimal(&[0x07, 0xD0], 2), decimal(&[0x00, 0xBA, 0xB8], 2)]),
        ("GetMedian", vec![decimal(&[0x07, 0xD0], 2), decimal(&[49], 325)]),
    ] {
        assert_eq!(aggregate(&tester, full, method, &request).await.expect(method).first_part, first_part, "{method}");
    }

    // Range, filter by column, whole family; a count needs no family.
    let mut request = aggregate_request("LongColumnInterpreter", column(&["long"]));
    request.scan.start_row = Some(bytes("b"));
    request.scan.stop_row = Some(bytes("d"));
    assert_eq!(aggregate(&tester, full, "GetSum", &request).await.expect("sum").first_part, [long(13)]);
    request.client_supports_partial_result = Some(true);
    assert_eq!(aggregate(&tester, full, "GetRowNum", &request).await.expect("count").first_part, [count(2)]);
    let counting = pb::AggregateRequest { interpreter_class_name: "any".to_owned(), ..pb::AggregateRequest::default() };
    assert_eq!(aggregate(&tester, full, "GetRowNum", &counting).await.expect("count").first_part, [count(5)]);
    assert_eq!(aggregate(&tester, empty, "GetRowNum", &counting).await.expect("count").first_part, [count(0)]);

    let error = aggregate(&tester, full, "GetSum", &counting).await.expect_err("an unknown interpreter");
    assert_eq!(class(&error), "java.io.IOException");
    assert!(error.to_string().contains("ClassNotFoundException: any"), "{error}");
    let mut familyless = aggregate_request("LongColumnInterpreter", column(&[]));
    familyless.scan.column.clear();
    let error = aggregate(&tester, full, "GetSum", &familyless).await.expect_err("no family");
    assert_eq!(class(&error), DO_NOT_RETRY);
    let request = aggregate_request("BigDecimalColumnInterpreter", pb::Column { family: bytes("g"), ..column(&[]) });
    let error = aggregate(&tester, empty, "GetSum", &request).await;
    assert_eq!(error.expect("nothing to read"), pb::AggregateResponse::default());

    // The two counts of RowCountService.
    for (method, expected) in [("getRowCount", 5), ("getKeyValueCount", 18)] {
        let (name, response): (_, pb::CountResponse) =
            exec(&tester, full, "RowCountService", method, &pb::CountRequest {}).await.expect(method);
        assert_eq!(name, "org.apache.hadoop.hbase.coprocessor.example.generated.ExampleProtos$CountResponse");
        assert_eq!(response.count, expected, "{method}");
    }
}

#[tokio::test]
async fn a_wide_row_is_aggregated_piece_by_piece() {
    let scratch = Scratch::new("aggregate-wide");
    let server = Server::start(&scratch.join("data"), &[]);
    let tester = Tester::connect(&server).await;
    let regions = create(&tester, "t", &[], &all_classes()).await.expect("the table");
    // Several megabytes in each row, many times what is looked at together.
    let rows = 3;
    for row in 0..rows {
        for part in 0..10 {
            let qualifiers: Vec<String> = (0..5_000).map(|at| format!("{:05}", part * 5_000 + at)).collect();
            let one = 1i64.to_be_bytes();
            let cells: Vec<(&str, &str, i64, &[u8])> =
                qualifiers.iter().map(|qualifier| ("f", qualifier.as_str(), 1, &one[..])).collect();
            put(&tester, &regions[0], &format!("row{row}"), &cells).await;
        }
    }
    let request = aggregate_request("LongColumnInterpreter", column(&[]));
    let response = aggregate(&tester, &regions[0], "GetStd", &request).await.expect("std");
    assert_eq!(response.first_part, [long(rows * 50_000), long(rows * 50_000 * 50_000)]);
    assert_eq!(response.second_part, Some(count(rows as u64)));
}

async fn bulk_delete(
    tester: &Tester,
    region: &[u8],
    request: &pb::BulkDeleteRequest,
) -> Result<pb::BulkDeleteResponse, ClientError> {
    let (name, response) = exec(tester, region, "BulkDeleteService", "delete", request).await?;
    assert_eq!(name, "org.apache.hadoop.hbase.coprocessor.example.generated.BulkDeleteProtos$BulkDeleteResponse");
    Ok(response)
}

#[tokio::test]
async fn what_a_scan_finds_is_deleted() {
    let scratch = Scratch::new("bulk-delete");
    let server = Server::start(&scratch.join("data"), &[]);
    let tester = Tester::connect(&server).await;
    let versions = pb::Scan { max_versions: Some(5), ..pb::Scan::default() };
    let first_column = pb::Scan { column: vec![column(&["a"])], ..versions.clone() };
    let cases = [
        (DeleteType::Row, versions.clone(), None, 5, None, vec![]),
        (DeleteType::Family, first_column.clone(), None, 5, None, vec!["g:c/1"]),
        (DeleteType::Column, first_column.clone(), None, 5, None, vec!["f:b/1", "g:c/1"]),
        (DeleteType::Column, first_column.clone(), Some(1), 5, None, vec!["f:a/2", "f:b/1", "g:c/1"]),
        (DeleteType::Version, first_column.clone(), None, 5, Some(10), vec!["f:b/1", "g:c/1"]),
        (DeleteType::Version, versions.clone(), Some(1), 5, Some(15), vec!["f:a/2"]),
        (DeleteType::Version, versions.clone(), Some(2), 5, Some(15), vec!["f:a/1", "f:b/1", "g:c/1"]),
    ];
    for (at, (delete_type, scan, timestamp, rows_deleted, versions_deleted, left)) in cases.into_iter().enumerate() {
        let regions = create(&tester, &format!("t{at}"), &[], &all_classes()).await.expect("the table");
        for row in 0..5 {
            let cells: [(&str, &str, i64, &[u8]); 4] =
                [("f", "a", 1, b"x"), ("f", "a", 2, b"x"), ("f", "b", 1, b"x"), ("g", "c", 1, b"x")];
            put(&tester, &regions[0], &format!("r{row}"), &cells).await;
        }
        let row_batch_size = 2;
        let request = pb::BulkDeleteRequest { scan, delete_type: delete_type as i32, timestamp, row_batch_size };
        let response = bulk_delete(&tester, &regions[0], &request).await.expect("delete");
        let expected = pb::BulkDeleteResponse { rows_deleted, versions_deleted };
        assert_eq!(response, expected, "{delete_type:?} at {timestamp:?}");
        let expected: Vec<String> =
            (0..5).flat_map(|row| left.iter().map(move |cell| format!("r{row}/{cell}"))).collect();
        assert_eq!(listing(&tester, &regions[0]).await, expected, "{delete_type:?} at {timestamp:?}");
        let endless = pb::BulkDeleteRequest { row_batch_size: 0, ..request };
        let error = bulk_delete(&tester, &regions[0], &endless).await.expect_err("no rows at a time");
        assert_eq!(class(&error), DO_NOT_RETRY);
    }
}

#[tokio::test]
async fn unknown_services_are_refused_as_hbase_refuses_them() {
    let scratch = Scratch::new("endpoints-unknown");
    let everywhere = format!("hbase.coprocessor.user.region.classes=org.Unknown,{}", Endpoint::RowCount.class());
    let server = Server::start(&scratch.join("data"), &[&everywhere]);
    let tester = Tester::connect(&server).await;
    let plain = create(&tester, "plain", &[], &[]).await.expect("the table");
    let some = create(&tester, "some", &[], &[Endpoint::MultiRowMutation.class()]).await.expect("the table");

    let error = mutate_rows(&tester, &plain[0], &[], &[]).await.expect_err("the table does not ask for it");
    assert_eq!(class(&error), UNKNOWN);
    let name = String::from_utf8_lossy(&plain[0]).into_owned();
    let expected = format!("No registered coprocessor service found for MultiRowMutationService in region {name}");
    assert!(error.to_string().contains(&expected), "{error}");
    for service in ["NoService", "ClientService", "hbase.pb.MultiRowMutationService", ""] {
        let refused = exec::<pb::MutateRowsResponse>(&tester, &some[0], service, "MutateRows", &pb::CountRequest {});
        assert_eq!(class(&refused.await.expect_err(service)), UNKNOWN, "{service}");
    }
    let refused = exec::<pb::MutateRowsResponse>(
        &tester,
        &some[0],
        "MultiRowMutationService",
        "mutateRows",
        &pb::CountRequest {},
    );
    let error = refused.await.expect_err("the case matters");
    assert_eq!(class(&error), UNKNOWN);
    let expected = "Unknown method mutateRows called on service hbase.pb.MultiRowMutationService";
    assert!(error.to_string().contains(expected), "{error}");

    // Configured for the users' tables, and only for them.
    let counted =
        exec::<pb::CountResponse>(&tester, &plain[0], "RowCountService", "getRowCount", &pb::CountRequest {}).await;
    assert_eq!(counted.expect("a count").1.count, 0);
    let refused =
        exec::<pb::CountResponse>(&tester, b"hbase:meta,,1", "RowCountService", "getRowCount", &pb::CountRequest {});
    assert_eq!(class(&refused.await.expect_err("not there")), UNKNOWN);

    let request = pb::CoprocessorServiceRequest {
        region: specifier(b""),
        call: service_call("NoService", "method", &pb::CountRequest {}),
    };
    let error = tester.region_call(Method::ClientExecRegionServerService, &request, None).await.expect_err("none");
    assert_eq!(class(&error), UNKNOWN);
    assert!(error.to_string().contains("No registered coprocessor executorService found for NoService"), "{error}");
    let refused: Result<pb::CoprocessorServiceResponse, _> =
        tester.master_call(Method::MasterExecMasterService, &request).await;
    let error = refused.expect_err("none");
    assert_eq!(class(&error), UNKNOWN);
    assert!(error.to_string().contains("No registered Master Coprocessor Endpoint found for NoService"), "{error}");

    let error = create(&tester, "strange", &[], &["org.Unknown"]).await.expect_err("it cannot be loaded");
    let expected = "Class org.Unknown cannot be loaded Set hbase.table.sanity.checks to false";
    assert!(error.contains(expected), "{error}");
    // Unless nobody is to look; then the others of the table are there all the same.
    let classes = ["org.Unknown", Endpoint::MultiRowMutation.class()];
    let unchecked = create(&tester, "unchecked", &[], &classes).await.expect("the table");
    assert!(mutate_rows(&tester, &unchecked[0], &[write(MutationType::Put, "a", "1")], &[]).await.expect("a put"));
}

#[tokio::test]
async fn services_are_called_in_a_batch() {
    let scratch = Scratch::new("endpoints-multi");
    let server = Server::start(&scratch.join("data"), &[]);
    let tester = Tester::connect(&server).await;
    let regions = create(&tester, "t", &[], &[Endpoint::RowCount.class()]).await.expect("the table");
    put(&tester, &regions[0], "r", &[("f", "q", 1, b"v")]).await;
    let service = |index, service: &str| pb::Action {
        index: Some(index),
        service_call: Some(service_call(service, "getRowCount", &pb::CountRequest {})),
        ..pb::Action::default()
    };
    let get = pb::Action {
        index: Some(1),
        get: Some(pb::Get { row: bytes("r"), ..pb::Get::default() }),
        ..pb::Action::default()
    };
    let request = pb::MultiRequest {
        region_action: vec![pb::RegionAction {
            region: specifier(&regions[0]),
            action: vec![service(0, "RowCountService"), get, service(2, "NoService")],
            ..pb::RegionAction::default()
        }],
        ..pb::MultiRequest::default()
    };
    let reply = tester.region_call(Method::ClientMulti, &request, None).await.expect("multi");
    let response: pb::MultiResponse = reply.decode().expect("a multi response");
    let mut results = response.region_action_result[0].result_or_exception.clone();
    results.sort_by_key(|result| result.index());
    let value = results[0].service_result.clone().and_then(|result| result.value).and_then(|pair| pair.value);
    let counted: pb::CountResponse = prost::Message::decode(value.expect("a value")).expect("a count");
    assert_eq!(counted.count, 1);
    assert_eq!(reply.cells.len(), 1);
    assert_eq!(results[2].exception.as_ref().map(|exception| exception.name.as_str()), Some(UNKNOWN));
}
