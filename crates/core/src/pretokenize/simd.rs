//! Bytes looked up in small tables and compared, 64 bytes at a time, in vector registers.
//!
//! [`Portable`] defines each operation byte by byte. The other implementations of [`Vector`] do the same
//! with one processor family's instructions. The tests compare all of them on the running processor.
//!
//! This file is `unsafe` for two reasons: an instruction may run only on a processor that has it, and
//! registers are loaded and stored through pointers. A [`Processor`] exists only for instructions that were
//! detected, [`Has`] passes that on, and each pointer comes from a reference to an array of the register's size.
#![allow(unsafe_code)]

use crate::processor::{InstructionSet, Processor};
use std::marker::PhantomData;

/// No class: the byte does not begin a code point, or does not determine its class.
pub const NO_CLASS: u8 = 255;

/// The processor has the instructions of `V`.
#[derive(Clone, Copy)]
struct Has<V>(PhantomData<V>);

#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
impl<V> Has<V> {
    /// # Safety
    /// The processor has the instructions of `V`.
    unsafe fn instructions() -> Self {
        Self(PhantomData)
    }
}

/// 64 bytes in registers. Byte 0 is the first in memory, and bit 0 of a mask belongs to byte 0.
///
/// A vector comes from [`Vector::load`] or from another vector. So where there is one, the processor has its
/// instructions, and the methods reach memory only through array references.
trait Vector: Copy {
    /// Returns the bytes of the array.
    fn load(has: Has<Self>, bytes: &[u8; 64]) -> Self;
    /// Writes the bytes to the array.
    fn store(self, bytes: &mut [u8; 64]);
    /// Returns `table[b]` for each byte `b` below 128, and [`NO_CLASS`] for each other byte.
    fn look_up_ascii(self, table: &[u8; 128]) -> Self;
    /// Returns `table[b - 192]` for each byte `b` from 192 on, and [`NO_CLASS`] for each other byte.
    fn look_up_leads(self, table: &[u8; 64]) -> Self;
    /// Returns the bitwise AND of the two vectors.
    fn and(self, other: Self) -> Self;
    /// Returns a mask of the bytes that are at least `least`, compared as unsigned numbers.
    fn at_least(self, least: u8) -> u64;
    /// Returns a mask of the bytes whose bit `7 - SHIFT` is set.
    fn bit<const SHIFT: i32>(self) -> u64;

    /// Writes `base + i` for each set bit `i` of the word, in ascending order, to the front of `positions`.
    /// The entries after these hold arbitrary values.
    #[inline(always)]
    fn write_bit_positions(_: Has<Self>, mut word: u64, base: u32, positions: &mut [u32; 64]) {
        // Rounds of eight: the number of rounds is easier for the processor to predict.
        let mut left = word.count_ones() as i32;
        for eight in positions.as_chunks_mut::<8>().0 {
            for position in eight {
                *position = base.wrapping_add(word.trailing_zeros());
                word &= word.wrapping_sub(1);
            }
            left -= 8;
            if left <= 0 {
                break;
            }
        }
    }
}

/// The classes that the first byte of a code point determines.
pub struct FirstByteClasses {
    /// The class of each ASCII byte.
    pub ascii: [u8; 128],
    /// For each byte from 192 on, the class of all code points that it begins; [`NO_CLASS`] if they have
    /// several.
    pub leads: [u8; 64],
}

/// The bytes of a word that are not ASCII, as masks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct NonAscii {
    /// Continuation bytes.
    pub continuations: u64,
    /// First bytes of code points whose class they do not determine: of two, three and four bytes. In
    /// UTF-8 only.
    pub unknown_leads: [u64; 3],
}

/// The lowest first bytes of code points of two, three and four bytes.
const LEADS: [u8; 3] = [0xc0, 0xe0, 0xf0];

