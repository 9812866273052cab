//! Counts the pieces of texts on many threads, in bounded memory.
//!
//! With a memory limit, the tables of all threads become a sorted run on the disk when they are full, and counting goes on
//! with empty tables. The threads have the same frequent pieces: the run holds their sums. The runs and the last tables are
//! added up when the counts are read. Nothing of that shows in the counts.

use super::counted::{Counted, Pieces};
use super::runs::{Run, Totals};
use super::sample::Sample;
use super::shared::{SharedCounts, ThreadCounts};
use super::splitter::TextSplitter;
use super::streams::{PieceStream, Sums, Weighted};
use super::table::{PieceCounts, VIRTUAL_BUCKETS};
use crate::alignment::OffsetMap;
use crate::cache::{has_key, take_batch, KeyBatch};
use crate::error::{Error, Result};
use crate::interrupt::{Interrupt, Poller};
use crate::normalize::Normalization;
use crate::pretokenize::{Block, Piece};
use crate::threads::{lock, on_threads, thread_count};
use crate::train::temporary::Spills;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::Mutex;

/// More runs than this are added up: each open run takes a file and a buffer.
const MAX_RUNS: usize = 64;
/// Bytes of a memory limit for each thread. A thread takes about a third of it for its section of text and its waiting
/// pieces, which the tables leave free.
const THREAD_MEMORY: usize = 18 << 20;
/// The tables of a thread may take this many more pieces before they are looked at again.
const UNCHECKED_PIECES: usize = 1 << 16;

/// The limits of a count.
#[derive(Clone, Debug, Default)]
pub struct Limits {
    /// Bytes that counting and learning may take, approximately. Further counts go to temporary files.
    pub max_memory: Option<usize>,
    /// Directory of the temporary files; None for the system's.
    pub spill_directory: Option<PathBuf>,
    /// Which documents to count; None for all.
    pub sample: Option<Sample>,
}

/// The settings of a count. The counts themselves are in [`Counted`].
pub struct Counter {
    pub(super) splitter: TextSplitter,
    threads: usize,
    limits: Limits,
    spills: Spills,
    max_runs: usize,
}

/// A call that counts with a counter's settings and adds to the counts of a corpus.
pub struct CountCall<'a> {
    /// The settings.
    pub counter: &'a Counter,
    /// Where the counts go.
    pub counted: &'a mut Counted,
    /// Each text and file counts this many times.
    pub weight: u64,
    /// Stops the call.
    pub interrupt: &'a Interrupt<'a>,
}

/// Gets the number of bytes that a call has counted.
pub type Progress<'a> = &'a mut (dyn FnMut(u64) + Send);

impl Counter {
    /// Cuts text at special tokens first: no piece crosses one. `threads` 0 uses one per processor.
    pub fn new(
        patterns: &[String],
        normalization: Option<Normalization>,
        special_tokens: Vec<String>,
        threads: usize,
        limits: Limits,
    ) -> Result<Self> {
        Ok(Self {
            splitter: TextSplitter::new(patterns, normalization, special_tokens)?,
            threads,
            spills: Spills::new(limits.spill_directory.clone()),
            limits,
            max_runs: MAX_RUNS,
        })
    }

    /// Bytes that counting and learning may take; None for any number.
    pub fn max_memory(&self) -> Option<usize> {
        self.limits.max_memory
    }

    /// The number of threads that the memory limit allows.
    fn most_threads(&self) -> usize {
        let memory = self.limits.max_memory;
        memory.map_or(usize::MAX, |memory| (memory / THREAD_MEMORY).max(2))
    }

    /// Bytes that the tables may take; None if they never spill.
    fn table_memory(&self) -> Option<usize> {
        self.limits.max_memory.map(|memory| memory / 10 * 7)
    }

