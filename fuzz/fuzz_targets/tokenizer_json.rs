//! The fast reader of a tokenizer.json: what it reads is what serde_json reads, and the rest is the same document.

#![no_main]

use bpe_tokenizer_core::model::{Model, Settings};
use bpe_tokenizer_core::text::from_printable;
use bpe_tokenizer_core::Encoder;
use bpe_tokenizer_formats::huggingface::document::{AddedToken, TokenizerConfig, TokenizerJson};
use libfuzzer_sys::fuzz_target;
use serde_json::{json, Map, Value};
use std::collections::BTreeMap;

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
    let Some(read) = TokenizerJson::parse(data) else {
        return;
    };
    // The rest is not read here, and may hold a lone surrogate, which Python's json accepts.
    let Ok(mut whole) = serde_json::from_slice::<Map<String, Value>>(data) else {
        return;
    };
    let model = whole["model"].as_object_mut().unwrap();
    let vocab = model.insert("vocab".to_owned(), json!({})).unwrap();
    let merges = model.insert("merges".to_owned(), json!([])).unwrap();
    if let Some(added) = &read.added {
        let expected = whole.insert("added_tokens".to_owned(), json!([])).unwrap();
        let found = added.iter().map(|token| to_json(token, true));
        assert_eq!(Value::from_iter(found), expected);
    }
    let rest: Map<String, Value> = serde_json::from_str(&read.rest).unwrap();
    assert_eq!(rest, whole);
    let vocab: BTreeMap<String, u32> = serde_json::from_value(vocab).unwrap();
    let found = read.strings.iter();
    let found = found.map(|(id, token)| (std::str::from_utf8(token).unwrap().to_owned(), id));
    assert_eq!(found.collect::<BTreeMap<_, _>>(), vocab);
    compare_merges(&read, &merges, &vocab);
    use_model(read);
}

/// The same for a tokenizer_config.json.
fn check_config(data: &[u8]) {
    let Some(read) = TokenizerConfig::parse(data) else {
        return;
    };
    let Ok(mut whole) = serde_json::from_slice::<Map<String, Value>>(data) else {
        return;
    };
    let decoder = whole.insert("added_tokens_decoder".to_owned(), json!({}));
    let found = read.added.iter();
    let found = found.map(|token| (token.id.to_string(), to_json(token, false)));
    assert_eq!(Some(Value::from_iter(found)), decoder);
    let rest: Map<String, Value> = serde_json::from_str(&read.rest).unwrap();
    assert_eq!(rest, whole);
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
fn compare_merges(read: &TokenizerJson, merges: &Value, vocab: &BTreeMap<String, u32>) {
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
fn use_model(read: TokenizerJson) {
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
