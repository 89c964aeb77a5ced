//! The check of everything at a quiet moment, and how one comes to it.

use crate::calls;
use crate::promises::{Promises, value_of};
use crate::scans::{self, Manner};
use crate::work::{Desk, changing, table};
use crate::world::Life;
use crate::{Violation, ensure};
use bytes::Bytes;
use fs::FilePath;
use master::cluster::{RegionState, TableState};
use model::TableName;
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

/// Checks everything. Nothing is under way, and no fault is set.
///
/// # Errors
/// A promise broken.
pub async fn check_all(life: &Life, promises: &mut Promises) -> Result<(), Violation> {
    check_regions(life, &table())?;
    check_references(life)?;
    let rows = scans::whole(life, &table(), Manner::AT_ONCE)
        .await
        .map_err(|e| Violation(format!("the table cannot be read: {e:?}")))?;
    scans::check_moving(promises, &rows, Manner::AT_ONCE)?;
    let backwards = Manner { reversed: true, ..Manner::AT_ONCE };
    let mut reversed = scans::whole(life, &table(), backwards)
        .await
        .map_err(|e| Violation(format!("the table cannot be read backwards: {e:?}")))?;
    reversed.reverse();
    ensure(rows == reversed, || "forwards and backwards differ".into())?;
    let mut nodes = BTreeMap::new();
    let mut journal = promises.journal.keys().cloned().collect::<BTreeSet<_>>();
    let mut unlogged = promises.unlogged.keys().cloned().collect::<BTreeSet<_>>();
    for (row, cells) in &rows {
        let kind = row.split_once('-').map_or("", |(_, kind)| kind);
        if kind.starts_with("journal") {
            journal.remove(row);
            promises.see_journal(row, cells, true)?;
        } else if kind.starts_with("bank") {
            promises.see_bank(row, cells, true)?;
        } else if kind.starts_with("counter") {
            promises.see_counter(row, cells, true)?;
        } else if kind.starts_with("string") {
            promises.see_string(row, cells, true)?;
        } else if kind.starts_with("unlogged") {
            unlogged.remove(row);
            promises.see_loose(row, cells, true)?;
        } else if kind.starts_with("node") {
            let before = cells.first().map(|(_, _, value)| String::from_utf8_lossy(value).into_owned());
            nodes.insert(row.clone(), before.unwrap_or_default());
        } else {
            ensure(promises.still.contains(row), || format!("nobody wrote row {row}"))?;
            let whole = cells.iter().all(|(_, number, value)| *value == value_of(row, *number));
            ensure(whole, || format!("row {row} was changed: {cells:?}"))?;
        }
        let got = calls::get(life, &table(), row).await.map_err(|e| Violation(format!("get of {row}: {e:?}")))?;
        ensure(got == *cells, || format!("{row}: a get shows {got:?}, a scan {cells:?}"))?;
    }
    for row in journal {
        promises.see_journal(&row, &Vec::new(), true)?;
    }
    for row in unlogged {
        promises.see_loose(&row, &Vec::new(), true)?;
    }
    for (kind, missing) in [("counter", promises.counters.keys().cloned().collect::<Vec<_>>())] {
        for row in missing.iter().filter(|row| row.contains(kind) && !rows.iter().any(|(r, _)| r == *row)) {
            promises.see_counter(row, &Vec::new(), true)?;
        }
    }
    for row in promises.strings.keys().cloned().collect::<Vec<_>>() {
        if !rows.iter().any(|(r, _)| *r == row) {
            promises.see_string(&row, &Vec::new(), true)?;
        }
    }
    promises.see_nodes(&nodes, true)?;
    check_changing(life, promises).await
}

/// Regions of an enabled table tile the key space, and each is open.
fn check_regions(life: &Life, table: &TableName) -> Result<(), Violation> {
    let cluster = life.master.cluster();
    let mut edge = Some(Bytes::new());
    for node in cluster.regions_of(table).filter(|node| node.is_live()) {
        let name = node.info.name_string();
        ensure(edge.as_ref() == Some(&node.info.start_key), || format!("a hole or overlap of regions before {name}"))?;
        ensure(node.state == RegionState::Open, || format!("{name} is {:?}", node.state))?;
        ensure(life.server.region(node.info.encoded_name()).is_some(), || format!("{name} is not online"))?;
        edge = (!node.info.end_key.is_empty()).then(|| node.info.end_key.clone());
    }
    ensure(edge.is_none(), || format!("the regions of {table} end at {edge:?}"))
}

