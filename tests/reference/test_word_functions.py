"""The functions on words of the tutorials: errors and files. The source documents run the rest."""

import json
from pathlib import Path

import pytest

from bpe_tokenizer.reference import TokenizerError, words


def test_ids_and_tokens_that_are_refused() -> None:
    with pytest.raises(TokenizerError, match="id -1 is not in the vocabulary of 1 tokens"):
        words.decode([-1], ["a"], {}, set())
    with pytest.raises(TokenizerError, match="id 0: '▁' has characters that stand for no byte"):
        words.decode([0], ["▁"], {}, set())
    with pytest.raises(ValueError, match="vocab_size=256 must be greater than 256"):
        words.train_bpe(["low"], 256)


def test_files(tmp_path: Path) -> None:
    token_to_id, merges = words.train_bpe(iter(["low low", "low lower"]), 260)
    special = {"<|begin_of_text|>": 259, "<|pad|>": 260}
    words.save_tokenizer(token_to_id, merges, special, tmp_path / "new" / "demo", tokenizer_name="demo")
    assert words.load_tokenizer(tmp_path / "new" / "demo") == (token_to_id, merges, special)
    config = json.loads((tmp_path / "new" / "demo" / "tokenizer_config.json").read_text(encoding="utf-8"))
    assert (config["tokenizer_name"], config["num_merges"], config["vocab_size"]) == ("demo", 3, 259)
    roles = [config[f"{role}_token"] for role in ("bos", "eos", "pad")]
    assert roles == ["<|begin_of_text|>", None, "<|pad|>"]
    with pytest.raises(FileNotFoundError):
        words.load_tokenizer(tmp_path)
    hub = {"model": {"vocab": {"a": 0, "b": 1, "ab": 2}, "merges": [["a", "b"]]}}
    (tmp_path / "tokenizer.json").write_text(json.dumps(hub), encoding="utf-8")
    assert words.load_tokenizer(tmp_path)[1:] == ([("a", "b")], {})


@pytest.mark.parametrize(
    "broken",
    [
        "{}",
        '{"model": {"vocab": {"a": "x"}, "merges": []}}',
        '{"model": {"vocab": {}, "merges": ["a"]}}',
        '{"model": {"vocab": {}, "merges": []}, "special_tokens": {"a": 5}}',
        "[]",
        "{",
    ],
)
def test_broken_files(broken: str, tmp_path: Path) -> None:
    (tmp_path / "tokenizer.json").write_text(broken, encoding="utf-8")
    with pytest.raises(TokenizerError, match=r"tokenizer\.json: "):
        words.load_tokenizer(tmp_path)
