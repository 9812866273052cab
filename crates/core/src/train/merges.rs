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

use crate::error::{Error, Result};
use crate::interrupt::Interrupt;
use crate::printable::char_of_byte;
use rustc_hash::FxHashMap;
use std::cmp::{Ordering, Reverse};
use std::collections::hash_map::Entry;
use std::hash::{Hash, Hasher};

/// Which pair is taken first among equally frequent ones.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TieBreak {
    /// The one with the lexicographically greatest (left bytes, right bytes).
    Largest,
    /// The one with the smallest (left, right) in the order of Hugging Face's ids: bytes by GPT-2's
    /// printable characters, then learned tokens by age.
    HuggingFace,
}

/// What to learn.
#[derive(Clone, Debug)]
pub struct MergeOptions {
    /// Learned tokens get the ids 256 to `vocab_size` - 1.
    pub vocab_size: u32,
    /// Ids that no learned token gets.
    pub reserved: Vec<u32>,
    /// A rarer pair is not taken.
    pub min_frequency: u64,
    /// Which pair is taken first among equally frequent ones.
    pub tie_break: TieBreak,
    /// The most bytes that a learned token may have.
    pub max_token_length: Option<usize>,
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
/// Ids 0 to 255 are the bytes. The most frequent adjacent pair of symbols (overlapping occurrences
/// count: `aaa` holds `a`, `a` twice) becomes a token with the next free id and replaces its
/// occurrences from left to right, until every id is used, no pair is left, or the best is rarer than
/// `min_frequency`. The order of the pieces does not matter.
///
/// `progress` is called now and then with the number of tokens learned and the number wanted.
///
/// # Errors
///
/// [`Error::CountOverflow`] if a pair's count exceeds 64 bits, [`Error::Option`] if the pieces or the
/// vocabulary are too large, [`Error::Interrupted`].
pub fn learn<'a>(
    pieces: impl Iterator<Item = (&'a [u8], u64)>,
    options: &MergeOptions,
    interrupt: &Interrupt,
    progress: &mut dyn FnMut(usize, usize),
) -> Result<Learned> {
    let ids = FreeIds::new(options)?;
    let pieces = Pieces::lay_out(pieces, options.tie_break, MOST_SLOTS)?;
    let mut trainer = Trainer::new(pieces, options, interrupt);
    if ids.len() > 0 {
        trainer.count_byte_pairs()?;
    }
    trainer.run(ids.len(), progress)?;
    Ok(trainer.learned(&ids))
}

/// The ids that learned tokens get.
struct FreeIds {
    vocab_size: u32,
    /// In order.
    reserved: Vec<u32>,
}

impl FreeIds {
    fn new(options: &MergeOptions) -> Result<Self> {
        let vocab_size = options.vocab_size;
        if vocab_size >= TAIL {
            let message = format!(
                "vocab_size is {vocab_size}; the largest possible is {}",
                TAIL - 1
            );
            return Err(Error::Option(message));
        }
        let mut reserved = options.reserved.clone();
        reserved.retain(|id| (256..vocab_size).contains(id));
        reserved.sort_unstable();
        reserved.dedup();
        Ok(Self {
            vocab_size,
            reserved,
        })
    }

    fn len(&self) -> usize {
        self.vocab_size.saturating_sub(256) as usize - self.reserved.len()
    }

    fn iter(&self) -> impl Iterator<Item = u32> + '_ {
        (256..self.vocab_size).filter(|id| self.reserved.binary_search(id).is_err())
    }
}

/// The bytes in the order of their symbols.
fn byte_order(tie_break: TieBreak) -> Vec<u8> {
    let mut bytes: Vec<u8> = (0..=255).collect();
    if tie_break == TieBreak::HuggingFace {
        bytes.sort_unstable_by_key(|&byte| char_of_byte(byte));
    }
    bytes
}

/// Steps of work between two looks at the interrupt.
const POLL_EVERY: u32 = 4096;
/// Learned tokens between two reports of progress.
const REPORT_EVERY: usize = 100;

/// Two adjacent symbols.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Pair {
    left: u32,
    right: u32,
}

impl Hash for Pair {
    fn hash<H: Hasher>(&self, state: &mut H) {
        state.write_u64(u64::from(self.left) << 32 | u64::from(self.right));
    }
}

/// Marks a slot in which no symbol begins.
const TAIL: u32 = 1 << 31;
/// The slot before and after each piece.
const BOUNDARY: u32 = u32::MAX;
/// Positions are 32 bits wide.
const MOST_SLOTS: u64 = u32::MAX as u64;

