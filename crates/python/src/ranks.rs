//! A fast reader for the rank files of tiktoken.
//!
//! It reports no errors. It returns None for a file with anything unusual; the package's reader then reads the file
//! and reports what is wrong.
//!
use bpe_tokenizer_core::model::Vocabulary;

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

/// The vocabulary of a file whose lines are `token in base64, space, rank, newline`, with ascending ranks and distinct
/// tokens.
pub fn parse(data: &[u8]) -> Option<Vocabulary> {
    let (mut bytes, mut entries, mut rest) = (Vec::with_capacity(data.len()), Vec::new(), data);
    let mut start = 0;
    while !rest.is_empty() {
        rest = decode(rest, &mut bytes)?.strip_prefix(b" ")?;
        let (rank, after) = number(rest)?;
        rest = after.strip_prefix(b"\n")?;
        if bytes.len() == start {
            return None; // an empty token
        }
        start = bytes.len();
        entries.push((rank, start));
    }
    start = 0;
    let tokens = entries.iter().map(|&(rank, end)| {
        let token = &bytes[start..end];
        start = end;
        Ok((rank, token))
    });
    let vocabulary = Vocabulary::from_sorted(tokens).ok()?;
    (!vocabulary.is_empty() && !vocabulary.has_duplicates()).then_some(vocabulary)
}

/// Appends the bytes of the base64 at the beginning. Returns the rest.
fn decode<'a>(mut text: &'a [u8], bytes: &mut Vec<u8>) -> Option<&'a [u8]> {
    while let Some((four, rest)) = text.split_first_chunk::<4>() {
        let [a, b, c, d] = four.map(|character| u32::from(SIX_BITS[usize::from(character)]));
        if a | b | c | d < u32::from(NONE) {
            bytes.extend_from_slice(&(a << 18 | b << 12 | c << 6 | d).to_be_bytes()[1..]);
            text = rest;
            continue;
        }
        let padding = match four {
            [_, _, b'=', b'='] if a | b < u32::from(NONE) => 2,
            [_, _, _, b'='] if a | b | c < u32::from(NONE) => 1,
            _ => break, // the end of the token, or an error there
        };
        let [_, three @ ..] = (a << 18 | b << 12 | (c & 63) << 6).to_be_bytes();
        bytes.extend_from_slice(&three[..3 - padding]);
        return Some(rest);
    }
    Some(text)
}

/// The decimal number of at most ten digits at the beginning, and the rest.
fn number(text: &[u8]) -> Option<(u32, &[u8])> {
    let digits = text.iter().take_while(|byte| byte.is_ascii_digit()).count();
    let (digits, rest) = text.split_at_checked(digits).filter(|_| digits <= 10)?;
    let number = std::str::from_utf8(digits).ok()?.parse().ok()?;
    Some((number, rest))
}
