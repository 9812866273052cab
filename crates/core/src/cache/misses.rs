//! Short pieces that the cache lacks. Emission goes on after each, so that the memory that several need is
//! prefetched together; then their ids are inserted among those that emission wrote.

use super::keys::Key;
use crate::error::Result;
use crate::model::TokenHash;
use crate::reserve::reserve;
use std::ops::Range;

/// A short piece that the cache lacks.
pub struct Miss {
    /// The key of the piece.
    pub key: Key,
    /// Its first bucket, until the table grows.
    pub bucket: u32,
    /// Its hash, if it may be a token.
    pub token: Option<TokenHash>,
    /// Its bytes in the text.
    pub range: Range<usize>,
    /// The ids that emission wrote before it, with those that were there before.
    pub at: usize,
}

/// Short pieces that the cache lacks, in the order of the text.
#[derive(Default)]
pub struct Misses {
    pieces: Vec<Miss>,
    /// The ids of the pieces, and where those of each end.
    ids: Vec<u32>,
    ends: Vec<usize>,
}

impl Misses {
    /// Adds a piece.
    pub fn push(&mut self, miss: Miss) {
        self.pieces.push(miss);
    }

    /// The pieces.
    pub fn pieces(&self) -> &[Miss] {
        &self.pieces
    }

    /// Forgets the pieces: those of a call that failed.
    pub fn clear(&mut self) {
        self.pieces.clear();
        self.ids.clear();
        self.ends.clear();
    }

    /// Finds the ids of all pieces with `find`, which appends them, and inserts them at their places in `ids`.
    pub fn resolve(
        &mut self,
        ids: &mut Vec<u32>,
        mut find: impl FnMut(&Miss, &mut Vec<u32>) -> Result<()>,
    ) -> Result<()> {
        for miss in &self.pieces {
            find(miss, &mut self.ids)?;
            self.ends.push(self.ids.len());
        }
        let mut from = ids.len();
        reserve(ids, self.ids.len())?;
        ids.resize(from + self.ids.len(), 0);
        let (mut to, mut end) = (ids.len(), self.ids.len());
        // The last piece first, so that each id moves once.
        for index in (0..self.pieces.len()).rev() {
            let at = self.pieces[index].at;
            to -= from - at;
            ids.copy_within(at..from, to);
            from = at;
            let start = index.checked_sub(1).map_or(0, |before| self.ends[before]);
            to -= end - start;
            ids[to..to + end - start].copy_from_slice(&self.ids[start..end]);
            end = start;
        }
        self.clear();
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::Error;

    #[test]
    fn found_ids_are_inserted_in_order() {
        let places = [(0, 0), (2, 1), (2, 15), (3, 2), (5, 1), (5, 3)];
        let mut misses = Misses::default();
        for round in 0..2 {
            for (at, count) in places {
                misses.push(Miss {
                    key: [count, 0],
                    bucket: 0,
                    token: None,
                    range: 0..0,
                    at,
                });
            }
            let (mut ids, mut next) = (vec![0, 1, 2, 3, 4], 100);
            let find = |miss: &Miss, found: &mut Vec<u32>| {
                found.extend(next..next + miss.key[0] as u32);
                next += miss.key[0] as u32;
                Ok(())
            };
            misses.resolve(&mut ids, find).unwrap();
            let expected = [0, 1]
                .into_iter()
                .chain(100..116)
                .chain([2, 116, 117, 3, 4]);
            assert!(
                ids.into_iter().eq(expected.chain(118..122)),
                "round {round}"
            );
            assert!(misses.pieces().is_empty());
        }
    }

    #[test]
    fn nothing_of_a_failed_call_is_left() {
        let mut misses = Misses::default();
        misses.push(Miss {
            key: [0; 2],
            bucket: 0,
            token: None,
            range: 0..0,
            at: 0,
        });
        let mut ids = Vec::new();
        let failed = misses.resolve(&mut ids, |_, found| {
            found.push(1);
            Err(Error::Interrupted)
        });
        assert!(failed.is_err());
        misses.clear();
        misses.resolve(&mut ids, |_, _| Ok(())).unwrap();
        assert!(ids.is_empty());
    }
}
