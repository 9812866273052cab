//! The pieces of a text, a block at a time: runs the transducers of the split patterns.
//!
//! A block is divided into lanes at safe cuts, where every split ends a piece whatever precedes and follows.
//! The transducers read the lanes side by side, so that a step of one lane does not wait for those of
//! another. Vector instructions look up classes and compare states. A step is one load from a table that
//! stays in the first-level cache.

use super::classes::Classes;
use super::simd::{self, NonAscii, NO_CLASS};
use super::steps::{self, run, Piece, Step};
use super::transducer::{Transducer, BEGIN, COMMIT, ENTER, MAX_LOOKBACK, RESCAN};
use crate::error::Result;
use crate::memory::prefetch;
use crate::processor::Processor;
use crate::reserve::reserve;
use crate::text::{code_point, code_point_before};
use std::ops::Range;

/// Lanes of a block.
const LANES: usize = 8;
/// 64-byte words of a lane. Odd, so that the lanes do not map to the same sets of the cache.
const LANE_WORDS: usize = 65;
/// Bytes of a lane.
const LANE_BYTES: usize = 64 * LANE_WORDS;
/// Bytes that a lane is filled with, up to the next safe cut.
const TARGET_LANE: usize = 4096;
/// The fewest bytes for which another lane pays.
const MIN_LANE: usize = 192;

/// A byte for each byte of the lanes: a symbol or a state.
type LaneBytes = [[[u8; 64]; LANE_WORDS]; LANES];

/// The transducers of a pre-tokeniser whose steps only split.
pub struct BlockSplitter {
    transducers: Vec<Transducer>,
    safe_cuts: AsciiCuts,
    processor: Processor,
}

/// For each ASCII character, the characters before which a text can be cut after it, as bits.
type AsciiCuts = Box<[u128; 128]>;

/// The pieces of a block, and the buffers to find them.
pub struct Block {
    symbols: Box<LaneBytes>,
    states: Box<LaneBytes>,
    lanes: [Lane; LANES],
    masks: Masks,
    bounds: Bounds,
}

/// Masks for each word of the current lane.
struct Masks {
    non_ascii: [NonAscii; LANE_WORDS],
    /// The states whose number has the bit `HERE`, `PREVIOUS` or `OTHER` of the transducer.
    outputs: [[u64; 3]; LANE_WORDS],
}

/// The beginnings of the pieces, counted from the block's beginning, and at last the block's end.
#[derive(Default)]
struct Bounds {
    /// Longer than `count`: vector stores need room for 64 more.
    positions: Vec<u32>,
    count: usize,
}

impl Bounds {
    fn push(&mut self, position: usize) -> Result<()> {
        if self.positions.len() == self.count {
            let more = self.count + LANE_BYTES;
            reserve(&mut self.positions, more)?;
            self.positions.resize(self.positions.len() + more, 0);
        }
        self.positions[self.count] = position as u32;
        self.count += 1;
        Ok(())
    }

    /// Appends the positions of the set bits, counted from `base`.
    fn push_bits(&mut self, processor: Processor, base: usize, words: &[u64]) {
        let most = self.count + 64 * words.len();
        if self.positions.len() < most {
            self.positions.resize(2 * most, 0);
        }
        let room = &mut self.positions[self.count..];
        self.count += simd::bit_positions(processor, words, base as u32, room);
    }
}

/// A part of a block. Its bits and positions count from the part's beginning.
#[derive(Clone)]
struct Lane {
    range: Range<usize>,
    /// A bit for each byte that begins a code point.
    leads: [u64; LANE_WORDS],
    /// A bit for each byte that begins a piece.
    begins: [u64; LANE_WORDS],
    /// The positions where a transducer asked for a rescan.
    rescans: Vec<u32>,
}

impl Default for Block {
    fn default() -> Self {
        Self {
            symbols: Box::new([[[NO_CLASS; 64]; LANE_WORDS]; LANES]),
            states: Box::new([[[0; 64]; LANE_WORDS]; LANES]),
            lanes: std::array::from_fn(|_| Lane {
                range: 0..0,
                leads: [0; LANE_WORDS],
                begins: [0; LANE_WORDS],
                rescans: Vec::new(),
            }),
            masks: Masks {
                non_ascii: [NonAscii::default(); LANE_WORDS],
                outputs: [[0; 3]; LANE_WORDS],
            },
            bounds: Bounds::default(),
        }
    }
}

