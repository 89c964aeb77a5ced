//! How the memory budget is divided: the caps of the ledger. See docs/decisions/0020.

use base::{Holder, Ledger};
use std::sync::Arc;

/// A ledger for `budget_bytes`, with the caps of those who hold more than what is set for memstores and block cache.
pub(crate) fn ledger(budget_bytes: u64) -> Arc<Ledger> {
    let ledger = Ledger::new(budget_bytes);
    ledger.set_cap(Holder::Nonces, (budget_bytes / 16).max(4 << 20));
    ledger
}
