//! GPT-2's printable characters for bytes: how byte-level vocabularies are written in files.
//!
//! Printable bytes of Latin-1 stand for themselves; the other 68 are U+0100, U+0101, ... in order
//! (`bytes_to_unicode` in OpenAI's `encoder.py`, 2019).

/// The character of a byte.
pub const fn char_of_byte(byte: u8) -> char {
    if is_printable(byte) {
        return byte as char;
    }
    let (mut code_point, mut below) = (0x100, 0);
    while below < byte {
        if !is_printable(below) {
            code_point += 1;
        }
        below += 1;
    }
    match char::from_u32(code_point) {
        Some(c) => c,
        None => char::REPLACEMENT_CHARACTER, // never: 0x100 + 68 at most
    }
}

const fn is_printable(byte: u8) -> bool {
    matches!(byte, b'!'..=b'~' | 0xa1..=0xac | 0xae..=0xff)
}

const CHARS: [char; 256] = {
    let mut chars = ['\0'; 256];
    let mut byte = 0;
    while byte < 256 {
        chars[byte] = char_of_byte(byte as u8);
        byte += 1;
    }
    chars
};

/// U+0000..U+0143 to the byte, or 256 where the character stands for none.
const BYTES: [u16; 0x144] = {
    let mut bytes = [256; 0x144];
    let mut byte = 0;
    while byte < 256 {
        bytes[CHARS[byte] as usize] = byte as u16;
        byte += 1;
    }
    bytes
};

/// The printable characters of a token's bytes.
pub fn to_printable(token: &[u8]) -> String {
    token.iter().map(|&byte| CHARS[usize::from(byte)]).collect()
}

/// The bytes of a token's printable characters; none if another character is among them.
pub fn from_printable(token: &str) -> Option<Vec<u8>> {
    token
        .chars()
        .map(|c| u8::try_from(*BYTES.get(c as usize)?).ok())
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_characters_are_those_of_gpt2() {
        assert_eq!(to_printable(b" a\n\x00\x7f\xa0\xad\xff"), "ĠaĊĀġłŃÿ");
        for byte in 0..=255 {
            assert_eq!(from_printable(&to_printable(&[byte])), Some(vec![byte]));
        }
        assert_eq!(from_printable("a b"), None);
        assert_eq!(from_printable("日"), None);
    }
}
