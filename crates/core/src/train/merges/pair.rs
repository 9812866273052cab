//! A pair of adjacent symbols, and what training knows about it.

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

/// The count of a pair, and the positions at which it was formed.
pub struct PairStats {
    pub count: u64,
    pub occurrences: Occurrences,
}

/// Ascending positions. A third smaller than a `Vec`, and without an allocation for one position: most
/// pairs are rare.
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
