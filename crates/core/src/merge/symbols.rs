//! The symbols that merging a piece begins with: one a byte or one a character, and what stands for
//! those that have no token.
//!
//! The rules are those of Hugging Face `tokenizers` (`BPE::merge_word`).

use crate::model::{Alphabet, Model, Unknown, NONE};
use crate::text::code_point;

/// From bytes or characters to the ids that merging begins with.
pub struct Symbols {
    alphabet: Alphabet,
    /// The tokens of single bytes, or of ASCII characters.
    single: Box<[u32; 256]>,
    /// The tokens that stand for bytes in the place of a character that is no token.
    fallback: Option<Box<[u32; 256]>>,
    unknown: Unknown,
    is_total: bool,
}

impl Symbols {
    /// Looks the single tokens up.
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
            is_total: settings.alphabet == Alphabet::Bytes && !single.contains(&NONE),
            alphabet: settings.alphabet,
            single,
            fallback,
            unknown: settings.unknown,
        }
    }

    /// Whether every byte has a token, so that a piece's symbols are its bytes'.
    pub fn is_total(&self) -> bool {
        self.is_total
    }

    /// The token of a piece of one byte, or NONE if it takes a closer look.
    #[inline(always)]
    pub fn single(&self, byte: u8) -> u32 {
        self.single[usize::from(byte)]
    }

    /// Calls `symbol` with each symbol of a piece, NONE for a gap, and the number of bytes that it stands
    /// for.
    pub fn of(&self, model: &Model, piece: &[u8], mut symbol: impl FnMut(u32, usize)) {
        // Bytes of unknown characters wait for a known one, as they may fuse; what falls back to bytes
        // overtakes them.
        let mut waiting = 0;
        let flush = |waiting: &mut usize, symbol: &mut dyn FnMut(u32, usize)| {
            let width = std::mem::take(waiting);
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
                flush(&mut waiting, &mut symbol);
                symbol(id, width);
            } else if let Some(bytes) = self.fall_back(character) {
                for id in bytes {
                    symbol(id, 1);
                }
            } else {
                match self.unknown {
                    Unknown::Dropped => {}
                    Unknown::Gap => symbol(NONE, width),
                    Unknown::Token { fuse, .. } => {
                        if !fuse {
                            flush(&mut waiting, &mut symbol);
                        }
                        waiting += width;
                    }
                }
            }
        }
        flush(&mut waiting, &mut symbol);
    }

    /// The tokens of a character's bytes, if each has one.
    fn fall_back<'a>(&'a self, character: &'a [u8]) -> Option<impl Iterator<Item = u32> + 'a> {
        let tokens = self.fallback.as_ref()?;
        let ids = character.iter().map(|&byte| tokens[usize::from(byte)]);
        (!ids.clone().any(|id| id == NONE)).then_some(ids)
    }
}
