//! A fast reader for the tokens and merges of a tokenizer.json.
//!
//! It reports no errors. It returns None for a file with anything unusual; the json module then reads the file and
//! reports what is wrong.
//!
//! Nothing here knows Python: the fuzz target `tokenizer_json` includes this file.

use bpe_tokenizer_core::model::{MergeIds, Vocabulary};
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
}

impl TokenizerJson {
    /// Reads a file.
    pub fn parse(data: &[u8]) -> Option<Self> {
        let mut json = serde_json::Deserializer::from_slice(data);
        let document = DocumentVisitor { in_model: false };
        let document = document.deserialize(&mut json).ok()?;
        json.end().ok()?;
        Self::new(document.rest, document.vocab?, document.merges?)
    }

    fn new(rest: String, vocab: Vocab<'_>, merges: Merges<'_>) -> Option<Self> {
        let Vocab(mut tokens) = vocab;
        tokens.sort_by_key(|(id, _)| *id);
        let count = tokens.len();
        let tokens = tokens.iter().map(|(id, token)| Ok((*id, token.as_bytes())));
        let strings = Vocabulary::from_sorted(tokens).ok()?;
        let indexed = strings.iter();
        if count
            != indexed
                .filter(|(id, token)| strings.id(token) == Some(*id))
                .count()
        {
            return None; // a duplicate token
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
        })
    }
}

/// A tokenizer.json: its tokens and merges, and the text of the rest.
#[derive(Default)]
struct Document<'a> {
    rest: String,
    vocab: Option<Vocab<'a>>,
    merges: Option<Merges<'a>>,
}

impl<'a> Document<'a> {
    /// Appends a member to the rest.
    fn member(&mut self, key: &str, value: &str) {
        if !self.rest.ends_with('{') {
            self.rest.push(',');
        }
        self.rest
            .push_str(&serde_json::Value::from(key).to_string());
        self.rest.push(':');
        self.rest.push_str(value);
    }
}

/// Reads a tokenizer.json, or its `model`.
struct DocumentVisitor {
    in_model: bool,
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
            match (self.in_model, key.as_ref()) {
                (false, "model") if document.vocab.is_none() => {
                    let model = map.next_value_seed(Self { in_model: true })?;
                    document.member("model", &model.rest);
                    (document.vocab, document.merges) = (model.vocab, model.merges);
                }
                (true, "vocab") if document.vocab.is_none() => {
                    document.vocab = Some(map.next_value()?);
                    document.member("vocab", "{}");
                }
                (true, "merges") if document.merges.is_none() => {
                    document.merges = Some(map.next_value()?);
                    document.member("merges", "[]");
                }
                (false, "model") | (true, "vocab" | "merges") => {
                    return Err(A::Error::custom("duplicate member"));
                }
                (_, key) => document.member(key, map.next_value::<&RawValue>()?.get()),
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
