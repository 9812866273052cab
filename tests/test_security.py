"""The promises of docs/security.md that no other test shows, and that the tests it names exist."""

from __future__ import annotations

import ast
import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from bpe_tokenizer import BPETokenizer
from bpe_tokenizer.formats import gpt2

ROOT = Path(__file__).parents[1]
PAGE = (ROOT / "docs" / "security.md").read_text(encoding="utf-8")
NAMED = sorted(set(re.findall(r"`(tests/[\w/]+\.py)::(test_\w+)`", PAGE)))

# Ends the process at the first event that runs a program, opens a connection or unpickles. The name of a test
# server must not be resolved either.
GUARD = """
import sys

PROGRAMS = ("subprocess.", "os.system", "os.exec", "os.spawn", "os.posix_spawn", "os.fork", "webbrowser.")
FORBIDDEN = (*PROGRAMS, "socket.", "urllib.", "http.", "ftplib.", "pickle.")


def guard(event, arguments):
    if event.startswith(FORBIDDEN):
        sys.stderr.write(f"forbidden: {event} {arguments!r}\\n")
        sys.stderr.flush()
        import os
        os._exit(3)
"""

READ_ALL = """
from pathlib import Path
from bpe_tokenizer import BPETokenizer

tokenizers = []
for path in sys.argv[1:]:
    options = {"split_pattern": "gpt2", "special_tokens": {}} if path.endswith(".tiktoken") else {}
    tokenizer = BPETokenizer.load(path, **options)
    assert tokenizer.decode(tokenizer.encode("low lower")) == "low lower", path
    tokenizers.append(tokenizer)
assert len(tokenizers) >= 6
assert "evil" not in sys.modules
assert not Path("ran").exists()
"""

WORK = """
import bpe_tokenizer, numpy
from bpe_tokenizer import BPETokenizer, StreamDecoder
from bpe_tokenizer.corpus import tokenize_corpus

def load_published():
    for name in ("gpt2", "gpt-4o", "hf:owner/name"):
        try:
            bpe_tokenizer.load(name)
        except (bpe_tokenizer.HubError, bpe_tokenizer.MissingDependencyError):
            pass

load_published()  # imports what finds the caches: imports may run programs (`ctypes.util`)
sys.addaudithook(guard)
load_published()
tokens = ["<|im_start|>", "<|im_end|>", "<|endoftext|>"]
tokenizer = BPETokenizer().train(["low lower lowest"] * 9, 270, special_tokens=tokens, verbose=False)
tokenizer.encode_batch(["low", "lower"] * 100, threads=2)
list(StreamDecoder(tokenizer).decode(tokenizer.encode("low")))
tokenizer.save("saved")
again = BPETokenizer.from_pretrained("saved")
talk = [{"role": "user", "content": "low"}]
again.apply_chat_template(talk, "chatml")
again.apply_chat_template(talk, "{% for m in messages %}{{ m.content }}<|im_end|>{% endfor %}")
again.visualize("low")._repr_html_()
open("corpus.txt", "w").write("low\\nlower\\n")
tokenize_corpus("corpus.txt", "shards", tokenizer=again, format="npy", verbose=False)
"""


def run_guarded(code: str, directory: Path, *arguments: str) -> None:
    command = [sys.executable, "-c", GUARD + code, *arguments]
    done = subprocess.run(command, cwd=directory, capture_output=True, text=True, timeout=120, check=False)
    assert (done.returncode, done.stderr) == (0, "")


def names_of_functions(path: Path) -> set[str]:
    tree = ast.parse(path.read_text(encoding="utf-8"))
    functions = (ast.FunctionDef, ast.AsyncFunctionDef)
    return {node.name for node in ast.walk(tree) if isinstance(node, functions)}


def test_every_named_test_exists() -> None:
    assert len(NAMED) > 40
    files = {file: names_of_functions(ROOT / file) for file, _ in NAMED}
    assert [f"{file}::{name}" for file, name in NAMED if name not in files[file]] == []


