//! Huge pages and prefetching, for large tables with random access and large results; zeroed memory.
//!
//! `unsafe`: an array reads its values through a raw address, and prefetching takes one. An array owns the
//! memory that it points to, and all of it is initialised; a prefetch reads nothing, and advice about pages changes no
//! byte. Zeroed memory becomes a vector of its size.
#![allow(unsafe_code)]

use crate::error::{Error, Result};
use crate::reserve::filled;
use memmap2::MmapMut;
use std::alloc::{alloc_zeroed, Layout};
use std::mem::MaybeUninit;
use std::ops::{Deref, DerefMut};
use std::ptr::NonNull;

/// Bytes of a huge page.
const HUGE_PAGE: usize = 2 << 20;

/// A fixed number of values. A large array is on huge pages if the system has them: with small pages,
/// most random accesses to it miss the TLB.
pub struct HugeArray<T: Copy> {
    /// Points into `_values` or into `_pages`.
    start: NonNull<T>,
    length: usize,
    _values: Vec<T>,
    _pages: Option<MmapMut>,
}

// SAFETY: an array is the only owner of its values.
unsafe impl<T: Copy + Send> Send for HugeArray<T> {}
// SAFETY: as above.
unsafe impl<T: Copy + Sync> Sync for HugeArray<T> {}

impl<T: Copy + Default> HugeArray<T> {
    /// An array of `length` default values.
    pub fn new(length: usize) -> Result<Self> {
        if let Some(array) = Self::on_pages(length) {
            return Ok(array);
        }
        Ok(Self::of(filled(T::default(), length)?))
    }

    /// An array without values.
    pub fn empty() -> Self {
        Self::of(Vec::new())
    }

    fn of(mut values: Vec<T>) -> Self {
        Self {
            start: NonNull::from(values.as_mut_slice()).cast(),
            length: values.len(),
            _values: values,
            _pages: None,
        }
    }

    /// None if the array is smaller than a huge page, or if the system refuses. Memory from the allocator
    /// may consist of existing small pages, which stay small; hence new pages.
    fn on_pages(length: usize) -> Option<Self> {
        let bytes = length.checked_mul(size_of::<T>())?;
        if bytes < HUGE_PAGE {
            return None;
        }
        let bytes = bytes.next_multiple_of(HUGE_PAGE);
        let mut pages = MmapMut::map_anon(bytes + HUGE_PAGE).ok()?;
        let before = pages.as_ptr().align_offset(HUGE_PAGE);
        #[cfg(target_os = "linux")]
        let _ = pages.advise_range(memmap2::Advice::HugePage, before, bytes); // a hint
        let start = NonNull::from(&mut pages[before..]).cast::<T>();
        for index in 0..length {
            // SAFETY: `index < length`, `length` values fit the `bytes` that follow `start`, and nothing
            // else refers to them.
            unsafe { start.add(index).write(T::default()) };
        }
        Some(Self {
            start,
            length,
            _values: Vec::new(),
            _pages: Some(pages),
        })
    }
}

impl<T: Copy> Deref for HugeArray<T> {
    type Target = [T];

    #[inline(always)]
    fn deref(&self) -> &[T] {
        // SAFETY: `new` initialised `length` values at `start`; they live as long as the array.
        unsafe { std::slice::from_raw_parts(self.start.as_ptr(), self.length) }
    }
}

impl<T: Copy> DerefMut for HugeArray<T> {
    #[inline(always)]
    fn deref_mut(&mut self) -> &mut [T] {
        // SAFETY: as above, and the exclusive borrow covers the whole array.
        unsafe { std::slice::from_raw_parts_mut(self.start.as_ptr(), self.length) }
    }
}

/// So many zeros. Unlike filling a vector, this writes to no page that the system gives.
pub fn zeros(length: usize) -> Result<Vec<u8>> {
    let layout = Layout::array::<u8>(length);
    let layout = layout.map_err(|_| Error::OutOfMemory { bytes: length })?;
    if length == 0 {
        return Ok(Vec::new());
    }
    // SAFETY: the size is not zero.
    let start = unsafe { alloc_zeroed(layout) };
    if start.is_null() {
        return Err(Error::OutOfMemory { bytes: length });
    }
    // SAFETY: the allocator of vectors gave `length` bytes, all of which are initialised.
    let mut zeros = unsafe { Vec::from_raw_parts(start, length, length) };
    advise(zeros.as_mut_ptr(), length);
    Ok(zeros)
}

/// Asks the system for huge pages in large memory that is not written yet. With small pages, the system takes as long to
/// give the memory of the ids of a long text as encoding takes.
pub fn advise_huge_pages<T>(unwritten: &mut [MaybeUninit<T>]) {
    advise(unwritten.as_mut_ptr().cast(), size_of_val(unwritten));
}

