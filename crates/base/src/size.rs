//! Byte sizes by name.

/// 1024 bytes.
pub const KIB: u64 = 1024;
/// 1024 KiB.
pub const MIB: u64 = 1024 * KIB;
/// 1024 MiB.
pub const GIB: u64 = 1024 * MIB;
