//! Ids to bytes.

pub(crate) mod table;

use crate::error::{Error, Result};
use crate::interrupt::Interrupt;
use crate::model::{Model, Spaces, Strip};

/// So many ids are decoded between two polls.
const IDS_A_POLL: usize = 1 << 18;

/// What becomes of tokens for bytes that are not UTF-8 together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Broken {
    /// Kept.
    Kept,
    /// Each byte of such a run is one U+FFFD, as in Hugging Face `tokenizers` (`ByteFallback`). Only
    /// where tokens such as `<0x0A>` stand for bytes; where all tokens are bytes, nothing is known yet.
    Replaced,
}

impl Broken {
    /// Replaced, or kept.
    pub fn replaced_if(replaced: bool) -> Self {
        if replaced {
            Self::Replaced
        } else {
            Self::Kept
        }
    }
}

/// Appends the bytes of the ids.
pub fn decode(
    model: &Model,
    ids: &[u32],
    skip_special_tokens: bool,
    broken: Broken,
    bytes: &mut Vec<u8>,
    interrupt: &Interrupt<'_>,
) -> Result<()> {
    let mut decoder = Decoder::new(skip_special_tokens, broken);
    decoder.push(model, ids, bytes, interrupt)?;
    decoder.finish(model, bytes);
    Ok(())
}

/// Ids to bytes, some at a time.
pub struct Decoder {
    skip_special_tokens: bool,
    broken: Broken,
    /// The run of tokens for bytes that the last token belongs to.
    run: Vec<u8>,
    /// Whether no token came yet.
    is_first: bool,
    /// Whether no byte left yet.
    is_empty: bool,
}

impl Decoder {
    /// Begins a text.
    pub fn new(skip_special_tokens: bool, broken: Broken) -> Self {
        Self {
            skip_special_tokens,
            broken,
            run: Vec::new(),
            is_first: true,
            is_empty: true,
        }
    }

    /// Appends the bytes of further ids, except those that what follows may change.
    pub fn push(
        &mut self,
        model: &Model,
        ids: &[u32],
        bytes: &mut Vec<u8>,
        interrupt: &Interrupt<'_>,
    ) -> Result<()> {
        let Some(spaces) = &model.settings().spaces else {
            let table = model.decoding_table();
            return table.append(model, ids, self.skip_special_tokens, bytes, interrupt);
        };
        let start = bytes.len();
        for (position, &id) in ids.iter().enumerate() {
            if position % IDS_A_POLL == IDS_A_POLL - 1 {
                interrupt.poll()?;
            }
            let token = match model.added_token(id) {
                Some(token) if token.special && self.skip_special_tokens => continue,
                Some(token) => token.content.as_bytes(),
                None => {
                    let token = model.vocabulary().token(id);
                    token.ok_or(Error::UnknownId { id, position })?
                }
            };
            self.push_spaced(spaces, token, bytes);
        }
        self.strip(Some(spaces), start, bytes);
        Ok(())
    }

    /// Appends what is left, and begins the next text.
    pub fn finish(&mut self, model: &Model, bytes: &mut Vec<u8>) {
        let start = bytes.len();
        self.end_run(bytes);
        self.strip(model.settings().spaces.as_ref(), start, bytes);
        (self.is_first, self.is_empty) = (true, true);
    }

    /// Drops the text's first space, if the model does, and the text begins at `start`.
    fn strip(&mut self, spaces: Option<&Spaces>, start: usize, bytes: &mut Vec<u8>) {
        if self.is_empty && bytes.len() > start {
            self.is_empty = false;
            if spaces.is_some_and(|spaces| spaces.strip == Strip::One) && bytes[start] == b' ' {
                bytes.remove(start);
            }
        }
    }

    /// A token of a model that writes spaces as another character.
    fn push_spaced(&mut self, spaces: &Spaces, token: &[u8], bytes: &mut Vec<u8>) {
        let is_first = std::mem::take(&mut self.is_first);
        if spaces.byte_fallback {
            if let Some(byte) = byte_of(token) {
                self.run.push(byte);
                return;
            }
        }
        self.end_run(bytes);
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
    }

