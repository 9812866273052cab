//! Streams: text and ids in parts, however they are cut, give what the whole gives.

#![no_main]

use bpe_tokenizer_core::decoder::{DecodeOptions, DecodeStream};
use bpe_tokenizer_core::encoder::EncodeStream;
use bpe_tokenizer_core::text::Text;
use bpe_tokenizer_core::Interrupt;
use bpe_tokenizer_fuzz::models::Setup;
use bpe_tokenizer_fuzz::{mutate_parts, text};
use libfuzzer_sys::fuzz_target;

mutate_parts!();

fuzz_target!(|data: &[u8]| {
    let Some((setup, rest)) = Setup::split(data) else {
        return;
    };
    let (steps, rest) = rest.split_at(rest.len() / 4);
    let text = text::text(rest);
    let parts = text::cuts(&text, steps);
    let never = Interrupt::never();
    let mut ids = Vec::new();
    setup
        .encoder()
        .encode(Text::Str(&text), &setup.special, &mut ids, &never)
        .unwrap();
    let mut stream = EncodeStream::new(setup.encoder(), &setup.special).unwrap();
    // The second text shows that the first one's end resets the stream.
    for _ in 0..2 {
        let mut found = Vec::new();
        let (last, earlier) = parts.split_last().unwrap();
        for part in earlier {
            stream
                .push(setup.encoder(), part, false, &mut found, &never)
                .unwrap();
        }
        stream
            .push(setup.encoder(), last, true, &mut found, &never)
            .unwrap();
        assert_eq!(found, ids, "{parts:?} of {setup:?}");
    }
    let flags = steps.first().map_or(0, |step| step / 16);
    let options = DecodeOptions {
        skip_special_tokens: flags & 1 != 0,
        replace_invalid: flags & 2 != 0,
    };
    decode(&setup, &ids, steps, options);
    // Ids in any order, so that characters and byte tokens are cut.
    let known = setup.ids();
    let any: Vec<u32> = rest
        .iter()
        .map(|&byte| known[usize::from(byte) % known.len()])
        .collect();
    decode(&setup, &any, steps, options);
});

fn decode(setup: &Setup, ids: &[u32], steps: &[u8], options: DecodeOptions) {
    let (mut whole, never) = (Vec::new(), Interrupt::never());
    setup
        .decoder
        .decode(ids, options, &mut whole, &never)
        .unwrap();
    let boundaries = boundaries(&whole);
    let mut stream = DecodeStream::new(options);
    for _ in 0..2 {
        let (mut found, mut rest) = (Vec::new(), ids);
        for step in steps
            .iter()
            .map(|step| usize::from(step % 5))
            .chain([ids.len()])
        {
            let (part, after) = rest.split_at(step.min(rest.len()));
            // An id without a token changes nothing.
            let unknown = [part, &[u32::MAX - 1]].concat();
            stream.step(&setup.decoder, &unknown).unwrap_err();
            found.extend(stream.step(&setup.decoder, part).unwrap());
            assert!(boundaries[found.len()], "{found:?} of {setup:?}");
            rest = after;
        }
        found.extend(stream.finish(&setup.decoder).unwrap());
        assert_eq!(found, whole, "{ids:?} by {steps:?} of {setup:?}");
    }
}

/// Whether each position is outside of a character.
fn boundaries(bytes: &[u8]) -> Vec<bool> {
    let mut boundaries = Vec::with_capacity(bytes.len() + 1);
    for chunk in bytes.utf8_chunks() {
        boundaries.extend((0..chunk.valid().len()).map(|at| chunk.valid().is_char_boundary(at)));
        boundaries.extend(chunk.invalid().iter().map(|_| true));
    }
    boundaries.push(true);
    boundaries
}
