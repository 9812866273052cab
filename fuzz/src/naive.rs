//! Naive implementations of what the core does fast: the specification, in the shortest way.

use bpe_tokenizer_core::model::{Alphabet, Model, Unknown, NONE};
use bpe_tokenizer_core::normalize::Normalization;
use bpe_tokenizer_core::normalizers::Normalizer;
use bpe_tokenizer_core::special::AddedToken;
use fancy_regex::Regex;
use rustc_hash::FxHashMap;
use std::cell::RefCell;
use std::ops::Range;
use std::rc::Rc;
use std::sync::LazyLock;
use unicode_normalization::char::is_combining_mark;
use unicode_normalization::UnicodeNormalization;

/// The symbols that merging begins with, each with the number of bytes that it covers. `NONE` is a gap.
pub fn symbols(model: &Model, piece: &[u8]) -> Vec<(u32, usize)> {
    let settings = model.settings();
    let vocabulary = model.vocabulary();
    let units: Vec<&[u8]> = match settings.alphabet {
        Alphabet::Bytes => piece.chunks(1).collect(),
        Alphabet::Characters => characters(piece),
    };
    let mut symbols = Vec::new();
    let mut unknown = 0;
    let flush = |unknown: &mut usize, symbols: &mut Vec<(u32, usize)>| {
        if let (Unknown::Token { id, .. }, 1..) = (settings.unknown, *unknown) {
            symbols.push((id, *unknown));
        }
        *unknown = 0;
    };
    for unit in units {
        let falls_back = settings.byte_fallback && settings.alphabet == Alphabet::Characters;
        let bytes = unit.iter();
        let bytes = bytes.map(|byte| vocabulary.id(format!("<0x{byte:02X}>").as_bytes()));
        let bytes: Option<Vec<u32>> = bytes.collect();
        match (
            vocabulary.id(unit).filter(|_| is_symbol(model, unit)),
            bytes,
            settings.unknown,
        ) {
            (Some(id), _, _) => {
                flush(&mut unknown, &mut symbols);
                symbols.push((id, unit.len()));
            }
            (_, Some(bytes), _) if falls_back => symbols.extend(bytes.iter().map(|&id| (id, 1))),
            (_, _, Unknown::Dropped) => {}
            (_, _, Unknown::Gap) => symbols.push((NONE, unit.len())),
            (_, _, Unknown::Token { fuse, .. }) => {
                if !fuse {
                    flush(&mut unknown, &mut symbols);
                }
                unknown += unit.len();
            }
        }
    }
    flush(&mut unknown, &mut symbols);
    symbols
}

/// A byte that belongs to no character is not a symbol of a vocabulary of characters.
fn is_symbol(model: &Model, unit: &[u8]) -> bool {
    model.settings().alphabet == Alphabet::Bytes || std::str::from_utf8(unit).is_ok()
}

/// The characters of a text. A byte that belongs to no character is alone.
fn characters(text: &[u8]) -> Vec<&[u8]> {
    let mut characters = Vec::new();
    for chunk in text.utf8_chunks() {
        let mut rest = chunk.valid();
        while let Some(c) = rest.chars().next() {
            let (character, after) = rest.split_at(c.len_utf8());
            characters.push(character.as_bytes());
            rest = after;
        }
        characters.extend(chunk.invalid().chunks(1));
    }
    characters
}

/// The ids of a piece: of all pairs with a merge, the one of the lowest rank, the leftmost first.
pub fn encode_piece(model: &Model, piece: &[u8]) -> Vec<u32> {
    if let Some(id) = whole_token(model, piece) {
        return vec![id];
    }
    let mut ids: Vec<u32> = symbols(model, piece)
        .iter()
        .map(|symbol| symbol.0)
        .collect();
    // Of equal pairs, the last counts.
    let rank = |pair: &[u32]| {
        let found = model
            .merges()
            .iter()
            .rposition(|&(left, right, _)| [left, right] == pair[..]);
        found.filter(|_| !pair.contains(&NONE))
    };
    while let Some((rank, at)) = (0..ids.len().saturating_sub(1))
        .filter_map(|at| Some((rank(&ids[at..at + 2])?, at)))
        .min()
    {
        ids.splice(at..at + 2, [model.merges()[rank].2]);
    }
    ids.retain(|&id| id != NONE);
    ids
}

fn whole_token(model: &Model, piece: &[u8]) -> Option<u32> {
    let id = model.vocabulary().id(piece)?;
    (model.settings().ignore_merges && !model.is_special(id)).then_some(id)
}

