//! How the columns of an SQL table lie in the rows of an HBase table: what the catalog keeps.

use std::sync::Arc;

use bytes::Bytes;
use datafusion::arrow::datatypes::{DataType, Field, Schema, SchemaRef, TimeUnit};
use model::TableName;
use serde::{Deserialize, Serialize};
use types::{KeyColumn, KeyLayout, Order, SqlType};

use crate::error::{SqlError, SqlState};

/// Family of columns that name none. As Phoenix has it.
pub const DEFAULT_FAMILY: &str = "0";
/// The cell that every row of a table of ours has, so that one whose columns are all NULL is there. As Phoenix has it.
pub const EMPTY_CELL_QUALIFIER: &str = "_0";
/// Its value.
pub const EMPTY_CELL_VALUE: &[u8] = b"x";

/// What made a table known here.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    /// `CREATE TABLE`: the HBase table is ours, and all its values are written by us.
    Table,
    /// `CREATE VIEW` over an HBase table that others write.
    View,
    /// An HBase table that nobody described: every column is bytes.
    Raw,
}

/// Where a column's bytes are.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Place {
    /// In the row key, at this position.
    Key(usize),
    /// In a cell.
    Cell {
        /// Family.
        family: String,
        /// Qualifier, which may be any bytes.
        qualifier: Vec<u8>,
    },
    /// In the one cell that has all columns of its family, as Phoenix keeps immutable tables.
    Packed {
        /// Family.
        family: String,
        /// Position in the cell, from 1 on.
        at: usize,
    },
    /// Nowhere: it is when the version was written.
    WrittenAt,
}

/// Which versions of its rows a table shows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Versions {
    /// The newest.
    Newest,
    /// Those that were the newest at a time.
    AsOf {
        /// Milliseconds since 1970, UTC.
        last_ms: i64,
        /// Whether there is a column that says when they were written.
        with_start: bool,
    },
    /// All that HBase still has, a row for each, with that column.
    All,
}

/// The column that says when a version was written, as MariaDB calls it.
pub const ROW_START: &str = "row_start";

/// The qualifier of a cell with all columns of its family. As Phoenix has it.
pub const PACKED_QUALIFIER: &[u8] = b"1";

/// What is special of a table or view that Apache Phoenix made.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Phoenix {
    /// Its name there: the schema, if it has one, and the table.
    pub name: String,
    /// Family of the cell that each row has.
    pub empty_family: String,
    /// Its qualifier.
    pub empty_qualifier: Vec<u8>,
    /// Phoenix's indexes on it, which what is written here would not reach.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub indexes: Vec<String>,
    /// What all rows of a view have in common, in SQL.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub condition: Option<String>,
}

/// A column.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Column {
    /// Its name in SQL.
    pub name: String,
    /// Its type, as [`SqlType`] writes it.
    #[serde(with = "type_as_text")]
    pub sql_type: SqlType,
    /// Most characters of a `varchar(n)`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_chars: Option<u32>,
    /// Digits and digits behind the point of a `decimal`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub decimal: Option<(u8, i8)>,
    /// Whether NULL is refused.
    #[serde(default)]
    pub not_null: bool,
    /// Whether a column of the key is descending.
    #[serde(default)]
    pub descending: bool,
    /// Whether its values are arrays of the type.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_array: bool,
    /// Whether a date is shown with its time of day: Phoenix's dates have one.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub with_time: bool,
    /// Where it is.
    pub place: Place,
    /// `COMMENT ON COLUMN`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub comment: Option<String>,
}

mod type_as_text {
    use serde::{Deserialize, Deserializer, Serializer};
    use types::SqlType;

    pub fn serialize<S: Serializer>(of: &SqlType, to: S) -> Result<S::Ok, S::Error> {
        to.collect_str(of)
    }

