//! The rows of an imported array: texts, or lists of ids.

use super::interface::{Array, Node, Type};
use crate::rows::Rows;
use bpe_tokenizer_core::error::shorten;
use bpe_tokenizer_core::{Error, Result};
use std::ops::Range;

/// The longest text in a view itself.
const MAX_INLINE: usize = 12;

fn broken(problem: impl Into<String>) -> Error {
    Error::Column(problem.into())
}

/// The type of the column: of a struct with one field, such as a record batch, that of the field.
pub fn column_type(given: &Type) -> Result<&Type> {
    if given.format != "+s" {
        return Ok(given);
    }
    match given.children.as_slice() {
        [only] => Ok(only),
        [] => Err(broken("the table has no columns")),
        fields => {
            let names: Vec<_> = fields
                .iter()
                .map(|field| format!("'{}'", field.name))
                .collect();
            let names = shorten(&names.join(", "), 160);
            let count = fields.len();
            Err(broken(format!(
                "the table has {count} columns; select one of them: {names}"
            )))
        }
    }
}

/// The name of a type in messages.
pub fn type_name(given: &Type) -> String {
    let name = match given.format.as_str() {
        "n" => "null",
        "b" => "bool",
        "c" => "int8",
        "C" => "uint8",
        "s" => "int16",
        "S" => "uint16",
        "i" => "int32",
        "I" => "uint32",
        "l" => "int64",
        "L" => "uint64",
        "e" => "float16",
        "f" => "float32",
        "g" => "float64",
        "u" => "string",
        "U" => "large_string",
        "vu" => "string_view",
        "z" => "binary",
        "Z" => "large_binary",
        "vz" => "binary_view",
        "tdD" => "date32",
        "tdm" => "date64",
        "+s" => "struct",
        "+m" => "map",
        "+r" => "run_end_encoded",
        other if other.starts_with("ts") => "timestamp",
        other if other.starts_with("w:") => "fixed_size_binary",
        other => {
            let list = match other.split(':').next() {
                Some("+l") => "list",
                Some("+L") => "large_list",
                Some("+vl") => "list_view",
                Some("+vL") => "large_list_view",
                Some("+w") => "fixed_size_list",
                _ => return format!("the type {}", shorten(other, 40)),
            };
            let items = given.children.first().map(type_name);
            return format!("{list}<{}>", shorten(&items.unwrap_or_default(), 40));
        }
    };
    match &given.dictionary {
        Some(values) => format!("dictionary<{}>", type_name(values)),
        None => name.to_owned(),
    }
}

/// The bits that tell which rows are valid.
#[derive(Clone, Copy)]
struct Bits<'a> {
    bytes: &'a [u8],
    start: usize,
}

impl Bits<'_> {
    fn get(self, row: usize) -> bool {
        let bit = self.start + row;
        self.bytes[bit / 8] >> (bit % 8) & 1 == 1
    }
}

/// The rows of an array that a column uses: all, or a slice of them.
#[derive(Clone, Copy)]
struct Slice<'a> {
    node: Node<'a>,
    /// The first row in the buffers.
    start: usize,
    length: usize,
    /// The bits of the array and of its parent.
    valid: [Option<Bits<'a>>; 2],
}

impl<'a> Slice<'a> {
    /// All rows of an array.
    fn whole(node: Node<'a>, has_bits: bool) -> Result<Self> {
        let mut slice = Self {
            node,
            start: node.offset,
            length: node.length,
            valid: [None; 2],
        };
        if has_bits {
            slice.valid[0] = slice.bits()?;
        }
        Ok(slice)
    }

