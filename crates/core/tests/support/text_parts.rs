//! Parts of texts that split patterns treat differently. The tests and the fuzz targets put texts together from them.

#![allow(dead_code)] // each test file uses a part

/// White space, contractions in every case (ſ and K fold to ASCII), letters and marks of several scripts, characters
/// above U+FFFF.
const CONTRACTIONS_AND_LETTERS: [&str; 29] = [
    "  ", "   ", "\r\n", "\n\n", "'s", "'LL", "'t", "'Re", "n't", "'ſ", "ſ", "K", "'K", "//\n",
    "?!", "é", "É", "ß", "ǅ", "ʰ", "日", "中", "〇", "亚洲AV", "가", "क", "\u{940}", "\u{301}",
    "🎉",
];

/// White space beyond ASCII, and characters that are not shown.
pub const UNICODE_SPACES: [&str; 8] = [
    "\u{a0}", "\u{2003}", "\u{2028}", "\u{85}", "\u{1c}", "\u{200b}", "\u{feff}", "\u{fffd}",
];

/// Signs, numbers of several scripts, words.
const SIGNS_AND_WORDS: [&str; 13] = [
    "×", "«", "’", "…", "½", "Ⅷ", "٣", "१२", "𝟘", "word", "Word", "WORD", "12345",
];

const LONG: [&str; 4] = ["ひらカタ", "'\u{301}", "👩\u{200d}👧", "camelCase"];

/// All of them.
pub fn all() -> Vec<&'static str> {
    [
        &CONTRACTIONS_AND_LETTERS[..],
        &UNICODE_SPACES,
        &SIGNS_AND_WORDS,
        &LONG,
    ]
    .concat()
}
