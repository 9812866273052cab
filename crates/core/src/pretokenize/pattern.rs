//! The text of a regular expression to a tree, for the part of the language that a DFA over classes of
//! code points expresses exactly.
//!
//! The dialect is that of the `fancy-regex` crate (`$` is the end of the text). `regex-syntax` parses the
//! classes, so that one library defines their meaning, case folding included. A pattern with anything else
//! is [`Unsupported`]: the regex engine then runs or refuses it.

use super::lexer::{Group, Lexeme, Lexer};
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
const MAX_REPEAT: u32 = 1000;
/// The deepest nesting of groups.
const MAX_DEPTH: usize = 100;

/// Parses a pattern.
pub fn parse(pattern: &str) -> Parsed<Node> {
    let mut parser = Parser {
        lexer: Lexer::new(pattern),
        depth: 0,
    };
    let node = parser.alternation(&mut Flags::default())?;
    if parser.lexer.peek().is_some() {
        return Err(Unsupported); // an unmatched closing parenthesis
    }
    Ok(node)
}

fn just(c: char) -> ClassUnicode {
    ClassUnicode::new([ClassUnicodeRange::new(c, c)])
}

#[derive(Clone, Copy, Default, PartialEq, Eq)]
struct Flags {
    ignore_case: bool,
    multi_line: bool,
    dot_all: bool,
}

impl Flags {
    /// Sets flags that are written as `im-s`. As in the regex engine, `(?)` and `(?-)` are errors.
    fn set(&mut self, flags: &str) -> Parsed<()> {
        if matches!(flags, "" | "-") {
            return Err(Unsupported);
        }
        let mut value = true;
        for flag in flags.chars() {
            match flag {
                '-' if value => value = false,
                'i' => self.ignore_case = value,
                'm' => self.multi_line = value,
                's' => self.dot_all = value,
                _ => return Err(Unsupported),
            }
        }
        Ok(())
    }
}

struct Parser {
    lexer: Lexer,
    depth: usize,
}

impl Parser {
    /// Flags that are set inside hold for the rest of the enclosing group.
    fn alternation(&mut self, flags: &mut Flags) -> Parsed<Node> {
        let mut branches = vec![self.concat(flags)?];
        while self.lexer.peek() == Some('|') {
            self.lexer.next();
            branches.push(self.concat(flags)?);
        }
        Ok(one_or(branches, Node::Alternation))
    }

    fn concat(&mut self, flags: &mut Flags) -> Parsed<Node> {
        let mut nodes = Vec::new();
        while !matches!(self.lexer.peek(), None | Some('|' | ')')) {
            if let Some(atom) = self.atom(flags)? {
                nodes.push(self.repeat(atom)?);
            }
        }
        Ok(one_or(nodes, Node::Concat))
    }

    fn repeat(&mut self, node: Node) -> Parsed<Node> {
        let Some(quantifier) = self.lexer.quantifier() else {
            return Ok(node);
        };
        let (min, max) = quantifier.bounds().ok_or(Unsupported)?;
        let largest = max.unwrap_or(min);
        if largest < min || largest > MAX_REPEAT {
            return Err(Unsupported);
        }
        let eagerness = match quantifier.suffix {
            Some('?') => Eagerness::Lazy,
            Some(_) => Eagerness::Possessive,
            None => Eagerness::Greedy,
        };
        // A repetition of a repetition is refused. The automaton does not count empty rounds, and can be
        // possessive only over single code points.
        if matches!(self.lexer.peek(), Some('?' | '*' | '+' | '{'))
            || node.is_nullable()
            || eagerness == Eagerness::Possessive && !matches!(node, Node::Class(_))
        {
            return Err(Unsupported);
        }
        Ok(Node::Repeat(Repeat {
            node: Box::new(node),
            min,
            max,
            eagerness,
        }))
    }

