"""`tokenizers.Tokenizer` over the core."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from pathlib import Path, PurePosixPath
from typing import Any, Literal, NoReturn

from bpe_tokenizer.arguments import check_choice, check_flag, check_integer, check_text
from bpe_tokenizer.compat.tokenizers.encodings import Encoding, Source, absent
from bpe_tokenizer.compiled import CompiledModel
from bpe_tokenizer.errors import ArgumentTypeError, HubError, OptionError, UnknownIdError, shorten
from bpe_tokenizer.formats import huggingface
from bpe_tokenizer.formats.files import read_errors
from bpe_tokenizer.options import RowOptions
from bpe_tokenizer.results import BatchOptions, EncodingResult
from bpe_tokenizer.rows import EncodedText, RowEncoder, is_one_text, to_rows
from bpe_tokenizer.tokenizer import BPETokenizer

__all__ = ["Tokenizer"]

_MAX_ID = 2**32 - 1
_PADDING = {
    "length": None,
    "pad_to_multiple_of": None,
    "pad_id": 0,
    "pad_token": "[PAD]",
    "pad_type_id": 0,
    "direction": "right",
}
_TRUNCATION = {"max_length": None, "stride": 0, "strategy": "longest_first", "direction": "right"}
# The strategies, as a tokenizer.json writes them.
_STRATEGIES = {"LongestFirst": "longest_first", "OnlyFirst": "only_first", "OnlySecond": "only_second"}
_CHOICES = {"direction": ("right", "left"), "strategy": tuple(_STRATEGIES.values())}
_OPTIONAL = frozenset({"length", "pad_to_multiple_of"})


class Tokenizer:
    """A tokenizer of a tokenizer.json, with the methods of `tokenizers.Tokenizer`.

    Args:
        text: The text of the tokenizer.json.
        name: What errors call it.

    Raises:
        FormatError: The core cannot represent it exactly.

    >>> from bpe_tokenizer import BPETokenizer
    >>> tokenizer = Tokenizer.from_tokenizer(BPETokenizer("gpt2", None).train("low low", 257, verbose=False))
    >>> tokenizer.enable_padding(pad_id=0, pad_token="!")
    >>> [encoding.ids for encoding in tokenizer.encode_batch(["low", "l"])]
    [[108, 256], [108, 0]]
    """

    def __init__(self, text: str, name: str = "tokenizer.json") -> None:
        check_text("Tokenizer", text)
        self._text = text
        self._compiled = CompiledModel.compile(huggingface.loads(text, name))
        self._recognises_special = True
        self._padding = _padding_of(self._document.get("padding"))
        self._truncation = _truncation_of(self._document.get("truncation"))

    @cached_property
    def _document(self) -> dict[str, Any]:
        found: dict[str, Any] = json.loads(self._text)
        return found

    @staticmethod
    def from_str(json: str) -> Tokenizer:
        """Load the text of a tokenizer.json.

        Args:
            json: The text.
        """
        return Tokenizer(json)

    @staticmethod
    def from_file(path: str | os.PathLike[str]) -> Tokenizer:
        """Load a tokenizer.json.

        Args:
            path: Its path.

        Raises:
            FormatError: It cannot be read, or the core cannot represent it exactly.
        """
        with read_errors(path):
            return Tokenizer(Path(path).read_text(encoding="utf-8"), os.fspath(path))

    @staticmethod
    def from_pretrained(identifier: str, revision: str = "main", token: str | None = None) -> Tokenizer:
        """Load the tokenizer.json of a repository of the Hugging Face hub.

        Args:
            identifier: The name of the repository.
            revision: A branch, a tag or a commit.
            token: An access token; None for the stored one, if any.

        Raises:
            HubError: The repository or the file is not available.
        """
        from bpe_tokenizer.formats.hub.repository import Repository

        file = Repository(identifier, revision, token).file(PurePosixPath("tokenizer.json"))
        if file is None:
            raise HubError(f"{identifier} has no tokenizer.json; BPETokenizer.load reads other files too")
        return Tokenizer.from_file(file)

    @staticmethod
    def from_tokenizer(tokenizer: BPETokenizer) -> Tokenizer:
        """Return the same tokenizer with this interface.

        Args:
            tokenizer: The tokenizer.

        Raises:
            FormatError: A tokenizer.json cannot hold it.
        """
        if not isinstance(tokenizer, BPETokenizer):
            raise ArgumentTypeError(f"from_tokenizer takes a BPETokenizer, not {type(tokenizer).__name__}")
        return Tokenizer(huggingface.to_json(tokenizer.model).decode("utf-8"))

    # -- settings ----------------------------------------------------------------------------------------

    @property
    def padding(self) -> dict[str, Any] | None:
        """The arguments of `enable_padding`; None without padding."""
        return self._padding and dict(self._padding)

    def enable_padding(self, **settings: Any) -> None:
        """Pad rows: those of a batch to the longest, or all to `length`.

        Args:
            **settings: `direction`, `pad_to_multiple_of`, `pad_id`, `pad_type_id`, `pad_token` and `length`.
        """
        self._padding = _settings("enable_padding", _PADDING, settings)

    def no_padding(self) -> None:
        """Pad no rows."""
        self._padding = None

    @property
    def truncation(self) -> dict[str, Any] | None:
        """The arguments of `enable_truncation`; None without truncation."""
        return self._truncation and dict(self._truncation)

    def enable_truncation(self, max_length: int, **settings: Any) -> None:
        """Truncate rows.

        Args:
            max_length: The number of ids to cut to, with the added ones.
            **settings: `stride`, `strategy` and `direction`.
        """
        found = _settings("enable_truncation", _TRUNCATION, {"max_length": max_length, **settings})
        kept = max_length - sum(map(len, self._compiled.prefix_suffix_ids))
        if found["stride"] and found["stride"] >= kept:
            raise OptionError(
                f"stride is {found['stride']}; it must be less than the {max(kept, 0)} ids of text that "
                "max_length leaves"
            )
        self._truncation = found

    def no_truncation(self) -> None:
        """Truncate no rows."""
        self._truncation = None

    @property
    def encode_special_tokens(self) -> bool:
        """Whether special tokens in a text are encoded as text."""
        return not self._recognises_special

    @encode_special_tokens.setter
    def encode_special_tokens(self, value: bool) -> None:
        self._recognises_special = not check_flag("encode_special_tokens", value)

    # -- encoding ----------------------------------------------------------------------------------------

    def encode(
        self, sequence: Any, pair: Any = None, is_pretokenized: bool = False, add_special_tokens: bool = True
    ) -> Encoding:
        """Encode a text, or a pair of texts.

        Args:
            sequence: The text; a list of words with `is_pretokenized`.
            pair: The second text.
            is_pretokenized: Whether texts are given as words.
            add_special_tokens: Whether to add the ids of the post-processor.
        """
        texts = (sequence,) if pair is None else (sequence, pair)
        return self._encode("encode", [texts], is_pretokenized, add_special_tokens)[0]

    def encode_batch(
        self,
        input: Sequence[Any],  # noqa: A002
        is_pretokenized: bool = False,
        add_special_tokens: bool = True,
    ) -> list[Encoding]:
        """Encode texts and pairs of texts.

        Args:
            input: The texts; a pair is a tuple of two.
            is_pretokenized: Whether texts are given as words.
            add_special_tokens: Whether to add the ids of the post-processor.
        """
        if not isinstance(input, Iterable) or isinstance(input, str | bytes):
            raise ArgumentTypeError(
                f"encode_batch expects a list of texts or of pairs, not {type(input).__name__}"
            )
        batch = [_texts(each, is_pretokenized) for each in input]
        return self._encode("encode_batch", batch, is_pretokenized, add_special_tokens)

    def _encode(
        self,
        method: str,
        batch: Sequence[tuple[Any, ...]],
        is_pretokenized: bool,
        add_special_tokens: bool,
    ) -> list[Encoding]:
        given = [text for texts in batch for text in texts]
        for text in given:
            if isinstance(text, str) is is_pretokenized or not is_one_text(text, is_pretokenized):
                wanted = "a list of str with is_pretokenized=True" if is_pretokenized else "a str"
                raise ArgumentTypeError(f"{method} expects {wanted}, not {shorten(text)}")
        allowed: Literal["all", "none"] = "all" if self._recognises_special else "none"
        encoder = RowEncoder(self._compiled, allowed, RowOptions(is_split_into_words=is_pretokenized))
        ids = iter(encoder.encode(method, given))
        encodings = []
        for texts in batch:
            numbered = (next(ids).ids for _ in texts)
            encoded = [EncodedText(each, word_ids=list(range(len(each)))) for each in numbered]
            sources = [Source(self._compiled, text, self._recognises_special) for text in texts]
            encodings.append(self._encoding(encoded, sources, add_special_tokens))
        if self._padding is not None:
            _pad(encodings, self._padding)
        return encodings

    def _encoding(
        self, encoded: Sequence[EncodedText], sources: Sequence[Source], add_special_tokens: bool
    ) -> Encoding:
        """Return the encoding of one text or pair, truncated. The numbers of its ids are its `word_ids`."""
        is_pair, cut = len(encoded) > 1, self._truncation
        shape = BatchOptions(
            False,
            cut is not None and cut["strategy"],
            cut["max_length"] if cut else None,
            *self._compiled.added_ids(add_special_tokens),
            truncation_side="right" if cut is None else cut["direction"],
        )
        pair_ids = self._compiled.pair_ids(add_special_tokens) if is_pair else None

        def rows(stride: int, with_overflow: bool) -> list[EncodingResult]:
            seconds = [encoded[1]] if is_pair else None
            return to_rows([encoded[0]], seconds, shape, pair_ids, dict, stride, with_overflow)

        types = list(_types(self._document.get("post_processor"), is_pair))
        try:
            (row,), knows_rest = rows(cut["stride"] if cut else 0, True), True
        except OptionError:
            if cut is None or (cut["strategy"] != "longest_first" and cut["stride"]):
                raise
            (row,), knows_rest = rows(0, False), False
        rest = [_encoding(each, types, sources, []) for each in row.overflowing] if knows_rest else None
        return _encoding(row, types, sources, rest)

    # -- decoding ----------------------------------------------------------------------------------------

    def decode(self, ids: Sequence[int], skip_special_tokens: bool = True) -> str:
        """Return the text of ids; ids without a token are skipped.

        Args:
            ids: The ids.
            skip_special_tokens: Whether to leave out special tokens.
        """
        if not isinstance(ids, Iterable):
            raise ArgumentTypeError(f"decode expects a list of ids, not {type(ids).__name__}")
        return self.decode_batch([ids], skip_special_tokens)[0]

    def decode_batch(self, sequences: Sequence[Sequence[int]], skip_special_tokens: bool = True) -> list[str]:
        """Return the texts of rows of ids; ids without a token are skipped.

        Args:
            sequences: The rows.
            skip_special_tokens: Whether to leave out special tokens.
        """
        encoder = self._compiled.encoder
        try:
            return encoder.decode_batch(sequences, skip_special_tokens, "replace")
        except UnknownIdError:
            vocab = self._compiled.vocab
            for row in sequences:
                for token_id in row:
                    check_integer("an id", token_id, 0, maximum=_MAX_ID)
            known = [[token_id for token_id in row if token_id in vocab] for row in sequences]
            return encoder.decode_batch(known, skip_special_tokens, "replace")

    # -- the vocabulary ----------------------------------------------------------------------------------

    def token_to_id(self, token: str) -> int | None:
        """Return the id of a token string; None if there is none.

        Args:
            token: The token string.
        """
        check_text("token_to_id", token)
        return self._compiled.token_ids.get(token)

    def id_to_token(self, id: int) -> str | None:  # noqa: A002
        """Return the token string of an id; None if there is none.

        Args:
            id: The id.
        """
        return self._compiled.token_strings.get(check_integer("an id", id, 0, maximum=_MAX_ID))

    def get_vocab(self, with_added_tokens: bool = True) -> dict[str, int]:
        """Return the id of each token string.

        Args:
            with_added_tokens: Whether to include the added tokens.
        """
        return dict(self._compiled.token_ids if with_added_tokens else self._document["model"]["vocab"])

    def get_vocab_size(self, with_added_tokens: bool = True) -> int:
        """Return the number of tokens.

        Args:
            with_added_tokens: Whether to count the added tokens.
        """
        return len(self.get_vocab(with_added_tokens))

    def __getattr__(self, name: str) -> Any:
        """Return a component as its part of the tokenizer.json, read-only."""
        if name in _COMPONENTS:
            part = self._document.get(name)
            return part and _Component(name, part)
        raise absent(f"Tokenizer.{name}")

    def __setattr__(self, name: str, value: object) -> None:
        if name in _COMPONENTS:
            raise AttributeError(
                f"Tokenizer.{name} is read-only here: change the tokenizer.json, and load it again"
            )
        super().__setattr__(name, value)

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle and copy the text and the settings."""
        settings = ("_padding", "_truncation", "_recognises_special")
        return Tokenizer, (self._text,), {name: getattr(self, name) for name in settings}


