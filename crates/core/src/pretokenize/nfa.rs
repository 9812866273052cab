//! A pattern's tree to a non-deterministic program (Thompson's construction).
//!
//! A program keeps alternatives in order of preference, as a backtracking engine tries them (Russ Cox,
//! "Regular Expression Matching: the Virtual Machine Approach").

use super::pattern::{Eagerness, Look, Node, Repeat};
use regex_syntax::hir::ClassUnicode;

/// The largest program to build, in instructions.
const MAX_INSTRUCTIONS: usize = 20_000;

/// An instruction. A `usize` at the end is the index of the next one.
pub enum Inst {
    /// Consume one code point of the set.
    Class(usize, usize),
    /// Continue if the next code point is in the set, or at the end of the text if the flag is set.
    Look(usize, bool, usize),
    /// Try these instructions in order of preference.
    Split(Vec<usize>),
    /// A match ends here.
    Match,
}

/// A program: a non-deterministic automaton with preferences.
#[derive(Default)]
pub struct Program {
    /// The instructions.
    pub insts: Vec<Inst>,
    /// The index of the first instruction.
    pub start: usize,
    /// The sets of code points that instructions name by index.
    pub sets: Vec<ClassUnicode>,
}

impl Program {
    /// Compiles a tree; `None` if the program would be too large.
    pub fn new(tree: &Node) -> Option<Self> {
        let mut program = Program::default();
        program.insts.push(Inst::Match);
        program.start = program.compile(tree, 0)?;
        Some(program)
    }

    /// Adds instructions that match `node` and continue at `next`; returns the index of the first.
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
            Node::Repeat(repeat) => self.repeat(repeat, next),
        }
    }

    fn repeat(&mut self, repeat: &Repeat, next: usize) -> Option<usize> {
        let Repeat {
            node,
            min,
            max,
            eagerness,
        } = repeat;
        // A possessive repetition may end before its maximum only if the next code point does not fit.
        let leave = match &**node {
            Node::Class(set) if *eagerness == Eagerness::Possessive => {
                self.look(&Look::at(set).negated(), next)?
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
                for _ in *min..*max {
                    let body = self.compile(node, start)?;
                    start = self.push(Inst::Split(ordered(body, leave)))?;
                }
                start
            }
        };
        for _ in 0..*min {
            start = self.compile(node, start)?;
        }
        Some(start)
    }

    fn look(&mut self, look: &Look, next: usize) -> Option<usize> {
        let set = self.set(&look.next);
        self.push(Inst::Look(set, look.at_end, next))
    }

    fn set(&mut self, set: &ClassUnicode) -> usize {
        let known = self.sets.iter().position(|known| known == set);
        known.unwrap_or_else(|| {
            self.sets.push(set.clone());
            self.sets.len() - 1
        })
    }

    fn push(&mut self, inst: Inst) -> Option<usize> {
        if self.insts.len() >= MAX_INSTRUCTIONS {
            return None;
        }
        self.insts.push(inst);
        Some(self.insts.len() - 1)
    }
}
