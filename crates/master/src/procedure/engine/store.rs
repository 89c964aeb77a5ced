//! Where procedures are kept: one small file each, `MasterData/basalt/procedures/<19-digit id>`, published whole.

use fs::{FilePath, Volume};
use proto::{magic, pb};
use rootdir::list_if_exists;
use rootdir::paths::own_master_dir;
use std::sync::Arc;

fn procedures_dir() -> FilePath {
    own_master_dir().join("procedures")
}

/// A record that cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum ProcedureStoreError {
    /// The volume failed.
    #[error(transparent)]
    Io(#[from] fs::Error),
    /// A file that is no record.
    #[error("{path} is no record of a procedure ({what}); move it away to start without finishing that work")]
    Damaged {
        /// The file.
        path: FilePath,
        /// What is wrong.
        what: String,
    },
    /// A procedure that HBase's master left.
    #[error(
        "procedure {id} of HBase's master, in family `proc` of MasterData/data/master/store, cannot be read ({what}); start HBase's master once more to let it finish its work, or move MasterData/data/master/store and MasterData/WALs away to start without finishing it"
    )]
    OfHBase {
        /// Its id.
        id: u64,
        /// What is wrong.
        what: String,
    },
}

/// The directory of records. The order of saves is the caller's; a save is durable when it returns.
pub(crate) struct ProcedureStore {
    volume: Arc<dyn Volume>,
}

impl std::fmt::Debug for ProcedureStore {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ProcedureStore").finish_non_exhaustive()
    }
}

fn path_of(id: u64) -> FilePath {
    procedures_dir().join(format!("{id:019}"))
}

impl ProcedureStore {
    /// Opens the directory and reads every record with `read`, oldest first.
    ///
    /// # Errors
    /// The volume, or a file that `read` does not understand.
    pub fn open<T>(
        volume: Arc<dyn Volume>,
        read: impl Fn(&pb::Procedure) -> crate::Result<T>,
    ) -> Result<(ProcedureStore, Vec<T>), ProcedureStoreError> {
        let dir = procedures_dir();
        volume.create_dir_all_durable(&dir)?;
        let mut records = Vec::new();
        for entry in list_if_exists(&*volume, &dir)? {
            let path = dir.join(&entry.name);
            if entry.name.starts_with(fs::TEMPORARY_PREFIX) {
                volume.remove_file(&path)?;
                continue;
            }
            let bytes = bytes::Bytes::from(volume.read(&path)?);
            let damaged = |what: String| ProcedureStoreError::Damaged { path: path.clone(), what };
            let message = match magic::decode::<pb::Procedure>(&bytes) {
                None => return Err(damaged("it does not begin with PBUF".into())),
                Some(Err(error)) => return Err(damaged(error.to_string())),
                Some(Ok(message)) => message,
            };
            records.push((message.proc_id, read(&message).map_err(|error| damaged(error.to_string()))?));
        }
        records.sort_by_key(|(id, _)| *id);
        Ok((ProcedureStore { volume }, records.into_iter().map(|(_, record)| record).collect()))
    }

    /// Makes a record durable, in place of an earlier one.
    ///
    /// # Errors
    /// The volume's.
    pub fn save(&self, record: &pb::Procedure) -> fs::Result<()> {
        self.volume.publish(&path_of(record.proc_id), &magic::encode(record))
    }

    /// Takes back a record whose saving failed half way: no start finds it once this returned.
    ///
    /// # Errors
    /// The volume's.
    pub fn withdraw(&self, id: u64) -> fs::Result<()> {
        self.forget(id)?;
        self.volume.sync_dir(&procedures_dir())
    }

    /// Forgets a record. It may come back after a crash; it tells of finished work then, and is forgotten again.
    ///
    /// # Errors
    /// The volume's.
    pub fn forget(&self, id: u64) -> fs::Result<()> {
        match self.volume.remove_file(&path_of(id)) {
            Err(error) if error.is_not_found() => Ok(()),
            result => result,
        }
    }
}
