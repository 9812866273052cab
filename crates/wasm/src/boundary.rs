//! The functions that JavaScript calls.
//!
//! The caller writes arguments into a buffer, calls a function, and reads the [`Answer`] at the returned address before
//! its next call. A panic or a lack of memory traps; the instance must not be used again, but for [`trap_message`].
//!
//! `unsafe`: only the attribute that keeps the names of functions. Another function of the same name could exist in a
//! program that links this crate; none does.
#![allow(unsafe_code)]

use crate::answer::Answer;
use crate::tokenizer::Tokenizer;
use crate::{packed, ranks, training};
use bpe_tokenizer_core::encoder::Special;
use bpe_tokenizer_core::error::shorten;
use bpe_tokenizer_core::{Error, Result};
use rustc_hash::FxHashSet;
use serde::Deserialize;
use std::cell::RefCell;

/// The number of input buffers.
const BUFFERS: usize = 2;

#[derive(Default)]
struct Instance {
    /// Arguments: options as JSON, then text or other bytes.
    buffers: [Vec<u8>; BUFFERS],
    tokenizer: Option<Tokenizer>,
    answer: Answer,
}

thread_local! {
    static INSTANCE: RefCell<Instance> = RefCell::default();
    /// The answer of `trap_message`. It is not in the instance, which a trapped call still borrows.
    static TRAP: RefCell<(String, Answer)> = RefCell::default();
}

impl Instance {
    fn tokenizer(&mut self) -> Result<(&mut Tokenizer, &[Vec<u8>; BUFFERS], &mut Answer)> {
        let missing = || Error::Option("this instance has no tokenizer".to_owned());
        let tokenizer = self.tokenizer.as_mut().ok_or_else(missing)?;
        Ok((tokenizer, &self.buffers, &mut self.answer))
    }

    /// Sets the tokenizer of a file, and frees the memory of the file.
    fn load(&mut self, tokenizer: Tokenizer) {
        self.buffers = Default::default();
        self.set(tokenizer);
    }

    fn set(&mut self, tokenizer: Tokenizer) {
        let info = tokenizer.info().to_string();
        self.answer.own_bytes(info.into_bytes());
        self.tokenizer = Some(tokenizer);
    }
}

/// The beginning of a buffer that the caller filled.
fn filled(buffer: &[u8], size: usize) -> Result<&[u8]> {
    let cut_off = || Error::Option("an argument is longer than its buffer".to_owned());
    buffer.get(..size).ok_or_else(cut_off)
}

/// Runs a call and returns the address of its answer.
fn answer(call: impl FnOnce(&mut Instance) -> Result<()>) -> *const usize {
    INSTANCE.with_borrow_mut(|instance| {
        instance.answer.clear();
        if let Err(error) = call(instance) {
            instance.answer.fail(error.to_string());
        }
        instance.answer.words().as_ptr()
    })
}

/// The special tokens that a call recognises: 0 none, 1 all, or the JSON of a list, whose size is this minus 2.
fn special(buffer: &[u8], code: usize) -> Result<Special> {
    Ok(match code {
        0 => Special::None,
        1 => Special::All,
        _ => {
            let list = filled(buffer, code - 2)?;
            let list: FxHashSet<String> = from_json(list, "the special tokens")?;
            Special::Only(list)
        }
    })
}

/// Prepares the instance: panics leave their message.
#[no_mangle]
pub extern "C" fn start() {
    std::panic::set_hook(Box::new(|info| {
        TRAP.with_borrow_mut(|(message, _)| *message = info.to_string());
    }));
}

/// Why the instance trapped; empty if it does not know.
#[no_mangle]
pub extern "C" fn trap_message() -> *const usize {
    TRAP.with_borrow_mut(|(message, answer)| {
        answer.clear();
        answer.add_bytes(message.as_bytes());
        answer.words().as_ptr()
    })
}

/// The address of an input buffer with at least this size. It stays valid until the buffer grows.
#[no_mangle]
pub extern "C" fn buffer(index: usize, size: usize) -> *mut u8 {
    INSTANCE.with_borrow_mut(|instance| {
        let buffer = &mut instance.buffers[index % BUFFERS];
        if buffer.len() < size {
            buffer.resize(size, 0);
        }
        buffer.as_mut_ptr()
    })
}

