//! Where a text of a model without a split pattern can be split without a change of its ids.
//!
//! A merge joins two neighbours: across a position of the text, it joins the last character of one token
//! with the first of another. If no merge joins such a pair, both sides merge independently.
//! SentencePiece-style models do not split text into pieces, but hardly any of their tokens continues across
//! the end of a word. So a word merges once, and later occurrences are in the cache.

use crate::model::{fallback_byte, Alphabet, Model, Unknown};
use crate::text::last_character;
use rustc_hash::FxHashSet;
use std::ops::Range;

/// The positions before a space character (`▁`) that no merge joins.
pub struct MetaspaceSplitPoints {
    space: String,
    /// The last characters of the tokens that a merge joins to a token that begins with the space.
    joined: FxHashSet<Vec<u8>>,
}

impl MetaspaceSplitPoints {
    /// None if the model has no space character, or if the rule does not hold for it.
    pub fn new(model: &Model) -> Option<Self> {
        let settings = model.settings();
        let spaces = settings.spaces.as_ref()?;
        if settings.alphabet == Alphabet::Bytes || settings.ignore_merges || drops_characters(model)
        {
            return None;
        }
        let mut buffer = [0; 4];
        let space = spaces.space.encode_utf8(&mut buffer);
        let vocabulary = model.vocabulary();
        vocabulary.id(space.as_bytes())?;
        let mut joined = FxHashSet::default();
        for &(left, right, _) in model.merges() {
            let (left, right) = (vocabulary.token(left)?, vocabulary.token(right)?);
            // The characters of such a token are not those of the text that it replaces.
            if is_substitute(model, left) || is_substitute(model, right) {
                return None;
            }
            if right.starts_with(space.as_bytes()) {
                joined.insert(left[last_character(left)..].to_vec());
            }
        }
        Some(Self {
            space: space.to_owned(),
            joined,
        })
    }

    /// Calls `part` with each part of a range of a text until it returns false. Returns its last result.
    pub fn cut(
        &self,
        text: &[u8],
        range: Range<usize>,
        part: &mut dyn FnMut(Range<usize>) -> bool,
    ) -> bool {
        let mut start = range.start;
        let found = memchr::memmem::find_iter(&text[range.clone()], &self.space);
        for at in found
            .map(|at| range.start + at)
            .filter(|&at| at > range.start)
        {
            let before = &text[start..at];
            if !self.joined.contains(&before[last_character(before)..]) {
                if !part(start..at) {
                    return false;
                }
                start = at;
            }
        }
        part(start..range.end)
    }
}

/// Whether the model leaves out unknown characters. Then two characters with unknown ones between them are neighbours.
fn drops_characters(model: &Model) -> bool {
    let settings = model.settings();
    let has_token = |byte: u8| {
        let token = format!("<0x{byte:02X}>");
        model.vocabulary().id(token.as_bytes()).is_some()
    };
    matches!(settings.unknown, Unknown::Dropped)
        && !(settings.byte_fallback && (0..=u8::MAX).all(has_token))
}

/// Whether a token replaces other text: the unknown token, or a byte token.
fn is_substitute(model: &Model, token: &[u8]) -> bool {
    let settings = model.settings();
    let is_unknown = match settings.unknown {
        Unknown::Token { id, .. } => model.vocabulary().token(id) == Some(token),
        _ => false,
    };
    is_unknown || settings.byte_fallback && fallback_byte(token).is_some()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{Settings, Spaces, Strip};

    fn split_points(tokens: &[&str], merges: &[(&str, &str)]) -> Option<MetaspaceSplitPoints> {
        split_points_with(tokens, merges, Unknown::Gap)
    }

    fn split_points_with(
        tokens: &[&str],
        merges: &[(&str, &str)],
        unknown: Unknown,
    ) -> Option<MetaspaceSplitPoints> {
        let settings = Settings {
            alphabet: Alphabet::Characters,
            byte_fallback: true,
            unknown,
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
        MetaspaceSplitPoints::new(&model.unwrap())
    }

    fn split(points: &MetaspaceSplitPoints, text: &str) -> String {
        let mut parts = Vec::new();
        points.cut(text.as_bytes(), 0..text.len(), &mut |range| {
            parts.push(&text[range]);
            true
        });
        parts.join("|")
    }

    #[test]
    fn parts_end_where_no_merge_joins() {
        let merges = [("▁", "▁"), ("é", "▁"), ("▁", "a")];
        let points = split_points(&["a", "é", "▁", "▁▁", "é▁", "▁a"], &merges).unwrap();
        assert_eq!(split(&points, "▁a▁a▁▁aé▁a"), "▁a|▁a|▁▁aé▁a");
    }

    #[test]
    fn left_out_characters_rule_splits_out() {
        let bytes: Vec<String> = (0..=255).map(|byte| format!("<0x{byte:02X}>")).collect();
        let mut tokens = vec!["▁", "▁▁"];
        tokens.extend(bytes.iter().map(String::as_str));
        let merges = [("▁", "▁")];
        assert!(split_points_with(&tokens, &merges, Unknown::Dropped).is_some());
        assert!(split_points_with(&tokens[..257], &merges, Unknown::Dropped).is_none());
        assert!(split_points_with(&tokens[..257], &merges, Unknown::Gap).is_some());
    }

    #[test]
    fn a_substitute_in_a_merge_rules_splits_out() {
        assert!(split_points(&["▁", "<0x0A>", "<0x0A>▁"], &[("<0x0A>", "▁")]).is_none());
        assert!(split_points(&["a", "b", "ab"], &[("a", "b")]).is_none()); // no space character
    }
}
