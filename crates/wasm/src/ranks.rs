//! Rank files of tiktoken, with what a file of ranks does not hold: the split pattern and the special tokens.

use bpe_tokenizer_core::model::{Model, Settings, Vocabulary};
use bpe_tokenizer_core::pretokenize::PreTokenizer;
use bpe_tokenizer_core::special::AddedToken;
use bpe_tokenizer_core::{Error, Result};
use serde::Deserialize;
use std::collections::BTreeMap;

/// What a file of ranks does not hold.
#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct Options {
    /// The split patterns, in the order in which they apply.
    patterns: Vec<String>,
    special_tokens: BTreeMap<String, u32>,
}

/// Reads a rank file.
pub fn read(data: &[u8], options: Options) -> Result<Model> {
    let vocabulary = parse(data)?;
    let added = options.special_tokens.into_iter();
    let mut added: Vec<AddedToken> = added
        .map(|(content, id)| AddedToken::special(content, id))
        .collect();
    added.sort_by_key(|token| token.id);
    // Special tokens that fill holes between the ranks belong to the vocabulary, as in a trained model.
    let mut tokens: Vec<(u32, Vec<u8>)> = Vec::new();
    for token in &added {
        let is_hole = token.id as usize <= vocabulary.len() + tokens.len()
            && vocabulary.token(token.id).is_none()
            && !tokens.iter().any(|(id, _)| *id == token.id);
        if is_hole && vocabulary.id(token.content.as_bytes()).is_none() {
            tokens.push((token.id, token.content.clone().into_bytes()));
        }
    }
    let vocabulary = if tokens.is_empty() {
        vocabulary
    } else {
        let ranks = vocabulary.iter().map(|(id, token)| (id, token.to_vec()));
        tokens.extend(ranks);
        Vocabulary::new(tokens)?
    };
    let settings = Settings {
        pre_tokenizers: options
            .patterns
            .into_iter()
            .map(PreTokenizer::isolated)
            .collect(),
        ..Settings::default()
    };
    let model = Model::from_ranks(vocabulary, settings, added)?;
    model.require_bytes()?;
    Ok(model)
}

fn parse(data: &[u8]) -> Result<Vocabulary> {
    let mut tokens = Vec::new();
    for (index, line) in data.split(|&byte| byte == b'\n').enumerate() {
        if line.trim_ascii().is_empty() {
            continue;
        }
        let (token, rank) = entry(line).ok_or_else(|| {
            let line = index + 1;
            Error::Model(format!(
                "line {line} of the rank file is not a token in base64, a space and a rank"
            ))
        })?;
        tokens.push((rank, token));
    }
    let vocabulary = Vocabulary::new(tokens)?;
    if vocabulary.has_duplicates() {
        let message = "two ranks of the rank file have the same token";
        return Err(Error::Model(message.to_owned()));
    }
    Ok(vocabulary)
}

/// The token and the rank of a line.
fn entry(line: &[u8]) -> Option<(Vec<u8>, u32)> {
    let mut fields = line
        .split(u8::is_ascii_whitespace)
        .filter(|it| !it.is_empty());
    let (token, rank) = (decode(fields.next()?)?, fields.next()?);
    let is_rank = rank.iter().all(u8::is_ascii_digit);
    if !is_rank || fields.next().is_some() {
        return None;
    }
    Some((token, std::str::from_utf8(rank).ok()?.parse().ok()?))
}

/// The bytes of base64.
fn decode(text: &[u8]) -> Option<Vec<u8>> {
    let padding = text.iter().rev().take_while(|&&byte| byte == b'=').count();
    if padding == text.len() && padding < 4 {
        return Some(Vec::new()); // the empty token, as Python's base64 reads it
    }
    if !text.len().is_multiple_of(4) || padding > 2 {
        return None;
    }
    let mut bytes = Vec::with_capacity(text.len() / 4 * 3);
    let (mut bits, mut count) = (0_u32, 0);
    for &byte in &text[..text.len() - padding] {
        let six = match byte {
            b'A'..=b'Z' => byte - b'A',
            b'a'..=b'z' => byte - b'a' + 26,
            b'0'..=b'9' => byte - b'0' + 52,
            b'+' => 62,
            b'/' => 63,
            _ => return None,
        };
        bits = bits << 6 | u32::from(six);
        count += 6;
        if count >= 8 {
            count -= 8;
            bytes.push((bits >> count) as u8);
        }
    }
    Some(bytes)
}
