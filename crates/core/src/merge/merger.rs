//! Piece to ids: the one entry to the merges.

use super::char_split_points::CharSplitPoints;
use super::long::{merge_long, merge_symbols};
use super::symbols::Symbols;
use crate::error::Result;
use crate::interrupt::Interrupt;
use crate::model::{Model, TokenHash, NONE};
use crate::pair_table::PairTable;
use crate::reserve::{reserve, with_capacity};
use crate::threads::made_once;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};

/// Computing the split points takes as long as merging one byte of non-ASCII pieces for each merge. With few merges, it
/// takes as long as merging so many bytes.
const MIN_SPLIT_POINTS_COST: usize = 1 << 13;

/// Turns pieces into ids with the merges of one model. Threads may share it.
pub struct Merger {
    pub(super) model: Model,
    pub(super) symbols: Symbols,
    pub(super) table: Arc<PairTable>,
    /// Computed when it pays. The inner `None` is a model without split points.
    split_points: OnceLock<Option<CharSplitPoints>>,
    /// The bytes of the non-ASCII pieces before the split points were computed.
    non_ascii_bytes: AtomicUsize,
    /// How many pieces were looked up among the tokens that merging may not make.
    searches: AtomicUsize,
}

impl Merger {
    /// Builds the tables of a model.
    pub fn new(model: &Model) -> Self {
        Self {
            symbols: Symbols::new(model),
            table: model.pair_table(),
            split_points: OnceLock::new(),
            non_ascii_bytes: AtomicUsize::new(0),
            searches: AtomicUsize::new(0),
            model: model.clone(),
        }
    }

    /// Where a piece can be split without a change of its ids. None for ASCII, which splits nowhere, and
    /// until computing the split points pays.
    pub fn split_points(&self, piece: &[u8]) -> Option<&CharSplitPoints> {
        if piece.is_ascii() {
            return None;
        }
        if let Some(known) = self.split_points.get() {
            return known.as_ref();
        }
        let cost = self.model.merges().len().max(MIN_SPLIT_POINTS_COST);
        let before = self
            .non_ascii_bytes
            .fetch_add(piece.len(), Ordering::Relaxed);
        // One thread computes them, and no other waits for it: after a fork, the child does not have that thread.
        let pays = before < cost && before + piece.len() >= cost;
        pays.then(|| self.compute_split_points())?.as_ref()
    }

    /// Computes the split points, unless they are known.
    pub fn compute_split_points(&self) -> &Option<CharSplitPoints> {
        made_once(&self.split_points, || {
            let ignores_merges = self.model.settings().ignore_merges;
            CharSplitPoints::new(&self.model, ignores_merges && !self.model.merges_make_all())
        })
    }

    /// The token that a whole piece is, if merging may give other ids or takes longer.
    pub fn whole_token(&self, piece: &[u8]) -> Option<u32> {
        self.token_of(piece, self.token_hash(piece)?)
    }

    /// The hash of a piece that [`Merger::whole_token`] looks up.
    pub fn token_hash(&self, piece: &[u8]) -> Option<TokenHash> {
        self.may_be_token(piece).then(|| TokenHash::of(piece))
    }

    /// Prefetches what [`Merger::encode_hashed`] reads first.
    pub fn prefetch(&self, hash: TokenHash) {
        self.model.vocabulary().prefetch(hash);
    }

    /// Prefetches what [`Merger::encode_hashed`] reads after that.
    pub fn prefetch_token(&self, hash: TokenHash) {
        self.model.vocabulary().prefetch_entry(hash);
    }

    /// Whether [`Merger::whole_token`] looks a piece up.
    fn may_be_token(&self, piece: &[u8]) -> bool {
        let ignores_merges = self.model.settings().ignore_merges;
        if ignores_merges || self.model.merges_make_all() {
            // Four in ten new pieces of English and code are tokens, but few in other scripts.
            return piece.is_ascii() || ignores_merges && self.may_be_unmerged(piece);
        }
        false
    }

