"""The lesson: special tokens in a text, and errors."""

import copy
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from bpe_tokenizer.reference import (
    CharBPETokenizer,
    NaiveBPETokenizer,
    RegexBPETokenizer,
)
from bpe_tokenizer.reference.special import cut_at_special
from lesson import WORDS, AnyTokenizer, every_class

# Special tokens in a text


@every_class
def test_allowed_special(kind: type[AnyTokenizer]) -> None:
    special = {"<|end|>": 300, "<|user|>": 301}
    tokenizer = kind().train(WORDS, 258, special_tokens=special)
    text = "low<|user|>flow<|end|>"
    low, flow = [257], [ord("f"), 257]
    plain = tokenizer.encode(text)
    assert set(plain).isdisjoint(special.values())
    assert tokenizer.decode(plain) == text
    assert tokenizer.encode(text, "all") == [*low, 301, *flow, 300]
    assert tokenizer.encode(text, {"<|user|>"}) == [*low, 301, *flow, *map(ord, "<|end|>")]
    assert tokenizer.encode(text, {"<|user|>"}, disallowed_special={"<|user|>"})[1] == 301, "allowed wins"
    assert tokenizer.decode([*low, 301, *flow, 300]) == text
    assert tokenizer.encode("low", "none_raise") == low
    with pytest.raises(ValueError, match=r"'<\|user\|>' at character 3.*disallowed_special=\(\)"):
        tokenizer.encode(text, "none_raise")
    with pytest.raises(ValueError, match=r"'<\|end\|>' at character 15"):
        tokenizer.encode(text, {"<|user|>"}, disallowed_special="all")
    with pytest.raises(ValueError, match=r"'<\|end\|>' at character 15"):
        tokenizer.encode(text, disallowed_special=["<|end|>"])


def test_the_longest_special_token_is_found_first() -> None:
    assert cut_at_special("x<s>><s>y", ["<s>", "<s>>"]) == ["x", "<s>>", "<s>", "y"]
    tokenizer = NaiveBPETokenizer().train("ab", 257, special_tokens={"<s>": 300, "<s>>": 301, "[.*]": 302})
    assert tokenizer.encode("<s>><s>[.*].", "all") == [301, 300, 302, ord(".")]


def test_mistaken_names_of_special_tokens() -> None:
    tokenizer = RegexBPETokenizer().train(WORDS, 258)
    with pytest.raises(ValueError, match=r"'<\|no\|>' is not a special token.*'<\|endoftext\|>'"):
        tokenizer.encode("low", {"<|no|>"})
    with pytest.raises(ValueError, match=r"write \{'<\|endoftext\|>'\}"):
        tokenizer.encode("low", "<|endoftext|>")
    with pytest.raises(ValueError, match="disallowed_special='none' is unknown"):
        tokenizer.encode("low", disallowed_special="none")


# Errors


@every_class
def test_bad_arguments_of_train(kind: type[AnyTokenizer]) -> None:
    with pytest.raises(ValueError, match="training text is empty"):
        kind().train("", 300)
    with pytest.raises(ValueError, match="vocab_size=255 is too small: the 256 smallest tokens"):
        kind().train("abc", 255)
    with pytest.raises(TypeError, match="the text must be a str, not bytes"):
        kind().train(b"abc", 300)  # type: ignore[arg-type]
    cases: list[tuple[Any, str]] = [
        ([""], "is empty"),
        (["<s>", "<s>"], "'<s>' is listed twice"),
        ({"<s>": 255}, "'<s>' has id 255.*give it 256 or more"),
        ({"<s>": -1}, "'<s>' has id -1"),
        ({"<s>": 300, "<t>": 300}, "'<s>' and '<t>' have the same id, 300"),
    ]
    for special_tokens, message in cases:
        with pytest.raises(ValueError, match=message):
            kind().train("abc", 300, special_tokens=special_tokens)
    with pytest.raises(TypeError, match=r"write \['<s>'\]"):
        kind().train("abc", 300, special_tokens="<s>")


