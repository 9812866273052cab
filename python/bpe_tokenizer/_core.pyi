from collections.abc import Callable, Collection, Mapping, Sequence, Set
from os import PathLike
from typing import Any, Literal, Protocol, Self, TypeAlias, TypedDict, final, overload, type_check_only

import numpy as np
import numpy.typing as npt
from typing_extensions import Unpack, disjoint_base

from bpe_tokenizer.decoding import Ids
from bpe_tokenizer.model import AddedToken, Decoder, Normalizer, PreTokenizer
from bpe_tokenizer.special_tokens import AllowedSpecial, DisallowedSpecial

__all__ = [
    "AddedTokensDecoder",
    "BufferPool",
    "DecodeStream",
    "EncodeStream",
    "Encoder",
    "MergeStep",
    "MergeTrace",
    "Model",
    "PieceCounter",
    "PieceReader",
    "RankTable",
    "SplitPattern",
    "Strings",
    "TokenTable",
    "Tokenizer",
    "__version__",
    "find_bad_rows",
    "find_roles",
    "from_printable",
    "give_back_large_blocks",
    "instruction_set",
    "read_ids",
    "read_rows",
    "to_printable",
    "words",
    "write_ids",
]

__version__: str

# The special tokens to recognise: none (False, the default), all (True), or these.
_Special: TypeAlias = bool | Collection[str]
# Ids. One-dimensional integer arrays are read directly from memory.
_Ids: TypeAlias = Sequence[int] | npt.NDArray[np.integer]

# The memory of arrays of texts that no longer exist, for the next ones: at most 48 MB.
@final
class BufferPool:
    def __new__(cls) -> BufferPool: ...

@type_check_only
class _Readable(Protocol):
    def read(self, size: int, /) -> bytes: ...

@type_check_only
class CacheStatistics(TypedDict):
    hits: int
    misses: int
    size: int

@final
class SplitPattern:
    """One compiled split pattern."""

    def __new__(cls, pattern: str) -> SplitPattern: ...
    @property
    def pattern(self) -> str: ...
    # Whether the pattern runs as an automaton; if not, it runs on the regex engine.
    @property
    def is_compiled(self) -> bool: ...
    # States and code point classes of the automaton; 0 without one.
    @property
    def states(self) -> int: ...
    @property
    def classes(self) -> int: ...
    # Whether the matches provably cover every text.
    @property
    def covers_every_text(self) -> bool: ...
    # Whether another pattern provably finds the same matches in every text.
    def is_same(self, other: SplitPattern) -> bool: ...
    # The pieces of `text`, in order; their concatenation is the text.
    def split(self, text: str) -> list[str]: ...
    # The pattern in the dialect of Oniguruma, the regex engine of Hugging Face `tokenizers`.
    def to_oniguruma(self) -> str: ...
    # Why two engines read a pattern differently, as the end of a sentence; None if they agree.
    @staticmethod
    def objection(
        pattern: str, engines: Literal["to_oniguruma", "from_oniguruma", "python"]
    ) -> str | None: ...
    # An Oniguruma pattern in our dialect. Raises PatternError for a feature that our dialect lacks.
    @staticmethod
    def from_oniguruma(pattern: str) -> str: ...

@type_check_only
class _Settings(TypedDict, total=False):
    """How a model treats text. All settings are optional."""

    added_tokens: Sequence[AddedToken]
    # Applied in sequence to the text between added tokens that are not `normalized`.
    normalizers: Sequence[Normalizer]
    normalization: str | None  # a Unicode normal form: short for a single step
    # Applied in sequence, each to the pieces of the previous step.
    pre_tokenizers: Sequence[PreTokenizer]
    split_patterns: Sequence[str]  # short for steps that isolate matches
    add_prefix_space: bool  # short for a first PrefixSpace
    # The initial symbols of merging. Tokens of "characters" are UTF-8, as the file writes them.
    alphabet: Literal["bytes", "characters"]
    byte_fallback: bool  # a character without a token becomes the tokens <0x00> to <0xFF> of its bytes
    # A byte or character without a token becomes `unk_id`; with `fuse_unk`, adjacent ones become a single
    # `unk_id`. Without an `unk_id` it is dropped before merging, or with `keeps_gaps` after it (llama.cpp).
    unk_id: int | None
    fuse_unk: bool
    keeps_gaps: bool
    requires_all_bytes: bool  # refuse a vocabulary of "bytes" that lacks one; True by default
    ignore_merges: bool  # a piece that is a token is that token
    decoder: Decoder | None  # None: the tokens' bytes are the text

