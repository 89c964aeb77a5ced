//! Regions: where they are, flushed, compacted, split, merged, moved.

use bytes::Bytes;
use model::{RegionInfo, ServerName, TableName};
use proto::methods::Method;
use proto::pb::region_specifier::RegionSpecifierType;
use proto::{Message, pb};

use super::Admin;
use crate::channel::{Reply, Request};
use crate::locator::Side;
use crate::{Error, RegionLocation, Result};

pub use proto::pb::get_region_info_response::CompactionState;

impl Admin {
    /// The table's regions in order.
    ///
    /// # Errors
    /// As [`crate::Table::regions`].
    pub async fn regions(&self, name: &TableName) -> Result<Vec<RegionLocation>> {
        self.connection.table(name).regions().await
    }

    /// The region of this name, whole or encoded, and where it is served.
    ///
    /// # Errors
    /// `UnknownRegionException` where there is none; hbase:meta cannot be read.
    pub async fn region(&self, name: &[u8]) -> Result<RegionLocation> {
        let meta = RegionInfo::meta();
        if name == &meta.name()[..] || name == meta.encoded_name().as_bytes() {
            return Ok(self.connection.cluster.meta().await?.location());
        }
        let found = match table_of(name) {
            Some(table) => self.regions(&table).await?.into_iter().find(|location| location.region.name() == name),
            None => self.region_by_encoded_name(name).await?,
        };
        found.ok_or_else(|| {
            let class = "org.apache.hadoop.hbase.UnknownRegionException".to_owned();
            Error::Procedure { what: "find a region".to_owned(), why: crate::locator::printable(name), class }
        })
    }

    async fn region_by_encoded_name(&self, encoded: &[u8]) -> Result<Option<RegionLocation>> {
        let meta = self.connection.table(&TableName::meta());
        let scan = model::Scan {
            columns: [(Bytes::from_static(b"info"), Vec::new())].into(),
            // The encoded name stands at the end of a region's row, between two dots.
            filter: Some(std::sync::Arc::new(filter::Filter::Row {
                op: filter::CompareOp::Equal,
                comparator: Some(filter::Comparator::substring(&String::from_utf8_lossy(encoded))),
            })),
            ..model::Scan::default()
        };
        let mut scanner = meta.scan(scan, meta.scan_options());
        while let Some(row) = scanner.next().await? {
            if let (Some(region), Some(server)) = (crate::locator::region_of(&row), crate::locator::server_of(&row))
                && region.encoded_name().as_bytes() == encoded
            {
                return Ok(Some(RegionLocation { region, server }));
            }
        }
        Ok(None)
    }

    /// Writes a region's memstores, or one family's, into files.
    ///
    /// # Errors
    /// The region's server refuses or cannot be reached.
    pub async fn flush_region(&self, region: &[u8], family: Option<&[u8]>) -> Result<()> {
        let location = self.region(region).await?;
        let request = pb::FlushRegionRequest {
            region: convert::to_proto::region_specifier(&location.region),
            family: family.map(Bytes::copy_from_slice),
            write_flush_wal_marker: Some(false),
            ..pb::FlushRegionRequest::default()
        };
        self.region_call(&location, Method::AdminFlushRegion, &request).await.map(|_| ())
    }

    /// Asks for a compaction of a table and does not wait for it.
    ///
    /// # Errors
    /// A region's server refuses or cannot be reached.
    pub async fn compact(&self, name: &TableName) -> Result<()> {
        self.compact_family(name, None, false).await
    }

    /// Asks for a major compaction of a table and does not wait for it.
    ///
    /// # Errors
    /// A region's server refuses or cannot be reached.
    pub async fn major_compact(&self, name: &TableName) -> Result<()> {
        self.compact_family(name, None, true).await
    }

    /// Asks for a compaction of a table, or of one family, and does not wait for it.
    ///
    /// # Errors
    /// A region's server refuses or cannot be reached.
    pub async fn compact_family(&self, name: &TableName, family: Option<&[u8]>, major: bool) -> Result<()> {
        for location in self.regions(name).await? {
            self.compact_at(&location, family, major).await?;
        }
        Ok(())
    }

    /// The same for one region.
    ///
    /// # Errors
    /// The region's server refuses or cannot be reached.
    pub async fn compact_region(&self, region: &[u8], family: Option<&[u8]>, major: bool) -> Result<()> {
        let location = self.region(region).await?;
        self.compact_at(&location, family, major).await
    }

