//! Where pieces begin, a block of text at a time: runs the machines of the split patterns.
//!
//! A block is cut into lanes at places that every split ends a piece at, whatever comes before and after,
//! so the lanes can be read side by side: the steps of one do not wait for those of another. Classes are
//! looked up, and states compared, in vector registers; a step is one load from a table that stays in the
//! nearest cache.

use super::classes::Classes;
use super::scan::{code_point, last_character};
use super::steps::{run, Step};
use super::transducer::{Transducer, BEGIN, COMMIT, DEEPEST, ENTER, RESCAN, SAME};
use super::vector::{Others, Processor};
use super::Piece;
use crate::alignment::Place;
use crate::error::Result;
use std::ops::Range;

/// Lanes of a block.
const LANES: usize = 8;
/// 64-byte words that a lane has room for. Odd, so that lanes do not fall upon each other in a cache.
const WORDS: usize = 65;
/// Bytes that a lane has room for.
const LANE: usize = 64 * WORDS;
/// Bytes that a lane should have.
const USUAL: usize = 4096;
/// The least that makes another lane worth it.
const LEAST: usize = 192;

/// The machines of steps that only cut.
pub struct Machines {
    machines: Vec<Transducer>,
    processor: Processor,
}

/// A block's work space, and where its pieces begin.
pub struct Block {
    symbols: Box<[[[u8; 64]; WORDS]; LANES]>,
    states: Box<[[[u8; 64]; WORDS]; LANES]>,
    lanes: [Lane; LANES],
    /// What was found of the words of the lane that is at hand.
    masks: Masks,
    bounds: Bounds,
}

/// For each word, which bytes are not ASCII; which states say something, and which more than that a piece
/// begins.
struct Masks {
    others: [Others; WORDS],
    saying: [[u64; 2]; WORDS],
}

/// Where the pieces of a block begin, from its first byte, and last where it ends.
#[derive(Default)]
struct Bounds {
    /// With room for those of a word behind.
    places: Vec<u32>,
    count: usize,
}

impl Bounds {
    fn push(&mut self, place: usize) {
        if self.places.len() < self.count + 64 {
            self.places.resize(2 * self.count + LANE, 0);
        }
        self.places[self.count] = place as u32;
        self.count += 1;
    }

    /// Adds the places of the bits of words.
    fn push_words(&mut self, processor: Processor, base: usize, words: &[u64]) {
        let most = self.count + 64 * (words.len() + 1);
        if self.places.len() < most {
            self.places.resize(2 * most, 0);
        }
        let room = &mut self.places[self.count..];
        self.count += processor.places(words, base as u32, room);
    }
}

/// One of the lanes of a block.
#[derive(Clone)]
struct Lane {
    range: Range<usize>,
    /// The bytes that begin a code point.
    leads: [u64; WORDS],
    /// The bytes that begin a piece.
    begins: [u64; WORDS],
    /// Whether a machine asked for another look.
    rescans: Vec<u32>,
}

impl Default for Lane {
    fn default() -> Self {
        Self {
            range: 0..0,
            leads: [0; WORDS],
            begins: [0; WORDS],
            rescans: Vec::new(),
        }
    }
}

impl Default for Block {
    fn default() -> Self {
        Self {
            symbols: Box::new([[[SAME; 64]; WORDS]; LANES]),
            states: Box::new([[[0; 64]; WORDS]; LANES]),
            lanes: std::array::from_fn(|_| Lane::default()),
            masks: Masks {
                others: [Others::default(); WORDS],
                saying: [[0; 2]; WORDS],
            },
            bounds: Bounds::default(),
        }
    }
}

impl Block {
    /// Where the pieces begin, from the block's first byte, and last where the block ends.
    pub fn bounds(&self) -> &[u32] {
        &self.bounds.places[..self.bounds.count]
    }
}

