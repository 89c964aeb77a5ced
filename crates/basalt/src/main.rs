//! The binary.
mod config;
fn main() { let _ = config::load(None, &[]); }
