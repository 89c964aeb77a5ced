//! A native HBase client: registry, locator, tables, scanners, administration. The whole of Java's `Table` and `Admin`, asynchronous,
//! pipelined over few connections, for load tools, shells, gateways and SQL alike.
//!
//! ```no_run
//! # use basalt_client as client;
//! # async fn example() -> Result<(), client::Error> {
//! use client::{Connection, Options, Put};
//! let connection = Connection::open(Options::zookeeper("localhost:2181"));
//! let table = connection.table(&model::TableName::parse("t").expect("a legal name"));
//! table.put(&Put::new("row").add("f", "q", "value").build()).await?;
//! let row = table.get(&model::Get::new("row")).await?;
//! assert_eq!(row.value(b"f", b"q"), Some(&b"value"[..]));
//! # Ok(()) }
//! ```
//!
//! Always true:
//!  1. No task is made for an operation, buffered writes aside. A connection to a server has one task; requests of many callers leave in
//!     one write, replies that came in one read are handed out under one lock.
//!  2. What a server refuses for good is an error at once; what may pass is tried again with HBase's pauses until the
//!     operation's time is over. A region that has moved is looked up again in hbase:meta. An operation that is dropped
//!     is not tried again, and its place on the connection is free.
//!  3. An increment or append that is tried again carries the nonce of its first try.
//!  4. Bytes from a server never panic.
//!  5. A server in the same process is called without sockets ([`Options::in_process`]): requests are handed to its services, cells are passed
//!     on as they are, and what is under way counts on the server's memory ledger.
//!
//! Must not know: files, regions' insides, how a server is made. Follows `AsyncConnectionImpl`,
//! `AsyncNonMetaRegionLocator`, `AsyncSingleRequestRpcRetryingCaller`, `AsyncBatchRpcRetryingCaller`,
//! `AsyncScanSingleRegionRpcRetryingCaller`, `CompleteScanResultCache`, `RawAsyncHBaseAdmin`, `ZKConnectionRegistry`,
//! `RpcConnectionRegistry`.

mod admin;
mod batch;
mod buffered;
mod channel;
mod connection;
mod error;
mod locator;
mod metrics;
mod mutations;
mod options;
mod registry;
mod retry;
mod row;
mod scanner;
pub mod settings;
mod table;
mod together;
mod traces;

pub use admin::{Admin, CompactionState, Hbck, Pattern, QuotaOwner, QuotaSettings, RestoreOptions};
pub use batch::Action;
pub use buffered::{BufferedMutator, BufferedMutatorOptions};
pub use connection::Connection;
pub use error::{Error, RemoteException, Result};
pub use locator::RegionLocation;
pub use metrics::Metrics;
pub use mutations::{Append, Delete, Increment, Put};
pub use options::{Options, Registry};
pub use registry::zookeeper;
pub use row::{Row, Rows};
pub use scanner::{ScanMetrics, ScanOptions, Scanner};
pub use table::{BulkLoadOptions, CheckAndMutate, Checked, CoprocessorResult, Table, TableOptions};
