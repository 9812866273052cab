"""Whether the ids of a model are ranks: what a rank file or a `tiktoken.Encoding` can hold of its merges."""

from __future__ import annotations

from itertools import pairwise

from bpe_tokenizer import _core
from bpe_tokenizer.errors import FormatError, ModelError
from bpe_tokenizer.model import AddedToken

__all__ = ["ranks_from_model"]


def ranks_from_model(core: _core.Model, name: str) -> dict[bytes, int]:
    r"""Return the ranks with which tiktoken gives exactly the ids of a model.

    tiktoken knows no merges. It takes a piece that is a token for that token; in any other it joins, again
    and again, the neighbours whose bytes together are the token of the lowest rank, the leftmost of equal
    ones. Call the model that does so R; its merges D, one a token, are derived from the ranks by the core:
    D joins the two tokens that are left of a token's bytes right before they become one.

    The model M is accepted if

    1. no two of its tokens have the same bytes;
    2. every merge makes a token that text may become (no special one), and what they make has ids that
       never fall along the list of merges;
    3. D is part of M's merges; and
    4. M takes a piece that is a token for that token too, or D makes every token.

    Then M and R agree on every piece. If the piece is a token, R gives that token; so does M if it looks
    pieces up, and otherwise D makes every token by (4), which the following shows M to do as R does. If it
    is none, both start with its bytes; let them have come to the same row of tokens. In that row, consider
    neighbours whose bytes together are a token T. Nothing has been joined across the edges of this stretch,
    and joins outside it do not touch it, so it went through the same rows as the bytes of T alone would
    under R, down to these two; so the two are D's pair for T. Hence D's pairs are the only ones in the row
    that R joins, and, since what a pair of M makes is a token by (2), also the only ones that M joins,
    whichever further merges it has. R joins the pair with the lowest id of T, and by (2) and (3) M the same
    one, both the leftmost of equal ones. So the next rows agree, until neither finds a pair.

    Args:
        core: A model that treats text in a way that the format can hold.
        name: The format, for messages.

    Raises:
        FormatError: The model's ids are not ranks; names the token or the merge.

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
                f"merges: {name} cannot hold that {left!r} and {right!r} are not merged: "
                f"together they are the token {left + right!r}, and its readers would merge them"
            )
    if not core.ignore_merges:
        unmade = [token for token in ranks if len(token) > 1]
        if len(unmade) > len(derived):
            made = {left + right for left, right in derived}
            token = next(token for token in unmade if token not in made)
            raise FormatError(
                f"ignore_merges: {name} cannot hold that the piece {token!r} is not the token {token!r}, "
                f"which no merges make: its readers look pieces up"
            )
    return ranks


def _ranks(core: _core.Model, added: dict[int, AddedToken], name: str) -> dict[bytes, int]:
    """The tokens that text may become; (1)."""
    ranks: dict[bytes, int] = {}
    inside = set(core.added_ids_in_vocab)
    for token_id, token in core.vocab.items():
        if token_id in added and token_id not in inside:
            continue
        if token in ranks:
            raise FormatError(
                f"vocab: the ids {ranks[token]} and {token_id} are both the token {token!r}; "
                f"{name} can hold only one"
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
    """(2)."""
    products = [left + right for left, right in merges]
    for token in products:
        if token not in ranks:
            raise FormatError(
                f"merges: {name} cannot hold a merge that makes the special token {token!r}; "
                "its readers never make one of text"
            )
    for before, after in pairwise(products):
        if ranks[before] > ranks[after]:
            raise FormatError(
                f"merges: {name} cannot hold that the token {before!r} (id {ranks[before]}) is merged before "
                f"{after!r} (id {ranks[after]}): its readers merge in the order of the ids"
            )
