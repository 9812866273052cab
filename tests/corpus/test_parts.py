"""Runs in parts: their units, their shards, the manifest, and what is refused."""

from __future__ import annotations

import gzip
import itertools
import json
import os
import random
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bpe_tokenizer import BPETokenizer
from bpe_tokenizer.corpus import merge_manifests
from bpe_tokenizer.corpus.input_list import input_names, run_changes
from bpe_tokenizer.corpus.plan import plan_units
from bpe_tokenizer.corpus.settings import CorpusSettings
from bpe_tokenizer.corpus.units import run_unit
from bpe_tokenizer.errors import CorpusError, OptionError, WriteError
from bpe_tokenizer.readers import Input, ReadOptions, find_inputs
from line_documents import tokenize_corpus
from small_batches import patch_batches
from token_files import DAMAGES, DOCUMENTS, as_jsonl, contents, read_all

# Small units, so that the corpora of these tests have several.
UNIT = 60


@pytest.fixture
def files(tmp_path: Path) -> list[Path]:
    """Files of all kinds: large ones that can be divided, one that cannot, and small ones."""
    directory = tmp_path / "corpus"
    (directory / "small").mkdir(parents=True)
    (directory / "a.txt").write_text("\n".join(DOCUMENTS), encoding="utf-8", newline="")
    (directory / "b.jsonl").write_bytes(as_jsonl(DOCUMENTS))
    (directory / "c.jsonl.gz").write_bytes(gzip.compress(as_jsonl(DOCUMENTS * 5)))
    for number, text in enumerate(DOCUMENTS[:6]):
        (directory / "small" / f"{number}.txt").write_text(text, encoding="utf-8")
    (directory / "small" / "6.txt").touch()
    return sorted(each for each in directory.rglob("*") if each.is_file())


def run_parts(
    files: Sequence[Path], out: Path, tokenizer: BPETokenizer, of: int, order: random.Random, **options: Any
) -> None:
    """Run all parts in a random order."""
    numbers = list(range(of))
    order.shuffle(numbers)
    for part in numbers:
        tokenize_corpus(files, out, tokenizer, part=part, of=of, **{"unit_bytes": UNIT, **options})


@pytest.mark.sampled(0.4)
@pytest.mark.parametrize("name", ["nanogpt", "llm.c", "megatron", "npy", "parquet"])
def test_the_shards_do_not_depend_on_the_parts(
    name: Any, files: list[Path], tmp_path: Path, tokenizer: BPETokenizer, monkeypatch: pytest.MonkeyPatch
) -> None:
    if name == "parquet":
        pytest.importorskip("pyarrow")
    tokenize_corpus(files, tmp_path / "plain", tokenizer, name)
    order = random.Random(name)
    made: list[dict[str, bytes]] = []
    for of in (1, 2, 3, 7):
        out = tmp_path / f"parts{of}"
        patch_batches(of, monkeypatch)
        run_parts(files, out, tokenizer, of, order, format=name, shard_tokens=30)
        merged = merge_manifests(out)
        made.append(contents(out))
        assert [path.name for path in merged.files] == sorted(each for each in made[-1] if "tokens-" in each)
        assert read_all(name, out) == read_all(name, tmp_path / "plain")
        assert merge_manifests(out, verify=True) == merged
        assert contents(out) == made[-1]
    assert made[0] == made[1] == made[2] == made[3]
    manifest = json.loads(made[0]["manifest.json"])
    plain = json.loads((tmp_path / "plain" / "manifest.json").read_bytes())
    assert (manifest["documents"], manifest["tokens"]) == (plain["documents"], plain["tokens"])
    assert manifest["complete"] is True


def test_the_result_of_a_part(files: list[Path], tmp_path: Path, tokenizer: BPETokenizer) -> None:
    out = tmp_path / "out"
    parts = [tokenize_corpus(files, out, tokenizer, part=part, of=2, unit_bytes=UNIT) for part in range(2)]
    whole = merge_manifests(out)
    assert sorted([*parts[0].files, *parts[1].files]) == whole.files
    assert parts[0].tokens + parts[1].tokens == whole.tokens
    assert parts[0].documents + parts[1].documents == whole.documents
    stamps = {path: path.stat().st_mtime_ns for path in out.iterdir()}
    for part in (1, 0):
        again = tokenize_corpus(files, out, tokenizer, part=part, of=2, unit_bytes=UNIT, verify=True)
        assert again == parts[part]._replace(kept=len(parts[part].files))
    assert {path: path.stat().st_mtime_ns for path in out.iterdir()} == stamps


