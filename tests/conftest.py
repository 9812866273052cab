"""Fixtures that the tests share: text of the standard library, and small tokenizers trained on it."""

from __future__ import annotations

import sysconfig
from pathlib import Path

import pytest
from hypothesis import settings

from bpe_tokenizer import BPETokenizer

# A deadline would only measure what else the machine does.
settings.register_profile("tests", deadline=None)
settings.load_profile("tests")

# Characters of every UTF-8 length, combining and precomposed, wide spaces, mixed newlines, a zero byte.
MIXED_TEXT = (
    "Grüße, naïve café! cafe\u0301 Ελληνικά Привет мир 日本語のテキスト 한국어 עברית हिन्दी\n"
    "emoji 👩‍👩‍👧 🇫🇷 ✓ 1234567 ½ ٣٤٥  two  spaces\t\ttabs\r\n\r\nI'll don't WE'RE it'S ſ K\u2003\u3000end\0."
)


@pytest.fixture(scope="session")
def stdlib_files() -> list[Path]:
    """Some sources of the standard library."""
    library = Path(sysconfig.get_paths()["stdlib"])
    names = [
        "argparse.py",
        "ast.py",
        "datetime.py",
        "difflib.py",
        "inspect.py",
        "json/decoder.py",
        "textwrap.py",
    ]
    return [path for path in map(library.joinpath, names) if path.is_file()]


@pytest.fixture(scope="session")
def stdlib_texts(stdlib_files: list[Path]) -> list[str]:
    """Their texts, one a file."""
    return [path.read_text(encoding="utf-8") for path in stdlib_files]


@pytest.fixture(scope="session")
def mixed_text() -> str:
    """A short text with every kind of character."""
    return MIXED_TEXT


@pytest.fixture(scope="session")
def tokenizer(stdlib_texts: list[str]) -> BPETokenizer:
    """Defaults (cl100k, NFC), 1,000 ids, with a token of each role at 256 to 259."""
    return BPETokenizer().train(
        [*stdlib_texts, MIXED_TEXT],
        vocab_size=1000,
        special_tokens=["<|bos|>", "<|eos|>", "<|pad|>", "<|unk|>"],
        verbose=False,
    )


@pytest.fixture(scope="session")
def plain_tokenizer(stdlib_texts: list[str]) -> BPETokenizer:
    """GPT-2's pattern, no normalisation, no special tokens: 600 ids."""
    tokenizer = BPETokenizer(split_pattern="gpt2", normalization=None)
    return tokenizer.train([*stdlib_texts, MIXED_TEXT], vocab_size=600, verbose=False)
