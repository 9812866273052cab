//! Where the bytes of a rewritten text stood before.

use std::ops::Range;

/// The changes that made a text of another.
#[derive(Clone, Debug, Default)]
pub struct Alignment {
    changes: Vec<Change>,
}

/// A run of bytes that became another run; either may be empty.
#[derive(Clone, Debug)]
struct Change {
    from: Range<usize>,
    to: Range<usize>,
}

/// Of a text that nothing changed.
static UNCHANGED: Alignment = Alignment {
    changes: Vec::new(),
};

impl Alignment {
    /// Adds a change behind those that are there: `from` in the text as it was became `to`.
    pub fn push(&mut self, from: Range<usize>, to: Range<usize>) {
        self.changes.push(Change { from, to });
    }

    /// The byte of the text as it was at which a span that begins at byte `at` of the changed text
    /// begins. A position inside a changed run goes to the run's start.
    pub fn start(&self, at: usize) -> usize {
        let before = self.changes.partition_point(|change| change.to.end <= at);
        match self.changes.get(before) {
            Some(change) if change.to.start <= at => change.from.start,
            _ => self.behind(before, at),
        }
    }

    /// The same for where a span ends: a position inside a changed run goes to the run's end.
    pub fn end(&self, at: usize) -> usize {
        let index = self.changes.partition_point(|change| change.to.start < at);
        match index.checked_sub(1).map(|last| &self.changes[last]) {
            Some(change) if at < change.to.end => change.from.end,
            _ => self.behind(index, at),
        }
    }

    /// Where a position stood that lies behind so many changes and inside none.
    fn behind(&self, changes: usize, at: usize) -> usize {
        match changes.checked_sub(1).map(|last| &self.changes[last]) {
            Some(change) => change.from.end + (at - change.to.end),
            None => at,
        }
    }
}

/// A text being rewritten from left to right.
pub struct Rewriting<'a> {
    given: &'a [u8],
    /// How much of the given text is done.
    done: usize,
    text: Vec<u8>,
    alignment: Option<Alignment>,
}

impl<'a> Rewriting<'a> {
    /// Begins; changes are kept only if `aligned` asks for them.
    pub fn new(given: &'a [u8], aligned: bool) -> Self {
        Self {
            given,
            done: 0,
            text: Vec::with_capacity(given.len() + given.len() / 4),
            alignment: aligned.then(Alignment::default),
        }
    }

    /// Takes over everything up to the range, and puts something else in the range's place.
    pub fn replace(&mut self, range: Range<usize>, content: &[u8]) {
        self.text
            .extend_from_slice(&self.given[self.done..range.start]);
        let start = self.text.len();
        self.text.extend_from_slice(content);
        self.done = range.end;
        if let Some(alignment) = &mut self.alignment {
            alignment.push(range, start..self.text.len());
        }
    }

    /// Takes over the rest.
    pub fn finish(mut self) -> (Vec<u8>, Alignment) {
        self.text.extend_from_slice(&self.given[self.done..]);
        (self.text, self.alignment.unwrap_or_default())
    }
}

/// Where a rewritten text stands: in a text that may be rewritten itself, and so on out to the text as
/// given.
#[derive(Clone, Copy)]
pub struct Place<'a> {
    /// The place of the text that was rewritten; none for the text as given.
    pub outer: Option<&'a Place<'a>>,
    /// Where in it the rewritten part begins.
    pub base: usize,
    /// What was changed in that part.
    pub alignment: &'a Alignment,
    /// Where our text begins in what the changes made.
    pub offset: usize,
}

impl Place<'_> {
    /// The place of what begins at a byte of the text as given, and is not rewritten.
    pub const fn given(base: usize) -> Place<'static> {
        Place {
            outer: None,
            base,
            alignment: &UNCHANGED,
            offset: 0,
        }
    }

    /// The byte of the text as given where a span that begins at `at` begins.
    pub fn start(&self, at: usize) -> usize {
        let at = self.base + self.alignment.start(self.offset + at);
        self.outer.map_or(at, |outer| outer.start(at))
    }

    /// The byte of the text as given behind a span that ends at `at`.
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
        rewriting.replace(0..1, b"__a"); // put before the first character, which keeps its place
        rewriting.replace(2..3, b"...");
        rewriting.replace(5..6, b"");
        let (text, alignment) = rewriting.finish();
        assert_eq!(text, b"__ab...cdef");
        let starts: Vec<_> = (0..=text.len()).map(|at| alignment.start(at)).collect();
        assert_eq!(starts, [0, 0, 0, 1, 2, 2, 2, 3, 4, 6, 7, 8]);
        let ends: Vec<_> = (1..=text.len()).map(|at| alignment.end(at)).collect();
        assert_eq!(ends, [1, 1, 1, 2, 3, 3, 3, 4, 5, 7, 8]);
    }

    #[test]
    fn places_nest() {
        let (mut outer, mut inner) = (Alignment::default(), Alignment::default());
        outer.push(0..2, 0..1);
        inner.push(1..2, 1..4);
        let outer = Place {
            outer: None,
            base: 10,
            alignment: &outer,
            offset: 0,
        };
        let place = Place {
            outer: Some(&outer),
            base: 1,
            alignment: &inner,
            offset: 0,
        };
        assert_eq!((place.start(0), place.start(2), place.end(4)), (12, 13, 14));
    }
}
