//! Permissions: refused as a master of HBase refuses them that has no AccessController. Follows: `MasterRpcServices`.

use super::MasterHandler;
use crate::MasterError;
use proto::pb;
use rpc::Call;
use rpc::service::Answer;

/// What each of them is answered with.
fn no_controller<M>() -> Answer<M> {
    let class = "org.apache.hadoop.hbase.security.access.AccessController";
    let why = format!("java.lang.UnsupportedOperationException: {class} is not loaded");
    Err(MasterError::do_not_retry(why).into())
}

pub(super) fn grant(_: &MasterHandler, _: &Call, _: pb::GrantRequest) -> Answer<pb::GrantResponse> {
    no_controller()
}

pub(super) fn revoke(_: &MasterHandler, _: &Call, _: pb::RevokeRequest) -> Answer<pb::RevokeResponse> {
    no_controller()
}

pub(super) fn list(
    _: &MasterHandler,
    _: &Call,
    _: pb::GetUserPermissionsRequest,
) -> Answer<pb::GetUserPermissionsResponse> {
    no_controller()
}

pub(super) fn check(
    _: &MasterHandler,
    _: &Call,
    _: pb::HasUserPermissionsRequest,
) -> Answer<pb::HasUserPermissionsResponse> {
    no_controller()
}
