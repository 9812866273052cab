"""The notebooks of the source documents, cell by cell: see test_documents_programs.py."""

from __future__ import annotations

import ast
import re
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from bpe_tokenizer import reference
from bpe_tokenizer.reference import BasicBPE, BPETokenizerSimple, RegexBPE
from seed_documents import DIFFERENT, cells, check_signatures, document, run, seed_directory

pytestmark = pytest.mark.fixtures


@pytest.fixture
def seeds(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    return seed_directory(tmp_path, monkeypatch)


class Shifted:
    """The loop of 003 wastes the id 256 and makes a merge more: `DIFFERENT["003: ids from 257"]`."""

    def __init__(self, kind: type[BasicBPE], vocab_size: int) -> None:
        self.kind, self.ours = kind, kind(vocab_size + 1)

    def train(self, text: str) -> None:
        self.ours.train(text)

    def encode(self, text: str) -> list[int]:
        return [token_id + (token_id > 255) for token_id in self.ours.encode(text)]

    def decode(self, ids: list[int]) -> str:
        return self.ours.decode(token_id - (token_id > 256) for token_id in ids)

    @property
    def vocab(self) -> dict[int, bytes]:
        return {token_id + (token_id > 255): token for token_id, token in self.ours.vocab.items()}


def test_the_cells_of_003(seeds: Path) -> None:
    found = cells(document(seeds, "003"))
    assert len(found) == 9
    names: dict[str, Any] = {
        "BasicBPE": lambda vocab_size: Shifted(BasicBPE, vocab_size),
        "RegexBPE": lambda vocab_size: Shifted(RegexBPE, vocab_size),
    }
    ran = Counter[str]()
    for number, (code, output) in enumerate(found):
        tree = ast.parse(code)
        if number == 4:  # Its output is that of an earlier run.
            names["bpe"] = Shifted(BasicBPE, 300)
            names["bpe"].train(names["text"])
        defined = [node for node in tree.body if isinstance(node, ast.ClassDef | ast.FunctionDef)]
        if defined:
            ran["definitions"] += 1
            check_signatures(defined, reference)
        elif not code:
            ran["a download"] += 1
        elif re.fullmatch(r"\w+(\.\w+)+", code):
            shown = ast.literal_eval(run(code, names, shows_last=True))
            lines = output.lstrip("{").splitlines()[:-1]
            printed = ast.literal_eval("{" + ",".join(line.rstrip(",") for line in lines) + "}")
            assert {token_id: shown[token_id] for token_id in printed} == printed
            assert len(printed) == 83
            ran["a vocabulary"] += 1
        else:
            assert output.split("\n\n")[0] == run(code, names, shows_last=True).rstrip()
            ran["an output"] += 1
    assert ran == {"definitions": 2, "a download": 1, "a vocabulary": 2, "an output": 4}
    assert RegexBPE(300).regex_pattern == reference.GPT4_SPLIT_PATTERN
    stats = reference.compute_pair_of_tokens_stats([1, 2, 1, 2], tokens_stats={})
    assert reference.merge_pair([1, 2, 1, 2], pair=max(stats, key=stats.__getitem__), idx=9) == [9, 9]


def test_the_cells_of_004(seeds: Path) -> None:
    found = cells(document(seeds, "004"))
    assert len(found) == 17
    tokenizer = BPETokenizerSimple()
    names: dict[str, Any] = {
        "find_freq_pair": tokenizer.find_freq_pair,
        "replace_pair": tokenizer.replace_pair,
        "token_ids": [1, 2, 3, 2, 3, 4, 5],  # Of a cell that the document does not show; its output does.
        "encode": tokenizer.encode,
        "Counter": Counter,
    }
    run("from collections import deque", names)
    ran = Counter[str]()
    for code, output in found:
        defined = [node for node in ast.parse(code).body if isinstance(node, ast.ClassDef | ast.FunctionDef)]
        if defined:
            is_class = isinstance(defined[0], ast.ClassDef)
            check_signatures(defined, reference if is_class else BPETokenizerSimple)
            ran["definitions"] += 1
            continue
        if "encode(input_text" in code:
            tokenizer.train(names["input_text"] + "the cat in the hat", vocab_size=300)
            *_, end, space = eval(code, names)
            assert (tokenizer.vocab[end], tokenizer.decode([space])) == ("<|endoftext|>", " ")
            assert output.startswith("TypeError"), DIFFERENT["004: unfinished encode"]
            ran["an unfinished call"] += 1
            continue
        printed = run(code, names, shows_last=True).strip()
        expected = output.split("\n\n")[0] if printed.count("\n") < 10 else printed.partition("\n159: ")[0]
        if printed.count("\n") >= 10:
            assert output.startswith(expected.rpartition("\n")[0])
            ran["an output, shortened"] += 1
        elif expected.startswith("Counter"):  # In another order.
            assert eval(expected, names) == eval(printed, names)
            ran["an output"] += 1
        elif not printed:
            assert not output or output.startswith("-"), code
            ran["no output"] += 1
        else:
            # Without the print of its function.
            assert printed.splitlines() == [line for line in expected.splitlines() if "replacing" not in line]
            ran["an output"] += 1
    shortened = {"an output, shortened": 1, "an unfinished call": 1}
    assert ran == {"an output": 8, "definitions": 5, "no output": 2, **shortened}
    # The ids that its class gives: 256 characters, "Ġ", the special token, and the merges of its example.
    tokenizer = BPETokenizerSimple()
    (text,) = {*re.findall(r"`(the cat[^`]*)`", document(seeds, "004"))}
    tokenizer.train(text=text, vocab_size=261, allowed_special={"<|endoftext|>"})
    learned = ["Ġ", "<|endoftext|>", "th", "the", "theĠ"]
    assert [tokenizer.vocab[token_id] for token_id in range(256, 261)] == learned
    characters = [*map(ord, "cat"), 256, *map(ord, "in"), 256]
    assert tokenizer.encode(text) == [260, *characters, 260, *map(ord, "hat")]
