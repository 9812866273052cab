"""Mixtures: epochs, ids and weights of sources, their counts, and resuming."""

from __future__ import annotations

import json
import re
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from bpe_tokenizer import BPETokenizer, TokenizerError
from bpe_tokenizer.corpus import TokenizedCorpus, merge_manifests
from command_line import in_process
from line_documents import tokenize_corpus
from small_batches import patch_batches
from token_files import contents, flat

WEB = [f"web page {number}" for number in range(40)]
CODE = [f"code line {number} of many" for number in range(30)]


@pytest.fixture
def sources(tmp_path: Path) -> Path:
    """A directory with files of two sources."""
    (tmp_path / "in").mkdir()
    for name, texts in (("web-1", WEB[:25]), ("web-2", WEB[25:]), ("code", CODE)):
        (tmp_path / "in" / f"{name}.txt").write_text("\n".join(texts), encoding="utf-8")
    return tmp_path / "in"


def mixture(sources: Path, web: dict[str, Any], code: dict[str, Any]) -> dict[str, Any]:
    return {
        "web": {"inputs": [sources / "web-1.txt", sources / "web-2.txt"], **web},
        "code": {"inputs": str(sources / "code.txt"), **code},
    }


def written(made: TokenizedCorpus, tokenizer: BPETokenizer) -> list[str]:
    ids = np.concatenate([np.load(path) for path in made.files])
    ends = np.flatnonzero(ids == tokenizer.eos_token_id)
    return [tokenizer.decode(each.tolist()).replace("<|eos|>", "") for each in np.split(ids, ends + 1)[:-1]]


def first(texts: list[str], tokens: int, tokenizer: BPETokenizer) -> list[str]:
    """The documents that have at most this number of ids."""
    taken: list[str] = []
    for text in texts:
        tokens -= len(tokenizer.encode(text)) + 1
        if tokens < 0:
            break
        taken.append(text)
    return taken


