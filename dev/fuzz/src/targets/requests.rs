//! Every request message, given to a whole server of the simulator: region server and master, with a table.

use super::{put_part, shared, take_byte, take_part};
use crate::Target;
use bytes::Bytes;
use cell::{CellSpec, CellType};
use convert::to_proto;
use filter::Filter;
use master::{Caller, MasterHandler};
use model::{FamilyDescriptor, Get, Mutation, MutationKind, RegionInfo, Scan, TableDescriptor, TableName};
use proto::methods::{METHODS, MethodInfo, Service};
use proto::{Message, pb};
use rpc::{Call, CellCodec, ConnInfo, Handler};
use sim::stage::calm_settings;
use sim::world::{Life, World};
use std::cell::RefCell;
use std::sync::{Arc, LazyLock};

pub(super) const REQUESTS: Target = Target {
    name: "requests",
    about: "every method of every service, answered by a server",
    max_len: 2048,
    words: &[
        "default",
        "hbase",
        "meta",
        "row",
        "org.apache.hadoop.hbase.filter.",
        "MultiRowMutationService",
        "AggregateService",
        "RowCountService",
        "BulkDeleteService",
    ],
    seeds,
    run,
};

/// So many requests go to one server; then another one starts on an empty disk.
const REQUESTS_PER_SERVER: usize = 200;
/// The request is given the name of a region that is there.
const FLAG_REGION: u8 = 1;
/// Cells come in the messages only.
const FLAG_NO_CODEC: u8 = 2;

static SERVED: LazyLock<Vec<&'static MethodInfo>> = LazyLock::new(|| {
    let served = |service| {
        matches!(
            service,
            Service::Client | Service::Admin | Service::Master | Service::ClientMeta | Service::BootstrapNode
        )
    };
    METHODS.iter().filter(|info| served(info.service)).collect()
});

struct Server {
    runtime: tokio::runtime::Runtime,
    life: Arc<Life>,
    master: Arc<MasterHandler>,
    region: RegionInfo,
    asked: usize,
    /// Held: the disk.
    _world: World,
}

impl Server {
    fn start() -> Server {
        let runtime = World::runtime();
        let mut world = World::new(7, calm_settings());
        world.volume.watch(None);
        world.volume.set_capacity(Some(64 << 20));
        let (life, region) = runtime.block_on(async {
            let life = world.start().await.expect("an empty disk");
            let name = TableName::parse("t").expect("legal");
            let families = ["f", "g"].map(|name| FamilyDescriptor::new(Bytes::from(name)));
            let table = TableDescriptor::new(name.clone(), families);
            let id = life.master.create_table(table, &[Bytes::from("m")], &Caller::default()).await.expect("a table");
            life.master.wait_for(id).await.expect("a table");
            let region = sim::calls::region_of(&life, &name, b"row").expect("a region");
            let rows: Vec<Mutation> = (0..9).map(|n| put(&format!("row{n}"))).collect();
            let at = life.clone();
            let writing = tokio::spawn(async move { sim::calls::batch(&at, &name, &rows).await });
            life.settle().await;
            life.quiet().await;
            writing.await.expect("written").into_iter().for_each(|result| result.expect("written"));
            (life, region)
        });
        let master = life.master.handler();
        Server { runtime, life, master, region, asked: 0, _world: world }
    }

    fn ask(&mut self, info: &'static MethodInfo, param: Bytes, cells: &[u8], codec: Option<CellCodec>) {
        let Server { runtime, life, master, .. } = self;
        let conn = ConnInfo {
            id: 1,
            peer: std::net::SocketAddr::from(([127, 0, 0, 1], 1)),
            user: Arc::from("fuzz"),
            service: info.service,
            codec,
            compressor: None,
            version: None,
            attributes: Vec::new(),
            load: std::sync::OnceLock::new(),
        };
        let (mut call, direct) = Call::direct(Arc::new(conn), info, param, 5);
        if let Some(codec) = codec {
            let Ok(cells) = codec.decode(shared(cells)) else { return };
            call.set_cells(cells);
        }
        runtime.block_on(async {
            let outcome = match info.service {
                Service::Client | Service::Admin => life.service.call(call),
                _ => master.call(call),
            };
            let answering = tokio::spawn(direct.answer(outcome));
            life.service.on_batch_end();
            // What waits for a log, or for a procedure, gets some time; what does not end then is another's business.
            for _ in 0..50 {
                if answering.is_finished() {
                    break;
                }
                life.logs.iter().for_each(|log| _ = log.sync_once());
                life.settle().await;
            }
            if !answering.is_finished() {
                answering.abort();
            }
            match answering.await {
                Ok(Ok(reply)) => {
                    let cells = cell::CellBlock::parse_shapes(reply.cells).expect("a reply's cells are whole");
                    assert!(codec.is_some() || cells.is_empty());
                }
                Ok(Err(exception)) => {
                    let text = exception.message();
                    assert!(!text.contains("internal error"), "{}: {text}", info.name);
                }
                Err(ended) => assert!(!ended.is_panic(), "a panic in {}", info.name),
            }
        });
        self.asked += 1;
    }
}

