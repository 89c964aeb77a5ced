//! The order in which Java's `HashMap<Bytes, Bytes>` hands out attributes: that of HBase's answers. Follows: `HashMap`,
//! `Bytes#hashCode`.

/// `WritableComparator.hashBytes`.
fn hash(bytes: &[u8]) -> u32 {
    bytes.iter().fold(1u32, |hash, byte| hash.wrapping_mul(31).wrapping_add(i32::from(*byte as i8) as u32))
}

/// Sorts `entries`, given in the order in which they were put in, as the map's iterator has them.
pub fn sort<T>(entries: &mut [T], key: impl Fn(&T) -> &[u8]) {
    // As a map that was copied from another one: three quarters of the buckets are more than enough, and there are 16 at least.
    let buckets = (entries.len() * 4 / 3 + 1).next_power_of_two().max(16);
    entries.sort_by_key(|entry| {
        let hash = hash(key(entry));
        (hash ^ (hash >> 16)) as usize & (buckets - 1)
    });
}

#[cfg(test)]
mod tests {
    /// As Apache's REST server wrote those of a family.
    #[test]
    fn a_familys_attributes_come_in_hbases_order() {
        let expected = [
            "INDEX_BLOCK_ENCODING",
            "VERSIONS",
            "KEEP_DELETED_CELLS",
            "DATA_BLOCK_ENCODING",
            "TTL",
            "MIN_VERSIONS",
            "REPLICATION_SCOPE",
            "BLOOMFILTER",
            "IN_MEMORY",
            "COMPRESSION",
            "BLOCKCACHE",
            "BLOCKSIZE",
        ];
        let mut keys: Vec<&str> = expected.iter().rev().copied().collect();
        super::sort(&mut keys, |key| key.as_bytes());
        assert_eq!(keys, expected);
    }

    #[test]
    fn attributes_come_in_the_order_of_buckets() {
        let mut keys = ["b", "a", "Q"];
        super::sort(&mut keys, |key| key.as_bytes());
        // 31 + 'Q' = 112, bucket 0; 31 + 'a' = 128, bucket 0; 31 + 'b' = 129, bucket 1.
        assert_eq!(keys, ["a", "Q", "b"]);
    }
}
