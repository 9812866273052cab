//! The class that `BPETokenizer` derives from: its state, and the methods for one text, whose calls must cost no more than
//! their work.
//!
//! What an argument means is said in Python: every value but the usual ones goes to `bpe_tokenizer.encoding`, `.arguments` or
//! `.decoding`, which returns what the core takes, or raises the error.

use crate::encoder::{Encoder, PrefixSuffix};
use crate::sequence;
use crate::strings::source_of;
use crate::text::PySpecial;
use bpe_tokenizer_core::encoder::{BatchOptions, Special, TextSource};
use bpe_tokenizer_core::threads::lock;
use numpy::PyArray1;
use pyo3::exceptions::{PyAttributeError, PyUnicodeDecodeError};
use pyo3::prelude::*;
use pyo3::pybacked::PyBackedStr;
use pyo3::types::{PyBool, PyDict, PyInt, PyList, PyString, PyTuple};
use pyo3::{PyTraverseError, PyVisit};
use std::borrow::Cow;
use std::sync::Mutex;

/// A tokenizer with or without a vocabulary.
#[pyclass(subclass, frozen, module = "bpe_tokenizer._core")]
pub struct Tokenizer {
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    /// A `CompiledModel` or an `UntrainedModel`; None before `__init__`.
    model: Option<Py<PyAny>>,
    /// The encoder of a `CompiledModel`, once it is made.
    encoder: Option<Py<Encoder>>,
}

/// An argument of a call; None where the call leaves it out.
struct Given<'py>(Option<Bound<'py, PyAny>>);

impl<'py> FromPyObject<'_, 'py> for Given<'py> {
    type Error = PyErr;

    fn extract(object: Borrowed<'_, 'py, PyAny>) -> PyResult<Self> {
        Ok(Self(Some(object.to_owned())))
    }
}

/// The options of a call for a text.
struct Options<'py> {
    add_special_tokens: Given<'py>,
    allowed_special: Given<'py>,
    disallowed_special: Given<'py>,
    threads: Given<'py>,
}

/// A checked call.
struct Request<'a, 'py> {
    encoder: Bound<'py, Encoder>,
    text: TextSource<'a>,
    options: Cow<'static, BatchOptions>,
}

/// The options of a call with a text alone.
static USUAL: BatchOptions = BatchOptions {
    special: Special::None,
    disallowed: Special::None,
    prefix_ids: Vec::new(),
    suffix_ids: Vec::new(),
    threads: 1,
    job_bytes: 0,
};

impl Tokenizer {
    /// The `CompiledModel` and its encoder. Without a vocabulary, the model raises the error.
    fn compiled<'py>(&self, py: Python<'py>) -> PyResult<(Bound<'py, PyAny>, Bound<'py, Encoder>)> {
        let model = {
            let state = lock(&self.state);
            if let (Some(model), Some(encoder)) = (&state.model, &state.encoder) {
                return Ok((model.bind(py).clone(), encoder.bind(py).clone()));
            }
            let model = state.model.as_ref().map(|model| model.bind(py).clone());
            model.ok_or_else(|| PyAttributeError::new_err("_state"))?
        };
        // Without the lock: Python runs, and other threads may set the state.
        let encoder = model.getattr("encoder")?.cast_into::<Encoder>()?;
        let mut state = lock(&self.state);
        if state.model.as_ref().is_some_and(|now| now.is(&model)) {
            state.encoder = Some(encoder.clone().unbind());
        }
        Ok((model, encoder))
    }

    #[inline(always)]
    fn request<'a, 'py>(
        slf: &Bound<'py, Self>,
        method: &'static str,
        text: &'a Bound<'py, PyAny>,
        options: Options<'py>,
    ) -> PyResult<Request<'a, 'py>> {
        let py = slf.py();
        let (model, encoder) = slf.get().compiled(py)?;
        if !text.is_instance_of::<PyString>() {
            let arguments = py.import("bpe_tokenizer.arguments")?;
            arguments.call_method1("check_text", (method, text))?;
        }
        Ok(Request {
            encoder,
            options: options.checked(&model, text)?,
            text: source_of(text.cast()?)?,
        })
    }
}

