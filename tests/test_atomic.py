"""Atomic writes: permissions, links, devices, names, and what killed saves leave."""

from __future__ import annotations

import json
import os
import signal
import stat
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from types import CodeType, FrameType
from typing import TYPE_CHECKING, BinaryIO

import pytest

from bpe_tokenizer import BPETokenizer, WriteError, atomic
from bpe_tokenizer.atomic import AtomicFile, unfinished, write_atomically
from bpe_tokenizer.formats import registry
from bpe_tokenizer.locks import SAVE_LOCK

if TYPE_CHECKING:
    from _typeshed import TraceFunction

WRITER = """
import os, sys, time
from pathlib import Path
from bpe_tokenizer.atomic import AtomicFile
file = AtomicFile(Path(sys.argv[1]))
file.write(b"half")
file.finish()
print("written", flush=True)
time.sleep(60)
"""


@pytest.fixture
def other_writer(tmp_path: Path) -> Iterator[subprocess.Popen[bytes]]:
    """Another process that has written its temporary file of `tmp_path / "x"`."""
    command = [sys.executable, "-c", WRITER, str(tmp_path / "x")]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        process.stdout.readline()
        yield process
        process.kill()


def test_a_save_removes_what_a_killed_one_left_and_never_a_live_one(
    other_writer: subprocess.Popen[bytes], tmp_path: Path
) -> None:
    other_writer.send_signal(signal.SIGSTOP)
    write_atomically({tmp_path / "x": b"1"})
    assert len(unfinished(tmp_path / "x")) == 1
    other_writer.kill()
    other_writer.wait()
    write_atomically({tmp_path / "y": b"2"})
    assert len(unfinished(tmp_path / "x")) == 1
    write_atomically({tmp_path / "x": b"3"})
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == {"x": b"3", "y": b"2"}


def test_files_with_similar_names_are_kept(tmp_path: Path) -> None:
    others = [".x.y.0123456789abcdef.tmp", ".x.tmp", "x.0123456789abcdef.tmp", ".x..tmp", ".xx.01.tmp"]
    for name in others:
        (tmp_path / name).touch()
    write_atomically({tmp_path / "x": b""})
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted([*others, "x"])


def test_a_temporary_file_that_someone_removed_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "x").write_bytes(b"old")
    with pytest.raises(WriteError, match="x: cannot be written"), AtomicFile(tmp_path / "x") as file:
        file.temporary.unlink()
    assert (tmp_path / "x").read_bytes() == b"old"


def test_a_writer_whose_file_is_removed_tries_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    answers = iter([True])

    def remove_once(file: BinaryIO, operation: int) -> None:
        if next(answers, False):
            Path(file.name).unlink()

    monkeypatch.setattr("fcntl.flock", remove_once)
    write_atomically({tmp_path / "x": b"1"})
    assert (tmp_path / "x").read_bytes() == b"1"


def test_an_error_while_a_file_is_written_leaves_nothing(tmp_path: Path) -> None:
    with pytest.raises(TypeError), AtomicFile(tmp_path / "x") as file:
        file.write(1)  # type: ignore[arg-type]
    assert not [*tmp_path.iterdir()]


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")  # the stream, left open
def test_ctrl_c_leaves_nothing_wherever_it_comes(tmp_path: Path) -> None:
    lines: dict[CodeType, int] = {}
    for number in range(10_000):
        remaining = number
        lines.clear()

        def interrupt(frame: FrameType, event: str, _arg: object) -> TraceFunction | None:
            nonlocal remaining
            if frame.f_code.co_filename != atomic.__file__ or frame.f_code.co_name == "__del__":
                return None
            # Python looks for no signal where a function returns; 3.12 reports the line of the call again.
            is_again = event == "line" and lines.get(frame.f_code) == frame.f_lineno
            lines[frame.f_code] = frame.f_lineno
            if event == "return" or is_again:
                return interrupt
            remaining -= 1
            if remaining < 0:
                raise KeyboardInterrupt
            return interrupt

        previous = sys.gettrace()
        sys.settrace(interrupt)
        try:
            with AtomicFile(tmp_path / "x") as file:
                file.write(b"1")
        except KeyboardInterrupt:
            pass
        else:
            break
        finally:
            sys.settrace(previous)
        assert {path.name for path in tmp_path.iterdir()} <= {"x"}, number
    assert number > 30


# -- permissions, links, devices ------------------------------------------------------------------------


@pytest.mark.parametrize(("mask", "mode"), [(0o022, 0o644), (0o077, 0o600), (0o002, 0o664)])
def test_a_new_file_has_the_permissions_of_the_umask(mask: int, mode: int, tmp_path: Path) -> None:
    before = os.umask(mask)
    try:
        write_atomically({tmp_path / "x": b""})
    finally:
        os.umask(before)
    assert stat.S_IMODE((tmp_path / "x").stat().st_mode) == mode


def test_a_link_is_replaced_and_its_target_kept(tmp_path: Path) -> None:
    (tmp_path / "target").write_bytes(b"old")
    (tmp_path / "target").chmod(0o600)
    for number, target in enumerate(("target", "missing", "link1")):
        (tmp_path / f"link{number}").symlink_to(target)
        write_atomically({tmp_path / f"link{number}": b"new"})
        assert not (tmp_path / f"link{number}").is_symlink()
        assert (tmp_path / f"link{number}").read_bytes() == b"new"
    assert (tmp_path / "target").read_bytes() == b"old"
    directory = tmp_path / "directory"
    directory.mkdir()
    (tmp_path / "other").symlink_to(directory)
    write_atomically({tmp_path / "other" / "x": b"1"})
    assert (directory / "x").read_bytes() == b"1"


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs pipes with names")
def test_pipes_and_devices_are_written_and_stay(tmp_path: Path) -> None:
    pipe, link = tmp_path / "pipe", tmp_path / "link"
    os.mkfifo(pipe)
    link.symlink_to(pipe)
    for path in (pipe, link):
        reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
        write_atomically({path: b"data"})
        assert os.read(reader, 10) == b"data"
        os.close(reader)
    assert stat.S_ISFIFO(pipe.stat().st_mode)
    null = tmp_path / "null"
    null.symlink_to(os.devnull)
    write_atomically({null: b"data"})
    assert null.is_symlink()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["link", "null", "pipe"]