    /// Adds a piece that was counted elsewhere.
    pub fn add_piece(
        &self,
        piece: &[u8],
        count: u64,
        counted: &mut Counted,
        interrupt: &Interrupt<'_>,
    ) -> Result<()> {
        counted.counts.add(piece, 0..piece.len(), count)?;
        counted.mass = counted.mass.saturating_add(count.into());
        counted.unchecked_bytes = counted.unchecked_bytes.saturating_add(piece.len());
        self.limit_memory(counted, interrupt)
    }

    /// Adds other counts, `weight` times. An error of their sums leaves both as they are.
    pub fn merge(
        &self,
        other: &mut Counted,
        weight: u64,
        counted: &mut Counted,
        interrupt: &Interrupt<'_>,
    ) -> Result<()> {
        let mass = other.total_mass(interrupt)?;
        let mass = mass.saturating_mul(weight.into());
        let mass = mass.saturating_add(counted.total_mass(interrupt)?);
        let in_memory = counted.runs.is_empty() && other.runs.is_empty();
        if in_memory || mass <= u64::MAX.into() {
            other.merge_pending(self.threads)?;
            counted.merge_pending(self.threads)?;
            let mut added = vec![std::mem::take(&mut other.counts)];
            if let Err(error) = counted.counts.merge(&mut added, weight, self.threads) {
                other.counts = added.pop().unwrap_or_default();
                return Err(error);
            }
            let mass = other.mass.saturating_mul(weight.into());
            counted.mass = counted.mass.saturating_add(mass);
            for mut run in other.runs.drain(..) {
                run.weight = run.weight.saturating_mul(weight);
                counted.runs.push(run);
            }
        } else {
            // A sum may be too large, which shows when all is added up.
            let mut runs = counted.runs.clone();
            for run in &other.runs {
                let weight = crate::train::checked_product(run.weight, weight)?;
                let mut run = run.clone();
                run.weight = weight;
                runs.push(run);
            }
            let mut tables = counted.tables();
            for (table, times) in other.tables() {
                tables.push((table, crate::train::checked_product(times, weight)?));
            }
            let run = self.sum_up(&mut tables, &runs, interrupt)?;
            counted.runs = vec![run];
            counted.mass = 0;
            other.runs.clear();
        }
        other.mass = 0;
        counted.documents += other.documents;
        counted.unsampled += other.unsampled;
        counted.normalized |= other.normalized;
        counted.unchecked_bytes = usize::MAX;
        self.limit_runs(counted, interrupt)?;
        self.limit_memory(counted, interrupt)
    }

    /// Spills the pieces if they take too much memory. Looks at them once in a while.
    pub(super) fn limit_memory(
        &self,
        counted: &mut Counted,
        interrupt: &Interrupt<'_>,
    ) -> Result<()> {
        let Some(memory) = self.table_memory() else {
            return Ok(());
        };
        if counted.unchecked_bytes < memory / 64 {
            return Ok(());
        }
        counted.unchecked_bytes = 0;
        if counted.memory(0) > memory {
            self.spill(counted, interrupt)?;
        }
        Ok(())
    }

    /// Spills what is in memory if it takes more than a part of the limit: other counts will need memory.
    pub fn make_room(&self, counted: &mut Counted, interrupt: &Interrupt<'_>) -> Result<()> {
        match self.table_memory() {
            Some(memory) if counted.memory(0) > memory / 8 => self.spill(counted, interrupt),
            _ => Ok(()),
        }
    }

    /// Writes all pieces in memory to a run.
    fn spill(&self, counted: &mut Counted, interrupt: &Interrupt<'_>) -> Result<()> {
        let mut tables = counted.tables();
        if tables.is_empty() {
            // Tables without pieces that hold memory.
            counted.counts = PieceCounts::default();
            counted.pending.clear();
            return Ok(());
        }
        let run = self.sum_up(&mut tables, &[], interrupt)?;
        counted.runs.push(run);
        counted.mass = 0;
        self.limit_runs(counted, interrupt)
    }

