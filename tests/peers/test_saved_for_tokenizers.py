"""Files that this package saves, opened with `tokenizers`."""

from __future__ import annotations

import json
import os
import subprocess
import unicodedata
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from bpe_tokenizer import BPETokenizer
from hostile import hostile_texts, special_token_texts
from small_tokenizers import with_post_processor, without_surrogates

if TYPE_CHECKING:
    from tokenizers import Tokenizer
from peers.hf_compare import assert_same, assert_same_ids, theirs_of

pytestmark = pytest.mark.peer


def is_normalized(form: Any, text: str) -> bool:
    return unicodedata.is_normalized(form, without_surrogates(text))


def assert_spans_hold(theirs: Tokenizer, ours: BPETokenizer, texts: Iterable[str]) -> None:
    """Where normalisation makes one character of several, the library's span is that of the first alone;
    ours covers all of them, for the token has bytes of all."""
    for text in filter(lambda text: len(text) == len(without_surrogates(text)), texts):
        expected = theirs.encode(without_surrogates(text), add_special_tokens=False).offsets
        _, spans = ours.encode_with_offsets(text, allowed_special="all", tile=False)
        for (start, end), (first, last) in zip(spans, expected, strict=True):
            assert start <= first <= last <= end, repr(text)


# -- our files ------------------------------------------------------------------------------------------


TRAINED: dict[str, dict[str, Any]] = {
    "default": {},
    "gpt2": {"split_pattern": "gpt2", "normalization": None},
    "r50k": {"split_pattern": "r50k", "normalization": None, "special_tokens": ["<|endoftext|>"]},
    "o200k": {"split_pattern": "o200k", "special_tokens": {"<|x|>": 100257}},
    "llama3": {"split_pattern": "llama3", "normalization": "NFD", "special_tokens": ["<s>", "</s>", "<pad>"]},
    "qwen2": {"split_pattern": "qwen2", "normalization": "NFKC", "special_tokens": {"<a>": 300, "<b>": 459}},
    "tekken": {"split_pattern": "tekken", "normalization": "NFKD"},
    "starcoder": {"split_pattern": "starcoder", "special_tokens": {"<eos>": 460, "<bos>": 461}},
    "deepseek-v3": {
        "split_pattern": "deepseek-v3",
        "normalization": None,
        "special_tokens": {
            "<｜begin▁of▁sentence｜>": 460,
            "«café»": 256,
            "écrit": 400,
            "日本": 100_000,
            " ": 70_000,
        },
    },
    "deepseek-llm": {"split_pattern": "deepseek-llm", "special_tokens": {"<a>": 460, "<b>": 462}},
    "words": {"split_pattern": r"\\w+|\\s|[^\\w\\s]+$|'", "special_tokens": {"<eos>": 459}},
    "lines": {"split_pattern": r"[^\\n]*\\n|.+", "special_tokens": {"far": 1_000_000}},
}


def trained(options: dict[str, Any], texts: Sequence[str]) -> BPETokenizer:
    init = {name: options[name] for name in ("split_pattern", "normalization") if name in options}
    made = BPETokenizer(**init).train(
        texts, vocab_size=460, special_tokens=options.get("special_tokens"), verbose=False
    )
    return with_post_processor(made)


@pytest.mark.sampled(0.16)
@pytest.mark.parametrize("options", TRAINED.values(), ids=TRAINED)
def test_what_we_save_means_the_same_to_the_library(
    options: dict[str, Any], stdlib_texts: list[str], mixed_text: str, tmp_path: Path
) -> None:
    ours = trained(options, [*stdlib_texts[:2], mixed_text])
    ours.save(tmp_path)
    theirs = theirs_of(tmp_path)
    again = BPETokenizer.from_pretrained(tmp_path)
    names = list(ours.special_tokens)
    assert again.special_tokens == ours.special_tokens
    assert {name: theirs.token_to_id(name) for name in names} == ours.special_tokens
    assert (again.vocab_size, again.vocab, again.merges) == (ours.vocab_size, ours.vocab, ours.merges)
    texts = [*hostile_texts(300), *special_token_texts(names)]
    form = ours.normalization
    unchanged = [text for text in texts if form is None or is_normalized(form, text)]
    assert_same(theirs, ours, [stdlib_texts[3][:5000], *unchanged])
    if form is not None:
        assert_same_ids(theirs, ours, [mixed_text, stdlib_texts[3], *texts])
        assert_spans_hold(theirs, ours, [mixed_text, *texts])
    assert [again.encode(text, allowed_special="all") for text in texts] == [
        ours.encode(text, allowed_special="all") for text in texts
    ]


def test_special_tokens_of_every_layout_keep_their_ids(tmp_path: Path) -> None:
    base = BPETokenizer(split_pattern="gpt2").train("ab ab abab", vocab_size=260, verbose=False)
    size = base.vocab_size
    for layout in (
        [size],
        [size, size + 1, size + 2],
        [size + 1],
        [size + 2, size, size + 1],
        [size, size + 2],
        [100_257, size],
        [100_257, size, size + 1, 200_000],
    ):
        ours = BPETokenizer.from_vocab(base.vocab, base.merges, split_pattern="gpt2")
        ours.add_special_tokens({f"<{index}>": token_id for index, token_id in enumerate(layout)})
        ours.save(tmp_path)
        theirs = theirs_of(tmp_path)
        text = "ab".join(ours.special_tokens)
        assert theirs.encode(text, add_special_tokens=False).ids == ours.encode(text, allowed_special="all")
        again = BPETokenizer.from_pretrained(tmp_path)
        assert again.special_tokens == ours.special_tokens
        assert again.vocab_size == size
        theirs.save(str(tmp_path / "tokenizer.json"))  # and after the library has written it
        rewritten = BPETokenizer.from_pretrained(tmp_path)
        assert (rewritten.special_tokens, rewritten.vocab_size) == (ours.special_tokens, size)


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
