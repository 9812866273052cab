"""The Arrow functions that every engine runs, without an engine."""

from __future__ import annotations

import pickle
from importlib import import_module
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st

from bpe_tokenizer import BPETokenizer, distributed
from bpe_tokenizer.distributed import (
    CountSettings,
    collect_counts,
    count_texts,
    count_with_ray,
    count_with_spark,
    encode_texts,
    encode_with_ray,
    encode_with_spark,
    sum_counts,
)
from bpe_tokenizer.errors import (
    ArgumentTypeError,
    CorpusError,
    MissingDependencyError,
    OptionError,
    PatternError,
    SpecialTokenError,
)
from bpe_tokenizer.train.piece_counts import PieceCounts
from distributed.cases import SETTINGS, documents
from test_examples import EXAMPLES, run, used_names

pa: Any = pytest.importorskip("pyarrow")

model_settings = pytest.mark.parametrize("settings", SETTINGS.values(), ids=SETTINGS)
TEXTS = st.lists(st.text("aé\u0301 \r\n1'<|end>", max_size=30), max_size=20)


def table(texts: list[Any], kind: Any = None) -> Any:
    return pa.RecordBatch.from_arrays([pa.array(texts, kind or pa.string())], names=["text"])


def counts_of(items: list[tuple[bytes, int]]) -> Any:
    pieces = pa.array([piece for piece, _ in items], pa.large_binary())
    numbers = pa.array([number for _, number in items], pa.int64())
    return pa.RecordBatch.from_arrays([pieces, numbers], names=["piece", "n"])


@model_settings
@hypothesis_settings(max_examples=10)
@given(texts=TEXTS, cuts=st.sets(st.integers(1, 20)), most=st.integers(1, 40), data=st.data())
def test_any_grouping_and_order(
    settings: CountSettings, texts: list[str], cuts: set[int], most: int, data: st.DataObject
) -> None:
    places = sorted({0, len(texts), *(cut for cut in cuts if cut < len(texts))})
    parts = [texts[start:end] for start, end in pairwise(places)]
    counted = data.draw(st.permutations([count_texts(table(part), settings) for part in parts]))
    middle = data.draw(st.integers(0, len(counted)))
    sums = [*sum_counts(counted[:middle], most), *sum_counts(counted[middle:], most)]
    assert collect_counts(sum_counts(sums, most), settings) == settings.counts().add(texts)


def test_a_row_that_is_no_text_is_named(tokenizer: BPETokenizer) -> None:
    settings = CountSettings()
    for text, problem in ((None, "null"), (b"low \xff", "UTF-8")):
        batch = table([b"low", text, b""], pa.binary())
        with pytest.raises(CorpusError, match=rf"row 1\b.*{problem}"):
            count_texts(batch, settings)
        with pytest.raises(CorpusError, match=rf"row 1\b.*{problem}"):
            encode_texts(batch, tokenizer)


def test_a_column_that_is_none(tokenizer: BPETokenizer) -> None:
    missing = "no column 'body'; the columns are 'text'"
    with pytest.raises(CorpusError, match=missing):
        count_texts(table(["low"]), CountSettings(), "body")
    with pytest.raises(CorpusError, match=missing):
        encode_texts(table(["low"]), tokenizer, "body")
    twice = pa.table([["low"], ["lower"]], names=["text", "text"])
    with pytest.raises(CorpusError, match="2 columns are named 'text': rename"):
        tokenizer.arrow_mapper("text")(twice)
    for kind, values in ((pa.int64(), [1]), (pa.list_(pa.string()), [["a"]])):
        with pytest.raises(ArgumentTypeError, match=r"holds (int64|list)"):
            count_texts(table(values, kind), CountSettings())


def test_a_count_beyond_63_bits_is_an_error() -> None:
    batch = counts_of([(b"low", 2**62)])
    assert [total.to_pydict()["n"] for total in sum_counts([batch])] == [[0, 2**62]]
    for most in (1, 10):
        with pytest.raises(CorpusError, match="9,223,372,036,854,775,808 times"):
            collect_counts(sum_counts(sum_counts([batch, batch], most), 10), CountSettings())
    null = pa.RecordBatch.from_arrays(
        [batch.column("piece"), pa.array([None], pa.int64())], names=["piece", "n"]
    )
    with pytest.raises(CorpusError, match="9,223,372,036,854,775,808 times"):
        collect_counts([null], CountSettings())


def test_encoding_is_that_of_the_tokenizer(tokenizer: BPETokenizer, stdlib_texts: list[str]) -> None:
    texts = documents(stdlib_texts)[:50]
    encoded = encode_texts(table(texts), tokenizer)
    assert encoded.schema.field("input_ids").type == pa.list_(pa.uint32())
    assert encoded.column("text").to_pylist() == texts
    assert encoded.column("input_ids").to_pylist() == [tokenizer.encode(text) for text in texts]
    replaced = encode_texts(table(["a<|eos|>"]), tokenizer, "text", "text", True, "all")
    assert replaced.to_pydict() == {"text": [tokenizer.encode("a<|eos|>", True, "all")]}
    with pytest.raises(SpecialTokenError):
        encode_texts(table(["a"]), tokenizer, allowed_special={"<|none|>"})


def test_settings_are_a_value(tokenizer: BPETokenizer) -> None:
    settings = CountSettings.of(tokenizer)
    assert settings.special_tokens == ("<|bos|>", "<|eos|>", "<|pad|>", "<|unk|>")
    assert settings == CountSettings(special_tokens=["<|bos|>", "<|eos|>", "<|pad|>", "<|unk|>"])
    assert pickle.loads(pickle.dumps(settings)) == settings
    assert hash(settings) == hash(pickle.loads(pickle.dumps(settings)))
    assert settings.counts() == PieceCounts("cl100k", "NFC", settings.special_tokens)
    assert CountSettings.of(BPETokenizer("gpt2", None)) == CountSettings("gpt2", None)
    with pytest.raises(PatternError):
        CountSettings("gpt3")
    with pytest.raises(OptionError):
        CountSettings(normalization="NF")


def test_libraries_that_are_not_installed(monkeypatch: pytest.MonkeyPatch, tokenizer: BPETokenizer) -> None:
    for name in ("ray", "ray.data", "pyspark", "pyspark.sql", "pyspark.sql.types"):
        monkeypatch.setitem(import_module("sys").modules, name, None)
    ray, spark = r"ray: pip install .*\[ray\]'", r"pyspark: pip install .*\[spark\]'"
    for name, count, encode in (
        (ray, count_with_ray, encode_with_ray),
        (spark, count_with_spark, encode_with_spark),
    ):
        with pytest.raises(MissingDependencyError, match=name):
            count(None, CountSettings())
        with pytest.raises(MissingDependencyError, match=name):
            encode(None, tokenizer)
    monkeypatch.setitem(import_module("sys").modules, "pyarrow", None)
    with pytest.raises(MissingDependencyError, match="pyarrow: pip install"):
        list(sum_counts([]))


def test_the_example(tmp_path: Path) -> None:
    printed = run(tmp_path, str(EXAMPLES / "count_with_arrow.py"))
    assert "the same merges as in one process: True" in printed.splitlines()


def test_the_examples_use_every_name() -> None:
    assert sorted(set(distributed.__all__) - used_names()) == []
