//! Which patterns mean the same to two regex engines.
//!
//! Engines agree on far less than both accept: `\w` and `[[:alpha:]]` contain other characters, `(?i:ss)`
//! finds `ß` in one engine only, an empty match cuts the text in Hugging Face `tokenizers` and is skipped
//! here, and more. So a pattern passes only if everything in it is known to be read alike, or to be
//! translated by [`super::dialect`]. The package's tests compare the engines on patterns that pass.
//!
//! It reads the lexemes of the text, not the tree of `fancy-regex`: the tree has lost how a text was spelled, which is what
//! engines disagree on. Nor has it positions for messages.

use super::lexer::{is_look_around, Group, Lexeme, Lexer, Quantifier};

/// The deepest nesting of groups.
const MAX_DEPTH: usize = 50;
/// General categories: the first letter, then each letter that may follow it.
const CATEGORIES: [&str; 7] = [
    "Lultmo", "Mnce", "Ndlo", "Pcdsefio", "Smcko", "Zslp", "Ccfo",
];
/// Other properties: the scripts that split patterns use.
const PROPERTIES: &str =
    "Alphabetic Han Hiragana Katakana Hangul Latin Greek Cyrillic Arabic Hebrew Thai \
    Lao Khmer Myanmar Devanagari";

/// The engine for which a pattern is written, and the one that is to read it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Engines {
    /// Ours, and Oniguruma.
    ToOniguruma,
    /// Oniguruma, and ours.
    FromOniguruma,
    /// Ours, and Python's `regex` module in its version 0 behaviour; or the reverse.
    Python,
}

/// Says why a pattern cannot be carried over to the other engine, in words that follow the pattern in a
/// sentence; `None` if it can. The pattern must be one that its own engine accepts.
pub fn objection(pattern: &str, engines: Engines) -> Option<String> {
    let (reader, empty) = match engines {
        Engines::Python => (
            "Python's regex module",
            "can match the empty text, which not every engine skips",
        ),
        _ => (
            "the other regex engine",
            "can match the empty text, where Hugging Face tokenizers cut and we do not",
        ),
    };
    let checked = check(pattern, engines == Engines::FromOniguruma).and_then(|is_nullable| {
        if !is_nullable && engines == Engines::Python {
            check_python(pattern)?;
        }
        Ok(is_nullable)
    });
    match checked {
        // A look-around cuts where it holds, here too.
        Ok(_) if engines != Engines::Python && is_look_around(pattern) => None,
        Ok(is_nullable) => is_nullable.then(|| empty.to_owned()),
        Err(what) => Some(format!(
            "holds {what}, which may mean something else to {reader}"
        )),
    }
}

/// Whether something can match the empty text; an error names what is not read alike.
type Nullable = Result<bool, String>;

fn check(pattern: &str, oniguruma: bool) -> Nullable {
    let mut checker = Checker {
        lexer: Lexer::new(pattern),
        oniguruma,
        ignores_case: false,
        in_look_behind: false,
        letter: None,
    };
    let is_nullable = checker.alternation(0)?;
    match checker.lexer.peek() {
        None => Ok(is_nullable),
        Some(_) => Err(")".to_owned()),
    }
}

struct Checker {
    lexer: Lexer,
    /// Whether the pattern is written for Oniguruma.
    oniguruma: bool,
    ignores_case: bool,
    in_look_behind: bool,
    /// The letter before the next one, in the same group or in another.
    letter: Option<char>,
}

impl Checker {
    fn alternation(&mut self, depth: usize) -> Nullable {
        if depth > MAX_DEPTH {
            return Err("groups nested too deeply".to_owned());
        }
        let mut is_nullable = self.branch(depth)?;
        while self.lexer.peek() == Some('|') {
            self.lexer.next();
            self.letter = None;
            is_nullable |= self.branch(depth)?;
        }
        Ok(is_nullable)
    }

    fn branch(&mut self, depth: usize) -> Nullable {
        let (first, mut is_nullable) = (self.lexer.at, true);
        while let Some(c) = self.lexer.peek().filter(|c| !matches!(c, '|' | ')')) {
            let start = self.lexer.at;
            // After a line end, Oniguruma finds `^` only if something follows. At the beginning of a match
            // that is so: a match is never empty.
            if c == '^' && self.oniguruma && (depth > 0 || start > first) {
                return Err("^ inside".to_owned());
            }
            let atom = self.atom(depth)?;
            is_nullable &= self.repeated(c, start, atom)?;
        }
        Ok(is_nullable)
    }

