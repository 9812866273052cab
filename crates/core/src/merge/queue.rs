//! Which merge is next: the lowest rank first, then the leftmost place. Two queues with one meaning.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// Places at which a merge may be due, with its rank.
pub trait Queue {
    /// Adds a place.
    fn push(&mut self, rank: u32, place: u32);
    /// Takes the place that is due.
    fn pop(&mut self) -> Option<(u32, u32)>;
}

/// One binary heap of all places: little to set up.
#[derive(Default)]
pub struct Heap {
    entries: BinaryHeap<Reverse<u64>>,
}

impl Queue for Heap {
    fn push(&mut self, rank: u32, place: u32) {
        let entry = (u64::from(rank) << 32) | u64::from(place);
        self.entries.push(Reverse(entry));
    }

    fn pop(&mut self) -> Option<(u32, u32)> {
        let Reverse(entry) = self.entries.pop()?;
        Some(((entry >> 32) as u32, entry as u32))
    }
}

/// A list of places for each rank, and a heap of ranks only. Places mostly come in ascending order,
/// so a long piece is walked from left to right once a rank, where a heap would jump about in memory
/// that no cache holds.
pub struct Buckets {
    /// Rank to its bucket + 1; 0 if it has none yet.
    bucket_of: Vec<u32>,
    buckets: Vec<Bucket>,
    /// Ranks whose bucket is waiting, each once.
    waiting: BinaryHeap<Reverse<u32>>,
    /// The rank that is being walked.
    current: Option<u32>,
}

#[derive(Default)]
struct Bucket {
    places: Vec<u32>,
    /// Places before this one are done.
    next: usize,
    /// A place was added that is left of the one before it.
    unsorted: bool,
}

impl Bucket {
    fn is_done(&self) -> bool {
        self.next == self.places.len()
    }
}

impl Buckets {
    /// `ranks` is how many ranks there are.
    pub fn new(ranks: usize) -> Self {
        Self {
            bucket_of: vec![0; ranks],
            buckets: Vec::new(),
            waiting: BinaryHeap::new(),
            current: None,
        }
    }

    /// The rank that is due: a lower one interrupts the current one.
    fn due(&mut self) -> Option<u32> {
        let Some(current) = self.current else {
            self.current = self.waiting.pop().map(|Reverse(rank)| rank);
            return self.current;
        };
        if let Some(mut lowest) = self.waiting.peek_mut() {
            if lowest.0 < current {
                self.current = Some(std::mem::replace(&mut *lowest, Reverse(current)).0);
            }
        }
        self.current
    }
}

impl Queue for Buckets {
    fn push(&mut self, rank: u32, place: u32) {
        let slot = &mut self.bucket_of[rank as usize];
        if *slot == 0 {
            self.buckets.push(Bucket::default());
            *slot = self.buckets.len() as u32;
        }
        let bucket = &mut self.buckets[*slot as usize - 1];
        if bucket.is_done() {
            bucket.places.clear();
            bucket.next = 0;
            if self.current != Some(rank) {
                self.waiting.push(Reverse(rank));
            }
        } else {
            bucket.unsorted |= bucket.places.last() > Some(&place);
        }
        bucket.places.push(place);
    }

    fn pop(&mut self) -> Option<(u32, u32)> {
        loop {
            let rank = self.due()?;
            let slot = self.bucket_of[rank as usize] as usize - 1;
            let bucket = &mut self.buckets[slot];
            if bucket.is_done() {
                bucket.places = Vec::new();
                bucket.next = 0;
                self.current = None;
                continue;
            }
            if bucket.unsorted {
                bucket.places[bucket.next..].sort_unstable();
                bucket.unsorted = false;
            }
            bucket.next += 1;
            return Some((rank, bucket.places[bucket.next - 1]));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// Pushes and pops in any order.
        #[test]
        fn both_queues_are_one(steps in prop::collection::vec(prop::option::of((0..6u32, 0..9u32)), 0..200)) {
            let (mut heap, mut buckets) = (Heap::default(), Buckets::new(6));
            for step in steps {
                match step {
                    Some((rank, place)) => {
                        heap.push(rank, place);
                        buckets.push(rank, place);
                    }
                    None => prop_assert_eq!(heap.pop(), buckets.pop()),
                }
            }
            while let Some(due) = heap.pop() {
                prop_assert_eq!(Some(due), buckets.pop());
            }
            prop_assert_eq!(buckets.pop(), None);
        }
    }
}
