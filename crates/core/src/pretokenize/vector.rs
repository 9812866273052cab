//! Bytes looked up in a small table and compared, 64 at a time, in the processor's vector registers.
//!
//! Everything here [`Portable`] does byte by byte; the others do the same with the instructions of one
//! family of processors, and are chosen when the program runs.
//!
//! `unsafe` because vector instructions are: each may run only on a processor that has it, and loads and
//! stores go through pointers. There is a [`Processor`] only of a kind that was found to be here; every load
//! and store is of an array of exactly so many bytes.
#![allow(unsafe_code)]

use super::transducer::SAME;

/// 64 bytes in registers.
trait Word: Copy {
    /// # Safety
    /// For this and all below: the processor has the instructions.
    unsafe fn load(bytes: &[u8; 64]) -> Self;
    unsafe fn store(self, bytes: &mut [u8; 64]);
    /// Each byte's entry; [`SAME`] for each from 128 on.
    unsafe fn of_ascii(self, table: &[u8; 128]) -> Self;
    /// Each byte's entry from 192 on; [`SAME`] for each other.
    unsafe fn of_leads(self, table: &[u8; 64]) -> Self;
    unsafe fn and(self, other: Self) -> Self;
    /// A bit for each byte that is not less.
    unsafe fn at_least(self, least: u8) -> u64;

    /// Writes the places of the bits of a word, with anything behind them.
    #[inline(always)]
    unsafe fn write_places(mut word: u64, base: u32, places: &mut [u32; 64]) {
        // Eight at a time, so that the loop rarely ends where it was not expected.
        let mut left = word.count_ones() as i32;
        for eight in places.as_chunks_mut::<8>().0 {
            for place in eight {
                *place = base.wrapping_add(word.trailing_zeros());
                word &= word.wrapping_sub(1);
            }
            left -= 8;
            if left <= 0 {
                break;
            }
        }
    }
}

/// Writes the places of the bits of words, counted from `base`; returns how many there are.
#[inline(always)]
unsafe fn places<W: Word>(words: &[u64], base: u32, places: &mut [u32]) -> usize {
    let mut count = 0;
    for (word, base) in words.iter().zip((base..).step_by(64)) {
        let Some(room) = places[count..].first_chunk_mut() else {
            break;
        };
        W::write_places(*word, base, room);
        count += word.count_ones() as usize;
    }
    count
}

/// What bytes begin code points of more than one, of two and of three bytes.
const LEADS: [u8; 3] = [0xc0, 0xe0, 0xf0];

/// What is looked up for each byte of a text.
pub struct Table {
    /// The class of each ASCII byte.
    pub ascii: [u8; 128],
    /// The class of all code points that begin with each byte from 192 on, or [`SAME`] if it is not one.
    pub leads: [u8; 64],
}

/// Which bytes of a word are not ASCII.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Others {
    /// Those that do not begin a code point.
    pub inner: u64,
    /// Those that begin one whose class was not found: of two, three and four bytes; where the text is
    /// UTF-8.
    pub unknown: [u64; 3],
}

#[inline(always)]
unsafe fn classify<W: Word>(
    text: &[[u8; 64]],
    table: &Table,
    classes: &mut [[u8; 64]],
    others: &mut [Others],
) {
    for ((text, classes), others) in text.iter().zip(classes).zip(others) {
        let word = W::load(text);
        let mut found = word.of_ascii(&table.ascii);
        let not_ascii = word.at_least(0x80);
        *others = Others::default();
        if not_ascii != 0 {
            found = found.and(word.of_leads(&table.leads));
            let [two, three, four] = LEADS.map(|least| word.at_least(least));
            let unknown = found.at_least(SAME);
            others.inner = not_ascii & !two;
            others.unknown = [two & !three, three & !four, four].map(|leads| leads & unknown);
        }
        found.store(classes);
    }
}

#[inline(always)]
unsafe fn compare<W: Word>(states: &[[u8; 64]], least: [u8; 2], masks: &mut [[u64; 2]]) {
    for (states, masks) in states.iter().zip(masks) {
        let word = W::load(states);
        *masks = [word.at_least(least[0]), word.at_least(least[1])];
    }
}

