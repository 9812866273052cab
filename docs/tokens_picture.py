"""Draws docs/tokens.svg: a text cut into its tokens, each with its id.

python docs/tokens_picture.py cl100k_base.tiktoken
"""

from __future__ import annotations

import sys
from html import escape
from pathlib import Path

from bpe_tokenizer import BPETokenizer

TEXT = "Tokenizers don't read words: they read bytes, naïve 日本語 🙂 and 3.14159."
COLOURS = ("#cfe8ff", "#ffe3c2", "#d5f2d0", "#ffd6e0", "#e6dcff")
CHARACTER, PADDING, ROW, WIDTH = 10.0, 5.0, 58, 800


def draw(tokenizer: BPETokenizer) -> str:
    """Return the picture as SVG."""
    parts, x, y = [], 0.0, 0
    ids, spans = tokenizer.encode_with_offsets(TEXT, tile=False)
    for number, (token_id, (start, end)) in enumerate(zip(ids, spans, strict=True)):
        # A token that is a part of a character has no text: its bytes are shown.
        token = tokenizer.decode_bytes([token_id])
        whole = token == TEXT[start:end].encode()
        text = TEXT[start:end].replace(" ", "·") if whole else token.hex(" ").upper()
        cells = sum(2 if ord(character) > 0x2E7F else 1 for character in text)
        width = CHARACTER * max(cells, 0.75 * len(str(token_id))) + 2 * PADDING
        if x + width > WIDTH:
            x, y = 0.0, y + ROW
        middle = x + width / 2
        parts.append(
            f'<rect x="{x:.1f}" y="{y}" width="{width - 2:.1f}" height="30" rx="5" '
            f'fill="{COLOURS[number % len(COLOURS)]}"/>'
            f'<text x="{middle:.1f}" y="{y + 20}" xml:space="preserve">{escape(text)}</text>'
            f'<text x="{middle:.1f}" y="{y + 44}" class="id">{token_id}</text>'
        )
        x += width
    style = "text{font:16px monospace;text-anchor:middle;fill:#222}.id{font-size:11px;fill:#777}"
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {y + ROW}" role="img" '
        f'aria-label="A text cut into tokens"><style>{style}</style>\n' + "\n".join(parts) + "\n</svg>\n"
    )


if __name__ == "__main__":
    Path(__file__).with_name("tokens.svg").write_text(draw(BPETokenizer.load(sys.argv[1])), encoding="utf-8")
