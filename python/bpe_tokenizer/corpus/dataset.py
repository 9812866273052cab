"""Reads what `tokenize_corpus` wrote as sequences for training: shuffled, weighted, by rank, resumable."""

from __future__ import annotations

import copy
import math
import operator
import sys
import warnings
from bisect import bisect_right
from collections.abc import Collection, Iterator, Mapping, Sequence
from hashlib import blake2b
from importlib import import_module
from importlib.util import find_spec
from itertools import accumulate
from pathlib import Path
from typing import Any, Literal, SupportsIndex

import numpy as np
import numpy.typing as npt

from bpe_tokenizer.arguments import check_choice, check_integer, check_path
from bpe_tokenizer.atomic import url_of
from bpe_tokenizer.corpus.checksums import digest, read_errors, size_of
from bpe_tokenizer.corpus.manifest import MANIFEST, read_json
from bpe_tokenizer.corpus.packed_shards import PackedSequences
from bpe_tokenizer.corpus.result import PathLike
from bpe_tokenizer.corpus.shards import FORMATS, ShardFormatName
from bpe_tokenizer.errors import CorpusError, OptionError, caller_level, shorten

__all__ = ["TokenDataset", "TokenStream", "permuted"]

_MASKS = ("position_ids", "document_ids", "cu_seqlens", "labels")
_SETTINGS = ("format", "dtype", "pack", "val_fraction", "tokenizer", "content")
_STATE = ("epoch", "base", "taken", "world_size", "seed", "data")
_ROUNDS = 6

Sample = dict[str, npt.NDArray[Any]]


