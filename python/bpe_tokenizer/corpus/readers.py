"""Reads the documents of a file: text, JSON Lines, and columns of tables."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import BinaryIO, Literal, NamedTuple, TypeAlias, get_args

from bpe_tokenizer.corpus.columns import arrow_rows, parquet_rows
from bpe_tokenizer.corpus.compression import DECOMPRESSION_ERRORS
from bpe_tokenizer.corpus.inputs import Input
from bpe_tokenizer.errors import CorpusError, OptionError

__all__ = ["DocumentEnd", "InputFormat", "Row", "RowReader"]

InputFormat: TypeAlias = Literal["text", "jsonl", "parquet", "arrow"]
DocumentEnd: TypeAlias = Literal["line", "file"]

_EXTENSIONS: dict[str, InputFormat] = {
    ".jsonl": "jsonl",
    ".ndjson": "jsonl",
    ".parquet": "parquet",
    ".arrow": "arrow",
    ".feather": "arrow",
}
_COMPRESSED = (".gz", ".xz", ".zst", ".zstd")
_CHUNK = 1 << 20


class Row(NamedTuple):
    """A document, or a bad row.

    Args:
        number: The number of the line, of the document between separators, or of the table row, from 1.
        text: The document; None for a bad row.
        problem: The problem of a bad row.
    """

    number: int
    text: str | None
    problem: str = ""


@dataclass(frozen=True)
class RowReader:
    r"""Reads the rows of files.

    Args:
        input_format: The format; None decides by file name. Other names and standard input are text.
        documents: Whether a document of text is a `"line"` or a `"file"`.
        separator: Text that separates documents, instead of lines.
        field: The field of JSON Lines or the column of tables that holds the text.

    Raises:
        OptionError: A value is unknown, or two values contradict each other.

    >>> RowReader(documents="line", separator="<|endoftext|>").separator
    '<|endoftext|>'
    """

    input_format: InputFormat | None = None
    documents: DocumentEnd = "line"
    separator: str | None = None
    field: str = "text"

    def __post_init__(self) -> None:
        if self.input_format not in (None, *get_args(InputFormat)):
            known = ", ".join(map(repr, get_args(InputFormat)))
            raise OptionError(f"input_format is {self.input_format!r}; it must be None or one of {known}")
        if self.documents not in get_args(DocumentEnd):
            raise OptionError(f"documents is {self.documents!r}; it must be 'line' or 'file'")
        if self.separator == "":
            raise OptionError("separator is empty; it must be the text between two documents")
        if self.separator is not None and not self.separator.isascii():
            try:
                self.separator.encode()
            except UnicodeEncodeError:
                raise OptionError("separator holds a lone surrogate, which UTF-8 cannot encode") from None
        if self.separator is not None and self.documents == "file":
            raise OptionError("documents='file' and a separator contradict each other")

    def format_of(self, source: Input) -> InputFormat:
        """Return the format of a file."""
        if self.input_format is not None or source.path is None:
            return self.input_format or "text"
        path = source.path
        if path.suffix.lower() in _COMPRESSED:
            path = path.with_suffix("")
        return _EXTENSIONS.get(path.suffix.lower(), "text")

    def rows(self, source: Input, stream: BinaryIO, after: int = 0) -> Iterator[Row]:
        """Yield the rows of a file.

        Empty lines, and empty text between separators, are not documents. Every row of a table and every
        non-empty line of JSON Lines is a document, even if its text is empty.

        Args:
            source: The file.
            stream: Its uncompressed contents.
            after: Skip the rows up to this number without checking them.

        Raises:
            CorpusError: The file as a whole is corrupt.
            MissingDependencyError: The file is a table and `pyarrow` is not installed.
        """
        kind = self.format_of(source)
        try:
            if kind == "text":
                yield from self._text_rows(stream, after)
            elif kind == "jsonl":
                yield from self._json_rows(stream, after)
            else:
                read = parquet_rows if kind == "parquet" else arrow_rows
                for number, data in read(source, stream, self.field, after):
                    yield Row(number, None, "is null") if data is None else _decoded(number, data)
        except DECOMPRESSION_ERRORS as error:
            raise CorpusError(f"{source.name} is corrupt or truncated compressed data: {error}") from None

    def _text_rows(self, stream: BinaryIO, after: int) -> Iterator[Row]:
        if self.separator is not None:
            parts = _separated(stream, self.separator.encode())
        elif self.documents == "file":
            parts = iter((stream.read(),))
        else:
            parts = (line.removesuffix(b"\r\n" if line.endswith(b"\r\n") else b"\n") for line in stream)
        for number, part in enumerate(parts, 1):
            if number > after and part:
                yield _decoded(number, part)

    def _json_rows(self, stream: BinaryIO, after: int) -> Iterator[Row]:
        for number, line in enumerate(stream, 1):
            if number > after and not line.isspace():
                yield self._json_row(number, line)

    def _json_row(self, number: int, line: bytes) -> Row:
        try:
            value = json.loads(line.decode("utf-8-sig"))
        except UnicodeDecodeError:
            return _decoded(number, line)
        except json.JSONDecodeError as error:
            return Row(number, None, f"is not valid JSON: {error.msg} at its character {error.pos}")
        except (ValueError, RecursionError) as error:
            return Row(number, None, f"is JSON that Python cannot read: {error}")
        if not isinstance(value, dict):
            return Row(number, None, f"is not a JSON object, but {type(value).__name__}")
        if self.field not in value:
            names = ", ".join(map(repr, list(value)[:5])) or "none"
            return Row(number, None, f"has no field {self.field!r} (its first fields: {names})")
        text = value[self.field]
        if not isinstance(text, str):
            return Row(number, None, f"has no text in the field {self.field!r}, but {type(text).__name__}")
        return Row(number, text)


def _decoded(number: int, data: bytes) -> Row:
    try:
        return Row(number, data.decode("utf-8"))
    except UnicodeDecodeError as error:
        return Row(number, None, f"is not UTF-8: byte 0x{data[error.start]:02x} at its offset {error.start}")


def _separated(stream: BinaryIO, separator: bytes) -> Iterator[bytes]:
    """Split a stream at a separator. Holds one document and one chunk in memory."""
    held = bytearray()
    searched = 0
    while chunk := stream.read(_CHUNK):
        held += chunk
        begin = 0
        while (end := held.find(separator, max(begin, searched))) >= 0:
            yield bytes(held[begin:end])
            begin = end + len(separator)
        del held[:begin]
        # A separator may start at the end of this chunk.
        searched = max(len(held) - len(separator) + 1, 0)
    yield bytes(held)
