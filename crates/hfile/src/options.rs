//! The choices a file is written with, under HBase's names and numbers.

macro_rules! named {
    ($(#[$meta:meta])* $name:ident { $($(#[$vmeta:meta])* $variant:ident = $code:literal, $text:literal;)* }) => {
        $(#[$meta])*
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Hash)]
        pub enum $name { $($(#[$vmeta])* $variant),* }
        impl $name {
            /// Every value, in the order of their numbers in this list.
            pub const ALL: &'static [$name] = &[$($name::$variant),*];
            /// The value HBase calls `text`.
            pub fn parse(text: &str) -> Option<$name> {
                match text { $($text => Some($name::$variant),)* _ => None }
            }
            /// HBase's name.
            pub fn as_str(self) -> &'static str {
                match self { $($name::$variant => $text),* }
            }
            /// The number on disk.
            pub fn code(self) -> u32 {
                match self { $($name::$variant => $code),* }
            }
            /// The value with this number on disk.
            pub fn from_code(code: u32) -> Option<$name> {
                match code { $($code => Some($name::$variant),)* _ => None }
            }
        }
    };
}

named! {
    /// Codec of a file's blocks; the number is the trailer's codec ordinal.
    Compression {
        /// LZO1X in Hadoop's block framing.
        Lzo = 0, "LZO";
        /// One gzip member per block.
        Gz = 1, "GZ";
        /// Uncompressed.
        None = 2, "NONE";
        /// Snappy in Hadoop's block framing.
        Snappy = 3, "SNAPPY";
        /// LZ4 in Hadoop's block framing.
        Lz4 = 4, "LZ4";
        /// One bzip2 stream per block.
        Bzip2 = 5, "BZIP2";
        /// Zstandard: read in both framings, written as bare frames (what HBase's default class reads).
        Zstd = 6, "ZSTD";
        /// LZMA (`.lzma`) in Hadoop's block framing.
        Lzma = 7, "LZMA";
        /// Brotli in Hadoop's block framing.
        Brotli = 8, "BROTLI";
    }
}

impl std::fmt::Display for Compression {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.as_str())
    }
}

/// As the value of a setting: HBase's name, in letters of either case.
impl base::Value for Compression {
    fn parse_text(text: &str) -> Option<Self> {
        Compression::parse(&text.trim().to_ascii_uppercase())
    }
    const TYPE: &'static str = "codec";
    const LEGAL: Option<&'static str> = Some("NONE, SNAPPY, LZ4, ZSTD, GZ, BZIP2, LZMA, BROTLI or LZO");
}

named! {
    /// How the cells of a data block are encoded; the number stands at the start of the block.
    Encoding {
        /// Plain KeyValues.
        None = 0, "NONE";
        /// Shared key prefixes left out.
        Prefix = 2, "PREFIX";
        /// Differences of every key part.
        Diff = 3, "DIFF";
        /// Differences without bit packing of timestamps.
        FastDiff = 4, "FAST_DIFF";
        /// Plain KeyValues and a table of where rows start.
        RowIndexV1 = 7, "ROW_INDEX_V1";
    }
}

named! {
    /// What a file's general Bloom filter is asked; the numbers are not on disk.
    BloomType {
        /// No filter.
        None = 0, "NONE";
        /// By row.
        Row = 1, "ROW";
        /// By row and qualifier.
        RowCol = 2, "ROWCOL";
        /// By the first bytes of the row.
        RowPrefixFixedLength = 3, "ROWPREFIX_FIXED_LENGTH";
    }
}

named! {
    /// Checksum of a block's slices; the number stands in the block header.
    ChecksumType {
        /// Room for checksums, nothing in it.
        Null = 0, "NULL";
        /// CRC-32 as in zlib.
        Crc32 = 1, "CRC32";
        /// CRC-32C, HBase 2.6's default.
        Crc32c = 2, "CRC32C";
    }
}

named! {
    /// Hash of a Bloom filter; the number stands in its header.
    HashType {
        /// Bob Jenkins' lookup3.
        Jenkins = 0, "jenkins";
        /// MurmurHash2 (HBase's default).
        Murmur = 1, "murmur";
        /// MurmurHash3, 32 bits.
        Murmur3 = 2, "murmur3";
    }
}
