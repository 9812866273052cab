//! The steps of normalisation in sequence: each rewrites the output of the previous one.
//!
//! The steps and their details are those of Hugging Face `tokenizers` (its `normalizers` module).

use crate::alignment::{prepend, Alignment, Rewriting, Rewritten};
use crate::error::Result;
use crate::interrupt::{Interrupt, Poller};
use crate::normalize::Normalization;
use crate::pretokenize::SplitPattern;
use crate::text::{last_character, Text};
use std::borrow::Cow;
use std::ops::Range;
use unicode_normalization::char::is_combining_mark;

/// A step: as a model describes it, or with its pattern `P` compiled.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Normalizer<P = String> {
    /// Applies a Unicode normalisation form.
    Form(Normalization),
    /// Replaces each character by its lower case, independently of its neighbours.
    Lowercase,
    /// Drops combining marks.
    StripAccents,
    /// Drops white space at the ends.
    Strip {
        /// At the beginning.
        left: bool,
        /// At the end.
        right: bool,
    },
    /// Prepends a text.
    Prepend(String),
    /// Replaces every match of a regular expression.
    Replace {
        /// The regular expression.
        pattern: P,
        /// The replacement, literally.
        content: String,
    },
}

/// A compiled step.
type Step = Normalizer<Box<SplitPattern>>;

/// The compiled steps.
pub struct Normalizers {
    steps: Vec<Step>,
}

impl Normalizers {
    /// Compiles the patterns.
    pub fn new(steps: &[Normalizer]) -> Result<Self> {
        let compile = |step: &Normalizer| {
            Ok(match step {
                Normalizer::Form(form) => Step::Form(*form),
                Normalizer::Lowercase => Step::Lowercase,
                Normalizer::StripAccents => Step::StripAccents,
                Normalizer::Strip { left, right } => Step::Strip {
                    left: *left,
                    right: *right,
                },
                Normalizer::Prepend(text) => Step::Prepend(text.clone()),
                Normalizer::Replace { pattern, content } => Step::Replace {
                    pattern: Box::new(SplitPattern::new(pattern)?),
                    content: content.clone(),
                },
            })
        };
        Ok(Self {
            steps: steps.iter().map(compile).collect::<Result<_>>()?,
        })
    }

    /// Whether there are no steps.
    pub fn is_empty(&self) -> bool {
        self.steps.is_empty()
    }

    /// The normalised text, borrowed if nothing changes. If `aligned` is set, also the alignment of each step
    /// that changed the text, the last step first.
    ///
    /// On bytes that may not be UTF-8, only the steps that prepend and replace run.
    pub fn apply<'a>(
        &self,
        text: Text<'a>,
        aligned: bool,
        interrupt: &Interrupt<'_>,
    ) -> Result<(Cow<'a, [u8]>, Vec<Alignment>)> {
        let mut alignments = Vec::new();
        let mut normalized = Cow::Borrowed(text.as_bytes());
        let is_text = matches!(text, Text::Str(_));
        for step in &self.steps {
            let rewritten = step.apply(&normalized, is_text, aligned, interrupt)?;
            let Some((changed, alignment)) = rewritten else {
                continue;
            };
            if aligned {
                alignments.push(alignment);
            }
            normalized = Cow::Owned(changed);
        }
        alignments.reverse();
        Ok((normalized, alignments))
    }

    /// Whether a text may be cut between two characters: the two sides are then normalised as in the whole,
    /// and these two characters do not change.
    pub fn may_cut(&self, before: char, after: char) -> bool {
        self.steps.iter().all(|step| step.may_cut(before, after))
    }

    /// The normalised text of a string.
    pub fn of_str(&self, text: &str) -> Result<String> {
        let (normalized, _) = self.apply(Text::Str(text), false, &Interrupt::never())?;
        Ok(String::from_utf8_lossy(&normalized).into_owned())
    }
}

/// Normalises a text that arrives in parts.
pub struct IncrementalNormalizer {
    steps: Vec<PendingText>,
}

/// The input of a step.
#[derive(Default)]
struct PendingText {
    /// The text that the step has not rewritten yet.
    pending: String,
    /// Whether the step has returned any text.
    begun: bool,
}