/// The ids of a piece with a vocabulary of ranks, as tiktoken's `byte_pair_encode` finds them: of all neighbours whose
/// joined bytes are a token, those of the lowest rank join.
pub fn encode_piece_by_ranks(model: &Model, piece: &[u8]) -> Vec<u32> {
    let rank = |part: &[u8]| {
        let id = model.vocabulary().id(part)?;
        (part.len() == 1 || model.added_token(id).is_none()).then_some(id)
    };
    if let Some(id) = whole_token(model, piece) {
        return vec![id];
    }
    let mut cuts: Vec<usize> = (0..=piece.len()).collect();
    while let Some((_, at)) = (0..cuts.len().saturating_sub(2))
        .filter_map(|at| Some((rank(&piece[cuts[at]..cuts[at + 2]])?, at)))
        .min()
    {
        cuts.remove(at + 1);
    }
    let parts = cuts.windows(2).map(|cut| rank(&piece[cut[0]..cut[1]]));
    parts.flatten().collect()
}

/// An occurrence of an added token: its id, and its bytes with the white space that it includes.
pub type Found = (u32, Range<usize>);

/// The added tokens in a text: the leftmost occurrence first, the longest of those that begin there.
pub fn find_added(tokens: &[(String, &AddedToken)], text: &str) -> Vec<Found> {
    let (mut found, mut at, mut done) = (Vec::new(), 0, 0);
    while at < text.len() {
        let here = tokens.iter().filter(|(content, _)| {
            !content.is_empty() && text.as_bytes()[at..].starts_with(content.as_bytes())
        });
        // Of equal contents, the one of the first token.
        let Some((content, token)) = here.rev().max_by_key(|(content, _)| content.len()) else {
            at += 1;
            continue;
        };
        let (start, end) = (at, at + content.len());
        at = end;
        if start < done {
            continue;
        }
        let before = text[..start].chars().next_back();
        let after = text[end..].chars().next();
        if token.single_word && [before, after].into_iter().flatten().any(is_word) {
            continue;
        }
        let (mut from, mut to) = (start, end);
        if token.lstrip {
            from = done + text[done..start].trim_end().len();
        }
        if token.rstrip {
            to = text.len() - text[end..].trim_start().len();
        }
        done = to;
        found.push((token.id, from..to));
    }
    found
}

fn is_word(c: char) -> bool {
    static WORD: LazyLock<Regex> = LazyLock::new(|| Regex::new(r"\w").unwrap());
    WORD.is_match(c.encode_utf8(&mut [0; 4])).unwrap()
}

/// A normalised text, step by step.
pub fn normalize(steps: &[Normalizer], text: &str) -> String {
    steps
        .iter()
        .fold(text.to_owned(), |text, step| normalize_step(step, &text))
}

fn normalize_step(step: &Normalizer, text: &str) -> String {
    match step {
        Normalizer::Form(form) => normal_form(*form, text),
        Normalizer::Lowercase => text.chars().flat_map(char::to_lowercase).collect(),
        Normalizer::StripAccents => text.chars().filter(|&c| !is_combining_mark(c)).collect(),
        Normalizer::Strip { left, right } => {
            let text = if *left { text.trim_start() } else { text };
            let text = if *right { text.trim_end() } else { text };
            text.to_owned()
        }
        Normalizer::Prepend(_) if text.is_empty() => String::new(),
        Normalizer::Prepend(content) => format!("{content}{text}"),
        Normalizer::Replace { pattern, content } => {
            let regex = regex(pattern);
            let (mut replaced, mut done) = (String::new(), 0);
            for found in regex.find_iter(text).map(Result::unwrap) {
                if !found.range().is_empty() {
                    replaced.push_str(&text[done..found.start()]);
                    replaced.push_str(content);
                    done = found.end();
                }
            }
            replaced + &text[done..]
        }
    }
}

/// A compiled pattern; the targets use few.
fn regex(pattern: &str) -> Rc<Regex> {
    thread_local!(static KNOWN: RefCell<FxHashMap<String, Rc<Regex>>> = RefCell::default());
    KNOWN.with_borrow_mut(|known| {
        let compile = || Rc::new(Regex::new(pattern).unwrap());
        known
            .entry(pattern.to_owned())
            .or_insert_with(compile)
            .clone()
    })
}

/// A Unicode normalisation form of a whole text.
pub fn normal_form(form: Normalization, text: &str) -> String {
    match form {
        Normalization::Nfc => text.nfc().collect(),
        Normalization::Nfd => text.nfd().collect(),
        Normalization::Nfkc => text.nfkc().collect(),
        Normalization::Nfkd => text.nfkd().collect(),
    }
}