    fn end_run(&mut self, bytes: &mut Vec<u8>) {
        if self.broken == Broken::Replaced && std::str::from_utf8(&self.run).is_err() {
            bytes.extend("\u{fffd}".repeat(self.run.len()).into_bytes());
            self.run.clear();
        } else {
            bytes.append(&mut self.run);
        }
    }
}

/// Ids to text, some at a time: never a part of a character.
pub struct DecodeStream {
    decoder: Decoder,
    /// The beginning of a character.
    held: Vec<u8>,
}

impl DecodeStream {
    /// Begins a text.
    pub fn new(skip_special_tokens: bool, broken: Broken) -> Self {
        Self {
            decoder: Decoder::new(skip_special_tokens, broken),
            held: Vec::new(),
        }
    }

    /// The bytes that further ids complete: whole characters, and what can be no part of one. An unknown
    /// id changes nothing.
    pub fn step(&mut self, model: &Model, ids: &[u32]) -> Result<Vec<u8>> {
        for (position, &id) in ids.iter().enumerate() {
            if model.token(id).is_none() {
                return Err(Error::UnknownId { id, position });
            }
        }
        // Half a step could not be taken back.
        let never = Interrupt::never();
        self.decoder.push(model, ids, &mut self.held, &never)?;
        let rest = self.held.split_off(complete(&self.held));
        Ok(std::mem::replace(&mut self.held, rest))
    }

    /// The bytes that are left; then begins another text.
    pub fn finish(&mut self, model: &Model) -> Vec<u8> {
        self.decoder.finish(model, &mut self.held);
        std::mem::take(&mut self.held)
    }
}

/// How many bytes there are before one that begins a character which is not all here.
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

/// The byte that a token such as `<0x0A>` stands for.
pub(crate) fn byte_of(token: &[u8]) -> Option<u8> {
    let [b'<', b'0', b'x', high, low, b'>'] = token else {
        return None;
    };
    let digit = |digit: &u8| char::from(*digit).to_digit(16);
    u8::try_from(digit(high)? << 4 | digit(low)?).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{Alphabet, Settings};

    fn decoded(strip: Strip, broken: Broken, ids: &[u32]) -> String {
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
        decode(&model, ids, false, broken, &mut bytes, &never).unwrap();
        String::from_utf8_lossy(&bytes["before".len()..]).into_owned()
    }

    #[test]
    fn the_beginning_of_a_character_is_held_back() {
        for (bytes, whole) in [
            (&b""[..], 0),
            (b"a\xe2\x82", 1),
            (b"a\xe2\x82\xac", 4),
            (b"a\xf0\x9f\x98", 1),
            (b"a\xf0\x9f\x98\x80", 5),
            (b"a\xe2\x28", 3), // not the beginning of any character
            (b"a\xe0\x80", 3), // likewise: it would be too long
            (b"\x80\x80\x80", 3),
            (b"a\xff", 2),
        ] {
            assert_eq!(complete(bytes), whole, "{bytes:?}");
        }
    }

    #[test]
    fn spaces_come_back() {
        let ids = [6, 1, 2, 0];
        assert_eq!(decoded(Strip::No, Broken::Kept, &ids), "   ab ");
        assert_eq!(decoded(Strip::One, Broken::Kept, &ids), "  ab ");
        assert_eq!(decoded(Strip::FirstToken, Broken::Kept, &ids), " ab ");
    }

    #[test]
    fn tokens_for_bytes_are_bytes() {
        assert_eq!(
            decoded(Strip::No, Broken::Replaced, &[2, 3, 4, 5, 2]),
            "b▁b"
        );
        assert_eq!(
            decoded(Strip::No, Broken::Replaced, &[3, 4, 2, 5]),
            "\u{fffd}\u{fffd}b\u{fffd}"
        );
        assert_eq!(
            decoded(Strip::No, Broken::Kept, &[3, 4, 2]),
            "\u{fffd}b" // one, of what decodes bytes afterwards
        );
    }
}
