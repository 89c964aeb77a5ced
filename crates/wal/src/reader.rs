//! Reads a log file forward: every variant that HBase 2.6 writes, except encrypted ones.
//!
//! Always true: [`Reader::next`] gives whole entries in order and never the same one twice; `None` is the end as far as the file's length
//! was known, with nothing taken, so a growing file can be asked again after [`Reader::refresh`]. A read that fails is an error and
//! never the end. Follows `AbstractProtobufWALReader`, `ProtobufWALStreamReader`.

use crate::compress::{Compression, ValueCodec};
use crate::header::{END_MAGIC, MAGIC, MAX_HEADER_BYTES, SECURE_CODEC, TRAILER, WRITERS, is_sealed};
use crate::key::{ClusterId, Entry, Key, ReplicationScope};
use crate::seal::{self, Follows, Says};
use crate::source::{Fault, Source, bad};
use crate::{Error, Result};
use base::{SeqId, TimestampMs};
use bytes::Bytes;
use cell::{CellBlock, CellRef};
use fs::{FilePath, Volume};
use proto::{Message, pb};
use std::sync::Arc;

/// Longest key that is believed; real ones have some hundred bytes.
const MAX_KEY_BYTES: usize = 16 << 20;
/// A file that begins with so many zeros and has nothing else never got its header.
const MAX_BLANK_BYTES: u64 = 4096;

/// An open log file.
pub struct Reader {
    source: Source,
    layout: Layout,
    /// Where the entries begin; 0 as long as the file has no whole header.
    header_len: u64,
    has_trailer: bool,
    compression: Option<Compression>,
    /// Set when a compressed entry was begun and not ended: the dictionaries have to be built again.
    stale: bool,
    watermark: u64,
    follows: Option<Follows>,
    vouched: bool,
    last_names: (Arc<str>, Arc<str>),
    failed: bool,
}

#[derive(Clone, Copy, Default)]
struct Layout {
    sealed: bool,
    compressed: bool,
    tags: bool,
    values: Option<ValueCodec>,
}

impl Reader {
    /// Opens the file and reads its header and trailer. A file whose header is not whole (a crash right after it was made) is one
    /// without entries.
    ///
    /// # Errors
    /// [`Error::Unsupported`] for encrypted files and unknown codecs, [`Error::Corrupt`] for what is not a log.
    pub fn open(volume: &dyn Volume, path: &FilePath) -> Result<Reader> {
        let file = volume.open(path)?;
        let limit = file.len()?;
        let mut reader = Reader {
            source: Source::new(file, path.clone(), limit),
            layout: Layout::default(),
            header_len: 0,
            has_trailer: false,
            compression: None,
            stale: false,
            watermark: 0,
            follows: None,
            vouched: false,
            last_names: (Arc::from(""), Arc::from("")),
            failed: false,
        };
        reader.read_ends()?;
        Ok(reader)
    }

    /// The file.
    pub fn path(&self) -> &FilePath {
        self.source.path()
    }

    /// Where the next entry begins.
    pub fn position(&self) -> u64 {
        self.source.position()
    }

    /// Whether the file was closed in order, so that every byte of it must be good.
    pub fn has_trailer(&self) -> bool {
        self.has_trailer
    }

    /// Whether the file has a whole header.
    pub fn has_header(&self) -> bool {
        self.header_len > 0
    }

    /// Whether the entries carry Basalt's checksums.
    pub fn is_sealed(&self) -> bool {
        self.layout.sealed
    }

    /// Bytes of the file that are known to have been synced, as far as read (sealed files only): entries beyond it may also be in
    /// the next file, to which they were moved after a failed sync.
    pub fn synced_watermark(&self) -> u64 {
        self.watermark
    }

    /// The file before, when an entry that was read counts only if that one is whole.
    pub(crate) fn follows(&self) -> Option<Follows> {
        self.follows
    }

    /// Whether an entry that was read says that all files before were durable.
    pub(crate) fn is_vouched(&self) -> bool {
        self.vouched
    }

    /// Tells the operating system that a part of the file will not be read again.
    pub(crate) fn forget_range(&self, offset: u64, len: u64) {
        self.source.file().forget_range(offset, len);
    }

    /// Looks at the file's length again; returns whether it changed. A file that was closed does not change.
    ///
    /// # Errors
    /// As [`Reader::open`].
    pub fn refresh(&mut self) -> Result<bool> {
        let len = self.source.file().len()?;
        if self.has_trailer || len == self.source.limit() {
            return Ok(false);
        }
        let position = self.source.position();
        self.source.set_limit(len);
        self.read_ends()?;
        if position > 0 && self.header_len > 0 {
            if self.compression.is_some() {
                self.replay_to(position)?;
            }
            self.source.seek(position);
        }
        Ok(true)
    }