/// Writes for each byte of `text` the class of the code point that it begins, or [`NO_CLASS`], and for
/// each word the bytes that are not ASCII.
pub fn classify(
    processor: Processor,
    text: &[[u8; 64]],
    table: &FirstByteClasses,
    classes: &mut [[u8; 64]],
    non_ascii: &mut [NonAscii],
) {
    match processor.instructions() {
        // SAFETY: `Processor` exists only for detected instructions, here AVX-512 BW and VBMI.
        #[cfg(target_arch = "x86_64")]
        InstructionSet::Avx512Vbmi => unsafe {
            x86::classify_avx512(text, table, classes, non_ascii);
        },
        // SAFETY: `Processor` exists only for detected instructions, and AVX-512 includes AVX2.
        #[cfg(target_arch = "x86_64")]
        InstructionSet::Avx512 | InstructionSet::Avx2 => unsafe {
            x86::classify_avx2(text, table, classes, non_ascii);
        },
        // SAFETY: `Processor` exists only for detected instructions, here NEON.
        #[cfg(target_arch = "aarch64")]
        InstructionSet::Neon => unsafe {
            classify_with::<neon::Neon>(Has::instructions(), text, table, classes, non_ascii);
        },
        InstructionSet::Portable => classify_with(PORTABLE, text, table, classes, non_ascii),
    }
}

/// Writes for each word of bytes the masks of their highest bits, of the next ones and of those after them.
pub fn highest_bits(processor: Processor, bytes: &[[u8; 64]], masks: &mut [[u64; 3]]) {
    match processor.instructions() {
        // SAFETY: `Processor` exists only for detected instructions, here AVX-512 BW and VBMI.
        #[cfg(target_arch = "x86_64")]
        InstructionSet::Avx512Vbmi => unsafe { x86::highest_bits_avx512(bytes, masks) },
        // SAFETY: `Processor` exists only for detected instructions, and AVX-512 includes AVX2.
        #[cfg(target_arch = "x86_64")]
        InstructionSet::Avx512 | InstructionSet::Avx2 => unsafe {
            x86::highest_bits_avx2(bytes, masks);
        },
        // SAFETY: `Processor` exists only for detected instructions, here NEON.
        #[cfg(target_arch = "aarch64")]
        InstructionSet::Neon => unsafe {
            highest_bits_with::<neon::Neon>(Has::instructions(), bytes, masks);
        },
        InstructionSet::Portable => highest_bits_with(PORTABLE, bytes, masks),
    }
}

/// Replaces each two neighbouring symbols by the number of their pair: the first one plus the second one times `symbols`.
/// [`NO_CLASS`] is the symbol `symbols - 1`.
pub fn pair(processor: Processor, pairs: &mut [u8], symbols: u8) {
    match processor.instructions() {
        // SAFETY: `Processor` exists only for detected instructions, and AVX-512 includes AVX2.
        #[cfg(target_arch = "x86_64")]
        InstructionSet::Avx512Vbmi | InstructionSet::Avx512 | InstructionSet::Avx2 => unsafe {
            x86::pair_avx2(pairs, symbols);
        },
        _ => pair_all(pairs, symbols),
    }
}

#[inline(always)]
fn pair_all(pairs: &mut [u8], symbols: u8) {
    for pair in pairs.as_chunks_mut::<2>().0 {
        let [first, second] = pair.map(|symbol| u16::from(symbol.min(symbols - 1)));
        *pair = (first + second * u16::from(symbols)).to_le_bytes();
    }
}

/// Writes the positions of the set bits of consecutive words, counted from `base`, and returns their
/// number. `positions` needs room for 64 entries more.
pub fn bit_positions(
    processor: Processor,
    words: &[u64],
    base: u32,
    positions: &mut [u32],
) -> usize {
    match processor.instructions() {
        // SAFETY: `Processor` exists only for detected instructions, here AVX-512 BW and VBMI2.
        #[cfg(target_arch = "x86_64")]
        InstructionSet::Avx512Vbmi => unsafe { x86::bit_positions_avx512(words, base, positions) },
        // SAFETY: `Processor` exists only for detected instructions, and AVX-512 includes AVX2.
        #[cfg(target_arch = "x86_64")]
        InstructionSet::Avx512 | InstructionSet::Avx2 => unsafe {
            x86::bit_positions_avx2(words, base, positions)
        },
        _ => bit_positions_with(PORTABLE, words, base, positions),
    }
}

