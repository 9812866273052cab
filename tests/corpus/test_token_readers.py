"""The readers of training programs take our files; `make test-token-readers` installs what a registry has.

Megatron-LM's reader, pyarrow, Polars, NumPy, PyTorch, transformers and TRL are the real ones. llm.c is in no
registry: what its loader does is written anew in `llm_c_loader.c`, from reading karpathy/llm.c
(llmc/dataloader.h, dev/data/data_common.py, train_llama3.py).
"""

from __future__ import annotations

import json
import shutil
import subprocess
import warnings
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path
from typing import Any, BinaryIO, ClassVar

import numpy as np
import pytest

from bpe_tokenizer import BPETokenizer
from bpe_tokenizer.corpus.document_ends import MegatronShard
from bpe_tokenizer.corpus.flat import LLM_C_MAX_TOKENS, llm_c_header
from bpe_tokenizer.corpus.packing import PackStrategy
from bpe_tokenizer.corpus.shards import FORMATS, TokenType
from line_documents import tokenize_corpus
from reader_libraries import library
from token_files import flat

pytestmark = pytest.mark.token_readers

DOCUMENTS = [f"{number}: the low river flows lower, the lowest flows slowly" for number in range(400)]


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
    made = subprocess.run([loader, *arguments], check=True, capture_output=True, text=True, timeout=200)
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
        file.write(llm_c_header(np.dtype("uint16"), tokens))
        # The hole takes no space on the disk.
        file.truncate(1024 + 2 * tokens)
    last = (tokens - 1) // 65_536 - 1
    if more == 0:
        assert load(loader, path, (64, 1024), 1, first=last) == ([tokens], [[0] * 65_537])
        return
    with pytest.raises(subprocess.CalledProcessError) as raised:
        load(loader, path, (64, 1024), 1, first=last)
    assert "cannot seek" in raised.value.stderr


# Megatron-LM, its own reader


@pytest.fixture(scope="module")
def indexed_dataset() -> Any:
    # The package warns about optional libraries when it is imported.
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return library("megatron.core.datasets.indexed_dataset")


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
        writer.ids._file = data
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


def test_trl_takes_the_labels_of_conversations(tmp_path: Path) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        collator = library("trl.trainer.sft_trainer").DataCollatorForLanguageModeling
    special = ["<|im_start|>", "<|im_end|>"]
    tokenizer = BPETokenizer().train(DOCUMENTS, 320, special_tokens=special, verbose=False)
    talk = [{"role": "user", "content": "low"}, {"role": "assistant", "content": "lower"}]
    (tmp_path / "talks.jsonl").write_text("".join(json.dumps({"messages": talk}) + "\n" for _ in range(9)))
    made = tokenize_corpus(
        tmp_path / "talks.jsonl", tmp_path / "out", tokenizer, "parquet", field="messages",
        content="messages", chat_template="chatml", pack=64, pack_strategy="best-fit",
    )  # fmt: skip
    rows = library("pyarrow.parquet").read_table(made.files[0]).to_pylist()
    names = ("input_ids", "seq_lengths", "labels")
    batch = collator(pad_token_id=0, padding_free=True)([{name: row[name] for name in names} for row in rows])
    counted = [label for label in batch["labels"][0].tolist() if label != -100]
    assert tokenizer.decode(counted) == "lower<|im_end|>" * 9


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
