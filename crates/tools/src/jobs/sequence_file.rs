//! Hadoop's SequenceFile. Follows: `SequenceFile`.
//!
//! ```text
//! SEQ 6, class of keys, class of values (length and name each), compressed?, by blocks?, [codec], count of pairs of metadata, 16 bytes of sync
//! record: length of key and value (4), length of the key (4), key, value;  before some of them: -1 (4), the 16 bytes of sync
//! block:  -1 (4), sync (16), count of records (vint), and each packed with its length (vint) before it: lengths of keys, keys, lengths of values, values
//! ```
//!
//! Where records are compressed, the value of each is packed by itself. Bytes: docs/formats/sequencefile.md.

use std::collections::VecDeque;
use std::io::{BufRead, Read, Seek, SeekFrom, Write};

use anyhow::{Context, bail};
use base::Config;
use bytes::Bytes;

use super::packing::Codec;

const MAGIC: &[u8; 3] = b"SEQ";
const VERSION: u8 = 6;
const SYNC_BYTES: usize = 16;
/// Bytes between two sync marks, at least.
const SYNC_INTERVAL_BYTES: u64 = 100 * 1024;
/// Plain bytes of a block (`io.seqfile.compress.blocksize`).
const BLOCK_BYTES: usize = 1_000_000;
/// What is reserved at once for bytes that a file says will come, at most.
const SURE_BYTES: usize = 1 << 20;
/// A longer record is believed to be damage.
const MAX_RECORD_BYTES: usize = 1 << 30;

/// What is compressed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Packing {
    /// Nothing.
    None,
    /// The value of each record.
    Records(Codec),
    /// Keys and values of many records together.
    Blocks(Codec),
}

impl Packing {
    /// As the settings of an output of MapReduce say.
    ///
    /// # Errors
    /// A codec or type that is not known.
    pub fn of(config: &Config) -> anyhow::Result<Packing> {
        const COMPRESS: &str = "mapreduce.output.fileoutputformat.compress";
        if !config.text(COMPRESS).is_some_and(|text| text.trim().eq_ignore_ascii_case("true")) {
            return Ok(Packing::None);
        }
        let (codec_key, type_key) = (format!("{COMPRESS}.codec"), format!("{COMPRESS}.type"));
        let codec = config.text(&codec_key).map_or(Ok(Codec::Default), Codec::parse).context(codec_key)?;
        Ok(match config.text(&type_key).map_or("RECORD", str::trim).to_uppercase().as_str() {
            "NONE" => Packing::None,
            "RECORD" => Packing::Records(codec),
            "BLOCK" => Packing::Blocks(codec),
            other => bail!("{type_key} = {other}: NONE, RECORD and BLOCK are known"),
        })
    }

    fn codec(self) -> Option<Codec> {
        match self {
            Packing::None => None,
            Packing::Records(codec) | Packing::Blocks(codec) => Some(codec),
        }
    }
}

/// Java's classes of keys and values, and what a file of them is, for messages.
#[derive(Debug, Clone, Copy)]
pub(super) struct Classes {
    pub key: &'static str,
    pub value: &'static str,
    pub what: &'static str,
}

/// How a file is written.
#[derive(Debug, Clone, Copy)]
pub(super) struct Form {
    /// Marks places in the file: bytes that are not likely to be among the records.
    pub sync: [u8; SYNC_BYTES],
    pub packing: Packing,
}

fn vint(out: &mut Vec<u8>, number: usize) {
    cell::vint::write(out, number as i64);
}

/// Records that wait for being packed together.
#[derive(Default)]
struct Block {
    count: usize,
    key_lens: Vec<u8>,
    keys: Vec<u8>,
    value_lens: Vec<u8>,
    values: Vec<u8>,
}

/// Writes a file.
pub(super) struct Writer<W: Write> {
    out: W,
    form: Form,
    position: u64,
    synced: u64,
    block: Block,
}