#[inline(always)]
fn classify_with<V: Vector>(
    has: Has<V>,
    text: &[[u8; 64]],
    table: &FirstByteClasses,
    classes: &mut [[u8; 64]],
    non_ascii: &mut [NonAscii],
) {
    for ((text, classes), non_ascii) in text.iter().zip(classes).zip(non_ascii) {
        let bytes = V::load(has, text);
        let mut found = bytes.look_up_ascii(&table.ascii);
        let not_ascii = bytes.at_least(0x80);
        *non_ascii = NonAscii::default();
        if not_ascii != 0 {
            found = found.and(bytes.look_up_leads(&table.leads));
            let [two, three, four] = LEADS.map(|least| bytes.at_least(least));
            let unknown = found.at_least(NO_CLASS);
            non_ascii.continuations = not_ascii & !two;
            non_ascii.unknown_leads =
                [two & !three, three & !four, four].map(|leads| leads & unknown);
        }
        found.store(classes);
    }
}

#[inline(always)]
fn highest_bits_with<V: Vector>(has: Has<V>, bytes: &[[u8; 64]], masks: &mut [[u64; 3]]) {
    for (bytes, masks) in bytes.iter().zip(masks) {
        let bytes = V::load(has, bytes);
        *masks = [bytes.bit::<0>(), bytes.bit::<1>(), bytes.bit::<2>()];
    }
}

#[inline(always)]
fn bit_positions_with<V: Vector>(
    has: Has<V>,
    words: &[u64],
    base: u32,
    positions: &mut [u32],
) -> usize {
    let mut count = 0;
    for (word, base) in words.iter().zip((base..).step_by(64)) {
        let Some(room) = positions[count..].first_chunk_mut() else {
            break;
        };
        V::write_bit_positions(has, *word, base, room);
        count += word.count_ones() as usize;
    }
    count
}

/// The definition of each operation, for every processor.
#[derive(Clone, Copy)]
struct Portable([u8; 64]);

const PORTABLE: Has<Portable> = Has(PhantomData);

impl Vector for Portable {
    #[inline(always)]
    fn load(_: Has<Self>, bytes: &[u8; 64]) -> Self {
        Self(*bytes)
    }

    #[inline(always)]
    fn store(self, bytes: &mut [u8; 64]) {
        *bytes = self.0;
    }

    #[inline(always)]
    fn look_up_ascii(self, table: &[u8; 128]) -> Self {
        let entry = |byte: u8| table.get(usize::from(byte));
        Self(self.0.map(|byte| entry(byte).copied().unwrap_or(NO_CLASS)))
    }

    #[inline(always)]
    fn look_up_leads(self, table: &[u8; 64]) -> Self {
        let entry = |byte: u8| table.get(usize::from(byte).wrapping_sub(192));
        Self(self.0.map(|byte| entry(byte).copied().unwrap_or(NO_CLASS)))
    }

    #[inline(always)]
    fn and(self, other: Self) -> Self {
        Self(std::array::from_fn(|at| self.0[at] & other.0[at]))
    }

    #[inline(always)]
    fn at_least(self, least: u8) -> u64 {
        let bit = |(place, byte): (usize, &u8)| u64::from(*byte >= least) << place;
        self.0.iter().enumerate().map(bit).sum()
    }

    #[inline(always)]
    fn bit<const SHIFT: i32>(self) -> u64 {
        let bit = |(place, byte): (usize, &u8)| u64::from(byte << SHIFT >> 7) << place;
        self.0.iter().enumerate().map(bit).sum()
    }
}

#[cfg(target_arch = "x86_64")]
mod x86 {
    use super::{FirstByteClasses, Has, NonAscii, Vector};
    use std::arch::x86_64::*;

    /// Instructions: AVX-512 BW and VBMI, and VBMI2 for bit positions.
    #[derive(Clone, Copy)]
    struct Avx512(__m512i);

