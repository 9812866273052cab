//! The large parts of a tokenizer.json and of its tokenizer_config.json: tokens, merges and added tokens, read without a value
//! for each. The rest of a file goes back to the caller as text, with these parts empty.

use crate::error::FormatError;
use bpe_tokenizer_core::error::{quoted, shorten};
use bpe_tokenizer_core::model::{MergeIds, Vocabulary};
use bpe_tokenizer_core::special::AddedToken;
use bpe_tokenizer_core::text::from_utf8;
use rustc_hash::{FxBuildHasher, FxHashSet};
use serde::de::{
    Deserialize, DeserializeSeed, Deserializer, Error, IgnoredAny, MapAccess, SeqAccess,
    Unexpected, Visitor,
};
use serde_json::value::RawValue;
use std::borrow::Cow;
use std::collections::HashSet;
use std::fmt;

/// The largest id.
const MAX_ID: u64 = u32::MAX as u64 - 1;
/// Longest name of a member in the path of a field, in characters.
const MAX_NAME: usize = 60;

/// The tables of a tokenizer.json.
pub struct Tables {
    /// The strings of the tokens, as bytes.
    pub strings: Vocabulary,
    /// The merges in order of rank. Of equal pairs, the last one counts.
    pub merges: Vec<MergeIds>,
    /// The added tokens in the order of the file.
    pub added: Vec<AddedToken>,
}

/// Reads a tokenizer.json. Returns the text without the tables, and the tables if the file has a `model.vocab` (an object)
/// and `model.merges`, and no `split_pattern`: that is another layout, whose added tokens have no flags.
///
/// # Errors
///
/// A table is broken; the error, of the file `file`, names the field, and the line and column.
pub fn read_tokenizer_json(file: &str, data: &[u8]) -> crate::Result<(String, Option<Tables>)> {
    let document = read(file, data, Part::Whole)?;
    let refused = |what: String| FormatError::new(file, what);
    let (Some(vocab), Some(merges), false) =
        (document.vocab, document.merges, document.has_pattern)
    else {
        return Ok((document.rest, None));
    };
    let strings = vocabulary(vocab).map_err(|what| refused(format!("model.vocab: {what}")))?;
    let merges = merge_ids(&merges, &strings).map_err(refused)?;
    let added = added_tokens(document.added.unwrap_or_default().0, &strings).map_err(refused)?;
    let tables = Tables {
        strings,
        merges,
        added,
    };
    Ok((document.rest, Some(tables)))
}

/// Reads a tokenizer_config.json. Returns the text without the members of `added_tokens_decoder`, and these, if the file
/// has them.
///
/// # Errors
///
/// An entry is broken; the error, of the file `file`, names it, with line and column.
pub fn read_tokenizer_config(
    file: &str,
    data: &[u8],
) -> crate::Result<(String, Option<AddedTokensDecoder>)> {
    let document = read(file, data, Part::Config)?;
    Ok((document.rest, document.decoder))
}

fn read<'a>(file: &str, data: &'a [u8], part: Part) -> crate::Result<Document<'a>> {
    let refused = |what: String| FormatError::new(file, what);
    let text = from_utf8(data).map_err(|error| {
        let at = error.valid_up_to();
        refused(format!(
            "is not UTF-8: byte 0x{:02x} at offset {at}",
            data[at]
        ))
    })?;
    let mut json = serde_json::Deserializer::from_str(text);
    let document = DocumentVisitor { part }.deserialize(&mut json);
    let document = document.and_then(|document| json.end().map(|()| document));
    document.map_err(|error| {
        if text.starts_with('\u{feff}') {
            return refused("is not valid JSON: begins with a byte order mark".to_owned());
        }
        if let Err(error) = serde_json::from_str::<IgnoredAny>(text) {
            return refused(format!("is not valid JSON: {error}"));
        }
        refused(error.to_string().trim_start_matches('.').to_owned())
    })
}

