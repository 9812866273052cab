r"""3. Split first: the text becomes pieces, and no merge crosses the end of a piece.

A piece is roughly a word with the space at its front. Training learns words and no word pairs: "dog" is the
same token in "dog." and "dog!". Pieces also make real tokenizers fast, because most pieces of a text repeat.

Split patterns need the `regex` module, because Python's `re` does not know the classes of Unicode, such as
`\p{L}`.
"""

from itertools import chain
from typing import TYPE_CHECKING, ClassVar, TypeAlias

from .naive import NaiveBPETokenizer, learn_merges
from .smallest import BasicBPE
from .text import TokenizerError

if TYPE_CHECKING:
    import regex

Pattern: TypeAlias = "str | regex.Pattern[str]"

# Contractions; a word, a number or punctuation with the space at its front; white space without its last
# space if a word follows. https://github.com/openai/gpt-2/blob/master/src/encoder.py
GPT2_SPLIT_PATTERN = r"'(?:[sdmt]|ll|ve|re)| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"

# Newer: contractions in capitals too, any character at the front of a word, numbers of at most three digits,
# line ends separate from spaces. https://github.com/openai/tiktoken/blob/main/tiktoken_ext/openai_public.py
GPT4_SPLIT_PATTERN = (
    r"'(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}++|\p{N}{1,3}+| ?[^\s\p{L}\p{N}]++[\r\n]*+"
    r"|\s++$|\s*[\r\n]|\s+(?!\S)|\s"
)


def split(text: str, pattern: Pattern) -> list[str]:
    r"""Split a text into the matches of a pattern and the text between them. Nothing is lost.

    Two differences to Rust's regex engines: `$` also matches before a final line end (`\Z` does not), and
    after an empty match another alternative may match at the same position.

    Args:
        text: The text to split.
        pattern: A regular expression of the `regex` module, https://pypi.org/project/regex/, which may be
            compiled. Empty matches are not pieces.

    Returns:
        The pieces, in order; joined, they are the text.

    Raises:
        TokenizerError: The pattern is not a regular expression.

    >>> split("Hello, world's end  (2026)", GPT2_SPLIT_PATTERN)
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


def compiled(pattern: Pattern) -> "regex.Pattern[str]":
    """Compile a split pattern.

    Raises:
        ImportError: The `regex` module is not installed.
        TokenizerError: The pattern is not a regular expression.
    """
    try:
        import regex
    except ImportError as error:
        message = "split patterns need the regex module: pip install regex"
        raise ImportError(message, name=error.name) from error
    try:
        return regex.compile(pattern)
    except regex.error as error:
        raise TokenizerError(f"the split pattern {pattern!r} is not a regular expression: {error}") from error


class RegexBPE(BasicBPE):
    """The smallest tokenizer once more, on the pieces of GPT-4's pattern.

    Attributes:
        regex_pattern: The split pattern. Change it before training.

    >>> RegexBPE(258).train("dog. dog! dog?").encode("dog. dog!")
    [257, 46, 32, 257, 33]
    """

    regex_pattern: str = GPT4_SPLIT_PATTERN

    def train(self, text: str) -> "RegexBPE":
        """Learn the merges of the pieces of a text."""
        words = [(piece.encode(), 1) for piece in split(text, self.regex_pattern)]
        for merge in learn_merges(words, range(256, self.vocab_size)):
            self.merges[merge.pair] = merge.new_id
            self.vocab[merge.new_id] = self.vocab[merge.pair[0]] + self.vocab[merge.pair[1]]
        return self

    def encode(self, text: str) -> list[int]:
        """Turn a text into ids, piece by piece."""
        return list(chain.from_iterable(map(super().encode, split(text, self.regex_pattern))))


class RegexBPETokenizer(NaiveBPETokenizer):
    """Byte-pair encoding of pieces. `<|endoftext|>` is a special token, as in GPT-4.

    Args:
        pattern: The split pattern; None is GPT-4's.

    Raises:
        TokenizerError: The pattern is not a regular expression.

    >>> tokenizer = RegexBPETokenizer().train("low lower lowest flow flower", 260)
    >>> [tokenizer.vocab[token_id] for token_id in tokenizer.merges.values()]
    [b'lo', b'low', b'lowe', b' lowe']
    >>> tokenizer.encode("lower flow<|endoftext|>", allowed_special="all")
    [258, 114, 32, 102, 257, 100257]
    """

    GPT2_SPLIT_PATTERN: ClassVar = GPT2_SPLIT_PATTERN
    GPT4_SPLIT_PATTERN: ClassVar = GPT4_SPLIT_PATTERN

    def __init__(self, pattern: str | None = None) -> None:
        super().__init__()
        self.pattern = GPT4_SPLIT_PATTERN if pattern is None else pattern
        compiled(self.pattern)
        self.register_special_tokens()

    def split(self, text: str) -> list[str]:
        """Split a text with the split pattern."""
        return split(text, self.pattern)
