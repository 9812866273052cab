//! All pieces as symbols, in one array.

use super::seed::{Pair, Seed};
use crate::error::{Error, Result};
use crate::interrupt::Interrupt;
use crate::memory::prefetch;
use crate::reserve::{collect, push, reserve, reserve_exact};
use crate::threads::ordered::in_order;
use crate::threads::thread_count;
use std::cmp::Reverse;

/// Marks the slot of a symbol's last byte.
pub const TAIL: u32 = 1 << 31;
/// The slot before the first piece and after each piece.
pub const BOUNDARY: u32 = u32::MAX;
/// Positions are 32 bits wide.
pub const MAX_SLOTS: u64 = u32::MAX as u64;
/// Pieces that a thread lays out as one job.
const JOB_PIECES: usize = 1 << 10;

/// Pieces as sequences of symbols, concatenated: a doubly linked list without links.
///
/// Each byte of a piece has a slot. A symbol fills the slot of its first byte and, marked as [`TAIL`], that of
/// its last one. The symbols' lengths therefore lead from a symbol to both neighbours.
pub struct Pieces {
    pub slots: Vec<u32>,
    /// Bytes of each symbol.
    pub lengths: Vec<u32>,
    /// Pieces with equal counts are adjacent. Each such run: its first position and the count.
    pub runs: Vec<(u32, u64)>,
    /// Index of the run that `count_at` found last.
    run: usize,
}

impl Pieces {
    /// Lays all pieces out as their initial symbols. Leaves out pieces without a pair.
    pub fn lay_out<'a>(
        pieces: impl Iterator<Item = (&'a [u8], u64)>,
        seed: &Seed<'_>,
        max_slots: u64,
        threads: usize,
        interrupt: &Interrupt<'_>,
    ) -> Result<Self> {
        let pieces = pieces.filter(|(piece, count)| piece.len() > 1 && *count > 0);
        let mut pieces: Vec<(&[u8], u64)> = collect(pieces)?;
        let size = 1 + pieces.iter().map(|p| p.0.len() as u64 + 1).sum::<u64>();
        if size > max_slots {
            return Err(Error::Option(format!(
                "the distinct pieces, with a byte between them, are {size} bytes; at most {max_slots} \
                 can be learned from: set min_count, or count a sample"
            )));
        }
        pieces.sort_unstable_by_key(|&(_, count)| Reverse(count));
        let mut all = Layout::default();
        reserve_exact(&mut all.slots, size as usize)?;
        all.slots.push(BOUNDARY);
        in_order(
            pieces.chunks(JOB_PIECES),
            thread_count(threads, size as usize),
            interrupt,
            |_, job, layout: &mut Layout| {
                job.iter()
                    .try_for_each(|&(piece, count)| layout.add(piece, count, seed, interrupt))
            },
            |layout| all.append(layout),
        )?;
        let Layout { slots, runs, .. } = all;
        let lengths = seed.tokens.iter().map(|token| token.len() as u32);
        Ok(Self {
            slots,
            lengths: lengths.collect(),
            runs,
            run: 0,
        })
    }

    /// The count of the piece at a position.
    pub fn count_at(&mut self, position: u32) -> u64 {
        let begins_later = |run: &(u32, u64)| run.0 > position;
        let next = self.runs.get(self.run + 1);
        if begins_later(&self.runs[self.run]) || !next.is_none_or(begins_later) {
            self.run = self.runs.partition_point(|run| !begins_later(run)) - 1;
        }
        self.runs[self.run].1
    }

    pub fn length(&self, symbol: u32) -> usize {
        self.lengths[symbol as usize] as usize
    }

    /// Whether the pair is still at a position.
    pub fn holds(&self, pair: Pair, position: u32) -> bool {
        let left = position as usize;
        self.slots[left] == pair.left && self.slots[left + self.length(pair.left)] == pair.right
    }

    /// Prefetches the slots at a position.
    pub fn prefetch(&self, position: u32) {
        prefetch(&self.slots, position as usize);
    }

    /// Position and symbol before the symbol at a position.
    pub fn before(&self, position: u32) -> Option<(u32, u32)> {
        let last = self.slots[position as usize - 1];
        let symbol = last & !TAIL;
        (last != BOUNDARY).then(|| (position - self.lengths[symbol as usize], symbol))
    }

    /// The symbol after the symbol at a position.
    pub fn after(&self, position: u32) -> Option<u32> {
        let symbol = self.slots[position as usize];
        let next = self.slots[position as usize + self.length(symbol)];
        (next != BOUNDARY).then_some(next)
    }

    /// Replaces the pair at a position by its product.
    pub fn replace(&mut self, pair: Pair, product: u32, position: u32) {
        let left = position as usize;
        let right = left + self.length(pair.left);
        let end = left + self.length(product);
        self.slots[left] = product;
        self.slots[right] = product | TAIL;
        self.slots[end - 1] = product | TAIL;
    }

