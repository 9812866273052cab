from collections.abc import Callable, Collection, Mapping, Sequence, Set
from os import PathLike
from typing import Literal, TypeAlias, TypedDict, final, type_check_only

import numpy as np
import numpy.typing as npt
from bpe_tokenizer.model import AddedToken
from typing_extensions import Unpack

__all__ = [
    "DecodeStream",
    "EncodeStream",
    "Encoder",
    "MergeStep",
    "MergeTrace",
    "Model",
    "PieceCounter",
    "SplitPattern",
    "TokenTable",
    "__version__",
    "from_printable",
    "to_printable",
]

__version__: str

# Which special tokens are recognised: none (False, the default), all (True), or these.
_Special: TypeAlias = bool | Collection[str]
# Ids: arrays of integers in one dimension are read as they lie in memory.
_Ids: TypeAlias = Sequence[int] | npt.NDArray[np.integer]

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
    # False where the pattern runs on the regex engine.
    @property
    def is_compiled(self) -> bool: ...
    # States and code point classes of the automaton; 0 where there is none.
    @property
    def states(self) -> int: ...
    @property
    def classes(self) -> int: ...
    # The pieces of `text`, in order; their concatenation is the text.
    def split(self, text: str) -> list[str]: ...
    # The same from the regex engine, whatever the pattern: the oracle of the tests.
    def split_with_regex_engine(self, text: str) -> list[str]: ...
    # The pattern in the words of the regex engine that Hugging Face `tokenizers` uses (Oniguruma).
    def to_oniguruma(self) -> str: ...
    # Why a pattern does not mean the same to two engines, in words that follow it; None if it does.
    @staticmethod
    def objection(
        pattern: str, engines: Literal["to_oniguruma", "from_oniguruma", "python"]
    ) -> str | None: ...
    # A pattern written for Oniguruma, in our words; raises PatternError for what it cannot carry over.
    @staticmethod
    def from_oniguruma(pattern: str) -> str: ...

# A step of normalisation, as Hugging Face `tokenizers` names them; patterns are in our dialect.
_Normalizer: TypeAlias = (
    tuple[Literal["NFC", "NFD", "NFKC", "NFKD", "Lowercase", "StripAccents"]]
    | tuple[Literal["Strip"], bool, bool]  # left, right
    | tuple[Literal["Prepend"], str]
    | tuple[Literal["Replace"], str, str]  # pattern, content
)
_Behavior: TypeAlias = Literal["Isolated", "Removed", "MergedWithPrevious", "MergedWithNext", "Contiguous"]
# A step of pre-tokenisation, likewise.
_PreTokenizer: TypeAlias = (
    # Pattern, behavior, invert. "SplitBytes" comes behind a file's ByteLevel: its pattern sees each byte
    # as the printable character that stands for it.
    tuple[Literal["Split", "SplitBytes"], str, _Behavior, bool]
    | tuple[Literal["PrefixSpace"]]  # a space before each piece that begins with none
    # Replacement, prepend scheme, split.
    | tuple[Literal["Metaspace"], str, Literal["always", "first", "never"], bool]
)
# The character that stands for a space; whether `<0x0A>` is a byte; which spaces at the beginning of a text
# are dropped: none, one, or all of the first token.
_Decoder: TypeAlias = tuple[str, bool, Literal["none", "one", "first"]]

@type_check_only
class _Settings(TypedDict, total=False):
    """How a model treats text; each may be left out."""

    # Each applied to what the one before left, on the text between added tokens that are not `normalized`.
    normalizers: Sequence[_Normalizer]
    normalization: str | None  # a Unicode normal form: short for the only step
    # Each applied to the pieces of the one before.
    pre_tokenizers: Sequence[_PreTokenizer]
    split_patterns: Sequence[str]  # short for steps that isolate matches
    add_prefix_space: bool  # short for a first PrefixSpace
    # What merging begins with; the tokens of "characters" are UTF-8, as the file writes them.
    alphabet: Literal["bytes", "characters"]
    byte_fallback: bool  # a character without a token becomes the tokens <0x00> to <0xFF> of its bytes
    # A byte or character without a token becomes this token, neighbouring ones a single one if `fuse_unk`;
    # without an `unk_id` it is dropped before merging, or after it if it `keeps_gaps` (llama.cpp).
    unk_id: int | None
    fuse_unk: bool
    keeps_gaps: bool
    requires_all_bytes: bool  # refuse a vocabulary of "bytes" that lacks one; True unless said otherwise
    ignore_merges: bool  # a piece that is a token is that token
    decoder: _Decoder | None  # None: the tokens' bytes are the text

