//! Rank files of tiktoken, with what a file of ranks does not hold: the split pattern and the special tokens.

use bpe_tokenizer_core::model::{Model, Settings, Vocabulary};
use bpe_tokenizer_core::pretokenize::PreTokenizer;
use bpe_tokenizer_core::special::AddedToken;
use bpe_tokenizer_core::Result;
use bpe_tokenizer_formats::ranks;
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
    let vocabulary = ranks::read("", data)?;
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
