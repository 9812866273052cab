//! Where a piece can be cut between two characters without any change to its tokens.
//!
//! A token that holds the place between two characters was made by a merge that joined its parts there. The
//! left part ends with the character before the place, or is some last bytes of it; the right part begins
//! with the character behind it, or is some first bytes of it. Where no merge has such parts, nothing is
//! ever joined, and both sides can be merged apart. In scripts without spaces that is nearly everywhere:
//! their pieces are long and seldom seen twice, but the parts are few.

use super::cache::Unit;
use crate::model::{Alphabet, Model};
use rustc_hash::FxHashSet;
use std::ops::Range;

/// The fewest and the most words of the filter, which has one for each two sides in between.
const FILTER_WORDS: [usize; 2] = [1 << 10, 1 << 16];
/// Rows for the first byte of a right side, and what counts of the one behind it.
const ROWS: usize = 1 << 14;

/// What makes bytes a character of three bytes, or two of two or of three bytes each: the bits to look at,
/// and how they look.
const THREE: [u64; 2] = [0xc0_c0f0, 0x80_80e0];
const TWOS: [u64; 2] = [0xc0e0_c0e0, 0x80c0_80c0];
const THREES: [u64; 2] = [0xc0c0_f0c0_c0f0, 0x8080_e080_80e0];
const NOT_ASCII: u64 = 0x8080_8080_8080_8080;

/// The characters and parts of characters that merges join. It errs by not cutting only.
pub struct Crossings {
    /// Two bits of a word for the hash of each two sides that may be joined.
    filter: Box<[u64]>,
    /// Bits for the last byte of the left side, in rows for the first bytes of the right one, of each two
    /// sides of which one at least is a part of a character.
    broken_at: Box<[u64; ROWS]>,
    unit: Unit,
}

/// A character's bytes, or some last or first of them, the first in the low byte.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Character {
    bytes: u32,
    width: u32,
    is_whole: bool,
}

impl Crossings {
    /// None if merging does not begin with a token for each byte. `reaches_all` is whether merging makes
    /// whatever token a piece may be.
    pub fn new(model: &Model, reaches_all: bool) -> Option<Self> {
        let vocabulary = model.vocabulary();
        if model.settings().alphabet != Alphabet::Bytes || vocabulary.missing_byte().is_some() {
            return None;
        }
        let mut sides = FxHashSet::default();
        let mut add = |left: &[u8], right: &[u8]| {
            let found = Character::last(left).zip(Character::first(right));
            sides.extend(found.filter(|(last, first)| last.bytes.max(first.bytes) >= 0x80));
        };
        for &(left, right, _) in model.merges() {
            add(vocabulary.token(left)?, vocabulary.token(right)?);
        }
        let unit = if reaches_all { Unit::Piece } else { Unit::Part };
        Some(Self::of_sides(&sides, unit))
    }

    /// What parts of pieces are to the cache.
    pub fn unit(&self) -> Unit {
        self.unit
    }

    fn of_sides(sides: &FxHashSet<(Character, Character)>, unit: Unit) -> Self {
        let [fewest, most] = FILTER_WORDS;
        let words = sides.len().next_power_of_two().clamp(fewest, most);
        let mut crossings = Self {
            filter: vec![0; words].into_boxed_slice(),
            broken_at: Box::new([0; ROWS]),
            unit,
        };
        for &(left, right) in sides {
            let both = u64::from(left.bytes) | (u64::from(right.bytes) << (8 * left.width));
            let (word, bits) = crossings.filter_bits(both, left.width + right.width);
            crossings.filter[word] |= bits;
            if left.is_whole && right.is_whole {
                continue;
            }
            let last = left.bytes >> (8 * (left.width - 1));
            // If it is one byte, any other may be behind it.
            let seconds = if right.width > 1 { 1 } else { 64 };
            for second in 0..seconds {
                let row = row(u64::from(right.bytes) | (second << 8), last < 0x80);
                crossings.broken_at[row] |= 1 << (last % 64);
            }
        }
        crossings
    }

    /// Where the first part of a piece ends, which is a range of a text. What of a character is behind the
    /// end of the piece makes no difference: its first bytes may be joined, too.
    #[inline]
    pub fn first_part(&self, text: &[u8], piece: Range<usize>) -> usize {
        let Range { start: mut at, end } = piece;
        loop {
            let (width, stays) = self.step(eight(text, at));
            at += width;
            if at >= end || !stays {
                return at.min(end);
            }
        }
    }

