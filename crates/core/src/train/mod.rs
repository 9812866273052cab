//! Training: counting the pieces of a corpus, then learning merges from the counts.

pub mod counts;
pub mod merges;

use crate::error::{Error, Result};

/// The sum of two counts, which never wraps.
#[inline(always)]
fn add(a: u64, b: u64) -> Result<u64> {
    // No error is made, and dropped again, where there is none.
    let Some(sum) = a.checked_add(b) else {
        return Err(Error::CountOverflow);
    };
    Ok(sum)
}
