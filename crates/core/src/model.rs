//! A tokenizer as a value: vocabulary, merges, split patterns, normalisation and added tokens. The constructor
//! checks it, so later stages need no checks.

use crate::error::{quoted, Error, Result};
use crate::memory::prefetch;
use crate::normal_forms::{normal_forms, NormalForm};
use crate::normalize::Normalization;
use crate::normalizers::Normalizer;
use crate::pair_table::{products_are_ranks, PairTable, NO_MERGE};
use crate::pretokenize::PreTokenizer;
use crate::special::AddedToken;
use crate::text::to_printable;
use crate::threads::made_once;
use rustc_hash::{FxHashMap, FxHashSet, FxHasher};
use std::fmt;
use std::hash::Hasher;
use std::sync::{Arc, OnceLock};

/// Not an id: marks a missing token.
pub const NONE: u32 = u32::MAX;

/// The tokens by id and by bytes.
#[derive(Debug, Default)]
pub struct Vocabulary {
    /// Ascending.
    ids: Vec<u32>,
    /// The bytes of all tokens.
    bytes: Vec<u8>,
    /// Where each token begins in `bytes`, and where the last one ends.
    starts: Vec<u32>,
    /// A hash table with linear probing: index into `ids` or NONE, and the upper half of the hash.
    index: Vec<(u32, u32)>,
    /// Whether two tokens have the same bytes.
    has_duplicates: bool,
}

impl Vocabulary {
    /// A vocabulary of tokens in any order. Of tokens with the same bytes, [`Vocabulary::id`] gives the lowest.
    pub fn new(mut tokens: Vec<(u32, Vec<u8>)>) -> Result<Self> {
        tokens.sort_unstable();
        Self::from_sorted(tokens.into_iter().map(Ok))
    }

    /// A vocabulary of tokens with ascending ids.
    pub fn from_sorted<T: AsRef<[u8]>>(
        tokens: impl Iterator<Item = Result<(u32, T)>>,
    ) -> Result<Self> {
        let mut vocabulary = Self {
            starts: vec![0],
            ..Self::default()
        };
        for token in tokens {
            let (id, bytes) = token?;
            if id == NONE || vocabulary.ids.last().is_some_and(|&last| last >= id) {
                let largest = NONE - 1;
                let message =
                    format!("duplicate id {id} in the vocabulary, or an id above {largest}");
                return Err(Error::Model(message));
            }
            vocabulary.ids.push(id);
            vocabulary.bytes.extend_from_slice(bytes.as_ref());
            let end = u32::try_from(vocabulary.bytes.len())
                .map_err(|_| Error::Model("the vocabulary's bytes exceed 4 GiB".to_owned()))?;
            vocabulary.starts.push(end);
        }
        vocabulary.index = vec![(NONE, 0); (2 * vocabulary.len()).next_power_of_two()];
        for entry in 0..vocabulary.len() {
            let token = vocabulary.entry(entry);
            let (slot, tag) = vocabulary.slot(token, TokenHash::of(token));
            if vocabulary.index[slot].0 == NONE {
                vocabulary.index[slot] = (entry as u32, tag);
            } else {
                vocabulary.has_duplicates = true;
            }
        }
        Ok(vocabulary)
    }

    /// Prefetches what [`Vocabulary::id_of`] reads first.
    pub fn prefetch(&self, hash: TokenHash) {
        prefetch(&self.index, hash.0 as usize & (self.index.len() - 1));
    }

    /// Prefetches what [`Vocabulary::id_of`] reads after that: the bytes and the id of the token that is in the slot.
    pub fn prefetch_entry(&self, TokenHash(hash): TokenHash) {
        let (entry, tag) = self.index[hash as usize & (self.index.len() - 1)];
        // Most new pieces are not tokens, but many are. A branch could not be predicted, and would wait for the slot.
        let is_same = u32::from(entry != NONE) & u32::from(tag == (hash >> 32) as u32);
        let entry = (entry & is_same.wrapping_neg()) as usize;
        prefetch(&self.bytes, self.starts[entry] as usize);
        prefetch(&self.ids, entry);
    }

