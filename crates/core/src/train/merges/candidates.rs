//! The heap of pairs that may be merged, the best one at the top.

use super::options::TieBreak;
use super::seed::Pair;
use crate::error::Result;
use crate::reserve::reserve;
use std::cmp::Ordering;

/// A pair on the heap.
#[derive(Clone, Copy)]
pub struct Candidate {
    /// The pair's count at the time of the push.
    pub count: u64,
    /// The first bytes of the left part: comparing them avoids most lookups of the token.
    prefix: u64,
    pub pair: Pair,
}

/// A 4-ary max-heap: half as deep as a binary heap.
pub struct Candidates {
    heap: Vec<Candidate>,
    tie_break: TieBreak,
}

impl Candidates {
    const ARITY: usize = 4;

    pub fn new(tie_break: TieBreak) -> Self {
        let heap = Vec::new();
        Self { heap, tie_break }
    }

    /// Whether `a` is merged before `b`.
    fn precedes(&self, a: &Candidate, b: &Candidate, tokens: &[Box<[u8]>]) -> bool {
        let bytes = |pair: Pair| (&tokens[pair.left as usize], &tokens[pair.right as usize]);
        let order = a.count.cmp(&b.count).then_with(|| match self.tie_break {
            TieBreak::Largest => {
                let prefixes = a.prefix.cmp(&b.prefix);
                prefixes.then_with(|| bytes(a.pair).cmp(&bytes(b.pair)))
            }
            TieBreak::HuggingFace => b.pair.cmp(&a.pair),
        });
        order == Ordering::Greater
    }

    pub fn push(&mut self, pair: Pair, count: u64, tokens: &[Box<[u8]>]) -> Result<()> {
        reserve(&mut self.heap, 1)?;
        let left = &tokens[pair.left as usize];
        let mut prefix = [0; 8];
        let length = left.len().min(prefix.len());
        prefix[..length].copy_from_slice(&left[..length]);
        let candidate = Candidate {
            count,
            prefix: u64::from_be_bytes(prefix),
            pair,
        };
        let mut hole = self.heap.len();
        self.heap.push(candidate);
        while hole > 0 {
            let parent = (hole - 1) / Self::ARITY;
            if !self.precedes(&candidate, &self.heap[parent], tokens) {
                break;
            }
            self.heap[hole] = self.heap[parent];
            hole = parent;
        }
        self.heap[hole] = candidate;
        Ok(())
    }

    pub fn pop(&mut self, tokens: &[Box<[u8]>]) -> Option<Candidate> {
        let last = self.heap.pop()?;
        let Some(&top) = self.heap.first() else {
            return Some(last);
        };
        let mut hole = 0;
        while let Some(child) = self.best_child(hole, tokens) {
            if !self.precedes(&self.heap[child], &last, tokens) {
                break;
            }
            self.heap[hole] = self.heap[child];
            hole = child;
        }
        self.heap[hole] = last;
        Some(top)
    }

    fn best_child(&self, parent: usize, tokens: &[Box<[u8]>]) -> Option<usize> {
        let first = parent * Self::ARITY + 1;
        let end = self.heap.len().min(first + Self::ARITY);
        (first..end).reduce(|best, child| {
            if self.precedes(&self.heap[child], &self.heap[best], tokens) {
                child
            } else {
                best
            }
        })
    }
}