@final
class Model:
    """Vocabulary, merges, the steps around merging and added tokens: validated and immutable."""

    # `merges=None`: ids are ranks, as in a .tiktoken file: the merges are derived from them, and a piece
    # that is a token is that token (`ignore_merges`).
    def __new__(
        cls,
        vocab: Mapping[int, bytes],
        merges: Sequence[tuple[bytes, bytes]] | None,
        *,
        added_tokens: Sequence[AddedToken] = ...,
        **settings: Unpack[_Settings],
    ) -> Model: ...
    # The same from the strings of a Hugging Face file: bytes are written as GPT-2's printable characters,
    # characters as themselves. An entry of `vocab` that is an added token's content is that token's.
    @staticmethod
    def from_printable(
        vocab: Mapping[str, int],
        merges: Sequence[tuple[str, str]],
        *,
        added_tokens: Sequence[AddedToken] = ...,
        **settings: Unpack[_Settings],
    ) -> Model: ...
    # The same from a table, without some of its tokens.
    @staticmethod
    def from_table(
        table: TokenTable,
        left_out: Set[str],
        *,
        added_tokens: Sequence[AddedToken] = ...,
        **settings: Unpack[_Settings],
    ) -> Model: ...
    # A copy with other added tokens; shares the vocabulary and merges.
    def with_added_tokens(self, added_tokens: Sequence[AddedToken]) -> Model: ...
    # Every id with its bytes, added tokens included, in the order of the ids.
    @property
    def vocab(self) -> dict[int, bytes]: ...
    # The bytes of an id; None if there is no such id.
    def token(self, token_id: int, /) -> bytes | None: ...
    @property
    def merges(self) -> list[tuple[bytes, bytes]]: ...
    # None where more is done than isolating matches (perhaps behind a PrefixSpace).
    @property
    def split_patterns(self) -> list[str] | None: ...
    # None where there is none, or where it is more than a normal form.
    @property
    def normalization(self) -> str | None: ...
    @property
    def normalizers(self) -> list[_Normalizer]: ...
    @property
    def pre_tokenizers(self) -> list[_PreTokenizer]: ...
    # Bytes, all of them tokens, merged in the pieces of split patterns; text is at most brought to a form.
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
    # Whether all bytes are there.
    @property
    def requires_all_bytes(self) -> bool: ...
    @property
    def decoder(self) -> _Decoder | None: ...
    # In the order of the ids.
    @property
    def added_tokens(self) -> list[AddedToken]: ...
    @property
    def ignore_merges(self) -> bool: ...
    @property
    def add_prefix_space(self) -> bool: ...
    # Bytes and learned tokens, with the added tokens that fill the ids among and right after them when
    # they belong to the vocabulary (reserved at training, or listed in `vocab`).
    @property
    def vocab_size(self) -> int: ...
    # Distinct ids.
    def __len__(self) -> int: ...
    # Ids of added tokens that are also entries of the vocabulary (see vocab_size).
    @property
    def added_ids_in_vocab(self) -> list[int]: ...
    # Printable string to id of every entry of the vocabulary; ModelError for two ids of the same bytes.
    def printable_vocab(self) -> dict[str, int]: ...
    def printable_merges(self) -> list[tuple[str, str]]: ...
    def __getnewargs_ex__(self) -> tuple[tuple[object, ...], dict[str, object]]: ...

@final
class TokenTable:
    """`model.vocab` and `model.merges` of a tokenizer.json, read without an object for each token."""

    # The file with both left empty, and what stands there; None for a file with anything unusual in
    # either, for the json module to read, and to complain about.
    @staticmethod
    def parse(data: bytes) -> tuple[bytes, TokenTable] | None: ...
    def __len__(self) -> int: ...
    def __contains__(self, token: object, /) -> bool: ...
    def get(self, token: str) -> int | None: ...
    # Those of these tokens that a merge joins or makes.
    def merged(self, tokens: Set[str]) -> set[str]: ...

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

    # The ids before the first merge. None is a gap (`keeps_gaps`): it separates its neighbours, and is dropped
    # after merging.
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

