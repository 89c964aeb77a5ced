//! Tables and views that Apache Phoenix made, from its catalog: `IMPORT FOREIGN SCHEMA ... FROM SERVER phoenix`.
//!
//! Follows: `MetaDataEndpointImpl#getTable`, `PTableImpl`, `ViewUtil#addDerivedColumnsAndIndexesFromAncestors`, `SchemaUtil#getEmptyColumnFamily`.

use std::collections::BTreeMap;

use client::{Row, ScanOptions};
use datafusion::sql::sqlparser::ast::{SetExpr, Statement};
use datafusion::sql::sqlparser::dialect::PostgreSqlDialect;
use datafusion::sql::sqlparser::parser::Parser;
use model::{Scan, TableName};
use types::{SqlType, Value};

use crate::catalog::Catalog;
use crate::error::{SqlError, SqlState};
use crate::mapping::{Column, DEFAULT_FAMILY, EMPTY_CELL_QUALIFIER, Kind, Mapping, Phoenix, Place, hbase_name};

/// Phoenix's table of tables, where schemas are namespaces and where they are not.
const CATALOGS: [&str; 2] = ["SYSTEM:CATALOG", "SYSTEM.CATALOG"];
/// The catalog's only family.
const FAMILY: &[u8] = b"0";
/// Encoded qualifiers of columns are counted from here on: those before are Phoenix's own.
const FIRST_ENCODED: usize = 11;
/// The qualifier of the cell that each row has, where qualifiers are encoded.
const ENCODED_EMPTY: [u8; 4] = [0; 4];
/// `PTable.LinkType`.
const PHYSICAL_TABLE: u8 = 2;
const PARENT_TABLE: u8 = 3;
const INDEX_TABLE: u8 = 1;
const EXCLUDED_COLUMN: u8 = 5;
/// `PTable.ViewType`: a view over a table that Phoenix did not make.
const MAPPED: u8 = 1;
/// `SortOrder`.
const DESCENDING: i64 = 1;
/// `ImmutableStorageScheme`: a cell for each column.
const ONE_CELL_PER_COLUMN: i64 = 1;
/// Types of arrays are those of their elements, and so much.
const ARRAYS: i64 = 3000;
const ARRAY_CODES: std::ops::Range<i64> = ARRAYS - 10..ARRAYS + 100;

/// A schema's and a table's name in Phoenix; the schema may be empty.
type Name = (String, String);

/// A row of the catalog that is about a column.
#[derive(Debug, Default, Clone)]
struct ColumnRow {
    name: String,
    family: Option<String>,
    data_type: Option<i64>,
    size: Option<i64>,
    digits: Option<i64>,
    /// Place in the key, from 1 on.
    key_seq: Option<i64>,
    /// Place among all columns.
    ordinal: i64,
    is_nullable: bool,
    is_descending: bool,
    qualifier: Option<Vec<u8>>,
}

/// What the catalog says of a table.
#[derive(Debug, Default, Clone)]
struct Entry {
    /// `u`, `v`, `i`, `s`: a table, view, index, or one of Phoenix's own.
    table_type: u8,
    salt_buckets: u8,
    encoding_scheme: i64,
    storage_scheme: i64,
    is_namespace_mapped: bool,
    is_transactional: bool,
    /// False in tables from before 4.8, whose descending texts end otherwise.
    is_order_optimizable: bool,
    default_family: Option<String>,
    view_type: u8,
    view_statement: Option<String>,
    columns: Vec<ColumnRow>,
    indexes: Vec<String>,
    physical: Option<String>,
    parent: Option<Name>,
    excluded: Vec<String>,
}

/// Whether a table is wanted, by its name here.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Selection {
    /// All of the schema.
    All,
    /// `LIMIT TO (...)`.
    Only(Vec<String>),
    /// `EXCEPT (...)`.
    Except(Vec<String>),
}

