//! One field of a JSON object, as Python's `json` reads it.

use bpe_tokenizer_core::reserve::reserve;
use serde_json::value::RawValue;

/// Deeper values are left to Python, which refuses very deep ones.
const MAX_DEPTH: usize = 64;
/// Longer numbers are left to Python, which refuses integers of more than 4,300 digits.
const MAX_NUMBER: usize = 4000;

/// Appends the string in a field of a JSON object. `a.b` is the field of that name, or else the field `b` of the object in
/// the field `a`. Returns false, and appends nothing, if Python must decide: the JSON is not valid or is unusual, the field
/// is missing or has no string, or the string has a lone surrogate.
pub fn text_of_field(
    line: &str,
    field: &str,
    text: &mut Vec<u8>,
) -> bpe_tokenizer_core::Result<bool> {
    let start = text.len();
    // All strings of a line together are not longer than the line.
    reserve(text, line.len())?;
    let mut reader = Reader { line, at: 0 };
    let found = reader.object(field, text).is_some() && reader.is_at_end();
    if !found {
        text.truncate(start);
    }
    Ok(found)
}

/// Reads a line from its start. A method returns None if something else is there than it reads.
struct Reader<'a> {
    line: &'a str,
    at: usize,
}

impl Reader<'_> {
    /// Reads an object, and appends the last value of a field. None if Python must decide.
    fn object(&mut self, field: &str, text: &mut Vec<u8>) -> Option<()> {
        let start = text.len();
        let path = field.split_once('.');
        let (mut found, mut is_whole) = (false, false);
        self.byte(b'{')?;
        loop {
            self.byte(b'"')?;
            let name = text.len();
            self.string(text)?;
            let is_field = text[name..] == *field.as_bytes();
            let inner = path.filter(|(outer, _)| !is_whole && text[name..] == *outer.as_bytes());
            text.truncate(name);
            self.byte(b':')?;
            if is_field {
                text.truncate(start);
                is_whole = true;
                found = self.byte(b'"').is_some();
            }
            match inner {
                Some((_, rest)) => {
                    text.truncate(start);
                    self.object(rest, text)?;
                    found = true;
                }
                None if is_field && found => self.string(text)?,
                None => self.value()?,
            }
            if self.byte(b',').is_none() {
                break;
            }
        }
        self.byte(b'}')?;
        found.then_some(())
    }

    fn is_at_end(&mut self) -> bool {
        self.skip_white();
        self.at == self.line.len()
    }

    /// Passes over a byte and the white space before it. Passes over nothing else if another byte follows.
    fn byte(&mut self, byte: u8) -> Option<()> {
        self.skip_white();
        let is_next = self.line.as_bytes().get(self.at) == Some(&byte);
        self.at += usize::from(is_next);
        is_next.then_some(())
    }

    fn skip_white(&mut self) {
        let rest = &self.line.as_bytes()[self.at..];
        let is_white = |byte: &u8| matches!(byte, b' ' | b'\t' | b'\n' | b'\r');
        self.at += rest
            .iter()
            .position(|byte| !is_white(byte))
            .unwrap_or(rest.len());
    }

    /// Passes over any value.
    fn value(&mut self) -> Option<()> {
        let rest = self.line.get(self.at..)?;
        let mut values = serde_json::Deserializer::from_str(rest).into_iter::<&RawValue>();
        let value = values.next()?.ok()?;
        self.at += values.byte_offset();
        is_usual(value.get().as_bytes()).then_some(())
    }

    /// Appends the string whose opening quote is passed, with its escapes resolved.
    fn string(&mut self, text: &mut Vec<u8>) -> Option<()> {
        let mut rest = &self.line.as_bytes()[self.at..];
        loop {
            match rest {
                // Escapes often follow each other.
                [b'\\', letter, after @ ..] if SIMPLE[usize::from(*letter)] != 0 => {
                    text.push(SIMPLE[usize::from(*letter)]);
                    rest = after;
                }
                [b'\\', ..] => {
                    let (length, character) = unicode_escape(rest)?;
                    text.extend_from_slice(character.encode_utf8(&mut [0; 4]).as_bytes());
                    rest = &rest[length..];
                }
                [b'"', after @ ..] => {
                    self.at = self.line.len() - after.len();
                    return Some(());
                }
                _ => {
                    let length = plain_length(rest);
                    if length == 0 {
                        return None;
                    }
                    text.extend_from_slice(&rest[..length]);
                    rest = &rest[length..];
                }
            }
        }
    }
}

