"""`TokenDataset` and `TokenStream`: what a sample is, their order, ranks, workers, weights, and resuming."""

from __future__ import annotations

import json
import pickle
import shutil
from collections import Counter
from collections.abc import Sequence
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bpe_tokenizer import BPETokenizer
from bpe_tokenizer.corpus import PackedSequences, TokenDataset, TokenStream, dataset
from bpe_tokenizer.corpus.dataset import permuted
from bpe_tokenizer.errors import ArgumentTypeError, CorpusError, OptionError, TokenizerError
from line_documents import tokenize_corpus
from token_files import flat

LENGTH = 7


@pytest.fixture(scope="module")
def tokenizer() -> BPETokenizer:
    return BPETokenizer().train("low lower lowest", 260, special_tokens=["<|eos|>"], verbose=False)


def texts(name: str, count: int) -> str:
    """Texts of which no two sequences are equal."""
    return "\n".join(sha256(f"{name} {number}".encode()).hexdigest()[:12] for number in range(count))


@pytest.fixture(scope="module")
def directory(tmp_path_factory: pytest.TempPathFactory, tokenizer: BPETokenizer) -> Path:
    """A directory of shards that end within sequences."""
    path = tmp_path_factory.mktemp("dataset")
    (path / "corpus.txt").write_text(texts("ids", 60))
    tokenize_corpus(path / "corpus.txt", path / "ids", tokenizer, shard_tokens=40)
    (path / "others.txt").write_text(texts("others", 40))
    tokenize_corpus(path / "others.txt", path / "others", tokenizer)
    return path


def ids_of(sample: dict[str, Any]) -> tuple[int, ...]:
    assert sample["input_ids"].dtype == np.int64
    return tuple(sample["input_ids"].tolist())


def stored(directory: Path) -> list[tuple[int, ...]]:
    ids = flat([np.fromfile(path, "<u2").tolist() for path in sorted((directory / "ids").glob("tokens*"))])
    return [tuple(ids[start : start + LENGTH]) for start in range(0, len(ids) - LENGTH + 1, LENGTH)]


@pytest.mark.parametrize(
    ("name", "dtype"),
    [
        *(("nanogpt", "uint16"), ("nanogpt", "uint32"), ("llm.c", "uint16"), ("llm.c", "uint32")),
        *(("megatron", "int32"), ("npy", "uint32"), ("olmo", "uint16"), ("datatrove", "uint32")),
        *(("litdata", "uint16"), ("litdata", "int32")),
    ],
)
def test_formats(name: Any, dtype: Any, directory: Path, tmp_path: Path, tokenizer: BPETokenizer) -> None:
    corpus = directory / "corpus.txt"
    tokenize_corpus(corpus, tmp_path / "out", tokenizer, name, dtype=dtype, shard_tokens=40)
    assert [ids_of(each) for each in TokenDataset(tmp_path / "out", LENGTH)] == stored(directory)


@pytest.mark.parametrize("name", ["parquet", "mds"])
def test_formats_without_a_sequence_of_ids(
    name: Any, directory: Path, tmp_path: Path, tokenizer: BPETokenizer
) -> None:
    if name == "parquet":
        pytest.importorskip("pyarrow")
    tokenize_corpus(directory / "corpus.txt", tmp_path / "out", tokenizer, name)
    with pytest.raises(OptionError, match=f"shards of {name}, whose ids are not one sequence; use the"):
        TokenDataset(tmp_path / "out", LENGTH)


@pytest.mark.parametrize("strategy", ["concat", "best-fit"])
def test_packed(strategy: Any, directory: Path, tmp_path: Path, tokenizer: BPETokenizer) -> None:
    made = tokenize_corpus(
        directory / "corpus.txt", tmp_path / "out", tokenizer, "npy", pack=16, pack_strategy=strategy,
        shard_tokens=100,
    )  # fmt: skip
    masks = ("position_ids", "document_ids", "cu_seqlens")
    samples = list(TokenDataset(tmp_path / "out", masks=masks))
    number = 0
    for path in made.files[::3]:
        packed = PackedSequences.load(path)
        for row in range(len(packed.ids)):
            expected = [packed.ids[row], *(getattr(packed, mask)(row, row + 1) for mask in masks)]
            found = [samples[number][name] for name in ("input_ids", *masks)]
            assert [each.tolist() for each in found] == [each.reshape(-1).tolist() for each in expected]
            number += 1
    assert number == len(samples)
    assert set(TokenDataset(tmp_path / "out", 16)[0]) == {"input_ids", *masks[:2]}
    assert set(TokenDataset(tmp_path / "out", masks=masks[0])[0]) == {"input_ids", masks[0]}
    with pytest.raises(OptionError, match="packed sequences of 16 ids, not 7"):
        TokenDataset(tmp_path / "out", LENGTH)