impl Selection {
    fn takes(&self, name: &str) -> bool {
        let has = |names: &[String]| names.iter().any(|known| known == name);
        match self {
            Selection::All => true,
            Selection::Only(names) => has(names),
            Selection::Except(names) => !has(names),
        }
    }
}

/// Makes the tables and views of one of Phoenix's schemas known; gives back what the client is to be told besides. Those that were imported before
/// are described anew.
///
/// # Errors
/// There is no catalog of Phoenix's, or no such schema in it; a name is taken; the cluster does not answer.
pub async fn import(
    catalog: &Catalog,
    remote_schema: &str,
    selection: &Selection,
    local_schema: &str,
) -> Result<Vec<String>, SqlError> {
    let entries = read(catalog).await?;
    let phoenix_schema = if remote_schema == "public" { "" } else { remote_schema };
    let is_it = |schema: &str| schema == phoenix_schema || folded(schema) == phoenix_schema;
    let names: Vec<&Name> = entries.keys().filter(|(schema, _)| is_it(schema)).collect();
    if names.is_empty() {
        let message = format!("Phoenix has no tables in a schema \"{remote_schema}\"");
        return Err(SqlError::new("3F000", message));
    }
    if let Selection::Only(wanted) = selection {
        let missing = wanted.iter().find(|wanted| !names.iter().any(|(_, name)| folded(name) == **wanted));
        if let Some(missing) = missing {
            let message = format!("Phoenix has no table \"{missing}\" in schema \"{remote_schema}\"");
            return Err(SqlError::new(SqlState::UNDEFINED_TABLE, message));
        }
    }
    let mut notices = Vec::new();
    for name in names {
        let local = folded(&name.1);
        if !selection.takes(&local) {
            continue;
        }
        let entry = &entries[name];
        if !matches!(entry.table_type, b'u' | b'v') {
            continue;
        }
        let mapping = match mapping_of(&entries, name, local_schema, &local, &mut notices) {
            Ok(mapping) => mapping,
            Err(why) => {
                notices.push(format!("\"{local}\" is left out: {why}"));
                continue;
            }
        };
        if !catalog.hbase_has(&mapping.table_name()?).await? {
            notices.push(format!("\"{local}\" is left out: HBase has no table {}", mapping.hbase_table));
            continue;
        }
        match catalog.described(local_schema, &local) {
            Some(known) if known.mapping.phoenix.is_some() => {
                let comment = known.mapping.comment.clone();
                catalog.replace(&known.mapping, &Mapping { comment, ..mapping }).await?;
            }
            _ => catalog.add(&mapping).await?,
        }
    }
    Ok(notices)
}

/// A name that needs no quotes in Phoenix needs none here: there it is upper case, here lower case.
fn folded(name: &str) -> String {
    let is_plain = name.chars().all(|c| c.is_ascii_uppercase() || c.is_ascii_digit() || c == '_');
    if is_plain { name.to_ascii_lowercase() } else { name.to_owned() }
}

/// All of the catalog but what belongs to tenants.
async fn read(catalog: &Catalog) -> Result<BTreeMap<Name, Entry>, SqlError> {
    let mut found: Option<TableName> = None;
    for name in CATALOGS {
        let name = hbase_name(name)?;
        if catalog.hbase_has(&name).await? {
            found = Some(name);
            break;
        }
    }
    let Some(name) = found else {
        let message = "there is no table SYSTEM.CATALOG: Apache Phoenix has not been used on this cluster";
        return Err(SqlError::new(SqlState::UNDEFINED_TABLE, message));
    };
    let table = catalog.connection().table(&name);
    let mut scanner = table.scan(Scan::default(), ScanOptions::default());
    let mut entries = BTreeMap::new();
    while let Some(row) = scanner.next().await? {
        take(&row, &mut entries);
    }
    // Rows that are no table's: sequences of views, and what was left behind.
    entries.retain(|_, entry: &mut Entry| entry.table_type != 0);
    Ok(entries)
}

