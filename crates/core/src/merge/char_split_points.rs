//! Where a piece can be split between two characters without a change of its ids.
//!
//! If a token covers the boundary between two characters, some merge joined its two parts there. The left part
//! ends with the character before the boundary, or is a suffix of that character; the right part begins with
//! the character after it, or is a prefix of that character. If no merge has such parts, no merge crosses the
//! boundary, and both sides merge independently. In scripts without spaces, this holds at nearly every
//! boundary: their pieces are long and rarely repeat, but the parts are few.

use crate::model::{Alphabet, Model};
use std::ops::Range;
use std::sync::OnceLock;

/// The limits of the filter's size in words. Between them, it has about one word for each joined pair.
const FILTER_WORDS: [usize; 2] = [1 << 10, 1 << 16];
/// A longer piece may have parts whatever it begins with.
const MAX_SHORT: usize = 15;
/// Pieces of so few bytes are merged as a whole.
const MAX_WHOLE: usize = 2;
/// The rows of `partial`: the first byte of the right side, and the six bits of the next one.
const ROWS: usize = 1 << 14;

/// Masks and values of bytes that begin with a three-byte character, with two two-byte characters, and with two
/// three-byte characters.
const THREE: [u64; 2] = [0xc0_c0f0, 0x80_80e0];
const TWOS: [u64; 2] = [0xc0e0_c0e0, 0x80c0_80c0];
const THREES: [u64; 2] = [0xc0c0_f0c0_c0f0, 0x8080_e080_80e0];
const NOT_ASCII: u64 = 0x8080_8080_8080_8080;

/// The pairs of characters, whole or partial, that merges join. A false positive only prevents a split.
pub struct CharSplitPoints {
    /// A blocked Bloom filter over the joined pairs: two bits in one word for each pair.
    filter: Box<[u64]>,
    /// For joined pairs with a partial side: the row is the first bytes of the right side, the bit is the last
    /// byte of the left side.
    partial: Box<[u64; ROWS]>,
    /// The tokens that are not ASCII, which a piece may be and merging may not make. None if a piece is never such a token.
    unmerged: Option<Box<Lengths>>,
    /// Fewer such tokens, once they are known.
    still_unmerged: OnceLock<Option<Box<Lengths>>>,
}

/// For each first byte of a token, the lengths of the tokens as bits. All lengths from [`MANY`] on have the same bit.
type Lengths = [u64; 256];
const MANY: usize = 63;

/// The bytes of a character, or a suffix or prefix of them, the first in the low byte.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Character {
    bytes: u32,
    width: u32,
    is_whole: bool,
}

impl CharSplitPoints {
    /// None if merging does not begin with a token for each byte. `may_be_unmerged` says whether a piece may be a token that
    /// merging does not make.
    pub fn new(model: &Model, may_be_unmerged: bool) -> Option<Self> {
        let vocabulary = model.vocabulary();
        if model.settings().alphabet != Alphabet::Bytes || vocabulary.missing_byte().is_some() {
            return None;
        }
        let mut points = Self {
            filter: vec![0; FILTER_WORDS[1]].into_boxed_slice(),
            partial: Box::new([0; ROWS]),
            unmerged: may_be_unmerged.then(|| lengths(vocabulary.not_ascii())),
            still_unmerged: OnceLock::new(),
        };
        let mut joined = 0;
        for &(left, _, product) in model.merges() {
            // The product's bytes are those of both parts. Products mostly ascend, so they are near in memory.
            let (left, right) = vocabulary
                .token(product)?
                .split_at_checked(vocabulary.token(left)?.len())?;
            let is_ascii = |byte: Option<&u8>| byte.is_some_and(u8::is_ascii);
            if is_ascii(left.last()) && is_ascii(right.first()) {
                continue;
            }
            if let Some((left, right)) = Character::last(left).zip(Character::first(right)) {
                joined += usize::from(points.insert(left, right));
            }
        }
        points.fold_filter(joined);
        Some(points)
    }