impl<W: Write> Writer<W> {
    /// Begins a file.
    pub fn new(mut out: W, classes: Classes, form: &Form) -> anyhow::Result<Writer<W>> {
        let mut head = MAGIC.to_vec();
        head.push(VERSION);
        let mut text = |text: &str| {
            vint(&mut head, text.len());
            head.extend_from_slice(text.as_bytes());
        };
        text(classes.key);
        text(classes.value);
        let codec = form.packing.codec();
        head.extend_from_slice(&[u8::from(codec.is_some()), u8::from(matches!(form.packing, Packing::Blocks(_)))]);
        if let Some(codec) = codec {
            let class = codec.class();
            vint(&mut head, class.len());
            head.extend_from_slice(class.as_bytes());
        }
        head.extend_from_slice(&0_u32.to_be_bytes());
        head.extend_from_slice(&form.sync);
        out.write_all(&head)?;
        let position = head.len() as u64;
        Ok(Writer { out, form: *form, position, synced: position, block: Block::default() })
    }

    /// Bytes written so far: where the next record begins, unless blocks are packed.
    pub fn position(&self) -> u64 {
        self.position
    }

    fn write(&mut self, bytes: &[u8]) -> anyhow::Result<()> {
        self.out.write_all(bytes)?;
        self.position += bytes.len() as u64;
        Ok(())
    }

    fn mark(&mut self) -> anyhow::Result<()> {
        self.write(&(-1_i32).to_be_bytes())?;
        let sync = self.form.sync;
        self.write(&sync)?;
        self.synced = self.position;
        Ok(())
    }

    /// Adds a record: key and value as their classes write them.
    ///
    /// # Errors
    /// It is too long, or cannot be written.
    pub fn append(&mut self, key: &[u8], value: &[u8]) -> anyhow::Result<()> {
        if key.len() + value.len() > MAX_RECORD_BYTES {
            bail!("a record of {} bytes does not fit a SequenceFile", key.len() + value.len());
        }
        let packed;
        let value = match self.form.packing {
            Packing::None => value,
            Packing::Records(codec) => {
                packed = codec.pack(value)?;
                &packed
            }
            Packing::Blocks(codec) => {
                let block = &mut self.block;
                block.count += 1;
                vint(&mut block.key_lens, key.len());
                block.keys.extend_from_slice(key);
                vint(&mut block.value_lens, value.len());
                block.values.extend_from_slice(value);
                return if block.keys.len() + block.values.len() >= BLOCK_BYTES {
                    self.end_block(codec)
                } else {
                    Ok(())
                };
            }
        };
        if self.position >= self.synced + SYNC_INTERVAL_BYTES {
            self.mark()?;
        }
        self.write(&((key.len() + value.len()) as u32).to_be_bytes())?;
        self.write(&(key.len() as u32).to_be_bytes())?;
        self.write(key)?;
        self.write(value)
    }

    fn end_block(&mut self, codec: Codec) -> anyhow::Result<()> {
        let block = std::mem::take(&mut self.block);
        if block.count == 0 {
            return Ok(());
        }
        self.mark()?;
        let mut count = Vec::new();
        vint(&mut count, block.count);
        self.write(&count)?;
        for part in [&block.key_lens, &block.keys, &block.value_lens, &block.values] {
            let packed = codec.pack(part)?;
            let mut len = Vec::new();
            vint(&mut len, packed.len());
            self.write(&len)?;
            self.write(&packed)?;
        }
        Ok(())
    }

    /// Ends the file.
    ///
    /// # Errors
    /// It cannot be written.
    pub fn finish(mut self) -> anyhow::Result<W> {
        if let Packing::Blocks(codec) = self.form.packing {
            self.end_block(codec)?;
        }
        self.out.flush()?;
        Ok(self.out)
    }
}

/// A record: key and value as their classes write them.
pub(super) type Record = (Bytes, Bytes);

/// Reads a file.
pub(super) struct Reader<R: Read> {
    input: R,
    name: String,
    sync: [u8; SYNC_BYTES],
    packing: Packing,
    position: u64,
    /// Records of a block that are still to be handed out.
    waiting: VecDeque<Record>,
}

