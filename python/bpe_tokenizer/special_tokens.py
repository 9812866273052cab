"""Special tokens: published sets, the ids they get, their roles, and the sets that arguments name."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping
from itertools import count
from operator import attrgetter
from typing import Final, Literal, TypeAlias, get_args

from bpe_tokenizer import _core
from bpe_tokenizer.arguments import TextCollection, check_integer, items_in_turn, items_of
from bpe_tokenizer.errors import (
    ArgumentTypeError,
    ModelError,
    OptionError,
    SpecialTokenError,
    did_you_mean,
    shorten,
)
from bpe_tokenizer.model import AddedToken

__all__ = [
    "CHATML_SPECIAL_TOKENS",
    "LLAMA3_SPECIAL_TOKENS",
    "ROLES",
    "AllowedSpecial",
    "DisallowedSpecial",
    "Role",
    "SpecialTokens",
    "assign_ids",
    "checked_id",
    "checked_tokens",
    "document_end",
    "find_roles",
    "ids_in_vocab",
    "known_or_next_ids",
    "new_special_tokens",
    "special_token_names",
]

SpecialTokens: TypeAlias = Mapping[str, int] | Iterable[str]
AllowedSpecial: TypeAlias = Literal["none", "all"] | TextCollection
DisallowedSpecial: TypeAlias = Literal["all"] | TextCollection
Role: TypeAlias = Literal["bos", "eos", "pad", "unk"]

# https://github.com/meta-llama/llama-models/blob/main/models/llama3/tokenizer.py
LLAMA3_SPECIAL_TOKENS: Final[dict[str, int]] = {
    "<|begin_of_text|>": 128000,
    "<|end_of_text|>": 128001,
    "<|reserved_special_token_0|>": 128002,
    "<|reserved_special_token_1|>": 128003,
    "<|finetune_right_pad_id|>": 128004,
    "<|reserved_special_token_2|>": 128005,
    "<|start_header_id|>": 128006,
    "<|end_header_id|>": 128007,
    "<|eom_id|>": 128008,
    "<|eot_id|>": 128009,
    "<|python_tag|>": 128010,
}

# https://github.com/openai/openai-python/blob/release-v0.28.0/chatml.md
CHATML_SPECIAL_TOKENS: Final[dict[str, int]] = {"<|im_start|>": 32001, "<|im_end|>": 32002}

# What is between the brackets of a token that ends a document, without "_" and "-"; the plainest first.
_DOCUMENT_ENDS: Final = (
    *("endoftext", "endofdocument", "endofdoc", "eod", "eos", "/s", "endofsequence", "endofsentence"),
    *("/doc", "/document", "/text", "documentend", "docend", "textend", "end"),
)
# The names of tokens that end a turn of a chat.
_TURN_ENDS: Final = frozenset(
    ("imend", "eot", "eotid", "eom", "eomid", "endofturn", "endofturntoken", "return", "end")
)
_BRACKETS: Final = r"(?:<[|｜]?|\[)(/?\w[\w ▁-]*)(?:[|｜]?>|\])"
ROLES: Final[tuple[Role, ...]] = get_args(Role)


def checked_tokens(special_tokens: SpecialTokens) -> Mapping[str, int] | list[str]:
    """Return the special tokens as a mapping or a list, with every text checked.

    Raises:
        ModelError: A text is empty, a duplicate, or holds a lone surrogate.
        ArgumentTypeError: The argument is a single `str` or a set, or an item is not a `str`.
    """
    if isinstance(special_tokens, str):
        raise ArgumentTypeError(
            f"special_tokens must be a list or a dict, not a str: write [{shorten(special_tokens)}]"
        )
    if isinstance(special_tokens, bytes) or not isinstance(special_tokens, Iterable):
        raise ArgumentTypeError(
            f"special_tokens must be a list or a dict, not {type(special_tokens).__name__}"
        )
    if isinstance(special_tokens, set | frozenset):
        raise ArgumentTypeError(
            "special_tokens must be a list or a dict, not a set, whose order, and so the ids, would differ "
            "from process to process"
        )
    # A copy: what is checked here is what callers read.
    tokens = dict(special_tokens) if isinstance(special_tokens, Mapping) else items_of(special_tokens)
    seen = set()
    for content in tokens:
        if not isinstance(content, str):
            raise ArgumentTypeError(
                f"a special token must be a str, not {type(content).__name__}: {shorten(content)}"
            )
        if not content:
            raise ModelError("a special token is empty: it would be found everywhere")
        if any("\ud800" <= character <= "\udfff" for character in content):
            raise ModelError(
                f"the special token {shorten(content)} holds a lone surrogate, which no text can hold"
            )
        if content in seen:
            raise ModelError(f"the special token {shorten(content)} is listed twice")
        seen.add(content)
    return tokens


def checked_id(content: str, value: object) -> int:
    """Return the id of a special token as an `int`.

    Raises:
        ModelError: It is negative or above 2**32 - 2.
        ArgumentTypeError: It is not an integer.
    """
    name = f"the id of special token {shorten(content)}"
    return check_integer(name, value, 0, maximum=2**32 - 2, error=ModelError)


def assign_ids(special_tokens: SpecialTokens | None, vocab_size: int) -> list[AddedToken]:
    """Assign ids to the special tokens of a training run.

    Args:
        special_tokens: A list, which takes the ids after the bytes (256, 257, ...), or a dict of text to
            id. An id below `vocab_size` is reserved there; others lie outside the vocabulary.
        vocab_size: The number of ids that training may fill.

    Returns:
        The tokens in the order of their ids.

    Raises:
        ModelError: A text is empty or a duplicate; an id is below 256, too large or a duplicate.
        OptionError: The list does not fit into `vocab_size`.

    >>> assign_ids(["<a>", "<b>"], vocab_size=300)[1].id
    257
    """
    if special_tokens is None:
        return []
    tokens = checked_tokens(special_tokens)
    if not isinstance(tokens, Mapping):
        if 256 + len(tokens) > vocab_size:
            raise OptionError(
                f"{len(tokens)} special tokens after the 256 bytes do not fit into vocab_size={vocab_size}; "
                f"ask for at least {256 + len(tokens)}, or name their ids in a dict"
            )
        return [AddedToken(content, 256 + index) for index, content in enumerate(tokens)]
    owners: dict[int, str] = {}
    for content, value in tokens.items():
        token_id = checked_id(content, value)
        if token_id < 256:
            raise ModelError(
                f"the id of special token {shorten(content)} is {token_id}; ids 0 to 255 are the bytes, "
                "use 256 or more"
            )
        if token_id in owners:
            raise ModelError(
                f"special tokens {shorten(owners[token_id])} and {shorten(content)} both have the id "
                f"{token_id}"
            )
        owners[token_id] = content
    return [AddedToken(owners[token_id], token_id) for token_id in sorted(owners)]


def new_special_tokens(core: _core.Model, special_tokens: SpecialTokens) -> list[AddedToken]:
    """Return the special tokens that a model does not have yet.

    Args:
        core: The model.
        special_tokens: A list, which takes the ids after the largest in use, or a dict of text to id.

    Raises:
        ModelError: A text or an id is taken, invalid, or a duplicate.
    """
    wanted = checked_tokens(special_tokens)
    find = core.added_token_of if len(wanted) == 1 else {it.content: it for it in core.added_tokens}.get
    if not isinstance(wanted, Mapping):
        known = {content: token.id for content in wanted if (token := find(content))}
        wanted = known_or_next_ids(wanted, known, core.n_vocab - 1)
    new: dict[int, AddedToken] = {}
    for content, value in wanted.items():
        token_id = checked_id(content, value)
        old = find(content)
        if old is not None and old.id != token_id:
            raise ModelError(
                f"special token {shorten(content)} has the id {old.id} already; it cannot get {token_id}"
            )
        owner = new[token_id].content.encode() if token_id in new else core.token(token_id)
        _check_owner(owner, token_id, content)
        if old is None or not old.special:
            new[token_id] = old._replace(special=True) if old else AddedToken(content, token_id)
    return list(new.values())


def ids_in_vocab(vocab: Mapping[int, bytes], special_tokens: SpecialTokens | None) -> dict[str, int]:
    """Return the ids of special tokens that a vocabulary holds already, or that follow it.

    Raises:
        ModelError: A text is invalid, has another id in the vocabulary, or its id belongs to another token.
    """
    wanted = checked_tokens(() if special_tokens is None else special_tokens)
    texts = {text.encode(): text for text in wanted}
    inside = {texts[token]: token_id for token_id, token in vocab.items() if token in texts}
    if not isinstance(wanted, Mapping):
        return known_or_next_ids(wanted, inside, max(vocab, default=-1))
    for text, token_id in wanted.items():
        if inside.get(text, token_id) != token_id:
            raise ModelError(
                f"special token {shorten(text)} has the id {inside[text]} in vocab; it cannot get {token_id}"
            )
        if text not in inside:
            _check_owner(vocab.get(token_id), token_id, text)
    return dict(wanted)


def known_or_next_ids(tokens: Iterable[str], known: Mapping[str, int], largest: int) -> dict[str, int]:
    """Return the ids of a list of special tokens: the known one, or else the next id after the largest.

    >>> known_or_next_ids(["<a>", "<b>", "<c>"], {"<b>": 5}, 9)
    {'<a>': 10, '<b>': 5, '<c>': 11}
    """
    next_ids = count(largest + 1)
    return {text: known[text] if text in known else next(next_ids) for text in tokens}


def _check_owner(owner: bytes | None, token_id: int, content: str) -> None:
    """Raise ModelError if an id belongs to another token."""
    if owner is not None and owner != content.encode():
        raise ModelError(
            f"special token {shorten(content)} cannot get the id {token_id}: "
            f"it belongs to the token {shorten(owner)}"
        )


def find_roles(tokens: Iterable[AddedToken]) -> dict[Role, str]:
    """Find the tokens of the roles BOS, EOS, padding and unknown by their names.

    The names are `bos`, `begin_of_text`, `<s>`; `eos`, `end_of_text`, `endoftext`, `</s>`; `pad`, `padding`;
    `unk`, `unknown`.
    The first name that a token's text contains as a word, in either case, decides; of several tokens that
    contain it, the one with the smallest id. (A word: `<|videos|>` is not an EOS token.)

    Args:
        tokens: Special tokens.

    Returns:
        The text of the token of each role that has one.

    >>> find_roles([AddedToken("<|begin_of_text|>", 300), AddedToken("<|right_pad_id|>", 301)])
    {'bos': '<|begin_of_text|>', 'pad': '<|right_pad_id|>'}
    """
    return _core.find_roles([token.content for token in sorted(tokens, key=attrgetter("id"))])


def document_end(tokens: Iterable[str], eos_token: str | None = None) -> str | None:
    """Return the special token that ends documents: EOS, or one whose name is plainly that; None without one.

    An EOS that ends the turn of a chat (`<|im_end|>`, `<|eot_id|>`, `<end_of_turn>`), as instruct models have
    it, gives way to a plain end of a document.

    These are `<|endoftext|>`, `<|end_of_document|>`, `<｜end▁of▁sentence｜>`, `</s>`, `<eos>`, `[EOS]`,
    `<|eod|>`, `<|end|>` and such; of several, the first name of `_DOCUMENT_ENDS` decides, and of several with
    this name the first.

    >>> document_end(["<|im_end|>", "<|end|>"])
    '<|end|>'
    >>> document_end(["<|endoftext|>", "<|im_end|>"], "<|im_end|>")
    '<|endoftext|>'
    """
    if eos_token is not None and _plain_name(eos_token) not in _TURN_ENDS:
        return eos_token
    found: dict[str | None, str] = {}
    for token in tokens:
        found.setdefault(_plain_name(token), token)
    return next((found[name] for name in _DOCUMENT_ENDS if name in found), eos_token)


def _plain_name(token: str) -> str | None:
    inside = re.fullmatch(_BRACKETS, token)
    return None if inside is None else re.sub(r"[ _▁-]", "", inside[1]).lower()


def special_token_names(
    option: str, value: AllowedSpecial | DisallowedSpecial, known: Mapping[str, object]
) -> Collection[str]:
    """Return the special tokens that `allowed_special` or `disallowed_special` names.

    Args:
        option: The argument's name, for messages.
        value: `"all"`, `"none"` (`allowed_special` only), or a collection of token texts.
        known: The special tokens of the model.

    Raises:
        ArgumentTypeError: It is not a collection of `str`.
        OptionError: The value is another `str`.
        SpecialTokenError: It names an unknown token.
    """
    if isinstance(value, str):
        if value == "all":
            return known.keys()
        if value == "none" and option == "allowed_special":
            return ()
        words = "'none', 'all'" if option == "allowed_special" else "(), 'all'"
        raise OptionError(f"{option} is {shorten(value)}; it must be {words} or a set of special tokens")
    if isinstance(value, bytes) or not isinstance(value, Iterable):
        raise ArgumentTypeError(
            f"{option} must be a str or a set of special tokens, not {type(value).__name__}"
        )
    names = set()
    for name in items_of(value) if isinstance(value, set) else items_in_turn(value):
        if not isinstance(name, str):
            raise ArgumentTypeError(
                f"{option} must hold the texts of special tokens, not {type(name).__name__}: {shorten(name)}"
            )
        names.add(name)
    for name in sorted(names - known.keys(), key=repr):
        raise SpecialTokenError(
            f"{option} names {shorten(name)}, which is not a special token of this tokenizer"
            f"{did_you_mean(name, known)} `special_tokens` lists them; add_special_tokens() adds one"
        )
    return names
