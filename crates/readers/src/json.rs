//! One field of a JSON object, as Python's `json` reads it.

use bpe_tokenizer_core::reserve::reserve;
use memchr::memchr;
use serde::de::{DeserializeSeed, Deserializer, Error, MapAccess, Visitor};
use serde_json::value::RawValue;
use std::fmt;

/// Deeper values are left to Python, which refuses very deep ones.
const MAX_DEPTH: usize = 64;
/// Longer numbers are left to Python, which refuses integers of more than 4,300 digits.
const MAX_NUMBER: usize = 4000;

/// Appends the string in a field of a JSON object. Returns false, and appends nothing, if Python must decide: the JSON is
/// not valid or is unusual, the field is missing or has no string, or the string has a lone surrogate.
pub fn text_of_field(
    line: &str,
    field: &str,
    text: &mut Vec<u8>,
) -> bpe_tokenizer_core::Result<bool> {
    let Some(raw) = raw_field(line, field) else {
        return Ok(false);
    };
    let quoted = raw.strip_prefix('"').and_then(|raw| raw.strip_suffix('"'));
    match quoted {
        Some(content) => unescape(content.as_bytes(), text),
        None => Ok(false),
    }
}

/// Whether a text is a JSON object in which nothing is unusual.
pub fn is_plain_object(text: &str) -> bool {
    let mut json = serde_json::Deserializer::from_str(text);
    json.deserialize_map(LastValue("")).is_ok() && json.end().is_ok()
}

/// The last value of a field as it is written. None if Python must decide.
fn raw_field<'a>(line: &'a str, field: &str) -> Option<&'a str> {
    let mut json = serde_json::Deserializer::from_str(line);
    let found = json.deserialize_map(LastValue(field)).ok()?;
    json.end().ok()?;
    found
}

/// Finds the last value of a field, and checks the others.
struct LastValue<'f>(&'f str);

impl<'de> Visitor<'de> for LastValue<'_> {
    type Value = Option<&'de str>;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<Self::Value, A::Error> {
        let mut found = None;
        while let Some(is_field) = members.next_key_seed(IsName(self.0))? {
            let raw = members.next_value::<&'de RawValue>()?.get();
            if !is_usual(raw.as_bytes()) {
                return Err(A::Error::custom("unusual"));
            }
            if is_field {
                found = Some(raw);
            }
        }
        Ok(found)
    }
}

/// Whether a name is this one.
struct IsName<'f>(&'f str);

impl<'de> DeserializeSeed<'de> for IsName<'_> {
    type Value = bool;

    fn deserialize<D: Deserializer<'de>>(self, name: D) -> Result<bool, D::Error> {
        name.deserialize_str(self)
    }
}

impl Visitor<'_> for IsName<'_> {
    type Value = bool;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("a name")
    }

    fn visit_str<E: Error>(self, name: &str) -> Result<bool, E> {
        Ok(name == self.0)
    }
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

/// Appends the text of a valid string, with its escapes resolved. Returns false for a lone surrogate.
fn unescape(content: &[u8], text: &mut Vec<u8>) -> bpe_tokenizer_core::Result<bool> {
    // An escape is never shorter than its text.
    reserve(text, content.len())?;
    let (start, mut rest) = (text.len(), content);
    while let Some(at) = memchr(b'\\', rest) {
        text.extend_from_slice(&rest[..at]);
        let Some((length, character)) = escape(&rest[at..]) else {
            text.truncate(start);
            return Ok(false);
        };
        let mut buffer = [0; 4];
        text.extend_from_slice(character.encode_utf8(&mut buffer).as_bytes());
        rest = &rest[at + length..];
    }
    text.extend_from_slice(rest);
    Ok(true)
}

/// The length of the escape at the start, and its character. None for a lone surrogate.
fn escape(bytes: &[u8]) -> Option<(usize, char)> {
    let simple = match bytes.get(1)? {
        b'b' => '\u{8}',
        b'f' => '\u{c}',
        b'n' => '\n',
        b'r' => '\r',
        b't' => '\t',
        b'u' => {
            let unit = unit(bytes)?;
            if let Some(character) = char::from_u32(unit) {
                return Some((6, character));
            }
            let pair = [unit, self::unit(bytes.get(6..)?)?].map(u16::try_from);
            let [Ok(high), Ok(low)] = pair else {
                return None;
            };
            let character = char::decode_utf16([high, low]).next()?.ok()?;
            return Some((12, character));
        }
        other => char::from(*other),
    };
    Some((2, simple))
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

    fn text(line: &str) -> Option<String> {
        let mut text = b"before ".to_vec();
        let decided = text_of_field(line, "text", &mut text).unwrap();
        let text = String::from_utf8(text).unwrap();
        let found = text.strip_prefix("before ").unwrap();
        assert!(decided || found.is_empty());
        decided.then(|| found.to_owned())
    }

    #[test]
    fn the_last_string_of_a_field_is_its_text() {
        for (line, expected) in [
            (r#"{"text": "a"}"#, "a"),
            (
                r#" { "id" : [1, {"text": "x"}], "text" : "é\u00e9\n\"\\\/\b\f\r\t" } "#,
                "éé\n\"\\/\u{8}\u{c}\r\t",
            ),
            (
                r#"{"text": 1, "te\u0078t": "a", "text": "\ud83d\uDE42 b"}"#,
                "🙂 b",
            ),
            (
                r#"{"text": "", "x": "\ud800", "n": -1.5e9, "t": [true, false, null]}"#,
                "",
            ),
        ] {
            assert_eq!(text(line).as_deref(), Some(expected), "{line}");
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

    #[test]
    fn an_object_is_known() {
        for (line, expected) in [
            ("{}", true),
            (r#"{"": 1}"#, true),
            ("[]", false),
            ("{} {}", false),
            ("{", false),
        ] {
            assert_eq!(is_plain_object(line), expected, "{line}");
        }
    }
}