fn vocabulary(mut tokens: Vec<Token<'_>>) -> Result<Vocabulary, String> {
    tokens.sort_by_key(|(id, _)| *id);
    let twice = tokens.windows(2).find(|pair| pair[0].0 == pair[1].0);
    if let Some([(id, one), (_, other)]) = twice.filter(|pair| pair[0].1 != pair[1].1) {
        let (one, other) = (quoted(one), quoted(other));
        return Err(format!("duplicate id {id}: tokens {one} and {other}"));
    }
    if twice.is_some() {
        return Err(duplicate_token(&tokens));
    }
    let strings = tokens.iter().map(|(id, token)| Ok((*id, token.as_bytes())));
    let strings = Vocabulary::from_sorted(strings).map_err(|error| error.to_string())?;
    match strings.has_duplicates() {
        true => Err(duplicate_token(&tokens)),
        false => Ok(strings),
    }
}

fn duplicate_token(tokens: &[Token<'_>]) -> String {
    let mut seen = FxHashSet::default();
    let found = tokens.iter().find(|(_, token)| !seen.insert(token));
    let found = found.map_or_else(String::new, |(_, token)| quoted(token));
    format!("duplicate key {found} in an object")
}

fn merge_ids(merges: &Merges<'_>, strings: &Vocabulary) -> Result<Vec<MergeIds>, String> {
    let (mut ids, mut product) = (Vec::with_capacity(merges.0.len()), Vec::new());
    for (index, merge) in merges.0.iter().enumerate() {
        let Some((left, right)) = merge else { continue };
        product.clear();
        product.extend_from_slice(left.as_bytes());
        product.extend_from_slice(right.as_bytes());
        let id = |token: &[u8]| {
            strings.id(token).ok_or_else(|| {
                let token = quoted(&String::from_utf8_lossy(token));
                format!("model.merges[{index}]: {token} is not a token of model.vocab")
            })
        };
        let (left, right) = (id(left.as_bytes())?, id(right.as_bytes())?);
        // In most files, each product has the id after the one before.
        let next = ids.last().map_or(0, |merge: &MergeIds| merge.2 + 1);
        let is_next = strings.token(next) == Some(&product);
        let product = if is_next { next } else { id(&product)? };
        ids.push((left, right, product));
    }
    if !ids.is_sorted_by(|one, other| one.2 < other.2) {
        let mut seen = FxHashSet::with_capacity_and_hasher(ids.len(), FxBuildHasher);
        ids.reverse();
        ids.retain(|&(left, right, _)| seen.insert((left, right)));
        ids.reverse();
    }
    Ok(ids)
}

/// Hugging Face `tokenizers` ignores the ids of added tokens: a token in `model.vocab` has its id there, and the others get the
/// ids from the size of the vocabulary on, in the order of the file (`AddedVocabulary::add_tokens`, version 0.23).
fn added_tokens(
    entries: Vec<Entry<'_, true>>,
    strings: &Vocabulary,
) -> Result<Vec<AddedToken>, String> {
    let mut next = strings.len() as u32;
    let mut seen = FxHashSet::with_capacity_and_hasher(entries.len(), FxBuildHasher);
    let mut tokens = Vec::with_capacity(entries.len());
    for (index, entry) in entries.into_iter().enumerate() {
        let missing = |name| format!("added_tokens[{index}].{name}: is missing");
        let content = entry.content.ok_or_else(|| missing("content"))?;
        let id = entry.id.ok_or_else(|| missing("id"))?;
        for (name, flag) in FLAGS.iter().zip(entry.flags) {
            flag.ok_or_else(|| missing(name))?;
        }
        if content.is_empty() {
            return Err(format!("added_tokens[{index}].content: is empty"));
        }
        if !seen.insert(content.clone()) {
            let content = quoted(&content);
            return Err(format!("added_tokens[{index}]: duplicate token {content}"));
        }
        let expected = strings.id(content.as_bytes()).unwrap_or_else(|| {
            next += 1;
            next - 1
        });
        if id != expected {
            let content = quoted(&content);
            return Err(format!(
                "added_tokens[{index}].id: {id} is not the id that Hugging Face tokenizers gives {content}, which is {expected}; correct it, or add the token to model.vocab with its id"
            ));
        }
        let flags = entry.flags.map(|flag| flag == Some(true));
        tokens.push(token(content.into_owned(), id, flags));
    }
    Ok(tokens)
}

fn token(content: String, id: u32, flags: [bool; 5]) -> AddedToken {
    let [single_word, lstrip, rstrip, normalized, special] = flags;
    AddedToken {
        content,
        id,
        special,
        single_word,
        lstrip,
        rstrip,
        normalized,
    }
}

/// The tokens of an `added_tokens_decoder`, in the order of the file.
pub struct AddedTokensDecoder(Vec<(u32, String, Flags)>);

impl AddedTokensDecoder {
    /// The tokens. Those of `named` texts are special, whatever their flags say. By default, only a token that is not special
    /// is normalised.
    pub fn tokens(&self, named: &HashSet<String>) -> Vec<AddedToken> {
        let tokens = self.0.iter().map(|(id, content, flags)| {
            let [single_word, lstrip, rstrip, normalized, special] = *flags;
            let is = |flag| flag == Some(true);
            let special = is(special) || named.contains(content);
            let normalized = normalized.unwrap_or(!special);
            let flags = [is(single_word), is(lstrip), is(rstrip), normalized, special];
            token(content.clone(), *id, flags)
        });
        tokens.collect()
    }

    /// Whether these are the same tokens, with all their flags.
    pub fn equals(&self, tokens: &[AddedToken]) -> bool {
        let flags = |it: &AddedToken| {
            [
                it.single_word,
                it.lstrip,
                it.rstrip,
                it.normalized,
                it.special,
            ]
        };
        let mut entries: Vec<_> = self.0.iter().collect();
        entries.sort_by_key(|(id, ..)| *id);
        let mut tokens: Vec<_> = tokens.iter().collect();
        tokens.sort_by_key(|token| token.id);
        let is_same = |((id, content, given), token): (&(u32, String, Flags), &AddedToken)| {
            *id == token.id && *content == token.content && *given == flags(token).map(Some)
        };
        entries.len() == tokens.len() && entries.into_iter().zip(tokens).all(is_same)
    }
}

/// The flags of an added token.
const FLAGS: [&str; 5] = ["single_word", "lstrip", "rstrip", "normalized", "special"];

/// The flags in this order; None for one that the file does not give.
type Flags = [Option<bool>; 5];

/// An added token of a file, as it is written.
#[derive(Default)]
struct Entry<'a, const HAS_ID: bool> {
    id: Option<u32>,
    content: Option<Cow<'a, str>>,
    flags: Flags,
}