    /// Adds tables and runs up to a run. Leaves the tables empty, or as they were if it fails.
    fn sum_up(
        &self,
        tables: &mut [(&mut PieceCounts, u64)],
        runs: &[Run],
        interrupt: &Interrupt<'_>,
    ) -> Result<Run> {
        let kept = self.table_memory().unwrap_or(0) / 4 * 3;
        PieceCounts::drain_sorted(tables, kept, self.threads, |mut streams| {
            streams.extend(runs.iter().map(|run| Weighted {
                stream: Box::new(run.reader()),
                weight: run.weight,
            }));
            Run::spill(&mut Sums::new(streams)?, self.spills.file()?, interrupt)
        })
    }

    /// Adds the smallest runs up while there are too many. A piece is written again only with other runs of its size.
    fn limit_runs(&self, counted: &mut Counted, interrupt: &Interrupt<'_>) -> Result<()> {
        while counted.runs.len() > self.max_runs {
            for run in &mut counted.runs {
                run.verify(interrupt)?;
            }
            counted.runs.sort_by_key(Run::size);
            let smallest = self.max_runs / 2 + 1;
            let run = self.sum_up(&mut [], &counted.runs[..smallest], interrupt)?;
            counted.runs.splice(..smallest, [run]);
        }
        Ok(())
    }

    /// Adds everything up: to one table if all is in memory, otherwise to one run.
    pub fn settle(&self, counted: &mut Counted, interrupt: &Interrupt<'_>) -> Result<()> {
        for run in &mut counted.runs {
            run.verify(interrupt)?;
        }
        let has_tables = !counted.tables().is_empty();
        match &counted.runs[..] {
            [] => return counted.merge_pending(self.threads),
            [run] if run.weight == 1 && !has_tables => {}
            _ => self.write_run(counted, interrupt)?,
        }
        counted.counts = PieceCounts::default();
        counted.pending.clear();
        Ok(())
    }

    /// Writes everything to one run.
    fn write_run(&self, counted: &mut Counted, interrupt: &Interrupt<'_>) -> Result<()> {
        let runs = counted.runs.clone();
        let run = self.sum_up(&mut counted.tables(), &runs, interrupt)?;
        counted.runs = vec![run];
        counted.mass = 0;
        counted.counts = PieceCounts::default();
        counted.pending.clear();
        Ok(())
    }

    /// All pieces in byte order.
    pub fn pieces<'a>(
        &self,
        counted: &'a mut Counted,
        interrupt: &Interrupt<'_>,
    ) -> Result<Pieces<'a>> {
        self.settle(counted, interrupt)?;
        counted.settled()
    }

    /// All pieces as a run on the disk.
    pub fn run(&self, counted: &mut Counted, interrupt: &Interrupt<'_>) -> Result<Run> {
        self.settle(counted, interrupt)?;
        if counted.runs.is_empty() {
            self.write_run(counted, interrupt)?;
        }
        counted.runs.first().cloned().ok_or(Error::Interrupted)
    }

    /// What all pieces are.
    pub fn totals(&self, counted: &mut Counted, interrupt: &Interrupt<'_>) -> Result<Totals> {
        self.settle(counted, interrupt)?;
        Ok(counted.settled_totals())
    }

    /// For each count, the pieces that occur so often: the rarest first.
    pub fn by_count(
        &self,
        counted: &mut Counted,
        interrupt: &Interrupt<'_>,
    ) -> Result<Vec<(u64, Totals)>> {
        self.settle(counted, interrupt)?;
        counted.by_count(interrupt)
    }

    /// Bytes on the disk.
    pub fn spilled_bytes(&self, counted: &Counted) -> u64 {
        counted.runs.iter().map(Run::size).sum()
    }

    /// Reads files of counts that were not read yet; without a memory limit, into memory.
    pub fn resume(&self, counted: &mut Counted, interrupt: &Interrupt<'_>) -> Result<()> {
        counted.verify(interrupt)?;
        if self.limits.max_memory.is_none() {
            counted.load(interrupt)?;
        }
        Ok(())
    }

    /// Removes the pieces with counts below `min_count`.
    pub fn prune(
        &self,
        min_count: u64,
        counted: &mut Counted,
        interrupt: &Interrupt<'_>,
    ) -> Result<()> {
        self.settle(counted, interrupt)?;
        if min_count <= 1 {
            return Ok(());
        }
        let Some(run) = counted.runs.first() else {
            return counted.counts.prune(min_count);
        };
        let mut frequent = Frequent {
            stream: run.reader(),
            min_count,
        };
        counted.runs = vec![Run::spill(&mut frequent, self.spills.file()?, interrupt)?];
        Ok(())
    }

    /// Fails if only some documents count, and a file is one.
    pub(super) fn check_not_sampled(&self) -> Result<()> {
        match self.limits.sample {
            None => Ok(()),
            Some(_) => Err(Error::Option(
                "a sample is of documents, and a text file that is one document cannot be sampled: count documents \
                 by line, or give texts"
                    .to_owned(),
            )),
        }
    }
}

