//! Text in units of one width, as CPython stores a `str`, and its UTF-8.
//!
//! A `str` of CPython has one unit for each code point, of one, two or four bytes (PEP 393). Python makes the UTF-8 of a
//! `str` with the GIL, and keeps it. Here, each thread makes that of its texts, in memory that it uses again.

mod simd;

use crate::error::Result;
use crate::processor::Processor;
use crate::reserve::{push, reserve_text};
use std::ops::Range;

/// The code points of a text.
///
/// A high surrogate and a low one after it are one code point, as in UTF-16. Every other surrogate is U+FFFD.
#[derive(Clone, Copy, Debug)]
pub enum CodeUnits<'a> {
    /// Code points below U+0100.
    Latin1(&'a [u8]),
    /// Code points below U+10000.
    Ucs2(&'a [u16]),
    /// All code points.
    Ucs4(&'a [u32]),
}

/// The fewest units that the estimate of the bytes of a text looks at; all of a shorter text.
const MIN_SAMPLES: usize = 16;
/// The largest distance between two of them.
const MAX_STEP: usize = 256;

/// The units whose UTF-8 is made before there must be more room: a multiple of the group.
const CHUNK: usize = 32 << 10;

/// Calls a function with the slice of units.
macro_rules! with_units {
    ($text:expr, $units:ident => $result:expr) => {
        match $text {
            CodeUnits::Latin1($units) => $result,
            CodeUnits::Ucs2($units) => $result,
            CodeUnits::Ucs4($units) => $result,
        }
    };
}

impl<'a> CodeUnits<'a> {
    /// The number of units.
    pub fn len(self) -> usize {
        with_units!(self, units => units.len())
    }

    /// Whether the text is empty.
    pub fn is_empty(self) -> bool {
        self.len() == 0
    }

    /// The units in a range.
    pub fn slice(self, range: Range<usize>) -> Self {
        match self {
            Self::Latin1(units) => Self::Latin1(&units[range]),
            Self::Ucs2(units) => Self::Ucs2(&units[range]),
            Self::Ucs4(units) => Self::Ucs4(&units[range]),
        }
    }

    /// About how many bytes the UTF-8 has.
    pub fn estimated_bytes(self) -> usize {
        with_units!(self, units => estimated_bytes(units))
    }

    /// Whether two units are one code point. Without such pairs, each unit is a character of the UTF-8.
    pub fn has_pairs(self) -> bool {
        with_units!(self, units => has_pairs(units))
    }

    /// The code points up to each pair of units that is one, inclusive.
    pub fn pairs(self) -> Result<Vec<usize>> {
        with_units!(self, units => pairs(units))
    }

    /// Appends the UTF-8.
    pub fn append_to(self, text: &mut String) -> Result<()> {
        self.append_with(Processor::best(), text)
    }

    fn append_with(self, processor: Processor, text: &mut String) -> Result<()> {
        with_units!(self, units => append(processor, units, text))
    }
}

/// A code point, or a half of one.
trait Unit: Copy + Default + Into<u32> {
    /// The most bytes that a unit has in UTF-8.
    const MAX_BYTES: usize;
}

impl Unit for u8 {
    const MAX_BYTES: usize = 2;
}

impl Unit for u16 {
    const MAX_BYTES: usize = 3;
}

impl Unit for u32 {
    const MAX_BYTES: usize = 4;
}

fn append<U: simd::VectorUnit>(
    processor: Processor,
    mut units: &[U],
    text: &mut String,
) -> Result<()> {
    if units.len() > CHUNK {
        let estimated = estimated_bytes(units);
        reserve_text(text, estimated + estimated / 16)?;
    }
    while !units.is_empty() {
        let chunk = &units[..units.len().min(CHUNK)];
        reserve_text(text, U::MAX_BYTES * chunk.len() + simd::MARGIN)?;
        let done = simd::append_groups(processor, chunk, text);
        units = &units[done..];
        if done < chunk.len() {
            units = append_group(units, text);
        }
    }
    Ok(())
}

fn estimated_bytes<U: Unit>(units: &[U]) -> usize {
    let step = (units.len() / MIN_SAMPLES).clamp(1, MAX_STEP);
    let samples = units.iter().step_by(step);
    let bytes = samples.map(|&unit| utf8_width(unit.into()));
    step * bytes.sum::<usize>()
}

/// Appends the UTF-8 of the first units, one by one, and returns the other units.
fn append_group<'a, U: Unit>(mut units: &'a [U], text: &mut String) -> &'a [U] {
    for _ in 0..simd::GROUP {
        let Some((&first, rest)) = units.split_first() else {
            break;
        };
        units = rest;
        let mut code_point = first.into();
        if let (0xd800..0xdc00, Some((&second, rest))) = (code_point, units.split_first()) {
            if let low @ 0xdc00..0xe000 = second.into() {
                code_point = 0x10000 + ((code_point - 0xd800) << 10) + (low - 0xdc00);
                units = rest;
            }
        }
        text.push(char::from_u32(code_point).unwrap_or(char::REPLACEMENT_CHARACTER));
    }
    units
}

fn has_pairs<U: Unit>(units: &[U]) -> bool {
    // The compiler makes vector instructions of this.
    let has_high = units.iter().fold(false, |found, &unit| {
        found | (unit.into() & 0xffff_fc00 == 0xd800)
    });
    has_high && units.windows(2).any(is_pair)
}

