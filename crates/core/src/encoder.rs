//! Text to ids: the one place that knows the order of the stages.

mod batch;
mod file_batch;
mod run;
mod stream;

pub use batch::{BatchOptions, Ragged};
pub use stream::EncodeStream;

use run::Run;

use crate::alignment::{Alignment, OffsetMap};
use crate::error::Result;
use crate::interrupt::Interrupt;
use crate::merge::cache::Unit;
use crate::merge::{
    merge_and_tell, merge_long, merge_short, trace_merges, unreached, CacheStatistics, Crossings,
    Joins, MergeTrace, PairTable, Pool, Symbols, SHORT,
};
use crate::model::{Model, NONE};
use crate::normalizers::Normalizers;
use crate::pretokenize::{Piece, PreTokenizers};
use crate::special::{AddedToken, Found, Matcher, Permits};
use crate::text::floor_char_boundary;
pub use crate::text::Text;
use rustc_hash::FxHashSet;
use std::ops::Range;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, OnceLock};

/// Which special tokens are recognised. Added tokens that are not special always are.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Special {
    /// None: their text is text.
    #[default]
    None,
    /// All.
    All,
    /// Those with these contents.
    Only(FxHashSet<String>),
}

impl Special {
    fn contains(&self, token: &AddedToken) -> bool {
        match self {
            Special::None => false,
            Special::All => true,
            Special::Only(contents) => contents.contains(&token.content),
        }
    }
}

/// The two automata for one choice of special tokens.
struct Matchers {
    /// Looks at the text as given.
    given: Matcher,
    /// Looks at the normalised text.
    normalized: Matcher,
}

impl Matchers {
    /// Whether there is nothing to find.
    fn are_empty(&self) -> bool {
        self.given.is_empty() && self.normalized.is_empty()
    }
}

/// Bytes of pieces after which knowing where they can be cut pays.
const WORTH_CROSSINGS: usize = 1 << 15;
/// How many sets of special tokens keep their automata.
const KEPT_MATCHERS: usize = 8;

/// A model made ready to run; may be shared between threads.
pub struct Encoder {
    model: Model,
    normalizers: Normalizers,
    pre_tokenizers: PreTokenizers,
    symbols: Symbols,
    /// Where a piece may be cut without a change, if that pays.
    joins: Option<Joins>,
    table: PairTable,
    none: Arc<Matchers>,
    all: Arc<Matchers>,
    kept: Mutex<Vec<(FxHashSet<String>, Arc<Matchers>)>>,
    /// Where characters of a piece are never joined; made when it pays.
    crossings: OnceLock<Option<Crossings>>,
    /// Bytes of pieces that could have been cut there.
    uncut: AtomicUsize,
    workspaces: Pool,
}

/// What is looked for in a text before it is split.
#[derive(Clone, Copy)]
struct Search<'a> {
    special: &'a Special,
    /// Where a token may be found in the text as given; None: anywhere.
    permits: Option<Permits<'a>>,
}

impl<'a> From<&'a Special> for Search<'a> {
    fn from(special: &'a Special) -> Self {
        let permits = None;
        Self { special, permits }
    }
}

/// A stretch of normalised text between added tokens, ready to be split into pieces.
struct Segment<'a> {
    text: &'a [u8],
    /// Whether it is known to be UTF-8.
    is_utf8: bool,
    offsets: OffsetMap<'a>,
}

enum Part<'a> {
    /// An added token, with its bytes in the text as given.
    Added(Found),
    Text(Segment<'a>),
}

/// A token's place in the text as given.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Span {
    /// Its first byte; inside a stretch that normalisation changed, the stretch's first.
    pub start: usize,
    /// The byte behind it, likewise the stretch's first.
    pub tiled_end: usize,
    /// The byte behind it; inside a changed stretch, behind the stretch.
    pub end: usize,
}

