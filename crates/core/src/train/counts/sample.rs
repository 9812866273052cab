//! Samples of documents by a hash of their bytes: the same ones on every machine, in any order and any file.

use crate::error::Result;
use crate::reserve::collect;

/// Keeps a document if the XXH64 hash of its bytes (seed 0) is below a limit. See
/// <https://github.com/Cyan4973/xxHash/blob/dev/doc/xxhash_spec.md>.
#[derive(Clone, Copy, Debug)]
pub struct Sample {
    /// The rate times 2^64.
    pub below: u64,
}

impl Sample {
    /// Whether a document is in the sample.
    pub fn keeps(self, document: &[u8]) -> bool {
        xxh64(document) < self.below
    }

    /// The documents in the sample.
    pub fn of<'a>(self, documents: &[&'a str]) -> Result<Vec<&'a str>> {
        let documents = documents.iter().copied();
        collect(documents.filter(|document| self.keeps(document.as_bytes())))
    }
}

const PRIMES: [u64; 5] = [
    0x9e37_79b1_85eb_ca87,
    0xc2b2_ae3d_27d4_eb4f,
    0x1656_67b1_9e37_79f9,
    0x85eb_ca77_c2b2_ae63,
    0x27d4_eb2f_1656_67c5,
];

fn round(state: u64, lane: u64) -> u64 {
    let mixed = state.wrapping_add(lane.wrapping_mul(PRIMES[1]));
    mixed.rotate_left(31).wrapping_mul(PRIMES[0])
}

fn xxh64(bytes: &[u8]) -> u64 {
    let lane = |bytes: &[u8]| {
        let mut lane = [0; 8];
        lane[..bytes.len()].copy_from_slice(bytes);
        u64::from_le_bytes(lane)
    };
    let stripes = bytes.chunks_exact(32);
    let mut rest = stripes.remainder();
    let mut hash = PRIMES[4];
    if bytes.len() >= 32 {
        let mut states = [
            PRIMES[0].wrapping_add(PRIMES[1]),
            PRIMES[1],
            0,
            PRIMES[0].wrapping_neg(),
        ];
        for stripe in stripes {
            for (state, bytes) in states.iter_mut().zip(stripe.chunks_exact(8)) {
                *state = round(*state, lane(bytes));
            }
        }
        hash = (0..4).fold(0, |hash: u64, i| {
            hash.wrapping_add(states[i].rotate_left([1, 7, 12, 18][i]))
        });
        for state in states {
            hash = (hash ^ round(0, state))
                .wrapping_mul(PRIMES[0])
                .wrapping_add(PRIMES[3]);
        }
    }
    hash = hash.wrapping_add(bytes.len() as u64);
    while let Some((eight, others)) = rest.split_at_checked(8) {
        hash ^= round(0, lane(eight));
        hash = hash.rotate_left(27).wrapping_mul(PRIMES[0]);
        hash = hash.wrapping_add(PRIMES[3]);
        rest = others;
    }
    if let Some((four, others)) = rest.split_at_checked(4) {
        hash ^= lane(four).wrapping_mul(PRIMES[0]);
        hash = hash.rotate_left(23).wrapping_mul(PRIMES[1]);
        hash = hash.wrapping_add(PRIMES[2]);
        rest = others;
    }
    for &byte in rest {
        hash ^= u64::from(byte).wrapping_mul(PRIMES[4]);
        hash = hash.rotate_left(11).wrapping_mul(PRIMES[0]);
    }
    hash = (hash ^ hash >> 33).wrapping_mul(PRIMES[1]);
    hash = (hash ^ hash >> 29).wrapping_mul(PRIMES[2]);
    hash ^ hash >> 32
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_hash_is_the_published_one() {
        for (text, hash) in [
            ("", 0xef46_db37_51d8_e999),
            ("a", 0xd24e_c4f1_a98c_6e5b),
            ("abc", 0x44bc_2cf5_ad77_0999),
            (
                "Nobody inspects the spammish repetition",
                0xfbce_a83c_8a37_8bf1,
            ),
        ] {
            assert_eq!(xxh64(text.as_bytes()), hash, "{text}");
        }
    }

    #[test]
    fn a_rate_is_kept_and_a_smaller_sample_is_in_a_larger_one() {
        let documents: Vec<String> = (0..20_000)
            .map(|i| format!("document {i} {}", "x".repeat(i % 50)))
            .collect();
        let documents: Vec<&str> = documents.iter().map(String::as_str).collect();
        let kept = |rate: f64| {
            let sample = Sample {
                below: (rate * 2f64.powi(64)) as u64,
            };
            sample.of(&documents).unwrap()
        };
        let (small, large) = (kept(0.1), kept(0.3));
        assert!((1800..2200).contains(&small.len()), "{}", small.len());
        assert!((5700..6300).contains(&large.len()), "{}", large.len());
        assert!(small.iter().all(|document| large.contains(document)));
    }
}
