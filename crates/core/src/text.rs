//! The input of an encoder, code points in possibly malformed UTF-8, and GPT-2's printable characters.
//!
//! A byte that belongs to no UTF-8 sequence counts as one U+FFFD.

use std::ops::Range;
use std::str::Utf8Error;

/// The input of an encoder.
#[derive(Clone, Copy, Debug)]
pub enum Text<'a> {
    /// Text. The encoder normalises it.
    Str(&'a str),
    /// Arbitrary bytes. Only the normalisers that prepend and replace change them.
    Bytes(&'a [u8]),
}

impl<'a> Text<'a> {
    /// The bytes of the text.
    pub fn as_bytes(self) -> &'a [u8] {
        match self {
            Text::Str(text) => text.as_bytes(),
            Text::Bytes(text) => text,
        }
    }

    /// The text in a range of bytes, which must begin and end between characters.
    pub fn slice(self, range: Range<usize>) -> Self {
        match self {
            Text::Str(text) => Text::Str(&text[range]),
            Text::Bytes(text) => Text::Bytes(&text[range]),
        }
    }
}

/// The bytes as text. As the standard library's function, and faster, for texts with several kinds of characters above all
/// (Keiser and Lemire, "Validating UTF-8 in less than one instruction per byte", 2020).
#[inline]
pub fn from_utf8(bytes: &[u8]) -> Result<&str, Utf8Error> {
    simdutf8::basic::from_utf8(bytes).or_else(|_| std::str::from_utf8(bytes))
}

/// The code point of a byte that belongs to no UTF-8 sequence.
const REPLACEMENT: u32 = 0xfffd;

/// The code point that begins at byte `at`, and its length in bytes.
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

/// The code point that ends at byte `at`, which must lie between two code points.
pub fn code_point_before(text: &[u8], at: usize) -> u32 {
    let earliest = at.saturating_sub(4);
    let start = earliest + last_character(&text[earliest..at]);
    match code_point(text, start) {
        (found, width) if start + width == at => found,
        _ => REPLACEMENT, // a continuation byte without its first byte
    }
}

/// The byte at which the last character of a text begins.
pub fn last_character(text: &[u8]) -> usize {
    let start = text.iter().rposition(|byte| byte & 0xc0 != 0x80);
    start.unwrap_or(0)
}

/// The last position at or before byte `at` that lies between two code points.
pub fn floor_code_point(text: &[u8], at: usize) -> usize {
    let earliest = at.saturating_sub(3);
    let last = text[earliest..at]
        .iter()
        .rposition(|byte| byte & 0xc0 != 0x80);
    match last.map(|last| earliest + last) {
        Some(start) if start + code_point(text, start).1 > at => start,
        _ => at,
    }
}

/// The last character boundary at or before byte `at`.
pub fn floor_char_boundary(text: &str, mut at: usize) -> usize {
    while !text.is_char_boundary(at) {
        at -= 1;
    }
    at
}

/// The printable character of a byte, as byte-level vocabularies write it in files.
///
/// Printable bytes of Latin-1 are their own characters; the other 68 are U+0100, U+0101, ... in order
/// (`bytes_to_unicode` in OpenAI's `encoder.py`, 2019).
pub fn char_of_byte(byte: u8) -> char {
    CHARS[usize::from(byte)]
}

const CHARS: [char; 256] = {
    let mut chars = ['\u{100}'; 256];
    let (mut byte, mut others) = (0, 0);
    while byte < 256 {
        if matches!(byte, 0x21..=0x7e | 0xa1..=0xac | 0xae..=0xff) {
            chars[byte as usize] = byte as u8 as char;
        } else if let Some(other) = char::from_u32(0x100 + others) {
            chars[byte as usize] = other;
            others += 1;
        }
        byte += 1;
    }
    chars
};

/// For U+0000 to U+0143, the byte of the character; 256 if no byte has this character.
const BYTES: [u16; 0x144] = {
    let mut bytes = [256; 0x144];
    let mut byte = 0;
    while byte < 256 {
        bytes[CHARS[byte] as usize] = byte as u16;
        byte += 1;
    }
    bytes
};

/// The printable characters of a token's bytes.
pub fn to_printable(token: &[u8]) -> String {
    token.iter().map(|&byte| char_of_byte(byte)).collect()
}

/// Whether every character of a token is the printable character of a byte.
pub fn is_printable(token: &str) -> bool {
    let mut bytes = token.chars().map(|c| BYTES.get(c as usize));
    bytes.all(|byte| byte.is_some_and(|&byte| byte < 256))
}

/// The bytes of a token's printable characters; `None` if a character is not the one of a byte.
pub fn from_printable(token: &str) -> Option<Vec<u8>> {
    let mut bytes = Vec::with_capacity(token.len());
    for c in token.chars() {
        bytes.push(u8::try_from(*BYTES.get(c as usize)?).ok()?);
    }
    Some(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn what_is_utf8_is_what_the_standard_library_says(
            text in "\\PC{0,80}", cut in 0..80usize, bytes in prop::collection::vec(any::<u8>(), 0..4), repeat in 1..9usize
        ) {
            let mut text = text.repeat(repeat).into_bytes();
            prop_assert_eq!(from_utf8(&text), std::str::from_utf8(&text));
            let cut = cut.min(text.len());
            text.splice(cut..cut, bytes);
            prop_assert_eq!(from_utf8(&text), std::str::from_utf8(&text));
        }
    }

    #[test]
    fn a_position_inside_a_code_point_moves_to_its_start() {
        let text = "aé語😀".as_bytes();
        let floors: Vec<_> = (0..=text.len())
            .map(|at| floor_code_point(text, at))
            .collect();
        assert_eq!(floors, [0, 1, 1, 3, 3, 3, 6, 6, 6, 6, 10]);
        // Bytes that are not UTF-8 are one code point each.
        let text = b"\xf0\x9f\x98\x98\x98\x80\xe8\xaa";
        let floors: Vec<_> = (0..=text.len())
            .map(|at| floor_code_point(text, at))
            .collect();
        assert_eq!(floors, [0, 0, 0, 0, 4, 5, 6, 7, 8]);
    }

    #[test]
    fn the_characters_are_those_of_gpt2() {
        assert_eq!(to_printable(b" a\n\x00\x7f\xa0\xad\xff"), "ĠaĊĀġłŃÿ");
        for byte in 0..=255 {
            let printable = to_printable(&[byte]);
            assert!(is_printable(&printable));
            assert_eq!(from_printable(&printable), Some(vec![byte]));
        }
        assert_eq!(from_printable("a b"), None);
        assert_eq!(from_printable("日"), None);
        assert!(!is_printable("a b") && !is_printable("日"));
    }
}
