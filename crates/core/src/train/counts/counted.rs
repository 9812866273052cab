//! The counts of a corpus: tables in memory, and runs on the disk.

use super::runs::{Place, Run, RunReader, Totals};
use super::streams::{PieceStream, SortedPieces};
use super::table::PieceCounts;
use crate::error::{Error, Result};
use crate::interrupt::{Interrupt, Poller};
use crate::reserve::{collect, reserve_entry};
use rustc_hash::FxHashMap;
use std::sync::Mutex;

/// The counts of a corpus.
#[derive(Default)]
pub struct Counted {
    /// Number of texts and files.
    pub documents: u64,
    /// Whether normalisation changed text.
    pub normalized: bool,
    /// Number of texts that are not in the sample.
    pub unsampled: u64,
    /// The pieces in memory but the pending ones.
    pub(super) counts: PieceCounts,
    /// Tables of worker threads, whose pieces each count `weight` times. The next call continues with them.
    pub(super) pending: Vec<PieceCounts>,
    pub(super) weight: u64,
    /// The pieces on the disk.
    pub(super) runs: Vec<Run>,
    /// At least the sum of the counts in memory.
    pub(super) mass: u128,
    /// Bytes of text since the last memory check.
    pub(super) unchecked_bytes: usize,
}

impl Counted {
    /// Counts from elsewhere.
    pub fn new(counts: PieceCounts, documents: u64) -> Self {
        let mass = counts.iter().map(|(_, count)| u128::from(count)).sum();
        Self {
            documents,
            counts,
            mass,
            ..Self::default()
        }
    }

    /// The counts of a file, which is read when it is needed.
    pub fn of_run(run: Run, documents: u64) -> Self {
        Self {
            documents,
            runs: vec![run],
            ..Self::default()
        }
    }

    /// A copy. Both read the same runs.
    pub fn copy(&mut self) -> Result<Self> {
        self.merge_pending(0)?;
        Ok(Self {
            documents: self.documents,
            normalized: self.normalized,
            unsampled: self.unsampled,
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
        while let Some(run) = self.runs.last_mut() {
            run.verify(interrupt)?;
            let loaded = run.load(0, interrupt)?;
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

    /// For each count, the number of the pieces that occur so often and their bytes, the rarest first, after all were settled.
    pub(super) fn by_count(&self, interrupt: &Interrupt<'_>) -> Result<Vec<(u64, Totals)>> {
        // Few counts are distinct: most pieces are rare.
        let mut by_count = FxHashMap::<u64, Totals>::default();
        let mut poller = Poller::new(interrupt);
        let mut add = |piece: &[u8], count| {
            poller.advance(1)?;
            reserve_entry(&mut by_count)?;
            by_count.entry(count).or_default().add(piece, count);
            Ok(())
        };
        match self.runs.first() {
            None => self
                .counts
                .iter()
                .try_for_each(|(piece, count)| add(piece, count))?,
            Some(run) => {
                let mut pieces = run.reader();
                while pieces.advance()? {
                    add(pieces.piece(), pieces.count())?;
                }
            }
        }
        let mut by_count = collect(by_count.into_iter())?;
        by_count.sort_unstable_by_key(|(count, _)| *count);
        Ok(by_count)
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

    /// Approximate bytes of memory that learning from these pieces needs: a slot of a half-full table for each, and for
    /// each byte a word for its symbol and as much for the positions of pairs.
    pub fn cost(&self) -> u64 {
        let cost = self.distinct.saturating_mul(90);
        cost.saturating_add(self.bytes.saturating_mul(10))
    }
}
