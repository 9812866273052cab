"""`bpe-tokenizer train`, `info` and `demo`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from bpe_tokenizer import BPETokenizer
from bpe_tokenizer.cli.demo import _hold_out, _python_files
from command_line import Result, Run

# train


def test_train_saves_what_training_in_python_gives(run: Run, corpus: Path, tmp_path: Path) -> None:
    options = ["--vocab-size", 266, "--special", "<a>", "<b>", "--quiet"]
    result = run("train", "--corpus", corpus, "--output", tmp_path / "out", *options)
    assert result == Result(0, b"", "")
    trained = BPETokenizer().train(corpus, vocab_size=266, special_tokens=["<a>", "<b>"], verbose=False)
    saved = BPETokenizer.from_pretrained(tmp_path / "out")
    assert saved.vocab == trained.vocab
    assert saved.merges == trained.merges
    assert saved.special_tokens == {"<a>": 256, "<b>": 257}
    assert saved.normalization == "NFC"


def test_train_takes_every_option(run: Run, corpus: Path, tmp_path: Path) -> None:
    options = "--vocab-size 300 --pattern gpt2 --normalization NFKC --tie-break huggingface --min-frequency 4"
    options += " --max-token-length 3 --threads 1 --quiet"
    assert run("train", "--corpus", corpus, "--output", tmp_path, *options.split()).code == 0
    saved = BPETokenizer.from_pretrained(tmp_path)
    given: Any = {"min_frequency": 4, "tie_break": "huggingface", "max_token_length": 3, "threads": 1}
    trained = BPETokenizer("gpt2", "NFKC").train(corpus, 300, **given, verbose=False)
    assert saved.merges == trained.merges
    assert max(len(token) for token in saved.vocab.values()) == 3
    assert saved.normalization == "NFKC"


def test_train_without_normalization(run: Run, corpus: Path, tmp_path: Path) -> None:
    arguments = ("--output", tmp_path, "--vocab-size", 258, "--normalization", "none", "--quiet")
    assert run("train", "--corpus", corpus, *arguments).code == 0
    assert BPETokenizer.from_pretrained(tmp_path).normalization is None


def test_train_reads_several_files_and_standard_input(run: Run, corpus: Path, tmp_path: Path) -> None:
    arguments = ("--vocab-size", 280, "--quiet", "--output")
    other = "wider lowest wider lowest\n"
    piped = run("train", "--corpus", corpus, "-", *arguments, tmp_path / "piped", stdin=other.encode())
    assert piped == Result(0, b"", "")
    (tmp_path / "other.txt").write_text(other, encoding="utf-8", newline="")
    assert run("train", "--corpus", corpus, tmp_path / "other.txt", *arguments, tmp_path / "files").code == 0
    merges = BPETokenizer.from_pretrained(tmp_path / "piped").merges
    assert merges == BPETokenizer.from_pretrained(tmp_path / "files").merges
    assert merges != BPETokenizer().train(corpus, vocab_size=280, verbose=False).merges


def test_train_says_where_it_saved_and_json_says_what(run: Run, corpus: Path, tmp_path: Path) -> None:
    arguments = ("train", "--corpus", corpus, "--output", tmp_path, "--vocab-size", "260")
    assert run(*arguments).text == f"260 tokens saved in {tmp_path}\n"
    result = json.loads(run(*arguments, "--json", "--overwrite").text)
    assert result.pop("seconds") >= 0
    assert result == {"output": str(tmp_path), "vocab_size": 260, "merges": 4}


@pytest.mark.parametrize(
    ("option", "message"),
    [
        (("--pattern", r"(?s).+"), "tokenizer.json cannot hold it"),
        (("--special", "a"), 'the same token, "a"'),
    ],
)
def test_what_cannot_be_saved_is_refused_before_training(
    run: Run, corpus: Path, tmp_path: Path, option: tuple[str, str], message: str
) -> None:
    assert run("count", "--corpus", corpus, *option, "--output", tmp_path / "counts").code == 0
    for source in (("--corpus", corpus), ("--counts", tmp_path / "counts")):
        result = run("train", *source, *option, "--vocab-size", 300, "--output", tmp_path / "out")
        assert (result.code, "Trained" in result.err) == (1, False)
        assert message in " ".join(result.err.split())


@pytest.mark.parametrize(
    ("special", "said"),
    [
        ("<s>,</s>", "--special '<s>,</s>' is one token; for 2 tokens write --special '<s>' '</s>'"),
        ("<a>, <b>, <c>", "for 3 tokens write --special '<a>' '<b>' '<c>'"),
        ("a,b", "for 2 tokens write --special a b"),
        (f"<{'a' * 100}>,<b>", "for 2 tokens write --special A B ..."),
        ("<a>=300", "--special '<a>=300' is the text of a token; training assigns the ids from 256 on"),
        ("<x,y>", ""),
        (",,", ""),
        ("<a>,", ""),
        ("<a>", ""),
    ],
)
def test_a_special_token_with_a_comma_between_tokens_is_told(
    run: Run, corpus: Path, tmp_path: Path, special: str, said: str
) -> None:
    arguments = ("--corpus", corpus, "--output", tmp_path / "made", "--special", special, "--quiet")
    for command in ("count", "train"):
        result = run(command, *arguments, *(["--vocab-size", 258] if command == "train" else []))
        assert (result.code, result.out) == (0, b"")
        assert result.err.count("\n") == bool(said)
        assert said in result.err
        (tmp_path / "made").unlink(missing_ok=True) if command == "count" else None
    assert list(BPETokenizer.load(tmp_path / "made").special_tokens) == [special]


# info


def test_info_as_json(run: Run, directory: Path, tokenizer: BPETokenizer) -> None:
    facts = json.loads(run("info", "--tokenizer", directory, "--json", "--sample-text", "low 🙂").text)
    assert facts["vocab_size"] == tokenizer.vocab_size == 270
    assert facts["merges"] == len(tokenizer.merges)
    assert facts["special_tokens"] == {"<|end|>": 256, "<|other|>": 257}
    assert facts["normalization"] is None
    assert [each["id"] for each in facts["first_tokens"]] == list(range(10))
    assert facts["last_tokens"][-1] == {"id": 269, "token": tokenizer.convert_ids_to_tokens([269])[0]}
    assert facts["sample"]["ids"] == tokenizer.encode("low 🙂")
    assert facts["sample"]["bytes_per_token"] == round(8 / len(facts["sample"]["ids"]), 3)
    assert facts["sample"]["round_trip"] is True


def test_info_for_people(run: Run, directory: Path) -> None:
    text = run("info", "--tokenizer", directory, "--sample-text", "low").text
    assert "vocabulary size 270\n" in text
    assert "special tokens  <|end|> 256, <|other|> 257\n" in text
    assert "round trip      exact\n" in text
    assert "\x1b" not in text


def test_info_of_a_tokenizer_that_normalises(run: Run, corpus: Path, tmp_path: Path) -> None:
    BPETokenizer(normalization="NFC").train(corpus, vocab_size=258, verbose=False).save(tmp_path)
    for text in ("e\u0301", ""):
        facts = json.loads(run("info", "--tokenizer", tmp_path, "--json", "--sample-text", text).text)
        assert facts["sample"]["round_trip"] is True
    assert "special tokens  none\n" in run("info", "--tokenizer", tmp_path).text


# demo


@pytest.fixture
def sources(tmp_path: Path) -> Path:
    root = tmp_path / "library"
    (root / "site-packages").mkdir(parents=True)
    (root / "site-packages" / "installed.py").write_text("installed = 1\n")
    (root / "latin.py").write_bytes(b"# \xe9\n")
    (root / "notes.txt").write_text("not Python")
    for number in range(20):
        lines = [
            f"def function_{number}_{line}(argument):\n    return argument + {line}\n"
            for line in range(number + 1)
        ]
        (root / f"module_{number:02}.py").write_text("\n".join(lines))
    return root


def test_demo_trains_saves_reloads_encodes_and_proves(run: Run, sources: Path, tmp_path: Path) -> None:
    output = tmp_path / "demo"
    result = run("demo", "--sources", sources, "--output", output, "--vocab-size", 280)
    assert (result.code, result.err) == (0, "")
    assert "15 Python files" in result.text
    assert "bytes per token" in result.text
    assert "decode(encode(text)) == text" in result.text
    assert "\x1b" not in result.text
    assert "|" in result.text
    assert len(BPETokenizer.from_pretrained(output)) == 280


def test_demo_says_that_a_corpus_is_small(run: Run, sources: Path, tmp_path: Path) -> None:
    result = run("demo", "--sources", sources, "--output", tmp_path / "demo", "--vocab-size", 300)
    assert "a small corpus" in result.text


def test_demo_files_are_in_a_fixed_order_and_the_held_out_ones_are_not_seen(sources: Path) -> None:
    files = _python_files(sources)
    assert [path.name for path in files] == [f"module_{number:02}.py" for number in range(20)]
    seen, unseen = _hold_out(files)
    assert len(unseen) == 5
    assert sorted([*seen, *unseen]) == files
    assert _hold_out(files[::-1]) == (seen[::-1], unseen[::-1])
