//! Patterns from and to other regex engines: translated to and from Oniguruma's dialect, in which Hugging
//! Face files are written.
//!
//! Our dialect is fancy-regex's. The two read these texts differently (Oniguruma's documentation:
//! `doc/RE`):
//!
//! | text | we | Oniguruma |
//! |---|---|---|
//! | `$`, `^` | the text's ends | the lines' ends |
//! | `X{n,m}+` | possessive | a repetition of `X{n,m}` |
//! | dot matches newline | `(?s)` | `(?m)` |
//! | `a(?i)b\|c` | the option ends at the branch | it includes the next branches |
//! | `\w`, `\b` | Unicode TR18, annex C | without joiners, with `²³¹¼½¾` |
//!
//! The translation rewrites lexemes and copies the rest of the text. The tree of `fancy-regex` has no positions in the text
//! and no printer, and the translation needs both.

use super::lexer::{Group, Lexeme, Lexer, Quantifier};
use crate::error::{Error, Result};

/// The code points of our `\w` in classes that both dialects read alike.
const WORD: &str = r"\p{Alphabetic}\p{M}\p{Nd}\p{Pc}\x{200C}\x{200D}";
/// The code points of Oniguruma's `\w` in a class.
const ONIGURUMA_WORD: &str = r"\p{Alphabetic}\p{M}\p{Nd}\p{Pc}";
/// The code points that it adds outside of classes and for `\b`: `²³¹¼½¾`.
const ONIGURUMA_NUMBERS: &str = r"\x{B2}\x{B3}\x{B9}\x{BC}-\x{BE}";

/// `\w`, `\W`, `\b` or `\B` of a dialect in classes that both read alike; `None` for another escape.
fn word_escape(letter: char, oniguruma: bool, in_class: bool) -> Option<String> {
    let word = match oniguruma {
        true if in_class => ONIGURUMA_WORD.to_owned(),
        true => format!("{ONIGURUMA_WORD}{ONIGURUMA_NUMBERS}"),
        false => WORD.to_owned(),
    };
    Some(match letter {
        'w' if in_class => word,
        'w' => format!("[{word}]"),
        'W' => format!("[^{word}]"),
        'b' if !in_class => format!("(?:(?<=[{word}])(?![{word}])|(?<![{word}])(?=[{word}]))"),
        'B' if !in_class => format!("(?:(?<=[{word}])(?=[{word}])|(?<![{word}])(?![{word}]))"),
        _ => return None,
    })
}

/// Translates one of our patterns to Oniguruma's dialect.
///
/// An error names what has no translation.
pub fn to_oniguruma(pattern: &str) -> Result<String> {
    Translator::new(pattern, true).translate()
}

/// Translates a pattern from Oniguruma's dialect to ours.
///
/// An error names what has no translation.
pub fn from_oniguruma(pattern: &str) -> Result<String> {
    Translator::new(pattern, false).translate()
}

struct Translator {
    lexer: Lexer,
    to_oniguruma: bool,
    out: String,
    /// Where the open groups begin in `out`.
    open: Vec<usize>,
    /// Where the atom of the next quantifier begins in `out`.
    atom: usize,
}

impl Translator {
    fn new(pattern: &str, to_oniguruma: bool) -> Self {
        Self {
            lexer: Lexer::new(pattern),
            to_oniguruma,
            out: String::new(),
            open: Vec::new(),
            atom: 0,
        }
    }

    fn translate(mut self) -> Result<String> {
        loop {
            let (start, in_class) = (self.lexer.at, self.lexer.in_class());
            if self.to_oniguruma && self.own_words(in_class) {
                continue;
            }
            if let Some(quantifier) = self.lexer.quantifier() {
                self.quantifier(&quantifier, start);
                continue;
            }
            if in_class && ["--", "~~"].iter().any(|it| self.lexer.starts_with(it)) {
                return self.refuse("a set difference in a class", start);
            }
            let Some(lexeme) = self.lexer.next() else {
                return Ok(self.out);
            };
            if lexeme == Lexeme::Close {
                self.atom = self.open.pop().unwrap_or(0);
            } else if !in_class {
                self.atom = self.out.len();
            }
            match lexeme {
                Lexeme::Group(group) => self.group(&group, start)?,
                Lexeme::Escape(letter) => self.escape(letter, start, in_class),
                Lexeme::Char(']') if in_class => self.out.push_str(r"\]"), // in every dialect
                Lexeme::Char(_) if in_class => self.copy_since(start),
                Lexeme::Char('$') if self.to_oniguruma => self.out.push_str(r"\z"),
                Lexeme::Char('^') if self.to_oniguruma => self.out.push_str(r"\A"),
                Lexeme::Char('$') => self.out.push_str(r"(?=\n|$)"),
                Lexeme::Char('^') => self.out.push_str("(?m:^)"),
                _ => self.copy_since(start),
            }
        }
    }

