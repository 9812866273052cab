"""Measures for papers, compared with their definitions; and `bpe_tokenizer.report` and `compare`."""

from __future__ import annotations

import csv
import json
import math
import random
import xml.etree.ElementTree as ET
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bpe_tokenizer import ArgumentTypeError, BPETokenizer, OptionError, compare, report
from bpe_tokenizer.view.reports.measures import (
    MIN_UNITS,
    Units,
    gini,
    information,
    ratio_interval,
    renyi_entropy,
)


@given(st.lists(st.integers(0, 1000), max_size=50), st.sampled_from([1, 0.5, 2, 2.5, 3]))
def test_entropy_is_its_definition(counts: list[int], order: float) -> None:
    found = renyi_entropy(np.array(counts, dtype=np.int64), order)
    shares = [count / sum(counts) for count in counts if count]
    if not shares:
        assert found is None
    elif order == 1:
        assert found == pytest.approx(-sum(each * math.log2(each) for each in shares))
    else:
        assert found == pytest.approx(math.log2(sum(each**order for each in shares)) / (1 - order), abs=1e-9)


def test_ranks_and_types_are_counted() -> None:
    found = information(np.array([0, 2, 5, 0, 1]))  # ranks 1, 2, 3 of 5, 2, 1 tokens
    assert (found["average_rank"], found["type_token_ratio"]) == (1.5, 0.375)
    none = information(np.array([0, 0]))
    assert (none["average_rank"], none["type_token_ratio"]) == (None, None)


@given(st.integers(2, 1000))
def test_equal_frequencies_have_the_highest_efficiency(count: int) -> None:
    assert information(np.ones(count, dtype=np.int64))["renyi_efficiency"] == 1
    assert information(np.array([count, 0]))["renyi_efficiency"] is None


@given(st.lists(st.floats(0.1, 100), max_size=30))
def test_gini_is_its_definition(costs: list[float]) -> None:
    if len(costs) < 2:
        assert gini(costs) is None
        return
    differences = sum(abs(a - b) for a in costs for b in costs)
    assert gini(costs) == pytest.approx(differences / (2 * len(costs) * sum(costs)), abs=1e-4)


def test_intervals_hold_the_ratio_nineteen_times_of_twenty() -> None:
    generator = random.Random(0)
    held = 0
    for _ in range(200):
        tokens = np.array([generator.randint(1, 40) for _ in range(100)])
        sizes = np.array([generator.gauss(4, 1) * each for each in tokens])
        interval = ratio_interval(sizes, tokens)
        assert interval is not None
        held += interval[0] <= 4 <= interval[1]
    assert 180 <= held <= 199


def test_few_units_have_no_interval() -> None:
    empty, one = np.zeros(500, dtype=np.int64), np.ones(MIN_UNITS, dtype=np.int64)
    assert ratio_interval(one[1:], one[1:]) is None
    assert ratio_interval(one, one) == (1, 1)
    assert ratio_interval(empty, empty) is None


