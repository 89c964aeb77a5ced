//! LZO1X: literals and copies of what came before, without a header; an end mark closes it.
//!
//! An instruction is a byte, perhaps more bytes of a length, and a distance. What a byte below 16 means hangs on how many literals
//! came just before it (0, 1 to 3, or a run of more), which the two low bits of each copy tell.

/// The farthest copies of the three forms.
const NEAR: usize = 0x800;
const MIDDLE: usize = 0x4000;
const FAR: usize = 0xBFFF;
const END: [u8; 3] = [17, 0, 0];
/// Literals that came before an instruction, when they were a run of four or more.
const RUN: usize = 4;
/// What a byte of a length stands for at most.
const MAX_RATIO: usize = 255;
const TABLE_BITS: u32 = 13;

/// Appends what `packed` holds to `out`, at most `limit` bytes.
pub(crate) fn unpack(packed: &[u8], limit: usize, out: &mut Vec<u8>) -> Result<(), String> {
    let start = out.len();
    out.reserve(limit.min(packed.len().saturating_mul(4)));
    let mut from = Input { bytes: packed };
    let mut to = Output { out, start, end: start.saturating_add(limit) };
    let mut literals = 0;
    if let Some(&first) = packed.first()
        && first > 17
    {
        from.byte()?;
        let count = usize::from(first) - 17;
        to.literals(from.take(count)?)?;
        literals = count.min(RUN);
    }
    loop {
        let op = usize::from(from.byte()?);
        let (distance, len, low) = match op {
            0..16 if literals == 0 => {
                let count = if op == 0 { 15 + from.length()? } else { op } + 3;
                to.literals(from.take(count)?)?;
                literals = RUN;
                continue;
            }
            0..16 => {
                let near = (usize::from(from.byte()?) << 2) + (op >> 2) + 1;
                if literals == RUN { (near + NEAR, 3, op) } else { (near, 2, op) }
            }
            16..32 => {
                let len = if op & 7 == 0 { 7 + from.length()? } else { op & 7 } + 2;
                let word = from.word()?;
                let distance = ((op & 8) << 11) + (word >> 2);
                if distance == 0 {
                    return if len == 3 { Ok(()) } else { Err("a broken end mark".to_owned()) };
                }
                (distance + MIDDLE, len, word)
            }
            32..64 => {
                let len = if op & 31 == 0 { 31 + from.length()? } else { op & 31 } + 2;
                let word = from.word()?;
                ((word >> 2) + 1, len, word)
            }
            _ => ((usize::from(from.byte()?) << 3) + ((op >> 2) & 7) + 1, (op >> 5) + 1, op),
        };
        to.copy(distance, len)?;
        literals = low & 3;
        to.literals(from.take(literals)?)?;
    }
}

struct Input<'a> {
    bytes: &'a [u8],
}

impl<'a> Input<'a> {
    fn take(&mut self, len: usize) -> Result<&'a [u8], String> {
        let (taken, rest) = self.bytes.split_at_checked(len).ok_or("the bytes end before the end mark")?;
        self.bytes = rest;
        Ok(taken)
    }

    fn byte(&mut self) -> Result<u8, String> {
        Ok(self.take(1)?[0])
    }

    fn word(&mut self) -> Result<usize, String> {
        let bytes = self.take(2)?;
        Ok(usize::from(u16::from_le_bytes([bytes[0], bytes[1]])))
    }

    /// Zeros, each for 255, and one byte that is more.
    fn length(&mut self) -> Result<usize, String> {
        let zeros = self.bytes.iter().take_while(|byte| **byte == 0).count();
        self.take(zeros)?;
        Ok(zeros * MAX_RATIO + usize::from(self.byte()?))
    }
}

struct Output<'a> {
    out: &'a mut Vec<u8>,
    start: usize,
    end: usize,
}

impl Output<'_> {
    fn room(&self, len: usize) -> Result<(), String> {
        if len > self.end - self.out.len() { Err("more bytes than announced".to_owned()) } else { Ok(()) }
    }

    fn literals(&mut self, bytes: &[u8]) -> Result<(), String> {
        self.room(bytes.len())?;
        self.out.extend_from_slice(bytes);
        Ok(())
    }

    /// Bytes of a copy may be made by it.
    fn copy(&mut self, distance: usize, len: usize) -> Result<(), String> {
        self.room(len)?;
        let from = self.out.len().checked_sub(distance).filter(|from| *from >= self.start);
        let from = from.ok_or("a copy of what comes before the first byte")?;
        if distance >= len {
            self.out.extend_from_within(from..from + len);
        } else {
            let mut left = len;
            while left > 0 {
                let have = left.min(self.out.len() - from);
                self.out.extend_from_within(from..from + have);
                left -= have;
            }
        }
        Ok(())
    }
}

/// Appends `plain` as LZO1X to `out`: greedy, with one place remembered for each hash of four bytes.
pub(crate) fn pack(plain: &[u8], out: &mut Vec<u8>) {
    let mut places = vec![0_u32; 1 << TABLE_BITS];
    let first = out.len();
    let (mut at, mut pending) = (0, 0);
    while let Some(word) = plain.get(at..at + 4) {
        let word = u32::from_le_bytes(word.try_into().unwrap_or_default());
        let slot = &mut places[(word.wrapping_mul(0x9E37_79B1) >> (32 - TABLE_BITS)) as usize];
        // Places count from one; nothing is remembered at zero.
        let before = std::mem::replace(slot, at as u32 + 1) as usize;
        let distance = (at + 1).wrapping_sub(before);
        if before == 0 || distance > FAR || plain[before - 1..before + 3] != plain[at..at + 4] {
            // Where nothing is found for long, fewer places are looked at.
            at += 1 + ((at - pending) >> 6);
            continue;
        }
        let same = plain[before + 3..].iter().zip(&plain[at + 4..]).take_while(|(a, b)| a == b).count();
        put_literals(&plain[pending..at], first, out);
        put_copy(distance, 4 + same, out);
        at += 4 + same;
        pending = at;
    }
    put_literals(&plain[pending..], first, out);
    out.extend_from_slice(&END);
}

fn put_literals(bytes: &[u8], first: usize, out: &mut Vec<u8>) {
    match bytes.len() {
        0 => return,
        count @ ..=238 if out.len() == first => out.push(17 + count as u8),
        // In the low bits of the copy before them.
        count @ 1..=3 => {
            let low = out.len() - 2;
            out[low] |= count as u8;
        }
        count @ 4..=18 => out.push(count as u8 - 3),
        count => {
            out.push(0);
            put_length(count - 18, out);
        }
    }
    out.extend_from_slice(bytes);
}

fn put_copy(distance: usize, len: usize, out: &mut Vec<u8>) {
    if len <= 8 && distance <= NEAR {
        let back = distance - 1;
        out.extend_from_slice(&[(((len - 1) << 5) | ((back & 7) << 2)) as u8, (back >> 3) as u8]);
        return;
    }
    let (op, most, back) = if distance <= MIDDLE {
        (32, 33, distance - 1)
    } else {
        (16 | (((distance - MIDDLE) & MIDDLE) >> 11) as u8, 9, distance - MIDDLE)
    };
    if len <= most {
        out.push(op | (len - 2) as u8);
    } else {
        out.push(op);
        put_length(len - most, out);
    }
    out.extend_from_slice(&(((back & (MIDDLE - 1)) << 2) as u16).to_le_bytes());
}

fn put_length(mut len: usize, out: &mut Vec<u8>) {
    while len > MAX_RATIO {
        out.push(0);
        len -= MAX_RATIO;
    }
    out.push(len as u8);
}
