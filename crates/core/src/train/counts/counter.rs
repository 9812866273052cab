//! Counts the pieces of texts on many threads, in bounded memory.

use super::splitter::{TextSplitter, SECTION_BYTES};
use super::table::{Dropped, PieceCounts, VIRTUAL_BUCKETS};
use crate::alignment::OffsetMap;
use crate::cache::{has_key, KeyBatch, PIECES_PER_BATCH};
use crate::error::{Error, Result};
use crate::interrupt::{Interrupt, Poller};
use crate::normalize::Normalization;
use crate::pretokenize::{Block, Piece};
use crate::threads::{lock, on_threads, thread_count};
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::Mutex;

/// The settings of a count. The counts themselves are in [`Counted`].
pub struct Counter {
    pub(super) splitter: TextSplitter,
    threads: usize,
    max_memory: Option<usize>,
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

/// The counts of a corpus.
#[derive(Default)]
pub struct Counted {
    /// Number of texts and files.
    pub documents: u64,
    /// The pieces that were dropped to save memory.
    pub dropped: Dropped,
    /// Whether normalisation changed text.
    pub normalized: bool,
    /// All pieces but the pending ones.
    counts: PieceCounts,
    /// Tables of worker threads, whose pieces each count `weight` times. The next call continues with them.
    pending: Vec<PieceCounts>,
    weight: u64,
    /// Bytes of text since the last memory check.
    pub(super) unchecked_bytes: usize,
}

impl Counted {
    /// Counts from elsewhere.
    pub fn new(counts: PieceCounts, documents: u64, dropped: Dropped) -> Self {
        Self {
            documents,
            dropped,
            counts,
            ..Self::default()
        }
    }

    /// All pieces.
    pub fn counts(&mut self) -> Result<&mut PieceCounts> {
        self.merge_pending(0)?;
        Ok(&mut self.counts)
    }

    fn merge_pending(&mut self, threads: usize) -> Result<()> {
        self.counts.merge(&mut self.pending, self.weight, threads)
    }

    /// The tables for worker threads that count with this weight.
    fn take_tables(&mut self, weight: u64, threads: usize) -> Result<Mutex<Vec<PieceCounts>>> {
        if weight != self.weight {
            self.merge_pending(threads)?;
            self.weight = weight;
        }
        Ok(Mutex::new(std::mem::take(&mut self.pending)))
    }
}

impl Counter {
    /// Cuts text at special tokens first: no piece crosses one. `threads` 0 uses one per processor.
    /// `max_memory` bounds, approximately, the bytes that counting and training take: when counting needs more,
    /// it drops the rarest pieces.
    pub fn new(
        patterns: &[String],
        normalization: Option<Normalization>,
        special_tokens: Vec<String>,
        threads: usize,
        max_memory: Option<usize>,
    ) -> Result<Self> {
        Ok(Self {
            splitter: TextSplitter::new(patterns, normalization, special_tokens)?,
            threads,
            max_memory,
        })
    }

    /// Adds a piece that was counted elsewhere.
    pub fn add_piece(&self, piece: &[u8], count: u64, counted: &mut Counted) -> Result<()> {
        counted.counts.add(piece, 0..piece.len(), count)?;
        counted.unchecked_bytes = counted.unchecked_bytes.saturating_add(piece.len());
        self.limit_memory(counted)
    }

    /// Adds other counts, `weight` times.
    pub fn merge(&self, mut other: Counted, weight: u64, counted: &mut Counted) -> Result<()> {
        other.merge_pending(self.threads)?;
        counted.merge_pending(self.threads)?;
        let mut added = vec![other.counts];
        counted.counts.merge(&mut added, weight, self.threads)?;
        counted.documents += other.documents;
        counted.dropped.add(other.dropped, weight);
        counted.normalized |= other.normalized;
        counted.unchecked_bytes = usize::MAX;
        self.limit_memory(counted)
    }

    /// Bytes of text to count between two memory checks; None without a memory limit.
    pub(super) fn memory_check_interval(&self) -> Option<usize> {
        self.max_memory
            .map(|memory| (memory / 32).max(SECTION_BYTES))
    }

