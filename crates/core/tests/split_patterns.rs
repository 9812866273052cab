//! The DFAs and transducers against the regex engine, piece by piece.

#![allow(clippy::unwrap_used, clippy::disallowed_methods)] // tests

#[path = "support/pattern_parts.rs"]
mod pattern_parts;
#[path = "support/text_parts.rs"]
mod text_parts;

use bpe_tokenizer_core::alignment::OffsetMap;
use bpe_tokenizer_core::pretokenize::{Block, PreTokenizer, PreTokenizers, SplitPattern};
use bpe_tokenizer_core::processor::Processor;
use pattern_parts::{ATOMS, LOOKS, REPEATS};
use proptest::prelude::*;
use serde::Deserialize;
use std::ops::Range;
use std::sync::OnceLock;

/// What patterns distinguish in ASCII; `text_parts.rs` has the rest.
const ASCII_PARTS: [&str; 19] = [
    "a", "B", "z", "9", "0", " ", "\n", "\t", "\r", "'", "'ve", "x'", "!", ".", "(", "/", "//",
    "/\n", "\0",
];

fn parts() -> Vec<&'static str> {
    [&ASCII_PARTS[..], &text_parts::all()].concat()
}

/// A pattern on each engine.
struct EveryEngine {
    dfa: SplitPattern,
    regex: SplitPattern,
    transducers: Transducers,
}

/// Patterns in sequence as transducers, for each set of instructions that the processor has.
struct Transducers(Vec<PreTokenizers>);

impl Transducers {
    fn new(patterns: &[String]) -> Self {
        let steps: Vec<_> = patterns.iter().map(PreTokenizer::isolated).collect();
        let transducers = Processor::all()
            .into_iter()
            .map(|processor| PreTokenizers::on(processor, &steps).unwrap());
        Self(transducers.filter(PreTokenizers::has_blocks).collect())
    }

    /// Compares their pieces with those of the DFAs, in a text and in repetitions of it. The repetitions have
    /// several lanes, and the text is at every position of their words.
    fn check(&self, text: &[u8]) {
        let Some(first) = self.0.first() else {
            return;
        };
        let times = 5000 / (text.len() + 100);
        for text in [text.to_vec(), text.repeat(times)] {
            let mut pieces = Vec::new();
            let outcome = first.split(&text, &OffsetMap::original(0), false, |piece| {
                pieces.push(piece.range.start);
                true
            });
            outcome.unwrap();
            let is_utf8 = std::str::from_utf8(&text).is_ok();
            for pre_tokenizers in &self.0 {
                let mut ways = vec![false];
                ways.extend(is_utf8.then_some(true));
                for is_utf8 in ways {
                    let found = begins(pre_tokenizers, &text, is_utf8);
                    assert!(
                        found == pieces,
                        "{:?}: {found:?}, {pieces:?}",
                        String::from_utf8_lossy(&text)
                    );
                }
            }
        }
    }
}

/// The beginnings of the pieces, block by block.
fn begins(pre_tokenizers: &PreTokenizers, text: &[u8], is_utf8: bool) -> Vec<usize> {
    let (mut block, mut found, mut from) = (Block::default(), Vec::new(), 0);
    while from < text.len() {
        let to = pre_tokenizers
            .next_block(text, is_utf8, from, &mut block)
            .unwrap();
        let (last, begins) = block.bounds().split_last().unwrap();
        assert_eq!(from + *last as usize, to);
        found.extend(begins.iter().map(|&begin| from + begin as usize));
        from = to;
    }
    found
}

impl EveryEngine {
    fn new(pattern: &str) -> Self {
        Self {
            dfa: SplitPattern::new(pattern).unwrap(),
            regex: SplitPattern::on_regex_engine(pattern).unwrap(),
            transducers: Transducers::new(&[pattern.to_owned()]),
        }
    }