@final
class Model:
    """Vocabulary, merges, text processing and added tokens: validated and immutable."""

    # `merges=None`: the ids are ranks, as in a .tiktoken file. The merges are derived from them, and a piece
    # that is a token becomes that token (`ignore_merges`).
    def __new__(
        cls,
        vocab: Mapping[int, bytes],
        merges: Sequence[tuple[bytes, bytes]] | None,
        **settings: Unpack[_Settings],
    ) -> Model: ...
    # A model from the strings of a Hugging Face file, which writes bytes as GPT-2's printable characters, and
    # characters as themselves. An entry of `vocab` with an added token's content belongs to that token.
    @staticmethod
    def from_printable(
        vocab: Mapping[str, int],
        merges: Sequence[tuple[str, str]],
        **settings: Unpack[_Settings],
    ) -> Model: ...
    # A model from a table, without the `excluded` tokens, and with the `others`.
    @staticmethod
    def from_table(
        table: TokenTable,
        excluded: Set[str],
        others: Mapping[int, bytes] = ...,
        **settings: Unpack[_Settings],
    ) -> Model: ...
    # A model of ranks and of `others`, tokens at ids that the table lacks. As `merges=None`.
    @staticmethod
    def from_ranks(
        table: RankTable,
        others: Mapping[int, bytes],
        **settings: Unpack[_Settings],
    ) -> Model: ...
    # A copy with other added tokens; shares the vocabulary and merges.
    def with_added_tokens(self, added_tokens: Sequence[AddedToken]) -> Model: ...
    def adding_tokens(self, added_tokens: Sequence[AddedToken]) -> Model: ...
    # All ids with their bytes, added tokens included, in id order.
    @property
    def vocab(self) -> dict[int, bytes]: ...
    # The bytes of an id; None for an unknown id.
    def token(self, token_id: int, /) -> bytes | None: ...
    @property
    def merges(self) -> list[tuple[bytes, bytes]]: ...
    # None if the pre-tokeniser does more than isolate matches, perhaps after a PrefixSpace.
    @property
    def split_patterns(self) -> list[str] | None: ...
    # None without a normaliser, and for one that is more than a normal form.
    @property
    def normalization(self) -> str | None: ...
    @property
    def normalizers(self) -> list[Normalizer]: ...
    @property
    def pre_tokenizers(self) -> list[PreTokenizer]: ...
    # Whether the model merges bytes, has a token for each, cuts with split patterns, and normalises with at
    # most a Unicode normal form.
    @property
    def is_plain(self) -> bool: ...
    @property
    def alphabet(self) -> Literal["bytes", "characters"]: ...
    @property
    def byte_fallback(self) -> bool: ...
    @property
    def unk_id(self) -> int | None: ...
    @property
    def fuse_unk(self) -> bool: ...
    @property
    def keeps_gaps(self) -> bool: ...
    # Whether every byte has a token.
    @property
    def requires_all_bytes(self) -> bool: ...
    @property
    def decoder(self) -> Decoder | None: ...
    # In id order.
    @property
    def added_tokens(self) -> list[AddedToken]: ...
    def added_token(self, token_id: int) -> AddedToken | None: ...
    def added_token_of(self, content: str, /) -> AddedToken | None: ...
    # The texts of the normalised added tokens that normalisation changes, after it. These ids decode to them.
    @property
    def normal_forms(self) -> dict[int, str]: ...
    @property
    def ignore_merges(self) -> bool: ...
    @property
    def add_prefix_space(self) -> bool: ...
    # Number of vocabulary entries: bytes, learned tokens, and the added tokens that are reserved at training
    # or listed in `vocab`.
    @property
    def vocab_size(self) -> int: ...
    # The largest id + 1.
    @property
    def n_vocab(self) -> int: ...
    # Number of distinct ids.
    def __len__(self) -> int: ...
    # Ids of added tokens that are also entries of the vocabulary (see vocab_size).
    @property
    def added_ids_in_vocab(self) -> list[int]: ...
    # Printable string to id of every entry of the vocabulary; ModelError for two ids of the same bytes.
    def printable_vocab(self) -> dict[str, int]: ...
    def printable_merges(self) -> list[tuple[str, str]]: ...
    # All tokens and merges in bytes, for a hash.
    def table_bytes(self) -> bytes: ...
    # The keyword arguments that make a copy.
    @property
    def settings(self) -> dict[str, Any]: ...
    def __getnewargs_ex__(self) -> tuple[tuple[object, ...], dict[str, object]]: ...

