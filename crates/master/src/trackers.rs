//! Whether a table may have these store file trackers. A tracker is left by way of a migration only, which keeps both: otherwise files
//! would be forgotten, or come back. Follows: `StoreFileTrackerValidationUtils`, in its words.

use crate::{ErrorKind, MasterError, Result};
use model::{FamilyDescriptor, TableDescriptor};
use rootdir::tracker::{Class, Site, TrackerError};

impl From<TrackerError> for MasterError {
    fn from(error: TrackerError) -> MasterError {
        match error {
            // Nothing expects a class that is not there.
            TrackerError::Unknown(_) => MasterError::new(
                ErrorKind::Io,
                format!("java.lang.RuntimeException: java.lang.RuntimeException: {error}"),
            ),
            _ => MasterError::do_not_retry(error),
        }
    }
}

fn of(site: &Site, table: &TableDescriptor, family: &FamilyDescriptor) -> Site {
    site.with(table.overrides().chain(family.overrides()))
}

/// What errors call a family.
fn shown(table: &TableDescriptor, family: &FamilyDescriptor) -> String {
    format!("family {} of table {}", String::from_utf8_lossy(&family.name), table.name)
}

fn check_new_family(site: &Site, table: &TableDescriptor, family: &FamilyDescriptor) -> Result<()> {
    let words = of(site, table, family);
    if words.class()? == Class::Migration {
        let family = shown(table, family);
        return Err(MasterError::do_not_retry(format!(
            "Should not use MIGRATION as store file tracker for new {family}"
        )));
    }
    Ok(())
}

/// Whether a table may be made so.
///
/// # Errors
/// There is no such tracker, or it is a migration.
pub(crate) fn check_create(site: &Site, table: &TableDescriptor) -> Result<()> {
    table.families.values().try_for_each(|family| check_new_family(site, table, family))
}

/// Whether a table may be changed so.
///
/// # Errors
/// A tracker is changed otherwise than by a migration from it, or a migration is ended otherwise than at its target.
pub(crate) fn check_modify(site: &Site, old: &TableDescriptor, new: &TableDescriptor, is_enabled: bool) -> Result<()> {
    for family in new.families.values() {
        let Some(former) = old.families.get(&family.name) else {
            check_new_family(site, new, family)?;
            continue;
        };
        let (before, after) = (of(site, old, former), of(site, new, family));
        let shown = shown(new, family);
        match (before.class()?, after.class()?) {
            (Class::Migration, Class::Migration) => check_same_migration(&before, &after, &shown)?,
            (Class::Migration, to) => {
                if !is_enabled {
                    let table = &new.name;
                    let message = format!(
                        "Should not change store file tracker implementation from MIGRATION while table {table} is disabled"
                    );
                    return Err(MasterError::new(ErrorKind::TableNotEnabled, message));
                }
                let target = before.target()?;
                if to != target {
                    let message = format!("Should migrate tracker to {target} but got {to} for {shown}");
                    return Err(MasterError::do_not_retry(message));
                }
            }
            (from, to) if from == to => {}
            (from, Class::Migration) => check_migration(from, &after, &shown)?,
            (from, _) => {
                let message = format!("Should change to MIGRATION first when migrating from {from} for {shown}");
                return Err(MasterError::do_not_retry(message));
            }
        }
    }
    Ok(())
}

fn check_same_migration(before: &Site, after: &Site, shown: &str) -> Result<()> {
    for (which, old, new) in [("src", before.source()?, after.source()?), ("dst", before.target()?, after.target()?)] {
        if old != new {
            let message = format!("The {which} tracker has been changed from {old} to {new} for {shown}");
            return Err(MasterError::do_not_retry(message));
        }
    }
    Ok(())
}

fn check_migration(from: Class, after: &Site, shown: &str) -> Result<()> {
    let (source, target) = (after.source()?, after.target()?);
    if source != from {
        return Err(MasterError::do_not_retry(format!(
            "Should use src tracker {from} first but got {source} when migrating from {from} for {shown}"
        )));
    }
    if source == target {
        let message = format!("The src tracker and dst tracker are both {source} for {shown}");
        return Err(MasterError::do_not_retry(message));
    }
    // From or to a migration, which HBase finds out when it opens the regions.
    after.tracker()?;
    Ok(())
}

