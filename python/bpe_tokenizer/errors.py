"""The errors of the package.

Every error is a `TokenizerError` and also the built-in that fits (`ValueError`, `KeyError`, ...),
so callers may catch either. A message says what was wrong, where, and what to do about it, in at most 300
characters. Names and values may be a stranger's: `shorten` cuts them, and every message is escaped.
"""

from __future__ import annotations

import errno
import os
import sys
from collections.abc import Iterable
from typing import Any

__all__ = [
    "ArgumentTypeError",
    "ChatTemplateError",
    "ContextLengthError",
    "CorpusError",
    "CorpusFileNotFoundError",
    "DecodingError",
    "FormatError",
    "GenerationError",
    "HubError",
    "MismatchError",
    "MissingDependencyError",
    "ModelError",
    "ModelFileNotFoundError",
    "NotTrainedError",
    "OptionError",
    "PatternError",
    "SpecialTokenError",
    "TokenizerError",
    "TokenizerFileNotFoundError",
    "UnknownColumnError",
    "UnknownIdError",
    "WriteError",
    "caller_level",
    "did_you_mean",
    "escaped",
    "shorten",
]


# Characters of a message with a path.
_MAX_MESSAGE = 480
_MAX_SHOWN_PATH = 160
_WRITE_ADVICE = {
    errno.ENOSPC: "; free some space, or write to another disk",
    getattr(errno, "EDQUOT", errno.ENOSPC): "; free some space, or write to another disk",
    errno.EACCES: "; check the permissions of its directory",
    errno.EPERM: "; check the permissions of its directory",
    errno.EROFS: "; write to another directory",
    errno.ENOENT: "; create its directory first",
    errno.ENAMETOOLONG: "; use a shorter name",
    errno.EISDIR: "; use another name",
}


def escaped(text: str, limit: int = sys.maxsize) -> str:
    r"""Return a text with every character escaped that does not print, cut to at most `limit` characters.

    These are control characters, ends of lines, format characters such as bidirectional overrides, spaces
    other than U+0020, lone surrogates and unassigned characters: a text cannot move a terminal's cursor,
    change its colours or title, or begin a line. Of a long text, the beginning and the end are kept.

    >>> print(escaped("caf\u00e9\x1b[2J\n\u202e\ud800"), escaped("a" * 30 + "b" * 30, limit=20))
    café\x1b[2J\n\u202e\ud800 aaaaaaaaa ... bbbbbb
    """
    text = _cut(text, limit)
    if text.isprintable():
        return text
    text = "".join(c if c.isprintable() else c.encode("unicode_escape").decode("ascii") for c in text)
    return _cut(text, limit)  # escapes are longer than their characters


def _cut(text: str, limit: int) -> str:
    end = limit // 3
    return text if len(text) <= limit else f"{text[: limit - end - 5]} ... {text[-end:]}"


def shorten(value: object, limit: int = 80) -> str:
    """Return `repr(value)` for an error message, escaped and cut to at most `limit` characters.

    >>> shorten("<s>"), shorten("a" * 1000, limit=12)
    ("'<s>'", "'aaaaaaa...'")
    """
    try:
        if isinstance(value, str | bytes):
            value = value[:limit]  # a whole document may be passed; `limit` characters are enough
        text = repr(value)
    except Exception:  # deep nesting, an integer of over 4,300 digits, or a class whose `repr` fails
        text = f"<{type(value).__name__} without a repr>"
    text = escaped(text)  # `repr` of a foreign class may be anything
    return text if len(text) <= limit else f"{text[: limit - 4]}...{text[-1]}"


def caller_level() -> int:
    """Return the `stacklevel` for a warning of the caller that points at code outside this package."""
    package = __file__.rpartition(os.sep)[0] + os.sep
    frame, level = sys._getframe(1), 1
    while frame.f_back is not None and frame.f_code.co_filename.startswith(package):
        frame, level = frame.f_back, level + 1
    return level


def did_you_mean(name: object, known: Iterable[str]) -> str:
    """Return the end of a sentence about an unknown name: a suggestion, or a full stop.

    >>> did_you_mean("<eso>", ["<eos>", "<bos>"]), did_you_mean("x", ["<eos>"])
    ("; did you mean '<eos>'?", '.')
    """
    import difflib  # a few milliseconds, which only errors need

    # Comparing takes quadratic time.
    close = difflib.get_close_matches(name[:100], known, n=1) if isinstance(name, str) else []
    return f"; did you mean {shorten(close[0])}?" if close else "."


