//! Learning merges from distinct pieces and their counts.
//!
//! Byte-pair encoding (Sennrich, Haddow and Birch 2016, <https://arxiv.org/abs/1508.07909>) takes the
//! most frequent adjacent pair of symbols, makes it a new symbol, and repeats. Nothing is recounted for
//! a merge: every pair has its count and its occurrences, and a merge changes those around it.
//!
//! The pieces lie end to end in one array, a slot a byte, which also links their symbols ([`Pieces`]).
//! Counts and occurrences are in one hash table. An occurrence that another merge has destroyed stays
//! in its list and is recognised when its turn comes. The heap of candidates is as lazy: one whose
//! count has fallen is put back with its count of today.
//!
//! # No token is made twice
//!
//! Starting from bytes, a string becomes a symbol by one pair and in one step, wherever it does. Take
//! two places where it ends up as one symbol. No merge ever crossed an end of either place, or the
//! string would not have become a symbol there. So both hold the same symbols at every step: of two
//! different symbols, a merge replaces all occurrences inside both; a run of equal symbols is paired
//! from the left, and as no pair crosses the left end, the pairing begins anew there.
//!
//! Hence a product is always a new token; a pair is formed in one step only, that of its younger
//! symbol, after which its count never grows; and once taken it never comes back. That is why its
//! occurrences are in order, why it is on the heap once, and why a pair that is too rare is forgotten.
//!
//! # Merging that begins in the middle
//!
//! A merge never makes a pair that an earlier one joins: its product is in later pairs only. So the
//! pieces are what they were after any number of merges if they are encoded with those (always the
//! first merge that applies, at its leftmost place), and counting the pairs that there are then gives
//! what was known of them then, by the last section: all that is forgotten is what cannot be taken.
//!
//! A vocabulary that is extended comes with merges in any order, and each piece begins as what encoding
//! with them makes of it. A stretch of a piece whose ends no merge crosses is encoded as if it were alone
//! (what is next in the piece and lies in the stretch is next there), so two places where a string ends
//! up as one symbol hold the same symbols after encoding too, and after every step that follows. Hence
//! none of the new tokens is made twice, and none has the bytes of a token that encoding makes of them
//! alone. But a vocabulary may hold tokens that merging does not make of their bytes ([`unreached`]),
//! and added tokens are not made at all. A pair whose product has such bytes is never taken; as
//! it is not taken anywhere, both places still hold the same.
//!
//! With `ignore_merges`, a piece that is a token as a whole is that symbol and holds no pair. A
//! piece of a new token's bytes becomes that token by merging, as a place like any other.
//!
//! The new merges come after those of the vocabulary, whose merges never apply to a new symbol. So
//! encoding with all of them does what training did, and leaves the symbols that training ended with.
//!
//! # Hugging Face's order
//!
//! For the same reason [`TieBreak::HuggingFace`] concerns ties alone. `BpeTrainer` of Hugging Face
//! `tokenizers` 0.23 (`src/models/bpe/trainer.rs`, `word.rs`) leaves a pair's count as it was when it
//! merges it, keeps the occurrences of each step apart on its heap, and looks for a token that the
//! product may be already; a pair formed again would show all that, but there is none. It differs in:
//!
//! * counts: signed 32-bit numbers that wrap; ours are checked 64-bit numbers;
//! * `max_token_length`: exclusive, and it spares pairs of two bytes; ours is inclusive and spares
//!   none. Our `n` is its `n + 1`, for `n` of 2 and more;
//! * special tokens: a product spelt like one (in printable characters) becomes that token; here they
//!   are unknown.
//!
//! [`unreached`]: crate::merge::unreached

mod candidates;
mod changes;
mod pairs;
mod pieces;
mod start;

use crate::error::{Error, Result};
use crate::interrupt::Interrupt;
use crate::model::Model;
use candidates::{Candidate, Candidates};
use changes::Changes;
use pairs::{count_pairs, Known, Pair};
use pieces::{Pieces, MOST_SLOTS};
use rustc_hash::FxHashMap;
use start::{FreeIds, Start, Taken};
use std::collections::hash_map::Entry;
use std::time::{Duration, Instant};

