//! Settings as JSON: the fields are those of the named tuples of `python/bpe_tokenizer/model.py`.

use bpe_tokenizer_core::error::shorten;
use bpe_tokenizer_core::model::{Alphabet, Settings, Spaces, Strip, Unknown};
use bpe_tokenizer_core::normalizers::Normalizer;
use bpe_tokenizer_core::pretokenize::{Behavior, Metaspace, PreTokenizer, Prepend, Split};
use bpe_tokenizer_core::special::AddedToken;
use bpe_tokenizer_core::{Error, Result};
use serde::Deserialize;
use std::collections::BTreeMap;

/// The settings of a packed model.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PackedSettings {
    added_tokens: Vec<(String, u32, bool, bool, bool, bool, bool)>,
    normalizers: Vec<PackedNormalizer>,
    pre_tokenizers: Vec<PackedPreTokenizer>,
    alphabet: PackedAlphabet,
    byte_fallback: bool,
    unk_id: Option<u32>,
    fuse_unk: bool,
    keeps_gaps: bool,
    requires_all_bytes: bool,
    ignore_merges: bool,
    decoder: Option<PackedDecoder>,
    /// The special tokens by role.
    #[serde(default)]
    pub roles: BTreeMap<String, String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "lowercase")]
enum PackedAlphabet {
    Bytes,
    Characters,
}

#[derive(Deserialize)]
#[serde(tag = "type", deny_unknown_fields)]
enum PackedNormalizer {
    #[serde(rename = "NFC")]
    Nfc {},
    #[serde(rename = "NFD")]
    Nfd {},
    #[serde(rename = "NFKC")]
    Nfkc {},
    #[serde(rename = "NFKD")]
    Nfkd {},
    Lowercase {},
    StripAccents {},
    Strip {
        strip_left: bool,
        strip_right: bool,
    },
    Prepend {
        prepend: String,
    },
    Replace {
        pattern: String,
        content: String,
    },
}

#[derive(Deserialize)]
#[serde(tag = "type", deny_unknown_fields)]
enum PackedPreTokenizer {
    Split {
        pattern: String,
        behavior: PackedBehavior,
        invert: bool,
    },
    SplitBytes {
        pattern: String,
        behavior: PackedBehavior,
        invert: bool,
    },
    PrefixSpace {},
    Metaspace {
        replacement: char,
        prepend_scheme: PackedPrepend,
        split: bool,
    },
}

#[derive(Clone, Copy, Deserialize)]
enum PackedBehavior {
    Isolated,
    Removed,
    MergedWithPrevious,
    MergedWithNext,
    Contiguous,
}

#[derive(Clone, Copy, Deserialize)]
#[serde(rename_all = "lowercase")]
enum PackedPrepend {
    Always,
    First,
    Never,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct PackedDecoder {
    space: char,
    byte_fallback: bool,
    strip: PackedStrip,
}

#[derive(Clone, Copy, Deserialize)]
#[serde(rename_all = "lowercase")]
enum PackedStrip {
    None,
    One,
    First,
    Joined,
}

impl PackedSettings {
    /// The settings of a model, its added tokens, and whether it must have a token for each byte.
    pub fn into_core(self) -> Result<(Settings, Vec<AddedToken>, bool)> {
        let normalizers = self.normalizers.into_iter().map(normalizer);
        let settings = Settings {
            normalizers: normalizers.collect::<Result<_>>()?,
            pre_tokenizers: self.pre_tokenizers.into_iter().map(pre_tokenizer).collect(),
            alphabet: match self.alphabet {
                PackedAlphabet::Bytes => Alphabet::Bytes,
                PackedAlphabet::Characters => Alphabet::Characters,
            },
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
            spaces: self.decoder.map(|decoder| Spaces {
                space: decoder.space,
                byte_fallback: decoder.byte_fallback,
                strip: match decoder.strip {
                    PackedStrip::None => Strip::No,
                    PackedStrip::One => Strip::One,
                    PackedStrip::First => Strip::FirstToken,
                    PackedStrip::Joined => Strip::Joined,
                },
            }),
        };
        let added = self.added_tokens.into_iter().map(
            |(content, id, special, single_word, lstrip, rstrip, normalized)| AddedToken {
                content,
                id,
                special,
                single_word,
                lstrip,
                rstrip,
                normalized,
            },
        );
        let requires_all_bytes =
            self.requires_all_bytes && matches!(settings.alphabet, Alphabet::Bytes);
        Ok((settings, added.collect(), requires_all_bytes))
    }
}

fn normalizer(step: PackedNormalizer) -> Result<Normalizer> {
    let form = |name: &str| Ok(Normalizer::Form(name.parse()?));
    match step {
        PackedNormalizer::Nfc {} => form("NFC"),
        PackedNormalizer::Nfd {} => form("NFD"),
        PackedNormalizer::Nfkc {} => form("NFKC"),
        PackedNormalizer::Nfkd {} => form("NFKD"),
        PackedNormalizer::Lowercase {} => Ok(Normalizer::Lowercase),
        PackedNormalizer::StripAccents {} => Ok(Normalizer::StripAccents),
        PackedNormalizer::Strip {
            strip_left: left,
            strip_right: right,
        } => Ok(Normalizer::Strip { left, right }),
        PackedNormalizer::Prepend { prepend } => Ok(Normalizer::Prepend(prepend)),
        PackedNormalizer::Replace { pattern, content } => {
            Ok(Normalizer::Replace { pattern, content })
        }
    }
}

fn pre_tokenizer(step: PackedPreTokenizer) -> PreTokenizer {
    let split = |pattern, behavior, invert, bytes| {
        PreTokenizer::Split(Split {
            pattern,
            behavior: match behavior {
                PackedBehavior::Isolated => Behavior::Isolated,
                PackedBehavior::Removed => Behavior::Removed,
                PackedBehavior::MergedWithPrevious => Behavior::MergedWithPrevious,
                PackedBehavior::MergedWithNext => Behavior::MergedWithNext,
                PackedBehavior::Contiguous => Behavior::Contiguous,
            },
            invert,
            bytes,
        })
    };
    match step {
        PackedPreTokenizer::Split {
            pattern,
            behavior,
            invert,
        } => split(pattern, behavior, invert, false),
        PackedPreTokenizer::SplitBytes {
            pattern,
            behavior,
            invert,
        } => split(pattern, behavior, invert, true),
        PackedPreTokenizer::PrefixSpace {} => PreTokenizer::PrefixSpace,
        PackedPreTokenizer::Metaspace {
            replacement,
            prepend_scheme,
            split,
        } => PreTokenizer::Metaspace(Metaspace {
            replacement,
            prepend: match prepend_scheme {
                PackedPrepend::Always => Prepend::Always,
                PackedPrepend::First => Prepend::First,
                PackedPrepend::Never => Prepend::Never,
            },
            split,
        }),
    }
}

/// Reads JSON; the error says what it should be.
pub fn from_json<'a, T: Deserialize<'a>>(json: &'a [u8], what: &str) -> Result<T> {
    serde_json::from_slice(json).map_err(|error| {
        // The message may repeat a long value.
        Error::Model(format!("{what}: {}", shorten(&error.to_string(), 200)))
    })
}
