//! Files of text: mapped into memory, or read where that is not possible or not worth it.

mod map;

use crate::error::{Error, Result};
use crate::interrupt::Interrupt;
use memmap2::Mmap;
use std::fs::{self, File, Metadata};
use std::io::{self, ErrorKind, Read};
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

/// Smaller files are read as a whole.
const WORTH_MAPPING: u64 = 1 << 20;
/// Bytes between two looks at whether to stop.
const PATIENCE: usize = 1 << 20;

/// What a path leads to, as far as one can tell without opening it.
pub enum Source {
    /// A file that is read quickly.
    Small(PathBuf),
    /// A file that is worth mapping.
    Big(PathBuf),
    /// The bytes of something else, a pipe say.
    Held(TextFile),
}

impl Source {
    /// Looks at a path, and reads what is no file with a size. Only the thread that polls should do that, as
    /// it may have to wait for a pipe.
    pub fn new(path: &Path, interrupt: &Interrupt<'_>) -> Result<(Self, u64)> {
        let metadata = fs::metadata(path).map_err(|source| unreadable(path, source))?;
        if metadata.is_dir() {
            let source = io::Error::other("it is a directory; give its files");
            return Err(unreadable(path, source));
        }
        let bytes = metadata.len();
        let path = path.to_owned();
        Ok(match bytes {
            1.. if metadata.is_file() && bytes < WORTH_MAPPING => (Self::Small(path), bytes),
            1.. if metadata.is_file() => (Self::Big(path), bytes),
            _ => {
                let held = TextFile::read(path, interrupt)?;
                let bytes = held.bytes().len() as u64;
                (Self::Held(held), bytes)
            }
        })
    }
}

/// A file that was opened.
pub struct TextFile {
    path: PathBuf,
    content: Content,
}

enum Content {
    Read(Vec<u8>),
    Mapped(Mmap, File, Stamp),
}

/// What tells a file from what another process made of it.
type Stamp = (u64, Option<SystemTime>);

impl TextFile {
    /// Reads a file as a whole.
    pub fn read(path: PathBuf, interrupt: &Interrupt<'_>) -> Result<Self> {
        let bytes = File::open(&path).map(|file| read(file, interrupt));
        let bytes = bytes.map_err(|source| unreadable(&path, source))?;
        let bytes = bytes?.map_err(|source| unreadable(&path, source))?;
        let content = Content::Read(bytes);
        Ok(Self { path, content })
    }

    /// Maps a file into memory, or reads it if the system cannot.
    pub fn map(path: PathBuf, interrupt: &Interrupt<'_>) -> Result<Self> {
        let opened = File::open(&path).and_then(|file| Ok((file.metadata()?, file)));
        let (metadata, file) = opened.map_err(|source| unreadable(&path, source))?;
        let Some(map) = map::map(&file) else {
            return Self::read(path, interrupt);
        };
        let content = Content::Mapped(map, file, stamp(&metadata));
        Ok(Self { path, content })
    }

    /// What it holds; of a mapped file that may change.
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

    /// The text of a range of the bytes, which stays what it is whatever happens to the file. The buffer is
    /// for a copy of it.
    pub fn text<'a>(&'a self, range: Range<usize>, buffer: &'a mut Vec<u8>) -> Result<&'a str> {
        let start = range.start;
        let bytes = match &self.content {
            Content::Read(bytes) => &bytes[range],
            Content::Mapped(map, file, before) => {
                buffer.clear();
                buffer.extend_from_slice(&map[range]);
                let now = file.metadata().map(|metadata| stamp(&metadata));
                if now.as_ref().ok() != Some(before) {
                    let source = io::Error::other("changed while it was being read; try again");
                    return Err(unreadable(&self.path, source));
                }
                buffer.as_slice()
            }
        };
        std::str::from_utf8(bytes).map_err(|error| Error::NotUtf8 {
            source_name: self.name(),
            byte: (start + error.valid_up_to()) as u64,
        })
    }
}

/// All bytes of a file, in which every read may be interrupted.
fn read(mut file: File, interrupt: &Interrupt<'_>) -> Result<io::Result<Vec<u8>>> {
    let mut bytes = Vec::new();
    loop {
        let before = bytes.len();
        bytes.resize(before + PATIENCE.min(before.max(1 << 13)), 0);
        let read = file.read(&mut bytes[before..]);
        bytes.truncate(before + *read.as_ref().unwrap_or(&0));
        match read {
            Ok(0) => return Ok(Ok(bytes)),
            Err(error) if error.kind() != ErrorKind::Interrupted => return Ok(Err(error)),
            _ => interrupt.poll()?,
        }
    }
}

fn stamp(metadata: &Metadata) -> Stamp {
    (metadata.len(), metadata.modified().ok())
}

fn unreadable(path: &Path, source: io::Error) -> Error {
    let path = path.display().to_string();
    Error::Read { path, source }
}
