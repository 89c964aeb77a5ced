//! CreateNamespaceProcedure.

use super::{check_configuration, check_namespace_name};
use crate::cluster::NamespaceConfiguration;
use crate::host::BoxFuture;
use crate::locks::{Mode, Resource};
use crate::master::Master;
use crate::procedure::engine::{Procedure, Step, any, steps, unpack};
use crate::procedure::for_hbase::Form;
use crate::procedure::{BoxedProcedure, Caller, Context, Next, ProcedureKind, namespace_locks};
use crate::{ErrorKind, MasterError, Result};
use convert::{from_proto, to_proto};
use proto::pb::CreateNamespaceState as State;
use proto::{Any, pb};
use std::sync::Arc;

const CLASS: &str = "org.apache.hadoop.hbase.master.procedure.CreateNamespaceProcedure";

pub(crate) const KIND: ProcedureKind =
    ProcedureKind { class_name: CLASS, read: |data| Ok(Box::new(CreateNamespace::read(data)?)) };

/// A namespace is made.
#[derive(Debug)]
struct CreateNamespace {
    name: String,
    configuration: NamespaceConfiguration,
}

/// Makes a namespace; answers the procedure's id.
///
/// # Errors
/// An illegal name or configuration, a namespace of that name.
pub(crate) async fn submit(
    master: &Arc<Master>,
    name: String,
    configuration: NamespaceConfiguration,
    caller: &Caller,
) -> Result<u64> {
    check_namespace_name(&name)?;
    let prepare = async {
        if master.namespaces.existing(&name).is_ok() {
            let message = format!("Namespace {name} already exists");
            return Err(MasterError::new(ErrorKind::NamespaceExists, message));
        }
        check_configuration(&name, &configuration)?;
        Ok(Box::new(CreateNamespace { name: name.clone(), configuration }) as BoxedProcedure)
    };
    master.procedures.submit(master, caller.submission(namespace_locks(&name)), prepare).await
}

impl CreateNamespace {
    fn read(data: &[Any]) -> Result<CreateNamespace> {
        let state: pb::CreateNamespaceStateData = unpack(data)?;
        let (name, configuration) = from_proto::namespace(&state.namespace_descriptor)?;
        Ok(CreateNamespace { name, configuration })
    }
}

impl Procedure<Master> for CreateNamespace {
    fn class_name(&self) -> &'static str {
        CLASS
    }

    fn state_data(&self) -> Vec<Any> {
        let namespace_descriptor = to_proto::namespace(&self.name, &self.configuration);
        vec![any("CreateNamespaceStateData", &pb::CreateNamespaceStateData { namespace_descriptor })]
    }

    fn locks(&self) -> Vec<(Resource, Mode)> {
        namespace_locks(&self.name)
    }

    fn first_step(&self) -> Step {
        State::CreateNamespaceCreateDirectory as Step
    }

    // HBase's may do all of it again.
    fn for_hbase(&self) -> Form {
        Form::Steps(steps(&[State::CreateNamespacePrepare, State::CreateNamespaceCreateDirectory]))
    }

    fn execute<'a>(&'a mut self, _step: Step, context: &'a Context) -> BoxFuture<'a, Result<Next>> {
        Box::pin(async move {
            context.env.namespaces.put(self.name.clone(), self.configuration.clone()).await?;
            Ok(Next::Done(None))
        })
    }
}
