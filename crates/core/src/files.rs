//! Text files, which are read in sequence.
//!
//! They are not mapped: reading a map past the new end of a file that another process truncated kills the process
//! (SIGBUS), and the system offers no check. Read bytes stay as they are. [`TextFile`] compares the size and the
//! modification time of the file after each read, so a result never mixes two versions of a file.

use crate::error::{Error, Result};
use crate::interrupt::Interrupt;
use crate::pipes::Stream;
use crate::reserve::reserve;
use std::fs::{self, File, Metadata};
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

/// Bytes of a pipe to read at once.
const READ_CHUNK: u64 = 1 << 20;

/// A path, and what its metadata says.
pub struct Source {
    path: PathBuf,
    content: Content,
}

enum Content {
    /// A file with a size.
    File(Stamp),
    /// The bytes of a pipe or another file without a size.
    Held(Vec<u8>),
}

/// Size and modification time: they tell whether another process changed the file.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Stamp {
    bytes: u64,
    modified: Option<SystemTime>,
}

impl Stamp {
    fn of(metadata: &Metadata) -> Self {
        Self {
            bytes: metadata.len(),
            modified: metadata.modified().ok(),
        }
    }
}

impl Source {
    /// Looks at a path. Reads a pipe to its end, which may block: only the thread that polls may call this.
    pub fn new(path: &Path, interrupt: &Interrupt<'_>) -> Result<Self> {
        let metadata = fs::metadata(path).map_err(|source| Error::unreadable(path, source))?;
        if metadata.is_dir() {
            let source = io::Error::other("it is a directory; give its files");
            return Err(Error::unreadable(path, source));
        }
        let content = if metadata.is_file() && metadata.len() > 0 {
            Content::File(Stamp::of(&metadata))
        } else {
            Content::Held(read_stream(path, interrupt)?)
        };
        let path = path.to_owned();
        Ok(Self { path, content })
    }

    /// Its size in bytes.
    pub fn bytes(&self) -> u64 {
        match &self.content {
            Content::File(stamp) => stamp.bytes,
            Content::Held(bytes) => bytes.len() as u64,
        }
    }

    /// Opens the file. Fails if it changed since [`Source::new`].
    pub fn open(self) -> Result<TextFile> {
        let unread = self.bytes();
        let reader = match self.content {
            Content::Held(bytes) => Reader::Held(io::Cursor::new(bytes)),
            Content::File(stamp) => {
                let file = File::open(&self.path);
                let file = file.map_err(|source| Error::unreadable(&self.path, source))?;
                Reader::File(file, stamp)
            }
        };
        let path = self.path;
        let file = TextFile {
            path,
            reader,
            unread,
        };
        file.check_unchanged()?;
        Ok(file)
    }
}

fn read_stream(path: &Path, interrupt: &Interrupt<'_>) -> Result<Vec<u8>> {
    let mut stream = Stream::open(path, interrupt)?;
    let mut bytes = Vec::new();
    loop {
        let read = stream.by_ref().take(READ_CHUNK).read_to_end(&mut bytes);
        // A read that the interrupt stopped fails.
        interrupt.poll()?;
        if read.map_err(|source| Error::unreadable(path, source))? < READ_CHUNK as usize {
            return Ok(bytes);
        }
    }
}

/// An open file, read from the beginning to the end.
pub struct TextFile {
    path: PathBuf,
    reader: Reader,
    /// The bytes after those that are read.
    unread: u64,
}

enum Reader {
    File(File, Stamp),
    Held(io::Cursor<Vec<u8>>),
}

impl TextFile {
    /// The file's path.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Whether all bytes are read.
    pub fn is_at_end(&self) -> bool {
        self.unread == 0
    }

    /// Appends the next bytes of the file to `buffer`: as many as wanted, or all that follow. Fails if another
    /// process changed the file.
    pub fn read(&mut self, wanted: usize, buffer: &mut Vec<u8>) -> Result<()> {
        let wanted = self.unread.min(wanted as u64);
        reserve(buffer, wanted as usize)?;
        let read = match &mut self.reader {
            Reader::File(file, _) => file.take(wanted).read_to_end(buffer),
            Reader::Held(bytes) => bytes.take(wanted).read_to_end(buffer),
        };
        let read = read.map_err(|source| Error::unreadable(&self.path, source))?;
        if (read as u64) < wanted {
            return Err(Error::changed(&self.path));
        }
        self.unread -= wanted;
        self.check_unchanged()
    }

    fn check_unchanged(&self) -> Result<()> {
        let Reader::File(file, stamp) = &self.reader else {
            return Ok(());
        };
        match file.metadata() {
            Ok(metadata) if Stamp::of(&metadata) == *stamp => Ok(()),
            _ => Err(Error::changed(&self.path)),
        }
    }
}
