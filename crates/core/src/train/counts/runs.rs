//! Sorted pieces on the disk: runs that counting spilled, and files of counts. Both are read as streams.

use super::saved::{
    take_number, Checksum, FrontCoder, CHECKSUM, MAX_NUMBER, MORE_BYTES, OUT_OF_ORDER, TOO_EARLY,
    WRONG_SUM,
};
use super::streams::PieceStream;
use super::table::PieceCounts;
use crate::error::{Error, Result};
use crate::interrupt::{Interrupt, Poller};
use crate::reserve::{append, copied, push, reserve};
use crate::train::checked_product;
use crate::train::temporary::{read_at, TemporaryFile};
use std::fs::File;
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

/// Bytes that a reader holds, unless a piece is longer.
const READ_BYTES: usize = 64 << 10;

/// What a run holds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Totals {
    /// Number of distinct pieces.
    pub distinct: u64,
    /// Their bytes.
    pub bytes: u64,
    /// The sum of their counts. It may have more than 64 bits.
    pub pieces: u128,
}

impl Totals {
    /// Adds a piece.
    pub fn add(&mut self, piece: &[u8], count: u64) {
        self.distinct += 1;
        self.bytes += piece.len() as u64;
        self.pieces += u128::from(count);
    }

    /// These and others.
    pub fn plus(self, other: Self) -> Self {
        Self {
            distinct: self.distinct + other.distinct,
            bytes: self.bytes + other.bytes,
            pieces: self.pieces + other.pieces,
        }
    }

    /// These without others, which are among them.
    pub fn minus(self, other: Self) -> Self {
        Self {
            distinct: self.distinct - other.distinct,
            bytes: self.bytes - other.bytes,
            pieces: self.pieces - other.pieces,
        }
    }
}

/// Where a piece begins in a file of counts, which holds only what differs from the piece before it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Place {
    /// The byte.
    pub position: u64,
    /// The piece before it; empty at the first.
    pub after: Vec<u8>,
}

/// The pieces of a file of counts from a piece on, up to another one.
#[derive(Clone, Debug)]
pub struct Slice {
    /// A place before the first piece, or at it.
    pub start: Place,
    /// A byte after the last piece, where a piece begins; None for the end of the file.
    pub end: Option<u64>,
    /// The first piece of the slice, or one before it.
    pub low: Vec<u8>,
    /// The first piece after the slice; None for the end of the file.
    pub high: Option<Vec<u8>>,
}

/// Sorted pieces in a file.
#[derive(Clone)]
pub struct Run {
    source: Arc<Source>,
    /// The part of the pieces that belongs to the run; None for all.
    slice: Option<Arc<Slice>>,
    /// Where the pieces are.
    range: Range<u64>,
    /// The factor of each count.
    pub weight: u64,
    /// None for a file of counts that was not read yet.
    totals: Option<Totals>,
}

enum Source {
    Spilled(TemporaryFile),
    Saved {
        file: File,
        name: String,
        /// Bytes of the file.
        size: u64,
    },
}

impl Source {
    fn read(&self, bytes: &mut [u8], offset: u64) -> Result<usize> {
        match self {
            Self::Spilled(file) => file.read_at(bytes, offset),
            Self::Saved { file, name, .. } => read_at(file, bytes, offset)
                .map_err(|source| Error::unreadable(Path::new(name), source)),
        }
    }

    /// The error of a run that ends at a byte, although more must follow.
    fn cut_off(&self, end: u64) -> Error {
        let end = match self {
            Self::Spilled(_) => end,
            Self::Saved { size, .. } => *size,
        };
        self.wrong(end, TOO_EARLY)
    }

    fn wrong(&self, byte: u64, message: &str) -> Error {
        match self {
            Self::Spilled(file) => file.error(std::io::Error::other(format!(
                "byte {byte} of a spilled run: {message}"
            ))),
            Self::Saved { name, .. } => Error::saved(name, byte, message),
        }
    }
}

impl Run {
    /// A file of counts whose pieces follow a header of `header` bytes. It is read when it is needed.
    pub fn of_file(path: &Path, header: u64) -> Result<Self> {
        let open = || {
            let file = File::open(path)?;
            let size = file.metadata()?.len();
            Ok((file, size))
        };
        let (file, size) = open().map_err(|source| Error::unreadable(path, source))?;
        let name = path.display().to_string();
        Ok(Self {
            source: Arc::new(Source::Saved { file, name, size }),
            slice: None,
            range: header..size,
            weight: 1,
            totals: None,
        })
    }

