"""What the tests of tiktoken's files share: small vocabularies, a naive oracle, a server, a filled cache."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from bpe_tokenizer import AddedToken, Model, _core
from bpe_tokenizer.compat.tiktoken import Encoding
from bpe_tokenizer.formats.tiktoken.published import ENCODER_JSON, PUBLISHED, VOCAB_BPE
from bpe_tokenizer.formats.tiktoken.ranks import write_ranks
from hostile import hostile_texts
from local_http import serving

if TYPE_CHECKING:
    import tiktoken


def bytes_and(*tokens: str | bytes) -> dict[bytes, int]:
    """The bytes, and these tokens after them."""
    written = [token.encode() if isinstance(token, str) else token for token in tokens]
    return {token: rank for rank, token in enumerate([*(bytes([byte]) for byte in range(256)), *written])}


def merged(ranks: Mapping[bytes, int], piece: bytes) -> list[bytes]:
    """tiktoken's merging, as its definition has it: of the neighbours whose bytes are a token the lowest."""
    parts = [piece[at : at + 1] for at in range(len(piece))]
    while True:
        joined = [(ranks[a + b], at) for at, (a, b) in enumerate(pairwise(parts)) if a + b in ranks]
        if not joined:
            return parts
        at = min(joined)[1]
        parts[at : at + 2] = [parts[at] + parts[at + 1]]


@dataclass
class FileServer:
    """What the server holds; the tests change it as they go. A file that is None breaks off."""

    address: str = ""
    files: dict[str, bytes | None] = field(default_factory=dict)
    requests: list[str] = field(default_factory=list)


@contextmanager
def running() -> Iterator[FileServer]:
    """A server of files on this machine."""
    content = FileServer()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            content.requests.append(self.path)
            data = content.files.get(self.path, b"")
            self.send_response(200 if self.path in content.files else 404)
            self.send_header("Content-Length", str(9 if data is None else len(data)))
            self.end_headers()
            self.wfile.write(b"cut" if data is None else data)

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002
            pass

    with serving(ThreadingHTTPServer(("127.0.0.1", 0), Handler)) as content.address:
        yield content


def gpt2_files() -> tuple[bytes, bytes]:
    """GPT-2's two files for bytes, "ab" and "abc"."""
    order = sorted(range(256), key=lambda byte: _core.to_printable(bytes([byte])))
    tokens = [_core.to_printable(bytes([byte])) for byte in order] + ["ab", "abc", "<|endoftext|>"]
    encoder = json.dumps({token: token_id for token_id, token in enumerate(tokens)}).encode()
    return b"#version: 0.2\na b\nab c\n", encoder


def fill_cache(directory: Path, vocab: Path, names: Sequence[str] = tuple(PUBLISHED)) -> None:
    """Put published files where tiktoken keeps them, from a directory that has those of each encoding."""
    for name in names:
        url = PUBLISHED[name].ranks.url
        _keep(directory, url, (vocab / url.rpartition("/")[2]).read_bytes())
        if name == "gpt2":
            merges = (vocab / "gpt2-merges.txt").read_bytes()
            _keep(directory, VOCAB_BPE.url, b"#version: 0.2\n" + merges)
            _keep(directory, ENCODER_JSON.url, (vocab / "gpt2-vocab.json").read_bytes())


def _keep(directory: Path, url: str, data: bytes) -> None:
    (directory / hashlib.sha1(url.encode()).hexdigest()).write_bytes(data)


def their_encoding(name: str, cache: Path) -> tiktoken.Encoding:
    """tiktoken's own encoding of this name, of the files in a cache."""
    import tiktoken
    from tiktoken.load import load_tiktoken_bpe

    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TIKTOKEN_CACHE_DIR", str(cache))
        # Other tests replace what it loads ranks with.
        patch.setattr("tiktoken_ext.openai_public.load_tiktoken_bpe", load_tiktoken_bpe)
        return tiktoken.get_encoding(name)


END, PAD = "<|endoftext|>", "<|pad|>"
PATTERN = r"\S+|\s+"
TINY = write_ranks(bytes_and("ab", "abc"))
TEXTS = ["ababc abcab", "<|end|>", "é日 \x00", *hostile_texts(50)[:200]]


def ids(model: Model, texts: Sequence[str], special: bool = True) -> list[list[int]]:
    return _core.Encoder(model.core).encode_batch(texts, special)


def core(
    tokens: dict[int, bytes],
    merges: Sequence[tuple[bytes, bytes]] | None,
    added: Sequence[AddedToken] = (),
    **settings: Any,
) -> _core.Model:
    vocab = {byte: bytes([byte]) for byte in range(256)} | tokens
    if "pre_tokenizers" not in settings:
        settings.setdefault("split_patterns", [r"\S+|\s+"])
    return _core.Model(vocab, merges, added_tokens=added, **settings)


def encoding(pat_str: str = r"\S+|\s+", special: dict[str, int] | None = None, **more: Any) -> Any:
    ranks = more.pop("ranks", bytes_and("ab", "abc"))
    return Encoding("mine", pat_str=pat_str, mergeable_ranks=ranks, special_tokens=special or {}, **more)