/// Number of bytes before the first quote, backslash or control character, or all.
fn plain_length(bytes: &[u8]) -> usize {
    const ONES: u64 = u64::from_ne_bytes([1; 8]);
    const HIGH: u64 = ONES << 7;
    // The high bit of each byte that is less than `limit`, and maybe of bytes after the first such byte.
    let less = |word: u64, limit: u64| word.wrapping_sub(ONES * limit) & !word;
    let (words, rest) = bytes.as_chunks::<8>();
    let mut length = 0;
    for word in words {
        let word = u64::from_le_bytes(*word);
        let quotes = less(word ^ (ONES * u64::from(b'"')), 1);
        let backslashes = less(word ^ (ONES * u64::from(b'\\')), 1);
        let special = (quotes | backslashes | less(word, 0x20)) & HIGH;
        if special != 0 {
            return length + (special.trailing_zeros() / 8) as usize;
        }
        length += 8;
    }
    let is_special = |byte: &u8| matches!(byte, b'"' | b'\\' | 0..0x20);
    length + rest.iter().position(is_special).unwrap_or(rest.len())
}

/// Whether Python reads a valid value without running into its limits for depth and digits.
fn is_usual(raw: &[u8]) -> bool {
    match raw.first() {
        Some(b'{' | b'[') => is_shallow(raw),
        Some(b'-' | b'0'..=b'9') => raw.len() <= MAX_NUMBER,
        _ => true,
    }
}

/// As [`is_usual`], for an object or an array.
fn is_shallow(raw: &[u8]) -> bool {
    let (mut depth, mut digits, mut at) = (0, 0, 0);
    while let Some(&byte) = raw.get(at) {
        digits = if byte.is_ascii_digit() { digits + 1 } else { 0 };
        match byte {
            b'{' | b'[' => depth += 1,
            b'}' | b']' => depth -= 1,
            b'"' => at = end_of_string(raw, at),
            _ => {}
        }
        if depth > MAX_DEPTH || digits > MAX_NUMBER {
            return false;
        }
        at += 1;
    }
    true
}

/// Where the string ends that starts with the quote at `start`.
fn end_of_string(raw: &[u8], start: usize) -> usize {
    let mut at = start + 1;
    while let Some(next) = raw
        .get(at..)
        .and_then(|rest| memchr::memchr2(b'"', b'\\', rest))
    {
        at += next;
        if raw.get(at) == Some(&b'"') {
            return at;
        }
        at += 2;
    }
    raw.len()
}

/// The byte of an escape of two characters, by its letter: a line feed for `n`. 0 for letters of no such escape.
static SIMPLE: [u8; 256] = {
    let mut table = [0; 256];
    let pairs = *b"\"\"\\\\//b\x08f\x0cn\nr\rt\t";
    let mut at = 0;
    while at < pairs.len() {
        table[pairs[at] as usize] = pairs[at + 1];
        at += 2;
    }
    table
};

/// The length of the `\uXXXX` or the two of them at the start, and the character. None for a lone surrogate and for
/// anything else.
fn unicode_escape(bytes: &[u8]) -> Option<(usize, char)> {
    let high = unit(bytes)?;
    if let Some(character) = char::from_u32(high) {
        return Some((6, character));
    }
    let low = unit(bytes.get(6..)?)?;
    let mut pair = char::decode_utf16([high as u16, low as u16]);
    Some((12, pair.next()?.ok()?))
}

