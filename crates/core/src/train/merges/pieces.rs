//! The pieces as symbols, end to end in one array.

use super::pairs::Pair;
use super::start::Start;
use crate::batch::{in_order, thread_count};
use crate::error::{Error, Result};
use crate::interrupt::Interrupt;
use crate::merge::prefetch;
use std::cmp::Reverse;

/// Marks a slot in which no symbol begins.
pub const TAIL: u32 = 1 << 31;
/// The slot before and after each piece.
pub const BOUNDARY: u32 = u32::MAX;
/// Positions are 32 bits wide.
pub const MOST_SLOTS: u64 = u32::MAX as u64;
/// A thread lays out about so many bytes at a time.
const BYTES_A_JOB: usize = 1 << 16;

/// Pieces as sequences of symbols, end to end.
///
/// Each byte of a piece has a slot. A symbol is in the slot of its first byte and, marked, in that of
/// its last one, so that the symbols' lengths lead from a symbol to both its neighbours.
pub struct Pieces {
    pub slots: Vec<u32>,
    /// Bytes of each symbol.
    pub lengths: Vec<u32>,
    /// Pieces with the same count are next to each other: where each such run begins, and the count.
    pub runs: Vec<(u32, u64)>,
    /// The run in which a position was last found.
    run: usize,
}

impl Pieces {
    /// Every piece as the symbols that merging begins with. Pieces that hold no pair are left out.
    pub fn lay_out<'a>(
        pieces: impl Iterator<Item = (&'a [u8], u64)>,
        start: &Start<'_>,
        most_slots: u64,
        threads: usize,
        interrupt: &Interrupt<'_>,
    ) -> Result<Self> {
        let mut pieces: Vec<(&[u8], u64)> = pieces
            .filter(|(piece, count)| piece.len() > 1 && *count > 0)
            .collect();
        let size = 1 + pieces.iter().map(|p| p.0.len() as u64 + 1).sum::<u64>();
        if size > most_slots {
            return Err(Error::Option(format!(
                "the distinct pieces, with a byte between them, are {size} bytes; at most {most_slots} \
                 can be trained on: use less text, or set max_memory, which drops the rarest pieces"
            )));
        }
        pieces.sort_unstable_by_key(|&(_, count)| Reverse(count));
        let mut all = Laid::default();
        all.slots.reserve_exact(size as usize);
        all.slots.push(BOUNDARY);
        in_order(
            Jobs(&pieces),
            thread_count(threads, size as usize),
            interrupt,
            |job, laid: &mut Laid| {
                interrupt.poll()?;
                job.iter()
                    .try_for_each(|&(piece, count)| laid.add(piece, count, start, interrupt))
            },
            |laid| all.append(laid),
        )?;
        let Laid { slots, runs, .. } = all;
        let lengths = start.tokens.iter().map(|token| token.len() as u32);
        Ok(Self {
            slots,
            lengths: lengths.collect(),
            runs,
            run: 0,
        })
    }

    /// How often the piece at a position occurs.
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

    /// Whether the pair is (still) at a position.
    pub fn holds(&self, pair: Pair, position: u32) -> bool {
        let left = position as usize;
        self.slots[left] == pair.left && self.slots[left + self.length(pair.left)] == pair.right
    }

    /// Asks for the slots at a position, which is far from the others in memory.
    pub fn fetch(&self, position: u32) {
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

    /// Puts the product in the place of the pair at a position.
    pub fn replace(&mut self, pair: Pair, product: u32, position: u32) {
        let left = position as usize;
        let right = left + self.length(pair.left);
        let end = left + self.length(product);
        self.slots[left] = product;
        self.slots[right] = product | TAIL;
        self.slots[end - 1] = product | TAIL;
    }

    /// The pairs, from the first position to the last: how often its piece occurs, its position.
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

/// Pieces in jobs of about [`BYTES_A_JOB`].
struct Jobs<'a, 'b>(&'b [(&'a [u8], u64)]);

