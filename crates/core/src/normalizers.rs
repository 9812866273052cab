//! The steps of normalisation in sequence: each rewrites the output of the previous one.
//!
//! The steps and their details are those of Hugging Face `tokenizers` (its `normalizers` module).

use crate::alignment::{prepend, Alignment, Rewriting, Rewritten};
use crate::error::Result;
use crate::interrupt::{Interrupt, Poller};
use crate::normalize::Normalization;
use crate::normalize_run::RunNormalizer;
use crate::pretokenize::{Dfa, Progress, SplitPattern, POLL_BYTES};
use crate::reserve::{append_text, copied_text, reserve_text};
use crate::text::{floor_char_boundary, last_character, Text};
use std::borrow::Cow;
use std::ops::Range;
use unicode_normalization::char::is_combining_mark;

/// A longer run of characters, in bytes, is normalised as it arrives.
const MAX_PENDING: usize = 1 << 10;

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

/// Normalises a text that arrives in parts.
pub struct IncrementalNormalizer {
    steps: Vec<PendingText>,
}

/// The input of a step. The work of each part is proportional to its length, whatever is pending.
#[derive(Default)]
struct PendingText {
    /// The text that the step has not rewritten yet.
    pending: String,
    /// Whether the step has returned any text.
    begun: bool,
    /// What the search of [`Step::Replace`] has read of the pending text.
    progress: Progress,
    /// The pending characters of [`Step::Form`], if they are many.
    run: Option<RunNormalizer>,
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

impl PendingText {
    /// Adds text to a normalisation form. Characters that neither reorder nor compose with those before them
    /// end the pending text.
    fn push_form(
        &mut self,
        form: Normalization,
        mut text: &str,
        ends: bool,
        poller: &mut Poller<'_>,
    ) -> Result<String> {
        let mut rewritten = String::new();
        if let Some(run) = &mut self.run {
            let next = run_length(form, text.chars(), poller)?;
            for c in text[..next].chars() {
                poller.advance(1)?;
                run.push(c, &mut rewritten)?;
            }
            text = &text[next..];
            if text.is_empty() && !ends {
                return Ok(rewritten);
            }
            run.finish(&mut rewritten)?;
            self.run = None;
        }
        let stable = match ends {
            true => Some(text.len()),
            false => last_run(form, text, poller)?,
        };
        let (done, pending) = text.split_at(stable.unwrap_or(0));
        append_text(&mut self.pending, done)?;
        if stable.is_some() {
            let pending = std::mem::take(&mut self.pending);
            let changed = form.rewrite(&pending, false, poller.interrupt())?;
            let stable = changed.map_or(pending, |(text, _)| to_string(text));
            if rewritten.is_empty() {
                rewritten = stable;
            } else {
                append_text(&mut rewritten, &stable)?;
            }
        }
        append_text(&mut self.pending, pending)?;
        if self.pending.len() > MAX_PENDING {
            let run = self.run.insert(form.run());
            for c in self.pending.drain(..) {
                poller.advance(1)?;
                run.push(c, &mut rewritten)?;
            }
        }
        Ok(rewritten)
    }

    /// Adds text in which the matches of an automaton are replaced.
    fn push_replace(
        &mut self,
        automaton: &Dfa,
        content: &str,
        mut text: &str,
        ends: bool,
        poller: &mut Poller<'_>,
    ) -> Result<String> {
        let mut rewritten = String::new();
        while text.len() > POLL_BYTES {
            let (block, rest) = text.split_at(floor_char_boundary(text, POLL_BYTES));
            self.replace(automaton, content, block, false, &mut rewritten)?;
            poller.advance(POLL_BYTES / 4)?;
            text = rest;
        }
        self.replace(automaton, content, text, ends, &mut rewritten)?;
        Ok(rewritten)
    }

