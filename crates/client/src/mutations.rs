//! Makes mutations cell by cell, in HBase's words. Follows: `Put`, `Delete`, `Increment`, `Append`.

use base::SeqId;
use bytes::Bytes;
use cell::{CellBuffer, CellSpec, CellType};
use model::{Durability, Mutation, MutationKind, TimeRange};

/// A cell without a time of its own is stamped by the server.
const NOW: i64 = i64::MAX;

struct Builder {
    row: Bytes,
    kind: MutationKind,
    cells: CellBuffer,
    durability: Durability,
    return_results: bool,
    ttl_ms: Option<i64>,
    time_range: TimeRange,
    timestamp: i64,
    attributes: Vec<(String, Bytes)>,
}

impl Builder {
    fn new(kind: MutationKind, row: &[u8]) -> Builder {
        Builder {
            row: Bytes::copy_from_slice(row),
            kind,
            cells: CellBuffer::new(),
            durability: Durability::UseDefault,
            return_results: true,
            ttl_ms: None,
            time_range: TimeRange::ALL,
            timestamp: NOW,
            attributes: Vec::new(),
        }
    }

    fn push(
        &mut self,
        family: &[u8],
        qualifier: &[u8],
        timestamp: i64,
        cell_type: CellType,
        value: &[u8],
        tags: &[u8],
    ) {
        let spec = CellSpec { row: &self.row, family, qualifier, timestamp, type_code: cell_type.code(), value, tags };
        self.cells.push_spec(&spec, SeqId(0));
    }

    fn build(self) -> Mutation {
        let mut mutation = Mutation::new(self.kind, self.row, self.cells.into_block());
        mutation.durability = self.durability;
        mutation.return_results = self.return_results;
        mutation.ttl_ms = self.ttl_ms;
        mutation.time_range = self.time_range;
        mutation.timestamp = self.timestamp;
        mutation.attributes = self.attributes;
        mutation
    }
}

/// What every kind of mutation can be told.
macro_rules! common {
    ($name:ident) => {
        impl $name {
            /// How sure it must be before it is acknowledged.
            pub fn durability(mut self, durability: Durability) -> Self {
                self.0.durability = durability;
                self
            }

            /// Attaches `value` under `name`.
            pub fn attribute(mut self, name: &str, value: impl Into<Bytes>) -> Self {
                self.0.attributes.push((name.to_owned(), value.into()));
                self
            }

            /// The mutation.
            pub fn build(self) -> Mutation {
                self.0.build()
            }
        }
    };
}

/// What every kind of mutation that writes values can be told.
macro_rules! living {
    ($name:ident) => {
        impl $name {
            /// Time to live of its cells in milliseconds.
            pub fn ttl_ms(mut self, ttl_ms: i64) -> Self {
                self.0.ttl_ms = Some(ttl_ms);
                self
            }
        }
    };
}

/// What increments and appends can be told.
macro_rules! counting {
    ($name:ident) => {
        impl $name {
            /// Whether the new values are wanted back.
            pub fn return_results(mut self, wanted: bool) -> Self {
                self.0.return_results = wanted;
                self
            }

            /// Only old values of these times count.
            pub fn time_range(mut self, time_range: TimeRange) -> Self {
                self.0.time_range = time_range;
                self
            }
        }
    };
}

/// Writes values.
pub struct Put(Builder);

impl Put {
    /// To `row`.
    pub fn new(row: impl AsRef<[u8]>) -> Put {
        Put(Builder::new(MutationKind::Put, row.as_ref()))
    }

    /// A value under the server's time.
    pub fn add(self, family: impl AsRef<[u8]>, qualifier: impl AsRef<[u8]>, value: impl AsRef<[u8]>) -> Put {
        self.add_at(family, qualifier, NOW, value)
    }

    /// A value under a time in milliseconds.
    pub fn add_at(
        self,
        family: impl AsRef<[u8]>,
        qualifier: impl AsRef<[u8]>,
        timestamp: i64,
        value: impl AsRef<[u8]>,
    ) -> Put {
        self.add_tagged(family, qualifier, timestamp, value, &[])
    }

