//! Thrift 1: `Hbase.thrift`. Follows: `org.apache.hadoop.hbase.thrift`.

mod coalescer;
mod reads;
mod scans;
mod service;
mod tables;
pub mod types;
mod writes;

use crate::fault::Outcome;
use crate::metrics::Metrics;
use crate::scanners::Scanners;
use crate::server::ServerOptions;
use base::Ledger;
use bytes::Bytes;
use client::{Admin, Connection, Table};
use coalescer::Coalescer;
use model::TableName;
use std::collections::BTreeMap;
use std::sync::Arc;

type Attributes = BTreeMap<Bytes, Bytes>;

/// What answers calls.
pub struct Handler {
    connection: Connection,
    scanners: Arc<Scanners>,
    /// Where increments wait; none where each is written before it is answered.
    coalescer: Option<Arc<Coalescer>>,
    metrics: Arc<Metrics>,
}

impl Handler {
    /// Over a connection to the cluster.
    pub(crate) fn new(
        connection: Connection,
        scanners: Arc<Scanners>,
        options: &ServerOptions,
        ledger: &Arc<Ledger>,
        metrics: &Arc<Metrics>,
    ) -> Handler {
        let coalescer = options.coalesce_increments.then(|| Arc::new(Coalescer::new(connection.clone(), ledger)));
        Handler { connection, scanners, coalescer, metrics: metrics.clone() }
    }

    /// The same over another connection. Increments are not coalesced there: those that wait are written by the gateway's own user.
    pub(crate) fn over(&self, connection: Connection) -> Handler {
        Handler { connection, scanners: self.scanners.clone(), coalescer: None, metrics: self.metrics.clone() }
    }

    /// Where increments wait.
    pub(crate) fn coalescer(&self) -> Option<Arc<Coalescer>> {
        self.coalescer.clone()
    }

    fn table(&self, name: &Bytes) -> Outcome<Table> {
        Ok(self.connection.table(&table_name(name)?))
    }

    fn admin(&self) -> Admin {
        self.connection.admin()
    }
}

fn table_name(name: &Bytes) -> Outcome<TableName> {
    Ok(TableName::parse(&String::from_utf8_lossy(name))?)
}

fn attributes(from: Option<Attributes>) -> Vec<(String, Bytes)> {
    let text = |(name, value): (Bytes, Bytes)| (String::from_utf8_lossy(&name).into_owned(), value);
    from.into_iter().flatten().map(text).collect()
}

/// `family`, or `family:qualifier`. Follows: `CellUtil#parseColumn`.
fn parse_column(column: &Bytes) -> (Bytes, Option<Bytes>) {
    match column.iter().position(|byte| *byte == b':') {
        Some(at) => (column.slice(..at), Some(column.slice(at + 1..))),
        None => (column.clone(), None),
    }
}

#[cfg(test)]
mod tests {
    use super::parse_column;

    #[test]
    fn a_column_is_a_family_and_perhaps_a_qualifier() {
        for (text, family, qualifier) in
            [("f", "f", None), ("f:", "f", Some("")), ("f:q", "f", Some("q")), ("f:q:r", "f", Some("q:r"))]
        {
            assert_eq!(parse_column(&text.into()), (family.into(), qualifier.map(Into::into)), "{text}");
        }
    }
}
