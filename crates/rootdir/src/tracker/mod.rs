//! Who says which files in a family's directory are its store files: the directory itself, or a list beside them. HBase's store file
//! trackers. Follows: `StoreFileTrackerFactory`, `DefaultStoreFileTracker`, `FileBasedStoreFileTracker`, `MigrationStoreFileTracker`.

pub mod list;

use self::list::{FileList, ListError};
use crate::store_file::FileName;
use bytes::Bytes;
use fs::{DirEntry, FilePath, Volume};
use model::{FamilyDescriptor, TableDescriptor};
use std::fmt;

/// The attribute that names a table's or family's tracker.
pub const IMPL_KEY: &str = "hbase.store.file-tracker.impl";
/// Of a migration: the tracker that is left.
pub const SOURCE_KEY: &str = "hbase.store.file-tracker.migration.src.impl";
/// Of a migration: the tracker to be.
pub const TARGET_KEY: &str = "hbase.store.file-tracker.migration.dst.impl";
const PACKAGE: &str = "org.apache.hadoop.hbase.regionserver.storefiletracker.";

/// A tracker's class.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Class {
    /// The directory is the list.
    Default,
    /// A list beside the files.
    File,
    /// On the way from one to the other.
    Migration,
}

impl Class {
    /// By HBase's name, in any case, or by the name of its class.
    ///
    /// # Errors
    /// There is no such tracker.
    pub fn parse(name: &str) -> Result<Class, TrackerError> {
        let all = [Class::Default, Class::File, Class::Migration];
        let is_it = |class: &Class| name.eq_ignore_ascii_case(class.name()) || name == class.java_name();
        all.into_iter().find(is_it).ok_or_else(|| TrackerError::Unknown(name.to_owned()))
    }

    /// HBase's name.
    pub fn name(self) -> &'static str {
        match self {
            Class::Default => "DEFAULT",
            Class::File => "FILE",
            Class::Migration => "MIGRATION",
        }
    }

    /// The name of HBase's class.
    pub fn java_name(self) -> String {
        let name = match self {
            Class::Default => "Default",
            Class::File => "FileBased",
            Class::Migration => "Migration",
        };
        format!("{PACKAGE}{name}StoreFileTracker")
    }
}

impl fmt::Display for Class {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// Why nobody knows a family's tracker. In HBase's words where it has some.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TrackerError {
    /// The class that would be loaded is not there.
    #[error("java.lang.ClassNotFoundException: Class {0} not found")]
    Unknown(String),
    /// A migration without its source or target.
    #[error("config {0} is not set")]
    NotSet(&'static str),
    /// A migration from or to a migration.
    #[error("Should not specify {0} as MIGRATION because it can not be nested")]
    Nested(&'static str),
    /// A migration from a tracker to itself.
    #[error("src and dst is the same: class {}", .0.java_name())]
    Same(Class),
}

/// The tracker of a family.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tracker {
    /// The directory is the list.
    Default,
    /// A list beside the files.
    File,
    /// From one to the other.
    Migration {
        /// Which files there are is read from this.
        source: Class,
        /// This is kept, too.
        target: Class,
    },
}

impl Tracker {
    /// The tracker of a family: what the family says counts more than the table, and the table more than the site.
    ///
    /// # Errors
    /// What is said makes no tracker.
    pub fn of(site: &Site, table: &TableDescriptor, family: &FamilyDescriptor) -> Result<Tracker, TrackerError> {
        site.with(table.overrides().chain(family.overrides())).tracker()
    }

    /// Its class.
    pub fn class(self) -> Class {
        match self {
            Tracker::Default => Class::Default,
            Tracker::File => Class::File,
            Tracker::Migration { .. } => Class::Migration,
        }
    }

    /// Whether the list says which store files there are; else the directory does.
    pub fn reads_list(self) -> bool {
        matches!(self, Tracker::File | Tracker::Migration { source: Class::File, .. })
    }

    /// Whether the list is kept.
    pub fn keeps_list(self) -> bool {
        !matches!(self, Tracker::Default)
    }

    /// Names of the store files in the directory of a closed region's family.
    ///
    /// # Errors
    /// The volume fails, or the list is damaged.
    pub fn names_of_closed(self, volume: &dyn Volume, family_dir: &FilePath) -> Result<Vec<String>, ListError> {
        if self.reads_list() {
            return Ok(list::read(volume, family_dir)?.unwrap_or_default().into_keys().collect());
        }
        let entries = crate::list_if_exists(volume, family_dir)?.into_iter();
        let is_file = |entry: &DirEntry| !entry.is_dir && FileName::parse(&entry.name).is_some();
        Ok(entries.filter(is_file).map(|entry| entry.name).collect())
    }

    /// Has the list of a closed region's family, if it has one, say exactly these, all of them references.
    ///
    /// # Errors
    /// The volume fails; may be repeated.
    pub fn set_of_closed(
        self,
        volume: &dyn Volume,
        family_dir: &FilePath,
        names: impl IntoIterator<Item = String>,
        now_ms: i64,
    ) -> fs::Result<()> {
        if !self.keeps_list() {
            return Ok(());
        }
        let entries = names.into_iter().map(|name| (name, 0)).collect();
        FileList::anew(volume, family_dir, now_ms)?.set(volume, entries, now_ms).map_err(|failed| failed.error)
    }
}

/// What one place says of trackers.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Site {
    class: Option<String>,
    source: Option<String>,
    target: Option<String>,
}

