//! Row keys of several columns. Follows: `PTableImpl#newKey`, `RowKeySchema`, `SchemaUtil#getSeparatorByte`, `SaltingUtil`.

use std::ops::Range;

use crate::{SqlType, TypeError, Value, invert_array};

/// Which way a key column sorts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Order {
    /// Smallest first.
    #[default]
    Ascending,
    /// Largest first: all bytes are turned round.
    Descending,
}

/// A column of a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct KeyColumn {
    /// Its type.
    pub sql_type: SqlType,
    /// Which way it sorts.
    pub order: Order,
    /// Whether it is an array of that type: only the last one may be.
    pub is_array: bool,
}

impl KeyColumn {
    fn inverted(&self) -> bool {
        self.order == Order::Descending
    }

    /// Bytes of each of its values; none where they differ.
    pub fn fixed_width(&self) -> Option<usize> {
        self.sql_type.fixed_width().filter(|_| !self.is_array)
    }

    /// Turns the bytes of a value round, so that they sort in descending order; and back.
    fn invert(&self, bytes: &mut [u8]) -> Result<(), TypeError> {
        if self.is_array {
            return invert_array(self.sql_type, bytes);
        }
        self.sql_type.invert(bytes);
        Ok(())
    }

    fn separator(&self) -> u8 {
        if self.inverted() { 0xFF } else { 0 }
    }
}

/// How the columns of a table's key lie in its row keys.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeyLayout {
    /// Values of the first byte, which spreads the rows; 0 where there is none.
    pub salt_buckets: u8,
    /// The columns, in order.
    pub columns: Vec<KeyColumn>,
}

impl KeyLayout {
    /// Bytes before the first column.
    pub fn prefix_len(&self) -> usize {
        usize::from(self.salt_buckets > 0)
    }

    /// Whether a byte ends the column: one of variable width does, but for the last that ascends.
    fn is_separated(&self, index: usize) -> bool {
        let column = &self.columns[index];
        column.fixed_width().is_none() && (index + 1 < self.columns.len() || column.inverted())
    }

    /// The byte that ends a column's values, but for NULLs; none where their width does, or the key's end.
    pub fn end(&self, index: usize) -> Option<u8> {
        self.is_separated(index).then(|| self.columns[index].separator())
    }

    /// Appends a column's bytes, which are in ascending order and none for NULL, with what ends it. All keys whose columns up to this one are the
    /// same begin with the same bytes, and no other key does (the last column aside, where it has no end).
    ///
    /// # Errors
    /// NULL in a column of fixed width; a text with a zero byte where one ends it.
    pub fn append(&self, index: usize, ascending: &[u8], out: &mut Vec<u8>) -> Result<(), TypeError> {
        let column = &self.columns[index];
        if ascending.is_empty() && column.fixed_width().is_some() {
            return Err(TypeError::NotInKey(format!("NULL in a column of type {}", column.sql_type)));
        }
        let may_have_zeros = column.sql_type == SqlType::Decimal || column.is_array;
        if self.is_separated(index) && !may_have_zeros && ascending.contains(&0) {
            return Err(TypeError::NotInKey("it contains a zero byte, which ends a column of a key".into()));
        }
        let start = out.len();
        out.extend_from_slice(ascending);
        if column.inverted() {
            column.invert(&mut out[start..])?;
        }
        self.append_end(index, start, out);
        Ok(())
    }

    /// Appends the bytes of a column that is no array, which are in ascending order and can stand in a key, with what ends it.
    pub fn append_encoded(&self, index: usize, ascending: &[u8], out: &mut Vec<u8>) {
        let column = &self.columns[index];
        let start = out.len();
        out.extend_from_slice(ascending);
        if column.inverted() {
            column.sql_type.invert(&mut out[start..]);
        }
        self.append_end(index, start, out);
    }

    /// Appends what ends a column whose bytes begin at `start`.
    fn append_end(&self, index: usize, start: usize, out: &mut Vec<u8>) {
        let column = &self.columns[index];
        if self.is_separated(index) {
            // Phoenix ends a NULL with 0x00 in both orders, so that NULLs come first.
            out.push(if out.len() == start { 0 } else { column.separator() });
        }
    }

    /// Whether the bytes of this column end where the key does, with nothing that says so.
    pub fn is_open_ended(&self, index: usize) -> bool {
        self.columns[index].fixed_width().is_none() && !self.is_separated(index)
    }

