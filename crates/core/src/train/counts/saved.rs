//! The file format of piece counts. Equal counts give equal bytes.
//!
//! A file is: the caller's header; the number of pieces; the pieces in byte order; a checksum of all that. A piece
//! is: the length of the prefix that it shares with the previous piece, the length of the rest, the rest, the
//! count. Numbers are LEB128 (seven bits per byte, lowest first; the last byte is below 128). The checksum is 64-bit
//! FNV-1a (<https://datatracker.ietf.org/doc/html/draft-eastlake-fnv>), lowest byte first.

use super::streams::{PieceStream, SortedPieces};
use super::table::PieceCounts;
use crate::error::{Error, Result};
use crate::interrupt::{Interrupt, Poller};
use crate::reserve::{append, copied, reserve, with_capacity};

/// The most bytes of a number.
pub const MAX_NUMBER: usize = 10;
/// Bytes of the checksum.
pub const CHECKSUM: usize = 8;
/// Bytes to collect before they are written.
const WRITTEN_BYTES: usize = 1 << 18;

/// Encodes pieces in byte order.
#[derive(Default)]
pub struct FrontCoder {
    /// What was encoded and not yet taken.
    pub bytes: Vec<u8>,
    last: Vec<u8>,
}

impl FrontCoder {
    /// Appends a piece.
    pub fn push(&mut self, piece: &[u8], count: u64) -> Result<()> {
        let last = &self.last;
        let shared = piece.iter().zip(last).take_while(|(a, b)| a == b).count();
        reserve(&mut self.bytes, piece.len() - shared + 3 * MAX_NUMBER)?;
        push_number(&mut self.bytes, shared as u64);
        push_number(&mut self.bytes, (piece.len() - shared) as u64);
        self.bytes.extend_from_slice(&piece[shared..]);
        push_number(&mut self.bytes, count);
        self.last.truncate(shared);
        append(&mut self.last, &piece[shared..])
    }

    /// Whether there are enough bytes to write.
    pub fn is_full(&self) -> bool {
        self.bytes.len() >= WRITTEN_BYTES
    }
}

/// Writes a file of `distinct` pieces after the caller's header, some bytes at a time.
pub fn save(
    header: &[u8],
    distinct: u64,
    pieces: &mut dyn PieceStream,
    interrupt: &Interrupt<'_>,
    write: &mut dyn FnMut(&[u8]) -> Result<()>,
) -> Result<()> {
    let mut coder = FrontCoder::default();
    let mut sum = Checksum::default();
    let mut poller = Poller::new(interrupt);
    append(&mut coder.bytes, header)?;
    reserve(&mut coder.bytes, MAX_NUMBER)?;
    push_number(&mut coder.bytes, distinct);
    while pieces.advance()? {
        poller.advance(1)?;
        coder.push(pieces.piece(), pieces.count())?;
        if coder.is_full() {
            interrupt.poll()?;
            sum.add(&coder.bytes);
            write(&coder.bytes)?;
            coder.bytes.clear();
        }
    }
    sum.add(&coder.bytes);
    append(&mut coder.bytes, &sum.bytes())?;
    write(&coder.bytes)
}

impl PieceCounts {
    /// The counts as bytes, after the caller's header.
    pub fn save(&self, header: &[u8], interrupt: &Interrupt<'_>) -> Result<Vec<u8>> {
        let mut bytes = copied(&[])?;
        let mut pieces = SortedPieces::of(self.sorted()?);
        save(
            header,
            self.len() as u64,
            &mut pieces,
            interrupt,
            &mut |more| append(&mut bytes, more),
        )?;
        Ok(bytes)
    }

    /// Reads counts that follow a header of `header` bytes.
    pub fn load(bytes: &[u8], header: usize, interrupt: &Interrupt<'_>) -> Result<Self> {
        let wrong = |byte: usize, message: &str| Error::saved("", byte as u64, message);
        let cut_off = || wrong(bytes.len(), TOO_EARLY);
        let end = bytes
            .len()
            .checked_sub(CHECKSUM)
            .filter(|end| *end > header);
        let (content, sum) = bytes.split_at(end.ok_or_else(cut_off)?);
        let mut found = Checksum::default();
        found.add(content);
        if found.bytes() != sum {
            return Err(wrong(content.len(), WRONG_SUM));
        }
        let mut rest = &content[header..];
        let mut counts = Self::default();
        let mut last = Vec::new();
        let pieces = take_number(&mut rest).ok_or_else(cut_off)?;
        let mut poller = Poller::new(interrupt);
        for _ in 0..pieces {
            poller.advance(1)?;
            let at = content.len() - rest.len();
            let shared = take_number(&mut rest).ok_or_else(cut_off)?;
            let length = take_number(&mut rest).and_then(|length| usize::try_from(length).ok());
            let other = length.and_then(|length| rest.split_off(..length));
            let other = other.ok_or_else(cut_off)?;
            let count = take_number(&mut rest).ok_or_else(cut_off)?;
            let kept = usize::try_from(shared)
                .ok()
                .and_then(|shared| last.get(shared..));
            let ascends = kept.is_some_and(|kept: &[u8]| kept < other);
            if !ascends || count == 0 {
                return Err(wrong(at, OUT_OF_ORDER));
            }
            last.truncate(shared as usize);
            append(&mut last, other)?;
            counts.add(&last, 0..last.len(), count)?;
        }
        if !rest.is_empty() {
            return Err(wrong(content.len() - rest.len(), MORE_BYTES));
        }
        Ok(counts)
    }