/// Which pair is taken first among equally frequent ones.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TieBreak {
    /// The one with the lexicographically greatest (left bytes, right bytes).
    Largest,
    /// The one with the smallest (left, right) in the order of Hugging Face's ids: bytes by GPT-2's
    /// printable characters, then the other tokens of a vocabulary that is extended by their ids, then
    /// learned tokens by age.
    HuggingFace,
}

/// What to learn.
#[derive(Clone, Debug)]
pub struct MergeOptions {
    /// Learned tokens get the ids 256 to `vocab_size` - 1, or those behind the largest id of the
    /// vocabulary that is extended.
    pub vocab_size: u32,
    /// Ids that no learned token gets.
    pub reserved: Vec<u32>,
    /// A rarer pair is not taken.
    pub min_frequency: u64,
    /// Which pair is taken first among equally frequent ones.
    pub tie_break: TieBreak,
    /// The most bytes that a learned token may have.
    pub max_token_length: Option<usize>,
    /// How many threads prepare the pieces; 0: as many as there are processors. It never shows.
    pub threads: usize,
}

/// What merging begins with; by default, bytes.
#[derive(Clone, Copy, Debug, Default)]
pub struct Beginning<'a> {
    /// A vocabulary to be extended: a piece begins as the tokens that it is encoded as.
    pub model: Option<&'a Model>,
    /// Merges that a run with the same pieces, model and options learned before it was interrupted,
    /// oldest first: what is learned is what it would have learned.
    pub merges: &'a [(Vec<u8>, Vec<u8>)],
}

/// The parts of a merge, as bytes.
pub type Parts<'a> = (&'a [u8], &'a [u8]);

/// Takes merges to where they outlast the run.
pub type Save<'a> = &'a mut dyn FnMut(&[Parts<'_>]);

/// Who is told how learning goes on.
pub struct Report<'a> {
    /// Called now and then with the number of tokens learned and the number wanted.
    pub progress: &'a mut dyn FnMut(usize, usize),
    /// Called with the merges that were learned since it was called last, oldest first.
    pub checkpoint: Option<Save<'a>>,
    /// How long it works between two such calls.
    pub checkpoint_every: Duration,
}

impl<'a> Report<'a> {
    /// Progress only.
    pub fn progress(progress: &'a mut dyn FnMut(usize, usize)) -> Self {
        Self {
            progress,
            checkpoint: None,
            checkpoint_every: Duration::MAX,
        }
    }
}

/// What was learned.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Learned {
    /// Id and bytes of each learned token, oldest first.
    pub tokens: Vec<(u32, Vec<u8>)>,
    /// Ids of left part, right part and product of each merge, one for each learned token.
    pub merges: Vec<(u32, u32, u32)>,
}

/// Learns merges from distinct pieces and how often each occurs.
///
/// The most frequent adjacent pair of symbols (overlapping occurrences count: `aaa` holds `a`, `a`
/// twice) becomes a token with the next free id and replaces its occurrences from left to right, until
/// every id is used, no pair is left, or the best is rarer than `min_frequency`. The order of the
/// pieces does not matter. Without a vocabulary to begin with, ids 0 to 255 are the bytes.
///
/// # Errors
///
/// [`Error::CountOverflow`] if a pair's count exceeds 64 bits, [`Error::Option`] if the pieces or the
/// vocabulary are too large or a merge to begin with cannot be, [`Error::Model`] if the vocabulary to
/// begin with is not one of bytes, [`Error::Interrupted`].
pub fn learn<'a>(
    pieces: impl Iterator<Item = (&'a [u8], u64)>,
    beginning: &Beginning<'_>,
    options: &MergeOptions,
    interrupt: &Interrupt<'_>,
    report: &mut Report<'_>,
) -> Result<Learned> {
    let ids = FreeIds::new(beginning.model, options)?;
    if beginning.merges.len() > ids.len() {
        return Err(Error::Option(format!(
            "there are {} merges to begin with, and vocab_size {} leaves ids for {}",
            beginning.merges.len(),
            options.vocab_size,
            ids.len()
        )));
    }
    let start = Start::new(beginning, options)?;
    let pieces = Pieces::lay_out(pieces, &start, MOST_SLOTS, options.threads, interrupt)?;
    let mut trainer = Trainer::new(start, pieces, options, interrupt);
    if trainer.merges.len() < ids.len() {
        trainer.count(options.threads)?;
    }
    trainer.run(ids.len(), report)?;
    Ok(trainer.learned(&ids))
}