class _Component(Mapping[str, Any]):
    """A part of a tokenizer.json, read-only."""

    def __init__(self, name: str, part: Mapping[str, Any]) -> None:
        self._name, self._part = name, part

    def __getitem__(self, key: str) -> Any:
        return self._part[key]

    def __iter__(self) -> Iterator[str]:
        return iter(self._part)

    def __len__(self) -> int:
        return len(self._part)

    def __repr__(self) -> str:
        return repr(self._part)

    def __getattr__(self, name: str) -> NoReturn:
        raise absent(f"Tokenizer.{self._name}.{name}")


_COMPONENTS = frozenset({"decoder", "model", "normalizer", "post_processor", "pre_tokenizer"})


def _texts(given: Any, is_pretokenized: bool) -> tuple[Any, ...]:
    """Return the one or two texts of an item of a batch."""
    parts = isinstance(given, list | tuple) and len(given) == 2
    is_pair = parts and not (is_pretokenized and all(isinstance(part, str) for part in given))
    return tuple(given) if is_pair else (given,)


def _settings(method: str, defaults: Mapping[str, Any], given: Mapping[str, Any]) -> dict[str, Any]:
    unknown = given.keys() - defaults.keys()
    if unknown:
        raise ArgumentTypeError(
            f"{method} has no argument {shorten(min(unknown))}; it has {', '.join(defaults)}"
        )
    settings = {**defaults, **given}
    for name, value in settings.items():
        if name in _CHOICES:
            check_choice(name, value, _CHOICES[name])
        elif name == "pad_token":
            check_text("pad_token", value)
        elif value is not None or name not in _OPTIONAL:
            check_integer(name, value, int(name == "max_length"), maximum=_MAX_ID)
    return settings


