//! Naive implementations of what the core does fast: the specification, in the shortest way.

use bpe_tokenizer_core::alignment::Alignment;
use bpe_tokenizer_core::model::{Alphabet, Model, Unknown, NONE};
use bpe_tokenizer_core::normalize::Normalization;
use bpe_tokenizer_core::normalizers::Normalizer;
use bpe_tokenizer_core::special::AddedToken;
use bpe_tokenizer_core::Interrupt;
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
    normalize_aligned(steps, text).text
}

/// A normalised text with the positions of its bytes, step by step.
pub fn normalize_aligned(steps: &[Normalizer], text: &str) -> Aligned {
    let unchanged = Aligned {
        text: text.to_owned(),
        starts: (0..text.len()).collect(),
    };
    steps.iter().fold(unchanged, |aligned, step| {
        let mut output = Aligned::default();
        normalize_step(step, &aligned, &mut output);
        output
    })
}

/// A normalised text.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Aligned {
    /// The text.
    pub text: String,
    /// For each byte of it, where the original of a token that begins with this byte begins.
    pub starts: Vec<usize>,
}

impl Aligned {
    /// Copies a range of the input.
    fn keep(&mut self, input: &Self, range: Range<usize>) {
        self.text.push_str(&input.text[range.clone()]);
        self.starts.extend(&input.starts[range]);
    }

    /// Writes `content` in place of the input's character at `at`.
    fn write(&mut self, input: &Self, content: &str, at: usize) {
        self.text.push_str(content);
        self.starts.resize(self.text.len(), input.starts[at]);
    }

    /// Rewrites each character.
    fn write_each(&mut self, input: &Self, rewrite: impl Fn(char) -> String) {
        for (at, c) in input.text.char_indices() {
            let content = rewrite(c);
            match content.strip_prefix(c) {
                Some("") => self.keep(input, at..at + c.len_utf8()),
                _ => self.write(input, &content, at),
            }
        }
    }

    /// The alignment to the original: a change for each byte.
    pub fn alignment(&self) -> Alignment {
        let mut alignment = Alignment::default();
        for (at, &start) in self.starts.iter().enumerate() {
            alignment.push(start..start, at..at + 1);
        }
        alignment
    }
}

fn normalize_step(step: &Normalizer, input: &Aligned, output: &mut Aligned) {
    let text = input.text.as_str();
    match step {
        Normalizer::Form(form) => {
            output.text = normal_form(*form, text);
            // Characters of a run move and compose: their positions are the core's, which its tests state.
            let changed = form.rewrite(text, true, &Interrupt::never()).unwrap();
            let alignment = changed.unwrap_or_default().1;
            let starts = (0..output.text.len()).map(|at| input.starts[alignment.start(at)]);
            output.starts.extend(starts);
        }
        Normalizer::Lowercase => output.write_each(input, |c| c.to_lowercase().collect()),
        Normalizer::StripAccents => output.write_each(input, |c| match is_combining_mark(c) {
            true => String::new(),
            false => c.to_string(),
        }),
        Normalizer::Strip { left, right } => {
            let mut kept = if *left { text.trim_start() } else { text };
            let start = text.len() - kept.len();
            if *right {
                kept = kept.trim_end();
            }
            output.keep(input, start..start + kept.len());
        }
        // The first character belongs to what is prepended.
        Normalizer::Prepend { prepend: content } => {
            let first = text.chars().next().map_or(0, char::len_utf8);
            if first > 0 && !content.is_empty() {
                output.write(input, &format!("{content}{}", &text[..first]), 0);
                output.keep(input, first..text.len());
            } else {
                output.keep(input, 0..text.len());
            }
        }
        Normalizer::Replace { pattern, content } => {
            let (regex, mut done) = (regex(pattern), 0);
            for found in regex.find_iter(text).map(Result::unwrap) {
                if let Some((last, _)) = found.as_str().char_indices().next_back() {
                    output.keep(input, done..found.start());
                    // In `tokenizers`, the replacement is at the last character of the match.
                    output.write(input, content, found.start() + last);
                    done = found.end();
                }
            }
            output.keep(input, done..text.len());
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
