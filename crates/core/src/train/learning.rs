//! Learns merges from the counts of a corpus, if their pieces fit into the memory limit.

use super::counts::{Counted, Counter, Totals};
use super::merges::{train_merges, Callbacks, Learned, MergeOptions, WarmStart};
use crate::error::{Error, Result};
use crate::interrupt::Interrupt;

const MEGABYTE: u64 = 1_000_000;

/// What learning needs.
#[derive(Clone, Copy, Debug)]
pub struct Needs {
    /// The least count of a piece to learn from.
    pub min_count: u64,
    /// The pieces.
    pub totals: Totals,
    /// Bytes that learning may take; None for any number.
    pub limit: Option<u64>,
    /// If they are too few: the lowest least count of a piece for which they are enough, and the number of pieces left.
    pub fitting: Option<(u64, u64)>,
}

impl Needs {
    /// Bytes of memory that learning takes, approximately.
    pub fn memory(&self) -> u64 {
        self.totals.cost()
    }

    /// Fails if the memory is too little. The error says how much is missing, and which least count fits.
    pub fn check(&self) -> Result<()> {
        let (memory, limit) = (self.memory(), self.limit.unwrap_or(u64::MAX));
        if memory <= limit {
            return Ok(());
        }
        let fitting = self.fitting.map_or_else(String::new, |(least, left)| {
            format!(" (min_count={least} fits, and leaves {left} of them)")
        });
        Err(Error::Option(format!(
            "learning from {} distinct pieces needs {} MB of memory, and max_memory leaves {} MB for it: raise \
             max_memory by {} MB, learn from the frequent pieces only{fitting}, or count a sample of the documents",
            self.totals.distinct,
            memory.div_ceil(MEGABYTE),
            limit / MEGABYTE,
            (memory - limit).div_ceil(MEGABYTE),
        )))
    }
}

impl Counter {
    /// What learning from the pieces with counts of at least `min_count` needs; what all pieces need, if that is there.
    pub fn needs(
        &self,
        counted: &mut Counted,
        min_count: u64,
        interrupt: &Interrupt<'_>,
    ) -> Result<Needs> {
        let mut totals = self.totals(counted, interrupt)?;
        let limit = self.max_memory().map(|memory| memory as u64);
        let mut fitting = None;
        if totals.cost() > limit.unwrap_or(u64::MAX) {
            let (mut rarer, mut left) = (0, totals);
            totals = Totals::default();
            for (count, pieces) in self.by_count(counted, interrupt)? {
                if fitting.is_none() && Some(left.cost()) <= limit {
                    fitting = Some((rarer + 1, left.distinct));
                }
                if count >= min_count {
                    totals = totals.plus(pieces);
                }
                left = left.minus(pieces);
                rarer = count;
            }
        }
        Ok(Needs {
            min_count,
            totals,
            limit,
            fitting,
        })
    }

    /// Learns merges, from the pieces that [`Self::needs`] was asked of. The result does not depend on the memory limit.
    ///
    /// # Errors
    ///
    /// Those of [`Needs::check`] and [`train_merges`].
    pub fn train(
        &self,
        counted: &mut Counted,
        needs: &Needs,
        warm_start: &WarmStart<'_>,
        options: &MergeOptions,
        interrupt: &Interrupt<'_>,
        callbacks: &mut Callbacks<'_>,
    ) -> Result<Learned> {
        needs.check()?;
        let min_count = needs.min_count;
        let loaded;
        // The pieces that are too rare stay on the disk, or go there if the limit is for the others only.
        let table = if self.spilled_bytes(counted) > 0 || needs.fitting.is_some() {
            loaded = self.run(counted, interrupt)?.load(min_count, interrupt)?;
            &loaded
        } else {
            &*counted.load(interrupt)?
        };
        let pieces = table.iter().filter(|(_, count)| *count >= min_count);
        train_merges(pieces, warm_start, options, interrupt, callbacks)
    }
}

#[cfg(test)]
mod tests {
    use super::super::counts::{CountCall, Limits};
    use super::*;

    /// Frequent words, and many rare ones.
    fn text() -> String {
        let hash = |number: u64| number.wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let rare = (0..20_000).map(|number| format!(" {:x}", hash(number)));
        let frequent = (0..300).map(|number| format!(" {:x}", hash(number) >> 40).repeat(5));
        rare.chain(frequent).collect()
    }

    #[test]
    fn learning_states_its_memory_and_which_least_count_fits() {
        let (text, never) = (text(), Interrupt::never());
        let train = |max_memory, min_count| {
            let limits = Limits {
                max_memory,
                ..Limits::default()
            };
            let patterns = [r" ?\w+".to_owned()];
            let counter = Counter::new(&patterns, None, Vec::new(), 1, limits).unwrap();
            let mut counted = Counted::default();
            let mut call = CountCall {
                counter: &counter,
                counted: &mut counted,
                weight: 1,
                interrupt: &never,
            };
            call.add_texts(&[&text]).unwrap();
            let spilled = counter.spilled_bytes(&counted) > 0;
            let totals = counter.totals(&mut counted, &never).unwrap();
            let needs = counter.needs(&mut counted, min_count, &never).unwrap();
            let options = MergeOptions::new(400);
            let learned = counter.train(
                &mut counted,
                &needs,
                &WarmStart::default(),
                &options,
                &never,
                &mut Callbacks::progress(&mut |_, _| {}),
            );
            // The counts are still there.
            assert_eq!(counter.totals(&mut counted, &never).unwrap(), totals);
            (learned.map_err(|error| error.to_string()), needs, spilled)
        };
        let (whole, needs, _) = train(None, 0);
        assert!(whole.is_ok() && needs.fitting.is_none());
        assert_eq!(needs.memory(), needs.totals.cost());
        assert_eq!(train(Some(needs.memory() as usize), 0).0, whole);
        let (frequent, _, _) = train(None, 5);
        // On the disk, and in a table that is smaller than what learning needs.
        for (memory, spills) in [(1 << 19, true), (4 << 20, false)] {
            let (refused, needs, spilled) = train(Some(memory), 0);
            let error = refused.unwrap_err();
            let missing = (needs.memory() - memory as u64).div_ceil(MEGABYTE);
            for part in [
                &*format!("raise max_memory by {missing} MB"),
                "min_count=2 fits, and leaves 300 of them",
                "sample",
            ] {
                assert!(error.contains(part), "{error}");
            }
            assert!(error.len() <= 300);
            assert_eq!((needs.fitting, spilled), (Some((2, 300)), spills));
            let (learned, needs, _) = train(Some(memory), 5);
            assert_eq!(needs.totals.distinct, 300);
            assert_eq!(learned, frequent);
        }
        let (refused, needs, _) = train(Some(1), 0);
        assert!(
            needs.fitting.is_none() && refused.unwrap_err().contains("frequent pieces only, or")
        );
    }
}
