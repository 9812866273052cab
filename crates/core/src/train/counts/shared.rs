//! A table that several threads fill.
//!
//! Each thread counts the frequent pieces in a small table. When this table is full, the thread collects new pieces in a
//! list, and adds the list to the shared table. So a rare piece takes memory once, not once per thread.

use super::table::{
    add_to, byte_key, shard_of, shard_of_long, ByteKey, PieceCounts, Shard, SHARDS, VIRTUAL_BUCKETS,
};
use crate::cache::{bucket_of, has_key, key, Key};
use crate::error::Result;
use crate::reserve::{append, push, reserve};
use crate::threads::lock;
use std::ops::Range;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::Mutex;

/// The pieces in a shard of a thread's own table.
const OWN_PIECES: usize = 1 << 13;
/// The pieces of a shard that wait, at most.
const WAITING_PIECES: usize = 1 << 10;
/// The bytes of the long ones among them; a longer piece is alone.
const WAITING_BYTES: usize = 1 << 16;
/// The rarer pieces of a shard move out after this number of pieces that found no place in it.
const STALE_AFTER: usize = 4 * OWN_PIECES;

/// A table that threads add to at the same time.
pub struct SharedCounts<'a> {
    shards: [Mutex<&'a mut Shard>; SHARDS],
    /// Bytes of memory of the table.
    memory: AtomicUsize,
    /// The pieces of the threads count this many times.
    weight: u64,
    /// Further pieces of a shard for which its memory has room.
    more: usize,
}

impl<'a> SharedCounts<'a> {
    /// The caller knows that no sum exceeds 64 bits, and wants to know the memory after growth for `more` pieces.
    pub fn new(counts: &'a mut PieceCounts, weight: u64, more: usize) -> Self {
        Self {
            memory: AtomicUsize::new(counts.memory(more)),
            shards: counts.shards.each_mut().map(Mutex::new),
            weight,
            more: more / SHARDS,
        }
    }

    /// Bytes of memory of the table, also after it grows for some more pieces.
    pub fn memory(&self) -> usize {
        self.memory.load(Ordering::Relaxed)
    }

    /// Adds the waiting pieces of a shard. Without memory, they go on waiting.
    fn add(&self, index: usize, own: &mut Shard, waiting: &mut Waiting) -> Result<()> {
        let mut shard = lock(&self.shards[index]);
        let before = shard.memory(self.more);
        let added = self.add_waiting(&mut shard, own, waiting);
        let change = shard.memory(self.more).wrapping_sub(before);
        self.memory.fetch_add(change, Ordering::Relaxed);
        added
    }

    fn add_waiting(&self, shard: &mut Shard, own: &mut Shard, waiting: &mut Waiting) -> Result<()> {
        own.passed_on += waiting.len();
        shard.add_keys(&mut waiting.short, self.weight)?;
        while let Some(&start) = waiting.starts.last() {
            shard.add_long(&waiting.long[start..], self.weight)?;
            waiting.long.truncate(start);
            waiting.starts.pop();
        }
        if waiting.long.capacity() > 4 * WAITING_BYTES {
            waiting.long = Vec::new();
        }
        if own.passed_on >= STALE_AFTER {
            own.move_rare(shard, self.weight)?;
        }
        Ok(())
    }
}

/// The pieces that a thread counts.
pub struct ThreadCounts<'a> {
    own: PieceCounts,
    /// Where other pieces go when the table is full; without it, the table grows.
    shared: Option<&'a SharedCounts<'a>>,
    waiting: [Waiting; SHARDS],
}

/// The pieces of a shard that have no place in a thread's table.
#[derive(Default)]
struct Waiting {
    short: Vec<ByteKey>,
    /// Those that are too long for keys, one after the other.
    long: Vec<u8>,
    /// Where each of these begins.
    starts: Vec<usize>,
}

impl Waiting {
    fn len(&self) -> usize {
        self.short.len() + self.starts.len()
    }

