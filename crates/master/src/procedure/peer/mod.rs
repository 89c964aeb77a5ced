//! Replication peers: added, changed, enabled, disabled, removed. Follows: `ModifyPeerProcedure` and its kinds.

pub(crate) mod check;
pub(crate) mod modify;