    /// The next entry; `None` at the end of the file or at its torn end.
    ///
    /// # Errors
    /// [`Error::Corrupt`] with the offset of an entry that is damaged though it was once durable. It stays the answer.
    #[allow(clippy::should_implement_trait, reason = "the name that the log's readers have had for long")]
    pub fn next(&mut self) -> Result<Option<Entry>> {
        if self.header_len == 0 {
            return Ok(None);
        }
        if self.stale {
            self.replay_to(self.source.position())?;
        }
        let position = self.source.position();
        if position >= self.source.limit() {
            return Ok(None);
        }
        self.source.set_mark();
        let fault = match self.entry(position) {
            Ok(entry) => return Ok(Some(entry)),
            Err(fault) => fault,
        };
        self.stale = self.compression.is_some();
        let verdict = match fault {
            Fault::Fatal(error) => Err(error),
            Fault::Short if self.has_trailer => {
                Err(Error::corrupt(self.path(), position, "an entry that does not end before the trailer"))
            }
            Fault::Bad(what) if self.has_trailer => Err(Error::corrupt(self.path(), position, what)),
            Fault::Short | Fault::Bad(_) if self.is_partial_trailer(position)? => Ok(None),
            Fault::Short if self.layout.compressed => Ok(None),
            // Nothing can be found again in a file whose entries build on each other.
            Fault::Bad(what) if self.layout.compressed => Err(Error::corrupt(self.path(), position, what)),
            fault => match self.find_later_proof(position)? {
                None => Ok(None),
                Some(later) => {
                    let what = match fault {
                        Fault::Bad(what) => what,
                        _ => "an entry that does not end within the file".to_owned(),
                    };
                    let what = format!("{what} (what is written at offset {later} shows that it was whole once)");
                    Err(Error::corrupt(self.path(), position, what))
                }
            },
        };
        self.source.seek(position);
        self.failed |= verdict.is_err();
        verdict
    }

    /// Header and trailer, as far as they are there.
    fn read_ends(&mut self) -> Result<()> {
        self.source.seek(0);
        match self.header() {
            Ok(()) => {}
            Err(Fault::Short) => {
                self.header_len = 0;
                return Ok(());
            }
            Err(Fault::Bad(what)) => {
                if self.is_blank()? {
                    self.header_len = 0;
                    return Ok(());
                }
                return Err(Error::corrupt(self.path(), 0, what));
            }
            Err(Fault::Fatal(error)) => return Err(error),
        }
        self.header_len = self.source.position();
        let Some(end) = self.source.limit().checked_sub(TRAILER.len() as u64).filter(|end| *end >= self.header_len)
        else {
            return Ok(());
        };
        let mut tail = [0; TRAILER.len()];
        self.source.file().read_exact_at(&mut tail, end)?;
        let [s0, s1, s2, s3, magic @ ..] = tail;
        let size = u64::from(u32::from_be_bytes([s0, s1, s2, s3]));
        if magic == *END_MAGIC && end.checked_sub(size).is_some_and(|start| start >= self.header_len) {
            self.has_trailer = true;
            self.source.set_limit(end - size);
        }
        Ok(())
    }

    fn header(&mut self) -> std::result::Result<(), Fault> {
        let magic = self.source.take(MAGIC.len())?;
        if magic != MAGIC {
            return bad(format!("{magic:02x?} in place of PWAL; this is not a log file"));
        }
        let len = self.source.len_varint()?;
        if len as u64 > MAX_HEADER_BYTES {
            return bad(format!("a header of {len} bytes"));
        }
        let message = self.source.take(len)?;
        let sealed = is_sealed(message);
        let header = pb::WalHeader::decode(message).map_err(|e| Fault::Bad(format!("the header: {e}")))?;
        let unsupported = |what: String| Fault::Fatal(Error::Unsupported { path: self.source.path().clone(), what });
        if let Some(writer) = header.writer_cls_name.as_deref().filter(|name| !WRITERS.contains(name)) {
            return Err(unsupported(format!("it was written by {writer}, which is unknown")));
        }
        if header.encryption_key.is_some() || header.cell_codec_cls_name() == SECURE_CODEC {
            return Err(unsupported("it is encrypted (SecureProtobufLogWriter)".to_owned()));
        }
        let compressed = header.has_compression();
        let values = match header.value_compression_algorithm {
            Some(ordinal) if compressed && header.has_value_compression() => {
                Some(ValueCodec::from_ordinal(ordinal).map_err(unsupported)?)
            }
            _ => None,
        };
        self.layout = Layout { sealed, compressed, tags: compressed && header.has_tag_compression(), values };
        self.compression = self.new_compression();
        self.stale = false;
        Ok(())
    }