@final
class Strings:
    """The strings of an array in a GGUF file, read without an object per string."""

    def __new__(cls, strings: Sequence[bytes]) -> Strings: ...
    # Takes the strings of a part of the file that begin at the position `at` or later and end in the part,
    # until there are `count`. Each follows its length. Returns the position after the last one.
    def read(self, window: bytes, at: int, count: int) -> int: ...
    def append(self, string: bytes) -> None: ...
    def __len__(self) -> int: ...
    def tolist(self) -> list[bytes]: ...

@final
class TokenTable:
    """The tokens and merges of a tokenizer.json or a GGUF file, read without an object per token."""

    # The file with its tables emptied, and the tables: `model.vocab`, `model.merges` and `added_tokens`. None
    # if one of the first two is missing. FormatError for a broken one; `file` is its name.
    @staticmethod
    def parse(data: bytes, file: str) -> tuple[bytes, TokenTable | None]: ...
    # The strings of a GGUF file, whose ids are their positions, as llama.cpp reads them: up to a zero byte,
    # and an empty one as `[EMPTY_7]`. FormatError for one that is not UTF-8 or a duplicate; `name` begins it.
    @staticmethod
    def from_strings(tokens: Strings, name: str) -> TokenTable: ...
    # The table with merges "left right", of equal ones the first. And of those that do not join tokens to a
    # token: the index, left, right, and the first of left, right and both joined that the table lacks.
    # `excluded` ids count as missing; a text without two parts is no merge.
    def with_merges(
        self, merges: Strings, excluded: Set[int]
    ) -> tuple[TokenTable, list[tuple[int, bytes, bytes, bytes]]]: ...
    # The ids whose strings are not printable bytes.
    def unprintable(self) -> list[int]: ...
    def text(self, token_id: int) -> str: ...
    def starting_with(self, prefix: str) -> list[str]: ...
    # The `added_tokens` of a tokenizer.json, in the order of the file.
    def added_tokens(self) -> list[AddedToken]: ...
    def __len__(self) -> int: ...
    def __contains__(self, token: object, /) -> bool: ...
    def __getitem__(self, token: str, /) -> int: ...
    def get(self, token: str) -> int | None: ...
    def ids(self, tokens: Sequence[str]) -> list[int | None]: ...
    # The tokens among these that a merge joins or makes.
    def merged(self, tokens: Set[str]) -> set[str]: ...

@final
class AddedTokensDecoder:
    """`added_tokens_decoder` of a tokenizer_config.json, read without an object per token."""

    # The file with an empty `added_tokens_decoder`, and its content, if it has one. FormatError for a broken
    # one; `file` is its name.
    @staticmethod
    def parse(data: bytes, file: str) -> tuple[bytes, AddedTokensDecoder | None]: ...
    # Whether its tokens are those of `table.added_tokens()`.
    def equals(self, table: TokenTable) -> bool: ...
    # The tokens in the order of the file. `named` texts are special, whatever their flags say.
    def tokens(self, named: Set[str]) -> list[AddedToken]: ...

@final
class RankTable:
    """The tokens and ranks of a `.tiktoken` file, read without an object per token."""

    # FormatError for a broken file; `file` is its name.
    @staticmethod
    def parse(data: bytes, file: str) -> RankTable: ...
    def __len__(self) -> int: ...
    def __contains__(self, token: bytes, /) -> bool: ...
    def __getitem__(self, token: bytes, /) -> int: ...
    def has_rank(self, rank: int) -> bool: ...
    @property
    def max_rank(self) -> int: ...
    # The tokens and their ranks, in the order of the ranks.
    def to_dict(self) -> dict[bytes, int]: ...

@final
class MergeStep:
    """One merge of two neighbours. Positions count the piece's initial symbols, from 0."""

    # Index of the merge in `Model.merges`. Of the possible merges the lowest rank applies first, and of equal
    # ranks the leftmost.
    @property
    def rank(self) -> int: ...
    # Positions at which the two symbols begin. The product begins at `left`.
    @property
    def left(self) -> int: ...
    @property
    def right(self) -> int: ...
    @property
    def left_id(self) -> int: ...
    @property
    def right_id(self) -> int: ...
    # The id of the product.
    @property
    def token_id(self) -> int: ...

