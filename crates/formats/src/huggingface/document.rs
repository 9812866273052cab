//! A fast reader for the tokens, merges and added tokens of a tokenizer.json, and for the added tokens of a
//! tokenizer_config.json.
//!
//! It reports no errors. It returns None for a file with anything unusual. The caller, the binding or the page's core,
//! then reads the file with another reader, which reports what is wrong.

use bpe_tokenizer_core::model::{MergeIds, Vocabulary};
use bpe_tokenizer_core::special;
use rustc_hash::{FxBuildHasher, FxHashSet};
use serde::de::{DeserializeSeed, Deserializer, Error, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde::Deserialize;
use serde_json::value::RawValue;
use std::borrow::Cow;
use std::fmt;

/// The content of a tokenizer.json.
pub struct TokenizerJson {
    /// The text without the tokens and merges.
    pub rest: String,
    /// The strings of the tokens, as bytes.
    pub strings: Vocabulary,
    /// The merges in order of rank.
    pub merges: Vec<MergeIds>,
    /// The added tokens in the order of the file, if all are usual and have the ids that Hugging Face `tokenizers` gives
    /// them. The rest then holds an empty list.
    pub added: Option<Vec<AddedToken>>,
}

/// A tokenizer_config.json.
pub struct TokenizerConfig {
    /// The text without the members of `added_tokens_decoder`.
    pub rest: String,
    /// These members, in the order of their ids.
    pub added: Vec<AddedToken>,
}

impl TokenizerConfig {
    /// Reads a file with a usual `added_tokens_decoder`.
    pub fn parse(data: &[u8]) -> Option<Self> {
        let mut json = serde_json::Deserializer::from_slice(data);
        let document = DocumentVisitor { part: Part::Config };
        let document = document.deserialize(&mut json).ok()?;
        json.end().ok()?;
        let Decoder(mut added) = serde_json::from_str(document.added?).ok()?;
        added.sort_by_key(|token| token.id);
        let is_ascending = added.is_sorted_by(|one, next| one.id < next.id);
        let rest = document.rest;
        is_ascending.then_some(Self { rest, added })
    }
}

impl TokenizerJson {
    /// Reads a file.
    pub fn parse(data: &[u8]) -> Option<Self> {
        let mut json = serde_json::Deserializer::from_slice(data);
        let document = DocumentVisitor { part: Part::Whole };
        let document = document.deserialize(&mut json).ok()?;
        json.end().ok()?;
        let (vocab, merges) = (document.vocab?, document.merges?);
        let mut read = Self::new(document.rest, vocab, merges)?;
        if let Some(added) = document.added {
            read.added = serde_json::from_str(added).ok();
            read.added = read
                .added
                .filter(|added| has_usual_ids(added, &read.strings));
            let added = if read.added.is_some() { "[]" } else { added };
            read.rest.truncate(read.rest.len() - 1);
            member(&mut read.rest, "added_tokens", added);
            read.rest.push('}');
        }
        Some(read)
    }

    fn new(rest: String, vocab: Vocab<'_>, merges: Merges<'_>) -> Option<Self> {
        let Vocab(mut tokens) = vocab;
        tokens.sort_by_key(|(id, _)| *id);
        let tokens = tokens.iter().map(|(id, token)| Ok((*id, token.as_bytes())));
        let strings = Vocabulary::from_sorted(tokens).ok()?;
        if strings.has_duplicates() {
            return None;
        }
        let mut product = Vec::new();
        let resolved = merges.0.iter().map(|(left, right)| {
            product.clear();
            product.extend_from_slice(left.as_bytes());
            product.extend_from_slice(right.as_bytes());
            let id = |token: &[u8]| strings.id(token);
            Some((id(left.as_bytes())?, id(right.as_bytes())?, id(&product)?))
        });
        let mut merges: Vec<MergeIds> = resolved.collect::<Option<_>>()?;
        // Of duplicate pairs the last one counts.
        let mut seen = FxHashSet::with_capacity_and_hasher(merges.len(), FxBuildHasher);
        merges.reverse();
        merges.retain(|&(left, right, _)| seen.insert((left, right)));
        merges.reverse();
        Some(Self {
            rest,
            strings,
            merges,
            added: None,
        })
    }
}

/// Whether added tokens have the ids that Hugging Face `tokenizers` gives them.
fn has_usual_ids(added: &[AddedToken], strings: &Vocabulary) -> bool {
    let mut next = strings.len() as u32;
    let mut seen = FxHashSet::with_capacity_and_hasher(added.len(), FxBuildHasher);
    added.iter().all(|token| {
        let id = strings.id(token.content.as_bytes()).unwrap_or_else(|| {
            next += 1;
            next - 1
        });
        !token.content.is_empty() && token.id == id && seen.insert(token.content.as_str())
    })
}

/// An added token of a tokenizer.json.
#[derive(Clone, Debug, Deserialize, PartialEq)]
#[serde(deny_unknown_fields)]
#[allow(missing_docs)] // the members of a file
pub struct AddedToken {
    pub id: u32,
    pub content: String,
    pub single_word: bool,
    pub lstrip: bool,
    pub rstrip: bool,
    pub normalized: bool,
    pub special: bool,
}

impl From<AddedToken> for special::AddedToken {
    fn from(token: AddedToken) -> Self {
        Self {
            content: token.content,
            id: token.id,
            special: token.special,
            single_word: token.single_word,
            lstrip: token.lstrip,
            rstrip: token.rstrip,
            normalized: token.normalized,
        }
    }
}

/// An entry of `added_tokens_decoder`, whose key is the id.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct DecoderEntry {
    content: String,
    single_word: bool,
    lstrip: bool,
    rstrip: bool,
    normalized: bool,
    special: bool,
}

