//! A leftmost-first DFA over classes of code points: how it is built, and how it runs over bytes.
//!
//! The subset construction keeps the order of preference of the program's threads and drops every thread
//! after one that has matched. The automaton therefore finds what a backtracking engine finds (as RE2 and
//! the regex crate's `meta` engine do). A transition reads the class of the next code point, or the end of
//! the text, *before* it resolves look-aheads and matches. One code point of look-ahead thus costs nothing
//! at run time.

use super::classes::Classes;
use super::nfa::{Inst, Program};
use super::pattern::Node;
use crate::text::code_point;
use rustc_hash::{FxHashMap, FxHashSet};
use std::ops::Range;

/// The largest automaton to build, in states. A larger pattern runs on the regex engine.
const MAX_STATES: usize = 4096;
/// Total threads of all states during construction.
const MAX_THREADS: usize = 2_000_000;

/// Set in a transition if a piece may end before the code point that was read.
pub(super) const MATCH: u32 = 1 << 31;
/// Set in a transition of the continuous table if a piece ends. If the transition has a next state, the
/// piece ends here and the code point is the first of the next piece; if not, it ends at the last match.
const STOP: u32 = 1 << 30;
/// The bits of the next state. If all of them are set, the automaton has no next state.
pub(super) const DEAD: u32 = STOP - 1;

/// The automaton. State 0 is the start.
pub struct Dfa {
    pub(super) classes: Classes,
    /// Row after row: for each class, and last for the end of the text, `MATCH | next state`. A state is
    /// the index of its row's first entry.
    table: Vec<u32>,
    /// The same table, but a transition that ends a piece continues with the next piece.
    continuous: Vec<u32>,
    safe_cuts: Vec<bool>,
    /// For each class, whether no match contains a code point of the class.
    in_no_match: Vec<bool>,
}

/// What a search has read of a match that may continue.
#[derive(Clone, Copy, Default)]
pub struct Progress {
    state: u32,
    /// The bytes that were read, from the beginning of the match on.
    at: usize,
    /// Where the match can end.
    end: usize,
}

