//! The documents in files to ids, in parallel. Files are mapped or read job by job.

use super::batch::{Batch, BatchOptions, DocumentPart, Encoded, Ragged};
use super::Encoder;
use crate::error::{Error, Result};
use crate::files::{Source, TextFile};
use crate::interrupt::Interrupt;
use crate::text::Text;
use memchr::memmem::Finder;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;

impl Encoder {
    /// The ids of the documents in files, in their order.
    ///
    /// Without a separator, a file is a document. A separator separates the documents of a file and belongs
    /// to none; empty documents are skipped. Files must be UTF-8 and must not change during the call.
    pub fn encode_files(
        &self,
        paths: &[impl AsRef<Path>],
        separator: Option<&str>,
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
            let (source, size) = Source::new(path.as_ref(), interrupt)?;
            sources.push(source);
            bytes += size as usize;
        }
        let batch = Batch::new(self, options, bytes, interrupt)?;
        let separator = separator.map(Finder::new);
        let jobs = FileJobs {
            batch: &batch,
            separator: separator.as_ref(),
            sources: sources.into_iter(),
            unfinished: None,
        };
        batch.collect(jobs, |job, encoded| {
            encode(&batch, separator.as_ref(), job?, encoded)
        })
    }
}

enum Job {
    /// A whole file.
    File(PathBuf),
    /// A range of whole documents with separators between them.
    Documents(Arc<TextFile>, Range<usize>),
    /// A part of one document: its range, whether it is the first part, and whether it is the last one.
    Part(Arc<TextFile>, Range<usize>, bool, bool),
}

fn encode(
    batch: &Batch<'_>,
    separator: Option<&Finder<'_>>,
    job: Job,
    encoded: &mut Encoded,
) -> Result<()> {
    let (file, range, separator, is_first, is_last) = match job {
        Job::File(path) => {
            let file = Arc::new(TextFile::read(path, batch.interrupt)?);
            let range = 0..file.bytes().len();
            (file, range, separator, true, true)
        }
        Job::Documents(file, range) => (file, range, separator, true, true),
        Job::Part(file, range, is_first, is_last) => (file, range, None, is_first, is_last),
    };
    let start = range.start;
    let mut buffer = std::mem::take(&mut encoded.file_buffer);
    let text = file.text(range, &mut buffer)?;
    for document in documents(text, separator) {
        let base = start + document.start;
        batch.check_disallowed(&text[document], &file, base)?;
    }
    let parts = documents(text, separator).map(|document| DocumentPart {
        text: Text::Str(&text[document]),
        is_first,
        is_last,
    });
    batch.encode(parts, encoded)?;
    encoded.file_buffer = buffer;
    Ok(())
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
    batch: &'a Batch<'a>,
    separator: Option<&'a Finder<'a>>,
    sources: std::vec::IntoIter<Source>,
    unfinished: Option<UnfinishedFile>,
}

/// A file that is partly in jobs already.
struct UnfinishedFile {
    file: Arc<TextFile>,
    /// Where the rest begins; none at the end.
    at: Option<usize>,
    /// The document that contains `at`, if it is cut into parts.
    document: Option<Range<usize>>,
}

impl Iterator for FileJobs<'_> {
    type Item = Result<Job>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            let unfinished = self.unfinished.as_mut();
            let job = unfinished.and_then(|file| file.next_job(self.batch, self.separator));
            if let Some(job) = job {
                return Some(Ok(job));
            }
            let file = match self.sources.next()? {
                Source::Small(path) => return Some(Ok(Job::File(path))),
                Source::Big(path) => TextFile::map(path, self.batch.interrupt),
                Source::Held(file) => Ok(file),
            };
            match file {
                Err(error) => return Some(Err(error)),
                Ok(file) => {
                    self.unfinished = Some(UnfinishedFile {
                        file: Arc::new(file),
                        at: Some(0),
                        document: None,
                    });
                }
            }
        }
    }
}

impl UnfinishedFile {
    fn next_job(&mut self, batch: &Batch<'_>, separator: Option<&Finder<'_>>) -> Option<Job> {
        let at = self.at?;
        let bytes = self.file.bytes();
        let document = match (self.document.take(), separator) {
            (Some(document), _) => document,
            (None, None) => 0..bytes.len(),
            (None, Some(separator)) => {
                let (rest, width) = (&bytes[at..], separator.needle().len());
                let is_last = rest.len() <= batch.job_bytes;
                let head = &rest[..rest.len().min(batch.job_bytes)];
                let end = if is_last {
                    Some(rest.len())
                } else {
                    separator.find_iter(head).last()
                };
                // Without a separator in the head, the document is larger than a job.
                let end =
                    end.or_else(|| separator.find(rest).filter(|&end| end <= batch.job_bytes));
                if let Some(end) = end {
                    self.at = (!is_last).then_some(at + end + width);
                    return Some(Job::Documents(self.file.clone(), at..at + end));
                }
                at..at + separator.find(rest).unwrap_or(rest.len())
            }
        };
        let end = at + batch.first_part(&bytes[at..document.end], batch.job_bytes);
        let (is_first, is_last) = (at == document.start, end == document.end);
        self.at = match separator {
            _ if !is_last => Some(end),
            Some(separator) if end < bytes.len() => Some(end + separator.needle().len()),
            _ => None,
        };
        self.document = (!is_last).then_some(document);
        Some(Job::Part(self.file.clone(), at..end, is_first, is_last))
    }
}