def test_a_size_without_its_unit(tmp_path: Path, tokenizer: BPETokenizer) -> None:
    (tmp_path / "c.jsonl").write_text('{"text":""}\n' * 100_000)
    with pytest.raises(
        OptionError, match=r"unit_bytes is 1, which makes 1,200,000 units of .*c\.jsonl, more"
    ):
        tokenize_corpus(tmp_path / "c.jsonl", tmp_path / "out", tokenizer, part=0, of=1, unit_bytes=1)


def test_parquet_is_divided_by_row_groups(tmp_path: Path, tokenizer: BPETokenizer) -> None:
    pyarrow, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    path = tmp_path / "c.parquet"
    parquet.write_table(pyarrow.table({"text": DOCUMENTS}), path, row_group_size=2)
    groups = parquet.read_metadata(path).num_row_groups
    options = CorpusSettings.of(tokenizer, ReadOptions(documents="line"))
    assert [unit[1:] for unit in plan_units(find_inputs(path), options, 1).units] == [
        (0, 1, each, each + 1, "groups") for each in range(groups)
    ]
    assert plan_units(find_inputs(path), options, 1 << 30).units[0].start is None
    for of in (1, 4):
        run_parts([path], tmp_path / f"out{of}", tokenizer, of, random.Random(of), unit_bytes=200)
        merge_manifests(tmp_path / f"out{of}")
    assert contents(tmp_path / "out1") == contents(tmp_path / "out4")
    tokenize_corpus(path, tmp_path / "plain", tokenizer)
    assert read_all("nanogpt", tmp_path / "out1") == read_all("nanogpt", tmp_path / "plain")


def test_a_unit_is_run_with_the_tokenizer_of_its_plan(
    files: list[Path], tmp_path: Path, tokenizer: BPETokenizer
) -> None:
    plan = plan_units(find_inputs(files), CorpusSettings.of(tokenizer, ReadOptions(documents="line")), UNIT)
    record = run_unit(plan.units[0], plan, tmp_path / "units", tokenizer)
    assert run_unit(plan.units[0], plan, str(tmp_path / "units"), tokenizer) == record
    other = BPETokenizer().train("low lower", 258, verbose=False)
    with pytest.raises(OptionError, match="not that of the plan"):
        run_unit(plan.units[0], plan, tmp_path / "units", other)


def test_names_do_not_depend_on_where_the_corpus_is(
    files: list[Path], tmp_path: Path, tokenizer: BPETokenizer, monkeypatch: pytest.MonkeyPatch
) -> None:
    run_parts(files, tmp_path / "out1", tokenizer, 2, random.Random(1))
    monkeypatch.chdir(tmp_path / "corpus")
    relative = [path.relative_to(tmp_path / "corpus") for path in files]
    run_parts(relative, tmp_path / "out2", tokenizer, 3, random.Random(2))
    assert contents(tmp_path / "out1") == contents(tmp_path / "out2")
    names = ["s3://bucket/en/a.txt", "s3://bucket/de/a.txt"]
    assert input_names([Input(name, name, 1, 1) for name in names]) == ["en/a.txt", "de/a.txt"]
    assert input_names([Input("a.txt", "a.txt", 1, 1)]) == ["a.txt"]


