//! Zstandard dictionaries of the files that tools read: which one a family's files are packed with, and opening a file with it. A file does not
//! say where its dictionary is: its table's descriptor does, or the setting `hbase.io.compress.zstd.dictionary`.

use std::io::Read;
use std::path::Path;
use std::sync::{Arc, LazyLock};

use anyhow::Context;
use base::Config;
use fs::{FilePath, Volume};
use hfile::settings::{DICTIONARY_MAX_SIZE, ZSTD_DICTIONARY};
use hfile::{Dictionaries, Dictionary, Reader, ReaderContext};
use model::{TableDescriptor, TableName};

use crate::files;

/// Those of this process, by the places of their files.
static DICTIONARIES: LazyLock<Arc<Dictionaries>> = LazyLock::new(|| Dictionaries::from_files(load));

/// The bytes of the file at `place`, which may be as long as the setting lets one be by default.
fn load(place: &str) -> Result<Vec<u8>, String> {
    let read = || -> anyhow::Result<Vec<u8>> {
        let mut bytes = Vec::new();
        let file = std::fs::File::open(files::place(place)?)?;
        file.take(DICTIONARY_MAX_SIZE.default + 1).read_to_end(&mut bytes)?;
        if bytes.len() as u64 > DICTIONARY_MAX_SIZE.default {
            anyhow::bail!("it has more than {} bytes", DICTIONARY_MAX_SIZE.default);
        }
        Ok(bytes)
    };
    read().map_err(|error| format!("{error:#}"))
}

/// Where the dictionary of a table's family is: the family's word counts, then the table's, then the configuration's. One that is below the root
/// directory may be named from there.
pub(crate) fn named(config: &Config, table: Option<&TableDescriptor>, family: &[u8]) -> Option<Arc<str>> {
    let of_family = table.and_then(|table| table.families.get(family));
    let said = of_family
        .and_then(|family| said_last(family.overrides()))
        .or_else(|| table.and_then(|table| said_last(table.overrides())))
        .or_else(|| config.text(ZSTD_DICTIONARY.key))
        .map(str::trim)
        .filter(|place| !place.is_empty())?;
    let is_whole = said.starts_with('/') || said.contains(':');
    let whole = if is_whole { None } else { files::root_place(config).ok().map(|root| root.join(said)) };
    Some(whole.map_or_else(|| Arc::from(said), |place| Arc::from(place.to_string_lossy())))
}

/// What is said under the key; of several words the last counts.
fn said_last<'a>(pairs: impl Iterator<Item = (&'a str, &'a str)>) -> Option<&'a str> {
    pairs.filter(|(key, _)| *key == ZSTD_DICTIONARY.key).last().map(|(_, value)| value)
}

/// The same of a store file by its place on the volume of everything: where it lies in a root directory, its table's descriptor is asked.
pub(crate) fn of_file(config: &Config, path: &FilePath) -> Option<Arc<str>> {
    let in_root = || -> Option<Arc<str>> {
        let parts: Vec<&str> = path.as_str().split('/').collect();
        let [above @ .., "data", namespace, table, _region, family, _file] = &parts[..] else { return None };
        let root = match above {
            [root @ .., "archive" | "mobdir"] => root,
            root => root,
        };
        let table = match *namespace {
            "default" => (*table).to_owned(),
            namespace => format!("{namespace}:{table}"),
        };
        let volume = files::root(&Path::new("/").join(root.join("/"))).ok()?;
        let described = rootdir::descriptor::read(&*volume, &TableName::parse(&table).ok()?).ok()??;
        named(config, Some(&described), family.as_bytes())
    };
    in_root().or_else(|| named(config, None, b""))
}

/// The dictionary at `place`, to write with.
///
/// # Errors
/// It is not there, or damaged.
pub(crate) fn get(place: &str) -> anyhow::Result<Arc<Dictionary>> {
    DICTIONARIES.get(place).map_err(anyhow::Error::msg)
}

/// Opens a file with the dictionary at `dictionary`, if there is one. A dictionary that is not there is no trouble for a file that does without.
///
/// # Errors
/// The file cannot be read; where its dictionary is missing or damaged, that is said, too.
pub(crate) fn open(
    volume: &dyn Volume,
    path: &FilePath,
    dictionary: Option<&str>,
    context: ReaderContext,
) -> anyhow::Result<Arc<Reader>> {
    let (dictionary, missing) = match dictionary.map(|place| DICTIONARIES.get(place)).transpose() {
        Ok(dictionary) => (dictionary, None),
        Err(what) => (None, Some(what)),
    };
    let opened = Reader::open(volume, path, ReaderContext { dictionary, ..context });
    match missing {
        Some(what) => opened.context(what),
        None => Ok(opened?),
    }
}
