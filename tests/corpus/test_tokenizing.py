"""Documents of text, JSON Lines, tables and compressed files, through `tokenize_corpus`."""

from __future__ import annotations

import gzip
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from bpe_tokenizer import BPETokenizer
from bpe_tokenizer.corpus import tokenize_corpus
from bpe_tokenizer.errors import (
    ArgumentTypeError,
    CorpusError,
    MissingDependencyError,
    NotTrainedError,
    OptionError,
)
from token_files import DOCUMENTS, as_jsonl, contents, flat, read_nanogpt
from zstd_library import ZSTD


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"input_format": "csv"}, "input_format is 'csv'"),
        ({"documents": "page"}, "documents is 'page'"),
        ({"separator": ""}, "separator is empty"),
        ({"separator": "\ud800"}, "separator holds a lone surrogate"),
        ({"field": "\udfff"}, "field holds a lone surrogate"),
        ({"format": "bin"}, "format is 'bin'"),
        ({"dtype": "uint8"}, "dtype is 'uint8', and nanogpt has ids of type 'uint16' or"),
        ({"shard_tokens": 0}, "shard_tokens is 0"),
        ({"format": "llm.c", "shard_tokens": 2**31}, "from 1 to 1,073,741,312"),
        ({"on_error": "ignore"}, "on_error is 'ignore'"),
        ({"threads": 0}, "threads is 0"),
        ({"part": 0}, "part=I and of=N belong together"),
        ({"of": 2}, "part=I and of=N belong together"),
        ({"part": 2, "of": 2}, "part is 2; it must be from 0 to 1"),
        ({"part": -1, "of": 2}, "part is -1"),
        ({"part": 0, "of": 0}, "of is 0; it must be at least 1"),
        ({"part": 0, "of": 1, "overwrite": True}, "overwrite is not possible with part"),
        ({"part": 0, "of": 1, "unit_bytes": 0}, "unit_bytes is 0"),
        ({"part": 0, "of": 1, "unit_bytes": "much"}, "unit_bytes is 'much'"),
        ({"shuffle": -1}, "shuffle is -1"),
        ({"pack": 8}, "nanogpt has no packed sequences"),
        ({"pack": 1, "format": "npy"}, "pack is 1; it must be from 2"),
        ({"pack": 8, "format": "npy", "shard_tokens": 7}, "pack is 8 and shard_tokens is 7"),
        (
            {"pack": 8, "format": "npy", "pack_strategy": "first-fit"},
            "pack_strategy is 'first-fit'; it must be 'concat' or 'best-fit'",
        ),
        ({"val_fraction": 1}, "val_fraction is 1.0; it must be"),
    ],
)
def test_wrong_options(
    options: dict[str, Any], message: str, corpus: Path, tmp_path: Path, tokenizer: BPETokenizer
) -> None:
    with pytest.raises(OptionError, match=message):
        tokenize_corpus(corpus, tmp_path / "out", tokenizer, **options)
    assert not (tmp_path / "out").exists()


def test_wrong_types(corpus: Path, tmp_path: Path, tokenizer: BPETokenizer) -> None:
    for inputs in (3, [b"x"]):
        with pytest.raises(ArgumentTypeError):
            tokenize_corpus(inputs, tmp_path / "out", tokenizer)  # type: ignore[arg-type]
    with pytest.raises(ArgumentTypeError, match="BPETokenizer, not str"):
        tokenize_corpus(corpus, tmp_path / "out", "gpt2")  # type: ignore[arg-type]
    with pytest.raises(ArgumentTypeError, match="field must be a str, not int"):
        tokenize_corpus(corpus, tmp_path / "out", tokenizer, field=3)  # type: ignore[arg-type]
    with pytest.raises(ArgumentTypeError, match="shard_tokens"):
        tokenize_corpus(corpus, tmp_path / "out", tokenizer, shard_tokens=1.5)  # type: ignore[arg-type]
    with pytest.raises(NotTrainedError):
        tokenize_corpus(corpus, tmp_path / "out", BPETokenizer())


# Files


