//! Byte positions of a text to positions in UTF-16, which JavaScript counts in.

/// Turns ascending positions, in bytes, into UTF-16 code units. A position may go back by a few characters.
pub struct Utf16Positions<'a> {
    text: &'a str,
    byte: usize,
    unit: usize,
}

impl<'a> Utf16Positions<'a> {
    /// The positions of a text.
    pub fn new(text: &'a str) -> Self {
        let (byte, unit) = (0, 0);
        Self { text, byte, unit }
    }

    /// The position of the character that holds this byte, or that begins there.
    pub fn floor(&mut self, byte: usize) -> u32 {
        self.go_to(floor(self.text, byte))
    }

    /// The end of the character that ends there or holds this byte.
    pub fn ceil(&mut self, byte: usize) -> u32 {
        let mut byte = byte.min(self.text.len());
        while !self.text.is_char_boundary(byte) {
            byte += 1;
        }
        self.go_to(byte)
    }

    /// `byte` must be a character boundary.
    fn go_to(&mut self, byte: usize) -> u32 {
        let bytes = self.text.as_bytes();
        if byte >= self.byte {
            self.unit += units(&bytes[self.byte..byte]);
        } else {
            self.unit -= units(&bytes[byte..self.byte]);
        }
        self.byte = byte;
        self.unit as u32
    }
}

/// The last character boundary up to a byte.
pub fn floor(text: &str, byte: usize) -> usize {
    bpe_tokenizer_core::text::floor_char_boundary(text, byte.min(text.len()))
}

/// UTF-16 code units of whole characters: one for each, and one more for each of four bytes.
fn units(bytes: &[u8]) -> usize {
    let units = bytes.iter();
    let units = units.map(|&byte| usize::from(byte & 0xc0 != 0x80) + usize::from(byte >= 0xf0));
    units.sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn positions_are_those_of_javascript() {
        let text = "aé語😀z";
        for (byte, _) in text
            .char_indices()
            .chain([(text.len(), ' ')])
            .collect::<Vec<_>>()
        {
            let expected = text[..byte].encode_utf16().count() as u32;
            let mut positions = Utf16Positions::new(text);
            assert_eq!(
                (positions.floor(byte), positions.ceil(byte)),
                (expected, expected)
            );
        }
        let mut positions = Utf16Positions::new(text);
        assert_eq!((positions.floor(8), positions.ceil(8)), (3, 5)); // inside the emoji
        assert_eq!((positions.floor(2), positions.ceil(2)), (1, 2)); // back, inside the é
        assert_eq!(positions.ceil(usize::MAX), 6);
    }
}
