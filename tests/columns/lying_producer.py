"""Arrow capsules made by hand, for arrays that no library would make."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from typing import Any


class Schema(ctypes.Structure):
    """`struct ArrowSchema`."""


class Array(ctypes.Structure):
    """`struct ArrowArray`."""


_RELEASE_SCHEMA = ctypes.CFUNCTYPE(None, ctypes.POINTER(Schema))
_RELEASE_ARRAY = ctypes.CFUNCTYPE(None, ctypes.POINTER(Array))

Schema._fields_ = [
    ("format", ctypes.c_char_p),
    ("name", ctypes.c_char_p),
    ("metadata", ctypes.c_char_p),
    ("flags", ctypes.c_int64),
    ("n_children", ctypes.c_int64),
    ("children", ctypes.POINTER(ctypes.POINTER(Schema))),
    ("dictionary", ctypes.POINTER(Schema)),
    ("release", _RELEASE_SCHEMA),
    ("private_data", ctypes.c_void_p),
]
Array._fields_ = [
    ("length", ctypes.c_int64),
    ("null_count", ctypes.c_int64),
    ("offset", ctypes.c_int64),
    ("n_buffers", ctypes.c_int64),
    ("n_children", ctypes.c_int64),
    ("buffers", ctypes.POINTER(ctypes.c_void_p)),
    ("children", ctypes.POINTER(ctypes.POINTER(Array))),
    ("dictionary", ctypes.POINTER(Array)),
    ("release", _RELEASE_ARRAY),
    ("private_data", ctypes.c_void_p),
]


def _mark_schema(schema: Any) -> None:
    schema.contents.release = _RELEASE_SCHEMA()


def _mark_array(array: Any) -> None:
    array.contents.release = _RELEASE_ARRAY()


_release_schema, _release_array = _RELEASE_SCHEMA(_mark_schema), _RELEASE_ARRAY(_mark_array)

_new_capsule = ctypes.pythonapi.PyCapsule_New
_new_capsule.restype = ctypes.py_object
_new_capsule.argtypes = [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]


class Producer:
    """An array of any structure. It keeps its memory as long as it lives.

    Args:
        form: The format string.
        length: Number of rows that it claims.
        buffers: The buffers; None for an absent one.
        children: Further producers: the children.
        dictionary: The producer of the dictionary.
        fields: Further fields of the array, such as `null_count`.
    """

    schema: Schema
    array: Array

    def __init__(
        self,
        form: str | None,
        length: int,
        buffers: Sequence[bytes | None],
        *,
        children: Sequence[Producer] = (),
        dictionary: Producer | None = None,
        **fields: int,
    ) -> None:
        self.form = form
        memory = [None if b is None else ctypes.create_string_buffer(b, len(b) + 1) for b in buffers]
        addresses = (ctypes.c_void_p * max(len(buffers), 1))(
            *(None if b is None else ctypes.addressof(b) for b in memory)
        )
        schemas = (ctypes.POINTER(Schema) * max(len(children), 1))(
            *(ctypes.pointer(child.schema) for child in children)
        )
        arrays = (ctypes.POINTER(Array) * max(len(children), 1))(
            *(ctypes.pointer(child.array) for child in children)
        )
        self.kept = [children, dictionary, memory, addresses, schemas, arrays]
        self.schema = Schema(
            format=None if form is None else form.encode(),
            name=b"x",
            n_children=len(children),
            children=schemas,
            release=_release_schema,
        )
        self.array = Array(
            length=length,
            n_buffers=len(buffers),
            buffers=addresses,
            n_children=len(children),
            children=arrays,
            release=_release_array,
        )
        if dictionary is not None:
            self.schema.dictionary = ctypes.pointer(dictionary.schema)
            self.array.dictionary = ctypes.pointer(dictionary.array)
        for name, value in fields.items():
            setattr(self.array, name, value)

    def __str__(self) -> str:
        return str(self.form)

    def __arrow_c_array__(self, requested_schema: object = None) -> tuple[object, object]:
        return (
            _new_capsule(ctypes.addressof(self.schema), b"arrow_schema", None),
            _new_capsule(ctypes.addressof(self.array), b"arrow_array", None),
        )