    /// Drops the rarest pieces if they take too much memory, once per check interval.
    ///
    /// The interval counts bytes of text, so the dropped pieces do not depend on the number of threads.
    pub(super) fn limit_memory(&self, counted: &mut Counted) -> Result<()> {
        let (Some(memory), Some(interval)) = (self.max_memory, self.memory_check_interval()) else {
            return Ok(());
        };
        if counted.unchecked_bytes < interval {
            return Ok(());
        }
        counted.unchecked_bytes = 0;
        let pending = counted.pending.iter().map(PieceCounts::cost);
        if counted.counts.cost() + pending.sum::<usize>() > memory {
            counted.merge_pending(self.threads)?;
            if counted.counts.cost() > memory {
                let Counted {
                    counts, dropped, ..
                } = counted;
                counts.drop_rare(memory / 2, dropped)?;
            }
        }
        Ok(())
    }
}

impl CountCall<'_> {
    /// Counts texts, each a document.
    pub fn add_texts(&mut self, texts: &[&str]) -> Result<()> {
        let splitter = &self.counter.splitter;
        let mut sections = Vec::new();
        for text in texts {
            splitter.sections(text, &mut sections)?;
        }
        self.count_sections(&sections)?;
        self.counted.documents += texts.len() as u64;
        self.counter.limit_memory(self.counted)
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
            splitter, threads, ..
        } = self.counter;
        let (counted, interrupt) = (&mut *self.counted, self.interrupt);
        let bytes = sections.iter().map(&size).sum();
        counted.unchecked_bytes = counted.unchecked_bytes.saturating_add(bytes);
        let tables = counted.take_tables(self.weight, *threads)?;
        let (next, done) = (AtomicUsize::new(0), AtomicU64::new(0));
        let normalized = AtomicBool::new(false);
        let progress = Mutex::new(progress);
        let threads = thread_count(*threads, bytes).min(sections.len().max(1));
        let outcomes = on_threads(threads, interrupt, || {
            let table = lock(&tables).pop().unwrap_or_default();
            let mut worker = Worker::new(splitter, table, interrupt);
            let outcome = loop {
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
                let size = size(section) as u64;
                let done = done.fetch_add(size, Ordering::Relaxed) + size;
                // Skipped while another thread reports.
                if let Ok(mut progress) = progress.try_lock() {
                    progress(done);
                }
            };
            normalized.fetch_or(worker.normalized, Ordering::Relaxed);
            lock(&tables).push(worker.counts);
            outcome
        });
        counted.pending = std::mem::take(&mut lock(&tables));
        counted.normalized |= normalized.into_inner();
        let failures = outcomes.into_iter().filter_map(std::result::Result::err);
        let first: Option<(usize, Error)> = failures.min_by_key(|(number, _)| *number);
        first.map_or_else(|| interrupt.check(), |(_, error)| Err(error))
    }
}