/// Every reference of a daughter has its file where HBase would look for it: with the parent, not only in the archive.
fn check_references(life: &Life) -> Result<(), Violation> {
    let volume = &life.server.env().volume;
    let dir = FilePath::new("data/default").join(table().qualifier());
    let list = |path: &FilePath| volume.list(path).map_err(|error| Violation(format!("no fault is set: {error}")));
    for region in list(&dir)?.into_iter().filter(|entry| entry.is_dir && !entry.name.starts_with('.')) {
        for family in ["f", "g"] {
            let at = dir.join(&region.name).join(family);
            if !volume.exists(&at).unwrap_or(false) {
                continue;
            }
            for file in list(&at)? {
                let Some((name, parent)) = file.name.rsplit_once('.').filter(|(name, _)| !name.is_empty()) else {
                    continue;
                };
                let target = dir.join(parent).join(family).join(name);
                ensure(volume.exists(&target).unwrap_or(false), || {
                    format!("{at}/{} refers to {target}, which is not there", file.name)
                })?;
            }
        }
    }
    Ok(())
}

async fn check_changing(life: &Life, promises: &mut Promises) -> Result<(), Violation> {
    let name = changing();
    let shape = {
        let cluster = life.master.cluster();
        cluster.descriptor(&name).map(|descriptor| {
            let families = descriptor.families.keys().map(|f| String::from_utf8_lossy(f).into_owned()).collect();
            (cluster.state(&name) == Some(TableState::Enabled), families)
        })
    };
    let known = promises.changing.shapes.contains(&shape);
    ensure(known, || format!("table {name} is {shape:?}, promised was one of {:?}", promises.changing.shapes))?;
    promises.changing.shapes = vec![shape.clone()];
    match shape {
        None => {
            promises.changing.rows.clear();
            promises.changing.perhaps.clear();
        }
        Some((false, _)) => {}
        Some((true, _)) => {
            check_regions(life, &name)?;
            let rows = scans::whole(life, &name, Manner::AT_ONCE)
                .await
                .map_err(|e| Violation(format!("{name} cannot be read: {e:?}")))?;
            let changing = &mut promises.changing;
            for (row, cells) in &rows {
                let of_c = cells.iter().find(|(column, _, _)| column.starts_with("c:"));
                ensure(of_c.is_none_or(|(_, _, value)| *value == changing.added.to_string().as_bytes()), || {
                    format!(
                        "{name}, {row}: {of_c:?} is of an earlier family of that name, {} were added",
                        changing.added
                    )
                })?;
            }
            let seen: BTreeSet<String> = rows.into_iter().map(|(row, _)| row).collect();
            let missing: Vec<_> = changing.rows.difference(&seen).collect();
            ensure(missing.is_empty(), || format!("{name} lost {missing:?}"))?;
            let strange: Vec<_> = seen.iter().filter(|r| !changing.perhaps.contains(*r)).collect();
            let strange: Vec<_> = strange.into_iter().filter(|r| !changing.rows.contains(*r)).collect();
            ensure(strange.is_empty(), || format!("{name} shows {strange:?}"))?;
            // What is seen now and was not promised is of this life, or was recovered.
            changing.fresh.extend(seen.difference(&changing.rows).cloned());
            changing.rows = seen.clone();
            changing.perhaps = seen;
        }
    }
    Ok(())
}

/// Lets calls, logs and procedures end. False when they do not.
pub async fn quiet(desk: &Desk) -> bool {
    for _ in 0..100 {
        if !desk.life.quiet().await {
            return false;
        }
        if desk.promises.lock().busy == 0 && all_open(&desk.life) {
            return true;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    false
}

/// Regions that should be open and are not, in words.
pub fn not_open(life: &Life) -> String {
    let cluster = life.master.cluster();
    let regions = cluster.regions().filter(|node| node.is_live() && node.state != RegionState::Open);
    regions.map(|node| format!("; {} is {:?}", node.info.name_string(), node.state)).collect()
}

fn all_open(life: &Life) -> bool {
    let cluster = life.master.cluster();
    cluster.tables().filter(|(_, state)| *state == TableState::Enabled).all(|(descriptor, _)| {
        cluster.regions_of(&descriptor.name).filter(|node| node.is_live()).all(|node| node.state == RegionState::Open)
    })
}
