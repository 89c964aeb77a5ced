//! What every request has at hand.

use crate::reply::Reply;
use crate::request::Request;
use crate::resources;
use crate::scanners::Scanners;
use crate::settings;
use base::{Charge, Config, Holder, Ledger, Rng};
use client::{Connection, Table};
use hyper::body::Incoming;
use model::TableName;
use std::sync::Arc;
use std::time::Duration;

/// Bytes that a request holds besides its body: so many requests at a time are bounded, too.
const REQUEST_BYTES: u64 = 4 << 10;

/// A REST gateway to a cluster, without its port.
pub struct Gateway {
    pub(crate) connection: Connection,
    pub(crate) read_only: bool,
    pub(crate) fetch_size: u32,
    pub(crate) max_reply_bytes: usize,
    pub(crate) scanners: Scanners,
    max_request_bytes: u64,
    ledger: Arc<Ledger>,
    rng: Rng,
}

impl Gateway {
    /// To the cluster that `connection` leads to. What clients hold counts on `ledger`.
    pub fn new(connection: Connection, config: &Config, ledger: Arc<Ledger>) -> Gateway {
        let expire = Duration::from_millis(config.get(&settings::SCANNER_EXPIRE_MS));
        Gateway {
            connection,
            read_only: config.get(&settings::READ_ONLY),
            fetch_size: config.get(&settings::SCAN_FETCH_SIZE),
            max_reply_bytes: config.get(&settings::MAX_REPLY_BYTES) as usize,
            scanners: Scanners::new(config.get(&settings::SCANNER_CACHE_SIZE) as usize, expire),
            max_request_bytes: config.get(&settings::MAX_REQUEST_BYTES),
            ledger,
            rng: Rng::from_system(),
        }
    }

    /// Answers one request.
    pub(crate) async fn answer(&self, request: hyper::Request<Incoming>) -> Reply {
        let Some(mut charge) = self.ledger.try_charge_share(Holder::Requests, REQUEST_BYTES) else {
            return Reply::crowded();
        };
        let request = match Request::read(request, self.max_request_bytes, &mut charge).await {
            Ok(request) => request,
            Err(refused) => return refused,
        };
        let reply = resources::answer(self, &request).await.unwrap_or_else(|refused| refused);
        let reply = if request.takes_gzip() { reply.gzip() } else { reply };
        reply.within(&self.ledger)
    }

    /// Counts rows that are gathered for a reply.
    pub(crate) fn gathering(&self) -> Charge {
        self.ledger.charge(Holder::Scanners, 0)
    }

    /// Counts what a stream holds of replies.
    pub(crate) fn streaming(&self) -> Charge {
        self.ledger.charge(Holder::Replies, 0)
    }

    /// A table by the name in a path.
    pub(crate) fn table(&self, name: &str) -> Result<Table, Reply> {
        Ok(self.connection.table(&table_name(name)?))
    }

    /// An id that nobody guesses.
    pub(crate) fn scanner_id(&self) -> String {
        format!("{:016x}{:016x}", self.rng.next_u64(), self.rng.next_u64())
    }
}

/// The name in a path.
pub(crate) fn table_name(name: &str) -> Result<TableName, Reply> {
    TableName::parse(name).map_err(|error| Reply::bad_request(&error.to_string()))
}
