//! Ids as decimal numbers in text, and back.

use crate::error::Result;
use crate::interrupt::Interrupt;
use crate::reserve::reserve;

/// Digits of the largest id.
const MAX_DIGITS: usize = 10;
/// Digits of the longest number with leading zeros that is read.
const MAX_READ_DIGITS: usize = 20;
/// Ids between two polls for interrupts.
const POLL_INTERVAL: usize = 1 << 16;

/// Appends each id in decimal, and a space after it.
pub fn write(ids: &[u32], text: &mut Vec<u8>, interrupt: &Interrupt<'_>) -> Result<()> {
    for ids in ids.chunks(POLL_INTERVAL) {
        interrupt.poll()?;
        reserve(text, ids.len() * (MAX_DIGITS + 1))?;
        for &id in ids {
            let mut digits = [b' '; MAX_DIGITS + 1];
            let (mut at, mut rest) = (MAX_DIGITS, id);
            loop {
                at -= 1;
                digits[at] = b'0' + (rest % 10) as u8;
                rest /= 10;
                if rest == 0 {
                    break;
                }
            }
            text.extend_from_slice(&digits[at..]);
        }
    }
    Ok(())
}

/// Appends the numbers of a text, which white space or commas separate. Returns the position of the first word that is
/// not an id of 32 bits in digits, or the length of the text.
pub fn read(text: &[u8], ids: &mut Vec<u32>, interrupt: &Interrupt<'_>) -> Result<usize> {
    reserve(ids, text.len().div_ceil(2))?; // a digit and a separator
    let (mut at, mut until_poll) = (0, 0);
    loop {
        while text.get(at).is_some_and(|&byte| is_separator(byte)) {
            at += 1;
        }
        if at == text.len() {
            return Ok(at);
        }
        if until_poll == 0 {
            interrupt.poll()?;
            until_poll = POLL_INTERVAL;
        }
        until_poll -= 1;
        let (start, mut id) = (at, 0_u64);
        while let Some(digit) = text.get(at).map(|byte| byte.wrapping_sub(b'0')) {
            if digit > 9 || id > u64::from(u32::MAX) || at - start > MAX_READ_DIGITS {
                break;
            }
            id = 10 * id + u64::from(digit);
            at += 1;
        }
        let has_digits = (1..=MAX_READ_DIGITS).contains(&(at - start));
        let is_whole = has_digits && text.get(at).is_none_or(|&byte| is_separator(byte));
        match u32::try_from(id) {
            Ok(id) if is_whole => ids.push(id),
            _ => return Ok(start),
        }
    }
}

fn is_separator(byte: u8) -> bool {
    matches!(byte, b' ' | b',' | b'\t'..=b'\r' | 0x1c..=0x1f)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn read_all(text: &str) -> (Vec<u32>, usize) {
        let mut ids = Vec::new();
        let end = read(text.as_bytes(), &mut ids, &Interrupt::never()).unwrap();
        (ids, end)
    }

    #[test]
    fn what_is_no_id_ends_the_ids() {
        for (text, ids, end) in [
            ("", vec![], 0),
            (" ,\n", vec![], 3),
            ("007,8\t9", vec![7, 8, 9], 7),
            ("4294967295 0", vec![u32::MAX, 0], 12),
            ("1 4294967296 2", vec![1], 2),
            ("1 99999999999999999999999 2", vec![1], 2),
            ("00000000000000000001", vec![1], 20),
            ("000000000000000000001", vec![], 0),
            ("1 -2", vec![1], 2),
            ("1 2x", vec![1], 2),
            ("1 x", vec![1], 2),
            ("1.5", vec![], 0),
            ("٣", vec![], 0),
        ] {
            assert_eq!(read_all(text), (ids, end), "{text:?}");
        }
    }

    proptest! {
        #[test]
        fn ids_survive_a_round_trip(ids in prop::collection::vec(
            prop_oneof![any::<u32>(), 0..20_u32, 9_990..10_010_u32], 0..50,
        )) {
            let mut text = Vec::new();
            write(&ids, &mut text, &Interrupt::never()).unwrap();
            let expected: String = ids.iter().map(|id| format!("{id} ")).collect();
            let text = String::from_utf8(text).unwrap();
            prop_assert_eq!(&text, &expected);
            prop_assert_eq!(read_all(&text), (ids, text.len()));
        }

        #[test]
        fn words_are_read_up_to_the_first_that_is_no_id(
            text in "([0-9]{1,3}|42949672[0-9]{1,3}|0{15,22}|[ ,\\n\\x0b\\x1c]|[ ,]|[+x\\-/:é]){0,12}",
        ) {
            let (mut ids, mut start) = (Vec::new(), 0);
            for word in text.split([' ', ',', '\n', '\x0b', '\x1c']) {
                let has_digits = word.len() <= MAX_READ_DIGITS && !word.starts_with('+');
                match word.parse() {
                    Ok(id) if has_digits => ids.push(id),
                    _ if word.is_empty() => {}
                    _ => break,
                }
                start += word.len() + 1;
            }
            let end = start.min(text.len());
            prop_assert_eq!(read_all(&text), (ids, end));
        }
    }
}
