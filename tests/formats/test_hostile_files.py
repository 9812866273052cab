"""Broken files of every format: a clear error that names the file, or a tokenizer that works."""

from __future__ import annotations

import itertools
import json
import resource
import signal
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from types import FrameType
from typing import Any

import pytest

from bpe_tokenizer import BPETokenizer
from bpe_tokenizer.errors import TokenizerError
from bpe_tokenizer.formats import base64_json, gguf, gpt2, huggingface, minbpe, tekken, tiktoken
from bpe_tokenizer.model import Model
from hf_files import good, good_characters
from mutations import break_bytes, break_json, break_numbers, hopeless
from tekken_files import tekken_document

SAMPLE = "Hello, wörld! 日本語 🙂\n\n  it's 12345<|end|> \0"
# Far more than such small files need; what is claimed in their headers is more by orders of magnitude.
MEMORY = 1 << 30
SECONDS = 30


pytestmark = pytest.mark.filterwarnings("ignore:.*tokenizer.ggml.pre is missing:UserWarning")


@pytest.fixture
def bounded() -> Iterator[None]:
    """Neither memory nor time without end: an attempt fails with MemoryError or TimeoutError."""
    used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    soft, hard = resource.getrlimit(resource.RLIMIT_AS)
    resource.setrlimit(resource.RLIMIT_AS, (used + MEMORY, hard))

    def give_up(_signal: int, _frame: FrameType | None) -> None:
        raise TimeoutError

    previous = signal.signal(signal.SIGALRM, give_up)
    yield
    signal.alarm(0)
    signal.signal(signal.SIGALRM, previous)
    resource.setrlimit(resource.RLIMIT_AS, (soft, hard))


def small_tokenizer() -> BPETokenizer:
    text = "low lower lowest, new newer newest. " * 3
    tokenizer = BPETokenizer(split_pattern="gpt2", normalization=None)
    return tokenizer.train(text, 280, special_tokens={"<|end|>": 280}, verbose=False)


def attempt(load: Callable[[Path], Model], path: Path, versions: Iterable[bytes], name: str) -> None:
    """Load every broken version of a file that stands at the path `name` below another."""
    place = path / name if name else path
    place.parent.mkdir(parents=True, exist_ok=True)
    messages: list[str] = []
    for number, data in enumerate(versions):
        place.write_bytes(data)
        signal.alarm(SECONDS)
        try:
            tokenizer = BPETokenizer.from_model(load(path))
            ids = tokenizer.encode(SAMPLE, allowed_special="all")
            tokenizer.decode(ids)
            tokenizer.encode(SAMPLE, add_special_tokens=True)
        except TokenizerError as error:
            messages.append(str(error))
        except Exception as error:
            raise AssertionError(f"version {number} of {name or path.name}: {data[:300]!r}") from error
        finally:
            signal.alarm(0)
    assert len(messages) > number // 10, "hardly anything was broken"
    assert not [message for message in messages if path.name not in message]
    assert not [each for each in messages if len(each) > 300 + len(str(place)) or not each.isprintable()]


@pytest.mark.sampled(0.5)
@pytest.mark.parametrize("make", [good, good_characters])
def test_tokenizer_json(make: Callable[[], dict[str, Any]], tmp_path: Path, bounded: None) -> None:
    sound = make()
    data = json.dumps(sound, ensure_ascii=False).encode()
    BPETokenizer.from_model(_loaded(huggingface.load, tmp_path / "sound", "tokenizer.json", data))
    broken = itertools.chain(hopeless(), break_json(sound, 500), break_bytes(data, 300))
    attempt(huggingface.load, tmp_path / "directory", broken, "tokenizer.json")


