//! The UTF-8 of groups of code units, in vector registers.
//!
//! A lane of four bytes holds a code point: the bytes that it would have with three, and in the last byte the first one
//! of a shorter form. A table of shuffles, by the widths of four neighbours, moves the right bytes together (after Lemire
//! and Muła, "Transcoding billions of Unicode characters per second with SIMD instructions", 2022).
//!
//! `unsafe`: vector instructions, which run only on a processor that was found to have them; and bytes written beyond the
//! length of a string. The caller has reserved room for the longest form of each unit and [`MARGIN`] bytes, and what is
//! written is the UTF-8 of code points that are not surrogates.
#![allow(unsafe_code)]

use super::Unit;
use crate::processor::{InstructionSet, Processor};

// `VectorUnit`: a unit that vector instructions can load.
#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
pub(super) use super::Unit as VectorUnit;
#[cfg(target_arch = "aarch64")]
pub use neon::Load as VectorUnit;
#[cfg(target_arch = "x86_64")]
pub use x86::Load as VectorUnit;

/// The units that are written together.
pub const GROUP: usize = 8;
/// The bytes that may be written after those of the text.
pub const MARGIN: usize = 32;
/// The units that are tested together for ASCII.
const BLOCK: usize = 32;

/// By the widths of four code points: which bytes of their lanes to take. The low four bits of the index say which have
/// two bytes or more, the high four bits which of these have three.
#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
static SHUFFLES: [[u8; 16]; 256] = {
    let mut shuffles = [[0x80; 16]; 256];
    let mut index = 0;
    while index < 256 {
        let (mut lane, mut at) = (0, 0);
        while lane < 4 {
            let bytes: &[u8] = match (index >> lane & 1, index >> (lane + 4) & 1) {
                (0, _) => &[3],
                (_, 0) => &[3, 2],
                (_, _) => &[0, 1, 2],
            };
            let mut byte = 0;
            while byte < bytes.len() {
                shuffles[index][at] = 4 * lane as u8 + bytes[byte];
                at += 1;
                byte += 1;
            }
            lane += 1;
        }
        index += 1;
    }
    shuffles
};

/// The first block of units as bytes, if they are ASCII.
#[inline(always)]
fn ascii_block<U: Unit>(units: &[U]) -> Option<[u8; BLOCK]> {
    let block: &[U; BLOCK] = units.first_chunk()?;
    let bits = block.iter().fold(0, |bits, &unit| bits | unit.into());
    (bits < 0x80).then(|| block.map(|unit| unit.into() as u8))
}

/// Appends what `write_group` writes of groups: their UTF-8, whose length it returns, or None for a group that has a surrogate
/// or a code point from U+10000 on.
///
/// # Safety
/// There is the room that [`append_groups`] says.
#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
#[inline(always)]
unsafe fn append_each_group<U: Unit>(
    units: &[U],
    text: &mut Vec<u8>,
    write_group: impl Fn(&[U; GROUP], *mut u8) -> Option<usize>,
) -> usize {
    let (start, mut at, mut done) = (text.as_mut_ptr(), text.len(), 0);
    while done < units.len() {
        let rest = &units[done..];
        // SAFETY: what is written before has at most the longest form of each unit, and there is room for the others.
        let to = unsafe { start.add(at) };
        if done.is_multiple_of(BLOCK) {
            if let Some(block) = ascii_block(rest) {
                // SAFETY: there is room.
                unsafe { to.cast::<[u8; BLOCK]>().write(block) };
                (at, done) = (at + BLOCK, done + BLOCK);
                continue;
            }
        }
        let (group, padding) = first_group(rest);
        let Some(length) = write_group(&group, to) else {
            break;
        };
        (at, done) = (at + length - padding, done + GROUP - padding);
    }
    // SAFETY: the bytes up to here are written.
    unsafe { text.set_len(at) };
    done
}

/// The first group of units, and how many zeros are at its end in place of units.
#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
#[inline(always)]
fn first_group<U: Unit>(units: &[U]) -> ([U; GROUP], usize) {
    match units.first_chunk() {
        Some(group) => (*group, 0),
        None => {
            let mut group = [U::default(); GROUP];
            group[..units.len()].copy_from_slice(units);
            (group, GROUP - units.len())
        }
    }
}

