"""`bpe-tokenizer tokenize-corpus`: what it reads, writes and says."""

from __future__ import annotations

import json
from collections.abc import Iterable
from functools import partial
from pathlib import Path
from typing import Any, get_args

import numpy as np
import pytest

from bpe_tokenizer import BPETokenizer
from bpe_tokenizer.corpus.shards import FORMATS, TokenType
from bpe_tokenizer.readers import DocumentEnd, InputFormat, OnError
from command_line import TextRun


@pytest.fixture
def saved(tmp_path: Path) -> Path:
    special = ["<|eos|>", "<|other|>"]
    tokenizer = BPETokenizer().train("low lower lowest " * 3, 265, special_tokens=special, verbose=False)
    tokenizer.save(tmp_path / "saved")
    return tmp_path / "saved"


@pytest.fixture
def run(run_text: TextRun, saved: Path, tmp_path: Path) -> TextRun:
    return partial(run_text, "tokenize-corpus", "--tokenizer", saved, "--output", tmp_path / "out")


@pytest.fixture
def corpus(tmp_path: Path) -> Path:
    path = tmp_path / "corpus.jsonl"
    path.write_text('{"text": "low lower"}\n{"text": "lowest"}\n', encoding="utf-8")
    return path


def tokens(directory: Path) -> list[int]:
    paths = sorted(directory.glob("tokens-*.bin"))
    return [each for path in paths for each in np.fromfile(path, dtype="<u2").tolist()]