impl Dfa {
    /// Builds the smallest automaton of a tree; `None` if it would be too large.
    pub fn new(tree: &Node) -> Option<Self> {
        let program = Program::new(tree)?;
        let classes = Classes::new(&program.sets)?;
        let rows = determinise(&program, &classes)?;
        let partition = minimise(&rows, vec![0; rows.len()]);
        let row = classes.count as u32 + 1;
        let entries = partition.first.iter().flat_map(|&state| &rows[state]);
        let entries = entries.map(|entry| match entry & DEAD {
            DEAD => *entry,
            state => (entry & MATCH) | (partition.group[state as usize] * row),
        });
        let mut dfa = Self {
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

    /// The number of states.
    pub fn states(&self) -> usize {
        self.table.len() / (self.classes.count + 1)
    }

    /// The number of classes of code points.
    pub fn class_count(&self) -> usize {
        self.classes.count
    }

    /// Whether two automata find the same matches in every text.
    pub fn is_same(&self, other: &Self) -> bool {
        let class_pair = |c: char| {
            (
                self.classes.of(u32::from(c)),
                other.classes.of(u32::from(c)),
            )
        };
        let pairs: FxHashSet<_> = ('\0'..=char::MAX).map(class_pair).collect();
        let pairs = pairs.into_iter().map(|(a, b)| (a.into(), b.into()));
        let mut pairs: Vec<(usize, usize)> = pairs.collect();
        pairs.push((self.classes.count, other.classes.count));
        let [own, others] = [self, other].map(Self::needed_entries);
        let (mut seen, mut stack) = (FxHashSet::default(), vec![(0, 0)]);
        let mut compared = 0; // an empty match is none
        while let Some((state, other_state)) = stack.pop() {
            for &(class, other_class) in &pairs {
                let (entry, other_entry) = (own[state + class], others[other_state + other_class]);
                let next = (entry & DEAD, other_entry & DEAD);
                if (entry ^ other_entry) & compared != 0 || (next.0 == DEAD) != (next.1 == DEAD) {
                    return false;
                }
                if next.0 != DEAD && seen.insert(next) {
                    stack.push((next.0 as usize, next.1 as usize));
                }
            }
            compared = MATCH;
        }
        true
    }

    /// Whether the matches cover every text: whatever follows a code point, a match begins with it.
    pub fn covers_every_text(&self) -> bool {
        let row = self.classes.count + 1;
        let must_match = self.states_that_must_match();
        let starts = |entry: &u32| match entry & DEAD {
            DEAD => false,
            next => must_match[next as usize / row],
        };
        self.table[..self.classes.count].iter().all(starts)
    }

    /// The table without next states from which no match can end, and without ends that a later one
    /// replaces in any case.
    fn needed_entries(&self) -> Vec<u32> {
        let row = self.classes.count + 1;
        let can_match = self.states_where(false, |row, goes_on| row.iter().any(goes_on));
        let must_match = self.states_that_must_match();
        let needed = |&entry: &u32| match (entry & DEAD) as usize / row {
            _ if entry & DEAD == DEAD => entry,
            next if !can_match[next] => entry | DEAD,
            next if must_match[next] => entry & DEAD,
            _ => entry,
        };
        self.table.iter().map(needed).collect()
    }

    /// For each state, whether every continuation leads to a match. Earlier possible ends are then irrelevant.
    pub(super) fn states_that_must_match(&self) -> Vec<bool> {
        self.states_where(true, |row, goes_on| row.iter().all(goes_on))
    }

    /// For each state, whether any or all transitions match now or lead to such a state.
    fn states_where(
        &self,
        initial: bool,
        holds: impl Fn(&[u32], &dyn Fn(&u32) -> bool) -> bool,
    ) -> Vec<bool> {
        let row = self.classes.count + 1;
        let mut found = vec![initial; self.states()];
        loop {
            let leads = |entry: &u32| match entry & DEAD {
                _ if entry & MATCH != 0 => true,
                DEAD => false,
                next => found[next as usize / row],
            };
            let refined: Vec<bool> = self
                .table
                .chunks(row)
                .map(|row| holds(row, &leads))
                .collect();
            if refined == found {
                return found;
            }
            found = refined;
        }
    }

    /// The transition from `state` for a class, or for the end of the text (`class_count()`).
    #[inline(always)]
    pub(super) fn step(&self, state: u32, class: usize) -> u32 {
        self.table[state as usize + class]
    }

    fn join_pieces(&self) -> Vec<u32> {
        let row = self.classes.count + 1;
        let join = |(index, &entry): (usize, &u32)| match self.table[index % row] & DEAD {
            first if first != DEAD && entry == MATCH | DEAD => STOP | first,
            _ if entry & DEAD == DEAD => STOP | entry,
            _ => entry,
        };
        self.table.iter().enumerate().map(join).collect()
    }

    /// Whether a text may be cut between two code points of these classes.
    ///
    /// True only if a piece always ends there, whatever precedes and follows, and if it also ends there
    /// at the end of the text. The two halves then have the pieces of the whole.
    pub fn is_safe_cut(&self, before: u8, after: u8) -> bool {
        self.safe_cuts[usize::from(before) * self.classes.count + usize::from(after)]
    }

    /// Whether no match contains a code point of this class, whatever precedes and follows.
    pub fn is_in_no_match(&self, class: u8) -> bool {
        self.in_no_match[usize::from(class)]
    }

    fn find_in_no_match(&self) -> Vec<bool> {
        let row = self.classes.count + 1;
        let is_in_none = |class| {
            let mut entries = self.table.iter().skip(class).step_by(row);
            entries.all(|entry| entry & DEAD == DEAD)
        };
        (0..self.classes.count).map(is_in_none).collect()
    }

    fn find_safe_cuts(&self) -> Vec<bool> {
        let (count, end) = (self.classes.count, self.classes.count);
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

    /// Calls `piece` with each piece of the text, and with whether it is a match, until it returns false.
    /// The pieces cover the text.
    #[inline(always)]
    pub fn matches(&self, text: &[u8], piece: impl FnMut(Range<usize>, bool) -> bool) {
        self.last_matches(text, Progress::default(), piece);
    }

    /// As [`Dfa::matches`], for the rest of a text of which [`Dfa::stable_matches`] has read a part.
    #[inline(always)]
    pub fn last_matches(
        &self,
        text: &[u8],
        progress: Progress,
        piece: impl FnMut(Range<usize>, bool) -> bool,
    ) {
        self.scan::<true>(text, progress, piece);
    }

    /// Finds the pieces of a text that continues: only those that no continuation changes.
    ///
    /// Returns where the last piece ends, and where the next match can begin at the earliest. From there on,
    /// the search can continue with more text: `progress` then tells what it has read.
    pub fn stable_matches(
        &self,
        text: &[u8],
        progress: &mut Progress,
        piece: impl FnMut(Range<usize>, bool) -> bool,
    ) -> (usize, usize) {
        let (gap, start);
        (gap, start, *progress) = self.scan::<false>(text, *progress, piece);
        (gap, start)
    }

    #[inline(always)]
    fn scan<const ENDS: bool>(
        &self,
        text: &[u8],
        progress: Progress,
        mut piece: impl FnMut(Range<usize>, bool) -> bool,
    ) -> (usize, usize, Progress) {
        // No piece covers `gap..start`; the one that begins at `start` can end at `end`.
        let (mut gap, mut start) = (0, 0);
        let Progress {
            mut state,
            mut at,
            mut end,
        } = progress;
        while start < text.len() {
            if !ENDS && at == text.len() {
                let (at, end) = (at - start, end - start);
                return (gap, start, Progress { state, at, end });
            }
            let (class, width) = self.class_at(text, at);
            let entry = self.continuous[state as usize + class];
            if entry & MATCH != 0 {
                end = at;
            }
            if entry & STOP == 0 {
                state = entry & DEAD;
                at += width;
                continue;
            }
            state = entry & DEAD;
            if state != DEAD {
                (end, at) = (at, at + width); // the code point begins the next piece
            } else if end == start {
                start += code_point(text, start).1; // no match begins here
                (state, at, end) = (0, start, start);
                continue;
            } else {
                (state, at) = (0, end);
            }
            if gap < start && !emit_gap(gap..start, &mut piece) || !piece(start..end, true) {
                return (gap, start, Progress::default());
            }
            (gap, start) = (end, end);
        }
        if ENDS && gap < start {
            emit_gap(gap..start, &mut piece);
        }
        (gap, start, Progress::default())
    }

    /// The class of the code point at `at`, and its length in bytes. At the end of the text: the end's
    /// class, and 0.
    #[inline(always)]
    fn class_at(&self, text: &[u8], at: usize) -> (usize, usize) {
        match text.get(at) {
            Some(&byte) if byte < 0x80 => (usize::from(self.classes.of_ascii(byte)), 1),
            Some(_) => {
                let (code_point, width) = code_point(text, at);
                (usize::from(self.classes.of(code_point)), width)
            }
            None => (self.classes.count, 0),
        }
    }
}

/// Gaps between matches are rare. This function keeps the inlined `piece` out of their path.
#[cold]
fn emit_gap(range: Range<usize>, piece: &mut dyn FnMut(Range<usize>, bool) -> bool) -> bool {
    piece(range, false)
}

/// Follows every instruction that consumes nothing, given the class of the next code point or the end.
struct Closure<'a> {
    program: &'a Program,
    classes: &'a Classes,
    class: usize,
    /// For each instruction, whether it was followed.
    seen: Vec<bool>,
    /// The threads after the code point, in order of preference.
    threads: Vec<usize>,
    /// For each instruction, whether it is one of the threads.
    reached: Vec<bool>,
}

impl Closure<'_> {
    /// Returns true at a match: threads of lower preference are then dropped.
    fn follow(&mut self, start: usize) -> bool {
        let mut stack = vec![start];
        while let Some(at) = stack.pop() {
            if std::mem::replace(&mut self.seen[at], true) {
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
                    if self.holds(*set, false) && !std::mem::replace(&mut self.reached[*next], true)
                    {
                        self.threads.push(*next);
                    }
                }
            }
        }
        false
    }

