//! Training: counts the pieces of a corpus, then learns merges from the counts.

pub mod counts;
pub mod merges;

use crate::error::{Error, Result};

/// The sum of two counts. It never wraps.
#[inline(always)]
fn checked_sum(a: u64, b: u64) -> Result<u64> {
    // `ok_or` would construct and drop an error for every sum.
    let Some(sum) = a.checked_add(b) else {
        return Err(Error::CountOverflow);
    };
    Ok(sum)
}
