"""Checks that the ids of a model are ranks, so that a rank file or a `tiktoken.Encoding` can hold it."""

from __future__ import annotations

from itertools import pairwise

from bpe_tokenizer import _core
from bpe_tokenizer.errors import FormatError, ModelError, shorten
from bpe_tokenizer.model import AddedToken

__all__ = ["ranks_from_model"]


def ranks_from_model(core: _core.Model, name: str) -> dict[bytes, int]:
    r"""Return the ranks with which tiktoken gives exactly the ids of a model.

    tiktoken has no merges. A piece that is a token becomes that token. In any other piece tiktoken repeatedly
    joins the two neighbours whose bytes together are the token of the lowest rank, the leftmost of equal
    ones. Call this model R. The core derives its merges D from the ranks, one for each token: D joins the two
    tokens that remain of a token's bytes just before they become one.

    The model M is accepted if

    1. no two of its tokens have the same bytes;
    2. every merge makes an ordinary token (not a special one), and the ids of these tokens never decrease
       along the list of merges;
    3. D is a subset of M's merges; and
    4. M too takes a piece that is a token for that token, or D makes every token.

    Then M and R agree on every piece. If the piece is a token, R gives that token. M gives it too if it looks
    pieces up; if not, D makes every token by (4), and the following shows that M merges as R does. If the
    piece is not a token, both start with its bytes. Assume that they have reached the same row of tokens.
    Consider two neighbours in that row whose bytes together are a token T. Nothing has been joined across
    the ends of this range, and joins outside do not affect it. So the range went through the same rows as
    the bytes of T alone under R, and its two tokens are D's pair for T. Hence R joins only pairs of D in the
    row. So does M, whichever further merges it has, because each of its merges makes a token by (2). R joins
    the pair with the lowest id of T, and so does M by (2) and (3), both the leftmost of equal ones. So the
    next rows agree, until neither finds a pair.

    Args:
        core: A model that passes `require_byte_level`.
        name: The format, for messages.

    Raises:
        FormatError: The ids are not ranks; names the token or the merge.

    >>> vocab = {byte: bytes([byte]) for byte in range(256)} | {256: b"ab", 257: b"abc"}
    >>> model = _core.Model(vocab, [(b"a", b"b"), (b"ab", b"c")], split_patterns=[])
    >>> ranks_from_model(model, ".tiktoken")[b"abc"]
    257
    """
    added = {token.id: token for token in core.added_tokens}
    ranks = _ranks(core, added, name)
    derived = _derived(ranks, name)
    merges = core.merges
    if merges != derived:
        _check_order(merges, ranks, name)
        missing = set(derived).difference(merges)
        if missing:
            left, right = min(missing, key=lambda pair: ranks[pair[0] + pair[1]])
            raise FormatError(
                f"merges: {name} cannot hold that {shorten(left)} and {shorten(right)} are not merged: "
                f"its readers merge them into the token {shorten(left + right)}"
            )
    if not core.ignore_merges:
        unmade = [token for token in ranks if len(token) > 1]
        if len(unmade) > len(derived):
            made = {left + right for left, right in derived}
            token = next(token for token in unmade if token not in made)
            raise FormatError(
                f"ignore_merges: no merges make the token {shorten(token)}, but readers of {name} take the "
                "piece for it"
            )
    return ranks


def _ranks(core: _core.Model, added: dict[int, AddedToken], name: str) -> dict[bytes, int]:
    """The ordinary tokens with their ids; checks (1)."""
    ranks: dict[bytes, int] = {}
    inside = set(core.added_ids_in_vocab)
    for token_id, token in core.vocab.items():
        if token_id in added and token_id not in inside:
            continue
        if token in ranks:
            raise FormatError(
                f"vocab: duplicate token {shorten(token)}: ids {ranks[token]} and {token_id}; {name} can "
                "hold only one"
            )
        ranks[token] = token_id
    for token_id in inside:
        del ranks[added[token_id].content.encode()]
    return ranks


def _derived(ranks: dict[bytes, int], name: str) -> list[tuple[bytes, bytes]]:
    try:
        return _core.Model({rank: token for token, rank in ranks.items()}, None, split_patterns=[]).merges
    except ModelError as error:
        raise FormatError(f"vocab: {name} cannot hold it: {error}") from error


def _check_order(merges: list[tuple[bytes, bytes]], ranks: dict[bytes, int], name: str) -> None:
    """Check (2)."""
    products = [left + right for left, right in merges]
    for token in products:
        if token not in ranks:
            raise FormatError(
                f"merges: {name} cannot hold a merge that makes the special token {shorten(token)}; "
                "its readers never make one of text"
            )
    for before, after in pairwise(products):
        if ranks[before] > ranks[after]:
            raise FormatError(
                f"merges: {name} cannot hold that the token {shorten(before)} (id {ranks[before]}) is merged "
                f"before {shorten(after)} (id {ranks[after]}): its readers merge in the order of the ids"
            )
