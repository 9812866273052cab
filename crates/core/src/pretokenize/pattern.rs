//! The text of a regular expression to a tree, for the part of the language that a DFA over classes of
//! code points expresses exactly.
//!
//! `fancy-regex` parses the pattern, and `regex-syntax` the classes, so that the libraries that run other patterns
//! define the meaning of these too. A pattern with anything that is not in this tree is [`Unsupported`]: the regex engine
//! then runs or refuses it.

use fancy_regex::{Assertion, Expr, LookAround};
use regex_syntax::hir::{Class, ClassUnicode, ClassUnicodeRange, HirKind};

/// The pattern contains something that the DFA cannot express.
#[derive(Debug)]
pub struct Unsupported;

type Parsed<T> = Result<T, Unsupported>;

/// The order in which a repetition tries its counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Eagerness {
    /// Largest first.
    Greedy,
    /// Smallest first.
    Lazy,
    /// Largest only. Of a single class only.
    Possessive,
}

/// A condition on the next code point, which it does not consume.
#[derive(Clone, Debug)]
pub struct Look {
    /// The code points before which it holds.
    pub next: ClassUnicode,
    /// Whether it holds at the end of the text.
    pub at_end: bool,
}

impl Look {
    /// Holds before the code points of a set.
    pub fn at(set: &ClassUnicode) -> Self {
        Self {
            next: set.clone(),
            at_end: false,
        }
    }

    /// Holds exactly where this one does not.
    pub fn negated(mut self) -> Self {
        self.next.negate();
        self.at_end = !self.at_end;
        self
    }
}

/// A pattern as a tree.
#[derive(Clone, Debug)]
pub enum Node {
    /// One code point of a set.
    Class(ClassUnicode),
    /// All nodes in sequence. Without nodes, the empty text.
    Concat(Vec<Node>),
    /// The first branch that leads to a match.
    Alternation(Vec<Node>),
    /// A node repeatedly.
    Repeat(Repeat),
    /// A look-ahead.
    Look(Look),
}

/// A repetition of a node.
#[derive(Clone, Debug)]
pub struct Repeat {
    /// The repeated node.
    pub node: Box<Node>,
    /// The least count.
    pub min: u32,
    /// The greatest count; `None` if unbounded.
    pub max: Option<u32>,
    /// The order of preference.
    pub eagerness: Eagerness,
}

impl Node {
    /// Whether the node can match the empty text.
    pub fn is_nullable(&self) -> bool {
        match self {
            Node::Class(_) => false,
            Node::Look(_) => true,
            Node::Concat(nodes) => nodes.iter().all(Node::is_nullable),
            Node::Alternation(nodes) => nodes.iter().any(Node::is_nullable),
            Node::Repeat(repeat) => repeat.min == 0 || repeat.node.is_nullable(),
        }
    }
}

/// The largest count of a repetition. Each count needs states of the automaton.
const MAX_REPEAT: usize = 1000;

/// Parses a pattern.
pub fn parse(pattern: &str) -> Parsed<Node> {
    let tree = Expr::parse_tree(pattern).map_err(|_| Unsupported)?;
    node(&tree.expr)
}

fn node(expr: &Expr) -> Parsed<Node> {
    let look = |next| Node::Look(Look { next, at_end: true });
    let nodes = |exprs: &[Expr]| exprs.iter().map(node).collect::<Parsed<Vec<_>>>();
    Ok(match expr {
        Expr::Empty => Node::Concat(Vec::new()),
        Expr::Any {
            newline,
            crlf: false,
        } => {
            let mut set = ClassUnicode::new([ClassUnicodeRange::new('\0', char::MAX)]);
            if !newline {
                set.difference(&just('\n'));
            }
            Node::Class(set)
        }
        Expr::Assertion(Assertion::EndText) => look(ClassUnicode::empty()),
        Expr::Assertion(Assertion::EndLine { crlf: false }) => look(just('\n')),
        Expr::Literal { val, casei } => Node::Class(class(&regex_syntax::escape(val), *casei)?),
        Expr::Delegate { inner, casei } => Node::Class(class(inner, *casei)?),
        Expr::Concat(parts) => Node::Concat(nodes(parts)?),
        Expr::Alt(branches) => Node::Alternation(nodes(branches)?),
        Expr::Group(inner) => node(inner)?,
        Expr::AtomicGroup(inner) => atomic(node(inner)?)?,
        Expr::LookAround(inner, LookAround::LookAhead) => Node::Look(condition(&node(inner)?)?),
        Expr::LookAround(inner, LookAround::LookAheadNeg) => {
            Node::Look(condition(&node(inner)?)?.negated())
        }
        Expr::Repeat {
            child,
            lo,
            hi,
            greedy,
        } => repeat(node(child)?, *lo, *hi, *greedy)?,
        _ => return Err(Unsupported),
    })
}

