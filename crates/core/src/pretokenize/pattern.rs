//! Regex text to a tree, for the part of the regex language that an automaton over code point
//! classes can express exactly.
//!
//! The dialect is that of the `fancy-regex` crate (`$` is the end of the text). Classes are parsed
//! by `regex-syntax`, so their meaning, case folding included, is defined in one place. Whatever
//! this parser does not know is [`Unsupported`]: the regex engine then runs the pattern, with the
//! same result, or refuses it.

use regex_syntax::hir::{Class, ClassUnicode, ClassUnicodeRange, HirKind};

/// The pattern holds something that the automaton cannot express.
#[derive(Debug)]
pub struct Unsupported;

type Parsed<T> = Result<T, Unsupported>;

/// How eagerly a repetition takes more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Eagerness {
    /// As much as possible, and gives back.
    Greedy,
    /// As little as possible.
    Lazy,
    /// As much as possible, and never gives back; only over a single class.
    Possessive,
}

/// A condition on the code point that follows, without taking it.
#[derive(Clone, Debug)]
pub struct Look {
    /// It holds before one of these code points,
    pub next: ClassUnicode,
    /// and at the end of the text if this is set.
    pub at_end: bool,
}

/// A pattern as a tree.
#[derive(Clone, Debug)]
pub enum Node {
    /// One code point of a set.
    Class(ClassUnicode),
    /// One after the other; empty matches the empty text.
    Concat(Vec<Node>),
    /// The first that leads to a match.
    Alternation(Vec<Node>),
    /// Between `min` and `max` times.
    Repeat {
        /// What is repeated.
        node: Box<Node>,
        /// At least so often.
        min: u32,
        /// At most so often; no bound if absent.
        max: Option<u32>,
        /// How eagerly.
        eagerness: Eagerness,
    },
    /// A look ahead.
    Look(Look),
}

impl Node {
    /// Whether the node can match the empty text.
    pub fn is_nullable(&self) -> bool {
        match self {
            Node::Class(_) => false,
            Node::Look(_) => true,
            Node::Concat(nodes) => nodes.iter().all(Node::is_nullable),
            Node::Alternation(nodes) => nodes.iter().any(Node::is_nullable),
            Node::Repeat { node, min, .. } => *min == 0 || node.is_nullable(),
        }
    }
}

/// The largest bound of a counted repetition; each count is states of the automaton.
const MAX_REPEAT: u32 = 1000;
/// How deep groups may nest.
const MAX_DEPTH: usize = 100;

/// Parses a pattern.
pub fn parse(pattern: &str) -> Parsed<Node> {
    let mut parser = Parser {
        chars: pattern.chars().collect(),
        at: 0,
        depth: 0,
    };
    let node = parser.alternation(&mut Flags::default())?;
    if parser.at < parser.chars.len() {
        return Err(Unsupported); // a closing parenthesis too many
    }
    Ok(node)
}

/// Every code point.
fn everything() -> ClassUnicode {
    ClassUnicode::new([ClassUnicodeRange::new('\0', char::MAX)])
}

#[derive(Clone, Copy, Default)]
struct Flags {
    ignore_case: bool,
    multi_line: bool,
    dot_all: bool,
}

impl Flags {
    fn set(&mut self, flag: char, value: bool) -> Parsed<()> {
        match flag {
            'i' => self.ignore_case = value,
            'm' => self.multi_line = value,
            's' => self.dot_all = value,
            _ => return Err(Unsupported),
        }
        Ok(())
    }
}

struct Parser {
    chars: Vec<char>,
    at: usize,
    depth: usize,
}

impl Parser {
    fn peek(&self) -> Option<char> {
        self.chars.get(self.at).copied()
    }

    fn next(&mut self) -> Option<char> {
        let c = self.peek();
        self.at += usize::from(c.is_some());
        c
    }

    fn take(&mut self, text: &str) -> bool {
        let found = text
            .chars()
            .enumerate()
            .all(|(i, c)| self.chars.get(self.at + i) == Some(&c));
        if found {
            self.at += text.chars().count();
        }
        found
    }

    /// `flags` set inside hold for the rest of the enclosing group.
    fn alternation(&mut self, flags: &mut Flags) -> Parsed<Node> {
        let mut branches = vec![self.concat(flags)?];
        while self.take("|") {
            branches.push(self.concat(flags)?);
        }
        Ok(match branches.pop() {
            Some(only) if branches.is_empty() => only,
            Some(last) => {
                branches.push(last);
                Node::Alternation(branches)
            }
            None => Node::Concat(Vec::new()),
        })
    }

