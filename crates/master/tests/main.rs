//! Tests of the master beside a region server made of maps.

mod answers;
mod cleaner;
mod common;
mod crash;
mod ddl;
mod groups;
mod hbck;
mod healing;
mod locality;
mod of_hbase;
mod peers;
mod replicas;
mod scale;
mod servers;
mod service;
mod snapshots;
mod start;
