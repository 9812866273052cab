//! Ids to bytes.

mod stream;
mod table;

pub use stream::DecodeStream;

use crate::error::{Error, Result};
use crate::interrupt::Interrupt;
use crate::model::{fallback_byte, Alphabet, Model, Spaces, Strip};
use crate::reserve::{push, reserve};
use crate::text::to_printable;
use crate::threads::try_made_once;
use std::mem::MaybeUninit;
use std::sync::OnceLock;
use table::{DecodeTable, IDS_PER_POLL};

/// What replaces a byte.
const REPLACEMENT: &[u8] = "\u{fffd}".as_bytes();

/// How ids become bytes.
#[derive(Clone, Copy, Debug, Default)]
pub struct DecodeOptions {
    /// Whether special tokens give no bytes.
    pub skip_special_tokens: bool,
    /// Whether each byte of a run of byte tokens such as `<0xE2>` that is not UTF-8 becomes U+FFFD, as in
    /// `ByteFallback` of Hugging Face `tokenizers`. Applies only to models with byte fallback: in other
    /// models every token is bytes, and the caller replaces.
    pub replace_invalid: bool,
}

/// Decodes the ids of one model. Threads may share it.
pub struct Decoder {
    model: Model,
    /// Built by the first call that needs it.
    table: OnceLock<DecodeTable>,
}

impl Decoder {
    /// A decoder of a model.
    pub fn new(model: Model) -> Self {
        let table = OnceLock::new();
        Self { model, table }
    }

    /// Appends the bytes of the ids.
    pub fn decode(
        &self,
        ids: &[u32],
        options: DecodeOptions,
        bytes: &mut Vec<u8>,
        interrupt: &Interrupt<'_>,
    ) -> Result<()> {
        let mut state = DecodeState::new(options);
        state.push(self, ids, bytes, interrupt)?;
        state.finish(self, bytes)
    }

    /// The number of bytes of the ids; None in a model where that depends on neighbouring ids.
    pub fn length(
        &self,
        ids: &[u32],
        options: DecodeOptions,
        interrupt: &Interrupt<'_>,
    ) -> Result<Option<usize>> {
        if self.model.settings().spaces.is_some() {
            return Ok(None);
        }
        let skip = options.skip_special_tokens;
        Ok(Some(self.table()?.length(ids, skip, interrupt)?))
    }

    /// Writes the bytes of the ids to memory that has their [`Decoder::length`]. Returns the number of bytes that it wrote,
    /// from the beginning.
    pub fn write(
        &self,
        ids: &[u32],
        options: DecodeOptions,
        bytes: &mut [MaybeUninit<u8>],
        interrupt: &Interrupt<'_>,
    ) -> Result<usize> {
        let (skip, length) = (options.skip_special_tokens, bytes.len());
        let rest = self.table()?.copy(ids, skip, bytes, interrupt)?;
        Ok(length - rest.len())
    }

    /// The table of the tokens' bytes, built on first use.
    fn table(&self) -> Result<&DecodeTable> {
        try_made_once(&self.table, || DecodeTable::new(&self.model))
    }

    /// The most bytes that ids give, if all of them are known.
    pub fn most_bytes(&self, ids: &[u32]) -> usize {
        let bytes = |&id: &u32| self.model.token(id).map_or(0, <[u8]>::len);
        ids.iter().map(bytes).sum()
    }
}

/// The state between two parts of the ids of one text.
#[derive(Default)]
struct DecodeState {
    options: DecodeOptions,
    /// The bytes of the byte tokens at the end. The next token may extend the run.
    byte_run: Vec<u8>,
    has_token: bool,
    has_output: bool,
}

impl DecodeState {
    fn new(options: DecodeOptions) -> Self {
        Self {
            options,
            ..Self::default()
        }
    }

    /// Appends the bytes of further ids, except those that later ids may change.
    fn push(
        &mut self,
        decoder: &Decoder,
        ids: &[u32],
        bytes: &mut Vec<u8>,
        interrupt: &Interrupt<'_>,
    ) -> Result<()> {
        let (model, skip) = (&decoder.model, self.options.skip_special_tokens);
        let Some(spaces) = &model.settings().spaces else {
            return decoder.table()?.append(ids, skip, bytes, interrupt);
        };
        let start = bytes.len();
        for (position, &id) in ids.iter().enumerate() {
            if position % IDS_PER_POLL == IDS_PER_POLL - 1 {
                interrupt.poll()?;
            }
            if skip && model.is_skipped(id) {
                continue;
            }
            let token = model.decoded(id);
            let token = token.ok_or(Error::UnknownId { id, position })?;
            if spaces.strip == Strip::Joined {
                self.push_joined(model, id, token, bytes)?;
                continue;
            }
            self.push_spaced(spaces, token, bytes)?;
        }
        self.strip(Some(spaces), start, bytes);
        Ok(())
    }

