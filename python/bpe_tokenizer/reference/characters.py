"""4. Characters instead of bytes, and the files that OpenAI published with GPT-2.

A token is a string here. A space is written `Ġ`, so that it is visible, and so that spaces can separate the
columns of files. GPT-2 also writes each of the 256 bytes as a printable character: text becomes bytes, bytes
become characters, and merging works on the characters.
"""

from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from . import saving
from .naive import NaiveBPETokenizer
from .smallest import Pair, PairTable, count_pairs, merge_pair
from .splitting import GPT2_SPLIT_PATTERN, split
from .text import FilePath, replace_surrogates

if TYPE_CHECKING:
    from typing import Self

# Swaps the two characters, so that a text with a "Ġ" survives a round trip.
SWAP_SPACE = str.maketrans(" Ġ", "Ġ ")


def byte_characters() -> list[str]:
    r"""Return GPT-2's printable character of each byte.

    A byte that is a visible character in Latin-1 becomes that character. The others (white space, control
    characters, the soft hyphen) become the characters from U+0100, in order.

    Source: `bytes_to_unicode` in https://github.com/openai/gpt-2/blob/master/src/encoder.py

    >>> characters = byte_characters()
    >>> characters[ord("a")], characters[ord(" ")], characters[ord("\n")]
    ('a', 'Ġ', 'Ċ')
    """
    visible = {*range(ord("!"), ord("~") + 1), *range(ord("¡"), ord("¬") + 1), *range(ord("®"), ord("ÿ") + 1)}
    others = iter(range(256, 512))
    return [chr(byte if byte in visible else next(others)) for byte in range(256)]


BYTE_CHARACTERS = byte_characters()


