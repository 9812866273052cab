//! The Arrow C data and C stream interfaces, and the capsules that carry their structures in Python.
//!
//! Written by hand: two structures and a stream of them. The crates `arrow-array`, `-data`, `-schema` and `-buffer` 60.1 add
//! 35 crates and 37 seconds of processor time to a build, before linking, to read and write these structures.
//!
//! `unsafe`: the structures are raw memory of another library. What it says about them is checked where the interface
//! permits that: lengths, counts, null pointers, offsets, positions in buffers. That an address has as many bytes as the
//! interface demands cannot be checked, and nor can that nobody changes them: every reader of Arrow memory relies on it.
//! A structure is moved out of its capsule, owned by one value here, and released once, on any thread, as the interface
//! permits. Specification: <https://arrow.apache.org/docs/format/CDataInterface.html>.

#![allow(unsafe_code)]

use crate::call::exception;
use bpe_tokenizer_core::{Error, Result};
use pyo3::ffi;
use pyo3::prelude::*;
use std::ffi::{c_char, c_int, c_void, CStr};
use std::sync::Arc;

/// Levels of nested types that are read. Texts and ids need three: a struct, a list, its items.
const MAX_DEPTH: usize = 8;
/// Longer arrays would exceed an address space, whatever their type.
const MAX_ROWS: usize = isize::MAX as usize / 128;

/// `struct ArrowSchema`.
#[repr(C)]
struct CSchema {
    format: *const c_char,
    name: *const c_char,
    metadata: *const c_char,
    flags: i64,
    n_children: i64,
    children: *mut *mut CSchema,
    dictionary: *mut CSchema,
    release: Option<unsafe extern "C" fn(*mut CSchema)>,
    private_data: *mut c_void,
}

/// `struct ArrowArray`.
#[repr(C)]
struct CArray {
    length: i64,
    null_count: i64,
    offset: i64,
    n_buffers: i64,
    n_children: i64,
    buffers: *const *const c_void,
    children: *mut *mut CArray,
    dictionary: *mut CArray,
    release: Option<unsafe extern "C" fn(*mut CArray)>,
    private_data: *mut c_void,
}

/// `struct ArrowArrayStream`.
#[repr(C)]
struct CStream {
    get_schema: Option<unsafe extern "C" fn(*mut CStream, *mut CSchema) -> c_int>,
    get_next: Option<unsafe extern "C" fn(*mut CStream, *mut CArray) -> c_int>,
    get_last_error: Option<unsafe extern "C" fn(*mut CStream) -> *const c_char>,
    release: Option<unsafe extern "C" fn(*mut CStream)>,
    private_data: *mut c_void,
}

/// A structure that its consumer releases.
trait Structure: Sized {
    /// The name of capsules with this structure.
    const CAPSULE: &'static CStr;

    /// A released structure, to be filled.
    fn empty() -> Self;

    /// The callback that releases the structure; None if it is released.
    fn release(&mut self) -> &mut Option<unsafe extern "C" fn(*mut Self)>;
}

macro_rules! structure {
    ($type:ident, $capsule:literal, { $($field:ident: $value:expr),* }) => {
        impl Structure for $type {
            const CAPSULE: &'static CStr = $capsule;

            fn empty() -> Self {
                Self { $($field: $value,)* release: None, private_data: std::ptr::null_mut() }
            }

            fn release(&mut self) -> &mut Option<unsafe extern "C" fn(*mut Self)> {
                &mut self.release
            }
        }
    };
}

structure!(CSchema, c"arrow_schema", {
    format: std::ptr::null(), name: std::ptr::null(), metadata: std::ptr::null(), flags: 0, n_children: 0,
    children: std::ptr::null_mut(), dictionary: std::ptr::null_mut()
});
structure!(CArray, c"arrow_array", {
    length: 0, null_count: 0, offset: 0, n_buffers: 0, n_children: 0, buffers: std::ptr::null(),
    children: std::ptr::null_mut(), dictionary: std::ptr::null_mut()
});
structure!(CStream, c"arrow_array_stream", {
    get_schema: None, get_next: None, get_last_error: None
});

/// A structure that this process owns. Released when it is dropped.
#[repr(transparent)]
struct Owned<T: Structure>(T);