    fn check(&self, text: &[u8]) {
        let (dfa, regex) = (split(&self.dfa, text), split(&self.regex, text));
        let shown = String::from_utf8_lossy(text);
        assert!(
            dfa == regex,
            "{} on {shown:?}: {dfa:?}, {regex:?}",
            self.dfa.pattern()
        );
        let whole: Vec<u8> = dfa
            .into_iter()
            .flat_map(|range| text[range].to_vec())
            .collect();
        assert!(
            whole == text,
            "{} loses text of {shown:?}",
            self.dfa.pattern()
        );
        self.transducers.check(text);
    }
}

/// Texts and their pieces, by the patterns' names. The Python tests read the same file and compare it with
/// `patterns.py`.
#[derive(Deserialize)]
struct Vector {
    name: String,
    patterns: Vec<String>,
    texts: Vec<Pieces>,
}

#[derive(Deserialize)]
struct Pieces {
    text: String,
    pieces: Vec<String>,
}

fn vectors() -> Vec<Vector> {
    serde_json::from_str(include_str!("../../../tests/vectors/split_patterns.json")).unwrap()
}

/// Every pattern of the published tokenizers. Each must have a DFA.
fn named() -> &'static [(String, EveryEngine)] {
    static PATTERNS: OnceLock<Vec<(String, EveryEngine)>> = OnceLock::new();
    PATTERNS.get_or_init(|| {
        let mut named = Vec::new();
        for vector in vectors() {
            for (stage, pattern) in vector.patterns.iter().enumerate() {
                let both = EveryEngine::new(pattern);
                let name = format!("{}, pattern {stage}", vector.name);
                assert!(both.dfa.automaton().is_some(), "{name} has no DFA");
                named.push((name, both));
            }
        }
        named
    })
}

#[test]
fn lanes_and_blocks_may_end_anywhere() {
    let sentence = "It's 1 of 12345 “pieces”,  naïve — 日本語\n\n   of text!! ";
    let text = sentence.repeat(1200);
    let transducers = Transducers::new(&[vectors()[0].patterns[0].clone()]);
    let ends = (3900..4400).chain(32_600..33_400).chain([60_000, 65_000]);
    for end in ends.filter(|&end| text.is_char_boundary(end)) {
        let text = &text.as_bytes()[..end];
        let mut pieces = Vec::new();
        let add = |piece: bpe_tokenizer_core::pretokenize::Piece<'_>| {
            pieces.push(piece.range.start);
            true
        };
        let automaton = &transducers.0[0];
        automaton
            .split(text, &OffsetMap::original(0), false, add)
            .unwrap();
        for pre_tokenizers in &transducers.0 {
            assert!(begins(pre_tokenizers, text, true) == pieces, "{end} bytes");
        }
    }
}

/// The patterns of each published tokenizer with several patterns.
fn pipelines() -> &'static [Transducers] {
    static PIPELINES: OnceLock<Vec<Transducers>> = OnceLock::new();
    PIPELINES.get_or_init(|| {
        let several = vectors()
            .into_iter()
            .filter(|vector| vector.patterns.len() > 1);
        let transducers = several.map(|vector| Transducers::new(&vector.patterns));
        transducers
            .inspect(|transducers| assert!(!transducers.0.is_empty()))
            .collect()
    })
}

#[test]
fn every_named_pattern_has_a_transducer() {
    for vector in vectors() {
        assert!(
            !Transducers::new(&vector.patterns).0.is_empty(),
            "{}",
            vector.name
        );
    }
}

#[test]
fn the_vectors_hold() {
    for vector in vectors() {
        let patterns = PreTokenizers::of_patterns(&vector.patterns).unwrap();
        for Pieces { text, pieces } in &vector.texts {
            let mut found = Vec::new();
            let outcome =
                patterns.split(text.as_bytes(), &OffsetMap::original(0), false, |piece| {
                    found.push(&text[piece.range]);
                    true
                });
            outcome.unwrap();
            assert_eq!(&found, pieces, "{}", vector.name);
        }
    }
}

fn split(pattern: &SplitPattern, text: &[u8]) -> Vec<Range<usize>> {
    let mut pieces = Vec::new();
    let result = pattern.split(text, |range| {
        pieces.push(range);
        true
    });
    result.unwrap();
    pieces
}

