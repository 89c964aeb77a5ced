//! The small files that say where bytes are: in a file's place the record of the volume that has them, in the root the list of volumes, on each
//! volume whose it is. All are text, with a checksum in the last line.

use std::fmt::Write as _;

/// Bytes of a placement record, always: a file of another length is none, and need not be read to know.
pub(super) const RECORD_LEN: u64 = 509;

const RECORD_HEAD: &str =
    "Basalt: the bytes of this file are on another volume. `basalt volumes gather` brings all of them back.\n";
const LIST_HEAD: &str = "Basalt: the volumes of this root directory. Do not edit: see docs/operations/tiers.md.\n";
const VOLUME_HEAD: &str = "Basalt: a volume of a root directory. Do not edit: see docs/operations/tiers.md.\n";

/// Where the bytes of a file are.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Record {
    /// The volume's number.
    pub volume: u64,
    /// The file's name on it.
    pub object: String,
}

fn seal(mut text: String, len: Option<usize>) -> Vec<u8> {
    let tail_len = "crc32c 00000000\n".len();
    if let Some(len) = len {
        while text.len() + tail_len < len {
            text.push(' ');
        }
    }
    let sum = crc32c::crc32c(text.as_bytes());
    let _ = writeln!(text, "crc32c {sum:08x}");
    text.into_bytes()
}

/// The text before the checksum, when that is right.
fn unseal<'a>(bytes: &'a [u8], head: &str) -> Option<&'a str> {
    let text = std::str::from_utf8(bytes).ok()?;
    let at = text.rfind("crc32c ")?;
    let (body, tail) = text.split_at(at);
    let sum = u32::from_str_radix(tail.strip_prefix("crc32c ")?.strip_suffix('\n')?, 16).ok()?;
    (crc32c::crc32c(body.as_bytes()) == sum).then(|| body.strip_prefix(head)).flatten()
}

fn hex(text: &str) -> Option<u64> {
    (text.len() == 16).then(|| u64::from_str_radix(text, 16).ok()).flatten()
}

/// Names of objects are ours: they lead to no other place.
fn is_object_name(name: &str) -> bool {
    (1..=64).contains(&name.len()) && name.bytes().all(|b| b.is_ascii_hexdigit() || b == b'-')
}

impl Record {
    /// Its bytes, [`RECORD_LEN`] of them.
    pub fn encode(&self) -> Vec<u8> {
        let text = format!("{RECORD_HEAD}volume {:016x}\nfile {}\n", self.volume, self.object);
        seal(text, Some(RECORD_LEN as usize))
    }

    /// The record that `bytes` are; `None` when they are something else.
    pub fn decode(bytes: &[u8]) -> Option<Record> {
        if bytes.len() as u64 != RECORD_LEN {
            return None;
        }
        let mut lines = unseal(bytes, RECORD_HEAD)?.lines();
        let volume = hex(lines.next()?.strip_prefix("volume ")?)?;
        let object = lines.next()?.strip_prefix("file ")?;
        is_object_name(object).then(|| Record { volume, object: object.to_owned() })
    }
}

/// A volume as the root's list has it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Listed {
    /// Its number; no other volume has the same.
    pub id: u64,
    /// The tier that it was of.
    pub tier: String,
    /// Where it was last.
    pub place: String,
    /// The word for its class.
    pub class: String,
}

/// The list of a root's volumes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct List {
    /// Number of the root.
    pub root: u64,
    /// The volumes.
    pub volumes: Vec<Listed>,
}

impl List {
    pub fn encode(&self) -> Vec<u8> {
        let mut text = format!("{LIST_HEAD}root {:016x}\n", self.root);
        for Listed { id, tier, class, place } in &self.volumes {
            let _ = writeln!(text, "volume {id:016x} {tier} {class} {place}");
        }
        seal(text, None)
    }

    pub fn decode(bytes: &[u8]) -> Option<List> {
        let mut lines = unseal(bytes, LIST_HEAD)?.lines();
        let root = hex(lines.next()?.strip_prefix("root ")?)?;
        let volumes = lines.map(|line| {
            let mut words = line.strip_prefix("volume ")?.splitn(4, ' ');
            let id = hex(words.next()?)?;
            let (tier, class) = (words.next()?.to_owned(), words.next()?.to_owned());
            Some(Listed { id, tier, class, place: words.next()?.to_owned() })
        });
        Some(List { root, volumes: volumes.collect::<Option<_>>()? })
    }
}

/// Whose a volume is: of which root, under which number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Identity {
    pub root: u64,
    pub id: u64,
}

impl Identity {
    pub fn encode(self) -> Vec<u8> {
        seal(format!("{VOLUME_HEAD}root {:016x}\nvolume {:016x}\n", self.root, self.id), None)
    }

    pub fn decode(bytes: &[u8]) -> Option<Identity> {
        let mut lines = unseal(bytes, VOLUME_HEAD)?.lines();
        let root = hex(lines.next()?.strip_prefix("root ")?)?;
        Some(Identity { root, id: hex(lines.next()?.strip_prefix("volume ")?)? })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_written_is_read_and_nothing_else_is() {
        let record = Record { volume: 7, object: "00ab-1".into() };
        let bytes = record.encode();
        assert_eq!((bytes.len() as u64, Record::decode(&bytes)), (RECORD_LEN, Some(record)));
        for at in 0..bytes.len() {
            let mut damaged = bytes.clone();
            damaged[at] ^= 4;
            assert_eq!(Record::decode(&damaged), None, "byte {at}");
        }
        assert_eq!(Record::decode(&bytes[1..]), None);
        assert_eq!(Record::decode(&[0; RECORD_LEN as usize]), None);
        let elsewhere = Record { volume: 7, object: "../up".into() }.encode();
        assert_eq!(Record::decode(&elsewhere), None, "a name that leads elsewhere");

        let volumes = vec![Listed { id: 1, tier: "ssd".into(), class: "ssd".into(), place: "/a b/c".into() }];
        let list = List { root: 9, volumes };
        assert_eq!(List::decode(&list.encode()), Some(list.clone()));
        assert_eq!(List::decode(&Identity { root: 9, id: 1 }.encode()), None);
        let mut damaged = list.encode();
        damaged[100] ^= 1;
        assert_eq!(List::decode(&damaged), None);
        let identity = Identity { root: u64::MAX, id: 3 };
        assert_eq!(Identity::decode(&identity.encode()), Some(identity));
    }
}
