//! Mutations and conditions, and the cells that travel beside them.

use std::sync::Arc;

use base::SeqId;
use cell::{CellBlock, CellBuffer, CellSpec, CellType};
use filter::Comparator;
use model::mutation::ConditionTest;
use model::{Condition, Durability, Mutation, MutationKind, Nonce, TimeRange};
use proto::pb;
use proto::pb::mutation_proto::{self as wire, DeleteType, MutationType};

use super::read::{attribute, check_row};
use super::{comparator, compare_op, filter, required, time_range, timestamp};
use crate::error::Result;
use crate::{ConvertError, ConvertErrorKind};

const TTL: &str = "_ttl";
const RETURN_RESULTS: &str = "_rr_";

/// The cells of a request, taken from the front by one mutation after the other.
///
/// They must be taken in the order of the request, also by mutations that fail: what one leaves is another's. Runs
/// share the request's bytes.
#[derive(Debug, Clone, Default)]
pub struct Cells(CellBlock);

impl Cells {
    /// The cells of a request, all of them to be taken.
    pub fn new(cells: CellBlock) -> Self {
        Self(cells)
    }

    /// The next `count` cells.
    ///
    /// # Errors
    /// There are not so many; then the rest is gone too.
    pub fn take(&mut self, count: usize) -> Result<CellBlock> {
        let Some((taken, rest)) = self.0.split(count) else {
            let left = std::mem::take(&mut self.0).len();
            let message = format!("Cell count of {count} but at index {left} no cell returned");
            return Err(ConvertError::malformed("MutationProto.associated_cell_count", message));
        };
        self.0 = rest;
        Ok(taken)
    }

    /// Passes over the cells of a mutation that will not be done (its region is not here, say).
    pub fn skip(&mut self, mutation: &pb::MutationProto) {
        // Too few cells: the rest is gone, which is all there is to do here.
        let _ = self.take(cell_count(mutation));
    }

