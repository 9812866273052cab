//! Methods of `BPETokenizer` whose usual calls go to the encoder without a Python function.
//!
//! Python takes longer to call a function with optional arguments than the core to encode a short text. So the class has
//! method descriptors in place of four of its functions. A call goes to the encoder if its arguments have the usual types
//! and values. Every other call goes to the function, which defines what the method does.
//!
//! `unsafe`: the entries that Python calls, and calls of its C interface. Python passes living objects to an entry, as many
//! as it says, and holds the GIL; each function takes the reference that the interface returns, or its error.

#![allow(unsafe_code)]

use crate::encoder::{Encoder, Memory, PrefixSuffix};
use crate::objects;
use crate::strings;
use crate::tokenizer_base::TokenizerBase;
use bpe_tokenizer_core::encoder::{Special, TextSource};
use bpe_tokenizer_core::text::Text;
use numpy::{PyUntypedArray, PyUntypedArrayMethods};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::ffi;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyDict, PyFrozenSet, PyInt, PyList, PySet, PyString, PyTuple, PyType};
use rustc_hash::FxHashSet;
use std::ffi::{c_int, CString};
use std::panic::{catch_unwind, AssertUnwindSafe};
use std::ptr::null_mut;
use std::sync::atomic::{AtomicPtr, Ordering};

/// A set of special tokens is searched for among so many added tokens at most, one by one.
const MAX_SEARCHED_TOKENS: usize = 300;
/// A set of the other special tokens is made of so many added tokens at most.
const MAX_LISTED_TOKENS: usize = 30;
/// A second thread does not pay for a text of so many bytes or characters.
const MAX_FOR_ONE_THREAD: usize = 4 << 10;
/// The parameters after the first one, at most.
const MAX_OPTIONS: usize = 4;
/// The arguments after the first one, in the order of the parameters; None where the call lacks one.
type Options<'a, 'py> = [Option<Borrowed<'a, 'py, PyAny>>; MAX_OPTIONS];
/// The result of a call; None for a call that the function takes.
type Answered<'py> = PyResult<Option<Bound<'py, PyAny>>>;
type Answer =
    for<'py> fn(&Tokenizer<'py>, Borrowed<'_, 'py, PyAny>, Options<'_, 'py>) -> Answered<'py>;

/// The parameters after the first one.
type Parameters = for<'py> fn(Python<'py>) -> [Option<&'py Bound<'py, PyString>>; MAX_OPTIONS];

struct Method {
    name: &'static str,
    answer: Answer,
    parameters: Parameters,
    /// How many of the parameters may be positional.
    positional: usize,
    /// What Python calls.
    entry: ffi::PyCFunctionFastWithKeywords,
    /// Takes the calls that `answer` does not.
    function: AtomicPtr<ffi::PyObject>,
}

impl Method {
    const fn new(
        name: &'static str,
        answer: Answer,
        (parameters, positional): (Parameters, usize),
        entry: ffi::PyCFunctionFastWithKeywords,
    ) -> Self {
        Self {
            name,
            answer,
            parameters,
            positional,
            entry,
            function: AtomicPtr::new(null_mut()),
        }
    }
}

static METHODS: [Method; 4] = [
    Method::new("encode", encode, (parameters_of_texts, 2), entry::<0>),
    Method::new(
        "encode_to_numpy",
        encode_to_numpy,
        (parameters_of_texts, 2),
        entry::<1>,
    ),
    Method::new(
        "count_tokens",
        count_tokens,
        (parameters_of_texts, 0),
        entry::<2>,
    ),
    Method::new("decode", decode, (parameters_of_ids, 2), entry::<3>),
];

fn parameters_of_texts(py: Python<'_>) -> [Option<&Bound<'_, PyString>>; MAX_OPTIONS] {
    [
        Some(intern!(py, "add_special_tokens")),
        Some(intern!(py, "allowed_special")),
        Some(intern!(py, "disallowed_special")),
        Some(intern!(py, "threads")),
    ]
}

fn parameters_of_ids(py: Python<'_>) -> [Option<&Bound<'_, PyString>>; MAX_OPTIONS] {
    let skip = intern!(py, "skip_special_tokens");
    [Some(skip), Some(intern!(py, "errors")), None, None]
}

