//! Training: the merges are those of recounting all pairs for each merge, and pieces are counted as in a whole text.

#![no_main]

use bpe_tokenizer_core::alignment::OffsetMap;
use bpe_tokenizer_core::normalize::Normalization;
use bpe_tokenizer_core::pretokenize::PreTokenizers;
use bpe_tokenizer_core::special::AddedToken;
use bpe_tokenizer_core::train::counts::{CountCall, Counted, Counter, Limits};
use bpe_tokenizer_core::train::merges::{MergeOptions, TieBreak};
use bpe_tokenizer_core::Interrupt;
use bpe_tokenizer_fuzz::recounting::{
    byte_tokens, merges_as_bytes, recount, train_from, Bytes, Pieces,
};
use bpe_tokenizer_fuzz::{naive, text};
use libfuzzer_sys::fuzz_target;
use std::collections::BTreeMap;
use std::sync::LazyLock;

const PATTERN: &str = r"'(?:[sdmt]|ll|ve|re)| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+";
const SPECIAL: [&str; 2] = ["<|end|>", "<s>"];

struct Counting {
    counter: Counter,
    form: Option<Normalization>,
}

static COUNTERS: LazyLock<Vec<Counting>> = LazyLock::new(|| {
    [None, Some(Normalization::Nfc), Some(Normalization::Nfkd)]
        .into_iter()
        .map(|form| {
            let (patterns, special) = ([PATTERN.to_owned()], SPECIAL.map(str::to_owned).to_vec());
            let counter = Counter::new(&patterns, form, special, 1, Limits::default()).unwrap();
            Counting { counter, form }
        })
        .collect()
});
static SPLITTER: LazyLock<PreTokenizers> =
    LazyLock::new(|| PreTokenizers::of_patterns(&[PATTERN.to_owned()]).unwrap());

fuzz_target!(|data: &[u8]| {
    let Some((header, rest)) = data.split_at_checked(6) else {
        return;
    };
    let options = MergeOptions {
        reserved: (0..u32::from(header[1] % 4))
            .map(|index| 257 + 3 * index)
            .collect(),
        min_frequency: u64::from(header[2] % 5),
        tie_break: match header[3] & 1 {
            0 => TieBreak::Largest,
            _ => TieBreak::HuggingFace,
        },
        max_token_length: (header[4] < 100).then_some(usize::from(header[4] % 9)),
        ..MergeOptions::new(256 + u32::from(header[0] % 48))
    };
    let pieces = match header[5] & 1 {
        0 => count(
            &text::text(rest),
            &COUNTERS[usize::from(header[5] / 2) % 3],
            header[3] / 2,
        ),
        // Pieces of few bytes with any counts, where runs and equal counts are common.
        _ => given(rest),
    };
    train(pieces, &options, usize::from(header[3] / 4));
});

fn given(bytes: &[u8]) -> BTreeMap<Bytes, u64> {
    let mut pieces = BTreeMap::new();
    for piece in bytes.split(|&byte| byte == b' ') {
        if let Some((count, piece)) = piece.split_first() {
            let piece = piece.iter().map(|&byte| {
                if byte < 200 {
                    b"ab\xad\xff!"[usize::from(byte) % 5]
                } else {
                    byte
                }
            });
            *pieces.entry(piece.collect()).or_default() += u64::from(*count);
        }
    }
    pieces
}

/// Counts the pieces of documents, and compares them with those of each whole text.
fn count(text: &str, counting: &Counting, weight: u8) -> BTreeMap<Bytes, u64> {
    let documents: Vec<&str> = text.split('\u{1}').collect();
    let (mut counted, weight) = (Counted::default(), 1 + u64::from(weight % 3));
    let interrupt = Interrupt::never();
    let mut call = CountCall {
        counter: &counting.counter,
        counted: &mut counted,
        weight,
        interrupt: &interrupt,
    };
    call.add_texts(&documents).unwrap();
    let found = counted.counts().unwrap().iter();
    let found: BTreeMap<Bytes, u64> = found
        .map(|(piece, count)| (piece.to_vec(), count))
        .collect();
    let mut expected = BTreeMap::new();
    for document in documents {
        let tokens = SPECIAL.map(|content| AddedToken::special(content, 0));
        let tokens = tokens
            .each_ref()
            .map(|token| (token.content.clone(), token));
        let mut done = 0;
        let ends = naive::find_added(&tokens, document)
            .into_iter()
            .map(|found| found.1);
        for range in ends.chain(std::iter::once(document.len()..document.len())) {
            let part = &document[done..range.start];
            done = range.end;
            let part = counting
                .form
                .map_or(part.to_owned(), |form| naive::normal_form(form, part));
            let split = SPLITTER.split(part.as_bytes(), &OffsetMap::original(0), false, |piece| {
                *expected
                    .entry(piece.text[piece.range].to_vec())
                    .or_default() += weight;
                true
            });
            split.unwrap();
        }
    }
    assert_eq!(found, expected, "{text:?}");
    found
}

fn train(pieces: BTreeMap<Bytes, u64>, options: &MergeOptions, resume_at: usize) {
    let mut pieces: Pieces = pieces.into_iter().collect();
    let expected = recount(&pieces, options);
    let merges = |pieces: &Pieces, known: &[(Bytes, Bytes)]| {
        let learned = train_from(pieces, None, known, options).unwrap();
        merges_as_bytes(learned, byte_tokens())
    };
    assert_eq!(merges(&pieces, &[]), expected, "{pieces:?} {options:?}");
    // An interrupted run continues to the same result; the order of the pieces does not matter.
    pieces.reverse();
    let known = &expected[..resume_at.min(expected.len())];
    assert_eq!(merges(&pieces, known), expected, "{pieces:?} {options:?}");
}
