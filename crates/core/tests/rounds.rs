//! Training in rounds gives what training at once gives.

#![allow(clippy::unwrap_used)] // tests

mod support;

use bpe_tokenizer_core::train::counts::{CountCall, Counted, Counter, Limits};
use bpe_tokenizer_core::train::merges::{
    train_in_rounds, Callbacks, Learned, MergeOptions, MergeParts, RoundLimits, TieBreak, WarmStart,
};
use bpe_tokenizer_core::train::temporary::Spills;
use bpe_tokenizer_core::{Error, Interrupt, Model};
use proptest::prelude::*;
use std::time::Duration;
use support::*;
use TieBreak::{HuggingFace, Largest};

/// Many words: parts of others, and numbers.
fn words(count: u64) -> Pieces {
    let mut words = language(count);
    let numbers = (0..count).map(|number| {
        let text = format!(
            " {}",
            number.wrapping_mul(0x9e37_79b9_7f4a_7c15) % 10_000_000
        );
        (text.into_bytes(), 1 + number % 3)
    });
    words.extend(numbers);
    words.sort();
    words.dedup_by(|next, word| {
        let same = next.0 == word.0;
        if same {
            word.1 += next.1;
        }
        same
    });
    words
}

/// The numbers of learned merges when rounds began, from the reports of progress.
fn rounds(pieces: &Pieces, options: &MergeOptions, memory: usize) -> (Learned, Vec<usize>) {
    let limits = RoundLimits {
        memory,
        counters: 1 << 14,
        spills: Spills::new(None),
    };
    let mut stream = Listed { pieces, next: 0 };
    let mut reports = Vec::new();
    let learned = train_in_rounds(
        &mut stream,
        &WarmStart::default(),
        options,
        &limits,
        &Interrupt::never(),
        &mut Callbacks::progress(&mut |learned, _| reports.push(learned)),
    );
    (learned.unwrap(), reports)
}

#[test]
fn a_little_memory_takes_many_rounds() {
    let pieces = words(20_000);
    for tie_break in [Largest, HuggingFace] {
        for threads in [1, 3] {
            let options = MergeOptions {
                threads,
                min_frequency: 2,
                ..options(1500, tie_break)
            };
            let whole = train(&pieces, &options).unwrap();
            assert_eq!(whole.merges.len(), 1500 - 256);
            let (all, once) = rounds(&pieces, &options, usize::MAX);
            assert!(all == whole);
            let (in_rounds, many) = rounds(&pieces, &options, 800_000);
            assert!(in_rounds == whole);
            assert!(many.len() > once.len() + 2, "{many:?} {once:?}");
        }
    }
}

#[test]
fn one_count_of_too_many_pairs_is_an_error() {
    let pieces: Pieces = (0..20_000u32)
        .map(|number| (format!("{number:08x}").into_bytes(), 1))
        .collect();
    let options = options(5000, Largest);
    let error = train_in_rounds_from(&pieces, None, &[], &options, (20_000, 1 << 16));
    let error = error.unwrap_err().to_string();
    assert!(
        error.contains("max_memory is too small: the pairs that occur"),
        "{error}"
    );
    assert!(error.chars().count() <= 300);
    let too_little = RoundLimits::new(1 << 20, Spills::new(None), &options);
    let error = too_little.unwrap_err().to_string();
    assert!(error.contains("smaller vocab_size"), "{error}");
    assert!(RoundLimits::new(36_000_000, Spills::new(None), &options).is_ok());
}

#[test]
fn a_threshold_never_wraps() {
    let mut pieces: Pieces = (0..20_000u32)
        .map(|number| (format!("{number:08x}").into_bytes(), 1))
        .collect();
    pieces.push((b"xy".to_vec(), u64::MAX - (1 << 20)));
    let options = options(5000, Largest);
    // All pairs have the same counter, so no threshold cuts a piece.
    let error = train_in_rounds_from(&pieces, None, &[], &options, (20_000, 1));
    assert!(error.unwrap_err().to_string().contains("too small"));
}

#[test]
fn a_count_never_wraps() {
    let options = options(300, Largest);
    let half = 1 << 63;
    let many = vec![(b"ab".to_vec(), half), (b"abc".to_vec(), half)];
    let result = train_in_rounds_from(&many, None, &[], &options, (usize::MAX, 1));
    assert!(matches!(result, Err(Error::CountOverflow)));
    let few = vec![(b"ab".to_vec(), half), (b"xyz".to_vec(), half)];
    let learned = train_in_rounds_from(&few, None, &[], &options, (usize::MAX, 1)).unwrap();
    assert_eq!(learned, train(&few, &options).unwrap());
}

#[test]
fn checkpoints_get_the_merges_of_all_rounds() {
    let pieces = words(5000);
    let options = options(800, Largest);
    let whole = merges(&pieces, &options);
    for begun in [0, 100] {
        let mut saved = whole[..begun].to_vec();
        let mut save = |new: &[MergeParts<'_>]| {
            let new = new.iter();
            saved.extend(new.map(|(left, right)| (left.to_vec(), right.to_vec())));
        };
        let mut callbacks = Callbacks {
            progress: &mut |_, _| {},
            merged: None,
            checkpoint: Some(&mut save),
            checkpoint_interval: Duration::ZERO,
        };
        let limits = RoundLimits {
            memory: 400_000,
            counters: 1 << 12,
            spills: Spills::new(None),
        };
        let warm_start = WarmStart {
            model: None,
            merges: &whole[..begun],
        };
        let mut stream = Listed {
            pieces: &pieces,
            next: 0,
        };
        let never = Interrupt::never();
        train_in_rounds(
            &mut stream,
            &warm_start,
            &options,
            &limits,
            &never,
            &mut callbacks,
        )
        .unwrap();
        assert_eq!(saved, whole);
    }
}

