//! The work whose instructions `make instructions` counts: encoding, decoding and training on generated text.
//!
//! Nothing here depends on files, time or chance, so that two runs of one build execute the same instructions.
//! Prints a line for each measured kind of work: its bytes of text, and its name. `benchmarks/instructions.py`
//! runs it under callgrind, which counts only inside [`measured`] and writes the count after each call of it.

use bpe_tokenizer_core::decoder::{DecodeOptions, Decoder};
use bpe_tokenizer_core::encoder::{EncodeStream, Special};
use bpe_tokenizer_core::model::Settings;
use bpe_tokenizer_core::pretokenize::PreTokenizer;
use bpe_tokenizer_core::text::Text;
use bpe_tokenizer_core::train::counts::{CountCall, Counted, Counter, Limits};
use bpe_tokenizer_core::train::merges::{
    train_merges, Callbacks, Learned, MergeOptions, WarmStart,
};
use bpe_tokenizer_core::{Encoder, Error, Interrupt, Model, Result};

/// That of cl100k, whose look-aheads and counted runs use most of the automaton's features.
const PATTERN: &str = r"'(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}++|\p{N}{1,3}+| ?[^\s\p{L}\p{N}]++[\r\n]*+|\s++$|\s*[\r\n]|\s+(?!\S)|\s";
const TEXT_BYTES: usize = 200_000;
const VOCAB_SIZE: u32 = 6_000;
/// Bytes of a part of a stream.
const PART_BYTES: usize = 4_096;

fn main() -> Result<()> {
    let mut random = Random(1);
    let english = words(&mut random, 1 << 12);
    let prose = text(|text| sentence(&mut random, &english, text));
    let code = text(|text| statement(&mut random, &english, text));
    let foreign = SCRIPTS
        .map(|(first, letters, spaced)| (foreign_words(&mut random, first, letters), spaced));
    let scripts = text(|text| foreign_sentence(&mut random, &foreign, text));
    let new_words = text(|text| {
        *text += &word(&mut random, 3);
        text.push(' ');
    });

    let corpus = [&prose[..], &code, &scripts];
    let bytes = corpus.iter().map(|text| text.len()).sum();
    let counter = Counter::new(
        &[PATTERN.to_owned()],
        None,
        Vec::new(),
        1,
        Limits::default(),
    )?;
    let mut counted = Counted::default();
    measure("count pieces", bytes, || {
        let mut call = CountCall {
            counter: &counter,
            counted: &mut counted,
            weight: 1,
            interrupt: &Interrupt::never(),
        };
        call.add_texts(&corpus)
    })?;
    let learned = measure("learn merges", bytes, || learn(&mut counted))?;
    let settings = Settings {
        pre_tokenizers: vec![PreTokenizer::isolated(PATTERN)],
        ..Settings::default()
    };
    let model = learned.into_model(VOCAB_SIZE, settings, Vec::new())?;

    for (name, text) in [("prose", &prose), ("code", &code), ("scripts", &scripts)] {
        let encoder = Encoder::new(model.clone())?;
        let whole = [&text[..]];
        measure(&format!("encode {name} first"), text.len(), || {
            encode(&encoder, &whole)
        })?;
        let ids = measure(&format!("encode {name} again"), text.len(), || {
            encode(&encoder, &whole)
        })?;
        check_decoding(&model, &ids, text)?;
    }
    let encoder = Encoder::new(model.clone())?;
    measure("encode new words", new_words.len(), || {
        encode(&encoder, &[&new_words])
    })?;

    let encoder = Encoder::new(model.clone())?;
    let ids = encode(&encoder, &[&prose])?;
    let short = short_texts(&mut random, &prose);
    let bytes = short.iter().map(|text| text.len()).sum();
    measure("encode short texts", bytes, || encode(&encoder, &short))?;
    measure("encode with offsets", prose.len(), || {
        with_offsets(&encoder, &prose)
    })?;
    let streamed = measure("encode a stream", prose.len(), || stream(&encoder, &prose))?;
    if streamed != ids {
        return Err(Error::Option("a stream has other ids".to_owned()));
    }
    let decoder = Decoder::new(model);
    decode(&decoder, &ids)?;
    measure("decode", prose.len(), || decode(&decoder, &ids))?;
    Ok(())
}

/// Prints what is measured and does it.
fn measure<T>(name: &str, bytes: usize, work: impl FnOnce() -> Result<T>) -> Result<T> {
    println!("{bytes} {name}");
    measured(work)
}

/// Callgrind finds this function by its name, so it must not be inlined.
#[inline(never)]
fn measured<T>(work: impl FnOnce() -> Result<T>) -> Result<T> {
    work()
}

fn learn(counted: &mut Counted) -> Result<Learned> {
    let options = MergeOptions::new(VOCAB_SIZE);
    let start = WarmStart::default();
    let never = Interrupt::never();
    let mut callbacks = |_, _| {};
    let mut callbacks = Callbacks::progress(&mut callbacks);
    train_merges(
        counted.counts()?.iter(),
        &start,
        &options,
        &never,
        &mut callbacks,
    )
}

fn encode(encoder: &Encoder, texts: &[&str]) -> Result<Vec<u32>> {
    let never = Interrupt::never();
    let mut ids = Vec::new();
    for text in texts {
        encoder.encode(Text::Str(text), &Special::None, &mut ids, &never)?;
    }
    Ok(ids)
}

fn with_offsets(encoder: &Encoder, text: &str) -> Result<Vec<(u32, usize, usize)>> {
    let mut tokens = Vec::new();
    let never = Interrupt::never();
    encoder.encode_with_spans(Text::Str(text), &Special::None, &never, |id, span| {
        tokens.push((id, span.start, span.end));
        true
    })?;
    Ok(tokens)
}

