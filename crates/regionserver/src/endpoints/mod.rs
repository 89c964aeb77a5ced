//! The coprocessor endpoints that HBase ships, answered natively: MultiRowMutationService, AggregateService,
//! BulkDeleteService, RowCountService; and four of Basalt's own: aggregates by group, first rows of an order and key histograms, which every table
//! has, and the volumes of a server.
//!
//! A region answers for an endpoint only if its table asks for the endpoint's class, or the configuration does for all
//! tables; a service that nobody asked for is unknown there. Work is done in bounded pieces on the blocking pool.
//! Follows: `HRegion#execService`, `RegionCoprocessorHost`, `CoprocessorRpcUtils`.

mod aggregate;
mod bulk_delete;
mod decimal;
mod expression;
mod grouped;
mod histogram;
mod interpreter;
mod multi_row;
mod row_count;
mod row_values;
mod top_rows;
mod volumes;
mod walk;

use crate::blocking::{Caller, LARGE_REQUEST_BYTES, on_lane};
use crate::handlers::{RegionService, find_region};
use crate::server::RegionServer;
use bytes::Bytes;
use model::Endpoint;
use proto::methods::{Method, Service};
use proto::{Message, pb};
use region::Region;
use rpc::Call;
use rpc::exception::{Exception, Kind};
use rpc::service::{Answer, Response};
use scheduler::LaneName;
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// ClientService.ExecService.
pub(crate) fn exec_service(
    RegionService { server, .. }: &RegionService,
    call: &Call,
    request: pb::CoprocessorServiceRequest,
) -> Answer<pb::CoprocessorServiceResponse> {
    let region = find_region(server, &request.region)?;
    // What is refused is refused at once.
    let is_own = [grouped::is_meant, top_rows::is_meant, histogram::is_meant].iter().any(|is| is(&request.call));
    if !is_own {
        find_method(server, &region, &request.call)?;
    }
    let server = server.clone();
    let caller = Caller::of(call);
    Ok(Response::future(async move {
        let value = run(&server, &region, request.call, &caller).await?;
        let specifier = pb::RegionSpecifier {
            r#type: pb::region_specifier::RegionSpecifierType::RegionName as i32,
            value: region.info().name().clone(),
        };
        Ok::<_, Exception>(pb::CoprocessorServiceResponse { region: specifier, value })
    }))
}

/// ClientService.ExecRegionServerService: HBase ships no endpoint that a region server registers by itself, and Basalt one.
pub(crate) fn exec_server_service(
    RegionService { server, .. }: &RegionService,
    _: &Call,
    request: pb::CoprocessorServiceRequest,
) -> Answer<pb::CoprocessorServiceResponse> {
    let service = request.call.service_name;
    if service != proto::volumes::SERVICE {
        let what = format!("No registered coprocessor executorService found for {service}");
        return Err(Exception::new(Kind::UnknownProtocol, what));
    }
    let (server, method, asked) = (server.clone(), request.call.method_name, request.call.request);
    crate::handlers::blocking(move || {
        let value = pb::NameBytesPair { name: service, value: Some(volumes::answer(&server, &method, asked)?) };
        Ok(pb::CoprocessorServiceResponse { region: request.region, value })
    })
}

/// Runs an endpoint's method on a region; its result under the name of HBase's class for it.
///
/// # Errors
/// The service or method is not there, or failed.
pub(crate) async fn run(
    server: &Arc<RegionServer>,
    region: &Arc<Region>,
    call: pb::CoprocessorServiceCall,
    caller: &Caller,
) -> Result<pb::NameBytesPair, Exception> {
    if grouped::is_meant(&call) {
        server.counts.reads.add(1);
        let decoded = decoded(server, region, caller, call.request, grouped::decode);
        return grouped::aggregate(server, region, decoded.await?, caller).await;
    }
    if top_rows::is_meant(&call) {
        server.counts.reads.add(1);
        let decoded = decoded(server, region, caller, call.request, top_rows::decode);
        return top_rows::top_rows(server, region, decoded.await?, caller).await;
    }
    if histogram::is_meant(&call) {
        server.counts.reads.add(1);
        return histogram::answer(server, region, call.request, caller).await;
    }
    let method = find_method(server, region, &call)?;
    let request = call.request;
    match method {
        Method::MultiRowMutationMutateRows => {
            server.counts.writes.fetch_add(1, Ordering::Relaxed);
            let decoded =
                decoded(server, region, caller, request, move |request| multi_row::decode(decode(method, request)?));
            named(&multi_row::mutate_rows(server, region, decoded.await?, caller).await?)
        }
        Method::BulkDeleteDelete => {
            server.counts.writes.fetch_add(1, Ordering::Relaxed);
            let decoded = decoded(server, region, caller, request, move |request| decode(method, request));
            named(&bulk_delete::delete(server, region, decoded.await?, caller).await?)
        }
        Method::RowCountGetRowCount | Method::RowCountGetKeyValueCount => {
            server.counts.reads.add(1);
            decode::<pb::CountRequest>(method, request)?;
            let rows_only = method == Method::RowCountGetRowCount;
            named(&row_count::count(server, region, rows_only, caller).await?)
        }
        Method::AggregateGetMax
        | Method::AggregateGetMin
        | Method::AggregateGetSum
        | Method::AggregateGetRowNum
        | Method::AggregateGetAvg
        | Method::AggregateGetStd
        | Method::AggregateGetMedian => {
            server.counts.reads.add(1);
            let decoded = decoded(server, region, caller, request, move |request| decode(method, request));
            named(&aggregate::aggregate(server, region, method, decoded.await?, caller).await?)
        }
        _ => Err(Exception::unsupported(method.info())),
    }
}

