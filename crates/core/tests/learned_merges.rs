//! Learned merges: against counting anew for each of them.

#![allow(clippy::unwrap_used)] // tests

use bpe_tokenizer_core::encoder::Special;
use bpe_tokenizer_core::model::{Settings, Vocabulary};
use bpe_tokenizer_core::special::AddedToken;
use bpe_tokenizer_core::text::Text;
use bpe_tokenizer_core::train::merges::{
    train_merges, Callbacks, Learned, MergeOptions, MergeParts, TieBreak, WarmStart,
};
use bpe_tokenizer_core::{Encoder, Error, Interrupt, Model, Result};
use proptest::collection::vec;
use proptest::prelude::*;
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;
use TieBreak::{HuggingFace, Largest};

type Bytes = Vec<u8>;
type Pieces = Vec<(Bytes, u64)>;
type Merges = Vec<(Bytes, Bytes)>;

fn pieces(pieces: &[(&[u8], u64)]) -> Pieces {
    pieces
        .iter()
        .map(|&(p, count)| (p.to_vec(), count))
        .collect()
}

fn options(vocab_size: u32, tie_break: TieBreak) -> MergeOptions {
    MergeOptions {
        vocab_size,
        reserved: Vec::new(),
        min_frequency: 1,
        tie_break,
        max_token_length: None,
        threads: 1,
    }
}

fn train(pieces: &Pieces, options: &MergeOptions) -> Result<Learned> {
    go_on(pieces, None, &[], options)
}