@final
class MergeTrace:
    """How one piece becomes ids: its initial symbols, each merge in order, and the resulting ids."""

    # The ids before the first merge. None is a gap (`keeps_gaps`): it separates its neighbours, and is
    # dropped after merging.
    @property
    def symbols(self) -> list[int | None]: ...
    @property
    def steps(self) -> list[MergeStep]: ...
    # What `Encoder.encode` returns for the piece.
    @property
    def ids(self) -> list[int]: ...
    # `ignore_merges`: the piece is a token, so `ids` is that token. `steps` show what merging would do.
    @property
    def is_whole(self) -> bool: ...

@disjoint_base
class Tokenizer:
    """The class that `BPETokenizer` derives from: its state, and its methods for one text."""

    _state: Any
    def __new__(cls, *arguments: object, **named: object) -> Self: ...
    def encode(
        self,
        text: str,
        add_special_tokens: bool = False,
        allowed_special: AllowedSpecial = "none",
        *,
        disallowed_special: DisallowedSpecial = (),
        threads: int | None = 1,
    ) -> list[int]:
        """Return the ids of a text.

        Args:
            text: Any text; a lone surrogate is encoded as U+FFFD.
            add_special_tokens: Add the model's special tokens at both ends.
            allowed_special: The special tokens that are recognised: `"none"`, `"all"` or a set.
            disallowed_special: The special tokens that the text must not contain: `()`, `"all"` or a set.
            threads: Number of threads; a long text is then cut where the ids do not depend on it.

        Raises:
            ArgumentTypeError: The text is not a `str`.
            NotTrainedError: The tokenizer has no vocabulary yet.
            SpecialTokenError: The text contains a disallowed token, or a set names an unknown token.

        >>> tokenizer = BPETokenizer().train("ab ab", 258, special_tokens=["<|end|>"], verbose=False)
        >>> tokenizer.encode("ab<|end|>", allowed_special={"<|end|>"})
        [257, 256]
        >>> tokenizer.encode("ab<|end|>", disallowed_special="all")
        Traceback (most recent call last):
        bpe_tokenizer.errors.SpecialTokenError: the text holds the disallowed special token '<|end|>' at ...
        """

    def encode_to_numpy(
        self,
        text: str,
        add_special_tokens: bool = False,
        allowed_special: AllowedSpecial = "none",
        *,
        disallowed_special: DisallowedSpecial = (),
        threads: int | None = 1,
    ) -> npt.NDArray[np.uint32]:
        """Return the ids of a text as an array of dtype uint32. Arguments and errors: `encode`.

        >>> tokenizer = BPETokenizer().train("ab ab", vocab_size=257, verbose=False)
        >>> tokenizer.encode_to_numpy("abc")
        array([256,  99], dtype=uint32)
        """

    def count_tokens(
        self,
        text: str,
        *,
        add_special_tokens: bool = False,
        allowed_special: AllowedSpecial = "none",
        disallowed_special: DisallowedSpecial = (),
        threads: int | None = 1,
    ) -> int:
        """Return `len(encode(text))` without building the list; see `encode`.

        >>> BPETokenizer().train("ab ab", vocab_size=257, verbose=False).count_tokens("abc")
        2
        """

    def decode(
        self,
        ids: Ids,
        skip_special_tokens: bool = False,
        errors: str = "replace",
    ) -> str:
        """Return the text of ids.

        Args:
            ids: A list, a NumPy array, a PyTorch tensor, an `EncodingResult`, or a single id.
            skip_special_tokens: Leave special tokens out.
            errors: The error handler for bytes that are not UTF-8: `"replace"` makes them U+FFFD,
                `"strict"` raises; any handler of `bytes.decode`.

        Raises:
            DecodingError: The bytes are not UTF-8, and `errors` is `"strict"`.
            NotTrainedError: The tokenizer has no vocabulary yet.
            OptionError: `errors` does not name an error handler.
            UnknownIdError: An id is not in the vocabulary.

        >>> tokenizer = BPETokenizer().train("ab ab", vocab_size=257, verbose=False)
        >>> tokenizer.decode([256, 33])
        'ab!'
        """

