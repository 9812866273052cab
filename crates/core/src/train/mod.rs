//! Training: counts the pieces of a corpus, then learns merges from the counts.

pub mod counts;
pub mod learning;
pub mod merges;
pub mod temporary;

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

/// The product of two counts. It never wraps.
#[inline(always)]
fn checked_product(count: u64, weight: u64) -> Result<u64> {
    let Some(product) = count.checked_mul(weight) else {
        return Err(Error::CountOverflow);
    };
    Ok(product)
}