    /// Checks the quantifier of the atom that began at `start` with `first`, if it has one.
    fn repeated(&mut self, first: char, start: usize, is_nullable: bool) -> Nullable {
        let atom = self.lexer.since(start);
        let Some(quantifier) = self.quantifier() else {
            return Ok(is_nullable);
        };
        let count = quantifier.count.as_deref();
        let is_fixed = count.is_some_and(|count| !count.contains(','));
        // Without a least count, as in `{,2}`, it is 0.
        let can_be_none = quantifier.bounds().is_none_or(|(least, _)| least == 0);
        // Oniguruma reads `X{3,2}` as `X{2,3}`, ours as `X{3}`.
        let is_reversed = quantifier
            .bounds()
            .is_some_and(|(least, most)| most.is_some_and(|most| most < least));
        let problem = if self.in_look_behind {
            "a quantifier in a look-behind"
        } else if self.quantifier().is_some() {
            "two quantifiers in a row"
        } else if is_reversed {
            "a quantifier whose second count is less than the first"
        } else if is_nullable {
            "a quantifier of something that can match the empty text"
        } else if self.ignores_case && !"([\\'".contains(first) {
            "a quantifier of a letter whose case is ignored"
        } else if atom.starts_with("\\x") && !atom.starts_with("\\x{") {
            "a quantifier of \\x without braces"
        } else if atom.starts_with("\\u") {
            "a quantifier of \\u without braces"
        } else {
            // Oniguruma reads `X{2}?` as `(?:X{2})?`.
            let is_optional = self.oniguruma && is_fixed && quantifier.suffix == Some('?');
            return Ok(can_be_none || is_optional);
        };
        Err(problem.to_owned())
    }

    /// Consumes a quantifier whose braces hold one or two numbers. All engines read other braces alike.
    fn quantifier(&mut self) -> Option<Quantifier> {
        let start = self.lexer.at;
        let quantifier = self.lexer.quantifier()?;
        if let Some(count) = &quantifier.count {
            if count == "," || count.matches(',').count() > 1 {
                self.lexer.at = start;
                return None;
            }
        }
        Some(quantifier)
    }

    fn atom(&mut self, depth: usize) -> Nullable {
        let start = self.lexer.at;
        // Ours reads a count with nothing before it as text.
        if let Some(quantifier) = self.quantifier() {
            return Err(format!("{} with nothing before it", quantifier.symbol));
        }
        let lexeme = self.lexer.next();
        if !matches!(lexeme, Some(Lexeme::Group(_) | Lexeme::Char(_))) {
            self.letter = None;
        }
        match lexeme {
            Some(Lexeme::Group(group)) => self.group(&group, start, depth),
            Some(Lexeme::Class) => {
                let is_negated = self.lexer.since(start).ends_with('^');
                self.class(is_negated).map(|()| false)
            }
            Some(Lexeme::Escape(letter)) => self.escape(letter, start, false),
            Some(Lexeme::Char(c @ ('^' | '$'))) if self.in_look_behind => {
                Err(format!("{c} in a look-behind"))
            }
            Some(Lexeme::Char('^' | '$')) => Ok(true),
            Some(Lexeme::Char(c)) => self.check_case(c).map(|()| false),
            Some(Lexeme::Bar | Lexeme::Close | Lexeme::ClassEnd) | None => Ok(true),
        }
    }

    /// Oniguruma ignores the case of `ss`, `fi`, `st`, ... by finding `ß`, `ﬁ`, `ﬆ`, ... too, also where a
    /// group begins or ends between the letters.
    fn check_case(&mut self, c: char) -> Result<(), String> {
        let letter = self.letter.replace(c);
        if !self.ignores_case {
            return Ok(());
        }
        let pair: String = letter.into_iter().chain([c]).collect();
        let pair = pair.to_lowercase();
        if !c.is_ascii() {
            Err(format!("'{c}' with its case ignored"))
        } else if ["ss", "st", "ff", "fi", "fl"].contains(&pair.as_str()) {
            Err(format!("'{pair}' with its case ignored"))
        } else {
            Ok(())
        }
    }

