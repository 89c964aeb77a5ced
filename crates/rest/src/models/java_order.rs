//! The order in which Java's `HashMap<Bytes, Bytes>` hands out attributes: that of HBase's answers. Follows: `HashMap`,
//! `Bytes#hashCode`.

/// `WritableComparator.hashBytes`.
fn hash(bytes: &[u8]) -> u32 {
    bytes.iter().fold(1u32, |hash, byte| hash.wrapping_mul(31).wrapping_add(i32::from(*byte as i8) as u32))
}

/// Sorts pairs, given in the order in which they were put in, as the map's iterator has them.
pub fn sort<V>(pairs: &mut [(String, V)]) {
    // As a map that was copied from another one: three quarters of the buckets are more than enough, and there are 16 at least.
    let buckets = (pairs.len() * 4 / 3 + 1).next_power_of_two().max(16);
    pairs.sort_by_key(|(key, _)| {
        let hash = hash(key.as_bytes());
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
        let mut pairs: Vec<(String, ())> = expected.iter().rev().map(|key| ((*key).to_owned(), ())).collect();
        super::sort(&mut pairs);
        let keys: Vec<&str> = pairs.iter().map(|(key, ())| key.as_str()).collect();
        assert_eq!(keys, expected);
    }

    #[test]
    fn attributes_come_in_the_order_of_buckets() {
        let mut pairs: Vec<(String, ())> = ["b", "a", "Q"].map(|key| (key.to_owned(), ())).into();
        super::sort(&mut pairs);
        // 31 + 'Q' = 112, bucket 0; 31 + 'a' = 128, bucket 0; 31 + 'b' = 129, bucket 1.
        let keys: Vec<&str> = pairs.iter().map(|(key, ())| key.as_str()).collect();
        assert_eq!(keys, ["a", "Q", "b"]);
    }
}