impl Site {
    /// What the configuration says, by key.
    pub fn from_config<'a>(text: impl Fn(&str) -> Option<&'a str>) -> Site {
        let of = |key| text(key).map(|value| value.trim().to_owned()).filter(|value| !value.is_empty());
        Site { class: of(IMPL_KEY), source: of(SOURCE_KEY), target: of(TARGET_KEY) }
    }

    /// With what others say in its place; of a key that is named twice the later counts.
    #[must_use]
    pub fn with<'a>(&self, overrides: impl IntoIterator<Item = (&'a str, &'a str)>) -> Site {
        let mut all = self.clone();
        for (key, value) in overrides {
            let place = match key {
                IMPL_KEY => &mut all.class,
                SOURCE_KEY => &mut all.source,
                TARGET_KEY => &mut all.target,
                _ => continue,
            };
            let value = value.trim();
            *place = (!value.is_empty()).then(|| value.to_owned());
        }
        all
    }

    /// The table, naming its tracker: this one, unless it names another. HBase 2.6 has every table do that.
    ///
    /// Follows: `StoreFileTrackerFactory#updateWithTrackerConfigs`.
    pub fn named_in(&self, mut table: TableDescriptor) -> TableDescriptor {
        let named = table.overrides().any(|(key, value)| key == IMPL_KEY && !value.trim().is_empty());
        if !named {
            let name = self.class().map_or_else(|_| self.name(), |class| class.name()).to_owned();
            table.attributes.insert(Bytes::from(IMPL_KEY), Bytes::from(name));
        }
        table
    }

    /// Its name of a tracker, as it is said.
    pub fn name(&self) -> &str {
        self.class.as_deref().unwrap_or(Class::Default.name())
    }

    /// Its tracker's class.
    ///
    /// # Errors
    /// There is no such tracker.
    pub fn class(&self) -> Result<Class, TrackerError> {
        Class::parse(self.name())
    }

    /// Of a migration: where it comes from.
    ///
    /// # Errors
    /// It does not say, or there is no such tracker.
    pub fn source(&self) -> Result<Class, TrackerError> {
        Class::parse(self.source.as_deref().ok_or(TrackerError::NotSet(SOURCE_KEY))?)
    }

    /// Of a migration: where it goes.
    ///
    /// # Errors
    /// It does not say, or there is no such tracker.
    pub fn target(&self) -> Result<Class, TrackerError> {
        Class::parse(self.target.as_deref().ok_or(TrackerError::NotSet(TARGET_KEY))?)
    }

    /// What it comes to.
    ///
    /// # Errors
    /// What is said makes no tracker.
    pub fn tracker(&self) -> Result<Tracker, TrackerError> {
        match self.class()? {
            Class::Default => Ok(Tracker::Default),
            Class::File => Ok(Tracker::File),
            Class::Migration => {
                let (source, target) = (self.source()?, self.target()?);
                match (source, target) {
                    (Class::Migration, _) => Err(TrackerError::Nested(SOURCE_KEY)),
                    (_, Class::Migration) => Err(TrackerError::Nested(TARGET_KEY)),
                    _ if source == target => Err(TrackerError::Same(source)),
                    _ => Ok(Tracker::Migration { source, target }),
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::TableName;

    #[test]
    fn the_nearer_word_names_the_tracker() {
        let site = Site::from_config(|key| (key == IMPL_KEY).then_some("file"));
        let mut table = TableDescriptor::new(TableName::parse("t").expect("legal"), [FamilyDescriptor::new("f")]);
        let mut family = FamilyDescriptor::new("f");
        let of = |table: &TableDescriptor, family: &FamilyDescriptor| Tracker::of(&site, table, family);
        assert_eq!(of(&table, &family), Ok(Tracker::File));
        table.attributes.insert(Bytes::from(IMPL_KEY), Bytes::from("DEFAULT"));
        assert_eq!(of(&table, &family), Ok(Tracker::Default));
        family.configuration.insert(IMPL_KEY.into(), "MIGRATION".into());
        assert_eq!(of(&table, &family), Err(TrackerError::NotSet(SOURCE_KEY)));
        family.configuration.insert(SOURCE_KEY.into(), "FILE".into());
        family.configuration.insert(TARGET_KEY.into(), "Default".into());
        let migration = Tracker::Migration { source: Class::File, target: Class::Default };
        assert_eq!(of(&table, &family), Ok(migration));
        assert!(migration.reads_list() && migration.keeps_list());
        family.attributes.insert(Bytes::from(TARGET_KEY), Bytes::from("FILE"));
        assert_eq!(of(&table, &family), Err(TrackerError::Same(Class::File)));
        family.attributes.insert(Bytes::from(TARGET_KEY), Bytes::from("migration"));
        assert_eq!(of(&table, &family), Err(TrackerError::Nested(TARGET_KEY)));
        family.attributes.insert(Bytes::from(IMPL_KEY), Bytes::from(Class::File.java_name()));
        assert_eq!(of(&table, &family), Ok(Tracker::File));
        family.attributes.insert(Bytes::from(IMPL_KEY), Bytes::from("x.Y"));
        assert_eq!(of(&table, &family), Err(TrackerError::Unknown("x.Y".into())));
    }
}
