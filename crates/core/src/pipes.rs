//! Reads pipes, terminals and other streams. Ctrl-C ends the wait for a writer and for its bytes.
//!
//! Opening a named pipe blocks until a writer opens it, and reading blocks until the writer writes. A stream is opened
//! without blocking instead. It waits for bytes in slices, and polls the interrupt after each: a signal at any moment
//! is noticed.
//!
//! `unsafe`: the standard library cannot wait for a file for a limited time. `poll` of the C library can.

use crate::error::{Error, Result};
use crate::interrupt::Interrupt;
use std::fs::File;
use std::io::{self, ErrorKind, Read};
use std::path::Path;

/// The interrupt is polled once for this many bytes that arrive without a wait.
const POLL_BYTES: usize = 1 << 20;

/// A stream of bytes. A read waits until bytes arrive or the stream ends, and fails if the interrupt stops it.
pub struct Stream<'a> {
    file: File,
    interrupt: &'a Interrupt<'a>,
    /// Bytes until the next poll.
    remaining: usize,
    /// Whether the end of the file may mean that no writer has opened the pipe yet.
    awaits_writer: bool,
}

impl<'a> Stream<'a> {
    /// Opens a path. Does not wait for a writer.
    pub fn open(path: &Path, interrupt: &'a Interrupt<'a>) -> Result<Self> {
        let open = || -> io::Result<(File, bool)> {
            let file = system::open(path)?;
            let awaits_writer = system::may_end_before_it_begins(&file.metadata()?);
            Ok((file, awaits_writer))
        };
        let (file, awaits_writer) = open().map_err(|source| Error::unreadable(path, source))?;
        Ok(Self {
            file,
            interrupt,
            remaining: POLL_BYTES,
            awaits_writer,
        })
    }

    fn poll(&mut self) -> io::Result<()> {
        self.remaining = POLL_BYTES;
        self.interrupt.poll().map_err(io::Error::other)
    }
}

impl Read for Stream<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        loop {
            if !system::wait(&self.file)? {
                self.poll()?;
                continue;
            }
            match self.file.read(buffer) {
                Ok(0) if self.awaits_writer => system::pause(),
                Err(error) if error.kind() == ErrorKind::WouldBlock => {
                    self.awaits_writer = false;
                    system::pause();
                }
                Ok(length) => {
                    self.awaits_writer = false;
                    match self.remaining.checked_sub(length) {
                        Some(remaining) => self.remaining = remaining,
                        None => self.poll()?,
                    }
                    return Ok(length);
                }
                Err(error) => return Err(error),
            }
            self.poll()?;
        }
    }
}

#[cfg(unix)]
mod system {
    #![allow(unsafe_code)]

    use std::fs::{File, Metadata, OpenOptions};
    use std::io;
    use std::os::fd::AsRawFd;
    use std::os::unix::fs::{FileTypeExt, OpenOptionsExt};
    use std::path::Path;
    use std::time::Duration;

    /// Longest wait between two polls of the interrupt, in milliseconds.
    const SLICE: i32 = 50;

    pub fn open(path: &Path) -> io::Result<File> {
        let mut options = OpenOptions::new();
        options.read(true).custom_flags(libc::O_NONBLOCK).open(path)
    }

    /// Linux reports the end of a pipe only after a writer has opened and closed it.
    pub fn may_end_before_it_begins(metadata: &Metadata) -> bool {
        metadata.file_type().is_fifo() && !cfg!(any(target_os = "linux", target_os = "android"))
    }

    /// Waits for a slice. Returns whether reading will not block.
    pub fn wait(file: &File) -> io::Result<bool> {
        let mut entry = libc::pollfd {
            fd: file.as_raw_fd(),
            events: libc::POLLIN,
            revents: 0,
        };
        // SAFETY: `entry` is one valid entry, and nothing else refers to it during the call. `file` keeps its
        // descriptor open.
        match unsafe { libc::poll(&raw mut entry, 1, SLICE) } {
            ready @ 0.. => Ok(ready > 0),
            _ => match io::Error::last_os_error() {
                error if error.kind() == io::ErrorKind::Interrupted => Ok(false),
                error => Err(error),
            },
        }
    }

