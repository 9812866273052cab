//! Many texts to ids, in parallel: small ones together, big ones in parts.

use super::{Encoder, Matchers, Run, Search, Special, Text};
use crate::error::{Error, Result};
use crate::interrupt::Interrupt;
use crate::threads::ordered::in_order;
use crate::threads::{first_chunk, thread_count};
use std::ops::Range;
use std::sync::Arc;

/// A thread takes so many bytes at a time, about.
const JOB: usize = 64 << 10;
/// What a text costs besides its bytes, in bytes.
const TEXT: usize = 16;
/// Bytes of text that have an id, at least as often as not; for a first guess at how many ids there will be.
const BYTES_AN_ID: usize = 4;

/// How documents are encoded.
#[derive(Clone, Debug)]
pub struct BatchOptions {
    /// The special tokens that are recognised.
    pub special: Special,
    /// Those that a document must not hold (see [`Encoder::encode_files`]).
    pub disallowed: Special,
    /// Ids that are put before and behind each document.
    pub around: (Vec<u32>, Vec<u32>),
    /// How many threads; 0 for as many as there are processors.
    pub threads: usize,
    /// About how many bytes a thread takes at a time; never shows in the result.
    pub job: usize,
}

impl Default for BatchOptions {
    fn default() -> Self {
        Self {
            special: Special::None,
            disallowed: Special::None,
            around: (Vec::new(), Vec::new()),
            threads: 0,
            job: JOB,
        }
    }
}

/// The ids of several documents.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ragged {
    /// One after the other.
    pub ids: Vec<u32>,
    /// Where the ids of each document begin, and where those of the last end.
    pub offsets: Vec<i64>,
}

impl Encoder {
    /// The ids of texts, in their order.
    ///
    /// A text is cut only where that changes no id; one in which no such place is known is encoded by one
    /// thread.
    pub fn encode_all<'t>(
        &self,
        texts: impl Iterator<Item = Text<'t>> + Clone + Send,
        options: &BatchOptions,
        interrupt: &Interrupt<'_>,
    ) -> Result<Ragged> {
        let bytes = texts.clone().map(|text| text.as_bytes().len()).sum();
        let batch = Batch::new(self, options, bytes)?;
        // What one thread encodes need not be cut.
        let job = if batch.threads > 1 {
            batch.job
        } else {
            usize::MAX
        };
        let jobs = Texts::new(&batch, texts, job);
        batch.collect(jobs, interrupt, |parts, encoded| {
            batch.encode(parts.into_iter(), encoded, interrupt)
        })
    }

    /// How many ids the texts have, together.
    pub fn count_all<'t>(
        &self,
        texts: impl Iterator<Item = Text<'t>> + Clone + Send,
        options: &BatchOptions,
        interrupt: &Interrupt<'_>,
    ) -> Result<usize> {
        let bytes = texts.clone().map(|text| text.as_bytes().len()).sum();
        let batch = Batch::new(self, options, bytes)?;
        let jobs = Texts::new(&batch, texts, batch.job);
        let mut count = 0;
        let work = |parts: Vec<Part<'t>>, (encoded, count): &mut (Encoded, usize)| {
            batch.encode(parts.into_iter(), encoded, interrupt)?;
            *count += encoded.ids.len();
            encoded.clear();
            Ok(())
        };
        let take = |(_, counted): &mut (Encoded, usize)| count += std::mem::take(counted);
        in_order(jobs, batch.threads, interrupt, work, take)?;
        Ok(count)
    }
}

/// A document or a part of one.
pub(super) struct Part<'a> {
    pub text: Text<'a>,
    pub begins: bool,
    pub ends: bool,
}

/// What came of a job: ids, and where among them documents ended.
#[derive(Default)]
pub(super) struct Encoded {
    ids: Vec<u32>,
    ends: Vec<i64>,
    buffer: Vec<u8>,
}

impl Encoded {
    /// Lends bytes to read into.
    pub fn with_buffer<T>(&mut self, work: impl FnOnce(&mut Self, &mut Vec<u8>) -> T) -> T {
        let mut buffer = std::mem::take(&mut self.buffer);
        let result = work(self, &mut buffer);
        self.buffer = buffer;
        result
    }

