//! Results, with their cells in a cell block or in the message.

use bytes::Bytes;
use cell::CellRef;
use proto::pb;

/// A result whose `count` cells stand in the cell block. HBase writes the count even when it is 0.
pub fn result_with_count(count: usize) -> pb::Result {
    pb::Result {
        associated_cell_count: Some(i32::try_from(count).expect("a reply is limited to far fewer cells")),
        ..pb::Result::default()
    }
}

/// A result with its cells spelled out, for connections without a cell codec. Tags stay here, as HBase keeps them.
/// Copies the cells.
pub fn inline_result<'a>(cells: impl IntoIterator<Item = CellRef<'a>>) -> pb::Result {
    pb::Result { cell: cells.into_iter().map(cell).collect(), ..pb::Result::default() }
}

fn cell(cell: CellRef<'_>) -> pb::Cell {
    pb::Cell {
        row: Some(Bytes::copy_from_slice(cell.row())),
        family: Some(Bytes::copy_from_slice(cell.family())),
        qualifier: Some(Bytes::copy_from_slice(cell.qualifier())),
        timestamp: Some(cell.timestamp() as u64),
        cell_type: Some(i32::from(cell.type_code())),
        value: Some(Bytes::copy_from_slice(cell.value())),
        tags: None,
    }
}
