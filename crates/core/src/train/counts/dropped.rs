//! What was dropped to save memory, and the errors that follow.

use super::scripts::{script_of, SCRIPTS};
use crate::error::Result;
use crate::reserve::filled;

/// The pieces that were dropped.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Dropped {
    /// Number of dropped pieces. A piece that returns and is dropped again counts again.
    pub distinct: u64,
    /// The sum of their counts, at most the largest 64-bit number.
    pub pieces: u64,
    /// No count is too low by more than this. A piece with a higher count is never missing.
    pub max_error: u64,
    /// No count of a pair of adjacent symbols is too low by more than this.
    pub pair_error: u64,
    /// The numbers by the script of a piece's first letter, in the order of [`SCRIPTS`].
    pub scripts: [Loss; SCRIPTS.len()],
}

/// Dropped pieces of one script.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Loss {
    /// Number of dropped pieces.
    pub distinct: u64,
    /// The sum of their counts.
    pub pieces: u64,
}

impl Loss {
    fn add(&mut self, distinct: u64, pieces: u64) {
        self.distinct = self.distinct.saturating_add(distinct);
        self.pieces = self.pieces.saturating_add(pieces);
    }
}

impl Dropped {
    /// Adds the pieces that were dropped elsewhere, each `weight` times.
    pub fn add(&mut self, other: Self, weight: u64) {
        let [pieces, max_error, pair_error] = [other.pieces, other.max_error, other.pair_error]
            .map(|count| count.saturating_mul(weight));
        self.distinct = self.distinct.saturating_add(other.distinct);
        self.pieces = self.pieces.saturating_add(pieces);
        self.max_error = self.max_error.saturating_add(max_error);
        self.pair_error = self.pair_error.saturating_add(pair_error);
        for (own, other) in self.scripts.iter_mut().zip(other.scripts) {
            own.add(other.distinct, other.pieces.saturating_mul(weight));
        }
    }

    /// Adds a piece that is dropped now.
    pub fn add_piece(&mut self, piece: &[u8], count: u64, lost: &mut LostPairs) -> Result<()> {
        self.distinct = self.distinct.saturating_add(1);
        self.pieces = self.pieces.saturating_add(count);
        self.scripts[script_of(piece)].add(1, count);
        lost.add(piece, count)
    }
}

/// How often each pair of bytes occurs in the dropped pieces.
///
/// Every occurrence of a pair of symbols holds the last byte of the one and the first byte of the other, side by side. So
/// the most frequent pair of bytes bounds what the count of any pair of symbols lacks.
#[derive(Default)]
pub struct LostPairs {
    /// Empty until a piece is dropped.
    counts: Vec<u64>,
}

impl LostPairs {
    fn add(&mut self, piece: &[u8], count: u64) -> Result<()> {
        if self.counts.is_empty() {
            self.counts = filled(0, 1 << 16)?;
        }
        for pair in piece.windows(2) {
            let lost = &mut self.counts[usize::from(pair[0]) << 8 | usize::from(pair[1])];
            *lost = lost.saturating_add(count);
        }
        Ok(())
    }

    /// The largest count.
    pub fn most(&self) -> u64 {
        self.counts.iter().copied().max().unwrap_or(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn losses_are_told_by_script_and_by_pair() {
        let (mut dropped, mut lost) = (Dropped::default(), LostPairs::default());
        for (piece, count) in [(" abab", 3), ("ab", 5), ("жук", 2), ("語", 7), (" 12", 1)] {
            dropped
                .add_piece(piece.as_bytes(), count, &mut lost)
                .unwrap();
        }
        assert_eq!(lost.most(), 2 * 3 + 5);
        assert_eq!((dropped.distinct, dropped.pieces), (5, 18));
        let of = |name: &str| {
            let script = SCRIPTS.iter().position(|script| *script == name).unwrap();
            (
                dropped.scripts[script].distinct,
                dropped.scripts[script].pieces,
            )
        };
        assert_eq!(of("Latin"), (2, 8));
        assert_eq!(
            (of("Cyrillic"), of("Han"), of("other")),
            ((1, 2), (1, 7), (1, 1))
        );
        let mut sum = dropped;
        sum.add(dropped, 3);
        assert_eq!((sum.distinct, sum.pieces), (10, 72));
        assert_eq!(sum.scripts[0].pieces, 4 * dropped.scripts[0].pieces);
    }
}