fn stream(encoder: &Encoder, text: &str) -> Result<Vec<u32>> {
    let never = Interrupt::never();
    let mut stream = EncodeStream::new(encoder, &Special::None)?;
    let mut ids = Vec::new();
    // Prose is ASCII.
    for start in (0..text.len()).step_by(PART_BYTES) {
        let end = text.len().min(start + PART_BYTES);
        let ends = end == text.len();
        stream.push(encoder, &text[start..end], ends, &mut ids, &never)?;
    }
    Ok(ids)
}

fn decode(decoder: &Decoder, ids: &[u32]) -> Result<Vec<u8>> {
    let mut bytes = Vec::new();
    decoder.decode(
        ids,
        DecodeOptions::default(),
        &mut bytes,
        &Interrupt::never(),
    )?;
    Ok(bytes)
}

fn check_decoding(model: &Model, ids: &[u32], text: &str) -> Result<()> {
    if decode(&Decoder::new(model.clone()), ids)? == text.as_bytes() {
        return Ok(());
    }
    Err(Error::Option("the ids decode to another text".to_owned()))
}

/// A linear congruential generator with the multiplier of Knuth's MMIX.
struct Random(u64);

impl Random {
    fn below(&mut self, limit: usize) -> usize {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as usize % limit
    }

    fn one<T: Copy>(&mut self, of: &[T]) -> T {
        of[self.below(of.len())]
    }

    /// A small index is much more frequent than a large one, about as in Zipf's law.
    fn rank(&mut self, limit: usize) -> usize {
        let bits = self.below(limit.ilog2() as usize + 1);
        self.below(1 << bits)
    }
}

/// A text of `TEXT_BYTES` or a little more.
fn text(mut more: impl FnMut(&mut String)) -> String {
    let mut text = String::new();
    while text.len() < TEXT_BYTES {
        more(&mut text);
    }
    text
}

fn word(random: &mut Random, syllables: usize) -> String {
    let starts = [
        "", "b", "st", "c", "d", "f", "th", "l", "m", "n", "p", "r", "tr", "w",
    ];
    let ends = ["", "n", "r", "s", "t", "nd", "ck"];
    let mut word = String::new();
    for _ in 0..=random.below(syllables + 1) {
        word += random.one(&starts);
        word += random.one(&["a", "e", "i", "o", "ou"]);
        word += random.one(&ends);
    }
    word
}

/// Frequent words are short.
fn words(random: &mut Random, count: usize) -> Vec<String> {
    (1..=count)
        .map(|rank| word(random, rank.ilog2() as usize / 5))
        .collect()
}

fn sentence(random: &mut Random, words: &[String], text: &mut String) {
    for place in 0..6 + random.below(14) {
        let word = &words[random.rank(words.len())];
        match (place, random.below(40)) {
            (0, _) | (_, 0) => {
                *text += &word[..1].to_uppercase();
                *text += &word[1..];
            }
            (_, 1) => *text += &random.below(3_000).to_string(),
            _ => *text += word,
        }
        *text += random.one(&[" ", " ", " ", " ", " ", " ", " ", " ", ", ", "'s "]);
    }
    text.pop();
    *text += random.one(&[". ", ". ", ".\n", "? ", ".\n\n"]);
}

fn statement(random: &mut Random, words: &[String], text: &mut String) {
    for _ in 0..random.below(5) {
        *text += "    ";
    }
    for _ in 0..2 + random.below(5) {
        let (first, second) = (random.rank(words.len()), random.rank(words.len()));
        *text += &words[first];
        *text += random.one(&["", "_", "."]);
        *text += &words[second];
        *text += random.one(&[
            " = ", "(", ")", " + ", ", ", "[0]", " == ", "->", "::", " // ",
        ]);
    }
    *text += random.one(&[";\n", " {\n", "\n}\n\n", ");\n"]);
}

/// The first letter of a script, how many letters are taken, and whether its words have spaces between them.
const SCRIPTS: [(u32, usize, bool); 8] = [
    (0x0430, 32, true),     // Cyrillic
    (0x03b1, 24, true),     // Greek
    (0x0627, 28, true),     // Arabic
    (0x0915, 37, true),     // Devanagari
    (0x0e01, 46, false),    // Thai
    (0xac00, 4_000, true),  // Hangul
    (0x4e00, 3_000, false), // Han
    (0x3042, 80, false),    // Kana
];

/// Words of a script.
fn foreign_words(random: &mut Random, first: u32, letters: usize) -> Vec<String> {
    (0..1 << 9)
        .map(|_| {
            (0..1 + random.below(6))
                .filter_map(|_| char::from_u32(first + random.rank(letters) as u32))
                .collect()
        })
        .collect()
}

fn foreign_sentence(random: &mut Random, words: &[(Vec<String>, bool)], text: &mut String) {
    let (words, spaced) = &words[random.below(words.len())];
    for _ in 0..5 + random.below(10) {
        *text += &words[random.rank(words.len())];
        *text += if *spaced {
            " "
        } else {
            random.one(&["", "", "", "、"])
        };
    }
    *text += random.one(&[". ", "。", "!\n"]);
}

/// Parts of 5 to 104 bytes.
fn short_texts<'a>(random: &mut Random, text: &'a str) -> Vec<&'a str> {
    let mut rest = text;
    let mut texts = Vec::new();
    while rest.len() > 104 {
        let (part, after) = rest.split_at(5 + random.below(100));
        texts.push(part);
        rest = after;
    }
    texts
}
