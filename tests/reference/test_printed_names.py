"""The names, calls and results that the tutorials about BPE print, for a reader who types them."""

import inspect
import json
from pathlib import Path
from typing import Any

import pytest
import regex

from bpe_tokenizer.reference import (
    GPT4_SPLIT_PATTERN,
    BPETokenizerSimple,
    CharBPETokenizer,
    NaiveBPETokenizer,
    RegexBPE,
    RegexBPETokenizer,
    TokenizerError,
    compute_pair_of_tokens_stats,
    merge_pair,
    words,
)


def parameters(function: Any) -> list[str]:
    """Return the parameters of a function as they are written in a call, without `self`."""
    return [
        parameter.name if parameter.default is parameter.empty else f"{parameter.name}={parameter.default!r}"
        for parameter in inspect.signature(function).parameters.values()
        if parameter.name != "self"
    ]


def test_the_classes_on_bytes(tmp_path: Path) -> None:
    for kind in (NaiveBPETokenizer, RegexBPETokenizer):
        tokenizer = kind()
        assert parameters(kind.train) == ["text", "vocab_size", "special_tokens=None", "verbose=False"]
        assert tokenizer.train("low<|x|>", 300, special_tokens={"<|x|>": 300}) is tokenizer
        assert tokenizer.encode("low<|x|>", allowed_special="all") == [257, 300]
        with pytest.raises(TokenizerError, match="cannot have id 65"):
            tokenizer.train("low", 300, special_tokens={"<|y|>": 65})
        assert tokenizer.special_tokens == {"<|x|>": 300}
        tokenizer.train("low lower lowest", 259, special_tokens={}, verbose=False)
        assert tokenizer.merges[108, 111] == 256
        assert tokenizer.vocab[257] == b"low"
        tokenizer.register_special_tokens({"<|end|>": 400})
        assert (tokenizer.special_tokens, tokenizer.inverse_special_tokens) == (
            {"<|end|>": 400},
            {400: "<|end|>"},
        )
        tokenizer.register_special_tokens()
        assert tokenizer.special_tokens == {"<|endoftext|>": 100257}
        tokenizer.register_special_tokens(special_tokens=None)
        tokenizer.save(tmp_path / "a.json")
        loaded = kind()
        loaded.load(tmp_path / "a.json")
        assert loaded.decode(loaded.encode("slower")) == "slower"
        loaded.save_readable(tmp_path / "a.txt")
        with pytest.raises(TokenizerError):
            kind().encode("low")
    assert RegexBPETokenizer().special_tokens == {"<|endoftext|>": 100257}
    assert RegexBPETokenizer(pattern=None).pattern == RegexBPETokenizer.GPT4_SPLIT_PATTERN
    assert RegexBPETokenizer.GPT2_SPLIT_PATTERN.startswith("'(?:[sdmt]")
    assert issubclass(TokenizerError, ValueError)


def test_the_functions_on_ids() -> None:
    assert merge_pair([5, 6, 6, 7, 8, 9, 9, 10], (6, 7), 100) == [5, 6, 100, 8, 9, 9, 10]
    assert compute_pair_of_tokens_stats([1, 2, 1, 2, 3]) == {(1, 2): 2, (2, 1): 1, (2, 3): 1}
    stats = {(1, 2): 5}
    assert compute_pair_of_tokens_stats([1, 2], stats) is stats
    assert stats == {(1, 2): 6}
    assert compute_pair_of_tokens_stats(tokens=[1, 2], tokens_stats=None) == {(1, 2): 1}
    assert merge_pair(tokens=[1, 2, 3], pair=(1, 2), idx=9) == [9, 3]


def test_the_pattern_of_the_thin_form() -> None:
    assert RegexBPE(300).regex_pattern == GPT4_SPLIT_PATTERN
    tokenizer = RegexBPE(300)
    tokenizer.regex_pattern = "[a-z]+"
    assert tokenizer.train("ab,ab,ab").encode("ab,ab") == [256, ord(","), 256]


def test_the_tokenizer_of_characters(tmp_path: Path) -> None:
    assert BPETokenizerSimple is CharBPETokenizer
    assert parameters(BPETokenizerSimple.train)[:3] == [
        "text",
        "vocab_size",
        "allowed_special=frozenset({'<|endoftext|>'})",
    ]
    assert parameters(BPETokenizerSimple.encode) == ["text", "allowed_special='none'"]
    tokenizer = BPETokenizerSimple()
    tokenizer.train("the cat in the hat", vocab_size=300, allowed_special={"<|endoftext|>"})
    # The document: "Ġ" is the first id after those of 256 characters, special tokens follow, and merges cross
    # words: "th", "the", "the ".
    assert [tokenizer.vocab[token_id] for token_id in range(256, 261)] == [
        *("Ġ", "<|endoftext|>", "th", "the", "theĠ")
    ]
    assert tokenizer.inverse_vocab["the"] == 259
    assert tokenizer.bpe_merges[258, ord("e")] == 259
    assert tokenizer.bpe_ranks["t", "h"] == 0
    assert tokenizer.encode("the<|endoftext|>", allowed_special={"<|endoftext|>"}) == [259, 257]
    assert tokenizer.encode("the hat", allowed_special=None) == [260, *map(ord, "h"), 261]
    tokenizer.save_vocab_and_merges(
        vocab_path=tmp_path / "vocab.json", bpe_merges_path=tmp_path / "merges.txt"
    )
    loaded = BPETokenizerSimple()
    loaded.load_vocab_and_merges_from_openai(
        vocab_path=tmp_path / "vocab.json", bpe_merges_path=tmp_path / "merges.txt"
    )
    assert loaded.encode("the hat") == tokenizer.encode("the hat")
    find = BPETokenizerSimple.find_freq_pair
    assert find(token_ids=[1, 2, 1, 2, 3], mode="most") == (1, 2)
    assert find([1, 2, 1, 2, 3], mode="least") == (2, 1)
    assert find([1]) is None
    with pytest.raises(ValueError, match="Invalid mode"):
        find([1, 2], mode="some")
    assert BPETokenizerSimple.replace_pair(token_ids=[1, 2, 1], pair_id=(1, 2), new_id=9) == [9, 1]


