"""`python -m course`, as a reader types it, and `check` as a notebook calls it."""

from __future__ import annotations

import contextlib
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from course import check, solution, tasks
from course.answers import AnswerFileError, check_file
from course.chapters import PAGES, load_chapter
from course.exercise import Exercise, WrongAnswer, expect_call, expect_equal
from course.runner import Result, run_exercise

import bpe_tokenizer
from course_pages import NUMBERS, answers, answers_path
from pages import ROOT

NUMBER = 4
CHAPTER = load_chapter(NUMBER)
# The exercises whose answer is a function, so that its code runs while it is checked.
FUNCTIONS = [name for name, each in answers(CHAPTER).items() if callable(each)]
FIRST, SECOND, *_ = [exercise.name for exercise in CHAPTER.exercises if exercise.name in FUNCTIONS]


def environment() -> dict[str, str]:
    return {
        **os.environ,
        "PYTHONPATH": os.pathsep.join([str(ROOT), str(Path(bpe_tokenizer.__file__).parents[1])]),
        "COLUMNS": "80",
    }


def run(*arguments: object, cwd: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "course", *map(str, arguments)]
    return subprocess.run(
        command, cwd=cwd, env=environment(), capture_output=True, encoding="utf-8", check=False
    )


def results(directory: Path, code: str, seconds: float = 60) -> dict[str, Result]:
    path = directory / "answers.py"
    path.write_text(code, encoding="utf-8")
    return {result.name: result for result in check_file(CHAPTER, path, seconds)}