    pub(super) async fn compact_at(&self, at: &RegionLocation, family: Option<&[u8]>, major: bool) -> Result<()> {
        let request = pb::CompactRegionRequest {
            region: convert::to_proto::region_specifier(&at.region),
            major: Some(major),
            family: family.map(Bytes::copy_from_slice),
        };
        self.region_call(at, Method::AdminCompactRegion, &request).await.map(|_| ())
    }

    /// Whether a region of the table is being compacted or waits for it.
    ///
    /// # Errors
    /// A region's server refuses or cannot be reached.
    pub async fn is_compacting(&self, name: &TableName) -> Result<bool> {
        Ok(self.compaction_state(name).await? != CompactionState::None)
    }

    /// Which compactions the table's regions are in.
    ///
    /// # Errors
    /// A region's server refuses or cannot be reached.
    pub async fn compaction_state(&self, name: &TableName) -> Result<CompactionState> {
        let mut state = CompactionState::None;
        for location in self.regions(name).await? {
            let of_region = self.region_info_at(&location, true, false).await?.compaction_state();
            state = match (state, of_region) {
                (state, CompactionState::None) => state,
                (CompactionState::None, of_region) => of_region,
                (state, of_region) if state == of_region => state,
                _ => CompactionState::MajorAndMinor,
            };
        }
        Ok(state)
    }

    /// Which compactions a region is in.
    ///
    /// # Errors
    /// The region's server refuses or cannot be reached.
    pub async fn region_compaction_state(&self, region: &[u8]) -> Result<CompactionState> {
        Ok(self.region_info(region).await?.compaction_state())
    }

    /// What a region's server says of it: its compactions, where it would be split, whether it can be.
    ///
    /// # Errors
    /// The region's server refuses or cannot be reached.
    pub async fn region_info(&self, region: &[u8]) -> Result<pb::GetRegionInfoResponse> {
        let location = self.region(region).await?;
        self.region_info_at(&location, true, true).await
    }

    async fn region_info_at(
        &self,
        at: &RegionLocation,
        compaction_state: bool,
        best_split_row: bool,
    ) -> Result<pb::GetRegionInfoResponse> {
        let request = pb::GetRegionInfoRequest {
            region: convert::to_proto::region_specifier(&at.region),
            compaction_state: Some(compaction_state),
            best_split_row: Some(best_split_row),
        };
        self.region_call(at, Method::AdminGetRegionInfo, &request).await?.decode()
    }

    /// When the oldest file of a table was made by a major compaction, in milliseconds; 0 where none was.
    ///
    /// # Errors
    /// The master cannot be reached.
    pub async fn last_major_compaction(&self, name: &TableName) -> Result<i64> {
        let request = pb::MajorCompactionTimestampRequest { table_name: convert::to_proto::table_name(name) };
        let reply: pb::MajorCompactionTimestampResponse =
            self.master(Method::MasterGetLastMajorCompactionTimestamp, &request).await?;
        Ok(reply.compaction_timestamp)
    }

    /// The same for a region.
    ///
    /// # Errors
    /// The master cannot be reached.
    pub async fn last_major_compaction_of_region(&self, region: &[u8]) -> Result<i64> {
        let request = pb::MajorCompactionTimestampForRegionRequest { region: named(region) };
        let reply: pb::MajorCompactionTimestampResponse =
            self.master(Method::MasterGetLastMajorCompactionTimestampForRegion, &request).await?;
        Ok(reply.compaction_timestamp)
    }

    /// Splits the table's regions (those that can be split), or the one that holds `row` at that row.
    ///
    /// # Errors
    /// The master refuses.
    pub async fn split(&self, name: &TableName, row: Option<&[u8]>) -> Result<()> {
        for location in self.regions(name).await? {
            let at = match row {
                Some(row) if location.region.contains(row) => Bytes::copy_from_slice(row),
                Some(_) => continue,
                None => match self.region_info_at(&location, false, true).await?.best_split_row {
                    Some(row) if !row.is_empty() => row,
                    _ => continue,
                },
            };
            self.split_at(&location.region, Some(at)).await?;
        }
        Ok(())
    }