/// The vector instructions of a processor that is here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Processor(Kind);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    /// AVX-512 with VBMI and VBMI2.
    #[cfg(target_arch = "x86_64")]
    Avx512,
    #[cfg(target_arch = "x86_64")]
    Avx2,
    #[cfg(target_arch = "aarch64")]
    Neon,
    Portable,
}

impl Processor {
    /// All that this processor can do, the best first.
    pub fn all() -> Vec<Self> {
        let mut all = vec![Kind::Portable];
        #[cfg(target_arch = "aarch64")]
        all.push(Kind::Neon);
        #[cfg(target_arch = "x86_64")]
        {
            if is_x86_feature_detected!("avx2") {
                all.push(Kind::Avx2);
            }
            if is_x86_feature_detected!("avx512bw")
                && is_x86_feature_detected!("avx512vbmi")
                && is_x86_feature_detected!("avx512vbmi2")
                && is_x86_feature_detected!("popcnt")
            {
                all.push(Kind::Avx512);
            }
        }
        all.into_iter().rev().map(Self).collect()
    }

    /// The best.
    pub fn best() -> Self {
        Self::all()[0]
    }

    /// The class of the code point that each byte begins, [`SAME`] for each other byte, and where it is not
    /// known from that byte alone.
    pub fn classify(
        self,
        text: &[[u8; 64]],
        table: &Table,
        classes: &mut [[u8; 64]],
        others: &mut [Others],
    ) {
        match self.0 {
            // SAFETY: `all` asked the processor.
            #[cfg(target_arch = "x86_64")]
            Kind::Avx512 => unsafe { x86::classify_avx512(text, table, classes, others) },
            #[cfg(target_arch = "x86_64")]
            Kind::Avx2 => unsafe { x86::classify_avx2(text, table, classes, others) },
            #[cfg(target_arch = "aarch64")]
            Kind::Neon => unsafe { classify::<neon::Neon>(text, table, classes, others) },
            // SAFETY: no instructions are asked for.
            Kind::Portable => unsafe { classify::<Portable>(text, table, classes, others) },
        }
    }

    /// A bit for each state that is not less than the one, and than the other.
    pub fn compare(self, states: &[[u8; 64]], least: [u8; 2], masks: &mut [[u64; 2]]) {
        match self.0 {
            // SAFETY: `all` asked the processor.
            #[cfg(target_arch = "x86_64")]
            Kind::Avx512 => unsafe { x86::compare_avx512(states, least, masks) },
            #[cfg(target_arch = "x86_64")]
            Kind::Avx2 => unsafe { x86::compare_avx2(states, least, masks) },
            #[cfg(target_arch = "aarch64")]
            Kind::Neon => unsafe { compare::<neon::Neon>(states, least, masks) },
            // SAFETY: no instructions are asked for.
            Kind::Portable => unsafe { compare::<Portable>(states, least, masks) },
        }
    }
}

impl Processor {
    /// Writes the places of the bits of words, counted from `base`; returns how many there are. `places`
    /// has room for 64 more than that.
    pub fn places(self, words: &[u64], base: u32, room: &mut [u32]) -> usize {
        match self.0 {
            // SAFETY: `all` asked the processor.
            #[cfg(target_arch = "x86_64")]
            Kind::Avx512 => unsafe { x86::places_avx512(words, base, room) },
            // SAFETY: the others have no instructions of their own for it.
            _ => unsafe { places::<Portable>(words, base, room) },
        }
    }
}

/// Any processor.
#[derive(Clone, Copy)]
struct Portable([u8; 64]);

impl Word for Portable {
    #[inline(always)]
    unsafe fn load(bytes: &[u8; 64]) -> Self {
        Self(*bytes)
    }

    #[inline(always)]
    unsafe fn store(self, bytes: &mut [u8; 64]) {
        *bytes = self.0;
    }

    #[inline(always)]
    unsafe fn of_ascii(self, table: &[u8; 128]) -> Self {
        Self(
            self.0
                .map(|byte| table.get(usize::from(byte)).copied().unwrap_or(SAME)),
        )
    }

    #[inline(always)]
    unsafe fn of_leads(self, table: &[u8; 64]) -> Self {
        let entry = |byte: u8| table.get(usize::from(byte).wrapping_sub(192));
        Self(self.0.map(|byte| entry(byte).copied().unwrap_or(SAME)))
    }

    #[inline(always)]
    unsafe fn and(self, other: Self) -> Self {
        Self(std::array::from_fn(|at| self.0[at] & other.0[at]))
    }

