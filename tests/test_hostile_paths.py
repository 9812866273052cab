"""Whatever a path leads to, and however a file is broken: only this package's errors, and no waiting."""

from __future__ import annotations

import contextlib
import itertools
import json
import os
import signal
from collections.abc import Callable, Iterable, Iterator
from functools import cache, partial
from pathlib import Path
from types import FrameType

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bpe_tokenizer import BPETokenizer, ChatSession, OptionError, PieceCounts, TokenizerError
from bpe_tokenizer.arguments import check_path, check_paths
from bpe_tokenizer.cli import main
from bpe_tokenizer.corpus import tokenize_corpus
from bpe_tokenizer.distributed.arrow import CountSettings
from bpe_tokenizer.distributed.count_files import count_on_engine
from bpe_tokenizer.formats.registry import FORMATS
from distributed.local_tasks import LocalTasks
from mutations import break_bytes, break_json, hopeless
from scripted_model import scripted

Read = Callable[[Path], object]

READERS: dict[str, Read] = {
    "load": BPETokenizer.load,
    "from_pretrained": BPETokenizer.from_pretrained,
    "from_huggingface": BPETokenizer.from_huggingface,
    "from_tiktoken": lambda path: BPETokenizer.from_tiktoken(path, "gpt2", {}),
    **{name: partial(BPETokenizer.load, format=name) for name, each in FORMATS.items() if each.can_load},
    "gpt2 merges": lambda path: BPETokenizer.load(path.parent / "vocab.json", "gpt2", merges=path),
    "counts": PieceCounts.load,
    "session": lambda path: chat().load(path),
}


@cache
def small() -> BPETokenizer:
    return BPETokenizer("gpt2", None).train("low low", 257, verbose=False)


def chat() -> ChatSession:
    return ChatSession(scripted()[1], small(), "Be brief.", template="chatml")


@pytest.fixture(autouse=True)
def no_waiting() -> Iterator[None]:
    def give_up(_signal: int, _frame: FrameType | None) -> None:
        raise TimeoutError("a reader waits for a file that nobody writes")

    previous = signal.signal(signal.SIGALRM, give_up)
    signal.alarm(200)
    yield
    signal.alarm(0)
    signal.signal(signal.SIGALRM, previous)


def made(make: Callable[[Path], object]) -> Callable[[Path], Path]:
    def place(path: Path) -> Path:
        make(path)
        return path

    return place


def link_to_a_pipe(path: Path) -> None:
    os.mkfifo(path.with_name("pipe"))
    path.symlink_to("pipe")


PATHS: dict[str, Callable[[Path], Path]] = {
    "directory": made(Path.mkdir),
    "pipe": made(os.mkfifo),
    "link to a pipe": made(link_to_a_pipe),
    "device": made(lambda path: path.symlink_to("/dev/zero")),
    "loop": made(lambda path: path.symlink_to(path.name)),
    "empty": made(Path.touch),
    "missing": lambda path: path,
    "missing directory": lambda path: path / "x",
    "in a file": lambda path: made(Path.touch)(path) / "x",
    "long": lambda path: path.with_name("n" * 300),
    "zero byte": lambda path: path.with_name("a\0b"),
    "surrogate": lambda path: path.with_name("\udcff"),
}


@pytest.mark.parametrize("reader", READERS)
@pytest.mark.parametrize("kind", PATHS)
def test_a_path_to_something_else(kind: str, reader: str, tmp_path: Path) -> None:
    (tmp_path / "vocab.json").write_text("{}")
    path = PATHS[kind](tmp_path / "x")
    with pytest.raises(TokenizerError) as raised:
        READERS[reader](path)
    assert len(str(raised.value)) <= 300 + len(str(path))
    if reader == "load":  # a pipe also as one file of a directory
        (tmp_path / "d").mkdir()
        os.mkfifo(tmp_path / "d" / "tokenizer.json")
        for load in (BPETokenizer.load, BPETokenizer.from_pretrained):
            with pytest.raises(TokenizerError):
                load(tmp_path / "d")


