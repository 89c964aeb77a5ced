//! Region servers: what is done when one crashes.

pub(crate) mod crash;