    /// Parses an atom; `None` if the text only sets flags.
    fn atom(&mut self, flags: &mut Flags) -> Parsed<Option<Node>> {
        let start = self.lexer.at;
        let look = |next| Node::Look(Look { next, at_end: true });
        Ok(Some(match self.lexer.next() {
            Some(Lexeme::Group(group)) => return self.group(&group, flags),
            Some(Lexeme::Char('$')) if flags.multi_line => look(just('\n')),
            Some(Lexeme::Char('$')) | Some(Lexeme::Escape(Some('z'))) => {
                look(ClassUnicode::empty())
            }
            Some(Lexeme::Char('.')) => {
                let mut set = ClassUnicode::new([ClassUnicodeRange::new('\0', char::MAX)]);
                if !flags.dot_all {
                    set.difference(&just('\n'));
                }
                Node::Class(set)
            }
            Some(Lexeme::Class) => {
                self.skip_class()?;
                Node::Class(self.class_since(start, *flags)?)
            }
            Some(Lexeme::Escape(letter)) => {
                Self::check_escape(letter)?;
                Node::Class(self.class_since(start, *flags)?)
            }
            Some(Lexeme::Char('^' | '?' | '*' | '+' | '{' | '}' | ']')) => return Err(Unsupported),
            Some(Lexeme::Char(_)) => Node::Class(self.class_since(start, *flags)?),
            Some(Lexeme::Bar | Lexeme::Close | Lexeme::ClassEnd) | None => return Err(Unsupported),
        }))
    }

    /// Parses the rest of a group; `None` if it only sets flags.
    fn group(&mut self, group: &Group, flags: &mut Flags) -> Parsed<Option<Node>> {
        self.depth += 1;
        if self.depth > MAX_DEPTH {
            return Err(Unsupported);
        }
        let mut inner = *flags;
        if let Group::Flags { flags: text, .. } = group {
            inner.set(text)?;
        }
        let node = match group {
            Group::Flags {
                has_body: false, ..
            } => {
                *flags = inner;
                self.depth -= 1;
                return Ok(None);
            }
            Group::Capture | Group::Plain | Group::Flags { .. } => self.alternation(&mut inner)?,
            Group::Atomic => atomic(self.alternation(&mut inner)?)?,
            Group::LookAhead { negated } => {
                let look = condition(&self.alternation(&mut inner)?)?;
                Node::Look(if *negated { look.negated() } else { look })
            }
            Group::LookBehind { .. } | Group::Other => return Err(Unsupported),
        };
        self.depth -= 1;
        // In the regex engine, flags hold after the end of such a group; in other engines, they do not.
        let ends_flags = matches!(group, Group::Plain | Group::Flags { .. });
        if !ends_flags && inner != *flags {
            return Err(Unsupported);
        }
        match self.lexer.next() {
            Some(Lexeme::Close) => Ok(Some(node)),
            _ => Err(Unsupported),
        }
    }

    /// Skips the rest of a class.
    fn skip_class(&mut self) -> Parsed<()> {
        while self.lexer.in_class() {
            if let Lexeme::Escape(letter) = self.lexer.next().ok_or(Unsupported)? {
                Self::check_escape(letter)?;
            }
        }
        Ok(())
    }

    /// Refuses an escape unless it is a set of code points. `regex-syntax` refuses wrong digits and names.
    fn check_escape(letter: Option<char>) -> Parsed<()> {
        let is_set = match letter {
            Some('p' | 'P' | 'x' | 'u') => true,
            Some('s' | 'S' | 'd' | 'D' | 'w' | 'W' | 'n' | 'r' | 't' | 'f' | 'v') => true,
            Some(c) => c.is_ascii_punctuation(),
            None => false,
        };
        is_set.then_some(()).ok_or(Unsupported)
    }

