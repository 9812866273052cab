//! Batches and files on many threads give the ids of single texts. Jobs are tiny, so texts are cut wherever
//! that is allowed.

#![allow(clippy::unwrap_used, clippy::panic, clippy::disallowed_methods)] // tests

#[path = "support/text_parts.rs"]
mod text_parts;

use bpe_tokenizer_core::buffer_pool::BufferPool;
use bpe_tokenizer_core::code_units::CodeUnits;
use bpe_tokenizer_core::encoder::{BatchOptions, Encoder, Ragged, Special, TextSource};
use bpe_tokenizer_core::model::Settings;
use bpe_tokenizer_core::normalize::Normalization;
use bpe_tokenizer_core::normalizers::Normalizer;
use bpe_tokenizer_core::pretokenize::{Behavior, Metaspace, PreTokenizer, Prepend, Split};
use bpe_tokenizer_core::special::AddedToken;
use bpe_tokenizer_core::text::Text;
use bpe_tokenizer_core::{Error, Interrupt, Model};
use proptest::prelude::*;
use serde::Deserialize;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::OnceLock;

/// Texts that patterns, normal forms and added tokens treat differently, beside those of `text_parts.rs`.
const PARTS: [&str; 20] = [
    "a", "B", "9", "1234", " ", "\n", "\t", "'", "!", ".", "//", "/\n", "İ", "中文", "ひら", "Å",
    "ﬁ", "\0", "\u{11a8}", "e\u{301}",
];
const ADDED_PARTS: [&str; 13] = [
    "<|", "|>", "<|end|>", "<|en", "end", "<L>", "<R>", "<W>", "<n é>", "<<L>", " <L>", "<R> ",
    "x<W>",
];

fn parts() -> Vec<&'static str> {
    [&PARTS[..], &ADDED_PARTS, &text_parts::all()].concat()
}

#[derive(Deserialize)]
struct Vector {
    patterns: Vec<String>,
}

fn model(settings: Settings, added: Vec<AddedToken>) -> Encoder {
    let mut tokens: Vec<(u32, Vec<u8>)> = (0..=255).map(|byte| (byte, vec![byte as u8])).collect();
    // Any two neighbours may merge, so a cut at a wrong position changes the ids.
    let mut merges = Vec::new();
    for part in parts() {
        for next in ["", "a", " ", "word", "\n", "\u{301}", "e", "日"] {
            let text = [part, next].concat().into_bytes();
            for length in 2..=text.len() {
                if tokens.iter().all(|(_, token)| *token != text[..length]) {
                    tokens.push((tokens.len() as u32, text[..length].to_vec()));
                    merges.push((text[..length - 1].to_vec(), vec![text[length - 1]]));
                }
            }
        }
    }
    let first = tokens.len() as u32;
    let added = (first..)
        .zip(added)
        .map(|(id, token)| AddedToken { id, ..token });
    Encoder::new(Model::new(tokens, Some(&merges), settings, added.collect()).unwrap()).unwrap()
}

fn added(normalized: bool) -> Vec<AddedToken> {
    let token = |content: &str| AddedToken {
        special: content == "<|end|>",
        lstrip: content == "<L>",
        rstrip: content == "<R>",
        single_word: content == "<W>",
        normalized,
        ..AddedToken::special(content, 0)
    };
    let contents = ["<|end|>", "<L>", "<R>", "<W>", "<n é>", "end<|end|>"];
    contents.map(token).to_vec()
}

fn normalizers() -> Vec<Vec<Normalizer>> {
    let form = Normalizer::Form;
    let replace = |pattern: &str| Normalizer::Replace {
        pattern: pattern.to_owned(),
        content: "_".to_owned(),
    };
    let strip = |left, right| Normalizer::Strip { left, right };
    vec![
        vec![],
        vec![form(Normalization::Nfc)],
        vec![form(Normalization::Nfkd), Normalizer::StripAccents],
        vec![form(Normalization::Nfkc), Normalizer::Lowercase],
        vec![form(Normalization::Nfd), strip(true, false)],
        vec![strip(false, true)],
        vec![
            strip(true, true),
            Normalizer::Prepend {
                prepend: "_".to_owned(),
            },
        ],
        vec![replace(" ")],
    ]
}

