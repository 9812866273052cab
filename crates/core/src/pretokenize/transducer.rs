//! The DFA of a split pattern to a machine that reads a text once, without backtracking.
//!
//! A leftmost-first DFA knows where a piece ended only when it has no next state. That may be some code
//! points later; it then restarts at the end that it remembers. The machine's states record what the
//! restart would have found: next to the DFA's state they hold the classes read since the last possible
//! end of the piece. The machine thus takes one step for each code point of any text.
//!
//! It is a Moore machine: each state has an output, which is a set of bits. They tell which pieces begin at
//! this code point or up to [`MAX_LOOKBACK`] code points earlier. An earlier end is remembered instead:
//! [`ENTER`] says that the piece may have ended `lookback` code points ago, and [`COMMIT`] that it did. A
//! state that cannot express its pieces even so has the output [`RESCAN`]: the caller runs the DFA.

use super::dfa::{minimise, Dfa, Partition, DEAD, MATCH};
use super::simd::NO_CLASS;
use rustc_hash::FxHashMap;

/// Output: a piece begins at the code point that was read. Shifted by `n`: `n` code points earlier.
pub const BEGIN: u8 = 1;
const BEGIN_PREVIOUS: u8 = BEGIN << 1;
const BEGIN_BOTH: u8 = BEGIN | BEGIN_PREVIOUS;
/// The largest `n` by which [`BEGIN`] is shifted.
pub const MAX_LOOKBACK: usize = 3;
/// Output: the current piece may have ended `lookback` code points ago. Remember this position.
pub const ENTER: u8 = 1 << 4;
/// Output: a piece begins at the position that was remembered last.
pub const COMMIT: u8 = 1 << 5;
/// Output: the machine's pieces are wrong from the last safe cut to the next.
pub const RESCAN: u8 = 1 << 7;
/// Bit of a state's number: its output has [`BEGIN`]. Not with [`OTHER`].
pub const HERE: u8 = 1 << 7;
/// Bit of a state's number: its output has [`BEGIN`] shifted by one. Not with [`OTHER`].
pub const PREVIOUS: u8 = 1 << 6;
/// Bit of a state's number: its output may be any.
pub const OTHER: u8 = 1 << 5;
/// The table's states: a state is a byte.
const MAX_STATES: usize = 256;
/// The distance of two rows: the 256 symbols, and one entry more.
const ROW: usize = 257;
/// States during construction, before minimisation.
const MAX_CONFIGURATIONS: usize = 4096;

/// The machine. Its symbols are the classes, then the end of a text, then, where an earlier split ended a
/// piece before the code point, the classes again. [`NO_CLASS`] leaves every state as it is.
///
/// State 0 is the start. The upper bits of a state's number tell its output, if it is a frequent one: see
/// [`HERE`], [`PREVIOUS`] and [`OTHER`].
pub struct Transducer {
    /// The rows of the states: for each symbol, where the row of the next state begins. The lower byte of that is the
    /// state's number.
    pub rows: Box<[u16; MAX_STATES * ROW]>,
    /// The same for two symbols at once, if the table is not too large.
    pub pairs: Option<Pairs>,
    /// For each state, its output.
    pub outputs: Box<[u8; MAX_STATES]>,
    /// The distance, in code points, from an [`ENTER`] back to the position to remember.
    pub lookback: usize,
    classes: usize,
}

/// The steps of two symbols at once.
pub struct Pairs {
    /// The symbols of a text are less than this, or [`NO_CLASS`], which is the last one here.
    pub symbols: u8,
    /// The rows of the states: for each pair of symbols, the first one plus the second one times `symbols`, the states
    /// after the first symbol (in the lowest byte) and after the second one, and above these half of where the row
    /// of the second state begins. A fixed size, of which little is used, so that no index needs a check.
    pub rows: Box<[u32; PAIR_ENTRIES]>,
}

/// Half the beginnings of rows are below 2^16, and so is the number of a pair.
const PAIR_ENTRIES: usize = 3 << 16;

