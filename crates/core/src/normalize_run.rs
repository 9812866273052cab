//! Normalises a run of characters as they arrive, in linear time and whatever its length.
//!
//! This is the algorithm of the Unicode Standard (sections 3.11, "Canonical Ordering Algorithm" and "Canonical
//! Composition Algorithm"). The ordering is a bucket sort by combining class: there are about 55 classes.

use crate::error::Result;
use crate::reserve::reserve_text;
use unicode_normalization::char::{
    canonical_combining_class, compose, decompose_canonical, decompose_compatible,
};

/// The last starter (a character of class 0) and the characters after it, which further ones may reorder or
/// compose with.
pub struct RunNormalizer {
    composes: bool,
    is_compatible: bool,
    starter: Option<char>,
    /// The combining characters after the starter by their class, in ascending order of the classes.
    marks: Vec<(u8, String)>,
}

impl RunNormalizer {
    /// Whether characters are composed, and whether their decompositions are those of compatibility.
    pub fn new(composes: bool, is_compatible: bool) -> Self {
        Self {
            composes,
            is_compatible,
            starter: None,
            marks: Vec::new(),
        }
    }

    /// Adds the next character. Appends to `out` what no further character changes.
    pub fn push(&mut self, c: char, out: &mut String) -> Result<()> {
        let (is_compatible, mut room) = (self.is_compatible, Ok(()));
        let take = |decomposed| {
            if room.is_ok() {
                room = match canonical_combining_class(decomposed) {
                    0 => self.start(decomposed, out),
                    class => self.add_mark(class, decomposed),
                };
            }
        };
        if is_compatible {
            decompose_compatible(c, take);
        } else {
            decompose_canonical(c, take);
        }
        room
    }

    /// Appends the remaining characters to `out`, and starts another run.
    pub fn finish(&mut self, out: &mut String) -> Result<()> {
        self.compose_marks();
        self.flush(out)
    }

    fn start(&mut self, starter: char, out: &mut String) -> Result<()> {
        self.compose_marks();
        if self.composes && self.marks.is_empty() {
            let composed = self.starter.and_then(|last| compose(last, starter));
            if composed.is_some() {
                self.starter = composed;
                return Ok(());
            }
        }
        self.flush(out)?;
        self.starter = Some(starter);
        Ok(())
    }

    fn add_mark(&mut self, class: u8, mark: char) -> Result<()> {
        let at = self.marks.partition_point(|(other, _)| *other < class);
        match self.marks.get_mut(at) {
            Some((other, marks)) if *other == class => {
                reserve_text(marks, mark.len_utf8())?;
                marks.push(mark);
            }
            _ => self.marks.insert(at, (class, mark.into())),
        }
        Ok(())
    }

    /// Composes the starter with the marks. One that does not compose blocks those of its class after it.
    fn compose_marks(&mut self) {
        let Some(starter) = self.starter.as_mut().filter(|_| self.composes) else {
            return;
        };
        self.marks.retain_mut(|(_, marks)| {
            let mut composed = 0;
            for mark in marks.chars() {
                let Some(with_mark) = compose(*starter, mark) else {
                    break;
                };
                *starter = with_mark;
                composed += mark.len_utf8();
            }
            marks.drain(..composed);
            !marks.is_empty()
        });
    }

    fn flush(&mut self, out: &mut String) -> Result<()> {
        let marks: usize = self.marks.iter().map(|(_, marks)| marks.len()).sum();
        reserve_text(out, marks + 4)?;
        out.extend(self.starter.take());
        for (_, marks) in self.marks.drain(..) {
            out.push_str(&marks);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use crate::normalize::tests::{any_text, whole, FORMS};
    use crate::normalize::Normalization;
    use proptest::prelude::*;

    fn run(form: Normalization, text: &str) -> String {
        let (mut run, mut out) = (form.run(), String::new());
        text.chars().for_each(|c| run.push(c, &mut out).unwrap());
        run.finish(&mut out).unwrap();
        out
    }

    #[test]
    fn every_character_is_normalised() {
        for form in FORMS {
            for c in '\0'..='\u{2ffff}' {
                let text = format!("e{c}\u{301}가{c}{c}\u{323}");
                assert_eq!(run(form, &text), whole(form, &text), "{form} {c:?}");
            }
        }
    }

    #[test]
    fn a_mark_blocks_those_of_its_class() {
        // The first acute accent composes, the second does not, and the cedilla (a lower class) precedes both.
        assert_eq!(
            run(Normalization::Nfc, "c\u{301}\u{301}\u{327}"),
            "\u{1e09}\u{301}"
        );
        assert_eq!(
            run(Normalization::Nfc, "\u{301}e\u{308}\u{301}"),
            "\u{301}ë\u{301}"
        );
    }

    proptest! {
        #[test]
        fn a_run_is_normalised_as_a_whole(text in any_text()) {
            for form in FORMS {
                prop_assert_eq!(run(form, &text), whole(form, &text));
            }
        }
    }
}
