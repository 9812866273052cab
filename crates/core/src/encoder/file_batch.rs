//! Documents in files to ids, in parallel, without holding what is read.

use super::batch::{Batch, Encoded, Part};
use super::{BatchOptions, Encoder, Ragged, Text};
use crate::error::{Error, Result};
use crate::files::{Source, TextFile};
use crate::interrupt::Interrupt;
use memchr::memmem::Finder;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;

impl Encoder {
    /// The ids of the documents in files, in their order.
    ///
    /// A file is a document, or holds several with a separator between each two, which belongs to neither;
    /// between separators without text there is no document. Files must be UTF-8, and must stay what they
    /// are meanwhile.
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
        let batch = Batch::new(self, options, bytes)?;
        let separator = separator.map(Finder::new);
        let jobs = Files {
            batch: &batch,
            separator: separator.as_ref(),
            sources: sources.into_iter(),
            open: None,
            interrupt,
        };
        batch.collect(jobs, interrupt, |job, encoded| {
            encode(&batch, separator.as_ref(), job?, encoded, interrupt)
        })
    }
}

enum Job {
    /// A file with all that is in it.
    File(PathBuf),
    /// Whole documents with separators between them.
    Documents(Arc<TextFile>, Range<usize>),
    /// A part of a document: its bytes, and whether the document begins and ends with them.
    Part(Arc<TextFile>, Range<usize>, bool, bool),
}

fn encode(
    batch: &Batch<'_>,
    separator: Option<&Finder<'_>>,
    job: Job,
    encoded: &mut Encoded,
    interrupt: &Interrupt<'_>,
) -> Result<()> {
    let (file, range, separator, begins, ends) = match job {
        Job::File(path) => {
            let file = Arc::new(TextFile::read(path, interrupt)?);
            let range = 0..file.bytes().len();
            (file, range, separator, true, true)
        }
        Job::Documents(file, range) => (file, range, separator, true, true),
        Job::Part(file, range, begins, ends) => (file, range, None, begins, ends),
    };
    let start = range.start;
    encoded.with_buffer(|encoded, buffer| {
        let text = file.text(range, buffer)?;
        for document in documents(text, separator) {
            batch.refuse(
                &text[document.clone()],
                || file.name(),
                start + document.start,
            )?;
        }
        let parts = documents(text, separator).map(|document| Part {
            text: Text::Str(&text[document]),
            begins,
            ends,
        });
        batch.encode(parts, encoded, interrupt)
    })
}

/// Where the documents in a text are.
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
struct Files<'a> {
    batch: &'a Batch<'a>,
    separator: Option<&'a Finder<'a>>,
    sources: std::vec::IntoIter<Source>,
    open: Option<Open>,
    interrupt: &'a Interrupt<'a>,
}

/// A file of which some is in jobs already.
struct Open {
    file: Arc<TextFile>,
    /// Where the rest begins; none if there is no more.
    at: Option<usize>,
    /// The document that it begins in, if that is cut.
    document: Option<Range<usize>>,
}

impl Iterator for Files<'_> {
    type Item = Result<Job>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            if let Some(job) = self
                .open
                .as_mut()
                .and_then(|open| open.next(self.batch, self.separator))
            {
                return Some(Ok(job));
            }
            let file = match self.sources.next()? {
                Source::Small(path) => return Some(Ok(Job::File(path))),
                Source::Big(path) => TextFile::map(path, self.interrupt),
                Source::Held(file) => Ok(file),
            };
            match file {
                Err(error) => return Some(Err(error)),
                Ok(file) => {
                    self.open = Some(Open {
                        file: Arc::new(file),
                        at: Some(0),
                        document: None,
                    });
                }
            }
        }
    }
}

impl Open {
    fn next(&mut self, batch: &Batch<'_>, separator: Option<&Finder<'_>>) -> Option<Job> {
        let at = self.at?;
        let bytes = self.file.bytes();
        let document = match (self.document.take(), separator) {
            (Some(document), _) => document,
            (None, None) => 0..bytes.len(),
            (None, Some(separator)) => {
                let (rest, width) = (&bytes[at..], separator.needle().len());
                let is_last = rest.len() <= batch.job;
                let head = &rest[..rest.len().min(batch.job)];
                let end = if is_last {
                    Some(rest.len())
                } else {
                    separator.find_iter(head).last()
                };
                // Without a separator in so much text, the document is big.
                let end = end.or_else(|| separator.find(rest).filter(|&end| end <= batch.job));
                if let Some(end) = end {
                    self.at = (!is_last).then_some(at + end + width);
                    return Some(Job::Documents(self.file.clone(), at..at + end));
                }
                at..at + separator.find(rest).unwrap_or(rest.len())
            }
        };
        let end = at + batch.first_part(&bytes[at..document.end], batch.job);
        let (begins, ends) = (at == document.start, end == document.end);
        self.at = match separator {
            _ if !ends => Some(end),
            Some(separator) if end < bytes.len() => Some(end + separator.needle().len()),
            _ => None,
        };
        self.document = (!ends).then_some(document);
        Some(Job::Part(self.file.clone(), at..end, begins, ends))
    }
}
