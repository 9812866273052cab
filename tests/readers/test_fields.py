"""The `field` of a row: a name, a path, or a template of several."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from bpe_tokenizer.errors import CorpusError, OptionError
from bpe_tokenizer.readers import ReadOptions, find_inputs, read_batches

Write = Callable[[Path, list[dict[str, Any]]], Path]

ROWS = [
    {"id": 1, "title": "A", "meta": {"lang": {"name": "en"}, "text": "low"}},
    {"id": 2, "title": "{B}", "meta": {"lang": {"name": "日本"}, "text": ""}},
]


def jsonl(path: Path, rows: list[dict[str, Any]]) -> Path:
    (path / "rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path / "rows.jsonl"


def parquet(path: Path, rows: list[dict[str, Any]]) -> Path:
    pyarrow, writer = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    writer.write_table(pyarrow.Table.from_pylist(rows), path / "rows.parquet")
    return path / "rows.parquet"


def arrow(path: Path, rows: list[dict[str, Any]]) -> Path:
    pyarrow = pytest.importorskip("pyarrow")
    table = pyarrow.Table.from_pylist(rows)
    with pyarrow.ipc.new_stream(path / "rows.arrow", table.schema) as stream:
        stream.write_table(table)
    return path / "rows.arrow"


FORMATS = pytest.mark.parametrize("write", [jsonl, parquet, arrow])


def texts(path: Path, field: str, **options: Any) -> list[str]:
    batches = read_batches(find_inputs(path), ReadOptions(field=field, **options))
    return [text for batch in batches for text in batch.texts()]


@FORMATS
@pytest.mark.parametrize(
    ("field", "expected"),
    [
        ("meta.text", ["low", ""]),
        ("meta.lang.name", ["en", "日本"]),
        ("{title}\n\n{meta.text}", ["A\n\nlow", "{B}\n\n"]),
        ("{{{meta.lang.name}}}: {meta.text}", ["{en}: low", "{日本}: "]),
    ],
)
def test_paths_and_templates(write: Write, field: str, expected: list[str], tmp_path: Path) -> None:
    assert texts(write(tmp_path, ROWS), field) == expected


@FORMATS
@pytest.mark.parametrize("field", ["a.b", "{a.b}"])
def test_a_name_with_a_dot_wins(write: Write, field: str, tmp_path: Path) -> None:
    rows: list[dict[str, Any]] = [{"a": {"b": "path"}, "a.b": "name"}, {"a.b": "name", "a": {"b": "path"}}]
    assert texts(write(tmp_path, rows), field) == ["name", "name"]


@FORMATS
@pytest.mark.parametrize("field", ["meta.text", "{title} {meta.text}"])
def test_rows_without_the_text(write: Write, field: str, tmp_path: Path) -> None:
    path = write(tmp_path, [ROWS[0], {**ROWS[1], "meta": {"text": None}}, {**ROWS[1], "meta": None}, ROWS[0]])
    with pytest.raises(
        CorpusError, match=r"rows\.\w+, row 2 (is null|has no text in the field 'meta\.text')"
    ):
        texts(path, field)
    assert len(texts(path, field, on_error="skip")) == 2


@pytest.mark.parametrize("write", [parquet, arrow])
@pytest.mark.parametrize(
    ("field", "problem"),
    [
        ("meta.body", r"has no column 'meta\.body'; it has 'id', 'title', 'meta'"),
        ("{title} {body}", "has no column 'body'"),
        ("meta.lang", r"the column 'meta\.lang' of .* holds struct<.*>, not strings"),
        ("{id}", "holds int64, not strings"),
    ],
)
def test_columns(write: Write, field: str, problem: str, tmp_path: Path) -> None:
    with pytest.raises(CorpusError, match=problem):
        texts(write(tmp_path, ROWS), field)


@pytest.mark.parametrize("field", ["{title", "title}", "{}", "{title!r}", "{title:>9}", "{{title}}"])
def test_templates_that_are_none(field: str) -> None:
    with pytest.raises(OptionError, match=r"field is '.*template"):
        ReadOptions(field=field)