    /// The set that the text since `start` describes.
    fn class_since(&self, start: usize, flags: Flags) -> Parsed<ClassUnicode> {
        let hir = regex_syntax::ParserBuilder::new()
            .case_insensitive(flags.ignore_case)
            .build()
            .parse(&self.lexer.since(start))
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
}

/// The only node, or `many` of them.
fn one_or(mut nodes: Vec<Node>, many: fn(Vec<Node>) -> Node) -> Node {
    match nodes.pop() {
        Some(only) if nodes.is_empty() => only,
        last => {
            nodes.extend(last);
            many(nodes)
        }
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
        for pattern in [
            "a",
            "ab|a",
            "a?b",
            "a*b",
            "a+b|b+",
            "a{2}",
            "a{2,}",
            "a{1,2}b",
            "a{0}b",
            "a??b",
            "a*?b",
            "a+?",
            "a{1,2}?",
            "a?+a",
            "a*+a",
            "a++a",
            "a{1,2}+a",
            "(?>a)b",
            "(?>a+)a",
            "(?>a*)b",
            "(?>a{1,2})a",
            "(?>$)|a",
            "(?:ab)+",
            "(ab|b)a",
            "(?i)a",
            "(?i:a)b",
            "(?-i:a)",
            "(?i:a(?-i)b)",
            "(?m)a$",
            "(?m:a$)|b$",
            "a$",
            r"a\z",
            "a.",
            "(?s:a.)",
            "(?s)a.",
            "(?sm-i:a.$)",
            "a(?=b)",
            "a(?!b)",
            "a(?=b|$)",
            "a(?=$|b)",
            "a(?!b|$)",
            "a(?!$)",
            "a(?=b|A|$)",
            "[ab]+",
            r"[^\nA]+",
            "[]a]+",
            "[a-z&&[^b]]",
            r"\x41\u0061|\x{62}",
            r"\p{Lu}|\pN|\PL",
        ] {
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
        let mut expected: Vec<char> = punctuation.chain("DSWdfnrstvwz".chars()).collect();
        expected.retain(|c| !"<>".contains(*c));
        expected.sort_unstable();
        assert!(supported.chars().eq(expected), "{supported}");
    }

    #[test]
    fn what_a_dfa_cannot_express_is_refused() {
        for pattern in [
            "a)",
            "(a",
            "[a",
            r"[\q]",
            "*a",
            "a**",
            "a+{2}",
            "(?:a?)*",
            "(?:)*",
            "a{2,1}",
            "a{1,2,3}",
            "(?:ab)++",
            "(?>ab|a)",
            "(?>a+?)",
            "(?>(?:ab)+)",
            "(?>ab)",
            "a(?=bc)",
            "a(?=b+)",
            "(?<=a)b",
            "(?<name>a)",
            "(?)a",
            "(?-)a",
            "(?i--s)a",
            "(?x)a",
            "((?i)a)b",
            "(?=(?i)a)a",
            "^a",
            "a}",
            "a]",
            r"\b",
            r"\Aa",
            r"\Z",
            r"\1",
            r"\a",
            r"\<",
            r"[\<]",
            r"\p",
            r"\p{",
            r"\p{L",
            r"\x4",
            r"\xg1",
            r"\x{41",
            r"\x{g}",
            r"\u004",
            r"\u{",
            r"\p{Nonsense}",
            r"[\x4]",
            "\\",
        ] {
            assert!(parse(pattern).is_err(), "{pattern}");
        }
    }

    #[test]
    fn counts_and_depths_have_limits() {
        for count in [MAX_REPEAT + 1, MAX_REPEAT + 2, u32::MAX] {
            assert!(parse(&format!("a{{{count}}}")).is_err());
            assert!(parse(&format!("a{{1,{count}}}")).is_err());
        }
        assert!(parse(&format!("a{{1,{MAX_REPEAT}}}")).is_ok());
        let nested = |depth| format!("{}a{}", "(".repeat(depth), ")".repeat(depth));
        assert!(parse(&nested(MAX_DEPTH)).is_ok());
        for depth in [MAX_DEPTH + 1, MAX_DEPTH + 2] {
            assert!(parse(&nested(depth)).is_err());
        }
        for group in ["(?:a)", "(?i)a"] {
            assert!(parse(&group.repeat(2 * MAX_DEPTH)).is_ok());
        }
    }
}
