//! What names in `archive` and `oldWALs` mean. A name that nothing here knows stays where it is.

use model::TableName;
use regex::Regex;
use std::sync::LazyLock;

/// Length of a store file's name: 128 bits in hex.
const ID_LEN: usize = 32;

/// Length of the day in a MOB file's name, as in `20240131`.
const DAY_LEN: usize = 8;

/// The 128 bits that a store file is called after.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct FileId(u128);

fn is_hex(byte: u8) -> bool {
    matches!(byte, b'0'..=b'9' | b'a'..=b'f')
}

fn id(text: &str) -> Option<FileId> {
    let whole = text.len() == ID_LEN && text.bytes().all(is_hex);
    whole.then(|| u128::from_str_radix(text, 16).ok().map(FileId)).flatten()
}

/// A store file with cells of its own: 32 hex digits, with `_SeqId_<n>_` when it was bulk-loaded.
fn plain(name: &str) -> Option<FileId> {
    let (hex, suffix) = name.split_at_checked(ID_LEN)?;
    let number = |suffix: &str| suffix.strip_prefix("_SeqId_")?.strip_suffix('_')?.parse::<u64>().ok();
    if suffix.is_empty() || number(suffix).is_some() { id(hex) } else { None }
}

/// Whether a directory may be a region's.
pub(super) fn is_region(name: &str) -> bool {
    id(name).is_some() || name == model::region_info::META_ENCODED_NAME
}

/// The file with the cells that a store file, a reference or a link in an archived family stands for; `None` for any
/// other name, a MOB file's among them ([`mob_file`]). Follows: `StoreFileInfo`, `HFileLink`.
pub(super) fn store_file(name: &str) -> Option<FileId> {
    let name = rootdir::FileName::parse(name)?;
    let linked = name.link.iter().map(|(_, region)| region);
    let all_known = linked.chain(&name.parent).all(|region| is_region(region));
    all_known.then(|| plain(&name.file)).flatten()
}

/// The file that an entry of an archived family of the region of large values stands for: the hash of a row, a day, 128
/// bits, and mostly `_` and the region that wrote it. `None` for any other name. Follows: `MobFileName`.
pub(super) fn mob_file(name: &str) -> Option<FileId> {
    let (file, region) = name.split_once('_').map_or((name, None), |(file, region)| (file, Some(region)));
    let (hash, rest) = file.split_at_checked(ID_LEN)?;
    let (day, hex) = rest.split_at_checked(DAY_LEN)?;
    let known = id(hash).is_some() && day.bytes().all(|byte| byte.is_ascii_digit()) && region.is_none_or(is_region);
    if known { id(hex) } else { None }
}

/// The linking region and table that an entry of a `.links-` directory tells of: `<region>.[<ns>=]<table>`.
pub(super) fn back_reference(name: &str) -> Option<(String, TableName)> {
    let (region, table) = name.split_once('.')?;
    let (namespace, qualifier) = table.split_once('=').unwrap_or((model::name::DEFAULT_NAMESPACE, table));
    let table = TableName::of(namespace, qualifier).ok()?;
    is_region(region).then(|| (region.to_owned(), table))
}

/// Calls `found` for every store file's name in `text`, however it is wrapped: whatever mentions a file keeps it.
pub(super) fn each_mentioned(text: &[u8], mut found: impl FnMut(FileId)) {
    let mut rest = text;
    while let Some(start) = rest.iter().position(|byte| is_hex(*byte)) {
        let from = rest.get(start..).unwrap_or_default();
        let len = from.iter().position(|byte| !is_hex(*byte)).unwrap_or(from.len());
        let (run, after) = from.split_at_checked(len).unwrap_or((from, &[]));
        rest = after;
        let windows = run.windows(ID_LEN);
        let count = windows.len();
        // A long run is no name with something at its sides: its two ends are enough.
        let wanted = windows.enumerate().filter(|(at, _)| run.len() <= 2 * ID_LEN || *at == 0 || at + 1 == count);
        for (_, window) in wanted {
            if let Some(id) = std::str::from_utf8(window).ok().and_then(id) {
                found(id);
            }
        }
    }
}

/// A log that was archived.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum OldLog {
    /// A region server's.
    Server,
    /// One of the master's own store, by HBase.
    MasterStore,
}

