//! Merges a long piece in overlapping windows, so that the working set fits the L1 cache.
//!
//! Let `L t R` be a text. The overlap of two windows is exact where both have a token of the same bytes:
//! the tokens of the whole are those of the first window before it, the token, and those of the second
//! window after it. Proof:
//!
//! Let `merge(x)` be the tokens of `x`. Assume that `merge(L t)` has a token boundary between `L` and `t`, and
//! that `merge(t R)` has one between `t` and `R`. Call these two positions the boundaries. Merging always
//! takes the lowest rank, and of equal ranks the leftmost pair.
//!
//! 1. As long as no merge crosses a boundary, the merges inside `L`, `t` and `R` depend on `L`, `t` and `R`
//!    alone, and occur in the same order as in `L t` and in `t R`.
//! 2. Assume that some merge of `L t R` crosses a boundary, and take the first one. If it crosses the boundary
//!    between `L` and `t`, then at this step the symbols of `L t` are those that merging `L t` alone has, and
//!    the pair has the lowest rank and is the leftmost there too. So merging `L t` alone crosses the
//!    boundary: a contradiction. The same holds for `t R` and the other boundary.
//! 3. So no merge crosses a boundary, and the tokens of `L t R` are those of `L`, `t` and `R`.
//!
//! The proof assumes nothing about the merges.
//!
//! The second window starts where a token of the first one starts. Only that token can be the first common one: if a
//! later one is, both windows have a boundary where it starts, so between the start and there, both have the tokens
//! of that part alone.

use super::queue::merge_queued;
use super::short::{is_short, merge_short};
use super::window::{Window, WINDOW};
use crate::error::{Error, Result};
use crate::interrupt::{Interrupt, Poller};
use crate::pair_table::PairTable;
use crate::reserve::reserve;
use std::ops::Range;

/// The symbols of a window, and how many of them at least overlap the previous window (one or more).
const WIDTHS: (usize, usize) = (WINDOW, 32);

/// Merges the symbols of a piece in place. Returns how many remain.
pub fn merge_symbols(
    table: &PairTable,
    symbols: &mut [u32],
    interrupt: &Interrupt<'_>,
) -> Result<usize> {
    if is_short(table, symbols.len()) {
        return Ok(merge_short(table, symbols));
    }
    let tokens = merge_long(table, symbols, interrupt)?;
    for (symbol, token) in symbols.iter_mut().zip(&tokens) {
        *symbol = token.id;
    }
    Ok(tokens.len())
}

/// Merges the symbols of a piece of any length in windows.
pub fn merge_long(
    table: &PairTable,
    symbols: &[u32],
    interrupt: &Interrupt<'_>,
) -> Result<Vec<Token>> {
    if u32::try_from(symbols.len()).is_err() {
        let message = "a piece of 4 GiB or more cannot be merged; split the text";
        return Err(Error::Option(message.to_owned()));
    }
    let mut merger = OverlapMerger::new(table, symbols, WIDTHS);
    merger.merge(interrupt)?;
    Ok(merger.tokens)
}

/// A token and the index of its first symbol.
#[derive(Clone, Copy)]
pub struct Token {
    pub id: u32,
    pub start: u32,
}

/// Merges a piece window by window.
struct OverlapMerger<'a> {
    table: &'a PairTable,
    symbols: &'a [u32],
    widths: (usize, usize),
    window: Option<Window>,
    /// The tokens of the symbols before `end`.
    tokens: Vec<Token>,
    end: usize,
    /// Symbols merged so far. A symbol in two windows counts twice.
    work: usize,
}

impl<'a> OverlapMerger<'a> {
    fn new(table: &'a PairTable, symbols: &'a [u32], widths: (usize, usize)) -> Self {
        Self {
            table,
            symbols,
            widths,
            window: Window::fits(table).then(Window::new),
            tokens: Vec::new(),
            end: 0,
            work: 0,
        }
    }

    fn merge(&mut self, interrupt: &Interrupt<'_>) -> Result<()> {
        // A window without a token in common with the previous tokens is retried twice as large, with an
        // earlier start. A window that starts with the piece needs no common token, so this ends.
        let mut scale = 1;
        let mut poller = Poller::new(interrupt);
        while self.end < self.symbols.len() {
            let work = self.work;
            let is_exact = self.merge_next(scale, interrupt)?;
            scale = if is_exact { 1 } else { scale * 2 };
            poller.advance(self.work - work)?;
        }
        Ok(())
    }

