//! The rows of hbase:quota: whose quotas they are, and how these are written. Follows: `QuotaTableUtil`, `QuotaUtil`.
//!
//! Settings are in family `q`: of a user in row `u.NAME` (column `s`; `s.TABLE` and `s.NAMESPACE:` for what it does there), of a table in
//! `t.TABLE`, of a namespace in `n.NAME`, of region servers in `r.all`. What space is used, and by which snapshots, is in family `u`.

use crate::space::{self, SpaceSnapshot};
use bytes::Bytes;
use model::{FamilyDescriptor, TableDescriptor, TableName};
use proto::{Message, magic, pb};

/// Family of settings.
pub const SETTINGS_FAMILY: &[u8] = b"q";
/// Family of what is used.
pub const USAGE_FAMILY: &[u8] = b"u";
/// Column of settings.
pub const SETTINGS: &[u8] = b"s";
/// Column of how a table stands to its quota of space.
pub const POLICY: &[u8] = b"p";
/// What columns of snapshots' sizes begin with, in a table's row; in a namespace's it is the column of their sum.
pub const SNAPSHOT_SIZE: &[u8] = b"ss";
/// Row of the switch that lets calls exceed their quotas.
pub const EXCEED_THROTTLE_ROW: &[u8] = b"exceedThrottleQuota";
/// The name under which quotas of all region servers are kept.
pub const ALL_REGION_SERVERS: &str = "all";

const USER: &[u8] = b"u.";
const TABLE: &[u8] = b"t.";
const NAMESPACE: &[u8] = b"n.";
const REGION_SERVER: &[u8] = b"r.";
const OF_USER: &[u8] = b"s.";

/// hbase:quota as HBase 2.6 has it.
pub fn descriptor() -> TableDescriptor {
    let family = |name: &'static str| FamilyDescriptor::new(name).with("VERSIONS", "1").with("BLOOMFILTER", "ROW");
    TableDescriptor::new(TableName::quota_table(), [family("q"), family("u")])
}

/// Whose quotas.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Subject {
    /// A user, wherever it has none of its own.
    User(String),
    /// A user in a table.
    UserTable(String, TableName),
    /// A user in a namespace.
    UserNamespace(String, String),
    /// A table.
    Table(TableName),
    /// A namespace.
    Namespace(String),
    /// Region servers: [`ALL_REGION_SERVERS`].
    RegionServer(String),
}

impl Subject {
    /// Its row.
    pub fn row(&self) -> Bytes {
        match self {
            Subject::User(user) | Subject::UserTable(user, _) | Subject::UserNamespace(user, _) => {
                joined(USER, user.as_bytes())
            }
            Subject::Table(table) => table_row(table),
            Subject::Namespace(name) => joined(NAMESPACE, name.as_bytes()),
            Subject::RegionServer(name) => joined(REGION_SERVER, name.as_bytes()),
        }
    }

    /// The column of its settings.
    pub fn qualifier(&self) -> Bytes {
        match self {
            Subject::UserTable(_, table) => joined(OF_USER, table.as_str().as_bytes()),
            Subject::UserNamespace(_, namespace) => joined(OF_USER, format!("{namespace}:").as_bytes()),
            _ => Bytes::from_static(SETTINGS),
        }
    }

    /// Whether its settings have the row for themselves.
    pub fn owns_row(&self) -> bool {
        !matches!(self, Subject::UserTable(..) | Subject::UserNamespace(..))
    }
}

/// The row of a table.
pub fn table_row(table: &TableName) -> Bytes {
    joined(TABLE, table.as_str().as_bytes())
}

/// The table whose row it is.
pub fn table_of_row(row: &[u8]) -> Option<TableName> {
    row.strip_prefix(TABLE).and_then(|name| std::str::from_utf8(name).ok()).and_then(|name| TableName::parse(name).ok())
}

fn joined(prefix: &[u8], name: &[u8]) -> Bytes {
    Bytes::from([prefix, name].concat())
}

/// A cell of hbase:quota that cannot be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "row {row:?} of hbase:quota, column {family}:{qualifier}: {what}; it is left out: set the quota again, or delete the row"
)]
pub struct RowError {
    row: String,
    family: char,
    qualifier: String,
    what: String,
}

