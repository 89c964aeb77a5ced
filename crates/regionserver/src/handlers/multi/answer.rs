//! The answer to a batch. That to a batch of writes is nearly always that every write has succeeded, which is said by their indexes alone: no
//! message per row is built, and the bytes are written by hand.

#![allow(deprecated, reason = "the messages have fields that HBase calls deprecated")]

use super::charges::Charges;
use crate::handlers::get::place_result;
use crate::server::LEAST_REPLY_BYTES;
use bytes::Bytes;
use cell::CellBuffer;
use prost::Message;
use prost::encoding::{encode_varint, encoded_len_varint};
use proto::pb;
use rpc::exception::Exception;
use rpc::{Making, Reply};

/// The answer as it grows. `cells` holds the cells of results in the order in which the results appear.
pub(super) struct Answering {
    pub(super) has_codec: bool,
    cells: CellBuffer,
    /// Bytes of results that hold their cells themselves.
    inline_bytes: usize,
    size_limit: usize,
    charges: Charges,
    making: Making,
}

impl Answering {
    /// Nothing yet; results of more than `size_limit` bytes are refused.
    pub(super) fn new(has_codec: bool, size_limit: usize, charges: Charges, making: Making) -> Answering {
        Answering { has_codec, cells: CellBuffer::new(), inline_bytes: 0, size_limit, charges, making }
    }

    /// Another that has nothing yet.
    pub(super) fn begin(&self) -> Answering {
        Answering::new(self.has_codec, self.size_limit, self.charges.clone(), self.making.another())
    }

    /// Tells quotas what region action `at` found, whose results began at `since`.
    pub(super) fn charge(&self, at: usize, since: usize) {
        self.charges.set_result_bytes(at, self.serialized_bytes().saturating_sub(since));
    }

    /// Bytes of cells, without the lengths before them.
    pub(super) fn serialized_bytes(&self) -> usize {
        self.size().saturating_sub(4 * self.cells.len())
    }

    pub(super) fn result(
        &mut self,
        index: u32,
        result: pb::Result,
        cells: Option<CellBuffer>,
    ) -> pb::ResultOrException {
        match cells {
            Some(cells) => cells.iter_from(0).for_each(|cell| self.cells.push(cell)),
            None => self.inline_bytes += result.encoded_len(),
        }
        pb::ResultOrException { index: Some(index), result: Some(result), ..pb::ResultOrException::default() }
    }

    pub(super) fn place(&mut self, index: u32, cells: CellBuffer) -> pb::ResultOrException {
        let (result, cells) = place_result(cells, self.has_codec);
        self.result(index, result, cells)
    }

    /// Whether what is not answered yet is to be asked for again.
    pub(super) fn is_full(&self) -> bool {
        let size = self.size();
        size > self.size_limit || size as u64 >= LEAST_REPLY_BYTES && !self.making.has(size as u64)
    }

    pub(super) fn size(&self) -> usize {
        self.cells.byte_len() + self.inline_bytes
    }
}

pub(super) fn failed(index: u32, exception: &Exception) -> pb::ResultOrException {
    let exception = Some(exception.to_name_bytes_pair());
    pb::ResultOrException { index: Some(index), exception, ..pb::ResultOrException::default() }
}

pub(super) fn succeeded(index: u32) -> pb::ResultOrException {
    pb::ResultOrException {
        index: Some(index),
        result: Some(pb::Result::default()),
        ..pb::ResultOrException::default()
    }
}

pub(super) fn region_failed(exception: &Exception) -> pb::RegionActionResult {
    let exception = Some(exception.to_name_bytes_pair());
    pb::RegionActionResult { exception, ..pb::RegionActionResult::default() }
}

pub(super) fn finish(regions: Vec<pb::RegionActionResult>, processed: Option<bool>, answering: Answering) -> Reply {
    let response = pb::MultiResponse {
        region_action_result: regions,
        processed,
        region_statistics: Some(pb::MultiRegionLoadStats::default()),
    };
    if answering.cells.is_empty() { Reply::new(&response) } else { Reply::with_cells(&response, answering.cells) }
}

