//! The symbols that merging begins with: bytes, or tokens of a vocabulary that is extended.

use super::pairs::Pair;
use super::{Beginning, MergeOptions, TieBreak};
use crate::error::{Error, Result};
use crate::interrupt::Interrupt;
use crate::merge::{merge_long, merge_short, PairTable, Symbols, SHORT};
use crate::model::{Alphabet, MergeIds, Model, Vocabulary};
use crate::text::{char_of_byte, to_printable};
use rustc_hash::{FxHashMap, FxHashSet};

/// The symbols that there are when the first merge is learned, and how a piece becomes them.
///
/// Symbols are numbered in the order of the bytes, then of the vocabulary's other ids, then by age.
pub struct Start<'a> {
    /// The bytes of each symbol.
    pub tokens: Vec<Box<[u8]>>,
    /// The ids of the symbols that no merge of this training makes.
    pub ids: Vec<u32>,
    /// The merges that the training begins with, as symbols.
    pub merges: Vec<Pair>,
    table: PairTable,
    symbol_of_byte: [u32; 256],
    /// Symbols of pieces that are tokens as they are.
    symbol_of_id: FxHashMap<u32, u32>,
    pub taken: Taken<'a>,
}

/// The bytes that ids have which no merge of this training makes.
#[derive(Default)]
pub struct Taken<'a> {
    model: Option<&'a Model>,
    /// The contents of added tokens.
    added: FxHashSet<&'a [u8]>,
}

impl Taken<'_> {
    /// Whether no merge may make a token of these bytes.
    pub fn contains(&self, token: &[u8]) -> bool {
        let is_known = |model: &Model| model.vocabulary().id(token).is_some();
        self.model.is_some_and(is_known) || self.added.contains(token)
    }
}

impl<'a> Start<'a> {
    pub fn new(beginning: &Beginning<'a>, options: &MergeOptions) -> Result<Self> {
        let order = byte_order(options.tie_break);
        let mut symbol_of_byte = [0; 256];
        for (symbol, &byte) in (0..).zip(&order) {
            symbol_of_byte[usize::from(byte)] = symbol;
        }
        let mut start = Self {
            tokens: order.iter().map(|&byte| Box::from([byte])).collect(),
            ids: order.iter().map(|&byte| u32::from(byte)).collect(),
            merges: Vec::new(),
            table: PairTable::new(&[]),
            symbol_of_byte,
            symbol_of_id: FxHashMap::default(),
            taken: Taken {
                model: beginning.model,
                added: FxHashSet::default(),
            },
        };
        let mut merges = match beginning.model {
            Some(model) => start.begin_with(model, &order)?,
            None => Vec::new(),
        };
        if !beginning.merges.is_empty() {
            start.go_on_from(beginning.merges, options, &mut merges)?;
        }
        start.table = PairTable::new(&merges);
        Ok(start)
    }

    /// Takes the tokens of a vocabulary for symbols; returns its merges.
    fn begin_with(&mut self, model: &'a Model, order: &[u8]) -> Result<Vec<MergeIds>> {
        check(model)?;
        let singles = Symbols::new(model);
        self.ids = order.iter().map(|&byte| singles.single(byte)).collect();
        self.symbol_of_id = (0..)
            .zip(&self.ids)
            .map(|(symbol, &id)| (id, symbol))
            .collect();
        for (id, token) in model.vocabulary().iter() {
            let symbol = self.tokens.len() as u32;
            self.symbol_of_id.entry(id).or_insert_with(|| {
                self.tokens.push(token.into());
                self.ids.push(id);
                symbol
            });
        }
        let added = model.added().iter();
        self.taken.added = added.map(|token| token.content.as_bytes()).collect();
        let symbol = |id: u32| self.symbol_of_id.get(&id).copied().unwrap_or(id);
        let merges = model.merges().iter();
        let merges = merges.map(|&(left, right, made)| (symbol(left), symbol(right), symbol(made)));
        Ok(merges.collect())
    }

    /// Takes merges that were learned before as if they had been learned now.
    fn go_on_from(
        &mut self,
        begun: &[(Vec<u8>, Vec<u8>)],
        options: &MergeOptions,
        merges: &mut Vec<MergeIds>,
    ) -> Result<()> {
        let mut symbol_of: FxHashMap<Vec<u8>, u32> = FxHashMap::default();
        for (symbol, token) in (0..).zip(&self.tokens) {
            // Where two ids have the same bytes, that which stands for them.
            let stands =
                |model: &Model| model.vocabulary().id(token) == Some(self.ids[symbol as usize]);
            if self.taken.model.is_none_or(stands) {
                symbol_of.insert(token.to_vec(), symbol);
            }
        }
        for (number, (left, right)) in begun.iter().enumerate() {
            let fail = |reason: &str| {
                Err(Error::Option(format!(
                    "merge {number} of those begun with, ({:?}, {:?}), cannot be: {reason}",
                    to_printable(left),
                    to_printable(right)
                )))
            };
            let parts = (symbol_of.get(left), symbol_of.get(right));
            let (Some(&left), Some(&right)) = parts else {
                let part = if parts.0.is_none() { left } else { right };
                return fail(&format!("{:?} is no token by then", to_printable(part)));
            };
            let product = [&begun[number].0[..], &begun[number].1].concat();
            if symbol_of.contains_key(&product) || self.taken.contains(&product) {
                return fail("the two together are a token already");
            }
            if options
                .max_token_length
                .is_some_and(|longest| product.len() > longest)
            {
                return fail("the two together are longer than max_token_length");
            }
            let symbol = self.tokens.len() as u32;
            self.merges.push(Pair { left, right });
            merges.push((left, right, symbol));
            self.tokens.push(product.as_slice().into());
            symbol_of.insert(product, symbol);
        }
        Ok(())
    }

