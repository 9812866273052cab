"""Polars, DuckDB, pandas, `datasets` and datatrove give us columns, and take ours.

`make test-columns` installs them.
"""

from __future__ import annotations

import pickle
import subprocess
import sys
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from bpe_tokenizer import BPETokenizer
from bpe_tokenizer.errors import ArgumentTypeError, CorpusError, UnknownIdError
from bpe_tokenizer.train.piece_counts import PieceCounts
from distributed.cases import run_example

pytestmark = [pytest.mark.columns, pytest.mark.filterwarnings("default")]
pa: Any = pytest.importorskip("pyarrow")

LIBRARIES = ("polars", "duckdb", "pandas", "datasets", "datatrove")
TEXTS = ["low lower", None, "", "naïve 日本語, and a text that is longer than a view holds", "low"]
SPECIAL = ["<|eos|>"]
TOKENIZER = BPETokenizer().train(["low lower lowest naïve"] * 3, 270, special_tokens=SPECIAL, verbose=False)
IDS = [None if text is None else TOKENIZER.encode(text) for text in TEXTS]


def library(name: str) -> Any:
    """Import a library, or skip the test."""
    return pytest.importorskip(name, reason=f"{name} is not installed; `make test-columns` does it")


@pytest.mark.parametrize("name", LIBRARIES)
def test_the_examples(name: str, tmp_path: Path) -> None:
    library(name)
    done = run_example(f"columns_with_{name}.py", tmp_path, HF_HOME=str(tmp_path))
    assert done.returncode == 0, done.stderr
    said = [line for line in done.stdout.splitlines() if line.startswith(("the same", "found"))]
    assert len(said) >= 2
    assert all(line.endswith(": True") for line in said), said


# -- Polars ---------------------------------------------------------------------------------------------


def test_polars() -> None:
    pl = library("polars")
    series = pl.Series("text", TEXTS)
    for column in (series, pl.concat([series[:2], series[2:]], rechunk=False), series.to_frame()):
        ids = TOKENIZER.encode_arrow(column)
        assert ids.to_pylist() == IDS
        assert pl.Series("ids", ids).to_list() == IDS
    assert TOKENIZER.encode_arrow(series[1:4]).to_pylist() == IDS[1:4]
    for kind in (pl.Categorical, pl.Enum(sorted({text for text in TEXTS if text is not None}))):
        assert TOKENIZER.encode_arrow(series.cast(kind)).to_pylist() == IDS
    assert TOKENIZER.encode_arrow(pl.Series([b"low", None], dtype=pl.Binary)).to_pylist() == [IDS[4], None]
    assert TOKENIZER.encode_arrow(pl.Series([None], dtype=pl.Null)).to_pylist() == [None]
    for kind in (pl.UInt32, pl.Int64, pl.UInt16):
        assert TOKENIZER.decode_arrow(pl.Series(IDS, dtype=pl.List(kind))).to_pylist() == TEXTS
    pairs = pl.Series([[97, 98], [99, 97]], dtype=pl.Array(pl.UInt32, 2))
    assert pl.Series(TOKENIZER.decode_arrow(pairs)).to_list() == ["ab", "ca"]
    texts = series.drop_nulls()
    assert PieceCounts("gpt2").add_column(texts) == PieceCounts("gpt2").add(texts.to_list())
    with pytest.raises(ArgumentTypeError, match="the table has 2 columns; select one of them: 'a', 'b'"):
        TOKENIZER.encode_arrow(pl.DataFrame({"a": ["x"], "b": ["y"]}))
    with pytest.raises(ArgumentTypeError, match="not int64"):
        TOKENIZER.encode_arrow(pl.Series([1]))


# -- DuckDB ---------------------------------------------------------------------------------------------