// SAFETY: as the module's comment says. Only `Stream`, which is not `Sync`, calls functions of the structure.
unsafe impl<T: Structure> Send for Owned<T> {}
// SAFETY: as the module's comment says. Reading a structure does not change it.
unsafe impl Sync for CArray {}

impl<T: Structure> Owned<T> {
    /// Moves the structure out of a capsule.
    fn take(capsule: &Bound<'_, PyAny>) -> PyResult<Option<Self>> {
        // SAFETY: the interpreter checks that the object is a capsule of this name; its producer, that it holds such a
        // structure. The structure in the capsule becomes a released one, which the capsule's destructor leaves alone.
        unsafe {
            let place =
                ffi::PyCapsule_GetPointer(capsule.as_ptr(), T::CAPSULE.as_ptr()).cast::<T>();
            if place.is_null() {
                let _ = PyErr::fetch(capsule.py());
                let name = T::CAPSULE.to_string_lossy();
                let message =
                    format!("a column of Arrow gave something else than a capsule '{name}'");
                return Err(exception(capsule.py(), "ArgumentTypeError", message));
            }
            let mut taken = Self(std::ptr::replace(place, T::empty()));
            Ok(taken.0.release().is_some().then_some(taken))
        }
    }

    /// A capsule that owns the structure until a consumer moves it out.
    fn into_capsule(self, py: Python<'_>) -> PyResult<Bound<'_, PyAny>> {
        unsafe extern "C" fn destroy<T: Structure>(capsule: *mut ffi::PyObject) {
            // SAFETY: `into_capsule` made the capsule over a box, which nobody else frees.
            unsafe {
                let place = ffi::PyCapsule_GetPointer(capsule, T::CAPSULE.as_ptr());
                if !place.is_null() {
                    drop(Box::from_raw(place.cast::<Owned<T>>()));
                }
            }
        }
        let place = Box::into_raw(Box::new(self));
        // SAFETY: the address is not null; consumers expect the only field of `Owned`, whose layout it has.
        unsafe {
            let name = T::CAPSULE.as_ptr();
            let capsule = ffi::PyCapsule_New(place.cast(), name, Some(destroy::<T>));
            if capsule.is_null() {
                drop(Box::from_raw(place));
            }
            Bound::from_owned_ptr_or_err(py, capsule)
        }
    }
}

impl<T: Structure> Drop for Owned<T> {
    fn drop(&mut self) {
        if let Some(release) = *self.0.release() {
            // SAFETY: the structure is not released yet. The callback marks it as released.
            unsafe { release(&raw mut self.0) };
        }
    }
}

fn broken(problem: impl Into<String>) -> Error {
    Error::Column(problem.into())
}

// Reading

/// The type of a column, from an `ArrowSchema`.
pub struct Type {
    /// The format string, such as `u` for strings.
    pub format: String,
    /// The name of the field.
    pub name: String,
    pub children: Vec<Type>,
    /// The type of the values of a dictionary; the format is that of the indices.
    pub dictionary: Option<Box<Type>>,
}

impl Type {
    fn read(schema: &CSchema, depth: usize) -> Result<Self> {
        if depth == MAX_DEPTH {
            return Err(broken("the type is nested too deeply"));
        }
        let children = usize::try_from(schema.n_children).unwrap_or(0);
        if schema.format.is_null() || (children > 0 && schema.children.is_null()) {
            return Err(broken("the schema lacks its format or its children"));
        }
        // SAFETY: as the module's comment says. Strings end with a zero byte.
        let (format, name) = unsafe { (text_of(schema.format), text_of(schema.name)) };
        let read = |child: *const CSchema| {
            // SAFETY: as the module's comment says. A schema owns its children.
            let child =
                unsafe { child.as_ref() }.ok_or_else(|| broken("the schema lacks a child"))?;
            Self::read(child, depth + 1)
        };
        let children = (0..children).map(|child| {
            // SAFETY: the schema has so many children.
            read(unsafe { *schema.children.add(child) })
        });
        let children = children.collect::<Result<_>>()?;
        let dictionary = match schema.dictionary.is_null() {
            true => None,
            false => Some(Box::new(read(schema.dictionary)?)),
        };
        Ok(Self {
            format,
            name,
            children,
            dictionary,
        })
    }
}

/// A C string; an empty one at a null address.
unsafe fn text_of(address: *const c_char) -> String {
    if address.is_null() {
        return String::new();
    }
    // SAFETY: the caller says that it is a C string.
    unsafe { CStr::from_ptr(address) }
        .to_string_lossy()
        .into_owned()
}

/// An array of another library.
pub struct Array(Owned<CArray>);

impl Array {
    /// The array itself. Its parts are reached from there.
    pub fn root(&self) -> Result<Node<'_>> {
        Node::new(&self.0 .0)
    }
}

