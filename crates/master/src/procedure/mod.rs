//! Procedures: work of several steps that goes on where it was after a crash.
//!
//! Always true:
//!  1. A procedure is on disk, with all that it decided (region ids, descriptors), before its first step.
//!  2. Every step may be repeated: after a crash the whole procedure runs again and skips, by looking, what is done.
//!     Steps that could not be repeated are avoided; the one point of no return (a split's or merge's write to
//!     hbase:meta) is a single atomic write that a look at hbase:meta recognises.
//!  3. A procedure holds its locks from before its first look until its outcome is on disk.
//!  4. Ids only grow, over restarts too.
//!
//! Records are HBase's `Procedure` messages with its class names and state messages. Follows: `procedure2`,
//! `master.procedure`.

mod ddl;
mod engine;
mod journal;
mod namespace;
mod regions;

pub use ddl::Caller;
pub use engine::{Outcome, Procedures};
pub(crate) use engine::{Record, Submission};
pub(crate) use journal::Journal;
pub use journal::JournalError;

/// Reads a record of a procedure, as at a start; for fuzzers. Answers what the record is written as again.
///
/// # Errors
/// The bytes are no record.
#[cfg(feature = "fuzzing")]
pub fn read_record(bytes: &Bytes) -> Result<Bytes> {
    let message = proto::magic::decode::<pb::Procedure>(bytes).ok_or_else(|| strange("no magic"))?.map_err(strange)?;
    Ok(proto::magic::encode(&Record::from_message(&message)?.to_message()))
}

use crate::cluster::NamespaceConfiguration;
use crate::locks::{Mode, Resource};
use crate::{ErrorKind, MasterError, Result};
use bytes::Bytes;
use convert::{from_proto, to_proto};
use model::{RegionInfo, TableDescriptor, TableName};
use proto::{Any, Message, pb};
use std::sync::Arc;

/// What a procedure is to do.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Work {
    CreateTable { table: Arc<TableDescriptor>, regions: Vec<RegionInfo> },
    DeleteTable { table: TableName, regions: Vec<RegionInfo> },
    TruncateTable { table: Arc<TableDescriptor>, preserve_splits: bool, old: Vec<RegionInfo>, new: Vec<RegionInfo> },
    EnableTable { table: TableName },
    DisableTable { table: TableName },
    ModifyTable { old: Arc<TableDescriptor>, new: Arc<TableDescriptor>, reopen: bool },
    CreateNamespace { name: String, configuration: NamespaceConfiguration },
    ModifyNamespace { name: String, configuration: NamespaceConfiguration },
    DeleteNamespace { name: String },
    SplitRegion { parent: RegionInfo, daughters: Box<[RegionInfo; 2]> },
    MergeRegions { parents: Vec<RegionInfo>, child: RegionInfo },
    FlushTable { table: TableName, families: Vec<Bytes> },
}