/// What became of one region's writes.
pub(super) enum RegionAnswer {
    /// All succeeded; their indexes.
    Done(Vec<u32>),
    /// Anything else.
    Told(pb::RegionActionResult),
}

impl RegionAnswer {
    pub(super) fn told(result_or_exception: Vec<pb::ResultOrException>) -> RegionAnswer {
        RegionAnswer::Told(pb::RegionActionResult { result_or_exception, ..pb::RegionActionResult::default() })
    }

    /// What became of the region's other writes.
    pub(super) fn extend(&mut self, mut others: pb::RegionActionResult) {
        if let RegionAnswer::Done(indexes) = self {
            *self = RegionAnswer::told(indexes.iter().map(|index| succeeded(*index)).collect());
        }
        if let RegionAnswer::Told(result) = self {
            result.result_or_exception.append(&mut others.result_or_exception);
        }
    }

    /// The log has lost the writes that had succeeded.
    pub(super) fn fail(&mut self, exception: &Exception) {
        match self {
            RegionAnswer::Done(indexes) => {
                *self = RegionAnswer::told(indexes.iter().map(|index| failed(*index, exception)).collect());
            }
            RegionAnswer::Told(result) => {
                for entry in result.result_or_exception.iter_mut().filter(|entry| entry.exception.is_none()) {
                    *entry = failed(entry.index(), exception);
                }
            }
        }
    }
}

/// Length of `ResultOrException { index, result: {} }`.
fn entry_len(index: u32) -> usize {
    3 + encoded_len_varint(u64::from(index))
}

/// The `MultiResponse`.
pub(super) fn encode(regions: &[RegionAnswer]) -> Reply {
    let rows: usize =
        regions.iter().map(|region| if let RegionAnswer::Done(rows) = region { rows.len() } else { 0 }).sum();
    let mut out: Vec<u8> = Vec::with_capacity(rows * 8 + 64);
    for region in regions {
        // 1: RegionActionResult
        out.push(0x0A);
        match region {
            RegionAnswer::Done(indexes) => {
                // Each entry is short of 128 bytes: one byte says its length.
                let len: usize = indexes.iter().map(|index| 2 + entry_len(*index)).sum();
                encode_varint(len as u64, &mut out);
                for index in indexes {
                    // 1: ResultOrException { 1: index, 2: Result {} }
                    out.extend_from_slice(&[0x0A, entry_len(*index) as u8, 0x08]);
                    encode_varint(u64::from(*index), &mut out);
                    out.extend_from_slice(&[0x12, 0x00]);
                }
            }
            RegionAnswer::Told(result) => {
                encode_varint(result.encoded_len() as u64, &mut out);
                result.encode_raw(&mut out);
            }
        }
    }
    // 3: MultiRegionLoadStats {}
    out.extend_from_slice(&[0x1A, 0x00]);
    Reply { message: Bytes::from(out), ..Reply::default() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_answer_written_by_hand_is_the_message() {
        let done = |index: u32| pb::ResultOrException {
            index: Some(index),
            result: Some(pb::Result::default()),
            ..pb::ResultOrException::default()
        };
        let indexes = [0, 1, 127, 128, 70_000, u32::MAX];
        let mut regions =
            [RegionAnswer::Done(indexes.to_vec()), RegionAnswer::told(vec![done(3)]), RegionAnswer::Done(Vec::new())];
        let message = |regions: [Vec<pb::ResultOrException>; 3]| {
            let result = |result_or_exception| pb::RegionActionResult { result_or_exception, ..Default::default() };
            pb::MultiResponse {
                region_action_result: regions.map(result).to_vec(),
                processed: None,
                region_statistics: Some(pb::MultiRegionLoadStats::default()),
            }
        };
        let expected = message([indexes.map(done).to_vec(), vec![done(3)], Vec::new()]);
        assert_eq!(encode(&regions).message, expected.encode_to_vec());

        let exception = Exception::io("lost");
        regions.iter_mut().for_each(|region| region.fail(&exception));
        let expected =
            message([indexes.map(|index| failed(index, &exception)).to_vec(), vec![failed(3, &exception)], Vec::new()]);
        assert_eq!(encode(&regions).message, expected.encode_to_vec());
    }
}
