//! HFiles: HBase's immutable sorted file of cells, read and written byte for byte as HBase 2.6 does.
//!
//! A file is a run of blocks, each with a 33-byte header and checksums: data blocks with index and Bloom blocks
//! between them, then what a reader loads at open (root index, file info, Bloom headers), then a trailer.
//! Bytes: docs/formats/hfile.md.
//!
//! Always true:
//!  1. Nothing read from a file is believed: every length is held against the file and the block before memory is
//!     taken, every checksum is compared, every cell's shape is checked once when its block is loaded. Damage is
//!     [`Error::Corrupt`] with path and offset; it is never a panic and never a wrong cell.
//!  2. Whatever a file's encoding and codec, a loaded data block (`DataBlock`) is cells in plain KeyValue layout
//!     with a sparse table of offsets: stepping is a few loads, seeking within a block a binary search.
//!  3. A written file is sorted and complete, or [`Writer::finish`] has not returned `Ok`.
//!  4. No clock, no threads, no randomness; the caller hands in volume, cache and times.
//!
//! Must not know: regions, stores, tables; what a file's name means. Follows: HBase `HFileReaderImpl`,
//! `HFileWriterImpl`, `HFileBlock`, `HFileBlockIndex`, `CompoundBloomFilter`, `StoreFileWriter`.

mod block;
mod block_reads;
mod block_writer;
mod bloom;
mod bloom_writer;
mod cache;
mod cache_counts;
mod cache_frequency;
mod checksum;
mod codec;
mod crc32c_wide;
mod cursor;
mod data_block;
mod dictionary;
mod encoding;
mod error;
pub mod file_info;
mod file_reads;
mod hash;
mod index;
mod index_writer;
mod inspect;
mod open;
mod options;
mod point_cursor;
#[cfg(debug_assertions)]
mod poison;
mod prefetch;
mod reader;
mod recorded_reads;
mod row_window;
mod scanner;
mod second_level;
pub mod settings;
mod source;
mod trailer;
mod verify;
mod writer;

pub use block_reads::BlockReads;
pub use cache::{BlockCache, CacheOptions, CachePolicy, CacheStats};
pub use cache_counts::{BlockCounts, BloomCounts};
pub use dictionary::{Dictionaries, Dictionary};
pub use error::{Error, Result};
pub use file_reads::FileReads;
pub use inspect::{BlockHeader, BloomFields, RootEntry, TrailerFields};
pub use options::{BloomType, ChecksumType, Compression, Encoding, HashType};
pub use point_cursor::{Found, PointCursor};
pub use reader::{Half, HalfSide, HotAge, Reader, ReaderContext};
pub use recorded_reads::{BlockFrom, BlockLook, LooksRecording};
pub use scanner::{BlockRun, Residency, ScanOptions, Scanner};
pub use second_level::{SecondLevel, SecondLevelOptions, SecondLevelStats};
pub use verify::Part;
pub use writer::{CacheOnWrite, FinishedFile, StoreMetadata, Writer, WriterOptions};
