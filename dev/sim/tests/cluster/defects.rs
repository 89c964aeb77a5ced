//! Planted bugs are noticed.
