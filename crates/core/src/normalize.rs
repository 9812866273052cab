//! Unicode normalisation forms (Unicode Standard Annex 15), with alignments to the original text.

use std::fmt;
use std::ops::Range;
use std::str::FromStr;
use std::sync::OnceLock;
use unicode_normalization::char::{
    canonical_combining_class, decompose_canonical, decompose_compatible,
};
use unicode_normalization::{
    is_nfc_quick, is_nfd_quick, is_nfkc_quick, is_nfkd_quick, IsNormalized, UnicodeNormalization,
};

use crate::alignment::{Rewriting, Rewritten};
use crate::error::{Error, Result};
use crate::interrupt::{Interrupt, Poller};
use crate::normalize_run::RunNormalizer;
use crate::text::floor_char_boundary;
use crate::threads::made_once;

/// The bytes that are searched for a change between two polls.
const BLOCK: usize = 1 << 18;

/// The bytes of it that are compared at once.
const CHUNK: usize = 128;

/// A stretch of at least this length in bytes is cut into parts.
const MIN_PART: usize = 1 << 10;

/// A longer part, in bytes, is normalised without the buffers of the library, whose work cannot be stopped.
const MAX_BUFFERED: usize = 4 << 10;

/// A range of a text, and its normal form.
type Change = (Range<usize>, String);

/// A normalisation form.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(tag = "type", rename_all = "UPPERCASE"))]
pub enum Normalization {
    /// Canonical composition.
    Nfc,
    /// Canonical decomposition.
    Nfd,
    /// Compatibility composition.
    Nfkc,
    /// Compatibility decomposition.
    Nfkd,
}

impl FromStr for Normalization {
    type Err = Error;

    fn from_str(name: &str) -> Result<Self> {
        let forms = [Self::Nfc, Self::Nfd, Self::Nfkc, Self::Nfkd];
        let named = forms.into_iter().find(|form| form.to_string() == name);
        named.ok_or_else(|| {
            let known = "\"NFC\", \"NFD\", \"NFKC\", \"NFKD\" or None";
            Error::Option(format!("normalization {name:?} is not known; use {known}"))
        })
    }
}

impl fmt::Display for Normalization {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&format!("{self:?}").to_uppercase())
    }
}

impl Normalization {
    fn quick_check(self, chars: impl Iterator<Item = char>) -> IsNormalized {
        match self {
            Self::Nfc => is_nfc_quick(chars),
            Self::Nfd => is_nfd_quick(chars),
            Self::Nfkc => is_nfkc_quick(chars),
            Self::Nfkd => is_nfkd_quick(chars),
        }
    }

    /// Normalises a text of this form character by character.
    pub fn run(self) -> RunNormalizer {
        let is_compatible = matches!(self, Self::Nfkc | Self::Nfkd);
        RunNormalizer::new(self.composes(), is_compatible)
    }

    /// Whether the form composes characters.
    pub fn composes(self) -> bool {
        matches!(self, Self::Nfc | Self::Nfkc)
    }

    /// The normalised text, and its alignment to the original if `aligned` is set; `None` if nothing changes.
    ///
    /// Only a stretch of several characters between two boundaries can change. The function normalises these
    /// stretches and copies the rest. It cuts long stretches, and with an alignment all of them, into parts
    /// that can be normalised separately.
    pub fn rewrite(
        self,
        text: &str,
        aligned: bool,
        interrupt: &Interrupt<'_>,
    ) -> Result<Option<Rewritten>> {
        let boundaries = self.boundaries();
        let min_part = if aligned { 1 } else { MIN_PART };
        let mut rewriting = Rewriting::new(text.as_bytes(), aligned);
        let mut poller = Poller::new(interrupt);
        // The part of a stretch begins at `part`, and has a character that is not a boundary if `unstable`.
        let (mut part, mut at, mut unstable) = (0, 0, false);
        while at < text.len() {
            let block = floor_char_boundary(text, text.len().min(at + BLOCK));
            let stable = boundaries.prefix(&text[at..block]);
            if stable > 0 {
                at += stable;
                part = floor_char_boundary(text, at - 1);
                poller.advance(stable / 8)?;
                continue;
            }
            for c in text[at..].chars() {
                poller.advance(1)?;
                let is_boundary = boundaries.contains(c);
                if is_boundary || at - part >= min_part && self.begins_run(c) {
                    if unstable {
                        self.rewrite_part(text, part..at, &mut rewriting, &mut poller)?;
                    }
                    part = at;
                }
                unstable = !is_boundary;
                at += c.len_utf8();
                if is_boundary {
                    break;
                }
            }
        }
        if unstable {
            self.rewrite_part(text, part..at, &mut rewriting, &mut poller)?;
        }
        rewriting.finish()
    }

