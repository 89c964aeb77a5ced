//! Rows of hbase:meta and hbase:namespace: what is written and how it is read back.
//!
//! ```text
//! <region name>   info:regioninfo info:server info:serverstartcode info:seqnumDuringOpen info:state info:sn
//!                 info:splitA info:splitB (split parent)   info:mergeNNNN (merged child)
//!                 info:server_NNNN info:state_NNNN and so on (read replica NNNN, in hexadecimal)
//! <table name>    table:state
//! <namespace>     info:d          (in hbase:namespace)
//! ```
//!
//! Follows: `MetaTableAccessor`, `CatalogFamilyFormat`, `RegionStateStore`, `TableStateManager`.

use crate::cluster::NamespaceConfiguration;
use crate::cluster::{RegionState, TableState};
use base::{SeqId, TimestampMs};
use bytes::Bytes;
use cell::{CellBlock, CellBuffer, CellRef, CellSpec, CellType};
use convert::{from_proto, to_proto};
use filter::{Comparator, CompareOp, Filter, SingleColumnValue};
use model::{Mutation, MutationKind, RegionInfo, Scan, ServerName, TableName};
use proto::{Message, magic, pb};
use std::collections::BTreeSet;
use std::sync::Arc;

const INFO: &[u8] = b"info";
const TABLE: &[u8] = b"table";
const REGION_INFO: &[u8] = b"regioninfo";
const SERVER: &[u8] = b"server";
const START_CODE: &[u8] = b"serverstartcode";
const OPEN_SEQ: &[u8] = b"seqnumDuringOpen";
const STATE: &[u8] = b"state";
const TARGET_SERVER: &[u8] = b"sn";
const SPLIT_A: &[u8] = b"splitA";
const SPLIT_B: &[u8] = b"splitB";
const MERGE_PREFIX: &[u8] = b"merge";
const NAMESPACE_COLUMN: &[u8] = b"d";

/// A Put being made: cells of one row, one timestamp.
struct RowPut {
    row: Bytes,
    timestamp: i64,
    cells: CellBuffer,
}

impl RowPut {
    fn new(row: &Bytes, stamp: TimestampMs) -> RowPut {
        RowPut { row: row.clone(), timestamp: stamp.0, cells: CellBuffer::new() }
    }

    fn add(&mut self, type_: CellType, family: &[u8], qualifier: &[u8], value: &[u8]) {
        let spec = CellSpec {
            row: &self.row,
            family,
            qualifier,
            timestamp: self.timestamp,
            type_code: type_.code(),
            value,
            tags: &[],
        };
        self.cells.push_spec(&spec, SeqId(0));
    }

    fn put(mut self, family: &[u8], qualifier: &[u8], value: &[u8]) -> Self {
        self.add(CellType::Put, family, qualifier, value);
        self
    }

    fn finish(self, kind: MutationKind) -> Mutation {
        Mutation::new(kind, self.row.clone(), CellBlock::from(self))
    }
}

impl From<RowPut> for CellBlock {
    fn from(row: RowPut) -> CellBlock {
        row.cells.into_block()
    }
}

fn region_info_value(info: &RegionInfo) -> Bytes {
    magic::encode(&to_proto::region_info(info))
}

/// The column of a region's row that says this of the region, or of its read replica. Follows: `CatalogFamilyFormat#getServerColumn`.
fn column_of(info: &RegionInfo, qualifier: &[u8]) -> Vec<u8> {
    let mut column = qualifier.to_vec();
    if info.is_replica() {
        column.extend_from_slice(format!("_{:04X}", info.replica_id).as_bytes());
    }
    column
}

/// A region's state is in its row, and so is that of its read replicas.
fn region_put(info: &RegionInfo, state: RegionState, stamp: TimestampMs) -> RowPut {
    let primary = info.replica(0);
    let row = RowPut::new(primary.name(), stamp);
    // What else is known of the region is said with the region itself.
    let row = if info.is_replica() { row } else { row.put(INFO, REGION_INFO, &region_info_value(info)) };
    row.put(INFO, &column_of(info, STATE), state.as_str_name().as_bytes())
}

/// A region in a state, not (or no longer) open anywhere.
pub fn put_region(info: &RegionInfo, state: RegionState, stamp: TimestampMs) -> Mutation {
    region_put(info, state, stamp).finish(MutationKind::Put)
}

/// A region that is open on `server`.
pub fn put_open_region(info: &RegionInfo, server: &ServerName, open_seq_id: u64, stamp: TimestampMs) -> Mutation {
    region_put(info, RegionState::Open, stamp)
        .put(INFO, &column_of(info, SERVER), server.address().as_bytes())
        .put(INFO, &column_of(info, START_CODE), &server.start_code.to_be_bytes())
        .put(INFO, &column_of(info, OPEN_SEQ), &open_seq_id.to_be_bytes())
        .put(INFO, &column_of(info, TARGET_SERVER), server.to_string().as_bytes())
        .finish(MutationKind::Put)
}

