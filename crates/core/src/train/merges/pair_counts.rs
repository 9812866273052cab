//! The initial counts and positions of all pairs.

use super::pieces::Pieces;
use super::seed::Pair;
use crate::error::Result;
use crate::interrupt::{Interrupt, Poller};
use crate::reserve::{push, reserve_entry, with_capacity};
use crate::threads::ordered::map;
use crate::threads::thread_count;
use crate::train::checked_sum;
use rustc_hash::FxHashMap;

/// A pair, its count and its positions.
pub type CountedPair = (Pair, u64, Vec<u32>);

/// The pairs with a count of at least `min_frequency` and at most `max_length` bytes.
///
/// Each thread reads all pieces and counts the pairs of one share. One thread does all the work for a
/// pair, so the result does not depend on the number of threads.
pub fn count_pairs(
    pieces: &Pieces,
    min_frequency: u64,
    max_length: usize,
    threads: usize,
    interrupt: &Interrupt<'_>,
) -> Result<Vec<Vec<CountedPair>>> {
    let size = pieces.slots.len();
    let shares: Vec<usize> = (0..thread_count(threads, size)).collect();
    map(
        &shares,
        threads,
        |_| size,
        interrupt,
        |&share| {
            let is_own = |pair: Pair| share_of(pair, shares.len()) == share;
            count_share(pieces, is_own, min_frequency, max_length, interrupt)
        },
    )
}

/// The share of a pair: the upper bits of a multiplicative hash.
fn share_of(pair: Pair, shares: usize) -> usize {
    let mixed = (pair.left.wrapping_mul(31) ^ pair.right).wrapping_mul(0x9E37_79B9);
    ((u64::from(mixed) * shares as u64) >> 32) as usize
}

fn count_share(
    pieces: &Pieces,
    is_own: impl Fn(Pair) -> bool,
    min_frequency: u64,
    max_length: usize,
    interrupt: &Interrupt<'_>,
) -> Result<Vec<CountedPair>> {
    let mut poller = Poller::new(interrupt);
    // Two passes: the first counts, so that the second allocates each list of positions exactly.
    let mut indices = PairIndex::new();
    let mut counts: Vec<(Pair, u64, usize)> = Vec::new();
    pieces.for_each_pair(|pair, count, _| {
        poller.advance(1)?;
        if is_own(pair) {
            let index = indices.of(pair)?;
            if *index == NONE {
                *index = counts.len() as u32;
                push(&mut counts, (pair, 0, 0))?;
            }
            let (_, total, occurrences) = &mut counts[*index as usize];
            *total = checked_sum(*total, count)?;
            *occurrences += 1;
        }
        Ok(())
    })?;
    let length = |pair: Pair| pieces.length(pair.left) + pieces.length(pair.right);
    let mut counted: Vec<CountedPair> = Vec::new();
    for (pair, total, occurrences) in counts {
        let is_wanted = total >= min_frequency && length(pair) <= max_length;
        *indices.of(pair)? = if is_wanted {
            counted.len() as u32
        } else {
            NONE
        };
        if is_wanted {
            push(&mut counted, (pair, total, with_capacity(occurrences)?))?;
        }
    }
    pieces.for_each_pair(|pair, _, position| {
        poller.advance(1)?;
        if is_own(pair) {
            if let Some((_, _, positions)) = counted.get_mut(*indices.of(pair)? as usize) {
                positions.push(position);
            }
        }
        Ok(())
    })?;
    Ok(counted)
}

/// The index of a pair that is not in the list.
const NONE: u32 = u32::MAX;
/// Symbols below this are bytes: most symbols at the start of a training.
const LOW: u32 = 256;

/// The index of each pair in a list. Pairs of bytes need no hashing.
struct PairIndex {
    low: Vec<u32>,
    others: FxHashMap<Pair, u32>,
}

impl PairIndex {
    fn new() -> Self {
        Self {
            low: vec![NONE; (LOW * LOW) as usize],
            others: FxHashMap::default(),
        }
    }

    fn of(&mut self, pair: Pair) -> Result<&mut u32> {
        if pair.left < LOW && pair.right < LOW {
            return Ok(&mut self.low[(pair.left * LOW + pair.right) as usize]);
        }
        reserve_entry(&mut self.others)?;
        Ok(self.others.entry(pair).or_insert(NONE))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_pair_has_an_index_of_its_own() {
        let symbols = [0, 1, 2, 254, 255, 256, 257, 300, 511, 512, 513];
        let pairs = || {
            let pairs = symbols
                .iter()
                .flat_map(|&left| symbols.map(|right| (left, right)));
            (0..).zip(pairs.map(|(left, right)| Pair { left, right }))
        };
        let mut indices = PairIndex::new();
        for (number, pair) in pairs() {
            assert_eq!(*indices.of(pair).unwrap(), NONE);
            *indices.of(pair).unwrap() = number;
        }
        for (number, pair) in pairs() {
            assert_eq!(*indices.of(pair).unwrap(), number, "{pair:?}");
        }
    }
}
