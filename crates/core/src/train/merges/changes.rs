//! How one merge changes the counts of the pairs next to its occurrences.

use crate::error::Result;
use crate::train::checked_sum;

/// The changes of the pairs that one neighbour is in.
pub struct Change {
    pub neighbour: u32,
    /// Count that its pair with the merged symbol loses.
    pub lost: u64,
    /// Count of its pair with the product, and the positions.
    pub formed: u64,
    pub positions: Vec<u32>,
}

/// The changes on one side of the merged pair, by neighbour.
pub struct Changes {
    list: Vec<Change>,
    /// For each symbol, the index of its change in the list.
    index: Vec<u32>,
}

impl Changes {
    const NONE: u32 = u32::MAX;

    pub fn new(symbols: usize) -> Self {
        Self {
            list: Vec::new(),
            index: vec![Self::NONE; symbols],
        }
    }

    /// Makes room for one more symbol.
    pub fn add_symbol(&mut self) {
        self.index.push(Self::NONE);
    }

    fn of(&mut self, neighbour: u32) -> &mut Change {
        let index = &mut self.index[neighbour as usize];
        if *index == Self::NONE {
            *index = self.list.len() as u32;
            self.list.push(Change {
                neighbour,
                lost: 0,
                formed: 0,
                positions: Vec::new(),
            });
        }
        &mut self.list[*index as usize]
    }

    pub fn lose(&mut self, neighbour: u32, count: u64) -> Result<()> {
        let change = self.of(neighbour);
        change.lost = checked_sum(change.lost, count)?;
        Ok(())
    }

    pub fn form(&mut self, neighbour: u32, count: u64, position: u32) -> Result<()> {
        let change = self.of(neighbour);
        change.formed = checked_sum(change.formed, count)?;
        change.positions.push(position);
        Ok(())
    }

    /// Takes the latest formation back.
    pub fn unform(&mut self, neighbour: u32, count: u64) {
        let change = self.of(neighbour);
        change.formed -= count;
        change.positions.pop();
    }

    /// Removes and returns all changes.
    pub fn take(&mut self) -> Vec<Change> {
        for change in &self.list {
            self.index[change.neighbour as usize] = Self::NONE;
        }
        std::mem::take(&mut self.list)
    }
}
