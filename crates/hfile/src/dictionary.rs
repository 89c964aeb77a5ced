//! Zstandard dictionaries: what many small blocks have in common, kept once beside the files. A file does not hold its dictionary; its blocks
//! name it by a number, if it has one. Follows: `DictionaryCache`, `ZstdCodec` of hbase-compression-zstd.

use parking_lot::Mutex;
use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Weak};

/// A dictionary in memory, as large as its file and what unpacking with it takes.
pub struct Dictionary {
    path: String,
    bytes: Vec<u8>,
}

impl fmt::Debug for Dictionary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Dictionary").field("path", &self.path).field("number", &self.number()).finish_non_exhaustive()
    }
}

impl Dictionary {
    /// Of the file at `path`, which is for messages.
    pub fn new(path: impl Into<String>, bytes: Vec<u8>) -> Arc<Dictionary> {
        Arc::new(Dictionary { path: path.into(), bytes })
    }

    /// Where it is from.
    pub fn path(&self) -> &str {
        &self.path
    }

    pub(crate) fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// The number by which frames name it; `None`: it is any text, and frames do not name it.
    pub fn number(&self) -> Option<u32> {
        zstd::zstd_safe::get_dict_id_from_dict(&self.bytes).map(u32::from)
    }
}

/// Reads the file of a dictionary; the error says what is wrong with it.
type Load = dyn Fn(&str) -> Result<Vec<u8>, String> + Send + Sync;

/// A server's dictionaries, each in memory once as long as some file needs it.
#[derive(Default)]
pub struct Dictionaries {
    load: Option<Box<Load>>,
    used: Mutex<BTreeMap<String, Weak<Dictionary>>>,
}

impl fmt::Debug for Dictionaries {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Dictionaries").field("used", &*self.used.lock()).finish_non_exhaustive()
    }
}

impl Dictionaries {
    /// Those that `load` can read.
    pub fn from_files(load: impl Fn(&str) -> Result<Vec<u8>, String> + Send + Sync + 'static) -> Arc<Dictionaries> {
        Arc::new(Dictionaries { load: Some(Box::new(load)), used: Mutex::default() })
    }

    /// The dictionary at `path`. May read its file.
    ///
    /// # Errors
    /// What is wrong with it, in a sentence that names it.
    pub fn get(&self, path: &str) -> Result<Arc<Dictionary>, String> {
        let mut used = self.used.lock();
        used.retain(|_, dictionary| dictionary.strong_count() > 0);
        if let Some(dictionary) = used.get(path).and_then(Weak::upgrade) {
            return Ok(dictionary);
        }
        let loaded = match &self.load {
            Some(load) => load(path),
            None => Err("no dictionary can be read here".into()),
        };
        let bytes = loaded.map_err(|what| format!("Unable to load dictionary at {path}: {what}"))?;
        let dictionary = Dictionary::new(path, bytes);
        used.insert(path.to_owned(), Arc::downgrade(&dictionary));
        Ok(dictionary)
    }
}
