"""Locks between processes: live owners are refused, dead ones are taken over."""

from __future__ import annotations

import errno
import os
import pickle
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from bpe_tokenizer import WriteError
from bpe_tokenizer.locks import RUN_LOCK, DirectoryLock

pytestmark = pytest.mark.skipif(not hasattr(signal, "SIGSTOP"), reason="needs signals and forks")

OWNER = """
import os, sys, time
from pathlib import Path
from bpe_tokenizer.locks import RUN_LOCK, DirectoryLock
lock = DirectoryLock(Path(sys.argv[1]), RUN_LOCK)
# Only the child itself knows when it has let go of what it shares with its parent.
if len(sys.argv) == 2 or not os.fork():
    print(os.getpid(), flush=True)
time.sleep(60)
"""


def start_owner(directory: Path, *arguments: str) -> tuple[subprocess.Popen[str], int]:
    """Start a process that locks a directory; return the id of its child with it, or its own."""
    command = [sys.executable, "-c", OWNER, str(directory), *arguments]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    return process, int(process.stdout.readline())


def test_a_stopped_owner_keeps_the_lock_and_a_killed_one_loses_it(tmp_path: Path) -> None:
    owner, _ = start_owner(tmp_path)
    with owner:
        owner.send_signal(signal.SIGSTOP)
        with pytest.raises(WriteError, match=f"is in use by process {owner.pid} on .* since 20") as raised:
            DirectoryLock(tmp_path, RUN_LOCK, 0.1)
        assert raised.value.errno == errno.EBUSY
        assert len(str(raised.value)) <= 300
        owner.kill()
        owner.wait()
    assert (tmp_path / RUN_LOCK).exists()
    with DirectoryLock(tmp_path, RUN_LOCK) as lock:
        lock.check()
    assert list(tmp_path.iterdir()) == []


def test_a_forked_child_does_not_keep_the_lock_of_its_dead_parent(tmp_path: Path) -> None:
    owner, child = start_owner(tmp_path, "fork")
    with owner:
        owner.kill()
        owner.wait()
    try:
        os.kill(child, 0)
        DirectoryLock(tmp_path, RUN_LOCK).release()
    finally:
        os.kill(child, signal.SIGKILL)


def test_a_forked_child_has_not_the_lock(tmp_path: Path) -> None:
    with DirectoryLock(tmp_path, RUN_LOCK) as lock:
        pid = os.fork()
        if not pid:
            try:
                lock.check()
            except WriteError:
                lock.release()
                os._exit(0)
            os._exit(1)
        assert os.waitpid(pid, 0)[1] == 0
        lock.check()


def test_a_lock_file_that_is_removed_or_replaced_is_noticed(tmp_path: Path) -> None:
    lock = DirectoryLock(tmp_path, RUN_LOCK)
    (tmp_path / RUN_LOCK).unlink()
    with pytest.raises(WriteError, match="has lost its lock; it writes nothing more"):
        lock.check()
    with DirectoryLock(tmp_path, RUN_LOCK) as other:
        with pytest.raises(WriteError, match=f"lost its lock to process {os.getpid()} on"):
            lock.check()
        lock.release()
        other.check()


def test_a_lock_that_is_free_soon_is_waited_for(tmp_path: Path) -> None:
    command = [sys.executable, "-c", OWNER.replace("sleep(60)", "sleep(0.3)"), str(tmp_path)]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as owner:
        assert owner.stdout is not None
        owner.stdout.readline()
        DirectoryLock(tmp_path, RUN_LOCK, 200).release()


@pytest.mark.parametrize("number", [errno.ENOSYS, errno.ENOLCK])
def test_without_flock_files_are_locks(number: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: Any) -> None:
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr("fcntl.flock", refuse)
    with DirectoryLock(tmp_path, RUN_LOCK) as lock:
        with pytest.raises(WriteError, match=rf"is in use by another process: .*, remove {RUN_LOCK}\.soft"):
            DirectoryLock(tmp_path, RUN_LOCK)
        lock.check()
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("content", [b"{", b"[]", b'{"pid": "1"}', b"[" * 4096, b"\xff", b"{}"])
def test_a_broken_record_belongs_to_someone(content: bytes, tmp_path: Path) -> None:
    with DirectoryLock(tmp_path, RUN_LOCK):
        (tmp_path / RUN_LOCK).write_bytes(content)
        with pytest.raises(WriteError, match="is in use by another process"):
            DirectoryLock(tmp_path, RUN_LOCK)


def test_the_error_can_be_pickled(tmp_path: Path) -> None:
    error = WriteError.of(tmp_path, OSError(errno.ENOSPC, "No space left on device"))
    again = pickle.loads(pickle.dumps(error))
    assert (str(again), again.errno, again.filename) == (str(error), errno.ENOSPC, tmp_path)
    assert isinstance(again, OSError)


CONTENDER = """
import errno, fcntl, sys
from pathlib import Path
from bpe_tokenizer import WriteError, locks
directory, kind = Path(sys.argv[1]), sys.argv[2]
if kind == "soft":
    def refuse(*_):
        raise OSError(errno.ENOSYS, "no locks")
    fcntl.flock = refuse
for _ in range(40):
    while True:
        try:
            lock = locks.DirectoryLock(directory, locks.RUN_LOCK, 20)
            break
        except WriteError:
            pass
    with lock:
        counter = directory / "counter"
        number = int(counter.read_text())
        lock.check()
        counter.write_text(str(number + 1))
"""


@pytest.mark.parametrize("kind", ["flock", "soft"])
def test_many_processes_take_turns(kind: str, tmp_path: Path) -> None:
    (tmp_path / "counter").write_text("0")
    command = [sys.executable, "-c", CONTENDER, str(tmp_path), kind]
    processes = [subprocess.Popen(command) for _ in range(3)]
    assert [process.wait() for process in processes] == [0, 0, 0]
    assert (tmp_path / "counter").read_text() == "120"
    assert [path.name for path in tmp_path.iterdir()] == ["counter"]