fn put(row: &str) -> Mutation {
    let spec = |family: &'static str, value| CellSpec {
        row: row.as_bytes(),
        family: family.as_bytes(),
        qualifier: b"q",
        timestamp: i64::MAX,
        type_code: CellType::Put.code(),
        value,
        tags: &[],
    };
    let number = 7_i64.to_be_bytes();
    let cells = cell::CellBlock::from_specs([spec("f", &number[..]), spec("g", b"value")]);
    Mutation::new(MutationKind::Put, row.to_owned(), cells)
}

/// The request with the region's name in place of its own.
fn at_region(info: &MethodInfo, param: &[u8], region: &RegionInfo) -> Option<Bytes> {
    let specifier = to_proto::region_specifier(region);
    macro_rules! put {
        ($message:ty, $field:ident, $value:expr) => {{
            let mut message = <$message>::decode(param).ok()?;
            message.$field = $value;
            message.encode_to_vec()
        }};
    }
    let bytes = match (info.service, info.name) {
        (Service::Client, "Get") => put!(pb::GetRequest, region, specifier),
        (Service::Client, "Mutate") => put!(pb::MutateRequest, region, specifier),
        (Service::Client, "Scan") => {
            let mut message = pb::ScanRequest::decode(param).ok()?;
            if message.scanner_id.is_none() {
                message.region = Some(specifier);
            }
            message.encode_to_vec()
        }
        (Service::Client, "BulkLoadHFile") => put!(pb::BulkLoadHFileRequest, region, specifier),
        (Service::Client, "ExecService") => put!(pb::CoprocessorServiceRequest, region, specifier),
        (Service::Client, "Multi") => {
            let mut message = pb::MultiRequest::decode(param).ok()?;
            message.region_action.iter_mut().for_each(|action| action.region = specifier.clone());
            message.encode_to_vec()
        }
        (Service::Admin, "FlushRegion") => put!(pb::FlushRegionRequest, region, specifier),
        (Service::Admin, "CompactRegion") => put!(pb::CompactRegionRequest, region, specifier),
        (Service::Admin, "GetRegionInfo") => put!(pb::GetRegionInfoRequest, region, specifier),
        (Service::Admin, "GetStoreFile") => put!(pb::GetStoreFileRequest, region, specifier),
        (Service::Master, "SplitRegion") => {
            let region_info = to_proto::region_info(region);
            put!(pb::SplitTableRegionRequest, region_info, region_info)
        }
        _ => return None,
    };
    Some(Bytes::from(bytes))
}

/// Method, flags, cells, message.
fn run(mut data: &[u8]) {
    thread_local!(static SERVER: RefCell<Option<Server>> = const { RefCell::new(None) });
    let info = SERVED[usize::from(take_byte(&mut data)) % SERVED.len()];
    let flags = take_byte(&mut data);
    let cells = take_part(&mut data);
    let codec = match flags & FLAG_NO_CODEC {
        0 => Some(if flags & 4 == 0 { CellCodec::KeyValue } else { CellCodec::KeyValueWithTags }),
        _ => None,
    };
    SERVER.with_borrow_mut(|server| {
        let running = server.get_or_insert_with(Server::start);
        let moved = (flags & FLAG_REGION != 0).then(|| at_region(info, data, &running.region)).flatten();
        running.ask(info, moved.unwrap_or_else(|| shared(data)), cells, codec);
        if running.asked >= REQUESTS_PER_SERVER || running.life.fatal().is_some() {
            *server = None;
        }
    });
}

fn seed(name: &str, flags: u8, cells: &[u8], message: &[u8]) -> Option<Vec<u8>> {
    let (service, method) = name.split_once('.')?;
    let method = SERVED.iter().position(|info| info.service.name().ends_with(service) && info.name == method)?;
    let mut seed = vec![u8::try_from(method).expect("fewer methods"), flags];
    put_part(&mut seed, cells);
    seed.extend_from_slice(message);
    (seed.len() <= REQUESTS.max_len).then_some(seed)
}

