//! HBase's nouns as plain values: tables, families, regions, servers, reads and writes.
//!
//! Always true: a value that was built is legal by HBase's rules of names and limits, or carries what its caller
//! asked for and is checked where it is used (the docs say which). Must not know: I/O, protobuf (conversions are in
//! `convert`).

pub mod coprocessor;
pub mod description;
pub mod flush_policy;
pub mod java_order;
pub mod mutation;
pub mod name;
pub mod read;
pub mod region_info;
pub mod server_name;
pub mod split_policy;
pub mod status;
pub mod store_engine;
pub mod table;

pub use coprocessor::{Coprocessor, Endpoint};
pub use flush_policy::FlushPolicyKind;
pub use mutation::{Condition, Durability, Mutation, MutationKind, Nonce};
pub use name::{NameError, TableName};
pub use read::{Get, MobRead, Scan, TimeRange};
pub use region_info::RegionInfo;
pub use server_name::ServerName;
pub use split_policy::SplitPolicyKind;
pub use store_engine::StoreEngine;
pub use table::{BloomType, Compression, DataBlockEncoding, FamilyDescriptor, KeepDeletedCells, TableDescriptor};