def test_changed_inputs_are_named() -> None:
    def listed(*names: str) -> list[dict[str, Any]]:
        return [{"name": name.rstrip("*"), "size": len(name.split("/")[-1]), "modified": 0} for name in names]

    for earlier, now, said in (
        (["a", "b"], ["b", "a"], "inputs (their order)"),
        (["a", "b"], ["a*", "c"], "inputs (added: 'c'; removed: 'b'; changed: 'a')"),
        (["a"], ["a", *"bcdefg"], "inputs (added: 'b' and 5 more)"),
        # Another file has changed the directory that all have in common.
        (["a", "b"], ["x/a", "x/b", "y/a"], "inputs (added: 'y/a')"),
        (["x/a", "x/b", "y/a"], ["a", "b"], "inputs (removed: 'y/a')"),
        (["\x1b[31m"], [], r"inputs (removed: '\x1b[31m')"),
    ):
        assert run_changes({"inputs": listed(*earlier)}, {"inputs": listed(*now)}) == said
    many = [listed(*"abcdef"), listed(*("x" * n for n in range(100, 200)))]
    assert len(run_changes(*({"inputs": each} for each in many))) < 200


@given(st.lists(st.integers(0, 30), min_size=1, max_size=30), st.integers(1, 40))
def test_units_cover_the_inputs(sizes: list[int], unit_bytes: int) -> None:
    tokenizer = BPETokenizer().train("low", 257, verbose=False)
    options = CorpusSettings.of(tokenizer, ReadOptions(documents="file"), append_eos=False)
    # Text by files is not divided, so no file is opened.
    inputs = [Input(f"{number}", Path(__file__), size, 0) for number, size in enumerate(sizes)]
    units = plan_units(inputs, options, unit_bytes).units
    assert [unit.number for unit in units] == list(range(len(units)))
    assert [unit.first for unit in units] == [0, *itertools.accumulate(unit.inputs for unit in units)][:-1]
    assert sum(unit.inputs for unit in units) == len(sizes)
    for unit in units:
        held = sizes[unit.first : unit.first + unit.inputs]
        assert sum(held) <= unit_bytes or len(held) == 1


@settings(max_examples=30)
@given(st.integers(1, 300), st.booleans(), st.booleans())
def test_ranges_of_bytes_have_each_row_once(unit_bytes: int, has_end: bool, is_dos: bool) -> None:
    tokenizer = BPETokenizer().train("low lower", 257, special_tokens=["<|eos|>"], verbose=False)
    end = "\r\n" if is_dos else "\n"
    with tempfile.TemporaryDirectory() as name:
        path, out = Path(name, "c.txt"), Path(name, "out")
        path.write_text(end.join([*DOCUMENTS, "", "é"]) + end * has_end, encoding="utf-8", newline="")
        plan = plan_units(
            find_inputs(path), CorpusSettings.of(tokenizer, ReadOptions(documents="line")), unit_bytes
        )
        size = path.stat().st_size
        assert plan.units[0].start in (0, None)
        assert plan.units[-1].end in (size, None)
        if unit_bytes > 20:  # Each unit takes some milliseconds.
            for unit in plan.units:
                run_unit(unit, plan, out, tokenizer)
            tokens = read_all("nanogpt", out)
            tokenize_corpus(path, Path(name, "plain"), tokenizer)
            assert tokens == read_all("nanogpt", Path(name, "plain"))


# Refusals


def test_another_plan_is_refused(files: list[Path], tmp_path: Path, tokenizer: BPETokenizer) -> None:
    out = tmp_path / "out"
    run_parts(files, out, tokenizer, 2, random.Random(1))
    before = contents(out)
    other = BPETokenizer().train("low lower", 258, special_tokens=["<|eos|>"], verbose=False)
    for used, options, named in (
        (tokenizer, {"append_eos": False, "format": "npy"}, "format, eos_id"),
        (tokenizer, {"unit_bytes": UNIT + 1}, "unit_bytes"),
        (other, {}, "eos_id, tokenizer"),
    ):
        given_options: dict[str, Any] = {"unit_bytes": UNIT, **options}
        with pytest.raises(OptionError, match=f"parts of another run \\(it differs in: {named}\\)"):
            tokenize_corpus(files, out, used, part=0, of=2, **given_options)
    # A file that arrived after the first part was started.
    arrived = files[0].parent / "d.txt"
    arrived.write_text("low", encoding="utf-8")
    with pytest.raises(OptionError, match=r"differs in: inputs \(added: 'd\.txt'\)"):
        tokenize_corpus([*files[:3], arrived, *files[3:]], out, tokenizer, part=1, of=2, unit_bytes=UNIT)
    assert contents(out) == before


