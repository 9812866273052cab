"""`Model`: a whole tokenizer as an immutable value, which files are read into and written from."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Any, Literal, NamedTuple, TypeAlias, cast, get_args

from bpe_tokenizer import _core
from bpe_tokenizer.errors import ModelError, shorten

__all__ = [
    "NORMALIZERS",
    "PRE_TOKENIZERS",
    "AddedToken",
    "Decoder",
    "Metaspace",
    "Model",
    "Normalizer",
    "PlainNormalizer",
    "PostProcessor",
    "PreTokenizer",
    "PrefixSpace",
    "Prepend",
    "Replace",
    "Split",
    "Step",
    "Strip",
]


class AddedToken(NamedTuple):
    """A token that is found in the text before the text is split into pieces, and is never merged.

    Args:
        content: The text of the token.
        id: Its id.
        special: True for a control token, which is plain text unless `allowed_special` names it. A token
            that is not special is always found.
        single_word: Found only where no word character touches it.
        lstrip: Includes the white space before it.
        rstrip: Includes the white space after it.
        normalized: Found in the normalised text instead of the original text. Its own text is normalised too;
            it decodes to the result.

    The flags are those of Hugging Face's `AddedToken`:
    https://huggingface.co/docs/tokenizers/api/added-tokens
    """

    content: str
    id: int
    special: bool = True
    single_word: bool = False
    lstrip: bool = False
    rstrip: bool = False
    normalized: bool = False


# The steps of normalisation and pre-tokenisation have the names and fields of Hugging Face `tokenizers`.
# Their patterns are in our dialect.

_Behavior: TypeAlias = Literal["Isolated", "Removed", "MergedWithPrevious", "MergedWithNext", "Contiguous"]
_Plain: TypeAlias = Literal["NFC", "NFD", "NFKC", "NFKD", "Lowercase", "StripAccents"]


class PlainNormalizer(NamedTuple):
    """A normaliser without options."""

    type: _Plain


class Strip(NamedTuple):
    """Drops white space at the ends of the text."""

    type: Literal["Strip"] = "Strip"
    strip_left: bool = True
    strip_right: bool = True


class Prepend(NamedTuple):
    """Puts the text `prepend` before the text."""

    type: Literal["Prepend"] = "Prepend"
    prepend: str = "▁"


class Replace(NamedTuple):
    """Replaces each match of the pattern."""

    type: Literal["Replace"] = "Replace"
    pattern: str = " "
    content: str = "▁"


class Split(NamedTuple):
    """Splits at the matches of the pattern.

    `SplitBytes` follows the `ByteLevel` of a file: its pattern sees each byte as its printable character.
    """

    type: Literal["Split", "SplitBytes"] = "Split"
    pattern: str = " "
    behavior: Literal["Isolated", "Removed", "MergedWithPrevious", "MergedWithNext", "Contiguous"] = (
        "Isolated"
    )
    invert: bool = False


class PrefixSpace(NamedTuple):
    """Puts a space before each piece that does not begin with one."""

    type: Literal["PrefixSpace"] = "PrefixSpace"


class Metaspace(NamedTuple):
    """Replaces spaces by another character, and may split before each."""

    type: Literal["Metaspace"] = "Metaspace"
    replacement: str = "▁"
    prepend_scheme: Literal["always", "first", "never"] = "always"
    split: bool = True


class Decoder(NamedTuple):
    """How tokens of characters become text.

    Args:
        space: The character that means a space.
        byte_fallback: Whether a token like `<0x0A>` is a byte.
        strip: The spaces to drop at the beginning of a text: none, one, or all of the first token; `"joined"`
            makes the token strings the text, with a space between each two.
    """

    space: str = " "
    byte_fallback: bool = False
    strip: Literal["none", "one", "first", "joined"] = "none"


Normalizer: TypeAlias = PlainNormalizer | Strip | Prepend | Replace
PreTokenizer: TypeAlias = Split | PrefixSpace | Metaspace
Step: TypeAlias = Normalizer | PreTokenizer

# An example of each step, by its type.
_NORMALIZERS: tuple[Step, ...] = (*map(PlainNormalizer, get_args(_Plain)), Strip(), Prepend(), Replace())
_PRE_TOKENIZERS: tuple[Step, ...] = (Split("Split"), Split("SplitBytes"), PrefixSpace(), Metaspace())
NORMALIZERS: Mapping[str, Step] = {step.type: step for step in _NORMALIZERS}
PRE_TOKENIZERS: Mapping[str, Step] = {step.type: step for step in _PRE_TOKENIZERS}


@dataclass(frozen=True)
class PostProcessor:
    """The ids that `add_special_tokens=True` adds.

    Args:
        prefix: Ids at the beginning.
        suffix: Ids at the end.
        pair: The ids before, between and after the two texts of a pair; None gives each text its own prefix
            and suffix. Empty: the file orders pairs in a way that this package does not support. Formats
            without pairs lose it, so it does not count when post-processors are compared.
        trims: For each step that trims white space from offsets (`trim_offsets`), whether it keeps a space
            before the first word (`add_prefix_space`). It does not count in comparisons either.
    """

    prefix: tuple[int, ...] = ()
    suffix: tuple[int, ...] = ()
    pair: tuple[tuple[int, ...], ...] | None = field(default=None, compare=False, kw_only=True)
    trims: tuple[bool, ...] = field(default=(), compare=False, kw_only=True)

    @property
    def pair_ids(self) -> tuple[tuple[int, ...], ...]:
        """The ids before, between and after the two texts of a pair; empty if they are not supported."""
        if self.pair is None:
            return self.prefix, self.suffix + self.prefix, self.suffix
        return self.pair


@dataclass(frozen=True)
class Model:
    """A whole tokenizer: what the core runs, and what only people and files know.

    Args:
        core: Vocabulary, merges, split patterns, normalisation and added tokens.
        named_tokens: The special tokens by role: `"bos"`, `"eos"`, `"pad"`, `"unk"`. For a missing role, the
            tokens' names decide; "" says that the role has no token.
        post_processor: What `add_special_tokens=True` adds; None adds BOS at the beginning and EOS at the
            end, if they exist.
        config: Entries of a `tokenizer_config.json` that this package does not interpret and writes back
            (`model_max_length`, `chat_template`, ...).
    """

    core: _core.Model
    named_tokens: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))
    post_processor: PostProcessor | None = None
    config: Mapping[str, Any] = field(default_factory=lambda: MappingProxyType({}))

    def __repr__(self) -> str:
        """Show the sizes and the settings, not the tokens."""
        core = self.core
        return (
            f"{type(self).__name__}(tokens={len(core):,}, merges={len(core.merges):,}, "
            f"added_tokens={len(core.added_tokens):,}, split_patterns={shorten(core.split_patterns)}, "
            f"normalization={core.normalization!r})"
        )

    def with_normalization(self, form: str | None) -> Model:
        """Return the model with another Unicode normalisation form, and the same vocabulary.

        Args:
            form: `"NFC"`, `"NFD"`, `"NFKC"`, `"NFKD"`, or None, which keeps every text unchanged.

        Raises:
            ModelError: The model does more to text than to normalise it.
        """
        core = self.core
        if core.normalization == form and (form is not None or not core.normalizers):
            return self
        if core.normalizers and core.normalization is None:
            steps = ", ".join(step.type for step in core.normalizers)
            raise ModelError(
                f"normalizers: this model needs {steps}, which is more than a Unicode normal form; its "
                "vocabulary is made for such texts, so its normalisation cannot be replaced"
            )
        (vocab, merges), settings = cast("Any", core.__getnewargs_ex__())
        normalizers = [] if form is None else [PlainNormalizer(cast("_Plain", form))]
        return replace(self, core=_core.Model(vocab, merges, **{**settings, "normalizers": normalizers}))
