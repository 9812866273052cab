//! Many texts to ids, in parallel: short texts together, long ones in parts.

use super::added_tokens::{Matchers, Search, Special};
use super::cuts::Cuts;
use super::{Encoder, TextSource};
use crate::buffer_pool::BufferPool;
use crate::code_units::CodeUnits;
use crate::error::{Error, Result};
use crate::interrupt::Interrupt;
use crate::memory::{make_room, return_freed};
use crate::reserve::{append, push, reserve};
use crate::text::Text;
use crate::threads::ordered::in_order;
use crate::threads::{first_chunk, next_cut, thread_count};
use std::borrow::Cow;
use std::path::Path;
use std::sync::Arc;

/// The default bytes of a job.
const JOB_BYTES: usize = 64 << 10;
/// With this many bytes of texts, the ids need much memory.
const LARGE: usize = 64 << 20;
/// The fixed cost of a text, in bytes.
const TEXT_COST: usize = 16;
/// Most texts have fewer ids than one for this many bytes. For a first allocation.
pub const BYTES_PER_ID: usize = 3;

/// A code unit has about this many bytes, on average at most.
const BYTES_PER_UNIT: usize = 2;

/// Memory for the ids of so many bytes of texts, of a pool if it has some. New memory is an eighth larger, so that it later
/// does for texts that are somewhat longer: pages that nobody writes to cost nothing.
pub fn room_for(bytes: usize, pool: &BufferPool<u32>) -> Vec<u32> {
    let room = bytes / BYTES_PER_ID;
    let mut ids = pool.take_for_result(room);
    if ids.capacity() == 0 {
        make_room(&mut ids, room + room / 8);
    }
    ids
}

/// How documents are encoded.
#[derive(Clone, Debug, Default)]
pub struct BatchOptions {
    /// The special tokens that are recognised.
    pub special: Special,
    /// The special tokens that a document must not contain (see [`Encoder::encode_files`]).
    pub disallowed: Special,
    /// Ids to put before each document.
    pub prefix_ids: Vec<u32>,
    /// Ids to put after each document.
    pub suffix_ids: Vec<u32>,
    /// The number of threads; 0 for one a processor.
    pub threads: usize,
    /// The approximate bytes of a job; 0 for the default. Does not change the result.
    pub job_bytes: usize,
}

/// The ids of several documents, in one array.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ragged {
    /// The ids of all documents.
    pub ids: Vec<u32>,
    /// Where the ids of each document begin, and where the last ones end.
    pub offsets: Vec<i64>,
}

impl Encoder {
    /// The ids of texts, in their order.
    ///
    /// A long text is cut only where that changes no id. A text without such a position stays on one
    /// thread.
    pub fn encode_all<'t>(
        &self,
        texts: impl Iterator<Item: Into<TextSource<'t>>> + Clone + Send,
        options: &BatchOptions,
        interrupt: &Interrupt<'_>,
    ) -> Result<Ragged> {
        let mut ragged = self.encode_pooled(texts, &BufferPool::default(), options, interrupt)?;
        ragged.ids.shrink_to_fit();
        Ok(ragged)
    }

    /// As [`Encoder::encode_all`]. The ids get their room from a pool, and may have more than they need.
    pub fn encode_pooled<'t>(
        &self,
        texts: impl Iterator<Item: Into<TextSource<'t>>> + Clone + Send,
        pool: &BufferPool<u32>,
        options: &BatchOptions,
        interrupt: &Interrupt<'_>,
    ) -> Result<Ragged> {
        let texts = texts.map(Into::into);
        let bytes = texts.clone().map(TextSource::estimated_bytes).sum();
        let batch = Batch::new(self, options, bytes, interrupt)?;
        let jobs = TextJobs::new(&batch, texts, batch.part_bytes());
        batch.collect(jobs, pool, |thread, parts, encoded| {
            batch.encode(thread, parts.into_iter(), encoded)
        })
    }

    /// Appends the ids of a text in code units, part by part.
    pub(super) fn encode_units(
        &self,
        units: CodeUnits<'_>,
        special: &Special,
        ids: &mut Vec<u32>,
        interrupt: &Interrupt<'_>,
    ) -> Result<()> {
        let mut encoded = Encoded {
            ids: std::mem::take(ids),
            ends: Vec::new(),
        };
        self.for_parts(units, special, interrupt, |batch, parts| {
            batch.encode(0, parts.into_iter(), &mut encoded)
        })?;
        *ids = encoded.ids;
        Ok(())
    }

    /// The number of ids of a text in code units.
    pub(super) fn count_units(
        &self,
        units: CodeUnits<'_>,
        special: &Special,
        interrupt: &Interrupt<'_>,
    ) -> Result<usize> {
        let mut count = 0;
        self.for_parts(units, special, interrupt, |batch, parts| {
            count += batch.count(0, parts.into_iter())?;
            Ok(())
        })?;
        Ok(count)
    }

    /// Calls `work` with the parts of a text, on this thread.
    fn for_parts<'t>(
        &self,
        units: CodeUnits<'t>,
        special: &Special,
        interrupt: &Interrupt<'_>,
        mut work: impl FnMut(&Batch<'_>, Vec<DocumentPart<'t>>) -> Result<()>,
    ) -> Result<()> {
        let options = BatchOptions {
            special: special.clone(),
            threads: 1,
            ..BatchOptions::default()
        };
        let batch = Batch::new(self, &options, units.estimated_bytes(), interrupt)?;
        let text = std::iter::once(units.into());
        for parts in TextJobs::new(&batch, text, batch.part_bytes()) {
            interrupt.poll()?;
            work(&batch, parts)?;
        }
        Ok(())
    }

    /// The number of ids of all texts together.
    pub fn count_all<'t>(
        &self,
        texts: impl Iterator<Item: Into<TextSource<'t>>> + Clone + Send,
        options: &BatchOptions,
        interrupt: &Interrupt<'_>,
    ) -> Result<usize> {
        let texts = texts.map(Into::into);
        let bytes = texts.clone().map(TextSource::estimated_bytes).sum();
        let batch = Batch::new(self, options, bytes, interrupt)?;
        let jobs = TextJobs::new(&batch, texts, batch.part_bytes());
        let mut count = 0;
        let work = |thread, parts: Vec<DocumentPart<'t>>, counted: &mut usize| {
            *counted += batch.count(thread, parts.into_iter())?;
            Ok(())
        };
        let take = |counted: &mut usize| {
            count += std::mem::take(counted);
            Ok(())
        };
        in_order(jobs, batch.threads, interrupt, work, take)?;
        Ok(count)
    }
}

