//! Ids to bytes.

use crate::error::{Error, Result};
use crate::model::{Model, Spaces, Strip};

/// What becomes of tokens for bytes that are not UTF-8 together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Broken {
    /// Kept.
    Kept,
    /// Each byte of such a run is one U+FFFD, as in Hugging Face `tokenizers` (`ByteFallback`). Only
    /// where tokens such as `<0x0A>` stand for bytes; where all tokens are bytes, nothing is known yet.
    Replaced,
}

/// Appends the bytes of the ids.
pub fn decode(
    model: &Model,
    ids: &[u32],
    skip_special_tokens: bool,
    broken: Broken,
    bytes: &mut Vec<u8>,
) -> Result<()> {
    let mut spaced = model
        .settings()
        .spaces
        .as_ref()
        .map(|spaces| Spaced::new(spaces, broken, bytes.len()));
    let has_added = !model.added().is_empty();
    for (position, &id) in ids.iter().enumerate() {
        let added = if has_added {
            model.added_token(id)
        } else {
            None
        };
        let token = match added {
            Some(token) if token.special && skip_special_tokens => continue,
            Some(token) => token.content.as_bytes(),
            None => {
                let token = model.vocabulary().token(id);
                token.ok_or(Error::UnknownId { id, position })?
            }
        };
        match &mut spaced {
            Some(spaced) => spaced.push(token, bytes),
            None => bytes.extend_from_slice(token),
        }
    }
    if let Some(spaced) = spaced {
        spaced.finish(bytes);
    }
    Ok(())
}

/// Puts tokens together that write spaces as another character.
struct Spaced<'a> {
    spaces: &'a Spaces,
    broken: Broken,
    /// Where the text begins in the output.
    start: usize,
    /// Where the run of tokens for bytes begins in the output that the last token belongs to.
    run: Option<usize>,
    is_first: bool,
}

impl<'a> Spaced<'a> {
    fn new(spaces: &'a Spaces, broken: Broken, start: usize) -> Self {
        Self {
            spaces,
            broken,
            start,
            run: None,
            is_first: true,
        }
    }

    fn push(&mut self, token: &[u8], bytes: &mut Vec<u8>) {
        let is_first = std::mem::take(&mut self.is_first);
        if self.spaces.byte_fallback {
            if let Some(byte) = byte_of(token) {
                self.run.get_or_insert(bytes.len());
                bytes.push(byte);
                return;
            }
        }
        self.end_run(bytes);
        let mut space = [0; 4];
        let space = self.spaces.space.encode_utf8(&mut space).as_bytes();
        let drop = is_first && self.spaces.strip == Strip::FirstToken;
        let mut done = 0;
        for at in memchr::memmem::find_iter(token, space) {
            bytes.extend_from_slice(&token[done..at]);
            bytes.extend((!drop).then_some(b' '));
            done = at + space.len();
        }
        bytes.extend_from_slice(&token[done..]);
    }

    fn end_run(&mut self, bytes: &mut Vec<u8>) {
        let Some(start) = self.run.take() else {
            return;
        };
        let length = bytes.len() - start;
        if self.broken == Broken::Replaced && std::str::from_utf8(&bytes[start..]).is_err() {
            bytes.truncate(start);
            bytes.extend("\u{fffd}".repeat(length).into_bytes());
        }
    }

    fn finish(mut self, bytes: &mut Vec<u8>) {
        self.end_run(bytes);
        if self.spaces.strip == Strip::One && bytes.get(self.start) == Some(&b' ') {
            bytes.remove(self.start);
        }
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
        decode(&model, ids, false, broken, &mut bytes).unwrap();
        String::from_utf8_lossy(&bytes["before".len()..]).into_owned()
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
