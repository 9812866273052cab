//! The decoder of a tokenizer.json. As `decoder.py` of `python/bpe_tokenizer/formats/huggingface/`.

use super::steps::{literal_text, pattern};
use crate::error::Result;
use crate::json::Field;
use bpe_tokenizer_core::error::shorten;
use bpe_tokenizer_core::model::{Spaces, Strip};

/// Reads the decoder of a file whose tokens are characters. A byte-level file needs none: decoding is not offered, and the
/// bytes of its tokens are known.
pub fn read_decoder(field: &Field<'_>) -> Result<Option<Spaces>> {
    let mut spaces = Spaces {
        space: ' ',
        byte_fallback: false,
        strip: Strip::No,
    };
    if field.is_null() {
        spaces.strip = Strip::Joined;
        return Ok(Some(spaces));
    }
    let steps = field.steps("decoders")?;
    if let [only] = steps.as_slice() {
        if only.kind()? == "Metaspace" {
            spaces.space = only.need("replacement")?.character()?;
            if only.get("prepend_scheme")?.value.as_str() != Some("never") {
                spaces.strip = Strip::FirstToken;
            }
            return Ok(Some(spaces));
        }
    }
    let mut rest = steps.iter().peekable();
    let mut next = |kind: &str| {
        let is_next = rest
            .peek()
            .is_some_and(|step| step.kind().ok() == Some(kind));
        is_next.then(|| rest.next()).flatten()
    };
    if let Some(step) = next("Replace") {
        spaces.space = read_space(step)?;
    }
    spaces.byte_fallback = next("ByteFallback").is_some();
    if next("Fuse").is_some() {
        if let Some(step) = next("Strip") {
            spaces.strip = read_strip(step)?;
        }
    }
    if let Some(step) = rest.next() {
        return Err(step.error(&format!(
            "{} is not supported here; use Metaspace alone, or a Sequence of Replace, ByteFallback, Fuse and Strip in this order (all optional; Strip needs Fuse)",
            shorten(step.kind()?, 30)
        )));
    }
    let is_usual = spaces.space == ' ' && !spaces.byte_fallback && spaces.strip == Strip::No;
    Ok((!is_usual).then_some(spaces))
}

fn read_space(step: &Field<'_>) -> Result<char> {
    let field = step.need("pattern")?;
    let text = literal_text(&pattern(&field)?).unwrap_or_default();
    let mut characters = text.chars();
    let (Some(space), None) = (characters.next(), characters.next()) else {
        let why = "is not supported in a decoder; it must be one character";
        return Err(field.refused(why));
    };
    let content = step.need("content")?;
    if content.text()? != " " {
        return Err(content.refused("is not supported in a decoder; it must be a space"));
    }
    Ok(space)
}

fn read_strip(step: &Field<'_>) -> Result<Strip> {
    let content = step.need("content")?.text()?;
    let (start, stop) = (step.need("start")?.id()?, step.need("stop")?.id()?);
    match (content, start, stop) {
        (_, 0, 0) => Ok(Strip::No),
        (" ", 1, 0) => Ok(Strip::One),
        _ => Err(step.refused("is not supported; it must strip one space at the start")),
    }
}
