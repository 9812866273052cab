"""7. GPT-4's tokenizer from its ranks: a rank file has tokens, but no merges, and merging finds them again.

OpenAI publishes a line for each token: its bytes in base64, and its rank. The rank is both the id and the
order of learning. The bytes have the first ranks, in an order that is not theirs.
"""

from base64 import b64decode
from collections.abc import Mapping
from pathlib import Path

from .naive import apply_merges
from .smallest import PairTable
from .splitting import RegexBPETokenizer
from .text import FilePath, TokenizerError, printable


def read_ranks(path: FilePath) -> dict[bytes, int]:
    """Read the rank of each token from a `.tiktoken` file.

    Raises:
        TokenizerError: A line is not a token in base64, a space and a rank.
    """
    ranks: dict[bytes, int] = {}
    for number, line in enumerate(Path(path).read_bytes().splitlines(), 1):
        try:
            token, rank = line.split()
            ranks[b64decode(token, validate=True)] = int(rank)
        except ValueError as error:
            raise TokenizerError(
                f"{path}, line {number}: not a token in base64 and a rank: {error}"
            ) from error
    return ranks


def from_ranks(
    ranks: Mapping[bytes, int],
    pattern: str | None = None,
    special_tokens: Mapping[str, int] | None = None,
) -> RegexBPETokenizer:
    """Return the tokenizer of a rank file.

    A token is encoded with the merges of the tokens that come first. Two ids remain: they are its merge.

    Args:
        ranks: The rank of each token: its id.
        pattern: The split pattern; None is GPT-4's.
        special_tokens: The id of each special token; None is `{"<|endoftext|>": 100257}`.

    Raises:
        TokenizerError: A byte has no rank, or no merge makes a token.

    >>> ranks = {bytes([byte]): byte for byte in range(256)} | {b"lo": 256, b"low": 257}
    >>> from_ranks(ranks).encode("slow")
    [115, 257]
    """
    merges: PairTable = {}
    for token, rank in sorted(ranks.items(), key=lambda entry: entry[1]):
        try:
            ids = apply_merges([ranks[bytes([byte])] for byte in token], merges, ranks=merges)
        except KeyError as error:
            raise TokenizerError(f"the byte {error} has no rank") from error
        if len(ids) > 2:
            raise TokenizerError(f"rank {rank}: no merge of two tokens makes {printable(token)}")
        if len(ids) == 2:
            merges[ids[0], ids[1]] = rank
    tokenizer = RegexBPETokenizer(pattern)
    tokenizer.become({rank: token for token, rank in ranks.items()}, merges)
    tokenizer.register_special_tokens(special_tokens)
    return tokenizer
