//! What added tokens become when they are normalised.
//!
//! An added token with `normalized` matches the normal form of its text, and decodes to it, as in Hugging Face
//! `tokenizers` 0.23 (`AddedVocabulary::simple_id_to_token`).

use crate::error::Result;
use crate::normalizers::{Normalizer, Normalizers};
use crate::special::AddedToken;
use rustc_hash::{FxHashMap, FxHashSet};

/// The normal form of the text of an added token.
#[derive(Clone, Debug)]
pub struct NormalForm {
    /// The normalised text.
    pub text: String,
    /// Whether decoding leaves it out with the special tokens: the text is that of a special token.
    pub is_skipped: bool,
}

/// The normal forms of the added tokens that normalisation changes, by id.
pub fn normal_forms(
    steps: &[Normalizer],
    added: &[AddedToken],
) -> Result<FxHashMap<u32, NormalForm>> {
    let mut forms = FxHashMap::default();
    if steps.is_empty() || !added.iter().any(|token| token.normalized) {
        return Ok(forms);
    }
    let normalizers = Normalizers::new(steps)?;
    let special = added.iter().filter(|token| token.special);
    let special: FxHashSet<&str> = special.map(|token| token.content.as_str()).collect();
    for token in added.iter().filter(|token| token.normalized) {
        let text = normalizers.of_str(&token.content)?;
        if text != token.content {
            let is_skipped = special.contains(text.as_str());
            forms.insert(token.id, NormalForm { text, is_skipped });
        }
    }
    Ok(forms)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_normal_form_is_skipped_if_it_is_a_special_token() {
        let normalized = |content: &str, id, special| AddedToken {
            special,
            normalized: true,
            ..AddedToken::special(content, id)
        };
        let added = [
            AddedToken::special("<s>", 0),
            normalized("<S>", 1, false),
            normalized("<T>", 2, true),
            normalized("<u>", 3, true),
            AddedToken::special("<V>", 4),
        ];
        let forms = normal_forms(&[Normalizer::Lowercase], &added).unwrap();
        let mut forms: Vec<_> = forms
            .iter()
            .map(|(id, form)| (*id, form.text.as_str(), form.is_skipped))
            .collect();
        forms.sort_unstable();
        assert_eq!(forms, [(1, "<s>", true), (2, "<t>", false)]);
        assert!(normal_forms(&[], &added).unwrap().is_empty());
    }
}