/// The method descriptor for one of the class's functions. `doc` begins with the signature that Python shows.
#[pyfunction]
pub fn direct_method<'py>(
    owner: &Bound<'py, PyType>,
    name: &str,
    function: Bound<'py, PyAny>,
    doc: &str,
) -> PyResult<Bound<'py, PyAny>> {
    if !owner.is_subclass_of::<TokenizerBase>()? {
        return Err(PyTypeError::new_err("the class is not a TokenizerBase"));
    }
    let method = METHODS.iter().find(|method| method.name == name);
    let method = method.ok_or_else(|| PyValueError::new_err("no direct method has this name"))?;
    // A class lives as long as the process, and so does what its methods point to.
    let definition = Box::leak(Box::new(ffi::PyMethodDef {
        ml_name: CString::new(name)?.into_raw(),
        ml_meth: ffi::PyMethodDefPointer {
            PyCFunctionFastWithKeywords: method.entry,
        },
        ml_flags: ffi::METH_FASTCALL as c_int | ffi::METH_KEYWORDS as c_int,
        ml_doc: CString::new(doc)?.into_raw(),
    }));
    method
        .function
        .store(function.into_ptr(), Ordering::Release);
    // SAFETY: as the module's comment says.
    unsafe {
        let descriptor = ffi::PyDescr_NewMethod(owner.as_type_ptr(), definition);
        Bound::from_owned_ptr_or_err(owner.py(), descriptor)
    }
}

/// What Python calls for a method.
unsafe extern "C" fn entry<const METHOD: usize>(
    tokenizer: *mut ffi::PyObject,
    arguments: *const *mut ffi::PyObject,
    count: ffi::Py_ssize_t,
    names: *mut ffi::PyObject,
) -> *mut ffi::PyObject {
    let (method, count) = (&METHODS[METHOD], count as usize);
    let pointers = Pointers {
        tokenizer,
        arguments,
        count,
        names,
    };
    // SAFETY: as the module's comment says. To register the thread with PyO3 would take a tenth of a short call. Without
    // that, PyO3 frees a `Py` that is dropped here only later, so the usual calls drop none.
    let called = || unsafe { pointers.call(Python::assume_attached(), method) };
    // No panic may reach Python.
    catch_unwind(AssertUnwindSafe(called)).unwrap_or_else(|_| {
        // SAFETY: as the module's comment says.
        unsafe { ffi::PyErr_SetString(ffi::PyExc_SystemError, c"the core panicked".as_ptr()) };
        null_mut()
    })
}

/// A call as Python makes it: the values of the `names` follow the `count` positional arguments.
struct Pointers {
    tokenizer: *mut ffi::PyObject,
    arguments: *const *mut ffi::PyObject,
    count: usize,
    names: *mut ffi::PyObject,
}

impl Pointers {
    /// Returns a new reference; a null pointer with an error.
    ///
    /// # Safety
    ///
    /// The thread holds the GIL, and the objects live.
    unsafe fn call(&self, py: Python<'_>, method: &Method) -> *mut ffi::PyObject {
        // SAFETY: the caller's promise.
        let called = unsafe {
            let tokenizer = Borrowed::from_ptr(py, self.tokenizer);
            let names = Borrowed::from_ptr_or_opt(py, self.names).map(|it| it.cast_unchecked());
            let named = names.as_deref().map_or(0, PyTupleMethods::len);
            let arguments = (0..self.count + named).map(|at| *self.arguments.add(at));
            let arguments = arguments.map(|it| Borrowed::from_ptr(py, it));
            call(method, tokenizer, arguments, names)
        };
        match called {
            Ok(result) => result.into_ptr(),
            Err(error) => {
                error.restore(py);
                null_mut()
            }
        }
    }
}

/// Calls a method. The last arguments are those with `names`.
fn call<'py, 'a>(
    method: &Method,
    tokenizer: Borrowed<'a, 'py, PyAny>,
    mut arguments: impl ExactSizeIterator<Item = Borrowed<'a, 'py, PyAny>> + Clone,
    names: Option<Borrowed<'a, 'py, PyTuple>>,
) -> PyResult<Bound<'py, PyAny>> {
    let py = tokenizer.py();
    let count = arguments.len() - names.as_deref().map_or(0, PyTupleMethods::len);
    let found = first_and_options(method, arguments.clone(), count, names);
    if let Some(((first, options), tokenizer)) = found.zip(Tokenizer::of(tokenizer)) {
        if let Some(answer) = (method.answer)(&tokenizer, first, options)? {
            return Ok(answer);
        }
    }
    let mut positional = vec![tokenizer];
    positional.extend(arguments.by_ref().take(count));
    let mut named = None;
    if let Some(names) = names {
        let named = named.insert(PyDict::new(py));
        for (name, value) in names.iter_borrowed().zip(arguments) {
            named.set_item(name, value)?;
        }
    }
    // SAFETY: `direct_method` stored the function, before there was a descriptor that calls it.
    let function = unsafe {
        let function = method.function.load(Ordering::Acquire);
        Bound::from_borrowed_ptr(py, function)
    };
    function.call(PyTuple::new(py, positional)?, named.as_ref())
}