/// The pieces of a stream that are frequent enough.
struct Frequent<S> {
    stream: S,
    min_count: u64,
}

impl<S: PieceStream> PieceStream for Frequent<S> {
    fn advance(&mut self) -> Result<bool> {
        while self.stream.advance()? {
            if self.stream.count() >= self.min_count {
                return Ok(true);
            }
        }
        Ok(false)
    }

    fn piece(&self) -> &[u8] {
        self.stream.piece()
    }

    fn count(&self) -> u64 {
        self.stream.count()
    }
}

impl CountCall<'_> {
    /// Counts texts, each a document.
    pub fn add_texts(&mut self, texts: &[&str]) -> Result<()> {
        let splitter = &self.counter.splitter;
        let (mut sections, kept);
        let (mut texts, given) = (texts, texts.len());
        if let Some(sample) = self.counter.limits.sample {
            kept = sample.of(texts)?;
            texts = &kept;
        }
        sections = Vec::new();
        for text in texts {
            splitter.sections(text, &mut sections)?;
        }
        self.count_sections(&sections)?;
        self.counted.documents += texts.len() as u64;
        self.counted.unsampled += (given - texts.len()) as u64;
        self.counter.limit_memory(self.counted, self.interrupt)
    }

    /// Counts sections of texts.
    pub(super) fn count_sections(&mut self, sections: &[&str]) -> Result<()> {
        let size = |section: &&str| section.len();
        self.count_parallel(sections, size, &mut |_| {}, |text, worker| {
            worker.count(text)
        })
    }

    /// Runs `count` on each section, in parallel. The error is that of the first section that has one.
    pub(super) fn count_parallel<S: Sync>(
        &mut self,
        sections: &[S],
        size: impl Fn(&S) -> usize + Sync,
        progress: Progress<'_>,
        count: impl Fn(&S, &mut Worker<'_>) -> Result<()> + Sync,
    ) -> Result<()> {
        let Counter {
            splitter,
            threads: requested,
            ..
        } = self.counter;
        let (counted, interrupt, weight) = (&mut *self.counted, self.interrupt, self.weight);
        let bytes = sections.iter().map(&size).sum();
        counted.unchecked_bytes = counted.unchecked_bytes.saturating_add(bytes);
        let (next, done) = (AtomicUsize::new(0), AtomicU64::new(0));
        let normalized = AtomicBool::new(false);
        let progress = Mutex::new(progress);
        let most = self.counter.most_threads().min(sections.len().max(1));
        let threads = thread_count(*requested, bytes).min(most);
        // The tables of all threads share the memory.
        let memory = self.counter.table_memory();
        let more = memory.map_or(0, |memory| (memory / 1000 / threads).min(UNCHECKED_PIECES));
        // A text has at most as many pieces as bytes, and normalisation makes it at most 18 times as long.
        let mass = 32 * bytes as u128 * u128::from(weight);
        loop {
            counted.mass = counted.mass.saturating_add(mass);
            let tables = counted.take_tables(weight, *requested)?;
            let used = lock(&tables).iter().map(|table| table.memory(more)).sum();
            let used = AtomicUsize::new(used);
            // A thread cannot take back what it added, so no sum may be too large.
            let shares = threads > 1 && counted.mass <= u64::MAX.into();
            let shared = SharedCounts::new(&mut counted.counts, weight, more * threads);
            let is_full = AtomicBool::new(false);
            let outcomes = on_threads(threads, interrupt, || {
                let table = lock(&tables).pop().unwrap_or_default();
                let mut own = table.memory(more);
                let counts = ThreadCounts::new(table, shares.then_some(&shared));
                let mut worker = Worker::new(splitter, counts, interrupt);
                let outcome = loop {
                    if is_full.load(Ordering::Relaxed) {
                        break Ok(());
                    }
                    let number = next.fetch_add(1, Ordering::Relaxed);
                    let Some(section) = sections.get(number) else {
                        break Ok(());
                    };
                    let polled = interrupt.poll();
                    if let Err(error) = polled.and_then(|()| count(section, &mut worker)) {
                        // Running sections finish, because an earlier one may fail too.
                        next.store(sections.len(), Ordering::Relaxed);
                        break Err((number, error));
                    }
                    if let Some(memory) = memory {
                        let now = worker.counts.memory(more);
                        let change = now.wrapping_sub(std::mem::replace(&mut own, now));
                        let before = used.fetch_add(change, Ordering::Relaxed);
                        let all = before.wrapping_add(change).saturating_add(shared.memory());
                        is_full.fetch_or(all > memory, Ordering::Relaxed);
                    }
                    let size = size(section) as u64;
                    let done = done.fetch_add(size, Ordering::Relaxed) + size;
                    // Skipped while another thread reports.
                    if let Ok(mut progress) = progress.try_lock() {
                        progress(done);
                    }
                };
                normalized.fetch_or(worker.normalized, Ordering::Relaxed);
                let (table, passed_on) = worker.counts.finish();
                lock(&tables).push(table);
                outcome.and(passed_on.map_err(|error| (sections.len(), error)))
            });
            counted.pending = std::mem::take(&mut lock(&tables));
            counted.normalized |= normalized.load(Ordering::Relaxed);
            let failures = outcomes.into_iter().filter_map(std::result::Result::err);
            let first: Option<(usize, Error)> = failures.min_by_key(|(number, _)| *number);
            if let Some((_, error)) = first {
                return Err(error);
            }
            interrupt.check()?;
            if !is_full.into_inner() {
                return Ok(());
            }
            self.counter.spill(counted, interrupt)?;
        }
    }
}

