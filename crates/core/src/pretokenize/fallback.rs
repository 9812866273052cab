//! The regex engine: runs the patterns that a DFA cannot express, and is the DFA's oracle in tests.

use crate::error::{Error, Result};
use crate::text::code_point;
use fancy_regex::{Regex, RegexBuilder};
use std::borrow::Cow;
use std::ops::Range;

/// The backtracking steps after which the engine gives up on a text.
const BACKTRACK_LIMIT: usize = 50_000_000;

/// A pattern compiled for the regex engine.
pub struct Fallback {
    regex: Regex,
}

impl Fallback {
    /// Compiles a pattern.
    pub fn new(pattern: &str) -> Result<Self> {
        RegexBuilder::new(pattern)
            .backtrack_limit(BACKTRACK_LIMIT)
            .build()
            .map(|regex| Self { regex })
            .map_err(|error| pattern_error(pattern, &error))
    }

    /// Calls `piece` with each piece of the text, and with whether it is a match, until it returns false.
    /// The pieces cover the text.
    pub fn matches(
        &self,
        text: &[u8],
        piece: impl FnMut(Range<usize>, bool) -> bool,
    ) -> Result<()> {
        let (text, positions) = as_str(text);
        self.matches_in_str(&text, positions.as_deref(), piece)
    }

    /// `positions` maps each byte of `text` to its position in the original text.
    fn matches_in_str(
        &self,
        text: &str,
        positions: Option<&[usize]>,
        mut piece: impl FnMut(Range<usize>, bool) -> bool,
    ) -> Result<()> {
        let original = |at: usize| positions.map_or(at, |positions| positions[at]);
        let mut end = 0;
        for found in self.regex.find_iter(text) {
            let found = found.map_err(|error| Error::PatternGaveUp {
                byte: original(end),
                message: error.to_string(),
            })?;
            if found.range().is_empty() {
                continue;
            }
            let range = original(found.start())..original(found.end());
            let gap = original(end)..range.start;
            if !gap.is_empty() && !piece(gap, false) || !piece(range, true) {
                return Ok(());
            }
            end = found.end();
        }
        if end < text.len() {
            piece(original(end)..original(text.len()), false);
        }
        Ok(())
    }
}

fn pattern_error(pattern: &str, error: &fancy_regex::Error) -> Error {
    let position = match error {
        fancy_regex::Error::ParseError(byte, _) => {
            pattern.get(..*byte).map_or(0, |text| text.chars().count())
        }
        _ => 0,
    };
    Error::Pattern {
        position,
        message: error.to_string(),
    }
}

/// The text with each byte that is not UTF-8 as one U+FFFD, and the original positions of its bytes.
fn as_str(text: &[u8]) -> (Cow<'_, str>, Option<Vec<usize>>) {
    if let Ok(text) = std::str::from_utf8(text) {
        return (Cow::Borrowed(text), None);
    }
    let (mut string, mut positions) = (String::new(), Vec::new());
    let mut at = 0;
    while at < text.len() {
        let (code_point, width) = code_point(text, at);
        string.push(char::from_u32(code_point).unwrap_or(char::REPLACEMENT_CHARACTER));
        positions.resize(string.len(), at);
        at += width;
    }
    positions.push(at);
    (Cow::Owned(string), Some(positions))
}
