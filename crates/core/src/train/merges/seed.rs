//! The initial symbols of a training: bytes, the tokens of a vocabulary to extend, the products of earlier
//! merges.

use super::options::{MergeOptions, TieBreak};
use crate::error::{quoted, Error, Result};
use crate::interrupt::Interrupt;
use crate::merge::{merge_symbols, PairTable, Symbols};
use crate::model::{Alphabet, MergeIds, Model, NONE};
use crate::reserve::reserve;
use crate::text::{char_of_byte, to_printable};
use rustc_hash::{FxHashMap, FxHashSet};
use std::hash::{Hash, Hasher};

/// Two adjacent symbols.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Pair {
    pub left: u32,
    pub right: u32,
}

impl Hash for Pair {
    fn hash<H: Hasher>(&self, state: &mut H) {
        state.write_u64(u64::from(self.left) << 32 | u64::from(self.right));
    }
}

/// The symbols before the first new merge, and how pieces become them.
///
/// Symbols are numbered: first the bytes, then the vocabulary's other tokens by id, then the products of
/// merges by age.
pub struct Seed<'a> {
    /// The bytes of each symbol.
    pub tokens: Vec<Box<[u8]>>,
    /// The ids of the symbols that no merge of this training makes.
    pub ids: Vec<u32>,
    /// The merges of the interrupted run, as symbols.
    pub merges: Vec<Pair>,
    pub reserved: ReservedTokens<'a>,
    /// Whether the vocabulary to extend lacks bytes.
    lacks_bytes: bool,
    table: PairTable,
    symbol_of_byte: [u32; 256],
    symbol_of_id: FxHashMap<u32, u32>,
}

/// The tokens of the vocabulary to extend. No merge may make their bytes again.
#[derive(Default)]
pub struct ReservedTokens<'a> {
    model: Option<&'a Model>,
    /// The contents of added tokens.
    added: FxHashSet<&'a [u8]>,
}

impl ReservedTokens<'_> {
    pub fn contains(&self, token: &[u8]) -> bool {
        let is_known = |model: &Model| model.vocabulary().id(token).is_some();
        self.model.is_some_and(is_known) || self.added.contains(token)
    }
}

impl<'a> Seed<'a> {
    /// The symbols of a vocabulary to extend, and of the merges that an interrupted run learned.
    pub fn new(
        model: Option<&'a Model>,
        learned: &[(Vec<u8>, Vec<u8>)],
        options: &MergeOptions,
    ) -> Result<Self> {
        let order = byte_order(options.tie_break);
        let mut symbol_of_byte = [0; 256];
        for (symbol, &byte) in (0..).zip(&order) {
            symbol_of_byte[usize::from(byte)] = symbol;
        }
        let mut seed = Self {
            tokens: order.iter().map(|&byte| Box::from([byte])).collect(),
            ids: order.iter().map(|&byte| u32::from(byte)).collect(),
            merges: Vec::new(),
            lacks_bytes: model.is_some_and(|model| model.require_bytes().is_err()),
            table: PairTable::new(&[]),
            symbol_of_byte,
            symbol_of_id: FxHashMap::default(),
            reserved: ReservedTokens {
                model,
                added: FxHashSet::default(),
            },
        };
        let mut merges = match model {
            Some(model) => seed.add_vocabulary(model, &order)?,
            None => Vec::new(),
        };
        if !learned.is_empty() {
            seed.add_merges(learned, options, &mut merges)?;
        }
        seed.table = PairTable::new(&merges);
        Ok(seed)
    }

    /// Adds a vocabulary's tokens as symbols. Returns its merges, as symbols.
    fn add_vocabulary(&mut self, model: &'a Model, order: &[u8]) -> Result<Vec<MergeIds>> {
        check_extendable(model)?;
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
        self.reserved.added = added.map(|token| token.content.as_bytes()).collect();
        let symbol = |id: u32| self.symbol_of_id.get(&id).copied().unwrap_or(id);
        let merges = model.merges().iter();
        let merges = merges.map(|&(left, right, made)| (symbol(left), symbol(right), symbol(made)));
        Ok(merges.collect())
    }

