//! Rewritten texts, and which bytes of the original their bytes come from.

use crate::error::Result;
use crate::reserve::{append, reserve};
use crate::text::code_point;
use std::ops::Range;

/// The changes that turned a text into another.
#[derive(Clone, Debug, Default)]
pub struct Alignment {
    /// In ascending order, without overlaps.
    changes: Vec<Change>,
}

/// Replaced bytes. Either range may be empty.
#[derive(Clone, Debug)]
struct Change {
    from: Range<usize>,
    to: Range<usize>,
}

static UNCHANGED: Alignment = Alignment {
    changes: Vec::new(),
};

impl Alignment {
    /// Appends a change: bytes `from` of the original became bytes `to`.
    pub fn push(&mut self, from: Range<usize>, to: Range<usize>) {
        self.changes.push(Change { from, to });
    }

    /// The original start of a span that starts at byte `at` of the changed text. A position inside
    /// a change maps to the change's start.
    pub fn start(&self, at: usize) -> usize {
        let earlier = self.changes.partition_point(|change| change.to.end <= at);
        match self.changes.get(earlier) {
            Some(change) if change.to.start <= at => change.from.start,
            _ => self.after(earlier, at),
        }
    }

    /// The original end of a span that ends at byte `at` of the changed text. A position inside
    /// a change maps to the change's end.
    pub fn end(&self, at: usize) -> usize {
        let index = self.changes.partition_point(|change| change.to.start < at);
        match index.checked_sub(1).map(|last| &self.changes[last]) {
            Some(change) if at < change.to.end => change.from.end,
            _ => self.after(index, at),
        }
    }

    /// The original position of `at`, which follows the first `changes` changes and lies in none.
    fn after(&self, changes: usize, at: usize) -> usize {
        match changes.checked_sub(1).map(|last| &self.changes[last]) {
            Some(change) => change.from.end + (at - change.to.end),
            None => at,
        }
    }
}

/// A rewritten text, and what changed.
pub type Rewritten = (Vec<u8>, Alignment);

/// Rewrites a text from left to right.
pub struct Rewriting<'a> {
    original: &'a [u8],
    /// The original bytes before this one are rewritten.
    done: usize,
    text: Vec<u8>,
    alignment: Option<Alignment>,
    /// The error of the first replacement without memory.
    room: Result<()>,
}

impl<'a> Rewriting<'a> {
    /// Starts a rewriting. It records its changes only if `aligned` is set.
    pub fn new(original: &'a [u8], aligned: bool) -> Self {
        Self {
            original,
            done: 0,
            text: Vec::new(),
            alignment: aligned.then(Alignment::default),
            room: Ok(()),
        }
    }

    /// Whether it records its changes.
    pub fn is_aligned(&self) -> bool {
        self.alignment.is_some()
    }

    /// Copies the bytes before the range, and writes `content` in place of the range.
    pub fn replace(&mut self, range: Range<usize>, content: &[u8]) {
        if self.room.is_ok() {
            self.room = self.reserve(range.start - self.done + content.len());
        }
        if self.room.is_err() {
            return;
        }
        self.text
            .extend_from_slice(&self.original[self.done..range.start]);
        let start = self.text.len();
        self.text.extend_from_slice(content);
        self.done = range.end;
        if let Some(alignment) = &mut self.alignment {
            alignment.push(range, start..self.text.len());
        }
    }

    /// Makes room for further bytes and a change.
    fn reserve(&mut self, bytes: usize) -> Result<()> {
        if self.done == 0 {
            let _ = self.text.try_reserve(self.original.len() * 5 / 4); // grows as needed without
        }
        if let Some(alignment) = &mut self.alignment {
            reserve(&mut alignment.changes, 1)?;
        }
        reserve(&mut self.text, bytes)
    }

