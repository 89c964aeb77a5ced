//! Cells as HBase's tools print them. Follows: `KeyValue#toString`, `CellUtil#getCellKeyAsString`, `ArrayBackedTag#toString`.

use cell::print::to_string_binary;
use cell::{CellRef, CellType, KeyRef};

/// A type of cells by its number, as HBase names it.
pub fn type_name(code: u8) -> String {
    match (CellType::from_code(code), code) {
        (Some(kind), _) => format!("{kind:?}"),
        (None, 255) => "Maximum".to_owned(),
        (None, code) => format!("Unknown({code})"),
    }
}

/// A time; the two at the ends have names.
pub fn timestamp(at: i64) -> String {
    match at {
        i64::MAX => "LATEST_TIMESTAMP".to_owned(),
        i64::MIN => "OLDEST_TIMESTAMP".to_owned(),
        at => at.to_string(),
    }
}

/// `row/family:qualifier/timestamp/Type`.
pub fn key(key: KeyRef<'_>) -> String {
    let colon = if key.family().is_empty() { "" } else { ":" };
    format!(
        "{}/{}{colon}{}/{}/{}",
        to_string_binary(key.row()),
        to_string_binary(key.family()),
        to_string_binary(key.qualifier()),
        timestamp(key.timestamp()),
        type_name(key.type_code()),
    )
}

/// The same with the value's length and the sequence id.
pub fn cell(cell: CellRef<'_>) -> String {
    format!("{}/vlen={}/seqid={}", key(cell.key()), cell.value().len(), cell.seq_id().0)
}

/// ` T[0]: [Tag type : 8, value : ...]` for each tag.
pub fn tags(cell: CellRef<'_>) -> String {
    let tag = |(i, (kind, value)): (usize, (u8, &[u8]))| {
        format!(" T[{i}]: [Tag type : {kind}, value : {}]", to_string_binary(value))
    };
    cell::tag::iter(cell.tags()).enumerate().map(tag).collect()
}