    /// Takes off what ends a column whose bytes, some, were appended last. Keys in which all columns after it are NULL end there.
    pub fn without_end(&self, index: usize, key: &mut Vec<u8>) {
        if self.is_separated(index) && !self.columns[index].inverted() {
            key.pop();
        }
    }

    /// The row key of a row, with its salt.
    ///
    /// # Errors
    /// What [`SqlType::encode`] refuses; NULL in a column of fixed width; a text with a zero byte where one ends it; an empty key.
    pub fn encode(&self, values: &[Option<Value<'_>>]) -> Result<Vec<u8>, TypeError> {
        self.encode_with(|index, out| {
            let value = values.get(index).and_then(Option::as_ref);
            value.map_or(Ok(()), |value| self.columns[index].sql_type.encode(value, out))
        })
    }

    /// As [`KeyLayout::encode`], of what `each` appends of a column's value, in ascending order; nothing for NULL.
    ///
    /// # Errors
    /// What `each` refuses, besides.
    pub fn encode_with<E: From<TypeError>>(
        &self,
        mut each: impl FnMut(usize, &mut Vec<u8>) -> Result<(), E>,
    ) -> Result<Vec<u8>, E> {
        let mut key = vec![0; self.prefix_len()];
        let mut bytes = Vec::new();
        // Phoenix leaves out what ends the columns that are NULL at a key's end, and the one before them where it ascends.
        let mut end = key.len();
        for index in 0..self.columns.len() {
            bytes.clear();
            each(index, &mut bytes)?;
            self.append(index, &bytes, &mut key)?;
            if !bytes.is_empty() {
                let is_ended = self.is_separated(index) && !self.columns[index].inverted();
                end = key.len() - usize::from(is_ended);
            }
        }
        key.truncate(end);
        if key.len() == self.prefix_len() {
            return Err(TypeError::NotInKey("all of it is empty".into()).into());
        }
        if self.salt_buckets > 0 {
            key[0] = salt_of(&key[1..], self.salt_buckets);
        }
        Ok(key)
    }

    /// Where each column lies in a key, without what ends it. Columns that a key ends before are empty: NULL.
    ///
    /// # Errors
    /// A key that is too short for a column of fixed width, or has bytes after its last column.
    pub fn split(&self, key: &[u8], ranges: &mut Vec<Range<usize>>) -> Result<(), TypeError> {
        ranges.clear();
        let mut at = self.prefix_len().min(key.len());
        for (index, column) in self.columns.iter().enumerate() {
            let rest = &key[at..];
            let end = match column.fixed_width() {
                _ if rest.is_empty() => 0,
                Some(width) if rest.len() >= width => width,
                Some(width) => {
                    let why = format!("{} bytes of {width} in the row key", rest.len());
                    return Err(TypeError::Malformed { expected: column.sql_type.to_string(), why });
                }
                // What ends it is the last byte, whatever is before that.
                None if column.is_array => {
                    rest.len() - usize::from(self.is_separated(index) && rest.ends_with(&[0xFF]))
                }
                None if self.is_separated(index) => {
                    if rest[0] == 0 && column.inverted() {
                        0
                    } else {
                        rest.iter().position(|byte| *byte == column.separator()).unwrap_or(rest.len())
                    }
                }
                None => rest.len(),
            };
            ranges.push(at..at + end);
            at += end;
            if self.is_separated(index) && at < key.len() {
                at += 1;
            }
        }
        if at < key.len() {
            let why = format!("{} bytes after the key's last column", key.len() - at);
            return Err(TypeError::Malformed { expected: "row key".into(), why });
        }
        Ok(())
    }

    /// A column's bytes in ascending order, of those at `range` of a key; they are in `scratch` where they descend there.
    ///
    /// # Errors
    /// Bytes of an array that Phoenix does not write.
    pub fn ascending<'a>(
        &self,
        index: usize,
        key: &'a [u8],
        range: Range<usize>,
        scratch: &'a mut Vec<u8>,
    ) -> Result<&'a [u8], TypeError> {
        let column = &self.columns[index];
        if !column.inverted() {
            return Ok(&key[range]);
        }
        scratch.clear();
        scratch.extend_from_slice(&key[range]);
        column.invert(scratch)?;
        Ok(scratch)
    }

    /// The value of a column, which is no array, at `range` of a key; `scratch` holds its bytes where they are inverted.
    ///
    /// # Errors
    /// As [`SqlType::decode`].
    pub fn value<'a>(
        &self,
        index: usize,
        key: &'a [u8],
        range: Range<usize>,
        scratch: &'a mut Vec<u8>,
    ) -> Result<Option<Value<'a>>, TypeError> {
        self.columns[index].sql_type.decode(self.ascending(index, key, range, scratch)?)
    }
}