    /// The number of the character of three bytes that the piece begins with, if it is a part.
    #[inline(always)]
    pub fn lone_character(&self, text: &[u8], piece: Range<usize>) -> Option<usize> {
        let bytes = eight(text, piece.start);
        let is_lone = match piece.len() {
            0..=2 => false,
            3 => bytes & THREE[0] == THREE[1],
            _ => bytes & THREES[0] == THREES[1] && !self.may_join(bytes, 3, 6),
        };
        is_lone.then_some(character_number(bytes))
    }

    /// Whether two characters may be joined that the first of some bytes are: so many are the left one, so
    /// many are both.
    #[inline(always)]
    fn may_join(&self, bytes: u64, left: u32, both: u32) -> bool {
        if self.has(bytes, both) {
            return true;
        }
        let last = bytes >> (8 * (left - 1));
        let row = row(last >> 8, left == 1);
        (self.broken_at[row] >> (last % 64)) & 1 != 0 && self.may_join_broken(bytes, left, both)
    }

    #[inline(never)]
    fn may_join_broken(&self, bytes: u64, left: u32, both: u32) -> bool {
        (0..left)
            .any(|start| (left + 1..=both).any(|end| self.has(bytes >> (8 * start), end - start)))
    }

    /// Whether the first of some bytes are two sides that may be joined.
    #[inline(always)]
    fn has(&self, bytes: u64, width: u32) -> bool {
        let (word, bits) = self.filter_bits(bytes, width);
        !self.filter[word] & bits == 0
    }

    /// Word and bits in the filter of two sides, which are the first of some bytes. Where the right one
    /// begins need not be told: no other byte than its first begins a character.
    #[inline(always)]
    fn filter_bits(&self, bytes: u64, width: u32) -> (usize, u64) {
        let both = u128::from(bytes << (u64::BITS - 8 * width));
        let product = both * 0x9e37_79b9_7f4a_7c15;
        let hash = (product >> 64) as u64 ^ product as u64;
        let word = hash as usize & (self.filter.len() - 1);
        (word, (1 << (hash >> 58)) | (1 << ((hash >> 52) % 64)))
    }

    /// How many bytes there are to the next place between characters, and whether they may be joined there;
    /// ASCII ones are nearly everywhere, and what is not well-formed is not cut.
    #[inline]
    fn step(&self, bytes: u64) -> (usize, bool) {
        if bytes & THREES[0] == THREES[1] {
            return (3, self.may_join(bytes, 3, 6));
        }
        let ascii = (bytes & NOT_ASCII).trailing_zeros() / 8;
        if ascii > 1 {
            return (ascii as usize - 1, true);
        }
        if bytes & TWOS[0] == TWOS[1] {
            return (2, self.may_join(bytes, 2, 4));
        }
        let left = Character::of(bytes as u32);
        let right = Character::of((bytes >> (8 * left.width)) as u32);
        let is_whole = left.is_whole && right.is_whole;
        let both = left.width + right.width;
        let may_join = !is_whole || self.may_join(bytes, left.width, both);
        (left.width as usize, may_join)
    }
}

/// The number, less than 2¹⁶, of a character of three bytes that some bytes begin with.
#[inline(always)]
fn character_number(bytes: u64) -> usize {
    ((bytes & 0xf) << 12 | (bytes >> 8 & 0x3f) << 6 | bytes >> 16 & 0x3f) as usize
}

/// The row in `broken_at` of what begins with some bytes. Where ASCII is on the left, there is none on the
/// right, and the rows of what begins no character are free.
#[inline(always)]
fn row(bytes: u64, is_ascii: bool) -> usize {
    (bytes as usize % ROWS) & !(usize::from(is_ascii) << 6)
}

/// Eight bytes of a text, and zeros behind it.
#[inline(always)]
fn eight(text: &[u8], at: usize) -> u64 {
    match text.get(at..at + 8) {
        Some(&[a, b, c, d, e, f, g, h]) => u64::from_le_bytes([a, b, c, d, e, f, g, h]),
        _ => padded(text, at),
    }
}

#[cold]
fn padded(text: &[u8], at: usize) -> u64 {
    let mut bytes = [0; 8];
    for (byte, &given) in bytes.iter_mut().zip(text.iter().skip(at)) {
        *byte = given;
    }
    u64::from_le_bytes(bytes)
}

