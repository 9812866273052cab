//! Counting the distinct pieces of a corpus, in parallel and without holding the corpus.

mod files;
mod saved;
mod table;

pub use files::Position;
pub use table::{Dropped, PieceCounts};

use crate::alignment::OffsetMap;
use crate::cache::{has_key, KeyBatch, PIECES_PER_BATCH};
use crate::error::{Error, Result};
use crate::interrupt::Interrupt;
use crate::normalize::Normalization;
use crate::pretokenize::{Block, Piece, PreTokenizers};
use crate::special::{AddedToken, Matcher};
use crate::text::floor_char_boundary;
use crate::threads::{first_chunk, lock, on_threads, thread_count};
use std::borrow::Cow;
use std::io::Read;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::Mutex;
use table::PLACES;

/// A thread takes stretches of about so many bytes.
const STRETCH: usize = 1 << 20;
/// What cannot be read anywhere is read so many bytes at a time.
const READ: usize = 8 * STRETCH;
/// Pieces between two looks at whether to stop.
const PATIENCE: u32 = 1 << 16;

/// What a corpus is cut with before it is counted.
pub struct Counter {
    patterns: PreTokenizers,
    normalization: Option<Normalization>,
    special: Matcher,
    threads: usize,
    max_memory: Option<usize>,
}

/// What was counted so far.
#[derive(Default)]
pub struct Counted {
    /// Texts and files.
    pub documents: u64,
    /// What was dropped to save memory.
    pub dropped: Dropped,
    /// The pieces, without those that are pending.
    counts: PieceCounts,
    /// What threads counted since, each piece of which counts `weight` times.
    pending: Vec<PieceCounts>,
    weight: u64,
    /// Bytes of text that were counted since memory was looked at.
    unseen: usize,
}

impl Counted {
    /// The pieces that a table holds already.
    pub fn new(counts: PieceCounts, documents: u64, dropped: Dropped) -> Self {
        Self {
            documents,
            dropped,
            counts,
            ..Self::default()
        }
    }

    /// The pieces.
    pub fn counts(&mut self) -> Result<&mut PieceCounts> {
        self.settle(0)?;
        Ok(&mut self.counts)
    }

    /// Adds what is pending.
    fn settle(&mut self, threads: usize) -> Result<()> {
        let pending = std::mem::take(&mut self.pending);
        let threads = thread_count(threads, usize::MAX);
        self.counts.merge(pending, self.weight, threads)
    }

    /// The table of a thread, which may hold something already.
    fn begin(&mut self, weight: u64, threads: usize) -> Result<Mutex<Vec<PieceCounts>>> {
        if weight != self.weight {
            self.settle(threads)?;
            self.weight = weight;
        }
        Ok(Mutex::new(std::mem::take(&mut self.pending)))
    }
}

/// What a thread that counts works with.
struct Workspace {
    counts: PieceCounts,
    block: Block,
    lookup: KeyBatch,
    buffer: Vec<u8>,
    patience: u32,
}

impl Workspace {
    fn new(counts: PieceCounts) -> Self {
        Self {
            counts,
            block: Block::default(),
            lookup: KeyBatch::default(),
            buffer: Vec::new(),
            patience: PATIENCE,
        }
    }

    /// Looks now and then at whether to stop.
    fn poll(&mut self, pieces: usize, interrupt: &Interrupt<'_>) -> Result<()> {
        self.patience = self.patience.saturating_sub(pieces as u32);
        if self.patience == 0 {
            self.patience = PATIENCE;
            interrupt.poll()?;
        }
        Ok(())
    }
}

impl Counter {
    /// Special tokens are where the text is cut before all else; nothing is learned across one.
    /// `threads` 0 uses as many as there are processors. `max_memory` is how many bytes counting and what
    /// comes after may take, about; the rarest pieces are dropped where they would take more.
    pub fn new(
        patterns: &[String],
        normalization: Option<Normalization>,
        special_tokens: Vec<String>,
        threads: usize,
        max_memory: Option<usize>,
    ) -> Result<Self> {
        let special_tokens = (0..)
            .zip(special_tokens)
            .map(|(id, content)| AddedToken::special(content, id));
        Ok(Self {
            patterns: PreTokenizers::of_patterns(patterns)?,
            normalization,
            special: Matcher::new(special_tokens.collect())?,
            threads,
            max_memory,
        })
    }

