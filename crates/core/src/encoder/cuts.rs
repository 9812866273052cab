//! Where a text can be cut without a change of its ids.

use super::added_tokens::Matchers;
use super::Encoder;
use crate::code_units::CodeUnits;
use crate::text::floor_char_boundary;
use std::ops::Range;

/// Finds positions at which the ids of a text are those of its two sides.
pub struct Cuts<'a> {
    encoder: &'a Encoder,
    matchers: &'a Matchers,
    disallowed: Option<&'a Matchers>,
}

impl<'a> Cuts<'a> {
    /// None if no such position is known. `matchers` and `disallowed` are searched in the text.
    pub fn new(
        encoder: &'a Encoder,
        matchers: &'a Matchers,
        disallowed: Option<&'a Matchers>,
    ) -> Option<Self> {
        // The position of a token in the normalised text is unknown before normalisation.
        let hides_tokens = |matchers: &Matchers| {
            !encoder.normalizers.is_empty() && !matchers.normalized.is_empty()
        };
        let may_cut = !encoder.splitter.pre_tokenizers.needs_offsets()
            && !hides_tokens(matchers)
            && !disallowed.is_some_and(hides_tokens);
        may_cut.then_some(Self {
            encoder,
            matchers,
            disallowed,
        })
    }

    /// Bytes of the longest added token that may be in the way of a cut.
    pub fn longest_token(&self) -> usize {
        let matchers = [Some(self.matchers), self.disallowed];
        let matchers = matchers.into_iter().flatten();
        let longest = matchers.map(|it| it.original.longest.max(it.normalized.longest));
        longest.max().unwrap_or(0)
    }

    /// The last cut in a range of a document.
    pub fn last(&self, document: &[u8], range: Range<usize>) -> Option<usize> {
        let mut end = range.end;
        let chunks: Vec<_> = document[range].utf8_chunks().collect();
        chunks.into_iter().rev().find_map(|chunk| {
            let start = end - chunk.invalid().len() - chunk.valid().len();
            end = start;
            self.last_in(chunk.valid(), document, start)
        })
    }

    /// The last cut in a range of code units.
    pub fn last_of_units(&self, units: CodeUnits<'_>, range: Range<usize>) -> Option<usize> {
        // A token that overlaps the range has no more units than bytes.
        let margin = self.longest_token();
        let from = range.start.saturating_sub(margin);
        let to = units.len().min(range.end.saturating_add(margin));
        // Without pairs of surrogates, each unit is a character. A pair at the edge would be halved here.
        if units
            .slice(from.saturating_sub(1)..units.len().min(to + 1))
            .has_pairs()
        {
            return None;
        }
        let mut text = String::new();
        let mut append = |range| {
            units.slice(range).append_to(&mut text).ok()?;
            Some(text.len())
        };
        let start = append(from..range.start)?;
        let end = append(range.clone())?;
        append(range.end..to)?;
        let cut = self.last(text.as_bytes(), start..end)?;
        Some(range.start + text[start..cut].chars().count())
    }

    /// The last cut in the beginning of a text, whatever follows it.
    pub fn last_of_beginning(&self, text: &str) -> Option<usize> {
        // A token that begins before the end of the text may end after it.
        let end = floor_char_boundary(text, text.len().checked_sub(self.longest_token())?);
        self.last_in(&text[..end], text.as_bytes(), 0)
    }

    /// `last` in a valid chunk, which begins at `start`.
    fn last_in(&self, mut chunk: &str, document: &[u8], start: usize) -> Option<usize> {
        let (normalizers, splitter) = (&self.encoder.normalizers, &self.encoder.splitter);
        loop {
            let may_cut = |before, after| normalizers.may_cut(before, after);
            let cut = splitter.pre_tokenizers.last_safe_cut(chunk, 0, may_cut)?;
            if self.holds_no_token_at(document, start + cut) {
                return Some(start + cut);
            }
            chunk = &chunk[..cut];
        }
    }

    fn holds_no_token_at(&self, document: &[u8], at: usize) -> bool {
        let matchers = [Some(self.matchers), self.disallowed];
        let mut matchers = matchers
            .into_iter()
            .flatten()
            .flat_map(|matchers| [&matchers.original, &matchers.normalized]);
        matchers.all(|matcher| matcher.may_cut(document, at).unwrap_or(false))
    }
}