impl Work {
    /// HBase's class.
    pub fn class_name(&self) -> &'static str {
        macro_rules! class {
            ($name:literal) => {
                concat!("org.apache.hadoop.hbase.master.", $name)
            };
        }
        match self {
            Work::CreateTable { .. } => class!("procedure.CreateTableProcedure"),
            Work::DeleteTable { .. } => class!("procedure.DeleteTableProcedure"),
            Work::TruncateTable { .. } => class!("procedure.TruncateTableProcedure"),
            Work::EnableTable { .. } => class!("procedure.EnableTableProcedure"),
            Work::DisableTable { .. } => class!("procedure.DisableTableProcedure"),
            Work::ModifyTable { .. } => class!("procedure.ModifyTableProcedure"),
            Work::CreateNamespace { .. } => class!("procedure.CreateNamespaceProcedure"),
            Work::ModifyNamespace { .. } => class!("procedure.ModifyNamespaceProcedure"),
            Work::DeleteNamespace { .. } => class!("procedure.DeleteNamespaceProcedure"),
            Work::SplitRegion { .. } => class!("assignment.SplitTableRegionProcedure"),
            Work::MergeRegions { .. } => class!("assignment.MergeTableRegionsProcedure"),
            Work::FlushTable { .. } => class!("procedure.FlushTableProcedure"),
        }
    }

    /// Whether the work is one of regions that serve, so that it can go on only after they were opened.
    pub fn needs_open_regions(&self) -> bool {
        matches!(self, Work::SplitRegion { .. } | Work::MergeRegions { .. } | Work::FlushTable { .. })
    }

    /// What must be held while it runs.
    pub fn locks(&self) -> Vec<(Resource, Mode)> {
        match self {
            Work::CreateTable { table, .. } | Work::TruncateTable { table, .. } => table_locks(&table.name),
            Work::ModifyTable { new, .. } => table_locks(&new.name),
            Work::DeleteTable { table, .. } | Work::EnableTable { table } | Work::DisableTable { table } => {
                table_locks(table)
            }
            Work::CreateNamespace { name, .. }
            | Work::ModifyNamespace { name, .. }
            | Work::DeleteNamespace { name } => namespace_locks(name),
            Work::SplitRegion { parent, .. } => region_locks(std::slice::from_ref(parent)),
            Work::MergeRegions { parents, .. } => region_locks(parents),
            Work::FlushTable { table, .. } => vec![(Resource::Table(table.clone()), Mode::Shared)],
        }
    }

    fn state_data(&self) -> Any {
        let user_info = pb::UserInformation::default();
        let infos = |regions: &[RegionInfo]| regions.iter().map(to_proto::region_info).collect::<Vec<_>>();
        let name = to_proto::table_name;
        match self {
            Work::CreateTable { table, regions } => any(
                "CreateTableStateData",
                &pb::CreateTableStateData {
                    user_info,
                    table_schema: to_proto::table(table),
                    region_info: infos(regions),
                },
            ),
            Work::DeleteTable { table, regions } => any(
                "DeleteTableStateData",
                &pb::DeleteTableStateData {
                    user_info,
                    table_name: name(table),
                    region_info: infos(regions),
                    ..Default::default()
                },
            ),
            // HBase keeps one list of regions, the old or the new by its step; ours keeps both, the old ones first.
            Work::TruncateTable { table, preserve_splits, old, new } => any(
                "TruncateTableStateData",
                &pb::TruncateTableStateData {
                    user_info,
                    preserve_splits: *preserve_splits,
                    table_name: Some(name(&table.name)),
                    table_schema: Some(to_proto::table(table)),
                    region_info: infos(&[old.as_slice(), new].concat()),
                    snapshot_name: Some(old.len().to_string()),
                },
            ),
            Work::EnableTable { table } => any(
                "EnableTableStateData",
                &pb::EnableTableStateData { user_info, table_name: name(table), ..Default::default() },
            ),
            Work::DisableTable { table } => any(
                "DisableTableStateData",
                &pb::DisableTableStateData { user_info, table_name: name(table), skip_table_state_check: false },
            ),
            Work::ModifyTable { old, new, reopen } => any(
                "ModifyTableStateData",
                &pb::ModifyTableStateData {
                    user_info,
                    unmodified_table_schema: Some(to_proto::table(old)),
                    modified_table_schema: to_proto::table(new),
                    delete_column_family_in_modify: old.families.keys().any(|f| !new.families.contains_key(f)),
                    reopen_regions: Some(*reopen),
                    ..Default::default()
                },
            ),
            Work::CreateNamespace { name, configuration } => any(
                "CreateNamespaceStateData",
                &pb::CreateNamespaceStateData { namespace_descriptor: to_proto::namespace(name, configuration) },
            ),
            Work::ModifyNamespace { name, configuration } => any(
                "ModifyNamespaceStateData",
                &pb::ModifyNamespaceStateData {
                    namespace_descriptor: to_proto::namespace(name, configuration),
                    unmodified_namespace_descriptor: None,
                },
            ),
            Work::DeleteNamespace { name } => any(
                "DeleteNamespaceStateData",
                &pb::DeleteNamespaceStateData { namespace_name: name.clone(), namespace_descriptor: None },
            ),
            Work::SplitRegion { parent, daughters } => any(
                "SplitTableRegionStateData",
                &pb::SplitTableRegionStateData {
                    user_info,
                    parent_region_info: to_proto::region_info(parent),
                    child_region_info: infos(&**daughters),
                },
            ),
            Work::MergeRegions { parents, child } => any(
                "MergeTableRegionsStateData",
                &pb::MergeTableRegionsStateData {
                    user_info,
                    region_info: infos(parents),
                    merged_region_info: Some(to_proto::region_info(child)),
                    forcible: Some(false),
                },
            ),
            Work::FlushTable { table, families } => any(
                "FlushTableProcedureStateData",
                &pb::FlushTableProcedureStateData { table_name: name(table), column_family: families.clone() },
            ),
        }
    }

    fn from_state_data(data: &Any) -> Result<Work> {
        let infos = |messages: &[pb::RegionInfo]| -> Result<Vec<RegionInfo>> {
            messages.iter().map(|message| Ok(from_proto::region_info(message)?)).collect()
        };
        let name = from_proto::table_name;
        let short = data.type_url.rsplit(['/', '.']).next().unwrap_or_default();
        Ok(match short {
            "CreateTableStateData" => {
                let state: pb::CreateTableStateData = unpack(data)?;
                let table = Arc::new(from_proto::table(&state.table_schema)?);
                Work::CreateTable { table, regions: infos(&state.region_info)? }
            }
            "DeleteTableStateData" => {
                let state: pb::DeleteTableStateData = unpack(data)?;
                Work::DeleteTable { table: name(&state.table_name)?, regions: infos(&state.region_info)? }
            }
            "TruncateTableStateData" => {
                let state: pb::TruncateTableStateData = unpack(data)?;
                let schema = state.table_schema.as_ref().ok_or_else(|| strange("no table"))?;
                let mut old = infos(&state.region_info)?;
                let old_len = state.snapshot_name.as_deref().and_then(|n| n.parse().ok()).unwrap_or(0);
                if old_len > old.len() {
                    return Err(strange("fewer regions than it says"));
                }
                let new = old.split_off(old_len);
                let table = Arc::new(from_proto::table(schema)?);
                Work::TruncateTable { table, preserve_splits: state.preserve_splits, old, new }
            }
            "EnableTableStateData" => {
                Work::EnableTable { table: name(&unpack::<pb::EnableTableStateData>(data)?.table_name)? }
            }
            "DisableTableStateData" => {
                Work::DisableTable { table: name(&unpack::<pb::DisableTableStateData>(data)?.table_name)? }
            }
            "ModifyTableStateData" => {
                let state: pb::ModifyTableStateData = unpack(data)?;
                let old = state.unmodified_table_schema.as_ref().ok_or_else(|| strange("no former table"))?;
                Work::ModifyTable {
                    old: Arc::new(from_proto::table(old)?),
                    new: Arc::new(from_proto::table(&state.modified_table_schema)?),
                    reopen: state.reopen_regions.unwrap_or(true),
                }
            }
            "CreateNamespaceStateData" => {
                let state: pb::CreateNamespaceStateData = unpack(data)?;
                let (name, configuration) = from_proto::namespace(&state.namespace_descriptor)?;
                Work::CreateNamespace { name, configuration }
            }
            "ModifyNamespaceStateData" => {
                let state: pb::ModifyNamespaceStateData = unpack(data)?;
                let (name, configuration) = from_proto::namespace(&state.namespace_descriptor)?;
                Work::ModifyNamespace { name, configuration }
            }
            "DeleteNamespaceStateData" => {
                Work::DeleteNamespace { name: unpack::<pb::DeleteNamespaceStateData>(data)?.namespace_name }
            }
            "SplitTableRegionStateData" => {
                let state: pb::SplitTableRegionStateData = unpack(data)?;
                let daughters = infos(&state.child_region_info)?;
                let daughters: [RegionInfo; 2] = daughters.try_into().map_err(|_| strange("not two daughters"))?;
                let parent = from_proto::region_info(&state.parent_region_info)?;
                Work::SplitRegion { parent, daughters: Box::new(daughters) }
            }
            "MergeTableRegionsStateData" => {
                let state: pb::MergeTableRegionsStateData = unpack(data)?;
                let child = state.merged_region_info.as_ref().ok_or_else(|| strange("no merged region"))?;
                Work::MergeRegions { parents: infos(&state.region_info)?, child: from_proto::region_info(child)? }
            }
            "FlushTableProcedureStateData" => {
                let state: pb::FlushTableProcedureStateData = unpack(data)?;
                Work::FlushTable { table: name(&state.table_name)?, families: state.column_family }
            }
            other => return Err(strange(format!("state of unknown kind {other:?}"))),
        })
    }
}

