//! Which tokens merging makes from their own bytes.

use super::merger::Merger;
use crate::model::MergeIds;
use crate::pair_table::{PairTable, NO_MERGE};

impl Merger {
    /// The ids of the tokens that merging does not make from their own bytes, in ascending order. Of two
    /// tokens with the same bytes, merging makes one at most. None for a model where only merging every token would tell.
    pub fn unreachable_tokens(&self) -> Option<Vec<u32>> {
        let origins = self.symbols.are_bytes();
        let origins = origins.then(|| Origins::new(self.model.merges()))??;
        Some(origins.unreachable(self))
    }
}

/// The origin of a token that no merge makes.
const NO_ORIGIN: (u32, u32) = (u32::MAX, u32::MAX);

/// The pair that makes each token, for models whose products ascend with the rank and are greater than their
/// parts. In such models each token has one origin, and merges apply in the order of the product ids.
struct Origins {
    pairs: Vec<(u32, u32)>,
}

impl Origins {
    /// None if the model is different, or if its ids are not dense.
    fn new(merges: &[MergeIds]) -> Option<Self> {
        let ids = merges.last()?.2 as usize + 1;
        let are_in_order = merges.is_sorted_by(|one, next| one.2 < next.2)
            && merges
                .iter()
                .all(|&(left, right, made)| left.max(right) < made);
        if !are_in_order || ids / 4 > merges.len() + 256 {
            return None;
        }
        let mut pairs = vec![NO_ORIGIN; ids];
        for &(left, right, made) in merges {
            pairs[made as usize] = (left, right);
        }
        Some(Self { pairs })
    }

    fn of(&self, id: u32) -> Option<(u32, u32)> {
        let pair = self.pairs.get(id as usize).copied();
        pair.filter(|&pair| pair != NO_ORIGIN)
    }

    fn unreachable(&self, merger: &Merger) -> Vec<u32> {
        let mut is_reachable = vec![false; self.pairs.len()];
        let mut unreachable = Vec::new();
        // The parts of a token have lower ids.
        for (id, token) in merger.model.vocabulary().iter() {
            let reachable = match (token, self.of(id)) {
                (&[byte], _) => merger.symbols.single(byte) == id,
                (_, None) => false,
                (_, Some((left, right))) => {
                    is_reachable[left as usize]
                        && is_reachable[right as usize]
                        && self.stay_apart(&merger.table, left, right, id)
                }
            };
            if reachable {
                if let Some(is_reachable) = is_reachable.get_mut(id as usize) {
                    *is_reachable = true;
                }
            } else {
                unreachable.push(id);
            }
        }
        unreachable
    }

    /// Whether two tokens, each reachable alone, are also made next to each other: no merge crosses the
    /// boundary between them before the merge that makes `made`.
    ///
    /// Undoes merges from the last to the first. `last` and `first` are the symbols at the boundary until the
    /// merges `last_until` and `first_until` replace them.
    fn stay_apart(&self, table: &PairTable, left: u32, right: u32, made: u32) -> bool {
        let (mut last, mut last_until) = (left, made);
        let (mut first, mut first_until) = (right, made);
        loop {
            let origins = (self.of(last), self.of(first));
            match origins {
                (Some((_, part)), _) if origins.1.is_none() || last > first => {
                    (last_until, last) = (last, part);
                }
                (_, Some((part, _))) => (first_until, first) = (first, part),
                _ => return true,
            }
            let rank = table.rank(last, first);
            if rank != NO_MERGE {
                // Of equal pairs, the left one merges first.
                let product = table.product(rank);
                if product < last_until && product <= first_until {
                    return false;
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::long::merge_symbols;
    use super::super::short::MAX_SHORT;
    use super::*;
    use crate::interrupt::Interrupt;
    use crate::model::{Model, Settings};
    use crate::special::AddedToken;
    use proptest::prelude::*;

    /// `unreachable_tokens` of any model: merges every token.
    fn unreachable_by_merging(merger: &Merger) -> Vec<u32> {
        let (mut unreachable, mut merged) = (Vec::new(), Vec::new());
        for (id, token) in merger.model.vocabulary().iter() {
            merged.clear();
            merger
                .symbols
                .for_each(&merger.model, token, |symbol, _| merged.push(symbol));
            let length = merge_symbols(&merger.table, &mut merged, &Interrupt::never());
            if merged[..length.unwrap()] != [id] {
                unreachable.push(id);
            }
        }
        unreachable
    }

    fn bytes() -> Vec<(u32, Vec<u8>)> {
        (0..=255).map(|byte| (byte, vec![byte as u8])).collect()
    }

    #[test]
    fn only_tokens_that_merging_makes_are_reachable() {
        let mut tokens = bytes();
        let long = "ab".repeat(MAX_SHORT);
        for (id, token) in (256..).zip(["ab", "bc", "abc", "abcd", "ab", &long]) {
            tokens.push((id, token.into()));
        }
        let merges = [("b", "c"), ("a", "b"), ("ab", "c")];
        let merges = merges.map(|(left, right)| (left.into(), right.into()));
        let model = Model::new(tokens, Some(&merges), Settings::default(), Vec::new()).unwrap();
        let merger = Merger::new(&model);
        assert_eq!(unreachable_by_merging(&merger), [258, 259, 260, 261]);
        assert!(merger.unreachable_tokens().is_none());
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(3000))]

        /// Any two earlier tokens make the next.
        #[test]
        fn both_algorithms_agree(
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
            let merger = Merger::new(&model);
            let expected = unreachable_by_merging(&merger);
            prop_assert_eq!(merger.unreachable_tokens(), Some(expected));
        }

        /// A model of ranks knows it if the parts of each token have lower ranks.
        #[test]
        fn a_model_of_ranks_knows_whether_merging_makes_its_tokens(
            mut tokens in prop::collection::vec("[ab]{2,5}", 1..8),
            sorted in any::<bool>(),
            added in 0..20u32,
        ) {
            if sorted {
                tokens.sort_by_key(String::len);
            }
            let tokens = (256..).zip(tokens.iter().map(|token| token.clone().into_bytes()));
            let tokens: Vec<_> = bytes().into_iter().chain(tokens).collect();
            let added = tokens.iter().find(|(id, _)| *id == 256 + added);
            let added = added.map(|(id, token)| AddedToken {
                special: false,
                ..AddedToken::special(str::from_utf8(token).unwrap(), *id)
            });
            let added: Vec<_> = added.into_iter().collect();
            let model = Model::new(tokens, None, Settings::default(), added).unwrap();
            let vocabulary = model.vocabulary();
            let is_first = |id: &u32| vocabulary.id(vocabulary.token(*id).unwrap()) == Some(*id);
            let mut unreachable = unreachable_by_merging(&Merger::new(&model));
            unreachable.retain(is_first);
            let mut merges = model.merges().iter();
            let are_known = merges.all(|&(left, right, made)| left.max(right) < made);
            prop_assert_eq!(model.merges_make_all(), are_known && unreachable.is_empty());
        }
    }
}