    pub fn deserialize<'a, D: Deserializer<'a>>(from: D) -> Result<SqlType, D::Error> {
        String::deserialize(from)?.parse().map_err(serde::de::Error::custom)
    }
}

/// What a `decimal` without digits is in Arrow.
pub const DEFAULT_DECIMAL: (u8, i8) = (38, 10);

impl Column {
    /// Its type in Arrow.
    pub fn arrow_type(&self) -> DataType {
        if self.is_array {
            return DataType::List(Arc::new(Field::new_list_field(self.element_type(), true)));
        }
        self.element_type()
    }

    /// The type of its values, or of the elements of its arrays, in Arrow.
    pub fn element_type(&self) -> DataType {
        match self.sql_type {
            SqlType::TinyInt | SqlType::SmallInt | SqlType::UnsignedTinyInt | SqlType::UnsignedSmallInt => {
                DataType::Int16
            }
            SqlType::Integer | SqlType::UnsignedInt => DataType::Int32,
            SqlType::BigInt | SqlType::UnsignedLong => DataType::Int64,
            SqlType::Float | SqlType::UnsignedFloat => DataType::Float32,
            SqlType::Double | SqlType::UnsignedDouble => DataType::Float64,
            SqlType::Decimal => {
                let (precision, scale) = self.decimal.unwrap_or(DEFAULT_DECIMAL);
                DataType::Decimal128(precision, scale)
            }
            SqlType::Char(_) | SqlType::Varchar => DataType::Utf8,
            SqlType::Binary(_) | SqlType::Varbinary => DataType::Binary,
            SqlType::Boolean => DataType::Boolean,
            SqlType::Date | SqlType::UnsignedDate if self.with_time => DataType::Timestamp(TimeUnit::Microsecond, None),
            SqlType::Date | SqlType::UnsignedDate => DataType::Date32,
            SqlType::Time | SqlType::UnsignedTime => DataType::Time64(TimeUnit::Microsecond),
            SqlType::Timestamp | SqlType::UnsignedTimestamp => DataType::Timestamp(TimeUnit::Microsecond, None),
        }
    }

    /// Its type as messages and EXPLAIN have it.
    pub fn type_name(&self) -> String {
        if self.is_array { format!("{}[]", self.sql_type) } else { self.sql_type.to_string() }
    }

    /// The cell that holds it and nothing else; none for a column of the key, or of a cell with others.
    pub fn cell(&self) -> Option<(&[u8], &[u8])> {
        match &self.place {
            Place::Cell { family, qualifier } => Some((family.as_bytes(), qualifier)),
            Place::Key(_) | Place::Packed { .. } | Place::WrittenAt => None,
        }
    }

    /// The cell that its bytes are in; none for a column of the key.
    pub fn stored_in(&self) -> Option<(&[u8], &[u8])> {
        match &self.place {
            Place::Packed { family, .. } => Some((family.as_bytes(), PACKED_QUALIFIER)),
            Place::Key(_) | Place::Cell { .. } | Place::WrittenAt => self.cell(),
        }
    }
}

/// A table of SQL.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Mapping {
    /// Schema in SQL.
    pub schema: String,
    /// Name in SQL.
    pub name: String,
    /// HBase's name, with its namespace.
    pub hbase_table: String,
    /// What made it known.
    pub kind: Kind,
    /// Its columns, in the order of `SELECT *`.
    pub columns: Vec<Column>,
    /// Values of a salt byte; 0 for none.
    #[serde(default)]
    pub salt_buckets: u8,
    /// What is special of a table of Apache Phoenix's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub phoenix: Option<Phoenix>,
    /// `COMMENT ON TABLE`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub comment: Option<String>,
    /// Counts its changes.
    #[serde(default)]
    pub version: u64,
}

impl Mapping {
    /// Positions of the key's columns, in the key's order.
    pub fn key_columns(&self) -> Vec<usize> {
        let mut key: Vec<(usize, usize)> = Vec::new();
        for (index, column) in self.columns.iter().enumerate() {
            if let Place::Key(at) = column.place {
                key.push((at, index));
            }
        }
        key.sort_unstable();
        key.into_iter().map(|(_, index)| index).collect()
    }