    fn bits(&self) -> Result<Option<Bits<'a>>> {
        if self.length == 0 || self.node.has_no_nulls() {
            return Ok(None);
        }
        let bytes = self
            .node
            .optional_buffer(0, (self.start + self.length).div_ceil(8))?;
        let start = self.start;
        Ok(bytes.map(|bytes| Bits { bytes, start }))
    }

    /// The rows of the only field of a struct that belong to its rows.
    fn of_struct(parent: Node<'a>, has_bits: bool) -> Result<Self> {
        let node = parent.child(0)?;
        if node.length < parent.offset + parent.length {
            return Err(broken(format!(
                "the struct has {} rows, its field {}",
                parent.offset + parent.length,
                node.length
            )));
        }
        let mut slice = Self {
            node,
            start: node.offset + parent.offset,
            length: parent.length,
            valid: [None, Self::whole(parent, true)?.valid[0]],
        };
        if has_bits {
            slice.valid[0] = slice.bits()?;
        }
        Ok(slice)
    }

    fn may_have_nulls(&self) -> bool {
        self.valid.iter().any(Option::is_some)
    }

    fn is_valid(&self, row: usize) -> bool {
        let valid = |bits: &Option<Bits<'_>>| bits.is_none_or(|bits| bits.get(row));
        self.valid.iter().all(valid)
    }

    /// The values of a fixed size in a buffer. They may lie at any address.
    fn values<const SIZE: usize>(&self, index: usize, extra: usize) -> Result<&'a [[u8; SIZE]]> {
        if self.length == 0 {
            return Ok(&[]);
        }
        let end = self.start + self.length + extra;
        let bytes = self.node.buffer(index, SIZE * end)?;
        Ok(&bytes.as_chunks().0[self.start..])
    }
}

fn slice_of<'a>(array: &'a Array, given: &Type, has_bits: bool) -> Result<Slice<'a>> {
    let root = array.root()?;
    match given.format.as_str() {
        "+s" => Slice::of_struct(root, has_bits),
        _ => Slice::whole(root, has_bits),
    }
}

// Texts

/// A column of texts.
pub enum Texts<'a> {
    Plain(PlainTexts<'a>),
    Dictionary(DictionaryTexts<'a>),
}

impl<'a> Texts<'a> {
    /// Whether a column of this type holds texts.
    pub fn accepts(column: &Type) -> bool {
        let is_text = |given: &Type| {
            matches!(
                given.format.as_str(),
                "u" | "U" | "vu" | "z" | "Z" | "vz" | "n"
            )
        };
        match &column.dictionary {
            None => is_text(column),
            Some(values) => {
                is_text(values) && Integers::accepts(column) && values.dictionary.is_none()
            }
        }
    }

    /// The rows of an array of this type.
    pub fn new(array: &'a Array, given: &Type) -> Result<Self> {
        let column = column_type(given)?;
        if !Self::accepts(column) {
            return Err(broken(format!(
                "a column of {} does not hold texts",
                type_name(column)
            )));
        }
        let has_bits = column.format != "n";
        let slice = slice_of(array, given, has_bits)?;
        let Some(values) = &column.dictionary else {
            return PlainTexts::new(slice, column).map(Self::Plain);
        };
        let dictionary = Slice::whole(slice.node.dictionary()?, values.format != "n")?;
        Ok(Self::Dictionary(DictionaryTexts {
            indices: Integers::new(&slice, column)?,
            values: PlainTexts::new(dictionary, values)?,
            slice,
        }))
    }
}

/// Texts, each with its bytes.
pub struct PlainTexts<'a> {
    slice: Slice<'a>,
    layout: Layout<'a>,
}

enum Layout<'a> {
    Nulls,
    Offsets32(&'a [[u8; 4]], &'a [u8]),
    Offsets64(&'a [[u8; 8]], &'a [u8]),
    Views(&'a [[u8; 16]], Vec<&'a [u8]>),
}

impl<'a> PlainTexts<'a> {
    fn new(slice: Slice<'a>, column: &Type) -> Result<Self> {
        let layout = match column.format.as_str() {
            "n" => Layout::Nulls,
            "u" | "z" => {
                let offsets = slice.values(1, 1)?;
                let end = offsets
                    .last()
                    .map_or(0, |&end| i64::from(i32::from_ne_bytes(end)));
                Layout::Offsets32(offsets, text_data(&slice, end)?)
            }
            "U" | "Z" => {
                let offsets = slice.values(1, 1)?;
                let end = offsets.last().map_or(0, |&end| i64::from_ne_bytes(end));
                Layout::Offsets64(offsets, text_data(&slice, end)?)
            }
            _ => {
                let views = slice.values(1, 0)?;
                let buffers = if views.is_empty() {
                    Vec::new()
                } else {
                    view_buffers(&slice.node)?
                };
                Layout::Views(views, buffers)
            }
        };
        Ok(Self { slice, layout })
    }
}

/// The bytes of all texts, the last of which ends at `end`.
fn text_data<'a>(slice: &Slice<'a>, end: i64) -> Result<&'a [u8]> {
    let end = usize::try_from(end)
        .ok()
        .filter(|&end| isize::try_from(end).is_ok());
    let end = end.ok_or_else(|| broken("the last offset of the texts is negative"))?;
    slice.node.buffer(2, end)
}

