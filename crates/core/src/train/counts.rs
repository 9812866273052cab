//! Counting the distinct pieces of a corpus, in parallel and without holding the corpus.

use crate::alignment::Place;
use crate::batch::{first_part, thread_count};
use crate::error::{Error, Result};
use crate::interrupt::Interrupt;
use crate::merge::keys::{has_key, hash, key, Key as Halves};
use crate::normalize::Normalization;
use crate::pretokenize::{floor_char_boundary, Piece, PreTokenizers};
use crate::special::{AddedToken, Matcher};
use rustc_hash::FxHashMap;
use std::borrow::Cow;
use std::io::Read;
use std::ops::Range;
use std::sync::atomic::{AtomicUsize, Ordering};

/// A thread takes stretches of about so many bytes.
const STRETCH: usize = 1 << 20;
/// A file is read so many stretches a thread at a time.
const STRETCHES_A_READ: usize = 4;

/// A key as bytes: 15 for a piece, one for its length.
type Key = [u8; 16];
const FREE: Key = [0; 16];

fn joined([low, high]: Halves) -> Key {
    (u128::from(low) | u128::from(high) << 64).to_le_bytes()
}

fn halves(key: Key) -> Halves {
    let whole = u128::from_le_bytes(key);
    [whole as u64, (whole >> 64) as u64]
}

/// Where the search for a key begins, in a table of any size.
fn place(key: Halves) -> usize {
    (hash(key) >> 32) as usize
}

/// Distinct pieces with their counts. Counts are checked: none wraps.
#[derive(Default)]
pub struct PieceCounts {
    /// Pieces that a key holds (its bytes, then their number): open addressing; a free slot is 0.
    short: Vec<(Key, u64)>,
    short_count: usize,
    long: FxHashMap<Box<[u8]>, u64>,
}

impl PieceCounts {
    /// How many pieces differ.
    pub fn len(&self) -> usize {
        self.short_count + self.long.len()
    }

    /// Whether nothing was counted.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The sum of all counts.
    pub fn total(&self) -> Result<u64> {
        let short = self.short.iter().map(|(_, count)| count);
        short
            .chain(self.long.values())
            .try_fold(0u64, |sum, &count| sum.checked_add(count))
            .ok_or(Error::CountOverflow)
    }

    /// Counts the piece `text[range]` `count` more times.
    #[inline(always)]
    pub fn add(&mut self, text: &[u8], range: Range<usize>, count: u64) -> Result<()> {
        if has_key(range.len()) {
            self.add_short(key(text, range.start, range.len()), count)
        } else {
            self.add_long(&text[range], count)
        }
    }

    #[inline(always)]
    fn add_short(&mut self, key: Halves, count: u64) -> Result<()> {
        if 2 * self.short_count >= self.short.len() {
            self.grow();
        }
        let mask = self.short.len() - 1;
        let mut index = place(key);
        let key = joined(key);
        loop {
            let slot = &mut self.short[index & mask];
            if slot.0 == key || slot.0 == FREE {
                self.short_count += usize::from(slot.0 == FREE);
                slot.0 = key;
                slot.1 = slot.1.checked_add(count).ok_or(Error::CountOverflow)?;
                return Ok(());
            }
            index += 1;
        }
    }

    #[cold]
    fn grow(&mut self) {
        let capacity = (2 * self.short.len()).max(1 << 10);
        let old = std::mem::replace(&mut self.short, vec![(FREE, 0); capacity]);
        for (key, count) in old.into_iter().filter(|(key, _)| *key != FREE) {
            let mut index = place(halves(key)) & (capacity - 1);
            while self.short[index].0 != FREE {
                index = (index + 1) & (capacity - 1);
            }
            self.short[index] = (key, count);
        }
    }

    fn add_long(&mut self, piece: &[u8], count: u64) -> Result<()> {
        match self.long.get_mut(piece) {
            Some(known) => *known = known.checked_add(count).ok_or(Error::CountOverflow)?,
            None => {
                self.long.insert(piece.into(), count);
            }
        }
        Ok(())
    }

    /// Adds all of another's counts.
    pub fn merge(&mut self, other: PieceCounts) -> Result<()> {
        for (key, count) in other.short.into_iter().filter(|(key, _)| *key != FREE) {
            self.add_short(halves(key), count)?;
        }
        for (piece, count) in other.long {
            match self.long.get_mut(&piece) {
                Some(known) => *known = known.checked_add(count).ok_or(Error::CountOverflow)?,
                None => {
                    self.long.insert(piece, count);
                }
            }
        }
        Ok(())
    }

    /// Every piece and its count, in no particular order.
    pub fn iter(&self) -> impl Iterator<Item = (&[u8], u64)> {
        let short = self.short.iter().filter(|(key, _)| *key != FREE);
        let short = short.map(|(key, count)| (&key[..usize::from(key[15])], *count));
        let long = self.long.iter().map(|(piece, count)| (&**piece, *count));
        short.chain(long)
    }
}