/// Pieces as sequences of symbols, end to end.
///
/// Each byte of a piece has a slot. A symbol is in the slot of its first byte and, marked, in that of
/// its last one, so that the symbols' lengths lead from a symbol to both its neighbours.
struct Pieces {
    slots: Vec<u32>,
    /// Bytes of each symbol.
    lengths: Vec<u32>,
    /// Pieces with the same count are next to each other: where each such run begins, and the count.
    runs: Vec<(u32, u64)>,
    /// The run in which a position was last found.
    run: usize,
}

impl Pieces {
    /// Every byte a symbol. Pieces that hold no pair are left out.
    fn lay_out<'a>(
        pieces: impl Iterator<Item = (&'a [u8], u64)>,
        tie_break: TieBreak,
        most_slots: u64,
    ) -> Result<Self> {
        let mut pieces: Vec<(&[u8], u64)> = pieces
            .filter(|(piece, count)| piece.len() > 1 && *count > 0)
            .collect();
        let size = 1 + pieces.iter().map(|p| p.0.len() as u64 + 1).sum::<u64>();
        if size > most_slots {
            return Err(Error::Option(format!(
                "the distinct pieces, with a byte between them, are {size} bytes; at most {most_slots} \
                 can be trained on: use less text, or leave out the rarest pieces"
            )));
        }
        pieces.sort_unstable_by_key(|&(_, count)| Reverse(count));

        let mut symbol_of = [0; 256];
        for (symbol, byte) in (0..).zip(byte_order(tie_break)) {
            symbol_of[usize::from(byte)] = symbol;
        }
        let mut slots = Vec::with_capacity(size as usize);
        let mut runs: Vec<(u32, u64)> = Vec::new();
        slots.push(BOUNDARY);
        for (piece, count) in pieces {
            if runs.last().is_none_or(|run| run.1 != count) {
                runs.push((slots.len() as u32, count));
            }
            slots.extend(piece.iter().map(|&byte| symbol_of[usize::from(byte)]));
            slots.push(BOUNDARY);
        }
        Ok(Self {
            slots,
            lengths: vec![1; 256],
            runs,
            run: 0,
        })
    }

    /// How often the piece at a position occurs.
    fn count_at(&mut self, position: u32) -> u64 {
        let begins_later = |run: &(u32, u64)| run.0 > position;
        let next = self.runs.get(self.run + 1);
        if begins_later(&self.runs[self.run]) || !next.is_none_or(begins_later) {
            self.run = self.runs.partition_point(|run| !begins_later(run)) - 1;
        }
        self.runs[self.run].1
    }

    fn length(&self, symbol: u32) -> usize {
        self.lengths[symbol as usize] as usize
    }

    /// Whether the pair is (still) at a position.
    fn holds(&self, pair: Pair, position: u32) -> bool {
        let left = position as usize;
        self.slots[left] == pair.left && self.slots[left + self.length(pair.left)] == pair.right
    }

    /// Position and symbol before the symbol at a position.
    fn before(&self, position: u32) -> Option<(u32, u32)> {
        let last = self.slots[position as usize - 1];
        let symbol = last & !TAIL;
        (last != BOUNDARY).then(|| (position - self.lengths[symbol as usize], symbol))
    }

    /// The symbol after the symbol at a position.
    fn after(&self, position: u32) -> Option<u32> {
        let symbol = self.slots[position as usize];
        let next = self.slots[position as usize + self.length(symbol)];
        (next != BOUNDARY).then_some(next)
    }

    /// Puts the product in the place of the pair at a position.
    fn replace(&mut self, pair: Pair, product: u32, position: u32) {
        let left = position as usize;
        let right = left + self.length(pair.left);
        let end = left + self.length(product);
        self.slots[left] = product;
        self.slots[right] = product | TAIL;
        self.slots[end - 1] = product | TAIL;
    }
}

/// Positions of a pair, in order. A third smaller than a `Vec`, and on the spot where there is only
/// one, because most pairs are rare.
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

/// How often a pair occurs, and where it was formed.
struct Known {
    count: u64,
    occurrences: Occurrences,
}

/// A pair on the heap.
#[derive(Clone, Copy)]
struct Candidate {
    /// The pair's count when it came onto the heap.
    count: u64,
    /// The first bytes of the left part, because to look them up takes time.
    prefix: [u8; 8],
    pair: Pair,
}

