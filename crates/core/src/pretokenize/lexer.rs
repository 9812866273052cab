//! The lexemes of a regular expression, as fancy-regex, Oniguruma and Python's `regex` share them.
//!
//! The translator (`dialect.rs`) and the check of portability use this lexer; fancy-regex parses the patterns that run. Each of
//! the two decides what a lexeme means and which lexemes it accepts.

use std::ops::Range;

/// A lexeme that is not a quantifier. Inside of a bracketed class: `Class`, `ClassEnd`, `Escape` or `Char`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Lexeme {
    /// The beginning of a group.
    Group(Group),
    /// `)`
    Close,
    /// `|`
    Bar,
    /// `[` or `[^`
    Class,
    /// The `]` that closes a class.
    ClassEnd,
    /// A backslash and what belongs to it. The character is the first after the backslash; `None` at the
    /// end of the pattern.
    Escape(Option<char>),
    /// A character: itself, or `^`, `$`, `.`, or a quantifier's where none can be. In a class, it is `]`
    /// only if that is the first of the class.
    Char(char),
}

/// The beginning of a group.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Group {
    /// `(`
    Capture,
    /// `(?:`
    Plain,
    /// `(?>`
    Atomic,
    /// `(?=`, or `(?!` if negated.
    LookAhead { negated: bool },
    /// `(?<=`, or `(?<!` if negated.
    LookBehind { negated: bool },
    /// `(?i-s:`, or `(?i-s)`, which has no body and ends here.
    Flags { flags: String, has_body: bool },
    /// `(?`, followed by anything else.
    Other,
}

/// How often the previous atom repeats.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Quantifier {
    /// The text between the braces: digits and commas; `None` for `?`, `*` and `+`.
    pub count: Option<String>,
    /// The first character: `?`, `*`, `+` or `{`.
    pub symbol: char,
    /// A `?` or `+` after it.
    pub suffix: Option<char>,
}

impl Quantifier {
    /// The least and the greatest count; `None` if the braces do not hold one or two numbers.
    pub fn bounds(&self) -> Option<(u32, Option<u32>)> {
        let number = |text: &str| text.parse().ok();
        match (self.symbol, self.count.as_deref().unwrap_or_default()) {
            ('?', _) => Some((0, Some(1))),
            ('*', _) => Some((0, None)),
            ('+', _) => Some((1, None)),
            (_, count) => match count.split_once(',') {
                None => number(count).map(|min| (min, Some(min))),
                Some((min, "")) => Some((number(min)?, None)),
                Some((min, max)) => Some((number(min)?, Some(number(max)?))),
            },
        }
    }
}

/// Whether a pattern is a single look-around, so that every match is empty.
pub fn is_look_around(pattern: &str) -> bool {
    let mut lexer = Lexer::new(pattern);
    let is_look = |lexeme| {
        let looks =
            |group: &Group| matches!(group, Group::LookAhead { .. } | Group::LookBehind { .. });
        matches!(lexeme, Some(Lexeme::Group(group)) if looks(&group))
    };
    let mut depth = usize::from(is_look(lexer.next()));
    while depth > 0 {
        match lexer.next() {
            Some(Lexeme::Group(Group::Flags {
                has_body: false, ..
            })) => {}
            Some(Lexeme::Group(_)) => depth += 1,
            Some(Lexeme::Close) => depth -= 1,
            Some(_) => {}
            None => return false,
        }
        if depth == 0 {
            return lexer.peek().is_none();
        }
    }
    false
}

/// Reads a pattern from left to right.
pub struct Lexer {
    chars: Vec<char>,
    /// The next character.
    pub at: usize,
    /// The number of open classes.
    open_classes: usize,
    /// The first character of the innermost class that was opened last: a `]` there is a character.
    class_start: usize,
}

impl Lexer {
    /// Starts at the beginning of a pattern.
    pub fn new(pattern: &str) -> Self {
        Self {
            chars: pattern.chars().collect(),
            at: 0,
            open_classes: 0,
            class_start: usize::MAX,
        }
    }

    /// The next character.
    pub fn peek(&self) -> Option<char> {
        self.chars.get(self.at).copied()
    }

    /// Whether the next character is inside of a class.
    pub fn in_class(&self) -> bool {
        self.open_classes > 0
    }

    /// Whether the rest of the pattern starts with a text.
    pub fn starts_with(&self, text: &str) -> bool {
        let rest = self.chars[self.at..].iter();
        rest.copied().take(text.len()).eq(text.chars())
    }

    /// The characters of a range, as far as the pattern has them.
    pub fn text(&self, range: Range<usize>) -> String {
        let end = range.end.min(self.chars.len());
        self.chars[range.start..end].iter().collect()
    }

    /// The characters from `start` up to the next one.
    pub fn since(&self, start: usize) -> String {
        self.text(start..self.at)
    }