    /// Counts texts, each a document, `weight` times.
    pub fn add_texts(
        &self,
        texts: &[&str],
        weight: u64,
        counted: &mut Counted,
        interrupt: &Interrupt<'_>,
    ) -> Result<()> {
        let stretches: Vec<&str> = texts.iter().flat_map(|text| self.stretches(text)).collect();
        self.count(&stretches, weight, counted, interrupt)?;
        counted.documents += texts.len() as u64;
        self.keep_to_memory(counted)
    }

    /// Counts a text that is read, which is one document, a part at a time; calls `progress` with the bytes
    /// read.
    ///
    /// A part ends where a piece ends whatever comes next, so the result is that of the whole text.
    /// A pattern that only the regex engine can run has no such places but special tokens: then the
    /// text between two of them is held as a whole.
    pub fn add_reader(
        &self,
        mut reader: impl Read,
        name: &str,
        weight: u64,
        counted: &mut Counted,
        interrupt: &Interrupt<'_>,
        progress: &mut (dyn FnMut(u64) + Send),
    ) -> Result<()> {
        let mut wanted = READ;
        let mut buffer = Vec::new();
        let mut done = 0;
        loop {
            interrupt.poll()?;
            buffer.reserve_exact(wanted.saturating_sub(buffer.len()));
            let missing = wanted.saturating_sub(buffer.len()) as u64;
            let read = reader
                .by_ref()
                .take(missing)
                .read_to_end(&mut buffer)
                .map_err(|source| Error::Read {
                    path: name.to_owned(),
                    source,
                })?;
            let at_end = (read as u64) < missing;
            let text = valid_text(&buffer, at_end).map_err(|byte| Error::NotUtf8 {
                source_name: name.to_owned(),
                byte: done + byte as u64,
            })?;
            let cut = if at_end {
                Some(text.len())
            } else {
                self.last_cut(text)
            };
            match cut {
                None => wanted *= 2,
                Some(cut) => {
                    let stretches = self.stretches(&text[..cut]);
                    self.count(&stretches, weight, counted, interrupt)?;
                    self.keep_to_memory(counted)?;
                    buffer.drain(..cut);
                    done += cut as u64;
                    progress(done);
                }
            }
            if at_end {
                counted.documents += 1;
                return Ok(());
            }
        }
    }

    /// Adds a piece that was counted elsewhere.
    pub fn add_piece(&self, piece: &[u8], count: u64, counted: &mut Counted) -> Result<()> {
        counted.counts.add(piece, 0..piece.len(), count)?;
        counted.unseen = counted.unseen.saturating_add(piece.len());
        self.keep_to_memory(counted)
    }

    /// Adds all that was counted elsewhere, `weight` times.
    pub fn merge(&self, mut other: Counted, weight: u64, counted: &mut Counted) -> Result<()> {
        other.settle(self.threads)?;
        counted.settle(self.threads)?;
        let threads = thread_count(self.threads, usize::MAX);
        counted.counts.merge(vec![other.counts], weight, threads)?;
        counted.documents += other.documents;
        counted.dropped.add(other.dropped, weight);
        counted.unseen = usize::MAX;
        self.keep_to_memory(counted)
    }

    /// The last place in a text that goes on where it may be cut.
    fn last_cut(&self, text: &str) -> Option<usize> {
        // Behind this, a special token may have begun that is not all here.
        let limit = text.len().saturating_sub(self.special.longest());
        let limit = floor_char_boundary(text, limit);
        let specials = self.special.find_iter(text.as_bytes());
        let last = specials
            .take_while(|found| found.range.start < limit)
            .last();
        match last {
            Some(found) if found.range.end >= limit => Some(found.range.end),
            last => {
                let from = last.map_or(0, |found| found.range.end);
                self.safe_cut(&text[..limit], from)
                    .or((from > 0).then_some(from))
            }
        }
    }

    fn safe_cut(&self, text: &str, from: usize) -> Option<usize> {
        self.patterns.last_safe_cut(text, from, |before, after| {
            let apart = |c| self.normalization.is_none_or(|form| form.is_boundary(c));
            apart(before) && apart(after)
        })
    }

