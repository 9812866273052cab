//! Cached ids of many pieces, written in sequence.
//!
//! `unsafe`: each write has a fixed size, for speed, into the spare capacity of the vector; only the ids
//! that count become part of it. The room is checked before each write, and the processor before AVX2.
#![allow(unsafe_code)]

use super::cache::{alternate_bucket, Bucket, Cache, SPILLED_BYTES};
use super::keys::{
    bucket_of, has_key, holds_piece, key, may_have_slot, part_bit, Key, KeyBatch, KeySpace,
    KEY_BYTES,
};
use super::packed::{Packed, UNPACKED_IDS};
use crate::merge::CharSplitPoints;
#[cfg(target_arch = "x86_64")]
use crate::processor::{InstructionSet, Processor};
use crate::reserve::reserve;
use std::mem::MaybeUninit;
use std::ops::Range;

/// A call of `emit_parts` appends about this many ids at most, so that its caller can poll for interrupts.
const PART_IDS_PER_CALL: usize = 1 << 14;

/// Appends the ids of a range of pieces, up to the first one that is neither cached nor short. Returns where that is, or
/// the end of the range. Calls `missed` with the short ones that are not cached, and the number of ids before theirs. If
/// the cache has no table, it returns at the first piece. `piece_of` returns the bytes of a piece.
pub fn emit<'t>(
    cache: &Cache,
    batch: &KeyBatch,
    pieces: Range<usize>,
    ids: &mut Vec<u32>,
    piece_of: &impl Fn(usize) -> &'t [u8],
    missed: &mut impl FnMut(usize, usize),
) -> usize {
    #[cfg(target_arch = "x86_64")]
    if Processor::best().has(InstructionSet::Avx2) {
        // SAFETY: `Processor` reports only detected instructions.
        return unsafe { emit_avx2(cache, batch, pieces, ids, piece_of, missed) };
    }
    emit_with(
        cache,
        batch,
        pieces,
        ids,
        piece_of,
        missed,
        (Bucket::slot, Packed::unpack),
    )
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2")]
fn emit_avx2<'t>(
    cache: &Cache,
    batch: &KeyBatch,
    pieces: Range<usize>,
    ids: &mut Vec<u32>,
    piece_of: &impl Fn(usize) -> &'t [u8],
    missed: &mut impl FnMut(usize, usize),
) -> usize {
    let slot = |bucket: &Bucket, key: &Key| bucket.slot_avx2(key);
    let unpack = |packed: &Packed| packed.unpack_avx2();
    emit_with(cache, batch, pieces, ids, piece_of, missed, (slot, unpack))
}

