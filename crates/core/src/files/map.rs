//! Files mapped into memory: the only place that asks the system for that.
//!
//! Nothing keeps another process from writing to a file that is mapped here, or from cutting it off. What is
//! written shows in the bytes, so whoever wants text of them copies them first and checks the copy; and
//! [`super::TextFile`] looks whether the file is still the one that was mapped. Reading behind the end of a file that
//! was cut off ends the process, as it does any program that maps files: there is no way to ask first.

#![allow(unsafe_code)]

use memmap2::Mmap;
use std::fs::File;

/// Maps a whole file to be read; none if the system cannot.
pub fn map(file: &File) -> Option<Mmap> {
    // SAFETY: the bytes are only searched and copied, which is sound whatever they are at each moment (see
    // above for what may become of them); the map keeps its place until it is dropped.
    unsafe { Mmap::map(file) }.ok()
}
