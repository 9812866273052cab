"""`bpe-tokenizer view`: what it prints, writes and serves, and how it ends."""

from __future__ import annotations

import gzip
import importlib.util
import os
import re
import signal
import subprocess
import sys
import tempfile
import urllib.error
import urllib.request
from functools import partial
from pathlib import Path

import pytest

from bpe_tokenizer import BPETokenizer
from bpe_tokenizer.cli.view import published_here
from bpe_tokenizer.view.packed import pack
from bpe_tokenizer.view.page import page
from command_line import TextRun
from page_core import HAS_CORE, needs_core

CORPUS = "low low low lower lowest newer newer newest wider widest"
HAS_SERVER = HAS_CORE and all(importlib.util.find_spec(name) for name in ("starlette", "uvicorn"))


@pytest.fixture
def run(run_text: TextRun) -> TextRun:
    return partial(run_text, "view")


@pytest.fixture(scope="module")
def saved(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """Save two tokenizers, only the first of which has a special token."""
    root = tmp_path_factory.mktemp("tokenizers")
    first = BPETokenizer(normalization=None).train(
        CORPUS, vocab_size=275, special_tokens=["<|end|>"], verbose=False
    )
    first.save(root / "first")
    BPETokenizer(normalization=None).train(CORPUS, vocab_size=258, verbose=False).save(root / "second")
    return root / "first", root / "second"


def test_plain_shows_tokens_and_counts(run: TextRun, saved: tuple[Path, Path]) -> None:
    tokenizer = BPETokenizer.load(saved[0])
    code, out, err = run("--tokenizer", saved[0], "--text", "lower [b]newest[/b]", "--plain")
    tokens, counts = out.splitlines()
    assert (code, err) == (0, "")
    assert tokens.replace("|", "") == "lower [b]newest[/b]"
    assert counts == tokenizer.visualize("lower [b]newest[/b]").counts
    assert len(tokens.split("|")) == tokenizer.count_tokens("lower [b]newest[/b]")


def test_in_a_pipe_the_tokens_are_printed(run: TextRun, saved: tuple[Path, Path]) -> None:
    plain = run("--tokenizer", saved[0], "--text", "lower newest", "--plain")
    assert plain[0] == 0
    assert run("-t", saved[0], "--text", "lower newest") == plain
    assert run("-t", saved[0], stdin=b"lower newest") == plain


def test_plain_shows_two_tokenizers_one_after_the_other(run: TextRun, saved: tuple[Path, Path]) -> None:
    both = ("--tokenizer", saved[0], "--tokenizer", saved[1])
    code, out, _ = run(*both, "--plain", "--allowed-special", "<|end|>", stdin=b"low<|end|>")
    assert code == 0
    lines = out.splitlines()
    assert (lines[0], lines[3]) == (saved[0].name, saved[1].name)
    assert lines[1].endswith("w|<|end|>")
    assert lines[4].count("|") > lines[1].count("|")


@needs_core
def test_html_writes_one_page(run: TextRun, saved: tuple[Path, Path], tmp_path: Path) -> None:
    text = "low </script>\r\n<|end|>"
    (tmp_path / "text").write_bytes(text.encode())
    arguments = ("--tokenizer", saved[0], "--file", tmp_path / "text", "--allowed-special", "all", "--html")
    assert run(*arguments, tmp_path / "page.html") == (0, "", "")
    expected = page({saved[0].name: BPETokenizer.load(saved[0])}, text, allowed_special="all")
    assert (tmp_path / "page.html").read_bytes() == expected.encode()
    code, out, _ = run(*arguments, "-")
    assert (code, out.encode()) == (0, expected.encode())


@needs_core
def test_a_page_needs_no_tokenizer(run: TextRun, tmp_path: Path) -> None:
    assert run("--html", tmp_path / "page.html", "--text", "low") == (0, "", "")
    assert (tmp_path / "page.html").read_bytes() == page(published_here(), "low").encode()
    code, out, err = run("--plain", "--text", "low")
    assert (code, out) == (2, "")
    assert "--tokenizer" in err


@needs_core
def test_an_expected_error_is_one_line(run: TextRun, saved: tuple[Path, Path], tmp_path: Path) -> None:
    first = ("--tokenizer", saved[0])
    (tmp_path / "long").write_text("x" * 5_000_001)
    for arguments, said in (
        (("--tokenizer", tmp_path / "missing", "--text", "x", "--plain"), "missing"),
        ((*first, *first, "--text", "x", "--plain"), "duplicate --tokenizer"),
        ((*first, "--text", "x", "--plain", "--allowed-special", "<|no|>"), "<|no|>"),
        ((*first, "--file", tmp_path / "long", "--html", tmp_path / "page.html"), "5,000,001 characters"),
        ((*first, "--text", "x", "--html", tmp_path), str(tmp_path)),
    ):
        code, out, err = run(*arguments)
        assert (code, out) == (1, "")
        assert err.startswith("bpe-tokenizer: ")
        assert said in err
        assert err.count("\n") == 1
    assert not (tmp_path / "page.html").exists()


def test_a_wrong_command_line(run: TextRun, saved: tuple[Path, Path]) -> None:
    first = ("--tokenizer", saved[0])
    for arguments in (
        (*first, "--text", "x", "--file", "y", "--plain"),
        (*first, "--text", "x", "--html", "y", "--plain"),
        (*first, "--port", "70000"),
        ("--text", "x", "--plain"),
    ):
        assert run(*arguments)[0] == 2


@needs_core
def test_without_the_libraries_the_page_opens_from_the_disk(
    run: TextRun, saved: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    opened: list[str] = []
    monkeypatch.setattr("webbrowser.open", opened.append)
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    for name in [name for name in sys.modules if name.partition(".")[0] in ("starlette", "uvicorn")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "starlette", None)
    code, out, err = run("--tokenizer", saved[0], "--no-browser", "--text", "low")
    assert (code, err, opened) == (0, "", [])
    assert "[view]'" in out
    (file,) = tmp_path.rglob("*.html")
    assert out.startswith(f"{file.as_uri()} (")
    expected = page({saved[0].name: BPETokenizer.load(saved[0])}, "low")
    assert file.read_text(encoding="utf-8") == expected
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    assert run("--tokenizer", saved[0])[0] == 0
    assert [address.partition(":")[0] for address in opened] == ["file"]


def test_a_page_without_names_compares_two_that_the_package_carries() -> None:
    assert {name: each.vocab_size for name, each in published_here().items()} == {
        "o200k_base": 199998,
        "gpt2": 50257,
    }


@pytest.mark.skipif(not HAS_SERVER, reason="the local page needs starlette, uvicorn and core.wasm")
@pytest.mark.skipif(os.name == "nt", reason="signals")
@pytest.mark.usefixtures("ctrl_c")
def test_the_local_page_from_start_to_ctrl_c(saved: tuple[Path, Path]) -> None:
    command = [sys.executable, "-m", "bpe_tokenizer", "view", "--tokenizer", str(saved[0]), "--no-browser"]
    with subprocess.Popen(
        [*command, "--text", "low"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as running:
        assert running.stdout is not None
        assert running.stderr is not None
        said = running.stdout.readline()
        found = re.fullmatch(r"(http://127\.0\.0\.1:\d+/[\w-]{32}/) \(Ctrl-C ends\)\n", said)
        assert found, running.stderr.read()
        with urllib.request.urlopen(found[1], timeout=200) as answer:
            assert '"text":"low"' in answer.read().decode()
        with urllib.request.urlopen(f"{found[1]}tokenizers/{saved[0].name}", timeout=200) as answer:
            assert gzip.decompress(answer.read()) == pack(BPETokenizer.load(saved[0]))
        forged = urllib.request.Request(found[1], headers={"Host": "evil.example"})
        with pytest.raises(urllib.error.HTTPError, match="400") as refused:
            urllib.request.urlopen(forged, timeout=200)
        refused.value.close()
        running.send_signal(signal.SIGINT)
        assert running.wait(timeout=200) == 130
        assert running.stderr.read() == ""
