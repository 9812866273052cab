//! Where a piece can be cut without any change to its tokens.
//!
//! A merge joins two neighbours, so what it joins across a place in the text is the last character of one
//! token and the first of another. Where no merge has such a pair, nothing is ever joined, and both sides
//! can be merged apart: SentencePiece-style models, which do not cut text into pieces, still have no
//! token that continues behind a word's end. Then a word is merged once and found in the cache after that.

use crate::decoder::byte_of;
use crate::model::{Alphabet, Model, Unknown};
use crate::pretokenize::PieceCutter;
use crate::text::last_character;
use rustc_hash::FxHashSet;
use std::ops::Range;

/// The characters that a merge may join to a following `▁`; a piece is cut before it behind any other.
pub struct Joins {
    space: String,
    /// The last characters of what a merge joins to something that begins with the space.
    before: FxHashSet<Vec<u8>>,
}

impl Joins {
    /// None if a model cuts text anyway, or if it cannot be said that cuts change nothing.
    pub fn new(model: &Model) -> Option<Self> {
        let settings = model.settings();
        let spaces = settings.spaces.as_ref()?;
        if settings.alphabet == Alphabet::Bytes || settings.ignore_merges {
            return None;
        }
        let mut buffer = [0; 4];
        let space = spaces.space.encode_utf8(&mut buffer);
        let vocabulary = model.vocabulary();
        vocabulary.id(space.as_bytes())?;
        let mut before = FxHashSet::default();
        for &(left, right, _) in model.merges() {
            let (left, right) = (vocabulary.token(left)?, vocabulary.token(right)?);
            // What stands for bytes or for unknown characters ends with other characters than the text.
            if is_stand_in(model, left) || is_stand_in(model, right) {
                return None;
            }
            if right.starts_with(space.as_bytes()) {
                before.insert(left[last_character(left)..].to_vec());
            }
        }
        Some(Self {
            space: space.to_owned(),
            before,
        })
    }

    /// Calls `piece` with each part of a piece until it returns false; returns what it did.
    pub fn cut(
        &self,
        text: &[u8],
        range: Range<usize>,
        mut piece: impl FnMut(Range<usize>) -> bool,
    ) -> bool {
        let end = range.end;
        let last = self.cut_open(text, range, &mut piece);
        last.is_some_and(|start| piece(start..end))
    }
}

impl PieceCutter for Joins {
    fn cut_open(
        &self,
        text: &[u8],
        range: Range<usize>,
        piece: &mut dyn FnMut(Range<usize>) -> bool,
    ) -> Option<usize> {
        let mut start = range.start;
        let found = memchr::memmem::find_iter(&text[range.clone()], &self.space);
        for at in found
            .map(|at| range.start + at)
            .filter(|&at| at > range.start)
        {
            let part = &text[start..at];
            if !self.before.contains(&part[last_character(part)..]) {
                if !piece(start..at) {
                    return None;
                }
                start = at;
            }
        }
        Some(start)
    }
}

fn is_stand_in(model: &Model, token: &[u8]) -> bool {
    let settings = model.settings();
    let is_unknown = match settings.unknown {
        Unknown::Token { id, .. } => model.vocabulary().token(id) == Some(token),
        _ => false,
    };
    is_unknown || settings.byte_fallback && byte_of(token).is_some()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{Settings, Spaces, Strip};

    fn joins(tokens: &[&str], merges: &[(&str, &str)]) -> Option<Joins> {
        let settings = Settings {
            alphabet: Alphabet::Characters,
            byte_fallback: true,
            spaces: Some(Spaces {
                space: '▁',
                byte_fallback: true,
                strip: Strip::No,
            }),
            ..Settings::default()
        };
        let tokens = (0..).zip(tokens).map(|(id, &token)| (id, token.into()));
        let merges: Vec<(Vec<u8>, Vec<u8>)> = merges
            .iter()
            .map(|&(left, right)| (left.into(), right.into()))
            .collect();
        let model = Model::new(tokens.collect(), Some(&merges), settings, Vec::new());
        Joins::new(&model.unwrap())
    }

    fn cut(joins: &Joins, text: &str) -> String {
        let mut parts = Vec::new();
        joins.cut(text.as_bytes(), 0..text.len(), |range| {
            parts.push(&text[range]);
            true
        });
        parts.join("|")
    }

    #[test]
    fn a_cut_is_where_no_merge_joins() {
        let merges = [("▁", "▁"), ("é", "▁"), ("▁", "a")];
        let joins = joins(&["a", "é", "▁", "▁▁", "é▁", "▁a"], &merges).unwrap();
        assert_eq!(cut(&joins, "▁a▁a▁▁aé▁a"), "▁a|▁a|▁▁aé▁a");
    }

    #[test]
    fn a_stand_in_in_a_merge_rules_cuts_out() {
        assert!(joins(&["▁", "<0x0A>", "<0x0A>▁"], &[("<0x0A>", "▁")]).is_none());
        assert!(joins(&["a", "b", "ab"], &[("a", "b")]).is_none()); // there is no space
    }
}
