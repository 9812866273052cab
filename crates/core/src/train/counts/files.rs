//! Counting files, which are read in parts side by side.
//!
//! A part begins and ends where its file may be cut, and every thread finds the same places: a file is divided
//! into cells of [`CELL`] bytes, and may be cut at the last place in a cell where a piece ends whatever
//! stands around it, no special token is near, and both sides can be normalised apart. What is found in a cell
//! depends on nothing but a few bytes around it.

use super::{Counted, Counter, Workspace, STRETCH};
use crate::error::{Error, Result};
use crate::interrupt::Interrupt;
use crate::threads::{lock, thread_count};
use std::fs::{self, File};
use std::io::{self, Read, Seek, SeekFrom};
use std::ops::Range;
use std::path::Path;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::Mutex;

/// A file may be cut once in so many bytes.
const CELL: u64 = 1 << 12;
/// Bytes around a place that tell whether the text may be cut there, besides those of special tokens.
const AROUND: u64 = 8;

/// How far a list of files was counted: all files before this one, and this one up to where it may be cut first
/// at this byte or behind it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Position {
    /// Which file.
    pub file: usize,
    /// Which of its bytes.
    pub byte: u64,
}

/// A part of a file, from where it may be cut first at its start or behind it to where it may be so at its end.
struct Part<'a> {
    path: &'a Path,
    size: u64,
    range: Range<u64>,
}

impl Counter {
    /// Counts files, each a document, `weight` times, from a position on, and returns the position that it came
    /// to. That is behind the last file, or about `bytes` bytes further, or a file that cannot be read from
    /// everywhere, which is read alone. Calls `progress` with the bytes counted.
    ///
    /// How the files are read does not show in the result.
    #[allow(clippy::too_many_arguments)]
    pub fn add_files(
        &self,
        paths: &[impl AsRef<Path>],
        from: Position,
        bytes: u64,
        weight: u64,
        counted: &mut Counted,
        interrupt: &Interrupt<'_>,
        progress: &mut (dyn FnMut(u64) + Send),
    ) -> Result<Position> {
        let bytes = self.max_memory.map_or(bytes, |memory| {
            bytes.min(super::between_looks(memory) as u64)
        });
        let mut position = from;
        let (mut parts, mut planned, mut documents) = (Vec::new(), 0, 0);
        while let Some(path) = paths.get(position.file).filter(|_| planned < bytes) {
            interrupt.poll()?;
            let path = path.as_ref();
            let metadata = fs::metadata(path).map_err(|error| unreadable(path, error))?;
            if !metadata.is_file() || metadata.len() == 0 || !self.patterns.may_be_cut() {
                if parts.is_empty() {
                    self.add_unseekable(path, weight, counted, interrupt, progress)?;
                    position = Position {
                        file: position.file + 1,
                        byte: 0,
                    };
                }
                break;
            }
            let size = metadata.len();
            while position.byte < size && planned < bytes {
                let end = size.min(position.byte + STRETCH as u64);
                let range = position.byte..end;
                planned += end - position.byte;
                parts.push(Part { path, size, range });
                position.byte = end;
            }
            if position.byte >= size {
                position = Position {
                    file: position.file + 1,
                    byte: 0,
                };
                documents += 1;
            }
        }
        self.add_parts(&parts, weight, counted, interrupt, progress)?;
        counted.documents += documents;
        // At every position that is returned, so that whoever goes on from one drops the same pieces.
        counted.unseen = usize::MAX;
        self.keep_to_memory(counted)?;
        Ok(position)
    }

    /// Counts the part of a file that begins where it may be cut first at `range.start` or behind it, and ends
    /// where it may be so at `range.end`. Ranges that cover a file count what the whole file does; the first of
    /// them counts the document.
    pub fn add_range(
        &self,
        path: &Path,
        range: Range<u64>,
        weight: u64,
        counted: &mut Counted,
        interrupt: &Interrupt<'_>,
    ) -> Result<()> {
        let size = fs::metadata(path)
            .map_err(|error| unreadable(path, error))?
            .len();
        let is_first = range.start == 0;
        if !self.patterns.may_be_cut() {
            // There is no place to cut at but the end.
            if is_first {
                self.add_unseekable(path, weight, counted, interrupt, &mut |_| {})?;
            }
            return Ok(());
        }
        let mut parts = Vec::new();
        let (mut start, last) = (range.start, range.end.min(size));
        while start < last {
            let end = last.min(start + STRETCH as u64);
            parts.push(Part {
                path,
                size,
                range: start..end,
            });
            start = end;
        }
        self.add_parts(&parts, weight, counted, interrupt, &mut |_| {})?;
        counted.documents += u64::from(is_first);
        self.keep_to_memory(counted)
    }

