//! The merges that turn a piece into ids, recorded in the order in which encoding applies them.

use super::merger::Merger;
use super::queue::merge_queued;
use crate::error::Result;
use crate::interrupt::Interrupt;
use crate::model::{MergeIds, NONE};

/// One merge of two neighbours. Positions count the piece's initial symbols, from 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MergeStep {
    /// Index of the merge in the model's list: of all possible merges, the lowest rank applies first.
    pub rank: usize,
    /// Position at which the left symbol begins.
    pub left: usize,
    /// Position at which the right symbol begins.
    pub right: usize,
    /// Id of the left symbol.
    pub left_id: u32,
    /// Id of the right symbol.
    pub right_id: u32,
    /// Id of the token that replaces both.
    pub token_id: u32,
}

/// How a piece becomes ids.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MergeTrace {
    /// The initial ids. None is a gap: it keeps its neighbours apart and is dropped after merging.
    pub symbols: Vec<Option<u32>>,
    /// The merges, in order.
    pub steps: Vec<MergeStep>,
    /// The ids that encoding returns.
    pub ids: Vec<u32>,
    /// Whether encoding takes the piece as one token without merging (`ignore_merges`). The steps then
    /// show what merging would do, which may lead to other ids.
    pub is_whole: bool,
}

impl Merger {
    /// Merges a piece and records each step.
    pub fn trace(&self, piece: &[u8], interrupt: &Interrupt<'_>) -> Result<MergeTrace> {
        let whole = self.unmerged_token(piece);
        let (merges, table) = (self.model.merges(), &self.table);
        let (mut initial, mut steps, mut ids) = (Vec::new(), Vec::new(), Vec::new());
        self.symbols
            .for_each(&self.model, piece, |id, _| initial.push(id));
        let mut current = initial.clone();
        let record = |rank, left: u32, right: u32| {
            let [left, right] = [left as usize, right as usize];
            let (left_id, right_id) = (current[left], current[right]);
            let token_id = table.product(rank);
            steps.push(MergeStep {
                rank: index_of(merges, rank, (left_id, right_id, token_id)),
                left,
                right,
                left_id,
                right_id,
                token_id,
            });
            current[left] = token_id;
        };
        merge_queued(table, &initial, interrupt, record, |id, _| ids.push(id))?;
        ids.retain(|&id| id != NONE);
        let symbols = initial.into_iter().map(|id| (id != NONE).then_some(id));
        Ok(MergeTrace {
            symbols: symbols.collect(),
            steps,
            ids: whole.map_or(ids, |id| vec![id]),
            is_whole: whole.is_some(),
        })
    }
}

/// The index of a merge in the model's list. The table may use the products as ranks; the products
/// then ascend.
fn index_of(merges: &[MergeIds], rank: u32, merge: MergeIds) -> usize {
    if merges.get(rank as usize) == Some(&merge) {
        return rank as usize;
    }
    merges.partition_point(|earlier| earlier.2 < merge.2)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{Model, Settings};

    fn trace(merges: &[(&str, &str)], tokens: &[&str], piece: &str) -> MergeTrace {
        let ids = (7..).step_by(3);
        let tokens = ids.zip(tokens.iter().map(|token| token.as_bytes().to_vec()));
        let merges: Vec<_> = merges
            .iter()
            .map(|&(left, right)| (left.into(), right.into()))
            .collect();
        let model = Model::new(
            tokens.collect(),
            Some(&merges),
            Settings::default(),
            Vec::new(),
        )
        .unwrap();
        let merger = Merger::new(&model);
        merger.trace(piece.as_bytes(), &Interrupt::never()).unwrap()
    }

    #[test]
    fn the_lowest_rank_applies_first_and_of_equal_ranks_the_leftmost() {
        let merges = [("a", "b"), ("b", "a"), ("ab", "ab")];
        // Products in the order of the ranks, which the table then uses as ranks, and in another order.
        for tokens in [
            ["a", "b", "ab", "ba", "abab"],
            ["abab", "ba", "ab", "b", "a"],
        ] {
            let trace = trace(&merges, &tokens, "babab");
            let steps = trace.steps.iter();
            let steps: Vec<_> = steps
                .map(|step| (step.rank, step.left, step.right))
                .collect();
            assert_eq!(steps, [(0, 1, 2), (0, 3, 4), (2, 1, 3)]);
            let id = |text| 7 + 3 * tokens.iter().position(|token| *token == text).unwrap() as u32;
            assert_eq!(trace.ids, [id("b"), id("abab")]);
            let last = trace.steps[2];
            assert_eq!(
                [last.left_id, last.right_id, last.token_id],
                [id("ab"), id("ab"), id("abab")]
            );
        }
    }

    #[test]
    fn a_piece_without_a_merge_keeps_its_symbols() {
        let trace = trace(&[], &["a", "b"], "ab");
        assert_eq!(
            (trace.symbols, trace.ids),
            (vec![Some(7), Some(10)], vec![7, 10])
        );
        assert!(trace.steps.is_empty() && !trace.is_whole);
    }
}
