"""Reads corpora: finds their files, knows their kinds, and gives their documents in batches."""

from __future__ import annotations

from bpe_tokenizer.options import DocumentEnd, InputFormat, OnError, ReadOptions
from bpe_tokenizer.readers.batches import DocumentBatch, read_batches
from bpe_tokenizer.readers.detect import InputKind, input_kind
from bpe_tokenizer.readers.inputs import Input, find_inputs
from bpe_tokenizer.readers.positions import BadRow, Position
from bpe_tokenizer.readers.sources import find_sources

__all__ = [
    "BadRow",
    "DocumentBatch",
    "DocumentEnd",
    "Input",
    "InputFormat",
    "InputKind",
    "OnError",
    "Position",
    "ReadOptions",
    "find_inputs",
    "find_sources",
    "input_kind",
    "read_batches",
]
