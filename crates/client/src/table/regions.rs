//! Where a table's regions are. Follows: `RegionLocator`, `AsyncTableRegionLocator`.

use bytes::Bytes;
use model::{RegionInfo, Scan, TableName};

use super::Table;
use crate::locator::{RegionLocation, Side, region_of, replicas_of, server_of};
use crate::{Error, Result, ScanOptions};

impl Table {
    /// The table's regions in order, from hbase:meta; they are remembered.
    ///
    /// # Errors
    /// hbase:meta cannot be read, or the table is not there.
    pub async fn regions(&self) -> Result<Vec<RegionLocation>> {
        if self.name().is_meta() {
            return Ok(vec![self.cluster.meta().await?.location()]);
        }
        let name = self.name().as_str().as_bytes();
        let scan = Scan {
            start_row: Bytes::from([name, b",,"].concat()),
            stop_row: Bytes::from([name, b" ,,"].concat()),
            columns: [(Bytes::from_static(b"info"), Vec::new())].into(),
            ..Scan::default()
        };
        let meta = self.cluster.table(&TableName::meta());
        let mut scanner = meta.scan(scan, ScanOptions { caching: 1000, ..ScanOptions::default() });
        let mut regions = Vec::new();
        while let Some(row) = scanner.next().await? {
            let Some(region) = region_of(&row) else { continue };
            if region.table != *self.name() || region.offline || region.split {
                continue;
            }
            if let Some(server) = server_of(&row) {
                let location = RegionLocation { region, server };
                self.cluster.remember(&self.cache, &location, replicas_of(&row));
                regions.push(location);
            }
        }
        if regions.is_empty() {
            return Err(Error::TableNotFound(self.name().clone()));
        }
        Ok(regions)
    }

    /// Where a row is served; `reload` asks hbase:meta even if the answer is known.
    ///
    /// # Errors
    /// As [`Table::regions`].
    pub async fn region_of(&self, row: &[u8], reload: bool) -> Result<RegionLocation> {
        let located = if reload {
            self.cluster.locate_anew(&self.cache, row).await?
        } else {
            self.cluster.locate(&self.cache, row, Side::Current).await?
        };
        Ok(located.location())
    }

    /// Where the region that holds `row` and its read replicas are served; the primary first.
    ///
    /// # Errors
    /// As [`Table::regions`].
    pub async fn replicas_of(&self, row: &[u8], reload: bool) -> Result<Vec<RegionLocation>> {
        let located = if reload {
            self.cluster.locate_anew(&self.cache, row).await?
        } else {
            self.cluster.locate(&self.cache, row, Side::Current).await?
        };
        let replicas = self.cluster.replicas_of(&located);
        Ok(std::iter::once(located.location()).chain(replicas.iter().map(|replica| replica.location())).collect())
    }

    /// Start and end keys of the regions, in order.
    ///
    /// # Errors
    /// As [`Table::regions`].
    pub async fn start_end_keys(&self) -> Result<Vec<(Bytes, Bytes)>> {
        let keys = |RegionInfo { start_key, end_key, .. }: RegionInfo| (start_key, end_key);
        Ok(self.regions().await?.into_iter().map(|location| keys(location.region)).collect())
    }

    /// Forgets where its regions are: they are looked up again.
    pub fn forget_locations(&self) {
        self.cache.forget_all();
    }
}
