//! Patterns and texts: automata and transducers find the pieces that the regex engine finds.

#![no_main]

use arbitrary::Unstructured;
use bpe_tokenizer_core::pretokenize::{
    from_oniguruma, is_look_around, objection, to_oniguruma, Block, Engines, PreTokenizer,
    PreTokenizers, SplitPattern,
};
use bpe_tokenizer_core::processor::Processor;
use bpe_tokenizer_core::Error;
use bpe_tokenizer_fuzz::{input, mutate_parts, patterns, text};
use fancy_regex::{CompileError, Regex, RegexBuilder};
use libfuzzer_sys::fuzz_target;
use serde::Deserialize;
use std::cell::RefCell;
use std::ops::Range;
use std::sync::LazyLock;

/// The oracle gives up early: a pattern that backtracks for seconds is not the subject here.
const BACKTRACK_LIMIT: usize = 20_000;

#[derive(Deserialize)]
struct Vector {
    patterns: Vec<String>,
}

/// The patterns of the published tokenizers.
static NAMED: LazyLock<Vec<String>> = LazyLock::new(|| {
    let vectors = include_str!("../../tests/vectors/split_patterns.json");
    let vectors: Vec<Vector> = serde_json::from_str(vectors).unwrap();
    vectors
        .into_iter()
        .flat_map(|vector| vector.patterns)
        .collect()
});

/// A pattern on every engine.
struct Engine {
    pattern: SplitPattern,
    regex: Regex,
    transducers: Vec<PreTokenizers>,
    translated: Option<SplitPattern>,
}

thread_local! {
    static ENGINES: RefCell<input::Kept<Engine>> = RefCell::default();
    static NAMED_ENGINES: RefCell<input::Kept<Engine>> = RefCell::default();
}

mutate_parts!();

fuzz_target!(|data: &[u8]| {
    let (setup, rest) = input::parts(data);
    let engine = match setup {
        // One byte is a pattern of a published tokenizer.
        &[index] => NAMED_ENGINES.with_borrow_mut(|kept| {
            let index = usize::from(index) % NAMED.len();
            kept.get(&[index as u8], || Engine::new(&NAMED[index]))
        }),
        _ => ENGINES.with_borrow_mut(|kept| kept.get(setup, || Engine::new(&pattern(setup)?))),
    };
    let Some(engine) = engine else {
        return;
    };
    let text = text::text(rest);
    engine.check(text.as_bytes());
    engine.check(rest);
    // A long text has several lanes.
    if rest.len() % 64 == 41 {
        engine.check(text.repeat(1 + 3000 / text.len()).as_bytes());
    }
});

/// The first byte says whether the others are a pattern or build one.
fn pattern(setup: &[u8]) -> Option<String> {
    let (kind, rest) = setup.split_first()?;
    match kind % 3 {
        0 => Some(text::text(rest)),
        _ => patterns::pattern(&mut Unstructured::new(rest)).ok(),
    }
}

/// Whether the pattern needs more memory than the regex engine may use.
fn is_too_large(error: &fancy_regex::Error) -> bool {
    match error {
        fancy_regex::Error::CompileError(error) => match &**error {
            CompileError::InnerError(error) => error.size_limit().is_some(),
            _ => false,
        },
        _ => false,
    }
}

impl Engine {
    fn new(pattern: &str) -> Option<Self> {
        let regex = RegexBuilder::new(pattern)
            .backtrack_limit(BACKTRACK_LIMIT)
            .build();
        let (regex, pattern) = match (regex, SplitPattern::new(pattern)) {
            (Ok(regex), Ok(pattern)) => (regex, pattern),
            (Err(_), Err(Error::Pattern { position, .. })) => {
                assert!(position <= pattern.chars().count());
                return None;
            }
            // An automaton holds repetitions of repetitions in less memory.
            (Err(error), Ok(_)) if is_too_large(&error) => return None,
            (regex, compiled) => {
                panic!(
                    "{pattern:?}: the engine {:?}, we {:?}",
                    regex.err(),
                    compiled.err()
                )
            }
        };
        let steps = [PreTokenizer::isolated(pattern.pattern())];
        let transducers = Processor::all()
            .into_iter()
            .map(|processor| PreTokenizers::on(processor, &steps).unwrap());
        Some(Self {
            translated: translated(pattern.pattern()),
            transducers: transducers.filter(PreTokenizers::has_blocks).collect(),
            regex,
            pattern,
        })
    }