    impl Vector for Avx512 {
        #[inline(always)]
        fn load(_: Has<Self>, bytes: &[u8; 64]) -> Self {
            // SAFETY: `Has`; the array has the register's size.
            unsafe { Self(_mm512_loadu_si512(bytes.as_ptr().cast())) }
        }

        #[inline(always)]
        fn store(self, bytes: &mut [u8; 64]) {
            // SAFETY: a vector exists; the array has the register's size.
            unsafe { _mm512_storeu_si512(bytes.as_mut_ptr().cast(), self.0) }
        }

        #[inline(always)]
        fn look_up_ascii(self, table: &[u8; 128]) -> Self {
            // SAFETY: a vector exists; the table has the size of two registers.
            unsafe {
                let low = _mm512_loadu_si512(table.as_ptr().cast());
                let high = _mm512_loadu_si512(table.as_ptr().add(64).cast());
                let found = _mm512_permutex2var_epi8(low, self.0, high);
                let none = _mm512_set1_epi8(-1);
                let not_ascii = _mm512_movepi8_mask(self.0);
                Self(_mm512_mask_blend_epi8(not_ascii, found, none))
            }
        }

        #[inline(always)]
        fn look_up_leads(self, table: &[u8; 64]) -> Self {
            // SAFETY: a vector exists; the table has the register's size.
            unsafe {
                let table = _mm512_loadu_si512(table.as_ptr().cast());
                // The instruction uses the lower six bits as the index.
                let found = _mm512_permutexvar_epi8(self.0, table);
                let none = _mm512_set1_epi8(-1);
                Self(_mm512_mask_blend_epi8(self.at_least(192), none, found))
            }
        }

        #[inline(always)]
        fn and(self, other: Self) -> Self {
            // SAFETY: a vector exists.
            unsafe { Self(_mm512_and_si512(self.0, other.0)) }
        }

        #[inline(always)]
        fn at_least(self, least: u8) -> u64 {
            // SAFETY: a vector exists.
            unsafe { _mm512_cmpge_epu8_mask(self.0, _mm512_set1_epi8(least as i8)) }
        }

        #[inline(always)]
        fn bit<const SHIFT: i32>(self) -> u64 {
            // SAFETY: a vector exists.
            unsafe { _mm512_test_epi8_mask(self.0, _mm512_set1_epi8((0x80u8 >> SHIFT) as i8)) }
        }

        #[inline(always)]
        fn write_bit_positions(_: Has<Self>, word: u64, base: u32, positions: &mut [u32; 64]) {
            let numbers: [u8; 64] = std::array::from_fn(|number| number as u8);
            // SAFETY: `Has`; sixteen positions have the register's size,
            // and the four groups of sixteen lie in the array.
            unsafe {
                let numbers = _mm512_loadu_si512(numbers.as_ptr().cast());
                let packed = _mm512_maskz_compress_epi8(word, numbers);
                let base = _mm512_set1_epi32(base as i32);
                let mut write = |group: usize, bytes| {
                    let wide = _mm512_add_epi32(_mm512_cvtepu8_epi32(bytes), base);
                    _mm512_storeu_si512(positions.as_mut_ptr().add(16 * group).cast(), wide);
                };
                write(0, _mm512_castsi512_si128(packed));
                if word.count_ones() > 16 {
                    write(1, _mm512_extracti32x4_epi32::<1>(packed));
                    write(2, _mm512_extracti32x4_epi32::<2>(packed));
                    write(3, _mm512_extracti32x4_epi32::<3>(packed));
                }
            }
        }
    }

    /// For each byte, the places of its set bits in ascending order.
    static PLACES: [[u8; 8]; 256] = {
        let mut places = [[0; 8]; 256];
        let mut byte = 0;
        while byte < 256 {
            let (mut bit, mut count) = (0, 0);
            while bit < 8 {
                if byte >> bit & 1 == 1 {
                    places[byte][count] = bit;
                    count += 1;
                }
                bit += 1;
            }
            byte += 1;
        }
        places
    };