@final
class Encoder:
    """A compiled model. Its only mutable state is a cache."""

    def __new__(cls, model: Model) -> Encoder: ...
    @property
    def model(self) -> Model: ...
    # In all methods: `str` is normalised, and lone surrogates become U+FFFD; `bytes` are encoded unchanged.
    # `special` says which special tokens are recognised. threads=0 uses one thread per processor; the result
    # does not depend on it.
    def encode(self, text: str | bytes, special: _Special = ..., threads: int = 1) -> list[int]: ...
    def encode_numpy(
        self, text: str | bytes, special: _Special = ..., threads: int = 1
    ) -> npt.NDArray[np.uint32]: ...
    # Spans in characters of the original text ("char") or in bytes of its UTF-8 ("byte").
    # tile=True: adjacent spans touch and cover the text; a boundary inside a character moves to its start.
    # tile=False: a span in characters covers every character of which the token has a byte, as in Hugging
    # Face.
    def encode_with_offsets(
        self,
        text: str | bytes,
        special: _Special = ...,
        unit: Literal["char", "byte"] = "char",
        tile: bool = True,
    ) -> tuple[list[int], list[tuple[int, int]]]: ...
    # The same in arrays: the ids, and for each a row (start, end).
    def encode_numpy_with_offsets(
        self,
        text: str | bytes,
        special: _Special = ...,
        unit: Literal["char", "byte"] = "char",
        tile: bool = True,
    ) -> tuple[npt.NDArray[np.uint32], npt.NDArray[np.int64]]: ...
    # The ids of the concatenated segments (text, is_trusted). Special tokens, and the added tokens with the
    # contents `markup` or that normalisation makes of trusted segments, are in trusted segments only. Each id
    # comes with the first and the last segment that it covers (for an added token: that its content covers).
    def encode_segments(
        self,
        segments: Sequence[tuple[str, bool]],
        special: _Special = ...,
        markup: Set[str] = ...,
    ) -> tuple[list[int], list[tuple[int, int]]]: ...
    # The contents of the plain added tokens that the trusted segments show, or for which (or for whose normal
    # form) `may_write` is true.
    def markup_tokens(
        self, segments: Sequence[tuple[str, bool]], may_write: Callable[[str], bool]
    ) -> set[str]: ...
    def encode_batch(
        self, texts: Sequence[str | bytes], special: _Special = ..., threads: int = 0
    ) -> list[list[int]]: ...
    # (ids of all texts, offsets of all texts and of the end). `prefix_suffix_ids`: the ids before and after
    # each.
    def encode_ragged(
        self,
        texts: Sequence[str | bytes],
        special: _Special = ...,
        threads: int = 0,
        prefix_suffix_ids: tuple[Sequence[int], Sequence[int]] = ...,
    ) -> tuple[npt.NDArray[np.uint32], npt.NDArray[np.int64]]: ...
    # As `encode_ragged`, for the rows `data[offsets[i]:offsets[i + 1]]`, without a `str` for each.
    # CorpusError names the row and the byte that is not UTF-8; OptionError the row whose offsets do not
    # ascend, or exceed the data.
    def encode_rows(
        self,
        data: npt.NDArray[np.uint8],
        offsets: npt.NDArray[np.int64],
        special: _Special = ...,
        threads: int = 0,
        prefix_suffix_ids: tuple[Sequence[int], Sequence[int]] = ...,
    ) -> tuple[npt.NDArray[np.uint32], npt.NDArray[np.int64]]: ...
    # As `encode_ragged`, for the documents in files. CorpusError names the file and the byte that is not
    # UTF-8; SpecialTokenError names the disallowed special token.
    def encode_files(
        self,
        paths: Sequence[str | PathLike[str]],
        separator: str | None = None,
        special: _Special = ...,
        disallowed: _Special = ...,
        threads: int = 0,
        prefix_suffix_ids: tuple[Sequence[int], Sequence[int]] = ...,
    ) -> tuple[npt.NDArray[np.uint32], npt.NDArray[np.int64]]: ...
    def count(self, text: str | bytes, special: _Special = ..., threads: int = 1) -> int: ...
    # Number of characters of the longest prefix that ends at a token and at a character, and encodes to at
    # most max_tokens ids.
    def truncate(self, text: str, max_tokens: int, special: _Special = ...) -> int: ...
    # The first special token that encoding with `special` would find: (content, index of its first
    # character).
    def find_special(self, text: str | bytes, special: _Special) -> tuple[str, int] | None: ...
    # The pieces of the text before merging. Each special token is a piece.
    def pieces(self, text: str | bytes, special: _Special = ...) -> list[bytes]: ...
    # The merges of one piece, as `pieces` returns it, in the order in which encoding applies them. Supports
    # every model: bytes or characters, unknown tokens, gaps, byte fallback, ignore_merges.
    #
    # >>> vocab = {**{byte: bytes([byte]) for byte in range(256)}, 256: b"lo", 257: b"low"}
    # >>> encoder = Encoder(Model(vocab, [(b"l", b"o"), (b"lo", b"w")]))
    # >>> trace = encoder.trace_merges(b"slow")
    # >>> trace.symbols, trace.ids
    # ([115, 108, 111, 119], [115, 257])
    # >>> [(step.rank, step.left, step.right, step.token_id) for step in trace.steps]
    # [(0, 1, 2, 256), (1, 1, 3, 257)]
    def trace_merges(self, piece: bytes) -> MergeTrace: ...
    # UnknownIdError names an id outside the vocabulary. replaces_broken: in runs of tokens like <0x0A>, each
    # byte that is not UTF-8 becomes U+FFFD.
    def decode(
        self, ids: _Ids, skip_special_tokens: bool = False, replaces_broken: bool = False
    ) -> bytes: ...
    # Bytes that are not UTF-8 go to the error handler `errors` of `bytes.decode`. "replace" implies
    # replaces_broken.
    def decode_text(self, ids: _Ids, skip_special_tokens: bool = False, errors: str = "replace") -> str: ...
    # The bytes of each row, without the id `skip_id`; with `errors` its text, as in `decode_text`.
    @overload
    def decode_batch(
        self,
        batch: Sequence[_Ids],
        skip_special_tokens: bool = False,
        errors: None = None,
        threads: int = 0,
        skip_id: int | None = None,
    ) -> list[bytes]: ...
    @overload
    def decode_batch(
        self,
        batch: Sequence[_Ids],
        skip_special_tokens: bool,
        errors: str,
        threads: int = 0,
        skip_id: int | None = None,
    ) -> list[str]: ...
    # The bytes of the rows `ids[offsets[i]:offsets[i + 1]]`, concatenated, and the offsets of the rows and of
    # the end. `invalid` says what happens to bytes that are not UTF-8. UnknownIdError names the row, counted
    # from `first_row`.
    def decode_rows(
        self,
        ids: npt.NDArray[np.uint32],
        offsets: npt.NDArray[np.int64],
        skip_special_tokens: bool = False,
        invalid: Literal["replace", "ignore", "keep"] = "replace",
        threads: int = 0,
        first_row: int = 0,
    ) -> tuple[npt.NDArray[np.uint8], npt.NDArray[np.int64]]: ...
    def cache_statistics(self) -> CacheStatistics: ...
    def clear_cache(self) -> None: ...
    @property
    def cache_bytes(self) -> int: ...
    def limit_cache(self, max_bytes: int) -> None: ...