/// What the high half of a character's first byte says of it: its bytes, the bits that they have, and
/// what is expected of all but the first.
const KINDS: [(u32, u32, u32); 16] = {
    let mut kinds = [(1, 0xff, 0); 16];
    let mut high = 0x8;
    while high < 0xc {
        kinds[high] = (1, 0xff, 1); // no first byte: what is expected is never found
        high += 1;
    }
    kinds[0xc] = (2, 0xffff, CONTINUATION & 0xffff);
    kinds[0xd] = kinds[0xc];
    kinds[0xe] = (3, 0xff_ffff, CONTINUATION & 0xff_ffff);
    kinds[0xf] = (4, u32::MAX, CONTINUATION);
    kinds
};
const CONTINUATION: u32 = 0x8080_8000;
const CONTINUATION_BITS: u32 = 0xc0c0_c000;

impl Character {
    /// What some bytes begin with, one byte if that is no well-formed character.
    #[inline(always)]
    fn of(bytes: u32) -> Self {
        let (width, bits, expected) = KINDS[(bytes / 16 % 16) as usize];
        let bytes = bytes & bits;
        let is_whole = bytes & CONTINUATION_BITS == expected;
        Self {
            bytes,
            width: if is_whole { width } else { 1 },
            is_whole,
        }
    }

    /// Some last or first bytes of a character.
    fn part(bytes: &[u8]) -> Self {
        Self {
            bytes: little_endian(bytes),
            width: bytes.len() as u32,
            is_whole: false,
        }
    }

    /// The character that a text begins with, or its first bytes if the text is no more than that.
    fn first(text: &[u8]) -> Option<Self> {
        let whole = Self::of(little_endian(text));
        if whole.is_whole {
            return Some(whole);
        }
        let (first, others) = text.split_first()?;
        let (width, ..) = KINDS[usize::from(first / 16)];
        let is_part = text.len() < width as usize && others.iter().all(is_continuation);
        is_part.then(|| Self::part(text))
    }

    /// The character that a text ends with, or its last bytes if the text is no more than that.
    fn last(text: &[u8]) -> Option<Self> {
        match text.iter().rposition(|byte| !is_continuation(byte)) {
            Some(start) => {
                let last = Self::of(little_endian(&text[start..]));
                let is_last = start + last.width as usize == text.len();
                (last.is_whole && is_last).then_some(last)
            }
            None => (1..4).contains(&text.len()).then(|| Self::part(text)),
        }
    }
}

fn is_continuation(byte: &u8) -> bool {
    byte & 0xc0 == 0x80
}

/// At most four bytes as a number.
fn little_endian(bytes: &[u8]) -> u32 {
    let number = |number: u32, &byte: &u8| (number << 8) | u32::from(byte);
    bytes.iter().take(4).rev().fold(0, number)
}

#[cfg(test)]
mod tests {
    use super::super::{merge_long, PairTable};
    use super::*;
    use crate::interrupt::Interrupt;
    use crate::model::Settings;
    use proptest::prelude::*;

    fn model(tokens: &[&[u8]]) -> Model {
        let bytes = (0..=255).map(|byte| vec![byte]);
        let tokens = bytes.chain(tokens.iter().map(|token| token.to_vec()));
        let tokens = (0..).zip(tokens).collect();
        Model::new(tokens, None, Settings::default(), Vec::new()).unwrap()
    }

    /// Where merging the parts counts, not what a whole piece is.
    fn crossings(model: &Model) -> Crossings {
        Crossings::new(model, true).unwrap()
    }

