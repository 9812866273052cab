//! The tokens of a tokenizer.json, and which of its added tokens belong to the core's vocabulary.
//!
//! As `tokens.py` and `added_tokens.py` of `python/bpe_tokenizer/formats/huggingface/`.

use super::document::TokenizerJson;
use crate::error::{FormatError, Result};
use crate::json::Field;
use bpe_tokenizer_core::error::quoted;
use bpe_tokenizer_core::model::{MergeIds, Vocabulary};
use bpe_tokenizer_core::normalizers::{Normalizer, Normalizers};
use bpe_tokenizer_core::special::AddedToken;
use bpe_tokenizer_core::text::{char_of_byte, from_printable, to_printable};
use rustc_hash::{FxHashMap, FxHashSet};

const MODEL_FIELDS: [&str; 10] = [
    "type",
    "dropout",
    "unk_token",
    "continuing_subword_prefix",
    "end_of_word_suffix",
    "fuse_unk",
    "byte_fallback",
    "ignore_merges",
    "vocab",
    "merges",
];

/// Whether a byte does not occur in UTF-8.
fn is_not_in_utf8(byte: u8) -> bool {
    matches!(byte, 0xc0 | 0xc1 | 0xf5..=0xff)
}

/// The token of byte fallback.
fn byte_token(byte: u8) -> String {
    format!("<0x{byte:02X}>")
}

/// The tokens, and the settings of the model.
pub struct Tokens {
    /// The token strings.
    pub strings: Vocabulary,
    pub merges: Vec<MergeIds>,
    /// The added tokens in the order of the file.
    pub added: Vec<AddedToken>,
    pub ignore_merges: bool,
    pub unk: Option<String>,
    pub fuse_unk: bool,
    pub byte_fallback: bool,
    /// Whether the token strings are printable bytes.
    pub in_bytes: bool,
}

/// White space to Python's `str.isspace`, which includes four control characters.
pub fn is_space(character: char) -> bool {
    character.is_whitespace() || ('\u{1c}'..='\u{1f}').contains(&character)
}

impl Tokens {
    /// Reads the vocabulary, the merges and the added tokens. `document` lacks what `json` has.
    pub fn read(document: &Field<'_>, json: TokenizerJson, in_bytes: bool) -> Result<Self> {
        let model = document.need("model")?;
        check_model(&model)?;
        let field = document.get("added_tokens")?;
        let added = match json.added {
            Some(added) => added.into_iter().map(AddedToken::from).collect(),
            None if field.is_null() => Vec::new(),
            None => return Err(field.error(
                "must be a list of tokens, each with its text once, all flags, and the id that Hugging Face tokenizers gives it; the Python package names the wrong one",
            )),
        };
        let unk = model.get("unk_token")?;
        let tokens = Self {
            strings: json.strings,
            merges: json.merges,
            added,
            ignore_merges: model.get("ignore_merges")?.flag_or(false)?,
            unk: match unk.is_null() {
                true => None,
                false => Some(unk.text()?.to_owned()),
            },
            fuse_unk: model.get("fuse_unk")?.flag_or(false)?,
            byte_fallback: model.get("byte_fallback")?.flag_or(false)?,
            in_bytes,
        };
        tokens.with_unknown(&model)
    }

    pub fn has(&self, token: &str) -> bool {
        self.id(token).is_some()
    }

    pub fn id(&self, token: &str) -> Option<u32> {
        self.strings.id(token.as_bytes())
    }

    /// Drops settings for unknown tokens that a vocabulary with every byte never needs; checks the others.
    fn with_unknown(mut self, model: &Field<'_>) -> Result<Self> {
        let has_byte = |byte: u8| self.has(&char_of_byte(byte).to_string());
        if self.in_bytes && (0..=255).all(has_byte) {
            (self.unk, self.byte_fallback) = (None, false);
            return Ok(self);
        }
        let has_byte_token = |byte: u8| self.has(&byte_token(byte));
        if self.in_bytes && self.byte_fallback && (0..=255).any(has_byte_token) {
            let why = "is not supported in a byte-level file that lacks bytes; set it to false";
            return Err(model.get("byte_fallback")?.refused(why));
        }
        if self.unk.as_ref().is_some_and(|unk| !self.has(unk)) {
            let why = "is not in model.vocab, where Hugging Face tokenizers needs it; set it to null to drop text without a token";
            return Err(model.get("unk_token")?.refused(why));
        }
        self.byte_fallback &= !self.in_bytes;
        Ok(self)
    }

