"""The names, calls and results that the tutorials about BPE print, for a reader who types them."""

import inspect
from pathlib import Path
from typing import Any

import pytest

from bpe_tokenizer import reference
from bpe_tokenizer.reference import (
    BasicBPE,
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


@pytest.mark.parametrize("kind", [BasicBPE, RegexBPE])
def test_the_thin_forms(kind: type[BasicBPE]) -> None:
    tokenizer = kind(vocab_size=259)
    tokenizer.train("aaabdaaabac")
    # A tutorial prints 257, 258, 259: its loop wastes 256.
    assert list(tokenizer.merges.items()) == [((97, 97), 256), ((256, 97), 257), ((257, 98), 258)]
    assert tokenizer.encode("aaabdaaabac") == [258, 100, 258, 97, 99]
    assert tokenizer.decode([258, 100, 258, 97, 99]) == "aaabdaaabac"


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
    assert tokenizer.vocab[258] == "the"
    assert tokenizer.inverse_vocab["the"] == 258
    assert tokenizer.bpe_merges[257, ord("e")] == 258
    assert tokenizer.bpe_ranks["t", "h"] == 0
    assert tokenizer.encode("the<|endoftext|>", allowed_special={"<|endoftext|>"}) == [258, 256]
    assert tokenizer.encode("the", allowed_special=None) == [258]
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
    assert parameters(words.train_bpe) == [
        "corpus_iterator",
        "vocab_size",
        "min_frequency=2",
        "verbose=False",
    ]
    token_to_id, merges = words.train_bpe(iter(["low low", "low lower"]), 260, 2, False)
    assert merges == [("l", "o"), ("lo", "w"), ("Ġ", "low")]
    assert words.encode_pre_token(" lower", merges) == ["Ġlow", "e", "r"]
    ids = words.encode("low lower", token_to_id, merges)
    assert words.decode(ids, token_to_id) == "low lower"
    assert words.make_cached_encoder(token_to_id, merges)("low lower") == ids
    words.save_tokenizer(tmp_path / "words.json", token_to_id, merges)
    assert words.load_tokenizer(tmp_path / "words.json") == (token_to_id, merges)
    with pytest.raises(TokenizerError, match="id 999 is not in the vocabulary"):
        words.decode([999], token_to_id)
    for broken in (
        "{}",
        '{"vocab": {"a": "x"}, "merges": []}',
        '{"vocab": {}, "merges": [["a"]]}',
        "[]",
        "{",
    ):
        (tmp_path / "broken.json").write_text(broken, encoding="utf-8")
        with pytest.raises(TokenizerError, match=r"broken\.json: "):
            words.load_tokenizer(tmp_path / "broken.json")
    talk = [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "Hi"}]
    assert words.apply_chatml_template(talk) == (
        "<|im_start|>system\nBe brief.<|im_end|>\n<|im_start|>user\nHi<|im_end|>\n<|im_start|>assistant\n"
    )
    assert words.apply_llama3_chat_template(talk) == (
        "<|begin_of_text|><|start_header_id|>system<|end_header_id|>\n\nBe brief.<|eot_id|>"
        "<|start_header_id|>user<|end_header_id|>\n\nHi<|eot_id|>"
        "<|start_header_id|>assistant<|end_header_id|>\n\n"
    )


def test_every_public_name_is_there() -> None:
    assert [name for name in reference.__all__ if not hasattr(reference, name)] == []
