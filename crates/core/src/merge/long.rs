//! Merging a long piece in windows, so that all that is merged at a time is in the nearest cache.
//!
//! Windows overlap. Where both the tokens of all before and those of a window have a token of the same
//! bytes, the tokens of both together are those before it, the token, and those of the window behind it:
//!
//! Let a text be `L t R`, and let merging `L t` leave a place between `L` and `t`, and merging `t R` one
//! between `t` and `R`. As long as nothing is joined across these places, what is done to each of the
//! three depends on itself alone, as always the lowest rank and then the leftmost place is next. What is
//! first joined across one of them, if anything, would be next in `L t` or in `t R` too, as all that is
//! there stands there then; but there nothing is. So the tokens are those of `L`, `t` and `R`. This asks
//! nothing of the merges.

use super::queue::merge_queued;
use super::table::PairTable;
use super::window::{Window, WINDOW};
use crate::error::{Error, Result};
use crate::interrupt::Interrupt;

/// Symbols of a window, and those of them that the one before has too, at least: one or more.
const WIDTHS: (usize, usize) = (WINDOW, 32);
/// Symbols between two looks at whether to stop.
const PATIENCE: usize = 1 << 16;

/// Merges the symbols in place; returns how many are left.
pub fn merge_long(
    table: &PairTable,
    symbols: &mut [u32],
    interrupt: &Interrupt<'_>,
) -> Result<usize> {
    merge_and_tell(table, symbols, interrupt, |_| {})
}

/// The same; calls `symbol` with the index that each symbol that is left began at.
pub fn merge_and_tell(
    table: &PairTable,
    symbols: &mut [u32],
    interrupt: &Interrupt<'_>,
    mut symbol: impl FnMut(usize),
) -> Result<usize> {
    if u32::try_from(symbols.len()).is_err() {
        let message = "a piece of 4 GiB or more cannot be merged; split the text";
        return Err(Error::Option(message.to_owned()));
    }
    let tokens = Seams::new(table, symbols, interrupt, WIDTHS).merge()?;
    for (place, token) in symbols.iter_mut().zip(&tokens) {
        *place = token.id;
        symbol(token.start as usize);
    }
    Ok(tokens.len())
}

/// A token, and the symbol that it begins with.
#[derive(Clone, Copy)]
struct Token {
    id: u32,
    start: u32,
}

/// A piece that is merged window by window.
struct Seams<'a> {
    table: &'a PairTable,
    symbols: &'a [u32],
    interrupt: &'a Interrupt<'a>,
    widths: (usize, usize),
    window: Option<Window>,
    /// The tokens of all before `end`.
    tokens: Vec<Token>,
    end: usize,
    /// Symbols that were merged, some more than once.
    work: usize,
}

impl<'a> Seams<'a> {
    fn new(
        table: &'a PairTable,
        symbols: &'a [u32],
        interrupt: &'a Interrupt<'a>,
        widths: (usize, usize),
    ) -> Self {
        Self {
            table,
            symbols,
            interrupt,
            widths,
            window: Window::fits(table).then(Window::new),
            tokens: Vec::new(),
            end: 0,
            work: 0,
        }
    }

    fn merge(mut self) -> Result<Vec<Token>> {
        self.merge_all()?;
        Ok(self.tokens)
    }

    fn merge_all(&mut self) -> Result<()> {
        // A window that has no token in common with what is before is given up for a bigger one, which
        // begins earlier; one that begins where the piece does needs none.
        let mut scale = 1;
        let mut patience = PATIENCE;
        while self.end < self.symbols.len() {
            let before = self.work;
            scale = if self.go_on(scale)? { 1 } else { scale * 2 };
            patience = patience.saturating_sub(self.work - before);
            if patience == 0 {
                self.interrupt.poll()?;
                patience = PATIENCE;
            }
        }
        Ok(())
    }

    /// Merges a window; false if it has no token in common with what is before.
    fn go_on(&mut self, scale: usize) -> Result<bool> {
        let (width, overlap) = self.widths;
        let known = self.tokens.len();
        let first = self.overlap(overlap.saturating_mul(scale));
        let start = self
            .tokens
            .get(first)
            .map_or(0, |token| token.start as usize);
        // At least half of the work is for what is new.
        let end = (start + width.saturating_mul(scale)).max(2 * self.end - start);
        let end = end.min(self.symbols.len());
        self.merge_window(start, end)?;
        let (before, window) = self.tokens.split_at(known);
        let seam = if start == 0 {
            Some((0, 0))
        } else {
            seam(&before[first..], self.end as u32, window)
        };
        let Some((from, to)) = seam else {
            self.tokens.truncate(known);
            return Ok(false);
        };
        self.tokens.drain(first + from..known + to);
        self.end = end;
        Ok(true)
    }