    /// The added tokens that do not belong to the core's vocabulary.
    ///
    /// An added token is in `model.vocab` because it was reserved in training, or only to get its id. It belongs to the
    /// vocabulary if that leaves no hole in the ids: its id is at most the number of ordinary tokens and of added tokens
    /// with lower ids.
    pub fn outside_vocabulary(&self) -> FxHashSet<String> {
        let contents = self.added.iter();
        let contents = contents.filter_map(|token| {
            let content = token.content.as_str();
            Some((content, self.id(content)?))
        });
        let contents: FxHashMap<&str, u32> = contents.collect();
        let mut outside = self.outside(&contents);
        if !outside.is_empty() {
            let used = self.used(&contents);
            let mut rest = contents.clone();
            rest.retain(|content, _| !used.contains(*content));
            outside = self.outside(&rest);
        }
        if self.in_bytes {
            // Of two tokens with the same bytes the core's vocabulary holds the one that merges make.
            let others = contents.keys().filter(|content| {
                let written = to_printable(content.as_bytes());
                written != **content && self.has(&written)
            });
            outside.extend(others.copied());
        }
        outside.into_iter().map(str::to_owned).collect()
    }

    fn outside<'a>(&self, contents: &FxHashMap<&'a str, u32>) -> FxHashSet<&'a str> {
        let mut size = self.strings.len() - contents.len();
        let mut by_id: Vec<(u32, &str)> = contents.iter().map(|(it, id)| (*id, *it)).collect();
        by_id.sort_unstable();
        let mut outside = FxHashSet::default();
        for (id, content) in by_id {
            if id as usize <= size {
                size += 1;
            } else {
                outside.insert(content);
            }
        }
        outside
    }

    /// The tokens that encoding can give without matching an added token.
    fn used(&self, contents: &FxHashMap<&str, u32>) -> FxHashSet<String> {
        let ids: FxHashMap<u32, &str> = contents.iter().map(|(it, id)| (*id, *it)).collect();
        let parts = self.merges.iter();
        let parts = parts.flat_map(|&(left, right, product)| [left, right, product]);
        let merged = parts.filter_map(|id| ids.get(&id));
        let mut used: FxHashSet<String> = merged.map(|token| (*token).to_owned()).collect();
        used.extend((0..=255).map(byte_token));
        used.extend(self.unk.clone());
        let is_symbol = |content: &&str| {
            let mut characters = content.chars();
            characters.next().is_some() && characters.next().is_none()
        };
        let symbols = contents.keys().filter(|it| is_symbol(it)).filter(|it| {
            let byte = from_printable(it).and_then(|bytes| bytes.first().copied());
            !self.in_bytes || byte.is_some_and(|byte| !is_not_in_utf8(byte))
        });
        used.extend(symbols.map(|it| (*it).to_owned()));
        if self.ignore_merges {
            let plain = self.added.iter().filter(|token| !token.special);
            used.extend(plain.map(|token| token.content.clone()));
        }
        used
    }
}

fn check_model(model: &Field<'_>) -> Result<()> {
    if model.members()?.contains_key("type") && model.get("type")?.text()? != "BPE" {
        let why = "is not supported; only BPE models are";
        return Err(model.get("type")?.refused(why));
    }
    let mut names = model.members()?.keys();
    if let Some(unknown) = names.find(|name| !MODEL_FIELDS.contains(&name.as_str())) {
        let unknown = quoted(unknown);
        return Err(model.error(&format!("unknown field {unknown} in a BPE model")));
    }
    let dropout = model.get("dropout")?;
    if !dropout.is_null() && dropout.value.as_f64() != Some(0.0) {
        let why = "makes encoding random, which is not supported; set it to null";
        return Err(dropout.refused(why));
    }
    for name in ["continuing_subword_prefix", "end_of_word_suffix"] {
        let field = model.get(name)?;
        if !field.is_null() && !field.text()?.is_empty() {
            return Err(field.refused("is not supported; it must be null or empty"));
        }
    }
    Ok(())
}

