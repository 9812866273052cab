"""What a file holds, by its content."""

from __future__ import annotations

import codecs
import io
import json
import re
from collections.abc import Iterable
from contextlib import closing, suppress
from pathlib import PurePosixPath
from typing import Literal, NamedTuple

from bpe_tokenizer.errors import CorpusError, OptionError
from bpe_tokenizer.options import InputFormat, ReadOptions
from bpe_tokenizer.readers.compression import Compression, compression_of, decompressed_chunks
from bpe_tokenizer.readers.inputs import Input, StoredFile, open_stored

__all__ = ["InputKind", "binary_kind", "input_kind", "json_state", "kind_of", "refuse_mixtures"]

_EXTENSIONS: dict[str, InputFormat] = {
    ".jsonl": "jsonl",
    ".ndjson": "jsonl",
    ".parquet": "parquet",
    ".arrow": "arrow",
    ".feather": "arrow",
}
_COMPRESSED = (".gz", ".xz", ".zst", ".zstd", ".bz2")
# As many bytes of the content decide; this many are enough for most files.
_HEAD_BYTES = 64 << 10
_FIRST_BYTES = 4 << 10
_SIGNATURE_BYTES = 16
# At most as many stored bytes are decompressed for them.
_MAX_HEAD_BYTES = 4 << 20

_WAY_OUT = "name the others ('DIR/*.txt'), or read it as text with input_format='text' (--input-format text)"
_ZIP = "a ZIP archive (of Office, NumPy or PyTorch too): unpack it first (unzip FILE)"
_UTF16 = "UTF-16 text: convert it to UTF-8 first (iconv -f UTF-16 -t UTF-8)"
# Signatures of what is not a corpus, and what to say about it.
_BINARY: tuple[tuple[bytes, str], ...] = (
    (b"PK\x03\x04", _ZIP),
    (b"PK\x05\x06", _ZIP),
    (b"%PDF-", "a PDF document"),
    (b"\x89PNG\r\n\x1a\n", "a PNG picture"),
    (b"\xff\xd8\xff", "a JPEG picture"),
    (b"GIF89a", "a GIF picture"),
    (b"\x93NUMPY", "a NumPy array"),
    (b"GGUF", "a GGUF model"),
    (b"SQLite format 3\0", "an SQLite database"),
    (b"\x7fELF", "a program (ELF)"),
    (b"7z\xbc\xaf\x27\x1c", "a 7z archive: unpack it first"),
    (b"Rar!\x1a\x07", "a RAR archive: unpack it first"),
    (b"\x04\x22\x4d\x18", "compressed with LZ4: unpack it first (lz4 -d FILE)"),
    (b"\xff\x06\0\0sNaPpY", "compressed with Snappy: unpack it first"),
    (b"\x1f\x9d", "compressed with compress: unpack it first"),
    (b"FEA1", "a Feather file of version 1: write it again as Arrow or Parquet"),
    (b"Obj\x01", "an Avro file: convert it to JSON Lines or Parquet"),
    (b"ORC\x08", "an ORC file: convert it to JSON Lines or Parquet"),
    (b"\x89HDF\r\n\x1a\n", "an HDF5 file"),
    (b"\x80\x02", "a pickle of Python"),
    (b"\x80\x03", "a pickle of Python"),
    (b"\x80\x04", "a pickle of Python"),
    (b"\x80\x05", "a pickle of Python"),
    (b"\xff\xfe\0\0", "UTF-32 text: convert it to UTF-8 first"),
    (b"\xff\xfe", _UTF16),
    (b"\xfe\xff", _UTF16),
    (b"version https://git-lfs.github.com/spec/", "a Git LFS pointer, not the file: fetch it (git lfs pull)"),
)
_TAR = (257, b"ustar")
_JSON_DOCUMENT = (
    "a JSON document, not JSON Lines, which has an object on each line; convert it (jq -c '.[]' FILE), or"
)