impl Encoder {
    /// Compiles the split patterns and builds the tables.
    pub fn new(model: Model) -> Result<Self> {
        let normalizers = Normalizers::new(&model.settings().normalizers)?;
        Ok(Self {
            pre_tokenizers: PreTokenizers::new(&model.settings().pre_tokenizers)?,
            symbols: Symbols::new(&model),
            joins: Joins::new(&model),
            table: PairTable::new(model.merges()),
            none: Arc::new(matchers(&model, &normalizers, &Special::None)?),
            all: Arc::new(matchers(&model, &normalizers, &Special::All)?),
            kept: Mutex::default(),
            crossings: OnceLock::new(),
            uncut: AtomicUsize::new(0),
            workspaces: Pool::default(),
            normalizers,
            model,
        })
    }

    /// The model.
    pub fn model(&self) -> &Model {
        &self.model
    }

    /// Appends the ids of a text.
    pub fn encode(
        &self,
        text: Text<'_>,
        special: &Special,
        ids: &mut Vec<u32>,
        interrupt: &Interrupt<'_>,
    ) -> Result<()> {
        self.encode_up_to(text, special, usize::MAX, ids, interrupt)
    }

    /// Appends the ids of a text, and stops behind the piece that brings them to `enough` or more.
    pub fn encode_up_to(
        &self,
        text: Text<'_>,
        special: &Special,
        enough: usize,
        ids: &mut Vec<u32>,
        interrupt: &Interrupt<'_>,
    ) -> Result<()> {
        self.workspaces.with(|workspace| {
            let mut run = Run::new(self, workspace, interrupt);
            self.parts(text, special.into(), false, &mut |part| {
                run.part(part, enough, ids)
            })
        })
    }

    /// Calls `token` with each id and its span until it returns false.
    pub fn encode_with_spans(
        &self,
        text: Text<'_>,
        special: &Special,
        interrupt: &Interrupt<'_>,
        mut token: impl FnMut(u32, Span) -> bool,
    ) -> Result<()> {
        self.spans(text, special.into(), interrupt, |id, span, _| {
            token(id, span)
        })
    }

    /// Encodes a text in which only some stretches are trusted: special tokens, and further added tokens
    /// with these contents, are found only inside of one. The ids are otherwise those of the text.
    ///
    /// Calls `token` with each id and the bytes that it covers; of an added token those of its content.
    pub fn encode_trusted(
        &self,
        text: &str,
        trusted: &[Range<usize>],
        special: &Special,
        markup: &FxHashSet<String>,
        interrupt: &Interrupt<'_>,
        mut token: impl FnMut(u32, Range<usize>),
    ) -> Result<()> {
        let permits = |token: &AddedToken, range: Range<usize>| {
            if !token.special && !markup.contains(&token.content) {
                return true;
            }
            let before = trusted.partition_point(|stretch| stretch.start <= range.start);
            before > 0 && range.end <= trusted[before - 1].end
        };
        let search = Search {
            special,
            permits: Some(&permits),
        };
        self.spans(Text::Str(text), search, interrupt, |id, _, covered| {
            token(id, covered);
            true
        })
    }

    /// Calls `token` with each id, its span, and the bytes that it covers without white space that an
    /// added token takes along, until it returns false.
    fn spans(
        &self,
        text: Text<'_>,
        search: Search<'_>,
        interrupt: &Interrupt<'_>,
        mut token: impl FnMut(u32, Span, Range<usize>) -> bool,
    ) -> Result<()> {
        let mut tokens = Vec::new();
        self.workspaces.with(|workspace| {
            let mut run = Run::new(self, workspace, interrupt);
            self.parts(text, search, true, &mut |part| match part {
                Part::Added(Found { id, range, content }) => Ok(token(
                    id,
                    Span {
                        start: range.start,
                        tiled_end: range.end,
                        end: range.end,
                    },
                    content,
                )),
                Part::Text(segment) => {
                    let mut go_on = true;
                    self.split(&segment, true, |text, range, offsets| {
                        tokens.clear();
                        let mut start = range.start;
                        let whole = run.piece_with_widths(text, range, &mut tokens);
                        go_on = tokens.iter().all(|&(id, width)| {
                            let end = start + width;
                            let span = Span {
                                start: offsets.start(start),
                                tiled_end: offsets.start(end),
                                end: offsets.end(end),
                            };
                            start = end;
                            id == NONE || token(id, span, span.start..span.end)
                        });
                        whole && go_on
                    })?;
                    run.outcome()?;
                    Ok(go_on)
                }
            })
        })
    }