/// A document or a part of one.
pub struct DocumentPart<'a> {
    pub text: TextSource<'a>,
    pub is_first: bool,
    pub is_last: bool,
}

/// The result of a job: ids, and where among them documents end.
#[derive(Default)]
pub struct Encoded {
    ids: Vec<u32>,
    ends: Vec<i64>,
}

impl Encoded {
    fn clear(&mut self) {
        self.ids.clear();
        self.ends.clear();
    }
}

/// What all jobs of a call share.
pub struct Batch<'a> {
    encoder: &'a Encoder,
    options: &'a BatchOptions,
    pub interrupt: &'a Interrupt<'a>,
    matchers: Cow<'a, Arc<Matchers>>,
    disallowed: Option<Cow<'a, Arc<Matchers>>>,
    bytes: usize,
    pub threads: usize,
    pub job_bytes: usize,
}

impl<'a> Batch<'a> {
    pub fn new(
        encoder: &'a Encoder,
        options: &'a BatchOptions,
        bytes: usize,
        interrupt: &'a Interrupt<'a>,
    ) -> Result<Self> {
        let matchers = encoder.matchers(&options.special)?;
        let disallowed = match &options.disallowed {
            Special::None => None,
            special => Some(encoder.matchers(special)?),
        };
        Ok(Self {
            encoder,
            options,
            interrupt,
            matchers,
            disallowed,
            bytes,
            threads: thread_count(options.threads, bytes),
            job_bytes: match options.job_bytes {
                0 => JOB_BYTES,
                bytes => bytes,
            },
        })
    }

    /// The bytes of a part. One thread needs no parts.
    fn part_bytes(&self) -> usize {
        match self.threads {
            1 => usize::MAX,
            _ => self.job_bytes,
        }
    }

    /// The length of the first part of a document, for parts of about `part_bytes`.
    pub fn first_part(&self, document: &[u8], part_bytes: usize) -> usize {
        let Some(cuts) = self.cuts() else {
            return document.len();
        };
        first_chunk(document.len(), part_bytes, |range| {
            cuts.last(document, range)
        })
    }

    /// As [`Batch::first_part`], of code units.
    fn first_part_of_units(&self, units: CodeUnits<'_>) -> usize {
        let Some(cuts) = self.cuts() else {
            return units.len();
        };
        let size = (self.job_bytes / BYTES_PER_UNIT).max(1);
        first_chunk(units.len(), size, |range| cuts.last_of_units(units, range))
    }