impl<R: Read> Reader<R> {
    /// Reads a file's head. `name` is for messages.
    ///
    /// # Errors
    /// It is none, of other classes, or packed with a codec that is not here.
    pub fn new(input: R, name: &str, classes: Classes) -> anyhow::Result<Reader<R>> {
        let (sync, packing) = ([0; SYNC_BYTES], Packing::None);
        let mut reader = Reader { input, name: name.to_owned(), sync, packing, position: 0, waiting: VecDeque::new() };
        let head: [u8; 4] = reader.array().context("it has no head")?;
        if head[..3] != MAGIC[..] || head[3] != VERSION {
            bail!("{name} is no SequenceFile of version 6: it begins with {}", cell::print::to_string_binary(&head));
        }
        for (wanted, what) in [(classes.key, "keys"), (classes.value, "values")] {
            let class = reader.text()?;
            if class != wanted {
                bail!("{name} has {what} of {class}, not of {wanted}: it is no {}", classes.what);
            }
        }
        let [is_packed, by_blocks]: [u8; 2] = reader.array()?;
        if is_packed != 0 {
            let class = reader.text()?;
            let codec = Codec::parse(&class).with_context(|| format!("{name} is compressed"))?;
            reader.packing = if by_blocks != 0 { Packing::Blocks(codec) } else { Packing::Records(codec) };
        }
        let pairs = u32::from_be_bytes(reader.array()?);
        for _ in 0..pairs {
            reader.text()?;
            reader.text()?;
        }
        reader.sync = reader.array()?;
        Ok(reader)
    }

    /// What is compressed in it.
    pub fn packing(&self) -> Packing {
        self.packing
    }

    /// An error that names the file and how far it was read.
    pub fn damaged(&self, what: &str) -> anyhow::Error {
        anyhow::anyhow!("{} is damaged at byte {}: {what}", self.name, self.position)
    }

    /// So many bytes; an error where the file ends before.
    fn array<const N: usize>(&mut self) -> anyhow::Result<[u8; N]> {
        let mut bytes = [0; N];
        self.input.read_exact(&mut bytes).map_err(|error| self.damaged(&format!("it ends too early ({error})")))?;
        self.position += N as u64;
        Ok(bytes)
    }

    fn bytes(&mut self, len: usize) -> anyhow::Result<Vec<u8>> {
        // Beyond this it grows as bytes come: a length that lies takes no memory.
        let mut bytes = Vec::with_capacity(len.min(SURE_BYTES));
        let read = (&mut self.input).take(len as u64).read_to_end(&mut bytes)?;
        if read < len {
            return Err(self.damaged(&format!("it ends {} bytes too early", len - read)));
        }
        self.position += len as u64;
        Ok(bytes)
    }

    /// A length as Hadoop's vint.
    fn len(&mut self, what: &str, limit: usize) -> anyhow::Result<usize> {
        let first: [u8; 1] = self.array()?;
        let more = match first[0] as i8 {
            -112.. => 0,
            at_most @ -120..=-113 => usize::from((-112 - i16::from(at_most)) as u16),
            _ => return Err(self.damaged(&format!("{what} has a negative length"))),
        };
        let mut vint = first.to_vec();
        vint.extend(self.bytes(more)?);
        let len = cell::vint::read(&vint).map(|(len, _)| len);
        let len = len.and_then(|len| usize::try_from(len).ok()).filter(|len| *len <= limit);
        len.ok_or_else(|| self.damaged(&format!("{what} has no sane length")))
    }

    /// A text with its length before it.
    fn text(&mut self) -> anyhow::Result<String> {
        let len = self.len("a text", 1 << 20)?;
        let bytes = self.bytes(len)?;
        String::from_utf8(bytes).map_err(|_| self.damaged("a text is no UTF-8"))
    }

    fn check_mark(&mut self) -> anyhow::Result<()> {
        if self.array::<SYNC_BYTES>()? != self.sync {
            return Err(self.damaged("a sync mark is another than the head's"));
        }
        Ok(())
    }

