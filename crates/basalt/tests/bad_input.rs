//! Requests that are wrong: each gets the exception class that HBase gives, the connection goes on, nothing is half done.

use crate::common::{Scratch, Server, Tester, put_request, specifier};
use bytes::Bytes;
use cell::{CellBlock, CellSpec, CellType};
use proto::methods::Method;
use proto::pb;
use rpc::client::{Client, ClientError, ClientOptions};

fn class<T>(result: Result<T, ClientError>) -> String {
    match result {
        Ok(_) => "no exception".to_owned(),
        Err(error) => error
            .class()
            .map_or_else(|| error.to_string(), |class| class.rsplit('.').next().unwrap_or(class).to_owned()),
    }
}

async fn table(name: &str, splits: &[&str]) -> (Scratch, Server, Tester, Vec<Bytes>) {
    let scratch = Scratch::new(name);
    let server = Server::start(&scratch.join("data"), &[]);
    let tester = Tester::connect(&server).await;
    tester.create_table("t", splits).await;
    let regions = tester.regions("t").await;
    (scratch, server, tester, regions)
}

async fn put_raw(tester: &Tester, request: &pb::MutateRequest, cells: Option<&CellBlock>) -> String {
    class(tester.region_call(Method::ClientMutate, request, cells).await)
}

#[tokio::test]
async fn mutations_that_are_wrong() {
    let (_scratch, _server, tester, regions) = table("bad-mutations", &["m"]).await;
    let region = &regions[0][..];

    let (request, cells) = put_request(b"t,nobody,123.00000000000000000000000000000000.", b"a", b"f", b"v");
    assert_eq!(put_raw(&tester, &request, Some(&cells)).await, "NotServingRegionException");
    let (request, cells) = put_request(region, b"z", b"f", b"v");
    assert_eq!(put_raw(&tester, &request, Some(&cells)).await, "FailedSanityCheckException");
    let (request, cells) = put_request(region, b"a", b"nofamily", b"v");
    assert_eq!(put_raw(&tester, &request, Some(&cells)).await, "NoSuchColumnFamilyException");
    let large = vec![7; 11 << 20];
    let (request, cells) = put_request(region, b"a", b"f", &large);
    assert_eq!(put_raw(&tester, &request, Some(&cells)).await, "DoNotRetryIOException", "a cell over 10 MiB");

    let (mut request, _) = put_request(region, b"a", b"f", b"v");
    assert_ne!(put_raw(&tester, &request, None).await, "no exception", "it promises a cell that is not there");
    request.mutation.associated_cell_count = Some(0);
    assert_eq!(put_raw(&tester, &request, None).await, "no exception", "HBase takes a put of nothing for done");
    request.mutation.row = None;
    assert_ne!(put_raw(&tester, &request, None).await, "no exception", "a put without cells and row");
    let long_row = vec![b'a'; 40_000];
    request.mutation.row = Some(Bytes::from(long_row));
    assert_ne!(put_raw(&tester, &request, None).await, "no exception", "a row over 32767 bytes");

    // The mutation's row and its cell's row differ.
    let (mut request, cells) = put_request(region, b"a", b"f", b"v");
    request.mutation.row = Some(Bytes::from_static(b"b"));
    assert_ne!(put_raw(&tester, &request, Some(&cells)).await, "no exception");

    // An increment of something that is no number.
    tester.put(region, "form", "xy").await.expect("a put");
    let amount = 1i64.to_be_bytes();
    let spec = CellSpec {
        row: b"form",
        family: b"f",
        qualifier: b"q",
        timestamp: i64::MAX,
        type_code: CellType::Put.code(),
        value: &amount,
        tags: b"",
    };
    let mutation = pb::MutationProto {
        row: Some(Bytes::from_static(b"form")),
        mutate_type: Some(pb::mutation_proto::MutationType::Increment as i32),
        associated_cell_count: Some(1),
        ..pb::MutationProto::default()
    };
    let request = pb::MutateRequest { region: specifier(region), mutation, ..pb::MutateRequest::default() };
    assert_eq!(put_raw(&tester, &request, Some(&CellBlock::from_specs([spec]))).await, "DoNotRetryIOException");

    // Nothing of all that is there, and the connection still works.
    for row in ["a", "b"] {
        assert_eq!(tester.get(region, row).await.expect("get"), None, "{row}");
    }
    assert_eq!(tester.get(region, "form").await.expect("get"), Some(b"xy".to_vec()));
}

