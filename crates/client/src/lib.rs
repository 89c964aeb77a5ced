//! A native HBase client: registry, locator, tables, scanners, administration.
//!
//! Follows `AsyncConnectionImpl`, `AsyncTable`, `AsyncAdmin` and their kin.
