//! Models and texts: every way of encoding gives the ids of the naive stages.

#![no_main]

use bpe_tokenizer_core::code_units::CodeUnits;
use bpe_tokenizer_core::encoder::{BatchOptions, Segments, Special};
use bpe_tokenizer_core::text::Text;
use bpe_tokenizer_core::Interrupt;
use bpe_tokenizer_fuzz::models::Setup;
use bpe_tokenizer_fuzz::{mutate_parts, naive, text};
use libfuzzer_sys::fuzz_target;
use rustc_hash::FxHashSet;
use std::fmt::Arguments;

mutate_parts!();

fuzz_target!(|data: &[u8]| {
    let Some((setup, rest)) = Setup::split(data) else {
        return;
    };
    let text = text::text(rest);
    let ids = setup.naive_ids(&text);
    let shown = &format_args!("{text:?} of {setup:?}");
    for cache_bytes in [24 << 20, 0] {
        // The second time, the pieces are in the cache.
        for _ in 0..2 {
            assert_eq!(
                encode(&setup, Text::Str(&text)),
                ids,
                "{cache_bytes}: {shown}"
            );
        }
        setup.encoder().caches().limit(cache_bytes);
    }
    setup.encoder().caches().limit(1 << 20);
    if rest.len() % 8 == 5 {
        setup.encoder().merger().compute_split_points();
    }
    spans(&setup, &text, &ids, shown);
    code_units(&setup, &text, &ids, shown);
    prefixes(&setup, &text, &ids, shown);
    batch(&setup, rest, &text, shown);
    if setup.is_lossless() {
        lossless(&setup, text.as_bytes(), &ids);
        lossless(&setup, rest, &encode(&setup, Text::Bytes(rest)));
    }
});

fn encode(setup: &Setup, text: Text<'_>) -> Vec<u32> {
    let mut ids = Vec::new();
    let never = Interrupt::never();
    setup
        .encoder()
        .encode(text, &setup.special, &mut ids, &never)
        .unwrap();
    ids
}

/// Spans have the same ids, lie in the text, and tile it.
fn spans(setup: &Setup, text: &str, ids: &[u32], shown: &Arguments<'_>) {
    let (never, mut found, mut done) = (Interrupt::never(), Vec::new(), 0);
    let token = |id, span: bpe_tokenizer_core::encoder::Span| {
        found.push(id);
        let end = span.tiled_end.max(span.end);
        assert!(
            span.start <= span.tiled_end.min(span.end),
            "{span:?} {shown}"
        );
        assert!(end <= text.len(), "{span:?} {shown}");
        assert!(done <= span.start, "{span:?} after {done} {shown}");
        done = span.tiled_end;
        true
    };
    let text = Text::Str(text);
    setup
        .encoder()
        .encode_with_spans(text, &setup.special, &never, token)
        .unwrap();
    assert_eq!(found, ids, "spans: {shown}");
    if setup.is_lossless() {
        assert_eq!(done, text.as_bytes().len(), "{shown}");
    }
}

/// The text in code units, as CPython may store it, cut into parts.
fn code_units(setup: &Setup, text: &str, ids: &[u32], shown: &Arguments<'_>) {
    let units: Vec<u32> = text.chars().map(u32::from).collect();
    let (units, never) = (CodeUnits::Ucs4(&units), Interrupt::never());
    let options = BatchOptions {
        special: setup.special.clone(),
        threads: 1,
        job_bytes: 32,
        ..BatchOptions::default()
    };
    let once = std::iter::once(units);
    let found = setup.encoder().encode_all(once, &options, &never).unwrap();
    assert_eq!(found.ids, ids, "code units: {shown}");
}