impl Block {
    /// The beginnings of the pieces, counted from the block's beginning, and at last the block's end.
    pub fn bounds(&self) -> &[u32] {
        &self.bounds.positions[..self.bounds.count]
    }
}

impl BlockSplitter {
    /// Builds the transducers; `None` if a step does more than split, or has no transducer.
    pub fn new(steps: &[Step], processor: Processor) -> Option<Self> {
        let build = |(index, step): (usize, &Step)| Transducer::new(step.automaton()?, index > 0);
        let transducers: Option<Vec<_>> = steps.iter().enumerate().map(build).collect();
        let transducers = transducers.filter(|transducers| !transducers.is_empty())?;
        Some(Self {
            transducers,
            safe_cuts: ascii_cuts(steps),
            processor,
        })
    }

    /// Finds the pieces of a block that begins at `from`, where a piece begins. Returns the block's end,
    /// where a piece ends. `steps` are those of [`BlockSplitter::new`].
    pub fn next(
        &self,
        steps: &[Step],
        text: &[u8],
        is_utf8: bool,
        from: usize,
        block: &mut Block,
    ) -> Result<usize> {
        block.bounds.count = 0;
        let target = ((text.len() - from) / LANES).clamp(MIN_LANE, TARGET_LANE);
        if target > MIN_LANE {
            for lane in 1..LANES {
                // The searches for the lanes' ends overlap these.
                prefetch(text, from + lane * target);
            }
        }
        let (mut lanes, mut to) = (0, from);
        while lanes < LANES && to < text.len() {
            let Some(end) = self.lane_end(steps, text, to, target) else {
                break;
            };
            block.lanes[lanes].range = to..end;
            (lanes, to) = (lanes + 1, end);
        }
        if lanes == 0 {
            return split_without_cuts(steps, text, from, &mut block.bounds);
        }
        for lane in &mut block.lanes[..lanes] {
            lane.rescans.clear();
        }
        for (transducer, step) in self.transducers.iter().zip(steps) {
            self.split(transducer, step, text, is_utf8, lanes, block);
        }
        for lane in &mut block.lanes[..lanes] {
            lane.rescan(steps, text)?;
        }
        for lane in &block.lanes[..lanes] {
            let begins = &lane.begins[..lane.words()];
            let base = lane.range.start - from;
            block.bounds.push_bits(self.processor, base, begins);
        }
        block.bounds.push(to - from)?;
        Ok(to)
    }

    /// The end of a lane that begins at `from`: the text's end or a safe cut, near to `target` bytes away.
    fn lane_end(&self, steps: &[Step], text: &[u8], from: usize, target: usize) -> Option<usize> {
        if text.len() - from <= LANE_BYTES.min(target + MIN_LANE) {
            return Some(text.len());
        }
        let last = (from + LANE_BYTES).min(text.len() - 1);
        let mut positions = (from + target..=last).chain((from + 1..from + target).rev());
        positions.find(|&at| {
            let (before, after) = (text[at - 1], text[at]);
            match self.safe_cuts.get(usize::from(before)) {
                Some(cuts) if after < 0x80 => cuts >> after & 1 != 0,
                _ if after & 0xc0 == 0x80 => false, // without a call
                _ => is_safe_cut(steps, text, at),
            }
        })
    }