    /// A part of a file of counts that was read before. It is read when it is needed.
    pub fn of_slice(path: &Path, slice: Slice) -> Result<Self> {
        let mut run = Self::of_file(path, 0)?;
        let end = run.range.end.saturating_sub(CHECKSUM as u64);
        let end = slice.end.map_or(end, |wanted| wanted.min(end));
        run.range = slice.start.position.min(end)..end;
        run.slice = Some(Arc::new(slice));
        Ok(run)
    }

    /// Writes a sorted stream to a temporary file.
    pub fn spill(
        pieces: &mut dyn PieceStream,
        file: TemporaryFile,
        interrupt: &Interrupt<'_>,
    ) -> Result<Self> {
        let (mut coder, mut totals) = (FrontCoder::default(), Totals::default());
        let mut poller = Poller::new(interrupt);
        let mut size = 0;
        while pieces.advance()? {
            poller.advance(1)?;
            let (piece, count) = (pieces.piece(), pieces.count());
            coder.push(piece, count)?;
            totals.add(piece, count);
            if coder.is_full() {
                file.write(&coder.bytes)?;
                size += coder.bytes.len() as u64;
                coder.bytes.clear();
            }
        }
        file.write(&coder.bytes)?;
        size += coder.bytes.len() as u64;
        Ok(Self {
            source: Arc::new(Source::Spilled(file)),
            slice: None,
            range: 0..size,
            weight: 1,
            totals: Some(totals),
        })
    }

    /// Bytes on the disk.
    pub fn size(&self) -> u64 {
        self.range.end - self.range.start
    }

    /// What the run holds, if it is known. The counts count once.
    pub fn totals(&self) -> Totals {
        self.totals.unwrap_or_default()
    }

    /// Reads a file of counts for the first time. Fails if it is broken.
    pub fn verify(&mut self, interrupt: &Interrupt<'_>) -> Result<()> {
        if self.totals.is_some() {
            return Ok(());
        }
        if self.slice.is_some() {
            let mut reader = self.reader();
            let (mut totals, mut poller) = (Totals::default(), Poller::new(interrupt));
            while reader.advance()? {
                poller.advance(1)?;
                totals.add(reader.piece(), reader.count());
            }
            self.totals = Some(totals);
            return Ok(());
        }
        let Range { start, end } = self.range;
        let source = Arc::clone(&self.source);
        let content = end.checked_sub(CHECKSUM as u64);
        let content = content.filter(|content| *content > start);
        let content = content.ok_or_else(|| source.wrong(end, TOO_EARLY))?;
        let (mut buffer, mut sum, mut at) = (vec![0; READ_BYTES], Checksum::default(), 0);
        while at < content {
            interrupt.poll()?;
            let length = (content - at).min(READ_BYTES as u64) as usize;
            let read = source.read(&mut buffer[..length], at)?;
            if read == 0 {
                return Err(source.wrong(at, TOO_EARLY));
            }
            sum.add(&buffer[..read]);
            at += read as u64;
        }
        let mut found = [0; CHECKSUM];
        if source.read(&mut found, content)? < CHECKSUM || found != sum.bytes() {
            return Err(source.wrong(content, WRONG_SUM));
        }
        let length = (content - start).min(MAX_NUMBER as u64) as usize;
        let read = source.read(&mut buffer[..length], start)?;
        let mut number = &buffer[..read];
        let distinct = take_number(&mut number).ok_or_else(|| source.wrong(end, TOO_EARLY))?;
        self.range = start + (read - number.len()) as u64..content;
        let mut reader = self.reader();
        let (mut totals, mut poller) = (Totals::default(), Poller::new(interrupt));
        while totals.distinct < distinct {
            poller.advance(1)?;
            if !reader.advance()? {
                return Err(source.wrong(end, TOO_EARLY));
            }
            totals.add(reader.piece(), reader.count());
        }
        if reader.position() < content {
            return Err(source.wrong(reader.position(), MORE_BYTES));
        }
        self.totals = Some(totals);
        Ok(())
    }