    /// Merges the next window. Returns false if it has no token in common with the previous ones.
    fn merge_next(&mut self, scale: usize, interrupt: &Interrupt<'_>) -> Result<bool> {
        let (width, overlap) = self.widths;
        let known = self.tokens.len();
        let first = self.first_overlapping(overlap.saturating_mul(scale));
        let start = self
            .tokens
            .get(first)
            .map_or(0, |token| token.start as usize);
        // At least half of the window is new, so the total work is linear.
        let end = (start + width.saturating_mul(scale)).max(2 * self.end - start);
        let end = end.min(self.symbols.len());
        self.merge_window(start..end, interrupt)?;
        let (previous, window) = self.tokens.split_at(known);
        let end_of_first = previous
            .get(first + 1)
            .map_or(self.end as u32, |token| token.start);
        // The last token of the window may be incomplete.
        let is_common = |next: &Token| next.start == end_of_first;
        if start > 0 && !window.get(1).is_some_and(is_common) {
            self.tokens.truncate(known);
            return Ok(false);
        }
        self.tokens.drain(first..known);
        self.end = end;
        Ok(true)
    }

    /// The index of the token that the next window starts with. The overlap has at least `wanted` symbols,
    /// and at least twice as many as its longest token: the last tokens may be incomplete.
    fn first_overlapping(&self, wanted: usize) -> usize {
        let (mut next, mut longest) = (self.end, 0);
        for (index, token) in self.tokens.iter().enumerate().rev() {
            let start = token.start as usize;
            longest = longest.max(next - start);
            next = start;
            if self.end - start >= wanted.max(2 * longest) {
                return index;
            }
        }
        0
    }