def test_the_sides_of_a_division(directory: Path, tmp_path: Path, tokenizer: BPETokenizer) -> None:
    tokenize_corpus(directory / "corpus.txt", tmp_path / "out", tokenizer, val_fraction=0.2, shard_tokens=40)
    for split in ("train", "val"):
        expected = np.fromfile(tmp_path / "out" / f"{split}.bin", "<u2")
        samples = [ids_of(each) for each in TokenDataset(tmp_path / "out", LENGTH, split=split)]
        assert flat(samples) == expected[: len(expected) // LENGTH * LENGTH].tolist()
    with pytest.raises(OptionError, match="is not divided"):
        TokenDataset(directory / "ids", LENGTH, split="val")


# The order


@given(st.integers(1, 300), st.lists(st.integers(0, 2**64 - 1), max_size=8))
def test_a_permutation(count: int, key: list[int]) -> None:
    assert sorted(permuted(place, count, key) for place in range(count)) == list(range(count))


def test_permutations_look_random() -> None:
    found = [[permuted(place, 5, [seed]) for place in range(5)] for seed in range(2400)]
    for place in range(5):
        counts = Counter(order[place] for order in found)
        assert all(400 < counts[value] < 560 for value in range(5))
    assert len(Counter(map(tuple, found))) == 120


def test_the_order_depends_on_seed_and_epoch(directory: Path) -> None:
    samples = stored(directory)
    assert len(set(samples)) == len(samples)
    found = {}
    for seed in (1, 2):
        shuffled = TokenDataset(directory / "ids", LENGTH, seed=seed)
        for epoch in (0, 1):
            shuffled.set_epoch(epoch)
            found[seed, epoch] = [ids_of(each) for each in shuffled]
            again = pickle.loads(pickle.dumps(shuffled))
            assert [ids_of(again[number]) for number in range(len(again))] == found[seed, epoch]
            assert Counter(found[seed, epoch]) == Counter(samples)
    assert len({tuple(order) for order in found.values()} | {tuple(samples)}) == 5
    with pytest.raises(IndexError):
        shuffled[len(shuffled)]
    assert ids_of(shuffled[-1]) == found[2, 1][-1]


def test_a_pickle_has_no_ids(directory: Path) -> None:
    whole = TokenDataset(directory / "ids", LENGTH)
    before = len(pickle.dumps(whole))
    list(whole)
    assert len(pickle.dumps(whole)) == before


@given(st.floats(0.1, 3), st.floats(0.1, 3), st.one_of(st.none(), st.integers(0, 9)))
def test_weights(directory: Path, first: float, second: float, seed: int | None) -> None:
    """Over the epochs, each sequence of a directory comes once before any comes again."""
    weights = {directory / "ids": first, directory / "others": second}
    mixed = TokenDataset(weights, LENGTH, seed=seed)
    sides = [{ids_of(each) for each in TokenDataset(path, LENGTH)} for path in weights]
    assert sides[0].isdisjoint(sides[1])
    assert len(mixed) == sum(
        max(round(weight * len(side)), 1) for weight, side in zip(weights.values(), sides, strict=True)
    )
    counts: Counter[tuple[int, ...]] = Counter()
    for epoch in range(3):
        mixed.set_epoch(epoch)
        counts.update(ids_of(each) for each in mixed)
        for side in sides:
            of_side = [counts[each] for each in side]
            assert max(of_side) - min(of_side) <= 1


# Ranks, workers, and resuming


def stream_of(directory: Path, seed: int | None = 5, **options: Any) -> TokenStream:
    return TokenDataset(directory / "ids", LENGTH, seed=seed).stream(**options)


def loaded(stream: TokenStream, workers: int, batch_size: int) -> list[tuple[int, ...]]:
    """What PyTorch's `DataLoader` returns: the batches of the workers, in turns."""
    batches = []
    for worker in range(workers):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(dataset, "_worker", lambda worker=worker: (worker, workers))
            samples = [ids_of(each) for each in pickle.loads(pickle.dumps(stream))]
        batches.append([samples[at : at + batch_size] for at in range(0, len(samples), batch_size)])
    rounds = [each[number : number + 1] for number in range(len(batches[0])) for each in batches]
    return flat(flat(rounds))


@settings(max_examples=25)
@given(st.integers(1, 6), st.integers(1, 4), st.integers(1, 5), st.integers(0, 3), st.data())
def test_ranks_and_workers(
    directory: Path, world_size: int, workers: int, batch_size: int, epoch: int, data: st.DataObject
) -> None:
    whole = TokenDataset(directory / "ids", LENGTH, seed=5)
    whole.set_epoch(epoch)
    order = [ids_of(each) for each in whole]
    used = len(order) // world_size * world_size
    for rank in range(world_size):
        stream = whole.stream(batch_size=batch_size, rank=rank, world_size=world_size)
        assert len(stream) == used // world_size
        assert loaded(stream, workers, batch_size) == order[rank:used:world_size]
        # The training loop counts whole batches, also a short last one; a new stream goes on after them,
        # also with other workers.
        steps = data.draw(st.integers(0, -(-len(stream) // batch_size)))
        resumed = whole.stream(batch_size=batch_size, rank=rank, world_size=world_size)
        resumed.load_state_dict(json.loads(json.dumps(stream.state_dict(steps * batch_size))))
        others = data.draw(st.integers(1, 4))
        assert loaded(resumed, others, batch_size) == order[rank:used:world_size][steps * batch_size :]


@settings(max_examples=25)
@given(st.integers(1, 4), st.integers(1, 4), st.integers(0, 20))
def test_resuming_with_another_number_of_ranks(directory: Path, before: int, after: int, taken: int) -> None:
    found = []
    for rank in range(before):
        stream = stream_of(directory, rank=rank, world_size=before)
        samples = iter(stream)
        taken = min(taken, len(stream))
        found += [ids_of(next(samples)) for _ in range(taken)]
    state = stream.state_dict()
    for rank in range(after):
        resumed = stream_of(directory, rank=rank, world_size=after)
        resumed.load_state_dict(state)
        found += [ids_of(each) for each in resumed]
    order = [ids_of(each) for each in TokenDataset(directory / "ids", LENGTH, seed=5)]
    assert not Counter(found) - Counter(order)
    assert len(order) - len(found) < after


def test_each_worker_can_resume(directory: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The copies of torchdata's `StatefulDataLoader` save and load their own positions."""
    found = []
    for worker in range(3):
        monkeypatch.setattr(dataset, "_worker", lambda worker=worker: (worker, 3))
        stream, resumed = (stream_of(directory, batch_size=2) for _ in range(2))
        samples = iter(stream)
        found += [ids_of(next(samples)) for _ in range(1 + worker)]
        resumed.load_state_dict(stream.state_dict())
        found += [ids_of(each) for each in resumed]
    assert Counter(found) == Counter(stored(directory))


def test_epochs_follow(directory: Path) -> None:
    stream = stream_of(directory)
    samples = iter(stream)
    next(samples)
    first = [*[ids_of(each) for each in stream], *[ids_of(each) for each in stream]]
    assert len(first) == 2 * len(stream) - 1
    assert stream.state_dict()["epoch"] == 2
    stream.set_epoch(0)
    assert [ids_of(each) for each in stream][1:] == first[: len(stream) - 1]


# Errors


def no_run(path: Path) -> Sequence[Path]:
    return [path / "nothing"]


def changed(path: Path) -> Sequence[Path]:
    (path / "ids" / "tokens-00000.bin").write_bytes(b"12")
    return [path / "ids"]


def no_manifest(path: Path) -> Sequence[Path]:
    (path / "ids" / "manifest.json").write_text("{}")
    return [path / "ids"]


def other_tokenizer(path: Path) -> Sequence[Path]:
    tokenizer = BPETokenizer().train("slow", 259, special_tokens=["<|eos|>"], verbose=False)
    tokenize_corpus(path / "corpus.txt", path / "more", tokenizer)
    return [path / "ids", path / "more"]


@pytest.mark.parametrize(
    ("make", "options", "kind", "message"),
    [
        (no_run, {}, CorpusError, r"nothing has no manifest\.json, so it holds no finished run"),
        (changed, {}, CorpusError, r"tokens-00000\.bin is not as manifest\.json lists it"),
        (no_manifest, {}, CorpusError, "is not the manifest of a run of this version"),
        (other_tokenizer, {}, OptionError, "ids and .*more have different tokenizers or lengths"),
        (lambda path: [], {}, OptionError, "name at least one directory"),
        (lambda path: {path / "ids": 0}, {}, OptionError, "weight of .*ids is 0; it must be a number"),
        (lambda path: path / "ids", {"sequence_length": None}, OptionError, "is not packed; give seq"),
        (lambda path: path / "ids", {"sequence_length": 10**6}, OptionError, "ids, fewer than a sequence"),
        (lambda path: path / "ids", {"masks": ["loss"]}, OptionError, "masks is 'loss'"),
        (lambda path: path / "ids", {"masks": ["labels"]}, OptionError, "ids has no masks: it is not packed"),
        (lambda path: [path / "ids"] * 2, {}, OptionError, "named twice; give it a weight of 2"),
        (lambda path: {path / "ids": 1e-9}, {}, OptionError, "has no sample in an epoch: 1e-09 times"),
        (lambda path: "memory://ids", {}, OptionError, "is a URL; TokenDataset maps files"),
        (lambda path: path / "ids", {"seed": -1}, OptionError, "seed is -1"),
    ],
)
def test_errors(
    make: Any, options: dict[str, Any], kind: type[TokenizerError], message: str, directory: Path,
    tmp_path: Path,
) -> None:  # fmt: skip
    shutil.copytree(directory, tmp_path, dirs_exist_ok=True)
    with pytest.raises(kind, match=message):
        TokenDataset(make(tmp_path), **{"sequence_length": LENGTH, **options})[0]


def test_a_state_of_another_order(directory: Path) -> None:
    with pytest.raises(OptionError, match="a dataset whose seed is 4, not 5"):
        stream_of(directory).load_state_dict(stream_of(directory, 4).state_dict())
    state = stream_of(directory).state_dict()
    changes: list[tuple[dict[str, Any], str]] = [
        ({"data": "other"}, "a dataset whose data is other, not"),
        ({"base": 10**9}, "the state is at sample 1,000,000,000 of"),
        ({"taken": -1}, "taken is -1"),
    ]
    for change, message in changes:
        with pytest.raises(OptionError, match=message):
            stream_of(directory).load_state_dict({**state, **change})
    without = {name: value for name, value in state.items() if name != "epoch"}
    no_states: list[Any] = [None, {}, [state], without, {**state, "model": 1}]
    for other in no_states:
        with pytest.raises(OptionError, match=r"must be a dict of state_dict.*, with epoch, base, taken"):
            stream_of(directory).load_state_dict(other)
    with pytest.raises(ArgumentTypeError, match="epoch must be an int, not str"):
        stream_of(directory).load_state_dict({**state, "epoch": "1"})
    with pytest.raises(OptionError, match="taken is 1000000; it must be from 0 to"):
        stream_of(directory).state_dict(taken=10**6)
    with pytest.raises(OptionError, match="rank is 2"):
        stream_of(directory, rank=2, world_size=2)
    with pytest.raises(OptionError, match=f"world_size is {10**6}"):
        stream_of(directory, world_size=10**6)


def test_the_state_of_a_stream_that_its_workers_read(directory: Path) -> None:
    stream = stream_of(directory, batch_size=2)
    with pytest.warns(UserWarning, match="no sample was taken .* in this process.*taken="):
        state = stream.state_dict()
    assert state["taken"] == 0
    next(iter(stream))
    assert (stream.state_dict()["taken"], stream.state_dict(taken=2)["base"]) == (1, 2)


def test_workers_need_the_size_of_a_batch(directory: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dataset, "_worker", lambda: (0, 2))
    with pytest.raises(OptionError, match=r"its batch size: stream\(batch_size="):
        next(iter(stream_of(directory)))
