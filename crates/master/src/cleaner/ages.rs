//! How long files have lain about, as far as this process knows.
//!
//! Volumes keep no times, so a file's age counts from when it was first seen without anybody needing it. A restart
//! forgets, which only delays. Bounded: what does not fit is looked at again when there is room.

use fs::FilePath;
use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher};

/// Files that are remembered at most: 16 bytes each, in a map.
const FILES_MAX: usize = 1 << 20;

/// When each file was first seen, by a hash of its path, in microseconds of the monotonic clock.
#[derive(Clone, Debug, Default)]
pub(super) struct Ages {
    seen_at_us: HashMap<u64, u64>,
}

/// Stands for a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct PathKey(u64);

pub(super) fn key(path: &FilePath) -> PathKey {
    let mut hasher = DefaultHasher::new();
    path.as_str().hash(&mut hasher);
    PathKey(hasher.finish())
}

impl Ages {
    /// Takes a file over from what was known `before`, or notes it as first seen now. Answers whether it is `ttl_us`
    /// old.
    pub fn note(&mut self, before: &Ages, path: &FilePath, now_us: u64, ttl_us: u64) -> bool {
        if self.seen_at_us.len() >= FILES_MAX {
            return false;
        }
        let PathKey(key) = key(path);
        let seen_at_us = before.seen_at_us.get(&key).copied().unwrap_or(now_us);
        self.seen_at_us.insert(key, seen_at_us);
        now_us.saturating_sub(seen_at_us) >= ttl_us
    }

    /// Whether a file that was noted is `ttl_us` old.
    pub fn is_due(&self, path: &FilePath, now_us: u64, ttl_us: u64) -> bool {
        let seen_at_us = self.seen_at_us.get(&key(path).0);
        seen_at_us.is_some_and(|seen_at_us| now_us.saturating_sub(*seen_at_us) >= ttl_us)
    }

    /// Somebody needs the file: it begins to age anew.
    pub fn begin_anew(&mut self, PathKey(key): PathKey, now_us: u64) {
        if let Some(seen_at_us) = self.seen_at_us.get_mut(&key) {
            *seen_at_us = now_us;
        }
    }

    /// The file is gone; one that comes to the same place is another.
    pub fn forget(&mut self, PathKey(key): PathKey) {
        self.seen_at_us.remove(&key);
    }
}
