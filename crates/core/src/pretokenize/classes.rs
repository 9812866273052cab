//! The alphabet of the automata: classes of code points that a pattern does not tell apart.
//!
//! A pattern mentions a few sets of code points (`\p{L}`, `[\r\n]`, ...). Code points that are in the same
//! sets form one class. Most patterns have at most thirty.

use super::simd::{FirstByteClasses, NO_CLASS};
use regex_syntax::hir::ClassUnicode;
use rustc_hash::FxHashMap;

/// The low bits of a code point, which index a block.
const BLOCK_BITS: u32 = 7;
const BLOCK: usize = 1 << BLOCK_BITS;

/// The class of every code point: a two-stage table, with shortcuts by the first bytes of UTF-8.
pub struct Classes {
    /// The number of classes.
    pub count: usize,
    /// The classes that the first byte of a code point determines.
    pub of_first_byte: FirstByteClasses,
    /// For the first two bytes of three, the index of the half of a block that holds the classes of the code points
    /// that begin with them.
    of_first_two: Box<[u16; 1 << 10]>,
    /// For `code point >> BLOCK_BITS`, the index of the block that holds the class.
    block_of: Vec<u16>,
    blocks: Vec<[u8; BLOCK]>,
    /// For each set, for each class, whether the set contains the class.
    members: Vec<Vec<bool>>,
}

impl Classes {
    /// The coarsest classes that tell these sets apart; `None` if there would be more than 255.
    pub fn new(sets: &[ClassUnicode]) -> Option<Self> {
        // Where each set's ranges begin and end. An index after the last set belongs to no set.
        let mut changes: Vec<(u32, usize)> =
            [0, 0xd800, 0xe000].map(|at| (at, sets.len())).to_vec();
        for (index, set) in sets.iter().enumerate() {
            for range in set.ranges() {
                changes.push((u32::from(range.start()), index));
                changes.push((u32::from(range.end()) + 1, index));
            }
        }
        changes.sort_unstable();

        let mut ids: FxHashMap<Vec<bool>, u8> = FxHashMap::default();
        let mut members = vec![Vec::new(); sets.len()];
        let mut class_from = Vec::with_capacity(changes.len());
        let mut signature = vec![false; sets.len()];
        for changes in changes.chunk_by(|a, b| a.0 == b.0) {
            let start = changes[0].0;
            for &(_, set) in changes.iter().filter(|(_, set)| *set < sets.len()) {
                signature[set] = !signature[set];
            }
            if char::from_u32(start).is_none() {
                class_from.push((start, 0)); // surrogates occur in no text and need no class
                continue;
            }
            let count = ids.len();
            let class = *ids.entry(signature.clone()).or_insert(count as u8);
            if usize::from(class) == count {
                if count == 255 {
                    return None;
                }
                for (set, inside) in members.iter_mut().zip(&signature) {
                    set.push(*inside);
                }
            }
            class_from.push((start, class));
        }
        let (block_of, blocks) = two_stage_table(&class_from);
        let class_of = |code_point: usize| {
            blocks[usize::from(block_of[code_point / BLOCK])][code_point % BLOCK]
        };
        let mut of_first_two = Box::new([0; 1 << 10]);
        for (two, half) in of_first_two.iter_mut().enumerate() {
            *half = 2 * block_of[two / 2] + two as u16 % 2;
        }
        Some(Self {
            of_first_two,
            count: ids.len(),
            of_first_byte: FirstByteClasses {
                ascii: std::array::from_fn(class_of),
                leads: classes_of_leads(class_of),
            },
            block_of,
            blocks,
            members,
        })
    }

    /// Whether the set with this index contains a class.
    pub fn is_member(&self, set: usize, class: usize) -> bool {
        self.members[set][class]
    }

    /// The class of an ASCII byte.
    #[inline(always)]
    pub fn of_ascii(&self, byte: u8) -> u8 {
        self.of_first_byte.ascii[usize::from(byte & 127)]
    }

    /// The class of a well-formed code point of three bytes.
    #[inline(always)]
    pub fn of_three(&self, first: u8, second: u8, third: u8) -> u8 {
        let two = usize::from(first & 0x0f) << 6 | usize::from(second & 0x3f);
        // No branch predicts whether both bytes determine the class: in Japanese they rarely do.
        let (halves, _) = self.blocks.as_flattened().as_chunks::<{ BLOCK / 2 }>();
        halves[usize::from(self.of_first_two[two])][usize::from(third & 0x3f)]
    }