@final
class Encoder:
    """A model made ready to run. Shares nothing mutable with its callers but a cache."""

    def __new__(cls, model: Model) -> Encoder: ...
    @property
    def model(self) -> Model: ...
    # Everywhere below: `str` is normalised, lone surrogates become U+FFFD; `bytes` are taken as they are.
    # `special` says which special tokens are recognised.
    # threads=0, here and below: as many as there are processors. Their number never shows in a result.
    def encode(self, text: str | bytes, special: _Special = ..., threads: int = 1) -> list[int]: ...
    def encode_numpy(
        self, text: str | bytes, special: _Special = ..., threads: int = 1
    ) -> npt.NDArray[np.uint32]: ...
    # Spans in characters of the text as given ("char") or in bytes of its UTF-8 ("byte").
    # tile=True: spans follow each other and cover the text; in characters, a boundary inside a character
    # moves to its start. tile=False: a span in characters covers every character that the token has a byte
    # of, as Hugging Face reports them.
    def encode_with_offsets(
        self,
        text: str | bytes,
        special: _Special = ...,
        unit: Literal["char", "byte"] = "char",
        tile: bool = True,
    ) -> tuple[list[int], list[tuple[int, int]]]: ...
    # The ids of the segments' texts as one text, of which only some segments are trusted: special tokens, and
    # further added tokens with the contents `markup`, are found only where they lie in trusted segments.
    # With the first and the last segment that each id covers something of (an added token: of its content).
    def encode_segments(
        self,
        segments: Sequence[tuple[str, bool]],
        special: _Special = ...,
        markup: Set[str] = ...,
    ) -> tuple[list[int], list[tuple[int, int]]]: ...
    def encode_batch(
        self, texts: Sequence[str | bytes], special: _Special = ..., threads: int = 0
    ) -> list[list[int]]: ...
    # (ids of all texts, where each text begins and the last ends). `around`: ids before and behind each.
    def encode_ragged(
        self,
        texts: Sequence[str | bytes],
        special: _Special = ...,
        threads: int = 0,
        around: tuple[Sequence[int], Sequence[int]] = ...,
    ) -> tuple[npt.NDArray[np.uint32], npt.NDArray[np.int64]]: ...
    # The same of the documents in files. CorpusError names the file and the byte that is not UTF-8,
    # SpecialTokenError the special token that was disallowed and is there.
    def encode_files(
        self,
        paths: Sequence[str | PathLike[str]],
        separator: str | None = None,
        special: _Special = ...,
        disallowed: _Special = ...,
        threads: int = 0,
        around: tuple[Sequence[int], Sequence[int]] = ...,
    ) -> tuple[npt.NDArray[np.uint32], npt.NDArray[np.int64]]: ...
    def count(self, text: str | bytes, special: _Special = ..., threads: int = 1) -> int: ...
    # Number of characters of the longest prefix (found at token boundaries) that encodes to at most
    # max_tokens ids and ends at a character.
    def truncate(self, text: str, max_tokens: int, special: _Special = ...) -> int: ...
    # The first special token that encoding with these would find: (content, index of its first character).
    def find_special(self, text: str | bytes, special: _Special) -> tuple[str, int] | None: ...
    # The pieces that the text is cut into before merging (special tokens as pieces of their own).
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
    # UnknownIdError names an id outside the vocabulary. replaces_broken: each byte of a run of tokens like
    # <0x0A> that is not UTF-8 becomes U+FFFD.
    def decode(
        self, ids: _Ids, skip_special_tokens: bool = False, replaces_broken: bool = False
    ) -> bytes: ...
    # Bytes that are not UTF-8 are for a handler of `bytes.decode`, and its errors pass through; "replace"
    # replaces_broken.
    def decode_text(self, ids: _Ids, skip_special_tokens: bool = False, errors: str = "replace") -> str: ...
    # threads=0: as many as there are processors.
    def decode_batch(
        self,
        batch: Sequence[_Ids],
        skip_special_tokens: bool = False,
        threads: int = 0,
        replaces_broken: bool = False,
    ) -> list[bytes]: ...
    # The id `left_out` is no part of any row.
    def decode_text_batch(
        self,
        batch: Sequence[_Ids],
        skip_special_tokens: bool = False,
        errors: str = "replace",
        threads: int = 0,
        left_out: int | None = None,
    ) -> list[str]: ...
    def cache_statistics(self) -> CacheStatistics: ...
    def clear_cache(self) -> None: ...
    @property
    def cache_bytes(self) -> int: ...
    def limit_cache(self, max_bytes: int) -> None: ...

@final
class EncodeStream:
    """Text that comes some at a time to ids: those of the whole text, as soon as they are certain."""

    def __new__(cls, encoder: Encoder, special: _Special = ...) -> EncodeStream: ...
    # The ids that the text so far makes certain. A pair of surrogates must not be cut.
    def push(self, text: str) -> list[int]: ...
    # The rest; then another text may begin.
    def finish(self) -> list[int]: ...

