//! The little of RocksDB's C interface (`rocksdb/c.h`) that the comparison needs.

use anyhow::bail;
use std::ffi::{CStr, CString, c_char, c_int, c_uchar, c_void};
use std::path::Path;
use std::ptr;

#[repr(C)]
struct Opaque([u8; 0]);
type Ptr = *mut Opaque;

unsafe extern "C" {
    fn rocksdb_options_create() -> Ptr;
    fn rocksdb_options_set_create_if_missing(options: Ptr, yes: c_uchar);
    fn rocksdb_options_set_write_buffer_size(options: Ptr, bytes: usize);
    fn rocksdb_options_set_compression(options: Ptr, codec: c_int);
    fn rocksdb_options_set_block_based_table_factory(options: Ptr, table: Ptr);
    fn rocksdb_block_based_options_create() -> Ptr;
    fn rocksdb_block_based_options_set_block_cache(table: Ptr, cache: Ptr);
    fn rocksdb_block_based_options_set_filter_policy(table: Ptr, policy: Ptr);
    fn rocksdb_block_based_options_set_block_size(table: Ptr, bytes: usize);
    fn rocksdb_cache_create_lru(bytes: usize) -> Ptr;
    fn rocksdb_filterpolicy_create_bloom_full(bits_per_key: f64) -> Ptr;
    fn rocksdb_open(options: Ptr, path: *const c_char, error: *mut *mut c_char) -> Ptr;
    fn rocksdb_close(db: Ptr);
    fn rocksdb_writeoptions_create() -> Ptr;
    fn rocksdb_writebatch_create() -> Ptr;
    fn rocksdb_writebatch_clear(batch: Ptr);
    fn rocksdb_writebatch_put(batch: Ptr, key: *const u8, key_len: usize, value: *const u8, value_len: usize);
    fn rocksdb_write(db: Ptr, options: Ptr, batch: Ptr, error: *mut *mut c_char);
    fn rocksdb_flushoptions_create() -> Ptr;
    fn rocksdb_flush(db: Ptr, options: Ptr, error: *mut *mut c_char);
    fn rocksdb_compact_range(db: Ptr, start: *const u8, start_len: usize, end: *const u8, end_len: usize);
    fn rocksdb_readoptions_create() -> Ptr;
    fn rocksdb_get_pinned(db: Ptr, options: Ptr, key: *const u8, key_len: usize, error: *mut *mut c_char) -> Ptr;
    fn rocksdb_pinnableslice_value(slice: Ptr, len: *mut usize) -> *const u8;
    fn rocksdb_pinnableslice_destroy(slice: Ptr);
    fn rocksdb_create_iterator(db: Ptr, options: Ptr) -> Ptr;
    fn rocksdb_iter_seek_to_first(iterator: Ptr);
    fn rocksdb_iter_valid(iterator: Ptr) -> c_uchar;
    fn rocksdb_iter_next(iterator: Ptr);
    fn rocksdb_iter_key(iterator: Ptr, len: *mut usize) -> *const u8;
    fn rocksdb_iter_value(iterator: Ptr, len: *mut usize) -> *const u8;
    fn rocksdb_iter_destroy(iterator: Ptr);
    fn rocksdb_free(memory: *mut c_void);
}

/// An open database. Option objects live as long as the process.
pub struct Rocks {
    db: Ptr,
    write: Ptr,
    read: Ptr,
    batch: Ptr,
}

