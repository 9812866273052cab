"""Writes SentencePiece-style BPE for a GGUF file: with scores (`llama`) or with merges (`gemma4`)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from bpe_tokenizer import _core
from bpe_tokenizer.errors import FormatError
from bpe_tokenizer.formats.gguf.pre_tokenizers import LINES
from bpe_tokenizer.formats.gguf.reading import SPACE, has_byte_tokens, unmergeable_newlines
from bpe_tokenizer.formats.gguf.scores import Pair, join, last_merge
from bpe_tokenizer.model import Metaspace, Prepend, Replace

__all__ = ["Written", "write_characters"]

_REPLACE = Replace(pattern=" ", content=SPACE)


@dataclass(frozen=True)
class Written:
    """The fields of a file that describe tokenization.

    Args:
        model: `tokenizer.ggml.model`.
        pre: `tokenizer.ggml.pre`; None if the model does not use it.
        merges: The merges as lines of the file.
        scores: The score of each id.
        add_space_prefix: Whether llama.cpp adds a space before a text.
    """

    model: str
    pre: str | None = None
    merges: list[str] | None = None
    scores: list[float] | None = None
    add_space_prefix: bool | None = None


def write_characters(core: _core.Model, texts: Sequence[str], adds_bos: bool) -> Written:
    """Return the fields for a model whose tokens are characters.

    Args:
        core: The model.
        texts: The text of each id, as the file writes it.
        adds_bos: Whether BOS is added before a text.

    Raises:
        FormatError: llama.cpp would give other ids; names the unsupported part.
    """
    if core.ignore_merges:
        raise FormatError("ignore_merges: llama.cpp always merges pieces in SentencePiece-style models")
    if core.decoder is None or core.decoder.space != SPACE or not core.decoder.byte_fallback:
        raise FormatError(f"decoder: llama.cpp decodes {SPACE!r} to a space and <0x00> to <0xFF> to bytes")
    if not core.byte_fallback or not all(has_byte_tokens(set(texts))):
        raise FormatError("byte_fallback: llama.cpp needs the tokens <0x00> to <0xFF> for unknown characters")
    steps, splits = list(core.normalizers), core.split_patterns
    if _is_replaced(core):
        steps, splits = [*(step for step in steps if step != _REPLACE), _REPLACE], []
    prefixed = steps[:1] == [Prepend(prepend=SPACE)]
    if steps[prefixed:] != [_REPLACE]:
        names = ", ".join(step.type for step in (*steps, *core.pre_tokenizers)) or "none"
        raise FormatError(
            f"normalizers: llama.cpp replaces a space by {SPACE!r} and may prepend one; the model has {names}"
        )
    merges = [(left.decode(), right.decode()) for left, right in core.merges]
    if splits == [] and (prefixed or not _is_cut_at_lines(merges)):
        return Written("llama", scores=_scores(texts, merges), add_space_prefix=prefixed)
    if splits not in ([], [LINES]) or core.add_prefix_space or prefixed:
        raise FormatError(
            "pre_tokenizers: llama.cpp does not split text like this in SentencePiece-style models"
        )
    unmade = unmergeable_newlines(texts, core.merges)
    written = [f"{left} {right}" for left, right in dict.fromkeys(reversed(merges))][::-1]
    if adds_bos and unmade is None:
        return Written("gemma4", merges=written, add_space_prefix=False)
    return Written("gpt2", "sarvam-moe", written, add_space_prefix=False)


def _is_replaced(core: _core.Model) -> bool:
    """Whether `Metaspace` only replaces spaces: no merge joins the pieces that it splits."""
    metaspace = Metaspace(replacement=SPACE, prepend_scheme="never", split=False)
    joins = any(right.startswith(SPACE.encode()) for _, right in core.merges)
    return core.pre_tokenizers in ([metaspace], [metaspace._replace(split=not joins)])


def _is_cut_at_lines(merges: Sequence[Pair]) -> bool:
    """Whether splitting at newlines changes nothing: no merge joins a newline with another character."""
    return not any("\n" in left + right and (left + right).strip("\n") for left, right in merges)


def _scores(texts: Sequence[str], merges: Sequence[Pair]) -> list[float]:
    """The scores that make tokens in the order of the merges.

    Raises:
        FormatError: No scores do.
    """
    by_rank = {pair: float(-rank) for rank, pair in enumerate(merges)}
    made: dict[str, float] = {}
    for text in texts:
        pair = _last_merge(text, by_rank)
        if pair is not None:
            made[text] = by_rank[pair]
    order = sorted(made, key=made.__getitem__, reverse=True)
    scores = dict.fromkeys(texts, float(-len(texts)))
    scores.update((text, float(-rank)) for rank, text in enumerate(order))
    for text in texts:
        # A text to merge has no space. Where merging makes a token, the scores do too, in the same way.
        if text in made or len(text) == 1 or " " in text:
            continue
        pair = last_merge(text, scores)
        if pair is not None:
            raise FormatError(
                f"merges: llama.cpp would also join {' and '.join(map(repr, pair))}, because its scores "
                "belong to tokens, not pairs"
            )
    return [scores[text] for text in texts]


def _last_merge(text: str, scores: Mapping[Pair, float]) -> Pair | None:
    """The two symbols of the last merge of a token's text; None if merging does not make the token."""
    symbols = join(list(text), lambda left, right: scores.get((left, right)), until=2)
    return (symbols[0], symbols[1]) if tuple(symbols) in scores else None