fn seeds() -> Vec<Vec<u8>> {
    // One request of each kind and size that was recorded.
    let mut seeds = Vec::new();
    let mut seen = std::collections::BTreeSet::new();
    for (method, message, cells) in super::wire::recorded_requests() {
        if seen.insert((method.clone(), message.len(), cells.len())) {
            let flags =
                if cells.is_empty() && message.len() % 2 == 0 { FLAG_REGION | FLAG_NO_CODEC } else { FLAG_REGION };
            seeds.extend(seed(&method, flags, &cells, &message));
        }
    }
    // Each method with nothing, and the large ones in full.
    for info in SERVED.iter() {
        seeds.extend(seed(&format!("{}.{}", info.service.name(), info.name), 0, b"", b""));
    }
    let region = pb::RegionSpecifier::default();
    let filter = Filter::all_of(vec![Filter::any_of(Vec::new())]);
    let scan = Scan { filter: Some(Arc::new(filter)), ..Scan::default() };
    let get = pb::GetRequest { region: region.clone(), get: to_proto::get(&Get::new("row1")) };
    let scan = pb::ScanRequest {
        region: Some(region.clone()),
        scan: Some(to_proto::scan(&scan)),
        number_of_rows: Some(4),
        close_scanner: Some(true),
        client_handles_partials: Some(true),
        ..Default::default()
    };
    let mutate =
        pb::MutateRequest { region: region.clone(), mutation: to_proto::mutation(&put("row1")), ..Default::default() };
    let multi = pb::MultiRequest {
        region_action: vec![pb::RegionAction {
            region: region.clone(),
            atomic: Some(false),
            action: vec![
                pb::Action { index: Some(0), mutation: Some(to_proto::mutation(&put("row2"))), ..Default::default() },
                pb::Action { index: Some(1), get: Some(to_proto::get(&Get::new("row1"))), ..Default::default() },
            ],
            condition: None,
        }],
        ..Default::default()
    };
    for flags in [FLAG_REGION, FLAG_REGION | FLAG_NO_CODEC] {
        seeds.extend(seed("ClientService.Get", flags, b"", &get.encode_to_vec()));
        seeds.extend(seed("ClientService.Scan", flags, b"", &scan.encode_to_vec()));
        seeds.extend(seed("ClientService.Mutate", flags, b"", &mutate.encode_to_vec()));
        seeds.extend(seed("ClientService.Multi", flags, b"", &multi.encode_to_vec()));
    }
    let kinds = [MutationKind::Increment, MutationKind::Append, MutationKind::Delete];
    for kind in kinds {
        let own = put("row1");
        let mutation = Mutation::new(kind, "row1", own.cells.clone());
        let without = pb::MutateRequest {
            region: region.clone(),
            mutation: to_proto::mutation_without_cells(&mutation),
            nonce_group: Some(4),
            ..Default::default()
        };
        seeds.extend(seed("ClientService.Mutate", FLAG_REGION, own.cells.bytes(), &without.encode_to_vec()));
    }
    for (service, method, request) in [
        ("AggregateService", "GetSum", aggregate()),
        ("AggregateService", "GetRowNum", aggregate()),
        ("AggregateService", "GetMedian", aggregate()),
        ("MultiRowMutationService", "MutateRows", multi_row()),
        ("BulkDeleteService", "delete", bulk_delete()),
    ] {
        let call = pb::CoprocessorServiceCall {
            row: "row1".into(),
            service_name: service.to_owned(),
            method_name: method.to_owned(),
            request: Bytes::from(request),
        };
        let request = pb::CoprocessorServiceRequest { region: region.clone(), call };
        seeds.extend(seed("ClientService.ExecService", FLAG_REGION, b"", &request.encode_to_vec()));
    }
    seeds
}

fn scan_of_f() -> pb::Scan {
    pb::Scan { column: vec![pb::Column { family: "f".into(), qualifier: vec!["q".into()] }], ..Default::default() }
}

fn aggregate() -> Vec<u8> {
    let interpreter_class_name = "org.apache.hadoop.hbase.client.coprocessor.LongColumnInterpreter".to_owned();
    pb::AggregateRequest { interpreter_class_name, scan: scan_of_f(), ..Default::default() }.encode_to_vec()
}

fn multi_row() -> Vec<u8> {
    let mutation_request = ["row1", "row2"].iter().map(|row| to_proto::mutation(&put(row))).collect();
    pb::MutateRowsRequest { mutation_request, ..Default::default() }.encode_to_vec()
}

fn bulk_delete() -> Vec<u8> {
    let delete_type = pb::bulk_delete_request::DeleteType::Row as i32;
    pb::BulkDeleteRequest { scan: scan_of_f(), delete_type, row_batch_size: 3, ..Default::default() }.encode_to_vec()
}