/// The first argument, and the others in the order of the parameters. None for arguments that the method lacks, for too many,
/// and for names that are not the interpreter's own strings.
fn first_and_options<'py, 'a>(
    method: &Method,
    mut arguments: impl Iterator<Item = Borrowed<'a, 'py, PyAny>>,
    count: usize,
    names: Option<Borrowed<'a, 'py, PyTuple>>,
) -> Option<(Borrowed<'a, 'py, PyAny>, Options<'a, 'py>)> {
    let mut options = Options::default();
    if !(1..=1 + method.positional).contains(&count) {
        return None;
    }
    let first = arguments.next()?;
    for (option, argument) in options.iter_mut().zip(arguments.by_ref().take(count - 1)) {
        *option = Some(argument);
    }
    if let Some(names) = names {
        let parameters = (method.parameters)(first.py());
        for (name, argument) in names.iter_borrowed().zip(arguments) {
            let mut known = parameters.iter().flatten();
            let at = known.position(|parameter| name.is(*parameter))?;
            if options[at].replace(argument).is_some() {
                return None;
            }
        }
    }
    Some((first, options))
}

/// A tokenizer that has a vocabulary.
struct Tokenizer<'py> {
    /// A `CompiledModel`.
    state: Bound<'py, PyAny>,
    encoder: Bound<'py, Encoder>,
}

impl<'py> Tokenizer<'py> {
    fn of(tokenizer: Borrowed<'_, 'py, PyAny>) -> Option<Self> {
        // SAFETY: the class has the descriptor, which checks that; `direct_method` checks the class.
        let base = unsafe { tokenizer.cast_unchecked::<TokenizerBase>() };
        let (state, encoder) = TokenizerBase::compiled(&base)?;
        Some(Self { state, encoder })
    }

    /// What `finish` makes of the ids of a text with its options; None for arguments that the function takes.
    fn encoded<T>(
        &self,
        text: Borrowed<'_, 'py, PyAny>,
        options: Options<'_, 'py>,
        memory: Memory,
        finish: impl FnOnce(&Encoder, Vec<u32>) -> PyResult<Bound<'py, T>>,
    ) -> Answered<'py> {
        let Some((text, special, added)) = self.request(&text, options)? else {
            return Ok(None);
        };
        let (encoder, py) = (self.encoder.get(), self.encoder.py());
        let ids = encoder.ids(py, text, &special, &added, memory)?;
        Ok(Some(finish(encoder, ids)?.into_any()))
    }

    /// A text, the special tokens to find in it, and the ids before and after its own.
    fn request<'a>(
        &self,
        text: &'a Bound<'py, PyAny>,
        [adds, allowed, disallowed, threads]: Options<'_, 'py>,
    ) -> PyResult<Option<(TextSource<'a>, Special, PrefixSuffix)>> {
        let encoder = self.encoder.get();
        let (Some(threads), Ok(text), Some(adds), Some(special)) = (
            threads.map_or(Some(1), thread_count),
            text.cast_exact::<PyString>(),
            flag(adds),
            special(allowed, encoder),
        ) else {
            return Ok(None);
        };
        // Where the layout of strings is not known, a text with surrogates has no UTF-8.
        let utf8 = || Some(Text::Str(text.to_str().ok()?).into());
        let Some(text) = strings::source_of(text).or_else(utf8) else {
            return Ok(None);
        };
        if threads > 1 && text.len() > MAX_FOR_ONE_THREAD {
            return Ok(None);
        }
        if !disallowed.is_none_or(is_empty_tuple) {
            let (Some(disallowed), TextSource::Text(text)) =
                (others(disallowed, &special, encoder), text)
            else {
                return Ok(None);
            };
            // The function names the token that it finds.
            if disallowed != Special::None
                && encoder
                    .find_special_in(self.encoder.py(), text, &disallowed)?
                    .is_some()
            {
                return Ok(None);
            }
        }
        let mut added = PrefixSuffix::default();
        if adds {
            let name = intern!(self.state.py(), "prefix_suffix_ids");
            added = self.state.getattr(name)?.extract()?;
        }
        Ok(Some((text, special, added)))
    }
}

fn is_empty_tuple(argument: Borrowed<'_, '_, PyAny>) -> bool {
    let tuple = argument.cast_exact::<PyTuple>();
    tuple.is_ok_and(|tuple| tuple.is_empty())
}

/// The value of `threads`, if it is a small number.
fn thread_count(argument: Borrowed<'_, '_, PyAny>) -> Option<u16> {
    let is_int = argument.is_exact_instance_of::<PyInt>();
    let threads = is_int.then(|| argument.extract().ok()).flatten();
    threads.filter(|&threads| threads > 0)
}

