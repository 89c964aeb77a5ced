//! Packing and unpacking, of large payloads in several parts too, and unpacking what nobody packed.

use super::*;
use base::Rng;

fn payload(rng: &Rng, len: usize) -> Vec<u8> {
    // Runs and noise, so that codecs have something to find and something to keep.
    let mut out = Vec::with_capacity(len);
    while out.len() < len {
        let byte = rng.next_u64() as u8;
        out.resize(len.min(out.len() + 1 + rng.below(30) as usize), byte);
    }
    out
}

#[test]
fn payloads_of_every_size_come_back() {
    let rng = Rng::seeded(1);
    for &codec in Compression::ALL {
        let mut compressor = Compressor::new(codec, 3, None);
        for len in [0, 1, 100, 65_536, BUFFER_LEN - 43_723, BUFFER_LEN, 3 * BUFFER_LEN + 17] {
            let plain = payload(&rng, len);
            let mut packed = Vec::new();
            compressor.compress(&plain, &mut packed);
            assert_eq!(decompress(codec, None, &packed, len).as_ref(), Ok(&plain), "{codec:?} {len}");
            assert!(len < 2 || decompress(codec, None, &packed, len - 1).is_err(), "{codec:?} {len}");
            assert!(decompress(codec, None, &packed, len + 1).is_err(), "{codec:?} {len}");
        }
    }
}

#[test]
fn a_large_payload_has_hadoops_parts() {
    let plain = payload(&Rng::seeded(2), 2 * BUFFER_LEN);
    let mut packed = Vec::new();
    Compressor::new(Compression::Snappy, 3, None).compress(&plain, &mut packed);
    assert_eq!(packed[..4], (2 * BUFFER_LEN as u32).to_be_bytes(), "the whole length is announced once");
    assert_eq!(packed[packed.len() - 4..], [0; 4], "and an empty run ends it");
}

#[test]
fn framed_zstd_is_told_from_bare() {
    let plain = payload(&Rng::seeded(3), 5000);
    let mut bare = Vec::new();
    Compressor::new(Compression::Zstd, 3, None).compress(&plain, &mut bare);
    assert_eq!(bare[..4], ZSTD_MAGIC);
    let mut framed = (plain.len() as u32).to_be_bytes().to_vec();
    framed.extend_from_slice(&(bare.len() as u32).to_be_bytes());
    framed.extend_from_slice(&bare);
    assert_eq!(decompress(Compression::Zstd, None, &framed, plain.len()), Ok(plain));
}

#[test]
fn no_foreign_bytes_are_more_than_an_error() {
    let rng = Rng::seeded(4);
    for &codec in Compression::ALL {
        let plain = payload(&rng, 3000);
        let mut packed = Vec::new();
        Compressor::new(codec, 3, None).compress(&plain, &mut packed);
        for _ in 0..3000 {
            let mut bytes = packed.clone();
            for _ in 0..1 + rng.below(4) {
                let at = rng.below(bytes.len() as u64) as usize;
                bytes[at] = [0, 0xFF, rng.next_u64() as u8][rng.below(3) as usize];
            }
            bytes.truncate(bytes.len() - rng.below(2) as usize * rng.below(bytes.len() as u64) as usize);
            if let Ok(unpacked) = decompress(codec, None, &bytes, plain.len()) {
                assert_eq!(unpacked.len(), plain.len());
            }
        }
        // Lengths that promise gigabytes cost nothing.
        assert!(decompress(codec, None, &[0xFF; 40], 1 << 30).is_err(), "{codec:?}");
    }
}

/// A block that packs very well once kept twice its length: its room had grown by doubling.
#[test]
fn what_is_unpacked_holds_no_more_memory_than_it_says() {
    for &codec in Compression::ALL {
        for len in [1000, 65_536, 1 << 20] {
            let mut packed = Vec::new();
            Compressor::new(codec, 3, None).compress(&vec![7; len], &mut packed);
            let plain = decompress(codec, None, &packed, len).expect("what was packed");
            assert!(plain.capacity() <= len + len / 8, "{codec:?} {len}: {} bytes held", plain.capacity());
        }
    }
}
