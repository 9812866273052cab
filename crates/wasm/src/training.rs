//! Training on a text.

use crate::answer::Answer;
use crate::tokenizer::{text, Tokenizer};
use bpe_tokenizer_core::error::quoted;
use bpe_tokenizer_core::model::Settings;
use bpe_tokenizer_core::pretokenize::PreTokenizer;
use bpe_tokenizer_core::special::AddedToken;
use bpe_tokenizer_core::train::counts::{CountCall, Counted, Counter, Limits};
use bpe_tokenizer_core::train::merges::{train_merges, Callbacks, MergeOptions, WarmStart};
use bpe_tokenizer_core::{Error, Interrupt, Result};
use serde::Deserialize;
use std::collections::BTreeMap;

/// Nothing can stop a call in a worker, so it must end by itself. This much takes seconds.
const MAX_TEXT_BYTES: usize = 20_000_000;
const MAX_VOCAB_SIZE: u32 = 200_000;

/// The options of a training run, with the defaults of `BPETokenizer.train`.
#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct Options {
    vocab_size: u32,
    pattern: String,
    #[serde(default)]
    special_tokens: BTreeMap<String, u32>,
    #[serde(default = "usual_frequency")]
    min_frequency: u64,
}

fn usual_frequency() -> u64 {
    2
}

/// Trains on a text. The answer has the distinct pieces, the most frequent first (offsets, bytes, counts), and five
/// numbers for each merge.
pub fn train(options: Options, bytes: &[u8], answer: &mut Answer) -> Result<Tokenizer> {
    if bytes.len() > MAX_TEXT_BYTES {
        return Err(Error::Option(format!(
            "the text has {} bytes; a page trains on {MAX_TEXT_BYTES} at most; use the Python package for more",
            bytes.len()
        )));
    }
    if !(257..=MAX_VOCAB_SIZE).contains(&options.vocab_size) {
        return Err(Error::Option(format!(
            "the vocabulary size is {}; use 257 to {MAX_VOCAB_SIZE}, as the 256 bytes are the first ids",
            options.vocab_size
        )));
    }
    let mut added: Vec<AddedToken> = Vec::new();
    for (content, id) in options.special_tokens {
        if id < 256 {
            return Err(Error::Model(format!(
                "the id of a special token is {id}; ids 0 to 255 are the bytes, use 256 or more"
            )));
        }
        if let Some(other) = added.iter().find(|other| other.id == id) {
            let (one, other) = (quoted(&other.content), quoted(&content));
            let message = format!("special tokens {one} and {other} have the same id {id}");
            return Err(Error::Model(message));
        }
        added.push(AddedToken::special(content, id));
    }
    added.sort_by_key(|token| token.id);
    let never = Interrupt::never();
    let patterns = [options.pattern];
    let special = added.iter().map(|token| token.content.clone()).collect();
    let counter = Counter::new(&patterns, None, special, 1, Limits::default())?;
    let mut counted = Counted::default();
    let mut call = CountCall {
        counter: &counter,
        counted: &mut counted,
        weight: 1,
        interrupt: &never,
    };
    call.add_texts(&[text(bytes)?])?;
    let counts = counted.counts()?;
    if counts.is_empty() {
        return Err(Error::Option("there is no text to train on".to_owned()));
    }
    let mut pieces = counts.sorted()?;
    pieces.sort_by_key(|&(_, count)| std::cmp::Reverse(count));
    let merge_options = MergeOptions {
        reserved: added.iter().map(|token| token.id).collect(),
        min_frequency: options.min_frequency,
        ..MergeOptions::new(options.vocab_size)
    };
    let mut pair_counts = Vec::new();
    let mut merged = |count| pair_counts.push(u32::try_from(count).unwrap_or(u32::MAX));
    let mut progress = |_, _| {};
    let mut callbacks = Callbacks {
        merged: Some(&mut merged),
        ..Callbacks::progress(&mut progress)
    };
    let learned = train_merges(
        pieces.iter().copied(),
        &WarmStart::default(),
        &merge_options,
        &never,
        &mut callbacks,
    )?;
    let merges = learned.merges.iter().zip(&pair_counts);
    let merges = merges.flat_map(|(&(left, right, id), &count)| [left, right, id, count]);
    let merges: Vec<u32> = merges.collect();
    let (mut offsets, mut piece_bytes, mut piece_counts) = (vec![0], Vec::new(), Vec::new());
    for (piece, count) in &pieces {
        piece_bytes.extend_from_slice(piece);
        offsets.push(piece_bytes.len() as u32);
        piece_counts.push(u32::try_from(*count).unwrap_or(u32::MAX));
    }
    let [pattern] = patterns;
    let settings = Settings {
        pre_tokenizers: vec![PreTokenizer::isolated(pattern)],
        ..Settings::default()
    };
    let model = learned.into_model(options.vocab_size, settings, added)?;
    let tokenizer = Tokenizer::with_named_roles(model)?;
    answer.own_words(offsets);
    answer.own_bytes(piece_bytes);
    answer.own_words(piece_counts);
    answer.own_words(merges);
    Ok(tokenizer)
}
