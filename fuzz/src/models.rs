//! Bytes to small models, with every setting that changes ids.

use crate::{input, naive};
use arbitrary::{Result, Unstructured};
use bpe_tokenizer_core::alignment::OffsetMap;
use bpe_tokenizer_core::decoder::Decoder;
use bpe_tokenizer_core::encoder::Special;
use bpe_tokenizer_core::model::{Alphabet, Model, Settings, Spaces, Strip, Unknown};
use bpe_tokenizer_core::normalize::Normalization;
use bpe_tokenizer_core::normalizers::Normalizer;
use bpe_tokenizer_core::pretokenize::{
    Behavior, Metaspace, PreTokenizer, PreTokenizers, Prepend, Split,
};
use bpe_tokenizer_core::special::AddedToken;
use bpe_tokenizer_core::Encoder;
use std::cell::{OnceCell, RefCell};
use std::fmt;
use std::rc::Rc;

/// A model, ready to use.
pub struct Setup {
    /// The model.
    pub model: Model,
    /// Its decoder.
    pub decoder: Decoder,
    /// The special tokens that calls recognise.
    pub special: Special,
    /// Whether the merges follow from the ids, which are ranks as in tiktoken.
    pub of_ranks: bool,
    /// Compiled on first use: that takes most of the time.
    encoder: OnceCell<Encoder>,
    ids: OnceCell<Vec<u32>>,
    pre_tokenizers: OnceCell<PreTokenizers>,
}

impl fmt::Debug for Setup {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let tokens = self.model.vocabulary().iter();
        let is_plain = |(_, token): &(u32, &[u8])| token.len() == 1;
        let tokens = tokens.filter(|token| !is_plain(token));
        let tokens: Vec<_> = tokens
            .map(|(id, token)| (id, token.escape_ascii().to_string()))
            .collect();
        f.debug_struct("Setup")
            .field("tokens", &tokens)
            .field("merges", &self.model.merges())
            .field("settings", &self.model.settings())
            .field("added", &self.model.added())
            .field("special", &self.special)
            .field("of_ranks", &self.of_ranks)
            .finish()
    }
}

/// What learned tokens begin with: the bytes, or the characters, that texts have often.
const COMMON: &[u8] = "ab 'sthein\n.<1é日▁".as_bytes();
const COMMON_CHARACTERS: [&str; 16] = [
    "a", "b", "▁", "e", "s", "t", "h", "é", "日", " ", "<", ">", "'", "0", "x", "\u{301}",
];

const PATTERNS: [&str; 10] = [
    r"'(?:[sdmt]|ll|ve|re)| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+",
    r"'(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}++|\p{N}{1,3}+| ?[^\s\p{L}\p{N}]++[\r\n]*+|\s++$|\s*[\r\n]|\s+(?!\S)|\s",
    r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+",
    r" ?\w+|\s",
    r"\w+",
    r"\b\w+\b|\W+",
    "x+",
    "[^|]+|[|]",
    r"\p{N}",
    r"\s+",
];

const CONTENTS: [&str; 16] = [
    "<s>", "</s>", "<|end|>", "<|end", "a", "ab", " b", "é", "e\u{301}", "日", "<", "x y", "end",
    "A", "▁a", "abab",
];

const SPECIAL: [&str; 3] = ["<s>", "<|end|>", "ab"];

thread_local!(static SETUPS: RefCell<input::Kept<Setup>> = RefCell::default());

impl Setup {
    /// The model that an input begins with, which is kept, and the rest of the input. None if the core refuses it.
    pub fn split(data: &[u8]) -> Option<(Rc<Self>, &[u8])> {
        let (setup, rest) = input::parts(data);
        let built = SETUPS.with_borrow_mut(|kept| kept.get(setup, || Self::new(setup)));
        Some((built?, rest))
    }

    /// The model that bytes describe. None if the core refuses it.
    fn new(bytes: &[u8]) -> Option<Self> {
        Self::build(&mut Unstructured::new(bytes)).ok()?
    }