    /// A value with tags (see [`cell::tag`]); they travel only under a codec that carries them.
    pub fn add_tagged(
        mut self,
        family: impl AsRef<[u8]>,
        qualifier: impl AsRef<[u8]>,
        timestamp: i64,
        value: impl AsRef<[u8]>,
        tags: &[u8],
    ) -> Put {
        self.0.push(family.as_ref(), qualifier.as_ref(), timestamp, CellType::Put, value.as_ref(), tags);
        self
    }
}
common!(Put);
living!(Put);

/// Writes delete markers. Without a column or family: the whole row.
pub struct Delete(Builder);

impl Delete {
    /// Of `row`.
    pub fn new(row: impl AsRef<[u8]>) -> Delete {
        Delete(Builder::new(MutationKind::Delete, row.as_ref()))
    }

    /// For a delete of the whole row: up to this time.
    pub fn up_to(mut self, timestamp: i64) -> Delete {
        self.0.timestamp = timestamp;
        self
    }

    fn mark(mut self, family: &[u8], qualifier: &[u8], timestamp: i64, cell_type: CellType) -> Delete {
        self.0.push(family, qualifier, timestamp, cell_type, b"", b"");
        self
    }

    /// The newest version of a column.
    pub fn column(self, family: impl AsRef<[u8]>, qualifier: impl AsRef<[u8]>) -> Delete {
        self.column_at(family, qualifier, NOW)
    }

    /// One version of a column.
    pub fn column_at(self, family: impl AsRef<[u8]>, qualifier: impl AsRef<[u8]>, timestamp: i64) -> Delete {
        self.mark(family.as_ref(), qualifier.as_ref(), timestamp, CellType::Delete)
    }

    /// Every version of a column.
    pub fn columns(self, family: impl AsRef<[u8]>, qualifier: impl AsRef<[u8]>) -> Delete {
        self.columns_up_to(family, qualifier, NOW)
    }

    /// Every version of a column up to a time.
    pub fn columns_up_to(self, family: impl AsRef<[u8]>, qualifier: impl AsRef<[u8]>, timestamp: i64) -> Delete {
        self.mark(family.as_ref(), qualifier.as_ref(), timestamp, CellType::DeleteColumn)
    }

    /// A family.
    pub fn family(self, family: impl AsRef<[u8]>) -> Delete {
        self.mark(family.as_ref(), b"", NOW, CellType::DeleteFamily)
    }

    /// A family up to a time.
    pub fn family_up_to(self, family: impl AsRef<[u8]>, timestamp: i64) -> Delete {
        self.mark(family.as_ref(), b"", timestamp, CellType::DeleteFamily)
    }

    /// Exactly one time of a family.
    pub fn family_version(self, family: impl AsRef<[u8]>, timestamp: i64) -> Delete {
        self.mark(family.as_ref(), b"", timestamp, CellType::DeleteFamilyVersion)
    }
}
common!(Delete);

/// Adds to counters of 8 bytes.
pub struct Increment(Builder);

impl Increment {
    /// In `row`.
    pub fn new(row: impl AsRef<[u8]>) -> Increment {
        Increment(Builder::new(MutationKind::Increment, row.as_ref()))
    }

    /// Adds `amount`.
    pub fn add(mut self, family: impl AsRef<[u8]>, qualifier: impl AsRef<[u8]>, amount: i64) -> Increment {
        self.0.push(family.as_ref(), qualifier.as_ref(), NOW, CellType::Put, &amount.to_be_bytes(), b"");
        self
    }
}
common!(Increment);
living!(Increment);
counting!(Increment);

/// Appends to values.
pub struct Append(Builder);

impl Append {
    /// In `row`.
    pub fn new(row: impl AsRef<[u8]>) -> Append {
        Append(Builder::new(MutationKind::Append, row.as_ref()))
    }

    /// Appends `value`.
    pub fn add(mut self, family: impl AsRef<[u8]>, qualifier: impl AsRef<[u8]>, value: impl AsRef<[u8]>) -> Append {
        self.0.push(family.as_ref(), qualifier.as_ref(), NOW, CellType::Put, value.as_ref(), b"");
        self
    }
}
common!(Append);
living!(Append);
counting!(Append);