    /// Instructions: AVX2.
    #[derive(Clone, Copy)]
    struct Avx2([__m256i; 2]);

    impl Avx2 {
        /// ORs each byte's table entry into `found`. `table[0][0]` is the entry of the byte `first`, and
        /// each shuffle looks up the bytes of one group of sixteen.
        #[inline(always)]
        fn look_up_groups(self, first: usize, table: &[[u8; 16]], mut found: [__m256i; 2]) -> Self {
            for (group, entries) in table.iter().enumerate() {
                // SAFETY: a vector exists; the group has the register's size.
                unsafe {
                    let entries = _mm_loadu_si128(entries.as_ptr().cast());
                    let entries = _mm256_broadcastsi128_si256(entries);
                    let first = _mm256_set1_epi8((first + 16 * group) as i8);
                    for (found, bytes) in found.iter_mut().zip(self.0) {
                        // A byte of another group has its highest bit set here; the shuffle returns 0.
                        let index = _mm256_xor_si256(bytes, first);
                        let index = _mm256_adds_epu8(index, _mm256_set1_epi8(0x70));
                        *found = _mm256_or_si256(*found, _mm256_shuffle_epi8(entries, index));
                    }
                }
            }
            Self(found)
        }
    }

    impl Vector for Avx2 {
        #[inline(always)]
        fn load(_: Has<Self>, bytes: &[u8; 64]) -> Self {
            let at: *const __m256i = bytes.as_ptr().cast();
            // SAFETY: `Has`; the array has the size of two registers.
            unsafe { Self([_mm256_loadu_si256(at), _mm256_loadu_si256(at.add(1))]) }
        }

        #[inline(always)]
        fn store(self, bytes: &mut [u8; 64]) {
            let at: *mut __m256i = bytes.as_mut_ptr().cast();
            // SAFETY: a vector exists; the array has the size of two registers.
            unsafe {
                _mm256_storeu_si256(at, self.0[0]);
                _mm256_storeu_si256(at.add(1), self.0[1]);
            }
        }

        #[inline(always)]
        fn look_up_ascii(self, table: &[u8; 128]) -> Self {
            // SAFETY: a vector exists; a group of sixteen has the register's size.
            unsafe {
                let groups: [__m256i; 8] = std::array::from_fn(|group| {
                    let entries = _mm_loadu_si128(table.as_ptr().add(16 * group).cast());
                    _mm256_broadcastsi128_si256(entries)
                });
                Self(self.0.map(|bytes| {
                    // The entry in each group by the lower four bits, then the group by the next three. The shuffle
                    // returns 0 for a byte that is not ASCII.
                    let [a, b, c, d, e, f, g, h] =
                        groups.map(|group| _mm256_shuffle_epi8(group, bytes));
                    let (bit4, bit5, bit6) = (
                        _mm256_slli_epi16::<3>(bytes),
                        _mm256_slli_epi16::<2>(bytes),
                        _mm256_slli_epi16::<1>(bytes),
                    );
                    let choose = |bit, zero, one| _mm256_blendv_epi8(zero, one, bit);
                    let low = choose(bit5, choose(bit4, a, b), choose(bit4, c, d));
                    let high = choose(bit5, choose(bit4, e, f), choose(bit4, g, h));
                    let not_ascii = _mm256_cmpgt_epi8(_mm256_setzero_si256(), bytes);
                    _mm256_or_si256(choose(bit6, low, high), not_ascii)
                }))
            }
        }

        #[inline(always)]
        fn look_up_leads(self, table: &[u8; 64]) -> Self {
            // SAFETY: a vector exists.
            unsafe {
                let least = _mm256_set1_epi8(192u8 as i8);
                // As signed numbers, the bytes from 192 on are -64 to -1.
                let not_leads = self.0.map(|bytes| {
                    let is_less = _mm256_cmpgt_epi8(least, bytes);
                    _mm256_or_si256(is_less, _mm256_cmpgt_epi8(bytes, _mm256_set1_epi8(-1)))
                });
                self.look_up_groups(192, table.as_chunks().0, not_leads)
            }
        }