/// Quotas as their cell holds them.
pub fn encode(quotas: &pb::Quotas) -> Bytes {
    magic::encode(quotas)
}

/// Quotas in a cell's value.
///
/// # Errors
/// What is wrong with it.
pub fn decode(value: &[u8]) -> Result<pb::Quotas, String> {
    let message = magic::strip_slice(value).ok_or_else(|| "Missing pb magic prefix".to_owned())?;
    pb::Quotas::decode(message).map_err(|error| error.to_string())
}

/// Whose quotas a cell of family `q` holds, and which. `None` for a cell that holds none.
pub fn parse(row: &[u8], qualifier: &[u8], value: &[u8]) -> Option<Result<(Subject, pb::Quotas), RowError>> {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let failed = |what: String| RowError { row: text(row), family: 'q', qualifier: text(qualifier), what };
    let subject = match subject(row, qualifier)? {
        Ok(subject) => subject,
        Err(what) => return Some(Err(failed(what))),
    };
    Some(decode(value).map(|quotas| (subject, quotas)).map_err(failed))
}

fn subject(row: &[u8], qualifier: &[u8]) -> Option<Result<Subject, String>> {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let table = |name: &[u8]| TableName::parse(&text(name)).map_err(|error| error.to_string());
    if let Some(user) = row.strip_prefix(USER) {
        let user = text(user);
        return match qualifier.strip_prefix(OF_USER) {
            None => (qualifier == SETTINGS).then_some(Ok(Subject::User(user))),
            Some(name) => Some(match name.strip_suffix(b":") {
                Some(namespace) => Ok(Subject::UserNamespace(user, text(namespace))),
                None => table(name).map(|table| Subject::UserTable(user, table)),
            }),
        };
    }
    if qualifier != SETTINGS {
        return None;
    }
    if let Some(name) = row.strip_prefix(TABLE) {
        return Some(table(name).map(Subject::Table));
    }
    if let Some(name) = row.strip_prefix(NAMESPACE) {
        return Some(Ok(Subject::Namespace(text(name))));
    }
    row.strip_prefix(REGION_SERVER).map(|name| Ok(Subject::RegionServer(text(name))))
}

/// What a cell of family `u` says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Usage {
    /// How a table stands to its quota, or to that of its namespace.
    Table(TableName, SpaceSnapshot),
    /// Bytes that only this snapshot of the table keeps.
    TableSnapshot(TableName, String, u64),
    /// Bytes that only snapshots of the namespace's tables keep.
    NamespaceSnapshots(String, u64),
}

impl Usage {
    /// Its cell: row, column, value.
    pub fn cell(&self) -> (Bytes, Bytes, Vec<u8>) {
        match self {
            Usage::Table(table, snapshot) => (table_row(table), Bytes::from_static(POLICY), space::encode(snapshot)),
            Usage::TableSnapshot(table, snapshot, bytes) => {
                (table_row(table), joined(SNAPSHOT_SIZE, snapshot.as_bytes()), space::encode_size(*bytes))
            }
            Usage::NamespaceSnapshots(namespace, bytes) => {
                (joined(NAMESPACE, namespace.as_bytes()), Bytes::from_static(SNAPSHOT_SIZE), space::encode_size(*bytes))
            }
        }
    }
}

/// What a cell of family `u` says. `None` for a cell that says nothing of space.
pub fn parse_usage(row: &[u8], qualifier: &[u8], value: &[u8]) -> Option<Result<Usage, RowError>> {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let failed = |what: String| RowError { row: text(row), family: 'u', qualifier: text(qualifier), what };
    if let Some(namespace) = row.strip_prefix(NAMESPACE) {
        let size = (qualifier == SNAPSHOT_SIZE).then(|| space::decode_size(value))?;
        return Some(size.map(|bytes| Usage::NamespaceSnapshots(text(namespace), bytes)).map_err(failed));
    }
    let name = row.strip_prefix(TABLE)?;
    let snapshot = qualifier.strip_prefix(SNAPSHOT_SIZE);
    if qualifier != POLICY && snapshot.is_none() {
        return None;
    }
    let usage = TableName::parse(&text(name)).map_err(|error| error.to_string()).and_then(|table| match snapshot {
        Some(snapshot) => space::decode_size(value).map(|bytes| Usage::TableSnapshot(table, text(snapshot), bytes)),
        None => space::decode(value).map(|snapshot| Usage::Table(table, snapshot)),
    });
    Some(usage.map_err(failed))
}

