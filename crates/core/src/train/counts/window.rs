//! The part of a file that a worker has read.

use crate::error::{utf8, Error, Result};
use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::ops::Range;
use std::path::Path;

/// The bytes of a file from an offset on. Grows on demand.
pub struct Window<'a> {
    path: &'a Path,
    file: File,
    /// Bytes of the file.
    size: u64,
    /// Offset of the first byte.
    start: u64,
    bytes: &'a mut Vec<u8>,
}

impl<'a> Window<'a> {
    /// Reads a range of a file.
    pub fn open(
        path: &'a Path,
        size: u64,
        range: Range<u64>,
        bytes: &'a mut Vec<u8>,
    ) -> Result<Self> {
        let seek = |mut file: File| file.seek(SeekFrom::Start(range.start)).map(|_| file);
        let file = File::open(path).and_then(seek);
        let file = file.map_err(|error| Error::unreadable(path, error))?;
        bytes.clear();
        let mut window = Self {
            path,
            file,
            size,
            start: range.start,
            bytes,
        };
        window.bytes(range)?;
        Ok(window)
    }

    /// A range of the file, cut off at its end. Must not begin before the window.
    pub fn bytes(&mut self, range: Range<u64>) -> Result<&[u8]> {
        let [start, end] =
            [range.start, range.end].map(|byte| (byte.min(self.size) - self.start) as usize);
        if let Some(missing) = end.checked_sub(self.bytes.len()) {
            let more = missing
                .max(self.bytes.len() / 2)
                .min((self.size - self.start) as usize - self.bytes.len());
            self.bytes.reserve_exact(more);
            let read = self.file.by_ref().take(more as u64).read_to_end(self.bytes);
            let read = read.map_err(|error| Error::unreadable(self.path, error))?;
            if read < more {
                return Err(Error::changed(self.path));
            }
        }
        Ok(&self.bytes[start..end])
    }

    /// The text of a range of the file.
    pub fn text(&mut self, range: Range<u64>) -> Result<&str> {
        let (start, path) = (range.start, self.path);
        utf8(self.bytes(range)?, start, || path.display().to_string())
    }
}