fn text() -> impl Strategy<Value = String> {
    let part = prop_oneof![
        6 => prop::sample::select(parts()).prop_map(str::to_owned),
        1 => any::<char>().prop_map(String::from),
        1 => (0u32..0x3000).prop_filter_map("surrogate", char::from_u32).prop_map(String::from),
    ];
    prop::collection::vec(part, 0..40).prop_map(|parts| parts.concat())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(500))]

    #[test]
    fn named_patterns_split_as_the_regex_engine_does(text in text()) {
        for (_, pattern) in named() {
            pattern.check(text.as_bytes());
        }
    }

    #[test]
    fn patterns_in_sequence_split_alike_on_every_engine(text in text()) {
        for transducers in pipelines() {
            transducers.check(text.as_bytes());
        }
    }

    #[test]
    fn bytes_that_are_not_utf8_count_as_replacement_characters(
        text in prop::collection::vec(prop_oneof![any::<u8>(), Just(b' '), Just(b'a'), Just(0xe6), Just(0x97)], 0..60),
    ) {
        for (_, pattern) in named() {
            pattern.check(&text);
        }
    }
}

/// fancy-regex before 0.20.2, and so tiktoken, takes one `b` for two runs with something optional between them.
#[test]
fn two_runs_with_an_optional_character_between_them_need_two_characters() {
    for pattern in ["(?:b+a?b+)", "b+a*b+"] {
        let pattern = SplitPattern::new(pattern).unwrap();
        assert_eq!(split(&pattern, b"b\nbab bb"), [0..2, 2..5, 5..6, 6..8]);
    }
}

/// Whether a pattern may have two such runs, also `b+a??b*`. What is between them may be longer than the engine's
/// fault allows.
fn has_two_runs(pattern: &str) -> bool {
    pattern.match_indices('+').any(|(end, _)| {
        let rest = &pattern[end + 1..];
        let mut runs = rest.match_indices(['+', '*']);
        runs.any(|(next, _)| rest[..next].contains(['?', '*']))
    })
}

/// A capturing group; a plain one if its body contains a lazy quantifier. fancy-regex 0.20 finds only the
/// first `b` of `bb` with `(?:(b+?))*`.
fn group(inner: String) -> String {
    let is_lazy = ["??", "*?", "+?", "}?"]
        .iter()
        .any(|lazy| inner.contains(lazy));
    format!("({}{inner})", if is_lazy { "?:" } else { "" })
}

/// Whether a pattern has a repeated lazy quantifier in an optional group. fancy-regex 0.20 finds only the first
/// `b` of `bb` with `(?:(?:b+?)+)?`.
fn repeats_lazy(pattern: &str) -> bool {
    pattern.split("?)").skip(1).any(|rest| {
        let repeated = rest.trim_start_matches(')').strip_prefix("+)");
        repeated.is_some_and(|rest| rest.trim_start_matches(')').starts_with(['?', '*']))
    })
}

/// Patterns over a few characters, so that alternatives overlap and need backtracking.
fn pattern() -> impl Strategy<Value = String> {
    let class = prop::sample::select(&ATOMS[..]);
    let atom = (class, prop::sample::select(&REPEATS[..]))
        .prop_map(|(class, repeat)| format!("{class}{repeat}"));
    let atom = atom.prop_recursive(3, 24, 4, |inner| {
        prop_oneof![
            3 => prop::collection::vec(inner.clone(), 1..4).prop_map(|parts| parts.concat()),
            3 => (prop::collection::vec(inner.clone(), 1..4), prop::sample::select(&["", "?", "*", "+", "{1,2}", "??", "+?"][..]))
                .prop_map(|(branches, repeat)| format!("(?:{}){repeat}", branches.join("|"))),
            1 => inner.clone().prop_map(group),
            1 => (inner.clone(), prop::sample::select(&LOOKS[..]))
                .prop_map(|(inner, look)| format!("{inner}{look}")),
            1 => inner.prop_map(|inner| format!("(?i:{inner})")),
        ]
    });
    prop::collection::vec(atom, 1..5).prop_map(|branches| branches.join("|"))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn generated_patterns_split_as_the_regex_engine_does(
        pattern in pattern(),
        texts in prop::collection::vec("[abB1 \nés]{0,12}", 6),
    ) {
        let is_faulty = repeats_lazy(&pattern) || has_two_runs(&pattern);
        if SplitPattern::new(&pattern).is_ok() && !is_faulty {
            let pattern = EveryEngine::new(&pattern);
            for text in &texts {
                pattern.check(text.as_bytes());
            }
        }
    }

    #[test]
    fn a_pattern_with_a_dfa_compiles_for_the_regex_engine(pattern in "[ab.$^?*+{}0-3,()|!=<>:i\\[\\]\\\\pLNswdz&-]{0,12}") {
        if SplitPattern::new(&pattern).is_ok() {
            EveryEngine::new(&pattern).check(b"ab 12");
        }
    }
}

