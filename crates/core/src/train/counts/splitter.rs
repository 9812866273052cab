//! Cuts a text into sections: counting the sections counts the text.

use crate::error::Result;
use crate::normalize::Normalization;
use crate::pretokenize::PreTokenizers;
use crate::reserve::push;
use crate::special::{AddedToken, Matcher};
use crate::text::floor_char_boundary;
use crate::threads::first_chunk;

/// A thread counts sections of about this many bytes.
pub const SECTION_BYTES: usize = 1 << 20;

/// What cuts a corpus: special tokens first, then split patterns on the normalised text.
pub struct TextSplitter {
    pub patterns: PreTokenizers,
    pub normalization: Option<Normalization>,
    pub special: Matcher,
}

impl TextSplitter {
    pub fn new(
        patterns: &[String],
        normalization: Option<Normalization>,
        special_tokens: Vec<String>,
    ) -> Result<Self> {
        let special_tokens = (0..)
            .zip(special_tokens)
            .map(|(id, content)| AddedToken::special(content, id));
        Ok(Self {
            patterns: PreTokenizers::of_patterns(patterns)?,
            normalization,
            special: Matcher::new(special_tokens.collect())?,
        })
    }

    /// Appends the sections of a whole text. Special tokens are in none of them.
    pub fn sections<'a>(&'a self, text: &'a str, sections: &mut Vec<&'a str>) -> Result<()> {
        for mut part in self.between_specials(text) {
            while !part.is_empty() {
                let length = first_chunk(part.len(), SECTION_BYTES, |range| {
                    let [start, end] =
                        [range.start, range.end].map(|at| floor_char_boundary(part, at));
                    self.safe_cut(&part[..end], start)
                });
                push(sections, &part[..length])?;
                part = &part[length..];
            }
        }
        Ok(())
    }

    /// The text between special tokens.
    pub fn between_specials<'a>(&'a self, text: &'a str) -> impl Iterator<Item = &'a str> {
        let found = self.special.find_iter(text.as_bytes());
        let found = found.map(|found| found.range);
        let mut done = 0;
        found
            .chain(std::iter::once(text.len()..text.len()))
            .map(move |special| &text[std::mem::replace(&mut done, special.end)..special.start])
    }

    /// The last safe cut in the beginning of a longer text.
    pub fn last_cut(&self, text: &str) -> Option<usize> {
        // After this, a special token may start that continues in the rest of the text.
        let limit = text.len().saturating_sub(self.special.longest);
        let limit = floor_char_boundary(text, limit);
        let specials = self.special.find_iter(text.as_bytes());
        let last = specials
            .take_while(|found| found.range.start < limit)
            .last();
        match last {
            Some(found) if found.range.end >= limit => Some(found.range.end),
            last => {
                let start = last.map_or(0, |found| found.range.end);
                self.safe_cut(&text[..limit], start)
                    .or((start > 0).then_some(start))
            }
        }
    }

    /// The last place from `start` on at which a piece ends whatever follows, and both sides can be normalised
    /// separately.
    pub fn safe_cut(&self, text: &str, start: usize) -> Option<usize> {
        self.patterns.last_safe_cut(text, start, |before, after| {
            let apart = |c| self.normalization.is_none_or(|form| form.is_boundary(c));
            apart(before) && apart(after)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::super::counter::{Counter, Limits};
    use super::super::samples::{count_whole, sample, PATTERN};
    use super::*;

    fn counter(form: Option<Normalization>, tokens: &[&str]) -> Counter {
        let tokens = tokens.iter().map(|&token| token.to_owned()).collect();
        Counter::new(&[PATTERN.to_owned()], form, tokens, 1, Limits::default()).unwrap()
    }

    /// Fails if the two sides of a cut do not count what the whole does.
    fn check_cut(counter: &Counter, text: &str, cut: usize) {
        let mut sum = count_whole(counter, &text[..cut]);
        for (piece, count) in count_whole(counter, &text[cut..]) {
            *sum.entry(piece).or_insert(0) += count;
        }
        assert!(
            sum == count_whole(counter, text),
            "{:?}",
            text.split_at(cut)
        );
    }

    #[test]
    fn a_beginning_is_cut_where_the_rest_changes_nothing() {
        let text = sample(600);
        let overlapping = "ab abab ba\u{301} bab ".repeat(12);
        for (text, tokens) in [
            (&text, &["<|end of text|>", "<|end"][..]),
            (&text, &[]),
            (&overlapping, &["ab", "ba", "abab", "b b", " "]),
        ] {
            for form in [None, Some(Normalization::Nfc), Some(Normalization::Nfkd)] {
                let counter = counter(form, tokens);
                for end in (0..=text.len()).filter(|&end| text.is_char_boundary(end)) {
                    let cut = counter.splitter.last_cut(&text[..end]);
                    // Far enough from the beginning, there is a cut close to the end.
                    assert!(cut.map_or(end < 60, |cut| 0 < cut && cut + 60 > end));
                    if let Some(cut) = cut {
                        check_cut(&counter, text, cut);
                    }
                }
            }
        }
    }
}
