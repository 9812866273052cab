r"""minbpe's `.model`: the split pattern, the special tokens, and the merges as pairs of ids.

    minbpe v1
    '(?:[sdmt]|ll|ve|re)| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+
    1
    <|endoftext|> 300
    108 111
    256 119

Ids 0 to 255 are the bytes, and the merges make 256, 257, ... in the order of the lines. Only a vocabulary
with exactly these ids can be saved: one that was trained without special tokens, or with special tokens of
higher ids. An empty pattern means `BasicTokenizer`, which does not split. The format is defined by `save` and
`load` in https://github.com/karpathy/minbpe/blob/master/minbpe/base.py; `GPT4Tokenizer` there has no file.

minbpe keeps the matches of the pattern and drops the text between them, and Python's `regex` module runs its
patterns. A pattern that `regex` reads differently is refused. So is saving a pattern that may leave text
unmatched; a loaded model drops unmatched text as minbpe does.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from bpe_tokenizer import _core
from bpe_tokenizer.arguments import check_path
from bpe_tokenizer.atomic import make_directory, write_atomically
from bpe_tokenizer.errors import FormatError, ModelError, OptionError, PatternError, shorten
from bpe_tokenizer.formats.capabilities import keeping_matches, require_mergeable
from bpe_tokenizer.formats.files import decode_text, read_bytes
from bpe_tokenizer.formats.python_regex import python_objection
from bpe_tokenizer.model import AddedToken, Model, Split

__all__ = ["load", "save"]

_VERSION = "minbpe v1"
_NAME = "a minbpe .model"
_MAX_ID = 2**32 - 2
# A line like "256 256" doubles a token, so without bounds a short file could take any amount of memory.
_MAX_TOKEN = 2**20
_MAX_VOCABULARY = 2**28


def load(path: str | Path) -> Model:
    r"""Load a minbpe `.model`.

    Args:
        path: The file.

    Raises:
        FormatError: The file is broken or cannot be represented exactly: two merges make the same bytes, or
            Python's `regex` module and our engine may read the pattern differently.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as directory:
    ...     path = Path(directory, "small.model")
    ...     _ = path.write_text("minbpe v1\n\n1\n<|end|> 300\n108 111\n256 119\n")
    ...     model = load(path)
    >>> model.core.merges, model.core.vocab[257], model.core.vocab[300]
    ([(b'l', b'o'), (b'lo', b'w')], b'low', b'<|end|>')
    """
    path = check_path("path", path)
    lines = _read_lines(path)
    if lines[0].strip() != _VERSION:
        raise _error(path, 1, f"must be {_VERSION!r}")
    if len(lines) < 3 or not _is_number(lines[2].strip()):
        raise _error(path, 3, "must be the number of special tokens")
    count = int(lines[2])
    if count > len(lines) - 3:
        raise _error(path, 3, f"announces {count} special tokens, but only {len(lines) - 3} lines follow")
    tokens, merges = _read_merges(path, lines, 3 + count)
    special = _read_special_tokens(path, lines[3 : 3 + count], len(tokens))
    try:
        core = _core.Model(
            dict(enumerate(tokens)),
            merges,
            added_tokens=[AddedToken(text, token_id) for text, token_id in special.items()],
            pre_tokenizers=_read_pattern(path, lines[1]),
        )
    except (ModelError, PatternError) as error:
        raise FormatError(f"{path}: {error}") from error
    return Model(core)


def save(model: Model, path: str | Path) -> None:
    """Save a tokenizer for minbpe, without the listing (`.vocab`) that it writes and never reads.

    `RegexTokenizer.load` ignores the file's pattern, so construct the object with it:
    `RegexTokenizer(pattern)`.

    Args:
        model: The model to save.
        path: The file, whose name must end in `.model`; its directory is created.

    Raises:
        FormatError: The format cannot hold something of the model.
        OptionError: The file's name does not end in `.model`.
        WriteError: The file cannot be written.
    """
    path = check_path("path", path)
    if path.suffix != ".model":
        raise OptionError(
            f"path is {shorten(path.name)}; minbpe only loads files whose name ends in .model: write "
            f"{shorten(f'{path.name}.model')}"
        )
    core = require_mergeable(model, _NAME)
    pattern = _write_pattern(core)
    special = _write_special_tokens(core)
    pairs = _write_merges(core, frozenset(special.values()))
    lines = [_VERSION, pattern, str(len(special))]
    lines += [f"{text} {token_id}" for text, token_id in special.items()]
    lines += [f"{left} {right}" for left, right in pairs]
    make_directory(path.parent)
    write_atomically({path: "".join(f"{line}\n" for line in lines).encode("utf-8")})


# -- reading --------------------------------------------------------------------------------------------


def _error(path: Path, line: int, problem: str) -> FormatError:
    return FormatError(f"{path}, line {line}: {problem}")


def _read_lines(path: Path) -> list[str]:
    text = decode_text(read_bytes(path), path)
    if not text.endswith("\n"):
        raise FormatError(f"{path}: the last line has no newline; the file may be cut off")
    return [line.removesuffix("\r") for line in text.split("\n")[:-1]]


def _is_number(text: str) -> bool:
    return text.isascii() and text.isdecimal() and len(text) <= 10


def _read_pattern(path: Path, pattern: str) -> list[Split]:
    """The pre-tokenisation steps of a pattern."""
    if not pattern:
        return []
    if pattern != pattern.strip() or "\r" in pattern:
        raise _error(
            path, 2, "the pattern begins or ends with white space, which minbpe strips; write a space as [ ]"
        )
    try:
        step = keeping_matches(pattern)
    except PatternError as error:
        raise _error(path, 2, f"the pattern is not supported: {error}") from error
    problem = python_objection(pattern)
    if problem is not None:
        raise _error(path, 2, f"the pattern {shorten(pattern)} {problem}")
    return [step]


def _read_merges(
    path: Path, lines: Sequence[str], start: int
) -> tuple[list[bytes], list[tuple[bytes, bytes]]]:
    """The tokens in the order of their ids, and the merges."""
    tokens = [bytes([byte]) for byte in range(256)]
    merges: list[tuple[bytes, bytes]] = []
    owners = {token: token_id for token_id, token in enumerate(tokens)}
    size = 0
    for number, line in enumerate(lines[start:], start + 1):
        ids = line.split()
        if len(ids) != 2 or not (_is_number(ids[0]) and _is_number(ids[1])):
            raise _error(
                path, number, f"{shorten(line)} is not a merge: it must be two ids separated by a space"
            )
        left, right = int(ids[0]), int(ids[1])
        if max(left, right) >= len(tokens):
            raise _error(
                path,
                number,
                f"the id {max(left, right)} is not defined: neither a byte nor a merge on a line above",
            )
        length = len(tokens[left]) + len(tokens[right])
        size += length
        if length > _MAX_TOKEN or size > _MAX_VOCABULARY:
            raise _error(
                path,
                number,
                f"makes a token of {length:,} bytes and a vocabulary of {size:,} bytes, which is too large",
            )
        merges.append((tokens[left], tokens[right]))
        token = tokens[left] + tokens[right]
        if owners.setdefault(token, len(tokens)) != len(tokens):
            raise _error(
                path,
                number,
                f"makes the same token as id {owners[token]}; a token with two ids cannot be represented",
            )
        tokens.append(token)
    return tokens, merges


def _read_special_tokens(path: Path, lines: Sequence[str], vocab_size: int) -> dict[str, int]:
    special: dict[str, int] = {}
    owners: dict[int, str] = {}
    for number, line in enumerate(lines, 4):
        parts = line.split()
        if len(parts) != 2 or not _is_number(parts[1]) or int(parts[1]) > _MAX_ID:
            raise _error(
                path,
                number,
                f"{shorten(line)} is not a special token: it must be a text without spaces and an id",
            )
        text, token_id = parts[0], int(parts[1])
        if token_id < vocab_size:
            raise _error(
                path,
                number,
                f"the id {token_id} of {shorten(text)} is already the id of a byte or of a merge",
            )
        if text in special:
            raise _error(path, number, f"duplicate special token {shorten(text)}")
        if owners.setdefault(token_id, text) != text:
            raise _error(
                path, number, f"{shorten(owners[token_id])} and {shorten(text)} both have the id {token_id}"
            )
        special[text] = token_id
    shadowed = _shadowed(list(special))
    if shadowed is not None:
        raise FormatError(
            f"{path}: the special token {shorten(shadowed[0])} precedes {shorten(shadowed[1])}, which begins "
            "with it: minbpe finds the first one, this package the longer one; list the longer one first"
        )
    return special


def _shadowed(texts: Sequence[str]) -> tuple[str, str] | None:
    """A text and a longer one after it that begins with it; None if no text shadows another."""
    place = {text: index for index, text in enumerate(texts)}
    # The prefixes of the current text, the longest last: each is listed before the shorter ones.
    prefixes: list[str] = []
    for text in sorted(texts):
        while prefixes and not text.startswith(prefixes[-1]):
            prefixes.pop()
        if prefixes and place[prefixes[-1]] < place[text]:
            return prefixes[-1], text
        prefixes.append(text)
    return None


# -- writing --------------------------------------------------------------------------------------------


def _write_pattern(core: _core.Model) -> str:
    patterns = core.split_patterns
    if patterns is None or len(patterns) > 1:
        raise FormatError(f"split_patterns: {_NAME} holds one pattern and no other step")
    if not patterns:
        return ""
    pattern = patterns[0]
    problem = python_objection(pattern)
    if problem is None and not _core.SplitPattern(pattern).covers_every_text:
        problem = "may leave text unmatched, which minbpe drops and this package keeps; use a named pattern"
    if problem is not None:
        raise FormatError(f"split_patterns: {_NAME} cannot hold {shorten(pattern)}: it {problem}")
    return pattern


def _write_special_tokens(core: _core.Model) -> dict[str, int]:
    """The special tokens, the longest first: minbpe takes the first one that matches."""
    tokens = core.added_tokens
    for token in tokens:
        where = f"added_tokens: {_NAME} cannot hold {shorten(token.content)}"
        if not token.special:
            raise FormatError(f"{where}: it is not a special token, and is found in every text")
        if token.single_word or token.lstrip or token.rstrip:
            raise FormatError(f"{where} with single_word, lstrip or rstrip")
        if token.content.split() != [token.content]:
            raise FormatError(f"{where}: it holds white space, which separates the fields of a line")
    tokens.sort(key=lambda token: -len(token.content))
    return {token.content: token.id for token in tokens}


def _write_merges(core: _core.Model, special: frozenset[int]) -> list[tuple[int, int]]:
    """The merges as pairs of ids, if the ids are the bytes and then the merges in order."""
    vocab = {token_id: token for token_id, token in core.vocab.items() if token_id not in special}
    merges = core.merges
    ids = {bytes([byte]): byte for byte in range(256)}
    pairs: list[tuple[int, int]] = []
    for left, right in merges:
        if left not in ids or right not in ids:
            raise FormatError(
                f"merges: {shorten((left, right))} precedes the merge that makes one of its parts"
            )
        pairs.append((ids[left], ids[right]))
        ids.setdefault(left + right, 255 + len(pairs))
    for token, token_id in ids.items():
        if vocab.pop(token_id, None) != token:
            found = next(other for other, same in core.vocab.items() if same == token)
            raise FormatError(
                f"vocab: {_NAME} numbers the bytes and then the merges from 0, so {shorten(token)} must have "
                f"the id {token_id}, not {found}; train without special tokens, or give them higher ids"
            )
    if vocab or len(ids) != 256 + len(merges):
        extra = next(iter(vocab.items()), None)
        what = (
            "two merges make the same token"
            if extra is None
            else f"no merge makes {shorten(extra[1])} (id {extra[0]})"
        )
        raise FormatError(f"vocab: {_NAME} holds only bytes and the tokens of merges; {what}")
    return pairs
