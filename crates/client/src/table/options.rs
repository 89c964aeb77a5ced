//! How patient one handle of a table is, and what its requests carry. Follows: `AsyncTableBuilder`, `TableBuilder`.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use proto::pb;

use crate::options::Options;
use crate::retry::RetryPolicy;

/// What can be said of all operations of one [`crate::Table`]; begins as the connection's [`Options`] say.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct TableOptions {
    /// How long an operation may take with all its tries.
    pub operation_timeout: Duration,
    /// The same for each call of a scan.
    pub scan_timeout: Duration,
    /// How long one call that reads may take.
    pub read_rpc_timeout: Duration,
    /// How long one call that writes may take.
    pub write_rpc_timeout: Duration,
    /// Unit of the pauses between tries.
    pub pause: Duration,
    /// The same after a server said that it has too much to do.
    pub pause_overloaded: Duration,
    /// Tries after the first.
    pub retries: u32,
    /// Failed tries of one operation before they are logged as warnings.
    pub quiet_failures: u32,
    /// Hint for servers, such as 200 for what must not wait behind others; without it 0, and 200 for HBase's own tables.
    pub priority: Option<u32>,
    /// What servers are told about each request besides what is asked.
    pub request_attributes: Vec<(String, Bytes)>,
}

impl TableOptions {
    pub(crate) fn new(options: &Options, is_meta: bool) -> TableOptions {
        let all = if is_meta { options.meta_operation_timeout } else { options.operation_timeout };
        TableOptions {
            operation_timeout: all,
            scan_timeout: options.scan_timeout,
            read_rpc_timeout: options.read_rpc_timeout.unwrap_or(options.rpc_timeout),
            write_rpc_timeout: options.write_rpc_timeout.unwrap_or(options.rpc_timeout),
            pause: options.pause,
            pause_overloaded: options.pause_overloaded,
            retries: options.retries,
            quiet_failures: options.quiet_failures,
            priority: None,
            request_attributes: Vec::new(),
        }
    }

    fn policy(&self, operation_timeout: Duration, rpc_timeout: Duration) -> RetryPolicy {
        RetryPolicy {
            pause: self.pause,
            pause_overloaded: self.pause_overloaded.max(self.pause),
            retries: self.retries,
            operation_timeout,
            rpc_timeout,
            quiet_failures: self.quiet_failures,
        }
    }
}

/// Options as calls need them.
#[derive(Clone)]
pub(crate) struct Manner {
    pub(crate) options: Arc<TableOptions>,
    pub(crate) attributes: Arc<[pb::NameBytesPair]>,
}

impl Manner {
    pub(crate) fn new(options: TableOptions) -> Manner {
        let pair =
            |(name, value): &(String, Bytes)| pb::NameBytesPair { name: name.clone(), value: Some(value.clone()) };
        let attributes = options.request_attributes.iter().map(pair).collect();
        Manner { options: Arc::new(options), attributes }
    }

    pub(crate) fn reading(&self) -> RetryPolicy {
        self.options.policy(self.options.operation_timeout, self.options.read_rpc_timeout)
    }

    pub(crate) fn writing(&self) -> RetryPolicy {
        self.options.policy(self.options.operation_timeout, self.options.write_rpc_timeout)
    }

    pub(crate) fn scanning(&self) -> RetryPolicy {
        self.options.policy(self.options.scan_timeout, self.options.read_rpc_timeout)
    }
}
