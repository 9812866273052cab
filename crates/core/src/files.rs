//! Text files: mapped into memory when they are large, read into memory when they are not.
//!
//! Another process may write to a mapped file or truncate it. Written bytes appear in the map: code that needs
//! stable text copies the bytes and validates the copy, and [`TextFile`] compares the file's size and
//! modification time. Reading past the new end of a truncated file kills the process (SIGBUS), as in every
//! program that maps files: the system offers no check.

#![allow(unsafe_code)]

use crate::error::{utf8, Error, Result};
use crate::interrupt::Interrupt;
use memmap2::Mmap;
use std::fs::{self, File, Metadata};
use std::io::{self, ErrorKind, Read};
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

/// Smaller files are read: mapping one costs more than it saves.
const MIN_MAPPED: u64 = 1 << 20;
/// Longest single read; the interrupt is polled after each.
const READ_CHUNK: usize = 1 << 20;

/// What a path leads to, as its metadata says.
pub enum Source {
    /// A file to read.
    Small(PathBuf),
    /// A file to map.
    Big(PathBuf),
    /// The content of a pipe or another file without a size.
    Held(TextFile),
}

impl Source {
    /// Looks at a path; returns its size in bytes too. Reads a pipe to its end, which may block: only the thread
    /// that polls may call this.
    pub fn new(path: &Path, interrupt: &Interrupt<'_>) -> Result<(Self, u64)> {
        let metadata = fs::metadata(path).map_err(|source| Error::unreadable(path, source))?;
        if metadata.is_dir() {
            let source = io::Error::other("it is a directory; give its files");
            return Err(Error::unreadable(path, source));
        }
        let bytes = metadata.len();
        let path = path.to_owned();
        Ok(match bytes {
            1.. if metadata.is_file() && bytes < MIN_MAPPED => (Self::Small(path), bytes),
            1.. if metadata.is_file() => (Self::Big(path), bytes),
            _ => {
                let held = TextFile::read(path, interrupt)?;
                let bytes = held.bytes().len() as u64;
                (Self::Held(held), bytes)
            }
        })
    }
}

/// An open file.
pub struct TextFile {
    path: PathBuf,
    content: Content,
}

enum Content {
    Read(Vec<u8>),
    Mapped(Mmap, File, Stamp),
}

/// Size and modification time: they tell whether another process changed the file.
type Stamp = (u64, Option<SystemTime>);

impl TextFile {
    /// Reads a whole file.
    pub fn read(path: PathBuf, interrupt: &Interrupt<'_>) -> Result<Self> {
        let mut file = File::open(&path).map_err(|source| Error::unreadable(&path, source))?;
        let mut bytes = Vec::new();
        loop {
            let start = bytes.len();
            bytes.resize(start + READ_CHUNK.min(start.max(1 << 13)), 0);
            let read = file.read(&mut bytes[start..]);
            bytes.truncate(start + *read.as_ref().unwrap_or(&0));
            match read {
                Ok(0) => break,
                Err(error) if error.kind() != ErrorKind::Interrupted => {
                    return Err(Error::unreadable(&path, error));
                }
                _ => interrupt.poll()?,
            }
        }
        let content = Content::Read(bytes);
        Ok(Self { path, content })
    }

    /// Maps a file into memory. Reads it if the system cannot map it.
    pub fn map(path: PathBuf, interrupt: &Interrupt<'_>) -> Result<Self> {
        let opened = File::open(&path).and_then(|file| Ok((file.metadata()?, file)));
        let (metadata, file) = opened.map_err(|source| Error::unreadable(&path, source))?;
        // SAFETY: `Mmap::map` requires that nobody modifies the file. We cannot enforce that, so no code relies
        // on the bytes staying equal: `TextFile::bytes` is only searched and copied, byte by byte, and
        // `TextFile::text` runs its UTF-8 check on the copy. The address stays valid until the map is dropped.
        let Ok(map) = (unsafe { Mmap::map(&file) }) else {
            return Self::read(path, interrupt);
        };
        let content = Content::Mapped(map, file, stamp(&metadata));
        Ok(Self { path, content })
    }

    /// The content. Another process may change the bytes of a mapped file at any time.
    pub fn bytes(&self) -> &[u8] {
        match &self.content {
            Content::Read(bytes) => bytes,
            Content::Mapped(map, ..) => map,
        }
    }

    /// The name for error messages.
    pub fn name(&self) -> String {
        self.path.display().to_string()
    }

    /// The text of a byte range. It never changes: text of a mapped file is copied into `buffer` first.
    pub fn text<'a>(&'a self, range: Range<usize>, buffer: &'a mut Vec<u8>) -> Result<&'a str> {
        let start = range.start as u64;
        let bytes = match &self.content {
            Content::Read(bytes) => &bytes[range],
            Content::Mapped(map, file, opened) => {
                buffer.clear();
                buffer.extend_from_slice(&map[range]);
                let current = file.metadata().map(|metadata| stamp(&metadata));
                if current.as_ref().ok() != Some(opened) {
                    return Err(Error::changed(&self.path));
                }
                buffer.as_slice()
            }
        };
        utf8(bytes, start, || self.name())
    }
}

fn stamp(metadata: &Metadata) -> Stamp {
    (metadata.len(), metadata.modified().ok())
}