def test_duckdb() -> None:
    duckdb = library("duckdb")
    connection = duckdb.connect()
    connection.register("texts", pa.table({"number": range(len(TEXTS)), "text": TEXTS}))
    selected = connection.sql("select text from texts order by number")
    ids = TOKENIZER.encode_arrow(selected)
    assert ids.to_pylist() == IDS
    connection.register("encoded", pa.table({"number": range(len(TEXTS)), "ids": ids}))
    assert (
        TOKENIZER.decode_arrow(connection.sql("select ids from encoded order by number")).to_pylist() == TEXTS
    )
    with pytest.raises(ArgumentTypeError, match="select one of them: 'number', 'text'"):
        TOKENIZER.encode_arrow(connection.sql("select * from texts"))
    many = connection.sql("select 'low' || i::varchar from range(10000) rows(i) order by i")
    expected = [TOKENIZER.encode(f"low{number}") for number in range(10_000)]
    assert TOKENIZER.encode_arrow(many).to_pylist() == expected
    failing = connection.sql(
        "select 'low' || (case when i = 9000 then error('no row') else '' end) from range(10000) rows(i)"
    )
    with pytest.raises(CorpusError, match="no row"):
        TOKENIZER.encode_arrow(failing)


# -- pandas ---------------------------------------------------------------------------------------------


def test_pandas() -> None:
    pd = library("pandas")
    for kind in (object, "string", "category", pd.ArrowDtype(pa.string())):
        series = pd.Series(TEXTS, dtype=kind)
        assert TOKENIZER.encode_arrow(series).to_pylist() == IDS
        assert TOKENIZER.encode_arrow(series[1:3]).to_pylist() == IDS[1:3]
    assert TOKENIZER.encode_arrow(pd.DataFrame({"text": TEXTS})).to_pylist() == IDS
    assert TOKENIZER.decode_arrow(pd.Series(IDS)).to_pylist() == TEXTS
    with pytest.raises(ArgumentTypeError, match="not int64"):
        TOKENIZER.encode_arrow(pd.Series([1]))
    with pytest.raises(ArgumentTypeError, match="pyarrow cannot convert the column"):
        TOKENIZER.encode_arrow(pd.Series(["a", 1], dtype=object))


def test_a_pandas_without_capsules() -> None:
    """Before version 3, a series is converted by pyarrow."""
    pd = library("pandas")

    class Series(pd.Series):  # type: ignore[misc, name-defined]
        __arrow_c_stream__ = property(lambda self: self.missing)

    Series.__module__ = "pandas.core.series"
    assert not hasattr(Series(TEXTS), "__arrow_c_stream__")
    assert TOKENIZER.encode_arrow(Series(TEXTS, dtype=object)).to_pylist() == IDS
    assert TOKENIZER.decode_arrow(Series(IDS)).to_pylist() == TEXTS
    with pytest.raises(ArgumentTypeError, match="encode_arrow: pyarrow cannot convert the column"):
        TOKENIZER.encode_arrow(Series(["a", 1], dtype=object))


# -- datasets -------------------------------------------------------------------------------------------


