//! A pattern's tree to a leftmost-first automaton over code point classes.
//!
//! Thompson's construction keeps the alternatives in order of preference; the subset construction
//! keeps that order in its states and drops every alternative behind one that has matched, so the
//! automaton finds what a backtracking engine finds (as in RE2 and the regex crate's PikeVM: Russ
//! Cox, "Regular Expression Matching: the Virtual Machine Approach"). A transition sees the class of
//! the next code point, or the end of the text, *before* it resolves conditions and matches: this is
//! how one code point of look-ahead costs nothing at run time.

use super::classes::Classes;
use super::pattern::{Eagerness, Look, Node};
use regex_syntax::hir::ClassUnicode;
use rustc_hash::{FxHashMap, FxHashSet};

/// The largest automaton that we build, in states; beyond it the regex engine serves.
const MAX_STATES: usize = 4096;
/// The largest program that we determinise, in instructions.
const MAX_PROGRAM: usize = 20_000;
/// Total instructions held by the states during construction.
const MAX_THREADS: usize = 2_000_000;

/// Set in a transition if a piece may end before the code point that was read.
pub(super) const MATCH: u32 = 1 << 31;
/// Set, in the continuous table, if a piece ends: there, and the code point is the first of the next
/// one, or, if there is no way on, where a match was seen last.
pub(super) const STOP: u32 = 1 << 30;
/// The bits of the state; all of them set: no way on.
pub(super) const DEAD: u32 = STOP - 1;

/// The automaton; its state 0 is the start.
pub struct Dfa {
    pub(super) classes: Classes,
    /// Row after row: for each class, and last for the end of the text, `MATCH | next state`, where
    /// a state is the index of its row's first entry.
    table: Vec<u32>,
    /// The same, where a transition that ends a piece goes on with the next one.
    continuous: Vec<u32>,
    states: usize,
    safe_cuts: Vec<bool>,
    /// For each class, whether a code point of it is part of no match.
    in_no_match: Vec<bool>,
}

impl Dfa {
    /// Builds the smallest automaton of a tree; none if it would be too large.
    pub fn new(tree: &Node) -> Option<Self> {
        let program = Program::new(tree)?;
        let classes = Classes::new(&program.sets)?;
        let rows = minimise(determinise(&program, &classes)?);
        let row = classes.count() as u32 + 1;
        let entries = rows.iter().flatten().map(|entry| match entry & DEAD {
            DEAD => *entry,
            state => (entry & MATCH) | (state * row),
        });
        let mut dfa = Self {
            states: rows.len(),
            table: entries.collect(),
            continuous: Vec::new(),
            classes,
            safe_cuts: Vec::new(),
            in_no_match: Vec::new(),
        };
        dfa.continuous = dfa.join_pieces();
        dfa.safe_cuts = dfa.find_safe_cuts();
        dfa.in_no_match = dfa.find_in_no_match();
        Some(dfa)
    }

    /// How many states there are.
    pub fn states(&self) -> usize {
        self.states
    }

    /// How many classes the code points fall into.
    pub fn class_count(&self) -> usize {
        self.classes.count()
    }

    /// What happens in `state` when `class` (or, if it is the number of classes, the end) is next.
    #[inline(always)]
    pub(super) fn step(&self, state: u32, class: usize) -> u32 {
        self.table[state as usize + class]
    }

    /// The same over a whole text: `STOP | state in the next piece` where a piece ends.
    #[inline(always)]
    pub(super) fn step_on(&self, state: u32, class: usize) -> u32 {
        self.continuous[state as usize + class]
    }

    fn join_pieces(&self) -> Vec<u32> {
        let row = self.classes.count() + 1;
        let join = |(index, &entry): (usize, &u32)| match self.table[index % row] & DEAD {
            first if first != DEAD && entry == MATCH | DEAD => STOP | first,
            _ if entry & DEAD == DEAD => STOP | entry,
            _ => entry,
        };
        self.table.iter().enumerate().map(join).collect()
    }

    /// Whether a text may be cut between two code points of these classes.
    ///
    /// True only if a piece always ends there, whatever comes before and after, and would also end
    /// there if the text did: then the two halves have the pieces of the whole.
    pub fn is_safe_cut(&self, before: u8, after: u8) -> bool {
        self.safe_cuts[usize::from(before) * self.classes.count() + usize::from(after)]
    }