/// An array, a child of one, or its dictionary.
#[derive(Clone, Copy)]
pub struct Node<'a> {
    array: &'a CArray,
    pub length: usize,
    /// Rows of the buffers before the first row of the array.
    pub offset: usize,
}

impl<'a> Node<'a> {
    fn new(array: &'a CArray) -> Result<Self> {
        let size = |value: i64| usize::try_from(value).ok().filter(|&rows| rows <= MAX_ROWS);
        match (size(array.length), size(array.offset)) {
            (Some(length), Some(offset)) => Ok(Self {
                array,
                length,
                offset,
            }),
            _ => Err(broken(format!(
                "the array has the length {} and the offset {}",
                array.length, array.offset
            ))),
        }
    }

    /// Whether all rows are valid, as far as the array says.
    pub fn has_no_nulls(&self) -> bool {
        self.array.null_count == 0
    }

    pub fn buffer_count(&self) -> usize {
        usize::try_from(self.array.n_buffers).unwrap_or(0)
    }

    fn address(&self, index: usize) -> Result<*const u8> {
        if index >= self.buffer_count() || self.array.buffers.is_null() {
            return Err(broken(format!("the array has no buffer {index}")));
        }
        // SAFETY: the array has so many addresses of buffers.
        Ok(unsafe { *self.array.buffers.add(index) }.cast())
    }

    /// The first bytes of a buffer; None if the buffer is absent.
    pub fn optional_buffer(&self, index: usize, bytes: usize) -> Result<Option<&'a [u8]>> {
        let address = self.address(index)?;
        // SAFETY: as the module's comment says: the type, the length and the offset demand so many bytes.
        Ok((!address.is_null()).then(|| unsafe { std::slice::from_raw_parts(address, bytes) }))
    }

    /// The first bytes of a buffer.
    pub fn buffer(&self, index: usize, bytes: usize) -> Result<&'a [u8]> {
        if bytes == 0 {
            return Ok(&[]);
        }
        let buffer = self.optional_buffer(index, bytes)?;
        buffer.ok_or_else(|| broken(format!("the array lacks its buffer {index}")))
    }

    /// A part of a struct, a list or another nested array.
    pub fn child(&self, index: usize) -> Result<Self> {
        if index as i64 >= self.array.n_children || self.array.children.is_null() {
            return Err(broken(format!("the array has no child {index}")));
        }
        // SAFETY: as the module's comment says. An array owns its children.
        let child = unsafe { (*self.array.children.add(index)).as_ref() };
        Self::new(child.ok_or_else(|| broken("the array lacks a child"))?)
    }

    /// The values of a dictionary-encoded array.
    pub fn dictionary(&self) -> Result<Self> {
        // SAFETY: as the module's comment says. An array owns its dictionary.
        let dictionary = unsafe { self.array.dictionary.as_ref() };
        Self::new(dictionary.ok_or_else(|| broken("the array lacks its dictionary"))?)
    }
}

/// The type and the array of the capsules that `__arrow_c_array__` returns.
pub fn take_array(
    schema: &Bound<'_, PyAny>,
    array: &Bound<'_, PyAny>,
) -> PyResult<Result<(Type, Array)>> {
    let schema = Owned::<CSchema>::take(schema)?;
    let array = Owned::<CArray>::take(array)?;
    let taken = || {
        let (schema, array) = schema.zip(array).ok_or_else(consumed)?;
        Ok((Type::read(&schema.0, 0)?, Array(array)))
    };
    Ok(taken())
}

fn consumed() -> Error {
    broken("another reader took the array; export it again")
}

/// A stream of arrays of one type.
pub struct Stream(Owned<CStream>);

impl Stream {
    /// The stream of the capsule that `__arrow_c_stream__` returns.
    pub fn take(capsule: &Bound<'_, PyAny>) -> PyResult<Result<Self>> {
        let stream = Owned::<CStream>::take(capsule)?;
        Ok(stream.map(Self).ok_or_else(consumed))
    }

