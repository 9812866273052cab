"""Short names of tokenizers and files for headings, legends and columns."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Sequence
from pathlib import PurePath

from bpe_tokenizer.view.reports.tables import name_text

__all__ = ["file_labels", "public_names", "short_names", "tokenizer_labels"]

# Names of files that say nothing about the tokenizer in them: its directory has the name.
_GENERIC = frozenset(
    {"tokenizer.json", "tokenizer.model", "vocab.json", "merges.txt", "tekken.json", "model.json"}
)
_SUFFIXES = frozenset({".json", ".tiktoken", ".model", ".gguf", ".txt", ".bpe", ".spm"})
# Characters of a label. Longer names keep their end, which tells them apart.
_MAX_LABEL = 40


def tokenizer_labels(names: Sequence[str]) -> list[str]:
    """Return a short name for each tokenizer: the end of its path that tells it from the others.

    Args:
        names: Paths and published names.

    Example:
        >>> tokenizer_labels(["vocab/cl100k_base.tiktoken", "gpt2", "llama/tokenizer.json"])
        ['cl100k_base', 'gpt2', 'llama']
        >>> tokenizer_labels(["old/words.json", "new/words.json", "new/words.json"])
        ['old/words', 'new/words', 'new/words (2)']
    """
    return [_shortened(name_text(name)) for name in short_names(names, _SUFFIXES, _GENERIC)]


def public_names(names: Sequence[str]) -> list[str]:
    """Return names as they were given; of absolute paths, which tell of this machine, the ends that differ.

    Example:
        >>> public_names(["/home/me/de/a.txt", "/home/me/en/a.txt", "b/c.txt"])
        ['de/a.txt', 'en/a.txt', 'b/c.txt']
    """
    different = list(dict.fromkeys(names))
    ends = dict(zip(different, short_names(different), strict=True))
    return [ends[name] if PurePath(name).is_absolute() else name for name in names]


def file_labels(names: Sequence[str]) -> list[str]:
    """Return a short name for each file of a corpus. A suffix that all of them have is left out.

    Example:
        >>> file_labels(["texts/German.txt", "texts/English.txt"]), file_labels(["texts/German.txt"])
        (['German', 'English'], ['German.txt'])
    """
    suffixes = {PurePath(name).suffix for name in names}
    shared = suffixes if len(suffixes) == 1 and len(names) > 1 else frozenset()
    return [_shortened(name_text(name)) for name in short_names(names, shared)]


def short_names(
    names: Sequence[str], suffixes: Collection[str] = (), generic: Collection[str] = ()
) -> list[str]:
    """Return the shortest ends of paths that differ. Equal paths get a number.

    Args:
        names: The paths.
        suffixes: Suffixes to leave out.
        generic: Names of files to leave out if they have a directory.
    """
    parts = [_parts(name, suffixes, generic) for name in names]
    depths = [1] * len(names)
    while True:
        shown = ["/".join(part[-depth:]) for part, depth in zip(parts, depths, strict=True)]
        paths: dict[str, set[tuple[str, ...]]] = {}
        for name, part in zip(shown, parts, strict=True):
            paths.setdefault(name, set()).add(part)
        # Equal paths stay equal, however long they are.
        longer = [k for k, name in enumerate(shown) if len(paths[name]) > 1 and depths[k] < len(parts[k])]
        if not longer:
            break
        for k in longer:
            depths[k] += 1
    seen: Counter[str] = Counter()
    unique = []
    for name in shown:
        seen[name] += 1
        unique.append(name if seen[name] == 1 else f"{name} ({seen[name]})")
    return unique


def _parts(name: str, suffixes: Collection[str], generic: Collection[str]) -> tuple[str, ...]:
    path = PurePath(name)
    if path.name in generic and path.parent.name:
        path = path.parent
    if path.suffix in suffixes:
        path = path.with_suffix("")
    return path.parts or (name,)


def _shortened(label: str) -> str:
    return label if len(label) <= _MAX_LABEL else f"…{label[1 - _MAX_LABEL :]}"
