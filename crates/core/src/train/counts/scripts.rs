//! The scripts of letters, by Unicode block: enough to tell whose pieces were dropped.

/// The names of the scripts. The first one is for pieces without a letter of the others.
pub const SCRIPTS: [&str; 32] = [
    "other",
    "Latin",
    "Greek",
    "Cyrillic",
    "Armenian",
    "Hebrew",
    "Arabic",
    "Syriac",
    "Thaana",
    "Devanagari",
    "Bengali",
    "Gurmukhi",
    "Gujarati",
    "Oriya",
    "Tamil",
    "Telugu",
    "Kannada",
    "Malayalam",
    "Sinhala",
    "Thai",
    "Lao",
    "Tibetan",
    "Myanmar",
    "Georgian",
    "Hangul",
    "Ethiopic",
    "Khmer",
    "Mongolian",
    "Hiragana",
    "Katakana",
    "Bopomofo",
    "Han",
];

/// The first code point of each range, and the index of its script. A range ends where the next one begins.
const RANGES: [(u32, usize); 63] = [
    (0x0000, 1),
    (0x0370, 2),
    (0x0400, 3),
    (0x0530, 4),
    (0x0590, 5),
    (0x0600, 6),
    (0x0700, 7),
    (0x0750, 6),
    (0x0780, 8),
    (0x07c0, 0),
    (0x0870, 6),
    (0x0900, 9),
    (0x0980, 10),
    (0x0a00, 11),
    (0x0a80, 12),
    (0x0b00, 13),
    (0x0b80, 14),
    (0x0c00, 15),
    (0x0c80, 16),
    (0x0d00, 17),
    (0x0d80, 18),
    (0x0e00, 19),
    (0x0e80, 20),
    (0x0f00, 21),
    (0x1000, 22),
    (0x10a0, 23),
    (0x1100, 24),
    (0x1200, 25),
    (0x13a0, 0),
    (0x1780, 26),
    (0x1800, 27),
    (0x18b0, 0),
    (0x1c80, 3),
    (0x1c90, 23),
    (0x1cc0, 0),
    (0x1e00, 1),
    (0x1f00, 2),
    (0x2000, 0),
    (0x2c60, 1),
    (0x2c80, 0),
    (0x2de0, 3),
    (0x2e00, 0),
    (0x2e80, 31),
    (0x3040, 28),
    (0x30a0, 29),
    (0x3100, 30),
    (0x3130, 24),
    (0x3190, 31),
    (0x31a0, 30),
    (0x31c0, 31),
    (0x31f0, 29),
    (0x3200, 0),
    (0x3400, 31),
    (0xa000, 0),
    (0xa640, 3),
    (0xa6a0, 0),
    (0xa720, 1),
    (0xa800, 0),
    (0xac00, 24),
    (0xd800, 0),
    (0xf900, 31),
    (0xfb00, 0),
    (0x20000, 31),
];

/// The index in [`SCRIPTS`] of a piece's first letter.
pub fn script_of(piece: &[u8]) -> usize {
    let text = piece.utf8_chunks().next().map_or("", |chunk| chunk.valid());
    let Some(letter) = text.chars().find(|letter| letter.is_alphabetic()) else {
        return 0;
    };
    let next = RANGES.partition_point(|range| range.0 <= u32::from(letter));
    RANGES[next - 1].1
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_letter_has_the_script() {
        for (text, script) in [
            (" word", "Latin"),
            ("12é", "Latin"),
            ("Ωmega", "Greek"),
            ("жук", "Cyrillic"),
            ("שלום", "Hebrew"),
            ("سلام", "Arabic"),
            ("नमस्ते", "Devanagari"),
            ("ไทย", "Thai"),
            ("한국", "Hangul"),
            ("ひらがな", "Hiragana"),
            ("カタカナ", "Katakana"),
            ("漢字", "Han"),
            ("𠀀", "Han"),
            ("ქართ", "Georgian"),
            ("!?12 ", "other"),
            ("", "other"),
        ] {
            assert_eq!(SCRIPTS[script_of(text.as_bytes())], script, "{text}");
        }
        assert_eq!(script_of(b"\xff\xfe"), 0);
        assert!(RANGES.is_sorted_by_key(|range| range.0));
        assert!(RANGES.iter().all(|range| range.1 < SCRIPTS.len()));
    }
}