/// `hi` is `usize::MAX` if unbounded.
fn repeat(node: Node, lo: usize, hi: usize, greedy: bool) -> Parsed<Node> {
    let max = (hi != usize::MAX).then_some(hi);
    let largest = max.unwrap_or(lo);
    // The automaton does not count empty rounds.
    if largest < lo || largest > MAX_REPEAT || node.is_nullable() {
        return Err(Unsupported);
    }
    Ok(Node::Repeat(Repeat {
        node: Box::new(node),
        min: lo as u32,
        max: max.map(|max| max as u32),
        eagerness: if greedy {
            Eagerness::Greedy
        } else {
            Eagerness::Lazy
        },
    }))
}

fn just(c: char) -> ClassUnicode {
    ClassUnicode::new([ClassUnicodeRange::new(c, c)])
}

/// The set of code points that a text of one class, escape or character describes.
fn class(text: &str, ignore_case: bool) -> Parsed<ClassUnicode> {
    let hir = regex_syntax::ParserBuilder::new()
        .case_insensitive(ignore_case)
        .build()
        .parse(text)
        .map_err(|_| Unsupported)?;
    match hir.kind() {
        HirKind::Class(Class::Unicode(set)) => Ok(set.clone()),
        HirKind::Literal(literal) => {
            let text = std::str::from_utf8(&literal.0).map_err(|_| Unsupported)?;
            let mut chars = text.chars();
            match (chars.next(), chars.next()) {
                (Some(c), None) => Ok(just(c)),
                _ => Err(Unsupported),
            }
        }
        _ => Err(Unsupported),
    }
}

/// `(?>...)`: only around a node that never gives anything back, and around a repeated class.
fn atomic(node: Node) -> Parsed<Node> {
    match node {
        Node::Class(_) | Node::Look(_) => Ok(node),
        Node::Repeat(repeat)
            if repeat.eagerness != Eagerness::Lazy && matches!(*repeat.node, Node::Class(_)) =>
        {
            Ok(Node::Repeat(Repeat {
                eagerness: Eagerness::Possessive,
                ..repeat
            }))
        }
        _ => Err(Unsupported),
    }
}

/// The body of a look-ahead as a condition on one code point or the end of the text.
fn condition(node: &Node) -> Parsed<Look> {
    match node {
        Node::Class(set) => Ok(Look::at(set)),
        Node::Look(look) => Ok(look.clone()),
        Node::Alternation(branches) => {
            let mut whole = Look::at(&ClassUnicode::empty());
            for branch in branches {
                let look = condition(branch)?;
                whole.next.union(&look.next);
                whole.at_end |= look.at_end;
            }
            Ok(whole)
        }
        _ => Err(Unsupported),
    }
}

#[cfg(test)]
mod tests {
    use super::super::split_pattern::SplitPattern;
    use super::*;

    /// All texts of up to five of these characters, with everything in ASCII at the end.
    fn texts() -> Vec<String> {
        let mut texts = vec![String::new()];
        let mut begin = 0;
        for _ in 0..5 {
            let end = texts.len();
            for text in begin..end {
                texts.extend(['a', 'b', 'A', '\n'].map(|c| format!("{}{c}", texts[text])));
            }
            begin = end;
        }
        texts.push(('\0'..='\u{7f}').collect());
        texts
    }

    fn split(pattern: &SplitPattern, text: &str) -> Vec<usize> {
        let mut ends = Vec::new();
        let result = pattern.split(text.as_bytes(), |piece| {
            ends.push(piece.end);
            true
        });
        result.unwrap();
        ends
    }

