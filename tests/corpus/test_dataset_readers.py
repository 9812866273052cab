"""Readers of datasets (OLMo-core, datatrove, MosaicML, litdata) take our shards, Megatron-LM a tokenizer."""

from __future__ import annotations

import json
import warnings
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from bpe_tokenizer import BPETokenizer
from bpe_tokenizer.corpus import TokenDataset
from bpe_tokenizer.corpus.shards import TokenType
from distributed.cases import run_example
from line_documents import tokenize_corpus
from reader_libraries import library
from token_files import flat

# The libraries warn about themselves.
pytestmark = [pytest.mark.token_readers, pytest.mark.filterwarnings("ignore")]


@pytest.mark.parametrize("dtype", ["uint16", "uint32"])
def test_olmo_core(
    corpus: Path, tmp_path: Path, tokenizer: BPETokenizer, ids: list[list[int]], dtype: TokenType
) -> None:
    reader = library("olmo_core.data.utils")
    made = tokenize_corpus(corpus, tmp_path / "out", tokenizer, "olmo", dtype=dtype, shard_tokens=100)
    found = [
        reader.load_array_slice(path, start, end, np.dtype(dtype).type).tolist()
        for path in made.files[::2]
        for start, end in reader.iter_document_indices(path, dtype=np.dtype(dtype).type)
    ]
    assert found == ids


def test_sequences_of_olmo_core(
    corpus: Path, tmp_path: Path, tokenizer: BPETokenizer, ids: list[list[int]]
) -> None:
    dataset_class = library("olmo_core.data").NumpyFSLDataset
    (path, _) = tokenize_corpus(corpus, tmp_path / "out", tokenizer, "olmo").files
    dataset = dataset_class(
        path,
        sequence_length=16,
        pad_token_id=0,
        eos_token_id=tokenizer.eos_token_id,
        vocab_size=tokenizer.n_vocab,
    )
    found = flat([dataset[number]["input_ids"].tolist() for number in range(len(dataset))])
    assert found == flat(ids)[: len(found)]
    assert len(found) > len(flat(ids)) - 16


@pytest.mark.parametrize("dtype", ["uint16", "uint32"])
def test_datatrove(
    corpus: Path, tmp_path: Path, tokenizer: BPETokenizer, ids: list[list[int]], dtype: TokenType
) -> None:
    reader, tokens = library("datatrove.utils.dataset"), library("datatrove.pipeline.tokens.tokenizer")
    made = tokenize_corpus(corpus, tmp_path / "out", tokenizer, "datatrove", dtype=dtype)
    folder = reader.DatatroveFolderDataset(
        str(tmp_path / "out"), 15, "*.ds", token_size=np.dtype(dtype).itemsize, return_positions=True
    )
    found = [folder[number] for number in range(len(folder))]
    assert flat([each["input_ids"].tolist() for each in found]) == flat(ids)[: 16 * len(found)]
    positions = flat([list(range(len(row))) for row in ids])
    assert found[0]["positions"].tolist() == positions[:16]
    # Their writer gives the same bytes.
    theirs = tokens.TokenizedFile(str(tmp_path), "theirs.ds", token_size=np.dtype(dtype).itemsize)
    for row in ids:
        theirs.write(row, None)
    theirs.close()
    for ours, suffix in zip(made.files, ("", ".index"), strict=False):
        assert ours.read_bytes() == (tmp_path / f"theirs.ds{suffix}").read_bytes()


@pytest.mark.parametrize("dtype", ["uint16", "int32"])
def test_mds(
    corpus: Path, tmp_path: Path, tokenizer: BPETokenizer, ids: list[list[int]], dtype: TokenType
) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        streaming = library("streaming")
    made = tokenize_corpus(corpus, tmp_path / "out", tokenizer, "mds", dtype=dtype, shard_tokens=100)
    dataset = streaming.LocalDataset(str(tmp_path / "out"))
    assert [dataset[number]["tokens"].tolist() for number in range(len(dataset))] == ids
    assert dataset[0]["tokens"].dtype == dtype
    streamed = streaming.StreamingDataset(local=str(tmp_path / "out"), batch_size=1, shuffle=False)
    assert [sample["tokens"].tolist() for sample in streamed] == ids
    # Their writer gives the same bytes.
    encoding = {"tokens": f"ndarray:{dtype}"}
    with streaming.MDSWriter(out=str(tmp_path / "theirs"), columns=encoding, size_limit=None) as writer:
        for row in ids:
            writer.write({"tokens": np.array(row, dtype)})
    whole = tokenize_corpus(corpus, tmp_path / "whole", tokenizer, "mds", dtype=dtype)
    assert whole.files[0].read_bytes() == (tmp_path / "theirs" / "shard.00000.mds").read_bytes()
    indexes = [json.loads((tmp_path / name / "index.json").read_bytes()) for name in ("whole", "theirs")]
    indexes[1]["shards"][0]["raw_data"]["basename"] = whole.files[0].name
    assert indexes[0] == indexes[1]
    assert len(made.files) > 2