/// Takes a row of the catalog in: its key is tenant, schema, table, column, family, with 0x00 between them.
fn take(row: &Row, entries: &mut BTreeMap<Name, Entry>) {
    let mut parts = row.row().split(|byte| *byte == 0).map(|part| String::from_utf8_lossy(part).into_owned());
    let mut part = || parts.next().unwrap_or_default();
    let (tenant, schema, table, column, family) = (part(), part(), part(), part(), part());
    if !tenant.is_empty() || table.is_empty() {
        return;
    }
    let bytes = |name: &str| row.value(FAMILY, name.as_bytes()).filter(|value| !value.is_empty());
    let integer = |name: &str| integer(bytes(name)?);
    let text = |name: &str| bytes(name).map(|value| String::from_utf8_lossy(value).into_owned());
    let flag = |name: &str| bytes(name).is_some_and(|value| value == [1]);
    let entry =
        entries.entry((schema, table)).or_insert_with(|| Entry { is_order_optimizable: true, ..Entry::default() });
    if !column.is_empty() {
        entry.columns.push(ColumnRow {
            name: column,
            family: (!family.is_empty()).then_some(family),
            data_type: integer("DATA_TYPE"),
            size: integer("COLUMN_SIZE"),
            digits: integer("DECIMAL_DIGITS"),
            key_seq: integer("KEY_SEQ"),
            ordinal: integer("ORDINAL_POSITION").unwrap_or(0),
            is_nullable: integer("NULLABLE") != Some(0),
            is_descending: integer("SORT_ORDER") == Some(DESCENDING),
            qualifier: bytes("COLUMN_QUALIFIER").map(<[u8]>::to_vec),
        });
        if bytes("LINK_TYPE") == Some(&[EXCLUDED_COLUMN]) {
            let excluded = entry.columns.pop();
            entry.excluded.extend(excluded.map(|column| column.name));
        }
        return;
    }
    if let Some(link) = bytes("LINK_TYPE").filter(|_| !family.is_empty()) {
        match link {
            [INDEX_TABLE] => entry.indexes.push(family),
            [PHYSICAL_TABLE] => entry.physical = Some(family),
            [PARENT_TABLE] => entry.parent = Some(name_of(&family)),
            _ => {}
        }
        return;
    }
    let Some([table_type, ..]) = bytes("TABLE_TYPE") else { return };
    if family.is_empty() {
        entry.table_type = *table_type;
        entry.salt_buckets = integer("SALT_BUCKETS").and_then(|salt| u8::try_from(salt).ok()).unwrap_or(0);
        entry.encoding_scheme = integer("ENCODING_SCHEME").unwrap_or(0);
        entry.storage_scheme = integer("IMMUTABLE_STORAGE_SCHEME").unwrap_or(ONE_CELL_PER_COLUMN);
        entry.is_namespace_mapped = flag("IS_NAMESPACE_MAPPED");
        entry.is_transactional = flag("TRANSACTIONAL") || bytes("TRANSACTION_PROVIDER").is_some();
        entry.is_order_optimizable = flag("ROW_KEY_ORDER_OPTIMIZABLE");
        entry.default_family = text("DEFAULT_COLUMN_FAMILY");
        entry.view_type = bytes("VIEW_TYPE").and_then(|value| value.first().copied()).unwrap_or(0);
        entry.view_statement = text("VIEW_STATEMENT");
    }
}

/// A table's name as links have it: `SCHEMA.TABLE`.
fn name_of(link: &str) -> Name {
    match link.split_once('.') {
        Some((schema, table)) => (schema.to_owned(), table.to_owned()),
        None => (String::new(), link.to_owned()),
    }
}

/// A whole number of one of Phoenix's signed types.
fn integer(bytes: &[u8]) -> Option<i64> {
    let of = match bytes.len() {
        1 => SqlType::TinyInt,
        2 => SqlType::SmallInt,
        4 => SqlType::Integer,
        8 => SqlType::BigInt,
        _ => return None,
    };
    match of.decode(bytes) {
        Ok(Some(Value::Int(value))) => Some(value),
        _ => None,
    }
}