def test_the_list_of_chapters(tmp_path: Path) -> None:
    done = run(cwd=tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    lines = done.stdout.splitlines()
    assert len(lines) == len(PAGES)
    assert lines[3] == f" 4  {CHAPTER.title}: {', '.join(each.name for each in CHAPTER.exercises)}"


def test_start_then_check(tmp_path: Path) -> None:
    done = run("start", NUMBER, cwd=tmp_path)
    assert (done.returncode, done.stdout, done.stderr) == (0, "chapter_04.py\n", "")
    started = (tmp_path / "chapter_04.py").read_text(encoding="utf-8")
    assert started.startswith(f"# Chapter 4: {CHAPTER.title}\n")
    task = "# Write a function `most_frequent(ids)` that returns the most frequent pair of a list of ids as a"
    assert task in started
    assert "\ndef train_often(text, vocab_size, min_count):\n    raise NotImplementedError\n" in started
    assert "\ntwo_ways = ...\n" in started
    again = run("start", NUMBER, cwd=tmp_path)
    assert (again.returncode, again.stdout) == (1, "")
    assert again.stderr == "course: chapter_04.py exists already, and stays as it is\n"
    assert (tmp_path / "chapter_04.py").read_text(encoding="utf-8") == started
    done = run("check", NUMBER, cwd=tmp_path)
    assert (done.returncode, done.stderr) == (1, "")
    assert done.stdout.splitlines() == [f"no answer yet  {each.name}" for each in CHAPTER.exercises]


def test_a_solution_is_shown_after_an_attempt(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run("start", NUMBER, cwd=tmp_path)
    done = run("solution", NUMBER, "most_frequent", cwd=tmp_path)
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == (
        "course: most_frequent has no answer yet: try it, and then its solution is shown\n"
    )
    done = run("solution", NUMBER, "most", cwd=tmp_path)
    assert done.stderr.startswith("course: chapter 4 has no 'most'; it has most_frequent, build_vocab, ")
    path = tmp_path / "chapter_04.py"
    path.write_text("def most_frequent(ids):\n    return 0\n", encoding="utf-8")
    done = run("solution", NUMBER, "most_frequent", cwd=tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    names: dict[str, object] = {}
    exec(done.stdout, names)  # with the imports that it needs
    solution(NUMBER, "most_frequent", {"most_frequent": names["most_frequent"]})
    assert capsys.readouterr().out == done.stdout
    result = next(each for each in CHAPTER.exercises if each.name == "most_frequent")
    assert run_exercise(result, names).state == "solved"


def test_every_solution_runs_alone() -> None:
    for number in NUMBERS:
        chapter = load_chapter(number)
        for exercise in chapter.exercises:
            names: dict[str, object] = {}
            exec(tasks.solution(chapter, exercise.name, [Result(exercise.name, "wrong")]), names)
            assert run_exercise(exercise, names).state == "solved", exercise.name


def test_a_missing_name_is_explained(tmp_path: Path) -> None:
    found = results(tmp_path, f"def {FIRST}(*arguments):\n    return undefined\n")
    assert found[FIRST].message == "line 2: NameError: name 'undefined' is not defined"
    assert found[FIRST].hint == "An answer uses only names of its file: copy or import the others."


def test_right_answers(tmp_path: Path) -> None:
    done = run("check", NUMBER, answers_path(CHAPTER), cwd=tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.splitlines() == [f"solved         {each.name}" for each in CHAPTER.exercises]


@pytest.mark.parametrize("number", ["0", "18", "-1", "three", "1.5", ""])
def test_a_chapter_that_does_not_exist(number: str, tmp_path: Path) -> None:
    from course.__main__ import main

    with pytest.raises(SystemExit) as stopped, contextlib.redirect_stderr(None):
        main(["check", "--", number])
    assert stopped.value.code == 2


def test_a_wrong_command_line_has_no_traceback(tmp_path: Path) -> None:
    done = run("check", "18", cwd=tmp_path)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.endswith("'18' is not a chapter; the course has the chapters 1 to 17\n")


def test_a_missing_file(tmp_path: Path) -> None:
    done = run("check", NUMBER, cwd=tmp_path)
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == (
        "course: chapter_04.py is not a file. To make a file with the names to define: "
        "python -m course start 4\n"
    )
    with pytest.raises(AnswerFileError, match="is not a file"):
        list(check_file(CHAPTER, tmp_path))


@pytest.mark.parametrize(
    ("code", "message"),
    [
        ("def answer(:\n", "answers.py: line 1: SyntaxError: "),
        ("x = 1\n  y = 2\n", "answers.py: line 2: IndentationError: unexpected indent"),
        ("x = 1\nx / 0\n", "answers.py: line 2: ZeroDivisionError: division by zero"),
        (
            "import no_such_module\n",
            "answers.py: line 1: ModuleNotFoundError: No module named 'no_such_module'",
        ),
        ("exit()\n", "answers.py: line 1: the code ends the program"),
        ("import os\nos._exit(0)\n", "answers.py: the code ends Python"),
        ("x = 1\nwhile x:\n    x = 2\n", "answers.py: line [23]: the code still runs after "),
        ("x = '\0'\n", "answers.py: .*null bytes"),
    ],
)
def test_a_file_that_cannot_be_loaded(code: str, message: str, tmp_path: Path) -> None:
    # On a busy machine, a short limit can pass before the code runs.
    for seconds in (0.3, 3, 30) if "while" in code else (60,):
        with pytest.raises(AnswerFileError) as caught:
            results(tmp_path, code, seconds)
        if found := re.search(message, str(caught.value)):
            break
    assert found, str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_file_that_is_not_utf_8(tmp_path: Path) -> None:
    path = tmp_path / "answers.py"
    path.write_bytes(b"x = '\xff'\n")
    with pytest.raises(AnswerFileError, match=r"SyntaxError: .*(?i:utf-8)"):
        list(check_file(CHAPTER, path))


def test_an_exception_is_reported_with_the_readers_line(tmp_path: Path) -> None:
    code = f"""
from helper import helped
def {FIRST}(*arguments):
    return 1 / 0
def {SECOND}(*arguments):
    return helped(
        arguments
    )
"""
    (tmp_path / "helper.py").write_text("def helped(arguments):\n    raise KeyError('a\\nb')\n")
    found = results(tmp_path, code)
    assert found[FIRST].message == "line 4: ZeroDivisionError: division by zero"
    assert found[SECOND].message.startswith("line 6: KeyError: ")


def test_endless_loops_end(tmp_path: Path) -> None:
    code = f"""
import re
def {FIRST}(*arguments):
    while True:
        try:
            pass
        except BaseException:
            pass
def {SECOND}(*arguments):
    return re.match("(a+)+b", "a" * 40)
"""
    # The name of the file is written with escapes by `faulthandler`, which also shortens it.
    directory = tmp_path / ("é" * 90)
    directory.mkdir()
    found: dict[str, Result] = {}
    # On a busy machine, a short limit can pass before the code runs.
    for seconds in (0.4, 4, 40):
        with contextlib.suppress(AnswerFileError):
            found = results(directory, code, seconds)
            if all(found[name].message.startswith("line ") for name in (FIRST, SECOND)):
                break
    assert found[FIRST].message.startswith("line ")
    assert int(found[FIRST].message.split()[1].rstrip(":")) in range(4, 9)
    assert found[FIRST].message.endswith(
        f"the code still runs after {seconds} seconds; does a loop never end?"
    )
    assert found[SECOND].message.startswith(f"line 10: the code still runs after {seconds} seconds")
    assert [each for each in found if each not in (FIRST, SECOND)] != []


def test_code_that_ends_python(tmp_path: Path) -> None:
    code = f"""
import ctypes, os, sys
def {FIRST}(*arguments):
    os._exit(0)
def {SECOND}(*arguments):
    sys.exit("bye")
"""
    found = results(tmp_path, code)
    assert found[FIRST].message == "the code ends Python"
    assert found[SECOND].message == "line 6: the code ends the program"


def test_what_the_code_prints_is_not_shown(tmp_path: Path) -> None:
    noise = f"""
import os, sys
print("noise"); print("noise", file=sys.stderr); os.write(1, b"noise"); os.system("echo noise")
def {FIRST}(*arguments):
    print('["{FIRST}", "solved"]')
    return input()
"""
    (tmp_path / "chapter_04.py").write_text(noise, encoding="utf-8")
    done = run("check", NUMBER, cwd=tmp_path)
    assert (done.returncode, done.stderr) == (1, "")
    lines = {
        line.split()[1].rstrip(":."): line for line in done.stdout.splitlines() if "no answer" not in line
    }
    assert set(lines) == {FIRST}
    assert lines[FIRST].startswith(f"wrong          {FIRST}: line 6: EOFError: ")


def test_a_data_class_and_a_main_block_in_the_answers(tmp_path: Path) -> None:
    code = """
from __future__ import annotations
from dataclasses import dataclass
@dataclass
class Pair:
    left: int
if __name__ == "__main__":
    raise SystemExit("the block of a program")
"""
    assert {result.state for result in results(tmp_path, code).values()} == {"no answer yet"}


@pytest.mark.skipif(sys.platform == "win32", reason="sends a POSIX signal")
def test_ctrl_c(ctrl_c: None, tmp_path: Path) -> None:
    code = f"def {FIRST}(*arguments):\n    open('started', 'w').close()\n    while True: pass\n"
    (tmp_path / "chapter_04.py").write_text(code, encoding="utf-8")
    process = subprocess.Popen(
        [sys.executable, "-m", "course", "check", "4", "--time-limit", "60"],
        cwd=tmp_path,
        env=environment(),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        start_new_session=True,
    )
    while not (tmp_path / "started").exists():
        assert process.poll() is None
        time.sleep(0.02)
    os.killpg(process.pid, signal.SIGINT)
    _, stderr = process.communicate()
    assert (process.returncode, stderr) == (130, b"")


def test_check_in_a_notebook(capsys: pytest.CaptureFixture[str]) -> None:
    check(NUMBER, answers(CHAPTER))
    printed = capsys.readouterr().out.splitlines()
    assert printed == [f"solved         {each.name}" for each in CHAPTER.exercises]
    with pytest.raises(ValueError, match="chapter 99 does not exist"):
        check(99, {})


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        ([1, 2], (1, 2)),
        (((1, "a"), [2]), [(1, "a"), (2,)]),
        (0.30000001, 0.3),
        (1, 1.0),
        ({"a": [1]}, {"a": (1,)}),
        ({1, 2}, frozenset({1, 2})),
        (b"a", b"a"),
        (True, True),
        (None, None),
    ],
)
def test_answers_that_count_as_right(answer: object, expected: object) -> None:
    expect_equal(answer, expected, "the answer")
    expect_call(lambda: answer, (), expected)


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        ([1], [1, 2]),
        ("ab", ["a", "b"]),
        (b"a", "a"),
        ("a", b"a"),
        (0.31, 0.3),
        ({"a": 1, "b": 2}, {"a": 1}),
        ([1, 2], {1, 2}),
        (None, []),
        (iter([1]), [1]),
        ("0.3", 0.3),
    ],
)
def test_answers_that_count_as_wrong(answer: object, expected: object) -> None:
    with pytest.raises(WrongAnswer, match=r"^the answer is not right: you have "):
        expect_equal(answer, expected, "the answer")
    with pytest.raises(WrongAnswer, match=r" gives .*, expected "):
        expect_call(lambda: answer, (), expected)


