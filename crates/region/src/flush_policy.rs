//! Which families a flush takes that nobody asked for by name. Follows: `FlushPolicyFactory`, `FlushAllLargeStoresPolicy`,
//! `FlushNonSloppyStoresFirstPolicy`, `FlushLargeStoresPolicy`.

use crate::core::RegionCore;
use crate::settings::RegionSettings;
use crate::store::Store;
use model::{FlushPolicyKind, TableDescriptor};

/// The table's policy, or the server's; of a class that is not known, HBase's default with a warning.
fn kind_of(table: &TableDescriptor, settings: &RegionSettings) -> FlushPolicyKind {
    let Some(class) = table.flush_policy() else { return settings.flush_policy };
    FlushPolicyKind::parse(class).unwrap_or_else(|| {
        let default = FlushPolicyKind::default();
        tracing::warn!("table {}: unknown flush policy {class}, using {default:?}", table.name);
        default
    })
}

/// What the policy of an open region comes to.
#[derive(Debug)]
pub(crate) struct FlushPolicy {
    /// Memstores of families above so many bytes are flushed alone; `None`: all are flushed together.
    bound_bytes: Option<i64>,
}

impl FlushPolicy {
    /// Of a region that opens now.
    pub(crate) fn new(table: &TableDescriptor, settings: &RegionSettings) -> FlushPolicy {
        let families = table.families.len() as u64;
        let bound_bytes = match kind_of(table, settings) {
            FlushPolicyKind::AllStores => None,
            // Without memstores that are compacted in memory there is none that the second would leave for later.
            FlushPolicyKind::AllLargeStores | FlushPolicyKind::NonSloppyStoresFirst if families > 1 => {
                let flush_size = table.flush_size_bytes().unwrap_or(settings.flush_size_bytes);
                let bound = (flush_size / families).max(settings.flush_lower_bound_min_bytes);
                Some(table.family_flush_bound_bytes().unwrap_or(i64::try_from(bound).unwrap_or(i64::MAX)))
            }
            FlushPolicyKind::AllLargeStores | FlushPolicyKind::NonSloppyStoresFirst => None,
        };
        FlushPolicy { bound_bytes }
    }

    /// The large ones, or all if none is large.
    pub(crate) fn stores<'c>(&self, core: &'c RegionCore) -> Vec<&'c Store> {
        if let Some(bound) = self.bound_bytes {
            let is_large = |store: &&Store| i64::try_from(store.heap_bytes()).unwrap_or(i64::MAX) > bound;
            let large: Vec<&Store> = core.stores.iter().filter(is_large).collect();
            if !large.is_empty() {
                return large;
            }
        }
        core.stores.iter().collect()
    }
}
