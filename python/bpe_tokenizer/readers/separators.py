"""Warns once if a text holds a usual separator and no separator was given."""

from __future__ import annotations

import re
import sys
import warnings
from collections.abc import Collection, Sequence
from contextlib import closing

from bpe_tokenizer.errors import TokenizerError, caller_level
from bpe_tokenizer.options import ReadOptions
from bpe_tokenizer.readers.compression import decompressed_chunks
from bpe_tokenizer.readers.inputs import Input
from bpe_tokenizer.readers.opened import ChunkReader, open_input
from bpe_tokenizer.special_tokens import document_end

__all__ = ["warn_of_separators"]

# What may separate documents: not `<end>` or `</text>`, which are usual in HTML and XML.
_SPECIAL = re.compile(r"<[|｜][^|｜<>\n]{1,40}[|｜]>|</s>|<eos>|\[EOS\]")
# How many files are looked at, and how far: the files of a corpus are alike.
_HEAD_BYTES = 1 << 20
_FILES = 16


def warn_of_separators(
    inputs: Sequence[Input], options: ReadOptions, recognized: Collection[str] = ()
) -> None:
    """Warn, once, if a text file holds a usual separator of documents and none was named.

    The first megabyte of the first 16 text files is looked at, and what standard input has ready.

    Args:
        inputs: The files of a corpus.
        options: How documents are found in them.
        recognized: Special tokens that the caller finds in the text anyway.
    """
    if options.separator is not None or options.input_format not in (None, "text"):
        return
    for source in inputs[:_FILES]:
        try:
            head = _head(source, options)
        except TokenizerError:
            continue  # reading the file reports it
        for found in _SPECIAL.finditer(head.decode(errors="ignore")):
            separator = found[0]
            if separator not in recognized and document_end([separator]) is not None:
                read_as = "each line" if options.documents == "line" else "the whole file"
                warnings.warn(
                    f"{source.name[-100:]} contains {separator!r}, a usual separator of documents, and "
                    f"{read_as} is read as a document; to read what lies between them, say "
                    f"separator={separator!r}",
                    UserWarning,
                    stacklevel=caller_level(),
                )
                return


def _head(source: Input, options: ReadOptions) -> bytes:
    """Return the beginning of a text; nothing of another file, or of a pipe."""
    if source.location is None:
        peek = getattr(getattr(sys.stdin, "buffer", None), "peek", None)
        return bytes(peek(1)) if peek is not None else b""
    if not source.is_regular:
        return b""
    with open_input(source, options) as opened:
        if opened.kind.format != "text":
            return b""
        chunks = decompressed_chunks(opened.stored, opened.kind.compression, source.name)
        with closing(chunks):
            return ChunkReader(chunks).read(_HEAD_BYTES)