#[test]
fn most_generated_patterns_have_a_dfa() {
    use proptest::strategy::ValueTree;
    let mut runner = proptest::test_runner::TestRunner::deterministic();
    let (mut compiled, mut all) = (0, 0);
    for _ in 0..1000 {
        if let Ok(pattern) = SplitPattern::new(&pattern().new_tree(&mut runner).unwrap().current())
        {
            all += 1;
            compiled += i32::from(pattern.automaton().is_some());
        }
    }
    assert!(2 * compiled > all, "{compiled} of {all}");
}

#[test]
fn what_a_dfa_cannot_express_runs_on_the_regex_engine() {
    for pattern in [
        r"\bfoo\b|.",
        r"(?<=a)b|.",
        r"(a)\1|.",
        r"(?=ab)a|.",
        r"(?:ab|a)++c|.",
        r"(?:a*)*b|.",
    ] {
        let pattern = EveryEngine::new(pattern);
        assert!(pattern.dfa.automaton().is_none());
        pattern.check(b"foo aab aac food ab\n");
    }
    // The flags of a group hold after it, as in the regex engine.
    for pattern in [r"((?i)a)b|.", r"(?=(?s).)a|."] {
        let pattern = EveryEngine::new(pattern);
        assert!(pattern.dfa.automaton().is_some());
        pattern.check(b"foo aab aaB AB food ab\n");
    }
}

/// The characters of short patterns, and texts that tell their meanings apart.
const SYNTAX: [char; 24] = [
    '(', ')', '?', ':', '-', 'i', 'a', '|', '*', '+', '{', '}', '1', ',', '[', ']', '^', '\\', 'p',
    'L', '.', '$', '=', '!',
];
const SYNTAX_TEXTS: [&str; 4] = [
    "aAiIpLl1-1,a",
    "aaa(a)?:{a}[a]^",
    "\\p{L}|*+.$=!\n",
    "a{1}11ii--",
];

/// Compares a pattern that has a DFA with the regex engine. The patterns without a DFA are the engine's.
fn check_if_it_has_a_dfa(pattern: &str) -> bool {
    let Ok(dfa) = SplitPattern::new(pattern) else {
        return false;
    };
    if dfa.automaton().is_none() {
        return false;
    }
    let regex = SplitPattern::on_regex_engine(pattern);
    assert!(regex.is_ok(), "the regex engine refuses {pattern:?}");
    let regex = regex.unwrap();
    for text in SYNTAX_TEXTS {
        let (ours, theirs) = (split(&dfa, text.as_bytes()), split(&regex, text.as_bytes()));
        assert!(
            ours == theirs,
            "{pattern:?} on {text:?}: {ours:?}, {theirs:?}"
        );
    }
    true
}

/// Checks every pattern of `length` characters between a beginning and an end.
fn check_every_pattern(begin: &str, length: u32, end: &str) -> usize {
    let of_length = |number: usize| {
        let mut pattern = begin.to_owned();
        let digits = (0..length).map(|place| number / SYNTAX.len().pow(place) % SYNTAX.len());
        pattern.extend(digits.map(|digit| SYNTAX[digit]));
        pattern + end
    };
    (0..SYNTAX.len().pow(length))
        .filter(|&number| check_if_it_has_a_dfa(&of_length(number)))
        .count()
}