    /// Runs one transducer over the lanes, and adds its pieces to theirs.
    fn split(
        &self,
        transducer: &Transducer,
        step: &Step,
        text: &[u8],
        is_utf8: bool,
        lanes: usize,
        block: &mut Block,
    ) {
        let Some(dfa) = step.automaton() else {
            return;
        };
        let is_first = std::ptr::eq(transducer, &self.transducers[0]);
        let lanes = &mut block.lanes[..lanes];
        let longest = lanes.iter().map(|lane| lane.range.len()).max();
        let longest = longest.unwrap_or(0).next_multiple_of(2);
        for (lane, symbols) in lanes.iter_mut().zip(block.symbols.iter_mut()) {
            let non_ascii = &mut block.masks.non_ascii;
            self.classify(&dfa.classes, text, is_utf8, lane, symbols, non_ascii);
            let (symbols, words) = (symbols.as_flattened_mut(), lane.words());
            symbols[lane.range.len()..longest].fill(NO_CLASS);
            if is_first {
                lane.begins[..words].fill(0);
                lane.begins[0] = 1;
            } else {
                let after_cut = transducer.after_cut();
                for_each_bit(&lane.begins[..words], |at| symbols[at] += after_cut);
            }
            if let Some(pairs) = &transducer.pairs {
                simd::pair(self.processor, &mut symbols[..longest], pairs.symbols);
            }
        }
        let (symbols, states) = (&block.symbols, &mut block.states);
        match lanes.len() {
            1 => step_lanes::<1>(transducer, longest, symbols, states),
            2 => step_lanes::<2>(transducer, longest, symbols, states),
            3 => step_lanes::<3>(transducer, longest, symbols, states),
            4 => step_lanes::<4>(transducer, longest, symbols, states),
            5 => step_lanes::<5>(transducer, longest, symbols, states),
            6 => step_lanes::<6>(transducer, longest, symbols, states),
            7 => step_lanes::<7>(transducer, longest, symbols, states),
            _ => step_lanes::<8>(transducer, longest, symbols, states),
        }
        for (lane, states) in lanes.iter_mut().zip(block.states.iter()) {
            self.decode_outputs(transducer, lane, states, &mut block.masks.outputs);
        }
    }

    /// Finds the symbols of a lane's code points.
    fn classify(
        &self,
        classes: &Classes,
        text: &[u8],
        is_utf8: bool,
        lane: &mut Lane,
        symbols: &mut [[u8; 64]; LANE_WORDS],
        non_ascii: &mut [NonAscii; LANE_WORDS],
    ) {
        let words = lane.words();
        // Whole words, so far as the text goes on after the lane.
        let (whole, _) = text[lane.range.start..].as_chunks::<64>();
        let whole = &whole[..words.min(whole.len())];
        let (processor, table) = (self.processor, &classes.of_first_byte);
        if !whole.is_empty() {
            simd::classify(processor, whole, table, symbols, non_ascii);
        }
        if whole.len() < words {
            let rest = &text[lane.range.start + 64 * whole.len()..];
            let mut last = [0; 64];
            last[..rest.len()].copy_from_slice(rest);
            let (symbols, non_ascii) = (&mut symbols[whole.len()..], &mut non_ascii[whole.len()..]);
            simd::classify(processor, &[last], table, symbols, non_ascii);
        }
        let symbols = symbols.as_flattened_mut();
        if !is_utf8 {
            return lane.classify_any(classes, text, symbols);
        }
        for (word, non_ascii) in non_ascii[..lane.words()].iter().enumerate() {
            lane.leads[word] = !non_ascii.continuations;
            let [two, three, four] = non_ascii.unknown_leads;
            if two | three | four == 0 {
                continue;
            }
            let base = lane.range.start + 64 * word;
            let at = 64 * word;
            let tail = |at: usize| u32::from(text[at] & 0x3f);
            for_each_bit(&[two], |bit| {
                let code_point = u32::from(text[base + bit] & 0x1f) << 6 | tail(base + bit + 1);
                symbols[at + bit] = classes.of(code_point);
            });
            for_each_bit(&[three], |bit| {
                if let Some(&[first, second, third]) = text[base + bit..].first_chunk() {
                    symbols[at + bit] = classes.of_three(first, second, third);
                }
            });
            for_each_bit(&[four], |bit| {
                symbols[at + bit] = classes.of(code_point(text, base + bit).0);
            });
        }
        lane.clear_leads_after_end();
    }

    /// Turns the outputs of a lane's states into beginnings of pieces.
    fn decode_outputs(
        &self,
        transducer: &Transducer,
        lane: &mut Lane,
        states: &[[u8; 64]; LANE_WORDS],
        masks: &mut [[u64; 3]],
    ) {
        let words = lane.words();
        simd::highest_bits(self.processor, &states[..words], masks);
        let states = states.as_flattened();
        let mut decoder = OutputDecoder {
            transducer,
            lane,
            remembered: 0,
        };
        // The bit before the word, if a code point begins there.
        let mut lead_before = 0;
        for (word, [here, previous, others]) in masks[..words].iter().enumerate() {
            let leads = decoder.lane.leads[word];
            decoder.lane.begins[word] |= here & !others & leads;
            let previous = previous & !others & leads;
            let follows_lead = leads << 1 | lead_before;
            decoder.lane.begin_before(word, previous & follows_lead);
            for_each_bit(&[others & leads | previous & !follows_lead], |bit| {
                decoder.emit(states[64 * word + bit], 64 * word + bit);
            });
            lead_before = leads >> 63;
        }
        let end = decoder.lane.range.len();
        decoder.emit(transducer.next(states[end - 1], transducer.end()), end);
    }
}

