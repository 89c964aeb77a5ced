//! What a region is: a table's key range under an id. Follows: `RegionInfo`, `RegionInfoBuilder`.

use crate::TableName;
use bytes::Bytes;
use md5::{Digest, Md5};
use std::borrow::Cow;
use std::fmt::Write;
use std::sync::Arc;

/// The MD5 sum as 32 lower-case hex digits: how regions and MOB files are named.
pub fn md5_hex(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(32);
    Md5::digest(bytes).iter().for_each(|b| write!(text, "{b:02x}").expect("writing to a string"));
    text
}

/// One region of a table. Cheap to clone. Equality is HBase's: everything but the cached names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RegionInfo {
    /// The table.
    pub table: TableName,
    /// First row, inclusive; empty is the table's start.
    pub start_key: Bytes,
    /// Last row, exclusive; empty is the table's end.
    pub end_key: Bytes,
    /// Milliseconds of its making; grows from parent to daughter.
    pub region_id: u64,
    /// 0 is the primary.
    pub replica_id: u32,
    /// Set on a parent that was split or merged away.
    pub offline: bool,
    /// Set on a parent that was split.
    pub split: bool,
    name: Bytes,
    encoded_name: Arc<str>,
}

/// Encoded name of hbase:meta's only region.
pub const META_ENCODED_NAME: &str = "1588230740";

impl RegionInfo {
    /// A primary region.
    pub fn new(table: TableName, start_key: Bytes, end_key: Bytes, region_id: u64) -> RegionInfo {
        RegionInfo::with_replica(table, start_key, end_key, region_id, 0)
    }

    /// A region or one of its read replicas.
    pub fn with_replica(
        table: TableName,
        start_key: Bytes,
        end_key: Bytes,
        region_id: u64,
        replica_id: u32,
    ) -> RegionInfo {
        let mut name = Vec::with_capacity(table.as_str().len() + start_key.len() + 64);
        name.extend_from_slice(table.as_str().as_bytes());
        name.push(b',');
        name.extend_from_slice(&start_key);
        name.push(b',');
        name.extend_from_slice(region_id.to_string().as_bytes());
        if replica_id > 0 {
            name.extend_from_slice(format!("_{replica_id:04X}").as_bytes());
        }
        let encoded_name: Arc<str> = if table.is_meta() {
            // hbase:meta keeps the old form: no digest in the name, a Jenkins hash as the encoded name.
            Arc::from(if replica_id == 0 {
                META_ENCODED_NAME.to_owned()
            } else {
                jenkins(&name).unsigned_abs().to_string()
            })
        } else {
            let encoded = md5_hex(&name);
            name.push(b'.');
            name.extend_from_slice(encoded.as_bytes());
            name.push(b'.');
            Arc::from(encoded)
        };
        RegionInfo {
            table,
            start_key,
            end_key,
            region_id,
            replica_id,
            offline: false,
            split: false,
            name: Bytes::from(name),
            encoded_name,
        }
    }

    /// The read replica `replica_id` of the same region; its primary with 0. Follows: `RegionReplicaUtil#getRegionInfoForReplica`.
    pub fn replica(&self, replica_id: u32) -> RegionInfo {
        if replica_id == self.replica_id {
            return self.clone();
        }
        let (start, end) = (self.start_key.clone(), self.end_key.clone());
        RegionInfo::with_replica(self.table.clone(), start, end, self.region_id, replica_id)
    }

    /// Whether it is a read replica of another region.
    pub fn is_replica(&self) -> bool {
        self.replica_id > 0
    }

    /// hbase:meta's region.
    pub fn meta() -> RegionInfo {
        RegionInfo::new(TableName::meta(), Bytes::new(), Bytes::new(), 1)
    }

    /// The full name: its row in hbase:meta.
    pub fn name(&self) -> &Bytes {
        &self.name
    }

    /// The hash of the name: its directory and its name in the log.
    pub fn encoded_name(&self) -> &Arc<str> {
        &self.encoded_name
    }

    /// Whether `row` lies in the region.
    pub fn contains(&self, row: &[u8]) -> bool {
        row >= &self.start_key[..] && (self.end_key.is_empty() || row < &self.end_key[..])
    }

    /// The full name, printable; a name of the old form (hbase:meta's) gets the encoded name behind a dot.
    /// Follows: `RegionInfo#getRegionNameAsString`.
    pub fn name_string(&self) -> String {
        let name = cell::print::to_string_binary(&self.name);
        if self.table.is_meta() { format!("{name}.{}", self.encoded_name) } else { name }
    }