    fn group(&mut self, group: &Group, start: usize, depth: usize) -> Nullable {
        let (outside, in_look_behind) = (self.ignores_case, self.in_look_behind);
        let looks_around = matches!(group, Group::LookAhead { .. } | Group::LookBehind { .. });
        if in_look_behind && *group != Group::Plain {
            return Err("a group in a look-behind".to_owned());
        }
        if let Group::Flags { flags, has_body } = group {
            let is_known = |c| c == 'i' || c == 'm' && self.oniguruma;
            if flags.is_empty() || !flags.chars().all(is_known) || !has_body && start > 0 {
                return Err(self.lexer.text(start..start + 4) + "...");
            }
            self.ignores_case |= flags.contains('i');
            if !has_body {
                return Ok(true);
            }
        } else if *group == Group::Other {
            return Err(self.lexer.text(start..start + 4) + "...");
        }
        self.in_look_behind |= matches!(group, Group::LookBehind { .. });
        let is_nullable = self.alternation(depth + 1)?;
        if self.lexer.next() != Some(Lexeme::Close) {
            return Err("(".to_owned());
        }
        (self.ignores_case, self.in_look_behind) = (outside, in_look_behind);
        Ok(is_nullable || looks_around)
    }

    fn escape(&self, letter: Option<char>, start: usize, in_class: bool) -> Nullable {
        let text = self.lexer.since(start);
        let is_alike = match letter {
            Some('A' | 'z' | 'Z' | 'b' | 'B') if self.in_look_behind => {
                return Err(format!("{text} in a look-behind"));
            }
            Some('A' | 'z') if !in_class => return Ok(true),
            Some('Z') if !in_class && self.oniguruma => return Ok(true),
            Some('p' | 'P') if is_property(&text) && self.ignores_case => {
                return Err(format!("{} with its case ignored", &text[..2]));
            }
            Some('p' | 'P') => is_property(&text),
            Some('x' | 'u') => is_code_point(&text) && !self.ignores_case,
            Some('w' | 'W' | 'b' | 'B') if self.ignores_case => {
                return Err(format!("{text} with its case ignored")); // they are written as properties
            }
            Some('b' | 'B') if !in_class => return Ok(true),
            // In a class, it is written as a negated class.
            Some('w' | 'W') => !in_class || letter == Some('w'),
            // Oniguruma finds `ss`, ... for the `ß` in it.
            Some('S' | 'D') if in_class && self.ignores_case => {
                return Err(format!("{text} in a class with its case ignored"));
            }
            Some('s' | 'S' | 'd' | 'D' | 'n' | 'r' | 't' | 'f' | 'v' | ' ') => true,
            Some(c) => c.is_ascii_punctuation() && c != '<' && c != '>',
            None => false,
        };
        if is_alike {
            Ok(false)
        } else {
            Err(text.chars().take(32).collect())
        }
    }

    /// Checks the rest of a class, with the classes inside.
    fn class(&mut self, is_negated: bool) -> Result<(), String> {
        let mut negated = vec![is_negated];
        while self.lexer.in_class() {
            for text in ["[:", "--", "~~"] {
                if self.lexer.starts_with(text) {
                    return Err(format!("{text} in a class"));
                }
            }
            if self.ignores_case && self.lexer.starts_with("&&") {
                return Err("&& in a class with its case ignored".to_owned());
            }
            let start = self.lexer.at;
            match self.lexer.next() {
                Some(Lexeme::Escape(letter)) => {
                    self.escape(letter, start, true)?;
                }
                Some(Lexeme::Class) if self.ignores_case => {
                    return Err("a class in a class with its case ignored".to_owned());
                }
                Some(Lexeme::Class) => {
                    let is_negated = self.lexer.since(start).ends_with('^');
                    if is_negated && negated.contains(&true) {
                        return Err("a negated class in a negated class".to_owned());
                    }
                    negated.push(is_negated);
                }
                Some(Lexeme::ClassEnd) => {
                    negated.pop();
                }
                Some(Lexeme::Char(c)) if self.ignores_case && !c.is_ascii() => {
                    return Err(format!("'{c}' with its case ignored"));
                }
                Some(_) => {}
                None => return Err("[".to_owned()),
            }
        }
        Ok(())
    }
}

