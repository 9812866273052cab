"""Encodes rendered segments so that contents never become control tokens.

The control tokens of a conversation are the special tokens, and the plain added tokens that are markup.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

from bpe_tokenizer.chat.renderer import ConversationRenderer
from bpe_tokenizer.chat.segment import Rendered
from bpe_tokenizer.compiled import CompiledModel

__all__ = ["encode_pieces", "markup_tokens"]

Covered = tuple[int, int]


def markup_tokens(
    compiled: CompiledModel, conversation: ConversationRenderer, rendered: Rendered
) -> frozenset[str]:
    """Return the added tokens that are not special, but that the template writes or can write as markup.

    Models have such tokens for the parts of a turn (`<tool_call>`, `<think>`). In markup they are control
    tokens, so in contents they are text. Other such tokens, like runs of spaces, are ordinary words.

    A template may compute a token in any way, so every token in the rendered markup counts. A token that
    another conversation would show counts if the template's literals show that the template can write it.

    Raises:
        OptionError: The vocabulary lacks control tokens of the template.
    """
    conversation.check_control_tokens(compiled.added)
    markup, forms = _markup_text(rendered), compiled.model.core.normal_forms

    def is_written(content: str) -> bool:
        form = forms.get(compiled.added[content].id, content)
        return any(text in markup or conversation.may_write(text) for text in {content, form})

    return frozenset(filter(is_written, _plain_tokens(compiled)))


def _plain_tokens(compiled: CompiledModel) -> list[str]:
    """Return the added tokens that are neither special nor white space."""
    return [
        token.content for token in compiled.added.values() if not (token.special or token.content.isspace())
    ]


def _markup_text(rendered: Rendered) -> str:
    """Return the distinct runs of markup as one text."""
    runs = [""]
    for segment in rendered.segments:
        if segment.trusted:
            runs[-1] += segment.text
        elif runs[-1]:
            runs.append("")
    return "\0".join(dict.fromkeys(runs))


def encode_pieces(
    compiled: CompiledModel,
    pieces: Sequence[tuple[str, bool]],
    special: bool | Collection[str],
    markup: frozenset[str],
) -> tuple[list[int], list[Covered]]:
    """Encode segments of which contents never become control tokens.

    Args:
        compiled: The model.
        pieces: The segments as (text, trusted).
        special: The special tokens that are recognised in trusted segments.
        markup: The result of `markup_tokens`.

    Returns:
        The ids, and the first and the last segment that each id covers.
    """
    added = {token.id: token.content for token in compiled.added.values()}
    words = {compiled.added[text].id for text in _plain_tokens(compiled) if text not in markup}
    while True:
        ids, covered = compiled.encoder.encode_segments(pieces, special, markup)
        # Normalisation can make a token of markup that does not show its text.
        made = (
            {
                token_id
                for token_id, places in zip(ids, covered, strict=True)
                if token_id in words and _is_trusted(pieces, places)
            }
            if words
            else set()
        )
        if not made:
            break
        markup |= {added[token_id] for token_id in made}
        words -= made
    control = {*compiled.special.values(), *(compiled.added[text].id for text in markup)}
    return _split_merged(compiled, pieces, control, ids, covered)


def _is_trusted(pieces: Sequence[tuple[str, bool]], places: Covered) -> bool:
    first, last = places
    return all(pieces[place][1] for place in range(first, last + 1))


def _split_merged(
    compiled: CompiledModel,
    pieces: Sequence[tuple[str, bool]],
    control: set[int],
    ids: list[int],
    covered: list[Covered],
) -> tuple[list[int], list[Covered]]:
    """Replace the control tokens that merges made of contents by the tokens that were merged.

    Merges make an added token only if the vocabulary holds it too.
    """
    merged = control.intersection(compiled.model.core.added_ids_in_vocab)
    if merged.isdisjoint(ids):
        return ids, covered
    replaced: list[int] = []
    places: list[Covered] = []
    for token_id, place in zip(ids, covered, strict=True):
        is_forged = token_id in merged and not _is_trusted(pieces, place)
        parts = _merged_parts(compiled, token_id, control) if is_forged else [token_id]
        replaced += parts
        places += [place] * len(parts)
    return replaced, places


def _merged_parts(compiled: CompiledModel, token_id: int, control: set[int]) -> list[int]:
    """Return ids with the bytes of a token and without control tokens; initial symbols stay as they are."""
    trace = compiled.encoder.trace_merges(compiled.model.core.token(token_id) or b"")
    parts = dict(enumerate(trace.symbols))
    for step in trace.steps:
        if step.token_id not in control:
            parts[step.left] = step.token_id
            del parts[step.right]
        else:
            break
    return [part for part in parts.values() if part is not None] or [token_id]