/// One thread's counts and buffers.
pub struct Worker<'a> {
    counts: ThreadCounts<'a>,
    /// Whether normalisation changed a section.
    normalized: bool,
    /// Bytes of the file section that is being read.
    pub buffer: Vec<u8>,
    splitter: &'a TextSplitter,
    block: Block,
    keys: KeyBatch,
    poller: Poller<'a>,
}

impl<'a> Worker<'a> {
    fn new(
        splitter: &'a TextSplitter,
        counts: ThreadCounts<'a>,
        interrupt: &'a Interrupt<'a>,
    ) -> Self {
        Self {
            counts,
            normalized: false,
            buffer: Vec::new(),
            splitter,
            block: Block::default(),
            keys: KeyBatch::default(),
            poller: Poller::new(interrupt),
        }
    }

    /// Counts the pieces of a section.
    pub fn count(&mut self, section: &str) -> Result<()> {
        let rewritten = match self.splitter.normalization {
            Some(form) => form.rewrite(section, false, self.poller.interrupt())?,
            None => None,
        };
        self.normalized |= rewritten.is_some();
        let text = match &rewritten {
            Some((normalized, _)) => normalized,
            None => section.as_bytes(),
        };
        let patterns = &self.splitter.patterns;
        if patterns.has_blocks() && u32::try_from(text.len()).is_ok() {
            return self.count_blocks(text);
        }
        let mut outcome = Ok(());
        // Counting uses no offsets.
        let offsets = OffsetMap::original(0);
        patterns.split(text, &offsets, false, |Piece { text, range, .. }| {
            let counted = self.counts.add(text, range);
            outcome = counted.and_then(|()| self.poller.advance(1));
            outcome.is_ok()
        })?;
        outcome
    }

