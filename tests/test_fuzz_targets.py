"""The fuzz targets in Python run: here with random inputs and without atheris, which few Pythons have."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
TARGETS = sorted((ROOT / "fuzz" / "python").glob("fuzz_*.py"))
# What the targets use of atheris, with random values in the place of guided ones.
ATHERIS = """
import contextlib
import random


class FuzzedDataProvider:
    def __init__(self, data):
        self._random = random.Random(data)

    def ConsumeIntInRange(self, low, high):
        return self._random.randint(low, high)

    def ConsumeBool(self):
        return self._random.random() < 0.5

    def ConsumeBytes(self, count):
        return self._random.randbytes(self._random.randint(0, count))

    def ConsumeUnicodeNoSurrogates(self, count):
        return "".join(map(chr, self._random.choices(range(0x800), k=self._random.randint(0, count))))

    def PickValueInList(self, values):
        return self._random.choice(values)


def instrument_imports(include=()):
    return contextlib.nullcontext()


def Setup(arguments, test_one):
    global test
    test = test_one


def Fuzz():
    for number in range(20):
        test(bytes([number]))
    print("20 executions")
"""


@pytest.mark.parametrize("target", TARGETS, ids=[path.stem for path in TARGETS])
def test_a_target_runs(target: Path, tmp_path: Path) -> None:
    (tmp_path / "atheris.py").write_text(ATHERIS)
    paths = os.pathsep.join([str(tmp_path), str(ROOT / "python")])
    ran = subprocess.run(
        [sys.executable, target], env=os.environ | {"PYTHONPATH": paths}, capture_output=True, text=True
    )
    assert (ran.returncode, ran.stdout) == (0, "20 executions\n"), ran.stderr
