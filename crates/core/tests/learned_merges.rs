//! Learned merges: compared with recounting all pairs for each of them.

#![allow(clippy::unwrap_used)] // tests

mod support;

use bpe_tokenizer_core::train::merges::{
    train_merges, Callbacks, Learned, MergeOptions, TieBreak, WarmStart,
};
use bpe_tokenizer_core::{Error, Interrupt};
use proptest::prelude::*;
use std::sync::atomic::{AtomicUsize, Ordering};
use support::*;
use TieBreak::{HuggingFace, Largest};

#[test]
fn equal_counts_go_by_the_rule() {
    let given = [("low", 5), ("lower", 2), ("newest", 6), ("widest", 3)];
    let largest = [
        "s t", "e st", "o w", "l ow", "w est", "n e", "ne west", "w i",
    ];
    assert_eq!(merges_as_text(&given, &options(264, Largest)), largest);
    let hugging_face = [
        "e s", "es t", "l o", "lo w", "e w", "n ew", "new est", "d est",
    ];
    assert_eq!(
        merges_as_text(&given, &options(264, HuggingFace)),
        hugging_face
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
        &MergeOptions {
            reserved: vec![300, 10_000],
            ..options(600, Largest)
        },
        &Interrupt::never(),
        &mut Callbacks::progress(&mut push),
    )
    .unwrap();
    assert_eq!(reports, [(100, 343), (200, 343), (255, 343)]);
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
}

#[test]
fn a_language_is_learned_as_by_recounting() {
    let words = language(600);
    for tie_break in [Largest, HuggingFace] {
        let options = options(700, tie_break);
        assert_eq!(merges(&words, &options), recount(&words, &options));
    }
}

#[test]
fn the_result_does_not_depend_on_the_number_of_threads() {
    let words = language(60_000);
    for tie_break in [Largest, HuggingFace] {
        let with = |threads| MergeOptions {
            threads,
            ..options(700, tie_break)
        };
        let whole = merges(&words, &with(1));
        for threads in [0, 2, 5] {
            assert_eq!(merges(&words, &with(threads)), whole);
            let learned = train_from(&words, None, &whole[..200], &with(threads)).unwrap();
            assert_eq!(learned, train(&words, &with(1)).unwrap());
        }
    }
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
}
