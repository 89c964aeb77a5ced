//! The models play their conformance tables.