    /// Splits a region, at `row` or where its server would.
    ///
    /// # Errors
    /// The master refuses.
    pub async fn split_region(&self, region: &[u8], row: Option<&[u8]>) -> Result<()> {
        let location = self.region(region).await?;
        let best = match row {
            Some(row) => Some(Bytes::copy_from_slice(row)),
            None => self.region_info_at(&location, false, true).await?.best_split_row.filter(|row| !row.is_empty()),
        };
        self.split_at(&location.region, best).await
    }

    async fn split_at(&self, region: &RegionInfo, row: Option<Bytes>) -> Result<()> {
        let (nonce_group, nonce) = self.nonce();
        let request = pb::SplitTableRegionRequest {
            region_info: convert::to_proto::region_info(region),
            split_row: row,
            nonce_group,
            nonce,
        };
        let reply: pb::SplitTableRegionResponse = self.master(Method::MasterSplitRegion, &request).await?;
        self.finish(&format!("split {}", region.name_string()), reply.proc_id).await?;
        self.connection.cluster.cache(&region.table).forget_all();
        Ok(())
    }

    /// Merges regions, given by their names, into one; `forcible` also when they are not neighbours.
    ///
    /// # Errors
    /// `MergeRegionException` and what else the master refuses.
    pub async fn merge_regions(&self, regions: &[Bytes], forcible: bool) -> Result<()> {
        let (nonce_group, nonce) = self.nonce();
        let specifier = |name: &Bytes| pb::RegionSpecifier {
            r#type: RegionSpecifierType::EncodedRegionName.into(),
            value: encoded(name),
        };
        let request = pb::MergeTableRegionsRequest {
            region: regions.iter().map(specifier).collect(),
            forcible: Some(forcible),
            nonce_group,
            nonce,
        };
        let reply: pb::MergeTableRegionsResponse = self.master(Method::MasterMergeTableRegions, &request).await?;
        self.finish("merge regions", reply.proc_id).await?;
        for table in regions.iter().filter_map(|name| table_of(name)) {
            self.connection.cluster.cache(&table).forget_all();
        }
        Ok(())
    }

    /// Empties a region.
    ///
    /// # Errors
    /// What the master refuses.
    pub async fn truncate_region(&self, region: &[u8]) -> Result<()> {
        let location = self.region(region).await?;
        let (nonce_group, nonce) = self.nonce();
        let request = pb::TruncateRegionRequest {
            region_info: convert::to_proto::region_info(&location.region),
            nonce_group,
            nonce,
        };
        let reply: pb::TruncateRegionResponse = self.master(Method::MasterTruncateRegion, &request).await?;
        self.finish(&format!("truncate {}", location.region.name_string()), reply.proc_id).await
    }

    /// Has a region opened somewhere.
    ///
    /// # Errors
    /// What the master refuses.
    pub async fn assign(&self, region: &[u8]) -> Result<()> {
        let request = pb::AssignRegionRequest { region: named(region), ..pb::AssignRegionRequest::default() };
        self.master::<pb::AssignRegionResponse>(Method::MasterAssignRegion, &request).await.map(|_| ())
    }

    /// Has a region closed.
    ///
    /// # Errors
    /// What the master refuses.
    pub async fn unassign(&self, region: &[u8]) -> Result<()> {
        let request = pb::UnassignRegionRequest { region: named(region), ..pb::UnassignRegionRequest::default() };
        self.master::<pb::UnassignRegionResponse>(Method::MasterUnassignRegion, &request).await.map(|_| ())
    }

    /// Has the master take a region for offline.
    ///
    /// # Errors
    /// What the master refuses.
    pub async fn offline(&self, region: &[u8]) -> Result<()> {
        let request = pb::OfflineRegionRequest { region: named(region) };
        self.master::<pb::OfflineRegionResponse>(Method::MasterOfflineRegion, &request).await.map(|_| ())
    }

    /// Moves a region to `server`, or where the balancer would have it.
    ///
    /// # Errors
    /// What the master refuses.
    pub async fn move_region(&self, region: &[u8], server: Option<&ServerName>) -> Result<()> {
        let encoded = encoded(region);
        let request = pb::MoveRegionRequest {
            region: named(&encoded),
            dest_server_name: server.map(convert::to_proto::server_name),
        };
        self.master::<pb::MoveRegionResponse>(Method::MasterMoveRegion, &request).await.map(|_| ())
    }

