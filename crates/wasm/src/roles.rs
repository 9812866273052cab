//! The special tokens by role, as `find_roles` of `python/bpe_tokenizer/special_tokens.py` finds them.

use bpe_tokenizer_core::{Model, Result};
use bpe_tokenizer_formats::published::published;
use std::collections::BTreeMap;

/// The text of the token of each role that has one. The first name that a token's text contains as a word decides; of
/// several such tokens, the one with the smallest id.
pub fn find_roles(model: &Model) -> Result<BTreeMap<String, String>> {
    let special = model.added().iter().filter(|token| token.special);
    let contents: Vec<(&str, String)> = special
        .map(|token| (token.content.as_str(), token.content.to_ascii_lowercase()))
        .collect();
    let mut roles = BTreeMap::new();
    for (role, names) in published()?.roles {
        let found = names.iter().find_map(|name| {
            let holds = |(_, content): &&(&str, String)| has_word(content, name);
            contents.iter().find(holds)
        });
        if let Some((content, _)) = found {
            roles.insert(role, (*content).to_owned());
        }
    }
    Ok(roles)
}

/// Whether a text in lower case contains a name that no letter of ASCII touches.
fn has_word(text: &str, name: &str) -> bool {
    let is_letter = |byte: Option<&u8>| byte.is_some_and(u8::is_ascii_lowercase);
    text.match_indices(name).any(|(start, _)| {
        let (before, after) = (
            &text.as_bytes()[..start],
            &text.as_bytes()[start + name.len()..],
        );
        !is_letter(before.last()) && !is_letter(after.first())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_a_word() {
        assert!(has_word("<|end_of_text|>", "end_of_text"));
        assert!(!has_word("<|videos|>", "eos"));
        assert!(has_word("<|videos|><eos>", "eos"));
    }
}