#[inline(always)]
fn emit_with<'t>(
    cache: &Cache,
    batch: &KeyBatch,
    pieces: Range<usize>,
    ids: &mut Vec<u32>,
    piece_of: &impl Fn(usize) -> &'t [u8],
    missed: &mut impl FnMut(usize, usize),
    (slot, unpack): (
        impl Fn(&Bucket, &Key) -> Option<usize>,
        impl Fn(&Packed) -> [u32; UNPACKED_IDS],
    ),
) -> usize {
    let Range {
        start: mut piece,
        end,
    } = pieces;
    let (keys, buckets) = batch.get(end);
    let table = cache.buckets();
    while piece < end {
        ids.reserve(KEY_BYTES * (end - piece + 1));
        let mut to = ids.spare_capacity_mut().as_mut_ptr().cast::<u32>();
        let first = to;
        loop {
            for (key, &bucket) in keys[piece..].iter().zip(&buckets[piece..]) {
                // Nearly all pieces are in their first bucket. The loop calls nothing. The look-up is written out here and in
                // `count_with`: a function for both, even inlined, takes 2 % more instructions per byte.
                let Some(bucket) = table.get(bucket as usize) else {
                    break;
                };
                let Some(slot) = slot(bucket, key) else {
                    break;
                };
                let packed = bucket.ids(slot);
                // SAFETY: no piece here has more than KEY_BYTES ids, and there is room for that many for one piece more than
                // are left; no write is longer.
                unsafe {
                    let unpacked = to.cast::<[u32; UNPACKED_IDS]>();
                    unpacked.write_unaligned(unpack(packed));
                    if let Some(start) = packed.spilled() {
                        let spilled = to.cast::<[u8; SPILLED_BYTES]>();
                        spilled.write_unaligned(*cache.spilled(start));
                        if packed.count() > KEY_BYTES || !cache.is_of(packed, piece_of(piece)) {
                            break;
                        }
                    }
                    to = to.add(packed.count());
                }
                piece += 1;
            }
            // In a nearly full cache, up to a fifth of the pieces are in their second bucket.
            let Some((key, &bucket)) = keys[piece..].first().zip(buckets[piece..].first()) else {
                break;
            };
            let Some(second) = table.get(alternate_bucket(bucket, *key) as usize) else {
                break;
            };
            let Some(packed) = slot(second, key).map(|slot| second.ids(slot)) else {
                if !holds_piece(*key) {
                    break;
                }
                // SAFETY: both are in the room.
                let written = unsafe { to.offset_from_unsigned(first) };
                missed(piece, ids.len() + written);
                piece += 1;
                continue;
            };
            cache.note_second(*key);
            if packed.spilled().is_some() {
                break;
            }
            // SAFETY: as above; ids that are not spilled are fewer than UNPACKED_IDS.
            unsafe {
                let unpacked = to.cast::<[u32; UNPACKED_IDS]>();
                unpacked.write_unaligned(unpack(packed));
                to = to.add(packed.count());
            }
            piece += 1;
        }
        // SAFETY: the loop wrote the ids from `first` to `to`, inside the room.
        unsafe { ids.set_len(ids.len() + to.offset_from_unsigned(first)) };
        if piece < end {
            if !may_have_slot(keys[piece]) {
                break;
            }
            match cache.find(buckets[piece], keys[piece], piece_of(piece)) {
                // Longer pieces may have more ids than the caller has reserved room for.
                Some(packed)
                    if reserve(ids, packed.count() + KEY_BYTES * (end - piece)).is_ok() =>
                {
                    cache.append(packed, ids);
                }
                _ => break,
            }
            piece += 1;
        }
    }
    piece
}

/// Counts the ids of a range of pieces, up to the first one that is not cached. Returns where that is, or the end of the
/// range, and the count.
pub fn count<'t>(
    cache: &Cache,
    batch: &KeyBatch,
    pieces: Range<usize>,
    piece_of: &impl Fn(usize) -> &'t [u8],
) -> (usize, usize) {
    #[cfg(target_arch = "x86_64")]
    if Processor::best().has(InstructionSet::Avx2) {
        // SAFETY: `Processor` reports only detected instructions.
        return unsafe { count_avx2(cache, batch, pieces, piece_of) };
    }
    count_with(cache, batch, pieces, piece_of, Bucket::slot)
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2")]
fn count_avx2<'t>(
    cache: &Cache,
    batch: &KeyBatch,
    pieces: Range<usize>,
    piece_of: &impl Fn(usize) -> &'t [u8],
) -> (usize, usize) {
    let slot = |bucket: &Bucket, key: &Key| bucket.slot_avx2(key);
    count_with(cache, batch, pieces, piece_of, slot)
}

#[inline(always)]
fn count_with<'t>(
    cache: &Cache,
    batch: &KeyBatch,
    pieces: Range<usize>,
    piece_of: &impl Fn(usize) -> &'t [u8],
    slot: impl Fn(&Bucket, &Key) -> Option<usize>,
) -> (usize, usize) {
    let Range {
        start: mut piece,
        end,
    } = pieces;
    let (keys, buckets) = batch.get(end);
    let (table, mut count) = (cache.buckets(), 0);
    while piece < end {
        for (key, &bucket) in keys[piece..].iter().zip(&buckets[piece..]) {
            let Some(bucket) = table.get(bucket as usize) else {
                break;
            };
            let Some(slot) = slot(bucket, key) else {
                break;
            };
            let packed = bucket.ids(slot);
            if packed.spilled().is_some() && !cache.is_of(packed, piece_of(piece)) {
                break;
            }
            count += packed.count();
            piece += 1;
        }
        if piece < end {
            let Some(packed) = cache.find(buckets[piece], keys[piece], piece_of(piece)) else {
                break;
            };
            count += packed.count();
            piece += 1;
        }
    }
    (piece, count)
}

