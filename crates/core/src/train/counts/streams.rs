//! Sums of sorted pieces: many streams of pieces in byte order become one.

use crate::error::Result;
use crate::reserve::{append, push, with_capacity};
use crate::train::{checked_product, checked_sum};
use std::cmp::Ordering;

/// Pieces with their counts, one at a time. Sorted streams give them in byte order.
pub trait PieceStream {
    /// Goes to the next piece; false at the end.
    fn advance(&mut self) -> Result<bool>;
    /// The current piece.
    fn piece(&self) -> &[u8];
    /// Its count.
    fn count(&self) -> u64;
}

/// Pieces in byte order, in memory.
pub struct SortedPieces<'a> {
    pieces: Vec<(&'a [u8], u64)>,
    /// The number of the piece after the current one.
    next: usize,
}

impl<'a> SortedPieces<'a> {
    /// A stream of pieces that are in byte order.
    pub fn of(pieces: Vec<(&'a [u8], u64)>) -> Self {
        Self { pieces, next: 0 }
    }
}

impl PieceStream for SortedPieces<'_> {
    fn advance(&mut self) -> Result<bool> {
        self.next += 1;
        Ok(self.next <= self.pieces.len())
    }

    fn piece(&self) -> &[u8] {
        self.pieces[self.next - 1].0
    }

    fn count(&self) -> u64 {
        self.pieces[self.next - 1].1
    }
}

/// A sorted stream whose counts count `weight` times.
pub struct Weighted<'a> {
    pub stream: Box<dyn PieceStream + 'a>,
    pub weight: u64,
}

/// The sum of sorted streams, sorted. A binary heap holds the streams by their current pieces.
pub struct Sums<'a> {
    streams: Vec<Weighted<'a>>,
    heap: Vec<Head>,
    piece: Vec<u8>,
    count: u64,
}

/// A stream on the heap.
#[derive(Clone, Copy)]
struct Head {
    /// The first bytes of its piece: they decide most comparisons.
    prefix: u64,
    stream: usize,
}

impl<'a> Sums<'a> {
    /// Reads the first piece of each stream.
    pub fn new(streams: Vec<Weighted<'a>>) -> Result<Self> {
        let heap = with_capacity(streams.len())?;
        let mut sums = Self {
            streams,
            heap,
            piece: Vec::new(),
            count: 0,
        };
        for stream in 0..sums.streams.len() {
            if sums.streams[stream].stream.advance()? {
                let head = sums.head(stream);
                push(&mut sums.heap, head)?;
            }
        }
        for top in (0..sums.heap.len() / 2).rev() {
            sums.sift_down(top);
        }
        Ok(sums)
    }

    fn head(&self, stream: usize) -> Head {
        let piece = self.streams[stream].stream.piece();
        let mut prefix = [0; 8];
        let length = piece.len().min(prefix.len());
        prefix[..length].copy_from_slice(&piece[..length]);
        let prefix = u64::from_be_bytes(prefix);
        Head { prefix, stream }
    }

    fn precedes(&self, a: Head, b: Head) -> bool {
        let piece = |head: Head| self.streams[head.stream].stream.piece();
        let order = a.prefix.cmp(&b.prefix);
        order.then_with(|| piece(a).cmp(piece(b))) == Ordering::Less
    }

    fn sift_down(&mut self, mut hole: usize) {
        let sifted = self.heap[hole];
        loop {
            let mut child = 2 * hole + 1;
            if child >= self.heap.len() {
                break;
            }
            let other = child + 1;
            if other < self.heap.len() && self.precedes(self.heap[other], self.heap[child]) {
                child = other;
            }
            if !self.precedes(self.heap[child], sifted) {
                break;
            }
            self.heap[hole] = self.heap[child];
            hole = child;
        }
        self.heap[hole] = sifted;
    }

    /// Moves the stream at the top of the heap to its next piece.
    fn advance_top(&mut self) -> Result<()> {
        let stream = self.heap[0].stream;
        if self.streams[stream].stream.advance()? {
            self.heap[0] = self.head(stream);
        } else {
            self.heap.swap_remove(0);
        }
        if !self.heap.is_empty() {
            self.sift_down(0);
        }
        Ok(())
    }
}

impl PieceStream for Sums<'_> {
    fn advance(&mut self) -> Result<bool> {
        let Some(top) = self.heap.first() else {
            return Ok(false);
        };
        self.piece.clear();
        append(&mut self.piece, self.streams[top.stream].stream.piece())?;
        self.count = 0;
        while let Some(top) = self.heap.first() {
            let Weighted { stream, weight } = &self.streams[top.stream];
            if stream.piece() != self.piece {
                break;
            }
            let count = checked_product(stream.count(), *weight)?;
            self.count = checked_sum(self.count, count)?;
            self.advance_top()?;
        }
        Ok(true)
    }

    fn piece(&self) -> &[u8] {
        &self.piece
    }

    fn count(&self) -> u64 {
        self.count
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::Error;
    use proptest::prelude::*;
    use std::collections::BTreeMap;

    struct Listed(Vec<(Vec<u8>, u64)>, usize);

    impl PieceStream for Listed {
        fn advance(&mut self) -> Result<bool> {
            self.1 += 1;
            Ok(self.1 <= self.0.len())
        }

        fn piece(&self) -> &[u8] {
            &self.0[self.1 - 1].0
        }

        fn count(&self) -> u64 {
            self.0[self.1 - 1].1
        }
    }

    fn summed(lists: &[(BTreeMap<Vec<u8>, u64>, u64)]) -> Result<Vec<(Vec<u8>, u64)>> {
        let streams = lists.iter().map(|(list, weight)| Weighted {
            stream: Box::new(Listed(list.clone().into_iter().collect(), 0)),
            weight: *weight,
        });
        let mut sums = Sums::new(streams.collect())?;
        let mut pieces = Vec::new();
        while sums.advance()? {
            pieces.push((sums.piece().to_vec(), sums.count()));
        }
        Ok(pieces)
    }

    #[test]
    fn a_sum_never_wraps() {
        let list = |count: u64| BTreeMap::from([(b"a".to_vec(), count)]);
        for lists in [
            vec![(list(u64::MAX), 1), (list(1), 1)],
            vec![(list(1 << 63), 2)],
        ] {
            assert!(matches!(summed(&lists), Err(Error::CountOverflow)));
        }
        let fits = summed(&[(list(1 << 63), 1), (list((1 << 62) - 1), 2)]).unwrap();
        assert_eq!(fits, [(b"a".to_vec(), u64::MAX - 1)]);
        assert!(summed(&[]).unwrap().is_empty());
    }

    proptest! {
        #[test]
        fn streams_are_added_up(
            lists in prop::collection::vec((
                prop::collection::btree_map(prop::collection::vec(0..3_u8, 1..12), 1..100_u64, 0..30),
                1..4_u64,
            ), 0..12),
        ) {
            let mut expected = BTreeMap::new();
            for (list, weight) in &lists {
                for (piece, count) in list {
                    *expected.entry(piece.clone()).or_insert(0) += count * weight;
                }
            }
            let expected: Vec<_> = expected.into_iter().collect();
            prop_assert_eq!(summed(&lists).unwrap(), expected);
        }
    }
}