    /// The type of all arrays.
    pub fn schema(&mut self) -> Result<Type> {
        let mut schema = Owned(CSchema::empty());
        let get = self
            .0
             .0
            .get_schema
            .ok_or_else(|| broken("the stream has no schema"))?;
        // SAFETY: as the module's comment says. The stream is not released.
        let code = unsafe { get(&raw mut self.0 .0, &raw mut schema.0) };
        self.check(code)?;
        Type::read(&schema.0, 0)
    }

    /// The next array; None at the end.
    pub fn next(&mut self) -> Result<Option<Array>> {
        let mut array = Owned(CArray::empty());
        let get = self
            .0
             .0
            .get_next
            .ok_or_else(|| broken("the stream has no arrays"))?;
        // SAFETY: as the module's comment says. The stream is not released.
        let code = unsafe { get(&raw mut self.0 .0, &raw mut array.0) };
        self.check(code)?;
        Ok(array.0.release.is_some().then_some(Array(array)))
    }

    fn check(&mut self, code: c_int) -> Result<()> {
        if code == 0 {
            return Ok(());
        }
        // SAFETY: as the module's comment says. The stream is not released; the message lives until the next call.
        let message = unsafe {
            let get = self.0 .0.get_last_error;
            get.map_or(String::new(), |get| text_of(get(&raw mut self.0 .0)))
        };
        let message = bpe_tokenizer_core::error::shorten(message.trim(), 200);
        Err(broken(format!(
            "the stream fails with error {code}: {message}"
        )))
    }
}

// Writing

/// Memory that arrays share, with the address of its first value.
#[derive(Clone)]
pub enum Buffer {
    Absent,
    Bytes(Arc<Vec<u8>>),
    Int32(Arc<Vec<i32>>),
    Int64(Arc<Vec<i64>>),
    Uint32(Arc<Vec<u32>>),
}

/// The content of empty buffers, for consumers that expect an aligned address.
#[repr(align(64))]
struct Aligned([u8; 64]);
static NOTHING: Aligned = Aligned([0; 64]);

impl Buffer {
    fn address(&self) -> *const c_void {
        fn start<T>(values: &[T]) -> *const c_void {
            match values {
                [] => NOTHING.0.as_ptr().cast(),
                values => values.as_ptr().cast(),
            }
        }
        match self {
            Self::Absent => std::ptr::null(),
            Self::Bytes(values) => start(values),
            Self::Int32(values) => start(values),
            Self::Int64(values) => start(values),
            Self::Uint32(values) => start(values),
        }
    }
}

/// The types that are written.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// `list<item: uint32>`
    Lists,
    /// The items of a list.
    Ids,
    Strings,
    LargeStrings,
}

impl Kind {
    fn format(self) -> &'static CStr {
        match self {
            Self::Lists => c"+l",
            Self::Ids => c"I",
            Self::Strings => c"u",
            Self::LargeStrings => c"U",
        }
    }

    fn child(self) -> Option<Self> {
        (self == Self::Lists).then_some(Self::Ids)
    }

    /// The capsule for `__arrow_c_schema__`.
    pub fn to_capsule(self, py: Python<'_>) -> PyResult<Bound<'_, PyAny>> {
        Owned(self.to_schema(c"")).into_capsule(py)
    }

    fn to_schema(self, name: &'static CStr) -> CSchema {
        const NULLABLE: i64 = 2;
        unsafe extern "C" fn release(schema: *mut CSchema) {
            // SAFETY: `to_schema` made the structure and what it points to. A consumer may have moved children out,
            // which leaves released ones.
            unsafe {
                let children = Box::from_raw((*schema).private_data.cast::<Children<CSchema>>());
                drop(children);
                (*schema).release = None;
            }
        }
        let children = self.child().map(|child| child.to_schema(c"item"));
        let mut children = Box::new(Children::new(children));
        CSchema {
            format: self.format().as_ptr(),
            name: name.as_ptr(),
            flags: NULLABLE,
            n_children: children.addresses.len() as i64,
            children: children.addresses.as_mut_ptr(),
            release: Some(release),
            private_data: Box::into_raw(children).cast(),
            ..CSchema::empty()
        }
    }
}

