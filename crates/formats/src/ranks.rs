//! Rank files of tiktoken: each line is a token in base64, white space, and the token's rank, which is its id.

use crate::error::{FormatError, Result};
use bpe_tokenizer_core::error::quoted;
use bpe_tokenizer_core::model::Vocabulary;
use memchr::memchr2;

/// The largest rank.
const MAX_RANK: u32 = u32::MAX - 1;
/// The byte of a character outside base64. Padding is outside too.
const NONE: u8 = 64;

/// The six bits of each character of base64.
const SIX_BITS: [u8; 256] = {
    let alphabet = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut bits = [NONE; 256];
    let mut at = 0;
    while at < alphabet.len() {
        bits[alphabet[at] as usize] = at as u8;
        at += 1;
    }
    bits
};

/// Reads the tokens of a rank file, whose name in messages is `file`. Blank lines, more white space, Windows line ends and a
/// missing newline at the end are accepted.
///
/// # Errors
///
/// A line is malformed, two lines have the same token or the same rank, a rank is too large, or no line has a token.
pub fn read(file: &str, data: &[u8]) -> Result<Vocabulary> {
    let refused = |what: String| FormatError::new(file, what);
    let (mut bytes, mut entries) = (Vec::with_capacity(data.len()), Vec::new());
    let (mut rest, mut number) = (data, 0);
    while !rest.is_empty() {
        let (line, after) = rest.split_at(memchr2(b'\n', b'\r', rest).unwrap_or(rest.len()));
        rest = after
            .strip_prefix(b"\r\n")
            .unwrap_or(after.get(1..).unwrap_or_default());
        number += 1;
        let start = bytes.len();
        match entry(line, &mut bytes) {
            Ok(Some(rank)) => entries.push((rank, start, bytes.len())),
            Ok(None) => {}
            Err(problem) => {
                let line = quoted(&String::from_utf8_lossy(line));
                return Err(refused(format!("{problem}: {line}")).at_line(number));
            }
        }
    }
    if entries.is_empty() {
        return Err(refused("holds no tokens".to_owned()));
    }
    entries.sort_by_key(|&(rank, ..)| rank);
    let token = |&(_, start, end): &(u32, usize, usize)| &bytes[start..end];
    let shown = |entry| quoted(&String::from_utf8_lossy(token(entry)));
    if let Some([one, other]) = entries.windows(2).find(|pair| pair[0].0 == pair[1].0) {
        let (rank, one, other) = (one.0, shown(one), shown(other));
        return Err(refused(format!(
            "duplicate rank {rank}: tokens {one} and {other}"
        )));
    }
    let tokens = entries.iter().map(|entry| Ok((entry.0, token(entry))));
    let vocabulary = Vocabulary::from_sorted(tokens).map_err(|error| refused(error.to_string()))?;
    if vocabulary.has_duplicates() {
        let is_second = |entry: &&_| vocabulary.id(token(entry)) != Some(entry.0);
        let second = entries.iter().find(is_second).map(shown);
        return Err(refused(format!(
            "duplicate token {}",
            second.unwrap_or_default()
        )));
    }
    Ok(vocabulary)
}

/// The rank of a line, whose token is appended to `bytes`; None for a blank line.
fn entry(line: &[u8], bytes: &mut Vec<u8>) -> std::result::Result<Option<u32>, String> {
    let mut fields = line
        .split(|byte| byte.is_ascii_whitespace() || *byte == b'\x0b')
        .filter(|field| !field.is_empty());
    let Some(token) = fields.next() else {
        return Ok(None);
    };
    let (rank, more) = (fields.next(), fields.count());
    let Some(rank) = rank.filter(|_| more == 0) else {
        let count = 1 + usize::from(rank.is_some()) + more;
        return Err(format!(
            "must be a token in base64 and its rank, but has {count} fields"
        ));
    };
    decode(token, bytes).ok_or("the token is not valid base64")?;
    if !rank.iter().all(u8::is_ascii_digit) {
        return Err("the rank is not a non-negative integer".to_owned());
    }
    let rank = rank.iter().try_fold(0_u32, |rank, digit| {
        rank.checked_mul(10)?.checked_add(u32::from(digit - b'0'))
    });
    match rank.filter(|&rank| rank <= MAX_RANK) {
        Some(rank) => Ok(Some(rank)),
        None => Err(format!(
            "the rank is too large; the largest rank is {MAX_RANK}"
        )),
    }
}

/// Appends the bytes of base64. Padding alone is the empty token, which Whisper's multilingual.tiktoken has.
fn decode(token: &[u8], bytes: &mut Vec<u8>) -> Option<()> {
    if token.len() < 4 && token.iter().all(|&byte| byte == b'=') {
        return Some(());
    }
    let (groups, rest) = token.as_chunks::<4>();
    let (last, groups) = groups.split_last().filter(|_| rest.is_empty())?;
    let six = |byte: u8| u32::from(SIX_BITS[usize::from(byte)]);
    for group in groups {
        let [a, b, c, d] = group.map(six);
        if a | b | c | d >= u32::from(NONE) {
            return None;
        }
        bytes.extend_from_slice(&(a << 18 | b << 12 | c << 6 | d).to_be_bytes()[1..]);
    }
    let padding = last.iter().rev().take_while(|&&byte| byte == b'=').count();
    let length = 3_usize.checked_sub(padding).filter(|&length| length > 0)?;
    let bits = last[..4 - padding].iter().map(|&byte| six(byte));
    let bits = bits.enumerate().try_fold(0, |bits, (at, six)| {
        (six < u32::from(NONE)).then_some(bits | six << (18 - 6 * at))
    })?;
    let [_, three @ ..] = bits.to_be_bytes();
    bytes.extend_from_slice(&three[..length]);
    Some(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn problem(data: &[u8]) -> String {
        read("my.tiktoken", data)
            .err()
            .map_or_else(String::new, |error| error.to_string())
    }

    #[test]
    fn tokens_have_their_ranks() {
        let vocabulary = read("my", b"YWI= 1\r\n\n YQ==\t0\rYWJj 7\n= 9").unwrap();
        let tokens: Vec<_> = vocabulary.iter().collect();
        let expected: [(u32, &[u8]); 4] = [(0, b"a"), (1, b"ab"), (7, b"abc"), (9, b"")];
        assert_eq!(tokens, expected);
    }

    #[test]
    fn an_error_names_the_line() {
        for (data, expected) in [
            (
                &b"YQ== 0\nYWI=\n"[..],
                "line 2: must be a token in base64 and its rank, but has 1 fields",
            ),
            (b"YQ== 0 1\n", "but has 3 fields"),
            (b"Y*== 0\n", "the token is not valid base64"),
            (b"Y=== 0\n", "the token is not valid base64"),
            (b"YQ=a 0\n", "the token is not valid base64"),
            (b"==== 0\n", "the token is not valid base64"),
            (b"YQ== -1\n", "the rank is not a non-negative integer"),
            (b"YQ== 4294967295\n", "the rank is too large"),
            (
                b"YQ== 0\nYWI= 0\n",
                "my.tiktoken: duplicate rank 0: tokens \"a\" and \"ab\"",
            ),
            (b"YQ== 0\nYQ== 1\n", "my.tiktoken: duplicate token \"a\""),
            (b" \n", "my.tiktoken: holds no tokens"),
        ] {
            assert!(problem(data).contains(expected), "{}", problem(data));
        }
    }
}
