//! How known releases of CPython lay out lists, integers, tuples and strings in memory.
//!
//! Through the stable ABI, an item of a list costs a call or two: more than finding its id. The releases that are tested
//! share one layout, which `items.rs`, `integers.rs` and `strings.rs` use. Other releases use the functions of the stable
//! ABI.

use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyInt, PyList, PyString, PyTuple};
use std::mem::offset_of;

/// The tested versions.
const TESTED_VERSIONS: std::ops::RangeInclusive<(u8, u8)> = (3, 10)..=(3, 13);

/// `PyObject`.
#[repr(C)]
pub struct Object {
    pub references: isize,
    pub class: *mut ffi::PyTypeObject,
}

/// `PyListObject`.
#[repr(C)]
pub struct List {
    object: Object,
    pub length: isize,
    pub items: *mut *mut ffi::PyObject,
    allocated: isize,
}

/// `PyTupleObject` of two items, after the zeros with which `PyGC_Head` says that the garbage collector does not visit
/// the object.
#[repr(C)]
pub struct Pair {
    pub collector: [usize; 2],
    pub object: Object,
    pub length: isize,
    pub items: [*mut ffi::PyObject; 2],
}

/// The beginning of `PyASCIIObject`, which every `str` has.
#[repr(C)]
pub struct Str {
    object: Object,
    /// The number of code points.
    pub length: isize,
    hash: isize,
    /// Bits 2 to 4: the bytes of a code unit. Bit 5: the units follow the object. Bit 6: they are ASCII.
    pub state: u32,
}

/// `PyLongObject` of one digit: an `int` from 0 to [`MAX_DIGIT`].
#[repr(C)]
pub struct Digit {
    pub object: Object,
    /// The number of digits, with the sign in a form of the release.
    pub tag: usize,
    pub digit: u32,
}

/// The greatest integer of one digit.
pub const MAX_DIGIT: usize = (1 << 30) - 1;

/// What differs between the releases whose objects have the layouts of this file.
#[derive(Clone, Copy)]
pub struct Layout {
    /// The tag of zero.
    tag_of_zero: usize,
    /// The tag of the other integers of one digit.
    pub tag: usize,
    /// Where the text of an ASCII `str` begins. Another one has the length of its UTF-8 there, and then its address.
    pub ascii: usize,
    /// Where the code units of another `str` begin.
    pub units: usize,
}

impl Layout {
    /// The layout of this interpreter's objects, if it is known.
    pub fn of(py: Python<'_>) -> Option<Self> {
        static LAYOUT: PyOnceLock<Option<Layout>> = PyOnceLock::new();
        // An error, such as a lack of memory, is not remembered.
        let found = LAYOUT.get_or_try_init(py, || Self::find(py));
        found.ok().copied().flatten()
    }

    fn find(py: Python<'_>) -> PyResult<Option<Self>> {
        let version = py.version_info();
        let size = |class: Bound<'_, PyAny>, name| class.getattr(name)?.extract::<usize>();
        let tuple = py.get_type::<PyTuple>();
        let pair_without_items = offset_of!(Pair, items) - offset_of!(Pair, object);
        let sys = py.import("sys")?;
        let digits = sys.getattr("int_info")?;
        // Before 3.12, a `str` may also have text of C's `wchar_t`.
        let ascii = if version.minor < 12 { 48 } else { 40 };
        let units = ascii + if version.minor < 12 { 24 } else { 16 };
        // Builds that trace references have this function, and must know each object.
        let is_known = !sys.hasattr("getobjects")?
            && TESTED_VERSIONS.contains(&(version.major, version.minor))
            && size(py.get_type::<PyList>().into_any(), "__basicsize__")? == size_of::<List>()
            && size(tuple.clone().into_any(), "__basicsize__")? == pair_without_items
            && size(tuple.into_any(), "__itemsize__")? == size_of::<*mut ffi::PyObject>()
            && size(py.get_type::<PyInt>().into_any(), "__basicsize__")?
                == offset_of!(Digit, digit)
            && size(digits, "bits_per_digit")? == 30
            && size(py.get_type::<PyString>().into_any(), "__basicsize__")?
                == units + size_of::<*const u8>();
        // Since 3.12, the lowest three bits are the sign.
        let (tag_of_zero, tag) = if version.minor < 12 {
            (0, 1)
        } else {
            (1, 1 << 3)
        };
        Ok(is_known.then_some(Self {
            tag_of_zero,
            tag,
            ascii,
            units,
        }))
    }

    /// An `int` of one digit, with one reference.
    pub fn integer(self, digit: u32) -> Digit {
        debug_assert!(digit as usize <= MAX_DIGIT);
        Digit {
            object: Object {
                references: 1,
                class: &raw mut ffi::PyLong_Type,
            },
            tag: if digit == 0 {
                self.tag_of_zero
            } else {
                self.tag
            },
            digit,
        }
    }
}