    /// The text between special tokens, cut into stretches that can be counted apart.
    fn stretches<'a>(&'a self, text: &'a str) -> Vec<&'a str> {
        let mut stretches = Vec::new();
        for part in self.between_specials(text) {
            self.cut(part, &mut stretches);
        }
        stretches
    }

    /// The text between special tokens.
    fn between_specials<'a>(&'a self, text: &'a str) -> impl Iterator<Item = &'a str> {
        let found = self.special.find_iter(text.as_bytes());
        let found = found.map(|found| found.range);
        let mut done = 0;
        found
            .chain(std::iter::once(text.len()..text.len()))
            .map(move |special| &text[std::mem::replace(&mut done, special.end)..special.start])
    }

    fn cut<'a>(&self, mut text: &'a str, stretches: &mut Vec<&'a str>) {
        while !text.is_empty() {
            let length = first_chunk(text.len(), STRETCH, |range| {
                let [from, end] = [range.start, range.end].map(|at| floor_char_boundary(text, at));
                self.safe_cut(&text[..end], from)
            });
            stretches.push(&text[..length]);
            text = &text[length..];
        }
    }

    /// Counts stretches, which can be counted apart, side by side.
    fn count(
        &self,
        stretches: &[&str],
        weight: u64,
        counted: &mut Counted,
        interrupt: &Interrupt<'_>,
    ) -> Result<()> {
        let bytes = stretches.iter().map(|stretch| stretch.len()).sum();
        let threads = thread_count(self.threads, bytes).min(stretches.len().max(1));
        counted.unseen = counted.unseen.saturating_add(bytes);
        let next = AtomicUsize::new(0);
        self.side_by_side(threads, weight, counted, |workspace| {
            while let Some(stretch) = stretches.get(next.fetch_add(1, Ordering::Relaxed)) {
                interrupt.poll()?;
                if let Err(error) = self.count_stretch(stretch, workspace, interrupt) {
                    interrupt.stop();
                    return Err(error);
                }
            }
            Ok(())
        })
    }

    /// Has threads count, each with a table of its own, and keeps the tables for the next time.
    fn side_by_side(
        &self,
        threads: usize,
        weight: u64,
        counted: &mut Counted,
        work: impl Fn(&mut Workspace) -> Result<()> + Sync,
    ) -> Result<()> {
        let tables = counted.begin(weight, self.threads)?;
        let outcomes = on_threads(threads, || {
            let table = lock(&tables).pop();
            let mut workspace = Workspace::new(table.unwrap_or_default());
            let outcome = work(&mut workspace);
            lock(&tables).push(workspace.counts);
            outcome
        });
        counted.pending = std::mem::take(&mut lock(&tables));
        // A thread that was told to stop fails too: the cause is the error that is not this.
        let mut told = Ok(());
        for outcome in outcomes {
            match outcome {
                Err(Error::Interrupted) => told = outcome,
                outcome => outcome?,
            }
        }
        told
    }

    fn count_stretch(
        &self,
        stretch: &str,
        workspace: &mut Workspace,
        interrupt: &Interrupt<'_>,
    ) -> Result<()> {
        let text = match self.normalization {
            Some(form) => form.apply(stretch),
            None => Cow::Borrowed(stretch),
        };
        let text = text.as_bytes();
        if self.patterns.has_blocks() && u32::try_from(text.len()).is_ok() {
            return self.count_blocks(text, workspace, interrupt);
        }
        let mut outcome = Ok(());
        let place = OffsetMap::original(0); // nobody asks
        self.patterns
            .split(text, &place, false, |Piece { text, range, .. }| {
                outcome = workspace
                    .poll(1, interrupt)
                    .and_then(|()| workspace.counts.add(text, range, 1));
                outcome.is_ok()
            })?;
        outcome
    }

    fn count_blocks(
        &self,
        text: &[u8],
        workspace: &mut Workspace,
        interrupt: &Interrupt<'_>,
    ) -> Result<()> {
        let mut from = 0;
        while from < text.len() {
            let block = &mut workspace.block;
            let to = self.patterns.next_block(text, true, from, block)?;
            let mut bounds = block.bounds();
            let pieces = bounds.len();
            while bounds.len() > 1 {
                let (batch, _) = bounds.split_at(bounds.len().min(PIECES_PER_BATCH + 1));
                bounds = &bounds[batch.len() - 1..];
                workspace.lookup.pack(text, from, batch, PLACES);
                count_batch(text, from, batch, &workspace.lookup, &mut workspace.counts)?;
            }
            workspace.poll(pieces, interrupt)?;
            from = to;
        }
        Ok(())
    }

    /// Drops the rarest pieces, now and then, where they take too much memory.
    ///
    /// How many bytes of text there are between two looks does not depend on the threads, and neither does what
    /// is dropped.
    fn keep_to_memory(&self, counted: &mut Counted) -> Result<()> {
        let Some(memory) = self.max_memory else {
            return Ok(());
        };
        if counted.unseen < between_looks(memory) {
            return Ok(());
        }
        counted.unseen = 0;
        let pending = counted.pending.iter().map(PieceCounts::cost);
        if counted.counts.cost() + pending.sum::<usize>() > memory {
            counted.settle(self.threads)?;
            if counted.counts.cost() > memory {
                let Counted {
                    counts, dropped, ..
                } = counted;
                counts.drop_rare(memory / 2, dropped);
            }
        }
        Ok(())
    }
}

