//! Ids to bytes incrementally, in complete characters.

use super::{DecodeOptions, DecodeState, Decoder, REPLACEMENT};
use crate::error::{Error, Result};
use crate::interrupt::Interrupt;
use crate::reserve::reserve;

/// Decodes ids incrementally. Never returns a part of a character.
pub struct DecodeStream {
    state: DecodeState,
    /// The first bytes of an incomplete character.
    incomplete: Vec<u8>,
}

impl DecodeStream {
    /// A stream at the beginning of a text.
    pub fn new(options: DecodeOptions) -> Self {
        Self {
            state: DecodeState::new(options),
            incomplete: Vec::new(),
        }
    }

    /// Returns the bytes that further ids complete: whole characters, and bytes that cannot begin one. An
    /// error leaves the stream unchanged.
    pub fn step(&mut self, decoder: &Decoder, ids: &[u32]) -> Result<Vec<u8>> {
        for (position, &id) in ids.iter().enumerate() {
            if decoder.model.token(id).is_none() {
                return Err(Error::UnknownId { id, position });
            }
        }
        let DecodeState { byte_run, .. } = &mut self.state;
        let most = decoder.most_bytes(ids) + REPLACEMENT.len() * byte_run.len();
        reserve(byte_run, ids.len())?;
        reserve(&mut self.incomplete, most)?;
        // An interrupt inside a step would lose its bytes.
        let never = Interrupt::never();
        self.state
            .push(decoder, ids, &mut self.incomplete, &never)?;
        let rest = self.incomplete.split_off(complete(&self.incomplete));
        Ok(std::mem::replace(&mut self.incomplete, rest))
    }

    /// Returns the remaining bytes and resets the stream for the next text.
    pub fn finish(&mut self, decoder: &Decoder) -> Result<Vec<u8>> {
        self.state.finish(decoder, &mut self.incomplete)?;
        Ok(std::mem::take(&mut self.incomplete))
    }
}

/// The number of bytes before the incomplete character at the end.
fn complete(bytes: &[u8]) -> usize {
    let tail = bytes.len().saturating_sub(3);
    let start = bytes[tail..].iter().rposition(|byte| byte & 0xc0 == 0xc0);
    let Some(start) = start.map(|start| tail + start) else {
        return bytes.len();
    };
    match std::str::from_utf8(&bytes[start..]) {
        Err(error) if error.valid_up_to() == 0 && error.error_len().is_none() => start,
        _ => bytes.len(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_stream_holds_back_an_incomplete_character() {
        for (bytes, whole) in [
            (&b""[..], 0),
            (b"a\xe2\x82", 1),
            (b"a\xe2\x82\xac", 4),
            (b"a\xf0\x9f\x98", 1),
            (b"a\xf0\x9f\x98\x80", 5),
            (b"a\xe2\x28", 3), // begins no character
            (b"a\xe0\x80", 3), // begins no character: the encoding would be overlong
            (b"\x80\x80\x80", 3),
            (b"a\xff", 2),
        ] {
            assert_eq!(complete(bytes), whole, "{bytes:?}");
        }
    }
}