    /// The region in one line, for people. Follows: `RegionInfo#toString`.
    pub fn description(&self) -> String {
        let key = cell::print::to_string_binary;
        let mut flags = String::new();
        if self.offline {
            flags.push_str(", OFFLINE => true");
        }
        if self.split {
            flags.push_str(", SPLIT => true");
        }
        if self.replica_id > 0 {
            flags.push_str(&format!(", REPLICA_ID => {}", self.replica_id));
        }
        format!(
            "{{ENCODED => {}, NAME => '{}', STARTKEY => '{}', ENDKEY => '{}'{flags}}}",
            self.encoded_name(),
            key(&self.name),
            key(&self.start_key),
            key(&self.end_key)
        )
    }

    /// The encoded name of the region whose full name is `name`: the digest inside it, or the hash of an old-style name.
    pub fn encoded_from_name(name: &[u8]) -> Cow<'_, str> {
        if let Some(rest) = name.strip_suffix(b".")
            && let Some(at) = rest.iter().rposition(|b| *b == b'.')
            && rest.len() - at - 1 == 32
        {
            return String::from_utf8_lossy(&rest[at + 1..]);
        }
        if name == b"hbase:meta,,1" {
            META_ENCODED_NAME.into()
        } else {
            jenkins(name).unsigned_abs().to_string().into()
        }
    }
}

/// Bob Jenkins' lookup3 hash with seed 0, as `JenkinsHash#hash`.
fn jenkins(key: &[u8]) -> i32 {
    let word = |at: usize| -> u32 {
        (0..4).fold(0u32, |n, i| n | (u32::from(key.get(at + i).copied().unwrap_or(0)) << (8 * i)))
    };
    let start = 0xdead_beef_u32.wrapping_add(key.len() as u32);
    let (mut a, mut b, mut c) = (start, start, start);
    let mut at = 0;
    while key.len() - at > 12 {
        a = a.wrapping_add(word(at));
        b = b.wrapping_add(word(at + 4));
        c = c.wrapping_add(word(at + 8));
        a = a.wrapping_sub(c) ^ c.rotate_left(4);
        c = c.wrapping_add(b);
        b = b.wrapping_sub(a) ^ a.rotate_left(6);
        a = a.wrapping_add(c);
        c = c.wrapping_sub(b) ^ b.rotate_left(8);
        b = b.wrapping_add(a);
        a = a.wrapping_sub(c) ^ c.rotate_left(16);
        c = c.wrapping_add(b);
        b = b.wrapping_sub(a) ^ a.rotate_left(19);
        a = a.wrapping_add(c);
        c = c.wrapping_sub(b) ^ b.rotate_left(4);
        b = b.wrapping_add(a);
        at += 12;
    }
    if at == key.len() {
        return c as i32;
    }
    a = a.wrapping_add(word(at));
    b = b.wrapping_add(word(at + 4));
    c = c.wrapping_add(word(at + 8));
    c = (c ^ b).wrapping_sub(b.rotate_left(14));
    a = (a ^ c).wrapping_sub(c.rotate_left(11));
    b = (b ^ a).wrapping_sub(a.rotate_left(25));
    c = (c ^ b).wrapping_sub(b.rotate_left(16));
    a = (a ^ c).wrapping_sub(c.rotate_left(4));
    b = (b ^ a).wrapping_sub(a.rotate_left(14));
    c = (c ^ b).wrapping_sub(b.rotate_left(24));
    c as i32
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Names that `RegionReplicaUtil#getRegionInfoForReplica` of HBase 2.6.4 makes.
    #[test]
    fn names_of_replicas_are_hbases() {
        let table = TableName::parse("ns:t").expect("legal");
        let primary = RegionInfo::new(table, Bytes::from("b"), Bytes::from("m"), 1_700_000_000_000);
        for (id, suffix, encoded) in [
            (0, "", "0cc6493387ba69f4f37b959694d3a5ea"),
            (1, "_0001", "e3ee5d60978f5bc83f61d24d888fd9f1"),
            (10, "_000A", "5b3da54798344a96709e43f8dc573d44"),
            (65535, "_FFFF", "be9c6b899b32f3fcdc83f09890e1d95b"),
        ] {
            let replica = primary.replica(id);
            assert_eq!(replica.name_string(), format!("ns:t,b,1700000000000{suffix}.{encoded}."));
            assert_eq!((&**replica.encoded_name(), replica.is_replica()), (encoded, id > 0));
            assert_eq!(RegionInfo::encoded_from_name(replica.name()), encoded);
            assert_eq!(replica.replica(0), primary);
        }
    }

    #[test]
    fn meta_names_are_the_old_ones() {
        let meta = RegionInfo::meta();
        assert_eq!((&meta.name()[..], &**meta.encoded_name()), (&b"hbase:meta,,1"[..], META_ENCODED_NAME));
        assert_eq!(jenkins(b"hbase:meta,,1").unsigned_abs().to_string(), META_ENCODED_NAME);
        let replica = RegionInfo::with_replica(TableName::meta(), Bytes::new(), Bytes::new(), 1, 1);
        assert_eq!((&replica.name()[..], &**replica.encoded_name()), (&b"hbase:meta,,1_0001"[..], "534574363"));
    }
}
