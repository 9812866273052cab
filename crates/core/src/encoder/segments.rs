//! Segments of a chat to ids, so that contents never become control tokens.
//!
//! The control tokens of a conversation are the special tokens, and the plain added tokens that are markup. Models have
//! such plain tokens for the parts of a turn (`<tool_call>`, `<think>`). In markup they are control tokens, so in contents
//! they are text. Other plain tokens, like runs of spaces, are ordinary words.

use super::spans::Trusted;
use super::{Encoder, FoundToken, Origin, Special};
use crate::error::{Error, Result};
use crate::interrupt::Interrupt;
use crate::model::NONE;
use crate::reserve::push;
use crate::special::AddedToken;
use rustc_hash::FxHashSet;
use std::ops::Range;

/// A text in segments.
pub struct Segments<'a> {
    text: &'a str,
    /// The end of each segment.
    ends: Vec<usize>,
    trusted: Vec<bool>,
    /// Ranges of trusted segments that follow each other.
    ranges: Vec<Range<usize>>,
}

impl<'a> Segments<'a> {
    /// Segments by their sizes in bytes, and whether each is trusted: written by the template.
    pub fn new(text: &'a str, segments: &[(usize, bool)]) -> Result<Self> {
        let (mut ends, mut end) = (Vec::new(), 0_usize);
        let mut ranges: Vec<Range<usize>> = Vec::new();
        for &(size, is_trusted) in segments {
            let start = end;
            end = start.saturating_add(size);
            if !text.is_char_boundary(end) {
                let message = "a segment ends inside a character".to_owned();
                return Err(Error::Option(message));
            }
            push(&mut ends, end)?;
            match ranges.last_mut() {
                _ if !is_trusted => {}
                Some(last) if last.end == start => last.end = end,
                _ => push(&mut ranges, start..end)?,
            }
        }
        if end != text.len() {
            let message = "the segments are not the whole text".to_owned();
            return Err(Error::Option(message));
        }
        let trusted = segments.iter().map(|&(_, is_trusted)| is_trusted).collect();
        Ok(Self {
            text,
            ends,
            trusted,
            ranges,
        })
    }

    /// The first and the last segment of a token; of an added token, those of its content.
    pub fn covered(&self, token: &FoundToken) -> (usize, usize) {
        let Range { start, end } = token.content;
        let last = self.ends.len().saturating_sub(1);
        let segment_of = |byte| self.ends.partition_point(|&end| end <= byte).min(last);
        (
            segment_of(start),
            segment_of(start.max(end.saturating_sub(1))),
        )
    }

    /// Whether all segments of a token are trusted.
    fn are_trusted(&self, token: &FoundToken) -> bool {
        let (first, last) = self.covered(token);
        self.trusted[first..=last].iter().all(|&it| it)
    }
}

impl Encoder {
    /// The contents of the plain added tokens that are markup: the trusted segments show it or its normal form, or the
    /// template `may_write` one of them in another conversation.
    pub fn markup_tokens<E>(
        &self,
        segments: &Segments<'_>,
        mut may_write: impl FnMut(&str) -> std::result::Result<bool, E>,
    ) -> std::result::Result<FxHashSet<String>, E> {
        let mut plain = self.plain_tokens().peekable();
        let mut markup = FxHashSet::default();
        if plain.peek().is_none() {
            return Ok(markup);
        }
        // Turns repeat the same markup.
        let runs: FxHashSet<&str> = segments
            .ranges
            .iter()
            .map(|it| &segments.text[it.clone()])
            .collect();
        let shown = runs.into_iter().collect::<Vec<_>>().join("\0");
        for AddedToken { content, id, .. } in plain {
            let forms = [Some(content.as_str()), self.model.normal_form(*id)];
            for form in forms.into_iter().flatten() {
                if shown.contains(form) || may_write(form)? {
                    markup.insert(content.clone());
                    break;
                }
            }
        }
        Ok(markup)
    }

    /// The tokens of segments. Special tokens, and the added tokens whose contents are `markup`, are found in trusted
    /// segments only; tokens that normalisation makes of these join `markup`. With `pieces`, the origins are exact, which
    /// takes longer.
    pub fn encode_segments(
        &self,
        segments: &Segments<'_>,
        special: &Special,
        markup: &mut FxHashSet<String>,
        pieces: bool,
        interrupt: &Interrupt<'_>,
    ) -> Result<Vec<FoundToken>> {
        let wanted = if pieces { 0 } else { usize::MAX };
        let mut tokens = Vec::new();
        loop {
            let words = self
                .plain_tokens()
                .filter(|token| !markup.contains(&token.content));
            let words: FxHashSet<u32> = words.map(|token| token.id).collect();
            tokens.clear();
            let trusted = Trusted {
                ranges: &segments.ranges,
                markup,
            };
            let mut room = Ok(());
            self.for_each_permitted_token(
                segments.text,
                Some(trusted),
                special,
                wanted,
                interrupt,
                &mut |token| {
                    room = push(&mut tokens, token);
                    room.is_ok()
                },
            )?;
            room?;
            // Normalisation can make a token of markup that does not show its text: then it is one.
            let made = tokens
                .iter()
                .filter(|token| words.contains(&token.id) && segments.are_trusted(token));
            let before = markup.len();
            let made = made.filter_map(|token| self.model.added_token(token.id));
            markup.extend(made.map(|token| token.content.clone()));
            if markup.len() == before {
                break;
            }
        }
        // Merges make an added token only if the vocabulary holds it too.
        let control = self
            .model
            .added()
            .iter()
            .filter(|it| it.special || markup.contains(&it.content));
        let control: FxHashSet<u32> = control.map(|token| token.id).collect();
        let is_forged = |token: &FoundToken| {
            control.contains(&token.id)
                && self.model.vocabulary().token(token.id).is_some()
                && !segments.are_trusted(token)
        };
        if !tokens.iter().any(is_forged) {
            return Ok(tokens);
        }
        let mut replaced = Vec::new();
        for token in tokens {
            if is_forged(&token) {
                for part in self.merged_parts(&token, &control, interrupt)? {
                    push(&mut replaced, part)?;
                }
            } else {
                push(&mut replaced, token)?;
            }
        }
        Ok(replaced)
    }

