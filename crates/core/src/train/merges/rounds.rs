//! Learning merges in bounded memory: in rounds, each of which learns the merges above a threshold.
//!
//! The index of [`train_merges`] takes many times the memory of the pieces. Most of it is for pairs that are too rare to be
//! merged soon. A round therefore looks only at the pairs with a count of at least a threshold, and gets the merges with
//! such counts exactly. The next round continues from these merges with a lower threshold.
//!
//! # A piece may be cut at rare pairs
//!
//! Let every piece be the symbols that the merges so far make of it, and let `t` be a threshold. Claim: as long as only
//! pairs with a count of at least `t` are merged, no merge crosses the place between two adjacent symbols `x`, `y` whose
//! pair has a count below `t` now.
//!
//! Proof: a merge across this place would join a symbol that ends with `x` and one that begins with `y`. A product is always
//! a new token that is made in one way only (see [`super`]), so every occurrence of this later pair consists of the same
//! symbols of today, and has `x`, `y` side by side at the same place. Different occurrences have different places. So the
//! later pair is at most as frequent as `x`, `y` is now, and its count is below `t`.
//!
//! So each piece can be cut at all such places. The fragments are merged independently, and all occurrences of a pair that
//! is not cut are in fragments: its count in them is exact. A pair that is cut in some places only, or not at all although
//! its count is below `t`, does no harm: it is not merged either. A run of one symbol is cut everywhere or nowhere, so its
//! symbols are paired from the left as before. A fragment of one symbol has no pair. Fragments with the same bytes are
//! added up: no merge crosses the ends of a fragment, so the merges so far make the same symbols of its bytes alone. There
//! are far fewer distinct fragments than pieces, and training on them with the least count `t` learns the next merges of the
//! unbounded training, ties included.
//!
//! A pair that is too long for `max_token_length` is never merged, nor is a later one across it, so it is cut too.
//!
//! # Bounds of the counts
//!
//! The counts of all pairs need too much memory. They are added up in a table of counters, by a hash of the pair: a counter
//! is at least the count of each of its pairs. A pair is cut where its counter is below `t`.
//!
//! # The rounds
//!
//! The symbols of all pieces are in a temporary file. A round reads it twice: it applies the merges of the round before,
//! counts the pairs and writes the file anew; then it cuts the pieces and adds the fragments up. If the fragments need too
//! much memory, the threshold rises, and the fragments that are already in the table are cut again. The first blocks, which
//! are a sample, tell so early. After a round with the threshold `t`, every count is below `t`, so the next threshold is
//! lower. The last round has the least frequency as its threshold.

use super::options::{Callbacks, MergeOptions, WarmStart};
use super::pieces::{Pieces, MAX_SLOTS};
use super::seed::Seed;
use super::{FreeIds, Learned, Saves, Trainer};
use crate::error::{Error, Result};
use crate::interrupt::Interrupt;
use crate::merge::{merge_symbols, PairTable};
use crate::reserve::{append, push, reserve, with_capacity};
use crate::threads::{lock, on_threads, thread_count};
use crate::train::counts::{PieceCounts, PieceStream};
use crate::train::temporary::{Spills, TemporaryFile};
use rustc_hash::FxBuildHasher;
use std::hash::BuildHasher;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

/// Bytes of a block of the temporary file, and of the pieces that a thread takes at once.
const BLOCK_BYTES: usize = 64 << 10;
/// Bytes of the fragments that a thread adds up by itself.
const OWN_FRAGMENTS: usize = 2 << 20;
/// Bytes of memory for each symbol: its token, its places in indices.
const SYMBOL_BYTES: usize = 200;
/// The largest number of counters.
const MAX_COUNTERS: usize = 1 << 22;
/// The fragments of this part of the blocks tell how much memory those of all blocks will need.
const SAMPLE: f64 = 1.0 / 32.0;
/// The memory of the fragments grows with a power of the number of pieces (Heaps' law). It was 0.6 in Chinese, and 1.0 in many
/// languages. A power that is too large costs more rounds, and one that is too small costs another cut.
const HEAPS_EXPONENT: f64 = 0.8;
/// The part of the memory that all fragments are to take.
const FILLED: f64 = 0.75;
/// The first threshold is the largest counter divided by this.
const FIRST_RATIO: f64 = 8.0;