/// The byte that spreads a key over the buckets.
pub fn salt_of(key: &[u8], buckets: u8) -> u8 {
    let hash = key.iter().fold(1i32, |hash, byte| hash.wrapping_mul(31).wrapping_add(i32::from(*byte as i8)));
    // Java's remainder keeps the sign, so its absolute value is below the number of buckets.
    (hash % i32::from(buckets.max(1))).unsigned_abs() as u8
}

/// The first key after all that begin with `prefix`; none where there is no such key.
pub fn successor(prefix: &[u8]) -> Option<Vec<u8>> {
    let last = prefix.iter().rposition(|byte| *byte != 0xFF)?;
    let mut next = prefix[..=last].to_vec();
    next[last] += 1;
    Some(next)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn layout(salt_buckets: u8, columns: &[(SqlType, Order)]) -> KeyLayout {
        let columns = columns.iter();
        let columns =
            columns.map(|(sql_type, order)| KeyColumn { sql_type: *sql_type, order: *order, is_array: false });
        KeyLayout { salt_buckets, columns: columns.collect() }
    }

    fn read(layout: &KeyLayout, key: &[u8]) -> Vec<String> {
        let mut ranges = Vec::new();
        layout.split(key, &mut ranges).expect("a key of ours");
        let value = |(index, range): (usize, &Range<usize>)| {
            let mut scratch = Vec::new();
            format!("{:?}", layout.value(index, key, range.clone(), &mut scratch).expect("a value of ours"))
        };
        ranges.iter().enumerate().map(value).collect()
    }

    #[test]
    fn keys_are_laid_out_as_phoenix_does_and_read_again() {
        use Order::{Ascending, Descending};
        let of =
            layout(0, &[(SqlType::Char(2), Ascending), (SqlType::Varchar, Descending), (SqlType::Varchar, Ascending)]);
        let key = of.encode(&[Some(Value::Text("N")), Some(Value::Text("ab")), Some(Value::Text("c"))]).expect("legal");
        assert_eq!(key, [b'N', b' ', !b'a', !b'b', 0xFF, b'c']);
        assert_eq!(read(&of, &key), ["Some(Text(\"N\"))", "Some(Text(\"ab\"))", "Some(Text(\"c\"))"]);
        let key = of.encode(&[Some(Value::Text("NA")), None, None]).expect("legal");
        assert_eq!(key, b"NA");
        assert_eq!(read(&of, &key), ["Some(Text(\"NA\"))", "None", "None"]);
        let salted = layout(8, &[(SqlType::BigInt, Descending)]);
        let key = salted.encode(&[Some(Value::Int(5))]).expect("legal");
        assert_eq!((key.len(), &key[1..]), (9, &[0x7F, 255, 255, 255, 255, 255, 255, 250][..]));
        assert!(key[0] < 8);
        assert_eq!(read(&salted, &key), ["Some(Int(5))"]);
        assert_eq!(read(&of, b"NA"), ["Some(Text(\"NA\"))", "None", "None"]);
    }

    #[test]
    fn what_cannot_stand_in_a_key_is_refused() {
        let of = layout(0, &[(SqlType::Varchar, Order::Ascending), (SqlType::Integer, Order::Ascending)]);
        assert!(of.encode(&[Some(Value::Text("a\0")), Some(Value::Int(1))]).is_err());
        assert!(of.encode(&[Some(Value::Text("a")), None]).is_err());
        let mut ranges = Vec::new();
        assert!(of.split(b"a\0\x80\0", &mut ranges).is_err());
        assert!(of.split(b"a\0\x80\0\0\x01x", &mut ranges).is_err());
        assert!(layout(0, &[(SqlType::Varchar, Order::Ascending)]).encode(&[None]).is_err());
    }

    #[test]
    fn the_successor_of_a_prefix_is_after_all_that_begin_with_it() {
        assert_eq!(successor(b"a\xFF\xFF"), Some(b"b".to_vec()));
        assert_eq!(successor(b"a"), Some(b"b".to_vec()));
        assert_eq!(successor(b"\xFF"), None);
        assert_eq!(successor(b""), None);
    }
}