/// How the columns of one of Phoenix's tables lie in HBase's rows.
///
/// # Errors
/// Why it cannot be read.
fn mapping_of(
    entries: &BTreeMap<Name, Entry>,
    name: &Name,
    schema: &str,
    local: &str,
    notices: &mut Vec<String>,
) -> Result<Mapping, String> {
    let entry = &entries[name];
    let full_name = if name.0.is_empty() { name.1.clone() } else { format!("{}.{}", name.0, name.1) };
    let is_mapped = entry.table_type == b'v' && entry.view_type == MAPPED;
    // The table whose rows a view shows says how they are stored.
    let physical = match &entry.physical {
        Some(link) if entry.table_type == b'v' && !is_mapped => {
            let of = name_of(&link.replacen(':', ".", 1));
            entries
                .get(&of)
                .map(|entry| (of, entry))
                .ok_or_else(|| format!("its table {link} is not in the catalog"))?
        }
        _ => (name.clone(), entry),
    };
    let ((physical_schema, physical_table), stored) = physical;
    if stored.is_transactional {
        return Err("its rows are of transactions, which only Phoenix can tell apart".to_owned());
    }
    let separator = if stored.is_namespace_mapped { ':' } else { '.' };
    let hbase_table = match physical_schema.as_str() {
        "" => physical_table,
        schema => format!("{schema}{separator}{physical_table}"),
    };
    let rows = columns_of(entries, name, 0)?;
    let mut columns = Vec::with_capacity(rows.len());
    let mut key_columns = 0;
    let mut in_order: Vec<&ColumnRow> = rows.iter().filter(|row| row.key_seq.is_some()).collect();
    in_order.sort_by_key(|row| row.key_seq);
    let key_place = |row: &ColumnRow| in_order.iter().position(|key| key.name == row.name);
    for row in &rows {
        let is_array = row.data_type.is_some_and(|code| ARRAY_CODES.contains(&code));
        let sql_type = match sql_type(row) {
            Ok(sql_type) => sql_type,
            Err(why) if row.key_seq.is_some() => return Err(format!("column {} of its key {why}", row.name)),
            Err(why) => {
                notices.push(format!("column \"{}\" of \"{local}\" is left out: it {why}", folded(&row.name)));
                continue;
            }
        };
        let place = match row.key_seq.and_then(|_| key_place(row)) {
            Some(at) => {
                key_columns += 1;
                let is_ended = is_array || sql_type.fixed_width().is_none();
                if is_ended && row.is_descending && !stored.is_order_optimizable {
                    return Err(format!("its key column {} is of a form that Phoenix 4.7 wrote", row.name));
                }
                Place::Key(at)
            }
            None => cell_of(row, stored)?,
        };
        columns.push(Column {
            name: folded(&row.name),
            sql_type,
            max_chars: (sql_type == SqlType::Varchar).then_some(row.size).flatten().and_then(|n| u32::try_from(n).ok()),
            decimal: decimal_of(sql_type, row),
            not_null: row.key_seq.is_some() && !row.is_nullable,
            descending: row.is_descending && row.key_seq.is_some(),
            is_array,
            with_time: matches!(sql_type, SqlType::Date | SqlType::UnsignedDate),
            place,
            comment: None,
        });
    }
    if key_columns == 0 {
        return Err("it has no primary key".to_owned());
    }
    let condition = match &entry.view_statement {
        Some(statement) if entry.table_type == b'v' => condition_of(statement)?,
        _ => None,
    };
    let phoenix = (!is_mapped).then(|| {
        // Views have the indexes of their table, too.
        let mut indexes = entry.indexes.clone();
        indexes.extend(stored.indexes.iter().filter(|index| !entry.indexes.contains(index)).cloned());
        let encoded = stored.encoding_scheme > 0;
        Phoenix {
            name: full_name.clone(),
            empty_family: first_family(stored),
            empty_qualifier: if encoded { ENCODED_EMPTY.to_vec() } else { EMPTY_CELL_QUALIFIER.into() },
            indexes,
            condition,
        }
    });
    Ok(Mapping {
        schema: schema.to_owned(),
        name: local.to_owned(),
        hbase_table,
        kind: Kind::View,
        columns,
        salt_buckets: stored.salt_buckets,
        phoenix,
        comment: None,
        version: 1,
    })
}