        #[inline(always)]
        fn and(self, other: Self) -> Self {
            let ([a, b], [c, d]) = (self.0, other.0);
            // SAFETY: a vector exists.
            unsafe { Self([_mm256_and_si256(a, c), _mm256_and_si256(b, d)]) }
        }

        #[inline(always)]
        fn at_least(self, least: u8) -> u64 {
            // SAFETY: a vector exists.
            let bits = self.0.map(|bytes| unsafe {
                let larger = _mm256_max_epu8(bytes, _mm256_set1_epi8(least as i8));
                u64::from(_mm256_movemask_epi8(_mm256_cmpeq_epi8(larger, bytes)) as u32)
            });
            bits[0] | bits[1] << 32
        }

        #[inline(always)]
        fn write_bit_positions(_: Has<Self>, word: u64, base: u32, positions: &mut [u32; 64]) {
            // SAFETY: `Has`; the earlier bytes of the word have at most eight bits
            // each, so that eight positions fit after theirs.
            unsafe {
                let mut base = _mm256_set1_epi32(base as i32);
                let mut count = 0;
                for byte in word.to_le_bytes() {
                    let places = _mm_loadl_epi64(PLACES[usize::from(byte)].as_ptr().cast());
                    let wide = _mm256_add_epi32(_mm256_cvtepu8_epi32(places), base);
                    _mm256_storeu_si256(positions.as_mut_ptr().add(count).cast(), wide);
                    count += byte.count_ones() as usize;
                    base = _mm256_add_epi32(base, _mm256_set1_epi32(8));
                }
            }
        }

        #[inline(always)]
        fn bit<const SHIFT: i32>(self) -> u64 {
            // SAFETY: a vector exists.
            let bits = self.0.map(|bytes| unsafe {
                // The shift of 16-bit numbers moves the bits of each byte to its highest one.
                u64::from(_mm256_movemask_epi8(_mm256_slli_epi16::<SHIFT>(bytes)) as u32)
            });
            bits[0] | bits[1] << 32
        }
    }

    #[target_feature(enable = "avx512bw,avx512vbmi")]
    pub fn classify_avx512(
        text: &[[u8; 64]],
        table: &FirstByteClasses,
        classes: &mut [[u8; 64]],
        non_ascii: &mut [NonAscii],
    ) {
        // SAFETY: this function's `target_feature` has the instructions.
        unsafe {
            super::classify_with::<Avx512>(Has::instructions(), text, table, classes, non_ascii)
        }
    }

    #[target_feature(enable = "avx2")]
    pub fn classify_avx2(
        text: &[[u8; 64]],
        table: &FirstByteClasses,
        classes: &mut [[u8; 64]],
        non_ascii: &mut [NonAscii],
    ) {
        // SAFETY: this function's `target_feature` has the instructions.
        unsafe {
            super::classify_with::<Avx2>(Has::instructions(), text, table, classes, non_ascii)
        }
    }

    #[target_feature(enable = "avx512bw,avx512vbmi")]
    pub fn highest_bits_avx512(bytes: &[[u8; 64]], masks: &mut [[u64; 3]]) {
        // SAFETY: this function's `target_feature` has the instructions.
        unsafe { super::highest_bits_with::<Avx512>(Has::instructions(), bytes, masks) }
    }

    /// The pairs whose numbers fit the products of signed bytes; the compiler makes vector instructions of the others.
    #[target_feature(enable = "avx2")]
    pub fn pair_avx2(pairs: &mut [u8], symbols: u8) {
        let (words, rest) = pairs.as_chunks_mut::<32>();
        if symbols > i8::MAX as u8 {
            super::pair_all(words.as_flattened_mut(), symbols);
        } else {
            let last = _mm256_set1_epi8(symbols as i8 - 1);
            let factors = _mm256_set1_epi16(i16::from(symbols) << 8 | 1);
            for word in words {
                // SAFETY: the array has the size of the register.
                unsafe {
                    let symbols = _mm256_loadu_si256(word.as_ptr().cast());
                    let symbols = _mm256_min_epu8(symbols, last);
                    // The sums of products of neighbours.
                    let pairs = _mm256_maddubs_epi16(symbols, factors);
                    _mm256_storeu_si256(word.as_mut_ptr().cast(), pairs);
                }
            }
        }
        super::pair_all(rest, symbols);
    }

