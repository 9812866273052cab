//! Runs the automaton over bytes.

use super::dfa::{Dfa, DEAD, MATCH, STOP};
use std::ops::Range;

/// What a byte that belongs to no UTF-8 sequence counts as: one U+FFFD.
const REPLACEMENT: u32 = 0xfffd;

/// The code point that begins at `at` and the number of its bytes.
///
/// Text may be any bytes: each byte that is not part of a valid sequence is one U+FFFD.
#[inline(always)]
pub fn code_point(text: &[u8], at: usize) -> (u32, usize) {
    let first = text[at];
    if first < 0x80 {
        return (u32::from(first), 1);
    }
    let tail = |i: usize| match text.get(at + i) {
        Some(byte) if byte & 0xc0 == 0x80 => Some(u32::from(byte & 0x3f)),
        _ => None,
    };
    let decoded = match first {
        0xc2..=0xdf => tail(1).map(|b| (u32::from(first & 0x1f) << 6 | b, 2)),
        0xe0..=0xef => match (tail(1), tail(2)) {
            (Some(b), Some(c)) => Some((u32::from(first & 0x0f) << 12 | b << 6 | c, 3))
                .filter(|(c, _)| *c >= 0x800 && !(0xd800..0xe000).contains(c)),
            _ => None,
        },
        0xf0..=0xf4 => match (tail(1), tail(2), tail(3)) {
            (Some(b), Some(c), Some(d)) => {
                Some((u32::from(first & 0x07) << 18 | b << 12 | c << 6 | d, 4))
                    .filter(|(c, _)| (0x10000..0x110000).contains(c))
            }
            _ => None,
        },
        _ => None,
    };
    decoded.unwrap_or((REPLACEMENT, 1))
}

/// Where the last character of a text begins.
pub fn last_character(text: &[u8]) -> usize {
    let start = text.iter().rposition(|byte| byte & 0xc0 != 0x80);
    start.unwrap_or(0)
}

/// The last character boundary at or before `at`.
pub fn floor_char_boundary(text: &str, mut at: usize) -> usize {
    while !text.is_char_boundary(at) {
        at -= 1;
    }
    at
}

/// What a pattern leaves unmatched is rare: its piece is handed over without inlining all that follows.
#[cold]
fn aside(range: Range<usize>, piece: &mut dyn FnMut(Range<usize>, bool) -> bool) -> bool {
    piece(range, false)
}

impl Dfa {
    /// Calls `piece` with each piece of the text, and whether it is a match, until it returns false; they
    /// cover the text.
    #[inline(always)]
    pub fn matches(&self, text: &[u8], piece: impl FnMut(Range<usize>, bool) -> bool) {
        self.scan::<true>(text, piece);
    }

    /// The same of a text that goes on: only pieces that stay what they are whatever follows.
    ///
    /// Returns where they end, and where the next match may begin: between the two there is none.
    pub fn certain_matches(
        &self,
        text: &[u8],
        piece: impl FnMut(Range<usize>, bool) -> bool,
    ) -> (usize, usize) {
        self.scan::<false>(text, piece)
    }

    #[inline(always)]
    fn scan<const ENDS: bool>(
        &self,
        text: &[u8],
        mut piece: impl FnMut(Range<usize>, bool) -> bool,
    ) -> (usize, usize) {
        // No piece covers `gap..start`; the one that begins at `start` can end at `end`.
        let (mut gap, mut start, mut end) = (0, 0, 0);
        let (mut state, mut at) = (0, 0);
        while start < text.len() {
            if !ENDS && at == text.len() {
                return (gap, start);
            }
            let (class, width) = self.class_at(text, at);
            let entry = self.step_on(state, class);
            if entry & MATCH != 0 {
                end = at;
            }
            if entry & STOP == 0 {
                state = entry & DEAD;
                at += width;
                continue;
            }
            state = entry & DEAD;
            if state != DEAD {
                (end, at) = (at, at + width); // the code point begins the next piece
            } else if end == start {
                start += code_point(text, start).1; // no match begins here
                (state, at, end) = (0, start, start);
                continue;
            } else {
                (state, at) = (0, end);
            }
            if gap < start && !aside(gap..start, &mut piece) || !piece(start..end, true) {
                return (gap, start);
            }
            (gap, start) = (end, end);
        }
        if ENDS && gap < start {
            aside(gap..start, &mut piece);
        }
        (gap, start)
    }

    /// The class of the code point at `at` (at the end of the text: what stands for it) and its bytes.
    #[inline(always)]
    fn class_at(&self, text: &[u8], at: usize) -> (usize, usize) {
        match text.get(at) {
            Some(&byte) if byte < 0x80 => (usize::from(self.classes.of_ascii(byte)), 1),
            Some(_) => {
                let (code_point, width) = code_point(text, at);
                (usize::from(self.classes.of(code_point)), width)
            }
            None => (self.classes.count(), 0),
        }
    }

    /// The last position in `text[from..]` at which the text may be cut (see [`Dfa::is_safe_cut`])
    /// and where `allowed` holds for the code points on both sides.
    pub fn last_safe_cut(
        &self,
        text: &str,
        from: usize,
        allowed: impl Fn(char, char) -> bool,
    ) -> Option<usize> {
        let mut chars = text[from..].char_indices().rev();
        let (mut at, mut after) = chars.next()?;
        for (index, before) in chars {
            let (b, a) = (self.class_of(before), self.class_of(after));
            if self.is_safe_cut(b, a) && allowed(before, after) {
                return Some(from + at);
            }
            (at, after) = (index, before);
        }
        None
    }

    fn class_of(&self, c: char) -> u8 {
        self.classes.of(u32::from(c))
    }
}