fn steps() -> Vec<Vec<PreTokenizer>> {
    let vectors: Vec<Vector> =
        serde_json::from_str(include_str!("../../../tests/vectors/split_patterns.json")).unwrap();
    let isolated = |pattern: &String| PreTokenizer::isolated(pattern);
    let patterns = vectors
        .iter()
        .map(|vector| vector.patterns.iter().map(isolated).collect());
    let metaspace = |prepend| {
        PreTokenizer::Metaspace(Metaspace {
            replacement: '▁',
            prepend,
            split: true,
        })
    };
    let word = PreTokenizer::isolated(r" ?\w+|\s");
    let split = |behavior| {
        PreTokenizer::Split(Split {
            pattern: r"\w+".to_owned(),
            behavior,
            invert: false,
        })
    };
    let others = [
        vec![],
        vec![PreTokenizer::isolated(r"\b\w+\b|\W+")], // the regex engine
        vec![PreTokenizer::isolated("x+")],
        vec![word.clone(), metaspace(Prepend::First)],
        vec![word.clone(), metaspace(Prepend::Always)],
        vec![word, PreTokenizer::PrefixSpace],
        vec![PreTokenizer::PrefixSpace],
        vec![metaspace(Prepend::First)],
        vec![split(Behavior::Removed)],
        vec![split(Behavior::MergedWithNext)],
        vec![split(Behavior::Contiguous)],
    ];
    patterns.chain(others).collect()
}

/// All patterns without added tokens; some patterns with all normalisations and all kinds of added tokens.
fn encoders() -> &'static [Encoder] {
    static ENCODERS: OnceLock<Vec<Encoder>> = OnceLock::new();
    ENCODERS.get_or_init(|| {
        let make = |pre_tokenizers: &[PreTokenizer], normalizers: &[Normalizer], added| {
            let settings = Settings {
                pre_tokenizers: pre_tokenizers.to_vec(),
                normalizers: normalizers.to_vec(),
                ..Settings::default()
            };
            model(settings, added)
        };
        let steps = steps();
        let mut encoders: Vec<_> = steps.iter().map(|steps| make(steps, &[], vec![])).collect();
        for steps in [&steps[0], &steps[2], &steps[steps.len() - 7]] {
            for normalizers in normalizers() {
                for added in [vec![], added(false), added(true)] {
                    encoders.push(make(steps, &normalizers, added));
                }
            }
        }
        encoders
    })
}

fn one_by_one(encoder: &Encoder, texts: &[Text<'_>], options: &BatchOptions) -> Ragged {
    let (mut ids, mut offsets) = (Vec::new(), vec![0]);
    for &text in texts {
        ids.extend_from_slice(&options.prefix_ids);
        encoder
            .encode(text, &options.special, &mut ids, &Interrupt::never())
            .unwrap();
        ids.extend_from_slice(&options.suffix_ids);
        offsets.push(ids.len() as i64);
    }
    Ragged { ids, offsets }
}

fn options(job_bytes: usize, threads: usize, special: Special) -> BatchOptions {
    BatchOptions {
        special,
        threads,
        job_bytes,
        prefix_ids: vec![1],
        suffix_ids: vec![2, 3],
        ..BatchOptions::default()
    }
}

/// A text as CPython stores it.
enum Stored {
    Latin1(Vec<u8>),
    Ucs2(Vec<u16>),
    Ucs4(Vec<u32>),
}

impl Stored {
    fn new(code_points: &[u32]) -> Self {
        fn all<U: TryFrom<u32>>(code_points: &[u32]) -> Option<Vec<U>> {
            code_points.iter().map(|&it| it.try_into().ok()).collect()
        }
        let latin1 = all(code_points).map(Self::Latin1);
        let narrow = latin1.or_else(|| all(code_points).map(Self::Ucs2));
        narrow.unwrap_or_else(|| Self::Ucs4(code_points.to_vec()))
    }

    fn of(text: &str) -> Self {
        Self::new(&text.chars().map(u32::from).collect::<Vec<_>>())
    }

    fn units(&self) -> CodeUnits<'_> {
        match self {
            Self::Latin1(units) => CodeUnits::Latin1(units),
            Self::Ucs2(units) => CodeUnits::Ucs2(units),
            Self::Ucs4(units) => CodeUnits::Ucs4(units),
        }
    }
}

