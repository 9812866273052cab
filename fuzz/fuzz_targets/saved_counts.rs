//! Saved piece counts: a file of any bytes is read or refused, and counts survive saving and loading.

#![no_main]

use bpe_tokenizer_core::train::counts::PieceCounts;
use bpe_tokenizer_core::{Error, Interrupt};
use libfuzzer_sys::fuzz_target;
use std::collections::BTreeMap;

fuzz_target!(|data: &[u8]| {
    let Some((&header, rest)) = data.split_first() else {
        return;
    };
    let header = usize::from(header % 8);
    load(rest, header);
    // The same content with the checksum that belongs to it: the reader gets beyond its first check.
    let sum = checksum(rest).to_le_bytes();
    load(&[rest, &sum].concat(), header);
    round_trip(rest, header);
});

/// Reads a file. What is read is saved and read again.
fn load(file: &[u8], header: usize) {
    match PieceCounts::load(file, header, &Interrupt::never()) {
        Err(Error::Saved { byte, .. }) => assert!(byte <= file.len() as u64),
        Err(Error::CountOverflow) => {}
        Err(error) => panic!("unexpected error: {error}"),
        Ok(counts) => save(&counts, &file[..header]),
    }
}

/// Counts of pieces that the bytes describe.
fn round_trip(bytes: &[u8], header: usize) {
    let mut expected: BTreeMap<&[u8], u64> = BTreeMap::new();
    let mut counts = PieceCounts::default();
    for piece in bytes.split(|&byte| byte == b' ') {
        let (count, range) = match piece {
            [] => continue,
            [count, ..] => (u64::from(*count) << (piece.len() % 50), 0..piece.len()),
        };
        if count == 0 {
            continue;
        }
        counts.add(piece, range, count).unwrap();
        *expected.entry(piece).or_default() += count;
    }
    let pieces: BTreeMap<&[u8], u64> = counts.sorted().unwrap().into_iter().collect();
    assert_eq!(pieces, expected);
    save(&counts, &bytes[..header.min(bytes.len())]);
}

fn save(counts: &PieceCounts, header: &[u8]) {
    let never = Interrupt::never();
    let saved = counts.save(header, &never).unwrap();
    assert!(saved.starts_with(header));
    let loaded = PieceCounts::load(&saved, header.len(), &never).unwrap();
    assert_eq!(loaded.sorted().unwrap(), counts.sorted().unwrap());
    assert_eq!(loaded.save(header, &never).unwrap(), saved);
}

/// 64-bit FNV-1a.
fn checksum(bytes: &[u8]) -> u64 {
    let mix = |sum: u64, byte: &u8| (sum ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3);
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, mix)
}