/// The family of the cell that each row has: that of the first column which is in one.
fn first_family(stored: &Entry) -> String {
    let mut in_cells: Vec<&ColumnRow> = stored.columns.iter().filter(|row| row.family.is_some()).collect();
    in_cells.sort_by_key(|row| row.ordinal);
    let first = in_cells.first().and_then(|row| row.family.clone());
    first.or_else(|| stored.default_family.clone()).unwrap_or_else(|| DEFAULT_FAMILY.to_owned())
}

/// Views on views are at most so deep.
const MOST_ANCESTORS: usize = 100;

/// A table's columns in their order: of a view, those of what it is a view of come first.
fn columns_of(entries: &BTreeMap<Name, Entry>, name: &Name, depth: usize) -> Result<Vec<ColumnRow>, String> {
    let entry = entries.get(name).ok_or_else(|| format!("{}.{} is not in the catalog", name.0, name.1))?;
    if depth > MOST_ANCESTORS {
        return Err("it is a view of itself".to_owned());
    }
    let mut columns = Vec::new();
    if entry.table_type == b'v' && entry.view_type != MAPPED {
        let physical = || entry.physical.as_ref().map(|link| name_of(&link.replacen(':', ".", 1)));
        let parent = entry.parent.clone().or_else(physical).ok_or("the catalog does not say what it is a view of")?;
        columns = columns_of(entries, &parent, depth + 1)?;
        columns.retain(|column| !entry.excluded.contains(&column.name));
    }
    let mut own = entry.columns.clone();
    own.sort_by_key(|row| row.ordinal);
    for row in own {
        // Before 4.15, views had rows for all of their columns.
        match columns.iter_mut().find(|known| known.name == row.name && known.family == row.family) {
            Some(known) => *known = row,
            None => columns.push(row),
        }
    }
    Ok(columns)
}

fn sql_type(row: &ColumnRow) -> Result<SqlType, String> {
    let width = |most: &str| {
        let width = row.size.and_then(|size| u32::try_from(size).ok()).filter(|width| *width > 0);
        width.ok_or_else(|| format!("is a {most} without a length"))
    };
    let code = row.data_type.ok_or("has no type")?;
    Ok(match if ARRAY_CODES.contains(&code) { code - ARRAYS } else { code } {
        -6 => SqlType::TinyInt,
        5 => SqlType::SmallInt,
        4 => SqlType::Integer,
        -5 => SqlType::BigInt,
        11 => SqlType::UnsignedTinyInt,
        13 => SqlType::UnsignedSmallInt,
        9 => SqlType::UnsignedInt,
        10 => SqlType::UnsignedLong,
        6 => SqlType::Float,
        8 => SqlType::Double,
        14 => SqlType::UnsignedFloat,
        15 => SqlType::UnsignedDouble,
        3 => SqlType::Decimal,
        16 => SqlType::Boolean,
        91 => SqlType::Date,
        92 => SqlType::Time,
        93 => SqlType::Timestamp,
        19 => SqlType::UnsignedDate,
        18 => SqlType::UnsignedTime,
        20 => SqlType::UnsignedTimestamp,
        12 => SqlType::Varchar,
        1 => SqlType::Char(width("CHAR")?),
        -3 => SqlType::Varbinary,
        -2 => SqlType::Binary(width("BINARY")?),
        code => return Err(format!("is of Phoenix's type {code}")),
    })
}