    /// The pieces with counts of at least `min_count`, as a table.
    pub fn load(&self, min_count: u64, interrupt: &Interrupt<'_>) -> Result<PieceCounts> {
        let (mut loaded, mut poller) = (PieceCounts::default(), Poller::new(interrupt));
        let mut pieces = self.reader();
        while pieces.advance()? {
            poller.advance(1)?;
            let (piece, count) = (
                pieces.piece(),
                checked_product(pieces.count(), self.weight)?,
            );
            if count >= min_count {
                loaded.add(piece, 0..piece.len(), count)?;
            }
        }
        Ok(loaded)
    }

    /// Reads the pieces. Their counts count once.
    pub fn reader(&self) -> RunReader {
        let slice = self.slice.as_ref();
        RunReader {
            source: Arc::clone(&self.source),
            next: self.range.start,
            end: self.range.end,
            buffer: Vec::new(),
            at: 0,
            piece: slice.map_or_else(Vec::new, |slice| slice.start.after.clone()),
            count: 0,
            slice: slice.map(Arc::clone),
        }
    }

    /// Places about `spacing` bytes apart, the first piece first. The run was verified.
    pub fn places(&self, spacing: u64, interrupt: &Interrupt<'_>) -> Result<Vec<Place>> {
        let mut reader = self.reader();
        let mut poller = Poller::new(interrupt);
        let mut places = Vec::new();
        let mut next = reader.position();
        loop {
            if reader.position() >= next {
                let (position, after) = (reader.position(), copied(reader.piece())?);
                push(&mut places, Place { position, after })?;
                next = position.saturating_add(spacing.max(1));
            }
            poller.advance(1)?;
            if !reader.advance()? {
                return Ok(places);
            }
        }
    }
}

/// Reads a run from its beginning.
pub struct RunReader {
    source: Arc<Source>,
    /// Where the bytes after the buffer are.
    next: u64,
    end: u64,
    buffer: Vec<u8>,
    /// Where the next piece begins in the buffer.
    at: usize,
    piece: Vec<u8>,
    count: u64,
    /// The part of the pieces that it reads; None for all.
    slice: Option<Arc<Slice>>,
}

impl RunReader {
    /// Where the next piece begins.
    fn position(&self) -> u64 {
        self.next - (self.buffer.len() - self.at) as u64
    }

    fn wrong(&self, message: &str) -> Error {
        self.source.wrong(self.position(), message)
    }

    /// Reads until the buffer holds `wanted` bytes from the current place on, or the run ends.
    fn fill(&mut self, wanted: usize) -> Result<()> {
        if self.buffer.len() - self.at >= wanted || self.next == self.end {
            return Ok(());
        }
        self.buffer.drain(..self.at);
        self.at = 0;
        let missing = wanted.max(READ_BYTES).saturating_sub(self.buffer.len()) as u64;
        let missing = missing.min(self.end - self.next) as usize;
        let held = self.buffer.len();
        reserve(&mut self.buffer, missing)?;
        self.buffer.resize(held + missing, 0);
        let mut read = 0;
        while read < missing {
            let more = &mut self.buffer[held + read..];
            match self.source.read(more, self.next + read as u64)? {
                0 => return Err(self.source.cut_off(self.next)),
                more => read += more,
            }
        }
        self.next += missing as u64;
        Ok(())
    }
}

impl RunReader {
    /// Goes to the next piece of the file.
    fn advance_in_file(&mut self) -> Result<bool> {
        self.fill(3 * MAX_NUMBER)?;
        if self.at == self.buffer.len() {
            return Ok(false);
        }
        let mut rest = &self.buffer[self.at..];
        let numbers = (take_number(&mut rest), take_number(&mut rest));
        let (Some(shared), Some(length)) = numbers else {
            return Err(self.source.cut_off(self.end));
        };
        let known = self.buffer.len() - self.at - rest.len();
        // No piece is longer than the run.
        let length = usize::try_from(length.min(self.end)).unwrap_or(usize::MAX);
        if rest.len() < length.saturating_add(MAX_NUMBER) {
            self.fill(known.saturating_add(length).saturating_add(MAX_NUMBER))?;
            rest = &self.buffer[self.at + known..];
        }
        let Some(other) = rest.split_off(..length) else {
            return Err(self.source.cut_off(self.end));
        };
        let Some(count) = take_number(&mut rest) else {
            return Err(self.source.cut_off(self.end));
        };
        let kept = usize::try_from(shared)
            .ok()
            .and_then(|shared| self.piece.get(shared..));
        let ascends = kept.is_some_and(|kept| kept < other);
        if !ascends || count == 0 {
            return Err(self.wrong(OUT_OF_ORDER));
        }
        self.piece.truncate(shared as usize);
        append(&mut self.piece, other)?;
        self.count = count;
        self.at = self.buffer.len() - rest.len();
        Ok(true)
    }
}