impl Bucket {
    /// `slot` with AVX2: one comparison.
    #[cfg(target_arch = "x86_64")]
    #[inline]
    #[target_feature(enable = "avx2")]
    fn slot_avx2(&self, key: &Key) -> Option<usize> {
        use std::arch::x86_64::*;
        // SAFETY: a key has the 16 bytes of the first load, and two keys the 32 bytes of the second.
        let (key, keys) = unsafe {
            let key = _mm_loadu_si128(key.as_ptr().cast());
            let keys = _mm256_load_si256(self.keys().as_ptr().cast());
            (_mm256_broadcastsi128_si256(key), keys)
        };
        let halves =
            _mm256_movemask_pd(_mm256_castsi256_pd(_mm256_cmpeq_epi64(key, keys))) as usize;
        let whole = halves & halves >> 1 & 0b101;
        (whole != 0).then_some(whole >> 2)
    }
}

/// Appends the ids of the three-byte characters that a piece begins with, as long as each is a part and
/// cached. Returns where the first other part begins, or where the limit of a call is reached. Chinese needs little
/// else, so this is a function with few variables.
pub fn emit_chars(
    cache: &Cache,
    points: &CharSplitPoints,
    text: &[u8],
    piece: Range<usize>,
    ids: &mut Vec<u32>,
) -> usize {
    #[cfg(target_arch = "x86_64")]
    if Processor::best().has(InstructionSet::Avx2) {
        // SAFETY: `Processor` reports only detected instructions.
        return unsafe { emit_chars_avx2(cache, points, text, piece, ids) };
    }
    emit_chars_with(cache, points, text, piece, ids, Packed::unpack)
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2")]
fn emit_chars_avx2(
    cache: &Cache,
    points: &CharSplitPoints,
    text: &[u8],
    piece: Range<usize>,
    ids: &mut Vec<u32>,
) -> usize {
    emit_chars_with(cache, points, text, piece, ids, |packed| {
        packed.unpack_avx2()
    })
}

#[inline(always)]
fn emit_chars_with(
    cache: &Cache,
    points: &CharSplitPoints,
    text: &[u8],
    piece: Range<usize>,
    ids: &mut Vec<u32>,
    unpack: impl Fn(&Packed) -> [u32; UNPACKED_IDS],
) -> usize {
    let chars = cache.chars();
    ids.reserve(UNPACKED_IDS);
    let room = ids.spare_capacity_mut();
    let (mut count, last) = (0, (room.len() - UNPACKED_IDS).min(PART_IDS_PER_CALL));
    let (at, _, _) = points.lone_chars(text, piece, |number| {
        // SAFETY: the room has UNPACKED_IDS ids after `last`.
        count <= last && unsafe { write_char(chars, number, room, &mut count, &unpack) }
    });
    // SAFETY: the loop wrote the first `count` ids of the room: no entry has more than UNPACKED_IDS.
    unsafe { ids.set_len(ids.len() + count) };
    at
}

/// Writes the ids of a three-byte character after the first `count` of the room, and adds their number to `count`.
/// Returns whether the character is cached.
///
/// # Safety
///
/// The room must have [`UNPACKED_IDS`] ids after `count`.
#[inline(always)]
unsafe fn write_char(
    chars: &[Packed],
    number: usize,
    room: &mut [MaybeUninit<u32>],
    count: &mut usize,
    unpack: impl Fn(&Packed) -> [u32; UNPACKED_IDS],
) -> bool {
    let Some(packed) = chars.get(number).filter(|packed| packed.count() > 0) else {
        return false;
    };
    // SAFETY: the caller's promise.
    unsafe {
        let to = room.as_mut_ptr().add(*count).cast::<[u32; UNPACKED_IDS]>();
        to.write_unaligned(unpack(packed));
    }
    *count += packed.count();
    true
}

/// What `emit_parts` did with a piece.
pub struct EmittedParts {
    /// The parts whose ids it appended, without the three-byte characters.
    pub others: usize,
    /// The bytes of the three-byte characters among the parts.
    pub character_bytes: usize,
    /// The next part, which is not short or not cached. Empty at the end of the piece and at the limit of a call.
    pub next: Range<usize>,
    /// The number of the next part, if it is a three-byte character and these have a table.
    pub next_character: Option<usize>,
}

/// Appends the ids of the parts that a piece begins with, as long as they are short and cached. They are so few that
/// they stay in the processor's caches: nothing is prefetched.
pub fn emit_parts(
    cache: &Cache,
    points: &CharSplitPoints,
    text: &[u8],
    piece: Range<usize>,
    ids: &mut Vec<u32>,
) -> EmittedParts {
    #[cfg(target_arch = "x86_64")]
    if Processor::best().has(InstructionSet::Avx2) {
        // SAFETY: `Processor` reports only detected instructions.
        return unsafe { emit_parts_avx2(cache, points, text, piece, ids) };
    }
    let lookup = (Bucket::slot, Packed::unpack);
    emit_parts_with(cache, points, text, piece, ids, lookup)
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2")]
fn emit_parts_avx2(
    cache: &Cache,
    points: &CharSplitPoints,
    text: &[u8],
    piece: Range<usize>,
    ids: &mut Vec<u32>,
) -> EmittedParts {
    let slot = |bucket: &Bucket, key: &Key| bucket.slot_avx2(key);
    let unpack = |packed: &Packed| packed.unpack_avx2();
    emit_parts_with(cache, points, text, piece, ids, (slot, unpack))
}

#[inline(always)]
fn emit_parts_with(
    cache: &Cache,
    points: &CharSplitPoints,
    text: &[u8],
    piece: Range<usize>,
    ids: &mut Vec<u32>,
    (slot, unpack): (
        impl Fn(&Bucket, &Key) -> Option<usize>,
        impl Fn(&Packed) -> [u32; UNPACKED_IDS],
    ),
) -> EmittedParts {
    let Range { start, end } = piece;
    let (chars, table, part_bit) = (
        cache.chars(),
        cache.buckets(),
        part_bit(KeySpace::of_parts(points)),
    );
    ids.reserve(KEY_BYTES);
    let room = ids.spare_capacity_mut();
    let (mut count, last) = (0, (room.len() - KEY_BYTES).min(PART_IDS_PER_CALL));
    let mut emitted = EmittedParts {
        others: 0,
        character_bytes: 0,
        next: start..start,
        next_character: None,
    };
    let mut at = start;
    while at < end && count <= last {
        let (next, character) = points.next_part(text, at..end, |number| {
            // SAFETY: the room has UNPACKED_IDS ids after `last`.
            count <= last && unsafe { write_char(chars, number, room, &mut count, &unpack) }
        });
        emitted.character_bytes += next.start - at;
        at = next.start;
        emitted.next = at..at;
        if next.is_empty() || count > last {
            break;
        }
        emitted.next = next.clone();
        emitted.next_character = character.filter(|_| cache.has_chars());
        let packed = match emitted.next_character {
            Some(number) => chars.get(number).filter(|packed| packed.count() > 0),
            None if !has_key(next.len()) => None,
            None => {
                let [low, high] = key(text, at, next.len());
                let key = [low, high | part_bit];
                let bucket = bucket_of(key, table.len());
                // Not in a closure, which would lack the caller's vector instructions and be called.
                let found = match table.get(bucket as usize) {
                    Some(bucket) => slot(bucket, &key).map(|slot| bucket.ids(slot)),
                    None => None,
                };
                let found = match found {
                    None => cache.find(bucket, key, &text[next.clone()]),
                    found => found,
                };
                found.filter(|packed| packed.count() <= KEY_BYTES)
            }
        };
        let Some(packed) = packed else {
            break;
        };
        // SAFETY: `count <= last`, so there is room for KEY_BYTES ids after `count`. UNPACKED_IDS is less.
        unsafe {
            let to = room.as_mut_ptr().add(count);
            let unpacked = to.cast::<[u32; UNPACKED_IDS]>();
            unpacked.write_unaligned(unpack(packed));
            if let Some(start) = packed.spilled() {
                let spilled = to.cast::<[u8; SPILLED_BYTES]>();
                spilled.write_unaligned(*cache.spilled(start));
            }
        }
        count += packed.count();
        if emitted.next_character.is_some() {
            emitted.character_bytes += next.len();
        } else {
            emitted.others += 1;
        }
        at = next.end;
        emitted.next = at..at;
    }
    // SAFETY: the loop wrote the first `count` ids of the room: none has more than KEY_BYTES after `last`.
    unsafe { ids.set_len(ids.len() + count) };
    emitted
}

#[cfg(test)]
mod tests {
    use super::super::keys::{key_of, PIECES_PER_BATCH};
    use super::*;

    /// One to seven ids: more than five are in the spill area.
    fn ids_of(number: usize) -> Vec<u32> {
        (0..=number as u32 % 7)
            .map(|at| number as u32 + at)
            .collect()
    }

    #[test]
    fn pieces_are_found_in_both_buckets() {
        let mut cache = Cache::new(1 << 20);
        let pieces: Vec<String> = (0..30_000).map(|number| format!("<{number:x}>")).collect();
        let key = |piece: &str| key_of(KeySpace::Piece, piece.as_bytes(), 0, piece.len());
        for (number, piece) in pieces.iter().enumerate() {
            cache.insert(key(piece), piece.as_bytes(), &ids_of(number));
            cache.grow();
        }
        let (mut batch, mut in_second, mut missing) = (KeyBatch::default(), 0, 0);
        for (from, pieces) in (0..)
            .step_by(PIECES_PER_BATCH)
            .zip(pieces.chunks(PIECES_PER_BATCH))
        {
            let text = pieces.concat();
            let mut bounds = vec![0];
            for piece in pieces {
                bounds.push(bounds[bounds.len() - 1] + piece.len() as u32);
            }
            batch.pack(text.as_bytes(), 0, &bounds, cache.bucket_count());
            let (mut ids, mut missed) = (Vec::new(), Vec::new());
            let piece_of = |at: usize| pieces[at].as_bytes();
            let mut miss = |piece: usize, at: usize| missed.push((piece, at));
            let all = 0..pieces.len();
            let end = emit(&cache, &batch, all.clone(), &mut ids, &piece_of, &mut miss);
            let (mut expected, mut expected_misses) = (Vec::new(), Vec::new());
            for (at, piece) in pieces.iter().enumerate() {
                let (key, bucket) = (key(piece), bucket_of(key(piece), cache.bucket_count()));
                if cache.has(key, piece.as_bytes()) {
                    expected.extend(ids_of(from + at));
                    in_second += usize::from(cache.buckets()[bucket as usize].slot(&key).is_none());
                } else {
                    expected_misses.push((at, expected.len()));
                }
            }
            assert_eq!((end, &ids), (pieces.len(), &expected));
            assert_eq!(missed, expected_misses);
            missing += missed.len();
            if missed.is_empty() {
                assert_eq!(
                    count(&cache, &batch, all, &piece_of),
                    (pieces.len(), ids.len())
                );
            }
        }
        assert!(in_second > 1000 && missing > 1000, "{in_second} {missing}");
    }
}
