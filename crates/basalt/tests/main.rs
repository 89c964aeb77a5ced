//! Tests of the binary: real processes, spoken to over the network. `limits` measures a process and is a binary of its own, so that no other test
//! runs beside it.

mod backup_tools;
mod bad_input;
mod bulk_tools;
mod chaos;
mod client;
mod common;
mod dev;
mod endpoints;
mod file_tools;
mod gateways;
mod handed;
mod hdfs;
mod joined;
mod load;
mod metrics;
mod online;
mod own;
mod pages;
mod process;
mod prompt;
mod recovered;
mod replicated;
mod scanner_protocol;
mod scans;
mod settings_doc;
mod shell;
mod table_settings;
mod table_tools;
mod ticks;
mod tiers;
mod tool_options;
mod tools;
mod traces;
mod wal_dir;
mod wide_rows;
