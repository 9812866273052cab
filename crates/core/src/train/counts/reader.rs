//! Counts a stream: a pipe, or a file that can only be read from the beginning.

use super::counter::{CountCall, Progress};
use super::splitter::SECTION_BYTES;
use crate::error::{Error, Result};
use crate::reserve::reserve_exact;
use crate::text::from_utf8;
use std::io::Read;
use std::path::Path;

/// Bytes of a stream to hold, unless a pattern has no safe cut in them.
const READ_BYTES: usize = if cfg!(test) { 2 } else { 8 } * SECTION_BYTES;

impl CountCall<'_> {
    /// Counts a stream as one document. Calls `progress` with the number of bytes counted.
    ///
    /// Each part ends at a safe cut, so the counts are those of the whole text. A pattern on the regex engine has
    /// safe cuts at special tokens only: the text between two of them is then in memory.
    pub fn add_reader(
        &mut self,
        mut reader: impl Read,
        path: &Path,
        progress: Progress<'_>,
    ) -> Result<()> {
        self.counter.check_not_sampled()?;
        let splitter = &self.counter.splitter;
        let mut wanted = READ_BYTES;
        let mut buffer = Vec::new();
        let mut done = 0;
        loop {
            self.interrupt.poll()?;
            let missing = wanted.saturating_sub(buffer.len());
            reserve_exact(&mut buffer, missing + 32)?; // `read_to_end` looks for the end in 32 bytes
            let missing = missing as u64;
            let read = reader.by_ref().take(missing).read_to_end(&mut buffer);
            // A read that the interrupt stopped fails.
            self.interrupt.check()?;
            let read = read.map_err(|source| Error::unreadable(path, source))?;
            let at_end = (read as u64) < missing;
            let text = valid_text(&buffer, at_end).map_err(|byte| Error::NotUtf8 {
                source_name: path.display().to_string(),
                byte: done + byte as u64,
            })?;
            let cut = if at_end {
                Some(text.len())
            } else {
                splitter.last_cut(text)
            };
            match cut {
                None => wanted *= 2,
                Some(cut) => {
                    let mut sections = Vec::new();
                    splitter.sections(&text[..cut], &mut sections)?;
                    self.count_sections(&sections)?;
                    self.counter.limit_memory(self.counted, self.interrupt)?;
                    buffer.drain(..cut);
                    done += cut as u64;
                    progress(done);
                }
            }
            if at_end {
                self.counted.documents += 1;
                return Ok(());
            }
        }
    }
}

/// The text in the bytes, without an incomplete last character if more bytes follow. The error is the offset of
/// the first byte that is not UTF-8.
pub fn valid_text(bytes: &[u8], at_end: bool) -> std::result::Result<&str, usize> {
    match from_utf8(bytes) {
        Ok(text) => Ok(text),
        Err(error) => {
            let valid = error.valid_up_to();
            match std::str::from_utf8(&bytes[..valid]) {
                Ok(text) if error.error_len().is_none() && !at_end => Ok(text),
                _ => Err(valid),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::counted::Counted;
    use super::super::counter::Counter;
    use super::super::samples::{call, count_whole, counter, sample, table, PATTERN, WORDS};
    use super::*;
    use crate::interrupt::Interrupt;
    use crate::normalize::Normalization;

    /// A reader that hands out a few bytes at a time.
    struct Trickle<'a>(&'a [u8], usize);

    impl Read for Trickle<'_> {
        fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
            let length = self.1.min(self.0.len()).min(buffer.len());
            buffer[..length].copy_from_slice(&self.0[..length]);
            self.0 = &self.0[length..];
            Ok(length)
        }
    }

    fn read(counter: &Counter, bytes: &[u8], counted: &mut Counted) -> Result<()> {
        let reader = Trickle(bytes, 12_345);
        call(counter, counted, 1, &Interrupt::never()).add_reader(
            reader,
            Path::new("some file"),
            &mut |_| {},
        )
    }

    #[test]
    fn the_way_a_text_is_read_does_not_show() {
        let text = sample(3 << 20);
        for (pattern, form) in [
            (PATTERN, None),
            (PATTERN, Some(Normalization::Nfc)),
            (PATTERN, Some(Normalization::Nfkd)),
            (WORDS, None),
        ] {
            let whole = count_whole(&counter(pattern, form, 1), &text);
            for threads in [1, 2, 7] {
                let counter = counter(pattern, form, threads);
                let (mut from_reader, mut from_text) = (Counted::default(), Counted::default());
                read(&counter, text.as_bytes(), &mut from_reader).unwrap();
                call(&counter, &mut from_text, 1, &Interrupt::never())
                    .add_texts(&[&text])
                    .unwrap();
                for mut counted in [from_reader, from_text] {
                    assert_eq!(table(&mut counted), whole);
                    assert_eq!(counted.documents, 1);
                    assert_eq!(counted.normalized, form.is_some());
                }
            }
        }
    }

    #[test]
    fn each_stream_is_a_document() {
        let counter = counter(PATTERN, None, 1);
        let mut counted = Counted::default();
        for documents in 1..4 {
            let text = "more words ".repeat(documents as usize - 1);
            read(&counter, text.as_bytes(), &mut counted).unwrap();
            assert_eq!(counted.documents, documents);
        }
        assert_eq!(table(&mut counted)[&b" words"[..]], 3);
    }

    #[test]
    fn text_without_a_safe_cut_is_read_as_a_whole() {
        let word = "a".repeat(READ_BYTES + SECTION_BYTES);
        let mut counted = Counted::default();
        let text = format!("{word} b");
        read(&counter(PATTERN, None, 1), text.as_bytes(), &mut counted).unwrap();
        let expected = [(word.into_bytes(), 1), (b" b".to_vec(), 1)];
        assert!(table(&mut counted) == expected.into());
    }

    #[test]
    fn bytes_that_are_not_utf8_are_named() {
        let mut counted = Counted::default();
        let counter = counter(PATTERN, None, 2);
        let mut bytes = "hello world ".repeat(1 << 20).into_bytes();
        for place in [bytes.len() - 5, 9_000_000, 17] {
            bytes[place] = 0xff;
            let error = read(&counter, &bytes, &mut counted)
                .unwrap_err()
                .to_string();
            assert!(
                error.contains(&format!("some file: byte {place} ")),
                "{error}"
            );
        }
        let result = read(&counter, &"é".as_bytes()[..1], &mut counted);
        assert!(matches!(result, Err(Error::NotUtf8 { byte: 0, .. })));
    }
}
