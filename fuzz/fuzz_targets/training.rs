//! Training: the merges are those of recounting all pairs for each merge, and pieces are counted as in a whole text.

#![no_main]

use bpe_tokenizer_core::alignment::OffsetMap;
use bpe_tokenizer_core::normalize::Normalization;
use bpe_tokenizer_core::pretokenize::PreTokenizers;
use bpe_tokenizer_core::special::AddedToken;
use bpe_tokenizer_core::text::char_of_byte;
use bpe_tokenizer_core::train::counts::{CountCall, Counted, Counter};
use bpe_tokenizer_core::train::merges::{
    train_merges, Callbacks, Learned, MergeOptions, TieBreak, WarmStart,
};
use bpe_tokenizer_core::Interrupt;
use bpe_tokenizer_fuzz::{naive, text};
use libfuzzer_sys::fuzz_target;
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::LazyLock;

type Bytes = Vec<u8>;
type Merges = Vec<(Bytes, Bytes)>;

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
            let counter = Counter::new(&patterns, form, special, 1, None).unwrap();
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
        vocab_size: 256 + u32::from(header[0] % 48),
        reserved: (0..u32::from(header[1] % 4))
            .map(|index| 257 + 3 * index)
            .collect(),
        min_frequency: u64::from(header[2] % 5),
        tie_break: match header[3] & 1 {
            0 => TieBreak::Largest,
            _ => TieBreak::HuggingFace,
        },
        max_token_length: (header[4] < 100).then_some(usize::from(header[4] % 9)),
        threads: 1,
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
    train(&pieces, &options, usize::from(header[3] / 4));
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

fn train(pieces: &BTreeMap<Bytes, u64>, options: &MergeOptions, resume_at: usize) {
    let free = (256..options.vocab_size)
        .filter(|id| !options.reserved.contains(id))
        .count();
    let expected = recount(pieces, free, options);
    let learned = merges_of(learn(pieces, &[], options, false));
    assert_eq!(learned, expected, "{pieces:?} {options:?}");
    // An interrupted run continues to the same result; the order of the pieces does not matter.
    let resumed = learn(
        pieces,
        &expected[..resume_at.min(expected.len())],
        options,
        true,
    );
    assert_eq!(merges_of(resumed), expected, "{pieces:?} {options:?}");
}

fn learn(
    pieces: &BTreeMap<Bytes, u64>,
    merges: &[(Bytes, Bytes)],
    options: &MergeOptions,
    reversed: bool,
) -> Learned {
    let mut pieces: Vec<(&[u8], u64)> = pieces.iter().map(|it| (&it.0[..], *it.1)).collect();
    if reversed {
        pieces.reverse();
    }
    let warm_start = WarmStart {
        model: None,
        merges,
    };
    let mut progress = |_, _| {};
    let callbacks = &mut Callbacks::progress(&mut progress);
    let never = Interrupt::never();
    train_merges(pieces.into_iter(), &warm_start, options, &never, callbacks).unwrap()
}

/// The merges as bytes, after a look at the ids.
fn merges_of(learned: Learned) -> Merges {
    let mut tokens: BTreeMap<u32, Bytes> = (0..=255).map(|byte| (byte, vec![byte as u8])).collect();
    let mut merges = Vec::new();
    assert_eq!(learned.merges.len(), learned.tokens.len());
    for ((left, right, product), (id, token)) in learned.merges.into_iter().zip(learned.tokens) {
        let (left, right) = (tokens[&left].clone(), tokens[&right].clone());
        assert_eq!((product, [&left[..], &right].concat()), (id, token.clone()));
        assert_eq!(tokens.insert(id, token), None);
        merges.push((left, right));
    }
    merges
}

/// The specification: each merge counts all pairs anew.
fn recount(pieces: &BTreeMap<Bytes, u64>, wanted: usize, options: &MergeOptions) -> Merges {
    let pieces = pieces.iter();
    let words =
        pieces.map(|(piece, count)| (piece.iter().map(|&byte| vec![byte]).collect(), *count));
    let mut words: Vec<(Vec<Bytes>, u64)> = words.collect();
    let mut tokens: Vec<Bytes> = (0..=255).map(|byte| vec![byte]).collect();
    tokens.sort_by_key(|token| char_of_byte(token[0]));
    let (mut merges, mut made) = (Vec::new(), BTreeSet::new());
    while merges.len() < wanted {
        let Some((left, right)) = best_pair(&words, &tokens, options) else {
            break;
        };
        let product = [&left[..], &right].concat();
        assert!(made.insert(product.clone()), "{product:?} is made twice");
        for (word, _) in &mut words {
            let mut at = 0;
            while at + 1 < word.len() {
                if word[at] == left && word[at + 1] == right {
                    word.splice(at..at + 2, [product.clone()]);
                }
                at += 1;
            }
        }
        tokens.push(product);
        merges.push((left, right));
    }
    merges
}

fn best_pair(
    words: &[(Vec<Bytes>, u64)],
    tokens: &[Bytes],
    options: &MergeOptions,
) -> Option<(Bytes, Bytes)> {
    let mut counts: BTreeMap<(&Bytes, &Bytes), u64> = BTreeMap::new();
    for (word, count) in words {
        for pair in word.windows(2) {
            *counts.entry((&pair[0], &pair[1])).or_default() += count;
        }
    }
    let longest = options.max_token_length.unwrap_or(usize::MAX);
    let age = |token: &Bytes| Reverse(tokens.iter().position(|it| it == token));
    let best = counts
        .into_iter()
        .filter(|((left, right), _)| left.len() + right.len() <= longest)
        .filter(|&(_, count)| count >= options.min_frequency.max(1))
        .max_by(|(a, count_a), (b, count_b)| {
            count_a.cmp(count_b).then_with(|| match options.tie_break {
                TieBreak::Largest => a.cmp(b),
                TieBreak::HuggingFace => (age(a.0), age(a.1)).cmp(&(age(b.0), age(b.1))),
            })
        });
    best.map(|((left, right), _)| (left.clone(), right.clone()))
}