    /// Whether a code point of this class is part of no match, whatever comes before and after.
    pub fn is_in_no_match(&self, class: u8) -> bool {
        self.in_no_match[usize::from(class)]
    }

    fn find_in_no_match(&self) -> Vec<bool> {
        let row = self.classes.count() + 1;
        let is_in_none = |class| {
            let mut entries = self.table.iter().skip(class).step_by(row);
            entries.all(|entry| entry & DEAD == DEAD)
        };
        (0..self.classes.count()).map(is_in_none).collect()
    }

    fn find_safe_cuts(&self) -> Vec<bool> {
        let (count, end) = (self.classes.count(), self.classes.count());
        let mut safe = vec![false; count * count];
        for before in 0..count {
            if self.step(0, before) & DEAD == DEAD {
                continue; // the code point may lie in a gap between matches
            }
            let reached: Vec<u32> = (0..self.table.len() as u32)
                .step_by(count + 1)
                .map(|state| self.step(state, before) & DEAD)
                .filter(|&state| state != DEAD)
                .collect();
            if !reached
                .iter()
                .all(|&state| self.step(state, end) & MATCH != 0)
            {
                continue;
            }
            for after in 0..count {
                safe[before * count + after] = reached
                    .iter()
                    .all(|&state| self.step(state, after) == MATCH | DEAD);
            }
        }
        safe
    }
}

/// One instruction of the non-deterministic program.
enum Inst {
    /// Take one code point of the set, then go on.
    Class(usize, usize),
    /// Go on if the next code point is in the set, or at the end of the text if allowed.
    Look(usize, bool, usize),
    /// Try these, in order of preference.
    Split(Vec<usize>),
    /// A piece may end here.
    Match,
}

#[derive(Default)]
struct Program {
    insts: Vec<Inst>,
    start: usize,
    sets: Vec<ClassUnicode>,
}

impl Program {
    fn new(tree: &Node) -> Option<Self> {
        let mut program = Program::default();
        program.insts.push(Inst::Match);
        program.start = program.compile(tree, 0)?;
        Some(program)
    }

    /// Adds what matches `node` and then goes on at `next`; returns where it begins.
    fn compile(&mut self, node: &Node, next: usize) -> Option<usize> {
        match node {
            Node::Class(set) => {
                let set = self.set(set);
                self.push(Inst::Class(set, next))
            }
            Node::Look(look) => self.look(look, next),
            Node::Concat(nodes) => nodes
                .iter()
                .rev()
                .try_fold(next, |next, node| self.compile(node, next)),
            Node::Alternation(branches) => {
                let starts = branches
                    .iter()
                    .map(|branch| self.compile(branch, next))
                    .collect::<Option<_>>()?;
                self.push(Inst::Split(starts))
            }
            Node::Repeat {
                node,
                min,
                max,
                eagerness,
            } => self.repeat(node, *min, *max, *eagerness, next),
        }
    }

    fn repeat(
        &mut self,
        node: &Node,
        min: u32,
        max: Option<u32>,
        eagerness: Eagerness,
        next: usize,
    ) -> Option<usize> {
        // Leaving before the most that was possible: a possessive repetition does so only if no more is there.
        let leave = match node {
            Node::Class(set) if eagerness == Eagerness::Possessive => {
                let mut next_code_point = set.clone();
                next_code_point.negate();
                let look = Look {
                    next: next_code_point,
                    at_end: true,
                };
                self.look(&look, next)?
            }
            _ => next,
        };
        let ordered = |body, leave| match eagerness {
            Eagerness::Lazy => vec![leave, body],
            _ => vec![body, leave],
        };
        let mut start = match max {
            None => {
                let split = self.push(Inst::Split(Vec::new()))?;
                let body = self.compile(node, split)?;
                self.insts[split] = Inst::Split(ordered(body, leave));
                split
            }
            Some(max) => {
                let mut start = next;
                for _ in min..max {
                    let body = self.compile(node, start)?;
                    start = self.push(Inst::Split(ordered(body, leave)))?;
                }
                start
            }
        };
        for _ in 0..min {
            start = self.compile(node, start)?;
        }
        Some(start)
    }