    fn build(u: &mut Unstructured<'_>) -> Result<Option<Self>> {
        let kind: u8 = u.arbitrary()?;
        let mut settings = Settings {
            ignore_merges: kind & 1 != 0,
            ..Settings::default()
        };
        let (mut tokens, is_characters) = (Vec::new(), kind & 6 == 6);
        if is_characters {
            characters(u, &mut settings, &mut tokens)?;
        } else {
            bytes(u, &mut settings, &mut tokens)?;
        }
        let merges = learned(u, &mut tokens, is_characters)?;
        settings.pre_tokenizers = some_of(u, 2, pre_tokenizer)?;
        settings.normalizers = some_of(u, 3, normalizer)?;
        let of_ranks = kind & 8 != 0 && !is_characters;
        let added = added_tokens(u, &mut tokens)?;
        let merges = (!of_ranks).then_some(&merges[..]);
        let special = match u.arbitrary::<u8>()? % 4 {
            0 => Special::None,
            1 => Special::Only(SPECIAL.map(str::to_owned).into_iter().collect()),
            _ => Special::All,
        };
        let Ok(model) = Model::new(tokens, merges, settings, added) else {
            return Ok(None);
        };
        Ok(Some(Self {
            decoder: Decoder::new(model.clone()),
            special,
            of_ranks: of_ranks && model.require_bytes().is_ok(),
            encoder: OnceCell::new(),
            ids: OnceCell::new(),
            pre_tokenizers: OnceCell::new(),
            model,
        }))
    }

    /// The ids of the vocabulary.
    pub fn ids(&self) -> &[u32] {
        let ids = || {
            self.model
                .vocabulary()
                .iter()
                .map(|token| token.0)
                .collect()
        };
        self.ids.get_or_init(ids)
    }

    /// The encoder.
    pub fn encoder(&self) -> &Encoder {
        self.encoder
            .get_or_init(|| Encoder::new(self.model.clone()).unwrap())
    }

    /// The ids of a text, by naive implementations of each stage but the split.
    pub fn naive_ids(&self, text: &str) -> Vec<u32> {
        let settings = self.model.settings();
        let wanted = self
            .model
            .added()
            .iter()
            .filter(|token| match &self.special {
                Special::None => !token.special,
                Special::All => true,
                Special::Only(contents) => !token.special || contents.contains(&token.content),
            });
        let (normalized, original): (Vec<_>, Vec<_>) = wanted.partition(|token| token.normalized);
        let original: Vec<_> = original
            .into_iter()
            .map(|token| (token.content.clone(), token))
            .collect();
        let normalized = normalized.into_iter();
        let normalized: Vec<_> = normalized
            .map(|token| {
                (
                    naive::normalize(&settings.normalizers, &token.content),
                    token,
                )
            })
            .collect();
        let mut ids = Vec::new();
        between(
            &naive::find_added(&original, text),
            text,
            &mut |part| match part {
                Err(id) => ids.push(id),
                Ok(range) => {
                    let part = &text[range.clone()];
                    let part = naive::normalize_aligned(&settings.normalizers, part);
                    let alignment = part.alignment();
                    between(
                        &naive::find_added(&normalized, &part.text),
                        &part.text,
                        &mut |inner| match inner {
                            Err(id) => ids.push(id),
                            Ok(within) => {
                                let offsets = OffsetMap {
                                    outer: None,
                                    base: range.start,
                                    alignment: &alignment,
                                    offset: within.start,
                                };
                                let stretch = part.text[within].as_bytes();
                                ids.extend(self.pieces(stretch, &offsets).iter().flat_map(
                                    |piece| match self.of_ranks {
                                        true => naive::encode_piece_by_ranks(&self.model, piece),
                                        false => naive::encode_piece(&self.model, piece),
                                    },
                                ));
                            }
                        },
                    );
                }
            },
        );
        ids
    }

    fn pieces(&self, text: &[u8], offsets: &OffsetMap<'_>) -> Vec<Vec<u8>> {
        let steps = &self.model.settings().pre_tokenizers;
        let pre_tokenizers = self
            .pre_tokenizers
            .get_or_init(|| PreTokenizers::new(steps).unwrap());
        let mut pieces = Vec::new();
        let split = pre_tokenizers.split(text, offsets, true, |piece| {
            pieces.push(piece.text[piece.range].to_vec());
            true
        });
        split.unwrap();
        pieces
    }

