//! Mutations and conditions, as a client sends them.

use bytes::Bytes;
use cell::{CellRef, CellType};
use model::mutation::ConditionTest;
use model::{Condition, Durability, Mutation, MutationKind};
use proto::pb;
use proto::pb::mutation_proto::{self as wire, column_value::QualifierValue};

use super::{comparator, compare_type, filter, name_bytes, time_range};

/// A mutation whose cells travel in the cell block behind the message (multi does so).
pub fn mutation_without_cells(mutation: &Mutation) -> pb::MutationProto {
    let delta = matches!(mutation.kind, MutationKind::Append | MutationKind::Increment);
    let kind = match mutation.kind {
        MutationKind::Append => wire::MutationType::Append,
        MutationKind::Increment => wire::MutationType::Increment,
        MutationKind::Put => wire::MutationType::Put,
        MutationKind::Delete => wire::MutationType::Delete,
    };
    let durability = match mutation.durability {
        Durability::UseDefault => wire::Durability::UseDefault,
        Durability::SkipWal => wire::Durability::SkipWal,
        Durability::AsyncWal => wire::Durability::AsyncWal,
        Durability::SyncWal => wire::Durability::SyncWal,
        Durability::FsyncWal => wire::Durability::FsyncWal,
    };
    let mut attribute: Vec<_> = mutation.attributes.iter().map(|(n, v)| name_bytes(n.clone(), v.clone())).collect();
    if let Some(ttl) = mutation.ttl_ms
        && mutation.attributes.iter().all(|(name, _)| name != "_ttl")
    {
        attribute.push(name_bytes("_ttl", Bytes::copy_from_slice(&ttl.to_be_bytes())));
    }
    if !mutation.return_results && mutation.attributes.iter().all(|(name, _)| name != "_rr_") {
        attribute.push(name_bytes("_rr_", &[0u8][..]));
    }
    pb::MutationProto {
        row: Some(mutation.row.clone()),
        mutate_type: Some(kind.into()),
        column_value: Vec::new(),
        timestamp: (mutation.timestamp != i64::MAX).then_some(mutation.timestamp as u64),
        attribute,
        durability: Some(durability.into()),
        time_range: delta.then(|| time_range(mutation.time_range)),
        associated_cell_count: Some(mutation.cells.len() as i32),
        nonce: mutation.nonce.map(|n| n.number),
    }
}

/// A mutation with its cells spelled out in the message (a single Mutate does so).
pub fn mutation(mutation: &Mutation) -> pb::MutationProto {
    let mut message = mutation_without_cells(mutation);
    message.associated_cell_count = None;
    for cell in &mutation.cells {
        let value = qualifier_value(mutation.kind, cell);
        match message.column_value.last_mut() {
            Some(last) if last.family == cell.family() => last.qualifier_value.push(value),
            _ => {
                let family = Bytes::copy_from_slice(cell.family());
                message.column_value.push(wire::ColumnValue { family, qualifier_value: vec![value] });
            }
        }
    }
    message
}

fn qualifier_value(kind: MutationKind, cell: CellRef<'_>) -> QualifierValue {
    let delete_type = (kind == MutationKind::Delete).then(|| {
        match CellType::from_code(cell.type_code()) {
            Some(CellType::DeleteColumn) => wire::DeleteType::DeleteMultipleVersions,
            Some(CellType::DeleteFamily) => wire::DeleteType::DeleteFamily,
            Some(CellType::DeleteFamilyVersion) => wire::DeleteType::DeleteFamilyVersion,
            _ => wire::DeleteType::DeleteOneVersion,
        }
        .into()
    });
    QualifierValue {
        qualifier: Some(Bytes::copy_from_slice(cell.qualifier())),
        value: Some(Bytes::copy_from_slice(cell.value())),
        timestamp: Some(cell.timestamp() as u64),
        delete_type,
        tags: (!cell.tags().is_empty()).then(|| Bytes::copy_from_slice(cell.tags())),
    }
}

/// A condition.
pub fn condition(condition: &Condition) -> pb::Condition {
    let mut message = pb::Condition {
        row: condition.row.clone(),
        time_range: Some(time_range(condition.time_range)),
        ..pb::Condition::default()
    };
    match &condition.test {
        ConditionTest::Filter(f) => message.filter = Some(filter(f)),
        ConditionTest::Value { family, qualifier, op, comparator: c } => {
            message.family = Some(family.clone());
            message.qualifier = Some(qualifier.clone());
            message.compare_type = Some(compare_type(*op).into());
            message.comparator = Some(comparator(c));
        }
    }
    message
}
