//! Decoders of small files, for fuzzers.

use crate::{bulk_load, mob, store_file};
use bytes::Bytes;
use hfile::Half;

/// A reference file.
pub fn reference(bytes: &[u8]) -> Option<Half> {
    store_file::parse_reference(bytes)
}

/// How many moves the journal of a bulk load lists.
pub fn bulk_load_journal(bytes: &[u8]) -> usize {
    bulk_load::journal::parse(&String::from_utf8_lossy(bytes)).len()
}

/// The MOB files that a store file's info refers to, written again.
pub fn mob_references(bytes: &[u8]) -> Option<Bytes> {
    mob::names::Refs::parse(bytes).map(|refs| Bytes::from(refs.to_bytes()))
}