    fn clear(&mut self) {
        self.ids.clear();
        self.ends.clear();
    }
}

/// A call: what all of its jobs need to know.
pub(super) struct Batch<'a> {
    encoder: &'a Encoder,
    options: &'a BatchOptions,
    matchers: Arc<Matchers>,
    disallowed: Option<Arc<Matchers>>,
    bytes: usize,
    pub threads: usize,
    pub job: usize,
    /// Whether anything is known of where a document may be cut.
    may_cut: bool,
}

impl<'a> Batch<'a> {
    pub fn new(encoder: &'a Encoder, options: &'a BatchOptions, bytes: usize) -> Result<Self> {
        let matchers = encoder.matchers(&options.special)?;
        let disallowed = match &options.disallowed {
            Special::None => None,
            special => Some(encoder.matchers(special)?),
        };
        // Where tokens stand in the normalised text is not known before it is normalised.
        let hides_tokens = |matchers: &Matchers| {
            !encoder.normalizers.is_empty() && !matchers.normalized.is_empty()
        };
        let may_cut = !encoder.pre_tokenizers.needs_offsets()
            && !hides_tokens(&matchers)
            && !disallowed.as_deref().is_some_and(hides_tokens);
        Ok(Self {
            encoder,
            options,
            matchers,
            disallowed,
            bytes,
            threads: thread_count(options.threads, bytes),
            job: options.job.max(1),
            may_cut,
        })
    }

    /// How long the first part of a document is.
    pub fn first_part(&self, document: &[u8], job: usize) -> usize {
        if !self.may_cut {
            return document.len();
        }
        first_chunk(document.len(), job, |range| self.last_cut(document, range))
    }

    /// The last place in a range of a document where it may be cut without a change of its ids.
    fn last_cut(&self, document: &[u8], range: Range<usize>) -> Option<usize> {
        let mut end = range.end;
        let chunks: Vec<_> = document[range].utf8_chunks().collect();
        chunks.into_iter().rev().find_map(|chunk| {
            let start = end - chunk.invalid().len() - chunk.valid().len();
            end = start;
            self.last_cut_in(chunk.valid(), document, start)
        })
    }

    /// The same in a stretch of text that begins at `start`.
    fn last_cut_in(&self, mut stretch: &str, document: &[u8], start: usize) -> Option<usize> {
        let Encoder {
            normalizers,
            pre_tokenizers,
            ..
        } = self.encoder;
        loop {
            let may_cut = |before, after| normalizers.may_cut(before, after);
            let cut = pre_tokenizers.last_safe_cut(stretch, 0, may_cut)?;
            if self.holds_no_token_at(document, start + cut) {
                return Some(start + cut);
            }
            stretch = &stretch[..cut];
        }
    }

    fn holds_no_token_at(&self, document: &[u8], at: usize) -> bool {
        let matchers = [Some(&self.matchers), self.disallowed.as_ref()];
        let mut matchers = matchers
            .into_iter()
            .flatten()
            .flat_map(|matchers| [&matchers.given, &matchers.normalized]);
        matchers.all(|matcher| matcher.may_cut(document, at).unwrap_or(false))
    }

