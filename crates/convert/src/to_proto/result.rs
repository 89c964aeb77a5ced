//! Results, with their cells in a cell block or in the message.

use bytes::Bytes;
use cell::CellRef;
use proto::{Message, pb};

/// A result whose `count` cells stand in the cell block. HBase writes the count even when it is 0.
pub fn result_with_count(count: usize) -> pb::Result {
    pb::Result {
        associated_cell_count: Some(i32::try_from(count).expect("a reply is limited to far fewer cells")),
        ..pb::Result::default()
    }
}

/// The message of a Get's response whose `count` cells stand in the cell block, encoded: mostly bytes that are there already.
pub fn get_response_with_count(count: usize) -> Bytes {
    const FEW: usize = 128;
    /// Field 1, a result of two bytes: its field 2, the count.
    static OF_FEW: [[u8; 4]; FEW] = {
        let mut of_few = [[0x0A, 2, 0x10, 0]; FEW];
        let mut count = 0;
        while count < FEW {
            of_few[count][3] = count as u8;
            count += 1;
        }
        of_few
    };
    match OF_FEW.get(count) {
        Some(bytes) => Bytes::from_static(bytes),
        None => Bytes::from(pb::GetResponse { result: Some(result_with_count(count)) }.encode_to_vec()),
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_response_to_a_get_is_the_one_prost_would_write() {
        for count in [0, 1, 2, 10, 126, 127, 128, 129, 70_000] {
            let response = pb::GetResponse { result: Some(result_with_count(count)) };
            assert_eq!(get_response_with_count(count), response.encode_to_vec(), "{count} cells");
        }
    }
}