    /// All pieces and their counts, in byte order.
    pub fn sorted(&self) -> Result<Vec<(&[u8], u64)>> {
        let mut pieces = with_capacity(self.len())?;
        pieces.extend(self.iter());
        pieces.sort_unstable_by_key(|(piece, _)| *piece);
        Ok(pieces)
    }
}

/// What is wrong with a broken file.
pub const TOO_EARLY: &str = "the file ends too early";
pub const WRONG_SUM: &str = "the checksum does not match the content";
pub const OUT_OF_ORDER: &str = "a piece is out of order or has no count";
pub const MORE_BYTES: &str = "there are more bytes after the last piece";

/// Takes a number from the beginning of the bytes.
pub fn take_number(bytes: &mut &[u8]) -> Option<u64> {
    let mut number = 0u64;
    for shift in (0..64).step_by(7) {
        let byte = *bytes.split_off_first()?;
        let bits = u64::from(byte & 0x7f);
        if bits << shift >> shift != bits {
            return None;
        }
        number |= bits << shift;
        if byte < 0x80 {
            return Some(number);
        }
    }
    None
}

/// Appends a number.
pub fn push_number(bytes: &mut Vec<u8>, mut number: u64) {
    while number >= 0x80 {
        bytes.push(number as u8 | 0x80);
        number >>= 7;
    }
    bytes.push(number as u8);
}

/// The checksum of bytes that come in parts.
pub struct Checksum(u64);

impl Default for Checksum {
    fn default() -> Self {
        Self(0xcbf2_9ce4_8422_2325)
    }
}

impl Checksum {
    /// Adds bytes.
    pub fn add(&mut self, bytes: &[u8]) {
        let mix =
            |sum: u64, byte: &u8| (sum ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3);
        self.0 = bytes.iter().fold(self.0, mix);
    }

    /// The bytes of the checksum in a file.
    pub fn bytes(&self) -> [u8; CHECKSUM] {
        self.0.to_le_bytes()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeMap;

    fn counts_of(pieces: &BTreeMap<Vec<u8>, u64>) -> PieceCounts {
        let mut counts = PieceCounts::default();
        for (piece, count) in pieces {
            counts.add(piece, 0..piece.len(), *count).unwrap();
        }
        counts
    }

    fn load(bytes: &[u8], begin: usize) -> Result<BTreeMap<Vec<u8>, u64>> {
        let counts = PieceCounts::load(bytes, begin, &Interrupt::never())?;
        let pieces = counts.sorted().unwrap().into_iter();
        Ok(pieces
            .map(|(piece, count)| (piece.to_vec(), count))
            .collect())
    }

    fn checksum(bytes: &[u8]) -> u64 {
        let mut sum = Checksum::default();
        sum.add(bytes);
        u64::from_le_bytes(sum.bytes())
    }

    fn with_checksum(mut bytes: Vec<u8>) -> Vec<u8> {
        let sum = checksum(&bytes);
        bytes.extend_from_slice(&sum.to_le_bytes());
        bytes
    }

    #[test]
    fn the_checksum_is_the_published_one() {
        assert_eq!(checksum(b""), 0xcbf2_9ce4_8422_2325);
        assert_eq!(checksum(b"a"), 0xaf63_dc4c_8601_ec8c);
        assert_eq!(checksum(b"foobar"), 0x8594_4171_f739_67e8);
    }

    #[test]
    fn what_is_broken_is_refused_with_its_place() {
        let refused = |bytes: Vec<u8>, place: u64, words: &str| match load(&bytes, 1) {
            Err(Error::Saved { byte, message, .. }) => {
                assert_eq!(byte, place);
                assert!(message.contains(words), "{message}");
            }
            other => panic!("{other:?}"),
        };
        refused(b"x".to_vec(), 1, "too early");
        refused(b"x12345678".to_vec(), 9, "too early");
        let good = [b'x', 2, 0, 2, b'a', b'b', 3, 1, 1, b'c', 200, 1];
        let expected = [(b"ab".to_vec(), 3), (b"ac".to_vec(), 200)];
        assert_eq!(
            load(&with_checksum(good.to_vec()), 1).unwrap(),
            expected.into()
        );
        let mut flipped = with_checksum(good.to_vec());
        flipped[4] ^= 1;
        refused(flipped, 12, "checksum");
        let broken = |at: usize, byte: u8| {
            let mut bytes = good.to_vec();
            bytes[at] = byte;
            with_checksum(bytes)
        };
        refused(broken(9, b'a'), 7, "out of order");
        refused(broken(9, b'b'), 7, "out of order");
        refused(broken(7, 3), 7, "out of order");
        refused(broken(6, 0), 2, "no count");
        refused(broken(1, 1), 7, "more bytes");
        refused(broken(1, 3), 20, "too early");
        refused(broken(8, 100), 20, "too early");
        let endless = [&[b'x'][..], &[0xff; 12]].concat();
        refused(with_checksum(endless), 21, "too early");
    }

    proptest! {
        #[test]
        fn what_was_saved_is_loaded(
            pieces in prop::collection::btree_map(prop::collection::vec(0..4_u8, 1..40), 1..u64::MAX, 0..200),
            begin in prop::collection::vec(any::<u8>(), 0..20),
        ) {
            let bytes = counts_of(&pieces).save(&begin, &Interrupt::never()).unwrap();
            prop_assert_eq!(&bytes[..begin.len()], &begin[..]);
            prop_assert_eq!(load(&bytes, begin.len()).unwrap(), pieces);
        }

        #[test]
        fn no_bytes_are_too_much(bytes in prop::collection::vec(any::<u8>(), 0..60)) {
            let _ = load(&with_checksum(bytes), 0);
        }
    }
}
