"""Runs that take over the units of an earlier run: their files are those of a run that does not."""

from __future__ import annotations

import json
import os
import random
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from bpe_tokenizer import BPETokenizer
from bpe_tokenizer.corpus import merge_manifests
from bpe_tokenizer.corpus.plan import plan_units
from bpe_tokenizer.corpus.remote_path import output_path
from bpe_tokenizer.corpus.settings import CorpusSettings
from bpe_tokenizer.errors import CorpusError, OptionError
from bpe_tokenizer.readers import Input, ReadOptions
from dying_steps import Died, DyingSteps
from line_documents import tokenize_corpus
from token_files import DOCUMENTS, as_jsonl, contents

UNIT = 300


@pytest.fixture
def source(tmp_path: Path) -> Path:
    """A corpus of small files, and of large ones, of which one is divided."""
    chance = random.Random(3)
    directory = tmp_path / "corpus" / "en"
    directory.mkdir(parents=True)
    for number in range(20):
        (directory / f"{number:02d}.txt").write_text("\n".join(chance.choices(DOCUMENTS, k=4)), "utf-8")
    (directory / "07").write_bytes(as_jsonl(DOCUMENTS * 2))  # JSON Lines by its content
    return directory


def change(source: Path) -> None:
    """Add, remove and change files."""
    (source / "03a.txt").write_text("newest\nlow", encoding="utf-8")
    (source / "12.txt").unlink()
    (source / "17.txt").write_text("lower", encoding="utf-8")
    (source / "99.txt").write_text("low\nlower\n" * 3, encoding="utf-8")


def run(corpus: Any, out: Any, tokenizer: BPETokenizer, of: int = 2, **options: Any) -> list[bool]:
    """Run all parts, and return for each unit whether it was kept."""
    events: list[dict[str, Any]] = []
    options = {"shard_tokens": 40, "unit_bytes": UNIT, **options}
    for part in range(of):
        tokenize_corpus(corpus, out, tokenizer, part=part, of=of, on_event=events.append, **options)
    merge_manifests(out)
    units = {each["unit"]: each["kept"] for each in events if each["event"] == "unit"}
    return [units[number] for number in sorted(units)]


def plain(out: Any) -> dict[str, Any]:
    """The files of a run, without what says that units were taken over."""
    found: dict[str, Any] = contents(output_path(out))
    for name in [name for name in found if name.endswith(".json")]:
        found[name] = json.loads(found[name])
        found[name].pop("reused", None)
    return found


@pytest.mark.parametrize("store", ["", "memory://bucket"])
@pytest.mark.parametrize(
    ("name", "options"), [("nanogpt", {}), ("megatron", {"val_fraction": 0.3, "shuffle": 2, "of": 3})]
)
def test_the_files_are_those_of_a_fresh_run(
    name: Any, options: dict[str, Any], store: str, source: Path, tmp_path: Path, tokenizer: BPETokenizer
) -> None:
    if store:
        pytest.importorskip("fsspec").filesystem("memory").store.clear()
    early, out = (f"{store or tmp_path}/{each}" for each in ("early", "out"))
    run(source, early, tokenizer, format=name, **options)
    before = contents(output_path(early))
    change(source)
    run(source, tmp_path / "fresh", tokenizer, format=name, **options)
    kept = run(source, out, tokenizer, format=name, reuse=early, verify=True, **options)
    assert plain(out) == plain(tmp_path / "fresh")
    assert contents(output_path(early)) == before
    assert 0 < kept.count(False) <= 10 <= kept.count(True)
    manifest = json.loads((output_path(out) / "manifest.json").read_bytes())
    assert manifest["reused"] == [number for number, each in enumerate(kept) if each]
    # A fresh run with the same inputs takes everything over, also from a store.
    assert all(run(source, tmp_path / "again", tokenizer, format=name, reuse=out, **options))
    assert plain(tmp_path / "again") == plain(out)


def test_links_need_no_space(source: Path, tmp_path: Path, tokenizer: BPETokenizer) -> None:
    run(source, tmp_path / "early", tokenizer)
    run(source, tmp_path / "out", tokenizer, reuse=tmp_path / "early")
    assert all(path.stat().st_nlink == 2 for path in (tmp_path / "out").glob("tokens-*"))


def test_units_that_are_not_as_they_were_are_made_again(
    source: Path, tmp_path: Path, tokenizer: BPETokenizer
) -> None:
    early = tmp_path / "early"
    run(source, early, tokenizer)
    expected = plain(early)
    (early / "tokens-00002-00000.bin").write_bytes(b"")
    (early / "unit-00004.json").unlink()
    kept = run(source, tmp_path / "out", tokenizer, reuse=early)
    assert [number for number, each in enumerate(kept) if not each] == [2, 4]
    assert plain(tmp_path / "out") == expected


@pytest.mark.parametrize("has_lists", [False, True])
def test_the_common_directory_may_change(
    has_lists: bool, source: Path, tmp_path: Path, tokenizer: BPETokenizer
) -> None:
    """Lists of skipped rows have the names of the inputs, so units with such lists are made again."""
    if has_lists:
        with (source / "05.txt").open("ab") as file:
            file.write(b"\n\xff")
    run(source.parent, tmp_path / "early", tokenizer, on_error="skip")
    (source.parent / "fr").mkdir()
    (source.parent / "fr" / "a.txt").write_text("low", encoding="utf-8")
    run(source.parent, tmp_path / "fresh", tokenizer, on_error="skip")
    kept = run(source.parent, tmp_path / "out", tokenizer, on_error="skip", reuse=tmp_path / "early")
    assert plain(tmp_path / "out") == plain(tmp_path / "fresh")
    assert kept.count(False) <= 2 + has_lists