    /// Calls `visit` with each pair, the count of its piece and its position, in ascending order.
    pub fn for_each_pair(&self, mut visit: impl FnMut(Pair, u64, u32) -> Result<()>) -> Result<()> {
        let ends = self.runs.iter().skip(1).map(|run| run.0 as usize);
        let ends = ends.chain([self.slots.len()]);
        for (&(from, count), end) in self.runs.iter().zip(ends) {
            let mut at = from as usize;
            while at < end {
                let left = self.slots[at];
                if left == BOUNDARY {
                    at += 1;
                    continue;
                }
                let position = at as u32;
                at += self.length(left);
                let right = self.slots[at];
                if right != BOUNDARY {
                    visit(Pair { left, right }, count, position)?;
                }
            }
        }
        Ok(())
    }
}

/// The slots and runs of some pieces. Appending the layouts of all jobs gives the layout of all pieces.
#[derive(Default)]
struct Layout {
    slots: Vec<u32>,
    runs: Vec<(u32, u64)>,
    /// The symbols of the current piece.
    symbols: Vec<u32>,
}

impl Layout {
    fn add(
        &mut self,
        piece: &[u8],
        count: u64,
        seed: &Seed<'_>,
        interrupt: &Interrupt<'_>,
    ) -> Result<()> {
        self.symbols.clear();
        seed.symbols(piece, &mut self.symbols, interrupt)?;
        if self.symbols.len() < 2 {
            return Ok(());
        }
        self.begin_run(self.slots.len() as u32, count)?;
        reserve(&mut self.slots, piece.len() + 1)?;
        if self.symbols.len() == piece.len() {
            self.slots.extend_from_slice(&self.symbols);
        } else {
            for &symbol in &self.symbols {
                let (first, length) = (self.slots.len(), seed.length(symbol));
                self.slots.resize(first + length, symbol | TAIL);
                self.slots[first] = symbol;
            }
        }
        self.slots.push(BOUNDARY);
        Ok(())
    }

    fn begin_run(&mut self, position: u32, count: u64) -> Result<()> {
        if self.runs.last().is_none_or(|run| run.1 != count) {
            push(&mut self.runs, (position, count))?;
        }
        Ok(())
    }

    /// Moves the other's content to the end of this layout.
    fn append(&mut self, other: &mut Self) -> Result<()> {
        reserve(&mut self.slots, other.slots.len())?;
        let offset = self.slots.len() as u32;
        for (position, count) in other.runs.drain(..) {
            self.begin_run(offset + position, count)?;
        }
        self.slots.append(&mut other.slots);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::train::merges::options::MergeOptions;

    fn lay_out(pieces: &[(&[u8], u64)], max_slots: u64, threads: usize) -> Result<Pieces> {
        let options = MergeOptions {
            min_frequency: 1,
            threads,
            ..MergeOptions::new(300)
        };
        let merges = [(b"a".to_vec(), b"b".to_vec())];
        let seed = Seed::new(None, &merges, &options)?;
        let interrupt = Interrupt::never();
        Pieces::lay_out(
            pieces.iter().copied(),
            &seed,
            max_slots,
            threads,
            &interrupt,
        )
    }

    #[test]
    fn positions_are_32_bits_wide() {
        let lay_out = |max_slots| {
            let given: [(&[u8], u64); 3] = [(b"axc", 1), (b"d", 1), (b"ef", 1)];
            lay_out(&given, max_slots, 1).map(|pieces| pieces.slots.len())
        };
        assert_eq!(lay_out(8).unwrap(), 8);
        let error = lay_out(7).err().map(|error| error.to_string());
        assert!(error.unwrap_or_default().contains("8 bytes; at most 7"));
    }

    #[test]
    fn a_symbol_is_in_its_first_slot_and_marked_in_its_last() {
        let pieces = lay_out(&[(b"cabd", 7), (b"ab", 5), (b"ba", 5)], MAX_SLOTS, 1).unwrap();
        let [a, b, c, d, ab, end] = [97, 98, 99, 100, 256, BOUNDARY];
        assert_eq!(pieces.slots, [end, c, ab, ab | TAIL, d, end, b, a, end]);
        assert_eq!(pieces.runs, [(1, 7), (6, 5)]);
    }

    #[test]
    fn where_jobs_are_cut_does_not_show() {
        let texts: Vec<String> = (0..40_000).map(|i| format!("abc{i}ab")).collect();
        let counts = (0..).map(|i| 10 - i / 5000);
        let pieces: Vec<(&[u8], u64)> = texts.iter().map(|t| t.as_bytes()).zip(counts).collect();
        let one = lay_out(&pieces, MAX_SLOTS, 1).unwrap();
        for threads in [2, 3, 8] {
            let many = lay_out(&pieces, MAX_SLOTS, threads).unwrap();
            assert_eq!((&one.slots, &one.runs), (&many.slots, &many.runs));
        }
        let mut bytes = Vec::new();
        one.for_each_pair(|pair, count, position| {
            bytes.push((pair.left, pair.right, count, position));
            Ok(())
        })
        .unwrap();
        assert_eq!(
            bytes.len(),
            one.slots.iter().filter(|&&s| s < TAIL).count() - pieces.len()
        );
    }
}