impl IncrementalNormalizer {
    /// Starts a text; `None` if a step needs the whole text.
    pub fn new(normalizers: &Normalizers) -> Option<Self> {
        let needs_all = |step: &Step| match step {
            Step::Replace { pattern, .. } => pattern.automaton().is_none(),
            _ => false,
        };
        let steps = &normalizers.steps;
        (!steps.iter().any(needs_all)).then(|| Self {
            steps: steps.iter().map(|_| PendingText::default()).collect(),
        })
    }

    /// Adds the next part of a text. Returns the normalised text that no continuation can change; all
    /// remaining text if the text `ends`, and then starts another text.
    ///
    /// `normalizers` are those of [`IncrementalNormalizer::new`].
    pub fn push<'a>(
        &mut self,
        normalizers: &Normalizers,
        text: &'a str,
        ends: bool,
        interrupt: &Interrupt<'_>,
    ) -> Result<Cow<'a, str>> {
        let mut text = Cow::Borrowed(text);
        for (step, pending) in normalizers.steps.iter().zip(&mut self.steps) {
            text = Cow::Owned(step.push(pending, &text, ends, interrupt)?);
        }
        Ok(text)
    }
}

impl Step {
    fn push(
        &self,
        open: &mut PendingText,
        text: &str,
        ends: bool,
        interrupt: &Interrupt<'_>,
    ) -> Result<String> {
        open.pending.push_str(text);
        let pending = open.pending.as_str();
        let (rewritten, stable) = match self {
            Step::Replace { pattern, content } if !ends => {
                let mut rewritten = String::new();
                let (mut copied, mut stable) = (0, 0);
                if let Some(automaton) = pattern.automaton() {
                    (_, stable) =
                        automaton.stable_matches(pending.as_bytes(), |range, is_match| {
                            if is_match {
                                rewritten.push_str(&pending[copied..range.start]);
                                rewritten.push_str(content);
                                copied = range.end;
                            }
                            true
                        });
                }
                rewritten.push_str(&pending[copied..stable]);
                (rewritten, stable)
            }
            Step::Prepend(_) if open.begun => (pending.to_owned(), pending.len()),
            Step::Strip { left, right } => {
                let kept = stripped(
                    pending,
                    *left && !open.begun,
                    *right,
                    &mut Poller::new(interrupt),
                )?;
                (pending[kept.clone()].to_owned(), kept.end)
            }
            _ => {
                let stable = match self {
                    Step::Form(form) if !ends => {
                        let last = pending.char_indices().rfind(|(_, c)| form.begins_run(*c));
                        last.map_or(0, |(at, _)| at)
                    }
                    _ => pending.len(),
                };
                let part = &pending[..stable];
                let changed = self.apply(part.as_bytes(), true, false, interrupt)?;
                let rewritten = changed.map_or(part.to_owned(), |(text, _)| {
                    String::from_utf8_lossy(&text).into_owned()
                });
                (rewritten, stable)
            }
        };
        open.begun |= !rewritten.is_empty();
        open.pending.drain(..stable);
        if ends {
            *open = PendingText::default();
        }
        Ok(rewritten)
    }

    fn may_cut(&self, before: char, after: char) -> bool {
        let both = |holds: &dyn Fn(char) -> bool| holds(before) && holds(after);
        match self {
            Step::Form(form) => both(&|c| form.is_boundary(c)),
            Step::Lowercase => both(&|c| c.to_lowercase().eq([c])),
            Step::StripAccents => both(&|c| !is_combining_mark(c)),
            Step::Strip { left, right } => {
                !(*left && after.is_whitespace() || *right && before.is_whitespace())
            }
            Step::Prepend(_) | Step::Replace { .. } => false,
        }
    }