/// Refuses added tokens whose text is also the spelling of other bytes in a byte-level vocabulary.
pub fn check_byte_spellings(field: &Field<'_>, tokens: &Tokens) -> Result<()> {
    for token in &tokens.added {
        let content = &token.content;
        let is_symbol = content.chars().count() == 1;
        let spells_others = !content.is_ascii()
            && (is_symbol || tokens.ignore_merges)
            && from_printable(content)
                .is_some_and(|bytes| !bytes.iter().any(|&byte| is_not_in_utf8(byte)));
        if spells_others && tokens.has(content) {
            let why = "is in model.vocab, where its text spells other bytes; one id cannot be both";
            return Err(refused(field, token, why));
        }
    }
    Ok(())
}

/// Refuses added tokens that the library finds at other places than this package. Returns the texts of the tokens that
/// normalisation changes, by id.
pub fn check_matching(
    field: &Field<'_>,
    added: &[AddedToken],
    normalizers: &[Normalizer],
    to_bytes: bool,
) -> Result<FxHashMap<u32, String>> {
    let (normalized, original): (Vec<&AddedToken>, Vec<_>) =
        added.iter().partition(|token| token.normalized);
    let original = original.into_iter().map(|it| (it, it.content.clone()));
    check_overlaps(field, &original.collect::<Vec<_>>())?;
    let steps = Normalizers::new(normalizers)?;
    let forms = normalized
        .into_iter()
        .map(|token| Ok((token, steps.of_str(&token.content)?)));
    let forms: Vec<(&AddedToken, String)> = forms.collect::<Result<_>>()?;
    let mut found = FxHashMap::default();
    for (token, form) in forms.iter().filter(|_| !normalizers.is_empty()) {
        if form.is_empty() {
            let why = "is empty after normalisation; set its normalized to false";
            return Err(refused(field, token, why));
        }
        if let Some(other) = found.insert(form.as_str(), *token) {
            let other = quoted(&other.content);
            let why = format!("is the same as {other} after normalisation");
            return Err(refused(field, token, &why));
        }
    }
    check_overlaps(field, &forms)?;
    if to_bytes {
        check_printable(field, &forms)?;
    }
    let changed = forms.into_iter();
    let changed = changed.filter(|(token, form)| *form != token.content);
    Ok(changed.map(|(token, form)| (token.id, form)).collect())
}

fn check_overlaps(field: &Field<'_>, texts: &[(&AddedToken, String)]) -> Result<()> {
    if !texts.iter().any(|(token, _)| token.rstrip) {
        return Ok(());
    }
    let mut texts = texts.iter();
    match texts.find(|(_, text)| text.starts_with(is_space)) {
        None => Ok(()),
        Some((token, _)) => Err(refused(
            field,
            token,
            "begins with white space, which another token strips (rstrip); this is not supported",
        )),
    }
}

/// Refuses tokens that mean something else among the printable characters of bytes.
fn check_printable(field: &Field<'_>, normalized: &[(&AddedToken, String)]) -> Result<()> {
    const AFTER: &str =
        "is not supported after the normalizer ByteLevel; set its normalized to false";
    for (token, text) in normalized {
        if token.single_word || token.lstrip || token.rstrip {
            let why = format!("has single_word, lstrip or rstrip, which {AFTER}");
            return Err(refused(field, token, &why));
        }
        if to_printable(text.as_bytes()) != *text {
            let why = format!("has characters that are not printable ASCII, which {AFTER}");
            return Err(refused(field, token, &why));
        }
    }
    Ok(())
}

fn refused(field: &Field<'_>, token: &AddedToken, why: &str) -> FormatError {
    field.error(&format!(
        "{} (id {}) {why}",
        quoted(&token.content),
        token.id
    ))
}
