//! The cell: HBase's KeyValue bytes, borrowed, ordered, checked and printed.
//!
//! A cell is bytes in HBase's KeyValue layout from the socket to the disk and back; this crate reads that layout
//! in place and never owns more than it must:
//!
//! ```text
//! keyLen(4) valueLen(4) | rowLen(2) row famLen(1) family qualifier timestamp(8) type(1) | value | [tagsLen(2) tags]
//! ```
//!
//! Always true:
//!  1. A [`CellRef`] is well formed: its lengths agree with its bytes. [`CellRef::parse`] is where foreign bytes
//!     are checked; accessors never panic on a parsed cell.
//!  2. The sequence id is beside the bytes, not in them (the log and the wire do not carry it per cell).
//!  3. Order is HBase's `CellComparatorImpl`, or `MetaCellComparator` for hbase:meta, chosen by [`Order`].
//!
//! Must not know: tables, regions, files, the network. Follows `KeyValue`, `CellComparatorImpl`, `PrivateCellUtil`.

pub mod block;
pub mod cell_type;
pub mod key;
pub mod keyvalue;
pub mod order;
pub mod print;
pub mod tag;
pub mod vint;

pub use block::{CellBlock, CellBuffer, CellIter, CellRuns};
pub use cell_type::CellType;
pub use key::KeyRef;
pub use keyvalue::{CellError, CellRef, CellSpec, MAX_FAMILY_LENGTH, MAX_ROW_LENGTH};
pub use order::Order;
