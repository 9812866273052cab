"""Every writer on a disk that is full or read-only, and as a user without permission."""

from __future__ import annotations

import codecs
import errno
import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from bpe_tokenizer import BPETokenizer, FormatError, TokenizerError, WriteError
from bpe_tokenizer.formats import registry
from bpe_tokenizer.locks import RUN_LOCK, DirectoryLock
from small_disk import mounted_disk
from writers import WRITERS, trained

PAGE = 4096
SIZE = 4 << 20
NOBODY = 65534


@pytest.fixture(scope="module")
def disk(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A small file system, kept in memory."""
    with mounted_disk(tmp_path_factory.mktemp("disk"), SIZE) as path:
        yield path


@pytest.fixture
def place(disk: Path) -> Iterator[Path]:
    """An empty directory on the small disk."""
    path = disk / "place"
    path.mkdir()
    yield path
    (disk / "filler").unlink(missing_ok=True)
    shutil.rmtree(path)


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("source")


def leave_free(disk: Path, pages: int) -> None:
    """Fill the disk but for some pages."""
    status = os.statvfs(disk)
    with (disk / "filler").open("ab") as file:
        file.write(b"\0" * max(status.f_bavail - pages, 0) * status.f_frsize)


def files(directory: Path) -> dict[str, bytes]:
    paths = (path for path in directory.rglob("*") if path.is_file())
    return {str(path.relative_to(directory)): path.read_bytes() for path in paths}


def is_whole(name: str, before: dict[str, bytes], after: dict[str, bytes]) -> bool:
    """Whether a failed writer left the old files, and a run also what it had finished."""
    if any(Path(path).name.startswith(".") for path in after):
        return False
    if name.startswith("corpus"):  # `overwrite` removed the old shards; one may not be in a record yet
        records = b"".join(data for path, data in after.items() if path.startswith("shards/unit-"))
        shards = {path for path in after if path.startswith("shards/tokens-")}
        return len({path[:20] for path in shards if Path(path).name.encode() not in records}) <= 1
    return name == "checkpoint" or after == before


@pytest.mark.sampled(0.2)
@pytest.mark.parametrize("name", WRITERS)
def test_a_full_disk(name: str, disk: Path, place: Path, source: Path) -> None:
    write, reference = WRITERS[name], source / name
    if name == "corpus-parquet":
        pytest.importorskip("pyarrow")
    reference.mkdir()
    write(reference, source, 1)
    needed = sum(len(data) // PAGE + 1 for data in files(reference).values())
    write(place, source, 0)
    failures: list[WriteError] = []
    for pages in sorted({0, 1, 2, 3, needed // 2, needed - 1, needed + 8}):
        leave_free(disk, pages)
        before = files(place)
        try:
            write(place, source, 1)
        except WriteError as error:
            failures.append(error)
            assert is_whole(name, before, files(place)), pages
        (disk / "filler").unlink()
    assert {failure.errno for failure in failures} == {errno.ENOSPC}
    for message in map(str, failures):
        assert str(place) in message
        assert "No space left on device; free some space" in message
    write(place, source, 1)
    assert sorted(files(place)) == sorted(files(reference))


@pytest.mark.sampled(0.2)
@pytest.mark.parametrize("name", WRITERS)
def test_a_read_only_disk(name: str, disk: Path, place: Path, source: Path) -> None:
    if name == "corpus-parquet":
        pytest.importorskip("pyarrow")
    WRITERS[name](place, source, 0)
    before = files(place)
    subprocess.run(["mount", "-o", "remount,ro", str(disk)], check=True)
    try:
        with pytest.raises(WriteError, match="Read-only file system; write to another directory") as raised:
            WRITERS[name](place, source, 1)
        assert str(place) in str(raised.value)
        with pytest.raises(WriteError, match=r"Read-only file system|No such file or directory"):
            WRITERS[name](place / "new" / "directory", source, 1)
        assert files(place) == before
    finally:
        subprocess.run(["mount", "-o", f"remount,rw,size={SIZE}", str(disk)], check=True)


# -- a user who is not root -----------------------------------------------------------------------------


@pytest.fixture
def common() -> Iterator[Path]:
    """A directory that every user can reach: those of pytest belong to one user."""
    path = Path(tempfile.mkdtemp())
    path.chmod(0o755)
    yield path
    for each in path.rglob("*"):
        if each.is_dir():
            each.chmod(0o755)
    shutil.rmtree(path)


def as_nobody(check: object) -> None:
    """Run a check in a child process as a user without rights."""
    assert callable(check)
    codecs.lookup("ascii")  # That user may not read Python's own files, which it would be loaded from.
    pid = os.fork()
    if pid:
        assert os.waitpid(pid, 0)[1] == 0
        return
    code = 1
    try:
        if os.geteuid() == 0:
            os.setgroups([])
            os.setgid(NOBODY)
            os.setuid(NOBODY)
        check()
        code = 0
    except BaseException:
        import traceback

        traceback.print_exc()
    finally:
        os._exit(code)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs forks")
@pytest.mark.sampled(0.2)
@pytest.mark.parametrize("name", WRITERS)
def test_without_permission(name: str, common: Path, source: Path) -> None:
    if name == "corpus-parquet":
        pytest.importorskip("pyarrow")
    sources = common / "sources"
    sources.mkdir()
    place = common / "place"
    place.mkdir()
    WRITERS[name](place, sources, 0)
    (common / "other").mkdir()
    WRITERS[name](common / "other", sources, 1)
    before = files(place)
    for path in [place, *place.rglob("*")]:
        path.chmod(0o555 if path.is_dir() else 0o444)

    def check() -> None:
        with pytest.raises(WriteError, match="Permission denied; check the permissions") as raised:
            WRITERS[name](place, sources, 1)
        assert str(place) in str(raised.value)
        assert raised.value.errno == errno.EACCES

    as_nobody(check)
    assert files(place) == before


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs forks")
def test_the_lock_that_a_killed_run_of_another_user_left(common: Path) -> None:
    common.chmod(0o777)
    lock = common / RUN_LOCK
    lock.touch()
    lock.chmod(0o666)

    def check() -> None:
        DirectoryLock(common, RUN_LOCK).release()

    as_nobody(check)
    assert not lock.exists()
    with DirectoryLock(common, RUN_LOCK):

        def check_in_use() -> None:
            with pytest.raises(WriteError, match=f"is in use by process {os.getppid()} on"):
                DirectoryLock(common, RUN_LOCK)

        as_nobody(check_in_use)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs forks")
def test_a_directory_that_cannot_be_listed(common: Path) -> None:
    place = common / "place"
    place.mkdir()
    place.chmod(0o333)
    tokenizer = trained(0)

    def check() -> None:
        for number in range(2):
            trained(number).save(place)
        assert BPETokenizer.load(place / "tokenizer.json").vocab == trained(1).vocab

    as_nobody(check)
    place.chmod(0o755)
    assert sorted(files(place)) == ["tokenizer.json", "tokenizer_config.json"]
    assert tokenizer.vocab_size == 270


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs forks")
@pytest.mark.parametrize("kind", ["huggingface", "gpt2", "gguf", "tiktoken", "minbpe", "base64-json"])
def test_files_that_cannot_be_read(kind: str, common: Path) -> None:
    saved = registry.save(trained(0).model, common / "a.model", kind)
    for path in saved.files:
        path.chmod(0)

    def check() -> None:
        for load in (registry.load, lambda path, **options: registry.load(path, kind, **options)):
            with pytest.raises(FormatError, match="cannot be read: Permission denied"):
                load(common / "a.model", **saved.load_kwargs)
        (common / "a.model").stat()

    as_nobody(check)
    if (common / "a.model").is_dir():
        (common / "a.model").chmod(0)

        def check_directory() -> None:
            with pytest.raises(TokenizerError, match=r"Permission denied|cannot be read"):
                registry.load(common / "a.model", kind)

        as_nobody(check_directory)