    /// Writes `\w`, `\b`, ... for what [`from_oniguruma`] made of them.
    fn own_words(&mut self, in_class: bool) -> bool {
        for letter in ['b', 'B', 'w', 'W'] {
            let words = word_escape(letter, true, in_class);
            let Some(words) = words.filter(|words| self.lexer.starts_with(words)) else {
                continue;
            };
            self.atom = if in_class { self.atom } else { self.out.len() };
            self.out.extend(['\\', letter]);
            self.lexer.at += words.len();
            return true;
        }
        false
    }

    fn copy_since(&mut self, start: usize) {
        self.out.push_str(&self.lexer.since(start));
    }

    fn refuse<T>(&self, what: &str, position: usize) -> Result<T> {
        Err(Error::Pattern {
            position,
            message: format!("{what} means something else to the regex engine of Hugging Face tokenizers; write it another way"),
        })
    }

    fn quantifier(&mut self, quantifier: &Quantifier, start: usize) {
        let Some(count) = &quantifier.count else {
            return self.copy_since(start);
        };
        // A fixed count has no lazy form; Oniguruma reads `X{2}?` as `(?:X{2})?`.
        let is_fixed = !count.contains(',');
        let (wrap, suffix) = match (quantifier.suffix, self.to_oniguruma) {
            (Some('+'), true) => ("(?>", ""),
            (Some('+'), false) => ("(?:", "+"),
            (Some(_), true) if is_fixed => ("", ""),
            (Some(_), false) if is_fixed => ("(?:", "?"),
            (Some(_), _) => ("", "?"),
            (None, _) => ("", ""),
        };
        self.out.insert_str(self.atom, wrap);
        let least = if count.starts_with(',') { "0" } else { "" };
        let close = if wrap.is_empty() { "" } else { ")" };
        self.out
            .push_str(&format!("{{{least}{count}}}{close}{suffix}"));
    }

    fn group(&mut self, group: &Group, start: usize) -> Result<()> {
        let Group::Flags { flags, has_body } = group else {
            self.open.push(self.out.len());
            self.copy_since(start);
            return Ok(());
        };
        if *has_body {
            self.open.push(self.out.len());
        }
        if flags.is_empty() {
            self.copy_since(start);
            return Ok(());
        }
        if !has_body && start > 0 {
            return self.refuse("an option set in the middle of a pattern", start);
        }
        let is_known = if self.to_oniguruma {
            flags == "i"
        } else {
            flags.chars().all(|c| "im-".contains(c))
        };
        if !is_known {
            return self.refuse(&format!("the option (?{flags})"), start);
        }
        self.out
            .push_str(&self.lexer.since(start).replace('m', "s"));
        Ok(())
    }

    fn escape(&mut self, letter: Option<char>, start: usize, in_class: bool) {
        let of_own_dialect = |letter| word_escape(letter, !self.to_oniguruma, in_class);
        if let Some(words) = letter.and_then(of_own_dialect) {
            return self.out.push_str(&words);
        }
        match letter {
            Some('Z') if !self.to_oniguruma && !in_class => self.out.push_str(r"(?=\n?\z)"),
            _ => self.copy_since(start),
        }
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
            r"a{}+|a{b}+",
            r"[(?s:)|]+",
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
        assert_eq!(to(r"a]\Z"), r"a]\Z");
        assert_eq!(to(r"\w"), format!("[{WORD}]"));
        assert_eq!(to(r"\W"), format!("[^{WORD}]"));
        let from = |pattern| from_oniguruma(pattern).unwrap();
        assert_eq!(from(r"\p{N}{1,3}+"), r"(?:\p{N}{1,3})+");
        assert_eq!(from(r"a$|^b\Z"), r"a(?=\n|$)|(?m:^)b(?=\n?\z)");
        assert_eq!(from(r"(?m:.)a{,2}"), r"(?s:.)a{0,2}");
        assert_eq!(from(r"a{2}?"), r"(?:a{2})?");
        assert_eq!(from(r"[\Z]a]"), r"[\Z]a]");
        for pattern in [r"\w+\W[\w-]", r"\b\d{1,3}(?=(?:\d{3})*\b)\B"] {
            let read = from(pattern);
            assert_eq!(to_oniguruma(&read).unwrap(), pattern);
        }
    }

    #[test]
    fn what_cannot_be_said_is_refused_by_name() {
        for pattern in [r"a(?i)b|c", r"(?s:.)", r"(?m)^a", r"[a-z--b]", r"(?x) a"] {
            let message = to_oniguruma(pattern).unwrap_err().to_string();
            assert!(message.contains("Hugging Face"), "{message}");
        }
    }
}
