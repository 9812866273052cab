//! GPT-2's pair of files: vocab.json and merges.txt, or encoder.json and vocab.bpe.
//!
//! As `python/bpe_tokenizer/formats/gpt2/`, without the files that may be next to them.

use crate::files::Options;
use crate::settings::from_json;
use bpe_tokenizer_core::error::{quoted, shorten, utf8};
use bpe_tokenizer_core::model::{Model, Settings};
use bpe_tokenizer_core::pretokenize::PreTokenizer;
use bpe_tokenizer_core::special::AddedToken;
use bpe_tokenizer_core::text::{from_printable, to_printable};
use bpe_tokenizer_core::{Error, Result};
use bpe_tokenizer_formats::published::published;
use rustc_hash::{FxHashMap, FxHashSet};
use std::borrow::Cow;

type Vocab<'a> = FxHashMap<Cow<'a, str>, u32>;

/// Reads the two files.
pub fn read(vocab: &[u8], merges: &[u8], options: &Options) -> Result<Model> {
    let vocab: Vocab<'_> = from_json(vocab, "vocab.json: must be an object of tokens and ids")?;
    let merges = read_merges(merges, &vocab)?;
    let merged: FxHashSet<String> = merges
        .iter()
        .map(|(left, right)| format!("{left}{right}"))
        .collect();
    let unmerged = vocab.keys().map(AsRef::as_ref);
    let unmerged = unmerged.filter(|token| !merged.contains(*token) && token.chars().count() > 1);
    let unmerged: Vec<&str> = unmerged.collect();
    let added: Vec<AddedToken> = match &options.special_tokens {
        None => {
            let control = unmerged.iter().filter(|token| is_control_token(token));
            let control = control.map(|token| AddedToken::special(*token, vocab[*token]));
            control.collect()
        }
        Some(special) => {
            for (content, &id) in special {
                if let Some(&known) = vocab.get(content.as_str()).filter(|&&known| known != id) {
                    return Err(Error::Model(format!(
                        "special token {} has the id {known} in the vocabulary, not {id}",
                        quoted(content)
                    )));
                }
            }
            let special = special.iter();
            special
                .map(|(content, &id)| AddedToken::special(content, id))
                .collect()
        }
    };
    let contents: FxHashMap<&str, u32> = added
        .iter()
        .map(|it| (it.content.as_str(), it.id))
        .collect();
    let mut tokens = Vec::new();
    for (token, &id) in &vocab {
        if contents.get(token.as_ref()) == Some(&id) {
            // Of two tokens with the same bytes, encoding would find only the lower id.
            let written = to_printable(token.as_bytes());
            let is_double = written != *token && vocab.contains_key(written.as_str());
            if merged.contains(token.as_ref()) || !is_double {
                tokens.push((id, token.as_bytes().to_vec()));
            }
            continue;
        }
        tokens.push((id, bytes_of(token)?));
    }
    let merges = merges
        .iter()
        .map(|(left, right)| Ok((bytes_of(left)?, bytes_of(right)?)));
    let merges = merges.collect::<Result<Vec<_>>>()?;
    let pattern = match &options.pattern {
        Some(pattern) => pattern.clone(),
        None => published()?.gpt2,
    };
    let settings = Settings {
        pre_tokenizers: vec![PreTokenizer::isolated(pattern)],
        ..Settings::default()
    };
    let model = Model::new(tokens, Some(&merges), settings, added)?;
    model.require_bytes()?;
    Ok(model)
}

fn bytes_of(token: &str) -> Result<Vec<u8>> {
    from_printable(token).ok_or_else(|| {
        Error::Model(format!(
            "vocab.json: {} has a character outside the 256 printable bytes, and is not a special token; name it in specialTokens if it is one",
            quoted(token)
        ))
    })
}

/// The merges in the order of their ranks. Of duplicate ones the last counts.
fn read_merges<'a>(data: &'a [u8], vocab: &Vocab<'_>) -> Result<Vec<(&'a str, &'a str)>> {
    let text = utf8(data, 0, || "merges.txt".to_owned())?;
    let mut merges = Vec::new();
    for (index, line) in text.split('\n').enumerate() {
        let line = line.strip_suffix('\r').unwrap_or(line);
        if line.is_empty() || (index == 0 && line.starts_with("#version")) {
            continue;
        }
        let wrong = |problem: &str| {
            let (number, line) = (index + 1, shorten(line, 40));
            Error::Model(format!("merges.txt, line {number}: {line:?} {problem}"))
        };
        let pair = line.split_once(' ');
        let pair = pair
            .filter(|(left, right)| !left.is_empty() && !right.is_empty() && !right.contains(' '));
        let (left, right) = pair.ok_or_else(|| wrong("is not two tokens and a space"))?;
        for token in [left, right, &format!("{left}{right}")] {
            if !vocab.contains_key(token) {
                return Err(wrong("has a token that is not in the vocabulary"));
            }
        }
        merges.push((left, right));
    }
    let mut seen = FxHashSet::default();
    merges.reverse();
    merges.retain(|merge| seen.insert(*merge));
    merges.reverse();
    Ok(merges)
}

/// Whether a token looks like a special one: `<...>`, `<|...|>` or `[...]`, without white space.
fn is_control_token(token: &str) -> bool {
    if token.contains(|c: char| c.is_whitespace() || ('\u{1c}'..='\u{1f}').contains(&c)) {
        return false;
    }
    let inside = |start: &str, end: &str| {
        let inside = token.strip_prefix(start)?.strip_suffix(end)?;
        (!inside.is_empty()).then_some(inside)
    };
    inside("<", ">").is_some_and(|it| !it.contains(['<', '>']))
        || inside("<|", "|>").is_some()
        || inside("[", "]").is_some_and(|it| !it.contains(['[', ']']))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn control_tokens_have_brackets() {
        for token in [
            "<s>", "<|end of", "<|a<b>|>", "[PAD]", "<>", "[a b]", "<|>", "a<s>",
        ] {
            let expected = ["<s>", "<|a<b>|>", "[PAD]", "<|>"].contains(&token);
            assert_eq!(is_control_token(token), expected, "{token}");
        }
    }
}