    /// Adds a joined pair. Returns whether the filter tells that it is new.
    fn insert(&mut self, left: Character, right: Character) -> bool {
        let both = u64::from(left.bytes) | (u64::from(right.bytes) << (8 * left.width));
        let (word, bits) = self.filter_bits(both, left.width + right.width);
        let bits = 1 << bits[0] | 1 << bits[1];
        let is_new = !self.filter[word] & bits != 0;
        self.filter[word] |= bits;
        if !(left.is_whole && right.is_whole) {
            let last = left.bytes >> (8 * (left.width - 1));
            // After a right side of one byte, any continuation byte may follow.
            let seconds = if right.width > 1 { 1 } else { 64 };
            for second in 0..seconds {
                let row = row(u64::from(right.bytes) | (second << 8), last < 0x80);
                self.partial[row] |= 1 << (last % 64);
            }
        }
        is_new
    }

    /// Halves the filter to about one word for each joined pair: a word's index is the lower bits of a hash, so
    /// the words of a smaller filter are unions.
    fn fold_filter(&mut self, joined: usize) {
        let [min, max] = FILTER_WORDS;
        let words = joined.next_power_of_two().clamp(min, max);
        let mut folded = vec![0; words];
        for part in self.filter.chunks_exact(words) {
            for (word, bits) in folded.iter_mut().zip(part) {
                *word |= bits;
            }
        }
        self.filter = folded.into_boxed_slice();
    }

    /// Whether a part has the same ids as a piece of the same bytes.
    pub fn parts_are_pieces(&self) -> bool {
        self.unmerged().is_none()
    }

    fn unmerged(&self) -> &Option<Box<Lengths>> {
        self.still_unmerged.get().unwrap_or(&self.unmerged)
    }

    /// Takes note that only some of the tokens may not be made by merging.
    pub fn keep_unmerged(&self, model: &Model, unmerged: &[u32]) {
        let tokens = unmerged
            .iter()
            .filter_map(|&id| model.vocabulary().token(id));
        let tokens = tokens.filter(|token| !token.is_ascii());
        let known = (!unmerged.is_empty()).then(|| lengths(tokens));
        let _ = self.still_unmerged.set(known);
    }

    /// Whether a piece that is not ASCII may be one of the tokens that merging may not make.
    pub fn may_be_unmerged(&self, piece: &[u8]) -> bool {
        match (self.unmerged(), piece) {
            (Some(lengths), [first, ..]) => {
                lengths[usize::from(*first)] >> piece.len().min(MANY) & 1 != 0
            }
            _ => false,
        }
    }

    /// Whether a search for parts of a piece may pay. Merging a few bytes takes less time. So does merging a short piece
    /// of malformed bytes, where no part ends: the first byte that is not ASCII tells.
    #[inline(always)]
    pub fn may_have_parts(&self, text: &[u8], piece: Range<usize>) -> bool {
        if piece.len() > MAX_SHORT {
            return true;
        }
        let bytes = eight(text, piece.start);
        let ascii = (bytes & NOT_ASCII).trailing_zeros() / 8;
        piece.len() > MAX_WHOLE
            && (ascii > 4 || Character::of((bytes >> (8 * ascii)) as u32).is_whole)
    }

    /// Where the first part of a piece, a range of a text, ends, and the part's number if it is a three-byte
    /// character. A character that continues after the end of the piece needs no special case: the filter knows
    /// its prefixes too.
    #[inline(always)]
    pub fn first_part(&self, text: &[u8], piece: Range<usize>) -> (usize, Option<usize>) {
        let bytes = eight(text, piece.start);
        self.first_part_after(self.step(bytes), bytes, text, piece)
    }

    /// The same, with the piece's first eight bytes and their step.
    #[inline(always)]
    fn first_part_after(
        &self,
        (width, mut is_joined): (usize, bool),
        bytes: u64,
        text: &[u8],
        piece: Range<usize>,
    ) -> (usize, Option<usize>) {
        let Range { start, end } = piece;
        let mut at = start + width;
        while is_joined && at < end {
            let (width, joins_next) = self.step(eight(text, at));
            at += width;
            is_joined = joins_next;
        }
        let at = at.min(end);
        let is_char = at - start == 3 && bytes & THREE[0] == THREE[1];
        (at, is_char.then_some(char_number(bytes)))
    }

