//! Room for replies in a connection's read buffer: small ones share it, large ones are read to where they stay.

use bytes::BytesMut;

/// Room made before a read.
pub(super) const READ_BYTES: usize = 64 << 10;
/// A reply longer than this gets memory of its own: what rows are handed out as is read to where it stays.
const LARGE_REPLY_BYTES: usize = READ_BYTES / 2;
/// Room made for the beginning of a reply after a large one, which tells how much is to follow.
const BEGINNING_BYTES: usize = 4 << 10;
/// Room made for a reply on its word alone.
const CLAIM_BYTES: usize = 1 << 20;

/// Makes room in `buffer`, which has the beginning of a reply (or nothing) of which at least `missing` bytes are to come. Small replies share
/// a buffer. A large one that does not fit is read to its end into memory of its own: so no byte of it is moved but those of its beginning,
/// which are few where large replies follow each other.
pub(super) fn make_room(buffer: &mut BytesMut, missing: usize, last_len: usize) {
    let (here, spare) = (buffer.len(), buffer.capacity() - buffer.len());
    if here >= 4 && here + missing > LARGE_REPLY_BYTES {
        let room = room_for(missing, here, last_len);
        if spare < room {
            let mut own = BytesMut::with_capacity(here + room);
            own.extend_from_slice(buffer);
            *buffer = own;
        }
    } else if here == 0 && last_len > LARGE_REPLY_BYTES {
        // Anew, lest what is left of the last reply's memory be used: nothing, or a little of a large piece.
        *buffer = BytesMut::with_capacity(BEGINNING_BYTES);
    } else if spare < READ_BYTES / 4 {
        buffer.reserve(READ_BYTES);
    }
}

/// Room to make for a reply of which `missing` bytes are still to come and `here` have come, after one of `last_len` bytes: a length is only
/// a claim, so there is never room for more than comes or has just come, [`CLAIM_BYTES`] aside.
fn room_for(missing: usize, here: usize, last_len: usize) -> usize {
    missing.min(here.max(CLAIM_BYTES).max(last_len + last_len / 4))
}

#[cfg(test)]
mod tests {
    use super::*;
    use bytes::BufMut;
    use rpc::frame::{Front, take_frame};

    const MAX_REPLY_BYTES: u64 = 1 << 31;

    #[test]
    fn a_length_that_is_only_claimed_takes_little_memory() {
        assert_eq!(room_for(10, 0, 0), 10);
        assert_eq!(room_for(2 << 30, 100, 1000), CLAIM_BYTES);
        assert_eq!(room_for(2 << 30, 10 << 20, 1000), 10 << 20);
        assert_eq!(room_for(3 << 20, 10 << 20, 1000), 3 << 20);
        assert_eq!(room_for(2 << 30, 100, 4 << 20), 5 << 20);
    }

    /// As many bytes as the buffer has room for come with each read; what a large reply is made of is moved once at most, its beginning.
    #[test]
    fn large_replies_are_read_to_where_they_stay() {
        let mut stream = BytesMut::new();
        let sent = [100_000u32, 100_000, 20, 5_000_000, 5_500_000, 5_000_000, 100_000, 40, 50_000, 100_000];
        for len in sent {
            stream.put_u32(len);
            stream.put_bytes(7, len as usize);
        }
        let (mut buffer, mut last_len, mut lens) = (BytesMut::with_capacity(READ_BYTES), 0, Vec::new());
        let mut moved = 0;
        while !stream.is_empty() || !buffer.is_empty() {
            let room = buffer.capacity() - buffer.len();
            assert!(room > 0, "a read that has no room says that the connection has ended");
            buffer.extend_from_slice(&stream.split_to(room.min(stream.len())));
            let missing = loop {
                match take_frame(&mut buffer, MAX_REPLY_BYTES) {
                    Front::Frame(frame) => {
                        last_len = frame.len();
                        lens.push(last_len);
                    }
                    Front::Partial { missing } => break missing,
                    Front::TooLong { len } => panic!("{len}"),
                }
            };
            let (here, at) = (buffer.len(), buffer.as_ptr());
            make_room(&mut buffer, missing, last_len);
            moved += if buffer.as_ptr() == at { 0 } else { here };
        }
        assert_eq!(lens, sent.map(|len| len as usize));
        // Of the first claim of 5 MB no more is believed than has come: it is moved each time that it has doubled. The next ones are believed.
        let most = READ_BYTES + 3 * READ_BYTES + 10 * BEGINNING_BYTES + (1 << 20) + (2 << 20) + (4 << 20);
        assert!(moved < most, "{moved} bytes were moved");
    }
}