impl<'py> Options<'py> {
    fn are_usual(&self) -> bool {
        self.add_special_tokens.0.is_none()
            && self.allowed_special.0.is_none()
            && self.disallowed_special.0.is_none()
            && self.threads.0.is_none()
    }

    /// The options for the core. Those of a usual call need no check.
    #[inline]
    fn checked(
        &self,
        model: &Bound<'py, PyAny>,
        text: &Bound<'py, PyAny>,
    ) -> PyResult<Cow<'static, BatchOptions>> {
        if self.are_usual() {
            return Ok(Cow::Borrowed(&USUAL));
        }
        let (prefix_ids, suffix_ids) = added_ids(model, &self.add_special_tokens)?;
        Ok(Cow::Owned(BatchOptions {
            special: special(model, text, self)?,
            threads: thread_count(&self.threads)?,
            prefix_ids,
            suffix_ids,
            ..BatchOptions::default()
        }))
    }
}

/// The special tokens to find. What is not a default goes to `resolve_allowed_special`.
fn special<'py>(
    model: &Bound<'py, PyAny>,
    text: &Bound<'py, PyAny>,
    options: &Options<'py>,
) -> PyResult<Special> {
    let py = model.py();
    let (allowed, disallowed) = (&options.allowed_special.0, &options.disallowed_special.0);
    let is_empty = |given: &Bound<'py, PyAny>| {
        let given = given.cast_exact::<PyTuple>();
        given.is_ok_and(|given| given.is_empty())
    };
    if disallowed.as_ref().is_none_or(is_empty) {
        let Some(allowed) = allowed else {
            return Ok(Special::None);
        };
        match allowed.cast_exact::<PyString>().map(|word| word.to_str()) {
            Ok(Ok("none")) => return Ok(Special::None),
            Ok(Ok("all")) => return Ok(Special::All),
            _ => {}
        }
    }
    let encoding = py.import("bpe_tokenizer.encoding")?;
    let (none, empty) = (
        PyString::intern(py, "none").into_any(),
        PyTuple::empty(py).into_any(),
    );
    let (allowed, disallowed) = (allowed.as_ref(), disallowed.as_ref());
    let sets = (allowed.unwrap_or(&none), disallowed.unwrap_or(&empty));
    let arguments = (model, (text,), sets.0, sets.1);
    let special: PySpecial = encoding
        .call_method1("resolve_allowed_special", arguments)?
        .extract()?;
    Ok(special.0)
}

/// The number of threads; 0 for one per processor.
fn thread_count(given: &Given<'_>) -> PyResult<usize> {
    let Some(threads) = &given.0 else {
        return Ok(1);
    };
    if threads.is_exact_instance_of::<PyInt>() && threads.extract::<u8>().is_ok_and(|it| it == 1) {
        return Ok(1);
    }
    let arguments = threads.py().import("bpe_tokenizer.arguments")?;
    arguments
        .call_method1("thread_count", (threads,))?
        .extract()
}

/// The ids before and after those of a text.
fn added_ids(model: &Bound<'_, PyAny>, given: &Given<'_>) -> PyResult<PrefixSuffix> {
    let Some(adds) = &given.0 else {
        return Ok(PrefixSuffix::default());
    };
    match adds.cast_exact::<PyBool>() {
        Ok(adds) if !adds.is_true() => Ok(PrefixSuffix::default()),
        Ok(_) => model.getattr("prefix_suffix_ids")?.extract(),
        Err(_) => model.call_method1("added_ids", (adds,))?.extract(),
    }
}

#[pymethods]
impl Tokenizer {
    #[new]
    #[pyo3(signature = (*_arguments, **_named))]
    fn new(_arguments: &Bound<'_, PyTuple>, _named: Option<&Bound<'_, PyDict>>) -> Self {
        Self {
            state: Mutex::default(),
        }
    }

    #[getter(_state)]
    fn state(&self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        let model = lock(&self.state)
            .model
            .as_ref()
            .map(|model| model.clone_ref(py));
        model.ok_or_else(|| PyAttributeError::new_err("_state"))
    }

