//! Bytes to texts.

use crate::text_parts;
use std::sync::LazyLock;

/// What normalisation and added tokens distinguish.
const MORE_PARTS: [&str; 56] = [
    "e\u{301}",
    "\u{323}",
    "\u{345}",
    "\u{1100}",
    "\u{1161}",
    "\u{11a8}",
    "각",
    "\u{9c7}",
    "\u{9be}",
    "ﬁ",
    "ệ",
    "\u{1d15e}",
    "\u{1f00}",
    "①",
    "ａ",
    "Ａ",
    "İ",
    "ı",
    "Σ",
    "ς",
    "\u{130}",
    "\u{1e9e}",
    "\u{3000}",
    "\u{d7ff}",
    "\u{e000}",
    "\u{10ffff}",
    "\u{10000}",
    "\u{7f}",
    "\u{80}",
    "\u{7ff}",
    "\u{800}",
    "\u{ffff}",
    "▁",
    "▁▁",
    "▁a",
    "<s>",
    "</s>",
    "<|end|>",
    "<|end",
    "<0x0A>",
    "<0xE2>",
    " a",
    "ab",
    "ba",
    "aa",
    "aaaa",
    "abab",
    "the",
    " the",
    "in",
    "er",
    "\t",
    "\u{2581}b",
    "é\u{301}",
    "\u{f900}",
    "\u{37e}",
];

/// What patterns, normalisation and added tokens distinguish.
static PARTS: LazyLock<Vec<&str>> =
    LazyLock::new(|| [&text_parts::all()[..], &MORE_PARTS].concat());

/// The text that bytes describe: ASCII is itself, 255 begins any character, others are an entry of `PARTS`.
pub fn text(bytes: &[u8]) -> String {
    let mut text = String::new();
    let mut bytes = bytes.iter().copied();
    while let Some(byte) = bytes.next() {
        match byte {
            0..128 => text.push(char::from(byte)),
            128..255 => text.push_str(PARTS[usize::from(byte - 128) % PARTS.len()]),
            255 => {
                let mut digit = || u32::from(bytes.next().unwrap_or_default());
                let number = digit() << 16 | digit() << 8 | digit();
                text.push(char::from_u32(number % 0x11_0000).unwrap_or('\u{fffd}'));
            }
        }
    }
    text
}

/// Cuts a text into parts; each byte says how far the next cut is.
pub fn cuts<'a>(text: &'a str, steps: &[u8]) -> Vec<&'a str> {
    let (mut parts, mut rest) = (Vec::new(), text);
    for &step in steps {
        let mut at = usize::from(step % 16).min(rest.len());
        while !rest.is_char_boundary(at) {
            at += 1;
        }
        let (part, after) = rest.split_at(at);
        parts.push(part);
        rest = after;
    }
    parts.push(rest);
    parts
}
