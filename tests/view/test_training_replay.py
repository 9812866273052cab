"""The replay of a training in the page against the trainer of the package."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pytest

from bpe_tokenizer import BPETokenizer, count
from bpe_tokenizer.formats.huggingface.components import write_pattern
from bpe_tokenizer.patterns import NAMED_PATTERNS
from node_scripts import needs_node, page_modules, run_node
from sampling import sample_size

pytestmark = needs_node

ALPHABETS = ("ab", "ab ", "abc\n ", "aé€😀 ", "the cat sat 12")


@pytest.fixture(scope="module")
def modules(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a directory with the page's modules that node loads as ES modules."""
    names = ("training_replay.js", "training_patterns.js", "tokenizer_json.js")
    return page_modules(tmp_path_factory.mktemp("page"), *names)


def training(text: str, vocab_size: int, pattern: str) -> dict[str, Any]:
    """Return the pieces and merges of a training of the package."""
    tokenizer = BPETokenizer(pattern, None).train(text, vocab_size, verbose=False)
    ids = {token: token_id for token_id, token in tokenizer.vocab.items()}
    merges = [(ids[left], ids[right], ids[left + right]) for left, right in tokenizer.merges]
    pieces = sorted(count(text, pattern, normalization=None).items(), key=lambda entry: (-entry[1], entry[0]))
    return {
        "pieces": [(piece.hex(), times) for piece, times in pieces],
        "merges": merges,
        "wanted": vocab_size - 256,
    }


@pytest.mark.sampled(1.0)
def test_the_best_pair_of_the_table_is_the_merge_of_the_trainer(modules: Path) -> None:
    random_ = random.Random(19)
    trainings = []
    for number in range(sample_size(300, 0.25)):
        alphabet = random_.choice(ALPHABETS)
        text = "".join(random_.choices(alphabet, k=random_.randint(1, 400)))
        pattern = random_.choice(("gpt2", "cl100k", "o200k", r" ?\S+|\s+", r"[\s\S]+"))
        trainings.append(training(text, random_.choice((258, 270, 300, 400)), pattern))
        if number == 0:
            assert trainings[0]["merges"]
    data = {"module": str(modules / "training_replay.js"), "trainings": trainings}
    result = run_node(Path(__file__).with_name("replay_check.mjs"), data)
    assert result["trainings"] == len(trainings)
    assert result["states"] > 10 * len(trainings)


@pytest.mark.parametrize("text", ["a", "aaaaaaa", "aaaaaaaaaaaaaaaa" * 9, "\0\n\r\0\n\r", "é" * 7 + "😀" * 5])
def test_edge_cases(modules: Path, text: str) -> None:
    data = {
        "module": str(modules / "training_replay.js"),
        "trainings": [training(text, 300, pattern) for pattern in ("gpt2", r"[\s\S]+")],
    }
    assert run_node(Path(__file__).with_name("replay_check.mjs"), data)["trainings"] == 2


TEXT = (
    "I'll say it's 12345 times; The CamelCase HTMLParser can't. \u0130\u0049 we\u0301 \u00e9t\u00e9 "
    "\u0ca8\u0cae\u0cc1 \u0645\u0631\u062d\u0628\u0627\r\n\r\n  x  \t\n\U0001f600\U0001f600 "
    "\0\x7f\u00a0\u00ad end   "
) * 3


def test_patterns_and_files_are_those_of_the_package(modules: Path, tmp_path: Path) -> None:
    module = str(modules / "tokenizer_json.js")
    script = Path(__file__).with_name("tokenizer_json_check.mjs")
    published = [{"name": name, "patterns": each.patterns} for name, each in NAMED_PATTERNS.items()]
    data: dict[str, Any] = {"module": module, "published": published, "trainings": []}
    patterns = {each["name"]: each for each in run_node(script, data)["patterns"]}
    assert list(patterns) == ["gpt2", "cl100k", "o200k", "words", "none"]
    for each in patterns.values():
        assert each["oniguruma"] == write_pattern(each["pattern"], "test")["Regex"]

    trained = []
    for name, each in patterns.items():
        for normalization in (None, "NFC"):
            tokenizer = BPETokenizer(each["pattern"], normalization)
            trained.append((name, normalization, tokenizer.train(TEXT, 400, verbose=False)))
    trainings = []
    for name, normalization, tokenizer in trained:
        ids = {token: token_id for token_id, token in tokenizer.vocab.items()}
        merges = [(ids[left], ids[right], ids[left + right]) for left, right in tokenizer.merges]
        trainings.append({"pattern": name, "normalization": normalization, "merges": merges})
    files = run_node(script, data | {"trainings": trainings})["files"]
    other = TEXT.swapcase()[::-1] + "\u1fee <|endoftext|> \ud55c\uad6d\uc5b4"
    for (name, normalization, tokenizer), file in zip(trained, files, strict=True):
        path = tmp_path / f"{name}-{normalization}.json"
        path.write_text(file, encoding="utf-8")
        loaded = BPETokenizer.load(path)
        assert loaded.vocab == tokenizer.vocab
        assert loaded.merges == tokenizer.merges
        assert loaded.normalization == normalization
        for text in (TEXT, other, ""):
            assert loaded.encode(text) == tokenizer.encode(text)
