"""Files that this package saves, opened with `tokenizers`."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from bpe_tokenizer import BPETokenizer
from hostile import hostile_texts, special_token_texts
from small_tokenizers import with_post_processor, without_surrogates

if TYPE_CHECKING:
    pass
from peers.hf_compare import assert_same, opened

pytestmark = pytest.mark.peer


# -- our files ------------------------------------------------------------------------------------------


FAR = {"«café»": 256, "écrit": 400, "日本": 100_000, " ": 70_000, "<｜begin▁of▁sentence｜>": 460}
TRAINED: dict[str, tuple[str, Any, Any]] = {  # the pattern, the normalisation and the special tokens
    "default": ("cl100k", "NFC", None),
    "gpt2": ("gpt2", None, None),
    "r50k": ("r50k", None, ["<|endoftext|>"]),
    "o200k": ("o200k", "NFC", {"<|x|>": 100257}),
    "llama3": ("llama3", "NFD", ["<s>", "</s>", "<pad>"]),
    "qwen2": ("qwen2", "NFKC", {"<a>": 300, "<b>": 459}),
    "tekken": ("tekken", "NFKD", None),
    "starcoder": ("starcoder", "NFC", {"<eos>": 460, "<bos>": 461}),
    "deepseek-v3": ("deepseek-v3", None, FAR),
    "deepseek-llm": ("deepseek-llm", "NFC", {"<a>": 460, "<b>": 462}),
    "words": (r"\\w+|\\s|[^\\w\\s]+$|'", "NFC", {"<eos>": 459}),
    "lines": (r"[^\\n]*\\n|.+", "NFC", {"far": 1_000_000}),
}


def trained(options: tuple[str, Any, Any], texts: Sequence[str]) -> BPETokenizer:
    pattern, normalization, special = options
    tokenizer = BPETokenizer(split_pattern=pattern, normalization=normalization)
    return with_post_processor(tokenizer.train(texts, 460, special_tokens=special, verbose=False))


@pytest.mark.sampled(0.16)
@pytest.mark.parametrize("options", TRAINED.values(), ids=TRAINED)
def test_what_we_save_means_the_same_to_the_library(
    options: tuple[str, Any, Any], stdlib_texts: list[str], mixed_text: str, tmp_path: Path
) -> None:
    ours = trained(options, [*stdlib_texts[:2], mixed_text])
    ours.save(tmp_path)
    pair = opened(tmp_path)
    _, theirs, again = pair
    names = list(ours.special_tokens)
    assert again.special_tokens == ours.special_tokens
    assert {name: theirs.token_to_id(name) for name in names} == ours.special_tokens
    assert (again.vocab_size, again.vocab, again.merges) == (ours.vocab_size, ours.vocab, ours.merges)
    texts = [mixed_text, stdlib_texts[3][:5000], *hostile_texts(300), *special_token_texts(names)]
    for add_special_tokens in (False, True):
        assert_same(pair, list(map(without_surrogates, texts)), add_special_tokens)
    assert [again.encode(text, allowed_special="all") for text in texts] == [
        ours.encode(text, allowed_special="all") for text in texts
    ]


# -- the release candidates of version 1 ----------------------------------------------------------------


READ_WITH_VERSION_1 = """
import json, sys
from tokenizers import Tokenizer
task = json.load(sys.stdin)
results = {}
for name, path in task["files"].items():
    try:
        tokenizer = Tokenizer.from_file(path)
        rows = [list(tokenizer.encode(text).ids) for text in task["texts"]]
    except ValueError as error:
        results[name] = str(error)
        continue
    results[name] = [rows, [tokenizer.decode(row, skip_special_tokens=False) for row in rows]]
json.dump(results, sys.stdout)
"""


def test_version_1_reads_our_files(stdlib_texts: list[str], mixed_text: str, tmp_path: Path) -> None:
    """It has no regular expressions: it knows some published patterns by their text and refuses the rest."""
    python = os.environ.get("BPE_TOKENIZER_TOKENIZERS1")
    if not python:
        pytest.skip("BPE_TOKENIZER_TOKENIZERS1 names no python that has tokenizers 1.0")
    ours = {name: trained(options, [*stdlib_texts[:2], mixed_text]) for name, options in TRAINED.items()}
    for name, tokenizer in ours.items():
        tokenizer.save(tmp_path / name)
    texts = [mixed_text, stdlib_texts[3][:20_000], *map(without_surrogates, hostile_texts(300))]
    files = {name: str(tmp_path / name / "tokenizer.json") for name in ours}
    task = json.dumps({"files": files, "texts": texts})
    run = subprocess.run([python, "-c", READ_WITH_VERSION_1], input=task, capture_output=True, text=True)
    assert run.returncode == 0, run.stderr
    results = json.loads(run.stdout)
    refused = {name for name, result in results.items() if isinstance(result, str)}
    assert refused == {"starcoder", "deepseek-v3", "deepseek-llm", "words", "lines"}
    assert all("system-regex backend" in results[name] for name in refused)
    for name in ours.keys() - refused:
        rows, decoded = results[name]
        expected = [ours[name].encode(text, add_special_tokens=True, allowed_special="all") for text in texts]
        assert rows == expected, name
        assert decoded == [ours[name].decode(row) for row in rows], name
