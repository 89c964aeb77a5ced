//! The second level of the block cache: where HBase's `hbase.bucketcache.*` say that it is.

use crate::settings;
use anyhow::{Context, Result, anyhow, bail};
use base::size::MIB;
use base::{Config, Rng};
use fs::{FilePath, LocalVolume, Volume};
use hfile::{SecondLevel, SecondLevelOptions};
use std::path::Path;
use std::sync::Arc;

/// Opens it; `None` where nothing is configured.
///
/// # Errors
/// A sentence saying what is wrong with the configuration, or that another process has it.
pub fn open(config: &Config) -> Result<Option<Arc<SecondLevel>>> {
    let engine = config.text(settings::BUCKET_CACHE_ENGINE.key).unwrap_or_default();
    let Some(place) = settings::cache_directory(engine).map_err(|what| anyhow!(what))? else { return Ok(None) };
    let name = place.display();
    let megabytes = config.get(&settings::BUCKET_CACHE_SIZE);
    if megabytes < 1.0 {
        bail!(
            "hbase.bucketcache.ioengine is {name}, but hbase.bucketcache.size is not set: set it to the size of the cache in MiB"
        );
    }
    if place.is_file() {
        tracing::warn!(
            "{name} is a file, as HBase's bucket cache is: it is left alone, and the block cache has no second level; name a directory in \
             hbase.bucketcache.ioengine"
        );
        return Ok(None);
    }
    let volume =
        LocalVolume::open(&place).with_context(|| format!("the second level of the block cache: cannot use {name}"))?;
    // As long as the process lives.
    std::mem::forget(volume.lock().map_err(|error| anyhow!("the second level of the block cache: {}", error.source))?);
    let mark = config.text(settings::BUCKET_CACHE_PERSISTENT.key).map(str::trim).filter(|text| !text.is_empty());
    let mark = mark.map(|text| Mark::of(text, &place)).transpose()?;
    let keeps = mark.as_ref().is_some_and(Mark::is_there);
    let bytes = (megabytes * MIB as f64) as u64;
    let options = SecondLevelOptions { keeps, ..SecondLevelOptions::new(bytes, Rng::from_system().next_u64()) };
    let tell = Arc::new(|sentence: String| tracing::warn!("{sentence}"));
    let second = SecondLevel::open(Arc::new(volume), options, tell)
        .with_context(|| format!("the second level of the block cache in {name}"))?;
    if let Some(mark) = mark {
        mark.make()?;
    }
    let stats = second.stats();
    tracing::info!(
        "second level of the block cache in {name}: {} blocks, {} of {bytes} bytes",
        stats.blocks,
        stats.used_bytes
    );
    Ok(Some(Arc::new(second)))
}

/// The file that says that the cache lasts.
struct Mark {
    volume: LocalVolume,
    path: FilePath,
    text: String,
}

impl Mark {
    fn of(text: &str, cache: &Path) -> Result<Mark> {
        let wrong = || format!("hbase.bucketcache.persistent.path = {text} must be the absolute path of a file");
        let path = Path::new(text);
        let name = path.file_name().and_then(|name| name.to_str()).with_context(wrong)?;
        let parent = path.parent().filter(|_| path.is_absolute()).with_context(wrong)?;
        let volume = LocalVolume::open(parent).with_context(wrong)?;
        let text =
            format!("The second level of Basalt's block cache in {} lasts while this file is here.\n", cache.display());
        Ok(Mark { volume, path: FilePath::new(name), text })
    }

    fn is_there(&self) -> bool {
        self.volume.read(&self.path).is_ok_and(|bytes| bytes == self.text.as_bytes())
    }

    fn make(&self) -> Result<()> {
        if self.is_there() {
            return Ok(());
        }
        self.volume.publish(&self.path, self.text.as_bytes()).context("hbase.bucketcache.persistent.path")
    }
}