class InputKind(NamedTuple):
    """What a file holds.

    Args:
        format: The format of its content.
        compression: How it is compressed; None if it is not.
    """

    format: InputFormat
    compression: Compression | None

    def has_lines(self, options: ReadOptions) -> bool:
        """Return whether it can be read from any line on: each line is a row, and nothing is compressed."""
        is_text = options.documents == "line" and options.separator is None
        is_lines = self.format == "jsonl" or (self.format == "text" and is_text)
        return is_lines and self.compression is None


def input_kind(source: Input, input_format: InputFormat | None = None) -> InputKind:
    """Return what a file holds, by its content; its name decides what content cannot.

    Args:
        source: A file that can be read several times.
        input_format: The format, if it is known; then only the compression is looked for.

    Raises:
        CorpusError: The file cannot be read, or is a JSON document, or binary, and no corpus.
        OptionError: The file is standard input or a pipe, which can be read only once.

    >>> from bpe_tokenizer.readers.inputs import find_inputs
    >>> input_kind(find_inputs(__file__)[0])
    InputKind(format='text', compression=None)
    """
    if not source.is_regular:
        raise OptionError(f"{source.name} can be read only once, so its kind is not known before it is read")
    with open_stored(source) as stored:
        return kind_of(source, stored, input_format)


def kind_of(source: Input, stored: StoredFile, input_format: InputFormat | None) -> InputKind:
    """As `input_kind`, for an open file at its start. Reads the head of the file only."""
    compression = compression_of(stored.head(_SIGNATURE_BYTES))
    if input_format is not None:
        return InputKind(input_format, compression)
    head = b""
    for size in (_FIRST_BYTES, _HEAD_BYTES):
        if compression is None:
            head = stored.head(size)
        else:
            head = _decompressed_head(source, stored, compression, size)
        found = _format_of(source.name, head)
        if found is not None:
            return InputKind(found, compression)
    return InputKind(_format_of(source.name, head, is_all=True) or "text", compression)


def _decompressed_head(source: Input, stored: StoredFile, compression: Compression, size: int) -> bytes:
    """Return the first bytes of the content, and leave the stored bytes unread."""
    held = 2 * size
    while True:
        data = stored.head(held)
        content = b""
        chunks = decompressed_chunks(io.BytesIO(data), compression, source.name)
        # An error is one of the file only if these bytes are the whole file; then reading it reports it.
        with closing(chunks), suppress(CorpusError):
            for chunk in chunks:
                content += chunk
                if len(content) >= size:
                    break
        if len(content) >= size or len(data) < held or held > _MAX_HEAD_BYTES:
            return content[:size]
        held *= 4


def _format_of(name: str, head: bytes, is_all: bool = False) -> InputFormat | None:
    """Return the format of a file that starts like this; None if more of the file must be seen.

    Raises:
        CorpusError: It is not a corpus.
    """
    named = _named(name)
    if head.startswith(b"PAR1") and (named == "parquet" or _has_control(head)):
        return "parquet"
    if head.startswith((b"ARROW1\0\0", b"\xff\xff\xff\xff")):
        return "arrow"
    if named in ("parquet", "arrow") and not head.startswith(b"version https://git-lfs"):
        return named
    if problem := binary_kind(head):
        raise CorpusError(f"{name[:100]} is {problem}; {_WAY_OUT}")
    if named == "jsonl":
        return named
    text = head.removeprefix(b"\xef\xbb\xbf").lstrip()
    if not text.startswith((b"{", b"[")):
        return "text"
    line, end, _ = text.partition(b"\n")
    state = json_state(line)
    if state == "object" or (state == "prefix" and not end and line.startswith(b"{") and is_all):
        return "jsonl"
    if state == "prefix" and not end and not is_all:
        return None
    state = json_state(text)
    if state == "invalid":
        return "text"
    if not is_all:
        return None
    raise CorpusError(f"{name[:100]} is {_JSON_DOCUMENT} {_WAY_OUT}")


def _named(name: str) -> InputFormat | None:
    return _EXTENSIONS.get(_extension(name))


def _extension(name: str) -> str:
    path = PurePosixPath(name)
    if path.suffix.lower() in _COMPRESSED:
        path = path.with_suffix("")
    return path.suffix.lower()


