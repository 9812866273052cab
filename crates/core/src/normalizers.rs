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
///
/// JSON writes a normal form as its name alone, without a tag. So serde cannot list the steps in an error, and `expecting` does.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(
    feature = "serde",
    serde(
        tag = "type",
        deny_unknown_fields,
        expecting = "a step of normalisation must be NFC, NFD, NFKC, NFKD, Lowercase, StripAccents, \
                     Strip (strip_left, strip_right), Prepend (prepend) or Replace (pattern, content)"
    )
)]
pub enum Normalizer<P = String> {
    /// Replaces each character by its lower case, independently of its neighbours.
    Lowercase,
    /// Drops combining marks.
    StripAccents,
    /// Drops white space at the ends.
    Strip {
        /// At the beginning.
        #[cfg_attr(feature = "serde", serde(rename = "strip_left"))]
        left: bool,
        /// At the end.
        #[cfg_attr(feature = "serde", serde(rename = "strip_right"))]
        right: bool,
    },
    /// Prepends a text.
    Prepend {
        /// The text.
        prepend: String,
    },
    /// Replaces every match of a regular expression.
    Replace {
        /// The regular expression.
        pattern: P,
        /// The replacement, literally.
        content: String,
    },
    /// Applies a Unicode normalisation form.
    #[cfg_attr(feature = "serde", serde(untagged))]
    Form(Normalization),
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
                Normalizer::Prepend { prepend } => Step::Prepend {
                    prepend: prepend.clone(),
                },
                Normalizer::Replace { pattern, content } => Step::Replace {
                    pattern: Box::new(SplitPattern::of_text(pattern)?),
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
        Ok(to_string(normalized.into_owned()))
    }
}

fn to_string(text: Vec<u8>) -> String {
    String::from_utf8(text)
        .unwrap_or_else(|error| String::from_utf8_lossy(error.as_bytes()).into_owned())
}

impl Step {
    fn may_cut(&self, before: char, after: char) -> bool {
        let both = |holds: &dyn Fn(char) -> bool| holds(before) && holds(after);
        match self {
            Step::Form(form) => both(&|c| form.is_boundary(c)),
            Step::Lowercase => both(&|c| c.to_lowercase().eq([c])),
            Step::StripAccents => both(&|c| !is_combining_mark(c)),
            Step::Strip { left, right } => {
                !(*left && after.is_whitespace() || *right && before.is_whitespace())
            }
            Step::Prepend { .. } | Step::Replace { .. } => false,
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
            // ASCII is in every normalisation form.
            Step::Form(_) if text.is_ascii() => {
                poller.advance(text.len() / 8)?;
                return Ok(None);
            }
            Step::Prepend { prepend: content } => return prepend(text, content, aligned),
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
                rewriting.finish()
            }
            Step::Prepend { .. } | Step::Replace { .. } => Ok(None),
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
    rewriting.finish()
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
    rewriting.finish()
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
        assert_eq!(apply(&[prepended("▁"), replace(" ", "▁")], "a b"), "▁a▁b");
        assert_eq!(apply(&[prepended("▁")], ""), "");
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
            prepended("_"),
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
        let strip = |left, right| Normalizer::Strip { left, right };
        let steps = [
            Normalizer::Form(Normalization::Nfkd),
            Normalizer::Lowercase,
            Normalizer::StripAccents,
            replace(" ", "_"),
            replace(r"\s+|x+", "_"),
            replace(r"(?<=y)\s", "_"),
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

    fn prepended(text: &str) -> Normalizer {
        let prepend = text.to_owned();
        Normalizer::Prepend { prepend }
    }

    fn replace(pattern: &str, content: &str) -> Normalizer {
        Normalizer::Replace {
            pattern: pattern.to_owned(),
            content: content.to_owned(),
        }
    }

    #[test]
    fn a_cut_is_where_normalisation_changes_neither_side() {
        let strip = |left, right| vec![Normalizer::Strip { left, right }];
        let (form, lowercase) = (Normalizer::Form(Normalization::Nfc), Normalizer::Lowercase);
        let characters = ['a', 'A', 'é', '\u{301}', ' '];
        // The characters that may not be before a cut, and those that may not be after it.
        for (steps, not_before, not_after) in [
            (vec![], "", ""),
            (vec![form.clone()], "\u{301}", "\u{301}"),
            (vec![lowercase.clone()], "A", "A"),
            (vec![Normalizer::StripAccents], "\u{301}", "\u{301}"),
            (vec![form, lowercase], "\u{301}A", "\u{301}A"),
            (strip(false, false), "", ""),
            (strip(true, false), "", " "),
            (strip(false, true), " ", ""),
            (strip(true, true), " ", " "),
            (vec![prepended("_")], "aAé\u{301} ", ""),
            (vec![replace("x", "_")], "aAé\u{301} ", ""),
        ] {
            let normalizers = Normalizers::new(&steps).unwrap();
            assert_eq!(normalizers.is_empty(), steps.is_empty());
            for (before, after) in characters.iter().flat_map(|a| characters.map(|b| (*a, b))) {
                let may_cut = !not_before.contains(before) && !not_after.contains(after);
                assert_eq!(
                    normalizers.may_cut(before, after),
                    may_cut,
                    "{steps:?} {before:?} {after:?}"
                );
            }
        }
    }

    #[test]
    fn a_replacement_has_the_offsets_of_the_last_character() {
        let normalizers = Normalizers::new(&[replace("bcé| ", "__")]).unwrap();
        let text = Text::Str("xa bcéd");
        let (normalized, alignments) = normalizers.apply(text, true, &Interrupt::never()).unwrap();
        assert_eq!(*normalized, *b"xa____d");
        let [alignment] = &alignments[..] else {
            panic!("{alignments:?}");
        };
        let starts = (0..7).map(|at| alignment.start(at));
        assert_eq!(starts.collect::<Vec<_>>(), [0, 1, 2, 2, 5, 5, 7]);
        let ends = (1..8).map(|at| alignment.end(at));
        assert_eq!(ends.collect::<Vec<_>>(), [1, 2, 3, 3, 7, 7, 8]);
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