    fn add_unseekable(
        &self,
        path: &Path,
        weight: u64,
        counted: &mut Counted,
        interrupt: &Interrupt<'_>,
        progress: &mut (dyn FnMut(u64) + Send),
    ) -> Result<()> {
        let file = File::open(path).map_err(|error| unreadable(path, error))?;
        let name = path.display().to_string();
        self.add_reader(file, &name, weight, counted, interrupt, progress)
    }

    /// Counts parts side by side; the error is that of the first part that has one.
    fn add_parts(
        &self,
        parts: &[Part<'_>],
        weight: u64,
        counted: &mut Counted,
        interrupt: &Interrupt<'_>,
        progress: &mut (dyn FnMut(u64) + Send),
    ) -> Result<()> {
        let bytes = parts.iter().map(Part::bytes).sum::<u64>() as usize;
        let threads = thread_count(self.threads, bytes).min(parts.len().max(1));
        counted.unseen = counted.unseen.saturating_add(bytes);
        let (next, done) = (AtomicUsize::new(0), AtomicU64::new(0));
        let failure: Mutex<Option<(usize, Error)>> = Mutex::new(None);
        let progress = Mutex::new(progress);
        self.side_by_side(threads, weight, counted, |workspace| loop {
            let number = next.fetch_add(1, Ordering::Relaxed);
            let Some(part) = parts.get(number) else {
                return Ok(());
            };
            interrupt.poll()?;
            let outcome = self.count_part(part, workspace, interrupt);
            let done = done.fetch_add(part.bytes(), Ordering::Relaxed) + part.bytes();
            // Whoever comes while another reports need not.
            if let Ok(mut progress) = progress.try_lock() {
                progress(done);
            }
            match outcome {
                Ok(()) => {}
                Err(Error::Interrupted) => return Err(Error::Interrupted),
                Err(error) => {
                    // Parts that were begun are finished: one of them may be an earlier one that fails.
                    next.store(parts.len(), Ordering::Relaxed);
                    let mut failure = lock(&failure);
                    if failure
                        .as_ref()
                        .is_none_or(|(earlier, _)| number < *earlier)
                    {
                        *failure = Some((number, error));
                    }
                }
            }
        })?;
        let failure = lock(&failure).take();
        failure.map_or(Ok(()), |(_, error)| Err(error))
    }

    fn count_part(
        &self,
        part: &Part<'_>,
        workspace: &mut Workspace,
        interrupt: &Interrupt<'_>,
    ) -> Result<()> {
        let mut bytes = std::mem::take(&mut workspace.buffer);
        let mut window = Window::open(part, self.around(), &mut bytes)?;
        let outcome = self.ends(part, &mut window, interrupt);
        let outcome = outcome.and_then(|ends| match ends {
            Some(ends) => {
                let text = window.text(ends)?;
                let mut parts = self.between_specials(text);
                parts.try_for_each(|part| self.count_stretch(part, workspace, interrupt))
            }
            None => Ok(()),
        });
        workspace.buffer = bytes;
        outcome
    }

    /// Bytes around a place that tell whether a file may be cut there.
    fn around(&self) -> u64 {
        self.special.longest() as u64 + AROUND
    }

    /// Where a part really begins and ends; None if it may not be cut anywhere.
    fn ends(
        &self,
        part: &Part<'_>,
        window: &mut Window<'_>,
        interrupt: &Interrupt<'_>,
    ) -> Result<Option<Range<u64>>> {
        let [first, behind] = [part.range.start, part.range.end].map(|byte| byte.div_ceil(CELL));
        let begin = match part.range.start {
            0 => Some(0),
            _ => self.first_cut(first..behind, window, interrupt)?,
        };
        let Some(begin) = begin else {
            return Ok(None);
        };
        let cells = behind..part.size.div_ceil(CELL);
        let end = self.first_cut(cells, window, interrupt)?;
        Ok(Some(begin..end.unwrap_or(part.size)))
    }

    /// The first place in some cells where the file is cut.
    fn first_cut(
        &self,
        cells: Range<u64>,
        window: &mut Window<'_>,
        interrupt: &Interrupt<'_>,
    ) -> Result<Option<u64>> {
        for cell in cells {
            if cell % 256 == 0 {
                interrupt.poll()?;
            }
            if let Some(cut) = self.cut_in(cell, window)? {
                return Ok(Some(cut));
            }
        }
        Ok(None)
    }

    /// The place in a cell where the file is cut: the last one where it may be.
    fn cut_in(&self, cell: u64, window: &mut Window<'_>) -> Result<Option<u64>> {
        let (start, around) = (cell * CELL, self.around());
        let from = start.saturating_sub(around);
        let bytes = window.bytes(from..start + CELL + around)?;
        let within = bytes.len().min((start - from + CELL) as usize);
        // What is not UTF-8 will be found by whoever counts it.
        let skipped = (start - from) as usize;
        let Some(mut text) = characters(&bytes[skipped..within]) else {
            return Ok(None);
        };
        let before = skipped + (text.as_ptr() as usize - bytes[skipped..].as_ptr() as usize);
        while let Some(cut) = self.safe_cut(text, 0) {
            if self.special.may_cut(bytes, before + cut)? {
                return Ok(Some(from + (before + cut) as u64));
            }
            text = &text[..cut];
        }
        Ok(None)
    }
}

impl Part<'_> {
    fn bytes(&self) -> u64 {
        self.range.end - self.range.start
    }
}

