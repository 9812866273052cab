//! Models of any vocabulary, merges and added tokens: refused with a message, or usable.

#![no_main]

use arbitrary::{Result, Unstructured};
use bpe_tokenizer_core::decoder::Decoder;
use bpe_tokenizer_core::encoder::Special;
use bpe_tokenizer_core::model::{
    Alphabet, MergeIds, Model, Settings, Spaces, Strip, Unknown, Vocabulary,
};
use bpe_tokenizer_core::pretokenize::PreTokenizer;
use bpe_tokenizer_core::special::AddedToken;
use bpe_tokenizer_core::text::Text;
use bpe_tokenizer_core::{Encoder, Error, Interrupt};
use bpe_tokenizer_fuzz::text;
use libfuzzer_sys::fuzz_target;
use std::collections::BTreeMap;

fuzz_target!(|data: &[u8]| {
    let _ = run(Unstructured::new(data));
});

fn run(mut input: Unstructured<'_>) -> Result<()> {
    let u = &mut input;
    let kind: u8 = u.arbitrary()?;
    let mut tokens = Vec::new();
    if kind & 1 != 0 {
        tokens.extend((0..=255_u8).map(|byte| (u32::from(byte), vec![byte])));
    }
    for _ in 0..u.arbitrary::<u8>()? % 16 {
        tokens.push((id(u)?, token(u)?));
    }
    let merges = (0..u.arbitrary::<u8>()? % 10).map(|_| Ok((token(u)?, token(u)?)));
    let merges: Vec<_> = merges.collect::<Result<_>>()?;
    let ids = (0..u.arbitrary::<u8>()? % 10).map(|_| Ok((id(u)?, id(u)?, id(u)?)));
    let ids: Vec<MergeIds> = ids.collect::<Result<_>>()?;
    let added = (0..u.arbitrary::<u8>()? % 5).map(|_| added(u));
    let added: Vec<_> = added.collect::<Result<_>>()?;
    let settings = settings(u)?;
    let text = text::text(input.take_rest());
    vocabulary(&tokens);
    let model = match kind / 2 % 3 {
        0 => Model::new(tokens, Some(&merges), settings, added),
        1 => Model::new(tokens, None, settings, added),
        _ => Vocabulary::new(tokens)
            .and_then(|vocabulary| Model::with_merge_ids(vocabulary, ids, settings, added)),
    };
    match model {
        Ok(model) => usable(model, &text),
        Err(Error::Model(message)) => {
            let length = message.chars().count();
            assert!((1..=300).contains(&length), "{message}");
        }
        Err(error) => panic!("unexpected error: {error}"),
    }
    Ok(())
}

fn id(u: &mut Unstructured<'_>) -> Result<u32> {
    Ok(match u.arbitrary::<u8>()? {
        255 => u.arbitrary()?,
        254 => u32::MAX - 1,
        253 => (1 << 21) + u32::from(u.arbitrary::<u8>()?), // beyond the slots of the pair table
        252 => 256 + u32::from(u.arbitrary::<u16>()?),
        small => 160 + u32::from(small),
    })
}

fn token(u: &mut Unstructured<'_>) -> Result<Vec<u8>> {
    let kind: u8 = u.arbitrary()?;
    Ok(match kind {
        0..200 => {
            let length = usize::from(kind) % 5;
            (0..length)
                .map(|_| Ok(b"ab \xc3\xa9<"[usize::from(u.arbitrary::<u8>()? % 6)]))
                .collect::<Result<_>>()?
        }
        200..230 => text::text(&[kind, u.arbitrary()?]).into_bytes(),
        _ => {
            let length = usize::from(kind) % 12;
            u.bytes(length.min(u.len()))?.to_vec()
        }
    })
}

fn added(u: &mut Unstructured<'_>) -> Result<AddedToken> {
    let flags: u8 = u.arbitrary()?;
    Ok(AddedToken {
        content: String::from_utf8_lossy(&token(u)?).into_owned(),
        id: id(u)?,
        special: flags & 1 != 0,
        single_word: flags & 2 != 0,
        lstrip: flags & 4 != 0,
        rstrip: flags & 8 != 0,
        normalized: flags & 16 != 0,
    })
}

fn settings(u: &mut Unstructured<'_>) -> Result<Settings> {
    let flags: u8 = u.arbitrary()?;
    Ok(Settings {
        pre_tokenizers: match flags & 1 {
            0 => Vec::new(),
            _ => vec![PreTokenizer::PrefixSpace],
        },
        alphabet: match flags & 6 {
            6 => Alphabet::Characters,
            _ => Alphabet::Bytes,
        },
        byte_fallback: flags & 8 != 0,
        unknown: match u.arbitrary::<u8>()? % 4 {
            0 => Unknown::Gap,
            1 => Unknown::Token {
                id: id(u)?,
                fuse: flags & 16 != 0,
            },
            _ => Unknown::Dropped,
        },
        ignore_merges: flags & 32 != 0,
        spaces: (flags & 64 != 0).then_some(Spaces {
            space: 'a',
            byte_fallback: flags & 16 != 0,
            strip: Strip::One,
        }),
        ..Settings::default()
    })
}

/// A vocabulary finds each token, of equal ones the lowest id.
fn vocabulary(tokens: &[(u32, Vec<u8>)]) {
    let Ok(vocabulary) = Vocabulary::new(tokens.to_vec()) else {
        return;
    };
    let mut ids: BTreeMap<&[u8], u32> = BTreeMap::new();
    for (id, token) in tokens {
        assert_eq!(vocabulary.token(*id), Some(&token[..]));
        let lowest = ids.entry(token).or_insert(*id);
        *lowest = *id.min(lowest);
    }
    for (token, id) in ids {
        assert_eq!(vocabulary.id(token), Some(id));
    }
    assert_eq!(vocabulary.len(), tokens.len());
    assert!(vocabulary.iter().is_sorted());
}

/// The model encodes, and decodes what it encoded.
fn usable(model: Model, text: &str) {
    let missing = model.vocabulary().missing_byte();
    assert_eq!(model.require_bytes().is_ok(), missing.is_none());
    let (encoder, decoder) = (
        Encoder::new(model.clone()).unwrap(),
        Decoder::new(model.clone()),
    );
    let never = Interrupt::never();
    for special in [Special::None, Special::All] {
        let (mut ids, mut spans) = (Vec::new(), Vec::new());
        encoder
            .encode(Text::Str(text), &special, &mut ids, &never)
            .unwrap();
        let token = |id, _| {
            spans.push(id);
            true
        };
        encoder
            .encode_with_spans(Text::Str(text), &special, &never, token)
            .unwrap();
        assert_eq!(ids, spans);
        let mut bytes = Vec::new();
        decoder
            .decode(&ids, Default::default(), &mut bytes, &never)
            .unwrap();
    }
    for id in encoder.merger().unreachable_tokens().unwrap_or_default() {
        assert!(model.vocabulary().token(id).is_some());
    }
    let trace = encoder.merger().trace(text.as_bytes(), &never).unwrap();
    let mut merged = Vec::new();
    encoder
        .merger()
        .encode(text.as_bytes(), &mut merged, &never)
        .unwrap();
    assert_eq!(trace.ids, merged, "{text:?} of {model:?}");
    for step in trace.steps {
        let merge = model.merges()[step.rank];
        assert_eq!(merge, (step.left_id, step.right_id, step.token_id));
    }
    // An extended vocabulary keeps its tokens.
    let added: Vec<AddedToken> = model.added().to_vec();
    assert_eq!(model.with_added(added).unwrap().len(), model.len());
}