    fn holds(&self, set: usize, at_end: bool) -> bool {
        if self.class == self.classes.count {
            at_end
        } else {
            self.classes.is_member(set, self.class)
        }
    }
}

/// The subset construction. Returns for each state, for each class and the end, `MATCH | next state`.
fn determinise(program: &Program, classes: &Classes) -> Option<Vec<Vec<u32>>> {
    let mut ids: FxHashMap<Vec<usize>, u32> = FxHashMap::default();
    let mut states = vec![vec![program.start]];
    ids.insert(states[0].clone(), 0);
    let mut rows = Vec::new();
    let mut threads_held = 1;
    while rows.len() < states.len() {
        let mut row = Vec::with_capacity(classes.count + 1);
        for class in 0..=classes.count {
            let mut closure = Closure {
                program,
                classes,
                class,
                seen: vec![false; program.insts.len()],
                threads: Vec::new(),
                reached: vec![false; program.insts.len()],
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

/// States grouped by equivalence.
pub struct Partition {
    /// For each state, its group. State 0 is in group 0.
    pub group: Vec<u32>,
    /// For each group, its first state.
    pub first: Vec<usize>,
}

/// Groups the states that no input tells apart, with Moore's algorithm (Hopcroft, Motwani and Ullman,
/// "Introduction to Automata Theory, Languages, and Computation", section 4.4).
///
/// `rows` holds transitions `MATCH | next state`. `group` holds an initial grouping, for example by the
/// states' outputs.
pub fn minimise(rows: &[Vec<u32>], mut group: Vec<u32>) -> Partition {
    let mut groups = 0;
    loop {
        let mut ids: FxHashMap<(u32, Vec<u32>), u32> = FxHashMap::default();
        let mut first = Vec::new();
        let refine = |(state, row): (usize, &Vec<u32>)| {
            let targets = row.iter().map(|entry| match entry & DEAD {
                DEAD => *entry,
                target => (entry & MATCH) | group[target as usize],
            });
            *ids.entry((group[state], targets.collect()))
                .or_insert_with(|| {
                    first.push(state);
                    first.len() as u32 - 1
                })
        };
        group = rows.iter().enumerate().map(refine).collect();
        if first.len() == groups {
            return Partition { group, first };
        }
        groups = first.len();
    }
}

#[cfg(test)]
mod tests {
    use super::super::pattern::parse;
    use super::*;

    const WORDS: &str = r"'s| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+";

    fn dfa(pattern: &str) -> Dfa {
        Dfa::new(&parse(pattern).unwrap()).unwrap()
    }

    #[test]
    fn equivalent_states_are_one() {
        for (pattern, states, classes) in [
            ("a", 2, 2),
            ("aaa", 4, 2),
            ("ab|cb", 3, 4),
            ("abe|cbe", 4, 5),
            ("(?:a|b)*c", 2, 4),
        ] {
            let dfa = dfa(pattern);
            assert_eq!(
                (dfa.states(), dfa.class_count()),
                (states, classes),
                "{pattern}"
            );
        }
    }

    #[test]
    fn a_code_point_is_in_no_match_if_no_match_reads_it() {
        let dfa = dfa("ab+|c(?=d)");
        let is_in_none = |c: char| dfa.is_in_no_match(dfa.classes.of(u32::from(c)));
        assert_eq!(
            ['a', 'b', 'c', 'd', 'e'].map(is_in_none),
            [false, false, false, true, true]
        );
    }

    #[test]
    fn matches_cover_every_text_if_no_code_point_can_be_left_out() {
        for (pattern, covers) in [
            (WORDS, true),
            ("(?s:.)", true),
            (r"a|\S+|\s+", true),
            (r"[\s\S]{1,3}", true),
            (r"\s+$|\s+(?!\S)|\s|\S", true),
            (".", false),
            (r"\w+", false),
            ("(?s:..)", false),
            ("(?s:.*)", true),
            ("a|[^a](?!a)", false),
            (r"\S+|\s+$", false),
        ] {
            assert_eq!(dfa(pattern).covers_every_text(), covers, "{pattern}");
        }
    }

    #[test]
    fn automata_are_the_same_if_all_texts_have_the_same_matches() {
        for (a, b, same) in [
            (
                WORDS,
                r"'s| ?+\p{L}++| ?\p{N}+| ?[^\s\p{L}\p{N}]++|\s+(?!\S)|\s",
                true,
            ),
            (
                WORDS,
                r"'s| ?\p{L}+| ?\p{N}+| ?[^\s\pL\pN]+|\s+$|\s+(?!\S)|\s",
                true,
            ),
            (
                WORDS,
                r"'s| ?\p{L}+| ?\p{N}+| ?[^\s\pL\pN]+|\s++(?!\S)|\s",
                false,
            ),
            (
                WORDS,
                r"'s| ?\p{L}+| ?\p{N}+| ?[^\s\pL\pN]+|\s+$|\s+(?!\S)",
                false,
            ),
            (
                WORDS,
                r"'s| ?\p{Ll}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+",
                false,
            ),
            ("a|ab", "a", true),
            ("ab|a", "a|ab", false),
            ("a|b(?=c)d", "a", true), // the branch never matches
            ("a*", "a+", true),       // an empty match is none
            ("(?:ab)*", "(?:ab)+", true),
            ("a(?!b)", "a(?![bc])", false),
            ("a$", "a", false),
            ("a(?=b)|a$", "a(?!.)|a(?=b)", false),
            ("a+?", "a", true),
        ] {
            assert_eq!(dfa(a).is_same(&dfa(b)), same, "{a} {b}");
            assert_eq!(dfa(b).is_same(&dfa(a)), same, "{b} {a}");
        }
    }

    #[test]
    fn a_large_pattern_has_no_automaton() {
        let automaton = |pattern: &str| Dfa::new(&parse(pattern).unwrap());
        assert!(automaton("(?:a|b)*a(?:a|b){8}").is_some());
        assert!(automaton("(?:a|b)*a(?:a|b){12}").is_none(), "states");
        assert!(automaton(&"a?".repeat(4000)).is_none(), "threads");
    }
}