/// The children of a structure: boxes, because a consumer gets their addresses.
struct Children<T: Structure> {
    addresses: Vec<*mut T>,
}

impl<T: Structure> Children<T> {
    fn new(children: impl IntoIterator<Item = T>) -> Self {
        let address = |child| Box::into_raw(Box::new(Owned(child))).cast();
        Self {
            addresses: children.into_iter().map(address).collect(),
        }
    }
}

impl<T: Structure> Drop for Children<T> {
    fn drop(&mut self) {
        for &child in &self.addresses {
            // SAFETY: `new` made the box. Nobody else frees it: a consumer moves its content out at most.
            drop(unsafe { Box::from_raw(child.cast::<Owned<T>>()) });
        }
    }
}

/// An array that other libraries read.
#[derive(Clone)]
pub struct Written {
    pub kind: Kind,
    pub length: usize,
    /// Values of the buffers before the first one of the array.
    pub offset: usize,
    pub nulls: usize,
    pub buffers: Vec<Buffer>,
    pub child: Option<Box<Written>>,
}

/// What a written structure keeps alive.
struct Kept {
    addresses: Vec<*const c_void>,
    _buffers: Vec<Buffer>,
    children: Children<CArray>,
}

impl Written {
    /// The capsule for `__arrow_c_array__`.
    pub fn to_capsule<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        Owned(self.to_array()).into_capsule(py)
    }

    fn to_array(&self) -> CArray {
        unsafe extern "C" fn release(array: *mut CArray) {
            // SAFETY: `to_array` made the structure and what it points to. A consumer may have moved children out,
            // which leaves released ones.
            unsafe {
                drop(Box::from_raw((*array).private_data.cast::<Kept>()));
                (*array).release = None;
            }
        }
        let mut kept = Box::new(Kept {
            addresses: self.buffers.iter().map(Buffer::address).collect(),
            _buffers: self.buffers.clone(),
            children: Children::new(self.child.iter().map(|child| child.to_array())),
        });
        CArray {
            length: self.length as i64,
            null_count: self.nulls as i64,
            offset: self.offset as i64,
            n_buffers: kept.addresses.len() as i64,
            buffers: kept.addresses.as_ptr(),
            n_children: kept.children.addresses.len() as i64,
            children: kept.children.addresses.as_mut_ptr(),
            release: Some(release),
            private_data: Box::into_raw(kept).cast(),
            ..CArray::empty()
        }
    }
}

/// The capsule for `__arrow_c_stream__`: arrays of one kind, in sequence.
pub fn stream_capsule(
    py: Python<'_>,
    kind: Kind,
    arrays: Vec<Written>,
) -> PyResult<Bound<'_, PyAny>> {
    struct Arrays {
        kind: Kind,
        rest: std::vec::IntoIter<Written>,
    }
    unsafe extern "C" fn get_schema(stream: *mut CStream, schema: *mut CSchema) -> c_int {
        // SAFETY: `stream_capsule` made the stream. The consumer gives an address to write to.
        unsafe {
            let arrays = &*(*stream).private_data.cast::<Arrays>();
            schema.write(arrays.kind.to_schema(c""));
        }
        0
    }
    unsafe extern "C" fn get_next(stream: *mut CStream, array: *mut CArray) -> c_int {
        // SAFETY: as in `get_schema`.
        unsafe {
            let arrays = &mut *(*stream).private_data.cast::<Arrays>();
            let next = arrays.rest.next();
            array.write(next.map_or_else(CArray::empty, |next| next.to_array()));
        }
        0
    }
    unsafe extern "C" fn get_last_error(_: *mut CStream) -> *const c_char {
        std::ptr::null() // nothing fails
    }
    unsafe extern "C" fn release(stream: *mut CStream) {
        // SAFETY: `stream_capsule` made the stream and what it points to.
        unsafe {
            drop(Box::from_raw((*stream).private_data.cast::<Arrays>()));
            (*stream).release = None;
        }
    }
    let rest = arrays.into_iter();
    let stream = CStream {
        get_schema: Some(get_schema),
        get_next: Some(get_next),
        get_last_error: Some(get_last_error),
        release: Some(release),
        private_data: Box::into_raw(Box::new(Arrays { kind, rest })).cast(),
    };
    Owned(stream).into_capsule(py)
}