    #[target_feature(enable = "avx2")]
    pub fn highest_bits_avx2(bytes: &[[u8; 64]], masks: &mut [[u64; 3]]) {
        // SAFETY: this function's `target_feature` has the instructions.
        unsafe { super::highest_bits_with::<Avx2>(Has::instructions(), bytes, masks) }
    }

    /// Not AVX2 itself: the instructions for single bits that its processors have.
    #[target_feature(enable = "avx2,bmi1,popcnt")]
    pub fn bit_positions_avx2(words: &[u64], base: u32, positions: &mut [u32]) -> usize {
        // SAFETY: this function's `target_feature` has the instructions.
        unsafe { super::bit_positions_with::<Avx2>(Has::instructions(), words, base, positions) }
    }

    #[target_feature(enable = "avx512bw,avx512vbmi2,popcnt")]
    pub fn bit_positions_avx512(words: &[u64], base: u32, positions: &mut [u32]) -> usize {
        // SAFETY: this function's `target_feature` has the instructions.
        unsafe { super::bit_positions_with::<Avx512>(Has::instructions(), words, base, positions) }
    }
}

#[cfg(target_arch = "aarch64")]
mod neon {
    use super::{Has, Vector, NO_CLASS};
    use std::arch::aarch64::*;

    /// Instructions: NEON.
    #[derive(Clone, Copy)]
    pub struct Neon([uint8x16_t; 4]);

    impl Vector for Neon {
        #[inline(always)]
        fn load(_: Has<Self>, bytes: &[u8; 64]) -> Self {
            // SAFETY: `Has`; the array has the size of four registers.
            let uint8x16x4_t(a, b, c, d) = unsafe { vld1q_u8_x4(bytes.as_ptr()) };
            Self([a, b, c, d])
        }

        #[inline(always)]
        fn store(self, bytes: &mut [u8; 64]) {
            let [a, b, c, d] = self.0;
            // SAFETY: a vector exists; the array has the size of four registers.
            unsafe { vst1q_u8_x4(bytes.as_mut_ptr(), uint8x16x4_t(a, b, c, d)) }
        }

        #[inline(always)]
        fn look_up_ascii(self, table: &[u8; 128]) -> Self {
            // SAFETY: a vector exists; the table has the size of eight registers.
            unsafe {
                let low = vld1q_u8_x4(table.as_ptr());
                let high = vld1q_u8_x4(table.as_ptr().add(64));
                Self(self.0.map(|bytes| {
                    // An index that is not in the table leaves the first argument's byte.
                    let found = vqtbx4q_u8(vdupq_n_u8(NO_CLASS), low, bytes);
                    vqtbx4q_u8(found, high, vsubq_u8(bytes, vdupq_n_u8(64)))
                }))
            }
        }

        #[inline(always)]
        fn look_up_leads(self, table: &[u8; 64]) -> Self {
            // SAFETY: a vector exists; the table has the size of four registers.
            unsafe {
                let (table, none) = (vld1q_u8_x4(table.as_ptr()), vdupq_n_u8(NO_CLASS));
                let index = |bytes| vsubq_u8(bytes, vdupq_n_u8(192));
                Self(self.0.map(|bytes| vqtbx4q_u8(none, table, index(bytes))))
            }
        }

        #[inline(always)]
        fn and(self, other: Self) -> Self {
            // SAFETY: a vector exists.
            unsafe { Self(std::array::from_fn(|at| vandq_u8(self.0[at], other.0[at]))) }
        }

