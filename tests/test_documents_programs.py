"""The programs and the calls that the source documents print, cut out of them and run as they are.

Nothing of the documents is in this file. The cutting finds places by their structure: fences, cells of
notebooks, shebangs, command lines. Only imports are changed. What differs on purpose is in `DIFFERENT`, with
the heading of docs/differences.md that explains it.
"""

from __future__ import annotations

import ast
import contextlib
import io
import logging
import pkgutil
import re
import shlex
from collections import Counter
from pathlib import Path
from typing import Any, cast

import pytest
import regex
import typer

import bpe_tokenizer
from bpe_tokenizer import BPETokenizer, ModelFileNotFoundError, reference
from bpe_tokenizer.cli import main
from bpe_tokenizer.cli.app import create_app
from bpe_tokenizer.cli.commands import option_name
from bpe_tokenizer.reference import BasicBPE, NaiveBPETokenizer, RegexBPETokenizer, words
from seed_documents import (
    DIFFERENT,
    cells,
    check_arguments,
    check_signatures,
    commented,
    definitions,
    document,
    fenced,
    is_python,
    run,
    seed_directory,
)

pytestmark = pytest.mark.fixtures


@pytest.fixture
def seeds(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    return seed_directory(tmp_path, monkeypatch)


# 000


def test_the_blocks_of_000(seeds: Path, caplog: pytest.LogCaptureFixture) -> None:
    blocks = fenced(document(seeds, "000"), "python")
    assert len(blocks) == 27
    Path("data").mkdir()
    Path("data/blog.txt").write_text("The tokenizer is a component. A low, lower, lowest one!\n" * 9, "utf-8")
    ran = Counter[str]()
    for block in blocks:
        try:
            tree = ast.parse(block)
        except SyntaxError:
            ran["a sketch with arrows"] += 1
            continue
        functions = [node for node in tree.body if isinstance(node, ast.FunctionDef)]
        for function in functions:
            for kind in (NaiveBPETokenizer, RegexBPETokenizer):
                if hasattr(kind, function.name):
                    check_arguments(function, getattr(kind, function.name))
                    ran["a method"] += 1
        calls = {
            node.func.id
            for node in ast.walk(tree)
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name)
        }
        if "__name__" in block:
            caplog.set_level(logging.DEBUG, logger="legollm")
            merges = run(block, {"__name__": "__main__"})
            same, theirs, ours = (record.msg for record in caplog.records if record.name == "legollm")
            assert (same, theirs) == (True, ours)
            assert merges.count("\n") == 20
            ran["the program"] += 1
        elif "encoded" in block:
            printed = run(block, {})
            assert printed.splitlines()[-1] == "Match: True"
            assert printed.count("merge ") == 20
            assert "100257" not in printed, DIFFERENT["000: special tokens in encode"]
            ran["an example of use"] += 1
        elif commented(block):
            assert run(block, {"_merge_pair": reference.merge_pair}) == commented(block)
            ran["a printed result"] += 1
        elif re.search("^(splits|chunks) = ", block, re.MULTILINE):
            names: dict[str, Any] = {}
            run(block, names)
            tokenizer = RegexBPETokenizer()
            if "chunks" in names:
                assert tokenizer.split(names["text"]) == names["chunks"]
            else:
                assert reference.split_at_special(names["text"], tokenizer.special_tokens) == names["splits"]
                (ids,) = re.findall(r"Final: (\[.*\])", block)
                tokenizer.train("no pair", 256)
                assert tokenizer.encode(names["text"], allowed_special="all") == ast.literal_eval(ids)
            ran["a printed split"] += 1
        elif "print" not in calls or any(isinstance(node, ast.FunctionDef) for node in tree.body):
            ran["a definition, or no call"] += 1
    assert ran == {
        **{"a definition, or no call": 18, "a printed result": 2, "a printed split": 2, "a method": 14},
        **{"a sketch with arrows": 2, "an example of use": 2, "the program": 1},
    }


def test_the_worked_examples_of_000(seeds: Path) -> None:
    encodings = re.findall(
        r'^Original: (?:.*?)"(.*?)".*\n(?:Encoded: .*?)(\[.*\])$', document(seeds, "000"), re.MULTILINE
    )
    assert len(encodings) == 2
    for text, printed in encodings:
        ids = ast.literal_eval(printed)
        tokenizer = BasicBPE(259).train(text)
        ours = [
            token_id - 252 if max(ids) < 256 and token_id > 255 else token_id
            for token_id in tokenizer.encode(text)
        ]
        small = {ord(letter): number for number, letter in enumerate("abcd")} if max(ids) < 256 else {}
        assert [small.get(token_id, token_id) for token_id in ours] == ids
    signatures = re.findall(r">>> (tokenizer\..*)$", document(seeds, "000"), re.MULTILINE)
    assert len(signatures) == 1
    trained = RegexBPETokenizer().train("low", 256)
    run(signatures[0], {"tokenizer": trained})
    assert trained.special_tokens == {"<|endoftext|>": 100257}