def test_every_promise_names_a_test() -> None:
    rows = [line for line in PAGE.splitlines() if line.startswith("| ") and "wants to" not in line]
    promises = [row for row in rows if not row.startswith(("| [", "| promise", "| other users", "|---"))]
    without = [row for row in promises if not re.search(r"`tests/[\w/]+\.py::test_\w+`|`crates/", row)]
    assert len(promises) > 30
    assert [row for row in without if "](#" not in row] == []


def test_no_tokenizer_file_runs_code_or_opens_a_connection(tmp_path: Path) -> None:
    tokenizer = BPETokenizer("gpt2", None).train("low low lower lowest", 260, verbose=False)
    tokenizer.export(tmp_path / "x.tiktoken", "tiktoken")
    tokenizer.export(tmp_path / "x.json", "base64-json")
    tokenizer.export(tmp_path / "x.model", "minbpe")
    tokenizer.export(tmp_path / "x.gguf", "gguf")
    gpt2.save(tokenizer.model, tmp_path / "pair")
    tokenizer.save(tmp_path / "hf")
    # Code beside a tokenizer, as repositories for `trust_remote_code` have it.
    for directory in (tmp_path, tmp_path / "hf"):
        (directory / "evil.py").write_text("open('ran', 'w').close()\n")
    config_path = tmp_path / "hf" / "tokenizer_config.json"
    config = json.loads(config_path.read_text(encoding="utf-8"))
    config |= {"auto_map": {"AutoTokenizer": ["evil.Evil", "evil.Evil"]}, "tokenizer_class": "Evil"}
    config_path.write_text(json.dumps(config), encoding="utf-8")
    paths = ["x.tiktoken", "x.json", "x.model", "x.gguf", "pair/vocab.json", "hf"]
    # The first pass imports what the readers need: imports may run programs (`ctypes.util`).
    run_guarded(READ_ALL + "sys.addaudithook(guard)\n" + READ_ALL, tmp_path, *paths)
    assert not (tmp_path / "hf" / "ran").exists()


def test_nothing_but_a_request_opens_a_connection(tmp_path: Path) -> None:
    run_guarded(WORK, tmp_path)


@pytest.mark.skipif(not hasattr(os, "symlink"), reason="needs symbolic links")
def test_a_prepared_link_is_not_followed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Another user of the directory guesses the name of a temporary file, and makes it a link."""
    victim = tmp_path / "victim"
    victim.write_text("mine")
    tokenizer = BPETokenizer("gpt2", None).train("low low lower lowest", 260, verbose=False)
    monkeypatch.setattr("secrets.token_hex", lambda size: "0" * 2 * size)
    directory = tmp_path / "shared"
    tokenizer.export(directory / "x.tiktoken", "tiktoken")
    (directory / "x.tiktoken").unlink()
    made = list(opened_names(directory, tokenizer))
    assert made, "the save makes no temporary file"
    for name in made:
        (directory / name).symlink_to(victim)
        with pytest.raises(OSError):  # noqa: PT011 - the class is that of the system's answer
            tokenizer.export(directory / "x.tiktoken", "tiktoken")
        assert victim.read_text() == "mine"
        (directory / name).unlink()


def opened_names(directory: Path, tokenizer: BPETokenizer) -> set[str]:
    """The names of the temporary files of a save: those that it opens and that are gone afterwards."""
    names: set[str] = set()
    active = [True]

    def note(event: str, arguments: tuple[object, ...]) -> None:
        if active and event == "open" and str(arguments[0]).startswith(str(directory)):
            names.add(Path(str(arguments[0])).name)

    sys.addaudithook(note)
    tokenizer.export(directory / "x.tiktoken", "tiktoken")
    active.clear()
    return {name for name in names if name and not (directory / name).exists()} - {directory.name}