/// The value of a `bool` whose default is False; None for another type.
fn flag(argument: Option<Borrowed<'_, '_, PyAny>>) -> Option<bool> {
    let Some(argument) = argument else {
        return Some(false);
    };
    Some(argument.cast_exact::<PyBool>().ok()?.is_true())
}

/// The value of `allowed_special`; None for one that the function explains, such as a set with an unknown token.
fn special(argument: Option<Borrowed<'_, '_, PyAny>>, encoder: &Encoder) -> Option<Special> {
    let Some(argument) = argument else {
        return Some(Special::None);
    };
    if let Ok(word) = argument.cast_exact::<PyString>() {
        return match word.to_str().ok()? {
            "none" => Some(Special::None),
            "all" => Some(Special::All),
            _ => None,
        };
    }
    let is_set =
        argument.is_exact_instance_of::<PySet>() || argument.is_exact_instance_of::<PyFrozenSet>();
    let known = encoder.core.model().added();
    if !is_set || known.len() > MAX_SEARCHED_TOKENS {
        return None;
    }
    let mut contents = FxHashSet::default();
    for content in argument.try_iter().ok()? {
        let content = content.ok()?;
        let content = content.cast_exact::<PyString>().ok()?.to_str().ok()?;
        let mut special = known.iter().filter(|token| token.special);
        special.find(|token| token.content == content)?;
        contents.insert(content.to_owned());
    }
    Some(contents.into())
}

/// All special tokens but the allowed ones, if `disallowed_special` is `"all"`; None for another value.
fn others(
    disallowed: Option<Borrowed<'_, '_, PyAny>>,
    allowed: &Special,
    encoder: &Encoder,
) -> Option<Special> {
    if disallowed?.cast_exact::<PyString>().ok()?.to_str().ok()? != "all" {
        return None;
    }
    let known = encoder.core.model().added();
    match allowed {
        Special::None => Some(Special::All),
        Special::All => Some(Special::None),
        Special::Only(_) if known.len() > MAX_LISTED_TOKENS => None,
        Special::Only(allowed) => {
            let contents = known.iter().filter(|token| token.special);
            let contents = contents.map(|token| token.content.clone());
            let others = contents.filter(|content| !allowed.contains(content));
            Some(others.collect::<FxHashSet<_>>().into())
        }
    }
}

fn encode<'py>(
    tokenizer: &Tokenizer<'py>,
    text: Borrowed<'_, 'py, PyAny>,
    options: Options<'_, 'py>,
) -> Answered<'py> {
    tokenizer.encoded(text, options, Memory::New, |encoder, ids| {
        encoder.list_of(text.py(), ids)
    })
}

fn encode_to_numpy<'py>(
    tokenizer: &Tokenizer<'py>,
    text: Borrowed<'_, 'py, PyAny>,
    options: Options<'_, 'py>,
) -> Answered<'py> {
    tokenizer.encoded(text, options, Memory::Pooled, |encoder, ids| {
        encoder.array_of(text.py(), ids)
    })
}

fn count_tokens<'py>(
    tokenizer: &Tokenizer<'py>,
    text: Borrowed<'_, 'py, PyAny>,
    options: Options<'_, 'py>,
) -> Answered<'py> {
    let py = text.py();
    let Some((text, special, (prefix, suffix))) = tokenizer.request(&text, options)? else {
        return Ok(None);
    };
    let count = tokenizer.encoder.get().count_ids(py, text, &special)?;
    let count = objects::integer(py, count + prefix.len() + suffix.len())?;
    Ok(Some(count.into_any()))
}

/// The function names ids that are not integers in its error.
fn decode<'py>(
    tokenizer: &Tokenizer<'py>,
    ids: Borrowed<'_, 'py, PyAny>,
    [skip, errors, ..]: Options<'_, 'py>,
) -> Answered<'py> {
    let py = ids.py();
    let is_array = || {
        ids.cast_exact::<PyUntypedArray>()
            .is_ok_and(|it| it.ndim() == 1)
    };
    let is_usual = ids.is_exact_instance_of::<PyList>() || is_array();
    let (true, Some(skip), None) = (is_usual, flag(skip), errors) else {
        return Ok(None);
    };
    let encoder = tokenizer.encoder.get();
    let text = ids
        .extract()
        .and_then(|ids| encoder.decode_text(py, ids, skip, "replace"));
    match text {
        Ok(text) => Ok(Some(text.into_any())),
        Err(error) if error.get_type(py).name()? == "ArgumentTypeError" => Ok(None),
        Err(error) => Err(error),
    }
}