    fn look(&mut self, look: &Look, next: usize) -> Option<usize> {
        let set = self.set(&look.next);
        self.push(Inst::Look(set, look.at_end, next))
    }

    fn set(&mut self, set: &ClassUnicode) -> usize {
        match self.sets.iter().position(|known| known == set) {
            Some(index) => index,
            None => {
                self.sets.push(set.clone());
                self.sets.len() - 1
            }
        }
    }

    fn push(&mut self, inst: Inst) -> Option<usize> {
        if self.insts.len() >= MAX_PROGRAM {
            return None;
        }
        self.insts.push(inst);
        Some(self.insts.len() - 1)
    }
}

/// Follows everything that takes no code point, knowing which class (or the end) is next.
struct Closure<'a> {
    program: &'a Program,
    classes: &'a Classes,
    class: usize,
    seen: FxHashSet<usize>,
    /// Where the threads are after the code point, in order of preference.
    threads: Vec<usize>,
}

impl Closure<'_> {
    /// Returns true at a match: what is less preferred is then dropped.
    fn follow(&mut self, start: usize) -> bool {
        let mut stack = vec![start];
        while let Some(at) = stack.pop() {
            if !self.seen.insert(at) {
                continue;
            }
            match &self.program.insts[at] {
                Inst::Match => return true,
                Inst::Split(branches) => stack.extend(branches.iter().rev()),
                Inst::Look(set, at_end, next) => {
                    if self.holds(*set, *at_end) {
                        stack.push(*next);
                    }
                }
                Inst::Class(set, next) => {
                    if self.holds(*set, false) && !self.threads.contains(next) {
                        self.threads.push(*next);
                    }
                }
            }
        }
        false
    }

    fn holds(&self, set: usize, at_end: bool) -> bool {
        if self.class == self.classes.count() {
            at_end
        } else {
            self.classes.is_member(set, self.class)
        }
    }
}

/// For each state, for each class and the end: `MATCH | next state`.
type Rows = Vec<Vec<u32>>;

fn determinise(program: &Program, classes: &Classes) -> Option<Rows> {
    let mut ids: FxHashMap<Vec<usize>, u32> = FxHashMap::default();
    let mut states = vec![vec![program.start]];
    ids.insert(states[0].clone(), 0);
    let mut rows = Rows::new();
    let mut threads_held = 1;
    while rows.len() < states.len() {
        let mut row = Vec::with_capacity(classes.count() + 1);
        for class in 0..=classes.count() {
            let mut closure = Closure {
                program,
                classes,
                class,
                seen: FxHashSet::default(),
                threads: Vec::new(),
            };
            let matched = states[rows.len()].iter().any(|&at| closure.follow(at));
            let mut target = DEAD;
            if !closure.threads.is_empty() {
                let new = states.len();
                target = *ids.entry(closure.threads).or_insert_with_key(|threads| {
                    threads_held += threads.len();
                    states.push(threads.clone());
                    new as u32
                });
                if states.len() > MAX_STATES || threads_held > MAX_THREADS {
                    return None;
                }
            }
            row.push(target | if matched { MATCH } else { 0 });
        }
        rows.push(row);
    }
    Some(rows)
}

/// Moore's algorithm: states that no continuation tells apart become one.
fn minimise(rows: Rows) -> Rows {
    let mut part: Vec<u32> = vec![0; rows.len()];
    let mut parts = 1;
    loop {
        let signature = |state: usize| -> Vec<u32> {
            let target = |entry: &u32| match entry & DEAD {
                DEAD => *entry,
                state => (entry & MATCH) | part[state as usize],
            };
            std::iter::once(part[state])
                .chain(rows[state].iter().map(target))
                .collect()
        };
        let mut ids: FxHashMap<Vec<u32>, u32> = FxHashMap::default();
        let mut firsts = Vec::new();
        let refined: Vec<u32> = (0..rows.len())
            .map(|state| {
                let new = ids.len() as u32;
                *ids.entry(signature(state)).or_insert_with(|| {
                    firsts.push(state);
                    new
                })
            })
            .collect();
        if ids.len() == parts {
            // Every part has one row: that of its first state, in terms of the parts.
            return firsts
                .iter()
                .map(|&state| signature(state)[1..].to_vec())
                .collect();
        }
        parts = ids.len();
        part = refined;
    }
}