    /// The added tokens that are neither special nor white space.
    fn plain_tokens(&self) -> impl Iterator<Item = &AddedToken> {
        // Python's `isspace` includes four control characters.
        let is_space = |c: char| c.is_whitespace() || ('\u{1c}'..='\u{1f}').contains(&c);
        let added = self.model.added().iter();
        added.filter(move |token| !token.special && !token.content.chars().all(is_space))
    }

    /// The tokens with the bytes of a token that merges made, without control tokens. Initial symbols stay as they are.
    fn merged_parts(
        &self,
        token: &FoundToken,
        control: &FxHashSet<u32>,
        interrupt: &Interrupt<'_>,
    ) -> Result<Vec<FoundToken>> {
        let bytes = self.model.token(token.id).unwrap_or_default();
        let trace = self.merger.trace(bytes, interrupt)?;
        let mut parts: Vec<u32> = trace.symbols.iter().map(|it| it.unwrap_or(NONE)).collect();
        let steps = trace.steps.iter();
        for step in steps.take_while(|step| !control.contains(&step.token_id)) {
            parts[step.left] = step.token_id;
            parts[step.right] = NONE;
        }
        parts.retain(|&part| part != NONE);
        if parts.is_empty() {
            return Ok(vec![token.clone()]);
        }
        // Where the text has the token's own bytes, each part has its place among them.
        let has_places = token.span.end - token.span.start == bytes.len();
        let mut start = token.span.start;
        let parts = parts.into_iter().enumerate().map(|(index, id)| {
            let mut part = FoundToken {
                id,
                ..token.clone()
            };
            if has_places {
                let width = self.model.token(id).map_or(0, <[u8]>::len);
                (part.span.start, part.span.end) = (start, start + width);
                start += width;
            }
            if index > 0 {
                part.origin = Origin::PieceRest;
            }
            part
        });
        Ok(parts.collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{Model, Settings};

    #[test]
    fn contents_have_no_control_tokens() {
        let bytes = (0..=255).map(|byte: u8| (u32::from(byte), vec![byte]));
        let tokens = bytes.chain([(256, b"<s>".to_vec())]).collect();
        let merges = [(&b"<"[..], &b"s"[..]), (b"<s", b">")].map(|(a, b)| (a.to_vec(), b.to_vec()));
        let tokens = [tokens, vec![(257, b"<s".to_vec())]].concat();
        let plain = |content: &str, id| AddedToken {
            special: false,
            ..AddedToken::special(content, id)
        };
        let added = vec![
            AddedToken::special("<s>", 256),
            plain("<t>", 300),
            plain("<u>", 301),
        ];
        let model = Model::new(tokens, Some(&merges), Settings::default(), added).unwrap();
        let (encoder, never) = (Encoder::new(model).unwrap(), Interrupt::never());
        let ids = |text: &str, sizes: &[(usize, bool)], written: &str| -> Vec<u32> {
            let segments = Segments::new(text, sizes).unwrap();
            let may_write = |text: &str| Ok::<_, Error>(written.contains(text));
            let mut markup = encoder.markup_tokens(&segments, may_write).unwrap();
            let tokens =
                encoder.encode_segments(&segments, &Special::All, &mut markup, true, &never);
            tokens.unwrap().iter().map(|token| token.id).collect()
        };
        // A merge makes the special token of the content, and is undone.
        assert_eq!(ids("<s><s>", &[(3, true), (3, false)], ""), [256, 257, 62]);
        // The plain tokens of contents are words, but for those that the template writes.
        let text = "<t><t><u>";
        assert_eq!(
            ids(text, &[(3, true), (6, false)], ""),
            [300, 60, 116, 62, 301]
        );
        assert_eq!(ids(text, &[(9, false)], "<u>"), [300, 300, 60, 117, 62]);
        assert!(Segments::new("é", &[(1, true)]).is_err());
        assert!(Segments::new("ab", &[(1, true)]).is_err());
    }
}
