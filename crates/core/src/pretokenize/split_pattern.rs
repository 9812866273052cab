//! A compiled split pattern: a DFA where that is exact, else the regex engine.

use super::dfa::{Dfa, Progress};
use super::lexer::is_look_around;
use super::pattern;
use crate::error::{Error, Result};
use crate::interrupt::Poller;
use crate::reserve::{reserve, reserve_text};
use crate::text::{code_point, floor_code_point};
use fancy_regex::{Regex, RegexBuilder};
use std::borrow::Cow;
use std::ops::Range;

/// The backtracking steps after which the regex engine gives up on a text.
const BACKTRACK_LIMIT: usize = 50_000_000;

/// The bytes that the automaton searches between two polls.
pub const POLL_BYTES: usize = 1 << 18;

enum Engine {
    Automaton(Box<Dfa>),
    /// Runs the patterns that a DFA cannot express, and is the DFA's oracle in tests.
    Regex {
        regex: Regex,
        /// Whether the text is cut at empty matches: if the pattern has no others.
        cuts: bool,
    },
}

/// A compiled split pattern.
pub struct SplitPattern {
    pattern: String,
    engine: Engine,
}

impl SplitPattern {
    /// Compiles a pattern; an error if it is not a regular expression.
    pub fn new(pattern: &str) -> Result<Self> {
        let tree = match is_look_around(pattern) {
            true => None, // the automaton does not tell an empty match from none
            false => pattern::parse(pattern).ok(),
        };
        match tree.and_then(|tree| Dfa::new(&tree)) {
            None => Self::on_regex_engine(pattern),
            Some(dfa) => Ok(Self {
                pattern: pattern.to_owned(),
                engine: Engine::Automaton(Box::new(dfa)),
            }),
        }
    }

    /// Compiles a pattern that finds text; an error also for a look-around, whose matches are all empty.
    pub fn of_text(pattern: &str) -> Result<Self> {
        match is_look_around(pattern) {
            true => Err(Error::Pattern {
                position: 0,
                message: "a look-around can match the empty text alone, which nothing replaces"
                    .to_owned(),
            }),
            false => Self::new(pattern),
        }
    }

    /// Compiles a pattern for the regex engine.
    pub fn on_regex_engine(pattern: &str) -> Result<Self> {
        let regex = RegexBuilder::new(pattern)
            .backtrack_limit(BACKTRACK_LIMIT)
            .build()
            .map_err(|error| pattern_error(pattern, &error))?;
        Ok(Self {
            pattern: pattern.to_owned(),
            engine: Engine::Regex {
                regex,
                cuts: is_look_around(pattern),
            },
        })
    }

    /// The pattern's text.
    pub fn pattern(&self) -> &str {
        &self.pattern
    }

    /// The automaton; `None` if the pattern runs on the regex engine.
    pub fn automaton(&self) -> Option<&Dfa> {
        match &self.engine {
            Engine::Automaton(dfa) => Some(dfa),
            Engine::Regex { .. } => None,
        }
    }

    /// Whether another pattern provably finds the same matches in every text: it has an automaton that does,
    /// or the same text.
    pub fn is_same(&self, other: &Self) -> bool {
        let automata = self.automaton().zip(other.automaton());
        self.pattern == other.pattern || automata.is_some_and(|(one, other)| one.is_same(other))
    }

    /// Whether the matches provably cover every text: no code point is in a gap between two.
    pub fn covers_every_text(&self) -> bool {
        self.automaton().is_some_and(Dfa::covers_every_text)
    }

    /// Calls `piece` with each piece of the text until it returns false.
    ///
    /// The pieces cover the text: a gap between two matches is a piece too.
    #[inline(always)]
    pub fn split(&self, text: &[u8], mut piece: impl FnMut(Range<usize>) -> bool) -> Result<()> {
        match &self.engine {
            Engine::Automaton(_) => self.matches(text, |range, _| piece(range)),
            Engine::Regex { .. } => self.matches(text, |range, _| range.is_empty() || piece(range)),
        }
    }

    /// Calls `piece` with each piece of the text, and with whether it is a match, until it returns false.
    /// Matches are empty only if the pattern is a look-around.
    #[inline(always)]
    pub fn matches(
        &self,
        text: &[u8],
        piece: impl FnMut(Range<usize>, bool) -> bool,
    ) -> Result<()> {
        match &self.engine {
            Engine::Automaton(dfa) => {
                dfa.matches(text, piece);
                Ok(())
            }
            Engine::Regex { regex, cuts } => regex_matches(regex, *cuts, text, piece),
        }
    }
}