fn is_pair<U: Unit>(units: &[U]) -> bool {
    units[0].into() & 0xffff_fc00 == 0xd800 && units[1].into() & 0xffff_fc00 == 0xdc00
}

fn pairs<U: Unit>(units: &[U]) -> Result<Vec<usize>> {
    let mut found = Vec::new();
    if has_pairs(units) {
        for (index, _) in (1..)
            .zip(units.windows(2))
            .filter(|(_, pair)| is_pair(pair))
        {
            let joined = found.len();
            push(&mut found, index - joined)?;
        }
    }
    Ok(found)
}

/// The bytes of a unit in UTF-8.
fn utf8_width(unit: u32) -> usize {
    1 + usize::from(unit >= 0x80) + usize::from(unit >= 0x800) + usize::from(unit >= 0x10000)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// What the standard library makes of the units.
    fn expected(units: &[u32]) -> String {
        let mut utf16 = Vec::new();
        for &unit in units {
            match char::from_u32(unit) {
                Some(char) => utf16.extend_from_slice(char.encode_utf16(&mut [0; 2])),
                None => utf16.push(unit as u16), // a surrogate
            }
        }
        String::from_utf16_lossy(&utf16)
    }

    fn check(units: &[u32]) {
        let narrow: Option<Vec<u8>> = units.iter().map(|&unit| unit.try_into().ok()).collect();
        let middle: Option<Vec<u16>> = units.iter().map(|&unit| unit.try_into().ok()).collect();
        let forms = [
            Some(CodeUnits::Ucs4(units)),
            middle.as_deref().map(CodeUnits::Ucs2),
            narrow.as_deref().map(CodeUnits::Latin1),
        ];
        let expected = expected(units);
        for form in forms.into_iter().flatten() {
            assert_eq!(form.len(), units.len());
            let is_surrogate = |unit: &u32| (0xd800..0xe000).contains(unit);
            let has_surrogates = units.iter().any(is_surrogate);
            assert_eq!(form.has_pairs(), expected.chars().count() < units.len());
            let (mut characters, mut used) = (0, 0);
            let mut pairs = form.pairs().unwrap().into_iter().peekable();
            for char in expected.chars() {
                characters += 1;
                used += 1 + usize::from(pairs.next_if_eq(&characters).is_some());
                assert!(
                    char > '\u{ffff}' || units[used - 1] == u32::from(char) || char == '\u{fffd}'
                );
            }
            assert_eq!((used, pairs.next()), (units.len(), None));
            for processor in Processor::all() {
                let mut text = "before".to_owned();
                form.append_with(processor, &mut text).unwrap();
                assert_eq!(text["before".len()..], expected, "{processor:?}");
            }
            if units.len() < 2 * MIN_SAMPLES && !has_surrogates {
                assert_eq!(form.estimated_bytes(), expected.len());
            }
        }
    }

    /// Code points of a few kinds, so that neighbours are often of one kind.
    fn units() -> impl Strategy<Value = Vec<u32>> {
        let kinds: [Range<u32>; 10] = [
            0..0x80,
            0..0x100,
            0x80..0x800,
            0x7f0..0x810,
            0x800..0xd800,
            0xd7fe..0xe002,
            0..0x10000,
            0xfff0..0x10010,
            0x1f600..0x1f650,
            0..0x110000,
        ];
        let kind = prop::sample::select(kinds.to_vec());
        let run = kind.prop_flat_map(|kind| prop::collection::vec(kind, 0..40));
        prop::collection::vec(run, 0..6).prop_map(|runs| runs.concat())
    }

    proptest! {
        #[test]
        fn the_utf8_is_that_of_the_standard_library(units in units()) {
            check(&units);
        }
    }

    #[test]
    fn each_code_point_is_written_at_each_place_of_a_group() {
        let edges = [
            0, 0x7f, 0x80, 0x7ff, 0x800, 0xd7ff, 0xe000, 0xffff, 0x10000, 0x10ffff,
        ];
        for edge in edges {
            for other in [u32::from(b'a'), 0xe9, 0x8a9e] {
                for place in 0..24 {
                    let mut units = [other; 24];
                    units[place] = edge;
                    check(&units);
                }
            }
        }
    }

    #[test]
    fn pairs_of_surrogates_are_joined_wherever_they_stand() {
        for place in 0..20 {
            let mut units = [u32::from(b'a'); 24];
            (units[place], units[place + 1]) = (0xd83d, 0xde00);
            assert_eq!(expected(&units).chars().count(), 23);
            check(&units);
            units.swap(place, place + 1);
            assert_eq!(expected(&units).chars().count(), 24);
            check(&units);
        }
    }

    #[test]
    fn a_pair_across_two_chunks_is_joined() {
        let text = "ab\u{e9}\u{8a9e}".chars().map(u32::from);
        let units: Vec<u32> = text.cycle().take(CHUNK + 20).collect();
        for place in CHUNK - 10..CHUNK + 3 {
            let mut units = units.clone();
            (units[place], units[place + 1]) = (0xd83d, 0xde00);
            check(&units);
        }
    }

    #[test]
    fn the_length_of_a_long_text_is_nearly_right() {
        let text = "Все счастливые семьи похожи друг на друга. ".repeat(1000);
        let units: Vec<u16> = text.encode_utf16().collect();
        let estimated = CodeUnits::Ucs2(&units).estimated_bytes();
        assert!(estimated.abs_diff(text.len()) < text.len() / 10);
    }
}