impl<'de, const HAS_ID: bool> Deserialize<'de> for Entry<'de, HAS_ID> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(EntryVisitor::<HAS_ID>)
    }
}

struct EntryVisitor<const HAS_ID: bool>;

impl<'de, const HAS_ID: bool> Visitor<'de> for EntryVisitor<HAS_ID> {
    type Value = Entry<'de, HAS_ID>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an added token")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let mut entry = Entry::default();
        while let Some(JsonStr(key)) = map.next_key()? {
            let flag = FLAGS.iter().position(|flag| *flag == key);
            match (key.as_ref(), flag) {
                ("id", _) if HAS_ID && entry.id.is_none() => {
                    entry.id = Some(member::<Id, _>(&mut map, &key)?.0)
                }
                ("content", _) if entry.content.is_none() => {
                    entry.content = Some(member::<JsonStr<'_>, _>(&mut map, &key)?.0);
                }
                (_, Some(flag)) if entry.flags[flag].is_none() => {
                    entry.flags[flag] = member(&mut map, &key)?;
                }
                ("id", _) if HAS_ID => return Err(duplicate(&key)),
                ("content", _) | (_, Some(_)) => return Err(duplicate(&key)),
                _ => {
                    member::<IgnoredAny, _>(&mut map, &key)?;
                }
            }
        }
        Ok(entry)
    }
}

/// The value of a member. An error names it.
fn member<'de, T: Deserialize<'de>, A: MapAccess<'de>>(
    map: &mut A,
    name: &str,
) -> Result<T, A::Error> {
    map.next_value().map_err(|error| within(name, error))
}

/// An error inside a member.
fn within<E: Error>(name: &str, error: E) -> E {
    let name = shorten(&name.escape_debug().to_string(), MAX_NAME);
    at(&format!(".{name}"), error)
}

/// An error at a place. The error of a value in it begins with the path from there.
fn at<E: Error>(place: &str, error: E) -> E {
    let rest = error.to_string();
    let colon = if rest.starts_with(['.', '[']) {
        ""
    } else {
        ": "
    };
    E::custom(format_args!("{place}{colon}{rest}"))
}

fn duplicate<E: Error>(key: &str) -> E {
    E::custom(format_args!("duplicate key {} in an object", quoted(key)))
}