    /// Whether a piece that is not ASCII may be a token that merging does not make.
    fn may_be_unmerged(&self, piece: &[u8]) -> bool {
        if self.model.merges_make_all() {
            return false;
        }
        let Some(points) = self.split_points.get().and_then(Option::as_ref) else {
            return true;
        };
        if !points.may_be_unmerged(piece) {
            return false;
        }
        // To find out which tokens merging makes takes as long as to look a piece up for each merge. One thread does.
        let merges = self.model.merges().len();
        let has_paid = self.searches.load(Ordering::Relaxed) > merges;
        if !has_paid && self.searches.fetch_add(1, Ordering::Relaxed) == merges {
            if let Some(mut unmerged) = self.unreachable_tokens() {
                // No piece is taken for a special token.
                unmerged.retain(|&id| !self.model.is_special(id));
                points.keep_unmerged(&self.model, &unmerged);
            }
            return points.may_be_unmerged(piece);
        }
        true
    }

    /// The token that a whole piece is, if the model asks for it (`ignore_merges`).
    pub(super) fn unmerged_token(&self, piece: &[u8]) -> Option<u32> {
        let asks = self.model.settings().ignore_merges;
        asks.then(|| self.token_of(piece, TokenHash::of(piece)))
            .flatten()
    }

    /// The token of these bytes. Never a special token: no text becomes one by chance.
    pub fn token_of(&self, piece: &[u8], hash: TokenHash) -> Option<u32> {
        let id = self.model.vocabulary().id_of(piece, hash)?;
        (!self.model.is_special(id)).then_some(id)
    }

    /// Appends the ids of a piece.
    pub fn encode(
        &self,
        piece: &[u8],
        ids: &mut Vec<u32>,
        interrupt: &Interrupt<'_>,
    ) -> Result<()> {
        self.encode_hashed(piece, self.token_hash(piece), ids, interrupt)
    }

    /// As [`Merger::encode`], with [`Merger::token_hash`] of the piece.
    pub fn encode_hashed(
        &self,
        piece: &[u8],
        hash: Option<TokenHash>,
        ids: &mut Vec<u32>,
        interrupt: &Interrupt<'_>,
    ) -> Result<()> {
        match hash.and_then(|hash| self.token_of(piece, hash)) {
            Some(id) => {
                ids.push(id);
                Ok(())
            }
            None => self.merge(piece, ids, interrupt),
        }
    }

    /// Appends the ids that merging makes of a piece, or of a part of one.
    pub fn merge(&self, piece: &[u8], ids: &mut Vec<u32>, interrupt: &Interrupt<'_>) -> Result<()> {
        let start = ids.len();
        reserve(ids, piece.len())?;
        if self.symbols.are_bytes() {
            ids.extend(piece.iter().map(|&byte| self.symbols.single(byte)));
        } else {
            self.symbols
                .for_each(&self.model, piece, |id, _| ids.push(id));
        }
        let length = merge_symbols(&self.table, &mut ids[start..], interrupt)?;
        ids.truncate(start + length);
        if ids[start..].contains(&NONE) {
            let mut kept = start;
            for at in start..ids.len() {
                ids[kept] = ids[at];
                kept += usize::from(ids[at] != NONE);
            }
            ids.truncate(kept);
        }
        Ok(())
    }

    /// Appends each id of a piece with the number of bytes that it covers. A gap is [`NONE`].
    pub fn encode_with_widths(
        &self,
        piece: &[u8],
        tokens: &mut Vec<(u32, usize)>,
        interrupt: &Interrupt<'_>,
    ) -> Result<()> {
        if let Some(id) = self.whole_token(piece) {
            tokens.push((id, piece.len()));
            return Ok(());
        }
        let (mut ids, mut bounds) = (with_capacity(piece.len())?, with_capacity(piece.len() + 1)?);
        bounds.push(0);
        self.symbols.for_each(&self.model, piece, |id, width| {
            bounds.push(bounds[ids.len()] + width);
            ids.push(id);
        });
        let merged = merge_long(&self.table, &ids, interrupt)?;
        reserve(tokens, merged.len())?;
        let mut ends = merged[1.min(merged.len())..].iter();
        tokens.extend(merged.iter().map(|token| {
            let end = ends.next().map_or(ids.len(), |next| next.start as usize);
            (token.id, bounds[end] - bounds[token.start as usize])
        }));
        Ok(())
    }

    /// Whether every token covers exactly its own bytes, so that [`Merger::width`] is its width.
    pub fn widths_follow_from_ids(&self) -> bool {
        self.symbols.are_bytes()
    }

