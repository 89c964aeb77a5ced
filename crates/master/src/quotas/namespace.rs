//! What namespaces may hold: tables and regions, by `hbase.namespace.quota.maxtables` and `.maxregions` in their configuration. They count
//! where there are quotas at all. Follows: `NamespaceAuditor`, `NamespaceStateManager`.

use crate::master::Master;
use crate::{ErrorKind, MasterError, Result};
use model::{RegionInfo, TableName};

const MAX_TABLES: &str = "hbase.namespace.quota.maxtables";
const MAX_REGIONS: &str = "hbase.namespace.quota.maxregions";

/// What a namespace holds and may hold.
struct Usage {
    tables: usize,
    regions: usize,
    max_tables: Option<u64>,
    max_regions: Option<u64>,
}

/// `None` where nothing bounds the table's namespace.
fn usage(master: &Master, table: &TableName) -> Option<Usage> {
    if !master.quotas.is_enabled() || table.is_system() {
        return None;
    }
    let cluster = master.cluster.read();
    let configuration = cluster.namespace(table.namespace())?;
    let limit = |key: &str| configuration.get(key).and_then(|value| value.trim().parse().ok());
    let (max_tables, max_regions) = (limit(MAX_TABLES), limit(MAX_REGIONS));
    if max_tables.is_none() && max_regions.is_none() {
        return None;
    }
    let (mut tables, mut regions) = (0, 0);
    for (other, _) in cluster.tables().filter(|(other, _)| other.name.namespace() == table.namespace()) {
        tables += 1;
        regions += cluster.regions_of(&other.name).filter(|node| node.is_live()).count();
    }
    Some(Usage { tables, regions, max_tables, max_regions })
}

fn exceeded(message: String) -> Result<()> {
    Err(MasterError::new(ErrorKind::QuotaExceeded, message))
}

/// Whether `table` may be made with so many regions.
///
/// # Errors
/// The namespace would hold too many tables or regions.
pub(crate) fn check_create(master: &Master, table: &TableName, regions: usize) -> Result<()> {
    let Some(usage) = usage(master, table) else { return Ok(()) };
    if let Some(max) = usage.max_tables.filter(|max| usage.tables as u64 >= *max) {
        return exceeded(format!(
            "The table {table} cannot be created as it would exceed maximum number of tables allowed  in the namespace.  \
             The total number of tables permitted is {max}"
        ));
    }
    if let Some(max) = usage.max_regions.filter(|max| (usage.regions + regions) as u64 > *max) {
        return exceeded(format!(
            "The table {table} is not allowed to have {regions} regions. The total number of regions permitted is only {max}, \
             while current region count is {}. This may be transient, please retry later if there are any ongoing split \
             operations in the namespace.",
            usage.regions
        ));
    }
    Ok(())
}

/// Whether a region may become two.
///
/// # Errors
/// The namespace holds as many regions as it may.
pub(crate) fn check_split(master: &Master, region: &RegionInfo) -> Result<()> {
    let Some(usage) = usage(master, &region.table) else { return Ok(()) };
    if usage.max_regions.is_some_and(|max| usage.regions as u64 >= max) {
        return exceeded(format!(
            "Region split not possible for :{} as quota limits are exceeded ",
            region.encoded_name()
        ));
    }
    Ok(())
}