    fn is_full(&self) -> bool {
        self.len() >= WAITING_PIECES || self.long.len() >= WAITING_BYTES
    }
}

impl<'a> ThreadCounts<'a> {
    /// Continues a table.
    pub fn new(own: PieceCounts, shared: Option<&'a SharedCounts<'a>>) -> Self {
        Self {
            own,
            shared,
            waiting: Default::default(),
        }
    }

    /// The thread's table, after all other pieces were passed on, and the error if that failed.
    pub fn finish(mut self) -> (PieceCounts, Result<()>) {
        let passed = (0..SHARDS).try_for_each(|index| self.pass_on(index));
        (self.own, passed)
    }

    /// As [`PieceCounts::memory`], of the thread's table.
    pub fn memory(&self, more: usize) -> usize {
        self.own.memory(more)
    }

    /// Counts the piece `text[range]`.
    pub fn add(&mut self, text: &[u8], range: Range<usize>) -> Result<()> {
        if has_key(range.len()) {
            let key = key(text, range.start, range.len());
            self.add_short(key, bucket_of(key, VIRTUAL_BUCKETS))
        } else {
            self.add_long(&text[range])
        }
    }

    /// Prefetches the slots of a virtual bucket.
    #[inline(always)]
    pub fn prefetch(&self, bucket: u32) {
        self.own.prefetch(bucket);
    }

    /// Counts the piece of a key, given its virtual bucket.
    #[inline(always)]
    pub fn add_short(&mut self, key: Key, bucket: u32) -> Result<()> {
        let key = byte_key(key);
        match self.own.shards[shard_of(bucket)].near(key, bucket) {
            Some(count) => add_to(count, 1),
            None => self.add_far(key, bucket),
        }
    }

    /// Counts the piece of a key that is not in its first two slots.
    #[inline(never)]
    fn add_far(&mut self, key: ByteKey, bucket: u32) -> Result<()> {
        let index = shard_of(bucket);
        let (shard, waiting) = (&mut self.own.shards[index], &mut self.waiting[index]);
        if self.shared.is_none() || shard.len() < OWN_PIECES || shard.holds(key, bucket) {
            return shard.probe_and_add(key, bucket, 1);
        }
        push(&mut waiting.short, key)?;
        self.pass_many_on(index)
    }

    /// Counts a piece that is too long for a key.
    #[inline(never)]
    pub fn add_long(&mut self, piece: &[u8]) -> Result<()> {
        let index = shard_of_long(piece);
        let (shard, waiting) = (&mut self.own.shards[index], &mut self.waiting[index]);
        if self.shared.is_none() || shard.len() < OWN_PIECES {
            return shard.add_long(piece, 1);
        }
        if let Some(count) = shard.long.get_mut(piece) {
            return add_to(count, 1);
        }
        reserve(&mut waiting.starts, 1)?;
        append(&mut waiting.long, piece)?;
        waiting.starts.push(waiting.long.len() - piece.len());
        self.pass_many_on(index)
    }

    fn pass_many_on(&mut self, index: usize) -> Result<()> {
        match self.waiting[index].is_full() {
            true => self.pass_on(index),
            false => Ok(()),
        }
    }