/// The value of `\uXXXX` at the start.
fn unit(bytes: &[u8]) -> Option<u32> {
    let digits = bytes.strip_prefix(b"\\u")?.get(..4)?;
    let digit = |byte: &u8| char::from(*byte).to_digit(16);
    digits
        .iter()
        .try_fold(0, |value, byte| Some(value << 4 | digit(byte)?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn text(line: &str) -> Option<String> {
        let mut text = b"before ".to_vec();
        let decided = text_of_field(line, "text", &mut text).unwrap();
        let text = String::from_utf8(text).unwrap();
        let found = text.strip_prefix("before ").unwrap();
        assert!(decided || found.is_empty());
        decided.then(|| found.to_owned())
    }

    #[test]
    fn a_path_is_a_field_of_a_field() {
        let text = |line| {
            let mut text = Vec::new();
            let decided = text_of_field(line, "a.b.c", &mut text).unwrap();
            decided.then(|| String::from_utf8(text).unwrap())
        };
        for (line, expected) in [
            (
                r#"{"a": {"b": {"x": 1, "c": "low"}}, "z": []}"#,
                Some("low"),
            ),
            (
                r#"{"a": {"b": {"c": "low"}}, "a.b.c": "wins"}"#,
                Some("wins"),
            ),
            (
                r#"{"a.b.c": "wins", "a": {"b": {"c": "low"}}}"#,
                Some("wins"),
            ),
            (r#"{"a": {"b": {"c": "low"}, "b.c": "wins"}}"#, Some("wins")),
            (
                r#"{"a": {"b": {"c": "low"}}, "a": {"b": {"c": "last"}}}"#,
                Some("last"),
            ),
            (r#"{"a": {"b": {"c": "low"}}, "a": 1}"#, None),
            (r#"{"a": {"b": {"c": "low"}}, "a.b.c": 1}"#, None),
            (r#"{"a.b.c": 1, "a": {"b": {"c": "low"}}}"#, None),
            (r#"{"a": {"b": "c"}}"#, None),
            (r#"{"a": {"b": {"c": "low"}}"#, None),
            (r#"{"a": {"b": {}}}"#, None),
        ] {
            assert_eq!(text(line).as_deref(), expected, "{line}");
        }
    }

    #[test]
    fn what_is_unusual_is_left_undecided() {
        let deep = "[".repeat(65) + &"]".repeat(65);
        let digits = "1".repeat(4001);
        for line in [
            "",
            "1",
            r#"["text"]"#,
            r#"{"body": "x"}"#,
            r#"{"text": 3}"#,
            r#"{"text": "a", "text": null}"#,
            r#"{"text": "a"} x"#,
            r#"{"text": "a",}"#,
            r#"{"text": "\ud83d"}"#,
            r#"{"text": "\ud83dx"}"#,
            r#"{"text": "\ud83d\u0041"}"#,
            r#"{"text": "\ude42\ud83d"}"#,
            "{\"text\": \"a\tb\"}",
            "\u{feff}{\"text\": \"a\"}",
            r#"{"text": "a", "x": NaN}"#,
            r#"{"\ud800": 1, "text": "a"}"#,
            &format!(r#"{{"text": "a", "x": {deep}}}"#),
            &format!(r#"{{"text": "a", "x": {digits}}}"#),
            &format!(r#"{{"text": "a", "x": ["\"[", {digits}]}}"#),
        ] {
            assert_eq!(text(line), None, "{line}");
        }
        let brackets = r#"{"x": ["[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[["], "text": "a"}"#;
        assert_eq!(text(brackets).as_deref(), Some("a"));
    }

    fn value() -> impl Strategy<Value = serde_json::Value> {
        let text = "[ -~\t\né日🙂\u{0}\u{7f}]{0,40}".prop_map(serde_json::Value::from);
        let leaf = prop_oneof![
            text,
            any::<i64>().prop_map(Into::into),
            any::<bool>().prop_map(Into::into),
            Just(serde_json::Value::Null),
        ];
        leaf.prop_recursive(3, 12, 3, |inner| {
            let names = prop::collection::btree_map("[a\"\\\\]{0,3}", inner.clone(), 0..3);
            let names = names.prop_map(|members| members.into_iter().collect());
            prop_oneof![
                prop::collection::vec(inner, 0..3).prop_map(serde_json::Value::from),
                names
            ]
        })
    }

    proptest! {
        #[test]
        fn valid_objects_give_their_texts(
            before in prop::collection::vec(("[a-z\"\\\\é]{0,5}", value()), 0..3),
            content in ".{0,60}",
            after in prop::collection::vec(("[a-s]{0,5}", value()), 0..3),
            escape in any::<bool>(),
        ) {
            let members = before.into_iter().chain([("text".to_owned(), content.clone().into())]).chain(after);
            let members = members.map(|(name, value)| format!("{} :{value}", serde_json::Value::from(name)));
            let mut line = format!("{{{}}}", members.collect::<Vec<_>>().join(", "));
            if escape {
                let units = |character: char| {
                    character.encode_utf16(&mut [0; 2]).iter().map(|unit| format!("\\u{unit:04X}")).collect()
                };
                let escaped = |character: char| match character.is_ascii() {
                    true => character.to_string(),
                    false => units(character),
                };
                line = line.chars().map(escaped).collect();
            }
            prop_assert_eq!(text(&line), Some(content), "{}", line);
        }

        #[test]
        fn what_is_decided_is_valid(
            parts in prop::collection::vec(0..20usize, 0..12), start in any::<bool>(), end in any::<bool>()
        ) {
            let all = [
                "{", "}", "\"", "\"text\"", ":", ",", " ", "\\", "n", "\\u00e9", "\\ud83d", "\\ude42", "abcdefgh", "é",
                "1", "null", "[1, {}]", "\u{1}", "\"text\": \"", "\\/",
            ];
            let middle: String = parts.into_iter().map(|part| all[part]).collect();
            let line = format!("{}{middle}{}", if start { "{\"text\": \"" } else { "" }, if end { "\"}" } else { "" });
            // serde_json also refuses lone surrogates in other fields.
            if let (Some(found), Ok(value)) = (text(&line), serde_json::from_str::<serde_json::Value>(&line)) {
                prop_assert_eq!(value["text"].as_str(), Some(&found[..]), "{}", line);
            }
        }
    }
}
