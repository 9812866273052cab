//! Learning merges from distinct pieces and their counts: a pair-count index with lazy deletion.
//!
//! Byte-pair encoding (Sennrich, Haddow and Birch 2016, <https://arxiv.org/abs/1508.07909>) merges the most
//! frequent adjacent pair of symbols into a new symbol, and repeats. A merge recounts nothing: the index holds
//! the count and the positions of every pair, and a merge updates the pairs next to its occurrences.
//!
//! All pieces are in one array with a slot per byte (`Pieces`). Deletion is lazy in two places. A position
//! that a later merge destroyed stays in its list; it is skipped when the pair is merged. A candidate whose
//! count has dropped stays on the heap; when it reaches the top, it is pushed again with its current count.
//!
//! # Every token is made once
//!
//! Claim: when training starts from bytes, all occurrences of a string that ever become one symbol do so in
//! the same step and by the same pair. Proof: take two occurrences that end as one symbol. No merge ever
//! crossed an end of either, or the string would not have become a symbol there. So both hold the same symbols
//! after every step. A merge of two different symbols replaces all occurrences inside both. A merge of a
//! symbol with itself pairs a run of equal symbols from the left; no pair crosses the left end, so the pairing
//! starts at the same place in both.
//!
//! Consequences:
//!
//! * A product is always a new token.
//! * A pair is formed only in the step that makes its younger symbol. Afterwards its count never grows.
//! * A merged pair never occurs again.
//!
//! Therefore the positions of a pair ascend, a pair is on the heap once, and a pair that becomes too rare can
//! be forgotten.
//!
//! # Warm starts
//!
//! Resuming: no merge makes a pair that an earlier merge joins, because its product is new. So encoding the
//! pieces with the first n merges (always the first applicable merge, at its leftmost position) gives the
//! pieces after n steps of training. Counting their pairs restores the index: what the index of the
//! uninterrupted run has forgotten can never be merged.
//!
//! Extending a vocabulary: its merges may be in any order, and each piece starts as its encoding. If no merge
//! crosses the ends of a stretch of a piece, the stretch is encoded as if it were alone. So the proof above
//! holds here too: two occurrences of a string that end as one symbol hold the same symbols after encoding,
//! and after every later step. Hence no new token is made twice, and none has the bytes of a token that
//! encoding makes of them. But a vocabulary may have tokens that merging never makes ([`unreachable_tokens`]), and
//! merging never makes added tokens. A pair whose product has such bytes is never merged anywhere, so both
//! occurrences still hold the same symbols.
//!
//! With `ignore_merges`, a piece that is a token is one symbol and has no pair. A piece with the bytes of a new
//! token becomes that token by merging, as any other occurrence.
//!
//! The new merges follow those of the vocabulary, whose merges never apply to a new symbol. So encoding with
//! all merges repeats what training did, and gives the symbols that training ended with.
//!
//! # Hugging Face's order
//!
//! For the same reason [`TieBreak::HuggingFace`] only concerns ties. `BpeTrainer` of Hugging Face `tokenizers`
//! 0.23 (`src/models/bpe/trainer.rs`, `word.rs`) does not update the count of a pair that it merges, pushes the
//! positions of each step separately, and checks whether the product is already a token. All that would matter
//! only for a pair that is formed twice, which never happens. It differs in:
//!
//! * counts: signed 32-bit numbers that wrap; ours are checked 64-bit numbers;
//! * `max_token_length`: it is exclusive, and pairs of two bytes are exempt; ours is inclusive without
//!   exemption. Our `n` is its `n + 1`, for `n` of 2 and more;
//! * special tokens: it maps a product with the text of a special token (in printable characters) to that
//!   token; we do not know the special tokens here.
//!
//! [`unreachable_tokens`]: crate::merge::Merger::unreachable_tokens

mod candidates;
mod learned;
mod options;
mod pair_counts;
mod pieces;
mod seed;