@final
class EncodeStream:
    """Encodes incrementally: the ids are those of the whole text, and come as soon as they are certain."""

    def __new__(cls, encoder: Encoder, special: _Special = ...) -> EncodeStream: ...
    # The new ids that are now certain; all if the text `ends`, and the stream is then ready for another text.
    # A pair of surrogates must not be split.
    def push(self, text: str, ends: bool = False) -> list[int]: ...
    # The same as an array.
    def push_numpy(self, text: str, ends: bool = False) -> npt.NDArray[np.uint32]: ...

@final
class DecodeStream:
    """Decodes incrementally: returns whole characters, and bytes that cannot be part of one."""

    def __new__(
        cls, encoder: Encoder, skip_special_tokens: bool = False, replaces_broken: bool = False
    ) -> DecodeStream: ...
    # UnknownIdError names an id outside the vocabulary; the stream is then unchanged.
    def step(self, ids: _Ids) -> bytes: ...
    # The remaining output. Then the stream is ready for another text.
    def finish(self) -> bytes: ...

@final
class PieceCounter:
    """Counts the pieces of a corpus and trains a model on the counts."""

    # max_memory: approximate limit for counting and training, in bytes. At the limit, counting writes the
    # pieces to unnamed files in `spill_directory`.
    # sample: documents count whose 64-bit hash is below this number. A file that is one document is refused.
    def __new__(
        cls,
        *,
        split_patterns: Sequence[str],
        normalization: str | None = None,
        special_tokens: Sequence[str] = ...,
        threads: int = 0,
        max_memory: int | None = None,
        spill_directory: str | PathLike[str] | None = None,
        sample: int | None = None,
    ) -> PieceCounter: ...
    # A new counter with the same settings and no counts.
    def empty(self) -> PieceCounter: ...
    # Each text is a document; its pieces count `weight` times. For `bytes` that are not UTF-8, CorpusError
    # names the document's number and the byte.
    def add_texts(self, texts: Sequence[str | bytes], weight: int = 1) -> None: ...
    # Each row is a document: data[offsets[i]:offsets[i + 1]], in UTF-8. Errors count rows from `first` on.
    def add_rows(
        self,
        data: npt.NDArray[np.uint8],
        offsets: npt.NDArray[np.int64],
        weight: int = 1,
        first: int = 0,
    ) -> None: ...
    # Each file is a document. Continues from a position (file, byte) of an earlier call for about `most`
    # bytes, and returns the new position; (len(paths), 0) is the end. Calls progress(bytes counted by this
    # call) repeatedly.
    def add_files(
        self,
        paths: Sequence[str | PathLike[str]],
        position: tuple[int, int] = ...,
        *,
        most: int = ...,
        weight: int = 1,
        progress: Callable[[int], None] | None = None,
    ) -> tuple[int, int]: ...
    # A part of a file, from the first safe cut at or after `start` to the first at or after `end`. The part
    # with start 0 counts the document.
    def add_range(self, path: str | PathLike[str], start: int, end: int, weight: int = 1) -> None: ...
    # Counts what the method `read` of an object returns as one document in UTF-8; `name` is for errors.
    # `progress` gets the number of bytes counted.
    def add_stream(
        self,
        reader: _Readable,
        name: str | PathLike[str],
        weight: int = 1,
        progress: Callable[[int], None] | None = None,
    ) -> None: ...
    # Pieces counted elsewhere: data[offsets[i]:offsets[i + 1]] occurs counts[i] times.
    def add_pieces(
        self,
        data: npt.NDArray[np.uint8],
        offsets: npt.NDArray[np.int64],
        counts: npt.NDArray[np.uint64],
    ) -> None: ...
    # Adds to the number of documents only.
    def add_documents(self, documents: int) -> None: ...
    # Adds the other's counts. `take` moves them, which avoids a copy and leaves the other empty.
    def merge(self, other: PieceCounter, weight: int = 1, *, take: bool = False) -> None: ...
    # Spills what is in memory, if it is more than a part of the limit.
    def make_room(self) -> None: ...
    # Removes the pieces with counts below `min_count`.
    def prune(self, min_count: int) -> None: ...
    # Reads the files of counts that `open` has not read: into memory, unless there is a limit. Raises
    # FormatError if one is broken; so does whatever needs the pieces.
    def resume(self) -> None: ...
    @property
    def documents(self) -> int: ...
    # Whether nothing was counted. Reads no file.
    @property
    def is_empty(self) -> bool: ...
    # Number of pieces, and of distinct pieces.
    @property
    def pieces(self) -> int: ...
    @property
    def distinct(self) -> int: ...
    # Whether normalisation changed text; not known of pieces that were counted elsewhere.
    @property
    def normalized(self) -> bool: ...
    # The pieces in byte order, in the form of `add_pieces`.
    def arrays(self) -> tuple[npt.NDArray[np.uint8], npt.NDArray[np.int64], npt.NDArray[np.uint64]]: ...
    # Reads the pieces in byte order, some at a time; None if they are in memory.
    def reader(self) -> PieceReader | None: ...
    # Writes a file of counts with the header `begin`, some bytes at a time.
    def save(self, begin: bytes, write: Callable[[bytes], object]) -> None: ...
    # Adds the counts that follow a header of `begin` bytes.
    def load(
        self,
        data: bytes,
        begin: int,
        documents: int,
        *,
        normalized: bool = False,
    ) -> None: ...
    # Takes the counts of a file, which is read when they are needed. Replaces all counts.
    def open(
        self,
        path: str | PathLike[str],
        begin: int,
        documents: int,
        *,
        normalized: bool = False,
    ) -> None: ...
    # Takes a part of a file of counts: the pieces from `low` on and before `high`. `start` is a place of the
    # file at or before the first of them, and `end` the byte of a place after the last. Replaces all counts.
    def open_slice(
        self,
        path: str | PathLike[str],
        start: tuple[int, bytes],
        end: int | None,
        low: bytes,
        high: bytes | None,
    ) -> None: ...
    # Places in the file of counts that `open` has taken, about `spacing` bytes apart, the first piece first:
    # the byte at which a piece begins, and the piece before it.
    def places(self, spacing: int) -> list[tuple[int, bytes]]: ...
    # A model of the 256 bytes, the added tokens with ids below `vocab_size`, and learned tokens with the
    # other ids below it. Text is cut as this counter cuts it.
    # `model`: extend this model instead. Learned tokens get the ids after its largest; `added_tokens` is not
    # used.
    # `learned`: the merges that an interrupted run on the same pieces with the same arguments saved. The
    # result is that of the uninterrupted run. OptionError names a merge that is impossible.
    # progress(learned tokens, wanted tokens) is called every 100 tokens.
    # checkpoint(merges since its last call) is called after about each `checkpoint_seconds` of work.
    # min_count: pieces with lower counts are left out. OptionError if the others need more than max_memory.
    # needs(distinct pieces, bytes that learning from them takes, bytes that it may take, or None) is called
    # before that.
    def train(
        self,
        *,
        vocab_size: int,
        min_frequency: int = 2,
        tie_break: Literal["largest", "huggingface"] = "largest",
        added_tokens: Sequence[AddedToken] = ...,
        max_token_length: int | None = None,
        threads: int = 0,
        progress: Callable[[int, int], None] | None = None,
        model: Model | None = None,
        learned: Sequence[tuple[bytes, bytes]] = ...,
        checkpoint: Callable[[list[tuple[bytes, bytes]]], None] | None = None,
        checkpoint_seconds: float = 30.0,
        min_count: int = 0,
        needs: Callable[[int, int, int | None], None] | None = None,
    ) -> Model: ...