    /// The slot of a token, or the free slot for it, and the token's tag.
    fn slot(&self, token: &[u8], TokenHash(hash): TokenHash) -> (usize, u32) {
        let (mut slot, tag) = (hash as usize, (hash >> 32) as u32);
        loop {
            slot &= self.index.len() - 1;
            match self.index[slot] {
                (NONE, _) => return (slot, tag),
                (entry, same) if same == tag && self.entry(entry as usize) == token => {
                    return (slot, tag)
                }
                _ => slot += 1,
            }
        }
    }

    fn entry(&self, index: usize) -> &[u8] {
        &self.bytes[self.starts[index] as usize..self.starts[index + 1] as usize]
    }

    /// The id of the token with these bytes.
    pub fn id(&self, token: &[u8]) -> Option<u32> {
        self.id_of(token, TokenHash::of(token))
    }

    /// As [`Vocabulary::id`], with the hash of the bytes.
    pub fn id_of(&self, token: &[u8], hash: TokenHash) -> Option<u32> {
        match self.index[self.slot(token, hash).0].0 {
            NONE => None,
            entry => Some(self.ids[entry as usize]),
        }
    }

    /// The bytes of an id.
    pub fn token(&self, id: u32) -> Option<&[u8]> {
        let entry = match self.ids.get(id as usize) {
            Some(&same) if same == id => id as usize, // the ids have no gaps
            _ => self.ids.binary_search(&id).ok()?,
        };
        Some(self.entry(entry))
    }

    /// The largest id.
    pub fn max_id(&self) -> Option<u32> {
        self.ids.last().copied()
    }

    /// Whether two tokens have the same bytes.
    pub fn has_duplicates(&self) -> bool {
        self.has_duplicates
    }

    /// The first byte without a token.
    pub fn missing_byte(&self) -> Option<u8> {
        (0..=255).find(|&byte| self.id(&[byte]).is_none())
    }

    /// Every id with its bytes, ascending.
    pub fn iter(&self) -> impl Iterator<Item = (u32, &[u8])> {
        let entries = (0..self.ids.len()).map(|index| self.entry(index));
        self.ids.iter().copied().zip(entries)
    }

    /// The bytes of every token that is not ASCII.
    pub fn not_ascii(&self) -> impl Iterator<Item = &[u8]> {
        let entries = (0..self.len()).filter(|&entry| !self.is_ascii(entry));
        entries.map(|entry| self.entry(entry))
    }

    /// `<[u8]>::is_ascii` of a token, without branches that depend on the length of most tokens: no processor predicts them.
    fn is_ascii(&self, entry: usize) -> bool {
        let (start, token) = (self.starts[entry] as usize, self.entry(entry));
        let Some(Ok(first)) = self.bytes.get(start..start + 8).map(TryInto::try_into) else {
            return token.is_ascii();
        };
        let unused = u64::BITS - 8 * token.len().min(8) as u32;
        let high_bits = 0x8080_8080_8080_8080_u64.checked_shr(unused).unwrap_or(0);
        u64::from_le_bytes(first) & high_bits == 0 && (token.len() <= 8 || token.is_ascii())
    }

    /// The number of tokens.
    pub fn len(&self) -> usize {
        self.ids.len()
    }

    /// Whether the vocabulary is empty.
    pub fn is_empty(&self) -> bool {
        self.ids.is_empty()
    }
}

/// The hash of the bytes of a token.
#[derive(Clone, Copy)]
pub struct TokenHash(u64);

impl TokenHash {
    /// Computes it.
    pub fn of(token: &[u8]) -> Self {
        let mut hasher = FxHasher::default();
        hasher.write(token);
        Self(hasher.finish())
    }
}

/// A merge: the ids of the left token, the right token and the product.
pub type MergeIds = (u32, u32, u32);

/// What merging begins with.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "lowercase"))]
pub enum Alphabet {
    /// A symbol for each byte of a piece.
    #[default]
    Bytes,
    /// A symbol for each character.
    Characters,
}

/// The replacement of a byte or character without a token.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Unknown {
    /// Nothing. Its neighbours may merge.
    #[default]
    Dropped,
    /// A gap, which keeps its neighbours apart and is dropped after merging.
    Gap,
    /// The unknown token.
    Token {
        /// The id of the unknown token.
        id: u32,
        /// Several in sequence become one.
        fuse: bool,
    },
}