    fn concat(&mut self, flags: &mut Flags) -> Parsed<Node> {
        let mut nodes = Vec::new();
        while let Some(c) = self.peek() {
            if c == '|' || c == ')' {
                break;
            }
            if let Some(atom) = self.atom(flags)? {
                nodes.push(self.repeat(atom)?);
            }
        }
        Ok(match nodes.pop() {
            Some(only) if nodes.is_empty() => only,
            Some(last) => {
                nodes.push(last);
                Node::Concat(nodes)
            }
            None => Node::Concat(nodes),
        })
    }

    fn repeat(&mut self, node: Node) -> Parsed<Node> {
        let Some((min, max)) = self.bounds()? else {
            return Ok(node);
        };
        let eagerness = if self.take("?") {
            Eagerness::Lazy
        } else if self.take("+") {
            Eagerness::Possessive
        } else {
            Eagerness::Greedy
        };
        if matches!(self.peek(), Some('?' | '*' | '+' | '{')) {
            return Err(Unsupported); // a repetition of a repetition
        }
        // An automaton tracks no empty rounds, and can refuse to give back only single code points.
        if node.is_nullable()
            || eagerness == Eagerness::Possessive && !matches!(node, Node::Class(_))
        {
            return Err(Unsupported);
        }
        Ok(Node::Repeat {
            node: Box::new(node),
            min,
            max,
            eagerness,
        })
    }

    fn bounds(&mut self) -> Parsed<Option<(u32, Option<u32>)>> {
        let bounds = match self.peek() {
            Some('?') => (0, Some(1)),
            Some('*') => (0, None),
            Some('+') => (1, None),
            Some('{') => {
                self.at += 1;
                let min = self.number()?;
                let max = if self.take(",") {
                    if self.peek() == Some('}') {
                        None
                    } else {
                        Some(self.number()?)
                    }
                } else {
                    Some(min)
                };
                if self.peek() != Some('}') || max.is_some_and(|max| max < min) {
                    return Err(Unsupported);
                }
                (min, max)
            }
            _ => return Ok(None),
        };
        self.at += 1;
        Ok(Some(bounds))
    }

    fn number(&mut self) -> Parsed<u32> {
        let start = self.at;
        let mut value = 0;
        while let Some(digit) = self.peek().and_then(|c| c.to_digit(10)) {
            value = value * 10 + digit;
            if value > MAX_REPEAT {
                return Err(Unsupported);
            }
            self.at += 1;
        }
        if self.at == start {
            return Err(Unsupported);
        }
        Ok(value)
    }

    /// One atom; nothing where the text only set flags.
    fn atom(&mut self, flags: &mut Flags) -> Parsed<Option<Node>> {
        let start = self.at;
        let node = match self.next() {
            Some('(') => return self.group(flags),
            Some('$') => Node::Look(self.end_of_line(*flags)),
            Some('.') => {
                let mut set = everything();
                if !flags.dot_all {
                    set.difference(&ClassUnicode::new([ClassUnicodeRange::new('\n', '\n')]));
                }
                Node::Class(set)
            }
            Some('[') => {
                self.skip_class()?;
                Node::Class(self.class_since(start, *flags)?)
            }
            Some('\\') => {
                if self.take("z") {
                    return Ok(Some(Node::Look(Look {
                        next: ClassUnicode::empty(),
                        at_end: true,
                    })));
                }
                self.skip_escape()?;
                Node::Class(self.class_since(start, *flags)?)
            }
            Some('^' | '?' | '*' | '+' | '{' | '}' | ']') | None => return Err(Unsupported),
            Some(_) => Node::Class(self.class_since(start, *flags)?),
        };
        Ok(Some(node))
    }

    fn end_of_line(&self, flags: Flags) -> Look {
        let next = if flags.multi_line {
            ClassUnicode::new([ClassUnicodeRange::new('\n', '\n')])
        } else {
            ClassUnicode::empty()
        };
        Look { next, at_end: true }
    }

    fn group(&mut self, flags: &mut Flags) -> Parsed<Option<Node>> {
        self.depth += 1;
        if self.depth > MAX_DEPTH {
            return Err(Unsupported);
        }
        let mut inner = *flags;
        let node = if self.take("?=") {
            Some(self.look(&mut inner, true)?)
        } else if self.take("?!") {
            Some(self.look(&mut inner, false)?)
        } else if self.take("?>") {
            Some(atomic(self.alternation(&mut inner)?)?)
        } else if self.take("?:") || !self.take("?") || self.flags(&mut inner)? {
            Some(self.alternation(&mut inner)?)
        } else {
            *flags = inner;
            None
        };
        self.depth -= 1;
        if node.is_some() && !self.take(")") {
            return Err(Unsupported);
        }
        Ok(node)
    }

