//! Names of tables and namespaces, and what is legal in them. Follows: `TableName`, `ColumnFamilyDescriptorBuilder`.

use std::fmt;
use std::sync::Arc;

/// A name that HBase would refuse.
#[derive(Debug, Clone, thiserror::Error, PartialEq, Eq)]
#[error("{0}")]
pub struct NameError(pub String);

/// `namespace:qualifier`. Cheap to clone.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TableName {
    /// `qualifier` for the default namespace, else `namespace:qualifier`.
    full: Arc<str>,
    /// Where the qualifier starts in `full`.
    qualifier_at: usize,
}

/// Name of the default namespace.
pub const DEFAULT_NAMESPACE: &str = "default";
/// Name of the directory of edits from logs beside a region's families: no family may have it.
pub const RECOVERED_EDITS: &str = "recovered.edits";
/// Name of HBase's own namespace.
pub const SYSTEM_NAMESPACE: &str = "hbase";

impl TableName {
    /// hbase:meta.
    pub fn meta() -> TableName {
        TableName { full: Arc::from("hbase:meta"), qualifier_at: 6 }
    }

    /// hbase:namespace.
    pub fn namespace_table() -> TableName {
        TableName { full: Arc::from("hbase:namespace"), qualifier_at: 6 }
    }

    /// hbase:quota.
    pub fn quota_table() -> TableName {
        TableName { full: Arc::from("hbase:quota"), qualifier_at: 6 }
    }

    /// hbase:slowlog.
    pub fn slowlog_table() -> TableName {
        TableName { full: Arc::from("hbase:slowlog"), qualifier_at: 6 }
    }

    /// The table `qualifier` in `namespace`, both checked.
    ///
    /// # Errors
    /// HBase's sentence about what is illegal.
    pub fn of(namespace: &str, qualifier: &str) -> Result<TableName, NameError> {
        check_namespace(namespace)?;
        check_qualifier(qualifier)?;
        Ok(if namespace == DEFAULT_NAMESPACE {
            TableName { full: Arc::from(qualifier), qualifier_at: 0 }
        } else {
            TableName { full: Arc::from(format!("{namespace}:{qualifier}")), qualifier_at: namespace.len() + 1 }
        })
    }

    /// `qualifier` or `namespace:qualifier`.
    ///
    /// # Errors
    /// HBase's sentence about what is illegal.
    pub fn parse(text: &str) -> Result<TableName, NameError> {
        match text.split_once(':') {
            Some((namespace, qualifier)) => TableName::of(namespace, qualifier),
            None => TableName::of(DEFAULT_NAMESPACE, text),
        }
    }

    /// The namespace.
    pub fn namespace(&self) -> &str {
        if self.qualifier_at == 0 { DEFAULT_NAMESPACE } else { &self.full[..self.qualifier_at - 1] }
    }

    /// The name within the namespace.
    pub fn qualifier(&self) -> &str {
        &self.full[self.qualifier_at..]
    }

    /// As HBase prints it: without the namespace when that is the default one.
    pub fn as_str(&self) -> &str {
        &self.full
    }

    /// Whether this is hbase:meta.
    pub fn is_meta(&self) -> bool {
        &*self.full == "hbase:meta"
    }

    /// Whether the table is HBase's own.
    pub fn is_system(&self) -> bool {
        self.namespace() == SYSTEM_NAMESPACE
    }
}

impl fmt::Display for TableName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.full)
    }
}

impl fmt::Debug for TableName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&*self.full, f)
    }
}

/// Whether `name` may be a namespace: letters, digits, `_`.
///
/// # Errors
/// HBase's sentence. Follows: `TableName#isLegalNamespaceName`.
pub fn check_namespace(name: &str) -> Result<(), NameError> {
    if let Some((at, c)) = name.char_indices().find(|(_, c)| !(c.is_alphanumeric() || *c == '_')) {
        return Err(NameError(format!(
            "Illegal character <{c}> at {at}. Namespaces may only contain 'alphanumeric characters' from any language and digits: {name}"
        )));
    }
    if name.is_empty() {
        return Err(NameError("Namespace name must not be empty".into()));
    }
    if name == "zookeeper" {
        return Err(NameError("Namespace name cannot be 'zookeeper'".into()));
    }
    Ok(())
}

/// Whether `name` may be a table's qualifier: letters, digits, `_`, `-`, `.`, not beginning with `.` or `-`.
///
/// # Errors
/// HBase's sentence. Follows: `TableName#isLegalTableQualifierName`.
pub fn check_qualifier(name: &str) -> Result<(), NameError> {
    if name.is_empty() {
        return Err(NameError("Table qualifier must not be empty".into()));
    }
    if name.starts_with(['.', '-']) {
        return Err(NameError(format!(
            "Illegal first character <{}> at 0. User-space table qualifiers can only start with 'alphanumeric characters' from any language: {name}",
            name.chars().next().unwrap_or_default()
        )));
    }
    if let Some((at, c)) = name.char_indices().find(|(_, c)| !(c.is_alphanumeric() || matches!(c, '_' | '-' | '.'))) {
        return Err(NameError(format!(
            "Illegal character code:{}, <{c}> at {at}. User-space table qualifiers may only contain 'alphanumeric characters' and digits: {name}",
            c as u32
        )));
    }
    if name == "zookeeper" {
        return Err(NameError("Table name cannot be 'zookeeper'".into()));
    }
    Ok(())
}

/// Whether `name` may be a column family.
///
/// # Errors
/// HBase's sentence. Follows: `ColumnFamilyDescriptorBuilder#isLegalColumnFamilyName`.
pub fn check_family(name: &[u8]) -> Result<(), NameError> {
    let shown = String::from_utf8_lossy(name);
    if name.is_empty() {
        return Err(NameError("Column Family name can not be empty".into()));
    }
    if name[0] == b'.' {
        return Err(NameError(format!("Column Family names cannot start with a period: {shown}")));
    }
    if let Some(c) = name.iter().find(|c| c.is_ascii_control() || matches!(c, b':' | b'\\' | b'/')) {
        return Err(NameError(format!(
            "Illegal character <{c}>. Column Family names cannot contain control characters or colons: {shown}"
        )));
    }
    if name == RECOVERED_EDITS.as_bytes() {
        return Err(NameError("Column Family name cannot be: recovered.edits".into()));
    }
    if name.len() > cell::MAX_FAMILY_LENGTH {
        return Err(NameError(format!("Column Family name is longer than {} bytes: {shown}", cell::MAX_FAMILY_LENGTH)));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_judged_as_hbase_does() {
        for good in ["t", "ns:t", "t-1.x_y", "größe", "hbase:meta"] {
            assert!(TableName::parse(good).is_ok(), "{good}");
        }
        for bad in ["", ".t", "-t", "a b", "ns:", ":t", "a:b:c", "t/x", "zookeeper", "n-s:t"] {
            assert!(TableName::parse(bad).is_err(), "{bad}");
        }
        let t = TableName::parse("default:t").expect("legal");
        assert_eq!((t.as_str(), t.namespace(), t.qualifier()), ("t", "default", "t"));
        for bad in [&b""[..], b".f", b"a:b", b"a/b", b"a\x01", b"recovered.edits", &[b'x'; 128]] {
            assert!(check_family(bad).is_err(), "{bad:?}");
        }
    }
}
