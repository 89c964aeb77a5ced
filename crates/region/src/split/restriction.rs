//! The part of a row at which regions may be cut, so that rows that begin alike stay together.
//!
//! Follows: `KeyPrefixRegionSplitPolicy`, `DelimitedKeyPrefixRegionSplitPolicy`, `RegionSplitRestriction`.

use crate::settings::SplitRestriction;
use model::TableDescriptor;

const TYPE: &str = crate::settings::SPLIT_RESTRICTION_TYPE.key;
const LENGTH: &str = crate::settings::SPLIT_RESTRICTION_LENGTH.key;
const DELIMITER: &str = crate::settings::SPLIT_RESTRICTION_DELIMITER.key;

/// How much of a row counts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Prefix {
    /// So many bytes.
    Length(usize),
    /// What is before the first of these; all, where there is none.
    Before(Vec<u8>),
}

impl Prefix {
    /// What KeyPrefixRegionSplitPolicy finds in a table's attributes; nothing, when they do not say.
    pub(super) fn of_key_prefix_policy(table: &TableDescriptor) -> Option<Prefix> {
        let key = "KeyPrefixRegionSplitPolicy.prefix_length";
        let former = "prefix_split_key_policy.prefix_length";
        Prefix::of_length(table, key, table.value(key).or_else(|| table.value(former)))
    }

    /// What DelimitedKeyPrefixRegionSplitPolicy finds there.
    pub(super) fn of_delimited_policy(table: &TableDescriptor) -> Option<Prefix> {
        let key = "DelimitedKeyPrefixRegionSplitPolicy.delimiter";
        Prefix::of_delimiter(table, key, table.value(key))
    }

    /// What the table, or else the site, says of restrictions.
    pub(super) fn of_restriction(table: &TableDescriptor, site: &SplitRestriction) -> Option<Prefix> {
        let of = |key: &str, site: &Option<String>| table.value(key).map(str::to_owned).or_else(|| site.clone());
        match of(TYPE, &site.kind).as_deref().unwrap_or("None") {
            "None" => None,
            "KeyPrefix" => Prefix::of_length(table, LENGTH, of(LENGTH, &site.prefix_length).as_deref()),
            "DelimitedKeyPrefix" => Prefix::of_delimiter(table, DELIMITER, of(DELIMITER, &site.delimiter).as_deref()),
            unknown => {
                tracing::warn!("table {}: there is no split restriction {unknown}; none is set", table.name);
                None
            }
        }
    }

    fn of_length(table: &TableDescriptor, key: &str, said: Option<&str>) -> Option<Prefix> {
        let length = said.and_then(|text| text.parse::<i32>().ok()).and_then(|length| usize::try_from(length).ok());
        let prefix = length.filter(|length| *length > 0).map(Prefix::Length);
        Prefix::or_told(table, key, said, prefix)
    }

    fn of_delimiter(table: &TableDescriptor, key: &str, said: Option<&str>) -> Option<Prefix> {
        let prefix = said.filter(|text| !text.is_empty()).map(|text| Prefix::Before(text.as_bytes().to_vec()));
        Prefix::or_told(table, key, said, prefix)
    }

    fn or_told(table: &TableDescriptor, key: &str, said: Option<&str>, prefix: Option<Prefix>) -> Option<Prefix> {
        if prefix.is_none() {
            let said = said.unwrap_or("not given");
            tracing::warn!("table {}: {key} is {said}: its regions are split at any row", table.name);
        }
        prefix
    }

    /// The part of `row` that counts.
    pub(super) fn of<'r>(&self, row: &'r [u8]) -> &'r [u8] {
        match self {
            Prefix::Length(length) => &row[..row.len().min(*length)],
            Prefix::Before(delimiter) => {
                let at = row.windows(delimiter.len()).position(|part| part == delimiter);
                at.map_or(row, |at| &row[..at])
            }
        }
    }
}
