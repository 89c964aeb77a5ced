//! The balancer against what HBase's classes compute, and over many periods.

mod common;
mod convergence;
mod golden;