/// A file: its tables, and the text of the rest.
#[derive(Default)]
struct Document<'a> {
    rest: String,
    vocab: Option<Vec<Token<'a>>>,
    merges: Option<Merges<'a>>,
    added: Option<Items<Entry<'a, true>>>,
    decoder: Option<AddedTokensDecoder>,
    has_pattern: bool,
}

impl Document<'_> {
    /// Appends a member to the rest, an object that is not closed yet.
    fn keep(&mut self, key: &str, value: &str) {
        if !self.rest.ends_with('{') {
            self.rest.push(',');
        }
        self.rest
            .push_str(&serde_json::Value::from(key).to_string());
        self.rest.push(':');
        self.rest.push_str(value);
    }
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
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let mut document = Document {
            rest: "{".to_owned(),
            ..Document::default()
        };
        let mut seen = FxHashSet::default();
        while let Some(JsonStr(key)) = map.next_key()? {
            match (self.part, key.as_ref()) {
                (Part::Whole, "model") => {
                    let model = map.next_value_seed(Self { part: Part::Model });
                    let model = model.map_err(|error| within(&key, error))?;
                    document.keep("model", &model.rest);
                    (document.vocab, document.merges) = (model.vocab, model.merges);
                }
                (Part::Model, "vocab") => {
                    document.vocab = member::<Vocab<'_>, _>(&mut map, &key)?.0;
                    let rest = document.vocab.as_ref().map_or("[]", |_| "{}");
                    document.keep("vocab", rest);
                }
                (Part::Model, "merges") => {
                    document.merges = Some(member(&mut map, &key)?);
                    document.keep("merges", "[]");
                }
                (Part::Whole, "added_tokens") => {
                    document.added = member(&mut map, &key)?;
                    document.keep("added_tokens", "[]");
                }
                (Part::Config, "added_tokens_decoder") => {
                    document.decoder = member(&mut map, &key)?;
                    let rest = document.decoder.as_ref().map_or("null", |_| "{}");
                    document.keep("added_tokens_decoder", rest);
                }
                (_, name) => document.keep(name, map.next_value::<&RawValue>()?.get()),
            }
            if seen.contains(&key) {
                return Err(duplicate(&key));
            }
            seen.insert(key);
        }
        document.has_pattern = seen.contains("split_pattern");
        document.rest.push('}');
        Ok(document)
    }
}

/// An id and its token.
type Token<'a> = (u32, Cow<'a, str>);

/// The tokens in the order of the file; None for an array, which a Unigram model has.
struct Vocab<'a>(Option<Vec<Token<'a>>>);

impl<'de> Deserialize<'de> for Vocab<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(VocabVisitor)
    }
}

struct VocabVisitor;

impl<'de> Visitor<'de> for VocabVisitor {
    type Value = Vocab<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object of tokens and ids")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let mut tokens = Vec::new();
        while let Some(JsonStr(token)) = map.next_key()? {
            let Id(id) = member(&mut map, &token)?;
            tokens.push((id, token));
        }
        Ok(Vocab(Some(tokens)))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Self::Value, A::Error> {
        while seq.next_element::<IgnoredAny>()?.is_some() {}
        Ok(Vocab(None))
    }
}

impl<'de> Deserialize<'de> for AddedTokensDecoder {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(DecoderVisitor)
    }
}

struct DecoderVisitor;

impl<'de> Visitor<'de> for DecoderVisitor {
    type Value = AddedTokensDecoder;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object of ids and added tokens")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let (mut tokens, mut seen) = (Vec::new(), FxHashSet::default());
        while let Some(JsonStr(key)) = map.next_key()? {
            let is_number = key.bytes().all(|byte| byte.is_ascii_digit());
            let id = key
                .parse()
                .ok()
                .filter(|&id| is_number && u64::from(id) <= MAX_ID);
            let id =
                id.ok_or_else(|| A::Error::custom(format_args!("{} is not an id", quoted(&key))))?;
            let entry: Entry<'de, false> = member(&mut map, &key)?;
            let missing = || within(&key, A::Error::custom(".content: is missing"));
            let content = entry.content.ok_or_else(missing)?.into_owned();
            if !seen.insert(id) {
                return Err(duplicate(&key));
            }
            tokens.push((id, content, entry.flags));
        }
        Ok(AddedTokensDecoder(tokens))
    }
}

