//! Figures that the field quotes, for scale. Other machines, other networks, other years: no ratio is drawn from them.

/// `(operation, Bigtable 2006, HBase 0.20 of 2009)`: 1000-byte values, per second and server.
pub const PUBLISHED: &[(&str, u32, u32)] = &[
    ("random reads", 1_212, 1_106),
    ("random writes", 8_850, 2_834),
    ("sequential reads", 4_425, 5_433),
    ("sequential writes", 8_547, 5_140),
    ("scanned rows", 15_385, 15_420),
];

/// Where they are from, and what they are not.
pub const ABOUT: &str = "Published by others, on hardware of 2006 and 2009, over a network and a distributed file \
    system: Bigtable as in its paper (one tablet server), HBase 0.20 per node of a small cluster. They say how the \
    numbers of this field began, and nothing about the servers compared here.";