/// A switch as its cell holds it. Follows: `Bytes#toBytes(boolean)`.
pub fn encode_switch(on: bool) -> Bytes {
    Bytes::from_static(if on { b"\xFF" } else { b"\0" })
}

/// Whether the switch in a cell's value is on.
pub fn decode_switch(value: &[u8]) -> bool {
    value.first().is_some_and(|byte| *byte != 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table(name: &str) -> TableName {
        TableName::parse(name).expect("a legal name")
    }

    #[test]
    fn every_subject_is_found_again_by_its_row_and_column() {
        let subjects = [
            (Subject::User("bob".into()), "u.bob", "s"),
            (Subject::UserTable("bob".into(), table("t1")), "u.bob", "s.t1"),
            (Subject::UserTable("bob".into(), table("ns:t1")), "u.bob", "s.ns:t1"),
            (Subject::UserNamespace("bob".into(), "ns".into()), "u.bob", "s.ns:"),
            (Subject::Table(table("ns:t1")), "t.ns:t1", "s"),
            (Subject::Namespace("ns".into()), "n.ns", "s"),
            (Subject::RegionServer("all".into()), "r.all", "s"),
        ];
        let quotas = pb::Quotas { bypass_globals: Some(true), ..pb::Quotas::default() };
        for (subject, row, qualifier) in subjects {
            assert_eq!((&subject.row()[..], &subject.qualifier()[..]), (row.as_bytes(), qualifier.as_bytes()));
            assert_eq!(parse(row.as_bytes(), qualifier.as_bytes(), &encode(&quotas)), Some(Ok((subject, quotas))));
        }
    }

    #[test]
    fn what_is_no_quota_is_passed_over_and_what_is_damaged_is_told() {
        assert_eq!(parse(EXCEED_THROTTLE_ROW, SETTINGS, b"\xFF"), None);
        assert_eq!(parse(b"t.t1", b"x", b""), None);
        let error = parse(b"t.t1", SETTINGS, b"\x0a\x01").expect("it is a quota's cell").expect_err("without magic");
        assert!(error.to_string().contains("\"t.t1\" of hbase:quota, column q:s: Missing pb magic prefix"), "{error}");
        assert!(parse(b"t..", SETTINGS, b"PBUF").expect("a table's row").is_err(), "the name is illegal");
        assert!(parse(b"u.bob", SETTINGS, b"PBUF\x12\xFF").expect("a user's").is_err(), "the message is cut");
    }

    #[test]
    fn usage_is_found_again_by_its_row_and_column() {
        let snapshot = SpaceSnapshot { violated: None, usage_bytes: 5, limit_bytes: 6 };
        let parsed = |row: &str, qualifier: &[u8], value: &[u8]| parse_usage(row.as_bytes(), qualifier, value);
        let cells = [
            (Usage::Table(table("ns:t"), snapshot), "t.ns:t", "p"),
            (Usage::TableSnapshot(table("t"), "s1".into(), 7), "t.t", "sss1"),
            (Usage::NamespaceSnapshots("ns".into(), 7), "n.ns", "ss"),
        ];
        for (usage, row, qualifier) in cells {
            let (in_row, in_column, value) = usage.cell();
            assert_eq!((&in_row[..], &in_column[..]), (row.as_bytes(), qualifier.as_bytes()));
            assert_eq!(parsed(row, qualifier.as_bytes(), &value), Some(Ok(usage)));
        }
        for nothing in ["u.bob", "r.all", "t.t", "n.ns"] {
            assert_eq!(parsed(nothing, b"x", b""), None, "{nothing}");
        }
        let error = parsed("t.t", POLICY, b"PBUF").expect("of a table").expect_err("it is not so written");
        assert!(error.to_string().contains("column u:p"), "{error}");
    }

    #[test]
    fn switches_are_hbases_booleans() {
        assert_eq!((&encode_switch(true)[..], &encode_switch(false)[..]), (&[255u8][..], &[0u8][..]));
        assert!(decode_switch(&[255]) && !decode_switch(&[0]) && !decode_switch(&[]));
    }
}