def _padding_of(part: Mapping[str, Any] | None) -> dict[str, Any] | None:
    """Return the settings of the part `padding` of a tokenizer.json."""
    if part is None:
        return None
    found = {name: part[name] for name in _PADDING if name in part}
    strategy = part.get("strategy")
    length = strategy.get("Fixed") if isinstance(strategy, dict) else None
    return {**_PADDING, **found, "length": length, "direction": part["direction"].lower()}


def _truncation_of(part: Mapping[str, Any] | None) -> dict[str, Any] | None:
    """Return the settings of the part `truncation` of a tokenizer.json."""
    if part is None:
        return None
    return {
        "max_length": part["max_length"],
        "stride": part["stride"],
        "strategy": _STRATEGIES[part["strategy"]],
        "direction": part.get("direction", "right").lower(),
    }


def _encoding(
    row: EncodingResult, types: Sequence[int], sources: Sequence[Source], rest: list[Encoding] | None
) -> Encoding:
    places = row.word_ids or []
    sequences = row.sequence_ids or [None if place is None else 0 for place in places]
    first, second, *added = types
    types_of_added = iter(added)
    type_ids = [
        (first, second)[number] if number is not None else next(types_of_added, 0) for number in sequences
    ]
    return Encoding(row.input_ids, type_ids, sequences, places, sources, rest)


