//! Added tokens: found in a text before it is split into pieces, by one automaton for all of them.

use crate::error::{Error, Result};
use crate::pretokenize::code_point;
use aho_corasick::{AhoCorasick, MatchKind};
use std::ops::Range;

/// A token that is found in the text as it stands, and never merged.
///
/// The flags are those of Hugging Face's `AddedToken`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AddedToken {
    /// The text that the token stands for.
    pub content: String,
    /// Its id.
    pub id: u32,
    /// Plain text unless the caller asks for it; otherwise always found.
    pub special: bool,
    /// Found only where no word character touches it.
    pub single_word: bool,
    /// Takes the white space before it along.
    pub lstrip: bool,
    /// Takes the white space after it along.
    pub rstrip: bool,
    /// Looked for in the normalised text.
    pub normalized: bool,
}

impl AddedToken {
    /// A special token without any other flag.
    pub fn special(content: impl Into<String>, id: u32) -> Self {
        Self {
            content: content.into(),
            id,
            special: true,
            single_word: false,
            lstrip: false,
            rstrip: false,
            normalized: false,
        }
    }
}

/// An added token's place in a text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Found {
    /// Its id.
    pub id: u32,
    /// Its bytes, with the white space that it takes along.
    pub range: Range<usize>,
}

/// Finds a set of added tokens: leftmost first, the longest of those that begin together.
pub struct Matcher {
    /// None if there is nothing to find.
    automaton: Option<AhoCorasick>,
    tokens: Vec<AddedToken>,
}

impl Matcher {
    /// Builds the automaton over the tokens' contents, in time linear in their length.
    pub fn new(tokens: Vec<AddedToken>) -> Result<Self> {
        let automaton = if tokens.is_empty() {
            None
        } else {
            let automaton = AhoCorasick::builder()
                .match_kind(MatchKind::LeftmostLongest)
                .build(tokens.iter().map(|token| &token.content))
                .map_err(|error| {
                    Error::Model(format!("the added tokens are too large: {error}"))
                })?;
            Some(automaton)
        };
        Ok(Self { automaton, tokens })
    }

    /// The longest content, in bytes.
    pub fn longest(&self) -> usize {
        let lengths = self.tokens.iter().map(|token| token.content.len());
        lengths.max().unwrap_or(0)
    }

    /// The tokens in the text, from left to right, none overlapping another.
    pub fn find_iter<'a>(&'a self, text: &'a [u8]) -> impl Iterator<Item = Found> + 'a {
        let mut done = 0;
        self.automaton
            .iter()
            .flat_map(move |automaton| automaton.find_iter(text))
            .filter_map(move |found| {
                let token = &self.tokens[found.pattern().as_usize()];
                let range = self.extend(token, text, found.range(), done)?;
                done = range.end;
                Some(Found {
                    id: token.id,
                    range,
                })
            })
    }

    /// Applies the token's flags to where its content stands; `done` is where the one before ended.
    fn extend(
        &self,
        token: &AddedToken,
        text: &[u8],
        mut range: Range<usize>,
        done: usize,
    ) -> Option<Range<usize>> {
        if range.start < done {
            return None; // white space that the token before took along
        }
        let touches_word = |c: Option<char>| c.is_some_and(is_word);
        if token.single_word
            && (touches_word(chars_back(&text[..range.start]).next())
                || touches_word(chars(&text[range.end..]).next()))
        {
            return None;
        }
        if token.lstrip {
            range.start -= white_space(chars_back(&text[done..range.start]));
        }
        if token.rstrip {
            range.end += white_space(chars(&text[range.end..]));
        }
        Some(range)
    }
}

fn is_word(c: char) -> bool {
    regex_syntax::try_is_word_character(c).unwrap_or(false)
}

/// Bytes of the white space that the characters begin with.
fn white_space(chars: impl Iterator<Item = char>) -> usize {
    let leading = chars.take_while(|c| c.is_whitespace());
    leading.map(char::len_utf8).sum()
}

/// The characters of a text that may hold other bytes; each such byte is one U+FFFD.
fn chars(text: &[u8]) -> impl Iterator<Item = char> + '_ {
    let mut at = 0;
    std::iter::from_fn(move || {
        if at == text.len() {
            return None;
        }
        let (code_point, width) = code_point(text, at);
        at += width;
        char::from_u32(code_point)
    })
}

/// The same from the end backwards, up to the first such byte.
fn chars_back(text: &[u8]) -> impl Iterator<Item = char> + '_ {
    let mut end = text.len();
    std::iter::from_fn(move || {
        let start = (1..=4.min(end))
            .map(|width| end - width)
            .find(|&start| text[start] & 0xc0 != 0x80)?;
        let c = std::str::from_utf8(&text[start..end])
            .ok()?
            .chars()
            .next()?;
        end = start;
        Some(c)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn token(content: &str, id: u32) -> AddedToken {
        AddedToken::special(content, id)
    }

    fn find(tokens: Vec<AddedToken>, text: &str) -> Vec<(u32, String)> {
        let matcher = Matcher::new(tokens).unwrap();
        let found = matcher.find_iter(text.as_bytes());
        found.map(|f| (f.id, text[f.range].to_owned())).collect()
    }

    #[test]
    fn the_longest_wins() {
        let tokens = vec![token("<a>", 1), token("<a><b>", 2), token("<b>", 3)];
        let found = find(tokens, "x<a><b><a>y<b>");
        let expected = [(2, "<a><b>"), (1, "<a>"), (3, "<b>")];
        assert_eq!(found, expected.map(|(id, text)| (id, text.to_owned())));
    }

    #[test]
    fn white_space_is_taken_along_once() {
        let mut left = token("L", 1);
        left.lstrip = true;
        let mut right = token("R", 2);
        right.rstrip = true;
        let found = find(vec![left, right], "a \u{2003}L R \n L");
        let expected = [(1, " \u{2003}L"), (2, "R \n "), (1, "L")];
        assert_eq!(found, expected.map(|(id, text)| (id, text.to_owned())));
    }

    #[test]
    fn a_single_word_touches_no_word_character() {
        let mut word = token("ab", 1);
        word.single_word = true;
        let found = find(vec![word], "ab xab abé ab_ (ab) ab");
        assert_eq!(found.len(), 3);
    }

    #[test]
    fn a_hundred_thousand_tokens_are_one_automaton() {
        let tokens = (0..100_000).map(|id| token(&format!("<|token {id}|>"), id));
        let found = find(
            tokens.collect(),
            "<|token 99999|><|token 9|><|token 100000|>",
        );
        let ids: Vec<u32> = found.iter().map(|(id, _)| *id).collect();
        assert_eq!(ids, [99_999, 9]);
    }
}