    /// Passes the numbers of the three-byte characters that a piece begins with to `emit`, as long as each is a part,
    /// another one or the end of the piece follows, and `emit` returns true. Returns where the next part begins, its
    /// first eight bytes, and whether a merge may join its first two characters, if both have three bytes.
    #[inline(always)]
    pub fn lone_chars(
        &self,
        text: &[u8],
        piece: Range<usize>,
        mut emit: impl FnMut(usize) -> bool,
    ) -> (usize, u64, Option<bool>) {
        let Range { start: mut at, end } = piece;
        loop {
            let bytes = eight(text, at);
            if bytes & THREES[0] != THREES[1] {
                let is_last = at + 3 == end && bytes & THREE[0] == THREE[1];
                if is_last && emit(char_number(bytes)) {
                    at = end;
                }
                return (at, bytes, None);
            }
            if self.may_join(bytes, 3, 6) {
                return (at, bytes, Some(true));
            }
            if at + 3 > end || !emit(char_number(bytes)) {
                return (at, bytes, Some(false));
            }
            at += 3;
        }
    }

    /// The same. Returns the next part, and its number if it is a three-byte character.
    #[inline(always)]
    pub fn next_part(
        &self,
        text: &[u8],
        piece: Range<usize>,
        emit: impl FnMut(usize) -> bool,
    ) -> (Range<usize>, Option<usize>) {
        let (at, bytes, is_joined) = self.lone_chars(text, piece.clone(), emit);
        if at >= piece.end {
            return (at..at, None);
        }
        let step = match is_joined {
            Some(is_joined) => (3, is_joined),
            None => self.step_other(bytes),
        };
        let (part_end, character) = self.first_part_after(step, bytes, text, at..piece.end);
        (at..part_end, character)
    }

    /// Whether a merge may join the two characters that `bytes` begins with: the left one has `left` bytes,
    /// both have `both`.
    #[inline(always)]
    fn may_join(&self, bytes: u64, left: u32, both: u32) -> bool {
        if self.has(bytes, both) {
            return true;
        }
        let last = bytes >> (8 * (left - 1));
        let row = row(last >> 8, left == 1);
        (self.partial[row] >> (last % 64)) & 1 != 0 && self.may_join_partially(bytes, left, both)
    }

    /// Tests all suffixes of the left character with all prefixes of the right one.
    #[inline(never)]
    fn may_join_partially(&self, bytes: u64, left: u32, both: u32) -> bool {
        (0..left)
            .any(|start| (left + 1..=both).any(|end| self.has(bytes >> (8 * start), end - start)))
    }

    /// Whether the first `width` bytes may be a joined pair.
    #[inline(always)]
    fn has(&self, bytes: u64, width: u32) -> bool {
        let (word, [first, second]) = self.filter_bits(bytes, width);
        let word = self.filter[word];
        // Few pairs are joined: mostly the first bit tells.
        word >> first & 1 != 0 && word >> second & 1 != 0
    }

    /// The word and the bits of a pair, the first `width` bytes, in the filter. The hash needs no length of
    /// the left side: only the first byte of the right side can begin a character.
    #[inline(always)]
    fn filter_bits(&self, bytes: u64, width: u32) -> (usize, [u64; 2]) {
        let both = u128::from(bytes << (u64::BITS - 8 * width));
        let product = both * 0x9e37_79b9_7f4a_7c15;
        let hash = (product >> 64) as u64 ^ product as u64;
        let word = hash as usize & (self.filter.len() - 1);
        (word, [hash >> 58, (hash >> 52) % 64])
    }

