//! Rows that are not UTF-8.

use bpe_tokenizer_core::error::{Error, Result};
use bpe_tokenizer_core::reserve::push;
use bpe_tokenizer_core::text::from_utf8;

/// The numbers of the rows `data[offsets[i]..offsets[i + 1]]` that are not UTF-8. All offsets must ascend and lie in
/// the data.
pub fn bad_rows(data: &[u8], offsets: &[i64]) -> Result<Vec<i64>> {
    let (Some(&first), Some(&last)) = (offsets.first(), offsets.last()) else {
        return Ok(Vec::new());
    };
    if !offsets.is_sorted() {
        return Err(wrong());
    }
    let (first, all) = (position(first)?, position(last)?);
    let all = data.get(first..all).ok_or_else(wrong)?;
    let text = from_utf8(all).ok();
    let mut bad = Vec::new();
    for (row, ends) in (0..).zip(offsets.windows(2)) {
        let (start, end) = (position(ends[0])? - first, position(ends[1])? - first);
        let is_good = match text {
            _ if start == end => true, // also within a character
            Some(text) => text.is_char_boundary(start) && text.is_char_boundary(end),
            None => from_utf8(&all[start..end]).is_ok(),
        };
        if !is_good {
            push(&mut bad, row)?;
        }
    }
    Ok(bad)
}

fn position(offset: i64) -> Result<usize> {
    usize::try_from(offset).map_err(|_| wrong())
}

fn wrong() -> Error {
    Error::Option("offsets must ascend and must not exceed the length of the data".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_that_are_not_utf8_are_found() {
        let data = "aé日b".as_bytes();
        assert_eq!(bad_rows(data, &[0, 1, 3, 6, 7]).unwrap(), [0; 0]);
        assert_eq!(bad_rows(data, &[1, 3, 3]).unwrap(), [0; 0]);
        assert_eq!(bad_rows(data, &[0, 2, 6, 7]).unwrap(), [0, 1]);
        assert_eq!(bad_rows(data, &[0, 2, 2, 3]).unwrap(), [0, 2]);
        assert_eq!(bad_rows(b"a\xffb", &[0, 1, 2, 3]).unwrap(), [1]);
        assert_eq!(bad_rows(b"a\xc3", &[0, 1, 2]).unwrap(), [1]);
        assert_eq!(bad_rows(data, &[]).unwrap(), [0; 0]);
    }

    #[test]
    fn wrong_offsets_are_refused() {
        for offsets in [&[0, 9][..], &[-1, 1], &[2, 1], &[0, i64::MAX]] {
            assert!(bad_rows(b"abc", offsets).is_err(), "{offsets:?}");
        }
    }
}