/// Whether a table may become again what a snapshot of it says.
///
/// # Errors
/// A family has another tracker since.
pub(crate) fn check_restore(site: &Site, current: &TableDescriptor, snapshot: &TableDescriptor) -> Result<()> {
    for family in current.families.values() {
        let Some(then) = snapshot.families.get(&family.name) else { continue };
        let (now, then) = (of(site, current, family).class()?, of(site, snapshot, then).class()?);
        if now != then {
            let message = format!(
                "Restoring Snapshot is not possible because  the config for column family {} has incompatible configuration. \
                 Current SFT: class {} SFT from snapshot: class {}",
                String::from_utf8_lossy(&family.name),
                now.java_name(),
                then.java_name()
            );
            return Err(MasterError::new(ErrorKind::RestoreSnapshot, message));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use bytes::Bytes;
    use model::TableName;
    use rootdir::tracker::{IMPL_KEY, SOURCE_KEY, TARGET_KEY};

    fn table(words: &[(&'static str, &'static str)]) -> TableDescriptor {
        let name = TableName::parse("t").expect("legal");
        let mut table = TableDescriptor::new(name, [FamilyDescriptor::new("f")]);
        let keys = [IMPL_KEY, SOURCE_KEY, TARGET_KEY];
        for (key, (_, value)) in keys.iter().zip(words) {
            table.attributes.insert(Bytes::from(*key), Bytes::from(*value));
        }
        table
    }

    fn said(tracker: &'static str) -> TableDescriptor {
        table(&[("", tracker)])
    }

    fn migration(source: &'static str, target: &'static str) -> TableDescriptor {
        table(&[("", "MIGRATION"), ("", source), ("", target)])
    }

    /// Every rule of HBase's once, in its words.
    #[test]
    fn a_tracker_is_left_by_way_of_a_migration_only() {
        let site = Site::default();
        let modify = |old: &TableDescriptor, new: &TableDescriptor, is_enabled| {
            check_modify(&site, old, new, is_enabled).map_err(|error| error.to_string())
        };
        let refused = |old, new, message: &str| {
            assert_eq!(modify(&old, &new, true).expect_err(message), message);
        };
        let of = "for family f of table t";
        modify(&said("DEFAULT"), &table(&[]), true).expect("the same");
        refused(
            said("DEFAULT"),
            said("FILE"),
            &format!("Should change to MIGRATION first when migrating from DEFAULT {of}"),
        );
        modify(&said("DEFAULT"), &migration("DEFAULT", "FILE"), true).expect("begins");
        modify(&said("DEFAULT"), &migration("DEFAULT", "FILE"), false).expect("a disabled table's may begin, too");
        let message = format!("Should use src tracker DEFAULT first but got FILE when migrating from DEFAULT {of}");
        refused(said("DEFAULT"), migration("FILE", "DEFAULT"), &message);
        let message = format!("The src tracker and dst tracker are both DEFAULT {of}");
        refused(said("DEFAULT"), migration("DEFAULT", "default"), &message);
        let under_way = || migration("DEFAULT", "FILE");
        modify(&under_way(), &under_way(), false).expect("the same");
        let message = format!("The src tracker has been changed from DEFAULT to FILE {of}");
        refused(under_way(), migration("FILE", "DEFAULT"), &message);
        let message = format!("The dst tracker has been changed from FILE to DEFAULT {of}");
        refused(under_way(), migration("DEFAULT", "DEFAULT"), &message);
        refused(under_way(), said("DEFAULT"), &format!("Should migrate tracker to FILE but got DEFAULT {of}"));
        modify(&under_way(), &said("FILE"), true).expect("ends");
        let disabled =
            check_modify(&site, &under_way(), &said("FILE"), false).expect_err("its regions have not opened");
        assert_eq!(disabled.kind, ErrorKind::TableNotEnabled);
        let message = "Should not use MIGRATION as store file tracker for new family f of table t";
        assert_eq!(check_create(&site, &under_way()).expect_err("new").to_string(), message);
        let unknown = check_create(&site, &said("x.Y")).expect_err("no class").to_string();
        let wrapped = "java.lang.RuntimeException: java.lang.RuntimeException: java.lang.ClassNotFoundException: Class x.Y not found";
        assert_eq!(unknown, wrapped);
        let error = check_restore(&site, &said("FILE"), &said("DEFAULT")).expect_err("another");
        assert_eq!(error.kind, ErrorKind::RestoreSnapshot);
        check_restore(&site, &said("FILE"), &said("file")).expect("the same");
    }
}