class CharBPETokenizer(NaiveBPETokenizer):
    """Byte-pair encoding of characters, with `Ġ` for the space.

    The smallest tokens are the first 256 characters of Unicode, `Ġ`, and the other characters of the training
    text. No other character can be encoded, so real tokenizers start from bytes.

    Args:
        pattern: The split pattern; None or "" does not split: merges cross words.
        byte_level: Whether to start from bytes, each written as a printable character as in GPT-2's files.
            Then no character is unknown.

    Attributes:
        vocab: The token of each id, with special tokens. `inverse_vocab` is the id of each token.
        bpe_merges: The id that each pair of ids became, in the order of the ranks.
        bpe_ranks: The rank of each pair of tokens.

    >>> tokenizer = CharBPETokenizer().train("the cat in the hat", 260)
    >>> tokenizer.bpe_ranks
    {('t', 'h'): 0, ('th', 'e'): 1}
    >>> [tokenizer.vocab[i] for i in tokenizer.encode("the cat")]
    ['the', 'Ġ', 'c', 'a', 't']
    >>> tokenizer.encode("中")
    Traceback (most recent call last):
        ...
    bpe_tokenizer.reference.text.TokenizerError: the token '中' is not in the vocabulary: train on a text ...
    """

    vocab: dict[int, str]  # type: ignore[assignment]  # Strings here, bytes in the base class.
    inverse_vocab: dict[str, int]  # type: ignore[assignment]

    def __init__(self, pattern: str | None = None, byte_level: bool = False) -> None:
        super().__init__()
        self.pattern = pattern or ""
        self.byte_level = byte_level
        self.split("")

    def become(self, vocab: Mapping[int, Any], merges: PairTable) -> None:
        """Replace the vocabulary and the merges. The vocabulary has the special tokens too."""
        super().become(dict[int, Any](vocab) | self.inverse_special_tokens, merges)
        self.bpe_merges = self.merges
        self.bpe_ranks = {(self.vocab[a], self.vocab[b]): number for (a, b), number in self.ranks.items()}

    def split(self, text: str) -> list[str]:
        """Split a text with the split pattern, if there is one."""
        return split(text, self.pattern) if self.pattern else super().split(text)

    def train(  # type: ignore[override]  # The order of the arguments is that of the tutorial.
        self,
        text: str,
        vocab_size: int,
        allowed_special: Collection[str] = frozenset({"<|endoftext|>"}),
        verbose: bool = False,
    ) -> "Self":
        """Learn a vocabulary from a text.

        Args:
            text: The text to learn from. It is cut at its special tokens.
            vocab_size: The number of ids: the smallest tokens, the special tokens and the learned tokens.
            allowed_special: The special tokens. Their ids follow those of the smallest tokens.
            verbose: Print each merge.

        Returns:
            The tokenizer itself.

        Raises:
            TokenizerError: The text is empty, or `vocab_size` is too small.
        """
        first = len(self.smallest_tokens(text := replace_surrogates(text)))
        texts = allowed_special if isinstance(allowed_special, Sequence) else sorted(allowed_special)
        special = {text: first + number for number, text in enumerate(texts)}
        return super().train(text, vocab_size, special_tokens=special, verbose=verbose)

    def smallest_tokens(self, text: str) -> list[str]:  # type: ignore[override]
        """Return the first 256 characters of Unicode and the others of the text, or those of the bytes.

        Each group is in the order of the code points. For the bytes this is the order of GPT-2's files, where
        id 0 is "!". In a vocabulary of characters, the token " " is a `Ġ` in the text.
        """
        if self.byte_level:
            return sorted(BYTE_CHARACTERS)
        first = [*map(chr, range(256))]
        return first + sorted({"Ġ", *text.translate(SWAP_SPACE)}.difference(first))

    def initial_tokens(self, piece: str) -> list[str]:  # type: ignore[override]
        """Return the characters of a piece, or the characters of its bytes.

        >>> CharBPETokenizer().initial_tokens(" né")
        ['Ġ', 'n', 'é']
        >>> CharBPETokenizer(byte_level=True).initial_tokens(" né")
        ['Ġ', 'n', 'Ã', '©']
        """
        if self.byte_level:
            return [BYTE_CHARACTERS[byte] for byte in piece.encode()]
        return list(piece.translate(SWAP_SPACE))

    def token_bytes(self, token: str) -> bytes:  # type: ignore[override]
        """Return the UTF-8 of a token's text.

        >>> CharBPETokenizer().token_bytes("Ġcat")
        b' cat'
        """
        if self.byte_level:
            return bytes(BYTE_CHARACTERS.index(character) for character in token)
        return token.translate(SWAP_SPACE).encode()

    @staticmethod
    def find_freq_pair(token_ids: Sequence[int], mode: str = "most") -> Pair | None:
        """Return the most or the least frequent pair, or None if there is none.

        >>> CharBPETokenizer.find_freq_pair([1, 2, 3, 1, 2])
        (1, 2)
        >>> CharBPETokenizer.find_freq_pair([1, 2, 1, 2], mode="least")
        (2, 1)
        """
        if mode not in ("most", "least"):
            raise ValueError("Invalid mode. Choose 'most' or 'least'.")
        counts = count_pairs(token_ids)
        best = max if mode == "most" else min
        return best(counts, key=counts.__getitem__, default=None)

    @staticmethod
    def replace_pair(token_ids: Sequence[int], pair_id: Pair, new_id: int) -> list[int]:
        """Replace every occurrence of a pair: `merge_pair` under the tutorial's name."""
        return merge_pair(token_ids, pair_id, new_id)

    def save_vocab_and_merges(self, vocab_path: FilePath, bpe_merges_path: FilePath) -> None:
        """Write the two files of GPT-2: the id of each token as JSON, and a line for each merge."""
        self.check_trained()
        saving.write_openai_files(self, vocab_path, bpe_merges_path)

    def load_vocab_and_merges_from_openai(self, vocab_path: FilePath, bpe_merges_path: FilePath) -> "Self":
        """Replace this tokenizer by that of GPT-2's files, and return it.

        It starts from bytes if the single characters of the vocabulary are those of bytes, and then it splits
        with GPT-2's pattern if it has none. Tokens that are neither single characters nor made by a merge
        become special tokens.

        Args:
            vocab_path: `encoder.json` or `vocab.json`: the id of each token, as JSON.
            bpe_merges_path: `vocab.bpe` or `merges.txt`: one merge a line, its two parts separated by a
                space, in the order of the ranks. A first line `#version: ...` is skipped.

        Raises:
            TokenizerError: A file is invalid, or the two do not match: the message says where.
        """
        ids, merges = saving.read_openai_files(vocab_path, bpe_merges_path)
        known = {token for token in ids if len(token) == 1} | {a + b for a, b in merges}
        self.byte_level = known.issuperset(BYTE_CHARACTERS) and " " not in known
        self.pattern = self.pattern or (GPT2_SPLIT_PATTERN if self.byte_level else "")
        self.special_tokens = {text: token_id for text, token_id in ids.items() if text not in known}
        self.become({ids[t]: t for t in known}, {(ids[a], ids[b]): ids[a + b] for a, b in merges})
        return self


BPETokenizerSimple = CharBPETokenizer
