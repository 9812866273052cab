//! Training that resumes an interrupted run or extends a vocabulary: compared with recounting.

#![allow(clippy::unwrap_used)] // tests

mod support;

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
use std::collections::BTreeSet;
use std::time::Duration;
use support::*;
use TieBreak::Largest;

#[test]
fn checkpoints_get_the_new_merges() {
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
            merged: None,
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
fn impossible_merges_are_named() {
    let words = language(100);
    let fail = |model: Option<&Model>, begun: &[(&str, &str)], options: &MergeOptions| {
        let begun = begun
            .iter()
            .map(|(left, right)| (left.as_bytes().to_vec(), right.as_bytes().to_vec()));
        train_from(&words, model, &begun.collect::<Merges>(), options)
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
    let begun = [(b"a".to_vec(), b"b".to_vec())];
    assert!(train_from(&words, None, &begun, &short).is_ok());
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
fn only_byte_level_vocabularies_are_extended() {
    let bytes = || -> Vec<(u32, Bytes)> { (0..=255).map(|b| (u32::from(b), vec![b])).collect() };
    let refusal = |model: Result<Model>| {
        let result = train_from(
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
    // One that lacks bytes is extended too.
    let lacking = Model::new(lacking, Some(&[]), Settings::default(), Vec::new()).unwrap();
    let extended = train_from(&language(10), Some(&lacking), &[], &options(300, Largest));
    assert!(extended.is_ok());
    let characters = Settings {
        alphabet: bpe_tokenizer_core::model::Alphabet::Characters,
        ..Settings::default()
    };
    let characters = Model::new(bytes()[..128].to_vec(), Some(&[]), characters, Vec::new());
    assert!(refusal(characters).contains("only a byte-level"));
    let falls_back = Settings {
        byte_fallback: true,
        ..Settings::default()
    };
    let falls_back = Model::new(bytes(), Some(&[]), falls_back, Vec::new());
    assert!(refusal(falls_back).contains("only a byte-level"));
    let mut twice = bytes();
    twice.extend([(256, b"ab".to_vec()), (257, b"ab".to_vec())]);
    let vocabulary = Vocabulary::new(twice).unwrap();
    let merges = vec![(97, 98, 257)];
    let twice = Model::with_merge_ids(vocabulary, merges, Settings::default(), Vec::new());
    assert!(refusal(twice).contains("the ids 256 and 257"));
}

#[test]
fn the_longest_token_joins_long_parts() {
    let begun = [("a", "b"), ("ab", "c"), ("d", "e"), ("de", "f")];
    let begun = begun.map(|(left, right)| (left.as_bytes().to_vec(), right.as_bytes().to_vec()));
    let options = MergeOptions {
        max_token_length: Some(6),
        ..options(300, Largest)
    };
    let pieces = vec![(b"abcdef".to_vec(), 3)];
    let learned = train_from(&pieces, None, &begun, &options).unwrap();
    assert_eq!(learned.tokens.last(), Some(&(260, b"abcdef".to_vec())));
}

#[test]
fn a_piece_that_is_a_token_has_no_pair() {
    let mut tokens: Vec<(u32, Bytes)> = (0..=255).map(|b| (u32::from(b), vec![b])).collect();
    tokens.extend([(256, b"abc".to_vec()), (257, b"xyz".to_vec())]);
    let added = vec![AddedToken::special("xyz", 257)];
    let pieces = vec![
        (b"abc".to_vec(), 5),
        (b"abcd".to_vec(), 3),
        (b"xyz".to_vec(), 4),
    ];
    let options = MergeOptions {
        min_frequency: 4,
        ..options(300, Largest)
    };
    for (ignore_merges, first) in [(true, (121, 122)), (false, (98, 99))] {
        let settings = Settings {
            ignore_merges,
            ..Settings::default()
        };
        let model = Model::new(tokens.clone(), Some(&[]), settings, added.clone()).unwrap();
        let learned = train_from(&pieces, Some(&model), &[], &options).unwrap();
        let (left, right, _) = learned.merges[0];
        assert_eq!((left, right), first);
    }
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
    fn a_resumed_run_gives_the_result_of_an_uninterrupted_one(pieces in any_pieces(), options in any_options()) {
        let whole = train(&pieces, &options).unwrap();
        let merges = merges(&pieces, &options);
        for cut in 0..=merges.len() {
            prop_assert_eq!(&train_from(&pieces, None, &merges[..cut], &options).unwrap(), &whole);
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

        let learned = train_from(&pieces, Some(&model), &[], &options).unwrap();
        let words = encoded(&model, &pieces);
        let wanted = (vocab_size - last - 1) as usize;
        let (merges, words) = recount_from(words, tokens, &taken, wanted, &options);
        let ids: Vec<u32> = learned.tokens.iter().map(|token| token.0).collect();
        let vocabulary = model.vocabulary().iter();
        let vocabulary = vocabulary.map(|(id, token)| (id, token.to_vec())).collect();
        prop_assert_eq!(&merges_as_bytes(learned.clone(), vocabulary), &merges);
        prop_assert_eq!(ids, (last + 1..vocab_size).take(merges.len()).collect::<Vec<_>>());

        let larger = extended(&model, &learned);
        prop_assert_eq!(encoded(&larger, &pieces), words);
        for cut in 0..=merges.len() {
            let whole = train_from(&pieces, Some(&model), &merges[..cut], &options).unwrap();
            prop_assert_eq!(&whole, &learned);
            // What was learned can be a vocabulary's merges as well.
            let merges = learned.merges[..cut].to_vec();
            let tokens = learned.tokens[..cut].to_vec();
            let middle = extended(&model, &Learned { tokens, merges });
            let rest = train_from(&pieces, Some(&middle), &[], &options).unwrap();
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
        let learned = train_from(&pieces, Some(&model), &[], &options(400, Largest)).unwrap();
        let larger = extended(&model, &learned);
        let ranks = of_ranks(&larger);
        prop_assert_eq!(ranks.merges(), larger.merges());
    }
}
