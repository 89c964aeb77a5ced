//! Tables: their descriptors, states and regions, as the picture has them, and the write that changes a state.
//! Follows: `TableStateManager`, `TableDescriptors`.

use crate::catalog::Catalog;
use crate::cluster::{Cluster, RegionState, TableState};
use crate::host::Observer;
use crate::{ErrorKind, MasterError, Result, meta};
use model::{RegionInfo, TableDescriptor, TableName};
use parking_lot::RwLock;
use std::sync::Arc;

/// The tables.
pub(crate) struct Tables {
    pub cluster: Arc<RwLock<Cluster>>,
    pub catalog: Arc<Catalog>,
    pub observer: Arc<dyn Observer>,
}

impl Tables {
    /// # Errors
    /// There is no such table.
    pub fn existing(&self, table: &TableName) -> Result<(Arc<TableDescriptor>, TableState)> {
        let cluster = self.cluster.read();
        match (cluster.descriptor(table), cluster.state(table)) {
            (Some(descriptor), Some(state)) => Ok((descriptor, state)),
            _ => Err(MasterError::table_not_found(table)),
        }
    }

    /// Tells whether there is a table, before anything that costs more.
    ///
    /// # Errors
    /// There is no such table.
    pub fn must_exist(&self, table: &TableName) -> Result<Arc<TableDescriptor>> {
        self.existing(table).map(|(descriptor, _)| descriptor)
    }

    /// # Errors
    /// There is no such table, or it is not disabled.
    pub fn must_be_disabled(&self, table: &TableName) -> Result<Arc<TableDescriptor>> {
        let (descriptor, state) = self.existing(table)?;
        if state != TableState::Disabled {
            return Err(MasterError::new(ErrorKind::TableNotDisabled, table));
        }
        Ok(descriptor)
    }

    /// The regions of a table that serve or should, in key order.
    pub fn live_regions(&self, table: &TableName) -> Vec<RegionInfo> {
        let cluster = self.cluster.read();
        cluster.regions_of(table).filter(|node| node.is_live()).map(|node| node.info.clone()).collect()
    }

    /// Those of them that are not open.
    pub fn closed_regions(&self, table: &TableName) -> Vec<RegionInfo> {
        let cluster = self.cluster.read();
        let closed = cluster.regions_of(table).filter(|node| node.is_live() && node.state != RegionState::Open);
        closed.map(|node| node.info.clone()).collect()
    }

    /// Every region of a table.
    pub fn all_regions(&self, table: &TableName) -> Vec<RegionInfo> {
        self.cluster.read().regions_of(table).map(|node| node.info.clone()).collect()
    }

    /// Writes a table's state to hbase:meta, then shows it.
    ///
    /// # Errors
    /// hbase:meta cannot be written.
    pub async fn set_state(&self, table: &TableName, state: TableState) -> Result<()> {
        self.catalog.write(vec![meta::put_table_state(table, state, self.catalog.stamp())]).await?;
        self.cluster.write().set_state(table, state);
        self.observer.table_state(table, Some(state));
        Ok(())
    }
}
