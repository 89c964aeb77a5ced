//! What is packed comes back; what nobody packed is an error within the limit.

use super::*;
use base::Rng;

/// Runs, noise and copies from near and far.
fn payload(rng: &Rng, len: usize) -> Vec<u8> {
    let mut out: Vec<u8> = Vec::with_capacity(len);
    while out.len() < len {
        let count = 1 + rng.below([4, 30, 600][rng.below(3) as usize]) as usize;
        let count = count.min(len - out.len());
        match rng.below(3) {
            0 => out.resize(out.len() + count, rng.next_u64() as u8),
            1 => out.extend((0..count).map(|_| rng.next_u64() as u8)),
            _ if out.is_empty() => out.push(7),
            _ => {
                let from = out.len() - 1 - rng.below(out.len().min(70_000) as u64) as usize;
                (0..count).for_each(|i| out.push(out[from + i]));
            }
        }
    }
    out
}

fn packed(codec: Codec, plain: &[u8]) -> Vec<u8> {
    let mut out = b"before".to_vec();
    codec.pack(plain, &mut out);
    out.split_off(6)
}

fn unpacked(codec: Codec, packed: &[u8], limit: usize) -> Result<Vec<u8>, String> {
    let mut out = b"before".to_vec();
    codec.unpack(packed, limit, &mut out)?;
    Ok(out.split_off(6))
}

#[test]
fn payloads_of_every_size_come_back() {
    let rng = Rng::seeded(1);
    let sizes = [0, 1, 2, 3, 4, 5, 17, 18, 19, 237, 238, 239, 240, 1000, 54_582, 65_536, 100_001, 218_422];
    for codec in Codec::ALL {
        for len in sizes.into_iter().chain((0..60).map(|_| rng.below(5000) as usize)) {
            for plain in [payload(&rng, len), vec![7; len], (0..len).map(|_| rng.next_u64() as u8).collect()] {
                let packed = packed(codec, &plain);
                assert_eq!(unpacked(codec, &packed, len).as_ref(), Ok(&plain), "{codec:?} {len}");
                if len > 0 {
                    let short = unpacked(codec, &packed, len - 1);
                    assert!(
                        short.is_err() || short.is_ok_and(|short| short.len() == len),
                        "{codec:?} {len}: too long unseen"
                    );
                }
            }
        }
    }
}

#[test]
fn what_repeats_is_packed_small() {
    let plain = b"row-0000001:a value that comes again and again;".repeat(1000);
    for codec in Codec::ALL {
        let len = packed(codec, &plain).len();
        assert!(len * 50 < plain.len(), "{codec:?}: {len} of {} bytes", plain.len());
    }
}

/// The example of each instruction, by hand: a first run, a copy of each form, literals in the low bits, a long run, a long copy.
#[test]
fn every_instruction_of_lzo_is_read() {
    let mut packed = vec![17 + 5];
    packed.extend_from_slice(b"abcde");
    // After a run: three bytes from 2049 back are not there.
    assert!(unpacked(Codec::Lzo, &[&packed[..], &[0, 0]].concat(), 1 << 20).is_err());
    // Near: four bytes from 5 back, and two literals.
    packed.extend_from_slice(&[(3 << 5) | (4 << 2) | 2, 0, b'x', b'y']);
    // After one to three literals: two bytes from 1 back.
    packed.extend_from_slice(&[0, 0]);
    // After none: a run of 18 + 255 + 9 literals.
    packed.extend_from_slice(&[0, 0, 9]);
    packed.extend_from_slice(&[b'z'; 282]);
    // Middle: 33 + 200 bytes from 290 back, three literals.
    packed.extend_from_slice(&[32, 200]);
    packed.extend_from_slice(&((289_u16 << 2) | 3).to_le_bytes());
    packed.extend_from_slice(b"123");
    let mut wanted = b"abcdeabcdxyyy".to_vec();
    wanted.extend_from_slice(&[b'z'; 282]);
    for _ in 0..233 {
        wanted.push(wanted[wanted.len() - 290]);
    }
    wanted.extend_from_slice(b"123");
    let end = [&packed[..], &END_MARK].concat();
    assert_eq!(unpacked(Codec::Lzo, &end, 1 << 20), Ok(wanted.clone()));
    assert!(unpacked(Codec::Lzo, &packed, 1 << 20).is_err(), "without an end mark");
    // After a run of four or more: three bytes from 2049 back; and far: 9 + 1 bytes from 0x4000 + 5 back.
    let long: Vec<u8> = (0..20_000_u32).map(|i| (i * 7 % 251) as u8).collect();
    let mut packed = vec![0];
    let mut left = long.len() - 18;
    while left > 255 {
        packed.push(0);
        left -= 255;
    }
    packed.push(left as u8);
    packed.extend_from_slice(&long);
    packed.extend_from_slice(&[0, 0]);
    packed.extend_from_slice(&[16, 1]);
    packed.extend_from_slice(&(5_u16 << 2).to_le_bytes());
    packed.extend_from_slice(&END_MARK);
    let mut wanted = long;
    for (distance, len) in [(2049, 3), (0x4005, 10)] {
        for _ in 0..len {
            wanted.push(wanted[wanted.len() - distance]);
        }
    }
    assert_eq!(unpacked(Codec::Lzo, &packed, 1 << 20), Ok(wanted));
}

const END_MARK: [u8; 3] = [17, 0, 0];

#[test]
fn no_foreign_bytes_are_more_than_an_error() {
    let rng = Rng::seeded(4);
    for codec in Codec::ALL {
        let plain = payload(&rng, 3000);
        let packed = packed(codec, &plain);
        for _ in 0..3000 {
            let mut bytes = packed.clone();
            for _ in 0..1 + rng.below(4) {
                let at = rng.below(bytes.len() as u64) as usize;
                bytes[at] = [0, 0xFF, rng.next_u64() as u8][rng.below(3) as usize];
            }
            bytes.truncate(bytes.len() - rng.below(2) as usize * rng.below(bytes.len() as u64) as usize);
            assert!(!unpacked(codec, &bytes, plain.len()).is_ok_and(|out| out.len() > plain.len() + 1));
        }
        for cut in 0..packed.len() {
            let short = unpacked(codec, &packed[..cut], plain.len());
            assert!(
                short.is_err() || short.is_ok_and(|short| short != plain),
                "{codec:?} cut at {cut} of {}",
                packed.len()
            );
        }
        // Lengths that promise gigabytes cost nothing.
        let mut out = Vec::new();
        let _ = codec.unpack(&[0xFF; 40], 1 << 30, &mut out);
        assert!(out.capacity() < 1 << 20, "{codec:?}: {}", out.capacity());
    }
}

#[test]
fn a_window_of_gigabytes_takes_no_memory() {
    let plain = vec![9; 5000];
    let mut bytes = packed(Codec::Lzma, &plain);
    bytes[1..5].copy_from_slice(&0xFFFF_FF00_u32.to_le_bytes());
    assert_eq!(unpacked(Codec::Lzma, &bytes, plain.len()), Ok(plain), "what it needs is the window of what comes out");
    bytes[5..13].copy_from_slice(&(1_u64 << 40).to_le_bytes());
    let error = unpacked(Codec::Lzma, &bytes, 5000).expect_err("too many bytes");
    assert!(error.contains("1099511627776 bytes where 5000 have room"), "{error}");
}