@final
class DecodeStream:
    """Ids that come some at a time to bytes: whole characters, and what can be no part of one."""

    def __new__(
        cls, encoder: Encoder, skip_special_tokens: bool = False, replaces_broken: bool = False
    ) -> DecodeStream: ...
    # UnknownIdError names an id outside the vocabulary; then nothing was taken.
    def step(self, ids: _Ids) -> bytes: ...
    # The rest; then another text may begin.
    def finish(self) -> bytes: ...

@final
class PieceCounter:
    """Counts the pieces of a corpus, document by document, and learns merges from the counts."""

    # max_memory: bytes that counting and learning may take, about; the rarest pieces are dropped for it.
    def __new__(
        cls,
        *,
        split_patterns: Sequence[str],
        normalization: str | None = None,
        special_tokens: Sequence[str] = ...,
        threads: int = 0,
        max_memory: int | None = None,
    ) -> PieceCounter: ...
    # One that counted nothing yet, with the same settings.
    def empty(self) -> PieceCounter: ...
    # Each text is a document; each of its pieces counts `weight` times. UTF-8 errors in `bytes`: CorpusError
    # with the document's number and the byte.
    def add_texts(self, texts: Sequence[str | bytes], weight: int = 1) -> None: ...
    # Each row is a document: data[offsets[i]:offsets[i + 1]], in UTF-8. Errors count rows from `first` on.
    def add_rows(
        self,
        data: npt.NDArray[np.uint8],
        offsets: npt.NDArray[np.int64],
        weight: int = 1,
        first: int = 0,
    ) -> None: ...
    # Each file is a document. Begins at a position (file, byte) that was returned before, goes on for about
    # `most` bytes, and returns how far it came; (len(paths), 0) is the end. progress(bytes counted by this
    # call) is called now and then.
    def add_files(
        self,
        paths: Sequence[str | PathLike[str]],
        position: tuple[int, int] = ...,
        *,
        most: int = ...,
        weight: int = 1,
        progress: Callable[[int], None] | None = None,
    ) -> tuple[int, int]: ...
    # The part of a file from the first place at `start` or behind it where it may be cut to the first such
    # place at `end` or behind it. The one with start 0 counts the document.
    def add_range(self, path: str | PathLike[str], start: int, end: int, weight: int = 1) -> None: ...
    # Pieces that were counted elsewhere: data[offsets[i]:offsets[i + 1]] occurs counts[i] times.
    def add_pieces(
        self,
        data: npt.NDArray[np.uint8],
        offsets: npt.NDArray[np.int64],
        counts: npt.NDArray[np.uint64],
    ) -> None: ...
    # More documents, whose pieces were counted elsewhere.
    def add_documents(self, documents: int) -> None: ...
    # All that the other counted; `take` leaves it nothing, which spares a copy.
    def merge(self, other: PieceCounter, weight: int = 1, *, take: bool = False) -> None: ...
    @property
    def documents(self) -> int: ...
    # Pieces and distinct pieces counted so far.
    @property
    def pieces(self) -> int: ...
    @property
    def distinct(self) -> int: ...
    # How often a piece was dropped to save memory, the sum of their counts, and the most that a count can
    # be too low by.
    @property
    def dropped(self) -> tuple[int, int, int]: ...
    # The pieces in the order of their bytes, as `add_pieces` takes them.
    def arrays(self) -> tuple[npt.NDArray[np.uint8], npt.NDArray[np.int64], npt.NDArray[np.uint64]]: ...
    # The pieces and their counts as bytes, behind those given; and what was saved so, from byte `begin` on.
    def save(self, begin: bytes) -> bytes: ...
    def load(self, data: bytes, begin: int, documents: int, dropped: tuple[int, int, int]) -> None: ...
    # A model of the 256 bytes, the added tokens with ids below `vocab_size`, and learned tokens with the other
    # ids below it. Text is cut as this counter cuts it.
    # `model`: extend this model instead. Learned tokens get the ids after its largest; `added_tokens` is not used.
    # `learned`: the merges that an interrupted run on the same pieces with the same arguments saved. The result
    # is that of the uninterrupted run. OptionError names a merge that is impossible.
    # progress(learned tokens, wanted tokens) is called every 100 tokens.
    # checkpoint(merges since its last call) is called after about each `checkpoint_seconds` of work.
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
    ) -> Model: ...

# GPT-2's printable characters of these bytes, and back: None for a string with another character.
def to_printable(token: bytes) -> str: ...
def from_printable(token: str) -> bytes | None: ...