impl Machines {
    /// None if a step does more than cut, or if there is no machine for it.
    pub fn new(steps: &[Step], processor: Processor) -> Option<Self> {
        let machine = |(place, step): (usize, &Step)| Transducer::new(step.automaton()?, place > 0);
        let machines: Option<Vec<_>> = steps.iter().enumerate().map(machine).collect();
        machines
            .filter(|machines| !machines.is_empty())
            .map(|machines| Self {
                machines,
                processor,
            })
    }

    /// Finds the pieces of a block that begins at `from`, where a piece does; returns where it ends, and a
    /// piece does. `steps` are those that the machines were made for.
    pub fn next(
        &self,
        steps: &[Step],
        text: &[u8],
        is_utf8: bool,
        from: usize,
        block: &mut Block,
    ) -> Result<usize> {
        block.bounds.count = 0;
        let usual = ((text.len() - from) / LANES).clamp(LEAST, USUAL);
        let (mut lanes, mut to) = (0, from);
        while lanes < LANES && to < text.len() {
            let Some(end) = lane_end(steps, text, to, usual) else {
                break;
            };
            block.lanes[lanes].range = to..end;
            (lanes, to) = (lanes + 1, end);
        }
        if lanes == 0 {
            return stretch(steps, text, from, &mut block.bounds);
        }
        for lane in &mut block.lanes[..lanes] {
            lane.rescans.clear();
        }
        for (machine, step) in self.machines.iter().zip(steps) {
            self.read(machine, step, text, is_utf8, lanes, block);
        }
        for lane in &mut block.lanes[..lanes] {
            lane.rescan(steps, text)?;
        }
        for lane in &block.lanes[..lanes] {
            let begins = &lane.begins[..lane.words()];
            let base = lane.range.start - from;
            block.bounds.push_words(self.processor, base, begins);
        }
        block.bounds.push(to - from);
        Ok(to)
    }

    /// Runs one machine over the lanes, and adds the pieces that it finds to theirs.
    fn read(
        &self,
        machine: &Transducer,
        step: &Step,
        text: &[u8],
        is_utf8: bool,
        lanes: usize,
        block: &mut Block,
    ) {
        let Some(dfa) = step.automaton() else {
            return;
        };
        let is_first = std::ptr::eq(machine, &self.machines[0]);
        let lanes = &mut block.lanes[..lanes];
        let longest = lanes.iter().map(|lane| lane.range.len()).max();
        let longest = longest.unwrap_or(0);
        for (lane, symbols) in lanes.iter_mut().zip(block.symbols.iter_mut()) {
            let others = &mut block.masks.others;
            self.classify(&dfa.classes, text, is_utf8, lane, symbols, others);
            let (symbols, words) = (symbols.as_flattened_mut(), lane.words());
            symbols[lane.range.len()..longest].fill(SAME);
            if is_first {
                lane.begins[..words].fill(0);
                lane.begins[0] = 1;
            } else {
                let behind = machine.behind_a_piece();
                for_each_bit(&lane.begins[..words], |at| symbols[at] += behind);
            }
        }
        match lanes.len() {
            1 => side_by_side::<1>(machine, longest, &block.symbols, &mut block.states),
            2 => side_by_side::<2>(machine, longest, &block.symbols, &mut block.states),
            3 | 4 => side_by_side::<4>(machine, longest, &block.symbols, &mut block.states),
            _ => side_by_side::<8>(machine, longest, &block.symbols, &mut block.states),
        }
        for (lane, states) in lanes.iter_mut().zip(block.states.iter()) {
            self.listen(machine, lane, states, &mut block.masks.saying);
        }
    }