impl<'a, 'b> Iterator for Jobs<'a, 'b> {
    type Item = &'b [(&'a [u8], u64)];

    fn next(&mut self) -> Option<Self::Item> {
        let mut bytes = 0;
        let pieces = self.0.iter().take_while(|(piece, _)| {
            let begun = bytes < BYTES_A_JOB;
            bytes += piece.len();
            begun
        });
        let (job, rest) = self.0.split_at(pieces.count());
        self.0 = rest;
        (!job.is_empty()).then_some(job)
    }
}

/// Some of the pieces, laid out. Where the jobs were cut does not show when they are put together.
#[derive(Default)]
struct Laid {
    slots: Vec<u32>,
    runs: Vec<(u32, u64)>,
    /// Of one piece.
    symbols: Vec<u32>,
}

impl Laid {
    fn add(
        &mut self,
        piece: &[u8],
        count: u64,
        start: &Start<'_>,
        interrupt: &Interrupt<'_>,
    ) -> Result<()> {
        self.symbols.clear();
        start.symbols(piece, &mut self.symbols, interrupt)?;
        if self.symbols.len() < 2 {
            return Ok(());
        }
        self.begin_run(self.slots.len() as u32, count);
        if self.symbols.len() == piece.len() {
            self.slots.extend_from_slice(&self.symbols);
        } else {
            for &symbol in &self.symbols {
                let (first, length) = (self.slots.len(), start.length(symbol));
                self.slots.resize(first + length, symbol | TAIL);
                self.slots[first] = symbol;
            }
        }
        self.slots.push(BOUNDARY);
        Ok(())
    }

    fn begin_run(&mut self, position: u32, count: u64) {
        if self.runs.last().is_none_or(|run| run.1 != count) {
            self.runs.push((position, count));
        }
    }

    /// Takes all that another holds.
    fn append(&mut self, other: &mut Self) {
        let before = self.slots.len() as u32;
        for (position, count) in other.runs.drain(..) {
            self.begin_run(before + position, count);
        }
        self.slots.append(&mut other.slots);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::train::merges::{Beginning, MergeOptions, TieBreak};

    fn lay_out(pieces: &[(&[u8], u64)], most_slots: u64, threads: usize) -> Result<Pieces> {
        let options = MergeOptions {
            vocab_size: 300,
            reserved: Vec::new(),
            min_frequency: 1,
            tie_break: TieBreak::Largest,
            max_token_length: None,
            threads,
        };
        let begun = [(b"a".to_vec(), b"b".to_vec())];
        let beginning = Beginning {
            model: None,
            merges: &begun,
        };
        let start = Start::new(&beginning, &options)?;
        let interrupt = Interrupt::never();
        Pieces::lay_out(
            pieces.iter().copied(),
            &start,
            most_slots,
            threads,
            &interrupt,
        )
    }

    #[test]
    fn positions_are_32_bits_wide() {
        let lay_out = |most_slots| {
            let given: [(&[u8], u64); 3] = [(b"axc", 1), (b"d", 1), (b"ef", 1)];
            lay_out(&given, most_slots, 1).map(|pieces| pieces.slots.len())
        };
        assert_eq!(lay_out(8).unwrap(), 8);
        let error = lay_out(7).err().map(|error| error.to_string());
        assert!(error.unwrap_or_default().contains("8 bytes; at most 7"));
    }

    #[test]
    fn a_symbol_is_in_its_first_slot_and_marked_in_its_last() {
        let pieces = lay_out(&[(b"cabd", 7), (b"ab", 5), (b"ba", 5)], MOST_SLOTS, 1).unwrap();
        let [a, b, c, d, ab, end] = [97, 98, 99, 100, 256, BOUNDARY];
        assert_eq!(pieces.slots, [end, c, ab, ab | TAIL, d, end, b, a, end]);
        assert_eq!(pieces.runs, [(1, 7), (6, 5)]);
    }

    #[test]
    fn where_jobs_are_cut_does_not_show() {
        let texts: Vec<String> = (0..40_000).map(|i| format!("abc{i}ab")).collect();
        let counts = (0..).map(|i| 10 - i / 5000);
        let pieces: Vec<(&[u8], u64)> = texts.iter().map(|t| t.as_bytes()).zip(counts).collect();
        let one = lay_out(&pieces, MOST_SLOTS, 1).unwrap();
        for threads in [2, 3, 8] {
            let many = lay_out(&pieces, MOST_SLOTS, threads).unwrap();
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
