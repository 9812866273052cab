//! A loaded tokenizer and its operations.

use crate::answer::Answer;
use crate::utf16::Utf16Positions;
use bpe_tokenizer_core::encoder::{FoundToken, Origin, Special};
use bpe_tokenizer_core::error::utf8;
use bpe_tokenizer_core::model::{fallback_byte, NONE};
use bpe_tokenizer_core::normalizers::Normalizer;
use bpe_tokenizer_core::pretokenize::PreTokenizer;
use bpe_tokenizer_core::reserve::push;
use bpe_tokenizer_core::roles::find_roles;
use bpe_tokenizer_core::text::Text;
use bpe_tokenizer_core::{Encoder, Error, Interrupt, Model, Result};
use serde_json::{json, Value};
use std::collections::BTreeMap;

/// Flags of a token.
const ADDED: u8 = 1;
const SPECIAL: u8 = 2;
const PIECE_START: u8 = 4;
const STARTS_INSIDE_CHARACTER: u8 = 8;
const ENDS_INSIDE_CHARACTER: u8 = 16;

/// Special tokens that a chat adds, with their ids.
pub(crate) type AddedIds = Vec<(String, u32)>;

/// A tokenizer, with memory that its calls use in turn.
pub struct Tokenizer {
    pub(crate) encoder: Encoder,
    pub(crate) roles: BTreeMap<String, String>,
    ids: Vec<u32>,
    pub(crate) found: FoundTokens,
    /// This tokenizer with the special tokens that the last chat added.
    pub(crate) extended: Option<(AddedIds, Box<Tokenizer>)>,
}

/// The tokens of a text, in columns.
#[derive(Default)]
pub(crate) struct FoundTokens {
    pub ids: Vec<u32>,
    pub starts: Vec<u32>,
    pub ends: Vec<u32>,
    pub byte_starts: Vec<u32>,
    pub byte_ends: Vec<u32>,
    pub flags: Vec<u8>,
    pub pieces: Vec<u32>,
    pub piece_bytes: Vec<u32>,
}

impl FoundTokens {
    pub fn clear(&mut self) {
        self.ids.clear();
        self.byte_starts.clear();
        self.byte_ends.clear();
        self.flags.clear();
        self.pieces.clear();
        self.piece_bytes.clear();
    }

    /// Adds a token of a text.
    pub fn push(&mut self, model: &Model, text: &str, token: &FoundToken) -> Result<()> {
        let (start, end) = (token.span.start, token.span.end);
        let mut flags = 0;
        let piece = match token.origin {
            Origin::Added => Some(start),
            Origin::PieceStart(byte) => Some(byte),
            Origin::PieceRest => None,
        };
        if let Some(byte) = piece {
            flags |= PIECE_START;
            push(&mut self.pieces, self.ids.len() as u32)?;
            push(&mut self.piece_bytes, byte as u32)?;
        }
        if token.origin == Origin::Added {
            flags |= ADDED;
            if model.is_special(token.id) {
                flags |= SPECIAL;
            }
        }
        if !text.is_char_boundary(start) {
            flags |= STARTS_INSIDE_CHARACTER;
        }
        if !text.is_char_boundary(end) {
            flags |= ENDS_INSIDE_CHARACTER;
        }
        push(&mut self.ids, token.id)?;
        push(&mut self.byte_starts, start as u32)?;
        push(&mut self.byte_ends, end as u32)?;
        push(&mut self.flags, flags)
    }

    /// Computes the positions in UTF-16. In a text of `units`, which are its bytes if it is ASCII, both are equal.
    pub fn locate(&mut self, text: &str, units: usize) {
        if text.len() == units {
            self.starts.clone_from(&self.byte_starts);
            self.ends.clone_from(&self.byte_ends);
            return;
        }
        let mut positions = Utf16Positions::new(text);
        let starts = self.byte_starts.iter();
        self.starts.clear();
        self.starts
            .extend(starts.map(|&byte| positions.floor(byte as usize)));
        let mut positions = Utf16Positions::new(text);
        let ends = self.byte_ends.iter();
        self.ends.clear();
        self.ends
            .extend(ends.map(|&byte| positions.ceil(byte as usize)));
    }

    pub fn answer(&self, answer: &mut Answer) {
        answer.add_words(&self.ids);
        answer.add_words(&self.starts);
        answer.add_words(&self.ends);
        answer.add_words(&self.byte_starts);
        answer.add_words(&self.byte_ends);
        answer.add_bytes(&self.flags);
        answer.add_words(&self.pieces);
        answer.add_words(&self.piece_bytes);
    }
}

/// A text that JavaScript wrote.
pub(crate) fn text(bytes: &[u8]) -> Result<&str> {
    utf8(bytes, 0, || "the text".to_owned())
}

impl Tokenizer {
    /// Compiles a model.
    pub fn new(model: Model, roles: BTreeMap<String, String>) -> Result<Self> {
        Ok(Self {
            encoder: Encoder::new(model)?,
            roles,
            ids: Vec::new(),
            found: FoundTokens::default(),
            extended: None,
        })
    }

