//! Rows of blocks: JSON is what serde_json reads, text is split where lines and separators end, in any number of threads.

#![no_main]

use bpe_tokenizer_core::buffer_pool::BufferPool;
use bpe_tokenizer_core::Interrupt;
use bpe_tokenizer_fuzz::{input, mutate_parts};
use bpe_tokenizer_readers::{bad_rows, read_rows, text_of_field, RowKind, Rows};
use libfuzzer_sys::fuzz_target;
use serde_json::Value;

mutate_parts!();

fuzz_target!(|data: &[u8]| {
    let (setup, block) = input::parts(data);
    let field = std::str::from_utf8(setup).unwrap_or("text");
    for line in block.split(|&byte| byte == b'\n') {
        check_json(line, field);
    }
    check_rows(block, RowKind::Line, |line| {
        line.strip_suffix(b"\r").unwrap_or(line)
    });
    check_rows(block, RowKind::Json(field), |line| line);
    if !setup.is_empty() {
        check_separated(block, setup);
    }
});

/// A decided line has the field's string that serde_json reads.
fn check_json(line: &[u8], field: &str) {
    let Ok(line) = std::str::from_utf8(line) else {
        return;
    };
    let mut text = b"before".to_vec();
    let decided = text_of_field(line, field, &mut text).unwrap();
    let text = std::str::from_utf8(&text)
        .unwrap()
        .strip_prefix("before")
        .unwrap();
    if decided {
        // Values of other fields may have lone surrogates, which serde_json refuses.
        if let Ok(value) = serde_json::from_str::<Value>(line) {
            assert_eq!(value.get(field).and_then(Value::as_str), Some(text));
        }
    } else {
        assert_eq!(text, "");
    }
}

/// Each line is a document, undecided or left out, and is in the right place.
fn check_rows(block: &[u8], kind: RowKind<'_>, strip: impl Fn(&[u8]) -> &[u8]) {
    let (pool, never) = (BufferPool::default(), Interrupt::never());
    let rows = read_rows(block, kind, 1, 0, 1, &pool, &never).unwrap();
    check(&rows);
    let lines: Vec<&[u8]> = block.split_inclusive(|&byte| byte == b'\n').collect();
    assert_eq!(rows.count, lines.len() as i64);
    let mut start = 0;
    for (&end, &number) in rows.ends.iter().zip(&rows.numbers) {
        let line = lines[number as usize - 1];
        if matches!(kind, RowKind::Line) {
            let content = line.strip_suffix(b"\n").map_or(line, &strip);
            assert_eq!(&rows.data[start..end as usize], content);
        }
        start = end as usize;
    }
    for row in &rows.undecided {
        assert_eq!(&block[row.range.clone()], lines[row.number as usize - 1]);
        let before = rows.numbers.iter().filter(|number| **number < row.number);
        assert_eq!(before.count(), row.before);
    }
    // What is skipped is skipped, and the rest stays.
    let after = rows.count / 2;
    let rest = read_rows(block, kind, 1, after, 1, &pool, &never).unwrap();
    let later = rows.numbers.iter().filter(|number| **number > after);
    assert!(rest.numbers.iter().eq(later));
    assert_eq!(rest.count, rows.count);
}

fn check_separated(block: &[u8], separator: &[u8]) {
    let rows = read_rows(
        block,
        RowKind::Separated(separator),
        1,
        0,
        1,
        &BufferPool::default(),
        &Interrupt::never(),
    );
    check(&rows.unwrap());
}

fn check(rows: &Rows) {
    assert!(rows.numbers.is_sorted() && rows.ends.is_sorted());
    assert_eq!(
        rows.ends.last().map_or(0, |end| *end as usize),
        rows.data.len()
    );
    let offsets: Vec<i64> = std::iter::once(0)
        .chain(rows.ends.iter().copied())
        .collect();
    assert_eq!(bad_rows(&rows.data, &offsets).unwrap(), [0; 0]);
}