/// The whole characters in some bytes of a text, if they are UTF-8.
fn characters(bytes: &[u8]) -> Option<&str> {
    let is_inside = |byte: &&u8| **byte & 0xc0 == 0x80;
    let skipped = bytes.iter().take(3).take_while(is_inside).count();
    super::valid_text(&bytes[skipped..], false).ok()
}

/// The bytes of a file from some place on, as far as they were asked for.
struct Window<'a> {
    path: &'a Path,
    file: File,
    size: u64,
    from: u64,
    bytes: &'a mut Vec<u8>,
}

impl<'a> Window<'a> {
    /// What a part needs to be counted, as a rule.
    fn open(part: &Part<'a>, around: u64, bytes: &'a mut Vec<u8>) -> Result<Self> {
        let (path, size) = (part.path, part.size);
        let from = part.range.start.saturating_sub(around);
        let seek = |mut file: File| file.seek(SeekFrom::Start(from)).map(|_| file);
        let file = File::open(path).and_then(seek);
        let file = file.map_err(|error| unreadable(path, error))?;
        bytes.clear();
        let mut window = Self {
            path,
            file,
            size,
            from,
            bytes,
        };
        window.bytes(from..part.range.end + 2 * CELL + around)?;
        Ok(window)
    }

    /// A range of the file, less what is behind its end.
    fn bytes(&mut self, range: Range<u64>) -> Result<&[u8]> {
        let [start, end] =
            [range.start, range.end].map(|byte| (byte.min(self.size) - self.from) as usize);
        if let Some(missing) = end.checked_sub(self.bytes.len()) {
            let more = missing
                .max(self.bytes.len() / 2)
                .min((self.size - self.from) as usize - self.bytes.len());
            self.bytes.reserve_exact(more);
            let read = self.file.by_ref().take(more as u64).read_to_end(self.bytes);
            let read = read.map_err(|error| unreadable(self.path, error))?;
            if read < more {
                let changed = io::Error::other("changed while it was being read; try again");
                return Err(unreadable(self.path, changed));
            }
        }
        Ok(&self.bytes[start..end])
    }

    /// The text of a range of the file.
    fn text(&mut self, range: Range<u64>) -> Result<&str> {
        let (start, name) = (range.start, self.path.display().to_string());
        std::str::from_utf8(self.bytes(range)?).map_err(|error| Error::NotUtf8 {
            source_name: name,
            byte: start + error.valid_up_to() as u64,
        })
    }
}

fn unreadable(path: &Path, source: io::Error) -> Error {
    let path = path.display().to_string();
    Error::Read { path, source }
}

#[cfg(test)]
mod tests {
    use super::super::tests::{count_whole, counter, sample, table, Counts, PATTERN, WORDS};
    use super::*;
    use crate::normalize::Normalization;
    use std::path::PathBuf;

    /// A file that is gone in the end.
    struct Temporary(PathBuf);

    impl Temporary {
        fn new(content: &[u8]) -> Self {
            static NUMBER: AtomicUsize = AtomicUsize::new(0);
            let number = NUMBER.fetch_add(1, Ordering::Relaxed);
            let name = format!("bpe-counts-{}-{number}", std::process::id());
            let path = std::env::temp_dir().join(name);
            fs::write(&path, content).unwrap();
            Self(path)
        }
    }

    impl Drop for Temporary {
        fn drop(&mut self) {
            let _ = fs::remove_file(&self.0);
        }
    }