    /// Applies the step; `None` if nothing changes.
    fn apply(
        &self,
        text: &[u8],
        is_text: bool,
        aligned: bool,
        interrupt: &Interrupt<'_>,
    ) -> Result<Option<Rewritten>> {
        let mut poller = Poller::new(interrupt);
        let text = match self {
            Step::Prepend(content) => return Ok(prepend(text, content, aligned)),
            Step::Replace { pattern, content } => {
                return replace(text, pattern, content, aligned, &mut poller)
            }
            _ => is_text.then(|| std::str::from_utf8(text)),
        };
        let Some(Ok(text)) = text else {
            return Ok(None);
        };
        match self {
            Step::Form(form) => form.rewrite(text, aligned, interrupt),
            Step::Lowercase => replace_chars(text, aligned, &mut poller, |c| {
                (!c.to_lowercase().eq([c])).then(|| c.to_lowercase().to_string())
            }),
            Step::StripAccents => replace_chars(text, aligned, &mut poller, |c| {
                is_combining_mark(c).then(String::new)
            }),
            Step::Strip { left, right } => {
                let Range { start, end } = stripped(text, *left, *right, &mut poller)?;
                let mut rewriting = Rewriting::new(text.as_bytes(), aligned);
                for dropped in [0..start, end..text.len()] {
                    if !dropped.is_empty() {
                        rewriting.replace(dropped, b"");
                    }
                }
                Ok(rewriting.finish())
            }
            Step::Prepend(_) | Step::Replace { .. } => Ok(None),
        }
    }
}

fn replace(
    text: &[u8],
    pattern: &SplitPattern,
    content: &str,
    aligned: bool,
    poller: &mut Poller<'_>,
) -> Result<Option<Rewritten>> {
    let mut rewriting = Rewriting::new(text, aligned);
    pattern.for_each_match(text, poller, |range| {
        let last = last_character(&text[range.clone()]) + range.start;
        if aligned && range.start < last {
            // The replacement has the offsets of the match's last character, as in `tokenizers`.
            rewriting.replace(range.start..last, b"");
            rewriting.replace(last..range.end, content.as_bytes());
        } else {
            rewriting.replace(range, content.as_bytes());
        }
    })?;
    Ok(rewriting.finish())
}

/// Rewrites the characters that have a replacement.
fn replace_chars(
    text: &str,
    aligned: bool,
    poller: &mut Poller<'_>,
    replacement: impl Fn(char) -> Option<String>,
) -> Result<Option<Rewritten>> {
    let mut rewriting = Rewriting::new(text.as_bytes(), aligned);
    for (at, c) in text.char_indices() {
        poller.advance(1)?;
        if let Some(content) = replacement(c) {
            rewriting.replace(at..at + c.len_utf8(), content.as_bytes());
        }
    }
    Ok(rewriting.finish())
}

/// The range of a text without the white space at its ends.
fn stripped(text: &str, left: bool, right: bool, poller: &mut Poller<'_>) -> Result<Range<usize>> {
    let (mut start, mut end) = (0, text.len());
    if left {
        start = white_space(text.chars(), poller)?;
    }
    if right {
        end -= white_space(text[start..].chars().rev(), poller)?;
    }
    Ok(start..end)
}

