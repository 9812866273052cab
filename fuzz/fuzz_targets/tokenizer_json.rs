//! The tables of a tokenizer.json and of a tokenizer_config.json: what is read is what serde_json reads, and the rest is
//! the same document.

#![no_main]

use bpe_tokenizer_core::model::{Model, Settings};
use bpe_tokenizer_core::special::AddedToken;
use bpe_tokenizer_core::text::from_printable;
use bpe_tokenizer_core::Encoder;
use bpe_tokenizer_formats::tokenizer_json::{read_tokenizer_config, read_tokenizer_json, Tables};
use libfuzzer_sys::fuzz_target;
use serde_json::{json, Map, Value};
use std::collections::{BTreeMap, HashSet};

fuzz_target!(|data: &[u8]| {
    check(data);
    check_config(data);
    // The bytes as the two parts of a model: the reader gets further.
    if let Some(at) = data.iter().position(|&byte| byte == b'\n') {
        let (vocab, merges) = (&data[..at], &data[at + 1..]);
        let parts: [&[u8]; 5] = [
            br#"{"a":1,"model":{"vocab":{"#,
            vocab,
            br#"},"merges":["#,
            merges,
            b"]}}",
        ];
        check(&parts.concat());
    }
});

fn check(data: &[u8]) {
    let Ok((rest, Some(tables))) = read_tokenizer_json("tokenizer.json", data) else {
        return;
    };
    // The rest is not read here, and may hold a lone surrogate, which the package refuses.
    let Ok(mut whole) = serde_json::from_slice::<Map<String, Value>>(data) else {
        return;
    };
    let model = whole["model"].as_object_mut().unwrap();
    let vocab = model.insert("vocab".to_owned(), json!({})).unwrap();
    let merges = model.insert("merges".to_owned(), json!([])).unwrap();
    let added = whole.get("added_tokens").and_then(Value::as_array);
    let added: Vec<Value> = added
        .into_iter()
        .flatten()
        .map(|it| known_members(it, true))
        .collect();
    let found = tables.added.iter().map(|token| to_json(token, true));
    assert_eq!(found.collect::<Vec<_>>(), added);
    if whole.contains_key("added_tokens") {
        whole.insert("added_tokens".to_owned(), json!([]));
    }
    let rest: Map<String, Value> = serde_json::from_str(&rest).unwrap();
    assert_eq!(rest, whole);
    let vocab: BTreeMap<String, u32> = serde_json::from_value(vocab).unwrap();
    let found = tables.strings.iter();
    let found = found.map(|(id, token)| (std::str::from_utf8(token).unwrap().to_owned(), id));
    assert_eq!(found.collect::<BTreeMap<_, _>>(), vocab);
    compare_merges(&tables, &merges, &vocab);
    use_model(tables);
}

/// The same for a tokenizer_config.json.
fn check_config(data: &[u8]) {
    let Ok((rest, Some(decoder))) = read_tokenizer_config("tokenizer_config.json", data) else {
        return;
    };
    let Ok(mut whole) = serde_json::from_slice::<Map<String, Value>>(data) else {
        return;
    };
    let expected = whole
        .insert("added_tokens_decoder".to_owned(), json!({}))
        .unwrap();
    let tokens = decoder.tokens(&HashSet::new());
    let entries = expected.as_object().unwrap();
    assert_eq!(tokens.len(), entries.len());
    for (key, entry) in entries {
        let id: u32 = key.parse().unwrap();
        let token = tokens.iter().find(|token| token.id == id).unwrap();
        let given = known_members(entry, false);
        let found = to_json(token, false);
        for (name, value) in given
            .as_object()
            .unwrap()
            .iter()
            .filter(|(_, it)| !it.is_null())
        {
            assert_eq!(&found[name], value);
        }
    }
    let rest: Map<String, Value> = serde_json::from_str(&rest).unwrap();
    assert_eq!(rest, whole);
}

/// The members of an added token that have a meaning.
fn known_members(entry: &Value, has_id: bool) -> Value {
    let names = to_json(&AddedToken::default(), has_id);
    let members = entry.as_object().unwrap().clone().into_iter();
    members
        .filter(|(name, _)| names.get(name).is_some())
        .collect()
}

fn to_json(token: &AddedToken, has_id: bool) -> Value {
    let mut value = json!({
        "content": token.content,
        "single_word": token.single_word,
        "lstrip": token.lstrip,
        "rstrip": token.rstrip,
        "normalized": token.normalized,
        "special": token.special,
    });
    if has_id {
        value["id"] = token.id.into();
    }
    value
}

/// Of equal pairs, the last one counts.
fn compare_merges(read: &Tables, merges: &Value, vocab: &BTreeMap<String, u32>) {
    let mut expected = Vec::new();
    for merge in merges.as_array().unwrap() {
        let (left, right) = match merge {
            Value::String(line) if line.starts_with("#version") => continue,
            Value::String(line) => line.split_once(' ').unwrap(),
            pair => (pair[0].as_str().unwrap(), pair[1].as_str().unwrap()),
        };
        let product = [left, right].concat();
        let merge = (vocab[left], vocab[right], vocab[&product]);
        expected.retain(|known| *known != merge);
        expected.push(merge);
    }
    assert_eq!(read.merges, expected);
}

/// The tokens as bytes make a model, or an error.
fn use_model(read: Tables) {
    let tokens = read.strings.iter();
    let tokens =
        tokens.map(|(id, token)| Some((id, from_printable(std::str::from_utf8(token).ok()?)?)));
    let Some(tokens) = tokens.collect::<Option<Vec<_>>>() else {
        return;
    };
    let vocabulary = bpe_tokenizer_core::model::Vocabulary::new(tokens).unwrap();
    let model = Model::with_merge_ids(vocabulary, read.merges, Settings::default(), Vec::new());
    Encoder::new(model.unwrap()).unwrap();
}
