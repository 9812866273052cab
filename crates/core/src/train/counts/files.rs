//! Counts files, whose sections are read in parallel.
//!
//! Each thread finds the cuts of a file independently. A file is divided into cells of [`CELL_BYTES`]. The cut of
//! a cell is the last place in it at which a piece ends whatever surrounds it, no special token is near, and both
//! sides can be normalised separately. A cut therefore depends only on a few bytes around it.

use super::counter::{CountCall, Counter, Progress, Worker};
use super::reader::valid_text;
use super::splitter::SECTION_BYTES;
use crate::error::{utf8, Error, Result};
use crate::interrupt::Interrupt;
use crate::pipes::Stream;
use crate::reserve::reserve_exact;
use std::fs::{self, File};
use std::io::{Read, Seek, SeekFrom};
use std::ops::Range;
use std::path::Path;

/// A file has at most one cut per cell.
const CELL_BYTES: u64 = 1 << 12;

/// Progress in a list of files: the earlier files are counted, and this file up to its first cut at or after
/// `byte`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Position {
    /// Index of the file.
    pub file: usize,
    /// Offset in the file.
    pub byte: u64,
}

/// A section of a file, from the first cut at or after `range.start` to the first at or after `range.end`.
struct FileSection<'a> {
    path: &'a Path,
    /// Bytes of the file.
    size: u64,
    range: Range<u64>,
}

impl CountCall<'_> {
    /// Counts files, each a document. Continues from a position and returns the position that it reached: about
    /// `bytes` bytes further, or the end of the list. A pipe, or a file without safe cuts, takes one call. Calls `progress` with the number of bytes counted.
    ///
    /// The counts do not depend on how the files are read.
    pub fn add_files(
        &mut self,
        paths: &[impl AsRef<Path>],
        from: Position,
        bytes: u64,
        progress: Progress<'_>,
    ) -> Result<Position> {
        self.counter.check_not_sampled()?;
        let mut position = from;
        let (mut sections, mut planned, mut documents) = (Vec::new(), 0, 0);
        while let Some(path) = paths.get(position.file).filter(|_| planned < bytes) {
            self.interrupt.poll()?;
            let path = path.as_ref();
            let metadata = fs::metadata(path).map_err(|error| Error::unreadable(path, error))?;
            let size = metadata.len();
            let next_file = Position {
                file: position.file + 1,
                byte: 0,
            };
            if !metadata.is_file() || size == 0 || !self.counter.splitter.patterns.may_be_cut() {
                if sections.is_empty() {
                    self.add_stream(path, progress)?;
                    position = next_file;
                }
                break;
            }
            while position.byte < size && planned < bytes {
                let end = size.min(position.byte + SECTION_BYTES as u64);
                let range = position.byte..end;
                planned += end - position.byte;
                sections.push(FileSection { path, size, range });
                position.byte = end;
            }
            if position.byte >= size {
                position = next_file;
                documents += 1;
            }
        }
        self.add_sections(&sections, progress)?;
        self.counted.documents += documents;
        self.counter.limit_memory(self.counted, self.interrupt)?;
        Ok(position)
    }

    /// Counts a part of a file, from the first cut at or after `range.start` to the first at or after
    /// `range.end`. Ranges that cover a file together count what the whole file does. The range from 0 counts
    /// the document.
    pub fn add_range(&mut self, path: &Path, range: Range<u64>) -> Result<()> {
        self.counter.check_not_sampled()?;
        let metadata = fs::metadata(path).map_err(|error| Error::unreadable(path, error))?;
        let size = metadata.len();
        let is_first = range.start == 0;
        if !self.counter.splitter.patterns.may_be_cut() {
            // The only cut is the end of the file.
            if is_first {
                self.add_stream(path, &mut |_| {})?;
            }
            return Ok(());
        }
        let last = range.end.min(size);
        let starts = (range.start..last).step_by(SECTION_BYTES);
        let sections = starts.map(|start| FileSection {
            path,
            size,
            range: start..last.min(start + SECTION_BYTES as u64),
        });
        let sections: Vec<_> = sections.collect();
        self.add_sections(&sections, &mut |_| {})?;
        self.counted.documents += u64::from(is_first);
        self.counter.limit_memory(self.counted, self.interrupt)
    }

    fn add_stream(&mut self, path: &Path, progress: Progress<'_>) -> Result<()> {
        let stream = Stream::open(path, self.interrupt)?;
        self.add_reader(stream, path, progress)
    }

    fn add_sections(&mut self, sections: &[FileSection<'_>], progress: Progress<'_>) -> Result<()> {
        let (counter, interrupt) = (self.counter, self.interrupt);
        let size = |section: &FileSection<'_>| (section.range.end - section.range.start) as usize;
        self.count_parallel(sections, size, progress, |section, worker| {
            counter.count_file_section(section, worker, interrupt)
        })
    }
}