    /// Finds the symbols of a lane's code points.
    fn classify(
        &self,
        classes: &Classes,
        text: &[u8],
        is_utf8: bool,
        lane: &mut Lane,
        symbols: &mut [[u8; 64]; WORDS],
        others: &mut [Others; WORDS],
    ) {
        let (whole, rest) = text[lane.range.clone()].as_chunks::<64>();
        let table = classes.table();
        self.processor.classify(whole, table, symbols, others);
        if !rest.is_empty() {
            let mut last = [0; 64];
            last[..rest.len()].copy_from_slice(rest);
            let at = whole.len();
            self.processor
                .classify(&[last], table, &mut symbols[at..], &mut others[at..]);
        }
        let symbols = symbols.as_flattened_mut();
        if !is_utf8 {
            return lane.classify_any(classes, text, symbols);
        }
        for (word, others) in others[..lane.words()].iter().enumerate() {
            lane.leads[word] = !others.inner;
            let [two, three, four] = others.unknown;
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
        lane.end_leads();
    }

    /// Turns the states that a lane was in into places where pieces begin.
    fn listen(
        &self,
        machine: &Transducer,
        lane: &mut Lane,
        states: &[[u8; 64]; WORDS],
        masks: &mut [[u64; 2]; WORDS],
    ) {
        let words = lane.words();
        self.processor
            .compare(&states[..words], machine.firsts(), masks);
        let states = states.as_flattened();
        let mut reader = Reader {
            machine,
            lane,
            remembered: 0,
        };
        for (word, [begins, others]) in masks[..words].iter().enumerate() {
            let leads = reader.lane.leads[word];
            reader.lane.begins[word] |= begins & !others & leads;
            for_each_bit(&[others & leads], |bit| {
                reader.say(states[64 * word + bit], 64 * word + bit);
            });
        }
        let end = reader.lane.range.len();
        let last = usize::from(states[end - 1]);
        reader.say(machine.next()[usize::from(machine.end())][last], end);
    }
}

/// Steps through so many bytes of lanes side by side.
fn side_by_side<const N: usize>(
    machine: &Transducer,
    bytes: usize,
    symbols: &[[[u8; 64]; WORDS]; LANES],
    states: &mut [[[u8; 64]; WORDS]; LANES],
) {
    let next = machine.next();
    let (symbols, states) = (symbols.as_flattened(), states.as_flattened_mut());
    let (symbols, states) = (symbols.as_flattened(), states.as_flattened_mut());
    let (Some(symbols), Some(states)) = (symbols.first_chunk(), states.first_chunk_mut()) else {
        return;
    };
    let (symbols, states): (&[u8; LANES * LANE], &mut [u8; LANES * LANE]) = (symbols, states);
    let mut at = [0u8; N];
    for byte in 0..bytes.min(LANE) {
        for lane in 0..N {
            let symbol = symbols[lane * LANE + byte];
            at[lane] = next[usize::from(symbol)][usize::from(at[lane])];
            states[lane * LANE + byte] = at[lane];
        }
    }
}

/// Turns what states say into places.
struct Reader<'a> {
    machine: &'a Transducer,
    lane: &'a mut Lane,
    remembered: usize,
}

impl Reader<'_> {
    /// `at` is where the code point is that led to the state.
    fn say(&mut self, state: u8, at: usize) {
        let code = self.machine.codes()[usize::from(state)];
        for back in 0..=DEEPEST {
            if code & BEGIN << back != 0 {
                let at = self.lane.back(at, back);
                self.lane.begin(at);
            }
        }
        if code & COMMIT != 0 {
            self.lane.begin(self.remembered);
        }
        if code & ENTER != 0 {
            self.remembered = self.lane.back(at, self.machine.depth());
        }
        if code & RESCAN != 0 {
            self.lane.rescans.push(at as u32);
        }
    }
}

impl Lane {
    fn words(&self) -> usize {
        self.range.len().div_ceil(64)
    }

    /// The symbols of any bytes: one that is part of no code point counts as one.
    fn classify_any(&mut self, classes: &Classes, text: &[u8], symbols: &mut [u8]) {
        let text = &text[self.range.clone()];
        self.leads = [0; WORDS];
        let mut at = 0;
        while at < text.len() {
            let (code_point, width) = code_point(text, at);
            symbols[at] = classes.of(code_point);
            symbols[at + 1..at + width].fill(SAME);
            self.leads[at / 64] |= 1 << (at % 64);
            at += width;
        }
    }