/// The items of an array. An error names the index.
#[derive(Default)]
struct Items<T>(Vec<T>);

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Items<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_seq(ItemsVisitor(Vec::new()))
    }
}

struct ItemsVisitor<T>(Vec<T>);

impl<'de, T: Deserialize<'de>> Visitor<'de> for ItemsVisitor<T> {
    type Value = Items<T>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an array")
    }

    fn visit_seq<A: SeqAccess<'de>>(mut self, mut seq: A) -> Result<Self::Value, A::Error> {
        loop {
            let index = self.0.len();
            let item = seq.next_element();
            let item = item.map_err(|error| at(&format!("[{index}]"), error))?;
            match item {
                Some(item) => self.0.push(item),
                None => return Ok(Items(self.0)),
            }
        }
    }
}

type Pair<'a> = (Cow<'a, str>, Cow<'a, str>);

/// Pairs of tokens, all as arrays or all as "left right"; None for the line with the file's version.
struct Merges<'a>(Vec<Option<Pair<'a>>>);

impl<'de> Deserialize<'de> for Merges<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let Items(merges): Items<Merge<'de>> = Items::deserialize(deserializer)?;
        let first_is_pair = merges.first().is_some_and(|merge| merge.is_pair);
        match merges
            .iter()
            .position(|merge| merge.is_pair != first_is_pair)
        {
            Some(index) => Err(D::Error::custom(format_args!(
                "[{index}]: is of another kind: all must be pairs of strings, or all \"left right\""
            ))),
            None => Ok(Self(merges.into_iter().map(|merge| merge.parts).collect())),
        }
    }
}

struct Merge<'a> {
    is_pair: bool,
    parts: Option<Pair<'a>>,
}

impl<'de> Deserialize<'de> for Merge<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(MergeVisitor)
    }
}

struct MergeVisitor;

impl MergeVisitor {
    /// The merge of a line.
    fn joined<'a, E: Error>(
        line: &str,
        part: impl Fn(std::ops::Range<usize>) -> Cow<'a, str>,
    ) -> Result<Merge<'a>, E> {
        let parts = match line.split_once(' ') {
            _ if line.starts_with("#version") => None,
            Some((left, right)) if !right.contains(' ') => {
                Some((part(0..left.len()), part(left.len() + 1..line.len())))
            }
            _ => return Err(E::invalid_value(Unexpected::Str(line), &Self)),
        };
        let is_pair = false;
        Ok(Merge { is_pair, parts })
    }
}

impl<'de> Visitor<'de> for MergeVisitor {
    type Value = Merge<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a merge: two strings in an array, or \"left right\"")
    }

    fn visit_borrowed_str<E: Error>(self, line: &'de str) -> Result<Self::Value, E> {
        Self::joined(line, |range| Cow::Borrowed(&line[range]))
    }

    fn visit_str<E: Error>(self, line: &str) -> Result<Self::Value, E> {
        Self::joined(line, |range| Cow::Owned(line[range].to_owned()))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Self::Value, A::Error> {
        let mut parts = 0;
        let mut part = || {
            parts += 1;
            let part: Option<JsonStr<'de>> = seq.next_element()?;
            part.ok_or_else(|| A::Error::invalid_length(parts - 1, &Self))
        };
        let (JsonStr(left), JsonStr(right)) = (part()?, part()?);
        match seq.next_element::<IgnoredAny>()? {
            None => Ok(Merge {
                is_pair: true,
                parts: Some((left, right)),
            }),
            Some(_) => Err(A::Error::invalid_length(3, &Self)),
        }
    }
}

struct Id(u32);

impl<'de> Deserialize<'de> for Id {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_u32(IdVisitor)
    }
}

struct IdVisitor;

impl Visitor<'_> for IdVisitor {
    type Value = Id;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "an id, an integer from 0 to {MAX_ID}")
    }

    fn visit_u64<E: Error>(self, id: u64) -> Result<Self::Value, E> {
        match u32::try_from(id) {
            Ok(id) if u64::from(id) <= MAX_ID => Ok(Id(id)),
            _ => Err(E::invalid_value(Unexpected::Unsigned(id), &self)),
        }
    }
}

/// A string that is copied only if it has escapes.
#[derive(serde::Deserialize)]
struct JsonStr<'a>(#[serde(borrow)] Cow<'a, str>);