# 002


def test_the_functions_of_the_chapters_of_002(seeds: Path) -> None:
    text = document(seeds, "002")
    chapters = text[: text.index("#!/usr/bin/env python3")]
    (first,) = re.findall(r"^```python\n(.*?)# Output: (\[.*?\])\n", chapters, re.MULTILINE | re.DOTALL)
    printed = run(first[0], {})
    assert ast.literal_eval(printed.partition(": ")[2]) == ast.literal_eval(first[1].replace("#", ""))
    names: dict[str, Any] = {}
    run(first[0], names)
    assert names["GPT2_SPLIT_PATTERN"] == words.SPLIT_PATTERN
    functions = definitions(chapters)
    ours = [name for name in functions if hasattr(words, name)]
    assert len(functions) == 17
    assert sorted(set(functions) - set(ours)) == [
        *("detect_best_backend", "run_with_llama_cpp", "run_with_mlx", "run_with_openvino")
    ]
    theirs: dict[str, Any] = {}
    run(
        "import json, os, regex\nfrom collections import *\nfrom typing import *\n"
        "from functools import lru_cache\nfrom pathlib import Path\n"
        + "\n".join(ast.unparse(functions[name]) for name in ours),
        theirs,
    )
    corpus = [document(seeds, number)[:2000] for number in ("000", "001", "004")]

    def same(name: str, *arguments: Any) -> Any:
        """What their function returns, and ours too."""
        result = theirs[name](*arguments)
        assert getattr(words, name)(*arguments) == result, name
        return result

    characters = same("build_byte_vocab")
    assert list(characters.items()) == list(words.build_byte_vocab().items())
    back = {character: byte for byte, character in characters.items()}
    special = {"<|begin_of_text|>": 900, "<|end_of_text|>": 901, "<|end_of_text|>s": 902}
    for texts, size, frequency in (
        (corpus, 300, 2),
        (["ab ab cd cd'S\n\n \u00a0! 12345"] * 2, 400, 1),
        (corpus, 270, 90),
    ):
        trained = theirs["train_bpe"](iter(texts), size, frequency, False)
        options: dict[str, Any] = {"vocab_size": size, "min_frequency": frequency, "verbose": False}
        assert words.train_bpe(corpus_iterator=iter(texts), **options) == trained
        token_to_id, merges = trained
        talk = [{"role": "user", "content": f" {texts[0]}\n"}]
        for template in ("apply_llama3_chat_template", "apply_chatml_template"):
            for prompt in (True, False):
                same(template, talk, prompt)
        text = "".join([*special, *texts]) + words.apply_llama3_chat_template(talk)
        pattern = regex.compile(words.SPLIT_PATTERN)
        ids = same("encode", text, token_to_id, merges, special, pattern, characters)
        tokens = {token_id: token for token, token_id in {**token_to_id, **special}.items()}
        for part in (ids, ids[::2], ids[1::3]):
            same("decode", part, tokens, back, {900, 901, 902})
        ranks = {pair: rank for rank, pair in enumerate(merges)}
        same("encode_pre_token", b"tokens", characters, ranks)
        encoders = (made["make_cached_encoder"](characters, ranks) for made in (vars(words), theirs))
        assert len({tuple(encoder(b"tokens")) for encoder in encoders}) == 1
        with contextlib.redirect_stdout(io.StringIO()):
            theirs["save_tokenizer"](token_to_id, merges, special, "theirs", tokenizer_name="x")
        words.save_tokenizer(token_to_id, merges, special, save_directory="ours", tokenizer_name="x")
        assert words.load_tokenizer("theirs") == theirs["load_tokenizer"]("ours") == (*trained, special)


