//! Added tokens: one Aho-Corasick automaton finds all of them, before the text is split into pieces.

use crate::error::{Error, Result};
use crate::text::code_point;
use crate::threads::try_made_once;
use aho_corasick::{AhoCorasick, MatchKind};
use std::cmp::Reverse;
use std::ops::Range;
use std::sync::OnceLock;

/// A token that is found in the text as a whole and is never the result of a merge.
///
/// The flags are those of Hugging Face's `AddedToken`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(deny_unknown_fields))]
pub struct AddedToken {
    /// The token's text.
    pub content: String,
    /// Its id.
    pub id: u32,
    /// Found only if the caller allows it. A token without this flag is always found.
    pub special: bool,
    /// Found only where no word character is next to it.
    pub single_word: bool,
    /// Includes the white space before it.
    pub lstrip: bool,
    /// Includes the white space after it.
    pub rstrip: bool,
    /// Searched for in the normalised text, by the normal form of its content, to which it decodes.
    pub normalized: bool,
}

impl AddedToken {
    /// A special token without any other flag.
    pub fn special(content: impl Into<String>, id: u32) -> Self {
        Self {
            content: content.into(),
            id,
            special: true,
            ..Self::default()
        }
    }
}

/// An occurrence of an added token in a text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AddedTokenMatch {
    /// The token's id.
    pub id: u32,
    /// The bytes of its content and of the white space that it includes.
    pub range: Range<usize>,
    /// The bytes of its content.
    pub content: Range<usize>,
}

/// Whether a token is allowed at these bytes of a text.
pub type Permits<'a> = &'a dyn Fn(&AddedToken, Range<usize>) -> bool;

/// Finds a set of added tokens: the leftmost occurrence first, and the longest of those that begin there.
pub struct Matcher {
    /// `None` without tokens.
    automaton: Option<AhoCorasick>,
    /// Finds all occurrences, with overlaps. Built on first use.
    overlapping: OnceLock<Option<AhoCorasick>>,
    tokens: Vec<AddedToken>,
    /// The length of the longest content, in bytes.
    pub longest: usize,
    any_lstrip: bool,
    any_rstrip: bool,
}

impl Matcher {
    /// Builds the automaton of the tokens' contents, in time linear in their total length.
    pub fn new(tokens: Vec<AddedToken>) -> Result<Self> {
        Ok(Self {
            automaton: automaton(&tokens, MatchKind::LeftmostLongest)?,
            overlapping: OnceLock::new(),
            any_lstrip: tokens.iter().any(|token| token.lstrip),
            any_rstrip: tokens.iter().any(|token| token.rstrip),
            longest: tokens.iter().map(|it| it.content.len()).max().unwrap_or(0),
            tokens,
        })
    }

    /// Whether there are no tokens.
    pub fn is_empty(&self) -> bool {
        self.tokens.is_empty()
    }

    /// The tokens in the text, from left to right, without overlaps.
    pub fn find_iter<'a>(&'a self, text: &'a [u8]) -> impl Iterator<Item = AddedTokenMatch> + 'a {
        let automaton = self.automaton.iter();
        let contents = automaton.flat_map(move |automaton| automaton.find_iter(text));
        let contents = contents.map(|found| (found.pattern().as_usize(), found.range()));
        self.found(text, contents)
    }

    fn overlapping(&self) -> Result<&Option<AhoCorasick>> {
        try_made_once(&self.overlapping, || {
            automaton(&self.tokens, MatchKind::Standard)
        })
    }

    /// Whether a text may be cut at a position: the two sides then have the tokens of the whole.
    ///
    /// No occurrence of a content touches the position, even one that overlaps another, and no token
    /// includes white space across it.
    pub fn may_cut(&self, text: &[u8], at: usize) -> Result<bool> {
        let Some(overlapping) = self.overlapping()? else {
            return Ok(true);
        };
        let strips = self.any_lstrip || self.any_rstrip;
        if strips && white_space(chars_back(&text[..at]).take(1)) > 0 {
            return Ok(false);
        }
        let from = at.saturating_sub(self.longest);
        let to = text.len().min(at + self.longest);
        let mut contents = overlapping.find_overlapping_iter(&text[from..to]);
        Ok(!contents.any(|found| (found.start()..=found.end()).contains(&(at - from))))
    }

