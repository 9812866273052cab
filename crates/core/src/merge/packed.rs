//! The ids of a short piece in sixteen bytes, and those of many pieces written one after the other.
//!
//! `unsafe` because ids are written behind the end of a list, in the room that it has there, whichever of
//! them count, and by instructions that not every processor has. There is always a look at the room and at
//! the processor first.
#![allow(unsafe_code)]

use super::cache::Cache;
use super::crossings::Crossings;
use super::keys::{Key, KEY_BYTES};
#[cfg(target_arch = "x86_64")]
use crate::processor::{InstructionSet, Processor};
use std::ops::Range;

/// Ids that sixteen bytes hold; where a piece has more, they say where those are.
pub const PACKED_IDS: usize = 5;
/// Bytes of an id; a larger one is not held.
const ID_BYTES: usize = 3;
/// Ids that are written at once.
const WRITTEN: usize = 8;
/// Ids of characters that are appended at once, about.
const AT_ONCE: usize = 1 << 14;
/// Where the number of ids is.
const COUNT: usize = PACKED_IDS * ID_BYTES;
/// What is added to that number if the ids are elsewhere.
const SPILLED: u8 = 0x80;

/// The ids of a piece that has at most [`KEY_BYTES`].
#[derive(Clone, Copy, Debug, Default)]
#[repr(transparent)]
pub struct Packed([u8; COUNT + 1]);

impl Packed {
    /// None if the ids do not fit.
    pub fn new(ids: &[u32]) -> Option<Self> {
        let mut packed = [0; COUNT + 1];
        for (&id, bytes) in ids.iter().zip(packed.chunks_exact_mut(ID_BYTES)) {
            bytes.copy_from_slice(&id.to_le_bytes()[..ID_BYTES]);
        }
        packed[COUNT] = ids.len() as u8;
        let fits = |&id: &u32| id < 1 << (8 * ID_BYTES);
        (ids.len() <= PACKED_IDS && ids.iter().all(fits)).then_some(Self(packed))
    }

    /// What stands for so many ids, at most [`KEY_BYTES`], that are kept elsewhere.
    pub fn of_spilled(start: u32, count: usize) -> Self {
        let mut packed = [0; COUNT + 1];
        packed[..4].copy_from_slice(&start.to_le_bytes());
        packed[COUNT] = count.min(KEY_BYTES) as u8 | SPILLED;
        Self(packed)
    }

    /// How many ids there are.
    #[inline(always)]
    pub fn count(&self) -> usize {
        usize::from(self.0[COUNT] & !SPILLED)
    }

    /// Where the ids begin, if they are not here.
    #[inline(always)]
    pub fn spilled(&self) -> Option<u32> {
        let [a, b, c, d, ..] = self.0;
        (self.0[COUNT] >= SPILLED).then_some(u32::from_le_bytes([a, b, c, d]))
    }

    /// The ids, and behind them anything.
    #[inline(always)]
    pub fn unpack(&self) -> [u32; WRITTEN] {
        let all = u128::from_le_bytes(self.0);
        let mut ids = [0; WRITTEN];
        for (index, id) in ids[..PACKED_IDS].iter_mut().enumerate() {
            *id = (all >> (8 * ID_BYTES * index)) as u32 % (1 << (8 * ID_BYTES));
        }
        ids
    }

    /// Appends the ids, which are here.
    pub fn append_to(&self, ids: &mut Vec<u32>) {
        ids.extend_from_slice(&self.unpack()[..self.count()]);
    }

    /// The same as `unpack` with the instructions of AVX2.
    #[cfg(target_arch = "x86_64")]
    #[inline]
    #[target_feature(enable = "avx2")]
    fn unpack_avx2(&self) -> [u32; WRITTEN] {
        use std::arch::x86_64::*;
        let place = |id: i32| {
            i32::from_le_bytes(
                [3 * id as i8, 3 * id as i8 + 1, 3 * id as i8 + 2, -1].map(|at| at as u8),
            )
        };
        let places =
            _mm256_setr_epi32(place(0), place(1), place(2), place(3), place(4), -1, -1, -1);
        // SAFETY: the packed ids are as long as a register's half, the ids as long as a register.
        unsafe {
            let packed = _mm_loadu_si128(self.0.as_ptr().cast());
            let ids = _mm256_shuffle_epi8(_mm256_broadcastsi128_si256(packed), places);
            std::mem::transmute(ids)
        }
    }
}