    #[inline(always)]
    unsafe fn at_least(self, least: u8) -> u64 {
        let bit = |(place, byte): (usize, &u8)| u64::from(*byte >= least) << place;
        self.0.iter().enumerate().map(bit).sum()
    }
}

#[cfg(target_arch = "x86_64")]
mod x86 {
    use super::{Others, Table, Word};
    use std::arch::x86_64::*;

    #[derive(Clone, Copy)]
    struct Avx512(__m512i);

    impl Word for Avx512 {
        #[inline(always)]
        unsafe fn load(bytes: &[u8; 64]) -> Self {
            Self(_mm512_loadu_si512(bytes.as_ptr().cast()))
        }

        #[inline(always)]
        unsafe fn store(self, bytes: &mut [u8; 64]) {
            _mm512_storeu_si512(bytes.as_mut_ptr().cast(), self.0);
        }

        #[inline(always)]
        unsafe fn of_ascii(self, table: &[u8; 128]) -> Self {
            let low = _mm512_loadu_si512(table.as_ptr().cast());
            let high = _mm512_loadu_si512(table.as_ptr().add(64).cast());
            let found = _mm512_permutex2var_epi8(low, self.0, high);
            let same = _mm512_set1_epi8(-1);
            Self(_mm512_mask_blend_epi8(
                _mm512_movepi8_mask(self.0),
                found,
                same,
            ))
        }

        #[inline(always)]
        unsafe fn of_leads(self, table: &[u8; 64]) -> Self {
            let table = _mm512_loadu_si512(table.as_ptr().cast());
            // The lower six bits are the place in the table.
            let found = _mm512_permutexvar_epi8(self.0, table);
            let same = _mm512_set1_epi8(-1);
            Self(_mm512_mask_blend_epi8(self.at_least(192), same, found))
        }

        #[inline(always)]
        unsafe fn and(self, other: Self) -> Self {
            Self(_mm512_and_si512(self.0, other.0))
        }

        #[inline(always)]
        unsafe fn at_least(self, least: u8) -> u64 {
            _mm512_cmpge_epu8_mask(self.0, _mm512_set1_epi8(least as i8))
        }

        #[inline(always)]
        unsafe fn write_places(word: u64, base: u32, places: &mut [u32; 64]) {
            let numbers: [u8; 64] = std::array::from_fn(|number| number as u8);
            let numbers = _mm512_loadu_si512(numbers.as_ptr().cast());
            let packed = _mm512_maskz_compress_epi8(word, numbers);
            let base = _mm512_set1_epi32(base as i32);
            let mut put = |sixteen: usize, bytes| {
                let wide = _mm512_add_epi32(_mm512_cvtepu8_epi32(bytes), base);
                _mm512_storeu_si512(places.as_mut_ptr().add(16 * sixteen).cast(), wide);
            };
            put(0, _mm512_castsi512_si128(packed));
            if word.count_ones() > 16 {
                put(1, _mm512_extracti32x4_epi32::<1>(packed));
                put(2, _mm512_extracti32x4_epi32::<2>(packed));
                put(3, _mm512_extracti32x4_epi32::<3>(packed));
            }
        }
    }

    #[derive(Clone, Copy)]
    struct Avx2([__m256i; 2]);

    impl Avx2 {
        /// Adds each byte's entry to what was found, where the table's first one is for the byte `first`.
        ///
        /// A shuffle looks sixteen entries up: of each group of sixteen, those of the bytes in it.
        #[inline(always)]
        unsafe fn of_sixteens(
            self,
            first: usize,
            table: &[[u8; 16]],
            mut found: [__m256i; 2],
        ) -> Self {
            for (group, entries) in table.iter().enumerate() {
                let entries = _mm_loadu_si128(entries.as_ptr().cast());
                let entries = _mm256_broadcastsi128_si256(entries);
                let first = _mm256_set1_epi8((first + 16 * group) as i8);
                for (found, bytes) in found.iter_mut().zip(self.0) {
                    // Where the high half is another, the highest bit is set, and the shuffle gives 0.
                    let place = _mm256_xor_si256(bytes, first);
                    let place = _mm256_adds_epu8(place, _mm256_set1_epi8(0x70));
                    *found = _mm256_or_si256(*found, _mm256_shuffle_epi8(entries, place));
                }
            }
            Self(found)
        }
    }