    /// The length of the next part of a document, as [`Batch::first_part_of_unfinished`].
    pub fn next_part(&self, document: &[u8], limit: &mut usize) -> usize {
        let Some(cuts) = self.cuts() else {
            return document.len();
        };
        let (length, size) = (document.len(), self.job_bytes);
        let cut = next_cut(limit, length, size / 2, size, |range| {
            cuts.last(document, range)
        });
        cut.unwrap_or(length)
    }

    /// The length of the first part of an unfinished document: None if that depends on bytes after `beginning`.
    ///
    /// `limit` is where the search for a cut continues, and [`Batch::job_bytes`] at first. Parts have about that
    /// many bytes.
    pub fn first_part_of_unfinished(&self, beginning: &[u8], limit: &mut usize) -> Option<usize> {
        let cuts = self.cuts()?;
        let margin = cuts.longest_token().max(self.job_bytes / 2);
        next_cut(limit, beginning.len(), margin, self.job_bytes, |range| {
            cuts.last(beginning, range)
        })
    }

    fn cuts(&self) -> Option<Cuts<'_>> {
        let disallowed = self.disallowed.as_ref();
        let disallowed = disallowed.map(|matchers| -> &Matchers { matchers });
        Cuts::new(self.encoder, &self.matchers, disallowed)
    }

    /// Bytes of the longest added token that may be in the way of a cut.
    pub fn longest_token(&self) -> usize {
        self.cuts().map_or(0, |cuts| cuts.longest_token())
    }

    /// Appends the ids of parts to `encoded`.
    pub fn encode<'t>(
        &self,
        thread: usize,
        parts: impl Iterator<Item = DocumentPart<'t>>,
        encoded: &mut Encoded,
    ) -> Result<()> {
        let Encoded { ids, ends } = encoded;
        if ids.capacity() == 0 {
            make_room(ids, self.bytes.min(self.job_bytes) / BYTES_PER_ID);
        }
        let search = Search::new(&self.matchers, false, self.interrupt);
        self.encoder
            .with_piece_encoder_of(thread, self.interrupt, |pieces| {
                for part in parts {
                    if part.is_first {
                        append(ids, &self.options.prefix_ids)?;
                    }
                    pieces.with_text(part.text, |pieces, text| {
                        self.encoder.for_each_segment(text, search, &mut |segment| {
                            pieces.encode(segment, usize::MAX, ids)
                        })
                    })?;
                    if part.is_last {
                        append(ids, &self.options.suffix_ids)?;
                        push(ends, ids.len() as i64)?;
                    }
                }
                Ok(())
            })
    }

    /// The number of ids of parts.
    fn count<'t>(
        &self,
        thread: usize,
        mut parts: impl Iterator<Item = DocumentPart<'t>>,
    ) -> Result<usize> {
        let search = Search::new(&self.matchers, false, self.interrupt);
        self.encoder
            .with_piece_encoder_of(thread, self.interrupt, |pieces| {
                let mut count = 0;
                parts.try_for_each(|part| {
                    count += usize::from(part.is_first) * self.options.prefix_ids.len();
                    count += usize::from(part.is_last) * self.options.suffix_ids.len();
                    pieces.with_text(part.text, |pieces, text| {
                        self.encoder.for_each_segment(text, search, &mut |segment| {
                            count += pieces.count(segment)?;
                            Ok(true)
                        })
                    })
                })?;
                Ok(count)
            })
    }

    /// Fails if a text contains a disallowed token. The text begins at `base` of the file.
    pub fn check_disallowed(&self, text: &str, file: &Path, base: u64) -> Result<()> {
        if self.disallowed.is_none() {
            return Ok(());
        }
        let special = &self.options.disallowed;
        let text = Text::Str(text);
        match self.encoder.find_special(text, special, self.interrupt)? {
            None => Ok(()),
            Some((token, at)) => Err(Error::Disallowed {
                source_name: file.display().to_string(),
                token,
                byte: base + at as u64,
            }),
        }
    }

    /// Runs the jobs and concatenates their results. The ids get their room from a pool.
    pub fn collect<J: Send>(
        &self,
        jobs: impl Iterator<Item = J> + Send,
        pool: &BufferPool<u32>,
        work: impl Fn(usize, J, &mut Encoded) -> Result<()> + Sync,
    ) -> Result<Ragged> {
        if self.bytes >= LARGE {
            return_freed();
        }
        let room = || room_for(self.bytes, pool);
        let mut ids = Vec::new();
        if self.threads > 1 {
            ids = room();
        }
        // A single thread needs no copy of its ids.
        let work = |thread, job, encoded: &mut Encoded| {
            if self.threads == 1 && encoded.ids.capacity() == 0 {
                encoded.ids = room();
            }
            work(thread, job, encoded)
        };
        let mut offsets = vec![0];
        let take = |encoded: &mut Encoded| {
            if offsets.len() == 1 && ids.capacity() == 0 {
                ids = std::mem::take(&mut encoded.ids);
                reserve(&mut encoded.ends, 1)?;
                offsets = std::mem::take(&mut encoded.ends);
                offsets.insert(0, 0);
            } else {
                let start = ids.len() as i64;
                reserve(&mut offsets, encoded.ends.len())?;
                offsets.extend(encoded.ends.iter().map(|end| start + end));
                append(&mut ids, &encoded.ids)?;
            }
            encoded.clear();
            Ok(())
        };
        in_order(jobs, self.threads, self.interrupt, work, take)?;
        offsets.shrink_to_fit();
        Ok(Ragged { ids, offsets })
    }
}

