//! Whether the regions of a table are a chain: each begins where the one before it ends, from the first row to the last.

use std::collections::BTreeSet;

use bytes::Bytes;
use cell::print::to_string_binary;
use model::RegionInfo;

use super::Finding;

/// What is wrong with the chain of a table's regions. Regions that were split or merged and whose rows others have by now do not count;
/// `parents` names those that are known for it.
pub(super) fn check(table: &str, regions: &[RegionInfo], parents: &BTreeSet<String>) -> Vec<Finding> {
    let is_old =
        |region: &RegionInfo| region.split || parents.contains(&**region.encoded_name()) || is_covered(region, regions);
    let mut live: Vec<&RegionInfo> =
        regions.iter().filter(|region| region.replica_id == 0 && !is_old(region)).collect();
    live.sort_by(|a, b| (&a.start_key, a.region_id).cmp(&(&b.start_key, b.region_id)));
    let mut findings = Vec::new();
    let Some(first) = live.first() else { return findings };
    let shown = |key: &[u8]| to_string_binary(key);
    if !first.start_key.is_empty() {
        let why = format!("rows before {} are in no region", shown(&first.start_key));
        findings.push(Finding::new("FIRST_REGION_STARTKEY_NOT_EMPTY", table, why));
    }
    // How far the regions so far reach; none where to the table's end.
    let mut reach: Option<&RegionInfo> = None;
    for region in &live {
        if !region.end_key.is_empty() && region.end_key < region.start_key {
            let why = format!("region {} ends before it begins", region.encoded_name());
            findings.push(Finding::new("BAD_REGION_KEYS", table, why));
            continue;
        }
        if let Some(before) = reach {
            let end = &before.end_key;
            let names = || format!("{} and {}", before.encoded_name(), region.encoded_name());
            if end.is_empty() || *end > region.start_key {
                let why = format!("regions {} both have rows from {} on", names(), shown(&region.start_key));
                findings.push(Finding::new("OVERLAP_IN_REGION_CHAIN", table, why));
            } else if *end < region.start_key {
                let (from, to) = (shown(end), shown(&region.start_key));
                let why = format!("rows from {from} to {to}, between {}, are in no region", names());
                findings.push(Finding::new("HOLE_IN_REGION_CHAIN", table, why));
            }
        }
        let further =
            reach.is_none_or(|before| !before.end_key.is_empty() && is_further(&region.end_key, &before.end_key));
        if further {
            reach = Some(region);
        }
    }
    if let Some(last) = reach.filter(|last| !last.end_key.is_empty()) {
        let why = format!("rows from {} on are in no region", shown(&last.end_key));
        findings.push(Finding::new("LAST_REGION_ENDKEY_NOT_EMPTY", table, why));
    }
    findings
}

fn is_further(end: &Bytes, than: &Bytes) -> bool {
    end.is_empty() || end > than
}

/// Whether younger regions have exactly a region's rows: it was split, or merged with its neighbours.
fn is_covered(region: &RegionInfo, all: &[RegionInfo]) -> bool {
    let mut younger: Vec<&RegionInfo> = all
        .iter()
        .filter(|other| other.region_id > region.region_id && other.replica_id == 0)
        .filter(|other| {
            let inside = other.start_key >= region.start_key && !is_further(&other.end_key, &region.end_key);
            let around = other.start_key <= region.start_key && !is_further(&region.end_key, &other.end_key);
            // What ends with the table is not further than the table's end.
            let inside = inside || (region.end_key.is_empty() && other.start_key >= region.start_key);
            inside || around || (other.end_key.is_empty() && other.start_key <= region.start_key)
        })
        .collect();
    younger.sort_by(|a, b| a.start_key.cmp(&b.start_key));
    let mut at = region.start_key.clone();
    let mut begun = false;
    for other in younger {
        if other.start_key > at {
            return false;
        }
        if begun && at.is_empty() {
            return true;
        }
        if other.end_key.is_empty() {
            return true;
        }
        if other.end_key > at {
            at = other.end_key.clone();
            begun = true;
        }
        if !region.end_key.is_empty() && at >= region.end_key {
            return true;
        }
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::TableName;

    fn region(start: &'static str, end: &'static str, id: u64) -> RegionInfo {
        let key = |text: &'static str| Bytes::from_static(text.as_bytes());
        RegionInfo::new(TableName::parse("t").expect("legal"), key(start), key(end), id)
    }

    fn kinds(regions: &[RegionInfo]) -> Vec<&'static str> {
        check("t", regions, &BTreeSet::new()).iter().map(|finding| finding.kind).collect()
    }

    #[test]
    fn chains_with_holes_overlaps_and_ends_are_found() {
        assert!(kinds(&[region("", "", 1)]).is_empty());
        assert!(kinds(&[region("m", "", 1), region("", "m", 1)]).is_empty());
        assert_eq!(kinds(&[region("", "g", 1), region("m", "", 1)]), ["HOLE_IN_REGION_CHAIN"]);
        assert_eq!(kinds(&[region("", "p", 1), region("m", "", 1)]), ["OVERLAP_IN_REGION_CHAIN"]);
        assert_eq!(kinds(&[region("b", "", 1)]), ["FIRST_REGION_STARTKEY_NOT_EMPTY"]);
        assert_eq!(kinds(&[region("", "b", 1)]), ["LAST_REGION_ENDKEY_NOT_EMPTY"]);
        assert_eq!(kinds(&[region("", "", 1), region("m", "", 1)]), ["OVERLAP_IN_REGION_CHAIN"]);
    }

    #[test]
    fn what_was_split_or_merged_does_not_count() {
        assert!(kinds(&[region("", "", 1), region("", "m", 2), region("m", "", 2)]).is_empty());
        assert!(kinds(&[region("", "m", 1), region("m", "", 1), region("", "", 2)]).is_empty());
        assert!(kinds(&[region("", "m", 1), region("m", "", 1), region("m", "p", 2), region("p", "", 2)]).is_empty());
        assert_eq!(kinds(&[region("", "", 1), region("", "m", 2)]), ["OVERLAP_IN_REGION_CHAIN"]);
    }
}