/// Steps through `bytes` bytes of `N` lanes side by side.
#[inline(never)]
fn step_lanes<const N: usize>(
    transducer: &Transducer,
    bytes: usize,
    symbols: &LaneBytes,
    states: &mut LaneBytes,
) {
    let rows = &*transducer.rows;
    let (symbols, states) = (symbols.as_flattened(), states.as_flattened_mut());
    let (symbols, states) = (symbols.as_flattened(), states.as_flattened_mut());
    // Arrays of known lengths, so that the compiler drops the bounds checks.
    let (Some(symbols), Some(states)) = (symbols.first_chunk(), states.first_chunk_mut()) else {
        return;
    };
    let (symbols, states): (&[u8; LANES * LANE_BYTES], &mut [u8; LANES * LANE_BYTES]) =
        (symbols, states);
    let mut at = [0usize; N];
    if let Some(pairs) = &transducer.pairs {
        let (symbols, states) = (symbols.as_chunks::<2>().0, states.as_chunks_mut::<2>().0);
        // The minimum changes nothing. It tells the compiler the range of the index.
        for pair in 0..bytes.min(LANE_BYTES) / 2 {
            for lane in 0..N {
                let symbols = u16::from_le_bytes(symbols[lane * LANE_BYTES / 2 + pair]);
                let entry = pairs.rows[2 * at[lane].min(0xffff) + usize::from(symbols)];
                states[lane * LANE_BYTES / 2 + pair] = (entry as u16).to_le_bytes();
                at[lane] = (entry >> 16) as usize;
            }
        }
        return;
    }
    for byte in 0..bytes.min(LANE_BYTES) {
        for lane in 0..N {
            let symbol = symbols[lane * LANE_BYTES + byte];
            let row = rows[(at[lane] & 0xffff) + usize::from(symbol)];
            states[lane * LANE_BYTES + byte] = row as u8;
            at[lane] = usize::from(row);
        }
    }
}

/// Turns the outputs of states into beginnings of pieces.
struct OutputDecoder<'a> {
    transducer: &'a Transducer,
    lane: &'a mut Lane,
    /// The position that the last [`ENTER`] remembered.
    remembered: usize,
}

impl OutputDecoder<'_> {
    /// Decodes the output of a state; `at` is the code point that led to it.
    fn emit(&mut self, state: u8, at: usize) {
        let output = self.transducer.outputs[usize::from(state)];
        for back in 0..=MAX_LOOKBACK {
            if output & BEGIN << back != 0 {
                let at = self.lane.back(at, back);
                self.lane.begin(at);
            }
        }
        if output & COMMIT != 0 {
            self.lane.begin(self.remembered);
        }
        if output & ENTER != 0 {
            self.remembered = self.lane.back(at, self.transducer.lookback);
        }
        if output & RESCAN != 0 {
            self.lane.rescans.push(at as u32);
        }
    }
}

impl Lane {
    fn words(&self) -> usize {
        self.range.len().div_ceil(64)
    }

    /// Finds the symbols and the first bytes of a text that may not be UTF-8.
    fn classify_any(&mut self, classes: &Classes, text: &[u8], symbols: &mut [u8]) {
        let text = &text[self.range.clone()];
        self.leads = [0; LANE_WORDS];
        let mut at = 0;
        while at < text.len() {
            let (code_point, width) = code_point(text, at);
            symbols[at] = classes.of(code_point);
            symbols[at + 1..at + width].fill(NO_CLASS);
            self.leads[at / 64] |= 1 << (at % 64);
            at += width;
        }
    }

    fn clear_leads_after_end(&mut self) {
        let last = self.range.len() % 64;
        if last != 0 {
            self.leads[self.words() - 1] &= !(!0 << last);
        }
    }

    fn begin(&mut self, at: usize) {
        if at < self.range.len() {
            self.begins[at / 64] |= 1 << (at % 64);
        }
    }