    /// Appends the remaining bytes and resets the state for the next text.
    fn finish(&mut self, decoder: &Decoder, bytes: &mut Vec<u8>) -> Result<()> {
        let start = bytes.len();
        self.end_byte_run(bytes)?;
        self.strip(decoder.model.settings().spaces.as_ref(), start, bytes);
        (self.has_token, self.has_output) = (false, false);
        Ok(())
    }

    /// Drops the text's first space if the model asks for it and the text begins at `start`.
    fn strip(&mut self, spaces: Option<&Spaces>, start: usize, bytes: &mut Vec<u8>) {
        if !self.has_output && bytes.len() > start {
            self.has_output = true;
            if spaces.is_some_and(|spaces| spaces.strip == Strip::One) && bytes[start] == b' ' {
                bytes.remove(start);
            }
        }
    }

    /// Appends a token of a model that writes spaces as another character.
    fn push_spaced(&mut self, spaces: &Spaces, token: &[u8], bytes: &mut Vec<u8>) -> Result<()> {
        let is_first = !std::mem::replace(&mut self.has_token, true);
        if spaces.byte_fallback {
            if let Some(byte) = fallback_byte(token) {
                return push(&mut self.byte_run, byte);
            }
        }
        self.end_byte_run(bytes)?;
        reserve(bytes, token.len())?; // a space is not longer than what it replaces
        let mut space = [0; 4];
        let space = spaces.space.encode_utf8(&mut space).as_bytes();
        let drop = is_first && spaces.strip == Strip::FirstToken;
        let mut done = 0;
        for at in memchr::memmem::find_iter(token, space) {
            bytes.extend_from_slice(&token[done..at]);
            bytes.extend((!drop).then_some(b' '));
            done = at + space.len();
        }
        bytes.extend_from_slice(&token[done..]);
        Ok(())
    }

    /// Appends a token string, after a space unless it is the first one.
    fn push_joined(
        &mut self,
        model: &Model,
        id: u32,
        token: &[u8],
        bytes: &mut Vec<u8>,
    ) -> Result<()> {
        reserve(bytes, 1 + 2 * token.len())?;
        bytes.extend(std::mem::replace(&mut self.has_token, true).then_some(b' '));
        if model.settings().alphabet == Alphabet::Bytes && model.added_token(id).is_none() {
            bytes.extend_from_slice(to_printable(token).as_bytes());
        } else {
            bytes.extend_from_slice(token);
        }
        Ok(())
    }

    fn end_byte_run(&mut self, bytes: &mut Vec<u8>) -> Result<()> {
        if self.options.replace_invalid && std::str::from_utf8(&self.byte_run).is_err() {
            reserve(bytes, REPLACEMENT.len() * self.byte_run.len())?;
            for _ in self.byte_run.drain(..) {
                bytes.extend_from_slice(REPLACEMENT);
            }
        } else {
            reserve(bytes, self.byte_run.len())?;
            bytes.append(&mut self.byte_run);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::Settings;

    fn decoded(strip: Strip, replace_invalid: bool, ids: &[u32]) -> String {
        let tokens = ["▁", "▁a", "b", "<0xE2>", "<0x96>", "<0x81>", "▁▁"];
        let settings = Settings {
            alphabet: Alphabet::Characters,
            spaces: Some(Spaces {
                space: '▁',
                byte_fallback: true,
                strip,
            }),
            ..Settings::default()
        };
        let tokens = (0..).zip(tokens).map(|(id, token)| (id, token.into()));
        let model = Model::new(tokens.collect(), Some(&[]), settings, Vec::new()).unwrap();
        let mut bytes = b"before".to_vec();
        let never = Interrupt::never();
        let decoder = Decoder::new(model);
        let options = DecodeOptions {
            skip_special_tokens: false,
            replace_invalid,
        };
        decoder.decode(ids, options, &mut bytes, &never).unwrap();
        String::from_utf8_lossy(&bytes["before".len()..]).into_owned()
    }

    #[test]
    fn decoding_restores_spaces() {
        let ids = [6, 1, 2, 0];
        assert_eq!(decoded(Strip::No, false, &ids), "   ab ");
        assert_eq!(decoded(Strip::One, false, &ids), "  ab ");
        assert_eq!(decoded(Strip::FirstToken, false, &ids), " ab ");
        assert_eq!(decoded(Strip::Joined, false, &ids), "▁▁ ▁a b ▁");
    }

    #[test]
    fn byte_tokens_become_bytes() {
        assert_eq!(decoded(Strip::No, true, &[2, 3, 4, 5, 2]), "b▁b");
        assert_eq!(
            decoded(Strip::No, true, &[3, 4, 2, 5]),
            "\u{fffd}\u{fffd}b\u{fffd}"
        );
        assert_eq!(
            decoded(Strip::No, false, &[3, 4, 2]),
            "\u{fffd}b" // one U+FFFD, of the lossy conversion in this test
        );
    }
}
