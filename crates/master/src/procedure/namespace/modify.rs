//! ModifyNamespaceProcedure.

use super::{check_configuration, check_namespace_name};
use crate::Result;
use crate::cluster::NamespaceConfiguration;
use crate::host::BoxFuture;
use crate::locks::{Mode, Resource};
use crate::master::Master;
use crate::procedure::engine::{Procedure, Step, any, steps, unpack};
use crate::procedure::for_hbase::Form;
use crate::procedure::{BoxedProcedure, Caller, Context, Next, ProcedureKind, namespace_locks};
use convert::{from_proto, to_proto};
use proto::pb::ModifyNamespaceState as State;
use proto::{Any, pb};
use std::sync::Arc;

const CLASS: &str = "org.apache.hadoop.hbase.master.procedure.ModifyNamespaceProcedure";

pub(crate) const KIND: ProcedureKind =
    ProcedureKind { class_name: CLASS, read: |data| Ok(Box::new(ModifyNamespace::read(data)?)) };

/// A namespace's configuration is replaced.
#[derive(Debug)]
struct ModifyNamespace {
    name: String,
    configuration: NamespaceConfiguration,
}

/// Replaces a namespace's configuration; answers the procedure's id.
///
/// # Errors
/// No such namespace, an illegal configuration.
pub(crate) async fn submit(
    master: &Arc<Master>,
    name: String,
    configuration: NamespaceConfiguration,
    caller: &Caller,
) -> Result<u64> {
    check_namespace_name(&name)?;
    let prepare = async {
        master.namespaces.existing(&name)?;
        check_configuration(&name, &configuration)?;
        Ok(Box::new(ModifyNamespace { name: name.clone(), configuration }) as BoxedProcedure)
    };
    master.procedures.submit(master, caller.submission(namespace_locks(&name)), prepare).await
}

impl ModifyNamespace {
    fn read(data: &[Any]) -> Result<ModifyNamespace> {
        let state: pb::ModifyNamespaceStateData = unpack(data)?;
        let (name, configuration) = from_proto::namespace(&state.namespace_descriptor)?;
        Ok(ModifyNamespace { name, configuration })
    }
}

impl Procedure<Master> for ModifyNamespace {
    fn class_name(&self) -> &'static str {
        CLASS
    }

    fn state_data(&self) -> Vec<Any> {
        let state = pb::ModifyNamespaceStateData {
            namespace_descriptor: to_proto::namespace(&self.name, &self.configuration),
            unmodified_namespace_descriptor: None,
        };
        vec![any("ModifyNamespaceStateData", &state)]
    }

    fn locks(&self) -> Vec<(Resource, Mode)> {
        namespace_locks(&self.name)
    }

    fn first_step(&self) -> Step {
        State::ModifyNamespaceUpdateNsTable as Step
    }

    // HBase's may do all of it again.
    fn for_hbase(&self) -> Form {
        Form::Steps(steps(&[State::ModifyNamespacePrepare, State::ModifyNamespaceUpdateNsTable]))
    }

    fn execute<'a>(&'a mut self, _step: Step, context: &'a Context) -> BoxFuture<'a, Result<Next>> {
        Box::pin(async move {
            context.env.namespaces.put(self.name.clone(), self.configuration.clone()).await?;
            Ok(Next::Done(None))
        })
    }
}
