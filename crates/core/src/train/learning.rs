//! Learns merges from the counts of a corpus: at once if the memory allows it, otherwise in rounds.

use super::counts::{Counted, Counter, PieceStream, Totals};
use super::merges::{
    train_in_rounds, train_merges, Callbacks, Learned, MergeOptions, RoundLimits, WarmStart,
};
use crate::error::Result;
use crate::interrupt::Interrupt;
use std::path::PathBuf;

/// What learning needs.
#[derive(Clone, Debug)]
pub struct Needs {
    /// The pieces.
    pub totals: Totals,
    /// Bytes that learning at once takes, approximately.
    pub memory: u64,
    /// Bytes that it may take; None for any number.
    pub limit: Option<u64>,
    /// Bytes of the pieces on the disk. Rounds need up to twice as many again.
    pub disk: u64,
    /// The directory of temporary files.
    pub directory: PathBuf,
}

impl Needs {
    /// Whether the memory is enough to learn at once.
    pub fn fits(&self) -> bool {
        self.limit.is_none_or(|limit| self.memory <= limit)
    }
}

impl Counter {
    /// What learning from these counts needs.
    pub fn needs(&self, counted: &mut Counted, interrupt: &Interrupt<'_>) -> Result<Needs> {
        let totals = self.totals(counted, interrupt)?;
        Ok(Needs {
            totals,
            memory: totals.cost(),
            limit: self.training_memory().map(|memory| memory as u64),
            disk: self.spilled_bytes(counted),
            directory: self.spills().directory(),
        })
    }

    /// Learns merges, from the pieces with counts of at least `min_count`. The result does not depend on the memory limit,
    /// unless pieces were dropped.
    ///
    /// # Errors
    ///
    /// Those of [`train_merges`] and [`train_in_rounds`].
    pub fn train(
        &self,
        counted: &mut Counted,
        min_count: u64,
        warm_start: &WarmStart<'_>,
        options: &MergeOptions,
        interrupt: &Interrupt<'_>,
        callbacks: &mut Callbacks<'_>,
    ) -> Result<Learned> {
        let needs = self.needs(counted, interrupt)?;
        let options = &MergeOptions {
            pair_error: counted.dropped.pair_error,
            ..options.clone()
        };
        if needs.fits() {
            let loaded;
            let mut copy;
            let table = if self.spilled_bytes(counted) == 0 {
                &*counted.load(interrupt)?
            } else {
                // The counts stay on the disk.
                copy = counted.copy()?;
                loaded = copy.load(interrupt)?;
                &*loaded
            };
            let pieces = table.iter().filter(|(_, count)| *count >= min_count);
            return train_merges(pieces, warm_start, options, interrupt, callbacks);
        }
        let memory = self.training_memory().unwrap_or(usize::MAX);
        let limits = RoundLimits::new(memory, self.spills().clone(), options)?;
        let mut pieces = Frequent {
            stream: self.run(counted, interrupt)?.reader(),
            min_count,
        };
        train_in_rounds(
            &mut pieces,
            warm_start,
            options,
            &limits,
            interrupt,
            callbacks,
        )
    }
}

/// The pieces of a stream that are frequent enough.
struct Frequent<S> {
    stream: S,
    min_count: u64,
}

impl<S: PieceStream> PieceStream for Frequent<S> {
    fn advance(&mut self) -> Result<bool> {
        while self.stream.advance()? {
            if self.stream.count() >= self.min_count {
                return Ok(true);
            }
        }
        Ok(false)
    }

    fn piece(&self) -> &[u8] {
        self.stream.piece()
    }

    fn count(&self) -> u64 {
        self.stream.count()
    }
}