/// The length of the white space that the characters begin with, in bytes.
fn white_space(chars: impl Iterator<Item = char>, poller: &mut Poller<'_>) -> Result<usize> {
    let mut length = 0;
    for c in chars.take_while(|c| c.is_whitespace()) {
        poller.advance(1)?;
        length += c.len_utf8();
    }
    Ok(length)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::Error;

    fn apply(steps: &[Normalizer], text: &str) -> String {
        Normalizers::new(steps).unwrap().of_str(text).unwrap()
    }

    #[test]
    fn each_step_does_what_it_says() {
        let replace = |pattern: &str, content: &str| Normalizer::Replace {
            pattern: pattern.to_owned(),
            content: content.to_owned(),
        };
        let strip = |left, right| Normalizer::Strip { left, right };
        assert_eq!(apply(&[Normalizer::Lowercase], "ÀΣİ x"), "àσi\u{307} x");
        assert_eq!(
            apply(
                &[
                    Normalizer::Form(Normalization::Nfd),
                    Normalizer::StripAccents
                ],
                "né"
            ),
            "ne"
        );
        assert_eq!(apply(&[strip(true, false)], "\u{3000} a "), "a ");
        assert_eq!(apply(&[strip(false, true)], " a\n"), " a");
        assert_eq!(apply(&[strip(true, true)], " \n"), "");
        assert_eq!(
            apply(
                &[Normalizer::Prepend("▁".to_owned()), replace(" ", "▁")],
                "a b"
            ),
            "▁a▁b"
        );
        assert_eq!(apply(&[Normalizer::Prepend("▁".to_owned())], ""), "");
        assert_eq!(apply(&[replace(" {2,}", "")], "a  b c   "), "ab c");
    }

    #[test]
    fn an_unchanged_text_is_not_copied() {
        let steps = [
            Normalizer::Form(Normalization::Nfc),
            Normalizer::Lowercase,
            Normalizer::StripAccents,
            Normalizer::Strip {
                left: true,
                right: true,
            },
        ];
        let normalizers = Normalizers::new(&steps).unwrap();
        let (text, alignments) = normalizers
            .apply(Text::Str("plain text"), true, &Interrupt::never())
            .unwrap();
        assert!(matches!(text, Cow::Borrowed(_)));
        assert!(alignments.is_empty());
    }

    #[test]
    fn bytes_are_only_prepended_to_and_replaced_in() {
        let steps = [
            Normalizer::Lowercase,
            Normalizer::Prepend("_".to_owned()),
            Normalizer::Replace {
                pattern: " ".to_owned(),
                content: "_".to_owned(),
            },
        ];
        let normalizers = Normalizers::new(&steps).unwrap();
        let (text, _) = normalizers
            .apply(Text::Bytes(b"A \xff"), false, &Interrupt::never())
            .unwrap();
        assert_eq!(text, &b"_A_\xff"[..]);
    }

    #[test]
    fn every_step_polls_in_every_text() {
        const BYTES: usize = 1 << 21;
        let replace = |pattern: &str| Normalizer::Replace {
            pattern: pattern.to_owned(),
            content: "_".to_owned(),
        };
        let strip = |left, right| Normalizer::Strip { left, right };
        let steps = [
            Normalizer::Form(Normalization::Nfkd),
            Normalizer::Lowercase,
            Normalizer::StripAccents,
            replace(" "),
            replace(r"\s+|x+"),
            replace(r"(?<=y)\s"),
            strip(true, false),
            strip(false, true),
        ];
        for (step, unit) in steps
            .iter()
            .flat_map(|step| ["a", " ", "é", "\u{301}"].map(|unit| (step, unit)))
        {
            if matches!(step, Normalizer::Strip { .. }) && unit != " " {
                continue; // nothing to do
            }
            let text = unit.repeat(BYTES / unit.len());
            let normalizers = Normalizers::new(std::slice::from_ref(step)).unwrap();
            for aligned in [false, true] {
                let stop = || true;
                let interrupt = Interrupt::new(&stop);
                let stopped = normalizers.apply(Text::Str(&text), aligned, &interrupt);
                assert!(
                    matches!(stopped, Err(Error::Interrupted)),
                    "{step:?} {unit:?}"
                );
            }
        }
    }

    #[test]
    fn matches_in_a_long_text_are_those_of_the_whole() {
        // Longer than what is searched at once, and with a match that is longer too.
        let text = format!(
            "{}x{}é {}",
            "語 x".repeat(60_000),
            "é".repeat(400_000),
            "語".repeat(100_000)
        );
        for (pattern, expected) in [
            (
                "x|é+",
                text.replace('x', "_")
                    .replacen(&"é".repeat(400_001), "_", 1),
            ),
            (" ", text.replace(' ', "_")),
            ("語 x", text.replace("語 x", "_")),
        ] {
            let step = Normalizer::Replace {
                pattern: pattern.to_owned(),
                content: "_".to_owned(),
            };
            assert!(
                apply(std::slice::from_ref(&step), &text) == expected,
                "{pattern}"
            );
            let normalizers = Normalizers::new(&[step]).unwrap();
            let bytes = [text.as_bytes(), b"\xe8\xaa"].concat();
            let (changed, _) = normalizers
                .apply(Text::Bytes(&bytes), false, &Interrupt::never())
                .unwrap();
            assert!(
                *changed == [expected.as_bytes(), b"\xe8\xaa"].concat(),
                "{pattern}"
            );
        }
    }
}
