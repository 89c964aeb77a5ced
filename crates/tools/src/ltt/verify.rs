//! Holds a row against what it says of itself. Follows: `MultiThreadedAction#verifyResultAgainstDataGenerator`.

use std::collections::{BTreeMap, HashMap};

use client::Row;

use super::data::{INCREMENT, MUTATE_INFO, array_hash, value};

/// How a column was changed (`MutationType`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Change {
    /// The hash was appended.
    Append,
    /// It is the counter.
    Increment,
    /// The hash was put in its place, if the hash is even.
    Put,
    /// It was deleted, if the hash is even.
    Delete,
}

impl Change {
    /// As the number in `mutate_info`.
    pub const ALL: [Change; 4] = [Change::Append, Change::Increment, Change::Put, Change::Delete];

    /// Its number.
    pub fn number(self) -> usize {
        self as usize
    }
}

/// `#column:change#column:change...`; the last one of a column counts.
fn parse_mutate_info(text: &[u8]) -> Result<HashMap<String, Change>, String> {
    let text = String::from_utf8_lossy(text);
    let mut changes = HashMap::new();
    for part in text.split('#').filter(|part| !part.is_empty()) {
        let change = part.split_once(':').and_then(|(column, number)| {
            let change = Change::ALL.get(number.parse::<usize>().ok()?)?;
            Some((column.to_owned(), *change))
        });
        let (column, change) = change.ok_or_else(|| format!("Invalid mutation info {part}"))?;
        changes.insert(column, change);
    }
    Ok(changes)
}

/// What a row held that is odd but not wrong.
pub type Warnings = Vec<String>;

/// Checks a row that is not empty.
///
/// # Errors
/// What is wrong, in the tool's words.
pub fn verify(row: &Row) -> Result<Warnings, String> {
    let mut warnings = Vec::new();
    let key = String::from_utf8_lossy(row.row()).into_owned();
    let mut families: BTreeMap<&[u8], BTreeMap<&[u8], Vec<u8>>> = BTreeMap::new();
    for cell in row {
        // The newest version comes first.
        families.entry(cell.family()).or_default().entry(cell.qualifier()).or_insert_with(|| cell.value().to_vec());
    }
    for (family, columns) in &mut families {
        let about = format!("Error checking data for key [{key}], column family [{}]", String::from_utf8_lossy(family));
        let missing =
            |column: &[u8]| format!("{about}, column [{}]; value is not found", String::from_utf8_lossy(column));
        let family_hash = array_hash(family);
        let info = columns.remove(MUTATE_INFO).ok_or_else(|| missing(MUTATE_INFO))?;
        let changes = parse_mutate_info(&info).map_err(|why| format!("{about}: {why}"))?;
        let counter = columns.remove(INCREMENT).ok_or_else(|| missing(INCREMENT))?;
        for (column, change) in &changes {
            let hash = family_hash.wrapping_add(array_hash(column.as_bytes()));
            if *change == Change::Delete && hash % 2 == 0 && columns.contains_key(column.as_bytes()) {
                return Err(format!("{about}, column [{column}]; should be deleted"));
            }
        }
        let current = counter.as_slice().try_into().map(i64::from_be_bytes);
        let current = current.map_err(|_| format!("{about}, column [increment] of {} bytes", counter.len()))?;
        let amount = if changes.is_empty() { 0 } else { family_hash };
        let extra = current.wrapping_sub(array_hash(row.row()));
        if extra != 0 && (amount == 0 || extra.wrapping_rem(amount) != 0) {
            return Err(format!("{about}, column [increment], extra [{extra}], amount [{amount}]"));
        }
        if amount != 0 && extra != amount {
            let times = extra.wrapping_div(amount);
            warnings.push(format!(
                "Warning checking data for key [{key}], column family [{}], column [increment], incremented [{times}] times",
                String::from_utf8_lossy(family)
            ));
        }
        for (column, bytes) in columns.iter() {
            let name = String::from_utf8_lossy(column);
            let change = changes.get(&*name).copied();
            let hash = family_hash.wrapping_add(array_hash(column));
            let expected = match change {
                None => Some(&bytes[..]),
                Some(Change::Append) => {
                    let (rest, times) = without_appended(bytes, hash);
                    if times == 0 {
                        return Err(mutation_failed(&about, &name, Change::Append, hash, true));
                    }
                    if times > 1 {
                        warnings.push(format!(
                            "Warning checking data for key [{key}], column family [{}], column [{name}], appended \
                             [{times}] times",
                            String::from_utf8_lossy(family)
                        ));
                    }
                    Some(rest)
                }
                Some(change) if hash % 2 == 0 => {
                    if bytes[..] != hash.to_be_bytes() {
                        return Err(mutation_failed(&about, &name, change, hash, false));
                    }
                    None
                }
                Some(_) => Some(&bytes[..]),
            };
            if let Some(expected) = expected
                && value(expected.len(), row.row(), family, column) != expected
            {
                let change = change.map_or("null".to_owned(), |c| format!("{c:?}").to_uppercase());
                let length = expected.len();
                return Err(format!("{about}, column [{name}], mutation [{change}]; value of length {length}"));
            }
        }
    }
    Ok(warnings)
}

fn mutation_failed(about: &str, column: &str, change: Change, hash: i64, needed: bool) -> String {
    let change = format!("{change:?}").to_uppercase();
    let about = about.replacen("], column family", "], mutation checking failed for column family", 1);
    format!("{about}, column [{column}]; mutation [{change}], hashCode [{hash}], verificationNeeded [{needed}]")
}

/// What was there before the hash was appended, and how often it was. Something must be left.
fn without_appended(bytes: &[u8], hash: i64) -> (&[u8], u32) {
    let hash = hash.to_be_bytes();
    let (mut rest, mut times) = (bytes, 0);
    while let Some(shorter) = rest.strip_suffix(&hash[..]) {
        if times == 0 && shorter.is_empty() {
            break;
        }
        rest = shorter;
        times += 1;
    }
    (rest, times)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_change_of_a_column_counts() {
        let changes = parse_mutate_info(b"#increment:1#0:2#1:0#0:3").expect("legal");
        assert_eq!(changes["0"], Change::Delete);
        assert_eq!((changes["1"], changes["increment"], changes.len()), (Change::Append, Change::Increment, 3));
        assert!(parse_mutate_info(b"#0").is_err() && parse_mutate_info(b"#0:9").is_err());
        assert!(parse_mutate_info(b"").expect("legal").is_empty());
    }

    #[test]
    fn appended_hashes_are_taken_off() {
        let hash = 0x0102_0304_0506_0708i64;
        let twice = [&b"abc"[..], &hash.to_be_bytes(), &hash.to_be_bytes()].concat();
        assert_eq!(without_appended(&twice, hash), (&b"abc"[..], 2));
        assert_eq!(without_appended(b"abc", hash), (&b"abc"[..], 0));
        assert_eq!(without_appended(&hash.to_be_bytes(), hash).1, 0);
    }
}