    /// The bytes of a symbol.
    pub fn length(&self, symbol: u32) -> usize {
        self.tokens[symbol as usize].len()
    }

    /// Appends the symbols of a piece.
    pub fn symbols(
        &self,
        piece: &[u8],
        symbols: &mut Vec<u32>,
        interrupt: &Interrupt<'_>,
    ) -> Result<()> {
        if let Some(symbol) = self.whole(piece) {
            symbols.push(symbol);
            return Ok(());
        }
        let bytes = piece
            .iter()
            .map(|&byte| self.symbol_of_byte[usize::from(byte)]);
        let from = symbols.len();
        symbols.extend(bytes);
        if self.table.ranks() == 0 {
            return Ok(());
        }
        let merged = &mut symbols[from..];
        let length = if merged.len() <= SHORT {
            merge_short(&self.table, merged)
        } else {
            merge_long(&self.table, merged, interrupt)?
        };
        symbols.truncate(from + length);
        Ok(())
    }

    /// The symbol that a piece is without merging, as when it is encoded.
    fn whole(&self, piece: &[u8]) -> Option<u32> {
        let model = self
            .taken
            .model
            .filter(|model| model.settings().ignore_merges)?;
        let id = model.vocabulary().id(piece)?;
        (!model.is_special(id)).then(|| self.symbol_of_id.get(&id).copied())?
    }
}

/// The bytes in the order of their symbols.
fn byte_order(tie_break: TieBreak) -> Vec<u8> {
    let mut bytes: Vec<u8> = (0..=255).collect();
    if tie_break == TieBreak::HuggingFace {
        bytes.sort_unstable_by_key(|&byte| char_of_byte(byte));
    }
    bytes
}

/// Fails if a vocabulary is not one of bytes, or if a merge has to do with an id whose bytes are another's.
fn check(model: &Model) -> Result<()> {
    let settings = model.settings();
    if settings.alphabet != Alphabet::Bytes || settings.byte_fallback {
        return Err(Error::Model(
            "merging begins with bytes, and that of this model with characters: only a byte-level \
             vocabulary can be extended"
                .to_owned(),
        ));
    }
    model.require_bytes()?;
    let vocabulary = model.vocabulary();
    for &(left, right, made) in model.merges() {
        for id in [left, right, made] {
            let other = vocabulary.token(id).and_then(|token| vocabulary.id(token));
            if let Some(other) = other.filter(|&other| other != id) {
                return Err(Error::Model(format!(
                    "the ids {other} and {id} of the vocabulary have the same bytes, and merges have to \
                     do with the second: such a vocabulary cannot be extended"
                )));
            }
        }
    }
    Ok(())
}

/// The ids that learned tokens get.
pub struct FreeIds {
    first: u32,
    vocab_size: u32,
    /// In order.
    reserved: Vec<u32>,
}

impl FreeIds {
    /// Those behind the bytes, or behind all ids of a vocabulary that is extended.
    pub fn new(model: Option<&Model>, options: &MergeOptions) -> Result<Self> {
        let vocab_size = options.vocab_size;
        if vocab_size >= super::pieces::TAIL {
            let message = format!(
                "vocab_size is {vocab_size}; the largest possible is {}",
                super::pieces::TAIL - 1
            );
            return Err(Error::Option(message));
        }
        let first = model.map_or(256, |model| {
            let last = |ids: &Vocabulary| ids.iter().last().map(|(id, _)| id);
            let added = model.added().last().map(|token| token.id);
            let last = last(model.vocabulary()).max(added);
            last.map_or(0, |id| id.saturating_add(1))
        });
        let mut reserved = options.reserved.clone();
        reserved.retain(|id| (first..vocab_size).contains(id));
        reserved.sort_unstable();
        reserved.dedup();
        Ok(Self {
            first,
            vocab_size,
            reserved,
        })
    }

    pub fn len(&self) -> usize {
        self.vocab_size.saturating_sub(self.first) as usize - self.reserved.len()
    }

    pub fn iter(&self) -> impl Iterator<Item = u32> + '_ {
        (self.first..self.vocab_size).filter(|id| self.reserved.binary_search(id).is_err())
    }
}