/// What `decode` makes of a request: a large one on a lane, as it would hold up a network thread.
async fn decoded<T: Send + 'static>(
    server: &RegionServer,
    region: &Region,
    caller: &Caller,
    request: Bytes,
    decode: impl FnOnce(Bytes) -> Result<T, Exception> + Send + 'static,
) -> Result<T, Exception> {
    if request.len() <= LARGE_REQUEST_BYTES {
        return decode(request);
    }
    on_lane(server, region, LaneName::Write, caller, move |_| decode(request)).await?
}

/// A message of an endpoint, and HBase's class of it, which is what the client reads first.
trait NamedResult: Message {
    const CLASS: &'static str;
}

impl NamedResult for pb::MutateRowsResponse {
    const CLASS: &'static str = "org.apache.hadoop.hbase.protobuf.generated.MultiRowMutationProtos$MutateRowsResponse";
}

impl NamedResult for pb::AggregateResponse {
    const CLASS: &'static str = "org.apache.hadoop.hbase.protobuf.generated.AggregateProtos$AggregateResponse";
}

impl NamedResult for pb::BulkDeleteResponse {
    const CLASS: &'static str =
        "org.apache.hadoop.hbase.coprocessor.example.generated.BulkDeleteProtos$BulkDeleteResponse";
}

impl NamedResult for pb::CountResponse {
    const CLASS: &'static str = "org.apache.hadoop.hbase.coprocessor.example.generated.ExampleProtos$CountResponse";
}

fn named<M: NamedResult>(message: &M) -> Result<pb::NameBytesPair, Exception> {
    Ok(pb::NameBytesPair { name: M::CLASS.to_owned(), value: Some(Bytes::from(message.encode_to_vec())) })
}

fn decode<M: Message + Default>(method: Method, request: Bytes) -> Result<M, Exception> {
    M::decode(request).map_err(|error| {
        let info = method.info();
        Exception::do_not_retry(format!("cannot read the {} of {}: {error}", info.request, info.name))
    })
}

/// The method that is called, if the region's table has its endpoint.
fn find_method(server: &RegionServer, region: &Region, call: &pb::CoprocessorServiceCall) -> Result<Method, Exception> {
    // Services are registered without the package that HBase's own share.
    let service = Service::from_name(&call.service_name).filter(|service| service.name() == call.service_name);
    let endpoint = service.and_then(endpoint_of).filter(|endpoint| is_loaded(server, region, *endpoint));
    let (Some(service), Some(_)) = (service, endpoint) else {
        return Err(Exception::new(
            Kind::UnknownProtocol,
            format!(
                "No registered coprocessor service found for {} in region {}",
                call.service_name,
                region.info().name_string()
            ),
        ));
    };
    service.method(&call.method_name).map(|info| info.method).ok_or_else(|| {
        let message = format!("Unknown method {} called on service hbase.pb.{}", call.method_name, service.name());
        Exception::new(Kind::UnknownProtocol, message)
    })
}

fn endpoint_of(service: Service) -> Option<Endpoint> {
    match service {
        Service::MultiRowMutation => Some(Endpoint::MultiRowMutation),
        Service::Aggregate => Some(Endpoint::Aggregate),
        Service::BulkDelete => Some(Endpoint::BulkDelete),
        Service::RowCount => Some(Endpoint::RowCount),
        _ => None,
    }
}

/// Whether the region answers the endpoint.
pub(crate) fn is_loaded(server: &RegionServer, region: &Region, endpoint: Endpoint) -> bool {
    let settings = server.settings();
    let is_among = |classes: &[String]| classes.iter().any(|class| class == endpoint.class());
    region.table().coprocessors().any(|coprocessor| coprocessor.class == endpoint.class())
        || is_among(&settings.region_classes)
        || (!region.info().table.is_system() && is_among(&settings.user_region_classes))
}