/// One thread's counts and buffers.
pub struct Worker<'a> {
    pub counts: PieceCounts,
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
    pub fn new(
        splitter: &'a TextSplitter,
        counts: PieceCounts,
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
            let counted = self.counts.add(text, range, 1);
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
                let (batch, _) = bounds.split_at(bounds.len().min(PIECES_PER_BATCH + 1));
                bounds = &bounds[batch.len() - 1..];
                self.keys.pack(text, from, batch, VIRTUAL_BUCKETS);
                let (keys, buckets) = self.keys.get(batch.len() - 1);
                for &bucket in buckets {
                    self.counts.prefetch(bucket);
                }
                for (ends, (&key, &bucket)) in batch.windows(2).zip(keys.iter().zip(buckets)) {
                    let (start, end) = (ends[0] as usize, ends[1] as usize);
                    if has_key(end - start) {
                        self.counts.add_short(key, bucket, 1)?;
                    } else {
                        self.counts.add_long(&text[from + start..from + end], 1)?;
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
    use super::super::samples::{call, count_whole, counter, sample, table, PATTERN, WORDS};
    use super::*;

    #[test]
    fn a_weight_is_that_many_times_the_same() {
        let counter = counter(PATTERN, None, 2);
        let (text, other) = (sample(100_000), "word and other words");
        let (mut weighted, mut repeated) = (Counted::default(), Counted::default());
        let add = |text: &str, weight, counted: &mut Counted| {
            call(&counter, counted, weight, &Interrupt::never())
                .add_texts(&[text])
                .unwrap();
        };
        for (text, weight) in [(&text[..], 1), (other, 3), (&text[..], 2)] {
            add(text, weight, &mut weighted);
            (0..weight).for_each(|_| add(text, 1, &mut repeated));
        }
        assert_eq!((weighted.documents, repeated.documents), (3, 6));
        assert_eq!(table(&mut weighted), table(&mut repeated));
        let (mut sum, mut other) = (Counted::default(), Counted::default());
        add(&text, 1, &mut sum);
        add("word and other words", 1, &mut other);
        counter.merge(other, 3, &mut sum).unwrap();
        let mut again = Counted::default();
        add(&text, 1, &mut again);
        counter.merge(again, 2, &mut sum).unwrap();
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
            let mut call = call(&counter, &mut counted, 1, &never);
            call.add_texts(&[&text]).unwrap();
            let mut expected = count_whole(&counter, &text);
            assert!(table(&mut counted) == expected);
            counter.add_piece(b"piece", 7, &mut counted).unwrap();
            *expected.entry(b"piece".to_vec()).or_insert(0) += 7;
            assert!(table(&mut counted) == expected);
        }
    }

    #[test]
    fn documents_and_what_was_dropped_add_up() {
        let counter = counter(PATTERN, None, 1);
        let dropped = Dropped {
            distinct: 2,
            pieces: 3,
            max_error: 1,
        };
        let counted = || Counted::new(PieceCounts::default(), 5, dropped);
        let mut sum = counted();
        counter.merge(counted(), 10, &mut sum).unwrap();
        assert_eq!(sum.documents, 10);
        let Dropped {
            distinct,
            pieces,
            max_error,
        } = sum.dropped;
        assert_eq!((distinct, pieces, max_error), (4, 33, 11));
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
            let add = |text: &str, counted: &mut Counted| {
                call(&counter, counted, 1, &Interrupt::never())
                    .add_texts(&[text])
                    .unwrap();
            };
            add("<|end of text|>", &mut counted);
            assert!(!counted.normalized);
            add(text, &mut counted);
            assert_eq!(counted.normalized, expected, "{form:?}");
            add("more", &mut counted);
            let mut sum = Counted::default();
            counter.merge(counted, 2, &mut sum).unwrap();
            counter.merge(Counted::default(), 1, &mut sum).unwrap();
            assert_eq!(sum.normalized, expected, "{form:?}, merged");
        }
    }

    #[test]
    fn what_is_dropped_depends_on_the_corpus_alone() {
        // Ever new words between ones that stay.
        let word = |number: u64| format!(" {:x}", number.wrapping_mul(0x9e37_79b9_7f4a_7c15));
        let texts: Vec<String> = (0..40)
            .map(|text| {
                let words = (text * 10_000..(text + 1) * 10_000).map(|n| word(n) + " often");
                words.collect()
            })
            .collect();
        let whole = count_whole(&counter(PATTERN, None, 1), &texts.concat());
        let memory = 8 << 20;
        let mut outcomes = Vec::new();
        for threads in [1, 2, 5] {
            let special = vec!["<|end".to_owned()];
            let patterns = [PATTERN.to_owned()];
            let counter = Counter::new(&patterns, None, special, threads, Some(memory)).unwrap();
            let mut counted = Counted::default();
            for text in &texts {
                call(&counter, &mut counted, 1, &Interrupt::never())
                    .add_texts(&[text])
                    .unwrap();
                let cost = counted.counts.cost();
                let pending: usize = counted.pending.iter().map(PieceCounts::cost).sum();
                assert!(
                    cost + pending
                        <= memory + 12 * (counter.memory_check_interval().unwrap() + text.len())
                );
            }
            let counts = table(&mut counted);
            let dropped = counted.dropped;
            assert!(dropped.distinct > 100_000 && dropped.max_error >= 1);
            let left: u64 = counts.values().sum();
            assert_eq!(left + dropped.pieces, whole.values().sum::<u64>());
            for (piece, count) in &whole {
                let known = counts.get(piece).copied().unwrap_or(0);
                assert!(known <= *count && count - known <= dropped.max_error);
            }
            assert_eq!(counts[&b" often"[..]], 400_000);
            outcomes.push((counts, dropped));
        }
        assert!(outcomes.windows(2).all(|pair| pair[0] == pair[1]));
    }
}