    fn rewrite_part(
        self,
        text: &str,
        range: Range<usize>,
        rewriting: &mut Rewriting<'_>,
        poller: &mut Poller<'_>,
    ) -> Result<()> {
        let part = &text[range.clone()];
        if let Some(normalized) = self.changed(part, poller)? {
            if rewriting.is_aligned() && part.len() <= MAX_BUFFERED {
                if let Some(changes) = self.change_apart(part, &normalized, poller)? {
                    for (at, changed) in changes {
                        let changes = range.start + at.start..range.start + at.end;
                        rewriting.replace(changes, changed.as_bytes());
                    }
                    return Ok(());
                }
            }
            let kept = common_prefix(part, &normalized);
            let changed = &normalized.as_bytes()[kept..];
            rewriting.replace(range.start + kept..range.end, changed);
        }
        Ok(())
    }

    /// The changes of the characters of a text, if it is normalised character by character: if none moves or
    /// composes.
    fn change_apart(
        self,
        text: &str,
        normalized: &str,
        poller: &mut Poller<'_>,
    ) -> Result<Option<Vec<Change>>> {
        let (mut changes, mut rest, mut at) = (Vec::new(), normalized, 0);
        for c in text.split_inclusive(|_| true) {
            let range = at..at + c.len();
            at = range.end;
            let changed = self.changed(c, poller)?;
            match rest.strip_prefix(changed.as_deref().unwrap_or(c)) {
                Some(after) => rest = after,
                None => return Ok(None),
            }
            changes.extend(changed.map(|changed| (range, changed)));
        }
        Ok(rest.is_empty().then_some(changes))
    }

    /// The normalised text; `None` if nothing changes.
    fn changed(self, text: &str, poller: &mut Poller<'_>) -> Result<Option<String>> {
        if text.len() > MAX_BUFFERED {
            return self.changed_run(text, poller);
        }
        if self.quick_check(text.chars()) == IsNormalized::Yes {
            return Ok(None);
        }
        let normalized: String = match self {
            Self::Nfc => text.nfc().collect(),
            Self::Nfd => text.nfd().collect(),
            Self::Nfkc => text.nfkc().collect(),
            Self::Nfkd => text.nfkd().collect(),
        };
        Ok((normalized != text).then_some(normalized))
    }

    /// As `changed`, for a text of any length.
    fn changed_run(self, text: &str, poller: &mut Poller<'_>) -> Result<Option<String>> {
        let (mut run, mut normalized) = (self.run(), String::new());
        for c in text.chars() {
            poller.advance(1)?;
            run.push(c, &mut normalized)?;
        }
        run.finish(&mut normalized)?;
        Ok((normalized != text).then_some(normalized))
    }

    /// Whether the text before `c` and the text from `c` on can be normalised separately, and `c` does not
    /// change: it neither reorders nor composes with the characters before it ("stable code point").
    pub fn is_boundary(self, c: char) -> bool {
        c.is_ascii() || self.boundaries().contains(c)
    }

    /// The results of [`Normalization::find_boundary`] in a table, which is faster.
    fn boundaries(self) -> &'static Boundaries {
        static FORMS: [OnceLock<Boundaries>; 4] = [const { OnceLock::new() }; 4];
        made_once(&FORMS[self as usize], || Boundaries::new(self))
    }

    fn find_boundary(self, c: char) -> bool {
        canonical_combining_class(c) == 0
            && self.quick_check(std::iter::once(c)) == IsNormalized::Yes
    }

    /// Whether the text from `c` on can be normalised separately, though `c` may change: its decomposition
    /// begins with a character that neither reorders nor composes with the characters before it.
    pub fn begins_run(self, c: char) -> bool {
        if c.is_ascii() {
            return true;
        }
        let mut first = None;
        let keep_first = |decomposed| {
            first.get_or_insert(decomposed);
        };
        match self {
            Self::Nfc | Self::Nfd => decompose_canonical(c, keep_first),
            Self::Nfkc | Self::Nfkd => decompose_compatible(c, keep_first),
        }
        first.is_some_and(|first| {
            canonical_combining_class(first) == 0
                && (!self.composes() || is_nfc_quick(std::iter::once(first)) != IsNormalized::Maybe)
        })
    }
}