/// Appends the UTF-8 of the first units, up to a group that has a surrogate or a code point from U+10000 on. Returns how
/// many units these are. Without vector instructions, these are blocks of ASCII.
///
/// The string has room for the longest form of each unit and [`MARGIN`] bytes. A group writes 28 bytes at most, also if zeros
/// fill it. A block of ASCII writes its own bytes.
#[inline]
pub fn append_groups<U: VectorUnit>(processor: Processor, units: &[U], text: &mut String) -> usize {
    assert!(text.capacity() - text.len() >= U::MAX_BYTES * units.len() + MARGIN);
    match processor.instructions() {
        // SAFETY: `Processor` exists only for detected instructions, AVX-512 includes AVX2, and there is room.
        #[cfg(target_arch = "x86_64")]
        InstructionSet::Avx512Vbmi | InstructionSet::Avx512 | InstructionSet::Avx2 => unsafe {
            x86::append_groups(units, text.as_mut_vec())
        },
        // SAFETY: `Processor` exists only for detected instructions, here NEON, and there is room.
        #[cfg(target_arch = "aarch64")]
        InstructionSet::Neon => unsafe { neon::append_groups(units, text.as_mut_vec()) },
        InstructionSet::Portable => {
            let mut done = 0;
            while let Some(block) = ascii_block(&units[done..]) {
                // SAFETY: ASCII is UTF-8.
                unsafe { text.as_mut_vec() }.extend_from_slice(&block);
                done += BLOCK;
            }
            done
        }
    }
}

#[cfg(target_arch = "x86_64")]
mod x86 {
    use super::{Unit, GROUP, SHUFFLES};
    use std::arch::x86_64::*;

    /// A unit of a group that can be loaded into lanes of four bytes.
    pub trait Load: Unit {
        /// # Safety
        /// The processor has AVX2.
        unsafe fn load(group: &[Self; GROUP]) -> __m256i;
    }

    impl Load for u8 {
        #[inline(always)]
        unsafe fn load(group: &[Self; GROUP]) -> __m256i {
            // SAFETY: the caller guarantees the instructions; the array has half of the register's size.
            unsafe { _mm256_cvtepu8_epi32(_mm_loadl_epi64(group.as_ptr().cast())) }
        }
    }

    impl Load for u16 {
        #[inline(always)]
        unsafe fn load(group: &[Self; GROUP]) -> __m256i {
            // SAFETY: the caller guarantees the instructions; the array has the register's size.
            unsafe { _mm256_cvtepu16_epi32(_mm_loadu_si128(group.as_ptr().cast())) }
        }
    }

    impl Load for u32 {
        #[inline(always)]
        unsafe fn load(group: &[Self; GROUP]) -> __m256i {
            // SAFETY: the caller guarantees the instructions; the array has the register's size.
            unsafe { _mm256_loadu_si256(group.as_ptr().cast()) }
        }
    }

    /// # Safety
    /// The processor has AVX2 and POPCNT. `text` has the room that the function of this name outside says.
    #[target_feature(enable = "avx2,popcnt")]
    pub unsafe fn append_groups<U: Load>(units: &[U], text: &mut Vec<u8>) -> usize {
        // SAFETY: the caller guarantees the instructions and the room.
        unsafe { super::append_each_group(units, text, |group, to| write_group(group, to)) }
    }

    /// What `append_each_group` needs.
    ///
    /// # Safety
    /// The processor has AVX2 and POPCNT. There is room for 28 bytes.
    #[inline]
    #[target_feature(enable = "avx2,popcnt")]
    unsafe fn write_group<U: Load>(group: &[U; GROUP], to: *mut u8) -> Option<usize> {
        let number = |number: i32| _mm256_set1_epi32(number);
        // SAFETY: the caller guarantees the instructions.
        let points = unsafe { U::load(group) };
        if U::MAX_BYTES > 2 {
            let surrogates = _mm256_and_si256(points, number(!0x7ff));
            let surrogates = _mm256_cmpeq_epi32(surrogates, number(0xd800));
            // No code point is a negative number.
            let others = _mm256_cmpgt_epi32(points, number(0xffff));
            let others = _mm256_or_si256(surrogates, others);
            if _mm256_testz_si256(others, others) == 0 {
                return None;
            }
        }
        let two = _mm256_cmpgt_epi32(points, number(0x7f));
        let three = _mm256_cmpgt_epi32(points, number(0x7ff));
        // The six bits of each continuation byte, and what is before them.
        let last = _mm256_and_si256(points, number(0x3f));
        let without_last = _mm256_srli_epi32::<6>(points);
        let middle = _mm256_and_si256(without_last, number(0x3f));
        let first = _mm256_srli_epi32::<12>(points);
        let lead = _mm256_or_si256(without_last, number(0xc0));
        let lead = _mm256_blendv_epi8(points, lead, two);
        let begins = _mm256_or_si256(first, _mm256_slli_epi32::<8>(middle));
        let ends = _mm256_or_si256(_mm256_slli_epi32::<16>(last), _mm256_slli_epi32::<24>(lead));
        let bytes = _mm256_or_si256(_mm256_or_si256(begins, ends), number(0x0080_80e0));

        let two = _mm256_movemask_ps(_mm256_castsi256_ps(two)) as u32;
        let three = _mm256_movemask_ps(_mm256_castsi256_ps(three)) as u32;
        let (two_low, three_low) = (two & 0xf, three & 0xf);
        let low = &SHUFFLES[(two_low | three_low << 4) as usize];
        let high = &SHUFFLES[(two >> 4 | three & 0xf0) as usize];
        let length_low = 4 + two_low.count_ones() + three_low.count_ones();
        // SAFETY: the tables have the register's size, and there is room: the first half has twelve bytes at most, and
        // each store writes sixteen.
        unsafe {
            let shuffle = _mm256_loadu2_m128i(high.as_ptr().cast(), low.as_ptr().cast());
            let bytes = _mm256_shuffle_epi8(bytes, shuffle);
            _mm_storeu_si128(to.cast(), _mm256_castsi256_si128(bytes));
            let to = to.add(length_low as usize);
            _mm_storeu_si128(to.cast(), _mm256_extracti128_si256::<1>(bytes));
        }
        Some((8 + two.count_ones() + three.count_ones()) as usize)
    }
}