fn decimal_of(sql_type: SqlType, row: &ColumnRow) -> Option<(u8, i8)> {
    if sql_type != SqlType::Decimal {
        return None;
    }
    let precision = u8::try_from(row.size?).ok().filter(|precision| (1..=38).contains(precision))?;
    Some((precision, i8::try_from(row.digits.unwrap_or(0)).ok()?))
}

/// Where a column outside the key is.
fn cell_of(row: &ColumnRow, stored: &Entry) -> Result<Place, String> {
    let family = row.family.clone().or_else(|| stored.default_family.clone());
    let family = family.unwrap_or_else(|| DEFAULT_FAMILY.to_owned());
    let qualifier = row.qualifier.clone().unwrap_or_else(|| row.name.clone().into_bytes());
    if stored.storage_scheme <= ONE_CELL_PER_COLUMN {
        return Ok(Place::Cell { family, qualifier });
    }
    let wrong = || format!("its column {} has no place in the cell of its family", row.name);
    let number = decoded(&qualifier, stored.encoding_scheme).ok_or_else(wrong)?;
    let at = number.checked_sub(FIRST_ENCODED).ok_or_else(wrong)? + 1;
    Ok(Place::Packed { family, at })
}

/// The number of an encoded qualifier. Follows: `PTable.QualifierEncodingScheme`.
fn decoded(qualifier: &[u8], scheme: i64) -> Option<usize> {
    // Short ones are counted from the lowest number of their width on.
    let number = match (scheme, qualifier) {
        (1, [a]) => i64::from(*a) - 128,
        (2, [a, b]) => i64::from(u16::from_be_bytes([*a, *b])) - (1 << 15),
        (3, [a, b, c]) => i64::from(u32::from_be_bytes([0, *a, *b, *c])),
        (4, [a, b, c, d]) => i64::from(i32::from_be_bytes([*a, *b, *c, *d])),
        _ => return None,
    };
    usize::try_from(number).ok()
}

/// What stands behind WHERE in a view's statement.
fn condition_of(statement: &str) -> Result<Option<String>, String> {
    let parsed = Parser::parse_sql(&PostgreSqlDialect {}, statement);
    let unread = |why: String| format!("its statement cannot be read ({why}): {statement}");
    let statements = parsed.map_err(|e| unread(e.to_string()))?;
    let [Statement::Query(query)] = &statements[..] else { return Err(unread("it is no query".to_owned())) };
    let SetExpr::Select(select) = query.body.as_ref() else { return Err(unread("it is no SELECT".to_owned())) };
    Ok(select.selection.as_ref().map(ToString::to_string))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn encoded_qualifiers_are_numbers() {
        assert_eq!(decoded(b"\x80\x0b", 2), Some(11));
        assert_eq!(decoded(b"\x8b", 1), Some(11));
        assert_eq!(decoded(b"\0\0\x0b", 3), Some(11));
        assert_eq!(decoded(b"\0\0\0\x0b", 4), Some(11));
        assert_eq!(decoded(b"\x00\x0b", 2), None);
        assert_eq!(decoded(b"\x0b", 2), None);
    }

    #[test]
    fn names_are_folded_as_each_side_folds_them() {
        assert_eq!([folded("ORDERS"), folded("Note"), folded("T_1")], ["orders", "Note", "t_1"]);
        assert_eq!(name_of("SHOP.ORDERS"), ("SHOP".to_owned(), "ORDERS".to_owned()));
        assert_eq!(name_of("PLAIN"), (String::new(), "PLAIN".to_owned()));
    }

    #[test]
    fn a_views_condition_is_what_stands_behind_where() {
        let of = |statement| condition_of(statement);
        assert_eq!(of("SELECT * FROM \"SHOP\".\"ORDERS\" WHERE HOST = 'EU'"), Ok(Some("HOST = 'EU'".to_owned())));
        assert_eq!(of("SELECT * FROM T"), Ok(None));
        assert!(of("DELETE FROM T").is_err());
        assert!(of("not SQL").is_err());
    }
}
