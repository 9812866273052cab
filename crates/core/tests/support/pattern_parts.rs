//! Parts of regular expressions, for the tests and the fuzz targets. A case that is saved in
//! `split_patterns.proptest-regressions` depends on their sequence.

/// Atoms over a few characters, so that alternatives overlap and need backtracking.
pub const ATOMS: [&str; 28] = [
    "a",
    "b",
    "B",
    "1",
    " ",
    r"\s",
    r"\S",
    r"\p{L}",
    r"\p{N}",
    r"\w",
    r"\W",
    r"\d",
    ".",
    "[ab1]",
    "[^ab]",
    r"[\p{L}&&[^a]]",
    r"[a-c\s]",
    r"[^\r\n\p{L}]",
    r"\n",
    r"\p{Lu}",
    "é",
    "(?i:s)",
    "(?i:[k-s])",
    "[]a]",
    r"[^\]b]",
    "[[:alpha:]]",
    r"\x{e9}",
    "(?s:.)",
];

pub const REPEATS: [&str; 17] = [
    "", "", "?", "*", "+", "{2}", "{1,3}", "{2,}", "??", "*?", "+?", "{1,3}?", "?+", "*+", "++",
    "{1,2}+", "{2,}+",
];

pub const LOOKS: [&str; 7] = [
    r"(?!\S)",
    "(?=a)",
    "(?![ab])",
    "$",
    r"(?=\s|$)",
    r"\z",
    "(?!$)",
];
