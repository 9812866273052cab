r"""A listing of a tokenizer for people: each token on a line, with the two tokens it is merged from.

      97  'a'
     195  <c3>
     257  'lo' = 'l' + 'o'
     258  <c3 a9 c3> = 'é' + <c3>
     300  '<|endoftext|>' special token

Text is quoted and its control characters are escaped; bytes that are not UTF-8 are written in hex. The
listing cannot be loaded again: save the tokenizer in another format too.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from bpe_tokenizer import _core
from bpe_tokenizer.arguments import check_path
from bpe_tokenizer.atomic import make_directory, write_atomically
from bpe_tokenizer.model import Model

__all__ = ["listing", "printable", "save"]


def save(model: Model, path: str | Path) -> None:
    """Write the listing of a tokenizer to a text file in UTF-8.

    Args:
        model: The model to list.
        path: The file; its directory is created.

    Raises:
        WriteError: The file cannot be written.
    """
    text = "".join(f"{line}\n" for line in listing(model.core))
    path = check_path("path", path)
    make_directory(path.parent)
    write_atomically({path: text.encode("utf-8")})


def listing(core: _core.Model) -> Iterator[str]:
    """Yield the lines of the listing: the sizes, then the tokens in the order of their ids.

    Args:
        core: The vocabulary, the merges and the added tokens.

    >>> from bpe_tokenizer import AddedToken
    >>> core = _core.Model({byte: bytes([byte]) for byte in range(256)} | {256: b"lo", 257: b"<s>"},
    ...                    [(b"l", b"o")], split_patterns=[], added_tokens=[AddedToken("<s>", 257)])
    >>> lines = list(listing(core))
    >>> lines[0], lines[256], lines[257:]
    ('258 tokens, 1 merge, 1 added token',
     '    255  <ff>', ["    256  'lo' = 'l' + 'o'", "    257  '<s>' special token"])
    """
    added = {token.id: token for token in core.added_tokens}
    merges = core.merges
    parts: dict[bytes, tuple[bytes, bytes]] = {}
    for left, right in merges:
        parts.setdefault(left + right, (left, right))
    yield ", ".join(
        (_count(len(core), "token"), _count(len(merges), "merge"), _count(len(added), "added token"))
    )
    for token_id, token in core.vocab.items():
        line = f"{token_id:>7}  {printable(token)}"
        if token in parts:
            line += f" = {printable(parts[token][0])} + {printable(parts[token][1])}"
        if token_id in added:
            line += " special token" if added[token_id].special else " added token"
        yield line


def printable(token: bytes) -> str:
    r"""Write a token on one line, so that different tokens look different.

    >>> print(printable(b"low"), printable(b"\r\n\x00"), printable("é".encode()), printable(b"\xc3"))
    'low' '\r\n\x00' 'é' <c3>
    """
    try:
        return repr(token.decode("utf-8"))
    except UnicodeDecodeError:
        return f"<{token.hex(' ')}>"


def _count(number: int, what: str) -> str:
    return f"{number:,} {what}{'' if number == 1 else 's'}"