def test_the_functions_on_words(tmp_path: Path) -> None:
    table = {"l o w </w>": 5, "l o w e r </w>": 2, "n e w e s t </w>": 6, "w i d e s t </w>": 3}
    stats = words.get_stats(table)
    assert stats["e", "s"] == stats["s", "t"] == 9
    merged = words.merge_vocab(("e", "s"), table)
    assert merged["n e w es t </w>"] == 6
    names = ["corpus_iterator", "vocab_size", "min_frequency=2", "verbose=False"]
    assert parameters(words.train_bpe) == names
    token_to_id, merges = words.train_bpe(iter(["low low", "low lower"]), 260, 2, False)
    assert merges == [("o", "w"), ("l", "ow"), ("Ġ", "low")]  # Of equal counts, the greatest pair.
    byte_to_char = words.build_byte_vocab()
    assert list(byte_to_char)[:2] == [ord("!"), ord('"')]
    ranks = {pair: rank for rank, pair in enumerate(merges)}
    assert words.encode_pre_token(b" lower", byte_to_char, ranks) == ["Ġlow", "e", "r"]
    assert words.make_cached_encoder(byte_to_char, ranks, max_cache_size=9)(b" lower") == ("Ġlow", "e", "r")
    special = {"<|begin_of_text|>": 259, "<|pad|>": 260}
    pattern = regex.compile(words.SPLIT_PATTERN)
    ids = words.encode("<|begin_of_text|>low lower", token_to_id, merges, special, pattern, byte_to_char)
    assert ids == [259, 257, 258, *b"er"]
    char_to_byte = {character: byte for byte, character in byte_to_char.items()}
    for id_to_token in ([*token_to_id, *special], dict(enumerate([*token_to_id, *special]))):
        text = words.decode([*ids, 0xE2], id_to_token, char_to_byte, {259, 260})
        assert text == "<|begin_of_text|>low lower\N{REPLACEMENT CHARACTER}"
        with pytest.raises(TokenizerError, match="id -1 is not in the vocabulary of 261 tokens"):
            words.decode([-1], id_to_token, char_to_byte, set())
    with pytest.raises(TokenizerError, match="id 0: '▁' has characters that stand for no byte"):
        words.decode([0], ["▁"], char_to_byte, set())
    with pytest.raises(ValueError, match="vocab_size=256 must be greater than 256"):
        words.train_bpe(["low"], 256)
    words.save_tokenizer(token_to_id, merges, special, tmp_path / "new" / "demo", tokenizer_name="demo")
    assert words.load_tokenizer(tmp_path / "new" / "demo") == (token_to_id, merges, special)
    config = json.loads((tmp_path / "new" / "demo" / "tokenizer_config.json").read_text(encoding="utf-8"))
    assert (config["tokenizer_name"], config["num_merges"], config["vocab_size"]) == ("demo", 3, 259)
    assert (config["bos_token"], config["eos_token"], config["pad_token"]) == (
        "<|begin_of_text|>",
        None,
        "<|pad|>",
    )
    with pytest.raises(FileNotFoundError):
        words.load_tokenizer(tmp_path)
    for broken in (
        "{}",
        '{"model": {"vocab": {"a": "x"}, "merges": []}}',
        '{"model": {"vocab": {}, "merges": ["a"]}}',
        '{"model": {"vocab": {}, "merges": []}, "special_tokens": {"a": 5}}',
        "[]",
        "{",
    ):
        (tmp_path / "tokenizer.json").write_text(broken, encoding="utf-8")
        with pytest.raises(TokenizerError, match=r"tokenizer\.json: "):
            words.load_tokenizer(tmp_path)
    hub = {"model": {"vocab": {"a": 0, "b": 1, "ab": 2}, "merges": [["a", "b"]]}}
    (tmp_path / "tokenizer.json").write_text(json.dumps(hub), encoding="utf-8")
    assert words.load_tokenizer(tmp_path)[1:] == ([("a", "b")], {})
    assert words.apply_llama3_chat_template([{"role": "user", "content": " Hi\n"}], False).endswith(
        "\n\n Hi\n<|eot_id|>"
    )
    talk = [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "Hi"}]
    assert words.apply_chatml_template(talk) == (
        "<|im_start|>system\nBe brief.<|im_end|>\n<|im_start|>user\nHi<|im_end|>\n<|im_start|>assistant\n"
    )
    assert words.apply_llama3_chat_template(talk) == (
        "<|begin_of_text|><|start_header_id|>system<|end_header_id|>\n\nBe brief.<|eot_id|>"
        "<|start_header_id|>user<|end_header_id|>\n\nHi<|eot_id|>"
        "<|start_header_id|>assistant<|end_header_id|>\n\n"
    )