    /// Calls `piece` with the bytes of each piece, added tokens being pieces too.
    pub fn for_each_piece(
        &self,
        text: Text<'_>,
        special: &Special,
        mut piece: impl FnMut(&[u8]),
    ) -> Result<()> {
        self.parts(text, special.into(), false, &mut |part| {
            match part {
                Part::Added(found) => piece(&text.as_bytes()[found.range]),
                Part::Text(segment) => self.split(&segment, false, |text, range, _| {
                    piece(&text[range]);
                    true
                })?,
            }
            Ok(true)
        })
    }

    /// The merges that encoding applies to a piece, one by one.
    pub fn trace_merges(&self, piece: &[u8], interrupt: &Interrupt<'_>) -> Result<MergeTrace> {
        let ignores_merges = self.model.settings().ignore_merges;
        let whole = ignores_merges.then(|| self.whole_piece(piece)).flatten();
        trace_merges(
            &self.model,
            &self.symbols,
            &self.table,
            piece,
            whole,
            interrupt,
        )
    }

    /// Bytes of a prefix of the text that encodes to at most `max_tokens` ids: it ends where a token
    /// does, at a character, and as far back as it must.
    pub fn truncate(
        &self,
        text: &str,
        max_tokens: usize,
        special: &Special,
        interrupt: &Interrupt<'_>,
    ) -> Result<usize> {
        let mut cuts = vec![0];
        let mut tokens = 0;
        self.encode_with_spans(Text::Str(text), special, interrupt, |_, span| {
            tokens += 1;
            if tokens <= max_tokens {
                cuts.push(floor_char_boundary(text, span.tiled_end));
            }
            tokens <= max_tokens
        })?;
        if tokens <= max_tokens {
            return Ok(text.len());
        }
        cuts.dedup();
        // A prefix may have more ids than the whole had there: its last piece ends elsewhere.
        let mut ids = Vec::new();
        while let Some(cut) = cuts.pop() {
            ids.clear();
            let enough = max_tokens.saturating_add(1);
            self.encode_up_to(
                Text::Str(&text[..cut]),
                special,
                enough,
                &mut ids,
                interrupt,
            )?;
            if ids.len() <= max_tokens {
                return Ok(cut);
            }
        }
        Ok(0)
    }

    /// The first special token that encoding with these would find: its content and first byte.
    pub fn find_special(
        &self,
        text: Text<'_>,
        special: &Special,
    ) -> Result<Option<(String, usize)>> {
        let mut first = None;
        self.parts(text, special.into(), true, &mut |part| {
            if let Part::Added(found) = part {
                let token = self
                    .model
                    .added_token(found.id)
                    .filter(|token| token.special);
                first = token.map(|token| (token.content.clone(), found.range.start));
            }
            Ok(first.is_none())
        })?;
        Ok(first)
    }

    /// What the caches did.
    pub fn cache_statistics(&self) -> CacheStatistics {
        self.workspaces.statistics()
    }

    /// Empties the caches.
    pub fn clear_cache(&self) {
        self.workspaces.clear();
    }

    /// Bytes that the cache of each thread takes at most.
    pub fn cache_bytes(&self) -> usize {
        self.workspaces.cache_bytes()
    }

    /// Empties the caches, and lets that of one thread take so many bytes at most, and those of others beside
    /// it half of that. What is too little for any is none.
    pub fn limit_cache(&self, bytes: usize) {
        self.workspaces.limit(bytes);
    }