/// How tokens that write spaces as another character become text.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(deny_unknown_fields))]
pub struct Spaces {
    /// The character for a space.
    pub space: char,
    /// Whether the tokens `<0x00>` to `<0xFF>` are bytes.
    pub byte_fallback: bool,
    /// The spaces at the beginning that are not part of the text.
    pub strip: Strip,
}

/// The byte of a byte token such as `<0x0A>`.
pub fn fallback_byte(token: &[u8]) -> Option<u8> {
    let [b'<', b'0', b'x', high, low, b'>'] = token else {
        return None;
    };
    let digit = |digit: &u8| char::from(*digit).to_digit(16);
    u8::try_from(digit(high)? << 4 | digit(low)?).ok()
}

/// Which spaces at the beginning the decoder drops.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "lowercase"))]
pub enum Strip {
    /// None.
    #[cfg_attr(feature = "serde", serde(rename = "none"))]
    No,
    /// The first one.
    One,
    /// All of the first token.
    #[cfg_attr(feature = "serde", serde(rename = "first"))]
    FirstToken,
    /// None. The token strings are the text, with a space between each two, as Hugging Face `tokenizers` joins them
    /// without a decoder.
    Joined,
}

/// The settings of a model besides its vocabulary and merges.
#[derive(Clone, Debug, Default)]
pub struct Settings {
    /// The normalisation of text.
    pub normalizers: Vec<Normalizer>,
    /// The steps that split text into pieces. Without a step, a text is one piece.
    pub pre_tokenizers: Vec<PreTokenizer>,
    /// What merging begins with.
    pub alphabet: Alphabet,
    /// Whether a character without a token becomes the tokens `<0x00>` to `<0xFF>` of its bytes.
    pub byte_fallback: bool,
    /// The replacement of bytes and characters without a token.
    pub unknown: Unknown,
    /// Whether a piece that equals a token becomes that token, even if merging would give other ids.
    pub ignore_merges: bool,
    /// How tokens become text. Without it, their bytes are the text.
    pub spaces: Option<Spaces>,
}

impl Settings {
    /// The patterns, and whether a space is prepended to a text. None if the pre-tokeniser has other steps than
    /// isolated matches of patterns.
    pub fn plain_patterns(&self) -> Option<(Vec<&str>, bool)> {
        let (prefixed, splits) = match self.pre_tokenizers.split_first() {
            Some((PreTokenizer::PrefixSpace, splits)) => (true, splits),
            _ => (false, self.pre_tokenizers.as_slice()),
        };
        let patterns = splits.iter().map(|step| step.isolated_pattern());
        let patterns = patterns.map(|pattern| pattern.map(String::as_str));
        Some((patterns.collect::<Option<_>>()?, prefixed))
    }

    /// The Unicode normal form, if any. The outer None: normalisation has other steps.
    pub fn plain_normalization(&self) -> Option<Option<Normalization>> {
        match self.normalizers.as_slice() {
            [] => Some(None),
            [Normalizer::Form(form)] => Some(Some(*form)),
            _ => None,
        }
    }
}

/// The merges of a model by rank.
#[derive(Default)]
struct Merges {
    ids: Vec<MergeIds>,
    make_all: bool,
    /// Made when an encoder needs it.
    table: OnceLock<Arc<PairTable>>,
}

impl Merges {
    fn new(ids: Vec<MergeIds>) -> Self {
        Self {
            ids,
            ..Self::default()
        }
    }
}

impl fmt::Debug for Merges {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(&self.ids).finish()
    }
}

/// What encoding and decoding need. Immutable and cheap to clone.
#[derive(Clone, Debug)]
pub struct Model {
    vocabulary: Arc<Vocabulary>,
    merges: Arc<Merges>,
    settings: Arc<Settings>,
    /// By ascending id.
    added: Arc<Vec<AddedToken>>,
    normal_forms: Arc<FxHashMap<u32, NormalForm>>,
}

impl Model {
    /// A model of a vocabulary and merges: pairs of tokens' bytes by rank. Without merges: see
    /// [`Model::from_ranks`].
    ///
    /// For bytes without a token see `settings.unknown`; [`Model::require_bytes`] rules them out.
    pub fn new(
        tokens: Vec<(u32, Vec<u8>)>,
        merges: Option<&[(Vec<u8>, Vec<u8>)]>,
        settings: Settings,
        added: Vec<AddedToken>,
    ) -> Result<Self> {
        let vocabulary = Vocabulary::new(tokens)?;
        match merges {
            Some(merges) => {
                let ids = resolve(&vocabulary, merges)?;
                let merges = Merges::new(ids);
                Self::from_parts(vocabulary.into(), merges, settings, added)
            }
            None => Self::from_ranks(vocabulary, settings, added),
        }
    }