def test_tokenizer_config_json(tmp_path: Path, bounded: None) -> None:
    small_tokenizer().save(tmp_path / "directory")
    config = tmp_path / "directory" / "tokenizer_config.json"
    sound = json.loads(config.read_bytes())
    broken = itertools.chain(hopeless(), break_json(sound, 300), break_bytes(config.read_bytes(), 150))
    versions = list(broken)
    attempt(huggingface.load, tmp_path / "directory", versions, "tokenizer_config.json")
    for name in ("special_tokens_map.json", "chat_template.jinja"):
        config.unlink(missing_ok=True)
        (tmp_path / "directory" / name).write_bytes(b"\xff\xfe")
        with pytest.raises(TokenizerError, match="directory"):
            huggingface.load(tmp_path / "directory")
        (tmp_path / "directory" / name).unlink()


def test_gguf(tmp_path: Path, bounded: None) -> None:
    tokenizer = BPETokenizer(split_pattern="llama3", normalization=None)
    tokenizer.train(
        "low lower lowest, new newer newest. " * 3, 280, special_tokens=["<|end|>"], verbose=False
    )
    path = tmp_path / "sound.gguf"
    gguf.save(tokenizer.model, path)
    data = path.read_bytes()
    _loaded(gguf.load, path, "", data)
    broken = itertools.chain(hopeless(), break_numbers(data, 600), break_bytes(data, 400))
    attempt(gguf.load, tmp_path / "broken.gguf", broken, "")


def test_tiktoken(tmp_path: Path, bounded: None) -> None:
    def load(path: Path) -> Model:
        return tiktoken.load(path, split_pattern="gpt2", special_tokens={"<|end|>": 300})

    path = tmp_path / "sound.tiktoken"
    tiktoken.save(small_tokenizer().model, path)
    data = path.read_bytes()
    _loaded(load, path, "", data)
    attempt(load, tmp_path / "broken.tiktoken", itertools.chain(hopeless(), break_bytes(data, 600)), "")


def test_tekken(tmp_path: Path, bounded: None) -> None:
    sound = tekken_document()
    data = json.dumps(sound).encode()
    _loaded(tekken.load, tmp_path / "sound.json", "", data)
    broken = itertools.chain(hopeless(), break_json(sound, 400), break_bytes(data, 200))
    attempt(tekken.load, tmp_path / "broken.json", broken, "")


def test_minbpe(tmp_path: Path, bounded: None) -> None:
    path = tmp_path / "sound.model"
    tokenizer = BPETokenizer(split_pattern="gpt2", normalization=None)
    tokenizer.train("low lower lowest, new newer newest. " * 3, 280, verbose=False)
    minbpe.save(tokenizer.model, path)
    data = path.read_bytes()
    _loaded(minbpe.load, path, "", data)
    attempt(minbpe.load, tmp_path / "broken.model", itertools.chain(hopeless(), break_bytes(data, 600)), "")


@pytest.mark.parametrize("name", ["vocab.json", "merges.txt"])
def test_gpt2(name: str, tmp_path: Path, bounded: None) -> None:
    gpt2.save(small_tokenizer().model, tmp_path / "directory")
    data = (tmp_path / "directory" / name).read_bytes()
    versions: Iterable[bytes] = break_bytes(data, 300)
    if name == "vocab.json":
        versions = itertools.chain(hopeless(), versions, break_json(json.loads(data), 300))
    attempt(gpt2.load, tmp_path / "directory", versions, name)


def test_base64_json(tmp_path: Path, bounded: None) -> None:
    path = tmp_path / "sound.json"
    base64_json.save(small_tokenizer().model, path)
    data = path.read_bytes()
    _loaded(base64_json.load, path, "", data)
    broken = itertools.chain(hopeless(), break_json(json.loads(data), 500), break_bytes(data, 300))
    attempt(base64_json.load, tmp_path / "broken.json", broken, "")


def test_whatever_it_is(tmp_path: Path, bounded: None) -> None:
    """`load` looks at what a file holds before it reads it."""
    attempt(lambda path: BPETokenizer.load(path).model, tmp_path / "unknown.bin", hopeless(), "")


def _loaded(load: Callable[[Path], Model], path: Path, name: str, data: bytes) -> Model:
    """The sound file loads: otherwise the broken ones prove nothing."""
    place = path / name if name else path
    place.parent.mkdir(parents=True, exist_ok=True)
    place.write_bytes(data)
    return load(path)
