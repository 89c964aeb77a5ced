//! The chain of a table's regions: holes, overlaps, and directories that may belong in holes.

use super::files::Orphan;
use super::{Found, Kind, Remedy, Tried, busy, list_of};
use crate::cluster::{RegionNode, RegionState, TableState};
use crate::consistency::{self, Hole};
use crate::hbck;
use crate::master::Master;
use crate::procedure::region::merge as merge_procedure;
use crate::procedure::{Caller, table_locks};
use crate::{ErrorKind, Result, meta};
use cell::print::to_string_binary;
use model::{RegionInfo, TableName};
use std::collections::BTreeSet;
use std::sync::Arc;

pub(super) fn look(master: &Master, orphans: &[Orphan], found: &mut Vec<Found>) {
    let (report, enabled, mut live, parents) = {
        let cluster = master.cluster.read();
        let enabled: BTreeSet<TableName> = cluster
            .tables()
            .filter(|(_, state)| *state == TableState::Enabled)
            .map(|(table, _)| table.name.clone())
            .collect();
        let live = cluster.regions().filter(|node| node.is_live());
        let live: BTreeSet<String> = live.map(|node| node.info.encoded_name().to_string()).collect();
        let parents = cluster.regions().filter(|node| !node.is_live());
        let parents: Vec<RegionInfo> = parents.map(|node| node.info.clone()).collect();
        (consistency::check(&cluster), enabled, live, parents)
    };
    let mut taken: BTreeSet<&str> = BTreeSet::new();
    for hole in report.holes.iter().filter(|hole| enabled.contains(&hole.table)) {
        let of_table: Vec<&Orphan> = orphans.iter().filter(|orphan| orphan.table == hole.table).collect();
        let (remedy, used) = remedy_of(hole, &of_table, &parents);
        // What refers to them alone is not needed beside them.
        live.extend(used.iter().map(|name| (*name).to_owned()));
        taken.extend(used);
        found.push(Found {
            kind: Kind::Hole,
            subject: format!(
                "{} from '{}' to '{}'",
                hole.table,
                to_string_binary(&hole.start),
                to_string_binary(&hole.end)
            ),
            what: "these rows are in no region".into(),
            remedy,
        });
    }
    let held = master.procedures.locks.held();
    for orphan in orphans.iter().filter(|orphan| !taken.contains(&*orphan.encoded) && !orphan.is_worked_on(&held)) {
        found.push(of_orphan(orphan, &live));
    }
    overlaps(master, &report.overlaps, &enabled, found);
}

/// Whether a directory says of itself which region it is, and is called so.
fn named(orphan: &Orphan) -> Option<&RegionInfo> {
    let fits = |info: &&RegionInfo| {
        info.table == orphan.table
            && **info.encoded_name() == *orphan.encoded
            && !info.split
            && !info.offline
            && !info.is_replica()
    };
    orphan.info.as_ref().filter(fits)
}

/// The directories that fill a hole exactly: one begins where the one before it ends.
fn exact_chain(hole: &Hole, mut inside: Vec<&RegionInfo>) -> Option<Vec<RegionInfo>> {
    inside.sort_by(|a, b| a.start_key.cmp(&b.start_key));
    let mut at = Some(hole.start.clone());
    for info in &inside {
        if at.as_ref() != Some(&info.start_key) {
            return None;
        }
        // Nothing comes behind one that ends with the table.
        at = Some(info.end_key.clone()).filter(|end| !end.is_empty());
    }
    let end = Some(hole.end.clone()).filter(|end| !end.is_empty());
    (!inside.is_empty() && at == end).then(|| inside.into_iter().cloned().collect())
}