impl PieceStream for RunReader {
    fn advance(&mut self) -> Result<bool> {
        let Some(slice) = self.slice.clone() else {
            return self.advance_in_file();
        };
        while self.advance_in_file()? {
            let high = slice.high.as_ref();
            if high.is_some_and(|high| *high <= self.piece) {
                // Nothing of the slice follows.
                (self.next, self.at) = (self.end, self.buffer.len());
                return Ok(false);
            }
            if slice.low <= self.piece {
                return Ok(true);
            }
        }
        Ok(false)
    }

    fn piece(&self) -> &[u8] {
        &self.piece
    }

    fn count(&self) -> u64 {
        self.count
    }
}

#[cfg(test)]
mod tests {
    use super::super::saved::save;
    use super::super::streams::{Sums, Weighted};
    use super::super::table::PieceCounts;
    use super::*;
    use crate::train::temporary::Spills;
    use proptest::prelude::*;
    use std::collections::BTreeMap;
    use std::sync::atomic::{AtomicUsize, Ordering};

    type Counts = BTreeMap<Vec<u8>, u64>;

    fn spills() -> Spills {
        Spills::new(None)
    }

    fn table(pieces: &Counts) -> PieceCounts {
        let mut counts = PieceCounts::default();
        for (piece, count) in pieces {
            counts.add(piece, 0..piece.len(), *count).unwrap();
        }
        counts
    }

    fn spilled(pieces: &Counts) -> Run {
        let counts = table(pieces);
        let mut sorted = super::super::streams::SortedPieces::of(counts.sorted().unwrap());
        let file = spills().file().unwrap();
        Run::spill(&mut sorted, file, &Interrupt::never()).unwrap()
    }

    fn read(run: &Run) -> Result<Counts> {
        let mut reader = run.reader();
        let mut counts = Counts::new();
        while reader.advance()? {
            counts.insert(reader.piece().to_vec(), reader.count());
        }
        Ok(counts)
    }

    fn with_file<T>(bytes: &[u8], work: impl FnOnce(&Path) -> T) -> T {
        static NUMBER: AtomicUsize = AtomicUsize::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let name = format!("bpe-runs-{}-{number}", std::process::id());
        let path = std::env::temp_dir().join(name);
        std::fs::write(&path, bytes).unwrap();
        let result = work(&path);
        std::fs::remove_file(path).unwrap();
        result
    }

    fn verified(bytes: &[u8], header: u64) -> Result<Run> {
        with_file(bytes, |path| {
            let mut run = Run::of_file(path, header)?;
            run.verify(&Interrupt::never())?;
            Ok(run)
        })
    }

    #[test]
    fn a_file_is_refused_where_the_bytes_are() {
        let good = [b'x', 2, 0, 2, b'a', b'b', 3, 1, 1, b'c', 200, 1];
        let with_checksum = |bytes: &[u8]| {
            let mut sum = Checksum::default();
            sum.add(bytes);
            [bytes, &sum.bytes()].concat()
        };
        let expected = [(b"ab".to_vec(), 3), (b"ac".to_vec(), 200)];
        let run = verified(&with_checksum(&good), 1).unwrap();
        assert_eq!(read(&run).unwrap(), expected.into());
        let totals = Totals {
            distinct: 2,
            bytes: 4,
            pieces: 203,
        };
        assert_eq!(run.totals(), totals);
        for at in 1..good.len() {
            for byte in 0..=255 {
                let mut broken = good;
                broken[at] = byte;
                for bytes in [
                    with_checksum(&broken),
                    with_checksum(&broken[..at]),
                    with_checksum(&[&broken[..], &[byte]].concat()),
                ] {
                    let in_memory = PieceCounts::load(&bytes, 1, &Interrupt::never());
                    let in_memory = in_memory.map(|counts| counts.sorted().unwrap().len() as u64);
                    let as_stream = verified(&bytes, 1).map(|run| run.totals().distinct);
                    match (in_memory, as_stream) {
                        (Ok(one), Ok(other)) => assert_eq!(one, other),
                        (
                            Err(Error::Saved { byte, message, .. }),
                            Err(Error::Saved {
                                source_name,
                                byte: place,
                                message: words,
                            }),
                        ) => {
                            assert_eq!((byte, message), (place, words), "{bytes:?}");
                            assert!(source_name.contains("bpe-runs"));
                        }
                        other => panic!("{other:?}"),
                    }
                }
            }
        }
        let mut flipped = with_checksum(&good);
        flipped[4] ^= 1;
        let error = verified(&flipped, 1).err().unwrap().to_string();
        assert!(error.contains("byte 12: the checksum"), "{error}");
        assert!(verified(b"x", 1).is_err() && verified(b"", 1).is_err());
    }

