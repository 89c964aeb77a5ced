//! `basalt backup` and `basalt restore`: full backups by snapshots, incremental ones by what the logs hold since, in a directory elsewhere.
//! Follows: `BackupDriver`, `RestoreDriver`, `TableBackupClient`, whose words the command lines have.
//!
//! Always true: an earlier backup is whole whatever becomes of a later one; what the next increment needs is marked in the root directory
//! ([`rootdir::backup_hold`]) before the last one counts; nothing of a table is changed before all that it is restored from was read.

mod create;
#[cfg(feature = "fuzzing")]
pub mod fuzzing;
mod history;
mod logs;
mod manifest;
mod merge;
mod repair;
mod restore;
mod sets;

use std::collections::BTreeSet;
use std::process::ExitCode;
use std::sync::Arc;

use anyhow::bail;
use base::Config;
use fs::Volume;
use rootdir::backup_hold::{self, Hold};

use self::manifest::{Backups, Place};
use crate::jobs::{defines, helped};
use crate::places::{Directory, Opener};

pub use restore::run as restore;

const USAGE: &str = "\
Backups of tables in a directory elsewhere: full ones by snapshots, incremental ones by what was written since the one before.

Usage: basalt backup [-D KEY=VALUE]... COMMAND ROOT [ARGUMENTS]

  create full ROOT          a backup of all that the tables hold
  create incremental ROOT   of what was written since the last backup of each table
  list ROOT                 the backups, and those that were begun and are not done
  history ROOT              the backups in HBase's form, the newest first
  progress ROOT [ID]        how far the backup under way is
  describe ROOT ID          one of them: tables, times, sequence ids, files
  verify ROOT [ID]...       reads all files, of all backups unless ids are given; --quick compares their lengths
  merge ROOT ID ID...       makes one of incremental backups that follow each other
  delete ROOT ID...         removes backups; one that others go on from is refused
  repair ROOT               removes what a backup, a merge or a deletion left that was broken off, and marks anew what increments need
  set add ROOT NAME TABLES  adds tables to a set, which is made if need be; set remove takes them out
  set list ROOT             the sets; set describe ROOT NAME one of them, set delete ROOT NAME removes it

    -t TABLES         with create: these tables, parted by commas; create full takes all of them unless given, create incremental
                      those that ROOT has a backup of
    -s SET            with create: the tables of this set; with history: backups that were made for it
    -n N              with history: so many; 10
    -l IDS            with delete: ids, parted by commas
    -k DAYS           with delete: the backups that are older, but for those that younger ones go on from
    --moved-from ROOT with repair: the backups were there before: the mark of that directory is given up
    -w, --workers N   with create: files that are copied at the same time; 4
    -b, --bandwidth MB  with create: megabytes in a second at most
    --new             with create: does not go on with a full backup of the same tables that was broken off
    --json            one JSON object, or one for each line
    --help            this text

ROOT is a path, a file: URI, or hdfs://host:port/directory; it need not be on the file system that the cluster is on.
hbase.rootdir must name the cluster's root directory: logs and files are read there, and a mark there keeps those that the next increment
needs. A full backup that was broken off goes on where it was when it is asked for again; what an incremental one left is begun anew. An
earlier backup is whole whatever happens. basalt restore makes tables of backups.

Ends with 0 when it is done, with 1 after an error or where verify finds damage.

Examples:
  basalt backup create full /backups -t orders,ns:users
  basalt backup create incremental /backups
  basalt backup list /backups
  basalt backup verify /backups backup_1700000000000
  basalt restore /backups backup_1700000000000 -t orders -m orders_then
";

/// Runs `basalt backup`; the code that the process ends with.
///
/// # Errors
/// The arguments make no sense, the cluster cannot be asked, a file cannot be read or written.
pub fn run(opener: &dyn Opener, config: &Config, given: &[String]) -> anyhow::Result<ExitCode> {
    if let Some(code) = helped(USAGE, given) {
        return Ok(code);
    }
    let (config, rest) = defines(config, given)?;
    let Some((command, rest)) = rest.split_first() else { bail!("backup: a command is needed; basalt backup --help") };
    match command.as_str() {
        "create" => create::run(opener, &config, rest),
        "list" => history::list(opener, &config, rest),
        "history" => history::history(opener, &config, rest),
        "progress" => repair::progress(opener, &config, rest),
        "repair" => repair::repair(opener, &config, rest),
        "set" => sets::run(opener, &config, rest),
        "describe" => history::describe(opener, &config, rest),
        "verify" => history::verify(opener, &config, rest),
        "delete" => history::delete(opener, &config, rest),
        "merge" => merge::run(opener, &config, rest),
        other => bail!("backup: {other} is no command; basalt backup --help lists them"),
    }
}

/// The cluster's root directory: to be read, and to be marked.
struct Root {
    reading: Arc<dyn Volume>,
    home: Directory,
}

impl Root {
    fn open(opener: &dyn Opener, config: &Config) -> anyhow::Result<Root> {
        let home = Directory::root(opener, config)?;
        Ok(Root { reading: home.reading()?, home })
    }

    /// The mark of the backups at a place, if there is one that can be read.
    fn hold(&self, place: &Place) -> anyhow::Result<Option<Hold>> {
        let path = backup_hold::holds_dir().join(place.hold_id());
        if !self.home.volume.exists(&path)? {
            return Ok(None);
        }
        // A damaged one is made anew: it says nothing that the backups do not.
        Ok(Hold::decode(&self.home.volume.read(&path)?).ok())
    }

    /// Marks what the next increments need: of each table that is there all since its newest backup.
    fn mark(
        &self,
        place: &Place,
        backups: &Backups,
        there: &BTreeSet<String>,
        covered: BTreeSet<String>,
    ) -> anyhow::Result<()> {
        let newest: Vec<_> = backups.tables().intersection(there).filter_map(|table| backups.newest(table)).collect();
        let Some((first, others)) = newest.split_first() else {
            return Ok(backup_hold::release(&*self.home.volume, &place.hold_id())?);
        };
        let mut logs: std::collections::BTreeMap<String, u64> =
            first.0.logs.iter().map(|(server, boundary)| (server.clone(), boundary.first)).collect();
        for (manifest, _) in others {
            // A server that one of them does not know: all its logs are needed.
            logs.retain(|server, first| match manifest.logs.get(server) {
                Some(boundary) => {
                    *first = boundary.first.min(*first);
                    true
                }
                None => false,
            });
        }
        let tables = newest.iter().map(|(_, image)| image.table.clone()).collect();
        let hold = Hold { place: place.directory.name.clone(), tables, logs, covered };
        Ok(hold.publish(&*self.home.volume, &place.hold_id())?)
    }
}
