//! Thrift 2: `hbase.thrift`. Follows: `org.apache.hadoop.hbase.thrift2`.

mod data;
mod reads;
mod regions;
mod scans;
mod schema;
mod service;
mod slow_log;
mod tables;
pub mod types;
mod writes;

pub(crate) use reads::{add_column, check_row, time_range};
pub(crate) use scans::batch;

use crate::fault::{Fault, Outcome};
use crate::scanners::Scanners;
use bytes::Bytes;
use client::{Admin, Connection, Table};
use model::TableName;
use std::sync::Arc;

/// What answers calls.
pub struct Handler {
    connection: Connection,
    scanners: Arc<Scanners>,
    read_only: bool,
}

impl Handler {
    /// Over a connection to the cluster.
    pub(crate) fn new(connection: Connection, scanners: Arc<Scanners>, read_only: bool) -> Handler {
        Handler { connection, scanners, read_only }
    }

    /// The same over another connection.
    pub(crate) fn over(&self, connection: Connection) -> Handler {
        Handler { connection, scanners: self.scanners.clone(), read_only: self.read_only }
    }

    fn table(&self, name: &Bytes) -> Outcome<Table> {
        Ok(self.connection.table(&TableName::parse(&String::from_utf8_lossy(name))?))
    }

    /// The table, for a call that writes.
    fn table_to_write(&self, name: &Bytes) -> Outcome<Table> {
        if self.read_only {
            let message = "Thrift Server is in Read-only mode.".to_owned();
            let class = Some("org.apache.hadoop.hbase.DoNotRetryIOException".to_owned());
            return Err(Fault::Io { class, message, can_retry: false });
        }
        self.table(name)
    }

    fn admin(&self) -> Admin {
        self.connection.admin()
    }
}