/// Prefixes: of ids, of text, and pieces that are those of the text.
fn prefixes(setup: &Setup, text: &str, ids: &[u32], shown: &Arguments<'_>) {
    let never = Interrupt::never();
    for limit in [0, 1, ids.len() / 2, ids.len()] {
        let mut some = Vec::new();
        let encoder = setup.encoder();
        encoder
            .encode_up_to(
                Text::Str(text).into(),
                &setup.special,
                limit,
                &mut some,
                &never,
            )
            .unwrap();
        assert!(
            ids.starts_with(&some) && some.len() >= limit.min(ids.len()),
            "{limit}: {shown}"
        );
        let end = encoder
            .truncate(text, limit, &setup.special, &never)
            .unwrap();
        let kept = encode(setup, Text::Str(&text[..end]));
        assert!(
            kept.len() <= limit,
            "{limit}: {end} bytes have {kept:?}: {shown}"
        );
    }
    let special = &setup.special;
    let encode_segment = |is_trusted| -> Vec<u32> {
        let segments = Segments::new(text, &[(text.len(), is_trusted)]).unwrap();
        let mut markup = FxHashSet::default();
        let tokens = setup
            .encoder()
            .encode_segments(&segments, special, &mut markup, false, &never)
            .unwrap();
        tokens.iter().map(|token| token.id).collect()
    };
    assert_eq!(encode_segment(true), ids, "trusted: {shown}");
    // Text that is not trusted has the ids of text without special tokens.
    let found = encode_segment(false);
    let mut plain = Vec::new();
    setup
        .encoder()
        .encode(Text::Str(text), &Special::None, &mut plain, &never)
        .unwrap();
    let is_special = |&id: &u32| setup.model.is_special(id);
    let hides = setup.model.added().iter().any(|token| !token.special);
    let by_merging = plain.iter().any(is_special);
    assert!(
        found == plain || hides || by_merging,
        "not trusted: {found:?}, not {plain:?}: {shown}"
    );
    assert!(
        by_merging || !found.iter().any(is_special),
        "not trusted: {shown}"
    );
}

/// Texts together, on one thread and on two, in small jobs.
fn batch(setup: &Setup, rest: &[u8], text: &str, shown: &Arguments<'_>) {
    let half = text.len() / 2;
    let half = (0..=half)
        .rev()
        .find(|&at| text.is_char_boundary(at))
        .unwrap_or(0);
    let texts = [
        Text::Str(text),
        Text::Bytes(rest),
        Text::Str(""),
        Text::Str(&text[half..]),
    ];
    let (mut ids, mut offsets) = (Vec::new(), vec![0]);
    for text in texts {
        ids.push(1);
        ids.extend(encode(setup, text));
        ids.extend([2, 3]);
        offsets.push(ids.len() as i64);
    }
    let threads = if rest.len() % 32 == 7 { 2 } else { 1 };
    for (threads, job_bytes) in [(1, 0), (threads, 7)] {
        let options = BatchOptions {
            special: setup.special.clone(),
            prefix_ids: vec![1],
            suffix_ids: vec![2, 3],
            threads,
            job_bytes,
            ..BatchOptions::default()
        };
        let never = Interrupt::never();
        let found = setup
            .encoder()
            .encode_all(texts.into_iter(), &options, &never)
            .unwrap();
        assert_eq!(
            (&found.ids, &found.offsets),
            (&ids, &offsets),
            "batch {threads}: {shown}"
        );
        let count = setup
            .encoder()
            .count_all(texts.into_iter(), &options, &never)
            .unwrap();
        assert_eq!(count, ids.len(), "count: {shown}");
        let counts = texts.into_iter().map(|text| {
            let count = setup.encoder().count(text, &options.special, &never);
            count.unwrap() + 3 // with the ids before and after
        });
        assert_eq!(counts.sum::<usize>(), count, "count alone: {shown}");
    }
}

/// Decoding the ids restores the bytes, and each piece is that of the naive merge.
fn lossless(setup: &Setup, bytes: &[u8], ids: &[u32]) {
    let mut decoded = Vec::new();
    let (options, never) = (Default::default(), Interrupt::never());
    setup
        .decoder
        .decode(ids, options, &mut decoded, &never)
        .unwrap();
    assert_eq!(decoded, bytes, "{setup:?}");
    let merger = setup.encoder().merger();
    let trace = merger.trace(bytes, &never).unwrap();
    if !setup.of_ranks {
        assert_eq!(
            trace.ids,
            naive::encode_piece(&setup.model, bytes),
            "{setup:?}"
        );
    }
    let mut merged = Vec::new();
    merger.encode(bytes, &mut merged, &never).unwrap();
    assert_eq!(merged, trace.ids, "{setup:?}");
}