SAVERS: dict[str, Callable[[str], object]] = {
    "save": lambda path: small().save(path),
    **{
        name: partial(small().export, format=name)
        for name, each in FORMATS.items()
        if each.can_save and name != "minbpe"
    },
    "minbpe": lambda path: small().export(f"{path}.model", "minbpe"),
    "save_readable": lambda path: small().save_readable(path),
    "counts": lambda path: PieceCounts("gpt2").add("a").save(path),
    "corpus": lambda path: tokenize_corpus(os.__file__, path, small(), append_eos=False, verbose=False),
    "corpus input": lambda path: tokenize_corpus(path, "out", small(), append_eos=False, verbose=False),
    "checkpoint": lambda path: small().train([Path(__file__)], 257, verbose=False, checkpoint=path),
}


@pytest.mark.parametrize("saver", SAVERS)
def test_a_path_that_no_file_can_have(saver: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "file").touch()
    for path in ("\0", "a\0b", "\ud800", "n" * 300, "file/x", "/proc/1/x", "a/" * 3000):
        with pytest.raises(TokenizerError):
            SAVERS[saver](path)
    assert [each.name for each in tmp_path.rglob("*")] == ["file"]


def run_command(line: str, output: object) -> None:
    main([*line.split(), str(output), "--debug"])


URL_SAVERS: dict[str, Callable[[str], object]] = {
    **{name: saver for name, saver in SAVERS.items() if not name.startswith("corpus")},
    "save as demo": lambda path: small().save(path, name="demo"),
    "session": lambda path: chat().save(path),
    "counted units": lambda path: count_on_engine(LocalTasks(), os.__file__, CountSettings("gpt2"), path, {}),
    **{
        command: partial(run_command, line)
        for command, line in {
            "train": "train --corpus absent --output",
            "count": "count --corpus absent --output",
            "report": "report -t saved --corpus absent --html",
            "compare": "compare saved saved --corpus absent --html",
            "view": "view -t saved --text a --html",
            "convert": "convert saved --to huggingface",
            "convert to a file": "convert saved --to tiktoken",
        }.items()
    },
}