fn go_on(
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
fn merges(pieces: &Pieces, options: &MergeOptions) -> Merges {
    let tokens = (0..=255).map(|b| (u32::from(b), vec![b])).collect();
    spelt_out(train(pieces, options).unwrap(), tokens)
}

fn spelt_out(learned: Learned, mut tokens: BTreeMap<u32, Bytes>) -> Merges {
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
fn spelt(given: &[(&str, u64)], options: &MergeOptions) -> Vec<String> {
    let given = given
        .iter()
        .map(|(p, count)| (p.as_bytes().to_vec(), *count));
    let merges = merges(&given.collect(), options).into_iter();
    merges
        .map(|(left, right)| String::from_utf8([&left[..], b" ", &right].concat()).unwrap())
        .collect()
}

/// GPT-2's printable character of a byte, as a number: the order of Hugging Face's ids.
fn printable(byte: u8) -> u32 {
    let shown = |byte: &u8| matches!(byte, b'!'..=b'~' | 0xA1..=0xAC | 0xAE..=0xFF);
    let hidden = (0..byte).filter(|b| !shown(b)).count() as u32;
    if shown(&byte) {
        u32::from(byte)
    } else {
        256 + hidden
    }
}

/// Pieces as symbols, which are their bytes.
type Words = Vec<(Vec<Bytes>, u64)>;

/// The specification, word for word: symbols are their bytes, and every merge counts anew.
fn recount(pieces: &Pieces, options: &MergeOptions) -> Merges {
    let pieces = pieces.iter();
    let words = pieces.map(|(piece, count)| (piece.iter().map(|&b| vec![b]).collect(), *count));
    let mut tokens: Vec<Bytes> = (0..=255).map(|b| vec![b]).collect();
    tokens.sort_by_key(|token| printable(token[0]));
    let wanted = options.vocab_size as usize - 256;
    recount_from(words.collect(), tokens, &BTreeSet::new(), wanted, options).0
}

/// The same from any symbols, with tokens that no merge may make; also how the pieces end.
fn recount_from(
    mut words: Words,
    mut tokens: Vec<Bytes>,
    taken: &BTreeSet<Bytes>,
    wanted: usize,
    options: &MergeOptions,
) -> (Merges, Words) {
    let mut merges = Vec::new();
    while merges.len() < wanted {
        let Some((left, right)) = most_frequent(&words, &tokens, taken, options) else {
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

fn most_frequent(
    words: &Words,
    tokens: &[Bytes],
    taken: &BTreeSet<Bytes>,
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
        .filter(|((left, right), _)| !taken.contains(&[&left[..], right].concat()))
        .filter(|&(_, count)| count >= options.min_frequency.max(1))
        .max_by(|(a, count_a), (b, count_b)| {
            count_a.cmp(count_b).then_with(|| match options.tie_break {
                Largest => a.cmp(b),
                HuggingFace => (age(a.0), age(a.1)).cmp(&(age(b.0), age(b.1))),
            })
        })?;
    Some((left.clone(), right.clone()))
}

#[test]
fn equal_counts_go_by_the_rule() {
    let given = [("low", 5), ("lower", 2), ("newest", 6), ("widest", 3)];
    let largest = [
        "s t", "e st", "o w", "l ow", "w est", "n e", "ne west", "w i",
    ];
    assert_eq!(spelt(&given, &options(264, Largest)), largest);
    let hugging_face = [
        "e s", "es t", "l o", "lo w", "e w", "n ew", "new est", "d est",
    ];
    assert_eq!(spelt(&given, &options(264, HuggingFace)), hugging_face);
}

#[test]
fn the_textbook_example() {
    let given = [("aaabdaaabac", 1)];
    let largest = [
        "a a",
        "aa a",
        "aaa b",
        "d aaab",
        "daaab a",
        "daaaba c",
        "aaab daaabac",
    ];
    assert_eq!(spelt(&given, &options(400, Largest)), largest);
    assert_eq!(spelt(&given, &options(259, Largest)), largest[..3]);
    assert_eq!(
        spelt(&given, &options(259, HuggingFace)),
        ["a a", "a b", "aa ab"]
    );
}

#[test]
fn overlapping_occurrences_count_and_merge_from_the_left() {
    // (a, a) 2 + 2 times, (x, a) 3 times.
    let given = [("aaa", 2), ("xa", 3)];
    assert_eq!(
        spelt(&given, &options(300, Largest)),
        ["a a", "x a", "aa a"]
    );
    let given = [("aaaaaaa", 1)];
    assert_eq!(
        spelt(&given, &options(300, Largest)),
        ["a a", "aa aa", "aaaa aa", "aaaaaa a"]
    );
}

#[test]
fn learned_tokens_fill_the_ids_that_are_not_reserved() {
    let all_bytes: Pieces = vec![((0..=255).collect(), 2)];
    let ids = |vocab_size, reserved: &[u32]| -> Vec<u32> {
        let reserved = reserved.to_vec();
        let options = MergeOptions {
            reserved,
            ..options(vocab_size, Largest)
        };
        merges(&all_bytes, &options);
        let tokens = train(&all_bytes, &options).unwrap().tokens;
        tokens.into_iter().map(|(id, _)| id).collect()
    };
    assert_eq!(ids(512, &[256, 257, 258]), (259..512).collect::<Vec<_>>());
    assert_eq!(ids(276, &[100_257]), (256..276).collect::<Vec<_>>());
    assert_eq!(ids(262, &[260, 257, 257, 65]), [256, 258, 259, 261]);
    assert_eq!(ids(258, &[256, 257]), []);
    assert_eq!(ids(256, &[]), []);
    assert_eq!(ids(0, &[]), []);
    assert_eq!(ids(1000, &[]).len(), 255);
}

#[test]
fn rare_and_long_pairs_are_left() {
    let given = [("abcd", 3), ("xy", 2), ("z", 9), ("", 9), ("pq", 0)];
    let with = |min_frequency, max_token_length| MergeOptions {
        min_frequency,
        max_token_length,
        ..options(300, Largest)
    };
    assert_eq!(
        spelt(&given, &with(0, None)),
        ["c d", "b cd", "a bcd", "x y"]
    );
    assert_eq!(spelt(&given, &with(3, None)), ["c d", "b cd", "a bcd"]);
    assert_eq!(spelt(&given, &with(4, None)).len(), 0);
    assert_eq!(spelt(&given, &with(2, Some(3))), ["c d", "b cd", "x y"]);
    assert_eq!(spelt(&given, &with(2, Some(2))), ["c d", "a b", "x y"]);
    assert_eq!(spelt(&given, &with(2, Some(1))).len(), 0);
    assert_eq!(spelt(&[], &with(2, None)).len(), 0);
}

#[test]
fn a_count_beyond_64_bits_is_an_error() {
    let outcome = |given: &[(&[u8], u64)]| {
        train(&pieces(given), &options(300, Largest)).map(|learned| learned.merges.len())
    };
    let overflows = |given| matches!(outcome(given), Err(Error::CountOverflow));
    assert!(overflows(&[(b"ab", u64::MAX), (b"abc", 1)]));
    assert!(overflows(&[(b"aaa", 1 << 63)]));
    assert!(!overflows(&[(b"aaa", (1 << 63) - 1), (b"aa", 1)]));
    assert_eq!(
        outcome(&[(b"abc", u64::MAX), (b"cd", u64::MAX)]).unwrap(),
        3
    );
}

#[test]
fn too_much_is_an_error() {
    let error = train(&Vec::new(), &options(1 << 31, Largest)).unwrap_err();
    assert_eq!(
        error.to_string(),
        "vocab_size is 2147483648; the largest possible is 2147483647"
    );
    assert_eq!(
        train(&Vec::new(), &options((1 << 31) - 1, Largest)).unwrap(),
        Learned::default()
    );
}

#[test]
fn one_huge_merge_can_be_interrupted() {
    let piece = b"ab".repeat(800_000);
    // 3,200,000 steps count the pairs, 800,000 replace them; one in 65,536 polls.
    for last in [1, 30, 50, 60] {
        let polls = AtomicUsize::new(0);
        let poll = || polls.fetch_add(1, Ordering::Relaxed) + 1 == last;
        let interrupt = Interrupt::new(&poll);
        let given = [(&piece[..], 1)].into_iter();
        let result = train_merges(
            given,
            &WarmStart::default(),
            &options(257, Largest),
            &interrupt,
            &mut Callbacks::progress(&mut |_, _| {}),
        );
        assert!(matches!(result, Err(Error::Interrupted)));
        assert_eq!(polls.load(Ordering::Relaxed), last);
    }
}

#[test]
fn progress_is_reported() {
    let all_bytes: Bytes = (0..=255).collect();
    let mut reports = Vec::new();
    let given = [(&all_bytes[..], 1)].into_iter();
    let mut push = |learned, wanted| reports.push((learned, wanted));
    train_merges(
        given,
        &WarmStart::default(),
        &options(600, Largest),
        &Interrupt::never(),
        &mut Callbacks::progress(&mut push),
    )
    .unwrap();
    assert_eq!(reports, [(100, 344), (200, 344), (255, 344)]);
}

/// Merges that `tokenizers` 0.23.3 gave for these pieces (with `max_token_length` 4 for our 3).
#[test]
fn hugging_face_gives_the_same() {
    let with = |vocab_size, min_frequency, max_token_length| MergeOptions {
        min_frequency,
        max_token_length,
        ..options(vocab_size, HuggingFace)
    };
    let check = |given: &[(&[u8], u64)], options: MergeOptions, expected: &[(&[u8], &[u8])]| {
        let expected = expected
            .iter()
            .map(|(left, right)| (left.to_vec(), right.to_vec()));
        assert_eq!(
            merges(&pieces(given), &options),
            expected.collect::<Merges>()
        );
    };
    check(
        &[
            (b"a!bab!a", 2),
            (b"abaa\xad\xada", 3),
            (b"ab\xad\xad!\xad\xad", 1),
            (b"a\xadabab!\xad", 2),
            (b"\xadaa", 2),
            (b"\xadaaa", 3),
        ],
        with(300, 0, None),
        &[
            (b"a", b"a"),
            (b"a", b"b"),
            (b"\xad", b"\xad"),
            (b"\xad", b"aa"),
            (b"ab", b"!"),
            (b"aa", b"\xad\xad"),
            (b"ab", b"aa\xad\xad"),
            (b"\xadaa", b"a"),
            (b"abaa\xad\xad", b"a"),
            (b"!", b"b"),
            (b"a", b"\xad"),
            (b"a", b"!b"),
            (b"ab", b"ab!"),
            (b"ab!", b"a"),
            (b"a\xad", b"abab!"),
            (b"a!b", b"ab!a"),
            (b"a\xadabab!", b"\xad"),
            (b"!", b"\xad\xad"),
            (b"ab", b"\xad\xad"),
            (b"ab\xad\xad", b"!\xad\xad"),
        ],
    );
    check(
        &[
            (b"aaa", 4),
            (b"aaaaaaa", 1),
            (b"aabaa", 3),
            (b"aabaaba", 3),
            (b"bbaababab", 1),
        ],
        with(300, 2, None),
        &[
            (b"a", b"a"),
            (b"aa", b"b"),
            (b"aa", b"a"),
            (b"aab", b"a"),
            (b"aab", b"aa"),
            (b"aab", b"aaba"),
        ],
    );
    check(
        &[
            (b"\0 \xff\0a \xff ", 4),
            (b"\0aa\xff\xff\xff a\xff", 2),
            (b"\0a\xff\0\xff\0\xff", 4),
            (b"\0\xff\0", 1),
            (b" aaa", 2),
        ],
        with(300, 1, Some(3)),
        &[
            (b"\xff", b"\0"),
            (b"a", b"a"),
            (b"\xff", b" "),
            (b"a", b" "),
            (b"a", b"\xff\0"),
            (b"\0", b" "),
            (b"\xff\0", b"\xff"),
            (b"a", b"\xff"),
            (b"\xff", b"\xff"),
            (b"\0", b"aa"),
            (b" ", b"aa"),
            (b"\0", b"\xff\0"),
        ],
    );
    check(
        &[
            (b"\n\n z ", 3),
            (b"\n z\n", 4),
            (b" z\n", 2),
            (b"z\n\n\nz", 1),
            (b"z\nz", 1),
            (b"z \n\n\n\n", 1),
            (b"zz    ", 1),
            (b"zzzz", 3),
        ],
        with(262, 2, None),
        &[
            (b"z", b"z"),
            (b" ", b"z"),
            (b"\n", b"\n"),
            (b" z", b"\n"),
            (b"\n", b" z\n"),
            (b" ", b" "),
        ],
    );
}

/// Words of a pseudo-random language with many counts.
fn language(words: u64) -> Pieces {
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

#[test]
fn a_language_is_learned_as_by_recounting() {
    let words = language(600);
    for tie_break in [Largest, HuggingFace] {
        let options = options(700, tie_break);
        assert_eq!(merges(&words, &options), recount(&words, &options));
    }
}

/// Pieces over few bytes, where runs and equal counts are common; among the bytes are some whose
/// printable characters are in another order than they.
fn any_pieces() -> impl Strategy<Value = Pieces> {
    (1..=5_usize, 1..=40_usize).prop_flat_map(|(bytes, length)| {
        let byte = prop::sample::select(&b"ab \xAD\xFF"[..bytes]);
        vec((vec(byte, 0..=length), 1..6_u64), 0..12)
    })
}

fn any_options() -> impl Strategy<Value = MergeOptions> {
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

#[test]
fn the_number_of_threads_does_not_show() {
    let words = language(60_000);
    for tie_break in [Largest, HuggingFace] {
        let with = |threads| MergeOptions {
            threads,
            ..options(700, tie_break)
        };
        let whole = merges(&words, &with(1));
        for threads in [0, 2, 5] {
            assert_eq!(merges(&words, &with(threads)), whole);
            let learned = go_on(&words, None, &whole[..200], &with(threads)).unwrap();
            assert_eq!(learned, train(&words, &with(1)).unwrap());
        }
    }
}

#[test]
fn merges_are_handed_over_as_they_are_learned() {
    let words = language(300);
    let options = options(300, Largest);
    let whole = merges(&words, &options);
    for (begun, every, calls) in [(0, 0, 44), (10, 0, 34), (0, 1000, 0)] {
        let mut saved = whole[..begun].to_vec();
        let mut called = 0;
        let mut save = |new: &[MergeParts<'_>]| {
            called += 1;
            saved.extend(
                new.iter()
                    .map(|(left, right)| (left.to_vec(), right.to_vec())),
            );
        };
        let mut callbacks = Callbacks {
            progress: &mut |_, _| {},
            checkpoint: Some(&mut save),
            checkpoint_interval: Duration::from_secs(every),
        };
        let warm_start = WarmStart {
            model: None,
            merges: &whole[..begun],
        };
        let pieces = words.iter().map(|(piece, count)| (&piece[..], *count));
        train_merges(
            pieces,
            &warm_start,
            &options,
            &Interrupt::never(),
            &mut callbacks,
        )
        .unwrap();
        assert_eq!(called, calls);
        assert_eq!(saved, whole[..begun + calls]);
    }
}

#[test]
fn merges_that_cannot_be_are_named() {
    let words = language(100);
    let fail = |model: Option<&Model>, begun: &[(&str, &str)], options: &MergeOptions| {
        let begun = begun
            .iter()
            .map(|(left, right)| (left.as_bytes().to_vec(), right.as_bytes().to_vec()));
        go_on(&words, model, &begun.collect::<Merges>(), options)
            .unwrap_err()
            .to_string()
    };
    let options = options(300, Largest);
    let unknown = fail(None, &[("a", "b"), ("ab", "cd")], &options);
    assert_eq!(
        unknown,
        r#"merge 1 of the warm start, ("ab", "cd"), is impossible: "cd" is not a token yet"#
    );
    let twice = [("a", "b"), ("b", "c"), ("ab", "c"), ("a", "bc")];
    assert!(fail(None, &twice, &options).contains(r#"merge 3 of the warm start, ("a", "bc")"#));
    let short = MergeOptions {
        max_token_length: Some(2),
        ..options.clone()
    };
    assert!(fail(None, &twice, &short).contains("longer than max_token_length"));
    let few = MergeOptions {
        vocab_size: 258,
        ..options.clone()
    };
    assert_eq!(
        fail(None, &twice, &few),
        "the warm start has 4 merges, but vocab_size 258 leaves ids for 2"
    );
    let mut tokens: Vec<(u32, Bytes)> = (0..=255).map(|b| (u32::from(b), vec![b])).collect();
    tokens.push((256, b"xyz".to_vec()));
    let added = vec![AddedToken::special("ab", 257)];
    let model = Model::new(tokens, Some(&[]), Settings::default(), added).unwrap();
    for begun in [[("a", "b")].as_slice(), &[("x", "y"), ("xy", "z")]] {
        assert!(fail(Some(&model), begun, &options).contains("is already a token"));
    }
}

#[test]
fn only_vocabularies_of_bytes_are_extended() {
    let bytes = || -> Vec<(u32, Bytes)> { (0..=255).map(|b| (u32::from(b), vec![b])).collect() };
    let refusal = |model: Result<Model>| {
        let result = go_on(
            &language(10),
            Some(&model.unwrap()),
            &[],
            &options(300, Largest),
        );
        assert!(matches!(result, Err(Error::Model(_))));
        result.unwrap_err().to_string()
    };
    let mut lacking = bytes();
    lacking.pop();
    let lacking = Model::new(lacking, Some(&[]), Settings::default(), Vec::new());
    assert!(refusal(lacking).contains("0xff"));
    let characters = Settings {
        alphabet: bpe_tokenizer_core::model::Alphabet::Characters,
        ..Settings::default()
    };
    let characters = Model::new(bytes()[..128].to_vec(), Some(&[]), characters, Vec::new());
    assert!(refusal(characters).contains("byte-level"));
    let mut twice = bytes();
    twice.extend([(256, b"ab".to_vec()), (257, b"ab".to_vec())]);
    let vocabulary = Vocabulary::new(twice).unwrap();
    let merges = vec![(97, 98, 257)];
    let twice = Model::with_merge_ids(vocabulary, merges, Settings::default(), Vec::new());
    assert!(refusal(twice).contains("the ids 256 and 257"));
}

/// A vocabulary over the bytes of `any_pieces`: merges in any order, some of the same token, tokens
/// that no merge makes, added tokens; ids in any order, with holes.
fn any_model() -> impl Strategy<Value = Model> {
    let merges = vec(
        (any::<prop::sample::Index>(), any::<prop::sample::Index>()),
        0..16,
    );
    let orphans = vec(vec(prop::sample::select(&b"ab \xAD"[..]), 2..5), 0..4);
    let added = vec(
        prop::sample::select(&["ab", "aa", "b ", "bab", "aab"][..]),
        0..2,
    );
    let shuffled = prop::sample::select(&[false, true][..]);
    let kind = 0..3_usize;
    (merges, orphans, added, shuffled, kind, any::<u64>()).prop_map(
        |(parts, orphans, added, shuffled, kind, mut seed)| {
            let mut shuffle = |length: usize| {
                let mut places: Vec<usize> = (0..length).collect();
                for place in (1..length).rev() {
                    seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                    places.swap(place, (seed >> 33) as usize % (place + 1));
                }
                places
            };
            let mut tokens: Vec<Bytes> = b"ab \xAD\xFF".iter().map(|&b| vec![b]).collect();
            let mut merges = Merges::new();
            for (left, right) in parts {
                let (left, right) = (left.get(&tokens).clone(), right.get(&tokens).clone());
                let product = [&left[..], &right].concat();
                if product.len() <= 12 && !merges.contains(&(left.clone(), right.clone())) {
                    merges.push((left, right));
                    if !tokens.contains(&product) {
                        tokens.push(product);
                    }
                }
            }
            if shuffled {
                merges = shuffle(merges.len())
                    .into_iter()
                    .map(|at| merges[at].clone())
                    .collect();
            }
            tokens.extend((0..=255).map(|b| vec![b]));
            tokens.extend(orphans);
            let mut seen = BTreeSet::new();
            tokens.retain(|token| seen.insert(token.clone()));
            let ids = shuffle(tokens.len()).into_iter();
            let ids = ids.map(|place| (place + place / 7) as u32);
            let mut numbered: Vec<(u32, Bytes)> = ids.zip(tokens).collect();
            numbered.sort();
            let last = numbered.last().map_or(0, |token| token.0);
            let added: BTreeSet<&str> = added.into_iter().collect();
            let added = (last + 1..).zip(added).map(|(id, content)| {
                let inside = numbered.iter().find(|token| token.1 == content.as_bytes());
                AddedToken::special(content, inside.map_or(id, |token| token.0))
            });
            let added = added.collect();
            let settings = Settings {
                ignore_merges: kind > 0,
                ..Settings::default()
            };
            let merges = (kind < 2).then_some(&merges[..]);
            Model::new(numbered, merges, settings, added).unwrap()
        },
    )
}

/// The symbols that a model makes of each piece, as bytes.
fn encoded(model: &Model, pieces: &Pieces) -> Words {
    let encoder = Encoder::new(model.clone()).unwrap();
    let encode = |piece: &Bytes| {
        let mut ids = Vec::new();
        let (special, interrupt) = (Special::None, Interrupt::never());
        encoder
            .encode(Text::Bytes(piece), &special, &mut ids, &interrupt)
            .unwrap();
        ids.iter()
            .map(|&id| model.token(id).unwrap().to_vec())
            .collect()
    };
    pieces
        .iter()
        .map(|(piece, count)| (encode(piece), *count))
        .collect()
}

/// The model with what was learned.
fn extended(model: &Model, learned: &Learned) -> Model {
    let tokens = model.vocabulary().iter();
    let tokens = tokens.map(|(id, token)| (id, token.to_vec()));
    let tokens = Vocabulary::new(tokens.chain(learned.tokens.clone()).collect()).unwrap();
    let merges = [model.merges(), &learned.merges].concat();
    let settings = model.settings().clone();
    Model::with_merge_ids(tokens, merges, settings, model.added().to_vec()).unwrap()
}

/// The model whose merges follow from the ids.
fn of_ranks(model: &Model) -> Model {
    let tokens = model.vocabulary().iter();
    let tokens = tokens.map(|(id, token)| (id, token.to_vec()));
    let added = model.added().to_vec();
    Model::new(tokens.collect(), None, Settings::default(), added).unwrap()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1000))]

    #[test]
    fn merges_are_those_of_recounting(pieces in any_pieces(), options in any_options()) {
        prop_assert_eq!(merges(&pieces, &options), recount(&pieces, &options));
    }

    #[test]
    fn the_order_of_the_pieces_does_not_matter(
        (given, shuffled) in any_pieces().prop_flat_map(|p| (Just(p.clone()), Just(p).prop_shuffle())),
        options in any_options(),
    ) {
        prop_assert_eq!(train(&given, &options).unwrap(), train(&shuffled, &options).unwrap());
        // Nor does it matter whether equal pieces come together.
        let twice = [&given[..], &shuffled].concat();
        let doubled = given.into_iter().map(|(piece, count)| (piece, 2 * count)).collect();
        prop_assert_eq!(train(&twice, &options).unwrap(), train(&doubled, &options).unwrap());
    }

    #[test]
    fn going_on_gives_what_was_interrupted(pieces in any_pieces(), options in any_options()) {
        let whole = train(&pieces, &options).unwrap();
        let merges = merges(&pieces, &options);
        for cut in 0..=merges.len() {
            prop_assert_eq!(&go_on(&pieces, None, &merges[..cut], &options).unwrap(), &whole);
        }
    }

    #[test]
    fn a_vocabulary_is_extended_as_by_recounting(
        model in any_model(),
        pieces in any_pieces(),
        options in any_options(),
    ) {
        let mut tokens: Vec<Bytes> = (0..=255).map(|b| vec![b]).collect();
        tokens.sort_by_key(|token| printable(token[0]));
        let others = model.vocabulary().iter().map(|(_, token)| token.to_vec());
        tokens.extend(others.filter(|token| token.len() > 1));
        let added = model.added().iter().map(|token| token.content.clone().into_bytes());
        let taken = tokens.iter().cloned().chain(added).collect();
        let added = model.added().last().map_or(0, |token| token.id);
        let last = model.vocabulary().iter().last().map_or(0, |token| token.0.max(added));
        let vocab_size = last + 1 + (options.vocab_size - 256) / 2;
        let options = MergeOptions { vocab_size, ..options };

        let learned = go_on(&pieces, Some(&model), &[], &options).unwrap();
        let words = encoded(&model, &pieces);
        let wanted = (vocab_size - last - 1) as usize;
        let (merges, words) = recount_from(words, tokens, &taken, wanted, &options);
        let ids: Vec<u32> = learned.tokens.iter().map(|token| token.0).collect();
        let vocabulary = model.vocabulary().iter();
        let vocabulary = vocabulary.map(|(id, token)| (id, token.to_vec())).collect();
        prop_assert_eq!(&spelt_out(learned.clone(), vocabulary), &merges);
        prop_assert_eq!(ids, (last + 1..vocab_size).take(merges.len()).collect::<Vec<_>>());

        let larger = extended(&model, &learned);
        prop_assert_eq!(encoded(&larger, &pieces), words);
        for cut in 0..=merges.len() {
            let whole = go_on(&pieces, Some(&model), &merges[..cut], &options).unwrap();
            prop_assert_eq!(&whole, &learned);
            // What was learned can be a vocabulary's merges as well.
            let merges = learned.merges[..cut].to_vec();
            let tokens = learned.tokens[..cut].to_vec();
            let middle = extended(&model, &Learned { tokens, merges });
            let rest = go_on(&pieces, Some(&middle), &[], &options).unwrap();
            prop_assert_eq!(&rest.merges, &learned.merges[cut..]);
        }
    }

    #[test]
    fn extended_ranks_are_ranks(
        // A token that no merge makes may follow from its rank and a new token's.
        model in any_model().prop_filter("merges of ranks that make all tokens", |model| {
            let ranks = of_ranks(model);
            let made = ranks.merges().iter().map(|merge| merge.2).chain(model.added().iter().map(|token| token.id));
            let singles = model.vocabulary().iter().filter(|(_, token)| token.len() == 1);
            let all: BTreeSet<u32> = made.chain(singles.map(|(id, _)| id)).collect();
            let is_made = |(id, _): (u32, &[u8])| all.contains(&id);
            ranks.merges() == model.merges() && model.vocabulary().iter().all(is_made)
        }),
        pieces in any_pieces(),
    ) {
        let learned = go_on(&pieces, Some(&model), &[], &options(400, Largest)).unwrap();
        let larger = extended(&model, &learned);
        let ranks = of_ranks(&larger);
        prop_assert_eq!(ranks.merges(), larger.merges());
    }
}
