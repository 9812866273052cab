//! Unicode normalisation forms (Unicode Standard Annex 15), with alignments to the original text.

use std::borrow::Cow;
use std::fmt;
use std::str::FromStr;
use std::sync::OnceLock;
use unicode_normalization::char::{
    canonical_combining_class, decompose_canonical, decompose_compatible,
};
use unicode_normalization::{
    is_nfc_quick, is_nfd_quick, is_nfkc_quick, is_nfkd_quick, IsNormalized, UnicodeNormalization,
};

use crate::alignment::{Rewriting, Rewritten};
use crate::error::Error;

/// A normalisation form.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
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

    fn from_str(name: &str) -> Result<Self, Error> {
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

    /// The normalised text; borrowed if nothing changes.
    ///
    /// Only a run of several characters between two boundaries can change. The function normalises these
    /// runs and copies the rest.
    pub fn apply(self, text: &str) -> Cow<'_, str> {
        let boundaries = self.boundaries();
        // `normalized` is the result for the text before `done`. The next character's run begins at `run`.
        let (mut normalized, mut done, mut run, mut at) = (String::new(), 0, 0, 0);
        while at < text.len() {
            let ascii = ascii_prefix(&text.as_bytes()[at..]);
            if ascii > 0 {
                at += ascii;
                run = at - 1;
                continue;
            }
            let inside = text[at..].char_indices();
            let mut inside = inside.skip_while(|&(_, c)| !boundaries.contains(c));
            let next = inside.next();
            let end = next.map_or(text.len(), |(before, _)| at + before);
            if end > at {
                if let Some(changed) = self.changed(&text[run..end]) {
                    normalized.push_str(&text[done..run]);
                    normalized.push_str(&changed);
                    done = end;
                }
            }
            run = end;
            at = end + next.map_or(0, |(_, c)| c.len_utf8());
        }
        if done == 0 {
            return Cow::Borrowed(text);
        }
        normalized.push_str(&text[done..]);
        Cow::Owned(normalized)
    }

    /// The normalised text; `None` if nothing changes.
    fn changed(self, text: &str) -> Option<String> {
        if self.quick_check(text.chars()) == IsNormalized::Yes {
            return None;
        }
        let normalized: String = match self {
            Self::Nfc => text.nfc().collect(),
            Self::Nfd => text.nfd().collect(),
            Self::Nfkc => text.nfkc().collect(),
            Self::Nfkd => text.nfkd().collect(),
        };
        (normalized != text).then_some(normalized)
    }

    /// Whether the text before `c` and the text from `c` on can be normalised separately, and `c` does not
    /// change: it neither reorders nor composes with the characters before it ("stable code point").
    pub fn is_boundary(self, c: char) -> bool {
        c.is_ascii() || self.boundaries().contains(c)
    }

    /// The results of [`Normalization::find_boundary`] in a table, which is faster.
    fn boundaries(self) -> &'static Boundaries {
        static FORMS: [OnceLock<Boundaries>; 4] = [const { OnceLock::new() }; 4];
        FORMS[self as usize].get_or_init(|| Boundaries::new(self))
    }

    fn find_boundary(self, c: char) -> bool {
        canonical_combining_class(c) == 0
            && self.quick_check(std::iter::once(c)) == IsNormalized::Yes
    }

    /// The normalised text with its alignment to the original; `None` if nothing changes.
    pub fn align(self, text: &str) -> Option<Rewritten> {
        if matches!(self.apply(text), Cow::Borrowed(_)) {
            return None;
        }
        let mut rewriting = Rewriting::new(text.as_bytes(), true);
        for range in self.runs(text) {
            let run = &text[range.clone()];
            let normalized = self.apply(run);
            if normalized != run {
                let kept = common_prefix(run, &normalized);
                let changed = &normalized.as_bytes()[kept..];
                rewriting.replace(range.start + kept..range.end, changed);
            }
        }
        rewriting.finish()
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
                && is_nfc_quick(std::iter::once(first)) != IsNormalized::Maybe
        })
    }

    /// Cuts the text into parts that can be normalised separately.
    fn runs(self, text: &str) -> impl Iterator<Item = std::ops::Range<usize>> + '_ {
        let mut starts = text
            .char_indices()
            .filter(move |&(at, c)| at > 0 && self.begins_run(c))
            .map(|(at, _)| at)
            .chain(std::iter::once(text.len()));
        let mut start = 0;
        std::iter::from_fn(move || {
            let end = starts.next()?;
            let run = start..end;
            start = end;
            Some(run)
        })
    }
}