impl Pairs {
    /// `symbols` is the number of symbols that occur in a text.
    fn new(machine: &Transducer, symbols: usize, states: &[u8]) -> Option<Self> {
        let row = (symbols + 1).pow(2).next_multiple_of(2);
        if states.len() * row / 2 > usize::from(u16::MAX) || symbols >= usize::from(NO_CLASS) {
            return None;
        }
        let symbols = symbols as u8 + 1;
        let mut begins = [0; MAX_STATES];
        for (begin, state) in (0..).step_by(row).zip(states) {
            begins[usize::from(*state)] = begin;
        }
        let step = |state, symbol| {
            let symbol = if symbol + 1 == symbols {
                NO_CLASS
            } else {
                symbol
            };
            machine.next(state, symbol)
        };
        let mut rows = vec![0; PAIR_ENTRIES];
        for &state in states {
            for (pair, entry) in rows[begins[usize::from(state)]..][..row]
                .iter_mut()
                .enumerate()
            {
                let first = step(state, (pair % usize::from(symbols)) as u8);
                let second = step(first, (pair / usize::from(symbols)) as u8);
                let begin = begins[usize::from(second)] as u32 / 2;
                *entry = begin << 16 | u32::from(second) << 8 | u32::from(first);
            }
        }
        let rows = rows.try_into().ok()?;
        Some(Self { symbols, rows })
    }
}

impl Transducer {
    /// Builds the machine with the largest lookback that fits; `None` if it would be too large.
    /// `follows_split` tells whether another split precedes this one.
    pub fn new(dfa: &Dfa, follows_split: bool) -> Option<Self> {
        let must_match = &dfa.states_that_must_match();
        let mut lookbacks = (1..=MAX_LOOKBACK).rev();
        lookbacks.find_map(|lookback| {
            let builder = Builder {
                dfa,
                must_match,
                lookback,
            };
            builder.build(follows_split)
        })
    }

    /// The state after a symbol.
    pub fn next(&self, state: u8, symbol: u8) -> u8 {
        self.rows[usize::from(state) * ROW + usize::from(symbol)] as u8
    }

    /// The symbol of the end of a text.
    pub fn end(&self) -> u8 {
        self.classes as u8
    }

    /// The difference between the symbol of a code point where an earlier split begins a piece and its class.
    pub fn after_cut(&self) -> u8 {
        self.classes as u8 + 1
    }
}

/// The DFA's state in a piece, and the code points read since the piece may have ended.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
struct Buffered {
    state: u32,
    /// The classes since the last possible end of the piece, or since its beginning.
    pending: Vec<u8>,
    /// Whether the piece has a possible end.
    accepted: bool,
    /// Whether the code points before the piece belong to no match.
    gap: bool,
}

/// A state of the machine during construction.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum Configuration {
    Buffered(Buffered),
    /// The piece may have ended at the remembered position; `rest` is the state of a scan from there.
    Remembered {
        state: u32,
        rest: Buffered,
    },
}

/// An output and the configuration after it.
type Step = (u8, Configuration);

fn start() -> Configuration {
    Configuration::Buffered(Buffered::default())
}

/// The piece that certainly has a match, in this state of the DFA.
fn accepted(state: u32) -> Buffered {
    Buffered {
        state,
        accepted: true,
        ..Buffered::default()
    }
}

fn rescan() -> Step {
    (RESCAN, start())
}

struct Builder<'a> {
    dfa: &'a Dfa,
    must_match: &'a [bool],
    lookback: usize,
}