    impl Word for Avx2 {
        #[inline(always)]
        unsafe fn load(bytes: &[u8; 64]) -> Self {
            let at: *const __m256i = bytes.as_ptr().cast();
            Self([_mm256_loadu_si256(at), _mm256_loadu_si256(at.add(1))])
        }

        #[inline(always)]
        unsafe fn store(self, bytes: &mut [u8; 64]) {
            let at: *mut __m256i = bytes.as_mut_ptr().cast();
            _mm256_storeu_si256(at, self.0[0]);
            _mm256_storeu_si256(at.add(1), self.0[1]);
        }

        #[inline(always)]
        unsafe fn of_ascii(self, table: &[u8; 128]) -> Self {
            let none = _mm256_setzero_si256();
            // What is below zero as a signed number is not ASCII, and becomes all ones.
            let others = self.0.map(|bytes| _mm256_cmpgt_epi8(none, bytes));
            self.of_sixteens(0, table.as_chunks().0, others)
        }

        #[inline(always)]
        unsafe fn of_leads(self, table: &[u8; 64]) -> Self {
            let least = _mm256_set1_epi8(192u8 as i8);
            // As signed numbers those from 192 on are between 64 less than zero and zero.
            let others = self.0.map(|bytes| {
                let is_less = _mm256_cmpgt_epi8(least, bytes);
                _mm256_or_si256(is_less, _mm256_cmpgt_epi8(bytes, _mm256_set1_epi8(-1)))
            });
            self.of_sixteens(192, table.as_chunks().0, others)
        }

        #[inline(always)]
        unsafe fn and(self, other: Self) -> Self {
            let [one, two] = self.0;
            Self([
                _mm256_and_si256(one, other.0[0]),
                _mm256_and_si256(two, other.0[1]),
            ])
        }

        #[inline(always)]
        unsafe fn at_least(self, least: u8) -> u64 {
            let least = _mm256_set1_epi8(least as i8);
            let bits = self.0.map(|bytes| {
                let equal = _mm256_cmpeq_epi8(_mm256_max_epu8(bytes, least), bytes);
                u64::from(_mm256_movemask_epi8(equal) as u32)
            });
            bits[0] | bits[1] << 32
        }
    }

    #[target_feature(enable = "avx512bw,avx512vbmi")]
    pub unsafe fn classify_avx512(
        text: &[[u8; 64]],
        table: &Table,
        classes: &mut [[u8; 64]],
        others: &mut [Others],
    ) {
        super::classify::<Avx512>(text, table, classes, others);
    }

    #[target_feature(enable = "avx2")]
    pub unsafe fn classify_avx2(
        text: &[[u8; 64]],
        table: &Table,
        classes: &mut [[u8; 64]],
        others: &mut [Others],
    ) {
        super::classify::<Avx2>(text, table, classes, others);
    }

    #[target_feature(enable = "avx512bw,avx512vbmi")]
    pub unsafe fn compare_avx512(states: &[[u8; 64]], least: [u8; 2], masks: &mut [[u64; 2]]) {
        super::compare::<Avx512>(states, least, masks);
    }

    #[target_feature(enable = "avx512bw,avx512vbmi2,popcnt")]
    pub unsafe fn places_avx512(words: &[u64], base: u32, places: &mut [u32]) -> usize {
        super::places::<Avx512>(words, base, places)
    }

    #[target_feature(enable = "avx2")]
    pub unsafe fn compare_avx2(states: &[[u8; 64]], least: [u8; 2], masks: &mut [[u64; 2]]) {
        super::compare::<Avx2>(states, least, masks);
    }
}

#[cfg(target_arch = "aarch64")]
mod neon {
    use super::{Word, SAME};
    use std::arch::aarch64::*;

    #[derive(Clone, Copy)]
    pub struct Neon([uint8x16_t; 4]);

    impl Word for Neon {
        #[inline(always)]
        unsafe fn load(bytes: &[u8; 64]) -> Self {
            let uint8x16x4_t(a, b, c, d) = vld1q_u8_x4(bytes.as_ptr());
            Self([a, b, c, d])
        }

        #[inline(always)]
        unsafe fn store(self, bytes: &mut [u8; 64]) {
            let [a, b, c, d] = self.0;
            vst1q_u8_x4(bytes.as_mut_ptr(), uint8x16x4_t(a, b, c, d));
        }

