//! YCSB's core workload: which operation comes next, on which record, with what in it.
//!
//! Draws only; who carries out what is drawn is `run`. Follows `site.ycsb.workloads.CoreWorkload`.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use anyhow::{Context, bail};
use base::Rng;
use bytes::Bytes;

use super::generator::{AcknowledgedCounter, Generator, Zipfian, fnv_hash, unit};
use super::properties::Properties;

/// What an operation does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// One record.
    Read,
    /// Fields of a record anew.
    Update,
    /// A record that was not there.
    Insert,
    /// Some records from one on.
    Scan,
    /// A read and an update of the same record.
    ReadModifyWrite,
}

/// Fields and their new values.
pub type Values = Vec<(Bytes, Vec<u8>)>;

/// One operation. `fields`: `None` asks for the whole family.
#[derive(Clone, Debug, PartialEq)]
pub enum Operation {
    /// One record.
    Read {
        /// Its key.
        key: String,
        /// Fields wanted.
        fields: Option<Vec<Bytes>>,
    },
    /// Fields of a record anew.
    Update {
        /// Its key.
        key: String,
        /// Fields written.
        values: Values,
    },
    /// A record that was not there.
    Insert {
        /// To be acknowledged when it is there.
        number: i64,
        /// Its key.
        key: String,
        /// Fields written.
        values: Values,
    },
    /// Some records from one on.
    Scan {
        /// Key of the first.
        key: String,
        /// How many.
        records: i64,
        /// Fields wanted.
        fields: Option<Vec<Bytes>>,
    },
    /// A read and an update of the same record.
    ReadModifyWrite {
        /// Its key.
        key: String,
        /// Fields wanted.
        fields: Option<Vec<Bytes>>,
        /// Fields written.
        values: Values,
    },
}

/// A workload, shared by its clients.
#[derive(Debug)]
pub struct Core {
    fields: Vec<Bytes>,
    zero_padding: usize,
    ordered: bool,
    read_all: bool,
    read_all_by_name: bool,
    write_all: bool,
    /// Whether values are made from keys, and read back against them.
    pub data_integrity: bool,
    operations: Vec<(f64, Kind)>,
    key_chooser: Generator,
    field_length: Generator,
    scan_length: Generator,
    load_sequence: AtomicI64,
    /// Records inserted by transactions.
    pub inserted: AcknowledgedCounter,
    /// How often a failed insert of the loading phase is tried again.
    pub retry_limit: u32,
    /// About how long to wait between, in seconds.
    pub retry_interval_seconds: f64,
    /// Whether loading goes on after an insert that failed.
    pub keep_going: bool,
}

