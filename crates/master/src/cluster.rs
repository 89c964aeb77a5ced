//! What the master holds in memory: tables, regions, namespaces. A picture of hbase:meta, hbase:namespace and the
//! descriptor files, changed only after they have changed.

use base::TimestampMs;
use bytes::Bytes;
use model::{RegionInfo, ServerName, TableDescriptor, TableName};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// A namespace's configuration.
pub type NamespaceConfiguration = BTreeMap<String, String>;

/// State of a region, as hbase:meta has it.
pub use proto::pb::region_state::State as RegionState;
/// State of a table, as hbase:meta has it.
pub use proto::pb::table_state::State as TableState;

/// A region as the master knows it.
#[derive(Clone, Debug)]
pub struct RegionNode {
    /// The region; a split parent has `offline` and `split` set.
    pub info: RegionInfo,
    /// Where it stands.
    pub state: RegionState,
    /// The server that was asked last to open it, until it has closed it.
    pub location: Option<ServerName>,
    /// That server has said that it closed it, and was not asked to open it since.
    pub is_let_go: bool,
    /// Since when.
    pub since: TimestampMs,
    /// The sequence id that it last opened at; `None` before it was ever open.
    pub open_seq_id: Option<u64>,
    /// Of a split parent.
    pub daughters: Vec<RegionInfo>,
    /// Of a merged child, while its parents' files are still referred to.
    pub merge_parents: Vec<RegionInfo>,
}

impl RegionNode {
    /// A region that is known and not open.
    pub fn new(info: RegionInfo, state: RegionState, since: TimestampMs) -> RegionNode {
        RegionNode {
            info,
            state,
            location: None,
            is_let_go: false,
            since,
            open_seq_id: None,
            daughters: Vec::new(),
            merge_parents: Vec::new(),
        }
    }

    /// The server that may have it open, or have it open before long: nobody else is to open it before that has said that it does not, or is dead.
    pub fn holder(&self) -> Option<&ServerName> {
        let is_closed = matches!(self.state, RegionState::Closed | RegionState::Offline | RegionState::FailedOpen);
        self.location.as_ref().filter(|_| !self.is_let_go && !is_closed)
    }

    /// Whether the region is one to serve: not a parent that was split or merged away.
    pub fn is_live(&self) -> bool {
        !self.info.offline && !self.info.split && !matches!(self.state, RegionState::Split | RegionState::Merged)
    }
}

/// Regions of one table in key order.
type RegionKey = (Bytes, u64, Arc<str>);

#[derive(Clone, Debug)]
struct Table {
    descriptor: Arc<TableDescriptor>,
    state: TableState,
}

/// Numbers of a table's regions by state.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RegionCounts {
    /// Serving.
    pub open: u32,
    /// Parents that were split and not yet cleaned away.
    pub split: u32,
    /// Closed.
    pub closed: u32,
    /// Neither.
    pub in_transition: u32,
}

/// The picture.
#[derive(Debug, Default)]
pub struct Cluster {
    tables: BTreeMap<TableName, Table>,
    regions: BTreeMap<Arc<str>, RegionNode>,
    by_table: BTreeMap<TableName, BTreeSet<RegionKey>>,
    /// Encoded names of the regions that are located on a server.
    by_server: BTreeMap<ServerName, BTreeSet<Arc<str>>>,
    namespaces: BTreeMap<String, NamespaceConfiguration>,
}

fn key_of(info: &RegionInfo) -> RegionKey {
    (info.start_key.clone(), info.region_id, Arc::clone(info.encoded_name()))
}

impl Cluster {
    /// A table's descriptor.
    pub fn descriptor(&self, table: &TableName) -> Option<Arc<TableDescriptor>> {
        self.tables.get(table).map(|table| Arc::clone(&table.descriptor))
    }

    /// A table's state.
    pub fn state(&self, table: &TableName) -> Option<TableState> {
        self.tables.get(table).map(|table| table.state)
    }

    /// Whether the table is there.
    pub fn exists(&self, table: &TableName) -> bool {
        self.tables.contains_key(table)
    }

    /// Adds a table, or replaces what is known of it.
    pub fn put_table(&mut self, descriptor: Arc<TableDescriptor>, state: TableState) {
        self.tables.insert(descriptor.name.clone(), Table { descriptor, state });
    }

    /// The table has another descriptor.
    pub fn set_descriptor(&mut self, descriptor: Arc<TableDescriptor>) {
        if let Some(table) = self.tables.get_mut(&descriptor.name) {
            table.descriptor = descriptor;
        }
    }

    /// The table has another state.
    pub fn set_state(&mut self, table: &TableName, state: TableState) {
        if let Some(table) = self.tables.get_mut(table) {
            table.state = state;
        }
    }

    /// The table is gone, with its regions.
    pub fn remove_table(&mut self, table: &TableName) {
        self.tables.remove(table);
        for (_, _, encoded) in self.by_table.remove(table).unwrap_or_default() {
            if let Some(node) = self.regions.remove(&encoded) {
                self.take_off_server(&encoded, node.location.as_ref());
            }
        }
    }

    /// Every table in name order.
    pub fn tables(&self) -> impl Iterator<Item = (&Arc<TableDescriptor>, TableState)> {
        self.tables.values().map(|table| (&table.descriptor, table.state))
    }