@pytest.fixture
def datasets(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.setenv("HF_HOME", str(tmp_path))
    found = library("datasets")
    found.disable_progress_bars()
    return found


def saved(datasets: Any, directory: Path) -> Any:
    """Return a data set of a directory, whose results the cache keeps."""
    datasets.Dataset.from_dict({"text": [*TEXTS] * 50, "row": range(len(TEXTS) * 50)}).save_to_disk(directory)
    return datasets.load_from_disk(directory)


def test_columns_of_datasets(datasets: Any) -> None:
    dataset = datasets.Dataset.from_dict({"text": TEXTS})
    for column in (dataset.data.column("text"), dataset.with_format("arrow")["text"]):
        assert TOKENIZER.encode_arrow(column).to_pylist() == IDS
    chosen = dataset.select([4, 0]).with_format("arrow")["text"]
    assert TOKENIZER.encode_arrow(chosen).to_pylist() == [IDS[4], IDS[0]]
    with pytest.raises(ArgumentTypeError, match=r"with_format\(\"arrow\"\)"):
        TOKENIZER.encode_arrow(dataset["text"])


def test_map_keeps_rows_and_its_cache(datasets: Any, tmp_path: Path) -> None:
    dataset = saved(datasets, tmp_path / "set").with_format("arrow")
    encoded = dataset.map(TOKENIZER.arrow_mapper(), batched=True, batch_size=7)
    rows = encoded.with_format(None)
    assert rows[:]["input_ids"] == IDS * 50
    assert rows[:]["row"] == [*range(len(TEXTS) * 50)]
    assert rows.features["input_ids"].feature.dtype == "uint32"
    # The same tokenizer, made again: the result comes from the cache.
    again = dataset.map(pickle.loads(pickle.dumps(TOKENIZER)).arrow_mapper(), batched=True, batch_size=7)
    assert again.cache_files == encoded.cache_files != []
    other = dataset.map(TOKENIZER.arrow_mapper(add_special_tokens=True), batched=True, batch_size=7)
    assert other.cache_files != encoded.cache_files
    parallel = dataset.map(TOKENIZER.arrow_mapper(ids_column="ids"), batched=True, num_proc=2)
    assert parallel.with_format(None)[:]["ids"] == IDS * 50
    with pytest.raises(ArgumentTypeError, match=r'with_format\("arrow"\).map'):
        dataset.with_format(None).map(TOKENIZER.arrow_mapper(), batched=True)
    with pytest.raises(CorpusError, match=r"no column 'body'; the columns are 'text', 'row'"):
        dataset.map(TOKENIZER.arrow_mapper("body"), batched=True)


def test_the_fingerprint_is_that_of_the_values(datasets: Any, tmp_path: Path) -> None:
    hasher = import_module("datasets.fingerprint").Hasher
    TOKENIZER.save(tmp_path / "saved")
    program = f"""
from bpe_tokenizer import BPETokenizer
from datasets.fingerprint import Hasher
tokenizer = BPETokenizer.load({str(tmp_path / "saved")!r})
tokenizer.encode_batch(["low lower"] * 100)
print(Hasher.hash(tokenizer.arrow_mapper(allowed_special={{"<|eos|>"}})))
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, encoding="utf-8", check=False)
    loaded = BPETokenizer.load(tmp_path / "saved")
    assert done.stdout.strip() == hasher.hash(loaded.arrow_mapper(allowed_special=["<|eos|>"])), done.stderr
    extended = BPETokenizer.load(tmp_path / "saved")
    extended.add_special_tokens(["<|more|>"])
    assert hasher.hash(extended.arrow_mapper()) != hasher.hash(loaded.arrow_mapper())


# -- datatrove ------------------------------------------------------------------------------------------


def test_the_files_of_datatrove_are_those_of_its_own_step(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    library("datatrove")
    tokens: Any = import_module("datatrove.pipeline.tokens.tokenizer")
    document: Any = import_module("datatrove.data").Document
    monkeypatch.syspath_prepend(str(Path(__file__).parents[2] / "examples"))
    module = import_module("columns_with_datatrove")
    texts = [text for text in TEXTS if text is not None] * 40
    TOKENIZER.save(tmp_path / "saved")
    theirs = tokens.DocumentTokenizer(
        str(tmp_path / "theirs"),
        str(tmp_path / "saved" / "tokenizer.json"),
        eos_token=SPECIAL[0],
        shuffle_documents=False,
        save_final_metadata=False,
    )
    ours = module.TokenWriter(str(tmp_path / "ours"), TOKENIZER, add_special_tokens=True, batch_size=7)
    for step in (theirs, pickle.loads(pickle.dumps(ours))):
        given = [document(text=text, id=str(row)) for row, text in enumerate(texts)]
        found = list(step.run(iter(given), 3, 8) or [])
    assert [each.metadata["token_count"] for each in found] == [
        len(TOKENIZER.encode(text, True)) for text in texts
    ]
    files = [sorted((tmp_path / name).iterdir()) for name in ("ours", "theirs")]
    assert len(files[0]) == len(files[1]) == 2
    for mine, other in zip(*files, strict=True):
        assert mine.read_bytes() == other.read_bytes()
        assert mine.suffix == other.suffix
    assert np.fromfile(files[0][0], np.uint16).tolist() == TOKENIZER.encode_ragged(texts, True)[0].tolist()


def test_unknown_ids_of_other_libraries() -> None:
    pl = library("polars")
    with pytest.raises(UnknownIdError, match="row 1: id 70000 at position 0"):
        TOKENIZER.decode_arrow(pl.Series([[1], [70_000]]))