def test_the_signatures_of_002(seeds: Path) -> None:
    text = document(seeds, "002")
    end = text.rindex("\n\n\n", 0, text.index("\nrequirements.txt\n"))
    module = ast.parse(text[text.index("#!/usr/bin/env python3") : end])
    defined = [node for node in module.body if isinstance(node, ast.ClassDef | ast.FunctionDef)]
    public = [node for node in defined if not node.name.startswith("_")]
    names = ["InferenceBackend", "detect_best_backend", "build_byte_to_char", "build_char_to_byte"]
    assert [node.name for node in public] == [*names, "ChatTemplate", "EncodingResult", "BPETokenizer"]
    assert check_signatures(public, bpe_tokenizer) == 31
    names = [ast.unparse(node.target) for node in module.body if isinstance(node, ast.AnnAssign)]
    assert len(names) == 6
    assert [name for name in names if not name.startswith("_") and not hasattr(bpe_tokenizer, name)] == []


def test_the_program_of_002(seeds: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text = document(seeds, "002")
    start = text.rindex("#!/usr/bin/env python3")
    program = text[start : re.compile(r"^[A-Z]+$", re.MULTILINE).search(text, start).start()]  # type: ignore[union-attr]
    monkeypatch.delenv("BPE_MODEL_PATH", raising=False)
    names = {"__file__": str(Path("example_usage.py").resolve()), "__name__": "__main__"}
    with pytest.warns(UserWarning, match="pad"):
        printed = run(program, names)
    assert re.findall(r"^  (\d+)\. ", printed, re.MULTILINE) == [*map(str, range(1, 15))]
    assert "ERROR" not in printed
    assert re.findall(r"(?:Match|Identical|Lossless|Same IDs) *: (\w+)", printed) == ["True"] * 8
    tokenizer = names["tokenizer"]
    assert isinstance(tokenizer, BPETokenizer)
    assert [tokenizer.vocab[token_id] for token_id in (256, 258)] == [b"<|begin_of_text|>", b"<|eot_id|>"]
    learned = [token for token_id, token in tokenizer.vocab.items() if token_id > 258]
    assert len(learned) == 512 - 259, DIFFERENT["002: special tokens over learned ids"]


def test_the_calls_of_002(seeds: Path) -> None:
    text = document(seeds, "002")
    usage = text[text.index("\nUsage\n", text.index("#!/usr/bin/env python3")) :]
    usage = usage[usage.index("  # ") : usage.index("  # Command-line")]
    blocks = [
        re.sub("^  ", "", usage, flags=re.MULTILINE),
        *fenced(text[text.index("## Quick Start") :], "python"),
    ]
    assert len(blocks) == 6
    corpus = ["Hello, world! The quick brown fox.\n"] * 40
    Path("path/to").mkdir(parents=True)
    Path("path/to/corpus.txt").write_text("".join(corpus), encoding="utf-8")
    special = ["<|begin_of_text|>", "<|start_header_id|>", "<|end_header_id|>", "<|eot_id|>"]
    trained = BPETokenizer().train(corpus, 300, special_tokens=special, verbose=False)
    trained.save("meta-llama/Meta-Llama-3-8B")  # A directory here, so nothing is downloaded.
    names: dict[str, Any] = {"BPETokenizer": BPETokenizer, "corpus_iterator": iter(corpus)}
    ran = Counter[str]()
    for block in blocks:
        for statement in ast.parse(block).body:
            source = ast.unparse(statement)
            with contextlib.ExitStack() as stack:
                if ".chat(" in source:  # The model file of the document does not exist here.
                    stack.enter_context(pytest.raises(ModelFileNotFoundError, match=r"model\.gguf"))
                elif "'pt'" in source:
                    source = source.replace("'pt'", "'np'")  # Torch is not installed for the tests.
                if "padding" in source and "[" in source:
                    stack.enter_context(pytest.warns(UserWarning, match="pad"))
                run(source, names)
            ran.update(
                node.func.attr
                for node in ast.walk(statement)
                if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute)
            )
            if isinstance(statement, ast.Assign):
                value = names[cast("ast.Name", statement.targets[0]).id] if ".chat(" not in source else None
                assert value is None or value or value == []
            if ".chat(" in source:
                names["response"] = ""
    assert ran == {
        **{"train": 2, "save": 2, "from_pretrained": 2, "from_huggingface": 2, "encode": 2, "decode": 2},
        **{"tokenize": 1, "count_tokens": 1, "chat": 2},
    }
    assert names["text"] == "Hello, world!"
    sizes = {name: array.shape[0] for name, array in names["batch"].items()}
    assert sizes == {"input_ids": 2, "attention_mask": 2}


