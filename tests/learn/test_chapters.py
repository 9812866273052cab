"""The chapters: every block of code runs, and every check accepts right answers and refuses wrong ones."""

from __future__ import annotations

import os
import re
import sys
from pathlib import Path
from typing import Any

import pytest
from course.chapters import PAGES, Chapter, load_chapter
from course.runner import line, run_exercise

import bpe_tokenizer.reference
from course_pages import COURSE, NUMBERS, answers, every_chapter, page
from pages import ROOT, blocks, run_console, run_python


def run_page(chapter: Chapter, with_files: bool) -> int:
    """Run the Python blocks of a page, and return how many ran."""
    names: dict[str, Any] = {"__name__": "__main__"}
    ran = 0
    for block in blocks(page(chapter)):
        if block.language == "python" and (with_files or not block.needs_files):
            run_python(chapter.page, block, names)
            ran += 1
    return ran


@every_chapter
def test_the_blocks_of_a_chapter(chapter: Chapter, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("BPE_TOKENIZER_FIXTURES", raising=False)
    assert run_page(chapter, with_files=False) >= 3


@pytest.mark.fixtures
@every_chapter
@pytest.mark.usefixtures("shared")
def test_the_blocks_with_files(chapter: Chapter, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if not any(block.needs_files for block in blocks(page(chapter))):
        pytest.skip("no block of the chapter needs files")
    monkeypatch.chdir(tmp_path)
    assert run_page(chapter, with_files=True) >= 3


@every_chapter
def test_the_parts_of_a_page(chapter: Chapter) -> None:
    text = page(chapter)
    assert text.startswith(f"# {chapter.number}. {chapter.title}\n\n")
    assert len(re.findall(r"^# ", re.sub(r"^```.*?^```$", "", text, flags=re.M | re.S), re.M)) == 1
    _, _, exercises = text.partition("\n## Exercises\n")
    assert exercises
    exercises, _, following = exercises.partition("\n## Next\n")
    assert following
    assert re.findall(r"^\d+\. \*\*`(\w+)`\*\*:? ", exercises, re.M) == [
        exercise.name for exercise in chapter.exercises
    ]
    assert f"`python -m course check {chapter.number}`" in exercises
    if chapter.number < len(PAGES):
        assert f"]({PAGES[chapter.number]}.md)" in following


@every_chapter
def test_the_exercises_of_a_chapter(chapter: Chapter) -> None:
    names = [exercise.name for exercise in chapter.exercises]
    assert 2 <= len(names) <= 5
    assert len(set(names)) == len(names)
    for exercise in chapter.exercises:
        assert exercise.hint.endswith("."), exercise.name
        assert len(exercise.hint) <= 200, exercise.name


@every_chapter
def test_right_answers_pass(chapter: Chapter) -> None:
    right = answers(chapter)
    results = [line(run_exercise(exercise, right)) for exercise in chapter.exercises]
    assert results == [f"solved         {exercise.name}" for exercise in chapter.exercises]


@every_chapter
def test_wrong_answers_fail_one_by_one(chapter: Chapter) -> None:
    wrong = answers(chapter)["WRONG"]
    assert list(wrong) == [exercise.name for exercise in chapter.exercises]
    for exercise in chapter.exercises:
        assert len(wrong[exercise.name]) > 0
        for number, answer in enumerate(wrong[exercise.name]):
            result = run_exercise(exercise, {exercise.name: answer})
            assert result.state == "wrong", (exercise.name, number)
            assert 0 < len(result.message) <= 300, exercise.name
            assert line(result).endswith(f"Hint: {exercise.hint}"), exercise.name


@every_chapter
def test_other_mistakes_are_reported(chapter: Chapter) -> None:
    def wrong_function(*arguments: object) -> object:
        return arguments

    def broken_function() -> None:
        raise LookupError("broken")

    for exercise in chapter.exercises:
        for answer in (None, 5, "text", [], wrong_function, broken_function, object()):
            result = run_exercise(exercise, {exercise.name: answer})
            assert result.state == "wrong", (exercise.name, answer)
            assert "\n" not in line(result), (exercise.name, answer)


@every_chapter
def test_answers_that_are_missing(chapter: Chapter) -> None:
    for names in ({}, {exercise.name: ... for exercise in chapter.exercises}):
        for exercise in chapter.exercises:
            result = run_exercise(exercise, names)
            assert line(result) == f"no answer yet  {exercise.name}"


@pytest.mark.skipif(sys.platform == "win32", reason="the console blocks are for a POSIX shell")
@pytest.mark.parametrize("name", ["index.md", "compared.md"])
def test_the_blocks_of_the_other_pages(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    paths = (ROOT, Path(bpe_tokenizer.__file__).parents[1])
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(map(str, paths)))
    names: dict[str, Any] = {}
    for block in blocks((COURSE / name).read_text(encoding="utf-8")):
        if block.language == "python":
            run_python(name, block, names)
        elif block.language == "console":
            run_console(name, block)


def test_the_index_lists_the_chapters() -> None:
    text = (COURSE / "index.md").read_text(encoding="utf-8")
    listed = re.findall(r"^\| \[(\d+)\. ([^\]]+)\]\(([\w-]+)\.md\) \|", text, re.MULTILINE)
    chapters = map(load_chapter, NUMBERS)
    assert listed == [(str(each.number), each.title, each.page) for each in chapters]
    files = set(re.findall(r"`(\w+)\.py`", text.partition("## The code to read")[2]))
    reference = Path(bpe_tokenizer.reference.__file__).parent
    assert files | {"text"} == {path.stem for path in reference.glob("[a-z]*.py")}


def test_the_exercises_that_the_comparison_names_exist() -> None:
    named = re.findall(
        r"exercises? `(\w+)`(?: and `(\w+)`)?", (COURSE / "compared.md").read_text(encoding="utf-8")
    )
    exercises = {exercise.name for number in NUMBERS for exercise in load_chapter(number).exercises}
    assert {name for pair in named for name in pair if name} <= exercises