    /// Consumes a quantifier, if the next lexeme is one.
    pub fn quantifier(&mut self) -> Option<Quantifier> {
        let symbol = self.peek().filter(|_| !self.in_class())?;
        let count = match symbol {
            '?' | '*' | '+' => None,
            '{' => {
                let rest = &self.chars[self.at + 1..];
                let length = rest.iter().position(|&c| c == '}')?;
                let count = &rest[..length];
                if count.is_empty() || !count.iter().all(|c| c.is_ascii_digit() || *c == ',') {
                    return None;
                }
                Some(count.iter().collect::<String>())
            }
            _ => return None,
        };
        self.at += count.as_ref().map_or(1, |count| count.len() + 2);
        let suffix = self.peek().filter(|c| matches!(c, '?' | '+'));
        self.at += usize::from(suffix.is_some());
        Some(Quantifier {
            count,
            symbol,
            suffix,
        })
    }

    /// Consumes a lexeme; `None` at the end.
    pub fn next(&mut self) -> Option<Lexeme> {
        let (c, start) = (self.peek()?, self.at);
        self.at += 1;
        Some(match c {
            '[' => {
                self.open_classes += 1;
                self.take("^");
                self.class_start = self.at;
                Lexeme::Class
            }
            '\\' => Lexeme::Escape(self.escape()),
            ']' if self.in_class() && start != self.class_start => {
                self.open_classes -= 1;
                Lexeme::ClassEnd
            }
            _ if self.in_class() => Lexeme::Char(c),
            '(' => Lexeme::Group(self.group()),
            ')' => Lexeme::Close,
            '|' => Lexeme::Bar,
            _ => Lexeme::Char(c),
        })
    }

    /// Consumes a text if the pattern continues with it.
    fn take(&mut self, text: &str) -> bool {
        let found = self.starts_with(text);
        self.at += usize::from(found) * text.len();
        found
    }

    /// The rest of a group's beginning.
    fn group(&mut self) -> Group {
        if !self.take("?") {
            return Group::Capture;
        }
        for (text, group) in [
            (":", Group::Plain),
            (">", Group::Atomic),
            ("=", Group::LookAhead { negated: false }),
            ("!", Group::LookAhead { negated: true }),
            ("<=", Group::LookBehind { negated: false }),
            ("<!", Group::LookBehind { negated: true }),
        ] {
            if self.take(text) {
                return group;
            }
        }
        let rest = &self.chars[self.at..];
        let is_flag = |c: &&char| c.is_ascii_lowercase() || **c == '-';
        let flags: String = rest.iter().take_while(is_flag).collect();
        match rest.get(flags.len()) {
            Some(&end @ (':' | ')')) => {
                self.at += flags.len() + 1;
                Group::Flags {
                    flags,
                    has_body: end == ':',
                }
            }
            _ => Group::Other,
        }
    }

    /// The rest of an escape: `p` and a letter, `x` and two digits, `u` and four, any of them and braces, or
    /// one character. Returns the first character.
    fn escape(&mut self) -> Option<char> {
        let letter = self.peek()?;
        let after = match letter {
            'p' | 'P' | 'x' | 'u' if self.chars.get(self.at + 1) == Some(&'{') => {
                let end = self.chars[self.at..].iter().position(|&c| c == '}');
                end.unwrap_or(self.chars.len())
            }
            'p' | 'P' => 1,
            'x' => 2,
            'u' => 4,
            _ => 0,
        };
        self.at = (self.at + 1 + after).min(self.chars.len());
        Some(letter)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lexemes(pattern: &str) -> Vec<Lexeme> {
        let mut lexer = Lexer::new(pattern);
        std::iter::from_fn(|| lexer.next()).collect()
    }

    #[test]
    fn a_group_begins_with_all_characters_that_say_its_kind() {
        let (a, negated) = (Lexeme::Char('a'), true);
        let flags = |text: &str, has_body| Group::Flags {
            flags: text.to_owned(),
            has_body,
        };
        for (begin, group) in [
            ("(", Group::Capture),
            ("(?:", Group::Plain),
            ("(?>", Group::Atomic),
            ("(?=", Group::LookAhead { negated: false }),
            ("(?!", Group::LookAhead { negated }),
            ("(?<=", Group::LookBehind { negated: false }),
            ("(?<!", Group::LookBehind { negated }),
            ("(?i-s:", flags("i-s", true)),
            ("(?m)", flags("m", false)),
        ] {
            let found = lexemes(&format!("{begin}a)"));
            assert_eq!(found, [Lexeme::Group(group), a.clone(), Lexeme::Close]);
        }
    }

    #[test]
    fn a_bar_separates_branches_outside_of_classes_alone() {
        let (bar, char) = (Lexeme::Bar, Lexeme::Char);
        assert_eq!(lexemes("a|b"), [char('a'), bar, char('b')]);
        let class = [Lexeme::Class, char('|'), char('('), Lexeme::ClassEnd];
        assert_eq!(lexemes("[|(]"), class);
    }
}
