//! The symbols that merging begins with: one a byte or one a character, and what replaces those without a
//! token.
//!
//! The rules are those of Hugging Face `tokenizers` (`BPE::merge_word`).

use crate::model::{Alphabet, Model, Unknown, NONE};
use crate::text::code_point;

/// Maps bytes or characters to the ids that merging begins with.
pub struct Symbols {
    alphabet: Alphabet,
    /// The tokens of single bytes, or of ASCII characters.
    single: Box<[u32; 256]>,
    /// The byte tokens that replace a character without a token.
    fallback: Option<Box<[u32; 256]>>,
    unknown: Unknown,
    are_bytes: bool,
}

impl Symbols {
    /// Looks up the tokens of single bytes or characters.
    pub fn new(model: &Model) -> Self {
        let settings = model.settings();
        let vocabulary = model.vocabulary();
        let mut single = Box::new([NONE; 256]);
        let bytes = match settings.alphabet {
            Alphabet::Bytes => 0..=255,
            Alphabet::Characters => 0..=127,
        };
        for byte in bytes {
            single[usize::from(byte)] = vocabulary.id(&[byte]).unwrap_or(NONE);
        }
        let falls_back = settings.byte_fallback && settings.alphabet == Alphabet::Characters;
        let fallback = falls_back.then(|| {
            let id = |byte| vocabulary.id(format!("<0x{byte:02X}>").as_bytes());
            Box::new(std::array::from_fn(|byte| id(byte).unwrap_or(NONE)))
        });
        Self {
            are_bytes: settings.alphabet == Alphabet::Bytes && !single.contains(&NONE),
            alphabet: settings.alphabet,
            single,
            fallback,
            unknown: settings.unknown,
        }
    }

    /// Whether the symbols of every piece are the tokens of its bytes.
    pub fn are_bytes(&self) -> bool {
        self.are_bytes
    }

    /// The token of one byte (of an ASCII character), or `NONE`.
    #[inline(always)]
    pub fn single(&self, byte: u8) -> u32 {
        self.single[usize::from(byte)]
    }

    /// Calls `symbol` with each symbol of a piece, `NONE` for a gap, and the number of bytes it covers.
    pub fn for_each(&self, model: &Model, piece: &[u8], mut symbol: impl FnMut(u32, usize)) {
        // Unknown characters may fuse with later ones, so their bytes wait for a known one. As in
        // `merge_word`, byte fallback does not end the wait.
        let mut unknown_bytes = 0;
        let flush = |unknown_bytes: &mut usize, symbol: &mut dyn FnMut(u32, usize)| {
            let width = std::mem::take(unknown_bytes);
            if let (Unknown::Token { id, .. }, 1..) = (self.unknown, width) {
                symbol(id, width);
            }
        };
        let mut at = 0;
        while at < piece.len() {
            let width = match self.alphabet {
                Alphabet::Bytes => 1,
                Alphabet::Characters => code_point(piece, at).1,
            };
            let character = &piece[at..at + width];
            at += width;
            let id = match character {
                [byte] => self.single(*byte),
                _ => model.vocabulary().id(character).unwrap_or(NONE),
            };
            if id != NONE {
                flush(&mut unknown_bytes, &mut symbol);
                symbol(id, width);
            } else if let Some(bytes) = self.byte_tokens(character) {
                for id in bytes {
                    symbol(id, 1);
                }
            } else {
                match self.unknown {
                    Unknown::Dropped => {}
                    Unknown::Gap => symbol(NONE, width),
                    Unknown::Token { fuse, .. } => {
                        if !fuse {
                            flush(&mut unknown_bytes, &mut symbol);
                        }
                        unknown_bytes += width;
                    }
                }
            }
        }
        flush(&mut unknown_bytes, &mut symbol);
    }

    /// The byte tokens of a character, if the model has all of them.
    fn byte_tokens<'a>(&'a self, character: &'a [u8]) -> Option<impl Iterator<Item = u32> + 'a> {
        let tokens = self.fallback.as_ref()?;
        let ids = character.iter().map(|&byte| tokens[usize::from(byte)]);
        (!ids.clone().any(|id| id == NONE)).then_some(ids)
    }
}