class TokenDataset:
    r"""The sequences of directories of `tokenize_corpus`: a map-style dataset, with or without PyTorch.

    A sample is a dict of arrays: `input_ids`, int64, and of packed directories the `masks`, int32. PyTorch's
    `DataLoader` makes tensors of them. `dataset[i]` is sample i of the epoch:

    - The ids of a directory are cut every `sequence_length`, also across its shards; what is left at its end
      is dropped. The sequences of a packed directory are its rows.
    - With weight w, an epoch has `round(w * n)` samples of a directory of n sequences. Over the epochs, each
      of its sequences comes once before any comes again, so two epochs with w = 0.5 have each once.
    - The order is a function of the seed, the epoch and the manifests only. Without a seed, the directories
      come one after another. No permutation is in memory: a Feistel network computes each place.

    A pickle has the paths; files are mapped where it is read.

    Args:
        directories: A directory, several, or a dict with the weight of each.
        sequence_length: The number of ids of a sequence; None for packed directories, which have theirs.
        split: `"train"` or `"val"`, of directories that `val_fraction` divided.
        seed: The seed of the order, from 0; None for no shuffling.
        masks: What else a sample of packed directories has: `"position_ids"`, `"document_ids"`,
            `"cu_seqlens"` and, of conversations, `"labels"`, of which `PackedSequences` has more. None for
            the first two, and the labels of conversations.

    Raises:
        CorpusError: A directory has no finished run, or a file of it has another size than the run gave it.
        OptionError: A directory has no ids in sequence, the directories are not of one tokenizer, a directory
            is named twice, or an option is out of range.

    >>> import tempfile
    >>> from bpe_tokenizer import BPETokenizer
    >>> from bpe_tokenizer.corpus import tokenize_corpus
    >>> tokenizer = BPETokenizer().train("low lower", 258, special_tokens=["<|eos|>"], verbose=False)
    >>> directory = Path(tempfile.mkdtemp())
    >>> _ = (directory / "corpus.txt").write_text("low\nlower\n" * 20, encoding="utf-8")
    >>> _ = tokenize_corpus(directory / "corpus.txt", directory / "ids", tokenizer, documents="line")
    >>> dataset = TokenDataset(directory / "ids", 16, seed=1)
    >>> len(dataset), dataset[0]["input_ids"].shape
    (10, (16,))
    >>> stream = dataset.stream(batch_size=2, rank=0, world_size=4)
    >>> len(list(stream))
    2
    """

    def __init__(
        self,
        directories: PathLike | Sequence[PathLike] | Mapping[str, float] | Mapping[Path, float],
        sequence_length: int | None = None,
        *,
        split: Literal["train", "val"] = "train",
        seed: int | None = None,
        masks: Collection[str] | None = None,
    ) -> None:
        check_choice("split", split, ("train", "val"))
        masks = [masks] if isinstance(masks, str) else masks
        for mask in masks or ():
            check_choice("masks", mask, _MASKS)
        if sequence_length is not None:
            sequence_length = check_integer("sequence_length", sequence_length, 1)
        self.seed = None if seed is None else check_integer("seed", seed, 0, maximum=2**64 - 1)
        self.epoch = 0
        if isinstance(directories, str) or not isinstance(directories, Mapping | Sequence):
            directories = [directories]
        weights = directories if isinstance(directories, Mapping) else dict.fromkeys(directories, 1.0)
        if len(weights) < len(directories):
            raise OptionError("a directory is named twice; give it a weight of 2: {directory: 2}")
        if not weights:
            raise OptionError("directories is empty; name at least one directory of tokenize_corpus")
        self._parts = [
            _Directory(check_path("directories", path), sequence_length, split, masks) for path in weights
        ]
        first = self._parts[0]
        for part in self._parts:
            if (part.tokenizer, part.length, part.is_packed) != (
                first.tokenizer, first.length, first.is_packed
            ):  # fmt: skip
                raise OptionError(f"{first.path} and {part.path} have different tokenizers or lengths")
        self._counts = [
            _count(part, weight) for part, weight in zip(self._parts, weights.values(), strict=True)
        ]
        self._ends = list(accumulate(self._counts))
        self.digest = digest([self._counts, [part.files for part in self._parts]])

    def __len__(self) -> int:
        """Return the number of samples of an epoch, of all ranks together."""
        return self._ends[-1]

    def __iter__(self) -> Iterator[Sample]:
        """Yield the samples of the epoch."""
        return map(self.__getitem__, range(len(self)))

    def __getitem__(self, index: SupportsIndex) -> Sample:
        """Return a sample of the epoch."""
        count, place = len(self), operator.index(index)
        if not -count <= place < count:
            raise IndexError(f"sample {place} of {count}")
        place = self._permuted(place % count, count, 0, self.epoch)
        number = bisect_right(self._ends, place)
        part, share = self._parts[number], self._counts[number]
        passed, place = divmod(place - self._ends[number] + share * (self.epoch + 1), part.count)
        return part.sample(self._permuted(place, part.count, number + 1, passed))

    def _permuted(self, place: int, count: int, *key: int) -> int:
        return place if self.seed is None else permuted(place, count, (self.seed, *key))

    def set_epoch(self, epoch: int) -> None:
        """Choose the epoch, from 0, whose samples come. `DataLoader` copies it to new workers.

        This does not change the epoch of a `TokenStream` that was made before: call its `set_epoch`.
        """
        self.epoch = check_integer("epoch", epoch, 0)

    def stream(self, *, batch_size: int | None = None, rank: int = 0, world_size: int = 1) -> TokenStream:
        """Return the samples of one rank, to iterate over: see `TokenStream`, also for the arguments."""
        return TokenStream(self, batch_size=batch_size, rank=rank, world_size=world_size)


