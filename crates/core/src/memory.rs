//! Huge pages and prefetching, for large tables with random access.
//!
//! `unsafe`: mapping pages and prefetching take raw addresses. An array owns the memory that it points to,
//! and all of it is initialised; a prefetch reads nothing.
#![allow(unsafe_code)]

use std::ops::{Deref, DerefMut};
use std::ptr::NonNull;

/// Bytes of a huge page.
const HUGE_PAGE: usize = 2 << 20;

/// A fixed number of values. A large array is on huge pages if the system has them: with small pages,
/// most random accesses to it miss the TLB.
pub struct HugeArray<T: Copy> {
    start: NonNull<T>,
    length: usize,
    /// The pages. None if the memory is from the allocator.
    pages: Option<Pages>,
}

// SAFETY: an array is the only owner of its values.
unsafe impl<T: Copy + Send> Send for HugeArray<T> {}
// SAFETY: as above.
unsafe impl<T: Copy + Sync> Sync for HugeArray<T> {}

impl<T: Copy + Default> HugeArray<T> {
    /// An array of `length` default values.
    pub fn new(length: usize) -> Self {
        Self::on_pages(length).unwrap_or_else(|| {
            let values = Box::leak(vec![T::default(); length].into_boxed_slice());
            Self {
                start: NonNull::from(values).cast(),
                length,
                pages: None,
            }
        })
    }

    /// None if the array is smaller than a huge page, or if the system refuses. Memory from the allocator
    /// may consist of existing small pages, which stay small; hence new pages.
    fn on_pages(length: usize) -> Option<Self> {
        let bytes = length.checked_mul(size_of::<T>())?;
        if bytes < HUGE_PAGE {
            return None;
        }
        let pages = Pages::new(bytes)?;
        let start = pages.start.cast::<T>();
        for index in 0..length {
            // SAFETY: `index < length`, the pages have `length * size_of::<T>()` bytes, and nothing else
            // refers to them.
            unsafe { start.add(index).write(T::default()) };
        }
        Some(Self {
            start,
            length,
            pages: Some(pages),
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

impl<T: Copy> Drop for HugeArray<T> {
    fn drop(&mut self) {
        if self.pages.is_none() {
            let values = NonNull::slice_from_raw_parts(self.start, self.length);
            // SAFETY: without pages, `new` leaked a box of `length` values.
            drop(unsafe { Box::from_raw(values.as_ptr()) });
        }
    }
}

/// Anonymous memory, aligned to a huge page. Unmapped on drop.
struct Pages {
    start: NonNull<u8>,
    bytes: usize,
}

#[cfg(target_os = "linux")]
impl Pages {
    fn new(bytes: usize) -> Option<Self> {
        let bytes = bytes.next_multiple_of(HUGE_PAGE);
        let protection = libc::PROT_READ | libc::PROT_WRITE;
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
        // SAFETY: a new anonymous mapping at an address of the system's choice, one huge page longer than
        // needed. `munmap` gets only the parts of it before and after the aligned range, and `madvise` is
        // a hint; its failure changes nothing.
        unsafe {
            let mapped = libc::mmap(
                std::ptr::null_mut(),
                bytes + HUGE_PAGE,
                protection,
                flags,
                -1,
                0,
            );
            if mapped == libc::MAP_FAILED {
                return None;
            }
            let before = mapped.align_offset(HUGE_PAGE);
            let start = mapped.byte_add(before);
            if before > 0 {
                libc::munmap(mapped, before);
            }
            libc::munmap(start.byte_add(bytes), HUGE_PAGE - before);
            libc::madvise(start, bytes, libc::MADV_HUGEPAGE);
            let start = NonNull::new(start.cast())?;
            Some(Self { start, bytes })
        }
    }
}

#[cfg(not(target_os = "linux"))]
impl Pages {
    fn new(_bytes: usize) -> Option<Self> {
        None
    }
}

impl Drop for Pages {
    fn drop(&mut self) {
        // SAFETY: `new` mapped exactly this range, and `T: Copy` values need no drop.
        #[cfg(target_os = "linux")]
        unsafe {
            libc::munmap(self.start.as_ptr().cast(), self.bytes);
        }
        #[cfg(not(target_os = "linux"))]
        let _ = (self.start, self.bytes);
    }
}

/// Prefetches an entry of a table into the processor's cache. Any index is allowed.
#[inline(always)]
pub fn prefetch<T>(table: &[T], index: usize) {
    #[cfg(target_arch = "x86_64")]
    {
        use std::arch::x86_64::{_mm_prefetch, _MM_HINT_T0};
        // SAFETY: every x86-64 processor has the instruction, and it accepts any address.
        unsafe { _mm_prefetch::<_MM_HINT_T0>(table.as_ptr().wrapping_add(index).cast()) };
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = table.get(index);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arrays_are_zeroed_and_separate() {
        for length in [0, 5, HUGE_PAGE / 8, 3 * HUGE_PAGE / 8 + 1] {
            let mut arrays: Vec<HugeArray<u64>> = (0..3).map(|_| HugeArray::new(length)).collect();
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
    #[cfg(target_os = "linux")]
    fn large_arrays_are_aligned_to_a_huge_page() {
        let array: HugeArray<u64> = HugeArray::new(HUGE_PAGE / 4);
        assert_eq!(array.as_ptr().align_offset(HUGE_PAGE), 0);
        assert!(array.pages.is_some());
    }
}
