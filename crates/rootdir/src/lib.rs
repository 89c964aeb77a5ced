//! Where everything lies on a volume: HBase's root directory.
//!
//! ```text
//! hbase.version, hbase.id                                      root: made last and first
//! data/<ns>/<table>/.tabledesc/.tableinfo.<number>.<length>    descriptor
//! data/<ns>/<table>/<region>/.regioninfo                       region_dir
//! data/<ns>/<table>/<region>/<family>/<store file>             store_file: plain files, references, links
//! data/<ns>/<table>/<region>/<family>/.filelist/<list>         tracker: which of them count, where a list says so
//! data/<ns>/<table>/<region>/.tmp/<opening>/<family>/<file being written>
//! data/<ns>/<table>/<region>/recovered.edits/...               recovered_edits
//! mobdir/data/<ns>/<table>/<region of large values>/<family>/<MOB file>
//! archive/data/<ns>/<table>/<region>/<family>/<store file>     archive: of data and of mobdir
//! WALs/<server>/<log>, oldWALs/<log>, corrupt/<log>            wal_dir: these may be on another volume
//! MasterData/data/master/store, MasterData/WALs                the store of HBase's master
//! .hbase-snapshot/<name>/{.snapshotinfo,data.manifest}         snapshot; its tables' links and what points back: link
//! MasterData/basalt/backups/<id>                              backup_hold: what backups elsewhere still need
//! MasterData/basalt/keys/<server>                             which keys were read and written there
//! .hbck/<path>                                                aside: what was in the way
//! staging/..., .tmp/...
//! ```
//!
//! Always true:
//!  1. A path of the root directory is made here and nowhere else.
//!  2. A function that changes the volume may be repeated after a crash or an error in its middle, and what it did is durable once
//!     it has succeeded, whichever attempt did it.
//!  3. A store file leaves `data` only by arriving in `archive`.
//!  4. Names that come from outside (a link's, a log entry's) lead to no place outside of their directory.
//!
//! Must not know: what is in a store file or a log, regions that are open, the network. Follows `CommonFSUtils`,
//! `HRegionFileSystem`, `FSTableDescriptors`, `HFileArchiver`, `HFileLink`, `StoreFileInfo`, `StoreFileTracker`, `SnapshotManifest`, `RestoreSnapshotHelper`, `WALSplitUtil`, `MasterFileSystem`.

pub mod archive;
pub mod aside;
pub mod backup_hold;
pub mod descriptor;
pub mod link;
pub mod paths;
pub mod recovered_edits;
pub mod region_dir;
pub mod root;
pub mod snapshot;
pub mod store_file;
pub mod tracker;
pub mod wal_dir;

pub use archive::{archive_families, archive_family_dir, archive_files, archive_region_dir, archive_table, clear_temp};
pub use paths::{
    archive_dir, archived_table_dir, corrupt_dir, data_dir, family_dir, family_name, family_names, key_statistics_dir,
    list_if_exists, mob_family_dir, mob_region_name, namespace_dir, old_wals_dir, region_dir, region_names,
    server_wals_dir, table_dir, temp_dir, wals_dir,
};
pub use region_dir::{
    create_region_dir, create_region_dir_durably, create_region_dirs, read_region_info, region_info_bytes,
    write_region_info,
};
pub use store_file::{FileName, link_name};
pub use tracker::Tracker;
pub use wal_dir::WalDirVolume;