/// The buffers of long texts: between the views and the sizes of these buffers.
fn view_buffers<'a>(node: &Node<'a>) -> Result<Vec<&'a [u8]>> {
    let count = node.buffer_count().saturating_sub(3);
    let sizes = node.buffer(count + 2, 8 * count)?.as_chunks::<8>().0;
    let buffers = (2..).zip(sizes).map(|(index, &size)| {
        let size = usize::try_from(i64::from_ne_bytes(size));
        let size = size.map_err(|_| broken("the size of a buffer is negative"))?;
        node.buffer(index, size)
    });
    buffers.collect()
}

impl Rows for PlainTexts<'_> {
    fn len(&self) -> usize {
        self.slice.length
    }

    fn estimated_bytes(&self) -> usize {
        match &self.layout {
            Layout::Nulls => 0,
            Layout::Offsets32(_, data) | Layout::Offsets64(_, data) => data.len(),
            Layout::Views(views, buffers) => {
                let bytes: usize = buffers.iter().map(|buffer| buffer.len()).sum();
                size_of_val(*views).saturating_add(bytes)
            }
        }
    }

    #[inline]
    fn row(&self, row: usize) -> Result<Option<&[u8]>> {
        if !self.slice.is_valid(row) {
            return Ok(None);
        }
        match &self.layout {
            Layout::Nulls => Ok(None),
            Layout::Offsets32(offsets, data) => {
                let [start, end] = [offsets[row], offsets[row + 1]].map(i32::from_ne_bytes);
                between(data, i64::from(start), i64::from(end)).map(Some)
            }
            Layout::Offsets64(offsets, data) => {
                let [start, end] = [offsets[row], offsets[row + 1]].map(i64::from_ne_bytes);
                between(data, start, end).map(Some)
            }
            Layout::Views(views, buffers) => viewed(&views[row], buffers).map(Some),
        }
    }
}

fn between(data: &[u8], start: i64, end: i64) -> Result<&[u8]> {
    let range = usize::try_from(start).ok().zip(usize::try_from(end).ok());
    let text = range.and_then(|(start, end)| data.get(start..end));
    text.ok_or_else(|| {
        let bytes = data.len();
        broken(format!(
            "the offsets {start} and {end} do not ascend within {bytes} bytes"
        ))
    })
}

fn viewed<'a>(view: &'a [u8; 16], buffers: &[&'a [u8]]) -> Result<&'a [u8]> {
    let number = |at: usize| {
        let bytes = view[at..]
            .first_chunk()
            .map(|&bytes| i32::from_ne_bytes(bytes));
        bytes.and_then(|number| usize::try_from(number).ok())
    };
    let text = number(0).and_then(|length| match length {
        0..=MAX_INLINE => view.get(4..4 + length),
        length => {
            let start = number(12)?;
            buffers.get(number(8)?)?.get(start..start + length)
        }
    });
    text.ok_or_else(|| broken("the view leads out of the buffers of the column"))
}

/// Texts of which each distinct one is in a dictionary.
pub struct DictionaryTexts<'a> {
    slice: Slice<'a>,
    indices: Integers<'a>,
    pub values: PlainTexts<'a>,
}

impl DictionaryTexts<'_> {
    /// The position of a row's text in the dictionary; None for a null.
    pub fn index(&self, row: usize) -> Result<Option<usize>> {
        if !self.slice.is_valid(row) {
            return Ok(None);
        }
        let (index, values) = (self.indices.get(row), self.values.len());
        let position = usize::try_from(index)
            .ok()
            .filter(|&position| position < values);
        position.map(Some).ok_or_else(|| {
            broken(format!(
                "the index {index} exceeds a dictionary of {values} texts"
            ))
        })
    }
}

impl Rows for DictionaryTexts<'_> {
    fn len(&self) -> usize {
        self.slice.length
    }

    fn estimated_bytes(&self) -> usize {
        self.values.estimated_bytes()
    }

    fn row(&self, row: usize) -> Result<Option<&[u8]>> {
        match self.index(row)? {
            None => Ok(None),
            Some(index) => self.values.row(index),
        }
    }
}

// Ids