/// The tokens of `added_tokens_decoder` in the order of the file.
struct Decoder(Vec<AddedToken>);

impl<'de> Deserialize<'de> for Decoder {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(DecoderVisitor)
    }
}

struct DecoderVisitor;

impl<'de> Visitor<'de> for DecoderVisitor {
    type Value = Decoder;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ids and added tokens")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let mut tokens = Vec::new();
        while let Some((JsonStr(key), entry)) = map.next_entry::<JsonStr<'de>, DecoderEntry>()? {
            let id: u32 = key.parse().map_err(A::Error::custom)?;
            if id.to_string() != key {
                return Err(A::Error::custom("not the usual spelling of an id"));
            }
            tokens.push(AddedToken {
                id,
                content: entry.content,
                single_word: entry.single_word,
                lstrip: entry.lstrip,
                rstrip: entry.rstrip,
                normalized: entry.normalized,
                special: entry.special,
            });
        }
        Ok(Decoder(tokens))
    }
}

/// A tokenizer.json: its tokens and merges, and the text of the rest.
#[derive(Default)]
struct Document<'a> {
    rest: String,
    vocab: Option<Vocab<'a>>,
    merges: Option<Merges<'a>>,
    /// The text of the added tokens.
    added: Option<&'a str>,
}

/// Appends a member to the text of an object that is not closed yet.
fn member(object: &mut String, key: &str, value: &str) {
    if !object.ends_with('{') {
        object.push(',');
    }
    object.push_str(&serde_json::Value::from(key).to_string());
    object.push(':');
    object.push_str(value);
}

/// What a visitor reads.
#[derive(Clone, Copy, PartialEq)]
enum Part {
    /// A tokenizer.json.
    Whole,
    /// Its `model`.
    Model,
    /// A tokenizer_config.json.
    Config,
}

struct DocumentVisitor {
    part: Part,
}

impl<'de> DeserializeSeed<'de> for DocumentVisitor {
    type Value = Document<'de>;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Self::Value, D::Error> {
        deserializer.deserialize_map(self)
    }
}

impl<'de> Visitor<'de> for DocumentVisitor {
    type Value = Document<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a tokenizer.json")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let mut document = Document {
            rest: "{".to_owned(),
            ..Document::default()
        };
        while let Some(key) = map.next_key::<Cow<'de, str>>()? {
            let rest = &mut document.rest;
            match (self.part, key.as_ref()) {
                (Part::Whole, "model") if document.vocab.is_none() => {
                    let model = map.next_value_seed(Self { part: Part::Model })?;
                    member(rest, "model", &model.rest);
                    (document.vocab, document.merges) = (model.vocab, model.merges);
                }
                (Part::Model, "vocab") if document.vocab.is_none() => {
                    document.vocab = Some(map.next_value()?);
                    member(rest, "vocab", "{}");
                }
                (Part::Model, "merges") if document.merges.is_none() => {
                    document.merges = Some(map.next_value()?);
                    member(rest, "merges", "[]");
                }
                (Part::Whole, "added_tokens") if document.added.is_none() => {
                    document.added = Some(map.next_value::<&RawValue>()?.get());
                }
                (Part::Config, "added_tokens_decoder") if document.added.is_none() => {
                    document.added = Some(map.next_value::<&RawValue>()?.get());
                    member(rest, "added_tokens_decoder", "{}");
                }
                (Part::Whole, "model" | "added_tokens")
                | (Part::Model, "vocab" | "merges")
                | (Part::Config, "added_tokens_decoder") => {
                    return Err(A::Error::custom("duplicate member"));
                }
                (_, key) => member(rest, key, map.next_value::<&RawValue>()?.get()),
            }
        }
        document.rest.push('}');
        Ok(document)
    }
}