#[test]
fn short_patterns_with_a_dfa_mean_the_same_to_the_regex_engine() {
    let mut compiled = 0;
    for length in 0..=2 {
        for (begin, end) in [
            ("", ""),
            ("(?", ")"),
            ("(?", ":a)"),
            ("(?", ")a"),
            ("(?i", ")"),
            ("a{", "}"),
            ("[", "]"),
            ("\\p{", "}"),
            ("(?:(?i)", ")a"),
        ] {
            compiled += check_every_pattern(begin, length, end);
        }
    }
    assert!(compiled > 500, "{compiled}");
}

/// `BPE_TOKENIZER_PATTERN_CHARS=4 cargo test --release --test split_patterns -- --ignored every_pattern`
#[test]
#[ignore = "slow: compiles every pattern of up to four characters"]
fn every_pattern_of_a_few_characters() {
    let longest = std::env::var("BPE_TOKENIZER_PATTERN_CHARS");
    let longest = longest.ok().and_then(|chars| chars.parse().ok());
    for length in 0..=longest.unwrap_or(4) {
        for (begin, end) in [("", ""), ("(?", ")a"), ("(?:(?i)", ")a")] {
            let compiled = check_every_pattern(begin, length, end);
            println!("{begin}...{end}, {length} characters: {compiled} have a DFA, no difference");
        }
    }
}

#[test]
fn flags_are_read_as_the_regex_engine_reads_them() {
    let accepts = |pattern: &str| {
        check_if_it_has_a_dfa(pattern);
        SplitPattern::new(pattern).is_ok()
    };
    for pattern in [
        "(?)", "(?)a", "a(?)", "((?)a)", "(?-)", "(?-)a", "(?-:a)", "(?--i)", "(?", "(?i",
    ] {
        assert!(!accepts(pattern), "{pattern}");
    }
    let accepted = "
        (?:) (?:a) (?i) (?i)a (?i-)a (?i-:a) (?-i)a (?-i:a) (?i-i)a (?ii)a (?im-s)a (?ms)a|(?i)b|c
        ((?i)a)b (?:(?i)a)b (?i:(?-i)a)b
    ";
    for pattern in accepted.split_whitespace() {
        assert!(accepts(pattern), "{pattern}");
    }
}

#[test]
fn an_invalid_pattern_is_refused_with_its_position() {
    for pattern in ["(a", "a)", "[a", "*a", r"\p{Nonsense}", "(?P<n"] {
        let error = SplitPattern::new(pattern).err().expect(pattern).to_string();
        assert!(error.starts_with("split pattern, character "), "{error}");
    }
}

/// `BPE_TOKENIZER_FUZZ_CHARS=10000000 cargo test --release --test split_patterns -- --ignored`
#[test]
#[ignore = "slow: ten million characters of every named pattern"]
fn ten_million_characters() {
    let wanted: usize = std::env::var("BPE_TOKENIZER_FUZZ_CHARS")
        .ok()
        .and_then(|chars| chars.parse().ok())
        .unwrap_or(10_000_000);
    // The date as a number, so that runs with fewer characters take others each day.
    let day = std::env::var("BPE_TOKENIZER_SAMPLE_DAY")
        .ok()
        .and_then(|date| date.replace('-', "").parse().ok())
        .unwrap_or(0_u64);
    let parts = parts();
    for (name, pattern) in named() {
        let (mut chars, mut state) = (0, 0x1234_5678_9abc_def1_u64 ^ day);
        let mut random = |below: usize| {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            (state >> 20) as usize % below
        };
        while chars < wanted {
            let mut text = String::new();
            for _ in 0..2000 {
                match random(8) {
                    0 => text.extend(char::from_u32(random(0x11_0000) as u32)),
                    1 => text.extend(char::from_u32(random(0x3000) as u32)),
                    _ => text.push_str(parts[random(parts.len())]),
                }
            }
            chars += text.chars().count();
            pattern.check(text.as_bytes());
        }
        println!("{name}: {chars} characters, no difference");
    }
}