    /// Calls `part` with the added tokens and the text between them until it returns false. Places in
    /// the text as given are right only if `aligned` asks for them.
    fn parts(
        &self,
        text: Text<'_>,
        search: Search<'_>,
        aligned: bool,
        part: &mut dyn FnMut(Part<'_>) -> Result<bool>,
    ) -> Result<()> {
        match search.special {
            Special::None => self.parts_with(&self.none, text, search, aligned, part),
            special => self.parts_with(&*self.matchers(special)?, text, search, aligned, part),
        }
    }

    /// The same with the automata of the search.
    fn parts_with(
        &self,
        matchers: &Matchers,
        text: Text<'_>,
        search: Search<'_>,
        aligned: bool,
        part: &mut dyn FnMut(Part<'_>) -> Result<bool>,
    ) -> Result<()> {
        let bytes = text.as_bytes();
        if matchers.are_empty() && self.normalizers.is_empty() {
            if !bytes.is_empty() {
                part(Part::Text(Segment {
                    text: bytes,
                    is_utf8: matches!(text, Text::Str(_)),
                    offsets: OffsetMap::original(0),
                }))?;
            }
            return Ok(());
        }
        let mut done = 0;
        let mut take = |found: Found| {
            let range = found.range.clone();
            let before = text.slice(done..range.start);
            let go_on = self.between(before, done, matchers, search, aligned, part)?
                && part(Part::Added(found))?;
            done = range.end;
            Ok(go_on)
        };
        if !matchers.given.find(bytes, search.permits, &mut take)? {
            return Ok(());
        }
        let last = text.slice(done..bytes.len());
        self.between(last, done, matchers, search, aligned, part)?;
        Ok(())
    }

    /// The same for a stretch without added tokens of the first kind, which begins at `base` in the text as
    /// given: normalises it, and finds those of the second.
    fn between(
        &self,
        stretch: Text<'_>,
        base: usize,
        matchers: &Matchers,
        search: Search<'_>,
        aligned: bool,
        part: &mut dyn FnMut(Part<'_>) -> Result<bool>,
    ) -> Result<bool> {
        if stretch.as_bytes().is_empty() {
            return Ok(true);
        }
        let aligned = aligned || self.pre_tokenizers.needs_offsets();
        let (normalized, alignments) = self.normalizers.apply(stretch, aligned)?;
        with_offsets(base, &alignments, &mut |offsets| {
            let segment = |range: Range<usize>, part: &mut dyn FnMut(Part<'_>) -> Result<bool>| {
                if range.is_empty() {
                    return Ok(true);
                }
                let offset = offsets.offset + range.start;
                part(Part::Text(Segment {
                    text: &normalized[range],
                    is_utf8: matches!(stretch, Text::Str(_)),
                    offsets: OffsetMap { offset, ..*offsets },
                }))
            };
            let given = |range: Range<usize>| offsets.start(range.start)..offsets.end(range.end);
            let permits = search.permits.map(|permits| {
                move |token: &AddedToken, range: Range<usize>| permits(token, given(range))
            });
            let mut done = 0;
            let mut take = |Found { id, range, content }: Found| {
                let found = Found {
                    id,
                    range: given(range.clone()),
                    content: given(content),
                };
                let go_on = segment(done..range.start, part)? && part(Part::Added(found))?;
                done = range.end;
                Ok(go_on)
            };
            let permits = permits.as_ref().map(|permits| permits as Permits<'_>);
            if !matchers.normalized.find(&normalized, permits, &mut take)? {
                return Ok(false);
            }
            segment(done..normalized.len(), part)
        })
    }

    /// Calls `piece` with each piece of a segment until it returns false: the text that it is in, its
    /// bytes in it, and the text's place.
    #[inline(always)]
    fn split(
        &self,
        segment: &Segment<'_>,
        aligned: bool,
        mut piece: impl FnMut(&[u8], Range<usize>, &OffsetMap<'_>) -> bool,
    ) -> Result<()> {
        let Segment { text, offsets, .. } = segment;
        match &self.joins {
            None => self.pre_tokenizers.split(text, offsets, aligned, |found| {
                piece(found.text, found.range, found.offsets)
            }),
            Some(joins) => {
                let cut: &mut dyn FnMut(Piece<'_>) -> bool =
                    &mut |Piece {
                              text,
                              range,
                              offsets,
                          }| {
                        joins.cut(text, range, |range| piece(text, range, offsets))
                    };
                self.pre_tokenizers.split(text, offsets, aligned, cut)
            }
        }
    }

    /// Where a long piece can be cut without a change, if that is known and may be anywhere.
    fn crossings(&self, piece: &[u8]) -> Option<&Crossings> {
        if piece.is_ascii() {
            return None;
        }
        let known = match self.crossings.get() {
            Some(known) => known,
            None if self.uncut.fetch_add(piece.len(), Ordering::Relaxed) < WORTH_CROSSINGS => {
                return None;
            }
            None => self.crossings.get_or_init(|| self.find_crossings()),
        };
        known.as_ref()
    }

    fn find_crossings(&self) -> Option<Crossings> {
        let mut reaches_all = true;
        if self.model.settings().ignore_merges {
            let unreached = unreached(&self.model, &self.symbols, &self.table).ok()?;
            reaches_all = unreached.iter().all(|&id| self.model.is_special(id));
        }
        Crossings::new(&self.model, reaches_all)
    }

    /// Whether it is known that merging makes whatever token a piece may be.
    fn reaches_all(&self) -> bool {
        let crossings = self.crossings.get().and_then(Option::as_ref);
        crossings.is_some_and(|crossings| crossings.unit() == Unit::Piece)
    }

    /// The token that a piece is, if merging may not make it.
    fn unmerged(&self, piece: &[u8]) -> Option<u32> {
        let is_asked = self.model.settings().ignore_merges && !self.reaches_all();
        is_asked.then(|| self.whole_piece(piece)).flatten()
    }

    /// Appends the ids of a piece.
    fn merge_piece(
        &self,
        piece: &[u8],
        ids: &mut Vec<u32>,
        interrupt: &Interrupt<'_>,
    ) -> Result<()> {
        if let Some(id) = self.unmerged(piece) {
            ids.push(id);
            return Ok(());
        }
        self.merge_part(piece, ids, interrupt)
    }

    /// Appends the ids of what merging makes of a piece, or of a part of one.
    fn merge_part(
        &self,
        piece: &[u8],
        ids: &mut Vec<u32>,
        interrupt: &Interrupt<'_>,
    ) -> Result<()> {
        let start = ids.len();
        if self.symbols.is_total() {
            ids.extend(piece.iter().map(|&byte| self.symbols.single(byte)));
        } else {
            self.symbols.of(&self.model, piece, |id, _| ids.push(id));
        }
        let symbols = &mut ids[start..];
        let length = if symbols.len() <= SHORT {
            merge_short(&self.table, symbols)
        } else {
            merge_long(&self.table, symbols, interrupt)?
        };
        ids.truncate(start + length);
        if ids[start..].contains(&NONE) {
            let merged = ids.split_off(start);
            ids.extend(merged.into_iter().filter(|&id| id != NONE));
        }
        Ok(())
    }

    /// Appends the ids of a piece with the number of bytes that each stands for; gaps are NONE.
    fn merge_with_widths(
        &self,
        piece: &[u8],
        tokens: &mut Vec<(u32, usize)>,
        interrupt: &Interrupt<'_>,
    ) -> Result<()> {
        if let Some(id) = self.unmerged(piece) {
            tokens.push((id, piece.len()));
            return Ok(());
        }
        let (mut ids, mut ends, mut end) = (Vec::new(), Vec::new(), 0);
        self.symbols.of(&self.model, piece, |id, width| {
            end += width;
            ids.push(id);
            ends.push(end);
        });
        let mut starts = Vec::new();
        let length = merge_and_tell(&self.table, &mut ids, interrupt, |index| {
            starts.push(index.checked_sub(1).map_or(0, |before| ends[before]));
        })?;
        starts.push(end);
        let widths = starts.windows(2).map(|pair| pair[1] - pair[0]);
        tokens.extend(ids[..length].iter().copied().zip(widths));
        Ok(())
    }

    /// The token that is the whole piece; never a special one, which no text may become by chance.
    fn whole_piece(&self, piece: &[u8]) -> Option<u32> {
        let id = self.model.vocabulary().id(piece)?;
        (!self.model.is_special(id)).then_some(id)
    }

    fn matchers(&self, special: &Special) -> Result<Arc<Matchers>> {
        let contents = match special {
            Special::None => return Ok(self.none.clone()),
            Special::All => return Ok(self.all.clone()),
            Special::Only(contents) => contents,
        };
        // Never waits: after a fork the lock may be held for good by a thread that is not here.
        let mut kept = self.kept.try_lock().ok();
        let known = kept
            .as_ref()
            .and_then(|kept| kept.iter().find(|(key, _)| key == contents));
        if let Some((_, matchers)) = known {
            return Ok(matchers.clone());
        }
        let matchers = Arc::new(matchers(&self.model, &self.normalizers, special)?);
        if let Some(kept) = &mut kept {
            kept.truncate(KEPT_MATCHERS - 1);
            kept.insert(0, (contents.clone(), matchers.clone()));
        }
        Ok(matchers)
    }
}

fn matchers(model: &Model, normalizers: &Normalizers, special: &Special) -> Result<Matchers> {
    let wanted = model
        .added()
        .iter()
        .filter(|token| !token.special || special.contains(token));
    let (normalized, given): (Vec<_>, Vec<_>) = wanted.cloned().partition(|token| token.normalized);
    let normalized = normalized.into_iter().map(|token| {
        Ok(AddedToken {
            content: normalizers.of_str(&token.content)?,
            ..token
        })
    });
    let mut normalized: Vec<_> = normalized.collect::<Result<_>>()?;
    normalized.retain(|token| !token.content.is_empty()); // what is normalised away is never found
    Ok(Matchers {
        given: Matcher::new(given)?,
        normalized: Matcher::new(normalized)?,
    })
}

/// Calls `inner` with the place of a text that rewritings made of what stands at `base` in the text as
/// given, the last rewriting first.
fn with_offsets(
    base: usize,
    alignments: &[Alignment],
    inner: &mut dyn FnMut(&OffsetMap<'_>) -> Result<bool>,
) -> Result<bool> {
    let Some((last, before)) = alignments.split_first() else {
        return inner(&OffsetMap::original(base));
    };
    with_offsets(base, before, &mut |outer| {
        inner(&OffsetMap {
            outer: Some(outer),
            base: 0,
            alignment: last,
            offset: 0,
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{Settings, Unknown};
    use crate::pretokenize::PreTokenizer;

    #[test]
    fn a_piece_may_have_no_ids() {
        for unknown in [Unknown::Dropped, Unknown::Gap] {
            let settings = Settings {
                pre_tokenizers: vec![PreTokenizer::isolated("x+|y+")],
                unknown,
                ..Settings::default()
            };
            let tokens = vec![(7, b"x".to_vec())];
            let model = Model::new(tokens, Some(&[]), settings, Vec::new()).unwrap();
            let encoder = Encoder::new(model).unwrap();
            for _ in 0..2 {
                let mut ids = Vec::new();
                let text = Text::Str("xyyxy");
                encoder
                    .encode(text, &Special::None, &mut ids, &Interrupt::never())
                    .unwrap();
                assert_eq!(ids, [7, 7]); // the second time from the cache
            }
        }
    }

    #[test]
    fn looking_for_tokens_changes_nothing_where_there_are_none() {
        let settings = Settings {
            pre_tokenizers: vec![PreTokenizer::isolated("x+|y+")],
            ..Settings::default()
        };
        let tokens = (0..=255).map(|byte: u8| (u32::from(byte), vec![byte]));
        let tokens = tokens.chain([(256, b"<s>".to_vec())]).collect();
        let added = vec![AddedToken::special("<s>", 256)];
        let model = Model::new(tokens, Some(&[]), settings, added).unwrap();
        let encoder = Encoder::new(model).unwrap();
        let spans = |text: &str, special: &Special| {
            let (mut spans, mut ids) = (Vec::new(), Vec::new());
            let never = Interrupt::never();
            let mut keep = |id, span| {
                spans.push((id, span));
                true
            };
            let given = Text::Str(text);
            encoder
                .encode_with_spans(given, special, &never, &mut keep)
                .unwrap();
            encoder.encode(given, special, &mut ids, &never).unwrap();
            assert!(spans.iter().map(|(id, _)| id).eq(&ids));
            spans
        };
        for text in ["", "x", "xxyé<s", "yy <x>"] {
            assert_eq!(spans(text, &Special::None), spans(text, &Special::All));
        }
        assert_eq!(spans("<s>", &Special::None).len(), 3);
        assert_eq!(spans("<s>", &Special::All).len(), 1);
    }
}
