//! Text that comes some at a time to ids: exactly those of the whole text, as soon as they are certain.

use super::{Encoder, Matchers, Part, Run, Search, Special, Text};
use crate::error::Result;
use crate::interrupt::Interrupt;
use crate::normalizers::IncrementalNormalizer;
use crate::pretokenize::{IncrementalSplitter, PieceCutter};
use crate::special::{LeftContext, Matcher, StableMatches};
use std::sync::Arc;

/// A text that comes some at a time, on its way through the stages of an encoder.
///
/// It holds back what a continuation could change: what may become an added token, a character that what
/// follows may be composed with, a piece that may go on. Where a step has to see all of the text between
/// added tokens (a pattern that only the regex engine can run), it holds all of that.
pub struct EncodeStream {
    matchers: Arc<Matchers>,
    given: OpenText,
    rest: Rest,
}

/// What happens to the text between the added tokens that are looked for in the text as given.
struct Rest {
    stages: Stages,
    special: Special,
    /// Whether nothing came yet.
    is_first: bool,
}

enum Stages {
    Open(Box<OpenStages>),
    /// The text since the last added token: some stage has to see all of it.
    Held(String),
}

struct OpenStages {
    normalizing: IncrementalNormalizer,
    normalized: OpenText,
    pieces: IncrementalSplitter,
}

impl EncodeStream {
    /// Begins a text, for this encoder only.
    pub fn new(encoder: &Encoder, special: &Special) -> Result<Self> {
        Ok(Self {
            matchers: encoder.matchers(special)?,
            given: OpenText::default(),
            rest: Rest {
                stages: Stages::new(encoder),
                special: special.clone(),
                is_first: true,
            },
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
        self.rest.is_first = true;
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
        let Self {
            matchers,
            given,
            rest,
        } = self;
        encoder.workspaces.with(|workspace| {
            let mut run = Run::new(encoder, workspace, interrupt);
            given.next(&matchers.given, text, ends, &mut |next| match next {
                Next::Text(text) => rest.advance(matchers, text, false, &mut run, ids),
                Next::End => rest.advance(matchers, "", true, &mut run, ids),
                Next::Added(id) => {
                    rest.advance(matchers, "", true, &mut run, ids)?;
                    ids.push(id);
                    rest.is_first = false;
                    Ok(())
                }
            })
        })
    }
}

impl Stages {
    fn new(encoder: &Encoder) -> Self {
        let places = encoder.pre_tokenizers.needs_offsets() && !encoder.normalizers.is_empty();
        let normalizing = IncrementalNormalizer::new(&encoder.normalizers);
        let pieces = IncrementalSplitter::new(&encoder.pre_tokenizers);
        match (normalizing, pieces) {
            (Some(normalizing), Some(pieces)) if !places => Self::Open(Box::new(OpenStages {
                normalizing,
                normalized: OpenText::default(),
                pieces,
            })),
            _ => Self::Held(String::new()),
        }
    }
}

impl Rest {
    fn advance(
        &mut self,
        matchers: &Matchers,
        text: &str,
        ends: bool,
        run: &mut Run<'_>,
        ids: &mut Vec<u32>,
    ) -> Result<()> {
        let encoder = run.encoder;
        match &mut self.stages {
            Stages::Open(stages) => {
                stages.advance(matchers, text, ends, &mut self.is_first, run, ids)
            }
            Stages::Held(held) => {
                held.push_str(text);
                if !ends || held.is_empty() {
                    return Ok(());
                }
                let held = std::mem::take(held);
                let base = usize::from(!std::mem::take(&mut self.is_first));
                let (stretch, search) = (Text::Str(&held), Search::from(&self.special));
                let mut part = |part: Part<'_>| run.part(part, usize::MAX, ids);
                encoder
                    .between(stretch, base, matchers, search, false, &mut part)
                    .map(|_| ())
            }
        }
    }
}

impl OpenStages {
    fn advance(
        &mut self,
        matchers: &Matchers,
        text: &str,
        ends: bool,
        is_first: &mut bool,
        run: &mut Run<'_>,
        ids: &mut Vec<u32>,
    ) -> Result<()> {
        let encoder = run.encoder;
        let Self {
            normalizing,
            normalized,
            pieces,
        } = self;
        let text = normalizing.push(&encoder.normalizers, text, ends)?;
        let mut split = |text: &str, ends: bool, is_first: &mut bool, ids: &mut Vec<u32>| {
            let cutter = encoder
                .joins
                .as_ref()
                .map(|joins| joins as &dyn PieceCutter);
            let piece = &mut |text: &[u8], range| run.piece(text, range, ids);
            let pre_tokenizers = &encoder.pre_tokenizers;
            pieces.push(pre_tokenizers, text, *is_first, ends, cutter, piece)?;
            *is_first &= text.is_empty();
            run.outcome()
        };
        normalized.next(&matchers.normalized, &text, ends, &mut |next| match next {
            Next::Text(text) => split(text, false, is_first, ids),
            Next::End => split("", true, is_first, ids),
            Next::Added(id) => {
                split("", true, is_first, ids)?;
                ids.push(id);
                *is_first = false;
                Ok(())
            }
        })
    }
}

/// Text in which added tokens are looked for as it comes.
#[derive(Default)]
struct OpenText {
    pending: String,
    before: LeftContext,
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

impl OpenText {
    /// Calls `take` with what is certain.
    fn next(
        &mut self,
        matcher: &Matcher,
        text: &str,
        ends: bool,
        take: &mut dyn FnMut(Next<'_>) -> Result<()>,
    ) -> Result<()> {
        if matcher.is_empty() {
            if !text.is_empty() {
                take(Next::Text(text))?;
            }
        } else {
            self.pending.push_str(text);
            self.take(matcher, ends, take)?;
        }
        if ends {
            *self = Self::default();
            take(Next::End)?;
        }
        Ok(())
    }

    fn take(
        &mut self,
        matcher: &Matcher,
        ends: bool,
        take: &mut dyn FnMut(Next<'_>) -> Result<()>,
    ) -> Result<()> {
        let text = self.pending.as_str();
        let StableMatches { found, end, resume } = if ends {
            let found = matcher.find_after(text.as_bytes(), self.before);
            let (end, resume) = (text.len(), text.len());
            StableMatches {
                found: found.collect(),
                end,
                resume,
            }
        } else {
            matcher.find_stable(text, self.before)
        };
        let mut done = self.before.taken;
        for found in found {
            if done < found.range.start {
                take(Next::Text(&text[done..found.range.start]))?;
            }
            take(Next::Added(found.id))?;
            done = found.range.end;
        }
        if done < end {
            take(Next::Text(&text[done..end]))?;
        }
        self.before = LeftContext {
            character: text[..resume].chars().next_back().or(self.before.character),
            taken: end - resume,
        };
        self.pending.drain(..resume);
        Ok(())
    }
}
