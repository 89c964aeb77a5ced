//! A message on its way to the socket.

use bytes::{Buf, Bytes};
use std::collections::VecDeque;
use std::io::IoSlice;

/// Bytes of the length before a frame.
pub(super) const LENGTH_BYTES: usize = 4;

/// A whole message: small values one behind the other, large ones where they are. As a [`Buf`] it gives the bytes in order.
#[derive(Debug)]
pub struct Written {
    /// Everything but the large values, behind room for the length of a frame.
    copied: Vec<u8>,
    /// How much of `copied` was given.
    at: usize,
    /// Large values, and where in `copied` each belongs.
    shared: VecDeque<(usize, Bytes)>,
    remaining: usize,
}

impl Written {
    pub(super) fn new(copied: Vec<u8>, shared: Vec<(usize, Bytes)>) -> Written {
        let shared_bytes: usize = shared.iter().map(|(_, value)| value.len()).sum();
        let remaining = copied.len() - LENGTH_BYTES + shared_bytes;
        Written { copied, at: LENGTH_BYTES, shared: shared.into(), remaining }
    }

    /// No message: an answer of HTTP to what wants none.
    pub fn empty() -> Written {
        Written::new(vec![0; LENGTH_BYTES], Vec::new())
    }

    /// Bytes that were not given yet.
    pub fn len(&self) -> usize {
        self.remaining
    }

    /// Whether all was given.
    pub fn is_empty(&self) -> bool {
        self.remaining == 0
    }

    /// With its length before it, so that one write sends both. For a message of which nothing was given.
    pub fn into_frame(mut self) -> Written {
        // A reply has fewer bytes than four can count: it was bounded first.
        self.copied[..LENGTH_BYTES].copy_from_slice(&(self.remaining as u32).to_be_bytes());
        self.at = 0;
        self.remaining += LENGTH_BYTES;
        self
    }

    /// How far `copied` goes before the next large value.
    fn stretch_end(&self) -> usize {
        self.shared.front().map_or(self.copied.len(), |(at, _)| *at)
    }
}

impl From<Bytes> for Written {
    /// Bytes as they are: text of HTTP, which is no message.
    fn from(bytes: Bytes) -> Written {
        Written::new(vec![0; LENGTH_BYTES], vec![(LENGTH_BYTES, bytes)])
    }
}

impl From<Written> for Bytes {
    /// In one piece, which is a copy.
    fn from(mut written: Written) -> Bytes {
        written.copy_to_bytes(written.remaining)
    }
}

impl Buf for Written {
    fn remaining(&self) -> usize {
        self.remaining
    }

    fn chunk(&self) -> &[u8] {
        let stretch = &self.copied[self.at..self.stretch_end()];
        match self.shared.front() {
            Some((_, value)) if stretch.is_empty() => value,
            _ => stretch,
        }
    }

    fn chunks_vectored<'a>(&'a self, slices: &mut [IoSlice<'a>]) -> usize {
        let (mut at, mut filled) = (self.at, 0);
        let mut put = |bytes: &'a [u8]| {
            if let Some(slice) = slices.get_mut(filled).filter(|_| !bytes.is_empty()) {
                *slice = IoSlice::new(bytes);
                filled += 1;
            }
        };
        for (end, value) in &self.shared {
            put(&self.copied[at..*end]);
            put(value);
            at = *end;
        }
        put(&self.copied[at..]);
        filled
    }

    fn advance(&mut self, mut count: usize) {
        assert!(count <= self.remaining, "{count} bytes of {}", self.remaining);
        self.remaining -= count;
        while count > 0 {
            let stretch = self.stretch_end() - self.at;
            if stretch > 0 {
                let step = stretch.min(count);
                self.at += step;
                count -= step;
                continue;
            }
            let Some((_, value)) = self.shared.front_mut() else { return };
            let step = value.len().min(count);
            value.advance(step);
            count -= step;
            if value.is_empty() {
                self.shared.pop_front();
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::{MessageKind, Protocol, Writer};
    use super::*;

    /// A message with values of these lengths, and what it is in one piece.
    fn written(lengths: &[usize]) -> (Written, Vec<u8>) {
        let mut writer = Writer::new(Protocol::Binary);
        writer.message("get", MessageKind::Reply, 1);
        let mut whole = b"\x80\x01\0\x02\0\0\0\x03get\0\0\0\x01".to_vec();
        for (n, length) in lengths.iter().enumerate() {
            let value = Bytes::from(vec![n as u8 + 1; *length]);
            writer.shared(&value);
            whole.extend((*length as u32).to_be_bytes());
            whole.extend_from_slice(&value);
        }
        writer.stop();
        whole.push(0);
        (writer.finish(), whole)
    }

    #[test]
    fn large_values_are_in_their_places_and_not_copied() {
        for lengths in [&[][..], &[1], &[100_000], &[100_000, 200_000], &[5, 9_000, 0, 8_192, 8_191, 70_000, 3]] {
            let (message, whole) = written(lengths);
            assert_eq!(message.len(), whole.len(), "{lengths:?}");
            let large = lengths.iter().filter(|length| **length >= 8_192).count();
            assert_eq!(message.shared.len(), large);
            assert!(message.copied.len() < 10_000, "{} bytes were copied", message.copied.len());
            assert_eq!(Bytes::from(message), whole);
        }
    }

    #[test]
    fn a_frame_begins_with_its_length_and_is_given_in_steps_of_any_size() {
        for step in [1, 3, 4, 4096, 9_000, 1 << 20] {
            let (message, whole) = written(&[5, 9_000, 10, 20_000]);
            let (mut message, mut given) = (message.into_frame(), Vec::new());
            while message.has_remaining() {
                let mut slices = [IoSlice::new(&[]); 3];
                let filled = message.chunks_vectored(&mut slices);
                assert_eq!(&slices[0][..], message.chunk());
                let all: Vec<u8> = slices[..filled].iter().flat_map(|slice| slice.iter().copied()).collect();
                let taken = &all[..step.min(all.len())];
                given.extend_from_slice(taken);
                let taken = taken.len();
                message.advance(taken);
            }
            assert_eq!(given[..4], (whole.len() as u32).to_be_bytes());
            assert_eq!(given[4..], whole);
        }
    }
}
