"""The second tokenizer: splits the text into pieces first, and never merges across their ends."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from .naive import NaiveBPETokenizer

if TYPE_CHECKING:
    import regex

__all__ = ["GPT2_PATTERN", "GPT4_PATTERN", "RegexBPETokenizer", "split"]

# Contractions; a word, a number or punctuation with the space before it; white space without the last space
# if a word follows. https://github.com/openai/gpt-2/blob/master/src/encoder.py
GPT2_PATTERN = r"'(?:[sdmt]|ll|ve|re)| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"

# Newer: contractions in capitals too, any character before a word, numbers of at most three digits, line ends
# separate from spaces. https://github.com/openai/tiktoken/blob/main/tiktoken_ext/openai_public.py
GPT4_PATTERN = (
    r"'(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}++|\p{N}{1,3}+| ?[^\s\p{L}\p{N}]++[\r\n]*+"
    r"|\s++$|\s*[\r\n]|\s+(?!\S)|\s"
)


def split(text: str, pattern: str) -> list[str]:
    r"""Split a text into the matches of a pattern and the text between them. Nothing is lost.

    Two differences to Rust's regex engines: `$` also matches before a final line end (`\Z` does not), and
    after an empty match another alternative may match at the same position.

    Args:
        text: The text to split.
        pattern: A regular expression of the `regex` module, https://pypi.org/project/regex/. Empty matches
            are not pieces.

    Returns:
        The pieces, in order; joined, they are the text.

    Raises:
        ValueError: The pattern is not a regular expression.

    >>> split("Hello, world's end  (2026)", GPT2_PATTERN)
    ['Hello', ',', ' world', "'s", ' end', ' ', ' (', '2026', ')']
    >>> split("a1 b2", "[a-z]")
    ['a', '1 ', 'b', '2']
    """
    pieces = []
    end = 0
    for match in compiled(pattern).finditer(text):
        if match.end() > match.start():
            pieces += [text[end : match.start()], match.group()]
            end = match.end()
    pieces.append(text[end:])
    return [piece for piece in pieces if piece]


def compiled(pattern: str) -> regex.Pattern[str]:
    """Compile a split pattern.

    Raises:
        ImportError: The `regex` module is not installed.
        ValueError: The pattern is not a regular expression.
    """
    try:
        import regex
    except ImportError as error:
        message = 'split patterns need the regex module: pip install "bpe-tokenizer[reference]"'
        raise ImportError(message, name=error.name) from error
    try:
        return regex.compile(pattern)
    except regex.error as error:
        raise ValueError(f"the split pattern {pattern!r} is not a regular expression: {error}") from error


class RegexBPETokenizer(NaiveBPETokenizer):
    """Byte-pair encoding of pieces.

    A piece is roughly a word with the space before it, so training learns words and no word pairs: "dog" is
    the same token in "dog." and "dog!". Pieces also make real tokenizers fast, because most pieces of a text
    repeat.

    Args:
        pattern: The split pattern; None is GPT-4's.

    Raises:
        ValueError: The pattern is not a regular expression.

    >>> tokenizer = RegexBPETokenizer().train("low lower lowest flow flower", 260)
    >>> tokenizer.merges
    [(b'l', b'o'), (b'lo', b'w'), (b'low', b'e'), (b' ', b'lowe')]
    >>> tokenizer.encode("lower flow<|endoftext|>", allowed_special="all")
    [258, 114, 32, 102, 257, 100257]
    """

    settings: ClassVar = {"pattern": str}

    def __init__(self, pattern: str | None = None) -> None:
        super().__init__()
        self.pattern = GPT4_PATTERN if pattern is None else pattern
        compiled(self.pattern)
        self.register_special_tokens({"<|endoftext|>": 100257})

    def split(self, text: str) -> list[str]:
        """Split a text with the split pattern."""
        return split(text, self.pattern)