    /// A model of a vocabulary whose ids are ranks, as in a `.tiktoken` file. The merges follow from them.
    pub fn from_ranks(
        vocabulary: impl Into<Arc<Vocabulary>>,
        mut settings: Settings,
        added: Vec<AddedToken>,
    ) -> Result<Self> {
        let vocabulary = vocabulary.into();
        settings.ignore_merges = true;
        let added_ids: FxHashSet<u32> = added.iter().map(|token| token.id).collect();
        let merges = merges_of_ranks(&vocabulary, &added_ids);
        Self::from_parts(vocabulary, merges, settings, added)
    }

    /// A model of a vocabulary and merges as ids.
    pub fn with_merge_ids(
        vocabulary: impl Into<Arc<Vocabulary>>,
        merges: Vec<MergeIds>,
        settings: Settings,
        added: Vec<AddedToken>,
    ) -> Result<Self> {
        let vocabulary = vocabulary.into();
        for (rank, &(left, right, product)) in merges.iter().enumerate() {
            let parts = (vocabulary.token(left), vocabulary.token(right));
            let joined = vocabulary.token(product).zip(parts.0.zip(parts.1));
            let fits = joined
                .is_some_and(|(product, (left, right))| product.strip_prefix(left) == Some(right));
            if !fits {
                let text = |part: Option<&[u8]>| quoted(&to_printable(part.unwrap_or_default()));
                let (left, right) = (text(parts.0), text(parts.1));
                return Err(Error::Model(format!(
                    "merge {rank} ({left}, {right}): id {product} is not the concatenation of both"
                )));
            }
        }
        Self::from_parts(vocabulary, Merges::new(merges), settings, added)
    }

    fn from_parts(
        vocabulary: Arc<Vocabulary>,
        merges: Merges,
        settings: Settings,
        added: Vec<AddedToken>,
    ) -> Result<Self> {
        if settings.alphabet == Alphabet::Characters {
            let is_not_text = |(_, token): &(u32, &[u8])| std::str::from_utf8(token).is_err();
            if let Some((id, token)) = vocabulary.iter().find(is_not_text) {
                return Err(Error::Model(format!(
                    "token {} (id {id}) is not UTF-8; a vocabulary of characters must be text",
                    quoted(&token.escape_ascii().to_string())
                )));
            }
        }
        if let Unknown::Token { id, .. } = settings.unknown {
            if vocabulary.token(id).is_none() {
                return Err(Error::Model(format!(
                    "the unknown token's id {id} is not in the vocabulary"
                )));
            }
        }
        let model = Self {
            vocabulary,
            merges: Arc::new(merges),
            settings: Arc::new(settings),
            added: Arc::default(),
            normal_forms: Arc::default(),
        };
        model.with_added(added)
    }

    /// Fails if a byte has no token.
    pub fn require_bytes(&self) -> Result<()> {
        match self.vocabulary.missing_byte() {
            None => Ok(()),
            Some(byte) => Err(Error::Model(format!(
                "the vocabulary has no token for the byte 0x{byte:02x} (written {:?} in files); a byte-level vocabulary needs all 256",
                to_printable(&[byte])
            ))),
        }
    }

    /// This model with other added tokens.
    pub fn with_added(&self, mut added: Vec<AddedToken>) -> Result<Self> {
        added.sort_by_key(|token| token.id);
        let mut contents = FxHashMap::default();
        for (index, token) in added.iter().enumerate() {
            let same_text = contents.insert(&token.content, token.id);
            let before = index.checked_sub(1).map(|before| &added[before]);
            let same_id = before.filter(|before| before.id == token.id);
            self.check_added(token, same_text, same_id)?;
        }
        self.with_checked(added)
    }

    /// This model with a further added token, or another one for its id.
    pub fn adding(&self, token: AddedToken) -> Result<Self> {
        let others = self.added.iter().filter(|other| other.id != token.id);
        let same_text = others.clone().find(|other| other.content == token.content);
        self.check_added(&token, same_text.map(|other| other.id), None)?;
        let mut added: Vec<_> = others.cloned().collect();
        added.insert(added.partition_point(|other| other.id < token.id), token);
        self.with_checked(added)
    }