    /// Compiles a model. The names of its special tokens tell their roles.
    pub fn with_named_roles(model: Model) -> Result<Self> {
        let special = model.added().iter().filter(|token| token.special);
        let roles = find_roles(special.map(|token| token.content.as_str()));
        Self::new(model, roles)
    }

    fn model(&self) -> &Model {
        self.encoder.model()
    }

    /// What people want to know about the tokenizer.
    pub fn info(&self) -> Value {
        let (model, settings) = (self.model(), self.model().settings());
        let added = model.added().iter().map(|token| {
            json!({
                "id": token.id,
                "content": token.content,
                "special": token.special,
            })
        });
        let patterns = settings
            .pre_tokenizers
            .iter()
            .filter_map(|step| match step {
                PreTokenizer::Split(split) | PreTokenizer::SplitBytes(split) => {
                    Some(split.pattern.as_str())
                }
                _ => None,
            });
        let normalizers = settings.normalizers.iter().map(|step| match step {
            Normalizer::Form(form) => form.to_string(),
            Normalizer::Lowercase => "lower case".to_owned(),
            Normalizer::StripAccents => "accents removed".to_owned(),
            Normalizer::Strip { .. } => "white space stripped".to_owned(),
            Normalizer::Prepend { prepend } => format!("{prepend} prepended"),
            Normalizer::Replace { pattern, content } => format!("{pattern} → {content}"),
        });
        json!({
            "vocabSize": model.len(),
            "nextId": model.n_vocab(),
            "patterns": patterns.collect::<Vec<_>>(),
            "normalizers": normalizers.collect::<Vec<_>>(),
            "addedTokens": added.collect::<Vec<_>>(),
            "alphabet": settings.alphabet,
            "merges": model.merges().len(),
            "roles": self.roles,
        })
    }

    /// The ids of a text.
    pub fn ids(&mut self, bytes: &[u8], special: &Special, answer: &mut Answer) -> Result<()> {
        let (text, never) = (Text::Str(text(bytes)?), Interrupt::never());
        self.ids.clear();
        self.encoder.encode(text, special, &mut self.ids, &never)?;
        answer.add_words(&self.ids);
        Ok(())
    }

    /// The tokens of a text, which has `units` code units in UTF-16.
    pub fn encode(
        &mut self,
        bytes: &[u8],
        units: usize,
        special: &Special,
        answer: &mut Answer,
    ) -> Result<()> {
        let text = text(bytes)?;
        let (found, model) = (&mut self.found, self.encoder.model());
        found.clear();
        let never = Interrupt::never();
        let token = |token: FoundToken| found.push(model, text, &token);
        self.encoder
            .encode_with_pieces(text, special, &never, token)?;
        found.locate(text, units);
        found.answer(answer);
        Ok(())
    }

    /// The number of ids of a text.
    pub fn count(&self, bytes: &[u8], special: &Special, answer: &mut Answer) -> Result<()> {
        let (text, never) = (Text::Str(text(bytes)?), Interrupt::never());
        let count = self.encoder.count(text, special, &never)?;
        answer.own_words(vec![count as u32]);
        Ok(())
    }

    /// The bytes of ids, concatenated, and where each begins and the last one ends.
    pub fn token_table(&self, ids: &[u32], answer: &mut Answer) -> Result<()> {
        let (mut offsets, mut bytes) = (vec![0], Vec::new());
        for (position, &id) in ids.iter().enumerate() {
            let model = self.model();
            let token = model.token(id).ok_or(Error::UnknownId { id, position })?;
            let is_added = model.added_token(id).is_some();
            match self.fallback_byte(token).filter(|_| !is_added) {
                Some(byte) => push(&mut bytes, byte)?,
                None => bytes.extend_from_slice(token),
            }
            offsets.push(bytes.len() as u32);
        }
        answer.own_words(offsets);
        answer.own_bytes(bytes);
        Ok(())
    }

    /// The byte of a token such as `<0x0A>`, if the tokenizer has such tokens.
    fn fallback_byte(&self, token: &[u8]) -> Option<u8> {
        let settings = self.model().settings();
        let decodes = settings.spaces.as_ref().is_some_and(|it| it.byte_fallback);
        (settings.byte_fallback || decodes)
            .then(|| fallback_byte(token))
            .flatten()
    }

    /// The merges of a piece: the symbols (NONE for a gap), six numbers for each merge, the ids, whether the piece is a
    /// token that is taken without merging.
    pub fn trace(&self, piece: &[u8], answer: &mut Answer) -> Result<()> {
        let trace = self.encoder.merger().trace(piece, &Interrupt::never())?;
        let symbols = trace.symbols.iter().map(|symbol| symbol.unwrap_or(NONE));
        answer.own_words(symbols.collect());
        let steps = trace.steps.iter().flat_map(|step| {
            let [rank, left, right] = [step.rank, step.left, step.right].map(|it| it as u32);
            [
                rank,
                left,
                right,
                step.left_id,
                step.right_id,
                step.token_id,
            ]
        });
        answer.own_words(steps.collect());
        answer.own_words(trace.ids);
        answer.own_words(vec![u32::from(trace.is_whole)]);
        Ok(())
    }
}