/// What rounds may take.
#[derive(Clone, Debug)]
pub struct RoundLimits {
    /// Bytes of memory.
    pub memory: usize,
    /// Number of counters, a power of two.
    pub counters: usize,
    /// Where the temporary file is.
    pub spills: Spills,
}

impl RoundLimits {
    /// The limits of a training that may take this memory, approximately. An eighth of it is for the counters.
    ///
    /// # Errors
    ///
    /// [`Error::Option`] if it is too little for the vocabulary.
    pub fn new(memory: usize, spills: Spills, options: &MergeOptions) -> Result<Self> {
        let counters = (memory / 8 / size_of::<u64>()).clamp(1 << 10, MAX_COUNTERS);
        let counters = 1 << counters.ilog2();
        let symbols = options.vocab_size as usize * SYMBOL_BYTES;
        let needed = counters * size_of::<u64>() + symbols;
        if needed > memory / 2 {
            return Err(Error::Option(format!(
                "max_memory leaves {memory} bytes for learning, and a vocabulary of {} needs {} of them for itself: \
                 give more memory, or a smaller vocab_size",
                options.vocab_size,
                2 * needed
            )));
        }
        Ok(Self {
            memory: memory - needed,
            counters,
            spills,
        })
    }
}

/// Learns what [`super::train_merges`] learns, from pieces that are read once, in rounds.
///
/// # Errors
///
/// Those of [`super::train_merges`]; [`Error::Option`] if the fragments of the pairs with one count need more than the
/// memory; [`Error::Spill`] if the temporary file cannot be written.
pub fn train_in_rounds(
    pieces: &mut (dyn PieceStream + Send),
    warm_start: &WarmStart<'_>,
    options: &MergeOptions,
    limits: &RoundLimits,
    interrupt: &Interrupt<'_>,
    callbacks: &mut Callbacks<'_>,
) -> Result<Learned> {
    let ids = FreeIds::of(warm_start, options)?;
    let mut merges = warm_start.merges.to_vec();
    let mut saves = Saves::new(merges.len(), callbacks);
    let mut seed = Seed::new(warm_start.model, warm_start.merges, options)?;
    let mut work = Work {
        bounds: PairBounds::new(limits.counters)?,
        max_length: options.max_token_length.unwrap_or(usize::MAX),
        threads: options.threads,
        limits,
        interrupt,
    };
    let least = options.min_frequency.max(1);
    let mut symbols = work.encode(pieces, &seed)?;
    let (mut ceiling, mut ratio, mut first_uncertain) = (u64::MAX, FIRST_RATIO, None);
    loop {
        // Every count is below the ceiling.
        ceiling = ceiling.min(work.bounds.largest().saturating_add(1));
        let guess = ((ceiling as f64 / ratio) as u64)
            .min(ceiling - 1)
            .max(least);
        seed.parts_only = true;
        let fragments = work.gather(&symbols, &seed, guess, ceiling)?;
        let threshold = fragments.threshold;
        let used = fragments.table.cost().max(1) as f64 / limits.memory as f64;
        let reached = ceiling as f64 / threshold as f64;
        // Twice as much: the sample soon raises a threshold that is too low.
        ratio = (2.0 * reached * (FILLED / used).clamp(1.0, 8.0)).clamp(1.5, 1e6);
        let options = MergeOptions {
            min_frequency: threshold,
            ..options.clone()
        };
        let table = fragments.table;
        let pieces = Pieces::lay_out(table.iter(), &seed, MAX_SLOTS, options.threads, interrupt)?;
        drop(table);
        let mut trainer = Trainer::new(seed, pieces, &options, interrupt);
        trainer.first_uncertain = first_uncertain;
        let known = trainer.merges.len();
        if known < ids.len() {
            trainer.count(options.threads, interrupt)?;
        }
        trainer.run(ids.len(), &mut saves, interrupt, callbacks)?;
        if trainer.merges.len() >= ids.len() || threshold <= least {
            return Ok(trainer.into_learned(&ids));
        }
        first_uncertain = trainer.first_uncertain;
        let new = trainer.merges_from(known);
        let new = new
            .iter()
            .map(|(left, right)| (left.to_vec(), right.to_vec()));
        merges.extend(new);
        let first = (trainer.tokens.len() - (trainer.merges.len() - known)) as u32;
        let new = trainer.merges[known..].iter().zip(first..);
        let new: Vec<_> = new
            .map(|(pair, product)| (pair.left, pair.right, product))
            .collect();
        drop(trainer);
        seed = Seed::new(warm_start.model, &merges, &options)?;
        symbols = work.merge(&symbols, &PairTable::new(&new), &seed)?;
        ceiling = threshold;
    }
}