@given(st.integers(0, 40_000))
def test_units_keep_few_rows_and_lose_only_an_unfinished_one(count: int) -> None:
    units = Units()
    for _ in range(count):
        units.add(3, 2)
    sizes, tokens = units.columns().sum(axis=1)
    assert len(units.columns()[0]) <= 8192
    assert (sizes, tokens) == (sizes // 3 * 3, sizes // 3 * 2)
    assert 0 <= count - tokens // 2 < max(1, count // 4096)


@pytest.fixture
def corpus(tmp_path: Path, mixed_text: str) -> Path:
    generator = random.Random(0)
    rows = [" ".join(generator.choices(mixed_text.split(" "), k=9)) for _ in range(200)]
    path = tmp_path / "rows.jsonl"
    path.write_text("".join(json.dumps({"text": row}) + "\n" for row in rows), encoding="utf-8")
    return path


def test_a_report_of_a_tokenizer_or_its_path(tokenizer: BPETokenizer, corpus: Path, tmp_path: Path) -> None:
    tokenizer.save(tmp_path / "mine")
    found = report(tokenizer, corpus)
    assert (found.name, report(tmp_path / "mine", [corpus]).label) == ("tokenizer", "mine")
    rows = [json.loads(line)["text"] for line in corpus.read_text(encoding="utf-8").splitlines()]
    counts = Counter(id_ for row in rows for id_ in tokenizer.encode(row))
    assert (found.total.tokens, found.documents) == (sum(counts.values()), len(rows))
    (tmp_path / "again.jsonl").write_bytes(corpus.read_bytes())
    assert report(tokenizer, [corpus, tmp_path / "again.jsonl"]).total.tokens == 2 * found.total.tokens
    expected = information(np.array(list(counts.values())))
    assert found.facts["information"] == expected
    sample = found.facts["sample"]
    assert sample["units"] == len(rows)
    low, high = sample["bytes_per_token"]
    assert low < found.facts["corpus"]["bytes_per_token"] < high
    # A sample of this size has such an interval, by the law that its width falls with the square root.
    assert sample["bytes_for_one_percent"] == pytest.approx(
        found.total.bytes * ((high - low) / 2 / found.facts["corpus"]["bytes_per_token"] / 0.01) ** 2,
        rel=0.01,
    )


def test_a_long_text_has_many_parts(tokenizer: BPETokenizer, tmp_path: Path, mixed_text: str) -> None:
    (tmp_path / "long.txt").write_text(mixed_text * 9000, encoding="utf-8")
    found = report(tokenizer, tmp_path / "long.txt")
    sizes, tokens = found.units.columns()
    assert found.total.characters / 16_384 <= len(sizes) < 200
    assert sizes.sum() == found.total.bytes
    assert 0 <= found.total.tokens - tokens.sum() < 1000  # the last tokens are known after the last part


def test_a_comparison_has_an_interval_of_each_ratio(
    tokenizer: BPETokenizer, plain_tokenizer: BPETokenizer, corpus: Path
) -> None:
    found = compare({"large": tokenizer, "small": plain_tokenizer}, corpus)
    pair, _ = found.facts["token_ratios"]
    assert (pair["first"], pair["second"]) == ("large", "small")
    assert pair["interval"][0] < pair["ratio"] < pair["interval"][1] < 1
    assert "95 % interval" in found.facts["summary"][0]
    unnamed = compare([tokenizer, ("small", plain_tokenizer)], corpus)
    assert unnamed.labels == ["tokenizer 1", "small"]


def test_wrong_tokenizers_are_refused(tokenizer: BPETokenizer, corpus: Path) -> None:
    with pytest.raises(ArgumentTypeError, match="must be a BPETokenizer, or what `load` takes, not int"):
        report(5, corpus)  # type: ignore[arg-type]
    with pytest.raises(ArgumentTypeError, match="takes a list or a dict"):
        compare(tokenizer, corpus)  # type: ignore[arg-type]
    with pytest.raises(OptionError, match="at least two"):
        compare([tokenizer], corpus)
    with pytest.raises(OptionError, match="'fr' is not a file of the corpus"):
        report(tokenizer, corpus, reference="fr")


def test_skipped_rows_give_a_warning(tokenizer: BPETokenizer, tmp_path: Path) -> None:
    (tmp_path / "rows.jsonl").write_text('{"text": "low"}\n{"no": 1}\n')
    with pytest.warns(UserWarning, match="Skipped 1 bad row"):
        report(tokenizer, tmp_path / "rows.jsonl", on_error="skip")


def test_a_saved_comparison_is_tables_and_plots(
    tokenizer: BPETokenizer, plain_tokenizer: BPETokenizer, corpus: Path, tmp_path: Path
) -> None:
    found = compare({"a_b": tokenizer, "small": plain_tokenizer}, corpus)
    found.save(tmp_path / "out")
    files = {path.name for path in (tmp_path / "out").iterdir()}
    assert {"overview.csv", "overview.tex", "rank-and-frequency.svg", "scripts.csv"} <= files
    with (tmp_path / "out" / "overview.csv").open(encoding="utf-8", newline="") as file:
        rows = {row["figure"]: row for row in csv.DictReader(file)}
    first, second = (str(each.total.tokens) for each in found.reports)
    assert rows["tokens"] == {"figure": "tokens", "a_b": first, "small": second}
    latex = (tmp_path / "out" / "overview.tex").read_text(encoding="utf-8")
    assert "figure & a\\_b & small \\\\\n" in latex
    assert "\\begin{tabular}{lrr}" in latex
    assert all(line.count(" & ") == 2 for line in latex.splitlines() if line.endswith("\\\\"))
    for name in files:
        if name.endswith(".svg"):
            root = ET.fromstring((tmp_path / "out" / name).read_bytes())
            assert root.get("width") == "644"


def test_a_saved_report_has_pictures_for_print(tokenizer: BPETokenizer, corpus: Path, tmp_path: Path) -> None:
    pytest.importorskip("resvg_py", reason="resvg-py of the extra png is not installed")
    report(tokenizer, corpus).save(tmp_path)
    picture = (tmp_path / "rank-and-frequency.png").read_bytes()
    assert picture.startswith(b"\x89PNG")
    assert int.from_bytes(picture[16:20]) == 3 * 644