    fn check(&self, text: &[u8]) {
        let Some(expected) = self.oracle(text) else {
            return; // the pattern's own engine would take seconds
        };
        let pattern = self.pattern.pattern();
        let shown = String::from_utf8_lossy(text);
        for split in [Some(&self.pattern), self.translated.as_ref()]
            .into_iter()
            .flatten()
        {
            let mut found = Vec::new();
            let take = |range: Range<usize>| {
                found.push(range);
                true
            };
            split.split(text, take).unwrap();
            let by = split.pattern();
            assert!(
                found == expected,
                "{pattern:?} ({by:?}) on {shown:?}: {found:?}, not {expected:?}"
            );
        }
        for transducers in &self.transducers {
            let ways: &[bool] = match std::str::from_utf8(text) {
                Ok(_) => &[false, true],
                Err(_) => &[false],
            };
            for &is_utf8 in ways {
                let found = blocks(transducers, text, is_utf8);
                assert!(
                    found == expected,
                    "{pattern:?} on {shown:?}: {found:?}, not {expected:?}"
                );
            }
        }
    }

    /// The pieces that the regex engine finds; a byte that is not UTF-8 counts as U+FFFD. None if it gives up.
    /// Empty matches cut the text only if the pattern has no others.
    fn oracle(&self, text: &[u8]) -> Option<Vec<Range<usize>>> {
        let (mut string, mut positions) = (String::new(), Vec::new());
        let mut at = 0;
        for chunk in text.utf8_chunks() {
            string.push_str(chunk.valid());
            positions.extend(at..at + chunk.valid().len());
            at += chunk.valid().len();
            for _ in chunk.invalid() {
                string.push('\u{fffd}');
                positions.extend([at; 3]);
                at += 1;
            }
        }
        positions.push(at);
        let cuts = is_look_around(self.pattern.pattern());
        let (mut pieces, mut end) = (Vec::new(), 0);
        for found in self.regex.find_iter(&string) {
            let found = found.ok()?.range();
            if !found.is_empty() || cuts {
                pieces.extend([end..found.start, found.clone()]);
                end = found.end;
            }
        }
        pieces.push(end..string.len());
        pieces.retain(|piece| !piece.is_empty());
        Some(
            pieces
                .into_iter()
                .map(|piece| positions[piece.start]..positions[piece.end])
                .collect(),
        )
    }
}

/// The pieces that a transducer finds, block by block.
fn blocks(transducers: &PreTokenizers, text: &[u8], is_utf8: bool) -> Vec<Range<usize>> {
    let (mut block, mut found, mut from) = (Block::default(), Vec::new(), 0);
    while from < text.len() {
        let to = transducers
            .next_block(text, is_utf8, from, &mut block)
            .unwrap();
        assert!(to > from);
        let bounds = block.bounds().windows(2);
        found.extend(bounds.map(|it| from + it[0] as usize..from + it[1] as usize));
        from = to;
    }
    found
}

/// The pattern after a translation to the dialect of Hugging Face files and back, if they can hold it.
fn translated(pattern: &str) -> Option<SplitPattern> {
    for engines in [Engines::FromOniguruma, Engines::Python] {
        let _ = objection(pattern, engines);
    }
    let _ = from_oniguruma(pattern);
    let theirs = to_oniguruma(pattern).ok()?;
    if objection(pattern, Engines::ToOniguruma).is_some() {
        return None;
    }
    assert_eq!(
        objection(&theirs, Engines::FromOniguruma),
        None,
        "{pattern:?}"
    );
    Some(SplitPattern::new(&from_oniguruma(&theirs).unwrap()).unwrap())
}
