//! The allocator: the system's, and a reserve for when the system has no more memory.
//!
//! Rust aborts the process where an allocation fails, except in the few calls that return the failure. The core uses
//! these calls for what grows with the input. All else is small, so it comes from the reserve while the call that ran
//! out of memory returns: [`is_low`] tells it to. The reserve is address space of the library that nothing touches
//! before that.
//!
//! A bitmap marks the taken units of the reserve. The allocator has no lock: if another thread held a lock during a
//! fork, the child would wait for it forever.
//!
//! `unsafe`: `GlobalAlloc` promises memory that nobody else has. A block is the units whose bits one call of `claim` set,
//! and only `free` of that block clears them.

#![allow(unsafe_code)]

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::UnsafeCell;
use std::ptr;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

/// Bytes of the reserve.
const BYTES: usize = 32 << 20;
/// Bytes of a unit.
const UNIT: usize = 64;
const UNITS: usize = BYTES / UNIT;
/// Larger blocks leave half of the reserve for blocks up to this size.
const SMALL: usize = 64 << 10;
/// Calls return when more than this is taken.
const LOW: usize = BYTES / 8 * 5;
/// The largest alignment.
const PAGE: usize = 4096;

#[repr(C, align(4096))]
struct Region(UnsafeCell<[u8; BYTES]>);

// SAFETY: only the owners of blocks read and write the region, each its own block.
unsafe impl Sync for Region {}

static REGION: Region = Region(UnsafeCell::new([0; BYTES]));
/// A bit for each unit: whether it is taken.
static TAKEN: [AtomicU64; UNITS / 64] = [const { AtomicU64::new(0) }; UNITS / 64];
/// Bytes of the units that are taken.
static TAKEN_BYTES: AtomicUsize = AtomicUsize::new(0);
/// The unit after the last block: the search for the next one begins there.
static NEXT: AtomicUsize = AtomicUsize::new(0);

/// Whether the system has no more memory, and the reserve is nearly used up: work must return.
pub fn is_low() -> bool {
    TAKEN_BYTES.load(Ordering::Relaxed) > LOW
}

pub struct ReservingAllocator;

#[global_allocator]
static ALLOCATOR: ReservingAllocator = ReservingAllocator;

// SAFETY: each method passes its promises on to `System`, or keeps those of the module's comment. None unwinds.
unsafe impl GlobalAlloc for ReservingAllocator {
    #[inline]
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller's promise.
        let block = unsafe { System.alloc(layout) };
        if block.is_null() {
            return allocate(layout.size(), layout.align());
        }
        block
    }

    #[inline]
    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller's promise.
        let block = unsafe { System.alloc_zeroed(layout) };
        if !block.is_null() {
            return block;
        }
        let block = allocate(layout.size(), layout.align());
        if !block.is_null() {
            // SAFETY: the block has this size. An earlier owner may have written to it.
            unsafe { block.write_bytes(0, layout.size()) };
        }
        block
    }

    #[inline]
    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        match offset_of(block) {
            Some(offset) => free(offset / UNIT, units(layout.size())),
            // SAFETY: the caller's promise; the block is the system's.
            None => unsafe { System.dealloc(block, layout) },
        }
    }

    #[inline]
    unsafe fn realloc(&self, block: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        if offset_of(block).is_none() {
            // SAFETY: the caller's promise; the block is the system's.
            let moved = unsafe { System.realloc(block, layout, size) };
            if !moved.is_null() {
                return moved;
            }
        }
        // SAFETY: the caller's promise.
        unsafe { move_block(block, layout, size) }
    }
}