#[tokio::test]
async fn gets_that_are_wrong() {
    let (_scratch, _server, tester, regions) = table("bad-gets", &["m"]).await;
    assert_eq!(class(tester.get(&regions[0], "z").await), "WrongRegionException");
    let get = |get: pb::Get| pb::GetRequest { region: specifier(&regions[0]), get };
    let row = || Bytes::from_static(b"a");
    let column = vec![pb::Column { family: Bytes::from_static(b"nofamily"), qualifier: Vec::new() }];
    let request = get(pb::Get { row: row(), column, ..pb::Get::default() });
    assert_eq!(class(tester.region_call(Method::ClientGet, &request, None).await), "NoSuchColumnFamilyException");
    let request = get(pb::Get { row: row(), closest_row_before: Some(true), ..pb::Get::default() });
    assert_eq!(class(tester.region_call(Method::ClientGet, &request, None).await), "UnknownProtocolException");
    let filter = pb::Filter { name: "com.example.MyFilter".into(), serialized_filter: None };
    let request = get(pb::Get { row: row(), filter: Some(filter), ..pb::Get::default() });
    let refused = tester.region_call(Method::ClientGet, &request, None).await.map(|_| ());
    assert!(refused.expect_err("an unknown filter").to_string().contains("com.example.MyFilter"));
}

#[tokio::test]
async fn a_batch_fails_where_it_must_and_goes_on_elsewhere() {
    let (_scratch, _server, tester, regions) = table("bad-batch", &[]).await;
    let put = |index: u32, row: &[u8], family: &[u8]| {
        let (request, cells) = put_request(&regions[0], row, family, b"v");
        (pb::Action { index: Some(index), mutation: Some(request.mutation), ..pb::Action::default() }, cells)
    };
    let (first, first_cells) = put(0, b"a", b"f");
    let (bad, bad_cells) = put(1, b"b", b"nofamily");
    let (lost, lost_cells) = put(0, b"c", b"f");
    let (last, last_cells) = put(2, b"d", b"f");
    let action =
        |region: &[u8], action| pb::RegionAction { region: specifier(region), action, ..pb::RegionAction::default() };
    let request = pb::MultiRequest {
        region_action: vec![
            action(&regions[0], vec![first, bad]),
            action(b"t,gone,1.00000000000000000000000000000000.", vec![lost]),
            action(&regions[0], vec![last]),
        ],
        ..pb::MultiRequest::default()
    };
    let all: Vec<u8> =
        [first_cells, bad_cells, lost_cells, last_cells].iter().flat_map(|c| c.bytes().to_vec()).collect();
    let cells = CellBlock::parse(Bytes::from(all)).expect("four cells");
    let reply = tester.region_call(Method::ClientMulti, &request, Some(&cells)).await.expect("a reply");
    let response: pb::MultiResponse = reply.decode().expect("a multi response");
    let exceptions: Vec<Vec<(u32, String)>> = response
        .region_action_result
        .iter()
        .map(|region| {
            let name = |pair: &pb::NameBytesPair| pair.name.rsplit('.').next().unwrap_or_default().to_owned();
            let mut entries: Vec<_> = region
                .result_or_exception
                .iter()
                .map(|entry| (entry.index(), entry.exception.as_ref().map(name).unwrap_or_default()))
                .collect();
            entries.sort();
            entries.extend(region.exception.iter().map(|pair| (99, name(pair))));
            entries
        })
        .collect();
    assert_eq!(
        exceptions,
        [
            vec![(0, String::new()), (1, "NoSuchColumnFamilyException".to_owned())],
            vec![(99, "NotServingRegionException".to_owned())],
            vec![(2, String::new())],
        ]
    );
    for (row, there) in [("a", true), ("b", false), ("c", false), ("d", true)] {
        assert_eq!(tester.get(&regions[0], row).await.expect("get").is_some(), there, "{row}");
    }
}