/// Whether an escape is `\p{...}` with a property that all engines know.
fn is_property(escape: &str) -> bool {
    let name = escape
        .get(2..)
        .and_then(|name| name.strip_prefix('{')?.strip_suffix('}'));
    let Some(name) = name else {
        return false;
    };
    let name = name.strip_prefix('^').unwrap_or(name);
    let is_category = |category: &&str| {
        let (first, letters) = category.split_at(1);
        name.strip_prefix(first)
            .is_some_and(|letter| match letter.len() {
                0 => first != "C", // `C` contains unassigned code points
                length => length == 1 && letters.contains(letter),
            })
    };
    PROPERTIES.split(' ').any(|property| property == name) || CATEGORIES.iter().any(is_category)
}

/// Whether an escape is `\x{...}`, `\x` with two digits or `\u` with four.
fn is_code_point(escape: &str) -> bool {
    let braced = escape
        .strip_prefix("\\x{")
        .and_then(|digits| digits.strip_suffix('}'));
    let digits = braced.unwrap_or(escape.get(2..).unwrap_or_default());
    let is_valid = match braced {
        Some(_) => (1..=6).contains(&digits.len()),
        // Oniguruma reads `\xe9` as a byte.
        None if escape.starts_with("\\x") => {
            digits.len() == 2 && digits.starts_with(|c| ('0'..='7').contains(&c))
        }
        None => digits.len() == 4,
    };
    is_valid
        && digits.bytes().all(|byte| byte.is_ascii_hexdigit())
        && u32::from_str_radix(digits, 16).is_ok_and(|code_point| code_point <= 0x10_ffff)
}

/// Checks what Python's `regex` reads differently of a pattern that [`check`] accepts.
///
/// It reads `$` as "before a last line end" too, finds `İ` for `(?i:i)`, takes `{e<=1}` for a fuzzy match and
/// `[[` for a letter; and more.
fn check_python(pattern: &str) -> Result<(), String> {
    let mut lexer = Lexer::new(pattern);
    loop {
        let start = lexer.at;
        if let Some(quantifier) = lexer.quantifier() {
            let count = quantifier.count.unwrap_or_default();
            if count.starts_with(',') || count.matches(',').count() > 1 {
                return Err("{".to_owned());
            }
            continue;
        }
        let is_alike = match lexer.next() {
            None => break,
            Some(Lexeme::Class) => is_python_class(&mut lexer),
            Some(Lexeme::Escape(letter)) if !is_python_escape(letter, &lexer.since(start)) => {
                return Err(lexer.text(start..start + 2));
            }
            Some(Lexeme::Group(Group::Flags { flags, has_body })) => flags == "i" && has_body,
            Some(Lexeme::Group(group)) => !matches!(group, Group::Capture | Group::Other),
            Some(Lexeme::Char(c)) => !"$]{}".contains(c),
            Some(Lexeme::Escape(_) | Lexeme::Close | Lexeme::Bar | Lexeme::ClassEnd) => true,
        };
        if !is_alike {
            return Err(lexer.text(start..start + 1));
        }
    }
    match pattern.split_once("(?i:") {
        // Theirs takes `İ` for `i` and `ı` for `I`.
        Some((_, rest)) if rest.contains(['i', 'I', '-']) => {
            Err("(?i: with an i or a range after it".to_owned())
        }
        _ => Ok(()),
    }
}

fn is_python_escape(letter: Option<char>, text: &str) -> bool {
    !matches!(letter, Some('A' | 'z' | 'w' | 'W' | 'b' | 'B')) && !text.starts_with("\\x{")
}

