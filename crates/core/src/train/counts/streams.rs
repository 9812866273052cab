//! Sums of sorted pieces: many streams of pieces in byte order become one.

use crate::cache::KEY_BYTES;
use crate::error::Result;
use crate::reserve::{append, filled};
use crate::train::{checked_product, checked_sum};

/// Pieces with their counts, one at a time. Sorted streams give them in byte order.
pub trait PieceStream {
    /// Goes to the next piece; false at the end.
    fn advance(&mut self) -> Result<bool>;
    /// The current piece.
    fn piece(&self) -> &[u8];
    /// Its count.
    fn count(&self) -> u64;
    /// Its order.
    fn order(&self) -> Order {
        order_of(self.piece())
    }
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

/// The first bytes of a piece and its length, as a number. Numbers have the order of the pieces; longer pieces may have the
/// same one.
pub type Order = u128;

/// Follows every piece.
const AT_END: Order = Order::MAX;

/// The order of a piece.
pub(super) fn order_of(piece: &[u8]) -> Order {
    let mut bytes = [0; KEY_BYTES + 1];
    let length = piece.len().min(KEY_BYTES);
    bytes[..length].copy_from_slice(&piece[..length]);
    bytes[KEY_BYTES] = piece.len().min(KEY_BYTES + 1) as u8;
    Order::from_be_bytes(bytes)
}

/// Whether this is the order of one piece only.
fn is_of_one(order: Order) -> bool {
    order.to_be_bytes()[KEY_BYTES] <= KEY_BYTES as u8
}

/// The sum of sorted streams, sorted. A tree of losers (Knuth, The Art of Computer Programming, volume 3, section 5.4.1)
/// finds the stream with the next piece.
pub struct Sums<'a> {
    streams: Vec<Weighted<'a>>,
    /// The order of the current piece of each stream, or `AT_END`.
    orders: Vec<Order>,
    /// The stream with the first piece, and at each inner node of the tree the stream that lost there. The children of a
    /// node are at twice its number and after that; the leaves, which are the streams, follow the nodes.
    tree: Vec<usize>,
    piece: Vec<u8>,
    count: u64,
}

impl<'a> Sums<'a> {
    /// Reads the first piece of each stream.
    pub fn new(streams: Vec<Weighted<'a>>) -> Result<Self> {
        let leaves = streams.len();
        let mut sums = Self {
            orders: filled(AT_END, leaves)?,
            tree: filled(0, leaves)?,
            streams,
            piece: Vec::new(),
            count: 0,
        };
        for stream in 0..leaves {
            sums.advance_stream(stream)?;
        }
        let mut winners = filled(0, 2 * leaves)?;
        for (stream, winner) in winners.iter_mut().skip(leaves).enumerate() {
            *winner = stream;
        }
        for node in (1..leaves).rev() {
            let (left, right) = (winners[2 * node], winners[2 * node + 1]);
            let right_wins = sums.precedes(right, left);
            let (winner, loser) = if right_wins {
                (right, left)
            } else {
                (left, right)
            };
            (winners[node], sums.tree[node]) = (winner, loser);
        }
        if let (Some(first), Some(&winner)) = (sums.tree.first_mut(), winners.get(1)) {
            *first = winner;
        }
        Ok(sums)
    }

    fn precedes(&self, a: usize, b: usize) -> bool {
        let (first, second) = (self.orders[a], self.orders[b]);
        if first != second || first == AT_END || is_of_one(first) {
            return first < second;
        }
        self.streams[a].stream.piece() < self.streams[b].stream.piece()
    }

    fn advance_stream(&mut self, number: usize) -> Result<()> {
        let stream = &mut self.streams[number].stream;
        self.orders[number] = if stream.advance()? {
            stream.order()
        } else {
            AT_END
        };
        Ok(())
    }

    /// Moves the stream with the first piece to its next one, and lets it play again on its way up.
    fn advance_winner(&mut self) -> Result<()> {
        let mut winner = self.tree[0];
        self.advance_stream(winner)?;
        let mut node = (winner + self.tree.len()) / 2;
        while node > 0 {
            if self.precedes(self.tree[node], winner) {
                std::mem::swap(&mut self.tree[node], &mut winner);
            }
            node /= 2;
        }
        self.tree[0] = winner;
        Ok(())
    }
}

impl PieceStream for Sums<'_> {
    fn advance(&mut self) -> Result<bool> {
        let Some(&first) = self.tree.first() else {
            return Ok(false);
        };
        let order = self.orders[first];
        if order == AT_END {
            return Ok(false);
        }
        self.piece.clear();
        append(&mut self.piece, self.streams[first].stream.piece())?;
        self.count = 0;
        loop {
            let winner = self.tree[0];
            let Weighted { stream, weight } = &self.streams[winner];
            let is_same =
                self.orders[winner] == order && (is_of_one(order) || stream.piece() == self.piece);
            if !is_same {
                return Ok(true);
            }
            let count = checked_product(stream.count(), *weight)?;
            self.count = checked_sum(self.count, count)?;
            self.advance_winner()?;
        }
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

    /// Short pieces, and pieces around the length that an order holds.
    fn a_piece() -> impl Strategy<Value = Vec<u8>> {
        let same = prop::sample::select(vec![0, 13, 15]);
        let rest = prop::collection::vec(0..3_u8, 1..5);
        (0..2_u8, same, rest).prop_map(|(byte, same, rest)| [vec![byte; same], rest].concat())
    }

    #[test]
    fn a_number_has_the_order_of_its_piece() {
        let pieces: Vec<Vec<u8>> = (0..=20).map(|length| vec![0; length]).collect();
        for (shorter, longer) in pieces.iter().zip(&pieces[1..]) {
            let (shorter, longer) = (order_of(shorter), order_of(longer));
            assert!(shorter < longer || !is_of_one(shorter) && shorter == longer);
            assert!(longer < order_of(&[1]));
        }
    }

    proptest! {
        #[test]
        fn streams_are_added_up(
            lists in prop::collection::vec((
                prop::collection::btree_map(a_piece(), 1..100_u64, 0..30),
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