/// What fills a hole, and the directories that this disposes of.
fn remedy_of<'a>(hole: &Hole, orphans: &[&'a Orphan], parents: &[RegionInfo]) -> (Remedy, Vec<&'a str>) {
    let place = RegionInfo::new(hole.table.clone(), hole.start.clone(), hole.end.clone(), 0);
    let inside: Vec<(&Orphan, &RegionInfo)> = orphans
        .iter()
        .filter_map(|orphan| Some((*orphan, named(orphan)?)))
        .filter(|(_, info)| consistency::overlap(&place, info))
        .collect();
    let names: BTreeSet<&str> = inside.iter().map(|(orphan, _)| &*orphan.encoded).collect();
    // Daughters and merged regions that have only references, whose parents are here, too: the parents have all of it.
    let only_refers = |orphan: &Orphan| {
        !orphan.refers_to.is_empty()
            && orphan.has_no_data()
            && orphan.refers_to.iter().all(|parent| names.contains(&**parent))
    };
    let stand: Vec<&(&Orphan, &RegionInfo)> = inside.iter().filter(|(orphan, _)| !only_refers(orphan)).collect();
    let with_data: Vec<&(&Orphan, &RegionInfo)> =
        stand.iter().copied().filter(|(orphan, _)| !orphan.has_no_data() || !orphan.refers_to.is_empty()).collect();
    let chain = |of: &[&(&'a Orphan, &RegionInfo)]| -> Option<(Remedy, Vec<&'a str>)> {
        let regions = exact_chain(hole, of.iter().map(|(_, info)| *info).collect())?;
        Some((Remedy::Adopt(hole.clone(), regions), of.iter().map(|(orphan, _)| &*orphan.encoded).collect()))
    };
    // Empty ones count only where they fill what the others leave.
    if let Some(found) = chain(&stand).or_else(|| chain(&with_data)) {
        return found;
    }
    let nameless: Vec<&&Orphan> = orphans
        .iter()
        .filter(|orphan| named(orphan).is_none() && !(orphan.has_no_data() && orphan.refers_to.is_empty()))
        .collect();
    let remedy = if !with_data.is_empty() {
        Remedy::Nothing(format!(
            "directories with data of these rows do not fill the hole exactly ({}): load what they hold into the table (`basalt completebulkload`) and \
             move them out of it; then the hole is filled",
            list_of(with_data.iter().map(|(orphan, _)| orphan.shown()))
        ))
    } else if !nameless.is_empty() {
        Remedy::Nothing(format!(
            "these directories of the table do not say which rows they hold, and it may be these ({}): write their .regioninfo, or move them out of the table; \
             then the hole is filled",
            list_of(nameless.iter().map(|orphan| orphan.shown()))
        ))
    } else if let Some(parent) =
        parents.iter().find(|parent| parent.table == hole.table && consistency::overlap(&place, parent))
    {
        Remedy::Nothing(format!(
            "{} was split, has these rows, and of its daughters no directory is left: load what it holds into the table (`basalt completebulkload` of {}) \
             once `basalt hbck fixMeta` has filled the hole",
            parent.name_string(),
            rootdir::region_dir(parent)
        ))
    } else {
        Remedy::Fill(hole.clone())
    };
    (remedy, Vec::new())
}

fn of_orphan(orphan: &Orphan, live: &BTreeSet<String>) -> Found {
    let dir = orphan.shown();
    let holds = match (orphan.files, orphan.refers_to.len(), orphan.has_edits) {
        (0, 0, false) => "nothing".to_owned(),
        (files, references, edits) => {
            let edits = if edits { " and recovered edits" } else { "" };
            format!("{files} files, references to {references} regions{edits}")
        }
    };
    let found = |kind, what: String, remedy| Found { kind, subject: dir.clone(), what, remedy };
    let what = format!("it is no region's that hbase:meta has, and holds {holds}");
    if orphan.has_no_data() && orphan.refers_to.is_subset(live) {
        return found(Kind::OrphanRegion, what, Remedy::SetAside(orphan.table.clone(), orphan.dir.clone()));
    }
    match (&orphan.info, &orphan.known_as) {
        (Some(info), _) if named(orphan).is_none() => {
            let what = format!("its .regioninfo is of {}", info.name_string());
            let why = "which of both is right, only what is in its files tells; load them into the table (`basalt completebulkload`), or move it away";
            found(Kind::WrongRegionInfo, what, Remedy::Nothing(why.into()))
        }
        (None, Some(info)) => {
            let what = format!("it has lost its .regioninfo, holds {holds}, and by its name is {}", info.name_string());
            found(Kind::NoRegionInfoFile, what, Remedy::NameDirectory(info.clone()))
        }
        (None, None) => {
            let what = format!("it has no .regioninfo that can be read, and holds {holds}");
            let why = "nobody knows a region of that name, so its rows are in its files alone; load them into the table (`basalt completebulkload`) and move \
                       it away";
            found(Kind::NoRegionInfoFile, what, Remedy::Nothing(why.into()))
        }
        _ => {
            let why = "other regions serve its rows, and whether what is in it was deleted there since cannot be told; to have it, load it into the table \
                       (`basalt completebulkload`), then move it away";
            found(Kind::OrphanRegion, what, Remedy::Nothing(why.into()))
        }
    }
}

fn overlaps(
    master: &Master,
    pairs: &[(RegionInfo, RegionInfo)],
    enabled: &BTreeSet<TableName>,
    found: &mut Vec<Found>,
) {
    let pairs: Vec<(RegionInfo, RegionInfo)> =
        pairs.iter().filter(|(a, _)| enabled.contains(&a.table)).cloned().collect();
    let most = master.settings().fix_max_merge_count;
    for group in consistency::merges(&pairs, most) {
        let table = &group[0].table;
        let allowed = master.cluster.read().descriptor(table).is_some_and(|table| table.merge_enabled());
        let remedy = if !master.switches.merge() {
            Remedy::Nothing("merges are switched off: `merge_switch true` in the shell lets them be merged".into())
        } else if !allowed {
            Remedy::Nothing("the table does not allow merges (MERGE_ENABLED)".into())
        } else {
            Remedy::Merge(group.clone())
        };
        found.push(Found {
            kind: Kind::Overlap,
            subject: format!("{table}: {}", list_of(group.iter().map(RegionInfo::name_string))),
            what: "these regions have rows in common".into(),
            remedy,
        });
    }
}

/// Directories are regions again: all of them are in hbase:meta, or none. They are opened with all that is in them, recovered edits too.
pub(super) async fn adopt(master: &Arc<Master>, hole: &Hole, regions: Vec<RegionInfo>) -> Result<Tried> {
    let Some(_locks) = master.procedures.locks.try_lock(table_locks(&hole.table)) else { return Ok(busy(&hole.table)) };
    if !consistency::is_there(master, hole) {
        return Ok(Tried::Passed);
    }
    let wanted = regions.clone();
    let still = master.files.run(move |volume| {
        for info in &wanted {
            let said = rootdir::read_region_info(volume, &rootdir::region_dir(info))?;
            if said.as_ref() != Some(info) {
                return Ok(false);
            }
        }
        Ok(true)
    });
    if !still.await? {
        return Ok(Tried::Passed);
    }
    // A server may have one open all the same: what it was told goes to the directory first.
    let deployed = hbck::deployed(master);
    for info in &regions {
        for server in deployed.get(info.encoded_name()).map(|(_, servers)| servers).into_iter().flatten() {
            let host = master.servers.get(server)?;
            super::regions::in_time(&host, host.close_region(info.encoded_name())).await?;
        }
    }
    // The row may have been deleted a moment ago, by a stamp that would hide the new one.
    master.catalog.delete_stamp();
    let stamp = master.catalog.stamp();
    let rows = regions.iter().map(|info| meta::put_region(info, RegionState::Closed, stamp)).collect();
    master.catalog.write(rows).await?;
    let now = master.clock.now_ms();
    {
        let mut cluster = master.cluster.write();
        for info in &regions {
            cluster.put_region(RegionNode::new(info.clone(), RegionState::Closed, now));
        }
    }
    if let Err(error) = master.assignment.assign(regions.clone()).await {
        regions.iter().for_each(|info| master.assignment.note_state(info, RegionState::FailedOpen));
        return Err(error);
    }
    Ok(Tried::Done(format!("what was there fills it again: {}", list_of(regions.iter().map(RegionInfo::name_string)))))
}

/// An empty region takes the place of a hole of which nothing is left.
pub(super) async fn fill(master: &Arc<Master>, hole: &Hole) -> Result<Tried> {
    let Some(locks) = master.procedures.locks.try_lock(table_locks(&hole.table)) else { return Ok(busy(&hole.table)) };
    if !consistency::is_there(master, hole) {
        return Ok(Tried::Passed);
    }
    consistency::fill_locked(master, hole, &locks).await?;
    Ok(Tried::Done("an empty region fills it; no directory of the table has data of these rows".into()))
}

/// Regions with rows in common become one, which has the cells of all of them.
pub(super) async fn merge(master: &Arc<Master>, regions: &[RegionInfo]) -> Result<Tried> {
    let infos = regions.to_vec();
    let refers = master.files.run(move |volume| {
        for info in &infos {
            if rootdir::archive::refers_to(volume, info, None)? {
                return Ok(Some(info.name_string()));
            }
        }
        Ok(None)
    });
    if let Some(region) = refers.await? {
        return Ok(Tried::NotNow(format!(
            "{region} still refers to files of a region that it was made of; its compaction ends that"
        )));
    }
    let names: Vec<String> = regions.iter().map(|info| info.encoded_name().to_string()).collect();
    let id = match merge_procedure::submit(master, &names, &Caller::default()).await {
        Err(error) if error.kind == ErrorKind::UnknownRegion => return Ok(Tried::Passed),
        Err(error) if error.kind == ErrorKind::MergeRegion => return Ok(Tried::NotNow(error.to_string())),
        submitted => submitted?,
    };
    match tokio::time::timeout(super::PATIENCE, master.procedures.wait_for(id)).await {
        Ok(outcome) => outcome.map(|_| Tried::Done(format!("procedure {id} merged them"))),
        Err(_) => Ok(Tried::NotNow(format!("procedure {id} is merging them"))),
    }
}
