//! Patterns between our dialect (fancy-regex) and Oniguruma's, which Hugging Face files are written in.
//!
//! Where the two read the same text differently (Oniguruma's documentation: `doc/RE`):
//! `$` and `^` are the text's ends for us and the lines' for Oniguruma; `X{n,m}+` takes possessively
//! for us and repeats `X{n,m}` for Oniguruma; dot-matches-newline is `(?s)` for us and `(?m)` for
//! Oniguruma; an option set in the middle, `a(?i)b|c`, ends at the branch for us and swallows the next
//! branches for Oniguruma; `\w` holds other code points.

use crate::error::{Error, Result};

/// The code points of our `\w` (Unicode TR18, annex C) in classes that both dialects read alike.
const WORD: &str = r"\p{Alphabetic}\p{M}\p{Nd}\p{Pc}\x{200C}\x{200D}";

/// A pattern of ours in Oniguruma's words.
///
/// An error names what cannot be carried over.
pub fn to_oniguruma(pattern: &str) -> Result<String> {
    Translation::new(pattern).run(Direction::ToOniguruma)
}

/// A pattern written for Oniguruma in our words.
///
/// An error names what cannot be carried over.
pub fn from_oniguruma(pattern: &str) -> Result<String> {
    Translation::new(pattern).run(Direction::FromOniguruma)
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Direction {
    ToOniguruma,
    FromOniguruma,
}

struct Translation {
    chars: Vec<char>,
    at: usize,
    out: String,
    /// Where the groups that are open began in `out`.
    open: Vec<usize>,
    /// Where the atom that a quantifier would repeat begins in `out`.
    atom: usize,
}

impl Translation {
    fn new(pattern: &str) -> Self {
        Self {
            chars: pattern.chars().collect(),
            at: 0,
            out: String::new(),
            open: Vec::new(),
            atom: 0,
        }
    }

    fn run(mut self, direction: Direction) -> Result<String> {
        while let Some(&c) = self.chars.get(self.at) {
            if matches!(c, '?' | '*' | '+') {
                self.copy(1);
                continue;
            }
            if c == '{' && self.counted(direction) {
                continue;
            }
            if c == ')' {
                self.atom = self.open.pop().unwrap_or(0);
                self.copy(1);
                continue;
            }
            self.atom = self.out.len();
            match c {
                '(' => self.group(direction)?,
                '[' => self.class(direction)?,
                '\\' => self.escape(direction, false),
                '$' | '^' => self.anchor(c, direction),
                _ => self.copy(1),
            }
        }
        Ok(self.out)
    }

    fn copy(&mut self, count: usize) {
        let end = self.at.saturating_add(count).min(self.chars.len());
        self.out.extend(&self.chars[self.at..end]);
        self.at = end;
    }

    fn starts_with(&self, text: &str) -> bool {
        text.chars()
            .enumerate()
            .all(|(i, c)| self.chars.get(self.at + i) == Some(&c))
    }

    fn refuse<T>(&self, what: &str) -> Result<T> {
        Err(Error::Pattern {
            position: self.at,
            message: format!("{what} means something else to the regex engine of Hugging Face tokenizers; write it another way"),
        })
    }

    /// `{n}`, `{n,}`, `{n,m}` and what follows; false if the brace is a plain character.
    fn counted(&mut self, direction: Direction) -> bool {
        let rest = &self.chars[self.at + 1..];
        let Some(length) = rest.iter().position(|&c| c == '}') else {
            return false;
        };
        let bounds: String = rest[..length].iter().collect();
        if bounds.is_empty() || !bounds.chars().all(|c| c.is_ascii_digit() || c == ',') {
            return false;
        }
        self.at += length + 2;
        let after = self.chars.get(self.at).copied();
        let wrap = match (after, direction) {
            (Some('+'), Direction::ToOniguruma) => "(?>",
            (Some('+'), Direction::FromOniguruma) => "(?:",
            _ => "",
        };
        self.out.insert_str(self.atom, wrap);
        self.out.push_str(&if bounds.starts_with(',') {
            format!("{{0{bounds}}}")
        } else {
            format!("{{{bounds}}}")
        });
        if !wrap.is_empty() {
            self.out.push(')');
        }
        match (after, direction) {
            (Some('+'), Direction::ToOniguruma) => self.at += 1,
            // A fixed count has no lazy form; Oniguruma would make `X{2}?` optional.
            (Some('?'), Direction::ToOniguruma) if !bounds.contains(',') => self.at += 1,
            (Some('?'), Direction::FromOniguruma) if !bounds.contains(',') => {
                self.out.insert_str(self.atom, "(?:");
                self.out.push(')');
            }
            _ => {}
        }
        true
    }

    fn anchor(&mut self, anchor: char, direction: Direction) {
        self.at += 1;
        self.out.push_str(match (anchor, direction) {
            ('$', Direction::ToOniguruma) => r"\z",
            ('$', Direction::FromOniguruma) => r"(?=\n|$)",
            (_, Direction::ToOniguruma) => r"\A",
            (_, Direction::FromOniguruma) => "(?m:^)",
        });
    }

    fn group(&mut self, direction: Direction) -> Result<()> {
        let first = self.at == 0;
        self.open.push(self.out.len());
        if !self.starts_with("(?") {
            self.copy(1);
            return Ok(());
        }
        let rest = &self.chars[self.at + 2..];
        let flags: String = rest
            .iter()
            .take_while(|c| c.is_ascii_lowercase() || **c == '-')
            .collect();
        let end = rest.get(flags.len()).copied();
        if flags.is_empty() || !matches!(end, Some(':' | ')')) {
            self.copy(2);
            return Ok(());
        }
        if end == Some(')') && !first {
            return self.refuse("an option set in the middle of a pattern");
        }
        let known = match direction {
            Direction::ToOniguruma => flags == "i",
            Direction::FromOniguruma => flags.chars().all(|c| "im-".contains(c)),
        };
        if !known {
            return self.refuse(&format!("the option (?{flags})"));
        }
        self.at += 2 + flags.len();
        self.out.push_str("(?");
        self.out.push_str(&flags.replace('m', "s"));
        if end == Some(')') {
            self.open.pop();
        }
        self.copy(1);
        Ok(())
    }

    /// A bracketed class, nested ones included.
    fn class(&mut self, direction: Direction) -> Result<()> {
        let mut depth = 0;
        loop {
            match self.chars.get(self.at) {
                Some('[') => {
                    depth += 1;
                    self.copy(1);
                    if self.starts_with("^") {
                        self.copy(1);
                    }
                    if self.starts_with("]") {
                        self.out.push('\\'); // a plain character here, to every engine
                        self.copy(1);
                    }
                }
                Some(']') => {
                    depth -= 1;
                    self.copy(1);
                    if depth == 0 {
                        return Ok(());
                    }
                }
                Some('\\') => self.escape(direction, true),
                Some('-' | '~') if self.starts_with("--") || self.starts_with("~~") => {
                    return self.refuse("a set difference in a class");
                }
                Some(_) => self.copy(1),
                None => return Ok(()), // the compiler will say what is wrong
            }
        }
    }

    fn escape(&mut self, direction: Direction, in_class: bool) {
        let word = match self.chars.get(self.at + 1) {
            Some('w') if direction == Direction::ToOniguruma => format!("[{WORD}]"),
            Some('W') if direction == Direction::ToOniguruma => format!("[^{WORD}]"),
            Some('Z') if direction == Direction::FromOniguruma && !in_class => {
                r"(?=\n?\z)".to_owned()
            }
            Some(kind @ ('p' | 'P' | 'x' | 'u')) => {
                let braced = self.chars.get(self.at + 2) == Some(&'{');
                let length = match kind {
                    _ if braced => {
                        let brace = self.chars[self.at..].iter().position(|&c| c == '}');
                        brace.map_or(usize::MAX, |last| last + 1)
                    }
                    'x' => 4,
                    'u' => 6,
                    _ => 3,
                };
                return self.copy(length);
            }
            _ => return self.copy(2),
        };
        self.at += 2;
        self.out.push_str(&word);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_both_read_alike_is_carried_over_as_it_is() {
        let gpt2 = r"'(?:[sdmt]|ll|ve|re)| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+";
        for pattern in [
            gpt2,
            r"(?i)a|b",
            r"[^\r\n\p{L}\p{N}]?+\p{L}++",
            r"\{a{1,3}?",
            r"a{",
        ] {
            assert_eq!(to_oniguruma(pattern).unwrap(), pattern);
            assert_eq!(from_oniguruma(pattern).unwrap(), pattern);
        }
    }

    #[test]
    fn what_they_read_differently_is_said_in_other_words() {
        let to = |pattern| to_oniguruma(pattern).unwrap();
        assert_eq!(to(r"\p{N}{1,3}+|x"), r"(?>\p{N}{1,3})|x");
        assert_eq!(to(r"(?:ab|[c$]){2,}+"), r"(?>(?:ab|[c$]){2,})");
        assert_eq!(to(r"\x61{1,2}+\pL{2}+"), r"(?>\x61{1,2})(?>\pL{2})");
        assert_eq!(to(r"\s++$|^a"), r"\s++\z|\Aa");
        assert_eq!(to(r"a{2}?b"), r"a{2}b");
        assert_eq!(to(r"[]a]"), r"[\]a]");
        assert_eq!(to(r"\$[$]"), r"\$[$]");
        let from = |pattern| from_oniguruma(pattern).unwrap();
        assert_eq!(from(r"\p{N}{1,3}+"), r"(?:\p{N}{1,3})+");
        assert_eq!(from(r"a$|^b\Z"), r"a(?=\n|$)|(?m:^)b(?=\n?\z)");
        assert_eq!(from(r"(?m:.)a{,2}"), r"(?s:.)a{0,2}");
        assert_eq!(from(r"a{2}?"), r"(?:a{2})?");
    }

    #[test]
    fn what_cannot_be_said_is_refused_by_name() {
        for pattern in [r"a(?i)b|c", r"(?s:.)", r"(?m)^a", r"[a-z--b]", r"(?x) a"] {
            let message = to_oniguruma(pattern).unwrap_err().to_string();
            assert!(message.contains("Hugging Face"), "{message}");
        }
    }
}
