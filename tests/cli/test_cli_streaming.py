"""`bpe-tokenizer encode` and `decode` in blocks: large inputs, binary ids, several files, pipes."""

from __future__ import annotations

import gzip
import json
import lzma
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bpe_tokenizer import BPETokenizer, OptionError
from bpe_tokenizer.cli.id_formats import ID_FORMATS, read_ids
from command_line import HOSTILE, Result, Run, process

# Crosses the blocks of 1 MiB inside characters and words.
LONG = "newest lowest 中文 🙂 Grüße,\r\n\twidest <|end|> " * 60_000


@pytest.fixture(scope="module")
def long_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("long") / "long.txt"
    path.write_bytes(LONG.encode())
    return path


@pytest.fixture(scope="module")
def large(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Save a tokenizer with an id that needs more than 16 bits."""
    path = tmp_path_factory.mktemp("large") / "saved"
    vocab = {**{byte: bytes([byte]) for byte in range(256)}, 65_536: b"ab"}
    BPETokenizer.from_vocab(vocab, [(b"a", b"b")]).save(path)
    return path


def ids_of(format_: str, data: bytes) -> list[int]:
    return [int(each) for ids in read_ids(format_, [data]) for each in ids]


@pytest.mark.parametrize("format_", ID_FORMATS)
def test_a_long_file_has_the_ids_of_its_text_and_comes_back(
    run: Run, directory: Path, tokenizer: BPETokenizer, long_file: Path, tmp_path: Path, format_: str
) -> None:
    encoded = run("encode", "--tokenizer", directory, "--file", long_file, "--output-format", format_)
    assert (encoded.code, encoded.err) == (0, "")
    assert ids_of(format_, encoded.out) == tokenizer.encode(LONG)
    (tmp_path / "ids").write_bytes(encoded.out)
    for source in ({}, {"stdin": encoded.out}):
        where = () if source else ("--file", tmp_path / "ids")
        decoded = run("decode", "--tokenizer", directory, "--input-format", format_, *where, **source)
        assert decoded == Result(0, LONG.encode(), "")


def test_an_id_above_65535_needs_uint32(run: Run, large: Path) -> None:
    arguments = ("encode", "--tokenizer", large, "--text", "ab", "--output-format")
    result = run(*arguments, "uint16")
    assert (result.code, result.out) == (1, b"")
    assert "65536" in result.err
    assert "--output-format uint32" in result.err
    assert run(*arguments, "uint32").out == (65_536).to_bytes(4, "little")


def test_json_has_ids_and_tokens(run: Run, directory: Path, tokenizer: BPETokenizer) -> None:
    result = run("encode", "--tokenizer", directory, "--text", HOSTILE, "--output-format", "json")
    ids = tokenizer.encode(HOSTILE)
    assert json.loads(result.text) == {"ids": ids, "tokens": tokenizer.convert_ids_to_tokens(ids)}
    assert run("encode", "--tokenizer", directory, "--text", HOSTILE, "--json") == result
    empty = run("encode", "--tokenizer", directory, "--text", "", "--json")
    assert json.loads(empty.text) == {"ids": [], "tokens": []}


def test_several_files_are_texts_in_order(
    run: Run, directory: Path, tokenizer: BPETokenizer, tmp_path: Path
) -> None:
    texts = ["low", "est new", ""]
    files = [tmp_path / str(number) for number in range(3)]
    for path, text in zip(files, texts, strict=True):
        path.write_text(text)
    ids = [tokenizer.encode(text) for text in texts]
    lines = "".join(f"{' '.join(map(str, row))}\n" for row in ids)
    encode = ("encode", "--tokenizer", directory)
    assert run(*encode, "--file", *files).text == lines
    assert run(*encode, "--file", files[0], "--file", files[1], "--file", files[2]).text == lines
    assert run(*encode, "--file", files[0], "-", files[2], stdin=b"est new").text == lines
    as_json = run(*encode, "--file", *files, "--json")
    assert [json.loads(line)["ids"] for line in as_json.text.splitlines()] == ids
    (tmp_path / "ids").write_text(lines)
    decoded = run("decode", "--tokenizer", directory, "--file", tmp_path / "ids", "-", stdin=as_json.out)
    assert decoded == Result(0, "".join(texts).encode() * 2, "")


def test_special_tokens_of_a_text_are_those_of_each_file(
    run: Run, directory: Path, tmp_path: Path, tokenizer: BPETokenizer
) -> None:
    marked = BPETokenizer.load(directory)
    marked.bos_token, marked.eos_token = "<|end|>", "<|other|>"
    marked.save(tmp_path / "marked")
    (tmp_path / "text").write_text("low")
    encode = ("encode", "--tokenizer", tmp_path / "marked", "--add-special-tokens", "--file")
    line = " ".join(map(str, marked.encode("low", add_special_tokens=True)))
    assert run(*encode, *[tmp_path / "text"] * 2).text == f"{line}\n{line}\n"


def test_a_wrong_file_is_an_error_before_any_output(run: Run, directory: Path, tmp_path: Path) -> None:
    good = tmp_path / "good"
    good.write_text("low")
    for command in ("encode", "decode"):
        for wrong, said in ((tmp_path, "is a directory"), (tmp_path / "absent", "absent")):
            result = run(command, "--tokenizer", directory, "--file", good, wrong)
            assert (result.code, result.out) == (1, b"")
            assert said in result.err
    result = run("encode", "--tokenizer", directory, "--file", "-", "-")
    assert (result.code, result.out) == (1, b"")


def test_bytes_that_are_no_utf8_are_named_by_their_offset(run: Run, directory: Path, long_file: Path) -> None:
    whole = long_file.read_bytes()[: 3 << 20].decode(errors="ignore").encode()
    for data, at in ((whole + b"\xff.", len(whole)), (whole + "中".encode()[:2], len(whole))):
        result = run("encode", "--tokenizer", directory, stdin=data)
        assert result.code == 1
        assert f"byte 0x{data[at]:02x} at offset {at:,};" in result.err


@pytest.mark.parametrize(
    ("format_", "text", "expected"),
    [
        ("text", "12 3456,7\n\n8", [12, 3456, 7, 8]),
        ("text", " 12 ", [12]),
        ("text", "", []),
        ("json", "[12, 3456,7 ]", [12, 3456, 7]),
        ("json", '{"ids": [12, 3456], "tokens": ["]", "}"]}\n[7]', [12, 3456, 7]),
        ("json", '{"tokens": ["]"],\n "ids": [12, 3456]}', [12, 3456]),
        ("json", "[]", []),
        ("json", "[1]\n[2]\n", [1, 2]),
    ],
)
def test_ids_in_blocks_of_any_size(format_: str, text: str, expected: list[int]) -> None:
    data = text.encode()
    for asked in (format_, None):
        for size in (1, 2, 5, 100):
            parts = [data[at : at + size] for at in range(0, len(data), size)]
            assert [int(each) for ids in read_ids(asked, parts) for each in ids] == expected, size


NOT_JSON = [b"1 2", b"[1, 2", b"[1,, 2]", b"[1, 2,]", b"[1 2]", b'{"ids": [1], "tokens": ["']
NO_IDS = [b"1 2 x", b"1.5", b"-1", b"[1, 2", b"[1, -2]", b"[true]", b'["1"]', b'{"id": [1]}', "٣".encode()]


@pytest.mark.parametrize(
    ("format_", "data"),
    [
        *(("json", data) for data in NOT_JSON),
        *((None, data) for data in [*NO_IDS, b"1" * 30]),
        *[("text", b"[1]"), ("uint16", b"\0\0\1"), ("uint32", b"\0\0\1\1\1\1")],
    ],
)
def test_what_is_not_of_the_format(format_: str | None, data: bytes) -> None:
    for size in (1, 100):
        parts = [data[at : at + size] for at in range(0, len(data), size)]
        with pytest.raises(OptionError, match=r"\bids?\b"):
            list(read_ids(format_, parts))


@given(
    st.lists(st.sampled_from(["1", "20", "007", ",", ", ", ",  ", " ", "\n", "-"]), max_size=8),
    st.sampled_from([1, 3, 99]),
)
def test_a_json_list_is_read_as_pythons_json_reads_it(items: list[str], size: int) -> None:
    data = f"[{''.join(items)}]".encode()
    parts = [data[start : start + size] for start in range(0, len(data), size)]
    try:
        expected = json.loads(data)
    except ValueError:
        expected = [-1]
    if any(each < 0 for each in expected):
        with pytest.raises(OptionError):
            list(read_ids("json", parts))
    else:
        assert [int(each) for ids in read_ids("json", parts) for each in ids] == expected


def test_an_unknown_id_is_named_with_its_position(run: Run, directory: Path) -> None:
    ids = " ".join(["97"] * 600_000 + ["999"])
    result = run("decode", "--tokenizer", directory, stdin=ids.encode())
    assert result.code == 1
    assert "id 999 at position 600000 " in result.err
    assert "99999999999 " in run("decode", "--tokenizer", directory, stdin=b"1 99999999999").err


@pytest.mark.skipif(sys.platform != "linux", reason="asks Linux for the peak")
@pytest.mark.sampled(0.33)
@pytest.mark.parametrize("format_", ["text", "uint32", "json"])
def test_memory_does_not_grow_with_the_input(directory: Path, tmp_path: Path, format_: str) -> None:
    """Peaks of `encode` and of `decode` for 4 MB and for ten times as much."""
    # Not `ru_maxrss`, which begins with the peak of the process that started this one.
    code = "import sys; from pathlib import Path; from bpe_tokenizer.cli import main\n"
    code += "try: main(sys.argv[1:])\n"
    code += (
        "finally: print(Path('/proc/self/status').read_text().split('VmHWM:')[1].split()[0], file=sys.stderr)"
    )

    def peak(output: Path, *arguments: object) -> int:
        command = [sys.executable, "-c", code, *map(str, arguments)]
        with output.open("wb") as file:
            done = subprocess.run(command, stdout=file, stderr=subprocess.PIPE, check=True)
        return int(done.stderr.split()[-1]) >> 10

    peaks = []
    for repeats in (1, 10):
        text, ids, back = (tmp_path / f"{name}{repeats}" for name in ("text", "ids", "back"))
        text.write_bytes(LONG.encode() * repeats)
        where = ("--tokenizer", directory, "--file")
        encoding = peak(ids, "encode", *where, text, "--output-format", format_)
        decoding = peak(back, "decode", *where, ids, "--input-format", format_)
        assert back.read_bytes() == text.read_bytes()
        peaks.append((encoding, decoding))
    (small, small_back), (large, large_back) = peaks
    assert large - small < 12, peaks
    assert large_back - small_back < 12, peaks


@pytest.mark.skipif(sys.platform != "linux", reason="counts system calls by the sizes in a pipe")
def test_output_is_written_in_blocks_without_a_buffer(directory: Path, long_file: Path) -> None:
    """`PYTHONUNBUFFERED=1`: Python counts the calls of write."""
    code = "import sys, io; from bpe_tokenizer.cli import main\n"
    code += "class Raw(io.RawIOBase):\n"
    code += "    calls = size = 0\n"
    code += "    def writable(self): return True\n"
    code += "    def write(self, data):\n"
    code += "        Raw.calls += 1; part = min(len(data), 100_000); Raw.size += part; return part\n"
    code += "sys.stdout = io.TextIOWrapper(Raw(), write_through=True)\n"
    code += "try: main(sys.argv[1:])\n"
    code += "except SystemExit: print(Raw.calls, Raw.size, file=sys.stderr)"
    command = [sys.executable, "-c", code, "encode", "--tokenizer", str(directory), "--file", str(long_file)]
    done = subprocess.run(command, capture_output=True, check=True)
    calls, size = map(int, done.stderr.split())
    assert size > 5_000_000
    assert calls < size / 50_000


def test_a_pipe_is_encoded_as_it_arrives(directory: Path, tokenizer: BPETokenizer) -> None:
    with process("encode", "--tokenizer", directory, "--output-format", "uint16") as running:
        assert running.stdin is not None
        assert running.stdout is not None
        running.stdin.write(b"newest lowest " * 2000)
        running.stdin.flush()
        first = os.read(running.stdout.fileno(), 2)  # before the pipe is closed
        rest, _ = running.communicate(b"low", timeout=200)
    expected = np.array(tokenizer.encode("newest lowest " * 2000 + "low"), "<u2")
    assert first + rest == expected.tobytes()


def test_compressed_text_has_the_ids_of_its_text(
    run: Run, directory: Path, tokenizer: BPETokenizer, tmp_path: Path
) -> None:
    files = [tmp_path / name for name in ("a.gz", "b", "c.xz")]
    stored = (gzip.compress(LONG.encode()), b"low", lzma.compress(b"low"))
    for path, data in zip(files, stored, strict=True):
        path.write_bytes(data)
    result = run("encode", "--tokenizer", directory, "--count", "--file", *files)
    low = len(tokenizer.encode("low"))
    assert result == Result(0, f"{len(tokenizer.encode(LONG))}\n{low}\n{low}\n".encode(), "")


@pytest.mark.parametrize("compress", [bytes, gzip.compress], ids=["plain", "gzip"])
def test_standard_input_in_short_parts(
    directory: Path, tokenizer: BPETokenizer, compress: Callable[[bytes], bytes]
) -> None:
    """The first bytes may not suffice to tell whether the input is compressed."""
    text = "BZh lower newest"
    data = compress(text.encode())
    with process("encode", "--tokenizer", directory) as running:
        assert running.stdin is not None
        for byte in data[:4]:
            running.stdin.write(bytes([byte]))
            running.stdin.flush()
        out, err = running.communicate(data[4:], timeout=200)
    assert ([*map(int, out.split())], err) == (tokenizer.encode(text), b"")


def test_options_that_exclude_each_other(run: Run, directory: Path) -> None:
    for arguments in (
        ("encode", "--text", "x", "--json", "--output-format", "uint16"),
        ("encode", "--text", "x", "--show-tokens", "--output-format", "uint32"),
        ("decode", "--ids", 1, "--file", "x"),
    ):
        result = run(*arguments, "--tokenizer", directory)
        assert (result.code, result.out) == (2, b""), result