pub use learned::Learned;
pub use options::{Callbacks, MergeOptions, MergeParts, TieBreak, WarmStart};

use crate::error::{Error, Result};
use crate::interrupt::{Interrupt, Poller};
use crate::model::Model;
use crate::reserve::{push, reserve_entry};
use crate::train::checked_sum;
use candidates::{Candidate, Candidates};
use pair_counts::count_pairs;
use pieces::{Pieces, MAX_SLOTS, TAIL};
use rustc_hash::FxHashMap;
use seed::{Pair, ReservedTokens, Seed};
use std::collections::hash_map::Entry;
use std::collections::BTreeSet;
use std::ops::Range;
use std::time::{Duration, Instant};

/// Prefetch distance: the slots of an occurrence are fetched this many merges ahead.
const PREFETCH_AHEAD: usize = 8;
/// Learned tokens between two reports of progress.
const PROGRESS_INTERVAL: usize = 100;

/// Learns merges from distinct pieces and their counts.
///
/// The most frequent adjacent pair of symbols becomes a token with the next free id and replaces its
/// occurrences from left to right. Overlapping occurrences count: `aaa` holds `a`, `a` twice. This repeats until
/// every id is used, no pair is left, or the best pair is rarer than `min_frequency`. The order of the pieces
/// does not matter. Without a vocabulary to extend, ids 0 to 255 are the bytes.
///
/// # Errors
///
/// [`Error::CountOverflow`] if a pair's count exceeds 64 bits, [`Error::Option`] if the pieces or the
/// vocabulary are too large or a merge of the warm start is impossible, [`Error::Model`] if the vocabulary to
/// extend is not byte-level, [`Error::Interrupted`].
pub fn train_merges<'a>(
    pieces: impl Iterator<Item = (&'a [u8], u64)>,
    warm_start: &WarmStart<'_>,
    options: &MergeOptions,
    interrupt: &Interrupt<'_>,
    callbacks: &mut Callbacks<'_>,
) -> Result<Learned> {
    let ids = FreeIds::of(warm_start, options)?;
    let mut saves = Saves::new(warm_start.merges.len(), callbacks);
    let seed = Seed::new(warm_start.model, warm_start.merges, options)?;
    let pieces = Pieces::lay_out(pieces, &seed, MAX_SLOTS, options.threads, interrupt)?;
    let mut trainer = Trainer::new(seed, pieces, options, interrupt);
    if trainer.merges.len() < ids.len() {
        trainer.count(options.threads, interrupt)?;
    }
    trainer.run(ids.len(), &mut saves, interrupt, callbacks)?;
    Ok(trainer.into_learned(&ids))
}

/// The state of a training run. Symbols are numbered as in the seed, then by age.
struct Trainer<'a> {
    pieces: Pieces,
    /// The bytes of each symbol.
    tokens: Vec<Box<[u8]>>,
    /// The ids of the seed's symbols that no merge of this training makes.
    ids: Vec<u32>,
    reserved: ReservedTokens<'a>,
    /// Every pair that is frequent and short enough to be merged.
    pairs: FxHashMap<Pair, PairStats>,
    candidates: Candidates,
    /// Changes of the pairs on the left and on the right of the merged pair.
    left_changes: Changes,
    right_changes: Changes,
    merges: Vec<Pair>,
    min_frequency: u64,
    max_length: usize,
    poller: Poller<'a>,
}

/// Which merges a run has saved, and when.
struct Saves {
    merges: usize,
    /// None without checkpoints: WebAssembly has no clock, and no checkpoints.
    at: Option<Instant>,
}

impl Saves {
    fn new(merges: usize, callbacks: &Callbacks<'_>) -> Self {
        let at = callbacks.checkpoint.is_some().then(Instant::now);
        Self { merges, at }
    }
}