    /// How its row keys are laid out.
    pub fn key_layout(&self) -> KeyLayout {
        let key = self.key_columns().into_iter().map(|index| {
            let column = &self.columns[index];
            let order = if column.descending { Order::Descending } else { Order::Ascending };
            KeyColumn { sql_type: column.sql_type, order, is_array: column.is_array }
        });
        KeyLayout { salt_buckets: self.salt_buckets, columns: key.collect() }
    }

    /// The same with a column that says when a version was written, unless it has one of that name.
    pub fn with_row_start(&self) -> Mapping {
        let mut with = self.clone();
        if self.column(ROW_START).is_none() {
            with.columns.push(Column {
                name: ROW_START.to_owned(),
                sql_type: SqlType::Timestamp,
                max_chars: None,
                decimal: None,
                not_null: true,
                descending: false,
                is_array: false,
                with_time: false,
                place: Place::WrittenAt,
                comment: None,
            });
        }
        with
    }

    /// Its columns in Arrow.
    pub fn arrow_schema(&self) -> SchemaRef {
        let fields = self.columns.iter().map(|column| Field::new(&column.name, column.arrow_type(), !column.not_null));
        Arc::new(Schema::new(fields.collect::<Vec<_>>()))
    }

    /// The cell that each row has, where there is such a cell.
    pub fn empty_cell(&self) -> Option<(Bytes, Bytes)> {
        if let Some(phoenix) = &self.phoenix {
            let family = Bytes::copy_from_slice(phoenix.empty_family.as_bytes());
            return Some((family, Bytes::copy_from_slice(&phoenix.empty_qualifier)));
        }
        if self.kind != Kind::Table {
            return None;
        }
        // Phoenix puts it into the first family.
        let family = self.columns.iter().find_map(Column::cell).map_or(DEFAULT_FAMILY.as_bytes(), |(family, _)| family);
        Some((Bytes::copy_from_slice(family), Bytes::from_static(EMPTY_CELL_QUALIFIER.as_bytes())))
    }

    /// All families that its columns are in.
    pub fn families(&self) -> Vec<String> {
        let mut families: Vec<String> = self
            .columns
            .iter()
            .filter_map(|column| match &column.place {
                Place::Cell { family, .. } | Place::Packed { family, .. } => Some(family.clone()),
                Place::Key(_) | Place::WrittenAt => None,
            })
            .collect();
        families.sort_unstable();
        families.dedup();
        if families.is_empty() {
            families.push(DEFAULT_FAMILY.to_owned());
        }
        families
    }

    /// HBase's name of its table.
    ///
    /// # Errors
    /// A name that HBase does not allow.
    pub fn table_name(&self) -> Result<TableName, SqlError> {
        hbase_name(&self.hbase_table)
    }

    /// The column of a name.
    pub fn column(&self, name: &str) -> Option<(usize, &Column)> {
        self.columns.iter().enumerate().find(|(_, column)| column.name == name)
    }
}

/// HBase's name of a table.
///
/// # Errors
/// A name that HBase does not allow.
pub fn hbase_name(text: &str) -> Result<TableName, SqlError> {
    TableName::parse(text)
        .map_err(|e| SqlError::new(SqlState::INVALID_NAME, format!("\"{text}\" is no name of an HBase table: {e}")))
}

/// The schema of a namespace: HBase's `default` is PostgreSQL's `public`.
pub fn schema_of_namespace(namespace: &str) -> &str {
    if namespace == "default" { "public" } else { namespace }
}

/// The HBase table that a table of this name has unless it says another.
pub fn default_hbase_table(schema: &str, name: &str) -> String {
    if schema == "public" { name.to_owned() } else { format!("{schema}:{name}") }
}
