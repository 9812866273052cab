"""The readers of training programs take our files; `make test-token-readers` installs what a registry has.

Megatron-LM's reader, pyarrow, Polars, NumPy, PyTorch, transformers and TRL are the real ones. nanoGPT and
llm.c are in no registry: what their loaders do is written anew here and in `llm_c_loader.c`, from reading
karpathy/nanoGPT (train.py, sample.py) and karpathy/llm.c (llmc/dataloader.h, dev/data/data_common.py,
train_llama3.py).
"""

from __future__ import annotations

import itertools
import pickle
import shutil
import subprocess
import warnings
from collections.abc import Sequence
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any, BinaryIO, ClassVar

import numpy as np
import numpy.typing as npt
import pytest

from bpe_tokenizer import BPETokenizer
from bpe_tokenizer.corpus import PackedSequences, TokenizedCorpus
from bpe_tokenizer.corpus.flat import LLM_C_MAX_TOKENS, llm_c_header
from bpe_tokenizer.corpus.megatron import MegatronShard
from bpe_tokenizer.corpus.packing import PackStrategy
from bpe_tokenizer.corpus.shards import FORMATS, ShardFormatName, TokenType
from bpe_tokenizer.corpus.validation import is_validation
from line_documents import tokenize_corpus
from token_files import flat

pytestmark = pytest.mark.token_readers

DOCUMENTS = [f"{number}: the low river flows lower, the lowest flows slowly" for number in range(400)]


def library(name: str) -> Any:
    """Import a library, or skip the test."""
    if find_spec(name.partition(".")[0]) is None:
        pytest.skip(f"{name.partition('.')[0]} is not installed; make test-token-readers installs it")
    return import_module(name)


@pytest.fixture(scope="module")
def tokenizer() -> BPETokenizer:
    return BPETokenizer().train(DOCUMENTS, 320, special_tokens=["<|endoftext|>"], verbose=False)


@pytest.fixture(scope="module")
def ids(tokenizer: BPETokenizer) -> list[list[int]]:
    eos = tokenizer.eos_token_id
    assert eos is not None
    return [[*tokenizer.encode(text), eos] for text in DOCUMENTS]


@pytest.fixture
def corpus(tmp_path: Path) -> Path:
    path = tmp_path / "corpus.txt"
    path.write_text("\n".join(DOCUMENTS), encoding="utf-8")
    return path


def sides() -> npt.NDArray[np.bool_]:
    """Which documents are for validation: about a tenth."""
    texts = [text.encode() for text in DOCUMENTS]
    return is_validation(np.frombuffer(b"".join(texts), np.uint8), np.cumsum([0, *map(len, texts)]), 0.1)


def divided(
    corpus: Path, directory: Path, name: ShardFormatName, tokenizer: BPETokenizer, dtype: TokenType = "uint16"
) -> TokenizedCorpus:
    """Write shards with a tenth of the documents for validation."""
    return tokenize_corpus(
        corpus, directory, tokenizer, name, dtype=dtype, val_fraction=0.1, shard_tokens=1500
    )


def of_side(ids: Sequence[Sequence[int]], validation: bool) -> list[int]:
    return flat([row for row, side in zip(ids, sides(), strict=True) if side == validation])


# nanoGPT


def nanogpt_batch(directory: Path, split: str, block: int, rows: int, dtype: type[Any] = np.uint16) -> Any:
    """Do what `get_batch` of train.py does: random windows of a memory map, and the same one id later."""
    torch = library("torch")
    data: npt.NDArray[Any] = np.memmap(directory / f"{split}.bin", dtype=dtype, mode="r")
    starts = torch.randint(len(data) - block, (rows,)).tolist()
    windows = torch.from_numpy(
        np.stack([data[start : start + block + 1] for start in starts]).astype(np.int64)
    )
    return windows[:, :-1], windows[:, 1:]