    fn check(pattern: &str, texts: &[String]) {
        let dfa = SplitPattern::new(pattern).unwrap();
        let regex = SplitPattern::on_regex_engine(pattern).unwrap();
        assert!(dfa.automaton().is_some(), "{pattern}");
        for text in texts {
            assert_eq!(split(&dfa, text), split(&regex, text), "{pattern} {text:?}");
        }
    }

    #[test]
    fn each_part_of_the_language_means_the_same_to_the_regex_engine() {
        let texts = texts();
        let patterns = r"
            a ab|a a?b a*b a+b|b+ a{2} a{2,} a{1,2}b a{0}b a??b a*?b a+? a{1,2}? a?+a a*+a a++a
            a{1,2}+a (?>a)b (?>a+)a (?>a*)b (?>a{1,2})a (?>$)|a (?:ab)+ (ab|b)a (?i)a (?i:a)b
            (?-i:a) (?i:a(?-i)b) (?m)a$ (?m:a$)|b$ a$ a\z a. (?s:a.) (?s)a. (?sm-i:a.$) a(?=b)
            a(?!b) a(?=b|$) a(?=$|b) a(?!b|$) a(?!$) a(?=b|A|$) [ab]+ [^\nA]+ []a]+ [a-z&&[^b]]
            \x41\u0061|\x{62} \p{Lu}|\pN|\PL a+{2} a{1,2,3} (?<name>a) ((?i)a)b (?=(?i)a)a a}|a]
            \a|[\<b]
        ";
        let spaced = ["(?x)a b # text"];
        for pattern in patterns.split_whitespace().chain(spaced) {
            check(pattern, &texts);
        }
    }

    #[test]
    fn each_escape_means_the_same_to_the_regex_engine() {
        let all: String = ('\0'..='\u{7f}').collect();
        let mut supported = String::new();
        for c in '\0'..='\u{7f}' {
            for (begin, end) in [
                ("", ""),
                ("", "61"),
                ("", "{61}"),
                ("[", "]"),
                ("[", "{61}]"),
            ] {
                let pattern = format!("{begin}\\{c}{end}");
                if parse(&pattern).is_ok() {
                    check(&pattern, std::slice::from_ref(&all));
                    supported.extend((begin.len() + end.len() == 0).then_some(c));
                }
            }
        }
        let punctuation = ('\0'..='\u{7f}').filter(char::is_ascii_punctuation);
        for c in punctuation.chain("DSWdfnrstvwz".chars()) {
            assert!("<>".contains(c) || supported.contains(c), "{c}");
        }
    }

    #[test]
    fn what_a_dfa_cannot_express_is_refused() {
        let patterns = r"
            a) (a [a [\q] *a a** (?:a?)* (?:)* a{2,1} (?:ab)++ (?>ab|a) (?>a+?) (?>(?:ab)+) (?>ab)
            a(?=bc) a(?=b+) (?<=a)b (?)a (?-)a (?i--s)a ^a \b \Aa \Z \1 \< \p \p{ \p{L \x4 \xg1
            \x{41 \x{g} \u004 \u{ \p{Nonsense} [\x4] \
        ";
        let words = patterns.split_whitespace();
        let parsed: Vec<_> = words.filter(|it| parse(it).is_ok()).collect();
        assert!(parsed.is_empty(), "{parsed:?}");
    }

    #[test]
    fn counts_and_depths_have_limits() {
        for count in [MAX_REPEAT + 1, MAX_REPEAT + 2, u32::MAX as usize] {
            assert!(parse(&format!("a{{{count}}}")).is_err());
            assert!(parse(&format!("a{{1,{count}}}")).is_err());
        }
        assert!(parse(&format!("a{{1,{MAX_REPEAT}}}")).is_ok());
        let nested = |depth| format!("{}a{}", "(".repeat(depth), ")".repeat(depth));
        assert!(parse(&nested(50)).is_ok());
        assert!(parse(&nested(10_000)).is_err());
        for group in ["(?:a)", "(?i)a"] {
            assert!(parse(&group.repeat(200)).is_ok());
        }
    }
}