/// What a corpus is cut with before it is counted.
pub struct Counter {
    patterns: PreTokenizers,
    normalization: Option<Normalization>,
    special: Matcher,
    threads: usize,
}

/// What was counted so far.
#[derive(Default)]
pub struct Counted {
    /// Texts and files.
    pub documents: u64,
    /// The pieces.
    pub counts: PieceCounts,
}

impl Counter {
    /// Special tokens are where the text is cut before all else; nothing is learned across one.
    /// `threads` 0 uses as many as there are processors.
    pub fn new(
        patterns: &[String],
        normalization: Option<Normalization>,
        special_tokens: Vec<String>,
        threads: usize,
    ) -> Result<Self> {
        let special_tokens = (0..)
            .zip(special_tokens)
            .map(|(id, content)| AddedToken::special(content, id));
        Ok(Self {
            patterns: PreTokenizers::of_patterns(patterns)?,
            normalization,
            special: Matcher::new(special_tokens.collect())?,
            threads,
        })
    }

    /// Counts texts, each a document.
    pub fn add_texts(
        &self,
        texts: &[&str],
        counted: &mut Counted,
        interrupt: &Interrupt<'_>,
    ) -> Result<()> {
        let stretches: Vec<&str> = texts.iter().flat_map(|text| self.stretches(text)).collect();
        self.count(&stretches, counted, interrupt)?;
        counted.documents += texts.len() as u64;
        Ok(())
    }

    /// Counts a file, which is one document, a part at a time; calls `progress` with the bytes read.
    ///
    /// A part ends where a piece ends whatever comes next, so the result is that of the whole file.
    /// A pattern that only the regex engine can run has no such places but special tokens: then the
    /// text between two of them is held as a whole.
    pub fn add_file(
        &self,
        mut file: impl Read,
        name: &str,
        counted: &mut Counted,
        interrupt: &Interrupt<'_>,
        progress: &mut dyn FnMut(u64),
    ) -> Result<()> {
        let threads = thread_count(self.threads, usize::MAX);
        let mut wanted = threads * STRETCHES_A_READ * STRETCH;
        let mut buffer = Vec::new();
        let mut done = 0;
        loop {
            buffer.reserve_exact(wanted.saturating_sub(buffer.len()));
            let missing = wanted.saturating_sub(buffer.len()) as u64;
            let read = file
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
                    self.count(&stretches, counted, interrupt)?;
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
    fn stretches<'a>(&self, text: &'a str) -> Vec<&'a str> {
        let mut stretches = Vec::new();
        let mut done = 0;
        for found in self.special.find_iter(text.as_bytes()) {
            self.cut(&text[done..found.range.start], &mut stretches);
            done = found.range.end;
        }
        self.cut(&text[done..], &mut stretches);
        stretches
    }