    fn replace(
        &mut self,
        automaton: &Dfa,
        content: &str,
        text: &str,
        ends: bool,
        rewritten: &mut String,
    ) -> Result<()> {
        append_text(&mut self.pending, text)?;
        reserve_text(rewritten, self.pending.len())?;
        let (pending, mut copied) = (self.pending.as_str(), 0);
        let matched = |range: Range<usize>, is_match| {
            if is_match {
                rewritten.push_str(&pending[copied..range.start]);
                rewritten.push_str(content);
                copied = range.end;
            }
            true
        };
        let bytes = pending.as_bytes();
        let stable = if ends {
            automaton.last_matches(bytes, self.progress, matched);
            bytes.len()
        } else {
            let (_, next) = automaton.stable_matches(bytes, &mut self.progress, matched);
            next
        };
        append_text(rewritten, &pending[copied..stable])?;
        self.pending.drain(..stable);
        Ok(())
    }

    /// Adds text that loses the white space at its ends. Only white space is pending.
    fn push_stripped(
        &mut self,
        (left, right): (bool, bool),
        text: &str,
        poller: &mut Poller<'_>,
    ) -> Result<String> {
        let Range { start, end } = stripped(text, left && !self.begun, right, poller)?;
        if start == end {
            append_text(&mut self.pending, &text[end..])?;
            return Ok(String::new());
        }
        let mut rewritten = std::mem::take(&mut self.pending);
        append_text(&mut rewritten, &text[start..end])?;
        append_text(&mut self.pending, &text[end..])?;
        Ok(rewritten)
    }
}

/// The length of the characters before the first that begins a run, in bytes.
fn run_length(
    form: Normalization,
    chars: impl Iterator<Item = char>,
    poller: &mut Poller<'_>,
) -> Result<usize> {
    let mut length = 0;
    for c in chars.take_while(|&c| !form.begins_run(c)) {
        poller.advance(1)?;
        length += c.len_utf8();
    }
    Ok(length)
}

/// Where the last character that begins a run is.
fn last_run(form: Normalization, text: &str, poller: &mut Poller<'_>) -> Result<Option<usize>> {
    let run = run_length(form, text.chars().rev(), poller)?;
    let mut before = text[..text.len() - run].char_indices();
    Ok(before.next_back().map(|(at, _)| at))
}

fn to_string(text: Vec<u8>) -> String {
    String::from_utf8(text)
        .unwrap_or_else(|error| String::from_utf8_lossy(error.as_bytes()).into_owned())
}

impl Step {
    fn push(
        &self,
        open: &mut PendingText,
        text: &str,
        ends: bool,
        interrupt: &Interrupt<'_>,
    ) -> Result<String> {
        let mut poller = Poller::new(interrupt);
        let rewritten = match self {
            Step::Form(form) => open.push_form(*form, text, ends, &mut poller)?,
            Step::Replace { pattern, content } => match pattern.automaton() {
                Some(automaton) => {
                    open.push_replace(automaton, content, text, ends, &mut poller)?
                }
                None => self.of_str(text, interrupt)?,
            },
            Step::Strip { left, right } => {
                open.push_stripped((*left, *right), text, &mut poller)?
            }
            Step::Prepend(_) if open.begun => copied_text(text)?,
            _ => self.of_str(text, interrupt)?,
        };
        open.begun |= !rewritten.is_empty();
        if ends {
            *open = PendingText::default();
        }
        Ok(rewritten)
    }

    /// The text that the step makes of a whole text.
    fn of_str(&self, text: &str, interrupt: &Interrupt<'_>) -> Result<String> {
        let changed = self.apply(text.as_bytes(), true, false, interrupt)?;
        changed.map_or_else(|| copied_text(text), |(text, _)| Ok(to_string(text)))
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
            // ASCII is in every normalisation form.
            Step::Form(_) if text.is_ascii() => {
                poller.advance(text.len() / 8)?;
                return Ok(None);
            }
            Step::Prepend(content) => return prepend(text, content, aligned),
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
    use proptest::prelude::*;

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
            let stop = || true;
            let interrupt = Interrupt::new(&stop);
            if let Some(mut incremental) = IncrementalNormalizer::new(&normalizers) {
                let stopped = incremental.push(&normalizers, &text, false, &interrupt);
                assert!(
                    matches!(stopped, Err(Error::Interrupted)),
                    "{step:?} {unit:?}"
                );
            }
        }
    }

