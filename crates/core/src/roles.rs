//! The tokens of the roles BOS, EOS, padding and unknown, by their names.

use aho_corasick::AhoCorasick;
use std::collections::BTreeMap;

/// What the name of a role's token contains, the most specific name first.
const NAMES: [(&str, &[&str]); 4] = [
    ("bos", &["bos", "begin_of_text", "<s>"]),
    ("eos", &["eos", "end_of_text", "endoftext", "</s>"]),
    ("pad", &["pad", "padding"]),
    ("unk", &["unk", "unknown"]),
];

/// The text of the token of each role that has one. The first name that a token's text contains as a word decides, in
/// either case; of several such tokens, the first.
pub fn find_roles<'a>(contents: impl Iterator<Item = &'a str>) -> BTreeMap<String, String> {
    // Files have up to 100,000s of added tokens, of which few have such a name.
    let names = NAMES.iter().flat_map(|(_, names)| *names);
    let mut builder = AhoCorasick::builder();
    let any = builder.ascii_case_insensitive(true).build(names).ok();
    let may_have = |content: &&str| any.as_ref().is_none_or(|any| any.is_match(content));
    let named: Vec<(&str, String)> = contents
        .filter(may_have)
        .map(|content| (content, content.to_ascii_lowercase()))
        .collect();
    let mut roles = BTreeMap::new();
    for (role, names) in NAMES {
        let has = |name: &&str| named.iter().find(|(_, lower)| has_word(lower, name));
        if let Some((content, _)) = names.iter().find_map(has) {
            roles.insert(role.to_owned(), (*content).to_owned());
        }
    }
    roles
}

/// Whether a text in lower case contains a name that no letter of ASCII touches.
fn has_word(text: &str, name: &str) -> bool {
    let is_letter = |byte: Option<&u8>| byte.is_some_and(u8::is_ascii_lowercase);
    let text = text.as_bytes();
    memchr::memmem::find_iter(text, name)
        .any(|start| !is_letter(text[..start].last()) && !is_letter(text.get(start + name.len())))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_a_word() {
        assert!(has_word("<|end_of_text|>", "end_of_text"));
        assert!(!has_word("<|videos|>", "eos"));
        assert!(has_word("<|videos|><eos>", "eos"));
    }

    #[test]
    fn the_most_specific_name_of_the_first_token_decides() {
        let found = find_roles(["<s>", "<BOS>", "<|videos|>", "<pad2>", "<pad1>"].into_iter());
        let expected = [("bos", "<BOS>"), ("pad", "<pad2>")];
        assert_eq!(
            found,
            expected
                .map(|(role, text)| (role.to_owned(), text.to_owned()))
                .into()
        );
    }
}
