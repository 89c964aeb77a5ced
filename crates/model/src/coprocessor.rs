//! Coprocessors of a table: the attributes that name them, and the endpoints that HBase ships and Basalt answers.
//! Follows: `TableDescriptorBuilder`, `HConstants#CP_HTD_ATTR_VALUE_PATTERN`.

use crate::TableDescriptor;

/// A coprocessor that a table asks for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Coprocessor {
    /// Jar it is to be loaded from; empty for the server's own classes.
    pub path: String,
    /// Java class.
    pub class: String,
    /// Order among the table's coprocessors; `None` where it is not given.
    pub priority: Option<u32>,
}

/// An endpoint that HBase ships and Basalt answers itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Endpoint {
    /// Mutates several rows of one region as one.
    MultiRowMutation,
    /// Folds a column over a range of rows.
    Aggregate,
    /// Deletes what a scan finds.
    BulkDelete,
    /// Counts rows and cells.
    RowCount,
}

impl Endpoint {
    /// Every endpoint.
    pub const ALL: [Endpoint; 4] =
        [Endpoint::MultiRowMutation, Endpoint::Aggregate, Endpoint::BulkDelete, Endpoint::RowCount];

    /// The Java class by which tables and configurations ask for it.
    pub fn class(self) -> &'static str {
        match self {
            Endpoint::MultiRowMutation => "org.apache.hadoop.hbase.coprocessor.MultiRowMutationEndpoint",
            Endpoint::Aggregate => "org.apache.hadoop.hbase.coprocessor.AggregateImplementation",
            Endpoint::BulkDelete => "org.apache.hadoop.hbase.coprocessor.example.BulkDeleteEndpoint",
            Endpoint::RowCount => "org.apache.hadoop.hbase.coprocessor.example.RowCountEndpoint",
        }
    }

    /// The class without its package.
    pub fn simple_name(self) -> &'static str {
        let class = self.class();
        class.rsplit_once('.').map_or(class, |(_, name)| name)
    }

    /// The endpoint of that class.
    pub fn of_class(class: &str) -> Option<Endpoint> {
        Endpoint::ALL.into_iter().find(|endpoint| endpoint.class() == class)
    }
}

impl Coprocessor {
    /// Reads `path|class|priority|arguments`. As in HBase, what does not have that form is no coprocessor.
    pub fn parse(text: &str) -> Option<Coprocessor> {
        let mut parts = text.splitn(4, '|');
        let (path, class, priority) = (parts.next()?, parts.next()?.trim(), parts.next()?.trim());
        if class.is_empty() || !priority.bytes().all(|b| b.is_ascii_digit()) {
            return None;
        }
        let priority = if priority.is_empty() { None } else { Some(priority.parse().ok()?) };
        Some(Coprocessor { path: path.trim().to_owned(), class: class.to_owned(), priority })
    }
}

impl TableDescriptor {
    /// The coprocessors that the table's attributes (`coprocessor$1` and so on) ask for.
    pub fn coprocessors(&self) -> impl Iterator<Item = Coprocessor> {
        self.attributes.iter().filter_map(|(key, value)| {
            let (name, number) = key.split_at_checked("coprocessor$".len())?;
            let named = name.eq_ignore_ascii_case(b"coprocessor$");
            let numbered = !number.is_empty() && number.iter().all(u8::is_ascii_digit);
            if !named || !numbered {
                return None;
            }
            Coprocessor::parse(std::str::from_utf8(value).ok()?)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{FamilyDescriptor, TableName};
    use bytes::Bytes;

    #[test]
    fn attributes_name_coprocessors() {
        let parse = |text| Coprocessor::parse(text).map(|c| (c.path, c.class, c.priority));
        let named = |path: &str, class: &str, priority| Some((path.to_owned(), class.to_owned(), priority));
        assert_eq!(parse("|org.Foo|1001|"), named("", "org.Foo", Some(1001)));
        assert_eq!(parse("hdfs:///a.jar | org.Foo | 7 |k=v,l=w"), named("hdfs:///a.jar", "org.Foo", Some(7)));
        assert_eq!(parse("|org.Foo||"), named("", "org.Foo", None));
        assert_eq!(parse("|org.Foo|"), named("", "org.Foo", None));
        for malformed in ["", "org.Foo", "|org.Foo", "| |1|", "|org.Foo|-1|", "|org.Foo|high|"] {
            assert_eq!(parse(malformed), None, "{malformed:?}");
        }

        let meta: Vec<_> = TableDescriptor::meta().coprocessors().collect();
        assert_eq!(meta.len(), 1);
        assert_eq!(Endpoint::of_class(&meta[0].class), Some(Endpoint::MultiRowMutation));
        let mut table = TableDescriptor::new(TableName::parse("t").unwrap(), [FamilyDescriptor::new("f")]);
        for (key, class) in
            [("coprocessor$1", "A"), ("COPROCESSOR$22", "B"), ("coprocessor$", "C"), ("coprocessor", "D")]
        {
            table.attributes.insert(Bytes::from(key), Bytes::from(format!("|{class}|1|")));
        }
        let mut classes: Vec<_> = table.coprocessors().map(|c| c.class).collect();
        classes.sort();
        assert_eq!(classes, ["A", "B"]);
    }
}
