//! The settings of a model as JSON: the keyword arguments of Python's `Model`, and a part of packed models.
//!
//! A step, a decoder or an added token is the array of the values of its named tuple in `bpe_tokenizer.model`.

use bpe_tokenizer_core::model::{Alphabet, Model, Settings, Spaces, Unknown};
use bpe_tokenizer_core::normalizers::Normalizer;
use bpe_tokenizer_core::pretokenize::PreTokenizer;
use bpe_tokenizer_core::special::AddedToken;
use bpe_tokenizer_core::Result;
use serde::Deserialize;

/// All settings. `python/bpe_tokenizer/_core.pyi` describes them.
#[derive(Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ModelSettings {
    /// The added tokens.
    pub added_tokens: Vec<AddedToken>,
    normalizers: Vec<Normalizer>,
    normalization: Option<String>,
    pre_tokenizers: Vec<PreTokenizer>,
    split_patterns: Vec<String>,
    add_prefix_space: bool,
    /// What merging begins with.
    pub alphabet: Alphabet,
    byte_fallback: bool,
    unk_id: Option<u32>,
    fuse_unk: bool,
    keeps_gaps: bool,
    requires_all_bytes: Option<bool>,
    ignore_merges: bool,
    decoder: Option<Spaces>,
}

impl ModelSettings {
    /// Builds and checks a model with these settings.
    ///
    /// # Errors
    ///
    /// The model is refused, lacks a byte that it must have, or the normalisation form is unknown.
    pub fn build(
        self,
        make: impl FnOnce(Settings, Vec<AddedToken>) -> Result<Model>,
    ) -> Result<Model> {
        let requires_all_bytes =
            self.requires_all_bytes.unwrap_or(true) && self.alphabet == Alphabet::Bytes;
        let form = self.normalization.map(|form| form.parse()).transpose()?;
        let form = form.map(Normalizer::Form);
        let prefix_space = self.add_prefix_space.then_some(PreTokenizer::PrefixSpace);
        let splits = self.split_patterns.into_iter();
        let splits = splits.map(PreTokenizer::isolated);
        let settings = Settings {
            normalizers: form.into_iter().chain(self.normalizers).collect(),
            pre_tokenizers: prefix_space
                .into_iter()
                .chain(splits)
                .chain(self.pre_tokenizers)
                .collect(),
            alphabet: self.alphabet,
            byte_fallback: self.byte_fallback,
            unknown: match self.unk_id {
                Some(id) => Unknown::Token {
                    id,
                    fuse: self.fuse_unk,
                },
                None if self.keeps_gaps => Unknown::Gap,
                None => Unknown::Dropped,
            },
            ignore_merges: self.ignore_merges,
            spaces: self.decoder,
        };
        let model = make(settings, self.added_tokens)?;
        if requires_all_bytes {
            model.require_bytes()?;
        }
        Ok(model)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bpe_tokenizer_core::model::{Strip, Vocabulary};
    use bpe_tokenizer_core::normalize::Normalization;
    use serde_json::Value;

    /// The message about settings that are refused.
    fn refused(json: &str) -> String {
        let read = serde_json::from_str::<ModelSettings>(json);
        read.err().expect(json).to_string()
    }

    #[test]
    fn settings_are_arrays_of_named_tuples() {
        let json = r#"{
            "added_tokens": [["<s>", 1, true, false, false, true, false]],
            "normalizers": [["NFC"], ["Strip", true, false], ["Prepend", "_"]],
            "pre_tokenizers": [["SplitBytes", "a", "Removed", true], ["Metaspace", "_", "first", false]],
            "add_prefix_space": true, "alphabet": "characters", "unk_id": 0, "decoder": ["_", true, "first"]
        }"#;
        let given: ModelSettings = serde_json::from_str(json).unwrap();
        let vocabulary = Vocabulary::new(vec![(0, b"a".to_vec())]).unwrap();
        let make = |settings, added| Model::with_merge_ids(vocabulary, Vec::new(), settings, added);
        let model = given.build(make).unwrap();
        let settings = model.settings();
        assert!(model.added()[0].rstrip && !model.added()[0].lstrip);
        assert_eq!(
            settings.normalizers,
            [
                Normalizer::Form(Normalization::Nfc),
                Normalizer::Strip {
                    left: true,
                    right: false
                },
                Normalizer::Prepend {
                    prepend: "_".to_owned()
                },
            ]
        );
        assert_eq!(settings.pre_tokenizers[0], PreTokenizer::PrefixSpace);
        assert!(matches!(
            settings.pre_tokenizers[1],
            PreTokenizer::SplitBytes(_)
        ));
        let strip = settings.spaces.as_ref().map(|spaces| spaces.strip);
        assert_eq!(strip, Some(Strip::FirstToken));
    }

    #[test]
    fn an_error_lists_the_known_names() {
        for (json, expected) in [
            (
                r#"{"alphabet": "runes"}"#,
                "expected `bytes` or `characters`",
            ),
            (
                r#"{"pre_tokenizers": [["Cut"]]}"#,
                "expected one of `Split`",
            ),
            (r#"{"normalizers": [["NFX"]]}"#, "NFC, NFD, NFKC, NFKD"),
            (
                r#"{"normalizers": [["Strip", true, 3]]}"#,
                "Strip (strip_left, strip_right)",
            ),
            (r#"{"decode": null}"#, "unknown field `decode`"),
        ] {
            let error = refused(json);
            assert!(error.contains(expected), "{error}");
        }
    }

    #[test]
    fn the_error_of_a_step_of_normalisation_has_all_names() {
        let error = refused(r#"{"normalizers": [["NFX"]]}"#);
        let steps: Vec<Normalizer> = serde_json::from_str(
            r#"[["NFC"], ["NFD"], ["NFKC"], ["NFKD"], ["Lowercase"], ["StripAccents"],
                ["Strip", true, true], ["Prepend", ""], ["Replace", "", ""]]"#,
        )
        .unwrap();
        for step in steps {
            // A new step must be in the list above, and in the error.
            match step {
                Normalizer::Form(_) | Normalizer::Lowercase | Normalizer::StripAccents => {}
                Normalizer::Strip { .. } | Normalizer::Prepend { .. } => {}
                Normalizer::Replace { .. } => {}
            }
            let Value::Object(fields) = serde_json::to_value(step).unwrap() else {
                panic!("a step is an object");
            };
            for (field, value) in &fields {
                let name = if field == "type" {
                    value.as_str().unwrap()
                } else {
                    field
                };
                assert!(error.contains(name), "{name}");
            }
        }
    }

    #[test]
    fn fields_that_are_unknown_or_missing_are_refused() {
        for json in [
            r#"{"normalizers": [{"type": "Strip", "strip_left": true, "strip_right": true, "x": 1}]}"#,
            r#"{"normalizers": [["Strip", true]]}"#,
            r#"{"pre_tokenizers": [{"type": "Split", "pattern": "a", "behavior": "Removed", "invert": true, "x": 1}]}"#,
            r#"{"pre_tokenizers": [["Split", "a", "Removed"]]}"#,
            r#"{"pre_tokenizers": [["Metaspace", "_", "first", false, 1]]}"#,
            r#"{"decoder": {"space": "_", "byte_fallback": true, "strip": "one", "x": 1}}"#,
            r#"{"decoder": ["_", true]}"#,
            r#"{"added_tokens": [["a", 4]]}"#,
        ] {
            refused(json);
        }
    }
}