class TokenStream:
    """The samples of one rank in sequence: an `IterableDataset` of PyTorch, or an iterator without it.

    Sample `i * world_size + rank` of the epoch is the rank's sample i. All ranks have as many: the last
    `len(dataset) % world_size` samples of the epoch are dropped. The workers of a `DataLoader` take turns
    with whole batches, so its batches have the rank's order with any number of workers.

    An iteration goes on after the last sample that was taken, and ends with the epoch; the next one is of the
    next epoch. Workers that are not persistent are new in each epoch: call `set_epoch` before.

    Args:
        dataset: The samples.
        batch_size: That of the `DataLoader`, which nothing can check: with another one, samples would be lost
            when a run is resumed. None for a `DataLoader` without workers.
        rank: The number of this process, from 0.
        world_size: The number of processes.

    Raises:
        OptionError: A number is out of range, or there are more processes than samples.
    """

    def __init__(
        self, dataset: TokenDataset, *, batch_size: int | None = None, rank: int = 0, world_size: int = 1
    ) -> None:
        self._dataset = copy.copy(dataset)
        self._batch_size = None if batch_size is None else check_integer("batch_size", batch_size, 1)
        self._world_size = check_integer("world_size", world_size, 1, "the samples", maximum=len(dataset))
        self._rank = check_integer("rank", rank, 0, "the number of the last process", maximum=world_size - 1)
        # The samples of all ranks that were taken before, and those of this rank after them.
        self._base = self._taken = 0
        self._has_begun = False
        if find_spec("torch") is not None:  # DataLoader asks for its class.
            import_module("torch.utils.data").IterableDataset.register(TokenStream)

    def __len__(self) -> int:
        """Return the number of samples of this rank in an epoch."""
        return len(self._dataset) // self._world_size

    def __iter__(self) -> Iterator[Sample]:
        """Yield the samples from the position on, in a worker those of its batches."""
        worker, workers = _worker()
        if self._batch_size is None and workers > 1:
            raise OptionError("for a DataLoader with workers, give its batch size: stream(batch_size=...)")
        batch_size = self._batch_size or 1
        for number in range(self._taken, (len(self._dataset) - self._base) // self._world_size):
            if number // batch_size % workers == worker:
                sample = self._dataset[self._base + number * self._world_size + self._rank]
                self._taken, self._has_begun = number + 1, True
                yield sample
        self.set_epoch(self._dataset.epoch + 1)

    def set_epoch(self, epoch: int) -> None:
        """Choose the epoch, from 0. The position is then its begin, unless it is the epoch already."""
        if epoch != self._dataset.epoch:
            self._dataset.set_epoch(epoch)
            self._base = self._taken = 0

    def state_dict(self, taken: int | None = None) -> dict[str, int | str | None]:
        """Return the position, as JSON values, for `load_state_dict` of any rank.

        Args:
            taken: The number of samples that this rank has taken in this epoch since the stream was made or
                loaded. None for what was iterated here: with workers, only the training loop knows, and a
                warning says that nothing was.

        Raises:
            OptionError: The rest of the epoch has fewer samples.
        """
        if taken is None and self._batch_size is not None and not self._has_begun and _worker()[1] == 1:
            warnings.warn(
                "no sample was taken from the stream in this process: with the workers of a DataLoader, give "
                "state_dict(taken=...), the samples that this rank has taken in this epoch",
                stacklevel=caller_level(),
            )
        elif taken is not None:
            left = (len(self._dataset) - self._base) // self._world_size
            # Steps times the size of a batch count a short last batch as a whole one.
            most = left + (self._batch_size or 1) - 1
            taken = min(check_integer("taken", taken, 0, "what is left of the epoch", maximum=most), left)
        base = self._base + (taken or 0) * self._world_size
        return {
            "epoch": self._dataset.epoch,
            "base": base,
            "taken": self._taken if taken is None else 0,
            "world_size": self._world_size,
            "seed": self._dataset.seed,
            "data": self._dataset.digest,
        }

    def load_state_dict(self, state: Mapping[str, object]) -> None:
        """Go to a position, also one of a run with another number of ranks, which had equally many steps.

        Raises:
            ArgumentTypeError: A number of it is not an integer.
            OptionError: It is not one of these samples in this order.
        """
        if not isinstance(state, Mapping) or {*state} != {*_STATE}:
            raise OptionError(
                f"the state must be a dict of state_dict(), with {', '.join(_STATE)}, and is {shorten(state)}"
            )
        expected = {"seed": self._dataset.seed, "data": self._dataset.digest}
        for name, value in expected.items():
            if state[name] != value:
                raise OptionError(
                    f"the state is of a dataset whose {name} is {state[name]}, not {value}; make the "
                    "dataset as the run did that saved it"
                )
        samples = len(self._dataset)
        epoch, base, taken, world_size = (check_integer(name, state[name], 0) for name in _STATE[:4])
        if base + taken * world_size > samples:
            raise OptionError(f"the state is at sample {base + taken * world_size:,} of {samples:,}")
        self._dataset.set_epoch(epoch)
        self._base, self._taken = base, taken
        if world_size != self._world_size:
            self._base, self._taken = base + taken * world_size, 0


class _Directory:
    """The sequences of a directory.

    Args:
        path: The directory.
        length: The number of ids of a sequence; None for that of packed sequences.
        split: The side of a division.
        masks: The masks of packed sequences; None for those of its content.
    """

    def __init__(self, path: Path, length: int | None, split: str, masks: Collection[str] | None) -> None:
        self.path = path
        settings, shards = _manifest(path)
        name: ShardFormatName = settings["format"]
        pack: int | None = settings["pack"]
        is_chat = settings["content"] == "messages"
        header = FORMATS[name].header if name in FORMATS else None
        if header is None:
            raise OptionError(
                f"{path} holds shards of {name}, whose ids are not one sequence; use the readers of {name}, "
                "or write 'npy'"
            )
        if pack is None and is_chat:
            raise OptionError(f"{path} holds conversations with a mask for OLMo-core; write packed 'npy'")
        if settings["val_fraction"] is None and split != "train":
            raise OptionError(f"{path} is not divided (val_fraction), so it has no split {split!r}")
        if pack is None and length is None:
            raise OptionError(f"{path} is not packed; give sequence_length")
        if None not in (pack, length) and pack != length:
            raise OptionError(f"{path} has packed sequences of {pack:,} ids, not {length:,}")
        if masks and pack is None:
            raise OptionError(f"{path} has no masks: it is not packed")
        if masks and "labels" in masks and not is_chat:
            raise OptionError(f"{path} has no labels: it holds no conversations")
        self.is_packed = pack is not None
        self.length: int = pack or length or 0
        self.tokenizer: str = settings["tokenizer"]
        own_masks = [*_MASKS[:2], *(("labels",) if is_chat else ())] if self.is_packed else []
        self._masks = tuple(own_masks if masks is None else masks)
        self._dtype = np.dtype(settings["dtype"]).newbyteorder("<")
        # The first file of a shard has the ids.
        side = "" if settings["val_fraction"] is None else f".{split}."
        of_side = ([each for each in shard.items() if side in each[0]] for shard in shards)
        self.files = [(name, size, sha256) for listed in of_side for name, (size, sha256) in listed[:1]]
        for file, size, _ in self.files:
            if size_of(path / file) != size:
                raise CorpusError(f"{path / file} is not as {MANIFEST} lists it; run tokenize_corpus again")
        self._header = len(header(self._dtype, 0))
        sizes = [(size - self._header) // self._dtype.itemsize for _, size, _ in self.files]
        self._ends = list(accumulate(sizes, initial=0))
        self.count = self._ends[-1] // self.length
        self._maps: dict[int, npt.NDArray[Any]] = {}
        self._packed: dict[int, PackedSequences] = {}
        if not self.count:
            raise OptionError(f"{path} has {self._ends[-1]:,} ids, fewer than a sequence")

    def sample(self, number: int) -> Sample:
        """Return a sequence."""
        start = number * self.length
        first = shard = bisect_right(self._ends, start) - 1
        ids = np.empty(self.length, np.int64)
        filled = 0
        while filled < self.length:
            begin = start + filled - self._ends[shard]
            part = self._map(shard)[begin : begin + self.length - filled]
            ids[filled : filled + len(part)] = part
            filled += len(part)
            shard += 1
        sample = {"input_ids": ids}
        if self._masks:
            packed = self._packed.get(first) or PackedSequences.load(self.path / self.files[first][0])
            self._packed[first] = packed
            row = (start - self._ends[first]) // self.length
            for mask in self._masks:
                values = getattr(packed, mask)(row, row + 1)
                sample[mask] = values if mask == "cu_seqlens" else values[0]
        return sample

    def _map(self, shard: int) -> npt.NDArray[Any]:
        if shard not in self._maps:
            name, size, _ = self.files[shard]
            is_empty = size == self._header  # which cannot be mapped
            with read_errors(self.path / name):
                self._maps[shard] = (
                    np.empty(0, self._dtype)
                    if is_empty
                    else np.memmap(self.path / name, self._dtype, "r", self._header)
                )
        return self._maps[shard]

    def __getstate__(self) -> dict[str, Any]:
        """Return what a pickle has: no maps."""
        return {**self.__dict__, "_maps": {}, "_packed": {}}


def permuted(place: int, count: int, key: Sequence[int]) -> int:
    """Return where a pseudorandom permutation of `range(count)` puts a number.

    A Feistel network (Luby and Rackoff, 1988) permutes the numbers of an even number of bits; numbers from
    `count` on are permuted again ("cycle walking", Black and Rogaway, 2002), at most four times on average.

    Args:
        place: A number, from 0 to `count - 1`.
        count: How many numbers there are.
        key: Numbers below 2**64 that choose the permutation, at most eight.

    >>> sorted(permuted(place, 10, [1]) for place in range(10)) == list(range(10))
    True
    """
    half = max(((count - 1).bit_length() + 1) // 2, 1)
    mask = (1 << half) - 1
    secret = b"".join(number.to_bytes(8, "little") for number in key)
    while True:
        left, right = place >> half, place & mask
        for number in range(_ROUNDS):
            data = right.to_bytes(8, "little") + bytes([number])
            found = blake2b(data, key=secret, digest_size=8).digest()
            left, right = right, left ^ int.from_bytes(found, "little") & mask
        place = left << half | right
        if place < count:
            return place


def _count(part: _Directory, weight: Any) -> int:
    """Return how many samples of a directory an epoch has."""
    if isinstance(weight, bool) or not isinstance(weight, int | float) or not 0 < weight < math.inf:
        raise OptionError(f"the weight of {part.path} is {weight!r}; it must be a number larger than 0")
    samples: int = round(weight * part.count)
    if not samples:
        raise OptionError(f"{part.path} has no sample in an epoch: {weight} times {part.count:,} sequences")
    return samples


def _manifest(path: Path) -> tuple[Any, list[Any]]:
    """Return the settings of a finished run, and the files of each shard."""
    if url_of(path) is not None:
        raise OptionError(f"{path} is a URL; TokenDataset maps files, so copy the directory to this machine")
    if not (path / MANIFEST).is_file():
        raise CorpusError(f"{path} has no {MANIFEST}, so it holds no finished run of tokenize_corpus")
    manifest = read_json(path / MANIFEST)
    try:
        settings = {name: manifest["settings"][name] for name in _SETTINGS}
        return settings, [shard["files"] for shard in manifest["shards"]]
    except (KeyError, TypeError):
        raise CorpusError(f"{path / MANIFEST} is not the manifest of a run of this version") from None


def _worker() -> tuple[int, int]:
    """Return the number of this worker of a `DataLoader`, and how many there are."""
    data = sys.modules.get("torch.utils.data")
    worker = None if data is None else data.get_worker_info()
    return (0, 1) if worker is None else (worker.id, worker.num_workers)