/// The boundaries of a form: a bit for each character up to U+FFFF.
struct Boundaries {
    form: Normalization,
    bits: Box<[u64]>,
    /// All characters whose first byte is less than this are boundaries.
    first_byte: u8,
}

impl Boundaries {
    fn new(form: Normalization) -> Self {
        let is_boundary = |number| char::from_u32(number).is_some_and(|c| form.find_boundary(c));
        let word = |first: u32| (0..64).map(move |bit| u64::from(is_boundary(first + bit)) << bit);
        let words = (0..1 << 16).step_by(64).map(|first| word(first).sum());
        let others = ('\u{80}'..).find(|c| !form.find_boundary(*c));
        let first_byte = |c: char| c.encode_utf8(&mut [0; 4]).as_bytes()[0];
        Self {
            form,
            bits: words.collect(),
            first_byte: others.map_or(u8::MAX, first_byte),
        }
    }

    fn contains(&self, c: char) -> bool {
        let number = u32::from(c);
        match self.bits.get(number as usize / 64) {
            Some(word) => word >> (number % 64) & 1 == 1,
            None => self.form.find_boundary(c),
        }
    }

    /// The length of the boundaries that a text begins with, in bytes.
    fn prefix(&self, text: &str) -> usize {
        let bytes = text.as_bytes();
        let mut at = 0;
        loop {
            let are_all = |chunk: &&[u8]| {
                let largest = || chunk.iter().fold(0, |largest, byte| largest.max(*byte));
                chunk.is_ascii() || largest() < self.first_byte
            };
            let chunks = bytes[at..].chunks_exact(CHUNK).take_while(are_all);
            // A chunk may end inside a character.
            at = floor_char_boundary(text, at + CHUNK * chunks.count());
            let end = bytes.len().min(at + CHUNK);
            for c in text[at..].chars() {
                if !self.contains(c) {
                    return at;
                }
                at += c.len_utf8();
                if at >= end {
                    break;
                }
            }
            if at == bytes.len() {
                return at;
            }
        }
    }
}

