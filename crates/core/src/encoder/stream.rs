//! Text that comes some at a time to ids: exactly those of the whole text, as soon as they are certain.

use super::{Encoder, Matchers, Part, Run, Search, Special, Text};
use crate::error::Result;
use crate::interrupt::Interrupt;
use crate::normalizers::OpenTexts;
use crate::pretokenize::OpenPieces;
use crate::special::{Before, Certain, Matcher};
use std::sync::Arc;

/// A text that comes some at a time, on its way through the stages of an encoder.
///
/// It holds back what a continuation could change: what may become an added token, a character that what
/// follows may be composed with, a piece that may go on. Where a step has to see all of the text between
/// added tokens (a pattern that only the regex engine can run), it holds all of that.
pub struct EncodeStream {
    special: Special,
    matchers: Arc<Matchers>,
    given: OpenText,
    stages: Stages,
    /// Whether nothing came yet.
    is_first: bool,
}

/// The stages between the two kinds of added tokens, and after the second.
enum Stages {
    Open(Box<OpenStages>),
    /// The text since the last added token: some stage has to see all of it.
    Held(String),
}

struct OpenStages {
    normalizing: OpenTexts,
    normalized: OpenText,
    pieces: OpenPieces,
}

impl EncodeStream {
    /// Begins a text, for this encoder only.
    pub fn new(encoder: &Encoder, special: &Special) -> Result<Self> {
        Ok(Self {
            special: special.clone(),
            matchers: encoder.matchers(special)?,
            given: OpenText::default(),
            stages: Stages::new(encoder),
            is_first: true,
        })
    }

    /// Takes what came next, and appends the ids that are certain.
    pub fn push(
        &mut self,
        encoder: &Encoder,
        text: &str,
        ids: &mut Vec<u32>,
        interrupt: &Interrupt<'_>,
    ) -> Result<()> {
        self.advance(encoder, text, false, ids, interrupt)
    }

    /// Appends the ids that are left, and begins another text.
    pub fn finish(
        &mut self,
        encoder: &Encoder,
        ids: &mut Vec<u32>,
        interrupt: &Interrupt<'_>,
    ) -> Result<()> {
        self.advance(encoder, "", true, ids, interrupt)?;
        self.is_first = true;
        Ok(())
    }

    fn advance(
        &mut self,
        encoder: &Encoder,
        text: &str,
        ends: bool,
        ids: &mut Vec<u32>,
        interrupt: &Interrupt<'_>,
    ) -> Result<()> {
        let matchers = self.matchers.clone();
        encoder.caches.with(|cache| {
            let mut run = Run::new(encoder, cache, interrupt);
            self.given.next(&matchers.given, text, ends, &mut |part| {
                let (text, ends) = part.text_and_end();
                self.stages.advance(
                    &matchers,
                    &self.special,
                    text,
                    ends,
                    &mut self.is_first,
                    &mut run,
                    ids,
                )?;
                part.push_id(ids, &mut self.is_first);
                Ok(())
            })
        })
    }
}

impl Stages {
    fn new(encoder: &Encoder) -> Self {
        let places = encoder.pre_tokenizers.asks_for_places() && !encoder.normalizers.is_empty();
        match (encoder.normalizers.open(), encoder.pre_tokenizers.open()) {
            (Some(normalizing), Some(pieces)) if !places => Self::Open(Box::new(OpenStages {
                normalizing,
                normalized: OpenText::default(),
                pieces,
            })),
            _ => Self::Held(String::new()),
        }
    }

    /// Takes what came next of a text without added tokens of the first kind.
    #[allow(clippy::too_many_arguments)] // the state of a call, and of the stream
    fn advance(
        &mut self,
        matchers: &Matchers,
        special: &Special,
        text: &str,
        ends: bool,
        is_first: &mut bool,
        run: &mut Run<'_>,
        ids: &mut Vec<u32>,
    ) -> Result<()> {
        let encoder = run.encoder;
        match self {
            Self::Held(held) => {
                held.push_str(text);
                if ends && !held.is_empty() {
                    let base = usize::from(!std::mem::take(is_first));
                    let stretch = Text::Str(held);
                    let search = Search::from(special);
                    encoder.between(stretch, base, matchers, search, false, &mut |part| {
                        match part {
                            Part::Added(found) => ids.push(found.id),
                            Part::Text(segment) => {
                                encoder.split(&segment, false, |text, range, _| {
                                    run.piece(text, range, ids)
                                })?;
                                run.outcome()?;
                            }
                        }
                        Ok(true)
                    })?;
                    held.clear();
                }
                Ok(())
            }
            Self::Open(stages) => {
                let OpenStages {
                    normalizing,
                    normalized,
                    pieces,
                } = &mut **stages;
                let text = encoder.normalizers.apply_next(normalizing, text, ends)?;
                normalized.next(&matchers.normalized, &text, ends, &mut |part| {
                    let (text, ends) = part.text_and_end();
                    encoder.pre_tokenizers.split_next(
                        pieces,
                        text,
                        *is_first,
                        ends,
                        encoder.joins.as_ref(),
                        &mut |text, range| run.piece(text, range, ids),
                    )?;
                    run.outcome()?;
                    *is_first &= text.is_empty();
                    part.push_id(ids, is_first);
                    Ok(())
                })
            }
        }
    }
}

/// Text in which added tokens are looked for as it comes.
#[derive(Default)]
struct OpenText {
    pending: String,
    before: Before,
}

/// What was found in it.
enum Next<'a> {
    /// Text without added tokens, which may go on.
    Text(&'a str),
    /// An added token, which ends the text before it.
    Added(u32),
    /// The end.
    End,
}

impl Next<'_> {
    /// Text for the next stage, and whether it ends there.
    fn text_and_end(&self) -> (&str, bool) {
        match self {
            Next::Text(text) => (text, false),
            Next::Added(_) | Next::End => ("", true),
        }
    }

    fn push_id(&self, ids: &mut Vec<u32>, is_first: &mut bool) {
        if let Next::Added(id) = self {
            ids.push(*id);
            *is_first = false;
        }
    }
}

impl OpenText {
    /// Calls `part` with what is certain.
    fn next(
        &mut self,
        matcher: &Matcher,
        text: &str,
        ends: bool,
        part: &mut dyn FnMut(Next<'_>) -> Result<()>,
    ) -> Result<()> {
        if matcher.is_empty() {
            if !text.is_empty() {
                part(Next::Text(text))?;
            }
        } else {
            self.pending.push_str(text);
            self.take(matcher, ends, part)?;
        }
        if ends {
            *self = Self::default();
            part(Next::End)?;
        }
        Ok(())
    }

    fn take(
        &mut self,
        matcher: &Matcher,
        ends: bool,
        part: &mut dyn FnMut(Next<'_>) -> Result<()>,
    ) -> Result<()> {
        let text = self.pending.as_str();
        let Certain { found, end, resume } = if ends {
            let found = matcher.find_after(text.as_bytes(), self.before);
            let (end, resume) = (text.len(), text.len());
            Certain {
                found: found.collect(),
                end,
                resume,
            }
        } else {
            matcher.find_certain(text, self.before)
        };
        let mut done = self.before.taken;
        for found in found {
            if done < found.range.start {
                part(Next::Text(&text[done..found.range.start]))?;
            }
            part(Next::Added(found.id))?;
            done = found.range.end;
        }
        if done < end {
            part(Next::Text(&text[done..end]))?;
        }
        self.before = Before {
            character: text[..resume].chars().next_back().or(self.before.character),
            taken: end - resume,
        };
        self.pending.drain(..resume);
        Ok(())
    }
}
