//! The documents in files to ids, in parallel. Small files are read whole, larger ones in windows.

use super::batch::{Batch, BatchOptions, DocumentPart, Encoded, Ragged, BYTES_PER_ID};
use super::Encoder;
use crate::buffer_pool::BufferPool;
use crate::error::{utf8, Error, Result};
use crate::files::{Source, TextFile};
use crate::interrupt::Interrupt;
use crate::reserve::append;
use crate::text::Text;
use memchr::memmem::Finder;
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

/// A file of at most this many jobs is one job, which opens it. A larger file is read by the thread that makes the jobs.
const MAX_SMALL_JOBS: usize = 16;
/// Jobs of a larger file for which bytes are read at once. While they are, no other thread gets a job.
const JOBS_PER_READ: usize = 2;

impl Encoder {
    /// The ids of the documents in files, in their order.
    ///
    /// Without a separator, a file is a document. A separator separates the documents of a file and belongs
    /// to none; empty documents are skipped. Files must be UTF-8 and must not change during the call. The ids get their
    /// room from a pool, and may have more than they need.
    pub fn encode_files(
        &self,
        paths: &[impl AsRef<Path>],
        separator: Option<&str>,
        pool: &BufferPool<u32>,
        options: &BatchOptions,
        interrupt: &Interrupt<'_>,
    ) -> Result<Ragged> {
        if separator == Some("") {
            let message = "the separator is empty; None makes a file a document";
            return Err(Error::Option(message.to_owned()));
        }
        let (mut sources, mut bytes) = (Vec::with_capacity(paths.len()), 0);
        for path in paths {
            interrupt.poll()?;
            let source = Source::new(path.as_ref(), interrupt)?;
            bytes += source.bytes() as usize;
            sources.push(source);
        }
        pool.free_smaller(bytes / BYTES_PER_ID);
        let batch = Batch::new(self, options, bytes, interrupt)?;
        let files = Files {
            batch: &batch,
            separator: separator.map(Finder::new),
            pool: BufferPool::default(),
        };
        let jobs = FileJobs {
            files: &files,
            sources: sources.into_iter(),
            unfinished: None,
        };
        batch.collect(jobs, pool, |thread, job, encoded| {
            files.encode(thread, job?, encoded)
        })
    }
}

/// What all jobs of a call share.
struct Files<'a> {
    batch: &'a Batch<'a>,
    separator: Option<Finder<'a>>,
    /// For the content of the next jobs.
    pool: BufferPool<u8>,
}

enum Job {
    /// A whole file that is not read yet.
    Unread(Source),
    /// Bytes of a file.
    Read(Section),
}

/// Bytes of a file: whole documents with separators between them, or a part of one document.
struct Section {
    path: Arc<Path>,
    /// Offset in the file.
    start: u64,
    /// The bytes are this range of a window, which sections share.
    window: Arc<Vec<u8>>,
    range: Range<usize>,
    is_part: bool,
    /// Whether the section holds the beginning and the end of each document that it has bytes of.
    is_first: bool,
    is_last: bool,
}

impl Files<'_> {
    fn encode(&self, thread: usize, job: Job, encoded: &mut Encoded) -> Result<()> {
        let section = match job {
            Job::Read(section) => section,
            Job::Unread(source) => self.read_whole(source)?,
        };
        let Section {
            is_first, is_last, ..
        } = section;
        let separator = self.separator.as_ref().filter(|_| !section.is_part);
        let name = || section.path.display().to_string();
        let bytes = &section.window[section.range.clone()];
        let text = utf8(bytes, section.start, name)?;
        for document in documents(text, separator) {
            let base = section.start + document.start as u64;
            self.batch
                .check_disallowed(&text[document], &section.path, base)?;
        }
        let parts = documents(text, separator).map(|document| DocumentPart {
            text: Text::Str(&text[document]).into(),
            is_first,
            is_last,
        });
        self.batch.encode(thread, parts, encoded)?;
        self.put_window(section.window);
        Ok(())
    }

    fn read_whole(&self, source: Source) -> Result<Section> {
        let wanted = source.bytes() as usize;
        let mut bytes = self.pool.take(wanted);
        let mut file = source.open()?;
        file.read(wanted, &mut bytes)?;
        Ok(Section {
            path: file.path().into(),
            start: 0,
            range: 0..bytes.len(),
            window: Arc::new(bytes),
            is_part: false,
            is_first: true,
            is_last: true,
        })
    }

    /// Keeps the memory of a window that no other section needs.
    fn put_window(&self, window: Arc<Vec<u8>>) {
        if let Some(buffer) = Arc::into_inner(window) {
            if buffer.capacity() <= MAX_SMALL_JOBS * self.batch.job_bytes {
                self.pool.put(buffer);
            }
        }
    }

    /// Bytes of the separator.
    fn width(&self) -> usize {
        let separator = self.separator.as_ref();
        separator.map_or(0, |separator| separator.needle().len())
    }
}

/// The ranges of the documents in a text.
fn documents<'a>(
    text: &'a str,
    separator: Option<&'a Finder<'a>>,
) -> impl Iterator<Item = Range<usize>> + 'a {
    let width = separator.map_or(0, |separator| separator.needle().len());
    let found = separator.into_iter();
    let found = found.flat_map(|separator| separator.find_iter(text.as_bytes()));
    let mut start = 0;
    found.chain([text.len()]).filter_map(move |end| {
        let document = start..end;
        start = end + width;
        (separator.is_none() || !document.is_empty()).then_some(document)
    })
}

/// Files as jobs.
struct FileJobs<'a> {
    files: &'a Files<'a>,
    sources: std::vec::IntoIter<Source>,
    unfinished: Option<UnfinishedFile>,
}