def test_character_vocabulary_must_hold_the_characters() -> None:
    with pytest.raises(ValueError, match="vocab_size=257 is too small: the 258 smallest tokens"):
        CharBPETokenizer().train("中文", 257)
    with pytest.raises(ValueError, match=r"'<s>' has id 257.*give it 258 or more"):
        CharBPETokenizer().train("中文", 300, special_tokens={"<s>": 257})


@every_class
def test_a_failed_training_changes_nothing(kind: type[AnyTokenizer]) -> None:
    tokenizer = kind().train(WORDS, 258)
    before = copy.deepcopy(vars(tokenizer))
    with pytest.raises(ValueError, match="too small"):
        tokenizer.train("other words", 3)
    assert vars(tokenizer) == before


@every_class
def test_unknown_ids(kind: type[AnyTokenizer]) -> None:
    tokenizer = kind().train(WORDS, 258, special_tokens={})
    for token_id in (258, -1, 100257):
        with pytest.raises(ValueError, match=f"id {token_id} is not in the vocabulary.*highest id is 257"):
            tokenizer.decode([97, token_id])
        with pytest.raises(ValueError, match=f"id {token_id} is not in the vocabulary"):
            tokenizer.trace_decode([token_id])


@every_class
def test_untrained(kind: type[AnyTokenizer], tmp_path: Path) -> None:
    tokenizer = kind()
    uses: list[Callable[[], object]] = [
        lambda: tokenizer.encode("low"),
        lambda: tokenizer.decode([97]),
        lambda: tokenizer.trace("low"),
        lambda: tokenizer.trace_decode([97]),
        lambda: tokenizer.save(tmp_path / "a"),
        lambda: tokenizer.save_readable(tmp_path / "a"),
    ]
    for use in uses:
        with pytest.raises(RuntimeError, match=rf"this {kind.__name__} is not trained: call train\(...\)"):
            use()
    assert not (tmp_path / "a").exists()


def test_registering_an_id_that_is_taken() -> None:
    tokenizer = RegexBPETokenizer().train(WORDS, 258)
    with pytest.raises(ValueError, match="'<s>' cannot have id 257, which belongs to 'low'"):
        tokenizer.register_special_tokens({"<s>": 257})
    with pytest.raises(ValueError, match="'<s>' has id -5: an id is not negative"):
        tokenizer.register_special_tokens({"<s>": -5})
    assert tokenizer.special_tokens == {"<|endoftext|>": 100257}


def test_a_pattern_that_is_no_regular_expression() -> None:
    for kind in (RegexBPETokenizer, CharBPETokenizer):
        with pytest.raises(ValueError, match=r"split pattern '\(' is not a regular expression"):
            kind("(")


def test_the_lesson_runs_on_its_own() -> None:
    directory = Path(sys.modules["bpe_tokenizer.reference"].__path__[0]).parent
    code = (
        f"import sys; sys.path.append({str(directory)!r})\n"
        "import reference, reference.oracle\n"
        "assert not any(name.startswith('bpe_tokenizer') for name in sys.modules)\n"
        "print(reference.NaiveBPETokenizer().train('aaabdaaabac', 259).encode('aaab'))"
    )
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert result.stdout == "[258]\n"


def test_without_the_regex_module() -> None:
    code = """
import sys
sys.modules["regex"] = None
from bpe_tokenizer.reference import NaiveBPETokenizer, RegexBPETokenizer
tokenizer = NaiveBPETokenizer().train("aaabdaaabac", 259, special_tokens={"<|end|>": 300})
print(tokenizer.encode("aaab<|end|>", allowed_special="all"))
RegexBPETokenizer()
"""
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (result.returncode, result.stdout) == (1, "[258, 300]\n")
    assert 'ImportError: split patterns need the regex module: pip install "bpe-tokenizer[' in result.stderr