/// Texts as jobs of about `job_bytes`.
struct TextJobs<'a, 't, I> {
    batch: &'a Batch<'a>,
    texts: I,
    /// A text that is partly in jobs already, and where its rest begins.
    unfinished: Option<(TextSource<'t>, usize)>,
    part_bytes: usize,
}

impl<'a, 't, I: Iterator<Item = TextSource<'t>>> TextJobs<'a, 't, I> {
    fn new(batch: &'a Batch<'a>, texts: I, part_bytes: usize) -> Self {
        Self {
            batch,
            texts,
            unfinished: None,
            part_bytes,
        }
    }

    /// The length of the first part of a text. Code units are in parts also for one thread, which then needs memory for the
    /// UTF-8 of one part.
    fn first_part(&self, text: TextSource<'t>) -> usize {
        match text {
            TextSource::Text(text) => self.batch.first_part(text.as_bytes(), self.part_bytes),
            TextSource::Units(units) => self.batch.first_part_of_units(units),
        }
    }
}

impl<'t, I: Iterator<Item = TextSource<'t>>> Iterator for TextJobs<'_, 't, I> {
    type Item = Vec<DocumentPart<'t>>;

    fn next(&mut self) -> Option<Self::Item> {
        let (mut parts, mut bytes) = (Vec::new(), 0);
        while bytes < self.batch.job_bytes {
            let unfinished = self.unfinished.take();
            let Some((text, start)) = unfinished.or_else(|| Some((self.texts.next()?, 0))) else {
                break;
            };
            let length = self.first_part(text.slice(start..text.len()));
            let end = start + length;
            if end < text.len() {
                self.unfinished = Some((text, end));
            }
            parts.push(DocumentPart {
                text: text.slice(start..end),
                is_first: start == 0,
                is_last: end == text.len(),
            });
            bytes += TEXT_COST
                + match text {
                    TextSource::Text(_) => length,
                    TextSource::Units(_) => BYTES_PER_UNIT * length,
                };
        }
        (!parts.is_empty()).then_some(parts)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{Model, Settings};
    use crate::normalize::Normalization;
    use crate::normalizers::Normalizer;
    use crate::pretokenize::PreTokenizer;

    fn encoder(normalizers: Vec<Normalizer>) -> Encoder {
        let settings = Settings {
            normalizers,
            pre_tokenizers: vec![PreTokenizer::isolated(r" ?\p{L}+|\s|[^\s\p{L}]+")],
            ..Settings::default()
        };
        let tokens = (0..=255).map(|byte| (u32::from(byte), vec![byte]));
        Encoder::new(Model::new(tokens.collect(), Some(&[]), settings, Vec::new()).unwrap())
            .unwrap()
    }

    #[test]
    fn long_texts_are_cut_where_that_is_safe() {
        let prose = "It was the best of times, it was the worst of times. ".repeat(1000);
        let russian = "Все счастливые семьи похожи друг на друга. ".repeat(1000);
        let options = BatchOptions::default();
        for normalizers in [vec![], vec![Normalizer::Form(Normalization::Nfc)]] {
            let encoder = encoder(normalizers);
            let never = Interrupt::never();
            let batch = Batch::new(&encoder, &options, 1 << 20, &never).unwrap();
            for text in [&prose, &russian] {
                let length = batch.first_part(text.as_bytes(), 1000);
                assert!((900..=1000).contains(&length), "{length}");
            }
            let broken = [b"\xff\xbf".as_slice(), prose.as_bytes()].concat();
            assert!(batch.first_part(&broken, 1000) <= 1000);
            let letters = "a".repeat(10_000);
            assert_eq!(batch.first_part(letters.as_bytes(), 1000), letters.len());
        }
    }
}
