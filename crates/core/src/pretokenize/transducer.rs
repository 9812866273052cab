//! The automaton of a split pattern to one that reads a text once and never goes back.
//!
//! A leftmost-first automaton knows where a piece ended only when no way leads on, and that may be some
//! code points later; then it starts again at the end that it remembers. Here the state says what starting
//! again would have led to: beside the state of the piece that is being read it holds the classes read
//! since the last place where the piece may end. So there is one step for each code point, whatever the
//! text, and what a step finds out is said by the state that it leads to, as bits of a code: pieces that
//! begin at this code point or up to [`DEEPEST`] before it.
//!
//! An end further back has a place of its own: [`ENTER`] says that it is now `depth` code points back, and
//! [`COMMIT`] that it was one. What even that cannot say is [`RESCAN`]: look again with the automaton.

use super::dfa::{Dfa, DEAD, MATCH};
use rustc_hash::FxHashMap;

/// A piece begins at the code point that was read. Shifted by `n`: `n` code points before it.
pub const BEGIN: u8 = 1;
/// The most code points that a code looks back.
pub const DEEPEST: usize = 3;
/// The piece that is being read may have ended `depth` code points back; remember the place.
pub const ENTER: u8 = 1 << 4;
/// A piece begins at the place that was remembered last.
pub const COMMIT: u8 = 1 << 5;
/// What the machine says is wrong from the last cut to the next.
pub const RESCAN: u8 = 1 << 7;
/// The symbol that changes nothing: bytes behind a code point's first.
pub const SAME: u8 = 255;
/// States that the table has room for.
const MOST: usize = 256;
/// States during construction, before equal ones are joined.
const MAX_CONFIGURATIONS: usize = 4096;

/// The machine. Its symbols are the classes, then the end of a text, then the classes once more where an
/// earlier split ended a piece before the code point.
///
/// State 0 is the start. States are in the order of what they say: first those that say nothing, then
/// those that say [`BEGIN`] only, then all others.
pub struct Transducer {
    next: Box<[[u8; MOST]; 256]>,
    codes: Box<[u8; MOST]>,
    first_begin: u8,
    first_other: u8,
    depth: usize,
    classes: usize,
}

impl Transducer {
    /// Builds the machine that looks back as far as its states allow; none if it would be too large.
    /// `follows` tells whether it comes behind another split.
    pub fn new(dfa: &Dfa, follows: bool) -> Option<Self> {
        let sure = &find_sure(dfa);
        let mut depths = (1..=DEEPEST).rev();
        depths.find_map(|depth| Builder { dfa, sure, depth }.build(follows))
    }

    /// For each symbol, for each state, the next state.
    pub fn next(&self) -> &[[u8; MOST]; 256] {
        &self.next
    }

    /// For each state, what it says.
    pub fn codes(&self) -> &[u8; MOST] {
        &self.codes
    }

    /// The first state that says something, and the first that says anything but [`BEGIN`].
    pub fn firsts(&self) -> [u8; 2] {
        [self.first_begin, self.first_other]
    }

    /// How many code points back [`ENTER`] points.
    pub fn depth(&self) -> usize {
        self.depth
    }

    /// The symbol of the end of a text.
    pub fn end(&self) -> u8 {
        self.classes as u8
    }

    /// What is added to the symbol of a code point where an earlier split ended a piece.
    pub fn behind_a_piece(&self) -> u8 {
        self.classes as u8 + 1
    }
}

/// Where the automaton is in a piece, and what was read since the piece may have ended.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
struct Near {
    state: u32,
    /// The classes since the last place where the piece may end, or since its beginning.
    pending: Vec<u8>,
    /// Whether there is such a place.
    accepted: bool,
    /// Whether code points before the piece belong to no match.
    gap: bool,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum Configuration {
    Near(Near),
    /// The piece may have ended at the place that was remembered; `rest` is what reading from there led to.
    Far {
        state: u32,
        rest: Near,
    },
}

type Step = (u8, Configuration);

fn start() -> Configuration {
    Configuration::Near(Near::default())
}

fn rescan() -> Step {
    (RESCAN, start())
}

struct Builder<'a> {
    dfa: &'a Dfa,
    /// Whether the piece is certain to end further on, whatever follows.
    sure: &'a [bool],
    depth: usize,
}