/// A region that `server` is being asked to open.
pub fn put_opening_region(info: &RegionInfo, server: &ServerName, stamp: TimestampMs) -> Mutation {
    region_put(info, RegionState::Opening, stamp)
        .put(INFO, &column_of(info, TARGET_SERVER), server.to_string().as_bytes())
        .finish(MutationKind::Put)
}

/// A region that its server is being asked to close. Where it is stays in its row.
pub fn put_closing_region(info: &RegionInfo, stamp: TimestampMs) -> Mutation {
    region_put(info, RegionState::Closing, stamp).finish(MutationKind::Put)
}

/// A read replica is no more: its columns go from the region's row. Follows: `RegionStateStore#removeRegionReplicas`.
pub fn delete_replica(info: &RegionInfo, stamp: TimestampMs) -> Mutation {
    let mut row = RowPut::new(info.replica(0).name(), stamp);
    for column in [SERVER, OPEN_SEQ, START_CODE, TARGET_SERVER, STATE] {
        row.add(CellType::DeleteColumn, INFO, &column_of(info, column), &[]);
    }
    row.finish(MutationKind::Delete)
}

/// A region that was split: offline, with its daughters named.
pub fn put_split_parent(parent: &RegionInfo, daughters: &[RegionInfo; 2], stamp: TimestampMs) -> Mutation {
    let mut parent = parent.clone();
    (parent.offline, parent.split) = (true, true);
    region_put(&parent, RegionState::Split, stamp)
        .put(INFO, SPLIT_A, &region_info_value(&daughters[0]))
        .put(INFO, SPLIT_B, &region_info_value(&daughters[1]))
        .finish(MutationKind::Put)
}

/// A daughter that is still to be opened.
pub fn put_daughter(info: &RegionInfo, stamp: TimestampMs) -> Mutation {
    region_put(info, RegionState::Closed, stamp).put(INFO, OPEN_SEQ, &1u64.to_be_bytes()).finish(MutationKind::Put)
}

/// A region made of others, which are named as long as their files are referred to.
pub fn put_merged(child: &RegionInfo, parents: &[RegionInfo], stamp: TimestampMs) -> Mutation {
    let mut put = region_put(child, RegionState::Closed, stamp).put(INFO, OPEN_SEQ, &1u64.to_be_bytes());
    for (number, parent) in parents.iter().enumerate() {
        put = put.put(INFO, format!("merge{number:04}").as_bytes(), &region_info_value(parent));
    }
    put.finish(MutationKind::Put)
}

/// The merged child's parents are gone.
pub fn delete_merge_columns(child: &RegionInfo, count: usize, stamp: TimestampMs) -> Mutation {
    let mut row = RowPut::new(child.name(), stamp);
    for number in 0..count {
        row.add(CellType::DeleteColumn, INFO, format!("merge{number:04}").as_bytes(), &[]);
    }
    row.finish(MutationKind::Delete)
}

/// The region's row goes.
pub fn delete_region(info: &RegionInfo, stamp: TimestampMs) -> Mutation {
    let mut row = RowPut::new(info.name(), stamp);
    row.add(CellType::DeleteFamily, INFO, &[], &[]);
    row.finish(MutationKind::Delete)
}

fn name_row(name: &str) -> Bytes {
    Bytes::copy_from_slice(name.as_bytes())
}

/// A table's state.
pub fn put_table_state(table: &TableName, state: TableState, stamp: TimestampMs) -> Mutation {
    let value = pb::TableState { state: state as i32 }.encode_to_vec();
    RowPut::new(&name_row(table.as_str()), stamp).put(TABLE, STATE, &value).finish(MutationKind::Put)
}

/// The table is gone.
pub fn delete_table_state(table: &TableName, stamp: TimestampMs) -> Mutation {
    let row = name_row(table.as_str());
    let mut delete = RowPut::new(&row, stamp);
    delete.add(CellType::DeleteFamily, TABLE, &[], &[]);
    delete.finish(MutationKind::Delete)
}

/// A namespace's row in hbase:namespace.
pub fn put_namespace(name: &str, configuration: &NamespaceConfiguration, stamp: TimestampMs) -> Mutation {
    let value = to_proto::namespace(name, configuration).encode_to_vec();
    RowPut::new(&name_row(name), stamp).put(INFO, NAMESPACE_COLUMN, &value).finish(MutationKind::Put)
}

