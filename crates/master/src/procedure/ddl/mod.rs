//! Tables: made, deleted, truncated, enabled, disabled, changed. Follows: `CreateTableProcedure` and its neighbours,
//! `HMaster`.

pub(crate) mod create;
pub(crate) mod delete;
pub(crate) mod disable;
pub(crate) mod enable;
pub(crate) mod file_tracker;
pub(crate) mod modify;
pub(crate) mod truncate;

use crate::cluster::TableState;
use crate::{ErrorKind, MasterError, Result};
use bytes::Bytes;
use model::{RegionInfo, TableName};

/// Regions that a CreateTable may ask for.
const MAX_REGIONS_PER_CREATE: usize = 1_000_000;

/// The regions that these split keys make. Follows: `ModifyRegionUtils#createRegionInfos`, and the checks that
/// `HBaseAdmin` makes before it sends them.
pub(super) fn regions_by_split_keys(
    table: &TableName,
    split_keys: &[Bytes],
    region_id: u64,
) -> Result<Vec<RegionInfo>> {
    let illegal = |message: String| MasterError::new(ErrorKind::IllegalArgument, message);
    if split_keys.len() >= MAX_REGIONS_PER_CREATE {
        return Err(illegal(format!("{} split keys are too many", split_keys.len())));
    }
    if split_keys.iter().any(Bytes::is_empty) {
        return Err(illegal("Empty split key must not be passed in the split keys.".into()));
    }
    let mut keys: Vec<&Bytes> = split_keys.iter().collect();
    keys.sort_unstable();
    if let Some(twice) = keys.windows(2).find(|pair| pair[0] == pair[1]) {
        return Err(illegal(format!(
            "All split keys must be unique, found duplicate: {}",
            cell::print::to_string_binary(twice[0])
        )));
    }
    if let Some(long) = keys.iter().find(|key| key.len() > cell::MAX_ROW_LENGTH) {
        return Err(illegal(format!("a split key of {} bytes is longer than a row may be", long.len())));
    }
    let starts = std::iter::once(Bytes::new()).chain(keys.iter().map(|key| (*key).clone()));
    let ends = keys.iter().map(|key| (*key).clone()).chain(std::iter::once(Bytes::new()));
    let regions: Vec<RegionInfo> =
        starts.zip(ends).map(|(start, end)| RegionInfo::new(table.clone(), start, end, region_id)).collect();
    regions.iter().try_for_each(super::region::check_name).map_err(illegal)?;
    Ok(regions)
}

/// `tableName=t, state=ENABLED`, as the messages of enable and disable have it.
fn state_text(table: &TableName, state: TableState) -> String {
    format!("tableName={table}, state={}", state.as_str_name())
}