impl Iterator for FileJobs<'_> {
    type Item = Result<Job>;

    fn next(&mut self) -> Option<Self::Item> {
        self.next_job().transpose()
    }
}

impl FileJobs<'_> {
    fn next_job(&mut self) -> Result<Option<Job>> {
        let max_small = (MAX_SMALL_JOBS * self.files.batch.job_bytes) as u64;
        loop {
            if let Some(file) = &mut self.unfinished {
                let section = file.next_section(self.files)?;
                if file.is_finished {
                    self.unfinished = None;
                }
                return Ok(Some(Job::Read(section)));
            }
            match self.sources.next() {
                None => return Ok(None),
                Some(source) if source.bytes() <= max_small => {
                    return Ok(Some(Job::Unread(source)))
                }
                Some(source) => self.unfinished = Some(UnfinishedFile::new(source.open()?)),
            }
        }
    }
}

/// A file that is partly in jobs already.
struct UnfinishedFile {
    file: TextFile,
    path: Arc<Path>,
    /// Bytes that are read. Those before `used` are in jobs, which share them.
    window: Arc<Vec<u8>>,
    used: usize,
    /// No separator begins between `used` and here.
    searched: usize,
    /// Offset of `used` in the file.
    start: u64,
    /// Whether a document that began earlier continues at `used`.
    in_document: bool,
    is_finished: bool,
}

impl UnfinishedFile {
    fn new(file: TextFile) -> Self {
        Self {
            path: file.path().into(),
            file,
            window: Arc::default(),
            used: 0,
            searched: 0,
            start: 0,
            in_document: false,
            is_finished: false,
        }
    }

    fn next_section(&mut self, files: &Files<'_>) -> Result<Section> {
        let (batch, width) = (files.batch, files.width());
        let margin = batch.longest_token().max(batch.job_bytes / 2).max(width);
        let wanted = batch.job_bytes + margin + width;
        if self.rest().len() < wanted {
            self.read(files, JOBS_PER_READ * batch.job_bytes + margin + width)?;
        }
        let separator = files.separator.as_ref().filter(|_| !self.in_document);
        match separator.and_then(|separator| self.end_of_documents(batch, separator)) {
            Some(length) => self.take(files, length, false, true),
            None => self.part(files),
        }
    }

    /// The bytes that are read and in no job.
    fn rest(&self) -> &[u8] {
        &self.window[self.used..]
    }

    /// Reads more of the file, so that `wanted` bytes are in no job.
    fn read(&mut self, files: &Files<'_>, wanted: usize) -> Result<()> {
        let missing = wanted.saturating_sub(self.rest().len());
        if missing == 0 || self.file.is_at_end() {
            return Ok(());
        }
        let used = std::mem::take(&mut self.used);
        self.searched -= used;
        if let Some(window) = Arc::get_mut(&mut self.window) {
            window.drain(..used);
            return self.file.read(missing, window);
        }
        // Jobs still need the window.
        let mut buffer = files.pool.take(wanted);
        append(&mut buffer, &self.window[used..])?;
        self.file.read(missing, &mut buffer)?;
        self.window = Arc::new(buffer);
        Ok(())
    }

    /// The length of the next documents that fit a job together; None if the first does not fit one.
    fn end_of_documents(&self, batch: &Batch<'_>, separator: &Finder<'_>) -> Option<usize> {
        let (rest, job_bytes) = (self.rest(), batch.job_bytes);
        if self.file.is_at_end() && rest.len() <= job_bytes {
            return Some(rest.len());
        }
        let head = |bytes: usize| &rest[..rest.len().min(bytes)];
        let last = separator.find_iter(head(job_bytes)).last();
        last.or_else(|| separator.find(head(job_bytes + separator.needle().len())))
    }

    /// The next part of a document. Reads until its end is certain.
    fn part(&mut self, files: &Files<'_>) -> Result<Section> {
        let (batch, width) = (files.batch, files.width());
        let mut limit = batch.job_bytes;
        loop {
            batch.interrupt.poll()?;
            let separator = files.separator.as_ref();
            let found = separator.and_then(|it| it.find(&self.window[self.searched..]));
            self.searched = match found {
                Some(distance) => self.searched + distance,
                // A separator may begin in the last bytes.
                None => (self.window.len() + 1)
                    .saturating_sub(width.max(1))
                    .max(self.searched),
            };
            let document = &self.window[self.used..];
            if found.is_some() || self.file.is_at_end() {
                let end = found.map_or(document.len(), |_| self.searched - self.used);
                let length = batch.next_part(&document[..end], &mut limit);
                return self.take(files, length, true, length == end);
            }
            let document = &document[..self.searched - self.used];
            if let Some(length) = batch.first_part_of_unfinished(document, &mut limit) {
                return self.take(files, length, true, false);
            }
            self.read(files, self.rest().len() + batch.job_bytes)?;
        }
    }

    /// Takes a section. If a document ends there, also the separator that follows.
    fn take(
        &mut self,
        files: &Files<'_>,
        length: usize,
        is_part: bool,
        is_last: bool,
    ) -> Result<Section> {
        let end = self.used + length;
        self.is_finished = is_last && end == self.window.len() && self.file.is_at_end();
        let skipped = if is_last && !self.is_finished {
            files.width()
        } else {
            0
        };
        let section = Section {
            path: self.path.clone(),
            start: self.start,
            window: self.window.clone(),
            range: self.used..end,
            is_part,
            is_first: !self.in_document,
            is_last,
        };
        self.in_document = !is_last;
        self.start += (length + skipped) as u64;
        self.used = end + skipped;
        self.searched = self.searched.max(self.used);
        Ok(section)
    }
}