#[test]
fn rounds_stop_when_they_are_interrupted() {
    let pieces = words(3000);
    let stop = || true;
    let interrupt = Interrupt::new(&stop);
    let limits = RoundLimits {
        memory: 400_000,
        counters: 1 << 12,
        spills: Spills::new(None),
    };
    let result = train_in_rounds(
        &mut Listed {
            pieces: &pieces,
            next: 0,
        },
        &WarmStart::default(),
        &options(800, Largest),
        &limits,
        &interrupt,
        &mut Callbacks::progress(&mut |_, _| {}),
    );
    assert!(matches!(result, Err(Error::Interrupted)));
}

#[test]
fn a_counter_trains_in_its_memory() {
    let text = words(30_000).into_iter().map(|(piece, count)| {
        String::from_utf8(piece)
            .unwrap()
            .repeat(count.min(20) as usize)
    });
    let texts: Vec<String> = text.map(|text| text + " ").collect();
    let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
    let never = Interrupt::never();
    let train = |max_memory, min_count, threads| {
        let limits = Limits {
            max_memory,
            ..Limits::default()
        };
        let patterns = [r" ?\p{L}+| ?\p{N}+|\s+".to_owned()];
        let counter = Counter::new(&patterns, None, Vec::new(), threads, limits).unwrap();
        let mut counted = Counted::default();
        let mut call = CountCall {
            counter: &counter,
            counted: &mut counted,
            weight: 1,
            interrupt: &never,
        };
        call.add_texts(&texts).unwrap();
        let needs = counter.needs(&mut counted, &never).unwrap();
        let learned = counter.train(
            &mut counted,
            min_count,
            &WarmStart::default(),
            &options(900, Largest),
            &never,
            &mut Callbacks::progress(&mut |_, _| {}),
        );
        // The counts are still there.
        assert_eq!(counter.totals(&mut counted, &never).unwrap(), needs.totals);
        (learned.unwrap(), needs.fits(), needs.disk > 0)
    };
    for min_count in [1, 3] {
        let (whole, fits, spilled) = train(None, min_count, 2);
        assert!(fits && !spilled);
        let (learned, fits, spilled) = train(Some(1 << 20), min_count, 2);
        assert!(learned == whole && !fits && spilled);
        // All pieces fit the table of one thread, but not what learning needs.
        let (learned, fits, spilled) = train(Some(5 << 20), min_count, 1);
        assert_eq!((learned == whole, fits, spilled), (true, false, false));
    }
}

#[test]
fn dropped_pieces_make_merges_uncertain() {
    let pieces = vec![
        (b"ab".to_vec(), 100),
        (b"cd".to_vec(), 60),
        (b"ef".to_vec(), 55),
    ];
    for (pair_error, first) in [(0, None), (4, Some(3)), (5, Some(1)), (40, Some(0))] {
        let options = MergeOptions {
            pair_error,
            ..options(300, Largest)
        };
        assert_eq!(train(&pieces, &options).unwrap().first_uncertain, first);
        let limits = (usize::MAX, 1 << 10);
        let in_rounds = train_in_rounds_from(&pieces, None, &[], &options, limits).unwrap();
        assert_eq!(in_rounds.first_uncertain, first);
    }
}

/// The limits that a test tries: one round and many, counters that many pairs share and ones that few do.
const LIMITS: [(usize, usize); 4] = [
    (usize::MAX, 1),
    (usize::MAX, 16),
    (2000, 1 << 12),
    (700, 1 << 12),
];

fn check(
    pieces: &Pieces,
    model: Option<&Model>,
    merges: &[(Bytes, Bytes)],
    options: &MergeOptions,
    whole: &Learned,
) {
    for limits in LIMITS {
        match train_in_rounds_from(pieces, model, merges, options, limits) {
            Ok(in_rounds) => assert!(&in_rounds == whole, "{limits:?}"),
            Err(Error::Option(message)) if limits.0 < usize::MAX => {
                assert!(message.contains("max_memory is too small"), "{message}");
            }
            other => assert!(other.is_ok()),
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(500))]

    #[test]
    fn rounds_give_what_training_at_once_gives(
        pieces in any_pieces(),
        options in any_options(),
        threads in 1..4_usize,
    ) {
        let options = MergeOptions { threads, ..options };
        let whole = train(&pieces, &options).unwrap();
        check(&pieces, None, &[], &options, &whole);
        let merges = merges(&pieces, &options);
        for begun in [merges.len() / 2, merges.len()] {
            check(&pieces, None, &merges[..begun], &options, &whole);
        }
    }
}

proptest! {
    // A case may take seconds: 16 of them in `make test`, which sets PROPTEST_CASES=100, and else 42.
    #![proptest_config(ProptestConfig::with_cases(ProptestConfig::default().cases / 6))]

    #[test]
    fn rounds_of_a_language_give_the_same(
        count in 100..1000_u64,
        vocab_size in 257..450_u32,
        memory in prop::sample::select(vec![60_000, 150_000, 400_000, usize::MAX]),
        counters in prop::sample::select(vec![64, 1 << 10, 1 << 16]),
        min_frequency in 0..20_u64,
        is_huggingface in any::<bool>(),
    ) {
        let tie_break = if is_huggingface { HuggingFace } else { Largest };
        let options = MergeOptions { min_frequency, ..options(vocab_size, tie_break) };
        let pieces = words(count);
        let whole = train(&pieces, &options).unwrap();
        match train_in_rounds_from(&pieces, None, &[], &options, (memory, counters)) {
            Ok(in_rounds) => prop_assert!(in_rounds == whole),
            Err(Error::Option(_)) if memory < usize::MAX => {}
            Err(error) => panic!("{error}"),
        }
    }
}
