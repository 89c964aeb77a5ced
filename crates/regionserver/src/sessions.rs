//! What a server remembers of its clients between two calls: their scanners, and which operations they have done already.

use crate::handlers::scan::OpenScanner;
use crate::nonces::Nonces;
use crate::scanners::Scanners;
use crate::settings;
use base::{Clock, Config, Ledger, LogThrottle};
use model::{Nonce, ServerName};
use region::Region;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

/// Scanners and nonces.
pub(crate) struct Sessions {
    pub scanners: Scanners<OpenScanner>,
    /// Bytes of a row in the last scan's reply: what room to make for the next.
    pub scanned_row_bytes: AtomicUsize,
    pub nonces: Arc<Nonces>,
    /// Scanners closed because their clients did not come back.
    pub expired_scanners: AtomicU64,
    /// Nonces that were forgotten before their time.
    forgotten_nonces: LogThrottle,
}

impl Sessions {
    /// Those of the server `name`. What `recovered_nonces` name has succeeded: a retry does not count.
    pub fn new(
        clock: &Arc<dyn Clock>,
        config: &Config,
        ledger: &Arc<Ledger>,
        name: &ServerName,
        recovered_nonces: Vec<Nonce>,
    ) -> Sessions {
        // Ids of two runs of a server do not meet: the start code is in their upper half.
        let first_scanner_id = (name.start_code & 0x7FFF_FFFF) << 32 | 1;
        let sessions = Sessions {
            scanners: Scanners::new(clock.clone(), config.get(&settings::SCANNER_TIMEOUT_MS), first_scanner_id),
            scanned_row_bytes: AtomicUsize::new(0),
            nonces: Nonces::new(clock.clone(), config.get(&settings::NONCE_TIMEOUT_MS), ledger),
            expired_scanners: AtomicU64::new(0),
            forgotten_nonces: LogThrottle::every_us(crate::background::REPEAT_MESSAGE_US),
        };
        sessions.remember(recovered_nonces);
        sessions
    }

    /// Operations that were logged have succeeded: a retry does not count.
    pub fn remember(&self, nonces: impl IntoIterator<Item = Nonce>) {
        nonces.into_iter().for_each(|nonce| self.nonces.recovered(nonce));
    }

    /// A region closes: its scanners do, too.
    pub fn close_scanners_of(&self, region: &Arc<Region>) {
        self.scanners.close_where(|scanner| Arc::ptr_eq(scanner.region(), region));
    }

    /// Closes scanners whose clients have not come back.
    pub fn expire_scanners(&self) {
        let expired = self.scanners.expire();
        if expired > 0 {
            self.expired_scanners.fetch_add(expired as u64, Ordering::Relaxed);
            tracing::info!("{expired} scanners were closed because their leases ran out");
        }
    }

    /// Gives back the memory of old nonces, and says when there is too little for the young.
    pub fn forget_old_nonces(&self, clock: &dyn Clock) {
        self.nonces.forget_old();
        let forgotten = self.nonces.take_forgotten_early();
        if forgotten > 0 && self.forgotten_nonces.allow(clock) {
            tracing::warn!(
                "{forgotten} nonces of increments and appends were forgotten before hbase.server.hashNonce.evictTimeout, for there is no \
                 memory for more: a retry that comes later than that counts twice; a larger basalt.memory.size remembers longer"
            );
        }
    }
}