def test_nanogpt_trains(corpus: Path, tmp_path: Path, tokenizer: BPETokenizer) -> None:
    torch = library("torch")
    directory = tmp_path / "data"
    divided(corpus, directory, "nanogpt", tokenizer)
    torch.manual_seed(0)
    torch.set_num_threads(1)
    # train.py takes the size of its embedding from here.
    size = pickle.loads((directory / "meta.pkl").read_bytes())["vocab_size"]
    assert size == tokenizer.n_vocab
    nn = torch.nn
    block = 32

    class Model(nn.Module):  # type: ignore[name-defined, misc]
        def __init__(self) -> None:
            super().__init__()
            self.tokens, self.positions = nn.Embedding(size, 48), nn.Embedding(block, 48)
            self.layer = nn.TransformerEncoderLayer(48, 4, 96, dropout=0.0, batch_first=True, norm_first=True)
            self.head = nn.Linear(48, size)

        def forward(self, x: Any) -> Any:
            mask = nn.Transformer.generate_square_subsequent_mask(x.shape[1])
            hidden = self.tokens(x) + self.positions(torch.arange(x.shape[1]))
            return self.head(self.layer(hidden, src_mask=mask, is_causal=True))

    model = Model()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)

    def loss(split: str) -> Any:
        x, y = nanogpt_batch(directory, split, block, 8)
        return nn.functional.cross_entropy(model(x).flatten(0, 1), y.flatten())

    first = loss("val").item()
    for _ in range(60):
        optimizer.zero_grad()
        loss("train").backward()
        optimizer.step()
    # It starts as a guess among all ids, and learns.
    assert first > 5
    assert loss("val").item() < 2.5


def test_nanogpt_files(corpus: Path, tmp_path: Path, tokenizer: BPETokenizer, ids: list[list[int]]) -> None:
    divided(corpus, tmp_path / "data", "nanogpt", tokenizer)
    for name, validation in (("train", False), ("val", True)):
        data: npt.NDArray[Any] = np.memmap(tmp_path / "data" / f"{name}.bin", dtype=np.uint16, mode="r")
        assert data.tolist() == of_side(ids, validation)
    # sample.py looks up its prompt in `stoi`, character by character, and prints `itos`.
    meta = pickle.loads((tmp_path / "data" / "meta.pkl").read_bytes())
    assert [meta["stoi"][each] for each in "\n"] == tokenizer.encode("\n")
    assert "".join(meta["itos"][each] for each in ids[0]) == DOCUMENTS[0] + "<|endoftext|>"


def test_nanogpt_reads_32_bits_with_the_line_of_the_error(
    corpus: Path, tmp_path: Path, tokenizer: BPETokenizer, ids: list[list[int]]
) -> None:
    library("torch")
    divided(corpus, tmp_path / "data", "nanogpt", tokenizer, "uint32")
    x, y = nanogpt_batch(tmp_path / "data", "train", 16, 4, np.uint32)
    text = " ".join(map(str, of_side(ids, False)))
    assert all(
        " ".join(map(str, [*row.tolist(), last])) in text
        for row, last in zip(x, y[:, -1].tolist(), strict=True)
    )
    # As uint16 it reads without an error, and every second id is 0. So tokenize_corpus asks for the dtype.
    wrong: npt.NDArray[Any] = np.memmap(tmp_path / "data" / "train.bin", dtype=np.uint16, mode="r")
    assert not wrong[1::2].any()


# llm.c


@pytest.fixture(scope="module")
def loader(tmp_path_factory: pytest.TempPathFactory) -> Path:
    compiler = shutil.which("cc") or shutil.which("gcc")
    if compiler is None:
        pytest.skip("no C compiler is installed")
    program = tmp_path_factory.mktemp("llm.c") / "loader"
    source = Path(__file__).parents[1] / "support" / "llm_c_loader.c"
    subprocess.run([compiler, "-O1", "-Wall", "-Werror", source, "-o", program], check=True)
    return program