/// The length of the characters that both texts begin with, in bytes.
fn common_prefix(a: &str, b: &str) -> usize {
    let (a_blocks, b_blocks) = (a.as_bytes().chunks(64), b.as_bytes().chunks(64));
    let blocks = a_blocks.zip(b_blocks).take_while(|(x, y)| x == y).count();
    let same = (64 * blocks).min(a.len()).min(b.len());
    let rest = a.as_bytes()[same..].iter().zip(&b.as_bytes()[same..]);
    floor_char_boundary(a, same + rest.take_while(|(x, y)| x == y).count())
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::alignment::Alignment;
    use proptest::prelude::*;

    fn rewritten(form: Normalization, text: &str, aligned: bool) -> Option<Rewritten> {
        form.rewrite(text, aligned, &Interrupt::never()).unwrap()
    }

    fn apply(form: Normalization, text: &str) -> String {
        let changed = rewritten(form, text, false);
        changed.map_or(text.to_owned(), |(text, _)| {
            String::from_utf8(text).unwrap()
        })
    }

    #[test]
    fn a_form_has_a_name() {
        for (form, name) in FORMS.into_iter().zip(["NFC", "NFD", "NFKC", "NFKD"]) {
            assert_eq!(form.to_string(), name);
            assert_eq!(name.parse::<Normalization>().unwrap(), form);
        }
        let error = "nfc".parse::<Normalization>().unwrap_err().to_string();
        assert!(
            error.contains("\"nfc\" is not known; use \"NFC\""),
            "{error}"
        );
    }

    #[test]
    fn a_normalised_text_is_not_copied() {
        for text in ["plain", "café", "日本語"] {
            assert!(rewritten(Normalization::Nfc, text, false).is_none());
            assert!(rewritten(Normalization::Nfc, text, true).is_none());
        }
        assert_eq!(apply(Normalization::Nfc, "cafe\u{301}"), "café");
        assert_eq!(apply(Normalization::Nfkd, "ﬁ①"), "fi1");
    }

    /// The result of the library.
    pub(crate) fn whole(form: Normalization, text: &str) -> String {
        match form {
            Normalization::Nfc => text.nfc().collect(),
            Normalization::Nfd => text.nfd().collect(),
            Normalization::Nfkc => text.nfkc().collect(),
            Normalization::Nfkd => text.nfkd().collect(),
        }
    }

    pub(crate) const FORMS: [Normalization; 4] = [
        Normalization::Nfc,
        Normalization::Nfd,
        Normalization::Nfkc,
        Normalization::Nfkd,
    ];

    #[test]
    fn every_character_is_normalised_among_others() {
        for form in FORMS {
            for c in '\0'..='\u{2ffff}' {
                let text = format!("e{c}\u{301}가{c}{c}\u{323}");
                assert_eq!(apply(form, &text), whole(form, &text), "{form} {c:?}");
            }
        }
    }

    /// Texts of characters that reorder and compose.
    pub(crate) fn any_text() -> impl Strategy<Value = String> {
        let joining = "e\u{301}\u{323}\u{345}가\u{1100}\u{1161}\u{11a8}\u{9c7}\u{9be}ﬁéệ語 a\u{1d15e}\u{1f00}";
        let joining: Vec<char> = joining.chars().collect();
        let c = prop_oneof![4 => prop::sample::select(joining), 1 => any::<char>()];
        prop::collection::vec(c, 0..60).prop_map(String::from_iter)
    }

    proptest! {
        #[test]
        fn a_text_is_normalised_as_a_whole(text in any_text(), plain in "[a-zéøж語 ]{0,80}|[a-zé ]{0,80}") {
            for form in FORMS {
                for text in [&text, &format!("{plain}{text}{plain}"), &format!("{text}{plain}{text}")] {
                    prop_assert_eq!(apply(form, text), whole(form, text));
                }
            }
        }
    }

    fn aligned(form: Normalization, text: &str) -> (String, Alignment) {
        let (normalized, alignment) = rewritten(form, text, true).unwrap();
        (String::from_utf8(normalized).unwrap(), alignment)
    }

    #[test]
    fn the_alignment_maps_to_the_original() {
        let text = "xe\u{301}y가\u{11a8}ﬁz";
        for form in [
            Normalization::Nfc,
            Normalization::Nfd,
            Normalization::Nfkc,
            Normalization::Nfkd,
        ] {
            let (normalized, alignment) = aligned(form, text);
            for c in ['x', 'y', 'z'] {
                let (was, is) = (text.find(c).unwrap(), normalized.find(c).unwrap());
                assert_eq!(alignment.start(is), was, "{form} {c}");
                assert_eq!(alignment.end(is + 1), was + 1, "{form} {c}");
            }
            assert_eq!(alignment.end(normalized.len()), text.len());
        }
        let (normalized, alignment) = aligned(Normalization::Nfc, "e\u{301}x");
        assert_eq!(normalized, "éx");
        assert_eq!((alignment.start(1), alignment.end(1)), (0, 3));
        assert_eq!((alignment.start(2), alignment.end(2)), (3, 3));
    }

    #[test]
    fn characters_that_neither_move_nor_compose_keep_their_offsets() {
        let starts = |form, text| {
            let (normalized, alignment) = aligned(form, text);
            let starts = normalized.char_indices().map(|(at, _)| alignment.start(at));
            starts.collect::<Vec<_>>()
        };
        assert_eq!(starts(Normalization::Nfkd, "ｗ\u{301}é"), [0, 3, 5, 5]);
        assert_eq!(starts(Normalization::Nfkc, "ﬁ\u{315}a"), [0, 0, 3, 5]);
        assert_eq!(
            starts(Normalization::Nfd, "xy\u{344}\u{344}"),
            [0, 1, 2, 2, 4, 4]
        );
        // The accent composes, but the ligature after it is apart.
        assert_eq!(starts(Normalization::Nfkc, "e\u{301}ﬁ"), [0, 3, 3]);
        // The dot below moves before the acute accent, and composes.
        assert_eq!(starts(Normalization::Nfd, "xé\u{323}"), [0, 1, 1, 1]);
        assert_eq!(starts(Normalization::Nfc, "xe\u{301}\u{323}"), [0, 1, 1]);
    }

    #[test]
    fn characters_that_change_alone_keep_their_offsets() {
        let (normalized, alignment) = aligned(Normalization::Nfkc, "ＡＢﬁ");
        assert_eq!(normalized, "ABfi");
        assert_eq!((alignment.start(1), alignment.end(2)), (3, 6));
        assert_eq!((alignment.start(2), alignment.end(3)), (6, 9));
    }

    #[test]
    fn a_character_that_begins_a_run_is_normalised_separately() {
        for form in [
            Normalization::Nfc,
            Normalization::Nfd,
            Normalization::Nfkc,
            Normalization::Nfkd,
        ] {
            let before = [
                "a",
                "e\u{301}",
                "\u{1100}",
                "\u{ac00}",
                "\u{9c7}",
                "\u{1f00}\u{345}",
            ]
            .map(|before| (before, apply(form, before)));
            for c in ('\0'..='\u{2ffff}').filter(|&c| form.begins_run(c)) {
                let alone = apply(form, &c.to_string());
                for (before, normalized) in &before {
                    let whole = apply(form, &format!("{before}{c}"));
                    assert_eq!(
                        whole,
                        format!("{normalized}{alone}"),
                        "{form} {before:?} {c:?}"
                    );
                }
            }
        }
    }

    #[test]
    fn a_boundary_is_a_character_that_begins_a_run_and_does_not_change() {
        for form in FORMS {
            for c in '\0'..=char::MAX {
                let text = c.to_string();
                let is_boundary = form.begins_run(c) && whole(form, &text) == text;
                assert_eq!(form.is_boundary(c), is_boundary, "{form} {c:?}");
            }
        }
    }

    #[test]
    fn the_parts_of_an_alignment_are_those_of_the_text() {
        for form in FORMS {
            let is_cut = |c| !form.is_boundary(c) || form.begins_run(c);
            assert!(('\0'..=char::MAX).all(is_cut), "{form}");
        }
    }

    #[test]
    fn the_first_characters_of_two_texts_are_compared() {
        for length in (0..200).step_by(7) {
            let text = "語".repeat(length);
            assert_eq!(common_prefix(&text, &text), text.len());
            let (a, b) = (format!("{text}é"), format!("{text}è"));
            assert_eq!(common_prefix(&a, &b), text.len());
            assert_eq!(common_prefix(&a, &text), text.len());
        }
    }

    #[test]
    fn long_stretches_are_normalised_as_a_whole() {
        let marks: String = "\u{301}\u{323}\u{345}\u{327}"
            .chars()
            .cycle()
            .take(9000)
            .collect();
        for text in [
            format!("a{marks}b"),
            format!("\u{344}{marks}"),
            "가각".repeat(3000),
            "\u{1161}".repeat(5000),
            "e\u{301}".repeat(5000),
        ] {
            for form in FORMS {
                assert_eq!(apply(form, &text), whole(form, &text), "{form}");
                let aligned = rewritten(form, &text, true);
                let aligned = aligned.map(|(text, _)| String::from_utf8(text).unwrap());
                assert_eq!(
                    aligned.unwrap_or(text.clone()),
                    whole(form, &text),
                    "{form}"
                );
            }
        }
    }

    #[test]
    fn every_text_polls() {
        const BYTES: usize = 1 << 20;
        for unit in ["a", "語", "가", "e\u{301}", "\u{301}\u{323}", "\u{1161}"] {
            let text = unit.repeat(BYTES / unit.len());
            for (form, aligned) in FORMS.into_iter().zip([false, true, true, false]) {
                let stop = || true;
                let stopped = form.rewrite(&text, aligned, &Interrupt::new(&stop));
                assert!(matches!(stopped, Err(Error::Interrupted)), "{form} {unit}");
            }
        }
    }
}