    fn new_compression(&self) -> Option<Compression> {
        let recovered_edits = self.path().as_str().contains("recovered.edits");
        self.layout.compressed.then(|| Compression::new(recovered_edits, self.layout.tags, self.layout.values))
    }

    /// Whether there are only zeros: a crash left the length of the file and nothing else.
    fn is_blank(&mut self) -> Result<bool> {
        let len = self.source.limit();
        if len > MAX_BLANK_BYTES {
            return Ok(false);
        }
        let mut bytes = vec![0; len as usize];
        self.source.file().read_exact_at(&mut bytes, 0)?;
        Ok(bytes.iter().all(|b| *b == 0))
    }

    fn is_partial_trailer(&mut self, position: u64) -> Result<bool> {
        let left = self.source.limit() - position;
        if left >= TRAILER.len() as u64 {
            return Ok(false);
        }
        let mut rest = vec![0; left as usize];
        self.source.file().read_exact_at(&mut rest, position)?;
        Ok(TRAILER.starts_with(&rest))
    }

    /// Builds the dictionaries again by reading from the start up to `position`, which was reached before.
    fn replay_to(&mut self, position: u64) -> Result<()> {
        self.compression = self.new_compression();
        self.stale = false;
        self.source.seek(self.header_len);
        while self.source.position() < position {
            let at = self.source.position();
            self.source.set_mark();
            match self.entry(at) {
                Ok(_) => {}
                Err(Fault::Fatal(error)) => {
                    self.stale = true;
                    self.source.seek(position);
                    return Err(error);
                }
                Err(fault) => {
                    return Err(Error::corrupt(self.path(), at, format!("it changed while it was read: {fault:?}")));
                }
            }
        }
        Ok(())
    }

    /// The entry here, which is at `offset`.
    fn entry(&mut self, offset: u64) -> std::result::Result<Entry, Fault> {
        let key_len = self.source.len_varint()?;
        if key_len == 0 || key_len > MAX_KEY_BYTES {
            return bad(format!("a key of {key_len} bytes"));
        }
        let message = Bytes::copy_from_slice(self.source.take(key_len)?);
        let message = pb::WalKey::decode(message).map_err(|e| Fault::Bad(format!("the key: {e}")))?;
        let head_len = self.source.since_mark().len();
        let count = message.following_kv_count.unwrap_or(0);
        let key = self.key(message)?;
        let cells = match self.compression.take() {
            Some(mut compression) => {
                let mut run = Vec::new();
                let outcome = (0..count).try_for_each(|_| compression.cell(&mut self.source, &mut run));
                self.compression = Some(compression);
                outcome?;
                Bytes::from(run)
            }
            None => {
                for _ in 0..count {
                    self.plain_cell()?;
                }
                Bytes::copy_from_slice(&self.source.since_mark()[head_len..])
            }
        };
        if self.layout.sealed {
            let whole = self.source.since_mark();
            match seal::check(&whole[..head_len], &whole[head_len..], offset) {
                None => return bad("the checksum of the entry is wrong"),
                Some(Says::Synced(watermark)) => {
                    self.watermark = self.watermark.max(watermark);
                    self.vouched = true;
                }
                Some(Says::Follows(follows)) => self.follows = Some(follows),
            }
        }
        let cells = CellBlock::parse_shapes(cells).map_err(|e| Fault::Bad(e.to_string()))?;
        if cells.len() != count as usize {
            return bad(format!("{} cells where the key says {count}", cells.len()));
        }
        Ok(Entry { key, cells, offset })
    }

    /// Goes over a cell.
    fn plain_cell(&mut self) -> std::result::Result<(), Fault> {
        let len = u32::from_be_bytes(self.source.take(4)?.try_into().unwrap_or_default());
        if len > i32::MAX as u32 {
            return bad(format!("a cell of {len} bytes"));
        }
        let bytes = self.source.take(len as usize)?;
        CellRef::parse_shape(bytes, SeqId(0)).map(|_| ()).map_err(|e| Fault::Bad(e.to_string()))
    }

