//! Where a piece can be cut between two characters without any change to its tokens.
//!
//! A token that holds the place between two characters was made by a merge that joined its parts there. The
//! left part ends with the character before the place, or is some last bytes of it; the right part begins
//! with the character behind it, or is some first bytes of it. Where no merge has such parts, nothing is
//! ever joined, and both sides can be merged apart. In scripts without spaces that is nearly everywhere:
//! their pieces are long and seldom seen twice, but the parts are few.

use crate::model::{Alphabet, Model};
use rustc_hash::FxHashSet;
use std::ops::Range;

/// Bits of the filter for each pair in it.
const FILTER_BITS: usize = 32;
/// Words of bits for one side of a pair.
const JOINED_WORDS: usize = 1 << 10;
const WORD_BITS: usize = u64::BITS as usize;

/// The characters and parts of characters that merges join. It errs by not cutting only.
pub struct Crossings {
    /// Bits for the hashes of characters that may be joined to some other: on their left, on their right.
    /// They fit the nearest cache, and most pairs are done with them.
    joined: Box<[[u64; JOINED_WORDS]; 2]>,
    /// A bit for the hash of each two characters that may be joined.
    filter: Box<[u64]>,
    /// Bits to shift a hash so that it indexes the bits of `filter`.
    shift: u32,
    /// Two sides of which one at least is a part of a character.
    broken: FxHashSet<(u32, u32)>,
    /// Bits for the first byte of the right side and the last of the left one of each of those.
    broken_at: Box<[u64; 512]>,
}

/// A character's bytes, or some last or first of them, the first in the low byte.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Character {
    bytes: u32,
    width: u32,
    is_whole: bool,
}

impl Crossings {
    /// None if merging does not begin with a token for each byte, or if a piece may become a token that
    /// merging does not make: the same bytes are other tokens as a part of a piece, so what is known of
    /// parts would not be true of pieces. `unreached` is what [`unreached`](super::unreached) found.
    pub fn new(model: &Model, unreached: &[u32]) -> Option<Self> {
        let (settings, vocabulary) = (model.settings(), model.vocabulary());
        let is_text = |id: &u32| model.added_token(*id).is_none_or(|token| !token.special);
        if settings.alphabet != Alphabet::Bytes
            || vocabulary.missing_byte().is_some()
            || settings.ignore_merges && unreached.iter().any(is_text)
        {
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
        Some(Self::of_sides(&sides))
    }

    fn of_sides(sides: &FxHashSet<(Character, Character)>) -> Self {
        let bits = (sides.len() * FILTER_BITS)
            .next_power_of_two()
            .max(WORD_BITS);
        let mut crossings = Self {
            joined: Box::new([[0; JOINED_WORDS]; 2]),
            filter: vec![0; bits / WORD_BITS].into_boxed_slice(),
            shift: u64::BITS - bits.trailing_zeros(),
            broken: FxHashSet::default(),
            broken_at: Box::new([0; 512]),
        };
        for &(left, right) in sides {
            if left.is_whole && right.is_whole {
                let (word, bit) = crossings.filter_bit(left, right);
                crossings.filter[word] |= bit;
                for (joined, character) in crossings.joined.iter_mut().zip([left, right]) {
                    let (word, bit) = joined_bit(character);
                    joined[word] |= bit;
                }
            } else {
                let (word, bit) = broken_bit(left, right);
                crossings.broken_at[word] |= bit;
                crossings.broken.insert((left.bytes, right.bytes));
            }
        }
        crossings
    }

    /// The parts of a piece, which is a range of a text.
    #[inline]
    pub fn parts<'a>(&'a self, text: &'a [u8], piece: Range<usize>) -> Parts<'a> {
        Parts {
            crossings: self,
            text,
            first: Character::at(text, piece.start),
            piece,
        }
    }

    #[inline(always)]
    fn may_join(&self, left: Character, right: Character) -> bool {
        let (row, broken) = broken_bit(left, right);
        let [(on_left, left_bit), (on_right, right_bit)] = [left, right].map(joined_bit);
        let [lefts, rights] = &*self.joined;
        if lefts[on_left] & left_bit != 0 && rights[on_right] & right_bit != 0 {
            let (word, bit) = self.filter_bit(left, right);
            if self.filter[word] & bit != 0 {
                return true;
            }
        }
        self.broken_at[row] & broken != 0 && self.may_join_broken(left, right)
    }

    #[inline(never)]
    fn may_join_broken(&self, left: Character, right: Character) -> bool {
        (0..left.width).any(|cut| {
            (1..=right.width).any(|width| {
                let sides = (
                    left.bytes >> (8 * cut),
                    right.bytes & (u32::MAX >> (u32::BITS - 8 * width)),
                );
                self.broken.contains(&sides)
            })
        })
    }

    /// Word and bit of two whole characters in the filter.
    #[inline(always)]
    fn filter_bit(&self, left: Character, right: Character) -> (usize, u64) {
        let pair = (u64::from(left.bytes) << 32) | u64::from(right.bytes);
        let bit = (pair.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> self.shift) as usize;
        (bit / WORD_BITS, 1 << (bit % WORD_BITS))
    }
}

/// Parts of a piece that can be merged apart, from left to right.
pub struct Parts<'a> {
    crossings: &'a Crossings,
    text: &'a [u8],
    /// What is left.
    piece: Range<usize>,
    /// The character that it begins with.
    first: Character,
}