def load(
    loader: Path, pattern: Path, batch: tuple[int, int], count: int, first: int = 0, processes: int = 1
) -> tuple[list[int], list[list[int]]]:
    """Return the numbers of ids of all files, and batches with their last targets."""
    arguments = [str(each) for each in (pattern, *batch, processes, first, count)]
    made = subprocess.run([loader, *arguments], check=True, capture_output=True, text=True, timeout=60)
    lines = made.stdout.splitlines()
    files = len(lines) - count
    return [int(line) for line in lines[:files]], [[*map(int, line.split())] for line in lines[files:]]


def batches_of(tokens: Sequence[int], size: int) -> list[list[int]]:
    """The batches of a file, each with its last target."""
    return [list(tokens[start : start + size + 1]) for start in range(0, len(tokens) - size, size)]


def test_llm_c(
    loader: Path, corpus: Path, tmp_path: Path, tokenizer: BPETokenizer, ids: list[list[int]]
) -> None:
    made = tokenize_corpus(corpus, tmp_path / "out", tokenizer, "llm.c", shard_tokens=1500)
    assert len(made.files) > 2
    shards = [np.fromfile(path, "<u2", offset=1024).tolist() for path in made.files]
    assert flat(shards) == flat(ids)
    expected = flat([batches_of(shard, 64) for shard in shards])
    sizes, found = load(loader, tmp_path / "out" / "tokens-*.bin", (4, 16), len(expected))
    assert sizes == [len(shard) for shard in shards]
    assert found == expected


def test_llm_c_with_validation(
    loader: Path, corpus: Path, tmp_path: Path, tokenizer: BPETokenizer, ids: list[list[int]]
) -> None:
    made = divided(corpus, tmp_path / "out", "llm.c", tokenizer)
    sizes, found = load(loader, tmp_path / "out" / "*.train.bin", (4, 16), 10)
    assert len(sizes) == len(made.files) - 1 > 2
    assert found == batches_of(of_side(ids, False), 64)[:10]
    expected = batches_of(of_side(ids, True), 64)
    assert load(loader, tmp_path / "out" / "val.bin", (4, 16), len(expected)) == (
        [len(of_side(ids, True))],
        expected,
    )


def test_llm_c_needs_a_whole_batch_in_every_shard(loader: Path, tmp_path: Path) -> None:
    for number, tokens in enumerate((65, 64)):
        with (tmp_path / f"{number}.bin").open("wb") as file:
            writer = FORMATS["llm.c"].open([file], "uint16")
            writer.write(np.arange(tokens, dtype=np.uint32), np.array([tokens]))
            writer.finish()
    assert load(loader, tmp_path / "0.bin", (4, 16), 1) == ([65], [list(range(65))])
    with pytest.raises(subprocess.CalledProcessError) as raised:
        load(loader, tmp_path / "1.bin", (4, 16), 1)
    assert "too few ids" in raised.value.stderr


@pytest.mark.parametrize("more", [0, 1_000_000])
def test_the_longest_file_of_llm_c(loader: Path, tmp_path: Path, more: int) -> None:
    path = tmp_path / "tokens.bin"
    tokens = LLM_C_MAX_TOKENS + more
    with path.open("wb") as file:
        file.write(llm_c_header(2, tokens))
        # The hole takes no space on the disk.
        file.truncate(1024 + 2 * tokens)
    last = (tokens - 1) // 65_536 - 1
    if more == 0:
        assert load(loader, path, (64, 1024), 1, first=last) == ([tokens], [[0] * 65_537])
        return
    with pytest.raises(subprocess.CalledProcessError) as raised:
        load(loader, path, (64, 1024), 1, first=last)
    assert "cannot seek" in raised.value.stderr


