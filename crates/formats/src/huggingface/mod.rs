//! Hugging Face's tokenizer.json: byte-level BPE, and BPE of characters with byte fallback, as SentencePiece has it.
//!
//! It accepts what the package's Python reader accepts, with the same ids, and refuses the rest by name. The fast reader
//! of the package reads the tokens and merges.

mod decoder;
pub mod document;
mod steps;
mod tokens;

use crate::error::{FormatError, Place, Result};
use crate::json::{Distinct, Field};
use bpe_tokenizer_core::error::{quoted, shorten};
use bpe_tokenizer_core::model::{Alphabet, Model, Settings, Unknown, Vocabulary};
use bpe_tokenizer_core::text::from_printable;
use document::TokenizerJson;
use rustc_hash::FxHashMap;
use serde_json::Value;
use std::borrow::Cow;
use tokens::{check_byte_spellings, check_matching, Tokens};

/// The name of the file in messages.
const FILE: &str = "tokenizer.json";

/// Whether a JSON file is a tokenizer.json.
pub fn is_tokenizer_json(data: &[u8]) -> bool {
    let document: serde_json::Result<Probe<'_>> = serde_json::from_slice(data);
    let model = document.ok().and_then(|document| document.model);
    // A vocab.json may have a token "model", whose value is its id.
    model.is_some_and(|model| model.get().starts_with('{'))
}

#[derive(serde::Deserialize)]
struct Probe<'a> {
    #[serde(borrow)]
    model: Option<&'a serde_json::value::RawValue>,
}

/// Reads a tokenizer.json.
pub fn read(data: &[u8]) -> Result<Model> {
    let Some(mut json) = TokenizerJson::parse(data) else {
        return Err(problem(data));
    };
    let rest = std::mem::take(&mut json.rest);
    let Distinct(document) = serde_json::from_str(&rest).map_err(|error| not_json(&error))?;
    let document = Field::root(FILE, &document);
    let (normalizers, to_bytes) = steps::read_normalizer(&document.get("normalizer")?)?;
    let (pre_tokenizers, in_bytes) =
        steps::read_pre_tokenizer(&document.get("pre_tokenizer")?, to_bytes)?;
    let tokens = Tokens::read(&document, json, in_bytes)?;
    let added_tokens = document.get("added_tokens")?;
    check_matching(&added_tokens, &tokens.added, &normalizers, to_bytes)?;
    if in_bytes {
        check_byte_spellings(&added_tokens, &tokens)?;
    }
    let spaces = match in_bytes {
        true => None,
        false => decoder::read_decoder(&document.get("decoder")?)?,
    };
    let unk_id = tokens.unk.as_deref().and_then(|unk| tokens.id(unk));
    let settings = Settings {
        normalizers,
        pre_tokenizers,
        alphabet: match in_bytes {
            true => Alphabet::Bytes,
            false => Alphabet::Characters,
        },
        byte_fallback: tokens.byte_fallback,
        unknown: match unk_id {
            Some(id) => Unknown::Token {
                id,
                fuse: tokens.fuse_unk,
            },
            None => Unknown::Dropped,
        },
        ignore_merges: tokens.ignore_merges,
        spaces,
    };
    let vocabulary = vocabulary(&tokens)?;
    Ok(Model::with_merge_ids(
        vocabulary,
        tokens.merges,
        settings,
        tokens.added,
    )?)
}

/// The core's vocabulary: the bytes of the token strings. An added token is its text.
fn vocabulary(tokens: &Tokens) -> Result<Vocabulary> {
    let outside = tokens.outside_vocabulary();
    let added = tokens.added.iter();
    let added: FxHashMap<&str, u32> = added.map(|it| (it.content.as_str(), it.id)).collect();
    let strings = tokens.strings.iter().filter_map(|(id, token)| {
        let string = std::str::from_utf8(token).unwrap_or_default();
        (!outside.contains(string)).then_some((id, string))
    });
    let vocabulary = Vocabulary::from_sorted(strings.map(|(id, string)| {
        if !tokens.in_bytes || added.get(string) == Some(&id) {
            return Ok((id, Cow::Borrowed(string.as_bytes())));
        }
        let bytes = from_printable(string).ok_or_else(|| {
            bpe_tokenizer_core::Error::Model(format!(
                "tokenizer.json: the token {} holds a character that has no byte value; this vocabulary is not byte-level",
                quoted(string)
            ))
        })?;
        Ok((id, Cow::Owned(bytes)))
    }));
    Ok(vocabulary?)
}

fn not_json(error: &serde_json::Error) -> FormatError {
    let error = shorten(&error.to_string(), 200);
    FormatError::new(FILE, Place::File, format!("it is not valid JSON: {error}"))
}

/// Why the fast reader does not read a file.
fn problem(data: &[u8]) -> FormatError {
    let document: Value = match serde_json::from_slice(data) {
        Ok(document) => document,
        Err(error) => return not_json(&error),
    };
    let field = Field::root(FILE, &document);
    let kind = document.pointer("/model/type").and_then(Value::as_str);
    match kind {
        Some(kind) if kind != "BPE" => field.error(&format!(
            "model.type: {} is not supported; only BPE models are",
            quoted(kind)
        )),
        _ => field.error(
            "its vocabulary or its merges are not as Hugging Face tokenizers writes them: distinct ids, and merges of two tokens each; the Python package names the wrong one",
        ),
    }
}