    fn key(&mut self, message: pb::WalKey) -> std::result::Result<Key, Fault> {
        let (mut region, mut table) = (message.encoded_region_name, message.table_name);
        let mut scopes: Vec<ReplicationScope> =
            message.scopes.into_iter().map(|s| ReplicationScope { family: s.family, scope: s.scope_type }).collect();
        let mut attributes: Vec<(String, Bytes)> =
            message.extended_attributes.into_iter().map(|a| (a.key, a.value)).collect();
        if let Some(compression) = &mut self.compression {
            region = compression.region(&region)?;
            table = compression.table(&table)?;
            for scope in &mut scopes {
                scope.family = compression.family(&scope.family)?;
            }
            for (_, value) in &mut attributes {
                *value = compression.table(value)?;
            }
        }
        // Ours, or a copy of ours in a file of HBase's: no coprocessor's in any case.
        attributes.retain(|(name, _)| name != seal::NAME);
        if region.is_empty() || table.is_empty() {
            return bad("a key without region or table");
        }
        if message.log_sequence_number > i64::MAX as u64 {
            return bad(format!("a sequence id of {}", message.log_sequence_number));
        }
        let nonce = (message.nonce_group.is_some() || message.nonce.is_some())
            .then(|| (message.nonce_group.unwrap_or(0), message.nonce.unwrap_or(0)));
        let region = share(&mut self.last_names.0, &region)?;
        let table = share(&mut self.last_names.1, &table)?;
        Ok(Key {
            region,
            table,
            seq_id: SeqId(message.log_sequence_number),
            write_time: TimestampMs(message.write_time as i64),
            nonce,
            scopes,
            cluster_ids: message
                .cluster_ids
                .iter()
                .map(|id| ClusterId { most_sig_bits: id.most_sig_bits, least_sig_bits: id.least_sig_bits })
                .collect(),
            orig_seq_id: message.orig_sequence_number.map(SeqId),
            attributes,
        })
    }

    /// The first place after a damaged entry that proves it was durable: in a sealed file an unbroken entry whose watermark says so,
    /// in another one anything that has the whole shape of an entry. Reads the rest of the file, once.
    fn find_later_proof(&mut self, damaged: u64) -> Result<Option<u64>> {
        let watermark = self.watermark;
        let found = self.search(damaged);
        self.watermark = watermark;
        found
    }

    fn search(&mut self, damaged: u64) -> Result<Option<u64>> {
        if self.watermark > damaged {
            return Ok(Some(self.watermark));
        }
        let mut at = damaged + 1;
        while at < self.source.limit() {
            self.source.seek(at);
            if self.looks_like_an_entry()? {
                self.source.seek(at);
                self.watermark = 0;
                match self.entry(at) {
                    Ok(_) if self.layout.sealed && self.watermark > damaged => return Ok(Some(at)),
                    Ok(entry) if !self.layout.sealed && is_plausible(&entry) => return Ok(Some(at)),
                    // A whole entry whose watermark is below the damage: on behind it.
                    Ok(_) => {
                        at = self.source.position();
                        continue;
                    }
                    Err(Fault::Fatal(error)) => return Err(error),
                    Err(_) => {}
                }
            }
            at += 1;
        }
        Ok(None)
    }

    /// Whether a length and field 1 of a key are here, which costs little to see.
    fn looks_like_an_entry(&mut self) -> Result<bool> {
        let mut look = || {
            let len = self.source.len_varint()?;
            let field = self.source.byte()?;
            let name_len = self.source.len_varint()?;
            Ok(field == 0x0A && name_len > 0 && name_len < len && len <= MAX_KEY_BYTES)
        };
        match look() {
            Ok(yes) => Ok(yes),
            Err(Fault::Fatal(error)) => Err(error),
            Err(_) => Ok(false),
        }
    }
}

/// Whether bytes in the shape of an entry are one: many messages have that shape when all their fields may be missing.
fn is_plausible(entry: &Entry) -> bool {
    let key = &entry.key;
    !entry.cells.is_empty()
        && key.seq_id.0 > 0
        && key.write_time.0 > 0
        && key.region.bytes().all(|b| b.is_ascii_alphanumeric())
        && key.table.bytes().all(|b| b.is_ascii_graphic())
}

/// The name as a shared string, the last one again when it is the same.
fn share(last: &mut Arc<str>, name: &[u8]) -> std::result::Result<Arc<str>, Fault> {
    if last.as_bytes() != name {
        let text =
            std::str::from_utf8(name).map_err(|_| Fault::Bad("a region or table name that is not text".to_owned()))?;
        *last = Arc::from(text);
    }
    Ok(Arc::clone(last))
}