    fn cut<'a>(&self, mut text: &'a str, stretches: &mut Vec<&'a str>) {
        while !text.is_empty() {
            let length = first_part(text.len(), STRETCH, |range| {
                let [from, end] = [range.start, range.end].map(|at| floor_char_boundary(text, at));
                self.safe_cut(&text[..end], from)
            });
            stretches.push(&text[..length]);
            text = &text[length..];
        }
    }

    fn count(
        &self,
        stretches: &[&str],
        counted: &mut Counted,
        interrupt: &Interrupt<'_>,
    ) -> Result<()> {
        let bytes = stretches.iter().map(|stretch| stretch.len()).sum();
        let threads = thread_count(self.threads, bytes).min(stretches.len().max(1));
        let next = AtomicUsize::new(0);
        let work = |counts: &mut PieceCounts| -> Result<()> {
            while let Some(stretch) = stretches.get(next.fetch_add(1, Ordering::Relaxed)) {
                interrupt.poll()?;
                if let Err(error) = self.count_stretch(stretch, counts) {
                    interrupt.stop();
                    return Err(error);
                }
            }
            Ok(())
        };
        if threads == 1 {
            return work(&mut counted.counts);
        }
        let others = std::thread::scope(|scope| {
            let spawn = |_| {
                scope.spawn(|| {
                    let mut counts = PieceCounts::default();
                    work(&mut counts).map(|()| counts)
                })
            };
            let others: Vec<_> = (1..threads).map(spawn).collect();
            let own = work(&mut counted.counts);
            let join = |other: std::thread::ScopedJoinHandle<'_, Result<PieceCounts>>| match other
                .join()
            {
                Ok(result) => result,
                Err(panic) => std::panic::resume_unwind(panic),
            };
            let others: Vec<_> = others.into_iter().map(join).collect();
            own.map(|()| others)
        })?;
        for counts in others {
            counted.counts.merge(counts?)?;
        }
        Ok(())
    }

    fn count_stretch(&self, stretch: &str, counts: &mut PieceCounts) -> Result<()> {
        let text = match self.normalization {
            Some(form) => form.apply(stretch),
            None => Cow::Borrowed(stretch),
        };
        let text = text.as_bytes();
        let mut outcome = Ok(());
        let place = Place::given(0); // nobody asks
        self.patterns
            .split(text, &place, false, |Piece { text, range, .. }| {
                outcome = counts.add(text, range, 1);
                outcome.is_ok()
            })?;
        outcome
    }
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
    use proptest::prelude::*;
    use std::collections::BTreeMap;

    const PATTERN: &str =
        r"'(?:[sdmt]|ll|ve|re)| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+";

    fn counter(pattern: &str, form: Option<Normalization>, threads: usize) -> Counter {
        let special = vec!["<|end of text|>".to_owned(), "<|end".to_owned()];
        Counter::new(&[pattern.to_owned()], form, special, threads).unwrap()
    }

    fn table(counts: &PieceCounts) -> BTreeMap<Vec<u8>, u64> {
        let table: BTreeMap<_, _> = counts
            .iter()
            .map(|(piece, count)| (piece.to_vec(), count))
            .collect();
        assert_eq!(table.len(), counts.len());
        table
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

    fn count_file(counter: &Counter, text: &str) -> BTreeMap<Vec<u8>, u64> {
        let mut counted = Counted::default();
        let file = Trickle(text.as_bytes(), 12_345);
        counter
            .add_file(file, "file", &mut counted, &Interrupt::never(), &mut |_| {})
            .unwrap();
        assert_eq!(counted.documents, 1);
        table(&counted.counts)
    }

    fn count_whole(counter: &Counter, text: &str) -> BTreeMap<Vec<u8>, u64> {
        let mut counts = PieceCounts::default();
        let mut done = 0;
        for found in counter.special.find_iter(text.as_bytes()) {
            counter
                .count_stretch(&text[done..found.range.start], &mut counts)
                .unwrap();
            done = found.range.end;
        }
        counter.count_stretch(&text[done..], &mut counts).unwrap();
        table(&counts)
    }

    #[test]
    fn the_way_a_file_is_read_does_not_show() {
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
        while text.len() < 12 << 20 {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1);
            text.push_str(parts[(state >> 33) as usize % parts.len()]);
        }
        for (pattern, form) in [
            (PATTERN, None),
            (PATTERN, Some(Normalization::Nfc)),
            (PATTERN, Some(Normalization::Nfkd)),
            (r"\b\w+\b|\W+", None), // the regex engine
        ] {
            let whole = count_whole(&counter(pattern, form, 1), &text);
            for threads in [1, 2, 7] {
                assert_eq!(count_file(&counter(pattern, form, threads), &text), whole);
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
            let error = counter
                .add_file(
                    &*bytes,
                    "some file",
                    &mut counted,
                    &Interrupt::never(),
                    &mut |_| {},
                )
                .unwrap_err();
            assert!(
                error
                    .to_string()
                    .contains(&format!("some file: byte {place} ")),
                "{error}"
            );
        }
        let cut = &"é".as_bytes()[..1];
        let result = counter.add_file(cut, "f", &mut counted, &Interrupt::never(), &mut |_| {});
        assert!(matches!(result, Err(Error::NotUtf8 { byte: 0, .. })));
    }

    #[test]
    fn a_count_never_wraps() {
        for piece in ["a", "a piece that does not fit a key"] {
            let mut counts = PieceCounts::default();
            let range = || 0..piece.len();
            counts.add(piece.as_bytes(), range(), u64::MAX).unwrap();
            let result = counts.add(piece.as_bytes(), range(), 1);
            assert!(matches!(result, Err(Error::CountOverflow)));
            let mut other = PieceCounts::default();
            other.add(piece.as_bytes(), range(), 1).unwrap();
            assert!(matches!(other.merge(counts), Err(Error::CountOverflow)));
        }
    }

    proptest! {
        #[test]
        fn counts_are_those_of_a_map(pieces in prop::collection::vec("[ab\0]{1,20}", 0..2000)) {
            let mut expected = BTreeMap::new();
            let (mut counts, mut other) = (PieceCounts::default(), PieceCounts::default());
            for (i, piece) in pieces.iter().enumerate() {
                *expected.entry(piece.clone().into_bytes()).or_insert(0) += 1;
                let counts = if i % 3 == 0 { &mut other } else { &mut counts };
                counts.add(piece.as_bytes(), 0..piece.len(), 1).unwrap();
            }
            counts.merge(other).unwrap();
            prop_assert_eq!(counts.len(), expected.len());
            prop_assert_eq!(counts.total().unwrap(), pieces.len() as u64);
            prop_assert_eq!(table(&counts), expected);
        }
    }
}