    /// The class of a code point.
    #[inline(always)]
    pub fn of(&self, code_point: u32) -> u8 {
        let block = self.block_of[(code_point >> BLOCK_BITS) as usize];
        self.blocks[usize::from(block)][code_point as usize % BLOCK]
    }
}

/// For each byte from 192 on, the class of all code points that begin with it; [`NO_CLASS`] if they have
/// several, or four bytes.
fn classes_of_leads(class_of: impl Fn(usize) -> u8) -> [u8; 64] {
    let mut leads = [NO_CLASS; 64];
    for lead in 0xc2..0xf0 {
        let mut code_points = match lead {
            0..0xe0 => 64 * (lead - 0xc0)..64 * (lead - 0xbf),
            _ => (lead - 0xe0) << 12..(lead - 0xdf) << 12,
        };
        match lead {
            0xe0 => code_points.start = 0x800, // smaller code points have two bytes
            0xed => code_points.end = 0xd800,  // surrogates occur in no text
            _ => {}
        }
        let first = class_of(code_points.start);
        if code_points.all(|code_point| class_of(code_point) == first) {
            leads[lead - 0xc0] = first;
        }
    }
    leads
}

/// For each run of [`BLOCK`] code points, the index of the block that holds their classes. Equal blocks are
/// stored once.
fn two_stage_table(class_from: &[(u32, u8)]) -> (Vec<u16>, Vec<[u8; BLOCK]>) {
    let mut ids: FxHashMap<[u8; BLOCK], u16> = FxHashMap::default();
    let mut blocks = Vec::new();
    let mut block_of = Vec::new();
    let mut interval = 0;
    for first in (0..=u32::from(char::MAX)).step_by(BLOCK) {
        let mut block = [0; BLOCK];
        let mut at = 0;
        while at < BLOCK {
            let next = loop {
                match class_from.get(interval + 1) {
                    Some((start, _)) if *start <= first + at as u32 => interval += 1,
                    Some((start, _)) => break BLOCK.min((start - first) as usize),
                    None => break BLOCK,
                }
            };
            block[at..next].fill(class_from[interval].1);
            at = next;
        }
        block_of.push(*ids.entry(block).or_insert_with(|| {
            blocks.push(block);
            (blocks.len() - 1) as u16
        }));
    }
    (block_of, blocks)
}

#[cfg(test)]
mod tests {
    use super::*;
    use regex_syntax::hir::ClassUnicodeRange;

    fn set(ranges: &[(char, char)]) -> ClassUnicode {
        ClassUnicode::new(ranges.iter().map(|&(a, b)| ClassUnicodeRange::new(a, b)))
    }

    #[test]
    fn every_code_point_has_the_class_that_its_sets_say() {
        let sets = [
            set(&[('\0', '\0'), ('a', 'z'), ('À', 'ÿ')]),
            set(&[('m', 'm'), ('ж', 'ж'), ('一', '龥')]),
            set(&[('\u{10000}', char::MAX)]),
            set(&[('\0', '\u{d7ff}'), ('\u{f900}', char::MAX)]),
        ];
        let classes = Classes::new(&sets).unwrap();
        assert_eq!(classes.count, 6);
        let lead =
            |c: char| classes.of_first_byte.leads[usize::from(c.to_string().as_bytes()[0] - 0xc0)];
        assert!("äࠀ虎퀀".chars().all(|c| lead(c) != NO_CLASS));
        for c in '\0'..=char::MAX {
            let class = usize::from(classes.of(u32::from(c)));
            for (index, set) in sets.iter().enumerate() {
                let inside = set.iter().any(|r| r.start() <= c && c <= r.end());
                assert_eq!(classes.is_member(index, class), inside, "{c:?}");
            }
            let mut bytes = [0; 4];
            let bytes = c.encode_utf8(&mut bytes).as_bytes();
            if let &[first, second, third] = bytes {
                let of_three = classes.of_three(first, second, third);
                assert_eq!(usize::from(of_three), class, "{c:?}");
            }
            let first = bytes[0];
            match first {
                0..0x80 => assert_eq!(usize::from(classes.of_ascii(first)), class),
                0xc0.. => {
                    let known = classes.of_first_byte.leads[usize::from(first - 0xc0)];
                    assert!(known == NO_CLASS || usize::from(known) == class, "{c:?}");
                }
                _ => unreachable!(),
            }
        }
    }
}