    /// Names of the files of a region's families; of all families where none is named.
    ///
    /// # Errors
    /// The region's server refuses or cannot be reached.
    pub async fn store_files(&self, region: &[u8], families: &[Bytes]) -> Result<Vec<String>> {
        let location = self.region(region).await?;
        let request = pb::GetStoreFileRequest {
            region: convert::to_proto::region_specifier(&location.region),
            family: families.to_vec(),
        };
        let reply: pb::GetStoreFileResponse =
            self.region_call(&location, Method::AdminGetStoreFile, &request).await?.decode()?;
        Ok(reply.store_file)
    }

    /// Drops a table's blocks from the caches; what that freed.
    ///
    /// # Errors
    /// A region's server refuses or cannot be reached.
    pub async fn clear_block_cache(&self, name: &TableName) -> Result<pb::CacheEvictionStats> {
        let mut by_server: Vec<(ServerName, Vec<pb::RegionSpecifier>)> = Vec::new();
        for RegionLocation { region, server } in self.regions(name).await? {
            let specifier = convert::to_proto::region_specifier(&region);
            match by_server.iter_mut().find(|(known, _)| *known == server) {
                Some((_, regions)) => regions.push(specifier),
                None => by_server.push((server, vec![specifier])),
            }
        }
        let mut all = pb::CacheEvictionStats::default();
        for (server, region) in by_server {
            let request = pb::ClearRegionBlockCacheRequest { region };
            let reply: pb::ClearRegionBlockCacheResponse =
                self.server_call(&server, Method::AdminClearRegionBlockCache, &request).await?;
            let sum = |a: Option<i64>, b: Option<i64>| Some(a.unwrap_or(0).saturating_add(b.unwrap_or(0)));
            all.evicted_blocks = sum(all.evicted_blocks, reply.stats.evicted_blocks);
            all.bytes_evicted = sum(all.bytes_evicted, reply.stats.bytes_evicted);
            all.max_cache_size = sum(all.max_cache_size, reply.stats.max_cache_size);
            all.exception.extend(reply.stats.exception);
        }
        Ok(all)
    }

    pub(super) async fn region_call(
        &self,
        at: &RegionLocation,
        method: Method,
        message: &impl Message,
    ) -> Result<Reply> {
        let cluster = &self.connection.cluster;
        let cache = cluster.cache(&at.region.table);
        let mut retry = cluster.retry(cluster.manner.writing());
        loop {
            let located = cluster.locate(&cache, &at.region.start_key, Side::Current).await;
            let error = match located {
                Ok(located) => {
                    let called = async {
                        let channel = located.server.admin().await?;
                        channel.call(Request::new(method, message).timeout(retry.call_timeout())).await
                    };
                    match called.await {
                        Ok(reply) => return Ok(reply),
                        Err(e) => {
                            cluster.learn(&cache, &located, &e);
                            e
                        }
                    }
                }
                Err(e) => e,
            };
            retry.pause(error).await?;
        }
    }
}

/// A region by its name, whole or encoded.
pub(super) fn named(region: &[u8]) -> pb::RegionSpecifier {
    let is_whole = region.contains(&b',');
    let kind = if is_whole { RegionSpecifierType::RegionName } else { RegionSpecifierType::EncodedRegionName };
    pb::RegionSpecifier { r#type: kind.into(), value: Bytes::copy_from_slice(region) }
}

/// The table in a region's whole name; none in an encoded one.
fn table_of(region: &[u8]) -> Option<TableName> {
    let at = region.iter().position(|byte| *byte == b',')?;
    TableName::parse(std::str::from_utf8(&region[..at]).ok()?).ok()
}

/// The encoded name of the region of this name, whole or encoded.
fn encoded(region: &[u8]) -> Bytes {
    match region.contains(&b',') {
        true => Bytes::copy_from_slice(RegionInfo::encoded_from_name(region).as_bytes()),
        false => Bytes::copy_from_slice(region),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn regions_are_named_by_whole_and_by_encoded_names() {
        let region = RegionInfo::new(TableName::parse("ns:t").expect("legal"), "a,b".into(), Bytes::new(), 7);
        let (whole, short) = (region.name(), region.encoded_name().as_bytes());
        assert_eq!((encoded(whole), encoded(short)), (Bytes::copy_from_slice(short), Bytes::copy_from_slice(short)));
        assert_eq!(named(whole).r#type, i32::from(RegionSpecifierType::RegionName));
        assert_eq!(named(short).r#type, i32::from(RegionSpecifierType::EncodedRegionName));
        assert_eq!((table_of(whole), table_of(short)), (Some(region.table.clone()), None));
    }
}
