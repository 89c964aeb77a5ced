//! How the memory budget is divided: the caps of the ledger. See docs/decisions/0020.

use base::{Holder, Ledger};
use std::sync::Arc;

/// A ledger for `budget_bytes`, with the caps of those that have no setting of their own; requests have at most `max_queued_bytes`.
pub fn ledger(budget_bytes: u64, max_queued_bytes: u64) -> Arc<Ledger> {
    let ledger = Ledger::new(budget_bytes);
    ledger.set_cap(Holder::Requests, (budget_bytes / 4).max(16 << 20).min(max_queued_bytes));
    ledger.set_cap(Holder::Replies, (budget_bytes / 8).max(16 << 20));
    ledger.set_cap(Holder::Scanners, (budget_bytes / 16).max(4 << 20));
    ledger.set_cap(Holder::Nonces, (budget_bytes / 16).max(4 << 20));
    ledger
}