def test_runs_with_and_without_parts_are_not_mixed(
    files: list[Path], tmp_path: Path, tokenizer: BPETokenizer
) -> None:
    run_parts(files, tmp_path / "parts", tokenizer, 1, random.Random(1))
    for overwrite in (False, True):
        with pytest.raises(OptionError, match=r"parts holds a run in parts \(plan\.json\)"):
            tokenize_corpus(files, tmp_path / "parts", tokenizer, overwrite=overwrite)
    tokenize_corpus(files, tmp_path / "plain", tokenizer)
    with pytest.raises(OptionError, match="plain holds a run without parts"):
        tokenize_corpus(files, tmp_path / "plain", tokenizer, part=0, of=1)
    # A run without parts is finished by the same steps, also again.
    before = contents(tmp_path / "plain")
    merge_manifests(tmp_path / "plain", verify=True)
    assert contents(tmp_path / "plain") == before
    with pytest.raises(OptionError, match=r"nothing has no plan\.json"):
        merge_manifests(tmp_path / "nothing")
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "thesis.txt").touch()
    with pytest.raises(OptionError, match=r"mine holds other files \(thesis\.txt\)"):
        tokenize_corpus(files, tmp_path / "mine", tokenizer, part=0, of=1)


def test_standard_input_has_no_parts(tmp_path: Path, tokenizer: BPETokenizer) -> None:
    with pytest.raises(OptionError, match="standard input"):
        tokenize_corpus("-", tmp_path / "out", tokenizer, part=0, of=1)


# The manifest


def test_what_is_missing_is_named(files: list[Path], tmp_path: Path, tokenizer: BPETokenizer) -> None:
    out = tmp_path / "out"
    for part in (0, 2, 3):
        tokenize_corpus(files, out, tokenizer, part=part, of=4, unit_bytes=UNIT)
    units = len(json.loads((out / "plan.json").read_bytes())["units"])
    missing = list(range(1, units, 4))
    said = rf"{len(missing)} of {units} units are missing: 1, 5, 9"
    with pytest.raises(CorpusError, match=rf"{said}.*unit u belongs to part u % N of N"):
        merge_manifests(out)
    with pytest.raises(CorpusError, match=rf"{said}.*these are of the parts 1 of 4"):
        merge_manifests(out, of=4)
    assert not (out / "manifest.json").exists()
    tokenize_corpus(files, out, tokenizer, part=1, of=4, unit_bytes=UNIT)
    assert merge_manifests(out).documents


@pytest.mark.parametrize("damage", [*DAMAGES, "record"])
def test_a_damaged_unit_is_made_again(
    damage: str, files: list[Path], tmp_path: Path, tokenizer: BPETokenizer
) -> None:
    out = tmp_path / "out"
    run_parts(files, out, tokenizer, 2, random.Random(1), format="megatron")
    expected = merge_manifests(out)
    before = contents(out)
    copied, broken = out / "tokens-00001-00000.idx", out / "tokens-00003-00000.idx"
    copied.write_bytes(copied.read_bytes())
    if damage == "record":
        (out / "unit-00003.json").write_text("{}", encoding="utf-8")
    else:
        DAMAGES[damage](broken)
    match = "missing: 3" if damage == "record" else r"damaged \(tokens-00003-00000\.idx"
    with pytest.raises(CorpusError, match=match):
        merge_manifests(out)
    kept = tokenize_corpus(files, out, tokenizer, "megatron", part=1, of=2, unit_bytes=UNIT).kept
    assert kept == len(expected.files[2::4]) - 1
    assert merge_manifests(out, verify=True) == expected
    assert contents(out) == before


def test_a_change_that_keeps_size_and_time_is_found_by_its_hash(
    files: list[Path], tmp_path: Path, tokenizer: BPETokenizer
) -> None:
    out = tmp_path / "out"
    run_parts(files, out, tokenizer, 1, random.Random(1))
    before = contents(out)
    path = out / "tokens-00002-00000.bin"
    status = path.stat()
    path.write_bytes(bytes(status.st_size))
    os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns - 10**9))
    assert merge_manifests(out).documents
    with pytest.raises(CorpusError, match=r"damaged \(tokens-00002-00000\.bin"):
        merge_manifests(out, verify=True)
    (out / "manifest.json").unlink()
    made = tokenize_corpus(files, out, tokenizer, part=0, of=1, unit_bytes=UNIT, verify=True)
    assert made.kept == len(made.files) - 1
    assert contents(out) == before