    fn count_blocks(&mut self, text: &[u8]) -> Result<()> {
        let mut from = 0;
        while from < text.len() {
            let patterns = &self.splitter.patterns;
            let to = patterns.next_block(text, true, from, &mut self.block)?;
            let mut bounds = self.block.bounds();
            let pieces = bounds.len();
            while bounds.len() > 1 {
                let batch = take_batch(&mut bounds);
                self.keys.pack(text, from, batch, VIRTUAL_BUCKETS);
                let (keys, buckets) = self.keys.get(batch.len() - 1);
                for &bucket in buckets {
                    self.counts.prefetch(bucket);
                }
                for (ends, (&key, &bucket)) in batch.windows(2).zip(keys.iter().zip(buckets)) {
                    let (start, end) = (ends[0] as usize, ends[1] as usize);
                    if has_key(end - start) {
                        self.counts.add_short(key, bucket)?;
                    } else {
                        self.counts.add_long(&text[from + start..from + end])?;
                    }
                }
            }
            self.poller.advance(pieces)?;
            from = to;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::super::samples::{add, count_whole, counter, sample, table, Counts, PATTERN, WORDS};
    use super::*;

    #[test]
    fn a_weight_is_that_many_times_the_same() {
        let counter = counter(PATTERN, None, 2);
        let (text, other) = (sample(100_000), "word and other words");
        let (mut weighted, mut repeated) = (Counted::default(), Counted::default());
        for (text, weight) in [(&text[..], 1), (other, 3), (&text[..], 2)] {
            add(&counter, &mut weighted, weight, text);
            (0..weight).for_each(|_| add(&counter, &mut repeated, 1, text));
        }
        assert_eq!((weighted.documents, repeated.documents), (3, 6));
        assert_eq!(table(&mut weighted), table(&mut repeated));
        let mut sum = Counted::default();
        add(&counter, &mut sum, 1, &text);
        for (text, weight) in [(other, 3), (&text[..], 2)] {
            let mut counted = Counted::default();
            add(&counter, &mut counted, 1, text);
            let merged = counter.merge(&mut counted, weight, &mut sum, &Interrupt::never());
            merged.unwrap();
        }
        assert_eq!(table(&mut sum), table(&mut repeated));
    }

    #[test]
    fn a_text_counts_its_pieces() {
        let text = sample(100_000);
        for (pattern, form) in [
            (PATTERN, None),
            (PATTERN, Some(Normalization::Nfc)),
            (WORDS, None),
        ] {
            let counter = counter(pattern, form, 1);
            let mut counted = Counted::default();
            let never = Interrupt::never();
            add(&counter, &mut counted, 1, &text);
            let mut expected = count_whole(&counter, &text);
            assert!(table(&mut counted) == expected);
            counter
                .add_piece(b"piece", 7, &mut counted, &never)
                .unwrap();
            *expected.entry(b"piece".to_vec()).or_insert(0) += 7;
            assert!(table(&mut counted) == expected);
        }
    }

    #[test]
    fn documents_add_up() {
        let counter = counter(PATTERN, None, 1);
        let counted = || Counted::new(PieceCounts::default(), 5);
        let mut sum = counted();
        counter
            .merge(&mut counted(), 10, &mut sum, &Interrupt::never())
            .unwrap();
        assert_eq!(sum.documents, 10);
    }

    #[test]
    fn it_is_known_whether_normalisation_changed_text() {
        // In many sections, the last of which decides.
        let plain = "café 日本 word ".repeat(200_000);
        let changed = plain.clone() + "cafe\u{301} ";
        for (form, text, expected) in [
            (None, &changed, false),
            (Some(Normalization::Nfc), &plain, false),
            (Some(Normalization::Nfc), &changed, true),
            (Some(Normalization::Nfkc), &plain, false),
            (Some(Normalization::Nfd), &plain, true),
        ] {
            let counter = counter(PATTERN, form, 2);
            let mut counted = Counted::default();
            add(&counter, &mut counted, 1, "<|end of text|>");
            assert!(!counted.normalized);
            add(&counter, &mut counted, 1, text);
            assert_eq!(counted.normalized, expected, "{form:?}");
            add(&counter, &mut counted, 1, "more");
            let mut sum = Counted::default();
            let never = Interrupt::never();
            counter.merge(&mut counted, 2, &mut sum, &never).unwrap();
            let mut none = Counted::default();
            counter.merge(&mut none, 1, &mut sum, &never).unwrap();
            assert_eq!(sum.normalized, expected, "{form:?}, merged");
        }
    }

    fn spilling(threads: usize, memory: usize, max_runs: usize) -> Counter {
        let limits = Limits {
            max_memory: Some(memory),
            ..Limits::default()
        };
        let special = vec!["<|end of text|>".to_owned(), "<|end".to_owned()];
        let patterns = [PATTERN.to_owned()];
        let mut counter = Counter::new(&patterns, None, special, threads, limits).unwrap();
        counter.max_runs = max_runs;
        counter
    }

    /// Fails if a counter does not give these counts in order, also when it is asked again.
    fn check(counter: &Counter, counted: &mut Counted, expected: &Counts) {
        let never = Interrupt::never();
        for _ in 0..2 {
            let mut pieces = counter.pieces(counted, &never).unwrap();
            for (piece, count) in expected {
                assert!(pieces.advance().unwrap());
                assert_eq!((pieces.piece(), pieces.count()), (&piece[..], *count));
            }
            assert!(!pieces.advance().unwrap());
        }
        let totals = counter.totals(counted, &never).unwrap();
        assert_eq!(totals.distinct, expected.len() as u64);
        assert_eq!(totals.pieces().unwrap(), expected.values().sum::<u64>());
        let bytes: usize = expected.keys().map(Vec::len).sum();
        assert_eq!(totals.bytes, bytes as u64);
    }

    /// Texts of ever new words between ones that stay, some of them long.
    fn new_words(texts: u64, words: u64) -> Vec<String> {
        let word = |number: u64| {
            let hash = number.wrapping_mul(0x9e37_79b9_7f4a_7c15);
            let long = if number.is_multiple_of(50) { "x" } else { "" };
            format!(" {}{hash:x}", long.repeat(20))
        };
        let texts = (0..texts).map(|text| {
            let words = (text * words..(text + 1) * words).map(|n| word(n) + " often");
            words.collect()
        });
        texts.collect()
    }

    #[test]
    fn spilled_counts_are_those_in_memory() {
        let texts = new_words(12, 4000);
        let mut expected = Counts::new();
        for (number, text) in (0u64..).zip(&texts) {
            for (piece, count) in count_whole(&counter(PATTERN, None, 1), text) {
                *expected.entry(piece).or_insert(0) += count * (1 + number % 3 / 2);
            }
        }
        for (threads, memory, max_runs) in [(1, 1 << 20, 64), (3, 1 << 19, 3), (2, 1, 5)] {
            let counter = spilling(threads, memory, max_runs);
            let never = Interrupt::never();
            let mut counted = Counted::default();
            for (number, text) in (0u64..).zip(&texts) {
                add(&counter, &mut counted, 1 + number % 3 / 2, text);
                assert!(counted.runs.len() <= max_runs);
            }
            assert!(!counted.runs.is_empty());
            check(&counter, &mut counted.copy().unwrap(), &expected);
            assert!(table(&mut counted.copy().unwrap()) == expected);
            // More of the same after it was settled.
            check(&counter, &mut counted, &expected);
            let run = counter.run(&mut counted, &never).unwrap();
            assert_eq!(run.totals().distinct, expected.len() as u64);
            counter
                .add_piece(b" often", 5, &mut counted, &never)
                .unwrap();
            let mut more = expected.clone();
            *more.get_mut(&b" often"[..]).unwrap() += 5;
            check(&counter, &mut counted, &more);
        }
    }

    #[test]
    fn sections_of_one_call_spill_too() {
        let text = new_words(1, 300_000).concat();
        let expected = count_whole(&counter(PATTERN, None, 1), &text);
        for threads in [1, 2, 5] {
            let counter = spilling(threads, 2 << 20, 64);
            let mut counted = Counted::default();
            add(&counter, &mut counted, 1, &text);
            assert!(counted.runs.len() > 1);
            assert!(counted.memory(0) < (2 << 20) + (threads << 23));
            check(&counter, &mut counted, &expected);
        }
    }

    #[test]
    fn spilled_counts_are_merged_with_weights() {
        let never = Interrupt::never();
        let counter = spilling(2, 1, 64);
        let mut expected = Counts::new();
        let mut sum = Counted::default();
        for (weight, text) in (1..5).zip(new_words(4, 500)) {
            for (piece, count) in count_whole(&counter, &text) {
                *expected.entry(piece).or_insert(0) += count * weight;
            }
            let mut counted = Counted::default();
            add(&counter, &mut counted, 1, &text);
            counter
                .merge(&mut counted, weight, &mut sum, &never)
                .unwrap();
        }
        assert_eq!(sum.documents, 4);
        check(&counter, &mut sum, &expected);
        counter.make_room(&mut sum, &never).unwrap();
        assert_eq!(sum.memory(0), 0);
        // Sums beyond 64 bits fail, and change nothing.
        for piece in [" often", "a long piece that is not a key"] {
            let mut large = Counted::default();
            let add = |count, counted: &mut Counted| {
                counter.add_piece(piece.as_bytes(), count, counted, &never)
            };
            add(1 << 62, &mut large).unwrap();
            add(1, &mut sum).unwrap();
            *expected.entry(piece.into()).or_insert(0) += 1;
            for spills in [false, true] {
                if spills {
                    large.unchecked_bytes = usize::MAX;
                    counter.limit_memory(&mut large, &never).unwrap();
                    assert_eq!(large.runs.len(), 1);
                }
                for (weight, fits) in [(4, false), (1 << 62, false), (3, true)] {
                    let (mut other, mut sum) = (large.copy().unwrap(), sum.copy().unwrap());
                    let merged = counter.merge(&mut other, weight, &mut sum, &never);
                    assert_eq!(merged.is_ok(), fits);
                    let mut expected = expected.clone();
                    if fits {
                        *expected.get_mut(piece.as_bytes()).unwrap() += 3 << 62;
                        let mut pieces = counter.pieces(&mut sum, &never).unwrap();
                        for (piece, count) in &expected {
                            assert!(pieces.advance().unwrap());
                            assert_eq!((pieces.piece(), pieces.count()), (&piece[..], *count));
                        }
                    } else {
                        check(&counter, &mut sum, &expected);
                        let same = Counts::from([(piece.into(), 1 << 62)]);
                        check(&counter, &mut other, &same);
                    }
                }
            }
        }
    }

    #[test]
    fn rare_pieces_are_removed() {
        let text =
            new_words(1, 3000).concat() + &" twice".repeat(2) + &" long pieces that".repeat(3);
        let whole = count_whole(&counter(PATTERN, None, 1), &text);
        for counter in [counter(PATTERN, None, 1), spilling(1, 1, 64)] {
            let never = Interrupt::never();
            let mut counted = Counted::default();
            add(&counter, &mut counted, 1, &text);
            for min_count in [0, 1, 2, 3] {
                counter.prune(min_count, &mut counted, &never).unwrap();
                let mut expected = whole.clone();
                expected.retain(|_, count| *count >= min_count);
                check(&counter, &mut counted, &expected);
            }
        }
    }
}