impl<'a> Trainer<'a> {
    fn new(
        seed: Seed<'a>,
        pieces: Pieces,
        options: &MergeOptions,
        interrupt: &'a Interrupt<'a>,
    ) -> Self {
        let symbols = seed.tokens.len();
        Self {
            pieces,
            tokens: seed.tokens,
            ids: seed.ids,
            reserved: seed.reserved,
            pairs: FxHashMap::default(),
            candidates: Candidates::new(options.tie_break),
            left_changes: Changes::new(symbols),
            right_changes: Changes::new(symbols),
            merges: seed.merges,
            min_frequency: options.min_frequency.max(1),
            max_length: options.max_token_length.unwrap_or(usize::MAX),
            poller: Poller::new(interrupt),
        }
    }

    /// Fills the index with the pairs of the seed's symbols.
    fn count(&mut self, threads: usize, interrupt: &Interrupt<'_>) -> Result<()> {
        let (min_frequency, max_length) = (self.min_frequency, self.max_length);
        let shares = count_pairs(&self.pieces, min_frequency, max_length, threads, interrupt)?;
        for (pair, count, positions) in shares.into_iter().flatten() {
            self.poller.advance(1)?;
            self.insert(pair, count, positions)?;
        }
        Ok(())
    }

    /// Adds a pair to the index and the heap if it can be merged.
    fn insert(&mut self, pair: Pair, count: u64, positions: Vec<u32>) -> Result<()> {
        let length = self.pieces.length(pair.left) + self.pieces.length(pair.right);
        if count >= self.min_frequency && length <= self.max_length {
            let occurrences = positions.into();
            reserve_entry(&mut self.pairs)?;
            self.pairs.insert(pair, PairStats { count, occurrences });
            self.candidates.push(pair, count, &self.tokens)?;
        }
        Ok(())
    }

    /// Merges until `wanted` tokens are learned or no pair is left.
    fn run(
        &mut self,
        wanted: usize,
        saves: &mut Saves,
        interrupt: &Interrupt<'_>,
        callbacks: &mut Callbacks<'_>,
    ) -> Result<()> {
        while self.merges.len() < wanted {
            let Some(count) = self.merge_best()? else {
                break;
            };
            if let Some(merged) = &mut callbacks.merged {
                merged(count);
            }
            if self.merges.len().is_multiple_of(PROGRESS_INTERVAL) {
                (callbacks.progress)(self.merges.len(), wanted);
            }
            if let Some(checkpoint) = &mut callbacks.checkpoint {
                let elapsed = saves.at.map_or(Duration::ZERO, |at| at.elapsed());
                if elapsed >= callbacks.checkpoint_interval {
                    checkpoint(&self.merges_from(saves.merges));
                    interrupt.poll()?;
                    (saves.merges, saves.at) = (self.merges.len(), Some(Instant::now()));
                }
            }
        }
        (callbacks.progress)(self.merges.len(), wanted);
        Ok(())
    }

