//! Tests of store files.

mod cache;
mod common;
mod damage;
mod faults;
mod golden_read;
mod golden_write;
mod on_disk;
mod second_level;
mod seek;
