//! Writes as values. The cells of a mutation are one contiguous run of KeyValues, so that applying it copies bytes
//! once into the log and once into the memstore and allocates nothing per cell.

use crate::TimeRange;
use bytes::Bytes;
use cell::CellBlock;
use filter::{Comparator, CompareOp, Filter};
use std::sync::Arc;

/// How sure a write must be before it is acknowledged. Ordered: a batch takes the strongest of its members.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Default, Hash)]
pub enum Durability {
    /// The table's, else SYNC_WAL.
    #[default]
    UseDefault,
    /// Not logged.
    SkipWal,
    /// Logged, not waited for.
    AsyncWal,
    /// Logged and waited for.
    SyncWal,
    /// Logged and on the platter.
    FsyncWal,
}

/// Marks a write so that its retry is recognised. Zero group and number mean none.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash, PartialOrd, Ord)]
pub struct Nonce {
    /// One per client.
    pub group: u64,
    /// One per operation.
    pub number: u64,
}

/// Which of the four writes.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash)]
pub enum MutationKind {
    /// Cells are Puts.
    Put,
    /// Cells are delete markers; no cells means the whole row at `timestamp`.
    Delete,
    /// Cells hold what is to be appended.
    Append,
    /// Cells hold 8-byte amounts.
    Increment,
}

/// One write to one row. Cells whose timestamp is `i64::MAX` are stamped by the server.
#[derive(Clone, Debug)]
pub struct Mutation {
    /// The row; the cells' rows must equal it (checked when applied).
    pub row: Bytes,
    /// What it does.
    pub kind: MutationKind,
    /// The cells, grouped as the client sent them. TTL (from the mutation's `_ttl` attribute) is already in their tags.
    pub cells: CellBlock,
    /// The mutation's own timestamp; `i64::MAX` for now. Counts for a Delete without cells.
    pub timestamp: i64,
    /// How sure it must be.
    pub durability: Durability,
    /// For Append and Increment: which old cells count.
    pub time_range: TimeRange,
    /// For Append and Increment: whether the new cells are wanted back.
    pub return_results: bool,
    /// For Append and Increment: recognises a retry.
    pub nonce: Option<Nonce>,
    /// Time to live of each cell that is made, in milliseconds.
    pub ttl_ms: Option<i64>,
    /// What else the client attached.
    pub attributes: Vec<(String, Bytes)>,
}

impl Mutation {
    /// A write of `cells` to `row` with HBase's defaults.
    pub fn new(kind: MutationKind, row: impl Into<Bytes>, cells: CellBlock) -> Mutation {
        Mutation {
            row: row.into(),
            kind,
            cells,
            timestamp: i64::MAX,
            durability: Durability::UseDefault,
            time_range: TimeRange::ALL,
            return_results: true,
            nonce: None,
            ttl_ms: None,
            attributes: Vec::new(),
        }
    }
}

/// What must hold before a write is done (checkAndMutate).
#[derive(Clone, Debug)]
pub struct Condition {
    /// The row that is looked at.
    pub row: Bytes,
    /// The test.
    pub test: ConditionTest,
    /// Which cells are looked at.
    pub time_range: TimeRange,
}

/// The two forms of a condition.
#[derive(Clone, Debug)]
pub enum ConditionTest {
    /// The newest cell of a column against a comparator, read as `value OP cell` (HBase's wire; filters read it the
    /// other way round).
    Value {
        /// Family.
        family: Bytes,
        /// Qualifier.
        qualifier: Bytes,
        /// Operator.
        op: CompareOp,
        /// Comparator.
        comparator: Arc<Comparator>,
    },
    /// A Get of the row with this filter finds something.
    Filter(Arc<Filter>),
}