    /// How many are left.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether none are left.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

fn cell_count(mutation: &pb::MutationProto) -> usize {
    usize::try_from(mutation.associated_cell_count()).unwrap_or(0)
}

/// A mutation, with its cells from its own message or from `cells`. Its cells are taken whether it is legal or not.
///
/// # Errors
/// What HBase refuses: no row, cells that are missing or too long, negative timestamps.
pub fn mutation(mutation: pb::MutationProto, cells: &mut Cells, nonce_group: Option<u64>) -> Result<Mutation> {
    let count = cell_count(&mutation);
    let taken = if count > 0 { Some(cells.take(count)?) } else { None };
    let kind = match mutation.mutate_type() {
        MutationType::Append => MutationKind::Append,
        MutationType::Increment => MutationKind::Increment,
        MutationType::Put => MutationKind::Put,
        MutationType::Delete => MutationKind::Delete,
    };
    let row = match (&mutation.row, &taken) {
        (Some(row), _) => row.clone(),
        (None, Some(cells)) => {
            let first = cells.iter().next().map(|c| cells.bytes().slice_ref(c.row()));
            required(first, "MutationProto.row", "row")?
        }
        (None, None) => return Err(ConvertError::illegal("MutationProto.row", "row cannot be null")),
    };
    check_row(&row)?;
    let own_timestamp = mutation.timestamp.map_or(Ok(i64::MAX), timestamp)?;
    let cells = match taken {
        Some(cells) => {
            if let Some(other) = cells.iter().find(|cell| cell.row() != &row[..]) {
                let (theirs, ours) = (cell::print::Binary(other.row()), cell::print::Binary(&row));
                let message = format!("The row in {theirs} doesn't match the original one {ours}");
                return Err(ConvertError::new(ConvertErrorKind::WrongRow, "MutationProto.row", message));
            }
            cells
        }
        None => inline_cells(kind, &row, own_timestamp, &mutation.column_value)?,
    };
    let ttl_ms = match attribute(&mutation.attribute, TTL) {
        None => None,
        Some(bytes) => {
            let bytes = bytes.first_chunk::<8>().copied();
            let too_short = "offset (0) + length (8) exceed the capacity of the array";
            let bytes = bytes.ok_or_else(|| ConvertError::illegal("MutationProto.attribute", too_short))?;
            Some(i64::from_be_bytes(bytes)).filter(|ttl| *ttl != i64::MAX)
        }
    };
    let cells = match ttl_ms {
        Some(ttl) => with_ttl(&cells, ttl)?,
        None => cells,
    };
    let return_results =
        attribute(&mutation.attribute, RETURN_RESULTS).is_none_or(|v| v.first().is_none_or(|b| *b != 0));
    let nonce = mutation.nonce.filter(|n| *n != 0).map(|number| Nonce { group: nonce_group.unwrap_or(0), number });
    Ok(Mutation {
        row,
        kind,
        cells,
        timestamp: own_timestamp,
        durability: durability(mutation.durability()),
        time_range: mutation.time_range.as_ref().map_or(Ok(TimeRange::ALL), time_range)?,
        return_results,
        nonce,
        ttl_ms,
        attributes: mutation.attribute.into_iter().map(|a| (a.name, a.value.unwrap_or_default())).collect(),
    })
}

fn durability(durability: wire::Durability) -> Durability {
    match durability {
        wire::Durability::UseDefault => Durability::UseDefault,
        wire::Durability::SkipWal => Durability::SkipWal,
        wire::Durability::AsyncWal => Durability::AsyncWal,
        wire::Durability::SyncWal => Durability::SyncWal,
        wire::Durability::FsyncWal => Durability::FsyncWal,
    }
}

/// The cells that a mutation without a cell block spells out.
fn inline_cells(
    kind: MutationKind,
    row: &[u8],
    own_timestamp: i64,
    columns: &[wire::ColumnValue],
) -> Result<CellBlock> {
    let mut specs: Vec<CellSpec<'_>> = Vec::new();
    for column in columns {
        for qv in &column.qualifier_value {
            // Only a Put lends its own timestamp to its cells.
            let default = if kind == MutationKind::Put { own_timestamp } else { i64::MAX };
            let mut spec = CellSpec {
                row,
                family: &column.family,
                qualifier: qv.qualifier(),
                timestamp: qv.timestamp.map_or(Ok(default), timestamp)?,
                type_code: CellType::Put.code(),
                value: qv.value(),
                tags: qv.tags(),
            };
            if kind == MutationKind::Delete {
                (spec.value, spec.tags) = (&[], &[]);
                spec.type_code = delete_type(qv.delete_type());
                if matches!(qv.delete_type(), DeleteType::DeleteFamily | DeleteType::DeleteFamilyVersion) {
                    spec.qualifier = &[];
                }
                if qv.delete_type() == DeleteType::DeleteFamily {
                    // As Delete#addFamily: what was said about the family before is covered.
                    specs.retain(|s| s.family != spec.family);
                }
            } else {
                required(qv.value.as_ref(), "QualifierValue.value", "qualifier value")?;
                if kind == MutationKind::Put && qv.delete_type.is_some() {
                    spec.type_code = delete_type(qv.delete_type());
                    spec.value = &[];
                }
            }
            spec.check_lengths().map_err(illegal_cell)?;
            cell::tag::check(spec.tags).map_err(illegal_cell)?;
            specs.push(spec);
        }
    }
    Ok(CellBlock::from_specs(specs))
}

fn illegal_cell(error: cell::CellError) -> ConvertError {
    ConvertError::malformed("MutationProto.column_value", error.to_string())
}

fn delete_type(delete_type: DeleteType) -> u8 {
    match delete_type {
        DeleteType::DeleteOneVersion => CellType::Delete,
        DeleteType::DeleteMultipleVersions => CellType::DeleteColumn,
        DeleteType::DeleteFamily => CellType::DeleteFamily,
        DeleteType::DeleteFamilyVersion => CellType::DeleteFamilyVersion,
    }
    .code()
}

/// The cells, each with a TTL tag (in place of the one it may have).
fn with_ttl(cells: &CellBlock, ttl_ms: i64) -> Result<CellBlock> {
    let mut out = CellBuffer::new();
    let mut tags = Vec::new();
    for cell in cells {
        tags.clear();
        cell::tag::iter(cell.tags())
            .filter(|(tag_type, _)| *tag_type != cell::tag::TTL)
            .for_each(|(tag_type, value)| cell::tag::write(&mut tags, tag_type, value));
        cell::tag::write(&mut tags, cell::tag::TTL, &ttl_ms.to_be_bytes());
        let spec = CellSpec {
            row: cell.row(),
            family: cell.family(),
            qualifier: cell.qualifier(),
            timestamp: cell.timestamp(),
            type_code: cell.type_code(),
            value: cell.value(),
            tags: &tags,
        };
        spec.check_lengths().map_err(illegal_cell)?;
        out.push_spec(&spec, SeqId(0));
    }
    Ok(out.into_block())
}

/// A condition. Of a comparator only its bytes count, as in `ProtobufUtil#toCheckAndMutate`.
///
/// # Errors
/// An illegal filter, comparator or time range; whether there can be such a row is for the caller to ask.
pub fn condition(condition: &pb::Condition) -> Result<Condition> {
    let test = match &condition.filter {
        Some(wire_filter) => ConditionTest::Filter(Arc::new(filter(wire_filter)?)),
        None => {
            let op = condition.compare_type.map_or(Ok(pb::CompareType::Less), pb::CompareType::try_from);
            let op = op.map_err(|_| ConvertError::malformed("Condition.compare_type", "unknown compare_type"))?;
            let null = || ConvertError::new(ConvertErrorKind::NullArgument, "Condition.comparator", "no comparator");
            let value = comparator(condition.comparator.as_ref().ok_or_else(null)?)
                .map_err(|error| error.with_kind(ConvertErrorKind::IllegalComparator))?
                .value_bytes();
            ConditionTest::Value {
                family: condition.family.clone().unwrap_or_default(),
                qualifier: condition.qualifier.clone().unwrap_or_default(),
                op: compare_op(op),
                comparator: Arc::new(Comparator::Binary { value }),
            }
        }
    };
    let time_range = condition.time_range.as_ref().map_or(Ok(TimeRange::ALL), time_range)?;
    Ok(Condition { row: condition.row.clone(), test, time_range })
}
