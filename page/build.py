"""Joins the page's sources and its core to one file, which the wheel carries: `python page/build.py FILE`.

The fields that differ from page to page stay in the file; `python/bpe_tokenizer/view/page.py` fills them in.
"""

from __future__ import annotations

import base64
import gzip
import hashlib
import re
import sys
from collections import Counter
from html import escape
from pathlib import Path

SOURCES = Path(__file__).resolve().parent
SHARED = SOURCES.parent / "javascript"
# The style sheets, in the order of the cascade; those of modes follow.
FIRST_STYLES = ("theme.css", "layout.css", "chips.css")
# No code of the page has any other form of import or export.
IMPORT = re.compile(r'^import \{[^{}]+\} from "\./(\w+\.js)";?\n', re.MULTILINE)
EXPORT = re.compile(r"^export (?=(?:async )?function\b|class\b|const\b|let\b)", re.MULTILINE)
# Comments that begin their line. The page is for people who read its sources in the repository.
COMMENT = re.compile(r"^[ \t]*(?:/\*.*?\*/|//[^\n]*)[ \t]*\n", re.MULTILINE | re.DOTALL)
DECLARED = re.compile(r"^(?:async )?(?:function\*?|class|const|let) ([\w$]+)", re.MULTILINE)
FIELD = re.compile(r"\[\[(\w+)\]\]")
ICON = (
    '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 32 32"><rect x="2" y="3" width="12" height="11" '
    'rx="3.5" fill="#b9a8f5"/><rect x="18" y="3" width="12" height="11" rx="3.5" fill="#7fc8a9"/>'
    '<rect x="2" y="18" width="28" height="11" rx="3.5" fill="#5340c4"/></svg>'
)


def build() -> str:
    """Return the page, whose fields are [[connect]], [[data]] and [[tokenizers]]."""
    style = "\n".join(COMMENT.sub("", read(name)) for name in styles())
    program = script("app.js")
    core = gzip.compress((SOURCES / "core.wasm").read_bytes(), mtime=0)
    fields = {
        "policy": escape(content_security_policy(style, program)),
        "icon": f"data:image/svg+xml;base64,{base64.b64encode(ICON.encode()).decode()}",
        "style": style,
        "wasm": base64.b64encode(core).decode(),
        # A block keeps the worker's names out of its global object.
        "worker": f'"use strict";\n{{\n{script("worker.js")}}}\n',
        "script": program,
    }
    return FIELD.sub(lambda field: fields.get(field[1], field[0]), read("index.html"))


def content_security_policy(style: str, program: str) -> str:
    """Return the policy that allows only the page's own styles and scripts.

    Source: https://www.w3.org/TR/CSP3/
    """
    rules = (
        "default-src 'none'",
        f"style-src {sha256(style)}",
        # The core is WebAssembly. The worker inherits this policy.
        f"script-src {sha256(program)} 'wasm-unsafe-eval'",
        "worker-src blob:",
        "img-src data:",
        "connect-src [[connect]]",
        "base-uri 'none'",
        "form-action 'none'",
    )
    return "; ".join(rules)


def styles() -> list[str]:
    """Return the names of the style sheets, in order."""
    return [*FIRST_STYLES, *sorted({path.name for path in SOURCES.glob("*.css")} - {*FIRST_STYLES})]


def script(first: str) -> str:
    """Join a module and all that it imports, each after its imports, to one script."""
    sources: dict[str, str] = {}

    def add(name: str) -> None:
        source = read(name)
        for imported in IMPORT.findall(source):
            if imported not in sources:
                add(imported)
        sources[name] = EXPORT.sub("", COMMENT.sub("", IMPORT.sub("", source)))

    add(first)
    joined = "\n".join(sources.values())
    for name, count in Counter(DECLARED.findall(joined)).items():
        if count > 1:
            raise AssertionError(f"the page's modules become one script, and several declare {name}")
    for forbidden in ("</script", "<!--", "<script"):
        if forbidden in joined.lower():
            raise AssertionError(f"a script of the page contains {forbidden}")
    return joined


def read(name: str) -> str:
    """Read a source file of the page, or one that it shares with the JavaScript package."""
    found = next(place / name for place in (SOURCES, SHARED) if (place / name).exists())
    return found.read_text(encoding="utf-8")


def sha256(source: str) -> str:
    """Return the hash by which a policy allows a source."""
    digest = hashlib.sha256(source.encode()).digest()
    return f"'sha256-{base64.b64encode(digest).decode()}'"


if __name__ == "__main__":
    made = Path(sys.argv[1])
    beside = made.with_name(f"{made.name}.new")
    beside.write_text(build(), encoding="utf-8")
    beside.replace(made)