class TokenizerError(Exception):
    """The base class of the package's errors.

    Args:
        arguments: The message, which is escaped and cut; `DecodingError` has the arguments of
            `UnicodeDecodeError`.
    """

    def __init__(self, *arguments: object) -> None:
        shown = (escaped(each, _MAX_MESSAGE) if isinstance(each, str) else each for each in arguments)
        super().__init__(*shown)

    def __str__(self) -> str:
        """Return the message itself (`KeyError` would quote it, `OSError` add a number and a file)."""
        return Exception.__str__(self)


class OptionError(TokenizerError, ValueError):
    """An argument has a value that is not valid, alone or together with another argument."""


class ArgumentTypeError(TokenizerError, TypeError):
    """An argument is of the wrong type."""


class ModelError(TokenizerError, ValueError):
    """A vocabulary, a merge list or an added token breaks a rule of byte-level BPE."""


class PatternError(TokenizerError, ValueError):
    """A split pattern is not a valid regular expression, or gave up on a text."""


class SpecialTokenError(TokenizerError, ValueError):
    """A text contains a disallowed special token, or a special token is unknown."""


class ChatTemplateError(TokenizerError, ValueError):
    """A chat template is not valid, fails, or refuses a conversation; the message has the position."""


class CorpusError(TokenizerError, ValueError):
    """A training corpus is empty, cannot be read or is not UTF-8; the message names the file and the byte."""


class FormatError(TokenizerError, ValueError):
    """A tokenizer file is broken, or holds a feature that this package cannot represent."""


class TokenizerFileNotFoundError(FormatError, FileNotFoundError):
    """The file or directory of a tokenizer does not exist."""


class CorpusFileNotFoundError(CorpusError, FileNotFoundError):
    """A file of a corpus does not exist."""


class ModelFileNotFoundError(OptionError, FileNotFoundError):
    """The file or directory of a language model does not exist."""


class HubError(TokenizerError, OSError, RuntimeError):
    """A published tokenizer is not available: no connection, unknown name, no permission, or not cached."""


class WriteError(TokenizerError, OSError):
    """A file cannot be written: no space, no permission, or another run writes into its directory.

    Args:
        message: The message.
        errno: The number of the operating system's error, as in `OSError.errno`.
        filename: The file, as in `OSError.filename`.
    """

    def __init__(
        self, message: str, errno: int | None = None, filename: str | os.PathLike[str] | None = None
    ) -> None:
        super().__init__(message)
        self.errno = errno
        self.filename = filename

    @classmethod
    def of(cls, path: str | os.PathLike[str], error: OSError | ValueError) -> WriteError:
        """Return the error for a path that the operating system refuses to write.

        >>> print(WriteError.of("model.json", OSError(28, "No space left on device")))
        model.json: cannot be written: No space left on device; free some space, or write to another disk
        """
        if isinstance(error, cls):
            return error
        number = error.errno if isinstance(error, OSError) else None
        reason = (error.strerror if isinstance(error, OSError) else None) or str(error)
        advice = _WRITE_ADVICE.get(number or 0, "")
        name = os.fsdecode(path)
        if len(name) > _MAX_SHOWN_PATH:
            name = f"...{name[-_MAX_SHOWN_PATH:]}"
        return cls(f"{name!s}: cannot be written: {reason[:80]}{advice}", number, path)

    def __reduce__(self) -> tuple[type[WriteError], tuple[str, int | None, Any]]:
        """Pickle all arguments."""
        return type(self), (str(self), self.errno, self.filename)


class DecodingError(TokenizerError, UnicodeDecodeError):
    """The bytes of ids are not UTF-8, and `errors` is `"strict"`."""

    def __str__(self) -> str:
        """Return Python's message, which is made of the arguments."""
        return UnicodeDecodeError.__str__(self)


class UnknownIdError(TokenizerError, KeyError):
    """An id is not in the vocabulary."""


class UnknownColumnError(TokenizerError, KeyError):
    """A result does not have a column; the message names those that it has."""


class NotTrainedError(TokenizerError, ValueError, RuntimeError):
    """The tokenizer has no vocabulary yet."""


class MissingDependencyError(TokenizerError, ImportError):
    """An optional library is not installed; the message holds the install command."""


class ContextLengthError(TokenizerError, ValueError):
    """A prompt or a conversation is longer than it may be.

    Args:
        message: The message.
        length: Number of ids.
        limit: Largest number of ids that is allowed.
    """

    def __init__(self, message: str, length: int, limit: int) -> None:
        super().__init__(message)
        self.length = length
        self.limit = limit

    def __reduce__(self) -> tuple[type[ContextLengthError], tuple[str, int, int]]:
        """Pickle all arguments."""
        return type(self), (str(self), self.length, self.limit)


class GenerationError(TokenizerError, RuntimeError):
    """An inference engine or server cannot load a model, or fails while it generates."""


class MismatchError(TokenizerError, ValueError):
    """A tokenizer does not belong to the language model that it is used with."""