impl Builder<'_> {
    fn build(&self, follows_split: bool) -> Option<Transducer> {
        let classes = self.dfa.class_count();
        let symbols = if follows_split {
            2 * classes + 1
        } else {
            classes + 1
        };
        if symbols >= usize::from(NO_CLASS) {
            return None;
        }
        let mut ids: FxHashMap<Step, u32> = FxHashMap::default();
        let mut steps: Vec<Step> = vec![(0, start())];
        ids.insert(steps[0].clone(), 0);
        let mut rows: Vec<Vec<u32>> = Vec::new();
        while rows.len() < steps.len() {
            let mut row = Vec::with_capacity(symbols);
            for symbol in 0..symbols {
                let step = self.read(&steps[rows.len()].1, symbol);
                let new = steps.len() as u32;
                let id = *ids.entry(step).or_insert_with_key(|step| {
                    steps.push(step.clone());
                    new
                });
                row.push(id);
            }
            rows.push(row);
            if steps.len() > MAX_CONFIGURATIONS {
                return None;
            }
        }
        let outputs: Vec<u8> = steps.iter().map(|(output, _)| *output).collect();
        self.tabulate(&rows, &outputs)
    }

    /// Joins equivalent states and numbers them by output.
    fn tabulate(&self, rows: &[Vec<u32>], outputs: &[u8]) -> Option<Transducer> {
        let by_output = outputs.iter().map(|&output| u32::from(output)).collect();
        let Partition { group, first } = minimise(rows, by_output);
        let mut number = vec![0; first.len()];
        let mut used = [0; 256];
        for (number, &state) in number.iter_mut().zip(&first) {
            let bits = match outputs[state] {
                0 => 0,
                BEGIN => HERE,
                BEGIN_PREVIOUS => PREVIOUS,
                BEGIN_BOTH => HERE | PREVIOUS,
                _ => OTHER,
            };
            // Where the numbers with these bits are used up, the state becomes one of the others.
            let others = [0, HERE, PREVIOUS, HERE | PREVIOUS].map(|more| OTHER | more);
            let mut bits = [bits].into_iter().chain(others);
            let bits = bits.find(|bits| used[usize::from(*bits)] < OTHER)?;
            *number = bits | used[usize::from(bits)];
            used[usize::from(bits)] += 1;
        }
        let unchanged = |entry| (entry / ROW * ROW) as u16;
        // Not by way of an array, which would be on the stack: that of a thread may have 128 KiB with musl.
        let unchanged: Vec<u16> = (0..MAX_STATES * ROW).map(unchanged).collect();
        let mut machine = Transducer {
            pairs: None,
            rows: unchanged.try_into().ok()?,
            outputs: Box::new([0; MAX_STATES]),
            lookback: self.lookback,
            classes: self.dfa.class_count(),
        };
        for (&new, &old) in number.iter().zip(&first) {
            machine.outputs[usize::from(new)] = outputs[old];
            let row = &mut machine.rows[usize::from(new) * ROW..];
            for (next, &target) in row.iter_mut().zip(&rows[old]) {
                *next = u16::from(number[group[target as usize] as usize]) * ROW as u16;
            }
        }
        let symbols = rows[0].len();
        machine.pairs = Pairs::new(&machine, symbols, &number);
        Some(machine)
    }

    /// Reads a symbol. The beginning that an earlier split has found is known without an output.
    fn read(&self, from: &Configuration, symbol: usize) -> Step {
        let end = self.dfa.class_count();
        if symbol <= end {
            return self.step(from, symbol);
        }
        let (output, _) = self.step(from, end);
        let (_, to) = self.step(&start(), symbol - end - 1);
        (output, to)
    }

    /// Reads a class.
    fn step(&self, from: &Configuration, class: usize) -> Step {
        let (state, rest) = match from {
            Configuration::Buffered(at) => return self.step_buffered(at.clone(), class),
            Configuration::Remembered { state, rest } => (*state, rest),
        };
        let entry = self.dfa.step(state, class);
        if entry & MATCH != 0 {
            return self.step_buffered(accepted(state), class);
        }
        let (output, rest) = self.step_buffered(rest.clone(), class);
        match (entry & DEAD, rest) {
            (DEAD, rest) => (output | COMMIT, rest),
            (state, _) if self.must_match(state) => (0, Configuration::Buffered(accepted(state))),
            (state, Configuration::Buffered(rest)) if output == 0 => {
                (0, Configuration::Remembered { state, rest })
            }
            _ => rescan(),
        }
    }

    /// Reads a class. If the piece turns out to have ended earlier, reads the pending classes again.
    fn step_buffered(&self, mut at: Buffered, class: usize) -> Step {
        let end = self.dfa.class_count();
        let mut output = 0;
        let mut queue = vec![class as u8];
        while let Some(&next) = queue.first() {
            let class = usize::from(next);
            let entry = self.dfa.step(at.state, class);
            let begun = at.accepted || !at.pending.is_empty();
            // How many code points before the newest one the piece began, or may have ended.
            let back = queue.len() - 1 + at.pending.len();
            let accept = |at: &mut Buffered, output: &mut u8| {
                if at.gap {
                    *output |= BEGIN << back;
                }
                (at.accepted, at.gap) = (true, false);
                at.pending.clear();
            };
            if entry & MATCH != 0 && begun {
                accept(&mut at, &mut output);
            }
            if entry & DEAD != DEAD {
                at.state = entry & DEAD;
                at.pending.push(next);
                queue.remove(0);
                if self.must_match(at.state) {
                    accept(&mut at, &mut output);
                }
                // A queue only holds what was pending, so it is empty here.
                if at.pending.len() > self.lookback {
                    let remembered = self.remember(&at);
                    return remembered.map_or_else(rescan, |to| (output | ENTER, to));
                }
            } else if begun {
                let was_match = at.accepted;
                if was_match {
                    output |= BEGIN << (queue.len() - 1 + at.pending.len());
                }
                let skipped = usize::from(!was_match);
                queue.splice(0..0, at.pending.drain(skipped..));
                at = Buffered {
                    gap: !was_match,
                    ..Buffered::default()
                };
            } else {
                // No match begins here. Nothing remains after the end.
                at.gap = class != end;
                queue.remove(0);
            }
        }
        (output, Configuration::Buffered(at))
    }

    fn must_match(&self, state: u32) -> bool {
        self.must_match[state as usize / (self.dfa.class_count() + 1)]
    }

    /// The same piece, with its last possible end as the remembered position.
    fn remember(&self, at: &Buffered) -> Option<Configuration> {
        if !at.accepted {
            return None;
        }
        let mut rest = Buffered::default();
        for &class in &at.pending {
            match self.step_buffered(rest, usize::from(class)) {
                (0, Configuration::Buffered(next)) => rest = next,
                _ => return None,
            }
        }
        let state = at.state;
        Some(Configuration::Remembered { state, rest })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::alignment::OffsetMap;
    use crate::pretokenize::{Block, PreTokenizer, PreTokenizers, SplitPattern};

    /// The beginnings of the pieces that the transducers find.
    fn begins(pre_tokenizers: &PreTokenizers, text: &str, block: &mut Block) -> Vec<usize> {
        let (mut found, mut from) = (Vec::new(), 0);
        while from < text.len() {
            let to = pre_tokenizers.next_block(text.as_bytes(), true, from, block);
            let begins = block.bounds().split_last().unwrap().1;
            found.extend(begins.iter().map(|&begin| from + begin as usize));
            from = to.unwrap();
        }
        found
    }

    /// All texts of up to seven characters, and texts of three runs of up to nine.
    fn texts(alphabet: [char; 3]) -> Vec<String> {
        let mut texts = vec![String::new()];
        let mut begin = 0;
        for _ in 0..7 {
            let end = texts.len();
            for text in begin..end {
                texts.extend(alphabet.map(|c| format!("{}{c}", texts[text])));
            }
            begin = end;
        }
        let [a, b, c] = alphabet.map(String::from);
        for runs in 0..1000 {
            let [first, second, third] = [runs / 100, runs / 10 % 10, runs % 10];
            texts.push(a.repeat(first) + &b.repeat(second) + &c.repeat(third));
            texts.push(b.repeat(first) + &a.repeat(second) + &b.repeat(third));
        }
        texts
    }

    #[derive(serde::Deserialize)]
    struct Vector {
        patterns: Vec<String>,
    }

    #[test]
    fn common_patterns_need_no_rescan() {
        let json = include_str!("../../../../tests/vectors/split_patterns.json");
        let vectors: Vec<Vector> = serde_json::from_str(json).unwrap();
        let published = vectors.into_iter().flat_map(|vector| vector.patterns);
        for pattern in published.chain(["a(?:b+é)?|b+".to_owned()]) {
            let split = SplitPattern::new(&pattern).unwrap();
            let machine = Transducer::new(split.automaton().unwrap(), false).unwrap();
            let needs_rescan = machine.outputs.iter().any(|output| output & RESCAN != 0);
            // This one looks for the end of the text behind any number of spaces.
            assert_eq!(needs_rescan, pattern == r"\s+$", "{pattern}");
        }
    }

    /// The transducers of steps with these patterns find the pieces that the automata find.
    fn check(patterns: &[&str], texts: &[String], block: &mut Block) {
        let steps: Vec<_> = patterns
            .iter()
            .map(|pattern| PreTokenizer::isolated(*pattern))
            .collect();
        let pre_tokenizers = PreTokenizers::new(&steps).unwrap();
        assert!(pre_tokenizers.has_blocks(), "{patterns:?}");
        for text in texts {
            let mut expected = Vec::new();
            let add = |piece: crate::pretokenize::Piece<'_>| {
                expected.push(piece.range.start);
                true
            };
            let outcome =
                pre_tokenizers.split(text.as_bytes(), &OffsetMap::original(0), false, add);
            outcome.unwrap();
            let found = begins(&pre_tokenizers, text, block);
            assert_eq!(found, expected, "{patterns:?} {text:?}");
        }
    }

    #[test]
    fn a_machine_with_too_many_pairs_steps_by_symbols() {
        // A class and a state of its own for each of 50 letters.
        let words = (0..50).map(|n| char::from_u32(0x3b1 + n).unwrap());
        let words: Vec<_> = words.map(|c| format!("{c}b*{c}")).collect();
        let pattern = format!("(?:a|é|b)b?|{}", words.join("|"));
        let split = SplitPattern::new(&pattern).unwrap();
        let machine = Transducer::new(split.automaton().unwrap(), false).unwrap();
        assert!(machine.pairs.is_none());
        let mut texts = texts(['a', 'b', 'é']);
        texts.extend(super::tests::texts(['\u{3b1}', 'b', '\u{3b2}']));
        check(&[&pattern], &texts, &mut Block::default());
    }

    #[test]
    fn transducers_find_the_pieces_of_the_automata() {
        let texts = texts(['a', 'b', 'é']);
        let mut block = Block::default();
        let single = "
            a a+ a+b ab abé|a aba|b aaab|a abab|a ab?é|a a*b|a a+bé|a a(?:ba)* a+(?!b)|b
            a+(?=b|$)|é+ a(?!$) (?:ab)+é|a|b a{1,3} a{2,3}é|ab [ab]+é|a+ a(?:b+é)?|b{6} a+b|a{5}|é
            a(?:b+é)?|b{5}é a(?:[ab]+é)?|b+ a(?:b+é)?|b+
        ";
        for pattern in single.split_whitespace() {
            check(&[pattern], &texts, &mut block);
        }
        for patterns in [
            &["a", "b"][..],
            &["ab", "ba|a|b"],
            &["b", "aab|ab|a+é|a"],
            &["é", "éa|a+b|a"],
            &["é+", "a+b|a"],
            &["é", "abab|a"],
            &["b+", "[^b]é|a"],
            &["ab", "a*é|a|b"],
            &["a?b", "b|é{2}", "a"],
        ] {
            check(patterns, &texts, &mut block);
        }
    }
}