def test_a_name_of_the_greatest_length(tmp_path: Path) -> None:
    for name in ("n" * 255, "日" * 85, "n" * 201):
        write_atomically({tmp_path / name: b"1"})
        assert (tmp_path / name).read_bytes() == b"1"
        temporary = AtomicFile(tmp_path / name)
        assert unfinished(tmp_path / name) == [temporary.temporary]
        temporary.abandon()
    assert len(list(tmp_path.iterdir())) == 3


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("n" * 256, "File name too long; use a shorter name"),
        ("directory", "Is a directory; use another name"),
        ("link", "Is a directory; use another name"),
        ("missing/x", "No such file or directory; create its directory first"),
        ("file/x", "Not a directory"),
        ("a\0b", "null"),
        ("loop/x", "Too many levels of symbolic links"),
    ],
)
def test_what_cannot_be_written_is_named_and_changes_nothing(name: str, reason: str, tmp_path: Path) -> None:
    (tmp_path / "directory").mkdir()
    (tmp_path / "link").symlink_to("directory")
    (tmp_path / "loop").symlink_to("loop")
    (tmp_path / "file").write_bytes(b"old")
    before = sorted(tmp_path.iterdir())
    with pytest.raises(WriteError, match="cannot be written: .*" + reason) as raised:
        write_atomically({tmp_path / "file": b"new", tmp_path / name: b"new"})
    assert str(tmp_path)[:10] in str(raised.value) or str(raised.value).startswith("...")
    assert len(str(raised.value)) <= 300
    assert sorted(tmp_path.iterdir()) == before
    assert (tmp_path / "file").read_bytes() == b"old"


# -- saves of several files -----------------------------------------------------------------------------

SAVER = """
import sys
from bpe_tokenizer import BPETokenizer
from bpe_tokenizer.formats import registry
path, kind, *sources = sys.argv[1:]
models = [BPETokenizer.load(source).model for source in sources]
print("began", flush=True)
for number in range(10**6):
    registry.save(models[number % len(models)], path, kind)
"""


@pytest.mark.parametrize("kind", ["huggingface", "gpt2"])
def test_two_saves_and_a_reader_see_whole_tokenizers(kind: str, tmp_path: Path) -> None:
    known = []
    for number in range(2):
        tokenizer = BPETokenizer("gpt2", None).train(
            "low lower lowest newest", 260 + number, special_tokens=[f"<|{number}|>"], verbose=False
        )
        tokenizer.export(tmp_path / str(number), "base64-json")
        known.append((tokenizer.merges, [token.content for token in tokenizer.model.core.added_tokens]))
    place = tmp_path / "out"
    command = [sys.executable, "-c", SAVER, str(place), kind, str(tmp_path / "0"), str(tmp_path / "1")]
    savers = [subprocess.Popen(command, stdout=subprocess.PIPE) for _ in range(2)]
    try:
        while not (place / "tokenizer_config.json").exists() or len(list(place.glob("[a-z]*"))) < 2:
            assert [saver.poll() for saver in savers] == [None, None]
            time.sleep(0.01)
        seen: set[int] = set()
        loads = 0
        while loads < 60 or len(seen) < 2:
            loads += 1
            model = registry.load(place, kind)
            found = (model.core.merges, [token.content for token in model.core.added_tokens])
            assert found in known
            seen.add(known.index(found))
        assert [saver.poll() for saver in savers] == [None, None]
    finally:
        for saver in savers:
            saver.kill()
            saver.wait()
            assert saver.stdout is not None
            saver.stdout.close()
    model = registry.load(place, kind)
    assert (model.core.merges, [token.content for token in model.core.added_tokens]) in known
    registry.save(model, place, kind)
    assert not [path for path in place.iterdir() if path.name.startswith(".")]


def test_a_stopped_save_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("bpe_tokenizer.locks._SAVE_SECONDS", 0.1)
    stopped = WRITER.replace("AtomicFile(Path(sys.argv[1]))", "AtomicFile(Path(sys.argv[1], 'x'))")
    stopped = "from bpe_tokenizer.locks import save_lock\n" + stopped.replace(
        "file = ", "lock = save_lock(Path(sys.argv[1]))\nfile = ", 1
    )
    with subprocess.Popen([sys.executable, "-c", stopped, str(tmp_path)], stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        process.stdout.readline()
        process.send_signal(signal.SIGSTOP)
        tokenizer = BPETokenizer("gpt2", None).train("low low", 257, verbose=False)
        with pytest.raises(WriteError, match=f"is in use by process {process.pid} on"):
            tokenizer.save(tmp_path)
        assert not (tmp_path / "tokenizer.json").exists()
        process.kill()
        process.wait()
    tokenizer.save(tmp_path)
    assert json.loads((tmp_path / "tokenizer.json").read_bytes())["version"] == "1.0"
    assert not (tmp_path / SAVE_LOCK).exists()
