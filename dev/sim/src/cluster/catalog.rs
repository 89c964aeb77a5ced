//! hbase:meta as its region has it, looked at by the world after each commit, without a call.
//!
//! Always true: the live regions of each table tile the key space, at every read point. That a region which is OPEN is online where it is said to
//! be holds at rest only: a server tells the master first and puts the region online when the master has noted it, as HBase's does.

use super::world::Cluster;
use crate::{Violation, ensure};
use bytes::Bytes;
use cell::CellBuffer;
use master::meta::{MetaContent, RegionRow, parse_meta, whole_scan};
use model::{RegionInfo, ServerName, TableName};
use region::{Limits, Region};
use std::collections::BTreeMap;
use std::sync::Arc;

/// What was seen last.
#[derive(Default)]
pub struct Catalog {
    /// The server of hbase:meta, and its read point.
    seen: Option<(ServerName, u64)>,
    /// Commits that were looked at.
    pub commits: u64,
}

impl Catalog {
    /// Looks at it, if there was a commit since. Tables are whole before this is asked for the first time.
    ///
    /// # Errors
    /// What is not so.
    pub fn look(&mut self, cluster: &Cluster) -> Result<(), Violation> {
        let meta = RegionInfo::meta();
        let serving = cluster.serving();
        let host = serving.iter().filter(|(.., holds)| *holds).find_map(|(seat, name, server, _)| {
            let process = cluster.process(seat).filter(|process| !process.is_inside_a_call())?;
            Some((process.gate(), name, server.region(meta.encoded_name())?))
        });
        let Some((gate, name, region)) = host else { return Ok(()) };
        let point = region.read_point();
        let seen = Some((name.clone(), point.0));
        if self.seen == seen {
            return Ok(());
        }
        // While the name node is away it may be unreadable: later.
        let Some(content) = gate.aside(|| read(&region)) else { return Ok(()) };
        self.commits += 1;
        check_tiling(&content)?;
        self.seen = seen;
        Ok(())
    }
}

fn read(region: &Arc<Region>) -> Option<MetaContent> {
    let mut scanner = region.scanner(&whole_scan()).ok()?;
    let mut cells = CellBuffer::new();
    let mut limits = Limits::NONE;
    while scanner.next(&mut limits, &mut cells).ok()?.more {}
    Some(parse_meta(&cells))
}

/// The live regions of each table tile the key space.
fn check_tiling(meta: &MetaContent) -> Result<(), Violation> {
    let mut edges: BTreeMap<&TableName, Option<Bytes>> = BTreeMap::new();
    for row in meta.regions.iter().filter(|row| !row.info.split && !row.info.offline) {
        let edge = edges.entry(&row.info.table).or_insert_with(|| Some(Bytes::new()));
        let name = row.info.name_string();
        ensure(edge.as_ref() == Some(&row.info.start_key), || {
            format!("a commit to hbase:meta leaves a hole or an overlap before {name}: {}", shape(meta))
        })?;
        *edge = (!row.info.end_key.is_empty()).then(|| row.info.end_key.clone());
    }
    for (table, edge) in edges {
        ensure(edge.is_none(), || {
            format!("after a commit to hbase:meta the regions of {table} end at {edge:?}: {}", shape(meta))
        })?;
    }
    Ok(())
}

fn shape(meta: &MetaContent) -> String {
    let one = |row: &RegionRow| {
        format!("{} {:?} split {} offline {}", row.info.name_string(), row.state, row.info.split, row.info.offline)
    };
    meta.regions.iter().map(one).collect::<Vec<_>>().join("; ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use master::cluster::RegionState;

    fn row(start: &'static str, end: &'static str, retired: bool) -> RegionRow {
        let table = TableName::parse("t").expect("a name");
        let mut info = RegionInfo::new(table, Bytes::from(start), Bytes::from(end), 1);
        (info.split, info.offline) = (retired, retired);
        RegionRow {
            info,
            state: Some(RegionState::Open),
            open_seq_id: Some(1),
            location: None,
            daughters: Vec::new(),
            merge_parents: Vec::new(),
            replicas: Vec::new(),
        }
    }

    fn tiles(regions: Vec<RegionRow>) -> bool {
        check_tiling(&MetaContent { regions, ..MetaContent::default() }).is_ok()
    }

    #[test]
    fn holes_and_overlaps_are_noticed() {
        assert!(tiles(vec![row("", "b", false), row("b", "", false)]));
        assert!(tiles(vec![row("", "", true), row("", "b", false), row("b", "", false)]));
        assert!(!tiles(vec![row("", "b", false), row("c", "", false)]), "a hole");
        assert!(!tiles(vec![row("", "c", false), row("b", "", false)]), "an overlap");
        assert!(
            !tiles(vec![row("", "", false), row("", "b", false), row("b", "", false)]),
            "a parent that still lives"
        );
        assert!(!tiles(vec![row("", "b", false)]), "no end");
        assert!(!tiles(vec![row("b", "", false)]), "no beginning");
    }
}