impl Counter {
    fn count_file_section(
        &self,
        section: &FileSection<'_>,
        worker: &mut Worker<'_>,
        interrupt: &Interrupt<'_>,
    ) -> Result<()> {
        let FileSection { path, size, range } = section;
        let mut buffer = std::mem::take(&mut worker.buffer);
        // The end is usually in the next two cells.
        let end = range.end + 2 * CELL_BYTES + self.context();
        let start = range.start.saturating_sub(self.context());
        let mut window = Window::open(path, *size, start..end, &mut buffer)?;
        if let Some(range) = self.cut_range(section, &mut window, interrupt)? {
            let mut parts = self.splitter.between_specials(window.text(range)?);
            parts.try_for_each(|part| worker.count(part))?;
        }
        worker.buffer = buffer;
        Ok(())
    }

    /// Bytes on each side of a place that decide whether it is a cut: those of a special token.
    fn context(&self) -> u64 {
        self.splitter.special.longest as u64
    }

    /// The cuts at which a section begins and ends; None if no cut lies in its range.
    fn cut_range(
        &self,
        section: &FileSection<'_>,
        window: &mut Window<'_>,
        interrupt: &Interrupt<'_>,
    ) -> Result<Option<Range<u64>>> {
        let Range { start, end } = section.range;
        let [first_cell, next_cell] = [start, end].map(|byte| byte.div_ceil(CELL_BYTES));
        let mut first_cut = |cells: Range<u64>| -> Result<Option<u64>> {
            for cell in cells {
                if cell % 256 == 0 {
                    interrupt.poll()?;
                }
                if let Some(cut) = self.cut_of_cell(cell, window)? {
                    return Ok(Some(cut));
                }
            }
            Ok(None)
        };
        let begin = match start {
            0 => Some(0),
            _ => first_cut(first_cell..next_cell)?,
        };
        let Some(begin) = begin else {
            return Ok(None);
        };
        let end = first_cut(next_cell..section.size.div_ceil(CELL_BYTES))?;
        Ok(Some(begin..end.unwrap_or(section.size)))
    }

    /// The cut of a cell: the last safe one.
    fn cut_of_cell(&self, cell: u64, window: &mut Window<'_>) -> Result<Option<u64>> {
        let (start, context) = (cell * CELL_BYTES, self.context());
        let from = start.saturating_sub(context);
        let bytes = window.bytes(from..start + CELL_BYTES + context)?;
        let within = bytes.len().min((start - from + CELL_BYTES) as usize);
        // Invalid UTF-8 has no cut. The worker that counts it reports it.
        let skipped = (start - from) as usize;
        let Some(mut text) = whole_characters(&bytes[skipped..within]) else {
            return Ok(None);
        };
        let before = skipped + (text.as_ptr() as usize - bytes[skipped..].as_ptr() as usize);
        while let Some(cut) = self.splitter.safe_cut(text, 0) {
            if self.splitter.special.may_cut(bytes, before + cut)? {
                return Ok(Some(from + (before + cut) as u64));
            }
            text = &text[..cut];
        }
        Ok(None)
    }
}

/// The bytes as text, without the incomplete characters at both ends; None if they are not UTF-8.
fn whole_characters(bytes: &[u8]) -> Option<&str> {
    let is_continuation = |byte: &&u8| **byte & 0xc0 == 0x80;
    let skipped = bytes.iter().take(3).take_while(is_continuation).count();
    valid_text(&bytes[skipped..], false).ok()
}