    /// Appends the tokens of a window.
    fn merge_window(&mut self, range: Range<usize>, interrupt: &Interrupt<'_>) -> Result<()> {
        self.work += range.len();
        reserve(&mut self.tokens, range.len())?;
        let (start, symbols) = (range.start, &self.symbols[range]);
        let tokens = &mut self.tokens;
        let token = |id, index| {
            let start = (start + index) as u32;
            tokens.push(Token { id, start });
        };
        match &mut self.window {
            Some(window) if symbols.len() <= WINDOW => {
                window.merge(self.table, symbols, token);
                Ok(())
            }
            _ => merge_queued(self.table, symbols, interrupt, |_, _, _| {}, token),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::short::MAX_SHORT;
    use super::*;
    use crate::pair_table::NO_MERGE;
    use proptest::prelude::*;

    /// Merges over a small alphabet and over products of earlier merges. Some repeat a product, and a part may
    /// have a higher rank than its product.
    fn merges() -> impl Strategy<Value = Vec<(u32, u32, u32)>> {
        let pairs = prop::collection::vec((0..1000u32, 0..1000u32, any::<bool>()), 0..40);
        let merges = pairs.prop_map(|pairs| {
            let mut merges: Vec<(u32, u32, u32)> = Vec::new();
            let mut ids = 3;
            for (left, right, again) in pairs {
                let product = if again && ids > 3 { ids - 1 } else { ids };
                merges.push((left % ids, right % ids, product));
                ids = ids.max(product + 1);
            }
            merges
        });
        prop_oneof![merges.clone(), merges.prop_shuffle()]
    }

    /// Merges as the definition of BPE says: the lowest rank first, then the leftmost pair.
    fn merge_naive(table: &PairTable, symbols: &mut [u32]) -> usize {
        let mut length = symbols.len();
        loop {
            let pairs = symbols[..length].windows(2).zip(0..);
            let ranks = pairs.map(|(pair, index)| (table.rank(pair[0], pair[1]), index));
            let Some((rank, index)) = ranks.min().filter(|least| least.0 != NO_MERGE) else {
                return length;
            };
            symbols[index] = table.product(rank);
            symbols.copy_within(index + 2..length, index + 1);
            length -= 1;
        }
    }

    fn naive(table: &PairTable, piece: &[u32]) -> Vec<u32> {
        let mut symbols = piece.to_vec();
        let length = merge_naive(table, &mut symbols);
        symbols.truncate(length);
        symbols
    }

    fn in_windows(table: &PairTable, piece: &[u32], widths: (usize, usize)) -> Vec<Token> {
        let mut merger = OverlapMerger::new(table, piece, widths);
        merger.merge(&Interrupt::never()).unwrap();
        merger.tokens
    }

    fn ids(tokens: &[Token]) -> Vec<u32> {
        tokens.iter().map(|token| token.id).collect()
    }

    #[test]
    fn work_is_linear_in_the_piece() {
        // a -> aa -> aaaa -> ..., and ab -> abab -> ...
        let mut merges = vec![(0, 0, 2), (0, 1, 3)];
        merges.extend((2..40).map(|id| (id, id, id + 2)));
        for merges in [&merges[..2], &merges[..8], &merges] {
            let table = PairTable::new(merges);
            for length in [1_000, 10_000, 100_000] {
                for period in [1, 2, 3] {
                    let piece = (0..length).map(|i| u32::from(i % period == 1));
                    let piece: Vec<u32> = piece.collect();
                    let mut merger = OverlapMerger::new(&table, &piece, WIDTHS);
                    merger.merge(&Interrupt::never()).unwrap();
                    // Tokens of two symbols need little overlap.
                    let limit = if merges.len() == 2 { 5 } else { 16 } * piece.len() / 4;
                    assert!(
                        (piece.len()..=limit).contains(&merger.work),
                        "{}",
                        merger.work
                    );
                }
            }
        }
    }

    /// A key of a scan holds a rank and an index, and a slot of the table a pair and a rank.
    #[test]
    fn ranks_of_any_size_merge_alike() {
        for ranks in [1 << 22, 1 << 25, 1 << 26, 1 << 27, 1 << 31] {
            for rank in [ranks - 2, ranks - 1, ranks] {
                // The first merge competes with the second one, and the third is possible only at the end.
                let merges = [(0, 1, 500), (1, 0, rank - 1), (2, 2, rank)];
                let table = PairTable::with_ranks(&merges, true);
                for length in [2, 16, MAX_SHORT, WINDOW, WINDOW + 40] {
                    let mut piece = [1, 0].repeat(length)[..length].to_vec();
                    piece[length - 2..].fill(2);
                    let expected = naive(&table, &piece);
                    assert!(expected.ends_with(&[rank]));
                    let kept = merge_symbols(&table, &mut piece, &Interrupt::never()).unwrap();
                    assert_eq!(&piece[..kept], &expected, "{rank} {length}");
                }
            }
        }
    }

    /// The last symbol decides how all symbols before it merge, so only a window of the whole piece is exact.
    #[test]
    fn a_piece_may_have_no_common_token() {
        let last = 500u32;
        // The pair that is further right is joined first.
        let merges: Vec<_> = (0..last)
            .rev()
            .map(|left| (left, left + 1, 1000 + last - left))
            .collect();
        let table = PairTable::new(&merges);
        for length in [last, last + 1] {
            let piece: Vec<u32> = (0..length).collect();
            let mut merger = OverlapMerger::new(&table, &piece, (16, 1));
            merger.merge(&Interrupt::never()).unwrap();
            assert_eq!(ids(&merger.tokens), naive(&table, &piece));
            assert!(merger.work <= 4 * piece.len(), "{}", merger.work);
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(2000))]

        #[test]
        fn all_merge_routines_agree(
            merges in merges(),
            piece in prop::collection::vec(0..3u32, 0..=MAX_SHORT),
        ) {
            let table = PairTable::new(&merges);
            let expected = naive(&table, &piece);
            let mut short = piece.clone();
            let length = merge_short(&table, &mut short);
            prop_assert_eq!(&short[..length], &expected);
            let (mut queued, mut window) = (Vec::new(), Vec::new());
            let token = |id, start| queued.push((id, start));
            merge_queued(&table, &piece, &Interrupt::never(), |_, _, _| {}, token).unwrap();
            Window::new().merge(&table, &piece, |id, start| window.push((id, start)));
            prop_assert_eq!(&queued, &window);
            let (queued, starts): (Vec<u32>, Vec<usize>) = queued.into_iter().unzip();
            prop_assert_eq!(queued, expected);
            prop_assert!(starts.is_sorted() && starts.first().is_none_or(|&first| first == 0));
        }

        /// Repeated stretches make long tokens, and merges that depend on distant symbols.
        #[test]
        fn windows_merge_like_the_whole(
            merges in merges(),
            stretches in prop::collection::vec((prop::collection::vec(0..3u32, 1..8), 1..40usize), 0..12),
            widths in (1..40usize, 1..8usize),
        ) {
            let table = PairTable::new(&merges);
            let stretches = stretches.iter().map(|(stretch, times)| stretch.repeat(*times));
            let piece: Vec<u32> = stretches.flatten().collect();
            let mut expected = Vec::new();
            let token = |id, start| expected.push((id, start));
            merge_queued(&table, &piece, &Interrupt::never(), |_, _, _| {}, token).unwrap();
            let mut window = Vec::new();
            Window::new().merge(&table, &piece[..piece.len().min(WINDOW)], |id, start| window.push((id, start)));
            if piece.len() <= WINDOW {
                prop_assert_eq!(&window, &expected);
            }
            for widths in [widths, WIDTHS] {
                let tokens = in_windows(&table, &piece, widths);
                let tokens: Vec<_> = tokens.iter().map(|token| (token.id, token.start as usize)).collect();
                prop_assert_eq!(&tokens, &expected);
            }
        }
    }
}