@pytest.mark.parametrize("saver", URL_SAVERS)
def test_an_output_is_not_a_url(saver: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    small().save("saved")
    for path in ("s3://bucket/x", "file:///x.bin", Path("gs://bucket/a/x"), "hdfs://host:80/x"):
        with pytest.raises(TokenizerError, match=r"is a URL, and results are written to local files only"):
            URL_SAVERS[saver](path)  # type: ignore[arg-type]
    assert [each.name for each in tmp_path.iterdir()] == ["saved"]


def refusals(read: Read, path: Path, versions: Iterable[bytes]) -> list[str]:
    """The messages of the versions of a file that are refused."""
    messages: list[str] = []
    for number, data in enumerate(versions):
        path.write_bytes(data)
        try:
            read(path)
        except TokenizerError as error:
            messages.append(str(error))
        except Exception as error:
            raise AssertionError(f"version {number}: {data[:300]!r}") from error
    assert len(messages) > number // 10
    return messages


def attempt(read: Read, path: Path, versions: Iterable[bytes]) -> None:
    assert [each for each in refusals(read, path, versions) if path.name not in each] == []


def hostile_json(text: bytes) -> Iterator[bytes]:
    """A JSON file with what Python's parser itself gives up on."""
    yield text[:-2] + b',"x":' + b"9" * 5000 + text[-2:]
    for depth in (500, 990, 3000):
        yield text[:1] + b'"x":' + b"[" * depth + b"]" * depth + b"," + text[1:]
    yield text[:1] + b'"x":NaN,' + text[1:]
    yield text[:1] + b'"x":"\\ud800",' + text[1:]
    yield b"\xef\xbb\xbf" + text
    yield text.decode().encode("utf-16")


def test_counts(tmp_path: Path) -> None:
    path = tmp_path / "part.counts"
    PieceCounts("gpt2", special_tokens=["<|end|>"]).add("low lower<|end|>").save(path)
    data = path.read_bytes()
    header = data[data.index(b"{") : data.rindex(b"}") + 1]

    def with_header(text: bytes) -> bytes:
        start = data.index(b"{") - 8
        rest = data[data.rindex(b"}") + 1 :]
        return data[:start] + len(text).to_bytes(8, "little") + text + rest

    broken = itertools.chain(break_json(json.loads(header), 200), hostile_json(header))
    versions = itertools.chain(hopeless(), break_bytes(data, 300), map(with_header, broken))
    attempt(PieceCounts.load, path, versions)


def test_conversations(tmp_path: Path) -> None:
    path, session = tmp_path / "chat.json", chat()
    session.messages = [{"role": "user", "content": "hi"}, {"role": "assistant", "content": "low"}]
    session.save(path)
    data = path.read_bytes()
    broken = itertools.chain(break_json(json.loads(data), 300), hostile_json(data.strip()))
    attempt(lambda path: chat().load(path), path, itertools.chain(hopeless(), break_bytes(data, 150), broken))


def test_manifests(tmp_path: Path) -> None:
    corpus, out = tmp_path / "c.txt", tmp_path / "out"
    corpus.write_text("low\nlower\nlowest\n")
    tokenizer = small()
    tokenize_corpus(corpus, out, tokenizer, append_eos=False, shard_tokens=4, verbose=False)
    path = out / "plan.json"
    data = path.read_bytes()

    def run(_: Path) -> None:
        tokenize_corpus(corpus, out, tokenizer, append_eos=False, shard_tokens=4, verbose=False)

    broken = itertools.chain(break_json(json.loads(data), 120), hostile_json(data.strip()))
    assert len(refusals(run, path, itertools.chain(hopeless(), break_bytes(data, 60), broken))) > 20
    path.write_bytes(data)
    path = out / "unit-00000.json"
    data = path.read_bytes()
    for version in itertools.chain(hopeless(), break_bytes(data, 60), break_json(json.loads(data), 120)):
        path.write_bytes(version)
        with contextlib.suppress(TokenizerError):
            run(path)


@pytest.mark.sampled(0.5)
@pytest.mark.parametrize("name", ["pieces.counts", "merges.json"])
def test_checkpoints(name: str, tmp_path: Path) -> None:
    corpus, run = tmp_path / "c.txt", tmp_path / "run"
    corpus.write_text("low lower lowest\n" * 3)

    def train(_: Path) -> None:
        for path, content in good.items():
            if path.name != name:
                path.write_bytes(content)
        BPETokenizer("gpt2", None).train([corpus], 260, verbose=False, checkpoint=run, threads=1)

    good: dict[Path, bytes] = {}
    train(run)
    good |= {path: path.read_bytes() for path in run.iterdir()}
    data = good[run / name]
    versions = itertools.chain(hopeless(), break_bytes(data, 100))
    if "json" in name:
        versions = itertools.chain(versions, break_json(json.loads(data), 80), hostile_json(data.strip()))
    assert len(refusals(train, run / name, versions)) > 20
    for path in list(good):
        del good[path]
        path.unlink()
        path.mkdir()
        with pytest.raises(TokenizerError, match="Is a directory"):
            train(run)
        path.rmdir()


@given(
    names=st.lists(
        st.one_of(
            st.text(st.sampled_from("a_-. /é\n\\"), min_size=1, max_size=12),
            st.integers(1, 4096).map("x".__mul__),
        ),
        max_size=4,
    )
)
def test_paths_that_are_checked_quickly_are_those_that_are_checked_one_by_one(names: list[str]) -> None:
    for paths in (names, [Path(name) for name in names]):
        assert check_paths("m", paths) == [str(check_path("a path", path)) for path in paths]


@pytest.mark.parametrize("path", ["", "a\0", "a" * 4097, "\ud800"])
def test_no_quick_check_lets_a_wrong_path_pass(path: str) -> None:
    with pytest.raises(OptionError):
        check_paths("m", [path])
