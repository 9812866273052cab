"""Text to ids: every way of encoding, and what needs encoding to be answered."""

from __future__ import annotations

import operator
import os
from collections.abc import Collection, Iterable, Sequence
from typing import Any, Literal, TypeAlias, overload

import numpy as np
import numpy.typing as npt

from bpe_tokenizer.chunks import split_by_tokens
from bpe_tokenizer.compiled import Snapshot
from bpe_tokenizer.errors import ArgumentTypeError, OptionError, SpecialTokenError
from bpe_tokenizer.processes import is_worker
from bpe_tokenizer.results import (
    BatchOptions,
    EncodingResult,
    Padding,
    import_torch,
    to_arrays,
    to_results,
    to_tensors,
)
from bpe_tokenizer.special_tokens import AllowedSpecial, DisallowedSpecial, names_of
from bpe_tokenizer.vocabulary import Vocabulary

__all__ = ["BatchEncoding", "Encoding", "checked_limit", "recognised", "thread_count"]

BatchEncoding: TypeAlias = list[EncodingResult] | dict[str, npt.NDArray[np.int64]] | dict[str, Any]

# What calls for short texts ask for is answered without a further look: that would take as long as encoding.
_ONE = 1


class Encoding(Vocabulary):
    """The part of `BPETokenizer` that encodes; see there for what its arguments have in common."""

    def encode(
        self,
        text: str,
        add_special_tokens: bool = False,
        allowed_special: AllowedSpecial = "none",
        disallowed_special: DisallowedSpecial = (),
        threads: int | None = 1,
    ) -> list[int]:
        """Return the ids of a text.

        Args:
            text: Any text; a lone surrogate is encoded as U+FFFD.
            add_special_tokens: Put the model's special tokens around it.
            allowed_special: The special tokens that are recognised: `"none"`, `"all"` or a set.
            disallowed_special: The special tokens that must not stand in the text: `()`, `"all"` or a set.
            threads: Number of threads; None for as many as there are processors. A long text is then cut
                where that changes nothing.

        Raises:
            NotTrainedError: There is no vocabulary yet.
            SpecialTokenError: A disallowed token stands in the text, or a set names an unknown token.
            ArgumentTypeError: The text is no `str`.

        >>> from bpe_tokenizer import BPETokenizer
        >>> tokenizer = BPETokenizer().train("ab ab", 258, special_tokens=["<|end|>"], verbose=False)
        >>> tokenizer.encode("ab<|end|>", allowed_special={"<|end|>"})
        [257, 256]
        >>> tokenizer.encode("ab<|end|>", disallowed_special="all")
        Traceback (most recent call last):
        bpe_tokenizer.errors.SpecialTokenError: the text holds the disallowed special token '<|end|>' at ...
        """
        snapshot = self._snapshot or self._trained()
        if not isinstance(text, str):
            raise _not_a_text("encode", text)
        if (
            allowed_special == "none"
            and disallowed_special == ()
            and threads is _ONE
            and not add_special_tokens
        ):
            return snapshot.encoder.encode(text)
        special = recognised(snapshot, (text,), allowed_special, disallowed_special)
        ids = snapshot.encoder.encode(text, special, thread_count(threads))
        if add_special_tokens:
            before, after = snapshot.around
            return [*before, *ids, *after]
        return ids

    def encode_to_numpy(
        self,
        text: str,
        add_special_tokens: bool = False,
        allowed_special: AllowedSpecial = "none",
        disallowed_special: DisallowedSpecial = (),
        threads: int | None = 1,
    ) -> npt.NDArray[np.uint32]:
        """Return the ids of a text as an array of dtype uint32; otherwise as `encode`.

        >>> from bpe_tokenizer import BPETokenizer
        >>> tokenizer = BPETokenizer().train("ab ab", vocab_size=257, verbose=False)
        >>> tokenizer.encode_to_numpy("abc")
        array([256,  99], dtype=uint32)
        """
        snapshot = self._snapshot or self._trained()
        if not isinstance(text, str):
            raise _not_a_text("encode_to_numpy", text)
        if (
            allowed_special == "none"
            and disallowed_special == ()
            and threads is _ONE
            and not add_special_tokens
        ):
            return snapshot.encoder.encode_numpy(text)
        special = recognised(snapshot, (text,), allowed_special, disallowed_special)
        ids = snapshot.encoder.encode_numpy(text, special, thread_count(threads))
        if add_special_tokens:
            before, after = (np.array(added, dtype=np.uint32) for added in snapshot.around)
            return np.concatenate([before, ids, after])
        return ids

    def encode_bytes(
        self,
        data: bytes | bytearray | memoryview,
        add_special_tokens: bool = False,
        allowed_special: AllowedSpecial = "none",
        disallowed_special: DisallowedSpecial = (),
        threads: int | None = 1,
    ) -> list[int]:
        r"""Return the ids of bytes, which need not be UTF-8 and are not normalised; otherwise as `encode`.

        >>> from bpe_tokenizer import BPETokenizer
        >>> tokenizer = BPETokenizer().train("ab ab", vocab_size=257, verbose=False)
        >>> tokenizer.encode_bytes(b"ab\xff")
        [256, 255]
        """
        snapshot = self._trained()
        if not isinstance(data, bytes | bytearray | memoryview):
            raise ArgumentTypeError(
                f"encode_bytes expects bytes, not {type(data).__name__}; encode() takes a str"
            )
        data = bytes(data)
        special = recognised(snapshot, (data,), allowed_special, disallowed_special)
        ids = snapshot.encoder.encode(data, special, thread_count(threads))
        if add_special_tokens:
            before, after = snapshot.around
            return [*before, *ids, *after]
        return ids

    @overload
    def encode_batch(
        self,
        texts: Iterable[str],
        add_special_tokens: bool = False,
        allowed_special: AllowedSpecial = "none",
        disallowed_special: DisallowedSpecial = (),
        padding: Padding = False,
        truncation: bool = False,
        max_length: int | None = None,
        return_tensors: None = None,
        threads: int | None = None,
    ) -> list[EncodingResult]: ...
    @overload
    def encode_batch(
        self,
        texts: Iterable[str],
        add_special_tokens: bool = False,
        allowed_special: AllowedSpecial = "none",
        disallowed_special: DisallowedSpecial = (),
        padding: Padding = False,
        truncation: bool = False,
        max_length: int | None = None,
        *,
        return_tensors: Literal["np"],
        threads: int | None = None,
    ) -> dict[str, npt.NDArray[np.int64]]: ...
    @overload
    def encode_batch(
        self,
        texts: Iterable[str],
        add_special_tokens: bool = False,
        allowed_special: AllowedSpecial = "none",
        disallowed_special: DisallowedSpecial = (),
        padding: Padding = False,
        truncation: bool = False,
        max_length: int | None = None,
        return_tensors: Literal["np", "pt"] | None = None,
        threads: int | None = None,
    ) -> BatchEncoding: ...
    def encode_batch(
        self,
        texts: Iterable[str],
        add_special_tokens: bool = False,
        allowed_special: AllowedSpecial = "none",
        disallowed_special: DisallowedSpecial = (),
        padding: Padding = False,
        truncation: bool = False,
        max_length: int | None = None,
        return_tensors: Literal["np", "pt"] | None = None,
        threads: int | None = None,
    ) -> BatchEncoding:
        """Encode several texts in parallel.

        Args:
            texts: The texts.
            add_special_tokens: Put the model's special tokens around each.
            allowed_special: The special tokens that are recognised: `"none"`, `"all"` or a set.
            disallowed_special: The special tokens that must not stand in a text: `()`, `"all"` or a set.
            padding: True or `"longest"` fills rows up to the longest (at most `max_length`), `"max_length"`
                to `max_length`; with the pad token's id, or 0 where there is none.
            truncation: Cut rows to `max_length`; the ids that `add_special_tokens` adds stay.
            max_length: In ids; has no effect without `padding` or `truncation`.
            return_tensors: `"np"` for NumPy arrays, `"pt"` for PyTorch tensors.
            threads: Number of threads; None for as many as there are processors.

        Returns:
            An `EncodingResult` for each text; or a dict of `input_ids` and `attention_mask`, both int64 of
            shape (texts, longest row).

        Raises:
            MissingDependencyError: PyTorch is asked for and not installed.
            NotTrainedError: There is no vocabulary yet.
            OptionError: The options contradict each other, or tensors are asked for of rows of different
                length.
            SpecialTokenError: A disallowed token stands in a text, or a set names an unknown token.
            ArgumentTypeError: An item is no `str`.

        >>> from bpe_tokenizer import BPETokenizer
        >>> tokenizer = BPETokenizer().train("ab ab", vocab_size=257, verbose=False)
        >>> [result.input_ids for result in tokenizer.encode_batch(["ab", "abc"], padding=True)]
        [[256, 0], [256, 99]]
        >>> tokenizer.encode_batch(["ab", "abc"], padding=True, return_tensors="np")["attention_mask"]
        array([[1, 0],
               [1, 1]])
        """
        snapshot = self._trained()
        if return_tensors not in (None, "np", "pt"):
            raise OptionError(f"return_tensors is {return_tensors!r}; it must be None, 'np' or 'pt'")
        if return_tensors == "pt":
            import_torch()
        before, after = snapshot.around if add_special_tokens else ((), ())
        pad = snapshot.role_ids.get("pad")
        options = BatchOptions(padding, truncation, max_length, before, after, pad[1] if pad else 0)
        batch = _texts("encode_batch", texts)
        special = recognised(snapshot, batch, allowed_special, disallowed_special)
        if return_tensors is None:
            rows = snapshot.encoder.encode_batch(batch, special, thread_count(threads))
            return to_results(rows, options, snapshot.token_strings)
        arrays = to_arrays(*snapshot.encoder.encode_ragged(batch, special, thread_count(threads)), options)
        return to_tensors(arrays) if return_tensors == "pt" else arrays

    def __call__(
        self,
        text: str | Iterable[str],
        add_special_tokens: bool = False,
        allowed_special: AllowedSpecial = "none",
        disallowed_special: DisallowedSpecial = (),
        padding: Padding = False,
        truncation: bool = False,
        max_length: int | None = None,
        return_tensors: Literal["np", "pt"] | None = None,
        threads: int | None = None,
    ) -> list[int] | BatchEncoding:
        """Return `encode(text)` for a `str`, `encode_batch(texts)` for several.

        Raises:
            OptionError: `padding` or `return_tensors` is given for a single text, which is no batch.

        >>> from bpe_tokenizer import BPETokenizer
        >>> tokenizer = BPETokenizer().train("ab ab", vocab_size=257, verbose=False)
        >>> tokenizer("ab"), tokenizer(["ab"])
        ([256], [EncodingResult(input_ids=[256], attention_mask=[1])])
        """
        special = (add_special_tokens, allowed_special, disallowed_special)
        if not isinstance(text, str):
            return self.encode_batch(text, *special, padding, truncation, max_length, return_tensors, threads)
        if padding or return_tensors is not None:
            raise OptionError("padding and return_tensors are for a batch; put the text into a list")
        if truncation:
            return self.encode_batch([text], *special, False, truncation, max_length)[0].input_ids
        return self.encode(text, *special, 1 if threads is None else threads)

    def encode_ragged(
        self,
        texts: Iterable[str],
        add_special_tokens: bool = False,
        allowed_special: AllowedSpecial = "none",
        disallowed_special: DisallowedSpecial = (),
        threads: int | None = None,
    ) -> tuple[npt.NDArray[np.uint32], npt.NDArray[np.int64]]:
        """Encode several texts in parallel into one array.

        Returns:
            The ids of all texts, one after the other, as uint32; and where each text begins there and the
            last ends, as int64, one more than there are texts.

        Other arguments and errors are those of `encode_batch`.

        >>> from bpe_tokenizer import BPETokenizer
        >>> tokenizer = BPETokenizer().train("ab ab", vocab_size=257, verbose=False)
        >>> tokenizer.encode_ragged(["ab", "abc"])
        (array([256, 256,  99], dtype=uint32), array([0, 1, 3]))
        """
        snapshot = self._trained()
        batch = _texts("encode_ragged", texts)
        special = recognised(snapshot, batch, allowed_special, disallowed_special)
        around = snapshot.around if add_special_tokens else ((), ())
        return snapshot.encoder.encode_ragged(batch, special, thread_count(threads), around)

    def encode_files(
        self,
        paths: str | os.PathLike[str] | Iterable[str | os.PathLike[str]],
        separator: str | None = None,
        add_special_tokens: bool = False,
        allowed_special: AllowedSpecial = "none",
        disallowed_special: DisallowedSpecial = (),
        threads: int | None = None,
    ) -> tuple[npt.NDArray[np.uint32], npt.NDArray[np.int64]]:
        r"""Encode the documents in files in parallel into one array, without making a `str` of them.

        Big files are mapped into memory, so they may be larger than it. They must stay what they are until
        the call returns: a change is an error, and on most systems a file that is cut off meanwhile ends
        the process.

        Args:
            paths: A file, or several: text in UTF-8. Line ends and a byte order mark are kept.
            separator: What stands between two documents of a file, and belongs to neither; where there is
                no text between two of them, there is no document. None: each file is a document.
            add_special_tokens: Put the model's special tokens around each document.
            allowed_special: The special tokens that are recognised: `"none"`, `"all"` or a set.
            disallowed_special: The special tokens that must not stand in a document: `()`, `"all"` or a set.
            threads: Number of threads; None for as many as there are processors, or for one in a forked
                child or a worker process.

        Returns:
            The ids of all documents, one after the other, as uint32, those that `encode` gives for each; and
            where each document begins there and the last ends, as int64, one more than there are documents.

        Raises:
            CorpusError: A file cannot be read, is not UTF-8, or changed meanwhile.
            SpecialTokenError: A disallowed token stands in a document, or a set names an unknown token.
            OptionError: The separator is empty.
            ArgumentTypeError: A path or the separator is something else.

        >>> from pathlib import Path
        >>> from tempfile import TemporaryDirectory
        >>> from bpe_tokenizer import BPETokenizer
        >>> tokenizer = BPETokenizer().train("ab ab", vocab_size=257, verbose=False)
        >>> with TemporaryDirectory() as directory:
        ...     path = Path(directory, "documents.txt")
        ...     _ = path.write_text("ab\n\nabc\n")
        ...     tokenizer.encode_files(path, separator="\n")
        (array([256, 256,  99], dtype=uint32), array([0, 1, 3]))
        """
        snapshot = self._trained()
        files = _paths(paths)
        if not isinstance(separator, str | None):
            raise ArgumentTypeError(f"separator must be a str or None, not {type(separator).__name__}")
        special, disallowed = _special_sets(snapshot, allowed_special, disallowed_special)
        around = snapshot.around if add_special_tokens else ((), ())
        return snapshot.encoder.encode_files(
            files, separator, special, disallowed, thread_count(threads), around
        )

    def encode_with_offsets(
        self,
        text: str,
        add_special_tokens: bool = False,
        allowed_special: AllowedSpecial = "none",
        disallowed_special: DisallowedSpecial = (),
        unit: Literal["char", "byte"] = "char",
        tile: bool = True,
    ) -> tuple[list[int], list[tuple[int, int]]]:
        """Return the ids of a text and the span of the text that each stands for.

        Args:
            text: The text.
            add_special_tokens: Put the model's special tokens around it, with empty spans.
            allowed_special: The special tokens that are recognised: `"none"`, `"all"` or a set.
            disallowed_special: The special tokens that must not stand in the text: `()`, `"all"` or a set.
            unit: Spans in `"char"`, positions in the text as given, or in `"byte"`, of its UTF-8.
            tile: The spans follow each other and cover the text; where tokens share a character, the last
                one gets it. False: a span covers every character that the token has a byte of, as Hugging
                Face reports it. (Byte spans of text that is not normalised are the tokens' own bytes.)

        Raises:
            OptionError: `unit` is something else.

        Other errors are those of `encode`.

        >>> from bpe_tokenizer import BPETokenizer
        >>> tokenizer = BPETokenizer().train("ab ab", vocab_size=257, verbose=False)
        >>> tokenizer.encode_with_offsets("aabé")
        ([97, 256, 195, 169], [(0, 1), (1, 3), (3, 3), (3, 4)])
        """
        snapshot = self._trained()
        if not isinstance(text, str):
            raise _not_a_text("encode_with_offsets", text)
        if unit not in ("char", "byte"):
            raise OptionError(f"unit is {unit!r}; it must be 'char' or 'byte'")
        special = recognised(snapshot, (text,), allowed_special, disallowed_special)
        ids, spans = snapshot.encoder.encode_with_offsets(text, special, unit, tile)
        if add_special_tokens:
            before, after = snapshot.around
            end = spans[-1][1] if spans and tile else 0
            spans = [(0, 0)] * len(before) + spans + [(end, end)] * len(after)
            ids = [*before, *ids, *after]
        return ids, spans

    def tokenize(
        self,
        text: str,
        add_special_tokens: bool = False,
        allowed_special: AllowedSpecial = "none",
        disallowed_special: DisallowedSpecial = (),
    ) -> list[str]:
        """Return the token strings of a text, bytes written as GPT-2's printable characters; as `encode`.

        >>> from bpe_tokenizer import BPETokenizer
        >>> tokenizer = BPETokenizer().train("a b a b", vocab_size=257, verbose=False)
        >>> tokenizer.tokenize("a bc")
        ['a', 'Ġb', 'c']
        """
        ids = self.encode(text, add_special_tokens, allowed_special, disallowed_special)
        strings = self._trained().token_strings
        return [strings[token_id] for token_id in ids]

    def count_tokens(
        self,
        text: str,
        add_special_tokens: bool = False,
        allowed_special: AllowedSpecial = "none",
        disallowed_special: DisallowedSpecial = (),
        threads: int | None = 1,
    ) -> int:
        """Return the number of ids that `encode` gives, without making them.

        >>> from bpe_tokenizer import BPETokenizer
        >>> BPETokenizer().train("ab ab", vocab_size=257, verbose=False).count_tokens("abc")
        2
        """
        snapshot = self._trained()
        if not isinstance(text, str):
            raise _not_a_text("count_tokens", text)
        special = recognised(snapshot, (text,), allowed_special, disallowed_special)
        added = sum(map(len, snapshot.around)) if add_special_tokens else 0
        return snapshot.encoder.count(text, special, thread_count(threads)) + added

    def truncate(
        self,
        text: str,
        max_tokens: int,
        add_special_tokens: bool = False,
        allowed_special: AllowedSpecial = "none",
        disallowed_special: DisallowedSpecial = (),
    ) -> str:
        """Return the longest beginning of a text that encodes to at most `max_tokens` ids.

        It ends where a token of the text ends, and never inside a character.

        Args:
            text: The text.
            max_tokens: Largest number of ids, those that `add_special_tokens` adds included.
            add_special_tokens: Leave room for the model's special tokens.
            allowed_special: The special tokens that are recognised: `"none"`, `"all"` or a set.
            disallowed_special: The special tokens that must not stand in the text: `()`, `"all"` or a set.

        Raises:
            OptionError: `max_tokens` is negative, or less than the number of ids that are added.

        Other errors are those of `encode`.

        >>> from bpe_tokenizer import BPETokenizer
        >>> BPETokenizer().train("ab ab", vocab_size=257, verbose=False).truncate("abcd", 2)
        'abc'
        """
        snapshot = self._trained()
        if not isinstance(text, str):
            raise _not_a_text("truncate", text)
        added = sum(map(len, snapshot.around)) if add_special_tokens else 0
        limit = checked_limit("max_tokens", max_tokens, added)
        special = recognised(snapshot, (text,), allowed_special, disallowed_special)
        return text[: snapshot.encoder.truncate(text, limit - added, special)]

    def split_by_tokens(
        self,
        text: str,
        max_tokens: int,
        overlap: int = 0,
        allowed_special: AllowedSpecial = "none",
        disallowed_special: DisallowedSpecial = (),
    ) -> list[str]:
        """Cut a text into chunks that encode to at most `max_tokens` ids each.

        Args:
            text: The text.
            max_tokens: Largest number of ids of a chunk.
            overlap: Number of tokens that a chunk repeats from the end of the one before it, rounded up to
                a whole character. Less than `max_tokens`.
            allowed_special: The special tokens that are recognised: `"none"`, `"all"` or a set.
            disallowed_special: The special tokens that must not stand in the text: `()`, `"all"` or a set.

        Returns:
            The chunks in order. Without overlap their concatenation is the text.

        Raises:
            OptionError: `max_tokens` is less than 1 or than the ids of one of the characters, or `overlap`
                is negative or not less than `max_tokens`.

        Other errors are those of `encode`.

        >>> from bpe_tokenizer import BPETokenizer
        >>> tokenizer = BPETokenizer().train("ab ab", vocab_size=257, verbose=False)
        >>> tokenizer.split_by_tokens("ababcab", 2)
        ['abab', 'cab']
        >>> tokenizer.split_by_tokens("ababcab", 2, overlap=1)
        ['abab', 'abc', 'cab']
        """
        snapshot = self._trained()
        if not isinstance(text, str):
            raise _not_a_text("split_by_tokens", text)
        limit = checked_limit("max_tokens", max_tokens, 1)
        if checked_limit("overlap", overlap, 0) >= limit:
            raise OptionError(f"overlap is {overlap}; it must be less than max_tokens={max_tokens}")
        special = recognised(snapshot, (text,), allowed_special, disallowed_special)
        return split_by_tokens(snapshot.encoder, text, limit, overlap, special)