@pytest.mark.parametrize(
    ("option", "names"),
    [
        ("--format", FORMATS),
        ("--input-format", get_args(InputFormat)),
        ("--documents", get_args(DocumentEnd)),
        ("--dtype", get_args(TokenType)),
        ("--on-error", get_args(OnError)),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_the_choices_are_those_of_the_package(
    run: TextRun, corpus: Path, option: str, names: Iterable[str]
) -> None:
    code, _, err = run("--corpus", corpus, option, "nonsense")
    assert code == 2
    assert f"'nonsense' is not one of {', '.join(map(repr, names))}" in " ".join(err.split())


def test_what_it_says_to_people(run: TextRun, corpus: Path, saved: Path, tmp_path: Path) -> None:
    tokenizer = BPETokenizer.load(saved)
    eos = tokenizer.special_tokens["<|eos|>"]
    expected = [*tokenizer.encode("low lower"), eos, *tokenizer.encode("lowest"), eos]
    result = run("--corpus", corpus)
    assert result == (0, f"2 documents, {len(expected)} tokens (uint16) in {tmp_path / 'out'}, 1 file\n", "")
    assert tokens(tmp_path / "out") == expected
    assert "1 shards kept" not in run("--corpus", corpus, "--quiet").out


def test_what_it_says_to_programs(run: TextRun, corpus: Path, tmp_path: Path) -> None:
    (tmp_path / "more.jsonl").write_bytes(corpus.read_bytes())
    options = ("--corpus", corpus, tmp_path / "more.jsonl", "--format", "megatron", "--shard-tokens", 1)
    result = run(*options, "--json")
    made = json.loads(result.out)
    assert (result.code, result.err) == (0, "")
    assert (made["documents"], made["skipped"], made["dtype"], made["kept"]) == (4, 0, "uint16", 0)
    assert [Path(name).name for name in made["files"]][:2] == ["tokens-00000.bin", "tokens-00000.idx"]
    assert len(made["files"]) == 8
    assert all(Path(name).is_file() for name in made["files"])
    again = json.loads(run(*options, "--json").out)
    assert again == {**made, "kept": 4}


def test_quiet(run: TextRun, corpus: Path) -> None:
    assert run("--corpus", corpus, "--quiet") == (0, "", "")


def test_standard_input(run: TextRun, saved: Path, tmp_path: Path) -> None:
    tokenizer = BPETokenizer.load(saved)
    result = run(
        "--corpus", "-", "--separator", "<|other|>", "--no-eos", stdin=b"low<|other|>\nlower<|other|>"
    )
    assert (result.code, result.err) == (0, "")
    assert tokens(tmp_path / "out") == [*tokenizer.encode("low"), *tokenizer.encode("\nlower")]
    result = run("--corpus", "-", "--separator", "<|other|>", "--no-eos", stdin=b"low")
    assert (result.code, result.out) == (1, "")
    assert "standard input, which cannot be read again" in result.err
    assert run("--corpus", "-", "--overwrite", "--no-eos", stdin=b"low").code == 0
    assert tokens(tmp_path / "out") == tokenizer.encode("low")


def test_options_reach_the_package(run: TextRun, saved: Path, tmp_path: Path) -> None:
    tokenizer = BPETokenizer.load(saved)
    path = tmp_path / "corpus"
    path.write_text('{"body": "low<|eos|>"}\n{"body": 1}\n', encoding="utf-8")
    result = run(
        *("--corpus", path, "--input-format", "jsonl", "--field", "body", "--on-error", "skip"),
        *("--eos-token", "<|other|>", "--allowed-special", "all", "--dtype", "uint32", "--shard-tokens", 0),
        *("--threads", 1),
    )
    assert (result.code, result.err) == (0, "")
    assert ", 1 row skipped" in result.out
    other = tokenizer.special_tokens["<|other|>"]
    expected = [*tokenizer.encode("low<|eos|>", allowed_special="all"), other]
    assert np.fromfile(tmp_path / "out" / "tokens-00000.bin", dtype="<u4").tolist() == expected
    (tmp_path / "file.txt").write_text("low\nlow\n", encoding="utf-8")
    assert run("--corpus", tmp_path / "file.txt", "--documents", "file", "--overwrite").out.startswith(
        "1 doc"
    )
    result = run(
        "--corpus", path, "--field", "body", "--on-error", "skip", "--val-fraction", 1e-9, "--overwrite"
    )
    assert result.err.endswith(
        "too small for this --val-fraction; start again with a larger one and --overwrite\n"
    )


@pytest.mark.parametrize(
    "options",
    [
        {
            **{"shuffle": 3, "sample": 0.99, "limit": 50, "max_tokens": 500, "val_fraction": 0.5},
            **{"min_document_tokens": 1, "max_document_tokens": 99, "pack": 4, "pack_strategy": "best-fit"},
        },
        {"dtype": "uint32", "index": True, "id_field": "id"},
        {"content": "ids"},
    ],
)
def test_the_options_of_shards(run: TextRun, tmp_path: Path, options: dict[str, Any]) -> None:
    is_ids = options.get("content") == "ids"
    rows = [{"id": each, "text": [1, 2] if is_ids else f"low {each}"} for each in range(50)]
    path = tmp_path / "corpus.jsonl"
    path.write_text("".join(f"{json.dumps(row)}\n" for row in rows), encoding="utf-8")
    arguments = ["--corpus", path, "--format", "npy", "--eos-token", "<|other|>", "--bos-token", "<|other|>"]
    for name, value in options.items():
        written = "0.5k" if value == 500 else value
        arguments += [f"--{name.replace('_', '-')}", *([] if value is True else [written])]
    assert run(*arguments).code == 0
    settings = json.loads((tmp_path / "out" / "manifest.json").read_text())["settings"]
    assert {name: settings[name] for name in options} == options
    assert settings["bos_id"] == settings["eos_id"]


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (["--corpus", "nothing.txt"], 1, "bpe-tokenizer: there is no file nothing.txt"),
        (["--corpus", "bad.jsonl"], 1, "bad.jsonl, row 2 has no field 'text'"),
        (["--corpus", "bad.jsonl", "--eos-token", "<x>"], 1, "not a special token"),
        (["--corpus", "bad.jsonl", "--shard-tokens", "-1"], 1, "--shard-tokens is -1"),
        (["--corpus", "bad.jsonl", "--format", "zip"], 2, "zip"),
        (["--corpus", "bad.jsonl", "--val-fraction", "2"], 1, "--val-fraction is 2.0"),
        (
            ["--corpus", "bad.jsonl", "--pack-strategy", "best-fit"],
            1,
            "--pack-strategy has no meaning without --pack N",
        ),
        (["--corpus", "bad.jsonl", "--id-field", "id"], 1, "--id-field has no meaning without --index;"),
        (
            ["--corpus", "bad.jsonl", "--part", "0"],
            1,
            "--part I and --of N belong together: --part 0, --of 8 does",
        ),
        (["--corpus", "bad.jsonl", "--eos-token", "<|eos|>", "--no-eos"], 2, "not both"),
        ([], 2, "--corpus"),
    ],
)
def test_errors(
    run: TextRun, arguments: list[str], code: int, said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("bad.jsonl").write_text('{"text": "low"}\n{"body": "low"}\n', encoding="utf-8")
    result = run(*arguments)
    assert (result.code, result.out) == (code, "")
    assert said in result.err
    assert "Traceback" not in result.err
    if code == 1:
        assert result.err.count("\n") == 1
