//! Ids to bytes: the bytes of the tokens in sequence, or an error that names the first unknown id.

#![no_main]

use bpe_tokenizer_core::decoder::DecodeOptions;
use bpe_tokenizer_core::model::{fallback_byte, Spaces, Strip};
use bpe_tokenizer_core::{Error, Interrupt};
use bpe_tokenizer_fuzz::models::Setup;
use bpe_tokenizer_fuzz::mutate_parts;
use libfuzzer_sys::fuzz_target;

mutate_parts!();

fuzz_target!(|data: &[u8]| {
    let Some((setup, rest)) = Setup::split(data) else {
        return;
    };
    let Some((&flags, rest)) = rest.split_first() else {
        return;
    };
    let ids: Vec<u32> = ids(rest);
    let options = DecodeOptions {
        skip_special_tokens: flags & 1 != 0,
        replace_invalid: flags & 2 != 0,
    };
    let mut bytes = b"before".to_vec();
    let outcome = setup
        .decoder
        .decode(&ids, options, &mut bytes, &Interrupt::never());
    let is_unknown = |id: &u32| setup.model.token(*id).is_none();
    match (outcome, ids.iter().position(is_unknown)) {
        (Ok(()), None) => {
            let expected = [b"before", &naive(&setup, &ids, options)[..]].concat();
            assert_eq!(bytes, expected, "{ids:?} of {setup:?}");
        }
        (Err(Error::UnknownId { id, position }), Some(expected)) => {
            assert_eq!((id, position), (ids[expected], expected), "{setup:?}");
        }
        (outcome, unknown) => panic!("{outcome:?}, first unknown {unknown:?}: {setup:?}"),
    }
});

/// Ids: of one byte, of two after 254, of four after 255.
fn ids(bytes: &[u8]) -> Vec<u32> {
    let mut bytes = bytes.iter().copied();
    let mut ids = Vec::new();
    while let Some(first) = bytes.next() {
        let mut digit = || u32::from(bytes.next().unwrap_or_default());
        ids.push(match first {
            254 => 128 + digit(),
            255 => digit() << 24 | digit() << 16 | digit() << 8 | digit(),
            _ => u32::from(first),
        });
    }
    ids
}

fn naive(setup: &Setup, ids: &[u32], options: DecodeOptions) -> Vec<u8> {
    let model = &setup.model;
    let skipped = |id: &u32| options.skip_special_tokens && model.is_skipped(*id);
    let tokens = ids
        .iter()
        .filter(|id| !skipped(id))
        .map(|&id| model.decoded(id).unwrap());
    match &model.settings().spaces {
        None => tokens.flatten().copied().collect(),
        Some(spaces) => spaced(tokens, spaces, options.replace_invalid),
    }
}

/// The text of tokens that write spaces as another character.
fn spaced<'a>(
    tokens: impl Iterator<Item = &'a [u8]>,
    spaces: &Spaces,
    replace_invalid: bool,
) -> Vec<u8> {
    let (mut bytes, mut run) = (Vec::new(), Vec::new());
    let end_run = |run: &mut Vec<u8>, bytes: &mut Vec<u8>| {
        match std::str::from_utf8(run) {
            Err(_) if replace_invalid => bytes.extend("\u{fffd}".repeat(run.len()).bytes()),
            _ => bytes.extend_from_slice(run),
        }
        run.clear();
    };
    let space = spaces.space.to_string();
    for (index, token) in tokens.enumerate() {
        if let Some(byte) = fallback_byte(token).filter(|_| spaces.byte_fallback) {
            run.push(byte);
            continue;
        }
        end_run(&mut run, &mut bytes);
        let written = match (index, spaces.strip) {
            (0, Strip::FirstToken) => "",
            _ => " ",
        };
        let text = std::str::from_utf8(token).unwrap().replace(&space, written);
        bytes.extend(text.bytes());
    }
    end_run(&mut run, &mut bytes);
    if spaces.strip == Strip::One && bytes.first() == Some(&b' ') {
        bytes.remove(0);
    }
    bytes
}