/// Compares code units with the ids of the text, alone and in a batch.
fn check_units(encoder: &Encoder, text: &str, stored: &Stored, job: usize, special: &Special) {
    let (units, never) = (stored.units(), Interrupt::never());
    let (mut expected, mut ids) = (Vec::new(), Vec::new());
    let text = Text::Str(text);
    encoder
        .encode(text, special, &mut expected, &never)
        .unwrap();
    encoder.encode(units, special, &mut ids, &never).unwrap();
    assert_eq!(ids, expected, "{text:?}");
    assert_eq!(
        encoder.count(units, special, &never).unwrap(),
        expected.len()
    );
    // So many that three threads pay.
    let many = 1 + (70 << 10) / text.as_bytes().len().max(1);
    for (threads, times) in [(1, 2), (3, many)] {
        let options = options(job, threads, special.clone());
        let texts = vec![TextSource::Units(units); times];
        let found = encoder.encode_all(texts.into_iter(), &options, &never);
        let found = found.unwrap();
        let whole = [&[1][..], &expected, &[2, 3]].concat();
        assert_eq!(found.offsets.len(), times + 1);
        for row in found.offsets.windows(2) {
            let ids = &found.ids[row[0] as usize..row[1] as usize];
            assert_eq!(ids, whole, "{text:?}");
        }
        let counted = encoder.count_all(std::iter::repeat_n(units, times), &options, &never);
        assert_eq!(counted.unwrap(), found.ids.len());
    }
}