/// Makes room for values that probably follow, on huge pages if they are many. If the system refuses that
/// much memory, the vector grows as needed.
pub fn make_room<T>(values: &mut Vec<T>, additional: usize) {
    if values.try_reserve_exact(additional).is_ok() {
        advise_huge_pages(values.spare_capacity_mut());
    }
}

#[cfg(not(target_os = "linux"))]
fn advise(_: *mut u8, _: usize) {}

/// Advises whole small pages, so that the allocator can still move a large block when it grows.
#[cfg(target_os = "linux")]
fn advise(start: *mut u8, bytes: usize) {
    const PAGE: usize = 4096;
    if bytes < 2 * HUGE_PAGE {
        return;
    }
    let before = start.addr() % PAGE;
    let (first, bytes) = (
        start.wrapping_sub(before),
        (before + bytes).next_multiple_of(PAGE),
    );
    // SAFETY: advice changes no content, whatever the address; a refusal has no effect.
    unsafe { libc::madvise(first.cast(), bytes, libc::MADV_HUGEPAGE) };
}

/// Gives freed memory that the allocator keeps back to the system. Takes milliseconds: for work that needs much memory.
pub fn return_freed() {
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    // SAFETY: it touches no memory that is in use, and may run at any time.
    unsafe {
        libc::malloc_trim(0)
    };
}

/// Makes the allocator return each freed block of 1.25 MiB or more to the system, in the whole process. By default, glibc
/// raises this threshold to the size of the largest block that was freed, up to 32 MiB. Freed memory between blocks in use
/// then stays with the process. The threshold is larger than the chunks in which files are read, because the system takes
/// time to clear new pages.
pub fn give_back_large_blocks() {
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    // SAFETY: it sets a number of the allocator, and may run at any time.
    unsafe {
        libc::mallopt(libc::M_MMAP_THRESHOLD, 5 << 18)
    };
}

/// Whether the system would give this much memory now.
pub fn has_room(bytes: usize) -> bool {
    MmapMut::map_anon(bytes).is_ok()
}

/// Prefetches an entry of a table into the processor's cache. Any index is allowed.
#[inline(always)]
pub fn prefetch<T>(table: &[T], index: usize) {
    prefetch_at(table.as_ptr().wrapping_add(index));
}

/// Prefetches what an address points to. Any address is allowed.
#[inline(always)]
pub fn prefetch_at<T>(address: *const T) {
    #[cfg(target_arch = "x86_64")]
    {
        use std::arch::x86_64::{_mm_prefetch, _MM_HINT_T0};
        // SAFETY: every x86-64 processor has the instruction, and it accepts any address.
        unsafe { _mm_prefetch::<_MM_HINT_T0>(address.cast()) };
    }
    #[cfg(target_arch = "aarch64")]
    {
        // The intrinsic is not stable. SAFETY: every aarch64 processor has the instruction, and it accepts any address.
        unsafe {
            std::arch::asm!("prfm pldl1keep, [{}]", in(reg) address, options(nostack, preserves_flags, readonly));
        };
    }
    #[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
    let _ = address;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arrays_are_zeroed_and_separate() {
        for length in [0, 5, HUGE_PAGE / 8, 3 * HUGE_PAGE / 8 + 1] {
            let mut arrays: Vec<HugeArray<u64>> =
                (0..3).map(|_| HugeArray::new(length).unwrap()).collect();
            for (number, array) in arrays.iter_mut().enumerate() {
                assert_eq!(array.len(), length);
                assert!(array.iter().all(|value| *value == 0));
                array.fill(number as u64);
            }
            drop(arrays.remove(1));
            assert!(arrays[0].iter().all(|value| *value == 0));
            assert!(arrays[1].iter().all(|value| *value == 2));
        }
    }

    #[test]
    fn zeros_are_zero_or_an_error() {
        for length in [0, 1, 5_000_000] {
            assert_eq!(zeros(length).unwrap(), vec![0; length]);
        }
        assert!(zeros(usize::MAX / 2).is_err() && zeros(usize::MAX).is_err());
        assert!(has_room(1 << 20) && !has_room(usize::MAX / 4));
    }

    #[test]
    fn room_for_many_values_keeps_the_first_ones() {
        let mut values: Vec<u64> = (0..1000).collect();
        make_room(&mut values, HUGE_PAGE);
        assert!(values.capacity() >= 1000 + HUGE_PAGE);
        values.extend(1000..HUGE_PAGE as u64);
        values.reserve_exact(4 * HUGE_PAGE);
        values.shrink_to_fit();
        assert!(values.iter().copied().eq(0..HUGE_PAGE as u64));
        make_room(&mut values, usize::MAX / 16); // no system has so much
        make_room(&mut values, usize::MAX);
        assert_eq!(values.len(), HUGE_PAGE);
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn large_arrays_are_aligned_to_a_huge_page() {
        let array: HugeArray<u64> = HugeArray::new(HUGE_PAGE / 4).unwrap();
        assert_eq!(array.as_ptr().align_offset(HUGE_PAGE), 0);
        assert!(array._pages.is_some());
    }
}