    /// Nothing behind the lane's end begins a code point.
    fn end_leads(&mut self) {
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

    /// The place so many code points before.
    fn back(&self, mut at: usize, code_points: usize) -> usize {
        for _ in 0..code_points {
            at = at.saturating_sub(1);
            while at > 0 && self.leads[at / 64] >> (at % 64) & 1 == 0 {
                at -= 1;
            }
        }
        at
    }

    /// Finds the pieces anew around the places where a machine asked for it.
    fn rescan(&mut self, steps: &[Step], text: &[u8]) -> Result<()> {
        let mut done = self.range.start;
        self.rescans.sort_unstable();
        for at in std::mem::take(&mut self.rescans) {
            let at = self.range.start + at as usize;
            if at < done {
                continue;
            }
            let from = (done + 1..at).rev().find(|&at| is_cut(steps, text, at));
            let from = from.unwrap_or(done);
            let to = (at + 1..self.range.end).find(|&at| is_cut(steps, text, at));
            done = to.unwrap_or(self.range.end);
            self.begin(done - self.range.start);
            for place in from..done {
                let place = place - self.range.start;
                self.begins[place / 64] &= !(1 << (place % 64));
            }
            let place = &Place::given(0); // nobody asks
            let whole = Piece {
                text,
                range: from..done,
                place,
            };
            run(steps, whole, false, &mut |piece| {
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

/// Where a lane that begins at `from` may end.
fn lane_end(steps: &[Step], text: &[u8], from: usize, usual: usize) -> Option<usize> {
    if text.len() - from <= LANE.min(usual + LEAST) {
        return Some(text.len());
    }
    let last = (from + LANE).min(text.len() - 1);
    let mut places = (from + usual..=last).chain((from + 1..from + usual).rev());
    places.find(|&at| is_cut(steps, text, at))
}

/// Whether pieces end at a place, which is inside of the text, whatever comes before and behind.
fn is_cut(steps: &[Step], text: &[u8], at: usize) -> bool {
    if text[at] & 0xc0 == 0x80 {
        return false; // this may be inside of a code point
    }
    let (before, after) = (code_point_before(text, at), code_point(text, at).0);
    let mut ends_a_piece = false;
    for step in steps {
        let Some(dfa) = step.automaton() else {
            return false;
        };
        let before = dfa.classes.of(before);
        if dfa.is_safe_cut(before, dfa.classes.of(after)) {
            ends_a_piece = true;
        } else if !dfa.is_in_no_match(before) {
            return false;
        }
    }
    ends_a_piece
}

/// The code point that ends at a place which is inside of none.
fn code_point_before(text: &[u8], at: usize) -> u32 {
    let earliest = at.saturating_sub(4);
    let start = earliest + last_character(&text[earliest..at]);
    match code_point(text, start) {
        (found, width) if start + width == at => found,
        _ => code_point(&text[at - 1..at], 0).0,
    }
}

/// Finds the pieces of a stretch without a cut, which may be long: piece after piece of the first split,
/// each with those of the others.
fn stretch(steps: &[Step], text: &[u8], from: usize, bounds: &mut Bounds) -> Result<usize> {
    let Some((first, rest)) = steps.split_first() else {
        return Ok(from);
    };
    let Some(dfa) = first.automaton() else {
        return Ok(from);
    };
    let place = &Place::given(0); // nobody asks
    let (mut to, mut outcome) = (from, Ok(true));
    dfa.matches(&text[from..], |range, _| {
        to = from + range.end;
        let whole = Piece {
            text,
            range: from + range.start..to,
            place,
        };
        outcome = run(rest, whole, false, &mut |piece| {
            bounds.push(piece.range.start - from);
            true
        });
        to - from < LANE * LANES
    });
    outcome?;
    bounds.push(to - from);
    Ok(to)
}
