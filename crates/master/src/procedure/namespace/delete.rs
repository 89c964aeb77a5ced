//! DeleteNamespaceProcedure.

use crate::host::BoxFuture;
use crate::locks::{Mode, Resource};
use crate::master::Master;
use crate::procedure::engine::{Procedure, Step, any, steps, unpack};
use crate::procedure::for_hbase::Form;
use crate::procedure::{BoxedProcedure, Caller, Context, Next, ProcedureKind, namespace_locks};
use crate::{ErrorKind, MasterError, Result, quotas};
use model::name::{DEFAULT_NAMESPACE, SYSTEM_NAMESPACE};
use proto::pb::DeleteNamespaceState as State;
use proto::{Any, pb};
use quota::rows::Subject;
use std::sync::Arc;

const CLASS: &str = "org.apache.hadoop.hbase.master.procedure.DeleteNamespaceProcedure";

pub(crate) const KIND: ProcedureKind =
    ProcedureKind { class_name: CLASS, read: |data| Ok(Box::new(DeleteNamespace::read(data)?)) };

/// A namespace without tables is deleted.
#[derive(Debug)]
struct DeleteNamespace {
    name: String,
}

/// Deletes a namespace without tables; answers the procedure's id.
///
/// # Errors
/// No such namespace, a reserved one, one with tables.
pub(crate) async fn submit(master: &Arc<Master>, name: &str, caller: &Caller) -> Result<u64> {
    master.namespaces.existing(name)?;
    let prepare = async {
        master.namespaces.existing(name)?;
        let refused = |message: String| Err(MasterError::new(ErrorKind::Constraint, message));
        if matches!(name, DEFAULT_NAMESPACE | SYSTEM_NAMESPACE) {
            return refused(format!("Reserved namespace {name} cannot be removed."));
        }
        let tables = master.cluster.read().tables().filter(|(table, _)| table.name.namespace() == name).count();
        if tables > 0 {
            return refused(format!("Only empty namespaces can be removed. Namespace {name} has {tables} tables"));
        }
        Ok(Box::new(DeleteNamespace { name: name.to_owned() }) as BoxedProcedure)
    };
    master.procedures.submit(master, caller.submission(namespace_locks(name)), prepare).await
}

impl DeleteNamespace {
    fn read(data: &[Any]) -> Result<DeleteNamespace> {
        Ok(DeleteNamespace { name: unpack::<pb::DeleteNamespaceStateData>(data)?.namespace_name })
    }
}

impl Procedure<Master> for DeleteNamespace {
    fn class_name(&self) -> &'static str {
        CLASS
    }

    fn state_data(&self) -> Vec<Any> {
        let state = pb::DeleteNamespaceStateData { namespace_name: self.name.clone(), namespace_descriptor: None };
        vec![any("DeleteNamespaceStateData", &state)]
    }

    fn locks(&self) -> Vec<(Resource, Mode)> {
        namespace_locks(&self.name)
    }

    fn first_step(&self) -> Step {
        State::DeleteNamespaceDeleteFromNsTable as Step
    }

    // HBase's may do all of it again.
    fn for_hbase(&self) -> Form {
        Form::Steps(steps(&[State::DeleteNamespacePrepare, State::DeleteNamespaceDeleteFromNsTable]))
    }

    fn execute<'a>(&'a mut self, _step: Step, context: &'a Context) -> BoxFuture<'a, Result<Next>> {
        Box::pin(async move {
            context.env.namespaces.remove(&self.name).await?;
            quotas::forget(&context.env, Subject::Namespace(self.name.clone())).await?;
            Ok(Next::Done(None))
        })
    }
}