/// The namespace is gone.
pub fn delete_namespace(name: &str, stamp: TimestampMs) -> Mutation {
    let row = name_row(name);
    let mut delete = RowPut::new(&row, stamp);
    delete.add(CellType::DeleteFamily, INFO, &[], &[]);
    delete.finish(MutationKind::Delete)
}

/// Everything, newest versions.
pub fn whole_scan() -> Scan {
    Scan { cache_blocks: true, ..Scan::default() }
}

/// Those rows of regions whose `info:regioninfo` is missing or is no message.
pub fn empty_region_info_scan() -> Scan {
    let is_no_message = SingleColumnValue {
        family: Some(Bytes::from_static(INFO)),
        qualifier: Some(Bytes::from_static(REGION_INFO)),
        op: CompareOp::NotEqual,
        comparator: Comparator::BinaryPrefix { value: Bytes::from_static(magic::MAGIC) },
        filter_if_missing: false,
        latest_version_only: true,
    };
    let filter = Some(Arc::new(Filter::SingleColumnValue(is_no_message)));
    Scan { columns: [(Bytes::from_static(INFO), Vec::new())].into(), filter, ..whole_scan() }
}

/// A region's row, read back.
#[derive(Clone, Debug, PartialEq)]
pub struct RegionRow {
    /// The region.
    pub info: RegionInfo,
    /// Its state; `None` when the row has none (rows of HBase before 2.0).
    pub state: Option<RegionState>,
    /// Where it last opened: sequence id.
    pub open_seq_id: Option<u64>,
    /// The server that has it, or is to open or close it; `None` where it is closed.
    pub location: Option<ServerName>,
    /// Daughters of a split parent.
    pub daughters: Vec<RegionInfo>,
    /// Parents of a merged child.
    pub merge_parents: Vec<RegionInfo>,
    /// Its read replicas that the row tells of.
    pub replicas: Vec<ReplicaRow>,
}

/// What a region's row says of one of its read replicas.
#[derive(Clone, Debug, PartialEq)]
pub struct ReplicaRow {
    /// The replica.
    pub info: RegionInfo,
    /// Its state.
    pub state: Option<RegionState>,
    /// Where it last opened: sequence id.
    pub open_seq_id: Option<u64>,
    /// The server that has it, or is to open or close it; `None` where it is closed.
    pub location: Option<ServerName>,
}

/// hbase:meta, read back.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct MetaContent {
    /// Regions in row order.
    pub regions: Vec<RegionRow>,
    /// Tables' states.
    pub tables: Vec<(TableName, TableState)>,
    /// The newest timestamp seen.
    pub newest_stamp: i64,
    /// Rows that could not be understood, printable.
    pub strange_rows: Vec<String>,
}

fn parse_region_info(value: &[u8]) -> Option<RegionInfo> {
    let message = magic::decode::<pb::RegionInfo>(&Bytes::copy_from_slice(value))?.ok()?;
    from_proto::region_info(&message).ok()
}

/// Runs of cells with the same row.
fn rows(cells: &CellBuffer) -> impl Iterator<Item = Vec<CellRef<'_>>> {
    let mut at = 0;
    std::iter::from_fn(move || {
        if at == cells.len() {
            return None;
        }
        let row = cells.get(at).row();
        let run: Vec<_> = cells.iter_from(at).take_while(|cell| cell.row() == row).collect();
        at += run.len();
        Some(run)
    })
}

fn parse_region_row(cells: &[CellRef<'_>]) -> Option<RegionRow> {
    let column = |qualifier: &[u8]| {
        cells.iter().find(|cell| cell.family() == INFO && cell.qualifier() == qualifier).map(|cell| cell.value())
    };
    let info = parse_region_info(column(REGION_INFO)?)?;
    let (state, open_seq_id) = (state_of(&info, cells), open_seq_id_of(&info, cells));
    let daughters = [SPLIT_A, SPLIT_B].into_iter().filter_map(column).filter_map(parse_region_info).collect();
    let merge_parents = cells
        .iter()
        .filter(|cell| cell.family() == INFO && cell.qualifier().starts_with(MERGE_PREFIX))
        .filter_map(|cell| parse_region_info(cell.value()))
        .collect();
    let location = location(&info, cells);
    let replicas = replicas(&info, cells);
    Some(RegionRow { info, state, open_seq_id, location, daughters, merge_parents, replicas })
}

/// The read replicas of which a region's row has a server or a state. Follows: `CatalogFamilyFormat#parseReplicaIdFromServerColumn`.
fn replicas(info: &RegionInfo, cells: &[CellRef<'_>]) -> Vec<ReplicaRow> {
    let id = |cell: &CellRef<'_>| {
        let qualifier = std::str::from_utf8(cell.qualifier()).ok()?;
        let id = qualifier.strip_prefix("server_").or_else(|| qualifier.strip_prefix("state_"))?;
        u32::from_str_radix(id, 16).ok().filter(|replica| id.len() == 4 && *replica > 0)
    };
    let ids: BTreeSet<u32> = cells.iter().filter(|cell| cell.family() == INFO).filter_map(id).collect();
    let row = |id| {
        let info = info.replica(id);
        let (state, open_seq_id) = (state_of(&info, cells), open_seq_id_of(&info, cells));
        ReplicaRow { state, open_seq_id, location: location(&info, cells), info }
    };
    ids.into_iter().map(row).collect()
}

/// What a row says of a region, or of its read replica.
fn value_of<'c>(info: &RegionInfo, cells: &[CellRef<'c>], qualifier: &[u8]) -> Option<&'c [u8]> {
    let column = column_of(info, qualifier);
    cells.iter().find(|cell| cell.family() == INFO && cell.qualifier() == column).map(|cell| cell.value())
}