#[cfg(target_arch = "aarch64")]
mod neon {
    use super::{Unit, GROUP, SHUFFLES};
    use std::arch::aarch64::*;

    /// A unit of a group that can be loaded into lanes of four bytes.
    pub trait Load: Unit {
        /// # Safety
        /// The processor has NEON.
        unsafe fn load(group: &[Self; GROUP]) -> [uint32x4_t; 2];
    }

    #[inline(always)]
    unsafe fn widened(units: uint16x8_t) -> [uint32x4_t; 2] {
        // SAFETY: the caller guarantees the instructions.
        unsafe { [vmovl_u16(vget_low_u16(units)), vmovl_high_u16(units)] }
    }

    impl Load for u8 {
        #[inline(always)]
        unsafe fn load(group: &[Self; GROUP]) -> [uint32x4_t; 2] {
            // SAFETY: the caller guarantees the instructions; the array has half of the register's size.
            unsafe { widened(vmovl_u8(vld1_u8(group.as_ptr()))) }
        }
    }

    impl Load for u16 {
        #[inline(always)]
        unsafe fn load(group: &[Self; GROUP]) -> [uint32x4_t; 2] {
            // SAFETY: the caller guarantees the instructions; the array has the register's size.
            unsafe { widened(vld1q_u16(group.as_ptr())) }
        }
    }

    impl Load for u32 {
        #[inline(always)]
        unsafe fn load(group: &[Self; GROUP]) -> [uint32x4_t; 2] {
            // SAFETY: the caller guarantees the instructions; the array has the size of two registers.
            unsafe { [vld1q_u32(group.as_ptr()), vld1q_u32(group.as_ptr().add(4))] }
        }
    }

    /// # Safety
    /// The processor has NEON. `text` has the room that the function of this name outside says.
    pub unsafe fn append_groups<U: Load>(units: &[U], text: &mut Vec<u8>) -> usize {
        // SAFETY: the caller guarantees the instructions and the room.
        unsafe { super::append_each_group(units, text, |group, to| write_group(group, to)) }
    }

    /// What `append_each_group` needs.
    ///
    /// # Safety
    /// The processor has NEON. There is room for 28 bytes.
    #[inline(always)]
    unsafe fn write_group<U: Load>(group: &[U; GROUP], to: *mut u8) -> Option<usize> {
        // SAFETY: the caller guarantees the instructions. The tables have the register's size, and there is room: the
        // first half has twelve bytes at most, and each store writes sixteen.
        unsafe {
            let number = |number: u32| vdupq_n_u32(number);
            let bits = vld1q_u32([1, 2, 4, 8].as_ptr());
            let halves = U::load(group);
            if U::MAX_BYTES > 2 {
                let [low, high] = halves.map(|points| {
                    let surrogates = vandq_u32(points, number(!0x7ff));
                    let surrogates = vceqq_u32(surrogates, number(0xd800));
                    vorrq_u32(surrogates, vcgtq_u32(points, number(0xffff)))
                });
                if vmaxvq_u32(vorrq_u32(low, high)) != 0 {
                    return None;
                }
            }
            let mut length = 0;
            for points in halves {
                let two = vcgtq_u32(points, number(0x7f));
                let three = vcgtq_u32(points, number(0x7ff));
                // The six bits of each continuation byte, and what is before them.
                let last = vandq_u32(points, number(0x3f));
                let without_last = vshrq_n_u32::<6>(points);
                let middle = vandq_u32(without_last, number(0x3f));
                let first = vshrq_n_u32::<12>(points);
                let lead = vbslq_u32(two, vorrq_u32(without_last, number(0xc0)), points);
                let begins = vorrq_u32(first, vshlq_n_u32::<8>(middle));
                let ends = vorrq_u32(vshlq_n_u32::<16>(last), vshlq_n_u32::<24>(lead));
                let bytes = vorrq_u32(vorrq_u32(begins, ends), number(0x0080_80e0));

                let two = vaddvq_u32(vandq_u32(two, bits));
                let three = vaddvq_u32(vandq_u32(three, bits));
                let shuffle = &SHUFFLES[(two | three << 4) as usize];
                let bytes = vqtbl1q_u8(vreinterpretq_u8_u32(bytes), vld1q_u8(shuffle.as_ptr()));
                vst1q_u8(to.add(length), bytes);
                length += (4 + two.count_ones() + three.count_ones()) as usize;
            }
            Some(length)
        }
    }
}
