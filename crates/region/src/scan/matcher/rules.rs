//! What a family's descriptor says of versions, deletes and time to live.

use model::{FamilyDescriptor, KeepDeletedCells};

/// What the matcher needs to know of a family.
#[derive(Clone, Debug)]
pub(crate) struct FamilyRules {
    pub max_versions: u32,
    pub min_versions: u32,
    pub ttl_ms: Option<i64>,
    pub keep_deleted: KeepDeletedCells,
    pub new_version_behavior: bool,
    pub time_to_purge_deletes_ms: i64,
}

impl FamilyRules {
    pub(crate) fn of(family: &FamilyDescriptor, time_to_purge_deletes_ms: i64) -> FamilyRules {
        let keep_deleted = family.keep_deleted_cells();
        FamilyRules {
            max_versions: family.max_versions(),
            min_versions: family.min_versions(),
            ttl_ms: family.ttl_ms(),
            // With no TTL there is nothing that ends the keeping. Follows: `ScanInfo`.
            keep_deleted,
            new_version_behavior: family.new_version_behavior(),
            time_to_purge_deletes_ms,
        }
    }

    /// Cells stamped before this are expired.
    pub(crate) fn oldest_unexpired(&self, now_ms: i64) -> i64 {
        self.ttl_ms.map_or(i64::MIN, |ttl| now_ms.saturating_sub(ttl))
    }
}
