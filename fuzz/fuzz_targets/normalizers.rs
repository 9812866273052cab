//! Normalisation: a text in one go, or with offsets, or cut, is what each step makes of a whole text.

#![no_main]

use arbitrary::Unstructured;
use bpe_tokenizer_core::alignment::OffsetMap;
use bpe_tokenizer_core::normalizers::{Normalizer, Normalizers};
use bpe_tokenizer_core::text::Text;
use bpe_tokenizer_core::Interrupt;
use bpe_tokenizer_fuzz::{input, models, mutate_parts, naive, text};
use libfuzzer_sys::fuzz_target;
use std::cell::RefCell;

/// The most bytes of steps; most steps have one.
const MAX_STEPS: usize = 6;

struct Steps {
    steps: Vec<Normalizer>,
    normalizers: Normalizers,
}

thread_local!(static STEPS: RefCell<input::Kept<Steps>> = RefCell::default());

mutate_parts!();

fuzz_target!(|data: &[u8]| {
    let (setup, rest) = input::parts(data);
    let setup = &setup[..setup.len().min(MAX_STEPS)];
    let built = STEPS.with_borrow_mut(|kept| {
        kept.get(setup, || {
            let mut u = Unstructured::new(setup);
            let mut steps = Vec::new();
            while !u.is_empty() {
                steps.push(models::normalizer(&mut u).ok()?);
            }
            Some(Steps {
                normalizers: Normalizers::new(&steps).unwrap(),
                steps,
            })
        })
    });
    let Some(Steps { steps, normalizers }) = built.as_deref() else {
        return;
    };
    let (cuts, rest) = rest.split_at(rest.len() / 4);
    let text = text::text(rest);
    let naive::Aligned {
        text: expected,
        starts,
    } = naive::normalize_aligned(steps, &text);
    assert_eq!(
        normalizers.of_str(&text).unwrap(),
        expected,
        "{steps:?} on {text:?}"
    );
    aligned(normalizers, &text, &expected, &starts);
    cut(normalizers, &text, &expected, cuts);
    normalizers
        .apply(Text::Bytes(rest), true, &Interrupt::never())
        .unwrap();
});

/// The text with its alignments: offsets ascend, lie in the text, and begin where the naive ones do.
fn aligned(normalizers: &Normalizers, text: &str, expected: &str, starts: &[usize]) {
    let (found, alignments) = normalizers
        .apply(Text::Str(text), true, &Interrupt::never())
        .unwrap();
    assert_eq!(&*found, expected.as_bytes(), "{text:?}");
    let (mut start, mut end) = (0, 0);
    for at in 0..=found.len() {
        let (mut first, mut last) = (at, at);
        for alignment in &alignments {
            (first, last) = (alignment.start(first), alignment.end(last));
        }
        assert!(
            start <= first && end <= last && last <= text.len(),
            "{at}: {text:?}"
        );
        if let Some(&expected) = starts.get(at) {
            assert_eq!(first, expected, "{at}: {text:?}");
        }
        (start, end) = (first, last);
    }
    let [alignment] = &alignments[..] else {
        return;
    };
    let map = OffsetMap {
        outer: None,
        base: 0,
        alignment,
        offset: 0,
    };
    for at in 0..=found.len() {
        assert_eq!(
            (map.start(at), map.end(at)),
            (alignment.start(at), alignment.end(at))
        );
    }
}

/// Both sides of a safe cut have the text of the whole.
fn cut(normalizers: &Normalizers, text: &str, expected: &str, places: &[u8]) {
    let ends: Vec<usize> = text.char_indices().map(|(at, _)| at).skip(1).collect();
    for &place in places.iter().take(4).filter(|_| !ends.is_empty()) {
        let (left, right) = text.split_at(ends[usize::from(place) % ends.len()]);
        let (before, after) = (
            left.chars().next_back().unwrap(),
            right.chars().next().unwrap(),
        );
        if normalizers.may_cut(before, after) {
            let halves = [left, right].map(|half| normalizers.of_str(half).unwrap());
            assert_eq!(halves.concat(), expected, "{left:?} {right:?}");
        }
    }
}
