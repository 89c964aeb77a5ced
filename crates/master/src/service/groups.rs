//! RSGroupAdminService, which clients reach by ExecMasterService. Follows: `RSGroupAdminEndpoint`, `RSGroupAdminServer`.

use super::{Answer, MasterHandler as Handler, caller, later};
use crate::balancing;
use crate::groups::{change, group_of, must_be_known, rename_in_tables, settle};
use crate::master::Master;
use crate::procedure::Caller;
use crate::{ErrorKind, MasterError, Result};
use bytes::Bytes;
use convert::from_proto;
use model::TableName;
use proto::methods::{Method, Service};
use proto::{Message, pb};
use rpc::Call;
use rsgroup::{Address, Group};
use std::collections::BTreeSet;
use std::sync::Arc;

/// The class whose inner classes its messages are.
const MESSAGES: &str = "org.apache.hadoop.hbase.protobuf.generated.RSGroupAdminProtos$";

/// A call of an endpoint of the master's.
pub(super) fn exec_master_service(
    handler: &Handler,
    call: &Call,
    request: pb::CoprocessorServiceRequest,
) -> Answer<pb::CoprocessorServiceResponse> {
    // As in HBase services are registered without the package that its own share.
    if !handler.master.groups.are_on() || request.call.service_name != Service::RSGroupAdmin.name() {
        let message = format!(
            "No registered Master Coprocessor Endpoint found for {}. Has it been enabled?",
            request.call.service_name
        );
        return Err(MasterError::new(ErrorKind::UnknownProtocol, message).into());
    }
    let name = &request.call.method_name;
    let method = Service::RSGroupAdmin.method(name).ok_or_else(|| unknown(name))?.method;
    let (master, caller) = (Arc::clone(&handler.master), caller(call, None, None));
    later(async move {
        let value = answer(&master, &caller, method, &request.call.request).await?;
        let region = pb::RegionSpecifier {
            r#type: pb::region_specifier::RegionSpecifierType::RegionName as i32,
            value: Bytes::new(),
        };
        let value =
            pb::NameBytesPair { name: format!("{MESSAGES}{}Response", method.info().name), value: Some(value.into()) };
        Ok(pb::CoprocessorServiceResponse { region, value })
    })
}

fn decode<M: Message + Default>(request: &Bytes) -> Result<M> {
    M::decode(&request[..]).map_err(|error| {
        MasterError::do_not_retry(format!(
            "the request of {} cannot be read as a message: {error}",
            Service::RSGroupAdmin.name()
        ))
    })
}

fn addresses(names: &[pb::ServerName]) -> Result<BTreeSet<Address>> {
    let address = |name: &pb::ServerName| {
        let port = u16::try_from(name.port());
        port.map(|port| Address::new(&name.host_name, port)).map_err(|_| {
            let message = format!("{}:{} is no address of a server", name.host_name, name.port());
            MasterError::new(ErrorKind::IllegalArgument, message)
        })
    };
    names.iter().map(address).collect()
}

fn tables(names: &[pb::TableName]) -> Result<BTreeSet<TableName>> {
    names.iter().map(|name| Ok(from_proto::table_name(name)?)).collect()
}

/// # Errors
/// A table that is not there. Follows: `RSGroupAdminServer#moveTables`.
fn check_tables(master: &Master, tables: &BTreeSet<TableName>) -> Result<()> {
    let cluster = master.cluster.read();
    match tables.iter().find(|table| !cluster.exists(table)) {
        Some(table) => Err(MasterError::new(ErrorKind::TableNotFound, table)),
        None => Ok(()),
    }
}

fn shown(group: Option<&Group>) -> Option<pb::RsGroupInfo> {
    group.map(Group::to_proto)
}