@final
class PieceReader:
    """Reads pieces in byte order."""

    # The next pieces, in the form of `PieceCounter.add_pieces`; none at the end.
    def read(self) -> tuple[npt.NDArray[np.uint8], npt.NDArray[np.int64], npt.NDArray[np.uint64]]: ...

# The rows of a block: "line", "json" (`name` is the field) or "separated" (`name` is the separator). Returns
# the UTF-8 of the documents, concatenated; their offsets and the end of the last; the numbers of their rows;
# the rows that the caller must decide, as (number, start, end, number of documents before); the number of
# rows. The first row has the number `first`; those up to the number `after` are skipped. The UTF-8 takes its
# memory from the pool.
def read_rows(
    block: npt.NDArray[np.uint8],
    kind: Literal["line", "json", "separated"],
    name: bytes,
    *,
    first: int = 1,
    after: int = 0,
    threads: int = 0,
    pool: BufferPool | None = ...,
) -> tuple[
    npt.NDArray[np.uint8],
    npt.NDArray[np.int64],
    npt.NDArray[np.int64],
    list[tuple[int, int, int, int]],
    int,
]: ...

# The numbers, from 0, of the rows data[offsets[i]:offsets[i + 1]] that are not UTF-8.
def find_bad_rows(data: npt.NDArray[np.uint8], offsets: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]: ...

# Makes the allocator return each large block to the system when it is freed, in the whole process.
def give_back_large_blocks() -> None: ...

# The vector instructions that the core uses here, such as `avx2`; `portable` for none.
def instruction_set() -> str: ...

# The special tokens by role. `contents`: their texts, in the order of their ids.
def find_roles(contents: Sequence[str]) -> dict[Literal["bos", "eos", "pad", "unk"], str]: ...

# Bytes to GPT-2's printable characters, and back: None for a string with another character.
def to_printable(token: bytes) -> str: ...
def from_printable(token: str) -> bytes | None: ...

# Ids in decimal, each with a space after it.
def write_ids(ids: _Ids) -> bytes: ...

# The ids of a text of decimal numbers, which white space or commas separate, and the position of the first
# word that is not an id below 2**32; the length of the text if there is none.
def read_ids(text: bytes) -> tuple[npt.NDArray[np.uint32], int]: ...

# The start and the end of each word of a text, in bytes: a segment of UAX 29 that has a letter or a digit.
def words(text: str) -> tuple[npt.NDArray[np.uint32], npt.NDArray[np.uint32]]: ...