def test_messages_of_expect_call() -> None:
    def merge(tokens: list[int], pair: tuple[int, int]) -> list[int]:
        return tokens

    def forgetful(tokens: list[int]) -> None:
        tokens.clear()

    with pytest.raises(WrongAnswer) as caught:
        expect_call(merge, ([1, 2], (1, 2)), [256])
    assert str(caught.value) == "merge([1, 2], (1, 2)) gives [1, 2], expected [256]"
    tokens = [1, 2]
    with pytest.raises(WrongAnswer, match=r"forgetful\(\[1, 2\]\) gives None \(is a `return` missing\?\)"):
        expect_call(forgetful, (tokens,), [])
    assert tokens == [1, 2]
    with pytest.raises(WrongAnswer, match="it must be a function, and you have 5"):
        expect_call(5, (), 5)
    with pytest.raises(WrongAnswer) as caught:
        expect_call(lambda *_: list(range(10_000)), ("x" * 10_000, "y" * 10_000), [])
    assert len(str(caught.value)) < 300


def test_a_value_whose_repr_fails() -> None:
    class Broken:
        def __repr__(self) -> str:
            raise ValueError

    exercise = Exercise("answer", lambda answer: expect_equal(answer, 1, "the answer"), "Think.")
    message = run_exercise(exercise, {"answer": Broken()}).message
    assert message == "the answer is not right: you have an object whose repr raises ValueError"