impl Core {
    /// From properties.
    ///
    /// # Errors
    /// A property is not what it should be; it is named.
    pub fn new(p: &Properties) -> anyhow::Result<Core> {
        let field_count: i64 = p.number("fieldcount", 10)?;
        let prefix = p.text("fieldnameprefix").unwrap_or("field");
        let mut record_count: i64 = p.number("recordcount", 0)?;
        if record_count == 0 {
            record_count = i64::from(i32::MAX);
        }
        let insert_start: i64 = p.number("insertstart", 0)?;
        let insert_count: i64 = p.number("insertcount", record_count - insert_start)?;
        if record_count < insert_start + insert_count {
            bail!("recordcount must be at least insertstart + insertcount");
        }
        let data_integrity = p.flag("dataintegrity", false);
        if data_integrity && p.text("fieldlengthdistribution").unwrap_or("constant") != "constant" {
            bail!("dataintegrity wants fields of constant length");
        }
        let mut operations = Vec::new();
        for (name, default, kind) in [
            ("readproportion", 0.95, Kind::Read),
            ("updateproportion", 0.05, Kind::Update),
            ("insertproportion", 0.0, Kind::Insert),
            ("scanproportion", 0.0, Kind::Scan),
            ("readmodifywriteproportion", 0.0, Kind::ReadModifyWrite),
        ] {
            let share = p.number(name, default)?;
            if share > 0.0 {
                operations.push((share, kind));
            }
        }
        let last = insert_start + insert_count - 1;
        let key_chooser = match p.text("requestdistribution").unwrap_or("uniform") {
            "uniform" => Generator::Uniform(insert_start, last),
            "sequential" => Generator::sequential(insert_start, last),
            "exponential" => {
                let percentile = p.number("exponential.percentile", 95.0)?;
                let fraction: f64 = p.number("exponential.frac", 0.857_142_857_1)?;
                Generator::exponential(percentile, record_count as f64 * fraction)
            }
            "zipfian" => {
                // Keys that inserts will add are counted from the start, so that the hot keys stay the same.
                let operations: i64 = p.number("operationcount", 0)?;
                let expected = (operations as f64 * p.number("insertproportion", 0.0)? * 2.0) as i64;
                Generator::scrambled(insert_start, insert_start + insert_count + expected)
            }
            "latest" => Generator::latest(record_count - 1),
            "hotspot" => {
                let (set, share) = (p.number("hotspotdatafraction", 0.2)?, p.number("hotspotopnfraction", 0.8)?);
                Generator::hotspot(insert_start, last, set, share)
            }
            other => bail!("unknown requestdistribution {other:?}"),
        };
        let (least, most) = (p.number("minscanlength", 1)?, p.number("maxscanlength", 1000)?);
        let scan_length = match p.text("scanlengthdistribution").unwrap_or("uniform") {
            "uniform" => Generator::Uniform(least, most),
            "zipfian" => Generator::Zipfian(Zipfian::new(least, most)),
            other => bail!("scanlengthdistribution {other:?} is neither uniform nor zipfian"),
        };
        Ok(Core {
            fields: (0..field_count).map(|n| Bytes::from(format!("{prefix}{n}"))).collect(),
            zero_padding: p.number("zeropadding", 1)?,
            ordered: p.text("insertorder").unwrap_or("hashed") != "hashed",
            read_all: p.flag("readallfields", true),
            read_all_by_name: p.flag("readallfieldsbyname", false),
            write_all: p.flag("writeallfields", false),
            data_integrity,
            operations,
            key_chooser,
            field_length: field_length(p)?,
            scan_length,
            load_sequence: insert_start.into(),
            inserted: AcknowledgedCounter::new(record_count),
            retry_limit: p.number("core_workload_insertion_retry_limit", 0)?,
            retry_interval_seconds: p.number("core_workload_insertion_retry_interval", 3.0)?,
            keep_going: p.flag("core_workload_insertion_keep_going_on_error", false),
        })
    }

    /// The key of a record.
    pub fn key(&self, number: i64) -> String {
        let number = if self.ordered { number } else { fnv_hash(number) };
        format!("user{number:0>width$}", width = self.zero_padding)
    }

    /// Whether `value` is what `key` and `field` make (with `dataintegrity`).
    pub fn verify(&self, key: &str, field: &[u8], value: &[u8]) -> bool {
        deterministic_value(key, &String::from_utf8_lossy(field), value.len()).as_bytes() == value
    }
}

fn field_length(p: &Properties) -> anyhow::Result<Generator> {
    let (least, most) = (p.number("minfieldlength", 1)?, p.number("fieldlength", 100)?);
    Ok(match p.text("fieldlengthdistribution").unwrap_or("constant") {
        "constant" => Generator::Constant(most),
        "uniform" => Generator::Uniform(least, most),
        "zipfian" => Generator::Zipfian(Zipfian::new(least, most)),
        "histogram" => {
            let path = p.text("fieldlengthhistogram").unwrap_or("hist.txt");
            let text = std::fs::read_to_string(path).with_context(|| format!("cannot read {path}"))?;
            Generator::histogram(&text).with_context(|| format!("{path} is no histogram of lengths"))?
        }
        other => bail!("unknown fieldlengthdistribution {other:?}"),
    })
}

/// The value that `key` and `field` make: both, then hashes of what is there, cut to `size` characters.
fn deterministic_value(key: &str, field: &str, size: usize) -> String {
    let mut text = format!("{key}:{field}");
    let mut hash = java_hash(0, &text);
    while text.len() < size {
        // the colon is there already when the text is hashed
        text.push(':');
        hash = java_hash(hash, ":");
        let digits = hash.to_string();
        hash = java_hash(hash, &digits);
        text.push_str(&digits);
    }
    text.truncate(size);
    text
}

/// `String.hashCode` of ASCII text, continued from the hash of what is before it.
fn java_hash(from: i32, text: &str) -> i32 {
    text.bytes().fold(from, |h, b| h.wrapping_mul(31).wrapping_add(i32::from(b)))
}