    fn parts<'a>(crossings: &Crossings, piece: &'a [u8]) -> Vec<&'a [u8]> {
        let parts = parts_inside(crossings, piece, 0..piece.len()).into_iter();
        parts.map(|part| &piece[part]).collect()
    }

    fn parts_inside(crossings: &Crossings, text: &[u8], piece: Range<usize>) -> Vec<Range<usize>> {
        let (mut parts, mut start) = (Vec::new(), piece.start);
        while start < piece.end {
            let end = crossings.first_part(text, start..piece.end);
            parts.push(start..end);
            let lone = crossings.lone_character(text, start..piece.end);
            let part = str::from_utf8(&text[start..end]).ok();
            let number = |text: &str| text.chars().next().map(|character| character as usize);
            let expected = part.filter(|part| part.len() == 3 && part.chars().count() == 1);
            let expected = expected.and_then(number);
            // What is not at the end or before another of three bytes is not looked at.
            let is_near = end == piece.end || piece.end - end >= 3 && text[end] >> 4 == 0xe;
            assert!(lone == expected || lone.is_none() && !is_near);
            start = end;
        }
        parts
    }

    fn merged(table: &PairTable, piece: &[u8]) -> Vec<u32> {
        let mut ids: Vec<u32> = piece.iter().map(|&byte| u32::from(byte)).collect();
        let length = merge_long(table, &mut ids, &Interrupt::never()).unwrap();
        ids.truncate(length);
        ids
    }

    #[test]
    fn a_cut_is_where_nothing_is_joined() {
        let text = |parts: Vec<&[u8]>| {
            let parts = parts
                .into_iter()
                .map(|part| std::str::from_utf8(part).unwrap());
            parts.collect::<Vec<_>>().join("|")
        };
        let cut = |tokens: &[&[u8]], piece: &str| {
            text(parts(&crossings(&model(tokens)), piece.as_bytes()))
        };
        let (tiger, tail) = ("虎".as_bytes(), "龙".as_bytes());
        assert_eq!(cut(&[], "龙虎"), "龙|虎");
        assert_eq!(cut(&[], "ab龙cé"), "ab|龙|c|é"); // ASCII is not looked at
        assert_eq!(
            cut(
                &[&tiger[..2], tiger, &tail[..2], tail, "虎龙".as_bytes()],
                "龙虎龙虎"
            ),
            "龙|虎龙|虎"
        );
        assert_eq!(cut(&[&[tail[2], tiger[0]]], "龙虎龙a"), "龙虎|龙|a"); // parts of both
        assert_eq!(cut(&[&[b'a', tiger[0]]], "a虎b虎a龙"), "a虎|b|虎|a|龙"); // the piece has all of the character
        assert_eq!(cut(&[&[tiger[2], b'a']], "虎a"), "虎a");
    }

    #[test]
    fn what_is_not_well_formed_is_not_cut() {
        let crossings = crossings(&model(&[]));
        for piece in [
            &b"\xe4a"[..],
            b"\xe4\xb8\xe4",
            b"\x80\x80",
            b"\xff\xc3\xff",
            b"\xc3\xa9\xa9a",
        ] {
            assert_eq!(parts(&crossings, piece), [piece]);
        }
    }

    /// Characters that share bytes, whole and in parts.
    fn text() -> impl Strategy<Value = Vec<u8>> {
        let units: [&[u8]; 14] = [
            b"a",
            b"b",
            "é".as_bytes(),
            "ę".as_bytes(),
            "ш".as_bytes(),
            "一".as_bytes(),
            "丁".as_bytes(),
            "乀".as_bytes(),
            "🙀".as_bytes(),
            "🚀".as_bytes(),
            b"\xe4",
            b"\xb8",
            b"\x80",
            b"\xf0\x9f",
        ];
        prop::collection::vec(prop::sample::select(units.to_vec()), 1..12)
            .prop_map(|units| units.concat())
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(3000))]

        /// Tokens are stretches of texts, so that every way to join characters comes up.
        #[test]
        fn parts_are_merged_as_the_whole_is(
            sources in prop::collection::vec((text(), any::<prop::sample::Index>(), 2..7usize), 0..25),
            pieces in prop::collection::vec(text(), 1..8),
        ) {
            let mut tokens: Vec<Vec<u8>> = sources.iter().map(|(source, at, length)| {
                let start = at.index(source.len());
                source[start..source.len().min(start + length)].to_vec()
            }).filter(|token| token.len() > 1).collect();
            tokens.sort_by_key(Vec::len);
            tokens.dedup();
            let model = model(&tokens.iter().map(Vec::as_slice).collect::<Vec<_>>());
            let table = PairTable::new(model.merges());
            let crossings = crossings(&model);
            for piece in pieces.iter().chain(sources.iter().map(|(source, ..)| source)) {
                let apart = parts(&crossings, piece).into_iter();
                let apart: Vec<u32> = apart.flat_map(|part| merged(&table, part)).collect();
                prop_assert_eq!(&apart, &merged(&table, piece));
                let (before, behind) = (&b"\xe4\xb8"[..], "\u{4e01}a".as_bytes());
                let text = [before, piece, behind].concat();
                let inside = parts_inside(&crossings, &text, 2..2 + piece.len()).into_iter();
                let inside: Vec<u32> = inside.flat_map(|part| merged(&table, &text[part])).collect();
                prop_assert_eq!(inside, apart);
            }
        }
    }
}