/// `None` for a name that is no log's. Follows: `AbstractFSWALProvider#validateWALFilename`, but wants a server's name
/// at the front.
pub(super) fn old_log(name: &str) -> Option<OldLog> {
    static PATTERN: LazyLock<Regex> = LazyLock::new(|| {
        let pattern = r"^[^/\s]+%2C\d+%2C\d+(\.meta|\.regiongroup-\d+)?\.\d+(\.meta)?(\$masterlocalwal\$)?$";
        Regex::new(pattern).expect("the pattern is whole")
    });
    let found = PATTERN.captures(name)?;
    Some(if found.get(3).is_some() { OldLog::MasterStore } else { OldLog::Server })
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEX: &str = "0123456789abcdef0123456789abcdef";
    const REGION: &str = "fedcba98765432100123456789abcdef";

    #[test]
    fn names_that_are_known() {
        let file = id(HEX);
        assert!(file.is_some());
        for name in [
            HEX.to_owned(),
            format!("{HEX}_SeqId_12_"),
            format!("{HEX}.{REGION}"),
            format!("t-1={REGION}-{HEX}"),
            format!("ns=t={REGION}-{HEX}_SeqId_3_"),
            format!("ns=t={REGION}-{HEX}.{REGION}"),
        ] {
            assert_eq!(store_file(&name), file, "{name}");
        }
        let table = TableName::of("ns1", "t").expect("legal");
        assert_eq!(back_reference(&format!("{REGION}.ns1=t")), Some((REGION.to_owned(), table.clone())));
        assert_eq!(store_file(&rootdir::link_name(&table, REGION, HEX)), file);
    }

    #[test]
    fn names_that_are_not() {
        for name in [
            String::new(),
            HEX[1..].to_owned(),
            format!("{HEX}0"),
            HEX.to_uppercase(),
            format!("{HEX}_del"),
            format!("{HEX}.tmp"),
            format!("{HEX}.{REGION}.x"),
            format!(".tmp-{HEX}"),
            format!("{HEX}$-masterlocalhfile-$"),
            format!("t=x-{HEX}"),
            format!("a=b=c={REGION}-{HEX}"),
            // A MOB file's.
            format!("{HEX}20240101{HEX}_{REGION}"),
            format!("{HEX}20240101{HEX}"),
        ] {
            assert_eq!(store_file(&name), None, "{name}");
        }
        assert_eq!(back_reference("x.t"), None);
        assert_eq!(back_reference(REGION), None);
    }

    #[test]
    fn names_of_files_with_large_values() {
        let last = "0123456789abcdef0123456789abcdef";
        for name in [format!("{HEX}20240101{last}_{REGION}"), format!("{HEX}20240101{last}")] {
            assert_eq!(mob_file(&name), id(last), "{name}");
            let mut all = Vec::new();
            each_mentioned(format!("!{name}?").as_bytes(), |id| all.push(id));
            assert!(all.contains(&id(last).expect("an id")), "{name}");
        }
        for name in [HEX.to_owned(), format!("{HEX}2024010x{last}"), format!("{HEX}20240101{last}_x")] {
            assert_eq!(mob_file(&name), None, "{name}");
        }
    }

    #[test]
    fn logs() {
        let server = "localhost%2C23602%2C1795219453200";
        assert_eq!(old_log(&format!("{server}.1795219457796")), Some(OldLog::Server));
        assert_eq!(old_log(&format!("{server}.meta.1795219458324.meta")), Some(OldLog::Server));
        assert_eq!(old_log(&format!("{server}.regiongroup-1.17952")), Some(OldLog::Server));
        assert_eq!(old_log(&format!("{server}.17952$masterlocalwal$")), Some(OldLog::MasterStore));
        for name in ["", "a.1", "notes.txt", "pv2-00000000000000000001.log", &format!("{server}.1.syncrep"), server] {
            assert_eq!(old_log(name), None, "{name}");
        }
    }

    #[test]
    fn a_mentioned_file_is_found_in_any_wrapping() {
        for text in [HEX.to_owned(), format!("7{HEX}"), format!("ns=t={REGION}-{HEX}.x"), format!("?!{HEX}20240101")] {
            let mut all = Vec::new();
            each_mentioned(text.as_bytes(), |id| all.push(id));
            assert!(all.contains(&id(HEX).expect("an id")), "{text}");
        }
    }
}
