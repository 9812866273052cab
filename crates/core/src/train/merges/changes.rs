//! What a merge changes around the pair that it replaces.

use crate::error::Result;
use crate::train::add;

/// What one merge does to the pairs that a neighbour is in.
pub struct Change {
    pub neighbour: u32,
    /// Occurrences that its pair with the old symbol loses.
    pub lost: u64,
    /// Occurrences of its pair with the product, and where they are.
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

    /// None, of so many symbols.
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
        change.lost = add(change.lost, count)?;
        Ok(())
    }

    pub fn form(&mut self, neighbour: u32, count: u64, position: u32) -> Result<()> {
        let change = self.of(neighbour);
        change.formed = add(change.formed, count)?;
        change.positions.push(position);
        Ok(())
    }

    /// Takes the last formation back.
    pub fn unform(&mut self, neighbour: u32, count: u64) {
        let change = self.of(neighbour);
        change.formed -= count;
        change.positions.pop();
    }

    /// The changes, leaving none.
    pub fn take(&mut self) -> Vec<Change> {
        for change in &self.list {
            self.index[change.neighbour as usize] = Self::NONE;
        }
        std::mem::take(&mut self.list)
    }
}