/// Loads the packed model in buffer 1. The answer is its description.
#[no_mangle]
pub extern "C" fn load_packed(size: usize) -> *const usize {
    answer(|instance| {
        let (model, roles) = packed::read(filled(&instance.buffers[1], size)?)?;
        instance.load(Tokenizer::new(model, roles)?);
        Ok(())
    })
}

/// Loads the rank file in buffer 1; buffer 0 has the options. The answer is its description.
#[no_mangle]
pub extern "C" fn load_ranks(options: usize, size: usize) -> *const usize {
    answer(|instance| {
        let [json, data] = &instance.buffers;
        let options = from_json(filled(json, options)?, "the options")?;
        let model = ranks::read(filled(data, size)?, options)?;
        instance.load(Tokenizer::with_named_roles(model)?);
        Ok(())
    })
}

/// Trains a tokenizer on the text in buffer 1.
#[no_mangle]
pub extern "C" fn train(options: usize, size: usize) -> *const usize {
    answer(|instance| {
        let Instance {
            buffers: [json, text],
            answer,
            ..
        } = instance;
        let options = from_json(filled(json, options)?, "the options")?;
        let tokenizer = training::train(options, filled(text, size)?, answer)?;
        instance.set(tokenizer);
        Ok(())
    })
}

/// The tokens of the text in buffer 1, which has `units` code units in UTF-16.
#[no_mangle]
pub extern "C" fn encode(size: usize, units: usize, special_code: usize) -> *const usize {
    answer(|instance| {
        let (tokenizer, [json, text], answer) = instance.tokenizer()?;
        let special = special(json, special_code)?;
        tokenizer.encode(filled(text, size)?, units, &special, answer)
    })
}

/// The ids of the text in buffer 1.
#[no_mangle]
pub extern "C" fn ids(size: usize, special_code: usize) -> *const usize {
    answer(|instance| {
        let (tokenizer, [json, text], answer) = instance.tokenizer()?;
        let special = special(json, special_code)?;
        tokenizer.ids(filled(text, size)?, &special, answer)
    })
}

/// The number of ids of the text in buffer 1.
#[no_mangle]
pub extern "C" fn count(size: usize, special_code: usize) -> *const usize {
    answer(|instance| {
        let (tokenizer, [json, text], answer) = instance.tokenizer()?;
        let special = special(json, special_code)?;
        tokenizer.count(filled(text, size)?, &special, answer)
    })
}

/// The bytes of the ids in buffer 1: numbers of 32 bits, the lowest byte first.
#[no_mangle]
pub extern "C" fn token_table(size: usize) -> *const usize {
    answer(|instance| {
        let (tokenizer, [_, ids], answer) = instance.tokenizer()?;
        let ids = filled(ids, size)?.chunks_exact(4);
        let ids = ids.map(|id| {
            id.iter()
                .rev()
                .fold(0, |high, &byte| high << 8 | u32::from(byte))
        });
        tokenizer.token_table(&ids.collect::<Vec<_>>(), answer)
    })
}

/// The tokens of the segments of a chat: buffer 0 has their sizes, buffer 1 the whole text.
#[no_mangle]
pub extern "C" fn encode_segments(options: usize, size: usize) -> *const usize {
    answer(|instance| {
        let (tokenizer, [json, text], answer) = instance.tokenizer()?;
        let segments = from_json(filled(json, options)?, "the segments")?;
        tokenizer.encode_segments(&segments, filled(text, size)?, answer)
    })
}

/// The merges of the piece in buffer 1.
#[no_mangle]
pub extern "C" fn trace(size: usize) -> *const usize {
    answer(|instance| {
        let (tokenizer, [_, piece], answer) = instance.tokenizer()?;
        tokenizer.trace(filled(piece, size)?, answer)
    })
}

/// Reads JSON; the error says what it should be.
pub fn from_json<'a, T: Deserialize<'a>>(json: &'a [u8], what: &str) -> Result<T> {
    serde_json::from_slice(json).map_err(|error| {
        // The message may repeat a long value.
        Error::Model(format!("{what}: {}", shorten(&error.to_string(), 200)))
    })
}