    /// Fails if an added token is not valid: another one has its text or its id, or the vocabulary has its id.
    fn check_added(
        &self,
        token: &AddedToken,
        same_text: Option<u32>,
        same_id: Option<&AddedToken>,
    ) -> Result<()> {
        let AddedToken { content, id, .. } = token;
        let in_vocabulary = self.vocabulary.token(*id);
        let problem = if content.is_empty() {
            "the text is empty".to_owned()
        } else if *id == NONE {
            format!("the largest possible id is {}", NONE - 1)
        } else if let Some(other) = same_text {
            format!("duplicate text; it also has the id {other}")
        } else if let Some(other) = same_id {
            format!("{} has the same id", quoted(&other.content))
        } else if let Some(bytes) = in_vocabulary.filter(|&bytes| bytes != content.as_bytes()) {
            let token = quoted(&to_printable(bytes));
            format!("the id belongs to the token {token} of the vocabulary")
        } else {
            return Ok(());
        };
        let content = quoted(content);
        let message = format!("added token {content} (id {id}): {problem}");
        Err(Error::Model(message))
    }

    fn with_checked(&self, added: Vec<AddedToken>) -> Result<Self> {
        let normal_forms = normal_forms(&self.settings.normalizers, &added)?;
        Ok(Self {
            added: Arc::new(added),
            normal_forms: Arc::new(normal_forms),
            ..self.clone()
        })
    }

    /// The vocabulary. It includes the added tokens that have an id in it.
    pub fn vocabulary(&self) -> &Vocabulary {
        &self.vocabulary
    }

    /// The merges by rank.
    pub fn merges(&self) -> &[MergeIds] {
        &self.merges.ids
    }

    /// The merges as a table, which all encoders of the model share.
    pub fn pair_table(&self) -> Arc<PairTable> {
        let make = || Arc::new(PairTable::new(&self.merges.ids));
        made_once(&self.merges.table, make).clone()
    }

    /// Whether merging is known to make every token that a piece may be. False: not known.
    pub fn merges_make_all(&self) -> bool {
        self.merges.make_all
    }

    /// The settings.
    pub fn settings(&self) -> &Settings {
        &self.settings
    }

    /// The added tokens by ascending id.
    pub fn added(&self) -> &[AddedToken] {
        &self.added
    }

    /// The added token of an id.
    pub fn added_token(&self, id: u32) -> Option<&AddedToken> {
        let index = self.added.binary_search_by_key(&id, |token| token.id);
        Some(&self.added[index.ok()?])
    }

    /// Whether the id is that of a special token.
    pub fn is_special(&self, id: u32) -> bool {
        self.added_token(id).is_some_and(|token| token.special)
    }

    /// The normal form of an added token; `None` if normalisation does not change it, or does not apply to it.
    pub fn normal_form(&self, id: u32) -> Option<&str> {
        Some(&self.normal_forms.get(&id)?.text)
    }

    /// The bytes to which an id decodes: those of the token, or of the normal form of an added token.
    pub fn decoded(&self, id: u32) -> Option<&[u8]> {
        let form = self.normal_form(id).map(str::as_bytes);
        form.or_else(|| self.token(id))
    }

    /// Whether decoding leaves an id out with the special tokens.
    pub fn is_skipped(&self, id: u32) -> bool {
        let form = self.normal_forms.get(&id);
        form.map_or_else(|| self.is_special(id), |form| form.is_skipped)
    }

    /// The bytes of an id, added tokens included.
    pub fn token(&self, id: u32) -> Option<&[u8]> {
        self.added_token(id)
            .map(|token| token.content.as_bytes())
            .or_else(|| self.vocabulary.token(id))
    }

    /// The number of ids, added tokens included.
    pub fn len(&self) -> usize {
        let outside = self
            .added
            .iter()
            .filter(|token| self.vocabulary.token(token.id).is_none());
        self.vocabulary.len() + outside.count()
    }

    /// The largest id + 1, added tokens included; 0 without ids.
    pub fn n_vocab(&self) -> usize {
        let added = self.added.iter().map(|token| token.id);
        let last = self.vocabulary.ids.last().copied();
        added.chain(last).max().map_or(0, |id| id as usize + 1)
    }