        #[inline(always)]
        unsafe fn of_ascii(self, table: &[u8; 128]) -> Self {
            let low = vld1q_u8_x4(table.as_ptr());
            let high = vld1q_u8_x4(table.as_ptr().add(64));
            Self(self.0.map(|bytes| {
                // What a table has no place for keeps the bytes that it would replace.
                let found = vqtbx4q_u8(vdupq_n_u8(SAME), low, bytes);
                vqtbx4q_u8(found, high, vsubq_u8(bytes, vdupq_n_u8(64)))
            }))
        }

        #[inline(always)]
        unsafe fn of_leads(self, table: &[u8; 64]) -> Self {
            let table = vld1q_u8_x4(table.as_ptr());
            let same = vdupq_n_u8(SAME);
            Self(
                self.0
                    .map(|bytes| vqtbx4q_u8(same, table, vsubq_u8(bytes, vdupq_n_u8(192)))),
            )
        }

        #[inline(always)]
        unsafe fn and(self, other: Self) -> Self {
            Self(std::array::from_fn(|at| vandq_u8(self.0[at], other.0[at])))
        }

        #[inline(always)]
        unsafe fn at_least(self, least: u8) -> u64 {
            // One bit for each byte of eight, then neighbours added until eight are one byte.
            let places: [u8; 16] = [1, 2, 4, 8, 16, 32, 64, 128, 1, 2, 4, 8, 16, 32, 64, 128];
            let places = vld1q_u8(places.as_ptr());
            let least = vdupq_n_u8(least);
            let [a, b, c, d] = self.0.map(|bytes| vandq_u8(vcgeq_u8(bytes, least), places));
            let sums = vpaddq_u8(vpaddq_u8(a, b), vpaddq_u8(c, d));
            vgetq_lane_u64(vreinterpretq_u64_u8(vpaddq_u8(sums, sums)), 0)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_processor_finds_the_same() {
        let text: Vec<[u8; 64]> = (0..64u32)
            .map(|row| std::array::from_fn(|at| (row * 151 + at as u32 * (2 * row + 1)) as u8))
            .collect();
        let table = Table {
            ascii: std::array::from_fn(|byte| (byte * 37 % 251) as u8),
            leads: std::array::from_fn(|byte| {
                if byte % 3 == 0 {
                    SAME
                } else {
                    (byte * 7) as u8
                }
            }),
        };
        let class_of = |byte: u8| match byte {
            0..0x80 => table.ascii[usize::from(byte)],
            0x80..0xc0 => SAME,
            _ => table.leads[usize::from(byte - 0xc0)],
        };
        for processor in Processor::all() {
            for (row, word) in text.iter().enumerate() {
                let (mut classes, mut others, mut masks) =
                    ([[0; 64]], [Others::default()], [[0; 2]]);
                let least = [row as u8 * 3, 255 - row as u8];
                processor.classify(&[*word], &table, &mut classes, &mut others);
                processor.compare(&[*word], least, &mut masks);
                let [others] = others;
                let words = [others.inner, masks[0][0], masks[0][1], 0, !0];
                let mut places = [0; 64 * 6];
                let count = processor.places(&words, 1000, &mut places);
                let bits = (0..320).filter(|bit| words[bit / 64] >> (bit % 64) & 1 == 1);
                assert!(places[..count]
                    .iter()
                    .copied()
                    .eq(bits.map(|bit| 1000 + bit as u32)));
                for (at, &byte) in word.iter().enumerate() {
                    let bit = |mask: u64| mask >> at & 1 == 1;
                    let class = class_of(byte);
                    assert_eq!(classes[0][at], class, "{processor:?}");
                    assert_eq!(
                        bit(others.inner),
                        (0x80..0xc0).contains(&byte),
                        "{processor:?}"
                    );
                    let widths = [0xc0..=0xdf, 0xe0..=0xef, 0xf0..=0xff];
                    for (mask, leads) in others.unknown.into_iter().zip(widths) {
                        let is_unknown = leads.contains(&byte) && class == SAME;
                        assert_eq!(bit(mask), is_unknown, "{processor:?}");
                    }
                    for (mask, least) in masks[0].into_iter().zip(least) {
                        assert_eq!(bit(mask), byte >= least, "{processor:?}");
                    }
                }
            }
        }
    }
}
