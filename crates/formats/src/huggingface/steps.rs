//! The normaliser and the pre-tokeniser of a tokenizer.json.
//!
//! As `normalizer.py`, `pre_tokenizer.py` and `components.py` of `python/bpe_tokenizer/formats/huggingface/`.

use crate::error::{FormatError, Result};
use crate::json::Field;
use crate::published::published;
use bpe_tokenizer_core::normalizers::Normalizer;
use bpe_tokenizer_core::pretokenize::{
    from_oniguruma, objection, Behavior, Engines, Metaspace, PreTokenizer, Prepend, Split,
    SplitPattern,
};

const MAX_FIXED_LENGTH: u32 = 1000;

/// `Nmt` cleans text as a machine translation system did: it drops the first characters and makes the others spaces.
const NMT: [(&str, &str); 2] = [
    (r"[\x{1}-\x{8}\x{B}\x{E}-\x{1F}\x{7F}\x{8F}\x{9F}]", ""),
    (
        r"[\x{9}\x{A}\x{C}\x{D}\x{1680}\x{200B}-\x{200F}\x{2028}\x{2029}\x{2581}\x{FEFF}\x{FFFD}]",
        " ",
    ),
];

/// The pattern of a text.
pub fn regex_escape(text: &str) -> String {
    let mut pattern = String::new();
    for character in text.chars() {
        if r"\.+*?()|[]{}^$#&~-".contains(character) {
            pattern.push('\\');
        }
        pattern.push(character);
    }
    pattern
}

/// The text of a pattern that matches one literal text.
pub fn literal_text(pattern: &str) -> Option<String> {
    let (mut text, mut characters) = (String::new(), pattern.chars().peekable());
    while let Some(character) = characters.next() {
        match characters.peek() {
            Some(&next) if character == '\\' && !(next.is_ascii_alphanumeric() || next == '_') => {
                text.push(next);
                characters.next();
            }
            _ => text.push(character),
        }
    }
    (regex_escape(&text) == pattern).then_some(text)
}