    /// The length that a record or a block begins with; none at the file's end.
    fn begin(&mut self) -> anyhow::Result<Option<i32>> {
        let mut len = [0; 4];
        // Only here may the file end.
        if self.input.read(&mut len[..1])? == 0 {
            return Ok(None);
        }
        self.position += 1;
        len[1..].copy_from_slice(&self.array::<3>()?);
        Ok(Some(i32::from_be_bytes(len)))
    }

    /// The next record; none at the end.
    ///
    /// # Errors
    /// The file is damaged, or cannot be read.
    pub fn next(&mut self) -> anyhow::Result<Option<Record>> {
        if let Packing::Blocks(codec) = self.packing {
            // A block may have no records; the file's end is where none begins.
            while self.waiting.is_empty() {
                if !self.block(codec)? {
                    return Ok(None);
                }
            }
            return Ok(self.waiting.pop_front());
        }
        let Some((len, key_len)) = self.lens()? else { return Ok(None) };
        let record = Bytes::from(self.bytes(len)?);
        let (key, value) = (record.slice(..key_len), record.slice(key_len..));
        Ok(Some(match self.packing {
            Packing::Records(codec) => (key, Bytes::from(self.unpack(codec, &value)?)),
            _ => (key, value),
        }))
    }

    /// The lengths of the next record and of the key in it; none at the file's end.
    fn lens(&mut self) -> anyhow::Result<Option<(usize, usize)>> {
        let Some(mut len) = self.begin()? else { return Ok(None) };
        if len == -1 {
            self.check_mark()?;
            match self.begin()? {
                Some(real) => len = real,
                None => return Ok(None),
            }
        }
        let key_len = i32::from_be_bytes(self.array()?);
        let sizes = (usize::try_from(len), usize::try_from(key_len));
        let (Ok(len), Ok(key_len)) = sizes else { return Err(self.damaged("a record has a negative length")) };
        if len > MAX_RECORD_BYTES || key_len > len {
            return Err(self.damaged(&format!("a record says {len} bytes with a key of {key_len}")));
        }
        Ok(Some((len, key_len)))
    }

    fn unpack(&self, codec: Codec, packed: &[u8]) -> anyhow::Result<Vec<u8>> {
        let plain = codec.unpack(packed, MAX_RECORD_BYTES);
        plain.map_err(|error| self.damaged(&format!("what {} packed cannot be unpacked: {error:#}", codec.class())))
    }

    /// Reads a block; false at the file's end.
    fn block(&mut self, codec: Codec) -> anyhow::Result<bool> {
        match self.begin()? {
            None => return Ok(false),
            Some(-1) => self.check_mark()?,
            Some(_) => return Err(self.damaged("a block does not begin with a sync mark")),
        }
        let count = self.len("a block's count of records", MAX_RECORD_BYTES)?;
        let mut parts = Vec::with_capacity(4);
        for _ in 0..4 {
            let len = self.len("a part of a block", MAX_RECORD_BYTES)?;
            let packed = self.bytes(len)?;
            parts.push(Bytes::from(self.unpack(codec, &packed)?));
        }
        let [mut key_lens, mut keys, mut value_lens, mut values] =
            <[Bytes; 4]>::try_from(parts).map_err(|_| self.damaged("a block has not four parts"))?;
        for _ in 0..count {
            let key = piece(&mut key_lens, &mut keys).ok_or_else(|| self.damaged("a key is longer than its block"))?;
            let value =
                piece(&mut value_lens, &mut values).ok_or_else(|| self.damaged("a value is longer than its block"))?;
            self.waiting.push_back((key, value));
        }
        Ok(true)
    }
}

impl<R: BufRead> Reader<R> {
    /// Hands the next record's value, by itself, to `take`, where it lies in the input's buffer if it is whole there; none at the end.
    ///
    /// # Errors
    /// As [`Reader::next`].
    pub fn next_value<T>(&mut self, take: impl FnOnce(&[u8]) -> T) -> anyhow::Result<Option<T>> {
        if self.packing != Packing::None {
            return Ok(self.next()?.map(|(_, value)| take(&value)));
        }
        let Some((len, key_len)) = self.lens()? else { return Ok(None) };
        if let Some(record) = self.input.fill_buf()?.get(..len) {
            let taken = take(&record[key_len..]);
            self.input.consume(len);
            self.position += len as u64;
            return Ok(Some(taken));
        }
        let record = self.bytes(len)?;
        Ok(Some(take(&record[key_len..])))
    }
}