/// The message that answers `method`.
async fn answer(master: &Arc<Master>, caller: &Caller, method: Method, request: &Bytes) -> Result<Vec<u8>> {
    Ok(match method {
        Method::RSGroupAdminListRSGroupInfos => {
            let groups = must_be_known(master)?;
            pb::ListRsGroupInfosResponse { r_s_group_info: groups.list().map(Group::to_proto).collect() }
                .encode_to_vec()
        }
        Method::RSGroupAdminGetRSGroupInfo => {
            let request: pb::GetRsGroupInfoRequest = decode(request)?;
            let groups = must_be_known(master)?;
            pb::GetRsGroupInfoResponse { r_s_group_info: shown(groups.get(&request.r_s_group_name)) }.encode_to_vec()
        }
        Method::RSGroupAdminGetRSGroupInfoOfTable => {
            let request: pb::GetRsGroupInfoOfTableRequest = decode(request)?;
            let (table, groups) = (from_proto::table_name(&request.table_name)?, must_be_known(master)?);
            let cluster = master.cluster.read();
            let group = if cluster.exists(&table) { Some(group_of(&groups, &table, &cluster)) } else { None };
            pb::GetRsGroupInfoOfTableResponse { r_s_group_info: shown(group) }.encode_to_vec()
        }
        Method::RSGroupAdminGetRSGroupInfoOfServer => {
            let request: pb::GetRsGroupInfoOfServerRequest = decode(request)?;
            let groups = must_be_known(master)?;
            let server = addresses(std::slice::from_ref(&request.server))?;
            let group = server.first().and_then(|server| groups.of_server(server));
            pb::GetRsGroupInfoOfServerResponse { r_s_group_info: shown(group) }.encode_to_vec()
        }
        Method::RSGroupAdminBalanceRSGroup => {
            let request: pb::BalanceRsGroupRequest = decode(request)?;
            let group = request.r_s_group_name.clone();
            if must_be_known(master)?.get(&group).is_none() {
                return Err(MasterError::new(ErrorKind::Constraint, format!("RSGroup does not exist: {group}")));
            }
            let asked = pb::BalanceRequest { ignore_rit: request.ignore_rit, dry_run: request.dry_run };
            let done = balancing::run_group(master, asked, &group).await;
            let pb::BalanceResponse { balancer_ran, moves_calculated, moves_executed } = done;
            // As in HBase it has not run where there was nothing to move.
            let balance_ran = balancer_ran && moves_calculated.is_some_and(|moves| moves > 0);
            pb::BalanceRsGroupResponse { balance_ran, moves_calculated, moves_executed }.encode_to_vec()
        }
        _ => {
            change_groups(master, caller, method, request).await?;
            // Their answers have no fields.
            Vec::new()
        }
    })
}

async fn change_groups(master: &Arc<Master>, caller: &Caller, method: Method, request: &Bytes) -> Result<()> {
    match method {
        Method::RSGroupAdminAddRSGroup => {
            let request: pb::AddRsGroupRequest = decode(request)?;
            change(master, |groups, _| Ok((groups.add(&request.r_s_group_name)?, ()))).await?;
        }
        Method::RSGroupAdminRemoveRSGroup => {
            let request: pb::RemoveRsGroupRequest = decode(request)?;
            let named: Vec<(String, String)> = {
                let cluster = master.cluster.read();
                let named = cluster.namespaces().filter_map(|(name, pairs)| {
                    pairs.get(rsgroup::GROUP_ATTRIBUTE).map(|group| (name.to_owned(), group.clone()))
                });
                named.collect()
            };
            let namespaces = || named.iter().map(|(name, group)| (name.as_str(), group.as_str()));
            change(master, |groups, _| Ok((groups.remove(&request.r_s_group_name, namespaces())?, ()))).await?;
        }
        Method::RSGroupAdminRenameRSGroup => {
            let request: pb::RenameRsGroupRequest = decode(request)?;
            let (old, new) = (&request.old_rsgroup_name, &request.new_rsgroup_name);
            change(master, |groups, _| Ok((groups.rename(old, new)?, ()))).await?;
            rename_in_tables(master, new, caller, |_, named| named == old).await?;
        }
        Method::RSGroupAdminUpdateRSGroupConfig => {
            let request: pb::UpdateRsGroupConfigRequest = decode(request)?;
            let pairs = request.configuration.into_iter().map(|pair| (pair.name, pair.value)).collect();
            change(master, |groups, _| Ok((groups.configure(&request.group_name, pairs)?, ()))).await?;
        }
        Method::RSGroupAdminRemoveServers => {
            let request: pb::RemoveServersRequest = decode(request)?;
            let servers = addresses(&request.servers)?;
            change(master, |groups, all| Ok((groups.remove_servers(&servers, all)?, ()))).await?;
        }
        Method::RSGroupAdminMoveServers => {
            let request: pb::MoveServersRequest = decode(request)?;
            let servers = addresses(&request.servers)?;
            let moved = change(master, |groups, all| groups.move_servers(&servers, &request.target_group, all)).await?;
            settle(master, moved, caller).await?;
        }
        Method::RSGroupAdminMoveTables => {
            let request: pb::MoveTablesRequest = decode(request)?;
            let tables = tables(&request.table_name)?;
            check_tables(master, &tables)?;
            let target = &request.target_group;
            let moved = change(master, |groups, _| groups.move_tables(&tables, target)).await?;
            rename_in_tables(master, target, caller, |table, _| tables.contains(&table.name)).await?;
            settle(master, moved, caller).await?;
        }
        Method::RSGroupAdminMoveServersAndTables => {
            let request: pb::MoveServersAndTablesRequest = decode(request)?;
            let (servers, tables) = (addresses(&request.servers)?, tables(&request.table_name)?);
            check_tables(master, &tables)?;
            let target = &request.target_group;
            let moved =
                change(master, |groups, all| groups.move_servers_and_tables(&servers, &tables, target, all)).await?;
            rename_in_tables(master, target, caller, |table, _| tables.contains(&table.name)).await?;
            settle(master, moved, caller).await?;
        }
        _ => return Err(unknown(method.info().name)),
    }
    Ok(())
}

fn unknown(method: &str) -> MasterError {
    let message = format!("Unknown method {method} called on service hbase.pb.{}", Service::RSGroupAdmin.name());
    MasterError::new(ErrorKind::UnknownProtocol, message)
}
