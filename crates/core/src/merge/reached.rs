//! Which tokens merging makes of their own bytes.

use super::table::NO_MERGE;
use super::{merge_long, merge_short, PairTable, Symbols, SHORT};
use crate::error::Result;
use crate::interrupt::Interrupt;
use crate::model::{MergeIds, Model};

/// The ids of the tokens that merging does not make of their own bytes, in ascending order.
///
/// Any other token is what a piece of its bytes becomes. That includes tokens whose bytes are those of
/// another token too: merging makes one of them.
pub fn unreached(model: &Model, symbols: &Symbols, table: &PairTable) -> Result<Vec<u32>> {
    let origins = symbols.is_total().then(|| Origins::new(model.merges()));
    match origins.flatten() {
        Some(origins) => Ok(origins.unreached(model, symbols, table)),
        None => unreached_by_merging(model, symbols, table),
    }
}

/// The same for any model: merges every token.
fn unreached_by_merging(model: &Model, symbols: &Symbols, table: &PairTable) -> Result<Vec<u32>> {
    let mut unreached = Vec::new();
    let mut merged = Vec::new();
    for (id, token) in model.vocabulary().iter() {
        merged.clear();
        symbols.of(model, token, |symbol, _| merged.push(symbol));
        let length = if merged.len() <= SHORT {
            merge_short(table, &mut merged)
        } else {
            merge_long(table, &mut merged, &Interrupt::never())?
        };
        if merged[..length] != [id] {
            unreached.push(id);
        }
    }
    Ok(unreached)
}

/// No merge makes the token.
const NO_ORIGIN: (u32, u32) = (u32::MAX, u32::MAX);

/// The only merge that makes each token, where all merges come in the order of their products, after
/// those that make their parts. Then merges happen in that order in any text.
struct Origins {
    parts: Vec<(u32, u32)>,
}

impl Origins {
    /// None if the merges are not like that, or if ids are not dense.
    fn new(merges: &[MergeIds]) -> Option<Self> {
        let ids = merges.last()?.2 as usize + 1;
        let are_in_order = merges.is_sorted_by(|one, next| one.2 < next.2)
            && merges
                .iter()
                .all(|&(left, right, made)| left.max(right) < made);
        if !are_in_order || ids / 4 > merges.len() + 256 {
            return None;
        }
        let mut parts = vec![NO_ORIGIN; ids];
        for &(left, right, made) in merges {
            parts[made as usize] = (left, right);
        }
        Some(Self { parts })
    }

    fn of(&self, id: u32) -> Option<(u32, u32)> {
        let parts = self.parts.get(id as usize).copied();
        parts.filter(|&parts| parts != NO_ORIGIN)
    }

    fn unreached(&self, model: &Model, symbols: &Symbols, table: &PairTable) -> Vec<u32> {
        let mut is_reached = vec![false; self.parts.len()];
        let mut unreached = Vec::new();
        // A token's parts come before it.
        for (id, token) in model.vocabulary().iter() {
            let reached = match (token, self.of(id)) {
                (&[byte], _) => symbols.single(byte) == id,
                (_, None) => false,
                (_, Some((left, right))) => {
                    is_reached[left as usize]
                        && is_reached[right as usize]
                        && self.stay_apart(table, left, right, id)
                }
            };
            if reached {
                if let Some(is_reached) = is_reached.get_mut(id as usize) {
                    *is_reached = true;
                }
            } else {
                unreached.push(id);
            }
        }
        unreached
    }

    /// Whether two neighbours, each of which merging makes alone, are made side by side too, and nothing
    /// is joined across the place between them before `made` is.
    ///
    /// From the end to the beginning: which symbols stand at both sides of the place, and until when.
    fn stay_apart(&self, table: &PairTable, left: u32, right: u32, made: u32) -> bool {
        let (mut last, mut last_until) = (left, made);
        let (mut first, mut first_until) = (right, made);
        loop {
            let parts = (self.of(last), self.of(first));
            match parts {
                (Some((_, part)), _) if parts.1.is_none() || last > first => {
                    (last_until, last) = (last, part);
                }
                (_, Some((part, _))) => (first_until, first) = (first, part),
                _ => return true,
            }
            let rank = table.rank(last, first);
            if rank != NO_MERGE {
                // Of equal pairs the left one is joined first.
                let joined = table.product(rank);
                if joined < last_until && joined <= first_until {
                    return false;
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::Settings;
    use proptest::prelude::*;

    fn bytes() -> Vec<(u32, Vec<u8>)> {
        (0..=255).map(|byte| (byte, vec![byte as u8])).collect()
    }

    #[test]
    fn only_what_merging_makes_is_reached() {
        let mut tokens = bytes();
        let long = "ab".repeat(SHORT);
        for (id, token) in (256..).zip(["ab", "bc", "abc", "abcd", "ab", &long]) {
            tokens.push((id, token.into()));
        }
        let merges = [("b", "c"), ("a", "b"), ("ab", "c")];
        let merges = merges.map(|(left, right)| (left.into(), right.into()));
        let model = Model::new(tokens, Some(&merges), Settings::default(), Vec::new()).unwrap();
        let table = PairTable::new(model.merges());
        let found = unreached(&model, &Symbols::new(&model), &table).unwrap();
        assert_eq!(found, [258, 259, 260, 261]);
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(3000))]

        /// Any two earlier tokens make the next.
        #[test]
        fn both_ways_agree(
            pairs in prop::collection::vec((any::<u32>(), any::<u32>()), 1..30),
        ) {
            let mut tokens = bytes();
            let mut merges = Vec::new();
            for (left, right) in pairs {
                let token = |at: u32| {
                    let made = tokens.len() - 256;
                    match at as usize % (made + 2) {
                        byte @ (0 | 1) => tokens[byte].1.clone(),
                        at => tokens[254 + at].1.clone(),
                    }
                };
                let (left, right) = (token(left), token(right));
                let joined = [left.clone(), right.clone()].concat();
                if joined.len() < 40 && tokens.iter().all(|(_, token)| *token != joined) {
                    tokens.push((tokens.len() as u32, joined));
                    merges.push((left, right));
                }
            }
            let model = Model::new(tokens, Some(&merges), Settings::default(), Vec::new()).unwrap();
            let (symbols, table) = (Symbols::new(&model), PairTable::new(model.merges()));
            let origins = Origins::new(model.merges()).unwrap();
            let expected = unreached_by_merging(&model, &symbols, &table).unwrap();
            prop_assert_eq!(origins.unreached(&model, &symbols, &table), expected);
        }
    }
}