def test_broken_compressed_data_is_no_bad_row(tmp_path: Path, tokenizer: BPETokenizer) -> None:
    path = tmp_path / "c.jsonl.gz"
    path.write_bytes(gzip.compress(as_jsonl(DOCUMENTS))[:-9])
    with pytest.raises(CorpusError, match=r"c\.jsonl.* is corrupt or truncated compressed data"):
        tokenize_corpus(path, tmp_path / "out", tokenizer, on_error="skip")


@pytest.mark.skipif(sys.version_info >= (3, 14), reason="is in the standard library")
def test_zstandard_that_is_not_installed(
    tmp_path: Path, tokenizer: BPETokenizer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, ZSTD, None)
    path = tmp_path / "c.txt"
    path.write_bytes(b"\x28\xb5\x2f\xfd" + bytes(20))
    with pytest.raises(MissingDependencyError, match=r"pip install .*\[corpus\]"):
        tokenize_corpus(path, tmp_path / "out", tokenizer)


def test_pyarrow_that_is_not_installed(
    corpus: Path, tmp_path: Path, tokenizer: BPETokenizer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(MissingDependencyError, match=r"pip install .*\[corpus\]"):
        tokenize_corpus(corpus, tmp_path / "out", tokenizer, "parquet")
    with pytest.raises(MissingDependencyError, match=r"pip install .*\[corpus\]"):
        tokenize_corpus(corpus, tmp_path / "out2", tokenizer, input_format="arrow")


def test_a_run_goes_on_within_a_table(tmp_path: Path, tokenizer: BPETokenizer, ids: list[list[int]]) -> None:
    pyarrow, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    path = tmp_path / "c.parquet"
    parquet.write_table(pyarrow.table({"text": DOCUMENTS}), path, row_group_size=4)
    made = tokenize_corpus(path, tmp_path / "out", tokenizer, shard_tokens=30)
    assert read_nanogpt(made.files, "<u2") == flat(ids)
    made.files[2].unlink()
    again = tokenize_corpus(path, tmp_path / "out", tokenizer, shard_tokens=30)
    assert (again.kept, read_nanogpt(again.files, "<u2")) == (2, flat(ids))


def test_bad_tables(tmp_path: Path, tokenizer: BPETokenizer) -> None:
    pyarrow, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    path = tmp_path / "c.parquet"
    parquet.write_table(pyarrow.table({"id": [1, 2, 3], "text": ["a", None, "b"]}), path)
    with pytest.raises(CorpusError, match=r"c\.parquet, row 2 is null"):
        tokenize_corpus(path, tmp_path / "out", tokenizer)
    made = tokenize_corpus(path, tmp_path / "out", tokenizer, on_error="skip")
    assert (made.documents, made.skipped) == (2, 1)
    with pytest.raises(CorpusError, match="holds int64, not strings"):
        tokenize_corpus(path, tmp_path / "out2", tokenizer, field="id")
    for name, data in (("x.parquet", b"PAR1nonsense"), ("x.arrow", b"ARROW1\0\0nonsense"), ("y.arrow", b"")):
        (tmp_path / name).write_bytes(data)
        with pytest.raises(CorpusError, match=f"{name} cannot be read as"):
            tokenize_corpus(tmp_path / name, tmp_path / "out2", tokenizer)
    compressed = tmp_path / "c.parquet.gz"
    compressed.write_bytes(gzip.compress(path.read_bytes()))
    with pytest.raises(CorpusError, match=r"c\.parquet\.gz is compressed or a pipe"):
        tokenize_corpus(compressed, tmp_path / "out2", tokenizer)
    # A text that is not UTF-8 spoils no other.
    broken = pyarrow.array([b"a", b"\xff", b"b"], pyarrow.binary()).view(pyarrow.string())
    parquet.write_table(pyarrow.table({"text": broken}), path)
    with pytest.raises(CorpusError, match="row 2 is not UTF-8: byte 0xff at its offset 0"):
        tokenize_corpus(path, tmp_path / "out3", tokenizer)
    made = tokenize_corpus(path, tmp_path / "out3", tokenizer, on_error="skip")
    assert (made.documents, made.skipped) == (2, 1)


def test_several_files_and_patterns(
    tmp_path: Path, tokenizer: BPETokenizer, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "in" / "deep").mkdir(parents=True)
    for name in ("b.txt", "a.txt", "deep/c.txt", "[x].txt"):
        (tmp_path / "in" / name).write_text(Path(name).stem.strip("[]"), encoding="utf-8")
    (tmp_path / "in" / "deep" / "d.jsonl").write_text('{"text": "d"}', encoding="utf-8")
    monkeypatch.chdir(tmp_path / "in")

    def letters(*inputs: str | Path) -> str:
        made = tokenize_corpus(inputs, tmp_path / "out", tokenizer, append_eos=False, overwrite=True)
        return tokenizer.decode(read_nanogpt(made.files, "<u2"))

    assert letters("deep/*", "b.txt", Path("a.txt")) == "cdba"
    assert letters("**/*.txt") == "xabc"
    assert letters(str(tmp_path / "in" / "?.txt")) == "ab"
    assert letters("[x].txt") == "x"
    with pytest.raises(CorpusError, match="no file matches"):
        letters("*.csv")
    with pytest.raises(CorpusError, match="there is no file nothing"):
        letters("nothing")
    with pytest.raises(CorpusError, match=r"the directory deep has d\.jsonl, of which .*, and c\.txt; name"):
        letters("deep")
    (tmp_path / "in" / "deep" / "d.jsonl").unlink()
    assert letters("deep") == "c"
    (tmp_path / "in" / ".hidden").mkdir()
    (tmp_path / "in" / ".hidden" / "h.txt").write_text("h", encoding="utf-8")
    (tmp_path / "in" / "deep" / ".e.txt").write_text("e", encoding="utf-8")
    assert letters(tmp_path / "in") == "xabc"
    with pytest.raises(OptionError, match="only once"):
        letters("-", "-")
    with pytest.raises(OptionError, match="no inputs"):
        letters()


def test_bad_rows(tmp_path: Path, tokenizer: BPETokenizer) -> None:
    path = tmp_path / "c.txt"
    path.write_bytes(b"a\n\xff\nb\nc\n\xfe\n")
    options: dict[str, Any] = {"documents": "line", "shard_tokens": 2}
    with pytest.raises(CorpusError, match=r"c\.txt, row 2 is not UTF-8: byte 0xff at its offset 0"):
        tokenize_corpus(path, tmp_path / "out", tokenizer, **options)
    # Skipped rows are counted once, also those of shards that are kept.
    made = tokenize_corpus(path, tmp_path / "out", tokenizer, on_error="skip", **options)
    assert (made.documents, made.skipped, len(made.files)) == (3, 2, 3)
    made.files[2].unlink()
    made = tokenize_corpus(path, tmp_path / "out", tokenizer, on_error="skip", **options)
    assert (made.documents, made.skipped, made.kept) == (3, 2, 2)


@pytest.mark.parametrize("data", [b"", b"\n\n", b'{"text": ""}\n'])
def test_an_empty_corpus(data: bytes, tmp_path: Path, tokenizer: BPETokenizer) -> None:
    path = tmp_path / ("c.jsonl" if data.startswith(b"{") else "c.txt")
    path.write_bytes(data)
    with pytest.raises(CorpusError, match="the corpus is empty"):
        tokenize_corpus(path, tmp_path / "out", tokenizer, append_eos=False, documents="line")
    assert sorted(contents(tmp_path / "out")) == ["plan.json", "unit-00000.json"]
    # Nothing is lost, so another corpus may follow.
    path.write_bytes(b'{"text": "low"}\n')
    made = tokenize_corpus(path, tmp_path / "out", tokenizer, documents="line")
    assert (made.documents, made.kept) == (1, 0)


# The ends of documents


@pytest.mark.parametrize(
    ("special", "eos", "end"),
    [
        (["<|end|>"], None, "<|end|>"),
        (["<|im_end|>", "[END]"], None, "[END]"),
        (["<|end|>", "<|eod|>"], None, "<|eod|>"),
        (["<|end|>", "</s>"], None, "</s>"),
        (["<pad>", "<｜end▁of▁sentence｜>"], None, "<｜end▁of▁sentence｜>"),
        (["</doc>"], None, "</doc>"),
        ([], None, None),
        (["<|im_end|>", "<|eot_id|>", "<end_of_turn>", "<|end_header_id|>", "[SEP]"], None, None),
        # An end of turn gives way to an end of documents.
        (["<|endoftext|>", "<|im_start|>", "<|im_end|>"], "<|im_end|>", "<|endoftext|>"),  # Qwen, Phi 4
        (["<|begin_of_text|>", "<|end_of_text|>", "<|eot_id|>"], "<|eot_id|>", "<|end_of_text|>"),  # Llama 3
        (["<bos>", "<eos>", "<end_of_turn>"], "<end_of_turn>", "<eos>"),  # Gemma
        (["<|return|>", "<|endoftext|>"], "<|return|>", "<|endoftext|>"),  # gpt-oss
        (["<|im_start|>", "<|im_end|>"], "<|im_end|>", "<|im_end|>"),  # nothing else ends a document
        (["<|endoftext|>", "<mine>"], "<mine>", "<mine>"),
    ],
)
def test_the_token_between_documents(
    special: list[str], eos: str | None, end: str | None, tmp_path: Path
) -> None:
    path, out = tmp_path / "c.jsonl", tmp_path / "out"
    path.write_bytes(as_jsonl(["the lowest", "newest"]))
    made = BPETokenizer().train("low", 280, special_tokens=special, verbose=False)
    if eos is not None:
        made.eos_token = eos
    if end is None:
        several: list[dict[str, Any]] = [{}, {"part": 0, "of": 1}]
        for options in several:
            with pytest.raises(OptionError, match=r"no special token .*eos_token=.*append_eos=False"):
                tokenize_corpus(path, out, made, **options)
        tokenize_corpus(path, out, made, append_eos=False)
        return
    ends = [made.special_tokens[end]]
    expected = [*made.encode("the lowest"), *ends, *made.encode("newest"), *ends]
    assert read_nanogpt(tokenize_corpus(path, out, made).files, "<u2") == expected


def test_a_file_of_text_is_a_document_everywhere(tmp_path: Path, tokenizer: BPETokenizer) -> None:
    for name in "ab":
        (tmp_path / f"{name}.txt").write_text("low lower\n\nlowest\n")
    paths = sorted(tmp_path.glob("*.txt"))
    made = [
        tokenize_corpus(paths, tmp_path / "whole", tokenizer).documents,
        tokenize_corpus(paths, tmp_path / "parts", tokenizer, part=0, of=1).documents,
        BPETokenizer().count(paths).documents,
    ]
    assert made == [2, 2, 2]
    assert tokenize_corpus(paths, tmp_path / "lines", tokenizer, documents="line").documents == 4


@pytest.mark.parametrize("separator", ["<|endoftext|>", "</s>", "[EOS]"])
def test_a_usual_separator_that_nobody_named_is_told_once(
    separator: str, tmp_path: Path, tokenizer: BPETokenizer
) -> None:
    text = f"low{separator}lower{separator}"
    paths = [tmp_path / "a.txt", tmp_path / "b.txt.gz"]
    paths[0].write_text(text)
    paths[1].write_bytes(gzip.compress(text.encode()))
    runs: list[Callable[..., Any]] = [
        partial(tokenize_corpus, paths, tmp_path / "out", tokenizer, overwrite=True),
        partial(tokenize_corpus, paths, tmp_path / "parts", tokenizer, part=0, of=1),
        partial(BPETokenizer().count, paths),
    ]
    for number, run in enumerate(runs):
        with pytest.warns(UserWarning, match="usual separator") as told:
            run()
        assert len(told) == 1, number
        if number != 1:
            assert run(separator=separator).documents == 4
    BPETokenizer().train(paths, 270, special_tokens=[separator], verbose=False)


def test_two_names_of_one_file_are_told(tmp_path: Path, tokenizer: BPETokenizer) -> None:
    path, link = tmp_path / "a.txt", tmp_path / "b.txt"
    path.write_text("low lower")
    (tmp_path / "c.txt").write_text("low lower")
    link.symlink_to(path)
    with pytest.warns(UserWarning, match=r"a\.txt and .*b\.txt are one file, which is read twice") as told:
        made = tokenize_corpus([f"{tmp_path}/*.txt", link], tmp_path / "out", tokenizer)
    assert (len(told), made.documents) == (1, 4)
    # The sources of a mixture and its epochs mean it.
    mixture: dict[str, Any] = {"one": {"inputs": path, "epochs": 2}, "two": link}
    assert tokenize_corpus(mixture, tmp_path / "mixture", tokenizer).documents == 3