    /// Reads `i-s:` or `i-s)`; true if a group follows.
    fn flags(&mut self, flags: &mut Flags) -> Parsed<bool> {
        let mut value = true;
        loop {
            match self.next() {
                Some('-') if value => value = false,
                Some(':') => return Ok(true),
                Some(')') => return Ok(false),
                Some(flag) => flags.set(flag, value)?,
                None => return Err(Unsupported),
            }
        }
    }

    fn look(&mut self, flags: &mut Flags, wanted: bool) -> Parsed<Node> {
        let mut look = condition(&self.alternation(flags)?)?;
        if !wanted {
            look.next.negate();
            look.at_end = !look.at_end;
        }
        Ok(Node::Look(look))
    }

    /// Moves behind the `]` that closes the class whose `[` was just read.
    fn skip_class(&mut self) -> Parsed<()> {
        let mut depth = 1;
        let mut first = self.class_start();
        while depth > 0 {
            match self.next() {
                Some('\\') => {
                    self.skip_escape()?;
                }
                Some('[') => {
                    depth += 1;
                    first = self.class_start();
                    continue;
                }
                Some(']') if self.at - 1 != first => depth -= 1,
                Some(_) => {}
                None => return Err(Unsupported),
            }
        }
        Ok(())
    }

    /// Where a `]` would be a plain character: right after `[` or `[^`.
    fn class_start(&mut self) -> usize {
        self.take("^");
        self.at
    }

    /// Moves behind the escape whose backslash was just read, if it stands for code points.
    fn skip_escape(&mut self) -> Parsed<()> {
        match self.next() {
            Some('p' | 'P') => {
                if self.peek() == Some('{') {
                    self.skip_braces()?;
                } else {
                    self.next().ok_or(Unsupported)?;
                }
            }
            Some('x') => self.skip_hex(2)?,
            Some('u') => self.skip_hex(4)?,
            Some('s' | 'S' | 'd' | 'D' | 'w' | 'W' | 'n' | 'r' | 't' | 'f' | 'v') => {}
            Some(c) if c.is_ascii_punctuation() && c != '<' && c != '>' => {}
            _ => return Err(Unsupported),
        }
        Ok(())
    }

    fn skip_hex(&mut self, digits: usize) -> Parsed<()> {
        if self.peek() == Some('{') {
            return self.skip_braces();
        }
        for _ in 0..digits {
            self.next()
                .filter(char::is_ascii_hexdigit)
                .ok_or(Unsupported)?;
        }
        Ok(())
    }

    fn skip_braces(&mut self) -> Parsed<()> {
        while let Some(c) = self.next() {
            if c == '}' {
                return Ok(());
            }
        }
        Err(Unsupported)
    }

    /// The set that the text since `start` stands for.
    fn class_since(&self, start: usize, flags: Flags) -> Parsed<ClassUnicode> {
        let text: String = self.chars[start..self.at].iter().collect();
        let hir = regex_syntax::ParserBuilder::new()
            .case_insensitive(flags.ignore_case)
            .build()
            .parse(&text)
            .map_err(|_| Unsupported)?;
        match hir.kind() {
            HirKind::Class(Class::Unicode(set)) => Ok(set.clone()),
            HirKind::Class(Class::Bytes(set)) => set.to_unicode_class().ok_or(Unsupported),
            HirKind::Literal(literal) => {
                let text = std::str::from_utf8(&literal.0).map_err(|_| Unsupported)?;
                let mut chars = text.chars();
                match (chars.next(), chars.next()) {
                    (Some(c), None) => Ok(ClassUnicode::new([ClassUnicodeRange::new(c, c)])),
                    _ => Err(Unsupported),
                }
            }
            _ => Err(Unsupported),
        }
    }
}

/// `(?>…)` over what never had anything to give back, or over a repeated class.
fn atomic(node: Node) -> Parsed<Node> {
    match node {
        Node::Class(_) | Node::Look(_) => Ok(node),
        Node::Repeat {
            node,
            min,
            max,
            eagerness: Eagerness::Greedy | Eagerness::Possessive,
        } if matches!(*node, Node::Class(_)) => Ok(Node::Repeat {
            node,
            min,
            max,
            eagerness: Eagerness::Possessive,
        }),
        _ => Err(Unsupported),
    }
}

/// The body of a look-ahead as a condition on one code point or the end.
fn condition(node: &Node) -> Parsed<Look> {
    match node {
        Node::Class(set) => Ok(Look {
            next: set.clone(),
            at_end: false,
        }),
        Node::Look(look) => Ok(look.clone()),
        Node::Alternation(branches) => {
            let mut whole = Look {
                next: ClassUnicode::empty(),
                at_end: false,
            };
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
