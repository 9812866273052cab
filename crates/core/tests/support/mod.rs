//! Training by recounting: the specification, and inputs for tests of training.

#![allow(dead_code)] // each test file uses a part

use bpe_tokenizer_core::train::merges::{
    train_merges, Callbacks, Learned, MergeOptions, TieBreak, WarmStart,
};
use bpe_tokenizer_core::{Interrupt, Model, Result};
use proptest::collection::vec;
use proptest::prelude::*;
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use TieBreak::{HuggingFace, Largest};

pub type Bytes = Vec<u8>;
pub type Pieces = Vec<(Bytes, u64)>;
pub type Merges = Vec<(Bytes, Bytes)>;

pub fn pieces(pieces: &[(&[u8], u64)]) -> Pieces {
    pieces
        .iter()
        .map(|&(p, count)| (p.to_vec(), count))
        .collect()
}

pub fn options(vocab_size: u32, tie_break: TieBreak) -> MergeOptions {
    MergeOptions {
        vocab_size,
        reserved: Vec::new(),
        min_frequency: 1,
        tie_break,
        max_token_length: None,
        threads: 1,
    }
}

pub fn train(pieces: &Pieces, options: &MergeOptions) -> Result<Learned> {
    train_from(pieces, None, &[], options)
}

pub fn train_from(
    pieces: &Pieces,
    model: Option<&Model>,
    merges: &[(Bytes, Bytes)],
    options: &MergeOptions,
) -> Result<Learned> {
    let pieces = pieces.iter().map(|(piece, count)| (&piece[..], *count));
    let warm_start = WarmStart { model, merges };
    let mut progress = |_, _| {};
    let callbacks = &mut Callbacks::progress(&mut progress);
    train_merges(pieces, &warm_start, options, &Interrupt::never(), callbacks)
}

/// The merges as bytes, after a look at the ids.
pub fn merges(pieces: &Pieces, options: &MergeOptions) -> Merges {
    let tokens = (0..=255).map(|b| (u32::from(b), vec![b])).collect();
    merges_as_bytes(train(pieces, options).unwrap(), tokens)
}

pub fn merges_as_bytes(learned: Learned, mut tokens: BTreeMap<u32, Bytes>) -> Merges {
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

/// As `merges`, written `left right`.
pub fn merges_as_text(given: &[(&str, u64)], options: &MergeOptions) -> Vec<String> {
    let given = given
        .iter()
        .map(|(p, count)| (p.as_bytes().to_vec(), *count));
    let merges = merges(&given.collect(), options).into_iter();
    merges
        .map(|(left, right)| String::from_utf8([&left[..], b" ", &right].concat()).unwrap())
        .collect()
}

/// GPT-2's printable character of a byte, as a number: the order of Hugging Face's ids.
pub fn printable(byte: u8) -> u32 {
    let shown = |byte: &u8| matches!(byte, b'!'..=b'~' | 0xA1..=0xAC | 0xAE..=0xFF);
    let hidden = (0..byte).filter(|b| !shown(b)).count() as u32;
    if shown(&byte) {
        u32::from(byte)
    } else {
        256 + hidden
    }
}

/// Pieces as symbols, which are their bytes.
pub type Words = Vec<(Vec<Bytes>, u64)>;

/// The specification, word for word: symbols are their bytes, and every merge counts anew.
pub fn recount(pieces: &Pieces, options: &MergeOptions) -> Merges {
    let pieces = pieces.iter();
    let words = pieces.map(|(piece, count)| (piece.iter().map(|&b| vec![b]).collect(), *count));
    let mut tokens: Vec<Bytes> = (0..=255).map(|b| vec![b]).collect();
    tokens.sort_by_key(|token| printable(token[0]));
    let wanted = options.vocab_size as usize - 256;
    recount_from(words.collect(), tokens, &BTreeSet::new(), wanted, options).0
}

/// The same from any symbols, with tokens that no merge may make; also how the pieces end.
pub fn recount_from(
    mut words: Words,
    mut tokens: Vec<Bytes>,
    reserved: &BTreeSet<Bytes>,
    wanted: usize,
    options: &MergeOptions,
) -> (Merges, Words) {
    let mut merges = Vec::new();
    while merges.len() < wanted {
        let Some((left, right)) = most_frequent(&words, &tokens, reserved, options) else {
            break;
        };
        let product = [&left[..], &right].concat();
        assert!(!tokens.contains(&product), "{product:?} is made twice");
        for (word, _) in &mut words {
            let mut i = 0;
            while i + 1 < word.len() {
                if word[i] == left && word[i + 1] == right {
                    word.splice(i..i + 2, [product.clone()]);
                }
                i += 1;
            }
        }
        tokens.push(product);
        merges.push((left, right));
    }
    (merges, words)
}

pub fn most_frequent(
    words: &Words,
    tokens: &[Bytes],
    reserved: &BTreeSet<Bytes>,
    options: &MergeOptions,
) -> Option<(Bytes, Bytes)> {
    let mut counts: BTreeMap<(&Bytes, &Bytes), u64> = BTreeMap::new();
    for (word, count) in words {
        for pair in word.windows(2) {
            *counts.entry((&pair[0], &pair[1])).or_default() += count;
        }
    }
    let longest = options.max_token_length.unwrap_or(usize::MAX);
    let age = |token: &Bytes| Reverse(tokens.iter().position(|t| t == token));
    let ((left, right), _) = counts
        .into_iter()
        .filter(|((left, right), _)| left.len() + right.len() <= longest)
        .filter(|((left, right), _)| !reserved.contains(&[&left[..], right].concat()))
        .filter(|&(_, count)| count >= options.min_frequency.max(1))
        .max_by(|(a, count_a), (b, count_b)| {
            count_a.cmp(count_b).then_with(|| match options.tie_break {
                Largest => a.cmp(b),
                HuggingFace => (age(a.0), age(a.1)).cmp(&(age(b.0), age(b.1))),
            })
        })?;
    Some((left.clone(), right.clone()))
}

/// Words of a pseudo-random language with many counts.
pub fn language(words: u64) -> Pieces {
    let mut state = 1_u64;
    let mut random = |below: u64| {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        (state >> 33) % below
    };
    (1..=words)
        .map(|rank| {
            let syllables = 1 + random(4);
            let word = (0..syllables)
                .flat_map(|_| [b"ptkmns "[random(7) as usize], b"aiou"[random(4) as usize]]);
            (word.collect(), 10_000 / rank + 1)
        })
        .collect()
}

/// Pieces over few bytes, where runs and equal counts are common; among the bytes are some whose
/// printable characters are in another order than they.
pub fn any_pieces() -> impl Strategy<Value = Pieces> {
    (1..=5_usize, 1..=40_usize).prop_flat_map(|(bytes, length)| {
        let byte = prop::sample::select(&b"ab \xAD\xFF"[..bytes]);
        vec((vec(byte, 0..=length), 1..6_u64), 0..12)
    })
}

pub fn any_options() -> impl Strategy<Value = MergeOptions> {
    let max_token_length = prop_oneof![Just(None), (1..8_usize).prop_map(Some)];
    let tie_break = prop_oneof![Just(Largest), Just(HuggingFace)];
    (256..330_u32, 0..5_u64, tie_break, max_token_length).prop_map(
        |(vocab_size, min_frequency, tie_break, max_token_length)| MergeOptions {
            min_frequency,
            max_token_length,
            ..options(vocab_size, tie_break)
        },
    )
}
