//! Training, and its specification: recounting all pairs for each merge. The fuzz target `training` includes this file.

use bpe_tokenizer_core::train::merges::{
    train_merges, Callbacks, Learned, MergeOptions, TieBreak, WarmStart,
};
use bpe_tokenizer_core::{Interrupt, Model, Result};
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

pub type Bytes = Vec<u8>;
pub type Pieces = Vec<(Bytes, u64)>;
pub type Merges = Vec<(Bytes, Bytes)>;

/// Pieces as symbols, which are their bytes.
pub type Words = Vec<(Vec<Bytes>, u64)>;

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

/// The vocabulary of the bytes: their tokens by id.
pub fn byte_tokens() -> BTreeMap<u32, Bytes> {
    (0..=255).map(|b| (u32::from(b), vec![b])).collect()
}

/// The merges as bytes, after a look at the ids. `tokens` are those of the vocabulary that training began with.
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

/// The specification, word for word: symbols are their bytes, and every merge counts anew.
pub fn recount(pieces: &Pieces, options: &MergeOptions) -> Merges {
    let pieces = pieces.iter();
    let words = pieces.map(|(piece, count)| (piece.iter().map(|&b| vec![b]).collect(), *count));
    let mut tokens: Vec<Bytes> = (0..=255).map(|b| vec![b]).collect();
    tokens.sort_by_cached_key(|token| printable(token[0]));
    let is_free = |id: &u32| !options.reserved.contains(id);
    let wanted = (256..options.vocab_size).filter(is_free).count();
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
                TieBreak::Largest => a.cmp(b),
                TieBreak::HuggingFace => (age(a.0), age(a.1)).cmp(&(age(b.0), age(b.1))),
            })
        })?;
    Some((left.clone(), right.clone()))
}