def refuse_mixtures(inputs: Iterable[Input], input_format: InputFormat | None) -> None:
    """Refuse a directory with files of rows and others, such as a `README.md`, which would be documents too.

    Args:
        inputs: The files of a corpus. Those that were named by themselves are meant.
        input_format: The format of all of them, if it is known.

    Raises:
        CorpusError: A directory has both.
    """
    found: dict[str, dict[bool, str]] = {}
    for each in inputs if input_format is None else ():
        if each.directory and each.size:  # `_SUCCESS` of Spark is empty
            has_rows = _extension(each.name) in {*_EXTENSIONS, ".json"}
            found.setdefault(each.directory, {}).setdefault(has_rows, each.name)
    for directory, names in found.items():
        if len(names) > 1:
            rows, other = (PurePosixPath(names[kind]).name[-100:] for kind in (True, False))
            raise CorpusError(
                f"the directory {directory[:100]} has {rows}, of which each row is a document, and {other}; "
                f"name the files to read ('DIR/**/*{rows[rows.index('.') :]}'), or read all as text with "
                "input_format='text' (--input-format text)"
            )


def binary_kind(head: bytes) -> str:
    """Return what a file with these first bytes is, if it is not text; "" for text."""
    for signature, problem in _BINARY:
        # "GGUF" may be the first word of a text.
        if head.startswith(signature) and (not signature.isalnum() or _has_control(head)):
            return problem
    if compression_of(head):
        return "compressed twice: unpack it first"
    place, signature = _TAR
    if head[place : place + len(signature)] == signature:
        return "a tar archive: unpack it first (tar -xf FILE)"
    zero = head.find(b"\0")
    if zero < 0:
        return ""
    zeros = sorted((head[::2].count(0), head[1::2].count(0)))
    if zeros[1] > len(head) // 5 and zeros[0] == 0 and not _has_control(head.replace(b"\0", b"")):
        return _UTF16
    # A text may hold a zero byte.
    if head.count(0) * 100 < len(head) and _is_utf8(head):
        return ""
    return f"binary, not text: byte {zero:,} is zero"


def _is_utf8(head: bytes) -> bool:
    try:
        codecs.getincrementaldecoder("utf-8")().decode(head)
    except UnicodeDecodeError:
        return False
    return True


_CONTROL = re.compile(rb"[\0-\x08\x0e-\x1f]")


def _has_control(head: bytes) -> bool:
    return _CONTROL.search(head) is not None


_State = Literal["object", "values", "prefix", "invalid"]
_SPACE = re.compile(r"[ \t\n\r]*")
# What the end of a text may have left of a number, an escape or a word, where Python's reader stops.
_CUT = re.compile(r"[-.eE]?[-+]?|\\?u[0-9a-fA-F]{0,4}")
_WORDS = ("true", "false", "null", "NaN", "Infinity", "-Infinity")
# Its floats have no limit, unlike its integers.
_JSON = json.JSONDecoder(parse_int=float)


def json_state(text: bytes) -> _State:
    r"""Return whether a text is JSON, as Python reads it.

    Returns:
        `"object"` for one object, `"values"` for other values with white space between them, `"prefix"` for
        the beginning of these, or `"invalid"`.

    >>> [json_state(text) for text in (b'{"a": [1, "x"]}', b"[1]\n[2]", b'{"a": [', b"[1] A footnote")]
    ['object', 'values', 'prefix', 'invalid']
    """
    characters = text.decode("utf-8", "replace")
    at, values, value = 0, 0, None
    while (at := _SPACE.match(characters, at).end()) < len(characters):  # type: ignore[union-attr]
        if characters[at] not in "{[":
            return "invalid"
        try:
            value, at = _JSON.raw_decode(characters, at)
        except RecursionError:
            return "prefix"
        except json.JSONDecodeError as error:
            rest = characters[error.pos :].lstrip(" \t\n\r,")
            is_cut = (
                error.msg.startswith("Unterminated string")
                or _CUT.fullmatch(rest) is not None
                or any(word.startswith(rest) for word in _WORDS)
            )
            return "prefix" if is_cut else "invalid"
        values += 1
    return "object" if values == 1 and isinstance(value, dict) else "values"