/// Appends the ids of short pieces from the first one on, given their keys and the sets where they may be;
/// returns the first that is not in the cache, or how many pieces there are.
pub fn emit(cache: &Cache, keys: &[Key], sets: &[u32], first: usize, ids: &mut Vec<u32>) -> usize {
    #[cfg(target_arch = "x86_64")]
    if Processor::best().has(InstructionSet::Avx2) {
        // SAFETY: `Processor` has only instructions that were detected.
        return unsafe { emit_avx2(cache, keys, sets, first, ids) };
    }
    emit_with(cache, keys, sets, first, ids, Packed::unpack)
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2")]
fn emit_avx2(cache: &Cache, keys: &[Key], sets: &[u32], first: usize, ids: &mut Vec<u32>) -> usize {
    emit_with(cache, keys, sets, first, ids, |packed| packed.unpack_avx2())
}

#[inline(always)]
fn emit_with(
    cache: &Cache,
    keys: &[Key],
    sets: &[u32],
    first: usize,
    ids: &mut Vec<u32>,
    unpack: impl Fn(&Packed) -> [u32; WRITTEN],
) -> usize {
    let mut piece = first;
    while piece < keys.len() {
        ids.reserve(KEY_BYTES);
        let room = ids.spare_capacity_mut();
        let (mut count, last) = (0, room.len() - KEY_BYTES);
        let mut is_missing = false;
        for (&key, &set) in keys[piece..].iter().zip(&sets[piece..]) {
            if count > last {
                break;
            }
            let Some(packed) = cache.find(set, key) else {
                is_missing = true;
                break;
            };
            // SAFETY: there is room for KEY_BYTES ids more, and that is what is written at most.
            unsafe {
                let to = room.as_mut_ptr().add(count).cast::<u32>();
                match packed.spilled() {
                    None => to.cast::<[u32; WRITTEN]>().write_unaligned(unpack(packed)),
                    Some(start) => to
                        .cast::<[u32; KEY_BYTES]>()
                        .write_unaligned(*cache.spilled(start)),
                }
            }
            count += packed.count();
            piece += 1;
        }
        // SAFETY: so many were written, as no piece has more ids than KEY_BYTES.
        unsafe { ids.set_len(ids.len() + count) };
        if is_missing {
            break;
        }
    }
    piece
}

/// Appends the ids of the characters of three bytes that a piece begins with, if each is a part and what it
/// becomes is known; returns where the first begins that is not, or that would be too many at once.
pub fn emit_characters(
    cache: &Cache,
    crossings: &Crossings,
    text: &[u8],
    piece: Range<usize>,
    ids: &mut Vec<u32>,
) -> usize {
    #[cfg(target_arch = "x86_64")]
    if Processor::best().has(InstructionSet::Avx2) {
        // SAFETY: `Processor` has only instructions that were detected.
        return unsafe { emit_characters_avx2(cache, crossings, text, piece, ids) };
    }
    emit_characters_with(cache, crossings, text, piece, ids, Packed::unpack)
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2")]
fn emit_characters_avx2(
    cache: &Cache,
    crossings: &Crossings,
    text: &[u8],
    piece: Range<usize>,
    ids: &mut Vec<u32>,
) -> usize {
    emit_characters_with(cache, crossings, text, piece, ids, |packed| {
        packed.unpack_avx2()
    })
}

#[inline(always)]
fn emit_characters_with(
    cache: &Cache,
    crossings: &Crossings,
    text: &[u8],
    piece: Range<usize>,
    ids: &mut Vec<u32>,
    unpack: impl Fn(&Packed) -> [u32; WRITTEN],
) -> usize {
    let Range { start: mut at, end } = piece;
    let characters = cache.characters();
    ids.reserve(WRITTEN);
    let room = ids.spare_capacity_mut();
    let (mut count, last) = (0, (room.len() - WRITTEN).min(AT_ONCE));
    while count <= last {
        let known = crossings.lone_character(text, at..end);
        let known = known.and_then(|number| characters.get(number));
        let Some(packed) = known.filter(|packed| packed.count() > 0) else {
            break;
        };
        // SAFETY: there is room for so many ids more.
        unsafe {
            let to = room.as_mut_ptr().add(count).cast::<[u32; WRITTEN]>();
            to.write_unaligned(unpack(packed));
        }
        count += packed.count();
        at += 3;
    }
    // SAFETY: so many were written, as none has more ids than WRITTEN.
    unsafe { ids.set_len(ids.len() + count) };
    at
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_packed_comes_out() {
        let largest = (1 << 24) - 1;
        for ids in [
            &[][..],
            &[7],
            &[largest, 0, 1, 65_536, 258],
            &[1, 2, largest],
        ] {
            let packed = Packed::new(ids).unwrap();
            assert_eq!((packed.count(), packed.spilled()), (ids.len(), None));
            assert_eq!(packed.unpack()[..ids.len()], *ids);
            #[cfg(target_arch = "x86_64")]
            if Processor::best().has(InstructionSet::Avx2) {
                // SAFETY: `Processor` has only instructions that were detected.
                assert_eq!(unsafe { packed.unpack_avx2() }[..ids.len()], *ids);
            }
        }
        assert!(Packed::new(&[largest + 1]).is_none());
        assert!(Packed::new(&[1; PACKED_IDS + 1]).is_none());
        let elsewhere = Packed::of_spilled(u32::MAX, 15);
        assert_eq!(
            (elsewhere.count(), elsewhere.spilled()),
            (15, Some(u32::MAX))
        );
    }
}