/// What DDL of a table holds.
pub(crate) fn table_locks(table: &TableName) -> Vec<(Resource, Mode)> {
    vec![
        (Resource::Namespace(table.namespace().to_owned()), Mode::Shared),
        (Resource::Table(table.clone()), Mode::Exclusive),
    ]
}

/// What DDL of a namespace holds.
pub(crate) fn namespace_locks(name: &str) -> Vec<(Resource, Mode)> {
    vec![(Resource::Namespace(name.to_owned()), Mode::Exclusive)]
}

/// What work on single regions holds.
pub(crate) fn region_locks(regions: &[RegionInfo]) -> Vec<(Resource, Mode)> {
    let table = |info: &RegionInfo| (Resource::Table(info.table.clone()), Mode::Shared);
    let region = |info: &RegionInfo| (Resource::Region(Arc::clone(info.encoded_name())), Mode::Exclusive);
    regions.iter().flat_map(|info| [table(info), region(info)]).collect()
}

fn any(name: &str, message: &impl Message) -> Any {
    Any { type_url: format!("type.googleapis.com/hbase.pb.{name}"), value: Bytes::from(message.encode_to_vec()) }
}

fn unpack<M: Message + Default>(data: &Any) -> Result<M> {
    M::decode(data.value.clone()).map_err(strange)
}

fn strange(what: impl std::fmt::Display) -> MasterError {
    MasterError::new(ErrorKind::Io, format!("the record of a procedure is damaged: {what}"))
}