        #[inline(always)]
        fn bit<const SHIFT: i32>(self) -> u64 {
            // SAFETY: a vector exists.
            unsafe {
                let bit = vdupq_n_u8(0x80 >> SHIFT);
                Self(self.0.map(|bytes| vtstq_u8(bytes, bit))).at_least(0x80)
            }
        }

        #[inline(always)]
        fn at_least(self, least: u8) -> u64 {
            let bits: [u8; 16] = [1, 2, 4, 8, 16, 32, 64, 128, 1, 2, 4, 8, 16, 32, 64, 128];
            // SAFETY: a vector exists; the array of bits has the register's size.
            unsafe {
                // One bit for each byte, then sums of neighbours until eight bytes are one.
                let (bits, least) = (vld1q_u8(bits.as_ptr()), vdupq_n_u8(least));
                let [a, b, c, d] = self.0.map(|bytes| vandq_u8(vcgeq_u8(bytes, least), bits));
                let sums = vpaddq_u8(vpaddq_u8(a, b), vpaddq_u8(c, d));
                vgetq_lane_u64(vreinterpretq_u64_u8(vpaddq_u8(sums, sums)), 0)
            }
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
        let table = FirstByteClasses {
            ascii: std::array::from_fn(|byte| (byte * 37 % 251) as u8),
            leads: std::array::from_fn(|byte| {
                if byte % 3 == 0 {
                    NO_CLASS
                } else {
                    (byte * 7) as u8
                }
            }),
        };
        let class_of = |byte: u8| match byte {
            0..0x80 => table.ascii[usize::from(byte)],
            0x80..0xc0 => NO_CLASS,
            _ => table.leads[usize::from(byte - 0xc0)],
        };
        for processor in Processor::all() {
            for word in &text {
                let (mut classes, mut non_ascii, mut masks) =
                    ([[0; 64]], [NonAscii::default()], [[0; 3]]);
                classify(processor, &[*word], &table, &mut classes, &mut non_ascii);
                highest_bits(processor, &[*word], &mut masks);
                let [non_ascii] = non_ascii;
                let words = [non_ascii.continuations, masks[0][0], masks[0][1], 0, !0];
                let mut positions = [0; 64 * 6];
                let count = bit_positions(processor, &words, 1000, &mut positions);
                let bits = (0..320).filter(|bit| words[bit / 64] >> (bit % 64) & 1 == 1);
                assert!(positions[..count]
                    .iter()
                    .copied()
                    .eq(bits.map(|bit| 1000 + bit as u32)));
                for symbols in [2, 100, 127, 128, 180] {
                    let mut pairs = *word;
                    pair(processor, &mut pairs[..50], symbols);
                    let both = word.as_chunks::<2>().0.iter().zip(pairs.as_chunks().0);
                    for (given, pair) in both.take(25) {
                        let [first, second] = given.map(|it| u16::from(it.min(symbols - 1)));
                        let expected = first + u16::from(symbols) * second;
                        assert_eq!(u16::from_le_bytes(*pair), expected, "{processor:?}");
                    }
                    assert_eq!(pairs[50..], word[50..]);
                }
                for (at, &byte) in word.iter().enumerate() {
                    let bit = |mask: u64| mask >> at & 1 == 1;
                    let class = class_of(byte);
                    assert_eq!(classes[0][at], class, "{processor:?}");
                    assert_eq!(
                        bit(non_ascii.continuations),
                        (0x80..0xc0).contains(&byte),
                        "{processor:?}"
                    );
                    let widths = [0xc0..=0xdf, 0xe0..=0xef, 0xf0..=0xff];
                    for (mask, leads) in non_ascii.unknown_leads.into_iter().zip(widths) {
                        let is_unknown = leads.contains(&byte) && class == NO_CLASS;
                        assert_eq!(bit(mask), is_unknown, "{processor:?}");
                    }
                    for (mask, place) in masks[0].into_iter().zip([7, 6, 5]) {
                        assert_eq!(bit(mask), byte >> place & 1 == 1, "{processor:?}");
                    }
                }
            }
        }
    }
}
