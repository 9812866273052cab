"""The vocabularies of the cases, in every format that a package can read."""

from __future__ import annotations

import json
import shutil
from dataclasses import dataclass
from pathlib import Path

from benchmarks.inputs import fixture, load_ranks, ours
from bpe_tokenizer import BPETokenizer
from bpe_tokenizer.patterns import NAMED_PATTERNS

__all__ = ["INVENTED_PATTERN", "OPENAI", "VOCABULARIES", "Vocabulary", "prepare"]

# No package has a scanner for this pattern: words of camelCase, other letters by fours, digits by twos.
INVENTED_PATTERN = (
    r" ?\p{Lu}?[\p{Ll}\p{M}]+| ?\p{Lu}+|[\p{L}\p{M}]{1,4}|\p{N}{1,2}| ?[^\s\p{L}\p{M}\p{N}]{1,4}"
    r"|\s*[\r\n]+|\s+(?!\S)|\s+"
)

# The fixture of each and its split pattern; None if the file holds it.
_SOURCES: dict[str, tuple[str, str | None]] = {
    "gpt2": ("r50k_base.tiktoken", "gpt2"),
    "cl100k": ("cl100k_base.tiktoken", "cl100k"),
    "o200k": ("o200k_base.tiktoken", "o200k"),
    "llama3": ("ggml-vocab-llama-bpe.gguf", None),
    "qwen2": ("ggml-vocab-qwen2.gguf", None),
    "invented": ("cl100k_base.tiktoken", INVENTED_PATTERN),
}
VOCABULARIES = tuple(_SOURCES)
# Those that most packages read.
OPENAI = ("gpt2", "cl100k", "o200k")


@dataclass(frozen=True)
class Vocabulary:
    """A vocabulary on disk.

    Args:
        name: One of `VOCABULARIES`.
        pattern: Its split pattern, as a regular expression.
        directory: Where its `tokenizer.json` lies, which our package wrote.
        ranks: Its rank file, if it has one.
    """

    name: str
    pattern: str
    directory: Path
    ranks: Path | None

    @property
    def json(self) -> Path:
        """Its tokenizer.json."""
        return self.directory / "tokenizer.json"


def prepare(name: str, directory: Path) -> Vocabulary:
    """Write a vocabulary's files into a separate directory, unless it exists.

    Args:
        name: One of `VOCABULARIES`.
        directory: The directory of all of them.

    Returns:
        The vocabulary.
    """
    file, pattern = _SOURCES[name]
    place, ranks = directory / name, directory / name / "ranks.tiktoken"
    if not place.exists():
        source = fixture("vocab", file)
        _load(source, pattern).save(place)
        _without_added_tokens(place / "tokenizer.json")
        if pattern is not None:
            shutil.copyfile(source, ranks)
    named = NAMED_PATTERNS.get(pattern or name)
    split_pattern = named.patterns[0] if named else INVENTED_PATTERN
    return Vocabulary(name, split_pattern, place, ranks if ranks.exists() else None)


def _load(source: Path, pattern: str | None) -> BPETokenizer:
    return BPETokenizer.load(source, "gguf") if pattern is None else ours(load_ranks(source), pattern)


def _without_added_tokens(path: Path) -> None:
    """Remove added tokens: packages recognise them differently, which is not measured."""
    content = json.loads(path.read_text(encoding="utf-8"))
    content["added_tokens"] = []
    path.write_text(json.dumps(content), encoding="utf-8")