def test_llm_c_with_32_bits(
    corpus: Path, tmp_path: Path, tokenizer: BPETokenizer, ids: list[list[int]]
) -> None:
    # What train_llama3.py does: NumPy, with the other magic and version.
    divided(corpus, tmp_path / "out", "llm.c", tokenizer, "uint32")
    tokens = []
    for path in sorted((tmp_path / "out").glob("*.train.bin")):
        data = path.read_bytes()
        header = np.frombuffer(data[:1024], dtype=np.int32)
        assert header[:2].tolist() == [20240801, 7]
        part = np.frombuffer(data[1024:], dtype=np.uint32)
        assert len(part) == header[2]
        tokens.extend(part.tolist())
    assert tokens == of_side(ids, False)


# Megatron-LM, its own reader


@pytest.fixture(scope="module")
def indexed_dataset() -> Any:
    # The package warns about optional libraries when it is imported.
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return library("megatron.core.datasets.indexed_dataset")


@pytest.mark.parametrize("dtype", ["uint16", "int32"])
@pytest.mark.parametrize("mmap", [True, False])
def test_megatron(
    indexed_dataset: Any,
    corpus: Path,
    tmp_path: Path,
    tokenizer: BPETokenizer,
    ids: list[list[int]],
    dtype: TokenType,
    mmap: bool,
) -> None:
    made = tokenize_corpus(corpus, tmp_path / "out", tokenizer, "megatron", dtype=dtype, shard_tokens=1500)
    found: list[list[int]] = []
    for path in made.files[::2]:
        dataset = indexed_dataset.IndexedDataset(str(path.with_suffix("")), mmap=mmap)
        assert dataset.index.dtype == np.dtype(dtype).type
        assert dataset.document_indices.tolist() == list(range(len(dataset) + 1))
        assert [row.tolist() for row in dataset[1:4]] == [dataset[each].tolist() for each in (1, 2, 3)]
        assert dataset.get(2, 1, 3).tolist() == dataset[2][1:4].tolist()
        found.extend(dataset[each].tolist() for each in range(len(dataset)))
    assert found == ids


@pytest.mark.parametrize("dtype", ["uint16", "int32"])
def test_the_bytes_of_megatron(
    indexed_dataset: Any,
    corpus: Path,
    tmp_path: Path,
    tokenizer: BPETokenizer,
    ids: list[list[int]],
    dtype: TokenType,
) -> None:
    ours = tokenize_corpus(corpus, tmp_path / "out", tokenizer, "megatron", dtype=dtype).files
    builder = indexed_dataset.IndexedDatasetBuilder(str(tmp_path / "theirs.bin"), dtype=np.dtype(dtype).type)
    for row in ids:
        builder.add_document(np.array(row), [len(row)])
    builder.finalize(str(tmp_path / "theirs.idx"))
    assert [path.read_bytes() for path in ours] == [
        (tmp_path / f"theirs{path.suffix}").read_bytes() for path in ours
    ]


def test_megatron_beyond_two_billion_ids(indexed_dataset: Any, tmp_path: Path) -> None:
    # A position in the file is an int64, so only the length of a document has a limit. The file has a hole.
    prefix, documents, length = tmp_path / "tokens", 1100, 2_000_000
    with prefix.with_suffix(".bin").open("wb") as data, prefix.with_suffix(".idx").open("wb") as index:
        writer = MegatronShard([_Hole(data), index], "uint16")  # type: ignore[list-item]
        for _ in range(documents - 1):
            writer.write(np.broadcast_to(np.uint32(0), (length,)), np.array([length]))
        data.seek(2 * length * (documents - 1))
        writer._data = data
        writer.write(np.arange(length, dtype=np.uint32), np.array([length]))
        writer.finish()
    dataset = indexed_dataset.IndexedDataset(str(prefix))
    assert dataset.sequence_lengths.sum(dtype=np.int64) > 2**31
    assert dataset.get(documents - 1, 7, 3).tolist() == [7, 8, 9]


class _Hole:
    """A file that is written elsewhere."""

    def __init__(self, file: BinaryIO) -> None:
        self.file = file

    def write(self, data: Any) -> None:
        """Write nothing."""