    /// Copies the remaining bytes; `None` if nothing was replaced. Fails if there was no memory.
    pub fn finish(mut self) -> Result<Option<Rewritten>> {
        self.room?;
        if self.done == 0 {
            return Ok(None);
        }
        append(&mut self.text, &self.original[self.done..])?;
        Ok(Some((self.text, self.alignment.unwrap_or_default())))
    }
}

/// Prepends `content` to the text's first character, whose offsets then cover it; `None` if either is
/// empty.
pub fn prepend(text: &[u8], content: &str, aligned: bool) -> Result<Option<Rewritten>> {
    if text.is_empty() || content.is_empty() {
        return Ok(None);
    }
    let first = code_point(text, 0).1;
    let mut rewriting = Rewriting::new(text, aligned);
    rewriting.replace(0..first, &[content.as_bytes(), &text[..first]].concat());
    rewriting.finish()
}

/// Maps offsets in a rewritten text to offsets in the original text, through any number of rewritings.
#[derive(Clone, Copy)]
pub struct OffsetMap<'a> {
    /// The map of the text that was rewritten; `None` for the original text.
    pub outer: Option<&'a OffsetMap<'a>>,
    /// Where the rewritten part begins in that text.
    pub base: usize,
    /// What changed in that part.
    pub alignment: &'a Alignment,
    /// Where this text begins in the rewritten part.
    pub offset: usize,
}

impl OffsetMap<'_> {
    /// The map of the original text from byte `base` on.
    pub const fn original(base: usize) -> OffsetMap<'static> {
        OffsetMap {
            outer: None,
            base,
            alignment: &UNCHANGED,
            offset: 0,
        }
    }

    /// The original position of byte 0, if the other positions keep their distances from it.
    pub fn unchanged_base(&self) -> Option<usize> {
        let is_unchanged = self.outer.is_none() && self.alignment.changes.is_empty();
        is_unchanged.then_some(self.base + self.offset)
    }

    /// The original start of a span that starts at byte `at`.
    pub fn start(&self, at: usize) -> usize {
        let at = self.base + self.alignment.start(self.offset + at);
        self.outer.map_or(at, |outer| outer.start(at))
    }

    /// The original end of a span that ends at byte `at`.
    pub fn end(&self, at: usize) -> usize {
        let at = self.base + self.alignment.end(self.offset + at);
        self.outer.map_or(at, |outer| outer.end(at))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_position_leads_back() {
        let mut rewriting = Rewriting::new(b"ab cd ef", true);
        rewriting.replace(0..1, b"__a"); // prepended to the first character
        rewriting.replace(2..3, b"...");
        rewriting.replace(5..6, b"");
        let (text, alignment) = rewriting.finish().unwrap().unwrap();
        assert_eq!(text, b"__ab...cdef");
        let starts: Vec<_> = (0..=text.len()).map(|at| alignment.start(at)).collect();
        assert_eq!(starts, [0, 0, 0, 1, 2, 2, 2, 3, 4, 6, 7, 8]);
        let ends: Vec<_> = (1..=text.len()).map(|at| alignment.end(at)).collect();
        assert_eq!(ends, [1, 1, 1, 2, 3, 3, 3, 4, 5, 7, 8]);
    }

    #[test]
    fn offset_maps_nest() {
        let (mut outer, mut inner) = (Alignment::default(), Alignment::default());
        outer.push(0..2, 0..1);
        inner.push(1..2, 1..4);
        let outer = OffsetMap {
            outer: None,
            base: 10,
            alignment: &outer,
            offset: 0,
        };
        let map = OffsetMap {
            outer: Some(&outer),
            base: 1,
            alignment: &inner,
            offset: 0,
        };
        assert_eq!((map.start(0), map.start(2), map.end(4)), (12, 13, 14));
        assert_eq!((map.unchanged_base(), outer.unchanged_base()), (None, None));
        let part = OffsetMap {
            offset: 3,
            ..OffsetMap::original(10)
        };
        assert_eq!((part.unchanged_base(), part.start(0)), (Some(13), 13));
    }
}