    /// The number of bytes of a token.
    pub fn width(&self, id: u32) -> usize {
        self.model.vocabulary().token(id).map_or(0, <[u8]>::len)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{Alphabet, Settings, Unknown};
    use crate::special::AddedToken;

    /// A merger of tokens with the ids from 0 on. Its only merge, if any, joins `a` and `b`.
    fn merger(tokens: &[&[u8]], settings: Settings) -> Merger {
        let tokens: Vec<_> = (0..)
            .zip(tokens.iter().map(|token| token.to_vec()))
            .collect();
        let merges = [(b"a".to_vec(), b"b".to_vec())];
        let joins = tokens.iter().any(|(_, token)| token == b"ab");
        let merges = &merges[..usize::from(joins)];
        let added = tokens.iter().filter(|(_, token)| token == b"<s>");
        let added = added
            .map(|(id, _)| AddedToken::special("<s>", *id))
            .collect();
        Merger::new(&Model::new(tokens, Some(merges), settings, added).unwrap())
    }

    fn bytes_and<'a>(bytes: &'a [[u8; 1]], tokens: &[&'a [u8]]) -> Vec<&'a [u8]> {
        let bytes = bytes.iter().map(|byte| &byte[..]);
        bytes.chain(tokens.iter().copied()).collect()
    }

    fn all_bytes() -> Vec<[u8; 1]> {
        (0..=255).map(|byte| [byte]).collect()
    }

    fn encoded(merger: &Merger, piece: &[u8]) -> (Vec<u32>, Vec<(u32, usize)>) {
        let (mut ids, mut tokens) = (Vec::new(), Vec::new());
        let never = Interrupt::never();
        merger.encode(piece, &mut ids, &never).unwrap();
        merger
            .encode_with_widths(piece, &mut tokens, &never)
            .unwrap();
        (ids, tokens)
    }

    #[test]
    fn a_piece_that_is_a_token_need_not_be_merged() {
        let bytes = all_bytes();
        let (a, b, c, ab, abc) = (97, 98, 99, 256, 257);
        let tokens = bytes_and(&bytes, &[b"ab", b"abc", b"<s>", "龙".as_bytes()]);
        for (ignore_merges, expected) in [(true, vec![(abc, 3)]), (false, vec![(ab, 2), (c, 1)])] {
            let settings = Settings {
                ignore_merges,
                ..Settings::default()
            };
            let merger = merger(&tokens, settings);
            for _ in 0..2 {
                let (ids, widths) = encoded(&merger, b"abc");
                assert_eq!(widths, expected);
                assert!(ids.iter().eq(widths.iter().map(|(id, _)| id)));
                assert_eq!(encoded(&merger, b"cba").1, [(c, 1), (b, 1), (a, 1)]);
                // Text never becomes a special token.
                assert_eq!(encoded(&merger, b"<s>").0, [60, 115, 62]);
                let split_points = merger.compute_split_points().as_ref().unwrap();
                assert_eq!(split_points.parts_are_pieces(), !ignore_merges);
            }
        }
    }

    #[test]
    fn the_tokens_that_merging_makes_are_found_when_it_pays() {
        let (made, not_made) = ("é".as_bytes(), "龙".as_bytes());
        let merges = [(vec![made[0]], vec![made[1]])];
        let settings = Settings {
            ignore_merges: true,
            ..Settings::default()
        };
        for makes_all in [true, false] {
            let mut tokens: Vec<_> = (0..=255).map(|byte| vec![byte]).collect();
            tokens.extend([made.to_vec(), b"<s>".to_vec()]);
            tokens.extend((!makes_all).then(|| not_made.to_vec()));
            let added = vec![AddedToken::special("<s>", 257)];
            let tokens = (0..).zip(tokens).collect();
            let model = Model::new(tokens, Some(&merges), settings.clone(), added).unwrap();
            let merger = Merger::new(&model);
            assert!(merger.may_be_unmerged("шш".as_bytes()));
            let points = merger.compute_split_points().as_ref().unwrap();
            assert!(!merger.may_be_unmerged("шш".as_bytes())); // no token begins so
            assert!(merger.may_be_unmerged(made) && !points.parts_are_pieces());
            assert!(!merger.may_be_unmerged(made)); // after as many searches as there are merges
            assert_eq!(merger.may_be_unmerged(not_made), !makes_all);
            assert_eq!(points.parts_are_pieces(), makes_all);
            assert_eq!(encoded(&merger, made), (vec![256], vec![(256, 2)]));
            let expected = if makes_all {
                vec![(0xe9, 1), (0xbe, 1), (0x99, 1)]
            } else {
                vec![(258, 3)]
            };
            assert_eq!(encoded(&merger, not_made).1, expected);
        }
    }

    #[test]
    fn split_points_are_computed_when_they_pay() {
        let merger = merger(&bytes_and(&all_bytes(), &[b"ab"]), Settings::default());
        let piece = "é".repeat(50);
        for _ in 0..(MIN_SPLIT_POINTS_COST - 1) / piece.len() {
            assert!(merger.split_points(b"ascii").is_none());
            assert!(merger.split_points(piece.as_bytes()).is_none());
        }
        assert!(merger.split_points(piece.as_bytes()).is_some());
        assert!(merger.split_points("é".as_bytes()).is_some());
        assert!(merger.split_points(b"ascii").is_none());
    }

    #[test]
    fn every_token_has_the_width_of_what_it_replaces() {
        let (a, b, ab, e, unknown) = (0, 1, 2, 3, 4);
        let characters: [&[u8]; 5] = [b"a", b"b", b"ab", "é".as_bytes(), b"<unk>"];
        let tokens = |unknown, byte_fallback, piece: &str| {
            let settings = Settings {
                alphabet: Alphabet::Characters,
                unknown,
                byte_fallback,
                ..Settings::default()
            };
            let byte_tokens: [&[u8]; 3] = [b"<0xC3>", b"<0x9F>", b"<0x7A>"];
            let merger = merger(&[&characters[..], &byte_tokens].concat(), settings);
            assert!(!merger.widths_follow_from_ids());
            let (ids, tokens) = encoded(&merger, piece.as_bytes());
            let known = tokens.iter().map(|&(id, _)| id).filter(|&id| id != NONE);
            assert!(ids.into_iter().eq(known), "{piece}");
            tokens
        };
        let fused = |fuse| Unknown::Token { id: unknown, fuse };
        let (text, gap) = ("abé龙xaxb", NONE);
        assert_eq!(
            tokens(fused(true), false, text),
            [(ab, 2), (e, 2), (unknown, 4), (a, 1), (unknown, 1), (b, 1)]
        );
        assert_eq!(
            tokens(fused(false), false, text),
            [
                (ab, 2),
                (e, 2),
                (unknown, 3),
                (unknown, 1),
                (a, 1),
                (unknown, 1),
                (b, 1)
            ]
        );
        assert_eq!(
            tokens(Unknown::Gap, false, text),
            [
                (ab, 2),
                (e, 2),
                (gap, 3),
                (gap, 1),
                (a, 1),
                (gap, 1),
                (b, 1)
            ]
        );
        let dropped = tokens(Unknown::Dropped, false, text);
        assert_eq!(
            dropped.iter().map(|token| token.0).collect::<Vec<_>>(),
            [ab, e, ab]
        );
        // Of the bytes of "龙", none has a token. Those of "ß" and "z" have one.
        assert_eq!(
            tokens(fused(true), true, "aß龙zb"),
            [(a, 1), (5, 1), (6, 1), (7, 1), (unknown, 3), (b, 1)]
        );
    }

    #[test]
    fn widths_follow_from_ids_where_each_byte_has_a_token() {
        let bytes = all_bytes();
        let whole = merger(&bytes_and(&bytes, &[b"ab"]), Settings::default());
        assert!(whole.widths_follow_from_ids());
        assert_eq!(
            [whole.width(256), whole.width(97), whole.width(1000)],
            [2, 1, 0]
        );
        // Without a token for "z", its neighbours merge.
        let bytes: Vec<_> = bytes.into_iter().filter(|byte| byte != b"z").collect();
        let partial = merger(&bytes_and(&bytes, &[b"ab"]), Settings::default());
        assert!(!partial.widths_follow_from_ids());
        assert_eq!(encoded(&partial, b"azbz").0, [255]);
    }
}