    /// Adds the ids of parts to those of others.
    pub fn encode<'t>(
        &self,
        parts: impl Iterator<Item = Part<'t>>,
        encoded: &mut Encoded,
        interrupt: &Interrupt<'_>,
    ) -> Result<()> {
        let Encoded { ids, ends, .. } = encoded;
        if ids.capacity() == 0 {
            let bytes = match self.threads {
                1 => self.bytes,
                _ => self.bytes.min(self.job),
            };
            ids.reserve(bytes / BYTES_AN_ID);
        }
        let (before, after) = &self.options.around;
        let search = Search::from(&self.options.special);
        self.encoder.workspaces.with(|workspace| {
            let mut run = Run::new(self.encoder, workspace, interrupt);
            for Part {
                text,
                begins,
                ends: is_last,
            } in parts
            {
                if begins {
                    ids.extend_from_slice(before);
                }
                let mut part = |part: super::Part<'_>| run.part(part, usize::MAX, ids);
                self.encoder
                    .parts_with(&self.matchers, text, search, false, &mut part)?;
                if is_last {
                    ids.extend_from_slice(after);
                    ends.push(ids.len() as i64);
                }
            }
            Ok(())
        })
    }

    /// An error if there is a token in a text that must not be there; `name` and `base` tell where the text
    /// stands.
    pub fn refuse(&self, text: &str, name: impl Fn() -> String, base: usize) -> Result<()> {
        if self.disallowed.is_none() {
            return Ok(());
        }
        let special = &self.options.disallowed;
        match self.encoder.find_special(Text::Str(text), special)? {
            None => Ok(()),
            Some((token, at)) => Err(Error::Disallowed {
                source_name: name(),
                token,
                byte: (base + at) as u64,
            }),
        }
    }

    /// Does the jobs, and puts together what came of them.
    pub fn collect<J: Send>(
        &self,
        jobs: impl Iterator<Item = J> + Send,
        interrupt: &Interrupt<'_>,
        work: impl Fn(J, &mut Encoded) -> Result<()> + Sync,
    ) -> Result<Ragged> {
        let mut ids: Vec<u32> = Vec::new();
        if self.threads > 1 {
            ids.reserve_exact(self.bytes / BYTES_AN_ID); // not touched before there are so many
        }
        let mut offsets = vec![0];
        let take = |encoded: &mut Encoded| {
            if offsets.len() == 1 && ids.capacity() == 0 {
                ids = std::mem::take(&mut encoded.ids);
                offsets = std::mem::take(&mut encoded.ends);
                offsets.insert(0, 0);
            } else {
                let start = ids.len() as i64;
                offsets.extend(encoded.ends.iter().map(|end| start + end));
                ids.extend_from_slice(&encoded.ids);
            }
            encoded.clear();
        };
        in_order(jobs, self.threads, interrupt, work, take)?;
        ids.shrink_to_fit();
        offsets.shrink_to_fit();
        Ok(Ragged { ids, offsets })
    }
}

/// Texts as jobs.
struct Texts<'a, 't, I> {
    batch: &'a Batch<'a>,
    texts: I,
    /// A text, and how much of it is in jobs already.
    open: Option<(Text<'t>, usize)>,
    job: usize,
}

impl<'a, 't, I: Iterator<Item = Text<'t>>> Texts<'a, 't, I> {
    fn new(batch: &'a Batch<'a>, texts: I, job: usize) -> Self {
        let open = None;
        Self {
            batch,
            texts,
            open,
            job,
        }
    }
}

impl<'t, I: Iterator<Item = Text<'t>>> Iterator for Texts<'_, 't, I> {
    type Item = Vec<Part<'t>>;

    fn next(&mut self) -> Option<Self::Item> {
        let (mut parts, mut bytes) = (Vec::new(), 0);
        while bytes < self.batch.job {
            let open = self.open.take();
            let Some((text, start)) = open.or_else(|| Some((self.texts.next()?, 0))) else {
                break;
            };
            let whole = text.as_bytes();
            let length = self.batch.first_part(&whole[start..], self.job);
            let end = start + length;
            if end < whole.len() {
                self.open = Some((text, end));
            }
            parts.push(Part {
                text: text.slice(start..end),
                begins: start == 0,
                ends: end == whole.len(),
            });
            bytes += length + TEXT;
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
    fn long_texts_are_cut_wherever_there_is_a_place() {
        let prose = "It was the best of times, it was the worst of times. ".repeat(1000);
        let russian = "Все счастливые семьи похожи друг на друга. ".repeat(1000);
        let options = BatchOptions::default();
        for normalizers in [vec![], vec![Normalizer::Form(Normalization::Nfc)]] {
            let encoder = encoder(normalizers);
            let batch = Batch::new(&encoder, &options, 1 << 20).unwrap();
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