    /// Whether the model has no ids.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// Looks up the ids of merges.
fn resolve(vocabulary: &Vocabulary, merges: &[(Vec<u8>, Vec<u8>)]) -> Result<Vec<MergeIds>> {
    let mut product = Vec::new();
    let resolved = merges.iter().enumerate().map(|(rank, (left, right))| {
        product.clear();
        product.extend_from_slice(left);
        product.extend_from_slice(right);
        let id = |token: &[u8]| {
            vocabulary.id(token).ok_or_else(|| {
                let [left, right, token] =
                    [left, right, token].map(|token| quoted(&to_printable(token)));
                let problem = format!("{token} is not in the vocabulary");
                Error::Model(format!("merge {rank} ({left}, {right}): {problem}"))
            })
        };
        Ok((id(left)?, id(right)?, id(&product)?))
    });
    resolved.collect()
}

/// The merges of a vocabulary whose ids are ranks. The merge of a token joins the last two symbols of its
/// bytes when these merge by rank.
///
/// As long as no merge crosses its ends, the bytes of a token inside a piece merge as they do alone, so no
/// other pair makes the token. A token whose bytes do not merge into one symbol has no merge; `ignore_merges`
/// finds a piece of its bytes.
///
/// `make_all` then tells whether merging makes every token: each one's bytes merge, by the lower ranks alone, into
/// the two symbols of its merge.
fn merges_of_ranks(vocabulary: &Vocabulary, added: &FxHashSet<u32>) -> Merges {
    let byte_ids: Vec<u32> = (0..=255)
        .map(|byte| vocabulary.id(&[byte]).unwrap_or(NONE))
        .collect();
    let ranks = vocabulary.ids.last().map_or(0, |&last| last as usize + 1);
    let most = vocabulary.iter().filter(|(_, token)| token.len() > 1);
    let most = most.count();
    let mut table = PairTable::with_capacity(most, ranks);
    let (mut symbols, mut ranks) = (Vec::new(), Vec::new());
    let mut ids = Vec::with_capacity(most);
    let mut make_all = true;
    for (id, token) in vocabulary.iter() {
        if token.len() < 2 || vocabulary.has_duplicates && vocabulary.id(token) != Some(id) {
            continue;
        }
        if added.contains(&id) {
            make_all = false;
            continue;
        }
        symbols.clear();
        symbols.extend(token.iter().map(|&byte| byte_ids[usize::from(byte)]));
        ranks.clear();
        ranks.extend(symbols.windows(2).map(|pair| table.rank(pair[0], pair[1])));
        // The merges of lower ranks are known already, and nearly always suffice.
        while symbols.len() > 2 {
            let best = (0..ranks.len()).min_by_key(|&at| ranks[at]).unwrap_or(0);
            if ranks[best] == NO_MERGE {
                break;
            }
            symbols[best] = ranks[best];
            symbols.remove(best + 1);
            ranks.remove(best);
            if best < ranks.len() {
                ranks[best] = table.rank(symbols[best], symbols[best + 1]);
            }
            if best > 0 {
                ranks[best - 1] = table.rank(symbols[best - 1], symbols[best]);
            }
        }
        let pair = match symbols.as_slice() {
            &[left, right] => Some((left, right)),
            _ => {
                make_all = false;
                last_pair(token, |part| {
                    vocabulary.id(part).filter(|id| !added.contains(id))
                })
            }
        };
        if let Some((left, right)) = pair.filter(|pair| pair.0 != NONE && pair.1 != NONE) {
            table.insert(left, right, id);
            ids.push((left, right, id));
        } else {
            make_all = false;
        }
    }
    let merges = Merges {
        make_all,
        ..Merges::new(ids)
    };
    if products_are_ranks(&merges.ids) {
        made_once(&merges.table, || Arc::new(table));
    }
    merges
}

/// The last two symbols of a token's bytes, for parts with higher ranks than the token.
fn last_pair(token: &[u8], rank: impl Fn(&[u8]) -> Option<u32>) -> Option<(u32, u32)> {
    let mut cuts: Vec<usize> = (0..=token.len()).collect();
    while cuts.len() > 3 {
        let pairs = (0..cuts.len() - 2).filter_map(|i| {
            let pair = &token[cuts[i]..cuts[i + 2]];
            Some((rank(pair)?, i))
        });
        let (_, at) = pairs.min()?;
        cuts.remove(at + 1);
    }
    let (left, right) = token.split_at(cuts[1]);
    Some((rank(left)?, rank(right)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bytes() -> Vec<(u32, Vec<u8>)> {
        (0..=255)
            .map(|byte| (u32::from(byte), vec![byte]))
            .collect()
    }

    fn message(result: Result<Model>) -> String {
        result.unwrap_err().to_string()
    }

    #[test]
    fn the_tokens_that_are_not_ascii() {
        // The bytes that are not ASCII are at all places of tokens of all lengths.
        let long = (1..20).flat_map(|length| {
            (0..=length).map(move |at| {
                let mut token = vec![b'a'; length];
                if let Some(byte) = token.get_mut(at) {
                    *byte = 0x80 + length as u8;
                }
                token
            })
        });
        let tokens: Vec<_> = (0..).zip(long).collect();
        let expected = tokens.iter().map(|(_, token)| &token[..]);
        let expected: Vec<_> = expected.filter(|token| !token.is_ascii()).collect();
        let vocabulary = Vocabulary::new(tokens.clone()).unwrap();
        assert!(vocabulary.not_ascii().eq(expected));
    }

    #[test]
    fn merges_follow_from_ranks() {
        let mut tokens = bytes();
        for (id, token) in (256..).zip(["ab", "cd", "abcd", "bc", "zzzz"]) {
            tokens.push((id, token.into()));
        }
        let model = Model::new(tokens, None, Settings::default(), Vec::new()).unwrap();
        let (a, b, c, d) = (97, 98, 99, 100);
        let expected = [(a, b, 256), (c, d, 257), (256, 257, 258), (b, c, 259)];
        assert_eq!(model.merges(), expected); // no merge makes zzzz
        assert!(model.settings().ignore_merges);
    }

    #[test]
    fn a_token_may_have_a_lower_rank_than_its_parts() {
        let mut tokens = bytes();
        for (id, token) in (256..).zip(["bbb", "bb", "bbbbb"]) {
            tokens.push((id, token.into()));
        }
        let model = Model::new(tokens, None, Settings::default(), Vec::new()).unwrap();
        let b = 98;
        assert_eq!(
            model.merges(),
            [(257, b, 256), (b, b, 257), (256, 257, 258)]
        );
    }

    #[test]
    fn errors_name_what_is_wrong_in_a_model() {
        let new = |tokens, merges: &[(&str, &str)], added: &[(&str, u32)]| {
            let merges: Vec<(Vec<u8>, Vec<u8>)> = merges
                .iter()
                .map(|&(left, right)| (left.into(), right.into()))
                .collect();
            let added = added
                .iter()
                .map(|&(content, id)| AddedToken::special(content, id));
            Model::new(tokens, Some(&merges), Settings::default(), added.collect())
        };
        let mut tokens = bytes();
        tokens.pop();
        let lacking = new(tokens, &[], &[]).unwrap();
        let error = lacking.require_bytes().unwrap_err();
        assert!(error.to_string().contains("0xff"));
        assert!(
            message(new(bytes(), &[("a", "b")], &[])).contains("\"ab\" is not in the vocabulary")
        );
        assert!(message(new(bytes(), &[], &[("<s>", 65)])).contains("belongs to the token \"A\""));
        assert!(message(new(bytes(), &[], &[("<s>", 300), ("<s>", 301)])).contains("the id 300"));
        assert!(message(new(bytes(), &[], &[("<s>", 300), ("</s>", 300)])).contains("same id"));
        assert!(message(new(bytes(), &[], &[("", 300)])).contains("empty"));
        let mut tokens = bytes();
        tokens.push((7, b"twice".to_vec()));
        assert!(message(new(tokens, &[], &[])).contains("duplicate id 7"));
    }

    #[test]
    fn ids_may_have_gaps() {
        let mut tokens = bytes();
        tokens.push((4_000_000_000, b"far".to_vec()));
        let model = Model::new(tokens, Some(&[]), Settings::default(), Vec::new()).unwrap();
        assert_eq!(model.token(4_000_000_000), Some(&b"far"[..]));
        assert_eq!(model.token(256), None);
        assert_eq!(model.len(), 257);
    }
}