    /// Begins pieces one byte before the bits of a word.
    #[inline(always)]
    fn begin_before(&mut self, word: usize, bits: u64) {
        self.begins[word] |= bits >> 1;
        if word > 0 {
            self.begins[word - 1] |= bits << 63;
        }
    }

    /// The position that is so many code points before `at`.
    fn back(&self, mut at: usize, code_points: usize) -> usize {
        for _ in 0..code_points {
            at = at.saturating_sub(1);
            while at > 0 && self.leads[at / 64] >> (at % 64) & 1 == 0 {
                at -= 1;
            }
        }
        at
    }

    /// Finds the pieces again, with the DFAs, between the safe cuts around each requested rescan.
    fn rescan(&mut self, steps: &[Step], text: &[u8]) -> Result<()> {
        let mut done = self.range.start;
        self.rescans.sort_unstable();
        for at in std::mem::take(&mut self.rescans) {
            let at = self.range.start + at as usize;
            if at < done {
                continue;
            }
            let from = (done + 1..at)
                .rev()
                .find(|&at| is_safe_cut(steps, text, at));
            let from = from.unwrap_or(done);
            let to = (at + 1..self.range.end).find(|&at| is_safe_cut(steps, text, at));
            done = to.unwrap_or(self.range.end);
            self.begin(done - self.range.start);
            for position in from..done {
                let position = position - self.range.start;
                self.begins[position / 64] &= !(1 << (position % 64));
            }
            run(steps, Piece::new(text, from..done), false, &mut |piece| {
                self.begin(piece.range.start - self.range.start);
                true
            })?;
        }
        Ok(())
    }
}

fn for_each_bit(words: &[u64], mut bit: impl FnMut(usize)) {
    for (word, &mask) in words.iter().enumerate() {
        let mut left = mask;
        while left != 0 {
            bit(64 * word + left.trailing_zeros() as usize);
            left &= left - 1;
        }
    }
}

/// Looks at each pair of ASCII characters.
fn ascii_cuts(steps: &[Step]) -> AsciiCuts {
    Box::new(std::array::from_fn(|before| {
        let cuts = |after: u8| is_safe_cut(steps, &[before as u8, after], 1);
        (0..128)
            .filter(|after| cuts(*after))
            .fold(0, |bits, after| bits | 1 << after)
    }))
}

/// Whether a piece of the last step ends at a position inside the text, whatever precedes and follows.
fn is_safe_cut(steps: &[Step], text: &[u8], at: usize) -> bool {
    let starts_a_code_point = text[at] & 0xc0 != 0x80;
    starts_a_code_point
        && steps::is_safe_cut(steps, code_point_before(text, at), code_point(text, at).0)
}

