//! The segments of a chat, from JavaScript.

use crate::answer::Answer;
use crate::tokenizer::{text, Tokenizer};
use bpe_tokenizer_core::encoder::{Segments, Special};
use bpe_tokenizer_core::special::AddedToken;
use bpe_tokenizer_core::{Error, Interrupt, Result};
use serde::Deserialize;

/// A rendered conversation.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Chat {
    /// The size of each segment in bytes, and whether the template wrote it.
    segments: Vec<(usize, bool)>,
    /// All text that the template may write as markup.
    source: String,
    /// Special tokens that the tokenizer lacks, with the ids that they get.
    added: Vec<(String, u32)>,
}

impl Tokenizer {
    /// The tokens of segments, whose texts are concatenated, the segment of each token, and the control tokens.
    pub fn encode_segments(
        &mut self,
        chat: &Chat,
        bytes: &[u8],
        answer: &mut Answer,
    ) -> Result<()> {
        let tokenizer = self.adding(&chat.added)?;
        let text = text(bytes)?;
        let segments = Segments::new(text, &chat.segments)?;
        let encoder = &tokenizer.encoder;
        let may_write = |text: &str| Ok::<_, Error>(chat.source.contains(text));
        let mut markup = encoder.markup_tokens(&segments, may_write)?;
        let never = Interrupt::never();
        let tokens =
            encoder.encode_segments(&segments, &Special::All, &mut markup, true, &never)?;
        tokenizer.found.clear();
        let mut places: Vec<u32> = Vec::new();
        for token in &tokens {
            tokenizer.found.push(encoder.model(), text, token)?;
            places.push(segments.covered(token).0 as u32);
        }
        tokenizer.found.locate(text, text.encode_utf16().count());
        tokenizer.found.answer(answer);
        answer.own_words(places);
        let added = encoder.model().added().iter();
        let control = added.filter(|it| it.special || markup.contains(&it.content));
        answer.own_words(control.map(|token| token.id).collect());
        Ok(())
    }

    /// This tokenizer with further special tokens. The last such tokenizer is kept.
    fn adding(&mut self, tokens: &[(String, u32)]) -> Result<&mut Self> {
        if tokens.is_empty() {
            return Ok(self);
        }
        let kept = self.extended.take().filter(|(known, _)| known == tokens);
        let made = match kept {
            Some((_, made)) => made,
            None => {
                let model = self.encoder.model();
                let mut added = model.added().to_vec();
                added.extend(
                    tokens
                        .iter()
                        .map(|(text, id)| AddedToken::special(text, *id)),
                );
                let (model, roles) = (model.with_added(added)?, self.roles.clone());
                Box::new(Self::new(model, roles)?)
            }
        };
        Ok(&mut self.extended.insert((tokens.to_vec(), made)).1)
    }
}
