//! Which regions this server must not open: another server of the cluster can.

use fs::Volume;
use model::{Endpoint, RegionInfo, TableDescriptor};

/// The table of the region, if this server can serve it as HBase's would. Reads files.
///
/// # Errors
/// A sentence that says why not.
pub(super) fn servable_table(volume: &dyn Volume, info: &RegionInfo) -> Result<TableDescriptor, String> {
    // That of a read replica is its primary's.
    let dir = rootdir::region_dir(info);
    // Only the master makes regions: made here, one that was deleted meanwhile would come back.
    if !volume.exists(&dir).map_err(|error| error.to_string())? {
        return Err(format!("its directory {dir} is not there"));
    }
    let table = rootdir::descriptor::read(volume, &info.table).map_err(|error| error.to_string())?;
    let table = table.ok_or_else(|| format!("there is no descriptor of table {}", info.table))?;
    refuse(&table).map_or(Ok(table), Err)
}

fn refuse(table: &TableDescriptor) -> Option<String> {
    let unknown = table.coprocessors().find(|coprocessor| Endpoint::of_class(&coprocessor.class).is_none());
    if let Some(coprocessor) = unknown {
        return Some(format!(
            "table {} has the coprocessor {}, a Java class that cannot be loaded here",
            table.name, coprocessor.class
        ));
    }
    let is_encrypted = |family: &&model::FamilyDescriptor| family.attributes.contains_key(&b"ENCRYPTION"[..]);
    let family = table.families.values().find(is_encrypted)?;
    let name = String::from_utf8_lossy(&family.name);
    Some(format!("column family {name} of table {} is encrypted, which is not supported", table.name))
}

#[cfg(test)]
mod tests {
    use super::*;
    use bytes::Bytes;
    use fs::MemVolume;
    use model::{FamilyDescriptor, TableName};

    fn table() -> TableDescriptor {
        TableDescriptor::new(TableName::parse("t").expect("a name"), [FamilyDescriptor::new("f")])
    }

    #[test]
    fn what_hbase_alone_can_serve_is_refused_with_a_sentence() {
        assert_eq!(refuse(&table()), None);
        let mut encrypted = table();
        let family = encrypted.families.get_mut(&b"f"[..]).expect("there");
        family.attributes.insert(Bytes::from_static(b"ENCRYPTION"), Bytes::from_static(b"AES"));
        assert!(refuse(&encrypted).is_some_and(|why| why.contains("encrypted")));
        let mut extended = table();
        let value = Bytes::from_static(b"|org.example.Observer|1073741823|");
        extended.attributes.insert(Bytes::from_static(b"coprocessor$1"), value);
        assert!(refuse(&extended).is_some_and(|why| why.contains("org.example.Observer")));
        assert_eq!(refuse(&TableDescriptor::meta()), None, "that of hbase:meta is answered here");
    }

    #[test]
    fn a_region_that_the_master_did_not_make_is_not_made_here() {
        let volume = MemVolume::new();
        let info = RegionInfo::new(TableName::parse("t").expect("a name"), Bytes::new(), Bytes::new(), 1);
        let why = servable_table(&volume, &info).expect_err("not there");
        assert!(why.contains("is not there"), "{why}");
        volume.create_dir_all(&rootdir::region_dir(&info)).expect("made");
        let why = servable_table(&volume, &info).expect_err("no descriptor");
        assert!(why.contains("no descriptor"), "{why}");
        rootdir::descriptor::write(&volume, &table()).expect("written");
        assert!(servable_table(&volume, &info).is_ok());
        let replica = RegionInfo::with_replica(info.table.clone(), Bytes::new(), Bytes::new(), 1, 1);
        assert!(servable_table(&volume, &replica).is_ok(), "a read replica has its primary's directory");
    }
}
