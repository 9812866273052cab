//! Pairs of neighbours: how often each occurs, and where.

use super::pieces::Pieces;
use super::Poll;
use crate::batch::{map, thread_count};
use crate::error::Result;
use crate::interrupt::Interrupt;
use crate::train::add;
use rustc_hash::FxHashMap;
use std::hash::{Hash, Hasher};

/// Two adjacent symbols.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Pair {
    pub left: u32,
    pub right: u32,
}

impl Hash for Pair {
    fn hash<H: Hasher>(&self, state: &mut H) {
        state.write_u64(u64::from(self.left) << 32 | u64::from(self.right));
    }
}

/// Positions of a pair, in order. A third smaller than a `Vec`, and on the spot where there is only
/// one, because most pairs are rare.
pub enum Occurrences {
    One(u32),
    Many(Box<[u32]>),
}

impl From<Vec<u32>> for Occurrences {
    fn from(positions: Vec<u32>) -> Self {
        match positions[..] {
            [position] => Self::One(position),
            _ => Self::Many(positions.into_boxed_slice()),
        }
    }
}

impl Occurrences {
    pub fn as_slice(&self) -> &[u32] {
        match self {
            Self::One(position) => std::slice::from_ref(position),
            Self::Many(positions) => positions,
        }
    }
}

/// How often a pair occurs, and where it was formed.
pub struct Known {
    pub count: u64,
    pub occurrences: Occurrences,
}

/// A pair, its count and its positions.
pub type Counted = (Pair, u64, Vec<u32>);

/// The pairs that occur `least` times or more and have at most `longest` bytes.
///
/// Each thread looks at all pieces and keeps the pairs that are its own, so that every count and every
/// list of positions is the work of one thread, and their number cannot show.
pub fn count_pairs(
    pieces: &Pieces,
    least: u64,
    longest: usize,
    threads: usize,
    interrupt: &Interrupt<'_>,
) -> Result<Vec<Vec<Counted>>> {
    let size = pieces.slots.len();
    let shares: Vec<usize> = (0..thread_count(threads, size)).collect();
    map(
        &shares,
        threads,
        |_| size,
        interrupt,
        |&share| {
            let is_own = |pair: Pair| share_of(pair, shares.len()) == share;
            count_own(pieces, is_own, least, longest, interrupt)
        },
    )
}

/// The thread that a pair belongs to.
fn share_of(pair: Pair, shares: usize) -> usize {
    let mixed = (pair.left.wrapping_mul(31) ^ pair.right).wrapping_mul(0x9E37_79B9);
    ((u64::from(mixed) * shares as u64) >> 32) as usize
}

fn count_own(
    pieces: &Pieces,
    is_own: impl Fn(Pair) -> bool,
    least: u64,
    longest: usize,
    interrupt: &Interrupt<'_>,
) -> Result<Vec<Counted>> {
    let mut poll = Poll::new(interrupt);
    // Twice through the pieces, so that no list is larger than it must be.
    let mut places = Places::new();
    let mut counts: Vec<(Pair, u64, usize)> = Vec::new();
    pieces.for_each_pair(|pair, count, _| {
        poll.step()?;
        if is_own(pair) {
            let place = places.of(pair);
            if *place == NONE {
                *place = counts.len() as u32;
                counts.push((pair, 0, 0));
            }
            let (_, total, occurrences) = &mut counts[*place as usize];
            *total = add(*total, count)?;
            *occurrences += 1;
        }
        Ok(())
    })?;
    let length = |pair: Pair| pieces.length(pair.left) + pieces.length(pair.right);
    let mut counted: Vec<Counted> = Vec::new();
    for (pair, total, occurrences) in counts {
        let is_wanted = total >= least && length(pair) <= longest;
        *places.of(pair) = if is_wanted {
            counted.len() as u32
        } else {
            NONE
        };
        if is_wanted {
            counted.push((pair, total, Vec::with_capacity(occurrences)));
        }
    }
    pieces.for_each_pair(|pair, _, position| {
        poll.step()?;
        if is_own(pair) {
            if let Some((_, _, positions)) = counted.get_mut(*places.of(pair) as usize) {
                positions.push(position);
            }
        }
        Ok(())
    })?;
    Ok(counted)
}

/// No place.
const NONE: u32 = u32::MAX;
/// Symbols below this are those of bytes, and most of those that merging begins with are.
const LOW: u32 = 256;

/// Where each pair is in a list. Pairs of low symbols are not searched for.
struct Places {
    low: Vec<u32>,
    others: FxHashMap<Pair, u32>,
}

impl Places {
    fn new() -> Self {
        Self {
            low: vec![NONE; (LOW * LOW) as usize],
            others: FxHashMap::default(),
        }
    }

    fn of(&mut self, pair: Pair) -> &mut u32 {
        if pair.left < LOW && pair.right < LOW {
            return &mut self.low[(pair.left * LOW + pair.right) as usize];
        }
        self.others.entry(pair).or_insert(NONE)
    }
}