impl Iterator for Parts<'_> {
    type Item = Range<usize>;

    #[inline]
    fn next(&mut self) -> Option<Range<usize>> {
        let Range { start, end } = self.piece;
        if start >= end {
            return None;
        }
        let (mut at, mut left) = (start, self.first);
        loop {
            at += left.width as usize;
            if at >= end {
                self.piece.start = end;
                return Some(start..end);
            }
            // What of it is behind the end makes no difference: its first bytes may be joined, too.
            let right = Character::at(self.text, at);
            if left.bytes.max(right.bytes) < 0x80 {
                // What ASCII letters make is joined nearly everywhere.
                at += ascii_run(&self.text[at..end]) - 1;
                left = Character::at(self.text, at);
                continue;
            }
            if left.is_whole && right.is_whole && !self.crossings.may_join(left, right) {
                (self.piece.start, self.first) = (at, right);
                return Some(start..at);
            }
            left = right;
        }
    }
}

/// Word and bit of a character among those of one side of a pair.
#[inline(always)]
fn joined_bit(character: Character) -> (usize, u64) {
    let hash = character.bytes.wrapping_mul(0x9e37_79b1) >> 16;
    (hash as usize / WORD_BITS, 1 << (hash % u64::BITS))
}

/// Word and bit of two sides in `broken_at`; all last bytes that are not ASCII fit a word.
#[inline(always)]
fn broken_bit(left: Character, right: Character) -> (usize, u64) {
    let last = left.bytes >> (8 * (left.width - 1));
    let is_ascii = usize::from(last < 0x80);
    let first = (right.bytes % 256) as usize;
    (2 * first + is_ascii, 1 << (last % 64))
}

/// Bytes of the ASCII characters that a text begins with.
#[inline(always)]
fn ascii_run(text: &[u8]) -> usize {
    let end = text.iter().position(|byte| !byte.is_ascii());
    end.unwrap_or(text.len())
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
    /// What stands at a place, one byte if that is no well-formed character.
    #[inline(always)]
    fn at(text: &[u8], at: usize) -> Self {
        let bytes = match text.get(at..at + 4) {
            Some(&[a, b, c, d]) => u32::from_le_bytes([a, b, c, d]),
            _ => little_endian(text.get(at..).unwrap_or_default()),
        };
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
        let whole = Self::at(text, 0);
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
                let last = Self::at(text, start);
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
    bytes.iter().rev().fold(0, number)
}

#[cfg(test)]
mod tests {
    use super::super::{merge_long, PairTable};
    use super::*;
    use crate::interrupt::Interrupt;
    use crate::model::Settings;
    use crate::special::AddedToken;
    use proptest::prelude::*;

    fn model(tokens: &[&[u8]]) -> Model {
        let bytes = (0..=255).map(|byte| vec![byte]);
        let tokens = bytes.chain(tokens.iter().map(|token| token.to_vec()));
        let tokens = (0..).zip(tokens).collect();
        Model::new(tokens, None, Settings::default(), Vec::new()).unwrap()
    }

    /// Where merging the parts counts, not what a whole piece is.
    fn crossings(model: &Model) -> Crossings {
        Crossings::new(model, &[]).unwrap()
    }

    fn parts<'a>(crossings: &Crossings, piece: &'a [u8]) -> Vec<&'a [u8]> {
        let parts = crossings.parts(piece, 0..piece.len());
        parts.map(|part| &piece[part]).collect()
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
    fn a_token_that_no_merge_makes_rules_cuts_out() {
        let mut model = model(&["龙虎龙".as_bytes()]);
        let unreached = [256];
        assert!(Crossings::new(&model, &unreached).is_none());
        let special = AddedToken::special("龙虎龙", 256);
        model = model.with_added(vec![special]).unwrap();
        assert!(Crossings::new(&model, &unreached).is_some());
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
                prop_assert_eq!(apart, merged(&table, piece));
            }
        }
    }
}
