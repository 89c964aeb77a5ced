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
    /// Of the file at `path`, which is for messages. Tried once: whoever has a dictionary can pack and unpack with it.
    ///
    /// # Errors
    /// It begins as a trained dictionary and is none.
    pub fn new(path: impl Into<String>, bytes: Vec<u8>) -> Result<Arc<Dictionary>, String> {
        let packed =
            zstd::bulk::Compressor::with_dictionary(0, &bytes).and_then(|mut packer| packer.compress(b"tried"));
        let unpack =
            |packed: Vec<u8>| zstd::bulk::Decompressor::with_dictionary(&bytes)?.decompress(&packed, b"tried".len());
        match packed.and_then(unpack) {
            Ok(_) => Ok(Arc::new(Dictionary { path: path.into(), bytes })),
            Err(error) => Err(format!("it is damaged: {error}")),
        }
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
        if let Some(dictionary) = self.used.lock().get(path).and_then(Weak::upgrade) {
            return Ok(dictionary);
        }
        // Without the lock: whoever wants another one does not wait for this file.
        let loaded = match &self.load {
            Some(load) => load(path),
            None => Err("no dictionary can be read here".into()),
        };
        let dictionary = loaded.and_then(|bytes| Dictionary::new(path, bytes));
        let dictionary = dictionary.map_err(|what| format!("Unable to load dictionary at {path}: {what}"))?;
        let mut used = self.used.lock();
        used.retain(|_, dictionary| dictionary.strong_count() > 0);
        // Of two that were read at the same time the first stays.
        if let Some(first) = used.get(path).and_then(Weak::upgrade) {
            return Ok(first);
        }
        used.insert(path.to_owned(), Arc::downgrade(&dictionary));
        Ok(dictionary)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TRAINED: &[u8] = include_bytes!("../../../tests/golden/hfile/zstd.dictionary");

    /// One file that is long in coming, on a disk that is ill say, holds up nobody who wants another, or one that is there.
    #[test]
    fn a_dictionary_that_is_long_in_coming_holds_up_no_other() {
        let (come, coming) = std::sync::mpsc::channel();
        let (asked, asking) = std::sync::mpsc::channel();
        let waits = Mutex::new((asked, coming));
        let dictionaries = Dictionaries::from_files(move |path| {
            if path == "slow" {
                let waits = waits.lock();
                waits.0.send(()).expect("the test waits for it");
                waits.1.recv_timeout(std::time::Duration::from_secs(60)).expect("the other one was read meanwhile");
            }
            Ok(TRAINED.to_vec())
        });
        std::thread::scope(|scope| {
            let slow = scope.spawn(|| dictionaries.get("slow").map(|dictionary| dictionary.path().to_owned()));
            asking.recv().expect("it is being read");
            let other = dictionaries.get("other").expect("read");
            assert!(Arc::ptr_eq(&other, &dictionaries.get("other").expect("there")));
            come.send(()).expect("it waits");
            assert_eq!(slow.join().expect("ended"), Ok("slow".to_owned()));
        });
    }

    /// A flush would find that out, in the middle of a file.
    #[test]
    fn a_damaged_dictionary_is_refused_when_it_is_loaded() {
        let mut damaged = TRAINED.to_vec();
        damaged[8..200].fill(0xFF);
        let dictionaries = Dictionaries::from_files(move |path| {
            Ok(match path {
                "trained" => TRAINED.to_vec(),
                "cut" => TRAINED[..20].to_vec(),
                "text" => b"any text".to_vec(),
                _ => damaged.clone(),
            })
        });
        assert!(dictionaries.get("trained").is_ok() && dictionaries.get("text").is_ok());
        for path in ["damaged", "cut"] {
            let what = dictionaries.get(path).expect_err(path);
            assert!(what.starts_with(&format!("Unable to load dictionary at {path}: it is damaged: ")), "{what}");
        }
    }
}
