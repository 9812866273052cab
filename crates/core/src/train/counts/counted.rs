//! The counts of a corpus: tables in memory, and runs on the disk.

use super::dropped::{Dropped, LostPairs};
use super::runs::{Place, Run, RunReader, Totals};
use super::sample::Sampled;
use super::streams::{PieceStream, SortedPieces};
use super::table::{cost, PieceCounts};
use crate::error::{Error, Result};
use crate::interrupt::{Interrupt, Poller};
use crate::train::checked_product;
use std::sync::Mutex;

/// The counts of a corpus.
#[derive(Default)]
pub struct Counted {
    /// Number of texts and files.
    pub documents: u64,
    /// The pieces that were dropped.
    pub dropped: Dropped,
    /// Whether normalisation changed text.
    pub normalized: bool,
    /// What a sample of the documents saw and kept.
    pub sampled: Sampled,
    /// The pieces in memory but the pending ones.
    pub(super) counts: PieceCounts,
    /// Tables of worker threads, whose pieces each count `weight` times. The next call continues with them.
    pub(super) pending: Vec<PieceCounts>,
    pub(super) weight: u64,
    /// The pieces on the disk.
    pub(super) runs: Vec<Run>,
    /// At least the sum of the counts in memory.
    pub(super) mass: u128,
    /// The pairs of the dropped pieces.
    pub(super) lost: LostPairs,
    /// Bytes of text since the last memory check.
    pub(super) unchecked_bytes: usize,
}

impl Counted {
    /// Counts from elsewhere.
    pub fn new(counts: PieceCounts, documents: u64, dropped: Dropped) -> Self {
        let mass = counts.iter().map(|(_, count)| u128::from(count)).sum();
        Self {
            documents,
            dropped,
            counts,
            mass,
            ..Self::default()
        }
    }

    /// The counts of a file, which is read when it is needed.
    pub fn of_run(run: Run, documents: u64, dropped: Dropped) -> Self {
        Self {
            documents,
            dropped,
            runs: vec![run],
            ..Self::default()
        }
    }

    /// A copy. Both read the same runs.
    pub fn copy(&mut self) -> Result<Self> {
        self.merge_pending(0)?;
        Ok(Self {
            documents: self.documents,
            dropped: self.dropped,
            normalized: self.normalized,
            sampled: self.sampled,
            counts: self.counts.copy()?,
            runs: self.runs.clone(),
            mass: self.mass,
            ..Self::default()
        })
    }

    /// Reads the files of counts that were not read yet. Fails if one is broken.
    pub fn verify(&mut self, interrupt: &Interrupt<'_>) -> Result<()> {
        let mut runs = self.runs.iter_mut();
        runs.try_for_each(|run| run.verify(interrupt))
    }

    /// The places in a file of counts, as of [`Run::places`]; none without a file.
    pub fn places(&mut self, spacing: u64, interrupt: &Interrupt<'_>) -> Result<Vec<Place>> {
        self.verify(interrupt)?;
        match self.runs.first() {
            Some(run) => run.places(spacing, interrupt),
            None => Ok(Vec::new()),
        }
    }

    /// Whether no piece was counted, and none may be in a file that was not read yet.
    pub fn is_empty(&self) -> bool {
        self.runs.is_empty()
            && self.counts.is_empty()
            && self.pending.iter().all(PieceCounts::is_empty)
    }

    /// All pieces, as a table. Reads the runs into memory.
    pub fn counts(&mut self) -> Result<&mut PieceCounts> {
        self.load(&Interrupt::never())
    }