    fn replace(pattern: &str, content: &str) -> Normalizer {
        Normalizer::Replace {
            pattern: pattern.to_owned(),
            content: content.to_owned(),
        }
    }

    #[test]
    fn a_part_returns_what_no_continuation_changes() {
        let strip = Normalizer::Strip {
            left: true,
            right: true,
        };
        for (step, parts) in [
            (
                Normalizer::Form(Normalization::Nfc),
                [("ab e", "ab "), ("\u{301}x", "é"), ("y", "xy")],
            ),
            (Normalizer::Lowercase, [("AB", "ab"), ("C", "c"), ("", "")]),
            (strip, [(" a ", "a"), ("b c ", " b c"), (" ", "")]),
            (
                Normalizer::Prepend("_".to_owned()),
                [("a", "_a"), ("b", "b"), ("", "")],
            ),
            (
                replace("x+y", "_"),
                [("axx", "a"), ("yb", "_b"), ("x", "x")],
            ),
        ] {
            let normalizers = Normalizers::new(std::slice::from_ref(&step)).unwrap();
            let mut incremental = IncrementalNormalizer::new(&normalizers).unwrap();
            for (at, (part, expected)) in parts.into_iter().enumerate() {
                let never = Interrupt::never();
                let normalized = incremental.push(&normalizers, part, at == 2, &never);
                assert_eq!(normalized.unwrap(), expected, "{step:?} {part:?}");
            }
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
            (vec![Normalizer::Prepend("_".to_owned())], "aAé\u{301} ", ""),
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

    /// Texts with runs around the length from which a run is normalised as it arrives.
    fn long_runs() -> impl Strategy<Value = Vec<String>> {
        let unit = prop::sample::select(vec![
            "\u{301}",
            "\u{301}\u{323}",
            "\u{1161}",
            "\u{9be}",
            " ",
            "x",
            "ab",
            "e\u{301}",
            "가",
            "É",
        ]);
        let run = (unit, prop_oneof![4 => 1..9_usize, 1 => 300..900_usize]);
        prop::collection::vec(run.prop_map(|(unit, times)| unit.repeat(times)), 1..8)
    }

    fn steps() -> impl Strategy<Value = Vec<Normalizer>> {
        let replace = |pattern: &str| Normalizer::Replace {
            pattern: pattern.to_owned(),
            content: "e_".to_owned(),
        };
        let forms = crate::normalize::tests::FORMS.map(Normalizer::Form);
        let mut all = forms.to_vec();
        all.extend([replace("x+"), replace("b a|b"), replace("\u{301}+x")]);
        all.extend(
            [(true, true), (true, false), (false, true)]
                .map(|(left, right)| Normalizer::Strip { left, right }),
        );
        all.extend([
            Normalizer::Lowercase,
            Normalizer::StripAccents,
            Normalizer::Prepend("_".to_owned()),
        ]);
        prop::collection::vec(prop::sample::select(all), 1..4)
    }

    proptest! {
        #[test]
        fn a_text_in_parts_is_normalised_as_the_whole(
            runs in long_runs(),
            steps in steps(),
            lengths in prop::collection::vec(0..700_usize, 1..20),
        ) {
            let normalizers = Normalizers::new(&steps).unwrap();
            let mut incremental = IncrementalNormalizer::new(&normalizers).unwrap();
            let text = runs.concat();
            for _ in 0..2 {
                let (mut rest, mut normalized) = (text.as_str(), String::new());
                for length in lengths.iter().cycle().chain(&[1]) {
                    let (part, later) = rest.split_at(floor_char_boundary(rest, (*length + 4).min(rest.len())));
                    rest = later;
                    let ends = rest.is_empty();
                    let interrupt = Interrupt::never();
                    normalized.push_str(&incremental.push(&normalizers, part, ends, &interrupt).unwrap());
                    if ends {
                        break;
                    }
                }
                prop_assert_eq!(normalized, normalizers.of_str(&text).unwrap());
            }
        }
    }
}