impl<R: Read + Seek> Reader<R> {
    /// Goes to where a record begins, or a sync mark before one.
    ///
    /// # Errors
    /// The file cannot be read.
    pub fn seek(&mut self, position: u64) -> anyhow::Result<()> {
        self.input.seek(SeekFrom::Start(position))?;
        self.position = position;
        self.waiting.clear();
        Ok(())
    }
}

/// Takes a length off `lens`, and so many bytes off `bytes`.
fn piece(lens: &mut Bytes, bytes: &mut Bytes) -> Option<Bytes> {
    let (len, used) = cell::vint::read(lens)?;
    let len = usize::try_from(len).ok().filter(|len| *len <= bytes.len())?;
    drop(lens.split_to(used));
    Some(bytes.split_to(len))
}

#[cfg(test)]
mod tests {
    use super::*;

    const CLASSES: Classes = Classes { key: "K", value: "V", what: "test" };

    fn config(pairs: &[(&str, &str)]) -> Config {
        let mut config = Config::default();
        for (key, value) in pairs {
            config.set(format!("mapreduce.output.fileoutputformat.compress{key}"), *value);
        }
        config
    }

    fn file(packing: Packing, records: usize) -> Vec<u8> {
        let mut out = Writer::new(Vec::new(), CLASSES, &Form { sync: [7; SYNC_BYTES], packing }).expect("begun");
        for i in 0..records {
            out.append(format!("key{i:07}").as_bytes(), &vec![i as u8; i % 300]).expect("written");
        }
        out.finish().expect("ended")
    }

    const ALL: [Packing; 5] = [
        Packing::None,
        Packing::Records(Codec::Default),
        Packing::Blocks(Codec::Default),
        Packing::Records(Codec::Snappy),
        Packing::Blocks(Codec::Zstd),
    ];

    #[test]
    fn what_is_written_is_read_however_it_is_packed() {
        for packing in ALL {
            let bytes = file(packing, 10_000);
            let mut reader = Reader::new(&bytes[..], "x", CLASSES).expect("a head");
            assert_eq!(reader.packing(), packing);
            let mut count = 0;
            while let Some((key, value)) = reader.next().expect("a record") {
                assert_eq!(&key[..], format!("key{count:07}").as_bytes());
                assert_eq!(&value[..], vec![count as u8; count % 300]);
                count += 1;
            }
            assert_eq!(count, 10_000, "{packing:?}");
        }
    }

    #[test]
    fn damage_is_named_and_never_a_panic() {
        for packing in ALL {
            let bytes = file(packing, 6);
            for at in 0..bytes.len() {
                if let Ok(mut reader) = Reader::new(&bytes[..at], "x", CLASSES) {
                    while let Ok(Some(_)) = reader.next() {}
                }
                let mut damaged = bytes.clone();
                damaged[at] ^= 0x80;
                if let Ok(mut reader) = Reader::new(&damaged[..], "x", CLASSES) {
                    while let Ok(Some(_)) = reader.next() {}
                }
            }
        }
    }

    #[test]
    fn settings_of_mapreduce_say_what_is_packed() {
        assert_eq!(Packing::of(&config(&[])).expect("legal"), Packing::None);
        assert_eq!(Packing::of(&config(&[("", "true")])).expect("legal"), Packing::Records(Codec::Default));
        let snappy =
            config(&[("", "true"), (".codec", "org.apache.hadoop.io.compress.SnappyCodec"), (".type", "BLOCK")]);
        assert_eq!(Packing::of(&snappy).expect("legal"), Packing::Blocks(Codec::Snappy));
        assert!(Packing::of(&config(&[("", "true"), (".type", "SOME")])).is_err());
        assert!(Packing::of(&config(&[("", "true"), (".codec", "x")])).is_err());
    }
}
