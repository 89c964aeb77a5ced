//! One table. Follows: `Table`, `AsyncTable`, `RawAsyncTableImpl`.

mod bulk_load;
mod call;
mod check;
mod coprocessor;
mod options;
mod read;
mod regions;
mod replica;
mod write;

use std::sync::Arc;

use model::{Scan, TableName};

pub use self::bulk_load::BulkLoadOptions;
pub use self::check::{CheckAndMutate, Checked};
pub use self::coprocessor::CoprocessorResult;
pub(crate) use self::options::Manner;
pub use self::options::TableOptions;
use crate::connection::Cluster;
use crate::locator::TableCache;
use crate::{BufferedMutator, BufferedMutatorOptions, ScanOptions, Scanner};

/// A table of a [`crate::Connection`]. Cheap to clone, used from any number of tasks.
///
/// Every operation is a future that does nothing before it is polled. Dropped, it gives its place on the connection free and is not tried
/// again; what was sent already may still be done by the server.
///
/// ```no_run
/// # use basalt_client as client;
/// # use std::time::Duration;
/// # async fn example(connection: client::Connection) -> Result<(), client::Error> {
/// use client::{Increment, Put, ScanOptions};
/// use model::{Get, Scan, TableName};
/// let table = connection.table(&TableName::parse("t").expect("a legal name"));
/// let hasty = table.with(|options| {
///     options.operation_timeout = Duration::from_millis(200);
///     options.retries = 2;
/// });
/// hasty.put(&Put::new("row").add("f", "q", "value").build()).await?;
/// let counted = table.increment(&Increment::new("row").add("f", "n", 1).build()).await?;
/// println!("{:?}", counted.value(b"f", b"n"));
/// let mut scanner = table.scan(Scan { start_row: "row".into(), ..Scan::default() }, ScanOptions::default());
/// while let Some(row) = scanner.next().await? {
///     println!("{:?} has {} cells", row.row(), row.len());
/// }
/// # Ok(()) }
/// ```
#[derive(Clone)]
pub struct Table {
    pub(crate) cluster: Arc<Cluster>,
    pub(crate) cache: Arc<TableCache>,
    pub(crate) manner: Manner,
}

impl Table {
    pub(crate) fn new(cluster: Arc<Cluster>, cache: Arc<TableCache>) -> Table {
        let manner = if cache.table.is_meta() { cluster.meta_manner.clone() } else { cluster.manner.clone() };
        Table { cluster, cache, manner }
    }

    /// Its name.
    pub fn name(&self) -> &TableName {
        &self.cache.table
    }

    /// How patient this handle is, and what its requests carry.
    pub fn options(&self) -> &TableOptions {
        &self.manner.options
    }

    /// The same table in another manner.
    #[must_use = "the handle itself stays as it is"]
    pub fn with(&self, change: impl FnOnce(&mut TableOptions)) -> Table {
        let mut options = self.options().clone();
        change(&mut options);
        Table { manner: Manner::new(options), ..self.clone() }
    }

    /// The same table with one more attribute on each request, which servers and their coprocessors can read.
    #[must_use = "the handle itself stays as it is"]
    pub fn with_request_attribute(&self, name: &str, value: impl Into<bytes::Bytes>) -> Table {
        self.with(|options| options.request_attributes.push((name.to_owned(), value.into())))
    }

    /// Gathers writes and sends them when `limit_bytes` have come together (HBase's default is 2 MiB).
    pub fn buffered(&self, limit_bytes: usize) -> BufferedMutator {
        self.buffered_with(BufferedMutatorOptions { limit_bytes, ..BufferedMutatorOptions::new(&self.cluster.options) })
    }

    /// As [`Table::buffered`], with everything said.
    pub fn buffered_with(&self, options: BufferedMutatorOptions) -> BufferedMutator {
        BufferedMutator::new(self.clone(), options)
    }

    /// What a buffered mutator is made with unless something else is said: as the connection's options have it.
    pub fn buffer_options(&self) -> BufferedMutatorOptions {
        BufferedMutatorOptions::new(&self.cluster.options)
    }

    /// Reads a range of rows. Nothing is sent before the first row is asked for.
    pub fn scan(&self, scan: Scan, options: ScanOptions) -> Scanner {
        Scanner::new(self.clone(), scan, options)
    }

    /// How a scan travels as the connection's options have it.
    pub fn scan_options(&self) -> ScanOptions {
        ScanOptions {
            caching: self.cluster.options.scanner_caching,
            max_result_size: self.cluster.options.scanner_max_result_size,
            ..ScanOptions::default()
        }
    }
}