    /// Whether decoding restores every text.
    pub fn is_lossless(&self) -> bool {
        let settings = self.model.settings();
        let keeps = |step: &PreTokenizer| matches!(step, PreTokenizer::Split(split) | PreTokenizer::SplitBytes(split) if split.behavior != Behavior::Removed);
        settings.alphabet == Alphabet::Bytes
            && self.model.require_bytes().is_ok()
            && settings.spaces.is_none()
            && settings.normalizers.is_empty()
            && settings.pre_tokenizers.iter().all(keeps)
            && !self
                .model
                .added()
                .iter()
                .any(|token| token.lstrip || token.rstrip)
    }
}

/// Calls `take` with each added token, and with each stretch between them.
fn between(
    found: &[naive::Found],
    text: &str,
    take: &mut dyn FnMut(std::result::Result<std::ops::Range<usize>, u32>),
) {
    let mut done = 0;
    for (id, range) in found {
        if done < range.start {
            take(Ok(done..range.start));
        }
        take(Err(*id));
        done = range.end;
    }
    if done < text.len() {
        take(Ok(done..text.len()));
    }
}

fn some_of<T>(
    u: &mut Unstructured<'_>,
    most: u8,
    make: impl Fn(&mut Unstructured<'_>) -> Result<T>,
) -> Result<Vec<T>> {
    let count = u.arbitrary::<u8>()? % (2 * most + 2);
    (0..count.saturating_sub(most + 1))
        .map(|_| make(u))
        .collect()
}

type Tokens = Vec<(u32, Vec<u8>)>;

/// A vocabulary of bytes, in any order of the ids, and sometimes without some bytes.
fn bytes(u: &mut Unstructured<'_>, settings: &mut Settings, tokens: &mut Tokens) -> Result<()> {
    let order: u8 = u.arbitrary()?;
    let factor = [1, 1, 1, 5, 77][usize::from(order % 5)];
    let all = (0..=255_u8).map(|byte| (u32::from(byte.wrapping_mul(factor)), vec![byte]));
    tokens.extend(all);
    if order >= 200 {
        let dropped: [u8; 3] = [
            u.arbitrary()?,
            COMMON[usize::from(order) % COMMON.len()],
            order,
        ];
        tokens.retain(|(_, token)| !dropped.contains(&token[0]));
        settings.unknown = unknown(u, tokens)?;
    }
    Ok(())
}

/// A vocabulary of characters, in the style of SentencePiece.
fn characters(
    u: &mut Unstructured<'_>,
    settings: &mut Settings,
    tokens: &mut Tokens,
) -> Result<()> {
    settings.alphabet = Alphabet::Characters;
    let count = u.int_in_range(3..=COMMON_CHARACTERS.len())?;
    for character in &COMMON_CHARACTERS[..count] {
        tokens.push((tokens.len() as u32, character.as_bytes().to_vec()));
    }
    tokens.push((tokens.len() as u32, b"<unk>".to_vec()));
    let kind: u8 = u.arbitrary()?;
    settings.byte_fallback = kind & 1 != 0;
    if kind & 3 == 3 {
        let missing = u32::from(kind) * 3; // of some kinds, a byte token is missing
        for byte in (0..=255_u32).filter(|&byte| byte != missing) {
            tokens.push((tokens.len() as u32, format!("<0x{byte:02X}>").into_bytes()));
        }
    }
    settings.unknown = unknown(u, tokens)?;
    if kind & 4 != 0 {
        settings.spaces = Some(Spaces {
            space: *u.choose(&['▁', '▁', '_', ' '])?,
            byte_fallback: kind & 8 != 0,
            strip: *u.choose(&[Strip::No, Strip::One, Strip::FirstToken])?,
        });
    }
    Ok(())
}

fn unknown(u: &mut Unstructured<'_>, tokens: &Tokens) -> Result<Unknown> {
    let kind: u8 = u.arbitrary()?;
    Ok(match kind % 4 {
        0 => Unknown::Dropped,
        1 => Unknown::Gap,
        _ => Unknown::Token {
            id: tokens.last().map_or(0, |token| token.0),
            fuse: kind & 4 != 0,
        },
    })
}

/// Adds tokens that merges make, and some that none makes.
fn learned(
    u: &mut Unstructured<'_>,
    tokens: &mut Tokens,
    is_characters: bool,
) -> Result<Vec<(Vec<u8>, Vec<u8>)>> {
    let mut parts: Vec<Vec<u8>> = match is_characters {
        true => tokens
            .iter()
            .take(COMMON_CHARACTERS.len())
            .map(|token| token.1.clone())
            .collect(),
        false => COMMON.iter().map(|&byte| vec![byte]).collect(),
    };
    parts.retain(|part| tokens.iter().any(|(_, token)| token == part));
    let (mut merges, mut next) = (
        Vec::new(),
        1 + tokens.iter().map(|it| it.0).max().unwrap_or(0),
    );
    for _ in 0..u.int_in_range(0..=24)? {
        let (left, right): (u8, u8) = u.arbitrary()?;
        // Half of the parts are recent ones, so that tokens grow.
        let part = |index: u8| match index {
            0..128 => parts[usize::from(index) % parts.len()].clone(),
            _ => parts[parts.len() - 1 - usize::from(index) % parts.len().min(6)].clone(),
        };
        let (left, right) = (part(left), part(right));
        let product = [&left[..], &right].concat();
        if product.len() > 40 {
            continue;
        }
        if !parts.contains(&product) {
            tokens.push((next, product.clone()));
            parts.push(product);
            next += 1 + u32::from(merges.len() == 3); // a gap in the ids
        }
        merges.push((left, right));
    }
    match u.arbitrary::<u8>()? {
        0..150 => {}
        150..200 => merges.reverse(),
        shift => {
            let count = merges.len().max(1);
            merges.rotate_left(usize::from(shift) % count);
            // Some tokens are now made by no merge.
            merges.truncate(count - count / 4);
        }
    }
    Ok(merges)
}

fn pre_tokenizer(u: &mut Unstructured<'_>) -> Result<PreTokenizer> {
    let kind: u8 = u.arbitrary()?;
    Ok(match kind % 8 {
        0..4 => PreTokenizer::isolated(*u.choose(&PATTERNS)?),
        4 | 5 => {
            let split = Split {
                pattern: (*u.choose(&PATTERNS)?).to_owned(),
                behavior: *u.choose(&[
                    Behavior::Isolated,
                    Behavior::Removed,
                    Behavior::MergedWithPrevious,
                    Behavior::MergedWithNext,
                    Behavior::Contiguous,
                ])?,
                invert: kind & 16 != 0,
            };
            match kind & 32 {
                0 => PreTokenizer::Split(split),
                _ => PreTokenizer::SplitBytes(split),
            }
        }
        6 => PreTokenizer::PrefixSpace,
        _ => PreTokenizer::Metaspace(Metaspace {
            replacement: if kind & 16 != 0 { '▁' } else { '_' },
            prepend: *u.choose(&[Prepend::Always, Prepend::First, Prepend::Never])?,
            split: kind & 32 != 0,
        }),
    })
}

/// A step of normalisation.
pub fn normalizer(u: &mut Unstructured<'_>) -> Result<Normalizer> {
    let kind: u8 = u.arbitrary()?;
    let replace = |pattern: &str, content: &str| Normalizer::Replace {
        pattern: pattern.to_owned(),
        content: content.to_owned(),
    };
    Ok(match kind % 16 {
        0 | 8 => Normalizer::Form(Normalization::Nfc),
        1 => Normalizer::Form(Normalization::Nfd),
        2 | 9 => Normalizer::Form(Normalization::Nfkc),
        3 => Normalizer::Form(Normalization::Nfkd),
        4 => Normalizer::Lowercase,
        5 => Normalizer::StripAccents,
        6 | 10 => Normalizer::Strip {
            left: kind & 16 != 0,
            right: kind & 32 != 0,
        },
        7 => Normalizer::Prepend {
            prepend: (*u.choose(&["▁", " ", "a", "\u{301}", ""])?).to_owned(),
        },
        11 => replace(" ", "▁"),
        12 => replace(" {2,}", ""),
        13 => replace("a|ab", "b "),
        14 => replace(r"\s+(?!\S)|e\x{301}", "é"),
        _ => replace("(?<=a)b", "\u{301}"),
    })
}

fn added_tokens(u: &mut Unstructured<'_>, tokens: &mut Tokens) -> Result<Vec<AddedToken>> {
    let mut added: Vec<AddedToken> = Vec::new();
    let mut next = 2 + tokens.iter().map(|it| it.0).max().unwrap_or(0);
    for _ in 0..u.arbitrary::<u8>()? % 6 {
        let content = *u.choose(&CONTENTS)?;
        let flags: u8 = u.arbitrary()?;
        if added.iter().any(|token| token.content == content) {
            continue;
        }
        let known = tokens.iter().find(|(_, token)| token == content.as_bytes());
        let id = match known {
            Some(&(id, _)) => id,
            None => {
                next += 1;
                if flags & 32 != 0 {
                    tokens.push((next, content.as_bytes().to_vec()));
                }
                next
            }
        };
        added.push(AddedToken {
            content: content.to_owned(),
            id,
            special: flags & 1 != 0,
            single_word: flags & 2 != 0,
            lstrip: flags & 4 != 0,
            rstrip: flags & 8 != 0,
            normalized: flags & 16 != 0,
        });
    }
    Ok(added)
}

#[cfg(test)]
mod tests {
    use super::*;
    use bpe_tokenizer_core::text::Text;
    use bpe_tokenizer_core::Interrupt;

    /// A model of the characters of `tokens`, whose Metaspace prepends to the first piece.
    fn setup(normalizers: Vec<Normalizer>, added: &str) -> Setup {
        let tokens = ["a", "b", "é", "\u{301}", "_", added];
        let tokens = (0..).zip(tokens.map(|token| token.as_bytes().to_vec()));
        let settings = Settings {
            alphabet: Alphabet::Characters,
            normalizers,
            pre_tokenizers: vec![PreTokenizer::Metaspace(Metaspace {
                replacement: '_',
                prepend: Prepend::First,
                split: true,
            })],
            ..Settings::default()
        };
        let added = AddedToken {
            content: added.to_owned(),
            id: 5,
            special: false,
            single_word: false,
            lstrip: false,
            rstrip: false,
            normalized: true,
        };
        let model = Model::new(tokens.collect(), Some(&[]), settings, vec![added]).unwrap();
        Setup {
            decoder: Decoder::new(model.clone()),
            special: Special::All,
            of_ranks: false,
            encoder: OnceCell::new(),
            ids: OnceCell::new(),
            pre_tokenizers: OnceCell::new(),
            model,
        }
    }

    #[test]
    fn the_first_piece_begins_at_the_first_character() {
        let replace = |pattern: &str, content: &str| Normalizer::Replace {
            pattern: pattern.to_owned(),
            content: content.to_owned(),
        };
        // The ids of `tokenizers` 0.23: tests/peers/test_huggingface_kinds.py has the same cases.
        for (normalizer, added, text, expected) in [
            (replace("ab", "é"), "x", "ab", &[2][..]),
            (replace("a|bb", "é"), "x", "ab", &[4, 2, 1]),
            (replace("bb", "é"), "x", "abb", &[4, 0, 2]),
            (replace("a+", ""), "x", "aab", &[1]),
            (replace("a", "xb"), "x", "a", &[5, 4, 1]),
            (Normalizer::StripAccents, "x", "\u{301}a", &[0]),
            (
                Normalizer::Prepend {
                    prepend: "x".to_owned(),
                },
                "x",
                "ab",
                &[4, 5, 0, 1],
            ),
            (
                Normalizer::Form(Normalization::Nfd),
                "x",
                "\u{340}\u{301}a",
                &[4, 3, 0],
            ),
        ] {
            let setup = setup(vec![normalizer.clone()], added);
            let mut ids = Vec::new();
            let never = Interrupt::never();
            setup
                .encoder()
                .encode(Text::Str(text), &setup.special, &mut ids, &never)
                .unwrap();
            assert_eq!(ids, expected, "{normalizer:?} on {text:?}");
            assert_eq!(
                setup.naive_ids(text),
                expected,
                "{normalizer:?} on {text:?}"
            );
        }
    }
}