    fn count(counter: &Counter, paths: &[&Path], bytes: u64) -> Result<Counted> {
        let mut counted = Counted::default();
        let (mut position, mut last) = (Position::default(), 0);
        while position.file < paths.len() {
            let before = position;
            let never = Interrupt::never();
            let progress = &mut |bytes| last = bytes;
            position =
                counter.add_files(paths, position, bytes, 1, &mut counted, &never, progress)?;
            assert!((position.file, position.byte) > (before.file, before.byte));
        }
        Ok(counted)
    }

    fn added(tables: impl IntoIterator<Item = Counts>) -> Counts {
        let mut sum = Counts::new();
        for (piece, count) in tables.into_iter().flatten() {
            *sum.entry(piece).or_insert(0) += count;
        }
        sum
    }

    #[test]
    fn the_way_files_are_read_does_not_show() {
        let texts = [
            sample(5 << 20),
            String::new(),
            sample(5000),
            "é".repeat(3 << 19),
            sample(3 << 20),
        ];
        let files: Vec<_> = texts
            .iter()
            .map(|text| Temporary::new(text.as_bytes()))
            .collect();
        let paths: Vec<&Path> = files.iter().map(|file| &*file.0).collect();
        for (pattern, form) in [
            (PATTERN, None),
            (PATTERN, Some(Normalization::Nfc)),
            (WORDS, None),
            // Cut nowhere.
            (r"(?s).+", None),
        ] {
            let oracle = counter(pattern, form, 1);
            let whole = added(texts.iter().map(|text| count_whole(&oracle, text)));
            for (threads, bytes) in [(1, u64::MAX), (2, u64::MAX), (3, 2 << 20), (2, 1)] {
                let counter = counter(pattern, form, threads);
                let mut counted = count(&counter, &paths, bytes).unwrap();
                assert_eq!(table(&mut counted), whole);
                assert_eq!(counted.documents, 5);
            }
        }
    }

    #[test]
    fn ranges_that_cover_a_file_count_what_it_holds() {
        let text = sample(3 << 20);
        let file = Temporary::new(text.as_bytes());
        let size = text.len() as u64;
        for (pattern, form) in [
            (PATTERN, Some(Normalization::Nfc)),
            (PATTERN, None),
            (WORDS, None),
        ] {
            let counter = counter(pattern, form, 2);
            let whole = count_whole(&counter, &text);
            for step in [1_000_003, 70_001, 2 << 20, size, 10 * size] {
                let mut counted = Counted::default();
                for start in (0..size).step_by(step as usize) {
                    let range = start..start + step;
                    let never = Interrupt::never();
                    counter
                        .add_range(&file.0, range, 1, &mut counted, &never)
                        .unwrap();
                }
                assert_eq!(table(&mut counted), whole, "{step}");
                assert_eq!(counted.documents, 1);
            }
        }
    }

    #[test]
    fn special_tokens_that_overlap_are_not_cut() {
        let tokens = ["ab", "ba", "abab", "b b", " "].map(str::to_owned).to_vec();
        let patterns = [PATTERN.to_owned()];
        let counter = Counter::new(&patterns, None, tokens, 2, None).unwrap();
        for text in ["abab ba bab ", "ababababa\n", "b b b b!", "aXb "] {
            let text = text.repeat(200_000);
            let file = Temporary::new(text.as_bytes());
            let mut counted = count(&counter, &[&file.0], u64::MAX).unwrap();
            assert_eq!(table(&mut counted), count_whole(&counter, &text));
        }
    }

    #[test]
    fn the_first_byte_that_is_not_utf8_is_named() {
        let counter = counter(PATTERN, None, 2);
        let mut bytes = sample(6 << 20).into_bytes();
        for place in [bytes.len() - 3, 4 << 20, (2 << 20) + 1, 1 << 20, 5] {
            bytes[place] = 0xff;
            let valid = std::str::from_utf8(&bytes).unwrap_err().valid_up_to();
            let file = Temporary::new(&bytes);
            let error = count(&counter, &[&file.0], u64::MAX)
                .err()
                .map(|e| e.to_string());
            let expected = format!("{}: byte {valid} ", file.0.display());
            assert!(error.unwrap().starts_with(&expected));
        }
    }

    #[test]
    fn files_that_cannot_be_read_are_named() {
        let counter = counter(PATTERN, None, 2);
        let directory = std::env::temp_dir();
        for path in [&*directory, Path::new("there/is no such file")] {
            let error = count(&counter, &[path], u64::MAX)
                .err()
                .map(|e| e.to_string());
            assert!(error.unwrap().starts_with(&path.display().to_string()));
        }
    }
}