CASES: dict[str, tuple[dict[str, Any], dict[str, Any], dict[str, Any]]] = {
    "epochs": ({}, {"epochs": 2}, {}),
    "tokens": ({"tokens": 100}, {"tokens": 400, "epochs": 3}, {}),
    "one budget": ({"tokens": 60}, {}, {}),
    "weights": ({"weight": 1}, {"weight": 0.5}, {"max_tokens": 210}),
}


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("shuffle", [None, 5])
def test_what_a_mixture_takes(
    name: str, shuffle: int | None, sources: Path, tmp_path: Path, tokenizer: BPETokenizer,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    web, code, more = CASES[name]
    options: dict[str, Any] = {"format": "npy", "shard_tokens": 50, "shuffle": shuffle, **more}
    inputs = mixture(sources, web, code)
    made = tokenize_corpus(inputs, tmp_path / "out", tokenizer, **options)
    expected = {
        "epochs": [WEB, CODE * 2],
        "tokens": [first(WEB, 100, tokenizer), first(CODE * 3, 400, tokenizer)],
        "one budget": [first(WEB, 60, tokenizer), CODE],
        "weights": [first(WEB, 140, tokenizer), first(CODE, 70, tokenizer)],
    }[name]
    found = written(made, tokenizer)
    assert (found == flat(expected)) == (shuffle is None)
    assert Counter(found) == Counter(flat(expected))
    counts = {
        source: {
            "documents": len(texts),
            "tokens": sum(len(tokenizer.encode(text)) + 1 for text in texts),
        }
        for source, texts in zip(("web", "code"), expected, strict=True)
    }
    assert json.loads((tmp_path / "out" / "manifest.json").read_bytes())["sources"] == counts
    # Resumed from every shard, and from batches of any size.
    files = contents(tmp_path / "out")
    for kept in range(len(made.files)):
        patch_batches(1 + kept % 3, monkeypatch)
        made.files[kept].unlink()
        again = tokenize_corpus(inputs, tmp_path / "out", tokenizer, **options)
        assert again == made._replace(kept=kept)
        assert contents(tmp_path / "out") == files


def test_a_part_of_an_epoch_is_the_same_sample(
    sources: Path, tmp_path: Path, tokenizer: BPETokenizer
) -> None:
    found: list[Counter[str]] = []
    for epochs in (0.5, 1.5, 2.5):
        inputs = mixture(sources, {"epochs": epochs}, {})
        made = tokenize_corpus(inputs, tmp_path / str(epochs), tokenizer, "npy", shuffle=1)
        found.append(Counter(written(made, tokenizer)) - Counter(CODE))
    assert 5 < found[0].total() < 35
    assert found[1] == found[0] + Counter(WEB)
    assert found[2] == found[0] + Counter(WEB * 2)


def test_epochs_in_parts(sources: Path, tmp_path: Path, tokenizer: BPETokenizer) -> None:
    inputs = mixture(sources, {"epochs": 1.5}, {})
    whole = tokenize_corpus(inputs, tmp_path / "whole", tokenizer, "npy")
    for part in range(2):
        tokenize_corpus(inputs, tmp_path / "out", tokenizer, "npy", part=part, of=2, unit_bytes=300)
    made = merge_manifests(tmp_path / "out")
    assert written(made, tokenizer) == written(whole, tokenizer)
    manifests = [json.loads((tmp_path / name / "manifest.json").read_bytes()) for name in ("whole", "out")]
    assert manifests[0]["sources"] == manifests[1]["sources"]


def test_another_mixture_is_another_run(sources: Path, tmp_path: Path, tokenizer: BPETokenizer) -> None:
    tokenize_corpus(mixture(sources, {}, {"tokens": 100}), tmp_path / "out", tokenizer)
    with pytest.raises(TokenizerError, match="it differs in: sources"):
        tokenize_corpus(mixture(sources, {}, {"tokens": 101}), tmp_path / "out", tokenizer)


def test_a_mixture_in_a_file(
    sources: Path,
    tmp_path: Path,
    tokenizer: BPETokenizer,
    capfdbinary: pytest.CaptureFixture[bytes],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    run = in_process(capfdbinary, monkeypatch)
    monkeypatch.chdir(sources)
    tokenizer.save(tmp_path / "tokenizer")
    Path("mix.toml").write_text(
        '[web]\ninputs = ["web-1.txt", "web-2.txt"]\nepochs = 2\n[code]\ninputs = "code.txt"\ntokens = 50\n'
    )
    words = ["tokenize-corpus", "--tokenizer", tmp_path / "tokenizer", "--output", tmp_path / "out"]
    rest = ["--documents", "line", "--format", "npy", "--shuffle", "1"]
    done = run(*words, "--mixture", "mix.toml", *rest)
    assert done.code == 0
    assert re.search(rb"\n  'web': \d+ documents, \d+ tokens\n  'code': \d+ documents, \d+ tokens", done.out)
    inputs = mixture(sources, {"epochs": 2}, {"tokens": 50})
    tokenize_corpus(inputs, tmp_path / "python", tokenizer, "npy", shuffle=1)
    assert contents(tmp_path / "out") == contents(tmp_path / "python")
    for more, said in (
        ([], "give either --corpus or --mixture"),
        (["--mixture", "mix.toml", "--corpus", "code.txt"], "give either --corpus or --mixture"),
        (["--mixture", "code.txt"], "--mixture code.txt: "),
        (["--mixture", "none.toml"], "--mixture none.toml: "),
    ):
        result = run(*words, *more, *rest)
        assert result.code != 0
        assert said in " ".join(result.err.split())
        assert "Traceback" not in result.err


@pytest.mark.parametrize(
    ("web", "options", "message"),
    [
        ({"epoch": 2}, {}, "'web' of the mixture has inputs, epoch: it takes"),
        ({"epochs": 0}, {}, "epochs of 'web' of the mixture is 0; it must be larger than 0"),
        ({"epochs": "2"}, {}, "epochs of 'web' of the mixture must be a number, not str"),
        ({"tokens": 5, "weight": 1}, {}, "'web' of the mixture has inputs, tokens, weight"),
        ({"weight": 1}, {}, "the weights of a mixture divide max_tokens"),
        ({}, {"max_tokens": 10}, "the weights of a mixture divide max_tokens"),
        ({}, {"limit": 10}, "limit would take the first source"),
        ({"tokens": 5}, {"part": 0, "of": 2}, "a part does not know"),
        ({"inputs": "-"}, {}, "'web' of the mixture is standard input"),
    ],
)
def test_refused(
    web: dict[str, Any],
    options: dict[str, Any],
    message: str,
    sources: Path,
    tmp_path: Path,
    tokenizer: BPETokenizer,
) -> None:
    with pytest.raises(TokenizerError, match=message):
        tokenize_corpus(mixture(sources, web, {}), tmp_path / "out", tokenizer, **options)