/// Upper bounds of the counts of all pairs.
struct PairBounds {
    counters: Vec<AtomicU64>,
    shift: u32,
}

impl PairBounds {
    fn new(counters: usize) -> Result<Self> {
        let mut empty = with_capacity(counters)?;
        empty.resize_with(counters, AtomicU64::default);
        Ok(Self {
            shift: u64::BITS - counters.ilog2().max(1),
            counters: empty,
        })
    }

    fn counter(&self, left: u32, right: u32) -> &AtomicU64 {
        let pair = u64::from(left) << 32 | u64::from(right);
        let mixed = (pair ^ pair >> 29).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let mixed = (mixed ^ mixed >> 32).wrapping_mul(0xd6e8_feb8_6659_fd93);
        &self.counters[(mixed >> self.shift) as usize % self.counters.len()]
    }

    /// Adds to the count of a pair. A counter that would exceed 64 bits keeps the largest number.
    fn add(&self, left: u32, right: u32, count: u64) {
        let counter = self.counter(left, right);
        let sum = |before: u64| Some(before.saturating_add(count));
        let _ = counter.fetch_update(Ordering::Relaxed, Ordering::Relaxed, sum);
    }

    fn of(&self, left: u32, right: u32) -> u64 {
        self.counter(left, right).load(Ordering::Relaxed)
    }

    fn largest(&self) -> u64 {
        let counters = self.counters.iter();
        let largest = counters
            .map(|counter| counter.load(Ordering::Relaxed))
            .max();
        largest.unwrap_or(0)
    }

    fn clear(&mut self) {
        self.counters.fill_with(AtomicU64::default);
    }
}

/// What all rounds share.
struct Work<'a> {
    bounds: PairBounds,
    max_length: usize,
    threads: usize,
    limits: &'a RoundLimits,
    interrupt: &'a Interrupt<'a>,
}