/// A client's draws.
pub struct Player {
    core: Arc<Core>,
    rng: Rng,
    key_chooser: Generator,
    field_length: Generator,
    scan_length: Generator,
}

impl Player {
    /// A client with a random number generator of its own.
    pub fn new(core: Arc<Core>, rng: Rng) -> Player {
        let (key_chooser, field_length) = (core.key_chooser.clone(), core.field_length.clone());
        let scan_length = core.scan_length.clone();
        Player { core, rng, key_chooser, field_length, scan_length }
    }

    /// The next insert of the loading phase.
    pub fn load(&mut self) -> Operation {
        let number = self.core.load_sequence.fetch_add(1, Ordering::Relaxed);
        let key = self.core.key(number);
        Operation::Insert { number, values: self.all_values(&key), key }
    }

    /// The next transaction; `None` when all proportions are 0.
    pub fn transaction(&mut self) -> Option<Operation> {
        Some(match self.kind()? {
            Kind::Read => Operation::Read { key: self.some_key(), fields: self.fields(true) },
            Kind::Update => {
                let key = self.some_key();
                Operation::Update { values: self.values(&key), key }
            }
            Kind::Insert => {
                let number = self.core.inserted.next();
                let key = self.core.key(number);
                Operation::Insert { number, values: self.all_values(&key), key }
            }
            Kind::Scan => {
                let key = self.some_key();
                let records = self.scan_length.next(&self.rng, 0);
                Operation::Scan { key, records, fields: self.fields(false) }
            }
            Kind::ReadModifyWrite => {
                let key = self.some_key();
                Operation::ReadModifyWrite { fields: self.fields(false), values: self.values(&key), key }
            }
        })
    }

    fn kind(&self) -> Option<Kind> {
        let sum: f64 = self.core.operations.iter().map(|(share, _)| share).sum();
        let mut point = unit(&self.rng) * sum;
        for (share, kind) in &self.core.operations {
            if point < *share {
                return Some(*kind);
            }
            point -= share;
        }
        self.core.operations.last().map(|(_, kind)| *kind)
    }

    /// A record that is there.
    fn some_key(&mut self) -> String {
        loop {
            let newest = self.core.inserted.last();
            let number = self.key_chooser.next(&self.rng, newest);
            if (0..=newest).contains(&number) {
                return self.core.key(number);
            }
        }
    }

    fn one_field(&self) -> Bytes {
        let fields = &self.core.fields;
        fields.get(self.rng.below(fields.len() as u64) as usize).cloned().unwrap_or_default()
    }

    fn fields(&self, may_name_all: bool) -> Option<Vec<Bytes>> {
        if !self.core.read_all {
            Some(vec![self.one_field()])
        } else if may_name_all && (self.core.data_integrity || self.core.read_all_by_name) {
            Some(self.core.fields.clone())
        } else {
            None
        }
    }

    fn values(&mut self, key: &str) -> Values {
        if self.core.write_all {
            return self.all_values(key);
        }
        let field = self.one_field();
        let value = self.value(key, &field);
        vec![(field, value)]
    }

    fn all_values(&mut self, key: &str) -> Values {
        let core = self.core.clone();
        core.fields.iter().map(|field| (field.clone(), self.value(key, field))).collect()
    }

    fn value(&mut self, key: &str, field: &[u8]) -> Vec<u8> {
        let length = usize::try_from(self.field_length.next(&self.rng, 0)).unwrap_or_default();
        if self.core.data_integrity {
            deterministic_value(key, &String::from_utf8_lossy(field), length).into_bytes()
        } else {
            random_text(&self.rng, length)
        }
    }
}

/// Printable bytes as YCSB draws them: six from each 32-bit number.
fn random_text(rng: &Rng, length: usize) -> Vec<u8> {
    let mut text = Vec::with_capacity(length + 6);
    while text.len() < length {
        let bits = rng.next_u64() as u32;
        let six =
            [bits & 31, (bits >> 5) & 63, (bits >> 10) & 95, (bits >> 15) & 31, (bits >> 20) & 63, (bits >> 25) & 95];
        text.extend_from_slice(&six.map(|b| b as u8 + b' '));
    }
    text.truncate(length);
    text
}

#[cfg(test)]
#[path = "core_tests.rs"]
mod tests;
