"""`make size`: what is a code line, and that every source file of the package is in one room."""

from __future__ import annotations

import runpy
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
SIZE: dict[str, Any] = runpy.run_path(str(ROOT / "tools" / "size.py"))


def test_what_counts(tmp_path: Path) -> None:
    sources = {
        "python/bpe_tokenizer/model.py": (
            '"""A\n\nb."""\n\n# c\nx = """\n\n"""  # d\n\ndef f():\n    "E."\n    return x\n'
        ),
        "crates/core/src/lib.rs": (
            "//! A\n\nfn f() {\n    // b\n}\n#[cfg(test)]\nmod tests {\n    fn g() {}\n}\nfn h() {}\n"
        ),
        "page/a.js": "/* a\n * b */\n// c\nx = 1; // d\n",
        "tests/test_a.py": "# a\n\nx = 1\n",
    }
    for name, source in sources.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(source, encoding="utf-8")
    counted = {name: lines for name, lines, _ in SIZE["report"](tmp_path) if lines}
    rooms = {"crates/core/src/": 3, "page/": 1, ".": 5, "tests/": 3}
    totals = {"Rust in all": 3, "page in all": 1, "Python in all": 5, "tests in all": 3}
    assert counted == rooms | totals


def test_every_crate_has_a_room() -> None:
    rooms = {name for name, _, _ in SIZE["report"](Path("/nowhere"))}
    assert {f"crates/{path.name}/src/" for path in (ROOT / "crates").iterdir()} <= rooms