impl Work<'_> {
    /// Writes the symbols of all pieces, and counts their pairs.
    fn encode(
        &mut self,
        pieces: &mut (dyn PieceStream + Send),
        seed: &Seed<'_>,
    ) -> Result<SymbolFile> {
        self.bounds.clear();
        let pieces = Mutex::new(Some(pieces));
        let writer = SymbolWriter::new(&self.limits.spills)?;
        let this = &*self;
        let work = || -> Result<()> {
            let (mut batch, mut symbols) = (Batch::default(), Vec::new());
            let mut out = Vec::new();
            loop {
                this.interrupt.poll()?;
                {
                    let mut pieces = pieces.lock().unwrap_or_else(PoisonError::into_inner);
                    let Some(stream) = pieces.as_mut() else {
                        break;
                    };
                    match batch.fill(*stream) {
                        Ok(true) => {}
                        ended => {
                            *pieces = None;
                            ended?;
                        }
                    }
                }
                for (piece, count) in batch.pieces() {
                    symbols.clear();
                    seed.symbols(piece, &mut symbols, this.interrupt)?;
                    this.put(&symbols, count, seed, &mut out)?;
                }
                writer.write_full(&mut out)?;
            }
            writer.write(&mut out)
        };
        self.on_threads(work)?;
        Ok(writer.finish())
    }

    /// Applies further merges to all pieces, and counts their pairs.
    fn merge(
        &mut self,
        file: &SymbolFile,
        table: &PairTable,
        seed: &Seed<'_>,
    ) -> Result<SymbolFile> {
        self.bounds.clear();
        let writer = SymbolWriter::new(&self.limits.spills)?;
        let this = &*self;
        let next = AtomicUsize::new(0);
        let work = || -> Result<()> {
            let (mut block, mut symbols, mut out) = (Vec::new(), Vec::new(), Vec::new());
            while file.read(&next, &mut block)? {
                this.interrupt.poll()?;
                let mut rest = &block[..];
                while let Some(count) = take_piece(&mut rest, &mut symbols)? {
                    let length = match table.ranks() {
                        0 => symbols.len(),
                        _ => merge_symbols(table, &mut symbols, this.interrupt)?,
                    };
                    symbols.truncate(length);
                    this.put(&symbols, count, seed, &mut out)?;
                }
                writer.write_full(&mut out)?;
            }
            writer.write(&mut out)
        };
        self.on_threads(work)?;
        Ok(writer.finish())
    }

    /// Counts the pairs of a piece, and appends its symbols.
    fn put(&self, symbols: &[u32], count: u64, seed: &Seed<'_>, out: &mut Vec<u8>) -> Result<()> {
        if symbols.len() < 2 {
            return Ok(());
        }
        for pair in symbols.windows(2) {
            if !self.is_too_long(pair, seed) {
                self.bounds.add(pair[0], pair[1], count);
            }
        }
        put_piece(out, symbols, count)
    }

    fn is_too_long(&self, pair: &[u32], seed: &Seed<'_>) -> bool {
        self.max_length != usize::MAX
            && seed.length(pair[0]) + seed.length(pair[1]) > self.max_length
    }

    /// Cuts all pieces at rare pairs, and adds the fragments up. The threshold is at least `threshold` and below `ceiling`.
    fn gather(
        &self,
        file: &SymbolFile,
        seed: &Seed<'_>,
        threshold: u64,
        ceiling: u64,
    ) -> Result<Fragments> {
        let fragments = Fragments {
            table: PieceCounts::default(),
            threshold,
            ceiling: ceiling.max(threshold + 1),
            read: 0.0,
        };
        let current = AtomicU64::new(threshold);
        let shared = Mutex::new(fragments);
        let next = AtomicUsize::new(0);
        let threads = thread_count(self.threads, usize::MAX);
        let own_memory = OWN_FRAGMENTS.min(self.limits.memory / 16 / threads);
        let work = || -> Result<()> {
            let (mut block, mut symbols) = (Vec::new(), Vec::new());
            let (mut own, mut bytes) = (PieceCounts::default(), Vec::new());
            // The blocks of these fragments, and the threshold that the first of them was cut at.
            let (mut own_blocks, mut own_threshold) = (0, threshold);
            let give = |own: &mut PieceCounts, blocks: usize, threshold: u64| -> Result<()> {
                let mut fragments = lock(&shared);
                if threshold < fragments.threshold {
                    *own = self.cut_again(own, seed, fragments.threshold)?;
                }
                for (fragment, count) in own.iter() {
                    fragments.table.add(fragment, 0..fragment.len(), count)?;
                }
                *own = PieceCounts::default();
                fragments.limit(self, seed, blocks as f64 / file.blocks.len().max(1) as f64)?;
                current.store(fragments.threshold, Ordering::Relaxed);
                Ok(())
            };
            while file.read(&next, &mut block)? {
                self.interrupt.poll()?;
                let threshold = current.load(Ordering::Relaxed);
                if own_blocks == 0 {
                    own_threshold = threshold;
                }
                own_blocks += 1;
                let mut rest = &block[..];
                while let Some(count) = take_piece(&mut rest, &mut symbols)? {
                    self.cut(&symbols, seed, threshold, &mut bytes, |fragment| {
                        own.add(fragment, 0..fragment.len(), count)
                    })?;
                }
                if own.memory(0) > own_memory {
                    give(&mut own, std::mem::take(&mut own_blocks), own_threshold)?;
                }
            }
            give(&mut own, own_blocks, own_threshold)
        };
        self.on_threads(work)?;
        Ok(shared.into_inner().unwrap_or_else(PoisonError::into_inner))
    }

    /// Cuts fragments at a higher threshold.
    fn cut_again(
        &self,
        fragments: &PieceCounts,
        seed: &Seed<'_>,
        threshold: u64,
    ) -> Result<PieceCounts> {
        let mut table = PieceCounts::default();
        let (mut symbols, mut bytes) = (Vec::new(), Vec::new());
        for (fragment, count) in fragments.iter() {
            symbols.clear();
            seed.symbols(fragment, &mut symbols, self.interrupt)?;
            self.cut(&symbols, seed, threshold, &mut bytes, |fragment| {
                table.add(fragment, 0..fragment.len(), count)
            })?;
        }
        Ok(table)
    }

    /// Calls `visit` with the bytes of each fragment of more than one symbol.
    fn cut(
        &self,
        symbols: &[u32],
        seed: &Seed<'_>,
        threshold: u64,
        bytes: &mut Vec<u8>,
        mut visit: impl FnMut(&[u8]) -> Result<()>,
    ) -> Result<()> {
        let mut start = 0;
        for end in 1..=symbols.len() {
            let continues = symbols.get(end - 1..=end).is_some_and(|pair| {
                self.bounds.of(pair[0], pair[1]) >= threshold && !self.is_too_long(pair, seed)
            });
            if continues {
                continue;
            }
            if end - start > 1 {
                bytes.clear();
                for &symbol in &symbols[start..end] {
                    append(bytes, &seed.tokens[symbol as usize])?;
                }
                visit(bytes)?;
            }
            start = end;
        }
        Ok(())
    }

    fn on_threads(&self, work: impl Fn() -> Result<()> + Sync) -> Result<()> {
        let threads = thread_count(self.threads, usize::MAX);
        let stop_on_error = || {
            let outcome = work();
            outcome.inspect_err(|error| {
                if !matches!(error, Error::Interrupted) {
                    self.interrupt.stop();
                }
            })
        };
        let outcomes = on_threads(threads, self.interrupt, stop_on_error);
        let mut failures = outcomes.into_iter().filter_map(std::result::Result::err);
        let mut first = failures.next();
        for error in failures {
            if matches!(first, Some(Error::Interrupted)) {
                first = Some(error);
            }
        }
        first.map_or_else(|| self.interrupt.check(), Err)
    }
}