def test_mixtures_grow(source: Path, tmp_path: Path, tokenizer: BPETokenizer) -> None:
    for number in range(30):
        (source.parent / f"{number}.txt").write_text(f"low {number}" * 20, encoding="utf-8")
    mixture: dict[str, Any] = {
        "small": {"inputs": f"{source.parent}/*.txt", "epochs": 1.5},
        "large": {"inputs": f"{source}/*.txt", "epochs": 2},
    }
    run(mixture, tmp_path / "early", tokenizer)
    change(source)
    run(mixture, tmp_path / "fresh", tokenizer)
    kept = run(mixture, tmp_path / "out", tokenizer, reuse=tmp_path / "early")
    assert plain(tmp_path / "out") == plain(tmp_path / "fresh")
    assert 0 < kept.count(False) < kept.count(True)
    # Another part of the same files is made again.
    mixture["small"]["epochs"] = 1.25
    run(mixture, tmp_path / "other", tokenizer)
    run(mixture, tmp_path / "again", tokenizer, reuse=tmp_path / "early")
    assert plain(tmp_path / "again") == plain(tmp_path / "other")


@pytest.mark.sampled(0.5)
@pytest.mark.parametrize("has_links", [True, False])
def test_a_run_that_dies_at_any_step_goes_on(
    has_links: bool, source: Path, tmp_path: Path, tokenizer: BPETokenizer, monkeypatch: pytest.MonkeyPatch
) -> None:
    options: dict[str, Any] = {"of": 1, "unit_bytes": 700, "shard_tokens": 10_000}
    run(source, tmp_path / "early", tokenizer, **options)
    change(source)
    run(source, tmp_path / "fresh", tokenizer, **options)
    expected = plain(tmp_path / "fresh")
    dying = DyingSteps()

    def refuse(*_: object) -> None:
        raise PermissionError

    monkeypatch.setattr(Path, "replace", dying(Path.replace))
    monkeypatch.setattr(os, "link", dying(os.link) if has_links else refuse)
    monkeypatch.setattr(os, "fsync", dying(lambda _: None))
    steps = 0
    while dying.left <= 0:
        steps += 1
        out, dying.left = tmp_path / f"out{steps}", steps
        with suppress(Died):
            run(source, out, tokenizer, reuse=tmp_path / "early", **options)
        if dying.left <= 0:
            run(source, out, tokenizer, reuse=tmp_path / "early", **options)
        assert plain(out) == expected
    assert steps > 20


def test_what_cannot_be_reused_is_refused(source: Path, tmp_path: Path, tokenizer: BPETokenizer) -> None:
    early, out = tmp_path / "early", tmp_path / "out"
    run(source, early, tokenizer)
    for options, said in (
        ({}, "reuse needs parts"),
        ({"part": 0, "of": 1, "shard_tokens": 41}, r"other settings.*\(they differ in: shard_tokens\)"),
        ({"part": 0, "of": 1, "reuse": source}, r"has no plan\.json"),
    ):
        with pytest.raises(OptionError, match=said):
            tokenize_corpus(source, out, tokenizer, **{"reuse": early, **options})  # type: ignore[arg-type]
    tokenize_corpus(source, tmp_path / "whole", tokenizer, shard_tokens=40)
    with pytest.raises(OptionError, match="whole holds a run without parts"):
        run(source, out, tokenizer, reuse=tmp_path / "whole")
    # The directory itself is not changed in place, and its refusal says what to do.
    change(source)
    with pytest.raises(OptionError, match=r"differs in: inputs .*another directory, with reuse"):
        run(source, early, tokenizer)
    plan = json.loads((early / "plan.json").read_bytes())
    damages: list[dict[str, Any]] = [
        {"inputs": [1]},
        {"units": [[{}]]},
        {"units": [3]},
        {"inputs": [{"name": 1}]},
    ]
    for broken in damages:
        (early / "plan.json").write_text(json.dumps({**plan, **broken}), encoding="utf-8")
        with pytest.raises(CorpusError, match="plan of a run of this version"):
            run(source, tmp_path / "other", tokenizer, reuse=early)


def test_another_file_changes_few_units() -> None:
    tokenizer = BPETokenizer().train("low", 257, verbose=False)
    settings = CorpusSettings.of(tokenizer, ReadOptions(documents="file"), append_eos=False)
    chance = random.Random(1)
    files = [Input(f"x/{number:03d}", Path(__file__), chance.randrange(20), 0) for number in range(600)]

    def units(inputs: list[Input]) -> set[tuple[Input, ...]]:
        plan = plan_units(inputs, settings, 100)
        return {tuple(inputs[unit.first : unit.first + unit.inputs]) for unit in plan.units}

    before = units(files)
    assert 60 < len(before) < 100  # by sizes alone there are 57 at least
    changed = []
    for place in range(0, 600, 10):
        other = [*files[:place], Input(f"x/{place:03d}b", Path(__file__), 10, 0), *files[place:]]
        changed.append(len(units(other) - before))
    assert min(changed) >= 1
    assert sum(changed) / len(changed) < 4
    assert max(changed) < 15
