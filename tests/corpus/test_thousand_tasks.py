"""A thousand tasks under a scheduler whose attempts raise, die, run twice at once, and come in any order."""

from __future__ import annotations

import errno
import os
import random
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from bpe_tokenizer import BPETokenizer
from bpe_tokenizer.atomic import AtomicFile, remove_abandoned
from bpe_tokenizer.corpus import merge_manifests
from bpe_tokenizer.corpus.plan import Plan, Unit, plan_units
from bpe_tokenizer.corpus.settings import CorpusSettings
from bpe_tokenizer.corpus.units import run_unit
from bpe_tokenizer.errors import WriteError
from bpe_tokenizer.readers import ReadOptions, find_inputs
from line_documents import tokenize_corpus
from token_files import contents, read_all

# The steps of an attempt at which something can happen.
STEPS = ("__init__", "finish", "replace")
MAX_STEPS = 10


SLOW = [pytest.mark.slow, pytest.mark.sampled(0.3)]


class Killed(BaseException):
    """The process is gone: nothing is cleaned up."""


class Scheduler:
    """Runs every unit until one attempt of it ends well, and does the attempts much harm."""

    def __init__(
        self, plan: Plan, output: Path, tokenizer: BPETokenizer, seed: int, patch: pytest.MonkeyPatch
    ) -> None:
        self._plan, self._output, self._tokenizer = plan, output, tokenizer
        self._chance = random.Random(seed)
        self._left = 0
        self._harm: Callable[[], None] = lambda: None
        self._is_killed = False
        self.happened: Counter[str] = Counter()
        for name in STEPS:
            patch.setattr(AtomicFile, name, self._harmed(getattr(AtomicFile, name)))
        patch.setattr(AtomicFile, "abandon", self._unless_killed(AtomicFile.abandon))

    def run(self) -> None:
        """Run all units, in any order and some of them again."""
        waiting = list(self._plan.units)
        self._chance.shuffle(waiting)
        while waiting:
            unit = waiting.pop()
            if not self._attempt(unit):
                waiting.insert(self._chance.randrange(len(waiting) + 1), unit)
            elif self._chance.random() < 0.05:
                self.happened["repeated"] += 1
                waiting.insert(0, unit)

    def _attempt(self, unit: Unit) -> bool:
        kind = self._chance.choices(["nothing", "raise", "kill", "twice"], [10, 2, 2, 2])[0]
        self._left = self._chance.randint(1, MAX_STEPS) if kind != "nothing" else 0

        def harm() -> None:
            self.happened[kind] += 1
            if kind == "raise":
                raise WriteError.of(self._output, OSError(errno.ENOSPC, os.strerror(errno.ENOSPC)))
            if kind == "kill":
                self._is_killed = True
                raise Killed
            self._run(unit)

        self._harm = harm
        try:
            self._run(unit)
        except (WriteError, Killed):
            return False
        finally:
            self._is_killed = False
        return True

    def _run(self, unit: Unit) -> None:
        run_unit(unit, self._plan, self._output, self._tokenizer, threads=1)

    def _harmed(self, step: Callable[..., Any]) -> Callable[..., Any]:
        def run(*arguments: Any) -> Any:
            self._left -= 1
            if self._left == 0:
                self._harm()
            return step(*arguments)

        return run

    def _unless_killed(self, abandon: Callable[[AtomicFile], None]) -> Callable[[AtomicFile], None]:
        def run(file: AtomicFile) -> None:
            if self._is_killed:
                file.close()
            else:
                abandon(file)

        return run


@pytest.mark.parametrize(
    ("units", "seed"),
    [
        pytest.param(1000, 1, marks=pytest.mark.sampled(0.25, "long tests")),
        *(pytest.param(10_000, seed, marks=SLOW) for seed in range(3)),
    ],
)
def test_a_thousand_tasks(
    units: int, seed: int, tmp_path: Path, tokenizer: BPETokenizer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "fsync", lambda descriptor: None)  # No power fails here.
    corpus = tmp_path / "c.txt"
    rows = (f"low lower {number:06d} lowest\n" for number in range(2 * units))
    corpus.write_text("".join(rows), encoding="utf-8")
    unit_bytes = corpus.stat().st_size // units
    settings = CorpusSettings.of(tokenizer, ReadOptions(documents="line"), "megatron")
    plan = plan_units(find_inputs(corpus), settings, unit_bytes)
    assert len(plan.units) == units
    out, plain = tmp_path / "out", tmp_path / "plain"
    with pytest.MonkeyPatch.context() as patch:
        scheduler = Scheduler(plan, out, tokenizer, seed, patch)
        scheduler.run()
    assert all(scheduler.happened[kind] > units // 50 for kind in ("raise", "kill", "twice", "repeated"))
    remove_abandoned(out)
    made = merge_manifests(out, verify=True)

    tokenize_corpus(corpus, plain, tokenizer, "megatron")
    assert read_all("megatron", out) == read_all("megatron", plain)
    assert (made.documents, len(made.files)) == (2 * units, 2 * units)
    quiet = tmp_path / "quiet"
    tokenize_corpus(corpus, quiet, tokenizer, "megatron", part=0, of=1, unit_bytes=unit_bytes)
    merge_manifests(quiet)
    assert contents(out) == contents(quiet)
