//! Counts the distinct pieces of a corpus, in parallel and without holding the corpus in memory.

mod counted;
mod counter;
mod files;
mod reader;
mod runs;
mod sample;
mod saved;
mod shared;
mod splitter;
mod streams;
mod table;

pub use counted::{Counted, Pieces};
pub use counter::{CountCall, Counter, Limits, Progress};
pub use files::Position;
pub use runs::{Place, Run, RunReader, Slice, Totals};
pub use sample::Sample;
pub use saved::save as write_counts;
pub use streams::PieceStream;
pub use table::PieceCounts;

/// Texts and an oracle for the tests of this folder.
#[cfg(test)]
mod samples {
    use super::counted::Counted;
    use super::counter::{CountCall, Counter, Limits};
    use crate::alignment::OffsetMap;
    use crate::interrupt::Interrupt;
    use crate::normalize::Normalization;
    use crate::pretokenize::Piece;
    use std::collections::BTreeMap;

    pub const PATTERN: &str =
        r"'(?:[sdmt]|ll|ve|re)| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+";
    /// What only the regex engine can run.
    pub const WORDS: &str = r"\b\w+\b|\W+";

    pub type Counts = BTreeMap<Vec<u8>, u64>;

    pub fn counter(pattern: &str, form: Option<Normalization>, threads: usize) -> Counter {
        let special = vec!["<|end of text|>".to_owned(), "<|end".to_owned()];
        Counter::new(
            &[pattern.to_owned()],
            form,
            special,
            threads,
            Limits::default(),
        )
        .unwrap()
    }

    pub fn call<'a>(
        counter: &'a Counter,
        counted: &'a mut Counted,
        weight: u64,
        interrupt: &'a Interrupt<'a>,
    ) -> CountCall<'a> {
        CountCall {
            counter,
            counted,
            weight,
            interrupt,
        }
    }

    pub fn add(counter: &Counter, counted: &mut Counted, weight: u64, text: &str) {
        let never = Interrupt::never();
        let mut call = call(counter, counted, weight, &never);
        call.add_texts(&[text]).unwrap();
    }

    pub fn table(counted: &mut Counted) -> Counts {
        let counts = counted.counts().unwrap();
        let pieces = counts.iter();
        let table: Counts = pieces
            .map(|(piece, count)| (piece.to_vec(), count))
            .collect();
        assert_eq!(table.len(), counts.len());
        table
    }

    /// The oracle: a text as a whole, piece by piece.
    pub fn count_whole(counter: &Counter, text: &str) -> Counts {
        let mut counts = Counts::new();
        let mut add = |text: &str| {
            let form = counter.splitter.normalization;
            let rewritten = form.and_then(|form| {
                let never = Interrupt::never();
                form.rewrite(text, false, &never).unwrap()
            });
            let text = rewritten.as_ref().map_or(text.as_bytes(), |(text, _)| text);
            let place = OffsetMap::original(0);
            let pieces = |piece: Piece<'_>| {
                *counts.entry(piece.text[piece.range].to_vec()).or_insert(0) += 1;
                true
            };
            counter
                .splitter
                .patterns
                .split(text, &place, false, pieces)
                .unwrap();
        };
        let mut done = 0;
        for found in counter.splitter.special.find_iter(text.as_bytes()) {
            add(&text[done..found.range.start]);
            done = found.range.end;
        }
        add(&text[done..]);
        counts
    }

    /// A text of words, special tokens, and what normalisation and patterns join.
    pub fn sample(bytes: usize) -> String {
        let parts = [
            "word",
            " ",
            "  ",
            "\n",
            "12",
            "<|end of text|>",
            "<|end",
            "e\u{301}",
            "é",
            "\u{301}",
            "日本",
            "가\u{11a8}",
            "'ll",
            "!",
            "a-very-long-piece-of-text-that-goes-on",
            "\u{9be}",
        ];
        let mut text = String::new();
        let mut state = 1u64;
        while text.len() < bytes {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1);
            text.push_str(parts[(state >> 33) as usize % parts.len()]);
        }
        text
    }
}
