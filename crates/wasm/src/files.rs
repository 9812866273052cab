//! Files to a tokenizer: recognises the format by the content.

use crate::tokenizer::Tokenizer;
use crate::{gpt2, packed, ranks};
use bpe_tokenizer_core::error::shorten;
use bpe_tokenizer_core::{Error, Model, Result};
use bpe_tokenizer_formats::huggingface;
use serde::Deserialize;
use std::collections::BTreeMap;

/// What a caller says about the files.
#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Options {
    /// The files, in the order of their bytes.
    pub files: Vec<FileInfo>,
    /// The split pattern, for files that do not hold it.
    pub pattern: Option<String>,
    /// The special tokens, for files that do not hold them.
    #[serde(rename = "specialTokens")]
    pub special_tokens: Option<BTreeMap<String, u32>>,
}

/// The name and the size of a file.
#[derive(Deserialize)]
pub struct FileInfo {
    name: String,
    size: usize,
}

type File<'a> = (&'a str, &'a [u8]);

/// Loads a tokenizer from files, whose bytes are concatenated.
pub fn load(options: &Options, mut data: &[u8]) -> Result<Tokenizer> {
    let mut files: Vec<File<'_>> = Vec::new();
    for FileInfo { name, size } in &options.files {
        let bytes = data.split_off(..*size);
        let bytes = bytes.ok_or_else(|| Error::Option("a file is cut off".to_owned()))?;
        files.push((name, bytes));
    }
    if let [(_, bytes)] = files.as_slice() {
        if bytes.starts_with(packed::SIGNATURE) {
            let (model, roles) = packed::read(bytes)?;
            return Tokenizer::new(model, "packed", roles);
        }
    }
    let (model, format) = read(&files, options)?;
    Tokenizer::with_named_roles(model, format)
}

fn read(files: &[File<'_>], options: &Options) -> Result<(Model, &'static str)> {
    // The files next to a tokenizer.json do not change the ids of texts.
    let mut documents = files.iter().filter(|(_, bytes)| is_json(bytes));
    if let Some((_, bytes)) = documents.find(|(_, bytes)| huggingface::is_tokenizer_json(bytes)) {
        return Ok((huggingface::read(bytes)?, "huggingface"));
    }
    match files {
        [(_, vocab), (_, merges)] if is_json(vocab) && !is_json(merges) => {
            Ok((gpt2::read(vocab, merges, options)?, "gpt2"))
        }
        [(_, merges), (_, vocab)] if is_json(vocab) && !is_json(merges) => {
            Ok((gpt2::read(vocab, merges, options)?, "gpt2"))
        }
        [(name, bytes)] if ranks::is_rank_file(bytes) => {
            Ok((ranks::read(name, bytes, options)?, "tiktoken"))
        }
        _ => Err(unknown(files)),
    }
}

fn is_json(bytes: &[u8]) -> bool {
    bytes.trim_ascii_start().first() == Some(&b'{')
}

/// What is known about files that cannot be read, and what to do.
fn unknown(files: &[File<'_>]) -> Error {
    const CONVERT: &str = "convert it with the Python package: bpe-tokenizer convert";
    let Some((name, bytes)) = files.first() else {
        return Error::Option("no file is given".to_owned());
    };
    let name = shorten(name, 60);
    let problem = if bytes.is_empty() {
        "is empty".to_owned()
    } else if bytes.starts_with(b"GGUF") {
        format!("is a GGUF file, which the page does not read; {CONVERT}")
    } else if is_json(bytes) {
        let json: serde_json::Result<serde::de::IgnoredAny> = serde_json::from_slice(bytes);
        match json {
            Err(error) => format!("is not JSON: {}", shorten(&error.to_string(), 120)),
            Ok(_) => format!(
                "is not a tokenizer.json. A vocab.json needs its merges.txt: give both files. Another format: {CONVERT}"
            ),
        }
    } else if bytes.starts_with(b"#version") || name.ends_with("merges.txt") {
        "holds merges; give its vocab.json too".to_owned()
    } else {
        format!("is neither a tokenizer.json nor a rank file of tiktoken; {CONVERT}")
    };
    Error::Model(format!("{name} {problem}"))
}