    /// The number of bytes to the next boundary between characters, and whether a merge may join them there.
    /// Two ASCII characters count as joined, since most merges join such; so do malformed bytes.
    #[inline(always)]
    fn step(&self, bytes: u64) -> (usize, bool) {
        if bytes & THREES[0] == THREES[1] {
            return (3, self.may_join(bytes, 3, 6));
        }
        self.step_other(bytes)
    }

    /// `step` where `bytes` does not begin with two three-byte characters.
    #[inline]
    fn step_other(&self, bytes: u64) -> (usize, bool) {
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

/// The lengths of tokens that are not ASCII.
fn lengths<'a>(tokens: impl Iterator<Item = &'a [u8]>) -> Box<Lengths> {
    let mut lengths = Box::new([0; 256]);
    for token in tokens {
        if let [first, ..] = token {
            lengths[usize::from(*first)] |= 1 << token.len().min(MANY);
        }
    }
    lengths
}

/// The number, less than 2¹⁶, of the three-byte character that `bytes` begins with.
#[inline(always)]
fn char_number(bytes: u64) -> usize {
    ((bytes & 0xf) << 12 | (bytes >> 8 & 0x3f) << 6 | bytes >> 16 & 0x3f) as usize
}

/// The row in `partial` of a right side that `bytes` begins with. Pairs with ASCII on the left use the rows
/// of bytes that begin no character, which are free.
#[inline(always)]
fn row(bytes: u64, is_ascii: bool) -> usize {
    (bytes as usize % ROWS) & !(usize::from(is_ascii) << 6)
}

/// Eight bytes of a text, padded with zeros.
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
    for (byte, &source) in bytes.iter_mut().zip(text.iter().skip(at)) {
        *byte = source;
    }
    u64::from_le_bytes(bytes)
}

