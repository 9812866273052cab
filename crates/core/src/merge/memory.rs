//! Memory for big tables that are looked up at random.
//!
//! `unsafe` because asking for memory pages and for the processor's cache are calls and instructions that
//! take addresses. No address here is ever read or written through, and none outlives its slice.
#![allow(unsafe_code)]

/// Bytes of a huge page.
const HUGE: usize = 2 << 20;

/// A table of zeroed values; if it is big, on huge pages where the system has them, so that finding the
/// address of an entry does not take a memory access of its own.
pub fn table<T: Copy + Default>(length: usize) -> Box<[T]> {
    let mut table = Vec::with_capacity(length);
    // Before the first touch: pages that exist stay small.
    advise(table.as_mut_ptr() as usize, length * size_of::<T>());
    table.resize(length, T::default());
    table.into_boxed_slice()
}

#[cfg(target_os = "linux")]
fn advise(start: usize, bytes: usize) {
    let first = start.next_multiple_of(HUGE);
    let last = (start + bytes) / HUGE * HUGE;
    if first < last {
        // SAFETY: these pages lie in memory that was just allocated. A failure changes nothing.
        unsafe { libc::madvise(first as *mut _, last - first, libc::MADV_HUGEPAGE) };
    }
}

#[cfg(not(target_os = "linux"))]
fn advise(_start: usize, _bytes: usize) {}

/// Asks for an entry, so that it is near when it is read soon.
#[inline(always)]
pub fn prefetch<T>(table: &[T], index: usize) {
    #[cfg(target_arch = "x86_64")]
    {
        use std::arch::x86_64::{_mm_prefetch, _MM_HINT_T0};
        // SAFETY: every processor of this kind has the instruction, and it reads nothing, whatever is there.
        unsafe { _mm_prefetch::<_MM_HINT_T0>(table.as_ptr().wrapping_add(index).cast()) };
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = table.get(index);
}
