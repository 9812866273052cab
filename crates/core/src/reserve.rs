//! Room in buffers that grow with the input: an error where the standard collections would abort the process.
//!
//! Small allocations are not checked: if the system has no memory for one, the process aborts.

use crate::error::{Error, Result};
use std::collections::HashMap;
use std::hash::{BuildHasher, Hash};

/// Makes room for `additional` more values.
#[inline(always)]
pub fn reserve<T>(values: &mut Vec<T>, additional: usize) -> Result<()> {
    if values.capacity() - values.len() >= additional {
        return Ok(());
    }
    grow(values, additional)
}

/// Doubles the capacity. If that is too much, grows it to what is needed.
#[cold]
#[inline(never)]
fn grow<T>(values: &mut Vec<T>, additional: usize) -> Result<()> {
    let grown = values.try_reserve(additional);
    let grown = grown.or_else(|_| values.try_reserve_exact(additional));
    grown.map_err(|_| out_of_memory::<T>(values.len().saturating_add(additional)))
}

/// Makes room for exactly `additional` more values.
pub fn reserve_exact<T>(values: &mut Vec<T>, additional: usize) -> Result<()> {
    let reserved = values.try_reserve_exact(additional);
    reserved.map_err(|_| out_of_memory::<T>(values.len().saturating_add(additional)))
}

/// Makes room in a string for `additional` more bytes.
#[inline(always)]
pub fn reserve_text(text: &mut String, additional: usize) -> Result<()> {
    if text.capacity() - text.len() >= additional {
        return Ok(());
    }
    let grown = text.try_reserve(additional);
    let grown = grown.or_else(|_| text.try_reserve_exact(additional));
    grown.map_err(|_| out_of_memory::<u8>(text.len().saturating_add(additional)))
}

/// Makes room in a map for one more key.
#[inline(always)]
pub fn reserve_entry<K: Eq + Hash, V, S: BuildHasher>(map: &mut HashMap<K, V, S>) -> Result<()> {
    if map.len() < map.capacity() {
        return Ok(());
    }
    reserve_entries(map, 1)
}

/// Makes room in a map for further keys.
pub fn reserve_entries<K: Eq + Hash, V, S: BuildHasher>(
    map: &mut HashMap<K, V, S>,
    keys: usize,
) -> Result<()> {
    let entries = map.len().saturating_add(keys);
    let reserved = map.try_reserve(keys);
    reserved.map_err(|_| out_of_memory::<(K, V)>(entries.saturating_mul(2)))
}

/// An empty vector with room for so many values.
pub fn with_capacity<T>(capacity: usize) -> Result<Vec<T>> {
    let mut values = Vec::new();
    reserve_exact(&mut values, capacity)?;
    Ok(values)
}

/// So many copies of a value.
pub fn filled<T: Clone>(value: T, length: usize) -> Result<Vec<T>> {
    let mut values = with_capacity(length)?;
    values.resize(length, value);
    Ok(values)
}

/// A copy of a slice.
pub fn copied<T: Copy>(slice: &[T]) -> Result<Vec<T>> {
    let mut values = with_capacity(slice.len())?;
    values.extend_from_slice(slice);
    Ok(values)
}

/// Appends a slice.
#[inline(always)]
pub fn append<T: Copy>(values: &mut Vec<T>, slice: &[T]) -> Result<()> {
    reserve(values, slice.len())?;
    values.extend_from_slice(slice);
    Ok(())
}

/// Appends text.
pub fn append_text(text: &mut String, more: &str) -> Result<()> {
    reserve_text(text, more.len())?;
    text.push_str(more);
    Ok(())
}

/// Appends a value.
#[inline(always)]
pub fn push<T>(values: &mut Vec<T>, value: T) -> Result<()> {
    reserve(values, 1)?;
    values.push(value);
    Ok(())
}

/// Collects an iterator whose length is unknown.
pub fn collect<T>(values: impl Iterator<Item = T>) -> Result<Vec<T>> {
    let mut collected = with_capacity(values.size_hint().0)?;
    for value in values {
        push(&mut collected, value)?;
    }
    Ok(collected)
}

fn out_of_memory<T>(values: usize) -> Error {
    Error::OutOfMemory {
        bytes: values.saturating_mul(size_of::<T>()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_capacity_that_no_system_has_is_an_error() {
        let mut values = vec![1_u64];
        for wanted in [usize::MAX / 16, usize::MAX / 2, usize::MAX] {
            let error = reserve(&mut values, wanted).unwrap_err();
            assert!(matches!(error, Error::OutOfMemory { bytes } if bytes >= wanted));
            assert!(reserve_exact(&mut values, wanted).is_err());
            assert!(filled(0_u64, wanted).is_err());
            assert!(reserve_text(&mut String::from("a"), wanted.max(usize::MAX / 2)).is_err());
        }
        assert_eq!(values, [1]);
    }

    #[test]
    fn growth_is_amortised() {
        let (mut values, mut capacities) = (Vec::new(), std::collections::BTreeSet::new());
        for value in 0..100_000 {
            push(&mut values, value).unwrap();
            capacities.insert(values.capacity());
        }
        assert!(capacities.len() < 30 && values.iter().copied().eq(0..100_000));
    }
}
