//! Inputs for tests of training, and training by recounting.

#![allow(dead_code)] // each test file uses a part

mod recounting;

use bpe_tokenizer_core::train::merges::{MergeOptions, TieBreak};
use proptest::collection::vec;
use proptest::prelude::*;
pub use recounting::*;
use TieBreak::{HuggingFace, Largest};

pub fn pieces(pieces: &[(&[u8], u64)]) -> Pieces {
    pieces
        .iter()
        .map(|&(p, count)| (p.to_vec(), count))
        .collect()
}

pub fn options(vocab_size: u32, tie_break: TieBreak) -> MergeOptions {
    MergeOptions {
        min_frequency: 1,
        tie_break,
        ..MergeOptions::new(vocab_size)
    }
}

/// The merges as bytes, after a look at the ids.
pub fn merges(pieces: &Pieces, options: &MergeOptions) -> Merges {
    merges_as_bytes(train(pieces, options).unwrap(), byte_tokens())
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
