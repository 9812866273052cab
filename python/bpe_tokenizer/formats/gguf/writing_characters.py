"""SentencePiece-style BPE for a GGUF file: by scores (`llama`), or by merges (`gemma4`)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

from bpe_tokenizer import _core
from bpe_tokenizer.errors import FormatError
from bpe_tokenizer.formats.gguf.pre_tokenizers import LINES
from bpe_tokenizer.formats.gguf.reading import SPACE, has_byte_tokens, unmergeable_newlines
from bpe_tokenizer.formats.gguf.scores import Pair, last_merge

__all__ = ["Written", "write_characters"]

_REPLACE = ("Replace", " ", SPACE)


@dataclass(frozen=True)
class Written:
    """What a file says about the way from text to tokens.

    Args:
        model: `tokenizer.ggml.model`.
        pre: `tokenizer.ggml.pre`, if it takes part.
        merges: The merges as the file writes them.
        scores: The score of each id.
        add_space_prefix: Whether a space is put before a text.
    """

    model: str
    pre: str | None = None
    merges: list[str] | None = None
    scores: list[float] | None = None
    add_space_prefix: bool | None = None


def write_characters(core: _core.Model, texts: Sequence[str], adds_bos: bool) -> Written:
    """Return what a file has to say for a model whose tokens are characters.

    Args:
        core: The model.
        texts: The text of each id, as the file writes it.
        adds_bos: Whether BOS is put before a text.

    Raises:
        FormatError: llama.cpp would give other ids; names what it cannot do.
    """
    if core.ignore_merges:
        raise FormatError("ignore_merges: llama.cpp merges every piece of this kind of model step by step")
    if core.decoder is None or core.decoder[0] != SPACE or not core.decoder[1]:
        raise FormatError(f"decoder: llama.cpp reads {SPACE!r} as a space and <0x00> to <0xFF> as bytes")
    if not core.byte_fallback or not all(has_byte_tokens(set(texts))):
        raise FormatError("byte_fallback: llama.cpp needs the tokens <0x00> to <0xFF> for unknown characters")
    steps = list(core.normalizers)
    prefixed = steps[:1] == [("Prepend", SPACE)]
    if steps[prefixed:] != [_REPLACE]:
        raise FormatError(
            f"normalizers: llama.cpp writes a space as {SPACE!r}, and puts one before a text, but not "
            + ", ".join(step[0] for step in steps)
        )
    merges = [(left.decode(), right.decode()) for left, right in core.merges]
    if core.split_patterns == [] and (prefixed or not _is_cut_at_lines(merges)):
        return Written("llama", scores=_scores(texts, merges), add_space_prefix=prefixed)
    if core.split_patterns not in ([], [LINES]) or core.add_prefix_space or prefixed:
        raise FormatError("pre_tokenizers: llama.cpp does not cut the texts of this kind of model like that")
    unmade = unmergeable_newlines(texts, core.merges)
    written = [f"{left} {right}" for left, right in dict.fromkeys(reversed(merges))][::-1]
    if adds_bos and unmade is None:
        return Written("gemma4", merges=written, add_space_prefix=False)
    return Written("gpt2", "sarvam-moe", written, add_space_prefix=False)


def _is_cut_at_lines(merges: Sequence[Pair]) -> bool:
    """Whether cutting at line ends changes nothing: no merge joins a newline with something else."""
    return not any("\n" in left + right and (left + right).strip("\n") for left, right in merges)


def _scores(texts: Sequence[str], merges: Sequence[Pair]) -> list[float]:
    """Scores that make the tokens in the order in which the merges make them.

    Raises:
        FormatError: There are none.
    """
    ranks = {pair: rank for rank, pair in enumerate(merges)}
    made: dict[str, tuple[int, Pair]] = {}
    for text in texts:
        pair = _last_merge(text, ranks)
        if pair is not None:
            made[text] = ranks[pair], pair
    order = sorted(made, key=made.__getitem__)
    scores = dict.fromkeys(texts, float(-len(texts)))
    scores.update((text, float(-rank)) for rank, text in enumerate(order))
    for text in texts:
        pair = last_merge(text, scores) if len(text) > 1 and " " not in text else None
        if pair != (made[text][1] if text in made else None):
            raise FormatError(
                f"merges: llama.cpp would join {' and '.join(map(repr, pair or made[text][1]))} "
                f"{'as well' if pair else 'never'}, because it goes by the texts of tokens only"
            )
    return [scores[text] for text in texts]


def _last_merge(text: str, ranks: Mapping[Pair, int]) -> Pair | None:
    """The two symbols that become the token when its text is merged alone; None if it never does."""
    symbols = list(text)
    while len(symbols) > 2:
        found = [ranks.get(pair, len(ranks)) for pair in pairwise(symbols)]
        at = found.index(min(found))
        if found[at] == len(ranks):
            return None
        symbols[at : at + 2] = [symbols[at] + symbols[at + 1]]
    return (symbols[0], symbols[1]) if len(symbols) == 2 and (symbols[0], symbols[1]) in ranks else None