def recognised(
    snapshot: Snapshot,
    texts: Sequence[str | bytes],
    allowed_special: AllowedSpecial,
    disallowed_special: DisallowedSpecial = (),
) -> bool | Collection[str]:
    """Return the special tokens to recognise, as the core takes them, and look for the disallowed ones."""
    special, disallowed = _special_sets(snapshot, allowed_special, disallowed_special)
    _refuse(snapshot, texts, disallowed)
    return special


def _special_sets(
    snapshot: Snapshot, allowed_special: AllowedSpecial, disallowed_special: DisallowedSpecial
) -> tuple[bool | Collection[str], bool | Collection[str]]:
    """Return the special tokens to recognise and those that must not be there, as the core takes them."""
    if allowed_special == "none" and disallowed_special == ():
        return False, False
    allowed = names_of("allowed_special", allowed_special, snapshot.special)
    special = True if allowed_special == "all" else allowed or False
    if disallowed_special == ():
        return special, False
    disallowed = names_of("disallowed_special", disallowed_special, snapshot.special)
    if isinstance(disallowed_special, str):
        return special, set(disallowed) - set(allowed) if allowed else True
    return special, disallowed


def _refuse(snapshot: Snapshot, texts: Sequence[str | bytes], disallowed: bool | Collection[str]) -> None:
    """Raise if one of these special tokens (True: any) stands in one of the texts."""
    if not disallowed:
        return
    for number, text in enumerate(texts):
        found = snapshot.encoder.find_special(text, disallowed)
        if found is not None:
            token, position = found
            where = f"text {number}" if len(texts) > 1 else "the text"
            unit = "character" if isinstance(text, str) else "byte"
            raise SpecialTokenError(
                f"{where} holds the disallowed special token {token!r} at {unit} {position}. To encode it as "
                f"that token, pass allowed_special={{{token!r}}}; to encode it as plain text, leave it out "
                "of disallowed_special (() disallows none)"
            )