def test_samples_of_megatron(
    indexed_dataset: Any, tmp_path: Path, tokenizer: BPETokenizer, ids: list[list[int]]
) -> None:
    """Its GPT dataset cuts our documents into samples, also with empty documents among them."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        gpt = library("megatron.core.datasets.gpt_dataset")
    split = import_module("megatron.core.datasets.utils").Split.train
    rows = [[], *ids[:200], [], [], *ids[200:], []]
    with (tmp_path / "tokens.bin").open("wb") as data, (tmp_path / "tokens.idx").open("wb") as index:
        writer = MegatronShard([data, index], "uint16")
        writer.write(np.array(flat(rows), dtype=np.uint32), np.array([*map(len, rows)]))
        writer.finish()

    class Tokenizer:
        vocab_size, eod, pad = tokenizer.n_vocab, tokenizer.eos_token_id, 0
        unique_identifiers: ClassVar = {"class": "test"}

    config = gpt.GPTDatasetConfig(
        random_seed=1,
        sequence_length=64,
        split="1,0,0",
        reset_position_ids=False,
        reset_attention_mask=False,
        eod_mask_loss=False,
        create_attention_mask=False,
        tokenizer=Tokenizer(),
        path_to_cache=str(tmp_path / "cache"),
        mid_level_dataset_surplus=0.005,
    )
    prefix = str(tmp_path / "tokens")
    low = gpt.GPTDataset.build_low_level_dataset(prefix, config)
    documents = np.arange(len(rows), dtype=np.int32)
    dataset = gpt.GPTDataset(low, prefix, documents, None, split, config)
    tokens = sum(map(len, ids))
    assert len(dataset) == (tokens - 1) // 64
    # It shuffles the documents; a sample begins where the one before ends.
    order = flat([rows[each] for each in dataset.document_index])
    samples = {position: dataset[place] for place, position in enumerate(dataset.shuffle_index.tolist())}
    for position, sample in samples.items():
        assert sample["tokens"].tolist() == order[64 * position : 64 * position + 64]
        assert sample["labels"].tolist() == order[64 * position + 1 : 64 * position + 65]


# NumPy and Parquet


def test_pyarrow_and_polars(
    corpus: Path, tmp_path: Path, tokenizer: BPETokenizer, ids: list[list[int]]
) -> None:
    parquet, polars = library("pyarrow.parquet"), library("polars")
    tokenize_corpus(corpus, tmp_path / "out", tokenizer, "parquet", shard_tokens=1500)
    paths = sorted((tmp_path / "out").glob("*.parquet"))
    assert flat([parquet.read_table(path)["input_ids"].to_pylist() for path in paths]) == ids
    frame = polars.scan_parquet(tmp_path / "out" / "*.parquet").collect()
    assert frame.schema["input_ids"] == polars.List(polars.UInt32)
    assert frame["input_ids"].to_list() == ids
    lengths = polars.scan_parquet(paths).select(polars.col("input_ids").list.len().sum()).collect().item()
    assert lengths == sum(map(len, ids))


# Packed sequences


STRATEGIES: list[PackStrategy] = ["concat", "best-fit"]


def packed_rows(
    corpus: Path, tmp_path: Path, tokenizer: BPETokenizer, strategy: PackStrategy
) -> list[dict[str, Any]]:
    parquet, polars = library("pyarrow.parquet"), library("polars")
    made = tokenize_corpus(corpus, tmp_path / "out", tokenizer, "parquet", pack=48, pack_strategy=strategy)
    rows: list[dict[str, Any]] = parquet.read_table(made.files[0]).to_pylist()
    assert polars.read_parquet(made.files[0]).to_dicts() == rows
    return rows


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_packed_parquet(
    corpus: Path, tmp_path: Path, tokenizer: BPETokenizer, ids: list[list[int]], strategy: PackStrategy
) -> None:
    rows = packed_rows(corpus, tmp_path, tokenizer, strategy)
    assert sum(len(row["input_ids"]) for row in rows) == sum(map(len, ids))
    for row in rows:
        assert row["position_ids"] == flat([range(length) for length in row["seq_lengths"]])
        assert len(row["input_ids"]) == len(row["position_ids"]) <= 48


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_trl(corpus: Path, tmp_path: Path, tokenizer: BPETokenizer, strategy: PackStrategy) -> None:
    """TRL's collator finds the documents in `seq_lengths`."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        collator = library("trl.trainer.sft_trainer").DataCollatorForLanguageModeling
    rows = packed_rows(corpus, tmp_path, tokenizer, strategy)[:5]
    batch = collator(pad_token_id=0, padding_free=True)(
        [{name: row[name] for name in ("input_ids", "seq_lengths")} for row in rows]
    )
    assert batch["input_ids"].tolist() == [flat([row["input_ids"] for row in rows])]
    assert batch["position_ids"].tolist() == [flat([row["position_ids"] for row in rows])]


