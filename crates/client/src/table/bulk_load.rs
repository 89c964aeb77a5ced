//! Bulk loads: HFiles become files of a region, without passing through its memory. Follows: `SecureBulkLoadClient`, `ClientServiceCallable` in
//! `BulkLoadHFilesTool`.

use bytes::Bytes;
use proto::methods::Method;
use proto::pb;

use super::Table;
use super::call::OfRegion;
use crate::Result;

impl OfRegion for pb::PrepareBulkLoadRequest {
    fn set_region(&mut self, region: pb::RegionSpecifier) {
        self.region = Some(region);
    }
}

impl OfRegion for pb::CleanupBulkLoadRequest {
    fn set_region(&mut self, region: pb::RegionSpecifier) {
        self.region = Some(region);
    }
}

impl OfRegion for pb::BulkLoadHFileRequest {
    fn set_region(&mut self, region: pb::RegionSpecifier) {
        self.region = region;
    }
}

/// How files are loaded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BulkLoadOptions {
    /// The files count as newer than what was written before (`hbase.mapreduce.bulkload.assign.sequenceNumbers`).
    pub assign_seq_ids: bool,
    /// The server copies the files and leaves them where they are (`always.copy.files`); else it moves them.
    pub copy_files: bool,
    /// Other clusters are told.
    pub replicate: bool,
}

impl Default for BulkLoadOptions {
    fn default() -> BulkLoadOptions {
        BulkLoadOptions { assign_seq_ids: true, copy_files: false, replicate: true }
    }
}

impl Table {
    /// Has a server make a directory for the files of one load; answers the token that means it, for [`Table::bulk_load`] and
    /// [`Table::cleanup_bulk_load`].
    ///
    /// # Errors
    /// As [`Table::get`].
    pub async fn prepare_bulk_load(&self) -> Result<String> {
        let table_name = convert::to_proto::table_name(self.name());
        let mut message = pb::PrepareBulkLoadRequest { table_name, region: None };
        let policy = self.manner.writing();
        let reply = self.on_region(b"", Method::ClientPrepareBulkLoad, &mut message, &[], policy).await?;
        let response: pb::PrepareBulkLoadResponse = reply.decode()?;
        Ok(response.bulk_token)
    }

    /// Loads files, each with its family, into the region that holds `row`: all of them or none. Paths are the server's, such as
    /// `file:/out/f/0123...`. False where they do not fit into the region, or the server could not load them, and says why in its log: the
    /// regions are to be looked at again then, and what is left to be tried again.
    ///
    /// # Errors
    /// As [`Table::put`]. Where the reply was lost the load may have been done: its files are gone then.
    pub async fn bulk_load(
        &self,
        row: &[u8],
        files: &[(Bytes, String)],
        token: &str,
        options: &BulkLoadOptions,
    ) -> Result<bool> {
        let path = |(family, path): &(Bytes, String)| pb::bulk_load_h_file_request::FamilyPath {
            family: family.clone(),
            path: path.clone(),
        };
        let mut message = pb::BulkLoadHFileRequest {
            family_path: files.iter().map(path).collect(),
            assign_seq_num: Some(options.assign_seq_ids),
            bulk_token: Some(token.to_owned()),
            copy_file: Some(options.copy_files),
            replicate: Some(options.replicate),
            ..pb::BulkLoadHFileRequest::default()
        };
        let policy = self.manner.writing();
        let reply = self.on_region(row, Method::ClientBulkLoadHFile, &mut message, &[], policy).await?;
        let response: pb::BulkLoadHFileResponse = reply.decode()?;
        Ok(response.loaded)
    }

    /// Has a server remove the directory of a load that has ended, one way or the other.
    ///
    /// # Errors
    /// As [`Table::get`].
    pub async fn cleanup_bulk_load(&self, token: &str) -> Result<()> {
        let mut message = pb::CleanupBulkLoadRequest { bulk_token: token.to_owned(), region: None };
        let policy = self.manner.writing();
        self.on_region(b"", Method::ClientCleanupBulkLoad, &mut message, &[], policy).await?;
        Ok(())
    }
}