impl Rocks {
    /// A new database: no compression, Bloom filters of 10 bits per key, a log that is written and not synced.
    pub fn open(dir: &Path, memtable_bytes: usize, cache_bytes: usize, block_bytes: usize) -> anyhow::Result<Rocks> {
        let path = CString::new(dir.as_os_str().as_encoded_bytes())?;
        // SAFETY: every pointer comes from RocksDB's own constructors, which do not fail; the path outlives the call.
        unsafe {
            let options = rocksdb_options_create();
            rocksdb_options_set_create_if_missing(options, 1);
            rocksdb_options_set_write_buffer_size(options, memtable_bytes);
            rocksdb_options_set_compression(options, 0);
            let table = rocksdb_block_based_options_create();
            rocksdb_block_based_options_set_block_cache(table, rocksdb_cache_create_lru(cache_bytes));
            rocksdb_block_based_options_set_filter_policy(table, rocksdb_filterpolicy_create_bloom_full(10.0));
            rocksdb_block_based_options_set_block_size(table, block_bytes);
            rocksdb_options_set_block_based_table_factory(options, table);
            let mut error = ptr::null_mut();
            let db = rocksdb_open(options, path.as_ptr(), &mut error);
            check(error)?;
            let (write, read) = (rocksdb_writeoptions_create(), rocksdb_readoptions_create());
            Ok(Rocks { db, write, read, batch: rocksdb_writebatch_create() })
        }
    }

    /// Writes the pairs as one batch.
    pub fn put_all<'a>(&mut self, pairs: impl Iterator<Item = (&'a [u8], &'a [u8])>) -> anyhow::Result<()> {
        // SAFETY: the slices outlive the calls, which copy them; the objects are this database's.
        unsafe {
            rocksdb_writebatch_clear(self.batch);
            for (key, value) in pairs {
                rocksdb_writebatch_put(self.batch, key.as_ptr(), key.len(), value.as_ptr(), value.len());
            }
            let mut error = ptr::null_mut();
            rocksdb_write(self.db, self.write, self.batch, &mut error);
            check(error)
        }
    }

    /// Flushes, and compacts everything into one level.
    pub fn settle(&self) -> anyhow::Result<()> {
        // SAFETY: as above; no bounds mean everything.
        unsafe {
            let mut error = ptr::null_mut();
            rocksdb_flush(self.db, rocksdb_flushoptions_create(), &mut error);
            check(error)?;
            rocksdb_compact_range(self.db, ptr::null(), 0, ptr::null(), 0);
        }
        Ok(())
    }

    /// Length of the value; `None` when there is none.
    pub fn get(&self, key: &[u8], out: &mut Vec<u8>) -> anyhow::Result<bool> {
        // SAFETY: the slice's value is valid until the slice is destroyed, and copied before.
        unsafe {
            let mut error = ptr::null_mut();
            let found = rocksdb_get_pinned(self.db, self.read, key.as_ptr(), key.len(), &mut error);
            check(error)?;
            if found.is_null() {
                return Ok(false);
            }
            let mut len = 0;
            let value = rocksdb_pinnableslice_value(found, &mut len);
            out.extend_from_slice(std::slice::from_raw_parts(value, len));
            rocksdb_pinnableslice_destroy(found);
            Ok(true)
        }
    }

    /// Walks everything; `each` gets key and value.
    pub fn scan(&self, mut each: impl FnMut(&[u8], &[u8])) {
        // SAFETY: key and value are valid until the iterator moves.
        unsafe {
            let iterator = rocksdb_create_iterator(self.db, self.read);
            rocksdb_iter_seek_to_first(iterator);
            while rocksdb_iter_valid(iterator) != 0 {
                let (mut key_len, mut value_len) = (0, 0);
                let key = rocksdb_iter_key(iterator, &mut key_len);
                let value = rocksdb_iter_value(iterator, &mut value_len);
                each(std::slice::from_raw_parts(key, key_len), std::slice::from_raw_parts(value, value_len));
                rocksdb_iter_next(iterator);
            }
            rocksdb_iter_destroy(iterator);
        }
    }
}

impl Drop for Rocks {
    fn drop(&mut self) {
        // SAFETY: opened once, closed once.
        unsafe { rocksdb_close(self.db) }
    }
}

fn check(error: *mut c_char) -> anyhow::Result<()> {
    if error.is_null() {
        return Ok(());
    }
    // SAFETY: RocksDB's errors are C strings that the caller frees.
    let text = unsafe {
        let text = CStr::from_ptr(error).to_string_lossy().into_owned();
        rocksdb_free(error.cast());
        text
    };
    bail!("RocksDB: {text}")
}
