//! Operations on tables as spans of a trace, if what asks for them is traced. Follows: `TableOperationSpanBuilder`, `HBaseSemanticAttributes`.

use std::fmt;
use std::future::Future;

use model::{MutationKind, TableName};
use proto::pb::mutation_proto::MutationType;
use trace::{Span, SpanKind, Value};

use crate::Result;

/// What is done to a table. Follows: `HBaseSemanticAttributes.Operation`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Operation {
    Append,
    Batch,
    CheckAndMutate,
    CoprocExec,
    Delete,
    Get,
    Increment,
    Put,
    Scan,
}

impl Operation {
    pub fn of_mutation(kind: MutationType) -> Operation {
        match kind {
            MutationType::Append => Operation::Append,
            MutationType::Increment => Operation::Increment,
            MutationType::Put => Operation::Put,
            MutationType::Delete => Operation::Delete,
        }
    }

    pub fn of_kind(kind: MutationKind) -> Operation {
        match kind {
            MutationKind::Append => Operation::Append,
            MutationKind::Increment => Operation::Increment,
            MutationKind::Put => Operation::Put,
            MutationKind::Delete => Operation::Delete,
        }
    }

    const fn name(self) -> &'static str {
        match self {
            Operation::Append => "APPEND",
            Operation::Batch => "BATCH",
            Operation::CheckAndMutate => "CHECK_AND_MUTATE",
            Operation::CoprocExec => "COPROC_EXEC",
            Operation::Delete => "DELETE",
            Operation::Get => "GET",
            Operation::Increment => "INCREMENT",
            Operation::Put => "PUT",
            Operation::Scan => "SCAN",
        }
    }
}

impl fmt::Display for Operation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// Begins the span of an operation on `table`, `GET namespace:table`, if what this thread does is traced.
#[inline]
pub(crate) fn operation_span(table: &TableName, operation: impl FnOnce() -> Option<Operation>) -> Option<Span> {
    let place = trace::current()?;
    let (operation, name) = (operation()?, table.as_str());
    let (namespace, whole) = match name.split_once(':') {
        Some((namespace, _)) => (namespace, name.to_owned()),
        None => ("default", format!("default:{name}")),
    };
    let mut span = place.begin_as(SpanKind::Client, format!("{operation} {whole}"));
    span.set("db.system", "hbase");
    span.set("db.name", namespace.to_owned());
    span.set("db.operation", operation.name());
    span.set("db.hbase.table", name.to_owned());
    Some(span)
}

/// Does `work` within `span`, which ends with it.
pub(crate) async fn ended<T>(mut span: Span, work: impl Future<Output = Result<T>>) -> Result<T> {
    let done = trace::within(Some(span.place().clone()), work).await;
    if let Err(error) = &done {
        span.fail(error.class().unwrap_or("java.io.IOException"), &error.to_string());
    }
    done
}

/// What is to be said of a batch besides.
pub(crate) fn contains(span: &mut Span, operations: impl Iterator<Item = Operation>) {
    let mut names: Vec<String> = operations.map(|operation| operation.to_string()).collect();
    names.sort_unstable();
    names.dedup();
    span.set("db.hbase.container_operations", Value::Texts(names));
}
