//! Names: what MOB files are called, and how a store file lists those it refers to.

use model::TableName;
use model::region_info::md5_hex;
use std::collections::{BTreeMap, BTreeSet};

const DAY_MS: i64 = 86_400_000;

/// The name of a new file: the region's first row, the day of its newest cell, a random part, the region.
pub(crate) fn file_name(start_key: &[u8], newest_ms: i64, uuid: &str, region: &str) -> String {
    format!("{}{}{uuid}_{region}", md5_hex(start_key), day(newest_ms))
}

/// The region that wrote a file, by the file's name.
pub(crate) fn region_of(name: &str) -> Option<&str> {
    name.rsplit_once('_').map(|(_, region)| region).filter(|region| !region.is_empty())
}

/// Whether a reference may name such a file: nothing that leads out of the directory.
pub(crate) fn is_legal(name: &str) -> bool {
    !name.is_empty() && name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_' || b == b'-' || b == b'=')
}

/// `yyyyMMdd`, always eight digits: what is before 1970 or after 9999 takes the nearest day. (HBase takes its own time
/// zone; the day is for people.)
fn day(ms: i64) -> String {
    let days = ms.clamp(0, 2_932_896 * DAY_MS).div_euclid(DAY_MS);
    // Civil date from days since 1970-01-01, with years that begin in March.
    let z = days + 719_468;
    let era = z.div_euclid(146_097);
    let of_era = z.rem_euclid(146_097);
    let year_of_era = (of_era - of_era / 1460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month_from_march = (5 * of_year + 2) / 153;
    let day = of_year - (153 * month_from_march + 2) / 5 + 1;
    let month = if month_from_march < 10 { month_from_march + 3 } else { month_from_march - 9 };
    let year = year_of_era + era * 400 + i64::from(month <= 2);
    format!("{year:04}{month:02}{day:02}")
}

/// The MOB files that a store file refers to, by table: `MOB_FILE_REFS` of its file info, `table/name,name//table/name`,
/// or one zero byte for none. Follows: `MobUtils#serializeMobFileRefs`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Refs(BTreeMap<TableName, BTreeSet<String>>);

impl Refs {
    pub(crate) fn add(&mut self, table: &TableName, name: &str) {
        match self.0.get_mut(table) {
            Some(names) if names.contains(name) => {}
            Some(names) => drop(names.insert(name.to_owned())),
            None => drop(self.0.insert(table.clone(), BTreeSet::from([name.to_owned()]))),
        }
    }

    pub(crate) fn to_bytes(&self) -> Vec<u8> {
        if self.0.is_empty() {
            return vec![0];
        }
        let tables: Vec<String> = self
            .0
            .iter()
            .map(|(table, names)| {
                format!("{}/{}", table.as_str(), names.iter().map(String::as_str).collect::<Vec<_>>().join(","))
            })
            .collect();
        tables.join("//").into_bytes()
    }

    /// `None` when the bytes say nothing that is understood.
    pub(crate) fn parse(bytes: &[u8]) -> Option<Refs> {
        let mut refs = Refs::default();
        if bytes.len() <= 1 {
            return Some(refs);
        }
        for part in std::str::from_utf8(bytes).ok()?.split("//") {
            let (table, names) = part.split_once('/')?;
            let table = TableName::parse(table).ok()?;
            for name in names.split(',') {
                if !is_legal(name) {
                    return None;
                }
                refs.add(&table, name);
            }
        }
        Some(refs)
    }

    /// All names, whatever the table.
    pub(crate) fn names(&self) -> impl Iterator<Item = &str> {
        self.0.values().flatten().map(String::as_str)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn days() {
        for (ms, text) in [
            (0, "19700101"),
            (-5, "19700101"),
            (951_782_400_000, "20000229"),
            (1_700_000_000_000, "20231114"),
            (i64::MAX, "99991231"),
        ] {
            assert_eq!(day(ms), text, "{ms}");
        }
    }

    #[test]
    fn names_have_their_parts_at_fixed_places() {
        let uuid = "0123456789abcdef0123456789abcdef";
        let name = file_name(b"", 1_700_000_000_000, uuid, "fedcba98765432100123456789abcdef");
        assert_eq!(name, format!("d41d8cd98f00b204e9800998ecf8427e20231114{uuid}_fedcba98765432100123456789abcdef"));
        assert!(is_legal(&name) && !is_legal("../x") && !is_legal(""));
        assert_eq!(region_of(&name), Some("fedcba98765432100123456789abcdef"));
        assert_eq!(region_of("old"), None);
    }

    #[test]
    fn references_read_back() {
        let table = |name: &str| TableName::parse(name).expect("legal");
        let mut refs = Refs::default();
        assert_eq!(refs.to_bytes(), [0]);
        assert_eq!(Refs::parse(&[0]), Some(Refs::default()));
        refs.add(&table("t"), "b");
        refs.add(&table("t"), "a");
        refs.add(&table("n:u"), "c");
        refs.add(&table("t"), "a");
        let bytes = refs.to_bytes();
        assert_eq!(Refs::parse(&bytes), Some(refs.clone()));
        assert_eq!(refs.names().count(), 3);
        assert!(String::from_utf8_lossy(&bytes).contains("t/a,b"));
        for bad in ["xx", "t,a", "/a", "t/", "t/a,,b", "t/a/b", "a/b,/x"] {
            assert_eq!(Refs::parse(bad.as_bytes()), None, "{bad}");
        }
    }
}