@pytest.mark.parametrize("attention", ["eager", "sdpa"])
def test_transformers(corpus: Path, tmp_path: Path, tokenizer: BPETokenizer, attention: str) -> None:
    """A model of transformers with `position_ids` computes what it does for each document alone."""
    torch, transformers = library("torch"), library("transformers")
    torch.manual_seed(0)
    config = transformers.LlamaConfig(
        vocab_size=tokenizer.n_vocab,
        hidden_size=32,
        intermediate_size=32,
        num_hidden_layers=2,
        num_attention_heads=4,
        num_key_value_heads=4,
        attn_implementation=attention,
    )
    model = transformers.LlamaForCausalLM(config).eval()
    for row in packed_rows(corpus, tmp_path, tokenizer, "concat")[:3]:
        ids, positions = torch.tensor([row["input_ids"]]), torch.tensor([row["position_ids"]])
        with torch.no_grad():
            together = model(input_ids=ids, position_ids=positions, use_cache=False).logits
            parts = torch.split(ids, row["seq_lengths"], dim=1)
            alone = torch.cat([model(input_ids=part, use_cache=False).logits for part in parts], dim=1)
        assert len(parts) > 1
        assert torch.allclose(together, alone, atol=1e-4)


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_attention_with_masks_is_that_of_the_documents(
    corpus: Path, tmp_path: Path, tokenizer: BPETokenizer, strategy: PackStrategy
) -> None:
    """Attention with the mask of `document_ids` is that over the pieces of `cu_seqlens`."""
    torch = library("torch")
    attention = torch.nn.functional.scaled_dot_product_attention
    made = tokenize_corpus(corpus, tmp_path / "out", tokenizer, "npy", pack=48, pack_strategy=strategy)
    packed = PackedSequences.load(made.files[0])
    torch.manual_seed(0)
    start, stop = 3, 7
    tokens = torch.from_numpy(packed.ids[start:stop].astype(np.int64))
    positions = torch.from_numpy(packed.position_ids(start, stop).astype(np.int64))
    hidden = torch.nn.Embedding(320, 16)(tokens) + torch.nn.Embedding(48, 16)(positions)
    documents = torch.from_numpy(packed.document_ids(start, stop))
    mask = documents[:, :, None] == documents[:, None, :]
    mask &= torch.ones(48, 48, dtype=torch.bool).tril()
    whole = attention(hidden, hidden, hidden, attn_mask=mask)
    # What FlashAttention's flash_attn_varlen_func computes: causal attention within each piece.
    flattened = hidden.reshape(-1, 16)
    borders = packed.cu_seqlens(start, stop).tolist()
    assert borders[0] == 0
    assert borders[-1] == len(flattened)
    parts = [flattened[first:end][None] for first, end in itertools.pairwise(borders)]
    alone = torch.cat([attention(part, part, part, is_causal=True)[0] for part in parts])
    assert torch.allclose(whole.reshape(-1, 16), alone, atol=1e-6)