/// Integers of any width.
enum Integers<'a> {
    Int8(&'a [[u8; 1]]),
    Uint8(&'a [[u8; 1]]),
    Int16(&'a [[u8; 2]]),
    Uint16(&'a [[u8; 2]]),
    Int32(&'a [[u8; 4]]),
    Uint32(&'a [[u8; 4]]),
    Int64(&'a [[u8; 8]]),
    Uint64(&'a [[u8; 8]]),
}

/// Applies an expression to the slice of values and the function that reads one.
macro_rules! on_integers {
    ($integers:expr, |$values:ident, $read:ident| $do:expr) => {
        match $integers {
            Integers::Int8($values) => {
                let $read = i8::from_ne_bytes;
                $do
            }
            Integers::Uint8($values) => {
                let $read = u8::from_ne_bytes;
                $do
            }
            Integers::Int16($values) => {
                let $read = i16::from_ne_bytes;
                $do
            }
            Integers::Uint16($values) => {
                let $read = u16::from_ne_bytes;
                $do
            }
            Integers::Int32($values) => {
                let $read = i32::from_ne_bytes;
                $do
            }
            Integers::Uint32($values) => {
                let $read = u32::from_ne_bytes;
                $do
            }
            Integers::Int64($values) => {
                let $read = i64::from_ne_bytes;
                $do
            }
            Integers::Uint64($values) => {
                let $read = u64::from_ne_bytes;
                $do
            }
        }
    };
}

impl<'a> Integers<'a> {
    fn accepts(column: &Type) -> bool {
        matches!(
            column.format.as_str(),
            "c" | "C" | "s" | "S" | "i" | "I" | "l" | "L"
        )
    }

    fn new(slice: &Slice<'a>, column: &Type) -> Result<Self> {
        Ok(match column.format.as_str() {
            "c" => Self::Int8(slice.values(1, 0)?),
            "C" => Self::Uint8(slice.values(1, 0)?),
            "s" => Self::Int16(slice.values(1, 0)?),
            "S" => Self::Uint16(slice.values(1, 0)?),
            "i" => Self::Int32(slice.values(1, 0)?),
            "I" => Self::Uint32(slice.values(1, 0)?),
            "l" => Self::Int64(slice.values(1, 0)?),
            _ => Self::Uint64(slice.values(1, 0)?),
        })
    }

    fn get(&self, row: usize) -> i128 {
        on_integers!(self, |values, read| i128::from(read(values[row])))
    }

    /// Appends the ids in a range. Returns the position of the first value that is not an id.
    fn append(&self, range: Range<usize>, ids: &mut Vec<u32>) -> Option<usize> {
        on_integers!(self, |values, read| append(&values[range], read, ids))
    }
}

/// As [`Integers::append`], for the values of one width.
fn append<T, const SIZE: usize>(
    values: &[[u8; SIZE]],
    read: impl Fn([u8; SIZE]) -> T,
    ids: &mut Vec<u32>,
) -> Option<usize>
where
    u32: TryFrom<T>,
{
    for (position, &value) in values.iter().enumerate() {
        match u32::try_from(read(value)) {
            Ok(id) => ids.push(id),
            Err(_) => return Some(position),
        }
    }
    None
}

/// Where the lists of a column are among its items.
enum Ranges<'a> {
    Offsets32(&'a [[u8; 4]]),
    Offsets64(&'a [[u8; 8]]),
    Views32(&'a [[u8; 4]], &'a [[u8; 4]]),
    Views64(&'a [[u8; 8]], &'a [[u8; 8]]),
    Fixed(usize),
    Nulls,
}

/// A column of lists of ids.
pub struct IdLists<'a> {
    slice: Slice<'a>,
    ranges: Ranges<'a>,
    items: Slice<'a>,
    ids: Integers<'a>,
}

impl<'a> IdLists<'a> {
    /// Whether a column of this type holds lists of ids.
    pub fn accepts(column: &Type) -> bool {
        let is_list = match column.format.split_once(':') {
            None => matches!(column.format.as_str(), "+l" | "+L" | "+vl" | "+vL"),
            Some((list, size)) => list == "+w" && size.parse::<u32>().is_ok(),
        };
        let is_ids = |items: &Type| {
            items.dictionary.is_none() && (Integers::accepts(items) || items.format == "n")
        };
        column.format == "n" || is_list && column.children.first().is_some_and(is_ids)
    }

    /// The rows of an array of this type.
    pub fn new(array: &'a Array, given: &Type) -> Result<Self> {
        let column = column_type(given)?;
        if !Self::accepts(column) {
            return Err(broken(format!(
                "a column of {} does not hold lists of ids",
                type_name(column)
            )));
        }
        let slice = slice_of(array, given, column.format != "n")?;
        let ranges = match column.format.split_once(':') {
            Some((_, size)) => Ranges::Fixed(size.parse().unwrap_or(0)),
            None => match column.format.as_str() {
                "+l" => Ranges::Offsets32(slice.values(1, 1)?),
                "+L" => Ranges::Offsets64(slice.values(1, 1)?),
                "+vl" => Ranges::Views32(slice.values(1, 0)?, slice.values(2, 0)?),
                "+vL" => Ranges::Views64(slice.values(1, 0)?, slice.values(2, 0)?),
                _ => Ranges::Nulls,
            },
        };
        let (items, ids) = match (&ranges, column.children.first()) {
            (Ranges::Nulls, _) | (_, None) => (slice, Integers::Uint8(&[])),
            (_, Some(given)) => {
                let has_bits = given.format != "n";
                let items = Slice::whole(slice.node.child(0)?, has_bits)?;
                // Items without a type are all null, or there are none.
                let ids = if has_bits {
                    Integers::new(&items, given)?
                } else {
                    Integers::Uint8(&[])
                };
                (items, ids)
            }
        };
        Ok(Self {
            slice,
            ranges,
            items,
            ids,
        })
    }

    pub fn len(&self) -> usize {
        self.slice.length
    }

    /// About how many ids the rows have.
    pub fn estimated_ids(&self) -> usize {
        let between = |first: i64, last: i64| usize::try_from(last.saturating_sub(first));
        let ids = match self.ranges {
            Ranges::Offsets32([first, .., last]) => {
                let [first, last] = [*first, *last].map(|end| i64::from(i32::from_ne_bytes(end)));
                between(first, last).unwrap_or(0)
            }
            Ranges::Offsets64([first, .., last]) => {
                let [first, last] = [*first, *last].map(i64::from_ne_bytes);
                between(first, last).unwrap_or(0)
            }
            Ranges::Fixed(size) => size.saturating_mul(self.len()),
            Ranges::Nulls => 0,
            _ => self.items.length,
        };
        ids.min(self.items.length)
    }

    /// Appends the ids of a row. Returns false for a null.
    pub fn append(&self, row: usize, ids: &mut Vec<u32>) -> Result<bool> {
        if !self.slice.is_valid(row) || matches!(self.ranges, Ranges::Nulls) {
            return Ok(false);
        }
        let size = |number: i64| usize::try_from(number).unwrap_or(usize::MAX);
        let small = |number: [u8; 4]| size(i64::from(i32::from_ne_bytes(number)));
        let large = |number: [u8; 8]| size(i64::from_ne_bytes(number));
        let range = match self.ranges {
            Ranges::Offsets32(offsets) => small(offsets[row])..small(offsets[row + 1]),
            Ranges::Offsets64(offsets) => large(offsets[row])..large(offsets[row + 1]),
            Ranges::Views32(starts, sizes) => {
                let start = small(starts[row]);
                start..start.saturating_add(small(sizes[row]))
            }
            Ranges::Views64(starts, sizes) => {
                let start = large(starts[row]);
                start..start.saturating_add(large(sizes[row]))
            }
            Ranges::Fixed(size) => {
                let start = (self.slice.start + row).saturating_mul(size);
                start..start.saturating_add(size)
            }
            Ranges::Nulls => 0..0,
        };
        if range.start > range.end || range.end > self.items.length {
            return Err(broken(format!(
                "the ids from {} to {} are not among the {} of the column",
                range.start, range.end, self.items.length
            )));
        }
        let mut nulls = range.clone().map(|item| !self.items.is_valid(item));
        if let Some(position) = self
            .items
            .may_have_nulls()
            .then(|| nulls.position(|null| null))
            .flatten()
        {
            return Err(broken(format!("the id at position {position} is null")));
        }
        bpe_tokenizer_core::reserve::reserve(ids, range.len())?;
        let start = range.start;
        match self.ids.append(range, ids) {
            None => Ok(true),
            Some(position) => Err(Error::UnknownRowId {
                row,
                id: self.ids.get(start + position).to_string(),
                position,
            }),
        }
    }
}