/// By the upper half of a character's first byte: the number of bytes, their mask, and the expected top bits of
/// the continuation bytes.
const KINDS: [(u32, u32, u32); 16] = {
    let mut kinds = [(1, 0xff, 0); 16];
    let mut high = 0x8;
    while high < 0xc {
        kinds[high] = (1, 0xff, 1); // a continuation byte: never well-formed
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
    /// The character that `bytes` begins with, or one byte if it is malformed.
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

    /// A suffix or prefix of a character.
    fn partial(bytes: &[u8]) -> Self {
        Self {
            bytes: little_endian(bytes),
            width: bytes.len() as u32,
            is_whole: false,
        }
    }

    /// The first character of a token. A token that is a prefix of a character is partial.
    fn first(text: &[u8]) -> Option<Self> {
        let whole = Self::of(little_endian(text));
        if whole.is_whole {
            return Some(whole);
        }
        let (first, others) = text.split_first()?;
        let (width, ..) = KINDS[usize::from(first / 16)];
        let is_prefix = text.len() < width as usize && others.iter().all(is_continuation);
        is_prefix.then(|| Self::partial(text))
    }

    /// The last character of a token. A token that is a suffix of a character is partial.
    fn last(text: &[u8]) -> Option<Self> {
        match text.iter().rposition(|byte| !is_continuation(byte)) {
            Some(start) => {
                let last = Self::of(little_endian(&text[start..]));
                let is_last = start + last.width as usize == text.len();
                (last.is_whole && is_last).then_some(last)
            }
            None => (1..4).contains(&text.len()).then(|| Self::partial(text)),
        }
    }
}

fn is_continuation(byte: &u8) -> bool {
    byte & 0xc0 == 0x80
}

/// The first four bytes as a little-endian number.
fn little_endian(bytes: &[u8]) -> u32 {
    let number = |number: u32, &byte: &u8| (number << 8) | u32::from(byte);
    bytes.iter().take(4).rev().fold(0, number)
}

#[cfg(test)]
mod tests {
    use super::super::{merge_symbols, PairTable};
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

    /// The split points of a model in which every part has the ids of a piece.
    fn split_points(model: &Model) -> CharSplitPoints {
        CharSplitPoints::new(model, false).unwrap()
    }

    fn parts<'a>(points: &CharSplitPoints, piece: &'a [u8]) -> Vec<&'a [u8]> {
        let parts = parts_inside(points, piece, 0..piece.len()).into_iter();
        parts.map(|part| &piece[part]).collect()
    }

    #[test]
    fn short_malformed_pieces_are_not_searched_for_parts() {
        let points = split_points(&model(&[]));
        let may_have_parts = |piece: &[u8]| {
            // The bytes after the piece do not matter.
            let text = [b"x", piece, b"\x80\x80"].concat();
            points.may_have_parts(&text, 1..1 + piece.len())
        };
        for piece in ["日", " é", "a日本", "日本語", "abcdefgé", "é\u{301}"] {
            assert!(may_have_parts(piece.as_bytes()), "{piece}");
        }
        for piece in [
            &b"\xe9"[..],
            b"\xff\xfe",
            "é".as_bytes(),
            b"\x80ab",
            b" \xe6\x97.",
            b"ab\xfftail",
        ] {
            assert!(!may_have_parts(piece), "{piece:?}");
        }
        assert!(may_have_parts(&[0xff; 16]));
    }

    fn parts_inside(
        points: &CharSplitPoints,
        text: &[u8],
        piece: Range<usize>,
    ) -> Vec<Range<usize>> {
        let (mut parts, mut start) = (Vec::new(), piece.start);
        while start < piece.end {
            let (end, character) = points.first_part(text, start..piece.end);
            parts.push(start..end);
            let part = str::from_utf8(&text[start..end]).ok();
            let number = |text: &str| text.chars().next().map(|character| character as usize);
            let expected = part.filter(|part| part.len() == 3 && part.chars().count() == 1);
            assert_eq!(character, expected.and_then(number));
            start = end;
        }
        for emits in [1, 2, usize::MAX] {
            let (mut same, mut start) = (Vec::new(), piece.start);
            while start < piece.end {
                let mut characters = 0;
                let (next, _) = points.next_part(text, start..piece.end, |_| {
                    characters += 1;
                    characters < emits
                });
                let emitted = (start..next.start).step_by(3);
                same.extend(emitted.map(|at| at..at + 3));
                same.extend((!next.is_empty()).then_some(next.clone()));
                start = next.end;
            }
            assert_eq!(same, parts);
        }
        parts
    }

    fn merged(table: &PairTable, piece: &[u8]) -> Vec<u32> {
        let mut ids: Vec<u32> = piece.iter().map(|&byte| u32::from(byte)).collect();
        let length = merge_symbols(table, &mut ids, &Interrupt::never()).unwrap();
        ids.truncate(length);
        ids
    }

    #[test]
    fn parts_end_where_nothing_is_joined() {
        let text = |parts: Vec<&[u8]>| {
            let parts = parts
                .into_iter()
                .map(|part| std::str::from_utf8(part).unwrap());
            parts.collect::<Vec<_>>().join("|")
        };
        let split = |tokens: &[&[u8]], piece: &str| {
            text(parts(&split_points(&model(tokens)), piece.as_bytes()))
        };
        let (tiger, tail) = ("虎".as_bytes(), "龙".as_bytes());
        assert_eq!(split(&[], "龙虎"), "龙|虎");
        assert_eq!(split(&[], "ab龙cé"), "ab|龙|c|é"); // ASCII is not split
        assert_eq!(
            split(
                &[&tiger[..2], tiger, &tail[..2], tail, "虎龙".as_bytes()],
                "龙虎龙虎"
            ),
            "龙|虎龙|虎"
        );
        assert_eq!(split(&[&[tail[2], tiger[0]]], "龙虎龙a"), "龙虎|龙|a"); // parts of both
        assert_eq!(split(&[&[b'a', tiger[0]]], "a虎b虎a龙"), "a虎|b|虎|a|龙"); // the token has only a part of the character
        assert_eq!(split(&[&[tiger[2], b'a']], "虎a"), "虎a");
        // A character that ends like the joined one, but only in its last byte.
        let longer = [&tail[1..], &tiger[..1]].concat();
        assert_eq!(split(&[&tail[1..], &longer], "龙虎丙虎"), "龙虎|丙|虎");
    }

    #[test]
    fn few_characters_are_joined_by_chance() {
        let character = |number: u32| char::from_u32(0x4e00 + number).unwrap();
        let pair = |left, right| String::from_iter([character(left), character(right)]);
        let mut tokens: Vec<Vec<u8>> = (0..2000).map(|at| pair(at, 7 * at % 2000).into()).collect();
        let characters = (0..2000).map(|at| character(at).to_string());
        let prefixes = characters.flat_map(|text| [text.as_bytes()[..2].to_vec(), text.into()]);
        tokens.splice(..0, prefixes.collect::<std::collections::BTreeSet<_>>());
        tokens.sort_by_key(Vec::len);
        let points = split_points(&model(
            &tokens.iter().map(|each| &each[..]).collect::<Vec<_>>(),
        ));
        let is_joined = |text: String| parts(&points, text.as_bytes()).len() == 1;
        assert!((0..2000).all(|at| is_joined(pair(at, 7 * at % 2000))));
        let by_chance = (0..2000).filter(|&at| is_joined(pair(at, (7 * at + 1) % 2000)));
        assert!(by_chance.count() < 20);
    }

    #[test]
    fn a_piece_that_ends_in_a_character_has_no_lone_one() {
        let points = split_points(&model(&[]));
        let text = "龙虎".as_bytes();
        assert_eq!(points.first_part(text, 0..3), (3, Some(0x9f99)));
        assert_eq!(points.first_part(text, 0..2), (2, None));
    }

    #[test]
    fn fewer_tokens_may_remain_unmerged() {
        let model = model(&["é".as_bytes(), b"ab", " é".as_bytes()]);
        let (ab, space_e) = (257, 258);
        let points = CharSplitPoints::new(&model, true).unwrap();
        let may_be = |piece: &str| points.may_be_unmerged(piece.as_bytes());
        let may_be_any = |points: &CharSplitPoints| points.may_be_unmerged("é".as_bytes());
        assert!(may_be("é") && may_be(" é") && !may_be(" éé") && !may_be("ш"));
        assert!(!points.parts_are_pieces());
        points.keep_unmerged(&model, &[ab, space_e]);
        assert!(!may_be("é") && may_be(" é"));
        assert!(!points.parts_are_pieces());

        // A part that is ASCII may have other ids than a piece.
        let points = CharSplitPoints::new(&model, true).unwrap();
        points.keep_unmerged(&model, &[ab]);
        assert!(!may_be_any(&points) && !points.parts_are_pieces());
        let points = CharSplitPoints::new(&model, true).unwrap();
        points.keep_unmerged(&model, &[]);
        assert!(!may_be_any(&points) && points.parts_are_pieces());
        assert!(split_points(&model).parts_are_pieces());
    }

    #[test]
    fn malformed_bytes_are_not_split() {
        let points = split_points(&model(&[]));
        for piece in [
            &b"\xe4a"[..],
            b"\xe4\xb8\xe4",
            b"\x80\x80",
            b"\xff\xc3\xff",
            b"\xc3\xa9\xa9a",
        ] {
            assert_eq!(parts(&points, piece), [piece]);
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

        /// Tokens are substrings of texts, so that every way to join characters occurs.
        #[test]
        fn parts_merge_like_the_whole(
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
            let points = split_points(&model);
            for piece in pieces.iter().chain(sources.iter().map(|(source, ..)| source)) {
                let apart = parts(&points, piece).into_iter();
                let apart: Vec<u32> = apart.flat_map(|part| merged(&table, part)).collect();
                prop_assert_eq!(&apart, &merged(&table, piece));
                let (before, after) = (&b"\xe4\xb8"[..], "\u{4e01}a".as_bytes());
                let text = [before, piece, after].concat();
                let inside = parts_inside(&points, &text, 2..2 + piece.len()).into_iter();
                let inside: Vec<u32> = inside.flat_map(|part| merged(&table, &text[part])).collect();
                prop_assert_eq!(inside, apart);
            }
        }
    }
}