/// Steps of work between two looks at the interrupt.
const POLL_EVERY: u32 = 4096;
/// The slots of an occurrence are on their way while so many before it are merged.
const AHEAD: usize = 8;
/// Learned tokens between two reports of progress.
const REPORT_EVERY: usize = 100;

/// Polls the interrupt now and then.
struct Poll<'a> {
    interrupt: &'a Interrupt<'a>,
    steps: u32,
}

impl<'a> Poll<'a> {
    fn new(interrupt: &'a Interrupt<'a>) -> Self {
        let steps = 0;
        Self { interrupt, steps }
    }

    fn step(&mut self) -> Result<()> {
        self.steps += 1;
        if self.steps == POLL_EVERY {
            self.steps = 0;
            self.interrupt.poll()?;
        }
        Ok(())
    }
}

/// A training run. Symbols are numbered as at the beginning, then by age.
struct Trainer<'a> {
    pieces: Pieces,
    /// The bytes of each symbol.
    tokens: Vec<Box<[u8]>>,
    /// The ids of the symbols that no merge makes.
    ids: Vec<u32>,
    taken: Taken<'a>,
    /// Every pair that is frequent and short enough to be taken.
    pairs: FxHashMap<Pair, Known>,
    candidates: Candidates,
    /// Neighbours to the left and to the right of the pair that is being merged.
    before: Changes,
    after: Changes,
    merges: Vec<Pair>,
    min_frequency: u64,
    max_length: usize,
    poll: Poll<'a>,
}

impl<'a> Trainer<'a> {
    fn new(
        start: Start<'a>,
        pieces: Pieces,
        options: &MergeOptions,
        interrupt: &'a Interrupt<'a>,
    ) -> Self {
        let symbols = start.tokens.len();
        Self {
            pieces,
            tokens: start.tokens,
            ids: start.ids,
            taken: start.taken,
            pairs: FxHashMap::default(),
            candidates: Candidates::new(options.tie_break),
            before: Changes::new(symbols),
            after: Changes::new(symbols),
            merges: start.merges,
            min_frequency: options.min_frequency.max(1),
            max_length: options.max_token_length.unwrap_or(usize::MAX),
            poll: Poll::new(interrupt),
        }
    }

    /// Counts the pairs that there are and notes where they are.
    fn count(&mut self, threads: usize) -> Result<()> {
        let (least, longest) = (self.min_frequency, self.max_length);
        let shares = count_pairs(&self.pieces, least, longest, threads, self.poll.interrupt)?;
        for (pair, count, positions) in shares.into_iter().flatten() {
            self.poll.step()?;
            self.insert(pair, count, positions);
        }
        Ok(())
    }

    /// Makes a pair a candidate if it can be taken.
    fn insert(&mut self, pair: Pair, count: u64, positions: Vec<u32>) {
        let length = self.pieces.length(pair.left) + self.pieces.length(pair.right);
        if count >= self.min_frequency && length <= self.max_length {
            let occurrences = positions.into();
            self.pairs.insert(pair, Known { count, occurrences });
            self.candidates.push(pair, count, &self.tokens);
        }
    }

    /// Merges until so many tokens are learned or no pair is left.
    fn run(&mut self, wanted: usize, report: &mut Report<'_>) -> Result<()> {
        let (mut saved, mut saved_at) = (self.merges.len(), Instant::now());
        while self.merges.len() < wanted && self.merge_next()? {
            if self.merges.len().is_multiple_of(REPORT_EVERY) {
                (report.progress)(self.merges.len(), wanted);
            }
            if let Some(save) = &mut report.checkpoint {
                if saved_at.elapsed() >= report.checkpoint_every {
                    save(&self.parts_from(saved));
                    self.poll.interrupt.poll()?;
                    (saved, saved_at) = (self.merges.len(), Instant::now());
                }
            }
        }
        (report.progress)(self.merges.len(), wanted);
        Ok(())
    }