impl Builder<'_> {
    fn build(&self, follows: bool) -> Option<Transducer> {
        let classes = self.dfa.class_count();
        let symbols = if follows {
            2 * classes + 1
        } else {
            classes + 1
        };
        if symbols >= usize::from(SAME) {
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
        let codes: Vec<u8> = steps.iter().map(|(code, _)| *code).collect();
        self.number(&rows, &codes)
    }

    /// Joins equal states, and numbers them by what they say.
    fn number(&self, rows: &[Vec<u32>], codes: &[u8]) -> Option<Transducer> {
        let (part, states) = minimise(rows, codes);
        let mut said = vec![0; states];
        for (&part, &code) in part.iter().zip(codes) {
            said[part as usize] = code;
        }
        let place = |code: u8| match code {
            0 => 0,
            BEGIN => 1,
            _ => 2,
        };
        let mut order: Vec<usize> = (0..states).collect();
        order.sort_by_key(|&part| place(said[part]));
        let mut number = vec![0; states];
        for (new, &part) in order.iter().enumerate() {
            number[part] = u8::try_from(new).ok()?;
        }
        let first = |least| order.iter().position(|&part| place(said[part]) >= least);
        let mut machine = Transducer {
            next: same_rows(),
            codes: Box::new([0; MOST]),
            first_begin: u8::try_from(first(1)?).ok()?,
            first_other: u8::try_from(first(2).unwrap_or(states)).ok()?,
            depth: self.depth,
            classes: self.dfa.class_count(),
        };
        for ((row, &code), &state) in rows.iter().zip(codes).zip(&part) {
            let state = usize::from(number[state as usize]);
            machine.codes[state] = code;
            for (next, &target) in machine.next.iter_mut().zip(row) {
                next[state] = number[part[target as usize] as usize];
            }
        }
        Some(machine)
    }

    /// Reads a symbol.
    fn read(&self, from: &Configuration, symbol: usize) -> Step {
        let end = self.dfa.class_count();
        if symbol <= end {
            return self.step(from, symbol);
        }
        let (ended, _) = self.step(from, end);
        let (begun, to) = self.step(&start(), symbol - end - 1);
        (ended | begun | BEGIN, to)
    }

    fn step(&self, from: &Configuration, class: usize) -> Step {
        let (state, rest) = match from {
            Configuration::Near(near) => return self.near(near.clone(), class),
            Configuration::Far { state, rest } => (*state, rest),
        };
        let entry = self.dfa.step(state, class);
        if entry & MATCH != 0 {
            let accepted = Near {
                state,
                accepted: true,
                ..Near::default()
            };
            return self.near(accepted, class);
        }
        let (code, rest) = self.near(rest.clone(), class);
        match (entry & DEAD, rest) {
            (DEAD, rest) => (code | COMMIT, rest),
            (state, _) if self.is_sure(state) => {
                let accepted = true;
                let near = Near {
                    state,
                    accepted,
                    ..Near::default()
                };
                (0, Configuration::Near(near))
            }
            (state, Configuration::Near(rest)) if code == 0 => {
                (0, Configuration::Far { state, rest })
            }
            _ => rescan(),
        }
    }

    /// Reads a class, and again what was pending each time that a piece turns out to have ended before.
    fn near(&self, mut at: Near, class: usize) -> Step {
        let end = self.dfa.class_count();
        let mut code = 0;
        let mut queue = vec![class as u8];
        while let Some(&next) = queue.first() {
            let class = usize::from(next);
            let entry = self.dfa.step(at.state, class);
            let begun = at.accepted || !at.pending.is_empty();
            // How many code points before the newest one the piece began, or may have ended.
            let back = queue.len() - 1 + at.pending.len();
            if entry & MATCH != 0 && begun {
                if at.gap {
                    code |= BEGIN << back;
                }
                (at.accepted, at.gap) = (true, false);
                at.pending.clear();
            }
            if entry & DEAD != DEAD {
                at.state = entry & DEAD;
                at.pending.push(next);
                queue.remove(0);
                if self.is_sure(at.state) {
                    if at.gap {
                        code |= BEGIN << back;
                    }
                    (at.accepted, at.gap) = (true, false);
                    at.pending.clear();
                }
                if at.pending.len() > self.depth {
                    return match self.far(&at) {
                        Some(far) if queue.is_empty() => (code | ENTER, far),
                        _ => rescan(),
                    };
                }
            } else if begun {
                let was_match = at.accepted;
                if was_match {
                    code |= BEGIN << (queue.len() - 1 + at.pending.len());
                }
                let skipped = usize::from(!was_match);
                queue.splice(0..0, at.pending.drain(skipped..));
                at = Near {
                    gap: !was_match,
                    ..Near::default()
                };
            } else {
                // No match begins here. Nothing is left behind the end.
                at.gap = class != end;
                queue.remove(0);
            }
        }
        (code, Configuration::Near(at))
    }

    fn is_sure(&self, state: u32) -> bool {
        self.sure[state as usize / (self.dfa.class_count() + 1)]
    }

    /// The same piece with its last possible end remembered elsewhere.
    fn far(&self, at: &Near) -> Option<Configuration> {
        if !at.accepted {
            return None;
        }
        let mut rest = Near::default();
        for &class in &at.pending {
            match self.near(rest, usize::from(class)) {
                (0, Configuration::Near(next)) => rest = next,
                _ => return None,
            }
        }
        let state = at.state;
        Some(Configuration::Far { state, rest })
    }
}

/// For each state, whether every way on leads to an end: places before it are then forgotten.
fn find_sure(dfa: &Dfa) -> Vec<bool> {
    let row = dfa.class_count() + 1;
    let mut sure = vec![true; dfa.states()];
    loop {
        let is_sure = |state: usize| {
            (0..row).all(|class| match dfa.step((state * row) as u32, class) {
                entry if entry & MATCH != 0 => true,
                entry if entry & DEAD == DEAD => false,
                entry => sure[entry as usize / row],
            })
        };
        let refined: Vec<bool> = (0..sure.len()).map(is_sure).collect();
        if refined == sure {
            return sure;
        }
        sure = refined;
    }
}

/// Moore's algorithm: the class of each state, and how many there are. State 0 is in class 0.
fn minimise(rows: &[Vec<u32>], codes: &[u8]) -> (Vec<u32>, usize) {
    let mut part: Vec<u32> = codes.iter().map(|&code| u32::from(code)).collect();
    let mut parts = 0;
    loop {
        let mut ids: FxHashMap<(u32, Vec<u32>), u32> = FxHashMap::default();
        let refined: Vec<u32> = rows
            .iter()
            .zip(&part)
            .map(|(row, &before)| {
                let targets = row.iter().map(|&target| part[target as usize]).collect();
                let new = ids.len() as u32;
                *ids.entry((before, targets)).or_insert(new)
            })
            .collect();
        let grown = ids.len() > parts;
        parts = ids.len();
        part = refined;
        if !grown {
            return (part, parts);
        }
    }
}

/// Rows in which every symbol changes nothing.
fn same_rows() -> Box<[[u8; MOST]; 256]> {
    let same: [u8; MOST] = std::array::from_fn(|state| state as u8);
    Box::new([same; 256])
}
