//! Tests of the messages against HBase's own.

mod inventory;
mod sessions;
