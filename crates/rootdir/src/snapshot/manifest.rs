//! What a snapshot names: the table's descriptor, its regions, their files. Values, and the messages that they are kept as.

use bytes::Bytes;
use convert::{from_proto, to_proto};
use model::{RegionInfo, TableDescriptor};
use proto::pb;
use proto::pb::snapshot_region_manifest as region_pb;

/// Everything in a snapshot.
#[derive(Clone, Debug, PartialEq)]
pub struct Manifest {
    /// The table, as it was.
    pub table: TableDescriptor,
    /// Its regions, those among them that were split and still have files, and the region of large values.
    pub regions: Vec<RegionManifest>,
}

/// A region in a snapshot.
#[derive(Clone, Debug, PartialEq)]
pub struct RegionManifest {
    /// Which.
    pub info: RegionInfo,
    /// Its families.
    pub families: Vec<FamilyFiles>,
}

/// A family of a region in a snapshot.
#[derive(Clone, Debug, PartialEq)]
pub struct FamilyFiles {
    /// Its name.
    pub name: Bytes,
    /// Its files, oldest first.
    pub files: Vec<SnapshotFile>,
}

/// A file in a snapshot.
#[derive(Clone, Debug, PartialEq)]
pub struct SnapshotFile {
    /// What it is called in its region's directory: a store file, a link, a reference.
    pub name: String,
    /// What a reference says: the file is not kept for that.
    pub reference: Option<pb::Reference>,
    /// Bytes of the file with the cells.
    pub len_bytes: u64,
}

impl Manifest {
    /// Reads the message.
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn from_message(message: &pb::SnapshotDataManifest) -> Result<Manifest, String> {
        let table = from_proto::table(&message.table_schema).map_err(|error| error.to_string())?;
        let regions = message.region_manifests.iter().map(RegionManifest::from_message);
        let manifest = Manifest { table, regions: regions.collect::<Result<_, _>>()? };
        match manifest.regions.iter().find(|region| region.info.table != manifest.table.name) {
            Some(region) => {
                Err(format!("region {} is not of table {}", region.info.name_string(), manifest.table.name))
            }
            None => Ok(manifest),
        }
    }

    /// Every file, with its region and family.
    pub fn files(&self) -> impl Iterator<Item = (&RegionInfo, &Bytes, &SnapshotFile)> {
        self.regions.iter().flat_map(|region| {
            let of_family = |family| (&region.info, family);
            let families = region.families.iter().map(of_family);
            families.flat_map(|(info, family): (_, &FamilyFiles)| {
                family.files.iter().map(move |file| (info, &family.name, file))
            })
        })
    }
}

impl RegionManifest {
    /// As it is kept.
    pub fn to_message(&self) -> pb::SnapshotRegionManifest {
        let store_file = |file: &SnapshotFile| region_pb::StoreFile {
            name: file.name.clone(),
            reference: file.reference.clone(),
            file_size: Some(file.len_bytes),
        };
        let family = |family: &FamilyFiles| region_pb::FamilyFiles {
            family_name: family.name.clone(),
            store_files: family.files.iter().map(store_file).collect(),
        };
        pb::SnapshotRegionManifest {
            version: None,
            region_info: to_proto::region_info(&self.info),
            family_files: self.families.iter().map(family).collect(),
        }
    }

    /// Reads the message. Names in it are names of a file in a directory, and lead nowhere else.
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn from_message(message: &pb::SnapshotRegionManifest) -> Result<RegionManifest, String> {
        let info = from_proto::region_info(&message.region_info).map_err(|error| error.to_string())?;
        let file = |file: &region_pb::StoreFile| {
            if !is_file_name(&file.name) {
                return Err(format!("{:?} is no name of a store file", file.name));
            }
            Ok(SnapshotFile {
                name: file.name.clone(),
                reference: file.reference.clone(),
                len_bytes: file.file_size.unwrap_or(0),
            })
        };
        let family = |family: &region_pb::FamilyFiles| {
            model::name::check_family(&family.family_name).map_err(|error| error.to_string())?;
            let files = family.store_files.iter().map(file).collect::<Result<_, String>>()?;
            Ok(FamilyFiles { name: family.family_name.clone(), files })
        };
        Ok(RegionManifest { info, families: message.family_files.iter().map(family).collect::<Result<_, String>>()? })
    }

    /// Whether it is the region of large values.
    pub fn is_mob(&self) -> bool {
        **self.info.encoded_name() == crate::mob_region_name(&self.info.table)
    }
}

/// Store files, references, links and MOB files alike: letters of any language for the tables in links.
fn is_file_name(name: &str) -> bool {
    let legal = |c: char| c.is_alphanumeric() || matches!(c, '_' | '-' | '.' | '=');
    !name.is_empty() && !name.starts_with('.') && name.chars().all(legal)
}