    /// The parts of the merges from this one on.
    fn parts_from(&self, first: usize) -> Vec<Parts<'_>> {
        let bytes = |symbol: u32| &*self.tokens[symbol as usize];
        let merges = self.merges[first..].iter();
        merges
            .map(|pair| (bytes(pair.left), bytes(pair.right)))
            .collect()
    }

    /// Takes the best pair; false if none is left.
    fn merge_next(&mut self) -> Result<bool> {
        while let Some(Candidate { pair, count, .. }) = self.candidates.pop(&self.tokens) {
            self.poll.step()?;
            let Entry::Occupied(known) = self.pairs.entry(pair) else {
                continue;
            };
            let current = known.get().count;
            if current < count {
                self.candidates.push(pair, current, &self.tokens);
                continue;
            }
            let occurrences = known.remove().occurrences;
            let bytes = |symbol: u32| &*self.tokens[symbol as usize];
            let product = [bytes(pair.left), bytes(pair.right)].concat();
            if !self.taken.contains(&product) {
                self.merge(pair, product, occurrences.as_slice())?;
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Replaces the pair by a new symbol, everywhere.
    fn merge(&mut self, pair: Pair, bytes: Vec<u8>, occurrences: &[u32]) -> Result<()> {
        let product = self.tokens.len() as u32;
        self.pieces.lengths.push(bytes.len() as u32);
        self.tokens.push(bytes.into());
        self.before.add_symbol();
        self.after.add_symbol();
        self.merges.push(pair);
        for (place, &position) in occurrences.iter().enumerate() {
            self.poll.step()?;
            if let Some(&later) = occurrences.get(place + AHEAD) {
                self.pieces.fetch(later);
            }
            if self.pieces.holds(pair, position) {
                self.merge_at(position, pair, product)?;
            }
        }
        self.settle(pair, product);
        Ok(())
    }

    /// Replaces one occurrence and notes what it does to the pairs around.
    fn merge_at(&mut self, position: u32, pair: Pair, product: u32) -> Result<()> {
        let count = self.pieces.count_at(position);
        self.pieces.replace(pair, product, position);
        if let Some((start, neighbour)) = self.pieces.before(position) {
            if neighbour == product {
                // The merge just before this one took the left symbol for its neighbour.
                self.after.unform(pair.left, count);
            } else {
                self.before.lose(neighbour, count)?;
            }
            self.before.form(neighbour, count, start)?;
        }
        if let Some(neighbour) = self.pieces.after(position) {
            self.after.lose(neighbour, count)?;
            self.after.form(neighbour, count, position)?;
        }
        Ok(())
    }

    /// Brings counts, occurrences and candidates up to date after a merge.
    fn settle(&mut self, pair: Pair, product: u32) {
        for change in self.before.take() {
            let left = change.neighbour;
            self.lose(
                Pair {
                    left,
                    right: pair.left,
                },
                change.lost,
            );
            self.insert(
                Pair {
                    left,
                    right: product,
                },
                change.formed,
                change.positions,
            );
        }
        for change in self.after.take() {
            let right = change.neighbour;
            self.lose(
                Pair {
                    left: pair.right,
                    right,
                },
                change.lost,
            );
            self.insert(
                Pair {
                    left: product,
                    right,
                },
                change.formed,
                change.positions,
            );
        }
    }

    /// Lowers the count of a pair, if it can be taken, and forgets it when it no longer can.
    fn lose(&mut self, pair: Pair, count: u64) {
        if let Some(known) = self.pairs.get_mut(&pair) {
            known.count -= count;
            if known.count < self.min_frequency {
                self.pairs.remove(&pair);
            }
        }
    }

    /// The result, with ids for symbols.
    fn learned(self, free: &FreeIds) -> Learned {
        let learned: Vec<u32> = free.iter().take(self.merges.len()).collect();
        let ids = [&self.ids[..], &learned].concat();
        let id = |symbol: u32| ids[symbol as usize];
        let merges = self.merges.iter().zip(&learned);
        let tokens = &self.tokens[self.ids.len()..];
        Learned {
            merges: merges
                .map(|(pair, &product)| (id(pair.left), id(pair.right), product))
                .collect(),
            tokens: learned
                .iter()
                .zip(tokens)
                .map(|(&id, bytes)| (id, bytes.to_vec()))
                .collect(),
        }
    }
}