    /// A region by its encoded name.
    pub fn region(&self, encoded_name: &str) -> Option<&RegionNode> {
        self.regions.get(encoded_name)
    }

    /// Adds a region, or replaces what is known of it.
    pub fn put_region(&mut self, node: RegionNode) {
        self.by_table.entry(node.info.table.clone()).or_default().insert(key_of(&node.info));
        let name = Arc::clone(node.info.encoded_name());
        let location = node.location.clone();
        let before = self.regions.insert(Arc::clone(&name), node).and_then(|node| node.location);
        self.relocate(&name, before, location);
    }

    /// Changes a region.
    pub fn change_region(&mut self, encoded_name: &str, change: impl FnOnce(&mut RegionNode)) {
        let Some(node) = self.regions.get_mut(encoded_name) else { return };
        let before = node.location.clone();
        change(node);
        let (name, after) = (Arc::clone(node.info.encoded_name()), node.location.clone());
        self.relocate(&name, before, after);
    }

    fn relocate(&mut self, name: &Arc<str>, before: Option<ServerName>, after: Option<ServerName>) {
        if before == after {
            return;
        }
        self.take_off_server(name, before.as_ref());
        if let Some(server) = after {
            self.by_server.entry(server).or_default().insert(Arc::clone(name));
        }
    }

    fn take_off_server(&mut self, name: &Arc<str>, server: Option<&ServerName>) {
        let Some(server) = server else { return };
        if let Some(regions) = self.by_server.get_mut(server) {
            regions.remove(name);
            if regions.is_empty() {
                self.by_server.remove(server);
            }
        }
    }

    /// Number of the regions that are located on a server.
    pub fn regions_on(&self, server: &ServerName) -> usize {
        self.by_server.get(server).map_or(0, BTreeSet::len)
    }

    /// The region is gone, with its read replicas.
    pub fn remove_region(&mut self, info: &RegionInfo) {
        if !info.is_replica() {
            let replicas: Vec<RegionInfo> = self.replicas_of(info).map(|node| node.info.clone()).collect();
            replicas.iter().for_each(|replica| self.remove_region(replica));
        }
        if let Some(node) = self.regions.remove(&**info.encoded_name()) {
            self.take_off_server(info.encoded_name(), node.location.as_ref());
        }
        if let Some(regions) = self.by_table.get_mut(&info.table) {
            regions.remove(&key_of(info));
            if regions.is_empty() {
                self.by_table.remove(&info.table);
            }
        }
    }

    /// A table's regions in key order, parents included; without read replicas.
    pub fn regions_of<'a>(&'a self, table: &TableName) -> impl Iterator<Item = &'a RegionNode> + use<'a> {
        let keys = self.by_table.get(table).into_iter().flatten();
        keys.filter_map(|(_, _, encoded)| self.regions.get(encoded)).filter(|node| !node.info.is_replica())
    }

    /// A table's regions in key order, each with its read replicas.
    pub fn with_replicas_of<'a>(&'a self, table: &TableName) -> impl Iterator<Item = &'a RegionNode> + use<'a> {
        let keys = self.by_table.get(table).into_iter().flatten();
        keys.filter_map(|(_, _, encoded)| self.regions.get(encoded))
    }

    /// Every region but read replicas.
    pub fn regions(&self) -> impl Iterator<Item = &RegionNode> {
        self.regions.values().filter(|node| !node.info.is_replica())
    }

    /// Every region, and every read replica.
    pub fn with_replicas(&self) -> impl Iterator<Item = &RegionNode> {
        self.regions.values()
    }

    /// The read replicas of a region that are known.
    pub fn replicas_of<'a>(&'a self, primary: &RegionInfo) -> impl Iterator<Item = &'a RegionNode> + use<'a> {
        let from: RegionKey = (primary.start_key.clone(), primary.region_id, Arc::from(""));
        let (start_key, region_id) = (primary.start_key.clone(), primary.region_id);
        let keys = self.by_table.get(&primary.table).into_iter().flat_map(move |keys| keys.range(from.clone()..));
        keys.take_while(move |(start, id, _)| *start == start_key && *id == region_id)
            .filter_map(|(_, _, encoded)| self.regions.get(encoded))
            .filter(|node| node.info.is_replica())
    }

    /// Numbers of a table's regions by state.
    pub fn region_counts(&self, table: &TableName) -> RegionCounts {
        let mut counts = RegionCounts::default();
        for node in self.regions_of(table) {
            match node.state {
                RegionState::Open => counts.open += 1,
                RegionState::Split => counts.split += 1,
                RegionState::Closed => counts.closed += 1,
                _ => counts.in_transition += 1,
            }
        }
        counts
    }

    /// A namespace's configuration.
    pub fn namespace(&self, name: &str) -> Option<&NamespaceConfiguration> {
        self.namespaces.get(name)
    }

    /// Every namespace in name order.
    pub fn namespaces(&self) -> impl Iterator<Item = (&str, &NamespaceConfiguration)> {
        self.namespaces.iter().map(|(name, configuration)| (name.as_str(), configuration))
    }

    /// Adds or changes a namespace.
    pub fn put_namespace(&mut self, name: String, configuration: NamespaceConfiguration) {
        self.namespaces.insert(name, configuration);
    }

    /// The namespace is gone.
    pub fn remove_namespace(&mut self, name: &str) {
        self.namespaces.remove(name);
    }
}
