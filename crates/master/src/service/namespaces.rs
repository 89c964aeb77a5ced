//! Namespaces: listed, made, changed, deleted.

use super::{MasterHandler, caller, later};
use convert::{from_proto, to_proto};
use proto::pb;
use rpc::Call;
use rpc::service::Answer;
use std::sync::Arc;

type Handler = MasterHandler;

pub(super) fn descriptors(
    handler: &Handler,
    _: &Call,
    _: pb::ListNamespaceDescriptorsRequest,
) -> Answer<pb::ListNamespaceDescriptorsResponse> {
    let cluster = handler.master.cluster();
    let all = cluster.namespaces().map(|(name, pairs)| to_proto::namespace(name, pairs));
    Ok(pb::ListNamespaceDescriptorsResponse { namespace_descriptor: all.collect() }.into())
}

pub(super) fn names(handler: &Handler, _: &Call, _: pb::ListNamespacesRequest) -> Answer<pb::ListNamespacesResponse> {
    let namespace_name = handler.master.cluster().namespaces().map(|(name, _)| name.to_owned()).collect();
    Ok(pb::ListNamespacesResponse { namespace_name }.into())
}

pub(super) fn descriptor(
    handler: &Handler,
    _: &Call,
    request: pb::GetNamespaceDescriptorRequest,
) -> Answer<pb::GetNamespaceDescriptorResponse> {
    let configuration = handler.master.namespaces.existing(&request.namespace_name)?;
    let namespace_descriptor = to_proto::namespace(&request.namespace_name, &configuration);
    Ok(pb::GetNamespaceDescriptorResponse { namespace_descriptor }.into())
}

pub(super) fn create(
    handler: &Handler,
    call: &Call,
    request: pb::CreateNamespaceRequest,
) -> Answer<pb::CreateNamespaceResponse> {
    let caller = caller(call, request.nonce_group, request.nonce);
    let master = Arc::clone(&handler.master);
    later(async move {
        let (name, configuration) = from_proto::namespace(&request.namespace_descriptor)?;
        let id = master.create_namespace(name, configuration, &caller).await?;
        Ok(pb::CreateNamespaceResponse { proc_id: Some(id) })
    })
}

pub(super) fn modify(
    handler: &Handler,
    call: &Call,
    request: pb::ModifyNamespaceRequest,
) -> Answer<pb::ModifyNamespaceResponse> {
    let caller = caller(call, request.nonce_group, request.nonce);
    let master = Arc::clone(&handler.master);
    later(async move {
        let (name, configuration) = from_proto::namespace(&request.namespace_descriptor)?;
        let id = master.modify_namespace(name, configuration, &caller).await?;
        Ok(pb::ModifyNamespaceResponse { proc_id: Some(id) })
    })
}

pub(super) fn delete(
    handler: &Handler,
    call: &Call,
    request: pb::DeleteNamespaceRequest,
) -> Answer<pb::DeleteNamespaceResponse> {
    let caller = caller(call, request.nonce_group, request.nonce);
    let master = Arc::clone(&handler.master);
    later(async move {
        let id = master.delete_namespace(&request.namespace_name, &caller).await?;
        Ok(pb::DeleteNamespaceResponse { proc_id: Some(id) })
    })
}