    /// The parts of the merges from index `first` on.
    fn merges_from(&self, first: usize) -> Vec<MergeParts<'_>> {
        let bytes = |symbol: u32| &*self.tokens[symbol as usize];
        let merges = self.merges[first..].iter();
        merges
            .map(|pair| (bytes(pair.left), bytes(pair.right)))
            .collect()
    }

    /// Merges the best pair. Returns its count, or None if no pair is left.
    fn merge_best(&mut self) -> Result<Option<u64>> {
        while let Some(Candidate { pair, count, .. }) = self.candidates.pop(&self.tokens) {
            self.poller.advance(1)?;
            let Entry::Occupied(stats) = self.pairs.entry(pair) else {
                continue;
            };
            let current = stats.get().count;
            if current < count {
                self.candidates.push(pair, current, &self.tokens)?;
                continue;
            }
            let occurrences = stats.remove().occurrences;
            let bytes = |symbol: u32| &*self.tokens[symbol as usize];
            let product = [bytes(pair.left), bytes(pair.right)].concat();
            if !self.reserved.contains(&product) {
                self.merge(pair, product, occurrences.as_slice())?;
                return Ok(Some(current));
            }
        }
        Ok(None)
    }

    /// Replaces all occurrences of a pair by a new symbol.
    fn merge(&mut self, pair: Pair, bytes: Vec<u8>, occurrences: &[u32]) -> Result<()> {
        let product = self.tokens.len() as u32;
        self.pieces.lengths.push(bytes.len() as u32);
        self.tokens.push(bytes.into());
        self.left_changes.add_symbol();
        self.right_changes.add_symbol();
        self.merges.push(pair);
        for (index, &position) in occurrences.iter().enumerate() {
            self.poller.advance(1)?;
            if let Some(&later) = occurrences.get(index + PREFETCH_AHEAD) {
                self.pieces.prefetch(later);
            }
            if self.pieces.holds(pair, position) {
                self.merge_at(position, pair, product)?;
            }
        }
        self.update_index(pair, product)
    }

    /// Replaces one occurrence and records the changes of the pairs next to it.
    fn merge_at(&mut self, position: u32, pair: Pair, product: u32) -> Result<()> {
        let count = self.pieces.count_at(position);
        self.pieces.replace(pair, product, position);
        if let Some((start, neighbour)) = self.pieces.before(position) {
            if neighbour == product {
                // The previous occurrence ends here and recorded `pair.left` as its right neighbour.
                self.right_changes.unform(pair.left, count);
            } else {
                self.left_changes.lose(neighbour, count)?;
            }
            self.left_changes.form(neighbour, count, start)?;
        }
        if let Some(neighbour) = self.pieces.after(position) {
            self.right_changes.lose(neighbour, count)?;
            self.right_changes.form(neighbour, count, position)?;
        }
        Ok(())
    }

    /// Applies the changes of a merge to the index and the heap.
    fn update_index(&mut self, merged: Pair, product: u32) -> Result<()> {
        for change in self.left_changes.take() {
            let pair = |right| Pair {
                left: change.neighbour,
                right,
            };
            self.subtract(pair(merged.left), change.lost);
            self.insert(pair(product), change.formed, change.positions)?;
        }
        for change in self.right_changes.take() {
            let pair = |left| Pair {
                left,
                right: change.neighbour,
            };
            self.subtract(pair(merged.right), change.lost);
            self.insert(pair(product), change.formed, change.positions)?;
        }
        Ok(())
    }

    /// Lowers the count of a pair. Forgets a pair that is now too rare: its count never grows again.
    fn subtract(&mut self, pair: Pair, count: u64) {
        if let Some(stats) = self.pairs.get_mut(&pair) {
            stats.count -= count;
            if stats.count < self.min_frequency {
                self.pairs.remove(&pair);
            }
        }
    }

    /// The result, with ids instead of symbols.
    fn into_learned(self, free: &FreeIds) -> Learned {
        let learned: Vec<u32> = free.iter().take(self.merges.len()).collect();
        let ids = [&self.ids[..], &learned].concat();
        let id = |symbol: u32| ids[symbol as usize];
        let merges = self.merges.iter().zip(&learned);
        let merges = merges.map(|(pair, &product)| (id(pair.left), id(pair.right), product));
        let tokens = self.tokens[self.ids.len()..].iter();
        let tokens = learned.iter().zip(tokens);
        Learned {
            merges: merges.collect(),
            tokens: tokens.map(|(&id, bytes)| (id, bytes.to_vec())).collect(),
        }
    }
}

/// The count of a pair, and the positions at which it was formed.
struct PairStats {
    count: u64,
    occurrences: Occurrences,
}

/// Ascending positions. A third smaller than a `Vec`, and without an allocation for one position: most
/// pairs are rare.
enum Occurrences {
    One(u32),
    Many(Box<[u32]>),
}

impl From<Vec<u32>> for Occurrences {
    fn from(positions: Vec<u32>) -> Self {
        match positions[..] {
            [position] => Self::One(position),
            _ => Self::Many(positions.into_boxed_slice()),
        }
    }
}