/// Reads a pattern and translates it to our dialect.
pub fn pattern(field: &Field<'_>) -> Result<String> {
    let mut names = field.members()?.keys();
    match (names.next().map(String::as_str), names.next()) {
        (Some("String"), None) => {
            let text = field.get("String")?;
            if text.text()?.is_empty() {
                let problem = "is empty, which is not supported; it matches between all characters";
                return Err(text.error(problem));
            }
            Ok(regex_escape(text.text()?))
        }
        (Some("Regex"), None) => {
            let regex = field.get("Regex")?;
            let text = regex.text()?;
            if let Some(problem) = objection(text, Engines::FromOniguruma) {
                return Err(regex.refused(&format!("is not supported: it {problem}")));
            }
            let translated: bpe_tokenizer_core::Result<String> =
                from_oniguruma(text).and_then(|pattern| {
                    SplitPattern::new(&pattern)?;
                    Ok(pattern)
                });
            translated.map_err(|error| regex.refused(&format!("is not supported: {error}")))
        }
        _ => Err(field.refused(r#"must be {"Regex": pattern} or {"String": text}"#)),
    }
}

/// The steps of the normaliser, and whether they end with `ByteLevel`.
pub fn read_normalizer(field: &Field<'_>) -> Result<(Vec<Normalizer>, bool)> {
    let (mut steps, mut in_bytes) = (Vec::new(), false);
    for step in field.steps("normalizers")? {
        if in_bytes {
            return Err(step.error("follows ByteLevel, which must be the last step"));
        }
        match step.kind()? {
            "ByteLevel" => in_bytes = true,
            "Lowercase" => steps.push(Normalizer::Lowercase),
            "StripAccents" => steps.push(Normalizer::StripAccents),
            form @ ("NFC" | "NFD" | "NFKC" | "NFKD") => {
                steps.push(Normalizer::Form(form.parse()?));
            }
            "Strip" => steps.push(Normalizer::Strip {
                left: step.need("strip_left")?.flag()?,
                right: step.need("strip_right")?.flag()?,
            }),
            "Prepend" => {
                let text = step.need("prepend")?;
                if text.text()?.is_empty() {
                    let problem = "is empty, where Hugging Face tokenizers fails; remove the step";
                    return Err(text.error(problem));
                }
                steps.push(Normalizer::Prepend(text.text()?.to_owned()));
            }
            "Replace" => steps.push(Normalizer::Replace {
                pattern: pattern(&step.need("pattern")?)?,
                content: step.need("content")?.text()?.to_owned(),
            }),
            "Nmt" => {
                steps.extend(NMT.map(|(pattern, content)| Normalizer::Replace {
                    pattern: pattern.to_owned(),
                    content: content.to_owned(),
                }));
            }
            _ => {
                let why = "is not supported; NFC, NFD, NFKC, NFKD, Lowercase, StripAccents, Strip, Prepend, Replace, Nmt, ByteLevel and Sequence are";
                return Err(step.get("type")?.refused(why));
            }
        }
    }
    Ok((steps, in_bytes))
}

/// The steps of the pre-tokeniser, and whether the pieces are bytes.
pub fn read_pre_tokenizer(
    field: &Field<'_>,
    mut in_bytes: bool,
) -> Result<(Vec<PreTokenizer>, bool)> {
    let mut steps = Vec::new();
    for step in field.steps("pretokenizers")? {
        match step.kind()? {
            kind @ ("ByteLevel" | "Metaspace") if in_bytes => {
                return Err(step.error(&format!(
                    "{kind} after ByteLevel is not supported; it would take printable bytes for text"
                )));
            }
            "ByteLevel" => {
                if step.need("add_prefix_space")?.flag()? {
                    steps.push(PreTokenizer::PrefixSpace);
                }
                if step.get("use_regex")?.flag_or(true)? {
                    steps.push(PreTokenizer::isolated(published()?.gpt2));
                }
                in_bytes = true;
            }
            "Metaspace" => steps.push(PreTokenizer::Metaspace(read_metaspace(&step)?)),
            kind => {
                for mut split in read_splits(&step, kind)? {
                    split.bytes = in_bytes;
                    steps.push(PreTokenizer::Split(split));
                }
            }
        }
    }
    Ok((steps, in_bytes))
}

/// Reads `prepend_scheme`, or the older `add_prefix_space`, which must not contradict it.
fn read_metaspace(step: &Field<'_>) -> Result<Metaspace> {
    let scheme = step.get("prepend_scheme")?;
    let name = if step.members()?.contains_key("prepend_scheme") {
        scheme.text()?
    } else {
        "always"
    };
    let prepend = match name {
        "always" => Prepend::Always,
        "first" => Prepend::First,
        "never" => Prepend::Never,
        _ => return Err(scheme.refused("must be one of always, first, never")),
    };
    let older = step.get("add_prefix_space")?;
    if !older.flag_or(true)? && prepend != Prepend::Never {
        return Err(older.refused(&format!(
            "contradicts the prepend_scheme {name:?}; remove it, and set \"prepend_scheme\" to \"never\""
        )));
    }
    if !step.get("str_rep")?.is_null() {
        step.get("str_rep")?.text()?;
    }
    Ok(Metaspace {
        replacement: step.need("replacement")?.character()?,
        prepend,
        split: step.get("split")?.flag_or(true)?,
    })
}

fn split(pattern: impl Into<String>, behavior: Behavior, invert: bool) -> Split {
    Split {
        pattern: pattern.into(),
        behavior,
        invert,
        bytes: false,
    }
}

/// The splits of a step.
fn read_splits(step: &Field<'_>, kind: &str) -> Result<Vec<Split>> {
    let spaces = || split(r"\s", Behavior::Removed, false);
    Ok(match kind {
        "Split" => vec![read_split(step)?],
        "Digits" => {
            // `char::is_numeric`: the general category N.
            let each = step.need("individual_digits")?.flag()?;
            let pattern = if each { r"\p{N}" } else { r"\p{N}+" };
            vec![split(pattern, Behavior::Isolated, false)]
        }
        "Punctuation" => {
            let behavior = step.get("behavior")?;
            let behavior = match behavior.is_null() {
                true => Behavior::Isolated,
                false => read_behavior(&behavior)?,
            };
            vec![punctuation(behavior)?]
        }
        "BertPreTokenizer" => vec![spaces(), punctuation(Behavior::Isolated)?],
        "Whitespace" => vec![split(r"\w+|[^\w\s]+", Behavior::Removed, true)],
        "WhitespaceSplit" => vec![spaces()],
        "CharDelimiterSplit" => {
            let delimiter = step.need("delimiter")?.character()?;
            let pattern = regex_escape(&delimiter.to_string());
            vec![split(pattern, Behavior::Removed, false)]
        }
        "FixedLength" => {
            let length = match step.members()?.contains_key("length") {
                true => step.get("length")?.id()?,
                false => 5,
            };
            if !(1..=MAX_FIXED_LENGTH).contains(&length) {
                let why = format!("is not supported; it must be 1 to {MAX_FIXED_LENGTH}");
                return Err(step.get("length")?.refused(&why));
            }
            vec![split(
                format!(r"[\s\S]{{{length}}}"),
                Behavior::Isolated,
                false,
            )]
        }
        _ => {
            let why = "is not supported; ByteLevel, Metaspace, Split, Digits, Punctuation, Whitespace, WhitespaceSplit, BertPreTokenizer, CharDelimiterSplit, FixedLength and Sequence are";
            return Err(step.get("type")?.refused(why));
        }
    })
}

fn read_behavior(field: &Field<'_>) -> Result<Behavior> {
    let name = field.text()?;
    let found = Behavior::NAMES.iter().find(|(known, _)| *known == name);
    let why = "must be one of Isolated, Removed, MergedWithPrevious, MergedWithNext, Contiguous";
    found
        .map(|(_, behavior)| *behavior)
        .ok_or_else(|| field.refused(why))
}

fn read_split(step: &Field<'_>) -> Result<Split> {
    let pattern = pattern(&step.need("pattern")?)?;
    let behavior = read_behavior(&step.need("behavior")?)?;
    let invert = step.need("invert")?.flag()?;
    let covers = || Ok::<_, FormatError>(published()?.covering.contains(&pattern));
    if behavior == Behavior::Isolated || (behavior == Behavior::Removed && invert && covers()?) {
        // "Isolated" keeps matches and the text between them, so `invert` has no effect. The patterns that cover
        // every text leave nothing between their matches.
        return Ok(split(pattern, Behavior::Isolated, false));
    }
    Ok(split(pattern, behavior, invert))
}

fn punctuation(behavior: Behavior) -> Result<Split> {
    let characters = published()?.punctuation;
    Ok(match behavior {
        Behavior::Contiguous => split(format!("[{characters}]+"), Behavior::Isolated, false),
        _ => split(format!("[{characters}]"), behavior, false),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_literal_pattern_has_its_text() {
        for text in ["a.b", "▁", " ", "[x]-(y)", "\\"] {
            assert_eq!(literal_text(&regex_escape(text)).as_deref(), Some(text));
        }
        assert_eq!(literal_text("a.b"), None);
        assert_eq!(literal_text(r"\d"), None);
    }
}
