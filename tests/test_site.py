"""The documentation site, without building it: links, anchors, pictures, navigation, API pages, cookbook."""

from __future__ import annotations

import importlib
import importlib.util
import re
import sys
from collections import Counter
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from tools.interface import DIRECTIVE, resolve

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
DOCUMENTS = sorted([*ROOT.glob("*.md"), *DOCS.glob("**/*.md")])
# Modules whose `__all__` is public. The root is the first: an object has its page under its shortest name.
PUBLIC = (
    *("bpe_tokenizer", "bpe_tokenizer.chat", "bpe_tokenizer.inference", "bpe_tokenizer.corpus"),
    *("bpe_tokenizer.distributed", "bpe_tokenizer.patterns", "bpe_tokenizer.compat.tiktoken"),
    *("bpe_tokenizer.compat.tokenizers", "bpe_tokenizer.compat.transformers"),
    "bpe_tokenizer.reference",
)
# The version has a paragraph instead of a directive.
IN_PROSE = {"bpe_tokenizer.__version__"}


def site_module(name: str) -> ModuleType:
    """Import a module of docs/site, which is not on the path."""
    spec = importlib.util.spec_from_file_location(f"site_{name}", DOCS / "site" / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


commonmark: Any = site_module("commonmark")
live: Any = site_module("live")
PICTURE = re.compile(r"\]\(pictures/([\w-]+)\.svg\)")


def name_of(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


@cache
def text_of(path: Path) -> str:
    return path.read_text(encoding="utf-8")


@cache
def anchors(path: Path) -> Counter[str]:
    """Return the anchors of a page: of its headings, and of its API directives."""
    text = text_of(path)
    return Counter([*map(commonmark.slug, commonmark.headings(text)), *DIRECTIVE.findall(text)])


@pytest.mark.parametrize("document", DOCUMENTS, ids=name_of)
def test_links_and_anchors_lead_somewhere(document: Path) -> None:
    for target, anchor in commonmark.links(text_of(document)):
        path = (document.parent / target).resolve() if target else document
        assert path.exists(), f"{name_of(document)} links to {target}"
        assert path.is_relative_to(ROOT), target
        if anchor and path.suffix == ".md":
            assert anchors(path)[anchor] == 1, f"{name_of(document)} links to {target}#{anchor}"
        # The site shows files of the repository; it has no page for a directory.
        assert path.is_file(), target


@pytest.mark.parametrize("document", DOCUMENTS, ids=name_of)
def test_pictures_have_a_description(document: Path) -> None:
    for description in re.findall(r"!\[([^\]]*)\]\(", text_of(document)):
        assert len(description) > 10, description


def nav_pages() -> list[str]:
    nav = text_of(ROOT / "mkdocs.yml").partition("\nnav:\n")[2]
    return re.findall(r"^ +- (?:[^:\n]+: )?(\S+\.md)$", nav, re.MULTILINE)


def test_every_page_is_in_the_navigation_once() -> None:
    generated = {"project/architecture.md", "project/changelog.md", "project/contributing.md"}
    generated.add("project/security.md")
    pages = {path.relative_to(DOCS).as_posix() for path in DOCS.glob("**/*.md")}
    assert Counter(nav_pages()) == Counter(pages | generated)


def test_every_guide_and_chapter_says_what_is_next() -> None:
    start = nav_pages().index("install.md")
    guides = nav_pages()[start : start + 2] + nav_section("Guides")
    for name in [*guides, *(name for name in nav_section("Course") if re.match(r"learn/\d", name))]:
        following = text_of(DOCS / name).rpartition("\n## Next\n")[2]
        assert 0 < len(following) < 400, name
        assert commonmark.links(following), name


def nav_section(title: str) -> list[str]:
    nav = text_of(ROOT / "mkdocs.yml").partition(f"\n  - {title}:\n")[2]
    return re.findall(r"- (?:[^:\n]+: )?(\S+\.md)$", re.split(r"\n  - ", nav)[0], re.MULTILINE)


def test_live_parts_are_below_pictures_of_the_course() -> None:
    shown = {name for path in (DOCS / "learn").glob("*.md") for name in PICTURE.findall(text_of(path))}
    assert live.LIVE.keys() <= shown
    page = "![A picture](pictures/03-merges.svg)\n"
    changed = live.with_live_parts(page, "learn/03-merging-by-hand.md")
    assert changed.startswith("![A picture](pictures/03-merges.svg)\n\n<details class=")
    assert 'src="../piecewise.html#s=' in changed
    home = live.with_live_parts(text_of(DOCS / "index.md"), "index.md")
    assert '<iframe class="piecewise" title="Piecewise" src="piecewise.html"></iframe>' in home
    assert '<noscript><img alt="A text, and its tokens' in home


def test_every_public_name_is_on_one_api_page() -> None:
    directives = [name for path in sorted(DOCS.glob("api/*.md")) for name in DIRECTIVE.findall(text_of(path))]
    assert max(Counter(directives).values()) == 1
    shown: dict[int, str] = {}
    for directive in directives:
        found = resolve(directive)  # a name that does not exist is an error here
        assert id(found) not in shown, f"{directive} is {shown[id(found)]}"
        shown[id(found)] = directive
    for module in PUBLIC:
        for name in importlib.import_module(module).__all__:
            full = f"{module}.{name}"
            if full not in IN_PROSE:
                assert id(resolve(full)) in shown, f"{full} is on no page in docs/api"


def test_api_pages_use_the_names_of_the_root() -> None:
    import bpe_tokenizer

    for path in DOCS.glob("api/*.md"):
        for directive in DIRECTIVE.findall(text_of(path)):
            module, _, name = directive.rpartition(".")
            if name in bpe_tokenizer.__all__ and resolve(directive) is getattr(bpe_tokenizer, name):
                assert module == "bpe_tokenizer", directive


def recipes(page: Path) -> list[tuple[str, str]]:
    """Return the heading and the text of each recipe of a page."""
    parts = re.split(r"^## (.+)$", text_of(page), flags=re.MULTILINE)
    return list(zip(parts[1::2], parts[2::2], strict=True))


RECIPE_PAGES = sorted(set(DOCS.glob("cookbook/*.md")) - {DOCS / "cookbook/index.md"})


def test_the_cookbook_is_large_and_its_index_is_complete() -> None:
    assert sum(len(recipes(page)) for page in RECIPE_PAGES) >= 25
    titles = [f"[{text_of(page).partition(chr(10))[0][2:]}]({page.name})" for page in RECIPE_PAGES]
    index = text_of(DOCS / "cookbook/index.md")
    assert sorted(re.findall(r"^\| (\[.*?\)) \| .", index, re.MULTILINE)) == sorted(titles)


@pytest.mark.parametrize("page", RECIPE_PAGES, ids=name_of)
def test_every_recipe_is_a_question_with_code_that_runs(page: Path) -> None:
    for heading, text in recipes(page):
        assert heading.endswith("?"), heading
        assert "```python\n>>> " in text, heading
        assert 1 <= len(text.partition("```")[0].strip().split("\n\n")) <= 2, heading


def test_nothing_is_loaded_from_other_hosts() -> None:
    for path in [ROOT / "mkdocs.yml", *(DOCS / "site").glob("*.css"), *(DOCS / "site").glob("*.js")]:
        assert re.findall(r"https?://(?!www\.w3\.org/)[^\s)\"']+", text_of(path)) == [], path.name


@pytest.mark.parametrize(
    ("page", "expected"),
    [
        (
            "1. a\n\n   b\n   ```sh\n   c\n     d\n   ```\n2. e",
            "1. a\n\n    b\n    ```sh\n    c\n      d\n    ```\n\n2. e",
        ),
        ("- a\n  - b\n    c\n\n  d\n\ne", "- a\n    - b\n        c\n\n    d\n\ne"),
        ("a\n- b\n- c", "a\n\n- b\n- c"),
        ("- a\nlazy\n- b", "- a\n    lazy\n- b"),
        ("```\n- a\n  - b\n```", "```\n- a\n  - b\n```"),
        ("    code\n", "    code\n"),
    ],
)
def test_lists_are_indented_for_python_markdown(page: str, expected: str) -> None:
    assert commonmark.indent_lists(page) == expected


def test_results_of_a_prediction_are_hidden_until_asked_for() -> None:
    session = ">>> for a in (1, 2):\n...     a\n1\n2\n>>> a\n2\n\n"
    page = f"One.\n\n**Predict** both\nresults:\n\n```pycon\n{session}```\n\nTwo.\n\n```pycon\n{session}```\n"
    code = ">>> for a in (1, 2):\n...     a\n>>> a\n"
    hidden = f"<details><summary>The results</summary>\n\n```pycon\n{session}```\n\n</details>"
    assert commonmark.hide_predictions(page) == page.replace(
        f"```pycon\n{session}```", f"```pycon\n{code}```\n\n{hidden}", 1
    )


def test_every_prediction_of_the_course_is_hidden() -> None:
    for path in (ROOT / "docs" / "learn").glob("[0-9]*.md"):
        text = path.read_text(encoding="utf-8")
        hidden = commonmark.hide_predictions(text).count("<summary>The results</summary>")
        assert hidden == text.count("**Predict**"), path.name


def test_links_in_code_are_not_links() -> None:
    page = "[a](b.md#c) `[d](e.md)`\n```\n[f](g.md)\n```\n[h](https://i) [j](#k) ![l](m.svg)"
    assert commonmark.links(page) == [("b.md", "c"), ("", "k"), ("m.svg", "")]