    /// Adds the merges of an interrupted run, as if this run had learned them.
    fn add_merges(
        &mut self,
        learned: &[(Vec<u8>, Vec<u8>)],
        options: &MergeOptions,
        merges: &mut Vec<MergeIds>,
    ) -> Result<()> {
        let mut symbol_of: FxHashMap<Vec<u8>, u32> = FxHashMap::default();
        for (symbol, token) in (0..).zip(&self.tokens) {
            // Of several ids with the same bytes, encoding uses the one that the vocabulary looks up.
            let id = self.ids[symbol as usize];
            let is_used = |model: &Model| model.vocabulary().id(token) == Some(id);
            if self.reserved.model.is_none_or(is_used) {
                symbol_of.insert(token.to_vec(), symbol);
            }
        }
        for (number, (left, right)) in learned.iter().enumerate() {
            let fail = |reason: &str| {
                Err(Error::Option(format!(
                    "merge {number} of the warm start, ({}, {}), is impossible: {reason}",
                    quoted(&to_printable(left)),
                    quoted(&to_printable(right))
                )))
            };
            let parts = (symbol_of.get(left), symbol_of.get(right));
            let (Some(&left_symbol), Some(&right_symbol)) = parts else {
                let part = if parts.0.is_none() { left } else { right };
                let part = quoted(&to_printable(part));
                return fail(&format!("{part} is not a token yet"));
            };
            let product = [&left[..], right].concat();
            if symbol_of.contains_key(&product) || self.reserved.contains(&product) {
                return fail("the product is already a token");
            }
            let max_length = options.max_token_length;
            if max_length.is_some_and(|longest| product.len() > longest) {
                return fail("the product is longer than max_token_length");
            }
            let symbol = self.tokens.len() as u32;
            self.merges.push(Pair {
                left: left_symbol,
                right: right_symbol,
            });
            merges.push((left_symbol, right_symbol, symbol));
            self.tokens.push(product.as_slice().into());
            symbol_of.insert(product, symbol);
        }
        Ok(())
    }

    /// The number of bytes of a symbol.
    pub fn length(&self, symbol: u32) -> usize {
        self.tokens[symbol as usize].len()
    }

    /// Appends the symbols of a piece. One with a byte that the vocabulary lacks has none: encoding drops or replaces
    /// that byte, so merges of it would make no token of the text.
    pub fn symbols(
        &self,
        piece: &[u8],
        symbols: &mut Vec<u32>,
        interrupt: &Interrupt<'_>,
    ) -> Result<()> {
        if let Some(symbol) = self.whole_piece(piece) {
            symbols.push(symbol);
            return Ok(());
        }
        let bytes = piece
            .iter()
            .map(|&byte| self.symbol_of_byte[usize::from(byte)]);
        if self.lacks_bytes
            && bytes
                .clone()
                .any(|symbol| self.ids[symbol as usize] == NONE)
        {
            return Ok(());
        }
        let start = symbols.len();
        reserve(symbols, piece.len())?;
        symbols.extend(bytes);
        if self.table.ranks() == 0 {
            return Ok(());
        }
        let length = merge_symbols(&self.table, &mut symbols[start..], interrupt)?;
        symbols.truncate(start + length);
        Ok(())
    }

    /// The symbol of a piece that encoding takes as one token without merging.
    fn whole_piece(&self, piece: &[u8]) -> Option<u32> {
        let ignores_merges = |model: &&Model| model.settings().ignore_merges;
        let model = self.reserved.model.filter(ignores_merges)?;
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

/// Fails if a vocabulary is not byte-level, or if a merge uses an id whose bytes belong to another id.
fn check_extendable(model: &Model) -> Result<()> {
    let settings = model.settings();
    if settings.alphabet != Alphabet::Bytes || settings.byte_fallback {
        return Err(Error::Model(
            "this model merges characters; only a byte-level vocabulary can be extended".to_owned(),
        ));
    }
    let vocabulary = model.vocabulary();
    for &(left, right, made) in model.merges() {
        for id in [left, right, made] {
            let used = vocabulary.token(id).and_then(|token| vocabulary.id(token));
            if let Some(used) = used.filter(|&used| used != id) {
                return Err(Error::Model(format!(
                    "the ids {used} and {id} have the same bytes, and merges use the second: this \
                     vocabulary cannot be extended"
                )));
            }
        }
    }
    Ok(())
}