/// Finds the pieces where no lane fits: the next safe cut may be far. Runs the first split's DFA piece by
/// piece, and the other steps on each piece.
fn split_without_cuts(
    steps: &[Step],
    text: &[u8],
    from: usize,
    bounds: &mut Bounds,
) -> Result<usize> {
    let Some((first, rest)) = steps.split_first() else {
        return Ok(from);
    };
    let Some(dfa) = first.automaton() else {
        return Ok(from);
    };
    let (mut to, mut outcome, mut room) = (from, Ok(true), Ok(()));
    dfa.matches(&text[from..], |range, _| {
        to = from + range.end;
        let whole = Piece::new(text, from + range.start..to);
        outcome = run(rest, whole, false, &mut |piece| {
            room = bounds.push(piece.range.start - from);
            room.is_ok()
        });
        matches!(outcome, Ok(true)) && to - from < LANE_BYTES * LANES
    });
    outcome?;
    room?;
    bounds.push(to - from)?;
    Ok(to)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::alignment::OffsetMap;
    use crate::pretokenize::{PreTokenizer, PreTokenizers, SplitPattern};

    const WORDS: &str = r"'s| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+";

    /// Patterns in sequence: with gaps, without cuts, and with pieces that are certain late or never.
    const PIPELINES: [&[&str]; 11] = [
        &[WORDS],
        &[r"\d", WORDS],
        &[r"\d", "[a-z]+|é"],
        &["."],
        &[r"\p{L}+"],
        &["aaa|aa|a"],
        &["abcdefg|ab|[b-f]| +"],
        &["abcdefg|[b-f]| +"],
        &[r"\d", "abcdefg|[b-f]| +"],
        &["abcd(?!x)|[b-d]| +"],
        &[r"[^\na]*[b-z]\d|[^\n]|\n", "x|日+"],
    ];

    const PARTS: [&[u8]; 23] = [
        b"a",
        b"ab",
        b"baa",
        b"abcd",
        b"abcdx",
        b"abcdef",
        b"abcdefg",
        b"abcdefabcdefg",
        b" ",
        b"   ",
        b"1",
        b"234",
        b"!",
        b"'s",
        b"\n",
        b"the words of a sentence, ",
        b"\r\n\n",
        "é".as_bytes(),
        "ß日本".as_bytes(),
        "😀".as_bytes(),
        "\u{fffd}".as_bytes(),
        b"\x80",
        b"\xe6\x97",
    ];

    /// Texts of parts in an arbitrary order, and of one part. The last two parts are not UTF-8.
    fn texts() -> Vec<Vec<u8>> {
        let mut random = 1u64;
        let mut text = |length: usize, choice: usize| {
            let mut text = Vec::new();
            while text.len() < length {
                random = random.wrapping_mul(6364136223846793005).wrapping_add(1);
                text.extend(PARTS[(random >> 33) as usize % choice]);
            }
            text
        };
        let (sentences, word) = (b"a sentence ".repeat(100), b"a".repeat(9000));
        let mut texts = vec![
            b"a".repeat(40_000),
            b"a".repeat(1000),
            [&sentences[..], &word, &sentences].concat(),
        ];
        for length in (1..300).step_by(7).chain([700, 1500, 3000, 5000]) {
            texts.extend([text(length, PARTS.len() - 2), text(length, PARTS.len())]);
        }
        texts.push(text(50_000, PARTS.len() - 2));
        texts
    }

    /// Checks that the blocks of texts have the pieces of the patterns.
    fn check(patterns: &[&str], texts: &[Vec<u8>]) {
        let steps: Vec<_> = patterns
            .iter()
            .map(|it| PreTokenizer::isolated(*it))
            .collect();
        for processor in Processor::all() {
            let pre_tokenizers = PreTokenizers::on(processor, &steps).unwrap();
            assert!(pre_tokenizers.has_blocks(), "{patterns:?}");
            let mut block = Block::default();
            for text in texts {
                let mut expected = Vec::new();
                let add = |piece: Piece<'_>| {
                    expected.push(piece.range.start);
                    true
                };
                let offsets = OffsetMap::original(0);
                pre_tokenizers.split(text, &offsets, false, add).unwrap();
                for is_utf8 in [false, true] {
                    if is_utf8 && std::str::from_utf8(text).is_err() {
                        continue;
                    }
                    let (mut from, mut found) = (0, Vec::new());
                    while from < text.len() {
                        let to = pre_tokenizers
                            .next_block(text, is_utf8, from, &mut block)
                            .unwrap();
                        let (last, begins) = block.bounds().split_last().unwrap();
                        assert!(from < to && from + *last as usize == to);
                        found.extend(begins.iter().map(|&begin| from + begin as usize));
                        from = to;
                    }
                    assert!(
                        found == expected,
                        "{patterns:?} on {processor:?}: {:?}",
                        String::from_utf8_lossy(text)
                    );
                }
            }
        }
    }

    #[test]
    fn blocks_have_the_pieces_of_the_steps() {
        let texts = texts();
        for patterns in PIPELINES {
            check(patterns, &texts);
        }
    }

    #[test]
    fn rescans_next_to_a_cut_find_the_pieces_where_only_a_lookback_of_one_fits() {
        // Each pair of letters has other third letters, and so a state of its own.
        let pairs = ('a'..='r').flat_map(|first| ('A'..='R').map(move |second| (first, second)));
        let words: Vec<_> = pairs
            .map(|(first, second)| format!("{first}{second}[{first}{second}]"))
            .collect();
        let pattern = words.join("|") + r"|\n";
        let step = SplitPattern::new(&pattern).unwrap();
        let machine = Transducer::new(step.automaton().unwrap(), false).unwrap();
        assert_eq!(machine.lookback, 1);
        let texts = [
            "\naAab",
            "aAaaAA\naBaB\naBBbBb",
            "\n\naR\naRa\na",
            "\naAarRr\n",
        ];
        let texts = texts.map(|text| text.as_bytes().to_vec());
        check(&[&pattern], &texts);
    }
}