    /// Waits where [`wait`] would return at once.
    pub fn pause() {
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// Where files cannot be polled, a read blocks.
#[cfg(not(unix))]
mod system {
    use std::fs::{File, Metadata};
    use std::io;
    use std::path::Path;

    pub fn open(path: &Path) -> io::Result<File> {
        File::open(path)
    }

    pub fn may_end_before_it_begins(_: &Metadata) -> bool {
        false
    }

    pub fn wait(_: &File) -> io::Result<bool> {
        Ok(true)
    }

    pub fn pause() {}
}

#[cfg(unix)]
#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;
    use std::path::PathBuf;
    use std::process::Command;
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::thread;
    use std::time::Duration;

    /// A named pipe that is gone in the end.
    struct Pipe(PathBuf);

    impl Pipe {
        fn new(name: &str) -> Self {
            let name = format!("bpe-pipe-{}-{name}", std::process::id());
            let path = std::env::temp_dir().join(name);
            let made = Command::new("mkfifo").arg(&path).status();
            assert!(made.is_ok_and(|status| status.success()));
            Self(path)
        }
    }

    impl Drop for Pipe {
        fn drop(&mut self) {
            let _ = std::fs::remove_file(&self.0);
        }
    }

    #[test]
    fn a_wait_for_a_writer_or_for_its_bytes_ends_with_the_interrupt() {
        let pipe = Pipe::new("waits");
        for with_writer in [false, true] {
            let (polls, mut writer) = (AtomicUsize::new(0), None);
            let poll = || polls.fetch_add(1, Ordering::Relaxed) == 2;
            let interrupt = Interrupt::new(&poll);
            let mut stream = Stream::open(&pipe.0, &interrupt).unwrap();
            let mut bytes = Vec::new();
            if with_writer {
                let opened = std::fs::OpenOptions::new().write(true).open(&pipe.0);
                writer.insert(opened.unwrap()).write_all(b"some").unwrap();
            }
            assert!(stream.read_to_end(&mut bytes).is_err());
            assert!(matches!(interrupt.check(), Err(Error::Interrupted)));
            assert_eq!(bytes, if with_writer { &b"some"[..] } else { b"" });
            assert_eq!(polls.load(Ordering::Relaxed), 3);
        }
    }

    #[test]
    fn a_late_and_slow_writer_is_read_to_its_end() {
        let pipe = Pipe::new("late");
        let parts: [&[u8]; 4] = [b"one", b"", b"two", &[b'x'; 3 << 20]];
        thread::scope(|scope| {
            let written = scope.spawn(|| {
                thread::sleep(Duration::from_millis(120));
                let mut writer = File::create(&pipe.0).unwrap();
                for part in parts {
                    thread::sleep(Duration::from_millis(60));
                    writer.write_all(part).unwrap();
                }
            });
            let never = Interrupt::never();
            let mut bytes = Vec::new();
            let mut stream = Stream::open(&pipe.0, &never).unwrap();
            stream.read_to_end(&mut bytes).unwrap();
            written.join().unwrap();
            assert_eq!(bytes, parts.concat());
        });
    }

    #[test]
    fn a_writer_that_writes_nothing_ends_the_stream() {
        let pipe = Pipe::new("nothing");
        thread::scope(|scope| {
            scope.spawn(|| {
                let writer = File::create(&pipe.0).unwrap();
                thread::sleep(Duration::from_millis(150));
                drop(writer);
            });
            let never = Interrupt::never();
            let mut stream = Stream::open(&pipe.0, &never).unwrap();
            assert_eq!(stream.read(&mut [0; 9]).unwrap(), 0);
        });
    }
}