/// The boundaries of a form: a bit for each character up to U+FFFF.
struct Boundaries {
    form: Normalization,
    bits: Box<[u64]>,
}

impl Boundaries {
    fn new(form: Normalization) -> Self {
        let is_boundary = |number| char::from_u32(number).is_some_and(|c| form.find_boundary(c));
        let word = |first: u32| (0..64).map(move |bit| u64::from(is_boundary(first + bit)) << bit);
        let words = (0..1 << 16).step_by(64).map(|first| word(first).sum());
        Self {
            form,
            bits: words.collect(),
        }
    }

    fn contains(&self, c: char) -> bool {
        let number = u32::from(c);
        match self.bits.get(number as usize / 64) {
            Some(word) => word >> (number % 64) & 1 == 1,
            None => self.form.find_boundary(c),
        }
    }
}

/// The number of ASCII bytes at the beginning.
fn ascii_prefix(bytes: &[u8]) -> usize {
    let is_ascii = |chunk: &&[u8]| chunk.is_ascii();
    let whole = 16 * bytes.chunks_exact(16).take_while(is_ascii).count();
    let rest = bytes[whole..].iter();
    whole + rest.take_while(|byte| byte.is_ascii()).count()
}

/// The length of the characters that both texts begin with, in bytes.
fn common_prefix(a: &str, b: &str) -> usize {
    let same = a.chars().zip(b.chars()).take_while(|(x, y)| x == y);
    same.map(|(c, _)| c.len_utf8()).sum()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::alignment::Alignment;
    use proptest::prelude::*;

    #[test]
    fn a_normalised_text_is_not_copied() {
        for text in ["plain", "café", "日本語"] {
            assert!(matches!(Normalization::Nfc.apply(text), Cow::Borrowed(_)));
        }
        assert_eq!(Normalization::Nfc.apply("cafe\u{301}"), "café");
        assert_eq!(Normalization::Nfkd.apply("ﬁ①"), "fi1");
    }

    fn whole(form: Normalization, text: &str) -> String {
        match form {
            Normalization::Nfc => text.nfc().collect(),
            Normalization::Nfd => text.nfd().collect(),
            Normalization::Nfkc => text.nfkc().collect(),
            Normalization::Nfkd => text.nfkd().collect(),
        }
    }

    const FORMS: [Normalization; 4] = [
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
                assert_eq!(form.apply(&text), whole(form, &text), "{form} {c:?}");
            }
        }
    }

    fn any_text() -> impl Strategy<Value = String> {
        let joining = "e\u{301}\u{323}\u{345}가\u{1100}\u{1161}\u{11a8}\u{9c7}\u{9be}ﬁéệ語 a\u{1d15e}\u{1f00}";
        let joining: Vec<char> = joining.chars().collect();
        let c = prop_oneof![4 => prop::sample::select(joining), 1 => any::<char>()];
        prop::collection::vec(c, 0..60).prop_map(String::from_iter)
    }

    proptest! {
        #[test]
        fn a_text_is_normalised_as_a_whole(text in any_text(), plain in "[a-z ]{0,40}") {
            for form in FORMS {
                for text in [&text, &format!("{plain}{text}{plain}"), &format!("{text}{plain}{text}")] {
                    prop_assert_eq!(form.apply(text), whole(form, text));
                }
            }
        }
    }

    fn aligned(form: Normalization, text: &str) -> (String, Alignment) {
        let (normalized, alignment) = form.align(text).unwrap();
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
            for before in [
                "a",
                "e\u{301}",
                "\u{1100}",
                "\u{ac00}",
                "\u{9c7}",
                "\u{1f00}\u{345}",
            ] {
                for c in ('\0'..='\u{2ffff}').filter(|&c| form.begins_run(c)) {
                    let whole = format!("{before}{c}");
                    let apart = format!("{}{}", form.apply(before), form.apply(&c.to_string()));
                    assert_eq!(form.apply(&whole), apart, "{form} {before:?} {c:?}");
                }
            }
        }
    }

    #[test]
    fn texts_can_be_cut_at_boundaries() {
        let text = "a\u{323}\u{307}e\u{301}가\u{11a8}각ﬁ ą\u{309}\u{1f00}\u{345}\u{9c7}\u{9be}";
        for form in [
            Normalization::Nfc,
            Normalization::Nfd,
            Normalization::Nfkc,
            Normalization::Nfkd,
        ] {
            let parts: String = form.runs(text).map(|run| form.apply(&text[run])).collect();
            assert_eq!(parts, form.apply(text), "{form}");
        }
    }
}