/// Fragments of all pieces that were cut so far.
struct Fragments {
    table: PieceCounts,
    /// Pairs with a bound below this are cut.
    threshold: u64,
    /// No pair has this count.
    ceiling: u64,
    /// The part of the blocks whose fragments are in the table.
    read: f64,
}

impl Fragments {
    /// Raises the threshold if the fragments need too much memory, or if those of the sample show that all will. A further
    /// part `more` of the blocks was cut.
    fn limit(&mut self, work: &Work<'_>, seed: &Seed<'_>, more: f64) -> Result<()> {
        let memory = work.limits.memory;
        let fits = |table: &PieceCounts, memory: usize| {
            table.cost() <= memory && table.bytes() + table.len() < MAX_SLOTS as usize
        };
        let is_sample = self.read < SAMPLE && self.read + more >= SAMPLE;
        self.read += more;
        let enough = (memory as f64 * FILLED * self.read.max(SAMPLE).powf(HEAPS_EXPONENT)) as usize;
        if fits(&self.table, if is_sample { enough } else { memory }) {
            return Ok(());
        }
        while !fits(&self.table, enough) {
            let highest = self.ceiling - 1;
            if self.threshold >= highest {
                if fits(&self.table, memory) {
                    return Ok(());
                }
                return Err(Error::Option(format!(
                    "max_memory is too small: the pairs that occur {highest} times need more than {memory} bytes; give \
                     more memory, a smaller vocab_size or a larger min_frequency"
                )));
            }
            // Between the threshold and the ceiling, so at most the highest.
            let middle = self.threshold.midpoint(self.ceiling);
            self.threshold = middle.min(self.threshold.saturating_add(self.threshold / 2 + 1));
            self.table = work.cut_again(&self.table, seed, self.threshold)?;
            work.interrupt.poll()?;
        }
        Ok(())
    }
}

