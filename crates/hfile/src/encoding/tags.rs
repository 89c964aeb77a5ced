//! The dictionary of tags within one encoded block: 127 entries, the least recently used one gives way.
//! Follows: `TagCompressionContext`, `LRUDictionary`.

use crate::cursor::{Cursor, Damage, Decoded, write_compressed_int};

const CAPACITY: usize = 127;
const NOT_IN_DICTIONARY: u8 = 0xFF;

/// Tags (type and value) seen in this block, by index; `recent` orders the indexes, most recently used last.
#[derive(Debug, Default)]
pub(super) struct TagDictionary {
    entries: Vec<Vec<u8>>,
    recent: Vec<u8>,
}

impl TagDictionary {
    pub fn clear(&mut self) {
        self.entries.clear();
        self.recent.clear();
    }

    fn touch(&mut self, index: usize) {
        if let Some(at) = self.recent.iter().rposition(|i| usize::from(*i) == index) {
            self.recent[at..].rotate_left(1);
        }
    }

    fn add(&mut self, tag: &[u8]) {
        if tag.is_empty() {
            return;
        }
        if self.entries.len() < CAPACITY {
            self.recent.push(self.entries.len() as u8);
            self.entries.push(tag.to_vec());
        } else {
            let index = usize::from(self.recent[0]);
            self.entries[index].clear();
            self.entries[index].extend_from_slice(tag);
            self.recent.rotate_left(1);
        }
    }

    /// Appends the compressed form of whole tags to `out`.
    pub fn pack(&mut self, tags: &[u8], out: &mut Vec<u8>) {
        let mut rest = tags;
        while let Some((len, after)) = rest.split_first_chunk::<2>() {
            let (tag, next) = after.split_at(usize::from(u16::from_be_bytes(*len)));
            rest = next;
            if let Some(index) = self.entries.iter().position(|entry| entry == tag) {
                self.touch(index);
                out.extend_from_slice(&(index as u16).to_be_bytes());
            } else {
                self.add(tag);
                out.push(NOT_IN_DICTIONARY);
                write_compressed_int(out, tag.len());
                out.extend_from_slice(tag);
            }
        }
    }

    /// Appends exactly `len` bytes of plain tags to `out`.
    pub fn unpack(&mut self, at: &mut Cursor<'_>, len: usize, out: &mut Vec<u8>) -> Decoded<()> {
        let end = out.len() + len;
        while out.len() < end {
            let status = at.u8()?;
            if status == NOT_IN_DICTIONARY {
                let tag_len = at.compressed_int()?;
                let tag = at.take(tag_len)?;
                out.extend_from_slice(&u16::try_from(tag_len).map_err(|_| "a tag is too long")?.to_be_bytes());
                out.extend_from_slice(tag);
                self.add(tag);
            } else {
                let index = usize::from(u16::from_be_bytes([status, at.u8()?]));
                let entry =
                    self.entries.get(index).ok_or_else(|| Damage(format!("tag {index} is not in the dictionary")))?;
                out.extend_from_slice(&(entry.len() as u16).to_be_bytes());
                out.extend_from_slice(entry);
                self.touch(index);
            }
        }
        if out.len() == end { Ok(()) } else { Err("the tags are longer than announced".into()) }
    }
}