/// Ids and tokens in the order of the file.
struct Vocab<'a>(Vec<(u32, Cow<'a, str>)>);

impl<'de> Deserialize<'de> for Vocab<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(VocabVisitor)
    }
}

struct VocabVisitor;

impl<'de> Visitor<'de> for VocabVisitor {
    type Value = Vocab<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("tokens and ids")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let mut tokens = Vec::new();
        while let Some((JsonStr(token), id)) = map.next_entry::<JsonStr<'de>, u32>()? {
            tokens.push((id, token));
        }
        Ok(Vocab(tokens))
    }
}

type Pair<'a> = (Cow<'a, str>, Cow<'a, str>);

/// Pairs of tokens: all as arrays, or all as "left right".
struct Merges<'a>(Vec<Pair<'a>>);

impl<'de> Deserialize<'de> for Merges<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_seq(MergesVisitor)
    }
}

struct MergesVisitor;

impl<'de> Visitor<'de> for MergesVisitor {
    type Value = Merges<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("merges")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Self::Value, A::Error> {
        let (mut merges, mut arrays, mut strings) = (Vec::new(), 0, 0);
        while let Some(merge) = seq.next_element::<Merge<'de>>()? {
            match merge {
                Merge::Pair(pair) => {
                    arrays += 1;
                    merges.push(pair);
                }
                Merge::Joined(pair) => {
                    strings += 1;
                    merges.extend(pair);
                }
            }
        }
        if arrays > 0 && strings > 0 {
            return Err(A::Error::custom("merges of two kinds"));
        }
        Ok(Merges(merges))
    }
}

enum Merge<'a> {
    Pair(Pair<'a>),
    /// "left right"; None for the line with the file's version.
    Joined(Option<Pair<'a>>),
}

impl<'de> Deserialize<'de> for Merge<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(MergeVisitor)
    }
}

struct MergeVisitor;

impl MergeVisitor {
    fn split<E: Error>(merge: &str) -> Result<Option<(&str, &str)>, E> {
        if merge.starts_with("#version") {
            return Ok(None);
        }
        match merge.split_once(' ') {
            Some((left, right)) if !right.contains(' ') => Ok(Some((left, right))),
            _ => Err(E::custom("not a merge")),
        }
    }
}

impl<'de> Visitor<'de> for MergeVisitor {
    type Value = Merge<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a merge")
    }

    fn visit_borrowed_str<E: Error>(self, merge: &'de str) -> Result<Self::Value, E> {
        let pair = Self::split(merge)?;
        Ok(Merge::Joined(
            pair.map(|(left, right)| (left.into(), right.into())),
        ))
    }

    fn visit_str<E: Error>(self, merge: &str) -> Result<Self::Value, E> {
        let pair = Self::split(merge)?;
        let owned = |part: &str| Cow::Owned(part.to_owned());
        Ok(Merge::Joined(
            pair.map(|(left, right)| (owned(left), owned(right))),
        ))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Self::Value, A::Error> {
        let mut part = || seq.next_element::<JsonStr<'de>>();
        let (Some(JsonStr(left)), Some(JsonStr(right))) = (part()?, part()?) else {
            return Err(A::Error::custom("not a pair"));
        };
        match seq.next_element::<IgnoredAny>()? {
            None => Ok(Merge::Pair((left, right))),
            Some(_) => Err(A::Error::custom("more than a pair")),
        }
    }
}

/// A string that is copied only if it has escapes.
#[derive(Deserialize)]
struct JsonStr<'a>(#[serde(borrow)] Cow<'a, str>);