    #[test]
    fn long_pieces_are_read() {
        let long = |byte: u8, length: usize| vec![byte; length];
        let pieces = Counts::from([
            (long(b'a', 3 * READ_BYTES), 1),
            (long(b'a', 3 * READ_BYTES + 1), u64::MAX),
            (long(b'b', READ_BYTES - 15), 2),
            (long(b'c', 100), 3),
        ]);
        let run = spilled(&pieces);
        assert_eq!(read(&run).unwrap(), pieces);
        assert_eq!(run.totals().pieces, u128::from(u64::MAX) + 6);
    }

    proptest! {
        #[test]
        fn slices_tile_a_file(
            pieces in prop::collection::btree_map(
                prop::collection::vec(0..3_u8, 1..12), 1..1_000_u64, 1..300,
            ),
            mut bounds in prop::collection::vec(prop::collection::vec(0..3_u8, 0..6), 0..8),
            spacing in 1..200_u64,
        ) {
            bounds.sort();
            let never = Interrupt::never();
            let bytes = table(&pieces).save(b"header", &never).unwrap();
            with_file(&bytes, |path| {
                let mut run = Run::of_file(path, 6).unwrap();
                run.verify(&never).unwrap();
                let places = run.places(spacing, &never).unwrap();
                prop_assert!(places[0].after.is_empty());
                let ends = bounds.iter().cloned().map(Some).chain([None]);
                let starts = std::iter::once(Vec::new()).chain(bounds.iter().cloned());
                let (mut found, mut total) = (Counts::new(), 0);
                for (low, high) in starts.zip(ends) {
                    let start = places.iter().rev().find(|place| place.after < low);
                    let start = start.unwrap_or(&places[0]).clone();
                    let last = |high: &Vec<u8>| places.iter().find(|place| place.after >= *high);
                    let end = high.as_ref().and_then(last).map(|place| place.position);
                    let slice = Slice { start, end, low: low.clone(), high: high.clone() };
                    let mut part = Run::of_slice(path, slice).unwrap();
                    part.verify(&never).unwrap();
                    for (piece, count) in read(&part).unwrap() {
                        assert!(low <= piece && high.as_ref().is_none_or(|high| piece < *high));
                        assert_eq!(found.insert(piece, count), None);
                    }
                    total += part.totals().pieces;
                }
                prop_assert_eq!(found, pieces);
                prop_assert_eq!(total, run.totals().pieces);
                Ok(())
            })?;
        }

        #[test]
        fn runs_and_files_hold_what_was_written(
            lists in prop::collection::vec(
                prop::collection::btree_map(
                    prop::collection::vec(0..4_u8, 1..40), 1..1_000_000_u64, 0..200,
                ),
                1..4,
            ),
            header in prop::collection::vec(any::<u8>(), 0..20),
        ) {
            let mut expected = Counts::new();
            let mut streams = Vec::new();
            for list in &lists {
                for (piece, count) in list {
                    *expected.entry(piece.clone()).or_insert(0) += 3 * count;
                }
                let reader = spilled(list).reader();
                streams.push(Weighted { stream: Box::new(reader), weight: 3 });
            }
            let mut sums = Sums::new(streams).unwrap();
            let mut bytes = Vec::new();
            let never = Interrupt::never();
            let distinct = expected.len() as u64;
            save(&header, distinct, &mut sums, &never, &mut |more| {
                bytes.extend_from_slice(more);
                Ok(())
            }).unwrap();
            prop_assert_eq!(&bytes, &table(&expected).save(&header, &never).unwrap());
            let run = verified(&bytes, header.len() as u64).unwrap();
            prop_assert_eq!(read(&run).unwrap(), expected);
            prop_assert_eq!(run.totals().distinct, distinct);
        }
    }
}