fn state_of(info: &RegionInfo, cells: &[CellRef<'_>]) -> Option<RegionState> {
    value_of(info, cells, STATE).and_then(|name| RegionState::from_str_name(std::str::from_utf8(name).ok()?))
}

fn open_seq_id_of(info: &RegionInfo, cells: &[CellRef<'_>]) -> Option<u64> {
    value_of(info, cells, OPEN_SEQ).and_then(|value| value.try_into().ok()).map(u64::from_be_bytes)
}

fn parse_table_row(cells: &[CellRef<'_>]) -> Option<(TableName, TableState)> {
    let cell = cells.iter().find(|cell| cell.family() == TABLE && cell.qualifier() == STATE)?;
    let name = TableName::parse(std::str::from_utf8(cell.row()).ok()?).ok()?;
    let state = pb::TableState::decode(cell.value()).ok()?;
    Some((name, TableState::try_from(state.state).ok()?))
}

/// Reads the result of a [`whole_scan`] of hbase:meta.
pub fn parse_meta(cells: &CellBuffer) -> MetaContent {
    let mut content = MetaContent::default();
    for row in rows(cells) {
        let newest = row.iter().map(|cell| cell.timestamp()).max().unwrap_or(0);
        content.newest_stamp = content.newest_stamp.max(newest);
        if row.iter().any(|cell| cell.family() == TABLE)
            && let Some(table) = parse_table_row(&row)
        {
            content.tables.push(table);
        } else if let Some(region) = parse_region_row(&row) {
            content.regions.push(region);
        } else {
            content.strange_rows.push(cell::print::to_string_binary(row[0].row()));
        }
    }
    content
}

/// The servers on which a [`whole_scan`] of hbase:meta shows regions that are open, or on their way in or out.
pub fn servers(cells: &CellBuffer) -> BTreeSet<String> {
    let of_row = |row: Vec<CellRef<'_>>| -> Vec<ServerName> {
        // Of a region that cannot be read, too: its server has a log.
        let info = row.iter().find(|cell| cell.family() == INFO && cell.qualifier() == REGION_INFO);
        let info = info.and_then(|cell| parse_region_info(cell.value())).unwrap_or_else(RegionInfo::meta);
        let of_replicas = replicas(&info, &row).into_iter().filter_map(|replica| replica.location);
        location(&info.replica(0), &row).into_iter().chain(of_replicas).collect()
    };
    rows(cells).flat_map(of_row).map(|server| server.to_string()).collect()
}

/// The server on which a row shows its region, or a read replica, open, or on its way in or out.
fn location(info: &RegionInfo, row: &[CellRef<'_>]) -> Option<ServerName> {
    let column = |qualifier: &[u8]| value_of(info, row, qualifier).unwrap_or_default();
    if !matches!(column(STATE), b"OPEN" | b"OPENING" | b"CLOSING") {
        return None;
    }
    let target = std::str::from_utf8(column(TARGET_SERVER)).ok().and_then(|name| name.parse::<ServerName>().ok());
    let open_on = || {
        let (host, port) = std::str::from_utf8(column(SERVER)).ok()?.rsplit_once(':')?;
        let start_code = u64::from_be_bytes(column(START_CODE).try_into().ok()?);
        Some(ServerName::new(host, port.parse().ok()?, start_code))
    };
    target.or_else(open_on)
}

/// Reads the result of a [`whole_scan`] of hbase:namespace.
pub fn parse_namespaces(cells: &CellBuffer) -> Vec<(String, NamespaceConfiguration)> {
    let column = |cell: &CellRef<'_>| cell.family() == INFO && cell.qualifier() == NAMESPACE_COLUMN;
    cells
        .iter_from(0)
        .filter(column)
        .filter_map(|cell| pb::NamespaceDescriptor::decode(cell.value()).ok())
        .filter_map(|message| from_proto::namespace(&message).ok())
        .collect()
}
