//! Memory for big tables that are looked up at random.
//!
//! `unsafe` because asking for memory pages and for the processor's cache are calls and instructions that
//! take addresses. A table owns the memory that it points to, all of which was written; an address that is
//! asked for is not read.
#![allow(unsafe_code)]

use std::ops::{Deref, DerefMut};
use std::ptr::NonNull;

/// Bytes of a huge page.
const HUGE: usize = 2 << 20;

/// Values in memory of their own; if they are many, on huge pages where the system has them, so that
/// finding the address of an entry does not take a memory access of its own.
pub struct Table<T: Copy> {
    start: NonNull<T>,
    length: usize,
    /// The pages that it lies on; none if the allocator gave the memory.
    pages: Option<Pages>,
}

// SAFETY: a table is the only owner of its values.
unsafe impl<T: Copy + Send> Send for Table<T> {}
// SAFETY: as above.
unsafe impl<T: Copy + Sync> Sync for Table<T> {}

impl<T: Copy + Default> Table<T> {
    /// So many default values.
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

    /// None if huge pages are no use, or if there are none. What the allocator gives may have been in use
    /// before, and pages that exist stay small.
    fn on_pages(length: usize) -> Option<Self> {
        let bytes = length.checked_mul(size_of::<T>())?;
        if bytes < HUGE {
            return None;
        }
        let pages = Pages::new(bytes)?;
        let start = pages.start.cast::<T>();
        for index in 0..length {
            // SAFETY: the pages have room for so many values, and nobody else knows of them.
            unsafe { start.add(index).write(T::default()) };
        }
        Some(Self {
            start,
            length,
            pages: Some(pages),
        })
    }
}

impl<T: Copy> Deref for Table<T> {
    type Target = [T];

    #[inline(always)]
    fn deref(&self) -> &[T] {
        // SAFETY: so many values were written there, and live as long as the table.
        unsafe { std::slice::from_raw_parts(self.start.as_ptr(), self.length) }
    }
}

impl<T: Copy> DerefMut for Table<T> {
    #[inline(always)]
    fn deref_mut(&mut self) -> &mut [T] {
        // SAFETY: as above, and the table is borrowed as a whole.
        unsafe { std::slice::from_raw_parts_mut(self.start.as_ptr(), self.length) }
    }
}

impl<T: Copy> Drop for Table<T> {
    fn drop(&mut self) {
        if self.pages.is_none() {
            let values = NonNull::slice_from_raw_parts(self.start, self.length);
            // SAFETY: the memory came from a box of so many values.
            drop(unsafe { Box::from_raw(values.as_ptr()) });
        }
    }
}

/// Memory from the system, which begins with a huge page, and goes back to it in the end.
struct Pages {
    start: NonNull<u8>,
    bytes: usize,
}

#[cfg(target_os = "linux")]
impl Pages {
    fn new(bytes: usize) -> Option<Self> {
        let bytes = bytes.next_multiple_of(HUGE);
        let protection = libc::PROT_READ | libc::PROT_WRITE;
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
        // SAFETY: new memory at a place that the system chooses, with room to begin where a huge page does;
        // what is before and behind that is given back. That a wish for huge pages fails changes nothing.
        unsafe {
            let given = libc::mmap(std::ptr::null_mut(), bytes + HUGE, protection, flags, -1, 0);
            if given == libc::MAP_FAILED {
                return None;
            }
            let before = given.align_offset(HUGE);
            let start = given.byte_add(before);
            if before > 0 {
                libc::munmap(given, before);
            }
            libc::munmap(start.byte_add(bytes), HUGE - before);
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
        // SAFETY: the pages are those of `new`, and what lay on them is gone.
        #[cfg(target_os = "linux")]
        unsafe {
            libc::munmap(self.start.as_ptr().cast(), self.bytes);
        }
        #[cfg(not(target_os = "linux"))]
        let _ = (self.start, self.bytes);
    }
}

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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_table_holds_what_was_put_into_it() {
        for length in [0, 5, HUGE / 8, 3 * HUGE / 8 + 1] {
            let mut tables: Vec<Table<u64>> = (0..3).map(|_| Table::new(length)).collect();
            for (number, table) in tables.iter_mut().enumerate() {
                assert_eq!(table.len(), length);
                assert!(table.iter().all(|value| *value == 0));
                table.fill(number as u64);
            }
            drop(tables.remove(1));
            assert!(tables[0].iter().all(|value| *value == 0));
            assert!(tables[1].iter().all(|value| *value == 2));
        }
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn big_tables_begin_with_a_huge_page() {
        let table: Table<u64> = Table::new(HUGE / 4);
        assert_eq!(table.as_ptr().align_offset(HUGE), 0);
        assert!(table.pages.is_some());
    }
}