    /// As [`Counted::counts`].
    pub fn load(&mut self, interrupt: &Interrupt<'_>) -> Result<&mut PieceCounts> {
        self.merge_pending(0)?;
        let mut poller = Poller::new(interrupt);
        while let Some(run) = self.runs.last_mut() {
            run.verify(interrupt)?;
            let mut loaded = PieceCounts::default();
            let mut reader = run.reader();
            while reader.advance()? {
                poller.advance(1)?;
                let count = checked_product(reader.count(), run.weight)?;
                let piece = reader.piece();
                loaded.add(piece, 0..piece.len(), count)?;
            }
            self.mass += run.totals().pieces * u128::from(run.weight);
            self.counts.merge(&mut vec![loaded], 1, 0)?;
            self.runs.pop();
        }
        Ok(&mut self.counts)
    }

    pub(super) fn merge_pending(&mut self, threads: usize) -> Result<()> {
        self.counts.merge(&mut self.pending, self.weight, threads)
    }

    /// The tables for worker threads that count with this weight.
    pub(super) fn take_tables(
        &mut self,
        weight: u64,
        threads: usize,
    ) -> Result<Mutex<Vec<PieceCounts>>> {
        if weight != self.weight {
            self.merge_pending(threads)?;
            self.weight = weight;
        }
        Ok(Mutex::new(std::mem::take(&mut self.pending)))
    }

    /// Bytes of memory of the tables, also after each of them grows for `more` pieces.
    pub(super) fn memory(&self, more: usize) -> usize {
        let tables = self.pending.iter().chain([&self.counts]);
        tables.map(|table| table.memory(more)).sum()
    }

    /// The tables and the weights of their counts.
    pub(super) fn tables(&mut self) -> Vec<(&mut PieceCounts, u64)> {
        let weight = self.weight;
        let pending = self.pending.iter_mut().map(|table| (table, weight));
        let tables = std::iter::once((&mut self.counts, 1)).chain(pending);
        tables.filter(|(table, _)| !table.is_empty()).collect()
    }

    /// At least the sum of all counts.
    pub(super) fn total_mass(&mut self, interrupt: &Interrupt<'_>) -> Result<u128> {
        let mut mass = self.mass;
        for run in &mut self.runs {
            run.verify(interrupt)?;
            let pieces = run.totals().pieces.saturating_mul(u128::from(run.weight));
            mass = mass.saturating_add(pieces);
        }
        Ok(mass)
    }

    /// All pieces in byte order, after they were settled.
    pub(super) fn settled(&self) -> Result<Pieces<'_>> {
        match self.runs.first() {
            None => Ok(Pieces::Table(SortedPieces::of(self.counts.sorted()?))),
            Some(run) => Ok(Pieces::Run(run.reader())),
        }
    }

    /// What all pieces are, after they were settled.
    pub(super) fn settled_totals(&self) -> Totals {
        match self.runs.first() {
            Some(run) => run.totals(),
            None => {
                let mut totals = Totals::default();
                let pieces = self.counts.iter();
                pieces.for_each(|(piece, count)| totals.add(piece, count));
                totals
            }
        }
    }
}

/// The pieces of a corpus in byte order.
pub enum Pieces<'a> {
    /// Those of a table.
    Table(SortedPieces<'a>),
    /// Those of a run.
    Run(RunReader),
}

impl PieceStream for Pieces<'_> {
    fn advance(&mut self) -> Result<bool> {
        match self {
            Self::Table(pieces) => pieces.advance(),
            Self::Run(pieces) => pieces.advance(),
        }
    }

    fn piece(&self) -> &[u8] {
        match self {
            Self::Table(pieces) => pieces.piece(),
            Self::Run(pieces) => pieces.piece(),
        }
    }

    fn count(&self) -> u64 {
        match self {
            Self::Table(pieces) => pieces.count(),
            Self::Run(pieces) => pieces.count(),
        }
    }
}

impl Totals {
    /// The sum of the counts, if it has 64 bits.
    pub fn pieces(&self) -> Result<u64> {
        u64::try_from(self.pieces).map_err(|_| Error::CountOverflow)
    }

    /// Approximate bytes of memory that training on these pieces in one pass needs.
    pub fn cost(&self) -> u64 {
        cost(self.distinct, self.bytes)
    }
}