def test_the_options_of_002(seeds: Path) -> None:
    text = document(seeds, "002")
    printed = re.findall(r'p_(\w+)\.add_argument\(\s*"(--[\w-]+)"', text)
    printed += [("encode", option) for option in re.findall(r'input\.add_argument\(\s*"(--\w+)"', text)]
    counts = {"train": 5, "encode": 4, "decode": 2, "chat": 9, "info": 2}
    assert Counter(name for name, _ in printed) == counts
    for name in {name for name, _ in printed}:
        command = cast("Any", typer.main.get_command(create_app(name))).commands[name]
        accepted = {option for parameter in command.params for option in parameter.opts}
        assert {"--" + option_name(option[2:]) for owner, option in printed if owner == name} <= accepted


def test_the_commands_of_002(seeds: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text = re.sub(r"\n\s*\n", "\n", document(seeds, "002"))
    found = re.findall(r"^ *python bpe_tokenizer\.py ((?:.*\\\n)*.*)$", text, re.MULTILINE)
    commands = [shlex.split(re.sub(r"\\+\n", " ", command)) for command in found]
    kinds = Counter(command[0] for command in commands)
    assert kinds == {"train": 3, "encode": 4, "decode": 3, "chat": 3, "info": 3}
    Path("corpus.txt").write_text("Hello, world! The quick brown fox.\n" * 40, encoding="utf-8")
    Path("document.txt").write_text("Hello, world!\n", encoding="utf-8")
    codes = Counter[tuple[str, int]]()
    for command in [command for kind in kinds for command in commands if command[0] == kind]:
        if command[0] == "train":
            command += ["--overwrite"] * Path(command[command.index("--output") + 1]).exists()
        with pytest.raises(SystemExit) as exit_:
            main(command)
        printed = capsys.readouterr()
        codes[command[0], cast("int", exit_.value.code)] += 1
        if command[0] == "decode":  # The ids are those of a model with 100,000 tokens.
            assert "id 9906" in printed.err, DIFFERENT["002: decode of unknown ids"]
        if command[0] == "chat":
            assert "model.gguf" in printed.err
    assert codes == {("train", 0): 3, ("encode", 0): 4, ("decode", 1): 3, ("chat", 1): 3, ("info", 0): 3}


def test_the_table_has_every_name(seeds: Path) -> None:
    page = (Path(__file__).parents[1] / "docs" / "differences.md").read_text(encoding="utf-8")
    table = page.partition("The examples below")[0]
    rows = re.findall(r"^\| 00[^|]*\| (.*?) \| (.*) \|$", table, re.MULTILINE)
    listed = {name for row in rows for name in re.findall(r"`([^`]*)`", row[0])}
    imports = {name for row in rows for name in re.findall(r"`(bpe_tokenizer(?:\.\w+)+)`", row[1])}
    for names, place in rows:  # "in `module`": each name is there
        if found := re.match(r"in `([\w.]+)`", place):
            imports |= {f"{found[1]}.{name}" for name in re.findall(r"`([^`]*)`", names)}
    for name in imports:
        pkgutil.resolve_name(name)
    assert len(imports) > 40
    text = document(seeds, "002")
    trees = [ast.parse(block) for block in fenced(document(seeds, "000"), "python") if is_python(block)]
    trees += [ast.parse(code) for number in ("003", "004") for code, _ in cells(document(seeds, number))]
    start = text.index("#!/usr/bin/env python3")
    trees.append(ast.parse(text[start : text.rindex("\n\n\n", 0, text.index("\nrequirements.txt\n"))]))
    defined = {
        *re.findall(r"^FUNCTION (\w+)", document(seeds, "001"), re.MULTILINE),
        *definitions(text[:start]),
    }
    for node in [node for tree in trees for node in tree.body]:
        if isinstance(node, ast.ClassDef | ast.FunctionDef):
            defined.add(node.name)
        if isinstance(node, ast.Assign | ast.AnnAssign):
            target = node.targets[0] if isinstance(node, ast.Assign) else node.target
            defined.update(re.findall("^[A-Z0-9_]+$", ast.unparse(target)))
    methods = {*dir(NaiveBPETokenizer), "__init__", "_ENCODE_CACHE_MAX_SIZE"}
    programs = {"main", "tiktoken_encode_decode"}  # The program's own.
    assert defined - listed - methods - programs == set()


def test_every_deviation_is_explained() -> None:
    page = (Path(__file__).parents[1] / "docs" / "differences.md").read_text(encoding="utf-8")
    headings = {line.removeprefix("## ") for line in page.splitlines() if line.startswith("## ")}
    assert {*DIFFERENT.values()} <= headings