/// A heap of candidates, with the one to take at the top; 4-ary, which makes it half as deep.
struct Candidates {
    heap: Vec<Candidate>,
    tie_break: TieBreak,
}

impl Candidates {
    const ARITY: usize = 4;

    /// Whether `a` is taken before `b`.
    fn precedes(&self, a: &Candidate, b: &Candidate, tokens: &[Box<[u8]>]) -> bool {
        let bytes = |pair: Pair| (&tokens[pair.left as usize], &tokens[pair.right as usize]);
        let order = a.count.cmp(&b.count).then_with(|| match self.tie_break {
            TieBreak::Largest => {
                let prefixes = a.prefix.cmp(&b.prefix);
                prefixes.then_with(|| bytes(a.pair).cmp(&bytes(b.pair)))
            }
            TieBreak::HuggingFace => b.pair.cmp(&a.pair),
        });
        order == Ordering::Greater
    }

    fn push(&mut self, pair: Pair, count: u64, tokens: &[Box<[u8]>]) {
        let left = &tokens[pair.left as usize];
        let mut prefix = [0; 8];
        let length = left.len().min(prefix.len());
        prefix[..length].copy_from_slice(&left[..length]);
        let candidate = Candidate {
            count,
            prefix,
            pair,
        };

        let mut hole = self.heap.len();
        self.heap.push(candidate);
        while hole > 0 {
            let parent = (hole - 1) / Self::ARITY;
            if !self.precedes(&candidate, &self.heap[parent], tokens) {
                break;
            }
            self.heap[hole] = self.heap[parent];
            hole = parent;
        }
        self.heap[hole] = candidate;
    }

    fn pop(&mut self, tokens: &[Box<[u8]>]) -> Option<Candidate> {
        let last = self.heap.pop()?;
        let Some(&top) = self.heap.first() else {
            return Some(last);
        };
        let mut hole = 0;
        while let Some(child) = self.best_child(hole, tokens) {
            if !self.precedes(&self.heap[child], &last, tokens) {
                break;
            }
            self.heap[hole] = self.heap[child];
            hole = child;
        }
        self.heap[hole] = last;
        Some(top)
    }

    fn best_child(&self, parent: usize, tokens: &[Box<[u8]>]) -> Option<usize> {
        let first = parent * Self::ARITY + 1;
        let end = self.heap.len().min(first + Self::ARITY);
        (first..end).reduce(|best, child| {
            if self.precedes(&self.heap[child], &self.heap[best], tokens) {
                child
            } else {
                best
            }
        })
    }
}

/// What one merge does to the pairs that a neighbour is in.
struct Change {
    neighbour: u32,
    /// Occurrences that its pair with the old symbol loses.
    lost: u64,
    /// Occurrences of its pair with the product, and where they are.
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
        change.lost = add(change.lost, count)?;
        Ok(())
    }

    fn form(&mut self, neighbour: u32, count: u64, position: u32) -> Result<()> {
        let change = self.of(neighbour);
        change.formed = add(change.formed, count)?;
        change.positions.push(position);
        Ok(())
    }

    /// Takes the last formation back.
    fn unform(&mut self, neighbour: u32, count: u64) {
        let change = self.of(neighbour);
        change.formed -= count;
        change.positions.pop();
    }

    /// The changes, leaving none.
    fn take(&mut self) -> Vec<Change> {
        for change in &self.list {
            self.index[change.neighbour as usize] = Self::NONE;
        }
        std::mem::take(&mut self.list)
    }
}

fn add(a: u64, b: u64) -> Result<u64> {
    a.checked_add(b).ok_or(Error::CountOverflow)
}

/// Polls the interrupt now and then.
struct Poll<'a> {
    interrupt: &'a Interrupt<'a>,
    steps: u32,
}

impl Poll<'_> {
    fn step(&mut self) -> Result<()> {
        self.steps += 1;
        if self.steps == POLL_EVERY {
            self.steps = 0;
            self.interrupt.poll()?;
        }
        Ok(())
    }
}