/// The bytes of a file from an offset on. Grows on demand.
struct Window<'a> {
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
    fn open(path: &'a Path, size: u64, range: Range<u64>, bytes: &'a mut Vec<u8>) -> Result<Self> {
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
    fn bytes(&mut self, range: Range<u64>) -> Result<&[u8]> {
        let [start, end] =
            [range.start, range.end].map(|byte| (byte.min(self.size) - self.start) as usize);
        if let Some(missing) = end.checked_sub(self.bytes.len()) {
            let more = missing
                .max(self.bytes.len() / 2)
                .min((self.size - self.start) as usize - self.bytes.len());
            reserve_exact(self.bytes, more + 32)?; // `read_to_end` looks for the end in 32 bytes
            let read = self.file.by_ref().take(more as u64).read_to_end(self.bytes);
            let read = read.map_err(|error| Error::unreadable(self.path, error))?;
            if read < more {
                return Err(Error::changed(self.path));
            }
        }
        Ok(&self.bytes[start..end])
    }

    /// The text of a range of the file.
    fn text(&mut self, range: Range<u64>) -> Result<&str> {
        let (start, path) = (range.start, self.path);
        utf8(self.bytes(range)?, start, || path.display().to_string())
    }
}

#[cfg(test)]
mod tests {
    use super::super::counted::Counted;
    use super::super::counter::Limits;
    use super::super::samples::{
        call, count_whole, counter, sample, table, Counts, PATTERN, WORDS,
    };
    use super::*;
    use crate::normalize::Normalization;
    use std::path::PathBuf;
    use std::sync::atomic::{AtomicUsize, Ordering};

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
            position = call(counter, &mut counted, 1, &never)
                .add_files(paths, position, bytes, progress)?;
            assert!((position.file, position.byte) > (before.file, before.byte));
        }
        Ok(counted)
    }

    /// Counts a file in ranges of `step` bytes.
    fn count_ranges(counter: &Counter, path: &Path, step: u64) -> Counted {
        let size = fs::metadata(path).unwrap().len();
        let mut counted = Counted::default();
        for start in (0..size).step_by(step as usize) {
            call(counter, &mut counted, 1, &Interrupt::never())
                .add_range(path, start..start + step)
                .unwrap();
        }
        counted
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
            sample(2 << 20),
            String::new(),
            sample(5000),
            "é".repeat(3 << 18),
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
                assert_eq!(counted.normalized, form.is_some());
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
                let mut counted = count_ranges(&counter, &file.0, step);
                assert_eq!(table(&mut counted), whole, "{step}");
                assert_eq!(counted.documents, 1);
            }
        }
    }

    #[test]
    fn small_ranges_count_what_a_file_holds() {
        let token = "<|end of text|>";
        let texts = [
            sample(50_000),
            format!("{token} word ").repeat(2000),
            // Cells that a token begins or ends, and that could otherwise only be cut in it.
            format!("{token}{}", ">".repeat(4086)).repeat(15),
        ];
        for text in &texts {
            let file = Temporary::new(text.as_bytes());
            for (pattern, form) in [
                (PATTERN, Some(Normalization::Nfc)),
                (PATTERN, None),
                (WORDS, None),
            ] {
                let counter = counter(pattern, form, 1);
                let whole = count_whole(&counter, text);
                for step in [1000, CELL_BYTES, 5000, 20_000, 1 << 40] {
                    let mut counted = count_ranges(&counter, &file.0, step);
                    assert!(table(&mut counted) == whole, "{pattern} {form:?} {step}");
                    assert_eq!(counted.documents, 1);
                }
            }
        }
    }

    #[test]
    fn a_range_counts_its_part_where_a_pattern_can_be_cut() {
        let words = 5000;
        let file = Temporary::new("word ".repeat(words as usize).as_bytes());
        let parts = |pattern, byte| {
            let counter = counter(pattern, None, 1);
            let mut counted = Counted::default();
            let never = Interrupt::never();
            [0..byte, byte..5 * words].map(|range| {
                let mut call = call(&counter, &mut counted, 1, &never);
                call.add_range(&file.0, range).unwrap();
                let counts = table(&mut counted);
                let words = counts.iter().filter(|(word, _)| word.ends_with(b"word"));
                words.map(|(_, count)| count).sum::<u64>()
            })
        };
        let [first, both] = parts(PATTERN, 10_000);
        assert!((2000..2000 + 2 * CELL_BYTES / 5).contains(&first));
        assert_eq!(both, words);
        assert_eq!(parts(WORDS, 10_000), [words, words]);
    }

    #[test]
    fn a_cell_is_cut_at_its_last_safe_place() {
        let patterns = [PATTERN.to_owned()];
        let plain = Counter::new(&patterns, None, Vec::new(), 1, Limits::default()).unwrap();
        let counter = counter(PATTERN, None, 1);
        for (word, counter) in [
            ("word ", &counter),
            ("日本語 ", &counter),
            ("日本語 ", &plain),
        ] {
            let text = word.repeat(5000);
            let file = Temporary::new(text.as_bytes());
            let (size, mut buffer) = (text.len() as u64, Vec::new());
            let mut window = Window::open(&file.0, size, 0..1, &mut buffer).unwrap();
            for cell in 0..size / CELL_BYTES {
                let (start, end) = (cell * CELL_BYTES, (cell + 1) * CELL_BYTES);
                let bytes = &text.as_bytes()[..end as usize];
                let last = bytes.iter().rposition(|&byte| byte == b' ').unwrap() as u64;
                assert!(last > start);
                let cut = counter.cut_of_cell(cell, &mut window).unwrap();
                assert_eq!(cut, Some(last), "{word} {cell}");
            }
        }
    }

    #[test]
    fn a_list_of_files_goes_on_where_it_stopped() {
        let files = [&b"word "[..], b"", b"two words "].map(|text| text.repeat(300_000));
        let files = files.map(|text| Temporary::new(&text));
        let paths = files.each_ref().map(|file| &*file.0);
        let counter = counter(PATTERN, None, 1);
        let (mut counted, mut position) = (Counted::default(), Position::default());
        let never = Interrupt::never();
        let mut add = |bytes| {
            let mut reports = Vec::new();
            let progress = &mut |bytes| reports.push(bytes);
            position = call(&counter, &mut counted, 1, &never)
                .add_files(&paths, position, bytes, progress)
                .unwrap();
            ((position.file, position.byte), counted.documents, reports)
        };
        const SECTION: u64 = SECTION_BYTES as u64;
        assert_eq!(add(SECTION), ((0, SECTION), 0, vec![SECTION]));
        assert_eq!(add(SECTION), ((1, 0), 1, vec![1_500_000 - SECTION]));
        assert_eq!(add(1), ((2, 0), 2, vec![0]));
        let ends = vec![SECTION, 2 * SECTION, 3_000_000];
        assert_eq!(add(3 * SECTION), ((3, 0), 3, ends));
        assert_eq!(add(1), ((3, 0), 3, vec![]));
        let counts = table(&mut counted);
        assert_eq!(counts[&b" word"[..]], 299_999);
        assert_eq!(counts[&b" words"[..]], 300_000);
    }

    #[test]
    fn special_tokens_that_overlap_are_not_cut() {
        let tokens = ["ab", "ba", "abab", "b b", " "].map(str::to_owned).to_vec();
        let patterns = [PATTERN.to_owned()];
        let counter = Counter::new(&patterns, None, tokens, 2, Limits::default()).unwrap();
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
    fn a_file_that_shrinks_is_named() {
        let file = Temporary::new(b"word ");
        let mut buffer = Vec::new();
        for (size, is_read) in [(4, true), (5, true), (6, false)] {
            let window = Window::open(&file.0, size, 0..size, &mut buffer);
            let error = window.err().map(|error| error.to_string());
            let changed = format!("{}: ", file.0.display());
            assert_eq!(error.is_none(), is_read);
            assert!(error.is_none_or(|error| error.starts_with(&changed)));
        }
    }
}