/// Some pieces.
#[derive(Default)]
struct Batch {
    bytes: Vec<u8>,
    /// The end of each piece in the bytes, and its count.
    ends: Vec<(usize, u64)>,
}

impl Batch {
    /// Takes the next pieces of a stream. False if there are none.
    fn fill(&mut self, stream: &mut (dyn PieceStream + Send)) -> Result<bool> {
        self.bytes.clear();
        self.ends.clear();
        while self.bytes.len() < BLOCK_BYTES && stream.advance()? {
            append(&mut self.bytes, stream.piece())?;
            push(&mut self.ends, (self.bytes.len(), stream.count()))?;
        }
        Ok(!self.ends.is_empty())
    }

    fn pieces(&self) -> impl Iterator<Item = (&[u8], u64)> {
        let mut start = 0;
        self.ends.iter().map(move |&(end, count)| {
            let piece = &self.bytes[std::mem::replace(&mut start, end)..end];
            (piece, count)
        })
    }
}

/// The symbols of all pieces, in blocks.
struct SymbolFile {
    file: TemporaryFile,
    /// Where each block begins, and its length. The pieces of neighbouring blocks are alike, as they are in byte order: so
    /// the blocks are in the order of a hash, and the first ones are like all.
    blocks: Vec<(u64, usize)>,
}

impl SymbolFile {
    /// Reads the next block. False at the end.
    fn read(&self, next: &AtomicUsize, block: &mut Vec<u8>) -> Result<bool> {
        let number = next.fetch_add(1, Ordering::Relaxed);
        let Some(&(start, length)) = self.blocks.get(number) else {
            return Ok(false);
        };
        self.file.read_exact(block, length, start)?;
        Ok(true)
    }
}

struct SymbolWriter {
    file: TemporaryFile,
    /// The blocks and their bytes.
    blocks: Mutex<(Vec<(u64, usize)>, u64)>,
}

impl SymbolWriter {
    fn new(spills: &Spills) -> Result<Self> {
        let file = spills.file()?;
        let blocks = Mutex::default();
        Ok(Self { file, blocks })
    }

    /// Writes a block if there are enough bytes for one.
    fn write_full(&self, bytes: &mut Vec<u8>) -> Result<()> {
        if bytes.len() < BLOCK_BYTES {
            return Ok(());
        }
        self.write(bytes)
    }

    /// Writes bytes as a block.
    fn write(&self, bytes: &mut Vec<u8>) -> Result<()> {
        if !bytes.is_empty() {
            let mut blocks = lock(&self.blocks);
            let (list, size) = &mut *blocks;
            self.file.write(bytes)?;
            push(list, (*size, bytes.len()))?;
            *size += bytes.len() as u64;
            bytes.clear();
        }
        Ok(())
    }

    fn finish(self) -> SymbolFile {
        let blocks = self.blocks.into_inner();
        let (mut blocks, _) = blocks.unwrap_or_else(PoisonError::into_inner);
        blocks.sort_unstable_by_key(|(start, _)| FxBuildHasher.hash_one(start));
        SymbolFile {
            file: self.file,
            blocks,
        }
    }
}

/// Appends the count of a piece, the number of its symbols, and the symbols.
fn put_piece(bytes: &mut Vec<u8>, symbols: &[u32], count: u64) -> Result<()> {
    use crate::train::counts::push_number;
    reserve(bytes, 20 + 5 * symbols.len())?;
    push_number(bytes, count);
    push_number(bytes, symbols.len() as u64);
    for &symbol in symbols {
        push_number(bytes, symbol.into());
    }
    Ok(())
}

/// Takes a piece: returns its count, or None at the end.
fn take_piece(bytes: &mut &[u8], symbols: &mut Vec<u32>) -> Result<Option<u64>> {
    use crate::train::counts::take_number;
    symbols.clear();
    let Some(count) = take_number(bytes) else {
        return Ok(None);
    };
    // The file is written by this process.
    let length = take_number(bytes).unwrap_or(0) as usize;
    reserve(symbols, length)?;
    symbols.extend((0..length).map_while(|_| take_number(bytes).map(|symbol| symbol as u32)));
    Ok(Some(count))
}
