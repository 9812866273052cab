//! Unicode normalisation (Unicode Standard Annex 15), and where each byte came from.

use std::borrow::Cow;
use std::fmt;
use std::str::FromStr;
use unicode_normalization::char::{
    canonical_combining_class, decompose_canonical, decompose_compatible,
};
use unicode_normalization::{
    is_nfc_quick, is_nfd_quick, is_nfkc_quick, is_nfkd_quick, IsNormalized, UnicodeNormalization,
};

use crate::alignment::Alignment;
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
        match name {
            "NFC" => Ok(Self::Nfc),
            "NFD" => Ok(Self::Nfd),
            "NFKC" => Ok(Self::Nfkc),
            "NFKD" => Ok(Self::Nfkd),
            _ => Err(Error::Option(format!(
                "normalization {name:?} is not known; use \"NFC\", \"NFD\", \"NFKC\", \"NFKD\" or None"
            ))),
        }
    }
}

impl fmt::Display for Normalization {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Nfc => "NFC",
            Self::Nfd => "NFD",
            Self::Nfkc => "NFKC",
            Self::Nfkd => "NFKD",
        })
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

    /// The normalised text, which is the text itself if nothing changes.
    pub fn apply(self, text: &str) -> Cow<'_, str> {
        if text.is_ascii() || self.quick_check(text.chars()) == IsNormalized::Yes {
            return Cow::Borrowed(text);
        }
        let mut normalized = String::with_capacity(text.len());
        match self {
            Self::Nfc => normalized.extend(text.nfc()),
            Self::Nfd => normalized.extend(text.nfd()),
            Self::Nfkc => normalized.extend(text.nfkc()),
            Self::Nfkd => normalized.extend(text.nfkd()),
        }
        if normalized == text {
            Cow::Borrowed(text)
        } else {
            Cow::Owned(normalized)
        }
    }

    /// Whether what stands before `c` and what begins with it can be normalised apart: `c` keeps
    /// itself, and neither reorders nor composes with what comes before ("stable code point").
    pub fn is_boundary(self, c: char) -> bool {
        c.is_ascii()
            || canonical_combining_class(c) == 0
                && self.quick_check(std::iter::once(c)) == IsNormalized::Yes
    }

    /// The normalised text with the way back.
    pub fn align(self, text: &str) -> (Cow<'_, str>, Alignment) {
        let whole = self.apply(text);
        if matches!(whole, Cow::Borrowed(_)) {
            return (whole, Alignment::default());
        }
        let mut alignment = Alignment::default();
        let mut done = 0;
        for range in self.runs(text) {
            let run = &text[range.clone()];
            let normalized = self.apply(run);
            if normalized != run {
                let kept = common_prefix(run, &normalized);
                alignment.push(
                    range.start + kept..range.end,
                    done + kept..done + normalized.len(),
                );
            }
            done += normalized.len();
        }
        (whole, alignment)
    }

    /// Whether what begins with `c` can be normalised apart from what comes before, though `c` itself
    /// may change: it begins with a character that neither reorders nor composes backwards.
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

    /// Cuts the text where its parts can be normalised apart.
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

/// Bytes of the characters that both texts begin with.
fn common_prefix(a: &str, b: &str) -> usize {
    let same = a.chars().zip(b.chars()).take_while(|(x, y)| x == y);
    same.map(|(c, _)| c.len_utf8()).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_that_is_normal_is_not_copied() {
        for text in ["plain", "café", "日本語"] {
            assert!(matches!(Normalization::Nfc.apply(text), Cow::Borrowed(_)));
        }
        assert_eq!(Normalization::Nfc.apply("cafe\u{301}"), "café");
        assert_eq!(Normalization::Nfkd.apply("ﬁ①"), "fi1");
    }

    #[test]
    fn the_alignment_leads_back() {
        let text = "xe\u{301}y가\u{11a8}ﬁz";
        for form in [
            Normalization::Nfc,
            Normalization::Nfd,
            Normalization::Nfkc,
            Normalization::Nfkd,
        ] {
            let (normalized, alignment) = form.align(text);
            for c in ['x', 'y', 'z'] {
                let (was, is) = (text.find(c).unwrap(), normalized.find(c).unwrap());
                assert_eq!(alignment.start(is), was, "{form} {c}");
                assert_eq!(alignment.end(is + 1), was + 1, "{form} {c}");
            }
            assert_eq!(alignment.end(normalized.len()), text.len());
        }
        let (normalized, alignment) = Normalization::Nfc.align("e\u{301}x");
        assert_eq!(normalized, "éx");
        assert_eq!((alignment.start(1), alignment.end(1)), (0, 3));
        assert_eq!((alignment.start(2), alignment.end(2)), (3, 3));
    }

    #[test]
    fn characters_that_change_alone_keep_their_place() {
        let (normalized, alignment) = Normalization::Nfkc.align("ＡＢﬁ");
        assert_eq!(normalized, "ABfi");
        assert_eq!((alignment.start(1), alignment.end(2)), (3, 6));
        assert_eq!((alignment.start(2), alignment.end(3)), (6, 9));
    }

    #[test]
    fn every_character_can_begin_a_run_where_it_says_so() {
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