    fn pass_on(&mut self, index: usize) -> Result<()> {
        let (own, waiting) = (&mut self.own.shards[index], &mut self.waiting[index]);
        match self.shared {
            Some(shared) => shared.add(index, own, waiting),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;
    use std::thread::scope;

    /// Counts the pieces of some threads, each `weight` times. Returns all counts, and the memory of the threads' tables.
    fn counted(threads: &[Vec<Vec<u8>>], weight: u64) -> (BTreeMap<Vec<u8>, u64>, Vec<usize>) {
        let mut counts = PieceCounts::default();
        let shared = SharedCounts::new(&mut counts, weight, 0);
        let count = |pieces: &Vec<Vec<u8>>| {
            let mut counts = ThreadCounts::new(PieceCounts::default(), Some(&shared));
            for piece in pieces {
                counts.add(piece, 0..piece.len()).unwrap();
            }
            let (own, passed_on) = counts.finish();
            passed_on.unwrap();
            own
        };
        let mut tables = scope(|scope| {
            let running: Vec<_> = threads
                .iter()
                .map(|pieces| scope.spawn(|| count(pieces)))
                .collect();
            let tables = running.into_iter().map(|thread| thread.join().unwrap());
            tables.collect::<Vec<_>>()
        });
        let memory = tables.iter().map(|table| table.memory(0)).collect();
        let held = shared.memory();
        assert_eq!(held, counts.memory(0));
        counts.merge(&mut tables, weight, 2).unwrap();
        let counts = counts.iter().map(|(piece, count)| (piece.to_vec(), count));
        (counts.collect(), memory)
    }

    /// A piece; every eighth is too long for a key.
    fn piece(number: usize) -> Vec<u8> {
        let end = if number.is_multiple_of(8) {
            " of many letters"
        } else {
            ""
        };
        format!("w{number}{end}").into_bytes()
    }

    #[test]
    fn threads_count_together_what_they_count_alone() {
        let all = 2 * SHARDS * OWN_PIECES;
        // The pieces of the threads overlap. Some are frequent at first, others later.
        let pieces = |thread: usize| -> Vec<Vec<u8>> {
            let rare = (0..3 * all).map(|number| (number * 7 + thread * all / 2) % all);
            let frequent = |number: usize| number % 500 + 500 * (number / all);
            let numbers = rare
                .enumerate()
                .flat_map(|(at, number)| [number, frequent(at)]);
            numbers.map(piece).collect()
        };
        let threads: Vec<_> = (0..3).map(pieces).collect();
        let mut expected = BTreeMap::new();
        for piece in threads.iter().flatten() {
            *expected.entry(piece.clone()).or_insert(0) += 5;
        }
        let (counts, memory) = counted(&threads, 5);
        assert!(counts == expected);
        // Far less than a table of all pieces.
        let mut alone = PieceCounts::default();
        for piece in expected.keys() {
            alone.add(piece, 0..piece.len(), 1).unwrap();
        }
        let alone = alone.memory(0);
        assert!(
            memory.iter().all(|own| 5 * own < 4 * alone),
            "{memory:?} of {alone}"
        );
    }

    #[test]
    fn few_long_pieces_wait() {
        let mut counts = PieceCounts::default();
        let shared = SharedCounts::new(&mut counts, 1, 0);
        let mut thread = ThreadCounts::new(PieceCounts::default(), Some(&shared));
        for number in 0..SHARDS * OWN_PIECES * 5 / 4 {
            let piece = format!("w{number}").into_bytes();
            thread.add(&piece, 0..piece.len()).unwrap();
        }
        assert!(thread
            .own
            .shards
            .iter()
            .all(|shard| shard.len() == OWN_PIECES));
        let longest = 5 * WAITING_BYTES;
        for size in [1000, longest].repeat(20) {
            for first in 0..SHARDS {
                let piece = format!("{first}{}", "x".repeat(size)).into_bytes();
                thread.add(&piece, 0..piece.len()).unwrap();
            }
            let waiting = thread.waiting.iter();
            let held: usize = waiting.map(|waiting| waiting.long.capacity()).sum();
            assert!(held <= SHARDS * 4 * WAITING_BYTES, "{held}");
        }
        thread.finish().1.unwrap();
        assert_eq!(
            counts.iter().filter(|(piece, _)| piece.len() > 999).count(),
            2 * SHARDS
        );
    }

    #[test]
    fn the_memory_of_a_thread_does_not_grow_with_the_text() {
        let rows = |times: usize| -> Vec<Vec<u8>> {
            (0..times * SHARDS * OWN_PIECES).map(piece).collect()
        };
        let [some, more] = [2, 6].map(|times| counted(&[rows(times)], 1).1[0]);
        assert!(10 * more < 11 * some, "{some} and then {more} bytes");
    }
}
