//! Cell blocks of a request or reply: 100 cells with 1000-byte values. An operation is a block.

use crate::Group;
use crate::data;
use crate::measure::{Done, Session, Size};
use base::{Rng, SeqId};
use bytes::Bytes;
use cell::{CellBlock, CellBuffer, CellSpec};
use rpc::CellCodec;
use std::hint::black_box;

pub const GROUP: Group = Group {
    names: &[
        "cellblock.decode",
        "cellblock.build",
        "cellblock.encode.strip_tags",
        "cellblock.decode.cell",
        "cellblock.encode.cell",
    ],
    needs_server: false,
    run,
};

/// Cells of a block.
const CELLS: u64 = 100;

fn run(session: &mut Session<'_>) -> anyhow::Result<()> {
    let value = data::value(data::VALUE_BYTES, &Rng::seeded(1));
    let rows: Vec<Bytes> = (0..CELLS).map(data::row).collect();
    let specs = rows.iter().map(|row| CellSpec { timestamp: 1_700_000_000_000, ..data::spec(row, &value) });
    let block = CellBlock::from_specs(specs);
    let plain = block.bytes().clone();
    let spelled = CellCodec::Cell.encode(plain.clone(), false);
    let mut blocks = |name: &str, mut work: Box<dyn FnMut() -> anyhow::Result<usize> + '_>| {
        session.measure(
            name,
            Size::Timed { most: u64::MAX, step: 1 },
            |_| Ok(()),
            |(), n| {
                let mut bytes = 0;
                for _ in 0..n {
                    bytes += black_box(work()?) as u64;
                }
                Ok(Done { ops: n, bytes })
            },
        )
    };
    blocks("cellblock.decode", Box::new(|| Ok(CellCodec::KeyValue.decode(plain.clone())?.bytes().len())))?;
    blocks(
        "cellblock.build",
        Box::new(|| {
            let mut buffer = CellBuffer::new();
            block.iter().for_each(|cell| buffer.push(cell.with_seq_id(SeqId(1))));
            Ok(buffer.into_block().bytes().len())
        }),
    )?;
    blocks("cellblock.encode.strip_tags", Box::new(|| Ok(CellCodec::KeyValue.encode(plain.clone(), true).len())))?;
    blocks("cellblock.decode.cell", Box::new(|| Ok(CellCodec::Cell.decode(spelled.clone())?.bytes().len())))?;
    blocks("cellblock.encode.cell", Box::new(|| Ok(CellCodec::Cell.encode(plain.clone(), false).len())))
}