/// A training run. Symbols are numbered in the order of the bytes, then by age.
struct Trainer<'a> {
    pieces: Pieces,
    /// The bytes of each symbol.
    tokens: Vec<Box<[u8]>>,
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
    fn new(pieces: Pieces, options: &MergeOptions, interrupt: &'a Interrupt<'a>) -> Self {
        let tie_break = options.tie_break;
        let changes = || Changes {
            list: Vec::new(),
            index: vec![Changes::NONE; 256],
        };
        let bytes = byte_order(tie_break).into_iter();
        Self {
            pieces,
            tokens: bytes.map(|byte| Box::from([byte])).collect(),
            pairs: FxHashMap::default(),
            candidates: Candidates {
                heap: Vec::new(),
                tie_break,
            },
            before: changes(),
            after: changes(),
            merges: Vec::new(),
            min_frequency: options.min_frequency.max(1),
            max_length: options.max_token_length.unwrap_or(usize::MAX),
            poll: Poll {
                interrupt,
                steps: 0,
            },
        }
    }

    /// Counts the pairs of bytes and notes where they are.
    fn count_byte_pairs(&mut self) -> Result<()> {
        // Twice through the pieces, so that no list is larger than it must be.
        let mut counts = vec![(0, 0); 1 << 16];
        self.for_each_byte_pair(|index, count, _| {
            let (total, occurrences) = &mut counts[index];
            *total = add(*total, count)?;
            *occurrences += 1;
            Ok(())
        })?;
        let is_wanted = |&(count, _): &(u64, usize)| count >= self.min_frequency;
        let mut lists: Vec<Option<Vec<u32>>> = counts
            .iter()
            .map(|count| is_wanted(count).then(|| Vec::with_capacity(count.1)))
            .collect();
        self.for_each_byte_pair(|index, _, position| {
            if let Some(list) = &mut lists[index] {
                list.push(position);
            }
            Ok(())
        })?;
        for (index, positions) in (0..).zip(lists) {
            let (left, right) = (index >> 8, index & 0xFF);
            if let Some(positions) = positions {
                self.insert(Pair { left, right }, counts[index as usize].0, positions);
            }
        }
        Ok(())
    }

    /// Visits each pair of bytes: left * 256 + right, how often its piece occurs, its position.
    fn for_each_byte_pair(
        &mut self,
        mut visit: impl FnMut(usize, u64, u32) -> Result<()>,
    ) -> Result<()> {
        for position in 1..self.pieces.slots.len() - 1 {
            self.poll.step()?;
            let (left, right) = (self.pieces.slots[position], self.pieces.slots[position + 1]);
            if left != BOUNDARY && right != BOUNDARY {
                let count = self.pieces.count_at(position as u32);
                visit((left << 8 | right) as usize, count, position as u32)?;
            }
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
    fn run(&mut self, wanted: usize, progress: &mut dyn FnMut(usize, usize)) -> Result<()> {
        while self.merges.len() < wanted {
            self.poll.step()?;
            let Some(Candidate { pair, count, .. }) = self.candidates.pop(&self.tokens) else {
                break;
            };
            let Entry::Occupied(known) = self.pairs.entry(pair) else {
                continue;
            };
            let current = known.get().count;
            if current < count {
                self.candidates.push(pair, current, &self.tokens);
                continue;
            }
            let occurrences = known.remove().occurrences;
            self.merge(pair, occurrences.as_slice())?;
            if self.merges.len().is_multiple_of(REPORT_EVERY) {
                progress(self.merges.len(), wanted);
            }
        }
        progress(self.merges.len(), wanted);
        Ok(())
    }

    /// Replaces the pair by a new symbol, everywhere.
    fn merge(&mut self, pair: Pair, occurrences: &[u32]) -> Result<()> {
        let product = self.tokens.len() as u32;
        let bytes = |symbol: u32| &*self.tokens[symbol as usize];
        let bytes = [bytes(pair.left), bytes(pair.right)].concat();
        self.pieces.lengths.push(bytes.len() as u32);
        self.tokens.push(bytes.into());
        self.before.index.push(Changes::NONE);
        self.after.index.push(Changes::NONE);
        self.merges.push(pair);
        for &position in occurrences {
            self.poll.step()?;
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
    fn learned(self, ids: &FreeIds) -> Learned {
        let learned: Vec<u32> = ids.iter().take(self.merges.len()).collect();
        let id = |symbol: u32| match symbol.checked_sub(256) {
            Some(age) => learned[age as usize],
            None => u32::from(self.tokens[symbol as usize][0]),
        };
        let merges = self.merges.iter().zip(&learned);
        Learned {
            merges: merges
                .map(|(pair, &product)| (id(pair.left), id(pair.right), product))
                .collect(),
            tokens: learned
                .iter()
                .zip(&self.tokens[256..])
                .map(|(&id, bytes)| (id, bytes.to_vec()))
                .collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::collection::vec;
    use proptest::prelude::*;
    use std::collections::BTreeMap;
    use std::sync::atomic::{AtomicUsize, Ordering};
    use TieBreak::{HuggingFace, Largest};

    type Bytes = Vec<u8>;
    type Pieces = Vec<(Bytes, u64)>;
    type Merges = Vec<(Bytes, Bytes)>;

    fn pieces(pieces: &[(&[u8], u64)]) -> Pieces {
        pieces
            .iter()
            .map(|&(p, count)| (p.to_vec(), count))
            .collect()
    }

    fn options(vocab_size: u32, tie_break: TieBreak) -> MergeOptions {
        MergeOptions {
            vocab_size,
            reserved: Vec::new(),
            min_frequency: 1,
            tie_break,
            max_token_length: None,
        }
    }

    fn train(pieces: &Pieces, options: &MergeOptions) -> Result<Learned> {
        let pieces = pieces.iter().map(|(piece, count)| (&piece[..], *count));
        learn(pieces, options, &Interrupt::never(), &mut |_, _| {})
    }

    /// The merges as bytes, after a look at the ids.
    fn merges(pieces: &Pieces, options: &MergeOptions) -> Merges {
        let learned = train(pieces, options).unwrap();
        let mut tokens: BTreeMap<u32, Bytes> = (0..=255).map(|b| (u32::from(b), vec![b])).collect();
        let mut merges = Vec::new();
        assert_eq!(learned.merges.len(), learned.tokens.len());
        for ((left, right, product), (id, token)) in learned.merges.into_iter().zip(learned.tokens)
        {
            let (left, right) = (tokens[&left].clone(), tokens[&right].clone());
            assert_eq!((product, [&left[..], &right].concat()), (id, token.clone()));
            assert_eq!(tokens.insert(id, token), None);
            merges.push((left, right));
        }
        merges
    }

    /// As `merges`, written `left right`.
    fn spelt(given: &[(&str, u64)], options: &MergeOptions) -> Vec<String> {
        let given = given
            .iter()
            .map(|(p, count)| (p.as_bytes().to_vec(), *count));
        let merges = merges(&given.collect(), options).into_iter();
        merges
            .map(|(left, right)| String::from_utf8([&left[..], b" ", &right].concat()).unwrap())
            .collect()
    }

    /// GPT-2's printable character of a byte, as a number: the order of Hugging Face's ids.
    fn printable(byte: u8) -> u32 {
        let shown = |byte: &u8| matches!(byte, b'!'..=b'~' | 0xA1..=0xAC | 0xAE..=0xFF);
        let hidden = (0..byte).filter(|b| !shown(b)).count() as u32;
        if shown(&byte) {
            u32::from(byte)
        } else {
            256 + hidden
        }
    }

    /// The specification, word for word: symbols are their bytes, and every merge counts anew.
    fn recount(pieces: &Pieces, options: &MergeOptions) -> Merges {
        let mut words: Vec<(Vec<Bytes>, u64)> = pieces
            .iter()
            .map(|(piece, count)| (piece.iter().map(|&b| vec![b]).collect(), *count))
            .collect();
        let mut tokens: Vec<Bytes> = (0..=255).map(|b| vec![b]).collect();
        tokens.sort_by_key(|token| printable(token[0]));
        let mut merges = Vec::new();
        while merges.len() < options.vocab_size as usize - 256 {
            let Some((left, right)) = most_frequent(&words, &tokens, options) else {
                break;
            };
            let product = [&left[..], &right].concat();
            assert!(!tokens.contains(&product), "{product:?} is made twice");
            for (word, _) in &mut words {
                let mut i = 0;
                while i + 1 < word.len() {
                    if word[i] == left && word[i + 1] == right {
                        word.splice(i..i + 2, [product.clone()]);
                    }
                    i += 1;
                }
            }
            tokens.push(product);
            merges.push((left, right));
        }
        merges
    }

    fn most_frequent(
        words: &[(Vec<Bytes>, u64)],
        tokens: &[Bytes],
        options: &MergeOptions,
    ) -> Option<(Bytes, Bytes)> {
        let mut counts: BTreeMap<(&Bytes, &Bytes), u64> = BTreeMap::new();
        for (word, count) in words {
            for pair in word.windows(2) {
                *counts.entry((&pair[0], &pair[1])).or_default() += count;
            }
        }
        let longest = options.max_token_length.unwrap_or(usize::MAX);
        let age = |token: &Bytes| Reverse(tokens.iter().position(|t| t == token));
        let ((left, right), _) = counts
            .into_iter()
            .filter(|((left, right), _)| left.len() + right.len() <= longest)
            .filter(|&(_, count)| count >= options.min_frequency.max(1))
            .max_by(|(a, count_a), (b, count_b)| {
                count_a.cmp(count_b).then_with(|| match options.tie_break {
                    Largest => a.cmp(b),
                    HuggingFace => (age(a.0), age(a.1)).cmp(&(age(b.0), age(b.1))),
                })
            })?;
        Some((left.clone(), right.clone()))
    }

    #[test]
    fn equal_counts_go_by_the_rule() {
        let given = [("low", 5), ("lower", 2), ("newest", 6), ("widest", 3)];
        let largest = [
            "s t", "e st", "o w", "l ow", "w est", "n e", "ne west", "w i",
        ];
        assert_eq!(spelt(&given, &options(264, Largest)), largest);
        let hugging_face = [
            "e s", "es t", "l o", "lo w", "e w", "n ew", "new est", "d est",
        ];
        assert_eq!(spelt(&given, &options(264, HuggingFace)), hugging_face);
    }

    #[test]
    fn the_textbook_example() {
        let given = [("aaabdaaabac", 1)];
        let largest = [
            "a a",
            "aa a",
            "aaa b",
            "d aaab",
            "daaab a",
            "daaaba c",
            "aaab daaabac",
        ];
        assert_eq!(spelt(&given, &options(400, Largest)), largest);
        assert_eq!(spelt(&given, &options(259, Largest)), largest[..3]);
        assert_eq!(
            spelt(&given, &options(259, HuggingFace)),
            ["a a", "a b", "aa ab"]
        );
    }

    #[test]
    fn overlapping_occurrences_count_and_merge_from_the_left() {
        // (a, a) 2 + 2 times, (x, a) 3 times.
        let given = [("aaa", 2), ("xa", 3)];
        assert_eq!(
            spelt(&given, &options(300, Largest)),
            ["a a", "x a", "aa a"]
        );
        let given = [("aaaaaaa", 1)];
        assert_eq!(
            spelt(&given, &options(300, Largest)),
            ["a a", "aa aa", "aaaa aa", "aaaaaa a"]
        );
    }

    #[test]
    fn learned_tokens_fill_the_ids_that_are_not_reserved() {
        let all_bytes: Pieces = vec![((0..=255).collect(), 2)];
        let ids = |vocab_size, reserved: &[u32]| -> Vec<u32> {
            let reserved = reserved.to_vec();
            let options = MergeOptions {
                reserved,
                ..options(vocab_size, Largest)
            };
            merges(&all_bytes, &options);
            let tokens = train(&all_bytes, &options).unwrap().tokens;
            tokens.into_iter().map(|(id, _)| id).collect()
        };
        assert_eq!(ids(512, &[256, 257, 258]), (259..512).collect::<Vec<_>>());
        assert_eq!(ids(276, &[100_257]), (256..276).collect::<Vec<_>>());
        assert_eq!(ids(262, &[260, 257, 257, 65]), [256, 258, 259, 261]);
        assert_eq!(ids(258, &[256, 257]), []);
        assert_eq!(ids(256, &[]), []);
        assert_eq!(ids(0, &[]), []);
        assert_eq!(ids(1000, &[]).len(), 255);
    }

    #[test]
    fn rare_and_long_pairs_are_left() {
        let given = [("abcd", 3), ("xy", 2), ("z", 9), ("", 9), ("pq", 0)];
        let with = |min_frequency, max_token_length| MergeOptions {
            min_frequency,
            max_token_length,
            ..options(300, Largest)
        };
        assert_eq!(
            spelt(&given, &with(0, None)),
            ["c d", "b cd", "a bcd", "x y"]
        );
        assert_eq!(spelt(&given, &with(3, None)), ["c d", "b cd", "a bcd"]);
        assert_eq!(spelt(&given, &with(4, None)).len(), 0);
        assert_eq!(spelt(&given, &with(2, Some(3))), ["c d", "b cd", "x y"]);
        assert_eq!(spelt(&given, &with(2, Some(2))), ["c d", "a b", "x y"]);
        assert_eq!(spelt(&given, &with(2, Some(1))).len(), 0);
        assert_eq!(spelt(&[], &with(2, None)).len(), 0);
    }

    #[test]
    fn a_count_beyond_64_bits_is_an_error() {
        let outcome = |given: &[(&[u8], u64)]| {
            train(&pieces(given), &options(300, Largest)).map(|learned| learned.merges.len())
        };
        let overflows = |given| matches!(outcome(given), Err(Error::CountOverflow));
        assert!(overflows(&[(b"ab", u64::MAX), (b"abc", 1)]));
        assert!(overflows(&[(b"aaa", 1 << 63)]));
        assert!(!overflows(&[(b"aaa", (1 << 63) - 1), (b"aa", 1)]));
        assert_eq!(
            outcome(&[(b"abc", u64::MAX), (b"cd", u64::MAX)]).unwrap(),
            3
        );
    }

    #[test]
    fn too_much_is_an_error() {
        let lay_out = |most_slots| {
            let given: [(&[u8], u64); 3] = [(b"abc", 1), (b"d", 1), (b"ef", 1)];
            super::Pieces::lay_out(given.into_iter(), Largest, most_slots)
                .map(|pieces| pieces.slots.len())
        };
        assert_eq!(lay_out(8).unwrap(), 8);
        assert!(lay_out(7)
            .unwrap_err()
            .to_string()
            .contains("8 bytes; at most 7"));
        let error = train(&Vec::new(), &options(1 << 31, Largest)).unwrap_err();
        assert_eq!(
            error.to_string(),
            "vocab_size is 2147483648; the largest possible is 2147483647"
        );
        assert_eq!(
            train(&Vec::new(), &options((1 << 31) - 1, Largest)).unwrap(),
            Learned::default()
        );
    }

    #[test]
    fn one_huge_merge_can_be_interrupted() {
        let piece = b"ab".repeat(50_000);
        // 200,000 steps count the pairs, 50,000 replace them.
        for last in [1, 30, 50, 60] {
            let polls = AtomicUsize::new(0);
            let poll = || polls.fetch_add(1, Ordering::Relaxed) + 1 == last;
            let interrupt = Interrupt::new(&poll);
            let given = [(&piece[..], 1)].into_iter();
            let result = learn(given, &options(257, Largest), &interrupt, &mut |_, _| {});
            assert!(matches!(result, Err(Error::Interrupted)));
            assert_eq!(polls.load(Ordering::Relaxed), last);
        }
    }

    #[test]
    fn progress_is_reported() {
        let all_bytes: Bytes = (0..=255).collect();
        let mut reports = Vec::new();
        let given = [(&all_bytes[..], 1)].into_iter();
        let report = &mut |learned, wanted| reports.push((learned, wanted));
        learn(given, &options(600, Largest), &Interrupt::never(), report).unwrap();
        assert_eq!(reports, [(100, 344), (200, 344), (255, 344)]);
    }

    /// Merges that `tokenizers` 0.23.3 gave for these pieces (with `max_token_length` 4 for our 3).
    #[test]
    fn hugging_face_gives_the_same() {
        let with = |vocab_size, min_frequency, max_token_length| MergeOptions {
            min_frequency,
            max_token_length,
            ..options(vocab_size, HuggingFace)
        };
        let check = |given: &[(&[u8], u64)], options: MergeOptions, expected: &[(&[u8], &[u8])]| {
            let expected = expected
                .iter()
                .map(|(left, right)| (left.to_vec(), right.to_vec()));
            assert_eq!(
                merges(&pieces(given), &options),
                expected.collect::<Merges>()
            );
        };
        check(
            &[
                (b"a!bab!a", 2),
                (b"abaa\xad\xada", 3),
                (b"ab\xad\xad!\xad\xad", 1),
                (b"a\xadabab!\xad", 2),
                (b"\xadaa", 2),
                (b"\xadaaa", 3),
            ],
            with(300, 0, None),
            &[
                (b"a", b"a"),
                (b"a", b"b"),
                (b"\xad", b"\xad"),
                (b"\xad", b"aa"),
                (b"ab", b"!"),
                (b"aa", b"\xad\xad"),
                (b"ab", b"aa\xad\xad"),
                (b"\xadaa", b"a"),
                (b"abaa\xad\xad", b"a"),
                (b"!", b"b"),
                (b"a", b"\xad"),
                (b"a", b"!b"),
                (b"ab", b"ab!"),
                (b"ab!", b"a"),
                (b"a\xad", b"abab!"),
                (b"a!b", b"ab!a"),
                (b"a\xadabab!", b"\xad"),
                (b"!", b"\xad\xad"),
                (b"ab", b"\xad\xad"),
                (b"ab\xad\xad", b"!\xad\xad"),
            ],
        );
        check(
            &[
                (b"aaa", 4),
                (b"aaaaaaa", 1),
                (b"aabaa", 3),
                (b"aabaaba", 3),
                (b"bbaababab", 1),
            ],
            with(300, 2, None),
            &[
                (b"a", b"a"),
                (b"aa", b"b"),
                (b"aa", b"a"),
                (b"aab", b"a"),
                (b"aab", b"aa"),
                (b"aab", b"aaba"),
            ],
        );
        check(
            &[
                (b"\0 \xff\0a \xff ", 4),
                (b"\0aa\xff\xff\xff a\xff", 2),
                (b"\0a\xff\0\xff\0\xff", 4),
                (b"\0\xff\0", 1),
                (b" aaa", 2),
            ],
            with(300, 1, Some(3)),
            &[
                (b"\xff", b"\0"),
                (b"a", b"a"),
                (b"\xff", b" "),
                (b"a", b" "),
                (b"a", b"\xff\0"),
                (b"\0", b" "),
                (b"\xff\0", b"\xff"),
                (b"a", b"\xff"),
                (b"\xff", b"\xff"),
                (b"\0", b"aa"),
                (b" ", b"aa"),
                (b"\0", b"\xff\0"),
            ],
        );
        check(
            &[
                (b"\n\n z ", 3),
                (b"\n z\n", 4),
                (b" z\n", 2),
                (b"z\n\n\nz", 1),
                (b"z\nz", 1),
                (b"z \n\n\n\n", 1),
                (b"zz    ", 1),
                (b"zzzz", 3),
            ],
            with(262, 2, None),
            &[
                (b"z", b"z"),
                (b" ", b"z"),
                (b"\n", b"\n"),
                (b" z", b"\n"),
                (b"\n", b" z\n"),
                (b" ", b" "),
            ],
        );
    }

    /// Words of a pseudo-random language with many counts.
    fn language(words: u64) -> Pieces {
        let mut state = 1_u64;
        let mut random = |below: u64| {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1);
            (state >> 33) % below
        };
        (1..=words)
            .map(|rank| {
                let syllables = 1 + random(4);
                let word = (0..syllables)
                    .flat_map(|_| [b"ptkmns "[random(7) as usize], b"aiou"[random(4) as usize]]);
                (word.collect(), 10_000 / rank + 1)
            })
            .collect()
    }

    #[test]
    fn a_language_is_learned_as_by_recounting() {
        let words = language(600);
        for tie_break in [Largest, HuggingFace] {
            let options = options(700, tie_break);
            assert_eq!(merges(&words, &options), recount(&words, &options));
        }
    }

    /// Pieces over few bytes, where runs and equal counts are common; among the bytes are some whose
    /// printable characters are in another order than they.
    fn any_pieces() -> impl Strategy<Value = Pieces> {
        (1..=5_usize, 1..=40_usize).prop_flat_map(|(bytes, length)| {
            let byte = prop::sample::select(&b"ab \xAD\xFF"[..bytes]);
            vec((vec(byte, 0..=length), 1..6_u64), 0..12)
        })
    }

    fn any_options() -> impl Strategy<Value = MergeOptions> {
        let max_token_length = prop_oneof![Just(None), (1..8_usize).prop_map(Some)];
        let tie_break = prop_oneof![Just(Largest), Just(HuggingFace)];
        (256..330_u32, 0..5_u64, tie_break, max_token_length).prop_map(
            |(vocab_size, min_frequency, tie_break, max_token_length)| MergeOptions {
                min_frequency,
                max_token_length,
                ..options(vocab_size, tie_break)
            },
        )
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(1000))]

        #[test]
        fn merges_are_those_of_recounting(pieces in any_pieces(), options in any_options()) {
            prop_assert_eq!(merges(&pieces, &options), recount(&pieces, &options));
        }

        #[test]
        fn the_order_of_the_pieces_does_not_matter(
            (given, shuffled) in any_pieces().prop_flat_map(|p| (Just(p.clone()), Just(p).prop_shuffle())),
            options in any_options(),
        ) {
            prop_assert_eq!(train(&given, &options).unwrap(), train(&shuffled, &options).unwrap());
            // Nor does it matter whether equal pieces come together.
            let twice = [&given[..], &shuffled].concat();
            let doubled = given.into_iter().map(|(piece, count)| (piece, 2 * count)).collect();
            prop_assert_eq!(train(&twice, &options).unwrap(), train(&doubled, &options).unwrap());
        }
    }
}
