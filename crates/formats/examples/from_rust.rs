//! The crates without Python: load a byte-level tokenizer.json, encode a text with it; train on the text, save the merges.
//!
//! ```text
//! cargo run --release -p bpe-tokenizer-formats --example from_rust -- tokenizer.json text.txt merges.txt
//! ```
//!
//! The steps of the tokenizer.json (here: GPT-2's split pattern, no normalisation) are the caller's, as everything that the
//! package's readers do in Python.

use bpe_tokenizer_core::encoder::Special;
use bpe_tokenizer_core::model::{Settings, Vocabulary};
use bpe_tokenizer_core::pretokenize::PreTokenizer;
use bpe_tokenizer_core::text::{from_printable, to_printable, Text};
use bpe_tokenizer_core::train::counts::{CountCall, Counted, Counter, Limits};
use bpe_tokenizer_core::train::merges::{train_merges, Callbacks, MergeOptions, WarmStart};
use bpe_tokenizer_core::{Encoder, Error, Interrupt, Model};
use bpe_tokenizer_formats::tokenizer_json::read_tokenizer_json;
use std::fs;

type Outcome<T> = Result<T, Box<dyn std::error::Error>>;

const PATTERN: &str =
    r"'(?:[sdmt]|ll|ve|re)| ?\p{L}++| ?\p{N}++| ?[^\s\p{L}\p{N}]++|\s++$|\s+(?!\S)|\s";

fn main() -> Outcome<()> {
    let paths: Vec<String> = std::env::args().skip(1).collect();
    let [tokenizer, text, merges] = &paths[..] else {
        return Err("give three paths: tokenizer.json text.txt merges.txt".into());
    };
    let text = fs::read_to_string(text)?;
    let encoder = Encoder::new(load(tokenizer)?)?;
    println!("{} ids", encode(&encoder, &text)?.len());
    let trained = train(&text)?;
    fs::write(merges, merges_of(&trained))?;
    println!("{} ids", encode(&Encoder::new(trained)?, &text)?.len());
    Ok(())
}

fn settings() -> Settings {
    Settings {
        pre_tokenizers: vec![PreTokenizer::isolated(PATTERN)],
        ..Settings::default()
    }
}

fn load(path: &str) -> Outcome<Model> {
    let (_rest, tables) = read_tokenizer_json(path, &fs::read(path)?)?;
    let tables = tables.ok_or("the file has no model.vocab and model.merges")?;
    let tokens = tables.strings.iter().map(|(id, token)| {
        let bytes = std::str::from_utf8(token).ok().and_then(from_printable);
        let outside = || Error::Model(format!("token {id} is not printable bytes"));
        Ok((id, bytes.ok_or_else(outside)?))
    });
    let vocabulary = Vocabulary::from_sorted(tokens)?;
    let model = Model::with_merge_ids(vocabulary, tables.merges, settings(), tables.added)?;
    Ok(model)
}

fn encode(encoder: &Encoder, text: &str) -> Outcome<Vec<u32>> {
    let mut ids = Vec::new();
    encoder.encode(
        Text::Str(text),
        &Special::None,
        &mut ids,
        &Interrupt::never(),
    )?;
    Ok(ids)
}

fn train(text: &str) -> Outcome<Model> {
    let options = MergeOptions::new(1000);
    let (patterns, limits) = ([PATTERN.to_owned()], Limits::default());
    let counter = Counter::new(&patterns, None, Vec::new(), options.threads, limits)?;
    let (mut counted, interrupt) = (Counted::default(), Interrupt::never());
    let mut call = CountCall {
        counter: &counter,
        counted: &mut counted,
        weight: 1,
        interrupt: &interrupt,
    };
    call.add_texts(&[text])?;
    let mut progress = |_, _| {};
    let learned = train_merges(
        counted.counts()?.iter(),
        &WarmStart::default(),
        &options,
        &interrupt,
        &mut Callbacks::progress(&mut progress),
    )?;
    Ok(learned.into_model(options.vocab_size, settings(), Vec::new())?)
}

/// The merges in the format of GPT-2's merges.txt.
fn merges_of(model: &Model) -> String {
    let token = |id| to_printable(model.token(id).unwrap_or_default());
    let lines = model.merges().iter();
    let lines = lines.map(|&(left, right, _)| format!("{} {}\n", token(left), token(right)));
    lines.collect()
}
