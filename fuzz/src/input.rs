//! The two parts of an input, and setups that are kept.

use rustc_hash::FxHashMap;
use std::rc::Rc;

/// The most bytes of a setup.
const MAX_SETUP: usize = 120;
/// One of so many mutations changes the setup.
const SETUP_MUTATIONS: u32 = 12;
/// The number of setups that are kept.
const KEPT: usize = 256;

/// The setup and the rest of an input. The first byte is the length of the setup.
pub fn parts(data: &[u8]) -> (&[u8], &[u8]) {
    match data.split_first() {
        None => (data, data),
        Some((&length, rest)) => rest.split_at(usize::from(length).min(MAX_SETUP).min(rest.len())),
    }
}

/// Mutates an input, most often only the part after the setup. For [`mutate_parts!`](crate::mutate_parts).
pub fn mutate(data: &mut [u8], size: usize, max_size: usize, seed: u32) -> usize {
    let setup = parts(&data[..size]).0.len();
    let start = (1 + setup).min(size);
    if seed.is_multiple_of(SETUP_MUTATIONS) || start >= max_size {
        return libfuzzer_sys::fuzzer_mutate(data, size, max_size);
    }
    let rest = &mut data[start..];
    start + libfuzzer_sys::fuzzer_mutate(rest, size - start, max_size - start)
}

/// Makes [`mutate`] the mutator of a target.
#[macro_export]
macro_rules! mutate_parts {
    () => {
        libfuzzer_sys::fuzz_mutator!(|data: &mut [u8], size: usize, max_size: usize, seed: u32| {
            $crate::input::mutate(data, size, max_size, seed)
        });
    };
}

/// Built setups by their bytes.
pub struct Kept<T>(FxHashMap<Vec<u8>, Option<Rc<T>>>);

impl<T> Default for Kept<T> {
    fn default() -> Self {
        Self(FxHashMap::default())
    }
}

impl<T> Kept<T> {
    /// The setup of these bytes, built unless it is known. None if the bytes describe none.
    pub fn get(&mut self, setup: &[u8], build: impl FnOnce() -> Option<T>) -> Option<Rc<T>> {
        if let Some(known) = self.0.get(setup) {
            return known.clone();
        }
        if self.0.len() >= KEPT {
            self.0.clear();
        }
        let built = build().map(Rc::new);
        self.0.insert(setup.to_vec(), built.clone());
        built
    }
}
