//! Bytes to regular expressions.

use crate::pattern_parts;
use arbitrary::{Result, Unstructured};
use std::sync::LazyLock;

const MORE_ATOMS: [&str; 20] = [
    r"\D",
    r"\p{Han}",
    r"\P{M}",
    r"\p{M}",
    r"[\p{L}\p{M}]",
    r"\u00e9",
    r"\x41",
    "[--0]",
    r"[^\s\p{L}\p{N}]",
    "'",
    "(?i:ſ)",
    "(?i:K)",
    r"[\x{10000}-\x{10ffff}]",
    r"[^\x00-\x7f]",
    "[a-z&&b-y--c]",
    r"\t",
    "(?i:'s|'t|'re|'ve|'m|'ll|'d)",
    r"[/\r\n]",
    r"\p{Lo}",
    "日",
];

const MORE_REPEATS: [&str; 3] = ["", "{0,2}", "{0}"];

const MORE_LOOKS: [&str; 7] = [
    "(?:$|a)",
    r"(?!\s)",
    r"(?=\p{L})",
    r"\b",
    "^",
    "(?<=a)",
    r"(?<!\s)",
];

static ATOMS: LazyLock<Vec<&str>> =
    LazyLock::new(|| [&pattern_parts::ATOMS[..], &MORE_ATOMS].concat());
static REPEATS: LazyLock<Vec<&str>> =
    LazyLock::new(|| [&pattern_parts::REPEATS[..], &MORE_REPEATS].concat());
static LOOKS: LazyLock<Vec<&str>> =
    LazyLock::new(|| [&pattern_parts::LOOKS[..], &MORE_LOOKS].concat());

/// A pattern, of the grammar that automata support and a little more.
pub fn pattern(u: &mut Unstructured<'_>) -> Result<String> {
    let mut out = String::new();
    branches(u, 3, &mut out)?;
    Ok(out)
}

fn branches(u: &mut Unstructured<'_>, depth: u32, out: &mut String) -> Result<()> {
    let count = u.int_in_range(1..=4)?;
    for index in 0..count {
        if index > 0 {
            out.push('|');
        }
        for _ in 0..u.int_in_range(1..=3)? {
            item(u, depth, out)?;
        }
    }
    Ok(())
}

fn item(u: &mut Unstructured<'_>, depth: u32, out: &mut String) -> Result<()> {
    let kind: u8 = u.arbitrary()?;
    match kind % 16 {
        0..10 => out.push_str(u.choose(&ATOMS)?),
        10 => {
            out.push_str(u.choose(&LOOKS)?);
            return Ok(());
        }
        _ if depth == 0 => out.push_str(u.choose(&ATOMS)?),
        _ => {
            out.push_str(u.choose(&["(?:", "(?:", "(", "(?i:", "(?>", "(?s:", "(?m:", "(?="])?);
            branches(u, depth - 1, out)?;
            out.push(')');
        }
    }
    out.push_str(u.choose(&REPEATS)?);
    Ok(())
}