impl SplitPattern {
    /// Calls `found` with each match in a text of any length, and polls.
    pub fn for_each_match(
        &self,
        text: &[u8],
        poller: &mut Poller<'_>,
        mut found: impl FnMut(Range<usize>),
    ) -> Result<()> {
        match &self.engine {
            Engine::Automaton(dfa) => {
                let (mut from, mut end, mut progress) = (0, 0, Progress::default());
                while text.len() - end > POLL_BYTES {
                    end = floor_code_point(text, end + POLL_BYTES);
                    let emit = if_match(from, &mut found);
                    from += dfa.stable_matches(&text[from..end], &mut progress, emit).1;
                    poller.advance(POLL_BYTES / 4)?;
                }
                dfa.last_matches(&text[from..], progress, if_match(from, &mut found));
                poller.advance((text.len() - end) / 4)
            }
            Engine::Regex { regex, cuts } => {
                let mut outcome = Ok(());
                regex_matches(regex, *cuts, text, |range, is_match| {
                    outcome = poller.advance(1 + range.len() / 4);
                    outcome.is_ok() && if_match(0, &mut found)(range, is_match)
                })?;
                outcome
            }
        }
    }
}

/// Calls `found` with each match of a part of the text, which begins at `base`.
fn if_match(
    base: usize,
    found: &mut impl FnMut(Range<usize>),
) -> impl FnMut(Range<usize>, bool) -> bool + '_ {
    move |range, is_match| {
        if is_match {
            found(base + range.start..base + range.end);
        }
        true
    }
}