/// Counts the pieces that are in the lookup, which begin at all bounds but the last, counted from `from`.
#[inline]
fn count_batch(
    text: &[u8],
    from: usize,
    bounds: &[u32],
    lookup: &KeyBatch,
    counts: &mut PieceCounts,
) -> Result<()> {
    let (keys, places) = lookup.get(bounds.len() - 1);
    for &place in places {
        counts.expect(place);
    }
    for (piece, (&key, &place)) in keys.iter().zip(places).enumerate() {
        let [start, end] = [bounds[piece], bounds[piece + 1]].map(|bound| bound as usize);
        if has_key(end - start) {
            counts.add_short(key, place, 1)?;
        } else {
            counts.add_long(&text[from + start..from + end], 1)?;
        }
    }
    Ok(())
}

/// Bytes of text that are counted before a look at the memory that the pieces take.
fn between_looks(memory: usize) -> usize {
    (memory / 32).max(STRETCH)
}

/// The text that the bytes hold, less a character that is not all here yet; or the offset of the
/// first byte that is not UTF-8.
fn valid_text(bytes: &[u8], at_end: bool) -> std::result::Result<&str, usize> {
    match std::str::from_utf8(bytes) {
        Ok(text) => Ok(text),
        Err(error) => {
            let valid = error.valid_up_to();
            match std::str::from_utf8(&bytes[..valid]) {
                Ok(text) if error.error_len().is_none() && !at_end => Ok(text),
                _ => Err(valid),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;

    pub const PATTERN: &str =
        r"'(?:[sdmt]|ll|ve|re)| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+";
    /// What only the regex engine can run.
    pub const WORDS: &str = r"\b\w+\b|\W+";

    pub type Counts = BTreeMap<Vec<u8>, u64>;

    pub fn counter(pattern: &str, form: Option<Normalization>, threads: usize) -> Counter {
        let special = vec!["<|end of text|>".to_owned(), "<|end".to_owned()];
        Counter::new(&[pattern.to_owned()], form, special, threads, None).unwrap()
    }

    pub fn table(counted: &mut Counted) -> Counts {
        let counts = counted.counts().unwrap();
        let pieces = counts.iter();
        let table: Counts = pieces
            .map(|(piece, count)| (piece.to_vec(), count))
            .collect();
        assert_eq!(table.len(), counts.len());
        table
    }

    /// The oracle: a text as a whole, piece by piece.
    pub fn count_whole(counter: &Counter, text: &str) -> Counts {
        let mut counts = Counts::new();
        let mut add = |text: &str| {
            let text = counter
                .normalization
                .map_or(text.into(), |form| form.apply(text));
            let place = OffsetMap::original(0);
            let pieces = |piece: Piece<'_>| {
                *counts.entry(piece.text[piece.range].to_vec()).or_insert(0) += 1;
                true
            };
            counter
                .patterns
                .split(text.as_bytes(), &place, false, pieces)
                .unwrap();
        };
        let mut done = 0;
        for found in counter.special.find_iter(text.as_bytes()) {
            add(&text[done..found.range.start]);
            done = found.range.end;
        }
        add(&text[done..]);
        counts
    }

    /// A text of words, special tokens, and what normalisation and patterns join.
    pub fn sample(bytes: usize) -> String {
        let parts = [
            "word",
            " ",
            "  ",
            "\n",
            "12",
            "<|end of text|>",
            "<|end",
            "e\u{301}",
            "é",
            "\u{301}",
            "日本",
            "가\u{11a8}",
            "'ll",
            "!",
            "a-very-long-piece-of-text-that-goes-on",
            "\u{9be}",
        ];
        let mut text = String::new();
        let mut state = 1u64;
        while text.len() < bytes {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1);
            text.push_str(parts[(state >> 33) as usize % parts.len()]);
        }
        text
    }

    /// A reader that hands out a few bytes at a time.
    struct Trickle<'a>(&'a [u8], usize);

    impl Read for Trickle<'_> {
        fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
            let length = self.1.min(self.0.len()).min(buffer.len());
            buffer[..length].copy_from_slice(&self.0[..length]);
            self.0 = &self.0[length..];
            Ok(length)
        }
    }

    fn read(counter: &Counter, bytes: &[u8], counted: &mut Counted) -> Result<()> {
        let reader = Trickle(bytes, 12_345);
        counter.add_reader(
            reader,
            "some file",
            1,
            counted,
            &Interrupt::never(),
            &mut |_| {},
        )
    }

    #[test]
    fn the_way_a_text_is_read_does_not_show() {
        let text = sample(9 << 20);
        for (pattern, form) in [
            (PATTERN, None),
            (PATTERN, Some(Normalization::Nfc)),
            (PATTERN, Some(Normalization::Nfkd)),
            (WORDS, None),
        ] {
            let whole = count_whole(&counter(pattern, form, 1), &text);
            for threads in [1, 2, 7] {
                let counter = counter(pattern, form, threads);
                let (mut from_reader, mut from_text) = (Counted::default(), Counted::default());
                read(&counter, text.as_bytes(), &mut from_reader).unwrap();
                counter
                    .add_texts(&[&text], 1, &mut from_text, &Interrupt::never())
                    .unwrap();
                for mut counted in [from_reader, from_text] {
                    assert_eq!(table(&mut counted), whole);
                    assert_eq!(counted.documents, 1);
                }
            }
        }
    }

    #[test]
    fn bytes_that_are_not_utf8_are_named() {
        let mut counted = Counted::default();
        let counter = counter(PATTERN, None, 2);
        let mut bytes = "hello world ".repeat(1 << 20).into_bytes();
        for place in [bytes.len() - 5, 9_000_000, 17] {
            bytes[place] = 0xff;
            let error = read(&counter, &bytes, &mut counted)
                .unwrap_err()
                .to_string();
            assert!(
                error.contains(&format!("some file: byte {place} ")),
                "{error}"
            );
        }
        let result = read(&counter, &"é".as_bytes()[..1], &mut counted);
        assert!(matches!(result, Err(Error::NotUtf8 { byte: 0, .. })));
    }

    #[test]
    fn a_weight_is_that_many_times_the_same() {
        let counter = counter(PATTERN, None, 2);
        let (text, other) = (sample(100_000), "word and other words");
        let (mut weighted, mut repeated) = (Counted::default(), Counted::default());
        let add = |text: &str, weight, counted: &mut Counted| {
            counter
                .add_texts(&[text], weight, counted, &Interrupt::never())
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
                counter
                    .add_texts(&[text], 1, &mut counted, &Interrupt::never())
                    .unwrap();
                let cost = counted.counts.cost();
                let pending: usize = counted.pending.iter().map(PieceCounts::cost).sum();
                assert!(cost + pending <= memory + 12 * (between_looks(memory) + text.len()));
            }
            let counts = table(&mut counted);
            let dropped = counted.dropped;
            assert!(dropped.distinct > 100_000 && dropped.most >= 1);
            let left: u64 = counts.values().sum();
            assert_eq!(left + dropped.pieces, whole.values().sum::<u64>());
            for (piece, count) in &whole {
                let known = counts.get(piece).copied().unwrap_or(0);
                assert!(known <= *count && count - known <= dropped.most);
            }
            assert_eq!(counts[&b" often"[..]], 400_000);
            outcomes.push((counts, dropped));
        }
        assert!(outcomes.windows(2).all(|pair| pair[0] == pair[1]));
    }
}
