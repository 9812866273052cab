"""The result of an encoding as HTML for a notebook."""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING

from bpe_tokenizer.console import count_noun
from bpe_tokenizer.decoding import printable_bytes
from bpe_tokenizer.display.chips import COLOURS, STYLE, chip_with_id

if TYPE_CHECKING:
    from bpe_tokenizer.results import EncodingResult

__all__ = ["MAX_TOKENS", "result_html"]

# A notebook keeps its outputs, so a long result shows the first tokens.
MAX_TOKENS = 256


def result_html(result: EncodingResult) -> str:
    """Return the tokens of a result with their ids, with its style: self-contained, without a script.

    Args:
        result: The result. Of a long one, the first 256 tokens are shown.

    Example:
        >>> from bpe_tokenizer import BPETokenizer
        >>> tokenizer = BPETokenizer().train("low low lower", vocab_size=258, verbose=False)
        >>> '<span class="bpe-id">257</span>' in result_html(tokenizer(["<low>"])[0])
        True
    """
    ids, mask = result.input_ids, result.attention_mask
    padding = len(mask) - sum(map(bool, mask))
    facts = [count_noun(len(ids) - padding, "token")]
    if padding:
        facts.append(f"{padding:,} of padding")
    if result.overflowing:
        facts.append(f"{count_noun(len(result.overflowing), 'more row')} of the text's rest")
    chips = "".join(_chip(result, index) for index in range(min(len(ids), MAX_TOKENS)))
    rest = len(ids) - MAX_TOKENS
    note = f'<p class="bpe-note">and {rest:,} more</p>' if rest > 0 else ""
    return (
        f'<style>{STYLE}</style><div class="bpe-card"><p class="bpe-title">{type(result).__name__}'
        f'<span>{", ".join(facts)}</span></p><div class="bpe-row">{chips}</div>{note}</div>'
    )


def _chip(result: EncodingResult, index: int) -> str:
    token = printable_bytes(result.tokens[index])
    about = [f"token {index}"]
    if result.offsets is not None:
        start, end = result.offsets[index]
        about.append(f"characters {start} to {end}")
    if result.word_ids is not None and result.word_ids[index] is not None:
        about.append(f"word {result.word_ids[index]}")
    if result.sequence_ids is not None and result.sequence_ids[index] is not None:
        about.append(f"text {result.sequence_ids[index]}")
    kind = f"bpe-{index % COLOURS}" if result.attention_mask[index] else "bpe-padding"
    return chip_with_id(token, str(result.input_ids[index]), kind, f'title="{escape(", ".join(about))}"')