def test_skipped_rows_are_listed(tmp_path: Path, tokenizer: BPETokenizer) -> None:
    rows = [b'{"text": "low"}', b'{"text": 1}', b'{"text": "lower"}', b"\xff", b'{"body": "x"}']
    (tmp_path / "a.jsonl").write_bytes(b"\n".join(rows * 4) + b"\n")
    (tmp_path / "b.jsonl").write_bytes(b"\n".join(rows) + b"\n")
    inputs = [tmp_path / "a.jsonl", tmp_path / "b.jsonl"]
    with pytest.raises(CorpusError, match=r"a\.jsonl, row 2"):
        tokenize_corpus(inputs, tmp_path / "out1", tokenizer, part=0, of=1)
    made: list[dict[str, bytes]] = []
    for of in (1, 3):
        out = tmp_path / f"out{of}"
        run_parts(inputs, out, tokenizer, of, random.Random(of), on_error="skip", unit_bytes="1GB")
        assert merge_manifests(out).skipped == 15
        made.append(contents(out))
    assert made[0] == made[1]
    tokenize_corpus(inputs, tmp_path / "plain", tokenizer, on_error="skip")
    listed = made[0]["skipped.jsonl"]
    assert (tmp_path / "plain" / "skipped.jsonl").read_bytes() == listed
    lines = [json.loads(line) for line in listed.splitlines()]
    assert [(line["file"], line["row"]) for line in lines[:4]] == [("a.jsonl", row) for row in (2, 4, 5, 7)]
    assert lines[-1]["file"] == "b.jsonl"
    assert "has no field 'text'" in lines[-1]["problem"]
    # Rows of a range of bytes count from its start, which the line names.
    run_parts(inputs, tmp_path / "ranges", tokenizer, 2, random.Random(1), on_error="skip", unit_bytes=100)
    assert merge_manifests(tmp_path / "ranges").skipped == 15
    lines = [json.loads(line) for line in (tmp_path / "ranges" / "skipped.jsonl").read_bytes().splitlines()]
    assert {line["start"] for line in lines if line["file"] == "a.jsonl"} > {0}


def test_an_empty_unit_has_no_shard(tmp_path: Path, tokenizer: BPETokenizer) -> None:
    path = tmp_path / "c.txt"
    path.write_bytes(b"\n" * 200 + b"low\n")
    for part in (1, 0):
        made = tokenize_corpus(path, tmp_path / "out", tokenizer, part=part, of=2, unit_bytes=103)
        assert len(made.files) == part
    assert merge_manifests(tmp_path / "out").documents == 1
    path.write_bytes(b"\n" * 200)
    tokenize_corpus(path, tmp_path / "empty", tokenizer, part=0, of=1)
    with pytest.raises(CorpusError, match="the corpus is empty"):
        merge_manifests(tmp_path / "empty")


def test_other_bytes_of_another_attempt_are_refused(
    files: list[Path], tmp_path: Path, tokenizer: BPETokenizer
) -> None:
    """Another version of a library may compress otherwise, and its shards would not fit the record."""
    out = tmp_path / "out"
    run_parts(files, out, tokenizer, 1, random.Random(1))
    before = contents(out)
    record = json.loads((out / "unit-00001.json").read_bytes())
    name, (size, sha256) = next(iter(record["shards"][0]["files"].items()))
    record["shards"][0]["files"][name] = [size, sha256[::-1]]
    (out / "unit-00001.json").write_text(json.dumps(record), encoding="utf-8")
    with pytest.raises(WriteError, match="another attempt of unit 1 has committed other bytes"):
        tokenize_corpus(files, out, tokenizer, part=0, of=1, unit_bytes=UNIT, verify=True)
    (out / "unit-00001.json").unlink()
    run_parts(files, out, tokenizer, 1, random.Random(1))
    assert contents(out) == before