    /// The token that the next window begins with: so many symbols before the end, and so many that no
    /// token is longer than half of them, as the last ones may be parts of longer ones.
    fn overlap(&self, wanted: usize) -> usize {
        let (mut behind, mut longest) = (self.end, 0);
        for (index, token) in self.tokens.iter().enumerate().rev() {
            let start = token.start as usize;
            longest = longest.max(behind - start);
            behind = start;
            if self.end - start >= wanted.max(2 * longest) {
                return index;
            }
        }
        0
    }

    /// Appends the tokens of a window.
    fn merge_window(&mut self, start: usize, end: usize) -> Result<()> {
        self.work += end - start;
        let symbols = &self.symbols[start..end];
        let tokens = &mut self.tokens;
        let token = |id, place| {
            let start = (start + place) as u32;
            tokens.push(Token { id, start });
        };
        match &mut self.window {
            Some(window) if symbols.len() <= WINDOW => {
                window.merge(self.table, symbols, token);
                Ok(())
            }
            _ => merge_queued(self.table, symbols, self.interrupt, |_, _, _| {}, token),
        }
    }
}

/// The first token that both lists have: its indices. The first list ends with `end`.
fn seam(before: &[Token], end: u32, window: &[Token]) -> Option<(usize, usize)> {
    let (mut one, mut other) = (0, 0);
    while one < before.len() && other < window.len() {
        let (left, right) = (before[one].start, window[other].start);
        if left == right {
            let left_end = before.get(one + 1).map_or(end, |token| token.start);
            // The window goes on behind `end`, so its last token does too.
            if window
                .get(other + 1)
                .is_some_and(|token| token.start == left_end)
            {
                return Some((one, other));
            }
        }
        one += usize::from(left <= right);
        other += usize::from(right <= left);
    }
    None
}

#[cfg(test)]
mod tests {
    use super::super::short::{merge_plainly, merge_short, SHORT};
    use super::*;
    use proptest::prelude::*;

    /// Merges over a small alphabet, later ones also over the products of earlier ones; some make
    /// a product again, and a part may be made after what it is a part of.
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

    fn plainly(table: &PairTable, piece: &[u32]) -> Vec<u32> {
        let mut symbols = piece.to_vec();
        let length = merge_plainly(table, &mut symbols);
        symbols.truncate(length);
        symbols
    }

    fn in_windows(table: &PairTable, piece: &[u32], widths: (usize, usize)) -> Vec<Token> {
        let never = Interrupt::never();
        Seams::new(table, piece, &never, widths).merge().unwrap()
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
                    let never = Interrupt::never();
                    let mut seams = Seams::new(&table, &piece, &never, WIDTHS);
                    seams.merge_all().unwrap();
                    assert!(seams.work <= 4 * piece.len(), "{}", seams.work);
                }
            }
        }
    }

    /// What stands last says what everything before it becomes, so no window but one from the beginning
    /// to the end is right.
    #[test]
    fn a_piece_may_have_no_seam() {
        let last = 500u32;
        // The pair that is further right is joined first.
        let merges: Vec<_> = (0..last)
            .rev()
            .map(|left| (left, left + 1, 1000 + last - left))
            .collect();
        let table = PairTable::new(&merges);
        for length in [last, last + 1] {
            let piece: Vec<u32> = (0..length).collect();
            let tokens = in_windows(&table, &piece, (16, 1));
            assert_eq!(ids(&tokens), plainly(&table, &piece));
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(2000))]

        #[test]
        fn all_routines_agree(
            merges in merges(),
            piece in prop::collection::vec(0..3u32, 0..=SHORT),
        ) {
            let table = PairTable::new(&merges);
            let expected = plainly(&table, &piece);
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

        /// Repeated stretches, so that tokens become long and what is joined depends on what is far away.
        #[test]
        fn windows_make_what_the_whole_is(
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