#[tokio::test]
async fn scanners_out_of_turn() {
    let scratch = Scratch::new("bad-scans");
    let server = Server::start(&scratch.join("data"), &["hbase.client.scanner.timeout.period=300"]);
    let tester = Tester::connect(&server).await;
    tester.create_table("t", &[]).await;
    let regions = tester.regions("t").await;
    for i in 0..10 {
        tester.put(&regions[0], &format!("r{i}"), "v").await.expect("put");
    }
    let next = |id: u64, seq: u64| pb::ScanRequest {
        scanner_id: Some(id),
        number_of_rows: Some(2),
        next_call_seq: Some(seq),
        ..pb::ScanRequest::default()
    };
    assert_eq!(class(tester.region_call(Method::ClientScan, &next(12345, 0), None).await), "UnknownScannerException");
    assert_eq!(
        class(tester.region_call(Method::ClientScan, &pb::ScanRequest::default(), None).await),
        "DoNotRetryIOException"
    );
    let open = pb::ScanRequest {
        region: Some(specifier(&regions[0])),
        scan: Some(pb::Scan::default()),
        number_of_rows: Some(2),
        ..pb::ScanRequest::default()
    };
    let reply = tester.region_call(Method::ClientScan, &open, None).await.expect("opens");
    let response: pb::ScanResponse = reply.decode().expect("a scan response");
    let id = response.scanner_id.expect("an id");
    assert_eq!((reply.cells.len(), response.more_results_in_region), (2, Some(true)));
    assert_eq!(
        class(tester.region_call(Method::ClientScan, &next(id, 5), None).await),
        "OutOfOrderScannerNextException"
    );
    let reply = tester.region_call(Method::ClientScan, &next(id, 0), None).await.expect("the scanner is still there");
    assert_eq!(reply.cells.iter().map(|c| c.row().to_vec()).collect::<Vec<_>>(), [b"r2", b"r3"]);
    // Its lease runs out; the server says so the next time it is asked.
    let mut answer = String::new();
    for seq in 1..100 {
        tokio::time::sleep(std::time::Duration::from_millis(700)).await;
        answer = class(tester.region_call(Method::ClientScan, &next(id, seq), None).await);
        if answer != "no exception" {
            break;
        }
    }
    assert_eq!(answer, "UnknownScannerException");
}

#[tokio::test]
async fn tables_that_cannot_be_made() {
    let (_scratch, server, tester, _) = table("bad-tables", &[]).await;
    let create = |name: &str, families: Vec<&'static str>, splits: Vec<&'static str>| {
        let qualifier = Bytes::copy_from_slice(name.as_bytes());
        let schema = pb::TableSchema {
            table_name: Some(pb::TableName { namespace: Bytes::from_static(b"default"), qualifier }),
            column_families: families
                .iter()
                .map(|family| convert::to_proto::family(&model::FamilyDescriptor::new(*family)))
                .collect(),
            ..pb::TableSchema::default()
        };
        let split_keys = splits.into_iter().map(Bytes::from).collect();
        pb::CreateTableRequest { table_schema: schema, split_keys, ..pb::CreateTableRequest::default() }
    };
    for (request, what) in [
        (create("t", vec!["f"], vec![]), "exists"),
        (create("bad name", vec!["f"], vec![]), "an illegal name"),
        (create("", vec!["f"], vec![]), "no name"),
        (create("u", vec![], vec![]), "no family"),
        (create("u", vec!["a:b"], vec![]), "an illegal family"),
        (create("u", vec!["f"], vec!["a", "a"]), "a split key twice"),
    ] {
        let made: Result<pb::CreateTableResponse, _> = tester.master_call(Method::MasterCreateTable, &request).await;
        let refused = match made {
            Err(_) => true,
            Ok(response) => tester.finish(response.proc_id()).await.is_err(),
        };
        assert!(refused, "{what}");
    }
    // A method that HBase has and a server alone has not: a clear word, and the connection goes on.
    let admin =
        Client::connect(server.region_address(), "AdminService", ClientOptions::default()).await.expect("connects");
    let request = pb::ExecuteProceduresRequest::default();
    let unsupported = admin.call(Method::AdminExecuteProcedures.info(), &request, None).await;
    assert!(unsupported.map(|_| ()).expect_err("not there").to_string().contains("ExecuteProcedures"));
    let unknown =
        Client::connect(server.master_address(), "MasterService", ClientOptions::default()).await.expect("connects");
    let answer = unknown.call_raw("NoSuchMethod", b"", None).await.map(|_| ());
    assert!(answer.expect_err("no such method").to_string().contains("NoSuchMethod"));
    let running: pb::IsMasterRunningResponse =
        tester.master_call(Method::MasterIsMasterRunning, &pb::IsMasterRunningRequest::default()).await.expect("runs");
    assert!(running.is_master_running);
}