def _types(post_processor: Mapping[str, Any] | None, is_pair: bool) -> Iterator[int]:
    """Yield the type of the first text, of the second one, and of each added id."""
    steps = (post_processor or {}).get("processors", [post_processor or {}])
    kinds = {step.get("type"): step for step in steps}
    template = kinds.get("TemplateProcessing")
    if template is None:
        yield from (0, 0 if "RobertaProcessing" in kinds else 1)
        if "BertProcessing" in kinds and is_pair:
            yield from (0, 0, 1)
        return
    pieces = [next(iter(piece.items())) for piece in template["pair" if is_pair else "single"]]
    texts = {piece["id"]: piece["type_id"] for kind, piece in pieces if kind == "Sequence"}
    yield from (texts.get("A", 0), texts.get("B", 1))
    for kind, piece in pieces:
        if kind == "SpecialToken":
            yield from [piece["type_id"]] * len(template["special_tokens"][piece["id"]]["ids"])


def _pad(encodings: Sequence[Encoding], padding: Mapping[str, Any]) -> None:
    settings = dict(padding)
    length, multiple = settings.pop("length"), settings.pop("pad_to_multiple_of") or 1
    if length is None:
        length = max(map(len, encodings), default=0)
    for encoding in encodings:
        encoding.pad(length + -length % multiple, **settings)