/// Moves a block to where there is room, or shrinks one of the reserve in place.
///
/// # Safety
///
/// That of `GlobalAlloc::realloc`.
#[cold]
unsafe fn move_block(block: *mut u8, layout: Layout, size: usize) -> *mut u8 {
    let (old, new) = (units(layout.size()), units(size));
    if let Some(offset) = offset_of(block).filter(|_| new <= old) {
        free(offset / UNIT + new, old - new);
        return block;
    }
    // SAFETY: the caller promises that `size`, rounded up to the alignment, is a size of a layout.
    let layout_of_new = unsafe { Layout::from_size_align_unchecked(size, layout.align()) };
    // SAFETY: the new block is another one, and both have the bytes that are copied.
    unsafe {
        let moved = ALLOCATOR.alloc(layout_of_new);
        if !moved.is_null() {
            ptr::copy_nonoverlapping(block, moved, layout.size().min(size));
            ALLOCATOR.dealloc(block, layout);
        }
        moved
    }
}

/// Where in the reserve a block begins; None if it is the system's.
#[inline(always)]
fn offset_of(block: *mut u8) -> Option<usize> {
    let offset = block.addr().wrapping_sub(REGION.0.get().addr());
    (offset < BYTES).then_some(offset)
}

fn units(size: usize) -> usize {
    size.div_ceil(UNIT)
}

/// A block of the reserve; null if there is none.
#[cold]
fn allocate(size: usize, align: usize) -> *mut u8 {
    let available = if size <= SMALL { BYTES } else { BYTES / 2 };
    let taken = TAKEN_BYTES.load(Ordering::Relaxed);
    if align > PAGE || taken.saturating_add(size) > available {
        return ptr::null_mut();
    }
    let (units, step) = (units(size), align.div_ceil(UNIT));
    let next = NEXT.load(Ordering::Relaxed);
    let found = find(next.next_multiple_of(step), units, step).or_else(|| find(0, units, step));
    let Some(start) = found else {
        return ptr::null_mut();
    };
    NEXT.store(start + units, Ordering::Relaxed);
    // SAFETY: the offset is less than the region's size.
    unsafe { REGION.0.get().cast::<u8>().add(start * UNIT) }
}

/// Finds and claims units from `start` on, at a multiple of `step`.
fn find(mut start: usize, units: usize, step: usize) -> Option<usize> {
    while start + units <= UNITS {
        match last_taken(start, units) {
            Some(taken) => start = (taken + 1).next_multiple_of(step),
            None if claim(start, units) => return Some(start),
            None => {} // another thread was faster: look again
        }
    }
    None
}

/// A taken unit among these; in its word of the bitmap, it is the last one.
fn last_taken(start: usize, units: usize) -> Option<usize> {
    let taken = |(word, mask)| Some((word, taken_word(word)? & mask));
    let mut words = words(start, units).filter_map(taken);
    let (word, bits) = words.find(|&(_, bits)| bits != 0)?;
    Some(64 * word + bits.ilog2() as usize)
}

fn taken_word(word: usize) -> Option<u64> {
    Some(TAKEN.get(word)?.load(Ordering::Relaxed))
}

/// Marks units as taken, unless one of them is.
fn claim(start: usize, units: usize) -> bool {
    let mut claimed = 0;
    for (word, mask) in words(start, units) {
        let before = TAKEN[word].fetch_or(mask, Ordering::Acquire) & mask;
        if before != 0 {
            TAKEN[word].fetch_and(!(mask & !before), Ordering::Release);
            release(start, claimed);
            return false;
        }
        claimed += mask.count_ones() as usize;
    }
    TAKEN_BYTES.fetch_add(units * UNIT, Ordering::Relaxed);
    true
}

#[cold]
fn free(start: usize, units: usize) {
    release(start, units);
    TAKEN_BYTES.fetch_sub(units * UNIT, Ordering::Relaxed);
}

fn release(start: usize, units: usize) {
    for (word, mask) in words(start, units) {
        TAKEN[word].fetch_and(!mask, Ordering::Release);
    }
}

/// The words of the bitmap that hold the bits of some units, and the bits in each.
fn words(start: usize, units: usize) -> impl Iterator<Item = (usize, u64)> {
    let end = start + units;
    (start / 64..end.div_ceil(64)).map(move |word| {
        let from = start.saturating_sub(64 * word);
        let to = (end - 64 * word).min(64);
        (word, (u64::MAX >> (64 - (to - from))) << from)
    })
}