/// Compares a batch with single texts. Repeats the texts, so that several threads pay.
fn check(encoder: &Encoder, texts: &[Text<'_>], job: usize, special: &Special) {
    let bytes: usize = texts.iter().map(|text| text.as_bytes().len()).sum();
    let repeated = texts.repeat((80 << 10) / bytes.max(1) + 1);
    let options = options(job, 3, special.clone());
    let never = Interrupt::never();
    let found = encoder
        .encode_all(repeated.iter().copied(), &options, &never)
        .unwrap();
    let expected = one_by_one(encoder, texts, &options);
    let length = expected.ids.len();
    assert_eq!(found.offsets.len(), repeated.len() + 1);
    for (turn, ids) in found.ids.chunks(length.max(1)).enumerate() {
        assert_eq!(ids, expected.ids, "turn {turn} of {texts:?}");
    }
    let rows = texts.len();
    for (row, offset) in found.offsets.iter().enumerate() {
        let turn = (row / rows * length) as i64;
        assert_eq!(*offset, turn + expected.offsets[row % rows]);
    }
    let count = encoder
        .count_all(repeated.iter().copied(), &options, &never)
        .unwrap();
    assert_eq!(count, found.ids.len());
    for text in texts {
        let mut ids = Vec::new();
        encoder.encode(*text, special, &mut ids, &never).unwrap();
        assert_eq!(encoder.count(*text, special, &never).unwrap(), ids.len());
    }
}

fn text(length: std::ops::Range<usize>) -> impl Strategy<Value = String> {
    let part = prop_oneof![
        9 => prop::sample::select(parts()).prop_map(str::to_owned),
        1 => any::<char>().prop_map(String::from),
    ];
    prop::collection::vec(part, length).prop_map(|parts| parts.concat())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn a_batch_has_the_ids_of_its_texts(
        texts in prop::collection::vec(text(0..60), 1..4),
        broken in prop::collection::vec(prop_oneof![3 => any::<u8>(), 7 => 32..60u8], 0..40),
        job in 1..40usize,
        encoder in prop::sample::select((0..encoders().len()).collect::<Vec<_>>()),
        all in any::<bool>(),
    ) {
        let mut texts: Vec<Text<'_>> = texts.iter().map(|text| Text::Str(text)).collect();
        texts.push(Text::Bytes(&broken));
        let special = if all { Special::All } else { Special::None };
        check(&encoders()[encoder], &texts, job, &special);
    }

    #[test]
    fn files_have_the_ids_of_their_documents(
        text in text(0..200),
        separator in prop::sample::select(vec![None, Some("\n"), Some("\n\n"), Some(" "), Some("<|end|>"), Some("é"),
                                                    Some("<|end|><|end|>"), Some("a "), Some("ab ab ab ab ab")]),
        job in 1..200usize,
        threads in 1..4usize,
        times in prop::sample::select(vec![1, 300]),
    ) {
        let encoder = &encoders()[0];
        let text = text.repeat(times);
        let name = format!("bpe-tokenizer-{}-{job}-{threads}.txt", std::process::id());
        let path = std::env::temp_dir().join(name);
        std::fs::write(&path, &text).unwrap();
        let options = options(job * times.min(50), threads, Special::All);
        let paths = [&path, &path];
        let found = encoder.encode_files(&paths, separator, &BufferPool::default(), &options, &Interrupt::never());
        std::fs::remove_file(&path).unwrap();
        let documents: Vec<_> = match separator {
            None => vec![text.as_str()],
            Some(separator) => text.split(separator).filter(|text| !text.is_empty()).collect(),
        };
        let documents: Vec<_> = documents.repeat(2).into_iter().map(Text::Str).collect();
        prop_assert!(found.unwrap() == one_by_one(encoder, &documents, &options), "{text:?}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]

    #[test]
    fn code_units_have_the_ids_of_their_text(
        text in text(0..60),
        job in prop::sample::select(vec![1, 2, 16, 40, 80, 400]),
        encoder in prop::sample::select((0..encoders().len()).collect::<Vec<_>>()),
        all in any::<bool>(),
    ) {
        let special = if all { Special::All } else { Special::None };
        check_units(&encoders()[encoder], &text, &Stored::of(&text), job, &special);
    }
}

#[test]
fn long_code_units_have_the_ids_of_their_text() {
    let kinds = [
        "Voilà: été comme hiver. ",
        "日本語の文 <|end|>です。",
        "🎉 party e\u{301} 👩\u{200d}👧!\n",
        "nocuthere",
    ];
    for kind in kinds {
        let text = format!("é{}", kind.repeat(36_000 / kind.chars().count()));
        for encoder in encoders() {
            check_units(encoder, &text, &Stored::of(&text), 1 << 16, &Special::All);
        }
    }
}

#[test]
fn surrogates_in_code_units_are_joined_or_replaced() {
    let encoder = &encoders()[0];
    let parts = ["one two ", "日本 ", "\u{fffd}", "🎉 ", "three <|end|> "];
    // How the units of each part may also be written.
    let halves: [&[u32]; 5] = [&[], &[], &[0xdc00], &[0xd83c, 0xdf89, 0x20], &[]];
    let (mut text, mut units) = (String::new(), Vec::new());
    for turn in 0..60_000 {
        let part = turn * 7919 % 13 % parts.len();
        text.push_str(parts[part]);
        match halves[part] {
            [] => units.extend(parts[part].chars().map(u32::from)),
            halves => units.extend_from_slice(halves),
        }
    }
    for job in [16, 1 << 12, 1 << 16] {
        check_units(encoder, &text, &Stored::new(&units), job, &Special::All);
    }
}

/// What another process does to a file.
type Change = fn(&Path);

const CHANGES: [Change; 5] = [
    |path| resize(path, |bytes| bytes / 2),
    |path| resize(path, |_| 0),
    |path| resize(path, |bytes| bytes - 1),
    |path| resize(path, |bytes| bytes + 1),
    |path| std::fs::remove_file(path).unwrap_or_default(),
];

fn resize(path: &Path, size: fn(u64) -> u64) {
    if let Ok(file) = std::fs::OpenOptions::new().write(true).open(path) {
        file.set_len(size(file.metadata().unwrap().len())).unwrap();
    }
}

#[test]
fn a_file_that_changes_at_any_moment_is_an_error_or_changes_nothing() {
    let encoder = &encoders()[0];
    let text = "one two three\n日本語 four\n".repeat(60);
    let never = Interrupt::never();
    for (number, change) in CHANGES.into_iter().enumerate() {
        for (separator, job) in [
            (None, 16),
            (Some("\n"), 16),
            (Some("absent"), 40),
            (None, 1 << 20),
        ] {
            let options = options(job, 1, Special::All);
            let path = file(&format!("changing-{number}"), text.as_bytes());
            let expected = encode_file(encoder, &path, separator, &options, &never).unwrap();
            let (mut errors, mut moment) = (0, 1);
            loop {
                std::fs::write(&path, &text).unwrap();
                let polls = AtomicUsize::new(0);
                let poll = || {
                    // The first poll comes before anything looks at the file.
                    if polls.fetch_add(1, Ordering::Relaxed) == moment {
                        change(&path);
                    }
                    false
                };
                let interrupt = Interrupt::new(&poll);
                match encode_file(encoder, &path, separator, &options, &interrupt) {
                    Ok(ids) => assert_eq!(ids, expected, "{number} at {moment}"),
                    Err(error) => {
                        let message = error.to_string();
                        assert!(
                            message.starts_with(&path.display().to_string()),
                            "{message}"
                        );
                        let is_named =
                            message.ends_with("changed while it was being read; try again");
                        assert!(is_named || !path.exists(), "{message}");
                        errors += 1;
                    }
                }
                if polls.into_inner() <= moment {
                    break;
                }
                moment += 1;
            }
            let _ = std::fs::remove_file(&path);
            // Each moment before the last read is an error, unless the file only loses its name.
            assert!(
                number == 4 || errors > 0 && errors + 8 > moment,
                "{errors} of {moment}"
            );
        }
    }
}

fn encode_file(
    encoder: &Encoder,
    path: &Path,
    separator: Option<&str>,
    options: &BatchOptions,
    interrupt: &Interrupt<'_>,
) -> Result<Ragged, Error> {
    let pool = BufferPool::default();
    encoder.encode_files(&[path], separator, &pool, options, interrupt)
}

fn file(name: &str, bytes: &[u8]) -> PathBuf {
    let name = format!("bpe-tokenizer-{}-{name}", std::process::id());
    let path = std::env::temp_dir().join(name);
    std::fs::write(&path, bytes).unwrap();
    path
}

#[test]
fn errors_name_a_disallowed_token_at_any_position() {
    let added = vec![AddedToken::special("<|end of it|>", 0)];
    let settings = Settings {
        pre_tokenizers: steps()[0].clone(),
        ..Settings::default()
    };
    let encoder = model(settings, added);
    for at in 0..70 {
        let (before, after) = ("a ".repeat(at), "b ".repeat(600_000));
        let path = file(
            &format!("disallowed-{at}"),
            format!("{before}<|end of it|>{after}").as_bytes(),
        );
        let options = BatchOptions {
            disallowed: Special::All,
            threads: 2,
            job_bytes: 64,
            ..BatchOptions::default()
        };
        let result = encode_file(&encoder, &path, None, &options, &Interrupt::never());
        std::fs::remove_file(&path).unwrap();
        let Err(Error::Disallowed { token, byte, .. }) = result else {
            panic!("{result:?}");
        };
        assert_eq!((token.as_str(), byte), ("<|end of it|>", 2 * at as u64));
    }
}