    #[setter(_state)]
    fn set_state(&self, model: Bound<'_, PyAny>) {
        let state = State {
            model: Some(model.unbind()),
            encoder: None,
        };
        let old = std::mem::replace(&mut *lock(&self.state), state);
        // Without the lock: to drop the old ones may run Python, and so other threads, which read the state.
        drop(old);
    }

    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        // Who holds the lock has living references.
        let Ok(state) = self.state.try_lock() else {
            return Ok(());
        };
        visit.call(&state.model)?;
        visit.call(&state.encoder)
    }

    fn __clear__(&self) {
        let old = std::mem::take(&mut *lock(&self.state));
        drop(old);
    }

    /// Return the ids of a text.
    ///
    /// Args:
    ///     text: Any text; a lone surrogate is encoded as U+FFFD.
    ///     add_special_tokens: Add the model's special tokens at both ends.
    ///     allowed_special: The special tokens that are recognised: `"none"`, `"all"` or a set.
    ///     disallowed_special: The special tokens that the text must not contain: `()`, `"all"` or a set.
    ///     threads: Number of threads; a long text is then cut where the ids do not depend on it.
    ///
    /// Raises:
    ///     ArgumentTypeError: The text is not a `str`.
    ///     NotTrainedError: The tokenizer has no vocabulary yet.
    ///     SpecialTokenError: The text contains a disallowed token, or a set names an unknown token.
    ///
    /// >>> tokenizer = BPETokenizer().train("ab ab", 258, special_tokens=["<|end|>"], verbose=False)
    /// >>> tokenizer.encode("ab<|end|>", allowed_special={"<|end|>"})
    /// [257, 256]
    /// >>> tokenizer.encode("ab<|end|>", disallowed_special="all")
    /// Traceback (most recent call last):
    /// bpe_tokenizer.errors.SpecialTokenError: the text holds the disallowed special token '<|end|>' at ...
    #[pyo3(signature = (text, add_special_tokens=Given(None), allowed_special=Given(None), *, disallowed_special=Given(None),
                        threads=Given(None)),
           text_signature = "($self, text, add_special_tokens=False, allowed_special='none', *, disallowed_special=(), \
                             threads=1)")]
    fn encode<'py>(
        slf: &Bound<'py, Self>,
        text: &Bound<'py, PyAny>,
        add_special_tokens: Given<'py>,
        allowed_special: Given<'py>,
        disallowed_special: Given<'py>,
        threads: Given<'py>,
    ) -> PyResult<Bound<'py, PyList>> {
        let options = Options {
            add_special_tokens,
            allowed_special,
            disallowed_special,
            threads,
        };
        let request = Self::request(slf, "encode", text, options)?;
        let encoder = request.encoder.get();
        let ids = encoder.ids(slf.py(), request.text, &request.options)?;
        encoder.list_of(slf.py(), ids)
    }

    /// Return the ids of a text as an array of dtype uint32. Arguments and errors: `encode`.
    ///
    /// >>> tokenizer = BPETokenizer().train("ab ab", vocab_size=257, verbose=False)
    /// >>> tokenizer.encode_to_numpy("abc")
    /// array([256,  99], dtype=uint32)
    #[pyo3(signature = (text, add_special_tokens=Given(None), allowed_special=Given(None), *, disallowed_special=Given(None),
                        threads=Given(None)),
           text_signature = "($self, text, add_special_tokens=False, allowed_special='none', *, disallowed_special=(), \
                             threads=1)")]
    fn encode_to_numpy<'py>(
        slf: &Bound<'py, Self>,
        text: &Bound<'py, PyAny>,
        add_special_tokens: Given<'py>,
        allowed_special: Given<'py>,
        disallowed_special: Given<'py>,
        threads: Given<'py>,
    ) -> PyResult<Bound<'py, PyArray1<u32>>> {
        let options = Options {
            add_special_tokens,
            allowed_special,
            disallowed_special,
            threads,
        };
        let request = Self::request(slf, "encode_to_numpy", text, options)?;
        let encoder = request.encoder.get();
        let ids = encoder.ids(slf.py(), request.text, &request.options)?;
        encoder.array_of(slf.py(), ids)
    }

    /// Return `len(encode(text))` without building the list; see `encode`.
    ///
    /// >>> BPETokenizer().train("ab ab", vocab_size=257, verbose=False).count_tokens("abc")
    /// 2
    #[pyo3(signature = (text, *, add_special_tokens=Given(None), allowed_special=Given(None), disallowed_special=Given(None),
                        threads=Given(None)),
           text_signature = "($self, text, *, add_special_tokens=False, allowed_special='none', disallowed_special=(), \
                             threads=1)")]
    fn count_tokens<'py>(
        slf: &Bound<'py, Self>,
        text: &Bound<'py, PyAny>,
        add_special_tokens: Given<'py>,
        allowed_special: Given<'py>,
        disallowed_special: Given<'py>,
        threads: Given<'py>,
    ) -> PyResult<usize> {
        let options = Options {
            add_special_tokens,
            allowed_special,
            disallowed_special,
            threads,
        };
        let request = Self::request(slf, "count_tokens", text, options)?;
        let encoder = request.encoder.get();
        encoder.count_ids(slf.py(), request.text, &request.options)
    }

    /// Return the text of ids.
    ///
    /// Args:
    ///     ids: A list, a NumPy array, a PyTorch tensor, an `EncodingResult`, or a single id.
    ///     skip_special_tokens: Leave special tokens out.
    ///     errors: The error handler for bytes that are not UTF-8: `"replace"` makes them U+FFFD,
    ///         `"strict"` raises; any handler of `bytes.decode`.
    ///
    /// Raises:
    ///     DecodingError: The bytes are not UTF-8, and `errors` is `"strict"`.
    ///     NotTrainedError: The tokenizer has no vocabulary yet.
    ///     OptionError: `errors` does not name an error handler.
    ///     UnknownIdError: An id is not in the vocabulary.
    ///
    /// >>> tokenizer = BPETokenizer().train("ab ab", vocab_size=257, verbose=False)
    /// >>> tokenizer.decode([256, 33])
    /// 'ab!'
    #[pyo3(signature = (ids, skip_special_tokens=Given(None), errors=Given(None)),
           text_signature = "($self, ids, skip_special_tokens=False, errors='replace')")]
    fn decode<'py>(
        slf: &Bound<'py, Self>,
        ids: &Bound<'py, PyAny>,
        skip_special_tokens: Given<'py>,
        errors: Given<'py>,
    ) -> PyResult<Bound<'py, PyString>> {
        let py = slf.py();
        let (_, encoder) = slf.get().compiled(py)?;
        let decoding = || py.import("bpe_tokenizer.decoding");
        let handler: Option<PyBackedStr> = match &errors.0 {
            None => None,
            Some(errors) => {
                decoding()?.call_method1("check_error_handler", (errors,))?;
                Some(errors.extract()?)
            }
        };
        let handler = handler.as_deref().unwrap_or("replace");
        let is_list = ids.is_exact_instance_of::<PyList>();
        let row = match is_list {
            true => ids.clone(),
            false => decoding()?.call_method1("id_row", (ids,))?,
        };
        let skips = skip_special_tokens.0.as_ref();
        let skips = skips.map_or(Ok(false), sequence::skip_special_tokens);
        let decoded = || {
            let ids = row.extract()?;
            encoder.get().decode_text(py, ids, skips?, handler)
        };
        decoded().map_err(|error| {
            let named = || -> PyResult<PyErr> {
                let value = error.value(py);
                if error.is_instance_of::<PyUnicodeDecodeError>(py) {
                    let named = decoding()?.call_method1("decoding_error", (value,))?;
                    return Ok(PyErr::from_value(named));
                }
                if value.get_type().name()? == "ArgumentTypeError" {
                    let named = decoding()?.call_method1("row_error", (value, &row))?;
                    return Ok(PyErr::from_value(named));
                }
                Ok(error.clone_ref(py))
            };
            named().unwrap_or_else(|error| error)
        })
    }
}
