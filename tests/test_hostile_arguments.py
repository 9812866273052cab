"""Hostile values of every argument of every public method: an error of the package, never a panic."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from bpe_tokenizer import BPETokenizer

SUPPORT = Path(__file__).parent / "support"
PARTS = 8


def test_every_required_argument_has_a_good_value() -> None:
    pytest.importorskip("pyarrow")
    pytest.importorskip("resource")
    from hostile_arguments import arguments, methods

    good = arguments(BPETokenizer().train("ab ab", 257, verbose=False))
    required = {each.name for _, parameters in methods() for each in parameters if each.default is each.empty}
    assert required <= set(good)


@pytest.mark.skipif(sys.platform != "linux", reason="limits of a process")
@pytest.mark.sampled(1 / PARTS)
@pytest.mark.parametrize("part", range(PARTS))
def test_every_argument_with_hostile_values(part: int) -> None:
    child = [sys.executable, str(SUPPORT / "hostile_arguments.py"), str(part), str(PARTS)]
    done = subprocess.run(child, capture_output=True, text=True, timeout=250, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    *wrong, count = done.stdout.splitlines()
    assert wrong == []
    assert int(count) > 500