def _texts(method: str, texts: Iterable[str]) -> Sequence[str]:
    """Return the texts of a batch as a sequence, each of them a `str`."""
    if isinstance(texts, str | bytes) or not isinstance(texts, Iterable):
        raise ArgumentTypeError(
            f"{method} expects a list of str, not {type(texts).__name__}; encode() takes one str"
        )
    batch = texts if isinstance(texts, list | tuple) else list(texts)
    for number, text in enumerate(batch):
        if not isinstance(text, str):
            raise ArgumentTypeError(
                f"{method} expects a list of str, but item {number} is {type(text).__name__}"
            )
    return batch


def _paths(paths: object) -> list[str]:
    """Return the files of a batch."""
    named = [paths] if isinstance(paths, str | os.PathLike) else paths
    if isinstance(named, bytes) or not isinstance(named, Iterable):
        raise ArgumentTypeError(f"encode_files expects paths, not {type(paths).__name__}")
    files = list(named)
    for number, path in enumerate(files):
        if not isinstance(path, str | os.PathLike):
            raise ArgumentTypeError(f"encode_files expects paths, but item {number} is {type(path).__name__}")
    return [os.fsdecode(path) for path in files]


def _not_a_text(method: str, text: object) -> ArgumentTypeError:
    hint = "; encode_bytes() takes bytes" if isinstance(text, bytes | bytearray | memoryview) else ""
    return ArgumentTypeError(f"{method} expects a str, not {type(text).__name__}{hint}")


def checked_limit(name: str, value: int, least: int) -> int:
    """Return a number as an `int` that is not less than the least."""
    if isinstance(value, bool) or not hasattr(value, "__index__"):
        raise ArgumentTypeError(f"{name} must be an int, not {type(value).__name__}")
    if operator.index(value) < least:
        raise OptionError(f"{name} is {value}; it must be at least {least}")
    return operator.index(value)


def thread_count(threads: int | None) -> int:
    """Return a number of threads as the core takes it: 0 for as many as there are processors.

    Where that is not said, one of several processes that share the processors uses one.
    """
    if type(threads) is int and threads == 1:
        return 1  # what calls for one short text ask for, so without a further look
    if threads is None:
        return 1 if is_worker() else 0
    return checked_limit("threads", threads, 1)
