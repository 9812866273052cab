"""Makes the JavaScript package, from the page's core and the package's data.

python javascript/build.py FOLDER
"""

from __future__ import annotations

import json
import shutil
import sys
from pathlib import Path
from typing import Any

from bpe_tokenizer import __version__
from bpe_tokenizer.patterns import NAMED_PATTERNS
from bpe_tokenizer.view.page import file_patterns, published_names

SOURCES = Path(__file__).resolve().parent
ROOT = SOURCES.parent
# Of the page: its core, the module that calls it, and the characters that files write for bytes.
FROM_PAGE = ("core.js", "core.wasm", "tokenizer_json.js", "training_patterns.js")


def build(folder: Path) -> None:
    """Write the files of the package."""
    folder.mkdir(parents=True, exist_ok=True)
    ours = [path for path in SOURCES.iterdir() if path.suffix in (".js", ".ts", ".md")]
    for path in (*ours, *(ROOT / "page" / name for name in FROM_PAGE), ROOT / "LICENSE"):
        shutil.copy(path, folder / path.name)
    description = json.loads((SOURCES / "package.json").read_text(encoding="utf-8"))
    description["version"] = __version__
    (folder / "package.json").write_text(json.dumps(description, indent=2), encoding="utf-8")
    constants = {
        "ENCODINGS": encodings(),
        "PATTERNS": {name: named.patterns for name, named in NAMED_PATTERNS.items()},
        "FILE_PATTERNS": file_patterns(),
    }
    lines = [f"export const {name} = {json.dumps(value)};\n" for name, value in constants.items()]
    (folder / "published.js").write_text("".join(lines), encoding="utf-8")


def encodings() -> dict[str, Any]:
    """Return what the rank files of the published encodings do not hold, by name."""
    return {
        each["name"]: {"patterns": each["patterns"], "specialTokens": each["specialTokens"]}
        for each in published_names()
    }


if __name__ == "__main__":
    build(Path(sys.argv[1]))
