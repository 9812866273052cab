//! Temporary files: they have no name, so that nothing is left of them, whatever ends the process.

use crate::error::{Error, Result};
use std::fs::File;
use std::io::{self, ErrorKind, Write};
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

/// Where temporary files are.
#[derive(Clone, Debug)]
pub struct Spills {
    /// None for the system's directory of temporary files.
    directory: Option<PathBuf>,
}

impl Spills {
    /// A directory; None for the system's directory of temporary files.
    pub fn new(directory: Option<PathBuf>) -> Self {
        Self { directory }
    }

    /// The directory.
    pub fn directory(&self) -> PathBuf {
        self.directory.clone().unwrap_or_else(std::env::temp_dir)
    }

    /// Creates a file. It has a name for a moment only.
    pub fn file(&self) -> Result<TemporaryFile> {
        static NUMBER: AtomicU64 = AtomicU64::new(0);
        let since = SystemTime::now().duration_since(UNIX_EPOCH);
        let directory = Arc::new(self.directory());
        let nanoseconds = since.map_or(0, |since| since.subsec_nanos());
        let created = loop {
            let number = NUMBER.fetch_add(1, Ordering::Relaxed);
            let name = format!(
                ".bpe-tokenizer-{}-{number}-{nanoseconds:x}.spill",
                std::process::id()
            );
            let path = directory.join(name);
            match system::create(&path) {
                Err(error) if error.kind() == ErrorKind::AlreadyExists => {}
                created => break created,
            }
        };
        match created {
            Ok(file) => Ok(TemporaryFile { file, directory }),
            Err(source) => Err(error(&directory, source)),
        }
    }
}

/// A file that is gone when it is closed.
pub struct TemporaryFile {
    file: File,
    directory: Arc<PathBuf>,
}

impl TemporaryFile {
    /// Appends bytes.
    pub fn write(&self, bytes: &[u8]) -> Result<()> {
        let written = (&self.file).write_all(bytes);
        written.map_err(|source| self.error(source))
    }

    /// Reads bytes from an offset on. Returns how many; 0 at the end.
    pub fn read_at(&self, bytes: &mut [u8], offset: u64) -> Result<usize> {
        read_at(&self.file, bytes, offset).map_err(|source| self.error(source))
    }

    /// The error of this file.
    pub fn error(&self, source: io::Error) -> Error {
        error(&self.directory, source)
    }
}

fn error(directory: &std::path::Path, source: io::Error) -> Error {
    Error::Spill {
        directory: directory.display().to_string(),
        source,
    }
}

/// Reads from an offset on. Returns how many bytes; 0 at the end.
pub fn read_at(file: &File, bytes: &mut [u8], offset: u64) -> io::Result<usize> {
    loop {
        match system::read_at(file, bytes, offset) {
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            read => return read,
        }
    }
}

#[cfg(any(unix, windows))]
fn options() -> std::fs::OpenOptions {
    let mut options = std::fs::OpenOptions::new();
    options.read(true).write(true).create_new(true);
    options
}

#[cfg(unix)]
mod system {
    use std::fs::{remove_file, File};
    use std::io;
    use std::os::unix::fs::{FileExt, OpenOptionsExt};
    use std::path::Path;

    pub fn create(path: &Path) -> io::Result<File> {
        let file = super::options().mode(0o600).open(path)?;
        remove_file(path)?;
        Ok(file)
    }

    pub fn read_at(file: &File, bytes: &mut [u8], offset: u64) -> io::Result<usize> {
        file.read_at(bytes, offset)
    }
}

#[cfg(windows)]
mod system {
    use std::fs::File;
    use std::io;
    use std::os::windows::fs::{FileExt, OpenOptionsExt};
    use std::path::Path;

    const DELETE_ON_CLOSE: u32 = 0x0400_0000;

    pub fn create(path: &Path) -> io::Result<File> {
        super::options().custom_flags(DELETE_ON_CLOSE).open(path)
    }

    /// Moves the place where the next write begins, so a file is read after it was written.
    pub fn read_at(file: &File, bytes: &mut [u8], offset: u64) -> io::Result<usize> {
        match file.seek_read(bytes, offset) {
            Err(error) if error.raw_os_error() == Some(38) => Ok(0), // the end of the file
            read => read,
        }
    }
}

#[cfg(not(any(unix, windows)))]
mod system {
    use std::fs::File;
    use std::io::{self, ErrorKind};
    use std::path::Path;

    pub fn create(_: &Path) -> io::Result<File> {
        Err(ErrorKind::Unsupported.into())
    }

    pub fn read_at(_: &File, _: &mut [u8], _: u64) -> io::Result<usize> {
        Err(ErrorKind::Unsupported.into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[cfg(unix)]
    fn a_file_has_no_name_and_what_was_written() {
        let directory = std::env::temp_dir().join(format!("bpe-spills-{}", std::process::id()));
        std::fs::create_dir(&directory).unwrap();
        let spills = Spills::new(Some(directory.clone()));
        let (one, other) = (spills.file().unwrap(), spills.file().unwrap());
        assert_eq!(std::fs::read_dir(&directory).unwrap().count(), 0);
        one.write(b"some").unwrap();
        one.write(b" bytes").unwrap();
        other.write(b"others").unwrap();
        let mut buffer = [0; 5];
        assert_eq!(one.read_at(&mut buffer, 3).unwrap(), 5);
        assert_eq!(&buffer, b"e byt");
        assert_eq!(one.read_at(&mut buffer, 10).unwrap(), 0);
        std::fs::remove_dir(&directory).unwrap();
        let error = spills.file().err().unwrap().to_string();
        assert!(error.contains("bpe-spills") && error.contains("spill_directory"));
    }
}
