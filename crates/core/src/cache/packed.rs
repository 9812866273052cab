//! The ids of a piece in 16 bytes, or where they are.
//!
//! `unsafe`: unpacking with vectors loads and reinterprets registers. Sizes are the only condition.
#![allow(unsafe_code)]

/// The most ids that `Packed` holds itself.
pub const PACKED_IDS: usize = 5;
/// The length of the array that unpacking writes.
pub const UNPACKED_IDS: usize = 8;
/// Bytes of an id. A larger id does not fit.
const ID_BYTES: usize = 3;
/// The index of the byte that holds the number of ids.
const COUNT: usize = PACKED_IDS * ID_BYTES;
/// The flag in that byte: the ids are in the cache's spill area.
const SPILLED: u8 = 0x80;

/// The most ids of a piece in the spill area.
pub const MAX_IDS: usize = (SPILLED - 1) as usize;

/// The ids of a piece, or a reference to them.
#[derive(Clone, Copy, Debug, Default)]
#[repr(transparent)]
pub struct Packed([u8; COUNT + 1]);

impl Packed {
    /// None if the ids do not fit.
    pub fn new(ids: &[u32]) -> Option<Self> {
        // A number, not an array: a load of 16 bytes waits for their stores if they were stored in parts.
        let mut packed = (ids.len() as u128) << (8 * COUNT);
        for (index, &id) in ids.iter().enumerate().take(PACKED_IDS) {
            packed |= u128::from(id) << (8 * ID_BYTES * index);
        }
        let fits = |&id: &u32| id < 1 << (8 * ID_BYTES);
        (ids.len() <= PACKED_IDS && ids.iter().all(fits)).then_some(Self(packed.to_le_bytes()))
    }

    /// A reference to `count` ids, at most [`MAX_IDS`], in the spill area. After them are the `bytes` of the piece, if its
    /// key does not hold it.
    pub fn of_spilled(start: u32, count: usize, bytes: usize) -> Self {
        let mut packed = [0; COUNT + 1];
        packed[..4].copy_from_slice(&start.to_le_bytes());
        packed[4..6].copy_from_slice(&(bytes as u16).to_le_bytes());
        packed[COUNT] = count.min(MAX_IDS) as u8 | SPILLED;
        Self(packed)
    }

    /// The bytes of the piece that are in the spill area.
    #[inline(always)]
    pub fn spilled_bytes(&self) -> usize {
        usize::from(u16::from_le_bytes([self.0[4], self.0[5]]))
    }

    /// The number of ids.
    #[inline(always)]
    pub fn count(&self) -> usize {
        usize::from(self.0[COUNT] & !SPILLED)
    }

    /// The start of the ids in the spill area, if they are there.
    #[inline(always)]
    pub fn spilled(&self) -> Option<u32> {
        let [a, b, c, d, ..] = self.0;
        (self.0[COUNT] >= SPILLED).then_some(u32::from_le_bytes([a, b, c, d]))
    }

    /// The ids. The rest of the array is arbitrary.
    #[inline(always)]
    pub fn unpack(&self) -> [u32; UNPACKED_IDS] {
        #[cfg(all(target_arch = "aarch64", target_feature = "neon"))]
        return self.unpack_neon();
        #[cfg(not(all(target_arch = "aarch64", target_feature = "neon")))]
        self.unpack_portable()
    }

    #[cfg_attr(target_arch = "aarch64", allow(dead_code))] // The tests compare with it.
    #[inline(always)]
    fn unpack_portable(&self) -> [u32; UNPACKED_IDS] {
        let all = u128::from_le_bytes(self.0);
        let mut ids = [0; UNPACKED_IDS];
        for (index, id) in ids[..PACKED_IDS].iter_mut().enumerate() {
            *id = (all >> (8 * ID_BYTES * index)) as u32 % (1 << (8 * ID_BYTES));
        }
        ids
    }

    /// Appends the ids, which are not spilled.
    #[inline]
    pub fn append_to(&self, ids: &mut Vec<u32>) {
        if self.count() == 1 {
            return ids.push(self.unpack()[0]); // most pieces; to copy a slice takes a call
        }
        ids.extend_from_slice(&self.unpack()[..self.count()]);
    }

    /// Two table look-ups. Rust's targets for aarch64 have NEON, so this needs no detection.
    #[cfg(all(target_arch = "aarch64", target_feature = "neon"))]
    #[inline(always)]
    fn unpack_neon(&self) -> [u32; UNPACKED_IDS] {
        use std::arch::aarch64::*;
        const LANES: [[u8; 16]; 2] = {
            let mut lanes = [[u8::MAX; 16]; 2]; // An index out of range gives a zero.
            let mut at = 0;
            while at < COUNT {
                let (id, byte) = (at / ID_BYTES, at % ID_BYTES);
                lanes[id / 4][4 * (id % 4) + byte] = at as u8;
                at += 1;
            }
            lanes
        };
        // SAFETY: the arrays have the 16 bytes of the loads, and the result the 32 bytes of two registers.
        unsafe {
            let packed = vld1q_u8(self.0.as_ptr());
            let ids = LANES.map(|lanes| vqtbl1q_u8(packed, vld1q_u8(lanes.as_ptr())));
            std::mem::transmute(ids)
        }
    }

    /// `unpack` with AVX2: one shuffle.
    #[cfg(target_arch = "x86_64")]
    #[inline]
    #[target_feature(enable = "avx2")]
    pub fn unpack_avx2(&self) -> [u32; UNPACKED_IDS] {
        use std::arch::x86_64::*;
        let lane = |id: i32| {
            i32::from_le_bytes(
                [3 * id as i8, 3 * id as i8 + 1, 3 * id as i8 + 2, -1].map(|at| at as u8),
            )
        };
        let lanes = _mm256_setr_epi32(lane(0), lane(1), lane(2), lane(3), lane(4), -1, -1, -1);
        // SAFETY: the array in `self` has the 16 bytes of the load, and the result the 32 bytes of the
        // register.
        unsafe {
            let packed = _mm_loadu_si128(self.0.as_ptr().cast());
            let ids = _mm256_shuffle_epi8(_mm256_broadcastsi128_si256(packed), lanes);
            std::mem::transmute(ids)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    #[cfg(target_arch = "x86_64")]
    use crate::processor::{InstructionSet, Processor};

    #[test]
    fn unpacking_restores_the_ids() {
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
            assert_eq!(packed.unpack_portable()[..ids.len()], *ids);
            #[cfg(target_arch = "x86_64")]
            if Processor::best().has(InstructionSet::Avx2) {
                // SAFETY: `Processor` reports only detected instructions.
                assert_eq!(unsafe { packed.unpack_avx2() }[..ids.len()], *ids);
            }
        }
        assert!(Packed::new(&[largest + 1]).is_none());
        assert!(Packed::new(&[1; PACKED_IDS + 1]).is_none());
        for (count, bytes) in [(15, 0), (1, 512), (MAX_IDS, 300)] {
            let spilled = Packed::of_spilled(u32::MAX, count, bytes);
            assert_eq!(
                (spilled.count(), spilled.spilled()),
                (count, Some(u32::MAX))
            );
            assert_eq!(spilled.spilled_bytes(), bytes);
        }
    }
}