    /// The tokens that `permits` allows. An occurrence that is not allowed hides no other occurrence.
    pub fn find_permitted<'a>(
        &'a self,
        text: &'a [u8],
        permits: Permits<'_>,
    ) -> Result<impl Iterator<Item = AddedTokenMatch> + 'a> {
        let overlapping = self.overlapping()?.iter();
        let contents = overlapping.flat_map(|automaton| automaton.find_overlapping_iter(text));
        let mut contents: Vec<_> = contents
            .map(|found| (found.pattern().as_usize(), found.range()))
            .filter(|(token, range)| permits(&self.tokens[*token], range.clone()))
            .collect();
        contents.sort_unstable_by_key(|(_, range)| (range.start, Reverse(range.end)));
        let mut end = 0;
        contents.retain(|(_, range)| {
            let follows = range.start >= end;
            end = if follows { range.end } else { end };
            follows
        });
        Ok(self.found(text, contents.into_iter()))
    }

    /// Calls `take` with the tokens in the text, or with those that `permits` allows, until it returns false.
    /// Returns what `take` returned last.
    pub fn find(
        &self,
        text: &[u8],
        permits: Option<Permits<'_>>,
        take: &mut dyn FnMut(AddedTokenMatch) -> Result<bool>,
    ) -> Result<bool> {
        let (mut all, mut permitted);
        let found: &mut dyn Iterator<Item = _> = match permits {
            None => {
                all = self.find_iter(text);
                &mut all
            }
            Some(permits) => {
                permitted = self.find_permitted(text, permits)?;
                &mut permitted
            }
        };
        for found in found {
            if !take(found)? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Applies the tokens' flags to the occurrences of their contents.
    fn found<'a>(
        &'a self,
        text: &'a [u8],
        contents: impl Iterator<Item = (usize, Range<usize>)> + 'a,
    ) -> impl Iterator<Item = AddedTokenMatch> + 'a {
        let mut done = 0;
        contents.filter_map(move |(token, content)| {
            let token = &self.tokens[token];
            let range = self.extend(token, text, content.clone(), done)?;
            done = range.end;
            Some(AddedTokenMatch {
                id: token.id,
                range,
                content,
            })
        })
    }

    /// Applies a token's flags to an occurrence of its content; `done` is the end of the previous token.
    fn extend(
        &self,
        token: &AddedToken,
        text: &[u8],
        mut range: Range<usize>,
        done: usize,
    ) -> Option<Range<usize>> {
        if range.start < done {
            return None; // the previous token includes this white space
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

/// The automaton of the tokens' contents; `None` without tokens.
fn automaton(tokens: &[AddedToken], kind: MatchKind) -> Result<Option<AhoCorasick>> {
    if tokens.is_empty() {
        return Ok(None);
    }
    let automaton = AhoCorasick::builder()
        .match_kind(kind)
        .build(tokens.iter().map(|token| &token.content))
        .map_err(|error| Error::Model(format!("the added tokens are too large: {error}")))?;
    Ok(Some(automaton))
}

fn is_word(c: char) -> bool {
    regex_syntax::try_is_word_character(c).unwrap_or(false)
}

/// The length of the white space at the beginning of the characters, in bytes.
fn white_space(chars: impl Iterator<Item = char>) -> usize {
    let leading = chars.take_while(|c| c.is_whitespace());
    leading.map(char::len_utf8).sum()
}

/// The characters of a text. A byte that belongs to no character is one U+FFFD.
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

/// The characters from the end backwards, up to the first byte that belongs to no character.
fn chars_back(text: &[u8]) -> impl Iterator<Item = char> + '_ {
    let mut end = text.len();
    std::iter::from_fn(move || {
        let start = (1..=4.min(end))
            .map(|width| end - width)
            .find(|&start| text[start] & 0xc0 != 0x80)?;
        let character = std::str::from_utf8(&text[start..end]).ok()?;
        end = start;
        character.chars().next()
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
    fn white_space_belongs_to_one_token() {
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
    fn a_token_that_is_not_permitted_hides_no_other() {
        let tokens = vec![token("<<x>", 1), token("<x>", 2), token("x><y", 3)];
        let matcher = Matcher::new(tokens).unwrap();
        let text = "<<x><y<x>";
        let find = |permits: Permits<'_>| -> Vec<_> {
            let found = matcher.find_permitted(text.as_bytes(), permits).unwrap();
            found.map(|found| (found.id, found.range)).collect()
        };
        let all: Vec<_> = matcher.find_iter(text.as_bytes()).collect();
        let all: Vec<_> = all.into_iter().map(|f| (f.id, f.range)).collect();
        assert_eq!(find(&|_, _| true), all);
        assert_eq!(find(&|_, range| range.start > 0), [(2, 1..4), (2, 6..9)]);
        assert_eq!(find(&|token, _| token.id == 3), [(3, 2..6)]);
    }

    /// Every flag alone and together, contents that overlap and contain each other, and white space in one.
    fn flagged() -> Vec<Vec<AddedToken>> {
        let mut sets = vec![vec![token("ab", 1), token("b a", 2), token("aba", 3)]];
        for flags in 0..8 {
            let mut first = token("ab", 1);
            first.single_word = flags & 1 != 0;
            first.lstrip = flags & 2 != 0;
            first.rstrip = flags & 4 != 0;
            let mut second = token("b", 2);
            second.lstrip = !first.lstrip;
            second.rstrip = first.rstrip;
            sets.push(vec![first.clone()]);
            sets.push(vec![first.clone(), second]);
            sets.push(vec![first, token("aba", 3), token(" ", 4)]);
        }
        sets
    }

    /// All texts of up to this many characters.
    fn texts(longest: usize) -> Vec<String> {
        let mut all = vec![String::new()];
        let mut from = 0;
        for _ in 0..longest {
            let until = all.len();
            for index in from..until {
                for c in ['a', 'b', ' ', 'é'] {
                    all.push(format!("{}{c}", all[index]));
                }
            }
            from = until;
        }
        all
    }

    #[test]
    fn a_cut_is_where_no_token_touches_it() {
        for tokens in flagged() {
            let matcher = Matcher::new(tokens.clone()).unwrap();
            let strips = tokens.iter().any(|token| token.lstrip || token.rstrip);
            for text in texts(5) {
                for at in (0..=text.len()).filter(|&at| text.is_char_boundary(at)) {
                    let touches = |token: &AddedToken| {
                        let length = token.content.len();
                        (at.saturating_sub(length)..=at).any(|from| {
                            text.as_bytes()[from..].starts_with(token.content.as_bytes())
                        })
                    };
                    let follows_space = text[..at].ends_with(char::is_whitespace);
                    let may_cut = !(tokens.iter().any(touches) || strips && follows_space);
                    assert_eq!(
                        matcher.may_cut(text.as_bytes(), at).unwrap(),
                        may_cut,
                        "{text:?} {at}"
                    );
                }
            }
        }
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