impl Occurrences {
    fn as_slice(&self) -> &[u32] {
        match self {
            Self::One(position) => std::slice::from_ref(position),
            Self::Many(positions) => positions,
        }
    }
}

/// The changes of the pairs that one neighbour is in.
struct Change {
    neighbour: u32,
    /// Count that its pair with the merged symbol loses.
    lost: u64,
    /// Count of its pair with the product, and the positions.
    formed: u64,
    positions: Vec<u32>,
}

/// The changes on one side of the merged pair, by neighbour.
struct Changes {
    list: Vec<Change>,
    /// For each symbol, the index of its change in the list.
    index: Vec<u32>,
}

impl Changes {
    const NONE: u32 = u32::MAX;

    fn new(symbols: usize) -> Self {
        Self {
            list: Vec::new(),
            index: vec![Self::NONE; symbols],
        }
    }

    /// Makes room for one more symbol.
    fn add_symbol(&mut self) {
        self.index.push(Self::NONE);
    }

    fn of(&mut self, neighbour: u32) -> &mut Change {
        let index = &mut self.index[neighbour as usize];
        if *index == Self::NONE {
            *index = self.list.len() as u32;
            self.list.push(Change {
                neighbour,
                lost: 0,
                formed: 0,
                positions: Vec::new(),
            });
        }
        &mut self.list[*index as usize]
    }

    fn lose(&mut self, neighbour: u32, count: u64) -> Result<()> {
        let change = self.of(neighbour);
        change.lost = checked_sum(change.lost, count)?;
        Ok(())
    }

    fn form(&mut self, neighbour: u32, count: u64, position: u32) -> Result<()> {
        let change = self.of(neighbour);
        change.formed = checked_sum(change.formed, count)?;
        push(&mut change.positions, position)
    }

    /// Takes the latest formation back.
    fn unform(&mut self, neighbour: u32, count: u64) {
        let change = self.of(neighbour);
        change.formed -= count;
        change.positions.pop();
    }

    /// Removes and returns all changes.
    fn take(&mut self) -> Vec<Change> {
        for change in &self.list {
            self.index[change.neighbour as usize] = Self::NONE;
        }
        std::mem::take(&mut self.list)
    }
}

/// The ids that learned tokens get, in order.
struct FreeIds {
    range: Range<u32>,
    /// The ids in the range that no learned token gets.
    reserved: BTreeSet<u32>,
}

impl FreeIds {
    /// The ids that a training gives, those of its warm start included.
    fn of(warm_start: &WarmStart<'_>, options: &MergeOptions) -> Result<Self> {
        let ids = Self::new(warm_start.model, options)?;
        if warm_start.merges.len() > ids.len() {
            return Err(Error::Option(format!(
                "the warm start has {} merges, but vocab_size {} leaves ids for {}",
                warm_start.merges.len(),
                options.vocab_size,
                ids.len()
            )));
        }
        Ok(ids)
    }

    /// The ids after the bytes, or after all ids of an extended vocabulary.
    fn new(model: Option<&Model>, options: &MergeOptions) -> Result<Self> {
        let vocab_size = options.vocab_size;
        if vocab_size >= TAIL {
            return Err(Error::Option(format!(
                "vocab_size is {vocab_size}; the largest possible is {}",
                TAIL - 1
            )));
        }
        let first = model.map_or(256, |model| {
            let last = model.vocabulary().iter().last().map(|(id, _)| id);
            let last = last.max(model.added().last().map(|token| token.id));
            last.map_or(0, |id| id.saturating_add(1))
        });
        let range = first..vocab_size;
        let reserved = options.reserved.iter().copied();
        let reserved = reserved.filter(|id| range.contains(id)).collect();
        Ok(Self { range, reserved })
    }

    fn len(&self) -> usize {
        self.range.len() - self.reserved.len()
    }

    fn iter(&self) -> impl Iterator<Item = u32> + '_ {
        self.range.clone().filter(|id| !self.reserved.contains(id))
    }
}