/// Reads the rest of a class: without classes inside and without operators.
fn is_python_class(lexer: &mut Lexer) -> bool {
    loop {
        if ["--", "&&", "||", "~~"]
            .iter()
            .any(|text| lexer.starts_with(text))
        {
            return false;
        }
        let start = lexer.at;
        match lexer.next() {
            Some(Lexeme::ClassEnd) => return true,
            Some(Lexeme::Escape(letter)) if is_python_escape(letter, &lexer.since(start)) => {}
            Some(Lexeme::Char(c)) if c != ']' => {}
            _ => return false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_objection_names_what_is_not_read_alike() {
        for (pattern, engines, expected) in [
            (r"a|\p{L}+\.\n|(?<!e)f$", Engines::ToOniguruma, None),
            (r"\w+", Engines::ToOniguruma, None),
            (r"\w+", Engines::FromOniguruma, None),
            (
                r"(?i:\w+)",
                Engines::ToOniguruma,
                Some(r"\w with its case ignored"),
            ),
            (r"\n^", Engines::FromOniguruma, Some("^ inside")),
            (
                "a{2}?",
                Engines::FromOniguruma,
                Some("can match the empty text"),
            ),
            ("a{2,2}", Engines::FromOniguruma, None),
            (
                "a{3,2}b",
                Engines::FromOniguruma,
                Some("a quantifier whose second count is less than the first"),
            ),
            (
                "a{3,2}b",
                Engines::ToOniguruma,
                Some("a quantifier whose second count is less than the first"),
            ),
            (r"a|\p{L}+|(?i:'s)", Engines::Python, None),
            (r"\w+", Engines::Python, Some(r"\w")),
            ("[a[b]]", Engines::Python, Some("[")),
            (r"\x{41}", Engines::Python, Some(r"\x")),
            ("a{,2}b", Engines::Python, Some("{")),
        ] {
            let found = named(pattern, engines);
            assert_eq!(found.as_deref(), expected, "{pattern} {engines:?}");
        }
    }

    const ALL: [Engines; 3] = [
        Engines::ToOniguruma,
        Engines::FromOniguruma,
        Engines::Python,
    ];

    /// What an objection names.
    fn named(pattern: &str, engines: Engines) -> Option<String> {
        let objection = objection(pattern, engines)?;
        let what = objection.strip_prefix("holds ").unwrap_or(&objection);
        Some(what.split(", ").next().unwrap_or_default().to_owned())
    }

    #[test]
    fn what_every_engine_reads_alike_passes() {
        let patterns = r"
            ^a a|^b \u0041 (?i:[a]+) (?i:(?:a)+) é (?i:sa) (?i:[a]) [é] a{2}?b a{2}b (?:a?)b+ (?=a)b
            (?:a)(?=b) \p{L} \p{Lu} a{1,2}? a+? \p{^L} \p{Latin} \. \! [\d] \d a{1,2}b (?>a)b [a]
            [^a]b (?i:k)
        ";
        for pattern in patterns.split_whitespace() {
            for engines in ALL {
                assert_eq!(named(pattern, engines), None, "{pattern} {engines:?}");
            }
        }
    }

    #[test]
    fn what_no_other_engine_reads_alike_is_named() {
        for (pattern, what) in [
            (r"a||b", r"can match the empty text"),
            (r"a?|b", r"can match the empty text"),
            (r"a|b?", r"can match the empty text"),
            (r"\x41+", r"a quantifier of \x without braces"),
            (r"\u0041+", r"a quantifier of \u without braces"),
            (r"\u004", r"\u004"),
            (r"\x4g", r"\x4g"),
            (r"\xe9", r"\xe9"),
            (r"\x{110000}", r"\x{110000}"),
            (r"\x{}", r"\x{}"),
            (r"(?i:\x41)", r"\x41"),
            (r"(?i:\u0041)", r"\u0041"),
            (
                r"(?i:a+)",
                r"a quantifier of a letter whose case is ignored",
            ),
            (r"(?i:é)", r"'é' with its case ignored"),
            (r"(?i:ss)", r"'ss' with its case ignored"),
            (r"(?i:sS)", r"'ss' with its case ignored"),
            (r"(?i:[é])", r"'é' with its case ignored"),
            (r"(?s:a)", r"(?s:..."),
            (r"(?x:a)", r"(?x:..."),
            (r"a(?i)b", r"(?i)..."),
            (r"(?=a)|b", r"can match the empty text"),
            (r"(?i:s(?:s))", r"'ss' with its case ignored"),
            (r"(?i:[a&&b])", r"&& in a class with its case ignored"),
            (r"(?i:[a[b]])", r"a class in a class with its case ignored"),
            (r"(?i:[\S])", r"\S in a class with its case ignored"),
            (r"[^[^a]]", r"a negated class in a negated class"),
            (r"[\W]", r"\W"),
            (r"(?<=a+)b", r"a quantifier in a look-behind"),
            (r"(?<=(a))b", r"a group in a look-behind"),
            (r"(?<=a$)b", r"$ in a look-behind"),
            (r"(?<=a\z)b", r"\z in a look-behind"),
            (r"[\z]", r"\z"),
            (r"[\Z]", r"\Z"),
            (r"(?i:\pL)", r"\pL"),
            (r"(?i:\p{L})", r"\p with its case ignored"),
            (r"\p{Lx}", r"\p{Lx}"),
            (r"\p{LL}", r"\p{LL}"),
            (r"\p{C}", r"\p{C}"),
            (r"\p{Foo}", r"\p{Foo}"),
            (r"\<", r"\<"),
            (r"\>", r"\>"),
            (r"\q", r"\q"),
            (r"[[:alpha:]]", r"[: in a class"),
            (r"[a--b]", r"-- in a class"),
            (r"[a~~b]", r"~~ in a class"),
            (r"[\q]", r"\q"),
            (r"a{,2}", r"can match the empty text"),
            (r"(?<n>a)", r"(?<n..."),
            (r"{2}a", r"{ with nothing before it"),
            (r"a|{1,}b", r"{ with nothing before it"),
            (r"(?:{,2}a)", r"{ with nothing before it"),
            (r"(+a)", r"+ with nothing before it"),
        ] {
            for engines in ALL {
                let found = named(pattern, engines);
                assert_eq!(found.as_deref(), Some(what), "{pattern} {engines:?}");
            }
        }
    }

    #[test]
    fn what_one_engine_reads_alike_is_named_for_the_others() {
        for (pattern, expected) in [
            (r"(?i:\b)", [Some(r"\b with its case ignored"); 3]),
            (r"a^", [None, Some(r"^ inside"), None]),
            (r"(?:^a)", [None, Some(r"^ inside"), None]),
            (r"\x{41}+", [None, None, Some(r"\x")]),
            (r"a{,}b", [None, None, Some(r"{")]),
            (r"a{,}", [None, None, Some(r"{")]),
            (r"[]a]", [None, None, Some(r"[")]),
            (r"a{1,2,3}b", [None, None, Some(r"{")]),
            (r"(?i)a", [None, None, Some(r"(")]),
            (r"(?m:a)", [Some(r"(?m:..."), None, Some(r"(?m:...")]),
            (r"\Aa", [None, None, Some(r"\A")]),
            (r"a\z", [None, None, Some(r"\z")]),
            (r"a\Z", [Some(r"\Z"), None, Some(r"\Z")]),
            (r"[\w]", [None, None, Some(r"[")]),
            (r"(?=a)", [None, None, Some("can match the empty text")]),
            (r"a\b", [None, None, Some(r"\b")]),
            (r"(a)", [None, None, Some(r"(")]),
            (
                r"(?i:i)",
                [None, None, Some(r"(?i: with an i or a range after it")],
            ),
            (
                r"(?i:[a-z])",
                [None, None, Some(r"(?i: with an i or a range after it")],
            ),
        ] {
            let found = ALL.map(|engines| named(pattern, engines));
            let found = found.each_ref().map(Option::as_deref);
            assert_eq!(found, expected, "{pattern}");
        }
    }

    #[test]
    fn an_objection_names_the_engine_and_deep_groups() {
        let python = objection("a*", Engines::Python).unwrap_or_default();
        assert!(python.contains("not every engine skips"), "{python}");
        let others = objection("a*", Engines::ToOniguruma).unwrap_or_default();
        assert!(others.contains("Hugging Face"), "{others}");
        let python = objection(r"\q", Engines::Python).unwrap_or_default();
        assert!(python.contains("Python's regex module"), "{python}");
        let nested = |depth| format!("{}a{}", "(?:".repeat(depth), ")".repeat(depth));
        assert_eq!(named(&nested(MAX_DEPTH), Engines::ToOniguruma), None);
        let deeper = named(&nested(MAX_DEPTH + 1), Engines::ToOniguruma);
        assert_eq!(deeper.as_deref(), Some("groups nested too deeply"));
    }
}