@pytest.mark.parametrize("strategy", ["concat", "best-fit"])
def test_packed_mds(
    corpus: Path, tmp_path: Path, tokenizer: BPETokenizer, ids: list[list[int]], strategy: Any
) -> None:
    streaming = library("streaming")
    tokenize_corpus(corpus, tmp_path / "out", tokenizer, "mds", pack=24, pack_strategy=strategy)
    dataset = streaming.LocalDataset(str(tmp_path / "out"))
    samples = [dataset[number] for number in range(len(dataset))]
    assert sorted(flat([sample["tokens"].tolist() for sample in samples])) == sorted(flat(ids))
    assert all(sample["seq_lengths"].sum() == len(sample["tokens"]) <= 24 for sample in samples)


@pytest.mark.parametrize("dtype", ["uint16", "int32"])
def test_litdata(
    corpus: Path, tmp_path: Path, tokenizer: BPETokenizer, ids: list[list[int]], dtype: TokenType
) -> None:
    litdata = library("litdata")
    made = tokenize_corpus(corpus, tmp_path / "out", tokenizer, "litdata", dtype=dtype, shard_tokens=100)
    loader = library("litdata.streaming.item_loader").TokensLoader(block_size=16)
    dataset = litdata.StreamingDataset(str(tmp_path / "out"), item_loader=loader)
    shards = [np.fromfile(path, dtype, offset=12).tolist() for path in made.files]
    assert flat(shards) == flat(ids)
    assert len(shards) > 2
    # A block does not go beyond a chunk.
    expected = [shard[start : start + 16] for shard in shards for start in range(0, len(shard) - 15, 16)]
    assert [block.tolist() for block in dataset] == expected


@pytest.mark.parametrize("workers", [0, 2])
def test_our_dataset_in_a_data_loader(
    corpus: Path, tmp_path: Path, tokenizer: BPETokenizer, workers: int
) -> None:
    data = library("torch.utils.data")
    tokenize_corpus(corpus, tmp_path / "out", tokenizer, "npy", shard_tokens=100)
    dataset = TokenDataset(tmp_path / "out", 16, seed=1)
    order = [sample["input_ids"].tolist() for sample in dataset]
    assert len(order) > 10
    mapped = data.DataLoader(dataset, batch_size=3, num_workers=workers)
    assert flat([batch["input_ids"].tolist() for batch in mapped]) == order
    for rank in range(2):
        stream = dataset.stream(batch_size=3, rank=rank, world_size=2)
        loader = data.DataLoader(stream, batch_size=3, num_workers=workers)
        batches = [batch["input_ids"] for batch in loader]
        assert flat([batch.tolist() for batch in batches]) == order[rank : len(order) // 2 * 2 : 2]
        assert str(batches[0].dtype) == "torch.int64"
        stream = dataset.stream(batch_size=3, rank=rank, world_size=2)
        stream.load_state_dict(stream.state_dict(taken=3))
        loader = data.DataLoader(stream, batch_size=3, num_workers=workers)
        assert [batch["input_ids"].tolist() for batch in loader] == [each.tolist() for each in batches[1:]]


# -- Megatron-LM's tokenizers ---------------------------------------------------------------------------


def test_a_tokenizer_of_megatron(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    library("megatron.core")
    done = run_example("tokenizer_for_megatron.py", tmp_path)
    assert done.returncode == 0, done.stderr
    assert "the same ids: True" in done.stdout
    assert "the same texts: True" in done.stdout
    monkeypatch.syspath_prepend(str(Path(__file__).parents[2] / "examples"))
    module = import_module("tokenizer_for_megatron")
    tokenizer = BPETokenizer().train("low é lower", 262, special_tokens=["<|eos|>", "<|a|>"], verbose=False)
    tokenizer.save(tmp_path / "saved")
    module.register()
    from_pretrained = import_module("megatron.core.tokenizers").MegatronTokenizer.from_pretrained
    metadata = {"library": "bpe-tokenizer"}
    text = "low é<|a|>lower"
    theirs = from_pretrained(str(tmp_path / "saved"), metadata)
    assert theirs.tokenize(text) == tokenizer.encode(text)
    theirs = from_pretrained(str(tmp_path / "saved"), metadata, allow_special=True)
    ids = theirs.tokenize(text)
    assert ids == tokenizer.encode(text, allowed_special="all")
    assert theirs.detokenize(ids) == text
    assert (theirs.eod, theirs.pad, theirs.bos) == (tokenizer.eos_token_id, tokenizer.eos_token_id, None)
    assert theirs.additional_special_tokens_ids == [tokenizer.special_tokens["<|a|>"]]
    spans = tokenizer.encode_with_offsets(text, allowed_special="all")[1]
    inner = theirs._tokenizer
    assert inner.offsets(ids, text) == [start for start, _ in spans]
    assert inner.tokens_to_text(inner.text_to_tokens(text)) == text
    assert theirs.vocab_size == len(theirs.vocab) == len(theirs.inv_vocab) == tokenizer.n_vocab
