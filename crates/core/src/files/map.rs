//! Memory-mapped files.
//!
//! Another process may write to a mapped file or truncate it. Written bytes appear in the map: code that needs
//! stable text copies the bytes and validates the copy, and [`super::TextFile`] compares the file's size and
//! modification time. Reading past the new end of a truncated file kills the process (SIGBUS), as in every
//! program that maps files: the system offers no check.

#![allow(unsafe_code)]

use memmap2::Mmap;
use std::fs::File;

/// Maps a whole file for reading. None if the system refuses.
pub fn map(file: &File) -> Option<Mmap> {
    // SAFETY: `Mmap::map` requires that nobody modifies the file. We cannot enforce that, so no code relies on
    // the bytes staying equal: `TextFile::bytes` is only searched and copied, byte by byte, and
    // `TextFile::text` runs its UTF-8 check on the copy. The address stays valid until the map is dropped.
    unsafe { Mmap::map(file) }.ok()
}