fn regex_matches(
    regex: &Regex,
    cuts: bool,
    text: &[u8],
    mut piece: impl FnMut(Range<usize>, bool) -> bool,
) -> Result<()> {
    let (text, positions) = as_str(text)?;
    let original = |at: usize| positions.as_ref().map_or(at, |positions| positions[at]);
    let mut end = 0;
    for found in regex.find_iter(&*text) {
        let found = found.map_err(|error| Error::PatternGaveUp {
            byte: original(end),
            message: error.to_string(),
        })?;
        if found.range().is_empty() && !cuts {
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
fn as_str(text: &[u8]) -> Result<(Cow<'_, str>, Option<Vec<usize>>)> {
    if let Ok(text) = std::str::from_utf8(text) {
        return Ok((Cow::Borrowed(text), None));
    }
    let (mut string, mut positions) = (String::new(), Vec::new());
    let mut at = 0;
    while at < text.len() {
        let (code_point, width) = code_point(text, at);
        reserve_text(&mut string, 4)?;
        string.push(char::from_u32(code_point).unwrap_or(char::REPLACEMENT_CHARACTER));
        reserve(&mut positions, 5)?;
        positions.resize(string.len(), at);
        at += width;
    }
    positions.push(at);
    Ok((Cow::Owned(string), Some(positions)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::interrupt::Interrupt;
    use std::sync::atomic::{AtomicUsize, Ordering};

    /// Every text of up to four of these characters.
    fn texts() -> Vec<Vec<&'static [u8]>> {
        let characters: [&[u8]; 5] = [b"a", b"b", b"c", "é".as_bytes(), b"\x80"];
        let mut texts = vec![Vec::new()];
        for at in 0..1 + 5 + 25 + 125 {
            for character in characters {
                let mut longer = texts[at].clone();
                longer.push(character);
                texts.push(longer);
            }
        }
        texts
    }

    #[test]
    fn an_automaton_finds_what_the_regex_engine_finds_also_in_parts() {
        let texts = texts();
        let patterns =
            "a abc|a abcé|ab|b (?:a|b)*c (?:ab)+c|b a+? a(?!b) a$|b b+|.é? [^a]+|aaa \u{fffd}+";
        for pattern in patterns.split_whitespace() {
            let automaton = SplitPattern::new(pattern).unwrap();
            let regex = SplitPattern::on_regex_engine(pattern).unwrap();
            assert_eq!((automaton.pattern(), regex.pattern()), (pattern, pattern));
            for text in &texts {
                let whole = text.concat();
                let pieces = |pattern: &SplitPattern| {
                    let mut pieces = Vec::new();
                    let add = |range, is_match| {
                        pieces.push((range, is_match));
                        true
                    };
                    pattern.matches(&whole, add).unwrap();
                    pieces
                };
                let expected = pieces(&regex);
                let shown = String::from_utf8_lossy(&whole);
                assert_eq!(pieces(&automaton), expected, "{pattern} on {shown:?}");
                let expected: Vec<_> = expected
                    .into_iter()
                    .filter_map(|(range, is_match)| is_match.then_some(range))
                    .collect();
                let dfa = automaton.automaton().unwrap();
                let (mut from, mut end) = (0, 0);
                let (mut progress, mut found) = (Progress::default(), Vec::new());
                let mut add = |range| found.push(range);
                for character in text {
                    end += character.len();
                    let add = if_match(from, &mut add);
                    from += dfa.stable_matches(&whole[from..end], &mut progress, add).1;
                }
                dfa.last_matches(&whole[from..], progress, if_match(from, &mut add));
                assert_eq!(found, expected, "{pattern} on the parts of {shown:?}");
            }
        }
    }

    #[test]
    fn a_search_polls_after_some_text() {
        let short = "aaaaaaab".repeat(128);
        let long = "aaaaaaab".repeat(POLL_BYTES * 7 / 16);
        for (pattern, text, times, expected) in [
            ("a+b", &short, 1000, 3), // one poll each 256 KiB
            ("a+b", &long, 2, 6),     // a poll after each part, which begins another interval
            ("(?<!x)a+b", &short, 400, 2),
        ] {
            let polls = AtomicUsize::new(0);
            let poll = || {
                polls.fetch_add(1, Ordering::Relaxed);
                false
            };
            let interrupt = Interrupt::new(&poll);
            let poller = &mut Poller::new(&interrupt);
            let pattern = SplitPattern::new(pattern).unwrap();
            for _ in 0..times {
                let found = pattern.for_each_match(text.as_bytes(), poller, |_| {});
                found.unwrap();
            }
            assert_eq!(polls.into_inner(), expected, "{}", pattern.pattern());
        }
    }

    #[test]
    fn a_long_text_has_the_matches_that_it_has_at_once() {
        let mut text = "é-naïve 日本 12\n".repeat(POLL_BYTES / 10);
        text.insert_str(0, &"x".repeat(POLL_BYTES - 1));
        text.push('\u{3042}');
        for pattern in [r"\p{L}+|\d", r"(?:\p{L}|-)+(?!\S)", r"(?<=a)\S+"] {
            let pattern = SplitPattern::new(pattern).unwrap();
            let (mut expected, mut found) = (Vec::new(), Vec::new());
            let add = |range, is_match| {
                if is_match {
                    expected.push(range);
                }
                true
            };
            pattern.matches(text.as_bytes(), add).unwrap();
            let interrupt = Interrupt::never();
            let poller = &mut Poller::new(&interrupt);
            let add = |range| found.push(range);
            pattern
                .for_each_match(text.as_bytes(), poller, add)
                .unwrap();
            assert!(
                expected.len() > 1000 && found == expected,
                "{}",
                pattern.pattern()
            );
        }
    }

    #[test]
    fn a_split_stops_where_its_caller_asks() {
        for pattern in ["a", "(?<=-)a"] {
            let pattern = SplitPattern::new(pattern).unwrap();
            for most in 1..=5 {
                let mut pieces = Vec::new();
                let add = |range| {
                    pieces.push(range);
                    pieces.len() < most
                };
                pattern.split(b"-a-ab", add).unwrap();
                assert_eq!(pieces, [0..1, 1..2, 2..3, 3..4, 4..5][..most]);
            }
        }
    }

    #[test]
    fn a_look_around_cuts_where_it_holds() {
        for (pattern, text, expected) in [
            (r"(?=(\d{3})+(?!\d))", "a 1234567b", vec![3, 6, 10]),
            (r"(?<=a)", "aab", vec![1, 2, 3]),
            (r"(?=a)|(?=b)", "ab", vec![2]),
        ] {
            let (pattern, mut ends) = (SplitPattern::new(pattern).unwrap(), Vec::new());
            let add = |piece: Range<usize>| {
                ends.push(piece.end);
                true
            };
            pattern.split(text.as_bytes(), add).unwrap();
            assert_eq!(ends, expected, "{}", pattern.pattern());
        }
    }

    #[test]
    fn an_error_counts_the_characters_before_it() {
        for (pattern, expected) in [("éé)", 2), ("é*|*a", 3), ("éa[a", 4)] {
            match SplitPattern::new(pattern) {
                Err(Error::Pattern { position, .. }) => assert_eq!(position, expected, "{pattern}"),
                _ => panic!("{pattern} is valid"),
            }
        }
    }
}
